/**
 * `holdfast dashboard`: serves the dashboard.
 *
 * Not here: the refused options and their reasons (dashboard/serve.ts).
 */
import { UsageError } from "../../errors.ts";
import {
  type DashboardDatabase,
  type DashboardServer,
  type Databases,
  serve,
  type ServeOptions,
} from "../../dashboard/index.ts";
import { aborted } from "../io.ts";
import { openBrowser } from "./browser.ts";
import type { Command } from "../command.ts";
import type { Context } from "../command-context.ts";

export const dashboard: Command = {
  name: "dashboard",
  summary: "serve the dashboard, and print its address",
  options: {
    port: { type: "string", short: "p", value: "port", help: "Default 8787; 0 takes a free one" },
    host: { type: "string", value: "address", help: "Default 127.0.0.1; any other needs HOLDFAST_TOKEN" },
    "read-only": { type: "boolean", help: "Refuse every change" },
    auth: { type: "boolean", help: "--no-auth: require no token (loopback only)" },
    label: { type: "string", value: "text", help: "Shown on every screen: prod, staging" },
    "label-color": {
      type: "string",
      value: "color",
      help: "Colour of the label: red, orange, yellow, green, blue, violet, pink, grey, or #rrggbb",
    },
    open: { type: "boolean", help: "Open the address in this machine's browser" },
    "trace-link": {
      type: "string",
      value: "address",
      help: "Address of a job's trace: https://jaeger.example.org/trace/{traceId}",
    },
    url: {
      type: "string",
      multiple: true,
      value: "[name=]url",
      help: "Database address; several databases need names: --url main=… --url eu=…",
    },
    "read-only-of": {
      type: "string",
      multiple: true,
      value: "name",
      help: "Refuse changes in this one of several databases",
    },
  },
  details:
    "Runs until SIGTERM or Ctrl-C. The printed address has a fresh token after #, which browsers do not send to servers. With HOLDFAST_TOKEN, that token applies and is not printed.",
  json: "{ url, address, port, readOnly, databases }, once it listens; databases: their names, if several",
  examples: [
    { line: "dashboard", says: "On http://127.0.0.1:8787" },
    { line: "dashboard --open --label prod --label-color red", says: "Open a browser; show a red label" },
    { line: "dashboard --read-only --port 9000", says: "Read-only, on port 9000" },
    {
      line: "dashboard --url main=postgres://db/app --url archive=sqlite:old.db --read-only-of archive",
      says: "Two databases in one dashboard",
    },
    {
      line: "HOLDFAST_TOKEN=… holdfast dashboard --host 0.0.0.0",
      says: "For other machines; put TLS in front",
    },
  ],
  run: async (ctx) => {
    const options = optionsOf(ctx);
    const target = await databasesOf(ctx);
    const shown = target ?? (await ctx.client());
    const { jobs } = (await ctx.config()).config;
    const server = await listen(() => serve(shown, { ...options, jobs }));
    const { url, address, port } = server;
    const names = target === null ? {} : { databases: Object.keys(target) };
    ctx.result(
      { url, address, port, readOnly: options.readOnly === true, ...names },
      () => `Dashboard: ${address}${target === null ? "" : `\nDatabases: ${Object.keys(target).join(", ")}`}`,
    );
    if (ctx.flag("open"))
      void openBrowser(address, ctx.io.env).then((opened) => {
        if (!opened) ctx.note("Cannot open a browser here. Open the address yourself.");
      });
    await aborted(ctx.io.signal);
    await server.close();
  },
};

/** Several databases by name; null for a single one. */
async function databasesOf(ctx: Context): Promise<Databases | null> {
  const urls = ctx.strings("url");
  const named = urls.map((text) => /^([A-Za-z0-9][A-Za-z0-9._-]{0,63})=(.+)$/.exec(text));
  const looked = ctx.list("read-only-of") ?? [];
  if (urls.length <= 1 && (named[0] ?? null) === null) {
    if (looked.length > 0) throw wrongUse("--read-only-of needs several databases: --url name=….");
    return null;
  }
  const databases: Record<string, DashboardDatabase> = {};
  for (const [i, match] of named.entries()) {
    const [, name, url] = match ?? [];
    if (name === undefined || url === undefined)
      throw wrongUse(
        `With several databases, each needs a name, such as --url ${i === 0 ? "main" : "eu"}=….`,
      );
    if (Object.hasOwn(databases, name)) throw wrongUse(`Two databases have the name ${name}.`);
    databases[name] = { hf: await ctx.clientOn(url), readOnly: looked.includes(name) };
  }
  const unknown = looked.find((name) => !Object.hasOwn(databases, name));
  if (unknown !== undefined)
    throw wrongUse(`--read-only-of: there is no database ${JSON.stringify(unknown)}.`);
  return databases;
}

function wrongUse(message: string): UsageError {
  return new UsageError("BAD_OPTION", message, { details: { option: "url" } });
}

function optionsOf(ctx: Context): ServeOptions {
  const token = ctx.io.env["HOLDFAST_TOKEN"] ?? "";
  const [port, host, label] = [ctx.integer("port"), ctx.string("host"), ctx.string("label")];
  const [labelColor, traceLink] = [ctx.string("label-color"), ctx.string("trace-link")];
  const auth = ctx.switch("auth") === false ? "none" : token === "" ? undefined : { token };
  return {
    readOnly: ctx.flag("read-only"),
    ...(auth === undefined ? {} : { auth }),
    ...(port === undefined ? {} : { port }),
    ...(host === undefined ? {} : { host }),
    ...(label === undefined ? {} : { label }),
    ...(labelColor === undefined ? {} : { labelColor }),
    ...(traceLink === undefined ? {} : { traceLink }),
  };
}

async function listen(start: () => Promise<DashboardServer>): Promise<DashboardServer> {
  try {
    return await start();
  } catch (error) {
    if (error instanceof UsageError && error.details["option"] === "auth")
      throw new UsageError(
        "BAD_OPTION",
        "An address other than loopback needs a token, because anyone who reaches it could read and delete jobs. Set HOLDFAST_TOKEN to at least 16 characters, or omit --host and use a tunnel.",
        { details: { option: "host" } },
      );
    const { code, syscall } = error as NodeJS.ErrnoException;
    if (syscall === undefined) throw error;
    throw new UsageError(
      "BAD_OPTION",
      `The dashboard cannot listen on this address: ${code ?? syscall}. Try --port 0.`,
      {
        cause: error,
      },
    );
  }
}
