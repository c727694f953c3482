// Steps, sleeps, signals and calls in any job, on every store: what is done stays done, and what waits holds nothing.
import { expect, test } from "vitest";
import * as z from "zod";
import { defineJob, defineSignal, fixed, type JobContext } from "../../src/index.ts";
import { onEveryStore } from "../support/stores.ts";
import { jobOf, newWorld } from "../support/world.ts";

const lease = { lease: "20d", heartbeat: "9d" } as const;
const queues = { default: 5 } as const;

onEveryStore((target) => {
  test("[N11] a finished step is not run again after a failed attempt of its job", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const ran: string[] = [];
    const job = defineJob({
      name: "workflow",
      retry: { attempts: 3, backoff: fixed("1s") },
      run: async (input: { n: number }, ctx) => {
        const a = await ctx.step("a", () => (ran.push("a"), { value: input.n }));
        const b = await ctx.step("b", () => {
          ran.push(`b${ctx.attempt}`);
          if (ctx.attempt < 3) throw new Error("not yet");
          return a.value + 1;
        });
        return a.value + b;
      },
    });
    await one.work([job], { queues, ...lease });
    const { id } = await one.hf.enqueue(job, { n: 20 });
    await world.until("done", async () => (await jobOf(one, id)).state === "done");
    expect(ran).toEqual(["a", "b1", "b2", "b3"]);
    expect(await jobOf(one, id)).toMatchObject({ output: 41, attempt: 3 });
    const history = await one.hf.jobs.history(id);
    expect(history?.steps.map(({ name, state, output }) => ({ name, state, output }))).toEqual([
      { name: "a", state: "done", output: { value: 20 } },
      { name: "b", state: "done", output: 21 },
    ]);
    expect(history?.attempts.map(({ attempt, error }) => [attempt, error])).toEqual([
      [1, 'Step "b" failed: not yet'],
      [2, 'Step "b" failed: not yet'],
      [3, null],
    ]);
  });

  test("[N11] each step says what the run had seen when it asked for it, also those that come after a sleep and another attempt", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const job = defineJob({
      name: "seen",
      retry: { attempts: 2, backoff: fixed("1s") },
      run: async (_: null, ctx) => {
        await ctx.step("list", () => 3);
        await ctx.all(["x", "y", "z"].map((part) => ctx.step(`get-${part}`, () => part)));
        await ctx.sleep("nap", "2s");
        await ctx.step("pack", () => {
          if (ctx.attempt === 1) throw new Error("not yet");
        });
        await ctx.all([ctx.sleep("rest", "1s"), ctx.step("tell", () => 1)]);
        await ctx.step("end", () => 1);
      },
    });
    await one.work([job], { queues, ...lease });
    const { id } = await one.hf.enqueue(job, null);
    await world.until("done", async () => (await jobOf(one, id)).state === "done");
    const history = await one.hf.jobs.history(id);
    expect(history?.steps.map(({ name, given }) => `${given} ${name}`)).toEqual([
      "0 list",
      "1 get-x",
      "1 get-y",
      "1 get-z",
      "4 nap",
      "5 pack",
      "6 rest",
      "6 tell",
      "8 end",
    ]);
  });

  test("[N11] a failure that the handler answered stays as it was when the job is tried again", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const ran: string[] = [];
    const job = defineJob({
      name: "answered",
      retry: { attempts: 3, backoff: fixed("1s") },
      run: async (_: null, ctx) => {
        const step = (name: string, fails: boolean) =>
          ctx.step(name, () => {
            ran.push(name);
            if (fails) throw new Error(`${name} failed`);
            return name;
          });
        const way = await step("first", true).catch(() => step("instead", false));
        const both = await Promise.allSettled([step("left", true), step("right", false)]);
        const then = await step("then", false);
        await step("last", ctx.attempt < 3);
        return [way, both.map(({ status }) => status), then];
      },
    });
    await one.work([job], { queues, ...lease });
    const { id } = await one.hf.enqueue(job, null);
    await world.until("done", async () => (await jobOf(one, id)).state === "done");
    expect(ran).toEqual(["first", "instead", "left", "right", "then", "last", "last", "last"]);
    expect((await jobOf(one, id)).output).toEqual(["instead", ["rejected", "fulfilled"], "then"]);
  });

  test("[N11] a sleep of a year holds no slot, no lease and no attempt, and the run goes on afterwards", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const ran: string[] = [];
    const job = defineJob({
      name: "yearly",
      retry: { attempts: 1 },
      run: async (_input: null, ctx) => {
        await ctx.step("before", () => void ran.push("before"));
        await ctx.sleep("year", "365d");
        await ctx.step("after", () => void ran.push("after"));
        return "slept";
      },
    });
    const worker = await one.work([job], { queues: { default: 1 }, ...lease });
    const { id } = await one.hf.enqueue(job, null);
    const startedAt = world.clock.now();
    await world.until("asleep", async () => (await jobOf(one, id)).waitsFor === "sleep");
    expect(await jobOf(one, id)).toMatchObject({
      state: "scheduled",
      attempt: 0,
      leaseUntil: null,
      runAt: new Date(startedAt + 365 * 86_400_000),
    });
    expect(worker.running).toBe(0);
    expect(await world.rows("claim")).toEqual([]);
    expect(await one.hf.jobs.why(id)).toMatchObject({ reason: "asleep", waitsFor: ["year"] });
    // Without a worker meanwhile: a year of its polling would take long, even in fake time.
    await world.finish(worker.stop());
    await world.clock.advance(365 * 86_400_000 - 10_000);
    await one.work([job], { queues: { default: 1 }, ...lease });
    await world.advance("1s");
    expect(ran).toEqual(["before"]);
    await world.until("done", async () => (await jobOf(one, id)).state === "done");
    expect(ran).toEqual(["before", "after"]);
    expect(await jobOf(one, id)).toMatchObject({ output: "slept", attempt: 1 });
  });

  test("[N11] a signal sent before the wait is not lost, one sent after it wakes the run, and each is taken once", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const approved = defineSignal({ name: "approved", data: z.object({ by: z.string() }) });
    const job = defineJob({
      name: "approval",
      run: async (input: { order: string }, ctx) => {
        const first = await ctx.waitFor(approved, { key: input.order });
        const second = await ctx.waitFor(approved, { key: input.order });
        return [first?.by, second?.by];
      },
    });
    await one.hf.signal(approved, { key: "o1", data: { by: "Ada" } });
    await one.work([job], { queues, ...lease });
    const { id } = await one.hf.enqueue(job, { order: "o1" });
    await world.until("waiting", async () => (await jobOf(one, id)).state === "waiting");
    expect(await one.hf.jobs.why(id)).toMatchObject({
      reason: "waiting-for-signal",
      text: 'The run waits for the signal "approved" with the key "o1".',
    });
    expect(await one.hf.jobs.list({ state: "waiting" })).toMatchObject({ jobs: [{ id }] });
    await one.hf.signal(approved, { key: "other", data: { by: "Eve" } });
    await world.advance("2s");
    expect((await jobOf(one, id)).state).toBe("waiting");
    await one.hf.signal(approved, { key: "o1", data: { by: "Bob" } });
    await world.until("done", async () => (await jobOf(one, id)).state === "done");
    expect((await jobOf(one, id)).output).toEqual(["Ada", "Bob"]);
    expect(await world.rows("signal")).toHaveLength(1);
    expect((await one.hf.jobs.history(id))?.signals).toMatchObject([
      { name: "approved", key: "o1", state: "taken", data: { by: "Ada" } },
      { name: "approved", key: "o1", state: "taken", data: { by: "Bob" } },
    ]);
    await expect(one.hf.signal(approved, { data: { by: 1 } as never })).rejects.toMatchObject({
      code: "SIGNAL_INVALID",
    });
  });

  test("[N11] a signal that a job declares is checked by its name too: where it is sent, if the definition is known there, and in the run", async () => {
    const world = await newWorld(target);
    const [web, one] = [await world.client(), await world.client()];
    const packed = defineSignal({
      name: "packed",
      data: z.object({ boxes: z.int(), by: z.string().default("nobody") }),
    });
    const job = defineJob({
      name: "pack",
      signals: [packed],
      retry: { attempts: 1 },
      run: async (key: string, ctx) => ctx.waitFor("packed", { key }),
    });
    await one.work([job], { queues, ...lease });
    const [good, bad] = [await one.hf.enqueue(job, "good"), await one.hf.enqueue(job, "bad")];
    await expect(one.hf.signal("packed", { key: "good", data: { boxes: "2" } })).rejects.toMatchObject({
      code: "SIGNAL_INVALID",
      details: { issues: [{ path: ".boxes" }] },
    });
    expect(await world.rows("signal")).toEqual([]);
    await one.hf.signal("packed", { key: "good", data: { boxes: 2 } });
    // A process that does not know the job keeps it as it is: the run refuses it.
    await web.hf.signal("packed", { key: "bad", data: { boxes: "2" } });
    await world.until("done", async () => (await jobOf(one, good.id)).state === "done");
    expect((await jobOf(one, good.id)).output).toEqual({ boxes: 2, by: "nobody" });
    await world.until("dead", async () => (await jobOf(one, bad.id)).state === "dead");
    const [error] = (await jobOf(one, bad.id)).errors;
    expect(error?.message).toContain(
      'data of signal "packed" does not fit its schema. data of signal "packed".boxes',
    );

    // Two kinds may wait for one name: it is for one of them.
    const other = defineJob({
      name: "other",
      signals: [defineSignal({ name: "packed", data: z.object({ crate: z.string() }) })],
      run: async (_input: unknown, ctx) => ctx.waitFor("packed", { key: "other" }),
    });
    await one.work([other], { queues: { others: 1 }, ...lease });
    await one.hf.signal("packed", { key: "other", data: { crate: "c" } });
    await expect(one.hf.signal("packed", { key: "other", data: {} })).rejects.toMatchObject({
      code: "SIGNAL_INVALID",
    });
  });

  test("[N11] ten signals and ten runs that wait for them: each is taken by one run", async () => {
    const world = await newWorld(target);
    const [one, two] = [await world.client(), await world.client()];
    const job = defineJob({ name: "taker", run: async (_: number, ctx) => ctx.waitFor<number>("go") });
    const ids = (await one.hf.enqueueMany(Array.from({ length: 10 }, (_, n) => ({ job, input: n })))).map(
      ({ id }) => id,
    );
    await one.work([job], { queues, ...lease });
    await two.work([job], { queues, ...lease });
    for (let n = 0; n < 10; n += 1) await (n % 2 === 0 ? one : two).hf.signal("go", { data: n });
    await world.until("all done", async () => (await one.hf.jobs.count({ state: "done" })) === 10);
    const outputs = await Promise.all(ids.map(async (id) => (await jobOf(one, id)).output));
    expect(outputs.map(Number).sort((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(await world.rows("signal")).toEqual([]);
  });

  test("[N11] a wait that is over gives null, and signals expire after 7 days", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const job = defineJob({
      name: "waiter",
      run: async (_: null, ctx) => ({ got: await ctx.waitFor("never", { timeout: "3d" }) }),
    });
    const worker = await one.work([job], { queues, ...lease });
    const { id } = await one.hf.enqueue(job, null);
    await world.until("waiting", async () => (await jobOf(one, id)).state === "waiting");
    await one.hf.signal("never", { key: "elsewhere" });
    await one.hf.signal("old", { data: 1, expires: "1h" });
    await world.finish(worker.stop());
    await world.clock.advance("3d");
    const later = await one.work([job], { queues, ...lease });
    await world.until("done", async () => (await jobOf(one, id)).state === "done");
    await world.until("the old one to be gone", async () => (await world.rows("signal")).length === 1);
    expect((await jobOf(one, id)).output).toEqual({ got: null });
    expect((await one.hf.jobs.history(id))?.signals).toMatchObject([{ state: "timeout" }]);
    await world.finish(later.stop());
    await world.clock.advance("5d");
    await one.tap.raw.workflows.sweep();
    expect(await world.rows("signal")).toEqual([]);
  });

  test("[N11] a called job gives its output while its caller holds no slot", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const double = defineJob({ name: "double", keep: false, run: (input: { n: number }) => input.n * 2 });
    const parent = defineJob({
      name: "parent",
      run: async (input: { n: number }, ctx): Promise<number> => {
        const first = await ctx.call(double, { n: input.n });
        const [a, b] = await ctx.all([ctx.call(double, { n: first }), ctx.call(double, { n: first + 1 })]);
        return a + b;
      },
    });
    await one.work([double, parent], { queues: { default: 1 }, ...lease });
    const { id } = await one.hf.enqueue(parent, { n: 1 });
    await world.until("done", async () => (await jobOf(one, id)).state === "done");
    expect((await jobOf(one, id)).output).toBe(10);
    const history = await one.hf.jobs.history(id);
    expect(history?.children.map(({ relation, state, step }) => [relation, state, step]).sort()).toEqual([
      ["called", "done", "call:double"],
      ["called", "done", "call:double#2"],
      ["called", "done", "call:double#3"],
    ]);
  });

  test("[N11] a called job that is dead fails its step, with its error", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const bad = defineJob({
      name: "bad",
      retry: { attempts: 1 },
      run: () => {
        throw new Error("no luck");
      },
    });
    const parent = defineJob({
      name: "parent",
      retry: { attempts: 1 },
      run: async (_: null, ctx) => {
        try {
          return await ctx.call(bad, {});
        } catch (error) {
          return ctx.step("note", () => (error as Error).message);
        }
      },
    });
    await one.work([bad, parent], { queues, ...lease });
    const { id } = await one.hf.enqueue(parent, null);
    await world.until("done", async () => (await jobOf(one, id)).state === "done");
    expect((await jobOf(one, id)).output).toMatch(/that step "call:bad" called is dead: no luck$/);
  });

  test("[N11] steps in Promise.all run side by side, and repeated names get a number", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    let most = 0;
    let now = 0;
    const ran: number[] = [];
    const job = defineJob({
      name: "parallel",
      run: async (_: null, ctx) => {
        const items = await Promise.all(
          [1, 2, 3].map(async (n) => {
            const fetched = await ctx.step("fetch", async () => {
              most = Math.max(most, ++now);
              await new Promise((resolve) => setTimeout(resolve, 10 * (4 - n)));
              now -= 1;
              ran.push(n);
              return n;
            });
            const marked = await ctx.step("mark", () => fetched);
            await ctx.sleep("pause", "1s");
            const saved = await ctx.step("save", () => marked * 10);
            // Once more from the history: each branch must get what it was given before.
            await ctx.sleep("rest", "1s");
            return saved;
          }),
        );
        return items;
      },
    });
    await one.work([job], { queues, ...lease });
    const { id } = await one.hf.enqueue(job, null);
    await world.until("done", async () => (await jobOf(one, id)).state === "done");
    expect(most).toBe(3);
    expect(ran).toEqual([3, 2, 1]);
    expect((await jobOf(one, id)).output).toEqual([10, 20, 30]);
    expect((await one.hf.jobs.history(id))?.steps.map(({ name }) => name).sort()).toEqual(
      [
        "fetch",
        "fetch#2",
        "fetch#3",
        "mark",
        "mark#2",
        "mark#3",
        "pause",
        "pause#2",
        "pause#3",
        "rest",
        "rest#2",
        "rest#3",
        "save",
        "save#2",
        "save#3",
      ].sort(),
    );
  });

  test("[N11] a step with a retry rule of its own sleeps between its tries and then fails for good", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const at: number[] = [];
    const job = defineJob({
      name: "retrying",
      retry: { attempts: 1 },
      run: async (_: null, ctx) => {
        try {
          await ctx.step(
            "flaky",
            () => {
              at.push(world.clock.now());
              throw new Error("down");
            },
            { retry: { attempts: 3, backoff: fixed("10s") } },
          );
          return "never";
        } catch (error) {
          await ctx.sleep("breathe", "1m");
          return (error as Error).message;
        }
      },
    });
    const worker = await one.work([job], { queues, ...lease });
    const { id } = await one.hf.enqueue(job, null);
    await world.until("asleep", async () => (await jobOf(one, id)).waitsFor === "sleep");
    expect(worker.running).toBe(0);
    expect(await one.hf.jobs.why(id)).toMatchObject({ reason: "asleep", text: /Step "flaky" failed 1 time/ });
    await world.until("done", async () => (await jobOf(one, id)).state === "done", "3m");
    expect(at.map((when) => Math.round((when - at[0]!) / 1_000))).toEqual([0, 10, 20]);
    expect(await jobOf(one, id)).toMatchObject({ output: 'Step "flaky" failed: down', attempt: 1 });
    expect((await one.hf.jobs.history(id))?.steps[0]).toMatchObject({
      state: "failed",
      tries: 3,
      error: "down",
    });
  });

  test("[N11] a step's timeout fails its try", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    let aborted = false;
    const job = defineJob({
      name: "slow",
      retry: { attempts: 1 },
      run: async (_: null, ctx) =>
        ctx.step(
          "stuck",
          ({ signal }) => {
            signal.addEventListener("abort", () => (aborted = true));
            return new Promise<never>(() => {});
          },
          { timeout: "5s" },
        ),
    });
    await one.work([job], { queues, ...lease });
    const { id } = await one.hf.enqueue(job, null);
    await world.until("dead", async () => (await jobOf(one, id)).state === "dead");
    expect((await jobOf(one, id)).error).toBe('Step "stuck" failed: step "stuck": timeout after 5s');
    expect(aborted).toBe(true);
  });

  test("[N11] a worker that dies is followed by one that runs only what was not finished", async () => {
    const world = await newWorld(target);
    const [one, two] = [await world.client(), await world.client()];
    const ran: string[] = [];
    const body = (who: string, stuck: boolean) => async (_: null, ctx: JobContext) => {
      await ctx.step("a", () => void ran.push(`a ${who}`));
      await ctx.step("b", () => {
        ran.push(`b ${who}`);
        return stuck ? new Promise<void>(() => {}) : undefined;
      });
      return ctx.step("c", () => who);
    };
    const job = defineJob({ name: "workflow", run: body("one", true) });
    await one.work([job], { queues });
    const { id } = await one.hf.enqueue(job, null);
    await world.until("b", () => ran.includes("b one"));
    one.tap.kill();
    await two.work([job.handle(body("two", false))], { queues });
    await world.until("done", async () => (await jobOf(two, id)).state === "done", "2m");
    expect(ran).toEqual(["a one", "b one", "b two"]);
    expect(await jobOf(two, id)).toMatchObject({ output: "two", crashes: 1, attempt: 1 });
  });

  test("[N11] a plain job sends no statement for workflows but one read when a retry is done, and a run's history is read once", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const plain = defineJob({
      name: "plain",
      retry: { attempts: 2, backoff: fixed("1s") },
      run: (n: number, ctx) => {
        if (ctx.attempt === 1) throw new Error("once");
        return n;
      },
    });
    const workflow = defineJob({
      name: "workflow",
      run: async (n: number, ctx) => {
        for (let i = 0; i < n; i += 1) await ctx.step("s", () => i);
        await ctx.sleep("nap", "1s");
        for (let i = 0; i < n; i += 1) await ctx.step("t", () => i);
        return n;
      },
    });
    await one.work([plain, workflow], { queues, ...lease });
    const { counters } = one.tap.raw;
    const workflowStatements = [
      "recordSteps",
      "findSteps",
      "suspend",
      "takeSignal",
      "meet",
      "watch",
      "undoable",
    ];
    const sent = (): number =>
      workflowStatements.reduce((sum, name) => sum + (counters.byName.get(name) ?? 0), 0);
    const first = await one.hf.enqueue(plain, 1);
    await world.until("done", async () => (await jobOf(one, first.id)).state === "done");
    // Whether an earlier attempt had recorded steps that this code does not ask for.
    expect([sent(), counters.byName.get("findSteps")]).toEqual([1, 1]);
    const once = await one.hf.enqueue(workflow, 0);
    await world.until("asleep", async () => (await jobOf(one, once.id)).waitsFor === "sleep");
    expect(counters.byName.get("findSteps")).toBe(1);
    await world.until("done", async () => (await jobOf(one, once.id)).state === "done");
    const before = new Map(counters.byName);
    const since = (name: string): number => (counters.byName.get(name) ?? 0) - (before.get(name) ?? 0);
    const { id } = await one.hf.enqueue(workflow, 100);
    await world.until("done", async () => (await jobOf(one, id)).state === "done");
    expect(since("findSteps")).toBe(1);
    expect(since("recordSteps")).toBe(201);
    expect(since("suspend")).toBe(1);
  });

  test("[N11] steps, signals and dependencies go with their job", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const child = defineJob({ name: "child", run: () => 1 });
    const job = defineJob({
      name: "workflow",
      run: async (_: null, ctx) => {
        await ctx.step("a", () => 1);
        return ctx.call(child, {});
      },
    });
    const brief = defineJob({
      name: "brief",
      keep: false,
      run: async (_: null, ctx) => ctx.step("a", () => 1),
    });
    const worker = await one.work([job, child, brief], { queues, ...lease });
    const { id } = await one.hf.enqueue(job, null);
    await one.hf.enqueue(brief, null);
    await world.until("done", async () => (await one.hf.jobs.count({ state: "done" })) === 2);
    await world.finish(worker.stop());
    expect((await world.rows("step")).map((row) => row["job"])).toEqual([id, id]);
    expect(await world.rows("dependency")).toHaveLength(1);
    await world.clock.advance("8d");
    await one.hf.prune();
    expect(await one.hf.jobs.get(id)).toBeNull();
    expect([await world.rows("step"), await world.rows("dependency")]).toEqual([[], []]);
  });
});
