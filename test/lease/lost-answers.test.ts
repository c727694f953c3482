// O1, O4: an answer that was lost is an unknown outcome. The worker finds out what its session holds, and releases the rest.
import { expect, test } from "vitest";
import { StoreError } from "../../src/errors.ts";
import { laneCounts, queueCounts } from "../support/lane-counts.ts";
import { onEveryStore } from "../support/stores.ts";
import {
  type Client,
  heldJob,
  jobOf,
  newWorld,
  quickJob,
  sessionInfo,
  type Verb,
  type World,
} from "../support/world.ts";

const everything = { queues: "all", names: "all", limit: 10, order: "highest-first" } as const;
const freshCursor = () => ({ levels: new Map(), rescannedAt: -Infinity });
const lostAnswer = () => new StoreError("CONNECTION_LOST", "the answer was lost after the commit");

/** The call happens, and its answer is lost: `times` times in a row. */
function loseAnswers(client: Client, verb: Verb, times: number): { lost: number } {
  const seen = { lost: 0 };
  client.tap.around = async (called, call) => {
    const answer = await call();
    if (called !== verb || seen.lost >= times || (Array.isArray(answer) && answer.length === 0))
      return answer;
    seen.lost += 1;
    throw lostAnswer();
  };
  return seen;
}

/** The claimed jobs, each with the token of its claim. */
async function heldRows(world: World): Promise<{ id: unknown; token: unknown }[]> {
  const rows = await world.rows("ready");
  return rows.map(({ id, token }) => ({ id, token })).filter(({ token }) => token !== null);
}

async function running(world: World): Promise<number> {
  return (await heldRows(world)).length;
}

onEveryStore((target) => {
  test("[O1] jobs of a claim whose answer was lost run once, without an attempt or a crash counted", async () => {
    const world = await newWorld(target);
    const a = await world.client();
    const { job, runs } = quickJob(world);
    const seen = loseAnswers(a, "claims.claim", 2);
    await a.work([job], { queues: { default: 10 } });
    const ids: string[] = [];
    for (let n = 0; n < 20; n++) ids.push((await a.hf.enqueue(job, { n })).id);
    await world.until("all to end", async () => (await a.hf.jobs.count({ state: "done" })) === 20);
    expect(seen.lost).toBe(2);
    expect(runs.map(({ n }) => n).toSorted((x, y) => x - y)).toEqual(ids.map((_, n) => n));
    for (const id of ids) expect(await jobOf(a, id)).toMatchObject({ attempt: 1, crashes: 0 });
    expect(await world.rows("claim")).toEqual([]);
  });

  test("[O1] limits of a queue and its lanes are returned for a claim whose answer was lost", async () => {
    const world = await newWorld(target);
    const a = await world.client();
    const { job, runs } = quickJob(world, "quick", { lane: () => "tenant", lanes: { concurrency: 1 } });
    await a.hf.queues.set("default", { concurrency: 2 });
    const seen = loseAnswers(a, "claims.claim", 3);
    for (let n = 0; n < 6; n++) await a.hf.enqueue(job, { n });
    await a.work([job], { queues: { default: 4 } });
    await world.until("all to end", async () => (await a.hf.jobs.count({ state: "done" })) === 6);
    expect(seen.lost).toBe(3);
    expect(runs).toHaveLength(6);
    expect(await laneCounts(world.fresh)).toEqual([0]);
    expect(await queueCounts(world.fresh)).toEqual([0]);
  });

  test("[O1] a claim that commits after the worker gave it up is released at the next renewal", async () => {
    const world = await newWorld(target);
    const a = await world.client();
    const { job, runs } = quickJob(world);
    await a.work([job], { queues: { default: 10 }, lease: "30s", heartbeat: "10s" });
    // The server goes on with a claim that the client has abandoned: it commits a second later.
    const session = Number((await world.rows("session"))[0]!["id"]);
    a.tap.around = (verb, call) => (verb === "claims.claim" ? Promise.resolve([]) : call());
    const { id } = await a.hf.enqueue(job, { n: 1 });
    const taken = await a.tap.raw.claims.claim(session, everything, freshCursor());
    expect(taken.map((each) => each.id)).toEqual([id]);
    a.tap.around = null;
    await world.advance("11s");
    await world.until("it to end", async () => (await jobOf(a, id)).state === "done");
    expect(runs).toMatchObject([{ n: 1, attempt: 1 }]);
    expect(await jobOf(a, id)).toMatchObject({ attempt: 1, crashes: 0 });
  });

  test("[O1] what runs, waits for a slot or is being settled is never released by the comparison", async () => {
    const world = await newWorld(target);
    const a = await world.client();
    const quick = quickJob(world);
    const { job, runs } = heldJob(world);
    await a.work([quick.job, job], { queues: { default: 3 }, lease: "30s", heartbeat: "10s" });
    const ended = (): Promise<number> => a.hf.jobs.count({ state: "done" });
    // Short jobs first, so that the worker claims more than its slots.
    for (let n = 0; n < 10; n++) await a.hf.enqueue(quick.job, { n });
    await world.until("the short ones to end", async () => (await ended()) === 10);
    await a.hf.enqueueMany([0, 1, 2, 3, 4].map((n) => ({ job, input: { n } })));
    await world.until("three to run", async () => runs.length === 3 && (await running(world)) === 5);

    const settling = Promise.withResolvers<void>();
    let [settles, lost] = [0, 0];
    a.tap.around = async (verb, call) => {
      if (verb === "settles.settle" && settles++ === 0) await a.tap.late(settling.promise);
      const answer = await call();
      if (verb !== "claims.claim" || lost > 0 || (answer as unknown[]).length === 0) return answer;
      lost += 1;
      throw lostAnswer();
    };
    runs[0]!.finish("first");
    await world.until("its settle to be sent", () => settles === 1 && runs.length === 4, "1s", 10);
    const before = await heldRows(world);
    expect(before).toHaveLength(5);
    // The answer of the next claim is lost, and the comparison runs.
    await a.hf.enqueue(job, { n: 5 });
    await world.until("the comparison", () => lost === 1 && settles === 2, "900ms", 10);
    expect(await heldRows(world)).toEqual(expect.arrayContaining(before));
    for (const { ctx } of runs) expect(ctx.signal.aborted).toBe(false);

    settling.resolve();
    await world.until("all to end", async () => {
      for (const run of runs) run.finish("later");
      return (await ended()) === 16;
    });
    expect(runs.map(({ input }) => input.n).toSorted((x, y) => x - y)).toEqual([0, 1, 2, 3, 4, 5]);
    expect(await jobOf(a, runs[0]!.ctx.id)).toMatchObject({ output: "first" });
  });

  test.each(["claims.claim", "claims.claimBudgeted"] as const)(
    "[O1] one part of a claim succeeds and the answer of the other (%s) is lost: every job runs once",
    async (verb) => {
      const world = await newWorld(target);
      const a = await world.client();
      const plain = quickJob(world, "plain");
      const metered = quickJob(world, "metered", { budget: "api" });
      await a.hf.budgets.set("api", { limit: 1_000, per: "1s" });
      for (let n = 0; n < 4; n++) {
        await a.hf.enqueue(plain.job, { n });
        await a.hf.enqueue(metered.job, { n });
      }
      let lost = 0;
      a.tap.around = async (called, call) => {
        const answer = await call();
        const jobs = called === "claims.claimBudgeted" ? (answer as { jobs: unknown[] }).jobs : answer;
        if (called !== verb || lost === 2 || (jobs as unknown[]).length === 0) return answer;
        lost += 1;
        throw lostAnswer();
      };
      await a.work([plain.job, metered.job], { queues: { default: 10 } });
      await world.until("all to end", async () => (await a.hf.jobs.count({ state: "done" })) === 8);
      expect(lost).toBe(2);
      expect(plain.runs).toHaveLength(4);
      expect(metered.runs).toHaveLength(4);
    },
  );

  test("[O4] the fence names the session: the same token under another session settles nothing", async () => {
    const world = await newWorld(target);
    const { hf, tap } = await world.client();
    const { id } = await hf.enqueue("quick", { n: 1 });
    const stale = await tap.raw.sessions.open(sessionInfo());
    const holder = await tap.raw.sessions.open(sessionInfo());
    const [job] = await tap.raw.claims.claim(holder, everything, freshCursor());
    // After a failover to a replica that lagged, the sequence gives the same token to another claim of the same job.
    const { rowKey, token, attempt, crashes } = job!;
    const end = {
      move: "end" as const,
      id,
      rowKey,
      token,
      state: "done" as const,
      output: null,
      errors: null,
      attempt,
      crashes,
      keyed: false,
      keep: true,
    };
    const again = {
      move: "again" as const,
      id,
      token,
      delayMs: 0,
      errors: null,
      attempt: 0,
      crashes,
      throttled: false,
      begun: false,
    };
    const before = await world.readyRow(id);
    const claims = await world.rows("claim");
    expect(await tap.raw.settles.settle(stale, [end], [token])).toEqual(new Set());
    expect(await tap.raw.settles.settle(stale, [{ ...end, output: '"late"' }], [token])).toEqual(new Set());
    expect(await tap.raw.settles.settle(stale, [{ ...end, state: "dead" }], [token])).toEqual(new Set());
    expect(await tap.raw.settles.settle(stale, [again], [token])).toEqual(new Set());
    expect(await tap.raw.settles.progress(stale, id, token, "1")).toBe(false);
    expect(await world.readyRow(id)).toEqual(before);
    expect(await world.rows("claim")).toEqual(claims);
    expect(await tap.raw.settles.settle(holder, [end], [token])).toEqual(new Set([id]));
  });

  test("[O4] a handler whose claim the new primary does not have is aborted at the next renewal", async () => {
    const world = await newWorld(target);
    const a = await world.client();
    const { job, runs } = heldJob(world);
    await a.work([job], { queues: { default: 2 }, lease: "30s", heartbeat: "10s" });
    const { id } = await a.hf.enqueue(job, { n: 1 });
    await world.until("it to start", () => runs.length === 1);
    await world.advance("1s");
    // As a replica that has not received the claim: the row is ready and no claim names it.
    await world.fresh.query(`delete from ${world.fresh.table("claim")}`);
    await world.fresh.query(
      `update ${world.fresh.table("ready")} set token = null, session = null, started_at = null, attempt = 0`,
    );
    await world.advance("11s");
    expect(runs[0]!.ctx.signal.reason).toMatchObject({ code: "LEASE_LOST" });
    await world.until("it to start again", () => runs.length === 2);
    runs[0]!.finish("stale");
    runs[1]!.finish("fresh");
    await world.until("it to end", async () => (await jobOf(a, id)).state === "done");
    expect(await jobOf(a, id)).toMatchObject({ output: "fresh" });
  });

  test("[O4] a job whose settle the new primary has lost runs again", async () => {
    const world = await newWorld(target);
    const a = await world.client();
    const { job, runs } = heldJob(world);
    await a.work([job], { queues: { default: 2 }, lease: "30s", heartbeat: "10s" });
    const { id } = await a.hf.enqueue(job, { n: 1 });
    await world.until("it to start", () => runs.length === 1);
    // The settle is acknowledged, and then the primary is replaced by a replica that has not received it.
    a.tap.around = (verb, call, args) =>
      verb === "settles.settle"
        ? Promise.resolve(new Set((args[1] as { id: string }[]).map((one) => one.id)))
        : call();
    runs[0]!.finish("lost");
    await world.advance("1s");
    a.tap.around = null;
    await world.advance("11s");
    await world.until("it to start again", () => runs.length === 2);
    runs[1]!.finish("kept");
    await world.until("it to end", async () => (await jobOf(a, id)).state === "done");
    expect(await jobOf(a, id)).toMatchObject({ output: "kept", attempt: 1, crashes: 0 });
  });
});
