/**
 * Days of `job` and `history` as partitions: made ahead of time, dropped whole when everything in them is outlived.
 *
 * Ids are UUIDv7, so a day is a range of ids. Rows for which there is no day (a clock far off, a role that may not
 * create tables, a fake clock) go to the `_rest` partition, so that neither enqueue nor settle ever fails for want of
 * one. A day may hold stragglers: jobs that still live, or dead ones that are kept longer. Few of them are carried over
 * to `_rest` in the transaction that drops the day; with many, the day stays and the pruner deletes row by row.
 */
import { idAt } from "../policy/id.ts";
import type { Connections, Prepared } from "./connections.ts";

const DAY_MS = 86_400_000;
const DAYS_AHEAD = 3;
const MOST_STRAGGLERS = 10_000;
const PARENTS = ["job", "history", "step"] as const;

type Send = (statement: Prepared) => Promise<Record<string, unknown>[]>;

function plain(text: string, values: readonly unknown[] = []): Prepared {
  return { text, name: "", values };
}

/** Any instant of the day will do. */
export function dayName(parent: string, dayMs: number): string {
  return `${parent}_${new Date(dayMs).toISOString().slice(0, 10).replaceAll("-", "")}`;
}

/** Makes today's and the next days' partitions where they are missing; gives the names of those that are there. A role that may not is left in peace. */
export async function makePartitions(
  connections: Connections,
  schema: string,
  now: number,
): Promise<string[]> {
  const today = Math.floor(now / DAY_MS) * DAY_MS;
  const days = Array.from({ length: DAYS_AHEAD + 1 }, (_, index) => today + index * DAY_MS);
  const wanted = days.flatMap((day) =>
    PARENTS.map((parent) => ({ parent, day, name: dayName(parent, day) })),
  );
  const rows = await connections.query(
    plain(
      "select c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = $1 and c.relname = any($2::text[])",
      [schema, wanted.map(({ name }) => name)],
    ),
    "general",
  );
  const present = new Set(rows.map((row) => String(row["relname"])));
  const missing = wanted.filter(({ name }) => !present.has(name));
  if (missing.length === 0) return [...present];
  try {
    await connections.transaction(async (send) => {
      await send(plain("set local lock_timeout = '2s'"));
      await send(
        plain("select pg_advisory_xact_lock(hashtextextended($1, 0))", [`holdfast.partitions.${schema}`]),
      );
      for (const { parent, day, name } of missing) {
        await send(
          plain(
            `create table if not exists "${schema}"."${name}" partition of "${schema}"."${parent}" for values from ('${idAt(day)}') to ('${idAt(day + DAY_MS)}')`,
          ),
        );
      }
    });
    return wanted.map(({ name }) => name);
  } catch {
    // Not allowed, or rows of that day are already in the rest: they stay there, which costs nothing but the drop.
    return [...present];
  }
}

export interface DropPolicy {
  readonly now: number;
  /** 0 keeps for ever. */
  readonly doneMs: number;
  readonly deadMs: number;
  /** Queues with a retention of their own: their rows are never dropped with a day. */
  readonly exceptQueues: readonly string[];
}

/** Drops the days that are over and outlived; answers how many. */
export async function dropPartitions(
  connections: Connections,
  schema: string,
  policy: DropPolicy,
): Promise<number> {
  if (policy.doneMs === 0) return 0;
  const rows = await connections.query(
    plain(
      "select c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = $1 and c.relname ~ '^history_[0-9]{8}$' order by 1",
      [schema],
    ),
    "general",
  );
  let dropped = 0;
  for (const row of rows) {
    const day = String(row["relname"]).slice("history_".length);
    const from = Date.UTC(Number(day.slice(0, 4)), Number(day.slice(4, 6)) - 1, Number(day.slice(6, 8)));
    if (from + DAY_MS + policy.doneMs > policy.now) break;
    try {
      if (await connections.transaction((send) => dropDay(send, schema, day, from, policy))) dropped += 1;
    } catch {
      // Locked by a long reader, or not ours to drop: the pruner deletes row by row, and tomorrow is another day.
    }
  }
  return dropped;
}

async function dropDay(
  send: Send,
  schema: string,
  day: string,
  from: number,
  policy: DropPolicy,
): Promise<boolean> {
  const q = (table: string) => `"${schema}"."${table}"`;
  const job = q(`job_${day}`);
  const history = q(`history_${day}`);
  const step = q(`step_${day}`);
  await send(plain("set local lock_timeout = '2s'"));
  const [{ bounds } = { bounds: null }] = await send(
    plain("select to_regclass($1) is not null as bounds", [job]),
  );
  if (bounds !== true) return false;
  // What must outlive the day: jobs that have not ended, and ended ones whose own time is not yet over.
  await send(
    plain(
      `create temp table straggler on commit drop as
       select j.id from ${job} j left join ${history} h on h.id = j.id left join ${q("line")} l on l.id = j.line
       where h.id is null or l.queue = any($1::text[])
         or h.ended_at > $2::bigint - case when h.state = 'done' then $3::bigint else $4::bigint end
         or (h.state <> 'done' and $4::bigint = 0)
       limit ${MOST_STRAGGLERS + 1}`,
      [policy.exceptQueues, policy.now, policy.doneMs, policy.deadMs],
    ),
  );
  const [{ n } = { n: 0 }] = await send(plain("select count(*)::int as n from straggler"));
  if (Number(n) > MOST_STRAGGLERS) return false;
  await send(plain(`alter table ${q("job")} detach partition ${job}`));
  await send(plain(`alter table ${q("history")} detach partition ${history}`));
  await send(plain(`insert into ${q("job")} select * from ${job} where id in (select id from straggler)`));
  await send(
    plain(`insert into ${q("history")} select * from ${history} where id in (select id from straggler)`),
  );
  // Steps, dependencies and their places in batches go with their job, and stay with it.
  const [{ steps } = { steps: false }] = await send(
    plain("select to_regclass($1) is not null as steps", [step]),
  );
  if (steps === true) {
    await send(plain(`alter table ${q("step")} detach partition ${step}`));
    await send(
      plain(`insert into ${q("step")} select * from ${step} where job in (select id from straggler)`),
    );
    await send(plain(`drop table ${step}`));
  }
  await send(
    plain(
      `delete from ${q("dependency")} where job >= $1::uuid and job < $2::uuid and job not in (select id from straggler)`,
      [idAt(from), idAt(from + DAY_MS)],
    ),
  );
  await send(
    plain(
      `delete from ${q("member")} where id >= $1::uuid and id < $2::uuid and id not in (select id from straggler)`,
      [idAt(from), idAt(from + DAY_MS)],
    ),
  );
  await send(plain(`drop table ${job}, ${history}`));
  return true;
}
