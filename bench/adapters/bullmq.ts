/**
 * BullMQ 6.7, on Redis (append-only file, fsync every second or always) and on Postgres.
 *
 * Redis: concurrency 100 (https://docs.bullmq.io/guide/workers/concurrency), `addBulk`, completed jobs removed (its
 * fastest; nothing kept). Postgres: its own backend, pool of 20, concurrency 50.
 */
import { spawnSync } from "node:child_process";
import type { Queue, Worker } from "bullmq";
import type { AddOptions, Client, Payload, StoreKind, System, Target } from "../adapter.ts";
import { silent } from "../adapter.ts";

const jobOptions = { removeOnComplete: true, removeOnFail: false };

function bullmq(id: string, title: string, store: StoreKind): System {
  const onPostgres = store === "postgres";
  const settings = onPostgres
    ? "concurrency 50, pool 20, removeOnComplete"
    : `concurrency 100, removeOnComplete, appendfsync ${store.slice("redis-".length)}`;
  return {
    id,
    title,
    store,
    role: "peer",
    packages: onPostgres ? ["bullmq", "pg"] : ["bullmq", "ioredis"],
    settings: { drain: settings, latency: settings, steady: settings, idle: settings },
    factor: onPostgres ? 0.05 : 0.5,
    bulk: { chunk: 1_000, inFlight: 2 },
    can: ["delay", "priority", "many processes"],
    missing: () => {
      if (onPostgres || spawnSync("redis-server", ["--version"]).status === 0) return null;
      return "redis-server is not installed";
    },
    setup: async (target) => (await open(target, onPostgres)).close(),
    open: (target) => open(target, onPostgres),
  };
}

export const systems: System[] = [
  bullmq("bullmq-redis-everysec", "BullMQ, Redis everysec", "redis-everysec"),
  bullmq("bullmq-redis-always", "BullMQ, Redis always", "redis-always"),
  bullmq("bullmq-postgres", "BullMQ, Postgres", "postgres"),
];

async function open(target: Target, onPostgres: boolean): Promise<Client> {
  const bull = await import("bullmq");
  const connection = onPostgres
    ? { connectionString: target.url, migrate: true, max: 20 }
    : { url: target.url, maxRetriesPerRequest: null };
  // The two backends differ in their types alone: the calls below are the same.
  const backend = (onPostgres ? [bull.createPostgresBackend] : []) as unknown as [];
  const queue: Queue = new bull.Queue("bench", { connection, defaultJobOptions: jobOptions }, ...backend);
  queue.on("error", silent);
  await queue.waitUntilReady();
  let worker: Worker | undefined;

  const optionsOf = (options: AddOptions | undefined): { delay?: number; priority?: number } => ({
    ...(options?.delayMs !== undefined && { delay: options.delayMs }),
    // Lower first in BullMQ, 1 the highest.
    ...(options?.priority !== undefined && { priority: 1_000 - options.priority }),
  });
  return {
    add: (job, options) => queue.add("bench", job, optionsOf(options)),
    addMany: (jobs, options) => {
      const opts = optionsOf(options);
      return queue.addBulk(jobs.map((data) => ({ name: "bench", data, opts })));
    },
    addUnique: (job, key) => queue.add("bench", job, { deduplication: { id: key } }),
    work: async (run) => {
      worker = new bull.Worker(
        "bench",
        async (job: { data: Payload }) => run(job.data),
        { connection, concurrency: onPostgres ? 50 : 100 },
        ...backend,
      );
      worker.on("error", silent);
      await worker.waitUntilReady();
      const running = worker;
      return () => running.close();
    },
    empty: async () => {
      const counts = await queue.getJobCounts("wait", "active", "prioritized");
      return Object.values(counts).every((count) => count === 0);
    },
    close: async () => {
      await worker?.close().catch(silent);
      await queue.close().catch(silent);
    },
  };
}
