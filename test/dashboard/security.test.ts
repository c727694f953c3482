// Attacks on the dashboard: each protection that docs/guides/dashboard.md lists is tried. Others: permissions, redaction, injection (each .test.ts).
import { once } from "node:events";
import { request as httpRequest } from "node:http";
import { connect as tcp } from "node:net";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import { defineJob, type Holdfast, open, silentLogger } from "../../src/index.ts";
import type { JobDetail } from "../../src/dashboard/api/contract.ts";
import { dashboard } from "../../src/dashboard/handler.ts";
import { routes } from "../../src/dashboard/routes/table.ts";
import { serve } from "../../src/dashboard/serve.ts";
import { FakeClock } from "../../src/testing/index.ts";
import { over, TOKEN } from "./support.ts";

const plain = defineJob({ name: "plain", run: async (_input: unknown) => {} });
const opened: Holdfast[] = [];
afterAll(() => Promise.all(opened.map((hf) => hf.close())));

async function memory(options = {}): Promise<Holdfast> {
  const hf = await open("sqlite::memory:", { logger: silentLogger, ...options });
  opened.push(hf);
  return hf;
}

/** Every route with its path filled in. */
const filled = routes.map((route) => ({
  ...route,
  address: route.path.replaceAll(/:(\w+)/g, (_whole, name: string) =>
    name === "id" ? "0199c1d8-7c00-7000-8000-000000000000" : "x",
  ),
}));
const writes = filled.filter(({ write }) => write === true);

describe("who is asking", () => {
  test("without auth there is no dashboard", async () => {
    const hf = await memory();
    expect(() => dashboard(hf, {} as never)).toThrow(/needs `auth`/);
    expect(() => dashboard(hf, undefined as never)).toThrow(/needs `auth`/);
    expect(() => dashboard(hf, { auth: { token: "short" } })).toThrow(/at least 16/);
    expect(() => dashboard(hf, { auth: null as never })).toThrow(/auth/);
    expect(() => dashboard(hf, { auth: { token: TOKEN }, raedOnly: true } as never)).toThrow(/raedOnly/);
  });

  test("no route answers without a token, or with a wrong, cut, longer or otherwise wrong one", async () => {
    const hf = await memory();
    const { handler } = over(hf);
    const open = filled.filter(({ probe }) => probe === true).map(({ path }) => path);
    expect(open).toEqual(["/health", "/ready"]);
    for (const { method, address, probe } of filled) {
      if (probe === true) continue;
      const response = await handler(
        new Request(`http://localhost/api/v1${address}`, {
          method,
          headers: { "sec-fetch-site": "same-origin" },
        }),
      );
      expect(response.status, `${method} ${address}`).toBe(401);
      expect(await response.json()).toMatchObject({ error: { code: "UNAUTHORIZED" } });
    }
    for (const authorization of [
      `Bearer ${TOKEN}x`,
      `Bearer ${TOKEN.slice(1)}`,
      `Bearer`,
      `Basic ${TOKEN}`,
      TOKEN,
      "Bearer  ",
    ]) {
      const { handler: other } = over(hf);
      const response = await other(new Request("http://localhost/api/v1/me", { headers: { authorization } }));
      expect(response.status, authorization).toBe(401);
    }
    // Nor in the address, where logs and histories would keep it.
    expect((await handler(new Request(`http://localhost/api/v1/me?token=${TOKEN}`))).status).toBe(401);
  });

  test("guessing ends with 429 for that address until the minute is over, and never shuts out the right token", async () => {
    const clock = new FakeClock();
    const hf = await memory({ clock });
    const { handler } = over(hf);
    const ask = async (token: string, address: string) =>
      (
        await handler(
          new Request("http://localhost/api/v1/me", { headers: { authorization: `Bearer ${token}` } }),
          { address },
        )
      ).status;
    const answers: number[] = [];
    for (let n = 0; n < 12; n += 1) answers.push(await ask(`wrong-${n}`, "10.0.0.1"));
    expect(answers.slice(0, 9)).toEqual(Array(9).fill(401));
    expect(answers.slice(9)).toEqual(Array(3).fill(429));
    expect(await ask(TOKEN, "10.0.0.1")).toBe(200);
    expect(await ask("wrong-again", "10.0.0.1")).toBe(429);
    expect(await ask("wrong-elsewhere", "10.0.0.2")).toBe(401);
    expect(await ask(TOKEN, "10.0.0.2")).toBe(200);
    await clock.advance("61s");
    expect(await ask("wrong-later", "10.0.0.1")).toBe(401);
  });

  test("where the address is not known, guessing shuts nobody out who has the right token", async () => {
    const { handler } = over(await memory());
    const ask = async (token: string) =>
      (
        await handler(
          new Request("http://localhost/api/v1/me", { headers: { authorization: `Bearer ${token}` } }),
        )
      ).status;
    for (let n = 0; n < 12; n += 1) await ask(`wrong-${n}`);
    expect(await ask("wrong-once-more")).toBe(429);
    expect(await ask(TOKEN)).toBe(200);
  });

  test("a function of one's own decides: user, nobody, or a redirect; the page is behind it too", async () => {
    const hf = await memory();
    const { handler } = over(hf, {
      auth: (request) =>
        request.headers.get("cookie") === "user=ann"
          ? { name: "ann", role: "viewer" }
          : request.headers.has("x-redirect")
            ? new Response(null, { status: 302, headers: { location: "/sign-in" } })
            : null,
    });
    const ask = (path: string, headers: Record<string, string> = {}) =>
      handler(new Request(`http://localhost${path}`, { headers }));
    for (const path of ["/", "/jobs", "/api/v1/me", "/api/v1/jobs"]) {
      expect((await ask(path)).status, path).toBe(401);
      const redirected = await ask(path, { "x-redirect": "1" });
      expect([redirected.status, redirected.headers.get("location")]).toEqual([302, "/sign-in"]);
      expect(redirected.headers.get("content-security-policy")).toContain("default-src 'none'");
    }
    expect(await (await ask("/api/v1/me", { cookie: "user=ann" })).json()).toMatchObject({ user: "ann" });
  });

  test("an auth function that throws is 500 without its words", async () => {
    const hf = await memory();
    const { get } = over(hf, { auth: () => Promise.reject(new Error("secret database password hunter2")) });
    const answer = await get("/me");
    expect(answer.status).toBe(500);
    expect(JSON.stringify(answer.body)).not.toContain("hunter2");
    expect(answer.body).toMatchObject({
      error: { code: "INTERNAL", requestId: expect.any(String) as string },
    });
  });
});

describe("for whom a browser asks", () => {
  const cookie = () => ({ name: "ann" });

  test("CSRF: no change for another site, another origin, a form or a missing header", async () => {
    const hf = await memory();
    const { id } = await hf.enqueue(plain, 1);
    const { handler } = over(hf, { auth: cookie });
    const ask = async (headers: Record<string, string>, body?: string) =>
      (
        await handler(
          new Request(`http://localhost/api/v1/jobs/${id}`, {
            method: "DELETE",
            headers,
            ...(body === undefined ? {} : { body }),
          }),
        )
      ).status;
    for (const headers of [
      { "sec-fetch-site": "cross-site" },
      { "sec-fetch-site": "same-site" },
      { "sec-fetch-site": "none" },
      { "sec-fetch-site": "cross-site", origin: "http://localhost" },
      { origin: "http://evil.example" },
      { origin: "null" },
      { origin: "http://localhost.evil.example" },
      { origin: "http://localhost:1234" },
      { origin: "javascript:alert(1)" },
      {},
    ] as Record<string, string>[])
      expect(await ask(headers), JSON.stringify(headers)).toBe(403);
    for (const type of [
      "text/plain",
      "application/x-www-form-urlencoded",
      "multipart/form-data",
      "application/jsonx",
    ])
      expect(await ask({ "sec-fetch-site": "same-origin", "content-type": type }, "{}"), type).toBe(415);
    expect(await hf.jobs.get(id)).not.toBeNull();
    expect(await ask({ "sec-fetch-site": "same-origin" })).toBe(200);
  });

  test("every route that changes something refuses another site", async () => {
    const hf = await memory();
    const { handler } = over(hf, { auth: cookie });
    for (const { method, address } of writes) {
      const response = await handler(
        new Request(`http://localhost/api/v1${address}`, {
          method,
          headers: { "sec-fetch-site": "cross-site" },
        }),
      );
      expect([response.status, address]).toEqual([403, address]);
      expect(await response.json()).toMatchObject({ error: { code: "CROSS_SITE" } });
    }
  });

  test("reading is refused to other sites as well, and nothing is shared by CORS", async () => {
    const hf = await memory();
    const { handler } = over(hf, { auth: cookie });
    const ask = (headers: Record<string, string>, method = "GET") =>
      handler(new Request("http://localhost/api/v1/jobs", { method, headers }));
    expect((await ask({ "sec-fetch-site": "cross-site", origin: "http://evil.example" })).status).toBe(403);
    for (const response of [
      await ask({ origin: "http://localhost" }),
      await ask({ origin: "http://evil.example" }, "OPTIONS"),
    ])
      expect([...response.headers.keys()].filter((name) => name.startsWith("access-control"))).toEqual([]);
    expect((await ask({ "sec-fetch-site": "same-origin" })).status).toBe(200);
  });

  test("DNS rebinding: a foreign Host gets nothing, neither data nor page", async () => {
    const hf = await memory();
    const { handler } = over(hf, { hosts: ["127.0.0.1:8787", "localhost:8787"] });
    const headers = { authorization: `Bearer ${TOKEN}` };
    for (const host of [
      "evil.example",
      "evil.example:8787",
      "127.0.0.1",
      "localhost:80",
      "127.0.0.1:8787.evil.example",
    ]) {
      for (const path of ["/", "/api/v1/me", "/api/v1/stream"]) {
        const response = await handler(
          new Request(`http://127.0.0.1:8787${path}`, { headers: { ...headers, host } }),
        );
        expect([response.status, host]).toEqual([403, host]);
      }
    }
    expect(
      (
        await handler(
          new Request("http://localhost:8787/api/v1/me", { headers: { ...headers, host: "LOCALHOST:8787" } }),
        )
      ).status,
    ).toBe(200);
  });
});

describe("the server of its own", () => {
  test("[K1] is on loopback with a token behind #, and refuses any other address without auth", async () => {
    const hf = await memory();
    const server = await serve(hf, { port: 0 });
    onTestFinished(() => server.close());
    expect(server.address).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/#token=[\w-]{43}$/);
    expect((await fetch(`${server.url}api/v1/me`)).status).toBe(401);
    const me = await fetch(`${server.url}api/v1/me`, {
      headers: { authorization: `Bearer ${server.token}` },
    });
    expect(me.status).toBe(200);
    for (const host of ["0.0.0.0", "::", "192.168.0.1", "example.org", "127.evil.example"]) {
      await expect(serve(hf, { host, port: 0 })).rejects.toMatchObject({ code: "BAD_OPTION" });
      await expect(serve(hf, { host, port: 0, auth: "none" })).rejects.toMatchObject({ code: "BAD_OPTION" });
    }
    const open = await serve(hf, { port: 0, auth: "none" });
    onTestFinished(() => open.close());
    expect(open.address).toBe(open.url);
    expect((await fetch(`${open.url}api/v1/me`)).status).toBe(200);
  });

  test("answers only its own names, also without auth", async () => {
    const hf = await memory();
    const server = await serve(hf, { port: 0, auth: "none" });
    onTestFinished(() => server.close());
    const ask = async (host: string): Promise<number> => {
      const request = httpRequest({ port: server.port, path: "/api/v1/me", headers: { host } }).end();
      const [response] = (await once(request, "response")) as [{ statusCode: number; resume(): void }];
      response.resume();
      return response.statusCode;
    };
    expect(await ask(`evil.example:${server.port}`)).toBe(403);
    expect(await ask(`localhost:${server.port}`)).toBe(200);
  });

  test("survives nonsense on the wire", async () => {
    const hf = await memory();
    const server = await serve(hf, { port: 0 });
    onTestFinished(() => server.close());
    for (const [line, status] of [
      ["GET http://evil.example/api/v1/me HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403],
      [`GET http://evil.example/api/v1/me HTTP/1.1\r\nHost: 127.0.0.1:${server.port}\r\n\r\n`, 401],
      ["GET //evil.example/ HTTP/1.1\r\nHost: x y\r\n\r\n", 403],
      [`GET //evil.example/ HTTP/1.1\r\nHost: 127.0.0.1:${server.port}\r\n\r\n`, 404],
      ["GET * HTTP/1.1\r\nHost: a\r\n\r\n", 400],
      ["GET / HTTP/1.1\r\n\r\n", 400],
      ["GET / HTTP/1.0\r\n\r\n", 403],
      ["TRACE / HTTP/1.1\r\nHost: a\r\n\r\n", 400],
      ["\0\0\0\r\n\r\n", 400],
    ] as const) {
      const socket = tcp(server.port, "127.0.0.1");
      socket.on("error", () => {});
      socket.end(line);
      const chunks: Buffer[] = [];
      for await (const chunk of socket) chunks.push(chunk as Buffer);
      const answer = Buffer.concat(chunks).toString();
      expect(answer.slice(0, 12), JSON.stringify(line)).toBe(`HTTP/1.1 ${status}`);
      expect(answer, JSON.stringify(line)).not.toContain("dashboard/");
    }
    expect((await fetch(`${server.url}api/v1/me`)).status).toBe(401);
  });
});

describe("what is asked", () => {
  test.each([
    "/../../etc/passwd",
    "/..%2f..%2fetc%2fpasswd",
    "/%2e%2e/%2e%2e/etc/passwd",
    "/assets/..%2f..%2fpackage.json",
    "/assets/../../package.json",
    "/assets/%00",
    "/assets/",
    "/index.html%00.js",
    "/....//....//etc/passwd",
    "/\\..\\..\\etc\\passwd",
    "/%5c..%5c..%5cetc%5cpasswd",
    "/package.json",
    "/api/v2/me",
    "/api/v1/../../package.json",
    "/jobs/../../../x",
  ])("path traversal: %s is 404", async (path) => {
    const hf = await memory();
    const { handler } = over(hf);
    const response = await handler(
      new Request(`http://localhost${path}`, { headers: { authorization: `Bearer ${TOKEN}` } }),
    );
    expect(response.status).toBe(404);
    // A browser gets the page that says so, and no file either.
    const seen = await handler(
      new Request(`http://localhost${path}`, {
        headers: { authorization: `Bearer ${TOKEN}`, accept: "text/html,*/*;q=0.8" },
      }),
    );
    expect(seen.status).toBe(404);
    expect(await seen.text()).not.toMatch(/root:|"dependencies"/);
  });

  test("[K1] a browser that opens an address of no screen gets the page with 404; tools, the API and files stay JSON", async () => {
    const hf = await memory();
    const { handler } = over(hf);
    const ask = async (path: string, accept: string): Promise<[number, string | undefined]> => {
      const { status, headers } = await handler(
        new Request(`http://localhost${path}`, {
          headers: { authorization: `Bearer ${TOKEN}`, accept, "if-none-match": "*" },
        }),
      );
      return [status, headers.get("content-type")?.split(";")[0]];
    };
    const browser = "text/html,application/xhtml+xml,*/*;q=0.8";
    for (const path of ["/jobs/nonsense", "/errors/zzz", "/workers/none", "/nonexistent", "/jobs/%E0%A4%A"]) {
      expect([path, ...(await ask(path, browser))]).toEqual([path, 404, "text/html"]);
      expect([path, ...(await ask(path, "*/*"))]).toEqual([path, 404, "application/json"]);
    }
    for (const path of ["/api/v1/nothing", "/api/v2/me", "/assets/none.js"])
      expect([path, ...(await ask(path, browser))]).toEqual([path, 404, "application/json"]);
    // As the page's own links write it.
    expect(await ask("/queues/tenant%3A7", browser)).toEqual([200, "text/html"]);
    const signedIn = over(hf, { auth: () => null });
    const refused = await signedIn.handler(
      new Request("http://localhost/nonexistent", { headers: { accept: browser } }),
    );
    expect(refused.status).toBe(401);
  });

  test("a broken encoding is 400, and a base path keeps everything below itself", async () => {
    const hf = await memory();
    const { handler, get } = over(hf, { basePath: "/admin/jobs" });
    expect((await get("/jobs/%E0%A4%A")).status).toBe(400);
    for (const path of ["/", "/api/v1/me", "/admin/jobsx", "/admin"])
      expect(
        (
          await handler(
            new Request(`http://localhost${path}`, { headers: { authorization: `Bearer ${TOKEN}` } }),
          )
        ).status,
        path,
      ).toBe(404);
    for (const basePath of ["admin", "/a b", "/a/../b", '/"><script>', "//x"])
      expect(() => dashboard(hf, { auth: { token: TOKEN }, basePath }), basePath).toThrow(/basePath/);
  });

  test("a body over the limit is 413, whatever its length claims; no JSON is 400; another type 415", async () => {
    const hf = await memory();
    const { send, handler } = over(hf);
    const big = { name: "plain", input: "x".repeat(1_100_000) };
    expect((await send("POST", "/jobs", big)).status).toBe(413);
    const endless = new ReadableStream({
      pull: (controller) => controller.enqueue(new Uint8Array(65_536).fill(32)),
    });
    const streamed = await handler(
      new Request("http://localhost/api/v1/jobs", {
        method: "POST",
        body: endless,
        duplex: "half",
        headers: { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" },
      }),
    );
    expect(streamed.status).toBe(413);
    for (const body of ["{", "[]", "1", "null", '"x"', "\u00ff{"])
      expect((await send("POST", "/jobs", body)).status, body).toBe(400);
    const deep = `{"name":"plain","input":${"[".repeat(200_000)}${"]".repeat(200_000)}}`;
    expect((await send("POST", "/jobs", deep)).status).toBe(400);
    expect((await send("POST", "/jobs", "{}", { "content-type": "text/plain" })).status).toBe(415);
    expect(await hf.jobs.count()).toBe(0);
  });

  test("keys like __proto__ pollute nothing", async () => {
    const hf = await memory();
    const { send, get } = over(hf);
    const evil =
      '{"name":"plain","input":{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}}';
    const made = await send<{ id: string }>("POST", "/jobs", evil);
    expect(made.status).toBe(200);
    expect((await get<JobDetail>(`/jobs/${made.body.id}`)).body.input).toContain('"__proto__"');
    for (const body of [
      '{"__proto__":{"action":"delete"}}',
      '{"action":"delete","filter":{"__proto__":{"state":["dead"]}}}',
    ])
      expect((await send("POST", "/jobs/bulk", body)).status).toBe(400);
    expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
  });
});

test("every response has the content security policy and its kin, whatever it is", async () => {
  const hf = await memory();
  const { handler } = over(hf);
  const authorization = `Bearer ${TOKEN}`;
  const responses = [
    await handler(new Request("http://localhost/")),
    await handler(new Request("http://localhost/nowhere")),
    await handler(new Request("http://localhost/api/v1/me")),
    await handler(new Request("http://localhost/api/v1/me", { headers: { authorization } })),
    await handler(new Request("http://localhost/api/v1/jobs?x=1", { headers: { authorization } })),
    await handler(new Request("http://localhost/api/v1/stream", { headers: { authorization } })),
    await handler(new Request("http://localhost/api/v1/openapi.json", { headers: { authorization } })),
    await handler(new Request("http://localhost/", { method: "POST" })),
    await handler(new Request("http://localhost/", { method: "HEAD" })),
  ];
  for (const { headers, url, status } of responses) {
    const policy = headers.get("content-security-policy") ?? "";
    expect(policy, `${status} ${url}`).toContain("default-src 'none'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toMatch(/unsafe|\*/);
    expect(headers.get("x-content-type-options")).toBe("nosniff");
    expect(headers.get("referrer-policy")).toBe("no-referrer");
    expect(headers.get("cache-control")).toBe("no-store");
  }
  await responses[5]!.body?.cancel();
});
