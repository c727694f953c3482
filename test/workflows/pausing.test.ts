// Pausing a job or a run, resuming it, and ending it whatever its handler does.
import { expect, test } from "vitest";
import { defineJob, defineMachine, finish, fixed, next, silentLogger } from "../../src/index.ts";
import { onEveryStore } from "../support/stores.ts";
import { jobOf, newWorld } from "../support/world.ts";

const lease = { lease: "20d", heartbeat: "9d" } as const;
const queues = { default: 5 } as const;
const plain = defineJob({ name: "plain", run: () => "ran" });
const nobody = "00000000-0000-7000-8000-000000000000";

/** A door that a handler stands before until the test opens it. */
function door(): { is: () => boolean; pass: () => Promise<void>; open: () => void } {
  const opened = Promise.withResolvers<void>();
  let reached = false;
  return {
    is: () => reached,
    pass: async () => {
      reached = true;
      await opened.promise;
    },
    open: () => opened.resolve(),
  };
}

onEveryStore((target) => {
  test("[K3] a job that has not started is held until it is resumed, and says why", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const { hf } = one;
    const [due, later] = [await hf.enqueue(plain, null), await hf.enqueue(plain, null, { delay: "1h" })];
    for (const { id } of [due, later]) expect(await hf.jobs.pause(id, { reason: "disputed" })).toBe("paused");
    expect(await hf.jobs.pause(due.id)).toBe("paused");
    expect(await jobOf(one, due.id)).toMatchObject({ state: "waiting", waitsFor: "resume", attempt: 0 });
    expect(await hf.jobs.why(due.id)).toMatchObject({ reason: "job-paused" });
    const worker = await one.work([plain], { queues, ...lease });
    const other = await hf.enqueue(plain, null);
    await world.until("the other", async () => (await jobOf(one, other.id)).state === "done");
    await world.advance("2h", "5m");
    expect((await jobOf(one, due.id)).state).toBe("waiting");
    expect(await hf.jobs.runNow(later.id)).toBe("not_scheduled");
    expect(await hf.jobs.resume(due.id)).toBe("resumed");
    await world.until("the first", async () => (await jobOf(one, due.id)).state === "done");
    expect(await hf.jobs.resume(later.id)).toBe("resumed");
    await world.until("the second", async () => (await jobOf(one, later.id)).state === "done");
    expect(await hf.jobs.resume(later.id)).toBe("ended");
    expect(await hf.jobs.pause(later.id)).toBe("ended");
    expect([await hf.jobs.pause(nobody), await hf.jobs.resume(nobody)]).toEqual(["not_found", "not_found"]);
    await world.finish(worker.stop());
  });

  test("[K3] what is resumed early keeps its time; by a filter, many are paused and resumed", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const { hf } = one;
    const later = await hf.enqueue(plain, null, { delay: "1h", queue: "a" });
    await hf.enqueue(plain, null, { queue: "a" });
    const before = await jobOf(one, later.id);
    expect(await hf.jobs.pause({ queue: "a" })).toEqual({
      matched: 2,
      paused: 2,
      pause_requested: 0,
      ended: 0,
      not_found: 0,
    });
    expect(await hf.jobs.resume({ queue: "a" })).toMatchObject({ matched: 2, resumed: 2 });
    expect(await jobOf(one, later.id)).toMatchObject({ state: "scheduled", runAt: before.runAt });
    expect(await hf.jobs.resume(later.id)).toBe("not_paused");
    // A new time for what is paused holds once it is resumed.
    await hf.jobs.pause(later.id);
    expect(await hf.jobs.edit(later.id, { delay: "3h" })).toBe("edited");
    expect((await jobOf(one, later.id)).state).toBe("waiting");
    await hf.jobs.resume(later.id);
    expect((await jobOf(one, later.id)).runAt?.getTime()).toBe(
      (before.runAt?.getTime() ?? 0) + 2 * 3_600_000,
    );
  });

  test("[K3] a run stops before its next step, here and in another process, and goes on from there", async () => {
    const world = await newWorld(target);
    const [one, two] = [await world.client(), await world.client()];
    for (const asker of [one, two]) {
      const did: string[] = [];
      const gate = door();
      const job = defineJob({
        name: asker === one ? "here" : "there",
        run: async (_: null, ctx) => {
          await ctx.step("first", async () => {
            did.push("first");
            await gate.pass();
          });
          await ctx.step("second", () => void did.push("second"));
        },
      });
      const worker = await one.work([job], { queues, lease: "20s", heartbeat: "5s" });
      const { id } = await one.hf.enqueue(job, null);
      await world.until("the gate", () => gate.is(), "20s");
      expect(await asker.hf.jobs.pause(id)).toBe("pause_requested");
      await world.advance("6s"); // a heartbeat hears of it at the latest
      gate.open();
      await world.until("paused", async () => (await jobOf(two, id)).waitsFor === "resume", "20s");
      expect(did).toEqual(["first"]);
      expect((await two.hf.jobs.history(id))?.steps.map(({ name, state }) => [name, state])).toEqual([
        ["first", "done"],
      ]);
      expect(worker.running).toBe(0);
      await world.advance("1h", "5m");
      expect(await two.hf.jobs.resume(id)).toBe("resumed");
      await world.until("done", async () => (await jobOf(two, id)).state === "done", "20s");
      expect(did).toEqual(["first", "second"]);
      await world.finish(worker.stop());
    }
  });

  test("[K3] a pause that is taken back while the step runs changes nothing", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const gate = door();
    const did: string[] = [];
    const job = defineJob({
      name: "brief",
      run: async (_: null, ctx) => {
        await ctx.step("first", () => gate.pass());
        await ctx.step("second", () => void did.push("second"));
      },
    });
    await one.work([job], { queues, ...lease });
    const { id } = await one.hf.enqueue(job, null);
    await world.until("the gate", () => gate.is(), "20s");
    await one.hf.jobs.pause(id);
    expect(await one.hf.jobs.resume(id)).toBe("resumed");
    gate.open();
    await world.until("done", async () => (await jobOf(one, id)).state === "done", "20s");
    expect(did).toEqual(["second"]);
  });

  test("[K3] a paused run is woken by no signal, no sleep and no child; resumed, it has all of them", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const { hf } = one;
    const child = defineJob({ name: "child", queue: "children", run: () => 7 });
    const signalled = defineJob({
      name: "signalled",
      run: async (_: null, ctx) => ctx.waitFor<number>("go"),
    });
    const asleep = defineJob({ name: "asleep", run: async (_: null, ctx) => ctx.sleep("nap", "10m") });
    const calling = defineJob({ name: "calling", run: async (_: null, ctx) => ctx.call(child, {}) });
    const worker = await one.work([signalled, asleep, calling], { queues, ...lease });
    const ids = await Promise.all(
      [signalled, asleep, calling].map(async (job) => (await hf.enqueue(job as typeof signalled, null)).id),
    );
    for (const id of ids)
      await world.until("a wait", async () => (await jobOf(one, id)).waitsFor !== null, "20s");
    for (const id of ids) expect(await hf.jobs.pause(id)).toBe("paused");
    await hf.signal("go", { data: 5 });
    const children = await one.work([child], { queues: { children: 1 }, ...lease });
    await world.until("the child", async () => (await hf.jobs.count({ name: "child", state: "done" })) === 1);
    await world.advance("20m", "1m");
    for (const id of ids)
      expect(await jobOf(one, id)).toMatchObject({ state: "waiting", waitsFor: "resume" });
    for (const id of ids) await hf.jobs.resume(id);
    for (const id of ids)
      await world.until("done", async () => (await jobOf(one, id)).state === "done", "20s");
    expect((await jobOf(one, ids[0] as string)).output).toBe(5);
    expect((await jobOf(one, ids[2] as string)).output).toBe(7);
    await world.finish(Promise.all([worker.stop(), children.stop()]));
  });

  test("[K3] resumed before its time, a run that sleeps or waits goes back to that", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const job = defineJob({
      name: "patient",
      run: async (_: null, ctx) => {
        await ctx.sleep("nap", "10m");
        return ctx.waitFor<number>("go");
      },
    });
    await one.work([job], { queues, ...lease });
    const { id } = await one.hf.enqueue(job, null);
    await world.until("asleep", async () => (await jobOf(one, id)).waitsFor === "sleep", "20s");
    const { runAt } = await jobOf(one, id);
    for (const waits of ["sleep", "signal"] as const) {
      await one.hf.jobs.pause(id);
      await one.hf.jobs.resume(id);
      await world.until("again", async () => (await jobOf(one, id)).waitsFor === waits, "20s");
      if (waits === "sleep") {
        expect((await jobOf(one, id)).runAt).toEqual(runAt);
        await world.until("the signal", async () => (await jobOf(one, id)).waitsFor === "signal", "20m");
      }
    }
    expect(await jobOf(one, id)).toMatchObject({ attempt: 0, state: "waiting" });
  });

  test("[K3] a job that waits for others counts their ends while it is paused", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const { hf } = one;
    const [first, second] = [await hf.enqueue(plain, null), await hf.enqueue(plain, null, { queue: "late" })];
    const after = await hf.enqueue(plain, null, { after: [first.id, second.id] });
    expect(await hf.jobs.pause(after.id)).toBe("paused");
    await one.work([plain], { queues: { default: 2 }, ...lease });
    await world.until("the first", async () => (await jobOf(one, first.id)).state === "done");
    await hf.jobs.resume(after.id);
    expect(await jobOf(one, after.id)).toMatchObject({ state: "waiting", waitsFor: "jobs" });
    await hf.jobs.pause(after.id);
    await one.work([plain], { queues: { late: 1 }, ...lease });
    await world.until("the second", async () => (await jobOf(one, second.id)).state === "done");
    await world.advance("1m");
    expect((await jobOf(one, after.id)).waitsFor).toBe("resume");
    await hf.jobs.resume(after.id);
    await world.until("the last", async () => (await jobOf(one, after.id)).state === "done");
  });

  test("[K3] a keyed job that is replaced while it waits for others or is paused goes on waiting", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const { hf } = one;
    const before = await hf.enqueue(plain, null, { queue: "unserved" });
    const keyed = defineJob({
      name: "keyed",
      unique: { key: () => "k", onConflict: "replace" },
      run: () => null,
    });
    const { id } = await hf.enqueue(keyed, null, { after: [before.id] });
    expect(await hf.enqueue(keyed, null)).toMatchObject({ id, status: "replaced" });
    expect(await jobOf(one, id)).toMatchObject({ state: "waiting", waitsFor: "jobs" });
    await hf.jobs.pause(id);
    await hf.enqueue(keyed, null);
    expect(await jobOf(one, id)).toMatchObject({ state: "waiting", waitsFor: "resume" });
  });

  test("[K3] a handler without steps comes to its end; what fails is not tried again before it is resumed", async () => {
    const world = await newWorld(target);
    const [one, two] = [await world.client(), await world.client()];
    const gate = door();
    let runs = 0;
    const job = defineJob({
      name: "fails-once",
      retry: { attempts: 3, backoff: fixed("1s") },
      run: async () => {
        runs += 1;
        if (runs > 1) return "ran";
        await gate.pass();
        throw new Error("once");
      },
    });
    await one.work([job], { queues, ...lease });
    const { id } = await one.hf.enqueue(job, {});
    await world.until("the gate", () => gate.is(), "20s");
    expect(await two.hf.jobs.pause(id)).toBe("pause_requested");
    gate.open();
    await world.until("paused", async () => (await jobOf(one, id)).waitsFor === "resume", "20s");
    await world.advance("1m");
    expect(await jobOf(one, id)).toMatchObject({ attempt: 1, error: "once" });
    expect(runs).toBe(1);
    await two.hf.jobs.resume(id);
    await world.until("done", async () => (await jobOf(one, id)).state === "done", "20s");
  });

  test("[E1] a cancel that a failing attempt has not heard of is not forgotten with its retry", async () => {
    const world = await newWorld(target);
    const [one, two] = [await world.client(), await world.client()];
    const gate = door();
    const job = defineJob({
      name: "fails",
      retry: { attempts: 3, backoff: fixed("1s") },
      run: async () => {
        await gate.pass();
        throw new Error("no");
      },
    });
    await one.work([job], { queues, ...lease });
    const { id } = await one.hf.enqueue(job, {});
    await world.until("the gate", () => gate.is(), "20s");
    // Written, and nobody is told: as when the process that asks dies at once.
    expect((await two.tap.raw.jobs.cancel([id], "asked")).get(id)).toBe("cancel_requested");
    gate.open();
    await world.until("cancelled", async () => (await jobOf(one, id)).state === "cancelled", "20s");
    expect((await jobOf(one, id)).attempt).toBe(1);
  });

  test("[E1] a request whose hearer died before it granted it is granted by the sweep; a retry inherits none", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const { hf } = one;
    const [paused, cancelled, ended] = [
      await hf.enqueue(plain, null),
      await hf.enqueue(plain, null),
      await hf.enqueue(plain, null),
    ];
    const request = (id: string, pause: boolean): Promise<unknown> =>
      world.fresh.query(
        `insert into ${world.fresh.table("cancel")} (id, session, token, asked_at, pause, reason) values ('${id}', 1, 1, 0, ${pause}, 'asked')`,
      );
    // As it stands when the process that gave them back died before it came to the requests: out of reach, and nobody has said why.
    for (const { id } of [paused, cancelled]) await hf.jobs.pause(id);
    await world.fresh.query(`update ${world.fresh.table("ready")} set note = null`);
    await request(paused.id, true);
    await request(cancelled.id, false);
    await hf.jobs.cancel(ended.id);
    await request(ended.id, false);
    expect(await hf.jobs.retry(ended.id)).toBe("retried");
    const worker = await one.work([defineJob({ name: "other", run: () => null })], { queues, ...lease });
    await world.until("granted", async () => (await jobOf(one, cancelled.id)).state === "cancelled", "5m");
    expect((await jobOf(one, paused.id)).waitsFor).toBe("resume");
    expect((await jobOf(one, ended.id)).state).toBe("ready");
    expect(await hf.jobs.why(paused.id)).toMatchObject({ reason: "job-paused" });
    expect(await world.fresh.query(`select * from ${world.fresh.table("cancel")}`)).toEqual([]);
    await world.finish(worker.stop());
  });

  test("[K3] a machine stops between two steps", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const gate = door();
    const ran: string[] = [];
    const machine = defineMachine({
      name: "two-steps",
      start: "one",
      steps: {
        one: {
          run: async (data: { n: number }) => {
            ran.push("one");
            await gate.pass();
            return next("two", data);
          },
        },
        two: { run: async (data: { n: number }) => (ran.push("two"), finish(data.n)) },
      },
    });
    await one.work([machine], { queues, ...lease });
    const { id } = await one.hf.enqueue(machine, { n: 1 });
    await world.until("the gate", () => gate.is(), "20s");
    expect(await one.hf.jobs.pause(id)).toBe("pause_requested");
    gate.open();
    await world.until("paused", async () => (await jobOf(one, id)).waitsFor === "resume", "20s");
    expect(ran).toEqual(["one"]);
    await one.hf.jobs.resume(id);
    await world.until("done", async () => (await jobOf(one, id)).state === "done", "20s");
    expect(ran).toEqual(["one", "two"]);
  });

  test("[K3] a paused run is cancelled at once; where steps are to be undone, they are", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const undone: string[] = [];
    const job = defineJob({
      name: "undoable",
      run: async (_: null, ctx) => {
        await ctx.step("book", () => 1, { undo: () => void undone.push("book") });
        await ctx.sleep("nap", "1d");
      },
    });
    await one.work([job], { queues, ...lease });
    const { id } = await one.hf.enqueue(job, null);
    await world.until("asleep", async () => (await jobOf(one, id)).waitsFor === "sleep", "20s");
    await one.hf.jobs.pause(id);
    expect(await one.hf.jobs.cancel(id)).toBe("cancel_requested");
    await world.until("cancelled", async () => (await jobOf(one, id)).state === "cancelled", "20s");
    expect(undone).toEqual(["book"]);
  });

  test("[K3] terminate ends a handler's job over its head, gives its places back and undoes nothing", async () => {
    const world = await newWorld(target);
    const [one, two] = [await world.client({ logger: silentLogger }), await world.client()];
    const gate = door();
    const undone: string[] = [];
    let aborted = false;
    const job = defineJob({
      name: "deaf",
      lane: () => "narrow",
      lanes: { concurrency: 1 },
      run: async (input: { n: number }, ctx) => {
        if (input.n === 2) return "ran";
        await ctx.step("book", () => 1, { undo: () => void undone.push("book") });
        ctx.signal.addEventListener("abort", () => {
          aborted = true;
        });
        await gate.pass(); // whatever the signal says
        return "too late";
      },
    });
    await one.work([job], { queues, lease: "20s", heartbeat: "5s" });
    const { id } = await two.hf.enqueue(job, { n: 1 });
    await world.until("the gate", () => gate.is(), "20s");
    const second = await two.hf.enqueue(job, { n: 2 });
    expect(await two.hf.jobs.terminate(id)).toBe("terminated");
    expect(await jobOf(two, id)).toMatchObject({ state: "cancelled", error: "terminated by user" });
    expect(await two.hf.jobs.terminate(id)).toBe("ended");
    await world.until("told", () => aborted, "20s");
    await world.until("the second", async () => (await jobOf(two, second.id)).state === "done", "20s");
    gate.open();
    await world.advance("10s");
    expect(await jobOf(two, id)).toMatchObject({ state: "cancelled", output: null });
    expect(undone).toEqual([]);
    expect(await two.hf.jobs.terminate(nobody)).toBe("not_found");
  });

  test("[K3] terminate ends what sleeps without undoing it, and a whole tree with cascade", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const undone: string[] = [];
    const child = defineJob({ name: "child", run: async (_: null, ctx) => ctx.sleep("nap", "1d") });
    const job = defineJob({
      name: "parent",
      run: async (_: null, ctx) => {
        await ctx.step("book", () => 1, { undo: () => void undone.push("book") });
        await ctx.call(child, null);
      },
    });
    await one.work([job, child], { queues, ...lease });
    const { id } = await one.hf.enqueue(job, null);
    await world.until(
      "the child",
      async () => (await one.hf.jobs.count({ name: "child", state: "scheduled" })) === 1,
      "20s",
    );
    expect(await one.hf.jobs.terminate(id, { cascade: true })).toBe("terminated");
    expect(await one.hf.jobs.count({ state: "cancelled" })).toBe(2);
    await world.advance("1m");
    expect(undone).toEqual([]);
    expect((await jobOf(one, id)).state).toBe("cancelled");
  });

  test("[K3] a job whose holder has died is terminated too, without waiting for its lease", async () => {
    const world = await newWorld(target);
    const one = await world.client({ logger: silentLogger });
    const { id } = await one.hf.enqueue(plain, null, { key: "k" });
    await one.hf.lease({ for: "1m" });
    await world.advance("2m");
    expect(await one.hf.jobs.terminate(id)).toBe("terminated");
    expect((await jobOf(one, id)).state).toBe("cancelled");
    expect((await one.hf.enqueue(plain, null, { key: "k" })).status).toBe("enqueued");
  });
});
