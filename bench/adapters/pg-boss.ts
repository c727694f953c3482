/**
 * pg-boss 12.38.
 *
 * drain: batches of 2,000 in 4 local workers with `burstWhenBatchFull` (docs: "JobPollingOptions"; 2000 × 4 was the
 * fastest, 16 % faster than 1000 × 2). A batch's handler completes the batch in one statement.
 * latency and steady: LISTEN/NOTIFY on (`useListenNotify`, queue option `notify`), bursts of up to 200.
 * `supervise` and `schedule` are off where throughput is measured (they would only cost), on in idle.
 */
import pg from "pg";
import type { SendOptions } from "pg-boss";
import type { AddOptions, Client, Payload, System, Target } from "../adapter.ts";
import { silent } from "../adapter.ts";

const queueName = (index: number): string => `bench-${index}`;

export const systems: System[] = [
  {
    id: "pg-boss",
    title: "pg-boss",
    store: "postgres",
    role: "peer",
    packages: ["pg-boss", "pg"],
    settings: {
      drain: "batchSize 2000, localConcurrency 4, burstWhenBatchFull, poll 0.5 s, supervise off",
      latency: "useListenNotify, notify queue, batchSize 200, localConcurrency 1, supervise off",
      steady:
        "useListenNotify, notify queue, batchSize 200, burstWhenBatchFull, localConcurrency 1, supervise off",
      idle: "defaults with useListenNotify and a notify queue",
    },
    factor: 1,
    bulk: { chunk: 2_000, inFlight: 2 },
    can: ["delay", "priority", "queues", "many processes"],
    setup: async (target) => {
      const { PgBoss } = await import("pg-boss");
      const boss = new PgBoss({ connectionString: target.url, supervise: false, schedule: false });
      boss.on("error", silent);
      await boss.start();
      const notify = target.mode !== "drain";
      for (let index = 0; index < target.queues; index++) {
        await boss.createQueue(queueName(index), { notify });
      }
      await boss.stop({ graceful: false });
    },
    open,
  },
];

async function open(target: Target): Promise<Client> {
  const { PgBoss } = await import("pg-boss");
  const idle = target.mode === "idle";
  const boss = new PgBoss({
    connectionString: target.url,
    max: 10,
    supervise: idle,
    schedule: idle,
    useListenNotify: target.mode !== "drain",
    // Rows are never removed while we measure: as the other systems that keep history.
  });
  boss.on("error", silent);
  await boss.start();
  const pool = new pg.Pool({ connectionString: target.url, max: 10 });

  const optionsOf = (options: AddOptions | undefined): SendOptions => ({
    ...(options?.delayMs !== undefined && { startAfter: Math.ceil(options.delayMs / 1000) }),
    ...(options?.priority !== undefined && { priority: options.priority }),
  });
  return {
    add: (job, options) => boss.send(queueName(options?.queue ?? 0), job, optionsOf(options)),
    addMany: (jobs, options) => {
      const given = optionsOf(options);
      return boss.insert(
        queueName(options?.queue ?? 0),
        jobs.map((data) => ({ data, ...given })),
      );
    },
    // The key holds while the job has not ended only under policy "exclusive"; singletonKey is the nearest on a
    // standard queue.
    addUnique: (job, key) => boss.send(queueName(0), job, { singletonKey: key, singletonSeconds: 3600 }),
    addInTransaction: async (job) => {
      const client = await pool.connect();
      try {
        await client.query("begin");
        await client.query("insert into business (n) values ($1)", [job.n]);
        const db = { executeSql: (text: string, values?: unknown[]) => client.query(text, values) };
        await boss.send(queueName(0), job, { db });
        await client.query("commit");
      } finally {
        client.release();
      }
    },
    work: async (run) => {
      const options =
        target.mode === "drain"
          ? { batchSize: 2_000, localConcurrency: 4, burstWhenBatchFull: true, pollingIntervalSeconds: 0.5 }
          : idle
            ? {}
            : { batchSize: 200, localConcurrency: 1, burstWhenBatchFull: true };
      const each = target.queues === 1 ? options : { ...options, localConcurrency: 1 };
      for (let index = 0; index < target.queues; index++) {
        await boss.work<Payload>(queueName(index), each, async (jobs) => {
          const pending: Promise<void>[] = [];
          for (const { data } of jobs) {
            const result = run(data);
            if (result !== undefined) pending.push(result);
          }
          if (pending.length > 0) await Promise.all(pending);
        });
      }
      return async () => {
        await boss.stop({ graceful: true, timeout: 5_000 });
      };
    },
    empty: async () => {
      const { rows } = await pool.query<{ left: boolean }>(
        "select exists (select from pgboss.job where state < 'completed' and start_after <= now()) as left",
      );
      return rows[0]?.left === false;
    },
    close: async () => {
      await boss.stop({ graceful: false }).catch(silent);
      await pool.end().catch(silent);
    },
  };
}
