// Code that changes under runs in flight: divergence, versions, the check before a deploy, old inputs; and undoing.
import { expect, test } from "vitest";
import * as z from "zod";
import { Dead, defineJob, defineMachine, finish, fixed, type JobContext, next } from "../../src/index.ts";
import { onEveryStore } from "../support/stores.ts";
import { type Client, jobOf, newWorld, type World } from "../support/world.ts";

const lease = { lease: "20d", heartbeat: "9d" } as const;
const queues = { default: 5 } as const;

type Body = (input: null, ctx: JobContext) => Promise<unknown>;
const workflow = (run: Body) => defineJob({ name: "workflow", retry: { attempts: 1 }, run });

/** A run that has done two steps and sleeps, under the first code; then the second code takes over. */
async function changed(world: World, one: Client, before: Body, after: Body, signal = "go") {
  const old = await one.work([workflow(before)], { queues, ...lease });
  const { id } = await one.hf.enqueue(workflow(before), null);
  await world.until("waiting", async () => (await jobOf(one, id)).state === "waiting");
  await world.finish(old.stop());
  const report = await world.finish(one.hf.check([workflow(after)]));
  const worker = await one.work([workflow(after)], { queues, ...lease });
  await one.hf.signal(signal);
  await world.until("ended", async () => ["done", "dead"].includes((await jobOf(one, id)).state));
  return { job: await jobOf(one, id), report, worker };
}

const original: Body = async (_input, ctx) => {
  await ctx.step("reserve", () => 1);
  await ctx.step("charge", () => 2);
  await ctx.waitFor("go");
  return "original";
};

const breaking: Record<string, { after: Body; step: string }> = {
  "a step that is gone": {
    after: async (_input, ctx) => {
      await ctx.step("reserve", () => 1);
      await ctx.waitFor("go");
    },
    step: "signal:go",
  },
  "a step that has another name": {
    after: async (_input, ctx) => {
      await ctx.step("reserve", () => 1);
      await ctx.step("charge-card", () => 2);
      await ctx.waitFor("go");
    },
    step: "charge-card",
  },
  "a step that comes between": {
    after: async (_input, ctx) => {
      await ctx.step("reserve", () => 1);
      await ctx.step("check", () => 2);
      await ctx.step("charge", () => 2);
      await ctx.waitFor("go");
    },
    step: "check",
  },
  "steps in another order": {
    after: async (_input, ctx) => {
      await ctx.step("charge", () => 2);
      await ctx.step("reserve", () => 1);
      await ctx.waitFor("go");
    },
    step: "charge",
  },
  "a step that became a sleep": {
    after: async (_input, ctx) => {
      await ctx.step("reserve", () => 1);
      await ctx.sleep("charge", "1s");
      await ctx.waitFor("go");
    },
    step: "charge",
  },
  "an end that comes too early": {
    after: async (_input, ctx) => {
      await ctx.step("reserve", () => 1);
      return "early";
    },
    step: "charge",
  },
};

onEveryStore((target) => {
  for (const [what, { after, step }] of Object.entries(breaking)) {
    test(`[N12] ${what} is named before the deploy, and stops the run at run time`, async () => {
      const world = await newWorld(target);
      const one = await world.client();
      const { job, report } = await changed(world, one, original, after);
      expect(report).toMatchObject({ checked: 1, broken: [{ id: job.id, name: "workflow", step }] });
      expect(job.state).toBe("dead");
      expect(job.error).toMatch(new RegExp(`^DIVERGED: Step "${step}": the code no longer matches`));
    });
  }

  test("[N12] a run that was stopped goes on once the code matches again", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const wrong = breaking["a step that comes between"]!.after;
    const { job, worker } = await changed(world, one, original, wrong);
    await world.finish(worker.stop());
    await one.work([workflow(original)], { queues, ...lease });
    await one.hf.jobs.retry(job.id);
    await world.until("done", async () => (await jobOf(one, job.id)).state === "done");
    expect((await jobOf(one, job.id)).output).toBe("original");
  });

  test("[N12] code that only goes on differently, or asks for the version, does not break a run", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const newer: Body = async (_input, ctx) => {
      await ctx.step("reserve", () => 1);
      const checks = (await ctx.version("fraud", 1)) >= 1;
      if (checks) await ctx.step("fraud", () => "checked");
      await ctx.step("charge", () => 2);
      await ctx.waitFor("go");
      return { checks, more: await ctx.step("more", () => 3) };
    };
    const { job, report } = await changed(world, one, original, newer);
    expect(report).toEqual({ checked: 1, broken: [] });
    expect(job).toMatchObject({ state: "done", output: { checks: false, more: 3 } });
    const fresh = await one.hf.enqueue(workflow(newer), null);
    await one.hf.signal("go");
    await world.until("done", async () => (await jobOf(one, fresh.id)).state === "done");
    expect((await jobOf(one, fresh.id)).output).toEqual({ checks: true, more: 3 });
  });

  test("[N12] the check does nothing: no step, no write, no enqueue", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    let ran = 0;
    const body: Body = async (_input, ctx) => {
      await ctx.step("a", () => (ran += 1));
      await ctx.sleep("nap", "1h");
      await ctx.step("b", () => (ran += 1));
    };
    await one.work([workflow(body)], { queues, ...lease });
    const { id } = await one.hf.enqueue(workflow(body), null);
    await world.until("asleep", async () => (await jobOf(one, id)).waitsFor === "sleep");
    const before = await world.rows("step");
    expect(await one.hf.check([workflow(body)])).toEqual({ checked: 1, broken: [] });
    expect([ran, await world.rows("step")]).toEqual([1, before]);
    const machine = (name: string) =>
      defineMachine({
        name: "m",
        start: "a",
        steps: {
          a: { run: async (_: null) => next(name as "b", 1, { delay: "1h" }) },
          [name as "b"]: { run: async (_: number) => finish() },
        },
      });
    await one.work([machine("b")], { queues, ...lease });
    const standing = await one.hf.enqueue(machine("b"), null);
    await world.until("at b", async () => (await jobOf(one, standing.id)).state === "scheduled");
    expect(await one.hf.check([machine("c")])).toMatchObject({ checked: 1, broken: [{ step: "b" }] });
  });

  test("[N17] an old input is brought up to the newest version before it is checked and run", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const v1 = defineJob({ name: "mail", run: (_input: { to: string }) => {} });
    const v3 = defineJob({
      name: "mail",
      version: 3,
      input: z.object({ to: z.array(z.string()), subject: z.string() }),
      upcast: {
        1: (old: { to: string }) => ({ to: [old.to] }),
        2: (old: { to: string[] }) => ({ ...old, subject: "(none)" }),
      },
      run: (input, ctx) => ({ ...input, enqueuedBy: ctx.jobVersion }),
    });
    const old = await one.hf.enqueue(v1, { to: "a" });
    const recent = await one.hf.enqueue(v3, { to: ["b"], subject: "hi" });
    const worker = await one.work([v1], { queues, ...lease });
    await world.until(
      "the old code has done its own",
      async () => (await jobOf(one, old.id)).state === "done",
    );
    // What is newer than the worker waits for one that is not.
    expect(["ready", "scheduled", "running"]).toContain((await jobOf(one, recent.id)).state);
    await world.finish(worker.stop());
    const older = await one.hf.enqueue(v1, { to: "c" });
    await one.work([v3], { queues, ...lease });
    await world.until("both done", async () => (await one.hf.jobs.count({ state: "done" })) === 3);
    expect((await jobOf(one, older.id)).output).toEqual({ to: ["c"], subject: "(none)", enqueuedBy: 1 });
    expect((await jobOf(one, recent.id)).output).toEqual({ to: ["b"], subject: "hi", enqueuedBy: 3 });
    expect(() => defineJob({ name: "x", version: 2, upcast: { 2: () => 1 } })).toThrow(/version/i);
  });

  const saga =
    (ran: string[], end: Body, failUndo: () => boolean = () => false): Body =>
    async (input, ctx) => {
      const step = (name: string) =>
        ctx.step(name, () => (ran.push(name), { name }), {
          undo: (output) => {
            if (name === "car" && failUndo()) throw new Error("no luck");
            ran.push(`undo ${output.name}`);
          },
        });
      await step("flight");
      await step("hotel");
      await ctx.step("mail", () => void ran.push("mail"));
      await step("car");
      return end(input, ctx);
    };

  test("[N11] a job that dies undoes its steps in reverse, once each, and then is dead with its own error", async () => {
    const world = await newWorld(target);
    const [one, two] = [await world.client(), await world.client()];
    const ran: string[] = [];
    const body = saga(ran, async () => {
      throw new Dead("the card was refused");
    });
    await one.work([workflow(body)], { queues, ...lease });
    const { id } = await one.hf.enqueue(workflow(body), null);
    await world.until("dead", async () => (await jobOf(one, id)).state === "dead");
    expect(ran).toEqual(["flight", "hotel", "mail", "car", "undo car", "undo hotel", "undo flight"]);
    expect((await jobOf(two, id)).error).toBe("the card was refused");
    // Its steps are undone, so a retry starts from the beginning.
    ran.length = 0;
    await one.hf.jobs.retry(id);
    await world.until("dead again", async () => (await jobOf(one, id)).state === "dead");
    expect(ran).toEqual(["flight", "hotel", "mail", "car", "undo car", "undo hotel", "undo flight"]);
  });

  test("[N11] a job that is cancelled, asleep or running, undoes its steps", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const ran: string[] = [];
    const asleep = saga(ran, async (_input, ctx) => ctx.sleep("long", "30d"));
    await one.work([workflow(asleep)], { queues, ...lease });
    const { id } = await one.hf.enqueue(workflow(asleep), null);
    await world.until("asleep", async () => (await jobOf(one, id)).waitsFor === "sleep");
    expect(await one.hf.jobs.cancel(id)).toBe("cancel_requested");
    await world.until("cancelled", async () => (await jobOf(one, id)).state === "cancelled");
    expect(ran.slice(4)).toEqual(["undo car", "undo hotel", "undo flight"]);
    expect((await jobOf(one, id)).error).toBe("cancelled by user");
    ran.length = 0;
    const running = saga(ran, async (_input, ctx) => {
      await new Promise((resolve) => ctx.signal.addEventListener("abort", resolve));
      throw ctx.signal.reason;
    });
    const other = defineJob({ name: "other", retry: { attempts: 1 }, run: running });
    await one.work([other], { queues, ...lease });
    const second = await one.hf.enqueue(other, null);
    await world.until("running", () => ran.includes("car"));
    await one.hf.jobs.cancel(second.id);
    await world.until("cancelled", async () => (await jobOf(one, second.id)).state === "cancelled");
    expect(ran.slice(4)).toEqual(["undo car", "undo hotel", "undo flight"]);
  });

  test("[N11] an undo that fails is tried again without repeating the others, and is told if it fails for good", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const ran: string[] = [];
    let failures = 2;
    const body = saga(
      ran,
      async () => {
        throw new Dead("refused");
      },
      () => failures-- > 0,
    );
    await one.work([workflow(body)], { queues, ...lease });
    const { id } = await one.hf.enqueue(workflow(body), null);
    await world.until("dead", async () => (await jobOf(one, id)).state === "dead", "20m", "5s");
    expect(ran.slice(4)).toEqual(["undo car", "undo hotel", "undo flight"]);
    failures = 100;
    ran.length = 0;
    const second = await one.hf.enqueue(workflow(body), null);
    await world.until("dead", async () => (await jobOf(one, second.id)).state === "dead", "60m", "5s");
    expect(ran.slice(4)).toEqual([]);
    expect((await jobOf(one, second.id)).errors.map(({ message }) => message)).toEqual([
      "refused",
      'UNDO_FAILED: step "car" could not be compensated: no luck',
    ]);
  });

  test("[N11] steps are undone for a job that has killed its worker too often", async () => {
    const world = await newWorld(target);
    const [one, two] = [await world.client(), await world.client()];
    const ran: string[] = [];
    const body = (stuck: boolean): Body =>
      saga(ran, async () => (stuck ? new Promise(() => {}) : Promise.resolve("fine")));
    const job = (stuck: boolean) => defineJob({ name: "poison", maxCrashes: 1, run: body(stuck) });
    await one.work([job(true)], { queues });
    const { id } = await one.hf.enqueue(job(true), null);
    await world.until("stuck", () => ran.includes("car"));
    one.tap.kill();
    await two.work([job(false)], { queues });
    await world.until("dead", async () => (await jobOf(two, id)).state === "dead", "5m");
    expect(ran.slice(4)).toEqual(["undo car", "undo hotel", "undo flight"]);
    expect((await jobOf(two, id)).error).toBe("killed its worker 1 time");
  });

  test("odd things in a run have a clear error or a defined meaning", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const codes: Record<string, string> = {};
    const note = (what: string, promise: Promise<unknown>): Promise<unknown> =>
      promise.catch((error: { code: string }) => (codes[what] = error.code));
    const self = defineJob({ name: "self", unique: () => "me", run: async (_: null) => {} });
    const job = defineJob({
      name: "odd",
      unique: { key: () => "me", scope: "global" },
      retry: { attempts: 1 },
      run: async (_: null, ctx) => {
        await note(
          "empty name",
          ctx.step("", () => 1),
        );
        await note(
          "our name",
          ctx.step("$x", () => 1),
        );
        await note(
          "long name",
          ctx.step("x".repeat(300), () => 1),
        );
        await note("no function", ctx.step("x", 1 as never));
        await note(
          "unknown option",
          ctx.step("x", () => 1, { retries: 3 } as never),
        );
        await note("bad sleep", ctx.sleep("x", "soon"));
        await note("bad version", ctx.version("x", 0));
        await note("bad signal", ctx.waitFor({} as never));
        await note("by its own id", ctx.call(self, null, { id: ctx.id }));
        await note(
          "not JSON",
          ctx.step("big", () => 1n as never),
        );
        const same = defineJob({ name: "odd", unique: { key: () => "me", scope: "global" } });
        await note("its own key", ctx.call(same, null));
        return [
          await ctx.step("nothing", () => {}),
          await ctx.step("twice", () => 1),
          await ctx.step("twice", () => 2),
        ];
      },
    });
    await one.work([job], { queues, ...lease });
    const { id } = await one.hf.enqueue(job, null);
    await world.until("ended", async () => ["done", "dead"].includes((await jobOf(one, id)).state));
    expect(await jobOf(one, id)).toMatchObject({ state: "dead" });
    expect(codes).toEqual({
      "empty name": "BAD_KEY",
      "our name": "BAD_NAME",
      "long name": "BAD_KEY",
      "no function": "BAD_OPTION",
      "unknown option": "UNKNOWN_OPTION",
      "bad sleep": "BAD_DURATION",
      "bad version": "BAD_OPTION",
      "bad signal": "BAD_OPTION",
      "by its own id": "WAITS_FOR_ITSELF",
      "not JSON": "OUTPUT_NOT_JSON",
      "its own key": "WAITS_FOR_ITSELF",
    });
  });

  test("a step that never settles ends with its job's timeout, and a failed output of a step ends the job", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const stuck = defineJob({
      name: "stuck",
      timeout: "5s",
      retry: { attempts: 2, backoff: fixed("1s") },
      run: async (_: null, ctx) => ctx.step("stuck", () => new Promise<never>(() => {})),
    });
    const odd = defineJob({
      name: "odd-output",
      retry: { attempts: 5 },
      run: async (_: null, ctx) => ctx.step("map", () => new Map() as never),
    });
    await one.work([stuck, odd], { queues, ...lease });
    const ids = [(await one.hf.enqueue(stuck, null)).id, (await one.hf.enqueue(odd, null)).id];
    await world.until("both dead", async () => (await one.hf.jobs.count({ state: "dead" })) === 2);
    expect((await jobOf(one, ids[0]!)).error).toBe("timeout after 5s");
    expect(await jobOf(one, ids[1]!)).toMatchObject({
      attempt: 1,
      error: expect.stringContaining("OUTPUT_NOT_JSON") as unknown,
    });
  });
});
