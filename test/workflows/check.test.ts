// The check before a deploy: every change of the code that breaks a live run is named, and nothing is done for it.
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import {
  defineJob,
  defineMachine,
  finish,
  type JobContext,
  next,
  type StandardSchemaV1,
} from "../../src/index.ts";
import { onEveryStore } from "../support/stores.ts";
import { type Client, jobOf, newWorld, type World } from "../support/world.ts";

const options = { queues: { default: 5 }, lease: "20d", heartbeat: "9d" } as const;

type Body = (input: null, ctx: JobContext) => Promise<unknown>;
const workflow = (run: Body) => defineJob({ name: "workflow", retry: { attempts: 1 }, run });
const child = defineJob({ name: "child", queue: "nobody", run: () => {} });

/** A schema that refuses what `fault` finds something wrong with. */
const schema = (fault: (data: unknown) => string | null): StandardSchemaV1<unknown, number> => ({
  "~standard": {
    version: 1,
    vendor: "test",
    validate: (data) => {
      const message = fault(data);
      return message === null ? { value: data as number } : { issues: [{ message }] };
    },
  },
});

const machine = (body: "walk" | "run" = "walk", fault: (data: unknown) => string | null = () => null) =>
  defineMachine({
    name: "workflow",
    start: "begin",
    steps: {
      begin: { run: async (_: null) => next(body as "walk", 1, { delay: "1d" }) },
      [body as "walk"]: { data: schema(fault), run: async (_: number) => finish() },
    },
  });

type Definition = Parameters<Client["work"]>[0][number];

/** What a check says to new code while a run of the old code waits. */
async function report(world: World, one: Client, before: Definition, after: Definition) {
  const worker = await one.work([before], options);
  const { id } = await one.hf.enqueue(before.name, null);
  await world.until("waiting", async () => ["waiting", "scheduled"].includes((await jobOf(one, id)).state));
  await world.finish(worker.stop());
  const steps = await world.rows("step");
  const same = await world.finish(one.hf.check([before]));
  expect(same).toEqual({ checked: 1, broken: [] });
  const found = await world.finish(one.hf.check([after]));
  expect(await world.rows("step")).toEqual(steps);
  expect(found.checked).toBe(1);
  return found.broken.map(({ id: of, step, message }) => ({ ours: of === id, step, message }));
}

const calls =
  (n: number): Body =>
  async (_input, ctx) => {
    await ctx.all(Array.from({ length: n }, () => ctx.call(child, null)));
    await ctx.step("after", () => 1);
  };

const steps: Body = async (_input, ctx) => {
  await ctx.step("one", () => 1);
  await ctx.sleep("nap", "1d");
  await ctx.step("two", () => 2);
};

const undoing =
  (undo: (() => void) | undefined): Body =>
  async (_input, ctx) => {
    await ctx.step("seat", () => 1, { undo });
    await ctx.waitFor("go");
  };

const cases: Record<string, { before: Definition; after: Definition; step: string; says: string }> = {
  "fewer parallel calls": {
    before: workflow(calls(5)),
    after: workflow(calls(3)),
    step: "call:child#4",
    says: 'the history has the call "call:child#4", but the code does not ask for it',
  },
  "all steps removed": {
    before: workflow(steps),
    after: workflow(async () => "done"),
    step: "one",
    says: 'the history has the step "one" and the sleep "nap", but the code ended without asking for them',
  },
  "all that comes behind a step removed": {
    before: workflow(steps),
    after: workflow((_input, ctx) => ctx.step("one", () => 1)),
    step: "nap",
    says: 'the history has the sleep "nap", but the code ended without asking for it',
  },
  "a job that becomes a machine": {
    before: workflow(steps),
    after: machine(),
    step: "one",
    says: 'the history has the step "one", but your job "workflow" is a machine',
  },
  "a machine that becomes a job": {
    before: machine(),
    after: workflow(steps),
    step: "walk",
    says: 'the machine is at step "walk", but your job "workflow" is not a machine',
  },
  "a machine that becomes a job without steps": {
    before: machine(),
    after: workflow(async () => "done"),
    step: "walk",
    says: "is not a machine",
  },
  "a step of a machine that has another name": {
    before: machine("walk"),
    after: machine("run"),
    step: "walk",
    says: "which the code does not have",
  },
  "data that the schema of a machine's step refuses now": {
    before: machine(),
    after: machine("walk", (data) => (typeof data === "string" ? null : "must be text")),
    step: "walk",
    says: 'data of step "walk"',
  },
  "a step that becomes a sleep of the same name": {
    before: workflow(steps),
    after: workflow((_input, ctx) => ctx.sleep("one", "1d")),
    step: "one",
    says: 'the code asks for the sleep "one", but the history has the step "one"',
  },
  "a sleep that becomes a step of the same name": {
    before: workflow(steps),
    after: workflow(async (_input, ctx) => {
      await ctx.step("one", () => 1);
      await ctx.step("nap", () => 1);
    }),
    step: "nap",
    says: 'the code asks for the step "nap", but the history has the sleep "nap"',
  },
  "a signal that has another name": {
    before: workflow(undoing(undefined)),
    after: workflow(async (_input, ctx) => {
      await ctx.step("seat", () => 1);
      await ctx.waitFor("went");
    }),
    step: "signal:went",
    says: 'the history has the wait "signal:go"',
  },
  "parallel calls that come one after the other": {
    before: workflow(calls(2)),
    after: workflow(async (_input, ctx) => {
      await ctx.call(child, null);
      await ctx.call(child, null);
    }),
    step: "call:child#2",
    says: "the code does not ask for it",
  },
  "an undo that is gone": {
    before: workflow(undoing(() => {})),
    after: workflow(undoing(undefined)),
    step: "seat",
    says: 'step "seat" had an undo function, but the code has none',
  },
};

onEveryStore((target) => {
  for (const [what, { before, after, step, says }] of Object.entries(cases))
    test(`[N12] a check names ${what}`, async () => {
      const world = await newWorld(target);
      expect(await report(world, await world.client(), before, after)).toEqual([
        { ours: true, step, message: expect.stringContaining(says) as string },
      ]);
    });

  test("[N12] a check finds nothing wrong with code that asks for the rest of its history a moment later", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const naps =
      (afterMs: number): Body =>
      async (_input, ctx) => {
        const later = async (): Promise<void> => {
          if (afterMs > 0) await sleep(afterMs);
          await ctx.sleep("second", "1d");
        };
        await Promise.all([ctx.sleep("first", "1d"), later()]);
      };
    await one.work([workflow(naps(0))], options);
    const { id } = await one.hf.enqueue("workflow", null);
    await world.until("asleep", async () => (await jobOf(one, id)).waitsFor === "sleep");
    expect(await world.rows("step")).toHaveLength(2);
    expect(await one.hf.check([workflow(naps(20))])).toEqual({ checked: 1, broken: [] });
  });

  test("[N12] a check of a run that undoes undoes nothing", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    let undone = 0;
    const without =
      (undo: (() => void) | undefined): Body =>
      async (_input, ctx) => {
        await ctx.step("seat", () => 1, { undo });
        throw new Error("no flight");
      };
    const body = without(() => {
      undone += 1;
      throw new Error("not yet");
    });
    const worker = await one.work([workflow(body)], options);
    const { id } = await one.hf.enqueue(workflow(body), null);
    await world.until("tried to undo", () => undone > 0);
    await world.until("waiting", async () => (await jobOf(one, id)).state === "scheduled");
    await world.finish(worker.stop());
    world.clock.set(world.clock.now() + 86_400_000); // so that the next try is due
    const before = [undone, await world.rows("step")];
    expect(await world.finish(one.hf.check([workflow(body)]))).toEqual({ checked: 1, broken: [] });
    expect([undone, await world.rows("step")]).toEqual(before);
    expect(await world.finish(one.hf.check([workflow(without(undefined))]))).toMatchObject({
      broken: [{ id, step: "seat" }],
    });
  });
});
