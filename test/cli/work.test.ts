// `holdfast work` as a real process: the config, the banner, the switches, the server, signals, and reload.
import { existsSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { expect, test } from "vitest";
import { open, silentLogger } from "../../src/index.ts";
import { spawnNode, waitFor, type NodeProcess } from "../support/process.ts";
import { root } from "../support/repository.ts";
import { onEveryStore, type FreshStore } from "../support/stores.ts";
import { connect } from "../support/test-clients.ts";
import { cli, folder, on } from "./support.ts";
import { isCode } from "../../src/cli/start/watch.ts";

const index = JSON.stringify(join(root, "src/index.ts"));

/** A project whose config is TypeScript; `extra` goes into the config. */
function project(store: FreshStore, extra = "", greeting = "hello"): string {
  const path = folder("project");
  writeConfig(path, store, extra, greeting);
  return path;
}

function writeConfig(path: string, store: FreshStore, extra = "", greeting = "hello"): void {
  const options = JSON.stringify(store.options);
  writeFileSync(
    join(path, "holdfast.config.ts"),
    `import { defineConfig, defineJob, defineSchedule } from ${index};
const greet = defineJob({ name: "greet", run: async (input: { to: string }): Promise<string> => \`${greeting} \${input.to}\` });
const leaky = defineJob({ name: "leaky", retry: { attempts: 1 }, run: async () => { throw new Error(\`cannot reach \${process.env.HOLDFAST_URL}\`); } });
const slow = defineJob({ name: "slow", queue: "long", run: () => new Promise<string>((done) => setTimeout(() => done("slept"), 700)) });
export default defineConfig({ url: ${JSON.stringify(store.url)}, open: ${options}, jobs: [greet, slow, leaky], ${extra} });
`,
  );
}

function holdfast(cwd: string, args: readonly string[], env: Record<string, string> = {}): NodeProcess {
  return spawnNode("src/cli/main.ts", args, env, cwd);
}

onEveryStore((target) => {
  test("[K8] it tells backend, version, kinds, queues and schedules when it starts, and a manifest sink that fails does not hold it up", async () => {
    const store = await target.fresh();
    const cwd = project(
      store,
      `manifest: (told) => { console.log(JSON.stringify({ type: "sink", told })); throw new Error("the sink is down"); },
       schedules: [defineSchedule({ name: "yearly", cron: "0 0 1 1 *", job: greet, input: { to: "all" } })],
       work: { schedules: [defineSchedule({ name: "monthly", cron: "0 0 1 * *", job: greet, input: { to: "all" } })] },`,
    );
    await using worker = holdfast(cwd, ["work", "--json"]);
    const started = await worker.message("started", { deadlineMs: 30_000 });
    expect(started).toMatchObject({
      backend: store.dialect,
      version: expect.any(String) as string,
      jobs: [{ name: "greet" }, { name: "slow", queue: "long" }, { name: "leaky" }],
      schedules: ["yearly", "monthly"],
    });
    expect(Object.keys(started["queues"] as object).sort()).toEqual(["default", "long"]);
    expect((await worker.message("sink"))["told"]).toMatchObject({
      jobs: [{ name: "greet" }, { name: "slow" }, { name: "leaky" }],
      schedules: ["yearly", "monthly"],
    });
    const hf = await connect(store);
    const { id } = await hf.enqueue("greet", { to: "Ada" });
    expect(await hf.result(id, { timeout: "20s" })).toBe("hello Ada");
    await waitFor(() => worker.output.includes("the function `manifest` of the config failed"), {
      what: "a warning about the sink",
    });
    worker.kill("SIGTERM");
    expect((await worker.exited).code).toBe(0);
  });

  test("[K8] a manifest sink that hangs holds neither the start nor the end up", async () => {
    const store = await target.fresh();
    const sink = `manifest: () => { console.log(JSON.stringify({ type: "sink" })); return new Promise(() => {}); },`;
    await using worker = holdfast(project(store, sink), ["work", "--json"]);
    await worker.message("started", { deadlineMs: 30_000 });
    await worker.message("sink");
    const hf = await connect(store);
    expect(await hf.result((await hf.enqueue("greet", { to: "Ada" })).id, { timeout: "20s" })).toBe(
      "hello Ada",
    );
    worker.kill("SIGTERM");
    expect((await worker.exited).code).toBe(0);
  });

  test("[F11] a stop from the CLI lets the running job finish, and the process exits with 0", async () => {
    const store = await target.fresh();
    const cwd = project(store, `work: { heartbeat: "200ms", lease: "5s" },`);
    await using worker = holdfast(cwd, ["work", "--json"]);
    await worker.message("started", { deadlineMs: 30_000 });
    const hf = await connect(store);
    const { id } = await hf.enqueue("slow", null, { queue: "long" });
    await waitFor(async () => (await hf.jobs.get(id))?.state === "running", { what: "the job to run" });
    expect((await on(store)(["workers", "stop", "all", "--wait", "20s"])).code).toBe(0);
    expect((await worker.exited).code).toBe(0);
    expect((await hf.jobs.get(id))?.state).toBe("done");
  });

  test("[K6] jobs, schedules and server can each be turned off for a process", async () => {
    const store = await target.fresh();
    const cwd = project(store, `server: { port: 0 },`);
    await using idle = holdfast(cwd, ["work", "--json", "--no-jobs"]);
    const started = await idle.message("started", { deadlineMs: 30_000 });
    expect(started).toMatchObject({
      jobs: [],
      server: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/) as string,
    });
    const hf = await connect(store);
    expect(await hf.workers.list()).toEqual([]);
    const address = String(started["server"]);
    const get = async (path: string): Promise<{ status: number; text: string }> => {
      const response = await fetch(address + path);
      return { status: response.status, text: await response.text() };
    };
    expect(await get("/health")).toMatchObject({ status: 200 });
    expect(await get("/ready")).toMatchObject({ status: 200 });
    expect(JSON.parse((await get("/latency")).text)).toMatchObject({ lagMs: 0 });
    expect((await get("/metrics")).text).toContain("holdfast_up 1");
    expect((await get("/jobs")).status).toBe(404);
    idle.kill("SIGTERM");
    expect((await idle.exited).code).toBe(0);

    await using silent = holdfast(cwd, ["work", "--json", "--once"], { HOLDFAST_SERVER: "off" });
    expect(await silent.message("started", { deadlineMs: 30_000 })).toMatchObject({
      server: null,
      jobs: [{ name: "greet" }, { name: "slow" }, { name: "leaky" }],
    });
    expect((await silent.exited).code).toBe(0);

    await using refused = holdfast(cwd, ["work", "--host", "0.0.0.0"]);
    expect((await refused.exited).code).toBe(2);
    expect(refused.output).toContain("HOLDFAST_TOKEN");
  });

  test("[K6] a process whose schedules are off fires none, not even one that the database has; the next fires it", async () => {
    const store = await target.fresh();
    const hf = await connect(store);
    const cwd = project(
      store,
      `schedules: [defineSchedule({ name: "often", every: "1s", job: greet, input: { to: "all" } })],`,
    );
    const fired = async (): Promise<number> => (await hf.schedules.get("often"))?.counts.fired ?? -1;
    await hf.schedules.put({ name: "often", every: "1s", job: "greet", input: { to: "all" } });
    await using off = holdfast(cwd, ["work", "--json"], { HOLDFAST_SCHEDULES: "off" });
    expect(await off.message("started", { deadlineMs: 30_000 })).toMatchObject({ schedules: [] });
    const due = (await hf.schedules.get("often"))?.nextAt?.getTime() ?? 0;
    await waitFor(async () => (await hf.databaseNow()) > due + 1_500, { what: "two slots to pass" });
    // It works, and has looked at what there is to do since.
    const { id } = await hf.enqueue("greet", { to: "Ada" });
    expect(await hf.result(id, { timeout: "20s" })).toBe("hello Ada");
    expect(await fired()).toBe(0);
    off.kill("SIGTERM");
    expect((await off.exited).code).toBe(0);
    await using onAgain = holdfast(cwd, ["work", "--json"]);
    expect(await onAgain.message("started", { deadlineMs: 30_000 })).toMatchObject({ schedules: ["often"] });
    await waitFor(async () => (await fired()) > 0, { what: "the schedule to fire" });
    onAgain.kill("SIGTERM");
    await onAgain.exited;
  });

  test("[K1] the worker's server wants its token, answers to no foreign name, and takes GET alone", async () => {
    const store = await target.fresh();
    const cwd = project(store);
    await on(store)(["migrate"]);
    const end = new AbortController();
    let out = "";
    const running = cli(["work", "--json", "--no-jobs", "--port", "0"], {
      cwd,
      env: { HOLDFAST_TOKEN: "right" },
      signal: end.signal,
      onOut: (text) => void (out = text),
    });
    await waitFor(() => out.includes("started"), { what: "the server" });
    const { server } = JSON.parse(out) as { server: string };
    const ask = (headers: Record<string, string>, method = "GET", path = "/health"): Promise<number> =>
      new Promise((resolve, reject) => {
        const sent = request(new URL(path, server), { method, headers }, (answer) => {
          answer.resume();
          resolve(answer.statusCode ?? 0);
        });
        sent.on("error", reject);
        sent.end();
      });
    const right = { authorization: "Bearer right" };
    for (const path of ["/health", "/ready", "/latency", "/metrics"]) {
      expect([path, await ask({}, "GET", path)]).toEqual([path, 401]);
      expect([path, await ask({ authorization: "Bearer wrong" }, "GET", path)]).toEqual([path, 401]);
      expect([path, await ask({ authorization: "right" }, "GET", path)]).toEqual([path, 401]);
      expect([path, await ask(right, "GET", path)]).toEqual([path, 200]);
      expect([path, await ask(right, "HEAD", path)]).toEqual([path, 200]);
      for (const method of ["POST", "PUT", "DELETE"])
        expect([path, await ask(right, method, path)]).toEqual([path, 405]);
      for (const host of ["evil.example", "evil.example:80", "127.0.0.1.evil.example"])
        expect([host, await ask({ ...right, host }, "GET", path)]).toEqual([host, 403]);
    }
    expect(await ask({ ...right, host: "localhost:1234" })).toBe(200);
    expect(await ask(right, "GET", "/nowhere")).toBe(404);
    end.abort();
    expect((await running).code).toBe(0);
  });

  test("--watch starts the worker again with the new code, without losing a job", async () => {
    const store = await target.fresh();
    const cwd = project(store);
    await using watching = holdfast(cwd, ["work", "--watch", "--json"]);
    const first = await watching.message("started", { deadlineMs: 30_000 });
    const hf = await connect(store);
    expect(await hf.result((await hf.enqueue("greet", { to: "Ada" })).id, { timeout: "20s" })).toBe(
      "hello Ada",
    );
    writeConfig(cwd, store, "", "goodbye");
    await watching.message("started", {
      where: (message) => message["pid"] !== first["pid"],
      deadlineMs: 30_000,
    });
    expect(await hf.result((await hf.enqueue("greet", { to: "Ada" })).id, { timeout: "20s" })).toBe(
      "goodbye Ada",
    );
    watching.kill("SIGTERM");
    expect((await watching.exited).code).toBe(0);
    expect((await hf.workers.list()).length).toBe(0);
  });

  test("[K4] work without a config, and with an empty one, is refused with 2", async () => {
    const store = await target.fresh();
    const empty = folder("empty");
    await using none = holdfast(empty, ["work"]);
    expect((await none.exited).code).toBe(2);
    expect(none.output).toContain("holdfast init");
    writeFileSync(
      join(empty, "holdfast.config.mjs"),
      `export default { url: ${JSON.stringify(store.url)}, open: ${JSON.stringify(store.options)} };`,
    );
    await using nothing = holdfast(empty, ["work"]);
    expect((await nothing.exited).code).toBe(2);
  });

  test("[K5] neither banner nor logs show a password", async () => {
    if (target.dialect === "sqlite") return; // a file has none
    const store = await target.fresh();
    const cwd = project(store);
    const url = new URL(store.url);
    url.password = "hunter2-secret";
    const hf = await connect(store);
    await hf.enqueue("leaky", null);
    for (const format of [[], ["--json"]]) {
      await using worker = holdfast(cwd, ["work", "--once", "--log-level", "debug", ...format], {
        HOLDFAST_URL: url.href,
      });
      await worker.exited;
      // The error of the job has the whole address in it.
      expect(worker.output).toContain(`cannot reach postgres`);
      expect(worker.output).not.toContain("hunter2-secret");
      await hf.jobs.retry({ name: "leaky" });
    }
    url.port = "1";
    await using nobody = holdfast(cwd, ["work", "--log-level", "debug"], { HOLDFAST_URL: url.href });
    expect((await nobody.exited).code).toBe(1);
    expect(nobody.output).toMatch(/ECONNREFUSED|cannot be reached|does not answer/);
    expect(nobody.output).not.toContain("hunter2-secret");
  });
});

test("[O18] a failed attempt: work shows its stack whole, one frame to a line, and harmless", async () => {
  const cwd = folder("stack");
  writeFileSync(
    join(cwd, "holdfast.config.ts"),
    `import { defineConfig, defineJob } from ${index};
const chargeTheCardOfTheCustomer = (): never => { throw new Error("declined\\u001b[2J\\nby the bank, " + "x".repeat(300)); };
export default defineConfig({ url: "sqlite:jobs.db", jobs: [defineJob({ name: "pay", retry: { attempts: 1 }, run: async () => chargeTheCardOfTheCustomer() })] });
`,
  );
  const hf = await open(`sqlite:${join(cwd, "jobs.db")}`, { logger: silentLogger });
  await hf.enqueue("pay", null);
  await hf.close();
  await using worker = holdfast(cwd, ["work", "--once"]);
  await worker.exited;
  const lines = worker.output.split("\n");
  const at = lines.findIndex((line) => line.includes("job is dead"));
  expect(lines[at], worker.output).not.toContain("stack=");
  expect(lines[at + 1]).toMatch(/^ {4}Error: declined$/);
  expect(lines[at + 2]).toMatch(/^ {4}by the bank, x{300}$/);
  expect(lines[at + 3]).toMatch(/^ {8}at chargeTheCardOfTheCustomer \(.*holdfast\.config\.ts:2:\d+\)$/);
  expect(lines[at + 4]).toMatch(/^ {8}at /);
  expect(worker.output).not.toContain("\u001b[2J");
});

test("[K5] without config, flag and environment it is ./holdfast.db", async () => {
  const cwd = folder("bare");
  const plain = { HOLDFAST_URL: "", DATABASE_URL: "" };
  await using made = spawnNode("src/cli/main.ts", ["migrate", "--json"], plain, cwd);
  expect((await made.exited).code, made.output).toBe(0);
  expect(existsSync(join(cwd, "holdfast.db"))).toBe(true);
  await using status = spawnNode("src/cli/main.ts", ["status", "--json"], plain, cwd);
  await status.exited;
  expect(status.output).toContain(`"place":"sqlite:./holdfast.db","from":"the default"`);
});

test("the demo kills a worker and loses nothing", async () => {
  await using demo = spawnNode("src/cli/main.ts", ["demo", "--jobs", "60", "--json"]);
  const { code } = await demo.exited;
  expect(code, demo.output).toBe(0);
  expect(demo.output).toMatch(/"lost":0,"ok":true/);
});

test("a worker of a database that has moved ends with 1 and says where the jobs are", async () => {
  const path = folder("moved-worker");
  const url = `sqlite:${join(path, "jobs.db")}`;
  const hf = await open(url, { logger: silentLogger });
  await hf.close();
  const store = { url, options: {} } as FreshStore;
  expect((await on(store)(["move", `sqlite:${join(path, "new.db")}`, "--force"])).code).toBe(0);
  writeConfig(path, { ...store, dialect: "sqlite" });
  await using worker = holdfast(path, ["work"]);
  expect((await worker.exited).code).toBe(1);
  expect(worker.output).toContain("new.db");
});

test("--watch starts anew for code, and not for what a worker or its jobs write", () => {
  for (const file of [
    "holdfast.config.ts",
    "jobs/mail.mts",
    "jobs\\mail.js",
    "data/prices.json",
    ".env",
    "src/.env.local",
  ])
    expect([file, isCode(file)]).toEqual([file, true]);
  for (const file of [
    "jobs.db",
    "jobs.db-journal",
    "jobs.db-wal",
    "jobs.db-shm",
    "shop.sqlite3-journal",
    "out/report.csv",
    "worker.log",
    "node_modules/pg/index.js",
    ".git/index.json",
    "jobs/node_modules/x/y.ts",
    "jobs/.mail.ts.swp",
    "jobs/mail.ts~",
    ".cache/a.json",
  ])
    expect([file, isCode(file)]).toEqual([file, false]);
});
