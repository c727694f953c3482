/**
 * Partitions of `job`, `history` and `step`: made ahead of time, dropped whole when all their rows have expired.
 *
 * Ids are UUIDv7, so a range of ids is a span of time. A span is a day; with a retention of more than a month it is 7 days, with more than
 * seven months 30 days. A statement that names `job` locks all its partitions and their indexes: 365 days exhausted the lock table
 * (53200) of a server with stock settings. The catalogue's bounds say which span a partition has, so spans of several lengths can stand side
 * by side. A client that does not know the retention makes spans as long as the newest one.
 *
 * Rows without a partition (an id days ahead, a role that may not create tables) go to `_rest`, so that neither enqueue nor settle fails
 * for want of one. They are moved out when their span is made. A span with more rows than may be moved under a lock is left to `_rest`;
 * the next one gets its partition.
 *
 * Invariants: only the server's clock decides which spans are needed and which are over. Each partition is made, and each span
 * dropped, in a transaction of its own. A lock that is not free at once ends the round: everybody who names the table
 * queues up behind a lock that waits. 300 ms is less than `deadlock_timeout`, so it is never the others who are cancelled.
 */
import { WAITING_AT } from "../../jobs/job.ts";
import { idAt, idTime } from "../../values/id.ts";
import type { Connections, Prepared } from "./connections.ts";

const DAY_MS = 86_400_000;
const DAYS_AHEAD = 3;
/** Rows that are moved while a table is locked. */
const MOST_MOVED = 10_000;
/** Parents with the column that they are partitioned by. */
const PARENTS = { job: "id", history: "id", step: "job" } as const;
type Parent = keyof typeof PARENTS;

type Send = (statement: Prepared) => Promise<Record<string, unknown>[]>;

/** A partition and its bounds, in epoch milliseconds. */
export interface Span {
  readonly name: string;
  readonly from: number;
  readonly to: number;
}

function plain(text: string, values: readonly unknown[] = []): Prepared {
  return { text, name: "", values };
}

/** How long a span is where ended jobs are kept for `keepMs` (Infinity: for ever): at most about 35 partitions are kept at a time. */
export function spanMs(keepMs: number): number {
  if (keepMs <= 31 * DAY_MS) return DAY_MS;
  return keepMs <= 31 * 7 * DAY_MS ? 7 * DAY_MS : 30 * DAY_MS;
}

/** The spans that are missing between today and three days ahead. Pure. */
export function missingSpans(
  spans: readonly Omit<Span, "name">[],
  now: number,
  lengthMs: number,
): Omit<Span, "name">[] {
  const today = Math.floor(now / DAY_MS) * DAY_MS;
  const missing: Omit<Span, "name">[] = [];
  let at = today;
  while (at < today + (DAYS_AHEAD + 1) * DAY_MS) {
    const from = at;
    const there = spans.find((span) => span.from <= from && from < span.to);
    if (there === undefined) {
      // Rows of today may stand in the rest in great number: a span of its own, so that tomorrow has its partition in any case.
      const end = from === today ? today + DAY_MS : (Math.floor(from / lengthMs) + 1) * lengthMs;
      at = Math.min(end, ...spans.filter((span) => span.from > from).map((span) => span.from));
      missing.push({ from, to: at });
    } else at = there.to;
  }
  return missing;
}

interface Found {
  readonly now: number;
  readonly spans: Readonly<Record<Parent, readonly (Span & { readonly readable: boolean })[]>>;
}

/** The partitions as the catalogue has them, oldest first, and the server's time. */
async function findSpans(connections: Connections, schema: string, now: number | null): Promise<Found> {
  const rows = await connections.query(
    plain(
      `select coalesce($2::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) as now, p.relname as parent, c.relname as name,
         pg_get_expr(c.relpartbound, c.oid) as bounds, has_table_privilege(c.oid, 'select') as readable
       from pg_class p join pg_namespace n on n.oid = p.relnamespace join pg_inherits i on i.inhparent = p.oid join pg_class c on c.oid = i.inhrelid
       where n.nspname = $1 and p.relkind = 'p' and p.relname in ('job', 'history', 'step')`,
      [schema, now],
    ),
    "general",
  );
  const of = (parent: Parent) =>
    rows
      .filter((row) => row["parent"] === parent)
      .flatMap((row) => {
        const bounds = /FROM \('([0-9a-f-]{36})'\) TO \('([0-9a-f-]{36})'\)/.exec(String(row["bounds"]));
        if (bounds === null) return [];
        const [, from = "", to = ""] = bounds;
        return [
          {
            name: String(row["name"]),
            from: idTime(from),
            to: idTime(to),
            readable: row["readable"] === true,
          },
        ];
      })
      .sort((a, b) => a.from - b.from);
  return {
    now: Number(rows[0]?.["now"]),
    spans: { job: of("job"), history: of("history"), step: of("step") },
  };
}

export interface MadePartitions {
  /** Partitions of `job` that this role may read. */
  readonly jobs: readonly Span[];
  /** Why a partition is missing all the same. Null: none is, or another process holds the lock. */
  readonly failure: unknown;
}

/**
 * Makes the partitions that are missing. `keepMs`: how long ended jobs are kept at most; null: unknown to this client. Never throws
 * because one could not be made.
 */
export async function makePartitions(
  connections: Connections,
  schema: string,
  keepMs: number | null,
): Promise<MadePartitions> {
  const { now, spans } = await findSpans(connections, schema, null);
  const newest = spans.job.at(-1);
  const lengthMs = spanMs(keepMs ?? 31 * (newest === undefined ? DAY_MS : newest.to - newest.from));
  const made: Span[] = [];
  const make = async (parent: Parent, { from, to }: Omit<Span, "name">): Promise<void> => {
    const span = { name: `${parent}_${dateOf(from)}`, from, to };
    const done = await connections.transaction((send) => makePartition(send, schema, parent, span));
    if (done && parent === "job") made.push(span);
  };
  let failure: unknown = null;
  try {
    for (const span of missingSpans(spans.job, now, lengthMs)) await make("job", span);
    // The others have the spans of `job`: a span is dropped from all three at once.
    for (const span of [...spans.job, ...made].filter(({ to }) => to > now))
      for (const parent of ["history", "step"] as const)
        if (!spans[parent].some(({ from, to }) => from < span.to && span.from < to)) await make(parent, span);
  } catch (error) {
    if (!isLockTimeout(error)) failure = error;
  }
  return { jobs: [...spans.job.filter(({ readable }) => readable), ...made], failure };
}

function dateOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10).replaceAll("-", "");
}

function isLockTimeout(error: unknown): boolean {
  return (error as { code?: unknown } | null)?.code === "LOCK_TIMEOUT";
}

/** One process at a time makes or drops partitions. */
async function alone(send: Send, schema: string): Promise<void> {
  await send(plain("set local lock_timeout = '300ms'"));
  await send(
    plain("select pg_advisory_xact_lock(hashtextextended($1, 0::bigint))", [`holdfast.partitions.${schema}`]),
  );
}

async function exists(send: Send, table: string): Promise<boolean> {
  const [row] = await send(plain("select to_regclass($1) is not null as there", [table]));
  return row?.["there"] === true;
}

/** False: it is there already, or too many rows of its span stand in the rest. */
async function makePartition(send: Send, schema: string, parent: Parent, span: Span): Promise<boolean> {
  const q = (table: string) => `"${schema}"."${table}"`;
  const [from, to] = [idAt(span.from), idAt(span.to)];
  const rest = `${q(`${parent}_rest`)} where ${PARENTS[parent]} >= '${from}' and ${PARENTS[parent]} < '${to}'`;
  await alone(send, schema);
  if (await exists(send, q(span.name))) return false;
  // First, because a role that may not create tables shall not lock one.
  await send(
    plain(
      `create table ${q(span.name)} (like ${q(parent)} including defaults including constraints including storage)`,
    ),
  );
  // An insert that was on its way into the rest would be refused (23514) if its partition came under it: nobody may be on the way.
  await send(plain(`lock table only ${q(parent)} in access exclusive mode`));
  const [row] = await send(
    plain(`select count(*)::int as n from (select 1 from ${rest} limit ${MOST_MOVED + 1}) x`),
  );
  if (Number(row?.["n"]) > MOST_MOVED) {
    await send(plain(`drop table ${q(span.name)}`));
    return false;
  }
  await send(
    plain(`with moved as (delete from ${rest} returning *) insert into ${q(span.name)} select * from moved`),
  );
  await send(
    plain(
      `alter table ${q(parent)} attach partition ${q(span.name)} for values from ('${from}') to ('${to}')`,
    ),
  );
  return true;
}

/**
 * Deletes rows of `ready` that have no job and that no live session holds, and gives back what they were counted in (limits/limited-claim.ts). Only a span that was dropped under a retry left such rows, and their ids are older than the oldest
 * partition: few rows are looked at. Gives how many there were.
 */
export async function dropStrays(
  connections: Connections,
  schema: string,
  jobs: readonly Span[],
): Promise<number> {
  const oldest = jobs[0];
  if (oldest === undefined) return 0;
  const gone = await connections.query(
    plain(
      `with gone as (
         delete from "${schema}".ready r where r.id < $1::uuid
           and not exists (select 1 from "${schema}".session s where s.id = r.session and s.lease_until > (extract(epoch from statement_timestamp()) * 1000.0)::bigint)
           and not exists (select 1 from "${schema}".job j where j.id = r.id offset 0) returning r.id, r.job_type, r.lane, coalesce(r.counted, 0) as counted
       ),
       lanes as (
         insert into "${schema}".lane_wakeup (job_type, lanes, ats, backs)
         select job_type, array_agg(lane), array_agg(${WAITING_AT}::bigint), array_agg(n)
         from (select job_type, lane, count(*)::int as n from gone where lane is not null and counted & 1 = 1 group by job_type, lane) g group by job_type
       ),
       queues as (
         insert into "${schema}".returned_capacity (queue, n)
         select l.queue, count(*)::int from gone g join "${schema}".job_type l on l.id = g.job_type where g.counted & 2 = 2 group by l.queue
       )
       select id from gone`,
      [idAt(oldest.from)],
    ),
    "general",
  );
  return gone.length;
}

export interface DropPolicy {
  /** Null: the server's clock. */
  readonly now: number | null;
  /** 0 keeps for ever. */
  readonly doneMs: number;
  readonly deadMs: number;
  /** Queues with a retention of their own: their rows are never dropped with a span. */
  readonly exceptQueues: readonly string[];
}

export interface DroppedPartitions {
  readonly dropped: number;
  /** Spans that cannot be dropped, with the reason. */
  readonly failures: readonly { readonly partition: string; readonly error: unknown }[];
}

/**
 * Drops the spans that are over and whose jobs have expired. Ends at the first that somebody reads, because each would stall enqueues anew. Passes over one
 * that cannot be dropped (a view of the user's depends on it).
 */
export async function dropPartitions(
  connections: Connections,
  schema: string,
  policy: DropPolicy,
): Promise<DroppedPartitions> {
  const failures: { partition: string; error: unknown }[] = [];
  if (policy.doneMs === 0) return { dropped: 0, failures };
  const { now, spans } = await findSpans(connections, schema, policy.now);
  let dropped = 0;
  for (const span of spans.history) {
    if (span.to + policy.doneMs > now) break;
    if (!spans.job.some(({ from, to }) => from === span.from && to === span.to)) continue;
    try {
      if (await connections.transaction((send) => dropSpan(send, schema, span, { ...policy, now })))
        dropped += 1;
    } catch (error) {
      // The pruner deletes row by row what stays; the next round tries again.
      if (isLockTimeout(error)) break;
      failures.push({ partition: span.name, error });
    }
  }
  return { dropped, failures };
}

async function dropSpan(
  send: Send,
  schema: string,
  span: Span,
  policy: DropPolicy & { readonly now: number },
): Promise<boolean> {
  const q = (table: string) => `"${schema}"."${table}"`;
  const date = span.name.slice("history_".length);
  const [job, history, step] = [q(`job_${date}`), q(span.name), q(`step_${date}`)];
  const bounds = [idAt(span.from), idAt(span.to)];
  await alone(send, schema);
  if (!(await exists(send, job)) || !(await exists(send, history))) return false;
  // From here on no job of the span is retried, edited or deleted: a retry after the look below would lose its job.
  await send(plain(`lock table only ${history} in share mode`));
  // Rows that must be kept: jobs that have not ended, and ended ones whose own time is not yet over.
  await send(
    plain(
      `create temp table straggler on commit drop as
       select j.id from ${job} j left join ${history} h on h.id = j.id left join ${q("job_type")} l on l.id = j.job_type
       where h.id is null or l.queue = any($1::text[])
         or h.ended_at > $2::bigint - case when h.state = 'done' then $3::bigint else $4::bigint end
         or (h.state <> 'done' and $4::bigint = 0)
       limit ${MOST_MOVED + 1}`,
      [policy.exceptQueues, policy.now, policy.doneMs, policy.deadMs],
    ),
  );
  const [{ n } = { n: 0 }] = await send(plain("select count(*)::int as n from straggler"));
  if (Number(n) > MOST_MOVED) return false;
  // A unique key that is held for longer than its job is kept holds until then.
  for (const [table, column, more, values] of [
    ["dependency", "job", "", []],
    ["member", "id", "", []],
    ["unique_key", "id", " and (x.expires_at is null or x.expires_at <= $3::bigint)", [policy.now]],
  ] as const)
    await send(
      plain(
        `delete from ${q(table)} x where x.${column} >= $1::uuid and x.${column} < $2::uuid and x.${column} not in (select id from straggler)
           and not exists (select 1 from ${q("ready")} r where r.id = x.${column})${more}`,
        [...bounds, ...values],
      ),
    );
  const steps = await exists(send, step);
  await send(
    plain(
      `lock table only ${q("job")}, only ${q("history")}${steps ? `, only ${q("step")}` : ""} in access exclusive mode`,
    ),
  );
  // A job with an id of this span that was enqueued since the look above.
  await send(
    plain(
      `insert into straggler select r.id from ${q("ready")} r where r.id >= $1::uuid and r.id < $2::uuid and r.id not in (select id from straggler)`,
      bounds,
    ),
  );
  const parts: [Parent, string][] = [
    ["job", job],
    ["history", history],
    ...(steps ? [["step", step] as [Parent, string]] : []),
  ];
  for (const [parent, partition] of parts) {
    await send(plain(`alter table ${q(parent)} detach partition ${partition}`));
    await send(
      plain(
        `insert into ${q(parent)} select * from ${partition} where ${PARENTS[parent]} in (select id from straggler)`,
      ),
    );
    await send(plain(`drop table ${partition}`));
  }
  return true;
}
