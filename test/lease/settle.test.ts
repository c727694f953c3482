// O2, O9: a settle that the database refuses, over clients in one fake time.
import { expect, test } from "vitest";
import { defineJob, Throttled } from "../../src/index.ts";
import { toStoreError as ofPostgres } from "../../src/storage/postgres/error-codes.ts";
import { toStoreError as ofSqlite } from "../../src/storage/sqlite/error-codes.ts";
import type { Transition } from "../../src/jobs/outcome.ts";
import { onEveryStore, type StoreTarget } from "../support/stores.ts";
import { jobOf, lost, newWorld, quickJob } from "../support/world.ts";

/** Refusals that have nothing to do with what was to be written, as the drivers give them. */
function passing(target: StoreTarget): readonly [string, unknown][] {
  return target.dialect === "postgres"
    ? ["53200", "58030", "XX000", "53000", "55000"].map((code) => [
        code,
        ofPostgres(Object.assign(new Error("refused by the test"), { code })),
      ])
    : [10, 10 | (4 << 8), 7, 15].map((errcode) => [
        `errcode ${errcode}`,
        ofSqlite(
          Object.assign(new Error("refused by the test"), { code: "ERR_SQLITE_ERROR", errcode }),
          "a.db",
        ),
      ]);
}

/** A refusal of one row for what is in it. */
function ofRow(target: StoreTarget): unknown {
  const error = new Error("refused by the test");
  return target.dialect === "postgres"
    ? ofPostgres(Object.assign(error, { code: "22021" }))
    : ofSqlite(Object.assign(error, { code: "ERR_SQLITE_ERROR", errcode: 18 }), "a.db");
}

onEveryStore((target) => {
  for (const [code, error] of passing(target))
    test(`[O9] a job whose settle is refused eight times with ${code} is done, with its output`, async () => {
      const world = await newWorld(target);
      const client = await world.client();
      const { job, runs } = quickJob(world);
      const worker = await client.work([job], { queues: ["default"] });
      let refused = 0;
      client.tap.around = (verb, call) =>
        verb === "settles.settle" && (refused += 1) <= 8 ? Promise.reject(error) : call();
      const ids: string[] = [];
      for (let n = 0; n < 3; n++) ids.push((await client.hf.enqueue(job, { n })).id);
      await world.until(
        "all to be done",
        async () => (await Promise.all(ids.map((id) => jobOf(client, id)))).every((j) => j.endedAt !== null),
        "60s",
      );
      for (const [n, id] of ids.entries())
        expect(await jobOf(client, id)).toMatchObject({ state: "done", output: n, attempt: 1 });
      expect(runs).toHaveLength(3);
      expect(worker.leasesLost).toBe(0);
      expect(await world.rows("claim")).toEqual([]);
    });

  test("[O9] a settle that is refused again and again keeps no other job from ending, and is made once it is taken", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    const { job, runs } = quickJob(world);
    const [[, error] = []] = passing(target);
    const bad = { id: "", is: true };
    client.tap.around = (verb, call, args) => {
      const transitions = verb === "settles.settle" ? (args[1] as readonly Transition[]) : [];
      return bad.is && transitions.some(({ id }) => id === bad.id) ? Promise.reject(error) : call();
    };
    const ids: string[] = [];
    for (let n = 0; n < 20; n++) ids.push((await client.hf.enqueue(job, { n })).id);
    bad.id = ids[7]!;
    const worker = await client.work([job], { queues: ["default"] });
    const open = async () =>
      (await Promise.all(ids.map((id) => jobOf(client, id)))).filter(({ state }) => state !== "done");
    await world.until("the others to be done", async () => (await open()).length === 1, "60s");
    const later = (await client.hf.enqueue(job, { n: 20 })).id;
    await world.until("a later one", async () => (await jobOf(client, later)).state === "done", "60s");
    expect(await open()).toMatchObject([{ id: bad.id, state: "running" }]);
    bad.is = false;
    await world.until("it to be done", async () => (await open()).length === 0, "30s");
    expect(await jobOf(client, bad.id)).toMatchObject({ output: 7, attempt: 1 });
    expect(runs).toHaveLength(21);
    expect(worker.leasesLost).toBe(0);
    expect(await world.rows("claim")).toEqual([]);
  });

  test("[O9] a row that the database refuses for what is in it is dead, and alone", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    const { job } = quickJob(world);
    const bad = { id: "" };
    client.tap.around = (verb, call, args) => {
      const transitions = verb === "settles.settle" ? (args[1] as readonly Transition[]) : [];
      const guilty = transitions.some(
        (one) => one.id === bad.id && one.move === "end" && one.state === "done",
      );
      return guilty ? Promise.reject(ofRow(target)) : call();
    };
    const ids: string[] = [];
    for (let n = 0; n < 5; n++) ids.push((await client.hf.enqueue(job, { n })).id);
    bad.id = ids[2]!;
    await client.work([job], { queues: ["default"] });
    await world.until(
      "all to end",
      async () => (await Promise.all(ids.map((id) => jobOf(client, id)))).every((j) => j.endedAt !== null),
      "60s",
    );
    const states = await Promise.all(ids.map(async (id) => (await jobOf(client, id)).state));
    expect(states).toEqual(["done", "done", "dead", "done", "done"]);
  });

  test("[O2] a queue is cooled down once by a job that was throttled once, however late its settle is known", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    await client.hf.queues.set("default", { cooldown: { base: "500ms", max: "10m" } });
    let times = 0;
    const run = () => {
      if (times++ === 0) throw new Throttled("100ms");
      return 1;
    };
    const job = defineJob({ name: "throttled", run });
    const endAt = world.clock.monotonic() + 20_000;
    let settles = 0;
    client.tap.around = async (verb, call) => {
      if (verb !== "settles.settle" || world.clock.monotonic() > endAt) return call();
      // Written, and not heard of; then the database is away for longer than the queue is cooled down.
      if (settles++ === 0) await call();
      return lost();
    };
    await client.work([job], { queues: { default: 1 } });
    const { id } = await client.hf.enqueue(job, null);
    await world.until("it was throttled", () => settles > 0);
    await world.advance("25s");
    const [queue] = await world.rows("queue");
    expect(Number(queue?.["cool_steps"])).toBe(1);
    await world.until("done", async () => (await jobOf(client, id)).state === "done", "5m");
    expect(times).toBe(2);
  });
});
