/**
 * SQLite's schema, one immutable entry for each version. Read it beside storage/postgres/migrations.ts.
 *
 * What is SQLite's own: jobs are numbered (seq.ts), and only `job` has the id; no partitions (retention deletes in batches), tokens from an AUTOINCREMENT key (SQLite keeps
 * the counter, so a token never comes twice), and a partial index for the claim, because a row that leaves the index
 * costs little here while Postgres would lose its HOT update. `job` and `ready` are strict: a text in the place of a number would
 * be a job that no claim finds and no list can show.
 */
import { WAITING_AT } from "../../jobs/job.ts";
import { MAX_CONTEXT_CHARS } from "../../jobs/job-bounds.ts";
import { MAX_KEY_BYTES } from "../../values/name.ts";
import type { Migration } from "../migrate.ts";
import { RAW_NUMBERS, REFUSALS } from "../../enqueue/raw-rows.ts";
import { retrySteps, undoingAmong } from "../retry-steps.ts";

const NOW = `cast(unixepoch('subsec') * 1000 as integer)`;
/** The job that a row of the retry view names. */
const retried = (column: string): string => `${column} = new.id`;

/** A row of which this holds is refused; what is left out (null) is not. */
const refuse = (condition: string, says: string): string =>
  `select raise(abort, '${says}') where ${condition};`;
/** The columns of a view have no type: a driver may bind 5 as 5.0 or as text. */
const whole = (column: string): string => `cast(new.${column} as integer)`;
/** SQLite's own functions read a text up to its first NUL. */
const notText = (column: string): string =>
  `typeof(new.${column}) not in ('text', 'null') or instr(new.${column}, char(0))`;
/** An instant in the past is now. */
const due = `max(${NOW}, coalesce(${whole("run_at")}, ${NOW} + coalesce(${whole("delay_ms")}, 0)))`;
const HEX = "[0-9a-f]";
const UUID_7 = [HEX.repeat(8), HEX.repeat(4), `7${HEX.repeat(3)}`, HEX.repeat(4), HEX.repeat(12)].join("-");

export const migrations: readonly Migration[] = [
  {
    version: 1,
    name: "foundation",
    sql: (t, schema) => [
      `create table ${t.meta} (key text primary key, value text not null) without rowid`,
      `insert into ${t.meta} values ('instance', lower(hex(randomblob(16))))`,
      `create table ${t.job_type} (
        id integer primary key, queue text not null, name text not null, laned integer not null default 0, unique (queue, name, laned))`,
      // Counted up, so that no number comes twice: a row that was left behind must not become another job's.
      `create table ${t.job} (
        seq integer primary key autoincrement, id text not null unique, job_type integer not null, created_at integer not null, max_attempts integer, timeout_ms integer,
        deadline_at integer, parent_id text, key text, lane text, context text, extras text, input text not null) strict`,
      `create table ${t.ready} (
        seq integer primary key, job_type integer not null, rank integer not null, run_at integer not null, token integer, session integer,
        started_at integer, attempt integer not null default 0, crashes integer not null default 0, throttles integer not null default 0,
        lane integer, counted integer, begun integer not null default 0, watched integer not null default 0, failure_group text, errors text, progress text, note text,
        pending integer, due_at integer, waits text, request integer, undoing integer,
        constraint lease_is_whole check ((token is null) = (session is null))) strict`,
      // The few jobs that somebody waits for, so that a settle of others need not look at each of its own.
      `create index "${schema}_ready_watched" on ${t.ready} (token) where watched`,
      // Every index of a table with a rowid ends in it: within one instant these are in the order of the numbers. The token,
      // always null here, lets the index answer alone: `token is null` in a query asks for the column, and SQLite would
      // fetch each row for it (counting 330,000 jobs: 880 ms; this way 42). Before the time, or an order by it would be lost.
      `create index "${schema}_ready_order" on ${t.ready} (job_type, rank, token, run_at) where token is null`,
      `create index "${schema}_ready_lane" on ${t.ready} (lane, job_type, rank, run_at) where lane is not null and token is null`,
      // Only what waits for a signal or for others until a time: counted as waiting, though it has a time. `waits` and `token`
      // are in it for the same reason as above.
      `create index "${schema}_ready_until" on ${t.ready} (job_type, rank, token, run_at, waits) where waits in ('signal', 'jobs') and token is null and run_at < ${WAITING_AT}`,
      // Only failed jobs that wait for their next attempt are in it: plain jobs write no entry.
      `create index "${schema}_ready_failed" on ${t.ready} (seq, job_type, failure_group) where failure_group is not null`,
      `create table ${t.history} (
        seq integer primary key, job_type integer not null, rank integer not null,
        state text not null check (state = 'done' or state = 'dead' or state = 'cancelled'),
        attempt integer not null, crashes integer not null, throttles integer not null, run_at integer not null, started_at integer,
        ended_at integer not null, session integer, failure_group text, output text, errors text, progress text)`,
      // What failures are counted by is in it; jobs that are done write no entry.
      `create index "${schema}_history_not_done" on ${t.history} (seq, state, job_type, failure_group, ended_at) where state <> 'done'`,
      // The id is made by the client, at random.
      `create table ${t.session} (
        id integer primary key, lease_until integer not null, lease_ms integer not null, beat_at integer not null,
        started_at integer not null, stop_requested_at integer, quiet_at integer, closed_at integer, pid integer not null,
        kind text not null, worker_id text not null, name text not null, host text not null, version text not null,
        queues text not null, names text not null, runtime text, release text, versions text)`,
      // `rates`: the instants that a claim is counted at as starts, where its lanes or queues have a rate (limits/limited-claim.ts).
      `create table ${t.claim} (token integer primary key autoincrement, session integer not null, ids text not null, rates text)`,
      `create index "${schema}_claim_session" on ${t.claim} (session)`,
      `create table ${t.cancel} (id text primary key not null, session integer not null, token integer not null, asked_at integer not null, pause integer not null default 0, reason text not null) without rowid`,
      `create index "${schema}_cancel_session" on ${t.cancel} (session)`,
      `create table ${t.unique_key} (scope text not null, key text not null, id text not null, expires_at integer, primary key (scope, key)) without rowid`,
      `create index "${schema}_unique_key_job" on ${t.unique_key} (id)`,
      // Keys that are held for a while, to be forgotten when that is over.
      `create index "${schema}_unique_key_expiry" on ${t.unique_key} (expires_at) where expires_at is not null`,
      // Ids that may be sent again within the hour and must not be written again: of deleted jobs, of signals, and of the latest enqueue
      // that rewrote a queued job (`job`; one row for each such job). Plain jobs leave none.
      `create table ${t.used_id} (id text primary key not null, at integer not null, job text) without rowid`,
      `create index "${schema}_used_id_at" on ${t.used_id} (at)`,
      `create unique index "${schema}_used_id_job" on ${t.used_id} (job) where job is not null`,
      // Workflows: what a run remembers, signals that nobody has taken yet, and which job waits for which.
      `create index "${schema}_job_parent" on ${t.job} (parent_id, id) where parent_id is not null`,
      `create table ${t.step} (
        job text not null, name text not null, seq integer not null, given_order integer, kind text not null, state text not null, attempt integer not null,
        tries integer not null, started_at integer not null, ended_at integer, wake_at integer, topic text, child text, undo integer not null, fails integer not null, given integer not null,
        output text, error text, label text, primary key (job, name)) without rowid`,
      `create index "${schema}_step_topic" on ${t.step} (topic) where state = 'open' and topic is not null`,
      // A page of a long history, and what a run is at, without reading the rest of it.
      `create index "${schema}_step_seq" on ${t.step} (job, seq)`,
      // With the state in it, or the key would be taken.
      `create index "${schema}_step_open" on ${t.step} (job, state) where state = 'open'`,
      `create table ${t.signal} (
        id integer primary key autoincrement, topic text not null, data text not null, sent_at integer not null, expires_at integer not null)`,
      `create index "${schema}_signal_topic" on ${t.signal} (topic, id)`,
      `create table ${t.dependency} (
        job text not null, on_job text not null, policy text not null check (policy in ('cancel', 'continue', 'wait')),
        step text, state text, met_at integer, primary key (job, on_job)) without rowid`,
      `create index "${schema}_dependency_unmet" on ${t.dependency} (on_job) where state is null`,
      // Batches (enqueue/batch-rows.ts): what was enqueued together, which jobs those are, and what runs after them. Only hf.batch writes here.
      `create table ${t.batch} (
        id text primary key not null, made_at integer not null, then_job text, then_name text, total integer not null, names text not null,
        policy text check (policy in ('cancel', 'continue', 'wait'))) without rowid`,
      `create index "${schema}_batch_then" on ${t.batch} (then_job) where then_job is not null`,
      `create table ${t.member} (batch text not null, seq integer not null, primary key (batch, seq)) without rowid`,
      `create index "${schema}_member_job" on ${t.member} (seq)`,
      `create table ${t.queue} (
        name text primary key not null, paused_at integer, drain_at integer, cool_until integer, cool_at integer, cool_steps integer not null default 0,
        cool_base_ms integer, cool_max_ms integer, limited_until integer, adopt_until integer, running integer not null default 0,
        limited integer not null default 0, starts text, settings text) without rowid`,
      `create table ${t.hold} (name text primary key not null, queues text, reason text, set_at integer not null) without rowid`,
      `create table ${t.state} (key text primary key not null, value text not null, set_at integer not null) without rowid`,
      `create table ${t.definition} (name text primary key not null, has_unique integer not null, has_lane integer not null, is_machine integer not null, seen_at integer not null, lanes text, budget text) without rowid`,
      // Limits (limits/limited-claim.ts): a lane's limits and count, its turn in the order of fairness, what rings for it, and more.
      `create table ${t.lane} (
        id integer primary key, running integer not null default 0, concurrency integer check (concurrency > 0), rate_limit integer check (rate_limit > 0),
        rate_per integer check (rate_per > 0), paused_at integer, used_at integer not null, weight integer not null default 1 check (weight > 0), tuned integer not null default 0,
        queue text not null, key text not null, starts text, standard text, unique (queue, key))`,
      `create table ${t.lane_rotation} (
        lane integer not null, job_type integer not null, vtime real not null, wake_at integer, active integer not null, primary key (lane, job_type)) without rowid`,
      `create index "${schema}_lane_rotation_order" on ${t.lane_rotation} (job_type, active, vtime, lane)`,
      `create index "${schema}_lane_rotation_wake" on ${t.lane_rotation} (job_type, wake_at) where wake_at is not null`,
      `create table ${t.lane_wakeup} (job_type integer not null, lane integer not null, at integer not null, back integer not null default 0, primary key (job_type, lane)) without rowid`,
      `create index "${schema}_lane_wakeup_lane" on ${t.lane_wakeup} (lane)`,
      `create index "${schema}_lane_wakeup_back" on ${t.lane_wakeup} (job_type) where back > 0`,
      `create table ${t.returned_capacity} (queue text primary key not null, n integer not null) without rowid`,
      `create table ${t.uncounted_job} (queue text not null, id text not null, token integer not null, primary key (queue, id, token)) without rowid`,
      // Limits that somebody set for a while, and what they go back to (limits/temporary-limits.ts).
      `create table ${t.temporary_limit} (
        kind text not null, name text not null, set_at integer not null, until_at integer not null, back text, primary key (kind, name)) without rowid`,
      `create table ${t.breaker} (
        key text primary key not null, failures integer not null default 0, opened_at integer, open_until integer, probe_session integer, error text, counted text) without rowid`,
      `create table ${t.upkeep_task} (name text primary key not null, next_at integer not null, done_at integer not null, by text) without rowid`,
      `create table ${t.schedule} (
        name text primary key not null, spec text not null, edits text, next_at integer, waiting_at integer, anchor_at integer not null,
        created_at integer not null, paused_at integer, fault text, fault_at integer, last_run_at integer, last_job_id text, jobs text, recent text,
        fired integer not null default 0, skipped integer not null default 0, missed integer not null default 0)`,
      `create index "${schema}_schedule_due" on ${t.schedule} (next_at)`,
      // Slots that have their job, so that a backfill makes no second one; forgotten 30 days after.
      `create table ${t.occurrence} (schedule text not null, at integer not null, job text not null, made_at integer not null, primary key (schedule, at)) without rowid`,
      `create table ${t.budget} (
        name text primary key not null, amount real not null, per_ms integer not null, burst real not null, tuned integer not null,
        standard text, tokens real not null, filled_at integer not null, chunks text) without rowid`,
      `create table ${t.pass} (
        name text primary key not null, clean integer not null, holder text, held_until integer, runs integer not null default 0,
        started_at integer, ended_at integer, reason text) without rowid`,
      // Series: what each worker counted in each minute, what was measured, and (where it is turned on) what happened.
      `create table ${t.metric} (
        minute integer not null, queue text not null, name text not null, worker text not null, done integer not null, failed integer not null,
        dead integer not null, cancelled integer not null, throttled integer not null, released integer not null, lost integer not null,
        ran text not null, waited text not null, primary key (minute, queue, name, worker)) without rowid`,
      // Sums of past hours: all jobs by the minute (name ''), each name by the hour.
      `create table ${t.metric_sum} (
        name text not null, minute integer not null, done integer not null, failed integer not null, dead integer not null,
        cancelled integer not null, throttled integer not null, released integer not null, lost integer not null,
        ran text not null, waited text not null, primary key (name, minute)) without rowid`,
      `create table ${t.gauge} (
        minute integer not null, source text not null, name text not null, value real not null, primary key (minute, source, name)) without rowid`,
      `create index "${schema}_gauge_name" on ${t.gauge} (name, minute)`,
      `create table ${t.event} (
        id text primary key not null, at integer not null, event text not null, job text, name text, queue text, attempt integer, worker text, detail text) without rowid`,
      `create index "${schema}_event_job" on ${t.event} (job, id) where job is not null`,
      // What handlers said, where that is kept (observe/job-log.ts): job types go with their job.
      `create table ${t.log} (
        job text not null, id text not null, at integer not null, level text not null, attempt integer not null, message text not null, details text,
        primary key (job, id)) without rowid`,
      // What operators did, by the dashboard: kept 90 days.
      `create table ${t.audit} (
        id integer primary key, at integer not null, actor text not null, action text not null, target text, outcome text not null, details text)`,
      `create index "${schema}_audit_target" on ${t.audit} (target, id)`,
      // Failures by cause (observe/failure-rows.ts): what was decided about each, and how often by the minute.
      `create table ${t.failure_group} (
        id text primary key not null, name text, first_at integer, last_at integer, sample text, message text,
        state text not null default 'open' check (state in ('open', 'ignored', 'resolved')), state_at integer, state_by text,
        until_at integer, until_count integer, from_count integer, note text, link text) without rowid`,
      `create table ${t.failure} (
        failure_group text not null, at integer not null, queue text not null, version integer not null, worker text not null, n integer not null,
        primary key (failure_group, at, queue, version, worker)) without rowid`,
      `create index "${schema}_failure_at" on ${t.failure} (at)`,
      // Raw SQL: `insert into holdfast_enqueue (name, input) values (…)` is a job like any other.
      // The conflict clause of an `insert or …` also applies to the trigger's statements, but not to a refusal: an id that is
      // there is refused first, or "or ignore" would pass the job over and go on with whatever row came last.
      `create view "${schema}_enqueue" as
        select null as id, null as name, null as input, null as queue, null as priority, null as run_at, null as delay_ms,
          null as max_attempts, null as context, null as lane where false`,
      `create trigger "${schema}_enqueue_row" instead of insert on "${schema}_enqueue" begin
        ${refuse(`new.name is null or ${notText("name")} or new.name not glob '[A-Za-z0-9]*' or new.name glob '*[^A-Za-z0-9._:-]*' or length(new.name) > 128`, REFUSALS.name("name"))}
        ${refuse(`${notText("queue")} or new.queue not glob '[A-Za-z0-9]*' or new.queue glob '*[^A-Za-z0-9._:-]*' or length(new.queue) > 128`, REFUSALS.name("queue"))}
        ${refuse("typeof(new.input) = 'blob' or not json_valid(new.input) or instr(new.input, char(0))", REFUSALS.input)}
        ${RAW_NUMBERS.map((number) => refuse(`not (${whole(number.column)} = new.${number.column} and ${whole(number.column)} between ${number.min} and ${number.max})`, REFUSALS.number(number))).join("\n        ")}
        ${refuse(`${notText("lane")} or length(cast(new.lane as blob)) not between 1 and ${MAX_KEY_BYTES}`, REFUSALS.lane)}
        ${refuse(`${notText("context")} or length(new.context) > ${MAX_CONTEXT_CHARS}`, REFUSALS.context)}
        ${refuse(`${notText("id")} or lower(new.id) not glob '${UUID_7}'`, REFUSALS.id)}
        ${refuse(`exists (select 1 from ${t.job} j where j.id = lower(new.id))`, REFUSALS.takenId)}
        ${refuse(`exists (select 1 from ${t.used_id} u where u.id = lower(new.id))`, REFUSALS.usedId)}
        insert into ${t.job_type} (queue, name, laned) values (coalesce(new.queue, 'default'), new.name, new.lane is not null) on conflict do nothing;
        insert into ${t.lane} (queue, key, used_at) select coalesce(new.queue, 'default'), new.lane, ${NOW} where new.lane is not null on conflict do nothing;
        insert into ${t.job} (id, job_type, created_at, input, max_attempts, context, lane)
          select coalesce(lower(new.id), ${uuid}), l.id, ${NOW}, coalesce(new.input, 'null'), ${whole("max_attempts")}, case when new.context is not null then json_quote(new.context) end, new.lane
          from ${t.job_type} l where l.queue = coalesce(new.queue, 'default') and l.name = new.name and l.laned = (new.lane is not null);
        insert into ${t.ready} (seq, job_type, rank, run_at, lane)
          select j.seq, j.job_type, -coalesce(${whole("priority")}, 0), ${due},
            (select l.id from ${t.lane} l where l.queue = coalesce(new.queue, 'default') and l.key = new.lane)
          from ${t.job} j where j.seq = last_insert_rowid() and j.id = coalesce(lower(new.id), j.id);
        insert into ${t.lane_wakeup} (job_type, lane, at)
          select l.id, a.id, ${due} from ${t.job_type} l, ${t.lane} a
          where l.queue = coalesce(new.queue, 'default') and l.name = new.name and l.laned and a.queue = l.queue and a.key = new.lane
          on conflict (job_type, lane) do update set at = min(at, excluded.at);
      end`,
      // Raw SQL: `insert into holdfast_retry (id) values (…)` resumes an ended job, at the step where it failed.
      `create view "${schema}_retry" as select null as id where false`,
      `create trigger "${schema}_retry_row" instead of insert on "${schema}_retry" begin
        select raise(abort, 'holdfast: no ended job has this id') where not exists (select 1 from ${t.history} h join ${t.job} j on j.seq = h.seq where j.id = new.id);
        select raise(abort, 'holdfast: a job with a unique key or a lane is resumed by hf.jobs.retry')
          where exists (select 1 from ${t.job} where id = new.id and (key is not null or lane is not null));
        insert into ${t.ready} (seq, job_type, rank, run_at, begun, watched, errors, undoing)
          select seq, job_type, rank, ${NOW}, 1, 1, errors, case when exists (${undoingAmong(t.step, retried)}) then 1 end from ${t.history} where seq = (select j.seq from ${t.job} j where j.id = new.id);
        delete from ${t.history} where seq = (select j.seq from ${t.job} j where j.id = new.id);
        ${retrySteps(t.step, retried).join(";\n        ")};
      end`,
    ],
  },
];

/** A UUIDv7 in SQL. */
const uuid = `(
  substr(printf('%012x', ${NOW}), 1, 8) || '-' || substr(printf('%012x', ${NOW}), 9, 4) || '-7' || substr(lower(hex(randomblob(2))), 2, 3)
  || '-' || substr('89ab', 1 + (random() & 3), 1) || substr(lower(hex(randomblob(2))), 2, 3) || '-' || lower(hex(randomblob(6))))`;
