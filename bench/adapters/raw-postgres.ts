/**
 * The limit on Postgres: a bare loop of batched SQL with the same driver. A claim is an update (so that a crash
 * loses nothing), the end a delete: no retries, schedules, wake-ups, leases or history. Not a queue.
 *
 * 4 connections, batches of 500, prepared statements (the fastest that keeps two writes per job).
 */
import pg from "pg";
import type { Client, Payload, System, Target } from "../adapter.ts";
import { orCrash, silent } from "../adapter.ts";

const connections = 4;
const batch = 500;
const claim = {
  name: "claim",
  text: `update raw_job set locked_at = now() where id = any(array(
           select id from raw_job where locked_at is null order by id limit ${batch} for update skip locked))
         returning id, payload`,
};
const finish = { name: "finish", text: "delete from raw_job where id = any($1::bigint[])" };
const insert = { name: "insert", text: "insert into raw_job (payload) select unnest($1::text[])" };

export const systems: System[] = [
  {
    id: "raw-postgres",
    title: "raw SQL loop, Postgres",
    store: "postgres",
    role: "limit",
    packages: ["pg"],
    settings: {
      drain: `update-claim then delete, batches of ${batch}, ${connections} connections, prepared`,
    },
    factor: 1,
    bulk: { chunk: 5_000, inFlight: 4 },
    can: ["many processes"],
    setup: async (target) => {
      const client = new pg.Client({ connectionString: target.url });
      await client.connect();
      await client.query(`
        create table raw_job (id bigint generated always as identity primary key, locked_at timestamptz, payload text not null);
        create index raw_job_ready on raw_job (id) where locked_at is null`);
      await client.end();
    },
    open,
  },
];

async function open(target: Target): Promise<Client> {
  const pool = new pg.Pool({ connectionString: target.url, max: 10 });
  pool.on("error", silent);
  const write = (jobs: readonly Payload[]): Promise<unknown> =>
    pool.query({ ...insert, values: [jobs.map((job) => JSON.stringify(job))] });
  return {
    add: (job) => write([job]),
    addMany: write,
    work: async (run) => {
      const clients = await Promise.all(Array.from({ length: connections }, () => pool.connect()));
      let stopping = false;
      const loops = clients.map(async (client) => {
        while (!stopping) {
          const { rows } = await client.query<{ id: string; payload: string }>(claim);
          if (rows.length === 0) {
            await new Promise((resolve) => setTimeout(resolve, 5));
            continue;
          }
          for (const { payload } of rows) {
            const running = run(JSON.parse(payload) as Payload);
            if (running !== undefined) await running;
          }
          await client.query({ ...finish, values: [rows.map(({ id }) => id)] });
        }
        client.release();
      });
      const running = Promise.all(loops);
      orCrash(running);
      return async () => {
        stopping = true;
        await running;
      };
    },
    empty: async () => {
      const { rows } = await pool.query<{ left: boolean }>("select exists (select from raw_job) as left");
      return rows[0]?.left === false;
    },
    close: () => pool.end(),
  };
}
