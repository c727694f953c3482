/**
 * DBOS 5.3 queues: a workflow without steps for each job.
 *
 * workerConcurrency 100 and a poll of 10 ms (the default of 1 s measures the poll), pool of 20. There is
 * no public bulk enqueue: `DBOSClient.enqueue` with 50 in flight.
 */
import pg from "pg";
import type { Client, Payload, System, Target } from "../adapter.ts";
import { silent } from "../adapter.ts";

const name = "holdfast-bench";
const queueName = "bench";
const workflowName = "bench";

export const systems: System[] = [
  {
    id: "dbos",
    title: "DBOS queue",
    store: "postgres",
    role: "peer",
    packages: ["@dbos-inc/dbos-sdk", "pg"],
    settings: {
      drain: "workerConcurrency 100, poll 10 ms, pool 20",
      latency: "workerConcurrency 100, poll 10 ms, pool 20",
      steady: "workerConcurrency 100, poll 10 ms, pool 20",
      idle: "defaults (poll 1 s)",
    },
    factor: 0.05,
    bulk: { chunk: 50, inFlight: 1 },
    pollMs: 10,
    can: ["delay", "many processes", "steps"],
    setup: async (target) => {
      const { DBOS, DBOSClient } = await import("@dbos-inc/dbos-sdk");
      await DBOS.migrate(target.url);
      const client = await DBOSClient.create({ systemDatabaseUrl: target.url, applicationName: name });
      await client.registerQueue(queueName, {
        workerConcurrency: 100,
        ...(target.mode !== "idle" && { minPollingIntervalMs: 10 }),
      });
      await client.destroy();
    },
    open,
  },
];

async function open(target: Target): Promise<Client> {
  const { DBOS, DBOSClient } = await import("@dbos-inc/dbos-sdk");
  const client = await DBOSClient.create({
    systemDatabaseUrl: target.url,
    systemDatabasePoolSize: 20,
    applicationName: name,
  });
  const pool = new pg.Pool({ connectionString: target.url, max: 2 });
  let launched = false;
  const add = (job: Payload, delayMs?: number): Promise<unknown> =>
    client.enqueue(
      { queueName, workflowName, ...(delayMs !== undefined && { delaySeconds: Math.ceil(delayMs / 1000) }) },
      job,
    );
  return {
    add: (job, options) => add(job, options?.delayMs),
    addMany: (jobs, options) => Promise.all(jobs.map((job) => add(job, options?.delayMs))),
    addUnique: (job, key) => client.enqueue({ queueName, workflowName, deduplicationID: key }, job),
    workflows: async () => {
      const config = {
        name,
        systemDatabaseUrl: target.url,
        systemDatabasePoolSize: 20,
        logLevel: "error",
        executorID: "bench",
      };
      DBOS.setConfig(config);
      const walk = DBOS.registerWorkflow(
        async (steps: number) => {
          for (let n = 0; n < steps; n++) await DBOS.runStep(async () => n, { name: "step" });
        },
        { name: "walk" },
      );
      const pause = DBOS.registerWorkflow(
        async (steps: number) => {
          for (let n = 0; n < steps; n++) await DBOS.runStep(async () => n, { name: "step" });
          await DBOS.recv("go", 600);
        },
        { name: "pause" },
      );
      await DBOS.launch();
      launched = true;
      return {
        run: async (runs, steps) => {
          const handles = await Promise.all(
            Array.from({ length: runs }, () => DBOS.startWorkflow(walk)(steps)),
          );
          await Promise.all(handles.map((handle) => handle.getResult()));
        },
        // Its waiting runs stay in memory; a restart of the executor is what makes it go through the history again.
        resume: async (steps) => {
          const { workflowID } = await DBOS.startWorkflow(pause)(steps);
          const done = async (): Promise<number> => {
            const { rows } = await pool.query<{ n: string }>(
              "select count(*) as n from dbos.operation_outputs where workflow_uuid = $1",
              [workflowID],
            );
            return Number(rows[0]?.n);
          };
          while ((await done()) < steps) await new Promise((later) => setTimeout(later, 20));
          await DBOS.shutdown();
          await client.send(workflowID, "now", "go");
          DBOS.setConfig(config);
          const started = performance.now();
          await DBOS.launch();
          await DBOS.retrieveWorkflow(workflowID).getResult();
          return performance.now() - started;
        },
        close: async () => {
          launched = false;
          await DBOS.shutdown();
        },
      };
    },
    work: async (run) => {
      DBOS.setConfig({
        name,
        systemDatabaseUrl: target.url,
        systemDatabasePoolSize: 20,
        logLevel: "error",
        // Processes of one executor take each other's running workflows for their own of before a crash: all ran twice.
        executorID: `bench-${process.pid}`,
        listenQueues: [queueName],
      });
      DBOS.registerWorkflow(async (job: Payload) => run(job), { name: workflowName });
      await DBOS.launch();
      launched = true;
      return async () => {
        launched = false;
        await DBOS.shutdown();
      };
    },
    empty: async () => {
      const { rows } = await pool.query<{ left: boolean }>(
        "select exists (select from dbos.workflow_status where status in ('ENQUEUED', 'PENDING')) as left",
      );
      return rows[0]?.left === false;
    },
    close: async () => {
      if (launched) await DBOS.shutdown().catch(silent);
      await client.destroy().catch(silent);
      await pool.end().catch(silent);
    },
  };
}
