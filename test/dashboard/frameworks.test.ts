// The handler in real frameworks, each with its own body parsing in the way: reads, changes, and a live stream that ends
// when its reader goes.
import { createServer, request as httpRequest, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { serve as serveHono } from "@hono/node-server";
import express from "express";
import fastify from "fastify";
import { Hono } from "hono";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import { dashboard, toNodeHandler, type NodeRequest } from "../../src/dashboard/index.ts";
import { defineJob, type Holdfast, open, silentLogger } from "../../src/index.ts";
import { TOKEN } from "./support.ts";

const plain = defineJob({ name: "plain", run: async (_input: unknown) => {} });
const basePath = "/admin/jobs";
const clients: Holdfast[] = [];
afterAll(() => Promise.all(clients.map((hf) => hf.close())));

async function client(): Promise<Holdfast> {
  const hf = await open("sqlite::memory:", { logger: silentLogger });
  clients.push(hf);
  return hf;
}

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port;
}

async function listening(server: Server): Promise<string> {
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${portOf(server)}`;
}

/** How each framework mounts it; gives the address. */
const mounts: Record<string, (hf: Holdfast) => Promise<string>> = {
  "node:http": (hf) => listening(createServer(toNodeHandler(handlerOf(hf)))),
  express: (hf) => {
    const app = express();
    app.use(express.json());
    app.use(basePath, toNodeHandler(handlerOf(hf)));
    return listening(createServer(app));
  },
  fastify: async (hf) => {
    const app = fastify();
    const handle = toNodeHandler(handlerOf(hf));
    app.all(`${basePath}/*`, (request, reply) => {
      reply.hijack();
      handle(Object.assign(request.raw as NodeRequest, { body: request.body }), reply.raw);
    });
    onTestFinished(() => app.close());
    return app.listen({ port: 0, host: "127.0.0.1", listenTextResolver: (address) => address });
  },
  hono: async (hf) => {
    const app = new Hono();
    const handler = handlerOf(hf);
    app.all(`${basePath}/*`, (context) => handler(context.req.raw));
    const server = serveHono({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" }) as Server;
    await new Promise((resolve) => server.once("listening", resolve));
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    return `http://127.0.0.1:${portOf(server)}`;
  },
  // Next.js has a test of its own (next.test.ts).
  "a fetch handler (Bun, Deno)": async (hf) => {
    const handler = handlerOf(hf);
    const server = createServer(
      toNodeHandler(Object.assign((request: Request) => handler(request), { close: () => {} })),
    );
    return listening(server);
  },
};

function handlerOf(hf: Holdfast) {
  const handler = dashboard(hf, { auth: { token: TOKEN }, basePath });
  onTestFinished(() => handler.close());
  return handler;
}

describe.each(Object.keys(mounts))("mounted in %s", (name) => {
  test("it reads, changes, streams and serves its page", async () => {
    const hf = await client();
    const { id } = await hf.enqueue(plain, { a: 1 });
    const origin = await mounts[name]!(hf);
    const api = `${origin}${basePath}/api/v1`;
    const headers = { authorization: `Bearer ${TOKEN}` };

    expect((await fetch(`${api}/me`)).status).toBe(401);
    const listed = (await (await fetch(`${api}/jobs`, { headers })).json()) as { jobs: { id: string }[] };
    expect(listed.jobs.map((job) => job.id)).toEqual([id]);

    const post = (path: string, body?: unknown, more: Record<string, string> = {}) =>
      fetch(api + path, {
        method: "POST",
        headers: {
          ...headers,
          ...(body === undefined ? {} : { "content-type": "application/json" }),
          ...more,
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
    expect((await post("/jobs", { name: "plain", input: { b: "ü" } })).status).toBe(200);
    expect((await post(`/jobs/${id}/cancel`)).status).toBe(200);
    expect((await hf.jobs.get(id))?.state).toBe("cancelled");
    expect((await post("/queues/default/pause", undefined, { origin: "http://evil.example" })).status).toBe(
      403,
    );

    const page = await fetch(`${origin}${basePath}/`);
    expect(page.headers.get("content-security-policy")).toContain("default-src 'none'");
    expect(page.status === 200 || page.status === 503).toBe(true);

    const leave = new AbortController();
    const stream = await fetch(`${api}/stream`, { headers, signal: leave.signal });
    const reader = (stream.body as ReadableStream<Uint8Array>).getReader();
    let text = "";
    while (!text.includes("event: snapshot")) text += new TextDecoder().decode((await reader.read()).value);
    await hf.enqueue(plain, 3);
    while (!text.includes("event: change")) text += new TextDecoder().decode((await reader.read()).value);
    leave.abort();
  });
});

test("[K1] what no Request can be is refused with a typed error and the security headers too", async () => {
  const origin = await mounts["node:http"]!(await client());
  const asked = (method: string, path: string) =>
    new Promise<{ status: number | undefined; body: string; policy: unknown }>((resolve, reject) => {
      const { hostname, port } = new URL(origin);
      const sent = httpRequest({ hostname, port, method, path }, (response) => {
        let body = "";
        response.on("data", (text: Buffer) => (body += text.toString()));
        response.on("end", () =>
          resolve({
            status: response.statusCode,
            body,
            policy: response.headers["content-security-policy"],
          }),
        );
      });
      sent.on("error", reject).end();
    });
  for (const [method, path] of [
    ["TRACE", "/"],
    ["OPTIONS", "*"],
  ] as const) {
    const { status, body, policy } = await asked(method, path);
    expect(status, method).toBe(400);
    expect(JSON.parse(body)).toMatchObject({ error: { code: "BAD_REQUEST" } });
    expect(policy).toContain("default-src 'none'");
  }
});
