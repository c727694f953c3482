// O1: hf.lease, and a worker that stops, do not know what a claim without an answer has taken. They find out before they let go:
// nothing of it has started, so it is given back without a crash, and nothing is claimed twice.
import { expect, onTestFinished, test } from "vitest";
import { defineMachine, finish, next } from "../../src/index.ts";
import { StoreError } from "../../src/errors.ts";
import type { Call } from "../../src/storage/catalogue.ts";
import type { Driver } from "../../src/storage/driver.ts";
import { openDriver } from "../../src/storage/open.ts";
import { FakeClock } from "../../src/testing/fake-clock.ts";
import { queueCounts } from "../support/lane-counts.ts";
import { onEveryStore, type StoreTarget } from "../support/stores.ts";
import { type Client, heldJob, jobOf, lost, newWorld, quickJob, World } from "../support/world.ts";

/** Claims commit, and their answers are lost: so many in a row that brought something. */
function loseClaims(client: Client, times: number): { lost: number } {
  const seen = { lost: 0 };
  client.tap.around = async (verb, call) => {
    const answer = await call();
    if (verb !== "claims.claim" || seen.lost >= times || (answer as unknown[]).length === 0) return answer;
    seen.lost += 1;
    return lost();
  };
  return seen;
}

/** A world in which this read is refused, so often, whoever asks. */
async function refusing(target: StoreTarget, name: Call["name"], times: number): Promise<World> {
  const clock = new FakeClock();
  const fresh = await target.migrated();
  const real = await openDriver(fresh.url, { ...fresh.options, clock });
  let refused = 0;
  const read: Driver["read"] = (call, lane) =>
    call.name === name && refused++ < times
      ? Promise.reject(new StoreError("DATABASE_FAILING", "refused by the test"))
      : real.read(call, lane);
  const own: Partial<Driver> = { read, close: async () => {} };
  const driver = new Proxy(real, {
    get: (of, key) => {
      const value: unknown = Reflect.get(own, key) ?? Reflect.get(of, key, of);
      return typeof value === "function" ? (value.bind(of) as unknown) : value;
    },
  });
  const world = new World(fresh, clock, driver);
  onTestFinished(async () => {
    await world.closeClients();
    await real.close();
  });
  return world;
}

onEveryStore((target) => {
  test("[O1] hf.lease gives back what a claim took whose answer was lost, without an attempt or a crash", async () => {
    const world = await newWorld(target);
    const a = await world.client();
    await a.hf.queues.set("default", { concurrency: 1 });
    const { id } = await a.hf.enqueue("quick", { n: 1 });
    const seen = loseClaims(a, 6);
    for (let n = 0; n < 6; n++) {
      await expect(world.finish(a.hf.lease())).rejects.toMatchObject({ code: "CONNECTION_LOST" });
      expect(await world.rows("claim")).toEqual([]);
      expect(await jobOf(a, id)).toMatchObject({ state: "ready", attempt: 0, crashes: 0 });
    }
    expect(seen.lost).toBe(6);
    const leases = await world.finish(a.hf.lease());
    expect(leases).toMatchObject([{ id, attempt: 1 }]);
    await leases[0]!.done();
    // The next claim takes in the returned counts.
    expect(await a.hf.lease()).toEqual([]);
    const { id: second } = await a.hf.enqueue("quick", { n: 2 });
    const [last] = await world.finish(a.hf.lease());
    expect(last?.id).toBe(second);
    expect(await queueCounts(world.fresh)).toEqual([1]);
  });

  test("[O1] hf.lease gives back what it took though the database is away when it finds out", async () => {
    const world = await newWorld(target);
    const a = await world.client();
    const b = await world.client();
    const { id } = await a.hf.enqueue("quick", { n: 1 });
    let away = 0;
    a.tap.around = async (verb, call) => {
      if (verb === "claims.claim") {
        await call();
        away = 5;
        return lost();
      }
      return away-- > 0 ? lost() : call();
    };
    await expect(world.finish(a.hf.lease())).rejects.toMatchObject({ code: "CONNECTION_LOST" });
    expect(await jobOf(b, id)).toMatchObject({ state: "ready", attempt: 0, crashes: 0 });
  });

  test("[O1] a worker that stops while the answer of its claim is lost gives it back without a crash", async () => {
    const world = await newWorld(target);
    const a = await world.client();
    const b = await world.client();
    const { job, runs } = quickJob(world);
    const worker = await a.work([job], { queues: { default: 1 } });
    let stopping: Promise<void> | undefined;
    a.tap.around = async (verb, call) => {
      const answer = await call();
      if (verb !== "claims.claim" || (answer as unknown[]).length === 0 || stopping !== undefined)
        return answer;
      stopping = worker.stop();
      return lost();
    };
    const { id } = await b.hf.enqueue(job, { n: 1 });
    await world.until("it to stop", () => stopping !== undefined);
    await world.finish(stopping!);
    expect(await jobOf(b, id)).toMatchObject({ state: "ready", attempt: 0, crashes: 0 });
    expect(await world.rows("claim")).toEqual([]);
    await b.work([job], { queues: { default: 1 } });
    await world.until("it to end", async () => (await jobOf(b, id)).state === "done");
    expect(runs).toHaveLength(1);
  });

  test("[O1] what a stopping worker finds it holds is compared once more when its last job has ended", async () => {
    const world = await newWorld(target);
    const a = await world.client();
    const b = await world.client();
    const { job, runs } = heldJob(world);
    const worker = await a.work([job], { queues: { default: 2 }, lease: "30s", heartbeat: "10s" });
    await b.hf.enqueue(job, { n: 1 });
    await world.until("it to start", () => runs.length === 1);
    let stopping: Promise<void> | undefined;
    // The first comparison is lost too.
    let away = false;
    a.tap.around = async (verb, call) => {
      if (away && verb === "sessions.renew") return lost();
      const answer = await call();
      if (verb !== "claims.claim" || (answer as unknown[]).length === 0 || stopping !== undefined)
        return answer;
      stopping = worker.stop({ timeout: "1m" });
      away = true;
      return lost();
    };
    const { id } = await b.hf.enqueue(job, { n: 2 });
    await world.until("it to stop", () => stopping !== undefined);
    await world.advance("2s");
    away = false;
    await world.advance("5s");
    runs[0]!.finish();
    await world.finish(stopping!);
    expect(await jobOf(b, id)).toMatchObject({ state: "ready", attempt: 0, crashes: 0 });
    expect(runs[0]!.ctx.signal.aborted).toBe(false);
    expect(await b.hf.jobs.count({ state: "done" })).toBe(1);
  });

  test("[O1] hf.lease does not claim a second time beside a claim that committed: a later read was refused", async () => {
    const world = await refusing(target, "jobTypesById", 1);
    const a = await world.client();
    const b = await world.client();
    for (let n = 0; n < 4; n++) await a.hf.enqueue("quick", { n });
    const leases = await world.finish(b.hf.lease({ limit: 2 }));
    expect(leases).toMatchObject([{ attempt: 1 }, { attempt: 1 }]);
    expect(await a.hf.jobs.count({ state: "running" })).toBe(2);
    for (const lease of leases) await world.finish(lease.done());
    expect(await a.hf.jobs.count({ state: "running" })).toBe(0);
    expect(await world.rows("claim")).toEqual([]);
    for (const job of (await a.hf.jobs.list({ state: "ready" })).jobs)
      expect(job).toMatchObject({ attempt: 0, crashes: 0 });
  });

  test("[O1] a worker that cannot read the kinds of what it claimed runs each job once, uncrashed", async () => {
    const world = await refusing(target, "jobTypesById", 2);
    const a = await world.client();
    const b = await world.client();
    await a.hf.queues.set("limited", { concurrency: 1 });
    const { job, runs } = quickJob(world);
    for (let n = 0; n < 2; n++) {
      await a.hf.enqueue(job, { n });
      await a.hf.enqueue(job, { n: n + 2 }, { queue: "limited" });
    }
    await b.work([job], { queues: { default: 4, limited: 4 } });
    await world.until("all to end", async () => (await a.hf.jobs.count({ state: "done" })) === 4);
    expect(runs.map(({ n }) => n).toSorted((x, y) => x - y)).toEqual([0, 1, 2, 3]);
    for (const one of (await a.hf.jobs.list({ state: "done" })).jobs)
      expect(one).toMatchObject({ attempt: 1, crashes: 0 });
    expect(await world.rows("claim")).toEqual([]);
    expect(await queueCounts(world.fresh)).toEqual([0]);
  });

  test("[O1] hf.lease gives back what it took when it cannot be told where its machines stand", async () => {
    const world = await newWorld(target);
    const a = await world.client();
    const machine = defineMachine({
      name: "machine",
      start: "one",
      steps: {
        one: { run: (_: string) => next("two", null, { delay: "1m" }) },
        two: { run: (_: null) => finish("whole") },
      },
    });
    const worker = await a.work([machine], { queues: { default: 1 } });
    const { id } = await a.hf.enqueue(machine, "x");
    await world.until("asleep", async () => (await jobOf(a, id)).step === "two");
    await world.finish(worker.stop());
    await world.advance("1m");
    a.tap.around = (verb, call) =>
      verb === "workflows.machineSteps"
        ? Promise.reject(new StoreError("STORE_FAILED", "refused by the test"))
        : call();
    await expect(world.finish(a.hf.lease({ names: ["machine"] }))).rejects.toMatchObject({
      code: "STORE_FAILED",
    });
    expect(await jobOf(a, id)).toMatchObject({ state: "ready", crashes: 0 });
    expect(await world.rows("claim")).toEqual([]);
  });
});
