/**
 * Postgres's schema, one immutable entry for each version. Read it beside sqlite/migrations.ts.
 *
 *   line ─< job (immutable, partitioned by id)        session ─< claim (one row a claimed batch)
 *    └────< ready (narrow, hot) ──end──▶ history (partitioned by id)
 *
 * `job` and `history` are partitioned by id: ids are UUIDv7, so a day of ids is a range, the primary key can be the id
 * alone, and a day whose jobs have all been outlived is dropped instead of deleted (postgres/partitions.ts).
 * fillfactor 42 on `ready` leaves room for the claimed version of each row on its own page, so that the claim is a HOT
 * update: in a prototype of this shape 60 lost it, and with it the saving in WAL.
 */
import type { Migration } from "../sql/migrate.ts";

export const migrations: readonly Migration[] = [
  {
    version: 1,
    name: "foundation",
    sql: (t, schema) => [
      `create table ${t.meta} (key text primary key, value text not null)`,
      `insert into ${t.meta} values ('instance', gen_random_uuid()::text)`,
      `create table ${t.line} (
        id int generated always as identity primary key,
        queue text not null, name text not null, unique (queue, name))`,
      `create table ${t.job} (
        id uuid primary key, created_at bigint not null, timeout_ms bigint, deadline_at bigint, parent_id uuid,
        line int not null, max_attempts int, input text not null, key text, lane text, context text, extras text
      ) partition by range (id)`,
      `create table ${part(schema, "job_rest")} partition of ${t.job} default`,
      `create table ${t.ready} (
        id uuid primary key, run_at bigint not null, token bigint, session bigint, started_at bigint,
        line int not null, rank int not null, attempt int not null default 0, crashes int not null default 0, throttles int not null default 0,
        begun bool not null default false, watched bool not null default false, errors text, progress text,
        pending int, due_at bigint, waits text,
        constraint lease_is_whole check ((token is null) = (session is null))
      ) with (fillfactor = 42, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000,
        autovacuum_analyze_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0)`,
      `create index ready_order on ${t.ready} (line, rank, run_at, id)`,
      `create table ${t.history} (
        id uuid primary key, ended_at bigint not null, started_at bigint, run_at bigint not null, session bigint,
        line int not null, rank int not null, attempt int not null, crashes int not null, throttles int not null,
        state text not null check (state in ('done', 'dead', 'cancelled')), output text, errors text, progress text
      ) partition by range (id)`,
      `create table ${part(schema, "history_rest")} partition of ${t.history} default`,
      `create index history_unhappy on ${t.history} (id) where state <> 'done'`,
      `create sequence ${t.token}`,
      `create table ${t.session} (
        id bigint generated always as identity primary key, lease_until bigint not null, lease_ms bigint not null,
        beat_at bigint not null, started_at bigint not null, stop_requested_at bigint, closed_at bigint, pid bigint not null,
        kind text not null, worker_id text not null, name text not null, host text not null, version text not null,
        queues text not null, names text not null
      ) with (fillfactor = 50)`,
      `create table ${t.claim} (token bigint primary key, session bigint not null, ids uuid[] not null)`,
      `create index claim_session on ${t.claim} (session)`,
      `create table ${t.cancel} (id uuid primary key, session bigint not null, token bigint not null, asked_at bigint not null, reason text not null)`,
      `create index cancel_session on ${t.cancel} (session)`,
      `create table ${t.unique_key} (scope text not null, key text not null, id uuid not null, expires_at bigint, primary key (scope, key))`,
      `create index unique_key_job on ${t.unique_key} (id)`,
      // Flows: what a run remembers (with its job's day), signals that nobody has taken yet, and which job waits for which.
      `create index job_parent on ${t.job} (parent_id, id) where parent_id is not null`,
      `create table ${t.step} (
        job uuid not null, started_at bigint not null, ended_at bigint, wake_at bigint, child uuid,
        seq int not null, place int, attempt int not null, tries int not null, fails int not null, undo bool not null,
        name text not null, kind text not null, state text not null, topic text, label text, output text, error text,
        primary key (job, name)
      ) partition by range (job)`,
      `create table ${part(schema, "step_rest")} partition of ${t.step} default`,
      `create index step_topic on ${t.step} (topic) where state = 'open' and topic is not null`,
      `create table ${t.signal} (
        id bigint generated always as identity primary key, sent_at bigint not null, expires_at bigint not null, topic text not null, data text not null)`,
      `create index signal_topic on ${t.signal} (topic, id)`,
      `create table ${t.dependency} (
        job uuid not null, on_job uuid not null, met_at bigint, policy text not null check (policy in ('cancel', 'continue', 'wait')),
        step text, state text, primary key (job, on_job))`,
      `create index dependency_unmet on ${t.dependency} (on_job) where state is null`,
      `create table ${t.queue} (
        name text primary key, paused_at bigint, cool_until bigint, cool_at bigint, cool_steps int not null default 0,
        cool_base_ms bigint, cool_max_ms bigint, settings text)`,
      `create table ${t.hold} (name text primary key, queues text[], reason text, set_at bigint not null)`,
      `create table ${t.state} (key text primary key, value text not null, set_at bigint not null)`,
      `create table ${t.kind} (name text primary key, has_unique bool not null, has_lane bool not null, seen_at bigint not null)`,
      `create table ${t.duty} (name text primary key, next_at bigint not null)`,
      // Raw SQL: `insert into holdfast.enqueue (name, input) values (…)` is a job like any other.
      `create view ${part(schema, "enqueue")} as
        select null::uuid as id, null::text as name, null::json as input, null::text as queue, null::int as priority,
          null::bigint as run_at, null::bigint as delay_ms, null::int as max_attempts, null::text as context, null::text as lane
        where false`,
      `create function ${part(schema, "enqueue_row")}() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $$
        declare
          now_ms bigint := (extract(epoch from statement_timestamp()) * 1000)::bigint;
          new_id uuid := coalesce(new.id, (lpad(to_hex(now_ms), 12, '0') || '7' || substr(replace(gen_random_uuid()::text, '-', ''), 14))::uuid);
          line_id int;
        begin
          if new.name is null or new.name !~ '^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$' then
            raise exception 'holdfast: name must match ^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$' using errcode = '22023';
          end if;
          if coalesce(new.queue, 'default') !~ '^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$' then
            raise exception 'holdfast: queue must match ^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$' using errcode = '22023';
          end if;
          insert into ${t.line} (queue, name) values (coalesce(new.queue, 'default'), new.name) on conflict do nothing;
          select l.id into line_id from ${t.line} l where l.queue = coalesce(new.queue, 'default') and l.name = new.name;
          insert into ${t.job} (id, line, created_at, input, max_attempts, context, lane)
            values (new_id, line_id, now_ms, coalesce(new.input::text, 'null'), new.max_attempts, to_json(new.context)::text, new.lane);
          insert into ${t.ready} (id, line, rank, run_at)
            values (new_id, line_id, -coalesce(new.priority, 0), coalesce(new.run_at, now_ms + coalesce(new.delay_ms, 0)));
          perform pg_notify('${schema}', json_build_object('k', 'work', 'q', coalesce(new.queue, 'default'), 'p', coalesce(new.priority, 0))::text);
          new.id := new_id;
          return new;
        end $$`,
      `create trigger enqueue_row instead of insert on ${part(schema, "enqueue")} for each row execute function ${part(schema, "enqueue_row")}()`,
      // Raw SQL: `insert into holdfast.retry (id) values (…)` resumes an ended job, at the step where it failed.
      `create view ${part(schema, "retry")} as select null::uuid as id where false`,
      `create function ${part(schema, "retry_row")}() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $$
        begin
          if exists (select 1 from ${t.job} j where j.id = new.id and j.key is not null) then
            raise exception 'holdfast: a job with a unique key is resumed by hf.jobs.retry' using errcode = '22023';
          end if;
          with h as (delete from ${t.history} where id = new.id returning id, line, rank, errors)
          insert into ${t.ready} (id, line, rank, run_at, begun, watched, errors)
            select id, line, rank, (extract(epoch from statement_timestamp()) * 1000)::bigint, true, true, errors from h;
          if not found then
            raise exception 'holdfast: no ended job has this id' using errcode = '22023';
          end if;
          delete from ${t.step} s where s.job = new.id and (s.state = 'failed' or (s.state = 'open' and s.kind = 'step')
            or exists (select 1 from ${t.step} u where u.job = new.id and u.name = '$undo'));
          perform pg_notify('${schema}', '{"k":"any"}');
          return new;
        end $$`,
      `create trigger retry_row instead of insert on ${part(schema, "retry")} for each row execute function ${part(schema, "retry_row")}()`,
    ],
  },
];

function part(schema: string, name: string): string {
  return `"${schema}"."${name}"`;
}
