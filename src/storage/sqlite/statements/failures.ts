/**
 * Failures by cause and by the minute, and what was decided about each cause. Read it beside storage/postgres/statements/failures.ts: same names,
 * same order, same parameters.
 */
import type { Statements, Tables } from "../../catalogue.ts";

export function failureStatements(t: Tables) {
  return {
    putFailures: `
      insert into ${t.failure} as f (failure_group, at, queue, version, worker, n)
      values (:rows.group, :rows.at, :rows.queue, :rows.version, :rows.worker, :rows.n)
      on conflict (failure_group, at, queue, version, worker) do update set n = excluded.n where excluded.n > f.n`,
    putFailureGroups: `
      insert into ${t.failure_group} as g (id, name, first_at, last_at, sample, message)
      values (:rows.group, :rows.name, :rows.firstAt, :rows.lastAt, :rows.sample, :rows.message)
      on conflict (id) do update set name = excluded.name, first_at = min(coalesce(g.first_at, excluded.first_at), excluded.first_at),
        last_at = max(coalesce(g.last_at, 0), excluded.last_at), sample = excluded.sample, message = excluded.message`,
    failureGroupRows: `
      select g.*, :now as now from ${t.failure_group} g
      where (:ids is null or g.id in (select value from json_each(:ids))) and (:names is null or g.name in (select value from json_each(:names)))
      order by g.state <> 'open' desc, max(coalesce(g.last_at, 0), coalesce(g.state_at, 0)) desc limit :limit`,
    failureHours: `
      select f.failure_group, case when f.at >= :fine then f.at - f.at % 3600000 else :since end as hour, sum(f.n) as n, coalesce(sum(f.n) filter (where f.at >= :recent), 0) as recent
      from ${t.failure} f
      where f.failure_group in (select value from json_each(:ids)) and f.at >= :since and (:queues is null or f.queue in (select value from json_each(:queues)))
      group by 1, 2 order by 1, 2`,
    failureGroupSources: `
      select f.failure_group, f.queue, f.version, sum(f.n) as n, min(f.at) as first_at, max(f.at) as last_at from ${t.failure} f
      where f.failure_group in (select value from json_each(:ids)) group by 1, 2, 3 order by 1, 4 desc, 2, 3`,
    failuresBy: `
      with walked as materialized (
        select * from ${t.failure} where at >= :since and (:by <> 'worker' or worker <> '') order by at desc limit :scan
      )
      select case :by when 'queue' then f.queue when 'worker' then f.worker when 'version' then cast(f.version as text)
          when 'hour' then cast(f.at - f.at % 3600000 as text) else coalesce(g.name, '') end as value,
        case :by when 'version' then g.name end as name, sum(f.n) as n, count(distinct f.failure_group) as groups, max(f.at) as last_at,
        (select count(*) from walked) as walked
      from walked f left join ${t.failure_group} g on g.id = f.failure_group group by 1, 2 order by 3 desc, 1 limit :limit`,
    failuresSince: `
      select :rows.group as failure_group, coalesce(sum(f.n), 0) as n from ${t.failure} f where f.failure_group = :rows.group and f.at >= :rows.at`,
    setFailureGroup: `
      insert into ${t.failure_group} as g (id, name, state, state_at, state_by, until_at, until_count, from_count, note, link)
      values (:group, :name, :state, case when :decided then :now end, :by, coalesce(:untilAt, :now + :untilDelay), :untilCount, :fromCount, :note, :link)
      on conflict (id) do update set
        state = case when :decided then excluded.state else g.state end, state_at = case when :decided then excluded.state_at else g.state_at end,
        state_by = case when :decided then excluded.state_by else g.state_by end, until_at = case when :decided then excluded.until_at else g.until_at end,
        until_count = case when :decided then excluded.until_count else g.until_count end,
        from_count = case when :decided then excluded.from_count else g.from_count end,
        note = case when :noted then excluded.note else g.note end, link = case when :linked then excluded.link else g.link end
      returning id, state_at, until_at`,
    // What nobody failed of or decided on for so long: what was decided or noted is kept for a year more.
    deleteOldFailures: [
      `delete from ${t.failure} where at < :before`,
      `delete from ${t.failure_group} where max(coalesce(last_at, 0), coalesce(state_at, 0)) <
        :before - case when state = 'open' and note is null and link is null then 0 else 31536000000 end`,
    ],
    failuresOf: `
      select failure_group, at, queue, version, worker, n from ${t.failure} where at >= :since and at < :until order by 1, 2, 3, 4, 5`,
    dropFailures: `delete from ${t.failure} where at >= :since and at < :until`,
  } satisfies Partial<Statements>;
}
