/**
 * absurd-sdk 0.5: a task without steps for each job; its steps in the scenario of that name.
 *
 * Its schema is not in the npm package: absurd expects `absurdctl init`. Give the file sql/absurd.sql of its
 * repository at the tag of the SDK (https://github.com/earendil-works/absurd) in ABSURD_SQL, or put it at
 * bench/absurd.sql (ignored by git: it is not ours). Without it the system is left out, and the output says so.
 *
 * concurrency and batch 100, pool of 20; poll of 20 ms where latency counts (default 250 ms). No bulk: 50 in flight.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import type { Client, Payload, System, Target } from "../adapter.ts";
import { silent } from "../adapter.ts";

const queueName = "bench";
const schemaFile = (): string => process.env["ABSURD_SQL"] ?? join(import.meta.dirname, "..", "absurd.sql");

export const systems: System[] = [
  {
    id: "absurd",
    title: "absurd",
    store: "postgres",
    role: "peer",
    packages: ["absurd-sdk", "pg"],
    settings: {
      drain: "concurrency 100, batch 100, poll 20 ms, pool 20",
      latency: "concurrency 100, batch 100, poll 20 ms, pool 20",
      steady: "concurrency 100, batch 100, poll 20 ms, pool 20",
      idle: "defaults (poll 250 ms)",
    },
    factor: 0.05,
    bulk: { chunk: 50, inFlight: 1 },
    pollMs: 20,
    can: ["many processes", "steps"],
    missing: () =>
      existsSync(schemaFile())
        ? null
        : "its schema is not on npm: set ABSURD_SQL to the absurd.sql of its repository",
    setup: async (target) => {
      const { Absurd } = await import("absurd-sdk");
      const pool = new pg.Pool({ connectionString: target.url, max: 1 });
      await pool.query(readFileSync(schemaFile(), "utf8"));
      await new Absurd({ db: pool, queueName }).createQueue(queueName);
      await pool.end();
    },
    open,
  },
];

const tuned = { concurrency: 100, batchSize: 100, pollInterval: 0.02 };

async function open(target: Target): Promise<Client> {
  const { Absurd } = await import("absurd-sdk");
  const pool = new pg.Pool({ connectionString: target.url, max: 20 });
  pool.on("error", silent);
  const log = { log: silent, info: silent, warn: silent, error: silent };
  const app = new Absurd({ db: pool, queueName, log });
  let run: ((job: Payload) => void | Promise<void>) | undefined;
  app.registerTask<Payload>({ name: "bench", queue: queueName }, async (job) => {
    await run?.(job);
  });
  return {
    add: (job) => app.spawn("bench", job, { queue: queueName }),
    addMany: (jobs) => Promise.all(jobs.map((job) => app.spawn("bench", job, { queue: queueName }))),
    addUnique: (job, key) => app.spawn("bench", job, { queue: queueName, idempotencyKey: key }),
    workflows: async () => {
      const walked = async (
        steps: number,
        ctx: { step: <T>(name: string, fn: () => Promise<T>) => Promise<T> },
      ) => {
        for (let n = 0; n < steps; n++) await ctx.step("step", async () => n);
      };
      app.registerTask<{ steps: number }>({ name: "walk", queue: queueName }, async ({ steps }, ctx) =>
        walked(steps, ctx),
      );
      app.registerTask<{ steps: number; event: string }>(
        { name: "pause", queue: queueName },
        async ({ steps, event }, ctx) => {
          await walked(steps, ctx);
          await ctx.awaitEvent(event);
        },
      );
      const worker = await app.startWorker(tuned);
      const states = async (state: string): Promise<number> => {
        const { rows } = await pool.query<{ n: string }>(
          `select count(*) as n from absurd.t_${queueName} where state = $1`,
          [state],
        );
        return Number(rows[0]?.n);
      };
      const until = async (state: string, count: number, everyMs: number): Promise<void> => {
        while ((await states(state)) < count) await new Promise((later) => setTimeout(later, everyMs));
      };
      return {
        run: async (runs, steps) => {
          const before = await states("completed");
          await Promise.all(
            Array.from({ length: runs }, () => app.spawn("walk", { steps }, { queue: queueName })),
          );
          await until("completed", before + runs, 5);
        },
        resume: async (steps) => {
          const before = await states("completed");
          await app.spawn("pause", { steps, event: `go-${steps}` }, { queue: queueName });
          await until("sleeping", 1, 20);
          const started = performance.now();
          await app.emitEvent(`go-${steps}`, null, queueName);
          await until("completed", before + 1, 2);
          return performance.now() - started;
        },
        close: () => worker.close(),
      };
    },
    work: async (given) => {
      run = given;
      const worker = await app.startWorker(target.mode === "idle" ? {} : tuned);
      return () => worker.close();
    },
    empty: async () => {
      const { rows } = await pool.query<{ left: boolean }>(
        `select exists (select from absurd.t_${queueName} where state in ('pending', 'running', 'sleeping')) as left`,
      );
      return rows[0]?.left === false;
    },
    close: async () => {
      await app.close().catch(silent);
      await pool.end().catch(silent);
    },
  };
}
