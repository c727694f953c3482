/**
 * openworkflow 0.10 on Postgres (postgres.js, its own pool): a workflow without steps for each job.
 *
 * It claims one run at a time and polls with a backoff that cannot be set; concurrency 50. No bulk enqueue: 50 in
 * flight.
 */
import pg from "pg";
import type { Client, Payload, System, Target } from "../adapter.ts";
import { silent } from "../adapter.ts";

export const systems: System[] = [
  {
    id: "openworkflow",
    title: "openworkflow",
    store: "postgres",
    role: "peer",
    packages: ["openworkflow", "postgres"],
    settings: {
      drain: "concurrency 50",
      latency: "concurrency 50",
      steady: "concurrency 50",
      idle: "concurrency 10",
    },
    factor: 0.02,
    bulk: { chunk: 50, inFlight: 1 },
    pollMs: 1_000,
    can: ["delay", "many processes"],
    setup: async (target) => (await open(target)).close(),
    open,
  },
];

async function open(target: Target): Promise<Client> {
  const { OpenWorkflow } = await import("openworkflow");
  const { BackendPostgres } = await import("openworkflow/postgres");
  const backend = await BackendPostgres.connect(target.url);
  const ow = new OpenWorkflow({ backend });
  const pool = new pg.Pool({ connectionString: target.url, max: 2 });
  let run: ((job: Payload) => void | Promise<void>) | undefined;
  const workflow = ow.defineWorkflow<Payload, null>({ name: "bench" }, async ({ input }) => {
    await run?.(input);
    return null;
  });
  const add = (job: Payload, delayMs?: number): Promise<unknown> =>
    workflow.run(job, delayMs === undefined ? {} : { availableAt: new Date(Date.now() + delayMs) });
  return {
    add: (job, options) => add(job, options?.delayMs),
    addMany: (jobs, options) => Promise.all(jobs.map((job) => add(job, options?.delayMs))),
    addUnique: (job, key) => workflow.run(job, { idempotencyKey: key }),
    work: async (given) => {
      run = given;
      const worker = ow.newWorker({ concurrency: target.mode === "idle" ? 10 : 50 });
      await worker.start();
      return () => worker.stop();
    },
    empty: async () => {
      const { rows } = await pool.query<{ left: boolean }>(
        `select exists (select from openworkflow.workflow_runs
                        where status in ('pending', 'running', 'sleeping') and available_at <= now()) as left`,
      );
      return rows[0]?.left === false;
    },
    close: async () => {
      await backend.stop().catch(silent);
      await pool.end().catch(silent);
    },
  };
}
