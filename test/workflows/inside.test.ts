// A step is done once and cannot wait: what a handler may ask for, a step's function may not.
import { expect, test } from "vitest";
import { Dead, defineJob, type JobContext } from "../../src/index.ts";
import { onEveryStore } from "../support/stores.ts";
import { jobOf, newWorld } from "../support/world.ts";

const lease = { lease: "20d", heartbeat: "9d" } as const;
const queues = { default: 5 } as const;

const child = defineJob({ name: "child", run: () => 1 });
const misuses: Record<string, (ctx: JobContext) => Promise<unknown>> = {
  "ctx.step": (ctx) => ctx.step("inner", () => 1),
  "ctx.sleep": (ctx) => ctx.sleep("nap", "1s"),
  "ctx.waitFor": (ctx) => ctx.waitFor("go", { timeout: "1s" }),
  "ctx.call": (ctx) => ctx.call(child, null),
  "ctx.version": (ctx) => ctx.version("v", 1),
  "ctx.all": (ctx) => ctx.all([ctx.sleep("nap", "1s"), ctx.sleep("other", "1s")]),
  "ctx.commit": (ctx) => ctx.commit({}),
};

onEveryStore((target) => {
  for (const [what, misuse] of Object.entries(misuses))
    test(`[O11] ${what} inside a step, or inside its undo, is refused at once and ends the job with INSIDE_STEP`, async () => {
      const world = await newWorld(target);
      const one = await world.client();
      let undone = 0;
      const job = (where: "step" | "swallowed" | "undo") =>
        defineJob({
          name: where,
          run: async (_: null, ctx) => {
            await ctx.step("ok", () => 1, { undo: () => void (undone += 1) });
            await ctx.step(
              "bad",
              async () => {
                await Promise.resolve();
                if (where === "step") await misuse(ctx);
                // A commit that nobody awaits may end the process, like any rejection; the others must not.
                if (where === "swallowed" && what === "ctx.commit") await misuse(ctx).catch(() => undefined);
                else if (where === "swallowed") void misuse(ctx);
              },
              { retry: { attempts: 3 }, ...(where === "undo" ? { undo: () => misuse(ctx) } : {}) },
            );
            throw new Dead("refused");
          },
        });
      const jobs = [job("step"), job("swallowed"), job("undo")] as const;
      await one.work([...jobs, child], { queues, ...lease });
      const enqueuedAt = world.clock.now();
      for (const definition of jobs) {
        const { id } = await one.hf.enqueue(definition, null);
        await world.until("dead", async () => (await jobOf(one, id)).state === "dead", "1s", "10ms");
        const { errors, attempt } = await jobOf(one, id);
        const last = errors.at(-1)?.message;
        const start = definition.name === "undo" ? 'UNDO_FAILED: step "bad"' : "INSIDE_STEP: ";
        expect([attempt, last?.slice(0, start.length)]).toEqual([1, start]);
        expect(last).toMatch(/inside (the compensation of )?step "bad"/);
      }
      // Nobody waited for a timeout or a retry, and nothing was begun.
      expect(world.clock.now() - enqueuedAt).toBeLessThan(3_000);
      expect(undone).toBe(2);
      expect(await one.hf.jobs.count({ name: "child" })).toBe(0);
      const kinds = (await world.rows("step")).map(({ kind }) => String(kind)).sort();
      expect(kinds).toEqual([...Array<string>(6).fill("step"), ...Array<string>(6).fill("undo")]);
    });

  test("[O11] beside a running step a handler may sleep, wait and call; also in the branches of its steps", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const slow = Promise.withResolvers<string>();
    const job = defineJob({
      name: "branches",
      run: async (_: null, ctx) => {
        const first = ctx
          .step("slow", () => slow.promise)
          .then((value) => ctx.step(`after ${value}`, () => 1));
        const second = (async () => {
          await ctx.step("quick", () => 1);
          await ctx.sleep("nap", "1s");
          return ctx.call(child, null);
        })();
        const third = ctx.waitFor<string>("go");
        slow.resolve("all");
        return ctx.all([first, second, third]);
      },
    });
    await one.work([job, child], { queues, ...lease });
    const { id } = await one.hf.enqueue(job, null);
    await one.hf.signal("go", { data: "went" });
    await world.until("done", async () => (await jobOf(one, id)).state === "done", "20s");
    expect((await jobOf(one, id)).output).toEqual([1, 1, "went"]);
  });

  test("[O11] a run that starts because of a step of another run is not inside that step", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const inner = defineJob({
      name: "inner",
      run: async (_: null, ctx) => {
        await ctx.sleep("nap", "1s");
        return ctx.step("a", () => 1);
      },
    });
    const outer = defineJob({
      name: "outer",
      run: async (_: null, ctx) =>
        ctx.step("start", async () => {
          const { id } = await ctx.enqueue(inner, null);
          return one.hf.result(id);
        }),
    });
    await one.work([outer, inner], { queues, ...lease });
    const { id } = await one.hf.enqueue(outer, null);
    await world.until("done", async () => (await jobOf(one, id)).state === "done", "20s");
    expect((await jobOf(one, id)).output).toBe(1);
  });

  test("[O11] a handler that returns while a step of it runs is warned about once for each definition", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const forgetful = defineJob({
      name: "forgetful",
      run: async (_: null, ctx) => {
        await ctx.step("first", () => 1);
        void ctx.step("never awaited", () => new Promise(() => {}));
        await Promise.resolve();
      },
    });
    const early = defineJob({ name: "early", run: (_: null, ctx) => void ctx.step("not begun", () => 1) });
    // Whoever comes first: the other wait is left behind on purpose.
    const racing = defineJob({
      name: "racing",
      run: async (_: null, ctx) => {
        const nap = ctx.sleep("nap", "1h");
        await Promise.race([ctx.waitFor("go", { timeout: "1s" }), nap]);
        await Promise.race([ctx.step("a", () => 1), nap]);
      },
    });
    const jobs = [forgetful, early, racing];
    await one.work(jobs, { queues, ...lease });
    for (const job of [...jobs, ...jobs]) await one.hf.enqueue(job, null);
    await world.until("done", async () => (await one.hf.jobs.count({ state: "done" })) === 6, "60s");
    const warned = one.log.filter(({ message }) => message.includes("one of its steps was running"));
    expect(
      warned
        .map(({ level, details }) => `${level} ${String(details["name"])} ${String(details["steps"])}`)
        .sort(),
    ).toEqual(["warn early not begun", "warn forgetful never awaited"]);
  });
});
