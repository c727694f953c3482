// One job in detail over the API: tries of steps, pages of a long history, the history as a file, and the log.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { WorkflowHistory, JobDetail, LogList, RunList } from "../../src/dashboard/api/contract.ts";
import { dashboard } from "../../src/dashboard/index.ts";
import { readRunFile } from "../../src/workflows/run-file.ts";
import { triesOf, withTry } from "../../src/workflows/step-tries.ts";
import { defineJob, defineMachine, finish, fixed, type Holdfast, next } from "../../src/index.ts";
import type { StepRecord } from "../../src/workflows/store.ts";
import { FakeClock } from "../../src/testing/index.ts";
import { advancing } from "../support/test-clients.ts";
import { cli, folder, on } from "../cli/support.ts";
import { onEveryStore } from "../support/stores.ts";
import { api, code, over } from "./support.ts";

const unknownId = "0199c1d8-7c00-7000-8000-000000000000";

async function until(clock: FakeClock, is: () => Promise<boolean>): Promise<void> {
  await advancing(
    clock,
    (async () => {
      while (!(await is())) await new Promise((resolve) => setTimeout(resolve, 5));
    })(),
  );
}

const order = defineJob({
  name: "order",
  retry: { attempts: 1 },
  run: async (input: { cardToken: string }, ctx) => {
    let tries = 0;
    await ctx.step("reserve", async () => ({ shelf: "B12", password: "hunter2" }));
    await ctx.step(
      "charge",
      async ({ attempt }) => {
        tries = attempt;
        if (attempt < 3) throw new Error(`503 from the bank, token=${input.cardToken}`);
        return { tries };
      },
      { retry: { attempts: 3, backoff: fixed("10s") } },
    );
    await ctx.waitFor("packed", { key: "o" });
    return null;
  },
});

async function waiting(hf: Holdfast, clock: FakeClock): Promise<string> {
  const worker = hf.work([order], { queues: { default: 2 }, lease: "20d", heartbeat: "9d" });
  const { id } = await hf.enqueue(order, { cardToken: "tok_1" });
  await until(clock, async () => (await hf.jobs.get(id))?.waitsFor === "signal");
  await advancing(clock, worker.stop());
  return id;
}

onEveryStore((target) => {
  describe("a run over the API", () => {
    test("[K1] runs are listed newest first with what each is at, by state, name, failure and age; jobs without steps are not", async () => {
      const clock = new FakeClock();
      const { hf, get } = await api(target, {}, { clock });
      const list = async (query = ""): Promise<RunList> => (await get<RunList>(`/runs${query}`)).body;
      expect(await list()).toEqual({ runs: [], cursor: null, cut: false });
      await hf.enqueue("plain", null);
      const first = await waiting(hf, clock);
      const second = await waiting(hf, clock);
      const { runs } = await list();
      expect(runs.map(({ id }) => id)).toEqual([second, first]);
      expect(runs[0]).toMatchObject({
        name: "order",
        queue: "default",
        state: "waiting",
        endedAt: null,
        known: 3,
        done: 2,
        retrying: false,
        at: { name: "signal:packed", kind: "signal", jobId: null },
      });
      const page = await list("?limit=1");
      expect(page).toMatchObject({ runs: [{ id: second }], cursor: second });
      expect(await list(`?limit=1&cursor=${page.cursor}`)).toMatchObject({
        runs: [{ id: first }],
        cursor: null,
      });
      await hf.signal("packed", { key: "o" });
      const worker = hf.work([order], { queues: { default: 2 }, lease: "20d", heartbeat: "9d" });
      await until(clock, async () => (await hf.jobs.get(first))?.state === "done");
      await advancing(clock, worker.stop());
      expect(await list("?state=done")).toMatchObject({ runs: [{ id: first, at: null, done: 3, known: 3 }] });
      expect((await list("?state=waiting&name=order")).runs.map(({ id }) => id)).toEqual([second]);
      expect((await list("?name=other")).runs).toEqual([]);
      expect((await list("?queue=other")).runs).toEqual([]);
      expect((await list("?retrying=true")).runs).toEqual([]);
      await clock.advance("10m");
      expect((await list("?at=600000")).runs.map(({ id }) => id)).toEqual([second]);
      expect((await list("?at=86400000")).runs).toEqual([]);
      expect((await get("/runs?cursor=no")).status).toBe(400);
      expect((await get("/runs?at=-1")).status).toBe(400);
    });

    test("[K1] a sleep that was slept is over, though nobody wrote so", async () => {
      const clock = new FakeClock();
      const { hf, get } = await api(target, {}, { clock });
      const list = async (query = ""): Promise<RunList> => (await get<RunList>(`/runs${query}`)).body;
      const nap = defineJob({
        name: "nap",
        run: async (_: null, ctx) => {
          await ctx.step("before", () => 1);
          await ctx.sleep("rest", "5s");
          await ctx.waitFor("go");
        },
      });
      const worker = hf.work([nap], { queues: { default: 2 }, lease: "20d", heartbeat: "9d" });
      const { id } = await hf.enqueue(nap, null);
      await until(clock, async () => (await hf.jobs.get(id))?.waitsFor === "signal");
      expect((await list()).runs).toMatchObject([{ id, known: 3, done: 2, at: { kind: "signal" } }]);
      await hf.signal("go");
      await until(clock, async () => (await hf.jobs.get(id))?.state === "done");
      expect((await list("?name=nap")).runs).toMatchObject([{ id, known: 3, done: 3, at: null }]);
      await advancing(clock, worker.stop());
    });

    test("[K1] a sleep is not over before the run went on, and a machine's last step is when the job ended", async () => {
      const { hf, get } = await api(target);
      const list = async (query = ""): Promise<RunList> => (await get<RunList>(`/runs${query}`)).body;
      const nap = defineJob({
        name: "nap",
        run: async (_: null, ctx) => {
          await ctx.step("before", () => 1);
          await ctx.sleep("rest", "1h");
        },
      });
      const machine = defineMachine({
        name: "machine",
        start: "first",
        steps: {
          first: { run: async (_: null) => next("second", 1) },
          second: { run: async (_: number) => finish() },
        },
      });
      const worker = hf.work([nap, machine], { queues: { default: 2 } });
      const { id } = await hf.enqueue(nap, null);
      await expect.poll(async () => (await hf.jobs.get(id))?.waitsFor, { timeout: 30_000 }).toBe("sleep");
      expect((await list("?name=nap")).runs).toMatchObject([{ known: 2, done: 1, at: { name: "rest" } }]);
      const ended = (await hf.enqueue(machine, null)).id;
      await hf.result(ended, { timeout: "30s" });
      expect((await list("?name=machine")).runs).toMatchObject([{ id: ended, known: 2, done: 2, at: null }]);
      await worker.stop();
    });

    test("[K3] a traced job tells its trace's id, and where that is seen is a web address", async () => {
      const traceLink = "https://traces.example.org/{traceId}";
      const { hf, get } = await api(target, { traceLink });
      const plain = await hf.enqueue("plain", null);
      hf.use({
        enqueue: (request, next) => {
          request.carrier["traceparent"] = `00-${"4b".repeat(16)}-${"0a".repeat(8)}-01`;
          return next();
        },
      });
      const traced = await hf.enqueue("traced", null);
      const idOf = async (id: string) => (await get<JobDetail>(`/jobs/${id}`)).body.traceId;
      expect([await idOf(plain.id), await idOf(traced.id)]).toEqual([null, "4b".repeat(16)]);
      const auth = { token: "a-token-of-enough-letters" };
      for (const wrong of ["javascript:alert('{traceId}')", "https://traces.example.org/", 7])
        expect(() => dashboard(hf, { auth, traceLink: wrong as string })).toThrow(
          expect.objectContaining({ code: "BAD_OPTION" }),
        );
      const page = await dashboard(hf, { auth, traceLink })(new Request("http://localhost/"));
      expect(await page.text()).toContain(traceLink);
    });

    test("[K1] shows when each step was tried, by the clock of the database", async () => {
      const clock = new FakeClock();
      const { hf, get } = await api(target, {}, { clock });
      const id = await waiting(hf, clock);
      const { body } = await get<WorkflowHistory>(`/jobs/${id}/history`);
      const [reserve, charge, signal] = body.steps;
      expect([reserve?.triedAt.length, signal?.triedAt.length, body.stepCount, body.earlier]).toEqual([
        1,
        0,
        3,
        null,
      ]);
      expect(charge).toMatchObject({ name: "charge", state: "done", tries: 3 });
      const [first, second, third] = charge!.triedAt.map(({ startedAt }) => startedAt);
      expect(first).toBe(charge!.startedAt);
      expect(second! - first!).toBeGreaterThanOrEqual(9_990);
      expect(third! - second!).toBeGreaterThanOrEqual(9_990);
      expect(charge!.triedAt.length).toBe(3);
    });

    test("[K1] how long a failed attempt ran is told, with its error", async () => {
      const clock = new FakeClock();
      const { hf, get } = await api(target, {}, { clock });
      const slow = defineJob({
        name: "slow",
        retry: { attempts: 2, backoff: fixed("1h") },
        run: async (_: null) => {
          await new Promise<void>((resolve) => void clock.after(3_000, resolve));
          throw new Error("late");
        },
      });
      const worker = hf.work([slow], { queues: { default: 1 }, lease: "20d", heartbeat: "9d" });
      const { id } = await hf.enqueue(slow, null);
      await until(clock, async () => (await hf.jobs.get(id))?.errors.length === 1);
      const { body } = await get<JobDetail>(`/jobs/${id}`);
      expect(body.errors[0]?.ranMs).toBeGreaterThanOrEqual(3_000);
      const { attempts } = (await get<WorkflowHistory>(`/jobs/${id}/history`)).body;
      expect(attempts[0]!.endedAt! - attempts[0]!.startedAt!).toBe(body.errors[0]!.ranMs);
      await advancing(clock, worker.stop());
    });

    test("[K1] a long history comes in pages, the newest first, and every step on one of them", async () => {
      const { hf, get } = await api(target);
      const many = defineJob({
        name: "many",
        run: async (_: null, ctx) => {
          for (let n = 0; n < 25; n += 1) await ctx.step(`s${n}`, () => n);
        },
      });
      const worker = hf.work([many], { queues: { default: 1 } });
      const { id } = await hf.enqueue(many, null);
      await hf.result(id, { timeout: "30s" });
      await worker.stop();
      const names: string[] = [];
      let before = "";
      for (let pages = 0; pages < 5; pages += 1) {
        const { body } = await get<WorkflowHistory>(`/jobs/${id}/history?limit=10${before}`);
        names.unshift(...body.steps.map(({ name }) => name));
        expect(body.stepCount).toBe(25);
        if (body.earlier === null) break;
        before = `&before=${body.earlier}`;
      }
      expect(names).toEqual(Array.from({ length: 25 }, (_, n) => `s${n}`));
      for (const wrong of ["limit=0", "limit=1001", "before=-1", "before=x", "other=1"])
        expect((await get(`/jobs/${id}/history?${wrong}`)).status).toBe(400);
    });

    test("[N12] its history is a file without secrets that `holdfast check` replays without a database", async () => {
      const clock = new FakeClock();
      const { hf, get, store } = await api(target, {}, { clock });
      const id = await waiting(hf, clock);
      const answer = await get<object>(`/jobs/${id}/run.json`);
      expect(answer.status).toBe(200);
      expect(answer.headers.get("content-disposition")).toBe(`attachment; filename="run-${id}.json"`);
      const text = JSON.stringify(answer.body);
      for (const secret of ["tok_1", "hunter2"]) expect(text).not.toContain(secret);
      expect(readRunFile(text, "run.json")).toMatchObject({ redacted: true, run: { name: "order" } });
      expect((await get<{ entries: object[] }>("/audit")).body.entries[0]).toMatchObject({
        action: "jobs.history",
        target: id,
      });
      expect((await get(`/jobs/${unknownId}/run.json`)).status).toBe(404);

      const raw = await on(store)(["jobs", "history", id]);
      expect(raw.out).toContain("tok_1");
      expect((await on(store)(["jobs", "history", unknownId])).code).toBe(1);

      // The same code fits, and code that has renamed a step does not.
      const cwd = folder("check");
      writeFileSync(join(cwd, "run.json"), text);
      writeFileSync(join(cwd, "raw.json"), raw.out);
      const source = JSON.stringify(new URL("../../src/index.ts", import.meta.url).href);
      const write = (file: string, step: string): void =>
        writeFileSync(
          join(cwd, file),
          `import { defineJob } from ${source};
export default { url: "sqlite:nowhere.db", jobs: [defineJob({ name: "order", run: async (_input, ctx) => {
  await ctx.step("reserve", () => 1);
  await ctx.step("${step}", () => 1, { retry: { attempts: 3 } });
  await ctx.waitFor("packed", { key: "o" });
} })] };\n`,
        );
      write("fits.ts", "charge");
      write("breaks.ts", "bill");
      const fits = await cli(["check", "run.json", "raw.json", "--config", "fits.ts", "--json"], { cwd });
      expect([fits.code, fits.err]).toEqual([0, ""]);
      expect(fits.json()).toEqual({ checked: 2, broken: [] });
      const breaks = await cli(["check", "run.json", "--config", "breaks.ts", "--json"], { cwd });
      expect(breaks.code).toBe(1);
      expect(breaks.json<{ broken: object[] }>().broken[0]).toMatchObject({
        id,
        name: "order",
        step: "bill",
      });
    });

    test("[K1] what its handler said is shown redacted, filtered and in pages, to who may see payloads", async () => {
      const { hf, get } = await api(target, {}, { jobLog: { level: "debug" } });
      const chatty = defineJob({
        name: "chatty",
        run: async (_: null, ctx) => {
          ctx.log.debug({}, "begins");
          ctx.log.info({ apiKey: "k-123", user: "ann" }, "asked with authorization: Bearer abcdefghijkl");
          for (let n = 0; n < 20; n += 1) ctx.log.warn({ n }, `slow ${n}`);
          ctx.log.error({}, "<script>alert(1)</script>");
        },
      });
      const worker = hf.work([chatty], { queues: { default: 1 } });
      const { id } = await hf.enqueue(chatty, null);
      await hf.result(id, { timeout: "30s" });
      await worker.stop();
      await hf.jobLog.flush();
      const log = async (query = ""): Promise<LogList> =>
        (await get<LogList>(`/jobs/${id}/log${query}`)).body;
      const all = await log();
      expect([all.kept, all.matched, all.lines.length, all.earlier]).toEqual([23, 23, 23, null]);
      const text = JSON.stringify(all);
      for (const secret of ["k-123", "abcdefghijkl"]) expect(text).not.toContain(secret);
      expect(all.lines[1]?.details).toBe('{"apiKey":"[redacted]","user":"ann"}');
      expect((await log("?level=warn")).matched).toBe(21);
      expect((await log("?search=SLOW%201")).matched).toBe(11);
      // Who searches for a secret finds nothing: what is looked at is what is shown.
      expect((await log("?search=k-123")).matched).toBe(0);
      const page = await log("?limit=5&level=warn");
      expect(page.lines.map(({ message }) => message).slice(0, 1)).toEqual(["slow 16"]);
      const next = await log(`?limit=5&level=warn&before=${page.earlier}`);
      expect(next.lines.at(-1)?.message).toBe("slow 15");
      for (const wrong of ["level=loud", "limit=0", "before=x", `search=${"x".repeat(401)}`])
        expect((await get(`/jobs/${id}/log?${wrong}`)).status).toBe(400);
      expect((await get(`/jobs/${unknownId}/log`)).status).toBe(404);

      const eve = over(hf, { auth: () => ({ name: "eve", permissions: ["view", "jobs:export"] }) });
      for (const path of ["log", "run.json"]) {
        const refused = await eve.get(`/jobs/${id}/${path}`);
        expect([refused.status, code(refused)]).toEqual([403, "FORBIDDEN"]);
      }
      const viewer = over(hf, { auth: () => ({ name: "eve", permissions: ["view", "view:payload"] }) });
      expect((await viewer.get(`/jobs/${id}/run.json`)).status).toBe(403);
      expect((await viewer.get(`/jobs/${id}/log`)).status).toBe(200);
      const hidden = (await eve.get<WorkflowHistory>(`/jobs/${id}/history`)).body;
      expect(JSON.stringify(hidden)).not.toContain("hunter2");
    });
  });
});

describe("files and tries", () => {
  test("a file that is none is refused with what is wrong", () => {
    const good = {
      format: "holdfast-run",
      version: 1,
      takenAt: 1,
      redacted: false,
      run: { id: "1", name: "a", input: "null", attempt: 1, crashes: 0, running: false, extras: null },
      steps: [],
    };
    expect(readRunFile(JSON.stringify(good), "f").run.name).toBe("a");
    for (const wrong of [
      "",
      "null",
      "[]",
      JSON.stringify({ ...good, format: "x" }),
      JSON.stringify({ ...good, version: 2 }),
      JSON.stringify({ ...good, run: null }),
      JSON.stringify({ ...good, run: { ...good.run, attempt: "1" } }),
      JSON.stringify({ ...good, steps: {} }),
      JSON.stringify({ ...good, steps: [{ name: "a" }] }),
    ])
      expect(() => readRunFile(wrong, "f")).toThrow(
        expect.objectContaining({ code: "BAD_RUN_FILE" }) as Error,
      );
  });

  test("a first try that went well writes nothing; tries are bounded, and follow the step's own start", () => {
    const record = (label: string | null): StepRecord =>
      ({ kind: "step", startedAt: 1_000, endedAt: 9_000, label }) as StepRecord;
    expect(withTry(null, 5, 6, true)).toBeNull();
    let label = withTry(null, 100, 10, false);
    expect(triesOf(record(label))).toEqual([{ startedAt: 1_000, endedAt: 1_010 }]);
    label = withTry(record(label), 400, -5, true);
    expect(triesOf(record(label))).toEqual([
      { startedAt: 1_000, endedAt: 1_010 },
      { startedAt: 1_300, endedAt: 1_300 },
    ]);
    for (let n = 0; n < 100; n += 1) label = withTry(record(label), n, 1, false);
    expect(triesOf(record(label)).length).toBe(32);
    expect(triesOf(record("{spoilt"))).toEqual([{ startedAt: 1_000, endedAt: 9_000 }]);
    expect(triesOf({ ...record("[[1,2]]"), kind: "sleep" })).toEqual([]);
  });
});
