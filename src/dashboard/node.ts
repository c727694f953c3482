/**
 * Node's request and response objects ↔ Request and Response: for node:http, Express, Fastify and whatever hands them on.
 *
 * Invariants: a client that goes away cancels the response's body (a live stream ends); a body that the framework has
 * already read is taken from it: as it came (`request.rawBody`), or else written anew from what was parsed
 * (`request.body`, as express.json() leaves it), where digits that no number has are lost already.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { DashboardHandler } from "./handler.ts";
import { ApiError, errorResponse } from "./http.ts";

/** What a framework may add to Node's request. */
export type NodeRequest = IncomingMessage & { originalUrl?: string; body?: unknown; rawBody?: unknown };
/** A handler as node:http and Express take it. */
export type NodeHandler = (
  request: NodeRequest,
  response: ServerResponse,
  next?: (error?: unknown) => void,
) => void;

/**
 * The handler for node:http and for frameworks built on it.
 *
 * @example
 * createServer(toNodeHandler(dashboard(hf, { auth }))).listen(8787, "127.0.0.1");
 */
export function toNodeHandler(handler: DashboardHandler): NodeHandler {
  return (incoming, outgoing, next) => {
    const failed = next ?? (() => outgoing.destroy());
    run(handler, incoming, outgoing).catch(failed);
  };
}

async function run(
  handler: DashboardHandler,
  incoming: NodeRequest,
  outgoing: ServerResponse,
): Promise<void> {
  const gone = new AbortController();
  outgoing.once("close", () => gone.abort());
  let request: Request;
  try {
    request = toRequest(incoming, gone.signal);
  } catch {
    // A method or an address that no Request can have (TRACE, *).
    const refused = errorResponse(new ApiError("BAD_REQUEST", "The server does not answer this request."));
    outgoing.writeHead(refused.status, headersOf(refused)).end(await refused.text());
    return;
  }
  const response = await handler(request, { address: incoming.socket.remoteAddress });
  // What was not read of it (no token, no such address) would keep the connection from its next request.
  if (request.body?.locked === false) request.body.cancel().catch(() => {});
  outgoing.writeHead(response.status, headersOf(response));
  if (response.body === null || incoming.method === "HEAD") {
    outgoing.end();
    return;
  }
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  outgoing.once("close", () => void reader.cancel().catch(() => {}));
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    // A viewer that reads slowly is waited for; the stream drops one that does not read at all.
    if (!outgoing.write(value) && !outgoing.destroyed) await drained(outgoing);
  }
  outgoing.end();
}

function drained(outgoing: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const go = (): void => {
      outgoing.off("drain", go).off("close", go);
      resolve();
    };
    outgoing.on("drain", go).on("close", go);
  });
}

/** Several cookies stay several: as one line they would be one that no browser understands. */
function headersOf({ headers }: Response): Record<string, string | string[]> {
  const cookies = headers.getSetCookie();
  return { ...Object.fromEntries(headers), ...(cookies.length === 0 ? {} : { "set-cookie": cookies }) };
}

function toRequest(incoming: NodeRequest, signal: AbortSignal): Request {
  const headers = new Headers();
  for (const [name, value] of Object.entries(incoming.headers)) {
    if (value === undefined || name.startsWith(":")) continue;
    for (const one of Array.isArray(value) ? value : [value]) headers.append(name, one);
  }
  const host = headers.get("host") ?? "localhost";
  const scheme = "encrypted" in incoming.socket ? "https" : "http";
  const path = incoming.originalUrl ?? incoming.url ?? "/";
  // Only the path counts: a full address in the request line must not choose the host.
  const url = new URL(path.startsWith("/") ? `${scheme}://${safeHost(host)}${path}` : path);
  const method = incoming.method ?? "GET";
  const bare = method === "GET" || method === "HEAD";
  return new Request(url, {
    method,
    headers,
    signal,
    ...(bare ? {} : { body: bodyOf(incoming), duplex: "half" }),
  });
}

/**
 * The body as it comes. Not `Readable.toWeb`: to cancel that is to end the connection, and with it the answer that says why
 * (413 came as a reset). What nobody wants is dropped instead.
 */
function streamOf(incoming: NodeRequest): ReadableStream<Uint8Array> {
  let over = false;
  return new ReadableStream<Uint8Array>(
    {
      start: (controller) => {
        const end = (finish: () => void) => (): void => {
          if (!over) finish();
          over = true;
        };
        incoming.on("data", (chunk: Buffer) => {
          if (over) return;
          controller.enqueue(new Uint8Array(chunk));
          if ((controller.desiredSize ?? 0) <= 0) incoming.pause();
        });
        incoming.once(
          "end",
          end(() => controller.close()),
        );
        const broken = end(() => controller.error(new Error("The request's body ended early.")));
        incoming.once("error", broken).once("close", broken);
        incoming.pause();
      },
      pull: () => void incoming.resume(),
      cancel: () => {
        over = true;
        incoming.resume();
      },
    },
    new ByteLengthQueuingStrategy({ highWaterMark: 65_536 }),
  );
}

function safeHost(host: string): string {
  return /^[A-Za-z0-9.:[\]_-]+$/.test(host) ? host : "localhost";
}

function bodyOf(incoming: NodeRequest): string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array> | null {
  const { rawBody, body } = incoming;
  if (typeof rawBody === "string") return rawBody;
  if (rawBody instanceof Uint8Array) return new Uint8Array(rawBody);
  if (body === undefined || body === null) {
    if (incoming.headers["content-length"] === "0") return null;
    if (
      incoming.headers["content-length"] === undefined &&
      incoming.headers["transfer-encoding"] === undefined
    )
      return null;
    return streamOf(incoming);
  }
  if (typeof body === "string") return body;
  if (body instanceof Uint8Array) return new Uint8Array(body);
  return JSON.stringify(body);
}
