-- addJobTypes
-- with rows.queue, rows.name, rows.laned
insert into "holdfast"."job_type" (queue, name, laned)
select * from unnest($1::pg_catalog.text[], $2::pg_catalog.text[], $3::pg_catalog.bool[]) order by 1, 2, 3
on conflict do nothing;

-- findJobTypes
-- with rows.queue, rows.name, rows.laned
select l.id, l.queue, l.name, l.laned from unnest($1::pg_catalog.text[], $2::pg_catalog.text[], $3::pg_catalog.bool[])
    as w (queue, name, laned)
join "holdfast"."job_type" l on l.queue = w.queue and l.name = w.name and l.laned = w.laned;

-- jobTypesById
-- with ids
select id, queue, name, laned from "holdfast"."job_type" where id = any($1::int[]);

-- insertAlike
-- with jobType, now, maxAttempts, timeout, rows.id, rows.input, rank, channel, message
with added as (
  insert into "holdfast"."job" (id, job_type, created_at, input, max_attempts, timeout_ms)
  select id, (select l.id from "holdfast"."job_type" l where l.id = $1::int), (select coalesce($2::bigint,
      (extract(epoch from statement_timestamp()) * 1000.0)::bigint)), input, $3::int, $4::bigint
  from (select pg_catalog.unnest($5::pg_catalog.uuid[]) as id, pg_catalog.unnest($6::pg_catalog.text[]) as input) n
)
insert into "holdfast"."ready" (id, job_type, rank, run_at)
select id, $1::int, $7::int, (select coalesce($2::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint))
    from (select pg_catalog.unnest($5::pg_catalog.uuid[]) as id) n where (select case when $8::pg_catalog.text is null
    then true when pg_catalog.pg_notification_queue_usage() operator(pg_catalog.<) 0.5 then
    pg_notify($8::pg_catalog.text, $9::pg_catalog.text)::pg_catalog.text is not null else true end);

-- insertNew
-- with rows.id, rows.jobType, rows.rank, rows.delay, rows.runAt, rows.input, rows.maxAttempts, rows.timeout,
--     rows.extras, now, channel, message
with n as materialized (
  select * from unnest($1::pg_catalog.uuid[], $2::int[], $3::int[], $4::bigint[], $5::bigint[],
    $6::pg_catalog.text[], $7::int[], $8::bigint[], $9::pg_catalog.text[])
    as n (id, job_type, rank, delay, run_at, input, max_attempts, timeout_ms, extras)
),
added as (
  insert into "holdfast"."job" (id, job_type, created_at, input, max_attempts, timeout_ms, extras)
  select n.id, (select l.id from "holdfast"."job_type" l where l.id = n.job_type), (select coalesce($10::bigint,
      (extract(epoch from statement_timestamp()) * 1000.0)::bigint)), input, max_attempts, timeout_ms, extras from n
)
insert into "holdfast"."ready" (id, job_type, rank, run_at)
select n.id, n.job_type, n.rank, greatest((select coalesce($10::bigint, (extract(epoch from statement_timestamp()) *
    1000.0)::bigint)), coalesce(n.run_at, (select coalesce($10::bigint, (extract(epoch from statement_timestamp()) *
    1000.0)::bigint)) + coalesce(n.delay, 0))) from n where (select case when $11::pg_catalog.text is null then true
    when pg_catalog.pg_notification_queue_usage() operator(pg_catalog.<) 0.5 then pg_notify($11::pg_catalog.text,
    $12::pg_catalog.text)::pg_catalog.text is not null else true end);

-- insertJobs
-- with rows.id, rows.jobType, rows.rank, rows.delay, rows.runAt, rows.input, rows.maxAttempts, rows.timeout,
--     rows.deadline, rows.parent, rows.key, rows.lane, rows.context, rows.extras, rows.laneId, rows.slotted, now
with n as materialized (
  select * from unnest($1::pg_catalog.uuid[], $2::int[], $3::int[], $4::bigint[], $5::bigint[],
    $6::pg_catalog.text[], $7::int[], $8::bigint[], $9::bigint[], $10::pg_catalog.uuid[],
    $11::pg_catalog.text[], $12::pg_catalog.text[], $13::pg_catalog.text[], $14::pg_catalog.text[], $15::int[],
        $16::pg_catalog.bool[])
    as n (id, job_type, rank, delay, run_at, input, max_attempts, timeout_ms, deadline_at, parent_id, key, lane,
        context, extras, lane_id, slotted)
),
added as (
  insert into "holdfast"."job" (id, job_type, created_at, input, max_attempts, timeout_ms, deadline_at, parent_id, key,
      lane, context, extras)
  select id, (select l.id from "holdfast"."job_type" l where l.id = n.job_type
    and (n.lane_id is null or (select a.queue = l.queue and a.key = n.lane from "holdfast"."lane" a
      where a.id >= n.lane_id and a.id <= n.lane_id order by a.id desc limit 1))), coalesce($17::bigint, (extract(epoch
          from statement_timestamp()) * 1000.0)::bigint), input, max_attempts, timeout_ms, deadline_at, parent_id, key,
          lane, context, extras from n
  where not exists (select 1 from "holdfast"."used_id" d where d.id = n.id)
  on conflict (id) do nothing returning id
),
placed as (
  insert into "holdfast"."ready" (id, job_type, rank, run_at, lane)
  select n.id, n.job_type, n.rank, greatest(case when n.slotted then 0 else coalesce($17::bigint, (extract(epoch from
      statement_timestamp()) * 1000.0)::bigint) end, coalesce(n.run_at, coalesce($17::bigint, (extract(epoch from
      statement_timestamp()) * 1000.0)::bigint) + coalesce(n.delay, 0))), n.lane_id from n where n.id in (select id from
      added)
  returning id, job_type, run_at, lane
),
rung as (
  insert into "holdfast"."lane_wakeup" (job_type, lanes, ats) select job_type, pg_catalog.array_agg(lane),
      pg_catalog.array_agg(run_at) from placed where lane is not null group by job_type
)
select id from placed;

-- takeKeys
-- with now, rows.scope, rows.key, rows.id, rows.forMs
insert into "holdfast"."unique_key" (scope, key, id, expires_at)
select w.scope, w.key, w.id, coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) +
    w.for_ms
from unnest($2::pg_catalog.text[], $3::pg_catalog.text[], $4::pg_catalog.uuid[], $5::bigint[]) as w (scope, key, id,
    for_ms)
order by w.scope, w.key
on conflict (scope, key) do nothing returning id;

-- findKeys
-- with now, rows.scope, rows.key
select u.scope, u.key, u.id,
  coalesce(u.expires_at <= coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint), true) and
      not exists (select 1 from "holdfast"."ready" r where r.id = u.id) as stale
from unnest($2::pg_catalog.text[], $3::pg_catalog.text[]) as w (scope, key)
join "holdfast"."unique_key" u on u.scope = w.scope and u.key = w.key;

-- takeStaleKeys
-- with now, rows.scope, rows.key, rows.id, rows.forMs, rows.holder
update "holdfast"."unique_key" u set id = w.id, expires_at = coalesce($1::bigint, (extract(epoch from
    statement_timestamp()) * 1000.0)::bigint) + w.for_ms
from unnest($2::pg_catalog.text[], $3::pg_catalog.text[], $4::pg_catalog.uuid[], $5::bigint[], $6::pg_catalog.uuid[]) as
    w (scope, key, id, for_ms, holder)
where u.scope = w.scope and u.key = w.key and u.id = w.holder and coalesce(u.expires_at <= coalesce($1::bigint,
    (extract(epoch from statement_timestamp()) * 1000.0)::bigint), true)
  and not exists (select 1 from "holdfast"."ready" r where r.id = u.id)
returning u.id;

-- findJobs
-- with ids
select id from "holdfast"."ready" where id = any($1::pg_catalog.uuid[])
union all
select id from "holdfast"."history" where id = any($1::pg_catalog.uuid[]);

-- findUsed
-- with ids
select id, null::pg_catalog.uuid as job from "holdfast"."job" where id = any($1::pg_catalog.uuid[])
union all
select id, job from "holdfast"."used_id" where id = any($1::pg_catalog.uuid[]);

-- replaceQueued
-- with rows.id, rows.jobType, rows.rank, rows.delay, rows.runAt, rows.input, rows.maxAttempts, rows.timeout,
--     rows.deadline, rows.lane, rows.context, rows.extras, rows.laneId, rows.sent, now
with n as materialized (
  select * from unnest($1::pg_catalog.uuid[], $2::int[], $3::int[], $4::bigint[], $5::bigint[], $6::pg_catalog.text[],
    $7::int[], $8::bigint[], $9::bigint[], $10::pg_catalog.text[], $11::pg_catalog.text[], $12::pg_catalog.text[],
        $13::int[],
    $14::pg_catalog.uuid[])
    as n (id, job_type, rank, delay, run_at, input, max_attempts, timeout_ms, deadline_at, lane, context, extras,
        lane_id, sent)
),
queued as (
  update "holdfast"."ready" r set job_type = n.job_type, rank = n.rank, lane = n.lane_id,
    run_at = case when r.waits is null then greatest(coalesce($15::bigint, (extract(epoch from statement_timestamp()) *
        1000.0)::bigint), coalesce(n.run_at, coalesce($15::bigint, (extract(epoch from statement_timestamp()) *
        1000.0)::bigint) + coalesce(n.delay, 0))) else r.run_at end,
    due_at = case when r.waits is null then r.due_at else greatest(coalesce($15::bigint, (extract(epoch from
        statement_timestamp()) * 1000.0)::bigint), coalesce(n.run_at, coalesce($15::bigint, (extract(epoch from
        statement_timestamp()) * 1000.0)::bigint) + coalesce(n.delay, 0))) end
  from n where r.id = n.id and r.token is null and not r.begun returning r.id
),
noted as (
  insert into "holdfast"."used_id" (id, at, job) select n.sent, coalesce($15::bigint, (extract(epoch from
      statement_timestamp()) * 1000.0)::bigint), n.id from n where n.id in (select id from queued)
  on conflict (job) where job is not null do update set id = excluded.id, at = excluded.at
)
update "holdfast"."job" j set job_type = (select l.id from "holdfast"."job_type" l where l.id = n.job_type
    and (n.lane_id is null or (select a.queue = l.queue and a.key = n.lane from "holdfast"."lane" a
      where a.id >= n.lane_id and a.id <= n.lane_id order by a.id desc limit 1))), input = n.input, max_attempts =
          n.max_attempts, timeout_ms = n.timeout_ms, deadline_at = n.deadline_at,
  lane = n.lane, context = n.context, extras = n.extras
from n where j.id = n.id and n.id in (select id from queued) returning j.id;

-- claimLevel
-- with session, now, jobType, rank, runAt, rowKey, queue, limit
    with taken as (
    update "holdfast"."ready" r
    set token = (select nextval('"holdfast"."token"'::pg_catalog.regclass)), session = $1::bigint, attempt =
        least(r.attempt + 1, 32767), started_at = (select coalesce($2::bigint, (extract(epoch from
        statement_timestamp()) * 1000.0)::bigint))
    where r.ctid = any(array(
      select r.ctid from "holdfast"."ready" r
      where r.job_type = (select $3::int) and r.rank = (select $4::int) and r.token is null and r.run_at <=
          coalesce($2::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)
        and (r.run_at, r.id) > ($5::bigint, $6::pg_catalog.uuid) and exists (select 1 from "holdfast"."session" s where
            s.id = $1::bigint and s.lease_until > coalesce($2::bigint, (extract(epoch from statement_timestamp()) *
            1000.0)::bigint)) and
    not exists (select 1 from "holdfast"."queue" stop where stop.name = $7::pg_catalog.text and (stop.paused_at is not
        null or stop.cool_until > coalesce($2::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) or
        stop.limited))
    and not exists (select 1 from "holdfast"."hold" held where held.queues is null or $7::pg_catalog.text =
        any(held.queues))
      order by r.run_at, r.id limit (select $8::int) for update skip locked))
    returning r.id, r.job_type, r.rank, r.run_at, r.token, r.attempt, r.crashes, r.begun, r.undoing, r.started_at,
        r.errors
  ),
  filed as (
    insert into "holdfast"."claim" (token, session, ids)
    select token, $1::bigint, pg_catalog.array_agg(id) from taken group by token
  )
  select c.job_type, c.rank, c.attempt, j.max_attempts, min(c.token) as token, min(c.started_at) as started_at,
  string_agg(c.id::pg_catalog.text, E'\x1e') as ids, string_agg(c.run_at::pg_catalog.text, E'\x1e') as run_ats,
      string_agg(replace(j.input, E'\x1e', ''), E'\x1e') as inputs, case when c.crashes > 0 or c.begun
      or pg_catalog.num_nonnulls(c.errors, j.timeout_ms, j.key, j.context, j.parent_id, j.deadline_at, j.extras) > 0
    then pg_catalog.json_build_object('crashes', c.crashes, 'begun', c.begun, 'undoing', c.undoing, 'errors', c.errors,
        'timeout_ms', j.timeout_ms,
      'key', j.key, 'context', j.context, 'parent_id', j.parent_id, 'deadline_at', j.deadline_at, 'extras',
          j.extras)::pg_catalog.text
  end as rest
from (select * from taken order by id offset 0) c
full join (
  select * from "holdfast"."job" where id = any(array(select id from taken))
    and id >= (select id from taken order by id limit 1) and id <= (select id from taken order by id desc limit 1)
  order by id offset 0
) j on j.id = c.id
group by j.id is null, c.job_type, c.rank, c.attempt, j.max_attempts, rest, case when octet_length(j.input) > 8192 then
    c.id end;

-- claimLevel, from the table of one day
-- with session, now, jobType, rank, runAt, rowKey, queue, limit
    with taken as (
    update "holdfast"."ready" r
    set token = (select nextval('"holdfast"."token"'::pg_catalog.regclass)), session = $1::bigint, attempt =
        least(r.attempt + 1, 32767), started_at = (select coalesce($2::bigint, (extract(epoch from
        statement_timestamp()) * 1000.0)::bigint))
    where r.ctid = any(array(
      select r.ctid from "holdfast"."ready" r
      where r.job_type = (select $3::int) and r.rank = (select $4::int) and r.token is null and r.run_at <=
          coalesce($2::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)
        and (r.run_at, r.id) > ($5::bigint, $6::pg_catalog.uuid) and exists (select 1 from "holdfast"."session" s where
            s.id = $1::bigint and s.lease_until > coalesce($2::bigint, (extract(epoch from statement_timestamp()) *
            1000.0)::bigint)) and
    not exists (select 1 from "holdfast"."queue" stop where stop.name = $7::pg_catalog.text and (stop.paused_at is not
        null or stop.cool_until > coalesce($2::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) or
        stop.limited))
    and not exists (select 1 from "holdfast"."hold" held where held.queues is null or $7::pg_catalog.text =
        any(held.queues))
      order by r.run_at, r.id limit (select $8::int) for update skip locked))
    returning r.id, r.job_type, r.rank, r.run_at, r.token, r.attempt, r.crashes, r.begun, r.undoing, r.started_at,
        r.errors
  ),
  filed as (
    insert into "holdfast"."claim" (token, session, ids)
    select token, $1::bigint, pg_catalog.array_agg(id) from taken group by token
  )
  select c.job_type, c.rank, c.attempt, j.max_attempts, min(c.token) as token, min(c.started_at) as started_at,
  string_agg(c.id::pg_catalog.text, E'\x1e') as ids, string_agg(c.run_at::pg_catalog.text, E'\x1e') as run_ats,
      string_agg(replace(j.input, E'\x1e', ''), E'\x1e') as inputs, case when c.crashes > 0 or c.begun
      or pg_catalog.num_nonnulls(c.errors, j.timeout_ms, j.key, j.context, j.parent_id, j.deadline_at, j.extras) > 0
    then pg_catalog.json_build_object('crashes', c.crashes, 'begun', c.begun, 'undoing', c.undoing, 'errors', c.errors,
        'timeout_ms', j.timeout_ms,
      'key', j.key, 'context', j.context, 'parent_id', j.parent_id, 'deadline_at', j.deadline_at, 'extras',
          j.extras)::pg_catalog.text
  end as rest
from (select * from taken order by id offset 0) c
full join (
  select * from "holdfast"."job_20260101" where id = any(array(select id from taken))
    and id >= (select id from taken order by id limit 1) and id <= (select id from taken order by id desc limit 1)
  order by id offset 0
) j on j.id = c.id
group by j.id is null, c.job_type, c.rank, c.attempt, j.max_attempts, rest, case when octet_length(j.input) > 8192 then
    c.id end;

-- claim
-- with queues.queue, queues.group, queues.limit, queues.edge, names, now, direction, levels.jobType, levels.rank,
--     levels.runAt, levels.rowKey, session
  with recursive
  scope as materialized (
    select l.id as job_type, l.queue, q.grp, q.n, q.edge
    from unnest((select $1::pg_catalog.text[]), (select $2::pg_catalog.text[]), (select $3::int[]), (select
        $4::bigint[]))
      as q (queue, grp, n, edge)
    join "holdfast"."job_type" l on q.queue is null or l.queue = q.queue
    where not l.laned and ((select $5::pg_catalog.text[]) is null or l.name = any((select
        $5::pg_catalog.text[])::pg_catalog.text[]))
      and ((select $5::pg_catalog.text[]) is not null or not exists (select 1 from "holdfast"."definition" m where
          m.name = l.name and m.is_machine)) and
    not exists (select 1 from "holdfast"."queue" stop where stop.name = l.queue and (stop.paused_at is not null or
        stop.cool_until > coalesce($6::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) or
        stop.limited))
    and not exists (select 1 from "holdfast"."hold" held where held.queues is null or l.queue = any(held.queues))
  ),
  known as materialized (
    select k.job_type, k.rank, k.rank * (select $7::bigint) as d, k.from_at, k.from_id
    from unnest((select $8::int[]), (select $9::int[]), (select $10::bigint[]), (select $11::pg_catalog.uuid[]))
      as k (job_type, rank, from_at, from_id)
  ),
  grp as materialized (
    select s.grp, s.n, min(s.edge) as edge, pg_catalog.array_agg(s.job_type) as job_types, greatest(20, 1000 /
        pg_catalog.count(*)) as probes, (select coalesce(max(d), -2147483649::bigint) from known) as last
    from scope s where exists (select 1 from "holdfast"."session" s where s.id = $12::bigint and s.lease_until >
        coalesce($6::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)) group by s.grp, s.n
  ),
  share as materialized (
    select x.job_type, x.rank, x.from_at, x.from_id, pg_catalog.count(*)::int as n from grp g cross join lateral (
      with recursive rank_of (d, n) as (
        select least(case when -2147483649::bigint < g.last then (select min(k.d) from known k where k.job_type =
            any(g.job_types) and k.d > -2147483649::bigint) end,
          case when -2147483649::bigint < g.edge then g.edge else (select min((
      select least(b.d, case when (select $7::bigint) > 0
        then (select r.rank from "holdfast"."ready" r where r.job_type = l.job_type and r.rank > -2147483649::bigint and
            r.rank < b.d order by r.rank limit 1)
        else (select -r.rank::bigint from "holdfast"."ready" r where r.job_type = l.job_type and r.rank <
            -(-2147483649::bigint) and r.rank > -b.d order by r.rank desc limit 1) end)
      from (select coalesce(case when -2147483649::bigint < g.last then (select min(k.d) from known k where k.job_type =
          l.job_type and k.d > -2147483649::bigint) end, 2147483649::bigint) as d) b)) from
          pg_catalog.unnest(g.job_types) as l (job_type)) end), 1
        union all
        select least(case when w.d < g.last then (select min(k.d) from known k where k.job_type = any(g.job_types) and
            k.d > w.d) end,
          case when w.d < g.edge then g.edge else (select min((
      select least(b.d, case when (select $7::bigint) > 0
        then (select r.rank from "holdfast"."ready" r where r.job_type = l.job_type and r.rank > w.d and r.rank < b.d
            order by r.rank limit 1)
        else (select -r.rank::bigint from "holdfast"."ready" r where r.job_type = l.job_type and r.rank < -(w.d) and
            r.rank > -b.d order by r.rank desc limit 1) end)
      from (select coalesce(case when w.d < g.last then (select min(k.d) from known k where k.job_type = l.job_type and
          k.d > w.d) end, 2147483649::bigint) as d) b)) from pg_catalog.unnest(g.job_types) as l (job_type)) end), w.n +
          1 from rank_of w where w.d < 2147483649::bigint and w.n < g.probes
      )
      select m.* from rank_of w cross join lateral (
        select p.job_type, p.rank, p.from_at, p.from_id from (
        select l.job_type, w.d * (select $7::bigint) as rank, coalesce(k.from_at, '-9223372036854775808'::bigint) as
            from_at, coalesce(k.from_id, '00000000-0000-0000-0000-000000000000'::pg_catalog.uuid) as from_id
        from pg_catalog.unnest(g.job_types) as l (job_type) left join lateral (select * from known k where w.d <= g.last
            and k.job_type = l.job_type and k.d = w.d offset 0) k on true
        where w.d < 2147483649::bigint and (k.job_type is not null or w.d >= g.edge)
      ) p cross join lateral (
          select r.run_at, r.id from "holdfast"."ready" r where
      r.job_type = p.job_type and r.rank = p.rank and r.token is null and r.run_at <= coalesce($6::bigint,
          (extract(epoch from statement_timestamp()) * 1000.0)::bigint)
      and (r.run_at, r.id) > (p.from_at, p.from_id) and ((select $5::pg_catalog.text[]) is not null or not exists (
        select 1 from "holdfast"."job" p where p.id = r.id
          and (p.extras like '{"step":%' or (r.begun and (select 1 from "holdfast"."step" e where e.job = p.id limit 1)
              is not null))))
      order by r.run_at, r.id limit g.n
        ) h
        order by h.run_at, h.id limit g.n
      ) m
      union all
      select * from (
        select l.job_type, h.rank, '-9223372036854775808'::bigint,
            '00000000-0000-0000-0000-000000000000'::pg_catalog.uuid from rank_of w cross join
            pg_catalog.unnest(g.job_types) as l (job_type)
        cross join lateral (select * from (
          select r.rank, r.run_at, r.id from "holdfast"."ready" r
          where (select $7::bigint) > 0 and r.job_type = l.job_type and r.rank > w.d and r.token is null and r.run_at <=
              coalesce($6::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)
            and ((select $5::pg_catalog.text[]) is not null or not exists (
        select 1 from "holdfast"."job" p where p.id = r.id
          and (p.extras like '{"step":%' or (r.begun and (select 1 from "holdfast"."step" e where e.job = p.id limit 1)
              is not null))))
          order by r.rank, r.run_at, r.id limit g.n) up union all select * from (
          select r.rank, r.run_at, r.id from "holdfast"."ready" r
          where (select $7::bigint) < 0 and r.job_type = l.job_type and r.rank < -w.d and r.token is null and r.run_at
              <= coalesce($6::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)
            and ((select $5::pg_catalog.text[]) is not null or not exists (
        select 1 from "holdfast"."job" p where p.id = r.id
          and (p.extras like '{"step":%' or (r.begun and (select 1 from "holdfast"."step" e where e.job = p.id limit 1)
              is not null))))
          order by r.rank desc, r.run_at, r.id limit g.n) down) h
        where w.n = g.probes and w.d < 2147483649::bigint order by h.rank * (select $7::bigint), h.run_at, h.id limit
            g.n
      ) b
      limit g.n
    ) x
    where pg_catalog.cardinality(g.job_types) > 1 group by x.job_type, x.rank, x.from_at, x.from_id
  ),
  taken as (
    update "holdfast"."ready" r
    set token = (select nextval('"holdfast"."token"'::pg_catalog.regclass)), session = $12::bigint, attempt =
        least(r.attempt + 1, 32767), started_at = (select coalesce($6::bigint, (extract(epoch from
        statement_timestamp()) * 1000.0)::bigint))
    where r.ctid = any(array(
      select c.tid from grp g cross join lateral (
        with recursive rank_of (d, n) as (
        select least(case when -2147483649::bigint < g.last then (select min(k.d) from known k where k.job_type =
            any(g.job_types) and k.d > -2147483649::bigint) end,
          case when -2147483649::bigint < g.edge then g.edge else (
      select least(b.d, case when (select $7::bigint) > 0
        then (select r.rank from "holdfast"."ready" r where r.job_type = g.job_types[1] and r.rank > -2147483649::bigint
            and r.rank < b.d order by r.rank limit 1)
        else (select -r.rank::bigint from "holdfast"."ready" r where r.job_type = g.job_types[1] and r.rank <
            -(-2147483649::bigint) and r.rank > -b.d order by r.rank desc limit 1) end)
      from (select coalesce(case when -2147483649::bigint < g.last then (select min(k.d) from known k where k.job_type =
          g.job_types[1] and k.d > -2147483649::bigint) end, 2147483649::bigint) as d) b) end), 1
        union all
        select least(case when w.d < g.last then (select min(k.d) from known k where k.job_type = any(g.job_types) and
            k.d > w.d) end,
          case when w.d < g.edge then g.edge else (
      select least(b.d, case when (select $7::bigint) > 0
        then (select r.rank from "holdfast"."ready" r where r.job_type = g.job_types[1] and r.rank > w.d and r.rank <
            b.d order by r.rank limit 1)
        else (select -r.rank::bigint from "holdfast"."ready" r where r.job_type = g.job_types[1] and r.rank < -(w.d) and
            r.rank > -b.d order by r.rank desc limit 1) end)
      from (select coalesce(case when w.d < g.last then (select min(k.d) from known k where k.job_type = g.job_types[1]
          and k.d > w.d) end, 2147483649::bigint) as d) b) end), w.n + 1 from rank_of w where w.d < 2147483649::bigint
          and w.n < g.probes
      )
        select h.tid from rank_of w cross join lateral (
        select l.job_type, w.d * (select $7::bigint) as rank, coalesce(k.from_at, '-9223372036854775808'::bigint) as
            from_at, coalesce(k.from_id, '00000000-0000-0000-0000-000000000000'::pg_catalog.uuid) as from_id
        from (select g.job_types[1] as job_type) l left join lateral (select * from known k where w.d <= g.last and
            k.job_type = l.job_type and k.d = w.d offset 0) k on true
        where w.d < 2147483649::bigint and (k.job_type is not null or w.d >= g.edge)
      ) p cross join lateral (
          select r.ctid as tid from "holdfast"."ready" r where
      r.job_type = p.job_type and r.rank = p.rank and r.token is null and r.run_at <= coalesce($6::bigint,
          (extract(epoch from statement_timestamp()) * 1000.0)::bigint)
      and (r.run_at, r.id) > (p.from_at, p.from_id) and ((select $5::pg_catalog.text[]) is not null or not exists (
        select 1 from "holdfast"."job" p where p.id = r.id
          and (p.extras like '{"step":%' or (r.begun and (select 1 from "holdfast"."step" e where e.job = p.id limit 1)
              is not null))))
      order by r.run_at, r.id limit g.n for update skip locked
        ) h
        union all
        select h.tid from rank_of w cross join lateral (select * from (
          select r.ctid as tid from "holdfast"."ready" r
          where (select $7::bigint) > 0 and r.job_type = g.job_types[1] and r.rank > w.d and r.token is null and
              r.run_at <= coalesce($6::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)
            and ((select $5::pg_catalog.text[]) is not null or not exists (
        select 1 from "holdfast"."job" p where p.id = r.id
          and (p.extras like '{"step":%' or (r.begun and (select 1 from "holdfast"."step" e where e.job = p.id limit 1)
              is not null))))
          order by r.rank, r.run_at, r.id limit g.n for update skip locked) up union all select * from (
          select r.ctid as tid from "holdfast"."ready" r
          where (select $7::bigint) < 0 and r.job_type = g.job_types[1] and r.rank < -w.d and r.token is null and
              r.run_at <= coalesce($6::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)
            and ((select $5::pg_catalog.text[]) is not null or not exists (
        select 1 from "holdfast"."job" p where p.id = r.id
          and (p.extras like '{"step":%' or (r.begun and (select 1 from "holdfast"."step" e where e.job = p.id limit 1)
              is not null))))
          order by r.rank desc, r.run_at, r.id limit g.n for update skip locked) down) h
        where w.n = g.probes and w.d < 2147483649::bigint
        limit g.n
      ) c
      where pg_catalog.cardinality(g.job_types) = 1
      union all
      select c.tid from share s cross join lateral (
        select r.ctid as tid from "holdfast"."ready" r where
      r.job_type = s.job_type and r.rank = s.rank and r.token is null and r.run_at <= coalesce($6::bigint,
          (extract(epoch from statement_timestamp()) * 1000.0)::bigint)
      and (r.run_at, r.id) > (s.from_at, s.from_id) and ((select $5::pg_catalog.text[]) is not null or not exists (
        select 1 from "holdfast"."job" p where p.id = r.id
          and (p.extras like '{"step":%' or (r.begun and (select 1 from "holdfast"."step" e where e.job = p.id limit 1)
              is not null))))
      order by r.run_at, r.id limit s.n for update skip locked
      ) c))
    returning r.id, r.job_type, r.rank, r.run_at, r.token, r.attempt, r.crashes, r.begun, r.undoing, r.started_at,
        r.errors
  ),
  filed as (
    insert into "holdfast"."claim" (token, session, ids)
    select token, $12::bigint, pg_catalog.array_agg(id) from taken group by token
  )
  select c.job_type, c.rank, c.attempt, j.max_attempts, min(c.token) as token, min(c.started_at) as started_at,
  string_agg(c.id::pg_catalog.text, E'\x1e') as ids, string_agg(c.run_at::pg_catalog.text, E'\x1e') as run_ats,
      string_agg(replace(j.input, E'\x1e', ''), E'\x1e') as inputs, case when c.crashes > 0 or c.begun
      or pg_catalog.num_nonnulls(c.errors, j.timeout_ms, j.key, j.context, j.parent_id, j.deadline_at, j.extras) > 0
    then pg_catalog.json_build_object('crashes', c.crashes, 'begun', c.begun, 'undoing', c.undoing, 'errors', c.errors,
        'timeout_ms', j.timeout_ms,
      'key', j.key, 'context', j.context, 'parent_id', j.parent_id, 'deadline_at', j.deadline_at, 'extras',
          j.extras)::pg_catalog.text
  end as rest
from (select * from taken order by id offset 0) c
full join (
  select * from "holdfast"."job" where id = any(array(select id from taken))
    and id >= (select id from taken order by id limit 1) and id <= (select id from taken order by id desc limit 1)
  order by id offset 0
) j on j.id = c.id
group by j.id is null, c.job_type, c.rank, c.attempt, j.max_attempts, rest, case when octet_length(j.input) > 8192 then
    c.id end;

-- claim, from the table of one day
-- with queues.queue, queues.group, queues.limit, queues.edge, names, now, direction, levels.jobType, levels.rank,
--     levels.runAt, levels.rowKey, session
  with recursive
  scope as materialized (
    select l.id as job_type, l.queue, q.grp, q.n, q.edge
    from unnest((select $1::pg_catalog.text[]), (select $2::pg_catalog.text[]), (select $3::int[]), (select
        $4::bigint[]))
      as q (queue, grp, n, edge)
    join "holdfast"."job_type" l on q.queue is null or l.queue = q.queue
    where not l.laned and ((select $5::pg_catalog.text[]) is null or l.name = any((select
        $5::pg_catalog.text[])::pg_catalog.text[]))
      and ((select $5::pg_catalog.text[]) is not null or not exists (select 1 from "holdfast"."definition" m where
          m.name = l.name and m.is_machine)) and
    not exists (select 1 from "holdfast"."queue" stop where stop.name = l.queue and (stop.paused_at is not null or
        stop.cool_until > coalesce($6::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) or
        stop.limited))
    and not exists (select 1 from "holdfast"."hold" held where held.queues is null or l.queue = any(held.queues))
  ),
  known as materialized (
    select k.job_type, k.rank, k.rank * (select $7::bigint) as d, k.from_at, k.from_id
    from unnest((select $8::int[]), (select $9::int[]), (select $10::bigint[]), (select $11::pg_catalog.uuid[]))
      as k (job_type, rank, from_at, from_id)
  ),
  grp as materialized (
    select s.grp, s.n, min(s.edge) as edge, pg_catalog.array_agg(s.job_type) as job_types, greatest(20, 1000 /
        pg_catalog.count(*)) as probes, (select coalesce(max(d), -2147483649::bigint) from known) as last
    from scope s where exists (select 1 from "holdfast"."session" s where s.id = $12::bigint and s.lease_until >
        coalesce($6::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)) group by s.grp, s.n
  ),
  share as materialized (
    select x.job_type, x.rank, x.from_at, x.from_id, pg_catalog.count(*)::int as n from grp g cross join lateral (
      with recursive rank_of (d, n) as (
        select least(case when -2147483649::bigint < g.last then (select min(k.d) from known k where k.job_type =
            any(g.job_types) and k.d > -2147483649::bigint) end,
          case when -2147483649::bigint < g.edge then g.edge else (select min((
      select least(b.d, case when (select $7::bigint) > 0
        then (select r.rank from "holdfast"."ready" r where r.job_type = l.job_type and r.rank > -2147483649::bigint and
            r.rank < b.d order by r.rank limit 1)
        else (select -r.rank::bigint from "holdfast"."ready" r where r.job_type = l.job_type and r.rank <
            -(-2147483649::bigint) and r.rank > -b.d order by r.rank desc limit 1) end)
      from (select coalesce(case when -2147483649::bigint < g.last then (select min(k.d) from known k where k.job_type =
          l.job_type and k.d > -2147483649::bigint) end, 2147483649::bigint) as d) b)) from
          pg_catalog.unnest(g.job_types) as l (job_type)) end), 1
        union all
        select least(case when w.d < g.last then (select min(k.d) from known k where k.job_type = any(g.job_types) and
            k.d > w.d) end,
          case when w.d < g.edge then g.edge else (select min((
      select least(b.d, case when (select $7::bigint) > 0
        then (select r.rank from "holdfast"."ready" r where r.job_type = l.job_type and r.rank > w.d and r.rank < b.d
            order by r.rank limit 1)
        else (select -r.rank::bigint from "holdfast"."ready" r where r.job_type = l.job_type and r.rank < -(w.d) and
            r.rank > -b.d order by r.rank desc limit 1) end)
      from (select coalesce(case when w.d < g.last then (select min(k.d) from known k where k.job_type = l.job_type and
          k.d > w.d) end, 2147483649::bigint) as d) b)) from pg_catalog.unnest(g.job_types) as l (job_type)) end), w.n +
          1 from rank_of w where w.d < 2147483649::bigint and w.n < g.probes
      )
      select m.* from rank_of w cross join lateral (
        select p.job_type, p.rank, p.from_at, p.from_id from (
        select l.job_type, w.d * (select $7::bigint) as rank, coalesce(k.from_at, '-9223372036854775808'::bigint) as
            from_at, coalesce(k.from_id, '00000000-0000-0000-0000-000000000000'::pg_catalog.uuid) as from_id
        from pg_catalog.unnest(g.job_types) as l (job_type) left join lateral (select * from known k where w.d <= g.last
            and k.job_type = l.job_type and k.d = w.d offset 0) k on true
        where w.d < 2147483649::bigint and (k.job_type is not null or w.d >= g.edge)
      ) p cross join lateral (
          select r.run_at, r.id from "holdfast"."ready" r where
      r.job_type = p.job_type and r.rank = p.rank and r.token is null and r.run_at <= coalesce($6::bigint,
          (extract(epoch from statement_timestamp()) * 1000.0)::bigint)
      and (r.run_at, r.id) > (p.from_at, p.from_id) and ((select $5::pg_catalog.text[]) is not null or not exists (
        select 1 from "holdfast"."job" p where p.id = r.id
          and (p.extras like '{"step":%' or (r.begun and (select 1 from "holdfast"."step" e where e.job = p.id limit 1)
              is not null))))
      order by r.run_at, r.id limit g.n
        ) h
        order by h.run_at, h.id limit g.n
      ) m
      union all
      select * from (
        select l.job_type, h.rank, '-9223372036854775808'::bigint,
            '00000000-0000-0000-0000-000000000000'::pg_catalog.uuid from rank_of w cross join
            pg_catalog.unnest(g.job_types) as l (job_type)
        cross join lateral (select * from (
          select r.rank, r.run_at, r.id from "holdfast"."ready" r
          where (select $7::bigint) > 0 and r.job_type = l.job_type and r.rank > w.d and r.token is null and r.run_at <=
              coalesce($6::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)
            and ((select $5::pg_catalog.text[]) is not null or not exists (
        select 1 from "holdfast"."job" p where p.id = r.id
          and (p.extras like '{"step":%' or (r.begun and (select 1 from "holdfast"."step" e where e.job = p.id limit 1)
              is not null))))
          order by r.rank, r.run_at, r.id limit g.n) up union all select * from (
          select r.rank, r.run_at, r.id from "holdfast"."ready" r
          where (select $7::bigint) < 0 and r.job_type = l.job_type and r.rank < -w.d and r.token is null and r.run_at
              <= coalesce($6::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)
            and ((select $5::pg_catalog.text[]) is not null or not exists (
        select 1 from "holdfast"."job" p where p.id = r.id
          and (p.extras like '{"step":%' or (r.begun and (select 1 from "holdfast"."step" e where e.job = p.id limit 1)
              is not null))))
          order by r.rank desc, r.run_at, r.id limit g.n) down) h
        where w.n = g.probes and w.d < 2147483649::bigint order by h.rank * (select $7::bigint), h.run_at, h.id limit
            g.n
      ) b
      limit g.n
    ) x
    where pg_catalog.cardinality(g.job_types) > 1 group by x.job_type, x.rank, x.from_at, x.from_id
  ),
  taken as (
    update "holdfast"."ready" r
    set token = (select nextval('"holdfast"."token"'::pg_catalog.regclass)), session = $12::bigint, attempt =
        least(r.attempt + 1, 32767), started_at = (select coalesce($6::bigint, (extract(epoch from
        statement_timestamp()) * 1000.0)::bigint))
    where r.ctid = any(array(
      select c.tid from grp g cross join lateral (
        with recursive rank_of (d, n) as (
        select least(case when -2147483649::bigint < g.last then (select min(k.d) from known k where k.job_type =
            any(g.job_types) and k.d > -2147483649::bigint) end,
          case when -2147483649::bigint < g.edge then g.edge else (
      select least(b.d, case when (select $7::bigint) > 0
        then (select r.rank from "holdfast"."ready" r where r.job_type = g.job_types[1] and r.rank > -2147483649::bigint
            and r.rank < b.d order by r.rank limit 1)
        else (select -r.rank::bigint from "holdfast"."ready" r where r.job_type = g.job_types[1] and r.rank <
            -(-2147483649::bigint) and r.rank > -b.d order by r.rank desc limit 1) end)
      from (select coalesce(case when -2147483649::bigint < g.last then (select min(k.d) from known k where k.job_type =
          g.job_types[1] and k.d > -2147483649::bigint) end, 2147483649::bigint) as d) b) end), 1
        union all
        select least(case when w.d < g.last then (select min(k.d) from known k where k.job_type = any(g.job_types) and
            k.d > w.d) end,
          case when w.d < g.edge then g.edge else (
      select least(b.d, case when (select $7::bigint) > 0
        then (select r.rank from "holdfast"."ready" r where r.job_type = g.job_types[1] and r.rank > w.d and r.rank <
            b.d order by r.rank limit 1)
        else (select -r.rank::bigint from "holdfast"."ready" r where r.job_type = g.job_types[1] and r.rank < -(w.d) and
            r.rank > -b.d order by r.rank desc limit 1) end)
      from (select coalesce(case when w.d < g.last then (select min(k.d) from known k where k.job_type = g.job_types[1]
          and k.d > w.d) end, 2147483649::bigint) as d) b) end), w.n + 1 from rank_of w where w.d < 2147483649::bigint
          and w.n < g.probes
      )
        select h.tid from rank_of w cross join lateral (
        select l.job_type, w.d * (select $7::bigint) as rank, coalesce(k.from_at, '-9223372036854775808'::bigint) as
            from_at, coalesce(k.from_id, '00000000-0000-0000-0000-000000000000'::pg_catalog.uuid) as from_id
        from (select g.job_types[1] as job_type) l left join lateral (select * from known k where w.d <= g.last and
            k.job_type = l.job_type and k.d = w.d offset 0) k on true
        where w.d < 2147483649::bigint and (k.job_type is not null or w.d >= g.edge)
      ) p cross join lateral (
          select r.ctid as tid from "holdfast"."ready" r where
      r.job_type = p.job_type and r.rank = p.rank and r.token is null and r.run_at <= coalesce($6::bigint,
          (extract(epoch from statement_timestamp()) * 1000.0)::bigint)
      and (r.run_at, r.id) > (p.from_at, p.from_id) and ((select $5::pg_catalog.text[]) is not null or not exists (
        select 1 from "holdfast"."job" p where p.id = r.id
          and (p.extras like '{"step":%' or (r.begun and (select 1 from "holdfast"."step" e where e.job = p.id limit 1)
              is not null))))
      order by r.run_at, r.id limit g.n for update skip locked
        ) h
        union all
        select h.tid from rank_of w cross join lateral (select * from (
          select r.ctid as tid from "holdfast"."ready" r
          where (select $7::bigint) > 0 and r.job_type = g.job_types[1] and r.rank > w.d and r.token is null and
              r.run_at <= coalesce($6::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)
            and ((select $5::pg_catalog.text[]) is not null or not exists (
        select 1 from "holdfast"."job" p where p.id = r.id
          and (p.extras like '{"step":%' or (r.begun and (select 1 from "holdfast"."step" e where e.job = p.id limit 1)
              is not null))))
          order by r.rank, r.run_at, r.id limit g.n for update skip locked) up union all select * from (
          select r.ctid as tid from "holdfast"."ready" r
          where (select $7::bigint) < 0 and r.job_type = g.job_types[1] and r.rank < -w.d and r.token is null and
              r.run_at <= coalesce($6::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)
            and ((select $5::pg_catalog.text[]) is not null or not exists (
        select 1 from "holdfast"."job" p where p.id = r.id
          and (p.extras like '{"step":%' or (r.begun and (select 1 from "holdfast"."step" e where e.job = p.id limit 1)
              is not null))))
          order by r.rank desc, r.run_at, r.id limit g.n for update skip locked) down) h
        where w.n = g.probes and w.d < 2147483649::bigint
        limit g.n
      ) c
      where pg_catalog.cardinality(g.job_types) = 1
      union all
      select c.tid from share s cross join lateral (
        select r.ctid as tid from "holdfast"."ready" r where
      r.job_type = s.job_type and r.rank = s.rank and r.token is null and r.run_at <= coalesce($6::bigint,
          (extract(epoch from statement_timestamp()) * 1000.0)::bigint)
      and (r.run_at, r.id) > (s.from_at, s.from_id) and ((select $5::pg_catalog.text[]) is not null or not exists (
        select 1 from "holdfast"."job" p where p.id = r.id
          and (p.extras like '{"step":%' or (r.begun and (select 1 from "holdfast"."step" e where e.job = p.id limit 1)
              is not null))))
      order by r.run_at, r.id limit s.n for update skip locked
      ) c))
    returning r.id, r.job_type, r.rank, r.run_at, r.token, r.attempt, r.crashes, r.begun, r.undoing, r.started_at,
        r.errors
  ),
  filed as (
    insert into "holdfast"."claim" (token, session, ids)
    select token, $12::bigint, pg_catalog.array_agg(id) from taken group by token
  )
  select c.job_type, c.rank, c.attempt, j.max_attempts, min(c.token) as token, min(c.started_at) as started_at,
  string_agg(c.id::pg_catalog.text, E'\x1e') as ids, string_agg(c.run_at::pg_catalog.text, E'\x1e') as run_ats,
      string_agg(replace(j.input, E'\x1e', ''), E'\x1e') as inputs, case when c.crashes > 0 or c.begun
      or pg_catalog.num_nonnulls(c.errors, j.timeout_ms, j.key, j.context, j.parent_id, j.deadline_at, j.extras) > 0
    then pg_catalog.json_build_object('crashes', c.crashes, 'begun', c.begun, 'undoing', c.undoing, 'errors', c.errors,
        'timeout_ms', j.timeout_ms,
      'key', j.key, 'context', j.context, 'parent_id', j.parent_id, 'deadline_at', j.deadline_at, 'extras',
          j.extras)::pg_catalog.text
  end as rest
from (select * from taken order by id offset 0) c
full join (
  select * from "holdfast"."job_20260101" where id = any(array(select id from taken))
    and id >= (select id from taken order by id limit 1) and id <= (select id from taken order by id desc limit 1)
  order by id offset 0
) j on j.id = c.id
group by j.id is null, c.job_type, c.rank, c.attempt, j.max_attempts, rest, case when octet_length(j.input) > 8192 then
    c.id end;

-- checkDue
-- with queues.queue, queues.group, queues.limit, queues.edge, names, now, direction, levels.jobType, levels.rank,
--     levels.runAt, levels.rowKey, channel, message
  with recursive
scope as materialized (
  select l.id as job_type, l.queue, q.grp, q.n, q.edge
  from unnest((select $1::pg_catalog.text[]), (select $2::pg_catalog.text[]), (select $3::int[]), (select $4::bigint[]))
    as q (queue, grp, n, edge)
  join "holdfast"."job_type" l on q.queue is null or l.queue = q.queue
  where not l.laned and ((select $5::pg_catalog.text[]) is null or l.name = any((select
      $5::pg_catalog.text[])::pg_catalog.text[]))
    and ((select $5::pg_catalog.text[]) is not null or not exists (select 1 from "holdfast"."definition" m where m.name
        = l.name and m.is_machine)) and
  not exists (select 1 from "holdfast"."queue" stop where stop.name = l.queue and (stop.paused_at is not null or
      stop.cool_until > coalesce($6::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) or
      stop.limited))
  and not exists (select 1 from "holdfast"."hold" held where held.queues is null or l.queue = any(held.queues))
),
known as materialized (
  select k.job_type, k.rank, k.rank * (select $7::bigint) as d, k.from_at, k.from_id
  from unnest((select $8::int[]), (select $9::int[]), (select $10::bigint[]), (select $11::pg_catalog.uuid[]))
    as k (job_type, rank, from_at, from_id)
),
  level_of (job_type, d, n) as (
    select s.job_type, (
    select least(b.d, case when (select $7::bigint) > 0
      then (select r.rank from "holdfast"."ready" r where r.job_type = s.job_type and r.rank > -2147483649::bigint and
          r.rank < b.d order by r.rank limit 1)
      else (select -r.rank::bigint from "holdfast"."ready" r where r.job_type = s.job_type and r.rank <
          -(-2147483649::bigint) and r.rank > -b.d order by r.rank desc limit 1) end)
    from (select coalesce(case when -2147483649::bigint < 2147483649::bigint then (select min(k.d) from known k where
        k.job_type = s.job_type and k.d > -2147483649::bigint) end, 2147483649::bigint) as d) b), 1 from scope s
    union all
    select w.job_type, (
    select least(b.d, case when (select $7::bigint) > 0
      then (select r.rank from "holdfast"."ready" r where r.job_type = w.job_type and r.rank > w.d and r.rank < b.d
          order by r.rank limit 1)
      else (select -r.rank::bigint from "holdfast"."ready" r where r.job_type = w.job_type and r.rank < -(w.d) and
          r.rank > -b.d order by r.rank desc limit 1) end)
    from (select coalesce(case when w.d < 2147483649::bigint then (select min(k.d) from known k where k.job_type =
        w.job_type and k.d > w.d) end, 2147483649::bigint) as d) b), w.n + 1 from level_of w where w.d <
        2147483649::bigint and w.n < (select greatest(20, 1000 / greatest(pg_catalog.count(*), 1)) from scope)
  ),
  head (job_type, run_at) as (
    select w.job_type, h.run_at from level_of w
    left join lateral (select * from known k where k.job_type = w.job_type and k.d = w.d offset 0) k on true
    cross join lateral (
      select r.run_at from "holdfast"."ready" r
      where r.job_type = w.job_type and r.rank <= w.d * (select $7::bigint)
        and (r.rank, r.run_at, r.id) > (w.d * (select $7::bigint), coalesce(k.from_at, '-9223372036854775808'::bigint),
            coalesce(k.from_id, '00000000-0000-0000-0000-000000000000'::pg_catalog.uuid))
        and case when r.token is null then true end
      order by r.rank, r.run_at, r.id limit 1
    ) h
    where w.d < 2147483649::bigint and h.run_at < 8633688480000000
    union all
    select w.job_type, h.run_at from level_of w cross join lateral (select * from (
        select r.run_at from "holdfast"."ready" r
        where (select $7::bigint) > 0 and r.job_type = w.job_type and r.rank > w.d and r.token is null and r.run_at <=
            coalesce($6::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)
          and ((select $5::pg_catalog.text[]) is not null or not exists (
      select 1 from "holdfast"."job" p where p.id = r.id
        and (p.extras like '{"step":%' or (r.begun and (select 1 from "holdfast"."step" e where e.job = p.id limit 1) is
            not null))))
        order by r.rank, r.run_at, r.id limit 1) up union all select * from (
        select r.run_at from "holdfast"."ready" r
        where (select $7::bigint) < 0 and r.job_type = w.job_type and r.rank < -w.d and r.token is null and r.run_at <=
            coalesce($6::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)
          and ((select $5::pg_catalog.text[]) is not null or not exists (
      select 1 from "holdfast"."job" p where p.id = r.id
        and (p.extras like '{"step":%' or (r.begun and (select 1 from "holdfast"."step" e where e.job = p.id limit 1) is
            not null))))
        order by r.rank desc, r.run_at, r.id limit 1) down) h where w.n = (select greatest(20, 1000 /
            greatest(pg_catalog.count(*), 1)) from scope) and w.d < 2147483649::bigint
    union all
    -- What is not due is not claimed: its row need not be looked at.
    select w.job_type, h.run_at from level_of w cross join lateral (
      select min(r.run_at) as run_at from "holdfast"."ready" r
      where r.job_type = w.job_type and r.run_at > coalesce($6::bigint, (extract(epoch from statement_timestamp()) *
          1000.0)::bigint) and r.run_at < 8633688480000000
        and r.rank > case when (select $7::bigint) > 0 then w.d else -2147483649::bigint end
        and r.rank < case when (select $7::bigint) > 0 then 2147483649::bigint else -w.d end
    ) h where w.n = (select greatest(20, 1000 / greatest(pg_catalog.count(*), 1)) from scope) and w.d <
        2147483649::bigint and h.run_at is not null
  )
  select coalesce($6::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) as now,
    least(
      coalesce((select run_at from head where run_at <= coalesce($6::bigint, (extract(epoch from statement_timestamp())
          * 1000.0)::bigint) limit 1), (select min(run_at) from head)),
      (select min(q.cool_until) from "holdfast"."queue" q where q.cool_until > coalesce($6::bigint, (extract(epoch from
          statement_timestamp()) * 1000.0)::bigint)
        and exists (select 1 from pg_catalog.unnest($1::pg_catalog.text[]) w (queue) where w.queue is null or w.queue =
            q.name))
    ) as due_at,
    (select min(s.lease_until) from "holdfast"."session" s where s.closed_at is null) as expires_at,
    (select coalesce(pg_catalog.json_agg(distinct l.queue), '[]')::pg_catalog.text from "holdfast"."job_type" l where
        l.laned) as laned,
    (select coalesce(pg_catalog.json_agg(q.name), '[]')::pg_catalog.text from "holdfast"."queue" q where q.limited) as
        limited,
    (select pg_catalog.json_agg(q.name)::pg_catalog.text from "holdfast"."queue" q where q.drain_at is not null) as
        draining,
    (select case when $12::pg_catalog.text is null then true when pg_catalog.pg_notification_queue_usage()
        operator(pg_catalog.<) 0.5 then pg_notify($12::pg_catalog.text, $13::pg_catalog.text)::pg_catalog.text is not
        null else true end) as told;

-- openSession
-- with id, kind, workerId, name, host, pid, version, queues, names, runtime, release, versions, quietAt, leaseMs, now
insert into "holdfast"."session" (id, kind, worker_id, name, host, pid, version, queues, names, runtime, release,
    versions, quiet_at, lease_ms, started_at, beat_at, lease_until)
values ($1::bigint, $2, $3, $4, $5, $6::bigint, $7, $8, $9, $10::pg_catalog.text, $11::pg_catalog.text,
    $12::pg_catalog.text, $13::bigint, $14::bigint, coalesce($15::bigint, (extract(epoch from statement_timestamp()) *
    1000.0)::bigint), coalesce($15::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint),
    coalesce($15::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) + $14::bigint)
on conflict (id) do nothing returning id;

-- renew
-- with now, ahead, session
with s as (
  update "holdfast"."session" set beat_at = coalesce($1::bigint, (extract(epoch from statement_timestamp()) *
      1000.0)::bigint), lease_until = coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)
      + lease_ms + $2::bigint
  where id = $3::bigint and lease_until > coalesce($1::bigint, (extract(epoch from statement_timestamp()) *
      1000.0)::bigint) returning stop_requested_at, quiet_at
)
select s.stop_requested_at is not null as stop, s.quiet_at,
  (select coalesce(pg_catalog.json_agg(pg_catalog.json_build_object('id', c.id, 'token', c.token, 'pause', c.pause,
      'reason', c.reason)), '[]')::pg_catalog.text
    from "holdfast"."cancel" c where c.session = $3::bigint) as requests,
  (select coalesce(pg_catalog.json_agg(pg_catalog.json_build_object('token', token, 'held', held, 'gone', gone)),
      '[]')::pg_catalog.text from (
    select c.token, coalesce(pg_catalog.json_agg(o.id) filter (where r.held), '[]') as held,
        coalesce(pg_catalog.json_agg(o.id) filter (where r.held is null), '[]') as gone
    from "holdfast"."claim" c cross join lateral pg_catalog.unnest(c.ids) as o (id)
    left join lateral (select true as held from "holdfast"."ready" k where k.id = o.id and k.token = c.token and
        k.session = c.session offset 0) r on true
    where c.session = $3::bigint group by c.token) each_claim) as claims
from s;

-- findSession
-- with session
select id from "holdfast"."session" where id = $1::bigint;

-- closeSession
-- with session, now
with unclaimed as (
  delete from "holdfast"."claim" c where c.session = $1::bigint
    and not exists (select 1 from pg_catalog.unnest(c.ids) as o (id) join "holdfast"."ready" r on r.id = o.id and
        r.token = c.token)
)
update "holdfast"."session" s set lease_until = least(s.lease_until, coalesce($2::bigint, (extract(epoch from
    statement_timestamp()) * 1000.0)::bigint)), closed_at = coalesce(s.closed_at, case when not exists (
  select 1 from "holdfast"."claim" c cross join lateral pg_catalog.unnest(c.ids) as o (id) join "holdfast"."ready" r on
      r.id = o.id and r.token = c.token
  where c.session = s.id) then coalesce($2::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) end)
where s.id = $1::bigint;

-- orphans
-- with now, limit
  select r.id, r.token, r.session, r.rank, r.run_at, r.attempt, r.started_at, r.job_type, r.lane as lane_id, r.counted,
      c.rates,
    j.input, j.max_attempts, j.lane, case when r.crashes > 0 or r.begun
    or pg_catalog.num_nonnulls(r.errors, j.timeout_ms, j.key, j.context, j.parent_id, j.deadline_at, j.extras) > 0
  then pg_catalog.json_build_object('crashes', r.crashes, 'begun', r.begun, 'undoing', r.undoing, 'errors', r.errors,
      'timeout_ms', j.timeout_ms,
    'key', j.key, 'context', j.context, 'parent_id', j.parent_id, 'deadline_at', j.deadline_at, 'extras',
        j.extras)::pg_catalog.text
end as rest, l.queue, l.name, x.reason as cancel_reason, s.lease_until,
    coalesce(s.closed_at < s.beat_at + s.lease_ms, false) as unheard, exists (select 1 from "holdfast"."step" e where
        e.job = r.id) as stepped
  from "holdfast"."claim" c
  left join "holdfast"."session" s on s.id = c.session
  cross join lateral pg_catalog.unnest(c.ids) as o (id)
  cross join lateral (select * from "holdfast"."ready" k where k.id = o.id and k.token = c.token offset 0) r
  cross join lateral (select * from "holdfast"."job" k where k.id = r.id offset 0) j
  join "holdfast"."job_type" l on l.id = r.job_type
  left join "holdfast"."cancel" x on x.id = r.id and x.token = r.token and not x.pause
  where s.id is null or s.lease_until <= coalesce($1::bigint, (extract(epoch from statement_timestamp()) *
      1000.0)::bigint)
  order by r.id limit $2::int;

-- heldJobs
-- with ids
  select r.id, r.token, r.session, r.rank, r.run_at, r.attempt, r.started_at, r.job_type, r.lane as lane_id, r.counted,
      c.rates,
    j.input, j.max_attempts, j.lane, case when r.crashes > 0 or r.begun
    or pg_catalog.num_nonnulls(r.errors, j.timeout_ms, j.key, j.context, j.parent_id, j.deadline_at, j.extras) > 0
  then pg_catalog.json_build_object('crashes', r.crashes, 'begun', r.begun, 'undoing', r.undoing, 'errors', r.errors,
      'timeout_ms', j.timeout_ms,
    'key', j.key, 'context', j.context, 'parent_id', j.parent_id, 'deadline_at', j.deadline_at, 'extras',
        j.extras)::pg_catalog.text
end as rest, l.queue, l.name, x.reason as cancel_reason, s.lease_until,
    coalesce(s.closed_at < s.beat_at + s.lease_ms, false) as unheard, exists (select 1 from "holdfast"."step" e where
        e.job = r.id) as stepped
  from "holdfast"."claim" c
  left join "holdfast"."session" s on s.id = c.session
  cross join lateral pg_catalog.unnest(c.ids) as o (id)
  cross join lateral (select * from "holdfast"."ready" k where k.id = o.id and k.token = c.token offset 0) r
  cross join lateral (select * from "holdfast"."job" k where k.id = r.id offset 0) j
  join "holdfast"."job_type" l on l.id = r.job_type
  left join "holdfast"."cancel" x on x.id = r.id and x.token = r.token and not x.pause
  where c.token = any(array(select w.token from "holdfast"."ready" w where w.id = any($1::pg_catalog.uuid[]))) and r.id
      = any($1::pg_catalog.uuid[]) order by r.id;

-- heldUnder
-- with session, tokens
  select r.id, r.token, r.session, r.rank, r.run_at, r.attempt, r.started_at, r.job_type, r.lane as lane_id, r.counted,
      c.rates,
    j.input, j.max_attempts, j.lane, case when r.crashes > 0 or r.begun
    or pg_catalog.num_nonnulls(r.errors, j.timeout_ms, j.key, j.context, j.parent_id, j.deadline_at, j.extras) > 0
  then pg_catalog.json_build_object('crashes', r.crashes, 'begun', r.begun, 'undoing', r.undoing, 'errors', r.errors,
      'timeout_ms', j.timeout_ms,
    'key', j.key, 'context', j.context, 'parent_id', j.parent_id, 'deadline_at', j.deadline_at, 'extras',
        j.extras)::pg_catalog.text
end as rest, l.queue, l.name, x.reason as cancel_reason, s.lease_until,
    coalesce(s.closed_at < s.beat_at + s.lease_ms, false) as unheard, exists (select 1 from "holdfast"."step" e where
        e.job = r.id) as stepped
  from "holdfast"."claim" c
  left join "holdfast"."session" s on s.id = c.session
  cross join lateral pg_catalog.unnest(c.ids) as o (id)
  cross join lateral (select * from "holdfast"."ready" k where k.id = o.id and k.token = c.token offset 0) r
  cross join lateral (select * from "holdfast"."job" k where k.id = r.id offset 0) j
  join "holdfast"."job_type" l on l.id = r.job_type
  left join "holdfast"."cancel" x on x.id = r.id and x.token = r.token and not x.pause
  where c.session = $1::bigint and c.token = any($2::bigint[]) and r.session = c.session order by r.id;

-- deleteEndedSessions
-- with now
with emptied as (
  delete from "holdfast"."claim" c
  where not exists (select 1 from "holdfast"."session" s where s.id = c.session and s.lease_until > coalesce($1::bigint,
      (extract(epoch from statement_timestamp()) * 1000.0)::bigint))
    and not exists (select 1 from pg_catalog.unnest(c.ids) as o (id) join "holdfast"."ready" r on r.id = o.id and
        r.token = c.token)
  returning c.session
),
stale as (delete from "holdfast"."cancel" x where not exists (
  select 1 from "holdfast"."ready" r where r.id = x.id and (r.token = x.token or (r.token is null and r.waits =
      'resume')))),
old as (delete from "holdfast"."session" where closed_at < coalesce($1::bigint, (extract(epoch from
    statement_timestamp()) * 1000.0)::bigint) - 604800000)
update "holdfast"."session" s set closed_at = s.lease_until
where s.closed_at is null and s.lease_until <= coalesce($1::bigint, (extract(epoch from statement_timestamp()) *
    1000.0)::bigint)
  and not exists (select 1 from "holdfast"."claim" c where c.session = s.id and c.session not in (select session from
      emptied))
returning s.id;

-- refile
with reopened as (
  update "holdfast"."session" s set closed_at = null where s.closed_at is not null and s.id = any(array(
    select r.session from "holdfast"."ready" r where r.token is not null and not exists (select 1 from
        "holdfast"."claim" c where c.token = r.token and r.id = any(c.ids))))
)
insert into "holdfast"."claim" (token, session, ids)
select r.token, min(r.session), pg_catalog.array_agg(r.id) from "holdfast"."ready" r
where r.token is not null and not exists (select 1 from "holdfast"."claim" c where c.token = r.token and r.id =
    any(c.ids))
group by r.token
on conflict (token) do update set ids = pg_catalog.array_cat("holdfast"."claim".ids, excluded.ids)
returning token;

-- doneAlike
-- with rowKeys, token, session, now, spent
with gone as (
  delete from "holdfast"."ready" r where r.id = any($1::pg_catalog.uuid[]) and r.token = $2::bigint and r.session =
      $3::bigint and exists (select 1 from "holdfast"."session" s where s.id = $3::bigint and s.lease_until >
      coalesce($4::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint))
  returning r.id, r.job_type, r.rank, r.attempt, r.crashes, r.throttles, r.run_at, r.started_at, r.session, r.errors,
      r.progress, r.watched
),
kept as (
  insert into "holdfast"."history" (id, job_type, rank, state, attempt, crashes, throttles, run_at, started_at,
      ended_at, session, errors, progress)
  select id, job_type, rank, 'done', attempt, crashes, throttles, run_at, started_at, (select coalesce($4::bigint,
      (extract(epoch from statement_timestamp()) * 1000.0)::bigint)), session, errors, progress from gone
),
spent as (delete from "holdfast"."claim" c where c.token = any($5::bigint[]) and c.session = $3::bigint and exists
    (select 1 from "holdfast"."session" s where s.id = $3::bigint and s.lease_until > coalesce($4::bigint,
    (extract(epoch from statement_timestamp()) * 1000.0)::bigint)))
select o.id as row_key, false as watched from pg_catalog.unnest($1::pg_catalog.uuid[]) as o (id)
where (select pg_catalog.count(*) from gone) < pg_catalog.cardinality($1::pg_catalog.uuid[]) and o.id not in (select id
    from gone)
union all select id, true from gone where watched;

-- done
-- with rows.rowKey, rows.token, rows.output, session, now, spent
with t as materialized (
  select * from unnest($1::pg_catalog.uuid[], $2::bigint[], $3::pg_catalog.text[]) as t (id, token, output)
),
gone as (
  delete from "holdfast"."ready" r using t
  where r.id = any($1::pg_catalog.uuid[]) and r.id = t.id and r.token = t.token and r.session = $4::bigint and exists
      (select 1 from "holdfast"."session" s where s.id = $4::bigint and s.lease_until > coalesce($5::bigint,
      (extract(epoch from statement_timestamp()) * 1000.0)::bigint))
  returning r.*, t.output
),
kept as (
  insert into "holdfast"."history" (id, job_type, rank, state, attempt, crashes, throttles, run_at, started_at,
      ended_at, session, output, errors, progress)
  select id, job_type, rank, 'done', attempt, crashes, throttles, run_at, started_at, coalesce($5::bigint,
      (extract(epoch from statement_timestamp()) * 1000.0)::bigint), session, output, errors, progress from gone
),
spent as (delete from "holdfast"."claim" c where c.token = any($6::bigint[]) and c.session = $4::bigint and exists
    (select 1 from "holdfast"."session" s where s.id = $4::bigint and s.lease_until > coalesce($5::bigint,
    (extract(epoch from statement_timestamp()) * 1000.0)::bigint)))
select id as row_key, watched from gone;

-- end
-- with rows.id, rows.token, rows.state, rows.output, rows.errors, rows.failureGroup, rows.attempt, rows.crashes,
--     rows.keep, session, now, keyed, spent
with
t as materialized (
  select * from unnest($1::pg_catalog.uuid[], $2::bigint[], $3::pg_catalog.text[], $4::pg_catalog.text[],
      $5::pg_catalog.text[],
    $6::pg_catalog.text[], $7::int[], $8::int[], $9::pg_catalog.bool[])
    as t (id, token, state, output, errors, failure_group, attempt, crashes, keep)
),
gone as (
  delete from "holdfast"."ready" r using t
  where r.id = any($1::pg_catalog.uuid[]) and r.id = t.id and r.token = t.token and r.session = $10::bigint and exists
      (select 1 from "holdfast"."session" s where s.id = $10::bigint and s.lease_until > coalesce($11::bigint,
      (extract(epoch from statement_timestamp()) * 1000.0)::bigint))
  returning r.id, r.job_type, r.rank, r.throttles, r.run_at, r.started_at, r.session, r.progress,
    r.watched, t.state, t.output, t.errors, t.failure_group, t.attempt, t.crashes, t.keep or r.watched as keep
),
kept as (
  insert into "holdfast"."history" (id, job_type, rank, state, attempt, crashes, throttles, run_at, started_at,
      ended_at, session, output, errors, progress, failure_group)
  select id, job_type, rank, state, attempt, crashes, throttles, run_at, started_at, (select coalesce($11::bigint,
      (extract(epoch from statement_timestamp()) * 1000.0)::bigint)), session, output, errors, progress, failure_group
      from gone where keep
),
deleted as (
  delete from "holdfast"."job" where id = any(array(select id from gone where not keep)) and created_at <= (select
      coalesce($11::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)) - 3600000
),
emptied as (
  update "holdfast"."job" set input = 'null', context = null, extras = null, key = null, lane = null, parent_id = null
  where id = any(array(select id from gone where not keep)) and created_at > (select coalesce($11::bigint,
      (extract(epoch from statement_timestamp()) * 1000.0)::bigint)) - 3600000 returning id, created_at
),
noted as (
  insert into "holdfast"."used_id" (id, at) select id, created_at from emptied on conflict do nothing),
unstepped as (delete from "holdfast"."step" where job = any(array(select id from gone where not keep))),
undepended as (delete from "holdfast"."dependency" where job = any(array(select id from gone where not keep))),
unbatched as (delete from "holdfast"."member" where id = any(array(select id from gone where not keep))),
freed as (
  delete from "holdfast"."unique_key" u where u.id = any($12::pg_catalog.uuid[]) and u.id = any(array(select id from
      gone))
    and (u.expires_at is null or u.expires_at <= coalesce($11::bigint, (extract(epoch from statement_timestamp()) *
        1000.0)::bigint))
),
spent as (delete from "holdfast"."claim" c where c.token = any($13::bigint[]) and c.session = $10::bigint and exists
    (select 1 from "holdfast"."session" s where s.id = $10::bigint and s.lease_until > coalesce($11::bigint,
    (extract(epoch from statement_timestamp()) * 1000.0)::bigint)))
select id, watched from gone;

-- again
-- with rows.id, rows.token, rows.delay, rows.errors, rows.failureGroup, rows.attempt, rows.crashes, rows.throttled,
--     rows.begun, rows.note, rows.cancellable, rows.keeps, spent, session, now
with t as materialized (
  select * from unnest($1::pg_catalog.uuid[], $2::bigint[], $3::bigint[], $4::pg_catalog.text[], $5::pg_catalog.text[],
    $6::int[], $7::int[], $8::int[], $9::pg_catalog.bool[], $10::pg_catalog.text[], $11::pg_catalog.bool[],
        $12::pg_catalog.bool[])
    as t (id, token, delay, errors, failure_group, attempt, crashes, throttled, begun, note, cancellable, keeps)
),
spent as (delete from "holdfast"."claim" c where c.token = any($13::bigint[]) and c.session = $14::bigint and exists
    (select 1 from "holdfast"."session" s where s.id = $14::bigint and s.lease_until > coalesce($15::bigint,
    (extract(epoch from statement_timestamp()) * 1000.0)::bigint)))
update "holdfast"."ready" r
set token = null, session = null, attempt = t.attempt, crashes = t.crashes,
    run_at = case when (r.request = 1 or (r.request = 2 and t.cancellable)) then 8633688480000000 else case when t.keeps
        then least(r.run_at, coalesce($15::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)) else
        coalesce($15::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) + t.delay end end, due_at =
        case when (r.request = 1 or (r.request = 2 and t.cancellable)) then case when t.keeps then least(r.run_at,
        coalesce($15::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)) else coalesce($15::bigint,
        (extract(epoch from statement_timestamp()) * 1000.0)::bigint) + t.delay end end,
    errors = t.errors, failure_group = coalesce(t.failure_group, r.failure_group), throttles = least(r.throttles +
        t.throttled, 32767), begun = r.begun or t.begun,
    note = t.note, counted = null, waits = case when (r.request = 1 or (r.request = 2 and t.cancellable)) then 'resume'
        end, request = null
from t where r.id = any($1::pg_catalog.uuid[]) and r.id = t.id and r.token = t.token and r.session = $14::bigint and
    exists (select 1 from "holdfast"."session" s where s.id = $14::bigint and s.lease_until > coalesce($15::bigint,
    (extract(epoch from statement_timestamp()) * 1000.0)::bigint))
returning r.id, r.waits is not null as asked;

-- endOrphans
-- with rows.id, rows.token, rows.state, rows.output, rows.errors, rows.failureGroup, rows.attempt, rows.crashes,
--     rows.keep, now, keyed, spent
with
t as materialized (
  select * from unnest($1::pg_catalog.uuid[], $2::bigint[], $3::pg_catalog.text[], $4::pg_catalog.text[],
      $5::pg_catalog.text[],
    $6::pg_catalog.text[], $7::int[], $8::int[], $9::pg_catalog.bool[])
    as t (id, token, state, output, errors, failure_group, attempt, crashes, keep)
),
gone as (
  delete from "holdfast"."ready" r using t
  where r.id = any($1::pg_catalog.uuid[]) and r.id = t.id and r.token = t.token and not exists (select 1 from
      "holdfast"."session" s where s.id = r.session and s.lease_until > coalesce($10::bigint, (extract(epoch from
      statement_timestamp()) * 1000.0)::bigint)) and r.id = any(array(select w.id from "holdfast"."ready" w where w.id =
      any($1::pg_catalog.uuid[]) order by w.id for update skip locked))
  returning r.id, r.job_type, r.rank, r.throttles, r.run_at, r.started_at, r.session, r.progress,
    r.watched, t.state, t.output, t.errors, t.failure_group, t.attempt, t.crashes, t.keep or r.watched as keep
),
kept as (
  insert into "holdfast"."history" (id, job_type, rank, state, attempt, crashes, throttles, run_at, started_at,
      ended_at, session, output, errors, progress, failure_group)
  select id, job_type, rank, state, attempt, crashes, throttles, run_at, started_at, (select coalesce($10::bigint,
      (extract(epoch from statement_timestamp()) * 1000.0)::bigint)), session, output, errors, progress, failure_group
      from gone where keep
),
deleted as (
  delete from "holdfast"."job" where id = any(array(select id from gone where not keep)) and created_at <= (select
      coalesce($10::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)) - 3600000
),
emptied as (
  update "holdfast"."job" set input = 'null', context = null, extras = null, key = null, lane = null, parent_id = null
  where id = any(array(select id from gone where not keep)) and created_at > (select coalesce($10::bigint,
      (extract(epoch from statement_timestamp()) * 1000.0)::bigint)) - 3600000 returning id, created_at
),
noted as (
  insert into "holdfast"."used_id" (id, at) select id, created_at from emptied on conflict do nothing),
unstepped as (delete from "holdfast"."step" where job = any(array(select id from gone where not keep))),
undepended as (delete from "holdfast"."dependency" where job = any(array(select id from gone where not keep))),
unbatched as (delete from "holdfast"."member" where id = any(array(select id from gone where not keep))),
freed as (
  delete from "holdfast"."unique_key" u where u.id = any($11::pg_catalog.uuid[]) and u.id = any(array(select id from
      gone))
    and (u.expires_at is null or u.expires_at <= coalesce($10::bigint, (extract(epoch from statement_timestamp()) *
        1000.0)::bigint))
),
spent as (delete from "holdfast"."claim" c where c.token = any($12::bigint[]) and not exists (select 1 from
    "holdfast"."session" s where s.id = c.session and s.lease_until > coalesce($10::bigint, (extract(epoch from
    statement_timestamp()) * 1000.0)::bigint)))
select id, watched from gone;

-- againOrphans
-- with rows.id, rows.token, rows.delay, rows.errors, rows.failureGroup, rows.attempt, rows.crashes, rows.throttled,
--     rows.begun, rows.note, rows.cancellable, rows.keeps, spent, now
with t as materialized (
  select * from unnest($1::pg_catalog.uuid[], $2::bigint[], $3::bigint[], $4::pg_catalog.text[], $5::pg_catalog.text[],
    $6::int[], $7::int[], $8::int[], $9::pg_catalog.bool[], $10::pg_catalog.text[], $11::pg_catalog.bool[],
        $12::pg_catalog.bool[])
    as t (id, token, delay, errors, failure_group, attempt, crashes, throttled, begun, note, cancellable, keeps)
),
spent as (delete from "holdfast"."claim" c where c.token = any($13::bigint[]) and not exists (select 1 from
    "holdfast"."session" s where s.id = c.session and s.lease_until > coalesce($14::bigint, (extract(epoch from
    statement_timestamp()) * 1000.0)::bigint)))
update "holdfast"."ready" r
set token = null, session = null, attempt = t.attempt, crashes = t.crashes,
    run_at = case when (r.request = 1 or (r.request = 2 and t.cancellable)) then 8633688480000000 else case when t.keeps
        then least(r.run_at, coalesce($14::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)) else
        coalesce($14::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) + t.delay end end, due_at =
        case when (r.request = 1 or (r.request = 2 and t.cancellable)) then case when t.keeps then least(r.run_at,
        coalesce($14::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)) else coalesce($14::bigint,
        (extract(epoch from statement_timestamp()) * 1000.0)::bigint) + t.delay end end,
    errors = t.errors, failure_group = coalesce(t.failure_group, r.failure_group), throttles = least(r.throttles +
        t.throttled, 32767), begun = r.begun or t.begun,
    note = t.note, counted = null, waits = case when (r.request = 1 or (r.request = 2 and t.cancellable)) then 'resume'
        end, request = null
from t where r.id = any($1::pg_catalog.uuid[]) and r.id = t.id and r.token = t.token and not exists (select 1 from
    "holdfast"."session" s where s.id = r.session and s.lease_until > coalesce($14::bigint, (extract(epoch from
    statement_timestamp()) * 1000.0)::bigint)) and r.id = any(array(select w.id from "holdfast"."ready" w where w.id =
    any($1::pg_catalog.uuid[]) order by w.id for update skip locked))
returning r.id, r.waits is not null as asked;

-- coolDown
-- with now, ids
update "holdfast"."queue" q set
  cool_steps = case when q.cool_at > coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)
      - 120000 then least(q.cool_steps + 1, 30) else 1 end,
  cool_until = coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) + least(q.cool_max_ms,
      q.cool_base_ms * (1::bigint << (case when q.cool_at > coalesce($1::bigint, (extract(epoch from
      statement_timestamp()) * 1000.0)::bigint) - 120000 then least(q.cool_steps, 30) else 0 end))),
  cool_at = coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)
where q.name = any(array(
    select w.name from "holdfast"."queue" w where w.cool_base_ms is not null and (w.cool_until is null or w.cool_until
        <= coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint))
      and w.name in (select l.queue from "holdfast"."ready" r join "holdfast"."job_type" l on l.id = r.job_type where
          r.id = any($2::pg_catalog.uuid[]))
    order by w.name for update))
  and (q.cool_until is null or q.cool_until <= coalesce($1::bigint, (extract(epoch from statement_timestamp()) *
      1000.0)::bigint))
returning q.name;

-- progress
-- with value, id, token, session, now
update "holdfast"."ready" r set progress = $1 where r.id = $2::pg_catalog.uuid and r.token = $3::bigint and r.session =
    $4::bigint and exists (select 1 from "holdfast"."session" s where s.id = $4::bigint and s.lease_until >
    coalesce($5::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)) returning r.id;

-- get
-- with now, id
select * from (
select r.id, r.rank, r.attempt, r.crashes, r.run_at, r.started_at, null::bigint as ended_at, r.errors, r.progress,
    null::pg_catalog.text as output,
  s.lease_until, s.worker_id, case when r.token is not null then 'running' when r.run_at >= 8633688480000000 then
      'waiting'
  when r.run_at > coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) then case when
      r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end as state, r.waits, j.input,
      j.created_at, j.max_attempts, j.key, j.lane, j.context, j.parent_id, j.extras, l.queue, l.name, (select m.label
      from "holdfast"."step" m where m.job = r.id and m.name = '$machine') as step
from "holdfast"."ready" r join "holdfast"."job" j on j.id = r.id join "holdfast"."job_type" l on l.id = r.job_type left
    join "holdfast"."session" s on s.id = r.session where r.id = $2::pg_catalog.uuid union all
select h.id, h.rank, h.attempt, h.crashes, h.run_at, h.started_at, h.ended_at, h.errors, h.progress, h.output,
  null::bigint as lease_until, s.worker_id, h.state, null::pg_catalog.text as waits, j.input, j.created_at,
      j.max_attempts, j.key, j.lane, j.context, j.parent_id, j.extras, l.queue, l.name, (select m.label from
      "holdfast"."step" m where m.job = h.id and m.name = '$machine') as step
from "holdfast"."history" h join "holdfast"."job" j on j.id = h.id join "holdfast"."job_type" l on l.id = h.job_type
    left join "holdfast"."session" s on s.id = h.session where h.id = $2::pg_catalog.uuid) one limit 1;

-- list, 1 of 2
-- with now, limit
select * from (
  (
select r.id, r.rank, r.attempt, r.crashes, r.run_at, r.started_at, null::bigint as ended_at, r.errors, r.progress,
    null::pg_catalog.text as output,
  s.lease_until, s.worker_id, case when r.token is not null then 'running' when r.run_at >= 8633688480000000 then
      'waiting'
  when r.run_at > coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) then case when
      r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end as state, r.waits, j.input,
      j.created_at, j.max_attempts, j.key, j.lane, j.context, j.parent_id, j.extras, l.queue, l.name, (select m.label
      from "holdfast"."step" m where m.job = r.id and m.name = '$machine') as step
from "holdfast"."ready" r join "holdfast"."job" j on j.id = r.id join "holdfast"."job_type" l on l.id = r.job_type left
    join "holdfast"."session" s on s.id = r.session where true and true order by r.id desc limit $2::int)
  union all
  (
select h.id, h.rank, h.attempt, h.crashes, h.run_at, h.started_at, h.ended_at, h.errors, h.progress, h.output,
  null::bigint as lease_until, s.worker_id, h.state, null::pg_catalog.text as waits, j.input, j.created_at,
      j.max_attempts, j.key, j.lane, j.context, j.parent_id, j.extras, l.queue, l.name, (select m.label from
      "holdfast"."step" m where m.job = h.id and m.name = '$machine') as step
from "holdfast"."history" h join "holdfast"."job" j on j.id = h.id join "holdfast"."job_type" l on l.id = h.job_type
    left join "holdfast"."session" s on s.id = h.session where true and true order by h.id desc limit $2::int)
) page order by id desc limit $2::int;

-- list, 2 of 2
-- with now, ids, states, queues, names, lane, key, workflow, since, until, trace, search, cursor, limit
select * from (
  (
select r.id, r.rank, r.attempt, r.crashes, r.run_at, r.started_at, null::bigint as ended_at, r.errors, r.progress,
    null::pg_catalog.text as output,
  s.lease_until, s.worker_id, case when r.token is not null then 'running' when r.run_at >= 8633688480000000 then
      'waiting'
  when r.run_at > coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) then case when
      r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end as state, r.waits, j.input,
      j.created_at, j.max_attempts, j.key, j.lane, j.context, j.parent_id, j.extras, l.queue, l.name, (select m.label
      from "holdfast"."step" m where m.job = r.id and m.name = '$machine') as step
from "holdfast"."ready" r join "holdfast"."job" j on j.id = r.id join "holdfast"."job_type" l on l.id = r.job_type left
    join "holdfast"."session" s on s.id = r.session where r.id = any($2::pg_catalog.uuid[])
    and case when r.token is not null then 'running' when r.run_at >= 8633688480000000 then 'waiting'
  when r.run_at > coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) then case when
      r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end = any($3::pg_catalog.text[])
    and l.queue = any($4::pg_catalog.text[])
    and l.name = any($5::pg_catalog.text[])
    and j.lane = $6::pg_catalog.text
    and j.key = $7::pg_catalog.text
    and j.parent_id = $8::pg_catalog.uuid
    and j.created_at >= $9::bigint
    and j.created_at < $10::bigint
    and j.extras like $11::pg_catalog.text
    and (strpos(lower(j.input collate "C"), $12::pg_catalog.text) > 0
      or strpos(lower(j.context collate "C"), $12::pg_catalog.text) > 0 or strpos(lower(r.errors collate "C"),
          $12::pg_catalog.text) > 0) and r.id < $13::pg_catalog.uuid order by r.id desc limit $14::int)
  union all
  (
select h.id, h.rank, h.attempt, h.crashes, h.run_at, h.started_at, h.ended_at, h.errors, h.progress, h.output,
  null::bigint as lease_until, s.worker_id, h.state, null::pg_catalog.text as waits, j.input, j.created_at,
      j.max_attempts, j.key, j.lane, j.context, j.parent_id, j.extras, l.queue, l.name, (select m.label from
      "holdfast"."step" m where m.job = h.id and m.name = '$machine') as step
from "holdfast"."history" h join "holdfast"."job" j on j.id = h.id join "holdfast"."job_type" l on l.id = h.job_type
    left join "holdfast"."session" s on s.id = h.session where h.id = any($2::pg_catalog.uuid[])
    and h.state = any($3::pg_catalog.text[])
    and l.queue = any($4::pg_catalog.text[])
    and l.name = any($5::pg_catalog.text[])
    and j.lane = $6::pg_catalog.text
    and j.key = $7::pg_catalog.text
    and j.parent_id = $8::pg_catalog.uuid
    and j.created_at >= $9::bigint
    and j.created_at < $10::bigint
    and j.extras like $11::pg_catalog.text
    and (strpos(lower(j.input collate "C"), $12::pg_catalog.text) > 0
      or strpos(lower(j.context collate "C"), $12::pg_catalog.text) > 0 or strpos(lower(h.errors collate "C"),
          $12::pg_catalog.text) > 0) and h.id < $13::pg_catalog.uuid order by h.id desc limit $14::int)
) page order by id desc limit $14::int;

-- ids, 1 of 2
-- with limit
select id from (
  (select r.id from "holdfast"."ready" r join "holdfast"."job" j on j.id = r.id join "holdfast"."job_type" l on l.id =
      r.job_type
    where true and true order by r.id limit $1::int)
  union all
  (select h.id from "holdfast"."history" h join "holdfast"."job" j on j.id = h.id join "holdfast"."job_type" l on l.id =
      h.job_type
    where true and true order by h.id limit $1::int)
) page order by id limit $1::int;

-- ids, 2 of 2
-- with ids, now, states, queues, names, lane, key, workflow, since, until, trace, search, cursor, limit
select id from (
  (select r.id from "holdfast"."ready" r join "holdfast"."job" j on j.id = r.id join "holdfast"."job_type" l on l.id =
      r.job_type
    where r.id = any($1::pg_catalog.uuid[])
    and case when r.token is not null then 'running' when r.run_at >= 8633688480000000 then 'waiting'
  when r.run_at > coalesce($2::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) then case when
      r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end = any($3::pg_catalog.text[])
    and l.queue = any($4::pg_catalog.text[])
    and l.name = any($5::pg_catalog.text[])
    and j.lane = $6::pg_catalog.text
    and j.key = $7::pg_catalog.text
    and j.parent_id = $8::pg_catalog.uuid
    and j.created_at >= $9::bigint
    and j.created_at < $10::bigint
    and j.extras like $11::pg_catalog.text
    and (strpos(lower(j.input collate "C"), $12::pg_catalog.text) > 0
      or strpos(lower(j.context collate "C"), $12::pg_catalog.text) > 0 or strpos(lower(r.errors collate "C"),
          $12::pg_catalog.text) > 0) and r.id > $13::pg_catalog.uuid order by r.id limit $14::int)
  union all
  (select h.id from "holdfast"."history" h join "holdfast"."job" j on j.id = h.id join "holdfast"."job_type" l on l.id =
      h.job_type
    where h.id = any($1::pg_catalog.uuid[])
    and h.state = any($3::pg_catalog.text[])
    and l.queue = any($4::pg_catalog.text[])
    and l.name = any($5::pg_catalog.text[])
    and j.lane = $6::pg_catalog.text
    and j.key = $7::pg_catalog.text
    and j.parent_id = $8::pg_catalog.uuid
    and j.created_at >= $9::bigint
    and j.created_at < $10::bigint
    and j.extras like $11::pg_catalog.text
    and (strpos(lower(j.input collate "C"), $12::pg_catalog.text) > 0
      or strpos(lower(j.context collate "C"), $12::pg_catalog.text) > 0 or strpos(lower(h.errors collate "C"),
          $12::pg_catalog.text) > 0) and h.id > $13::pg_catalog.uuid order by h.id limit $14::int)
) page order by id limit $14::int;

-- count, 1 of 2
select
  (select pg_catalog.count(*) from "holdfast"."ready" r join "holdfast"."job" j on j.id = r.id join
      "holdfast"."job_type" l on l.id = r.job_type where true)
  + (select pg_catalog.count(*) from "holdfast"."history" h join "holdfast"."job" j on j.id = h.id join
      "holdfast"."job_type" l on l.id = h.job_type where true)
  as count;

-- count, 2 of 2
-- with ids, now, states, queues, names, lane, key, workflow, since, until, trace, search
select
  (select pg_catalog.count(*) from "holdfast"."ready" r join "holdfast"."job" j on j.id = r.id join
      "holdfast"."job_type" l on l.id = r.job_type where r.id = any($1::pg_catalog.uuid[])
    and case when r.token is not null then 'running' when r.run_at >= 8633688480000000 then 'waiting'
  when r.run_at > coalesce($2::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) then case when
      r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end = any($3::pg_catalog.text[])
    and l.queue = any($4::pg_catalog.text[])
    and l.name = any($5::pg_catalog.text[])
    and j.lane = $6::pg_catalog.text
    and j.key = $7::pg_catalog.text
    and j.parent_id = $8::pg_catalog.uuid
    and j.created_at >= $9::bigint
    and j.created_at < $10::bigint
    and j.extras like $11::pg_catalog.text
    and (strpos(lower(j.input collate "C"), $12::pg_catalog.text) > 0
      or strpos(lower(j.context collate "C"), $12::pg_catalog.text) > 0 or strpos(lower(r.errors collate "C"),
          $12::pg_catalog.text) > 0))
  + (select pg_catalog.count(*) from "holdfast"."history" h join "holdfast"."job" j on j.id = h.id join
      "holdfast"."job_type" l on l.id = h.job_type where h.id = any($1::pg_catalog.uuid[])
    and h.state = any($3::pg_catalog.text[])
    and l.queue = any($4::pg_catalog.text[])
    and l.name = any($5::pg_catalog.text[])
    and j.lane = $6::pg_catalog.text
    and j.key = $7::pg_catalog.text
    and j.parent_id = $8::pg_catalog.uuid
    and j.created_at >= $9::bigint
    and j.created_at < $10::bigint
    and j.extras like $11::pg_catalog.text
    and (strpos(lower(j.input collate "C"), $12::pg_catalog.text) > 0
      or strpos(lower(j.context collate "C"), $12::pg_catalog.text) > 0 or strpos(lower(h.errors collate "C"),
          $12::pg_catalog.text) > 0))
  as count;

-- listChildren, 1 of 2
-- with now, workflow, limit
select * from (
  (
select r.id, r.rank, r.attempt, r.crashes, r.run_at, r.started_at, null::bigint as ended_at, r.errors, r.progress,
    null::pg_catalog.text as output,
  s.lease_until, s.worker_id, case when r.token is not null then 'running' when r.run_at >= 8633688480000000 then
      'waiting'
  when r.run_at > coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) then case when
      r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end as state, r.waits, j.input,
      j.created_at, j.max_attempts, j.key, j.lane, j.context, j.parent_id, j.extras, l.queue, l.name, (select m.label
      from "holdfast"."step" m where m.job = r.id and m.name = '$machine') as step
from (select p.id from "holdfast"."job" p where p.parent_id = $2::pg_catalog.uuid offset 0) c
  cross join lateral (select * from "holdfast"."ready" k where k.id = c.id offset 0) r
  cross join lateral (select * from "holdfast"."job" k where k.id = c.id offset 0) j join "holdfast"."job_type" l on
      l.id = r.job_type left join "holdfast"."session" s on s.id = r.session where true and true order by r.id desc
      limit $3::int)
  union all
  (
select h.id, h.rank, h.attempt, h.crashes, h.run_at, h.started_at, h.ended_at, h.errors, h.progress, h.output,
  null::bigint as lease_until, s.worker_id, h.state, null::pg_catalog.text as waits, j.input, j.created_at,
      j.max_attempts, j.key, j.lane, j.context, j.parent_id, j.extras, l.queue, l.name, (select m.label from
      "holdfast"."step" m where m.job = h.id and m.name = '$machine') as step
from (select p.id from "holdfast"."job" p where p.parent_id = $2::pg_catalog.uuid offset 0) c
  cross join lateral (select * from "holdfast"."history" k where k.id = c.id offset 0) h
  cross join lateral (select * from "holdfast"."job" k where k.id = c.id offset 0) j join "holdfast"."job_type" l on
      l.id = h.job_type left join "holdfast"."session" s on s.id = h.session where true and true order by h.id desc
      limit $3::int)
) page order by id desc limit $3::int;

-- listChildren, 2 of 2
-- with now, workflow, ids, states, queues, names, lane, key, since, until, trace, search, cursor, limit
select * from (
  (
select r.id, r.rank, r.attempt, r.crashes, r.run_at, r.started_at, null::bigint as ended_at, r.errors, r.progress,
    null::pg_catalog.text as output,
  s.lease_until, s.worker_id, case when r.token is not null then 'running' when r.run_at >= 8633688480000000 then
      'waiting'
  when r.run_at > coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) then case when
      r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end as state, r.waits, j.input,
      j.created_at, j.max_attempts, j.key, j.lane, j.context, j.parent_id, j.extras, l.queue, l.name, (select m.label
      from "holdfast"."step" m where m.job = r.id and m.name = '$machine') as step
from (select p.id from "holdfast"."job" p where p.parent_id = $2::pg_catalog.uuid offset 0) c
  cross join lateral (select * from "holdfast"."ready" k where k.id = c.id offset 0) r
  cross join lateral (select * from "holdfast"."job" k where k.id = c.id offset 0) j join "holdfast"."job_type" l on
      l.id = r.job_type left join "holdfast"."session" s on s.id = r.session where r.id = any($3::pg_catalog.uuid[])
    and case when r.token is not null then 'running' when r.run_at >= 8633688480000000 then 'waiting'
  when r.run_at > coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) then case when
      r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end = any($4::pg_catalog.text[])
    and l.queue = any($5::pg_catalog.text[])
    and l.name = any($6::pg_catalog.text[])
    and j.lane = $7::pg_catalog.text
    and j.key = $8::pg_catalog.text
    and j.parent_id = $2::pg_catalog.uuid
    and j.created_at >= $9::bigint
    and j.created_at < $10::bigint
    and j.extras like $11::pg_catalog.text
    and (strpos(lower(j.input collate "C"), $12::pg_catalog.text) > 0
      or strpos(lower(j.context collate "C"), $12::pg_catalog.text) > 0 or strpos(lower(r.errors collate "C"),
          $12::pg_catalog.text) > 0) and r.id < $13::pg_catalog.uuid order by r.id desc limit $14::int)
  union all
  (
select h.id, h.rank, h.attempt, h.crashes, h.run_at, h.started_at, h.ended_at, h.errors, h.progress, h.output,
  null::bigint as lease_until, s.worker_id, h.state, null::pg_catalog.text as waits, j.input, j.created_at,
      j.max_attempts, j.key, j.lane, j.context, j.parent_id, j.extras, l.queue, l.name, (select m.label from
      "holdfast"."step" m where m.job = h.id and m.name = '$machine') as step
from (select p.id from "holdfast"."job" p where p.parent_id = $2::pg_catalog.uuid offset 0) c
  cross join lateral (select * from "holdfast"."history" k where k.id = c.id offset 0) h
  cross join lateral (select * from "holdfast"."job" k where k.id = c.id offset 0) j join "holdfast"."job_type" l on
      l.id = h.job_type left join "holdfast"."session" s on s.id = h.session where h.id = any($3::pg_catalog.uuid[])
    and h.state = any($4::pg_catalog.text[])
    and l.queue = any($5::pg_catalog.text[])
    and l.name = any($6::pg_catalog.text[])
    and j.lane = $7::pg_catalog.text
    and j.key = $8::pg_catalog.text
    and j.parent_id = $2::pg_catalog.uuid
    and j.created_at >= $9::bigint
    and j.created_at < $10::bigint
    and j.extras like $11::pg_catalog.text
    and (strpos(lower(j.input collate "C"), $12::pg_catalog.text) > 0
      or strpos(lower(j.context collate "C"), $12::pg_catalog.text) > 0 or strpos(lower(h.errors collate "C"),
          $12::pg_catalog.text) > 0) and h.id < $13::pg_catalog.uuid order by h.id desc limit $14::int)
) page order by id desc limit $14::int;

-- idsOfChildren, 1 of 2
-- with workflow, limit
select id from (
  (select r.id from (select p.id from "holdfast"."job" p where p.parent_id = $1::pg_catalog.uuid offset 0) c
  cross join lateral (select * from "holdfast"."ready" k where k.id = c.id offset 0) r
  cross join lateral (select * from "holdfast"."job" k where k.id = c.id offset 0) j join "holdfast"."job_type" l on
      l.id = r.job_type
    where true and true order by r.id limit $2::int)
  union all
  (select h.id from (select p.id from "holdfast"."job" p where p.parent_id = $1::pg_catalog.uuid offset 0) c
  cross join lateral (select * from "holdfast"."history" k where k.id = c.id offset 0) h
  cross join lateral (select * from "holdfast"."job" k where k.id = c.id offset 0) j join "holdfast"."job_type" l on
      l.id = h.job_type
    where true and true order by h.id limit $2::int)
) page order by id limit $2::int;

-- idsOfChildren, 2 of 2
-- with workflow, ids, now, states, queues, names, lane, key, since, until, trace, search, cursor, limit
select id from (
  (select r.id from (select p.id from "holdfast"."job" p where p.parent_id = $1::pg_catalog.uuid offset 0) c
  cross join lateral (select * from "holdfast"."ready" k where k.id = c.id offset 0) r
  cross join lateral (select * from "holdfast"."job" k where k.id = c.id offset 0) j join "holdfast"."job_type" l on
      l.id = r.job_type
    where r.id = any($2::pg_catalog.uuid[])
    and case when r.token is not null then 'running' when r.run_at >= 8633688480000000 then 'waiting'
  when r.run_at > coalesce($3::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) then case when
      r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end = any($4::pg_catalog.text[])
    and l.queue = any($5::pg_catalog.text[])
    and l.name = any($6::pg_catalog.text[])
    and j.lane = $7::pg_catalog.text
    and j.key = $8::pg_catalog.text
    and j.parent_id = $1::pg_catalog.uuid
    and j.created_at >= $9::bigint
    and j.created_at < $10::bigint
    and j.extras like $11::pg_catalog.text
    and (strpos(lower(j.input collate "C"), $12::pg_catalog.text) > 0
      or strpos(lower(j.context collate "C"), $12::pg_catalog.text) > 0 or strpos(lower(r.errors collate "C"),
          $12::pg_catalog.text) > 0) and r.id > $13::pg_catalog.uuid order by r.id limit $14::int)
  union all
  (select h.id from (select p.id from "holdfast"."job" p where p.parent_id = $1::pg_catalog.uuid offset 0) c
  cross join lateral (select * from "holdfast"."history" k where k.id = c.id offset 0) h
  cross join lateral (select * from "holdfast"."job" k where k.id = c.id offset 0) j join "holdfast"."job_type" l on
      l.id = h.job_type
    where h.id = any($2::pg_catalog.uuid[])
    and h.state = any($4::pg_catalog.text[])
    and l.queue = any($5::pg_catalog.text[])
    and l.name = any($6::pg_catalog.text[])
    and j.lane = $7::pg_catalog.text
    and j.key = $8::pg_catalog.text
    and j.parent_id = $1::pg_catalog.uuid
    and j.created_at >= $9::bigint
    and j.created_at < $10::bigint
    and j.extras like $11::pg_catalog.text
    and (strpos(lower(j.input collate "C"), $12::pg_catalog.text) > 0
      or strpos(lower(j.context collate "C"), $12::pg_catalog.text) > 0 or strpos(lower(h.errors collate "C"),
          $12::pg_catalog.text) > 0) and h.id > $13::pg_catalog.uuid order by h.id limit $14::int)
) page order by id limit $14::int;

-- countChildren, 1 of 2
-- with workflow
select
  (select pg_catalog.count(*) from (select p.id from "holdfast"."job" p where p.parent_id = $1::pg_catalog.uuid offset
      0) c
  cross join lateral (select * from "holdfast"."ready" k where k.id = c.id offset 0) r
  cross join lateral (select * from "holdfast"."job" k where k.id = c.id offset 0) j join "holdfast"."job_type" l on
      l.id = r.job_type where true)
  + (select pg_catalog.count(*) from (select p.id from "holdfast"."job" p where p.parent_id = $1::pg_catalog.uuid offset
      0) c
  cross join lateral (select * from "holdfast"."history" k where k.id = c.id offset 0) h
  cross join lateral (select * from "holdfast"."job" k where k.id = c.id offset 0) j join "holdfast"."job_type" l on
      l.id = h.job_type where true)
  as count;

-- countChildren, 2 of 2
-- with workflow, ids, now, states, queues, names, lane, key, since, until, trace, search
select
  (select pg_catalog.count(*) from (select p.id from "holdfast"."job" p where p.parent_id = $1::pg_catalog.uuid offset
      0) c
  cross join lateral (select * from "holdfast"."ready" k where k.id = c.id offset 0) r
  cross join lateral (select * from "holdfast"."job" k where k.id = c.id offset 0) j join "holdfast"."job_type" l on
      l.id = r.job_type where r.id = any($2::pg_catalog.uuid[])
    and case when r.token is not null then 'running' when r.run_at >= 8633688480000000 then 'waiting'
  when r.run_at > coalesce($3::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) then case when
      r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end = any($4::pg_catalog.text[])
    and l.queue = any($5::pg_catalog.text[])
    and l.name = any($6::pg_catalog.text[])
    and j.lane = $7::pg_catalog.text
    and j.key = $8::pg_catalog.text
    and j.parent_id = $1::pg_catalog.uuid
    and j.created_at >= $9::bigint
    and j.created_at < $10::bigint
    and j.extras like $11::pg_catalog.text
    and (strpos(lower(j.input collate "C"), $12::pg_catalog.text) > 0
      or strpos(lower(j.context collate "C"), $12::pg_catalog.text) > 0 or strpos(lower(r.errors collate "C"),
          $12::pg_catalog.text) > 0))
  + (select pg_catalog.count(*) from (select p.id from "holdfast"."job" p where p.parent_id = $1::pg_catalog.uuid offset
      0) c
  cross join lateral (select * from "holdfast"."history" k where k.id = c.id offset 0) h
  cross join lateral (select * from "holdfast"."job" k where k.id = c.id offset 0) j join "holdfast"."job_type" l on
      l.id = h.job_type where h.id = any($2::pg_catalog.uuid[])
    and h.state = any($4::pg_catalog.text[])
    and l.queue = any($5::pg_catalog.text[])
    and l.name = any($6::pg_catalog.text[])
    and j.lane = $7::pg_catalog.text
    and j.key = $8::pg_catalog.text
    and j.parent_id = $1::pg_catalog.uuid
    and j.created_at >= $9::bigint
    and j.created_at < $10::bigint
    and j.extras like $11::pg_catalog.text
    and (strpos(lower(j.input collate "C"), $12::pg_catalog.text) > 0
      or strpos(lower(j.context collate "C"), $12::pg_catalog.text) > 0 or strpos(lower(h.errors collate "C"),
          $12::pg_catalog.text) > 0))
  as count;

-- listMembers, 1 of 2
-- with now, batch, limit
select * from (
  (
select r.id, r.rank, r.attempt, r.crashes, r.run_at, r.started_at, null::bigint as ended_at, r.errors, r.progress,
    null::pg_catalog.text as output,
  s.lease_until, s.worker_id, case when r.token is not null then 'running' when r.run_at >= 8633688480000000 then
      'waiting'
  when r.run_at > coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) then case when
      r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end as state, r.waits, j.input,
      j.created_at, j.max_attempts, j.key, j.lane, j.context, j.parent_id, j.extras, l.queue, l.name, (select m.label
      from "holdfast"."step" m where m.job = r.id and m.name = '$machine') as step
from (select p.id from "holdfast"."member" p where p.batch = $2::pg_catalog.uuid offset 0) c
  cross join lateral (select * from "holdfast"."ready" k where k.id = c.id offset 0) r
  cross join lateral (select * from "holdfast"."job" k where k.id = c.id offset 0) j join "holdfast"."job_type" l on
      l.id = r.job_type left join "holdfast"."session" s on s.id = r.session where true and true order by r.id desc
      limit $3::int)
  union all
  (
select h.id, h.rank, h.attempt, h.crashes, h.run_at, h.started_at, h.ended_at, h.errors, h.progress, h.output,
  null::bigint as lease_until, s.worker_id, h.state, null::pg_catalog.text as waits, j.input, j.created_at,
      j.max_attempts, j.key, j.lane, j.context, j.parent_id, j.extras, l.queue, l.name, (select m.label from
      "holdfast"."step" m where m.job = h.id and m.name = '$machine') as step
from (select p.id from "holdfast"."member" p where p.batch = $2::pg_catalog.uuid offset 0) c
  cross join lateral (select * from "holdfast"."history" k where k.id = c.id offset 0) h
  cross join lateral (select * from "holdfast"."job" k where k.id = c.id offset 0) j join "holdfast"."job_type" l on
      l.id = h.job_type left join "holdfast"."session" s on s.id = h.session where true and true order by h.id desc
      limit $3::int)
) page order by id desc limit $3::int;

-- listMembers, 2 of 2
-- with now, batch, ids, states, queues, names, lane, key, workflow, since, until, trace, search, cursor, limit
select * from (
  (
select r.id, r.rank, r.attempt, r.crashes, r.run_at, r.started_at, null::bigint as ended_at, r.errors, r.progress,
    null::pg_catalog.text as output,
  s.lease_until, s.worker_id, case when r.token is not null then 'running' when r.run_at >= 8633688480000000 then
      'waiting'
  when r.run_at > coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) then case when
      r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end as state, r.waits, j.input,
      j.created_at, j.max_attempts, j.key, j.lane, j.context, j.parent_id, j.extras, l.queue, l.name, (select m.label
      from "holdfast"."step" m where m.job = r.id and m.name = '$machine') as step
from (select p.id from "holdfast"."member" p where p.batch = $2::pg_catalog.uuid offset 0) c
  cross join lateral (select * from "holdfast"."ready" k where k.id = c.id offset 0) r
  cross join lateral (select * from "holdfast"."job" k where k.id = c.id offset 0) j join "holdfast"."job_type" l on
      l.id = r.job_type left join "holdfast"."session" s on s.id = r.session where r.id = any($3::pg_catalog.uuid[])
    and case when r.token is not null then 'running' when r.run_at >= 8633688480000000 then 'waiting'
  when r.run_at > coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) then case when
      r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end = any($4::pg_catalog.text[])
    and l.queue = any($5::pg_catalog.text[])
    and l.name = any($6::pg_catalog.text[])
    and j.lane = $7::pg_catalog.text
    and j.key = $8::pg_catalog.text
    and j.parent_id = $9::pg_catalog.uuid
    and j.created_at >= $10::bigint
    and j.created_at < $11::bigint
    and j.extras like $12::pg_catalog.text
    and (strpos(lower(j.input collate "C"), $13::pg_catalog.text) > 0
      or strpos(lower(j.context collate "C"), $13::pg_catalog.text) > 0 or strpos(lower(r.errors collate "C"),
          $13::pg_catalog.text) > 0) and r.id < $14::pg_catalog.uuid order by r.id desc limit $15::int)
  union all
  (
select h.id, h.rank, h.attempt, h.crashes, h.run_at, h.started_at, h.ended_at, h.errors, h.progress, h.output,
  null::bigint as lease_until, s.worker_id, h.state, null::pg_catalog.text as waits, j.input, j.created_at,
      j.max_attempts, j.key, j.lane, j.context, j.parent_id, j.extras, l.queue, l.name, (select m.label from
      "holdfast"."step" m where m.job = h.id and m.name = '$machine') as step
from (select p.id from "holdfast"."member" p where p.batch = $2::pg_catalog.uuid offset 0) c
  cross join lateral (select * from "holdfast"."history" k where k.id = c.id offset 0) h
  cross join lateral (select * from "holdfast"."job" k where k.id = c.id offset 0) j join "holdfast"."job_type" l on
      l.id = h.job_type left join "holdfast"."session" s on s.id = h.session where h.id = any($3::pg_catalog.uuid[])
    and h.state = any($4::pg_catalog.text[])
    and l.queue = any($5::pg_catalog.text[])
    and l.name = any($6::pg_catalog.text[])
    and j.lane = $7::pg_catalog.text
    and j.key = $8::pg_catalog.text
    and j.parent_id = $9::pg_catalog.uuid
    and j.created_at >= $10::bigint
    and j.created_at < $11::bigint
    and j.extras like $12::pg_catalog.text
    and (strpos(lower(j.input collate "C"), $13::pg_catalog.text) > 0
      or strpos(lower(j.context collate "C"), $13::pg_catalog.text) > 0 or strpos(lower(h.errors collate "C"),
          $13::pg_catalog.text) > 0) and h.id < $14::pg_catalog.uuid order by h.id desc limit $15::int)
) page order by id desc limit $15::int;

-- idsOfMembers, 1 of 2
-- with batch, limit
select id from (
  (select r.id from (select p.id from "holdfast"."member" p where p.batch = $1::pg_catalog.uuid offset 0) c
  cross join lateral (select * from "holdfast"."ready" k where k.id = c.id offset 0) r
  cross join lateral (select * from "holdfast"."job" k where k.id = c.id offset 0) j join "holdfast"."job_type" l on
      l.id = r.job_type
    where true and true order by r.id limit $2::int)
  union all
  (select h.id from (select p.id from "holdfast"."member" p where p.batch = $1::pg_catalog.uuid offset 0) c
  cross join lateral (select * from "holdfast"."history" k where k.id = c.id offset 0) h
  cross join lateral (select * from "holdfast"."job" k where k.id = c.id offset 0) j join "holdfast"."job_type" l on
      l.id = h.job_type
    where true and true order by h.id limit $2::int)
) page order by id limit $2::int;

-- idsOfMembers, 2 of 2
-- with batch, ids, now, states, queues, names, lane, key, workflow, since, until, trace, search, cursor, limit
select id from (
  (select r.id from (select p.id from "holdfast"."member" p where p.batch = $1::pg_catalog.uuid offset 0) c
  cross join lateral (select * from "holdfast"."ready" k where k.id = c.id offset 0) r
  cross join lateral (select * from "holdfast"."job" k where k.id = c.id offset 0) j join "holdfast"."job_type" l on
      l.id = r.job_type
    where r.id = any($2::pg_catalog.uuid[])
    and case when r.token is not null then 'running' when r.run_at >= 8633688480000000 then 'waiting'
  when r.run_at > coalesce($3::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) then case when
      r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end = any($4::pg_catalog.text[])
    and l.queue = any($5::pg_catalog.text[])
    and l.name = any($6::pg_catalog.text[])
    and j.lane = $7::pg_catalog.text
    and j.key = $8::pg_catalog.text
    and j.parent_id = $9::pg_catalog.uuid
    and j.created_at >= $10::bigint
    and j.created_at < $11::bigint
    and j.extras like $12::pg_catalog.text
    and (strpos(lower(j.input collate "C"), $13::pg_catalog.text) > 0
      or strpos(lower(j.context collate "C"), $13::pg_catalog.text) > 0 or strpos(lower(r.errors collate "C"),
          $13::pg_catalog.text) > 0) and r.id > $14::pg_catalog.uuid order by r.id limit $15::int)
  union all
  (select h.id from (select p.id from "holdfast"."member" p where p.batch = $1::pg_catalog.uuid offset 0) c
  cross join lateral (select * from "holdfast"."history" k where k.id = c.id offset 0) h
  cross join lateral (select * from "holdfast"."job" k where k.id = c.id offset 0) j join "holdfast"."job_type" l on
      l.id = h.job_type
    where h.id = any($2::pg_catalog.uuid[])
    and h.state = any($4::pg_catalog.text[])
    and l.queue = any($5::pg_catalog.text[])
    and l.name = any($6::pg_catalog.text[])
    and j.lane = $7::pg_catalog.text
    and j.key = $8::pg_catalog.text
    and j.parent_id = $9::pg_catalog.uuid
    and j.created_at >= $10::bigint
    and j.created_at < $11::bigint
    and j.extras like $12::pg_catalog.text
    and (strpos(lower(j.input collate "C"), $13::pg_catalog.text) > 0
      or strpos(lower(j.context collate "C"), $13::pg_catalog.text) > 0 or strpos(lower(h.errors collate "C"),
          $13::pg_catalog.text) > 0) and h.id > $14::pg_catalog.uuid order by h.id limit $15::int)
) page order by id limit $15::int;

-- countMembers, 1 of 2
-- with batch
select
  (select pg_catalog.count(*) from (select p.id from "holdfast"."member" p where p.batch = $1::pg_catalog.uuid offset 0)
      c
  cross join lateral (select * from "holdfast"."ready" k where k.id = c.id offset 0) r
  cross join lateral (select * from "holdfast"."job" k where k.id = c.id offset 0) j join "holdfast"."job_type" l on
      l.id = r.job_type where true)
  + (select pg_catalog.count(*) from (select p.id from "holdfast"."member" p where p.batch = $1::pg_catalog.uuid offset
      0) c
  cross join lateral (select * from "holdfast"."history" k where k.id = c.id offset 0) h
  cross join lateral (select * from "holdfast"."job" k where k.id = c.id offset 0) j join "holdfast"."job_type" l on
      l.id = h.job_type where true)
  as count;

-- countMembers, 2 of 2
-- with batch, ids, now, states, queues, names, lane, key, workflow, since, until, trace, search
select
  (select pg_catalog.count(*) from (select p.id from "holdfast"."member" p where p.batch = $1::pg_catalog.uuid offset 0)
      c
  cross join lateral (select * from "holdfast"."ready" k where k.id = c.id offset 0) r
  cross join lateral (select * from "holdfast"."job" k where k.id = c.id offset 0) j join "holdfast"."job_type" l on
      l.id = r.job_type where r.id = any($2::pg_catalog.uuid[])
    and case when r.token is not null then 'running' when r.run_at >= 8633688480000000 then 'waiting'
  when r.run_at > coalesce($3::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) then case when
      r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end = any($4::pg_catalog.text[])
    and l.queue = any($5::pg_catalog.text[])
    and l.name = any($6::pg_catalog.text[])
    and j.lane = $7::pg_catalog.text
    and j.key = $8::pg_catalog.text
    and j.parent_id = $9::pg_catalog.uuid
    and j.created_at >= $10::bigint
    and j.created_at < $11::bigint
    and j.extras like $12::pg_catalog.text
    and (strpos(lower(j.input collate "C"), $13::pg_catalog.text) > 0
      or strpos(lower(j.context collate "C"), $13::pg_catalog.text) > 0 or strpos(lower(r.errors collate "C"),
          $13::pg_catalog.text) > 0))
  + (select pg_catalog.count(*) from (select p.id from "holdfast"."member" p where p.batch = $1::pg_catalog.uuid offset
      0) c
  cross join lateral (select * from "holdfast"."history" k where k.id = c.id offset 0) h
  cross join lateral (select * from "holdfast"."job" k where k.id = c.id offset 0) j join "holdfast"."job_type" l on
      l.id = h.job_type where h.id = any($2::pg_catalog.uuid[])
    and h.state = any($4::pg_catalog.text[])
    and l.queue = any($5::pg_catalog.text[])
    and l.name = any($6::pg_catalog.text[])
    and j.lane = $7::pg_catalog.text
    and j.key = $8::pg_catalog.text
    and j.parent_id = $9::pg_catalog.uuid
    and j.created_at >= $10::bigint
    and j.created_at < $11::bigint
    and j.extras like $12::pg_catalog.text
    and (strpos(lower(j.input collate "C"), $13::pg_catalog.text) > 0
      or strpos(lower(j.context collate "C"), $13::pg_catalog.text) > 0 or strpos(lower(h.errors collate "C"),
          $13::pg_catalog.text) > 0))
  as count;

-- lockQueued
-- with ids
select r.id, r.token, r.session, r.attempt, r.errors, r.begun, r.watched, j.key from "holdfast"."ready" r join
    "holdfast"."job" j on j.id = r.id
where r.id = any($1::pg_catalog.uuid[]) order by r.id for update of r;

-- endQueued
-- with rows.id, rows.state, rows.errors, now, keyed
  with t as materialized (
    select * from unnest($1::pg_catalog.uuid[], $2::pg_catalog.text[], $3::pg_catalog.text[]) as t (id, state, errors)
  ),
  gone as (
    delete from "holdfast"."ready" r using t where r.id = t.id and r.token is null
    returning r.id, r.job_type, r.rank, r.throttles, r.run_at, r.started_at, r.session, r.progress,
      r.watched, t.state, null::pg_catalog.text as output, t.errors, null::pg_catalog.text as failure_group, r.attempt,
          r.crashes, true as keep
  ),
kept as (
  insert into "holdfast"."history" (id, job_type, rank, state, attempt, crashes, throttles, run_at, started_at,
      ended_at, session, output, errors, progress, failure_group)
  select id, job_type, rank, state, attempt, crashes, throttles, run_at, started_at, (select coalesce($4::bigint,
      (extract(epoch from statement_timestamp()) * 1000.0)::bigint)), session, output, errors, progress, failure_group
      from gone where keep
),
deleted as (
  delete from "holdfast"."job" where id = any(array(select id from gone where not keep)) and created_at <= (select
      coalesce($4::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)) - 3600000
),
emptied as (
  update "holdfast"."job" set input = 'null', context = null, extras = null, key = null, lane = null, parent_id = null
  where id = any(array(select id from gone where not keep)) and created_at > (select coalesce($4::bigint, (extract(epoch
      from statement_timestamp()) * 1000.0)::bigint)) - 3600000 returning id, created_at
),
noted as (
  insert into "holdfast"."used_id" (id, at) select id, created_at from emptied on conflict do nothing),
unstepped as (delete from "holdfast"."step" where job = any(array(select id from gone where not keep))),
undepended as (delete from "holdfast"."dependency" where job = any(array(select id from gone where not keep))),
unbatched as (delete from "holdfast"."member" where id = any(array(select id from gone where not keep))),
freed as (
  delete from "holdfast"."unique_key" u where u.id = any($5::pg_catalog.uuid[]) and u.id = any(array(select id from
      gone))
    and (u.expires_at is null or u.expires_at <= coalesce($4::bigint, (extract(epoch from statement_timestamp()) *
        1000.0)::bigint))
)
  select id, watched from gone;

-- askHolder
-- with rows.id, rows.session, rows.token, rows.reason, rows.pause, now
with c as materialized (
  select * from unnest($1::pg_catalog.uuid[], $2::bigint[], $3::bigint[], $4::pg_catalog.text[], $5::pg_catalog.bool[])
    as c (id, session, token, reason, pause)
),
marked as (
  update "holdfast"."ready" r set request = case when c.pause and coalesce(r.request, 1) = 1 then 1 else 2 end
  from c where r.id = c.id and r.token = c.token
)
insert into "holdfast"."cancel" as x (id, session, token, reason, pause, asked_at)
select c.id, c.session, c.token, c.reason, c.pause, coalesce($6::bigint, (extract(epoch from statement_timestamp()) *
    1000.0)::bigint) from c
on conflict (id) do update set session = excluded.session, token = excluded.token, pause = excluded.pause and (x.pause
    or x.token <> excluded.token),
  reason = case when excluded.pause and not x.pause and x.token = excluded.token then x.reason else excluded.reason end;

-- requestsOf
-- with ids
select x.id, x.token, x.reason, x.pause from "holdfast"."cancel" x where x.id = any($1::pg_catalog.uuid[]) order by x.id;

-- strayRequests
-- with limit
select x.id from "holdfast"."cancel" x join "holdfast"."ready" r on r.id = x.id
where r.token is null and r.waits = 'resume' order by x.id limit $1::int;

-- withdraw
-- with ids, pauses
with unmarked as (
  update "holdfast"."ready" r set request = null where r.id = any($1::pg_catalog.uuid[]) and (r.request = 1 or
      (r.request = 2 and not $2::pg_catalog.bool))
)
delete from "holdfast"."cancel" x where x.id = any($1::pg_catalog.uuid[]) and (x.pause or not $2::pg_catalog.bool)
    returning x.id;

-- pauseQueued
-- with note, ids
update "holdfast"."ready" r set due_at = case when r.waits is null then r.run_at when r.waits = 'resume' or not r.begun
    then r.due_at end,
  run_at = 8633688480000000, waits = 'resume', note = $1::pg_catalog.text
where r.id = any($2::pg_catalog.uuid[]) and r.token is null returning r.id;

-- resumeQueued
-- with now, ids
update "holdfast"."ready" r set note = null,
  waits = case when not r.begun and r.pending > 0 then 'jobs' end,
  due_at = case when not r.begun and r.pending > 0 then r.due_at end,
  run_at = case when not r.begun and r.pending > 0 then r.run_at else greatest(coalesce($1::bigint, (extract(epoch from
      statement_timestamp()) * 1000.0)::bigint), coalesce(r.due_at, 0)) end
where r.id = any($2::pg_catalog.uuid[]) and r.token is null and r.waits = 'resume' returning r.id, r.lane is not null as
    laned;

-- forget
-- with ids, freed, now
  with h as (delete from "holdfast"."history" where id = any($1::pg_catalog.uuid[]) returning id, state),
  r as (delete from "holdfast"."ready" where id = any($1::pg_catalog.uuid[]) and token is null returning id),
  -- A key that is held for a while outlives its job, unless the job is deleted by hand ($2).
  k as (delete from "holdfast"."unique_key" where id = any(array(select id from h union all select id from r))
    and ($2::pg_catalog.bool or expires_at is null or expires_at <= coalesce($3::bigint, (extract(epoch from
        statement_timestamp()) * 1000.0)::bigint))),
  deleted as (
  delete from "holdfast"."job" where id = any(array(select id from h union all select id from r)) and created_at <=
      (select coalesce($3::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)) - 3600000
),
emptied as (
  update "holdfast"."job" set input = 'null', context = null, extras = null, key = null, lane = null, parent_id = null
  where id = any(array(select id from h union all select id from r)) and created_at > (select coalesce($3::bigint,
      (extract(epoch from statement_timestamp()) * 1000.0)::bigint)) - 3600000 returning id, created_at
),
noted as (
  insert into "holdfast"."used_id" (id, at) select id, created_at from emptied on conflict do nothing),
  s as (delete from "holdfast"."step" where job = any(array(select id from h union all select id from r))),
  d as (delete from "holdfast"."dependency" where job = any(array(select id from h union all select id from r))),
  m as (delete from "holdfast"."member" where id = any(array(select id from h union all select id from r))),
  g as (delete from "holdfast"."log" where job = any(array(select id from h union all select id from r)))
  select id, state from h union all select id, null from r;

-- deleteExpiredIds
-- with now, limit
with used as (
  delete from "holdfast"."used_id" where id = any(array(
    select id from "holdfast"."used_id" where at <= coalesce($1::bigint, (extract(epoch from statement_timestamp()) *
        1000.0)::bigint) - 3600000 order by at limit $2::int for update skip locked)) returning id
),
emptied as (
  delete from "holdfast"."job" j where j.id = any(array(select id from used))
    and not exists (select 1 from "holdfast"."ready" r where r.id = j.id) and not exists (select 1 from
        "holdfast"."history" h where h.id = j.id)
)
select id from used;

-- expiredKeys
-- with now, at, scope, key, limit
select u.expires_at, u.scope, u.key, u.id, exists (select 1 from "holdfast"."ready" r where r.id = u.id) as live from
    "holdfast"."unique_key" u
where u.expires_at <= coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) and
    u.expires_at >= $2::bigint and (u.expires_at, u.scope, u.key) > ($2::bigint, $3::pg_catalog.text,
    $4::pg_catalog.text)
order by u.expires_at, u.scope, u.key limit $5::int;

-- deleteExpiredKeys
-- with rows.scope, rows.key, rows.id, now
delete from "holdfast"."unique_key" where ctid = any(array(
  select u.ctid from unnest($1::pg_catalog.text[], $2::pg_catalog.text[], $3::pg_catalog.uuid[]) as w (scope, key, id)
  join "holdfast"."unique_key" u on u.scope = w.scope and u.key = w.key and u.id = w.id
  where u.expires_at <= coalesce($4::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) and not
      exists (select 1 from "holdfast"."ready" r where r.id = u.id)
  order by u.scope, u.key for update of u skip locked)) returning id;

-- findEnded
-- with ids
select h.id, j.key, j.lane, j.extras, l.name, l.queue, h.state from "holdfast"."history" h join "holdfast"."job" j on
    j.id = h.id join "holdfast"."job_type" l on l.id = h.job_type
where h.id = any($1::pg_catalog.uuid[]) order by h.id desc for update of h;

-- revive
-- with ids, now
with h as (delete from "holdfast"."history" where id = any($1::pg_catalog.uuid[]) returning id, job_type, rank, errors,
    progress)
insert into "holdfast"."ready" (id, job_type, rank, run_at, begun, watched, errors, lane)
select h.id, h.job_type, h.rank, coalesce($2::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint),
    true, true, h.errors, (
  select a.id from "holdfast"."job_type" l join "holdfast"."job" j on j.id = h.id join "holdfast"."lane" a on a.queue =
      l.queue and a.key = j.lane where l.id = h.job_type and l.laned
) from h returning id;

-- inputsOf
-- with ids
select id, input from "holdfast"."job" where id = any($1::pg_catalog.uuid[]);

-- setInputs
-- with rows.id, rows.input
update "holdfast"."job" j set input = w.input from unnest($1::pg_catalog.uuid[], $2::pg_catalog.text[]) as w (id, input)
    where j.id = w.id;

-- runNow
-- with now, ids
with woken as (
  update "holdfast"."ready" set run_at = coalesce($1::bigint, (extract(epoch from statement_timestamp()) *
      1000.0)::bigint) where id = any($2::pg_catalog.uuid[]) and token is null and run_at > coalesce($1::bigint,
      (extract(epoch from statement_timestamp()) * 1000.0)::bigint) and run_at < 8633688480000000
    and coalesce(waits, 'sleep') = 'sleep' returning id, waits
),
shortened as (
  update "holdfast"."step" set wake_at = coalesce($1::bigint, (extract(epoch from statement_timestamp()) *
      1000.0)::bigint) where job = any(array(select id from woken where waits = 'sleep')) and state = 'open' and kind in
      ('sleep', 'step', 'undo')
)
select id from woken;

-- editable
-- with now, ids
select r.id, r.token, r.waits, r.begun, j.deadline_at, j.key, j.lane, j.extras, l.queue, l.name, coalesce($1::bigint,
    (extract(epoch from statement_timestamp()) * 1000.0)::bigint) as now
from "holdfast"."ready" r join "holdfast"."job" j on j.id = r.id join "holdfast"."job_type" l on l.id = r.job_type
where r.id = any($2::pg_catalog.uuid[]) order by r.id;

-- lockEditable
-- with now, ids
select r.id, r.token, r.waits, r.begun, j.deadline_at, j.key, j.lane, j.extras, l.queue, l.name, coalesce($1::bigint,
    (extract(epoch from statement_timestamp()) * 1000.0)::bigint) as now
from "holdfast"."ready" r join "holdfast"."job" j on j.id = r.id join "holdfast"."job_type" l on l.id = r.job_type
where r.id = any($2::pg_catalog.uuid[]) order by r.id for update of r;

-- editQueued
-- with rows.id, rows.jobType, rows.rank, rows.laneId, rows.delay, rows.runAt, now
with n as materialized (
  select * from unnest($1::pg_catalog.uuid[], $2::int[], $3::int[], $4::int[], $5::bigint[], $6::bigint[])
    as n (id, job_type, rank, lane, delay, run_at)
),
edited as (
  update "holdfast"."ready" r set job_type = coalesce(n.job_type, r.job_type), rank = coalesce(n.rank, r.rank), lane =
      coalesce(n.lane, r.lane),
    run_at = case when r.waits is null then coalesce(case when coalesce(n.run_at, n.delay) is not null then
        greatest(coalesce($7::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint), coalesce(n.run_at,
        coalesce($7::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) + n.delay)) end, r.run_at)
        else r.run_at end,
    due_at = case when r.waits is null then r.due_at else coalesce(case when coalesce(n.run_at, n.delay) is not null
        then greatest(coalesce($7::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint),
        coalesce(n.run_at, coalesce($7::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) +
        n.delay)) end, r.due_at) end,
    note = case when coalesce(n.run_at, n.delay) is null or r.waits = 'resume' then r.note end
  from n where r.id = n.id and r.token is null returning r.id, n.job_type as moved
),
moved as (
  update "holdfast"."job" j set job_type = e.moved from edited e where j.id = e.id and e.moved is not null
)
select id from edited;

-- editEnded
-- with rows.id, rows.jobType, rows.rank
with n as materialized (select * from unnest($1::pg_catalog.uuid[], $2::int[], $3::int[]) as n (id, job_type, rank)),
edited as (
  update "holdfast"."history" h set job_type = coalesce(n.job_type, h.job_type), rank = coalesce(n.rank, h.rank)
  from n where h.id = n.id and h.id = any($1::pg_catalog.uuid[]) returning h.id, n.job_type
),
moved as (
  update "holdfast"."job" j set job_type = e.job_type from edited e where j.id = e.id and j.id =
      any($1::pg_catalog.uuid[]) and e.job_type is not null
)
select id from edited;

-- queueRows
-- with names
select name, paused_at, drain_at, cool_until, cool_base_ms, cool_max_ms, running, limited, settings from
    "holdfast"."queue" where $1::pg_catalog.text[] is null or name = any($1::pg_catalog.text[]);

-- queueCounts
-- with now
select l.queue, l.name, coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) as now,
  pg_catalog.count(r.id) filter (where r.token is null and r.run_at <= coalesce($1::bigint, (extract(epoch from
      statement_timestamp()) * 1000.0)::bigint)) as ready,
  pg_catalog.count(r.id) filter (where r.token is null and r.run_at > coalesce($1::bigint, (extract(epoch from
      statement_timestamp()) * 1000.0)::bigint) and r.run_at < 8633688480000000 and coalesce(r.waits, 'sleep') =
      'sleep') as scheduled,
  pg_catalog.count(r.id) filter (where r.token is not null) as running,
  pg_catalog.count(r.id) filter (where r.token is null and (r.run_at >= 8633688480000000 or r.run_at >
      coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) and r.waits in ('signal',
      'jobs'))) as waiting,
  min(r.run_at) filter (where r.token is null and r.run_at <= coalesce($1::bigint, (extract(epoch from
      statement_timestamp()) * 1000.0)::bigint)) as oldest,
  min(r.run_at) filter (where r.token is null and r.run_at > coalesce($1::bigint, (extract(epoch from
      statement_timestamp()) * 1000.0)::bigint) and r.run_at < 8633688480000000 and coalesce(r.waits, 'sleep') =
      'sleep') as next
from "holdfast"."job_type" l left join "holdfast"."ready" r on r.job_type = l.id group by l.queue, l.name;

-- setQueue
-- with name, paused, now, draining, settings, coolBase, coolMax, limited
insert into "holdfast"."queue" as q (name, paused_at, drain_at, settings, cool_base_ms, cool_max_ms, limited,
    adopt_until)
values ($1, case when $2::pg_catalog.bool then coalesce($3::bigint, (extract(epoch from statement_timestamp()) *
    1000.0)::bigint) end, case when $4::pg_catalog.bool then coalesce($3::bigint, (extract(epoch from
    statement_timestamp()) * 1000.0)::bigint) end, $5, $6::bigint, $7::bigint, coalesce($8::pg_catalog.bool, false),
  case when $8::pg_catalog.bool then coalesce($3::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)
      + 15000 end)
on conflict (name) do update set
  limited = coalesce($8::pg_catalog.bool, q.limited), limited_until = null,
  adopt_until = case when $8::pg_catalog.bool and not q.limited then coalesce($3::bigint, (extract(epoch from
      statement_timestamp()) * 1000.0)::bigint) + 15000 else q.adopt_until end,
  paused_at = case when $2::pg_catalog.bool is null then q.paused_at when $2::pg_catalog.bool then coalesce(q.paused_at,
      coalesce($3::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)) end,
  drain_at = case when $4::pg_catalog.bool and q.paused_at is null then coalesce(q.drain_at, coalesce($3::bigint,
      (extract(epoch from statement_timestamp()) * 1000.0)::bigint)) when $2::pg_catalog.bool is null then q.drain_at
      end,
  settings = coalesce($5, q.settings),
  cool_base_ms = case when $5::pg_catalog.text is null then q.cool_base_ms else $6::bigint end,
  cool_max_ms = case when $5::pg_catalog.text is null then q.cool_max_ms else $7::bigint end;

-- endDrains
-- with now
  with recursive scope as materialized (
    select l.id as job_type, l.queue from "holdfast"."job_type" l join "holdfast"."queue" q on q.name = l.queue where
        q.drain_at is not null
  ),
level_of (job_type, rank) as (
  select s.job_type, (select r.rank from "holdfast"."ready" r where r.job_type = s.job_type order by r.rank limit 1)
      from scope s
  union all
  select l.job_type, (select r.rank from "holdfast"."ready" r where r.job_type = l.job_type and r.rank > l.rank order by
      r.rank limit 1)
  from level_of l where l.rank is not null
)
  update "holdfast"."queue" q set paused_at = coalesce($1::bigint, (extract(epoch from statement_timestamp()) *
      1000.0)::bigint), drain_at = null
  where q.drain_at is not null
    and not exists (
      select 1 from scope s join level_of l on l.job_type = s.job_type
      where s.queue = q.name and (select true from "holdfast"."ready" r where r.job_type = l.job_type and r.rank =
          l.rank and r.run_at <= coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)
          limit 1))
    and not exists (
      select 1 from "holdfast"."claim" c cross join lateral pg_catalog.unnest(c.ids) as o (id)
        cross join lateral (select h.job_type from "holdfast"."ready" h where h.id = o.id and h.token = c.token offset
            0) r
        join "holdfast"."job_type" l on l.id = r.job_type
      where l.queue = q.name)
    -- Nor one that waits for a job that has ended, of which it will hear in a moment.
    and not exists (
      select 1 from "holdfast"."dependency" d cross join lateral (select w.job_type from "holdfast"."ready" w where w.id
          = d.job offset 0) r
        join "holdfast"."job_type" l on l.id = r.job_type
      where l.queue = q.name and
    d.state is null and (select k.id from "holdfast"."ready" k where k.id = d.on_job) is null
      and (d.policy <> 'wait' or coalesce((select e.state from "holdfast"."history" e where e.id = d.on_job), 'gone') in
          ('done', 'gone')))
  returning q.name;

-- holds
select name, pg_catalog.array_to_json(queues)::pg_catalog.text as queues, reason, set_at from "holdfast"."hold" order by
    name;

-- setHold
-- with name, queues, reason, now
insert into "holdfast"."hold" (name, queues, reason, set_at) values ($1, $2::pg_catalog.text[], $3, coalesce($4::bigint,
    (extract(epoch from statement_timestamp()) * 1000.0)::bigint))
on conflict (name) do update set queues = excluded.queues, reason = excluded.reason;

-- clearHold
-- with name
delete from "holdfast"."hold" where name = $1 returning name;

-- workers
-- with now
select s.id, s.kind, s.worker_id, s.name, s.host, s.pid, s.version, s.queues, s.names, s.runtime, s.release, s.versions,
    s.started_at, s.beat_at,
  s.lease_until, s.stop_requested_at, s.quiet_at,
  (select coalesce(pg_catalog.json_agg(o.id), '[]')::pg_catalog.text from "holdfast"."claim" c cross join lateral
      pg_catalog.unnest(c.ids) as o (id)
    join "holdfast"."ready" r on r.id = o.id and r.token = c.token where c.session = s.id) as jobs
from "holdfast"."session" s where s.lease_until > coalesce($1::bigint, (extract(epoch from statement_timestamp()) *
    1000.0)::bigint) and s.closed_at is null order by s.started_at, s.id;

-- lostWorkers
-- with now
select s.id, s.kind, s.worker_id, s.name, s.host, s.pid, s.version, s.queues, s.names, s.runtime, s.release, s.versions,
    s.started_at, s.beat_at,
  s.lease_until, s.stop_requested_at, s.quiet_at,
  (select coalesce(pg_catalog.json_agg(o.id), '[]')::pg_catalog.text from "holdfast"."claim" c cross join lateral
      pg_catalog.unnest(c.ids) as o (id)
    join "holdfast"."ready" r on r.id = o.id and r.token = c.token where c.session = s.id) as jobs
from "holdfast"."session" s
where s.kind = 'worker' and s.lease_until <= coalesce($1::bigint, (extract(epoch from statement_timestamp()) *
    1000.0)::bigint) and s.lease_until > coalesce($1::bigint, (extract(epoch from statement_timestamp()) *
    1000.0)::bigint) - 3600000 and s.lease_until >= s.beat_at + s.lease_ms
  and not exists (select 1 from "holdfast"."session" o where o.worker_id = s.worker_id and o.started_at > s.started_at)
order by s.lease_until desc limit 20;

-- overdueClaims
-- with now, grace, most
select pg_catalog.count(*) as n from (
  select 1 from "holdfast"."claim" c left join "holdfast"."session" s on s.id = c.session cross join lateral
      pg_catalog.unnest(c.ids) as o (id)
    cross join lateral (select 1 from "holdfast"."ready" r where r.id = o.id and r.token = c.token offset 0) r
  where s.id is null or s.lease_until < coalesce($1::bigint, (extract(epoch from statement_timestamp()) *
      1000.0)::bigint) - $2::bigint limit $3::int) x;

-- stopWorkers
-- with now, sessions
update "holdfast"."session" set stop_requested_at = coalesce($1::bigint, (extract(epoch from statement_timestamp()) *
    1000.0)::bigint)
where ($2::bigint[] is null or id = any($2::bigint[])) and kind = 'worker' and lease_until > coalesce($1::bigint,
    (extract(epoch from statement_timestamp()) * 1000.0)::bigint) and closed_at is null
returning id;

-- quietWorkers
-- with now, sessions
update "holdfast"."session" set quiet_at = coalesce(quiet_at, coalesce($1::bigint, (extract(epoch from
    statement_timestamp()) * 1000.0)::bigint))
where id = any($2::bigint[]) and kind = 'worker' and lease_until > coalesce($1::bigint, (extract(epoch from
    statement_timestamp()) * 1000.0)::bigint) and closed_at is null
returning id;

-- resumeWorkers
-- with sessions, now
update "holdfast"."session" set quiet_at = null
where id = any($1::bigint[]) and kind = 'worker' and lease_until > coalesce($2::bigint, (extract(epoch from
    statement_timestamp()) * 1000.0)::bigint) and closed_at is null
returning id;

-- definitions
select name, has_unique, has_lane, is_machine, lanes, budget from "holdfast"."definition";

-- registerDefinitions
-- with now, rows.name, rows.unique, rows.lane, rows.machine, rows.lanes, rows.budget
insert into "holdfast"."definition" (name, has_unique, has_lane, is_machine, lanes, budget, seen_at)
select w.name, w.has_unique, w.has_lane, w.is_machine, w.lanes, w.budget, coalesce($1::bigint, (extract(epoch from
    statement_timestamp()) * 1000.0)::bigint)
from unnest($2::pg_catalog.text[], $3::pg_catalog.bool[], $4::pg_catalog.bool[], $5::pg_catalog.bool[],
    $6::pg_catalog.text[], $7::pg_catalog.text[])
  as w (name, has_unique, has_lane, is_machine, lanes, budget)
order by w.name
on conflict (name) do update set has_unique = excluded.has_unique, has_lane = excluded.has_lane, is_machine =
    excluded.is_machine,
  lanes = excluded.lanes, budget = excluded.budget, seen_at = excluded.seen_at;

-- getState
-- with key
select value from "holdfast"."state" where key = $1;

-- setState
-- with key, value, now
insert into "holdfast"."state" (key, value, set_at) values ($1, $2, coalesce($3::bigint, (extract(epoch from
    statement_timestamp()) * 1000.0)::bigint))
on conflict (key) do update set value = excluded.value, set_at = excluded.set_at;

-- deleteState
-- with key
delete from "holdfast"."state" where key = $1 returning key;

-- stateRow
-- with now, key
select key, value, set_at, coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) as now
    from "holdfast"."state" where key = $2;

-- stateRows
-- with now, from, until, limit
select key, value, set_at, coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) as now
    from "holdfast"."state" where key >= $2 and key < $3 order by key desc limit $4::int;

-- swapState
-- with value, now, key, was
update "holdfast"."state" set value = $1, set_at = coalesce($2::bigint, (extract(epoch from statement_timestamp()) *
    1000.0)::bigint) where key = $3 and value = $4 returning key;

-- scheduleRows
-- with now, name
select name, spec, edits, next_at, waiting_at, anchor_at, created_at, paused_at, fault, last_run_at, last_job_id, jobs,
    recent, fired, skipped, missed, coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)
    as now from "holdfast"."schedule" where $2::pg_catalog.text is null or name = $2 order by name;

-- dueSchedules
-- with now, at, name, limit
select * from (
  select name, next_at, null as jobs, coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)
      as now from "holdfast"."schedule"
  where paused_at is null and fault is null and (next_at, name) > ($2::bigint, $3)
  order by next_at, name limit $4::int
) s
union all
select name, next_at, coalesce(jobs, '[]'), coalesce($1::bigint, (extract(epoch from statement_timestamp()) *
    1000.0)::bigint) from "holdfast"."schedule"
where $2::bigint = 0 and waiting_at is not null and paused_at is null and fault is null and (next_at is null or next_at
    > coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint));

-- lockSchedule
-- with now, name
select name, spec, edits, next_at, waiting_at, anchor_at, created_at, paused_at, fault, last_run_at, last_job_id, jobs,
    recent, fired, skipped, missed, coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)
    as now from "holdfast"."schedule" where name = $2 for update;

-- claimSchedule
-- with now, name
select name, spec, edits, next_at, waiting_at, anchor_at, created_at, paused_at, fault, last_run_at, last_job_id, jobs,
    recent, fired, skipped, missed, coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)
    as now from "holdfast"."schedule"
where name = $2 and paused_at is null and fault is null and (next_at <= coalesce($1::bigint, (extract(epoch from
    statement_timestamp()) * 1000.0)::bigint) or waiting_at is not null)
for update skip locked;

-- addSchedule
-- with name, spec, nextAt, anchorAt, now
insert into "holdfast"."schedule" (name, spec, next_at, anchor_at, created_at)
values ($1, $2, $3::bigint, $4::bigint, coalesce($5::bigint, (extract(epoch from statement_timestamp()) *
    1000.0)::bigint))
on conflict (name) do nothing returning name;

-- setSchedule
-- with spec, edits, nextAt, anchorAt, waitingAt, paused, now, name
update "holdfast"."schedule" set spec = $1, edits = $2, next_at = $3::bigint, anchor_at = $4::bigint,
  waiting_at = $5::bigint, paused_at = case when $6::pg_catalog.bool then coalesce(paused_at, coalesce($7::bigint,
      (extract(epoch from statement_timestamp()) * 1000.0)::bigint)) end, fault = null, fault_at = null
where name = $8 returning name;

-- advanceSchedule
-- with nextAt, waitingAt, lastRunAt, lastJobId, jobs, recent, fired, skipped, missed, name, expected
update "holdfast"."schedule" set next_at = $1::bigint, waiting_at = $2::bigint,
  last_run_at = coalesce($3::bigint, last_run_at), last_job_id = coalesce($4::pg_catalog.uuid, last_job_id), jobs = $5,
      recent = $6,
  fired = fired + $7::bigint, skipped = skipped + $8::bigint, missed = missed + $9::bigint
where name = $10 and next_at is not distinct from $11::bigint returning name;

-- disableSchedule
-- with fault, now, name
update "holdfast"."schedule" set fault = $1, fault_at = coalesce($2::bigint, (extract(epoch from statement_timestamp())
    * 1000.0)::bigint) where name = $3 and fault is null returning name;

-- occurrencesMade
-- with name, from, to
select at from "holdfast"."occurrence" where schedule = $1 and at >= $2::bigint and at < $3::bigint order by at;

-- newestOccurrences
-- with name, limit
select s.at, s.job from (
  select schedule, at, job from "holdfast"."occurrence" where (schedule, at) <= ($1, 9223372036854775807::bigint)
  order by schedule desc, at desc limit $2::int
) s where s.schedule = $1;

-- occurrencesAround
-- with name, at
select at, job from (
  select * from (select schedule, at, job from "holdfast"."occurrence" where (schedule, at) < ($1, $2::bigint) order by
      schedule desc, at desc limit 1) b
  union all
  select * from (select schedule, at, job from "holdfast"."occurrence" where (schedule, at) > ($1, $2::bigint) order by
      schedule, at limit 1) a
) s where s.schedule = $1;

-- occurrenceJobs
-- with ids, now
select o.id, w.*, j.extras, coalesce((select true from "holdfast"."step" p where p.job = o.id limit 1), false) as
    stepped
from pg_catalog.unnest($1::pg_catalog.uuid[]) as o (id)
cross join lateral (
  select case when r.token is not null then 'running' when r.run_at >= 8633688480000000 then 'waiting'
  when r.run_at > coalesce($2::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) then case when
      r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end as state, r.attempt, r.crashes,
      r.throttles, r.run_at, r.started_at, null::bigint as ended_at, case when octet_length(r.errors) <= 16384 then
      r.errors end as errors
  from "holdfast"."ready" r where r.id = o.id
  union all
  select h.state, h.attempt, h.crashes, h.throttles, h.run_at, h.started_at, h.ended_at, case when
      octet_length(h.errors) <= 16384 then h.errors end as errors
  from "holdfast"."history" h where h.id = o.id
  offset 0
) w
cross join lateral (select k.extras from "holdfast"."job" k where k.id = o.id offset 0) j;

-- addOccurrences
-- with rows.name, rows.at, rows.job, rows.madeAt
insert into "holdfast"."occurrence" (schedule, at, job, made_at)
select * from unnest($1::pg_catalog.text[], $2::bigint[], $3::pg_catalog.uuid[], $4::bigint[])
on conflict (schedule, at) do update set job = excluded.job, made_at = excluded.made_at;

-- removeSchedule
-- with name
delete from "holdfast"."schedule" where name = $1 returning name;

-- liveJobs
-- with ids
select id from "holdfast"."ready" where id = any($1::pg_catalog.uuid[]);

-- budgetRows
-- with now
select name, amount, per_ms, burst, tuned, standard, tokens, filled_at, chunks, coalesce($1::bigint, (extract(epoch from
    statement_timestamp()) * 1000.0)::bigint) as now from "holdfast"."budget" order by name;

-- lockBudget
-- with now, name
select name, amount, per_ms, burst, tuned, standard, tokens, filled_at, chunks, coalesce($1::bigint, (extract(epoch from
    statement_timestamp()) * 1000.0)::bigint) as now from "holdfast"."budget" where name = $2 for update;

-- addBudget
-- with name, amount, per, burst, tuned, standard, now
insert into "holdfast"."budget" (name, amount, per_ms, burst, tuned, standard, tokens, filled_at)
values ($1, $2::pg_catalog.float8, $3::bigint, $4::pg_catalog.float8, $5::pg_catalog.bool, $6, $4::pg_catalog.float8,
    coalesce($7::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint))
on conflict (name) do nothing returning name;

-- setBudget
-- with amount, per, burst, tuned, standard, tokens, filledAt, chunks, name
update "holdfast"."budget" set amount = $1::pg_catalog.float8, per_ms = $2::bigint, burst = $3::pg_catalog.float8, tuned
    = $4::pg_catalog.bool, standard = $5,
  tokens = $6::pg_catalog.float8, filled_at = $7::bigint, chunks = $8
where name = $9 returning name;

-- removeBudget
-- with name
delete from "holdfast"."budget" where name = $1 returning name;

-- passRows
-- with now
select name, clean, holder, held_until, runs, started_at, ended_at, reason, coalesce($1::bigint, (extract(epoch from
    statement_timestamp()) * 1000.0)::bigint) as now from "holdfast"."pass" order by name;

-- lockPass
-- with now, name
select name, clean, holder, held_until, runs, started_at, ended_at, reason, coalesce($1::bigint, (extract(epoch from
    statement_timestamp()) * 1000.0)::bigint) as now from "holdfast"."pass" where name = $2 for update;

-- addPass
-- with name
insert into "holdfast"."pass" (name, clean) values ($1, true) on conflict (name) do nothing returning name;

-- setPass
-- with clean, holder, heldUntil, runs, startedAt, endedAt, reason, name
update "holdfast"."pass" set clean = $1::pg_catalog.bool, holder = $2, held_until = $3::bigint, runs = $4::bigint,
  started_at = $5::bigint, ended_at = $6::bigint, reason = $7
where name = $8 returning name;

-- putMetrics
-- with rows.minute, rows.queue, rows.name, rows.worker, rows.done, rows.failed, rows.dead, rows.cancelled,
--     rows.throttled, rows.released, rows.lost, rows.ran, rows.waited
insert into "holdfast"."metric" as m (minute, queue, name, worker, done, failed, dead, cancelled, throttled, released,
    lost, ran, waited)
select * from unnest($1::bigint[], $2::pg_catalog.text[], $3::pg_catalog.text[], $4::pg_catalog.text[], $5::int[],
    $6::int[], $7::int[],
  $8::int[], $9::int[], $10::int[], $11::int[], $12::pg_catalog.text[], $13::pg_catalog.text[])
on conflict (minute, queue, name, worker) do update set done = excluded.done, failed = excluded.failed, dead =
    excluded.dead, cancelled = excluded.cancelled,
  throttled = excluded.throttled, released = excluded.released, lost = excluded.lost, ran = excluded.ran, waited =
      excluded.waited
where m.done + m.failed + m.dead + m.cancelled + m.throttled + m.released + m.lost <= excluded.done + excluded.failed +
    excluded.dead + excluded.cancelled + excluded.throttled + excluded.released + excluded.lost;

-- metrics
-- with since, until, queues, names
select minute, queue, name, worker, done, failed, dead, cancelled, throttled, released, lost, ran, waited from
    "holdfast"."metric"
where minute >= $1::bigint and minute < $2::bigint
  and ($3::pg_catalog.text[] is null or queue = any($3::pg_catalog.text[])) and ($4::pg_catalog.text[] is null or name =
      any($4::pg_catalog.text[]))
order by minute, queue, name, worker;

-- metricsTogether
-- with since, until
select minute, '' as queue, '' as name, '' as worker, sum(done)::bigint as done, sum(failed)::bigint as failed,
    sum(dead)::bigint as dead,
  sum(cancelled)::bigint as cancelled, sum(throttled)::bigint as throttled, sum(released)::bigint as released,
      sum(lost)::bigint as lost,
  string_agg(ran, ',') as ran, string_agg(waited, ',') as waited
from "holdfast"."metric" where minute >= $1::bigint and minute < $2::bigint group by minute order by minute;

-- queueMinutes
-- with since, until
select minute, queue, sum(done)::bigint as done, sum(failed)::bigint as failed, sum(dead)::bigint as dead
from "holdfast"."metric" where minute >= $1::bigint and minute < $2::bigint group by minute, queue order by minute,
    queue;

-- putMetricSums
-- with rows.name, rows.minute, rows.done, rows.failed, rows.dead, rows.cancelled, rows.throttled, rows.released,
--     rows.lost, rows.ran, rows.waited
insert into "holdfast"."metric_sum" (name, minute, done, failed, dead, cancelled, throttled, released, lost, ran,
    waited)
select * from unnest($1::pg_catalog.text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[],
  $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[], $10::pg_catalog.text[], $11::pg_catalog.text[])
on conflict (name, minute) do update set done = excluded.done, failed = excluded.failed, dead = excluded.dead, cancelled
    = excluded.cancelled,
  throttled = excluded.throttled, released = excluded.released, lost = excluded.lost, ran = excluded.ran, waited =
      excluded.waited;

-- metricSums
-- with names, since, until
select minute, '' as queue, name, '' as worker, done, failed, dead, cancelled, throttled, released, lost, ran, waited
    from "holdfast"."metric_sum"
where name = any($1::pg_catalog.text[]) and minute >= $2::bigint and minute < $3::bigint order by name, minute;

-- summedHours
-- with since, until
select distinct minute - minute % 3600000::bigint as hour from "holdfast"."metric_sum" where name = '' and minute >=
    $1::bigint and minute < $2::bigint;

-- dropMetrics
-- with since, until
delete from "holdfast"."metric" where minute >= $1::bigint and minute < $2::bigint and worker <> '';

-- putGauges
-- with rows.minute, rows.source, rows.name, rows.value
insert into "holdfast"."gauge" (minute, source, name, value)
select * from unnest($1::bigint[], $2::pg_catalog.text[], $3::pg_catalog.text[], $4::pg_catalog.float8[])
on conflict (minute, source, name) do update set value = excluded.value;

-- gauges
-- with since, until, sources
select minute, source, name, value from "holdfast"."gauge"
where minute >= $1::bigint and minute < $2::bigint
  and ($3::pg_catalog.text[] is null or source = any($3::pg_catalog.text[]))
order by minute, source, name;

-- namedGauges
-- with names, since, until, sources
select minute, source, name, value from "holdfast"."gauge"
where name = any($1::pg_catalog.text[]) and minute >= $2::bigint and minute < $3::bigint
  and ($4::pg_catalog.text[] is null or source = any($4::pg_catalog.text[]))
order by minute, source, name;

-- load
-- with step, minutes
select g.minute - g.minute % $1::bigint as at, case when g.name = 'ready' then g.source else '' end as source, g.name,
  sum(g.value) as sum, pg_catalog.count(distinct g.minute)::int as minutes
from pg_catalog.unnest($2::bigint[]) as m (minute) cross join lateral (select * from "holdfast"."gauge" k where k.minute
    = m.minute offset 0) g
where g.name = 'ready' or (g.name in ('running', 'slots') and g.source not like 'queue:%')
group by 1, 2, 3 order by 1;

-- gaugeSteps
-- with step, names, minutes
select g.minute - g.minute % $1::bigint as at, g.source, g.name, sum(g.value) as sum, pg_catalog.count(*)::int as
    minutes
from pg_catalog.unnest($2::pg_catalog.text[]) as w (name) cross join pg_catalog.unnest($3::bigint[]) as m (minute)
  cross join lateral (select * from "holdfast"."gauge" k where k.name = w.name and k.minute = m.minute offset 0) g
group by 1, 2, 3 order by 1, 2, 3;

-- putEvents
-- with rows.id, rows.at, rows.event, rows.job, rows.name, rows.queue, rows.attempt, rows.worker, rows.detail
insert into "holdfast"."event" (id, at, event, job, name, queue, attempt, worker, detail)
select * from unnest($1::pg_catalog.uuid[], $2::bigint[], $3::pg_catalog.text[], $4::pg_catalog.uuid[],
    $5::pg_catalog.text[], $6::pg_catalog.text[], $7::int[], $8::pg_catalog.text[], $9::pg_catalog.text[])
on conflict (id) do nothing;

-- events
-- with cursor, job, from, since, until, events, queues, names, limit
select id, at, event, job, name, queue, attempt, worker, detail from "holdfast"."event"
where ($1::pg_catalog.uuid is null or id < $1::pg_catalog.uuid) and ($2::pg_catalog.uuid is null or job =
    $2::pg_catalog.uuid) and id >= $3::pg_catalog.uuid and at >= $4::bigint and at < $5::bigint
  and ($6::pg_catalog.text[] is null or event = any($6::pg_catalog.text[])) and ($7::pg_catalog.text[] is null or queue
      = any($7::pg_catalog.text[]))
  and ($8::pg_catalog.text[] is null or name = any($8::pg_catalog.text[]))
order by id desc limit $9::int;

-- putLogLines
-- with rows.job, rows.id, rows.at, rows.level, rows.attempt, rows.message, rows.details
insert into "holdfast"."log" (job, id, at, level, attempt, message, details)
select * from unnest($1::pg_catalog.uuid[], $2::pg_catalog.uuid[], $3::bigint[], $4::pg_catalog.text[], $5::int[],
    $6::pg_catalog.text[], $7::pg_catalog.text[]) as n (job)
where (exists (select 1 from "holdfast"."ready" r where r.id = n.job) or exists (select 1 from "holdfast"."history" h
    where h.id = n.job)) on conflict do nothing;

-- trimLogLines
-- with rows.job, skip
delete from "holdfast"."log" l using pg_catalog.unnest($1::pg_catalog.uuid[]) as n (job) where l.job = n.job
  and l.id < (select o.id from "holdfast"."log" o where o.job = n.job order by o.id desc limit 1 offset $2::int);

-- logLines
-- with job, limit
select id, job, at, level, attempt, message, details from "holdfast"."log" where job = $1::pg_catalog.uuid order by id
    desc limit $2::int;

-- deleteOldSeries
-- with metricsBefore, eventsBefore
with m as (delete from "holdfast"."metric" where minute < $1::bigint),
  s as (delete from "holdfast"."metric_sum" where minute < $1::bigint),
  a as (delete from "holdfast"."occurrence" where made_at < $1::bigint),
  g as (delete from "holdfast"."gauge" where minute < $1::bigint),
  o as (delete from "holdfast"."log" l where not (exists (select 1 from "holdfast"."ready" r where r.id = l.job) or
      exists (select 1 from "holdfast"."history" h where h.id = l.job)))
delete from "holdfast"."event" where id < $2::pg_catalog.uuid;

-- recordSteps
-- with rows.job, rows.token, rows.name, rows.seq, rows.givenOrder, rows.kind, rows.state, rows.attempt, rows.tries,
--     rows.took, rows.wakeIn, rows.undo, rows.fails, rows.given, rows.output, rows.error, rows.label, rows.after, session,
--     now
with n as materialized (
  select * from unnest($1::pg_catalog.uuid[], $2::bigint[], $3::pg_catalog.text[], $4::int[], $5::int[],
      $6::pg_catalog.text[],
    $7::pg_catalog.text[], $8::int[], $9::int[], $10::bigint[], $11::bigint[], $12::pg_catalog.bool[], $13::int[],
        $14::int[],
    $15::pg_catalog.text[], $16::pg_catalog.text[], $17::pg_catalog.text[], $18::pg_catalog.text[])
    as n (job, token, name, seq, given_order, kind, state, attempt, tries, took, wake_in, undo, fails, given, output,
        error, label, after)
),
held as materialized (
  select r.id, r.token from "holdfast"."ready" r where r.id = any($1::pg_catalog.uuid[]) and r.token = any($2::bigint[])
      and r.session = $19::bigint and exists (select 1 from "holdfast"."session" s where s.id = $19::bigint and
      s.lease_until > coalesce($20::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint))
  order by r.id for share
)
insert into "holdfast"."step" as s (job, name, seq, given_order, kind, state, attempt, tries, started_at, ended_at,
    wake_at, topic, child, undo, fails, given, output, error, label)
select n.job, n.name, n.seq, n.given_order, n.kind, n.state, n.attempt, n.tries, coalesce($20::bigint, (extract(epoch
    from statement_timestamp()) * 1000.0)::bigint) - n.took,
  case when n.state <> 'open' then coalesce($20::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)
      end, coalesce($20::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) + n.wake_in, null, null,
      n.undo, n.fails, n.given, n.output, n.error, n.label
from n join held h on h.id = n.job and h.token = n.token where (n.after is null or exists (select 1 from
    "holdfast"."step" w where w.job = n.job and w.name = n.after and w.state <> 'open'))
on conflict (job, name) do update set given_order = case when (s.state = 'done' or (s.attempt = excluded.attempt and
    (s.state = 'failed' or s.tries > excluded.tries))) then coalesce(s.given_order, excluded.given_order) else
    excluded.given_order end,
  state = case when (s.state = 'done' or (s.attempt = excluded.attempt and (s.state = 'failed' or s.tries >
      excluded.tries))) then s.state else excluded.state end, attempt = case when (s.state = 'done' or (s.attempt =
      excluded.attempt and (s.state = 'failed' or s.tries > excluded.tries))) then s.attempt else excluded.attempt end,
      tries = case when (s.state = 'done' or (s.attempt = excluded.attempt and (s.state = 'failed' or s.tries >
      excluded.tries))) then s.tries else excluded.tries end, ended_at = case when (s.state = 'done' or (s.attempt =
      excluded.attempt and (s.state = 'failed' or s.tries > excluded.tries))) then s.ended_at else excluded.ended_at
      end, undo = case when (s.state = 'done' or (s.attempt = excluded.attempt and (s.state = 'failed' or s.tries >
      excluded.tries))) then s.undo else excluded.undo end, output = case when (s.state = 'done' or (s.attempt =
      excluded.attempt and (s.state = 'failed' or s.tries > excluded.tries))) then s.output else excluded.output end,
      error = case when (s.state = 'done' or (s.attempt = excluded.attempt and (s.state = 'failed' or s.tries >
      excluded.tries))) then s.error else excluded.error end, label = case when (s.state = 'done' or (s.attempt =
      excluded.attempt and (s.state = 'failed' or s.tries > excluded.tries))) then s.label else excluded.label end,
  wake_at = case when (s.state = 'done' or (s.attempt = excluded.attempt and (s.state = 'failed' or s.tries >
      excluded.tries))) then s.wake_at
    when excluded.kind in ('sleep', 'signal') then coalesce(s.wake_at, excluded.wake_at) else excluded.wake_at end
returning s.job, s.name, s.wake_at;

-- findSteps
-- with id
select job, name, seq, given_order, kind, state, attempt, tries, started_at, ended_at, wake_at, topic, child, undo,
    fails, given, output, error, label from "holdfast"."step" where job = $1::pg_catalog.uuid order by seq, name;

-- stepsBefore
-- with id, before, limit
select job, name, seq, given_order, kind, state, attempt, tries, started_at, ended_at, wake_at, topic, child, undo,
    fails, given, output, error, label from (
  select job, name, seq, given_order, kind, state, attempt, tries, started_at, ended_at, wake_at, topic, child, undo,
      fails, given, output, error, label from "holdfast"."step" where (job, seq) < ($1::pg_catalog.uuid, $2::int) order
      by job desc, seq desc limit $3::int
) s where s.job = $1::pg_catalog.uuid;

-- openSteps
-- with id, limit
select job, name, seq, given_order, kind, state, attempt, tries, started_at, ended_at, wake_at, topic, child, undo,
    fails, given, output, error, label from "holdfast"."step" where job = $1::pg_catalog.uuid and state = 'open' and
    name <> '$undo' limit $2::int;

-- countSteps
-- with id, before, limit
select pg_catalog.count(*) as n from (select 1 from "holdfast"."step" where job = $1::pg_catalog.uuid and seq < $2::int
    limit $3::int) one;

-- forkable
-- with id
select h.state, h.ended_at, h.rank, l.queue, l.name, j.lane, j.max_attempts, j.timeout_ms, j.context, j.extras, j.input
from "holdfast"."history" h join "holdfast"."job" j on j.id = h.id join "holdfast"."job_type" l on l.id = h.job_type
    where h.id = $1::pg_catalog.uuid;

-- copySteps
-- with to, id, before
insert into "holdfast"."step" (job, name, seq, given_order, kind, state, attempt, tries, started_at, ended_at, wake_at,
    topic, child, undo, fails, given, output, error, label)
select $1::pg_catalog.uuid, name, seq, given_order, kind, state, 1, tries, started_at, ended_at, wake_at, null, child,
    false, fails, given, output, error, label from "holdfast"."step" where job = $2::pg_catalog.uuid and seq < $3::int;

-- markBegun
-- with id
update "holdfast"."ready" set begun = true where id = $1::pg_catalog.uuid;

-- findStep
-- with id, name
select job, name, seq, given_order, kind, state, attempt, tries, started_at, ended_at, wake_at, topic, child, undo,
    fails, given, output, error, label from "holdfast"."step" where job = $1::pg_catalog.uuid and name = $2;

-- machineSteps
-- with ids
select job as id, label from "holdfast"."step" where job = any($1::pg_catalog.uuid[]) and name = '$machine';

-- holdRow
-- with id, token, session, now, after
select r.id from "holdfast"."ready" r where r.id = $1::pg_catalog.uuid and r.token = $2::bigint and r.session =
    $3::bigint and exists (select 1 from "holdfast"."session" s where s.id = $3::bigint and s.lease_until >
    coalesce($4::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)) and ($5::pg_catalog.text is null
    or exists (select 1 from "holdfast"."step" w where w.job = r.id and w.name = $5::pg_catalog.text and w.state <>
    'open')) for update;

-- nameChild
-- with child, id, name
update "holdfast"."step" set child = $1::pg_catalog.uuid where job = $2::pg_catalog.uuid and name = $3;

-- suspend
-- with rows.id, rows.token, rows.at, rows.waits, rows.attempt, rows.open, rows.every, rows.signals, now, spent, session
with t as materialized (
  select * from unnest($1::pg_catalog.uuid[], $2::bigint[], $3::bigint[], $4::pg_catalog.text[], $5::int[],
    $6::int[], $7::pg_catalog.bool[], $8::int[]) as t (id, token, at, waits, attempt, open, every, signals)
),
u as materialized (
  select t.*,
    case when t.open > 0 then (select pg_catalog.count(*)::int from "holdfast"."dependency" d where d.job = t.id and
        d.step is not null and d.state is null) end as unmet,
    -- A wait that a replica that lagged never got: no signal would ever find it.
    t.waits = 'signal' and ((select pg_catalog.count(*) from "holdfast"."step" w where w.job = t.id and w.state = 'open'
        and w.topic is not null) < t.signals or exists (
      select 1 from "holdfast"."step" w join "holdfast"."signal" g on g.topic = w.topic and g.expires_at >
          coalesce($9::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)
      where w.job = t.id and w.state = 'open' and w.topic is not null)) as signalled
  from t
),
spent as (delete from "holdfast"."claim" c where c.token = any($10::bigint[]) and c.session = $11::bigint and exists
    (select 1 from "holdfast"."session" s where s.id = $11::bigint and s.lease_until > coalesce($9::bigint,
    (extract(epoch from statement_timestamp()) * 1000.0)::bigint)))
update "holdfast"."ready" r set token = null, session = null, begun = true, attempt = u.attempt, crashes = 0, counted =
    null, note = null, request = null, waits = u.waits,
  pending = case when u.open > 0 then case when u.every then u.unmet else 1 end end, due_at = null,
  run_at = case when u.signalled then coalesce($9::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)
    when u.open > 0 and case when u.every then u.unmet = 0 else u.unmet < u.open end then coalesce($9::bigint,
        (extract(epoch from statement_timestamp()) * 1000.0)::bigint)
    else greatest(coalesce(u.at, 8633688480000000), coalesce($9::bigint, (extract(epoch from statement_timestamp()) *
        1000.0)::bigint)) end
from u where r.id = any($1::pg_catalog.uuid[]) and r.id = u.id and r.token = u.token and r.session = $11::bigint and
    exists (select 1 from "holdfast"."session" s where s.id = $11::bigint and s.lease_until > coalesce($9::bigint,
    (extract(epoch from statement_timestamp()) * 1000.0)::bigint))
returning r.id;

-- lockTopics
-- with topics
select pg_advisory_xact_lock(hashtextextended(topic, 7::bigint)) from (
  select distinct topic from pg_catalog.unnest($1::pg_catalog.text[]) as topic order by 1) o;

-- takeSignal
-- with id, token, session, now, name, topic, wakeIn, seq, givenOrder, attempt, fails, given, after
with
held as materialized (
  select r.id from "holdfast"."ready" r where r.id = $1::pg_catalog.uuid and r.token = $2::bigint and r.session =
      $3::bigint and exists (select 1 from "holdfast"."session" s where s.id = $3::bigint and s.lease_until >
      coalesce($4::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)) for share
),
ended as materialized (
  select w.state, w.output, w.wake_at from held h join "holdfast"."step" w on w.job = h.id and w.name =
      $5::pg_catalog.text and w.state <> 'open'
),
got as materialized (
  select g.id, g.data from "holdfast"."signal" g where g.topic = $6::pg_catalog.text and g.expires_at >
      coalesce($4::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)
    and exists (select 1 from held) and not exists (select 1 from ended)
  order by g.id limit 1 for update skip locked
),
known as materialized (
  select coalesce(
    (select w.wake_at from "holdfast"."step" w where w.job = $1::pg_catalog.uuid and w.name = $5::pg_catalog.text),
    case when $7::bigint is not null then coalesce($4::bigint, (extract(epoch from statement_timestamp()) *
        1000.0)::bigint) + $7::bigint end) as wake_at
),
taken as (
  insert into "holdfast"."step" as s (job, name, seq, given_order, kind, state, attempt, tries, started_at, ended_at,
      wake_at, topic, child, undo, fails, given, output, error, label)
  select h.id, $5::pg_catalog.text, $8::int, case when o.over then $9::int end, 'signal', case when o.over then 'done'
      else 'open' end,
    $10::int, 1, coalesce($4::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint), case when o.over
        then coalesce($4::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) end, k.wake_at,
        $6::pg_catalog.text, null, false, $11::int, $12::int,
    case when o.over then coalesce((select data from got), 'null') end, null,
    case when o.over and not exists (select 1 from got) then 'timeout' end
  from held h, known k, lateral (select exists (select 1 from got) or coalesce(k.wake_at <= coalesce($4::bigint,
      (extract(epoch from statement_timestamp()) * 1000.0)::bigint), false) as over) o
  where not exists (select 1 from ended) and ($13::pg_catalog.text is null or exists (select 1 from "holdfast"."step" w
      where w.job = h.id and w.name = $13::pg_catalog.text and w.state <> 'open'))
on conflict (job, name) do update set given_order = case when (s.state = 'done' or (s.attempt = excluded.attempt and
    (s.state = 'failed' or s.tries > excluded.tries))) then coalesce(s.given_order, excluded.given_order) else
    excluded.given_order end,
  state = case when (s.state = 'done' or (s.attempt = excluded.attempt and (s.state = 'failed' or s.tries >
      excluded.tries))) then s.state else excluded.state end, attempt = case when (s.state = 'done' or (s.attempt =
      excluded.attempt and (s.state = 'failed' or s.tries > excluded.tries))) then s.attempt else excluded.attempt end,
      tries = case when (s.state = 'done' or (s.attempt = excluded.attempt and (s.state = 'failed' or s.tries >
      excluded.tries))) then s.tries else excluded.tries end, ended_at = case when (s.state = 'done' or (s.attempt =
      excluded.attempt and (s.state = 'failed' or s.tries > excluded.tries))) then s.ended_at else excluded.ended_at
      end, undo = case when (s.state = 'done' or (s.attempt = excluded.attempt and (s.state = 'failed' or s.tries >
      excluded.tries))) then s.undo else excluded.undo end, output = case when (s.state = 'done' or (s.attempt =
      excluded.attempt and (s.state = 'failed' or s.tries > excluded.tries))) then s.output else excluded.output end,
      error = case when (s.state = 'done' or (s.attempt = excluded.attempt and (s.state = 'failed' or s.tries >
      excluded.tries))) then s.error else excluded.error end, label = case when (s.state = 'done' or (s.attempt =
      excluded.attempt and (s.state = 'failed' or s.tries > excluded.tries))) then s.label else excluded.label end,
  wake_at = case when (s.state = 'done' or (s.attempt = excluded.attempt and (s.state = 'failed' or s.tries >
      excluded.tries))) then s.wake_at
    when excluded.kind in ('sleep', 'signal') then coalesce(s.wake_at, excluded.wake_at) else excluded.wake_at end
  where s.state = 'open'
  returning s.state, s.output, s.wake_at
),
spent as (delete from "holdfast"."signal" g using got, taken where g.id = got.id)
select state, output, wake_at from ended union all select state, output, wake_at from taken;

-- sendSignal
-- with id, now, topic, data, expires
with sent as (insert into "holdfast"."used_id" (id, at) values ($1::pg_catalog.uuid, coalesce($2::bigint, (extract(epoch
    from statement_timestamp()) * 1000.0)::bigint)) on conflict do nothing returning id)
insert into "holdfast"."signal" (topic, data, sent_at, expires_at)
select $3::pg_catalog.text, $4::pg_catalog.text, coalesce($2::bigint, (extract(epoch from statement_timestamp()) *
    1000.0)::bigint), coalesce($2::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) + $5::bigint
    from sent returning id;

-- waitersFor
-- with topic, limit
select job from "holdfast"."step" where topic = $1 and state = 'open' order by started_at, job limit $2::int;

-- wakeWaiters
-- with now, topic
update "holdfast"."ready" r set run_at = coalesce($1::bigint, (extract(epoch from statement_timestamp()) *
    1000.0)::bigint), waits = null
where r.token is null and r.waits <> 'resume' and r.id = any(array(
  select s.job from "holdfast"."step" s join "holdfast"."ready" w on w.id = s.job and w.token is null and w.waits <>
      'resume'
  where s.topic = $2 and s.state = 'open' order by s.started_at, s.job
  limit (select pg_catalog.count(*) from "holdfast"."signal" g where g.topic = $2 and g.expires_at >
      coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint))))
returning r.id, r.lane is not null as laned;

-- expireSignals
-- with now
delete from "holdfast"."signal" where expires_at <= coalesce($1::bigint, (extract(epoch from statement_timestamp()) *
    1000.0)::bigint);

-- strays
-- with now, limit
select 'topic' as kind, topic as id, null::pg_catalog.text as state from (
  select distinct s.topic from "holdfast"."signal" g join "holdfast"."step" s on s.topic = g.topic and s.state = 'open'
  cross join lateral (select 1 from "holdfast"."ready" r where r.id = s.job and r.token is null and r.waits <> 'resume'
      and r.run_at > coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) offset 0) r
  where g.expires_at > coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) limit $2::int)
      stranded
union all
select 'end', id::pg_catalog.text, state from (
  select distinct d.on_job as id, coalesce((select h.state from "holdfast"."history" h where h.id = d.on_job),
      'cancelled') as state
  from "holdfast"."dependency" d where
  d.state is null and (select k.id from "holdfast"."ready" k where k.id = d.on_job) is null
    and (d.policy <> 'wait' or coalesce((select e.state from "holdfast"."history" e where e.id = d.on_job), 'gone') in
        ('done', 'gone'))
  limit $2::int) ended
union all
select 'expired', '', null where exists (select 1 from "holdfast"."signal" where expires_at <= coalesce($1::bigint,
    (extract(epoch from statement_timestamp()) * 1000.0)::bigint));

-- over
-- with now, limit
select
  exists (select 1 from "holdfast"."session" s where (s.closed_at is null and s.lease_until <= coalesce($1::bigint,
      (extract(epoch from statement_timestamp()) * 1000.0)::bigint)) or s.closed_at < coalesce($1::bigint,
      (extract(epoch from statement_timestamp()) * 1000.0)::bigint) - 604800000)
    or exists (select 1 from "holdfast"."cancel")
    or exists (select 1 from "holdfast"."claim" c where not exists (select 1 from "holdfast"."session" s where s.id =
        c.session and s.lease_until > coalesce($1::bigint, (extract(epoch from statement_timestamp()) *
        1000.0)::bigint))) as sessions,
  exists (select 1 from (
select 'topic' as kind, topic as id, null::pg_catalog.text as state from (
  select distinct s.topic from "holdfast"."signal" g join "holdfast"."step" s on s.topic = g.topic and s.state = 'open'
  cross join lateral (select 1 from "holdfast"."ready" r where r.id = s.job and r.token is null and r.waits <> 'resume'
      and r.run_at > coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) offset 0) r
  where g.expires_at > coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) limit $2::int)
      stranded
union all
select 'end', id::pg_catalog.text, state from (
  select distinct d.on_job as id, coalesce((select h.state from "holdfast"."history" h where h.id = d.on_job),
      'cancelled') as state
  from "holdfast"."dependency" d where
  d.state is null and (select k.id from "holdfast"."ready" k where k.id = d.on_job) is null
    and (d.policy <> 'wait' or coalesce((select e.state from "holdfast"."history" e where e.id = d.on_job), 'gone') in
        ('done', 'gone'))
  limit $2::int) ended
union all
select 'expired', '', null where exists (select 1 from "holdfast"."signal" where expires_at <= coalesce($1::bigint,
    (extract(epoch from statement_timestamp()) * 1000.0)::bigint))) s) as workflows,
  exists (select 1 from "holdfast"."temporary_limit" where until_at <= coalesce($1::bigint, (extract(epoch from
      statement_timestamp()) * 1000.0)::bigint)) as temporary_limits,
  exists (select 1 from "holdfast"."queue" where limited) or exists (select 1 from "holdfast"."budget") as limits,
  exists (select 1 from "holdfast"."queue" where drain_at is not null) as drains;

-- watch
-- with ids
update "holdfast"."ready" r set watched = true where r.id = any(array(
  select w.id from "holdfast"."ready" w where w.id = any($1::pg_catalog.uuid[]) order by w.id for update))
returning r.id;

-- endsOf
-- with ids
select id, state, output, errors from "holdfast"."history" where id = any($1::pg_catalog.uuid[]);

-- addDependencies
-- with now, rows.job, rows.on, rows.policy, rows.step, rows.state
insert into "holdfast"."dependency" (job, on_job, policy, step, state, met_at)
select d.job, d.on_job, d.policy, d.step, d.state, case when d.state is not null then coalesce($1::bigint,
    (extract(epoch from statement_timestamp()) * 1000.0)::bigint) end
from unnest($2::pg_catalog.uuid[], $3::pg_catalog.uuid[], $4::pg_catalog.text[], $5::pg_catalog.text[],
    $6::pg_catalog.text[]) as d (job, on_job, policy, step, state)
on conflict (job, on_job) do nothing;

-- placeDependents
-- with rows.id, rows.pending
update "holdfast"."ready" r set due_at = r.run_at, run_at = 8633688480000000, waits = 'jobs', pending = n.pending
from unnest($1::pg_catalog.uuid[], $2::int[]) as n (id, pending) where r.id = n.id and r.token is null and r.pending is
    null and not r.begun returning r.id;

-- awaited
-- with ids
select distinct on_job as id from "holdfast"."dependency" where on_job = any($1::pg_catalog.uuid[]) and state is null;

-- meet
-- with rows.id, rows.state, now
with e as materialized (
  select e.id, e.state, h.output, h.errors,
    h.id is null and not exists (select 1 from "holdfast"."ready" r where r.id = e.id) as gone
  from unnest($1::pg_catalog.uuid[], $2::pg_catalog.text[]) as e (id, state)
  left join "holdfast"."history" h on h.id = e.id
),
m as (
  update "holdfast"."dependency" d set state = e.state, met_at = coalesce($3::bigint, (extract(epoch from
      statement_timestamp()) * 1000.0)::bigint) from e
  where d.on_job = e.id and d.on_job = any($1::pg_catalog.uuid[]) and d.state is null and (e.state = 'done' or d.policy
      <> 'wait' or e.gone)
  returning d.job, d.on_job, d.policy, d.step, e.state, e.output, e.errors
),
answered as (
  update "holdfast"."step" s set state = case when m.state = 'done' then 'done' else 'failed' end, output = m.output,
      error = m.errors,
    label = m.state, ended_at = coalesce($3::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)
  from m where s.job = m.job and s.name = m.step and s.state = 'open'
)
select job, on_job, policy, step, state from m;

-- release
-- with rows.id, rows.met, rows.wake, now
with n as materialized (select * from unnest($1::pg_catalog.uuid[], $2::int[], $3::pg_catalog.bool[]) as n (id, met,
    wake)),
over as materialized (
  select r.id, coalesce(r.pending, 1) - n.met as pending, r.waits <> 'resume' and (n.wake or coalesce(r.pending, 1) -
      n.met <= 0) as due
  from "holdfast"."ready" r join n on n.id = r.id where r.token is null and r.waits is not null
)
update "holdfast"."ready" r set pending = o.pending, waits = case when not o.due then r.waits end,
  run_at = case when o.due then greatest(coalesce($4::bigint, (extract(epoch from statement_timestamp()) *
      1000.0)::bigint), coalesce(r.due_at, 0)) else r.run_at end
from over o where r.id = o.id returning r.id, o.due, r.lane is not null as laned;

-- dependenciesOf
-- with id, limit
select d.job, d.on_job, d.policy, d.step, d.state, d.met_at from "holdfast"."dependency" d where d.job =
    $1::pg_catalog.uuid order by d.on_job limit $2::int;

-- childrenOf
-- with ids, limit
select id from "holdfast"."job" where parent_id = any($1::pg_catalog.uuid[]) order by id limit $2::int;

-- undoable
-- with ids
select job as id, bool_or(name = '$undo') as undoing from "holdfast"."step"
where job = any($1::pg_catalog.uuid[]) and ((undo and state = 'done') or name = '$undo') group by job;

-- startUndo
-- with rows.id, now, rows.state, rows.output
with marked as (update "holdfast"."ready" r set undoing = true where r.id = any($1::pg_catalog.uuid[]))
insert into "holdfast"."step" as s (job, name, seq, given_order, kind, state, attempt, tries, started_at, ended_at,
    wake_at, topic, child, undo, fails, given, output, error, label)
select n.id, '$undo', 2147483647, null, 'undo', 'open', 0, 0, coalesce($2::bigint, (extract(epoch from
    statement_timestamp()) * 1000.0)::bigint), null, null, null, null, false, 0, 2147483647, n.output, null, n.state
from unnest($1::pg_catalog.uuid[], $3::pg_catalog.text[], $4::pg_catalog.text[]) as n (id, state, output)
on conflict (job, name) do nothing returning s.job as id;

-- retrySteps
-- with ids
with forgotten as (delete from "holdfast"."step" where "holdfast"."step".job = any($1::pg_catalog.uuid[]) and case
  when not exists (select 1 from "holdfast"."step" m where m.job = "holdfast"."step".job and m.name = '$undo') then
      "holdfast"."step".state = 'open' and "holdfast"."step".kind = 'step'
  when exists (select 1 from "holdfast"."step" d where d.job = "holdfast"."step".job and d.undo and d.state = 'done'
    and not exists (select 1 from "holdfast"."step" u where u.job = d.job and u.name = 'undo:' || d.name and u.state =
        'done')) then "holdfast"."step".kind = 'undo' and "holdfast"."step".name <> '$undo' and "holdfast"."step".state
        <> 'done'
  else true end),
anew as (update "holdfast"."step" set attempt = 0 where "holdfast"."step".job = any($1::pg_catalog.uuid[]) and
    "holdfast"."step".state = 'failed' and not exists (select 1 from "holdfast"."step" m where m.job =
    "holdfast"."step".job and m.name = '$undo'))
update "holdfast"."ready" r set undoing = true where r.id = any(array(select m.job from "holdfast"."step" m where m.job
    = any($1::pg_catalog.uuid[]) and m.name = '$undo' and exists (select 1 from "holdfast"."step" d where d.job = m.job
    and d.undo and d.state = 'done'
    and not exists (select 1 from "holdfast"."step" u where u.job = d.job and u.name = 'undo:' || d.name and u.state =
        'done'))));

-- saveMachine
-- with id, token, session, now, attempt, rows.name, rows.seq, rows.kind, rows.state, rows.tries, rows.took,
--     rows.output, rows.label
with
held as materialized (
  select r.id from "holdfast"."ready" r where r.id = $1::pg_catalog.uuid and r.token = $2::bigint and r.session =
      $3::bigint and exists (select 1 from "holdfast"."session" s where s.id = $3::bigint and s.lease_until >
      coalesce($4::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)) for share
),
moved as (update "holdfast"."ready" r set attempt = $5::int, crashes = 0 from held h where r.id = h.id and $5::int is
    not null returning r.id)
insert into "holdfast"."step" as s (job, name, seq, given_order, kind, state, attempt, tries, started_at, ended_at,
    wake_at, topic, child, undo, fails, given, output, error, label)
select h.id, n.name, n.seq, n.seq, n.kind, n.state, n.tries, n.tries, coalesce($4::bigint, (extract(epoch from
    statement_timestamp()) * 1000.0)::bigint) - n.took, case when n.state = 'done' then coalesce($4::bigint,
    (extract(epoch from statement_timestamp()) * 1000.0)::bigint) end, null, null, null, false, 0, n.seq, n.output,
    null, n.label
from held h, unnest($6::pg_catalog.text[], $7::int[], $8::pg_catalog.text[], $9::pg_catalog.text[], $10::int[],
    $11::bigint[],
  $12::pg_catalog.text[], $13::pg_catalog.text[]) as n (name, seq, kind, state, tries, took, output, label)
on conflict (job, name) do update set seq = excluded.seq, given_order = excluded.given_order, given = excluded.given,
    state = excluded.state, attempt = excluded.attempt, tries = excluded.tries,
  started_at = excluded.started_at, ended_at = excluded.ended_at, output = excluded.output, label = excluded.label
  where excluded.seq >= s.seq
returning s.job as id;

-- advance
-- with id, token, session, now, extras
with
held as materialized (
  select r.id from "holdfast"."ready" r where r.id = $1::pg_catalog.uuid and r.token = $2::bigint and r.session =
      $3::bigint and exists (select 1 from "holdfast"."session" s where s.id = $3::bigint and s.lease_until >
      coalesce($4::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)) for share
)
update "holdfast"."job" j set extras = $5::pg_catalog.text from held h where j.id = h.id and j.id = $1::pg_catalog.uuid
    returning j.id;

-- stillHeld
-- with id, token, session
select r.id from "holdfast"."ready" r where r.id = $1::pg_catalog.uuid and r.token = $2::bigint and r.session =
    $3::bigint;

-- liveWorkflows
-- with names, after, limit
select r.id, l.name, j.input, j.extras, r.attempt, r.crashes, r.token is not null as running from "holdfast"."ready" r
    join "holdfast"."job_type" l on l.id = r.job_type join "holdfast"."job" j on j.id = r.id
where r.begun and l.name = any($1::pg_catalog.text[]) and r.id > coalesce($2::pg_catalog.uuid,
    '00000000-0000-0000-0000-000000000000'::pg_catalog.uuid) and exists (select 1 from "holdfast"."step" s where s.job =
    r.id)
order by r.id limit $3::int;

-- workflowRow
-- with id
select j.id, l.name, j.input, j.extras, r.attempt, r.crashes, r.token is not null as running from "holdfast"."ready" r
    join "holdfast"."job_type" l on l.id = r.job_type join "holdfast"."job" j on j.id = r.id where r.id =
    $1::pg_catalog.uuid
union all
select j.id, l.name, j.input, j.extras, h.attempt, h.crashes, false as running from "holdfast"."history" h join
    "holdfast"."job_type" l on l.id = h.job_type join "holdfast"."job" j on j.id = h.id where h.id = $1::pg_catalog.uuid
limit 1;

-- addBatch
-- with id, now, total, names, thenJob, thenName, policy
insert into "holdfast"."batch" (id, made_at, total, names, then_job, then_name, policy)
values ($1::pg_catalog.uuid, coalesce($2::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint),
    $3::int, $4::pg_catalog.text, $5::pg_catalog.uuid, $6::pg_catalog.text, $7::pg_catalog.text) on conflict do nothing;

-- addMembers
-- with rows.batch, rows.id
insert into "holdfast"."member" (batch, id) select * from unnest($1::pg_catalog.uuid[], $2::pg_catalog.uuid[]) on
    conflict do nothing;

-- walkBatches
-- with before, limit
select b.id, b.made_at, b.total, b.names, b.then_job, b.then_name, b.policy from "holdfast"."batch" b where b.id <
    $1::pg_catalog.uuid order by b.id desc limit $2::int;

-- tallyBatches
-- with ids, most
select n.id, pg_catalog.count(*) as counted, pg_catalog.count(*) filter (where h.state = 'done') as done,
    pg_catalog.count(*) filter (where h.state = 'dead') as dead,
  pg_catalog.count(*) filter (where h.state = 'cancelled') as cancelled, pg_catalog.count(r.token) as running,
  min(coalesce(h.started_at, r.started_at)) as started_at, max(h.ended_at) as ended_at
from pg_catalog.unnest($1::pg_catalog.uuid[]) as n (id)
cross join lateral (select k.id from "holdfast"."member" k where k.batch = n.id order by k.id desc limit $2::int) m
left join lateral (select k.state, k.started_at, k.ended_at from "holdfast"."history" k where k.id = m.id offset 0) h on
    true
left join lateral (select k.token, k.started_at from "holdfast"."ready" k where k.id = m.id and h.state is null offset
    0) r on true
group by n.id;

-- batchesOf
-- with id, limit
select b.id, b.made_at, b.total, b.names, b.then_job, b.then_name, b.policy, x.then from (
  (select m.batch, false as then from "holdfast"."member" m where m.id = $1::pg_catalog.uuid order by m.batch desc limit
      $2::int)
  union all
  (select k.id, true from "holdfast"."batch" k where k.then_job = $1::pg_catalog.uuid order by k.id desc limit $2::int)
) x cross join lateral (select * from "holdfast"."batch" k where k.id = x.batch offset 0) b
order by b.id desc, x.then limit $2::int;

-- deleteBatches
-- with before, limit
delete from "holdfast"."batch" where id = any(array(
  select b.id from "holdfast"."batch" b where b.id < $1::pg_catalog.uuid and not exists (select 1 from
      "holdfast"."member" m where m.batch = b.id)
  order by b.id limit $2::int
)) returning id;

-- browseLive, 1 of 2
-- with now, scan, limit
with walked as materialized (select r.id, r.job_type, case when r.token is not null then 'running' when r.run_at >=
    8633688480000000 then 'waiting'
  when r.run_at > coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) then case when
      r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end as state, r.failure_group,
      r.attempt, r.session, r.started_at, null::bigint as ended_at from "holdfast"."ready" r where true order by r.id
      desc limit $2::int),
found as (
  select w.id, w.state, w.job_type from walked w
  where true
)
(select f.id, null::pg_catalog.uuid as bottom, null::bigint as walked from found f order by f.id desc limit $3::int)
union all
select null, (select id from (select id from walked order by id limit 1) lowest where true), (select pg_catalog.count(*)
    from walked);

-- browseLive, 2 of 2
-- with now, cursor, before, scan, paths, wants, from, states, queues, names, group, attemptMin, attemptMax, endedMin,
--     endedMax, ranMin, ranMax, worker, error, lane, key, since, until, workflow, trace, search, limit
with walked as materialized (select r.id, r.job_type, case when r.token is not null then 'running' when r.run_at >=
    8633688480000000 then 'waiting'
  when r.run_at > coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) then case when
      r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end as state, r.failure_group,
      r.attempt, r.session, r.started_at, null::bigint as ended_at from "holdfast"."ready" r where r.id <
      least($2::pg_catalog.uuid, $3::pg_catalog.uuid) order by r.id desc limit $4::int),
wanted as materialized (
  select p.want, array(select json_array_elements_text(p.path::pg_catalog.json)) as path from
      unnest($5::pg_catalog.text[], $6::pg_catalog.text[]) as p (path, want)
),
found as (
  select w.id, w.state, w.job_type from walked w
  where w.id >= $7::pg_catalog.uuid
    and w.state = any($8::pg_catalog.text[])
    and w.job_type in (select l.id from "holdfast"."job_type" l where l.queue = any($9::pg_catalog.text[])
    and l.name = any($10::pg_catalog.text[]))
    and w.failure_group = $11::pg_catalog.text
    and w.failure_group is not null
    and w.attempt >= $12::bigint
    and w.attempt <= $13::bigint
    and w.ended_at >= $14::bigint
    and w.ended_at <= $15::bigint
    and w.state in ('running', 'done', 'dead', 'cancelled')
    and coalesce(w.ended_at, coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)) -
        w.started_at >= $16::bigint
    and coalesce(w.ended_at, coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)) -
        w.started_at between 0 and $17::bigint
    and w.session in (select s.id from "holdfast"."session" s where s.worker_id = $18::pg_catalog.text or s.name =
        $18::pg_catalog.text)
    and exists (select 1 from "holdfast"."ready" e where e.id = w.id and strpos(lower(e.errors collate "C"),
        $19::pg_catalog.text) > 0 offset 0)
    and exists (
      select 1 from "holdfast"."job" j where j.id = w.id and j.lane = $20::pg_catalog.text
    and j.key = $21::pg_catalog.text
    and j.created_at >= $22::bigint
    and j.created_at < $23::bigint
    and j.parent_id = $24::pg_catalog.uuid
    and j.extras like $25::pg_catalog.text
    and (strpos(lower(j.input collate "C"), $26::pg_catalog.text) > 0
          or strpos(lower(j.context collate "C"), $26::pg_catalog.text) > 0 or exists (select 1 from "holdfast"."ready"
              e where e.id = w.id and strpos(lower(e.errors collate "C"), $26::pg_catalog.text) > 0 offset 0))
    and case when j.input ~ '\\u(0000|[dD][89a-fA-F])' then false else not exists (
          select 1 from wanted x where coalesce(j.input::pg_catalog.json #>> x.path, case when (j.input::pg_catalog.json
              #> x.path) is not null then 'null' end)
            is distinct from x.want) end offset 0)
)
(select f.id, null::pg_catalog.uuid as bottom, null::bigint as walked from found f order by f.id desc limit $27::int)
union all
select null, (select id from (select id from walked order by id limit 1) lowest where id > $7::pg_catalog.uuid), (select
    pg_catalog.count(*) from walked);

-- browseHeld, 1 of 2
-- with now, scan, limit
with walked as materialized (
  select r.id, r.job_type, case when r.token is not null then 'running' when r.run_at >= 8633688480000000 then 'waiting'
  when r.run_at > coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) then case when
      r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end as state, r.failure_group,
      r.attempt, r.session, r.started_at, null::bigint as ended_at from "holdfast"."claim" c cross join lateral
      pg_catalog.unnest(c.ids) as o (id)
  cross join lateral (select * from "holdfast"."ready" k where k.id = o.id and k.token = c.token offset 0) r where true
      order by r.id desc limit $2::int),
found as (
  select w.id, w.state, w.job_type from walked w
  where true
)
(select f.id, null::pg_catalog.uuid as bottom, null::bigint as walked from found f order by f.id desc limit $3::int)
union all
select null, (select id from (select id from walked order by id limit 1) lowest where true), (select pg_catalog.count(*)
    from walked);

-- browseHeld, 2 of 2
-- with now, cursor, before, scan, paths, wants, from, states, queues, names, group, attemptMin, attemptMax, endedMin,
--     endedMax, ranMin, ranMax, worker, error, lane, key, since, until, workflow, trace, search, limit
with walked as materialized (
  select r.id, r.job_type, case when r.token is not null then 'running' when r.run_at >= 8633688480000000 then 'waiting'
  when r.run_at > coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) then case when
      r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end as state, r.failure_group,
      r.attempt, r.session, r.started_at, null::bigint as ended_at from "holdfast"."claim" c cross join lateral
      pg_catalog.unnest(c.ids) as o (id)
  cross join lateral (select * from "holdfast"."ready" k where k.id = o.id and k.token = c.token offset 0) r where r.id
      < least($2::pg_catalog.uuid, $3::pg_catalog.uuid) order by r.id desc limit $4::int),
wanted as materialized (
  select p.want, array(select json_array_elements_text(p.path::pg_catalog.json)) as path from
      unnest($5::pg_catalog.text[], $6::pg_catalog.text[]) as p (path, want)
),
found as (
  select w.id, w.state, w.job_type from walked w
  where w.id >= $7::pg_catalog.uuid
    and w.state = any($8::pg_catalog.text[])
    and w.job_type in (select l.id from "holdfast"."job_type" l where l.queue = any($9::pg_catalog.text[])
    and l.name = any($10::pg_catalog.text[]))
    and w.failure_group = $11::pg_catalog.text
    and w.failure_group is not null
    and w.attempt >= $12::bigint
    and w.attempt <= $13::bigint
    and w.ended_at >= $14::bigint
    and w.ended_at <= $15::bigint
    and w.state in ('running', 'done', 'dead', 'cancelled')
    and coalesce(w.ended_at, coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)) -
        w.started_at >= $16::bigint
    and coalesce(w.ended_at, coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)) -
        w.started_at between 0 and $17::bigint
    and w.session in (select s.id from "holdfast"."session" s where s.worker_id = $18::pg_catalog.text or s.name =
        $18::pg_catalog.text)
    and exists (select 1 from "holdfast"."ready" e where e.id = w.id and strpos(lower(e.errors collate "C"),
        $19::pg_catalog.text) > 0 offset 0)
    and exists (
      select 1 from "holdfast"."job" j where j.id = w.id and j.lane = $20::pg_catalog.text
    and j.key = $21::pg_catalog.text
    and j.created_at >= $22::bigint
    and j.created_at < $23::bigint
    and j.parent_id = $24::pg_catalog.uuid
    and j.extras like $25::pg_catalog.text
    and (strpos(lower(j.input collate "C"), $26::pg_catalog.text) > 0
          or strpos(lower(j.context collate "C"), $26::pg_catalog.text) > 0 or exists (select 1 from "holdfast"."ready"
              e where e.id = w.id and strpos(lower(e.errors collate "C"), $26::pg_catalog.text) > 0 offset 0))
    and case when j.input ~ '\\u(0000|[dD][89a-fA-F])' then false else not exists (
          select 1 from wanted x where coalesce(j.input::pg_catalog.json #>> x.path, case when (j.input::pg_catalog.json
              #> x.path) is not null then 'null' end)
            is distinct from x.want) end offset 0)
)
(select f.id, null::pg_catalog.uuid as bottom, null::bigint as walked from found f order by f.id desc limit $27::int)
union all
select null, (select id from (select id from walked order by id limit 1) lowest where id > $7::pg_catalog.uuid), (select
    pg_catalog.count(*) from walked);

-- browseFailed, 1 of 2
-- with now, scan, limit
with walked as materialized (select r.id, r.job_type, case when r.token is not null then 'running' when r.run_at >=
    8633688480000000 then 'waiting'
  when r.run_at > coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) then case when
      r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end as state, r.failure_group,
      r.attempt, r.session, r.started_at, null::bigint as ended_at from "holdfast"."ready" r where r.failure_group is
      not null and true order by r.id desc limit $2::int),
found as (
  select w.id, w.state, w.job_type from walked w
  where true
)
(select f.id, null::pg_catalog.uuid as bottom, null::bigint as walked from found f order by f.id desc limit $3::int)
union all
select null, (select id from (select id from walked order by id limit 1) lowest where true), (select pg_catalog.count(*)
    from walked);

-- browseFailed, 2 of 2
-- with now, cursor, before, scan, paths, wants, from, states, queues, names, group, attemptMin, attemptMax, endedMin,
--     endedMax, ranMin, ranMax, worker, error, lane, key, since, until, workflow, trace, search, limit
with walked as materialized (select r.id, r.job_type, case when r.token is not null then 'running' when r.run_at >=
    8633688480000000 then 'waiting'
  when r.run_at > coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) then case when
      r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end as state, r.failure_group,
      r.attempt, r.session, r.started_at, null::bigint as ended_at from "holdfast"."ready" r where r.failure_group is
      not null and r.id < least($2::pg_catalog.uuid, $3::pg_catalog.uuid) order by r.id desc limit $4::int),
wanted as materialized (
  select p.want, array(select json_array_elements_text(p.path::pg_catalog.json)) as path from
      unnest($5::pg_catalog.text[], $6::pg_catalog.text[]) as p (path, want)
),
found as (
  select w.id, w.state, w.job_type from walked w
  where w.id >= $7::pg_catalog.uuid
    and w.state = any($8::pg_catalog.text[])
    and w.job_type in (select l.id from "holdfast"."job_type" l where l.queue = any($9::pg_catalog.text[])
    and l.name = any($10::pg_catalog.text[]))
    and w.failure_group = $11::pg_catalog.text
    and w.failure_group is not null
    and w.attempt >= $12::bigint
    and w.attempt <= $13::bigint
    and w.ended_at >= $14::bigint
    and w.ended_at <= $15::bigint
    and w.state in ('running', 'done', 'dead', 'cancelled')
    and coalesce(w.ended_at, coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)) -
        w.started_at >= $16::bigint
    and coalesce(w.ended_at, coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)) -
        w.started_at between 0 and $17::bigint
    and w.session in (select s.id from "holdfast"."session" s where s.worker_id = $18::pg_catalog.text or s.name =
        $18::pg_catalog.text)
    and exists (select 1 from "holdfast"."ready" e where e.id = w.id and strpos(lower(e.errors collate "C"),
        $19::pg_catalog.text) > 0 offset 0)
    and exists (
      select 1 from "holdfast"."job" j where j.id = w.id and j.lane = $20::pg_catalog.text
    and j.key = $21::pg_catalog.text
    and j.created_at >= $22::bigint
    and j.created_at < $23::bigint
    and j.parent_id = $24::pg_catalog.uuid
    and j.extras like $25::pg_catalog.text
    and (strpos(lower(j.input collate "C"), $26::pg_catalog.text) > 0
          or strpos(lower(j.context collate "C"), $26::pg_catalog.text) > 0 or exists (select 1 from "holdfast"."ready"
              e where e.id = w.id and strpos(lower(e.errors collate "C"), $26::pg_catalog.text) > 0 offset 0))
    and case when j.input ~ '\\u(0000|[dD][89a-fA-F])' then false else not exists (
          select 1 from wanted x where coalesce(j.input::pg_catalog.json #>> x.path, case when (j.input::pg_catalog.json
              #> x.path) is not null then 'null' end)
            is distinct from x.want) end offset 0)
)
(select f.id, null::pg_catalog.uuid as bottom, null::bigint as walked from found f order by f.id desc limit $27::int)
union all
select null, (select id from (select id from walked order by id limit 1) lowest where id > $7::pg_catalog.uuid), (select
    pg_catalog.count(*) from walked);

-- browseEnded, 1 of 2
-- with scan, limit
with walked as materialized (select h.id, h.job_type, h.state, h.failure_group, h.attempt, h.session, h.started_at,
    h.ended_at from "holdfast"."history" h where true order by h.id desc limit $1::int),
found as (
  select w.id, w.state, w.job_type from walked w
  where true
)
(select f.id, null::pg_catalog.uuid as bottom, null::bigint as walked from found f order by f.id desc limit $2::int)
union all
select null, (select id from (select id from walked order by id limit 1) lowest where true), (select pg_catalog.count(*)
    from walked);

-- browseEnded, 2 of 2
-- with cursor, before, scan, paths, wants, from, states, queues, names, group, attemptMin, attemptMax, endedMin,
--     endedMax, now, ranMin, ranMax, worker, error, lane, key, since, until, workflow, trace, search, limit
with walked as materialized (select h.id, h.job_type, h.state, h.failure_group, h.attempt, h.session, h.started_at,
    h.ended_at from "holdfast"."history" h where h.id < least($1::pg_catalog.uuid, $2::pg_catalog.uuid) order by h.id
    desc limit $3::int),
wanted as materialized (
  select p.want, array(select json_array_elements_text(p.path::pg_catalog.json)) as path from
      unnest($4::pg_catalog.text[], $5::pg_catalog.text[]) as p (path, want)
),
found as (
  select w.id, w.state, w.job_type from walked w
  where w.id >= $6::pg_catalog.uuid
    and w.state = any($7::pg_catalog.text[])
    and w.job_type in (select l.id from "holdfast"."job_type" l where l.queue = any($8::pg_catalog.text[])
    and l.name = any($9::pg_catalog.text[]))
    and w.failure_group = $10::pg_catalog.text
    and w.failure_group is not null
    and w.attempt >= $11::bigint
    and w.attempt <= $12::bigint
    and w.ended_at >= $13::bigint
    and w.ended_at <= $14::bigint
    and w.state in ('running', 'done', 'dead', 'cancelled')
    and coalesce(w.ended_at, coalesce($15::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)) -
        w.started_at >= $16::bigint
    and coalesce(w.ended_at, coalesce($15::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)) -
        w.started_at between 0 and $17::bigint
    and w.session in (select s.id from "holdfast"."session" s where s.worker_id = $18::pg_catalog.text or s.name =
        $18::pg_catalog.text)
    and exists (select 1 from "holdfast"."history" e where e.id = w.id and strpos(lower(e.errors collate "C"),
        $19::pg_catalog.text) > 0 offset 0)
    and exists (
      select 1 from "holdfast"."job" j where j.id = w.id and j.lane = $20::pg_catalog.text
    and j.key = $21::pg_catalog.text
    and j.created_at >= $22::bigint
    and j.created_at < $23::bigint
    and j.parent_id = $24::pg_catalog.uuid
    and j.extras like $25::pg_catalog.text
    and (strpos(lower(j.input collate "C"), $26::pg_catalog.text) > 0
          or strpos(lower(j.context collate "C"), $26::pg_catalog.text) > 0 or exists (select 1 from
              "holdfast"."history" e where e.id = w.id and strpos(lower(e.errors collate "C"), $26::pg_catalog.text) > 0
              offset 0))
    and case when j.input ~ '\\u(0000|[dD][89a-fA-F])' then false else not exists (
          select 1 from wanted x where coalesce(j.input::pg_catalog.json #>> x.path, case when (j.input::pg_catalog.json
              #> x.path) is not null then 'null' end)
            is distinct from x.want) end offset 0)
)
(select f.id, null::pg_catalog.uuid as bottom, null::bigint as walked from found f order by f.id desc limit $27::int)
union all
select null, (select id from (select id from walked order by id limit 1) lowest where id > $6::pg_catalog.uuid), (select
    pg_catalog.count(*) from walked);

-- browseNotDone, 1 of 2
-- with scan, limit
with walked as materialized (select h.id, h.job_type, h.state, h.failure_group, h.attempt, h.session, h.started_at,
    h.ended_at from "holdfast"."history" h where h.state <> 'done' and true order by h.id desc limit $1::int),
found as (
  select w.id, w.state, w.job_type from walked w
  where true
)
(select f.id, null::pg_catalog.uuid as bottom, null::bigint as walked from found f order by f.id desc limit $2::int)
union all
select null, (select id from (select id from walked order by id limit 1) lowest where true), (select pg_catalog.count(*)
    from walked);

-- browseNotDone, 2 of 2
-- with cursor, before, scan, paths, wants, from, states, queues, names, group, attemptMin, attemptMax, endedMin,
--     endedMax, now, ranMin, ranMax, worker, error, lane, key, since, until, workflow, trace, search, limit
with walked as materialized (select h.id, h.job_type, h.state, h.failure_group, h.attempt, h.session, h.started_at,
    h.ended_at from "holdfast"."history" h where h.state <> 'done' and h.id < least($1::pg_catalog.uuid,
    $2::pg_catalog.uuid) order by h.id desc limit $3::int),
wanted as materialized (
  select p.want, array(select json_array_elements_text(p.path::pg_catalog.json)) as path from
      unnest($4::pg_catalog.text[], $5::pg_catalog.text[]) as p (path, want)
),
found as (
  select w.id, w.state, w.job_type from walked w
  where w.id >= $6::pg_catalog.uuid
    and w.state = any($7::pg_catalog.text[])
    and w.job_type in (select l.id from "holdfast"."job_type" l where l.queue = any($8::pg_catalog.text[])
    and l.name = any($9::pg_catalog.text[]))
    and w.failure_group = $10::pg_catalog.text
    and w.failure_group is not null
    and w.attempt >= $11::bigint
    and w.attempt <= $12::bigint
    and w.ended_at >= $13::bigint
    and w.ended_at <= $14::bigint
    and w.state in ('running', 'done', 'dead', 'cancelled')
    and coalesce(w.ended_at, coalesce($15::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)) -
        w.started_at >= $16::bigint
    and coalesce(w.ended_at, coalesce($15::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)) -
        w.started_at between 0 and $17::bigint
    and w.session in (select s.id from "holdfast"."session" s where s.worker_id = $18::pg_catalog.text or s.name =
        $18::pg_catalog.text)
    and exists (select 1 from "holdfast"."history" e where e.id = w.id and strpos(lower(e.errors collate "C"),
        $19::pg_catalog.text) > 0 offset 0)
    and exists (
      select 1 from "holdfast"."job" j where j.id = w.id and j.lane = $20::pg_catalog.text
    and j.key = $21::pg_catalog.text
    and j.created_at >= $22::bigint
    and j.created_at < $23::bigint
    and j.parent_id = $24::pg_catalog.uuid
    and j.extras like $25::pg_catalog.text
    and (strpos(lower(j.input collate "C"), $26::pg_catalog.text) > 0
          or strpos(lower(j.context collate "C"), $26::pg_catalog.text) > 0 or exists (select 1 from
              "holdfast"."history" e where e.id = w.id and strpos(lower(e.errors collate "C"), $26::pg_catalog.text) > 0
              offset 0))
    and case when j.input ~ '\\u(0000|[dD][89a-fA-F])' then false else not exists (
          select 1 from wanted x where coalesce(j.input::pg_catalog.json #>> x.path, case when (j.input::pg_catalog.json
              #> x.path) is not null then 'null' end)
            is distinct from x.want) end offset 0)
)
(select f.id, null::pg_catalog.uuid as bottom, null::bigint as walked from found f order by f.id desc limit $27::int)
union all
select null, (select id from (select id from walked order by id limit 1) lowest where id > $6::pg_catalog.uuid), (select
    pg_catalog.count(*) from walked);

-- browseChildren, 1 of 2
-- with now, workflow, scan, limit
with walked as materialized (
  select c.id, coalesce(r.job_type, h.job_type) as job_type, case when r.id is null then h.state else case when r.token
      is not null then 'running' when r.run_at >= 8633688480000000 then 'waiting'
  when r.run_at > coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) then case when
      r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end end as state,
    coalesce(r.failure_group, h.failure_group) as failure_group, coalesce(r.attempt, h.attempt) as attempt,
        coalesce(r.session, h.session) as session,
    coalesce(r.started_at, h.started_at) as started_at, h.ended_at
  from (select p.id from "holdfast"."job" p where p.parent_id = $2::pg_catalog.uuid and true order by p.id desc limit
      $3::int) c
  left join lateral (select * from "holdfast"."ready" k where k.id = c.id offset 0) r on true
  left join lateral (select * from "holdfast"."history" k where k.id = c.id offset 0) h on true),
found as (
  select w.id, w.state, w.job_type from walked w
  where true
)
(select f.id, null::pg_catalog.uuid as bottom, null::bigint as walked from found f order by f.id desc limit $4::int)
union all
select null, (select id from (select id from walked order by id limit 1) lowest where true), (select pg_catalog.count(*)
    from walked);

-- browseChildren, 2 of 2
-- with now, workflow, cursor, before, scan, paths, wants, from, states, queues, names, group, attemptMin, attemptMax,
--     endedMin, endedMax, ranMin, ranMax, worker, error, lane, key, since, until, trace, search, limit
with walked as materialized (
  select c.id, coalesce(r.job_type, h.job_type) as job_type, case when r.id is null then h.state else case when r.token
      is not null then 'running' when r.run_at >= 8633688480000000 then 'waiting'
  when r.run_at > coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) then case when
      r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end end as state,
    coalesce(r.failure_group, h.failure_group) as failure_group, coalesce(r.attempt, h.attempt) as attempt,
        coalesce(r.session, h.session) as session,
    coalesce(r.started_at, h.started_at) as started_at, h.ended_at
  from (select p.id from "holdfast"."job" p where p.parent_id = $2::pg_catalog.uuid and p.id <
      least($3::pg_catalog.uuid, $4::pg_catalog.uuid) order by p.id desc limit $5::int) c
  left join lateral (select * from "holdfast"."ready" k where k.id = c.id offset 0) r on true
  left join lateral (select * from "holdfast"."history" k where k.id = c.id offset 0) h on true),
wanted as materialized (
  select p.want, array(select json_array_elements_text(p.path::pg_catalog.json)) as path from
      unnest($6::pg_catalog.text[], $7::pg_catalog.text[]) as p (path, want)
),
found as (
  select w.id, w.state, w.job_type from walked w
  where w.id >= $8::pg_catalog.uuid
    and w.state = any($9::pg_catalog.text[])
    and w.job_type in (select l.id from "holdfast"."job_type" l where l.queue = any($10::pg_catalog.text[])
    and l.name = any($11::pg_catalog.text[]))
    and w.failure_group = $12::pg_catalog.text
    and w.failure_group is not null
    and w.attempt >= $13::bigint
    and w.attempt <= $14::bigint
    and w.ended_at >= $15::bigint
    and w.ended_at <= $16::bigint
    and w.state in ('running', 'done', 'dead', 'cancelled')
    and coalesce(w.ended_at, coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)) -
        w.started_at >= $17::bigint
    and coalesce(w.ended_at, coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)) -
        w.started_at between 0 and $18::bigint
    and w.session in (select s.id from "holdfast"."session" s where s.worker_id = $19::pg_catalog.text or s.name =
        $19::pg_catalog.text)
    and exists (select 1 from (select id, errors from "holdfast"."ready" union all select id, errors from
        "holdfast"."history") e where e.id = w.id and strpos(lower(e.errors collate "C"), $20::pg_catalog.text) > 0
        offset 0)
    and exists (
      select 1 from "holdfast"."job" j where j.id = w.id and j.lane = $21::pg_catalog.text
    and j.key = $22::pg_catalog.text
    and j.created_at >= $23::bigint
    and j.created_at < $24::bigint
    and j.parent_id = $2::pg_catalog.uuid
    and j.extras like $25::pg_catalog.text
    and (strpos(lower(j.input collate "C"), $26::pg_catalog.text) > 0
          or strpos(lower(j.context collate "C"), $26::pg_catalog.text) > 0 or exists (select 1 from (select id, errors
              from "holdfast"."ready" union all select id, errors from "holdfast"."history") e where e.id = w.id and
              strpos(lower(e.errors collate "C"), $26::pg_catalog.text) > 0 offset 0))
    and case when j.input ~ '\\u(0000|[dD][89a-fA-F])' then false else not exists (
          select 1 from wanted x where coalesce(j.input::pg_catalog.json #>> x.path, case when (j.input::pg_catalog.json
              #> x.path) is not null then 'null' end)
            is distinct from x.want) end offset 0)
)
(select f.id, null::pg_catalog.uuid as bottom, null::bigint as walked from found f order by f.id desc limit $27::int)
union all
select null, (select id from (select id from walked order by id limit 1) lowest where id > $8::pg_catalog.uuid), (select
    pg_catalog.count(*) from walked);

-- browseNamed, 1 of 2
-- with now, ids, scan, limit
with walked as materialized (
  select c.id, coalesce(r.job_type, h.job_type) as job_type, case when r.id is null then h.state else case when r.token
      is not null then 'running' when r.run_at >= 8633688480000000 then 'waiting'
  when r.run_at > coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) then case when
      r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end end as state,
    coalesce(r.failure_group, h.failure_group) as failure_group, coalesce(r.attempt, h.attempt) as attempt,
        coalesce(r.session, h.session) as session,
    coalesce(r.started_at, h.started_at) as started_at, h.ended_at
  from (select p.id from
    "holdfast"."job" p where p.id = any($2::pg_catalog.uuid[]) and true and true order by p.id desc limit $3::int) c
  left join lateral (select * from "holdfast"."ready" k where k.id = c.id offset 0) r on true
  left join lateral (select * from "holdfast"."history" k where k.id = c.id offset 0) h on true),
found as (
  select w.id, w.state, w.job_type from walked w
  where true
)
(select f.id, null::pg_catalog.uuid as bottom, null::bigint as walked from found f order by f.id desc limit $4::int)
union all
select null, (select id from (select id from walked order by id limit 1) lowest where true), (select pg_catalog.count(*)
    from walked);

-- browseNamed, 2 of 2
-- with now, ids, workflow, batch, cursor, before, scan, paths, wants, from, states, queues, names, group, attemptMin,
--     attemptMax, endedMin, endedMax, ranMin, ranMax, worker, error, lane, key, since, until, trace, search, limit
with walked as materialized (
  select c.id, coalesce(r.job_type, h.job_type) as job_type, case when r.id is null then h.state else case when r.token
      is not null then 'running' when r.run_at >= 8633688480000000 then 'waiting'
  when r.run_at > coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) then case when
      r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end end as state,
    coalesce(r.failure_group, h.failure_group) as failure_group, coalesce(r.attempt, h.attempt) as attempt,
        coalesce(r.session, h.session) as session,
    coalesce(r.started_at, h.started_at) as started_at, h.ended_at
  from (select p.id from
    "holdfast"."job" p where p.id = any($2::pg_catalog.uuid[]) and p.parent_id = $3::pg_catalog.uuid
    and exists (select 1 from "holdfast"."member" m where m.batch = $4::pg_catalog.uuid and m.id = p.id) and p.id <
        least($5::pg_catalog.uuid, $6::pg_catalog.uuid) order by p.id desc limit $7::int) c
  left join lateral (select * from "holdfast"."ready" k where k.id = c.id offset 0) r on true
  left join lateral (select * from "holdfast"."history" k where k.id = c.id offset 0) h on true),
wanted as materialized (
  select p.want, array(select json_array_elements_text(p.path::pg_catalog.json)) as path from
      unnest($8::pg_catalog.text[], $9::pg_catalog.text[]) as p (path, want)
),
found as (
  select w.id, w.state, w.job_type from walked w
  where w.id >= $10::pg_catalog.uuid
    and w.state = any($11::pg_catalog.text[])
    and w.job_type in (select l.id from "holdfast"."job_type" l where l.queue = any($12::pg_catalog.text[])
    and l.name = any($13::pg_catalog.text[]))
    and w.failure_group = $14::pg_catalog.text
    and w.failure_group is not null
    and w.attempt >= $15::bigint
    and w.attempt <= $16::bigint
    and w.ended_at >= $17::bigint
    and w.ended_at <= $18::bigint
    and w.state in ('running', 'done', 'dead', 'cancelled')
    and coalesce(w.ended_at, coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)) -
        w.started_at >= $19::bigint
    and coalesce(w.ended_at, coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)) -
        w.started_at between 0 and $20::bigint
    and w.session in (select s.id from "holdfast"."session" s where s.worker_id = $21::pg_catalog.text or s.name =
        $21::pg_catalog.text)
    and exists (select 1 from (select id, errors from "holdfast"."ready" union all select id, errors from
        "holdfast"."history") e where e.id = w.id and strpos(lower(e.errors collate "C"), $22::pg_catalog.text) > 0
        offset 0)
    and exists (
      select 1 from "holdfast"."job" j where j.id = w.id and j.lane = $23::pg_catalog.text
    and j.key = $24::pg_catalog.text
    and j.created_at >= $25::bigint
    and j.created_at < $26::bigint
    and j.parent_id = $3::pg_catalog.uuid
    and j.extras like $27::pg_catalog.text
    and (strpos(lower(j.input collate "C"), $28::pg_catalog.text) > 0
          or strpos(lower(j.context collate "C"), $28::pg_catalog.text) > 0 or exists (select 1 from (select id, errors
              from "holdfast"."ready" union all select id, errors from "holdfast"."history") e where e.id = w.id and
              strpos(lower(e.errors collate "C"), $28::pg_catalog.text) > 0 offset 0))
    and case when j.input ~ '\\u(0000|[dD][89a-fA-F])' then false else not exists (
          select 1 from wanted x where coalesce(j.input::pg_catalog.json #>> x.path, case when (j.input::pg_catalog.json
              #> x.path) is not null then 'null' end)
            is distinct from x.want) end offset 0)
)
(select f.id, null::pg_catalog.uuid as bottom, null::bigint as walked from found f order by f.id desc limit $29::int)
union all
select null, (select id from (select id from walked order by id limit 1) lowest where id > $10::pg_catalog.uuid),
    (select pg_catalog.count(*) from walked);

-- browseMembers, 1 of 2
-- with now, batch, scan, limit
with walked as materialized (
  select c.id, coalesce(r.job_type, h.job_type) as job_type, case when r.id is null then h.state else case when r.token
      is not null then 'running' when r.run_at >= 8633688480000000 then 'waiting'
  when r.run_at > coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) then case when
      r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end end as state,
    coalesce(r.failure_group, h.failure_group) as failure_group, coalesce(r.attempt, h.attempt) as attempt,
        coalesce(r.session, h.session) as session,
    coalesce(r.started_at, h.started_at) as started_at, h.ended_at
  from (select p.id from "holdfast"."member" p where p.batch = $2::pg_catalog.uuid and true order by p.id desc limit
      $3::int) c
  left join lateral (select * from "holdfast"."ready" k where k.id = c.id offset 0) r on true
  left join lateral (select * from "holdfast"."history" k where k.id = c.id offset 0) h on true),
found as (
  select w.id, w.state, w.job_type from walked w
  where true
)
(select f.id, null::pg_catalog.uuid as bottom, null::bigint as walked from found f order by f.id desc limit $4::int)
union all
select null, (select id from (select id from walked order by id limit 1) lowest where true), (select pg_catalog.count(*)
    from walked);

-- browseMembers, 2 of 2
-- with now, batch, cursor, before, scan, paths, wants, from, states, queues, names, group, attemptMin, attemptMax,
--     endedMin, endedMax, ranMin, ranMax, worker, error, lane, key, since, until, workflow, trace, search, limit
with walked as materialized (
  select c.id, coalesce(r.job_type, h.job_type) as job_type, case when r.id is null then h.state else case when r.token
      is not null then 'running' when r.run_at >= 8633688480000000 then 'waiting'
  when r.run_at > coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) then case when
      r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end end as state,
    coalesce(r.failure_group, h.failure_group) as failure_group, coalesce(r.attempt, h.attempt) as attempt,
        coalesce(r.session, h.session) as session,
    coalesce(r.started_at, h.started_at) as started_at, h.ended_at
  from (select p.id from "holdfast"."member" p where p.batch = $2::pg_catalog.uuid and p.id < least($3::pg_catalog.uuid,
      $4::pg_catalog.uuid) order by p.id desc limit $5::int) c
  left join lateral (select * from "holdfast"."ready" k where k.id = c.id offset 0) r on true
  left join lateral (select * from "holdfast"."history" k where k.id = c.id offset 0) h on true),
wanted as materialized (
  select p.want, array(select json_array_elements_text(p.path::pg_catalog.json)) as path from
      unnest($6::pg_catalog.text[], $7::pg_catalog.text[]) as p (path, want)
),
found as (
  select w.id, w.state, w.job_type from walked w
  where w.id >= $8::pg_catalog.uuid
    and w.state = any($9::pg_catalog.text[])
    and w.job_type in (select l.id from "holdfast"."job_type" l where l.queue = any($10::pg_catalog.text[])
    and l.name = any($11::pg_catalog.text[]))
    and w.failure_group = $12::pg_catalog.text
    and w.failure_group is not null
    and w.attempt >= $13::bigint
    and w.attempt <= $14::bigint
    and w.ended_at >= $15::bigint
    and w.ended_at <= $16::bigint
    and w.state in ('running', 'done', 'dead', 'cancelled')
    and coalesce(w.ended_at, coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)) -
        w.started_at >= $17::bigint
    and coalesce(w.ended_at, coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)) -
        w.started_at between 0 and $18::bigint
    and w.session in (select s.id from "holdfast"."session" s where s.worker_id = $19::pg_catalog.text or s.name =
        $19::pg_catalog.text)
    and exists (select 1 from (select id, errors from "holdfast"."ready" union all select id, errors from
        "holdfast"."history") e where e.id = w.id and strpos(lower(e.errors collate "C"), $20::pg_catalog.text) > 0
        offset 0)
    and exists (
      select 1 from "holdfast"."job" j where j.id = w.id and j.lane = $21::pg_catalog.text
    and j.key = $22::pg_catalog.text
    and j.created_at >= $23::bigint
    and j.created_at < $24::bigint
    and j.parent_id = $25::pg_catalog.uuid
    and j.extras like $26::pg_catalog.text
    and (strpos(lower(j.input collate "C"), $27::pg_catalog.text) > 0
          or strpos(lower(j.context collate "C"), $27::pg_catalog.text) > 0 or exists (select 1 from (select id, errors
              from "holdfast"."ready" union all select id, errors from "holdfast"."history") e where e.id = w.id and
              strpos(lower(e.errors collate "C"), $27::pg_catalog.text) > 0 offset 0))
    and case when j.input ~ '\\u(0000|[dD][89a-fA-F])' then false else not exists (
          select 1 from wanted x where coalesce(j.input::pg_catalog.json #>> x.path, case when (j.input::pg_catalog.json
              #> x.path) is not null then 'null' end)
            is distinct from x.want) end offset 0)
)
(select f.id, null::pg_catalog.uuid as bottom, null::bigint as walked from found f order by f.id desc limit $28::int)
union all
select null, (select id from (select id from walked order by id limit 1) lowest where id > $8::pg_catalog.uuid), (select
    pg_catalog.count(*) from walked);

-- tallyLive, 1 of 2
-- with now, scan
with walked as materialized (select r.id, r.job_type, case when r.token is not null then 'running' when r.run_at >=
    8633688480000000 then 'waiting'
  when r.run_at > coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) then case when
      r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end as state, r.failure_group,
      r.attempt, r.session, r.started_at, null::bigint as ended_at from "holdfast"."ready" r where true order by r.id
      desc limit $2::int),
found as (
  select w.id, w.state, w.job_type from walked w
  where true
)
select f.state, f.job_type, pg_catalog.count(*) as n, null::pg_catalog.uuid as bottom from found f group by f.state,
    f.job_type
union all select null, null, (select pg_catalog.count(*) from walked), (select id from (select id from walked order by
    id limit 1) lowest where true);

-- tallyLive, 2 of 2
-- with now, cursor, before, scan, paths, wants, from, states, queues, names, group, attemptMin, attemptMax, endedMin,
--     endedMax, ranMin, ranMax, worker, error, lane, key, since, until, workflow, trace, search
with walked as materialized (select r.id, r.job_type, case when r.token is not null then 'running' when r.run_at >=
    8633688480000000 then 'waiting'
  when r.run_at > coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) then case when
      r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end as state, r.failure_group,
      r.attempt, r.session, r.started_at, null::bigint as ended_at from "holdfast"."ready" r where r.id <
      least($2::pg_catalog.uuid, $3::pg_catalog.uuid) order by r.id desc limit $4::int),
wanted as materialized (
  select p.want, array(select json_array_elements_text(p.path::pg_catalog.json)) as path from
      unnest($5::pg_catalog.text[], $6::pg_catalog.text[]) as p (path, want)
),
found as (
  select w.id, w.state, w.job_type from walked w
  where w.id >= $7::pg_catalog.uuid
    and w.state = any($8::pg_catalog.text[])
    and w.job_type in (select l.id from "holdfast"."job_type" l where l.queue = any($9::pg_catalog.text[])
    and l.name = any($10::pg_catalog.text[]))
    and w.failure_group = $11::pg_catalog.text
    and w.failure_group is not null
    and w.attempt >= $12::bigint
    and w.attempt <= $13::bigint
    and w.ended_at >= $14::bigint
    and w.ended_at <= $15::bigint
    and w.state in ('running', 'done', 'dead', 'cancelled')
    and coalesce(w.ended_at, coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)) -
        w.started_at >= $16::bigint
    and coalesce(w.ended_at, coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)) -
        w.started_at between 0 and $17::bigint
    and w.session in (select s.id from "holdfast"."session" s where s.worker_id = $18::pg_catalog.text or s.name =
        $18::pg_catalog.text)
    and exists (select 1 from "holdfast"."ready" e where e.id = w.id and strpos(lower(e.errors collate "C"),
        $19::pg_catalog.text) > 0 offset 0)
    and exists (
      select 1 from "holdfast"."job" j where j.id = w.id and j.lane = $20::pg_catalog.text
    and j.key = $21::pg_catalog.text
    and j.created_at >= $22::bigint
    and j.created_at < $23::bigint
    and j.parent_id = $24::pg_catalog.uuid
    and j.extras like $25::pg_catalog.text
    and (strpos(lower(j.input collate "C"), $26::pg_catalog.text) > 0
          or strpos(lower(j.context collate "C"), $26::pg_catalog.text) > 0 or exists (select 1 from "holdfast"."ready"
              e where e.id = w.id and strpos(lower(e.errors collate "C"), $26::pg_catalog.text) > 0 offset 0))
    and case when j.input ~ '\\u(0000|[dD][89a-fA-F])' then false else not exists (
          select 1 from wanted x where coalesce(j.input::pg_catalog.json #>> x.path, case when (j.input::pg_catalog.json
              #> x.path) is not null then 'null' end)
            is distinct from x.want) end offset 0)
)
select f.state, f.job_type, pg_catalog.count(*) as n, null::pg_catalog.uuid as bottom from found f group by f.state,
    f.job_type
union all select null, null, (select pg_catalog.count(*) from walked), (select id from (select id from walked order by
    id limit 1) lowest where id > $7::pg_catalog.uuid);

-- tallyHeld, 1 of 2
-- with now, scan
with walked as materialized (
  select r.id, r.job_type, case when r.token is not null then 'running' when r.run_at >= 8633688480000000 then 'waiting'
  when r.run_at > coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) then case when
      r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end as state, r.failure_group,
      r.attempt, r.session, r.started_at, null::bigint as ended_at from "holdfast"."claim" c cross join lateral
      pg_catalog.unnest(c.ids) as o (id)
  cross join lateral (select * from "holdfast"."ready" k where k.id = o.id and k.token = c.token offset 0) r where true
      order by r.id desc limit $2::int),
found as (
  select w.id, w.state, w.job_type from walked w
  where true
)
select f.state, f.job_type, pg_catalog.count(*) as n, null::pg_catalog.uuid as bottom from found f group by f.state,
    f.job_type
union all select null, null, (select pg_catalog.count(*) from walked), (select id from (select id from walked order by
    id limit 1) lowest where true);

-- tallyHeld, 2 of 2
-- with now, cursor, before, scan, paths, wants, from, states, queues, names, group, attemptMin, attemptMax, endedMin,
--     endedMax, ranMin, ranMax, worker, error, lane, key, since, until, workflow, trace, search
with walked as materialized (
  select r.id, r.job_type, case when r.token is not null then 'running' when r.run_at >= 8633688480000000 then 'waiting'
  when r.run_at > coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) then case when
      r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end as state, r.failure_group,
      r.attempt, r.session, r.started_at, null::bigint as ended_at from "holdfast"."claim" c cross join lateral
      pg_catalog.unnest(c.ids) as o (id)
  cross join lateral (select * from "holdfast"."ready" k where k.id = o.id and k.token = c.token offset 0) r where r.id
      < least($2::pg_catalog.uuid, $3::pg_catalog.uuid) order by r.id desc limit $4::int),
wanted as materialized (
  select p.want, array(select json_array_elements_text(p.path::pg_catalog.json)) as path from
      unnest($5::pg_catalog.text[], $6::pg_catalog.text[]) as p (path, want)
),
found as (
  select w.id, w.state, w.job_type from walked w
  where w.id >= $7::pg_catalog.uuid
    and w.state = any($8::pg_catalog.text[])
    and w.job_type in (select l.id from "holdfast"."job_type" l where l.queue = any($9::pg_catalog.text[])
    and l.name = any($10::pg_catalog.text[]))
    and w.failure_group = $11::pg_catalog.text
    and w.failure_group is not null
    and w.attempt >= $12::bigint
    and w.attempt <= $13::bigint
    and w.ended_at >= $14::bigint
    and w.ended_at <= $15::bigint
    and w.state in ('running', 'done', 'dead', 'cancelled')
    and coalesce(w.ended_at, coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)) -
        w.started_at >= $16::bigint
    and coalesce(w.ended_at, coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)) -
        w.started_at between 0 and $17::bigint
    and w.session in (select s.id from "holdfast"."session" s where s.worker_id = $18::pg_catalog.text or s.name =
        $18::pg_catalog.text)
    and exists (select 1 from "holdfast"."ready" e where e.id = w.id and strpos(lower(e.errors collate "C"),
        $19::pg_catalog.text) > 0 offset 0)
    and exists (
      select 1 from "holdfast"."job" j where j.id = w.id and j.lane = $20::pg_catalog.text
    and j.key = $21::pg_catalog.text
    and j.created_at >= $22::bigint
    and j.created_at < $23::bigint
    and j.parent_id = $24::pg_catalog.uuid
    and j.extras like $25::pg_catalog.text
    and (strpos(lower(j.input collate "C"), $26::pg_catalog.text) > 0
          or strpos(lower(j.context collate "C"), $26::pg_catalog.text) > 0 or exists (select 1 from "holdfast"."ready"
              e where e.id = w.id and strpos(lower(e.errors collate "C"), $26::pg_catalog.text) > 0 offset 0))
    and case when j.input ~ '\\u(0000|[dD][89a-fA-F])' then false else not exists (
          select 1 from wanted x where coalesce(j.input::pg_catalog.json #>> x.path, case when (j.input::pg_catalog.json
              #> x.path) is not null then 'null' end)
            is distinct from x.want) end offset 0)
)
select f.state, f.job_type, pg_catalog.count(*) as n, null::pg_catalog.uuid as bottom from found f group by f.state,
    f.job_type
union all select null, null, (select pg_catalog.count(*) from walked), (select id from (select id from walked order by
    id limit 1) lowest where id > $7::pg_catalog.uuid);

-- tallyFailed, 1 of 2
-- with now, scan
with walked as materialized (select r.id, r.job_type, case when r.token is not null then 'running' when r.run_at >=
    8633688480000000 then 'waiting'
  when r.run_at > coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) then case when
      r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end as state, r.failure_group,
      r.attempt, r.session, r.started_at, null::bigint as ended_at from "holdfast"."ready" r where r.failure_group is
      not null and true order by r.id desc limit $2::int),
found as (
  select w.id, w.state, w.job_type from walked w
  where true
)
select f.state, f.job_type, pg_catalog.count(*) as n, null::pg_catalog.uuid as bottom from found f group by f.state,
    f.job_type
union all select null, null, (select pg_catalog.count(*) from walked), (select id from (select id from walked order by
    id limit 1) lowest where true);

-- tallyFailed, 2 of 2
-- with now, cursor, before, scan, paths, wants, from, states, queues, names, group, attemptMin, attemptMax, endedMin,
--     endedMax, ranMin, ranMax, worker, error, lane, key, since, until, workflow, trace, search
with walked as materialized (select r.id, r.job_type, case when r.token is not null then 'running' when r.run_at >=
    8633688480000000 then 'waiting'
  when r.run_at > coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) then case when
      r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end as state, r.failure_group,
      r.attempt, r.session, r.started_at, null::bigint as ended_at from "holdfast"."ready" r where r.failure_group is
      not null and r.id < least($2::pg_catalog.uuid, $3::pg_catalog.uuid) order by r.id desc limit $4::int),
wanted as materialized (
  select p.want, array(select json_array_elements_text(p.path::pg_catalog.json)) as path from
      unnest($5::pg_catalog.text[], $6::pg_catalog.text[]) as p (path, want)
),
found as (
  select w.id, w.state, w.job_type from walked w
  where w.id >= $7::pg_catalog.uuid
    and w.state = any($8::pg_catalog.text[])
    and w.job_type in (select l.id from "holdfast"."job_type" l where l.queue = any($9::pg_catalog.text[])
    and l.name = any($10::pg_catalog.text[]))
    and w.failure_group = $11::pg_catalog.text
    and w.failure_group is not null
    and w.attempt >= $12::bigint
    and w.attempt <= $13::bigint
    and w.ended_at >= $14::bigint
    and w.ended_at <= $15::bigint
    and w.state in ('running', 'done', 'dead', 'cancelled')
    and coalesce(w.ended_at, coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)) -
        w.started_at >= $16::bigint
    and coalesce(w.ended_at, coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)) -
        w.started_at between 0 and $17::bigint
    and w.session in (select s.id from "holdfast"."session" s where s.worker_id = $18::pg_catalog.text or s.name =
        $18::pg_catalog.text)
    and exists (select 1 from "holdfast"."ready" e where e.id = w.id and strpos(lower(e.errors collate "C"),
        $19::pg_catalog.text) > 0 offset 0)
    and exists (
      select 1 from "holdfast"."job" j where j.id = w.id and j.lane = $20::pg_catalog.text
    and j.key = $21::pg_catalog.text
    and j.created_at >= $22::bigint
    and j.created_at < $23::bigint
    and j.parent_id = $24::pg_catalog.uuid
    and j.extras like $25::pg_catalog.text
    and (strpos(lower(j.input collate "C"), $26::pg_catalog.text) > 0
          or strpos(lower(j.context collate "C"), $26::pg_catalog.text) > 0 or exists (select 1 from "holdfast"."ready"
              e where e.id = w.id and strpos(lower(e.errors collate "C"), $26::pg_catalog.text) > 0 offset 0))
    and case when j.input ~ '\\u(0000|[dD][89a-fA-F])' then false else not exists (
          select 1 from wanted x where coalesce(j.input::pg_catalog.json #>> x.path, case when (j.input::pg_catalog.json
              #> x.path) is not null then 'null' end)
            is distinct from x.want) end offset 0)
)
select f.state, f.job_type, pg_catalog.count(*) as n, null::pg_catalog.uuid as bottom from found f group by f.state,
    f.job_type
union all select null, null, (select pg_catalog.count(*) from walked), (select id from (select id from walked order by
    id limit 1) lowest where id > $7::pg_catalog.uuid);

-- tallyEnded, 1 of 2
-- with scan
with walked as materialized (select h.id, h.job_type, h.state, h.failure_group, h.attempt, h.session, h.started_at,
    h.ended_at from "holdfast"."history" h where true order by h.id desc limit $1::int),
found as (
  select w.id, w.state, w.job_type from walked w
  where true
)
select f.state, f.job_type, pg_catalog.count(*) as n, null::pg_catalog.uuid as bottom from found f group by f.state,
    f.job_type
union all select null, null, (select pg_catalog.count(*) from walked), (select id from (select id from walked order by
    id limit 1) lowest where true);

-- tallyEnded, 2 of 2
-- with cursor, before, scan, paths, wants, from, states, queues, names, group, attemptMin, attemptMax, endedMin,
--     endedMax, now, ranMin, ranMax, worker, error, lane, key, since, until, workflow, trace, search
with walked as materialized (select h.id, h.job_type, h.state, h.failure_group, h.attempt, h.session, h.started_at,
    h.ended_at from "holdfast"."history" h where h.id < least($1::pg_catalog.uuid, $2::pg_catalog.uuid) order by h.id
    desc limit $3::int),
wanted as materialized (
  select p.want, array(select json_array_elements_text(p.path::pg_catalog.json)) as path from
      unnest($4::pg_catalog.text[], $5::pg_catalog.text[]) as p (path, want)
),
found as (
  select w.id, w.state, w.job_type from walked w
  where w.id >= $6::pg_catalog.uuid
    and w.state = any($7::pg_catalog.text[])
    and w.job_type in (select l.id from "holdfast"."job_type" l where l.queue = any($8::pg_catalog.text[])
    and l.name = any($9::pg_catalog.text[]))
    and w.failure_group = $10::pg_catalog.text
    and w.failure_group is not null
    and w.attempt >= $11::bigint
    and w.attempt <= $12::bigint
    and w.ended_at >= $13::bigint
    and w.ended_at <= $14::bigint
    and w.state in ('running', 'done', 'dead', 'cancelled')
    and coalesce(w.ended_at, coalesce($15::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)) -
        w.started_at >= $16::bigint
    and coalesce(w.ended_at, coalesce($15::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)) -
        w.started_at between 0 and $17::bigint
    and w.session in (select s.id from "holdfast"."session" s where s.worker_id = $18::pg_catalog.text or s.name =
        $18::pg_catalog.text)
    and exists (select 1 from "holdfast"."history" e where e.id = w.id and strpos(lower(e.errors collate "C"),
        $19::pg_catalog.text) > 0 offset 0)
    and exists (
      select 1 from "holdfast"."job" j where j.id = w.id and j.lane = $20::pg_catalog.text
    and j.key = $21::pg_catalog.text
    and j.created_at >= $22::bigint
    and j.created_at < $23::bigint
    and j.parent_id = $24::pg_catalog.uuid
    and j.extras like $25::pg_catalog.text
    and (strpos(lower(j.input collate "C"), $26::pg_catalog.text) > 0
          or strpos(lower(j.context collate "C"), $26::pg_catalog.text) > 0 or exists (select 1 from
              "holdfast"."history" e where e.id = w.id and strpos(lower(e.errors collate "C"), $26::pg_catalog.text) > 0
              offset 0))
    and case when j.input ~ '\\u(0000|[dD][89a-fA-F])' then false else not exists (
          select 1 from wanted x where coalesce(j.input::pg_catalog.json #>> x.path, case when (j.input::pg_catalog.json
              #> x.path) is not null then 'null' end)
            is distinct from x.want) end offset 0)
)
select f.state, f.job_type, pg_catalog.count(*) as n, null::pg_catalog.uuid as bottom from found f group by f.state,
    f.job_type
union all select null, null, (select pg_catalog.count(*) from walked), (select id from (select id from walked order by
    id limit 1) lowest where id > $6::pg_catalog.uuid);

-- tallyNotDone, 1 of 2
-- with scan
with walked as materialized (select h.id, h.job_type, h.state, h.failure_group, h.attempt, h.session, h.started_at,
    h.ended_at from "holdfast"."history" h where h.state <> 'done' and true order by h.id desc limit $1::int),
found as (
  select w.id, w.state, w.job_type from walked w
  where true
)
select f.state, f.job_type, pg_catalog.count(*) as n, null::pg_catalog.uuid as bottom from found f group by f.state,
    f.job_type
union all select null, null, (select pg_catalog.count(*) from walked), (select id from (select id from walked order by
    id limit 1) lowest where true);

-- tallyNotDone, 2 of 2
-- with cursor, before, scan, paths, wants, from, states, queues, names, group, attemptMin, attemptMax, endedMin,
--     endedMax, now, ranMin, ranMax, worker, error, lane, key, since, until, workflow, trace, search
with walked as materialized (select h.id, h.job_type, h.state, h.failure_group, h.attempt, h.session, h.started_at,
    h.ended_at from "holdfast"."history" h where h.state <> 'done' and h.id < least($1::pg_catalog.uuid,
    $2::pg_catalog.uuid) order by h.id desc limit $3::int),
wanted as materialized (
  select p.want, array(select json_array_elements_text(p.path::pg_catalog.json)) as path from
      unnest($4::pg_catalog.text[], $5::pg_catalog.text[]) as p (path, want)
),
found as (
  select w.id, w.state, w.job_type from walked w
  where w.id >= $6::pg_catalog.uuid
    and w.state = any($7::pg_catalog.text[])
    and w.job_type in (select l.id from "holdfast"."job_type" l where l.queue = any($8::pg_catalog.text[])
    and l.name = any($9::pg_catalog.text[]))
    and w.failure_group = $10::pg_catalog.text
    and w.failure_group is not null
    and w.attempt >= $11::bigint
    and w.attempt <= $12::bigint
    and w.ended_at >= $13::bigint
    and w.ended_at <= $14::bigint
    and w.state in ('running', 'done', 'dead', 'cancelled')
    and coalesce(w.ended_at, coalesce($15::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)) -
        w.started_at >= $16::bigint
    and coalesce(w.ended_at, coalesce($15::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)) -
        w.started_at between 0 and $17::bigint
    and w.session in (select s.id from "holdfast"."session" s where s.worker_id = $18::pg_catalog.text or s.name =
        $18::pg_catalog.text)
    and exists (select 1 from "holdfast"."history" e where e.id = w.id and strpos(lower(e.errors collate "C"),
        $19::pg_catalog.text) > 0 offset 0)
    and exists (
      select 1 from "holdfast"."job" j where j.id = w.id and j.lane = $20::pg_catalog.text
    and j.key = $21::pg_catalog.text
    and j.created_at >= $22::bigint
    and j.created_at < $23::bigint
    and j.parent_id = $24::pg_catalog.uuid
    and j.extras like $25::pg_catalog.text
    and (strpos(lower(j.input collate "C"), $26::pg_catalog.text) > 0
          or strpos(lower(j.context collate "C"), $26::pg_catalog.text) > 0 or exists (select 1 from
              "holdfast"."history" e where e.id = w.id and strpos(lower(e.errors collate "C"), $26::pg_catalog.text) > 0
              offset 0))
    and case when j.input ~ '\\u(0000|[dD][89a-fA-F])' then false else not exists (
          select 1 from wanted x where coalesce(j.input::pg_catalog.json #>> x.path, case when (j.input::pg_catalog.json
              #> x.path) is not null then 'null' end)
            is distinct from x.want) end offset 0)
)
select f.state, f.job_type, pg_catalog.count(*) as n, null::pg_catalog.uuid as bottom from found f group by f.state,
    f.job_type
union all select null, null, (select pg_catalog.count(*) from walked), (select id from (select id from walked order by
    id limit 1) lowest where id > $6::pg_catalog.uuid);

-- tallyChildren, 1 of 2
-- with now, workflow, scan
with walked as materialized (
  select c.id, coalesce(r.job_type, h.job_type) as job_type, case when r.id is null then h.state else case when r.token
      is not null then 'running' when r.run_at >= 8633688480000000 then 'waiting'
  when r.run_at > coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) then case when
      r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end end as state,
    coalesce(r.failure_group, h.failure_group) as failure_group, coalesce(r.attempt, h.attempt) as attempt,
        coalesce(r.session, h.session) as session,
    coalesce(r.started_at, h.started_at) as started_at, h.ended_at
  from (select p.id from "holdfast"."job" p where p.parent_id = $2::pg_catalog.uuid and true order by p.id desc limit
      $3::int) c
  left join lateral (select * from "holdfast"."ready" k where k.id = c.id offset 0) r on true
  left join lateral (select * from "holdfast"."history" k where k.id = c.id offset 0) h on true),
found as (
  select w.id, w.state, w.job_type from walked w
  where true
)
select f.state, f.job_type, pg_catalog.count(*) as n, null::pg_catalog.uuid as bottom from found f group by f.state,
    f.job_type
union all select null, null, (select pg_catalog.count(*) from walked), (select id from (select id from walked order by
    id limit 1) lowest where true);

-- tallyChildren, 2 of 2
-- with now, workflow, cursor, before, scan, paths, wants, from, states, queues, names, group, attemptMin, attemptMax,
--     endedMin, endedMax, ranMin, ranMax, worker, error, lane, key, since, until, trace, search
with walked as materialized (
  select c.id, coalesce(r.job_type, h.job_type) as job_type, case when r.id is null then h.state else case when r.token
      is not null then 'running' when r.run_at >= 8633688480000000 then 'waiting'
  when r.run_at > coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) then case when
      r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end end as state,
    coalesce(r.failure_group, h.failure_group) as failure_group, coalesce(r.attempt, h.attempt) as attempt,
        coalesce(r.session, h.session) as session,
    coalesce(r.started_at, h.started_at) as started_at, h.ended_at
  from (select p.id from "holdfast"."job" p where p.parent_id = $2::pg_catalog.uuid and p.id <
      least($3::pg_catalog.uuid, $4::pg_catalog.uuid) order by p.id desc limit $5::int) c
  left join lateral (select * from "holdfast"."ready" k where k.id = c.id offset 0) r on true
  left join lateral (select * from "holdfast"."history" k where k.id = c.id offset 0) h on true),
wanted as materialized (
  select p.want, array(select json_array_elements_text(p.path::pg_catalog.json)) as path from
      unnest($6::pg_catalog.text[], $7::pg_catalog.text[]) as p (path, want)
),
found as (
  select w.id, w.state, w.job_type from walked w
  where w.id >= $8::pg_catalog.uuid
    and w.state = any($9::pg_catalog.text[])
    and w.job_type in (select l.id from "holdfast"."job_type" l where l.queue = any($10::pg_catalog.text[])
    and l.name = any($11::pg_catalog.text[]))
    and w.failure_group = $12::pg_catalog.text
    and w.failure_group is not null
    and w.attempt >= $13::bigint
    and w.attempt <= $14::bigint
    and w.ended_at >= $15::bigint
    and w.ended_at <= $16::bigint
    and w.state in ('running', 'done', 'dead', 'cancelled')
    and coalesce(w.ended_at, coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)) -
        w.started_at >= $17::bigint
    and coalesce(w.ended_at, coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)) -
        w.started_at between 0 and $18::bigint
    and w.session in (select s.id from "holdfast"."session" s where s.worker_id = $19::pg_catalog.text or s.name =
        $19::pg_catalog.text)
    and exists (select 1 from (select id, errors from "holdfast"."ready" union all select id, errors from
        "holdfast"."history") e where e.id = w.id and strpos(lower(e.errors collate "C"), $20::pg_catalog.text) > 0
        offset 0)
    and exists (
      select 1 from "holdfast"."job" j where j.id = w.id and j.lane = $21::pg_catalog.text
    and j.key = $22::pg_catalog.text
    and j.created_at >= $23::bigint
    and j.created_at < $24::bigint
    and j.parent_id = $2::pg_catalog.uuid
    and j.extras like $25::pg_catalog.text
    and (strpos(lower(j.input collate "C"), $26::pg_catalog.text) > 0
          or strpos(lower(j.context collate "C"), $26::pg_catalog.text) > 0 or exists (select 1 from (select id, errors
              from "holdfast"."ready" union all select id, errors from "holdfast"."history") e where e.id = w.id and
              strpos(lower(e.errors collate "C"), $26::pg_catalog.text) > 0 offset 0))
    and case when j.input ~ '\\u(0000|[dD][89a-fA-F])' then false else not exists (
          select 1 from wanted x where coalesce(j.input::pg_catalog.json #>> x.path, case when (j.input::pg_catalog.json
              #> x.path) is not null then 'null' end)
            is distinct from x.want) end offset 0)
)
select f.state, f.job_type, pg_catalog.count(*) as n, null::pg_catalog.uuid as bottom from found f group by f.state,
    f.job_type
union all select null, null, (select pg_catalog.count(*) from walked), (select id from (select id from walked order by
    id limit 1) lowest where id > $8::pg_catalog.uuid);

-- tallyMembers, 1 of 2
-- with now, batch, scan
with walked as materialized (
  select c.id, coalesce(r.job_type, h.job_type) as job_type, case when r.id is null then h.state else case when r.token
      is not null then 'running' when r.run_at >= 8633688480000000 then 'waiting'
  when r.run_at > coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) then case when
      r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end end as state,
    coalesce(r.failure_group, h.failure_group) as failure_group, coalesce(r.attempt, h.attempt) as attempt,
        coalesce(r.session, h.session) as session,
    coalesce(r.started_at, h.started_at) as started_at, h.ended_at
  from (select p.id from "holdfast"."member" p where p.batch = $2::pg_catalog.uuid and true order by p.id desc limit
      $3::int) c
  left join lateral (select * from "holdfast"."ready" k where k.id = c.id offset 0) r on true
  left join lateral (select * from "holdfast"."history" k where k.id = c.id offset 0) h on true),
found as (
  select w.id, w.state, w.job_type from walked w
  where true
)
select f.state, f.job_type, pg_catalog.count(*) as n, null::pg_catalog.uuid as bottom from found f group by f.state,
    f.job_type
union all select null, null, (select pg_catalog.count(*) from walked), (select id from (select id from walked order by
    id limit 1) lowest where true);

-- tallyMembers, 2 of 2
-- with now, batch, cursor, before, scan, paths, wants, from, states, queues, names, group, attemptMin, attemptMax,
--     endedMin, endedMax, ranMin, ranMax, worker, error, lane, key, since, until, workflow, trace, search
with walked as materialized (
  select c.id, coalesce(r.job_type, h.job_type) as job_type, case when r.id is null then h.state else case when r.token
      is not null then 'running' when r.run_at >= 8633688480000000 then 'waiting'
  when r.run_at > coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) then case when
      r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end end as state,
    coalesce(r.failure_group, h.failure_group) as failure_group, coalesce(r.attempt, h.attempt) as attempt,
        coalesce(r.session, h.session) as session,
    coalesce(r.started_at, h.started_at) as started_at, h.ended_at
  from (select p.id from "holdfast"."member" p where p.batch = $2::pg_catalog.uuid and p.id < least($3::pg_catalog.uuid,
      $4::pg_catalog.uuid) order by p.id desc limit $5::int) c
  left join lateral (select * from "holdfast"."ready" k where k.id = c.id offset 0) r on true
  left join lateral (select * from "holdfast"."history" k where k.id = c.id offset 0) h on true),
wanted as materialized (
  select p.want, array(select json_array_elements_text(p.path::pg_catalog.json)) as path from
      unnest($6::pg_catalog.text[], $7::pg_catalog.text[]) as p (path, want)
),
found as (
  select w.id, w.state, w.job_type from walked w
  where w.id >= $8::pg_catalog.uuid
    and w.state = any($9::pg_catalog.text[])
    and w.job_type in (select l.id from "holdfast"."job_type" l where l.queue = any($10::pg_catalog.text[])
    and l.name = any($11::pg_catalog.text[]))
    and w.failure_group = $12::pg_catalog.text
    and w.failure_group is not null
    and w.attempt >= $13::bigint
    and w.attempt <= $14::bigint
    and w.ended_at >= $15::bigint
    and w.ended_at <= $16::bigint
    and w.state in ('running', 'done', 'dead', 'cancelled')
    and coalesce(w.ended_at, coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)) -
        w.started_at >= $17::bigint
    and coalesce(w.ended_at, coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)) -
        w.started_at between 0 and $18::bigint
    and w.session in (select s.id from "holdfast"."session" s where s.worker_id = $19::pg_catalog.text or s.name =
        $19::pg_catalog.text)
    and exists (select 1 from (select id, errors from "holdfast"."ready" union all select id, errors from
        "holdfast"."history") e where e.id = w.id and strpos(lower(e.errors collate "C"), $20::pg_catalog.text) > 0
        offset 0)
    and exists (
      select 1 from "holdfast"."job" j where j.id = w.id and j.lane = $21::pg_catalog.text
    and j.key = $22::pg_catalog.text
    and j.created_at >= $23::bigint
    and j.created_at < $24::bigint
    and j.parent_id = $25::pg_catalog.uuid
    and j.extras like $26::pg_catalog.text
    and (strpos(lower(j.input collate "C"), $27::pg_catalog.text) > 0
          or strpos(lower(j.context collate "C"), $27::pg_catalog.text) > 0 or exists (select 1 from (select id, errors
              from "holdfast"."ready" union all select id, errors from "holdfast"."history") e where e.id = w.id and
              strpos(lower(e.errors collate "C"), $27::pg_catalog.text) > 0 offset 0))
    and case when j.input ~ '\\u(0000|[dD][89a-fA-F])' then false else not exists (
          select 1 from wanted x where coalesce(j.input::pg_catalog.json #>> x.path, case when (j.input::pg_catalog.json
              #> x.path) is not null then 'null' end)
            is distinct from x.want) end offset 0)
)
select f.state, f.job_type, pg_catalog.count(*) as n, null::pg_catalog.uuid as bottom from found f group by f.state,
    f.job_type
union all select null, null, (select pg_catalog.count(*) from walked), (select id from (select id from walked order by
    id limit 1) lowest where id > $8::pg_catalog.uuid);

-- jobsInOrder
-- with queues, names, fromAt, now, fromRowKey, limit
  with recursive scope as (select l.id as job_type from "holdfast"."job_type" l
      where ($1::pg_catalog.text[] is null or l.queue = any($1::pg_catalog.text[])) and ($2::pg_catalog.text[] is null
          or l.name = any($2::pg_catalog.text[]))),
level_of (job_type, rank) as (
  select s.job_type, (select r.rank from "holdfast"."ready" r where r.job_type = s.job_type order by r.rank limit 1)
      from scope s
  union all
  select l.job_type, (select r.rank from "holdfast"."ready" r where r.job_type = l.job_type and r.rank > l.rank order by
      r.rank limit 1)
  from level_of l where l.rank is not null
)
  select h.id, h.run_at, h.waits from level_of lv cross join lateral (
    select r.id, r.run_at, r.rank, r.job_type, r.waits from "holdfast"."ready" r
    where case when r.token is null then true end
      and (r.job_type, r.rank, r.run_at, r.id) > (lv.job_type, lv.rank, greatest($3::bigint, coalesce($4::bigint,
          (extract(epoch from statement_timestamp()) * 1000.0)::bigint)),
        case when $3::bigint > coalesce($4::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) then
            $5::pg_catalog.uuid else 'ffffffff-ffff-ffff-ffff-ffffffffffff'::pg_catalog.uuid end)
    order by r.job_type, r.rank, r.run_at, r.id limit $6::int
  ) h where lv.rank is not null and h.job_type = lv.job_type and h.rank = lv.rank and h.run_at < 8633688480000000
  order by h.run_at, h.id limit $6::int;

-- idsFrom
-- with last, limit, first
with taken as materialized (select id from "holdfast"."job" where id <= $1::pg_catalog.uuid order by id desc limit
    $2::int)
select id from taken where id >= $3::pg_catalog.uuid;

-- walkIds
-- with before, scan, end
with walked as materialized (select id from "holdfast"."job" where id < $1::pg_catalog.uuid order by id desc limit
    $2::int)
select id, null::int as walked from walked where right(id::pg_catalog.text, length($3::pg_catalog.text)) =
    $3::pg_catalog.text
union all select (select id from walked order by id limit 1), (select pg_catalog.count(*)::int from walked);

-- summaries
-- with now, ids
select id, rank, attempt, crashes, run_at, started_at, ended_at, errors, state, waits, created_at, max_attempts, key,
    lane, context, parent_id,
  queue, name, worker_id, failure_group, case when octet_length(input) <= 4096 then input end as input,
      octet_length(input) as input_bytes
from (
select r.failure_group, r.throttles, j.timeout_ms, j.deadline_at, j.extras, r.id, r.rank, r.attempt, r.crashes,
    r.run_at, r.started_at, null::bigint as ended_at, r.errors, r.progress, null::pg_catalog.text as output,
  s.lease_until, s.worker_id, case when r.token is not null then 'running' when r.run_at >= 8633688480000000 then
      'waiting'
  when r.run_at > coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) then case when
      r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end as state, r.waits, j.input,
      j.created_at, j.max_attempts, j.key, j.lane, j.context, j.parent_id, j.extras, l.queue, l.name, (select m.label
      from "holdfast"."step" m where m.job = r.id and m.name = '$machine') as step
from "holdfast"."ready" r join "holdfast"."job" j on j.id = r.id join "holdfast"."job_type" l on l.id = r.job_type left
    join "holdfast"."session" s on s.id = r.session where r.id = any($2::pg_catalog.uuid[]) union all
select h.failure_group, h.throttles, j.timeout_ms, j.deadline_at, j.extras, h.id, h.rank, h.attempt, h.crashes,
    h.run_at, h.started_at, h.ended_at, h.errors, h.progress, h.output,
  null::bigint as lease_until, s.worker_id, h.state, null::pg_catalog.text as waits, j.input, j.created_at,
      j.max_attempts, j.key, j.lane, j.context, j.parent_id, j.extras, l.queue, l.name, (select m.label from
      "holdfast"."step" m where m.job = h.id and m.name = '$machine') as step
from "holdfast"."history" h join "holdfast"."job" j on j.id = h.id join "holdfast"."job_type" l on l.id = h.job_type
    left join "holdfast"."session" s on s.id = h.session where h.id = any($2::pg_catalog.uuid[])) one;

-- inspect
-- with now, id
select * from (
select r.failure_group, r.throttles, j.timeout_ms, j.deadline_at, j.extras, r.id, r.rank, r.attempt, r.crashes,
    r.run_at, r.started_at, null::bigint as ended_at, r.errors, r.progress, null::pg_catalog.text as output,
  s.lease_until, s.worker_id, case when r.token is not null then 'running' when r.run_at >= 8633688480000000 then
      'waiting'
  when r.run_at > coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) then case when
      r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end as state, r.waits, j.input,
      j.created_at, j.max_attempts, j.key, j.lane, j.context, j.parent_id, j.extras, l.queue, l.name, (select m.label
      from "holdfast"."step" m where m.job = r.id and m.name = '$machine') as step
from "holdfast"."ready" r join "holdfast"."job" j on j.id = r.id join "holdfast"."job_type" l on l.id = r.job_type left
    join "holdfast"."session" s on s.id = r.session where r.id = $2::pg_catalog.uuid union all
select h.failure_group, h.throttles, j.timeout_ms, j.deadline_at, j.extras, h.id, h.rank, h.attempt, h.crashes,
    h.run_at, h.started_at, h.ended_at, h.errors, h.progress, h.output,
  null::bigint as lease_until, s.worker_id, h.state, null::pg_catalog.text as waits, j.input, j.created_at,
      j.max_attempts, j.key, j.lane, j.context, j.parent_id, j.extras, l.queue, l.name, (select m.label from
      "holdfast"."step" m where m.job = h.id and m.name = '$machine') as step
from "holdfast"."history" h join "holdfast"."job" j on j.id = h.id join "holdfast"."job_type" l on l.id = h.job_type
    left join "holdfast"."session" s on s.id = h.session where h.id = $2::pg_catalog.uuid) one limit 1;

-- walkRuns
-- with before, scan
with recursive run (id, n) as (
  (select job, 1 from "holdfast"."step" where job < $1::pg_catalog.uuid order by job desc limit 1)
  union all
  select (select s.job from "holdfast"."step" s where s.job < r.id order by s.job desc limit 1), r.n + 1 from run r
      where r.id is not null and r.n < $2::int
)
select id from run where id is not null;

-- runSteps
-- with jobs.id, jobs.begun, jobs.ended
select n.id, r.known, r.done, r.retrying, s.name, s.kind, s.label, s.started_at, s.wake_at, s.child
from unnest($1::pg_catalog.uuid[], $2::bigint[], $3::pg_catalog.bool[]) as n (id, begun, ended) cross join lateral (
  select pg_catalog.count(*) as known, pg_catalog.count(*) filter (where not (w.state = 'open' and not (w.kind = 'sleep'
      and coalesce(w.wake_at <= n.begun, false))
      and not (w.kind = 'machine' and n.ended))) as done,
    bool_or(w.state = 'open' and w.fails > 0) as retrying, max(case when (w.state = 'open' and not (w.kind = 'sleep' and
        coalesce(w.wake_at <= n.begun, false))
      and not (w.kind = 'machine' and n.ended)) then w.seq end) as at
  from "holdfast"."step" w where w.job = n.id and w.kind <> 'undo'
) r left join lateral (
  select * from "holdfast"."step" where job = n.id and seq = r.at and state = 'open' and kind <> 'undo' offset 0
) s on true
where r.known > 0;

-- tallyJobTypes
-- with now, begins.queue, begins.name, begins.at, queues, names, cap, budget
with recursive clock (now) as materialized (select coalesce($1::bigint, (extract(epoch from statement_timestamp()) *
    1000.0)::bigint)),
job_type_of (job_type, from_at) as materialized (
  select l.id, coalesce(b.at, '-9223372036854775808'::bigint) from "holdfast"."job_type" l
  left join unnest($2::pg_catalog.text[], $3::pg_catalog.text[], $4::bigint[]) as b (queue, name, at) on b.queue =
      l.queue and b.name = l.name
  where ($5::pg_catalog.text[] is null or l.queue = any($5::pg_catalog.text[])) and ($6::pg_catalog.text[] is null or
      l.name = any($6::pg_catalog.text[]))
),
level_of (job_type, from_at, rank, last) as (
  select s.*, e.* from unnest(array(select job_type from job_type_of), array(select from_at from job_type_of)) as s
      (job_type, from_at) cross join lateral (
    select r.rank, r.run_at from "holdfast"."ready" r where r.job_type = s.job_type and r.run_at >= s.from_at order by
        r.rank desc, r.run_at desc limit 1) e
  union all
  select l.job_type, l.from_at, e.* from level_of l cross join lateral (
    select r.rank, r.run_at from "holdfast"."ready" r where r.job_type = l.job_type and r.rank < l.rank and r.run_at >=
        l.from_at order by r.rank desc, r.run_at desc limit 1) e
),
busy as materialized (
  select r.job_type, pg_catalog.count(*) as n from "holdfast"."claim" c cross join lateral pg_catalog.unnest(c.ids) as o
      (id)
  cross join lateral (select * from "holdfast"."ready" k where k.id = o.id and k.token = c.token offset 0) r join
      job_type_of s on s.job_type = r.job_type where r.run_at >= s.from_at group by r.job_type
),
waiters (found) as materialized (select exists (select 1 from "holdfast"."ready" r where r.waits in ('signal', 'jobs')
    and r.run_at < 8633688480000000)),
level as materialized (
  select lv.*, coalesce(b.n, 0) as busy,
    case when lv.last > (select now from clock) and (select found from waiters) then (select pg_catalog.count(*) from
        (select 1 from "holdfast"."ready" r where r.job_type = lv.job_type and r.rank = lv.rank and r.run_at > (select
        now from clock) and r.run_at < 8633688480000000 and r.waits in ('signal', 'jobs') limit 100) x) else 0 end as
        timed
  from unnest(array(select job_type from level_of), array(select from_at from level_of), array(select rank from
      level_of), array(select last from level_of))
    as lv (job_type, from_at, rank, last)
  left join busy b on b.job_type = lv.job_type
),
probed as materialized (
  select lv.*, d.run_at as due_at, d.id as due_id, e.run_at as later_at, e.id as later_id, w.run_at as waits_at, w.id as
      waits_id
  from level lv left join lateral (select r.run_at, r.id from "holdfast"."ready" r where r.job_type = lv.job_type and
      r.rank = lv.rank and r.run_at >= lv.from_at and r.run_at <= (select now from clock) order by r.run_at, r.id offset
      99 + lv.busy limit 1) d on true
  left join lateral (select r.run_at, r.id from "holdfast"."ready" r where r.job_type = lv.job_type and r.rank = lv.rank
      and lv.last > (select now from clock) and r.run_at > (select now from clock) and r.run_at < 8633688480000000 order
      by r.run_at, r.id offset 99 + lv.timed limit 1) e on true
  left join lateral (select r.run_at, r.id from "holdfast"."ready" r where r.job_type = lv.job_type and r.rank = lv.rank
      and lv.last >= 8633688480000000 and r.run_at >= 8633688480000000 order by r.run_at, r.id offset 99 + 0 limit 1) w
      on true
),
small as materialized (
  select lv.*, case when lv.due_id is null then (select pg_catalog.count(*) from (select 1 from "holdfast"."ready" r
      where r.job_type = lv.job_type and r.rank = lv.rank and r.run_at >= lv.from_at and r.run_at <= (select now from
      clock) limit 99 + lv.busy) x) else 100 + lv.busy end as ready,
    case when lv.last <= (select now from clock) then 0 when lv.later_id is null then (select pg_catalog.count(*) from
        (select 1 from "holdfast"."ready" r where r.job_type = lv.job_type and r.rank = lv.rank and r.run_at > (select
        now from clock) and r.run_at < 8633688480000000 limit 99 + lv.timed) x) else 100 + lv.timed end as later,
    case when lv.last < 8633688480000000 then 0 when lv.waits_id is null then (select pg_catalog.count(*) from (select 1
        from "holdfast"."ready" r where r.job_type = lv.job_type and r.rank = lv.rank and r.run_at >= 8633688480000000
        limit 99) x) else 100 end as waiting
  from probed lv
),
cap (n) as materialized (
  select greatest(100, least($7::int, $8::int / greatest(1, sum(
    (ready >= 100 + busy)::int + (later >= 100 + timed)::int + (waiting >= 100)::int + (timed >= 100)::int))))
  from small
),
large as materialized (
  select lv.*, case when lv.timed < 100 then lv.timed else (select pg_catalog.count(*) from (select 1 from
      "holdfast"."ready" r where r.job_type = lv.job_type and r.rank = lv.rank and r.run_at > (select now from clock)
      and r.run_at < 8633688480000000 and r.waits in ('signal', 'jobs') limit lv.most) x) end as until
  from (select s.*, (select n from cap) as most from small s) lv
),
counted as materialized (
  select lv.job_type, lv.rank, lv.most, lv.most + lv.busy as most_due, lv.until,
    lv.ready + case when lv.due_id is null or lv.most - 100 <= 0 then 0 else (select pg_catalog.count(*) from (select 1
        from "holdfast"."ready" r where r.job_type = lv.job_type and r.rank = lv.rank and r.run_at >= lv.from_at and
        r.run_at <= (select now from clock) and (r.run_at, r.id) > (lv.due_at, lv.due_id) limit lv.most - 100) x) end as
        ready,
    lv.later + case when lv.later_id is null or lv.most + lv.until - 100 - lv.timed <= 0 then 0 else (select
        pg_catalog.count(*) from (select 1 from "holdfast"."ready" r where r.job_type = lv.job_type and r.rank = lv.rank
        and r.run_at > (select now from clock) and r.run_at < 8633688480000000 and (r.run_at, r.id) > (lv.later_at,
        lv.later_id) limit lv.most + lv.until - 100 - lv.timed) x) end as later,
    lv.waiting + case when lv.waits_id is null or lv.most - 100 <= 0 then 0 else (select pg_catalog.count(*) from
        (select 1 from "holdfast"."ready" r where r.job_type = lv.job_type and r.rank = lv.rank and r.run_at >=
        8633688480000000 and (r.run_at, r.id) > (lv.waits_at, lv.waits_id) limit lv.most - 100) x) end as waiting,
    case when lv.ready > 0 then (
      select r.run_at from "holdfast"."ready" r where r.job_type = lv.job_type and r.rank = lv.rank and r.token is null
          and r.run_at >= lv.from_at and r.run_at <= (select now from clock)
      order by r.run_at, r.id limit 1) end as oldest
  from large lv
),
-- The first entry that is due later. Where some wait until a time, rows are read until one does not, at most as many as
    wait.
nexts as materialized (
  select lv.*, case when lv.later = 0 then null
    when lv.until = 0 then (select r.run_at from "holdfast"."ready" r where r.job_type = lv.job_type and r.rank =
        lv.rank and r.run_at > (select now from clock) and r.run_at < 8633688480000000 order by r.run_at, r.id limit 1)
    when lv.until < lv.most and lv.later > lv.until then (
      select r.run_at from "holdfast"."ready" r where r.job_type = lv.job_type and r.rank = lv.rank and r.run_at >
          (select now from clock) and r.run_at < 8633688480000000 and coalesce(r.waits, 'sleep') = 'sleep' order by
          r.run_at, r.id limit 1) end as next
  from counted lv
),
summed as (
  select job_type, sum(ready) as ready, sum(case when until < most then later - until else 0 end) as scheduled,
      sum(waiting + until) as waiting,
    min(oldest) as oldest, min(next) as next, bool_or(ready >= most_due) as more_ready, bool_or(waiting >= most or until
        >= most) as more_waiting,
    bool_or(later >= most + until or (until >= most and later > until)) as more_scheduled
  from nexts group by job_type
)
select l.queue, l.name, (select now from clock) as now, coalesce(sum(greatest(0, c.ready - coalesce(b.n, 0)::numeric)),
    0) as ready,
  coalesce(sum(c.scheduled), 0) as scheduled, coalesce(sum(c.waiting), 0) as waiting, min(c.oldest) as oldest,
      min(c.next) as next,
  coalesce(bool_or(c.more_ready), false)::int as more_ready, coalesce(bool_or(c.more_scheduled), false)::int as
      more_scheduled,
  coalesce(bool_or(c.more_waiting), false)::int as more_waiting
from "holdfast"."job_type" l left join summed c on c.job_type = l.id left join busy b on b.job_type = l.id
where ($5::pg_catalog.text[] is null or l.queue = any($5::pg_catalog.text[])) and ($6::pg_catalog.text[] is null or
    l.name = any($6::pg_catalog.text[])) group by l.queue, l.name order by l.queue, l.name;

-- tallyRunning
-- with now
select l.queue, l.name, c.session, coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) as
    now, pg_catalog.count(*) as running, min(r.started_at) as longest
from "holdfast"."claim" c cross join lateral pg_catalog.unnest(c.ids) as o (id)
  cross join lateral (select * from "holdfast"."ready" k where k.id = o.id and k.token = c.token offset 0) r join
      "holdfast"."job_type" l on l.id = r.job_type group by l.queue, l.name, c.session order by l.queue, l.name,
      c.session;

-- jobTypeNames
select distinct queue, name from "holdfast"."job_type" order by queue, name;

-- topLanes
-- with queue, scan, now, limit
  with recursive scope as materialized (select l.id as job_type from "holdfast"."job_type" l where l.queue = $1 and
      l.laned),
level_of (job_type, rank) as (
  select s.job_type, (select r.rank from "holdfast"."ready" r where r.job_type = s.job_type order by r.rank limit 1)
      from scope s
  union all
  select l.job_type, (select r.rank from "holdfast"."ready" r where r.job_type = l.job_type and r.rank > l.rank order by
      r.rank limit 1)
  from level_of l where l.rank is not null
),
  piece (n) as materialized (select greatest(10, $2::int / 2 / greatest(1, pg_catalog.count(*))) from level_of lv where
      lv.rank is not null),
  top as materialized (
    select h.lane from level_of lv cross join lateral (
      select * from (
        select r.lane, r.job_type, r.rank, r.run_at, r.token from "holdfast"."ready" r
        where (r.job_type, r.rank, r.run_at, r.id) >= (lv.job_type, lv.rank, 0::bigint,
            '00000000-0000-0000-0000-000000000000'::pg_catalog.uuid)
        order by r.job_type, r.rank, r.run_at, r.id limit (select n from piece)) longest
      union all
      select * from (
        select r.lane, r.job_type, r.rank, r.run_at, r.token from "holdfast"."ready" r
        where (r.job_type, r.rank, r.run_at, r.id) <= (lv.job_type, lv.rank, coalesce($3::bigint, (extract(epoch from
            statement_timestamp()) * 1000.0)::bigint), 'ffffffff-ffff-ffff-ffff-ffffffffffff'::pg_catalog.uuid)
        order by r.job_type desc, r.rank desc, r.run_at desc, r.id desc limit (select n from piece)) shortest
    ) h
    where lv.rank is not null and h.job_type = lv.job_type and h.rank = lv.rank and h.token is null and h.run_at <=
        coalesce($3::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)
    group by h.lane order by pg_catalog.count(*) desc, h.lane limit $4::int
  )
  select a.*, coalesce($3::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) as now, b.back,
    greatest(0, (select pg_catalog.count(*) from (select 1 from "holdfast"."ready" r where r.lane = a.id limit 10000 +
        greatest(0, a.running - b.back)) capped)
      - greatest(0, a.running - b.back))::int as waiting
  from top cross join lateral (select * from "holdfast"."lane" k where k.id = top.lane offset 0) a
  cross join lateral (
    select coalesce(sum(u.back), 0)::int as back from "holdfast"."job_type" o join "holdfast"."lane_wakeup" g on
        g.job_type = o.id and g.backs is not null
    cross join lateral unnest(g.lanes, g.backs) as u (lane, back) where o.queue = a.queue and o.laned and u.lane = a.id
  ) b;

-- groupDead
-- with now, cursor, before, scan, group, queues, names
with clock (now) as materialized (select coalesce($1::bigint, (extract(epoch from statement_timestamp()) *
    1000.0)::bigint)),
walked as materialized (
  select h.id, h.job_type, h.failure_group, h.ended_at, h.state from "holdfast"."history" h where h.state <> 'done' and
      h.id < least($2::pg_catalog.uuid, $3::pg_catalog.uuid) order by h.id desc limit $4::int
),
counted as (
  select w.job_type, w.failure_group, pg_catalog.count(*) as n, min(w.ended_at) as first_at, max(w.ended_at) as last_at,
      max(w.id::pg_catalog.text collate "C") as sample,
    pg_catalog.count(*) filter (where w.ended_at > (select now from clock) - 3600000) as hour, pg_catalog.count(*)
        filter (where w.ended_at > (select now from clock) - 86400000) as day,
    pg_catalog.count(*) filter (where w.ended_at > (select now from clock) - 604800000) as week
  from walked w where case when w.state = 'dead' and w.failure_group is not null and ($5::pg_catalog.text is null or
      w.failure_group = $5::pg_catalog.text) and (($6::pg_catalog.text[] is null and $7::pg_catalog.text[] is null) or
      w.job_type in (select l.id from "holdfast"."job_type" l
    where ($6::pg_catalog.text[] is null or l.queue = any($6::pg_catalog.text[])) and ($7::pg_catalog.text[] is null or
        l.name = any($7::pg_catalog.text[])))) then true end group by w.job_type, w.failure_group
)
select l.queue, l.name, c.failure_group, c.n, c.first_at, c.last_at, c.sample, c.hour, c.day, c.week
from counted c join "holdfast"."job_type" l on l.id = c.job_type
union all select null, null, null, (select pg_catalog.count(*) from walked), null, null, null, null, (select now from
    clock), null;

-- groupFailed
-- with cursor, before, scan, group, queues, names
with counted as (
  select w.job_type, w.failure_group, pg_catalog.count(*) as n, max(w.id::pg_catalog.text collate "C") as sample
  from (select r.id, r.job_type, r.failure_group from "holdfast"."ready" r where r.failure_group is not null and r.id <
      least($1::pg_catalog.uuid, $2::pg_catalog.uuid) order by r.id desc limit $3::int) w
  where case when w.failure_group is not null and ($4::pg_catalog.text is null or w.failure_group = $4::pg_catalog.text)
      and (($5::pg_catalog.text[] is null and $6::pg_catalog.text[] is null) or w.job_type in (select l.id from
      "holdfast"."job_type" l
    where ($5::pg_catalog.text[] is null or l.queue = any($5::pg_catalog.text[])) and ($6::pg_catalog.text[] is null or
        l.name = any($6::pg_catalog.text[])))) then true end group by w.job_type, w.failure_group
)
select l.queue, l.name, c.failure_group, c.n, c.sample, null as first_at, null as last_at from counted c join
    "holdfast"."job_type" l on l.id = c.job_type;

-- addAudit
-- with now, actor, action, target, outcome, details
insert into "holdfast"."audit" (at, actor, action, target, outcome, details)
values (coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint), $2, $3, $4, $5, $6);

-- dropAudit
-- with now
delete from "holdfast"."audit" where at < coalesce($1::bigint, (extract(epoch from statement_timestamp()) *
    1000.0)::bigint) - 7776000000 and id < (select max(id) from "holdfast"."audit") returning id;

-- listAudit
-- with before, limit
select a.id, a.at, a.actor, a.action, a.target, a.outcome, a.details
from "holdfast"."audit" a where a.id < $1::bigint order by a.id desc limit $2::int;

-- auditOf
-- with target, before, limit
select a.id, a.at, a.actor, a.action, a.target, a.outcome, a.details
from (
  select * from "holdfast"."audit" where (target, id) < ($1, $2::bigint) order by target desc, id desc limit $3::int
) a where a.target = $1;

-- health
select current_setting('server_version') as version, pg_database_size(current_database()) as size, null::bigint as free,
  (select pg_catalog.count(*) from pg_stat_activity where datname = current_database()) as connections,
  current_setting('max_connections')::int as max_connections,
  (select (extract(epoch from max(statement_timestamp() - xact_start)) * 1000.0)::bigint from pg_stat_activity
    where datname = current_database() and xact_start is not null and pid <> pg_backend_pid()) as oldest_ms;

-- tables
select regexp_replace(c.relname, '^(job|history)_([0-9]+|rest)$', '\1') as name, sum(pg_total_relation_size(c.oid)) as
    bytes,
  sum(coalesce(s.n_live_tup, 0)) as rows, sum(coalesce(s.n_dead_tup, 0)) as dead_rows,
  max((extract(epoch from greatest(s.last_autovacuum, s.last_vacuum)) * 1000.0)::bigint) as vacuumed_at
from pg_class c left join pg_stat_all_tables s on s.relid = c.oid
where c.relkind = 'r' and c.relnamespace = (select k.relnamespace from pg_class k where k.oid =
    '"holdfast"."ready"'::pg_catalog.regclass)
group by 1 order by 2 desc, 1;

-- putFailures
-- with rows.group, rows.at, rows.queue, rows.version, rows.worker, rows.n
insert into "holdfast"."failure" as f (failure_group, at, queue, version, worker, n)
select * from unnest($1::pg_catalog.text[], $2::bigint[], $3::pg_catalog.text[], $4::int[], $5::pg_catalog.text[],
    $6::int[])
on conflict (failure_group, at, queue, version, worker) do update set n = excluded.n where excluded.n > f.n;

-- putFailureGroups
-- with rows.group, rows.name, rows.firstAt, rows.lastAt, rows.sample, rows.message
insert into "holdfast"."failure_group" as g (id, name, first_at, last_at, sample, message)
select * from unnest($1::pg_catalog.text[], $2::pg_catalog.text[], $3::bigint[], $4::bigint[], $5::pg_catalog.uuid[],
    $6::pg_catalog.text[])
on conflict (id) do update set name = excluded.name, first_at = least(g.first_at, excluded.first_at),
  last_at = greatest(g.last_at, excluded.last_at), sample = excluded.sample, message = excluded.message;

-- failureGroupRows
-- with now, ids, names, limit
select g.*, coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) as now from
    "holdfast"."failure_group" g
where ($2::pg_catalog.text[] is null or g.id = any($2::pg_catalog.text[])) and ($3::pg_catalog.text[] is null or g.name
    = any($3::pg_catalog.text[]))
order by g.state <> 'open' desc, greatest(g.last_at, g.state_at, 0) desc limit $4::int;

-- failureHours
-- with fine, since, recent, ids, queues
select f.failure_group, case when f.at >= $1::bigint then f.at - f.at % 3600000::bigint else $2::bigint end as hour,
    sum(f.n) as n, coalesce(sum(f.n) filter (where f.at >= $3::bigint), 0) as recent
from "holdfast"."failure" f
where f.failure_group = any($4::pg_catalog.text[]) and f.at >= $2::bigint and ($5::pg_catalog.text[] is null or f.queue
    = any($5::pg_catalog.text[]))
group by 1, 2 order by 1, 2;

-- failureGroupSources
-- with ids
select f.failure_group, f.queue, f.version, sum(f.n) as n, min(f.at) as first_at, max(f.at) as last_at from
    "holdfast"."failure" f
where f.failure_group = any($1::pg_catalog.text[]) group by 1, 2, 3 order by 1, 4 desc, 2, 3;

-- failuresBy
-- with since, by, scan, limit
with walked as materialized (
  select * from "holdfast"."failure" where at >= $1::bigint and ($2::pg_catalog.text <> 'worker' or worker <> '') order
      by at desc limit $3::int
)
select case $2::pg_catalog.text when 'queue' then f.queue when 'worker' then f.worker when 'version' then
    (f.version)::pg_catalog.text
    when 'hour' then (f.at - f.at % 3600000::bigint)::pg_catalog.text else coalesce(g.name, '') end as value,
  case $2::pg_catalog.text when 'version' then g.name end as name, sum(f.n) as n, pg_catalog.count(distinct
      f.failure_group) as groups, max(f.at) as last_at,
  (select pg_catalog.count(*) from walked) as walked
from walked f left join "holdfast"."failure_group" g on g.id = f.failure_group group by 1, 2 order by 3 desc, 1 limit
    $4::int;

-- failuresSince
-- with rows.group, rows.at
select a.id as failure_group, coalesce((select sum(f.n) from "holdfast"."failure" f where f.failure_group = a.id and
    f.at >= a.at), 0) as n
from unnest($1::pg_catalog.text[], $2::bigint[]) as a (id, at);

-- setFailureGroup
-- with group, name, state, decided, now, by, untilAt, untilDelay, untilCount, fromCount, note, link, noted, linked
insert into "holdfast"."failure_group" as g (id, name, state, state_at, state_by, until_at, until_count, from_count,
    note, link)
values ($1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text, case when $4::pg_catalog.bool then
    coalesce($5::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) end, $6::pg_catalog.text,
  coalesce($7::bigint, coalesce($5::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) + $8::bigint),
      $9::bigint, $10::bigint, $11::pg_catalog.text, $12::pg_catalog.text)
on conflict (id) do update set
  state = case when $4::pg_catalog.bool then excluded.state else g.state end, state_at = case when $4::pg_catalog.bool
      then excluded.state_at else g.state_at end,
  state_by = case when $4::pg_catalog.bool then excluded.state_by else g.state_by end, until_at = case when
      $4::pg_catalog.bool then excluded.until_at else g.until_at end,
  until_count = case when $4::pg_catalog.bool then excluded.until_count else g.until_count end,
  from_count = case when $4::pg_catalog.bool then excluded.from_count else g.from_count end,
  note = case when $13::pg_catalog.bool then excluded.note else g.note end, link = case when $14::pg_catalog.bool then
      excluded.link else g.link end
returning id, state_at, until_at;

-- deleteOldFailures
-- with before
with f as (delete from "holdfast"."failure" where at < $1::bigint)
delete from "holdfast"."failure_group" where greatest(last_at, state_at, 0) <
  $1::bigint - case when state = 'open' and note is null and link is null then 0 else 31536000000 end;

-- failuresOf
-- with since, until
select failure_group, at, queue, version, worker, n from "holdfast"."failure" where at >= $1::bigint and at < $2::bigint
    order by 1, 2, 3, 4, 5;

-- dropFailures
-- with since, until
delete from "holdfast"."failure" where at >= $1::bigint and at < $2::bigint;

-- takeUpkeepTask
-- with name, now, every, by
insert into "holdfast"."upkeep_task" as d (name, next_at, done_at, by) values ($1, coalesce($2::bigint, (extract(epoch
    from statement_timestamp()) * 1000.0)::bigint) + $3::bigint, coalesce($2::bigint, (extract(epoch from
    statement_timestamp()) * 1000.0)::bigint), $4)
on conflict (name) do update set next_at = excluded.next_at, done_at = excluded.done_at, by = excluded.by where
    d.next_at <= coalesce($2::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) returning name;

-- upkeepTasks
select name, next_at, done_at, by from "holdfast"."upkeep_task" order by name;

-- expired
-- with after, before, states, now, keep, queues, except, limit
select h.id, h.state from "holdfast"."history" h join "holdfast"."job_type" l on l.id = h.job_type
where h.id > coalesce($1::pg_catalog.uuid, '00000000-0000-0000-0000-000000000000'::pg_catalog.uuid) and h.id <
    $2::pg_catalog.uuid and h.state = any($3::pg_catalog.text[]) and h.ended_at <= coalesce($4::bigint, (extract(epoch
    from statement_timestamp()) * 1000.0)::bigint) - $5::bigint
  and ($6::pg_catalog.text[] is null or l.queue = any($6::pg_catalog.text[])) and not (l.queue =
      any($7::pg_catalog.text[]))
order by h.id limit $8::int;

-- instance
select value from "holdfast"."meta" where key = 'instance';

-- schemaState
-- with moved, movedAt
select m.version, m.name, m.applied_at, (select value from "holdfast"."meta" where key = $1) as moved_to,
  (select value from "holdfast"."meta" where key = $2) as moved_at
from "holdfast"."migration" m order by m.version desc limit 1;

-- writable
select has_table_privilege('"holdfast"."ready"', 'insert') and has_table_privilege('"holdfast"."ready"', 'update') and
    not pg_is_in_recovery()
  and current_setting('transaction_read_only') = 'off' as writable;

-- now
-- with now
select coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) as now;

-- limitedQueues
select distinct l.queue, true as laned from "holdfast"."job_type" l where l.laned
union all select q.name, false from "holdfast"."queue" q where q.limited;

-- addLanes
-- with now, rows.queue, rows.key, rows.concurrency, rows.rateLimit, rows.ratePer, rows.weight
insert into "holdfast"."lane" (queue, key, concurrency, rate_limit, rate_per, weight, used_at)
select w.queue, w.key, w.concurrency, w.rate_limit, w.rate_per, coalesce(w.weight, 1), coalesce($1::bigint,
    (extract(epoch from statement_timestamp()) * 1000.0)::bigint)
from unnest($2::pg_catalog.text[], $3::pg_catalog.text[], $4::int[], $5::int[], $6::bigint[], $7::int[])
  as w (queue, key, concurrency, rate_limit, rate_per, weight)
order by w.queue, w.key
on conflict (queue, key) do update set used_at = excluded.used_at;

-- findLanes
-- with now, rows.queue, rows.key
select a.id, a.queue, a.key, a.used_at < coalesce($1::bigint, (extract(epoch from statement_timestamp()) *
    1000.0)::bigint) - 86400000 as stale from unnest($2::pg_catalog.text[], $3::pg_catalog.text[]) as w (queue, key)
join "holdfast"."lane" a on a.queue = w.queue and a.key = w.key;

-- wakeLanesOfJobs
-- with ids
insert into "holdfast"."lane_wakeup" (job_type, lanes, ats)
select r.job_type, pg_catalog.array_agg(r.lane), pg_catalog.array_agg(r.run_at) from "holdfast"."ready" r
where r.id = any($1::pg_catalog.uuid[]) and r.lane is not null and r.run_at < 8633688480000000 group by r.job_type;

-- lockLimitedQueues
-- with now, queues.queue
select q.name, q.settings, q.running, q.starts, q.adopt_until, coalesce($1::bigint, (extract(epoch from
    statement_timestamp()) * 1000.0)::bigint) as now from "holdfast"."queue" q
where q.limited and exists (select 1 from pg_catalog.unnest($2::pg_catalog.text[]) w (queue) where w.queue is null or
    w.queue = q.name) and
not exists (select 1 from "holdfast"."queue" stop where stop.name = q.name and (stop.paused_at is not null or
    stop.cool_until > coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)))
and not exists (select 1 from "holdfast"."hold" held where held.queues is null or q.name = any(held.queues))
  and (coalesce(q.limited_until, 0) <= coalesce($1::bigint, (extract(epoch from statement_timestamp()) *
      1000.0)::bigint) or exists (select 1 from "holdfast"."returned_capacity" f where f.queue = q.name))
order by q.name for update of q;

-- adopt
-- with names
insert into "holdfast"."uncounted_job" (queue, id, token)
select l.queue, r.id, r.token from (
  select c.token, c.ids from "holdfast"."claim" c
  where (select r.counted from "holdfast"."ready" r where r.id = any(c.ids) and r.token = c.token limit 1) is distinct
      from 2 offset 0
) c
cross join lateral pg_catalog.unnest(c.ids) as o (id)
join "holdfast"."ready" r on r.id = o.id and r.token = c.token
join "holdfast"."job_type" l on l.id = r.job_type
where l.queue = any($1::pg_catalog.text[]) and coalesce(r.counted, 0) & 2 = 0
on conflict (queue, id, token) do nothing;

-- uncountedJobs
-- with names
with gone as (
  delete from "holdfast"."uncounted_job" g where g.queue = any($1::pg_catalog.text[])
    and not exists (select 1 from "holdfast"."ready" r where r.id = g.id and r.token = g.token)
  returning g.queue, g.id, g.token
)
select g.queue, pg_catalog.count(*)::int as n from "holdfast"."uncounted_job" g
where g.queue = any($1::pg_catalog.text[]) and not exists (select 1 from gone x where x.queue = g.queue and x.id = g.id
    and x.token = g.token)
group by g.queue;

-- takeWakeups
-- with queues.queue, queues.group, names, now
  with
scope as materialized (
  select l.id as job_type, l.queue, q.grp
  from unnest($1::pg_catalog.text[], $2::pg_catalog.text[]) as q (queue, grp)
  join "holdfast"."job_type" l on q.queue is null or l.queue = q.queue
  where l.laned and ($3::pg_catalog.text[] is null or l.name = any($3::pg_catalog.text[]))
    and ($3::pg_catalog.text[] is not null or not exists (select 1 from "holdfast"."definition" m where m.name = l.name
        and m.is_machine))
),
  other as materialized (
    select l.id as job_type from "holdfast"."job_type" l where l.laned and exists (select 1 from
        pg_catalog.unnest($1::pg_catalog.text[]) w (queue) where w.queue is null or w.queue = l.queue) and l.id not in
        (select job_type from scope)
  ),
  rung as materialized (
    select s.job_type, b.* from scope s cross join lateral (
      select b.ctid as tid, b.lanes, b.ats, b.backs from "holdfast"."lane_wakeup" b where b.job_type = s.job_type limit
          500 for update skip locked
    ) b
    union all
    select o.job_type, b.* from other o cross join lateral (
      select b.ctid as tid, b.lanes, b.ats, b.backs from "holdfast"."lane_wakeup" b where b.job_type = o.job_type and
          b.backs is not null limit 500 for update skip locked
    ) b
  ),
  stilled as (delete from "holdfast"."lane_wakeup" b where b.ctid = any(array(select tid from rung))),
  heard as materialized (
    select b.lane, r.job_type, min(b.at) as at, coalesce(sum(b.back), 0)::int as back
    from rung r cross join lateral unnest(r.lanes, r.ats, r.backs) as b (lane, at, back) group by b.lane, r.job_type
  ),
  woken as materialized (
    select w.lane, w.job_type from scope s cross join lateral (
      select w.lane, w.job_type from "holdfast"."lane_rotation" w where w.job_type = s.job_type and w.wake_at <=
          coalesce($4::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) order by w.wake_at limit
          1000
    ) w
  ),
  mine as materialized (
    select a.id, c.back, coalesce(a.running >= a.concurrency, false) as was_full
    from (
      select lane, sum(back)::int as back from (select lane, back from heard union all select lane, 0 from woken) c
          group by lane
    ) c join "holdfast"."lane" a on a.ctid = (select x.ctid from "holdfast"."lane" x where x.id >= c.lane and x.id <=
        c.lane order by x.id desc limit 1) for update of a skip locked
  ),
  folded as (
    update "holdfast"."lane" a set running = greatest(0, a.running - m.back) from mine m where a.id = m.id and m.back >
        0
  ),
  deaf as (
    insert into "holdfast"."lane_wakeup" (job_type, lanes, ats, backs)
    select h.job_type, pg_catalog.array_agg(h.lane), pg_catalog.array_agg(h.at), pg_catalog.array_agg(h.back) from heard
        h join "holdfast"."lane" a on a.id = h.lane
    where (select pg_catalog.count(*) from mine) < (select pg_catalog.count(distinct lane) from (select lane from heard
        union all select lane from woken) c)
      and not exists (select 1 from mine m where m.id = h.lane)
    group by h.job_type
  )
  select h.lane, h.job_type, h.at from heard h join mine m on m.id = h.lane where h.at < 8633688480000000
  union all select w.lane, w.job_type, coalesce($4::bigint, (extract(epoch from statement_timestamp()) *
      1000.0)::bigint) from woken w join mine m on m.id = w.lane
  union all select m.id, null, null from mine m where m.was_full and m.back > 0;

-- scheduleRotations
-- with rows.lane, rows.jobType, rows.at, full, floors.jobType, floors.vtime, now
with due as materialized (
  select d.lane, d.job_type, min(d.at) as at from (
    select * from unnest($1::int[], $2::int[], $3::bigint[]) as d (lane, job_type, at)
    union all select w.lane, w.job_type, 0 from "holdfast"."lane_rotation" w where w.lane = any($4::int[])
  ) d group by d.lane, d.job_type
),
lowered as (
  update "holdfast"."lane_rotation" w set from_at = d.at
  from unnest($1::int[], $2::int[], $3::bigint[]) as d (lane, job_type, at)
  where w.lane + 0 = d.lane and w.job_type + 0 = d.job_type and w.active and w.from_at > d.at
    and w.ctid = any(array(select (select x.ctid from "holdfast"."lane_rotation" x where (x.lane, x.job_type) >=
        (o.lane, o.job_type) and (x.lane, x.job_type) <= (o.lane, o.job_type) order by x.lane desc, x.job_type desc
        limit 1) from unnest($1::int[], $2::int[]) as o (lane, job_type)))
),
-- Of each job_type once: where its furthest-behind lane_rotation is that is active.
base as materialized (
  select l.job_type, coalesce(
    (select f.vtime from "holdfast"."lane_rotation" f where f.job_type = l.job_type and f.active and f.vtime >=
        coalesce((select f.vtime from unnest($5::int[], $6::pg_catalog.float8[]) as f (job_type, vtime) where f.job_type
        = l.job_type), '-Infinity') order by f.vtime limit 1),
    (select f.vtime from "holdfast"."lane_rotation" f where f.job_type = l.job_type and not f.active order by f.vtime
        desc limit 1), 0) as vtime
  from (select distinct job_type from due) l
)
insert into "holdfast"."lane_rotation" as w (lane, job_type, vtime, active, wake_at)
select d.lane, d.job_type, (select b.vtime from base b where b.job_type = d.job_type), d.at <= coalesce($7::bigint,
    (extract(epoch from statement_timestamp()) * 1000.0)::bigint), case when d.at > coalesce($7::bigint, (extract(epoch
    from statement_timestamp()) * 1000.0)::bigint) then d.at end
from due d left join lateral (select x.active from "holdfast"."lane_rotation" x where (x.lane, x.job_type) >= (d.lane,
    d.job_type) and (x.lane, x.job_type) <= (d.lane, d.job_type) order by x.lane desc, x.job_type desc limit 1) x on
    true
where x.active is distinct from true
on conflict (lane, job_type) do update set
  active = excluded.active,
  vtime = case when excluded.active then greatest(w.vtime, excluded.vtime) else w.vtime end,
  wake_at = case when not excluded.active then least(w.wake_at, excluded.wake_at) end,
  -- Null is before everything; `least` would pass over it.
  from_at = case when w.from_at is not null then
    least(w.from_at, (select min(d.at) from unnest($1::int[], $2::int[], $3::bigint[]) as d (lane, job_type, at)
      where d.lane = w.lane and d.job_type = w.job_type)) end
where not w.active;

-- pickRotations
-- with queues.queue, queues.group, names, now, limitedQueues, floors.jobType, floors.vtime, most
  with
scope as materialized (
  select l.id as job_type, l.queue, q.grp
  from unnest($1::pg_catalog.text[], $2::pg_catalog.text[]) as q (queue, grp)
  join "holdfast"."job_type" l on q.queue is null or l.queue = q.queue
  where l.laned and ($3::pg_catalog.text[] is null or l.name = any($3::pg_catalog.text[]))
    and ($3::pg_catalog.text[] is not null or not exists (select 1 from "holdfast"."definition" m where m.name = l.name
        and m.is_machine)) and
  not exists (select 1 from "holdfast"."queue" stop where stop.name = l.queue and (stop.paused_at is not null or
      stop.cool_until > coalesce($4::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)))
  and not exists (select 1 from "holdfast"."hold" held where held.queues is null or l.queue = any(held.queues))
    and (l.queue = any($5::pg_catalog.text[]) or not exists (select 1 from "holdfast"."queue" g where g.name = l.queue
        and g.limited))
)
  select s.queue, s.grp, p.*, coalesce($4::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) as now
      from scope s cross join lateral (
    select w.job_type, w.lane, w.vtime, a.key, a.running, a.concurrency, a.rate_limit, a.rate_per, a.weight,
        a.paused_at, a.starts
    from "holdfast"."lane_rotation" w join "holdfast"."lane" a on a.ctid = (select x.ctid from "holdfast"."lane" x where
        x.id >= w.lane and x.id <= w.lane order by x.id desc limit 1)
    where w.job_type = s.job_type and w.active and w.vtime >= coalesce((select f.vtime from unnest($6::int[],
        $7::pg_catalog.float8[]) as f (job_type, vtime) where f.job_type = s.job_type), '-Infinity') and
        ($3::pg_catalog.text[] is not null or not exists (select 1 from "holdfast"."ready" r where r.lane = w.lane and
        r.job_type = w.job_type and r.token is null and r.run_at <= coalesce($4::bigint, (extract(epoch from
        statement_timestamp()) * 1000.0)::bigint)) or exists (select 1 from "holdfast"."ready" r where r.lane = w.lane
        and r.job_type = w.job_type and r.token is null and r.run_at <= coalesce($4::bigint, (extract(epoch from
        statement_timestamp()) * 1000.0)::bigint) and ($3::pg_catalog.text[] is not null or not exists (
      select 1 from "holdfast"."job" p where p.id = r.id
        and (p.extras like '{"step":%' or (r.begun and (select 1 from "holdfast"."step" e where e.job = p.id limit 1) is
            not null)))))) order by w.vtime, w.lane limit $8::int for update of a skip locked
  ) p;

-- takeLaned
-- with rotations.lane, rotations.jobType, rotations.limit, direction, now, names, session, counted, rotations.by, rates
  with recursive
wanted as materialized (
  select w.lane, w.job_type, w.n, o.tid, coalesce(o.from_at, '-9223372036854775808'::bigint) as from_at
  from unnest($1::int[], $2::int[], $3::int[]) as w (lane, job_type, n) left join lateral (select x.ctid as tid,
      x.from_at from "holdfast"."lane_rotation" x where (x.lane, x.job_type) >= (w.lane, w.job_type) and (x.lane,
      x.job_type) <= (w.lane, w.job_type) order by x.lane desc, x.job_type desc limit 1) o on true
),
level_of (lane, job_type, n, from_at, rank, nth) as (
  select w.lane, w.job_type, w.n, w.from_at, case when $4::bigint > 0 then (select r.rank from "holdfast"."ready" r
        where r.lane = w.lane and r.job_type = w.job_type and r.run_at >= w.from_at
        order by r.rank limit 1) else (select r.rank from "holdfast"."ready" r
        where r.lane = w.lane and r.job_type = w.job_type and r.run_at >= w.from_at
        order by r.rank desc limit 1) end, 1 from wanted w
  union all
  select l.lane, l.job_type, case when x.rank is not null then l.n - (
      select pg_catalog.count(*)::int from (select 1 from "holdfast"."ready" r where r.lane = l.lane and r.job_type =
          l.job_type and r.rank = l.rank and r.token is null and r.run_at <= coalesce($5::bigint, (extract(epoch from
          statement_timestamp()) * 1000.0)::bigint) and r.run_at >= l.from_at and ($6::pg_catalog.text[] is not null or
          not exists (
      select 1 from "holdfast"."job" p where p.id = r.id
        and (p.extras like '{"step":%' or (r.begun and (select 1 from "holdfast"."step" e where e.job = p.id limit 1) is
            not null)))) limit l.n) d) else 0 end, l.from_at, x.rank, l.nth + 1
  from level_of l cross join lateral (select case when $4::bigint > 0 then (select r.rank from "holdfast"."ready" r
        where r.lane = l.lane and r.job_type = l.job_type and r.rank > l.rank and r.run_at >= l.from_at
        order by r.rank limit 1) else (select r.rank from "holdfast"."ready" r
        where r.lane = l.lane and r.job_type = l.job_type and r.rank < l.rank and r.run_at >= l.from_at
        order by r.rank desc limit 1) end as rank offset 0) x where l.rank is not null and l.n > 0 and l.nth < 64
),
  level as materialized (
    select l.lane, l.job_type, l.n, l.from_at, l.rank, l.nth, pg_catalog.count(*) over (partition by l.lane, l.job_type)
        as ranks
    from level_of l where l.rank is not null and exists (select 1 from "holdfast"."session" s where s.id = $7::bigint
        and s.lease_until > coalesce($5::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint))
  ),
  -- All priorities of a lane that has more than one, and not too many.
  rank_of (lane, job_type, from_at, rank, nth) as (
    select l.lane, l.job_type, l.from_at,
      (select r.rank from "holdfast"."ready" r where r.lane = l.lane and r.job_type = l.job_type and r.run_at >=
          l.from_at order by r.rank limit 1), 1
    from (select distinct lane, job_type, from_at from level where ranks > 1) l
    union all
    select o.lane, o.job_type, o.from_at,
      (select r.rank from "holdfast"."ready" r where r.lane = o.lane and r.job_type = o.job_type and r.rank > o.rank and
          r.run_at >= o.from_at order by r.rank limit 1), o.nth + 1
    from rank_of o where o.rank is not null and o.nth <= 8
  ),
  -- A lane with one priority has nothing to share.
  share as materialized (
    select lane, job_type, rank, from_at, n from level where ranks = 1
    union all
    select lane, job_type, rank, from_at, pg_catalog.count(*)::int as n from (
      select l.lane, l.job_type, h.rank, l.from_at, max(l.n) over (partition by l.lane, l.job_type) as asked,
        row_number() over (partition by l.lane, l.job_type order by h.rank * $4::bigint, h.run_at, h.id) as ordinal
      from level l cross join lateral (
        (select r.rank, r.run_at, r.id from "holdfast"."ready" r where
    r.lane = l.lane and r.job_type = l.job_type and r.rank = l.rank and r.token is null and r.run_at <=
        coalesce($5::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) and r.run_at >= l.from_at and
        ($6::pg_catalog.text[] is not null or not exists (
      select 1 from "holdfast"."job" p where p.id = r.id
        and (p.extras like '{"step":%' or (r.begun and (select 1 from "holdfast"."step" e where e.job = p.id limit 1) is
            not null))))
    order by r.run_at, r.id limit l.n) union all (select * from (
        select r.rank, r.run_at, r.id from "holdfast"."ready" r
        where $4::bigint > 0 and l.nth = 64 and r.lane = l.lane and r.job_type = l.job_type and r.rank > l.rank
          and r.token is null and r.run_at <= coalesce($5::bigint, (extract(epoch from statement_timestamp()) *
              1000.0)::bigint) and r.run_at >= l.from_at and ($6::pg_catalog.text[] is not null or not exists (
      select 1 from "holdfast"."job" p where p.id = r.id
        and (p.extras like '{"step":%' or (r.begun and (select 1 from "holdfast"."step" e where e.job = p.id limit 1) is
            not null))))
        order by r.rank, r.run_at, r.id limit l.n) up union all select * from (
        select r.rank, r.run_at, r.id from "holdfast"."ready" r
        where $4::bigint < 0 and l.nth = 64 and r.lane = l.lane and r.job_type = l.job_type and r.rank < l.rank
          and r.token is null and r.run_at <= coalesce($5::bigint, (extract(epoch from statement_timestamp()) *
              1000.0)::bigint) and r.run_at >= l.from_at and ($6::pg_catalog.text[] is not null or not exists (
      select 1 from "holdfast"."job" p where p.id = r.id
        and (p.extras like '{"step":%' or (r.begun and (select 1 from "holdfast"."step" e where e.job = p.id limit 1) is
            not null))))
        order by r.rank desc, r.run_at, r.id limit l.n) down)
      ) h where l.ranks > 1 and l.n > 0
    ) placed where ordinal <= asked group by lane, job_type, rank, from_at
  ),
  ticket as materialized (select nextval('"holdfast"."token"'::pg_catalog.regclass) as token),
  taken as (
  update "holdfast"."ready" r
  set token = (select token from ticket), session = $7::bigint, attempt = least(r.attempt + 1, 32767), started_at =
      coalesce($5::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint), counted = 1 + 2 * (r.job_type
      = any($8::int[]))::int
    where r.ctid = any(array(
      select c.tid from share s cross join lateral (
        select r.ctid as tid from "holdfast"."ready" r where
    r.lane = s.lane and r.job_type = s.job_type and r.rank = s.rank and r.token is null and r.run_at <=
        coalesce($5::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) and r.run_at >= s.from_at and
        ($6::pg_catalog.text[] is not null or not exists (
      select 1 from "holdfast"."job" p where p.id = r.id
        and (p.extras like '{"step":%' or (r.begun and (select 1 from "holdfast"."step" e where e.job = p.id limit 1) is
            not null))))
    order by r.run_at, r.id limit s.n for update skip locked
      ) c))
    returning r.id, r.job_type, r.rank, r.run_at, r.token, r.attempt, r.crashes, r.begun, r.undoing, r.started_at,
        r.errors, r.lane as lane_id, r.counted
  ),
  -- All that was asked for: mostly it is what was got, and `turned` puts the rest right.
  counted as (
    update "holdfast"."lane" a set running = a.running + w.n, used_at = coalesce($5::bigint, (extract(epoch from
        statement_timestamp()) * 1000.0)::bigint) from (select lane, sum(n)::int as n from wanted group by lane) w
    where a.id = w.lane
      and a.ctid = any(array(select (select x.ctid from "holdfast"."lane" x where x.id >= m.lane and x.id <= m.lane
          order by x.id desc limit 1) from wanted m))
  ),
  -- A lane with few priorities: no job that is unclaimed is due before the first that was left, or the last that was
      taken. What is later
  -- found to be due before that rings (`scheduleRotations`).
  reached as materialized (
    select l.lane, l.job_type, coalesce(
      (select r.run_at from "holdfast"."ready" r where r.lane = l.lane and r.job_type = l.job_type and r.rank = l.rank
          and r.token is null and r.run_at <= coalesce($5::bigint, (extract(epoch from statement_timestamp()) *
          1000.0)::bigint) and r.run_at >= l.from_at and not r.id = any(array(select id from taken)) order by r.run_at,
          r.id limit 1),
      (select max(k.run_at) from taken k where k.lane_id = l.lane and k.job_type = l.job_type)) as from_at
    from level l where l.ranks = 1
    union all
    select o.lane, o.job_type, coalesce(min(h.run_at), (select max(k.run_at) from taken k where k.lane_id = o.lane and
        k.job_type = o.job_type))
    from rank_of o left join lateral (
      select r.run_at from "holdfast"."ready" r where r.lane = o.lane and r.job_type = o.job_type and r.rank = o.rank
          and r.token is null and r.run_at <= coalesce($5::bigint, (extract(epoch from statement_timestamp()) *
          1000.0)::bigint) and r.run_at >= o.from_at and not r.id = any(array(select id from taken)) order by r.run_at,
          r.id limit 1
    ) h on true
    where o.rank is not null group by o.lane, o.job_type having max(o.nth) <= 8
  ),
  moved as (
    update "holdfast"."lane_rotation" o set vtime = o.vtime + m.by,
      from_at = coalesce((select e.from_at from reached e where e.lane = o.lane and e.job_type = o.job_type), o.from_at)
    from unnest($1::int[], $2::int[], $9::pg_catalog.float8[]) as m (lane, job_type, by)
    where o.lane = m.lane and o.job_type = m.job_type and o.ctid = any(array(select tid from wanted))
  ),
filed as (
  insert into "holdfast"."claim" (token, session, ids, rates)
  select token, $7::bigint, pg_catalog.array_agg(id), $10::pg_catalog.text from taken group by token
)
select c.id, c.job_type, c.rank, c.run_at, c.token, c.attempt, c.started_at, c.lane_id, c.counted, j.input,
    j.max_attempts, case when c.crashes > 0 or c.begun
    or pg_catalog.num_nonnulls(c.errors, j.timeout_ms, j.key, j.context, j.parent_id, j.deadline_at, j.extras) > 0
  then pg_catalog.json_build_object('crashes', c.crashes, 'begun', c.begun, 'undoing', c.undoing, 'errors', c.errors,
      'timeout_ms', j.timeout_ms,
    'key', j.key, 'context', j.context, 'parent_id', j.parent_id, 'deadline_at', j.deadline_at, 'extras',
        j.extras)::pg_catalog.text
end as rest
from (select * from taken order by id offset 0) c
full join (
  select * from "holdfast"."job" where id = any(array(select id from taken))
    and id >= (select id from taken order by id limit 1) and id <= (select id from taken order by id desc limit 1)
  order by id offset 0
) j on j.id = c.id;

-- takeLimited
-- with queues.queue, queues.group, queues.limit, queues.edge, names, direction, levels.jobType, levels.rank,
--     levels.runAt, levels.rowKey, session, now, rates
with recursive
scope as materialized (
  select l.id as job_type, q.grp, q.n, q.edge
  from unnest((select $1::pg_catalog.text[]), (select $2::pg_catalog.text[]), (select $3::int[]), (select $4::bigint[]))
      as q (queue, grp, n, edge)
  join "holdfast"."job_type" l on l.queue = q.queue where not l.laned and ((select $5::pg_catalog.text[]) is null or
      l.name = any((select $5::pg_catalog.text[])::pg_catalog.text[])) and ((select $5::pg_catalog.text[]) is not null
      or not exists (select 1 from "holdfast"."definition" m where m.name = l.name and m.is_machine))
),
known as materialized (
  select k.job_type, k.rank, k.rank * (select $6::bigint) as d, k.from_at, k.from_id
  from unnest((select $7::int[]), (select $8::int[]), (select $9::bigint[]), (select $10::pg_catalog.uuid[]))
    as k (job_type, rank, from_at, from_id)
),
grp as materialized (
  select s.grp, s.n, min(s.edge) as edge, pg_catalog.array_agg(s.job_type) as job_types, greatest(20, 1000 /
      pg_catalog.count(*)) as probes, (select coalesce(max(d), -2147483649::bigint) from known) as last
  from scope s where exists (select 1 from "holdfast"."session" s where s.id = $11::bigint and s.lease_until >
      coalesce($12::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)) group by s.grp, s.n
),
share as materialized (
  select x.job_type, x.rank, x.from_at, x.from_id, pg_catalog.count(*)::int as n from grp g cross join lateral (
    with recursive rank_of (d, n) as (
      select least(case when -2147483649::bigint < g.last then (select min(k.d) from known k where k.job_type =
          any(g.job_types) and k.d > -2147483649::bigint) end,
        case when -2147483649::bigint < g.edge then g.edge else (select min((
    select least(b.d, case when (select $6::bigint) > 0
      then (select r.rank from "holdfast"."ready" r where r.job_type = l.job_type and r.rank > -2147483649::bigint and
          r.rank < b.d order by r.rank limit 1)
      else (select -r.rank::bigint from "holdfast"."ready" r where r.job_type = l.job_type and r.rank <
          -(-2147483649::bigint) and r.rank > -b.d order by r.rank desc limit 1) end)
    from (select coalesce(case when -2147483649::bigint < g.last then (select min(k.d) from known k where k.job_type =
        l.job_type and k.d > -2147483649::bigint) end, 2147483649::bigint) as d) b)) from pg_catalog.unnest(g.job_types)
        as l (job_type)) end), 1
      union all
      select least(case when w.d < g.last then (select min(k.d) from known k where k.job_type = any(g.job_types) and k.d
          > w.d) end,
        case when w.d < g.edge then g.edge else (select min((
    select least(b.d, case when (select $6::bigint) > 0
      then (select r.rank from "holdfast"."ready" r where r.job_type = l.job_type and r.rank > w.d and r.rank < b.d
          order by r.rank limit 1)
      else (select -r.rank::bigint from "holdfast"."ready" r where r.job_type = l.job_type and r.rank < -(w.d) and
          r.rank > -b.d order by r.rank desc limit 1) end)
    from (select coalesce(case when w.d < g.last then (select min(k.d) from known k where k.job_type = l.job_type and
        k.d > w.d) end, 2147483649::bigint) as d) b)) from pg_catalog.unnest(g.job_types) as l (job_type)) end), w.n + 1
        from rank_of w where w.d < 2147483649::bigint and w.n < g.probes
    )
    select m.* from rank_of w cross join lateral (
      select p.job_type, p.rank, p.from_at, p.from_id from (
      select l.job_type, w.d * (select $6::bigint) as rank, coalesce(k.from_at, '-9223372036854775808'::bigint) as
          from_at, coalesce(k.from_id, '00000000-0000-0000-0000-000000000000'::pg_catalog.uuid) as from_id
      from pg_catalog.unnest(g.job_types) as l (job_type) left join lateral (select * from known k where w.d <= g.last
          and k.job_type = l.job_type and k.d = w.d offset 0) k on true
      where w.d < 2147483649::bigint and (k.job_type is not null or w.d >= g.edge)
    ) p cross join lateral (
        select r.run_at, r.id from "holdfast"."ready" r where
    r.job_type = p.job_type and r.rank = p.rank and r.token is null and r.run_at <= coalesce($12::bigint, (extract(epoch
        from statement_timestamp()) * 1000.0)::bigint)
    and (r.run_at, r.id) > (p.from_at, p.from_id) and ((select $5::pg_catalog.text[]) is not null or not exists (
      select 1 from "holdfast"."job" p where p.id = r.id
        and (p.extras like '{"step":%' or (r.begun and (select 1 from "holdfast"."step" e where e.job = p.id limit 1) is
            not null))))
    order by r.run_at, r.id limit g.n
      ) h
      order by h.run_at, h.id limit g.n
    ) m
    union all
    select * from (
      select l.job_type, h.rank, '-9223372036854775808'::bigint, '00000000-0000-0000-0000-000000000000'::pg_catalog.uuid
          from rank_of w cross join pg_catalog.unnest(g.job_types) as l (job_type)
      cross join lateral (select * from (
        select r.rank, r.run_at, r.id from "holdfast"."ready" r
        where (select $6::bigint) > 0 and r.job_type = l.job_type and r.rank > w.d and r.token is null and r.run_at <=
            coalesce($12::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)
          and ((select $5::pg_catalog.text[]) is not null or not exists (
      select 1 from "holdfast"."job" p where p.id = r.id
        and (p.extras like '{"step":%' or (r.begun and (select 1 from "holdfast"."step" e where e.job = p.id limit 1) is
            not null))))
        order by r.rank, r.run_at, r.id limit g.n) up union all select * from (
        select r.rank, r.run_at, r.id from "holdfast"."ready" r
        where (select $6::bigint) < 0 and r.job_type = l.job_type and r.rank < -w.d and r.token is null and r.run_at <=
            coalesce($12::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)
          and ((select $5::pg_catalog.text[]) is not null or not exists (
      select 1 from "holdfast"."job" p where p.id = r.id
        and (p.extras like '{"step":%' or (r.begun and (select 1 from "holdfast"."step" e where e.job = p.id limit 1) is
            not null))))
        order by r.rank desc, r.run_at, r.id limit g.n) down) h
      where w.n = g.probes and w.d < 2147483649::bigint order by h.rank * (select $6::bigint), h.run_at, h.id limit g.n
    ) b
    limit g.n
  ) x
  where pg_catalog.cardinality(g.job_types) > 1 group by x.job_type, x.rank, x.from_at, x.from_id
),
  ticket as materialized (select nextval('"holdfast"."token"'::pg_catalog.regclass) as token),
  taken as (
  update "holdfast"."ready" r
  set token = (select token from ticket), session = $11::bigint, attempt = least(r.attempt + 1, 32767), started_at =
      coalesce($12::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint), counted = 2
    where r.ctid = any(array(
    select c.tid from grp g cross join lateral (
      with recursive rank_of (d, n) as (
      select least(case when -2147483649::bigint < g.last then (select min(k.d) from known k where k.job_type =
          any(g.job_types) and k.d > -2147483649::bigint) end,
        case when -2147483649::bigint < g.edge then g.edge else (
    select least(b.d, case when (select $6::bigint) > 0
      then (select r.rank from "holdfast"."ready" r where r.job_type = g.job_types[1] and r.rank > -2147483649::bigint
          and r.rank < b.d order by r.rank limit 1)
      else (select -r.rank::bigint from "holdfast"."ready" r where r.job_type = g.job_types[1] and r.rank <
          -(-2147483649::bigint) and r.rank > -b.d order by r.rank desc limit 1) end)
    from (select coalesce(case when -2147483649::bigint < g.last then (select min(k.d) from known k where k.job_type =
        g.job_types[1] and k.d > -2147483649::bigint) end, 2147483649::bigint) as d) b) end), 1
      union all
      select least(case when w.d < g.last then (select min(k.d) from known k where k.job_type = any(g.job_types) and k.d
          > w.d) end,
        case when w.d < g.edge then g.edge else (
    select least(b.d, case when (select $6::bigint) > 0
      then (select r.rank from "holdfast"."ready" r where r.job_type = g.job_types[1] and r.rank > w.d and r.rank < b.d
          order by r.rank limit 1)
      else (select -r.rank::bigint from "holdfast"."ready" r where r.job_type = g.job_types[1] and r.rank < -(w.d) and
          r.rank > -b.d order by r.rank desc limit 1) end)
    from (select coalesce(case when w.d < g.last then (select min(k.d) from known k where k.job_type = g.job_types[1]
        and k.d > w.d) end, 2147483649::bigint) as d) b) end), w.n + 1 from rank_of w where w.d < 2147483649::bigint and
        w.n < g.probes
    )
      select h.tid from rank_of w cross join lateral (
      select l.job_type, w.d * (select $6::bigint) as rank, coalesce(k.from_at, '-9223372036854775808'::bigint) as
          from_at, coalesce(k.from_id, '00000000-0000-0000-0000-000000000000'::pg_catalog.uuid) as from_id
      from (select g.job_types[1] as job_type) l left join lateral (select * from known k where w.d <= g.last and
          k.job_type = l.job_type and k.d = w.d offset 0) k on true
      where w.d < 2147483649::bigint and (k.job_type is not null or w.d >= g.edge)
    ) p cross join lateral (
        select r.ctid as tid from "holdfast"."ready" r where
    r.job_type = p.job_type and r.rank = p.rank and r.token is null and r.run_at <= coalesce($12::bigint, (extract(epoch
        from statement_timestamp()) * 1000.0)::bigint)
    and (r.run_at, r.id) > (p.from_at, p.from_id) and ((select $5::pg_catalog.text[]) is not null or not exists (
      select 1 from "holdfast"."job" p where p.id = r.id
        and (p.extras like '{"step":%' or (r.begun and (select 1 from "holdfast"."step" e where e.job = p.id limit 1) is
            not null))))
    order by r.run_at, r.id limit g.n for update skip locked
      ) h
      union all
      select h.tid from rank_of w cross join lateral (select * from (
        select r.ctid as tid from "holdfast"."ready" r
        where (select $6::bigint) > 0 and r.job_type = g.job_types[1] and r.rank > w.d and r.token is null and r.run_at
            <= coalesce($12::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)
          and ((select $5::pg_catalog.text[]) is not null or not exists (
      select 1 from "holdfast"."job" p where p.id = r.id
        and (p.extras like '{"step":%' or (r.begun and (select 1 from "holdfast"."step" e where e.job = p.id limit 1) is
            not null))))
        order by r.rank, r.run_at, r.id limit g.n for update skip locked) up union all select * from (
        select r.ctid as tid from "holdfast"."ready" r
        where (select $6::bigint) < 0 and r.job_type = g.job_types[1] and r.rank < -w.d and r.token is null and r.run_at
            <= coalesce($12::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)
          and ((select $5::pg_catalog.text[]) is not null or not exists (
      select 1 from "holdfast"."job" p where p.id = r.id
        and (p.extras like '{"step":%' or (r.begun and (select 1 from "holdfast"."step" e where e.job = p.id limit 1) is
            not null))))
        order by r.rank desc, r.run_at, r.id limit g.n for update skip locked) down) h
      where w.n = g.probes and w.d < 2147483649::bigint
      limit g.n
    ) c
    where pg_catalog.cardinality(g.job_types) = 1
    union all
    select c.tid from share s cross join lateral (
      select r.ctid as tid from "holdfast"."ready" r where
    r.job_type = s.job_type and r.rank = s.rank and r.token is null and r.run_at <= coalesce($12::bigint, (extract(epoch
        from statement_timestamp()) * 1000.0)::bigint)
    and (r.run_at, r.id) > (s.from_at, s.from_id) and ((select $5::pg_catalog.text[]) is not null or not exists (
      select 1 from "holdfast"."job" p where p.id = r.id
        and (p.extras like '{"step":%' or (r.begun and (select 1 from "holdfast"."step" e where e.job = p.id limit 1) is
            not null))))
    order by r.run_at, r.id limit s.n for update skip locked
    ) c))
    returning r.id, r.job_type, r.rank, r.run_at, r.token, r.attempt, r.crashes, r.begun, r.undoing, r.started_at,
        r.errors, r.lane as lane_id, r.counted
  ),
filed as (
  insert into "holdfast"."claim" (token, session, ids, rates)
  select token, $11::bigint, pg_catalog.array_agg(id), $13::pg_catalog.text from taken group by token
)
select c.id, c.job_type, c.rank, c.run_at, c.token, c.attempt, c.started_at, c.lane_id, c.counted, j.input,
    j.max_attempts, case when c.crashes > 0 or c.begun
    or pg_catalog.num_nonnulls(c.errors, j.timeout_ms, j.key, j.context, j.parent_id, j.deadline_at, j.extras) > 0
  then pg_catalog.json_build_object('crashes', c.crashes, 'begun', c.begun, 'undoing', c.undoing, 'errors', c.errors,
      'timeout_ms', j.timeout_ms,
    'key', j.key, 'context', j.context, 'parent_id', j.parent_id, 'deadline_at', j.deadline_at, 'extras',
        j.extras)::pg_catalog.text
end as rest, (select l.queue from "holdfast"."job_type" l where l.id = c.job_type) as queue
from (select * from taken order by id offset 0) c
full join (
  select * from "holdfast"."job" where id = any(array(select id from taken))
    and id >= (select id from taken order by id limit 1) and id <= (select id from taken order by id desc limit 1)
  order by id offset 0
) j on j.id = c.id;

-- dropStrays
-- with ids, session
with gone as (
  delete from "holdfast"."ready" r where r.id = any($1::pg_catalog.uuid[]) and r.session = $2::bigint
    and not exists (select 1 from "holdfast"."job" j where j.id = r.id offset 0)
  returning r.id, r.token
),
spent as (
  delete from "holdfast"."claim" c where c.session = $2::bigint and c.token = any(array(select token from gone)) and
      c.ids operator(pg_catalog.<@) array(select id from gone)
)
select id from gone;

-- laneHeads
-- with rotations.lane, rotations.jobType, rotations.limit, now
  with recursive
wanted as materialized (
  select w.lane, w.job_type, w.n, o.tid, coalesce(o.from_at, '-9223372036854775808'::bigint) as from_at
  from unnest($1::int[], $2::int[], $3::int[]) as w (lane, job_type, n) left join lateral (select x.ctid as tid,
      x.from_at from "holdfast"."lane_rotation" x where (x.lane, x.job_type) >= (w.lane, w.job_type) and (x.lane,
      x.job_type) <= (w.lane, w.job_type) order by x.lane desc, x.job_type desc limit 1) o on true
),
level_of (lane, job_type, n, from_at, rank, nth) as (
  select w.lane, w.job_type, w.n, w.from_at,
    (select r.rank from "holdfast"."ready" r where r.lane = w.lane and r.job_type = w.job_type and r.run_at >= w.from_at
        order by r.rank limit 1), 1 from wanted w
  union all
  select l.lane, l.job_type, l.n, l.from_at,
    (select r.rank from "holdfast"."ready" r where r.lane = l.lane and r.job_type = l.job_type and r.rank > l.rank and
        r.run_at >= l.from_at order by r.rank limit 1), l.nth + 1
  from level_of l where l.rank is not null and l.nth < 64
)
  select h.lane, h.job_type, min(h.run_at) as at from (
    select l.lane, l.job_type, r.run_at from level_of l cross join lateral (
      select r.run_at from "holdfast"."ready" r
      where r.lane = l.lane and r.job_type = l.job_type and r.rank = l.rank and r.run_at >= l.from_at and case when
          r.token is null then true end
      order by r.run_at, r.id limit 1
    ) r where l.rank is not null
    union all
    select l.lane, l.job_type, r.run_at from level_of l cross join lateral (
      (select r.run_at from "holdfast"."ready" r
        where r.lane = l.lane and r.job_type = l.job_type and r.rank > l.rank and r.run_at >= l.from_at and r.run_at <=
            coalesce($4::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)
          and case when r.token is null then true end limit 1)
      union all
      -- What is not due is not claimed: its row need not be looked at.
      select min(r.run_at) from "holdfast"."ready" r where r.lane = l.lane and r.job_type = l.job_type and r.rank >
          l.rank and r.run_at >= l.from_at and r.run_at > coalesce($4::bigint, (extract(epoch from
          statement_timestamp()) * 1000.0)::bigint)
    ) r where l.nth = 64 and r.run_at is not null
  ) h group by h.lane, h.job_type;

-- moveRotations
-- with lanes.lane, lanes.n, lanes.starts, rotations.lane, rotations.jobType, rotations.by, rotations.active,
--     rotations.wakeAt
with counted as (
  update "holdfast"."lane" a set running = a.running + c.n, starts = c.starts
  from unnest($1::int[], $2::int[], $3::pg_catalog.text[]) as c (lane, n, starts)
  where a.id + 0 = c.lane and a.ctid = any(array(select (select x.ctid from "holdfast"."lane" x where x.id >= c.lane and
      x.id <= c.lane order by x.id desc limit 1) from pg_catalog.unnest($1::int[]) as c (lane)))
)
update "holdfast"."lane_rotation" w set vtime = w.vtime + m.by, active = m.active, wake_at = m.wake_at
from unnest($4::int[], $5::int[], $6::pg_catalog.float8[], $7::pg_catalog.bool[], $8::bigint[])
  as m (lane, job_type, by, active, wake_at)
where w.lane + 0 = m.lane and w.job_type + 0 = m.job_type
  and w.ctid = any(array(select (select x.ctid from "holdfast"."lane_rotation" x where (x.lane, x.job_type) >= (m.lane,
      m.job_type) and (x.lane, x.job_type) <= (m.lane, m.job_type) order by x.lane desc, x.job_type desc limit 1) from
      unnest($4::int[], $5::int[]) as m (lane, job_type)));

-- updateLimitedQueues
-- with rows.queue, rows.n, rows.starts, rows.limitedUntil, rows.adoptUntil
update "holdfast"."queue" q set running = q.running + g.n, starts = g.starts, limited_until = g.limited_until,
    adopt_until = g.adopt_until
from unnest($1::pg_catalog.text[], $2::int[], $3::pg_catalog.text[], $4::bigint[], $5::bigint[])
  as g (queue, n, starts, limited_until, adopt_until) where q.name = g.queue;

-- checkLimitedDue
-- with queues.queue, queues.group, names, now, direction, levels.jobType, levels.rank, levels.runAt, levels.rowKey
  with recursive
stand as materialized (
  select l.id as job_type, l.queue, q.grp
  from unnest($1::pg_catalog.text[], $2::pg_catalog.text[]) as q (queue, grp)
  join "holdfast"."job_type" l on q.queue is null or l.queue = q.queue
  where l.laned and ($3::pg_catalog.text[] is null or l.name = any($3::pg_catalog.text[]))
    and ($3::pg_catalog.text[] is not null or not exists (select 1 from "holdfast"."definition" m where m.name = l.name
        and m.is_machine)) and
  not exists (select 1 from "holdfast"."queue" stop where stop.name = l.queue and (stop.paused_at is not null or
      stop.cool_until > coalesce($4::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)))
  and not exists (select 1 from "holdfast"."hold" held where held.queues is null or l.queue = any(held.queues))
),
  limited_queue as materialized (
    select q.name, case when exists (select 1 from "holdfast"."returned_capacity" f where f.queue = q.name) then 0 else
        coalesce(q.limited_until, 0) end as limited_until
    from "holdfast"."queue" q
    where q.limited and exists (select 1 from pg_catalog.unnest($1::pg_catalog.text[]) w (queue) where w.queue is null
        or w.queue = q.name) and
  not exists (select 1 from "holdfast"."queue" stop where stop.name = q.name and (stop.paused_at is not null or
      stop.cool_until > coalesce($4::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)))
  and not exists (select 1 from "holdfast"."hold" held where held.queues is null or q.name = any(held.queues))
  ),
  scope as materialized (select l.id as job_type, g.limited_until from limited_queue g join "holdfast"."job_type" l on
      l.queue = g.name where not l.laned and ((select $3::pg_catalog.text[]) is null or l.name = any((select
      $3::pg_catalog.text[])::pg_catalog.text[])) and ((select $3::pg_catalog.text[]) is not null or not exists (select
      1 from "holdfast"."definition" m where m.name = l.name and m.is_machine))),
known as materialized (
  select k.job_type, k.rank, k.rank * (select $5::bigint) as d, k.from_at, k.from_id
  from unnest((select $6::int[]), (select $7::int[]), (select $8::bigint[]), (select $9::pg_catalog.uuid[]))
    as k (job_type, rank, from_at, from_id)
),
  level_of (job_type, d, n) as (
    select s.job_type, (
    select least(b.d, case when (select $5::bigint) > 0
      then (select r.rank from "holdfast"."ready" r where r.job_type = s.job_type and r.rank > -2147483649::bigint and
          r.rank < b.d order by r.rank limit 1)
      else (select -r.rank::bigint from "holdfast"."ready" r where r.job_type = s.job_type and r.rank <
          -(-2147483649::bigint) and r.rank > -b.d order by r.rank desc limit 1) end)
    from (select coalesce(case when -2147483649::bigint < 2147483649::bigint then (select min(k.d) from known k where
        k.job_type = s.job_type and k.d > -2147483649::bigint) end, 2147483649::bigint) as d) b), 1 from scope s
    union all
    select w.job_type, (
    select least(b.d, case when (select $5::bigint) > 0
      then (select r.rank from "holdfast"."ready" r where r.job_type = w.job_type and r.rank > w.d and r.rank < b.d
          order by r.rank limit 1)
      else (select -r.rank::bigint from "holdfast"."ready" r where r.job_type = w.job_type and r.rank < -(w.d) and
          r.rank > -b.d order by r.rank desc limit 1) end)
    from (select coalesce(case when w.d < 2147483649::bigint then (select min(k.d) from known k where k.job_type =
        w.job_type and k.d > w.d) end, 2147483649::bigint) as d) b), w.n + 1 from level_of w where w.d <
        2147483649::bigint and w.n < (select greatest(20, 1000 / greatest(pg_catalog.count(*), 1)) from scope)
  ),
  head (job_type, run_at) as (
    select w.job_type, h.run_at from level_of w
    left join lateral (select * from known k where k.job_type = w.job_type and k.d = w.d offset 0) k on true
    cross join lateral (
      select r.run_at from "holdfast"."ready" r
      where r.job_type = w.job_type and r.rank <= w.d * (select $5::bigint)
        and (r.rank, r.run_at, r.id) > (w.d * (select $5::bigint), coalesce(k.from_at, '-9223372036854775808'::bigint),
            coalesce(k.from_id, '00000000-0000-0000-0000-000000000000'::pg_catalog.uuid))
        and case when r.token is null then true end
      order by r.rank, r.run_at, r.id limit 1
    ) h
    where w.d < 2147483649::bigint and h.run_at < 8633688480000000
    union all
    select w.job_type, h.run_at from level_of w cross join lateral (select * from (
        select r.run_at from "holdfast"."ready" r
        where (select $5::bigint) > 0 and r.job_type = w.job_type and r.rank > w.d and r.token is null and r.run_at <=
            coalesce($4::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)
          and ((select $3::pg_catalog.text[]) is not null or not exists (
      select 1 from "holdfast"."job" p where p.id = r.id
        and (p.extras like '{"step":%' or (r.begun and (select 1 from "holdfast"."step" e where e.job = p.id limit 1) is
            not null))))
        order by r.rank, r.run_at, r.id limit 1) up union all select * from (
        select r.run_at from "holdfast"."ready" r
        where (select $5::bigint) < 0 and r.job_type = w.job_type and r.rank < -w.d and r.token is null and r.run_at <=
            coalesce($4::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)
          and ((select $3::pg_catalog.text[]) is not null or not exists (
      select 1 from "holdfast"."job" p where p.id = r.id
        and (p.extras like '{"step":%' or (r.begun and (select 1 from "holdfast"."step" e where e.job = p.id limit 1) is
            not null))))
        order by r.rank desc, r.run_at, r.id limit 1) down) h where w.n = (select greatest(20, 1000 /
            greatest(pg_catalog.count(*), 1)) from scope) and w.d < 2147483649::bigint
    union all
    -- What is not due is not claimed: its row need not be looked at.
    select w.job_type, h.run_at from level_of w cross join lateral (
      select min(r.run_at) as run_at from "holdfast"."ready" r
      where r.job_type = w.job_type and r.run_at > coalesce($4::bigint, (extract(epoch from statement_timestamp()) *
          1000.0)::bigint) and r.run_at < 8633688480000000
        and r.rank > case when (select $5::bigint) > 0 then w.d else -2147483649::bigint end
        and r.rank < case when (select $5::bigint) > 0 then 2147483649::bigint else -w.d end
    ) h where w.n = (select greatest(20, 1000 / greatest(pg_catalog.count(*), 1)) from scope) and w.d <
        2147483649::bigint and h.run_at is not null
  ),
  opening (at) as (select greatest(h.run_at, (select s.limited_until from scope s where s.job_type = h.job_type)) from
      head h)
  select coalesce($4::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) as now, least(
    coalesce((select at from opening where at <= coalesce($4::bigint, (extract(epoch from statement_timestamp()) *
        1000.0)::bigint) limit 1), (select min(at) from opening)),
    (select min(greatest(coalesce((select g.limited_until from limited_queue g where g.name = s.queue), 0), coalesce(
        (select 0 from "holdfast"."lane_wakeup" b where b.job_type = s.job_type limit 1),
        (select 0 from (select 1 from "holdfast"."lane_rotation" w where w.job_type = s.job_type and w.active order by
            w.vtime limit 1) awake),
        (select w.wake_at from "holdfast"."lane_rotation" w where w.job_type = s.job_type and w.wake_at is not null
            order by w.wake_at limit 1), 8633688480000000)))
      from stand s)
  ) as due_at;

-- returnLaneCapacity
-- with rows.lane, rows.jobType, rows.n
with c as materialized (select * from unnest($1::int[], $2::int[], $3::int[]) as c (lane, job_type, n)),
rung as (insert into "holdfast"."lane_wakeup" (job_type, lanes, backs) select c.job_type, pg_catalog.array_agg(c.lane),
    pg_catalog.array_agg(c.n) from c group by c.job_type)
select distinct a.queue from "holdfast"."lane" a where a.ctid = any(array(select (select x.ctid from "holdfast"."lane" x
    where x.id >= c.lane and x.id <= c.lane order by x.id desc limit 1) from c)) and a.running >= a.concurrency;

-- returnQueueCapacity
-- with rows.queue, rows.n
with r as (insert into "holdfast"."returned_capacity" (queue, n) select * from unnest($1::pg_catalog.text[], $2::int[]))
select q.name as queue from "holdfast"."queue" q where q.name = any($1::pg_catalog.text[]) and q.limited_until >=
    8633688480000000;

-- takeReturnedCapacity
-- with names
with gone as (delete from "holdfast"."returned_capacity" where queue = any($1::pg_catalog.text[]) returning queue, n)
select queue, sum(n)::int as n from gone group by queue;

-- lockLanes
-- with ids
select a.id, a.starts from "holdfast"."lane" a where a.id = any($1::int[]) order by a.id for update;

-- laneStarts
-- with rows.lane, rows.starts
with changed as (
  update "holdfast"."lane" a set starts = c.starts
  from unnest($1::int[], $2::pg_catalog.text[]) as c (lane, starts) where a.id = c.lane returning a.id
)
insert into "holdfast"."lane_wakeup" (job_type, lanes, ats)
select w.job_type, pg_catalog.array_agg(w.lane), pg_catalog.array_agg(0::bigint) from "holdfast"."lane_rotation" w where
    w.lane = any(array(select id from changed)) group by w.job_type;

-- lockQueues
-- with names, throttled
select q.name, q.starts from "holdfast"."queue" q
where q.name = any($1::pg_catalog.text[]) or q.cool_base_ms is not null
  and q.name in (select l.queue from "holdfast"."ready" r join "holdfast"."job_type" l on l.id = r.job_type where r.id =
      any($2::pg_catalog.uuid[]))
order by q.name for update;

-- queueStarts
-- with rows.queue, rows.starts
update "holdfast"."queue" q set starts = c.starts, limited_until = null
from unnest($1::pg_catalog.text[], $2::pg_catalog.text[]) as c (queue, starts) where q.name = c.queue;

-- setLane
-- with queue, key, concurrency, rateLimit, ratePer, weight, paused, now, tuned, standard
insert into "holdfast"."lane" as a (queue, key, concurrency, rate_limit, rate_per, weight, paused_at, tuned, used_at)
values ($1, $2, $3::int, $4::int, $5::bigint, coalesce($6::int, 1),
  case when $7::pg_catalog.bool then coalesce($8::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)
      end, $9::pg_catalog.bool, coalesce($8::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint))
on conflict (queue, key) do update set
  concurrency = case when $9::pg_catalog.bool then excluded.concurrency else a.concurrency end,
  rate_limit = case when $9::pg_catalog.bool then excluded.rate_limit else a.rate_limit end,
  rate_per = case when $9::pg_catalog.bool then excluded.rate_per else a.rate_per end,
  weight = case when $9::pg_catalog.bool then excluded.weight else a.weight end,
  paused_at = case when $7::pg_catalog.bool is null then a.paused_at when $7::pg_catalog.bool then coalesce(a.paused_at,
      coalesce($8::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)) end,
  standard = case when $9::pg_catalog.bool and not a.tuned then $10::pg_catalog.text else a.standard end,
  tuned = a.tuned or excluded.tuned
returning id;

-- wakeLane
-- with lane
insert into "holdfast"."lane_wakeup" (job_type, lanes, ats)
select w.job_type, pg_catalog.array_agg(w.lane), pg_catalog.array_agg(0::bigint) from "holdfast"."lane_rotation" w where
    w.lane = $1::int group by w.job_type;

-- tuneLanes
-- with rows.name, rows.concurrency, rows.rateLimit, rows.ratePer, rows.weight
update "holdfast"."lane" a set concurrency = w.concurrency, rate_limit = w.rate_limit, rate_per = w.rate_per, weight =
    coalesce(w.weight, 1)
from unnest($1::pg_catalog.text[], $2::int[], $3::int[], $4::bigint[], $5::int[])
  as w (name, concurrency, rate_limit, rate_per, weight)
where not a.tuned and a.queue in (select l.queue from "holdfast"."job_type" l where l.name = w.name and l.laned)
  and (a.concurrency, a.rate_limit, a.rate_per, a.weight) is distinct from (w.concurrency, w.rate_limit, w.rate_per,
      coalesce(w.weight, 1))
returning a.id;

-- laneRows
-- with now, queue, key, after, limit
select a.*, coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) as now, coalesce((
  select sum(u.back) from "holdfast"."job_type" o join "holdfast"."lane_wakeup" b on b.job_type = o.id and b.backs is
      not null
  cross join lateral unnest(b.lanes, b.backs) as u (lane, back) where o.queue = a.queue and o.laned and u.lane = a.id),
      0)::int as back,
  (select pg_catalog.count(*)::int from (select 1 from "holdfast"."ready" r where r.lane = a.id and r.token is null
      limit 10000) capped) as waiting
from "holdfast"."lane" a
where ($2::pg_catalog.text is null or a.queue = $2::pg_catalog.text) and ($3::pg_catalog.text is null or a.key =
    $3::pg_catalog.text) and a.id > $4::int
order by a.id limit $5::int;

-- temporaryLimits
-- with due, now
select kind, name, set_at, until_at, back from "holdfast"."temporary_limit" where not $1::pg_catalog.bool or until_at <=
    coalesce($2::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) order by until_at, kind, name;

-- lockTemporaryLimit
-- with kind, name
select until_at, back from "holdfast"."temporary_limit" where kind = $1 and name = $2 for update;

-- putTemporaryLimit
-- with kind, name, now, at, delay, back
insert into "holdfast"."temporary_limit" (kind, name, set_at, until_at, back) values ($1, $2, coalesce($3::bigint,
    (extract(epoch from statement_timestamp()) * 1000.0)::bigint), coalesce($4::bigint, coalesce($3::bigint,
    (extract(epoch from statement_timestamp()) * 1000.0)::bigint) + $5::bigint), $6)
on conflict (kind, name) do update set until_at = excluded.until_at, back = excluded.back;

-- deleteTemporaryLimit
-- with kind, name
delete from "holdfast"."temporary_limit" where kind = $1 and name = $2;

-- untuneLane
-- with queue, key
update "holdfast"."lane" set tuned = false where queue = $1 and key = $2;

-- laneDefaults
-- with queue
select k.lanes from "holdfast"."definition" k where k.has_lane and k.name in (select l.name from "holdfast"."job_type" l
    where l.queue = $1 and l.laned)
order by k.seen_at desc, k.name desc limit 1;

-- resetLane
-- with concurrency, rateLimit, ratePer, weight, drop, now, queue, key
update "holdfast"."lane" a set concurrency = $1::int, rate_limit = $2::int, rate_per = $3::bigint, weight =
    coalesce($4::int, 1),
  starts = null, tuned = false, paused_at = case when not $5::pg_catalog.bool then a.paused_at end,
  used_at = case when $5::pg_catalog.bool then least(a.used_at, coalesce($6::bigint, (extract(epoch from
      statement_timestamp()) * 1000.0)::bigint) - 518400000) else a.used_at end
where a.queue = $7 and a.key = $8 returning a.id, exists (select 1 from "holdfast"."ready" r where r.lane = a.id and
    r.token is null) as occupied;

-- queueUse
-- with now
select q.name, q.settings, q.cool_base_ms, q.cool_max_ms, q.running, q.starts, coalesce($1::bigint, (extract(epoch from
    statement_timestamp()) * 1000.0)::bigint) as now,
  coalesce((select sum(r.n) from "holdfast"."returned_capacity" r where r.queue = q.name), 0) as back
from "holdfast"."queue" q where q.limited order by q.name;

-- throttledLanes
-- with now, limit
select a.*, coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) as now, coalesce((
  select sum(u.back) from "holdfast"."job_type" o join "holdfast"."lane_wakeup" b on b.job_type = o.id and b.backs is
      not null
  cross join lateral unnest(b.lanes, b.backs) as u (lane, back) where o.queue = a.queue and o.laned and u.lane = a.id),
      0)::int as back,
  (select pg_catalog.count(*) from (select 1 from "holdfast"."ready" r where r.lane = a.id and r.token is null limit
      10000) capped) as waiting
from "holdfast"."lane" a where a.id in (
  select f.id from (
    select c.id, (select pg_catalog.count(*) from (select 1 from "holdfast"."ready" r where r.lane = c.id and r.token is
        null limit 100) few) as n
    from (
      select l.id from "holdfast"."lane" l
      where l.paused_at is not null or (l.concurrency is not null and l.running >= l.concurrency) or (l.rate_limit is
          not null and l.starts is not null)
      order by l.id limit 500
    ) c
  ) f where f.n > 0 order by f.n desc, f.id limit $2::int
);

-- deleteUnusedLanes
-- with now
with gone as (
  delete from "holdfast"."lane" a where a.id = any(array(
    select a.id from "holdfast"."lane" a where not a.tuned and a.paused_at is null and a.running = 0 and a.used_at <
        coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) - 604800000
      and not exists (select 1 from "holdfast"."ready" r where r.lane = a.id) limit 1000 for update skip locked))
  returning a.id
),
unrung as (delete from "holdfast"."lane_wakeup" b where b.lanes operator(pg_catalog.<@) array(select id from gone))
delete from "holdfast"."lane_rotation" w where w.lane in (select id from gone);

-- whyJob
-- with now, id
select r.note, r.throttles, r.counted, coalesce($1::bigint, (extract(epoch from statement_timestamp()) *
    1000.0)::bigint) as now, q.limited, q.running as queue_running, q.starts as queue_starts, q.settings,
  a.id as lane_id, a.running, a.concurrency, a.rate_limit, a.rate_per, a.weight, a.paused_at, a.starts,
  coalesce((
  select sum(u.back) from "holdfast"."job_type" o join "holdfast"."lane_wakeup" b on b.job_type = o.id and b.backs is
      not null
  cross join lateral unnest(b.lanes, b.backs) as u (lane, back) where o.queue = a.queue and o.laned and u.lane = a.id),
      0)::int as back,
  (select pg_catalog.count(*)::int from "holdfast"."uncounted_job" g where g.queue = l.queue)
    - coalesce((select sum(f.n) from "holdfast"."returned_capacity" f where f.queue = l.queue), 0)::int as
        uncounted_jobs
from "holdfast"."ready" r join "holdfast"."job_type" l on l.id = r.job_type left join "holdfast"."queue" q on q.name =
    l.queue left join "holdfast"."lane" a on a.id = r.lane
where r.id = $2::pg_catalog.uuid;

-- breakerRows
-- with now, keys
select b.*, coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) as now, exists (select 1
    from "holdfast"."session" s where s.id = b.probe_session and s.lease_until > coalesce($1::bigint, (extract(epoch
    from statement_timestamp()) * 1000.0)::bigint)) as probing
from "holdfast"."breaker" b where $2::pg_catalog.text[] is null or b.key = any($2::pg_catalog.text[]) order by b.key;

-- addBreakers
-- with keys
insert into "holdfast"."breaker" (key) select k from pg_catalog.unnest($1::pg_catalog.text[]) as k order by k on
    conflict (key) do nothing;

-- lockBreakers
-- with now, keys
select b.*, coalesce($1::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint) as now from
    "holdfast"."breaker" b where b.key = any($2::pg_catalog.text[]) order by b.key for update;

-- writeBreakers
-- with rows.key, rows.failures, rows.openedAt, rows.openUntil, rows.probe, rows.error, rows.counted
update "holdfast"."breaker" b set failures = w.failures, opened_at = w.opened_at, open_until = w.open_until,
    probe_session = w.probe, error = w.error,
  counted = w.counted
from unnest($1::pg_catalog.text[], $2::int[], $3::bigint[], $4::bigint[], $5::bigint[], $6::pg_catalog.text[],
  $7::pg_catalog.text[]) as w (key, failures, opened_at, open_until, probe, error, counted) where b.key = w.key;

-- probeBreaker
-- with session, key, now
update "holdfast"."breaker" b set probe_session = $1::bigint
where b.key = $2 and b.open_until <= coalesce($3::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint)
  and (b.probe_session = $1::bigint or coalesce((select s.lease_until from "holdfast"."session" s where s.id =
      b.probe_session), 0) <= coalesce($3::bigint, (extract(epoch from statement_timestamp()) * 1000.0)::bigint))
returning b.key;

-- unprobeBreaker
-- with key, session
update "holdfast"."breaker" set probe_session = null where key = $1 and probe_session = $2::bigint returning key;

-- resetBreaker
-- with key
delete from "holdfast"."breaker" where key = $1 returning key;

-- lateJobs
-- with ids, token
  with taken as (select * from "holdfast"."ready" r where r.id = any($1::pg_catalog.uuid[]) and r.token = $2::bigint),
  stray as (
    delete from "holdfast"."ready" r where r.id = any($1::pg_catalog.uuid[]) and r.token = $2::bigint
      and not exists (select 1 from "holdfast"."job" j where j.id = r.id offset 0)
  )
  select c.job_type, c.rank, c.attempt, j.max_attempts, min(c.token) as token, min(c.started_at) as started_at,
  string_agg(c.id::pg_catalog.text, E'\x1e') as ids, string_agg(c.run_at::pg_catalog.text, E'\x1e') as run_ats,
      string_agg(replace(j.input, E'\x1e', ''), E'\x1e') as inputs, case when c.crashes > 0 or c.begun
      or pg_catalog.num_nonnulls(c.errors, j.timeout_ms, j.key, j.context, j.parent_id, j.deadline_at, j.extras) > 0
    then pg_catalog.json_build_object('crashes', c.crashes, 'begun', c.begun, 'undoing', c.undoing, 'errors', c.errors,
        'timeout_ms', j.timeout_ms,
      'key', j.key, 'context', j.context, 'parent_id', j.parent_id, 'deadline_at', j.deadline_at, 'extras',
          j.extras)::pg_catalog.text
  end as rest
from (select * from taken order by id offset 0) c
full join (
  select * from "holdfast"."job" where id = any(array(select id from taken))
    and id >= (select id from taken order by id limit 1) and id <= (select id from taken order by id desc limit 1)
  order by id offset 0
) j on j.id = c.id
group by j.id is null, c.job_type, c.rank, c.attempt, j.max_attempts, rest, case when octet_length(j.input) > 8192 then
    c.id end;
