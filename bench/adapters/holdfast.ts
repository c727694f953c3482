/**
 * Holdfast through its public API, from the built package. Everything is at its defaults (history kept, retries,
 * leases renewed, wake-ups on) but the number of slots.
 */
import type { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import pg from "pg";
import type * as Built from "../../dist/index.js";
import type { AddOptions, Client, Payload, Run, StoreKind, System, Target } from "../adapter.ts";
import { silent } from "../adapter.ts";

const slots = 100;

const ownBuild = new URL("../..", import.meta.url);
/** The root of another checkout, built: its systems have the suffix `-before`. */
const otherBuild = process.env["HOLDFAST_BEFORE"];
const queueName = (index: number): string => `bench-${index}`;

function holdfast(
  id: string,
  title: string,
  store: StoreKind,
  durability: "full" | "normal" | undefined,
  build: URL = ownBuild,
): System {
  const where = store === "postgres" ? "defaults" : `durability "${durability}"`;
  return {
    id,
    title,
    store,
    role: "ours",
    packages: store === "postgres" ? ["pg"] : [],
    settings: {
      drain: `${where}, ${slots} slots`,
      latency: `${where}, ${slots} slots`,
      steady: `${where}, ${slots} slots`,
      idle: `${where}, one slot per CPU`,
    },
    factor: 1,
    bulk: { chunk: 5_000, inFlight: 4 },
    can: ["delay", "priority", "queues", "many processes", "limits", "steps"],
    setup: async (target) => (await open(target, durability, build)).close(),
    open: (target) => open(target, durability, build),
  };
}

export const systems: System[] = [
  holdfast("holdfast-postgres", "Holdfast, Postgres", "postgres", undefined),
  holdfast("holdfast-sqlite-full", "Holdfast, SQLite FULL", "sqlite", "full"),
  holdfast("holdfast-sqlite-normal", "Holdfast, SQLite NORMAL", "sqlite", "normal"),
];

/** The same three from `HOLDFAST_BEFORE`: two builds in one interleaved run. */
if (otherBuild !== undefined) {
  const build = pathToFileURL(`${otherBuild}/`);
  systems.push(
    holdfast("holdfast-postgres-before", "Before, Postgres", "postgres", undefined, build),
    holdfast("holdfast-sqlite-full-before", "Before, SQLite FULL", "sqlite", "full", build),
    holdfast("holdfast-sqlite-normal-before", "Before, SQLite NORMAL", "sqlite", "normal", build),
  );
}

async function open(target: Target, durability: "full" | "normal" | undefined, build: URL): Promise<Client> {
  const { defineJob, open: openHoldfast } = (await import(
    new URL("dist/index.js", build).href
  )) as typeof Built;
  const onPostgres = durability === undefined;
  const url = onPostgres ? target.url : `sqlite:${target.url}`;
  const hf = await openHoldfast(url, { ...(durability && { durability }), maxPayload: 4 * 1024 * 1024 });
  const job = defineJob<"bench", Payload>({ name: "bench", queue: queueName(0) });
  // The worker's own definition has no lane, so that one worker runs both; the limits are the lanes' own.
  const inLanes = defineJob<"bench", Payload>({
    name: "bench",
    queue: queueName(0),
    lane: ({ n }) => `lane-${n}`,
    lanes: { concurrency: 10 },
  });
  let pool: pg.Pool | undefined;
  let reader: DatabaseSync | undefined;

  const optionsOf = (
    options: AddOptions | undefined,
  ): { delay?: number; priority?: number; queue?: string } => ({
    ...(options?.delayMs !== undefined && { delay: options.delayMs }),
    ...(options?.priority !== undefined && { priority: options.priority }),
    ...(options?.queue !== undefined && { queue: queueName(options.queue) }),
  });
  return {
    add: (input, options) =>
      options === undefined ? hf.enqueue(job, input) : hf.enqueue(job, input, optionsOf(options)),
    addMany: (jobs, options) => {
      const given = optionsOf(options);
      const lanes = options?.lanes;
      if (lanes !== undefined)
        return hf.enqueueMany(
          jobs.map((input) => ({ job: inLanes, input, ...given, lane: `lane-${input.n % lanes}` })),
        );
      return hf.enqueueMany(jobs.map((input) => ({ job, input, ...given })));
    },
    limit: (settings) => hf.queues.set(queueName(0), settings),
    addUnique: (input, key) => hf.enqueue(job, input, { key }),
    workflows: async () => {
      const walk = defineJob({
        name: "walk",
        queue: queueName(0),
        run: async (steps: number, ctx) => {
          for (let n = 0; n < steps; n++) await ctx.step("step", () => n);
        },
      });
      const pause = defineJob({
        name: "pause",
        queue: queueName(0),
        run: async (steps: number, ctx) => {
          for (let n = 0; n < steps; n++) await ctx.step("step", () => n);
          await ctx.waitFor("go");
        },
      });
      const worker = hf.work([walk, pause], { queues: { [queueName(0)]: slots } });
      await worker.ready;
      return {
        run: async (runs, steps) => {
          const items = Array.from({ length: runs }, () => ({ job: walk, input: steps }));
          const started = await hf.enqueueMany(items);
          await Promise.all(started.map(({ id }) => hf.result(id)));
        },
        resume: async (steps) => {
          const { id } = await hf.enqueue(pause, steps);
          while ((await hf.jobs.get(id))?.state !== "waiting")
            await new Promise((done) => setTimeout(done, 20));
          const started = performance.now();
          await hf.signal("go");
          await hf.result(id);
          return performance.now() - started;
        },
        close: () => worker.stop(),
      };
    },
    ...(onPostgres && {
      addInTransaction: async (input: Payload) => {
        pool ??= new pg.Pool({ connectionString: target.url, max: 10 });
        const client = await pool.connect();
        try {
          await client.query("begin");
          await client.query("insert into business (n) values ($1)", [input.n]);
          await hf.enqueue(job, input, { tx: client });
          await client.query("commit");
        } finally {
          client.release();
        }
      },
    }),
    work: async (run: Run) => {
      const names = Array.from({ length: target.queues }, (_, index) => queueName(index));
      const each = target.queues === 1 ? slots : 1;
      const queues = target.mode === "idle" ? names : Object.fromEntries(names.map((name) => [name, each]));
      const worker = hf.work([job.handle(async (input) => run(input))], { queues });
      await worker.ready;
      return () => worker.stop();
    },
    // One look at the narrow table of jobs that have not ended: cheaper than counting by state.
    empty: async () => {
      if (onPostgres) {
        pool ??= new pg.Pool({ connectionString: target.url, max: 10 });
        const now = "floor(extract(epoch from clock_timestamp()) * 1000)";
        const { rows } = await pool.query<{ left: boolean }>(
          `select exists (select from holdfast.ready where run_at <= ${now}) as left`,
        );
        return rows[0]?.left === false;
      }
      if (reader === undefined) {
        const { DatabaseSync } = await import("node:sqlite");
        reader = new DatabaseSync(target.url, { readOnly: true, timeout: 5_000 });
      }
      const row = reader
        .prepare("select exists (select 1 from holdfast_ready where run_at <= ?) as left_over")
        .get(Date.now());
      return row?.["left_over"] === 0;
    },
    close: async () => {
      await hf.close();
      await pool?.end().catch(silent);
      reader?.close();
    },
  };
}
