// hf.jobs.edit: another time, queue or priority, and what is passed over.
import { describe, expect, test } from "vitest";
import { defineJob, type Holdfast, type JobEdit } from "../../src/index.ts";
import { judgeEdit, judgeEnded, type StandingJob } from "../../src/jobs/editable.ts";
import { FakeClock } from "../../src/testing/index.ts";
import { onEveryStore } from "../support/stores.ts";
import { jobOf, newWorld } from "../support/world.ts";
import { connect, fresh, refusal } from "../support/test-clients.ts";
import { operatorOf } from "../../src/operate/operator.ts";

const plain = defineJob({ name: "plain", run: async (_input: unknown) => {} });
const unknownId = "0199c1d8-7c00-7000-8000-000000000000";
const queues = { default: 4, other: 4 } as const;

async function order(hf: Holdfast, queue: string): Promise<unknown[]> {
  const leases = await hf.lease({ queues: [queue], limit: 10, for: "10m" });
  return leases.map(({ input }) => input);
}

describe("what may be edited", () => {
  const job: StandingJob = {
    running: false,
    waits: null,
    begun: false,
    deadlineAt: null,
    queue: "a",
    keyScope: null,
  };
  const at = (ms: number) => ({ delayMs: ms, runAt: null, queue: null, priority: null });
  const to = (queue: string) => ({ delayMs: null, runAt: null, queue, priority: null });
  const now = 1_000_000;

  test.each([
    ["a job that stands in line", job, at(5), "edited"],
    ["one that runs", { ...job, running: true }, at(5), "running"],
    ["a run that sleeps, to another time", { ...job, waits: "sleep", begun: true }, at(5), "waiting"],
    ["a run that sleeps, to another queue", { ...job, waits: "sleep", begun: true }, to("b"), "edited"],
    ["one that comes after others, to another time", { ...job, waits: "jobs" }, at(5), "edited"],
    ["beyond its deadline", { ...job, deadlineAt: now + 4 }, at(5), "past_deadline"],
    ["up to its deadline", { ...job, deadlineAt: now + 5 }, at(5), "edited"],
    [
      "one that has started once is past its deadline for good",
      { ...job, deadlineAt: now, begun: true },
      at(5),
      "edited",
    ],
    ["unique in its queue, to another", { ...job, keyScope: "queue:a" }, to("b"), "keyed"],
    ["unique in its queue, to the same", { ...job, keyScope: "queue:a" }, to("a"), "edited"],
    ["unique of its name, to another queue", { ...job, keyScope: "job:plain" }, to("b"), "edited"],
  ] as const)("%s", (_what, standing, change, outcome) => {
    expect(judgeEdit(standing, change, now)).toBe(outcome);
  });
});

test("of a job that has ended only where a dead one is may be changed", () => {
  const nothing = { delayMs: null, runAt: null, queue: null, priority: null };
  const dead = { dead: true, queue: "a", keyScope: null };
  expect(judgeEnded(dead, { ...nothing, queue: "b" })).toBe("edited");
  expect(judgeEnded(dead, { ...nothing, priority: 7 })).toBe("edited");
  expect(judgeEnded(dead, { ...nothing, queue: "b", delayMs: 0 })).toBe("ended");
  expect(judgeEnded(dead, { ...nothing, queue: "b", runAt: 5 })).toBe("ended");
  expect(judgeEnded({ ...dead, dead: false }, { ...nothing, queue: "b" })).toBe("ended");
  expect(judgeEnded({ ...dead, keyScope: "queue:a" }, { ...nothing, queue: "b" })).toBe("keyed");
  expect(judgeEnded({ ...dead, keyScope: "queue:a" }, { ...nothing, queue: "a" })).toBe("edited");
});

onEveryStore((target) => {
  describe("hf.jobs.edit", () => {
    test("[K1] dead jobs go to another queue and stay dead there; a retry runs them there", async () => {
      const { hf } = await fresh(target);
      const laned = defineJob({ name: "laned", lane: (n: number) => `lane-${n}`, run: async () => {} });
      const unique = defineJob({
        name: "unique",
        unique: { key: () => "k", scope: "queue" },
        run: async (_input: unknown) => {},
      });
      const dead = [await hf.enqueue(plain, 1), await hf.enqueue(laned, 2), await hf.enqueue(unique, 3)].map(
        ({ id }) => id,
      );
      for (const lease of await hf.lease({ queues: ["default"], limit: 5, for: "1m" }))
        await lease.dead("no");
      const done = await hf.enqueue(plain, 4);
      for (const lease of await hf.lease({ queues: ["default"], limit: 5, for: "1m" })) await lease.done();
      const live = await hf.enqueue(plain, 5);
      expect(await hf.jobs.edit(done.id, { queue: "aside" })).toBe("ended");
      expect(await hf.jobs.edit(dead[0]!, { delay: "1h" })).toBe("ended");
      expect(
        await hf.jobs.edit({ queue: "default", state: "dead" }, { queue: "aside", priority: 7 }),
      ).toMatchObject({
        matched: 3,
        edited: 2,
        keyed: 1,
      });
      expect(await hf.jobs.count({ queue: "aside", state: "dead" })).toBe(2);
      expect(await hf.jobs.get(dead[0]!)).toMatchObject({
        state: "dead",
        queue: "aside",
        priority: 7,
        error: "no",
      });
      expect(await hf.jobs.get(live.id)).toMatchObject({ state: "ready", queue: "default" });
      // Nothing of them is claimed before they are retried; then in the new queue alone, in the lane of their key there.
      expect(await order(hf, "aside")).toEqual([]);
      expect(await hf.jobs.retry({ queue: "aside", state: "dead" })).toMatchObject({ retried: 2 });
      expect(await order(hf, "default")).toEqual([5]);
      expect(new Set(await order(hf, "aside"))).toEqual(new Set([1, 2]));
      expect((await hf.lanes.list({ queue: "aside" })).lanes).toMatchObject([{ key: "lane-2", running: 1 }]);
    });

    test("[K1] a job goes to another time, and back, by the database's clock", async () => {
      const clock = new FakeClock();
      const { hf } = await fresh(target, { clock });
      const { id } = await hf.enqueue(plain, 1);
      expect(await hf.jobs.edit(id, { delay: "2h" })).toBe("edited");
      expect(await hf.jobs.get(id)).toMatchObject({
        state: "scheduled",
        runAt: new Date(clock.now() + 7_200_000),
      });
      expect(await hf.lease({ limit: 1, for: "1m" })).toEqual([]);
      expect(await hf.jobs.edit(id, { at: new Date(clock.now() - 1) })).toBe("edited");
      expect(await hf.jobs.get(id)).toMatchObject({ state: "ready" });
      expect(await hf.lease({ limit: 1, for: "1m" })).toHaveLength(1);
    });

    test("[K1] a job goes to another queue and priority, and is claimed there alone, in its new order", async () => {
      const { hf, store } = await fresh(target);
      const ids: string[] = [];
      for (let n = 0; n < 4; n += 1) ids.push((await hf.enqueue(plain, n)).id);
      expect(await hf.jobs.edit({ ids: ids.slice(1) }, { queue: "other" })).toMatchObject({
        matched: 3,
        edited: 3,
      });
      expect(await hf.jobs.edit(ids[3]!, { priority: 7 })).toBe("edited");
      expect(await hf.jobs.get(ids[3]!)).toMatchObject({ queue: "other", priority: 7, name: "plain" });
      expect(await hf.jobs.count({ queue: "other" })).toBe(3);
      expect(await order(hf, "default")).toEqual([0]);
      expect(await order(hf, "other")).toEqual([3, 1, 2]);
      // What was asked for and where it stands name the same line.
      expect(
        await store.query(
          `select count(*) as n from ${store.table("ready")} r join ${store.table("job")} j on j.${store.jobKey} = r.${store.jobKey} where j.job_type <> r.job_type`,
        ),
      ).toEqual([{ n: 0 }]);
    });

    test("[K1] what runs, has ended or is unknown is passed over and counted", async () => {
      const { hf } = await fresh(target);
      const ids: string[] = [];
      for (let n = 0; n < 5; n += 1) ids.push((await hf.enqueue(plain, n)).id);
      const [first, second] = await hf.lease({ limit: 2, for: "10m" });
      await second!.done(null);
      const result = await hf.jobs.edit({ ids: [...ids, unknownId] }, { delay: "1h", queue: "other" });
      expect(result).toEqual({
        matched: 5,
        edited: 3,
        running: 1,
        ended: 1,
        waiting: 0,
        past_deadline: 0,
        keyed: 0,
        not_found: 0,
      });
      expect(await hf.jobs.edit(unknownId, { delay: 1 })).toBe("not_found");
      expect(await hf.jobs.edit("nonsense", { delay: 1 })).toBe("not_found");
      expect(await hf.jobs.get(first!.id)).toMatchObject({ state: "running", queue: "default" });
      await first!.done(null); // its holder can still settle it
      expect(await hf.jobs.get(first!.id)).toMatchObject({ state: "done", queue: "default" });
      expect(
        await hf.jobs.edit({ queue: "default" }, { priority: 1 }),
        "ended jobs do not match",
      ).toMatchObject({
        matched: 0,
      });
    });

    test("[K1] 1,200 jobs by filter, in batches, each once", async () => {
      const { hf } = await fresh(target);
      for (let i = 0; i < 3; i += 1)
        await hf.enqueueMany(Array.from({ length: 400 }, (_, n) => ({ job: plain, input: n })));
      expect(await hf.jobs.edit({ queue: "default" }, { queue: "other", priority: 2 })).toMatchObject({
        matched: 1_200,
        edited: 1_200,
      });
      expect(await hf.jobs.count({ queue: "other", state: "ready" })).toBe(1_200);
    });

    test("[K1] a lane goes along: its jobs keep their key and the limits that hold there", async () => {
      const world = await newWorld(target);
      const one = await world.client();
      const started: number[] = [];
      const held: (() => void)[] = [];
      const job = defineJob({
        name: "laned",
        lane: ({ tenant }: { tenant: string; n: number }) => tenant,
        lanes: { concurrency: 1 },
        run: async ({ n }) => {
          started.push(n);
          await new Promise<void>((resolve) => held.push(resolve));
        },
      });
      for (let n = 0; n < 3; n += 1) await one.hf.enqueue(job, { tenant: "acme", n });
      // A worker has told of the name's limits.
      const early = await one.work([job], { queues: { nothing: 1 } });
      await world.until("the name is known", async () =>
        (await operatorOf(one.hf).store.definitions.list()).has("laned"),
      );
      await early.stop();
      expect(await one.hf.jobs.edit({ queue: "default" }, { queue: "other" })).toMatchObject({ edited: 3 });
      const lanes = await one.hf.lanes.list({ queue: "other" });
      expect(lanes.lanes).toMatchObject([{ key: "acme", concurrency: 1, waiting: 3 }]);
      expect((await one.hf.lanes.list({ queue: "default" })).lanes).toMatchObject([{ waiting: 0 }]);
      await one.work([job], { queues });
      for (let n = 0; n < 3; n += 1) {
        await world.until(`job ${n} runs`, () => started.length === n + 1);
        await world.advance("2s");
        expect(started).toHaveLength(n + 1);
        held[n]!();
      }
      await world.until("all are done", async () => (await one.hf.jobs.count({ state: "done" })) === 3);
    });

    test("[K1] a job in a lane that is put off sleeps until then and wakes by itself", async () => {
      const world = await newWorld(target);
      const one = await world.client();
      const ran: number[] = [];
      const job = defineJob({
        name: "laned",
        lane: () => "acme",
        run: (n: number) => void ran.push(n),
      });
      const { id } = await one.hf.enqueue(job, 1);
      expect(await one.hf.jobs.edit(id, { delay: "1h" })).toBe("edited");
      await one.work([job], { queues });
      await world.advance("20s");
      expect(ran).toEqual([]);
      expect(await one.hf.jobs.edit(id, { delay: "10s" })).toBe("edited");
      await world.until("it ran", () => ran.length === 1, "30s");
    });

    test("[K1] a unique key stays with its job; one that holds in its queue alone keeps it there", async () => {
      const { hf } = await fresh(target);
      const perName = defineJob({ name: "per-kind", unique: () => "k", run: async (_input: unknown) => {} });
      const perQueue = defineJob({
        name: "per-queue",
        unique: { key: () => "k", scope: "queue" },
        run: async (_input: unknown) => {},
      });
      const a = await hf.enqueue(perName, 1);
      const b = await hf.enqueue(perQueue, 1);
      expect(await hf.jobs.edit({ ids: [a.id, b.id] }, { queue: "other" })).toMatchObject({
        edited: 1,
        keyed: 1,
      });
      expect(await hf.jobs.edit(b.id, { delay: "1h", priority: 3 })).toBe("edited");
      expect(await hf.enqueue(perName, 2)).toMatchObject({ status: "duplicate", id: a.id });
      expect(await hf.enqueue(perQueue, 2)).toMatchObject({ status: "duplicate", id: b.id });
      await hf.jobs.cancel(a.id);
      expect(await hf.enqueue(perName, 3)).toMatchObject({ status: "enqueued" });
    });

    test("[K1] a job that comes after others keeps waiting for them, and then for its new time", async () => {
      const clock = new FakeClock();
      const { hf } = await fresh(target, { clock });
      const first = await hf.enqueue(plain, "first");
      const then = await hf.enqueue(plain, "then", { after: [first.id] });
      expect(await hf.jobs.edit(then.id, { delay: "1h", queue: "other" })).toBe("edited");
      expect(await hf.jobs.get(then.id)).toMatchObject({ state: "waiting", queue: "other" });
      const [lease] = await hf.lease({ queues: ["default"], limit: 1, for: "10m" });
      await lease!.done(null);
      expect(await hf.jobs.get(then.id)).toMatchObject({
        state: "scheduled",
        runAt: new Date(clock.now() + 3_600_000),
      });
    });

    test("[K1] a deadline to start by is not stepped over", async () => {
      const { hf } = await fresh(target);
      const { id } = await hf.enqueue(plain, 1, { deadline: "30m" });
      expect(await hf.jobs.edit(id, { delay: "1h" })).toBe("past_deadline");
      expect(await hf.jobs.get(id)).toMatchObject({ state: "ready" });
      expect(await hf.jobs.edit(id, { delay: "20m" })).toBe("edited");
    });

    test("[K1] a run that sleeps is not woken or put off, and goes on in its new queue", async () => {
      const world = await newWorld(target);
      const one = await world.client();
      const done: string[] = [];
      const job = defineJob({
        name: "workflow",
        run: async (_input: unknown, ctx) => {
          await ctx.step("one", () => void done.push("one"));
          await ctx.sleep("night", "20s");
          await ctx.step("two", () => void done.push(`two in ${ctx.queue}`));
        },
      });
      const { id } = await one.hf.enqueue(job, null);
      await one.work([job], { queues });
      await world.until("it sleeps", async () => (await jobOf(one, id)).state === "scheduled");
      const { runAt } = await jobOf(one, id);
      expect(await one.hf.jobs.edit(id, { delay: "5m" })).toBe("waiting");
      expect(await one.hf.jobs.edit(id, { queue: "other", priority: 4 })).toBe("edited");
      expect(await jobOf(one, id)).toMatchObject({ state: "scheduled", queue: "other", runAt });
      await world.until("it is done", async () => (await jobOf(one, id)).state === "done", "1m");
      expect(done).toEqual(["one", "two in other"]);
    });

    test("[K1] a claim and an edit of the same jobs agree on who had each", async () => {
      const { hf, store } = await fresh(target);
      const other = await connect(store);
      await hf.enqueueMany(Array.from({ length: 200 }, (_, n) => ({ job: plain, input: n })));
      const [leases, edited] = await Promise.all([
        Promise.all(
          Array.from({ length: 10 }, () => hf.lease({ queues: ["default"], limit: 10, for: "10m" })),
        ),
        other.jobs.edit({ queue: "default" }, { queue: "other" }),
      ]);
      const held = leases.flat();
      for (const lease of held) expect((await hf.jobs.get(lease.id))?.queue).toBe("default");
      expect(edited.edited + held.length).toBe(200);
      expect(await hf.jobs.count({ queue: "other", state: "ready" })).toBe(edited.edited);
    });

    test("what makes no sense is refused before anything is written", async () => {
      const { hf } = await fresh(target);
      const { id } = await hf.enqueue(plain, 1);
      for (const [change, code] of [
        [{}, "BAD_OPTION"],
        [{ delay: "1h", at: new Date() }, "BAD_OPTION"],
        [{ delay: "-1h" }, "BAD_DURATION"],
        [{ at: new Date(Number.NaN) }, "BAD_INSTANT"],
        [{ queue: "no queue!" }, "BAD_NAME"],
        [{ priority: 1.5 }, "BAD_PRIORITY"],
        [{ lane: "x" }, "UNKNOWN_OPTION"],
      ] as const)
        expect(await refusal(hf.jobs.edit(id, change as JobEdit)), JSON.stringify(change)).toMatchObject({
          code,
        });
      expect(await refusal(hf.jobs.edit({}, { priority: 1 }))).toMatchObject({ code: "BAD_OPTION" });
      expect(await hf.jobs.get(id)).toMatchObject({ state: "ready", queue: "default", priority: 0 });
    });
  });
});
