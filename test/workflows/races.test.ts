// What comes between: news that arrive while a run goes to sleep, and holders that have lost their lease.
import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { defineJob, silentLogger } from "../../src/index.ts";
import type { ClaimCursor } from "../../src/jobs/claim-scope.ts";
import type { StepWrite } from "../../src/workflows/store.ts";
import { onEveryStore } from "../support/stores.ts";
import { type Client, jobOf, newWorld, sessionInfo } from "../support/world.ts";
import { newJob } from "../support/new-job.ts";

const lease = { lease: "20d", heartbeat: "9d" } as const;
const queues = { default: 5 } as const;

/** Does something just before the settle that puts the run to sleep. */
function beforeSleep(client: Client, act: () => Promise<unknown>): void {
  let once = true;
  client.tap.around = async (verb, call, args) => {
    const transitions = (verb === "settles.settle" ? args[1] : []) as readonly { move: string }[];
    if (once && transitions.some(({ move }) => move === "wait")) {
      once = false;
      await act();
    }
    return call();
  };
}

onEveryStore((target) => {
  test("[N11] a signal that comes while the run goes to sleep over it wakes it", async () => {
    const world = await newWorld(target);
    const [one, two] = [await world.client(), await world.client()];
    const job = defineJob({ name: "waiter", run: async (_: null, ctx) => ctx.waitFor<number>("go") });
    beforeSleep(one, () => two.hf.signal("go", { data: 5 }));
    await one.work([job], { queues, ...lease });
    const { id } = await two.hf.enqueue(job, null);
    await world.until("done", async () => (await jobOf(two, id)).state === "done", "20s");
    expect((await jobOf(two, id)).output).toBe(5);
  });

  test("[N11] a called job that ends while its caller goes to sleep over it wakes it", async () => {
    const world = await newWorld(target);
    const [one, two] = [await world.client(), await world.client()];
    const child = defineJob({ name: "child", run: () => 7 });
    for (const every of [false, true]) {
      const parent = defineJob({
        name: `parent-${every}`,
        run: async (_: null, ctx) =>
          every ? (await ctx.all([ctx.call(child, {})]))[0] : ctx.call(child, {}),
      });
      beforeSleep(one, async () => {
        const worker = two.hf.work([child], { queues, ...lease });
        await worker.ready;
        await worker.idle();
        await worker.stop();
      });
      const worker = await one.work([parent], { queues, ...lease });
      const { id } = await two.hf.enqueue(parent, null);
      await world.until("done", async () => (await jobOf(two, id)).state === "done", "20s");
      expect((await jobOf(two, id)).output).toBe(7);
      await world.finish(worker.stop());
    }
  });

  test("[N11] a cancel that its holder has not heard of is not put to sleep with the run", async () => {
    const world = await newWorld(target);
    const [one, two] = [await world.client(), await world.client()];
    const job = defineJob({ name: "sleeper", run: async (_: null, ctx) => ctx.sleep("long", "30d") });
    const asked: string[] = [];
    const { id } = await two.hf.enqueue(job, null);
    beforeSleep(one, async () => asked.push(await two.hf.jobs.cancel(id)));
    await one.work([job], { queues, ...lease });
    await world.until("cancelled", async () => (await jobOf(two, id)).state === "cancelled", "20s");
    expect(asked).toEqual(["cancel_requested"]);
  });

  test("[O4] what a run writes behind a part of its history that was lost is refused; a lost wait lets nobody sleep", async () => {
    const world = await newWorld(target);
    const one = await world.client({ logger: silentLogger });
    const store = one.tap.raw;
    await store.newJobs.enqueue([newJob("01a1e000-0000-7000-8000-000000000001")]);
    const session = await store.sessions.open(sessionInfo());
    const scope = { queues: "all", names: ["n"], limit: 1, order: "highest-first" } as const;
    const [job] = await store.claims.claim(session, scope, { levels: new Map(), rescannedAt: -Infinity });
    const { id, token } = job!;
    const of = { id, token, attempt: 1, fails: 0, given: 1 } as const;
    const about = {
      job: id,
      token,
      attempt: 1,
      fails: 0,
      given: 0,
      kind: "step",
      tries: 1,
      tookMs: 0,
    } as const;
    const open: StepWrite = {
      ...about,
      name: "a",
      seq: 0,
      givenOrder: null,
      state: "open",
      wakeInMs: 1,
      undo: false,
      output: null,
      error: null,
      label: null,
    };
    const next = {
      ...open,
      name: "b",
      seq: 1,
      givenOrder: 1,
      state: "done",
      wakeInMs: null,
      after: "a",
    } as const;
    const wait = { ...of, name: "s", seq: 2, givenOrder: 2, topic: "go", timeoutMs: null, after: "b" };
    const child = newJob("01a1e000-0000-7000-8000-000000000002");
    const call = { ...of, name: "c", seq: 3, child, after: "b" };
    const behind = async () => [
      (await store.workflows.recordSteps(session, [next])).size,
      await store.workflows.takeSignal(session, wait),
      await store.workflows.startCall(session, call),
    ];
    await store.workflows.signal({ id: randomUUID(), topic: "go", data: "1", expiresMs: 60_000_000 });
    expect(await behind()).toEqual([0, null, null]);
    // Its end is lost, and what it wrote before is there.
    await store.workflows.recordSteps(session, [open]);
    expect(await behind()).toEqual([0, null, null]);
    expect(await world.rows("signal")).toHaveLength(1);
    await store.workflows.recordSteps(session, [{ ...open, state: "done", wakeInMs: null, givenOrder: 0 }]);
    expect(await behind()).toMatchObject([1, { over: true, data: "1" }, { ended: false }]);
    const sleep = {
      id,
      token,
      errors: null,
      attempt: 0,
      crashes: 0,
      at: null,
      open: 0,
      every: false,
    } as const;
    await store.settles.settle(session, [{ ...sleep, move: "wait", waits: "signal", topics: ["lost"] }], []);
    expect(
      (await store.claims.claim(session, scope, { levels: new Map(), rescannedAt: -Infinity }))[0]?.id,
    ).toBe(id);
  });

  test("[N11] a holder whose lease has passed, or whose job was taken over, can write nothing of a run", async () => {
    const world = await newWorld(target);
    const one = await world.client({ logger: silentLogger });
    const store = one.tap.raw;
    const scope = { queues: "all", names: ["n"], limit: 1, order: "highest-first" } as const;
    const cursor = (): ClaimCursor => ({ levels: new Map(), rescannedAt: -Infinity });
    await store.newJobs.enqueue([newJob("01a1e000-0000-7000-8000-000000000001")]);
    const session = await store.sessions.open(sessionInfo());
    const [job] = await store.claims.claim(session, scope, cursor());
    const { id, token } = job!;
    const step: StepWrite = {
      job: id,
      token,
      name: "a",
      seq: 0,
      givenOrder: 0,
      kind: "step",
      state: "done",
      attempt: 1,
      tries: 1,
      tookMs: 0,
      wakeInMs: null,
      undo: false,
      fails: 0,
      given: 0,
      output: "1",
      error: null,
      label: null,
    };
    const wait = {
      id,
      token,
      name: "s",
      seq: 1,
      givenOrder: 1,
      attempt: 1,
      fails: 0,
      given: 0,
      topic: "go",
      timeoutMs: null,
    };
    const call = {
      id,
      token,
      name: "c",
      seq: 2,
      attempt: 1,
      fails: 0,
      given: 0,
      child: newJob("01a1e000-0000-7000-8000-000000000002"),
    };
    const move = {
      id,
      token,
      attempt: 1,
      steps: [{ name: "$machine", seq: 1, state: "open", tries: 0, tookMs: 0, output: "1", label: "b" }],
    } as const;
    const sleep = {
      move: "wait",
      id,
      token,
      errors: null,
      attempt: 0,
      crashes: 0,
      waits: "sleep",
      at: null,
      topics: [],
      open: 0,
      every: false,
    } as const;
    const nothing = async (holder: number): Promise<void> => {
      expect(await store.workflows.recordSteps(holder, [step])).toEqual(new Map());
      expect(await store.workflows.takeSignal(holder, wait)).toBeNull();
      expect(await store.workflows.startCall(holder, call)).toBeNull();
      expect(await store.workflows.saveMachine(holder, move)).toBe(false);
      expect(await store.settles.settle(holder, [sleep], [])).toEqual(new Set());
    };
    await store.workflows.signal({ id: randomUUID(), topic: "go", data: "1", expiresMs: 60_000_000 });
    expect((await store.workflows.recordSteps(session, [{ ...step, name: "before" }])).size).toBe(1);
    const after = async () => [
      await world.rows("step"),
      await world.rows("signal"),
      await world.rows("ready"),
    ];
    await world.clock.advance("31s");
    const rows = await after();
    await nothing(session);
    expect(await after()).toEqual(rows);
    // Taken over: the token is another's, and a living session of ours does not help.
    await store.settles.takeOver([
      {
        move: "again",
        id,
        token,
        delayMs: 0,
        errors: null,
        attempt: 0,
        crashes: 1,
        throttled: false,
        begun: true,
      },
    ]);
    const heir = await store.sessions.open(sessionInfo());
    const [taken] = await store.claims.claim(heir, scope, cursor());
    expect(taken?.id).toBe(id);
    const between = await after();
    await nothing(session);
    await nothing(heir);
    expect(await after()).toEqual(between);
    expect((await store.workflows.recordSteps(heir, [{ ...step, token: taken!.token }])).size).toBe(1);
  });
});
