/**
 * The dashboard's statements for SQLite. Read it beside storage/postgres/statements/browse.ts: same names, same order, same parameters.
 *
 * A walk takes at most :scan rows, newest first, from :cursor down to the time that is asked for, and filters what it
 * took. Each condition is in the text only if the filter has its field. Rows of `job` are read only for a filter that needs
 * them (:deep), and for the ids of the answer.
 */
import { WAITING_AT } from "../../../jobs/job.ts";
import { conditions, type Given, type Statements, type Tables } from "../../catalogue.ts";
import { CLOCK_SLACK_MS, stillOpen } from "../../../operate/browse-rows.ts";
import { seqOf } from "../seq.ts";

interface Shared {
  readonly state: string;
  /** Live jobs, and ended ones, with these columns before the usual ones. */
  readonly liveAnd: (columns: string) => string;
  readonly endedAnd: (columns: string) => string;
  readonly levels: string;
}

export function insightStatements(t: Tables, { state, liveAnd, endedAnd, levels }: Shared) {
  const seq = seqOf(t);
  const jobTypeAsked = `(:queues is null or l.queue in (select value from json_each(:queues))) and (:names is null or l.name in (select value from json_each(:names)))`;
  const jobTypesIn = `from ${t.job_type} l
          where ${jobTypeAsked}`;
  const among = (row: string) =>
    `((:queues is null and :names is null) or ${row}.job_type in (select l.id ${jobTypesIn}))`;
  // By keys, and with numbers as places in a list: `items.0.id` may mean either.
  const path = (part: string) => `(select '$' || group_concat(${part}, '') from json_each(p.value) s)`;
  const value = (at: string) =>
    `case json_type(j.input, ${at}) when 'true' then 'true' when 'false' then 'false' when 'null' then 'null' else cast(json_extract(j.input, ${at}) as text) end`;
  const walk = (given: Given, taken: string, table: string) => `
      with walked as materialized (${taken}),${
        given("paths")
          ? `
      wanted as materialized (
        select v.value as want, ${path(`'."' || s.value || '"'`)} as path,
          ${path(`case when s.value glob '[0-9]*' then '[' || s.value || ']' else '."' || s.value || '"' end`)} as row_key
        from json_each(:paths) p join json_each(:wants) v on v.key = p.key
      ),`
          : ""
      }
      found as (
        select w.seq, w.state, w.job_type from walked w
        where ${conditions(given, {
          states: "w.state in (select value from json_each(:states))",
          "queues names": `w.job_type in (select l.id from ${t.job_type} l where ${jobTypesOf(given)})`,
          group: "w.failure_group = :group",
          retrying: "w.failure_group is not null",
          endedMin: "w.ended_at >= :endedMin",
          endedMax: "w.ended_at <= :endedMax",
          "attemptMin attemptMax ranMin ranMax worker error": `exists (
            select 1 from ${table} e where e.seq = w.seq and ${ofAttempt(given)})`,
          deep: `exists (
            select 1 from ${t.job} j where j.seq = w.seq and ${ofJob(given, table)})`,
        })}
      )`;
  const jobTypesOf = (given: Given) =>
    conditions(given, {
      queues: "l.queue in (select value from json_each(:queues))",
      names: "l.name in (select value from json_each(:names))",
    });
  const ofAttempt = (given: Given) =>
    conditions(given, {
      attemptMin: "e.attempt >= :attemptMin",
      attemptMax: "e.attempt <= :attemptMax",
      "ranMin ranMax": "w.state in ('running', 'done', 'dead', 'cancelled')",
      ranMin: "coalesce(w.ended_at, :now) - e.started_at >= :ranMin",
      ranMax: "coalesce(w.ended_at, :now) - e.started_at between 0 and :ranMax",
      worker: `e.session in (select s.id from ${t.session} s where s.worker_id = :worker or s.name = :worker)`,
      error: "instr(lower(e.errors), :error) > 0",
    });
  const ofJob = (given: Given, table: string) =>
    conditions(given, {
      lane: "j.lane = :lane",
      key: "j.key = :key",
      since: "j.created_at >= :since",
      until: "j.created_at < :until",
      workflow: "j.parent_id = :workflow",
      trace: "j.extras like :trace",
      search: `(instr(lower(j.input), :search) > 0 or instr(lower(j.context), :search) > 0 or exists (select 1 from ${table} e where e.seq = w.seq and instr(lower(e.errors), :search) > 0))`,
      paths: `json_valid(j.input) and not exists (
                select 1 from wanted x where coalesce(${value("x.path")}, ${value("x.row_key")}) is not x.want)`,
    });
  type Taken = (given: Given) => string;
  const browse = (taken: Taken, table: string) => (given: Given) =>
    `${walk(given, taken(given), table)}
      select * from (select ${seq.id("f.seq")} as id, f.seq as row_key, null as bottom, null as walked from found f order by f.seq desc limit :limit)
      union all
      select null, null, (select min(seq) from walked), (select count(*) from walked)`;
  const tally = (taken: Taken, table: string) => (given: Given) =>
    `${walk(given, taken(given), table)}
      select f.state, f.job_type, count(*) as n, null as bottom from found f group by f.state, f.job_type
      union all select null, null, (select count(*) from walked), (select min(seq) from walked)`;
  const under = (row: string) => `${row}.seq < coalesce(cast(:cursor as integer), 9223372036854775807)`;
  /** The clock of the enqueuing process may have been corrected since, hence the slack. */
  const bounded = (given: Given, row: string) =>
    conditions(given, {
      cursor: `${row}.seq < cast(:cursor as integer)`,
      until: `${row}.seq < ${seq.at(`:until + ${CLOCK_SLACK_MS}`)}`,
      endedMax: `${row}.seq < ${seq.at(`:endedMax + ${CLOCK_SLACK_MS}`)}`,
      since: `${row}.seq >= ${seq.at(`:since - ${CLOCK_SLACK_MS}`)}`,
    });
  const newest = (row: string) => `order by ${row}.seq desc limit :scan`;
  const columns = `r.seq, r.job_type, ${state} as state, r.failure_group, null as ended_at`;
  const endedColumns = `h.seq, h.job_type, h.state, h.failure_group, h.ended_at`;
  const takenLive = (given: Given) =>
    `select ${columns} from ${t.ready} r where ${bounded(given, "r")} ${newest("r")}`;
  const takenHeld = (given: Given) => `
        select ${columns} from ${t.claim} c cross join json_each(c.ids) o cross join ${t.ready} r on r.seq = o.value and r.token = c.token
        where ${bounded(given, "r")} ${newest("r")}`;
  const takenFailed = (given: Given) =>
    `select ${columns} from ${t.ready} r where r.failure_group is not null and ${bounded(given, "r")} ${newest("r")}`;
  const takenEnded = (given: Given) =>
    `select ${endedColumns} from ${t.history} h where ${bounded(given, "h")} ${newest("h")}`;
  const takenNotDone = (given: Given) =>
    `select ${endedColumns} from ${t.history} h where h.state <> 'done' and ${bounded(given, "h")} ${newest("h")}`;
  // What a run called or enqueued, by the index of parents (which has the numbers in it), and the jobs of a batch; each is looked up where it is.
  const takenFrom = (some: Taken) => (given: Given) =>
    `
        select c.seq, coalesce(r.job_type, h.job_type) as job_type, case when r.seq is null then h.state else ${state} end as state,
          coalesce(r.failure_group, h.failure_group) as failure_group, h.ended_at
        from (select p.seq from ${some(given)} and ${bounded(given, "p")} ${newest("p")}) c
        left join ${t.ready} r on r.seq = c.seq left join ${t.history} h on h.seq = c.seq`;
  const takenChildren = takenFrom(() => `${t.job} p where p.parent_id = :workflow`);
  const takenMembers = takenFrom(() => `${t.member} p where p.batch = :batch`);
  // By their ids, of which there are as many as were given.
  const takenNamed = takenFrom(
    (given) => `
          ${t.job} p where p.seq in ${seq.among(":ids")} and ${conditions(given, {
            workflow: "p.parent_id = :workflow",
            batch: `exists (select 1 from ${t.member} m where m.batch = :batch and m.seq = p.seq)`,
          })}`,
  );
  const eitherColumns = "seq, attempt, started_at, session, errors";
  const either = `(select ${eitherColumns} from ${t.ready} union all select ${eitherColumns} from ${t.history})`;
  const due = "r.token is null and r.run_at <= :now";
  const later = `r.token is null and r.run_at > :now and r.run_at < ${WAITING_AT}`;
  const waits = `r.token is null and r.run_at >= ${WAITING_AT}`;
  // What waits for a signal or for others until a time: not due later, but waiting (as `state` says). An index of its own has it.
  const until = `${later} and r.waits in ('signal', 'jobs')`;
  const timed = `r.token is null and r.run_at < ${WAITING_AT} and r.waits in ('signal', 'jobs')`;
  const ofLevel = `${t.ready} r where r.job_type = lv.job_type and r.rank = lv.rank`;
  const count = (where: string, most = "(select n from cap)") =>
    `(select count(*) from (select 1 from ${ofLevel} and ${where} limit ${most}) x)`;
  const dueIn = (row: string) =>
    `${row}.job_type = lv.job_type and ${row}.rank = lv.rank and ${row}.token is null and ${row}.run_at <= :now`;
  const inGroup = (row: string) =>
    `${row}.failure_group is not null and (:group is null or ${row}.failure_group = :group) and ${among(row)}`;
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
    jobsInOrder: `
      with recursive scope as (select l.id as job_type ${jobTypesIn}),${levels}
      select ${seq.id("r.seq")} as id, r.seq as row_key, r.run_at, r.waits from level_of lv cross join ${t.ready} r
      where lv.rank is not null and r.seq in (
        select c.seq from ${t.ready} c
        where c.job_type = lv.job_type and c.rank = lv.rank and c.token is null and c.run_at > :now and c.run_at < ${WAITING_AT}
          and (c.run_at, c.seq) > (:fromAt, cast(:fromRowKey as integer))
        order by c.run_at, c.seq limit :limit
      ) order by r.run_at, r.seq limit :limit`,
    // Through the index of ids, which is all that they read.
    idsFrom: `
      with taken as materialized (select id from ${t.job} where id <= :last order by id desc limit :limit)
      select id from taken where id >= :first`,
    walkIds: `
      with walked as materialized (select id from ${t.job} where id < :before order by id desc limit :scan)
      select id, null as walked from walked where substr(id, -length(:end)) = :end
      union all select min(id), count(*) from walked`,
    summaries: short(`
        ${detailed.live} where r.seq in ${seq.among(":ids")} union all ${detailed.ended} where h.seq in ${seq.among(":ids")}`),
    inspect: `
      select * from (${detailed.live} where r.seq = ${seq.of(":id")} union all ${detailed.ended} where h.seq = ${seq.of(":id")}) one limit 1`,
    // From run to run through the key of their steps: jobs without steps cost nothing.
    walkRuns: `
      with recursive run (id, n) as (
        select * from (select job, 1 from ${t.step} where job < :before order by job desc limit 1)
        union all
        select (select s.job from ${t.step} s where s.job < r.id order by s.job desc limit 1), r.n + 1 from run r where r.id is not null and r.n < :scan
      )
      select id from run where id is not null`,
    runSteps: `
      with run as (
        select s.job, count(*) as known, sum(not ${stillOpen("s", "n.value ->> 'begun'", "n.value ->> 'ended'")}) as done,
          max(s.state = 'open' and s.fails > 0) as retrying,
          max(case when ${stillOpen("s", "n.value ->> 'begun'", "n.value ->> 'ended'")} then s.seq end) as at
        from json_each(:jobs) n cross join ${t.step} s on s.job = n.value ->> 'id' where s.kind <> 'undo' group by s.job
      )
      select r.job as id, r.known, r.done, r.retrying, s.name, s.kind, s.label, s.started_at, s.wake_at, s.child
      from run r left join ${t.step} s on s.job = r.job and s.seq = r.at and s.state = 'open' and s.kind <> 'undo'`,
    // Every level is counted to a hundred of each state; what has more shares the budget. A level's last entry says what there
    // is none of. What waits until a time is among what is due later, and is taken off; where there is more of it than is
    // counted, how much is left is not known. (A limit here may name no column: twice as many as are wanted are enough for any
    // number of them.)
    tallyJobTypes: `
      with recursive scope as (select l.id as job_type ${jobTypesIn}),${levels},
      waiters (found) as materialized (select exists (select 1 from ${t.ready} r where ${timed} limit 1)),
      ends as materialized (
        select lv.job_type, lv.rank, (select r.run_at from ${ofLevel} and r.token is null order by r.run_at desc limit 1) as last
        from level_of lv where lv.rank is not null
      ),
      level as materialized (
        select lv.*, case when lv.last > :now and (select found from waiters) then ${count(until, "100")} else 0 end as timed from ends lv
      ),
      small as materialized (
        select lv.*, ${count(due, "100")} as ready, case when lv.last < ${WAITING_AT} then 0 else ${count(waits, "100")} end as waiting,
          case when lv.last <= :now then 0 when lv.timed = 0 then ${count(later, "100")} else ${count(later, "200")} end as later
        from level lv
      ),
      cap (n) as materialized (
        select cast(max(100, min(:cap, :budget / max(1, coalesce(sum(
          (ready >= 100) + (later - timed >= 100) + (waiting >= 100) + (timed >= 100)), 0)))) as integer) from small),
      large as materialized (
        select lv.*, (select n from cap) as most, case when lv.timed < 100 then lv.timed else ${count(until)} end as until from small lv
      ),
      counted as materialized (
        select lv.job_type, lv.rank, lv.most, lv.until,
          case when lv.ready < 100 or lv.most = 100 then lv.ready else ${count(due)} end as ready,
          case when lv.later - lv.timed < 100 and lv.timed < 100 then lv.later
            when lv.timed = 0 then ${count(later)} else ${count(later, "(select 2 * n from cap)")} end as later,
          case when lv.waiting < 100 or lv.most = 100 then lv.waiting else ${count(waits)} end as waiting,
          case when lv.ready > 0 then (select r.run_at from ${ofLevel} and ${due} order by r.run_at, r.seq limit 1) end as oldest
        from large lv
      ),
      -- The first entry that is due later. Where some wait until a time, rows are read until one does not, at most as many as wait.
      nexts as materialized (
        select lv.*, case when lv.later = 0 then null
          when lv.until = 0 then (select r.run_at from ${ofLevel} and ${later} order by r.run_at limit 1)
          when lv.until < lv.most and lv.later > lv.until then (
            select n.run_at from ${t.ready} n where n.job_type = lv.job_type and n.rank = lv.rank and n.token is null
              and n.run_at > :now and n.run_at < ${WAITING_AT} and coalesce(n.waits, 'sleep') = 'sleep' order by n.run_at limit 1) end as next
        from counted lv
      )
      select l.queue, l.name, :now as now, coalesce(sum(c.ready), 0) as ready,
        coalesce(sum(case when c.until < c.most then min(c.most, c.later - c.until) else 0 end), 0) as scheduled,
        coalesce(sum(c.waiting + c.until), 0) as waiting, min(c.oldest) as oldest, min(c.next) as next, coalesce(max(c.ready >= c.most), 0) as more_ready,
        coalesce(max(c.later - c.until >= c.most or (c.until >= c.most and c.later > c.until)), 0) as more_scheduled,
        coalesce(max(c.waiting >= c.most or c.until >= c.most), 0) as more_waiting
      from ${t.job_type} l left join nexts c on c.job_type = l.id where ${jobTypeAsked} group by l.queue, l.name order by l.queue, l.name`,
    tallyRunning: `
      select l.queue, l.name, c.session, :now as now, count(*) as running, min(r.started_at) as longest
      from ${t.claim} c cross join json_each(c.ids) o cross join ${t.ready} r on r.seq = o.value and r.token = c.token
      join ${t.job_type} l on l.id = r.job_type group by l.queue, l.name, c.session order by l.queue, l.name, c.session`,
    jobTypeNames: `select distinct queue, name from ${t.job_type} order by queue, name`,
    // Lanes by the jobs that are due longest and shortest, some of each level: a lane with much of what waits is among them,
    // however many lanes there are. Those found are counted on the index of lanes.
    topLanes: `
      with recursive scope as materialized (select l.id as job_type from ${t.job_type} l where l.queue = :queue and l.laned),${levels},
      piece (n) as materialized (select cast(max(10, :scan / 2 / max(1, count(*))) as integer) from level_of lv where lv.rank is not null),
      top as materialized (
        select r.lane from level_of lv cross join ${t.ready} r
        where lv.rank is not null and r.seq in (
          select seq from (select c.seq from ${t.ready} c where ${dueIn("c")} order by c.run_at, c.seq limit (select n from piece))
          union all
          select seq from (select c.seq from ${t.ready} c where ${dueIn("c")} order by c.run_at desc, c.seq desc limit (select n from piece))
        ) group by r.lane order by count(*) desc, r.lane limit :limit
      )
      select a.*, :now as now, coalesce((select sum(b.back) from ${t.lane_wakeup} b where b.lane = a.id), 0) as back,
        (select count(*) from (select 1 from ${t.ready} r where r.lane = a.id and r.token is null limit 10000) capped) as waiting
      from top cross join ${t.lane} a on a.id = top.lane`,
    // By job type first, which is a number: with the names joined before, grouping 50,000 took three times as long.
    groupDead: `
      with walked as materialized (
        select h.seq, h.job_type, h.failure_group, h.ended_at, h.state from ${t.history} h where h.state <> 'done' and ${under("h")} ${newest("h")}
      ),
      counted as (
        select w.job_type, w.failure_group, count(*) as n, min(w.ended_at) as first_at, max(w.ended_at) as last_at, max(w.seq) as newest,
          count(*) filter (where w.ended_at > :now - 3600000) as hour, count(*) filter (where w.ended_at > :now - 86400000) as day,
          count(*) filter (where w.ended_at > :now - 604800000) as week
        from walked w where w.state = 'dead' and ${inGroup("w")} group by w.job_type, w.failure_group
      )
      select l.queue, l.name, c.failure_group, c.n, c.first_at, c.last_at, ${seq.id("c.newest")} as sample, c.hour, c.day, c.week
      from counted c join ${t.job_type} l on l.id = c.job_type
      union all select null, null, null, (select count(*) from walked), null, null, null, null, :now, null`,
    groupFailed: `
      with counted as (
        select w.job_type, w.failure_group, count(*) as n, max(w.seq) as newest
        from (select r.seq, r.job_type, r.failure_group from ${t.ready} r where r.failure_group is not null and ${under("r")} ${newest("r")}) w
        where ${inGroup("w")} group by w.job_type, w.failure_group
      )
      select l.queue, l.name, c.failure_group, c.n, ${seq.id("c.newest")} as sample, null as first_at, null as last_at from counted c join ${t.job_type} l on l.id = c.job_type`,
    addAudit: `
      insert into ${t.audit} (at, actor, action, target, outcome, details)
      values (:now, :actor, :action, :target, :outcome, :details)`,
    dropAudit: `delete from ${t.audit} where at < :now - 7776000000 and id < (select max(id) from ${t.audit}) returning id`,
    listAudit: `
      select a.id, a.at, a.actor, a.action, a.target, a.outcome, a.details
      from ${t.audit} a where a.id < :before order by a.id desc limit :limit`,
    auditOf: `
      select a.id, a.at, a.actor, a.action, a.target, a.outcome, a.details
      from ${t.audit} a where a.target = :target and a.id < :before order by a.id desc limit :limit`,
    health: `
      select sqlite_version() as version, p.page_count * s.page_size as size, f.freelist_count * s.page_size as free,
        null as connections, null as max_connections, null as oldest_ms
      from pragma_page_count p, pragma_page_size s, pragma_freelist_count f`,
    tables: `
      select replace(name, (select substr(m.name, 1, length(m.name) - 5) from sqlite_master m where '"' || m.name || '"' = '${t.ready}'), '') as name,
        null as bytes, null as rows, null as dead_rows, null as vacuumed_at
      from sqlite_master where type = 'table' and '"' || name || '"' in (${Object.values(t)
        .map((name) => `'${name}'`)
        .join(", ")}) order by 1`,
  } satisfies Partial<Statements>;
}
