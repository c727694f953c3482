/**
 * The program that every virtual worker runs: jobs of every kind, each of which records its runs.
 *
 * What a run does depends on the job's input and on how often the job has started, which the simulation counts outside the database, as the
 * world outside would. So the checker knows which end each job must come to.
 * Not here: who enqueues these jobs, and when (workload.ts).
 */
import { fixed } from "../../src/jobs/backoff.ts";
import { Dead, Release, RetryAfter, Throttled } from "../../src/jobs/decision.ts";
import { type AnyJob, defineJob } from "../../src/jobs/define-job.ts";
import type { JobContext } from "../../src/worker/context.ts";
import { defineMachine, finish, next } from "../../src/workflows/machine.ts";
import type { Entry } from "./history.ts";
import type { Process, World } from "./world.ts";

/** How one run of a handler ends. */
export type Ending = "ok" | "fail" | "dead" | "throttled" | "release" | "retryAfter" | "hang";

/** The input of most jobs. */
export interface Work {
  readonly n: number;
  /** How each run ends, by how often the job has started; `ok` after the last. */
  readonly plan?: readonly Ending[];
  readonly ms?: number;
  readonly key?: string;
  readonly lane?: string;
}

/** What all processes of a simulation share outside the database. */
export interface Outside {
  readonly world: World;
  readonly history: Entry[];
  /** How often each job has started. */
  readonly starts: Map<string, number>;
}

export const limitedQueue = "limited";
export const limitedConcurrency = 2;
export const laneConcurrency = 1;
export const budgetName = "api";
export const workQueues = ["default", limitedQueue, "lanes"] as const;
const backoff = fixed("2s");
const retry = { attempts: 4, backoff };

/** Shared with clients: an enqueue by name does not know the limits of lanes before a worker has registered them. */
export const laned = defineJob({
  name: "laned",
  queue: "lanes",
  lane: (input: Work) => input.lane ?? "none",
  lanes: { concurrency: laneConcurrency },
  retry,
  timeout: "20s",
});

/** The definitions of one process. */
export function definitionsFor(process: Process, outside: Outside): AnyJob[] {
  const { world, history, starts } = outside;
  const stale = (): boolean => world.now - process.unwellUntil < 60_000;
  const note = (
    what: "start" | "finish",
    ctx: Pick<JobContext, "id" | "name" | "token" | "attempt">,
    how?: string,
  ): void => {
    if (!process.alive) return;
    const { id, name, token, attempt } = ctx;
    history.push({ at: world.now, what, id, name, token, attempt, stale: stale(), ...(how && { how }) });
  };
  const step = (what: "stepStart" | "undone", ctx: Pick<JobContext, "id" | "token">, name: string): void => {
    if (!process.alive) return;
    history.push({ at: world.now, what, id: ctx.id, step: name, token: ctx.token, stale: stale() });
  };

  const run = async <T>(ctx: JobContext, input: Work, value: T): Promise<T> => {
    const started = starts.get(ctx.id) ?? 0;
    if (process.alive) starts.set(ctx.id, started + 1);
    note("start", ctx);
    const ending = input.plan?.[started] ?? "ok";
    await process.sleep(ending === "hang" ? 60_000 : (input.ms ?? 5));
    const how = ctx.signal.aborted ? "aborted" : ending;
    note("finish", ctx, how);
    switch (ending) {
      case "fail":
      case "hang":
        throw new Error(`planned failure of ${ctx.name}`);
      case "dead":
        throw new Dead("planned");
      case "throttled":
        throw new Throttled("1s");
      case "release":
        throw new Release("planned", { delay: "500ms" });
      case "retryAfter":
        throw new RetryAfter("1s");
      default:
        return value;
    }
  };
  /** A run that may suspend: recorded with each resume, ended by its caller. */
  const resumed = (ctx: JobContext): void => {
    if (process.alive) starts.set(ctx.id, (starts.get(ctx.id) ?? 0) + 1);
    note("start", ctx);
  };

  const plain = (name: string, options: object = {}): AnyJob =>
    defineJob({
      name,
      retry,
      timeout: "20s",
      ...options,
      run: (input: Work, ctx) => run(ctx, input, input.n),
    });

  const child = defineJob({
    name: "child",
    retry,
    timeout: "20s",
    run: (input: Work, ctx) => run(ctx, input, input.n),
  });

  const flow = defineJob({
    name: "flow",
    retry,
    timeout: "60s",
    run: async (input: Work, ctx) => {
      resumed(ctx);
      const take = (data: number | null): void => {
        if (data !== null && process.alive) history.push({ at: world.now, what: "taken", id: ctx.id, data });
      };
      const work = (name: string, value: number) => async (): Promise<number> => {
        step("stepStart", ctx, name);
        await process.sleep(5);
        return value;
      };
      const first = await ctx.step("first", work("first", 1));
      const one = await ctx.waitFor<number>("told", { key: String(input.n) });
      take(one);
      await ctx.sleep("nap", 300);
      const two = await ctx.waitFor<number>("told", { key: String(input.n) });
      take(two);
      const called = await ctx.call(child, { n: input.n });
      const [left, right] = await Promise.all([
        ctx.step("left", work("left", 2)),
        ctx.step("right", work("right", 3)),
      ]);
      note("finish", ctx, "ok");
      return { sum: first + left + right, one, two, called };
    },
  });

  const saga = defineJob({
    name: "saga",
    retry: { attempts: 2, backoff },
    timeout: "60s",
    run: async (input: Work, ctx) => {
      resumed(ctx);
      const undo = (name: string) => async (): Promise<void> => {
        step("undone", ctx, name);
        await process.sleep(5);
      };
      for (const name of ["reserve", "charge"]) {
        await ctx.step(
          name,
          async () => {
            step("stepStart", ctx, name);
            await process.sleep(5);
            return name;
          },
          { undo: undo(name) },
        );
      }
      const dies = input.plan?.includes("dead") === true;
      note("finish", ctx, dies ? "dead" : "ok");
      if (dies) throw new Dead("planned");
      return input.n;
    },
  });

  const machine = defineMachine({
    name: "machine",
    start: "one",
    steps: {
      one: {
        retry,
        run: async (data: Work, ctx) => {
          await run(ctx as JobContext, { ...data, plan: data.plan ?? [] }, null);
          return next("two", { n: data.n });
        },
      },
      two: {
        retry,
        run: async (data: { n: number }, ctx) => {
          step("stepStart", ctx, "two");
          await process.sleep(5);
          return next("three", { n: data.n }, { delay: 200 });
        },
      },
      three: {
        retry,
        run: async (data: { n: number }, ctx) => {
          step("stepStart", ctx, "three");
          await process.sleep(5);
          note("finish", ctx, "ok");
          return finish(data.n);
        },
      },
    },
  });

  return [
    plain("plain"),
    plain("urgent", { priority: 10 }),
    plain("fleeting", { keep: false }),
    plain("keyed", { unique: (input: Work) => input.key ?? null }),
    plain("limited", { queue: limitedQueue }),
    laned.handle((input, ctx) => run(ctx, input, input.n)),
    plain("metered", { budget: budgetName }),
    plain("fragile", { breaker: { after: 3, cooldown: "5s" } }),
    plain("member"),
    plain("finale"),
    defineJob({
      name: "tick",
      retry,
      timeout: "20s",
      run: async (input: Work, ctx) => {
        const instant = ctx.schedule?.at.getTime() ?? 0;
        if (process.alive) history.push({ at: world.now, what: "occurrence", id: ctx.id, instant });
        return run(ctx, input, instant);
      },
    }),
    child,
    flow,
    saga,
    machine,
  ];
}
