// What schedules will do and did, and which jobs run unusually long.
import { describe, expect, test } from "vitest";
import type {
  Calendar,
  ScheduleHistory,
  ScheduleRuns,
  Series,
  SlowNames,
  StuckList,
} from "../../src/dashboard/api/contract.ts";
import { schemas } from "../../src/dashboard/api/openapi.ts";
import { readStuck } from "../../src/dashboard/api/stuck.ts";
import { defineJob, defineSchedule } from "../../src/index.ts";
import { FakeClock } from "../../src/testing/index.ts";
import { advancing } from "../support/test-clients.ts";
import { onEveryStore } from "../support/stores.ts";
import { misfits } from "./misfits.ts";
import { api, code } from "./support.ts";

onEveryStore((target) => {
  describe("schedules over the API", () => {
    test("[K1] the newest 20 jobs of each are listed with how they ended, a triggered one among them", async () => {
      const clock = new FakeClock(Date.UTC(2026, 5, 1, 0, 0, 30));
      const { hf, get, send } = await api(target, {}, { clock });
      let n = 0;
      const tick = defineJob({
        name: "tick",
        retry: { attempts: 1 },
        run: async (_: null) => {
          n += 1;
          if (n % 5 === 0) throw new Error("fifth");
        },
      });
      const schedules = [defineSchedule({ name: "constructor", cron: "* * * * *", job: tick, input: null })];
      const worker = hf.work([tick], { queues: { default: 1 }, schedules, lease: "20d", heartbeat: "9d" });
      await worker.ready;
      // However long the database takes: until enough slots have made their jobs.
      while (((await hf.schedules.get("constructor"))?.counts.fired ?? 0) < 22) {
        await clock.advance("20s");
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      await advancing(clock, worker.idle());
      const { id } = (await send<{ id: string }>("POST", "/schedules/constructor/trigger")).body;
      await advancing(clock, worker.idle());
      const { runs } = (await get<ScheduleRuns>("/schedules/runs")).body;
      const made = runs["constructor"] ?? [];
      expect(made.length).toBe(20);
      expect(made.at(-1)?.id).toBe(id);
      expect(made.filter(({ state }) => state === "dead").length).toBeGreaterThanOrEqual(3);
      expect(made.filter(({ state }) => state === "done").length).toBeGreaterThanOrEqual(14);
      expect(made.every(({ lateMs }) => lateMs !== null && lateMs >= 0)).toBe(true);
      const [state] = await hf.schedules.list();
      expect(state?.recent.length).toBe(20);
      expect(state?.recent.at(-1)).toMatchObject({ jobId: id });
      await hf.jobs.delete(id);
      const later = (await get<ScheduleRuns>("/schedules/runs")).body.runs["constructor"] ?? [];
      expect(later.at(-1)).toMatchObject({ id, state: null, ranMs: null });
      await advancing(clock, worker.stop());
    });

    test("[K1] the runs of one schedule are told as the client tells them, newest first and bounded", async () => {
      const clock = new FakeClock(Date.UTC(2026, 5, 1, 12, 0, 30));
      const { hf, get, send } = await api(target, {}, { clock });
      const tick = defineJob({
        name: "tick",
        retry: { attempts: 1 },
        run: async (_: null, ctx) => {
          if (ctx.schedule!.at.getUTCHours() === 10) throw new Error("at ten");
        },
      });
      await hf.schedules.put({ name: "team:hourly", cron: "0 * * * *", job: tick, input: null });
      const path = "/schedules/team%3Ahourly";
      expect((await get<ScheduleHistory>(`${path}/runs`)).body).toEqual({ runs: [] });
      await send("POST", `${path}/backfill`, { from: Date.UTC(2026, 5, 1, 9), to: Date.UTC(2026, 5, 1, 12) });
      const { id } = (await send<{ id: string }>("POST", `${path}/trigger`)).body;
      const worker = hf.work([tick], { queues: { default: 1 }, lease: "20d", heartbeat: "9d" });
      await worker.ready;
      await advancing(clock, worker.idle());
      const { status, body } = await get<ScheduleHistory>(`${path}/runs`);
      expect([status, misfits(schemas["ScheduleHistory"]!, body, "runs")]).toEqual([200, []]);
      expect(
        body.runs.map(({ at, by, state, lateMs }) => [new Date(at).getUTCHours(), by, state, lateMs]),
      ).toEqual([
        [12, "hand", "done", null],
        [11, "backfill", "done", null],
        [10, "backfill", "dead", null],
        [9, "backfill", "done", null],
      ]);
      expect(body.runs[0]?.jobId).toBe(id);
      const told = await hf.schedules.runs("team:hourly");
      expect(body.runs.map(({ startedAt, endedAt, ranMs }) => [startedAt, endedAt, ranMs])).toEqual(
        told.map(({ startedAt, endedAt, ranMs }) => [Number(startedAt), Number(endedAt), ranMs]),
      );
      expect((await get<ScheduleHistory>(`${path}/runs?limit=2`)).body.runs).toEqual(body.runs.slice(0, 2));
      expect((await get(`${path}/runs?limit=501`)).status).toBe(400);
      const none = await get("/schedules/nowhere/runs");
      expect([none.status, code(none)]).toEqual([404, "SCHEDULE_NOT_FOUND"]);
      await advancing(clock, worker.stop());
    });

    test("[K1] the next day is counted by the quarter of an hour, without paused ones, and next runs have notes", async () => {
      const clock = new FakeClock(Date.UTC(2026, 2, 28, 12, 5));
      const { hf, get } = await api(target, {}, { clock });
      const put = (name: string, cron: string) =>
        hf.schedules.put({ name, cron, job: "tick", input: null, timezone: "Europe/Berlin" });
      await put("nightly", "30 2 * * *");
      await put("hourly", "0 * * * *");
      await put("also-hourly", "0 * * * *");
      await put("resting", "* * * * *");
      await hf.schedules.pause("resting");
      const { body } = await get<Calendar>("/schedules/calendar");
      expect([body.from, body.stepMs, body.pieces.length, body.estimated]).toEqual([
        Date.UTC(2026, 2, 28, 12),
        900_000,
        96,
        false,
      ]);
      // 24 hours of two, less none for the hour that is skipped in Berlin: an hour is an hour. And one at night.
      expect(body.pieces.reduce((sum, { count }) => sum + count, 0)).toBe(49);
      const busiest = body.pieces.find(({ count }) => count === 3);
      expect(busiest?.most.map(({ name }) => name).sort()).toEqual(["also-hourly", "hourly", "nightly"]);
      const preview = (
        await get<{ at: number[]; runs: { local: string; note: string | null }[] }>(
          "/schedules/nightly/preview?n=2",
        )
      ).body;
      expect(preview.at[0]).toBe(Date.UTC(2026, 2, 29, 1));
      expect(preview.runs[0]?.note).toMatch(/clocks go forward 1 h/);
      expect(preview.runs[1]).toMatchObject({ local: "2026-03-30 02:30:00", note: null });
    });

    test("[K1] what runs more than three times as long as most of its kind is named, and nothing else", async () => {
      const clock = new FakeClock(Date.UTC(2026, 5, 1, 10));
      const { hf, get } = await api(target, {}, { clock });
      const hold = Promise.withResolvers<void>();
      const run = async (input: { ms: number }): Promise<void> => {
        if (input.ms < 0) await hold.promise;
        else await new Promise<void>((resolve) => void clock.after(input.ms, resolve));
      };
      const known = defineJob({ name: "known", run });
      const rare = defineJob({ name: "rare", run });
      const worker = hf.work([known, rare], { queues: { default: 50 }, lease: "20d", heartbeat: "9d" });
      await worker.ready;
      await hf.enqueueMany(Array.from({ length: 30 }, () => ({ job: known, input: { ms: 2_000 } })));
      await clock.advance("10s");
      await advancing(clock, worker.idle());
      await clock.advance("2m");
      // Of an idle system too: nothing of it waits or runs.
      expect((await get<SlowNames>("/slowest")).body.names).toMatchObject([{ name: "known", count: 30 }]);
      const { id } = await hf.enqueue(known, { ms: -1 });
      await hf.enqueue(rare, { ms: -1 });
      while (worker.running < 2) {
        await clock.advance(1);
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      expect((await get<StuckList>("/stuck")).body.jobs).toEqual([]);
      await clock.advance("30s");
      const { jobs } = (await get<StuckList>("/stuck")).body;
      expect(jobs.map((job) => [job.id, job.name])).toEqual([[id, "known"]]);
      expect(jobs[0]?.p95Ms).toBeGreaterThanOrEqual(1_900);
      const { names } = (await get<SlowNames>("/slowest")).body;
      expect(names).toMatchObject([{ name: "known", count: 30 }]);
      expect(names[0]?.p95Ms).toBe(jobs[0]?.p95Ms);
      hold.resolve();
      await advancing(clock, worker.stop());
    });
  });
});

onEveryStore((target) => {
  test("[K1] a build is marked where its first worker starts, and workers that do not say leave no mark", async () => {
    const clock = new FakeClock(Date.UTC(2026, 5, 1, 10));
    const { hf, get } = await api(target, {}, { clock });
    const job = defineJob({ name: "job", run: async (_: null) => {} });
    const start = async (release?: string): Promise<void> => {
      const options = { queues: { default: 1 }, lease: "20d", heartbeat: "9d" } as const;
      const worker = hf.work([job], release === undefined ? options : { ...options, release });
      await worker.ready;
      await advancing(clock, worker.stop());
      await clock.advance("10m");
    };
    const deploys = async (): Promise<Series["deploys"]> =>
      (await get<Series>(`/series?from=${clock.now() - 3_600_000}&to=${clock.now()}`)).body.deploys;
    await start();
    expect(await deploys()).toEqual([]);
    for (const release of ["v1", "v2", "v1"]) await start(release);
    const found = await deploys();
    expect(found.map(({ release }) => release)).toEqual(["v1", "v2"]);
    await clock.advance("2h");
    await start("v2");
    expect(await deploys()).toEqual([]);
    expect(() => hf.work([job], { queues: ["default"], release: "no spaces, please" })).toThrow(/release/);
  });
});

test("a kind of which little is known is not judged, and what is short is never stuck", async () => {
  const lines = [
    { name: "few", running: 1 },
    { name: "quick", running: 1 },
  ].map((line) => ({ ...line, queue: "q", longestSince: 1_000 }));
  const insight = {
    running: async () => ({ now: 1_900, jobTypes: lines as never }),
    browse: async () => {
      throw new Error("nobody is suspicious");
    },
  };
  const usual = async () =>
    new Map([
      ["few", { count: 19, p95Ms: 1 }],
      ["quick", { count: 1_000, p95Ms: 5 }],
    ]);
  expect(await readStuck({ insight, usual })).toEqual({ jobs: [] });
});
