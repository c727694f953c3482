/**
 * The dashboard's statements for SQLite. Read it beside postgres/insight.ts: same names, same order, same parameters.
 *
 * A walk takes at most :scan rows, newest first, from :cursor down to the time that is asked for, and filters what it
 * took. Rows of `job` are looked at only for a filter that needs them (:deep), and for the ids of what is given out.
 */
import { WAITING_AT } from "../job.ts";
import type { Statements, Tables } from "../sql/catalogue.ts";
import { CLOCK_SLACK_MS } from "../sql/insight.ts";
import { seqOf } from "./seq.ts";

interface Shared {
  readonly state: string;
  readonly live: string;
  readonly ended: string;
  readonly levels: string;
}

export function insightStatements(t: Tables, { state, live, ended, levels }: Shared) {
  const seq = seqOf(t);
  const linesIn = `select l.id from ${t.line} l
          where (:queues is null or l.queue in (select value from json_each(:queues))) and (:names is null or l.name in (select value from json_each(:names)))`;
  const walk = (taken: string) => `
      with walked as materialized (${taken}),
      found as (
        select w.seq, w.state, w.line from walked w
        where (:states is null or w.state in (select value from json_each(:states)))
          and ((:queues is null and :names is null) or w.line in (${linesIn}))
          and (:group is null or w.error_group = :group)
          and (not :deep or exists (
            select 1 from ${t.job} j where j.seq = w.seq
              and (:lane is null or j.lane = :lane) and (:key is null or j.key = :key)
              and (:since is null or j.created_at >= :since) and (:until is null or j.created_at < :until)
              and (:search is null or instr(lower(j.input), :search) > 0 or instr(lower(j.context), :search) > 0 or instr(lower(w.errors), :search) > 0)))
      )`;
  const browse = (taken: string) => `${walk(taken)}
      select * from (select ${seq.id("f.seq")} as id, f.seq as place, null as bottom, null as walked from found f order by f.seq desc limit :limit)
      union all
      select null, null, (select min(seq) from walked), (select count(*) from walked)`;
  const tally = (taken: string) => `${walk(taken)}
      select f.state, f.line, count(*) as n, null as bottom from found f group by f.state, f.line
      union all select null, null, (select count(*) from walked), (select min(seq) from walked)`;
  const under = (row: string) => `${row}.seq < coalesce(cast(:cursor as integer), 9223372036854775807)`;
  /** The clock of whoever enqueued may have been put right since, hence the slack. */
  const range = (row: string) => `${under(row)}
          and ${row}.seq < case when :until is null then 9223372036854775807 else ${seq.at(`:until + ${CLOCK_SLACK_MS}`)} end
          and ${row}.seq >= case when :since is null then 0 else ${seq.at(`:since - ${CLOCK_SLACK_MS}`)} end`;
  const newest = (row: string) => `order by ${row}.seq desc limit :scan`;
  const columns = `r.seq, r.line, ${state} as state, r.error_group, r.errors`;
  const endedColumns = `h.seq, h.line, h.state, h.error_group, h.errors`;
  const takenLive = `select ${columns} from ${t.ready} r where ${range("r")} ${newest("r")}`;
  const takenHeld = `
        select ${columns} from ${t.claim} c cross join json_each(c.ids) o cross join ${t.ready} r on r.seq = o.value and r.token = c.token
        where ${range("r")} ${newest("r")}`;
  const takenTroubled = `select ${columns} from ${t.ready} r where r.error_group is not null and ${range("r")} ${newest("r")}`;
  const takenEnded = `select ${endedColumns} from ${t.history} h where ${range("h")} ${newest("h")}`;
  const takenUnhappy = `select ${endedColumns} from ${t.history} h where h.state <> 'done' and ${range("h")} ${newest("h")}`;
  const count = (where: string) =>
    `(select count(*) from (select 1 from ${t.ready} r where r.line = lv.line and r.rank = lv.rank and ${where} limit :cap) x)`;
  const short = (query: string) => `
      select id, rank, attempt, crashes, run_at, started_at, ended_at, errors, state, created_at, max_attempts, key, lane, context, parent_id,
        queue, name, worker_id, error_group, case when octet_length(input) <= 4096 then input end as input, octet_length(input) as input_bytes
      from (${query}) one`;
  const more = (row: string) => `select ${row}.error_group, ${row}.throttles, j.timeout_ms, j.deadline_at,`;
  const detailed = { live: live.replace("select", more("r")), ended: ended.replace("select", more("h")) };

  return {
    browseLive: browse(takenLive),
    browseHeld: browse(takenHeld),
    browseTroubled: browse(takenTroubled),
    browseEnded: browse(takenEnded),
    browseUnhappy: browse(takenUnhappy),
    tallyLive: tally(takenLive),
    tallyHeld: tally(takenHeld),
    tallyTroubled: tally(takenTroubled),
    tallyEnded: tally(takenEnded),
    tallyUnhappy: tally(takenUnhappy),
    lineUp: `
      with recursive scope as (${linesIn.replace("l.id", "l.id as line")}),${levels}
      select ${seq.id("r.seq")} as id, r.seq as place, r.run_at from level_of lv cross join ${t.ready} r
      where lv.rank is not null and r.seq in (
        select c.seq from ${t.ready} c
        where c.line = lv.line and c.rank = lv.rank and c.token is null and c.run_at > :now and c.run_at < ${WAITING_AT}
          and (c.run_at, c.seq) > (:fromAt, cast(:fromPlace as integer))
        order by c.run_at, c.seq limit :limit
      ) order by r.run_at, r.seq limit :limit`,
    summaries: short(`
        ${detailed.live} where r.seq in ${seq.among(":ids")} union all ${detailed.ended} where h.seq in ${seq.among(":ids")}`),
    inspect: `
      select * from (${detailed.live} where r.seq = ${seq.of(":id")} union all ${detailed.ended} where h.seq = ${seq.of(":id")}) one limit 1`,
    tallyLines: `
      with recursive scope as (select l.id as line from ${t.line} l),${levels}
      select l.queue, l.name, :now as now, coalesce(sum(c.ready), 0) as ready, coalesce(sum(c.scheduled), 0) as scheduled,
        coalesce(sum(c.waiting), 0) as waiting, min(c.oldest) as oldest
      from ${t.line} l left join (
        select lv.line,
          ${count(`r.token is null and r.run_at <= :now`)} as ready,
          ${count(`r.token is null and r.run_at > :now and r.run_at < ${WAITING_AT}`)} as scheduled,
          ${count(`r.token is null and r.run_at >= ${WAITING_AT}`)} as waiting,
          (select r.run_at from ${t.ready} r where r.line = lv.line and r.rank = lv.rank and r.token is null and r.run_at <= :now
            order by r.run_at, r.seq limit 1) as oldest
        from level_of lv where lv.rank is not null
      ) c on c.line = l.id group by l.queue, l.name order by l.queue, l.name`,
    tallyRunning: `
      select l.queue, l.name, count(*) as running, min(r.started_at) as longest
      from ${t.claim} c cross join json_each(c.ids) o cross join ${t.ready} r on r.seq = o.value and r.token = c.token
      join ${t.line} l on l.id = r.line group by l.queue, l.name`,
    groupDead: `
      with walked as materialized (
        select h.seq, h.line, h.error_group, h.ended_at, h.state from ${t.history} h where h.state <> 'done' and ${under("h")} ${newest("h")}
      )
      select g.queue, g.name, g.error_group, g.n, g.first_at, g.last_at, ${seq.id("g.newest")} as sample, g.hour, g.day, g.week from (
        select l.queue, l.name, w.error_group, count(*) as n, min(w.ended_at) as first_at, max(w.ended_at) as last_at, max(w.seq) as newest,
          count(*) filter (where w.ended_at > :now - 3600000) as hour, count(*) filter (where w.ended_at > :now - 86400000) as day,
          count(*) filter (where w.ended_at > :now - 604800000) as week
        from walked w join ${t.line} l on l.id = w.line
        where w.state = 'dead' and w.error_group is not null and w.line in (${linesIn}) group by l.queue, l.name, w.error_group) g
      union all select null, null, null, (select count(*) from walked), null, null, null, null, :now, null`,
    groupTroubled: `
      select g.queue, g.name, g.error_group, g.n, ${seq.id("g.newest")} as sample, null as first_at, g.last_at from (
        select l.queue, l.name, w.error_group, count(*) as n, max(w.seq) as newest, max(w.started_at) as last_at
        from (select r.seq, r.line, r.error_group, r.started_at from ${t.ready} r where r.error_group is not null and ${under("r")} ${newest("r")}) w
        join ${t.line} l on l.id = w.line
        where w.line in (${linesIn}) group by l.queue, l.name, w.error_group) g`,
    addAudit: `
      insert into ${t.audit} (at, actor, action, target, outcome, details) values (:now, :actor, :action, :target, :outcome, :details)`,
    dropAudit: `delete from ${t.audit} where at < :now - 7776000000 and id < (select max(id) from ${t.audit}) returning id`,
    listAudit: `
      select id, at, actor, action, target, outcome, details from ${t.audit} where id < :before order by id desc limit :limit`,
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
