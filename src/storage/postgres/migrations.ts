/**
 * Postgres's schema, one immutable entry for each version. Read it beside storage/sqlite/migrations.ts.
 *
 *   job type ─< job (immutable, partitioned by id)        session ─< claim (one row a claimed batch)
 *    └────< ready (narrow, hot) ──end──▶ history (partitioned by id)
 *
 * `job` and `history` are partitioned by id: ids are UUIDv7, so a day of ids is a range, the primary key can be the id
 * alone, and a day whose jobs have all been outlived is dropped instead of deleted (partitions.ts).
 * fillfactor 42 on `ready` leaves room for the claimed version of each row on its own page, so that the claim is a HOT
 * update: in a prototype of this shape 60 lost it, and with it the saving in WAL.
 */
import { WAITING_AT } from "../../jobs/job.ts";
import { MAX_CONTEXT_CHARS } from "../../jobs/job-bounds.ts";
import { MAX_KEY_BYTES } from "../../values/name.ts";
import type { Migration } from "../migrate.ts";
import { RAW_NUMBERS, REFUSALS } from "../../enqueue/raw-rows.ts";
import { retrySteps, undoingAmong } from "../retry-steps.ts";
import { ROOM_TO_NOTIFY } from "./listen.ts";

/** The job that a row of the retry view names. */
const retried = (column: string): string => `${column} = new.id`;

export const migrations: readonly Migration[] = [
  {
    version: 1,
    name: "foundation",
    sql: (t, schema) => [
      `create table ${t.meta} (key text primary key, value text not null)`,
      `insert into ${t.meta} values ('instance', gen_random_uuid()::text)`,
      // Random ids: a sequence goes back after a failover to a replica that lagged, and another job type would get the number that
      // processes remember for a lost one.
      `create table ${t.job_type} (
        id int primary key default (1 + floor(random() * 2147483646))::int,
        queue text not null, name text not null, laned bool not null default false, unique (queue, name, laned))`,
      `create table ${t.job} (
        id uuid primary key, created_at bigint not null, timeout_ms bigint, deadline_at bigint, parent_id uuid,
        job_type int not null, max_attempts int, input text not null, key text, lane text, context text, extras text
      ) partition by range (id)`,
      `create table ${part(schema, "job_rest")} partition of ${t.job} default`,
      `create table ${t.ready} (
        id uuid primary key, run_at bigint not null, token bigint, session bigint, started_at bigint,
        job_type int not null, rank int not null, attempt smallint not null default 0, crashes smallint not null default 0, throttles smallint not null default 0,
        lane int, counted smallint, begun bool not null default false, watched bool not null default false, errors text, progress text, note text,
        failure_group text, pending int, due_at bigint, waits text, request smallint, undoing bool,
        constraint lease_is_whole check ((token is null) = (session is null))
      ) with (fillfactor = 42, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000,
        autovacuum_analyze_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0)`,
      `create index ready_order on ${t.ready} (job_type, rank, run_at, id)`,
      `create index ready_lane on ${t.ready} (lane, job_type, rank, run_at, id) where lane is not null`,
      // Only what waits for a signal or for others until a time: counted as waiting, though it has a time. A claim sets none of it.
      `create index ready_until on ${t.ready} (job_type, rank, run_at) where waits in ('signal', 'jobs') and run_at < ${WAITING_AT}`,
      // Only failed jobs that wait for their next attempt are in it: plain jobs write no entry.
      `create index ready_failed on ${t.ready} (id) include (job_type, failure_group) where failure_group is not null`,
      `create table ${t.history} (
        id uuid primary key, ended_at bigint not null, started_at bigint, run_at bigint not null, session bigint,
        job_type int not null, rank int not null, attempt smallint not null, crashes smallint not null, throttles smallint not null,
        state text not null check (state in ('done', 'dead', 'cancelled')), output text, errors text, progress text, failure_group text
      ) partition by range (id)`,
      `create table ${part(schema, "history_rest")} partition of ${t.history} default`,
      // What failures are counted by is in it; jobs that are done write no entry.
      `create index history_not_done on ${t.history} (id) include (state, job_type, failure_group, ended_at) where state <> 'done'`,
      `create sequence ${t.token}`,
      // The id is made by the client, at random: a sequence goes back after a failover to a replica that lagged.
      `create table ${t.session} (
        id bigint primary key, lease_until bigint not null, lease_ms bigint not null,
        beat_at bigint not null, started_at bigint not null, stop_requested_at bigint, quiet_at bigint, closed_at bigint, pid bigint not null,
        kind text not null, worker_id text not null, name text not null, host text not null, version text not null,
        queues text not null, names text not null, runtime text, release text, versions text
      ) with (fillfactor = 50)`,
      // `rates`: the instants that a claim is counted at as starts, where its lanes or queues have a rate (limits/limited-claim.ts).
      `create table ${t.claim} (token bigint primary key, session bigint not null, ids uuid[] not null, rates text)`,
      // Ids do not compress; trying to cost a twentieth of each claim.
      `alter table ${t.claim} alter column ids set storage external`,
      `create index claim_session on ${t.claim} (session)`,
      `create table ${t.cancel} (id uuid primary key, session bigint not null, token bigint not null, asked_at bigint not null, pause bool not null default false, reason text not null)`,
      `create index cancel_session on ${t.cancel} (session)`,
      `create table ${t.unique_key} (scope text not null, key text not null, id uuid not null, expires_at bigint, primary key (scope, key))`,
      `create index unique_key_job on ${t.unique_key} (id)`,
      // Keys that are held for a while, to be forgotten when that is over.
      `create index unique_key_expiry on ${t.unique_key} (expires_at) where expires_at is not null`,
      // Ids that may be sent again within the hour and must not be written again: of deleted jobs, of signals, and of the latest enqueue
      // that rewrote a queued job (`job`; one row for each such job). Plain jobs leave none.
      `create table ${t.used_id} (id uuid primary key, at bigint not null, job uuid)`,
      `create index used_id_at on ${t.used_id} (at)`,
      `create unique index used_id_job on ${t.used_id} (job) where job is not null`,
      // Workflows: what a run remembers (with its job's day), signals that nobody has taken yet, and which job waits for which.
      `create index job_parent on ${t.job} (parent_id, id) where parent_id is not null`,
      `create table ${t.step} (
        job uuid not null, started_at bigint not null, ended_at bigint, wake_at bigint, child uuid,
        seq int not null, given_order int, attempt int not null, tries int not null, fails int not null, given int not null, undo bool not null,
        name text not null, kind text not null, state text not null, topic text, label text, output text, error text,
        primary key (job, name)
      ) partition by range (job)`,
      `create table ${part(schema, "step_rest")} partition of ${t.step} default`,
      `create index step_topic on ${t.step} (topic) where state = 'open' and topic is not null`,
      // A page of a long history, and what a run is at, without reading the rest of it.
      `create index step_seq on ${t.step} (job, seq)`,
      `create index step_open on ${t.step} (job) where state = 'open'`,
      `create table ${t.signal} (
        id bigint generated always as identity primary key, sent_at bigint not null, expires_at bigint not null, topic text not null, data text not null)`,
      `create index signal_topic on ${t.signal} (topic, id)`,
      `create table ${t.dependency} (
        job uuid not null, on_job uuid not null, met_at bigint, policy text not null check (policy in ('cancel', 'continue', 'wait')),
        step text, state text, primary key (job, on_job))`,
      `create index dependency_unmet on ${t.dependency} (on_job) where state is null`,
      // Batches (enqueue/batch-rows.ts): what was enqueued together, which jobs those are, and what runs after them. Only hf.batch writes here.
      `create table ${t.batch} (
        id uuid primary key, made_at bigint not null, then_job uuid, total int not null, names text not null, then_name text,
        policy text check (policy in ('cancel', 'continue', 'wait')))`,
      `create index batch_then on ${t.batch} (then_job) where then_job is not null`,
      `create table ${t.member} (batch uuid not null, id uuid not null, primary key (batch, id))`,
      `create index member_job on ${t.member} (id)`,
      `create table ${t.queue} (
        name text primary key, paused_at bigint, drain_at bigint, cool_until bigint, cool_at bigint, cool_steps int not null default 0,
        cool_base_ms bigint, cool_max_ms bigint, limited_until bigint, adopt_until bigint, running int not null default 0,
        limited bool not null default false, starts text, settings text)`,
      `create table ${t.hold} (name text primary key, queues text[], reason text, set_at bigint not null)`,
      `create table ${t.state} (key text primary key, value text not null, set_at bigint not null)`,
      `create table ${t.definition} (name text primary key, has_unique bool not null, has_lane bool not null, is_machine bool not null, seen_at bigint not null, lanes text, budget text)`,
      // Limits (limits/limited-claim.ts): a lane's limits and count, its turn in the order of fairness, what rings for it, and more.
      `create table ${t.lane} (
        id int generated always as identity primary key, running int not null default 0, concurrency int check (concurrency > 0), rate_limit int check (rate_limit > 0),
        rate_per bigint check (rate_per > 0), paused_at bigint, used_at bigint not null, weight int not null default 1 check (weight > 0), tuned bool not null default false,
        queue text not null, key text not null, starts text, standard text, unique (queue, key)
      ) with (fillfactor = 70)`,
      `create table ${t.lane_rotation} (
        lane int not null, job_type int not null, vtime double precision not null, wake_at bigint, from_at bigint, active bool not null, primary key (lane, job_type)
      ) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0)`,
      `create index lane_rotation_order on ${t.lane_rotation} (job_type, active, vtime, lane)`,
      `create index lane_rotation_wake on ${t.lane_rotation} (job_type, wake_at) where wake_at is not null`,
      `create table ${t.lane_wakeup} (job_type int not null, lanes int[] not null, ats bigint[], backs int[])
        with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0)`,
      `create index lane_wakeup_job_type on ${t.lane_wakeup} (job_type)`,
      `create index lane_wakeup_back on ${t.lane_wakeup} (job_type) where backs is not null`,
      `create table ${t.returned_capacity} (queue text not null, n int not null)
        with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0)`,
      `create index returned_capacity_queue on ${t.returned_capacity} (queue)`,
      `create table ${t.uncounted_job} (queue text not null, id uuid not null, token bigint not null, primary key (queue, id, token))`,
      // Limits that somebody set for a while, and what they go back to (limits/temporary-limits.ts).
      `create table ${t.temporary_limit} (
        kind text not null, name text not null, set_at bigint not null, until_at bigint not null, back text, primary key (kind, name))`,
      `create table ${t.breaker} (
        key text primary key, failures int not null default 0, opened_at bigint, open_until bigint, probe_session bigint, error text, counted text)`,
      `create table ${t.upkeep_task} (name text primary key, next_at bigint not null, done_at bigint not null, by text)`,
      `create table ${t.schedule} (
        name text primary key, spec text not null, edits text, next_at bigint, waiting_at bigint, anchor_at bigint not null,
        created_at bigint not null, paused_at bigint, fault text, fault_at bigint, last_run_at bigint, last_job_id uuid, jobs text, recent text,
        fired bigint not null default 0, skipped bigint not null default 0, missed bigint not null default 0)`,
      `create index schedule_due on ${t.schedule} (next_at)`,
      // Slots that have their job, so that a backfill makes no second one; forgotten 30 days after.
      `create table ${t.occurrence} (schedule text not null, at bigint not null, job uuid not null, made_at bigint not null, primary key (schedule, at))`,
      `create table ${t.budget} (
        name text primary key, amount float8 not null, per_ms bigint not null, burst float8 not null, tuned bool not null,
        standard text, tokens float8 not null, filled_at bigint not null, chunks text)`,
      `create table ${t.pass} (
        name text primary key, clean bool not null, holder text, held_until bigint, runs bigint not null default 0,
        started_at bigint, ended_at bigint, reason text)`,
      // Series: what each worker counted in each minute, what was measured, and (where it is turned on) what happened.
      `create table ${t.metric} (
        minute bigint not null, queue text not null, name text not null, worker text not null, done int not null, failed int not null,
        dead int not null, cancelled int not null, throttled int not null, released int not null, lost int not null,
        ran text not null, waited text not null, primary key (minute, queue, name, worker))`,
      // Sums of past hours: all jobs by the minute (name ''), each name by the hour.
      `create table ${t.metric_sum} (
        name text not null, minute bigint not null, done bigint not null, failed bigint not null, dead bigint not null,
        cancelled bigint not null, throttled bigint not null, released bigint not null, lost bigint not null,
        ran text not null, waited text not null, primary key (name, minute))`,
      `create table ${t.gauge} (
        minute bigint not null, source text not null, name text not null, value float8 not null, primary key (minute, source, name))`,
      `create index gauge_name on ${t.gauge} (name, minute)`,
      `create table ${t.event} (
        id uuid primary key, at bigint not null, job uuid, attempt int, event text not null, name text, queue text, worker text, detail text)`,
      `create index event_job on ${t.event} (job, id) where job is not null`,
      // What handlers said, where that is kept (observe/job-log.ts): job types go with their job.
      `create table ${t.log} (
        job uuid not null, id uuid not null, at bigint not null, attempt int not null, level text not null, message text not null, details text,
        primary key (job, id))`,
      // What operators did, by the dashboard: kept 90 days.
      `create table ${t.audit} (
        id bigint generated always as identity primary key, at bigint not null, actor text not null, action text not null,
        target text, outcome text not null, details text)`,
      `create index audit_target on ${t.audit} (target, id)`,
      // Failures by cause (observe/failure-rows.ts): what was decided about each, and how often by the minute.
      `create table ${t.failure_group} (
        id text primary key, first_at bigint, last_at bigint, state_at bigint, until_at bigint, until_count bigint, from_count bigint, sample uuid,
        state text not null default 'open' check (state in ('open', 'ignored', 'resolved')), name text, message text, state_by text, note text, link text)`,
      `create table ${t.failure} (
        at bigint not null, version int not null, n int not null, failure_group text not null, queue text not null, worker text not null,
        primary key (failure_group, at, queue, version, worker))`,
      `create index failure_at on ${t.failure} (at)`,
      // Raw SQL: `insert into holdfast.enqueue (name, input) values (…)` is a job like any other.
      `create view ${part(schema, "enqueue")} as
        select null::uuid as id, null::text as name, null::json as input, null::text as queue, null::int as priority,
          null::bigint as run_at, null::bigint as delay_ms, null::int as max_attempts, null::text as context, null::text as lane
        where false`,
      `create function ${part(schema, "enqueue_row")}() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $$
        declare
          now_ms bigint := (extract(epoch from statement_timestamp()) * 1000.0)::bigint;
          new_id uuid := coalesce(new.id, (lpad(to_hex(now_ms), 12, '0') || '7' || substr(replace(gen_random_uuid()::text, '-', ''), 14))::uuid);
          due_ms bigint := greatest(now_ms, coalesce(new.run_at, now_ms + coalesce(new.delay_ms, 0)));
          job_type_id int;
          lane_id int;
        begin
          ${refuse("new.name is null or new.name !~ '^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$'", REFUSALS.name("name"))}
          ${refuse("new.queue !~ '^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$'", REFUSALS.name("queue"))}
          ${RAW_NUMBERS.map((number) => refuse(`new.${number.column} not between ${number.min} and ${number.max}`, REFUSALS.number(number))).join("\n          ")}
          ${refuse(`octet_length(new.lane) not between 1 and ${MAX_KEY_BYTES}`, REFUSALS.lane)}
          ${refuse(`length(new.context) > ${MAX_CONTEXT_CHARS}`, REFUSALS.context)}
          ${refuse("substr(new.id::text, 15, 1) <> '7'", REFUSALS.id)}
          ${refuse(`exists (select from ${t.used_id} u where u.id = new.id)`, REFUSALS.usedId)}
          insert into ${t.job_type} (queue, name, laned) values (coalesce(new.queue, 'default'), new.name, new.lane is not null) on conflict do nothing;
          select l.id into job_type_id from ${t.job_type} l
            where l.queue = coalesce(new.queue, 'default') and l.name = new.name and l.laned = (new.lane is not null);
          if new.lane is not null then
            insert into ${t.lane} (queue, key, used_at) values (coalesce(new.queue, 'default'), new.lane, now_ms) on conflict do nothing;
            select l.id into lane_id from ${t.lane} l where l.queue = coalesce(new.queue, 'default') and l.key = new.lane;
            insert into ${t.lane_wakeup} (job_type, lanes, ats) values (job_type_id, array[lane_id], array[due_ms]);
          end if;
          insert into ${t.job} (id, job_type, created_at, input, max_attempts, context, lane)
            values (new_id, job_type_id, now_ms, coalesce(new.input::text, 'null'), new.max_attempts, to_json(new.context)::text, new.lane);
          insert into ${t.ready} (id, job_type, rank, run_at, lane)
            values (new_id, job_type_id, -coalesce(new.priority, 0), due_ms, lane_id);
          perform pg_notify('${schema}', json_build_object('k', 'work', 'q', coalesce(new.queue, 'default'), 'p', coalesce(new.priority, 0))::text) where ${ROOM_TO_NOTIFY};
          new.id := new_id;
          return new;
        end $$`,
      `create trigger enqueue_row instead of insert on ${part(schema, "enqueue")} for each row execute function ${part(schema, "enqueue_row")}()`,
      // Raw SQL: `insert into holdfast.retry (id) values (…)` resumes an ended job, at the step where it failed.
      `create view ${part(schema, "retry")} as select null::uuid as id where false`,
      `create function ${part(schema, "retry_row")}() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $$
        begin
          if exists (select 1 from ${t.job} j where j.id = new.id and (j.key is not null or j.lane is not null)) then
            raise exception 'holdfast: a job with a unique key or a lane is resumed by hf.jobs.retry' using errcode = '22023';
          end if;
          with h as (delete from ${t.history} where id = new.id returning id, job_type, rank, errors)
          insert into ${t.ready} (id, job_type, rank, run_at, begun, watched, errors, undoing)
            select id, job_type, rank, (extract(epoch from statement_timestamp()) * 1000.0)::bigint, true, true, errors,
              case when exists (${undoingAmong(t.step, retried)}) then true end from h;
          if not found then
            raise exception 'holdfast: no ended job has this id' using errcode = '22023';
          end if;
          ${retrySteps(t.step, retried).join(";\n          ")};
          perform pg_notify('${schema}', '{"k":"any"}') where ${ROOM_TO_NOTIFY};
          return new;
        end $$`,
      `create trigger retry_row instead of insert on ${part(schema, "retry")} for each row execute function ${part(schema, "retry_row")}()`,
    ],
  },
];

/** A row of which this holds is refused; what is left out (null) is not. */
function refuse(condition: string, says: string): string {
  return `if ${condition} then raise exception '${says}' using errcode = '22023'; end if;`;
}

function part(schema: string, name: string): string {
  return `"${schema}"."${name}"`;
}
