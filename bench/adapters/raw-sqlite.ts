/**
 * The limit on SQLite: a bare loop with node:sqlite. One transaction deletes the last batch and claims the next
 * (an update, so that a crash loses nothing): no retries, schedules, leases or history. Not a queue.
 *
 * Batches of 500, as on Postgres.
 */
import type { Client, Payload, System, Target } from "../adapter.ts";
import { orCrash } from "../adapter.ts";

const batch = 500;

function raw(id: string, title: string, synchronous: "full" | "normal"): System {
  return {
    id,
    title,
    store: "sqlite",
    role: "limit",
    packages: [],
    settings: {
      drain: `node:sqlite, WAL, synchronous ${synchronous}, delete and claim ${batch} in one transaction`,
    },
    factor: 1,
    bulk: { chunk: 1_000, inFlight: 1 },
    open: (target) => open(target, synchronous),
  };
}

export const systems: System[] = [
  raw("raw-sqlite-full", "raw SQL loop, SQLite FULL", "full"),
  raw("raw-sqlite-normal", "raw SQL loop, SQLite NORMAL", "normal"),
];

async function open(target: Target, synchronous: "full" | "normal"): Promise<Client> {
  const { DatabaseSync } = await import("node:sqlite");
  const database = new DatabaseSync(target.url, { timeout: 5_000 });
  database.exec(`
    pragma journal_mode = wal; pragma synchronous = ${synchronous};
    create table if not exists raw_job (id integer primary key, locked_at integer, payload text not null);
    create index if not exists raw_job_ready on raw_job (id) where locked_at is null`);
  const insert = database.prepare("insert into raw_job (payload) select value from json_each(?)");
  const claim = database.prepare(
    `update raw_job set locked_at = ? where id in (
       select id from raw_job where locked_at is null order by id limit ${batch}) returning id, payload`,
  );
  const finish = database.prepare("delete from raw_job where id in (select value from json_each(?))");
  const left = database.prepare("select exists (select 1 from raw_job) as left_over");
  const write = async (jobs: readonly Payload[]): Promise<void> => {
    insert.run(JSON.stringify(jobs.map((job) => JSON.stringify(job))));
  };
  return {
    add: (job) => write([job]),
    addMany: write,
    work: async (run) => {
      let stopping = false;
      const loop = async (): Promise<void> => {
        let done: unknown[] = [];
        while (!stopping) {
          database.exec("begin immediate");
          if (done.length > 0) finish.run(JSON.stringify(done));
          const rows = claim.all(Date.now());
          database.exec("commit");
          done = rows.map(({ id }) => id);
          for (const { payload } of rows) {
            const ran = run(JSON.parse(String(payload)) as Payload);
            if (ran !== undefined) await ran;
          }
          await new Promise((resolve) =>
            rows.length === 0 ? setTimeout(resolve, 5) : setImmediate(resolve),
          );
        }
      };
      const running = loop();
      orCrash(running);
      return async () => {
        stopping = true;
        await running;
      };
    },
    empty: async () => left.get()?.["left_over"] === 0,
    close: async () => database.close(),
  };
}
