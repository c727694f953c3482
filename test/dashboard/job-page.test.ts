// What one job's page asks for besides the job: a long history in pieces, what was done to it, its schedule's other runs, and
// whether its input fits.
import { describe, expect, test } from "vitest";
import * as z from "zod";
import type {
  AuditLine,
  WorkflowHistory,
  InputCheck,
  JobDetail,
  RunList,
} from "../../src/dashboard/api/contract.ts";
import { defineJob } from "../../src/index.ts";
import { FakeClock } from "../../src/testing/index.ts";
import { advancing } from "../support/test-clients.ts";
import { onEveryStore } from "../support/stores.ts";
import { api, code, over } from "./support.ts";
import { operatorOf } from "../../src/operate/operator.ts";

interface Trail {
  readonly entries: readonly AuditLine[];
  readonly before: number | null;
}

onEveryStore((target) => {
  describe("one job's page", () => {
    test("[K1] a page of a long history reads that page; a signal that the run waits for is told from any page", async () => {
      const { hf, get } = await api(target);
      const long = defineJob({
        name: "long",
        run: async (_: null, ctx) => {
          const late = ctx.waitFor("late");
          await ctx.all(Array.from({ length: 30 }, (_unused, n) => ctx.step(`s${n}`, () => n)));
          await late;
        },
      });
      const worker = hf.work([long], { queues: { default: 1 } });
      const { id } = await hf.enqueue(long, null);
      while ((await hf.jobs.get(id))?.waitsFor !== "signal") await new Promise((next) => setTimeout(next, 5));
      await worker.stop();
      const { store } = operatorOf(hf);
      const all: string[] = [];
      store.workflows.steps = (job) => {
        all.push(job);
        return Promise.resolve([]);
      };
      const newest = (await get<WorkflowHistory>(`/jobs/${id}/history?limit=10`)).body;
      expect(newest.steps.map(({ name, seq }) => [name, seq])).toEqual(
        Array.from({ length: 10 }, (_, n) => [`s${20 + n}`, 21 + n]),
      );
      expect(newest).toMatchObject({ stepCount: 31, stepCountMore: false, earlier: 21 });
      expect(newest.signals).toMatchObject([{ name: "late", state: "waiting" }]);
      // As many as can be drawn, however many the page has.
      expect(newest.graph.nodes.filter(({ seq }) => seq !== null)).toHaveLength(31);
      const first = (await get<WorkflowHistory>(`/jobs/${id}/history?limit=30&before=21`)).body;
      expect(first.steps.map(({ seq }) => seq)).toEqual(Array.from({ length: 21 }, (_, n) => n));
      expect(first.earlier).toBeNull();
      expect((await get<JobDetail>(`/jobs/${id}`)).body.why.text).toContain('the signal "late"');
      expect(all).toEqual([]);
    });

    test("[K1] the trail of one job has what was done to it and nothing else, in pages, for who may see the trail", async () => {
      const { hf, get, send } = await api(target);
      const [one, other] = [await hf.enqueue("a", null, { delay: "1d" }), await hf.enqueue("a", null)];
      for (const verb of ["pause", "resume", "run-now", "cancel"])
        await send("POST", `/jobs/${one.id}/${verb}`);
      await send("POST", `/jobs/${other.id}/cancel`);
      await send("POST", "/queues/mail/pause");
      const trail = async (query: string): Promise<Trail> => (await get<Trail>(`/audit?${query}`)).body;
      const mine = await trail(`target=${one.id}`);
      expect(mine.entries.map(({ action }) => action)).toEqual([
        "jobs.cancel",
        "jobs.run-now",
        "jobs.resume",
        "jobs.pause",
      ]);
      expect(mine.entries.every((entry) => entry.target === one.id)).toBe(true);
      const page = await trail(`target=${one.id}&limit=3`);
      expect(page.before).not.toBeNull();
      expect((await trail(`target=${one.id}&limit=3&before=${page.before}`)).entries).toEqual(
        mine.entries.slice(3),
      );
      expect((await trail("target=mail")).entries.map(({ action }) => action)).toEqual(["queues.pause"]);
      expect((await trail("target=nobody")).entries).toEqual([]);
      expect((await trail("limit=200")).entries).toHaveLength(6);
      expect((await get("/audit?target=")).status).toBe(400);
      const eve = over(hf, { auth: () => ({ name: "eve", role: "operator" }) });
      const refused = await eve.get(`/audit?target=${one.id}`);
      expect([refused.status, code(refused)]).toEqual([403, "FORBIDDEN"]);
    });

    test("[K1] a run that sleeps as it was told is not stuck; one whose sleep is over, or that waits for a signal, is", async () => {
      const clock = new FakeClock();
      const { hf, get } = await api(target, {}, { clock });
      const nap = defineJob({ name: "nap", run: (_: null, ctx) => ctx.sleep("night", "8h") });
      const ask = defineJob({ name: "ask", run: (_: null, ctx) => ctx.waitFor("go", { timeout: "30d" }) });
      const worker = hf.work([nap, ask], { queues: { default: 2 }, lease: "20d", heartbeat: "9d" });
      const asleep = await hf.enqueue(nap, null);
      const asks = await hf.enqueue(ask, null);
      const settled = async (): Promise<void> => {
        while (
          (await hf.jobs.get(asleep.id))?.waitsFor !== "sleep" ||
          (await hf.jobs.get(asks.id))?.waitsFor !== "signal"
        )
          await new Promise((next) => setTimeout(next, 5));
      };
      await advancing(clock, settled());
      await advancing(clock, worker.stop());
      const stuck = async (ms: number): Promise<string[]> =>
        (await get<RunList>(`/runs?at=${ms}`)).body.runs.map(({ name }) => name).sort();
      await clock.advance("2h");
      expect(await stuck(3_600_000)).toEqual(["ask"]);
      await clock.advance("6h");
      expect(await stuck(3_600_000)).toEqual(["ask"]);
      await clock.advance("2h");
      expect(await stuck(3_600_000)).toEqual(["ask", "nap"]);
      expect(await stuck(4 * 3_600_000)).toEqual(["ask"]);
    });

    test("[K1] a job that a schedule made names it, and the runs before and after", async () => {
      const { hf, get } = await api(target);
      await hf.schedules.put({ name: "hourly", cron: "0 * * * *", job: "tick", input: null });
      await hf.schedules.put({ name: "hourly2", cron: "0 * * * *", job: "tick", input: null });
      await hf.schedules.pause("hourly");
      const from = Date.UTC(2026, 0, 1);
      const to = from + 3 * 3_600_000;
      for (const name of ["hourly", "hourly2"]) await hf.schedules.backfill(name, { from, to });
      const made = (await hf.schedules.runs("hourly", { limit: 10 })).filter(({ by }) => by === "backfill");
      const [last, middle, first] = made;
      const of = async (id: string) => (await get<JobDetail>(`/jobs/${id}`)).body.schedule;
      expect(await of(middle!.jobId)).toEqual({
        name: "hourly",
        at: middle!.at.getTime(),
        by: "backfill",
        previous: { at: first!.at.getTime(), jobId: first!.jobId },
        next: { at: last!.at.getTime(), jobId: last!.jobId },
      });
      expect((await of(made.at(-1)!.jobId))?.previous).toBeNull();
      expect((await of(last!.jobId))?.next).toBeNull();
      expect(await of((await hf.enqueue("plain", null)).id)).toBeNull();
    });

    test("[K1] an input is held against its kind's schema, where the definition is here; what does not fit is told, redacted", async () => {
      const mail = defineJob({
        name: "mail",
        input: z.object({ to: z.string(), n: z.number({ error: () => "no number; password=hunter2" }) }),
      });
      const { hf, get } = await api(target, { jobs: [mail] });
      const check = async (input: unknown, name = "mail"): Promise<InputCheck> =>
        (await get<InputCheck>(`/jobs/${(await hf.enqueue(name, input)).id}/check`)).body;
      expect(await check({ to: "ann", n: 1 })).toEqual({ checked: true, issues: [] });
      const { checked, issues } = await check({ to: "ann", n: "x" });
      expect([checked, issues.length, issues[0]?.path]).toEqual([true, 1, ".n"]);
      expect(JSON.stringify(issues)).not.toContain("hunter2");
      expect(await check(1, "unknown")).toEqual({ checked: false, issues: [] });
      expect((await get("/jobs/0199c1d8-7c00-7000-8000-000000000000/check")).status).toBe(404);
      const { id } = await hf.enqueue("mail", {});
      const eve = over(hf, { jobs: [mail], auth: () => ({ name: "eve", permissions: ["view"] }) });
      expect((await eve.get(`/jobs/${id}/check`)).status).toBe(403);
    });
  });
});
