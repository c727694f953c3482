/**
 * plainjob 0.0.14 on better-sqlite3, with the pragmas that it sets itself: WAL, synchronous NORMAL.
 *
 * It runs one job after the other; only its poll can be set: 10 ms where latency counts (default 1 s).
 */
import type { Client, Payload, System, Target } from "../adapter.ts";
import { orCrash, silent } from "../adapter.ts";

export const systems: System[] = [
  {
    id: "plainjob",
    title: "plainjob, SQLite NORMAL",
    store: "sqlite",
    role: "peer",
    packages: ["plainjob", "better-sqlite3"],
    settings: {
      drain: "its pragmas (WAL, synchronous NORMAL), poll 10 ms",
      latency: "its pragmas, poll 10 ms",
      steady: "its pragmas, poll 10 ms",
      idle: "defaults (poll 1 s)",
    },
    factor: 0.5,
    bulk: { chunk: 1_000, inFlight: 1 },
    pollMs: 10,
    can: ["delay", "many processes"],
    open,
  },
];

async function open(target: Target): Promise<Client> {
  const { default: Database } = await import("better-sqlite3");
  const { better, defineQueue, defineWorker } = await import("plainjob");
  const logger = { error: silent, warn: silent, info: silent, debug: silent };
  const database = new Database(target.url);
  const queue = defineQueue({ connection: better(database), logger });
  const left = database.prepare(
    "select exists (select 1 from plainjob_jobs where status in (0, 1) and next_run_at <= ?) as n",
  );
  return {
    add: async (job, options) =>
      queue.add("bench", job, options?.delayMs === undefined ? undefined : { delay: options.delayMs }),
    addMany: async (jobs, options) =>
      queue.addMany(
        "bench",
        [...jobs],
        options?.delayMs === undefined ? undefined : { delay: options.delayMs },
      ),
    work: async (run) => {
      const pollIntervall = target.mode === "idle" ? 1_000 : 10;
      const process = (job: { data: string }): void | Promise<void> => run(JSON.parse(job.data) as Payload);
      const worker = defineWorker("bench", process, { queue, logger, pollIntervall });
      const running = worker.start();
      orCrash(running);
      return async () => {
        await worker.stop();
        await running;
      };
    },
    empty: async () => (left.get(Date.now()) as { n: number }).n === 0,
    close: async () => {
      queue.close();
    },
  };
}
