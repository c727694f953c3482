// Real processes: signals, exits, and a job that kills whoever runs it.
import { afterEach, expect, test } from "vitest";
import { systemClock } from "../../src/clock.ts";
import { type NodeProcess, spawnNode } from "../support/process.ts";
import { type FreshStore, onEveryStore } from "../support/stores.ts";
import { type Bench, benchOn, until } from "./bench.ts";

const open: { close(): Promise<void> }[] = [];
const children: NodeProcess[] = [];
afterEach(async () => {
  await Promise.all(children.splice(0).map((child) => child[Symbol.asyncDispose]()));
  await Promise.all(open.splice(0).map((b) => b.close()));
});

const short = { queues: { default: 4 }, lease: "1s", heartbeat: "250ms" };

onEveryStore((target) => {
  const start = async (): Promise<{
    fresh: FreshStore;
    b: Bench<typeof systemClock>;
    worker: (options?: object) => NodeProcess;
  }> => {
    const fresh = await target.fresh();
    const b = await benchOn(fresh.url, systemClock, fresh.options);
    open.push(b);
    const worker = (options: object = short): NodeProcess => {
      const child = spawnNode("test/worker/worker-process.ts", [
        fresh.url,
        fresh.options.schema ?? "holdfast",
        JSON.stringify(options),
      ]);
      children.push(child);
      return child;
    };
    return { fresh, b, worker };
  };

  test("[N15] a job that kills its worker ends dead after maxCrashes, and the others are done", async () => {
    const { b, worker } = await start();
    const extras = { maxCrashes: 3 };
    const poison = await b.enqueue("poison", {}, { extras });
    const quick: string[] = [];
    for (let i = 0; i < 20; i++) quick.push(await b.enqueue("quick"));
    for (let deaths = 0; deaths < 3; deaths++) expect((await worker().exited).code).toBe(9);
    const last = worker();
    await last.message("ready");
    await until(async () => (await b.get(poison)).state === "dead", 15_000);
    expect(await b.get(poison)).toMatchObject({ crashes: 3, attempt: 1, error: "killed its worker 3 times" });
    await until(async () => (await b.real.jobs.count({ state: "done" })) === 20, 15_000);
    for (const id of quick) expect((await b.get(id)).attempt).toBe(1);
  });

  test("[F10] SIGTERM gives a long job back at once, unburnt, and the process ends with 0", async () => {
    const { b, worker } = await start();
    const child = worker({ ...short, lease: "30s", heartbeat: "10s", signals: true, shutdown: "200ms" });
    await child.message("ready");
    const ids = [await b.enqueue("long"), await b.enqueue("deaf")];
    // Not "running" in the database: a job counts as that once it is claimed, which is a moment before it starts.
    await until(() => child.messages.filter(({ type }) => type === "started").length === 2);
    child.kill("SIGTERM");
    expect(await child.message("aborted")).toMatchObject({ reason: "SHUTDOWN" });
    expect(await child.exited).toMatchObject({ code: 0 });
    for (const id of ids) expect(await b.get(id)).toMatchObject({ state: "ready", attempt: 0, crashes: 0 });
    expect(await b.real.workers.list()).toEqual([]);
    expect(child.messages.filter(({ type }) => type === "unhandled")).toEqual([]);
  });

  test("a second SIGTERM releases and exits at once", async () => {
    const { b, worker } = await start();
    const child = worker({ ...short, lease: "30s", heartbeat: "10s", signals: true, shutdown: "10m" });
    await child.message("ready");
    const id = await b.enqueue("deaf");
    await child.message("started");
    child.kill("SIGTERM");
    await new Promise((resolve) => void setTimeout(resolve, 200));
    child.kill("SIGTERM");
    expect((await child.exited).code).toBe(143);
    expect(await b.get(id)).toMatchObject({ state: "ready", attempt: 0 });
  });

  test("[C7] after SIGKILL another worker runs the job within its lease and five seconds", async () => {
    const { b, worker } = await start();
    const first = worker();
    await first.message("ready");
    const id = await b.enqueue("long");
    await first.message("started");
    const second = worker();
    await second.message("ready");
    first.kill("SIGKILL");
    await second.message("started", { deadlineMs: 6_000 });
    expect(await b.get(id)).toMatchObject({ state: "running", attempt: 1, crashes: 1 });
  });

  test("[C1] a worker that was stopped past its lease and wakes changes nothing and is told", async () => {
    const { b, worker } = await start();
    const first = worker();
    await first.message("ready");
    const id = await b.enqueue("long");
    await first.message("started");
    const second = worker();
    await second.message("ready");
    first.kill("SIGSTOP");
    await second.message("started");
    first.kill("SIGCONT");
    expect(await first.message("aborted")).toMatchObject({ id, reason: "LEASE_LOST" });
    await new Promise((resolve) => void setTimeout(resolve, 500));
    const { jobs } = (await b.real.workers.list()).find(({ pid }) => pid === second.pid) ?? { jobs: [] };
    expect(jobs).toEqual([id]);
    expect(await b.get(id)).toMatchObject({ state: "running", crashes: 1 });
  });

  test("[F12] dropped tables end the process with a named cause", async () => {
    const { fresh, worker } = await start();
    const child = worker();
    await child.message("ready");
    await fresh.query(`drop table ${fresh.table("ready")}${target.dialect === "postgres" ? " cascade" : ""}`);
    expect(await child.exited).toMatchObject({ code: 1 });
    expect(child.messages.find(({ type }) => type === "failed")).toMatchObject({ code: "SCHEMA_MISSING" });
    expect(child.messages.filter(({ type }) => type === "unhandled")).toEqual([]);
  });
});
