// The options of jobs on machines: each does for a machine, with its moves and delays, what it does for a job.
import { expect, expectTypeOf, test } from "vitest";
import {
  defineMachine,
  finish,
  fixed,
  type JobContract,
  type MachineOptions,
  next,
  presets,
} from "../../src/index.ts";
import { laneCounts } from "../support/lane-counts.ts";
import { onEveryStore } from "../support/stores.ts";
import { type Client, jobOf, newWorld, type World } from "../support/world.ts";

const queues = { default: 10 } as const;
const lease = { lease: "20d", heartbeat: "9d" } as const;

interface Input {
  n: number;
  tenant?: string;
}
type Options = Omit<MachineOptions<string, Input>, "name">;

/** Two steps with a minute, or nothing, between them; each run of a step is noted. */
function twoSteps(world: World, options: Options, delay?: string) {
  const runs: { step: string; n: number; at: number }[] = [];
  const broken = { one: false, two: false };
  const note = (step: "one" | "two", data: Input): void => {
    runs.push({ step, n: data.n, at: world.clock.now() });
    if (broken[step]) throw new Error("502");
  };
  const machine = defineMachine({
    name: "two",
    start: "one",
    steps: {
      one: {
        run: async (data: Input) => {
          note("one", data);
          return next("two", data, { delay });
        },
      },
      two: {
        run: async (data: Input) => {
          note("two", data);
          return finish(data.n);
        },
      },
    },
    ...options,
  });
  return { machine, runs, broken, ran: (step: string) => runs.filter((run) => run.step === step) };
}

const ended = async ({ hf }: Client, count: number): Promise<boolean> =>
  (await hf.jobs.count({ state: ["done", "dead"] })) === count;

/** Kills the process that runs the step, until nobody takes it up any more. */
async function deaths(world: World, one: Client, machine: AnyMachine, started: () => number, most: number) {
  const { id } = await one.hf.enqueue(machine, { n: 1 });
  for (let n = 1; n <= most; n++) {
    const victim = await world.client();
    await victim.work([machine], { queues });
    await world.until("the step, or the end", async () => started() === n || (await ended(one, 1)), "3m");
    victim.tap.kill();
    if (started() < n) break;
  }
  // A worker that takes the last one over knows the machine; a client does not.
  await one.work([machine], { queues });
  await world.until("dead", async () => (await jobOf(one, id)).state === "dead", "3m");
  return jobOf(one, id);
}
type AnyMachine = ReturnType<typeof twoSteps>["machine"];

onEveryStore((target) => {
  test("[O13] keep: false deletes a machine that is done with its steps, and keeps one that is dead", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const { machine, broken, ran } = twoSteps(world, { keep: false }, "1m");
    await one.work([machine], { queues, ...lease });
    const { id } = await one.hf.enqueue(machine, { n: 1 });
    await world.until("the delay", async () => (await jobOf(one, id)).state === "scheduled");
    expect(await world.rows("step")).toHaveLength(2);
    await world.until("its end", async () => (await one.hf.jobs.get(id)) === null, "2m");
    expect(ran("two")).toHaveLength(1);
    expect(await world.rows("step")).toEqual([]);
    expect(await world.jobs()).toEqual([]);
    broken.two = true;
    const failed = await one.hf.enqueue(machine, { n: 2 });
    await world.until("dead", async () => (await one.hf.jobs.get(failed.id))?.state === "dead", "2m");
    expect((await one.hf.jobs.history(failed.id))?.steps.map(({ name }) => name)).toEqual(["one", "two"]);
  });

  test("[O13] a machine's unique key is held through its moves and delays, until it has ended", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const { machine, ran } = twoSteps(world, { unique: (input: Input) => String(input.n) }, "1m");
    await one.work([machine], { queues, ...lease });
    const { id } = await one.hf.enqueue(machine, { n: 1 });
    expect(await one.hf.enqueue(machine, { n: 1 })).toEqual({ status: "duplicate", id });
    await world.until("the delay", async () => (await jobOf(one, id)).step === "two");
    expect(await one.hf.enqueue(machine, { n: 1 })).toEqual({ status: "duplicate", id });
    expect((await one.hf.enqueue(machine, { n: 2 })).status).toBe("enqueued");
    await world.until("both to end", () => ended(one, 2), "3m");
    expect((await one.hf.enqueue(machine, { n: 1 })).status).toBe("enqueued");
    await world.until("the third to end", () => ended(one, 3), "3m");
    expect(ran("one").map(({ n }) => n)).toEqual([1, 2, 1]);
    const field = twoSteps(world, { unique: { key: "n", onConflict: "replace" } as never }).machine;
    await one.hf.queues.pause("default");
    const first = await one.hf.enqueue(field, { n: 7 });
    expect(await one.hf.enqueue(field, { n: 7, tenant: "b" })).toEqual({ status: "replaced", id: first.id });
  });

  test("[O13] of a lane no more machines run at once than its concurrency, and a delay gives its place to the next", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    let inside = 0;
    let most = 0;
    const order: string[] = [];
    const machine = defineMachine({
      name: "laned",
      start: "one",
      lane: (input: Input) => input.tenant ?? null,
      lanes: { concurrency: 1 },
      steps: {
        one: {
          run: async (data: Input) => {
            most = Math.max(most, (inside += 1));
            order.push(`one ${data.n}`);
            await new Promise<void>((resolve) => void world.clock.after(1_000, resolve));
            inside -= 1;
            return next("two", data, { delay: "10s" });
          },
        },
        two: {
          run: async (data: Input) => {
            most = Math.max(most, (inside += 1));
            order.push(`two ${data.n}`);
            await new Promise<void>((resolve) => void world.clock.after(1_000, resolve));
            inside -= 1;
            return finish(data.n);
          },
        },
      },
    });
    await one.work([machine], { queues, ...lease });
    for (let n = 1; n <= 3; n++) await one.hf.enqueue(machine, { n, tenant: "acme" });
    await world.until("all done", () => ended(one, 3), "2m");
    expect(most).toBe(1);
    expect(order).toEqual(["one 1", "one 2", "one 3", "two 1", "two 2", "two 3"]);
    expect(await laneCounts(world.fresh)).toEqual([0]);
  });

  test("[O13] a machine's breaker opens after its failures, and a probe that moves with a delay closes it", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const { machine, ran, broken } = twoSteps(world, { breaker: { after: 3, cooldown: "30s" } }, "10m");
    const states = async () =>
      (await one.hf.breakers.list()).map(({ key, state, probing }) => ({ key, state, probing }));
    broken.one = true;
    await one.work([machine], { queues: { default: 1 }, ...lease });
    for (let n = 1; n <= 6; n++) await one.hf.enqueue(machine, { n });
    await world.until("it to open", async () => (await states())[0]?.state === "open");
    expect(await states()).toEqual([{ key: "name:two", state: "open", probing: false }]);
    await world.advance("20s");
    expect(ran("one")).toHaveLength(3);
    broken.one = false;
    await world.until("the others to move", () => ran("one").length === 6, "20s");
    await world.until(
      "it to close",
      async () => (await states()).every(({ state }) => state === "closed"),
      "2s",
    );
    expect(await one.hf.jobs.count({ state: "scheduled" })).toBe(3);
    await world.until("all to end", () => ended(one, 6), "15m", "1s");
    expect(await one.hf.jobs.count({ state: "done" })).toBe(3);
  });

  test("[O13] a machine's breaker counts a step that moves as a success, and with a key keeps others apart", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const { machine, ran, broken } = twoSteps(
      world,
      { breaker: { after: 2, cooldown: "1h", key: (input: Input) => input.tenant ?? null } },
      "1m",
    );
    await one.work([machine], { queues: { default: 1 }, ...lease });
    const send = async (n: number, tenant: string): Promise<void> => {
      await one.hf.enqueue(machine, { n, tenant });
      await world.until("it to run", () => ran("one").length === n);
    };
    for (const [n, fails] of [true, false, true].entries()) {
      broken.one = fails;
      await send(n + 1, "a");
    }
    await world.advance("2s");
    expect((await one.hf.breakers.list()).filter(({ state }) => state !== "closed")).toEqual([]);
    await send(4, "a");
    await world.until("it to open", async () =>
      (await one.hf.breakers.list()).some(({ key, state }) => key === "name:two/a" && state === "open"),
    );
    broken.one = false;
    await send(5, "b");
    await one.hf.enqueue(machine, { n: 6, tenant: "a" });
    await world.advance("30s");
    expect(ran("one").map(({ n }) => n)).toEqual([1, 2, 3, 4, 5]);
  });

  test("[O13] each start of a machine takes its budget's tokens, also after a delay; a move without one takes none", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    await one.hf.budgets.set("api", { limit: 1, per: "10s" });
    const { machine, runs } = twoSteps(world, { budget: "api" });
    await one.work([machine], { queues, ...lease });
    for (let n = 1; n <= 3; n++) await one.hf.enqueue(machine, { n });
    await world.until("all done", () => ended(one, 3), "1m");
    const started = runs.filter(({ step }) => step === "one").map(({ at }) => at);
    expect(started[1]! - started[0]!).toBeGreaterThanOrEqual(10_000);
    expect(started[2]! - started[1]!).toBeGreaterThanOrEqual(10_000);
    expect(runs.map(({ step }) => step)).toEqual(["one", "two", "one", "two", "one", "two"]);
    const later = twoSteps(world, { budget: { name: "api", tokens: 1 }, queue: "later" }, "100ms");
    await one.work([later.machine], { queues: { later: 10 }, ...lease });
    const { id } = await one.hf.enqueue(later.machine, { n: 4 });
    await world.until("done", async () => (await jobOf(one, id)).state === "done", "1m");
    expect(later.ran("two")[0]!.at - later.ran("one")[0]!.at).toBeGreaterThanOrEqual(9_900);
  });

  test("[O13] with countCrashes: attempt a crash uses up an attempt of its step, in which the machine then dies", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    let started = 0;
    const machine = defineMachine({
      name: "two",
      start: "one",
      countCrashes: "attempt",
      steps: {
        // More attempts than the step that crashes: the process that finds the crash must not judge by this.
        one: { retry: { attempts: 9 }, run: async (data: Input) => next("two", data) },
        two: {
          retry: { attempts: 2, backoff: fixed("1s") },
          run: async (_: Input) => {
            started += 1;
            await new Promise(() => {});
            return finish(1);
          },
        },
      },
    });
    const job = await deaths(world, one, machine, () => started, 9);
    expect(started).toBe(2);
    expect(job).toMatchObject({ attempt: 2, crashes: 2, step: "two" });
    expect(job.error).toMatch(/killed its worker 2 times/);
  });

  test("[O13] with countCrashes: attempt a step that may be tried seven times survives six crashes, whoever finds them", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    let started = 0;
    const machine = defineMachine({
      name: "two",
      start: "one",
      countCrashes: "attempt",
      retry: { attempts: 7 },
      steps: {
        one: {
          run: async (data: Input) => {
            started += 1;
            if (started < 7) await new Promise(() => {});
            return next("two", data);
          },
        },
        two: { run: async (data: Input) => finish(data.n) },
      },
    });
    const { id } = await one.hf.enqueue(machine, { n: 5 });
    for (let n = 1; n < 7; n++) {
      const victim = await world.client();
      await victim.work([machine], { queues });
      await world.until("the step", () => started === n, "3m");
      victim.tap.kill();
      // A client without the definition finds the crash.
      await world.advance("31s", "1s");
      await one.hf.lease({ queues: ["none"] });
    }
    await one.work([machine], { queues });
    await world.until("done", async () => (await jobOf(one, id)).state === "done", "3m");
    expect(started).toBe(7);
  });

  test("[O13] the machine's retry is the default of its steps, each half of it, and a preset's job part fits", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const at: Record<string, number[]> = { own: [], half: [], none: [] };
    const step = (name: string) => async (_: Input) => {
      at[name]!.push(world.clock.now());
      if (at[name]!.length > 0) throw new Error("no");
      return finish();
    };
    const start = (name: "own" | "half" | "none") =>
      defineMachine({
        name,
        start: name,
        retry: { attempts: 3, backoff: fixed("5s") },
        steps: {
          own: { retry: { attempts: 2, backoff: fixed("1s") }, run: step("own") },
          half: { retry: { attempts: 4 }, run: step("half") },
          none: { run: step("none") },
        },
      });
    const machines = [start("own"), start("half"), start("none")];
    await one.work(machines, { queues, ...lease });
    await one.hf.enqueueMany(machines.map((job) => ({ job, input: { n: 1 } })));
    await world.until("all dead", () => ended(one, 3), "2m");
    const gaps = Object.values(at).map((times) =>
      times.map((when) => Math.round((when - times[0]!) / 1_000)),
    );
    expect(gaps).toEqual([
      [0, 1],
      [0, 5, 10, 15],
      [0, 5, 10],
    ]);
    const { machine, broken, ran } = twoSteps(world, presets.forge.job);
    broken.one = true;
    await one.work([machine], { queues, ...lease });
    const { id } = await one.hf.enqueue(machine, { n: 1 });
    await world.until("dead", async () => (await jobOf(one, id)).state === "dead", "2h", "10s");
    expect(ran("one")).toHaveLength(5);
  });
});

test("[O13] unique, lane and the breaker's key of a machine are typed by the data of its first step", () => {
  const machine = defineMachine({
    name: "typed",
    start: "read",
    steps: {
      read: { run: async (_: { file: string }, ctx) => next("end", { n: ctx.attempt }) },
      end: { run: async (data: { n: number }) => finish(data.n) },
    },
    unique: (input) => input.file,
    lane: (input) => input.file,
    breaker: { key: (input) => input.file },
  });
  defineMachine({
    name: "before",
    start: "read",
    unique: (input) => input.file,
    steps: { read: { run: async (data: { file: string }) => finish(data.file) } },
  });
  type Given<J> = J extends JobContract<string, infer I, infer _O> ? I : never;
  expectTypeOf<Given<typeof machine>>().toEqualTypeOf<{ file: string }>();
  const steps = {
    read: { run: async (_: { file: string }) => finish() },
  } as const;
  defineMachine({ name: "field", start: "read", steps, unique: "file" });
  // @ts-expect-error -- the first step's data has no such field
  defineMachine({ name: "wrong-field", start: "read", steps, unique: "n" });
  defineMachine({
    name: "wrong-lane",
    start: "read",
    steps,
    // @ts-expect-error -- nor here
    lane: (input: { n: number }) => String(input.n),
  });
  expect(() => defineMachine({ name: "odd", start: "read", steps, lanes: { concurrency: 1 } })).toThrow(
    /need `lane`/,
  );
  expect(() => defineMachine({ name: "odd", start: "read", steps, retry: { attempts: 0 } })).toThrow(
    /retry.attempts of machine "odd"/,
  );
});
