/**
 * `holdfast dashboard`: the dashboard as a server of its own.
 *
 * Not here: what it refuses, and why (dashboard/serve.ts).
 */
import { UsageError } from "../../errors.ts";
import { type DashboardServer, serve, type ServeOptions } from "../../dashboard/index.ts";
import type { Command } from "../command.ts";
import type { Context } from "../context.ts";

export const dashboard: Command = {
  name: "dashboard",
  summary: "serve the dashboard, and print its address",
  options: {
    port: { type: "string", short: "p", value: "port", help: "Default 8787; 0 takes a free one" },
    host: { type: "string", value: "address", help: "Default 127.0.0.1; any other needs HOLDFAST_TOKEN" },
    "read-only": { type: "boolean", help: "Look, and change nothing" },
    auth: { type: "boolean", help: "--no-auth: no token; on this machine alone" },
    label: { type: "string", value: "text", help: "Shown beside the name: prod, staging" },
  },
  details:
    "Runs until SIGTERM or Ctrl-C. The address that it prints carries a fresh token behind #, where no server and no log sees it. With HOLDFAST_TOKEN that is the token, and it is not printed.",
  json: "{ url, address, port, readOnly }, once it listens",
  examples: [
    { line: "dashboard", says: "On http://127.0.0.1:8787" },
    { line: "dashboard --read-only --port 9000", says: "To look at only" },
    { line: "HOLDFAST_TOKEN=… holdfast dashboard --host 0.0.0.0", says: "For others; put TLS before it" },
  ],
  run: async (ctx) => {
    const options = optionsOf(ctx);
    const hf = await ctx.client();
    const server = await listen(() => serve(hf, options));
    const { url, address, port } = server;
    ctx.result({ url, address, port, readOnly: options.readOnly === true }, () => `Dashboard: ${address}`);
    await new Promise<void>((resolve) => {
      if (ctx.io.signal.aborted) resolve();
      ctx.io.signal.addEventListener("abort", () => resolve(), { once: true });
    });
    await server.close();
  },
};

function optionsOf(ctx: Context): ServeOptions {
  const token = ctx.io.env["HOLDFAST_TOKEN"] ?? "";
  const [port, host, label] = [ctx.integer("port"), ctx.string("host"), ctx.string("label")];
  const auth = ctx.switch("auth") === false ? "none" : token === "" ? undefined : { token };
  return {
    readOnly: ctx.flag("read-only"),
    ...(auth === undefined ? {} : { auth }),
    ...(port === undefined ? {} : { port }),
    ...(host === undefined ? {} : { host }),
    ...(label === undefined ? {} : { label }),
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
