// Claims (promises B1 to B7). Plans and costs, B8, are in test/storage/plans.test.ts.
import { expect, test } from "vitest";
import { defineJob, Throttled } from "holdfast";
import { systemClock } from "../../src/clock.ts";
import { spawnNode } from "../support/process.ts";
import { onEveryStore, onPostgres } from "../support/stores.ts";
import { waitFor } from "../support/wait.ts";
import { client, patient } from "../support/client.ts";

const plain = defineJob({ name: "plain", run: () => null });
const ids = (list: readonly { id: string }[]): string[] => list.map(({ id }) => id);

onEveryStore((target) => {
  test("[B1] 8 workers in 4 processes start each of 5,000 jobs once", async () => {
    const { hf, fresh } = await client(target, { clock: systemClock });
    const children = Array.from({ length: 4 }, () =>
      spawnNode("test/lease/children/drainer.ts", [fresh.url, fresh.options.schema ?? "holdfast"]),
    );
    await Promise.all(children.map((child) => child.message("working")));
    const items = Array.from({ length: 1_000 }, (_, n) => ({ job: "drained", input: n }));
    const enqueued: string[] = [];
    for (let batch = 0; batch < 5; batch++) enqueued.push(...ids(await hf.enqueueMany(items)));
    const history = fresh.table("history");
    await waitFor(
      async () => Number((await fresh.query(`select count(*) as n from ${history}`))[0]!["n"]) === 5_000,
      {
        what: "5,000 jobs to end",
        deadlineMs: 45_000,
      },
    );
    for (const child of children) child.send("report");
    const reports = await Promise.all(children.map((child) => child.message("started")));
    const started = reports.flatMap((report) => report["ids"] as string[]);
    expect(started).toHaveLength(5_000);
    expect(new Set(started)).toEqual(new Set(enqueued));
    expect(await fresh.query(`select distinct state, attempt, crashes from ${history}`)).toEqual([
      { state: "done", attempt: 1, crashes: 0 },
    ]);
    await Promise.all(children.map((child) => child.exited));
  });

  test("[B1] two leases at the same moment never share a job", async () => {
    const { hf, another } = await client(target);
    const others = [hf, (await another()).hf, (await another()).hf];
    await hf.enqueueMany(Array.from({ length: 60 }, (_, n) => ({ job: plain, input: n })));
    const taken = (
      await Promise.all(others.flatMap((one) => [one.lease({ limit: 10 }), one.lease({ limit: 10 })]))
    ).flat();
    expect(new Set(ids(taken)).size).toBe(taken.length);
    expect(taken.length).toBeGreaterThanOrEqual(10);
  });

  test("[B2] a batch has at most the limit and comes in claim order, over names and priorities", async () => {
    const { hf, clock, fresh } = await client(target);
    const items = Array.from({ length: 40 }, (_, n) => ({
      job: `kind-${n % 3}`,
      input: n,
      priority: (n * 7) % 4,
      at: new Date(clock.now() - ((n * 13) % 10) * 1_000),
    }));
    await hf.enqueueMany(items);
    const ordered = await fresh.query(
      `select j.id from ${fresh.table("ready")} r join ${fresh.table("job")} j on j.${fresh.jobKey} = r.${fresh.jobKey} order by rank, run_at, j.id`,
    );
    const first = await hf.lease({ limit: 10 });
    const second = await hf.lease({ limit: 100 });
    expect(ids(first)).toEqual(ordered.slice(0, 10).map((row) => row["id"]));
    expect(ids(second)).toEqual(ordered.slice(10).map((row) => row["id"]));
  });

  test("[B2] the limit holds over several queues together", async () => {
    const { hf, rows } = await client(target);
    for (const queue of ["a", "b", "c"])
      await hf.enqueueMany(Array.from({ length: 5 }, () => ({ job: plain, input: 0, queue })));
    expect(await hf.lease({ queues: ["a", "b", "c"], limit: 7 })).toHaveLength(7);
    expect(await rows("ready", "token is not null")).toHaveLength(7);
    expect(
      await rows("ready", "token is null and attempt <> 0"),
      "what was too much keeps its attempt",
    ).toEqual([]);
  });

  test("[B3] a lease takes only jobs of the queues and names that it names", async () => {
    const { hf } = await client(target);
    const put = async (name: string, queue: string): Promise<string> =>
      (await hf.enqueue(name, 0, { queue })).id;
    const wanted = await put("a", "q1");
    await put("b", "q1");
    const other = await put("a", "q2");
    expect(ids(await hf.lease({ queues: ["q1"], names: ["a"], limit: 10 }))).toEqual([wanted]);
    expect(ids(await hf.lease({ names: ["a"], limit: 10 }))).toEqual([other]);
    expect(await hf.lease({ queues: ["q3"], limit: 10 })).toEqual([]);
  });

  test("[B3] a worker leaves a name without a handler alone: ready, attempt 0, shown as unserved", async () => {
    const { hf } = await client(target);
    const unknown = await hf.enqueue("unknown", 0, { priority: 9 });
    const known = await hf.enqueue(plain, 0);
    const worker = hf.work([plain], { queues: { default: 1 }, ...patient });
    await worker.ready;
    await worker.idle();
    expect(await hf.jobs.get(known.id)).toMatchObject({ state: "done" });
    expect(await hf.jobs.get(unknown.id)).toMatchObject({ state: "ready", attempt: 0 });
    expect(await hf.queues.list()).toMatchObject([{ name: "default", unserved: ["unknown"] }]);
  });

  test("several names without a handler are shown in the same order by every store", async () => {
    const { hf } = await client(target);
    for (const name of ["b", "c", "a"]) await hf.enqueue(name, 0);
    expect(await hf.queues.list()).toMatchObject([{ name: "default", unserved: ["a", "b", "c"] }]);
  });

  test("[B3] a worker leaves queues that it does not serve alone, and such a queue is unserved", async () => {
    const { hf } = await client(target);
    const typo = await hf.enqueue(plain, 0, { queue: "mial" });
    const worker = hf.work([plain], { queues: ["mail"], ...patient });
    await worker.ready;
    await worker.idle();
    expect(await hf.jobs.get(typo.id)).toMatchObject({ state: "ready", attempt: 0 });
    expect((await hf.queues.list()).find(({ name }) => name === "mial")).toMatchObject({
      unserved: ["plain"],
    });
  });

  test("[B4] the order is priority, then due time, then insertion", async () => {
    const { hf, clock } = await client(target);
    const now = clock.now();
    const put = async (priority: number, at: number): Promise<string> =>
      (await hf.enqueue(plain, 0, { priority, at: new Date(at) })).id;
    const late = await put(0, now + 60_000);
    const early = await put(0, now + 55_000);
    const earlyToo = await put(0, now + 55_000);
    const low = await put(-1, now);
    const high = await put(1, now + 60_000);
    await clock.advance("1m");
    expect(ids(await hf.lease({ limit: 10 }))).toEqual([high, early, earlyToo, late, low]);
  });

  test("[B4] lowest-first turns priorities round and nothing else", async () => {
    const { hf, clock } = await client(target, { order: "lowest-first" });
    const now = clock.now();
    const put = async (priority: number, at: number): Promise<string> =>
      (await hf.enqueue(plain, 0, { priority, at: new Date(at) })).id;
    const high = await put(1, now);
    const late = await put(0, now + 60_000);
    const early = await put(0, now + 55_000);
    const low = await put(-1, now + 60_000);
    await clock.advance("1m");
    expect(ids(await hf.lease({ limit: 2 }))).toEqual([low, early]);
    expect(ids(await hf.lease({ limit: 2 }))).toEqual([late, high]);
  });

  test.each([
    ["highest-first", [2, 1, 0]],
    ["lowest-first", [0, 1, 2]],
  ] as const)("[B4] a worker runs jobs %s", async (order, expected) => {
    const { hf } = await client(target, { order });
    const ran: number[] = [];
    const noting = defineJob({ name: "noting", run: (n: number) => void ran.push(n) });
    for (const n of [1, 0, 2]) await hf.enqueue(noting, n, { priority: n });
    const worker = hf.work([noting], { queues: { default: 1 }, ...patient });
    await worker.idle();
    expect(ran).toEqual(expected);
  });

  test("[B4] a retry that was pushed to t + 30 s does not overtake a job that is due since t", async () => {
    const { hf, clock } = await client(target);
    const retried = await hf.enqueue(plain, 0, {
      attempts: 5,
      backoff: { kind: "fixed", ms: 30_000, jitter: 0 },
    });
    await (await hf.lease())[0]!.fail(new Error("no"));
    const waiting = await hf.enqueue(plain, 0);
    expect(ids(await hf.lease({ limit: 10, for: "1h" }))).toEqual([waiting.id]);
    const next = await hf.enqueue(plain, 0);
    await clock.advance("30s");
    expect(ids(await hf.lease({ limit: 10 }))).toEqual([next.id, retried.id]);
  });

  test("[B5] a job that is due later is not claimed", async () => {
    const { hf, clock } = await client(target);
    await hf.enqueue(plain, 0, { delay: 1 });
    expect(await hf.lease()).toEqual([]);
    await clock.advance(1);
    expect(await hf.lease()).toHaveLength(1);
  });

  test("[B5] a job of a paused queue is not claimed, and is once the queue resumes", async () => {
    const { hf } = await client(target);
    await hf.enqueue(plain, 0, { queue: "paused" });
    const other = await hf.enqueue(plain, 0, { queue: "other" });
    await hf.queues.pause("paused");
    expect(ids(await hf.lease({ limit: 10 }))).toEqual([other.id]);
    await hf.queues.resume("paused");
    expect(await hf.lease()).toHaveLength(1);
  });

  test("[B5] a job of a held queue is not claimed, and is once the hold is cleared", async () => {
    const { hf } = await client(target);
    const held = await hf.enqueue(plain, 0, { queue: "held" });
    const other = await hf.enqueue(plain, 0, { queue: "other" });
    await hf.holds.set("expired", { queues: ["held"], reason: "session expired" });
    expect(ids(await hf.lease({ limit: 10 }))).toEqual([other.id]);
    await hf.holds.clear("expired");
    expect(ids(await hf.lease({ limit: 10 }))).toEqual([held.id]);
    await hf.enqueue(plain, 0, { queue: "third" });
    await hf.holds.set("all", { reason: "everything" });
    expect(await hf.lease({ limit: 10 }), "a hold without queues stops all").toEqual([]);
  });

  test("[B5] a job of a queue that cools down is not claimed before the time is over", async () => {
    const { hf, clock } = await client(target);
    await hf.queues.set("default", { cooldown: { base: "10s", max: "1m" } });
    const first = await hf.enqueue(plain, 0);
    const second = await hf.enqueue(plain, 0);
    const [lease] = await hf.lease();
    expect(lease!.id).toBe(first.id);
    await lease!.fail(new Throttled("1s"));
    await clock.advance(9_999);
    expect(await hf.lease({ limit: 10 })).toEqual([]);
    await clock.advance(1);
    expect(ids(await hf.lease({ limit: 10 }))).toEqual([second.id, first.id]);
  });

  test("[B5] a cancelled job is not claimed", async () => {
    const { hf } = await client(target);
    const { id } = await hf.enqueue(plain, 0);
    expect(await hf.jobs.cancel(id)).toBe("cancelled");
    expect(await hf.lease()).toEqual([]);
  });

  test("[B5] a job under somebody's living lease is not claimed, and is once that has passed", async () => {
    const { hf, clock, another } = await client(target);
    const { id } = await hf.enqueue(plain, 0);
    const [mine] = await hf.lease({ for: "60s" });
    const other = (await another()).hf;
    await clock.advance(59_999);
    expect(await other.lease()).toEqual([]);
    await clock.advance(1);
    const [theirs] = await other.lease();
    expect(theirs).toMatchObject({ id, attempt: 1 });
    expect(theirs!.token).toBeGreaterThan(mine!.token);
  });

  test("[B6] a claim stamps holder, token, expiry, attempt and start", async () => {
    const { hf, clock, rows } = await client(target);
    const { id } = await hf.enqueue(plain, 0, { attempts: 5 });
    await clock.advance("5s");
    const [first] = await hf.lease({ for: "60s" });
    const [row] = await rows("ready");
    expect(row).toMatchObject({ id, token: first!.token, attempt: 1, started_at: clock.now() });
    const [session] = await rows("session", `id = ${Number(row!["session"])}`);
    expect(session).toMatchObject({ lease_until: clock.now() + 60_000, kind: "lease", closed_at: null });
    expect(await rows("claim")).toMatchObject([{ token: first!.token, session: row!["session"] }]);
    expect(await hf.jobs.get(id)).toMatchObject({
      state: "running",
      attempt: 1,
      startedAt: new Date(clock.now()),
      leaseUntil: new Date(clock.now() + 60_000),
      workerId: session!["worker_id"],
    });
    await first!.fail(new Error("no"));
    await clock.advance("5m");
    const [second] = await hf.lease({ for: "60s" });
    expect(second).toMatchObject({ id, attempt: 2 });
    expect(second!.token).toBeGreaterThan(first!.token);
    expect((await hf.jobs.get(id))?.startedAt).toEqual(new Date(clock.now()));
  });

  test("[B6] a worker's claim names the worker", async () => {
    const { hf } = await client(target);
    const running = Promise.withResolvers<void>();
    const finish = Promise.withResolvers<void>();
    const job = defineJob({ name: "held", run: () => (running.resolve(), finish.promise) });
    const worker = hf.work([job], { queues: { default: 1 }, name: "w-1", ...patient });
    const { id } = await hf.enqueue(job, null);
    await running.promise;
    expect(await hf.jobs.get(id)).toMatchObject({ state: "running", workerId: worker.id });
    expect(await hf.workers.list()).toMatchObject([{ id: worker.id, name: "w-1", jobs: [id] }]);
    finish.resolve();
    await worker.idle();
  });

  test("[B6] a cancel that was asked of an earlier holder does not reach the next one", async () => {
    const { hf } = await client(target);
    const { id } = await hf.enqueue(plain, 0);
    const [first] = await hf.lease();
    expect(await hf.jobs.cancel(id)).toBe("cancel_requested");
    expect((await first!.renew()).cancel).toBe("cancelled by user");
    await first!.release();
    const [second] = await hf.lease();
    expect(second!.id).toBe(id);
    expect((await second!.renew()).cancel).toBeNull();
  });

  test("[B7] of three jobs, the one whose input cannot be read is dead and the others run", async () => {
    const { hf, fresh } = await client(target);
    const ran: number[] = [];
    const noting = defineJob({ name: "noting", run: (n: number) => void ran.push(n) });
    const three = await hf.enqueueMany([1, 2, 3].map((input) => ({ job: noting, input })));
    await fresh.query(`update ${fresh.table("job")} set input = '{"cut":' where id = ?`, [three[1]!.id]);
    const worker = hf.work([noting], { queues: { default: 3 }, ...patient });
    await worker.idle();
    expect(ran).toEqual([1, 3]);
    expect((await Promise.all(ids(three).map((id) => hf.jobs.get(id)))).map((job) => job?.state)).toEqual([
      "done",
      "dead",
      "done",
    ]);
    expect(await hf.jobs.get(three[1]!.id)).toMatchObject({
      attempt: 1,
      error: expect.stringMatching(/input/) as string,
    });
  });

  test("[B7] a lease skips a job whose input cannot be read, which is dead", async () => {
    const { hf, fresh } = await client(target);
    const three = await hf.enqueueMany([1, 2, 3].map((input) => ({ job: plain, input })));
    await fresh.query(`update ${fresh.table("job")} set input = 'x' where id = ?`, [three[0]!.id]);
    expect((await hf.lease({ limit: 3 })).map((lease) => lease.input)).toEqual([2, 3]);
    expect(await hf.jobs.get(three[0]!.id)).toMatchObject({ state: "dead" });
  });

  test("[B7] settings and errors of a row that cannot be read do not stop the job", async () => {
    const { hf, fresh } = await client(target);
    const two = await hf.enqueueMany([1, 2].map((input) => ({ job: plain, input })));
    const [id, other] = [two[0]!.id, two[1]!.id];
    await fresh.query(
      `update ${fresh.table("job")} set extras = '{"backoff":', context = 'not json' where id = ?`,
      [id],
    );
    await fresh.query(
      `update ${fresh.table("ready")} set errors = '[{' where ${fresh.jobKey} = ${fresh.jobKeyOf("?")}`,
      [id],
    );
    const worker = hf.work([plain], { queues: { default: 3 }, ...patient });
    await worker.idle();
    expect(await hf.jobs.get(id)).toMatchObject({ state: "done", errors: [] });
    expect(await hf.jobs.get(other)).toMatchObject({ state: "done" });
  });
});

// SQLite has no clock but the process's.
onPostgres((target) => {
  test("[B6] instants are the database's, whatever this process's clock says", async () => {
    const dayMs = 86_400_000;
    const { hf, fresh, rows } = await client(target, {
      clock: { ...systemClock, now: () => Date.now() + 30 * dayMs },
    });
    await hf.enqueue(plain, 0);
    const [lease] = await hf.lease({ for: "60s" });
    expect(lease).toBeDefined();
    const [{ now }] = (await fresh.query("select extract(epoch from now()) * 1000 as now")) as [
      { now: string },
    ];
    const [row] = await rows("ready");
    const [session] = await rows("session");
    for (const instant of [row!["run_at"], row!["started_at"], session!["lease_until"]]) {
      expect(Math.abs(Number(instant) - Number(now))).toBeLessThan(dayMs);
    }
  });
});
