/**
 * The dashboard's statements for Postgres. Read it beside storage/sqlite/statements/browse.ts: same names, same order, same parameters.
 *
 * A walk takes at most :scan entries of an index, newest first, between :from and :cursor or :before, whichever comes first
 * (one bound, which is always there: `id < $1 or $1 is null` could not be an index condition), and filters what it took. Columns of `job` are looked at only for a
 * filter that needs them (:deep).
 */
import { WAITING_AT } from "../../../jobs/job.ts";
import { conditions, type Given, type Statements, type Tables } from "../../catalogue.ts";
import { stillOpen } from "../../../operate/browse-rows.ts";

interface Shared {
  readonly NOW: string;
  readonly BEFORE_ALL: string;
  readonly state: string;
  /** Live jobs, and ended ones, with these columns before the usual ones. */
  readonly liveAnd: (columns: string) => string;
  readonly endedAnd: (columns: string) => string;
  readonly levels: string;
}

export function insightStatements(t: Tables, { NOW, BEFORE_ALL, state, liveAnd, endedAnd, levels }: Shared) {
  const jobTypeAsked = `(:queues::text[] is null or l.queue = any(:queues::text[])) and (:names::text[] is null or l.name = any(:names::text[]))`;
  const jobTypesIn = `from ${t.job_type} l
          where ${jobTypeAsked}`;
  const among = (row: string) =>
    `((:queues::text[] is null and :names::text[] is null) or ${row}.job_type in (select l.id ${jobTypesIn}))`;
  // Postgres reads no JSON that has these in a string (NUL, and halves of a surrogate pair), anywhere in it.
  const noText = `\\\\u(0000|[dD][89a-fA-F])`;
  // Each `offset 0` keeps its look one for each row: without it, a table that was never analyzed is read whole into a hash
  // (121,000 rows of history for the 1,000 that a piece takes).
  const walk = (given: Given, taken: string, table: string) => `
      with walked as materialized (${taken}),${
        given("paths")
          ? `
      wanted as materialized (
        select p.want, array(select json_array_elements_text(p.path::json)) as path from unnest(:paths::text[], :wants::text[]) as p (path, want)
      ),`
          : ""
      }
      found as (
        select w.id, w.state, w.job_type from walked w
        where ${conditions(given, {
          from: "w.id >= :from::uuid",
          states: "w.state = any(:states::text[])",
          "queues names": `w.job_type in (select l.id from ${t.job_type} l where ${jobTypesOf(given)})`,
          group: "w.failure_group = :group::text",
          retrying: "w.failure_group is not null",
          attemptMin: "w.attempt >= :attemptMin::bigint",
          attemptMax: "w.attempt <= :attemptMax::bigint",
          endedMin: "w.ended_at >= :endedMin::bigint",
          endedMax: "w.ended_at <= :endedMax::bigint",
          "ranMin ranMax": "w.state in ('running', 'done', 'dead', 'cancelled')",
          ranMin: `coalesce(w.ended_at, ${NOW}) - w.started_at >= :ranMin::bigint`,
          ranMax: `coalesce(w.ended_at, ${NOW}) - w.started_at between 0 and :ranMax::bigint`,
          worker: `w.session in (select s.id from ${t.session} s where s.worker_id = :worker::text or s.name = :worker::text)`,
          error: `exists (select 1 from ${table} e where e.id = w.id and strpos(lower(e.errors collate "C"), :error::text) > 0 offset 0)`,
          deep: `exists (
            select 1 from ${t.job} j where j.id = w.id and ${ofJob(given, table)} offset 0)`,
        })}
      )`;
  const jobTypesOf = (given: Given) =>
    conditions(given, { queues: "l.queue = any(:queues::text[])", names: "l.name = any(:names::text[])" });
  const ofJob = (given: Given, table: string) =>
    conditions(given, {
      lane: "j.lane = :lane::text",
      key: "j.key = :key::text",
      since: "j.created_at >= :since::bigint",
      until: "j.created_at < :until::bigint",
      workflow: "j.parent_id = :workflow::uuid",
      trace: "j.extras like :trace::text",
      search: `(strpos(lower(j.input collate "C"), :search::text) > 0
                or strpos(lower(j.context collate "C"), :search::text) > 0 or exists (select 1 from ${table} e where e.id = w.id and strpos(lower(e.errors collate "C"), :search::text) > 0 offset 0))`,
      paths: `case when j.input ~ '${noText}' then false else not exists (
                select 1 from wanted x where coalesce(j.input::json #>> x.path, case when (j.input::json #> x.path) is not null then 'null' end)
                  is distinct from x.want) end`,
    });
  /** Null where the walk went beyond what is asked for: there is nothing behind it. */
  const bottom = (given: Given) =>
    `(select id from (select id from walked order by id limit 1) lowest where ${conditions(given, { from: "id > :from::uuid" })})`;
  type Taken = (given: Given) => string;
  const browse = (taken: Taken, table: string) => (given: Given) =>
    `${walk(given, taken(given), table)}
      (select f.id, null::uuid as bottom, null::bigint as walked from found f order by f.id desc limit :limit::int)
      union all
      select null, ${bottom(given)}, (select count(*) from walked)`;
  const tally = (taken: Taken, table: string) => (given: Given) =>
    `${walk(given, taken(given), table)}
      select f.state, f.job_type, count(*) as n, null::uuid as bottom from found f group by f.state, f.job_type
      union all select null, null, (select count(*) from walked), ${bottom(given)}`;
  // One bound, not two: on a table that was never analyzed Postgres expects 1 row in 200 between two bounds, and would
  // fetch and sort the whole table (121,300 rows read; this way 1,000). The lower one is checked afterwards.
  const bounded = (given: Given, row: string) => {
    if (given("cursor") && given("before")) return `${row}.id < least(:cursor::uuid, :before::uuid)`;
    return conditions(given, { cursor: `${row}.id < :cursor::uuid`, before: `${row}.id < :before::uuid` });
  };
  const range = (row: string) => `${row}.id < least(:cursor::uuid, :before::uuid)`;
  const newest = (row: string) => `order by ${row}.id desc limit :scan::int`;
  const columns = `r.id, r.job_type, ${state} as state, r.failure_group, r.attempt, r.session, r.started_at, null::bigint as ended_at`;
  const endedColumns = `h.id, h.job_type, h.state, h.failure_group, h.attempt, h.session, h.started_at, h.ended_at`;
  const takenLive = (given: Given) =>
    `select ${columns} from ${t.ready} r where ${bounded(given, "r")} ${newest("r")}`;
  // Behind a fence, so that it stays a lookup for each claimed job: as a join it may become a scan of ready.
  const held = `${t.claim} c cross join lateral unnest(c.ids) as o (id)
        cross join lateral (select * from ${t.ready} k where k.id = o.id and k.token = c.token offset 0) r`;
  const takenHeld = (given: Given) => `
        select ${columns} from ${held} where ${bounded(given, "r")} ${newest("r")}`;
  const takenFailed = (given: Given) =>
    `select ${columns} from ${t.ready} r where r.failure_group is not null and ${bounded(given, "r")} ${newest("r")}`;
  const takenEnded = (given: Given) =>
    `select ${endedColumns} from ${t.history} h where ${bounded(given, "h")} ${newest("h")}`;
  const takenNotDone = (given: Given) =>
    `select ${endedColumns} from ${t.history} h where h.state <> 'done' and ${bounded(given, "h")} ${newest("h")}`;
  // What a run called or enqueued, by the index of parents, and the jobs of a batch; each is looked up where it is, behind a fence as above.
  const takenFrom = (some: Taken) => (given: Given) =>
    `
        select c.id, coalesce(r.job_type, h.job_type) as job_type, case when r.id is null then h.state else ${state} end as state,
          coalesce(r.failure_group, h.failure_group) as failure_group, coalesce(r.attempt, h.attempt) as attempt, coalesce(r.session, h.session) as session,
          coalesce(r.started_at, h.started_at) as started_at, h.ended_at
        from (select p.id from ${some(given)} and ${bounded(given, "p")} ${newest("p")}) c
        left join lateral (select * from ${t.ready} k where k.id = c.id offset 0) r on true
        left join lateral (select * from ${t.history} k where k.id = c.id offset 0) h on true`;
  const takenChildren = takenFrom(() => `${t.job} p where p.parent_id = :workflow::uuid`);
  const takenMembers = takenFrom(() => `${t.member} p where p.batch = :batch::uuid`);
  // By their ids, of which there are as many as were given.
  const takenNamed = takenFrom(
    (given) => `
          ${t.job} p where p.id = any(:ids::uuid[]) and ${conditions(given, {
            workflow: "p.parent_id = :workflow::uuid",
            batch: `exists (select 1 from ${t.member} m where m.batch = :batch::uuid and m.id = p.id)`,
          })}`,
  );
  const either = `(select id, errors from ${t.ready} union all select id, errors from ${t.history})`;
  // Once for all levels: each of them asks several times.
  const now = "(select now from clock)";
  const due = `r.run_at >= lv.from_at and r.run_at <= ${now}`;
  const later = `r.run_at > ${now} and r.run_at < ${WAITING_AT}`;
  const waits = `r.run_at >= ${WAITING_AT}`;
  // What waits for a signal or for others until a time: not due later, but waiting (as `state` says). An index of its own has it.
  const until = `${later} and r.waits in ('signal', 'jobs')`;
  const ofLevel = `${t.ready} r where r.job_type = lv.job_type and r.rank = lv.rank`;
  const count = (where: string, most = "lv.most") =>
    `(select count(*) from (select 1 from ${ofLevel} and ${where} limit ${most}) x)`;
  /** The hundredth entry behind the first few; none: there are fewer. */
  const hundredth = (where: string, first = "0") =>
    `(select r.run_at, r.id from ${ofLevel} and ${where} order by r.run_at, r.id offset 99 + ${first} limit 1)`;
  /** What there is behind that entry. */
  const rest = (where: string, name: string, most: string) =>
    `case when lv.${name}_id is null or ${most} <= 0 then 0 else ${count(`${where} and (r.run_at, r.id) > (lv.${name}_at, lv.${name}_id)`, most)} end`;
  const inGroup = (row: string) =>
    `${row}.failure_group is not null and (:group::text is null or ${row}.failure_group = :group::text) and ${among(row)}`;
  /** As text: Postgres 14 has no greatest uuid. By bytes: by the rules of a language it took twice as long. */
  const highest = (id: string) => `max(${id}::text collate "C")`;
  const short = (query: string) => `
      select id, rank, attempt, crashes, run_at, started_at, ended_at, errors, state, waits, created_at, max_attempts, key, lane, context, parent_id,
        queue, name, worker_id, failure_group, case when octet_length(input) <= 4096 then input end as input, octet_length(input) as input_bytes
      from (${query}) one`;
  const more = (row: string) =>
    `${row}.failure_group, ${row}.throttles, j.timeout_ms, j.deadline_at, j.extras, `;
  const detailed = { live: liveAnd(more("r")), ended: endedAnd(more("h")) };

  return {
    browseLive: browse(takenLive, t.ready),
    browseHeld: browse(takenHeld, t.ready),
    browseFailed: browse(takenFailed, t.ready),
    browseEnded: browse(takenEnded, t.history),
    browseNotDone: browse(takenNotDone, t.history),
    browseChildren: browse(takenChildren, either),
    browseNamed: browse(takenNamed, either),
    browseMembers: browse(takenMembers, either),
    tallyLive: tally(takenLive, t.ready),
    tallyHeld: tally(takenHeld, t.ready),
    tallyFailed: tally(takenFailed, t.ready),
    tallyEnded: tally(takenEnded, t.history),
    tallyNotDone: tally(takenNotDone, t.history),
    tallyChildren: tally(takenChildren, either),
    tallyMembers: tally(takenMembers, either),
    // The comparison takes job type and rank along: with `job type = … and rank = …` Postgres expects a row or two on a table that was
    // never analyzed, and fetches and sorts the whole level (20,304 rows read; this way 50). Other levels are left out afterwards.
    jobsInOrder: `
      with recursive scope as (select l.id as job_type ${jobTypesIn}),${levels}
      select h.id, h.run_at, h.waits from level_of lv cross join lateral (
        select r.id, r.run_at, r.rank, r.job_type, r.waits from ${t.ready} r
        where case when r.token is null then true end
          and (r.job_type, r.rank, r.run_at, r.id) > (lv.job_type, lv.rank, greatest(:fromAt::bigint, ${NOW}),
            case when :fromAt::bigint > ${NOW} then :fromRowKey::uuid else 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid end)
        order by r.job_type, r.rank, r.run_at, r.id limit :limit::int
      ) h where lv.rank is not null and h.job_type = lv.job_type and h.rank = lv.rank and h.run_at < ${WAITING_AT}
      order by h.run_at, h.id limit :limit::int`,
    // Through the index of ids, which is all that they read. Each has one bound, as the walks do (see `range`).
    idsFrom: `
      with taken as materialized (select id from ${t.job} where id <= :last::uuid order by id desc limit :limit::int)
      select id from taken where id >= :first::uuid`,
    walkIds: `
      with walked as materialized (select id from ${t.job} where id < :before::uuid order by id desc limit :scan::int)
      select id, null::int as walked from walked where right(id::text, length(:end::text)) = :end::text
      union all select (select id from walked order by id limit 1), (select count(*)::int from walked)`,
    summaries: short(`
        ${detailed.live} where r.id = any(:ids::uuid[]) union all ${detailed.ended} where h.id = any(:ids::uuid[])`),
    inspect: `
      select * from (${detailed.live} where r.id = :id::uuid union all ${detailed.ended} where h.id = :id::uuid) one limit 1`,
    // From run to run through the key of their steps: jobs without steps cost nothing.
    walkRuns: `
      with recursive run (id, n) as (
        (select job, 1 from ${t.step} where job < :before::uuid order by job desc limit 1)
        union all
        select (select s.job from ${t.step} s where s.job < r.id order by s.job desc limit 1), r.n + 1 from run r where r.id is not null and r.n < :scan::int
      )
      select id from run where id is not null`,
    // Run by run: with one look for all of them, a table that was never analyzed was read from end to end.
    runSteps: `
      select n.id, r.known, r.done, r.retrying, s.name, s.kind, s.label, s.started_at, s.wake_at, s.child
      from unnest(:jobs.id::uuid[], :jobs.begun::bigint[], :jobs.ended::bool[]) as n (id, begun, ended) cross join lateral (
        select count(*) as known, count(*) filter (where not ${stillOpen("w", "n.begun", "n.ended")}) as done,
          bool_or(w.state = 'open' and w.fails > 0) as retrying, max(case when ${stillOpen("w", "n.begun", "n.ended")} then w.seq end) as at
        from ${t.step} w where w.job = n.id and w.kind <> 'undo'
      ) r left join lateral (
        select * from ${t.step} where job = n.id and seq = r.at and state = 'open' and kind <> 'undo' offset 0
      ) s on true
      where r.known > 0`,
    // The token is in no index (a claim would write an entry each time), so running jobs, which were due, are counted with the
    // ready ones and taken off: with `token is null` each entry cost a look at its row (1 M jobs, 253 levels: 140 ms).
    // Every level is counted to a hundred of each state; what has more shares the budget, and is counted on from the hundredth
    // entry. A level's last entry says what there is none of. What waits until a time is among what is due later, and
    // is taken off; where there is more of it than is counted, how much is left is not known.
    // A job type is counted from its :begins on (limits/queue-counts.ts): a condition on the index, so that entries before it cost no look at a row.
    // Job types and levels pass through arrays, of which Postgres expects ten: of a recursion it expects a hundred times as many as
    // there are, and a server that compiles costly plans would take longer to compile this one than to run it.
    tallyJobTypes: `
      with recursive clock (now) as materialized (select ${NOW}),
      job_type_of (job_type, from_at) as materialized (
        select l.id, coalesce(b.at, ${BEFORE_ALL}) from ${t.job_type} l
        left join unnest(:begins.queue::text[], :begins.name::text[], :begins.at::bigint[]) as b (queue, name, at) on b.queue = l.queue and b.name = l.name
        where ${jobTypeAsked}
      ),
      level_of (job_type, from_at, rank, last) as (
        select s.*, e.* from unnest(array(select job_type from job_type_of), array(select from_at from job_type_of)) as s (job_type, from_at) cross join lateral (
          select r.rank, r.run_at from ${t.ready} r where r.job_type = s.job_type and r.run_at >= s.from_at order by r.rank desc, r.run_at desc limit 1) e
        union all
        select l.job_type, l.from_at, e.* from level_of l cross join lateral (
          select r.rank, r.run_at from ${t.ready} r where r.job_type = l.job_type and r.rank < l.rank and r.run_at >= l.from_at order by r.rank desc, r.run_at desc limit 1) e
      ),
      busy as materialized (
        select r.job_type, count(*) as n from ${held} join job_type_of s on s.job_type = r.job_type where r.run_at >= s.from_at group by r.job_type
      ),
      waiters (found) as materialized (select exists (select 1 from ${t.ready} r where r.waits in ('signal', 'jobs') and r.run_at < ${WAITING_AT})),
      level as materialized (
        select lv.*, coalesce(b.n, 0) as busy,
          case when lv.last > ${now} and (select found from waiters) then ${count(until, "100")} else 0 end as timed
        from unnest(array(select job_type from level_of), array(select from_at from level_of), array(select rank from level_of), array(select last from level_of))
          as lv (job_type, from_at, rank, last)
        left join busy b on b.job_type = lv.job_type
      ),
      probed as materialized (
        select lv.*, d.run_at as due_at, d.id as due_id, e.run_at as later_at, e.id as later_id, w.run_at as waits_at, w.id as waits_id
        from level lv left join lateral ${hundredth(due, "lv.busy")} d on true
        left join lateral ${hundredth(`lv.last > ${now} and ${later}`, "lv.timed")} e on true
        left join lateral ${hundredth(`lv.last >= ${WAITING_AT} and ${waits}`)} w on true
      ),
      small as materialized (
        select lv.*, case when lv.due_id is null then ${count(due, "99 + lv.busy")} else 100 + lv.busy end as ready,
          case when lv.last <= ${now} then 0 when lv.later_id is null then ${count(later, "99 + lv.timed")} else 100 + lv.timed end as later,
          case when lv.last < ${WAITING_AT} then 0 when lv.waits_id is null then ${count(waits, "99")} else 100 end as waiting
        from probed lv
      ),
      cap (n) as materialized (
        select greatest(100, least(:cap::int, :budget::int / greatest(1, sum(
          (ready >= 100 + busy)::int + (later >= 100 + timed)::int + (waiting >= 100)::int + (timed >= 100)::int))))
        from small
      ),
      large as materialized (
        select lv.*, case when lv.timed < 100 then lv.timed else ${count(until)} end as until
        from (select s.*, (select n from cap) as most from small s) lv
      ),
      counted as materialized (
        select lv.job_type, lv.rank, lv.most, lv.most + lv.busy as most_due, lv.until,
          lv.ready + ${rest(due, "due", "lv.most - 100")} as ready,
          lv.later + ${rest(later, "later", "lv.most + lv.until - 100 - lv.timed")} as later,
          lv.waiting + ${rest(waits, "waits", "lv.most - 100")} as waiting,
          case when lv.ready > 0 then (
            select r.run_at from ${t.ready} r where r.job_type = lv.job_type and r.rank = lv.rank and r.token is null and ${due}
            order by r.run_at, r.id limit 1) end as oldest
        from large lv
      ),
      -- The first entry that is due later. Where some wait until a time, rows are read until one does not, at most as many as wait.
      nexts as materialized (
        select lv.*, case when lv.later = 0 then null
          when lv.until = 0 then (select r.run_at from ${ofLevel} and ${later} order by r.run_at, r.id limit 1)
          when lv.until < lv.most and lv.later > lv.until then (
            select r.run_at from ${ofLevel} and ${later} and coalesce(r.waits, 'sleep') = 'sleep' order by r.run_at, r.id limit 1) end as next
        from counted lv
      ),
      summed as (
        select job_type, sum(ready) as ready, sum(case when until < most then later - until else 0 end) as scheduled, sum(waiting + until) as waiting,
          min(oldest) as oldest, min(next) as next, bool_or(ready >= most_due) as more_ready, bool_or(waiting >= most or until >= most) as more_waiting,
          bool_or(later >= most + until or (until >= most and later > until)) as more_scheduled
        from nexts group by job_type
      )
      select l.queue, l.name, ${now} as now, coalesce(sum(greatest(0, c.ready - coalesce(b.n, 0)::numeric)), 0) as ready,
        coalesce(sum(c.scheduled), 0) as scheduled, coalesce(sum(c.waiting), 0) as waiting, min(c.oldest) as oldest, min(c.next) as next,
        coalesce(bool_or(c.more_ready), false)::int as more_ready, coalesce(bool_or(c.more_scheduled), false)::int as more_scheduled,
        coalesce(bool_or(c.more_waiting), false)::int as more_waiting
      from ${t.job_type} l left join summed c on c.job_type = l.id left join busy b on b.job_type = l.id
      where ${jobTypeAsked} group by l.queue, l.name order by l.queue, l.name`,
    tallyRunning: `
      select l.queue, l.name, c.session, ${NOW} as now, count(*) as running, min(r.started_at) as longest
      from ${held} join ${t.job_type} l on l.id = r.job_type group by l.queue, l.name, c.session order by l.queue, l.name, c.session`,
    jobTypeNames: `select distinct queue, name from ${t.job_type} order by queue, name`,
    // Lanes by the jobs that are due longest and shortest, some of each level: a lane with much of what waits is among them,
    // however many lanes there are. Those found are counted on the index of lanes, with what runs, which is taken off.
    // The comparisons take job type and rank along, as in jobsInOrder.
    topLanes: `
      with recursive scope as materialized (select l.id as job_type from ${t.job_type} l where l.queue = :queue and l.laned),${levels},
      piece (n) as materialized (select greatest(10, :scan::int / 2 / greatest(1, count(*))) from level_of lv where lv.rank is not null),
      top as materialized (
        select h.lane from level_of lv cross join lateral (
          select * from (
            select r.lane, r.job_type, r.rank, r.run_at, r.token from ${t.ready} r
            where (r.job_type, r.rank, r.run_at, r.id) >= (lv.job_type, lv.rank, 0::bigint, '00000000-0000-0000-0000-000000000000'::uuid)
            order by r.job_type, r.rank, r.run_at, r.id limit (select n from piece)) longest
          union all
          select * from (
            select r.lane, r.job_type, r.rank, r.run_at, r.token from ${t.ready} r
            where (r.job_type, r.rank, r.run_at, r.id) <= (lv.job_type, lv.rank, ${NOW}, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid)
            order by r.job_type desc, r.rank desc, r.run_at desc, r.id desc limit (select n from piece)) shortest
        ) h
        where lv.rank is not null and h.job_type = lv.job_type and h.rank = lv.rank and h.token is null and h.run_at <= ${NOW}
        group by h.lane order by count(*) desc, h.lane limit :limit::int
      )
      select a.*, ${NOW} as now, b.back,
        greatest(0, (select count(*) from (select 1 from ${t.ready} r where r.lane = a.id limit 10000 + greatest(0, a.running - b.back)) capped)
          - greatest(0, a.running - b.back))::int as waiting
      from top cross join lateral (select * from ${t.lane} k where k.id = top.lane offset 0) a
      cross join lateral (
        select coalesce(sum(u.back), 0)::int as back from ${t.job_type} o join ${t.lane_wakeup} g on g.job_type = o.id and g.backs is not null
        cross join lateral unnest(g.lanes, g.backs) as u (lane, back) where o.queue = a.queue and o.laned and u.lane = a.id
      ) b`,
    // By job type first, which is a number: with the names joined before, grouping 50,000 took three times as long. The cases hide from
    // the planner what they ask: it expected 59 rows of the 7,000, and sorted them by text instead of hashing them (1.5 times as long).
    groupDead: `
      with clock (now) as materialized (select ${NOW}),
      walked as materialized (
        select h.id, h.job_type, h.failure_group, h.ended_at, h.state from ${t.history} h where h.state <> 'done' and ${range("h")} ${newest("h")}
      ),
      counted as (
        select w.job_type, w.failure_group, count(*) as n, min(w.ended_at) as first_at, max(w.ended_at) as last_at, ${highest("w.id")} as sample,
          count(*) filter (where w.ended_at > ${now} - 3600000) as hour, count(*) filter (where w.ended_at > ${now} - 86400000) as day,
          count(*) filter (where w.ended_at > ${now} - 604800000) as week
        from walked w where case when w.state = 'dead' and ${inGroup("w")} then true end group by w.job_type, w.failure_group
      )
      select l.queue, l.name, c.failure_group, c.n, c.first_at, c.last_at, c.sample, c.hour, c.day, c.week
      from counted c join ${t.job_type} l on l.id = c.job_type
      union all select null, null, null, (select count(*) from walked), null, null, null, null, ${now}, null`,
    groupFailed: `
      with counted as (
        select w.job_type, w.failure_group, count(*) as n, ${highest("w.id")} as sample
        from (select r.id, r.job_type, r.failure_group from ${t.ready} r where r.failure_group is not null and ${range("r")} ${newest("r")}) w
        where case when ${inGroup("w")} then true end group by w.job_type, w.failure_group
      )
      select l.queue, l.name, c.failure_group, c.n, c.sample, null as first_at, null as last_at from counted c join ${t.job_type} l on l.id = c.job_type`,
    addAudit: `
      insert into ${t.audit} (at, actor, action, target, outcome, details)
      values (${NOW}, :actor, :action, :target, :outcome, :details)`,
    dropAudit: `delete from ${t.audit} where at < ${NOW} - 7776000000 and id < (select max(id) from ${t.audit}) returning id`,
    listAudit: `
      select a.id, a.at, a.actor, a.action, a.target, a.outcome, a.details
      from ${t.audit} a where a.id < :before::bigint order by a.id desc limit :limit::int`,
    // Beside each other in the index of targets, as `newestOccurrences`.
    auditOf: `
      select a.id, a.at, a.actor, a.action, a.target, a.outcome, a.details
      from (
        select * from ${t.audit} where (target, id) < (:target, :before::bigint) order by target desc, id desc limit :limit::int
      ) a where a.target = :target`,
    health: `
      select current_setting('server_version') as version, pg_database_size(current_database()) as size, null::bigint as free,
        (select count(*) from pg_stat_activity where datname = current_database()) as connections,
        current_setting('max_connections')::int as max_connections,
        (select (extract(epoch from max(statement_timestamp() - xact_start)) * 1000.0)::bigint from pg_stat_activity
          where datname = current_database() and xact_start is not null and pid <> pg_backend_pid()) as oldest_ms`,
    tables: `
      select regexp_replace(c.relname, '^(job|history)_([0-9]+|rest)$', '\\1') as name, sum(pg_total_relation_size(c.oid)) as bytes,
        sum(coalesce(s.n_live_tup, 0)) as rows, sum(coalesce(s.n_dead_tup, 0)) as dead_rows,
        max((extract(epoch from greatest(s.last_autovacuum, s.last_vacuum)) * 1000.0)::bigint) as vacuumed_at
      from pg_class c left join pg_stat_all_tables s on s.relid = c.oid
      where c.relkind = 'r' and c.relnamespace = (select k.relnamespace from pg_class k where k.oid = '${t.ready}'::regclass)
      group by 1 order by 2 desc, 1`,
  } satisfies Partial<Statements>;
}
