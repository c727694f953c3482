/**
 * The catalogue for Postgres. Read it beside storage/sqlite/statements/jobs.ts: same names, same order, same parameters.
 *
 * What is Postgres's own here, and why:
 *  - `for update skip locked` lets claimers pass each other; the shares are counted first (`share`), so that the order
 *    over several kinds of one queue is exact and no row is locked that is not taken.
 *  - The claim is a HOT update: no column that it changes is in an index (fillfactor 42 leaves room on the page).
 *  - `ctid = any(array(...))` and `id = any(...)` cannot be planned as a join, so stale statistics cannot hurt them.
 *  - `id between` the least and the greatest id of a batch prunes the partitions of `job` once for each statement.
 *  - Instants are bigint milliseconds; `statement_timestamp()` because a volatile clock could not be an index condition.
 */
import { conditions, type Given, RESENT_MS, type Statements, type Tables } from "../../catalogue.ts";
import { WAITING_AT } from "../../../jobs/job.ts";
import { MOST_COUNTED } from "../../../jobs/job-bounds.ts";
import { CANCEL, PAUSE } from "../../../lease/request-rows.ts";
import { noMachineUnlessNamed, plainUnlessNamed } from "../../../lease/plain-jobs.ts";
import { rest, answerBatches } from "../claim-answer.ts";
import { limitStatements } from "./limits.ts";
import { batchStatements } from "./batches.ts";
import { workflowStatements, unheard } from "./workflows.ts";
import { insightStatements } from "./browse.ts";
import { ROOM_TO_NOTIFY } from "../listen.ts";
import { failureStatements } from "./failures.ts";

const NOW = `coalesce(:now::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)`;
/** No rank of a job is before the first or after the last. */
const FIRST_RANK = "-2147483649::bigint";
const LAST_RANK = "2147483649::bigint";
const BEFORE_ALL = "'-9223372036854775808'::bigint";
/**
 * A claim or a look finds about so many levels one by one (20 µs each), but some of each job type. It reads the levels behind them in order
 * from the index, entry by entry, without the rows of jobs that are not due: 400,000 priorities of delayed jobs held up all others.
 */
const mostProbed = (jobTypes: string) => `greatest(20, 1000 / ${jobTypes})`;
const NO_ID = "00000000-0000-0000-0000-000000000000";
/** Computed once and not for each row: its arithmetic is decimal, and a batch has a thousand rows. */
const NOW_ONCE = `(select ${NOW})`;

/** A row that has reached the end of its column (only by hand) must not break the claim for all others. */
const NEXT_ATTEMPT = `least(r.attempt + 1, ${MOST_COUNTED})`;

/** `recent`: the table in which a claim looks for its jobs, `job` or one day of it (storage/postgres/recent.ts). */
export function statements(t: Tables, recent: string = t.job): Statements {
  /**
   * A queue from which may be claimed now. One with limits is claimed from by limits.ts alone. The names in it are its own: `q` here would be
   * taken for the `q` of whoever asks about `q.name`, and any queue that is paused would stop them all.
   */
  const stopped = (queue: string, more: string) => `
      not exists (select 1 from ${t.queue} stop where stop.name = ${queue} and (stop.paused_at is not null or stop.cool_until > ${NOW}${more}))
      and not exists (select 1 from ${t.hold} held where held.queues is null or ${queue} = any(held.queues))`;
  const open = (queue: string) => stopped(queue, " or stop.limited");
  const unstopped = (queue: string) => stopped(queue, "");
  /** True, and told to the channel, if one is named. */
  const told = `(select case when :channel::text is null then true when ${ROOM_TO_NOTIFY} then pg_notify(:channel::text, :message::text)::text is not null else true end)`;
  const alive = `exists (select 1 from ${t.session} s where s.id = :session::bigint and s.lease_until > ${NOW})`;
  /** The other half of the fence beside the token: tokens repeat after a failover to a replica that lagged, sessions never do. */
  const own = (row: string) => `${row}.session = :session::bigint and ${alive}`;
  const orphaned = (row: string) =>
    `not exists (select 1 from ${t.session} s where s.id = ${row}.session and s.lease_until > ${NOW})`;
  // A transaction of a user's (ctx.commit) may have locked the row of one orphan; the others must not wait for it.
  const untouched = (row: string) =>
    row === "r"
      ? `${orphaned(row)} and r.id = any(array(select w.id from ${t.ready} w where w.id = any(:rows.id::uuid[]) order by w.id for update skip locked))`
      : orphaned(row);

  // `(select …)` around a parameter hides it, or an array's length, from the planner. Knowing them, it finds a plan for these very values
  // cheaper than the one for all, and plans each claim anew: 2 ms, a quarter of a claim of 600.
  const hidden = (param: string) => `(select ${param})`;
  const names = hidden(":names::text[]");
  const direction = hidden(":direction::bigint");
  /** The job types in scope, each with its group (whose limit it shares), that limit, and the edge (jobs/plain-claim.ts). */
  const scope = `
    scope as materialized (
      select l.id as job_type, l.queue, q.grp, q.n, q.edge
      from unnest(${hidden(":queues.queue::text[]")}, ${hidden(":queues.group::text[]")}, ${hidden(":queues.limit::int[]")}, ${hidden(":queues.edge::bigint[]")})
        as q (queue, grp, n, edge)
      join ${t.job_type} l on q.queue is null or l.queue = q.queue
      where not l.laned and (${names} is null or l.name = any(${names}::text[]))
        and ${noMachineUnlessNamed(t, "l", names)} and ${open("l.queue")}
    )`;
  /** Every (job type, rank) that has rows, found by skipping through the index: one probe for each level. */
  const levels = `
    level_of (job_type, rank) as (
      select s.job_type, (select r.rank from ${t.ready} r where r.job_type = s.job_type order by r.rank limit 1) from scope s
      union all
      select l.job_type, (select r.rank from ${t.ready} r where r.job_type = l.job_type and r.rank > l.rank order by r.rank limit 1)
      from level_of l where l.rank is not null
    )`;
  /** Levels that the caller has claimed from, and where each begins for it. `d` is a rank in claim order, here and below. */
  const known = `
    known as materialized (
      select k.job_type, k.rank, k.rank * ${direction} as d, k.from_at, k.from_id
      from unnest(${hidden(":levels.jobType::int[]")}, ${hidden(":levels.rank::int[]")}, ${hidden(":levels.runAt::bigint[]")}, ${hidden(":levels.rowKey::uuid[]")})
        as k (job_type, rank, from_at, from_id)
    )`;
  /** The first known level behind a rank, of some job types; `last` is behind them all, so that most ranks ask for none. */
  const knownAfter = (of: string, after: string, last: string) =>
    `case when ${after} < ${last} then (select min(k.d) from known k where ${of} and k.d > ${after}) end`;
  /** The next rank of a job type in the index; not beyond the next known one, whose entries before its beginning are left alone. */
  const probe = (jobType: string, after: string, last: string) => `(
        select least(b.d, case when ${direction} > 0
          then (select r.rank from ${t.ready} r where r.job_type = ${jobType} and r.rank > ${after} and r.rank < b.d order by r.rank limit 1)
          else (select -r.rank::bigint from ${t.ready} r where r.job_type = ${jobType} and r.rank < -(${after}) and r.rank > -b.d order by r.rank desc limit 1) end)
        from (select coalesce(${knownAfter(`k.job_type = ${jobType}`, after, last)}, ${LAST_RANK}) as d) b)`;
  /**
   * The ranks of a group in claim order, each found when it is asked for: a claim that is full has looked at no more than it took.
   * Before the edge only known levels are looked at; from there on every one that the index has.
   */
  const ranks = (behind: (after: string) => string) => {
    const next = (after: string) => `least(${knownAfter("k.job_type = any(g.job_types)", after, "g.last")},
            case when ${after} < g.edge then g.edge else ${behind(after)} end)`;
    return `rank_of (d, n) as (
          select ${next(FIRST_RANK)}, 1
          union all
          select ${next("w.d")}, w.n + 1 from rank_of w where w.d < ${LAST_RANK} and w.n < g.probes
        )`;
  };
  const checkProbes = `(select ${mostProbed("greatest(count(*), 1)")} from scope)`;
  /** Due jobs of the levels behind the last that `ranks` found, if there may be more; `r` is a row of `ready`. */
  const behindRanks = (jobType: string, columns: string, more: string) => {
    const read = (rotation: string, beyond: string, order: string) => `
            select ${columns} from ${t.ready} r
            where ${direction} ${rotation} 0 and r.job_type = ${jobType} and r.rank ${beyond} and r.token is null and r.run_at <= ${NOW}
              and ${plainUnlessNamed(t, "r", "id", names)}
            order by r.rank${order}, r.run_at, r.id ${more}`;
    return `(select * from (${read(">", "> w.d", "")}) up union all select * from (${read("<", "< -w.d", " desc")}) down)`;
  };
  const probedOut = (most: string) => `w.n = ${most} and w.d < ${LAST_RANK}`;
  /**
   * When the first jobs of the job types in `scope` are due, levels in claim order. Where a job is due now, the levels behind it need not be
   * looked at. A range in place of `rank =`, and a case around `is null`: on a table that was never analyzed Postgres expects two rows of
   * a rank and 1 in 200 of them unclaimed, and would fetch and sort the whole level (20,300 rows read; this way 2).
   */
  const heads = `
      level_of (job_type, d, n) as (
        select s.job_type, ${probe("s.job_type", FIRST_RANK, LAST_RANK)}, 1 from scope s
        union all
        select w.job_type, ${probe("w.job_type", "w.d", LAST_RANK)}, w.n + 1 from level_of w where w.d < ${LAST_RANK} and w.n < ${checkProbes}
      ),
      head (job_type, run_at) as (
        select w.job_type, h.run_at from level_of w
        left join lateral (select * from known k where k.job_type = w.job_type and k.d = w.d offset 0) k on true
        cross join lateral (
          select r.run_at from ${t.ready} r
          where r.job_type = w.job_type and r.rank <= w.d * ${direction}
            and (r.rank, r.run_at, r.id) > (w.d * ${direction}, coalesce(k.from_at, ${BEFORE_ALL}), coalesce(k.from_id, '${NO_ID}'::uuid))
            and case when r.token is null then true end
          order by r.rank, r.run_at, r.id limit 1
        ) h
        where w.d < ${LAST_RANK} and h.run_at < ${WAITING_AT}
        union all
        select w.job_type, h.run_at from level_of w cross join lateral ${behindRanks("w.job_type", "r.run_at", "limit 1")} h where ${probedOut(checkProbes)}
        union all
        -- What is not due is not claimed: its row need not be looked at.
        select w.job_type, h.run_at from level_of w cross join lateral (
          select min(r.run_at) as run_at from ${t.ready} r
          where r.job_type = w.job_type and r.run_at > ${NOW} and r.run_at < ${WAITING_AT}
            and r.rank > case when ${direction} > 0 then w.d else ${FIRST_RANK} end
            and r.rank < case when ${direction} > 0 then ${LAST_RANK} else -w.d end
        ) h where ${probedOut(checkProbes)} and h.run_at is not null
      )`;
  /** A group's levels of one rank. */
  const levelsOfRank = (jobTypes: string) => `(
          select l.job_type, w.d * ${direction} as rank, coalesce(k.from_at, ${BEFORE_ALL}) as from_at, coalesce(k.from_id, '${NO_ID}'::uuid) as from_id
          from ${jobTypes} left join lateral (select * from known k where w.d <= g.last and k.job_type = l.job_type and k.d = w.d offset 0) k on true
          where w.d < ${LAST_RANK} and (k.job_type is not null or w.d >= g.edge)
        ) p`;
  const claimable = (level: string) => `
        r.job_type = ${level}.job_type and r.rank = ${level}.rank and r.token is null and r.run_at <= ${NOW}
        and (r.run_at, r.id) > (${level}.from_at, ${level}.from_id) and ${plainUnlessNamed(t, "r", "id", names)}
        order by r.run_at, r.id`;
  /** Marks the rows as taken, files them under one token, and answers with the jobs. */
  const mark = (rows: string) => `taken as (
      update ${t.ready} r
      set token = (select nextval('${t.token}'::regclass)), session = :session::bigint, attempt = ${NEXT_ATTEMPT}, started_at = ${NOW_ONCE}
      where r.ctid = any(array(${rows}))
      returning r.id, r.job_type, r.rank, r.run_at, r.token, r.attempt, r.crashes, r.begun, r.undoing, r.started_at, r.errors
    ),
    filed as (
      insert into ${t.claim} (token, session, ids)
      select token, :session::bigint, array_agg(id) from taken group by token
    )
    ${answerBatches(recent)}`;
  /**
   * A claim of the job types in `scope`, as many jobs of each group as it asks for: `mark` says what becomes of the rows. Counting shares costs a
   * sort of the candidates (2 µs a job); a single job type has nothing to share. What others have locked is stepped over there; shares are
   * counted with it.
   */
  const walk = (jobTypes: string, marked: (rows: string) => string) => `
    with recursive ${jobTypes},${known},
    grp as materialized (
      select s.grp, s.n, min(s.edge) as edge, array_agg(s.job_type) as job_types, ${mostProbed("count(*)")} as probes, (select coalesce(max(d), ${FIRST_RANK}) from known) as last
      from scope s where ${alive} group by s.grp, s.n
    ),
    share as materialized (
      select x.job_type, x.rank, x.from_at, x.from_id, count(*)::int as n from grp g cross join lateral (
        with recursive ${ranks((after) => `(select min(${probe("l.job_type", after, "g.last")}) from unnest(g.job_types) as l (job_type))`)}
        select m.* from rank_of w cross join lateral (
          select p.job_type, p.rank, p.from_at, p.from_id from ${levelsOfRank("unnest(g.job_types) as l (job_type)")} cross join lateral (
            select r.run_at, r.id from ${t.ready} r where ${claimable("p")} limit g.n
          ) h
          order by h.run_at, h.id limit g.n
        ) m
        union all
        select * from (
          select l.job_type, h.rank, ${BEFORE_ALL}, '${NO_ID}'::uuid from rank_of w cross join unnest(g.job_types) as l (job_type)
          cross join lateral ${behindRanks("l.job_type", "r.rank, r.run_at, r.id", "limit g.n")} h
          where ${probedOut("g.probes")} order by h.rank * ${direction}, h.run_at, h.id limit g.n
        ) b
        limit g.n
      ) x
      where cardinality(g.job_types) > 1 group by x.job_type, x.rank, x.from_at, x.from_id
    ),
    ${marked(`
        select c.tid from grp g cross join lateral (
          with recursive ${ranks((after) => probe("g.job_types[1]", after, "g.last"))}
          select h.tid from rank_of w cross join lateral ${levelsOfRank("(select g.job_types[1] as job_type) l")} cross join lateral (
            select r.ctid as tid from ${t.ready} r where ${claimable("p")} limit g.n for update skip locked
          ) h
          union all
          select h.tid from rank_of w cross join lateral ${behindRanks("g.job_types[1]", "r.ctid as tid", "limit g.n for update skip locked")} h
          where ${probedOut("g.probes")}
          limit g.n
        ) c
        where cardinality(g.job_types) = 1
        union all
        select c.tid from share s cross join lateral (
          select r.ctid as tid from ${t.ready} r where ${claimable("s")} limit s.n for update skip locked
        ) c`)}`;

  // A spent claim is forgotten under the fence too: one whose session has died is what its orphans are found by.
  const moved = `
    t as materialized (
      select * from unnest(:rows.id::uuid[], :rows.token::bigint[], :rows.state::text[], :rows.output::text[], :rows.errors::text[],
        :rows.failureGroup::text[], :rows.attempt::int[], :rows.crashes::int[], :rows.keep::bool[])
        as t (id, token, state, output, errors, failure_group, attempt, crashes, keep)
    )`;
  /**
   * Deletes jobs. One whose enqueue may still be sent again leaves its id for an hour: an empty row (`emptied`), which no insert gets past,
   * however late it reaches the server, and a note of when that row may go (`deleteExpiredIds`). A check inside the insert would cost each
   * enqueue 16 µs, and would have to see what was committed since the insert began.
   */
  const deleted = (ids: string) => `deleted as (
      delete from ${t.job} where id = any(${ids}) and created_at <= ${NOW_ONCE} - ${RESENT_MS}
    ),
    emptied as (
      update ${t.job} set input = 'null', context = null, extras = null, key = null, lane = null, parent_id = null
      where id = any(${ids}) and created_at > ${NOW_ONCE} - ${RESENT_MS} returning id, created_at
    ),
    noted as (
      insert into ${t.used_id} (id, at) select id, created_at from emptied on conflict do nothing)`;
  /** Whether there is such a job: a deleted one leaves its empty row for an hour. */
  const exists = (id: string) =>
    `(exists (select 1 from ${t.ready} r where r.id = ${id}) or exists (select 1 from ${t.history} h where h.id = ${id}))`;
  /**
   * The job type of the row `n`. Null, which the column refuses, where the database lacks the type or the lane: this process remembers
   * their numbers, and a replica that lagged was promoted (`isStaleType`).
   */
  const numbers = `(select l.id from ${t.job_type} l where l.id = n.job_type
          and (n.lane_id is null or (select a.queue = l.queue and a.key = n.lane from ${t.lane} a
            where a.id >= n.lane_id and a.id <= n.lane_id order by a.id desc limit 1)))`;
  /** What follows once rows are gone from `ready`: history, unique keys, spent claims. */
  const file = `
    kept as (
      insert into ${t.history} (id, job_type, rank, state, attempt, crashes, throttles, run_at, started_at, ended_at, session, output, errors, progress, failure_group)
      select id, job_type, rank, state, attempt, crashes, throttles, run_at, started_at, ${NOW_ONCE}, session, output, errors, progress, failure_group from gone where keep
    ),
    ${deleted("array(select id from gone where not keep)")},
    unstepped as (delete from ${t.step} where job = any(array(select id from gone where not keep))),
    undepended as (delete from ${t.dependency} where job = any(array(select id from gone where not keep))),
    unbatched as (delete from ${t.member} where id = any(array(select id from gone where not keep))),
    freed as (
      delete from ${t.unique_key} u where u.id = any(:keyed::uuid[]) and u.id = any(array(select id from gone))
        and (u.expires_at is null or u.expires_at <= ${NOW})
    )`;
  // What somebody waits for is kept, or a death before they are told would make a success an end that nobody knows.
  const end = (fence: (row: string) => string) => `
    with ${moved},
    gone as (
      delete from ${t.ready} r using t
      where r.id = any(:rows.id::uuid[]) and r.id = t.id and r.token = t.token and ${fence("r")}
      returning r.id, r.job_type, r.rank, r.throttles, r.run_at, r.started_at, r.session, r.progress,
        r.watched, t.state, t.output, t.errors, t.failure_group, t.attempt, t.crashes, t.keep or r.watched as keep
    ),${file},
    spent as (delete from ${t.claim} c where c.token = any(:spent::bigint[]) and ${fence("c")})
    select id, watched from gone`;
  // What somebody has a request for is out of everybody's reach until that is granted (lease/request-rows.ts). A job that its holder
  // gave back by choice has left a cancel behind.
  const asked = `(r.request = ${PAUSE} or (r.request = ${CANCEL} and t.cancellable))`;
  /** Of an edited row: null leaves its time as it is. An instant in the past is now. */
  const newTime = `case when coalesce(n.run_at, n.delay) is not null then greatest(${NOW}, coalesce(n.run_at, ${NOW} + n.delay)) end`;
  const dueAgain = `case when t.keeps then least(r.run_at, ${NOW}) else ${NOW} + t.delay end`;
  const again = (fence: (row: string) => string) => `
    with t as materialized (
      select * from unnest(:rows.id::uuid[], :rows.token::bigint[], :rows.delay::bigint[], :rows.errors::text[], :rows.failureGroup::text[],
        :rows.attempt::int[], :rows.crashes::int[], :rows.throttled::int[], :rows.begun::bool[], :rows.note::text[], :rows.cancellable::bool[], :rows.keeps::bool[])
        as t (id, token, delay, errors, failure_group, attempt, crashes, throttled, begun, note, cancellable, keeps)
    ),
    spent as (delete from ${t.claim} c where c.token = any(:spent::bigint[]) and ${fence("c")})
    update ${t.ready} r
    set token = null, session = null, attempt = t.attempt, crashes = t.crashes,
        run_at = case when ${asked} then ${WAITING_AT} else ${dueAgain} end, due_at = case when ${asked} then ${dueAgain} end,
        errors = t.errors, failure_group = coalesce(t.failure_group, r.failure_group), throttles = least(r.throttles + t.throttled, ${MOST_COUNTED}), begun = r.begun or t.begun,
        note = t.note, counted = null, waits = case when ${asked} then 'resume' end, request = null
    from t where r.id = any(:rows.id::uuid[]) and r.id = t.id and r.token = t.token and ${fence("r")}
    returning r.id, r.waits is not null as asked`;

  // Each by its id, behind a fence: on tables that were never analyzed Postgres read all of `ready` for them.
  /**
   * Claimed jobs with who holds them. A session that was closed before its lease passed was closed by its own holder, and held nothing
   * then: a claim of it came later, and no process has heard of it (lease/reaper.ts).
   */
  const held = `
      select r.id, r.token, r.session, r.rank, r.run_at, r.attempt, r.started_at, r.job_type, r.lane as lane_id, r.counted, c.rates,
        j.input, j.max_attempts, j.lane, ${rest("r")}, l.queue, l.name, x.reason as cancel_reason, s.lease_until,
        coalesce(s.closed_at < s.beat_at + s.lease_ms, false) as unheard, exists (select 1 from ${t.step} e where e.job = r.id) as stepped
      from ${t.claim} c
      left join ${t.session} s on s.id = c.session
      cross join lateral unnest(c.ids) as o (id)
      cross join lateral (select * from ${t.ready} k where k.id = o.id and k.token = c.token offset 0) r
      cross join lateral (select * from ${t.job} k where k.id = r.id offset 0) j
      join ${t.job_type} l on l.id = r.job_type
      left join ${t.cancel} x on x.id = r.id and x.token = r.token and not x.pause`;

  /** Live and ended jobs under one set of columns. */
  const state = `case when r.token is not null then 'running' when r.run_at >= ${WAITING_AT} then 'waiting'
        when r.run_at > ${NOW} then case when r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end`;
  const jobColumns = `j.input, j.created_at, j.max_attempts, j.key, j.lane, j.context, j.parent_id, j.extras, l.queue, l.name`;
  /** Where a machine stands. */
  const atStep = (row: string) =>
    `(select m.label from ${t.step} m where m.job = ${row}.id and m.name = '$machine')`;
  const every = (row: string, table: string) => `${table} ${row} join ${t.job} j on j.id = ${row}.id`;
  // What a run called or enqueued: first by the index of parents, then each by its id, behind fences. As a plain condition it
  // could become a walk over every job, newest first, for the sake of a limit.
  const children = (
    row: string,
    table: string,
  ) => `(select p.id from ${t.job} p where p.parent_id = :workflow::uuid offset 0) c
        cross join lateral (select * from ${table} k where k.id = c.id offset 0) ${row}
        cross join lateral (select * from ${t.job} k where k.id = c.id offset 0) j`;
  const members = (
    row: string,
    table: string,
  ) => `(select p.id from ${t.member} p where p.batch = :batch::uuid offset 0) c
        cross join lateral (select * from ${table} k where k.id = c.id offset 0) ${row}
        cross join lateral (select * from ${t.job} k where k.id = c.id offset 0) j`;
  const liveAmong = (from: string, more = "") => `
      select ${more}r.id, r.rank, r.attempt, r.crashes, r.run_at, r.started_at, null::bigint as ended_at, r.errors, r.progress, null::text as output,
        s.lease_until, s.worker_id, ${state} as state, r.waits, ${jobColumns}, ${atStep("r")} as step
      from ${from} join ${t.job_type} l on l.id = r.job_type left join ${t.session} s on s.id = r.session`;
  const endedAmong = (from: string, more = "") => `
      select ${more}h.id, h.rank, h.attempt, h.crashes, h.run_at, h.started_at, h.ended_at, h.errors, h.progress, h.output,
        null::bigint as lease_until, s.worker_id, h.state, null::text as waits, ${jobColumns}, ${atStep("h")} as step
      from ${from} join ${t.job_type} l on l.id = h.job_type left join ${t.session} s on s.id = h.session`;
  const live = liveAmong(every("r", t.ready));
  const ended = endedAmong(every("h", t.history));
  const matches = (given: Given, row: string, stateOf: string) =>
    conditions(given, {
      ids: `${row}.id = any(:ids::uuid[])`,
      states: `${stateOf} = any(:states::text[])`,
      queues: `l.queue = any(:queues::text[])`,
      names: `l.name = any(:names::text[])`,
      lane: `j.lane = :lane::text`,
      key: `j.key = :key::text`,
      workflow: `j.parent_id = :workflow::uuid`,
      since: `j.created_at >= :since::bigint`,
      until: `j.created_at < :until::bigint`,
      trace: `j.extras like :trace::text`,
      search: `(strpos(lower(j.input collate "C"), :search::text) > 0
            or strpos(lower(j.context collate "C"), :search::text) > 0 or strpos(lower(${row}.errors collate "C"), :search::text) > 0)`,
    });
  const fromCursor = (given: Given, condition: string) => conditions(given, { cursor: condition });

  type Among = typeof every;
  const list = (among: Among) => (given: Given) =>
    `
      select * from (
        (${liveAmong(among("r", t.ready))} where ${matches(given, "r", state)} and ${fromCursor(given, "r.id < :cursor::uuid")} order by r.id desc limit :limit::int)
        union all
        (${endedAmong(among("h", t.history))} where ${matches(given, "h", "h.state")} and ${fromCursor(given, "h.id < :cursor::uuid")} order by h.id desc limit :limit::int)
      ) page order by id desc limit :limit::int`;
  const ids = (among: Among) => (given: Given) =>
    `
      select id from (
        (select r.id from ${among("r", t.ready)} join ${t.job_type} l on l.id = r.job_type
          where ${matches(given, "r", state)} and ${fromCursor(given, "r.id > :cursor::uuid")} order by r.id limit :limit::int)
        union all
        (select h.id from ${among("h", t.history)} join ${t.job_type} l on l.id = h.job_type
          where ${matches(given, "h", "h.state")} and ${fromCursor(given, "h.id > :cursor::uuid")} order by h.id limit :limit::int)
      ) page order by id limit :limit::int`;
  const count = (among: Among) => (given: Given) =>
    `
      select
        (select count(*) from ${among("r", t.ready)} join ${t.job_type} l on l.id = r.job_type where ${matches(given, "r", state)})
        + (select count(*) from ${among("h", t.history)} join ${t.job_type} l on l.id = h.job_type where ${matches(given, "h", "h.state")})
        as count`;

  /** What decides whether a job may be put elsewhere. */
  const editable = `
      select r.id, r.token, r.waits, r.begun, j.deadline_at, j.key, j.lane, j.extras, l.queue, l.name, ${NOW} as now
      from ${t.ready} r join ${t.job} j on j.id = r.id join ${t.job_type} l on l.id = r.job_type
      where r.id = any(:ids::uuid[]) order by r.id`;
  const scheduleColumns = `name, spec, edits, next_at, waiting_at, anchor_at, created_at, paused_at, fault, last_run_at, last_job_id, jobs, recent, fired, skipped, missed`;
  /** Failures are bounded: 500 jobs with long stacks would be 32 MB. */
  const shortErrors = (row: string) =>
    `case when octet_length(${row}.errors) <= 16384 then ${row}.errors end as errors`;
  const budgetColumns = `name, amount, per_ms, burst, tuned, standard, tokens, filled_at, chunks`;
  const passColumns = `name, clean, holder, held_until, runs, started_at, ended_at, reason`;
  /** What a worker counts only grows: by this, an older count that comes late is told from a newer one. */
  const sum = (row: string) =>
    ["done", "failed", "dead", "cancelled", "throttled", "released", "lost"]
      .map((of) => `${row}.${of}`)
      .join(" + ");

  return {
    addJobTypes: `
      insert into ${t.job_type} (queue, name, laned)
      select * from unnest(:rows.queue::text[], :rows.name::text[], :rows.laned::bool[]) order by 1, 2, 3
      on conflict do nothing`,
    findJobTypes: `
      select l.id, l.queue, l.name, l.laned from unnest(:rows.queue::text[], :rows.name::text[], :rows.laned::bool[]) as w (queue, name, laned)
      join ${t.job_type} l on l.queue = w.queue and l.name = w.name and l.laned = w.laned`,
    jobTypesById: `select id, queue, name, laned from ${t.job_type} where id = any(:ids::int[])`,
    // Plain jobs whose ids nobody has seen and that differ in nothing but their input: what a busy client sends most.
    insertAlike: `
      with added as (
        insert into ${t.job} (id, job_type, created_at, input, max_attempts, timeout_ms)
        select id, (select l.id from ${t.job_type} l where l.id = :jobType::int), ${NOW_ONCE}, input, :maxAttempts::int, :timeout::bigint
        from (select unnest(:rows.id::uuid[]) as id, unnest(:rows.input::text[]) as input) n
      )
      insert into ${t.ready} (id, job_type, rank, run_at)
      select id, :jobType::int, :rank::int, ${NOW_ONCE} from (select unnest(:rows.id::uuid[]) as id) n where ${told}`,
    // Plain jobs whose ids nobody has seen. `on conflict` would cost each of them 2.5 µs and 48 bytes of WAL.
    insertNew: `
      with n as materialized (
        select * from unnest(:rows.id::uuid[], :rows.jobType::int[], :rows.rank::int[], :rows.delay::bigint[], :rows.runAt::bigint[],
          :rows.input::text[], :rows.maxAttempts::int[], :rows.timeout::bigint[], :rows.extras::text[])
          as n (id, job_type, rank, delay, run_at, input, max_attempts, timeout_ms, extras)
      ),
      added as (
        insert into ${t.job} (id, job_type, created_at, input, max_attempts, timeout_ms, extras)
        select n.id, (select l.id from ${t.job_type} l where l.id = n.job_type), ${NOW_ONCE}, input, max_attempts, timeout_ms, extras from n
      )
      insert into ${t.ready} (id, job_type, rank, run_at)
      select n.id, n.job_type, n.rank, greatest(${NOW_ONCE}, coalesce(n.run_at, ${NOW_ONCE} + coalesce(n.delay, 0))) from n where ${told}`,
    insertJobs: `
      with n as materialized (
        select * from unnest(:rows.id::uuid[], :rows.jobType::int[], :rows.rank::int[], :rows.delay::bigint[], :rows.runAt::bigint[],
          :rows.input::text[], :rows.maxAttempts::int[], :rows.timeout::bigint[], :rows.deadline::bigint[], :rows.parent::uuid[],
          :rows.key::text[], :rows.lane::text[], :rows.context::text[], :rows.extras::text[], :rows.laneId::int[], :rows.slotted::bool[])
          as n (id, job_type, rank, delay, run_at, input, max_attempts, timeout_ms, deadline_at, parent_id, key, lane, context, extras, lane_id, slotted)
      ),
      added as (
        insert into ${t.job} (id, job_type, created_at, input, max_attempts, timeout_ms, deadline_at, parent_id, key, lane, context, extras)
        select id, ${numbers}, ${NOW}, input, max_attempts, timeout_ms, deadline_at, parent_id, key, lane, context, extras from n
        where not exists (select 1 from ${t.used_id} d where d.id = n.id)
        on conflict (id) do nothing returning id
      ),
      placed as (
        insert into ${t.ready} (id, job_type, rank, run_at, lane)
        select n.id, n.job_type, n.rank, greatest(case when n.slotted then 0 else ${NOW} end, coalesce(n.run_at, ${NOW} + coalesce(n.delay, 0))), n.lane_id from n where n.id in (select id from added)
        returning id, job_type, run_at, lane
      ),
      rung as (
        insert into ${t.lane_wakeup} (job_type, lanes, ats) select job_type, array_agg(lane), array_agg(run_at) from placed where lane is not null group by job_type
      )
      select id from placed`,
    // `do nothing` leaves no lock on a key that is taken; `do update` would lock it even where nothing is updated, and
    // whoever ends the job that holds it would wait for the end of this transaction, which may be a user's.
    takeKeys: `
      insert into ${t.unique_key} (scope, key, id, expires_at)
      select w.scope, w.key, w.id, ${NOW} + w.for_ms
      from unnest(:rows.scope::text[], :rows.key::text[], :rows.id::uuid[], :rows.forMs::bigint[]) as w (scope, key, id, for_ms)
      order by w.scope, w.key
      on conflict (scope, key) do nothing returning id`,
    findKeys: `
      select u.scope, u.key, u.id,
        coalesce(u.expires_at <= ${NOW}, true) and not exists (select 1 from ${t.ready} r where r.id = u.id) as stale
      from unnest(:rows.scope::text[], :rows.key::text[]) as w (scope, key)
      join ${t.unique_key} u on u.scope = w.scope and u.key = w.key`,
    // The holder is named: whoever waited here for another who took the key meanwhile must not take it from them (a
    // subquery is not asked again after such a wait where it was made into a join).
    takeStaleKeys: `
      update ${t.unique_key} u set id = w.id, expires_at = ${NOW} + w.for_ms
      from unnest(:rows.scope::text[], :rows.key::text[], :rows.id::uuid[], :rows.forMs::bigint[], :rows.holder::uuid[]) as w (scope, key, id, for_ms, holder)
      where u.scope = w.scope and u.key = w.key and u.id = w.holder and coalesce(u.expires_at <= ${NOW}, true)
        and not exists (select 1 from ${t.ready} r where r.id = u.id)
      returning u.id`,
    findJobs: `
      select id from ${t.ready} where id = any(:ids::uuid[])
      union all
      select id from ${t.history} where id = any(:ids::uuid[])`,
    findUsed: `
      select id, null::uuid as job from ${t.job} where id = any(:ids::uuid[])
      union all
      select id, job from ${t.used_id} where id = any(:ids::uuid[])`,
    // What waits for others, or to be resumed, goes on waiting: only its time is another. The enqueue that rewrote the job last is noted:
    // its input is the one that runs, and sent again it would run once more.
    replaceQueued: `
      with n as materialized (
        select * from unnest(:rows.id::uuid[], :rows.jobType::int[], :rows.rank::int[], :rows.delay::bigint[], :rows.runAt::bigint[], :rows.input::text[],
          :rows.maxAttempts::int[], :rows.timeout::bigint[], :rows.deadline::bigint[], :rows.lane::text[], :rows.context::text[], :rows.extras::text[], :rows.laneId::int[],
          :rows.sent::uuid[])
          as n (id, job_type, rank, delay, run_at, input, max_attempts, timeout_ms, deadline_at, lane, context, extras, lane_id, sent)
      ),
      queued as (
        update ${t.ready} r set job_type = n.job_type, rank = n.rank, lane = n.lane_id,
          run_at = case when r.waits is null then greatest(${NOW}, coalesce(n.run_at, ${NOW} + coalesce(n.delay, 0))) else r.run_at end,
          due_at = case when r.waits is null then r.due_at else greatest(${NOW}, coalesce(n.run_at, ${NOW} + coalesce(n.delay, 0))) end
        from n where r.id = n.id and r.token is null and not r.begun returning r.id
      ),
      noted as (
        insert into ${t.used_id} (id, at, job) select n.sent, ${NOW}, n.id from n where n.id in (select id from queued)
        on conflict (job) where job is not null do update set id = excluded.id, at = excluded.at
      )
      update ${t.job} j set job_type = ${numbers}, input = n.input, max_attempts = n.max_attempts, timeout_ms = n.timeout_ms, deadline_at = n.deadline_at,
        lane = n.lane, context = n.context, extras = n.extras
      from n where j.id = n.id and n.id in (select id from queued) returning j.id`,

    // What a busy worker mostly asks for, and one that was woken: its plan is half of `claim`'s, and a plan is set up anew each time.
    claimLevel: `
      with ${mark(`
        select r.ctid from ${t.ready} r
        where r.job_type = (select :jobType::int) and r.rank = (select :rank::int) and r.token is null and r.run_at <= ${NOW}
          and (r.run_at, r.id) > (:runAt::bigint, :rowKey::uuid) and ${alive} and ${open(":queue::text")}
        order by r.run_at, r.id limit (select :limit::int) for update skip locked`)}`,
    claim: walk(scope, mark),
    // Claims of dead sessions are not looked for: claims are too many while
    // somebody holds an old snapshot, and a dead session stays open until it has none. One that commits after its session was closed
    // is found by `over`.
    checkDue: `
      with recursive ${scope},${known},${heads}
      select ${NOW} as now,
        least(
          coalesce((select run_at from head where run_at <= ${NOW} limit 1), (select min(run_at) from head)),
          (select min(q.cool_until) from ${t.queue} q where q.cool_until > ${NOW}
            and exists (select 1 from unnest(:queues.queue::text[]) w (queue) where w.queue is null or w.queue = q.name))
        ) as due_at,
        (select min(s.lease_until) from ${t.session} s where s.closed_at is null) as expires_at,
        (select coalesce(json_agg(distinct l.queue), '[]')::text from ${t.job_type} l where l.laned) as laned,
        (select coalesce(json_agg(q.name), '[]')::text from ${t.queue} q where q.limited) as limited,
        (select json_agg(q.name)::text from ${t.queue} q where q.drain_at is not null) as draining,
        ${told} as told`,

    openSession: `
      insert into ${t.session} (id, kind, worker_id, name, host, pid, version, queues, names, runtime, release, versions, quiet_at, lease_ms, started_at, beat_at, lease_until)
      values (:id::bigint, :kind, :workerId, :name, :host, :pid::bigint, :version, :queues, :names, :runtime::text, :release::text, :versions::text, :quietAt::bigint, :leaseMs::bigint, ${NOW}, ${NOW}, ${NOW} + :leaseMs::bigint)
      on conflict (id) do nothing returning id`,
    renew: `
      with s as (
        update ${t.session} set beat_at = ${NOW}, lease_until = ${NOW} + lease_ms + :ahead::bigint
        where id = :session::bigint and lease_until > ${NOW} returning stop_requested_at, quiet_at
      )
      select s.stop_requested_at is not null as stop, s.quiet_at,
        (select coalesce(json_agg(json_build_object('id', c.id, 'token', c.token, 'pause', c.pause, 'reason', c.reason)), '[]')::text
          from ${t.cancel} c where c.session = :session::bigint) as requests,
        (select coalesce(json_agg(json_build_object('token', token, 'held', held, 'gone', gone)), '[]')::text from (
          select c.token, coalesce(json_agg(o.id) filter (where r.held), '[]') as held, coalesce(json_agg(o.id) filter (where r.held is null), '[]') as gone
          from ${t.claim} c cross join lateral unnest(c.ids) as o (id)
          left join lateral (select true as held from ${t.ready} k where k.id = o.id and k.token = c.token and k.session = c.session offset 0) r on true
          where c.session = :session::bigint group by c.token) each_claim) as claims
      from s`,
    findSession: `select id from ${t.session} where id = :session::bigint`,
    closeSession: `
      with unclaimed as (
        delete from ${t.claim} c where c.session = :session::bigint
          and not exists (select 1 from unnest(c.ids) as o (id) join ${t.ready} r on r.id = o.id and r.token = c.token)
      )
      update ${t.session} s set lease_until = least(s.lease_until, ${NOW}), closed_at = coalesce(s.closed_at, case when not exists (
        select 1 from ${t.claim} c cross join lateral unnest(c.ids) as o (id) join ${t.ready} r on r.id = o.id and r.token = c.token
        where c.session = s.id) then ${NOW} end)
      where s.id = :session::bigint`,
    orphans: `
      ${held}
      where s.id is null or s.lease_until <= ${NOW}
      order by r.id limit :limit::int`,
    heldJobs: `
      ${held}
      where c.token = any(array(select w.token from ${t.ready} w where w.id = any(:ids::uuid[]))) and r.id = any(:ids::uuid[]) order by r.id`,
    heldUnder: `
      ${held}
      where c.session = :session::bigint and c.token = any(:tokens::bigint[]) and r.session = c.session order by r.id`,
    deleteEndedSessions: `
      with emptied as (
        delete from ${t.claim} c
        where not exists (select 1 from ${t.session} s where s.id = c.session and s.lease_until > ${NOW})
          and not exists (select 1 from unnest(c.ids) as o (id) join ${t.ready} r on r.id = o.id and r.token = c.token)
        returning c.session
      ),
      stale as (delete from ${t.cancel} x where not exists (
        select 1 from ${t.ready} r where r.id = x.id and (r.token = x.token or (r.token is null and r.waits = 'resume')))),
      old as (delete from ${t.session} where closed_at < ${NOW} - 604800000)
      update ${t.session} s set closed_at = s.lease_until
      where s.closed_at is null and s.lease_until <= ${NOW}
        and not exists (select 1 from ${t.claim} c where c.session = s.id and c.session not in (select session from emptied))
      returning s.id`,
    // A session that was closed because no claim of it was left has one again, and must be looked at again.
    refile: `
      with reopened as (
        update ${t.session} s set closed_at = null where s.closed_at is not null and s.id = any(array(
          select r.session from ${t.ready} r where r.token is not null and not exists (select 1 from ${t.claim} c where c.token = r.token and r.id = any(c.ids))))
      )
      insert into ${t.claim} (token, session, ids)
      select r.token, min(r.session), array_agg(r.id) from ${t.ready} r
      where r.token is not null and not exists (select 1 from ${t.claim} c where c.token = r.token and r.id = any(c.ids))
      group by r.token
      on conflict (token) do update set ids = pg_catalog.array_cat(${t.claim}.ids, excluded.ids)
      returning token`,

    // Of one claim and without output, what most jobs come to: nothing to join, since a token alone makes the pairs. It
    // answers with those that were not its to end, which are mostly none: an answer of all ids cost 1 µs a job.
    doneAlike: `
      with gone as (
        delete from ${t.ready} r where r.id = any(:rowKeys::uuid[]) and r.token = :token::bigint and ${own("r")}
        returning r.id, r.job_type, r.rank, r.attempt, r.crashes, r.throttles, r.run_at, r.started_at, r.session, r.errors, r.progress, r.watched
      ),
      kept as (
        insert into ${t.history} (id, job_type, rank, state, attempt, crashes, throttles, run_at, started_at, ended_at, session, errors, progress)
        select id, job_type, rank, 'done', attempt, crashes, throttles, run_at, started_at, ${NOW_ONCE}, session, errors, progress from gone
      ),
      spent as (delete from ${t.claim} c where c.token = any(:spent::bigint[]) and ${own("c")})
      select o.id as row_key, false as watched from unnest(:rowKeys::uuid[]) as o (id)
      where (select count(*) from gone) < cardinality(:rowKeys::uuid[]) and o.id not in (select id from gone)
      union all select id, true from gone where watched`,
    // A done job keeps its row's count of attempts, crashes and errors, so only its output travels.
    done: `
      with t as materialized (
        select * from unnest(:rows.rowKey::uuid[], :rows.token::bigint[], :rows.output::text[]) as t (id, token, output)
      ),
      gone as (
        delete from ${t.ready} r using t
        where r.id = any(:rows.rowKey::uuid[]) and r.id = t.id and r.token = t.token and ${own("r")}
        returning r.*, t.output
      ),
      kept as (
        insert into ${t.history} (id, job_type, rank, state, attempt, crashes, throttles, run_at, started_at, ended_at, session, output, errors, progress)
        select id, job_type, rank, 'done', attempt, crashes, throttles, run_at, started_at, ${NOW}, session, output, errors, progress from gone
      ),
      spent as (delete from ${t.claim} c where c.token = any(:spent::bigint[]) and ${own("c")})
      select id as row_key, watched from gone`,
    end: end(own),
    again: again(own),
    endOrphans: end(untouched),
    againOrphans: again(untouched),
    coolDown: `
      update ${t.queue} q set
        cool_steps = case when q.cool_at > ${NOW} - 120000 then least(q.cool_steps + 1, 30) else 1 end,
        cool_until = ${NOW} + least(q.cool_max_ms, q.cool_base_ms * (1::bigint << (case when q.cool_at > ${NOW} - 120000 then least(q.cool_steps, 30) else 0 end))),
        cool_at = ${NOW}
      where q.name = any(array(
          select w.name from ${t.queue} w where w.cool_base_ms is not null and (w.cool_until is null or w.cool_until <= ${NOW})
            and w.name in (select l.queue from ${t.ready} r join ${t.job_type} l on l.id = r.job_type where r.id = any(:ids::uuid[]))
          order by w.name for update))
        and (q.cool_until is null or q.cool_until <= ${NOW})
      returning q.name`,
    progress: `
      update ${t.ready} r set progress = :value where r.id = :id::uuid and r.token = :token::bigint and ${own("r")} returning r.id`,

    get: `
      select * from (${live} where r.id = :id::uuid union all ${ended} where h.id = :id::uuid) one limit 1`,
    list: list(every),
    ids: ids(every),
    count: count(every),
    listChildren: list(children),
    idsOfChildren: ids(children),
    countChildren: count(children),
    listMembers: list(members),
    idsOfMembers: ids(members),
    countMembers: count(members),

    lockQueued: `
      select r.id, r.token, r.session, r.attempt, r.errors, r.begun, r.watched, j.key from ${t.ready} r join ${t.job} j on j.id = r.id
      where r.id = any(:ids::uuid[]) order by r.id for update of r`,
    endQueued: `
      with t as materialized (
        select * from unnest(:rows.id::uuid[], :rows.state::text[], :rows.errors::text[]) as t (id, state, errors)
      ),
      gone as (
        delete from ${t.ready} r using t where r.id = t.id and r.token is null
        returning r.id, r.job_type, r.rank, r.throttles, r.run_at, r.started_at, r.session, r.progress,
          r.watched, t.state, null::text as output, t.errors, null::text as failure_group, r.attempt, r.crashes, true as keep
      ),${file}
      select id, watched from gone`,
    // A pause does not take the place of a cancel that was asked of the same claim before. What the row has is what whoever gives
    // the job back goes by: who waits for the row's lock sees its newest version, and of other tables only those before the wait.
    askHolder: `
      with c as materialized (
        select * from unnest(:rows.id::uuid[], :rows.session::bigint[], :rows.token::bigint[], :rows.reason::text[], :rows.pause::bool[])
          as c (id, session, token, reason, pause)
      ),
      marked as (
        update ${t.ready} r set request = case when c.pause and coalesce(r.request, ${PAUSE}) = ${PAUSE} then ${PAUSE} else ${CANCEL} end
        from c where r.id = c.id and r.token = c.token
      )
      insert into ${t.cancel} as x (id, session, token, reason, pause, asked_at)
      select c.id, c.session, c.token, c.reason, c.pause, ${NOW} from c
      on conflict (id) do update set session = excluded.session, token = excluded.token, pause = excluded.pause and (x.pause or x.token <> excluded.token),
        reason = case when excluded.pause and not x.pause and x.token = excluded.token then x.reason else excluded.reason end`,
    requestsOf: `select x.id, x.token, x.reason, x.pause from ${t.cancel} x where x.id = any(:ids::uuid[]) order by x.id`,
    strayRequests: `
      select x.id from ${t.cancel} x join ${t.ready} r on r.id = x.id
      where r.token is null and r.waits = 'resume' order by x.id limit :limit::int`,
    withdraw: `
      with unmarked as (
        update ${t.ready} r set request = null where r.id = any(:ids::uuid[]) and (r.request = ${PAUSE} or (r.request = ${CANCEL} and not :pauses::bool))
      )
      delete from ${t.cancel} x where x.id = any(:ids::uuid[]) and (x.pause or not :pauses::bool) returning x.id`,
    // What waits by itself looks anew when it is resumed; what was due keeps its time, and what waits for others (after) its count.
    pauseQueued: `
      update ${t.ready} r set due_at = case when r.waits is null then r.run_at when r.waits = 'resume' or not r.begun then r.due_at end,
        run_at = ${WAITING_AT}, waits = 'resume', note = :note::text
      where r.id = any(:ids::uuid[]) and r.token is null returning r.id`,
    resumeQueued: `
      update ${t.ready} r set note = null,
        waits = case when not r.begun and r.pending > 0 then 'jobs' end,
        due_at = case when not r.begun and r.pending > 0 then r.due_at end,
        run_at = case when not r.begun and r.pending > 0 then r.run_at else greatest(${NOW}, coalesce(r.due_at, 0)) end
      where r.id = any(:ids::uuid[]) and r.token is null and r.waits = 'resume' returning r.id, r.lane is not null as laned`,
    forget: `
      with h as (delete from ${t.history} where id = any(:ids::uuid[]) returning id, state),
      r as (delete from ${t.ready} where id = any(:ids::uuid[]) and token is null returning id),
      -- A key that is held for a while outlives its job, unless the job is deleted by hand (:freed).
      k as (delete from ${t.unique_key} where id = any(array(select id from h union all select id from r))
        and (:freed::bool or expires_at is null or expires_at <= ${NOW})),
      ${deleted("array(select id from h union all select id from r)")},
      s as (delete from ${t.step} where job = any(array(select id from h union all select id from r))),
      d as (delete from ${t.dependency} where job = any(array(select id from h union all select id from r))),
      m as (delete from ${t.member} where id = any(array(select id from h union all select id from r))),
      g as (delete from ${t.log} where job = any(array(select id from h union all select id from r)))
      select id, state from h union all select id, null from r`,
    deleteExpiredIds: `
      with used as (
        delete from ${t.used_id} where id = any(array(
          select id from ${t.used_id} where at <= ${NOW} - ${RESENT_MS} order by at limit :limit::int for update skip locked)) returning id
      ),
      emptied as (
        delete from ${t.job} j where j.id = any(array(select id from used))
          and not exists (select 1 from ${t.ready} r where r.id = j.id) and not exists (select 1 from ${t.history} h where h.id = j.id)
      )
      select id from used`,
    expiredKeys: `
      select u.expires_at, u.scope, u.key, u.id, exists (select 1 from ${t.ready} r where r.id = u.id) as live from ${t.unique_key} u
      where u.expires_at <= ${NOW} and u.expires_at >= :at::bigint and (u.expires_at, u.scope, u.key) > (:at::bigint, :scope::text, :key::text)
      order by u.expires_at, u.scope, u.key limit :limit::int`,
    // Who takes a key has its row locked: it is passed over.
    deleteExpiredKeys: `
      delete from ${t.unique_key} where ctid = any(array(
        select u.ctid from unnest(:rows.scope::text[], :rows.key::text[], :rows.id::uuid[]) as w (scope, key, id)
        join ${t.unique_key} u on u.scope = w.scope and u.key = w.key and u.id = w.id
        where u.expires_at <= ${NOW} and not exists (select 1 from ${t.ready} r where r.id = u.id)
        order by u.scope, u.key for update of u skip locked)) returning id`,
    findEnded: `
      select h.id, j.key, j.lane, j.extras, l.name, l.queue, h.state from ${t.history} h join ${t.job} j on j.id = h.id join ${t.job_type} l on l.id = h.job_type
      where h.id = any(:ids::uuid[]) order by h.id desc for update of h`,
    revive: `
      with h as (delete from ${t.history} where id = any(:ids::uuid[]) returning id, job_type, rank, errors, progress)
      insert into ${t.ready} (id, job_type, rank, run_at, begun, watched, errors, lane)
      select h.id, h.job_type, h.rank, ${NOW}, true, true, h.errors, (
        select a.id from ${t.job_type} l join ${t.job} j on j.id = h.id join ${t.lane} a on a.queue = l.queue and a.key = j.lane where l.id = h.job_type and l.laned
      ) from h returning id`,
    inputsOf: `select id, input from ${t.job} where id = any(:ids::uuid[])`,
    setInputs: `
      update ${t.job} j set input = w.input from unnest(:rows.id::uuid[], :rows.input::text[]) as w (id, input) where j.id = w.id`,
    runNow: `
      with woken as (
        update ${t.ready} set run_at = ${NOW} where id = any(:ids::uuid[]) and token is null and run_at > ${NOW} and run_at < ${WAITING_AT}
          and coalesce(waits, 'sleep') = 'sleep' returning id, waits
      ),
      shortened as (
        update ${t.step} set wake_at = ${NOW} where job = any(array(select id from woken where waits = 'sleep')) and state = 'open' and kind in ('sleep', 'step', 'undo')
      )
      select id from woken`,
    editable,
    lockEditable: `${editable} for update of r`,
    // What waits for others keeps its time until they have ended.
    editQueued: `
      with n as materialized (
        select * from unnest(:rows.id::uuid[], :rows.jobType::int[], :rows.rank::int[], :rows.laneId::int[], :rows.delay::bigint[], :rows.runAt::bigint[])
          as n (id, job_type, rank, lane, delay, run_at)
      ),
      edited as (
        update ${t.ready} r set job_type = coalesce(n.job_type, r.job_type), rank = coalesce(n.rank, r.rank), lane = coalesce(n.lane, r.lane),
          run_at = case when r.waits is null then coalesce(${newTime}, r.run_at) else r.run_at end,
          due_at = case when r.waits is null then r.due_at else coalesce(${newTime}, r.due_at) end,
          note = case when coalesce(n.run_at, n.delay) is null or r.waits = 'resume' then r.note end
        from n where r.id = n.id and r.token is null returning r.id, n.job_type as moved
      ),
      moved as (
        update ${t.job} j set job_type = e.moved from edited e where j.id = e.id and e.moved is not null
      )
      select id from edited`,
    editEnded: `
      with n as materialized (select * from unnest(:rows.id::uuid[], :rows.jobType::int[], :rows.rank::int[]) as n (id, job_type, rank)),
      edited as (
        update ${t.history} h set job_type = coalesce(n.job_type, h.job_type), rank = coalesce(n.rank, h.rank)
        from n where h.id = n.id and h.id = any(:rows.id::uuid[]) returning h.id, n.job_type
      ),
      moved as (
        update ${t.job} j set job_type = e.job_type from edited e where j.id = e.id and j.id = any(:rows.id::uuid[]) and e.job_type is not null
      )
      select id from edited`,

    queueRows: `
      select name, paused_at, drain_at, cool_until, cool_base_ms, cool_max_ms, running, limited, settings from ${t.queue} where :names::text[] is null or name = any(:names::text[])`,
    queueCounts: `
      select l.queue, l.name, ${NOW} as now,
        count(r.id) filter (where r.token is null and r.run_at <= ${NOW}) as ready,
        count(r.id) filter (where r.token is null and r.run_at > ${NOW} and r.run_at < ${WAITING_AT} and coalesce(r.waits, 'sleep') = 'sleep') as scheduled,
        count(r.id) filter (where r.token is not null) as running,
        count(r.id) filter (where r.token is null and (r.run_at >= ${WAITING_AT} or r.run_at > ${NOW} and r.waits in ('signal', 'jobs'))) as waiting,
        min(r.run_at) filter (where r.token is null and r.run_at <= ${NOW}) as oldest,
        min(r.run_at) filter (where r.token is null and r.run_at > ${NOW} and r.run_at < ${WAITING_AT} and coalesce(r.waits, 'sleep') = 'sleep') as next
      from ${t.job_type} l left join ${t.ready} r on r.job_type = l.id group by l.queue, l.name`,
    setQueue: `
      insert into ${t.queue} as q (name, paused_at, drain_at, settings, cool_base_ms, cool_max_ms, limited, adopt_until)
      values (:name, case when :paused::bool then ${NOW} end, case when :draining::bool then ${NOW} end, :settings, :coolBase::bigint, :coolMax::bigint, coalesce(:limited::bool, false),
        case when :limited::bool then ${NOW} + 15000 end)
      on conflict (name) do update set
        limited = coalesce(:limited::bool, q.limited), limited_until = null,
        adopt_until = case when :limited::bool and not q.limited then ${NOW} + 15000 else q.adopt_until end,
        paused_at = case when :paused::bool is null then q.paused_at when :paused::bool then coalesce(q.paused_at, ${NOW}) end,
        drain_at = case when :draining::bool and q.paused_at is null then coalesce(q.drain_at, ${NOW}) when :paused::bool is null then q.drain_at end,
        settings = coalesce(:settings, q.settings),
        cool_base_ms = case when :settings::text is null then q.cool_base_ms else :coolBase::bigint end,
        cool_max_ms = case when :settings::text is null then q.cool_max_ms else :coolMax::bigint end`,
    // One probe for each level, as a claim does: jobs that are due later are not walked over. What runs is found by its claim.
    // Values and laterals instead of joins, or a table that was never analyzed is hashed whole.
    endDrains: `
      with recursive scope as materialized (
        select l.id as job_type, l.queue from ${t.job_type} l join ${t.queue} q on q.name = l.queue where q.drain_at is not null
      ),${levels}
      update ${t.queue} q set paused_at = ${NOW}, drain_at = null
      where q.drain_at is not null
        and not exists (
          select 1 from scope s join level_of l on l.job_type = s.job_type
          where s.queue = q.name and (select true from ${t.ready} r where r.job_type = l.job_type and r.rank = l.rank and r.run_at <= ${NOW} limit 1))
        and not exists (
          select 1 from ${t.claim} c cross join lateral unnest(c.ids) as o (id)
            cross join lateral (select h.job_type from ${t.ready} h where h.id = o.id and h.token = c.token offset 0) r
            join ${t.job_type} l on l.id = r.job_type
          where l.queue = q.name)
        -- Nor one that waits for a job that has ended, of which it will hear in a moment.
        and not exists (
          select 1 from ${t.dependency} d cross join lateral (select w.job_type from ${t.ready} w where w.id = d.job offset 0) r
            join ${t.job_type} l on l.id = r.job_type
          where l.queue = q.name and ${unheard(t)})
      returning q.name`,
    holds: `select name, array_to_json(queues)::text as queues, reason, set_at from ${t.hold} order by name`,
    setHold: `
      insert into ${t.hold} (name, queues, reason, set_at) values (:name, :queues::text[], :reason, ${NOW})
      on conflict (name) do update set queues = excluded.queues, reason = excluded.reason`,
    clearHold: `delete from ${t.hold} where name = :name returning name`,
    workers: `
      select s.id, s.kind, s.worker_id, s.name, s.host, s.pid, s.version, s.queues, s.names, s.runtime, s.release, s.versions, s.started_at, s.beat_at,
        s.lease_until, s.stop_requested_at, s.quiet_at,
        (select coalesce(json_agg(o.id), '[]')::text from ${t.claim} c cross join lateral unnest(c.ids) as o (id)
          join ${t.ready} r on r.id = o.id and r.token = c.token where c.session = s.id) as jobs
      from ${t.session} s where s.lease_until > ${NOW} and s.closed_at is null order by s.started_at, s.id`,
    // One that closes gives its lease up; what ran out whole belonged to a process that died or was cut off.
    lostWorkers: `
      select s.id, s.kind, s.worker_id, s.name, s.host, s.pid, s.version, s.queues, s.names, s.runtime, s.release, s.versions, s.started_at, s.beat_at,
        s.lease_until, s.stop_requested_at, s.quiet_at,
        (select coalesce(json_agg(o.id), '[]')::text from ${t.claim} c cross join lateral unnest(c.ids) as o (id)
          join ${t.ready} r on r.id = o.id and r.token = c.token where c.session = s.id) as jobs
      from ${t.session} s
      where s.kind = 'worker' and s.lease_until <= ${NOW} and s.lease_until > ${NOW} - 3600000 and s.lease_until >= s.beat_at + s.lease_ms
        and not exists (select 1 from ${t.session} o where o.worker_id = s.worker_id and o.started_at > s.started_at)
      order by s.lease_until desc limit 20`,
    // Each by its id (offset: not joined any other way), also where the server has counted nothing yet.
    overdueClaims: `
      select count(*) as n from (
        select 1 from ${t.claim} c left join ${t.session} s on s.id = c.session cross join lateral unnest(c.ids) as o (id)
          cross join lateral (select 1 from ${t.ready} r where r.id = o.id and r.token = c.token offset 0) r
        where s.id is null or s.lease_until < ${NOW} - :grace::bigint limit :most::int) x`,
    stopWorkers: `
      update ${t.session} set stop_requested_at = ${NOW}
      where (:sessions::bigint[] is null or id = any(:sessions::bigint[])) and kind = 'worker' and lease_until > ${NOW} and closed_at is null
      returning id`,
    quietWorkers: `
      update ${t.session} set quiet_at = coalesce(quiet_at, ${NOW})
      where id = any(:sessions::bigint[]) and kind = 'worker' and lease_until > ${NOW} and closed_at is null
      returning id`,
    resumeWorkers: `
      update ${t.session} set quiet_at = null
      where id = any(:sessions::bigint[]) and kind = 'worker' and lease_until > ${NOW} and closed_at is null
      returning id`,
    definitions: `select name, has_unique, has_lane, is_machine, lanes, budget from ${t.definition}`,
    registerDefinitions: `
      insert into ${t.definition} (name, has_unique, has_lane, is_machine, lanes, budget, seen_at)
      select w.name, w.has_unique, w.has_lane, w.is_machine, w.lanes, w.budget, ${NOW}
      from unnest(:rows.name::text[], :rows.unique::bool[], :rows.lane::bool[], :rows.machine::bool[], :rows.lanes::text[], :rows.budget::text[])
        as w (name, has_unique, has_lane, is_machine, lanes, budget)
      order by w.name
      on conflict (name) do update set has_unique = excluded.has_unique, has_lane = excluded.has_lane, is_machine = excluded.is_machine,
        lanes = excluded.lanes, budget = excluded.budget, seen_at = excluded.seen_at`,
    getState: `select value from ${t.state} where key = :key`,
    setState: `
      insert into ${t.state} (key, value, set_at) values (:key, :value, ${NOW})
      on conflict (key) do update set value = excluded.value, set_at = excluded.set_at`,
    deleteState: `delete from ${t.state} where key = :key returning key`,
    stateRow: `select key, value, set_at, ${NOW} as now from ${t.state} where key = :key`,
    stateRows: `
      select key, value, set_at, ${NOW} as now from ${t.state} where key >= :from and key < :until order by key desc limit :limit::int`,
    swapState: `update ${t.state} set value = :value, set_at = ${NOW} where key = :key and value = :was returning key`,

    scheduleRows: `
      select ${scheduleColumns}, ${NOW} as now from ${t.schedule} where :name::text is null or name = :name order by name`,
    // A page of slots in their order, so that the first that is not due says when to look; then, beside the first page, all that
    // wait for a job: they are never in the way of what is due.
    dueSchedules: `
      select * from (
        select name, next_at, null as jobs, ${NOW} as now from ${t.schedule}
        where paused_at is null and fault is null and (next_at, name) > (:at::bigint, :name)
        order by next_at, name limit :limit::int
      ) s
      union all
      select name, next_at, coalesce(jobs, '[]'), ${NOW} from ${t.schedule}
      where :at::bigint = 0 and waiting_at is not null and paused_at is null and fault is null and (next_at is null or next_at > ${NOW})`,
    lockSchedule: `select ${scheduleColumns}, ${NOW} as now from ${t.schedule} where name = :name for update`,
    // Whoever finds the row locked leaves the slot to its holder, and looks again a moment later.
    claimSchedule: `
      select ${scheduleColumns}, ${NOW} as now from ${t.schedule}
      where name = :name and paused_at is null and fault is null and (next_at <= ${NOW} or waiting_at is not null)
      for update skip locked`,
    addSchedule: `
      insert into ${t.schedule} (name, spec, next_at, anchor_at, created_at)
      values (:name, :spec, :nextAt::bigint, :anchorAt::bigint, ${NOW})
      on conflict (name) do nothing returning name`,
    setSchedule: `
      update ${t.schedule} set spec = :spec, edits = :edits, next_at = :nextAt::bigint, anchor_at = :anchorAt::bigint,
        waiting_at = :waitingAt::bigint, paused_at = case when :paused::bool then coalesce(paused_at, ${NOW}) end, fault = null, fault_at = null
      where name = :name returning name`,
    advanceSchedule: `
      update ${t.schedule} set next_at = :nextAt::bigint, waiting_at = :waitingAt::bigint,
        last_run_at = coalesce(:lastRunAt::bigint, last_run_at), last_job_id = coalesce(:lastJobId::uuid, last_job_id), jobs = :jobs, recent = :recent,
        fired = fired + :fired::bigint, skipped = skipped + :skipped::bigint, missed = missed + :missed::bigint
      where name = :name and next_at is not distinct from :expected::bigint returning name`,
    disableSchedule: `
      update ${t.schedule} set fault = :fault, fault_at = ${NOW} where name = :name and fault is null returning name`,
    occurrencesMade: `select at from ${t.occurrence} where schedule = :name and at >= :from::bigint and at < :to::bigint order by at`,
    // The comparison takes the name along: with `schedule = …` Postgres expects few rows on a table that was never analyzed, and
    // fetches and sorts all of its slots (16,000 rows read; this way 500). Those of other schedules are left out afterwards.
    newestOccurrences: `
      select s.at, s.job from (
        select schedule, at, job from ${t.occurrence} where (schedule, at) <= (:name, 9223372036854775807::bigint)
        order by schedule desc, at desc limit :limit::int
      ) s where s.schedule = :name`,
    occurrencesAround: `
      select at, job from (
        select * from (select schedule, at, job from ${t.occurrence} where (schedule, at) < (:name, :at::bigint) order by schedule desc, at desc limit 1) b
        union all
        select * from (select schedule, at, job from ${t.occurrence} where (schedule, at) > (:name, :at::bigint) order by schedule, at limit 1) a
      ) s where s.schedule = :name`,
    // Behind fences, so that each job is looked up by its key: as a join it may become a scan of the jobs of all days.
    occurrenceJobs: `
      select o.id, w.*, j.extras, coalesce((select true from ${t.step} p where p.job = o.id limit 1), false) as stepped
      from unnest(:ids::uuid[]) as o (id)
      cross join lateral (
        select ${state} as state, r.attempt, r.crashes, r.throttles, r.run_at, r.started_at, null::bigint as ended_at, ${shortErrors("r")}
        from ${t.ready} r where r.id = o.id
        union all
        select h.state, h.attempt, h.crashes, h.throttles, h.run_at, h.started_at, h.ended_at, ${shortErrors("h")}
        from ${t.history} h where h.id = o.id
        offset 0
      ) w
      cross join lateral (select k.extras from ${t.job} k where k.id = o.id offset 0) j`,
    addOccurrences: `
      insert into ${t.occurrence} (schedule, at, job, made_at)
      select * from unnest(:rows.name::text[], :rows.at::bigint[], :rows.job::uuid[], :rows.madeAt::bigint[])
      on conflict (schedule, at) do update set job = excluded.job, made_at = excluded.made_at`,
    removeSchedule: `delete from ${t.schedule} where name = :name returning name`,
    liveJobs: `select id from ${t.ready} where id = any(:ids::uuid[])`,
    budgetRows: `select ${budgetColumns}, ${NOW} as now from ${t.budget} order by name`,
    lockBudget: `select ${budgetColumns}, ${NOW} as now from ${t.budget} where name = :name for update`,
    addBudget: `
      insert into ${t.budget} (name, amount, per_ms, burst, tuned, standard, tokens, filled_at)
      values (:name, :amount::float8, :per::bigint, :burst::float8, :tuned::bool, :standard, :burst::float8, ${NOW})
      on conflict (name) do nothing returning name`,
    setBudget: `
      update ${t.budget} set amount = :amount::float8, per_ms = :per::bigint, burst = :burst::float8, tuned = :tuned::bool, standard = :standard,
        tokens = :tokens::float8, filled_at = :filledAt::bigint, chunks = :chunks
      where name = :name returning name`,
    removeBudget: `delete from ${t.budget} where name = :name returning name`,
    passRows: `select ${passColumns}, ${NOW} as now from ${t.pass} order by name`,
    lockPass: `select ${passColumns}, ${NOW} as now from ${t.pass} where name = :name for update`,
    addPass: `insert into ${t.pass} (name, clean) values (:name, true) on conflict (name) do nothing returning name`,
    setPass: `
      update ${t.pass} set clean = :clean::bool, holder = :holder, held_until = :heldUntil::bigint, runs = :runs::bigint,
        started_at = :startedAt::bigint, ended_at = :endedAt::bigint, reason = :reason
      where name = :name returning name`,
    // The whole of one worker's minute each time, so that writing it twice is writing it once.
    putMetrics: `
      insert into ${t.metric} as m (minute, queue, name, worker, done, failed, dead, cancelled, throttled, released, lost, ran, waited)
      select * from unnest(:rows.minute::bigint[], :rows.queue::text[], :rows.name::text[], :rows.worker::text[], :rows.done::int[], :rows.failed::int[], :rows.dead::int[],
        :rows.cancelled::int[], :rows.throttled::int[], :rows.released::int[], :rows.lost::int[], :rows.ran::text[], :rows.waited::text[])
      on conflict (minute, queue, name, worker) do update set done = excluded.done, failed = excluded.failed, dead = excluded.dead, cancelled = excluded.cancelled,
        throttled = excluded.throttled, released = excluded.released, lost = excluded.lost, ran = excluded.ran, waited = excluded.waited
      where ${sum("m")} <= ${sum("excluded")}`,
    metrics: `
      select minute, queue, name, worker, done, failed, dead, cancelled, throttled, released, lost, ran, waited from ${t.metric}
      where minute >= :since::bigint and minute < :until::bigint
        and (:queues::text[] is null or queue = any(:queues::text[])) and (:names::text[] is null or name = any(:names::text[]))
      order by minute, queue, name, worker`,
    // Histograms are lists in brackets: with commas between, and brackets around, they are one list (values/histogram.ts).
    metricsTogether: `
      select minute, '' as queue, '' as name, '' as worker, sum(done)::bigint as done, sum(failed)::bigint as failed, sum(dead)::bigint as dead,
        sum(cancelled)::bigint as cancelled, sum(throttled)::bigint as throttled, sum(released)::bigint as released, sum(lost)::bigint as lost,
        string_agg(ran, ',') as ran, string_agg(waited, ',') as waited
      from ${t.metric} where minute >= :since::bigint and minute < :until::bigint group by minute order by minute`,
    queueMinutes: `
      select minute, queue, sum(done)::bigint as done, sum(failed)::bigint as failed, sum(dead)::bigint as dead
      from ${t.metric} where minute >= :since::bigint and minute < :until::bigint group by minute, queue order by minute, queue`,
    putMetricSums: `
      insert into ${t.metric_sum} (name, minute, done, failed, dead, cancelled, throttled, released, lost, ran, waited)
      select * from unnest(:rows.name::text[], :rows.minute::bigint[], :rows.done::bigint[], :rows.failed::bigint[], :rows.dead::bigint[],
        :rows.cancelled::bigint[], :rows.throttled::bigint[], :rows.released::bigint[], :rows.lost::bigint[], :rows.ran::text[], :rows.waited::text[])
      on conflict (name, minute) do update set done = excluded.done, failed = excluded.failed, dead = excluded.dead, cancelled = excluded.cancelled,
        throttled = excluded.throttled, released = excluded.released, lost = excluded.lost, ran = excluded.ran, waited = excluded.waited`,
    metricSums: `
      select minute, '' as queue, name, '' as worker, done, failed, dead, cancelled, throttled, released, lost, ran, waited from ${t.metric_sum}
      where name = any(:names::text[]) and minute >= :since::bigint and minute < :until::bigint order by name, minute`,
    summedHours: `
      select distinct minute - minute % 3600000::bigint as hour from ${t.metric_sum} where name = '' and minute >= :since::bigint and minute < :until::bigint`,
    dropMetrics: `delete from ${t.metric} where minute >= :since::bigint and minute < :until::bigint and worker <> ''`,
    putGauges: `
      insert into ${t.gauge} (minute, source, name, value)
      select * from unnest(:rows.minute::bigint[], :rows.source::text[], :rows.name::text[], :rows.value::float8[])
      on conflict (minute, source, name) do update set value = excluded.value`,
    gauges: `
      select minute, source, name, value from ${t.gauge}
      where minute >= :since::bigint and minute < :until::bigint
        and (:sources::text[] is null or source = any(:sources::text[]))
      order by minute, source, name`,
    // By an index of their own: a month of all that is measured is a million rows and more.
    namedGauges: `
      select minute, source, name, value from ${t.gauge}
      where name = any(:names::text[]) and minute >= :since::bigint and minute < :until::bigint
        and (:sources::text[] is null or source = any(:sources::text[]))
      order by minute, source, name`,
    // What workers said of themselves is added up over them; limits that are followed have a `running` of their own.
    load: `
      select g.minute - g.minute % :step::bigint as at, case when g.name = 'ready' then g.source else '' end as source, g.name,
        sum(g.value) as sum, count(distinct g.minute)::int as minutes
      from unnest(:minutes::bigint[]) as m (minute) cross join lateral (select * from ${t.gauge} k where k.minute = m.minute offset 0) g
      where g.name = 'ready' or (g.name in ('running', 'slots') and g.source not like 'queue:%')
      group by 1, 2, 3 order by 1`,
    gaugeSteps: `
      select g.minute - g.minute % :step::bigint as at, g.source, g.name, sum(g.value) as sum, count(*)::int as minutes
      from unnest(:names::text[]) as w (name) cross join unnest(:minutes::bigint[]) as m (minute)
        cross join lateral (select * from ${t.gauge} k where k.name = w.name and k.minute = m.minute offset 0) g
      group by 1, 2, 3 order by 1, 2, 3`,
    putEvents: `
      insert into ${t.event} (id, at, event, job, name, queue, attempt, worker, detail)
      select * from unnest(:rows.id::uuid[], :rows.at::bigint[], :rows.event::text[], :rows.job::uuid[], :rows.name::text[], :rows.queue::text[], :rows.attempt::int[], :rows.worker::text[], :rows.detail::text[])
      on conflict (id) do nothing`,
    events: `
      select id, at, event, job, name, queue, attempt, worker, detail from ${t.event}
      where (:cursor::uuid is null or id < :cursor::uuid) and (:job::uuid is null or job = :job::uuid) and id >= :from::uuid and at >= :since::bigint and at < :until::bigint
        and (:events::text[] is null or event = any(:events::text[])) and (:queues::text[] is null or queue = any(:queues::text[]))
        and (:names::text[] is null or name = any(:names::text[]))
      order by id desc limit :limit::int`,
    putLogLines: `
      insert into ${t.log} (job, id, at, level, attempt, message, details)
      select * from unnest(:rows.job::uuid[], :rows.id::uuid[], :rows.at::bigint[], :rows.level::text[], :rows.attempt::int[], :rows.message::text[], :rows.details::text[]) as n (job)
      where ${exists("n.job")} on conflict do nothing`,
    trimLogLines: `
      delete from ${t.log} l using unnest(:rows.job::uuid[]) as n (job) where l.job = n.job
        and l.id < (select o.id from ${t.log} o where o.job = n.job order by o.id desc limit 1 offset :skip::int)`,
    logLines: `
      select id, job, at, level, attempt, message, details from ${t.log} where job = :job::uuid order by id desc limit :limit::int`,
    deleteOldSeries: `
      with m as (delete from ${t.metric} where minute < :metricsBefore::bigint),
        s as (delete from ${t.metric_sum} where minute < :metricsBefore::bigint),
        a as (delete from ${t.occurrence} where made_at < :metricsBefore::bigint),
        g as (delete from ${t.gauge} where minute < :metricsBefore::bigint),
        o as (delete from ${t.log} l where not ${exists("l.job")})
      delete from ${t.event} where id < :eventsBefore::uuid`,
    ...workflowStatements(t, NOW, own),
    ...batchStatements(t, NOW),
    ...insightStatements(t, {
      NOW,
      BEFORE_ALL,
      state,
      liveAnd: (more) => liveAmong(every("r", t.ready), more),
      endedAnd: (more) => endedAmong(every("h", t.history), more),
      levels,
    }),
    ...failureStatements(t, NOW),

    takeUpkeepTask: `
      insert into ${t.upkeep_task} as d (name, next_at, done_at, by) values (:name, ${NOW} + :every::bigint, ${NOW}, :by)
      on conflict (name) do update set next_at = excluded.next_at, done_at = excluded.done_at, by = excluded.by where d.next_at <= ${NOW} returning name`,
    upkeepTasks: `select name, next_at, done_at, by from ${t.upkeep_task} order by name`,
    expired: `
      select h.id, h.state from ${t.history} h join ${t.job_type} l on l.id = h.job_type
      where h.id > coalesce(:after::uuid, '00000000-0000-0000-0000-000000000000'::uuid) and h.id < :before::uuid and h.state = any(:states::text[]) and h.ended_at <= ${NOW} - :keep::bigint
        and (:queues::text[] is null or l.queue = any(:queues::text[])) and not (l.queue = any(:except::text[]))
      order by h.id limit :limit::int`,
    instance: `select value from ${t.meta} where key = 'instance'`,
    schemaState: `
      select m.version, m.name, m.applied_at, (select value from ${t.meta} where key = :moved) as moved_to,
        (select value from ${t.meta} where key = :movedAt) as moved_at
      from ${t.migration} m order by m.version desc limit 1`,
    // Not on a standby, and not for a role that may only read.
    writable: `select has_table_privilege('${t.ready}', 'insert') and has_table_privilege('${t.ready}', 'update') and not pg_is_in_recovery()
        and current_setting('transaction_read_only') = 'off' as writable`,
    now: `select ${NOW} as now`,
    ...limitStatements(t, {
      now: NOW,
      nextAttempt: NEXT_ATTEMPT,
      names,
      known,
      heads,
      walk,
      alive,
      unstopped,
      rest,
    }),
  };
}
