/**
 * The statements of lanes, limits and breakers for Postgres. Read them beside storage/sqlite/statements/limits.ts: same names, same order.
 *
 * Who locks what, so that nobody waits in a circle: a claim waits for the rows of limited queues (in the order of their
 * names) before it has anything else, and from then on passes over every lane that somebody has locked. A lane's rotations are
 * written only under the lane's lock. Enqueues and settles lock none of this: they leave lane wake-ups and returned capacity, which the next
 * claim takes in. So a user's open transaction never stands in a claim's way, nor a claim in a settle's (with locks in
 * both, settles waited for claims for 60 % of a drain).
 */
import type { LimitStatementName, Statements, Tables } from "../../catalogue.ts";
import { WAITING_AT } from "../../../jobs/job.ts";
import { DELETE_AFTER_MS, MARK_AFTER_MS, MOST_RANKS } from "../../../limits/lane-rows.ts";
import { noMachineUnlessNamed, plainUnlessNamed } from "../../../lease/plain-jobs.ts";

/** What jobs.ts lends: the pieces that both files are made of. */
export interface Pieces {
  readonly now: string;
  /** The count of attempts of a row `r` that is claimed. */
  readonly nextAttempt: string;
  /** :names, hidden from the planner. */
  readonly names: string;
  /** Levels that the caller has claimed from. */
  readonly known: string;
  /** When the first jobs of the job types in `scope` are due. */
  readonly heads: string;
  /** A claim of the job types in `scope`. */
  readonly walk: (jobTypes: string, marked: (rows: string) => string) => string;
  readonly alive: string;
  /** That a queue is neither paused, cooled down nor held. */
  readonly unstopped: (queue: string) => string;
  /** What few jobs have, as one column. */
  readonly rest: (row: string) => string;
}

export function limitStatements(t: Tables, piece: Pieces): Pick<Statements, LimitStatementName> {
  const NOW = piece.now;
  /** Where the rotation of a lane with more priorities begins is not looked for: each claim would look into all of them. */
  const FEW_RANKS = 8;
  const BEFORE_ALL = "'-9223372036854775808'::bigint";
  /** The laned job types in scope. */
  const laned = (where: string, name = "scope") => `
    ${name} as materialized (
      select l.id as job_type, l.queue, q.grp
      from unnest(:queues.queue::text[], :queues.group::text[]) as q (queue, grp)
      join ${t.job_type} l on q.queue is null or l.queue = q.queue
      where l.laned and (:names::text[] is null or l.name = any(:names::text[]))
        and ${noMachineUnlessNamed(t, "l", ":names::text[]")}${where}
    )`;
  /** Where the rotations of a job type begin: index entries of rotations as they were stay before it while somebody holds an old snapshot. */
  const floorOf = (jobType: string) =>
    `coalesce((select f.vtime from unnest(:floors.jobType::int[], :floors.vtime::float8[]) as f (job_type, vtime) where f.job_type = ${jobType}), '-Infinity')`;
  const inScope = (queue: string) =>
    `exists (select 1 from unnest(:queues.queue::text[]) w (queue) where w.queue is null or w.queue = ${queue})`;
  /**
   * Where the row of a lane or a rotation is, the newest version first: the range has one key, and read backwards its index begins with the version
   * that was written last. The older ones stay in it while somebody holds an old snapshot. A sum is compared with the key, so that an update does
   * not find its rows by that index after all.
   */
  const laneAt = (lane: string) =>
    `(select x.ctid from ${t.lane} x where x.id >= ${lane} and x.id <= ${lane} order by x.id desc limit 1)`;
  const rotationOf = (lane: string, jobType: string, columns = "x.ctid as tid, x.from_at") =>
    `(select ${columns} from ${t.lane_rotation} x where (x.lane, x.job_type) >= (${lane}, ${jobType}) and (x.lane, x.job_type) <= (${lane}, ${jobType}) order by x.lane desc, x.job_type desc limit 1)`;
  /**
   * Every (lane, job type, rank) that has rows, for the lanes in :rotations, each from where its turn begins (`from_at`): index entries of ended jobs stay
   * before it while somebody holds an old snapshot. It is read in the statement after the one that locked the lane.
   */
  const wanted = `
    wanted as materialized (
      select w.lane, w.job_type, w.n, o.tid, coalesce(o.from_at, ${BEFORE_ALL}) as from_at
      from unnest(:rotations.lane::int[], :rotations.jobType::int[], :rotations.limit::int[]) as w (lane, job_type, n) left join lateral ${rotationOf("w.lane", "w.job_type")} o on true
    )`;
  const levels = `
    ${wanted},
    level_of (lane, job_type, n, from_at, rank, nth) as (
      select w.lane, w.job_type, w.n, w.from_at,
        (select r.rank from ${t.ready} r where r.lane = w.lane and r.job_type = w.job_type and r.run_at >= w.from_at order by r.rank limit 1), 1 from wanted w
      union all
      select l.lane, l.job_type, l.n, l.from_at,
        (select r.rank from ${t.ready} r where r.lane = l.lane and r.job_type = l.job_type and r.rank > l.rank and r.run_at >= l.from_at order by r.rank limit 1), l.nth + 1
      from level_of l where l.rank is not null and l.nth < ${MOST_RANKS}
    )`;
  const plain = plainUnlessNamed(t, "r", "id", ":names::text[]");
  const dueIn = (level: string) =>
    `r.lane = ${level}.lane and r.job_type = ${level}.job_type and r.rank = ${level}.rank and r.token is null and r.run_at <= ${NOW} and r.run_at >= ${level}.from_at`;
  const nextIn = (row: string, after?: string) => {
    const read = (beyond: string, order: string) => `(select r.rank from ${t.ready} r
            where r.lane = ${row}.lane and r.job_type = ${row}.job_type${after === undefined ? "" : ` and r.rank ${beyond} ${after}`} and r.run_at >= ${row}.from_at
            order by r.rank${order} limit 1)`;
    return `case when :direction::bigint > 0 then ${read(">", "")} else ${read("<", " desc")} end`;
  };
  /**
   * The same in claim order, as far as a claim needs them: `n` is how many jobs are still asked for when it comes to the level. One more is found,
   * of which none is asked for: it tells that the lane has several priorities.
   */
  const levelsToTake = `
    ${wanted},
    level_of (lane, job_type, n, from_at, rank, nth) as (
      select w.lane, w.job_type, w.n, w.from_at, ${nextIn("w")}, 1 from wanted w
      union all
      select l.lane, l.job_type, case when x.rank is not null then l.n - (
          select count(*)::int from (select 1 from ${t.ready} r where ${dueIn("l")} and ${plain} limit l.n) d) else 0 end, l.from_at, x.rank, l.nth + 1
      from level_of l cross join lateral (select ${nextIn("l", "l.rank")} as rank offset 0) x where l.rank is not null and l.n > 0 and l.nth < ${MOST_RANKS}
    )`;
  /** Due jobs of the levels behind the last that was found of a lane, if there may be more. */
  const behind = (columns: string) => {
    const read = (rotation: string, beyond: string, order: string) => `
            select ${columns} from ${t.ready} r
            where :direction::bigint ${rotation} 0 and l.nth = ${MOST_RANKS} and r.lane = l.lane and r.job_type = l.job_type and r.rank ${beyond} l.rank
              and r.token is null and r.run_at <= ${NOW} and r.run_at >= l.from_at and ${plain}
            order by r.rank${order}, r.run_at, r.id limit l.n`;
    return `(select * from (${read(">", ">", "")}) up union all select * from (${read("<", "<", " desc")}) down)`;
  };
  const due = (level: string) => `
        ${dueIn(level)} and ${plain}
        order by r.run_at, r.id`;
  /** A lane whose due jobs are all left alone by a claim without names must not keep others from it. */
  const dueOf = (rotation: string) =>
    `select 1 from ${t.ready} r where r.lane = ${rotation}.lane and r.job_type = ${rotation}.job_type and r.token is null and r.run_at <= ${NOW}`;
  const gives = (rotation: string) =>
    `(:names::text[] is not null or not exists (${dueOf(rotation)}) or exists (${dueOf(rotation)} and ${plain}))`;
  const columns = `r.id, r.job_type, r.rank, r.run_at, r.token, r.attempt, r.crashes, r.begun, r.undoing, r.started_at, r.errors, r.lane as lane_id, r.counted`;
  // All that was taken: a row without a job (its day was dropped under a retry) has no input, and is dropped (`dropStrays`). A full join, although
  // a left one would give the same: see storage/postgres/claim-answer.ts.
  const handOver = (more = "") => `
    filed as (
      insert into ${t.claim} (token, session, ids, rates)
      select token, :session::bigint, array_agg(id), :rates::text from taken group by token
    )
    select c.id, c.job_type, c.rank, c.run_at, c.token, c.attempt, c.started_at, c.lane_id, c.counted, j.input, j.max_attempts, ${piece.rest("c")}${more}
    from (select * from taken order by id offset 0) c
    full join (
      select * from ${t.job} where id = any(array(select id from taken))
        and id >= (select id from taken order by id limit 1) and id <= (select id from taken order by id desc limit 1)
      order by id offset 0
    ) j on j.id = c.id`;
  const plainLine = `not l.laned and (${piece.names} is null or l.name = any(${piece.names}::text[])) and ${noMachineUnlessNamed(t, "l", piece.names)}`;
  const wakeRotations = (which: string) => `
      insert into ${t.lane_wakeup} (job_type, lanes, ats)
      select w.job_type, array_agg(w.lane), array_agg(0::bigint) from ${t.lane_rotation} w where ${which} group by w.job_type`;
  /** What has been given back to lane \`a\` and no claim has heard of yet. */
  const givenBack = `coalesce((
        select sum(u.back) from ${t.job_type} o join ${t.lane_wakeup} b on b.job_type = o.id and b.backs is not null
        cross join lateral unnest(b.lanes, b.backs) as u (lane, back) where o.queue = a.queue and o.laned and u.lane = a.id), 0)::int`;
  const take = (counted: string) => `
      update ${t.ready} r
      set token = (select token from ticket), session = :session::bigint, attempt = ${piece.nextAttempt}, started_at = ${NOW}, counted = ${counted}`;

  return {
    limitedQueues: `
      select distinct l.queue, true as laned from ${t.job_type} l where l.laned
      union all select q.name, false from ${t.queue} q where q.limited`,
    addLanes: `
      insert into ${t.lane} (queue, key, concurrency, rate_limit, rate_per, weight, used_at)
      select w.queue, w.key, w.concurrency, w.rate_limit, w.rate_per, coalesce(w.weight, 1), ${NOW}
      from unnest(:rows.queue::text[], :rows.key::text[], :rows.concurrency::int[], :rows.rateLimit::int[], :rows.ratePer::bigint[], :rows.weight::int[])
        as w (queue, key, concurrency, rate_limit, rate_per, weight)
      order by w.queue, w.key
      on conflict (queue, key) do update set used_at = excluded.used_at`,
    findLanes: `
      select a.id, a.queue, a.key, a.used_at < ${NOW} - ${MARK_AFTER_MS} as stale from unnest(:rows.queue::text[], :rows.key::text[]) as w (queue, key)
      join ${t.lane} a on a.queue = w.queue and a.key = w.key`,
    wakeLanesOfJobs: `
      insert into ${t.lane_wakeup} (job_type, lanes, ats)
      select r.job_type, array_agg(r.lane), array_agg(r.run_at) from ${t.ready} r
      where r.id = any(:ids::uuid[]) and r.lane is not null and r.run_at < ${WAITING_AT} group by r.job_type`,

    // Claim, in this order.
    lockLimitedQueues: `
      select q.name, q.settings, q.running, q.starts, q.adopt_until, ${NOW} as now from ${t.queue} q
      where q.limited and ${inScope("q.name")} and ${piece.unstopped("q.name")}
        and (coalesce(q.limited_until, 0) <= ${NOW} or exists (select 1 from ${t.returned_capacity} f where f.queue = q.name))
      order by q.name for update of q`,
    // Of a claim of \`takeLimited\` all are counted: one of them speaks for the others.
    adopt: `
      insert into ${t.uncounted_job} (queue, id, token)
      select l.queue, r.id, r.token from (
        select c.token, c.ids from ${t.claim} c
        where (select r.counted from ${t.ready} r where r.id = any(c.ids) and r.token = c.token limit 1) is distinct from 2 offset 0
      ) c
      cross join lateral unnest(c.ids) as o (id)
      join ${t.ready} r on r.id = o.id and r.token = c.token
      join ${t.job_type} l on l.id = r.job_type
      where l.queue = any(:names::text[]) and coalesce(r.counted, 0) & 2 = 0
      on conflict (queue, id, token) do nothing`,
    uncountedJobs: `
      with gone as (
        delete from ${t.uncounted_job} g where g.queue = any(:names::text[])
          and not exists (select 1 from ${t.ready} r where r.id = g.id and r.token = g.token)
        returning g.queue, g.id, g.token
      )
      select g.queue, count(*)::int as n from ${t.uncounted_job} g
      where g.queue = any(:names::text[]) and not exists (select 1 from gone x where x.queue = g.queue and x.id = g.id and x.token = g.token)
      group by g.queue`,
    // Lanes that another claim has locked are left to the next one: what rang for them rings again. Whether a rotation sleeps is
    // asked in a statement of its own, which sees what the last holder of the lock did: here it might not yet.
    takeWakeups: `
      with ${laned("")},
      other as materialized (
        select l.id as job_type from ${t.job_type} l where l.laned and ${inScope("l.queue")} and l.id not in (select job_type from scope)
      ),
      rung as materialized (
        select s.job_type, b.* from scope s cross join lateral (
          select b.ctid as tid, b.lanes, b.ats, b.backs from ${t.lane_wakeup} b where b.job_type = s.job_type limit 500 for update skip locked
        ) b
        union all
        select o.job_type, b.* from other o cross join lateral (
          select b.ctid as tid, b.lanes, b.ats, b.backs from ${t.lane_wakeup} b where b.job_type = o.job_type and b.backs is not null limit 500 for update skip locked
        ) b
      ),
      stilled as (delete from ${t.lane_wakeup} b where b.ctid = any(array(select tid from rung))),
      heard as materialized (
        select b.lane, r.job_type, min(b.at) as at, coalesce(sum(b.back), 0)::int as back
        from rung r cross join lateral unnest(r.lanes, r.ats, r.backs) as b (lane, at, back) group by b.lane, r.job_type
      ),
      woken as materialized (
        select w.lane, w.job_type from scope s cross join lateral (
          select w.lane, w.job_type from ${t.lane_rotation} w where w.job_type = s.job_type and w.wake_at <= ${NOW} order by w.wake_at limit 1000
        ) w
      ),
      mine as materialized (
        select a.id, c.back, coalesce(a.running >= a.concurrency, false) as was_full
        from (
          select lane, sum(back)::int as back from (select lane, back from heard union all select lane, 0 from woken) c group by lane
        ) c join ${t.lane} a on a.ctid = ${laneAt("c.lane")} for update of a skip locked
      ),
      folded as (
        update ${t.lane} a set running = greatest(0, a.running - m.back) from mine m where a.id = m.id and m.back > 0
      ),
      deaf as (
        insert into ${t.lane_wakeup} (job_type, lanes, ats, backs)
        select h.job_type, array_agg(h.lane), array_agg(h.at), array_agg(h.back) from heard h join ${t.lane} a on a.id = h.lane
        where (select count(*) from mine) < (select count(distinct lane) from (select lane from heard union all select lane from woken) c)
          and not exists (select 1 from mine m where m.id = h.lane)
        group by h.job_type
      )
      select h.lane, h.job_type, h.at from heard h join mine m on m.id = h.lane where h.at < ${WAITING_AT}
      union all select w.lane, w.job_type, ${NOW} from woken w join mine m on m.id = w.lane
      union all select m.id, null, null from mine m where m.was_full and m.back > 0`,
    scheduleRotations: `
      with due as materialized (
        select d.lane, d.job_type, min(d.at) as at from (
          select * from unnest(:rows.lane::int[], :rows.jobType::int[], :rows.at::bigint[]) as d (lane, job_type, at)
          union all select w.lane, w.job_type, 0 from ${t.lane_rotation} w where w.lane = any(:full::int[])
        ) d group by d.lane, d.job_type
      ),
      lowered as (
        update ${t.lane_rotation} w set from_at = d.at
        from unnest(:rows.lane::int[], :rows.jobType::int[], :rows.at::bigint[]) as d (lane, job_type, at)
        where w.lane + 0 = d.lane and w.job_type + 0 = d.job_type and w.active and w.from_at > d.at
          and w.ctid = any(array(select ${rotationOf("o.lane", "o.job_type", "x.ctid")} from unnest(:rows.lane::int[], :rows.jobType::int[]) as o (lane, job_type)))
      ),
      -- Of each job_type once: where its furthest-behind lane_rotation is that is active.
      base as materialized (
        select l.job_type, coalesce(
          (select f.vtime from ${t.lane_rotation} f where f.job_type = l.job_type and f.active and f.vtime >= ${floorOf("l.job_type")} order by f.vtime limit 1),
          (select f.vtime from ${t.lane_rotation} f where f.job_type = l.job_type and not f.active order by f.vtime desc limit 1), 0) as vtime
        from (select distinct job_type from due) l
      )
      insert into ${t.lane_rotation} as w (lane, job_type, vtime, active, wake_at)
      select d.lane, d.job_type, (select b.vtime from base b where b.job_type = d.job_type), d.at <= ${NOW}, case when d.at > ${NOW} then d.at end
      from due d left join lateral ${rotationOf("d.lane", "d.job_type", "x.active")} x on true
      where x.active is distinct from true
      on conflict (lane, job_type) do update set
        active = excluded.active,
        vtime = case when excluded.active then greatest(w.vtime, excluded.vtime) else w.vtime end,
        wake_at = case when not excluded.active then least(w.wake_at, excluded.wake_at) end,
        -- Null is before everything; \`least\` would pass over it.
        from_at = case when w.from_at is not null then
          least(w.from_at, (select min(d.at) from unnest(:rows.lane::int[], :rows.jobType::int[], :rows.at::bigint[]) as d (lane, job_type, at)
            where d.lane = w.lane and d.job_type = w.job_type)) end
      where not w.active`,
    // The lock is inside the limit: lanes that another claim has locked are passed over, and others take their places.
    pickRotations: `
      with ${laned(` and ${piece.unstopped("l.queue")}
        and (l.queue = any(:limitedQueues::text[]) or not exists (select 1 from ${t.queue} g where g.name = l.queue and g.limited))`)}
      select s.queue, s.grp, p.*, ${NOW} as now from scope s cross join lateral (
        select w.job_type, w.lane, w.vtime, a.key, a.running, a.concurrency, a.rate_limit, a.rate_per, a.weight, a.paused_at, a.starts
        from ${t.lane_rotation} w join ${t.lane} a on a.ctid = ${laneAt("w.lane")}
        where w.job_type = s.job_type and w.active and w.vtime >= ${floorOf("s.job_type")} and ${gives("w")} order by w.vtime, w.lane limit :most::int for update of a skip locked
      ) p`,
    takeLaned: `
      with recursive ${levelsToTake},
      level as materialized (
        select l.lane, l.job_type, l.n, l.from_at, l.rank, l.nth, count(*) over (partition by l.lane, l.job_type) as ranks
        from level_of l where l.rank is not null and ${piece.alive}
      ),
      -- All priorities of a lane that has more than one, and not too many.
      rank_of (lane, job_type, from_at, rank, nth) as (
        select l.lane, l.job_type, l.from_at,
          (select r.rank from ${t.ready} r where r.lane = l.lane and r.job_type = l.job_type and r.run_at >= l.from_at order by r.rank limit 1), 1
        from (select distinct lane, job_type, from_at from level where ranks > 1) l
        union all
        select o.lane, o.job_type, o.from_at,
          (select r.rank from ${t.ready} r where r.lane = o.lane and r.job_type = o.job_type and r.rank > o.rank and r.run_at >= o.from_at order by r.rank limit 1), o.nth + 1
        from rank_of o where o.rank is not null and o.nth <= ${FEW_RANKS}
      ),
      -- A lane with one priority has nothing to share.
      share as materialized (
        select lane, job_type, rank, from_at, n from level where ranks = 1
        union all
        select lane, job_type, rank, from_at, count(*)::int as n from (
          select l.lane, l.job_type, h.rank, l.from_at, max(l.n) over (partition by l.lane, l.job_type) as asked,
            row_number() over (partition by l.lane, l.job_type order by h.rank * :direction::bigint, h.run_at, h.id) as ordinal
          from level l cross join lateral (
            (select r.rank, r.run_at, r.id from ${t.ready} r where ${due("l")} limit l.n) union all ${behind("r.rank, r.run_at, r.id")}
          ) h where l.ranks > 1 and l.n > 0
        ) placed where ordinal <= asked group by lane, job_type, rank, from_at
      ),
      ticket as materialized (select nextval('${t.token}'::regclass) as token),
      taken as (${take("1 + 2 * (r.job_type = any(:counted::int[]))::int")}
        where r.ctid = any(array(
          select c.tid from share s cross join lateral (
            select r.ctid as tid from ${t.ready} r where ${due("s")} limit s.n for update skip locked
          ) c))
        returning ${columns}
      ),
      -- All that was asked for: mostly it is what was got, and \`turned\` puts the rest right.
      counted as (
        update ${t.lane} a set running = a.running + w.n, used_at = ${NOW} from (select lane, sum(n)::int as n from wanted group by lane) w
        where a.id = w.lane
          and a.ctid = any(array(select ${laneAt("m.lane")} from wanted m))
      ),
      -- A lane with few priorities: no job that is unclaimed is due before the first that was left, or the last that was taken. What is later
      -- found to be due before that rings (\`scheduleRotations\`).
      reached as materialized (
        select l.lane, l.job_type, coalesce(
          (select r.run_at from ${t.ready} r where ${dueIn("l")} and not r.id = any(array(select id from taken)) order by r.run_at, r.id limit 1),
          (select max(k.run_at) from taken k where k.lane_id = l.lane and k.job_type = l.job_type)) as from_at
        from level l where l.ranks = 1
        union all
        select o.lane, o.job_type, coalesce(min(h.run_at), (select max(k.run_at) from taken k where k.lane_id = o.lane and k.job_type = o.job_type))
        from rank_of o left join lateral (
          select r.run_at from ${t.ready} r where ${dueIn("o")} and not r.id = any(array(select id from taken)) order by r.run_at, r.id limit 1
        ) h on true
        where o.rank is not null group by o.lane, o.job_type having max(o.nth) <= ${FEW_RANKS}
      ),
      moved as (
        update ${t.lane_rotation} o set vtime = o.vtime + m.by,
          from_at = coalesce((select e.from_at from reached e where e.lane = o.lane and e.job_type = o.job_type), o.from_at)
        from unnest(:rotations.lane::int[], :rotations.jobType::int[], :rotations.by::float8[]) as m (lane, job_type, by)
        where o.lane = m.lane and o.job_type = m.job_type and o.ctid = any(array(select tid from wanted))
      ),${handOver()}`,
    // Jobs without a lane, of queues that have limits: as \`claim\`, and counted.
    takeLimited: piece.walk(
      `
    scope as materialized (
      select l.id as job_type, q.grp, q.n, q.edge
      from unnest((select :queues.queue::text[]), (select :queues.group::text[]), (select :queues.limit::int[]), (select :queues.edge::bigint[])) as q (queue, grp, n, edge)
      join ${t.job_type} l on l.queue = q.queue where ${plainLine}
    )`,
      (rows) => `
      ticket as materialized (select nextval('${t.token}'::regclass) as token),
      taken as (${take("2")}
        where r.ctid = any(array(${rows}))
        returning ${columns}
      ),${handOver(`, (select l.queue from ${t.job_type} l where l.id = c.job_type) as queue`)}`,
    ),
    // Rows that this claim has taken and that have no job. A claim that has nothing else is forgotten with them.
    dropStrays: `
      with gone as (
        delete from ${t.ready} r where r.id = any(:ids::uuid[]) and r.session = :session::bigint
          and not exists (select 1 from ${t.job} j where j.id = r.id offset 0)
        returning r.id, r.token
      ),
      spent as (
        delete from ${t.claim} c where c.session = :session::bigint and c.token = any(array(select token from gone)) and c.ids operator(pg_catalog.<@) array(select id from gone)
      )
      select id from gone`,
    laneHeads: `
      with recursive ${levels}
      select h.lane, h.job_type, min(h.run_at) as at from (
        select l.lane, l.job_type, r.run_at from level_of l cross join lateral (
          select r.run_at from ${t.ready} r
          where r.lane = l.lane and r.job_type = l.job_type and r.rank = l.rank and r.run_at >= l.from_at and case when r.token is null then true end
          order by r.run_at, r.id limit 1
        ) r where l.rank is not null
        union all
        select l.lane, l.job_type, r.run_at from level_of l cross join lateral (
          (select r.run_at from ${t.ready} r
            where r.lane = l.lane and r.job_type = l.job_type and r.rank > l.rank and r.run_at >= l.from_at and r.run_at <= ${NOW}
              and case when r.token is null then true end limit 1)
          union all
          -- What is not due is not claimed: its row need not be looked at.
          select min(r.run_at) from ${t.ready} r where r.lane = l.lane and r.job_type = l.job_type and r.rank > l.rank and r.run_at >= l.from_at and r.run_at > ${NOW}
        ) r where l.nth = ${MOST_RANKS} and r.run_at is not null
      ) h group by h.lane, h.job_type`,
    moveRotations: `
      with counted as (
        update ${t.lane} a set running = a.running + c.n, starts = c.starts
        from unnest(:lanes.lane::int[], :lanes.n::int[], :lanes.starts::text[]) as c (lane, n, starts)
        where a.id + 0 = c.lane and a.ctid = any(array(select ${laneAt("c.lane")} from unnest(:lanes.lane::int[]) as c (lane)))
      )
      update ${t.lane_rotation} w set vtime = w.vtime + m.by, active = m.active, wake_at = m.wake_at
      from unnest(:rotations.lane::int[], :rotations.jobType::int[], :rotations.by::float8[], :rotations.active::bool[], :rotations.wakeAt::bigint[])
        as m (lane, job_type, by, active, wake_at)
      where w.lane + 0 = m.lane and w.job_type + 0 = m.job_type
        and w.ctid = any(array(select ${rotationOf("m.lane", "m.job_type", "x.ctid")} from unnest(:rotations.lane::int[], :rotations.jobType::int[]) as m (lane, job_type)))`,
    updateLimitedQueues: `
      update ${t.queue} q set running = q.running + g.n, starts = g.starts, limited_until = g.limited_until, adopt_until = g.adopt_until
      from unnest(:rows.queue::text[], :rows.n::int[], :rows.starts::text[], :rows.limitedUntil::bigint[], :rows.adoptUntil::bigint[])
        as g (queue, n, starts, limited_until, adopt_until) where q.name = g.queue`,
    checkLimitedDue: `
      with recursive ${laned(` and ${piece.unstopped("l.queue")}`, "stand")},
      limited_queue as materialized (
        select q.name, case when exists (select 1 from ${t.returned_capacity} f where f.queue = q.name) then 0 else coalesce(q.limited_until, 0) end as limited_until
        from ${t.queue} q
        where q.limited and ${inScope("q.name")} and ${piece.unstopped("q.name")}
      ),
      scope as materialized (select l.id as job_type, g.limited_until from limited_queue g join ${t.job_type} l on l.queue = g.name where ${plainLine}),${piece.known},${piece.heads},
      opening (at) as (select greatest(h.run_at, (select s.limited_until from scope s where s.job_type = h.job_type)) from head h)
      select ${NOW} as now, least(
        coalesce((select at from opening where at <= ${NOW} limit 1), (select min(at) from opening)),
        (select min(greatest(coalesce((select g.limited_until from limited_queue g where g.name = s.queue), 0), coalesce(
            (select 0 from ${t.lane_wakeup} b where b.job_type = s.job_type limit 1),
            (select 0 from (select 1 from ${t.lane_rotation} w where w.job_type = s.job_type and w.active order by w.vtime limit 1) awake),
            (select w.wake_at from ${t.lane_rotation} w where w.job_type = s.job_type and w.wake_at is not null order by w.wake_at limit 1), ${WAITING_AT})))
          from stand s)
      ) as due_at`,

    // Settle.
    returnLaneCapacity: `
      with c as materialized (select * from unnest(:rows.lane::int[], :rows.jobType::int[], :rows.n::int[]) as c (lane, job_type, n)),
      rung as (insert into ${t.lane_wakeup} (job_type, lanes, backs) select c.job_type, array_agg(c.lane), array_agg(c.n) from c group by c.job_type)
      select distinct a.queue from ${t.lane} a where a.ctid = any(array(select ${laneAt("c.lane")} from c)) and a.running >= a.concurrency`,
    returnQueueCapacity: `
      with r as (insert into ${t.returned_capacity} (queue, n) select * from unnest(:rows.queue::text[], :rows.n::int[]))
      select q.name as queue from ${t.queue} q where q.name = any(:rows.queue::text[]) and q.limited_until >= ${WAITING_AT}`,
    takeReturnedCapacity: `
      with gone as (delete from ${t.returned_capacity} where queue = any(:names::text[]) returning queue, n)
      select queue, sum(n)::int as n from gone group by queue`,
    // Only where a claim is given back before its job has started: its rate gets the start back.
    lockLanes: `select a.id, a.starts from ${t.lane} a where a.id = any(:ids::int[]) order by a.id for update`,
    laneStarts: `
      with changed as (
        update ${t.lane} a set starts = c.starts
        from unnest(:rows.lane::int[], :rows.starts::text[]) as c (lane, starts) where a.id = c.lane returning a.id
      )
      ${wakeRotations("w.lane = any(array(select id from changed))")}`,
    lockQueues: `
      select q.name, q.starts from ${t.queue} q
      where q.name = any(:names::text[]) or q.cool_base_ms is not null
        and q.name in (select l.queue from ${t.ready} r join ${t.job_type} l on l.id = r.job_type where r.id = any(:throttled::uuid[]))
      order by q.name for update`,
    queueStarts: `
      update ${t.queue} q set starts = c.starts, limited_until = null
      from unnest(:rows.queue::text[], :rows.starts::text[]) as c (queue, starts) where q.name = c.queue`,

    // Lanes by hand.
    setLane: `
      insert into ${t.lane} as a (queue, key, concurrency, rate_limit, rate_per, weight, paused_at, tuned, used_at)
      values (:queue, :key, :concurrency::int, :rateLimit::int, :ratePer::bigint, coalesce(:weight::int, 1),
        case when :paused::bool then ${NOW} end, :tuned::bool, ${NOW})
      on conflict (queue, key) do update set
        concurrency = case when :tuned::bool then excluded.concurrency else a.concurrency end,
        rate_limit = case when :tuned::bool then excluded.rate_limit else a.rate_limit end,
        rate_per = case when :tuned::bool then excluded.rate_per else a.rate_per end,
        weight = case when :tuned::bool then excluded.weight else a.weight end,
        paused_at = case when :paused::bool is null then a.paused_at when :paused::bool then coalesce(a.paused_at, ${NOW}) end,
        standard = case when :tuned::bool and not a.tuned then :standard::text else a.standard end,
        tuned = a.tuned or excluded.tuned
      returning id`,
    wakeLane: wakeRotations("w.lane = :lane::int"),
    tuneLanes: `
      update ${t.lane} a set concurrency = w.concurrency, rate_limit = w.rate_limit, rate_per = w.rate_per, weight = coalesce(w.weight, 1)
      from unnest(:rows.name::text[], :rows.concurrency::int[], :rows.rateLimit::int[], :rows.ratePer::bigint[], :rows.weight::int[])
        as w (name, concurrency, rate_limit, rate_per, weight)
      where not a.tuned and a.queue in (select l.queue from ${t.job_type} l where l.name = w.name and l.laned)
        and (a.concurrency, a.rate_limit, a.rate_per, a.weight) is distinct from (w.concurrency, w.rate_limit, w.rate_per, coalesce(w.weight, 1))
      returning a.id`,
    laneRows: `
      select a.*, ${NOW} as now, ${givenBack} as back,
        (select count(*)::int from (select 1 from ${t.ready} r where r.lane = a.id and r.token is null limit 10000) capped) as waiting
      from ${t.lane} a
      where (:queue::text is null or a.queue = :queue::text) and (:key::text is null or a.key = :key::text) and a.id > :after::int
      order by a.id limit :limit::int`,
    temporaryLimits: `
      select kind, name, set_at, until_at, back from ${t.temporary_limit} where not :due::bool or until_at <= ${NOW} order by until_at, kind, name`,
    lockTemporaryLimit: `select until_at, back from ${t.temporary_limit} where kind = :kind and name = :name for update`,
    putTemporaryLimit: `
      insert into ${t.temporary_limit} (kind, name, set_at, until_at, back) values (:kind, :name, ${NOW}, coalesce(:at::bigint, ${NOW} + :delay::bigint), :back)
      on conflict (kind, name) do update set until_at = excluded.until_at, back = excluded.back`,
    deleteTemporaryLimit: `delete from ${t.temporary_limit} where kind = :kind and name = :name`,
    untuneLane: `update ${t.lane} set tuned = false where queue = :queue and key = :key`,
    // Of several names that share the lane the one whose worker started last.
    laneDefaults: `
      select k.lanes from ${t.definition} k where k.has_lane and k.name in (select l.name from ${t.job_type} l where l.queue = :queue and l.laned)
      order by k.seen_at desc, k.name desc limit 1`,
    // The count stays as it is: what runs is counted, whatever the limits are.
    resetLane: `
      update ${t.lane} a set concurrency = :concurrency::int, rate_limit = :rateLimit::int, rate_per = :ratePer::bigint, weight = coalesce(:weight::int, 1),
        starts = null, tuned = false, paused_at = case when not :drop::bool then a.paused_at end,
        used_at = case when :drop::bool then least(a.used_at, ${NOW} - ${DELETE_AFTER_MS - MARK_AFTER_MS}) else a.used_at end
      where a.queue = :queue and a.key = :key returning a.id, exists (select 1 from ${t.ready} r where r.lane = a.id and r.token is null) as occupied`,
    queueUse: `
      select q.name, q.settings, q.cool_base_ms, q.cool_max_ms, q.running, q.starts, ${NOW} as now,
        coalesce((select sum(r.n) from ${t.returned_capacity} r where r.queue = q.name), 0) as back
      from ${t.queue} q where q.limited order by q.name`,
    // Those at their limit are looked for, at most 500, and of them those with most jobs are counted again to the full.
    throttledLanes: `
      select a.*, ${NOW} as now, ${givenBack} as back,
        (select count(*) from (select 1 from ${t.ready} r where r.lane = a.id and r.token is null limit 10000) capped) as waiting
      from ${t.lane} a where a.id in (
        select f.id from (
          select c.id, (select count(*) from (select 1 from ${t.ready} r where r.lane = c.id and r.token is null limit 100) few) as n
          from (
            select l.id from ${t.lane} l
            where l.paused_at is not null or (l.concurrency is not null and l.running >= l.concurrency) or (l.rate_limit is not null and l.starts is not null)
            order by l.id limit 500
          ) c
        ) f where f.n > 0 order by f.n desc, f.id limit :limit::int
      )`,
    deleteUnusedLanes: `
      with gone as (
        delete from ${t.lane} a where a.id = any(array(
          select a.id from ${t.lane} a where not a.tuned and a.paused_at is null and a.running = 0 and a.used_at < ${NOW} - ${DELETE_AFTER_MS}
            and not exists (select 1 from ${t.ready} r where r.lane = a.id) limit 1000 for update skip locked))
        returning a.id
      ),
      unrung as (delete from ${t.lane_wakeup} b where b.lanes operator(pg_catalog.<@) array(select id from gone))
      delete from ${t.lane_rotation} w where w.lane in (select id from gone)`,
    whyJob: `
      select r.note, r.throttles, r.counted, ${NOW} as now, q.limited, q.running as queue_running, q.starts as queue_starts, q.settings,
        a.id as lane_id, a.running, a.concurrency, a.rate_limit, a.rate_per, a.weight, a.paused_at, a.starts,
        ${givenBack} as back,
        (select count(*)::int from ${t.uncounted_job} g where g.queue = l.queue)
          - coalesce((select sum(f.n) from ${t.returned_capacity} f where f.queue = l.queue), 0)::int as uncounted_jobs
      from ${t.ready} r join ${t.job_type} l on l.id = r.job_type left join ${t.queue} q on q.name = l.queue left join ${t.lane} a on a.id = r.lane
      where r.id = :id::uuid`,

    // Breakers.
    breakerRows: `
      select b.*, ${NOW} as now, exists (select 1 from ${t.session} s where s.id = b.probe_session and s.lease_until > ${NOW}) as probing
      from ${t.breaker} b where :keys::text[] is null or b.key = any(:keys::text[]) order by b.key`,
    addBreakers: `
      insert into ${t.breaker} (key) select k from unnest(:keys::text[]) as k order by k on conflict (key) do nothing`,
    lockBreakers: `
      select b.*, ${NOW} as now from ${t.breaker} b where b.key = any(:keys::text[]) order by b.key for update`,
    writeBreakers: `
      update ${t.breaker} b set failures = w.failures, opened_at = w.opened_at, open_until = w.open_until, probe_session = w.probe, error = w.error,
        counted = w.counted
      from unnest(:rows.key::text[], :rows.failures::int[], :rows.openedAt::bigint[], :rows.openUntil::bigint[], :rows.probe::bigint[], :rows.error::text[],
        :rows.counted::text[]) as w (key, failures, opened_at, open_until, probe, error, counted) where b.key = w.key`,
    // A scalar subquery, and not \`not exists\`: that is made into a join, and is then not asked again for a row that
    // somebody else has changed while this waited for its lock. Two would win the probe.
    probeBreaker: `
      update ${t.breaker} b set probe_session = :session::bigint
      where b.key = :key and b.open_until <= ${NOW}
        and (b.probe_session = :session::bigint or coalesce((select s.lease_until from ${t.session} s where s.id = b.probe_session), 0) <= ${NOW})
      returning b.key`,
    unprobeBreaker: `update ${t.breaker} set probe_session = null where key = :key and probe_session = :session::bigint returning key`,
    resetBreaker: `delete from ${t.breaker} where key = :key returning key`,
  };
}
