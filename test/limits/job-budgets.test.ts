// `budget` in a definition: a job is claimed only when its budget has the tokens, over all workers.
import { expect, test } from "vitest";
import { defineJob, type JobDefinition, UsageError } from "../../src/index.ts";
import { onEveryStore } from "../support/stores.ts";
import type { ClaimCursor } from "../../src/jobs/claim-scope.ts";
import { type Client, heldJob, newWorld, quickJob, sessionInfo, type World } from "../support/world.ts";

const slots = { queues: { default: 10 } } as const;

async function tokensOf({ hf }: Client, name: string): Promise<number | undefined> {
  return (await hf.budgets.list()).find((budget) => budget.name === name)?.tokens;
}

async function many({ hf }: Client, job: JobDefinition<string, { n: number }>, count: number) {
  const jobs = Array.from({ length: count }, (_, n) => ({ job, input: { n } }));
  return (await hf.enqueueMany(jobs)).map(({ id }) => id);
}

/** The most that started beyond burst + limit × w / per, over all windows. */
function excess(
  at: readonly number[],
  { limit, perMs, burst }: { limit: number; perMs: number; burst: number },
) {
  const times = [...at].sort((a, b) => a - b);
  let most = -Infinity;
  times.forEach((from, i) =>
    times.slice(i).forEach((to, n) => {
      most = Math.max(most, n + 1 - burst - (limit * (to - from)) / perMs);
    }),
  );
  return most;
}

async function workers(world: World, n: number, jobs: Parameters<Client["work"]>[0]): Promise<Client[]> {
  const clients: Client[] = [];
  for (let i = 0; i < n; i += 1) {
    const client = await world.client();
    await client.work(jobs, slots);
    clients.push(client);
  }
  return clients;
}

onEveryStore((target) => {
  test("[H1] jobs with a budget start as its tokens come, over all workers, no more and hardly fewer", async () => {
    const world = await newWorld(target);
    const [boss] = [await world.client()];
    await boss.hf.budgets.set("api", { limit: 6, per: "1m", burst: 3 });
    const { job, runs } = quickJob(world, "call", { budget: "api" });
    await many(boss, job, 30);
    await workers(world, 3, [job]);
    await world.advance("2m", 500);
    expect(
      excess(
        runs.map(({ at }) => at),
        { limit: 6, perMs: 60_000, burst: 3 },
      ),
    ).toBeLessThanOrEqual(1e-6);
    expect(runs.length).toBeGreaterThanOrEqual(14);
    expect(new Set(runs.map(({ n }) => n)).size).toBe(runs.length);
    expect(runs.every(({ attempt }) => attempt === 1)).toBe(true);
  });

  test("[H1] an empty budget costs its workers a question for each token, and keeps no other kind waiting", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    await client.hf.budgets.set("api", { limit: 1, per: "10s" });
    const call = quickJob(world, "call", { budget: "api" });
    const free = quickJob(world, "free");
    await many(client, call.job, 20);
    await many(client, free.job, 50);
    await client.work([call.job, free.job], slots);
    await world.until("the free ones to be done", () => free.runs.length === 50);
    expect(call.runs).toHaveLength(1);
    const before = client.tap.count("claims.claimBudgeted", "claims.claim", "claims.checkDue");
    await world.advance("60s", 500);
    expect(call.runs.length).toBeGreaterThanOrEqual(6);
    expect(client.tap.count("claims.claimBudgeted", "claims.claim", "claims.checkDue") - before).toBeLessThan(
      90,
    );
  });

  test("[H1] fractions of tokens, and names that share a budget", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    await client.hf.budgets.set("api", { limit: 1, per: "1h", burst: 5 });
    const small = quickJob(world, "small", { budget: { name: "api", tokens: 0.5 } });
    const large = quickJob(world, "large", { budget: { name: "api", tokens: 2 } });
    await client.work([small.job, large.job], slots);
    await many(client, large.job, 2);
    await world.until("two large ones", () => large.runs.length === 2);
    await many(client, small.job, 5);
    await many(client, large.job, 1);
    await world.advance("5s");
    expect(small.runs).toHaveLength(2);
    expect(large.runs).toHaveLength(2);
    expect(await tokensOf(client, "api")).toBeLessThan(0.5);
  });

  test("[H1] names that take different tokens of one budget hide no higher priority from each other", async () => {
    const world = await newWorld(target);
    const { hf, tap } = await world.client();
    await hf.budgets.set("api", { limit: 100, per: "1h" });
    await hf.enqueue("small", 0);
    await hf.enqueue("large", 0);
    await hf.enqueue("large", 1);
    const session = await tap.raw.sessions.open(sessionInfo());
    const cursor: ClaimCursor = { levels: new Map(), rescannedAt: -Infinity };
    const claim = async (name: string, tokens: number) => {
      const queues = new Map([["default", 1]]);
      const scope = { queues, names: [name], limit: 1, order: "highest-first" as const };
      const { jobs } = await tap.raw.claims.claimBudgeted(
        session,
        scope,
        { name: "api", tokens, names: [name] },
        cursor,
      );
      return jobs.map(({ priority }) => priority);
    };
    expect(await claim("large", 2)).toEqual([0]);
    await hf.enqueue("large", 2, { priority: 5 });
    await world.advance("2s");
    // It looks at everything, but not at the other kind.
    expect(await claim("small", 1)).toEqual([0]);
    expect(await claim("large", 2)).toEqual([5]);
  });

  test("[H1] a budget that nobody has set claims nothing and warns; setting it wakes workers of other processes", async () => {
    const world = await newWorld(target);
    const [boss, client] = [await world.client(), await world.client()];
    const warnings = client.told("warning");
    const { job, runs } = quickJob(world, "call", { budget: "api" });
    const [id] = await many(boss, job, 3);
    await client.work([job], slots);
    await world.advance("30s", 1_000);
    expect(runs).toHaveLength(0);
    expect(warnings.map(({ message }) => message)).toEqual([
      'There is no budget "api", so no job of call is claimed. Set it with hf.budgets.set.',
    ]);
    expect(await boss.hf.jobs.get(id!)).toMatchObject({ state: "ready", attempt: 0 });
    const setAt = world.clock.now();
    await boss.hf.budgets.set("api", { limit: 10, per: "1m" });
    await world.until("them to run", () => runs.length === 3);
    expect(runs[0]!.at - setAt).toBeLessThan(1_000);
  });

  test("[H1] where no message comes, a budget that was set is noticed within seconds", async () => {
    const world = await newWorld(target);
    const [boss, client] = [await world.client(), await world.client()];
    const { job, runs } = quickJob(world, "call", { budget: "api" });
    await many(boss, job, 1);
    client.tap.deaf = true;
    await client.work([job], slots);
    await world.advance("3s");
    await boss.hf.budgets.set("api", { limit: 10, per: "1m" });
    await world.until("it to run", () => runs.length === 1, "6s");
  });

  test("[H1] [N5] a budget, a lane, a queue's limit and slots combine: the least of them holds", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    await client.hf.budgets.set("api", { limit: 1, per: "1h", burst: 5 });
    await client.hf.queues.set("default", { concurrency: 4 });
    const options = { budget: "api", lane: ({ n }: { n: number }) => `l${n % 2}`, lanes: { concurrency: 1 } };
    const laned = heldJob(world, "laned", options);
    const plain = heldJob(world, "plain", { budget: "api" });
    await many(client, laned.job, 8);
    await many(client, plain.job, 8);
    await workers(world, 2, [laned.job, plain.job]);
    await world.advance("5s");
    // Two lanes of one each at the most, and four places of the queue.
    expect(laned.runs.length + plain.runs.length).toBe(4);
    expect(laned.runs.length).toBeLessThanOrEqual(2);
    for (const run of [...laned.runs, ...plain.runs]) run.finish();
    await world.advance("5s");
    expect(laned.runs.length + plain.runs.length).toBe(5);
    expect(await tokensOf(client, "api")).toBeLessThan(0.1);
    for (const run of [...laned.runs, ...plain.runs]) run.finish();
    await world.advance("1s");
    const back = async (table: string, column: string) =>
      (await world.rows(table)).map((row) => Number(row[column]));
    await client.hf.budgets.set("api", { limit: 1e6, per: "1s" });
    await world.until("the rest", () => {
      for (const run of [...laned.runs, ...plain.runs]) run.finish();
      return laned.runs.length + plain.runs.length === 16;
    });
    await world.advance("2s");
    // Whatever was counted is given back (returned capacity and lane wake-ups are taken in by the next claim that asks).
    expect((await back("lane", "running")).every((n) => n <= 1)).toBe(true);
  });

  test("[H1] queues that share a scarce budget take turns, and within one the oldest goes first", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    await client.hf.budgets.set("api", { limit: 60, per: "1m", burst: 1 });
    const { job, runs } = quickJob(world, "call", { budget: "api" });
    for (const [i, queue] of ["a", "b", "c"].entries())
      for (let n = 0; n < 10; n += 1) await client.hf.enqueue(job, { n: i * 10 + n }, { queue });
    await client.work([job], { queues: { a: 5, b: 5, c: 5 } });
    await world.advance("14s", 500);
    const served = [0, 1, 2].map((i) => runs.map(({ n }) => n).filter((n) => Math.floor(n / 10) === i));
    for (const [i, some] of served.entries()) {
      expect(some.length).toBeGreaterThanOrEqual(2);
      expect(some).toEqual(some.map((_, n) => i * 10 + n));
    }
  });

  test("[H1] a job that was claimed and never started gives its tokens back", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    await client.hf.budgets.set("api", { limit: 1, per: "365d", burst: 3 });
    const { job, runs } = quickJob(world, "call", { budget: "api" });
    const worker = await client.work([job], slots);
    let answer = (): void => {};
    client.tap.around = async (verb, call) => {
      const got = await call();
      if (verb === "claims.claimBudgeted")
        await client.tap.late(new Promise<void>((resolve) => (answer = resolve)));
      return got;
    };
    await many(client, job, 2);
    await world.until("the claim to be made", async () => (await tokensOf(client, "api"))! < 1.5);
    const stopped = worker.stop();
    answer();
    await world.finish(stopped);
    expect(runs).toHaveLength(0);
    expect(await tokensOf(client, "api")).toBeGreaterThanOrEqual(3 - 1e-6);
    client.tap.around = null;
    await client.work([job], slots);
    await world.until("them to run", () => runs.length === 2);
    expect(await tokensOf(client, "api")).toBeLessThan(1.1);
  });

  test("[H1] what a dead worker had started is started again with tokens of its own", async () => {
    const world = await newWorld(target);
    const [first, second] = [await world.client(), await world.client()];
    await second.hf.budgets.set("api", { limit: 1, per: "365d", burst: 3 });
    const { job, runs } = heldJob(world, "call", { budget: "api" });
    await first.work([job], slots);
    await many(second, job, 2);
    await world.until("both to run", () => runs.length === 2);
    first.tap.kill();
    await second.work([job], slots);
    await world.advance("60s", 500);
    expect(runs).toHaveLength(3);
  });

  test("[H1] [H3] a breaker's probe of a name with a budget takes its tokens", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    await client.hf.budgets.set("api", { limit: 1, per: "365d", burst: 3 });
    const options = {
      budget: "api",
      breaker: { after: 1, cooldown: "10s" } as const,
      retry: { attempts: 1 },
    };
    const { job, runs } = heldJob(world, "call", options);
    await client.work([job], { queues: { default: 1 } });
    await many(client, job, 5);
    for (const n of [1, 2, 3]) {
      await world.until(`run ${n}`, () => runs.length === n);
      runs[n - 1]!.fail(new Error("boom"));
    }
    await world.advance("60s", 500);
    expect(runs).toHaveLength(3);
    expect(await tokensOf(client, "api")).toBeLessThan(0.1);
  });

  test("[H1] a worker whose names have no budget never asks for one", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    const { job, runs } = quickJob(world);
    await client.work([job], slots);
    await many(client, job, 5);
    await world.until("them to run", () => runs.length === 5);
    expect(client.tap.count("claims.claimBudgeted", "budgets.list", "budgets.take")).toBe(0);
  });
});

test("[H1] a budget in a definition that is none is refused with a code", () => {
  const define = (budget: unknown) => () =>
    defineJob({ name: "call", budget: budget as string, run: () => 1 });
  for (const [budget, code] of [
    ["", "BAD_NAME"],
    ["a b", "BAD_NAME"],
    [7, "BAD_OPTION"],
    [null, "BAD_OPTION"],
    [() => "api", "BAD_OPTION"],
    [["api"], "BAD_OPTION"],
    [{}, "BAD_NAME"],
    [{ name: "api", token: 2 }, "UNKNOWN_OPTION"],
    ...[0, -1, Number.NaN, Infinity, 1e13, "2", null].map((tokens) => [
      { name: "api", tokens },
      "BAD_OPTION",
    ]),
  ] as const) {
    expect(define(budget), JSON.stringify(budget)).toThrow(UsageError);
    expect(define(budget), JSON.stringify(budget)).toThrow(expect.objectContaining({ code }));
  }
  expect(defineJob({ name: "a", budget: "api" }).budget).toEqual({ name: "api", tokens: 1 });
  expect(defineJob({ name: "a", budget: { name: "api", tokens: 0.25 } }).budget).toEqual({
    name: "api",
    tokens: 0.25,
  });
});
