// H2, H3, H5: cool-downs, breakers and holds, over several clients in one fake time.
import { expect, test } from "vitest";
import { defineJob } from "../../src/jobs/define-job.ts";
import { Release, Throttled } from "../../src/jobs/decision.ts";
import { onEveryStore } from "../support/stores.ts";
import { type Client, heldJob, newWorld, quickJob, type World } from "../support/world.ts";

/** A job that fails as long as the switch says so. */
function flaky(world: World, name: string, options: Record<string, unknown> = {}) {
  const runs: { n: number; at: number; attempt: number }[] = [];
  const broken = { is: true };
  const job = defineJob({
    name,
    retry: { attempts: 3 },
    ...options,
    run: (input: { n: number }, ctx) => {
      runs.push({ n: input.n, at: world.clock.now(), attempt: ctx.attempt });
      if (broken.is) throw new Error("502");
    },
  });
  return { job, runs, broken };
}

const enqueue = async (client: Client, job: ReturnType<typeof flaky>["job"], count: number, options = {}) =>
  (
    await client.hf.enqueueMany(Array.from({ length: count }, (_, n) => ({ job, input: { n }, ...options })))
  ).map(({ id }) => id);

onEveryStore((target) => {
  test("[H2] eight workers that are throttled at once cool the queue down by one step, and the job's own hint is kept", async () => {
    const world = await newWorld(target);
    // Four clients of two workers: eight of their own would be more connections than a test's server has.
    const clients = await Promise.all(Array.from({ length: 4 }, () => world.client()));
    await clients[0]!.hf.queues.set("default", { cooldown: { base: "10s", max: "1h" } });
    const { job, runs } = heldJob(world);
    for (const client of [...clients, ...clients]) await client.work([job], { queues: { default: 1 } });
    for (let n = 0; n < 8; n++) await clients[0]!.hf.enqueue(job, { n });
    await world.until("all to run", () => runs.length === 8);
    const first = runs[0]!.ctx.id;
    for (const run of runs) run.fail(new Throttled("90s"));
    await world.advance("1s");
    const [queue] = await world.rows("queue");
    expect(queue).toMatchObject({ cool_steps: 1, cool_until: runs[0]!.at + 10_000 });
    const throttled = await clients[0]!.hf.jobs.get(first);
    expect(throttled).toMatchObject({ state: "scheduled", attempt: 0 });
    expect(throttled!.runAt!.getTime()).toBe(runs[0]!.at + 90_000);
    // Nothing new is claimed meanwhile.
    await clients[0]!.hf.enqueue(job, { n: 9 });
    await world.advance("8s");
    expect(runs).toHaveLength(8);
    await world.until("the queue to be open again", () => runs.length === 9, "3s");
  });

  test("[H3] a worker of two kinds claims nothing of the name whose breaker is open", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    const { job, broken } = flaky(world, "bad", {
      breaker: { after: 5, cooldown: "60s" },
      retry: { attempts: 1 },
    });
    broken.is = false;
    const { job: other } = quickJob(world, "good");
    await client.work([job, other], { queues: { default: 2 } });
    await enqueue(client, job, 20);
    await world.until("all to be done", async () => (await client.hf.jobs.count({ state: "done" })) === 20);
    broken.is = true;
    await enqueue(client, job, 200);
    await world.until(
      "the breaker to open",
      async () => (await client.hf.breakers.list())[0]?.state === "open",
    );
    await world.advance("5s");
    let released = 0;
    client.hf.on("job.released", () => void (released += 1));
    await world.advance("20s");
    expect(released).toBe(0);
    expect(await client.hf.jobs.count({ state: "running" })).toBe(0);
  });

  test("[H2] steps double up to the longest, their exponent ends at 30, and two quiet minutes begin anew", async () => {
    const world = await newWorld(target);
    const { hf, work } = await world.client();
    await hf.queues.set("default", { cooldown: { base: "1s", max: "1d" } });
    const { job, runs } = heldJob(world);
    await work([job], { queues: { default: 1 } });
    const step = async (): Promise<number> => {
      const before = runs.length;
      await hf.enqueue(job, { n: before });
      await world.until("it to run", () => runs.length > before, "2d", "10s");
      const at = world.clock.now();
      runs.at(-1)!.fail(new Throttled("30d"));
      await world.advance("200ms");
      const [queue] = await world.rows("queue");
      return Math.round((Number(queue!["cool_until"]) - at) / 1_000);
    };
    expect([await step(), await step(), await step(), await step()]).toEqual([1, 2, 4, 8]);
    const { fresh } = world;
    await fresh.query(
      `update ${fresh.table("queue")} set cool_steps = 30, cool_until = null, cool_at = ${world.clock.now()}`,
    );
    expect(await step()).toBe(86_400);
    expect(Number((await world.rows("queue"))[0]!["cool_steps"])).toBe(30);
    await fresh.query(`update ${fresh.table("queue")} set cool_until = null`);
    await world.advance("121s", "10s");
    expect(await step()).toBe(1);
  });

  test("[H3] a queue's breaker opens after ten failures in a row, lets one job try, and closes when that succeeds", async () => {
    const world = await newWorld(target);
    const [a, b] = [await world.client(), await world.client()];
    const { job, runs, broken } = flaky(world, "call");
    await a.hf.queues.set("default", { breaker: { cooldown: "30s" } });
    await a.work([job], { queues: { default: 1 } });
    await b.work([job], { queues: { default: 1 } });
    const ids = await enqueue(a, job, 40);
    await world.until("it to open", async () => (await b.hf.breakers.list())[0]?.state === "open");
    await world.advance("5s");
    const before = runs.length;
    expect(before).toBeGreaterThanOrEqual(10);
    expect(before).toBeLessThanOrEqual(22); // each process stops by itself after ten, and what runs by then ends
    const [breaker] = await b.hf.breakers.list();
    expect(breaker).toMatchObject({ key: "queue:default", state: "open", error: "502" });
    const waiting = (await Promise.all(ids.map((id) => a.hf.jobs.get(id)))).filter(
      (each) => each!.state === "ready",
    );
    expect(waiting.length).toBe(40 - before);
    expect(waiting.every((each) => each!.attempt === 0)).toBe(true);
    await world.advance("20s");
    expect(runs).toHaveLength(before);
    // Half-open: one probe over both workers, which fails and opens it anew.
    await world.until("the probe", () => runs.length > before, "10s");
    await world.advance("20s");
    expect(runs).toHaveLength(before + 1);
    broken.is = false;
    await world.until("the second probe, and all the rest", () => runs.length >= 40, "60s");
    await world.until("the breaker to be closed", async () => (await a.hf.breakers.list()).length === 0);
  });

  test("[H3] while half-open one probe runs over the cluster, for as long as its worker lives", async () => {
    const world = await newWorld(target);
    const [a, b] = [await world.client(), await world.client()];
    const { job, runs } = heldJob(world, "call", {
      breaker: { after: 2, cooldown: "10s" },
      retry: { attempts: 1 },
    });
    await a.work([job], { queues: { default: 4 } });
    await b.work([job], { queues: { default: 4 } });
    await a.hf.enqueue(job, { n: 0 });
    await a.hf.enqueue(job, { n: 1 });
    await world.until("both to run", () => runs.length === 2);
    for (const run of runs) run.fail(new Error("no"));
    await world.until("it to open", async () => (await b.hf.breakers.list())[0]?.state === "open");
    for (let n = 2; n < 12; n++) await b.hf.enqueue(job, { n });
    await world.until("the probe", () => runs.length === 3, "15s");
    await world.advance("60s");
    expect(runs).toHaveLength(3);
    expect((await a.hf.breakers.list())[0]).toMatchObject({
      key: "name:call",
      state: "half-open",
      probing: true,
    });
    const holder = (await a.hf.jobs.get(runs[2]!.ctx.id))!.workerId!;
    const killed = (await a.hf.workers.list()).find(({ id }) => id === holder)!.id === runs[2]!.ctx.workerId;
    expect(killed).toBe(true);
    const dead = a.hf === (await ownerOf([a, b], runs[2]!.ctx.workerId)) ? a : b;
    dead.tap.kill();
    await world.until("another probe after the lease", () => runs.length === 4, "60s");
    await world.advance("5s");
    expect(runs).toHaveLength(4);
    runs[3]!.finish();
    await world.until("the rest to go on", () => runs.length >= 8, "10s");
  });

  test("[H3] a breaker of a key stops its own jobs alone, unburnt, and reset lets them go on at once", async () => {
    const world = await newWorld(target);
    const { hf, work } = await world.client();
    const runs: string[] = [];
    const job = defineJob({
      name: "fetch",
      retry: { attempts: 2 },
      breaker: { after: 3, cooldown: "1h", key: (input: { host: string; n: number }) => input.host },
      run: (input) => {
        runs.push(`${input.host}:${input.n}`);
        if (input.host === "bad") throw new Error("503");
      },
    });
    await work([job], { queues: { default: 1 } });
    const ids: string[] = [];
    for (let n = 0; n < 8; n++) {
      ids.push((await hf.enqueue(job, { host: "bad", n })).id);
      await hf.enqueue(job, { host: "good", n });
    }
    await world.until("the good ones", () => runs.filter((run) => run.startsWith("good")).length === 8);
    expect(runs.filter((run) => run.startsWith("bad"))).toHaveLength(3);
    expect(await hf.breakers.list()).toMatchObject([{ key: "name:fetch/bad", state: "open", failures: 3 }]);
    const waiting = await hf.jobs.get(ids[7]!);
    expect(waiting).toMatchObject({ state: "scheduled", attempt: 0, error: null });
    expect(await hf.breakers.reset("name:fetch/bad")).toBe(true);
    expect(await hf.breakers.list()).toEqual([]);
    await hf.jobs.runNow(ids[7]!);
    await world.until("it to run", () => runs.includes("bad:7"), "5s");
  });

  test("[H3] a success begins the count anew; throttles, releases and jobs of others do not count", async () => {
    const world = await newWorld(target);
    const { hf, work } = await world.client();
    const { job, runs } = heldJob(world, "call", { breaker: { after: 3, cooldown: "1m" } });
    await work([job], { queues: { default: 1 } });
    const outcomes: ((n: number) => void)[] = [
      (n) => runs[n]!.fail(new Error("no")),
      (n) => runs[n]!.fail(new Error("no")),
      (n) => runs[n]!.finish(),
      (n) => runs[n]!.fail(new Error("no")),
      (n) => runs[n]!.fail(new Throttled("1h")),
      (n) => runs[n]!.fail(new Release("later", { delay: "1h" })),
      (n) => runs[n]!.fail(new Error("no")),
    ];
    for (const [n, outcome] of outcomes.entries()) {
      await hf.enqueue(job, { n });
      await world.until("it to run", () => runs.length === n + 1);
      outcome(n);
      await world.advance("300ms");
    }
    expect(await hf.breakers.list()).toMatchObject([{ key: "name:call", state: "closed", failures: 2 }]);
  });

  test("[H5] while a hold is set nothing is claimed, from any process, and running jobs give themselves back unburnt", async () => {
    const world = await newWorld(target);
    const [a, b] = [await world.client(), await world.client()];
    const runs: { n: number; attempt: number }[] = [];
    let expired = true;
    const job = defineJob({
      name: "crawl",
      run: async (input: { n: number }, ctx) => {
        runs.push({ n: input.n, attempt: ctx.attempt });
        if (!expired) return;
        await a.hf.holds.set("session-expired", { queues: ["crawl"], reason: "log in again" });
        throw new Release("session expired");
      },
    });
    const other = quickJob(world, "other");
    await a.work([job, other.job], { queues: { crawl: 2, default: 1 } });
    await b.work([job], { queues: { crawl: 2 } });
    const ids: string[] = [];
    for (let n = 0; n < 6; n++) ids.push((await a.hf.enqueue(job, { n }, { queue: "crawl" })).id);
    await world.until("the hold", async () => (await b.hf.holds.list()).length === 1);
    await world.advance("2s");
    const before = runs.length;
    await a.hf.enqueue(other.job, { n: 1 });
    await world.advance("60s");
    expect(runs).toHaveLength(before);
    expect(other.runs).toHaveLength(1);
    for (const id of ids) expect(await a.hf.jobs.get(id)).toMatchObject({ state: "ready", attempt: 0 });
    expired = false;
    expect(await b.hf.holds.clear("session-expired")).toBe(true);
    await world.until(
      "all to be done",
      async () => (await a.hf.jobs.count({ state: "done", name: "crawl" })) === 6,
      "10s",
    );
    expect(runs.slice(before).every(({ attempt }) => attempt === 1)).toBe(true);
  });
});

async function ownerOf(clients: readonly Client[], workerId: string): Promise<unknown> {
  for (const { hf, log } of clients) if (log.some(({ details }) => details["worker"] === workerId)) return hf;
  return null;
}
