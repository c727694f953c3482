// Schedules, limits, workflows and series through the HTTP API: what the page reads is what the client has, on every store.
import { describe, expect, test } from "vitest";
import { loadIn, loadOf, seriesOf } from "../../src/dashboard/api/charts.ts";
import { workflowOf } from "../../src/dashboard/api/workflow-history.ts";
import type {
  AuditLine,
  BreakerLine,
  BudgetLine,
  WorkflowHistory,
  LaneList,
  Overview,
  QueueDetail,
  ScheduleLine,
  TimingPreview,
  Load,
  Series,
} from "../../src/dashboard/api/contract.ts";
import { defineJob, fixed, type JobHistory } from "../../src/index.ts";
import { FakeClock } from "../../src/testing/index.ts";
import { advancing } from "../support/test-clients.ts";
import { onEveryStore } from "../support/stores.ts";
import { api, code } from "./support.ts";
import { operatorOf } from "../../src/operate/operator.ts";

const plain = defineJob({ name: "plain", run: async (_input: unknown) => {} });

onEveryStore((target) => {
  describe("the API of the features", () => {
    test("[K3] schedules: list, preview, edit, reset, pause, resume, trigger, remove, each on the audit trail", async () => {
      const { hf, get, send } = await api(target);
      await hf.schedules.put({
        name: "nightly",
        cron: "0 2 * * *",
        timezone: "Europe/Berlin",
        job: plain,
        input: { secret: 1 },
      });
      await hf.schedules.put({ name: "often", every: "90s", job: plain, input: null, overlap: "skip" });
      const list = async (): Promise<readonly ScheduleLine[]> =>
        (await get<{ schedules: ScheduleLine[] }>("/schedules")).body.schedules;
      const [nightly, often] = await list();
      expect(nightly).toMatchObject({
        name: "nightly",
        job: "plain",
        queue: "default",
        cron: "0 2 * * *",
        everyMs: null,
        timezone: "Europe/Berlin",
        missed: "one",
        overlap: "allow",
        edited: [],
        unserved: true,
        error: null,
      });
      expect(nightly!.nextAt).toBe((await hf.schedules.get("nightly"))?.nextAt?.getTime());
      expect(often).toMatchObject({ cron: null, everyMs: 90_000, timezone: null, overlap: "skip" });
      expect((await get<{ at: number[] }>("/schedules/nightly/preview?n=3")).body.at).toEqual(
        (await hf.schedules.preview("nightly", 3)).map(Number),
      );

      expect([nightly!.words, often!.words]).toEqual([
        "Every day at 02:00, Europe/Berlin",
        "Every 90 seconds",
      ]);
      expect(nightly!.obstacles).toEqual([]);
      await hf.queues.pause("default");
      await hf.holds.set("freeze", { reason: "a move" });
      expect((await list())[0]!.obstacles).toEqual([
        "queue default is paused",
        "queue default is held by freeze",
      ]);
      await hf.queues.resume("default");
      await hf.holds.clear("freeze");

      const draft = async (query: string): Promise<TimingPreview> =>
        (await get<TimingPreview>(`/schedules/preview?${query}`)).body;
      const weekdays = await draft("cron=0+9+*+*+1-5&timezone=Europe/London&n=3");
      expect(weekdays).toMatchObject({ words: "Weekdays at 09:00, Europe/London", error: null });
      expect(weekdays.runs.map(({ local }) => local.slice(11))).toEqual(["09:00:00", "09:00:00", "09:00:00"]);
      expect((await draft("every=10m")).runs).toHaveLength(5);
      for (const [query, said] of [
        ["cron=0+25+*+*+*", 'got "0 25 * * *"'],
        ["cron=0+9+*+*+*&timezone=Mars/Base", "Mars/Base"],
        ["cron=0+0+0+1+1+*+2020", "its years have passed"],
        ["every=soon", "every"],
        ["every=1ms", "every must be from 1 second to 10 years"],
        ["every=1h&timezone=UTC", "It has an interval"],
        ["", "It needs either cron or every"],
        [`cron=${"*".repeat(300)}`, "longer than 256"],
      ] as const) {
        const answer = await draft(query);
        expect([query, answer.words, answer.runs]).toEqual([query, null, []]);
        expect(answer.error).toContain(said);
        expect(answer.error).not.toContain("draft");
      }
      expect((await get("/schedules/preview?cron=*&n=21")).status).toBe(400);

      expect((await send("PATCH", "/schedules/nightly", { cron: "0 4 * * *", missed: "all" })).status).toBe(
        200,
      );
      expect((await list())[0]).toMatchObject({
        cron: "0 4 * * *",
        missed: "all",
        edited: ["cron", "missed"],
      });
      expect(code(await send("PATCH", "/schedules/nightly", { cron: "nonsense" }))).toBe("BAD_CRON");
      expect((await send("POST", "/schedules/nightly/reset")).status).toBe(200);
      expect((await list())[0]).toMatchObject({ cron: "0 2 * * *", missed: "one", edited: [] });
      await send("POST", "/schedules/nightly/pause");
      expect((await list())[0]).toMatchObject({ paused: true, nextAt: null });
      const { id } = (await send<{ id: string }>("POST", "/schedules/nightly/trigger")).body;
      expect(await hf.jobs.get(id)).toMatchObject({ name: "plain", input: { secret: 1 } });
      await send("POST", "/schedules/nightly/resume");
      expect((await list())[0]!.paused).toBe(false);
      expect((await send("DELETE", "/schedules/often")).status).toBe(200);
      expect((await send("DELETE", "/schedules/often")).status).toBe(404);
      for (const verb of ["pause", "resume", "reset", "trigger"]) {
        const answer = await send("POST", `/schedules/nowhere/${verb}`);
        expect([verb, answer.status, code(answer)]).toEqual([verb, 404, "SCHEDULE_NOT_FOUND"]);
      }
      expect((await list()).map(({ name }) => name)).toEqual(["nightly"]);
      const { entries } = (await get<{ entries: AuditLine[] }>("/audit")).body;
      expect(entries.map(({ action }) => action).reverse()).toEqual([
        "schedules.set",
        "schedules.reset",
        "schedules.pause",
        "schedules.trigger",
        "schedules.resume",
        "schedules.remove",
      ]);
    });

    test("[K3] lanes: what waits and runs in them, in pages, with limits and pauses", async () => {
      const { hf, get, send } = await api(target);
      const job = defineJob({ name: "lane", queue: "q", run: async (_n: number) => {} });
      for (const lane of ["a", "b/c", "d"])
        await hf.enqueueMany([1, 2].map((n) => ({ job, input: n, lane })));
      await hf.lease({ queues: ["q"], limit: 1, for: "10m" });
      const answer = await send("PATCH", "/lanes/q/b%2Fc", {
        concurrency: 3,
        rate: { limit: 10, per: "1m" },
        weight: 2,
        paused: true,
      });
      expect(answer.status).toBe(200);
      const first = (await get<LaneList>("/lanes?queue=q&limit=2")).body;
      const rest = (await get<LaneList>(`/lanes?queue=q&limit=2&cursor=${first.cursor}`)).body;
      expect(rest.cursor).toBeNull();
      const lanes = [...first.lanes, ...rest.lanes];
      expect(lanes.find(({ lane }) => lane === "b/c")).toEqual({
        queue: "q",
        lane: "b/c",
        waiting: { count: 2, more: false },
        running: 0,
        concurrency: 3,
        rate: { limit: 10, perMs: 60_000 },
        rateOpensAt: null,
        weight: 2,
        paused: true,
        tuned: true,
      });
      expect(lanes.map(({ running }) => running).reduce((a, b) => a + b)).toBe(1);
      await send("PATCH", "/lanes/q/b%2Fc", { paused: false, rate: null });
      expect((await hf.lanes.list({ key: "b/c" })).lanes).toMatchObject([
        { paused: false, rate: null, concurrency: 3 },
      ]);
      expect(code(await send("PATCH", "/lanes/q/a", { concurrency: 0 }))).toBe("BAD_OPTION");
      expect(code(await get("/lanes?cursor=nonsense"))).toBe("BAD_CURSOR");
    });

    test("[K3] budgets: set, drain, reset, remove; breakers: open ones first, reset", async () => {
      const { hf, get, send } = await api(target);
      const budgets = async (): Promise<readonly BudgetLine[]> =>
        (await get<{ budgets: BudgetLine[] }>("/budgets")).body.budgets;
      await hf.budgets.set("slack", { limit: 50, per: "1h", default: true });
      await send("PUT", "/budgets/slack", { limit: 5, per: "1h", burst: 20 });
      expect(await budgets()).toEqual([
        {
          name: "slack",
          limit: 5,
          perMs: 3_600_000,
          burst: 20,
          tokens: expect.any(Number) as number,
          tuned: true,
          at: expect.any(Number) as number,
          waiting: null,
        },
      ]);
      // Jobs of a kind that takes from it at each start wait for it; those that are not due do not.
      const post = defineJob({ name: "post", queue: "chat", budget: "slack", run: async () => {} });
      await hf.queues.pause("chat");
      const poster = hf.work([post], { queues: ["chat"] });
      await poster.ready;
      await hf.enqueueMany([1, 2, 3].map((input) => ({ job: post, input })));
      await hf.enqueue(post, 4, { delay: "1h" });
      expect((await budgets())[0]!.waiting).toEqual({ count: 3, more: false });
      await poster.stop();
      await hf.queues.purge("chat");
      await hf.queues.resume("chat");
      await send("POST", "/budgets/slack/drain");
      expect((await budgets())[0]!.tokens).toBeLessThan(1);
      expect((await send("POST", "/budgets/slack/reset")).status).toBe(200);
      expect((await budgets())[0]).toMatchObject({ limit: 50, burst: 50, tuned: false });
      expect((await send("DELETE", "/budgets/slack")).status).toBe(200);
      for (const [method, path] of [
        ["POST", "/budgets/slack/drain"],
        ["POST", "/budgets/slack/reset"],
        ["DELETE", "/budgets/slack"],
        ["POST", "/breakers/queue%3Abank/reset"],
      ] as const)
        expect([path, (await send(method, path)).status]).toEqual([path, 404]);
      expect(code(await send("PUT", "/budgets/x", { limit: -1, per: "1m" }))).toBe("BAD_OPTION");

      const bank = defineJob({
        name: "bank",
        queue: "bank",
        run: async (_n: number) => {
          throw new Error("503, token=abc123");
        },
      });
      expect((await send("PATCH", "/queues/bank", { breaker: { after: 1, cooldown: "1h" } })).status).toBe(
        200,
      );
      const worker = hf.work([bank], { queues: { bank: 1 } });
      await hf.enqueue(bank, 1);
      const breakers = async (): Promise<readonly BreakerLine[]> =>
        (await get<{ breakers: BreakerLine[] }>("/breakers")).body.breakers;
      await expect.poll(async () => (await breakers())[0]?.state, { timeout: 20_000 }).toBe("open");
      const [open] = await breakers();
      await hf.enqueue(bank, 2);
      const shown = (await get<QueueDetail>("/queues/bank")).body;
      expect(shown).toMatchObject({
        breakers: ["queue:bank"],
        standstill: [{ reason: "breaker-open", until: open!.openUntil }],
      });
      const { level, text, parts } = (await get<Overview>("/overview")).body.verdict;
      expect([level, text]).toEqual(["warn", "The breaker queue:bank is open, and jobs of bank wait."]);
      expect(parts.filter(({ to }) => to !== null)).toEqual([
        { text: "queue:bank", to: "/limits" },
        { text: "bank", to: "/queues/bank" },
      ]);
      expect(open).toMatchObject({ key: "queue:bank", failures: 1, probing: false });
      expect(open!.error).toContain("503");
      expect(open!.openUntil! - open!.openedAt!).toBe(3_600_000);
      expect((await send("POST", "/breakers/queue%3Abank/reset")).status).toBe(200);
      expect((await hf.breakers.list()).filter(({ state }) => state === "open")).toEqual([]);
      await worker.stop();
    });

    test("[K3] a workflow is told with its steps, signals, related jobs and its graph; a signal sends it on; secrets stay out", async () => {
      const { hf, get, send } = await api(target);
      const child = defineJob({ name: "child", run: async (n: number) => n * 2 });
      const workflow = defineJob({
        name: "workflow",
        run: async (_input: unknown, ctx) => {
          await ctx.step("one", async () => ({ password: "hunter2", ok: true }));
          await ctx.step("tell", () => ctx.enqueue(plain, 1, { queue: "elsewhere" }));
          await ctx.call(child, 21);
          return ctx.waitFor<{ by: string }>("approved", { key: "k" });
        },
      });
      const before = await hf.enqueue(child, 1);
      const { id } = await hf.enqueue(workflow, null, { after: [before.id] });
      const history = async (): Promise<WorkflowHistory> =>
        (await get<WorkflowHistory>(`/jobs/${id}/history`)).body;
      expect((await history()).children).toMatchObject([
        { id: before.id, relation: "after", state: "ready" },
      ]);
      const worker = hf.work([workflow, child], { queues: ["default"] });
      await expect.poll(async () => (await hf.jobs.get(id))?.waitsFor, { timeout: 20_000 }).toBe("signal");
      const waiting = await history();
      expect(waiting.steps.map(({ name, kind, state }) => [name, kind, state])).toEqual([
        ["one", "step", "done"],
        ["tell", "step", "done"],
        [expect.any(String), "call", "done"],
        [expect.any(String), "signal", "waiting"],
      ]);
      expect(waiting.steps[0]!.output).toContain('"ok": true');
      expect(JSON.stringify(waiting)).not.toContain("hunter2");
      expect(waiting.signals).toMatchObject([
        { name: "approved", key: "k", state: "waiting", takenAt: null },
      ]);
      expect(
        waiting.children.map(({ name, relation, state }) => [name, relation, state].join(" ")).sort(),
      ).toEqual(["child after done", "child called done", "plain enqueued ready"]);
      const { nodes, edges, cut } = waiting.graph;
      const label = (wanted: string): string => nodes.find((node) => node.id === wanted)!.label;
      expect(cut).toBe(false);
      expect(nodes.length).toBe(1 + 4 + 3);
      const drawn = edges.map(({ from, to }) => `${label(from)} > ${label(to)}`);
      expect(drawn).toEqual(
        expect.arrayContaining([
          "child > workflow",
          "workflow > one",
          "workflow > plain",
          "one > tell",
          `tell > ${waiting.steps[2]!.name}`,
        ]),
      );
      expect(drawn).toContain(`${waiting.steps[2]!.name} > child`);

      await send("POST", "/signals", { name: "approved", key: "k", data: { by: "ada", token: "t0psecret" } });
      expect(await hf.result(id, { timeout: "20s" })).toMatchObject({ by: "ada" });
      const after = await history();
      expect(after.signals).toMatchObject([{ state: "taken" }]);
      expect(after.signals[0]!.data).toContain("ada");
      expect(JSON.stringify(after)).not.toContain("t0psecret");
      expect((await get(`/jobs/0199c1d8-7c00-7000-8000-000000000000/history`)).status).toBe(404);
      await worker.stop();
    });

    test("[K3] without view:payload outputs, data and failures of a workflow are not shown", async () => {
      const { hf, get } = await api(target, {
        auth: { token: "a-token-that-is-long-enough" },
        authorize: (_who, permission) => permission !== "view:payload",
      });
      const workflow = defineJob({
        name: "workflow",
        retry: { attempts: 1, backoff: fixed("1s") },
        run: async (_input: unknown, ctx) => {
          await ctx.step("one", async () => ({ private: "output" }));
          await ctx.step("two", async () => {
            throw new Error("private failure");
          });
        },
      });
      await hf.queues.set("default", { breaker: { after: 1, cooldown: "1h" } });
      const worker = hf.work([workflow], { queues: ["default"] });
      const { id } = await hf.enqueue(workflow, null);
      await expect.poll(async () => (await hf.jobs.get(id))?.state, { timeout: 20_000 }).toBe("dead");
      await expect.poll(async () => (await hf.breakers.list()).length, { timeout: 20_000 }).toBe(1);
      const answers = [await get(`/jobs/${id}/history`), await get("/breakers")];
      expect(answers.map(({ status }) => status)).toEqual([200, 200]);
      expect(JSON.stringify(answers)).not.toContain("private");
      await worker.stop();
    });

    test("[K3] series: the minutes that workers wrote, of one queue or of all, in steps that fit the range", async () => {
      const { hf, get } = await api(target);
      const fails = defineJob({
        name: "fails",
        queue: "other",
        retry: { attempts: 1 },
        run: async (_n: number) => {
          throw new Error("no");
        },
      });
      await hf.enqueueMany(Array.from({ length: 7 }, () => ({ job: plain, input: 1 })));
      await hf.enqueueMany([1, 2].map((n) => ({ job: fails, input: n })));
      const worker = hf.work([plain, fails], { queues: ["default", "other"] });
      await worker.ready;
      await worker.idle();
      await worker.stop();
      const sum = (list: readonly number[]): number => list.reduce((a, b) => a + b, 0);
      const of = async (query: string): Promise<Series> => (await get<Series>(`/series${query}`)).body;
      const all = await of("");
      expect(all.stepMs).toBe(60_000);
      expect([61, 60]).toContain(all.at.length);
      expect([sum(all.done), sum(all.dead)]).toEqual([7, 2]);
      expect(all.waitMs.p95.filter((value) => value !== null).length).toBeGreaterThan(0);
      expect(all.runMs.p50.length).toBe(all.at.length);
      const one = await of("?queue=other");
      expect([sum(one.done), sum(one.dead)]).toEqual([0, 2]);
      const now = all.at.at(-1)! + 60_000;
      const month = await of(`?name=plain&from=${now - 30 * 86_400_000}&to=${now}`);
      expect(month.at.length).toBeLessThanOrEqual(721);
      expect([sum(month.done), sum(month.dead)]).toEqual([7, 0]);
      expect((await get(`/series?from=${now}&to=${now - 1}`)).status).toBe(400);
      expect((await get(`/series/load?from=${now}&to=${now - 1}`)).status).toBe(400);
      const gauge = { minute: now - 120_000, source: "queues", name: "ready", value: 3 };
      await operatorOf(hf).store.series.putGauges([gauge, { ...gauge, source: "queue:mail", value: 2 }]);
      const load = (await get<Load>("/series/load")).body;
      expect(load.at).toEqual(all.at);
      expect(load.queues).toMatchObject([{ name: "mail" }]);
      expect(load.other.filter((value) => value !== null)).toEqual([1]);
    });

    test("[K3] the slots of the overview are those that workers write down: by the live setting, none of a paused queue", async () => {
      const clock = new FakeClock();
      const { hf, get } = await api(target, {}, { clock });
      const worker = hf.work([plain], { queues: { default: 6, mail: 3, slow: 2 }, lease: "20d" });
      await worker.ready;
      await hf.queues.set("mail", { slots: 7 });
      await hf.queues.set("slow", { total: 4, slots: 3 });
      await hf.queues.pause("default");
      // A minute whose settings the worker has read.
      for (let n = 0; n < 3; n += 1) await advancing(clock, clock.advance("1m"));
      const newest = async (): Promise<number | null | undefined> => {
        const load = (await get<Load>("/series/load")).body;
        return load.slots.findLast((value) => value !== null);
      };
      await expect.poll(newest, { timeout: 20_000 }).toBe(10);
      expect((await get<Overview>("/overview")).body.slots).toBe(10);
      const { body } = await get<QueueDetail>("/queues/mail");
      expect([body.slots, body.workersHere[0]?.slots]).toEqual([7, 7]);
      await advancing(clock, worker.stop());
    });
  });
});

describe("shapes", () => {
  test("a series has a point for every step: zero where nothing happened, null where nothing was measured", () => {
    const nothing = { count: 0, mean: null, p50: null, p95: null, p99: null };
    const point = {
      at: new Date(120_000),
      done: 3,
      failed: 1,
      dead: 2,
      cancelled: 0,
      throttled: 0,
      released: 0,
      lost: 0,
      ran: { count: 3, mean: 2, p50: 1, p95: 2, p99: 3 },
      waited: nothing,
    };
    expect(seriesOf([point], 61_000, 181_000, 60_000)).toEqual({
      stepMs: 60_000,
      at: [60_000, 120_000, 180_000],
      done: [0, 3, 0],
      retried: [0, 1, 0],
      dead: [0, 2, 0],
      waitMs: { p50: [null, null, null], p95: [null, null, null], p99: [null, null, null] },
      runMs: { p50: [null, 1, null], p95: [null, 2, null], p99: [null, 3, null] },
    });
  });

  test("of what waited the four fullest queues have a line and the rest one together; a minute without a look is a gap", () => {
    const point = (minute: number, ready: number | null, queues: Record<string, number>) => ({
      at: new Date(minute * 60_000),
      ready,
      queues,
      running: 1,
      slots: 4,
    });
    const points = [
      point(1, 100, { a: 50, b: 20, c: 15, d: 10, e: 5 }),
      point(3, 9, { e: 8 }),
      point(4, null, {}),
    ];
    expect(loadOf(points, 60_000, 300_000, 60_000)).toEqual({
      stepMs: 60_000,
      at: [60_000, 120_000, 180_000, 240_000],
      queues: [
        { name: "a", ready: [50, null, 0, null] },
        { name: "b", ready: [20, null, 0, null] },
        { name: "c", ready: [15, null, 0, null] },
        { name: "e", ready: [5, null, 8, null] },
      ],
      other: [10, null, 1, null],
      running: [1, null, 1, 1],
      slots: [4, null, 4, 4],
    });
    // Of one queue: nought where it was seen to be empty, nothing where it may have been beyond the twenty that are kept.
    const full = Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`q${n}`, 5]));
    const seen = [...points.slice(0, 2), point(4, 200, full)];
    expect(loadIn("e", seen, 60_000, 300_000, 60_000)).toEqual({
      stepMs: 60_000,
      at: [60_000, 120_000, 180_000, 240_000],
      queues: [{ name: "e", ready: [5, null, 8, null] }],
      other: [95, null, 1, 200],
      running: [null, null, null, null],
      slots: [null, null, null, null],
    });
    expect(loadIn("z", seen, 60_000, 300_000, 60_000).queues[0]?.ready).toEqual([0, null, 0, null]);
    expect(loadOf([], 60_000, 120_000, 60_000)).toMatchObject({ queues: [], other: [null], slots: [null] });
  });

  test("the graph follows what the run had seen: steps side by side fan out and join, one after another are a chain", () => {
    const step = (
      seq: number,
      name: string,
      given: number,
      givenOrder: number | null,
    ): JobHistory["steps"][number] => ({
      seq,
      given,
      givenOrder,
      name,
      kind: "step",
      state: givenOrder === null ? "open" : "done",
      attempt: 1,
      tries: 1,
      triedAt: [],
      // All in one millisecond: the clock says nothing of the order.
      startedAt: new Date(5),
      endedAt: givenOrder === null ? null : new Date(5),
      wakeAt: null,
      output: null,
      error: null,
      child: null,
    });
    const steps = [
      step(0, "a", 0, 0),
      step(1, "b", 1, 1),
      step(2, "c", 1, 2),
      step(3, "d", 3, 3),
      step(4, "e", 4, null),
    ];
    const edgesOf = (state: "running" | "dead") =>
      workflowOf(
        { id: "job", name: "job", state },
        { attempts: [], steps, signals: [], children: [], stepCount: 5, stepCountMore: false, more: false },
        500,
      );
    const { graph, steps: shown } = edgesOf("running");
    const label = (id: string): string => graph.nodes.find((node) => node.id === id)!.label;
    expect(graph.edges.map(({ from, to }) => label(from) + label(to))).toEqual([
      "joba",
      "ab",
      "ac",
      "cd",
      "bd",
      "de",
    ]);
    expect(shown.at(-1)!.state).toBe("running");
    expect(edgesOf("dead").steps.at(-1)!.state).toBe("cancelled");
  });
});
