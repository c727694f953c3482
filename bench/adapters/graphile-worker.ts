/**
 * graphile-worker 0.18.
 *
 * drain and steady: as https://worker.graphile.org/docs/performance recommends: a local queue (1,000 was
 * 18 % faster than 500), concurrency 24, completions gathered (`completeJobBatchDelay: 0`). latency: no local queue,
 * concurrency 10 (p50 3.8 ms against 4.6 ms with the local queue). idle: the defaults.
 * Finished jobs are deleted by design: no history is kept.
 */
import type { Runner } from "graphile-worker";
import pg from "pg";
import type { AddOptions, Client, Payload, System, Target } from "../adapter.ts";
import { orCrash, silent } from "../adapter.ts";

// graphile-worker has no queues in our sense (its named queues are serial): kinds of task are its nearest.
const taskName = (index: number): string => `bench-${index}`;

export const systems: System[] = [
  {
    id: "graphile-worker",
    title: "graphile-worker",
    store: "postgres",
    role: "peer",
    packages: ["graphile-worker", "pg"],
    settings: {
      drain: "localQueue 1000, concurrentJobs 24, completeJobBatchDelay 0, pool 10",
      latency: "concurrentJobs 10, no local queue, pool 11",
      steady: "localQueue 1000, concurrentJobs 24, completeJobBatchDelay 0, pool 10",
      idle: "defaults, concurrentJobs 10",
    },
    factor: 1,
    bulk: { chunk: 5_000, inFlight: 4 },
    can: ["delay", "priority", "queues", "many processes"],
    setup: async (target) => {
      const { Logger, runMigrations } = await import("graphile-worker");
      await runMigrations({ connectionString: target.url, logger: new Logger(() => silent) });
    },
    open,
  },
];

async function open(target: Target): Promise<Client> {
  const { Logger, makeWorkerUtils, run: runWorker } = await import("graphile-worker");
  const logger = new Logger(() => silent);
  const pool = new pg.Pool({ connectionString: target.url, max: 10 });
  pool.on("error", silent);
  const utils = await makeWorkerUtils({ pgPool: pool, logger });
  let runner: Runner | undefined;

  const specOf = (options: AddOptions | undefined): { runAt?: Date; priority?: number } => ({
    ...(options?.delayMs !== undefined && { runAt: new Date(Date.now() + options.delayMs) }),
    // Lower first in graphile-worker.
    ...(options?.priority !== undefined && { priority: -options.priority }),
  });
  return {
    add: (job, options) => utils.addJob(taskName(options?.queue ?? 0), job, specOf(options)),
    addMany: (jobs, options) => {
      const spec = specOf(options);
      const identifier = taskName(options?.queue ?? 0);
      return utils.addJobs(jobs.map((payload) => ({ identifier, payload, ...spec })));
    },
    addUnique: (job, key) => utils.addJob(taskName(0), job, { jobKey: key }),
    addInTransaction: async (job) => {
      const client = await pool.connect();
      try {
        await client.query("begin");
        await client.query("insert into business (n) values ($1)", [job.n]);
        await client.query("select graphile_worker.add_job($1, $2::json)", [
          taskName(0),
          JSON.stringify(job),
        ]);
        await client.query("commit");
      } finally {
        client.release();
      }
    },
    work: async (run) => {
      const tuned = target.mode === "drain" || target.mode === "steady";
      const task = (payload: unknown): void | Promise<void> => run(payload as Payload);
      const taskList = Object.fromEntries(
        Array.from({ length: target.queues }, (_, index) => [taskName(index), task]),
      );
      runner = await runWorker({
        taskList,
        noHandleSignals: true,
        logger,
        parsedCronItems: [],
        preset: {
          worker: {
            connectionString: target.url,
            maxPoolSize: tuned ? 10 : 11,
            concurrentJobs: tuned ? 24 : 10,
            ...(tuned && { localQueue: { size: 1_000 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 }),
          },
        },
      });
      orCrash(runner.promise);
      const running = runner;
      return () => running.stop();
    },
    empty: async () => {
      const { rows } = await pool.query<{ left: boolean }>(
        "select exists (select from graphile_worker._private_jobs where run_at <= now()) as left",
      );
      return rows[0]?.left === false;
    },
    close: async () => {
      await runner?.stop().catch(silent);
      await utils.release();
      await pool.end().catch(silent);
    },
  };
}
