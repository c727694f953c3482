// The handler in a real Next.js: an app of one catch-all route, built by `next build` and served by `next start`, with the
// package as npm would install it.
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, symlinkSync } from "node:fs";
import { request } from "node:http";
import { createServer } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { open, silentLogger } from "../../src/index.ts";
import { forget, killAtExit, removeDirectory, temporaryDirectory } from "../support/guard.ts";
import { waitFor } from "../support/wait.ts";
import { TOKEN } from "./support.ts";

const root = join(import.meta.dirname, "../..");
const directory = temporaryDirectory("next");
const app = join(directory, "app");
const next = join(app, "node_modules/next/dist/bin/next");
const file = join(directory, "jobs.db");
// Without the settings of the npm that runs the tests: they would become those of the npm that we run.
const env = {
  ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("npm_"))),
  NEXT_TELEMETRY_DISABLED: "1",
  NODE_ENV: "production" as const,
  HOLDFAST_URL: `sqlite:${file}`,
  DASHBOARD_TOKEN: TOKEN,
};

function run(what: string, command: string, args: readonly string[]): void {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd: app, env, encoding: "utf8" });
  if (status !== 0) throw new Error(`${what} failed with ${status}:\n${stdout}\n${stderr}`);
}

/** The app in a folder of its own, as `npm install next react react-dom holdfast` would leave it. */
function installApp(): void {
  if (!existsSync(join(root, "dist/dashboard/page"))) throw new Error("Run `npm run build` first.");
  cpSync(join(import.meta.dirname, "next-app"), app, { recursive: true });
  const holdfast = join(app, "node_modules/holdfast");
  mkdirSync(holdfast, { recursive: true });
  // The files of the package, no link to the sources.
  cpSync(join(root, "package.json"), join(holdfast, "package.json"));
  cpSync(join(root, "dist"), join(holdfast, "dist"), { recursive: true });
  for (const name of ["next", "react", "react-dom"])
    symlinkSync(join(root, "node_modules", name), join(app, "node_modules", name));
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === "object" && address !== null ? address.port : 0;
}

let server: ChildProcess | undefined;
let origin: string;
let said = "";

beforeAll(async () => {
  installApp();
  run("next build", process.execPath, [next, "build"]);
  const port = await freePort();
  origin = `http://127.0.0.1:${port}`;
  server = spawn(process.execPath, [next, "start", "-H", "127.0.0.1", "-p", String(port)], {
    cwd: app,
    env: { ...env, DASHBOARD_HOST: new URL(origin).host },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const { pid } = server;
  if (pid !== undefined) {
    killAtExit(pid, "KILL");
    server.once("exit", () => forget(pid));
  }
  for (const out of [server.stdout, server.stderr])
    out?.on("data", (text: Buffer) => (said += text.toString()));
  const until = Date.now() + 60_000;
  for (;;) {
    const answer = await fetch(`${origin}/admin/jobs/api/v1/me`).catch(() => null);
    if (answer !== null) break;
    if (Date.now() > until || server.exitCode !== null)
      throw new Error(`next start does not answer:\n${said}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}, 300_000);

afterAll(async () => {
  if (server !== undefined && server.exitCode === null && server.signalCode === null) {
    const gone = new Promise((resolve) => server?.once("exit", resolve));
    server.kill("SIGTERM");
    await gone;
  }
  removeDirectory(directory);
});

test("[K1] mounted in Next.js it reads, changes, streams and serves its page", async () => {
  const hf = await open(`sqlite:${file}`, { logger: silentLogger });
  try {
    const { id } = await hf.enqueue("plain", { a: 1 });
    const api = `${origin}/admin/jobs/api/v1`;
    const headers = { authorization: `Bearer ${TOKEN}` };
    const refused = await fetch(`${api}/me`);
    expect(refused.status).toBe(401);
    expect(await refused.json()).toMatchObject({ error: { code: "UNAUTHORIZED" } });
    const listed = (await (await fetch(`${api}/jobs`, { headers })).json()) as { jobs: { id: string }[] };
    expect(
      listed.jobs.map((job) => job.id),
      said,
    ).toEqual([id]);

    const post = (path: string, body?: object, more: Record<string, string> = {}) =>
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
    const foreign = { origin: "http://evil.example", "sec-fetch-site": "cross-site" };
    expect((await post("/queues/default/pause", undefined, foreign)).status).toBe(403);
    const large = await post("/jobs", { name: "plain", input: "x".repeat(2 ** 21) });
    expect([large.status, await large.json()]).toMatchObject([413, { error: { code: "TOO_LARGE" } }]);
    expect((await fetch(`${api}/queues/a%2Fb`, { headers })).status).toBe(404);

    for (const path of ["/admin/jobs", "/admin/jobs/queues/mail"]) {
      const page = await fetch(origin + path);
      const html = await page.text();
      expect(page.status).toBe(200);
      expect(page.headers.get("content-security-policy")).toContain("default-src 'none'");
      const script = /src="([^"]+\.js)"/.exec(html)?.[1] ?? "";
      expect(script).toContain("/admin/jobs/");
      const asset = await fetch(new URL(script, origin));
      expect([asset.status, asset.headers.get("content-type")]).toEqual([
        200,
        expect.stringContaining("javascript"),
      ]);
    }

    const leave = new AbortController();
    const stream = await fetch(`${api}/stream`, { headers, signal: leave.signal });
    const reader = (stream.body as ReadableStream<Uint8Array>).getReader();
    let text = "";
    while (!text.includes("event: snapshot")) text += new TextDecoder().decode((await reader.read()).value);
    await hf.enqueue("plain", 3);
    while (!text.includes("event: change")) text += new TextDecoder().decode((await reader.read()).value);
    const listening = async () => (await (await fetch(`${origin}/listening`)).json()) as number;
    expect(await listening()).toBe(1);
    leave.abort();
    await waitFor(async () => (await listening()) === 0, { what: "the stream to end on the server" });
  } finally {
    await hf.close();
  }
});

test("[K1] mounted in Next.js only its own host is answered, whatever else a page of another site resolves to", async () => {
  const headers = { authorization: `Bearer ${TOKEN}` };
  for (const path of ["/api/v1/me", "/api/v1/health", "/api/v1/stream", ""]) {
    const address = `${origin}/admin/jobs${path}`;
    expect([path, await asHost(new URL(origin).host, address, headers)]).toEqual([path, 200]);
    for (const host of ["evil.example", `${new URL(origin).host}.evil.example`])
      for (const more of [{}, { "x-forwarded-host": new URL(origin).host }])
        expect([path, host, await asHost(host, address, { ...headers, ...more })]).toEqual([path, host, 403]);
  }
});

/** The status of a GET under any Host. */
function asHost(host: string, address: string, headers: Record<string, string>): Promise<number> {
  const { hostname, port, pathname } = new URL(address);
  return new Promise((resolve, reject) => {
    const sent = request({ hostname, port, path: pathname, headers: { ...headers, host } }, (response) => {
      resolve(response.statusCode ?? 0);
      sent.destroy();
    });
    sent.on("error", reject).end();
  });
}
