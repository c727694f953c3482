/**
 * The small server of `holdfast work`: health, readiness, latency and metrics. No jobs and no actions.
 *
 *   GET /health · /ready · /latency[?queue=mail] · /metrics
 *
 * On 127.0.0.1 by default; on any other address it refuses to start without a token (HOLDFAST_TOKEN, sent as Bearer).
 * Not here: the dashboard (holdfast/dashboard).
 */
import { createHash, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { HoldfastConfig } from "../../config.ts";
import { UsageError } from "../../errors.ts";
import { health, type Holdfast, latency, readiness } from "../../index.ts";
import { prometheus } from "../../prometheus/index.ts";
import type { Context } from "../command-context.ts";
import { json } from "../text.ts";

export interface Served {
  readonly address: string;
  close(): Promise<void>;
}

/** Null without a port. */
export async function serve(ctx: Context, hf: Holdfast, config: HoldfastConfig): Promise<Served | null> {
  const port = ctx.integer("port") ?? config.server?.port;
  if (port === undefined) return null;
  const host = ctx.string("host") ?? config.server?.host ?? "127.0.0.1";
  const token = ctx.io.env["HOLDFAST_TOKEN"] ?? "";
  if (!["127.0.0.1", "::1", "localhost"].includes(host) && token === "")
    throw new UsageError(
      "BAD_OPTION",
      `Serving on ${host} needs a token. Set HOLDFAST_TOKEN and send it as Authorization: Bearer, or serve on 127.0.0.1.`,
    );
  const metrics = prometheus(hf);
  const server = createServer((request, response) => {
    answer(hf, metrics, request, token, host).then(
      ({ status, type, body }) => reply(response, status, type, body),
      () => reply(response, 503, "application/json", json({ ok: false })),
    );
  });
  await listen(server, port, host);
  const { port: bound } = server.address() as AddressInfo;
  return {
    address: `http://${host.includes(":") ? `[${host}]` : host}:${bound}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function answer(
  hf: Holdfast,
  metrics: ReturnType<typeof prometheus>,
  request: IncomingMessage,
  token: string,
  host: string,
): Promise<{ status: number; type: string; body: string }> {
  const asJson = (status: number, value: unknown) => ({
    status,
    type: "application/json",
    body: json(value),
  });
  if (!isLocalName(request.headers.host, host)) return asJson(403, { error: "unknown host" });
  if (token !== "" && !isToken(request.headers.authorization, token))
    return asJson(401, { error: "token required" });
  if (request.method !== "GET" && request.method !== "HEAD") return asJson(405, { error: "GET only" });
  const url = new URL(request.url ?? "/", "http://localhost");
  switch (url.pathname) {
    case "/health": {
      const state = await health(hf);
      return asJson(state.ok ? 200 : 503, state);
    }
    case "/ready": {
      const state = await readiness(hf);
      return asJson(state.ok ? 200 : 503, state);
    }
    case "/latency": {
      const queues = url.searchParams.getAll("queue");
      return asJson(200, await latency(hf, queues.length === 0 ? {} : { queues }));
    }
    case "/metrics":
      return { status: 200, type: metrics.contentType, body: await metrics.text() };
    default:
      return asJson(404, { error: "known paths: /health, /ready, /latency, /metrics" });
  }
}

/** Against DNS rebinding: a loopback server answers only loopback names. */
function isLocalName(header: string | undefined, host: string): boolean {
  if (!["127.0.0.1", "::1", "localhost"].includes(host)) return true;
  const name = (header ?? "").replace(/:\d+$/, "").replace(/^\[|\]$/g, "");
  return ["127.0.0.1", "::1", "localhost"].includes(name);
}

function isToken(header: string | undefined, token: string): boolean {
  const digest = (text: string): Buffer => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(header ?? ""), digest(`Bearer ${token}`));
}

function reply(response: ServerResponse, status: number, type: string, body: string): void {
  response.writeHead(status, {
    "content-type": type,
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
  });
  response.end(body);
}

function listen(server: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) =>
      reject(
        new UsageError(
          "BAD_OPTION",
          `Cannot listen on port ${port} of ${host}: ${error.code ?? error.message}.`,
          { cause: error },
        ),
      ),
    );
    server.listen(port, host, () => resolve());
  });
}
