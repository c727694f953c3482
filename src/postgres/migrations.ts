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
        begun bool not null default false, errors text, progress text, error_group text,
        constraint lease_is_whole check ((token is null) = (session is null))
      ) with (fillfactor = 42, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000,
        autovacuum_analyze_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0)`,
      `create index ready_order on ${t.ready} (line, rank, run_at, id)`,
      // Only failed jobs that wait for their next attempt are in it: plain jobs write no entry.
      `create index ready_troubled on ${t.ready} (id) where error_group is not null`,
      `create table ${t.history} (
        id uuid primary key, ended_at bigint not null, started_at bigint, run_at bigint not null, session bigint,
        line int not null, rank int not null, attempt int not null, crashes int not null, throttles int not null,
        state text not null check (state in ('done', 'dead', 'cancelled')), output text, errors text, progress text, error_group text
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
      `create table ${t.queue} (
        name text primary key, paused_at bigint, cool_until bigint, cool_at bigint, cool_steps int not null default 0,
        cool_base_ms bigint, cool_max_ms bigint, settings text)`,
      `create table ${t.hold} (name text primary key, queues text[], reason text, set_at bigint not null)`,
      `create table ${t.state} (key text primary key, value text not null, set_at bigint not null)`,
      `create table ${t.kind} (name text primary key, has_unique bool not null, has_lane bool not null, seen_at bigint not null)`,
      `create table ${t.duty} (name text primary key, next_at bigint not null)`,
      // What operators did, by the dashboard: kept 90 days.
      `create table ${t.audit} (
        id bigint generated always as identity primary key, at bigint not null, actor text not null, action text not null,
        target text, outcome text not null, details text)`,
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
    ],
  },
];

function part(schema: string, name: string): string {
  return `"${schema}"."${name}"`;
}
