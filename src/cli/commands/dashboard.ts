/**
 * `holdfast dashboard`: the dashboard as a server of its own.
 *
 * Not here: what it refuses, and why (dashboard/serve.ts).
 */
import { UsageError } from "../../errors.ts";
import {
  type DashboardDatabase,
  type DashboardServer,
  type Databases,
  serve,
  type ServeOptions,
} from "../../dashboard/index.ts";
import { openBrowser } from "../parts/browser.ts";
import type { Command } from "../command.ts";
import type { Context } from "../command-context.ts";

export const dashboard: Command = {
  name: "dashboard",
  summary: "serve the dashboard, and print its address",
  options: {
    port: { type: "string", short: "p", value: "port", help: "Default 8787; 0 takes a free one" },
    host: { type: "string", value: "address", help: "Default 127.0.0.1; any other needs HOLDFAST_TOKEN" },
    "read-only": { type: "boolean", help: "Look, and change nothing" },
    auth: { type: "boolean", help: "--no-auth: no token; on this machine alone" },
    label: { type: "string", value: "text", help: "Shown on every screen: prod, staging" },
    "label-color": {
      type: "string",
      value: "color",
      help: "Of the label: red, orange, yellow, green, blue, violet, pink, grey, or #rrggbb",
    },
    open: { type: "boolean", help: "Open the address in this machine's browser" },
    "trace-link": {
      type: "string",
      value: "address",
      help: "Where a job's trace is seen: https://jaeger.example.org/trace/{traceId}",
    },
    url: {
      type: "string",
      multiple: true,
      value: "[name=]url",
      help: "The database; several with names, such as --url main=… --url eu=…, for one dashboard over all",
    },
    "read-only-of": {
      type: "string",
      multiple: true,
      value: "name",
      help: "Of several databases: change nothing in this one",
    },
  },
  details:
    "Runs until SIGTERM or Ctrl-C. The address that it prints carries a fresh token behind #, where no server and no log sees it. With HOLDFAST_TOKEN that is the token, and it is not printed.",
  json: "{ url, address, port, readOnly, databases }, once it listens; databases: their names, where there are several",
  examples: [
    { line: "dashboard", says: "On http://127.0.0.1:8787" },
    { line: "dashboard --open --label prod --label-color red", says: "In the browser, with a red label" },
    { line: "dashboard --read-only --port 9000", says: "To look at only" },
    {
      line: "dashboard --url main=postgres://db/app --url archive=sqlite:old.db --read-only-of archive",
      says: "Two databases, and a switch between them",
    },
    { line: "HOLDFAST_TOKEN=… holdfast dashboard --host 0.0.0.0", says: "For others; put TLS before it" },
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
        if (!opened) ctx.note("No browser could be opened from here. Open the address by hand.");
      });
    await new Promise<void>((resolve) => {
      if (ctx.io.signal.aborted) resolve();
      ctx.io.signal.addEventListener("abort", () => resolve(), { once: true });
    });
    await server.close();
  },
};

/** Several databases, by the names that they were given; null: there is one. */
async function databasesOf(ctx: Context): Promise<Databases | null> {
  const urls = ctx.strings("url");
  const named = urls.map((text) => /^([A-Za-z0-9][A-Za-z0-9._-]{0,63})=(.+)$/.exec(text));
  const looked = ctx.list("read-only-of") ?? [];
  if (urls.length <= 1 && (named[0] ?? null) === null) {
    if (looked.length > 0) throw wrongUse("--read-only-of goes with several databases: --url name=….");
    return null;
  }
  const databases: Record<string, DashboardDatabase> = {};
  for (const [i, match] of named.entries()) {
    const [, name, url] = match ?? [];
    if (name === undefined || url === undefined)
      throw wrongUse(`Of several databases each needs a name, such as --url ${i === 0 ? "main" : "eu"}=….`);
    if (Object.hasOwn(databases, name)) throw wrongUse(`Two databases have the name ${name}.`);
    databases[name] = { hf: await ctx.clientOn(url), readOnly: looked.includes(name) };
  }
  const unknown = looked.find((name) => !Object.hasOwn(databases, name));
  if (unknown !== undefined)
    throw wrongUse(`--read-only-of names ${JSON.stringify(unknown)}, which is none of the databases.`);
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
        "On another address than loopback everybody who can reach it could read and delete jobs: set HOLDFAST_TOKEN to a token of at least 16 characters. Or leave --host away, and use a tunnel.",
        { details: { option: "host" } },
      );
    const { code, syscall } = error as NodeJS.ErrnoException;
    if (syscall === undefined) throw error;
    throw new UsageError(
      "BAD_OPTION",
      `The dashboard cannot listen there: ${code ?? syscall}. Try --port 0.`,
      {
        cause: error,
      },
    );
  }
}
