/**
 * The statements of lanes, limits and breakers for SQLite. Read them beside storage/postgres/statements/limits.ts: same names, same order.
 *
 * Nobody else writes while we do, so nothing is locked here; what Postgres locks, SQLite only reads.
 */
import type { LimitStatementName, Statements, Tables } from "../../catalogue.ts";
import { WAITING_AT } from "../../../jobs/job.ts";
import { MOST_COUNTED } from "../../../jobs/job-bounds.ts";
import { DELETE_AFTER_MS, MARK_AFTER_MS, MOST_RANKS } from "../../../limits/lane-rows.ts";
import { noMachineUnlessNamed, plainUnlessNamed } from "../../../lease/plain-jobs.ts";
import { seqOf } from "../seq.ts";

/** What jobs.ts lends: the pieces that both files are made of. */
export interface Pieces {
  readonly alive: string;
  /** That a queue is neither paused, cooled down nor held. */
  readonly unstopped: (queue: string) => string;
  /** What few jobs have, as one column. */
  readonly rest: string;
  /** The levels (job type, rank, grp, n) of the job types in `scope` in claim order, found as far as a claim needs them. */
  readonly level: string;
  /** The next jobs of these levels, at most so many of each. */
  readonly nextJobs: (most: string) => string;
  /** When the first jobs of the job types in a CTE are due. */
  readonly firstDue: (jobTypes: string, at: (runAt: string, jobType: string) => string) => string;
  /** The claim that the statements before have filed; null: none. */
  readonly filed: string;
}

export function limitStatements(t: Tables, piece: Pieces): Pick<Statements, LimitStatementName> {
  const seq = seqOf(t);
  /** The laned job types in scope. */
  const laned = (where: string) => `
    scope as materialized (
      select l.id as job_type, l.queue, q.value ->> 'group' as grp
      from json_each(:queues) q join ${t.job_type} l on q.value ->> 'queue' is null or l.queue = q.value ->> 'queue'
      where l.laned and (:names is null or l.name in (select value from json_each(:names)))
        and ${noMachineUnlessNamed(t, "l", ":names")}${where}
    )`;
  const inScope = (queue: string) =>
    `exists (select 1 from json_each(:queues) w where w.value ->> 'queue' is null or w.value ->> 'queue' = ${queue})`;
  /** Every (lane, job type, rank) that has rows, for the lanes in :rotations. */
  const wanted = `
    wanted as materialized (
      select w.value ->> 'lane' as lane, w.value ->> 'jobType' as job_type, w.value ->> 'limit' as n from json_each(:rotations) w
    )`;
  const levels = `
    ${wanted},
    level_of (lane, job_type, rank, nth) as (
      select w.lane, w.job_type,
        (select r.rank from ${t.ready} r where r.lane = w.lane and r.job_type = w.job_type and r.token is null order by r.rank limit 1), 1 from wanted w
      union all
      select l.lane, l.job_type,
        (select r.rank from ${t.ready} r where r.lane = l.lane and r.job_type = l.job_type and r.token is null and r.rank > l.rank order by r.rank limit 1), l.nth + 1
      from level_of l where l.rank is not null and l.nth < ${MOST_RANKS}
    )`;
  const plain = plainUnlessNamed(t, "c", "seq", ":names");
  const nextIn = (row: string, after?: string) => {
    const read = (beyond: string, order: string) => `(select r.rank from ${t.ready} r
            where r.lane = ${row}.lane and r.job_type = ${row}.job_type and r.token is null${after === undefined ? "" : ` and r.rank ${beyond} ${after}`}
            order by r.rank${order} limit 1)`;
    return `case when :direction > 0 then ${read(">", "")} else ${read("<", " desc")} end`;
  };
  /**
   * The same in claim order, as far as a claim needs them: `n` is how many jobs are still asked for when it comes to the level. One more is found,
   * of which none is asked for: it tells that the lane has several priorities.
   */
  const levelsToTake = `
    ${wanted},
    level_of (lane, job_type, n, rank, nth) as (
      select w.lane, w.job_type, w.n, ${nextIn("w")}, 1 from wanted w
      union all
      select l.lane, l.job_type, case when ${nextIn("l", "l.rank")} is null then 0 else l.n - (
          select count(*) from (select 1 from ${t.ready} c
            where c.lane = l.lane and c.job_type = l.job_type and c.rank = l.rank and c.token is null and c.run_at <= :now and ${plain} limit :most)) end,
        ${nextIn("l", "l.rank")}, l.nth + 1
      from level_of l where l.rank is not null and l.n > 0 and l.nth < ${MOST_RANKS}
    )`;
  /** Due jobs of the levels behind the last that was found of a lane, if there may be more. */
  const behind = (rotation: string, beyond: string, order: string) => `
            select seq from (
              select c.seq from ${t.ready} c
              where :direction ${rotation} 0 and l.nth = ${MOST_RANKS} and c.lane = l.lane and c.job_type = l.job_type and c.rank ${beyond} l.rank
                and c.token is null and c.run_at <= :now and ${plain}
              order by c.rank${order}, c.run_at, c.seq limit :most)`;
  const due = (level: string) => `
              c.lane = ${level}.lane and c.job_type = ${level}.job_type and c.rank = ${level}.rank and c.token is null and c.run_at <= :now and ${plain}
              order by c.run_at, c.seq`;
  /** A lane whose due jobs are all left alone by a claim without names must not keep others from it. */
  const dueOf = (rotation: string) =>
    `select 1 from ${t.ready} c where c.lane = ${rotation}.lane and c.job_type = ${rotation}.job_type and c.token is null and c.run_at <= :now`;
  const gives = (rotation: string) =>
    `(:names is not null or not exists (${dueOf(rotation)}) or exists (${dueOf(rotation)} and ${plain}))`;
  const take = (counted: string, more = "") => [
    `update ${t.ready} set token = last_insert_rowid(), session = :session, attempt = min(attempt + 1, ${MOST_COUNTED}), started_at = :now, counted = ${counted}
      where seq in (select o.value from ${t.claim} c, json_each(c.ids) o where c.token = ${piece.filed})`,
    `select j.id, r.seq as row_key, r.job_type, r.rank, r.run_at, r.token, r.attempt, r.started_at, r.lane as lane_id, r.counted, j.input, j.max_attempts, ${piece.rest}${more}
      from ${t.claim} c, json_each(c.ids) o cross join ${t.ready} r on r.seq = o.value cross join ${t.job} j on j.seq = r.seq
      where c.token = ${piece.filed}`,
  ];
  /** The lanes that something rang for: in the lines in scope, or (what is given back) in any job type of their queues. */
  const heard = `${laned("")},
        mine as materialized (
          select b.lane from scope s cross join ${t.lane_wakeup} b on b.job_type = s.job_type
          union
          select b.lane from ${t.job_type} l cross join ${t.lane_wakeup} b on b.job_type = l.id and b.back > 0
          where l.laned and l.id not in (select job_type from scope) and ${inScope("l.queue")}
        )`;
  const ring = (select: string) => `
      insert into ${t.lane_wakeup} (job_type, lane, at) ${select}
      on conflict (job_type, lane) do update set at = min(at, excluded.at)`;

  return {
    limitedQueues: `
      select distinct l.queue, true as laned from ${t.job_type} l where l.laned
      union all select q.name, false from ${t.queue} q where q.limited`,
    addLanes: `
      insert into ${t.lane} (queue, key, concurrency, rate_limit, rate_per, weight, used_at)
      values (:rows.queue, :rows.key, :rows.concurrency, :rows.rateLimit, :rows.ratePer, coalesce(:rows.weight, 1), :now)
      on conflict (queue, key) do update set used_at = excluded.used_at`,
    findLanes: `select id, queue, key, used_at < :now - ${MARK_AFTER_MS} as stale from ${t.lane} where queue = :rows.queue and key = :rows.key`,
    wakeLanesOfJobs: ring(`
      select r.job_type, r.lane, min(r.run_at) from ${t.ready} r
      where r.seq in ${seq.among(":ids")} and r.lane is not null and r.run_at < ${WAITING_AT} group by r.job_type, r.lane`),

    // Claim, in this order.
    lockLimitedQueues: `
      select q.name, q.settings, q.running, q.starts, q.adopt_until, :now as now from ${t.queue} q
      where q.limited and ${inScope("q.name")} and ${piece.unstopped("q.name")}
        and (coalesce(q.limited_until, 0) <= :now or exists (select 1 from ${t.returned_capacity} f where f.queue = q.name))
      order by q.name`,
    // Of a claim of \`takeLimited\` all are counted: one of them speaks for the others.
    adopt: `
      insert into ${t.uncounted_job} (queue, id, token)
      select l.queue, ${seq.id("r.seq")}, r.token from ${t.claim} c cross join json_each(c.ids) o
      join ${t.ready} r on r.seq = o.value and r.token = c.token
      join ${t.job_type} l on l.id = r.job_type
      where (select k.counted from json_each(c.ids) e cross join ${t.ready} k on k.seq = e.value and k.token = c.token limit 1) is not 2
        and l.queue in (select value from json_each(:names)) and coalesce(r.counted, 0) & 2 = 0
      on conflict (queue, id, token) do nothing`,
    uncountedJobs: [
      `delete from ${t.uncounted_job} where queue in (select value from json_each(:names))
        and not exists (select 1 from ${t.ready} r where r.seq = ${seq.of(`${t.uncounted_job}.id`)} and r.token = ${t.uncounted_job}.token)`,
      `select queue, count(*) as n from ${t.uncounted_job} where queue in (select value from json_each(:names)) group by queue`,
    ],
    takeWakeups: [
      `with ${heard}
        select b.lane, b.job_type, b.at from mine m cross join ${t.lane_wakeup} b on b.lane = m.lane and b.at < ${WAITING_AT}
        union all select w.lane, w.job_type, 0 from scope s cross join ${t.lane_rotation} w on w.job_type = s.job_type and w.wake_at <= :now
        union all select m.lane, null, null from mine m cross join ${t.lane} a on a.id = m.lane and a.running >= a.concurrency
          where exists (select 1 from ${t.lane_wakeup} b where b.lane = m.lane and b.back > 0)`,
      `with ${heard}
        update ${t.lane} set running = max(0, running - (select sum(b.back) from ${t.lane_wakeup} b where b.lane = ${t.lane}.id))
        where id in (select b.lane from mine m cross join ${t.lane_wakeup} b on b.lane = m.lane and b.back > 0)`,
      `with ${heard} delete from ${t.lane_wakeup} where lane in (select lane from mine)`,
    ],
    scheduleRotations: `
      insert into ${t.lane_rotation} as w (lane, job_type, vtime, active, wake_at)
      with due as materialized (
        select d.lane, d.job_type, min(d.at) as at from (
          select n.value ->> 'lane' as lane, n.value ->> 'jobType' as job_type, n.value ->> 'at' as at from json_each(:rows) n
          union all select f.lane, f.job_type, 0 from json_each(:full) o cross join ${t.lane_rotation} f on f.lane = o.value
        ) d group by d.lane, d.job_type
      )
      select d.lane, d.job_type, coalesce(
          (select f.vtime from ${t.lane_rotation} f where f.job_type = d.job_type and f.active order by f.vtime limit 1),
          (select f.vtime from ${t.lane_rotation} f where f.job_type = d.job_type and not f.active order by f.vtime desc limit 1), 0),
        d.at <= :now, case when d.at > :now then d.at end
      from due d where not exists (select 1 from ${t.lane_rotation} x where x.lane = d.lane and x.job_type = d.job_type and x.active)
      on conflict (lane, job_type) do update set
        active = excluded.active,
        vtime = case when excluded.active then max(w.vtime, excluded.vtime) else w.vtime end,
        wake_at = case when not excluded.active then min(coalesce(w.wake_at, excluded.wake_at), excluded.wake_at) end`,
    pickRotations: `
      with ${laned(` and ${piece.unstopped("l.queue")}
        and (l.queue in (select value from json_each(:limitedQueues)) or not exists (select 1 from ${t.queue} g where g.name = l.queue and g.limited))`)}
      select s.queue, s.grp, w.job_type, w.lane, w.vtime, a.key, a.running, a.concurrency, a.rate_limit, a.rate_per, a.weight, a.paused_at, a.starts, :now as now
      from scope s cross join ${t.lane_rotation} w on w.job_type = s.job_type
        and w.lane in (select f.lane from ${t.lane_rotation} f where f.job_type = s.job_type and f.active and ${gives("f")} order by f.vtime, f.lane limit :most)
      join ${t.lane} a on a.id = w.lane`,
    takeLaned: [
      `insert into ${t.claim} (session, ids, rates)
        with recursive ${levelsToTake},
        level as materialized (
          select l.lane, l.job_type, l.n, l.rank, l.nth, count(*) over (partition by l.lane, l.job_type) as ranks
          from level_of l where l.rank is not null and ${piece.alive}
        )
        -- A lane with one priority has nothing to share: the index alone answers.
        select :session, json_group_array(seq), :rates from (
          select o.value as seq from level l cross join json_each((
            select json_group_array(c.seq) from (
              select c.seq from ${t.ready} c where ${due("l")} limit :most
            ) c)) o
          where l.ranks = 1 and o.key < l.n
          union all
          select seq from (
            select r.seq, max(l.n) over (partition by l.lane, l.job_type) as asked, row_number() over (partition by l.lane, l.job_type order by r.rank * :direction, r.run_at, r.seq) as ordinal
            from level l cross join ${t.ready} r
            where l.ranks > 1 and l.n > 0 and r.seq in (
              select seq from (select c.seq from ${t.ready} c where ${due("l")} limit :most)
              union all ${behind(">", ">", "")}
              union all ${behind("<", "<", " desc")})
          ) where ordinal <= asked
        ) having count(*) > 0`,
      ...take("1 + 2 * (job_type in (select value from json_each(:counted)))"),
      // All that was asked for: mostly it is what was got, and `turned` puts the rest right.
      `update ${t.lane} set running = running + :rotations.limit, used_at = :now where id = :rotations.lane`,
      `update ${t.lane_rotation} set vtime = vtime + :rotations.by where lane = :rotations.lane and job_type = :rotations.jobType`,
    ],
    // Jobs without a lane, of queues that have limits: as `sweep`, and counted.
    takeLimited: [
      `insert into ${t.claim} (session, ids, rates)
        with recursive scope as materialized (
          select l.id as job_type, q.value ->> 'group' as grp, q.value ->> 'limit' as n
          from json_each(:queues) q join ${t.job_type} l on l.queue = q.value ->> 'queue'
          where not l.laned and (:names is null or l.name in (select value from json_each(:names)))
            and ${noMachineUnlessNamed(t, "l", ":names")}
        ),${piece.level}
        select :session, json_group_array(seq), :rates from (
          select seq from (${piece.nextJobs(":most")}
          ) where ordinal <= n order by ordinal
        ) having count(*) > 0`,
      ...take("2", `, (select l.queue from ${t.job_type} l where l.id = r.job_type) as queue`),
    ],
    // No day is dropped here, under which a row could lose its job.
    dropStrays: `select value as id from json_each(:ids) where false and :session is not null`,
    laneHeads: `
      with recursive ${levels}
      select l.lane, l.job_type, min(min(
          (select r.run_at from ${t.ready} r
            where r.lane = l.lane and r.job_type = l.job_type and r.rank = l.rank and r.token is null order by r.run_at, r.seq limit 1),
          coalesce(case when l.nth = ${MOST_RANKS} then coalesce(
            (select r.run_at from ${t.ready} r where r.lane = l.lane and r.job_type = l.job_type and r.token is null and r.rank > l.rank and r.run_at <= :now limit 1),
            (select min(r.run_at) from ${t.ready} r where r.lane = l.lane and r.job_type = l.job_type and r.token is null and r.rank > l.rank)) end, ${WAITING_AT}))) as at
      from level_of l where l.rank is not null group by l.lane, l.job_type`,
    moveRotations: [
      `update ${t.lane} set running = running + :lanes.n, starts = :lanes.starts where id = :lanes.lane`,
      `update ${t.lane_rotation} set vtime = vtime + :rotations.by, active = :rotations.active, wake_at = :rotations.wakeAt where lane = :rotations.lane and job_type = :rotations.jobType`,
    ],
    updateLimitedQueues: `
      update ${t.queue} set running = running + :rows.n, starts = :rows.starts, limited_until = :rows.limitedUntil, adopt_until = :rows.adoptUntil
      where name = :rows.queue`,
    checkLimitedDue: `
      with ${laned(` and ${piece.unstopped("l.queue")}`)},
      limited_queue as materialized (
        select q.name, case when exists (select 1 from ${t.returned_capacity} f where f.queue = q.name) then 0 else coalesce(q.limited_until, 0) end as limited_until
        from ${t.queue} q
        where q.limited and ${inScope("q.name")} and ${piece.unstopped("q.name")}
      ),
      limited_job_type as materialized (
        select l.id as job_type, g.limited_until from limited_queue g
        join ${t.job_type} l on l.queue = g.name and not l.laned and (:names is null or l.name in (select value from json_each(:names)))
          and ${noMachineUnlessNamed(t, "l", ":names")}
      )
      select :now as now, min(
        ${piece.firstDue("limited_job_type", (runAt, jobType) => `max(${runAt}, (select g.limited_until from limited_job_type g where g.job_type = ${jobType}))`)},
        coalesce((select min(max(coalesce((select g.limited_until from limited_queue g where g.name = s.queue), 0), coalesce(
            case when exists (select 1 from ${t.lane_wakeup} b where b.job_type = s.job_type) then 0 end,
            case when exists (select 1 from ${t.lane_rotation} w where w.job_type = s.job_type and w.active) then 0 end,
            (select min(w.wake_at) from ${t.lane_rotation} w where w.job_type = s.job_type and w.wake_at is not null), ${WAITING_AT})))
          from scope s), ${WAITING_AT})
      ) as due_at`,

    // Settle.
    returnLaneCapacity: [
      `insert into ${t.lane_wakeup} (job_type, lane, at, back) values (:rows.jobType, :rows.lane, ${WAITING_AT}, :rows.n)
        on conflict (job_type, lane) do update set back = back + excluded.back`,
      `select distinct queue from ${t.lane} where id in (select r.value ->> 'lane' from json_each(:rows) r) and running >= concurrency`,
    ],
    returnQueueCapacity: [
      `insert into ${t.returned_capacity} (queue, n) values (:rows.queue, :rows.n) on conflict (queue) do update set n = n + excluded.n`,
      `select name as queue from ${t.queue} where name = :rows.queue and limited_until >= ${WAITING_AT}`,
    ],
    takeReturnedCapacity: `delete from ${t.returned_capacity} where queue in (select value from json_each(:names)) returning queue, n`,
    // Only where a claim is given back before its job has started: its rate gets the start back.
    lockLanes: `select id, starts from ${t.lane} where id in (select value from json_each(:ids))`,
    laneStarts: [
      `update ${t.lane} set starts = :rows.starts where id = :rows.lane`,
      ring(`select w.job_type, w.lane, 0 from ${t.lane_rotation} w where w.lane = :rows.lane`),
    ],
    lockQueues: `
      select name, starts from ${t.queue}
      where name in (select value from json_each(:names)) or cool_base_ms is not null
        and name in (select l.queue from ${t.ready} r join ${t.job_type} l on l.id = r.job_type where r.seq in ${seq.among(":throttled")})`,
    queueStarts: `update ${t.queue} set starts = :rows.starts, limited_until = null where name = :rows.queue`,

    // Lanes by hand.
    setLane: `
      insert into ${t.lane} as a (queue, key, concurrency, rate_limit, rate_per, weight, paused_at, tuned, used_at)
      values (:queue, :key, :concurrency, :rateLimit, :ratePer, coalesce(:weight, 1), case when :paused then :now end, :tuned, :now)
      on conflict (queue, key) do update set
        concurrency = case when :tuned then excluded.concurrency else a.concurrency end,
        rate_limit = case when :tuned then excluded.rate_limit else a.rate_limit end,
        rate_per = case when :tuned then excluded.rate_per else a.rate_per end,
        weight = case when :tuned then excluded.weight else a.weight end,
        paused_at = case when :paused is null then a.paused_at when :paused then coalesce(a.paused_at, :now) end,
        standard = case when :tuned and not a.tuned then :standard else a.standard end,
        tuned = a.tuned or excluded.tuned
      returning id`,
    wakeLane: ring(`select job_type, lane, 0 from ${t.lane_rotation} where lane = :lane`),
    tuneLanes: `
      update ${t.lane} set concurrency = :rows.concurrency, rate_limit = :rows.rateLimit, rate_per = :rows.ratePer, weight = coalesce(:rows.weight, 1)
      where not tuned and queue in (select l.queue from ${t.job_type} l where l.name = :rows.name and l.laned)
        and (concurrency is not :rows.concurrency or rate_limit is not :rows.rateLimit or rate_per is not :rows.ratePer
          or weight is not coalesce(:rows.weight, 1))
      returning id`,
    laneRows: `
      select a.*, :now as now, coalesce((select sum(b.back) from ${t.lane_wakeup} b where b.lane = a.id), 0) as back,
        (select count(*) from (select 1 from ${t.ready} r where r.lane = a.id and r.token is null limit 10000) capped) as waiting
      from ${t.lane} a
      where (:queue is null or a.queue = :queue) and (:key is null or a.key = :key) and a.id > :after
      order by a.id limit :limit`,
    temporaryLimits: `
      select kind, name, set_at, until_at, back from ${t.temporary_limit} where not :due or until_at <= :now order by until_at, kind, name`,
    lockTemporaryLimit: `select until_at, back from ${t.temporary_limit} where kind = :kind and name = :name`,
    putTemporaryLimit: `
      insert into ${t.temporary_limit} (kind, name, set_at, until_at, back) values (:kind, :name, :now, coalesce(:at, :now + :delay), :back)
      on conflict (kind, name) do update set until_at = excluded.until_at, back = excluded.back`,
    deleteTemporaryLimit: `delete from ${t.temporary_limit} where kind = :kind and name = :name`,
    untuneLane: `update ${t.lane} set tuned = false where queue = :queue and key = :key`,
    // Of several names that share the lane the one whose worker started last.
    laneDefaults: `
      select k.lanes from ${t.definition} k where k.has_lane and k.name in (select l.name from ${t.job_type} l where l.queue = :queue and l.laned)
      order by k.seen_at desc, k.name desc limit 1`,
    // The count stays as it is: what runs is counted, whatever the limits are.
    resetLane: `
      update ${t.lane} set concurrency = :concurrency, rate_limit = :rateLimit, rate_per = :ratePer, weight = coalesce(:weight, 1),
        starts = null, tuned = 0, paused_at = case when not :drop then paused_at end,
        used_at = case when :drop then min(used_at, :now - ${DELETE_AFTER_MS - MARK_AFTER_MS}) else used_at end
      where queue = :queue and key = :key returning id, exists (select 1 from ${t.ready} r where r.lane = ${t.lane}.id and r.token is null) as occupied`,
    queueUse: `
      select q.name, q.settings, q.cool_base_ms, q.cool_max_ms, q.running, q.starts, :now as now,
        coalesce((select r.n from ${t.returned_capacity} r where r.queue = q.name), 0) as back
      from ${t.queue} q where q.limited order by q.name`,
    // Those at their limit are looked for, at most 500, and of them those with most jobs are counted again to the full.
    throttledLanes: `
      select a.*, :now as now, coalesce((select sum(b.back) from ${t.lane_wakeup} b where b.lane = a.id), 0) as back,
        (select count(*) from (select 1 from ${t.ready} r where r.lane = a.id and r.token is null limit 10000) capped) as waiting
      from ${t.lane} a where a.id in (
        select f.id from (
          select c.id, (select count(*) from (select 1 from ${t.ready} r where r.lane = c.id and r.token is null limit 100) few) as n
          from (
            select l.id from ${t.lane} l
            where l.paused_at is not null or (l.concurrency is not null and l.running >= l.concurrency) or (l.rate_limit is not null and l.starts is not null)
            order by l.id limit 500
          ) c
        ) f where f.n > 0 order by f.n desc, f.id limit :limit
      )`,
    deleteUnusedLanes: [
      `delete from ${t.lane} where id in (
        select a.id from ${t.lane} a where not a.tuned and a.paused_at is null and a.running = 0 and a.used_at < :now - ${DELETE_AFTER_MS}
          and not exists (select 1 from ${t.ready} r where r.lane = a.id) limit 1000)`,
      `delete from ${t.lane_rotation} where not exists (select 1 from ${t.lane} a where a.id = ${t.lane_rotation}.lane)`,
      `delete from ${t.lane_wakeup} where not exists (select 1 from ${t.lane} a where a.id = ${t.lane_wakeup}.lane)`,
    ],
    whyJob: `
      select r.note, r.throttles, r.counted, :now as now, q.limited, q.running as queue_running, q.starts as queue_starts, q.settings,
        a.id as lane_id, a.running, a.concurrency, a.rate_limit, a.rate_per, a.weight, a.paused_at, a.starts,
        coalesce((select sum(b.back) from ${t.lane_wakeup} b where b.lane = a.id), 0) as back,
        (select count(*) from ${t.uncounted_job} g where g.queue = l.queue)
          - coalesce((select sum(f.n) from ${t.returned_capacity} f where f.queue = l.queue), 0) as uncounted_jobs
      from ${t.ready} r join ${t.job_type} l on l.id = r.job_type left join ${t.queue} q on q.name = l.queue left join ${t.lane} a on a.id = r.lane
      where r.seq = ${seq.of(":id")}`,

    // Breakers.
    breakerRows: `
      select b.*, :now as now, exists (select 1 from ${t.session} s where s.id = b.probe_session and s.lease_until > :now) as probing
      from ${t.breaker} b where :keys is null or b.key in (select value from json_each(:keys)) order by b.key`,
    addBreakers: `insert into ${t.breaker} (key) select value from json_each(:keys) where true on conflict (key) do nothing`,
    lockBreakers: `select b.*, :now as now from ${t.breaker} b where b.key in (select value from json_each(:keys)) order by b.key`,
    writeBreakers: `
      update ${t.breaker} set failures = :rows.failures, opened_at = :rows.openedAt, open_until = :rows.openUntil, probe_session = :rows.probe, error = :rows.error,
        counted = :rows.counted
      where key = :rows.key`,
    probeBreaker: `
      update ${t.breaker} set probe_session = :session
      where key = :key and open_until <= :now
        and (probe_session = :session or not exists (select 1 from ${t.session} s where s.id = ${t.breaker}.probe_session and s.lease_until > :now))
      returning key`,
    unprobeBreaker: `update ${t.breaker} set probe_session = null where key = :key and probe_session = :session returning key`,
    resetBreaker: `delete from ${t.breaker} where key = :key returning key`,
  };
}
