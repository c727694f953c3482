/**
 * The dashboard as a server of its own: what `holdfast dashboard` runs.
 *
 * Invariants: it listens on 127.0.0.1 unless told otherwise; on loopback it makes a token if none is given, and the
 * address it tells carries it behind #, where no server and no log sees it; any other address without `auth` is
 * refused before a socket is opened; only its own host names are answered, so that a name which an attacker points at
 * 127.0.0.1 gets nothing.
 */
import { randomBytes } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { UsageError } from "../errors.ts";
import type { Holdfast } from "../index.ts";
import { checkInteger, checkOptions } from "../values/options.ts";
import type { Databases } from "./databases.ts";
import { dashboard, type DashboardHandler, type DashboardOptions } from "./handler.ts";
import { toNodeHandler } from "./node.ts";
import type { Auth } from "./access/security.ts";

/**
 * What `serve` takes: all of `dashboard`, and where to listen.
 *
 * @example
 * await serve(hf, { port: 9000, readOnly: true });
 */
export interface ServeOptions extends Omit<DashboardOptions, "auth"> {
  /** Default 127.0.0.1. Anything but loopback needs `auth`. */
  readonly host?: string | undefined;
  /** Default 8787; 0 takes a free one. */
  readonly port?: number | undefined;
  /** Default on loopback: a fresh token, which the address carries. `"none"` is for loopback alone. */
  readonly auth?: Auth | "none" | undefined;
}

/**
 * A running server.
 *
 * @example
 * const server = await serve(hf);
 * console.log(server.address);
 */
export interface DashboardServer extends AsyncDisposable {
  /** What to open in a browser, with the token behind #. */
  readonly address: string;
  /** The same without the token. */
  readonly url: string;
  /** The token that was made, or null. */
  readonly token: string | null;
  readonly port: number;
  /** Ends the streams and the server. The client stays open. */
  close(): Promise<void>;
}

const loopback = /^(127(\.\d{1,3}){3}|::1|localhost)$/i;

/**
 * Serves the dashboard of a client, or of several by name. On loopback it works as it is; elsewhere it needs `auth`.
 *
 * @throws UsageError BAD_OPTION for an address other than loopback without auth
 * @example
 * const server = await serve(hf, { port: 8787 });
 * console.log(`Dashboard: ${server.address}`);
 */
export async function serve(
  target: Holdfast | Databases,
  options: ServeOptions = {},
): Promise<DashboardServer> {
  const {
    host = "127.0.0.1",
    port = 8787,
    auth,
    ...rest
  } = checkOptions(
    options,
    [
      "host",
      "port",
      "auth",
      "readOnly",
      "basePath",
      "redact",
      "authorize",
      "hosts",
      "origins",
      "label",
      "labelColor",
      "traceLink",
      "jobs",
      "maxBody",
    ],
    "serve",
  ) as ServeOptions;
  if (typeof host !== "string" || host === "")
    throw new UsageError("BAD_OPTION", "host must be an address or a name.", { details: { option: "host" } });
  checkInteger(port, "port", { min: 0, max: 65_535 });
  const local = loopback.test(host);
  if (!local && (auth === undefined || auth === "none"))
    throw new UsageError(
      "BAD_OPTION",
      `The dashboard does not listen on ${host} without auth, because anyone who reaches it could read and delete jobs. Give \`auth\`, or keep \`host\` at 127.0.0.1 and use a tunnel.`,
      { details: { option: "auth" } },
    );
  const token = auth === undefined ? randomBytes(32).toString("base64url") : null;
  const chosen: Auth =
    auth === undefined ? { token: token as string } : auth === "none" ? () => ({ name: "local" }) : auth;

  let handler: DashboardHandler | null = null;
  // Node looks for late headers every 30 s unless told otherwise, which made 40 s of the 10.
  const server = createServer({ connectionsCheckingInterval: 1_000 }, (request, response) => {
    if (handler === null) response.destroy();
    else toNodeHandler(handler)(request, response);
  });
  // A header or body that does not come must not hold a socket for ever.
  server.headersTimeout = 10_000;
  server.requestTimeout = 30_000;
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, resolve);
  });
  const bound = (server.address() as AddressInfo).port;
  const names = local ? ["127.0.0.1", "localhost", "[::1]"] : [host.includes(":") ? `[${host}]` : host];
  const hosts =
    rest.hosts ??
    (local || !isWildcard(host)
      ? names.flatMap((name) => [`${name}:${bound}`, ...(bound === 80 ? [name] : [])])
      : undefined);
  handler = dashboard(target, { ...rest, auth: chosen, hosts });
  const url = `http://${host.includes(":") ? `[${host}]` : host}:${bound}${rest.basePath ?? ""}/`;
  const close = async (): Promise<void> => {
    handler?.close();
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    server.closeAllConnections();
    await closed;
  };
  return {
    url,
    address: token === null ? url : `${url}#token=${token}`,
    token,
    port: bound,
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** An address that stands for all: who listens there has names that we cannot know. */
function isWildcard(host: string): boolean {
  return host === "0.0.0.0" || host === "::";
}
