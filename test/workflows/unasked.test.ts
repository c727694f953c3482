// Code that returns without asking for steps that its run has recorded: divergence, and the cases that are none.
import { expect, test } from "vitest";
import { defineJob, defineMachine, finish, fixed, type JobContext, next, Release } from "../../src/index.ts";
import { onEveryStore } from "../support/stores.ts";
import { type Client, jobOf, newWorld, type World } from "../support/world.ts";

const lease = { lease: "20d", heartbeat: "9d" } as const;
const queues = { default: 5 } as const;

type Body = (input: null, ctx: JobContext) => Promise<unknown>;
const workflow = (run: Body, attempts = 1) =>
  defineJob({ name: "workflow", retry: { attempts, backoff: fixed("1s", { jitter: 0 }) }, run });
const child = defineJob({ name: "child", queue: "children", run: async (_: null) => "c" });

/** Runs the code on a worker of its own until the job is in one of these states. */
async function runUntil(world: World, one: Client, run: Body, id: string, states: string[]): Promise<void> {
  const worker = await one.work([workflow(run)], { queues, ...lease });
  await world.until(states.join(), async () => states.includes((await jobOf(one, id)).state), "60m", "5s");
  await world.finish(worker.stop());
}

const shownSteps = async (one: Client, id: string): Promise<string[]> =>
  ((await one.hf.jobs.history(id))?.steps ?? []).map(({ name, state }) => `${name} ${state}`);

/** What a run waits for, and what wakes it. */
const waits: Record<string, { wait: (ctx: JobContext) => Promise<unknown>; wake: (one: Client) => unknown }> =
  {
    'the sleep "nap"': { wait: (ctx) => ctx.sleep("nap", "1m"), wake: () => null },
    'the wait "signal:go"': { wait: (ctx) => ctx.waitFor("go"), wake: (one) => one.hf.signal("go") },
    'the call "call:child"': {
      wait: (ctx) => ctx.call(child, null),
      wake: (one) => one.work([child], { queues: { children: 1 }, ...lease }),
    },
  };

onEveryStore((target) => {
  for (const [what, { wait, wake }] of Object.entries(waits))
    for (const removed of ["all", "the last"] as const)
      test(`[O10] code without ${removed} of a run's steps (${what}) diverges, and matching code continues the run`, async () => {
        const world = await newWorld(target);
        const one = await world.client();
        const ran: string[] = [];
        const undo = () => void ran.push("undo");
        const whole: Body = async (_input, ctx) => {
          await ctx.step("a", () => ran.push("a"), { undo });
          await wait(ctx);
          await ctx.step("b", () => ran.push("b"));
          return "whole";
        };
        const shorter: Body = async (_input, ctx) => {
          if (removed !== "all") await ctx.step("a", () => ran.push("a"), { undo });
          return "shorter";
        };
        const { id } = await one.hf.enqueue(workflow(whole), null);
        await runUntil(world, one, whole, id, ["waiting", "scheduled"]);
        const before = await shownSteps(one, id);
        await wake(one);
        const report = await world.finish(one.hf.check([workflow(shorter)]));
        expect(report.broken).toMatchObject([
          { id, step: removed === "all" ? "a" : before[1]?.split(" ")[0] },
        ]);
        // Twice: the same wrong code again changes nothing.
        for (let time = 0; time < 2; time += 1) {
          await runUntil(world, one, shorter, id, ["dead", "done"]);
          const job = await jobOf(one, id);
          expect([job.state, job.error]).toEqual(["dead", expect.stringMatching(/^DIVERGED: Step "/)]);
          const unasked = removed === "all" ? `the step "a" and ${what}` : what;
          expect(job.error).toContain(`the history has ${unasked}, but the code ended without asking`);
          expect((await shownSteps(one, id)).map((step) => step.split(" ")[0])).toEqual(
            before.map((step) => step.split(" ")[0]),
          );
          await one.hf.jobs.retry(id);
        }
        await runUntil(world, one, whole, id, ["done", "dead"]);
        expect(await jobOf(one, id)).toMatchObject({ state: "done", output: "whole" });
        expect(ran).toEqual(["a", "b"]);
      });

  test("[O10] code without a step that waits for its next try diverges", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    let broken = true;
    const retry = { attempts: 3, backoff: fixed("1m", { jitter: 0 }) };
    const whole: Body = async (_input, ctx) =>
      ctx.step("a", () => (broken ? Promise.reject(new Error("down")) : "up"), { retry });
    const { id } = await one.hf.enqueue(workflow(whole), null);
    await runUntil(world, one, whole, id, ["scheduled"]);
    await runUntil(world, one, async () => "none", id, ["dead", "done"]);
    expect((await jobOf(one, id)).error).toMatch(/^DIVERGED: Step "a"/);
    broken = false;
    await one.hf.jobs.retry(id);
    await runUntil(world, one, whole, id, ["done", "dead"]);
    expect(await jobOf(one, id)).toMatchObject({ state: "done", output: "up" });
  });

  test("[O10] a machine that becomes a job without steps diverges", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const machine = defineMachine({
      name: "workflow",
      start: "one",
      steps: {
        one: { run: (_: null) => next("two", null, { delay: "1m" }) },
        two: { run: (_: null) => finish("moved") },
      },
    });
    const { id } = await one.hf.enqueue(machine, null);
    const first = await one.work([machine], { queues, ...lease });
    await world.until("asleep", async () => (await jobOf(one, id)).state === "scheduled");
    await world.finish(first.stop());
    await runUntil(world, one, async () => "none", id, ["dead", "done"]);
    expect((await jobOf(one, id)).error).toMatch(/^DIVERGED: Step "two"/);
    await one.hf.jobs.retry(id);
    await one.work([machine], { queues, ...lease });
    await world.until("done", async () => (await jobOf(one, id)).state === "done", "5m", "5s");
    expect((await jobOf(one, id)).output).toBe("moved");
  });

  test("[O10] a run whose steps are being undone is not done because its code has no steps any more", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const ran: string[] = [];
    const whole: Body = async (_input, ctx) => {
      await ctx.step("a", () => "a", { undo: () => void ran.push("undo a") });
      await ctx.waitFor("go");
    };
    const { id } = await one.hf.enqueue(workflow(whole), null);
    await runUntil(world, one, whole, id, ["waiting"]);
    await one.hf.jobs.cancel(id);
    await runUntil(world, one, async () => "none", id, ["dead", "done", "cancelled"]);
    expect((await jobOf(one, id)).errors.at(-1)?.message).toMatch(
      /^UNDO_FAILED: its steps were not compensated/,
    );
    await one.hf.jobs.retry(id);
    await runUntil(world, one, whole, id, ["dead", "done", "cancelled"]);
    expect([(await jobOf(one, id)).state, ran]).toEqual(["cancelled", ["undo a"]]);
  });

  test("[O10] a step that is asked for and not awaited counts as asked for", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const ran: string[] = [];
    const body: Body = async (_input, ctx) => {
      void ctx.step("a", () => ran.push("a"));
      if (ctx.attempt > 1) return "early";
      await ctx.step("b", () => ran.push("b"));
      await ctx.step("c", () => Promise.reject(new Error("down")));
      return null;
    };
    await one.work([workflow(body, 2)], { queues, ...lease });
    const { id } = await one.hf.enqueue(workflow(body, 2), null);
    await world.until("ended", async () => ["done", "dead"].includes((await jobOf(one, id)).state));
    const { error } = await jobOf(one, id);
    // "b" was finished; "a" was asked for, and "c" is to be tried again.
    expect(error).toContain('the history has the step "b", but');
    expect(ran).toEqual(["a", "b"]);
  });

  test("[O10] a handler that throws before it comes to its steps fails as it says, and the next attempt continues", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const ran: string[] = [];
    let throws: unknown[] = [];
    const body: Body = async (_input, ctx) => {
      if (throws.length > 0) throw throws.shift();
      await ctx.step("a", () => ran.push("a"));
      await ctx.waitFor("go");
      return "whole";
    };
    const { id } = await one.hf.enqueue(workflow(body, 3), null);
    const worker = await one.work([workflow(body, 3)], { queues, ...lease });
    await world.until("waiting", async () => (await jobOf(one, id)).state === "waiting");
    throws = [new Error("no connection"), new Release("later", { delay: "1s" })];
    await one.hf.signal("go");
    await world.until("ended", async () => ["done", "dead"].includes((await jobOf(one, id)).state));
    await world.finish(worker.stop());
    expect(await jobOf(one, id)).toMatchObject({ state: "done", output: "whole" });
    expect(ran).toEqual(["a"]);
  });

  test("[O10] the losing branch of a race does not make the run diverge", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const lost = Promise.withResolvers<string>();
    const body: Body = async (_input, ctx) => {
      const slow = ctx.step("slow", () => lost.promise);
      const long = ctx.sleep("long", "30d");
      const first = await Promise.race([slow, long, ctx.waitFor("go"), ctx.step("fast", () => "fast")]);
      if (ctx.attempt === 1) {
        // Outside of steps: "slow" is recorded before the attempt fails.
        lost.resolve("slow");
        await slow;
        throw new Error("once");
      }
      return first;
    };
    await one.work([workflow(body, 2)], { queues, ...lease });
    const { id } = await one.hf.enqueue(workflow(body, 2), null);
    await world.until("ended", async () => ["done", "dead"].includes((await jobOf(one, id)).state));
    expect(await jobOf(one, id)).toMatchObject({ state: "done", output: "fast", attempt: 2 });
  });

  test("[O10] a retry may leave out a step that failed for good, as it has nothing to keep", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const body: Body = async (_input, ctx) => {
      const a = await ctx.step("a", () => "a");
      if (ctx.attempt > 2) return `${a}, then the fallback`;
      return ctx.step("b", () => Promise.reject(new Error("down")));
    };
    await one.work([workflow(body, 3)], { queues, ...lease });
    const { id } = await one.hf.enqueue(workflow(body, 3), null);
    await world.until("ended", async () => ["done", "dead"].includes((await jobOf(one, id)).state));
    expect(await jobOf(one, id)).toMatchObject({ state: "done", output: "a, then the fallback" });
  });

  test("[O10] a branch behind a version, and a retry of a job without steps, end as they return", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const before: Body = async (_input, ctx) => {
      await ctx.step("a", () => "a");
      await ctx.waitFor("go");
      return "before";
    };
    const after: Body = async (_input, ctx) => {
      await ctx.step("a", () => "a");
      if ((await ctx.version("short", 1)) >= 1) return "short";
      await ctx.waitFor("go");
      return "after";
    };
    const old = await one.hf.enqueue(workflow(before), null);
    await runUntil(world, one, before, old.id, ["waiting"]);
    await one.hf.signal("go");
    await runUntil(world, one, after, old.id, ["done", "dead"]);
    expect((await jobOf(one, old.id)).output).toBe("after");
    const fresh = await one.hf.enqueue(workflow(after), null);
    await runUntil(world, one, after, fresh.id, ["done", "dead"]);
    expect((await jobOf(one, fresh.id)).output).toBe("short");

    const plain = defineJob({
      name: "plain",
      retry: { attempts: 2, backoff: fixed("1s", { jitter: 0 }) },
      run: async (_: null, ctx) => (ctx.attempt === 1 ? Promise.reject(new Error("once")) : "plain"),
    });
    await one.work([plain], { queues, ...lease });
    const { id } = await one.hf.enqueue(plain, null);
    await world.until("done", async () => (await jobOf(one, id)).state === "done");
    expect((await jobOf(one, id)).output).toBe("plain");
  });
});
