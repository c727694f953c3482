// Schedules, budgets, lanes, breakers, signals, the check of runs in flight and the dashboard, from the command line.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import {
  type BreakerState,
  type BudgetState,
  defineJob,
  type JobHistory,
  type LanePage,
  type ScheduleState,
} from "../../src/index.ts";
import { FakeClock } from "../../src/testing/index.ts";
import { advancing, fresh } from "../support/test-clients.ts";
import { root } from "../support/repository.ts";
import { onEveryStore } from "../support/stores.ts";
import { type CliOptions, cli, folder, on, type Ran } from "./support.ts";

const report = defineJob({ name: "report", queue: "reports", run: async (_input: unknown) => {} });

onEveryStore((target) => {
  test("[G6][K4] a schedule is paused, resumed, edited, reset, triggered, previewed and removed by API and by CLI alike", async () => {
    const { hf, store } = await fresh(target);
    const holdfast = on(store);
    expect((await holdfast(["schedules"])).out).toBe("There are no schedules.\n");
    await hf.schedules.put({
      name: "nightly",
      cron: "30 2 * * *",
      timezone: "Europe/Berlin",
      job: report,
      input: { of: "yesterday" },
    });
    const listed = await holdfast(["schedules", "list", "--json"]);
    expect(listed.json<ScheduleState[]>()).toEqual(JSON.parse(JSON.stringify(await hf.schedules.list())));
    const shown = (await holdfast(["schedules"])).out;
    for (const text of [
      "nightly",
      "Every day at 02:30, Europe/Berlin",
      "report in reports",
      "no worker serves it",
    ])
      expect(shown).toContain(text);
    expect((await holdfast(["schedules", "preview", "nightly", "-n", "3", "--json"])).json()).toEqual(
      (await hf.schedules.preview("nightly", 3)).map((at) => at.toISOString()),
    );

    expect((await holdfast(["schedules", "pause", "nightly"])).out).toBe("nightly: paused.\n");
    expect((await hf.schedules.get("nightly"))?.paused).toBe(true);
    const made = (await holdfast(["schedules", "trigger", "nightly", "--json"])).json<{ id: string }>();
    expect(await hf.jobs.get(made.id)).toMatchObject({ queue: "reports", input: { of: "yesterday" } });
    expect((await holdfast(["schedules", "resume", "nightly"])).code).toBe(0);
    expect((await hf.schedules.get("nightly"))?.paused).toBe(false);

    const line = ["--cron", "0 4 * * *", "--missed", "all", "--priority", "7", "--input", '{"of":"today"}'];
    const edited = await holdfast(["schedules", "edit", "nightly", ...line, "--json"]);
    expect(edited.json()).toMatchObject({
      cron: "0 4 * * *",
      missed: "all",
      priority: 7,
      input: { of: "today" },
    });
    expect((await hf.schedules.get("nightly"))?.edited.toSorted()).toEqual([
      "cron",
      "input",
      "missed",
      "priority",
    ]);
    expect((await holdfast(["schedules"])).out).toContain("edited: ");
    expect(await holdfast(["schedules", "edit", "nightly"])).toMatchObject({ code: 2 });
    expect(await holdfast(["schedules", "edit", "nightly", "--cron", "nonsense"])).toMatchObject({
      code: 2,
      err: expect.stringContaining("nonsense") as string,
    });
    expect((await holdfast(["schedules", "reset", "nightly"])).code).toBe(0);
    expect(await hf.schedules.get("nightly")).toMatchObject({
      cron: "30 2 * * *",
      edited: [],
      input: { of: "yesterday" },
    });

    for (const verb of ["pause", "resume", "reset", "trigger", "preview", "runs"])
      expect(await holdfast(["schedules", verb, "nowhere"])).toMatchObject({
        code: 1,
        err: expect.stringContaining('There is no schedule "nowhere"') as string,
      });
    expect((await holdfast(["schedules", "remove", "nightly"])).code).toBe(2); // nobody to ask
    expect((await holdfast(["schedules", "remove", "nightly", "--force"])).out).toBe("Removed.\n");
    expect((await holdfast(["schedules", "remove", "nightly", "--force"])).code).toBe(1);
    // Nobody is asked about what is not there.
    expect(await holdfast(["schedules", "remove", "nope"])).toMatchObject({
      code: 1,
      out: "There is no schedule nope.\n",
      err: "",
    });
    expect((await holdfast(["schedules", "remove", "no pe"])).code).toBe(2);
    expect(await hf.schedules.list()).toEqual([]);
  });

  test("[K4] the runs of a schedule: how late, how long, how they ended", async () => {
    const clock = new FakeClock(Date.UTC(2026, 5, 1, 12, 0, 30));
    const { hf, store } = await fresh(target, { clock });
    const holdfast = on(store);
    const picky = defineJob({
      name: "picky",
      retry: { attempts: 1 },
      run: async (_: null, ctx) => {
        if (ctx.schedule!.at.getUTCHours() === 10) throw new Error("at ten");
      },
    });
    await hf.schedules.put({ name: "hourly", cron: "0 * * * *", job: picky, input: null });
    expect((await holdfast(["schedules", "runs", "hourly"])).out).toBe("hourly has made no job yet.\n");
    await hf.schedules.backfill("hourly", { from: Date.UTC(2026, 5, 1, 10) });
    const { id } = await hf.schedules.trigger("hourly");
    const worker = hf.work([picky], { queues: { default: 1 }, lease: "20d", heartbeat: "9d" });
    await worker.ready;
    await advancing(clock, worker.idle());
    await hf.jobs.delete(id);
    const told = await hf.schedules.runs("hourly");
    const words = (await holdfast(["schedules", "runs", "hourly"])).out
      .split("\n")
      .map((line) => line.split(/ {2,}/));
    expect(words[0]).toEqual(["occurrence", "by", "state", "late", "ran", "attempt", "job"]);
    expect(words.slice(1, -1).map(([at, by, state, late]) => [at, by, state, late])).toEqual([
      ["2026-06-01T12:00:30.000Z", "hand", "not kept", "–"],
      ["2026-06-01T12:00:00.000Z", "backfill", "done", "–"],
      ["2026-06-01T11:00:00.000Z", "backfill", "done", "–"],
      ["2026-06-01T10:00:00.000Z", "backfill", "dead", "–"],
    ]);
    expect(words.slice(1, -1).map((line) => line.at(-1))).toEqual(told.map(({ jobId }) => jobId));
    const two = await holdfast(["schedules", "runs", "hourly", "--limit", "2", "--json"]);
    expect(two.json()).toEqual(JSON.parse(JSON.stringify(told.slice(0, 2))));
    expect(await holdfast(["schedules", "runs", "hourly", "--limit", "501"])).toMatchObject({ code: 2 });
    expect(await holdfast(["schedules", "runs"])).toMatchObject({ code: 2 });
    expect((await holdfast(["completion", "bash"])).out).toMatch(/schedules.*\bruns\b/);
    await advancing(clock, worker.stop());
  });

  test("[K4] budgets that are not there are not found before anybody is asked, and lanes that are new are noted", async () => {
    const { store } = await fresh(target);
    const holdfast = on(store);
    for (const verb of ["remove", "drain"])
      expect(await holdfast(["budgets", verb, "nope"])).toMatchObject({
        code: 1,
        out: "nope: there is no such budget.\n",
        err: "",
      });
    expect((await holdfast(["budgets", "remove", "nope", "--json"])).json()).toEqual({
      name: "nope",
      changed: false,
    });
    expect(await holdfast(["lanes", "pause", "nope", "nope"])).toMatchObject({
      code: 0,
      out: "nope in nope: paused.\n",
      err: "nope in nope has no jobs or settings yet.\n",
    });
    expect((await holdfast(["lanes", "resume", "nope", "nope"])).err).toBe("");
    expect((await holdfast(["lanes", "pause", "no pe", "nope"])).code).toBe(2);
  });

  test("[K4] budgets: set, drain, reset, remove", async () => {
    const { hf, store } = await fresh(target);
    const holdfast = on(store);
    await hf.budgets.set("slack", { limit: 50, per: "1h", default: true });
    expect((await holdfast(["budgets", "set", "slack", "--rate", "5/1h", "--burst", "9"])).code).toBe(0);
    const list = async (): Promise<BudgetState[]> =>
      (await holdfast(["budgets", "list", "--json"])).json<BudgetState[]>();
    expect(await list()).toMatchObject([{ name: "slack", limit: 5, per: 3_600_000, burst: 9, tuned: true }]);
    expect((await holdfast(["budgets"])).out).toMatch(/slack\s+9\s+5 per 1h\S*\s+9\s+set by hand/);
    expect((await holdfast(["budgets", "drain", "slack"])).code).toBe(2);
    expect((await holdfast(["budgets", "drain", "slack", "--force"])).code).toBe(0);
    expect((await list())[0]!.tokens).toBeLessThan(1);
    expect((await holdfast(["budgets", "reset", "slack"])).code).toBe(0);
    expect(await list()).toMatchObject([{ limit: 50, tuned: false }]);
    expect((await holdfast(["budgets", "remove", "slack", "--force"])).code).toBe(0);
    expect((await holdfast(["budgets", "remove", "slack", "--force"])).code).toBe(1);
    expect((await holdfast(["budgets", "set", "slack", "--rate", "many"])).code).toBe(2);
    expect((await holdfast(["budgets"])).out).toBe("There are no budgets.\n");
  });

  test("[K4] queues drain: what is empty is paused at once, what is not goes on, and resume ends it", async () => {
    const { hf, store } = await fresh(target);
    const holdfast = on(store);
    await hf.enqueue("some", null, { queue: "full" });
    const drained = await holdfast(["queues", "drain", "full", "empty", "--json"]);
    expect(drained.json()).toEqual({ draining: ["full"], paused: ["empty"] });
    expect(drained.err).toBe("empty has no jobs, settings or workers yet.\n");
    expect((await holdfast(["queues", "drain", "empty"])).out).toBe("Nothing to finish: empty is paused.\n");
    expect(await hf.queues.list()).toMatchObject([
      { name: "empty", paused: true, draining: false },
      { name: "full", paused: false, draining: true },
    ]);
    expect((await holdfast(["queues"])).out).toMatch(/full.*draining, started/);
    expect((await holdfast(["queues", "resume", "full"])).code).toBe(0);
    expect((await hf.queues.list())[1]).toMatchObject({ paused: false, draining: false });
    const bare = await holdfast(["queues", "drain"]);
    expect([bare.code, bare.err]).toEqual([
      2,
      expect.stringContaining("Usage: holdfast queues drain <name>…"),
    ]);
    expect((await holdfast(["queues", "drain", "no good"])).code).toBe(2);
  });

  test("[K4] queues drain --wait ends when the queues stand still, with what is left when the time is up, and leaves the drain when broken off", async () => {
    const { hf, store } = await fresh(target);
    const holdfast = on(store);
    const go = Promise.withResolvers<void>();
    const slow = defineJob({ name: "slow", queue: "slow", run: async (_n: number) => go.promise });
    const worker = hf.work([slow], { queues: ["slow"] });
    await worker.ready;
    await hf.enqueue(slow, 1);
    await expect.poll(async () => (await hf.queues.list())[0]?.counts.running, { timeout: 20_000 }).toBe(1);

    const late = await holdfast(["queues", "drain", "slow", "empty", "--wait", "--timeout", "0s"]);
    expect(late.code).toBe(1);
    expect(late.out).toMatch(
      /^Drained and paused: empty\.\nTimeout; still draining: slow \(0 due, 1 running\)\. The drain continues\. .* holdfast queues resume slow\n$/,
    );
    const ended = AbortSignal.abort();
    const broken = await holdfast(["queues", "drain", "slow", "--wait"], { signal: ended });
    expect([broken.code, broken.out]).toEqual([
      1,
      expect.stringMatching(/^Interrupted; still draining: slow/),
    ]);
    expect((await hf.queues.list()).map(({ name, draining }) => [name, draining])).toEqual([
      ["empty", false],
      ["slow", true],
    ]);

    // A pause makes it stand still only when nothing of it runs any more.
    await hf.queues.pause("slow");
    const held = await holdfast(["queues", "drain", "slow", "--wait", "--timeout", "0s", "--json"]);
    expect([held.code, held.json()]).toEqual([1, { draining: ["slow"], paused: [], resumed: [] }]);
    await hf.queues.resume("slow");

    let drawn = "";
    const waiting = holdfast(["queues", "drain", "slow", "--wait", "--timeout", "1m"], {
      tty: true,
      onErr: (err) => {
        drawn = err;
      },
    });
    await expect.poll(() => drawn, { timeout: 20_000 }).toContain("draining slow (0 due, 1 running)");
    go.resolve();
    expect(await waiting).toMatchObject({ code: 0, out: "Drained and paused: slow.\n" });
    await worker.stop();

    // Nobody is there to run it, nor to notice that it is empty.
    await hf.queues.resume("slow");
    const { id } = await hf.enqueue(slow, 2);
    let said = "";
    const stuck = holdfast(["queues", "drain", "slow", "--wait"], { onErr: (err) => (said = err) });
    await expect
      .poll(() => said, { timeout: 20_000 })
      .toBe("No live worker runs slow in queue slow. The queue cannot drain until one does.\n");
    await hf.jobs.cancel(id);
    expect((await stuck).code).toBe(0);
    await hf.queues.resume("slow");
    await hf.enqueue(slow, 3);
    const resumed = holdfast(["queues", "drain", "slow", "--wait", "--json"]);
    await expect.poll(async () => (await hf.queues.list())[1]?.draining, { timeout: 20_000 }).toBe(true);
    await hf.queues.resume("slow");
    const went = await resumed;
    expect([went.code, went.json()]).toEqual([1, { draining: [], paused: [], resumed: ["slow"] }]);
    expect(await hf.queues.drained("slow")).toBe(false);
    await expect(hf.queues.drained("no good")).rejects.toMatchObject({ code: "BAD_NAME" });
    expect((await holdfast(["queues", "drain", "slow", "--timeout", "1s"])).code).toBe(2);
  });

  test("[K4] lanes: set, pause, resume, list in pages; queues: total and breaker; why names the lane", async () => {
    const { hf, store } = await fresh(target);
    const holdfast = on(store);
    for (const lane of ["a", "b", "tenant 7"]) await hf.enqueue("sync", null, { queue: "q", lane });
    const set = await holdfast([
      "lanes",
      "set",
      "q",
      "tenant 7",
      "--concurrency",
      "2",
      "--rate",
      "10/1m",
      "--weight",
      "3",
      "--json",
    ]);
    expect(set.json()).toMatchObject({ key: "tenant 7", concurrency: 2, weight: 3, waiting: 1 });
    expect((await holdfast(["lanes", "set", "q", "tenant 7", "--concurrency", "none"])).code).toBe(0);
    expect((await holdfast(["lanes", "pause", "q", "tenant 7"])).code).toBe(0);
    expect((await hf.lanes.list({ key: "tenant 7" })).lanes).toMatchObject([
      { paused: true, concurrency: null, rate: { limit: 10, perMs: 60_000 } },
    ]);
    const first = (await holdfast(["lanes", "list", "--limit", "2", "--json"])).json<LanePage>();
    const rest = (
      await holdfast(["lanes", "list", "--limit", "2", "--cursor", first.cursor!, "--json"])
    ).json<LanePage>();
    expect([...first.lanes, ...rest.lanes].map(({ key }) => key).sort()).toEqual(["a", "b", "tenant 7"]);
    expect((await holdfast(["lanes"])).out).toMatch(/tenant 7\s+1\s+0\s+–\s+10 per 1m\S*\s+3\s+paused/);
    const { jobs } = await hf.jobs.list({ queue: "q" });
    const paused = jobs.find(({ lane }) => lane === "tenant 7")!;
    const worker = hf.work([defineJob({ name: "sync", run: async (_input: unknown) => {} })], {
      queues: ["q"],
    });
    await worker.ready;
    expect((await holdfast(["why", paused.id])).out).toMatch(/^lane-paused {2}/);
    expect((await holdfast(["lanes", "resume", "q", "tenant 7"])).code).toBe(0);
    await expect.poll(async () => (await hf.jobs.get(paused.id))?.state, { timeout: 20_000 }).toBe("done");
    await worker.stop();
    expect((await holdfast(["lanes", "pause", "q"])).code).toBe(2);
    expect((await holdfast(["lanes", "set", "q", "a"])).code).toBe(2);
    const queue = await holdfast(["queues", "set", "q", "--total", "6", "--breaker", "4,45s", "--json"]);
    expect(queue.json<{ settings: object }>().settings).toMatchObject({
      total: 6,
      breaker: { after: 4, cooldownMs: 45_000 },
    });
    expect((await holdfast(["queues", "set", "q", "--breaker", "soon"])).code).toBe(2);
  });

  test("[K4] breakers: an open one is listed with its error, why names it, and a reset lets its jobs go on", async () => {
    const { hf, store } = await fresh(target);
    const holdfast = on(store);
    expect((await holdfast(["breakers"])).out).toBe("No breaker has counted a failure.\n");
    let down = true;
    const bank = defineJob({
      name: "bank",
      queue: "bank",
      retry: { attempts: 9 },
      run: async (_n: number) => {
        if (down) throw new Error("503\nfrom the bank");
      },
    });
    await hf.queues.set("bank", { breaker: { after: 1, cooldown: "1h" } });
    const worker = hf.work([bank], { queues: { bank: 1 } });
    await worker.ready;
    await hf.enqueue(bank, 1);
    const list = async (): Promise<BreakerState[]> =>
      (await holdfast(["breakers", "list", "--json"])).json<BreakerState[]>();
    await expect.poll(async () => (await list())[0]?.state, { timeout: 20_000 }).toBe("open");
    expect((await holdfast(["breakers"])).out).toMatch(/queue:bank\s+open\s+1\s+in .*503.*from the bank/);
    const { id } = await hf.enqueue(bank, 2);
    expect((await holdfast(["why", id])).out).toMatch(/^breaker-open {2}/);
    down = false;
    expect((await holdfast(["breakers", "reset", "queue:bank"])).out).toBe("Closed.\n");
    await hf.result(id, { timeout: "20s" });
    expect((await holdfast(["breakers", "reset", "queue:nowhere"])).code).toBe(1);
    await worker.stop();
  });

  test("[K4][N12] a run in flight: show prints its steps, signals and related jobs, check names what a deploy would break, signal sends it on", async () => {
    const { hf, store } = await fresh(target);
    const child = defineJob({ name: "child", run: async (n: number) => n * 2 });
    const workflow = defineJob({
      name: "workflow",
      run: async (_input: unknown, ctx) => {
        await ctx.step("reserve", async () => ({ shelf: "B12" }));
        await ctx.call(child, 21);
        return ctx.waitFor<{ by: string }>("approved", { key: "k" });
      },
    });
    const worker = hf.work([workflow, child], { queues: ["default"] });
    const { id } = await hf.enqueue(workflow, null);
    await expect.poll(async () => (await hf.jobs.get(id))?.waitsFor, { timeout: 20_000 }).toBe("signal");
    const holdfast = on(store);
    const shown = (await holdfast(["jobs", "show", id])).out;
    for (const text of ["\nsteps\n", "reserve", '{"shelf":"B12"}', "\nsignals\n", "approved", "waiting"])
      expect(shown).toContain(text);
    expect(shown).toMatch(/related jobs\n.*\n.*child\s+called in .*\s+done/);
    const { history } = (await holdfast(["jobs", "show", id, "--json"])).json<{ history: JobHistory }>();
    expect(history).toEqual(JSON.parse(JSON.stringify(await hf.jobs.history(id))));
    expect((await holdfast(["why", id])).out).toMatch(/^waiting-for-signal {2}/);

    const check = async (step: string): Promise<Ran> => {
      const cwd = folder("check");
      writeFileSync(
        join(cwd, "holdfast.config.ts"),
        `import { defineConfig, defineJob } from ${JSON.stringify(join(root, "src/index.ts"))};
const child = defineJob({ name: "child", run: async (n: number) => n * 2 });
const workflow = defineJob({ name: "workflow", run: async (_input: unknown, ctx) => {
  await ctx.step(${JSON.stringify(step)}, async () => { throw new Error("check must not do steps"); });
  await ctx.call(child, 21);
  return ctx.waitFor("approved", { key: "k" });
} });
export default defineConfig({ jobs: [workflow, child] });
`,
      );
      return on(store, { cwd })(["check", "--json"]);
    };
    expect(await check("reserve")).toMatchObject({ code: 0, out: '{"checked":1,"broken":[]}\n' });
    const broken = await check("renamed");
    expect(broken.code).toBe(1);
    expect(broken.json<{ broken: object[] }>().broken).toMatchObject([{ id, name: "workflow" }]);
    expect((await holdfast(["check"])).code).toBe(2); // no config

    expect((await holdfast(["signal", "approved", "{by}", "--key", "k"])).code).toBe(2);
    expect((await holdfast(["signal", "approved", '{"by":"Ada"}', "--key", "k"])).code).toBe(0);
    expect(await hf.result(id, { timeout: "20s" })).toEqual({ by: "Ada" });
    await worker.stop();
  });

  test("[K1] dashboard: the printed address opens it, others are turned away, and it ends with its signal", async () => {
    const { hf, store } = await fresh(target);
    await hf.enqueue("some", { n: 1 });
    type Told = { url: string; address: string; port: number; readOnly: boolean };
    const served = async (
      args: readonly string[],
      options: CliOptions,
      use: (told: Told) => Promise<void>,
    ): Promise<Ran> => {
      const end = new AbortController();
      const told = Promise.withResolvers<Told>();
      const running = on(store)(["dashboard", "--port", "0", "--json", ...args], {
        ...options,
        signal: end.signal,
        onOut: (out) => told.resolve(JSON.parse(out) as Told),
      });
      void running.then(({ err }) => told.reject(new Error(err)));
      try {
        await use(await told.promise);
      } finally {
        end.abort();
      }
      return running;
    };
    const ask = (url: string, token: string | null, method = "GET"): Promise<Response> =>
      fetch(url, { method, headers: token === null ? {} : { authorization: `Bearer ${token}` } });

    const ended = await served([], {}, async ({ url, address }) => {
      expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/$/);
      const token = address.slice(`${url}#token=`.length);
      expect(token.length).toBeGreaterThan(30);
      expect((await ask(`${url}api/v1/jobs`, null)).status).toBe(401);
      const jobs = (await (await ask(`${url}api/v1/jobs`, token)).json()) as { jobs: { name: string }[] };
      expect(jobs.jobs).toMatchObject([{ name: "some" }]);
      expect((await ask(`${url}api/v1/queues/default/pause`, token, "POST")).status).toBe(200);
    });
    expect(ended).toMatchObject({ code: 0, err: "" });
    await hf.queues.resume("default");

    const own = "a-token-of-my-own-0123456789";
    const env = { HOLDFAST_TOKEN: own };
    const mine = await served(["--read-only"], { env }, async ({ url, address, readOnly }) => {
      expect([address, readOnly]).toEqual([url, true]);
      expect((await ask(`${url}api/v1/jobs`, own)).status).toBe(200);
      expect((await ask(`${url}api/v1/queues/default/pause`, own, "POST")).status).toBe(403);
    });
    expect(mine.out + mine.err).not.toContain(own);
    await served(["--no-auth"], {}, async ({ url }) => {
      expect((await ask(`${url}api/v1/jobs`, null)).status).toBe(200);
    });

    for (const args of [[], ["--no-auth"]])
      expect(await on(store)(["dashboard", "--host", "0.0.0.0", "--port", "0", ...args])).toMatchObject({
        code: 2,
        out: "",
        err: expect.stringContaining("HOLDFAST_TOKEN") as string,
      });
    expect((await on(store)(["dashboard", "--port", "lots"])).code).toBe(2);
  });
});

test("[K1] a dashboard's port that is taken is named", async () => {
  const cwd = folder("taken");
  const url = `sqlite:${join(cwd, "jobs.db")}`;
  expect((await cli(["migrate", "--url", url])).code).toBe(0);
  const end = new AbortController();
  const told = Promise.withResolvers<number>();
  const first = cli(["dashboard", "--port", "0", "--json", "--url", url], {
    signal: end.signal,
    onOut: (out) => told.resolve((JSON.parse(out) as { port: number }).port),
  });
  const second = await cli(["dashboard", "--port", String(await told.promise), "--url", url]);
  expect(second).toMatchObject({ code: 2, err: expect.stringContaining("EADDRINUSE") as string });
  end.abort();
  expect((await first).code).toBe(0);
});
