/**
 * The catalogue for SQLite. Read it beside storage/postgres/statements/jobs.ts: same names, same order, same parameters.
 *
 * What is SQLite's own here, and why:
 *  - There are no writing CTEs, so an entry is often a list: its statements run in order in one `begin immediate`.
 *  - A statement that names columns of a list (`:rows.id`) runs once for each row of it: with a prepared statement that
 *    is as fast as one large statement, and there is no round trip to save.
 *  - `changes()` and `last_insert_rowid()` carry the claim's token from one statement to the next.
 *  - Nobody else writes while we do, so nothing needs to be locked or skipped.
 */
import { conditions, type Given, RESENT_MS, type Statements, type Tables } from "../../catalogue.ts";
import { WAITING_AT } from "../../../jobs/job.ts";
import { MOST_COUNTED } from "../../../jobs/job-bounds.ts";
import { CANCEL, PAUSE } from "../../../lease/request-rows.ts";
import { noMachineUnlessNamed, plainUnlessNamed } from "../../../lease/plain-jobs.ts";
import { limitStatements } from "./limits.ts";
import { batchStatements } from "./batches.ts";
import { workflowStatements, unheard } from "./workflows.ts";
import { insightStatements } from "./browse.ts";
import { seqOf } from "../seq.ts";
import { failureStatements } from "./failures.ts";

/** The claim that the statements before have filed and taken; null: none. One value, so that it is looked at once. */
const FILED = "case when changes() > 0 then last_insert_rowid() end";
/**
 * A claim or a look finds about so many levels one by one, but some of each job type. It reads the levels behind them in order from the index,
 * entry by entry: to find a level takes twenty times as long, and 20,000 priorities of delayed jobs held up all others.
 */
const mostProbed = (jobTypes: string): string => `(select max(20, 1000 / max(count(*), 1)) from ${jobTypes})`;
/** No number is larger. */
const LAST_SEQ = "9223372036854775807";

export function statements(t: Tables): Statements {
  const seq = seqOf(t);
  /**
   * A queue from which may be claimed now. One with limits is claimed from by limits.ts alone. The names in it are its own: `q` here would be
   * taken for the `q` of whoever asks about `q.name`, and any queue that is paused would stop them all.
   */
  const stopped = (queue: string, more: string) => `
      not exists (select 1 from ${t.queue} stop where stop.name = ${queue} and (stop.paused_at is not null or stop.cool_until > :now${more}))
      and not exists (select 1 from ${t.hold} held where held.queues is null or ${queue} in (select value from json_each(held.queues)))`;
  const open = (queue: string) => stopped(queue, " or stop.limited");
  const unstopped = (queue: string) => stopped(queue, "");
  const alive = `exists (select 1 from ${t.session} s where s.id = :session and s.lease_until > :now)`;
  /** The other half of the fence beside the token: tokens repeat after a failover to a replica that lagged, sessions never do. */
  const own = (row: string) => `${row}.session = :session and ${alive}`;
  const orphaned = (row: string) =>
    `not exists (select 1 from ${t.session} s where s.id = ${row}.session and s.lease_until > :now)`;

  /** What few jobs have, as one column: a row of 20 costs a claim more than everything else about it. Lanes come by themselves. */
  const rest = `case when r.crashes > 0 or r.begun
          or coalesce(r.errors, j.timeout_ms, j.key, j.context, j.parent_id, j.deadline_at, j.extras) is not null
        then json_object('crashes', r.crashes, 'begun', r.begun, 'undoing', r.undoing, 'errors', r.errors, 'timeout_ms', j.timeout_ms,
          'key', j.key, 'context', j.context, 'parent_id', j.parent_id, 'deadline_at', j.deadline_at, 'extras', j.extras)
      end as rest`;

  /** The job types in scope, each with its group (whose limit it shares) and that limit. */
  const scope = `
    scope as materialized (
      select l.id as job_type, l.queue, q.value ->> 'group' as grp, q.value ->> 'limit' as n
      from json_each(:queues) q join ${t.job_type} l on q.value ->> 'queue' is null or l.queue = q.value ->> 'queue'
      where not l.laned and (:names is null or l.name in (select value from json_each(:names)))
        and ${noMachineUnlessNamed(t, "l", ":names")} and ${open("l.queue")}
    )`;
  /** Every (job type, rank) that has rows, found by skipping through the index: one probe for each level. */
  const levels = `
    level_of (job_type, rank) as (
      select s.job_type, (select r.rank from ${t.ready} r where r.job_type = s.job_type and r.token is null order by r.rank limit 1) from scope s
      union all
      select l.job_type, (select r.rank from ${t.ready} r where r.job_type = l.job_type and r.token is null and r.rank > l.rank order by r.rank limit 1)
      from level_of l where l.rank is not null
    )`;
  /**
   * The levels of each job type in claim order, as far as they are needed: `n` is how many jobs are still asked for when the claim comes
   * to the level. What is claimed is not in the index, so that each claim can begin at the first. The `nth` is the last that is found
   * by itself: what is behind it is read from the index, entry by entry (`behind`).
   */
  const nextLevel = (jobType: string, after: string, order: string) =>
    `(select r.rank from ${t.ready} r where r.job_type = ${jobType} and r.token is null${after} order by r.rank ${order} limit 1)`;
  const inOrder = (jobType: string, after?: string) => `case when :direction > 0
        then ${nextLevel(jobType, after === undefined ? "" : ` and r.rank > ${after}`, "asc")}
        else ${nextLevel(jobType, after === undefined ? "" : ` and r.rank < ${after}`, "desc")} end`;
  const level = `
    level (job_type, rank, grp, n, nth) as (
      select s.job_type, ${inOrder("s.job_type")}, s.grp, s.n, 1 from scope s where ${alive}
      union all
      select l.job_type, ${inOrder("l.job_type", "l.rank")}, l.grp, l.n - (
        select count(*) from (
          select 1 from ${t.ready} r where r.job_type = l.job_type and r.rank = l.rank and r.token is null and r.run_at <= :now
            and ${plainUnlessNamed(t, "r", "seq", ":names")} limit (select max(n) from scope))), l.nth + 1
      from level l where l.rank is not null and l.n > 0 and l.nth < ${mostProbed("scope")}
    )`;
  /** The next due jobs of a level, and of those behind it if it is the last that was found. The order is the index's own. */
  const dueOf = (most: string) => {
    const due = `c.job_type = l.job_type and c.token is null and c.run_at <= :now and ${plainUnlessNamed(t, "c", "seq", ":names")}`;
    // Of the last level alone; of all others nothing is behind the bound.
    const behind = (turn: string, beyond: string, bound: string, order: string) => `
            select seq from (
              select c.seq from ${t.ready} c
              where c.rank ${beyond} iif(l.nth = ${mostProbed("scope")} and :direction ${turn} 0, l.rank, ${bound}) and ${due}
              order by c.rank${order}, c.token${order}, c.run_at, c.seq limit ${most})`;
    return `
            select seq from (
              select c.seq from ${t.ready} c where c.rank = l.rank and ${due} order by c.run_at, c.seq limit ${most})
            union all${behind(">", ">", LAST_SEQ, "")}
            union all${behind("<", "<", `-${LAST_SEQ}`, " desc")}`;
  };
  /** The next jobs of these levels; `place` keeps each group to its limit. */
  const nextJobs = (most: string) => `
          select r.seq, s.n, row_number() over (partition by l.grp order by r.rank * :direction, r.run_at, r.seq) as ordinal
          from level l join scope s on s.job_type = l.job_type cross join ${t.ready} r
          where l.rank is not null and l.n > 0 and r.seq in (${dueOf(most)})`;
  /** Files a claim of them. */
  const fileClaim = `, filed (ids) as materialized (
        select json_group_array(seq) from (${nextJobs("(select max(n) from scope)")}
        ) where ordinal <= n)
      select :session, ids from filed where ids <> '[]'`;
  /** When the first job of a level is due. */
  const head = `(select r.run_at from ${t.ready} r where r.job_type = l.job_type and r.rank = l.rank and r.token is null order by r.run_at, r.seq limit 1)`;
  /**
   * When the first jobs of these job types are due, `at`: it is the time itself, or computed from it. Where a job is due now, the levels behind it are
   * not looked at: each subquery finds levels for itself, as many as it asks for.
   */
  const firstDue = (jobTypes: string, at: (runAt: string, jobType: string) => string) => {
    const looked = `with recursive looked (job_type, rank, nth) as (
          select s.job_type, ${nextLevel("s.job_type", "", "asc")}, 1 from ${jobTypes} s
          union all
          select l.job_type, ${nextLevel("l.job_type", " and r.rank > l.rank", "asc")}, l.nth + 1
          from looked l where l.rank is not null and l.nth < ${mostProbed(jobTypes)}
        )`;
    const behind = (what: string, more: string) =>
      `(select ${what} from ${t.ready} r where r.job_type = l.job_type and r.token is null and r.rank > l.rank${more})`;
    const last = `l.rank is not null and l.nth = ${mostProbed(jobTypes)}`;
    return `coalesce(
          (select :now from (
            ${looked}
            select ${at(head, "l.job_type")} as at from looked l where l.rank is not null
            union all
            select ${at(behind("r.run_at", " and r.run_at <= :now limit 1"), "l.job_type")} from looked l where ${last}
          ) where at <= :now limit 1),
          (select min(at) from (
            ${looked}
            select ${at(head, "l.job_type")} as at from looked l where l.rank is not null
            union all
            select ${at(behind("min(r.run_at)", ""), "l.job_type")} from looked l where ${last}
          )), ${WAITING_AT})`;
  };
  const take = [
    `update ${t.ready} set token = last_insert_rowid(), session = :session, attempt = min(attempt + 1, ${MOST_COUNTED}), started_at = :now
      where seq in (select o.value from ${t.claim} c, json_each(c.ids) o where c.token = ${FILED})`,
    `select j.id, r.seq as row_key, r.job_type, r.rank, r.run_at, r.token, r.attempt, r.started_at, j.input, j.max_attempts, ${rest}
      from ${t.claim} c, json_each(c.ids) o cross join ${t.ready} r on r.seq = o.value cross join ${t.job} j on j.seq = r.seq
      where c.token = ${FILED}`,
  ];

  const historyColumns = `seq, job_type, rank, state, attempt, crashes, throttles, run_at, started_at, ended_at, session, output, errors, progress`;
  const failedColumns = `${historyColumns}, failure_group`;
  /** Ids of jobs that are deleted while their enqueue may still be sent again. */
  const noted = (ids: string) => `
    insert into ${t.used_id} (id, at)
    select j.id, j.created_at from json_each(${ids}) o cross join ${t.job} j on j.id = o.value
    where j.created_at > :now - ${RESENT_MS}
      and not exists (select 1 from ${t.ready} r where r.seq = j.seq) and not exists (select 1 from ${t.history} h where h.seq = j.seq)
    on conflict (id) do nothing`;
  // A spent claim is forgotten under the fence too: one whose session has died is what its orphans are found by.
  // What somebody waits for is kept, or a death before they are told would make a success an end that nobody knows.
  const end = (fence: (row: string) => string) => [
    `insert into ${t.history} (${failedColumns})
      select r.seq, r.job_type, r.rank, :rows.state, :rows.attempt, :rows.crashes, r.throttles, r.run_at, r.started_at, :now, r.session,
        :rows.output, :rows.errors, r.progress, :rows.failureGroup
      from ${t.ready} r where r.seq = ${seq.of(":rows.id")} and r.token = :rows.token and (:rows.keep or r.watched) and ${fence("r")}`,
    `delete from ${t.ready} where seq = ${seq.of(":rows.id")} and token = :rows.token and ${fence(t.ready)} returning :rows.id as id, watched`,
    `delete from ${t.member} where seq in ${seq.among(":dropped")}
      and not exists (select 1 from ${t.ready} r where r.seq = ${t.member}.seq) and not exists (select 1 from ${t.history} h where h.seq = ${t.member}.seq)`,
    noted(":dropped"),
    `delete from ${t.job} where id in (select value from json_each(:dropped))
      and not exists (select 1 from ${t.ready} r where r.seq = ${t.job}.seq) and not exists (select 1 from ${t.history} h where h.seq = ${t.job}.seq)`,
    `delete from ${t.step} where job in (select value from json_each(:dropped)) and not exists (select 1 from ${t.job} j where j.id = ${t.step}.job)`,
    `delete from ${t.dependency} where job in (select value from json_each(:dropped)) and not exists (select 1 from ${t.job} j where j.id = ${t.dependency}.job)`,
    `delete from ${t.unique_key} where id in (select value from json_each(:keyed)) and (expires_at is null or expires_at <= :now)
      and not exists (select 1 from ${t.ready} r where r.seq = ${seq.of(`${t.unique_key}.id`)})`,
    `delete from ${t.claim} where token in (select value from json_each(:spent)) and ${fence(t.claim)}`,
  ];
  const asked = `(request = ${PAUSE} or (request = ${CANCEL} and :rows.cancellable))`;
  const dueAgain = "case when :rows.keeps then min(run_at, :now) else :now + :rows.delay end";
  const again = (fence: (row: string) => string) => [
    `delete from ${t.claim} where token in (select value from json_each(:spent)) and ${fence(t.claim)}`,
    // What somebody has a request for is out of everybody's reach until that is granted (lease/request-rows.ts). A job that its
    // holder gave back by choice has left a cancel behind.
    `update ${t.ready} set token = null, session = null, attempt = :rows.attempt, crashes = :rows.crashes,
        run_at = case when ${asked} then ${WAITING_AT} else ${dueAgain} end, due_at = case when ${asked} then ${dueAgain} end,
        errors = :rows.errors, failure_group = coalesce(:rows.failureGroup, failure_group), throttles = min(throttles + :rows.throttled, ${MOST_COUNTED}), begun = begun or :rows.begun,
        note = :rows.note, counted = null, waits = case when ${asked} then 'resume' end, request = null
      where seq = ${seq.of(":rows.id")} and token = :rows.token and ${fence(t.ready)} returning :rows.id as id, waits is not null as asked`,
  ];

  /**
   * Claimed jobs with who holds them. A session that was closed before its lease passed was closed by its own holder, and held nothing
   * then: a claim of it came later, and no process has heard of it (lease/reaper.ts).
   */
  const held = `
      select j.id, r.seq as row_key, r.token, r.session, r.rank, r.run_at, r.attempt, r.started_at, r.job_type, r.lane as lane_id, r.counted, c.rates,
        j.input, j.max_attempts, j.lane, ${rest}, l.queue, l.name, x.reason as cancel_reason, s.lease_until,
        coalesce(s.closed_at < s.beat_at + s.lease_ms, 0) as unheard, exists (select 1 from ${t.step} e where e.job = j.id) as stepped
      from ${t.claim} c
      left join ${t.session} s on s.id = c.session
      cross join json_each(c.ids) o
      join ${t.ready} r on r.seq = o.value and r.token = c.token
      join ${t.job} j on j.seq = r.seq
      join ${t.job_type} l on l.id = r.job_type
      left join ${t.cancel} x on x.id = j.id and x.token = r.token and not x.pause`;

  /** Live and ended jobs under one set of columns. */
  const state = `case when r.token is not null then 'running' when r.run_at >= ${WAITING_AT} then 'waiting'
        when r.run_at > :now then case when r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end`;
  const jobColumns = `j.input, j.created_at, j.max_attempts, j.key, j.lane, j.context, j.parent_id, j.extras, l.queue, l.name`;
  /** Where a machine stands. */
  const atStep = `(select m.label from ${t.step} m where m.job = j.id and m.name = '$machine')`;
  const every = (row: string, table: string) => `${table} ${row} join ${t.job} j on j.seq = ${row}.seq`;
  // What a run called or enqueued: by the index of parents first (cross joins keep their order), then each by its number.
  const children = (row: string, table: string) => `${t.job} c
        cross join ${table} ${row} on ${row}.seq = c.seq cross join ${t.job} j on j.seq = c.seq and c.parent_id = :workflow`;
  const members = (row: string, table: string) => `${t.member} c
        cross join ${table} ${row} on ${row}.seq = c.seq cross join ${t.job} j on j.seq = c.seq and c.batch = :batch`;
  const liveAmong = (from: string, more = "") => `
      select ${more}j.id, r.seq as row_key, r.rank, r.attempt, r.crashes, r.run_at, r.started_at, null as ended_at, r.errors, r.progress, null as output,
        s.lease_until, s.worker_id, ${state} as state, r.waits, ${jobColumns}, ${atStep} as step
      from ${from} join ${t.job_type} l on l.id = r.job_type left join ${t.session} s on s.id = r.session`;
  const endedAmong = (from: string, more = "") => `
      select ${more}j.id, h.seq as row_key, h.rank, h.attempt, h.crashes, h.run_at, h.started_at, h.ended_at, h.errors, h.progress, h.output,
        null as lease_until, s.worker_id, h.state, null as waits, ${jobColumns}, ${atStep} as step
      from ${from} join ${t.job_type} l on l.id = h.job_type left join ${t.session} s on s.id = h.session`;
  const live = liveAmong(every("r", t.ready));
  const ended = endedAmong(every("h", t.history));
  const matches = (given: Given, row: string, stateOf: string) =>
    conditions(given, {
      ids: `${row}.seq in ${seq.among(":ids")}`,
      states: `${stateOf} in (select value from json_each(:states))`,
      queues: `l.queue in (select value from json_each(:queues))`,
      names: `l.name in (select value from json_each(:names))`,
      lane: `j.lane = :lane`,
      key: `j.key = :key`,
      workflow: `j.parent_id = :workflow`,
      since: `j.created_at >= :since`,
      until: `j.created_at < :until`,
      trace: `j.extras like :trace`,
      search: `(instr(lower(j.input), :search) > 0 or instr(lower(j.context), :search) > 0 or instr(lower(${row}.errors), :search) > 0)`,
    });
  const fromCursor = (given: Given, condition: string) => conditions(given, { cursor: condition });

  type Among = typeof every;
  const list = (among: Among) => (given: Given) =>
    `
      select * from (
        select * from (${liveAmong(among("r", t.ready))} where ${matches(given, "r", state)} and ${fromCursor(given, "r.seq < cast(:cursor as integer)")} order by r.seq desc limit :limit)
        union all
        select * from (${endedAmong(among("h", t.history))} where ${matches(given, "h", "h.state")} and ${fromCursor(given, "h.seq < cast(:cursor as integer)")} order by h.seq desc limit :limit)
      ) page order by row_key desc limit :limit`;
  const ids = (among: Among) => (given: Given) =>
    `
      select id, row_key from (
        select * from (select j.id, r.seq as row_key from ${among("r", t.ready)} join ${t.job_type} l on l.id = r.job_type
          where ${matches(given, "r", state)} and ${fromCursor(given, "r.seq > cast(:cursor as integer)")} order by r.seq limit :limit)
        union all
        select * from (select j.id, h.seq as row_key from ${among("h", t.history)} join ${t.job_type} l on l.id = h.job_type
          where ${matches(given, "h", "h.state")} and ${fromCursor(given, "h.seq > cast(:cursor as integer)")} order by h.seq limit :limit)
      ) page order by row_key limit :limit`;
  const count = (among: Among) => (given: Given) =>
    `
      select
        (select count(*) from ${among("r", t.ready)} join ${t.job_type} l on l.id = r.job_type where ${matches(given, "r", state)})
        + (select count(*) from ${among("h", t.history)} join ${t.job_type} l on l.id = h.job_type where ${matches(given, "h", "h.state")})
        as count`;

  /** What decides whether a job may be put elsewhere. */
  const editable = `
      select j.id, r.token, r.waits, r.begun, j.deadline_at, j.key, j.lane, j.extras, l.queue, l.name, :now as now
      from ${t.ready} r join ${t.job} j on j.seq = r.seq join ${t.job_type} l on l.id = r.job_type
      where r.seq in ${seq.among(":ids")} order by r.seq`;
  const scheduleColumns = `name, spec, edits, next_at, waiting_at, anchor_at, created_at, paused_at, fault, last_run_at, last_job_id, jobs, recent, fired, skipped, missed`;
  /** Failures are bounded: 500 jobs with long stacks would be 32 MB. */
  const ofSlot = (row: string) =>
    `case when octet_length(${row}.errors) <= 16384 then ${row}.errors end as errors, j.extras, exists (select 1 from ${t.step} p where p.job = j.id) as stepped`;
  const budgetColumns = `name, amount, per_ms, burst, tuned, standard, tokens, filled_at, chunks`;
  const passColumns = `name, clean, holder, held_until, runs, started_at, ended_at, reason`;
  /** What a worker counts only grows: by this, an older count that comes late is told from a newer one. */
  const sum = (row: string) =>
    ["done", "failed", "dead", "cancelled", "throttled", "released", "lost"]
      .map((of) => `${row}.${of}`)
      .join(" + ");

  return {
    addJobTypes: `insert into ${t.job_type} (queue, name, laned) values (:rows.queue, :rows.name, :rows.laned) on conflict (queue, name, laned) do nothing`,
    findJobTypes: `select id, queue, name, laned from ${t.job_type} where queue = :rows.queue and name = :rows.name and laned = :rows.laned`,
    jobTypesById: `select id, queue, name, laned from ${t.job_type} where id in (select value from json_each(:ids))`,
    // Plain jobs whose ids nobody has seen and that differ in nothing but their input. Their numbers follow each other.
    insertAlike: [
      `insert into ${t.job} (id, job_type, created_at, input, max_attempts, timeout_ms)
        values (:rows.id, :jobType, :now, :rows.input, :maxAttempts, :timeout)`,
      `insert into ${t.ready} (seq, job_type, rank, run_at) select seq, :jobType, :rank, :now from ${t.job} where seq > last_insert_rowid() - :count`,
    ],
    // Plain jobs whose ids nobody has seen.
    insertNew: [
      `insert into ${t.job} (id, job_type, created_at, input, max_attempts, timeout_ms, extras)
        values (:rows.id, :rows.jobType, :now, :rows.input, :rows.maxAttempts, :rows.timeout, :rows.extras)`,
      `insert into ${t.ready} (seq, job_type, rank, run_at)
        values (${seq.of(":rows.id")}, :rows.jobType, :rows.rank, max(:now, coalesce(:rows.runAt, :now + coalesce(:rows.delay, 0))))`,
    ],
    insertJobs: [
      `insert into ${t.job} (id, job_type, created_at, input, max_attempts, timeout_ms, deadline_at, parent_id, key, lane, context, extras)
        select :rows.id, :rows.jobType, :now, :rows.input, :rows.maxAttempts, :rows.timeout, :rows.deadline, :rows.parent,
          :rows.key, :rows.lane, :rows.context, :rows.extras
        where not exists (select 1 from ${t.used_id} d where d.id = :rows.id)
        on conflict (id) do nothing`,
      `insert into ${t.lane_wakeup} (job_type, lane, at)
        select :rows.jobType, :rows.laneId, max(iif(:rows.slotted, 0, :now), coalesce(:rows.runAt, :now + coalesce(:rows.delay, 0))) where :rows.laneId is not null
        on conflict (job_type, lane) do update set at = min(at, excluded.at)`,
      `insert into ${t.ready} (seq, job_type, rank, run_at, lane)
        select j.seq, :rows.jobType, :rows.rank, max(iif(:rows.slotted, 0, :now), coalesce(:rows.runAt, :now + coalesce(:rows.delay, 0))), :rows.laneId
        from ${t.job} j where j.id = :rows.id and not exists (select 1 from ${t.history} h where h.seq = j.seq)
        on conflict (seq) do nothing returning :rows.id as id`,
    ],
    takeKeys: `
      insert into ${t.unique_key} (scope, key, id, expires_at) values (:rows.scope, :rows.key, :rows.id, :now + :rows.forMs)
      on conflict (scope, key) do nothing returning id`,
    findKeys: `
      select u.scope, u.key, u.id,
        coalesce(u.expires_at <= :now, true) and not exists (select 1 from ${t.ready} r where r.seq = ${seq.of("u.id")}) as stale
      from ${t.unique_key} u where u.scope = :rows.scope and u.key = :rows.key`,
    takeStaleKeys: `
      update ${t.unique_key} set id = :rows.id, expires_at = :now + :rows.forMs
      where scope = :rows.scope and key = :rows.key and id = :rows.holder and coalesce(expires_at <= :now, true)
        and not exists (select 1 from ${t.ready} r where r.seq = ${seq.of(`${t.unique_key}.id`)})
      returning id`,
    findJobs: `select id from ${t.job} where id in (select value from json_each(:ids))`,
    findUsed: `
      select id, null as job from ${t.job} where id in (select value from json_each(:ids))
      union all
      select id, job from ${t.used_id} where id in (select value from json_each(:ids))`,
    // What waits for others, or to be resumed, goes on waiting: only its time is another. The enqueue that rewrote the job last is noted:
    // its input is the one that runs, and sent again it would run once more.
    replaceQueued: [
      `update ${t.ready} set job_type = :rows.jobType, rank = :rows.rank, lane = :rows.laneId,
          run_at = case when waits is null then max(:now, coalesce(:rows.runAt, :now + coalesce(:rows.delay, 0))) else run_at end,
          due_at = case when waits is null then due_at else max(:now, coalesce(:rows.runAt, :now + coalesce(:rows.delay, 0))) end
        where seq = ${seq.of(":rows.id")} and token is null and not begun`,
      `insert into ${t.used_id} (id, at, job)
        select :rows.sent, :now, :rows.id from ${t.ready} r where r.seq = ${seq.of(":rows.id")} and r.token is null and not r.begun
        on conflict (job) where job is not null do update set id = excluded.id, at = excluded.at`,
      `update ${t.job} set job_type = :rows.jobType, input = :rows.input, max_attempts = :rows.maxAttempts, timeout_ms = :rows.timeout, deadline_at = :rows.deadline,
          lane = :rows.lane, context = :rows.context, extras = :rows.extras
        where id = :rows.id and exists (select 1 from ${t.ready} r where r.seq = ${t.job}.seq and r.token is null and not r.begun) returning id`,
    ],

    claimLevel: [
      `insert into ${t.claim} (session, ids)
        with filed (ids) as materialized (
          select json_group_array(seq) from (
            select r.seq from ${t.ready} r
            where r.job_type = :jobType and r.rank = :rank and r.token is null and r.run_at <= :now and r.run_at >= :runAt and ${alive} and ${open(":queue")}
            order by r.run_at, r.seq limit :limit))
        select :session, ids from filed where ids <> '[]'`,
      ...take,
    ],
    claim: [`insert into ${t.claim} (session, ids) with recursive ${scope},${level}${fileClaim}`, ...take],
    checkDue: `
      with ${scope}
      select :now as now,
        min(${firstDue("scope", (runAt) => runAt)},
          coalesce((select min(q.cool_until) from ${t.queue} q where q.cool_until > :now
            and exists (select 1 from json_each(:queues) w where w.value ->> 'queue' is null or w.value ->> 'queue' = q.name)), ${WAITING_AT})
        ) as due_at,
        (select min(s.lease_until) from ${t.session} s where s.closed_at is null) as expires_at,
        (select json_group_array(distinct l.queue) from ${t.job_type} l where l.laned) as laned,
        (select json_group_array(q.name) from ${t.queue} q where q.limited) as limited,
        (select case when count(*) > 0 then json_group_array(q.name) end from ${t.queue} q where q.drain_at is not null) as draining`,

    openSession: `
      insert into ${t.session} (id, kind, worker_id, name, host, pid, version, queues, names, runtime, release, versions, quiet_at, lease_ms, started_at, beat_at, lease_until)
      values (:id, :kind, :workerId, :name, :host, :pid, :version, :queues, :names, :runtime, :release, :versions, :quietAt, :leaseMs, :now, :now, :now + :leaseMs)
      on conflict (id) do nothing returning id`,
    renew: `
      update ${t.session} set beat_at = :now, lease_until = :now + lease_ms + :ahead where id = :session and lease_until > :now
      returning stop_requested_at is not null as stop, quiet_at,
        (select json_group_array(json_object('id', c.id, 'token', c.token, 'pause', json(iif(c.pause, 'true', 'false')), 'reason', c.reason)) from ${t.cancel} c where c.session = :session) as requests,
        (select json_group_array(json_object('token', token, 'held', json(held), 'gone', json(gone))) from (
          select c.token, json_group_array(o.value) filter (where r.seq is not null) as held, json_group_array(o.value) filter (where r.seq is null) as gone
          from ${t.claim} c cross join json_each(c.ids) o left join ${t.ready} r on r.seq = o.value and r.token = c.token and r.session = c.session
          where c.session = :session group by c.token)) as claims`,
    findSession: `select id from ${t.session} where id = :session`,
    closeSession: [
      `delete from ${t.claim} where session = :session
        and not exists (select 1 from json_each(ids) o join ${t.ready} r on r.seq = o.value and r.token = ${t.claim}.token)`,
      `update ${t.session} set lease_until = min(lease_until, :now),
        closed_at = coalesce(closed_at, case when not exists (select 1 from ${t.claim} c where c.session = :session) then :now end)
        where id = :session`,
    ],
    orphans: `
      ${held}
      where s.id is null or s.lease_until <= :now
      order by r.seq limit :limit`,
    heldJobs: `
      ${held}
      where c.token in (select w.token from ${t.ready} w where w.seq in ${seq.among(":ids")}) and r.seq in ${seq.among(":ids")} order by r.seq`,
    heldUnder: `
      ${held}
      where c.session = :session and c.token in (select value from json_each(:tokens)) and r.session = c.session order by r.seq`,
    deleteEndedSessions: [
      `delete from ${t.claim}
        where not exists (select 1 from ${t.session} s where s.id = ${t.claim}.session and s.lease_until > :now)
          and not exists (select 1 from json_each(ids) o join ${t.ready} r on r.seq = o.value and r.token = ${t.claim}.token)`,
      `delete from ${t.cancel} where not exists (
          select 1 from ${t.ready} r where r.seq = ${seq.of(`${t.cancel}.id`)} and (r.token = ${t.cancel}.token or (r.token is null and r.waits = 'resume')))`,
      `delete from ${t.session} where closed_at < :now - 604800000`,
      `update ${t.session} set closed_at = lease_until where closed_at is null and lease_until <= :now
        and not exists (select 1 from ${t.claim} c where c.session = ${t.session}.id) returning id`,
    ],
    refile: [
      `update ${t.session} set closed_at = null where closed_at is not null and id in (
        select r.session from ${t.ready} r where r.token is not null and not exists (
          select 1 from ${t.claim} c, json_each(c.ids) o where c.token = r.token and o.value = r.seq))`,
      `insert into ${t.claim} (token, session, ids)
      select r.token, min(r.session), json_group_array(r.seq) from ${t.ready} r
      where r.token is not null and not exists (
        select 1 from ${t.claim} c, json_each(c.ids) o where c.token = r.token and o.value = r.seq)
      group by r.token
      on conflict (token) do update set ids = (
        select json_group_array(o.value) from (
          select value from json_each(${t.claim}.ids) union all select value from json_each(excluded.ids)) o)
      returning token`,
    ],

    // Of one claim and without output, what most jobs come to. It answers with those that were not its to end.
    doneAlike: [
      // All columns in the table's order, so that none is copied once more, and the session is looked at once.
      `insert into ${t.history} (${failedColumns})
        select r.seq, r.job_type, r.rank, 'done', r.attempt, r.crashes, r.throttles, r.run_at, r.started_at, :now, r.session, null, r.errors, r.progress, null
        from ${t.session} s cross join json_each(:rowKeys) o cross join ${t.ready} r on r.seq = o.value
        where s.id = :session and s.lease_until > :now and r.token = :token and r.session = s.id`,
      `select o.value as row_key, 0 as watched from (select 1 where changes() < :count) cross join json_each(:rowKeys) o
        where not exists (select 1 from ${t.ready} r where r.seq = o.value and r.token = :token and ${own("r")})`,
      `select r.seq as row_key, 1 as watched from ${t.ready} r where r.watched and r.token = :token and +r.seq in (select value from json_each(:rowKeys)) and ${own("r")}`,
      `delete from ${t.ready} where seq in (select value from json_each(:rowKeys)) and token = :token and ${own(t.ready)}`,
      `delete from ${t.claim} where token in (select value from json_each(:spent)) and ${own(t.claim)}`,
    ],
    // A done job keeps its row's count of attempts, crashes and errors, so only its output travels.
    done: [
      `insert into ${t.history} (${historyColumns})
        select r.seq, r.job_type, r.rank, 'done', r.attempt, r.crashes, r.throttles, r.run_at, r.started_at, :now, r.session,
          :rows.output, r.errors, r.progress
        from ${t.ready} r where r.seq = :rows.rowKey and r.token = :rows.token and ${own("r")}`,
      `delete from ${t.ready} where seq = :rows.rowKey and token = :rows.token and ${own(t.ready)} returning seq as row_key, watched`,
      `delete from ${t.claim} where token in (select value from json_each(:spent)) and ${own(t.claim)}`,
    ],
    end: end(own),
    again: again(own),
    endOrphans: end(orphaned),
    againOrphans: again(orphaned),
    coolDown: `
      update ${t.queue} set
        cool_steps = case when cool_at > :now - 120000 then min(cool_steps + 1, 30) else 1 end,
        cool_until = :now + min(cool_max_ms, cool_base_ms * (1 << case when cool_at > :now - 120000 then min(cool_steps, 30) else 0 end)),
        cool_at = :now
      where cool_base_ms is not null and (cool_until is null or cool_until <= :now)
        and name in (select l.queue from ${t.ready} r join ${t.job_type} l on l.id = r.job_type where r.seq in ${seq.among(":ids")})
      returning name`,
    progress: `
      update ${t.ready} set progress = :value where seq = ${seq.of(":id")} and token = :token and ${own(t.ready)} returning :id as id`,

    get: `
      select * from (${live} where r.seq = ${seq.of(":id")} union all ${ended} where h.seq = ${seq.of(":id")}) one limit 1`,
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
      select j.id, r.token, r.session, r.attempt, r.errors, r.begun, r.watched, j.key from ${t.ready} r join ${t.job} j on j.seq = r.seq
      where r.seq in ${seq.among(":ids")} order by r.seq`,
    endQueued: [
      `insert into ${t.history} (${historyColumns})
        select r.seq, r.job_type, r.rank, :rows.state, r.attempt, r.crashes, r.throttles, r.run_at, r.started_at, :now, r.session, null, :rows.errors, r.progress
        from ${t.ready} r where r.seq = ${seq.of(":rows.id")} and r.token is null`,
      `delete from ${t.unique_key} where id in (select value from json_each(:keyed)) and (expires_at is null or expires_at <= :now)
        and exists (select 1 from ${t.history} h where h.seq = ${seq.of(`${t.unique_key}.id`)})`,
      `delete from ${t.ready} where seq = ${seq.of(":rows.id")} and token is null returning :rows.id as id, watched`,
    ],
    // A pause does not take the place of a cancel that was asked of the same claim before. What the row has is what whoever gives
    // the job back goes by.
    askHolder: [
      `insert into ${t.cancel} (id, session, token, reason, pause, asked_at) values (:rows.id, :rows.session, :rows.token, :rows.reason, :rows.pause, :now)
        on conflict (id) do update set session = excluded.session, token = excluded.token, pause = excluded.pause and (pause or token <> excluded.token),
          reason = case when excluded.pause and not pause and token = excluded.token then reason else excluded.reason end`,
      `update ${t.ready} set request = case when :rows.pause and coalesce(request, ${PAUSE}) = ${PAUSE} then ${PAUSE} else ${CANCEL} end
        where seq = ${seq.of(":rows.id")} and token = :rows.token`,
    ],
    requestsOf: `select id, token, reason, pause from ${t.cancel} where id in (select value from json_each(:ids)) order by id`,
    strayRequests: `
      select x.id from ${t.cancel} x join ${t.ready} r on r.seq = ${seq.of("x.id")}
      where r.token is null and r.waits = 'resume' order by x.id limit :limit`,
    withdraw: [
      `update ${t.ready} set request = null where seq in ${seq.among(":ids")} and (request = ${PAUSE} or (request = ${CANCEL} and not :pauses))`,
      `delete from ${t.cancel} where id in (select value from json_each(:ids)) and (pause or not :pauses) returning id`,
    ],
    // What waits by itself looks anew when it is resumed; what was due keeps its time, and what waits for others (after) its count.
    pauseQueued: `
      update ${t.ready} set due_at = case when waits is null then run_at when waits = 'resume' or not begun then due_at end,
        run_at = ${WAITING_AT}, waits = 'resume', note = :note
      where seq in ${seq.among(":ids")} and token is null returning ${seq.id(`${t.ready}.seq`)} as id`,
    resumeQueued: `
      update ${t.ready} set note = null,
        waits = case when not begun and pending > 0 then 'jobs' end,
        due_at = case when not begun and pending > 0 then due_at end,
        run_at = case when not begun and pending > 0 then run_at else max(:now, coalesce(due_at, 0)) end
      where seq in ${seq.among(":ids")} and token is null and waits = 'resume' returning ${seq.id(`${t.ready}.seq`)} as id, lane is not null as laned`,
    forget: [
      // A key that is held for a while outlives its job, unless the job is deleted by hand (:freed).
      `delete from ${t.unique_key} where id in (select value from json_each(:ids)) and (:freed or expires_at is null or expires_at <= :now)
        and not exists (select 1 from ${t.ready} r where r.seq = ${seq.of(`${t.unique_key}.id`)} and r.token is not null)`,
      `delete from ${t.history} where seq in ${seq.among(":ids")} returning ${seq.id(`${t.history}.seq`)} as id, state`,
      `delete from ${t.ready} where seq in ${seq.among(":ids")} and token is null returning ${seq.id(`${t.ready}.seq`)} as id, null as state`,
      `delete from ${t.member} where seq in ${seq.among(":ids")} and not exists (select 1 from ${t.ready} r where r.seq = ${t.member}.seq)`,
      noted(":ids"),
      // Its numbers are needed above, so it goes after them; what is held has its row still.
      `delete from ${t.job} where id in (select value from json_each(:ids))
        and not exists (select 1 from ${t.ready} r where r.seq = ${t.job}.seq)`,
      `delete from ${t.step} where job in (select value from json_each(:ids)) and not exists (select 1 from ${t.job} j where j.id = ${t.step}.job)`,
      `delete from ${t.dependency} where job in (select value from json_each(:ids)) and not exists (select 1 from ${t.job} j where j.id = ${t.dependency}.job)`,
      `delete from ${t.log} where job in (select value from json_each(:ids)) and not exists (select 1 from ${t.job} j where j.id = ${t.log}.job)`,
    ],
    // A row without a job's state came with a move from Postgres, where deleted jobs leave one.
    deleteExpiredIds: [
      `delete from ${t.job} where id in (select id from ${t.used_id} where at <= :now - ${RESENT_MS} order by at limit :limit)
        and not exists (select 1 from ${t.ready} r where r.seq = ${t.job}.seq) and not exists (select 1 from ${t.history} h where h.seq = ${t.job}.seq)`,
      `delete from ${t.used_id} where id in (select id from ${t.used_id} where at <= :now - ${RESENT_MS} order by at limit :limit) returning id`,
    ],
    expiredKeys: `
      select u.expires_at, u.scope, u.key, u.id, exists (select 1 from ${t.ready} r where r.seq = ${seq.of("u.id")}) as live from ${t.unique_key} u
      where u.expires_at <= :now and (u.expires_at, u.scope, u.key) > (:at, :scope, :key) order by u.expires_at, u.scope, u.key limit :limit`,
    deleteExpiredKeys: `
      delete from ${t.unique_key} where scope = :rows.scope and key = :rows.key and id = :rows.id and expires_at <= :now
        and not exists (select 1 from ${t.ready} r where r.seq = ${seq.of(`${t.unique_key}.id`)}) returning id`,
    findEnded: `
      select j.id, j.key, j.lane, j.extras, l.name, l.queue, h.state from ${t.history} h join ${t.job} j on j.seq = h.seq join ${t.job_type} l on l.id = h.job_type
      where h.seq in ${seq.among(":ids")} order by h.seq desc`,
    revive: [
      `insert into ${t.ready} (seq, job_type, rank, run_at, begun, watched, errors, lane)
        select h.seq, h.job_type, h.rank, :now, 1, 1, h.errors, (
          select a.id from ${t.job_type} l join ${t.job} j on j.seq = h.seq join ${t.lane} a on a.queue = l.queue and a.key = j.lane where l.id = h.job_type and l.laned
        ) from ${t.history} h where h.seq in ${seq.among(":ids")}`,
      `delete from ${t.history} where seq in ${seq.among(":ids")} returning ${seq.id(`${t.history}.seq`)} as id`,
    ],
    inputsOf: `select id, input from ${t.job} where id in (select value from json_each(:ids))`,
    setInputs: `update ${t.job} set input = :rows.input where id = :rows.id`,
    runNow: [
      `update ${t.step} set wake_at = :now where job in (
          select j.id from ${t.ready} r join ${t.job} j on j.seq = r.seq
          where r.seq in ${seq.among(":ids")} and r.token is null and r.run_at > :now and r.waits = 'sleep')
        and state = 'open' and kind in ('sleep', 'step', 'undo')`,
      `update ${t.ready} set run_at = :now where seq in ${seq.among(":ids")} and token is null and run_at > :now and run_at < ${WAITING_AT}
        and coalesce(waits, 'sleep') = 'sleep' returning ${seq.id(`${t.ready}.seq`)} as id`,
    ],
    editable,
    lockEditable: editable,
    // What waits for others keeps its time until they have ended.
    editQueued: [
      `update ${t.ready} set job_type = coalesce(:rows.jobType, job_type), rank = coalesce(:rows.rank, rank), lane = coalesce(:rows.laneId, lane),
          run_at = case when waits is null then coalesce(max(:now, coalesce(:rows.runAt, :now + :rows.delay)), run_at) else run_at end,
          due_at = case when waits is null then due_at else coalesce(max(:now, coalesce(:rows.runAt, :now + :rows.delay)), due_at) end,
          note = case when coalesce(:rows.runAt, :rows.delay) is null or waits = 'resume' then note end
        where seq = ${seq.of(":rows.id")} and token is null returning :rows.id as id`,
      `update ${t.job} set job_type = :rows.jobType where id = :rows.id and :rows.jobType is not null`,
    ],
    editEnded: [
      `update ${t.history} set job_type = coalesce(:rows.jobType, job_type), rank = coalesce(:rows.rank, rank) where seq = ${seq.of(":rows.id")} returning :rows.id as id`,
      `update ${t.job} set job_type = :rows.jobType where id = :rows.id and :rows.jobType is not null`,
    ],

    queueRows: `
      select name, paused_at, drain_at, cool_until, cool_base_ms, cool_max_ms, running, limited, settings from ${t.queue} where :names is null or name in (select value from json_each(:names))`,
    queueCounts: `
      select l.queue, l.name, :now as now,
        count(r.seq) filter (where r.token is null and r.run_at <= :now) as ready,
        count(r.seq) filter (where r.token is null and r.run_at > :now and r.run_at < ${WAITING_AT} and coalesce(r.waits, 'sleep') = 'sleep') as scheduled,
        count(r.seq) filter (where r.token is not null) as running,
        count(r.seq) filter (where r.token is null and (r.run_at >= ${WAITING_AT} or r.run_at > :now and r.waits in ('signal', 'jobs'))) as waiting,
        min(r.run_at) filter (where r.token is null and r.run_at <= :now) as oldest,
        min(r.run_at) filter (where r.token is null and r.run_at > :now and r.run_at < ${WAITING_AT} and coalesce(r.waits, 'sleep') = 'sleep') as next
      from ${t.job_type} l left join ${t.ready} r on r.job_type = l.id group by l.queue, l.name`,
    setQueue: `
      insert into ${t.queue} as q (name, paused_at, drain_at, settings, cool_base_ms, cool_max_ms, limited, adopt_until)
      values (:name, case when :paused then :now end, case when :draining then :now end, :settings, :coolBase, :coolMax, coalesce(:limited, false),
        case when :limited then :now + 15000 end)
      on conflict (name) do update set
        limited = coalesce(:limited, q.limited), limited_until = null,
        adopt_until = case when :limited and not q.limited then :now + 15000 else q.adopt_until end,
        paused_at = case when :paused is null then q.paused_at when :paused then coalesce(q.paused_at, :now) end,
        drain_at = case when :draining and q.paused_at is null then coalesce(q.drain_at, :now) when :paused is null then q.drain_at end,
        settings = coalesce(:settings, q.settings),
        cool_base_ms = case when :settings is null then q.cool_base_ms else :coolBase end,
        cool_max_ms = case when :settings is null then q.cool_max_ms else :coolMax end`,
    // One probe for each level, as a claim does: jobs that are due later are not walked over. What runs is found by its claim.
    endDrains: `
      with recursive scope as materialized (
        select l.id as job_type, l.queue from ${t.job_type} l join ${t.queue} q on q.name = l.queue where q.drain_at is not null
      ),${levels}
      update ${t.queue} as q set paused_at = :now, drain_at = null
      where q.drain_at is not null
        and not exists (
          select 1 from scope s join level_of l on l.job_type = s.job_type
          where s.queue = q.name
            and exists (select 1 from ${t.ready} r where r.job_type = l.job_type and r.rank = l.rank and r.token is null and r.run_at <= :now))
        and not exists (
          select 1 from ${t.claim} c cross join json_each(c.ids) o
            cross join ${t.ready} r on r.seq = o.value and r.token = c.token join ${t.job_type} l on l.id = r.job_type
          where l.queue = q.name)
        -- Nor one that waits for a job that has ended, of which it will hear in a moment.
        and not exists (
          select 1 from ${t.dependency} d join ${t.ready} r on r.seq = ${seq.of("d.job")} join ${t.job_type} l on l.id = r.job_type
          where l.queue = q.name and ${unheard(t)})
      returning name`,
    holds: `select name, queues, reason, set_at from ${t.hold} order by name`,
    setHold: `
      insert into ${t.hold} (name, queues, reason, set_at) values (:name, :queues, :reason, :now)
      on conflict (name) do update set queues = excluded.queues, reason = excluded.reason`,
    clearHold: `delete from ${t.hold} where name = :name returning name`,
    workers: `
      select s.id, s.kind, s.worker_id, s.name, s.host, s.pid, s.version, s.queues, s.names, s.runtime, s.release, s.versions, s.started_at, s.beat_at, s.lease_until,
        s.stop_requested_at, s.quiet_at,
        (select json_group_array(${seq.id("r.seq")}) from ${t.claim} c cross join json_each(c.ids) o
          join ${t.ready} r on r.seq = o.value and r.token = c.token where c.session = s.id) as jobs
      from ${t.session} s where s.lease_until > :now and s.closed_at is null order by s.started_at, s.id`,
    // One that closes gives its lease up; what ran out whole belonged to a process that died or was cut off.
    lostWorkers: `
      select s.id, s.kind, s.worker_id, s.name, s.host, s.pid, s.version, s.queues, s.names, s.runtime, s.release, s.versions, s.started_at, s.beat_at, s.lease_until,
        s.stop_requested_at, s.quiet_at,
        (select json_group_array(${seq.id("r.seq")}) from ${t.claim} c cross join json_each(c.ids) o
          join ${t.ready} r on r.seq = o.value and r.token = c.token where c.session = s.id) as jobs
      from ${t.session} s
      where s.kind = 'worker' and s.lease_until <= :now and s.lease_until > :now - 3600000 and s.lease_until >= s.beat_at + s.lease_ms
        and not exists (select 1 from ${t.session} o where o.worker_id = s.worker_id and o.started_at > s.started_at)
      order by s.lease_until desc limit 20`,
    overdueClaims: `
      select count(*) as n from (
        select 1 from ${t.claim} c left join ${t.session} s on s.id = c.session cross join json_each(c.ids) o
          join ${t.ready} r on r.seq = o.value and r.token = c.token
        where s.id is null or s.lease_until < :now - :grace limit :most)`,
    stopWorkers: `
      update ${t.session} set stop_requested_at = :now
      where (:sessions is null or id in (select value from json_each(:sessions))) and kind = 'worker' and lease_until > :now and closed_at is null
      returning id`,
    quietWorkers: `
      update ${t.session} set quiet_at = coalesce(quiet_at, :now)
      where id in (select value from json_each(:sessions)) and kind = 'worker' and lease_until > :now and closed_at is null
      returning id`,
    resumeWorkers: `
      update ${t.session} set quiet_at = null
      where id in (select value from json_each(:sessions)) and kind = 'worker' and lease_until > :now and closed_at is null
      returning id`,
    definitions: `select name, has_unique, has_lane, is_machine, lanes, budget from ${t.definition}`,
    registerDefinitions: `
      insert into ${t.definition} (name, has_unique, has_lane, is_machine, lanes, budget, seen_at) values (:rows.name, :rows.unique, :rows.lane, :rows.machine, :rows.lanes, :rows.budget, :now)
      on conflict (name) do update set has_unique = excluded.has_unique, has_lane = excluded.has_lane, is_machine = excluded.is_machine,
        lanes = excluded.lanes, budget = excluded.budget, seen_at = excluded.seen_at`,
    getState: `select value from ${t.state} where key = :key`,
    setState: `
      insert into ${t.state} (key, value, set_at) values (:key, :value, :now)
      on conflict (key) do update set value = excluded.value, set_at = excluded.set_at`,
    deleteState: `delete from ${t.state} where key = :key returning key`,
    stateRow: `select key, value, set_at, :now as now from ${t.state} where key = :key`,
    stateRows: `
      select key, value, set_at, :now as now from ${t.state} where key >= :from and key < :until order by key desc limit :limit`,
    swapState: `update ${t.state} set value = :value, set_at = :now where key = :key and value = :was returning key`,

    scheduleRows: `
      select ${scheduleColumns}, :now as now from ${t.schedule} where :name is null or name = :name order by name`,
    // A page of slots in their order, so that the first that is not due says when to look; then, beside the first page, all that
    // wait for a job: they are never in the way of what is due.
    dueSchedules: `
      select * from (
        select name, next_at, null as jobs, :now as now from ${t.schedule}
        where paused_at is null and fault is null and (next_at, name) > (:at, :name)
        order by next_at, name limit :limit
      ) s
      union all
      select name, next_at, coalesce(jobs, '[]'), :now from ${t.schedule}
      where :at = 0 and waiting_at is not null and paused_at is null and fault is null and (next_at is null or next_at > :now)`,
    lockSchedule: `select ${scheduleColumns}, :now as now from ${t.schedule} where name = :name`,
    claimSchedule: `
      select ${scheduleColumns}, :now as now from ${t.schedule}
      where name = :name and paused_at is null and fault is null and (next_at <= :now or waiting_at is not null)`,
    addSchedule: `
      insert into ${t.schedule} (name, spec, next_at, anchor_at, created_at) values (:name, :spec, :nextAt, :anchorAt, :now)
      on conflict (name) do nothing returning name`,
    setSchedule: `
      update ${t.schedule} set spec = :spec, edits = :edits, next_at = :nextAt, anchor_at = :anchorAt, waiting_at = :waitingAt,
        paused_at = case when :paused then coalesce(paused_at, :now) end, fault = null, fault_at = null
      where name = :name returning name`,
    advanceSchedule: `
      update ${t.schedule} set next_at = :nextAt, waiting_at = :waitingAt, last_run_at = coalesce(:lastRunAt, last_run_at),
        last_job_id = coalesce(:lastJobId, last_job_id), jobs = :jobs, recent = :recent, fired = fired + :fired, skipped = skipped + :skipped,
        missed = missed + :missed
      where name = :name and next_at is :expected returning name`,
    disableSchedule: `
      update ${t.schedule} set fault = :fault, fault_at = :now where name = :name and fault is null returning name`,
    occurrencesMade: `select at from ${t.occurrence} where schedule = :name and at >= :from and at < :to order by at`,
    newestOccurrences: `select at, job from ${t.occurrence} where schedule = :name order by at desc limit :limit`,
    occurrencesAround: `
      select * from (select at, job from ${t.occurrence} where schedule = :name and at < :at order by at desc limit 1)
      union all select * from (select at, job from ${t.occurrence} where schedule = :name and at > :at order by at limit 1)`,
    occurrenceJobs: `
      select j.id, ${state} as state, r.attempt, r.crashes, r.throttles, r.run_at, r.started_at, null as ended_at, ${ofSlot("r")}
      from json_each(:ids) o cross join ${t.job} j on j.id = o.value cross join ${t.ready} r on r.seq = j.seq
      union all
      select j.id, h.state, h.attempt, h.crashes, h.throttles, h.run_at, h.started_at, h.ended_at, ${ofSlot("h")}
      from json_each(:ids) o cross join ${t.job} j on j.id = o.value cross join ${t.history} h on h.seq = j.seq`,
    addOccurrences: `
      insert into ${t.occurrence} (schedule, at, job, made_at) values (:rows.name, :rows.at, :rows.job, :rows.madeAt)
      on conflict (schedule, at) do update set job = excluded.job, made_at = excluded.made_at`,
    removeSchedule: `delete from ${t.schedule} where name = :name returning name`,
    liveJobs: `
      select j.id from ${t.job} j join ${t.ready} r on r.seq = j.seq where j.id in (select value from json_each(:ids))`,
    budgetRows: `select ${budgetColumns}, :now as now from ${t.budget} order by name`,
    lockBudget: `select ${budgetColumns}, :now as now from ${t.budget} where name = :name`,
    addBudget: `
      insert into ${t.budget} (name, amount, per_ms, burst, tuned, standard, tokens, filled_at)
      values (:name, :amount, :per, :burst, :tuned, :standard, :burst, :now) on conflict (name) do nothing returning name`,
    setBudget: `
      update ${t.budget} set amount = :amount, per_ms = :per, burst = :burst, tuned = :tuned, standard = :standard, tokens = :tokens,
        filled_at = :filledAt, chunks = :chunks
      where name = :name returning name`,
    removeBudget: `delete from ${t.budget} where name = :name returning name`,
    passRows: `select ${passColumns}, :now as now from ${t.pass} order by name`,
    lockPass: `select ${passColumns}, :now as now from ${t.pass} where name = :name`,
    addPass: `insert into ${t.pass} (name, clean) values (:name, true) on conflict (name) do nothing returning name`,
    setPass: `
      update ${t.pass} set clean = :clean, holder = :holder, held_until = :heldUntil, runs = :runs, started_at = :startedAt,
        ended_at = :endedAt, reason = :reason
      where name = :name returning name`,
    // The whole of one worker's minute each time, so that writing it twice is writing it once.
    putMetrics: `
      insert into ${t.metric} as m (minute, queue, name, worker, done, failed, dead, cancelled, throttled, released, lost, ran, waited)
      values (:rows.minute, :rows.queue, :rows.name, :rows.worker, :rows.done, :rows.failed, :rows.dead, :rows.cancelled, :rows.throttled, :rows.released, :rows.lost, :rows.ran, :rows.waited)
      on conflict (minute, queue, name, worker) do update set done = excluded.done, failed = excluded.failed, dead = excluded.dead, cancelled = excluded.cancelled,
        throttled = excluded.throttled, released = excluded.released, lost = excluded.lost, ran = excluded.ran, waited = excluded.waited
      where ${sum("m")} <= ${sum("excluded")}`,
    metrics: `
      select minute, queue, name, worker, done, failed, dead, cancelled, throttled, released, lost, ran, waited from ${t.metric}
      where minute >= :since and minute < :until
        and (:queues is null or queue in (select value from json_each(:queues))) and (:names is null or name in (select value from json_each(:names)))
      order by minute, queue, name, worker`,
    // Histograms are lists in brackets: with commas between, and brackets around, they are one list (values/histogram.ts).
    metricsTogether: `
      select minute, '' as queue, '' as name, '' as worker, sum(done) as done, sum(failed) as failed, sum(dead) as dead, sum(cancelled) as cancelled,
        sum(throttled) as throttled, sum(released) as released, sum(lost) as lost, group_concat(ran, ',') as ran, group_concat(waited, ',') as waited
      from ${t.metric} where minute >= :since and minute < :until group by minute order by minute`,
    queueMinutes: `
      select minute, queue, sum(done) as done, sum(failed) as failed, sum(dead) as dead
      from ${t.metric} where minute >= :since and minute < :until group by minute, queue order by minute, queue`,
    putMetricSums: `
      insert into ${t.metric_sum} (name, minute, done, failed, dead, cancelled, throttled, released, lost, ran, waited)
      values (:rows.name, :rows.minute, :rows.done, :rows.failed, :rows.dead, :rows.cancelled, :rows.throttled, :rows.released, :rows.lost, :rows.ran, :rows.waited)
      on conflict (name, minute) do update set done = excluded.done, failed = excluded.failed, dead = excluded.dead, cancelled = excluded.cancelled,
        throttled = excluded.throttled, released = excluded.released, lost = excluded.lost, ran = excluded.ran, waited = excluded.waited`,
    metricSums: `
      select minute, '' as queue, name, '' as worker, done, failed, dead, cancelled, throttled, released, lost, ran, waited from ${t.metric_sum}
      where name in (select value from json_each(:names)) and minute >= :since and minute < :until order by name, minute`,
    summedHours: `
      select distinct minute - minute % 3600000 as hour from ${t.metric_sum} where name = '' and minute >= :since and minute < :until`,
    dropMetrics: `delete from ${t.metric} where minute >= :since and minute < :until and worker <> ''`,
    putGauges: `
      insert into ${t.gauge} (minute, source, name, value) values (:rows.minute, :rows.source, :rows.name, :rows.value)
      on conflict (minute, source, name) do update set value = excluded.value`,
    gauges: `
      select minute, source, name, value from ${t.gauge}
      where minute >= :since and minute < :until
        and (:sources is null or source in (select value from json_each(:sources)))
      order by minute, source, name`,
    // By an index of their own: a month of all that is measured is a million rows and more.
    namedGauges: `
      select g.minute, g.source, g.name, g.value from json_each(:names) w cross join ${t.gauge} g on g.name = w.value
      where g.minute >= :since and g.minute < :until and (:sources is null or g.source in (select value from json_each(:sources)))
      order by g.minute, g.source, g.name`,
    // What workers said of themselves is added up over them; limits that are followed have a `running` of their own.
    load: `
      select g.minute - g.minute % :step as at, case when g.name = 'ready' then g.source else '' end as source, g.name,
        sum(g.value) as sum, count(distinct g.minute) as minutes
      from json_each(:minutes) m cross join ${t.gauge} g on g.minute = m.value
      where g.name = 'ready' or (g.name in ('running', 'slots') and g.source not like 'queue:%')
      group by 1, 2, 3 order by 1`,
    // `between`, so that it is looked up by name and minute: for an equality SQLite takes the key, and reads all of the minute.
    gaugeSteps: `
      select g.minute - g.minute % :step as at, g.source, g.name, sum(g.value) as sum, count(*) as minutes
      from json_each(:names) w cross join json_each(:minutes) m cross join ${t.gauge} g on g.name = w.value and g.minute between m.value and m.value
      group by 1, 2, 3 order by 1, 2, 3`,
    putEvents: `
      insert into ${t.event} (id, at, event, job, name, queue, attempt, worker, detail)
      values (:rows.id, :rows.at, :rows.event, :rows.job, :rows.name, :rows.queue, :rows.attempt, :rows.worker, :rows.detail)
      on conflict (id) do nothing`,
    events: `
      select id, at, event, job, name, queue, attempt, worker, detail from ${t.event}
      where (:cursor is null or id < :cursor) and (:job is null or job = :job) and id >= :from and at >= :since and at < :until
        and (:events is null or event in (select value from json_each(:events))) and (:queues is null or queue in (select value from json_each(:queues)))
        and (:names is null or name in (select value from json_each(:names)))
      order by id desc limit :limit`,
    putLogLines: `
      insert into ${t.log} (job, id, at, level, attempt, message, details)
      select :rows.job, :rows.id, :rows.at, :rows.level, :rows.attempt, :rows.message, :rows.details
      where exists (select 1 from ${t.job} j where j.id = :rows.job) on conflict do nothing`,
    trimLogLines: `
      delete from ${t.log} where job = :rows.job
        and id < (select o.id from ${t.log} o where o.job = :rows.job order by o.id desc limit 1 offset :skip)`,
    logLines: `
      select id, job, at, level, attempt, message, details from ${t.log} where job = :job order by id desc limit :limit`,
    deleteOldSeries: [
      `delete from ${t.metric} where minute < :metricsBefore`,
      `delete from ${t.metric_sum} where minute < :metricsBefore`,
      `delete from ${t.occurrence} where made_at < :metricsBefore`,
      `delete from ${t.gauge} where minute < :metricsBefore`,
      `delete from ${t.event} where id < :eventsBefore`,
      `delete from ${t.log} where not exists (select 1 from ${t.job} j where j.id = ${t.log}.job)`,
    ],
    ...workflowStatements(t, own),
    ...batchStatements(t),
    ...insightStatements(t, {
      state,
      liveAnd: (more) => liveAmong(every("r", t.ready), more),
      endedAnd: (more) => endedAmong(every("h", t.history), more),
      levels,
    }),
    ...failureStatements(t),

    takeUpkeepTask: `
      insert into ${t.upkeep_task} as d (name, next_at, done_at, by) values (:name, :now + :every, :now, :by)
      on conflict (name) do update set next_at = excluded.next_at, done_at = excluded.done_at, by = excluded.by where d.next_at <= :now returning name`,
    upkeepTasks: `select name, next_at, done_at, by from ${t.upkeep_task} order by name`,
    expired: `
      select ${seq.id("h.seq")} as id, h.seq as row_key, h.state from ${t.history} h join ${t.job_type} l on l.id = h.job_type
      where h.seq > coalesce(cast(:after as integer), 0) and h.seq < ${seq.at(":now - :keep + 1")} and h.state in (select value from json_each(:states)) and h.ended_at <= :now - :keep
        and (:queues is null or l.queue in (select value from json_each(:queues))) and l.queue not in (select value from json_each(:except))
      order by h.seq limit :limit`,
    instance: `select value from ${t.meta} where key = 'instance'`,
    schemaState: `
      select m.version, m.name, m.applied_at, (select value from ${t.meta} where key = :moved) as moved_to,
        (select value from ${t.meta} where key = :movedAt) as moved_at
      from ${t.migration} m order by m.version desc limit 1`,
    writable: `select not (select query_only from pragma_query_only) as writable`,
    now: `select :now as now`,
    ...limitStatements(t, { alive, unstopped, rest, level, nextJobs, firstDue, filed: FILED }),
  };
}
