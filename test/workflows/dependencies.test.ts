// Jobs that wait for others: after, batches, what becomes of them when one ends badly, and cancels that cascade.
import { expect, onTestFinished, test } from "vitest";
import { Dead, defineJob } from "../../src/index.ts";
import { idFactory } from "../../src/values/id.ts";
import { onEveryStore } from "../support/stores.ts";
import { jobOf, newWorld } from "../support/world.ts";
import { DatabaseSync } from "node:sqlite";
import pg from "pg";

const lease = { lease: "20d", heartbeat: "9d" } as const;
const queues = { default: 10 } as const;
const newId = idFactory(() => Date.UTC(2026, 0, 1));

onEveryStore((target) => {
  test("[N24] a job starts when those that it comes after are done, and not before its own time", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const ran: string[] = [];
    const job = defineJob({ name: "named", run: (name: string) => void ran.push(name) });
    const a = await one.hf.enqueue(job, "a", { delay: "5s" });
    const b = await one.hf.enqueue(job, "b");
    const c = await one.hf.enqueue(job, "c", { after: [a.id, b.id] });
    const d = await one.hf.enqueue(job, "d", { after: [c.id], delay: "30s" });
    expect(await jobOf(one, c.id)).toMatchObject({ state: "waiting", runAt: null });
    expect(await one.hf.jobs.why(c.id)).toMatchObject({
      reason: "waiting-for-jobs",
      waitsFor: [a.id, b.id].sort(),
    });
    await one.work([job], { queues, ...lease });
    await world.until("c", () => ran.includes("c"));
    expect(ran).toEqual(["b", "a", "c"]);
    await world.until("d is due later", async () => (await jobOf(one, d.id)).state === "scheduled");
    await world.until("d", () => ran.includes("d"));
    expect((await one.hf.jobs.history(c.id))?.children).toMatchObject([
      { relation: "after", state: "done", policy: "cancel" },
      { relation: "after", state: "done", policy: "cancel" },
    ]);
  });

  test("[N24] a job that dies cancels, lets go or keeps waiting those that come after it, as they asked", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    let broken = true;
    const ran: string[] = [];
    const shaky = defineJob({
      name: "shaky",
      run: () => {
        if (broken) throw new Dead("broken");
      },
    });
    const job = defineJob({ name: "named", run: (name: string) => void ran.push(name) });
    const { id } = await one.hf.enqueue(shaky, {});
    const after = [id];
    const cancelled = await one.hf.enqueue(job, "cancel", { after });
    const further = await one.hf.enqueue(job, "further", { after: [cancelled.id] });
    const goesOn = await one.hf.enqueue(job, "continue", { after, onDead: "continue" });
    const waits = await one.hf.enqueue(job, "wait", { after, onDead: "wait" });
    await one.work([shaky, job], { queues, ...lease });
    await world.until("dead", async () => (await jobOf(one, id)).state === "dead");
    await world.until("the one that goes on", async () => (await jobOf(one, goesOn.id)).state === "done");
    expect(await jobOf(one, cancelled.id)).toMatchObject({
      state: "cancelled",
      error: `job ${id}, a dependency, is dead`,
    });
    expect((await jobOf(one, further.id)).state).toBe("cancelled");
    expect((await jobOf(one, waits.id)).state).toBe("waiting");
    // One that comes after a job that has already ended.
    expect((await jobOf(one, (await one.hf.enqueue(job, "late", { after })).id)).state).toBe("cancelled");
    const lateOn = await one.hf.enqueue(job, "late-on", { after, onDead: "continue" });
    await world.until("late", async () => (await jobOf(one, lateOn.id)).state === "done");
    broken = false;
    await one.hf.jobs.retry(id);
    await world.until("the one that waited", async () => (await jobOf(one, waits.id)).state === "done");
    expect(ran.sort()).toEqual(["continue", "late-on", "wait"]);
  });

  test("[N24] who waits until another is done is cancelled by the sweep when that one is gone, by a delete or with its retention", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const job = defineJob({
      name: "node",
      retry: { attempts: 1 },
      run: (bad: boolean) => {
        if (bad) throw new Error("bad");
      },
    });
    await one.work([job], { queues, ...lease });
    const pairs = await Promise.all(
      [1, 2].map(async () => {
        const first = await one.hf.enqueue(job, true);
        return { first, then: await one.hf.enqueue(job, false, { after: [first.id], onDead: "wait" }) };
      }),
    );
    const [deleted, forgotten] = pairs as [(typeof pairs)[0], (typeof pairs)[0]];
    await world.until("both are dead", async () => (await one.hf.jobs.count({ state: "dead" })) === 2);
    await one.tap.raw.workflows.sweep();
    for (const { then } of pairs) expect((await jobOf(one, then.id)).state).toBe("waiting");
    expect((await one.hf.jobs.why(deleted.then.id)).text).toBe(
      `The job waits for 1 job: ${deleted.first.id} (dead: this job continues when that job is retried and done).`,
    );
    await one.hf.jobs.delete(deleted.first.id);
    for (const table of ["history", "job"])
      await world.fresh.query(
        `delete from ${world.fresh.table(table)} where ${
          table === "job" ? "id = ?" : `${world.fresh.jobKey} = ${world.fresh.jobKeyOf("?")}`
        }`,
        [forgotten.first.id],
      );
    await one.tap.raw.workflows.sweep();
    for (const { first, then } of pairs)
      expect(await jobOf(one, then.id)).toMatchObject({
        state: "cancelled",
        error: `job ${first.id}, a dependency, is gone`,
      });
  });

  test("[N24] a success that is not kept is still one for who waits, when its worker dies before they are told", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const quick = defineJob({ name: "quick", keep: false, run: () => 1 });
    const next = defineJob({ name: "next", run: () => "next" });
    const first = await one.hf.enqueue(quick, null);
    const then = await one.hf.enqueue(next, null, { after: [first.id] });
    const alone = await one.hf.enqueue(quick, null);
    const [a, b] = await one.hf.lease({ limit: 2, for: "10s" });
    // The settle alone, as if nothing came after it.
    await world.fresh.query(`update ${world.fresh.table("dependency")} set on_job = ? where on_job = ?`, [
      newId(),
      first.id,
    ]);
    await a!.done(1);
    await b!.done(1);
    await world.fresh.query(`update ${world.fresh.table("dependency")} set on_job = ?`, [first.id]);
    expect(await one.hf.jobs.get(alone.id)).toBeNull();
    await one.tap.raw.workflows.sweep();
    expect((await jobOf(one, then.id)).state).toBe("ready");
  });

  test("[N24] who follows a job that was not enqueued, because one that is done and not kept still holds its key, is let go", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const once = defineJob({
      name: "once",
      keep: false,
      unique: { key: () => "k", for: "1h" },
      run: () => 1,
    });
    const next = defineJob({ name: "next", run: () => "next" });
    const first = await one.hf.enqueue(once, null);
    await (await one.hf.lease())[0]!.done(1);
    expect(await one.hf.jobs.get(first.id)).toBeNull();
    const { jobs, then } = await one.hf.batch([{ job: once, input: null }], {
      then: { job: next, input: null },
    });
    expect(jobs).toEqual([{ status: "duplicate", id: first.id }]);
    await one.tap.raw.workflows.sweep();
    expect((await jobOf(one, then!.id)).state).toBe("ready");
  });

  test("[N24] a DAG of 1,000 jobs runs in an order that keeps every edge", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const place = new Map<number, number>();
    const job = defineJob({ name: "node", run: (n: number) => void place.set(n, place.size) });
    const ids = Array.from({ length: 1_000 }, () => newId());
    const parents = (n: number): number[] =>
      n === 0 ? [] : [...new Set([Math.floor(n / 2), Math.max(0, n - 7), Math.floor(n / 3)])];
    const items = ids.map((id, n) => ({ job, input: n, id, after: parents(n).map((m) => ids[m]!) }));
    await one.hf.enqueueMany(items.reverse());
    await one.work([job], { queues: { default: 50 }, ...lease });
    await world.until("all done", async () => (await one.hf.jobs.count({ state: "done" })) === 1_000, "10m");
    for (let n = 0; n < 1_000; n += 1)
      for (const m of parents(n)) expect(place.get(m)).toBeLessThan(place.get(n)!);
  }, 120_000);

  test("[N24] a batch of 10,000 and what follows it take no step that grows with their square", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const job = defineJob({ name: "leaf", run: () => 1 });
    const last = defineJob({ name: "last", run: () => "all there" });
    const { counters } = one.tap.raw;
    const before = counters.statements;
    const { jobs, then } = await one.hf.batch(
      Array.from({ length: 10_000 }, (_, input) => ({ job, input })),
      { then: { job: last, input: null } },
    );
    expect(jobs).toHaveLength(10_000);
    expect(counters.statements - before).toBeLessThan(20);
    const started = new Map(counters.byName);
    await one.work([job, last], { queues: { default: 100 }, ...lease });
    await world.until("done", async () => (await jobOf(one, then!.id)).state === "done", "10m");
    expect(await jobOf(one, then!.id)).toMatchObject({ output: "all there" });
    const sent = (name: string): number => (counters.byName.get(name) ?? 0) - (started.get(name) ?? 0);
    // One of each for a settled batch, whatever its size; never one for each pair.
    expect(sent("meet")).toBeLessThanOrEqual(sent("done") + sent("end"));
    expect(sent("release")).toBeLessThanOrEqual(sent("meet"));
    expect(await world.rows("dependency")).toHaveLength(10_000);
  }, 120_000);

  test("[N24] a batch's follower obeys onDead, and an empty batch is followed at once", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const job = defineJob({
      name: "leaf",
      run: (n: number) => {
        if (n === 1) throw new Dead("bad");
        return n;
      },
    });
    const last = defineJob({ name: "last", run: () => "after all" });
    const then = { job: last, input: null };
    const items = [0, 1, 2].map((input) => ({ job, input }));
    const strict = await one.hf.batch(items, { then });
    const lenient = await one.hf.batch(items, { then, onDead: "continue" });
    const empty = await one.hf.batch([], { then });
    await one.work([job, last], { queues, ...lease });
    await world.until(
      "ended",
      async () => (await one.hf.jobs.count({ state: ["done", "dead", "cancelled"] })) === 9,
    );
    expect((await jobOf(one, strict.then!.id)).state).toBe("cancelled");
    expect((await jobOf(one, lenient.then!.id)).state).toBe("done");
    expect((await jobOf(one, empty.then!.id)).state).toBe("done");
    expect((await one.hf.batch(items)).then).toBeNull();
  });

  test("[N24] a cancel goes down to the children where that is asked", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const leaf = defineJob({ name: "leaf", run: async (_: null, ctx) => ctx.waitFor("never") });
    const middle = defineJob({ name: "middle", run: async (_: null, ctx) => ctx.call(leaf, null) });
    const top = defineJob({ name: "top", run: async (_: null, ctx) => ctx.call(middle, null) });
    await one.work([leaf, middle, top], { queues, ...lease });
    const { id } = await one.hf.enqueue(top, null);
    await world.until("all wait", async () => (await one.hf.jobs.count({ state: "waiting" })) === 3);
    expect(await one.hf.jobs.cancel(id, { cascade: true })).toBe("cancelled");
    expect(await one.hf.jobs.count({ state: "cancelled" })).toBe(3);
  });

  test("[N24] cycles, unknown jobs and odd values are refused before anything is written", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const job = defineJob({ name: "node", run: () => 1 });
    const [a, b, c] = [newId(), newId(), newId()];
    const refused = (call: Promise<unknown>, code: string) => expect(call).rejects.toMatchObject({ code });
    await refused(one.hf.enqueue(job, 1, { id: a, after: [a] }), "AFTER_CYCLE");
    await refused(
      one.hf.enqueueMany([
        { job, input: 1, id: a, after: [c] },
        { job, input: 1, id: b, after: [a] },
        { job, input: 1, id: c, after: [b] },
      ]),
      "AFTER_CYCLE",
    );
    await refused(one.hf.enqueue(job, 1, { after: [newId()] }), "AFTER_UNKNOWN");
    await refused(one.hf.enqueue(job, 1, { after: ["x"] }), "BAD_OPTION");
    await refused(one.hf.enqueue(job, 1, { after: "x" as never }), "BAD_OPTION");
    const after = (value: unknown): Promise<unknown> => one.hf.enqueue(job, 1, { after: [value as string] });
    const first = { status: "enqueued", id: a };
    await expect(after(first)).rejects.toThrow("got an object. Pass its id: after: [job.id].");
    await expect(after(Promise.resolve(first))).rejects.toThrow("It is a promise: await it");
    await expect(after({})).rejects.toThrow(/got an object\.$/);
    await refused(one.hf.enqueue(job, 1, { after: [a], onDead: "explode" as never }), "BAD_OPTION");
    expect(await one.hf.jobs.count()).toBe(0);
    const done = await one.hf.enqueue(job, 1, { after: [] });
    await one.work([job], { queues, ...lease });
    await world.until("done", async () => (await jobOf(one, done.id)).state === "done");
    const next = await one.hf.enqueue(job, 1, { after: [done.id] });
    await world.until("done", async () => (await jobOf(one, next.id)).state === "done");
  });

  test("[N24] a job enqueued in a user's transaction may come after another, and the sweep finds a lost end", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const job = defineJob({ name: "node", run: () => 1 });
    const first = await one.hf.enqueue(job, 1);
    const handle =
      world.fresh.dialect === "sqlite"
        ? new DatabaseSync(world.fresh.url.slice(7))
        : new pg.Client({ connectionString: world.fresh.url });
    if (handle instanceof pg.Client) await handle.connect();
    onTestFinished(() => void (handle instanceof pg.Client ? handle.end() : handle.close()));
    const run = async (sql: string): Promise<void> =>
      void (handle instanceof pg.Client ? await handle.query(sql) : handle.exec(sql));
    await run(world.fresh.dialect === "sqlite" ? "begin immediate" : "begin");
    const second = await one.hf.enqueue(job, 2, { after: [first.id], tx: handle });
    if (world.fresh.dialect === "sqlite") await run("commit");
    await one.work([job], { queues, ...lease });
    await world.until("the first is done", async () => (await jobOf(one, first.id)).state === "done");
    // Postgres: the first has ended while the transaction was still open, so nobody could tell the second.
    if (world.fresh.dialect === "postgres") await run("commit");
    await world.until(
      "the second too",
      async () => (await one.hf.jobs.get(second.id))?.state === "done",
      "60s",
    );
  });
});
