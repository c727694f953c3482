// A run's write whose answer is lost is sent again, and one that the client gave up may still arrive after later ones: neither takes
// anything twice, and neither changes a step that has ended.
import { expect, onTestFinished, test, vi } from "vitest";
import { defineJob } from "../../src/index.ts";
import { Workflows } from "../../src/workflows/step-rows.ts";
import type { ClaimCursor } from "../../src/jobs/claim-scope.ts";
import type { StepWrite } from "../../src/workflows/store.ts";
import type { Transition } from "../../src/jobs/outcome.ts";
import { newJob } from "../support/new-job.ts";
import { onEveryStore } from "../support/stores.ts";
import { type Client, jobOf, lost, newWorld, sessionInfo, type Verb } from "../support/world.ts";

const lease = { lease: "20d", heartbeat: "9d" } as const;
const queues = { default: 5 } as const;

/** The first answers of this verb are lost after their commit. */
function loseAnswers(client: Client, verb: Verb, times: number, between: () => Promise<unknown>): void {
  let left = times;
  client.tap.around = async (called, call) => {
    const answer = await call();
    if (called !== verb || left === 0) return answer;
    left -= 1;
    await between();
    return lost();
  };
}

onEveryStore((target) => {
  test("[O3] a wait that is repeated after a lost answer gives the signal that it took, and the next wait the next", async () => {
    const world = await newWorld(target);
    const [one, two] = [await world.client(), await world.client()];
    const job = defineJob({
      name: "waiter",
      run: async (_: null, ctx) => [await ctx.waitFor<string>("go"), await ctx.waitFor<string>("go")],
    });
    await two.hf.signal("go", { data: "first" });
    await two.hf.signal("go", { data: "second" });
    loseAnswers(one, "workflows.takeSignal", 3, async () => {});
    const { id } = await two.hf.enqueue(job, null);
    await one.work([job], { queues, ...lease });
    await world.until("done", async () => (await jobOf(two, id)).state === "done", "20s");
    expect((await jobOf(two, id)).output).toEqual(["first", "second"]);
    expect(await world.rows("signal")).toEqual([]);
  });

  test("[O2] a signal whose answer was lost is sent again and delivered once, also where a run has taken it meanwhile", async () => {
    const world = await newWorld(target);
    const [one, two] = [await world.client(), await world.client()];
    const job = defineJob({
      name: "waiter",
      run: async (_: null, ctx) => [await ctx.waitFor<string>("go"), await ctx.waitFor<string>("go")],
    });
    const { id } = await two.hf.enqueue(job, null);
    await two.work([job], { queues, ...lease });
    await world.until("asleep", async () => (await jobOf(two, id)).state === "waiting", "20s");
    let taken = false;
    const isTaken = async (): Promise<void> => {
      while (!taken) await new Promise(setImmediate);
    };
    loseAnswers(one, "workflows.signal", 2, () => one.tap.late(isTaken()));
    const sent = one.hf.signal("go", { data: "first" });
    await world.until("taken", async () => (await world.rows("signal")).length === 0, "20s");
    taken = true;
    await world.finish(sent);
    expect((await jobOf(two, id)).state).toBe("waiting");
    await world.finish(one.hf.signal("go", { data: "second" }));
    await world.until("done", async () => (await jobOf(two, id)).state === "done", "20s");
    expect((await jobOf(two, id)).output).toEqual(["first", "second"]);
    expect(await world.rows("signal")).toEqual([]);
  });

  test("[O2] a run whose history cannot be read at first goes on, without another attempt", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const done: string[] = [];
    const job = defineJob({
      name: "sleeper",
      run: async (_: null, ctx) => {
        await ctx.step("first", () => void done.push("first"));
        await ctx.sleep("nap", "1s");
        await ctx.step("last", () => void done.push("last"));
      },
    });
    loseAnswers(one, "workflows.steps", 3, async () => {});
    const { id } = await one.hf.enqueue(job, null);
    await one.work([job], { queues, ...lease });
    await world.until("ended", async () => (await jobOf(one, id)).endedAt !== null, "20s");
    expect(await jobOf(one, id)).toMatchObject({ state: "done", attempt: 1, errors: [] });
    expect(done).toEqual(["first", "last"]);
  });

  const untold = [
    ["the answer to the settle of a called job is lost", "answer"],
    ["a called job is settled, and telling its caller fails twice", "telling"],
  ] as const;
  for (const [what, fault] of untold)
    test(`[O2] ${what}: its caller goes on within seconds`, async () => {
      const world = await newWorld(target);
      const one = await world.client();
      const child = defineJob({ name: "child", run: () => 1 });
      const parent = defineJob({ name: "parent", run: (_: null, ctx) => ctx.call(child, null) });
      const resolve = vi.spyOn(Workflows.prototype, "resolve");
      onTestFinished(() => void vi.restoreAllMocks());
      if (fault === "answer") {
        // The statement commits, and the connection is gone before its caller could be told.
        resolve.mockImplementationOnce(() => Promise.resolve());
        let lose = 1;
        one.tap.around = async (verb, call, args) => {
          const answer = await call();
          const ends =
            verb === "settles.settle" && (args[1] as Transition[]).some(({ move }) => move === "end");
          return ends && lose-- > 0 ? lost() : answer;
        };
      } else resolve.mockImplementationOnce(lost).mockImplementationOnce(lost);
      const { id } = await one.hf.enqueue(parent, null);
      await one.work([parent, child], { queues, ...lease });
      await world.until("done", async () => (await jobOf(one, id)).state === "done", "10s");
      expect(await jobOf(one, id)).toMatchObject({ output: 1, attempt: 1 });
    });

  test("[O3] a wait that timed out stays so when it is repeated, and the late signal is kept for another", async () => {
    const world = await newWorld(target);
    const [one, two] = [await world.client(), await world.client()];
    const job = defineJob({
      name: "waiter",
      run: async (_: null, ctx) => [
        await ctx.waitFor<string>("go", { timeout: "1s" }),
        await ctx.waitFor<string>("go"),
      ],
    });
    const { id } = await two.hf.enqueue(job, null);
    await one.work([job], { queues, ...lease });
    await world.until("asleep", async () => (await jobOf(two, id)).state === "waiting", "20s");
    loseAnswers(one, "workflows.takeSignal", 1, () => two.hf.signal("go", { data: "late" }));
    await world.until("done", async () => (await jobOf(two, id)).state === "done", "20s");
    expect((await jobOf(two, id)).output).toEqual([null, "late"]);
  });

  test("[O3] a call that is repeated after a lost answer starts no second job, also where its unique key is free again", async () => {
    const world = await newWorld(target);
    const [one, two] = [await world.client(), await world.client()];
    let runs = 0;
    const child = defineJob({ name: "child", run: () => (runs += 1) });
    const parent = defineJob({
      name: "parent",
      run: async (_: null, ctx) => ctx.call(child, null, { key: "only" }),
    });
    const worker = two.hf.work([child], { queues, ...lease });
    const first = await two.hf.enqueue(child, null, { key: "only", delay: "1s" });
    loseAnswers(one, "workflows.startCall", 1, async () => {
      await two.hf.jobs.runNow(first.id);
      await worker.idle();
    });
    const { id } = await two.hf.enqueue(parent, null);
    await one.work([parent], { queues, ...lease });
    await world.until("done", async () => (await jobOf(two, id)).state === "done", "20s");
    await world.finish(worker.stop());
    expect([(await jobOf(two, id)).output, runs]).toEqual([1, 1]);
    expect(await world.rows("dependency")).toHaveLength(1);
  });

  test("[O3] a write that arrives late does not change a step that has ended, nor a machine that has moved on", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const store = one.tap.raw;
    await store.newJobs.enqueue([newJob("01a1e000-0000-7000-8000-000000000001")]);
    const session = await store.sessions.open(sessionInfo());
    const scope = { queues: "all", names: "all", limit: 1, order: "highest-first" } as const;
    const cursor: ClaimCursor = { levels: new Map(), rescannedAt: -Infinity };
    const [job] = await store.claims.claim(session, scope, cursor);
    const { id, token } = job!;
    const open: StepWrite = {
      job: id,
      token,
      name: "a",
      seq: 0,
      givenOrder: null,
      kind: "step",
      state: "open",
      attempt: 1,
      tries: 1,
      tookMs: 0,
      wakeInMs: 1_000,
      undo: false,
      fails: 0,
      given: 0,
      output: null,
      error: '{"message":"once"}',
      label: null,
    };
    const byName = (a: Record<string, unknown>, b: Record<string, unknown>): number =>
      String(a["name"]) < String(b["name"]) ? -1 : 1;
    const rows = async () => [(await world.rows("step")).sort(byName), await world.rows("signal")];
    const done = { ...open, state: "done", tries: 2, givenOrder: 0, output: "1", error: null } as const;
    const failed = { ...done, name: "b", seq: 1, givenOrder: 1, state: "failed", output: null } as const;
    await store.workflows.recordSteps(session, [open, { ...open, name: "b", seq: 1 }]);
    await store.workflows.recordSteps(session, [done, failed]);
    const ended = await rows();
    // Answered all the same: no row would mean that the lease was lost.
    const late = [open, { ...open, name: "b", seq: 1 }];
    expect((await store.workflows.recordSteps(session, late)).size).toBe(2);
    const other = { ...done, state: "failed", output: null, error: "{}", givenOrder: 7 } as const;
    expect((await store.workflows.recordSteps(session, [other])).size).toBe(1);
    const wait = {
      id,
      token,
      name: "s",
      seq: 2,
      givenOrder: 2,
      attempt: 1,
      fails: 0,
      given: 0,
      topic: "go",
      timeoutMs: null,
    };
    expect(await rows()).toEqual(ended);
    for (const data of ["1", "2"])
      await store.workflows.signal({
        id: `01a1e000-0000-7000-8000-00000000000${data}`,
        topic: "go",
        data,
        expiresMs: 60_000_000,
      });
    const first = { over: true, data: "1", wakeAt: null };
    expect(await store.workflows.takeSignal(session, wait)).toEqual(first);
    const taken = await rows();
    expect(await store.workflows.takeSignal(session, wait)).toEqual(first);
    expect(await rows()).toEqual(taken);
    // A later attempt of the job tries what had failed again.
    await store.workflows.recordSteps(session, [{ ...failed, attempt: 2, state: "done", output: "3" }]);
    expect(await store.workflows.step(id, "b")).toMatchObject({ state: "done", output: "3" });

    const move = (seq: number) =>
      ({
        id,
        token,
        attempt: 1,
        steps: [{ name: "$machine", seq, state: "open", tries: 0, tookMs: 0, output: `${seq}`, label: "x" }],
      }) as const;
    expect(await store.workflows.saveMachine(session, move(1))).toBe(true);
    expect(await store.workflows.saveMachine(session, move(1))).toBe(true);
    expect(await store.workflows.saveMachine(session, move(2))).toBe(true);
    await store.workflows.saveMachine(session, move(1));
    expect(await store.workflows.step(id, "$machine")).toMatchObject({ seq: 2, output: "2" });
  });
});
