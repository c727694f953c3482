// What `hf.lease` without names leaves alone: machines, and jobs that have recorded steps.
import { expect, test } from "vitest";
import { defineJob, defineMachine, finish, next } from "../../src/index.ts";
import { onEveryStore } from "../support/stores.ts";
import { jobOf, newWorld } from "../support/world.ts";

const worker = { queues: { default: 5, limited: 5 }, lease: "20d", heartbeat: "9d" } as const;

onEveryStore((target) => {
  for (const where of ["a plain queue", "a queue with a limit", "lanes"] as const)
    test(`[O19] hf.lease without names leaves machines and workflows alone, in ${where}`, async () => {
      const world = await newWorld(target);
      const one = await world.client();
      const queue = where === "a queue with a limit" ? "limited" : "default";
      if (queue === "limited") await one.hf.queues.set("limited", { concurrency: 50 });
      const lane = where === "lanes" ? { lane: (input: string) => input } : {};
      const plain = defineJob({ name: "plain", queue, ...lane, retry: { attempts: 3 }, run: () => 1 });
      const workflow = defineJob({
        name: "workflow",
        queue,
        ...lane,
        run: async (_: string, ctx) => {
          await ctx.step("a", () => 1);
          await ctx.sleep("nap", "1m");
          await ctx.step("b", () => 2);
          return "whole";
        },
      });
      const machine = defineMachine({
        name: "machine",
        queue,
        maxCrashes: 3,
        version: 2,
        start: "one",
        steps: {
          one: { run: (_: string) => next("two", null, { delay: "1m" }) },
          two: { run: (_: null) => finish("whole") },
        },
      });
      const running = await one.work([workflow, machine], worker);
      // Of the lane "only" a lease without names gets nothing: it must not keep the other lanes from giving.
      const runs = [
        await one.hf.enqueue(workflow, "only"),
        await one.hf.enqueue(workflow, "first"),
        await one.hf.enqueue(machine, "first"),
      ];
      const waits = async () => (await one.hf.jobs.count({ state: ["scheduled", "waiting"] })) === 3;
      await world.until("asleep", waits);
      await world.finish(running.stop());
      // Its machine has not begun.
      runs.push(await one.hf.enqueue(machine, "second"));
      await world.advance("2m", "10s");
      expect(await one.hf.lease({ limit: 10 })).toEqual([]);
      expect(await world.rows("claim")).toEqual([]);
      const retried = await one.hf.enqueue(plain, "first");
      const fresh = await one.hf.enqueue(plain, "second");
      // One that has failed once has begun, and is plain all the same.
      const [first] = await one.hf.lease();
      await first?.fail(new Error("again"));
      await world.advance("5m", "30s");
      const found: string[] = [];
      for (let n = 0; n < 2; n += 1) {
        const [lease] = await one.hf.lease({ limit: 1 });
        expect(lease?.step).toBe(null);
        found.push(lease?.id ?? "none");
        await lease?.done();
      }
      expect(found.toSorted()).toEqual([retried.id, fresh.id].toSorted());
      expect(await one.hf.lease({ limit: 10 })).toEqual([]);
      for (const { id } of runs) expect((await jobOf(one, id)).state).toBe("ready");
      // Named, they are handed out, and say where a machine stands.
      const named = await one.hf.lease({ names: ["machine", "workflow"], limit: 10 });
      expect(named.map(({ id, step }) => `${id} ${step}`).toSorted()).toEqual(
        runs.map(({ id }, n) => `${id} ${[null, null, "two", "one"][n]}`).toSorted(),
      );
      for (const lease of named) await lease.release();
      await one.work([workflow, machine], worker);
      await world.until("done", async () => (await one.hf.jobs.count({ state: "done" })) === 6, "5m", "5s");
      expect((await jobOf(one, runs[0]!.id)).output).toBe("whole");
    });

  for (const where of ["a plain queue", "a queue with a limit", "lanes"] as const)
    test(`[O19] so it does a machine that a worker has registered and that comes by its name or by raw SQL, in ${where}`, async () => {
      const world = await newWorld(target);
      const one = await world.client();
      if (where === "a queue with a limit") await one.hf.queues.set("default", { concurrency: 50 });
      const options = where === "lanes" ? { lane: "a" } : {};
      const machine = defineMachine({
        name: "machine",
        start: "one",
        steps: { one: { run: (_: string) => finish("whole") } },
      });
      // It is known from then on, also where none of its workers runs.
      await world.finish((await one.work([machine], worker)).stop());
      const named = await one.hf.enqueue("machine", "named", { ...options, priority: 5 });
      await world.fresh.query(
        `insert into ${world.fresh.table("enqueue")} (name, input) values ('machine', '"raw"')`,
      );
      // Raw SQL goes by the true time.
      await world.fresh.query(`update ${world.fresh.table("ready")} set run_at = 1`);
      expect(await one.hf.lease({ limit: 10 })).toEqual([]);
      expect(await world.rows("claim")).toEqual([]);
      const sessions = (await world.rows("session")).length;
      expect(await one.hf.lease()).toEqual([]);
      expect(await world.rows("session"), "an empty look opens no session").toHaveLength(sessions);
      const plain = await one.hf.enqueue("plain", "a job", options);
      const leases = await one.hf.lease({ limit: 10 });
      expect(leases.map(({ id }) => id)).toEqual([plain.id]);
      for (const lease of leases) await lease.done();
      const machines = await one.hf.lease({ names: ["machine"], limit: 10 });
      expect(machines.map(({ input }) => String(input)).toSorted()).toEqual(["named", "raw"]);
      for (const lease of machines) await lease.release();
      await one.work([machine], worker);
      await world.until("done", async () => (await one.hf.jobs.count({ state: "done" })) === 3, "5m", "5s");
      expect((await jobOf(one, named.id)).output).toBe("whole");
    });

  test("[O19] a name that is registered as a plain job again is leased", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const machine = defineMachine({
      name: "once-a-machine",
      start: "one",
      steps: { one: { run: (_: null) => finish(1) } },
    });
    const plain = defineJob({ name: machine.name, run: () => 1 });
    await world.finish((await one.work([machine], worker)).stop());
    const { id } = await one.hf.enqueue(machine.name, null);
    expect(await one.hf.lease()).toEqual([]);
    await world.finish((await one.work([plain], { queues: { other: 1 } })).stop());
    const [lease] = await one.hf.lease();
    expect(lease?.id).toBe(id);
    await lease?.done();
  });

  test("[O19] a retried run is left alone, and one that was undone is a plain job again", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const workflow = (broken: boolean, undo: boolean) =>
      defineJob({
        name: "workflow",
        retry: { attempts: 1 },
        run: async (_: null, ctx) => {
          await ctx.step("a", () => 1, undo ? { undo: () => undefined } : {});
          if (broken) throw new Error("no");
        },
      });
    for (const undo of [false, true]) {
      const working = await one.work([workflow(true, undo)], worker);
      const { id } = await one.hf.enqueue(workflow(true, undo), null);
      await world.until("dead", async () => (await jobOf(one, id)).state === "dead");
      await world.finish(working.stop());
      await one.hf.jobs.retry(id);
      const leases = await one.hf.lease({ limit: 10 });
      expect([undo, leases.map((lease) => lease.id)]).toEqual([undo, undo ? [id] : []]);
      for (const lease of leases) await lease.done();
    }
  });
});
