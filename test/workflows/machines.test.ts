// Machines: steps that say which comes next, saved one by one; pg_task's promises (D6–D9) and more.
import { expect, expectTypeOf, test } from "vitest";
import * as z from "zod";
import { defineMachine, finish, fixed, type JobContract, next } from "../../src/index.ts";
import { onEveryStore } from "../support/stores.ts";
import { jobOf, newWorld } from "../support/world.ts";

const lease = { lease: "20d", heartbeat: "9d" } as const;
const queues = { default: 5 } as const;

onEveryStore((target) => {
  test("[D6] steps follow each other at once, after a delay, or not at all; a finished one is not run again", async () => {
    const world = await newWorld(target);
    const [one, two] = [await world.client(), await world.client()];
    const ran: string[] = [];
    const machine = (who: string, stuck: boolean) =>
      defineMachine({
        name: "four",
        start: "one",
        steps: {
          one: { run: async (data: { n: number }) => (ran.push(`one ${who}`), next("two", data)) },
          two: {
            run: async (data: { n: number }) => (ran.push(`two ${who}`), next("three", { m: data.n + 1 })),
          },
          three: {
            run: async (data: { m: number }) => {
              ran.push(`three ${who}`);
              if (stuck) await new Promise(() => {});
              return next("four", data, { delay: "20s" });
            },
          },
          four: { run: async (data: { m: number }) => (ran.push(`four ${who}`), finish({ sum: data.m })) },
        },
      });
    const first = machine("a", true);
    await one.work([first], { queues });
    const { id } = await one.hf.enqueue(first, { n: 1 });
    await world.until("step three", () => ran.includes("three a"));
    expect((await jobOf(one, id)).step).toBe("three");
    one.tap.kill();
    const worker = await two.work([machine("b", false)], { queues, ...lease });
    await world.until("the delay", async () => (await jobOf(two, id)).state === "scheduled", "2m");
    expect(await jobOf(two, id)).toMatchObject({ step: "four", attempt: 0, crashes: 0 });
    expect(worker.running).toBe(0);
    await world.until("done", async () => (await jobOf(two, id)).state === "done");
    expect(ran).toEqual(["one a", "two a", "three a", "three b", "four b"]);
    expect(await jobOf(two, id)).toMatchObject({ output: { sum: 2 }, step: "four", attempt: 1 });
    expect((await two.hf.jobs.history(id))?.steps.map(({ name, state }) => [name, state])).toEqual([
      ["one", "done"],
      ["two", "done"],
      ["three", "done"],
      ["four", "done"],
    ]);
  });

  test("[D7] a step is tried once unless it says more, with its own delay, and the next one counts anew", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const at: number[] = [];
    const machine = defineMachine({
      name: "retrying",
      start: "easy",
      steps: {
        easy: {
          retry: { attempts: 3 },
          run: async (_: null, ctx) => {
            if (ctx.attempt < 3) throw new Error("not yet");
            return next("hard", { n: 1 });
          },
        },
        hard: {
          retry: { attempts: 6, backoff: fixed("2s") },
          run: async (_: { n: number }) => {
            at.push(world.clock.now());
            if (at.length > 0) throw new Error("never");
            return finish();
          },
        },
      },
    });
    await one.work([machine], { queues, ...lease });
    const { id } = await one.hf.enqueue(machine, null);
    await world.until("dead", async () => (await jobOf(one, id)).state === "dead");
    expect(at.map((when) => Math.round((when - at[0]!) / 1_000))).toEqual([0, 2, 4, 6, 8, 10]);
    expect(await jobOf(one, id)).toMatchObject({ attempt: 6, error: "never", step: "hard" });
    const once = defineMachine({
      name: "once",
      start: "only",
      steps: {
        only: {
          run: async (_: null) => {
            if (at.length > 0) throw new Error("boom");
            return finish();
          },
        },
      },
    });
    await one.work([once], { queues, ...lease });
    const dead = await one.hf.enqueue(once, null);
    await world.until("dead", async () => (await jobOf(one, dead.id)).state === "dead");
    expect(await jobOf(one, dead.id)).toMatchObject({ attempt: 1, step: "only" });
  });

  test("[D8] a failed machine is resumed at the failed step, by the API and by plain SQL", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const ran: string[] = [];
    let broken = true;
    const machine = defineMachine({
      name: "resumed",
      start: "first",
      steps: {
        first: { run: async (n: number) => (ran.push("first"), next("second", n + 1)) },
        second: {
          run: async (n: number) => {
            ran.push("second");
            if (broken) throw new Error("broken");
            return finish(n);
          },
        },
      },
    });
    await one.work([machine], { queues, ...lease });
    const ids = [(await one.hf.enqueue(machine, 1)).id, (await one.hf.enqueue(machine, 10)).id];
    await world.until("both dead", async () => (await one.hf.jobs.count({ state: "dead" })) === 2);
    broken = false;
    expect(await one.hf.jobs.retry(ids[0]!)).toBe("retried");
    await world.fresh.query(`insert into ${world.fresh.table("retry")} (id) values ('${ids[1]!}')`);
    // The view takes the database's own clock, which is not the test's.
    const { jobKey, jobKeyOf } = world.fresh;
    await world.fresh.query(
      `update ${world.fresh.table("ready")} set run_at = 0 where ${jobKey} = ${jobKeyOf(`'${ids[1]!}'`)}`,
    );
    await world.until("both done", async () => (await one.hf.jobs.count({ state: "done" })) === 2);
    expect([await jobOf(one, ids[0]!), await jobOf(one, ids[1]!)]).toMatchObject([
      { output: 2 },
      { output: 11 },
    ]);
    expect(ran.filter((step) => step === "first")).toHaveLength(2);
  });

  test("[D9] data that cannot be written or read is that machine's error, and harms nothing else", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const machine = defineMachine({
      name: "odd",
      start: "go",
      steps: {
        go: {
          run: async (how: string) => {
            if (how === "bigint") return next("end", { n: 1n as unknown as number });
            if (how === "lost") return next("gone" as "end", { n: 1 });
            if (how === "nothing") return undefined as never;
            return next("end", { n: how === "misfit" ? ("x" as unknown as number) : 1 });
          },
        },
        end: { data: z.object({ n: z.number() }), run: async (data: { n: number }) => finish(data.n) },
      },
    });
    const worker = await one.work([machine], { queues, ...lease });
    const results = await one.hf.enqueueMany(
      ["bigint", "lost", "nothing", "misfit", "well"].map((input) => ({ job: machine, input })),
    );
    await world.until("all ended", async () => (await one.hf.jobs.count({ state: ["done", "dead"] })) === 5);
    const jobs = await Promise.all(results.map(({ id }) => jobOf(one, id)));
    expect(jobs.map(({ state, step, error }) => [state, step, error?.slice(0, 16) ?? null])).toEqual([
      ["dead", "go", "OUTPUT_NOT_JSON:"],
      ["dead", "go", "BAD_MOVE: Machin"],
      ["dead", "go", "BAD_MOVE: Machin"],
      ["dead", "end", 'data of step "en'],
      ["done", "end", null],
    ]);
    await world.fresh.query(
      `update ${world.fresh.table("step")} set output = 'not json' where job = '${jobs[3]!.id}' and name = '$machine'`,
    );
    await one.hf.jobs.retry(jobs[3]!.id);
    await world.until("dead again", async () => (await jobOf(one, jobs[3]!.id)).state === "dead");
    expect((await jobOf(one, jobs[3]!.id)).error).toMatch(/^DECODE_FAILED/);
    expect(worker.running).toBe(0);
  });
});

test("next is typed by the step that it goes to, and a machine's input and output by its steps", () => {
  const machine = defineMachine({
    name: "typed",
    start: "read",
    steps: {
      read: { run: async (data: { file: string }) => next("greet", { name: data.file }) },
      greet: {
        run: async (data: { name: string }) =>
          data.name === "" ? next("read", { file: "x" }) : finish({ ok: true }),
      },
    },
  });
  type Input<J> = J extends JobContract<string, infer I, infer _O> ? I : never;
  type Output<J> = J extends JobContract<string, infer _I, infer O> ? O : never;
  expectTypeOf<Input<typeof machine>>().toEqualTypeOf<{ file: string }>();
  expectTypeOf<Output<typeof machine>>().toEqualTypeOf<{ ok: boolean }>();
  defineMachine({
    name: "wrong-data",
    start: "a",
    steps: {
      // @ts-expect-error -- b takes a number
      a: { run: async (_: null) => next("b", "text") },
      b: { run: async (_: number) => finish() },
    },
  });
  defineMachine({
    name: "wrong-step",
    start: "a",
    steps: {
      // @ts-expect-error -- there is no step c
      a: { run: async (_: null) => next("c", 1) },
      b: { run: async (_: number) => finish() },
    },
  });
  expect(() =>
    defineMachine({
      name: "wrong-start",
      // @ts-expect-error -- there is no step c
      start: "c",
      steps: { a: { run: async (_: null) => finish() } },
    }),
  ).toThrow(/start must be one of the steps/);
});
