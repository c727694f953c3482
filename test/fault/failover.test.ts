// A primary fails, and a standby that had not received everything is promoted. What it lacks, nobody may act upon.
import { operatorOf } from "../../src/operate/operator.ts";
import { expect, onTestFinished, test } from "vitest";
import { defineJob, defineSchedule, type Holdfast, open, silentLogger } from "../../src/index.ts";
import { type PostgresServer, startPostgres } from "../support/postgres.ts";
import { waitFor } from "../support/process.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";

interface Pair {
  readonly hf: Holdfast;
  /** Another client, as of another process. */
  readonly other: () => Holdfast;
  /** The standby stops receiving: what is written from now on is lost with the primary. */
  readonly lag: () => Promise<void>;
  /** The primary dies, the standby is promoted, and the client's address leads to it. */
  readonly failOver: () => Promise<void>;
  readonly primary: PostgresServer;
  readonly standby: PostgresServer;
}

async function pair(): Promise<Pair> {
  const primary = await startPostgres(18);
  onTestFinished(() => primary.remove());
  const standby = await primary.standby();
  onTestFinished(() => standby.remove());
  const proxy = await TcpProxy.to(primary.url());
  onTestFinished(() => proxy.close());
  const client = async (): Promise<Holdfast> => {
    const hf = await open(proxy.url(primary.url()), { logger: silentLogger });
    onTestFinished(() => hf.close());
    return hf;
  };
  const hf = await client();
  const second = await client();
  return {
    hf,
    other: () => second,
    primary,
    standby,
    lag: async () => {
      await waitFor(() => standby.caughtUp(primary), {
        what: "the standby to catch up",
        deadlineMs: 20_000,
        everyMs: 50,
      });
      await standby.unfollow();
    },
    failOver: async () => {
      await primary.stop("immediate");
      await standby.promote();
      proxy.lead(standby.url());
    },
  };
}

const settings = { queues: { default: 4 }, lease: "10s", heartbeat: "1s" } as const;

/** A job whose runs go on until the test ends them. */
function heldJob(name: string) {
  const runs: { readonly token: number; readonly signal: AbortSignal; finish(output: string): void }[] = [];
  const job = defineJob({
    name,
    run: (_input: { n: number }, ctx) =>
      new Promise<string>((finish) => void runs.push({ token: ctx.token, signal: ctx.signal, finish })),
  });
  return { job, runs };
}

async function soon(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  await waitFor(condition, { what, deadlineMs: 60_000, everyMs: 50 });
}

test("[O4] postgres 18: a stale holder is refused where the new primary gives its token to another", async () => {
  const { hf, other, lag, failOver, primary, standby } = await pair();
  const { job, runs } = heldJob("held");
  const { id } = await hf.enqueue(job, { n: 1 });
  const stale = hf.work([job], { queues: { default: 1 }, lease: "60s", heartbeat: "20s", name: "stale" });
  const lost: string[] = [];
  hf.on("lease.lost", ({ id }) => void lost.push(id));
  await hf.queues.pause("default");
  await stale.ready;
  await lag();
  // A sequence is logged 32 values ahead: only those beyond are given twice.
  await primary.run("select nextval('holdfast.token') from generate_series(1, 100)");
  await hf.queues.resume("default");
  await soon("it to start", () => runs.length === 1);
  const { token } = runs[0]!;
  await failOver();
  await standby.run(`select setval('holdfast.token', ${token - 1})`);
  await other().queues.resume("default");
  const worker = other().work([job], settings);
  await soon("another to start it", () => runs.length === 2);
  expect(runs[1]!.token).toBe(token);
  runs[0]!.finish("stale");
  await soon("the stale holder to be told", () => lost.length === 1);
  expect(await hf.jobs.get(id)).toMatchObject({ state: "running", workerId: worker.id });
  runs[1]!.finish("fresh");
  await soon("it to end", async () => (await hf.jobs.get(id))?.state === "done");
  expect(await hf.jobs.get(id)).toMatchObject({ output: "fresh", attempt: 1 });
  await Promise.all([stale.stop(), worker.stop()]);
});

test("[O4] postgres 18: a worker that gets a token twice gives its session up, and its old attempt changes nothing", async () => {
  const { hf, lag, failOver, primary, standby } = await pair();
  const { job, runs } = heldJob("held");
  const { id } = await hf.enqueue(job, { n: 1 });
  await hf.queues.pause("default");
  const worker = hf.work([job], { ...settings, lease: "60s", heartbeat: "20s" });
  await worker.ready;
  await lag();
  await primary.run("select nextval('holdfast.token') from generate_series(1, 100)");
  await hf.queues.resume("default");
  await soon("it to start", () => runs.length === 1);
  const { token } = runs[0]!;
  await failOver();
  await standby.run(`select setval('holdfast.token', ${token - 1})`);
  await hf.queues.resume("default");
  await soon("it to start again", () => runs.length === 2);
  expect(runs[0]!.signal.aborted).toBe(true);
  expect(runs[1]!.token).toBeGreaterThan(token);
  runs[0]!.finish("stale");
  runs[1]!.finish("fresh");
  await soon("it to end", async () => (await hf.jobs.get(id))?.state === "done");
  expect(await hf.jobs.get(id)).toMatchObject({ output: "fresh", attempt: 1 });
  await worker.stop();
});

test("[O4] postgres 18: a claim that the new primary does not have is made again, and the old holder changes nothing", async () => {
  const { hf, lag, failOver } = await pair();
  const { job, runs } = heldJob("held");
  const { id } = await hf.enqueue(job, { n: 1 });
  await lag();
  const worker = hf.work([job], settings);
  await worker.ready;
  await soon("it to start", () => runs.length === 1);
  await failOver();
  await soon("it to start again", () => runs.length === 2);
  await soon("the first to be told", () => runs[0]!.signal.aborted);
  runs[0]!.finish("stale");
  runs[1]!.finish("fresh");
  await soon("it to end", async () => (await hf.jobs.get(id))?.state === "done");
  expect(await hf.jobs.get(id)).toMatchObject({ output: "fresh", attempt: 1 });
  await worker.stop();
});

test("[O4] postgres 18: a job whose end the new primary has lost runs again; nothing stays running", async () => {
  const { hf, lag, failOver } = await pair();
  const { job, runs } = heldJob("held");
  const worker = hf.work([job], settings);
  await worker.ready;
  const { id } = await hf.enqueue(job, { n: 1 });
  await soon("it to start", () => runs.length === 1);
  await lag();
  runs[0]!.finish("lost");
  await soon("it to end", async () => (await hf.jobs.get(id))?.state === "done");
  await failOver();
  await soon("it to start again", () => runs.length === 2);
  runs[1]!.finish("kept");
  await soon("it to end again", async () => (await hf.jobs.get(id))?.state === "done");
  expect(await hf.jobs.get(id)).toMatchObject({ output: "kept", crashes: 0 });
  await worker.stop();
});

test("[O4] postgres 18: a run whose steps the new primary has lost does them again", async () => {
  const { hf, lag, failOver } = await pair();
  const begun = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  const failedOver = Promise.withResolvers<void>();
  const done: string[] = [];
  const job = defineJob({
    name: "run",
    run: async (_: null, ctx) => {
      const first = done.length === 0;
      const a = await ctx.step("a", async () => {
        done.push("a");
        begun.resolve();
        await goOn.promise;
        return 1;
      });
      const b = await ctx.step("b", () => done.push("b") && 2);
      if (first) await failedOver.promise;
      return [a, b, await ctx.step("c", () => done.push("c") && 3)];
    },
  });
  const worker = hf.work([job], settings);
  await worker.ready;
  const { id } = await hf.enqueue(job, null);
  await begun.promise;
  await lag();
  goOn.resolve();
  await soon("the second step", () => done.includes("b"));
  await soon("it to be written", async () => (await hf.jobs.history(id))?.steps.length === 2);
  await failOver();
  failedOver.resolve();
  await soon("the run to end", async () => (await hf.jobs.get(id))?.state === "done");
  expect(await hf.jobs.get(id)).toMatchObject({ output: [1, 2, 3], attempt: 1, crashes: 0 });
  expect((await hf.jobs.history(id))?.steps.map(({ name }) => name)).toEqual(["a", "b", "c"]);
  expect(done).toEqual(["a", "b", "c", "a", "b", "c"]);
  await worker.stop();
});

test("[O4] postgres 18: a run whose end the new primary has lost keeps the steps that it has", async () => {
  const { hf, lag, failOver } = await pair();
  const goOn = Promise.withResolvers<void>();
  const done: string[] = [];
  const job = defineJob({
    name: "run",
    run: async (_: null, ctx) => {
      const a = await ctx.step("a", () => done.push("a"));
      await goOn.promise;
      return [a, await ctx.step("b", () => done.push("b"))];
    },
  });
  const worker = hf.work([job], settings);
  await worker.ready;
  const { id } = await hf.enqueue(job, null);
  await soon("the first step", async () => (await hf.jobs.history(id))?.steps.length === 1);
  await lag();
  goOn.resolve();
  await soon("the run to end", async () => (await hf.jobs.get(id))?.state === "done");
  await failOver();
  await soon("it to run again", () => done.length > 2);
  await soon("it to end again", async () => (await hf.jobs.get(id))?.state === "done");
  expect(done).toEqual(["a", "b", "b"]);
  expect((await hf.jobs.get(id))?.output).toEqual([1, 3]);
  await worker.stop();
});

test("[O4] postgres 18: job types and lanes that the new primary does not have are made again", async () => {
  const { hf, lag, failOver } = await pair();
  const ran: string[] = [];
  const define = (name: string) =>
    defineJob({
      name,
      lane: name.startsWith("laned") ? () => name : undefined,
      run: (input: { n: number }) => void ran.push(`${name} ${input.n}`),
    });
  const [known, plain, laned, other] = ["known", "plain", "laned", "other"].map(define);
  const worker = hf.work([known!, plain!, laned!, other!], settings);
  await worker.ready;
  await hf.enqueue(known!, { n: 1 });
  await soon("the first to end", () => ran.length === 1);
  await lag();
  await hf.enqueue(plain!, { n: 1 });
  await hf.enqueue(laned!, { n: 1 });
  await soon("both to end", () => ran.length === 3);
  await failOver();
  await hf.enqueue(other!, { n: 2 });
  await hf.enqueue(laned!, { n: 2 });
  await hf.enqueue(plain!, { n: 2 });
  await hf.enqueue(known!, { n: 2 });
  await soon("all to end", () => ran.length === 7);
  expect(ran.slice(3).toSorted()).toEqual(["known 2", "laned 2", "other 2", "plain 2"]);
  await soon("all to be settled", async () => (await hf.stats()).totals.running === 0);
  expect((await hf.stats()).totals).toMatchObject({ running: 0, ready: 0, dead: 0 });
  await worker.stop();
});

test("[O4] postgres 18: a worker that the new primary does not know tells it anew of its kinds and schedules", async () => {
  const { hf, other, lag, failOver } = await pair();
  let ticks = 0;
  const tick = defineJob({ name: "tick", run: () => void (ticks += 1) });
  const keyed = defineJob({ name: "keyed", unique: ({ n }: { n: number }) => `${n}`, run: () => {} });
  await hf.enqueue(tick, null);
  await lag();
  const schedule = defineSchedule({ name: "each", every: "1s", job: tick, input: null });
  const worker = hf.work([tick, keyed], { ...settings, schedules: [schedule] });
  await worker.ready;
  await soon("it to fire", () => ticks > 1);
  await failOver();
  await soon("the schedule to be known again", async () => (await other().schedules.list()).length === 1);
  const before = ticks;
  await soon("it to fire again", () => ticks > before + 1);
  await soon("its kinds to be known", async () =>
    (await operatorOf(other()).store.definitions.list()).has("keyed"),
  );
  await worker.stop();
});
