/**
 * Failures by cause and by the minute, and what was decided about each cause. Read it beside storage/sqlite/statements/failures.ts: same names,
 * same order, same parameters.
 */
import type { Statements, Tables } from "../../catalogue.ts";

export function failureStatements(t: Tables, NOW: string) {
  return {
    putFailures: `
      insert into ${t.failure} as f (failure_group, at, queue, version, worker, n)
      select * from unnest(:rows.group::text[], :rows.at::bigint[], :rows.queue::text[], :rows.version::int[], :rows.worker::text[], :rows.n::int[])
      on conflict (failure_group, at, queue, version, worker) do update set n = excluded.n where excluded.n > f.n`,
    putFailureGroups: `
      insert into ${t.failure_group} as g (id, name, first_at, last_at, sample, message)
      select * from unnest(:rows.group::text[], :rows.name::text[], :rows.firstAt::bigint[], :rows.lastAt::bigint[], :rows.sample::uuid[], :rows.message::text[])
      on conflict (id) do update set name = excluded.name, first_at = least(g.first_at, excluded.first_at),
        last_at = greatest(g.last_at, excluded.last_at), sample = excluded.sample, message = excluded.message`,
    failureGroupRows: `
      select g.*, ${NOW} as now from ${t.failure_group} g
      where (:ids::text[] is null or g.id = any(:ids::text[])) and (:names::text[] is null or g.name = any(:names::text[]))
      order by g.state <> 'open' desc, greatest(g.last_at, g.state_at, 0) desc limit :limit::int`,
    failureHours: `
      select f.failure_group, case when f.at >= :fine::bigint then f.at - f.at % 3600000::bigint else :since::bigint end as hour, sum(f.n) as n, coalesce(sum(f.n) filter (where f.at >= :recent::bigint), 0) as recent
      from ${t.failure} f
      where f.failure_group = any(:ids::text[]) and f.at >= :since::bigint and (:queues::text[] is null or f.queue = any(:queues::text[]))
      group by 1, 2 order by 1, 2`,
    failureGroupSources: `
      select f.failure_group, f.queue, f.version, sum(f.n) as n, min(f.at) as first_at, max(f.at) as last_at from ${t.failure} f
      where f.failure_group = any(:ids::text[]) group by 1, 2, 3 order by 1, 4 desc, 2, 3`,
    failuresBy: `
      with walked as materialized (
        select * from ${t.failure} where at >= :since::bigint and (:by::text <> 'worker' or worker <> '') order by at desc limit :scan::int
      )
      select case :by::text when 'queue' then f.queue when 'worker' then f.worker when 'version' then (f.version)::text
          when 'hour' then (f.at - f.at % 3600000::bigint)::text else coalesce(g.name, '') end as value,
        case :by::text when 'version' then g.name end as name, sum(f.n) as n, count(distinct f.failure_group) as groups, max(f.at) as last_at,
        (select count(*) from walked) as walked
      from walked f left join ${t.failure_group} g on g.id = f.failure_group group by 1, 2 order by 3 desc, 1 limit :limit::int`,
    failuresSince: `
      select a.id as failure_group, coalesce((select sum(f.n) from ${t.failure} f where f.failure_group = a.id and f.at >= a.at), 0) as n
      from unnest(:rows.group::text[], :rows.at::bigint[]) as a (id, at)`,
    setFailureGroup: `
      insert into ${t.failure_group} as g (id, name, state, state_at, state_by, until_at, until_count, from_count, note, link)
      values (:group::text, :name::text, :state::text, case when :decided::bool then ${NOW} end, :by::text,
        coalesce(:untilAt::bigint, ${NOW} + :untilDelay::bigint), :untilCount::bigint, :fromCount::bigint, :note::text, :link::text)
      on conflict (id) do update set
        state = case when :decided::bool then excluded.state else g.state end, state_at = case when :decided::bool then excluded.state_at else g.state_at end,
        state_by = case when :decided::bool then excluded.state_by else g.state_by end, until_at = case when :decided::bool then excluded.until_at else g.until_at end,
        until_count = case when :decided::bool then excluded.until_count else g.until_count end,
        from_count = case when :decided::bool then excluded.from_count else g.from_count end,
        note = case when :noted::bool then excluded.note else g.note end, link = case when :linked::bool then excluded.link else g.link end
      returning id, state_at, until_at`,
    // What nobody failed of or decided on for so long: what was decided or noted is kept for a year more.
    deleteOldFailures: `
      with f as (delete from ${t.failure} where at < :before::bigint)
      delete from ${t.failure_group} where greatest(last_at, state_at, 0) <
        :before::bigint - case when state = 'open' and note is null and link is null then 0 else 31536000000 end`,
    failuresOf: `
      select failure_group, at, queue, version, worker, n from ${t.failure} where at >= :since::bigint and at < :until::bigint order by 1, 2, 3, 4, 5`,
    dropFailures: `delete from ${t.failure} where at >= :since::bigint and at < :until::bigint`,
  } satisfies Partial<Statements>;
}
