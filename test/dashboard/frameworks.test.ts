// The handler in real frameworks, each with its own body parsing in the way: reads, changes, and a live stream that ends
// when its reader goes.
import { createServer, request as httpRequest, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { serve as serveHono } from "@hono/node-server";
import express from "express";
import fastify from "fastify";
import { Hono } from "hono";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import { CONTENT_SECURITY_POLICY } from "../../src/dashboard/http.ts";
import {
  dashboard,
  type DashboardOptions,
  toNodeHandler,
  type NodeRequest,
} from "../../src/dashboard/index.ts";
import { defineJob, type Holdfast, open, silentLogger } from "../../src/index.ts";
import { waitFor } from "../support/wait.ts";
import { TOKEN } from "./support.ts";
import { operatorOf } from "../../src/operate/operator.ts";

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

type Options = Partial<DashboardOptions>;

/** How each framework mounts it; gives the address. */
const mounts: Record<string, (hf: Holdfast, options?: Options) => Promise<string>> = {
  "node:http": (hf, options) => listening(createServer(toNodeHandler(handlerOf(hf, options)))),
  express: (hf, options) => inExpress(hf, options, express.json({ limit: "5mb" })),
  "express with rawBody": (hf, options) =>
    inExpress(
      hf,
      options,
      express.json({
        limit: "5mb",
        verify: (request, _response, body) => void Object.assign(request, { rawBody: body }),
      }),
    ),
  fastify: async (hf, options) => {
    const app = fastify({ bodyLimit: 5_000_000 });
    const handle = toNodeHandler(handlerOf(hf, options));
    app.all(`${basePath}/*`, (request, reply) => {
      reply.hijack();
      handle(Object.assign(request.raw as NodeRequest, { body: request.body }), reply.raw);
    });
    onTestFinished(() => app.close());
    return app.listen({ port: 0, host: "127.0.0.1", listenTextResolver: (address) => address });
  },
  hono: async (hf, options) => {
    const app = new Hono();
    const handler = handlerOf(hf, options);
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
  "a fetch handler (Bun, Deno)": async (hf, options) => {
    const handler = handlerOf(hf, options);
    const server = createServer(
      toNodeHandler(Object.assign((request: Request) => handler(request), { close: () => {} })),
    );
    return listening(server);
  },
};

/** With what most apps have before it: headers of their own for every answer, and a body that is parsed. */
function inExpress(hf: Holdfast, options: Options | undefined, parser: express.Handler): Promise<string> {
  const app = express();
  app.use((_request, response, next) => {
    response.setHeader("Content-Security-Policy", "default-src 'self'; script-src 'self' 'unsafe-inline'");
    response.setHeader("X-Frame-Options", "SAMEORIGIN");
    next();
  });
  app.use(parser);
  app.use(basePath, toNodeHandler(handlerOf(hf, options)));
  return listening(createServer(app));
}

/** A framework that parses JSON before us has made numbers of all digits. */
const parsesFirst = ["express", "fastify"];

function handlerOf(hf: Holdfast, options: Options = {}) {
  const handler = dashboard(hf, { auth: { token: TOKEN }, basePath, ...options });
  onTestFinished(() => handler.close());
  return handler;
}

/** Those who listen for wake-ups: as long as somebody watches, and no longer. */
function listeners(hf: Holdfast): { count: number } {
  const state = { count: 0 };
  const { store } = operatorOf(hf);
  const real = store.listen.bind(store);
  store.listen = (onWake) => {
    const stop = real(onWake);
    state.count += 1;
    return () => {
      state.count -= 1;
      stop();
    };
  };
  return state;
}

/** A GET under any Host. */
function statusAs(host: string, address: string, headers: Record<string, string>): Promise<number> {
  const { hostname, port, pathname } = new URL(address);
  return new Promise((resolve, reject) => {
    httpRequest({ hostname, port, path: pathname, headers: { ...headers, host } }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    })
      .on("error", reject)
      .end();
  });
}

describe.each(Object.keys(mounts))("mounted in %s", (name) => {
  const headers = { authorization: `Bearer ${TOKEN}` };

  test("it reads, changes and serves its page, with its own headers", async () => {
    const hf = await client();
    const { id } = await hf.enqueue(plain, { a: 1 });
    const origin = await mounts[name]!(hf);
    const api = `${origin}${basePath}/api/v1`;

    expect((await fetch(`${api}/me`)).status).toBe(401);
    const answer = await fetch(`${api}/jobs`, { headers });
    const listed = (await answer.json()) as { jobs: { id: string }[] };
    expect(listed.jobs.map((job) => job.id)).toEqual([id]);

    const post = (path: string, body?: string, more: Record<string, string> = {}) =>
      fetch(api + path, {
        method: "POST",
        headers: {
          ...headers,
          ...(body === undefined ? {} : { "content-type": "application/json" }),
          ...more,
        },
        ...(body === undefined ? {} : { body }),
      });
    const made = await post("/jobs", '{"name":"plain","input":{"b":"ü","n":12345678901234567890.10}}');
    expect(made.status).toBe(200);
    const { id: exact } = (await made.json()) as { id: string };
    const { input } = (await (await fetch(`${api}/jobs/${exact}`, { headers })).json()) as { input: string };
    expect(JSON.parse(input)).toMatchObject({ b: "ü" });
    expect(input.includes("12345678901234567890.10")).toBe(!parsesFirst.includes(name));
    expect((await post(`/jobs/${id}/cancel`)).status).toBe(200);
    expect((await hf.jobs.get(id))?.state).toBe("cancelled");
    expect((await post("/queues/default/pause", undefined, { origin: "http://evil.example" })).status).toBe(
      403,
    );
    const large = await post("/jobs", JSON.stringify({ name: "plain", input: "x".repeat(2 ** 21) }));
    expect([large.status, await large.json()]).toMatchObject([413, { error: { code: "TOO_LARGE" } }]);
    expect(await hf.jobs.count()).toBe(2);
    // Nor is a body that nobody reads a reason to hang up.
    const nobody = await fetch(`${api}/jobs`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-holdfast": "1" },
      body: JSON.stringify({ name: "plain", input: "x".repeat(2 ** 21) }),
    });
    expect([nobody.status, await nobody.json()]).toMatchObject([401, { error: { code: "UNAUTHORIZED" } }]);

    // The page is built by `npm run build`.
    const page = await fetch(`${origin}${basePath}/`);
    const html = await page.text();
    expect([page.status, html.includes('id="app"')], html.slice(0, 300)).toEqual([200, true]);
    const script = /src="([^"]+\.js)"/.exec(html)?.[1] ?? "";
    const asset = await fetch(new URL(script, `${origin}${basePath}/`));
    expect([asset.status, asset.headers.get("content-type")]).toEqual([
      200,
      "text/javascript; charset=utf-8",
    ]);
    // Another policy beside it would be joined by a comma.
    for (const { headers: given } of [page, asset, answer, large]) {
      expect(given.get("content-security-policy")).toBe(CONTENT_SECURITY_POLICY);
      expect(given.get("x-frame-options")).toBe("DENY");
    }
  });

  test("a live stream comes through, and ends on the server when its reader goes", async () => {
    const hf = await client();
    const listening = listeners(hf);
    const api = `${await mounts[name]!(hf)}${basePath}/api/v1`;
    const leave = new AbortController();
    const stream = await fetch(`${api}/stream`, { headers, signal: leave.signal });
    const reader = (stream.body as ReadableStream<Uint8Array>).getReader();
    let text = "";
    while (!text.includes("event: snapshot")) text += new TextDecoder().decode((await reader.read()).value);
    await hf.enqueue(plain, 3);
    while (!text.includes("event: change")) text += new TextDecoder().decode((await reader.read()).value);
    expect(listening.count).toBe(1);
    leave.abort();
    await waitFor(() => listening.count === 0, { what: "the stream to end" });
  });

  test("only its own hosts are answered, and all cookies of one's own sign-in come through", async () => {
    const hf = await client();
    const away = (): Response => {
      const answer = new Response(null, { status: 302, headers: { location: "/sign-in" } });
      answer.headers.append("set-cookie", "state=1; HttpOnly");
      answer.headers.append("set-cookie", "back=%2Fadmin; Expires=Wed, 21 Oct 2026 07:28:00 GMT");
      return answer;
    };
    const origin = await mounts[name]!(hf, { hosts: ["jobs.example.org"] });
    for (const [path, status] of [
      ["/api/v1/me", 200],
      ["/api/v1/health", 200],
      ["/", 200],
    ] as const) {
      const address = `${origin}${basePath}${path}`;
      expect([path, await statusAs("jobs.example.org", address, headers)]).toEqual([path, status]);
      for (const host of ["evil.example", "jobs.example.org.evil.example", new URL(origin).host])
        expect([path, host, await statusAs(host, address, headers)]).toEqual([path, host, 403]);
    }
    const other = await mounts[name]!(hf, { auth: away });
    const sent = await fetch(`${other}${basePath}/`, { redirect: "manual" });
    expect(sent.status).toBe(302);
    expect(sent.headers.getSetCookie()).toEqual([
      "state=1; HttpOnly",
      "back=%2Fadmin; Expires=Wed, 21 Oct 2026 07:28:00 GMT",
    ]);
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
