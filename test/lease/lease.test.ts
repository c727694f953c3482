// C: a lease is a worker's right to settle one attempt until an instant. Whoever is too late changes nothing.
import { expect, test } from "vitest";
import { presets } from "../../src/jobs/presets.ts";
import type { Lease } from "../../src/lease/lease-client.ts";
import type { RowKey } from "../../src/jobs/job.ts";
import type { Transition } from "../../src/jobs/outcome.ts";
import { onEveryStore } from "../support/stores.ts";
import {
  type Client,
  heldJob,
  jobOf,
  lost,
  newWorld,
  quickJob,
  sessionInfo,
  type World,
} from "../support/world.ts";

const everything = { queues: "all", names: "all", limit: 10, order: "highest-first" } as const;
const freshCursor = () => ({ levels: new Map(), rescannedAt: -Infinity });

const acks: Record<string, (lease: Lease) => Promise<unknown>> = {
  done: (lease) => lease.done({ ok: true }),
  fail: (lease) => lease.fail(new Error("late")),
  dead: (lease) => lease.dead("late"),
  throttle: (lease) => lease.throttle("1s"),
  release: (lease) => lease.release(),
  renew: (lease) => lease.renew(),
};

/** One job, leased by `a` for a second that has passed. */
async function outlived(world: World): Promise<{ a: Client; b: Client; stale: Lease; id: string }> {
  const a = await world.client();
  const b = await world.client();
  const { id } = await a.hf.enqueue("quick", { n: 1 });
  const [stale] = await a.hf.lease({ for: "1s" });
  await world.advance("2s");
  return { a, b, stale: stale!, id };
}

onEveryStore((target) => {
  test.each(Object.entries(acks))(
    "[C1] a stale holder changes nothing by a late %s, is told, and is warned of and counted once",
    async (_way, ack) => {
      const world = await newWorld(target);
      const { a, b, stale, id } = await outlived(world);
      const lostEvents = a.told("lease.lost");
      // The time alone takes the right away, also before anybody has taken the job over.
      const orphaned = await world.readyRow(id);
      await expect(ack(stale)).rejects.toMatchObject({ code: "LEASE_LOST" });
      expect(await world.readyRow(id)).toEqual(orphaned);

      const [fresh] = await b.hf.lease({ for: "60s" });
      expect(fresh!.id).toBe(id);
      expect(fresh!.token).toBeGreaterThan(stale.token);
      const taken = await world.readyRow(id);
      await expect(ack(stale)).rejects.toMatchObject({ code: "LEASE_LOST" });
      expect(await world.readyRow(id)).toEqual(taken);
      expect(await world.rows("history")).toEqual([]);

      expect(a.log.filter(({ message }) => message.startsWith("a lease was lost"))).toHaveLength(1);
      expect(lostEvents).toMatchObject([{ id, token: stale.token }]);
      expect((await a.hf.stats()).counters.leasesLost).toBe(1);
      await fresh!.done("by the holder");
      expect(await jobOf(b, id)).toMatchObject({ state: "done", output: "by the holder", attempt: 1 });
    },
  );

  test.each(Object.entries(acks).filter(([way]) => way !== "renew"))(
    "[C1] once another holds the job, a first late %s changes nothing either",
    async (_way, ack) => {
      const world = await newWorld(target);
      const { b, stale, id } = await outlived(world);
      await b.hf.lease({ for: "60s" });
      const taken = await world.readyRow(id);
      await expect(ack(stale)).rejects.toMatchObject({ code: "LEASE_LOST" });
      expect(await world.readyRow(id)).toEqual(taken);
      expect(await world.rows("history")).toEqual([]);
    },
  );

  test("[C1] an old token is refused also where the same session has claimed the job again", async () => {
    const world = await newWorld(target);
    const { hf, tap } = await world.client();
    const { id } = await hf.enqueue("quick", { n: 1 });
    const session = await tap.store.sessions.open(sessionInfo());
    const claim = async () => (await tap.store.claims.claim(session, everything, freshCursor()))[0]!;
    const first = await claim();
    await tap.store.settles.settle(session, [again(first)], [first.token]);
    const second = await claim();
    expect(second.token).toBeGreaterThan(first.token);
    const before = await world.readyRow(id);

    expect(await tap.store.settles.settle(session, [end(first)], [])).toEqual(new Set());
    expect(await tap.store.settles.settle(session, [again(first)], [])).toEqual(new Set());
    expect(await tap.store.settles.progress(session, id, first.token, "1")).toBe(false);
    expect(await world.readyRow(id)).toEqual(before);
    expect(await tap.store.settles.progress(session, id, second.token, "1")).toBe(true);
    expect(await tap.store.settles.settle(session, [end(second)], [second.token])).toEqual(new Set([id]));
  });

  test("[C1] id and token are matched pairwise: two right tokens on the wrong ids settle nothing", async () => {
    const world = await newWorld(target);
    const { hf, tap } = await world.client();
    await hf.enqueueMany([1, 2].map((n) => ({ job: "quick", input: { n } })));
    const session = await tap.store.sessions.open(sessionInfo());
    const one = { ...everything, limit: 1 };
    const [first] = await tap.store.claims.claim(session, one, freshCursor());
    const [second] = await tap.store.claims.claim(session, one, freshCursor());
    const crossed = [
      { ...end(first!), token: second!.token },
      { ...end(second!), token: first!.token },
    ];
    expect(await tap.store.settles.settle(session, crossed, [])).toEqual(new Set());
    const swapped = [
      { ...again(first!), token: second!.token },
      { ...again(second!), token: first!.token },
    ];
    expect(await tap.store.settles.settle(session, swapped, [])).toEqual(new Set());
    expect(await tap.store.settles.settle(session, [end(first!), end(second!)], [])).toHaveLength(2);
  });

  test("[C1] a worker that was cut off writes nothing of what its handlers still return", async () => {
    const world = await newWorld(target);
    const a = await world.client();
    const b = await world.client();
    const { job, runs } = heldJob(world);
    await a.work([job], { queues: ["default"], lease: "10s", heartbeat: "3s" });
    const { id } = await a.hf.enqueue(job, { n: 1 });
    await world.until("it to start", () => runs.length === 1);
    const lostEvents = a.told("lease.lost");
    a.tap.around = (verb, call) => (verb === "sessions.renew" || verb === "sessions.open" ? lost() : call());
    await world.advance("11s");
    await b.work([job], { queues: ["default"] });
    await world.until("the other to take over", () => runs.length === 2);
    const before = await world.readyRow(id);

    a.tap.around = null;
    runs[0]!.finish("stale");
    await world.advance("1s");
    expect(await world.readyRow(id)).toEqual(before);
    expect(lostEvents).toMatchObject([{ id }]);
    expect(runs[0]!.ctx.signal.reason).toMatchObject({ code: "LEASE_LOST" });
    await expect(runs[0]!.ctx.progress(1)).rejects.toMatchObject({ code: "LEASE_LOST" });

    runs[1]!.finish("fresh");
    await world.until("it to end", async () => (await jobOf(b, id)).state === "done");
    expect(await jobOf(b, id)).toMatchObject({ output: "fresh", attempt: 1, crashes: 1 });
  });

  test("[C2] one renewal extends all leases of a session and no other's; an expired lease is never revived", async () => {
    const world = await newWorld(target);
    const { hf, tap } = await world.client();
    await hf.enqueueMany(Array.from({ length: 5 }, (_, n) => ({ job: "quick", input: { n } })));
    const expired = await hf.lease({ limit: 1, for: "5s" });
    const foreign = await hf.lease({ limit: 1, for: "20s" });
    const live = await hf.lease({ limit: 3, for: "20s" });
    await world.advance("10s");

    const renewals = tap.count("sessions.renew");
    await live[0]!.renew();
    expect(tap.count("sessions.renew") - renewals).toBe(1);
    const ends = async (leases: Lease[]) => {
      const jobs = await Promise.all(leases.map(({ id }) => hf.jobs.get(id)));
      return jobs.map((job) => job!.leaseUntil!.getTime() - world.clock.now());
    };
    expect(await ends(live)).toEqual([20_000, 20_000, 20_000]);
    expect(await ends(foreign)).toEqual([10_000]);

    for (let tries = 0; tries < 3; tries++) {
      await expect(expired[0]!.renew()).rejects.toMatchObject({ code: "LEASE_LOST" });
      expect(await ends(expired)).toEqual([-5_000]);
    }
    expect(await tap.store.sessions.renew(987_654)).toMatchObject({ alive: false });
    expect(await hf.lease({ limit: 1, for: "20s" })).toMatchObject([{ id: expired[0]!.id }]);
  });

  test("[C2] a session that was closed is not renewed", async () => {
    const world = await newWorld(target);
    const { tap } = await world.client();
    const session = await tap.store.sessions.open(sessionInfo());
    expect(await tap.store.sessions.renew(session)).toMatchObject({ alive: true, stop: false, requests: [] });
    await tap.store.sessions.close(session);
    expect(await tap.store.sessions.renew(session)).toMatchObject({ alive: false });
  });

  test("[C3] lease and heartbeat default to 30 s and 10 s; a heartbeat that cannot keep its lease is refused", async () => {
    const world = await newWorld(target);
    const { hf, tap, work } = await world.client();
    const { job } = quickJob(world);
    const bad = [
      { lease: "10s", heartbeat: "10s" },
      { lease: "10s", heartbeat: "11s" },
      { lease: "10s", heartbeat: 0 },
      { lease: 0 },
      { lease: 1 },
      { heartbeat: "30s" },
    ] as const;
    for (const options of bad) {
      expect(() => hf.work([job], { queues: ["default"], ...options })).toThrow(
        expect.objectContaining({ code: "BAD_LEASE" }),
      );
    }
    expect(await hf.workers.list()).toEqual([]);

    await work([job], { queues: ["default"] });
    const [worker] = await hf.workers.list();
    expect(worker!.leaseUntil.getTime() - worker!.beatAt.getTime()).toBe(30_000);
    const beats = tap.count("sessions.renew");
    await world.advance("60s");
    expect(tap.count("sessions.renew") - beats).toBe(6);
    expect(presets.pgTask.worker).toMatchObject({ lease: "60s", heartbeat: "20s" });
  });

  test("[C4] a healthy job that takes five leases runs once, as attempt 1", async () => {
    const world = await newWorld(target);
    const a = await world.client();
    const b = await world.client();
    const { job, runs } = heldJob(world);
    await a.work([job], { queues: { default: 1 }, lease: "10s", heartbeat: "3s" });
    const { id } = await a.hf.enqueue(job, { n: 1 });
    await world.until("it to start", () => runs.length === 1);
    await b.work([job], { queues: { default: 1 } });
    await world.advance("50s");
    expect(await jobOf(a, id)).toMatchObject({ state: "running", attempt: 1, crashes: 0 });
    runs[0]!.finish("long");
    await world.until("it to end", async () => (await jobOf(a, id)).state === "done");
    expect(runs).toHaveLength(1);
    expect(await jobOf(a, id)).toMatchObject({ output: "long", attempt: 1, crashes: 0 });
  });

  test("[C5] a heartbeat that says cancel aborts that job and leaves the two beside it alone", async () => {
    const world = await newWorld(target);
    const a = await world.client();
    const b = await world.client();
    const { job, runs } = heldJob(world);
    await a.work([job], { queues: { default: 3 } });
    const ids = (await a.hf.enqueueMany([1, 2, 3].map((n) => ({ job, input: { n } })))).map(({ id }) => id);
    await world.until("all to run", () => runs.length === 3);
    expect(await b.hf.jobs.cancel(ids[1]!)).toBe("cancel_requested");
    await world.advance("11s");
    const aborted = runs.map(({ input, ctx }) => [input.n, ctx.signal.aborted] as const);
    expect(aborted.sort(([x], [y]) => x - y)).toEqual([
      [1, false],
      [2, true],
      [3, false],
    ]);
    for (const run of runs) {
      if (run.ctx.signal.aborted) run.fail(run.ctx.signal.reason);
      else run.finish();
    }
    const states = async () => Promise.all(ids.map(async (id) => (await jobOf(a, id)).state));
    await world.until("all to end", async () => !(await states()).includes("running"));
    expect(await states()).toEqual(["done", "cancelled", "done"]);
  });

  test("[C5] a heartbeat that says lost aborts what that session held, and nobody else's", async () => {
    const world = await newWorld(target);
    const a = await world.client();
    const b = await world.client();
    const { job, runs } = heldJob(world);
    await a.work([job], { queues: { default: 1 } });
    await b.work([job], { queues: { default: 1 } });
    await a.hf.enqueueMany([1, 2].map((n) => ({ job, input: { n } })));
    await world.until("both to run", () => runs.length === 2);
    const mine = runs.find(({ ctx }) => ctx.hostId === "host-0")!;
    const other = runs.find(({ ctx }) => ctx.hostId === "host-1")!;
    // An operator, or a database restored from a backup: the row says that the session is over.
    await world.fresh.query(
      `update ${world.fresh.table("session")} set lease_until = 0 where worker_id = ?`,
      [mine.ctx.workerId],
    );
    await world.until("the heartbeat to hear of it", () => mine.ctx.signal.aborted, "11s");
    expect(mine.ctx.signal.reason).toMatchObject({ code: "LEASE_LOST" });
    expect(other.ctx.signal.aborted).toBe(false);
    other.finish("kept");
    await world.until("the other to end", async () => (await jobOf(b, other.ctx.id)).state === "done");
  });

  test("[C5] of three running jobs one that was stolen has its signal aborted, and the two beside it finish", async () => {
    const world = await newWorld(target);
    const { hf, work, told } = await world.client();
    const { job, runs } = heldJob(world);
    await work([job], { queues: { default: 3 } });
    const ids = (await hf.enqueueMany([1, 2, 3].map((n) => ({ job, input: { n } })))).map(({ id }) => id);
    await world.until("all to run", () => runs.length === 3);
    // A session's leases stand and fall together, so only a hand in the database steals a single one.
    const { jobKey, jobKeyOf } = world.fresh;
    await world.fresh.query(
      `update ${world.fresh.table("ready")} set token = token + 1000 where ${jobKey} = ${jobKeyOf("?")}`,
      [ids[0]],
    );
    const before = await world.readyRow(ids[0]!);
    const lostEvents = told("lease.lost");
    await world.advance("11s");
    const aborted = runs.map(({ input, ctx }) => [input.n, ctx.signal.aborted] as const);
    expect(aborted.sort(([x], [y]) => x - y)).toEqual([
      [1, true],
      [2, false],
      [3, false],
    ]);
    for (const run of runs) run.finish(run.input.n);
    await world.until("the two to end", async () => (await hf.jobs.count({ state: "done" })) === 2);
    expect(await world.readyRow(ids[0]!)).toEqual(before);
    expect(lostEvents).toMatchObject([{ id: ids[0] }]);
  });

  test("[C6] claiming pauses while renewals fail, and goes on when they get through again", async () => {
    const world = await newWorld(target);
    const a = await world.client();
    const { job, runs } = quickJob(world);
    await a.work([job], { queues: ["default"] });
    const paused = a.told("worker.paused");
    const resumed = a.told("worker.resumed");
    a.tap.around = (verb, call) => (verb === "sessions.renew" ? lost() : call());
    await world.advance("11s");
    expect(paused).toHaveLength(1);
    await a.hf.enqueue(job, { n: 1 });
    await world.advance("10s");
    expect(runs).toEqual([]);

    a.tap.around = null;
    await world.until("it to run", () => runs.length === 1, "3s");
    expect(resumed).toHaveLength(1);
  });

  test("[C6] an attempt whose lease cannot be renewed is aborted before the lease can pass to another", async () => {
    const world = await newWorld(target);
    const a = await world.client();
    const b = await world.client();
    const { job, runs } = heldJob(world);
    await a.work([job], { queues: ["default"] });
    const { id } = await a.hf.enqueue(job, { n: 1 });
    await world.until("it to start", () => runs.length === 1);
    await b.work([job], { queues: ["default"] });
    let leftMs: number | undefined;
    runs[0]!.ctx.signal.addEventListener("abort", () => (leftMs = leaseEnd - world.clock.now()));
    a.tap.around = (verb, call) => (verb === "sessions.renew" ? lost() : call());
    const leaseEnd = (await jobOf(b, id)).leaseUntil!.getTime();
    await world.until("it to start elsewhere", () => runs.length === 2, "35s");
    expect(leftMs).toBeGreaterThan(0);
    expect(runs[1]!.at).toBeGreaterThanOrEqual(leaseEnd);
    expect(runs[1]!.at).toBeLessThanOrEqual(leaseEnd + 5_000);
  });

  test("[C6] the local end of a lease counts from before its renewal was sent, however late the answer came", async () => {
    const world = await newWorld(target);
    const a = await world.client();
    const { job, runs } = heldJob(world);
    await a.work([job], { queues: ["default"] });
    await a.hf.enqueue(job, { n: 1 });
    await world.until("it to start", () => runs.length === 1);
    let answer = (): void => {};
    let sentAt = Number.NaN;
    a.tap.around = async (verb, call) => {
      if (verb !== "sessions.renew") return call();
      if (!Number.isNaN(sentAt)) return a.tap.late();
      sentAt = world.clock.monotonic();
      const renewal = await call();
      await a.tap.late(new Promise<void>((resolve) => (answer = resolve)));
      return renewal;
    };
    await world.until("the renewal to be sent", () => !Number.isNaN(sentAt), "11s");
    await world.advance("15s");
    answer();
    await world.until("it to be given up", () => runs[0]!.ctx.signal.aborted, "60s");
    const heldMs = world.clock.monotonic() - sentAt;
    expect(heldMs).toBeGreaterThan(25_000);
    expect(heldMs).toBeLessThan(30_000);
  });

  test("[C7] a dead worker's job starts elsewhere within its lease and 5 s; a fresh lease is untouched", async () => {
    const world = await newWorld(target);
    const [a, b, c] = [await world.client(), await world.client(), await world.client()];
    const { job, runs } = heldJob(world);
    await a.work([job], { queues: { default: 1 } });
    await a.hf.enqueue(job, { n: 1 });
    await world.until("the first to start", () => runs.length === 1);
    await b.work([job], { queues: { default: 1 } });
    await a.hf.enqueue(job, { n: 2 });
    await world.until("the second to start", () => runs.length === 2);
    const fresh = await world.readyRow(runs[1]!.ctx.id);
    a.tap.kill();
    const killedAt = world.clock.now();
    await c.work([job], { queues: { default: 2 } });
    await world.until("the first to start again", () => runs.length === 3, "36s");

    const again = runs[2]!;
    expect(again.ctx.id).toBe(runs[0]!.ctx.id);
    expect(again.at - killedAt).toBeLessThanOrEqual(35_000);
    expect(again.ctx.attempt).toBe(1);
    expect(await jobOf(c, again.ctx.id)).toMatchObject({ state: "running", crashes: 1, attempt: 1 });
    expect(await world.readyRow(runs[1]!.ctx.id)).toEqual(fresh);
  });

  test("[C7] an expired lease is taken over by a later hf.lease as well", async () => {
    const world = await newWorld(target);
    const { b, stale, id } = await outlived(world);
    const [fresh] = await b.hf.lease();
    expect(fresh).toMatchObject({ id, attempt: 1 });
    expect(fresh!.token).toBeGreaterThan(stale.token);
  });

  test("[C8] each crash is counted and recorded without using an attempt, and one too many ends the job", async () => {
    const world = await newWorld(target);
    const { hf } = await world.client();
    const { id } = await hf.enqueue("poison", {});
    const crash = async (): Promise<void> => {
      const [lease] = await hf.lease({ for: "1s" });
      expect(lease).toMatchObject({ id, attempt: 1 });
      await world.advance("2s");
    };
    for (let crashes = 0; crashes < 5; crashes++) {
      expect((await hf.jobs.get(id))!.crashes).toBe(Math.max(0, crashes - 1));
      await crash();
    }
    expect(await hf.lease()).toEqual([]);
    const job = (await hf.jobs.get(id))!;
    expect(job).toMatchObject({ state: "dead", crashes: 5, error: "killed its worker 5 times" });
    expect(job.errors.map(({ message }) => message)).toEqual([
      "its worker died (crash 1)",
      "its worker died (crash 2)",
      "its worker died (crash 3)",
      "its worker died (crash 4)",
      "killed its worker 5 times",
    ]);
    // Not failures: each was held for its lease of a second, and found a second later.
    for (const { lost, ranMs } of job.errors) expect([lost, ranMs]).toEqual([true, 1_000]);
    const history = await hf.jobs.history(id);
    expect(history?.attempts.map(({ lost }) => lost)).toEqual([true, true, true, true, true]);
  });

  test("[C8] with countCrashes attempt a crash uses up an attempt instead", async () => {
    const world = await newWorld(target);
    const { hf } = await world.client();
    const { job } = quickJob(world, "quick", { ...presets.crawler.job, retry: { attempts: 2 } });
    const { id } = await hf.enqueue(job, { n: 1 });
    for (const attempt of [1, 2]) {
      const [lease] = await hf.lease({ for: "1s" });
      expect(lease).toMatchObject({ id, attempt });
      await world.advance("2s");
    }
    expect(await hf.lease()).toEqual([]);
    expect(await hf.jobs.get(id)).toMatchObject({ state: "dead", attempt: 2, crashes: 2 });
  });

  test("[C8] counters at the end of their type stay there: the job is taken over and throttled all the same", async () => {
    const world = await newWorld(target);
    const { hf } = await world.client();
    // A crash ends the first; for the second it is an attempt.
    const { job } = quickJob(world, "counted", { ...presets.crawler.job, retry: { attempts: 2 } });
    const ids = [(await hf.enqueue("poison", {})).id, (await hf.enqueue(job, { n: 1 })).id];
    await world.fresh.query(`update ${world.fresh.table("ready")} set crashes = 32767, throttles = 32767`);
    expect(await hf.lease({ limit: 2, for: "1s" })).toHaveLength(2);
    await world.advance("2s");
    const [lease] = await hf.lease({ limit: 2 });
    expect(await hf.jobs.get(ids[0]!)).toMatchObject({ state: "dead", crashes: 32_767 });
    expect(lease).toMatchObject({ id: ids[1], attempt: 2 });
    await lease!.throttle("1s");
    expect(await world.readyRow(ids[1]!)).toMatchObject({ token: null, crashes: 32_767, throttles: 32_767 });
  });

  test("[C8] jobs that were claimed beside the one that kills its worker are done in the end", async () => {
    const world = await newWorld(target);
    const producer = await world.client();
    const good = quickJob(world);
    const ids = await producer.hf.enqueueMany([
      { job: "poison", input: {} },
      ...Array.from({ length: 10 }, (_, n) => ({ job: good.job, input: { n } })),
    ]);
    const { hf } = producer;
    // Every worker dies the moment that it runs the poison job, with whatever else it holds.
    for (let lives = 0; lives < 20 && (await hf.jobs.get(ids[0].id))!.state !== "dead"; lives++) {
      const victim = await world.client();
      const poison = heldJob(world, "poison");
      const slow = heldJob(world, "quick");
      await victim.work([poison.job, slow.job], { queues: { default: 4 }, lease: "5s", heartbeat: "1s" });
      await world.until("it to die", async () => {
        for (const run of slow.runs) run.finish();
        return poison.runs.length > 0 || (await hf.jobs.get(ids[0].id))!.state === "dead";
      });
      victim.tap.kill();
      await world.advance("6s");
    }
    const survivor = await world.client();
    await survivor.work([good.job], { queues: { default: 4 } });
    const state = async (): Promise<string[]> =>
      Promise.all(ids.map(async ({ id }) => (await hf.jobs.get(id))!.state));
    await world.until(
      "the others to be done",
      async () => !(await state()).slice(1).some((s) => s !== "done"),
    );
    expect(await hf.jobs.get(ids[0].id)).toMatchObject({
      state: "dead",
      error: "killed its worker 5 times",
    });
  });

  test("[C9] starting another worker, even of the same name, leaves the leases of others as they are", async () => {
    const world = await newWorld(target);
    const a = await world.client();
    const b = await world.client();
    const { job, runs } = heldJob(world);
    await a.work([job], { queues: { default: 2 }, name: "twin" });
    await a.hf.enqueueMany([1, 2].map((n) => ({ job, input: { n } })));
    await world.until("both to run", () => runs.length === 2);
    await world.quiet();
    const [{ id: own } = {}] = await world.rows("session");
    const seen = async () => {
      const session = (await world.rows("session")).find(({ id }) => id === own);
      return [await world.rows("ready"), await world.rows("claim"), session];
    };
    const before = await seen();
    await b.work([job], { queues: { default: 2 }, name: "twin" });
    await world.quiet();
    expect(await seen()).toEqual(before);
    expect(await world.rows("session")).toHaveLength(2);
    expect(runs).toHaveLength(2);
  });

  test("[C10] the database itself refuses a lease that is half set", async () => {
    const world = await newWorld(target);
    const { hf } = await world.client();
    const { id } = await hf.enqueue("quick", {});
    const ready = world.fresh.table("ready");
    const { jobKey, jobKeyOf } = world.fresh;
    const set = (columns: string) =>
      world.fresh.query(`update ${ready} set ${columns} where ${jobKey} = ${jobKeyOf("?")}`, [id]);
    await expect(set("token = 1")).rejects.toThrow(/lease_is_whole/);
    await expect(set("session = 1")).rejects.toThrow(/lease_is_whole/);
    await expect(set("token = 1, session = 1")).resolves.toEqual([]);
    await expect(set("token = null")).rejects.toThrow(/lease_is_whole/);
    const value = target.dialect === "sqlite" ? 1_000 : "01900000-0000-7000-8000-000000000000";
    await expect(
      world.fresh.query(
        `insert into ${ready} (${jobKey}, job_type, rank, run_at, token) values (?, 1, 0, 0, 1)`,
        [value],
      ),
    ).rejects.toThrow(/lease_is_whole/);
  });
});

function end(job: { id: string; rowKey: RowKey; token: number; attempt: number }): Transition {
  const { id, rowKey, token, attempt } = job;
  return {
    move: "end",
    id,
    rowKey,
    token,
    state: "done",
    output: null,
    errors: null,
    attempt,
    crashes: 0,
    keyed: false,
    keep: true,
  };
}

function again(job: { id: string; token: number; attempt: number }): Transition {
  const { id, token, attempt } = job;
  return {
    move: "again",
    id,
    token,
    delayMs: 0,
    errors: null,
    attempt: attempt - 1,
    crashes: 0,
    throttled: false,
    begun: true,
  };
}
