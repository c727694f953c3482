// A decision that a handler returns acts as one that it throws (O13).
import { expect, test } from "vitest";
import { Dead, defineJob, defineMachine, finish, next, Release, RetryAfter, Throttled } from "holdfast";
import { onEveryStore } from "../support/stores.ts";
import { client, patient } from "../support/client.ts";

const decisions = {
  dead: () => new Dead("no such record"),
  retry: () => new RetryAfter("15m", "closed"),
  throttled: () => new Throttled("30s", "too fast"),
  release: () => new Release("not now", { delay: "1m" }),
};
const kinds = Object.keys(decisions) as (keyof typeof decisions)[];

/** A function that throws or returns the decision, at once or later. */
const ways = {
  throws: (kind: keyof typeof decisions) => {
    throw decisions[kind]();
  },
  returns: (kind: keyof typeof decisions) => decisions[kind](),
  "returns later": async (kind: keyof typeof decisions) => decisions[kind](),
};

onEveryStore((target) => {
  for (const middleware of [false, true]) {
    const where = middleware ? "through middleware" : "alone";
    test(`[O13] a returned decision acts as if thrown, ${where}: in jobs, steps and machines`, async () => {
      const { hf, clock } = await client(target);
      const met: string[] = [];
      if (middleware)
        hf.use({
          run: async (_attempt, proceed) => {
            try {
              return await proceed();
            } catch (error) {
              met.push((error as Error).name);
              throw error;
            }
          },
        });
      const definitions = Object.entries(ways).flatMap(([way, act]) => {
        const name = way.replace(" ", "-");
        return [
          defineJob({ name: `job-${name}`, run: (kind: keyof typeof decisions) => act(kind) }),
          defineJob({
            name: `step-${name}`,
            run: async (kind: keyof typeof decisions, ctx) => {
              await ctx.step("s", () => act(kind), { retry: { attempts: 3 } });
              return "not here";
            },
          }),
          defineMachine({
            name: `machine-${name}`,
            start: "a",
            steps: {
              a: {
                retry: { attempts: 3 },
                run: async (kind: keyof typeof decisions) => (kind === "dead" ? next("b", kind) : act(kind)),
              },
              b: { run: async (kind: keyof typeof decisions) => (kind === "dead" ? act(kind) : finish(1)) },
            },
          }),
        ];
      });
      const worker = hf.work(definitions, { queues: { default: 1 }, ...patient });
      const seen = new Map<string, unknown[]>();
      for (const { name } of definitions) {
        const found: unknown[] = [];
        for (const kind of kinds) {
          const { id } = await hf.enqueue(name, kind);
          await worker.idle();
          const job = (await hf.jobs.get(id))!;
          const dueIn = job.runAt === null ? null : job.runAt.getTime() - clock.now();
          found.push([job.state, job.attempt, job.error, job.state === "dead" ? null : dueIn, job.output]);
        }
        seen.set(name, found);
      }
      for (const sort of ["job", "step", "machine"]) {
        const thrown = seen.get(`${sort}-throws`);
        if (sort === "job")
          expect(thrown).toEqual([
            ["dead", 1, "no such record", null, null],
            ["scheduled", 1, "closed", 900_000, null],
            ["scheduled", 0, null, 30_000, null],
            ["scheduled", 0, null, 60_000, null],
          ]);
        expect(seen.get(`${sort}-returns`), sort).toEqual(thrown);
        expect(seen.get(`${sort}-returns-later`), sort).toEqual(thrown);
      }
      if (middleware) {
        const each = met.length / 3;
        const thrown = met.slice(0, each);
        expect(thrown.slice(0, 4)).toEqual(["Dead", "RetryAfter", "Throttled", "Release"]);
        expect(met.slice(each, 2 * each)).toEqual(thrown);
        expect(met.slice(2 * each)).toEqual(thrown);
      }
      await worker.stop();
    });
  }
});
