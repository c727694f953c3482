/**
 * liteque 0.8 on better-sqlite3 (WAL; better-sqlite3's build makes synchronous NORMAL the default in WAL).
 *
 * liteque hands async functions to better-sqlite3's `transaction`, which version 13 refuses ("Transaction function
 * cannot return a promise"); older ones committed at the first await. The adapter brings that behaviour back, since
 * older versions do not run on this Node.
 *
 * Concurrency 10, poll of 10 ms (its documents use 1 s). No bulk enqueue: one after the other.
 */
import type { Database } from "better-sqlite3";
import type { Client, Payload, System, Target } from "../adapter.ts";
import { orCrash } from "../adapter.ts";

export const systems: System[] = [
  {
    id: "liteque",
    title: "liteque, SQLite NORMAL",
    store: "sqlite",
    role: "peer",
    packages: ["liteque", "better-sqlite3"],
    settings: {
      drain: "WAL, concurrency 10, poll 10 ms",
      latency: "WAL, concurrency 10, poll 10 ms",
      steady: "WAL, concurrency 10, poll 10 ms",
      idle: "WAL, concurrency 10, poll 1 s",
    },
    factor: 0.05,
    bulk: { chunk: 500, inFlight: 1 },
    pollMs: 10,
    can: ["delay", "priority"],
    // The connection that turns WAL on stays at synchronous FULL; those after it start at NORMAL.
    setup: async (target) => {
      const { buildDBClient } = await import("liteque");
      buildDBClient(target.url, { runMigrations: true, walEnabled: true });
    },
    open,
  },
];

type Transaction = (...args: unknown[]) => unknown;

/** `transaction` as better-sqlite3 had it before it looked at what the function returns. */
function lenientTransaction(this: Database, run: Transaction): Transaction {
  const begin =
    (how: string): Transaction =>
    (...args) => {
      this.exec(`begin ${how}`);
      try {
        const result = run(...args);
        this.exec("commit");
        return result;
      } catch (error) {
        if (this.inTransaction) this.exec("rollback");
        throw error;
      }
    };
  return Object.assign(begin("deferred"), {
    deferred: begin("deferred"),
    immediate: begin("immediate"),
    exclusive: begin("exclusive"),
  });
}

async function open(target: Target): Promise<Client> {
  const { default: SqliteDatabase } = await import("better-sqlite3");
  (SqliteDatabase.prototype as { transaction: unknown }).transaction = lenientTransaction;
  const { buildDBClient, Runner, SqliteQueue } = await import("liteque");
  const database = buildDBClient(target.url, { runMigrations: true, walEnabled: true });
  const queue = new SqliteQueue<Payload>("bench", database, {
    defaultJobArgs: { numRetries: 2 },
    keepFailedJobs: false,
  });
  const add = (job: Payload, options?: { delayMs?: number; priority?: number }): Promise<unknown> =>
    queue.enqueue(job, {
      ...(options?.delayMs !== undefined && { delayMs: options.delayMs }),
      // Lower first in liteque.
      ...(options?.priority !== undefined && { priority: -options.priority }),
    });
  return {
    add,
    addMany: async (jobs, options) => {
      for (const job of jobs) await add(job, options);
    },
    addUnique: (job, key) => queue.enqueue(job, { idempotencyKey: key }),
    work: async (run) => {
      const runner = new Runner<Payload>(
        queue,
        { run: async ({ data }) => run(data) },
        { pollIntervalMs: target.mode === "idle" ? 1_000 : 10, timeoutSecs: 60, concurrency: 10 },
      );
      const running = runner.run();
      orCrash(running);
      return async () => {
        runner.stop();
        await running;
      };
    },
    empty: async () => {
      const { pending, pending_retry, running } = await queue.stats();
      return pending + pending_retry + running === 0;
    },
    close: async () => {},
  };
}
