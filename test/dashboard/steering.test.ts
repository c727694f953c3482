// What an operator steers by: purging a queue, limits for a while, who holds them, missed slots, another try from a step.
import { describe, expect, test } from "vitest";
import { defineJob, type Holdfast } from "../../src/index.ts";
import type {
  BackfillAnswer,
  DryRun,
  UpkeepTaskLine,
  LaneLine,
  LimitUse,
  Operation,
  TemporaryLimitLine,
  QueueTrends,
  WorkerLine,
  WorkerList,
} from "../../src/dashboard/api/contract.ts";
import { schemas } from "../../src/dashboard/api/openapi.ts";
import { FakeClock } from "../../src/testing/index.ts";
import { misfits } from "./misfits.ts";
import { onEveryStore } from "../support/stores.ts";
import { on } from "../cli/support.ts";
import { api, code } from "./support.ts";
import { operatorOf } from "../../src/operate/operator.ts";

const plain = defineJob({ name: "plain", queue: "mail", run: async (_input: unknown) => {} });

onEveryStore((target) => {
  describe("queues", () => {
    test("[K1] purge deletes what has not started, leaves what runs and what has ended, and is on the trail", async () => {
      const { hf, get, send, store } = await api(target);
      const jobs = (n: number, options = {}) =>
        hf.enqueueMany(Array.from({ length: n }, () => ({ job: plain, input: 1, ...options })));
      await jobs(2);
      const [ended, running] = await hf.lease({ queues: ["mail"], limit: 2, for: "10m" });
      await ended!.done(null);
      await jobs(5);
      await jobs(4, { delay: "1h" });
      const [other] = await jobs(1, { queue: "other" });
      const filter = { queue: "mail" };
      const dry = (await send<DryRun>("POST", "/jobs/bulk", { action: "purge", filter, dryRun: true })).body;
      expect(dry).toMatchObject({ matched: { count: 9, more: false }, action: "purge" });
      expect(misfits(schemas["BulkAnswer"]!, dry, "dry")).toEqual([]);
      expect(await hf.jobs.count({ queue: "mail" })).toBe(11);
      const done = (await send<Operation>("POST", "/jobs/bulk", { action: "purge", filter: dry.bounded }))
        .body;
      expect(done).toMatchObject({ state: "done", matched: 9, outcomes: { deleted: 9 } });
      expect((await hf.jobs.list({ queue: "mail" })).jobs.map(({ state }) => state).sort()).toEqual([
        "done",
        "running",
      ]);
      expect(await hf.jobs.get(other!.id)).not.toBeNull();
      const { entries } = (await get<{ entries: { action: string; outcome: string }[] }>("/audit")).body;
      expect(entries.map(({ action, outcome }) => `${action} ${outcome}`)).toEqual([
        "jobs.purge done",
        "jobs.purge started",
      ]);

      // One that a worker takes between the look and the delete runs on.
      const { id } = running!;
      expect(await hf.jobs.delete(id, { running: "leave" })).toBe("running");
      expect(await hf.jobs.delete({ ids: [id] }, { running: "leave" })).toEqual({
        matched: 1,
        deleted: 0,
        running: 1,
        not_found: 0,
      });
      await running!.done("all the same");
      expect(await hf.jobs.get(id)).toMatchObject({ state: "done" });

      await jobs(3);
      const holdfast = on(store);
      expect((await holdfast(["queues", "purge", "mail", "--dry-run"])).out).toBe(
        "Would delete 3 jobs of mail that have not started.\n",
      );
      expect((await holdfast(["queues", "purge", "mail", "--json"])).code).toBe(2);
      const purged = await holdfast(["queues", "purge", "mail", "--force", "--json"]);
      expect(purged.json()).toEqual({ matched: 3, deleted: 3, running: 0 });
      await expect(hf.queues.purge("no name")).rejects.toMatchObject({ code: "BAD_NAME" });
    });

    test("[K1] who may not delete may not purge", async () => {
      const { send } = await api(target, { auth: () => ({ name: "eve", role: "operator" }) });
      const body = { action: "purge", filter: { queue: "mail" } };
      const answer = await send("POST", "/jobs/bulk", body, { "x-holdfast": "1" });
      expect([answer.status, code(answer)]).toEqual([403, "FORBIDDEN"]);
    });

    test("[K2] trends are the minutes that workers counted, for every queue, oldest first", async () => {
      const clock = new FakeClock();
      const { hf, get } = await api(target, {}, { clock });
      const minute = Math.floor(clock.now() / 60_000) * 60_000;
      const row = {
        name: "plain",
        cancelled: 0,
        throttled: 0,
        released: 0,
        lost: 0,
        ran: "[0]",
        waited: "[0]",
      };
      await operatorOf(hf).store.series.putMetrics([
        { ...row, minute, queue: "mail", worker: "a", done: 3, failed: 1, dead: 1 },
        { ...row, minute, queue: "mail", worker: "b", done: 4, failed: 0, dead: 0 },
        {
          ...row,
          minute: minute - 120_000,
          queue: "mail",
          name: "other",
          worker: "a",
          done: 9,
          failed: 0,
          dead: 0,
        },
        { ...row, minute: minute - 3_600_000, queue: "old", worker: "a", done: 9, failed: 0, dead: 0 },
      ]);
      const { body } = await get<QueueTrends>("/series/queues?minutes=5");
      expect(body).toEqual({
        from: minute - 4 * 60_000,
        stepMs: 60_000,
        queues: { mail: { done: [0, 0, 9, 0, 7], failed: [0, 0, 0, 0, 2] } },
      });
      expect(misfits(schemas["QueueTrends"]!, body, "trends")).toEqual([]);
      expect((await get("/series/queues?minutes=61")).status).toBe(400);
    });
  });

  describe("limits for a while", () => {
    const minute = 60_000;
    const all = async (hf: Holdfast) => ({
      queue: (await hf.queues.list()).find(({ name }) => name === "mail")?.settings,
      lane: (await hf.lanes.list({ queue: "mail", key: "t-7" })).lanes[0],
      budget: (await hf.budgets.list()).find(({ name }) => name === "slack"),
    });

    test("[K1][H6] a queue's, a lane's and a budget's limits go back by themselves, to what was there before", async () => {
      const clock = new FakeClock();
      const { hf, get, send, store } = await api(target, {}, { clock });
      await hf.queues.set("mail", { concurrency: 10, slots: 3 });
      await hf.enqueue("sync", null, { queue: "mail", lane: "t-7" });
      await hf.budgets.set("slack", { limit: 50, per: "1m", default: true });
      const before = await all(hf);
      expect(before.lane?.tuned).toBe(false);

      const hour = { for: "1h" };
      expect((await send("PATCH", "/queues/mail", { concurrency: 2, ...hour })).status).toBe(200);
      expect((await send("PATCH", "/lanes/mail/t-7", { concurrency: 1, ...hour })).status).toBe(200);
      expect((await send("PUT", "/budgets/slack", { limit: 5, per: "1m", ...hour })).status).toBe(200);
      expect((await send("PUT", "/budgets/new", { limit: 5, per: "1m", ...hour })).status).toBe(200);
      const during = await all(hf);
      expect(during).toMatchObject({
        queue: { concurrency: 2, slots: 3 },
        lane: { concurrency: 1, tuned: true },
        budget: { limit: 5, tuned: true },
      });
      // A second change keeps the way back of the first, and says anew how long.
      await hf.queues.set(
        "mail",
        { concurrency: 4, rate: { limit: 9, per: "1m" } },
        { until: clock.now() + 30 * minute },
      );
      const { body } = await get<{ temporaryLimits: TemporaryLimitLine[] }>("/temporary-limits");
      expect(
        body.temporaryLimits.map(({ kind, name, lane, untilAt }) => [kind, name, lane, untilAt]),
      ).toEqual([
        ["queue", "mail", null, clock.now() + 30 * minute],
        ["budget", "new", null, clock.now() + 60 * minute],
        ["budget", "slack", null, clock.now() + 60 * minute],
        ["lane", "mail", "t-7", clock.now() + 60 * minute],
      ]);
      expect(body.temporaryLimits[0]?.back).toEqual({ concurrency: 10, rate: null });
      expect(misfits(schemas["TemporaryLimitList"]!, body, "temporary-limits")).toEqual([]);

      const worker = hf.work([plain], { queues: ["other"] });
      await worker.ready;
      await clock.advance("29m");
      expect((await all(hf)).queue).toMatchObject({ concurrency: 4 });
      // An upkeep task asks the database, which takes its own time: the clock goes on in small steps.
      const later = async <T>(look: () => Promise<T>): Promise<T> => {
        await clock.advance("10s");
        return look();
      };
      const patience = { timeout: 20_000 };
      await expect.poll(() => later(async () => (await all(hf)).queue), patience).toEqual(before.queue);
      // The limit goes back first, and its row is deleted after that.
      await expect.poll(async () => (await hf.temporaryLimits.list()).length, patience).toBe(3);
      await clock.advance("28m");
      await expect.poll(() => later(async () => (await hf.temporaryLimits.list()).length), patience).toBe(0);
      expect(await all(hf)).toEqual({
        ...before,
        budget: expect.objectContaining({ limit: 50, tuned: false }) as unknown,
      });
      expect((await hf.budgets.list()).map(({ name }) => name)).toEqual(["slack"]);
      await worker.stop();

      // What is set for good meanwhile stays; ended by hand, the rest goes back at once.
      await hf.queues.set("mail", { concurrency: 1, slots: 9 }, { for: "1h" });
      await hf.queues.set("mail", { slots: 5 });
      const holdfast = on(store);
      expect((await holdfast(["temporary-limits"])).out).toMatch(/queue +mail .*\{"concurrency":10\}/);
      expect((await send("DELETE", "/temporary-limits/queue/mail")).status).toBe(200);
      expect((await all(hf)).queue).toMatchObject({ concurrency: 10, slots: 5 });
      expect((await send("DELETE", "/temporary-limits/queue/mail")).status).toBe(404);
      expect(
        (await holdfast(["lanes", "set", "mail", "t-7", "--concurrency", "1", "--for", "1h"])).code,
      ).toBe(0);
      expect((await holdfast(["temporary-limits", "end", "lane", "mail", "t-7"])).out).toBe(
        "Restored the previous values.\n",
      );
      expect((await all(hf)).lane).toEqual(before.lane);
      for (const when of [{ for: "1h", until: 5 }, { for: "soon" }])
        await expect(hf.queues.set("mail", { concurrency: 1 }, when)).rejects.toThrow();
      expect(await hf.temporaryLimits.list()).toEqual([]);
    });

    test("[K1] throttled lanes are listed, most jobs first, and the use of limits is sampled by the minute", async () => {
      const clock = new FakeClock();
      const { hf, get } = await api(target, {}, { clock });
      await hf.queues.set("mail", { concurrency: 10 });
      await hf.budgets.set("slack", { limit: 50, per: "1m" });
      for (const [lane, n] of [
        ["full", 4],
        ["fuller", 6],
        ["free", 3],
        ["paused", 2],
      ] as const) {
        await hf.lanes.set("mail", lane, { concurrency: lane === "free" ? 9 : 1 });
        await hf.enqueueMany(
          Array.from({ length: n }, () => ({ job: "sync", input: null, queue: "mail", lane })),
        );
      }
      await hf.lanes.pause("mail", "paused");
      const leases = await hf.lease({ queues: ["mail"], limit: 4, for: "1h" });
      expect(leases.length).toBeGreaterThanOrEqual(3);
      const { body } = await get<{ lanes: LaneLine[] }>("/lanes/throttled");
      expect(body.lanes.map(({ lane, waiting }) => [lane, waiting.count])).toEqual([
        ["fuller", 5],
        ["full", 3],
        ["paused", 2],
      ]);
      expect(misfits(schemas["ThrottledLanes"]!, body, "lanes")).toEqual([]);
      const worker = hf.work([plain], { queues: ["other"] });
      await worker.ready;
      const sampled = async (): Promise<boolean> => {
        await clock.advance("10s");
        const { queues } = (await get<LimitUse>("/limits/use")).body;
        return queues[0]?.runningThen.some((n) => n !== null) ?? false;
      };
      await expect.poll(sampled, { timeout: 20_000 }).toBe(true);
      const { body: use } = await get<LimitUse>("/limits/use");
      expect(use.queues[0]).toMatchObject({
        name: "mail",
        concurrency: 10,
        running: leases.length,
        waiting: { count: 15 - leases.length, more: false },
      });
      expect(use.queues[0]?.runningThen.filter((n) => n !== null)).toContain(leases.length);
      expect(use.budgets["slack"]?.filter((n) => n !== null)).toContain(50);
      expect(misfits(schemas["LimitUse"]!, use, "use")).toEqual([]);
      await worker.stop();
      for (const lease of leases) await lease.release();
    });
  });

  describe("workers", () => {
    test("[K1][F7] who did an upkeep task last is known, and marked; another that takes over is marked instead", async () => {
      const clock = new FakeClock();
      const { hf, get, store } = await api(target, {}, { clock });
      const marked = async () =>
        (await get<{ workers: WorkerLine[]; upkeepTasks: UpkeepTaskLine[] }>("/workers")).body;
      const first = hf.work([plain], { queues: ["other"], name: "first" });
      await first.ready;
      const bury = async (): Promise<string | null> => {
        await clock.advance("10s");
        return (await marked()).upkeepTasks.find(({ name }) => name === "recovery")?.by ?? null;
      };
      await expect.poll(bury, { timeout: 20_000 }).toBe(first.id);
      const answer = await marked();
      expect(answer.workers.find(({ id }) => id === first.id)?.upkeepTasks).toContain("recovery");
      expect(misfits(schemas["WorkerList"]!, answer, "workers")).toEqual([]);
      const known = (await on(store)(["workers", "upkeep", "--json"])).json<{ name: string; by: string }[]>();
      expect(known.find(({ name }) => name === "recovery")?.by).toBe(first.id);
      await first.stop();
      const second = hf.work([plain], { queues: ["other"], name: "second" });
      await second.ready;
      await expect.poll(bury, { timeout: 20_000 }).toBe(second.id);
      expect(
        (await marked()).workers.map(({ name, upkeepTasks }) => [name, upkeepTasks.includes("recovery")]),
      ).toEqual([["second", true]]);
      await second.stop();
    });
  });

  test("[K1][F7] a worker tells what runs it and which jobs; failures of its last hour; and who died without a word", async () => {
    const { hf, get } = await api(target);
    const done = Promise.withResolvers<void>();
    const slow = defineJob({ name: "slow", queue: "other", run: () => done.promise });
    const worker = hf.work([slow], { queues: { other: 8 }, name: "first" });
    const made = await hf.enqueueMany(Array.from({ length: 7 }, (_, input) => ({ job: slow, input })));
    await expect.poll(() => worker.running, { timeout: 20_000 }).toBe(7);
    const { store } = operatorOf(hf);
    await store.sessions.open({
      kind: "worker",
      workerId: "dead-1",
      name: "dead",
      host: "h",
      pid: 7,
      version: "0",
      release: "build-9",
      queues: {},
      names: [],
      leaseMs: 1,
    });
    const minute = Math.floor((await store.now()) / 60_000) * 60_000;
    await store.failures.put(
      [
        {
          group: "0123456789abcdef",
          name: "slow",
          firstAt: minute,
          lastAt: minute,
          sample: made[0]!.id,
          message: '"no"',
        },
      ],
      [{ at: minute, group: "0123456789abcdef", queue: "other", version: 1, worker: worker.id, n: 3 }],
    );
    const look = async (): Promise<WorkerList> => (await get<WorkerList>("/workers")).body;
    await expect.poll(async () => (await look()).lost.length, { timeout: 20_000 }).toBe(1);
    const answer = await look();
    expect(misfits(schemas["WorkerList"]!, answer, "workers")).toEqual([]);
    expect(answer.lost[0]).toMatchObject({ id: "dead-1", name: "dead", pid: 7, release: "build-9", held: 0 });
    expect(answer.workers).toHaveLength(1);
    const [line] = answer.workers;
    expect(line).toMatchObject({ runtime: `node ${process.versions.node}`, running: 7, failed: 3 });
    expect(line!.runs.map(({ name, queue }) => [name, queue])).toEqual(
      Array.from({ length: 5 }, () => ["slow", "other"]),
    );
    expect(made.map(({ id }) => id)).toEqual(expect.arrayContaining(line!.runs.map(({ id }) => id)));
    done.resolve();
    await worker.stop();
  });

  describe("backfill", () => {
    test("[K1][G6] each slot that passed without a job gets one, once; those that fired are passed over", async () => {
      const clock = new FakeClock();
      const { hf, get, send, store } = await api(target, {}, { clock });
      const hour = 3_600_000;
      const start = Math.ceil(clock.now() / hour) * hour;
      clock.set(start + 1);
      const seen: number[] = [];
      const report = defineJob({
        name: "report",
        run: async (_input: unknown, ctx) => void seen.push(ctx.schedule!.at.getTime()),
      });
      await hf.schedules.put({
        name: "hourly",
        cron: "0 * * * *",
        job: report,
        input: null,
        overlap: "skip",
      });
      // One slot fires by itself; then nobody is there for five hours, and `missed: "one"` makes one job of them.
      const worker = hf.work([report], { queues: { default: 1 } });
      await worker.ready;
      const later = async (): Promise<number> => {
        await clock.advance("30s");
        return seen.length;
      };
      clock.set(start + hour - 10_000);
      await expect.poll(later, { timeout: 20_000 }).toBe(1);
      await worker.stop();
      clock.set(start + 6 * hour + 10_000);
      expect(seen).toEqual([start + hour]);

      const range = { from: start - 2 * hour, to: start + 4 * hour };
      const dry = (
        await send<BackfillAnswer>("POST", "/schedules/hourly/backfill", { ...range, dryRun: true })
      ).body;
      // The next slot of the schedule is still its own: it has not been looked at yet.
      expect(dry).toMatchObject({ dryRun: true, had: 1, more: false });
      expect(dry.occurrences.map(({ at }) => (at - start) / hour)).toEqual([-2, -1, 0]);
      expect(misfits(schemas["BackfillAnswer"]!, dry, "dry")).toEqual([]);
      expect(await hf.jobs.count({ name: "report" })).toBe(1);
      await hf.schedules.pause("hourly");
      const paused = await hf.schedules.backfill("hourly", { ...range, dryRun: true });
      expect(paused.occurrences.map(({ at }) => (at.getTime() - start) / hour)).toEqual([-2, -1, 0, 2, 3]);
      await hf.schedules.resume("hourly");
      clock.set(start + 7 * hour + 10_000);

      const again = hf.work([report], { queues: { default: 1 } });
      await again.ready;
      await expect.poll(later, { timeout: 20_000 }).toBe(2);
      await again.stop();
      expect(seen[1]).toBe(start + 7 * hour);
      const all = { from: new Date(start - 2 * hour), to: new Date(start + 8 * hour) };
      const first = await hf.schedules.backfill("hourly", { ...all, limit: 3 });
      expect(first.occurrences.map(({ at, status }) => [(at.getTime() - start) / hour, status])).toEqual([
        [-2, "enqueued"],
        [-1, "enqueued"],
        [0, "enqueued"],
      ]);
      expect(first).toMatchObject({ more: true });
      const [one, two] = await Promise.all([
        hf.schedules.backfill("hourly", all),
        hf.schedules.backfill("hourly", all),
      ]);
      expect([...one.occurrences, ...two.occurrences].map(({ at }) => (at.getTime() - start) / hour)).toEqual(
        [2, 3, 4, 5, 6],
      );
      const twice = await hf.schedules.backfill("hourly", all);
      expect(twice).toEqual({ occurrences: [], had: 10, more: false });
      expect(await hf.jobs.count({ name: "report", state: "ready" })).toBe(8);
      const last = hf.work([report], { queues: { default: 4 } });
      await last.ready;
      await last.idle();
      await last.stop();
      expect(seen.map((at) => (at - start) / hour).sort((a, b) => a - b)).toEqual([
        -2, -1, 0, 1, 2, 3, 4, 5, 6, 7,
      ]);
      // The schedule itself has not moved.
      expect((await hf.schedules.get("hourly"))?.counts.fired).toBe(2);

      const holdfast = on(store);
      const listed = await holdfast([
        "schedules",
        "backfill",
        "hourly",
        "--from",
        new Date(start - 4 * hour).toISOString(),
        "--to",
        new Date(start).toISOString(),
        "--dry-run",
      ]);
      expect(listed.out).toBe(
        `2 occurrences of hourly without a job; 2 with one.\n${[-4, -3].map((n) => `${new Date(start + n * hour).toISOString()}\n`).join("")}`,
      );
      expect((await send("POST", "/schedules/hourly/backfill", { from: start - 4 * hour })).status).toBe(200);
      const { entries } = (await get<{ entries: { action: string; outcome: string }[] }>("/audit")).body;
      expect(entries.map(({ action, outcome }) => `${action} ${outcome}`)).toEqual([
        "schedules.backfill 2 made",
      ]);
      expect(await hf.jobs.count({ name: "report", state: "ready" })).toBe(2);
      expect((await send("POST", "/schedules/none/backfill", { from: 0 })).status).toBe(404);
      expect((await send("POST", "/schedules/hourly/backfill", { from: "soon" })).status).toBe(400);
      expect((await send("POST", "/schedules/hourly/backfill", { from: 9e15 })).status).toBe(400);
    });
  });
});
