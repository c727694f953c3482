-- addJobTypes
-- with rows.queue, rows.name, rows.laned
insert into "holdfast_job_type" (queue, name, laned) values (?, ?, ?) on conflict (queue, name, laned) do nothing;

-- findJobTypes
-- with rows.queue, rows.name, rows.laned
select id, queue, name, laned from "holdfast_job_type" where queue = ? and name = ? and laned = ?;

-- jobTypesById
-- with ids
select id, queue, name, laned from "holdfast_job_type" where id in (select value from json_each(?));

-- insertAlike, 1 of 2
-- with rows.id, jobType, now, rows.input, maxAttempts, timeout
insert into "holdfast_job" (id, job_type, created_at, input, max_attempts, timeout_ms)
  values (?, ?, ?, ?, ?, ?);

-- insertAlike, 1 of 2, ten rows
-- with rows.id, jobType, now, rows.input, maxAttempts, timeout
insert into "holdfast_job" (id, job_type, created_at, input, max_attempts, timeout_ms)
  values (?, ?, ?, ?, ?, ?), (?, ?, ?, ?, ?, ?), (?, ?, ?, ?, ?, ?), (?, ?, ?, ?, ?, ?), (?, ?, ?, ?, ?, ?), (?, ?, ?,
      ?, ?, ?), (?, ?, ?, ?, ?, ?), (?, ?, ?, ?, ?, ?), (?, ?, ?, ?, ?, ?), (?, ?, ?, ?, ?, ?);

-- insertAlike, 2 of 2
-- with jobType, rank, now, count
insert into "holdfast_ready" (seq, job_type, rank, run_at) select seq, ?, ?, ? from "holdfast_job" where seq >
    last_insert_rowid() - ?;

-- insertNew, 1 of 2
-- with rows.id, rows.jobType, now, rows.input, rows.maxAttempts, rows.timeout, rows.extras
insert into "holdfast_job" (id, job_type, created_at, input, max_attempts, timeout_ms, extras)
  values (?, ?, ?, ?, ?, ?, ?);

-- insertNew, 1 of 2, ten rows
-- with rows.id, rows.jobType, now, rows.input, rows.maxAttempts, rows.timeout, rows.extras
insert into "holdfast_job" (id, job_type, created_at, input, max_attempts, timeout_ms, extras)
  values (?, ?, ?, ?, ?, ?, ?), (?, ?, ?, ?, ?, ?, ?), (?, ?, ?, ?, ?, ?, ?), (?, ?, ?, ?, ?, ?, ?), (?, ?, ?, ?, ?, ?,
      ?), (?, ?, ?, ?, ?, ?, ?), (?, ?, ?, ?, ?, ?, ?), (?, ?, ?, ?, ?, ?, ?), (?, ?, ?, ?, ?, ?, ?), (?, ?, ?, ?, ?, ?,
      ?);

-- insertNew, 2 of 2
-- with rows.id, rows.jobType, rows.rank, now, rows.runAt, now, rows.delay
insert into "holdfast_ready" (seq, job_type, rank, run_at)
  values ((select known.seq from "holdfast_job" known where known.id = ?), ?, ?, max(?, coalesce(?, ? + coalesce(?,
      0))));

-- insertNew, 2 of 2, ten rows
-- with rows.id, rows.jobType, rows.rank, now, rows.runAt, now, rows.delay
insert into "holdfast_ready" (seq, job_type, rank, run_at)
  values ((select known.seq from "holdfast_job" known where known.id = ?), ?, ?, max(?, coalesce(?, ? + coalesce(?,
      0)))), ((select known.seq from "holdfast_job" known where known.id = ?), ?, ?, max(?, coalesce(?, ? + coalesce(?,
      0)))), ((select known.seq from "holdfast_job" known where known.id = ?), ?, ?, max(?, coalesce(?, ? + coalesce(?,
      0)))), ((select known.seq from "holdfast_job" known where known.id = ?), ?, ?, max(?, coalesce(?, ? + coalesce(?,
      0)))), ((select known.seq from "holdfast_job" known where known.id = ?), ?, ?, max(?, coalesce(?, ? + coalesce(?,
      0)))), ((select known.seq from "holdfast_job" known where known.id = ?), ?, ?, max(?, coalesce(?, ? + coalesce(?,
      0)))), ((select known.seq from "holdfast_job" known where known.id = ?), ?, ?, max(?, coalesce(?, ? + coalesce(?,
      0)))), ((select known.seq from "holdfast_job" known where known.id = ?), ?, ?, max(?, coalesce(?, ? + coalesce(?,
      0)))), ((select known.seq from "holdfast_job" known where known.id = ?), ?, ?, max(?, coalesce(?, ? + coalesce(?,
      0)))), ((select known.seq from "holdfast_job" known where known.id = ?), ?, ?, max(?, coalesce(?, ? + coalesce(?,
      0))));

-- insertJobs, 1 of 3
-- with rows.id, rows.jobType, now, rows.input, rows.maxAttempts, rows.timeout, rows.deadline, rows.parent, rows.key,
--     rows.lane, rows.context, rows.extras, rows.id
insert into "holdfast_job" (id, job_type, created_at, input, max_attempts, timeout_ms, deadline_at, parent_id, key,
    lane, context, extras)
  select ?, ?, ?, ?, ?, ?, ?, ?,
    ?, ?, ?, ?
  where not exists (select 1 from "holdfast_used_id" d where d.id = ?)
  on conflict (id) do nothing;

-- insertJobs, 2 of 3
-- with rows.jobType, rows.laneId, rows.slotted, now, rows.runAt, now, rows.delay, rows.laneId
insert into "holdfast_lane_wakeup" (job_type, lane, at)
  select ?, ?, max(iif(?, 0, ?), coalesce(?, ? + coalesce(?, 0))) where ? is not null
  on conflict (job_type, lane) do update set at = min(at, excluded.at);

-- insertJobs, 3 of 3
-- with rows.jobType, rows.rank, rows.slotted, now, rows.runAt, now, rows.delay, rows.laneId, rows.id, rows.id
insert into "holdfast_ready" (seq, job_type, rank, run_at, lane)
  select j.seq, ?, ?, max(iif(?, 0, ?), coalesce(?, ? + coalesce(?, 0))), ?
  from "holdfast_job" j where j.id = ? and not exists (select 1 from "holdfast_history" h where h.seq = j.seq)
  on conflict (seq) do nothing returning ? as id;

-- takeKeys
-- with rows.scope, rows.key, rows.id, now, rows.forMs
insert into "holdfast_unique_key" (scope, key, id, expires_at) values (?, ?, ?, ? + ?)
on conflict (scope, key) do nothing returning id;

-- findKeys
-- with now, rows.scope, rows.key
select u.scope, u.key, u.id,
  coalesce(u.expires_at <= ?, true) and not exists (select 1 from "holdfast_ready" r where r.seq = (select known.seq
      from "holdfast_job" known where known.id = u.id)) as stale
from "holdfast_unique_key" u where u.scope = ? and u.key = ?;

-- takeStaleKeys
-- with rows.id, now, rows.forMs, rows.scope, rows.key, rows.holder, now
update "holdfast_unique_key" set id = ?, expires_at = ? + ?
where scope = ? and key = ? and id = ? and coalesce(expires_at <= ?, true)
  and not exists (select 1 from "holdfast_ready" r where r.seq = (select known.seq from "holdfast_job" known where
      known.id = "holdfast_unique_key".id))
returning id;

-- findJobs
-- with ids
select id from "holdfast_job" where id in (select value from json_each(?));

-- findUsed
-- with ids, ids
select id, null as job from "holdfast_job" where id in (select value from json_each(?))
union all
select id, job from "holdfast_used_id" where id in (select value from json_each(?));

-- replaceQueued, 1 of 3
-- with rows.jobType, rows.rank, rows.laneId, now, rows.runAt, now, rows.delay, now, rows.runAt, now, rows.delay,
--     rows.id
update "holdfast_ready" set job_type = ?, rank = ?, lane = ?,
    run_at = case when waits is null then max(?, coalesce(?, ? + coalesce(?, 0))) else run_at end,
    due_at = case when waits is null then due_at else max(?, coalesce(?, ? + coalesce(?, 0))) end
  where seq = (select known.seq from "holdfast_job" known where known.id = ?) and token is null and not begun;

-- replaceQueued, 2 of 3
-- with rows.sent, now, rows.id, rows.id
insert into "holdfast_used_id" (id, at, job)
  select ?, ?, ? from "holdfast_ready" r where r.seq = (select known.seq from "holdfast_job" known where known.id = ?)
      and r.token is null and not r.begun
  on conflict (job) where job is not null do update set id = excluded.id, at = excluded.at;

-- replaceQueued, 3 of 3
-- with rows.jobType, rows.input, rows.maxAttempts, rows.timeout, rows.deadline, rows.lane, rows.context, rows.extras,
--     rows.id
update "holdfast_job" set job_type = ?, input = ?, max_attempts = ?, timeout_ms = ?, deadline_at = ?,
    lane = ?, context = ?, extras = ?
  where id = ? and exists (select 1 from "holdfast_ready" r where r.seq = "holdfast_job".seq and r.token is null and not
      r.begun) returning id;

-- claimLevel, 1 of 3
-- with jobType, rank, now, runAt, session, now, queue, now, queue, limit, session
insert into "holdfast_claim" (session, ids)
    with filed (ids) as materialized (
      select json_group_array(seq) from (
        select r.seq from "holdfast_ready" r
        where r.job_type = ? and r.rank = ? and r.token is null and r.run_at <= ? and r.run_at >= ? and exists (select 1
            from "holdfast_session" s where s.id = ? and s.lease_until > ?) and
  not exists (select 1 from "holdfast_queue" stop where stop.name = ? and (stop.paused_at is not null or stop.cool_until
      > ? or stop.limited))
  and not exists (select 1 from "holdfast_hold" held where held.queues is null or ? in (select value from
      json_each(held.queues)))
        order by r.run_at, r.seq limit ?))
    select ?, ids from filed where ids <> '[]';

-- claimLevel, 2 of 3
-- with session, now
update "holdfast_ready" set token = last_insert_rowid(), session = ?, attempt = min(attempt + 1, 32767), started_at = ?
  where seq in (select o.value from "holdfast_claim" c, json_each(c.ids) o where c.token = case when changes() > 0 then
      last_insert_rowid() end);

-- claimLevel, 3 of 3
select j.id, r.seq as row_key, r.job_type, r.rank, r.run_at, r.token, r.attempt, r.started_at, j.input, j.max_attempts,
    case when r.crashes > 0 or r.begun
      or coalesce(r.errors, j.timeout_ms, j.key, j.context, j.parent_id, j.deadline_at, j.extras) is not null
    then json_object('crashes', r.crashes, 'begun', r.begun, 'undoing', r.undoing, 'errors', r.errors, 'timeout_ms',
        j.timeout_ms,
      'key', j.key, 'context', j.context, 'parent_id', j.parent_id, 'deadline_at', j.deadline_at, 'extras', j.extras)
  end as rest
  from "holdfast_claim" c, json_each(c.ids) o cross join "holdfast_ready" r on r.seq = o.value cross join "holdfast_job"
      j on j.seq = r.seq
  where c.token = case when changes() > 0 then last_insert_rowid() end;

-- claim, 1 of 3
-- with queues, names, names, names, now, direction, session, now, direction, now, names, direction, now, names,
--     direction, now, names, direction, now, names, session
insert into "holdfast_claim" (session, ids) with recursive
  scope as materialized (
    select l.id as job_type, l.queue, q.value ->> 'group' as grp, q.value ->> 'limit' as n
    from json_each(?) q join "holdfast_job_type" l on q.value ->> 'queue' is null or l.queue = q.value ->> 'queue'
    where not l.laned and (? is null or l.name in (select value from json_each(?)))
      and (? is not null or not exists (select 1 from "holdfast_definition" m where m.name = l.name and m.is_machine))
          and
    not exists (select 1 from "holdfast_queue" stop where stop.name = l.queue and (stop.paused_at is not null or
        stop.cool_until > ? or stop.limited))
    and not exists (select 1 from "holdfast_hold" held where held.queues is null or l.queue in (select value from
        json_each(held.queues)))
  ),
  level (job_type, rank, grp, n, nth) as (
    select s.job_type, case when ? > 0
      then (select r.rank from "holdfast_ready" r where r.job_type = s.job_type and r.token is null order by r.rank asc
          limit 1)
      else (select r.rank from "holdfast_ready" r where r.job_type = s.job_type and r.token is null order by r.rank desc
          limit 1) end, s.grp, s.n, 1 from scope s where exists (select 1 from "holdfast_session" s where s.id = ? and
          s.lease_until > ?)
    union all
    select l.job_type, case when ? > 0
      then (select r.rank from "holdfast_ready" r where r.job_type = l.job_type and r.token is null and r.rank > l.rank
          order by r.rank asc limit 1)
      else (select r.rank from "holdfast_ready" r where r.job_type = l.job_type and r.token is null and r.rank < l.rank
          order by r.rank desc limit 1) end, l.grp, l.n - (
      select count(*) from (
        select 1 from "holdfast_ready" r where r.job_type = l.job_type and r.rank = l.rank and r.token is null and
            r.run_at <= ?
          and (? is not null or not exists (
        select 1 from "holdfast_job" p where p.seq = r.seq
          and (p.extras like '{"step":%' or (r.begun and (select 1 from "holdfast_step" e where e.job = p.id limit 1) is
              not null)))) limit (select max(n) from scope))), l.nth + 1
    from level l where l.rank is not null and l.n > 0 and l.nth < (select max(20, 1000 / max(count(*), 1)) from scope)
  ), filed (ids) as materialized (
      select json_group_array(seq) from (
        select r.seq, s.n, row_number() over (partition by l.grp order by r.rank * ?, r.run_at, r.seq) as ordinal
        from level l join scope s on s.job_type = l.job_type cross join "holdfast_ready" r
        where l.rank is not null and l.n > 0 and r.seq in (
          select seq from (
            select c.seq from "holdfast_ready" c where c.rank = l.rank and c.job_type = l.job_type and c.token is null
                and c.run_at <= ? and (? is not null or not exists (
        select 1 from "holdfast_job" p where p.seq = c.seq
          and (p.extras like '{"step":%' or (c.begun and (select 1 from "holdfast_step" e where e.job = p.id limit 1) is
              not null)))) order by c.run_at, c.seq limit (select max(n) from scope))
          union all
          select seq from (
            select c.seq from "holdfast_ready" c
            where c.rank > iif(l.nth = (select max(20, 1000 / max(count(*), 1)) from scope) and ? > 0, l.rank,
                9223372036854775807) and c.job_type = l.job_type and c.token is null and c.run_at <= ? and (? is not
                null or not exists (
        select 1 from "holdfast_job" p where p.seq = c.seq
          and (p.extras like '{"step":%' or (c.begun and (select 1 from "holdfast_step" e where e.job = p.id limit 1) is
              not null))))
            order by c.rank, c.token, c.run_at, c.seq limit (select max(n) from scope))
          union all
          select seq from (
            select c.seq from "holdfast_ready" c
            where c.rank < iif(l.nth = (select max(20, 1000 / max(count(*), 1)) from scope) and ? < 0, l.rank,
                -9223372036854775807) and c.job_type = l.job_type and c.token is null and c.run_at <= ? and (? is not
                null or not exists (
        select 1 from "holdfast_job" p where p.seq = c.seq
          and (p.extras like '{"step":%' or (c.begun and (select 1 from "holdfast_step" e where e.job = p.id limit 1) is
              not null))))
            order by c.rank desc, c.token desc, c.run_at, c.seq limit (select max(n) from scope)))
      ) where ordinal <= n)
    select ?, ids from filed where ids <> '[]';

-- claim, 2 of 3
-- with session, now
update "holdfast_ready" set token = last_insert_rowid(), session = ?, attempt = min(attempt + 1, 32767), started_at = ?
  where seq in (select o.value from "holdfast_claim" c, json_each(c.ids) o where c.token = case when changes() > 0 then
      last_insert_rowid() end);

-- claim, 3 of 3
select j.id, r.seq as row_key, r.job_type, r.rank, r.run_at, r.token, r.attempt, r.started_at, j.input, j.max_attempts,
    case when r.crashes > 0 or r.begun
      or coalesce(r.errors, j.timeout_ms, j.key, j.context, j.parent_id, j.deadline_at, j.extras) is not null
    then json_object('crashes', r.crashes, 'begun', r.begun, 'undoing', r.undoing, 'errors', r.errors, 'timeout_ms',
        j.timeout_ms,
      'key', j.key, 'context', j.context, 'parent_id', j.parent_id, 'deadline_at', j.deadline_at, 'extras', j.extras)
  end as rest
  from "holdfast_claim" c, json_each(c.ids) o cross join "holdfast_ready" r on r.seq = o.value cross join "holdfast_job"
      j on j.seq = r.seq
  where c.token = case when changes() > 0 then last_insert_rowid() end;

-- checkDue
-- with queues, names, names, names, now, now, now, now, now, now, queues
  with
scope as materialized (
  select l.id as job_type, l.queue, q.value ->> 'group' as grp, q.value ->> 'limit' as n
  from json_each(?) q join "holdfast_job_type" l on q.value ->> 'queue' is null or l.queue = q.value ->> 'queue'
  where not l.laned and (? is null or l.name in (select value from json_each(?)))
    and (? is not null or not exists (select 1 from "holdfast_definition" m where m.name = l.name and m.is_machine)) and
  not exists (select 1 from "holdfast_queue" stop where stop.name = l.queue and (stop.paused_at is not null or
      stop.cool_until > ? or stop.limited))
  and not exists (select 1 from "holdfast_hold" held where held.queues is null or l.queue in (select value from
      json_each(held.queues)))
)
  select ? as now,
    min(coalesce(
      (select ? from (
        with recursive looked (job_type, rank, nth) as (
      select s.job_type, (select r.rank from "holdfast_ready" r where r.job_type = s.job_type and r.token is null order
          by r.rank asc limit 1), 1 from scope s
      union all
      select l.job_type, (select r.rank from "holdfast_ready" r where r.job_type = l.job_type and r.token is null and
          r.rank > l.rank order by r.rank asc limit 1), l.nth + 1
      from looked l where l.rank is not null and l.nth < (select max(20, 1000 / max(count(*), 1)) from scope)
    )
        select (select r.run_at from "holdfast_ready" r where r.job_type = l.job_type and r.rank = l.rank and r.token is
            null order by r.run_at, r.seq limit 1) as at from looked l where l.rank is not null
        union all
        select (select r.run_at from "holdfast_ready" r where r.job_type = l.job_type and r.token is null and r.rank >
            l.rank and r.run_at <= ? limit 1) from looked l where l.rank is not null and l.nth = (select max(20, 1000 /
            max(count(*), 1)) from scope)
      ) where at <= ? limit 1),
      (select min(at) from (
        with recursive looked (job_type, rank, nth) as (
      select s.job_type, (select r.rank from "holdfast_ready" r where r.job_type = s.job_type and r.token is null order
          by r.rank asc limit 1), 1 from scope s
      union all
      select l.job_type, (select r.rank from "holdfast_ready" r where r.job_type = l.job_type and r.token is null and
          r.rank > l.rank order by r.rank asc limit 1), l.nth + 1
      from looked l where l.rank is not null and l.nth < (select max(20, 1000 / max(count(*), 1)) from scope)
    )
        select (select r.run_at from "holdfast_ready" r where r.job_type = l.job_type and r.rank = l.rank and r.token is
            null order by r.run_at, r.seq limit 1) as at from looked l where l.rank is not null
        union all
        select (select min(r.run_at) from "holdfast_ready" r where r.job_type = l.job_type and r.token is null and
            r.rank > l.rank) from looked l where l.rank is not null and l.nth = (select max(20, 1000 / max(count(*), 1))
            from scope)
      )), 8633688480000000),
      coalesce((select min(q.cool_until) from "holdfast_queue" q where q.cool_until > ?
        and exists (select 1 from json_each(?) w where w.value ->> 'queue' is null or w.value ->> 'queue' = q.name)),
            8633688480000000)
    ) as due_at,
    (select min(s.lease_until) from "holdfast_session" s where s.closed_at is null) as expires_at,
    (select json_group_array(distinct l.queue) from "holdfast_job_type" l where l.laned) as laned,
    (select json_group_array(q.name) from "holdfast_queue" q where q.limited) as limited,
    (select case when count(*) > 0 then json_group_array(q.name) end from "holdfast_queue" q where q.drain_at is not
        null) as draining;

-- openSession
-- with id, kind, workerId, name, host, pid, version, queues, names, runtime, release, versions, quietAt, leaseMs, now,
--     now, now, leaseMs
insert into "holdfast_session" (id, kind, worker_id, name, host, pid, version, queues, names, runtime, release,
    versions, quiet_at, lease_ms, started_at, beat_at, lease_until)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ? + ?)
on conflict (id) do nothing returning id;

-- renew
-- with now, now, ahead, session, now, session, session
update "holdfast_session" set beat_at = ?, lease_until = ? + lease_ms + ? where id = ? and lease_until > ?
returning stop_requested_at is not null as stop, quiet_at,
  (select json_group_array(json_object('id', c.id, 'token', c.token, 'pause', json(iif(c.pause, 'true', 'false')),
      'reason', c.reason)) from "holdfast_cancel" c where c.session = ?) as requests,
  (select json_group_array(json_object('token', token, 'held', json(held), 'gone', json(gone))) from (
    select c.token, json_group_array(o.value) filter (where r.seq is not null) as held, json_group_array(o.value) filter
        (where r.seq is null) as gone
    from "holdfast_claim" c cross join json_each(c.ids) o left join "holdfast_ready" r on r.seq = o.value and r.token =
        c.token and r.session = c.session
    where c.session = ? group by c.token)) as claims;

-- findSession
-- with session
select id from "holdfast_session" where id = ?;

-- closeSession, 1 of 2
-- with session
delete from "holdfast_claim" where session = ?
  and not exists (select 1 from json_each(ids) o join "holdfast_ready" r on r.seq = o.value and r.token =
      "holdfast_claim".token);

-- closeSession, 2 of 2
-- with now, session, now, session
update "holdfast_session" set lease_until = min(lease_until, ?),
  closed_at = coalesce(closed_at, case when not exists (select 1 from "holdfast_claim" c where c.session = ?) then ?
      end)
  where id = ?;

-- orphans
-- with now, limit
select j.id, r.seq as row_key, r.token, r.session, r.rank, r.run_at, r.attempt, r.started_at, r.job_type, r.lane as
    lane_id, r.counted, c.rates,
  j.input, j.max_attempts, j.lane, case when r.crashes > 0 or r.begun
    or coalesce(r.errors, j.timeout_ms, j.key, j.context, j.parent_id, j.deadline_at, j.extras) is not null
  then json_object('crashes', r.crashes, 'begun', r.begun, 'undoing', r.undoing, 'errors', r.errors, 'timeout_ms',
      j.timeout_ms,
    'key', j.key, 'context', j.context, 'parent_id', j.parent_id, 'deadline_at', j.deadline_at, 'extras', j.extras)
end as rest, l.queue, l.name, x.reason as cancel_reason, s.lease_until,
  coalesce(s.closed_at < s.beat_at + s.lease_ms, 0) as unheard, exists (select 1 from "holdfast_step" e where e.job =
      j.id) as stepped
from "holdfast_claim" c
left join "holdfast_session" s on s.id = c.session
cross join json_each(c.ids) o
join "holdfast_ready" r on r.seq = o.value and r.token = c.token
join "holdfast_job" j on j.seq = r.seq
join "holdfast_job_type" l on l.id = r.job_type
left join "holdfast_cancel" x on x.id = j.id and x.token = r.token and not x.pause
where s.id is null or s.lease_until <= ?
order by r.seq limit ?;

-- heldJobs
-- with ids, ids
select j.id, r.seq as row_key, r.token, r.session, r.rank, r.run_at, r.attempt, r.started_at, r.job_type, r.lane as
    lane_id, r.counted, c.rates,
  j.input, j.max_attempts, j.lane, case when r.crashes > 0 or r.begun
    or coalesce(r.errors, j.timeout_ms, j.key, j.context, j.parent_id, j.deadline_at, j.extras) is not null
  then json_object('crashes', r.crashes, 'begun', r.begun, 'undoing', r.undoing, 'errors', r.errors, 'timeout_ms',
      j.timeout_ms,
    'key', j.key, 'context', j.context, 'parent_id', j.parent_id, 'deadline_at', j.deadline_at, 'extras', j.extras)
end as rest, l.queue, l.name, x.reason as cancel_reason, s.lease_until,
  coalesce(s.closed_at < s.beat_at + s.lease_ms, 0) as unheard, exists (select 1 from "holdfast_step" e where e.job =
      j.id) as stepped
from "holdfast_claim" c
left join "holdfast_session" s on s.id = c.session
cross join json_each(c.ids) o
join "holdfast_ready" r on r.seq = o.value and r.token = c.token
join "holdfast_job" j on j.seq = r.seq
join "holdfast_job_type" l on l.id = r.job_type
left join "holdfast_cancel" x on x.id = j.id and x.token = r.token and not x.pause
where c.token in (select w.token from "holdfast_ready" w where w.seq in (select known.seq from "holdfast_job" known
    where known.id in (select value from json_each(?)))) and r.seq in (select known.seq from "holdfast_job" known where
    known.id in (select value from json_each(?))) order by r.seq;

-- heldUnder
-- with session, tokens
select j.id, r.seq as row_key, r.token, r.session, r.rank, r.run_at, r.attempt, r.started_at, r.job_type, r.lane as
    lane_id, r.counted, c.rates,
  j.input, j.max_attempts, j.lane, case when r.crashes > 0 or r.begun
    or coalesce(r.errors, j.timeout_ms, j.key, j.context, j.parent_id, j.deadline_at, j.extras) is not null
  then json_object('crashes', r.crashes, 'begun', r.begun, 'undoing', r.undoing, 'errors', r.errors, 'timeout_ms',
      j.timeout_ms,
    'key', j.key, 'context', j.context, 'parent_id', j.parent_id, 'deadline_at', j.deadline_at, 'extras', j.extras)
end as rest, l.queue, l.name, x.reason as cancel_reason, s.lease_until,
  coalesce(s.closed_at < s.beat_at + s.lease_ms, 0) as unheard, exists (select 1 from "holdfast_step" e where e.job =
      j.id) as stepped
from "holdfast_claim" c
left join "holdfast_session" s on s.id = c.session
cross join json_each(c.ids) o
join "holdfast_ready" r on r.seq = o.value and r.token = c.token
join "holdfast_job" j on j.seq = r.seq
join "holdfast_job_type" l on l.id = r.job_type
left join "holdfast_cancel" x on x.id = j.id and x.token = r.token and not x.pause
where c.session = ? and c.token in (select value from json_each(?)) and r.session = c.session order by r.seq;

-- deleteEndedSessions, 1 of 4
-- with now
delete from "holdfast_claim"
  where not exists (select 1 from "holdfast_session" s where s.id = "holdfast_claim".session and s.lease_until > ?)
    and not exists (select 1 from json_each(ids) o join "holdfast_ready" r on r.seq = o.value and r.token =
        "holdfast_claim".token);

-- deleteEndedSessions, 2 of 4
delete from "holdfast_cancel" where not exists (
  select 1 from "holdfast_ready" r where r.seq = (select known.seq from "holdfast_job" known where known.id =
      "holdfast_cancel".id) and (r.token = "holdfast_cancel".token or (r.token is null and r.waits = 'resume')));

-- deleteEndedSessions, 3 of 4
-- with now
delete from "holdfast_session" where closed_at < ? - 604800000;

-- deleteEndedSessions, 4 of 4
-- with now
update "holdfast_session" set closed_at = lease_until where closed_at is null and lease_until <= ?
  and not exists (select 1 from "holdfast_claim" c where c.session = "holdfast_session".id) returning id;

-- refile, 1 of 2
update "holdfast_session" set closed_at = null where closed_at is not null and id in (
  select r.session from "holdfast_ready" r where r.token is not null and not exists (
    select 1 from "holdfast_claim" c, json_each(c.ids) o where c.token = r.token and o.value = r.seq));

-- refile, 2 of 2
insert into "holdfast_claim" (token, session, ids)
  select r.token, min(r.session), json_group_array(r.seq) from "holdfast_ready" r
  where r.token is not null and not exists (
    select 1 from "holdfast_claim" c, json_each(c.ids) o where c.token = r.token and o.value = r.seq)
  group by r.token
  on conflict (token) do update set ids = (
    select json_group_array(o.value) from (
      select value from json_each("holdfast_claim".ids) union all select value from json_each(excluded.ids)) o)
  returning token;

-- doneAlike, 1 of 5
-- with now, rowKeys, session, now, token
insert into "holdfast_history" (seq, job_type, rank, state, attempt, crashes, throttles, run_at, started_at, ended_at,
    session, output, errors, progress, failure_group)
  select r.seq, r.job_type, r.rank, 'done', r.attempt, r.crashes, r.throttles, r.run_at, r.started_at, ?, r.session,
      null, r.errors, r.progress, null
  from "holdfast_session" s cross join json_each(?) o cross join "holdfast_ready" r on r.seq = o.value
  where s.id = ? and s.lease_until > ? and r.token = ? and r.session = s.id;

-- doneAlike, 2 of 5
-- with count, rowKeys, token, session, session, now
select o.value as row_key, 0 as watched from (select 1 where changes() < ?) cross join json_each(?) o
  where not exists (select 1 from "holdfast_ready" r where r.seq = o.value and r.token = ? and r.session = ? and exists
      (select 1 from "holdfast_session" s where s.id = ? and s.lease_until > ?));

-- doneAlike, 3 of 5
-- with token, rowKeys, session, session, now
select r.seq as row_key, 1 as watched from "holdfast_ready" r where r.watched and r.token = ? and +r.seq in (select
    value from json_each(?)) and r.session = ? and exists (select 1 from "holdfast_session" s where s.id = ? and
    s.lease_until > ?);

-- doneAlike, 4 of 5
-- with rowKeys, token, session, session, now
delete from "holdfast_ready" where seq in (select value from json_each(?)) and token = ? and "holdfast_ready".session =
    ? and exists (select 1 from "holdfast_session" s where s.id = ? and s.lease_until > ?);

-- doneAlike, 5 of 5
-- with spent, session, session, now
delete from "holdfast_claim" where token in (select value from json_each(?)) and "holdfast_claim".session = ? and exists
    (select 1 from "holdfast_session" s where s.id = ? and s.lease_until > ?);

-- done, 1 of 3
-- with now, rows.output, rows.rowKey, rows.token, session, session, now
insert into "holdfast_history" (seq, job_type, rank, state, attempt, crashes, throttles, run_at, started_at, ended_at,
    session, output, errors, progress)
  select r.seq, r.job_type, r.rank, 'done', r.attempt, r.crashes, r.throttles, r.run_at, r.started_at, ?, r.session,
    ?, r.errors, r.progress
  from "holdfast_ready" r where r.seq = ? and r.token = ? and r.session = ? and exists (select 1 from "holdfast_session"
      s where s.id = ? and s.lease_until > ?);

-- done, 2 of 3
-- with rows.rowKey, rows.token, session, session, now
delete from "holdfast_ready" where seq = ? and token = ? and "holdfast_ready".session = ? and exists (select 1 from
    "holdfast_session" s where s.id = ? and s.lease_until > ?) returning seq as row_key, watched;

-- done, 3 of 3
-- with spent, session, session, now
delete from "holdfast_claim" where token in (select value from json_each(?)) and "holdfast_claim".session = ? and exists
    (select 1 from "holdfast_session" s where s.id = ? and s.lease_until > ?);

-- end, 1 of 9
-- with rows.state, rows.attempt, rows.crashes, now, rows.output, rows.errors, rows.failureGroup, rows.id, rows.token,
--     rows.keep, session, session, now
insert into "holdfast_history" (seq, job_type, rank, state, attempt, crashes, throttles, run_at, started_at, ended_at,
    session, output, errors, progress, failure_group)
  select r.seq, r.job_type, r.rank, ?, ?, ?, r.throttles, r.run_at, r.started_at, ?, r.session,
    ?, ?, r.progress, ?
  from "holdfast_ready" r where r.seq = (select known.seq from "holdfast_job" known where known.id = ?) and r.token = ?
      and (? or r.watched) and r.session = ? and exists (select 1 from "holdfast_session" s where s.id = ? and
      s.lease_until > ?);

-- end, 2 of 9
-- with rows.id, rows.token, session, session, now, rows.id
delete from "holdfast_ready" where seq = (select known.seq from "holdfast_job" known where known.id = ?) and token = ?
    and "holdfast_ready".session = ? and exists (select 1 from "holdfast_session" s where s.id = ? and s.lease_until >
    ?) returning ? as id, watched;

-- end, 3 of 9
-- with dropped
delete from "holdfast_member" where seq in (select known.seq from "holdfast_job" known where known.id in (select value
    from json_each(?)))
  and not exists (select 1 from "holdfast_ready" r where r.seq = "holdfast_member".seq) and not exists (select 1 from
      "holdfast_history" h where h.seq = "holdfast_member".seq);

-- end, 4 of 9
-- with dropped, now
insert into "holdfast_used_id" (id, at)
select j.id, j.created_at from json_each(?) o cross join "holdfast_job" j on j.id = o.value
where j.created_at > ? - 3600000
  and not exists (select 1 from "holdfast_ready" r where r.seq = j.seq) and not exists (select 1 from "holdfast_history"
      h where h.seq = j.seq)
on conflict (id) do nothing;

-- end, 5 of 9
-- with dropped
delete from "holdfast_job" where id in (select value from json_each(?))
  and not exists (select 1 from "holdfast_ready" r where r.seq = "holdfast_job".seq) and not exists (select 1 from
      "holdfast_history" h where h.seq = "holdfast_job".seq);

-- end, 6 of 9
-- with dropped
delete from "holdfast_step" where job in (select value from json_each(?)) and not exists (select 1 from "holdfast_job" j
    where j.id = "holdfast_step".job);

-- end, 7 of 9
-- with dropped
delete from "holdfast_dependency" where job in (select value from json_each(?)) and not exists (select 1 from
    "holdfast_job" j where j.id = "holdfast_dependency".job);

-- end, 8 of 9
-- with keyed, now
delete from "holdfast_unique_key" where id in (select value from json_each(?)) and (expires_at is null or expires_at <=
    ?)
  and not exists (select 1 from "holdfast_ready" r where r.seq = (select known.seq from "holdfast_job" known where
      known.id = "holdfast_unique_key".id));

-- end, 9 of 9
-- with spent, session, session, now
delete from "holdfast_claim" where token in (select value from json_each(?)) and "holdfast_claim".session = ? and exists
    (select 1 from "holdfast_session" s where s.id = ? and s.lease_until > ?);

-- again, 1 of 2
-- with spent, session, session, now
delete from "holdfast_claim" where token in (select value from json_each(?)) and "holdfast_claim".session = ? and exists
    (select 1 from "holdfast_session" s where s.id = ? and s.lease_until > ?);

-- again, 2 of 2
-- with rows.attempt, rows.crashes, rows.cancellable, rows.keeps, now, now, rows.delay, rows.cancellable, rows.keeps,
--     now, now, rows.delay, rows.errors, rows.failureGroup, rows.throttled, rows.begun, rows.note, rows.cancellable,
--     rows.id, rows.token, session, session, now, rows.id
update "holdfast_ready" set token = null, session = null, attempt = ?, crashes = ?,
    run_at = case when (request = 1 or (request = 2 and ?)) then 8633688480000000 else case when ? then min(run_at, ?)
        else ? + ? end end, due_at = case when (request = 1 or (request = 2 and ?)) then case when ? then min(run_at, ?)
        else ? + ? end end,
    errors = ?, failure_group = coalesce(?, failure_group), throttles = min(throttles + ?, 32767), begun = begun or ?,
    note = ?, counted = null, waits = case when (request = 1 or (request = 2 and ?)) then 'resume' end, request = null
  where seq = (select known.seq from "holdfast_job" known where known.id = ?) and token = ? and "holdfast_ready".session
      = ? and exists (select 1 from "holdfast_session" s where s.id = ? and s.lease_until > ?) returning ? as id, waits
      is not null as asked;

-- endOrphans, 1 of 9
-- with rows.state, rows.attempt, rows.crashes, now, rows.output, rows.errors, rows.failureGroup, rows.id, rows.token,
--     rows.keep, now
insert into "holdfast_history" (seq, job_type, rank, state, attempt, crashes, throttles, run_at, started_at, ended_at,
    session, output, errors, progress, failure_group)
  select r.seq, r.job_type, r.rank, ?, ?, ?, r.throttles, r.run_at, r.started_at, ?, r.session,
    ?, ?, r.progress, ?
  from "holdfast_ready" r where r.seq = (select known.seq from "holdfast_job" known where known.id = ?) and r.token = ?
      and (? or r.watched) and not exists (select 1 from "holdfast_session" s where s.id = r.session and s.lease_until >
      ?);

-- endOrphans, 2 of 9
-- with rows.id, rows.token, now, rows.id
delete from "holdfast_ready" where seq = (select known.seq from "holdfast_job" known where known.id = ?) and token = ?
    and not exists (select 1 from "holdfast_session" s where s.id = "holdfast_ready".session and s.lease_until > ?)
    returning ? as id, watched;

-- endOrphans, 3 of 9
-- with dropped
delete from "holdfast_member" where seq in (select known.seq from "holdfast_job" known where known.id in (select value
    from json_each(?)))
  and not exists (select 1 from "holdfast_ready" r where r.seq = "holdfast_member".seq) and not exists (select 1 from
      "holdfast_history" h where h.seq = "holdfast_member".seq);

-- endOrphans, 4 of 9
-- with dropped, now
insert into "holdfast_used_id" (id, at)
select j.id, j.created_at from json_each(?) o cross join "holdfast_job" j on j.id = o.value
where j.created_at > ? - 3600000
  and not exists (select 1 from "holdfast_ready" r where r.seq = j.seq) and not exists (select 1 from "holdfast_history"
      h where h.seq = j.seq)
on conflict (id) do nothing;

-- endOrphans, 5 of 9
-- with dropped
delete from "holdfast_job" where id in (select value from json_each(?))
  and not exists (select 1 from "holdfast_ready" r where r.seq = "holdfast_job".seq) and not exists (select 1 from
      "holdfast_history" h where h.seq = "holdfast_job".seq);

-- endOrphans, 6 of 9
-- with dropped
delete from "holdfast_step" where job in (select value from json_each(?)) and not exists (select 1 from "holdfast_job" j
    where j.id = "holdfast_step".job);

-- endOrphans, 7 of 9
-- with dropped
delete from "holdfast_dependency" where job in (select value from json_each(?)) and not exists (select 1 from
    "holdfast_job" j where j.id = "holdfast_dependency".job);

-- endOrphans, 8 of 9
-- with keyed, now
delete from "holdfast_unique_key" where id in (select value from json_each(?)) and (expires_at is null or expires_at <=
    ?)
  and not exists (select 1 from "holdfast_ready" r where r.seq = (select known.seq from "holdfast_job" known where
      known.id = "holdfast_unique_key".id));

-- endOrphans, 9 of 9
-- with spent, now
delete from "holdfast_claim" where token in (select value from json_each(?)) and not exists (select 1 from
    "holdfast_session" s where s.id = "holdfast_claim".session and s.lease_until > ?);

-- againOrphans, 1 of 2
-- with spent, now
delete from "holdfast_claim" where token in (select value from json_each(?)) and not exists (select 1 from
    "holdfast_session" s where s.id = "holdfast_claim".session and s.lease_until > ?);

-- againOrphans, 2 of 2
-- with rows.attempt, rows.crashes, rows.cancellable, rows.keeps, now, now, rows.delay, rows.cancellable, rows.keeps,
--     now, now, rows.delay, rows.errors, rows.failureGroup, rows.throttled, rows.begun, rows.note, rows.cancellable,
--     rows.id, rows.token, now, rows.id
update "holdfast_ready" set token = null, session = null, attempt = ?, crashes = ?,
    run_at = case when (request = 1 or (request = 2 and ?)) then 8633688480000000 else case when ? then min(run_at, ?)
        else ? + ? end end, due_at = case when (request = 1 or (request = 2 and ?)) then case when ? then min(run_at, ?)
        else ? + ? end end,
    errors = ?, failure_group = coalesce(?, failure_group), throttles = min(throttles + ?, 32767), begun = begun or ?,
    note = ?, counted = null, waits = case when (request = 1 or (request = 2 and ?)) then 'resume' end, request = null
  where seq = (select known.seq from "holdfast_job" known where known.id = ?) and token = ? and not exists (select 1
      from "holdfast_session" s where s.id = "holdfast_ready".session and s.lease_until > ?) returning ? as id, waits is
      not null as asked;

-- coolDown
-- with now, now, now, now, now, ids
update "holdfast_queue" set
  cool_steps = case when cool_at > ? - 120000 then min(cool_steps + 1, 30) else 1 end,
  cool_until = ? + min(cool_max_ms, cool_base_ms * (1 << case when cool_at > ? - 120000 then min(cool_steps, 30) else 0
      end)),
  cool_at = ?
where cool_base_ms is not null and (cool_until is null or cool_until <= ?)
  and name in (select l.queue from "holdfast_ready" r join "holdfast_job_type" l on l.id = r.job_type where r.seq in
      (select known.seq from "holdfast_job" known where known.id in (select value from json_each(?))))
returning name;

-- progress
-- with value, id, token, session, session, now, id
update "holdfast_ready" set progress = ? where seq = (select known.seq from "holdfast_job" known where known.id = ?) and
    token = ? and "holdfast_ready".session = ? and exists (select 1 from "holdfast_session" s where s.id = ? and
    s.lease_until > ?) returning ? as id;

-- get
-- with now, id, id
select * from (
select j.id, r.seq as row_key, r.rank, r.attempt, r.crashes, r.run_at, r.started_at, null as ended_at, r.errors,
    r.progress, null as output,
  s.lease_until, s.worker_id, case when r.token is not null then 'running' when r.run_at >= 8633688480000000 then
      'waiting'
  when r.run_at > ? then case when r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end as
      state, r.waits, j.input, j.created_at, j.max_attempts, j.key, j.lane, j.context, j.parent_id, j.extras, l.queue,
      l.name, (select m.label from "holdfast_step" m where m.job = j.id and m.name = '$machine') as step
from "holdfast_ready" r join "holdfast_job" j on j.seq = r.seq join "holdfast_job_type" l on l.id = r.job_type left join
    "holdfast_session" s on s.id = r.session where r.seq = (select known.seq from "holdfast_job" known where known.id =
    ?) union all
select j.id, h.seq as row_key, h.rank, h.attempt, h.crashes, h.run_at, h.started_at, h.ended_at, h.errors, h.progress,
    h.output,
  null as lease_until, s.worker_id, h.state, null as waits, j.input, j.created_at, j.max_attempts, j.key, j.lane,
      j.context, j.parent_id, j.extras, l.queue, l.name, (select m.label from "holdfast_step" m where m.job = j.id and
      m.name = '$machine') as step
from "holdfast_history" h join "holdfast_job" j on j.seq = h.seq join "holdfast_job_type" l on l.id = h.job_type left
    join "holdfast_session" s on s.id = h.session where h.seq = (select known.seq from "holdfast_job" known where
    known.id = ?)) one limit 1;

-- list, 1 of 2
-- with now, limit, limit, limit
select * from (
  select * from (
select j.id, r.seq as row_key, r.rank, r.attempt, r.crashes, r.run_at, r.started_at, null as ended_at, r.errors,
    r.progress, null as output,
  s.lease_until, s.worker_id, case when r.token is not null then 'running' when r.run_at >= 8633688480000000 then
      'waiting'
  when r.run_at > ? then case when r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end as
      state, r.waits, j.input, j.created_at, j.max_attempts, j.key, j.lane, j.context, j.parent_id, j.extras, l.queue,
      l.name, (select m.label from "holdfast_step" m where m.job = j.id and m.name = '$machine') as step
from "holdfast_ready" r join "holdfast_job" j on j.seq = r.seq join "holdfast_job_type" l on l.id = r.job_type left join
    "holdfast_session" s on s.id = r.session where true and true order by r.seq desc limit ?)
  union all
  select * from (
select j.id, h.seq as row_key, h.rank, h.attempt, h.crashes, h.run_at, h.started_at, h.ended_at, h.errors, h.progress,
    h.output,
  null as lease_until, s.worker_id, h.state, null as waits, j.input, j.created_at, j.max_attempts, j.key, j.lane,
      j.context, j.parent_id, j.extras, l.queue, l.name, (select m.label from "holdfast_step" m where m.job = j.id and
      m.name = '$machine') as step
from "holdfast_history" h join "holdfast_job" j on j.seq = h.seq join "holdfast_job_type" l on l.id = h.job_type left
    join "holdfast_session" s on s.id = h.session where true and true order by h.seq desc limit ?)
) page order by row_key desc limit ?;

-- list, 2 of 2
-- with now, ids, now, states, queues, names, lane, key, workflow, since, until, trace, search, search, search, cursor,
--     limit, ids, states, queues, names, lane, key, workflow, since, until, trace, search, search, search, cursor, limit,
--     limit
select * from (
  select * from (
select j.id, r.seq as row_key, r.rank, r.attempt, r.crashes, r.run_at, r.started_at, null as ended_at, r.errors,
    r.progress, null as output,
  s.lease_until, s.worker_id, case when r.token is not null then 'running' when r.run_at >= 8633688480000000 then
      'waiting'
  when r.run_at > ? then case when r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end as
      state, r.waits, j.input, j.created_at, j.max_attempts, j.key, j.lane, j.context, j.parent_id, j.extras, l.queue,
      l.name, (select m.label from "holdfast_step" m where m.job = j.id and m.name = '$machine') as step
from "holdfast_ready" r join "holdfast_job" j on j.seq = r.seq join "holdfast_job_type" l on l.id = r.job_type left join
    "holdfast_session" s on s.id = r.session where r.seq in (select known.seq from "holdfast_job" known where known.id
    in (select value from json_each(?)))
    and case when r.token is not null then 'running' when r.run_at >= 8633688480000000 then 'waiting'
  when r.run_at > ? then case when r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end in
      (select value from json_each(?))
    and l.queue in (select value from json_each(?))
    and l.name in (select value from json_each(?))
    and j.lane = ?
    and j.key = ?
    and j.parent_id = ?
    and j.created_at >= ?
    and j.created_at < ?
    and j.extras like ?
    and (instr(lower(j.input), ?) > 0 or instr(lower(j.context), ?) > 0 or instr(lower(r.errors), ?) > 0) and r.seq <
        cast(? as integer) order by r.seq desc limit ?)
  union all
  select * from (
select j.id, h.seq as row_key, h.rank, h.attempt, h.crashes, h.run_at, h.started_at, h.ended_at, h.errors, h.progress,
    h.output,
  null as lease_until, s.worker_id, h.state, null as waits, j.input, j.created_at, j.max_attempts, j.key, j.lane,
      j.context, j.parent_id, j.extras, l.queue, l.name, (select m.label from "holdfast_step" m where m.job = j.id and
      m.name = '$machine') as step
from "holdfast_history" h join "holdfast_job" j on j.seq = h.seq join "holdfast_job_type" l on l.id = h.job_type left
    join "holdfast_session" s on s.id = h.session where h.seq in (select known.seq from "holdfast_job" known where
    known.id in (select value from json_each(?)))
    and h.state in (select value from json_each(?))
    and l.queue in (select value from json_each(?))
    and l.name in (select value from json_each(?))
    and j.lane = ?
    and j.key = ?
    and j.parent_id = ?
    and j.created_at >= ?
    and j.created_at < ?
    and j.extras like ?
    and (instr(lower(j.input), ?) > 0 or instr(lower(j.context), ?) > 0 or instr(lower(h.errors), ?) > 0) and h.seq <
        cast(? as integer) order by h.seq desc limit ?)
) page order by row_key desc limit ?;

-- ids, 1 of 2
-- with limit, limit, limit
select id, row_key from (
  select * from (select j.id, r.seq as row_key from "holdfast_ready" r join "holdfast_job" j on j.seq = r.seq join
      "holdfast_job_type" l on l.id = r.job_type
    where true and true order by r.seq limit ?)
  union all
  select * from (select j.id, h.seq as row_key from "holdfast_history" h join "holdfast_job" j on j.seq = h.seq join
      "holdfast_job_type" l on l.id = h.job_type
    where true and true order by h.seq limit ?)
) page order by row_key limit ?;

-- ids, 2 of 2
-- with ids, now, states, queues, names, lane, key, workflow, since, until, trace, search, search, search, cursor,
--     limit, ids, states, queues, names, lane, key, workflow, since, until, trace, search, search, search, cursor, limit,
--     limit
select id, row_key from (
  select * from (select j.id, r.seq as row_key from "holdfast_ready" r join "holdfast_job" j on j.seq = r.seq join
      "holdfast_job_type" l on l.id = r.job_type
    where r.seq in (select known.seq from "holdfast_job" known where known.id in (select value from json_each(?)))
    and case when r.token is not null then 'running' when r.run_at >= 8633688480000000 then 'waiting'
  when r.run_at > ? then case when r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end in
      (select value from json_each(?))
    and l.queue in (select value from json_each(?))
    and l.name in (select value from json_each(?))
    and j.lane = ?
    and j.key = ?
    and j.parent_id = ?
    and j.created_at >= ?
    and j.created_at < ?
    and j.extras like ?
    and (instr(lower(j.input), ?) > 0 or instr(lower(j.context), ?) > 0 or instr(lower(r.errors), ?) > 0) and r.seq >
        cast(? as integer) order by r.seq limit ?)
  union all
  select * from (select j.id, h.seq as row_key from "holdfast_history" h join "holdfast_job" j on j.seq = h.seq join
      "holdfast_job_type" l on l.id = h.job_type
    where h.seq in (select known.seq from "holdfast_job" known where known.id in (select value from json_each(?)))
    and h.state in (select value from json_each(?))
    and l.queue in (select value from json_each(?))
    and l.name in (select value from json_each(?))
    and j.lane = ?
    and j.key = ?
    and j.parent_id = ?
    and j.created_at >= ?
    and j.created_at < ?
    and j.extras like ?
    and (instr(lower(j.input), ?) > 0 or instr(lower(j.context), ?) > 0 or instr(lower(h.errors), ?) > 0) and h.seq >
        cast(? as integer) order by h.seq limit ?)
) page order by row_key limit ?;

-- count, 1 of 2
select
  (select count(*) from "holdfast_ready" r join "holdfast_job" j on j.seq = r.seq join "holdfast_job_type" l on l.id =
      r.job_type where true)
  + (select count(*) from "holdfast_history" h join "holdfast_job" j on j.seq = h.seq join "holdfast_job_type" l on l.id
      = h.job_type where true)
  as count;

-- count, 2 of 2
-- with ids, now, states, queues, names, lane, key, workflow, since, until, trace, search, search, search, ids, states,
--     queues, names, lane, key, workflow, since, until, trace, search, search, search
select
  (select count(*) from "holdfast_ready" r join "holdfast_job" j on j.seq = r.seq join "holdfast_job_type" l on l.id =
      r.job_type where r.seq in (select known.seq from "holdfast_job" known where known.id in (select value from
      json_each(?)))
    and case when r.token is not null then 'running' when r.run_at >= 8633688480000000 then 'waiting'
  when r.run_at > ? then case when r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end in
      (select value from json_each(?))
    and l.queue in (select value from json_each(?))
    and l.name in (select value from json_each(?))
    and j.lane = ?
    and j.key = ?
    and j.parent_id = ?
    and j.created_at >= ?
    and j.created_at < ?
    and j.extras like ?
    and (instr(lower(j.input), ?) > 0 or instr(lower(j.context), ?) > 0 or instr(lower(r.errors), ?) > 0))
  + (select count(*) from "holdfast_history" h join "holdfast_job" j on j.seq = h.seq join "holdfast_job_type" l on l.id
      = h.job_type where h.seq in (select known.seq from "holdfast_job" known where known.id in (select value from
      json_each(?)))
    and h.state in (select value from json_each(?))
    and l.queue in (select value from json_each(?))
    and l.name in (select value from json_each(?))
    and j.lane = ?
    and j.key = ?
    and j.parent_id = ?
    and j.created_at >= ?
    and j.created_at < ?
    and j.extras like ?
    and (instr(lower(j.input), ?) > 0 or instr(lower(j.context), ?) > 0 or instr(lower(h.errors), ?) > 0))
  as count;

-- listChildren, 1 of 2
-- with now, workflow, limit, workflow, limit, limit
select * from (
  select * from (
select j.id, r.seq as row_key, r.rank, r.attempt, r.crashes, r.run_at, r.started_at, null as ended_at, r.errors,
    r.progress, null as output,
  s.lease_until, s.worker_id, case when r.token is not null then 'running' when r.run_at >= 8633688480000000 then
      'waiting'
  when r.run_at > ? then case when r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end as
      state, r.waits, j.input, j.created_at, j.max_attempts, j.key, j.lane, j.context, j.parent_id, j.extras, l.queue,
      l.name, (select m.label from "holdfast_step" m where m.job = j.id and m.name = '$machine') as step
from "holdfast_job" c
  cross join "holdfast_ready" r on r.seq = c.seq cross join "holdfast_job" j on j.seq = c.seq and c.parent_id = ? join
      "holdfast_job_type" l on l.id = r.job_type left join "holdfast_session" s on s.id = r.session where true and true
      order by r.seq desc limit ?)
  union all
  select * from (
select j.id, h.seq as row_key, h.rank, h.attempt, h.crashes, h.run_at, h.started_at, h.ended_at, h.errors, h.progress,
    h.output,
  null as lease_until, s.worker_id, h.state, null as waits, j.input, j.created_at, j.max_attempts, j.key, j.lane,
      j.context, j.parent_id, j.extras, l.queue, l.name, (select m.label from "holdfast_step" m where m.job = j.id and
      m.name = '$machine') as step
from "holdfast_job" c
  cross join "holdfast_history" h on h.seq = c.seq cross join "holdfast_job" j on j.seq = c.seq and c.parent_id = ? join
      "holdfast_job_type" l on l.id = h.job_type left join "holdfast_session" s on s.id = h.session where true and true
      order by h.seq desc limit ?)
) page order by row_key desc limit ?;

-- listChildren, 2 of 2
-- with now, workflow, ids, now, states, queues, names, lane, key, workflow, since, until, trace, search, search,
--     search, cursor, limit, workflow, ids, states, queues, names, lane, key, workflow, since, until, trace, search,
--     search, search, cursor, limit, limit
select * from (
  select * from (
select j.id, r.seq as row_key, r.rank, r.attempt, r.crashes, r.run_at, r.started_at, null as ended_at, r.errors,
    r.progress, null as output,
  s.lease_until, s.worker_id, case when r.token is not null then 'running' when r.run_at >= 8633688480000000 then
      'waiting'
  when r.run_at > ? then case when r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end as
      state, r.waits, j.input, j.created_at, j.max_attempts, j.key, j.lane, j.context, j.parent_id, j.extras, l.queue,
      l.name, (select m.label from "holdfast_step" m where m.job = j.id and m.name = '$machine') as step
from "holdfast_job" c
  cross join "holdfast_ready" r on r.seq = c.seq cross join "holdfast_job" j on j.seq = c.seq and c.parent_id = ? join
      "holdfast_job_type" l on l.id = r.job_type left join "holdfast_session" s on s.id = r.session where r.seq in
      (select known.seq from "holdfast_job" known where known.id in (select value from json_each(?)))
    and case when r.token is not null then 'running' when r.run_at >= 8633688480000000 then 'waiting'
  when r.run_at > ? then case when r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end in
      (select value from json_each(?))
    and l.queue in (select value from json_each(?))
    and l.name in (select value from json_each(?))
    and j.lane = ?
    and j.key = ?
    and j.parent_id = ?
    and j.created_at >= ?
    and j.created_at < ?
    and j.extras like ?
    and (instr(lower(j.input), ?) > 0 or instr(lower(j.context), ?) > 0 or instr(lower(r.errors), ?) > 0) and r.seq <
        cast(? as integer) order by r.seq desc limit ?)
  union all
  select * from (
select j.id, h.seq as row_key, h.rank, h.attempt, h.crashes, h.run_at, h.started_at, h.ended_at, h.errors, h.progress,
    h.output,
  null as lease_until, s.worker_id, h.state, null as waits, j.input, j.created_at, j.max_attempts, j.key, j.lane,
      j.context, j.parent_id, j.extras, l.queue, l.name, (select m.label from "holdfast_step" m where m.job = j.id and
      m.name = '$machine') as step
from "holdfast_job" c
  cross join "holdfast_history" h on h.seq = c.seq cross join "holdfast_job" j on j.seq = c.seq and c.parent_id = ? join
      "holdfast_job_type" l on l.id = h.job_type left join "holdfast_session" s on s.id = h.session where h.seq in
      (select known.seq from "holdfast_job" known where known.id in (select value from json_each(?)))
    and h.state in (select value from json_each(?))
    and l.queue in (select value from json_each(?))
    and l.name in (select value from json_each(?))
    and j.lane = ?
    and j.key = ?
    and j.parent_id = ?
    and j.created_at >= ?
    and j.created_at < ?
    and j.extras like ?
    and (instr(lower(j.input), ?) > 0 or instr(lower(j.context), ?) > 0 or instr(lower(h.errors), ?) > 0) and h.seq <
        cast(? as integer) order by h.seq desc limit ?)
) page order by row_key desc limit ?;

-- idsOfChildren, 1 of 2
-- with workflow, limit, workflow, limit, limit
select id, row_key from (
  select * from (select j.id, r.seq as row_key from "holdfast_job" c
  cross join "holdfast_ready" r on r.seq = c.seq cross join "holdfast_job" j on j.seq = c.seq and c.parent_id = ? join
      "holdfast_job_type" l on l.id = r.job_type
    where true and true order by r.seq limit ?)
  union all
  select * from (select j.id, h.seq as row_key from "holdfast_job" c
  cross join "holdfast_history" h on h.seq = c.seq cross join "holdfast_job" j on j.seq = c.seq and c.parent_id = ? join
      "holdfast_job_type" l on l.id = h.job_type
    where true and true order by h.seq limit ?)
) page order by row_key limit ?;

-- idsOfChildren, 2 of 2
-- with workflow, ids, now, states, queues, names, lane, key, workflow, since, until, trace, search, search, search,
--     cursor, limit, workflow, ids, states, queues, names, lane, key, workflow, since, until, trace, search, search,
--     search, cursor, limit, limit
select id, row_key from (
  select * from (select j.id, r.seq as row_key from "holdfast_job" c
  cross join "holdfast_ready" r on r.seq = c.seq cross join "holdfast_job" j on j.seq = c.seq and c.parent_id = ? join
      "holdfast_job_type" l on l.id = r.job_type
    where r.seq in (select known.seq from "holdfast_job" known where known.id in (select value from json_each(?)))
    and case when r.token is not null then 'running' when r.run_at >= 8633688480000000 then 'waiting'
  when r.run_at > ? then case when r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end in
      (select value from json_each(?))
    and l.queue in (select value from json_each(?))
    and l.name in (select value from json_each(?))
    and j.lane = ?
    and j.key = ?
    and j.parent_id = ?
    and j.created_at >= ?
    and j.created_at < ?
    and j.extras like ?
    and (instr(lower(j.input), ?) > 0 or instr(lower(j.context), ?) > 0 or instr(lower(r.errors), ?) > 0) and r.seq >
        cast(? as integer) order by r.seq limit ?)
  union all
  select * from (select j.id, h.seq as row_key from "holdfast_job" c
  cross join "holdfast_history" h on h.seq = c.seq cross join "holdfast_job" j on j.seq = c.seq and c.parent_id = ? join
      "holdfast_job_type" l on l.id = h.job_type
    where h.seq in (select known.seq from "holdfast_job" known where known.id in (select value from json_each(?)))
    and h.state in (select value from json_each(?))
    and l.queue in (select value from json_each(?))
    and l.name in (select value from json_each(?))
    and j.lane = ?
    and j.key = ?
    and j.parent_id = ?
    and j.created_at >= ?
    and j.created_at < ?
    and j.extras like ?
    and (instr(lower(j.input), ?) > 0 or instr(lower(j.context), ?) > 0 or instr(lower(h.errors), ?) > 0) and h.seq >
        cast(? as integer) order by h.seq limit ?)
) page order by row_key limit ?;

-- countChildren, 1 of 2
-- with workflow, workflow
select
  (select count(*) from "holdfast_job" c
  cross join "holdfast_ready" r on r.seq = c.seq cross join "holdfast_job" j on j.seq = c.seq and c.parent_id = ? join
      "holdfast_job_type" l on l.id = r.job_type where true)
  + (select count(*) from "holdfast_job" c
  cross join "holdfast_history" h on h.seq = c.seq cross join "holdfast_job" j on j.seq = c.seq and c.parent_id = ? join
      "holdfast_job_type" l on l.id = h.job_type where true)
  as count;

-- countChildren, 2 of 2
-- with workflow, ids, now, states, queues, names, lane, key, workflow, since, until, trace, search, search, search,
--     workflow, ids, states, queues, names, lane, key, workflow, since, until, trace, search, search, search
select
  (select count(*) from "holdfast_job" c
  cross join "holdfast_ready" r on r.seq = c.seq cross join "holdfast_job" j on j.seq = c.seq and c.parent_id = ? join
      "holdfast_job_type" l on l.id = r.job_type where r.seq in (select known.seq from "holdfast_job" known where
      known.id in (select value from json_each(?)))
    and case when r.token is not null then 'running' when r.run_at >= 8633688480000000 then 'waiting'
  when r.run_at > ? then case when r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end in
      (select value from json_each(?))
    and l.queue in (select value from json_each(?))
    and l.name in (select value from json_each(?))
    and j.lane = ?
    and j.key = ?
    and j.parent_id = ?
    and j.created_at >= ?
    and j.created_at < ?
    and j.extras like ?
    and (instr(lower(j.input), ?) > 0 or instr(lower(j.context), ?) > 0 or instr(lower(r.errors), ?) > 0))
  + (select count(*) from "holdfast_job" c
  cross join "holdfast_history" h on h.seq = c.seq cross join "holdfast_job" j on j.seq = c.seq and c.parent_id = ? join
      "holdfast_job_type" l on l.id = h.job_type where h.seq in (select known.seq from "holdfast_job" known where
      known.id in (select value from json_each(?)))
    and h.state in (select value from json_each(?))
    and l.queue in (select value from json_each(?))
    and l.name in (select value from json_each(?))
    and j.lane = ?
    and j.key = ?
    and j.parent_id = ?
    and j.created_at >= ?
    and j.created_at < ?
    and j.extras like ?
    and (instr(lower(j.input), ?) > 0 or instr(lower(j.context), ?) > 0 or instr(lower(h.errors), ?) > 0))
  as count;

-- listMembers, 1 of 2
-- with now, batch, limit, batch, limit, limit
select * from (
  select * from (
select j.id, r.seq as row_key, r.rank, r.attempt, r.crashes, r.run_at, r.started_at, null as ended_at, r.errors,
    r.progress, null as output,
  s.lease_until, s.worker_id, case when r.token is not null then 'running' when r.run_at >= 8633688480000000 then
      'waiting'
  when r.run_at > ? then case when r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end as
      state, r.waits, j.input, j.created_at, j.max_attempts, j.key, j.lane, j.context, j.parent_id, j.extras, l.queue,
      l.name, (select m.label from "holdfast_step" m where m.job = j.id and m.name = '$machine') as step
from "holdfast_member" c
  cross join "holdfast_ready" r on r.seq = c.seq cross join "holdfast_job" j on j.seq = c.seq and c.batch = ? join
      "holdfast_job_type" l on l.id = r.job_type left join "holdfast_session" s on s.id = r.session where true and true
      order by r.seq desc limit ?)
  union all
  select * from (
select j.id, h.seq as row_key, h.rank, h.attempt, h.crashes, h.run_at, h.started_at, h.ended_at, h.errors, h.progress,
    h.output,
  null as lease_until, s.worker_id, h.state, null as waits, j.input, j.created_at, j.max_attempts, j.key, j.lane,
      j.context, j.parent_id, j.extras, l.queue, l.name, (select m.label from "holdfast_step" m where m.job = j.id and
      m.name = '$machine') as step
from "holdfast_member" c
  cross join "holdfast_history" h on h.seq = c.seq cross join "holdfast_job" j on j.seq = c.seq and c.batch = ? join
      "holdfast_job_type" l on l.id = h.job_type left join "holdfast_session" s on s.id = h.session where true and true
      order by h.seq desc limit ?)
) page order by row_key desc limit ?;

-- listMembers, 2 of 2
-- with now, batch, ids, now, states, queues, names, lane, key, workflow, since, until, trace, search, search, search,
--     cursor, limit, batch, ids, states, queues, names, lane, key, workflow, since, until, trace, search, search, search,
--     cursor, limit, limit
select * from (
  select * from (
select j.id, r.seq as row_key, r.rank, r.attempt, r.crashes, r.run_at, r.started_at, null as ended_at, r.errors,
    r.progress, null as output,
  s.lease_until, s.worker_id, case when r.token is not null then 'running' when r.run_at >= 8633688480000000 then
      'waiting'
  when r.run_at > ? then case when r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end as
      state, r.waits, j.input, j.created_at, j.max_attempts, j.key, j.lane, j.context, j.parent_id, j.extras, l.queue,
      l.name, (select m.label from "holdfast_step" m where m.job = j.id and m.name = '$machine') as step
from "holdfast_member" c
  cross join "holdfast_ready" r on r.seq = c.seq cross join "holdfast_job" j on j.seq = c.seq and c.batch = ? join
      "holdfast_job_type" l on l.id = r.job_type left join "holdfast_session" s on s.id = r.session where r.seq in
      (select known.seq from "holdfast_job" known where known.id in (select value from json_each(?)))
    and case when r.token is not null then 'running' when r.run_at >= 8633688480000000 then 'waiting'
  when r.run_at > ? then case when r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end in
      (select value from json_each(?))
    and l.queue in (select value from json_each(?))
    and l.name in (select value from json_each(?))
    and j.lane = ?
    and j.key = ?
    and j.parent_id = ?
    and j.created_at >= ?
    and j.created_at < ?
    and j.extras like ?
    and (instr(lower(j.input), ?) > 0 or instr(lower(j.context), ?) > 0 or instr(lower(r.errors), ?) > 0) and r.seq <
        cast(? as integer) order by r.seq desc limit ?)
  union all
  select * from (
select j.id, h.seq as row_key, h.rank, h.attempt, h.crashes, h.run_at, h.started_at, h.ended_at, h.errors, h.progress,
    h.output,
  null as lease_until, s.worker_id, h.state, null as waits, j.input, j.created_at, j.max_attempts, j.key, j.lane,
      j.context, j.parent_id, j.extras, l.queue, l.name, (select m.label from "holdfast_step" m where m.job = j.id and
      m.name = '$machine') as step
from "holdfast_member" c
  cross join "holdfast_history" h on h.seq = c.seq cross join "holdfast_job" j on j.seq = c.seq and c.batch = ? join
      "holdfast_job_type" l on l.id = h.job_type left join "holdfast_session" s on s.id = h.session where h.seq in
      (select known.seq from "holdfast_job" known where known.id in (select value from json_each(?)))
    and h.state in (select value from json_each(?))
    and l.queue in (select value from json_each(?))
    and l.name in (select value from json_each(?))
    and j.lane = ?
    and j.key = ?
    and j.parent_id = ?
    and j.created_at >= ?
    and j.created_at < ?
    and j.extras like ?
    and (instr(lower(j.input), ?) > 0 or instr(lower(j.context), ?) > 0 or instr(lower(h.errors), ?) > 0) and h.seq <
        cast(? as integer) order by h.seq desc limit ?)
) page order by row_key desc limit ?;

-- idsOfMembers, 1 of 2
-- with batch, limit, batch, limit, limit
select id, row_key from (
  select * from (select j.id, r.seq as row_key from "holdfast_member" c
  cross join "holdfast_ready" r on r.seq = c.seq cross join "holdfast_job" j on j.seq = c.seq and c.batch = ? join
      "holdfast_job_type" l on l.id = r.job_type
    where true and true order by r.seq limit ?)
  union all
  select * from (select j.id, h.seq as row_key from "holdfast_member" c
  cross join "holdfast_history" h on h.seq = c.seq cross join "holdfast_job" j on j.seq = c.seq and c.batch = ? join
      "holdfast_job_type" l on l.id = h.job_type
    where true and true order by h.seq limit ?)
) page order by row_key limit ?;

-- idsOfMembers, 2 of 2
-- with batch, ids, now, states, queues, names, lane, key, workflow, since, until, trace, search, search, search,
--     cursor, limit, batch, ids, states, queues, names, lane, key, workflow, since, until, trace, search, search, search,
--     cursor, limit, limit
select id, row_key from (
  select * from (select j.id, r.seq as row_key from "holdfast_member" c
  cross join "holdfast_ready" r on r.seq = c.seq cross join "holdfast_job" j on j.seq = c.seq and c.batch = ? join
      "holdfast_job_type" l on l.id = r.job_type
    where r.seq in (select known.seq from "holdfast_job" known where known.id in (select value from json_each(?)))
    and case when r.token is not null then 'running' when r.run_at >= 8633688480000000 then 'waiting'
  when r.run_at > ? then case when r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end in
      (select value from json_each(?))
    and l.queue in (select value from json_each(?))
    and l.name in (select value from json_each(?))
    and j.lane = ?
    and j.key = ?
    and j.parent_id = ?
    and j.created_at >= ?
    and j.created_at < ?
    and j.extras like ?
    and (instr(lower(j.input), ?) > 0 or instr(lower(j.context), ?) > 0 or instr(lower(r.errors), ?) > 0) and r.seq >
        cast(? as integer) order by r.seq limit ?)
  union all
  select * from (select j.id, h.seq as row_key from "holdfast_member" c
  cross join "holdfast_history" h on h.seq = c.seq cross join "holdfast_job" j on j.seq = c.seq and c.batch = ? join
      "holdfast_job_type" l on l.id = h.job_type
    where h.seq in (select known.seq from "holdfast_job" known where known.id in (select value from json_each(?)))
    and h.state in (select value from json_each(?))
    and l.queue in (select value from json_each(?))
    and l.name in (select value from json_each(?))
    and j.lane = ?
    and j.key = ?
    and j.parent_id = ?
    and j.created_at >= ?
    and j.created_at < ?
    and j.extras like ?
    and (instr(lower(j.input), ?) > 0 or instr(lower(j.context), ?) > 0 or instr(lower(h.errors), ?) > 0) and h.seq >
        cast(? as integer) order by h.seq limit ?)
) page order by row_key limit ?;

-- countMembers, 1 of 2
-- with batch, batch
select
  (select count(*) from "holdfast_member" c
  cross join "holdfast_ready" r on r.seq = c.seq cross join "holdfast_job" j on j.seq = c.seq and c.batch = ? join
      "holdfast_job_type" l on l.id = r.job_type where true)
  + (select count(*) from "holdfast_member" c
  cross join "holdfast_history" h on h.seq = c.seq cross join "holdfast_job" j on j.seq = c.seq and c.batch = ? join
      "holdfast_job_type" l on l.id = h.job_type where true)
  as count;

-- countMembers, 2 of 2
-- with batch, ids, now, states, queues, names, lane, key, workflow, since, until, trace, search, search, search, batch,
--     ids, states, queues, names, lane, key, workflow, since, until, trace, search, search, search
select
  (select count(*) from "holdfast_member" c
  cross join "holdfast_ready" r on r.seq = c.seq cross join "holdfast_job" j on j.seq = c.seq and c.batch = ? join
      "holdfast_job_type" l on l.id = r.job_type where r.seq in (select known.seq from "holdfast_job" known where
      known.id in (select value from json_each(?)))
    and case when r.token is not null then 'running' when r.run_at >= 8633688480000000 then 'waiting'
  when r.run_at > ? then case when r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end in
      (select value from json_each(?))
    and l.queue in (select value from json_each(?))
    and l.name in (select value from json_each(?))
    and j.lane = ?
    and j.key = ?
    and j.parent_id = ?
    and j.created_at >= ?
    and j.created_at < ?
    and j.extras like ?
    and (instr(lower(j.input), ?) > 0 or instr(lower(j.context), ?) > 0 or instr(lower(r.errors), ?) > 0))
  + (select count(*) from "holdfast_member" c
  cross join "holdfast_history" h on h.seq = c.seq cross join "holdfast_job" j on j.seq = c.seq and c.batch = ? join
      "holdfast_job_type" l on l.id = h.job_type where h.seq in (select known.seq from "holdfast_job" known where
      known.id in (select value from json_each(?)))
    and h.state in (select value from json_each(?))
    and l.queue in (select value from json_each(?))
    and l.name in (select value from json_each(?))
    and j.lane = ?
    and j.key = ?
    and j.parent_id = ?
    and j.created_at >= ?
    and j.created_at < ?
    and j.extras like ?
    and (instr(lower(j.input), ?) > 0 or instr(lower(j.context), ?) > 0 or instr(lower(h.errors), ?) > 0))
  as count;

-- lockQueued
-- with ids
select j.id, r.token, r.session, r.attempt, r.errors, r.begun, r.watched, j.key from "holdfast_ready" r join
    "holdfast_job" j on j.seq = r.seq
where r.seq in (select known.seq from "holdfast_job" known where known.id in (select value from json_each(?))) order by
    r.seq;

-- endQueued, 1 of 3
-- with rows.state, now, rows.errors, rows.id
insert into "holdfast_history" (seq, job_type, rank, state, attempt, crashes, throttles, run_at, started_at, ended_at,
    session, output, errors, progress)
  select r.seq, r.job_type, r.rank, ?, r.attempt, r.crashes, r.throttles, r.run_at, r.started_at, ?, r.session, null, ?,
      r.progress
  from "holdfast_ready" r where r.seq = (select known.seq from "holdfast_job" known where known.id = ?) and r.token is
      null;

-- endQueued, 2 of 3
-- with keyed, now
delete from "holdfast_unique_key" where id in (select value from json_each(?)) and (expires_at is null or expires_at <=
    ?)
  and exists (select 1 from "holdfast_history" h where h.seq = (select known.seq from "holdfast_job" known where
      known.id = "holdfast_unique_key".id));

-- endQueued, 3 of 3
-- with rows.id, rows.id
delete from "holdfast_ready" where seq = (select known.seq from "holdfast_job" known where known.id = ?) and token is
    null returning ? as id, watched;

-- askHolder, 1 of 2
-- with rows.id, rows.session, rows.token, rows.reason, rows.pause, now
insert into "holdfast_cancel" (id, session, token, reason, pause, asked_at) values (?, ?, ?, ?, ?, ?)
  on conflict (id) do update set session = excluded.session, token = excluded.token, pause = excluded.pause and (pause
      or token <> excluded.token),
    reason = case when excluded.pause and not pause and token = excluded.token then reason else excluded.reason end;

-- askHolder, 2 of 2
-- with rows.pause, rows.id, rows.token
update "holdfast_ready" set request = case when ? and coalesce(request, 1) = 1 then 1 else 2 end
  where seq = (select known.seq from "holdfast_job" known where known.id = ?) and token = ?;

-- requestsOf
-- with ids
select id, token, reason, pause from "holdfast_cancel" where id in (select value from json_each(?)) order by id;

-- strayRequests
-- with limit
select x.id from "holdfast_cancel" x join "holdfast_ready" r on r.seq = (select known.seq from "holdfast_job" known
    where known.id = x.id)
where r.token is null and r.waits = 'resume' order by x.id limit ?;

-- withdraw, 1 of 2
-- with ids, pauses
update "holdfast_ready" set request = null where seq in (select known.seq from "holdfast_job" known where known.id in
    (select value from json_each(?))) and (request = 1 or (request = 2 and not ?));

-- withdraw, 2 of 2
-- with ids, pauses
delete from "holdfast_cancel" where id in (select value from json_each(?)) and (pause or not ?) returning id;

-- pauseQueued
-- with note, ids
update "holdfast_ready" set due_at = case when waits is null then run_at when waits = 'resume' or not begun then due_at
    end,
  run_at = 8633688480000000, waits = 'resume', note = ?
where seq in (select known.seq from "holdfast_job" known where known.id in (select value from json_each(?))) and token
    is null returning (select known.id from "holdfast_job" known where known.seq = "holdfast_ready".seq) as id;

-- resumeQueued
-- with now, ids
update "holdfast_ready" set note = null,
  waits = case when not begun and pending > 0 then 'jobs' end,
  due_at = case when not begun and pending > 0 then due_at end,
  run_at = case when not begun and pending > 0 then run_at else max(?, coalesce(due_at, 0)) end
where seq in (select known.seq from "holdfast_job" known where known.id in (select value from json_each(?))) and token
    is null and waits = 'resume' returning (select known.id from "holdfast_job" known where known.seq =
    "holdfast_ready".seq) as id, lane is not null as laned;

-- forget, 1 of 9
-- with ids, freed, now
delete from "holdfast_unique_key" where id in (select value from json_each(?)) and (? or expires_at is null or
    expires_at <= ?)
  and not exists (select 1 from "holdfast_ready" r where r.seq = (select known.seq from "holdfast_job" known where
      known.id = "holdfast_unique_key".id) and r.token is not null);

-- forget, 2 of 9
-- with ids
delete from "holdfast_history" where seq in (select known.seq from "holdfast_job" known where known.id in (select value
    from json_each(?))) returning (select known.id from "holdfast_job" known where known.seq = "holdfast_history".seq)
    as id, state;

-- forget, 3 of 9
-- with ids
delete from "holdfast_ready" where seq in (select known.seq from "holdfast_job" known where known.id in (select value
    from json_each(?))) and token is null returning (select known.id from "holdfast_job" known where known.seq =
    "holdfast_ready".seq) as id, null as state;

-- forget, 4 of 9
-- with ids
delete from "holdfast_member" where seq in (select known.seq from "holdfast_job" known where known.id in (select value
    from json_each(?))) and not exists (select 1 from "holdfast_ready" r where r.seq = "holdfast_member".seq);

-- forget, 5 of 9
-- with ids, now
insert into "holdfast_used_id" (id, at)
select j.id, j.created_at from json_each(?) o cross join "holdfast_job" j on j.id = o.value
where j.created_at > ? - 3600000
  and not exists (select 1 from "holdfast_ready" r where r.seq = j.seq) and not exists (select 1 from "holdfast_history"
      h where h.seq = j.seq)
on conflict (id) do nothing;

-- forget, 6 of 9
-- with ids
delete from "holdfast_job" where id in (select value from json_each(?))
  and not exists (select 1 from "holdfast_ready" r where r.seq = "holdfast_job".seq);

-- forget, 7 of 9
-- with ids
delete from "holdfast_step" where job in (select value from json_each(?)) and not exists (select 1 from "holdfast_job" j
    where j.id = "holdfast_step".job);

-- forget, 8 of 9
-- with ids
delete from "holdfast_dependency" where job in (select value from json_each(?)) and not exists (select 1 from
    "holdfast_job" j where j.id = "holdfast_dependency".job);

-- forget, 9 of 9
-- with ids
delete from "holdfast_log" where job in (select value from json_each(?)) and not exists (select 1 from "holdfast_job" j
    where j.id = "holdfast_log".job);

-- deleteExpiredIds, 1 of 2
-- with now, limit
delete from "holdfast_job" where id in (select id from "holdfast_used_id" where at <= ? - 3600000 order by at limit ?)
  and not exists (select 1 from "holdfast_ready" r where r.seq = "holdfast_job".seq) and not exists (select 1 from
      "holdfast_history" h where h.seq = "holdfast_job".seq);

-- deleteExpiredIds, 2 of 2
-- with now, limit
delete from "holdfast_used_id" where id in (select id from "holdfast_used_id" where at <= ? - 3600000 order by at limit
    ?) returning id;

-- expiredKeys
-- with now, at, scope, key, limit
select u.expires_at, u.scope, u.key, u.id, exists (select 1 from "holdfast_ready" r where r.seq = (select known.seq from
    "holdfast_job" known where known.id = u.id)) as live from "holdfast_unique_key" u
where u.expires_at <= ? and (u.expires_at, u.scope, u.key) > (?, ?, ?) order by u.expires_at, u.scope, u.key limit ?;

-- deleteExpiredKeys
-- with rows.scope, rows.key, rows.id, now
delete from "holdfast_unique_key" where scope = ? and key = ? and id = ? and expires_at <= ?
  and not exists (select 1 from "holdfast_ready" r where r.seq = (select known.seq from "holdfast_job" known where
      known.id = "holdfast_unique_key".id)) returning id;

-- findEnded
-- with ids
select j.id, j.key, j.lane, j.extras, l.name, l.queue, h.state from "holdfast_history" h join "holdfast_job" j on j.seq
    = h.seq join "holdfast_job_type" l on l.id = h.job_type
where h.seq in (select known.seq from "holdfast_job" known where known.id in (select value from json_each(?))) order by
    h.seq desc;

-- revive, 1 of 2
-- with now, ids
insert into "holdfast_ready" (seq, job_type, rank, run_at, begun, watched, errors, lane)
  select h.seq, h.job_type, h.rank, ?, 1, 1, h.errors, (
    select a.id from "holdfast_job_type" l join "holdfast_job" j on j.seq = h.seq join "holdfast_lane" a on a.queue =
        l.queue and a.key = j.lane where l.id = h.job_type and l.laned
  ) from "holdfast_history" h where h.seq in (select known.seq from "holdfast_job" known where known.id in (select value
      from json_each(?)));

-- revive, 2 of 2
-- with ids
delete from "holdfast_history" where seq in (select known.seq from "holdfast_job" known where known.id in (select value
    from json_each(?))) returning (select known.id from "holdfast_job" known where known.seq = "holdfast_history".seq)
    as id;

-- inputsOf
-- with ids
select id, input from "holdfast_job" where id in (select value from json_each(?));

-- setInputs
-- with rows.input, rows.id
update "holdfast_job" set input = ? where id = ?;

-- runNow, 1 of 2
-- with now, ids, now
update "holdfast_step" set wake_at = ? where job in (
    select j.id from "holdfast_ready" r join "holdfast_job" j on j.seq = r.seq
    where r.seq in (select known.seq from "holdfast_job" known where known.id in (select value from json_each(?))) and
        r.token is null and r.run_at > ? and r.waits = 'sleep')
  and state = 'open' and kind in ('sleep', 'step', 'undo');

-- runNow, 2 of 2
-- with now, ids, now
update "holdfast_ready" set run_at = ? where seq in (select known.seq from "holdfast_job" known where known.id in
    (select value from json_each(?))) and token is null and run_at > ? and run_at < 8633688480000000
  and coalesce(waits, 'sleep') = 'sleep' returning (select known.id from "holdfast_job" known where known.seq =
      "holdfast_ready".seq) as id;

-- editable
-- with now, ids
select j.id, r.token, r.waits, r.begun, j.deadline_at, j.key, j.lane, j.extras, l.queue, l.name, ? as now
from "holdfast_ready" r join "holdfast_job" j on j.seq = r.seq join "holdfast_job_type" l on l.id = r.job_type
where r.seq in (select known.seq from "holdfast_job" known where known.id in (select value from json_each(?))) order by
    r.seq;

-- lockEditable
-- with now, ids
select j.id, r.token, r.waits, r.begun, j.deadline_at, j.key, j.lane, j.extras, l.queue, l.name, ? as now
from "holdfast_ready" r join "holdfast_job" j on j.seq = r.seq join "holdfast_job_type" l on l.id = r.job_type
where r.seq in (select known.seq from "holdfast_job" known where known.id in (select value from json_each(?))) order by
    r.seq;

-- editQueued, 1 of 2
-- with rows.jobType, rows.rank, rows.laneId, now, rows.runAt, now, rows.delay, now, rows.runAt, now, rows.delay,
--     rows.runAt, rows.delay, rows.id, rows.id
update "holdfast_ready" set job_type = coalesce(?, job_type), rank = coalesce(?, rank), lane = coalesce(?, lane),
    run_at = case when waits is null then coalesce(max(?, coalesce(?, ? + ?)), run_at) else run_at end,
    due_at = case when waits is null then due_at else coalesce(max(?, coalesce(?, ? + ?)), due_at) end,
    note = case when coalesce(?, ?) is null or waits = 'resume' then note end
  where seq = (select known.seq from "holdfast_job" known where known.id = ?) and token is null returning ? as id;

-- editQueued, 2 of 2
-- with rows.jobType, rows.id, rows.jobType
update "holdfast_job" set job_type = ? where id = ? and ? is not null;

-- editEnded, 1 of 2
-- with rows.jobType, rows.rank, rows.id, rows.id
update "holdfast_history" set job_type = coalesce(?, job_type), rank = coalesce(?, rank) where seq = (select known.seq
    from "holdfast_job" known where known.id = ?) returning ? as id;

-- editEnded, 2 of 2
-- with rows.jobType, rows.id, rows.jobType
update "holdfast_job" set job_type = ? where id = ? and ? is not null;

-- queueRows
-- with names, names
select name, paused_at, drain_at, cool_until, cool_base_ms, cool_max_ms, running, limited, settings from
    "holdfast_queue" where ? is null or name in (select value from json_each(?));

-- queueCounts
-- with now, now, now, now, now, now
select l.queue, l.name, ? as now,
  count(r.seq) filter (where r.token is null and r.run_at <= ?) as ready,
  count(r.seq) filter (where r.token is null and r.run_at > ? and r.run_at < 8633688480000000 and coalesce(r.waits,
      'sleep') = 'sleep') as scheduled,
  count(r.seq) filter (where r.token is not null) as running,
  count(r.seq) filter (where r.token is null and (r.run_at >= 8633688480000000 or r.run_at > ? and r.waits in ('signal',
      'jobs'))) as waiting,
  min(r.run_at) filter (where r.token is null and r.run_at <= ?) as oldest,
  min(r.run_at) filter (where r.token is null and r.run_at > ? and r.run_at < 8633688480000000 and coalesce(r.waits,
      'sleep') = 'sleep') as next
from "holdfast_job_type" l left join "holdfast_ready" r on r.job_type = l.id group by l.queue, l.name;

-- setQueue
-- with name, paused, now, draining, now, settings, coolBase, coolMax, limited, limited, now, limited, limited, now,
--     paused, paused, now, draining, now, paused, settings, settings, coolBase, settings, coolMax
insert into "holdfast_queue" as q (name, paused_at, drain_at, settings, cool_base_ms, cool_max_ms, limited, adopt_until)
values (?, case when ? then ? end, case when ? then ? end, ?, ?, ?, coalesce(?, false),
  case when ? then ? + 15000 end)
on conflict (name) do update set
  limited = coalesce(?, q.limited), limited_until = null,
  adopt_until = case when ? and not q.limited then ? + 15000 else q.adopt_until end,
  paused_at = case when ? is null then q.paused_at when ? then coalesce(q.paused_at, ?) end,
  drain_at = case when ? and q.paused_at is null then coalesce(q.drain_at, ?) when ? is null then q.drain_at end,
  settings = coalesce(?, q.settings),
  cool_base_ms = case when ? is null then q.cool_base_ms else ? end,
  cool_max_ms = case when ? is null then q.cool_max_ms else ? end;

-- endDrains
-- with now, now
  with recursive scope as materialized (
    select l.id as job_type, l.queue from "holdfast_job_type" l join "holdfast_queue" q on q.name = l.queue where
        q.drain_at is not null
  ),
level_of (job_type, rank) as (
  select s.job_type, (select r.rank from "holdfast_ready" r where r.job_type = s.job_type and r.token is null order by
      r.rank limit 1) from scope s
  union all
  select l.job_type, (select r.rank from "holdfast_ready" r where r.job_type = l.job_type and r.token is null and r.rank
      > l.rank order by r.rank limit 1)
  from level_of l where l.rank is not null
)
  update "holdfast_queue" as q set paused_at = ?, drain_at = null
  where q.drain_at is not null
    and not exists (
      select 1 from scope s join level_of l on l.job_type = s.job_type
      where s.queue = q.name
        and exists (select 1 from "holdfast_ready" r where r.job_type = l.job_type and r.rank = l.rank and r.token is
            null and r.run_at <= ?))
    and not exists (
      select 1 from "holdfast_claim" c cross join json_each(c.ids) o
        cross join "holdfast_ready" r on r.seq = o.value and r.token = c.token join "holdfast_job_type" l on l.id =
            r.job_type
      where l.queue = q.name)
    -- Nor one that waits for a job that has ended, of which it will hear in a moment.
    and not exists (
      select 1 from "holdfast_dependency" d join "holdfast_ready" r on r.seq = (select known.seq from "holdfast_job"
          known where known.id = d.job) join "holdfast_job_type" l on l.id = r.job_type
      where l.queue = q.name and
    d.state is null and not exists (select 1 from "holdfast_ready" k where k.seq = (select known.seq from "holdfast_job"
        known where known.id = d.on_job))
      and (d.policy <> 'wait' or coalesce((select e.state from "holdfast_history" e where e.seq = (select known.seq from
          "holdfast_job" known where known.id = d.on_job)), 'gone') in ('done', 'gone')))
  returning name;

-- holds
select name, queues, reason, set_at from "holdfast_hold" order by name;

-- setHold
-- with name, queues, reason, now
insert into "holdfast_hold" (name, queues, reason, set_at) values (?, ?, ?, ?)
on conflict (name) do update set queues = excluded.queues, reason = excluded.reason;

-- clearHold
-- with name
delete from "holdfast_hold" where name = ? returning name;

-- workers
-- with now
select s.id, s.kind, s.worker_id, s.name, s.host, s.pid, s.version, s.queues, s.names, s.runtime, s.release, s.versions,
    s.started_at, s.beat_at, s.lease_until,
  s.stop_requested_at, s.quiet_at,
  (select json_group_array((select known.id from "holdfast_job" known where known.seq = r.seq)) from "holdfast_claim" c
      cross join json_each(c.ids) o
    join "holdfast_ready" r on r.seq = o.value and r.token = c.token where c.session = s.id) as jobs
from "holdfast_session" s where s.lease_until > ? and s.closed_at is null order by s.started_at, s.id;

-- lostWorkers
-- with now, now
select s.id, s.kind, s.worker_id, s.name, s.host, s.pid, s.version, s.queues, s.names, s.runtime, s.release, s.versions,
    s.started_at, s.beat_at, s.lease_until,
  s.stop_requested_at, s.quiet_at,
  (select json_group_array((select known.id from "holdfast_job" known where known.seq = r.seq)) from "holdfast_claim" c
      cross join json_each(c.ids) o
    join "holdfast_ready" r on r.seq = o.value and r.token = c.token where c.session = s.id) as jobs
from "holdfast_session" s
where s.kind = 'worker' and s.lease_until <= ? and s.lease_until > ? - 3600000 and s.lease_until >= s.beat_at +
    s.lease_ms
  and not exists (select 1 from "holdfast_session" o where o.worker_id = s.worker_id and o.started_at > s.started_at)
order by s.lease_until desc limit 20;

-- overdueClaims
-- with now, grace, most
select count(*) as n from (
  select 1 from "holdfast_claim" c left join "holdfast_session" s on s.id = c.session cross join json_each(c.ids) o
    join "holdfast_ready" r on r.seq = o.value and r.token = c.token
  where s.id is null or s.lease_until < ? - ? limit ?);

-- stopWorkers
-- with now, sessions, sessions, now
update "holdfast_session" set stop_requested_at = ?
where (? is null or id in (select value from json_each(?))) and kind = 'worker' and lease_until > ? and closed_at is
    null
returning id;

-- quietWorkers
-- with now, sessions, now
update "holdfast_session" set quiet_at = coalesce(quiet_at, ?)
where id in (select value from json_each(?)) and kind = 'worker' and lease_until > ? and closed_at is null
returning id;

-- resumeWorkers
-- with sessions, now
update "holdfast_session" set quiet_at = null
where id in (select value from json_each(?)) and kind = 'worker' and lease_until > ? and closed_at is null
returning id;

-- definitions
select name, has_unique, has_lane, is_machine, lanes, budget from "holdfast_definition";

-- registerDefinitions
-- with rows.name, rows.unique, rows.lane, rows.machine, rows.lanes, rows.budget, now
insert into "holdfast_definition" (name, has_unique, has_lane, is_machine, lanes, budget, seen_at) values (?, ?, ?, ?,
    ?, ?, ?)
on conflict (name) do update set has_unique = excluded.has_unique, has_lane = excluded.has_lane, is_machine =
    excluded.is_machine,
  lanes = excluded.lanes, budget = excluded.budget, seen_at = excluded.seen_at;

-- getState
-- with key
select value from "holdfast_state" where key = ?;

-- setState
-- with key, value, now
insert into "holdfast_state" (key, value, set_at) values (?, ?, ?)
on conflict (key) do update set value = excluded.value, set_at = excluded.set_at;

-- deleteState
-- with key
delete from "holdfast_state" where key = ? returning key;

-- stateRow
-- with now, key
select key, value, set_at, ? as now from "holdfast_state" where key = ?;

-- stateRows
-- with now, from, until, limit
select key, value, set_at, ? as now from "holdfast_state" where key >= ? and key < ? order by key desc limit ?;

-- swapState
-- with value, now, key, was
update "holdfast_state" set value = ?, set_at = ? where key = ? and value = ? returning key;

-- scheduleRows
-- with now, name, name
select name, spec, edits, next_at, waiting_at, anchor_at, created_at, paused_at, fault, last_run_at, last_job_id, jobs,
    recent, fired, skipped, missed, ? as now from "holdfast_schedule" where ? is null or name = ? order by name;

-- dueSchedules
-- with now, at, name, limit, now, at, now
select * from (
  select name, next_at, null as jobs, ? as now from "holdfast_schedule"
  where paused_at is null and fault is null and (next_at, name) > (?, ?)
  order by next_at, name limit ?
) s
union all
select name, next_at, coalesce(jobs, '[]'), ? from "holdfast_schedule"
where ? = 0 and waiting_at is not null and paused_at is null and fault is null and (next_at is null or next_at > ?);

-- lockSchedule
-- with now, name
select name, spec, edits, next_at, waiting_at, anchor_at, created_at, paused_at, fault, last_run_at, last_job_id, jobs,
    recent, fired, skipped, missed, ? as now from "holdfast_schedule" where name = ?;

-- claimSchedule
-- with now, name, now
select name, spec, edits, next_at, waiting_at, anchor_at, created_at, paused_at, fault, last_run_at, last_job_id, jobs,
    recent, fired, skipped, missed, ? as now from "holdfast_schedule"
where name = ? and paused_at is null and fault is null and (next_at <= ? or waiting_at is not null);

-- addSchedule
-- with name, spec, nextAt, anchorAt, now
insert into "holdfast_schedule" (name, spec, next_at, anchor_at, created_at) values (?, ?, ?, ?, ?)
on conflict (name) do nothing returning name;

-- setSchedule
-- with spec, edits, nextAt, anchorAt, waitingAt, paused, now, name
update "holdfast_schedule" set spec = ?, edits = ?, next_at = ?, anchor_at = ?, waiting_at = ?,
  paused_at = case when ? then coalesce(paused_at, ?) end, fault = null, fault_at = null
where name = ? returning name;

-- advanceSchedule
-- with nextAt, waitingAt, lastRunAt, lastJobId, jobs, recent, fired, skipped, missed, name, expected
update "holdfast_schedule" set next_at = ?, waiting_at = ?, last_run_at = coalesce(?, last_run_at),
  last_job_id = coalesce(?, last_job_id), jobs = ?, recent = ?, fired = fired + ?, skipped = skipped + ?,
  missed = missed + ?
where name = ? and next_at is ? returning name;

-- disableSchedule
-- with fault, now, name
update "holdfast_schedule" set fault = ?, fault_at = ? where name = ? and fault is null returning name;

-- occurrencesMade
-- with name, from, to
select at from "holdfast_occurrence" where schedule = ? and at >= ? and at < ? order by at;

-- newestOccurrences
-- with name, limit
select at, job from "holdfast_occurrence" where schedule = ? order by at desc limit ?;

-- occurrencesAround
-- with name, at, name, at
select * from (select at, job from "holdfast_occurrence" where schedule = ? and at < ? order by at desc limit 1)
union all select * from (select at, job from "holdfast_occurrence" where schedule = ? and at > ? order by at limit 1);

-- occurrenceJobs
-- with now, ids, ids
select j.id, case when r.token is not null then 'running' when r.run_at >= 8633688480000000 then 'waiting'
  when r.run_at > ? then case when r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end as
      state, r.attempt, r.crashes, r.throttles, r.run_at, r.started_at, null as ended_at, case when
      octet_length(r.errors) <= 16384 then r.errors end as errors, j.extras, exists (select 1 from "holdfast_step" p
      where p.job = j.id) as stepped
from json_each(?) o cross join "holdfast_job" j on j.id = o.value cross join "holdfast_ready" r on r.seq = j.seq
union all
select j.id, h.state, h.attempt, h.crashes, h.throttles, h.run_at, h.started_at, h.ended_at, case when
    octet_length(h.errors) <= 16384 then h.errors end as errors, j.extras, exists (select 1 from "holdfast_step" p where
    p.job = j.id) as stepped
from json_each(?) o cross join "holdfast_job" j on j.id = o.value cross join "holdfast_history" h on h.seq = j.seq;

-- addOccurrences
-- with rows.name, rows.at, rows.job, rows.madeAt
insert into "holdfast_occurrence" (schedule, at, job, made_at) values (?, ?, ?, ?)
on conflict (schedule, at) do update set job = excluded.job, made_at = excluded.made_at;

-- removeSchedule
-- with name
delete from "holdfast_schedule" where name = ? returning name;

-- liveJobs
-- with ids
select j.id from "holdfast_job" j join "holdfast_ready" r on r.seq = j.seq where j.id in (select value from
    json_each(?));

-- budgetRows
-- with now
select name, amount, per_ms, burst, tuned, standard, tokens, filled_at, chunks, ? as now from "holdfast_budget" order by
    name;

-- lockBudget
-- with now, name
select name, amount, per_ms, burst, tuned, standard, tokens, filled_at, chunks, ? as now from "holdfast_budget" where
    name = ?;

-- addBudget
-- with name, amount, per, burst, tuned, standard, burst, now
insert into "holdfast_budget" (name, amount, per_ms, burst, tuned, standard, tokens, filled_at)
values (?, ?, ?, ?, ?, ?, ?, ?) on conflict (name) do nothing returning name;

-- setBudget
-- with amount, per, burst, tuned, standard, tokens, filledAt, chunks, name
update "holdfast_budget" set amount = ?, per_ms = ?, burst = ?, tuned = ?, standard = ?, tokens = ?,
  filled_at = ?, chunks = ?
where name = ? returning name;

-- removeBudget
-- with name
delete from "holdfast_budget" where name = ? returning name;

-- passRows
-- with now
select name, clean, holder, held_until, runs, started_at, ended_at, reason, ? as now from "holdfast_pass" order by name;

-- lockPass
-- with now, name
select name, clean, holder, held_until, runs, started_at, ended_at, reason, ? as now from "holdfast_pass" where name = ?;

-- addPass
-- with name
insert into "holdfast_pass" (name, clean) values (?, true) on conflict (name) do nothing returning name;

-- setPass
-- with clean, holder, heldUntil, runs, startedAt, endedAt, reason, name
update "holdfast_pass" set clean = ?, holder = ?, held_until = ?, runs = ?, started_at = ?,
  ended_at = ?, reason = ?
where name = ? returning name;

-- putMetrics
-- with rows.minute, rows.queue, rows.name, rows.worker, rows.done, rows.failed, rows.dead, rows.cancelled,
--     rows.throttled, rows.released, rows.lost, rows.ran, rows.waited
insert into "holdfast_metric" as m (minute, queue, name, worker, done, failed, dead, cancelled, throttled, released,
    lost, ran, waited)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
on conflict (minute, queue, name, worker) do update set done = excluded.done, failed = excluded.failed, dead =
    excluded.dead, cancelled = excluded.cancelled,
  throttled = excluded.throttled, released = excluded.released, lost = excluded.lost, ran = excluded.ran, waited =
      excluded.waited
where m.done + m.failed + m.dead + m.cancelled + m.throttled + m.released + m.lost <= excluded.done + excluded.failed +
    excluded.dead + excluded.cancelled + excluded.throttled + excluded.released + excluded.lost;

-- metrics
-- with since, until, queues, queues, names, names
select minute, queue, name, worker, done, failed, dead, cancelled, throttled, released, lost, ran, waited from
    "holdfast_metric"
where minute >= ? and minute < ?
  and (? is null or queue in (select value from json_each(?))) and (? is null or name in (select value from
      json_each(?)))
order by minute, queue, name, worker;

-- metricsTogether
-- with since, until
select minute, '' as queue, '' as name, '' as worker, sum(done) as done, sum(failed) as failed, sum(dead) as dead,
    sum(cancelled) as cancelled,
  sum(throttled) as throttled, sum(released) as released, sum(lost) as lost, group_concat(ran, ',') as ran,
      group_concat(waited, ',') as waited
from "holdfast_metric" where minute >= ? and minute < ? group by minute order by minute;

-- queueMinutes
-- with since, until
select minute, queue, sum(done) as done, sum(failed) as failed, sum(dead) as dead
from "holdfast_metric" where minute >= ? and minute < ? group by minute, queue order by minute, queue;

-- putMetricSums
-- with rows.name, rows.minute, rows.done, rows.failed, rows.dead, rows.cancelled, rows.throttled, rows.released,
--     rows.lost, rows.ran, rows.waited
insert into "holdfast_metric_sum" (name, minute, done, failed, dead, cancelled, throttled, released, lost, ran, waited)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
on conflict (name, minute) do update set done = excluded.done, failed = excluded.failed, dead = excluded.dead, cancelled
    = excluded.cancelled,
  throttled = excluded.throttled, released = excluded.released, lost = excluded.lost, ran = excluded.ran, waited =
      excluded.waited;

-- metricSums
-- with names, since, until
select minute, '' as queue, name, '' as worker, done, failed, dead, cancelled, throttled, released, lost, ran, waited
    from "holdfast_metric_sum"
where name in (select value from json_each(?)) and minute >= ? and minute < ? order by name, minute;

-- summedHours
-- with since, until
select distinct minute - minute % 3600000 as hour from "holdfast_metric_sum" where name = '' and minute >= ? and minute
    < ?;

-- dropMetrics
-- with since, until
delete from "holdfast_metric" where minute >= ? and minute < ? and worker <> '';

-- putGauges
-- with rows.minute, rows.source, rows.name, rows.value
insert into "holdfast_gauge" (minute, source, name, value) values (?, ?, ?, ?)
on conflict (minute, source, name) do update set value = excluded.value;

-- gauges
-- with since, until, sources, sources
select minute, source, name, value from "holdfast_gauge"
where minute >= ? and minute < ?
  and (? is null or source in (select value from json_each(?)))
order by minute, source, name;

-- namedGauges
-- with names, since, until, sources, sources
select g.minute, g.source, g.name, g.value from json_each(?) w cross join "holdfast_gauge" g on g.name = w.value
where g.minute >= ? and g.minute < ? and (? is null or g.source in (select value from json_each(?)))
order by g.minute, g.source, g.name;

-- load
-- with step, minutes
select g.minute - g.minute % ? as at, case when g.name = 'ready' then g.source else '' end as source, g.name,
  sum(g.value) as sum, count(distinct g.minute) as minutes
from json_each(?) m cross join "holdfast_gauge" g on g.minute = m.value
where g.name = 'ready' or (g.name in ('running', 'slots') and g.source not like 'queue:%')
group by 1, 2, 3 order by 1;

-- gaugeSteps
-- with step, names, minutes
select g.minute - g.minute % ? as at, g.source, g.name, sum(g.value) as sum, count(*) as minutes
from json_each(?) w cross join json_each(?) m cross join "holdfast_gauge" g on g.name = w.value and g.minute between
    m.value and m.value
group by 1, 2, 3 order by 1, 2, 3;

-- putEvents
-- with rows.id, rows.at, rows.event, rows.job, rows.name, rows.queue, rows.attempt, rows.worker, rows.detail
insert into "holdfast_event" (id, at, event, job, name, queue, attempt, worker, detail)
values (?, ?, ?, ?, ?, ?, ?, ?, ?)
on conflict (id) do nothing;

-- events
-- with cursor, cursor, job, job, from, since, until, events, events, queues, queues, names, names, limit
select id, at, event, job, name, queue, attempt, worker, detail from "holdfast_event"
where (? is null or id < ?) and (? is null or job = ?) and id >= ? and at >= ? and at < ?
  and (? is null or event in (select value from json_each(?))) and (? is null or queue in (select value from
      json_each(?)))
  and (? is null or name in (select value from json_each(?)))
order by id desc limit ?;

-- putLogLines
-- with rows.job, rows.id, rows.at, rows.level, rows.attempt, rows.message, rows.details, rows.job
insert into "holdfast_log" (job, id, at, level, attempt, message, details)
select ?, ?, ?, ?, ?, ?, ?
where exists (select 1 from "holdfast_job" j where j.id = ?) on conflict do nothing;

-- trimLogLines
-- with rows.job, rows.job, skip
delete from "holdfast_log" where job = ?
  and id < (select o.id from "holdfast_log" o where o.job = ? order by o.id desc limit 1 offset ?);

-- logLines
-- with job, limit
select id, job, at, level, attempt, message, details from "holdfast_log" where job = ? order by id desc limit ?;

-- deleteOldSeries, 1 of 6
-- with metricsBefore
delete from "holdfast_metric" where minute < ?;

-- deleteOldSeries, 2 of 6
-- with metricsBefore
delete from "holdfast_metric_sum" where minute < ?;

-- deleteOldSeries, 3 of 6
-- with metricsBefore
delete from "holdfast_occurrence" where made_at < ?;

-- deleteOldSeries, 4 of 6
-- with metricsBefore
delete from "holdfast_gauge" where minute < ?;

-- deleteOldSeries, 5 of 6
-- with eventsBefore
delete from "holdfast_event" where id < ?;

-- deleteOldSeries, 6 of 6
delete from "holdfast_log" where not exists (select 1 from "holdfast_job" j where j.id = "holdfast_log".job);

-- recordSteps
-- with rows.job, rows.name, rows.seq, rows.givenOrder, rows.kind, rows.state, rows.attempt, rows.tries, now, rows.took,
--     rows.state, now, now, rows.wakeIn, rows.undo, rows.fails, rows.given, rows.output, rows.error, rows.label, rows.job,
--     rows.token, session, session, now, rows.after, rows.job, rows.after
insert into "holdfast_step" as s (job, name, seq, given_order, kind, state, attempt, tries, started_at, ended_at,
    wake_at, topic, child, undo, fails, given, output, error, label)
select ?, ?, ?, ?, ?, ?, ?, ?, ? - ?,
  case when ? <> 'open' then ? end, ? + ?, null, null, ?, ?, ?, ?, ?, ?
where exists (select 1 from "holdfast_ready" r where r.seq = (select known.seq from "holdfast_job" known where known.id
    = ?) and r.token = ? and r.session = ? and exists (select 1 from "holdfast_session" s where s.id = ? and
    s.lease_until > ?)) and (? is null or exists (select 1 from "holdfast_step" w where w.job = ? and w.name = ? and
    w.state <> 'open'))
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
returning job, name, wake_at;

-- findSteps
-- with id
select job, name, seq, given_order, kind, state, attempt, tries, started_at, ended_at, wake_at, topic, child, undo,
    fails, given, output, error, label from "holdfast_step" where job = ? order by seq, name;

-- stepsBefore
-- with id, before, limit
select job, name, seq, given_order, kind, state, attempt, tries, started_at, ended_at, wake_at, topic, child, undo,
    fails, given, output, error, label from "holdfast_step" where job = ? and seq < ? order by seq desc limit ?;

-- openSteps
-- with id, limit
select s.* from (select job, name from "holdfast_step" where job = ? and state = 'open' and name <> '$undo' limit ?) o
cross join "holdfast_step" s on s.job = o.job and s.name = o.name;

-- countSteps
-- with id, before, limit
select count(*) as n from (select 1 from "holdfast_step" where job = ? and seq < ? limit ?) one;

-- forkable
-- with id
select h.state, h.ended_at, h.rank, l.queue, l.name, j.lane, j.max_attempts, j.timeout_ms, j.context, j.extras, j.input
from "holdfast_history" h join "holdfast_job" j on j.seq = h.seq join "holdfast_job_type" l on l.id = h.job_type where
    h.seq = (select known.seq from "holdfast_job" known where known.id = ?);

-- copySteps
-- with to, id, before
insert into "holdfast_step" (job, name, seq, given_order, kind, state, attempt, tries, started_at, ended_at, wake_at,
    topic, child, undo, fails, given, output, error, label)
select ?, name, seq, given_order, kind, state, 1, tries, started_at, ended_at, wake_at, null, child, 0, fails, given,
    output, error, label from "holdfast_step" where job = ? and seq < ?;

-- markBegun
-- with id
update "holdfast_ready" set begun = 1 where seq = (select known.seq from "holdfast_job" known where known.id = ?);

-- findStep
-- with id, name
select job, name, seq, given_order, kind, state, attempt, tries, started_at, ended_at, wake_at, topic, child, undo,
    fails, given, output, error, label from "holdfast_step" where job = ? and name = ?;

-- machineSteps
-- with ids
select job as id, label from "holdfast_step" where job in (select value from json_each(?)) and name = '$machine';

-- holdRow
-- with id, id, token, session, session, now, after, id, after
select ? as id from "holdfast_ready" r where r.seq = (select known.seq from "holdfast_job" known where known.id = ?) and
    r.token = ? and r.session = ? and exists (select 1 from "holdfast_session" s where s.id = ? and s.lease_until > ?)
    and (? is null or exists (select 1 from "holdfast_step" w where w.job = ? and w.name = ? and w.state <> 'open'));

-- nameChild
-- with child, id, name
update "holdfast_step" set child = ? where job = ? and name = ?;

-- suspend, 1 of 2
-- with spent, session, session, now
delete from "holdfast_claim" where token in (select value from json_each(?)) and "holdfast_claim".session = ? and exists
    (select 1 from "holdfast_session" s where s.id = ? and s.lease_until > ?);

-- suspend, 2 of 2
-- with rows.attempt, rows.waits, rows.open, rows.every, rows.id, rows.waits, rows.id, rows.signals, now, rows.id, now,
--     rows.open, rows.every, rows.id, rows.id, rows.open, now, rows.at, now, rows.id, rows.token, session, session, now,
--     rows.id
update "holdfast_ready" set token = null, session = null, begun = 1, attempt = ?, crashes = 0, counted = null, note =
    null, request = null, waits = ?,
    pending = case when ? > 0 then case when ? then (select count(*) from "holdfast_dependency" d where d.job = ? and
        d.step is not null and d.state is null) else 1 end end, due_at = null,
    run_at = case
      when ? = 'signal' and ((select count(*) from "holdfast_step" w where w.job = ? and w.state = 'open' and w.topic is
          not null) < ? or exists (
        select 1 from "holdfast_step" w join "holdfast_signal" g on g.topic = w.topic and g.expires_at > ?
        where w.job = ? and w.state = 'open' and w.topic is not null)) then ?
      when ? > 0 and case when ? then (select count(*) from "holdfast_dependency" d where d.job = ? and d.step is not
          null and d.state is null) = 0 else (select count(*) from "holdfast_dependency" d where d.job = ? and d.step is
          not null and d.state is null) < ? end then ?
      else max(coalesce(?, 8633688480000000), ?) end
  where seq = (select known.seq from "holdfast_job" known where known.id = ?) and token = ? and "holdfast_ready".session
      = ? and exists (select 1 from "holdfast_session" s where s.id = ? and s.lease_until > ?) returning ? as id;

-- lockTopics
-- with topics
select value from json_each(?) where false;

-- takeSignal, 1 of 3
-- with id, name, id, token, session, session, now
select state, output, wake_at from "holdfast_step" where job = ? and name = ? and state <> 'open' and exists (select 1
    from "holdfast_ready" r where r.seq = (select known.seq from "holdfast_job" known where known.id = ?) and r.token =
    ? and r.session = ? and exists (select 1 from "holdfast_session" s where s.id = ? and s.lease_until > ?));

-- takeSignal, 2 of 3
-- with id, name, seq, givenOrder, attempt, now, now, id, name, now, wakeIn, topic, fails, given, topic, now, topic,
--     now, topic, now, id, name, now, wakeIn, now, id, token, session, session, now, id, name, after, id, after
insert into "holdfast_step" as s (job, name, seq, given_order, kind, state, attempt, tries, started_at, ended_at,
    wake_at, topic, child, undo, fails, given, output, error, label)
    select ?, ?, ?, case when o.over then ? end, 'signal', case when o.over then 'done' else 'open' end, ?, 1, ?,
      case when o.over then ? end, coalesce((select w.wake_at from "holdfast_step" w where w.job = ? and w.name = ?), ?
          + ?), ?, null, 0, ?, ?,
      case when o.over then coalesce((select data from "holdfast_signal" where id = (select id from "holdfast_signal"
          where topic = ? and expires_at > ? order by id limit 1)), 'null') end, null,
      case when o.over and (select id from "holdfast_signal" where topic = ? and expires_at > ? order by id limit 1) is
          null then 'timeout' end
    from (select (select id from "holdfast_signal" where topic = ? and expires_at > ? order by id limit 1) is not null
        or coalesce(coalesce((select w.wake_at from "holdfast_step" w where w.job = ? and w.name = ?), ? + ?) <= ?,
        false) as over) o
    where exists (select 1 from "holdfast_ready" r where r.seq = (select known.seq from "holdfast_job" known where
        known.id = ?) and r.token = ? and r.session = ? and exists (select 1 from "holdfast_session" s where s.id = ?
        and s.lease_until > ?)) and not exists (select 1 from "holdfast_step" where job = ? and name = ? and state <>
        'open') and (? is null or exists (select 1 from "holdfast_step" w where w.job = ? and w.name = ? and w.state <>
        'open'))
  on conflict (job, name) do update set given_order = case when (s.state = 'done' or (s.attempt = excluded.attempt and
      (s.state = 'failed' or s.tries > excluded.tries))) then coalesce(s.given_order, excluded.given_order) else
      excluded.given_order end,
    state = case when (s.state = 'done' or (s.attempt = excluded.attempt and (s.state = 'failed' or s.tries >
        excluded.tries))) then s.state else excluded.state end, attempt = case when (s.state = 'done' or (s.attempt =
        excluded.attempt and (s.state = 'failed' or s.tries > excluded.tries))) then s.attempt else excluded.attempt
        end, tries = case when (s.state = 'done' or (s.attempt = excluded.attempt and (s.state = 'failed' or s.tries >
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
    returning state, output, wake_at;

-- takeSignal, 3 of 3
-- with topic, now
delete from "holdfast_signal" where id = (select id from "holdfast_signal" where topic = ? and expires_at > ? order by
    id limit 1) and changes() > 0;

-- sendSignal, 1 of 2
-- with id, now
insert into "holdfast_used_id" (id, at) values (?, ?) on conflict do nothing;

-- sendSignal, 2 of 2
-- with topic, data, now, now, expires
insert into "holdfast_signal" (topic, data, sent_at, expires_at) select ?, ?, ?, ? + ? where changes() > 0 returning id;

-- waitersFor
-- with topic, limit
select job from "holdfast_step" where topic = ? and state = 'open' order by started_at, job limit ?;

-- wakeWaiters
-- with now, topic, topic, now
update "holdfast_ready" set run_at = ?, waits = null
where token is null and waits <> 'resume' and seq in (
  select w.seq from "holdfast_step" s join "holdfast_job" j on j.id = s.job join "holdfast_ready" w on w.seq = j.seq and
      w.token is null and w.waits <> 'resume'
  where s.topic = ? and s.state = 'open' order by s.started_at, s.job
  limit (select count(*) from "holdfast_signal" g where g.topic = ? and g.expires_at > ?))
returning (select known.id from "holdfast_job" known where known.seq = "holdfast_ready".seq) as id, lane is not null as
    laned;

-- expireSignals
-- with now
delete from "holdfast_signal" where expires_at <= ?;

-- strays
-- with now, now, limit, limit, now
select 'topic' as kind, topic as id, null as state from (
  select distinct s.topic from "holdfast_signal" g cross join "holdfast_step" s on s.topic = g.topic and s.state =
      'open'
  join "holdfast_job" j on j.id = s.job join "holdfast_ready" r on r.seq = j.seq and r.token is null and r.waits <>
      'resume' and r.run_at > ?
  where g.expires_at > ? limit ?) stranded
union all
select 'end', id, state from (
  select distinct d.on_job as id, coalesce((select h.state from "holdfast_history" h where h.seq = (select known.seq
      from "holdfast_job" known where known.id = d.on_job)), 'cancelled') as state
  from "holdfast_dependency" d where
  d.state is null and not exists (select 1 from "holdfast_ready" k where k.seq = (select known.seq from "holdfast_job"
      known where known.id = d.on_job))
    and (d.policy <> 'wait' or coalesce((select e.state from "holdfast_history" e where e.seq = (select known.seq from
        "holdfast_job" known where known.id = d.on_job)), 'gone') in ('done', 'gone'))
  limit ?) ended
union all
select 'expired', '', null where exists (select 1 from "holdfast_signal" where expires_at <= ?);

-- over
-- with now, now, now, now, now, limit, limit, now, now
select
  exists (select 1 from "holdfast_session" s where (s.closed_at is null and s.lease_until <= ?) or s.closed_at < ? -
      604800000)
    or exists (select 1 from "holdfast_cancel")
    or exists (select 1 from "holdfast_claim" c where not exists (select 1 from "holdfast_session" s where s.id =
        c.session and s.lease_until > ?)) as sessions,
  exists (select 1 from (
select 'topic' as kind, topic as id, null as state from (
  select distinct s.topic from "holdfast_signal" g cross join "holdfast_step" s on s.topic = g.topic and s.state =
      'open'
  join "holdfast_job" j on j.id = s.job join "holdfast_ready" r on r.seq = j.seq and r.token is null and r.waits <>
      'resume' and r.run_at > ?
  where g.expires_at > ? limit ?) stranded
union all
select 'end', id, state from (
  select distinct d.on_job as id, coalesce((select h.state from "holdfast_history" h where h.seq = (select known.seq
      from "holdfast_job" known where known.id = d.on_job)), 'cancelled') as state
  from "holdfast_dependency" d where
  d.state is null and not exists (select 1 from "holdfast_ready" k where k.seq = (select known.seq from "holdfast_job"
      known where known.id = d.on_job))
    and (d.policy <> 'wait' or coalesce((select e.state from "holdfast_history" e where e.seq = (select known.seq from
        "holdfast_job" known where known.id = d.on_job)), 'gone') in ('done', 'gone'))
  limit ?) ended
union all
select 'expired', '', null where exists (select 1 from "holdfast_signal" where expires_at <= ?)) s) as workflows,
  exists (select 1 from "holdfast_temporary_limit" where until_at <= ?) as temporary_limits,
  exists (select 1 from "holdfast_queue" where limited) or exists (select 1 from "holdfast_budget") as limits,
  exists (select 1 from "holdfast_queue" where drain_at is not null) as drains;

-- watch
-- with ids
update "holdfast_ready" set watched = 1 where seq in (select known.seq from "holdfast_job" known where known.id in
    (select value from json_each(?))) returning (select known.id from "holdfast_job" known where known.seq =
    "holdfast_ready".seq) as id;

-- endsOf
-- with ids
select j.id, h.state, h.output, h.errors from "holdfast_job" j join "holdfast_history" h on h.seq = j.seq where j.id in
    (select value from json_each(?));

-- addDependencies
-- with rows.job, rows.on, rows.policy, rows.step, rows.state, rows.state, now
insert into "holdfast_dependency" (job, on_job, policy, step, state, met_at)
values (?, ?, ?, ?, ?, case when ? is not null then ? end)
on conflict (job, on_job) do nothing;

-- placeDependents
-- with rows.pending, rows.id, rows.id
update "holdfast_ready" set due_at = run_at, run_at = 8633688480000000, waits = 'jobs', pending = ?
where seq = (select known.seq from "holdfast_job" known where known.id = ?) and token is null and pending is null and
    not begun returning ? as id;

-- awaited
-- with ids
select distinct on_job as id from "holdfast_dependency" where on_job in (select value from json_each(?)) and state is
    null;

-- meet, 1 of 2
-- with rows.state, rows.id, rows.id, rows.state, now, rows.id
update "holdfast_step" set state = case when ? = 'done' then 'done' else 'failed' end,
    output = (select h.output from "holdfast_history" h where h.seq = (select known.seq from "holdfast_job" known where
        known.id = ?)), error = (select h.errors from "holdfast_history" h where h.seq = (select known.seq from
        "holdfast_job" known where known.id = ?)),
    label = ?, ended_at = ?
  where state = 'open' and (job, name) in (
    select d.job, d.step from "holdfast_dependency" d where d.on_job = ? and d.state is null and d.step is not null);

-- meet, 2 of 2
-- with rows.state, now, rows.id, rows.state, rows.id, rows.id
update "holdfast_dependency" set state = ?, met_at = ?
  where on_job = ? and state is null and (? = 'done' or policy <> 'wait'
    or not exists (select 1 from "holdfast_history" h where h.seq = (select known.seq from "holdfast_job" known where
        known.id = ?))
    and not exists (select 1 from "holdfast_ready" r where r.seq = (select known.seq from "holdfast_job" known where
        known.id = ?)))
  returning job, on_job, policy, step, state;

-- release
-- with rows.met, rows.wake, rows.met, rows.wake, rows.met, now, rows.id, rows.id
update "holdfast_ready" set pending = coalesce(pending, 1) - ?,
  waits = case when waits <> 'resume' and (? or coalesce(pending, 1) - ? <= 0) then null else waits end,
  run_at = case when waits <> 'resume' and (? or coalesce(pending, 1) - ? <= 0) then max(?, coalesce(due_at, 0)) else
      run_at end
where seq = (select known.seq from "holdfast_job" known where known.id = ?) and token is null and waits is not null
returning ? as id, waits is null as due, lane is not null as laned;

-- dependenciesOf
-- with id, limit
select d.job, d.on_job, d.policy, d.step, d.state, d.met_at from "holdfast_dependency" d where d.job = ? order by
    d.on_job limit ?;

-- childrenOf
-- with ids, limit
select id from "holdfast_job" where parent_id in (select value from json_each(?)) order by id limit ?;

-- undoable
-- with ids
select job as id, max(name = '$undo') as undoing from "holdfast_step"
where job in (select value from json_each(?)) and ((undo and state = 'done') or name = '$undo') group by job;

-- startUndo, 1 of 2
-- with rows.id
update "holdfast_ready" set undoing = 1 where seq = (select known.seq from "holdfast_job" known where known.id = ?);

-- startUndo, 2 of 2
-- with rows.id, now, rows.output, rows.state
insert into "holdfast_step" (job, name, seq, given_order, kind, state, attempt, tries, started_at, ended_at, wake_at,
    topic, child, undo, fails, given, output, error, label)
  select ?, '$undo', 2147483647, null, 'undo', 'open', 0, 0, ?, null, null, null, null, 0, 0, 2147483647, ?, null, ?
      where true
  on conflict (job, name) do nothing returning job as id;

-- retrySteps, 1 of 3
-- with ids
delete from "holdfast_step" where "holdfast_step".job in (select value from json_each(?)) and case
  when not exists (select 1 from "holdfast_step" m where m.job = "holdfast_step".job and m.name = '$undo') then
      "holdfast_step".state = 'open' and "holdfast_step".kind = 'step'
  when exists (select 1 from "holdfast_step" d where d.job = "holdfast_step".job and d.undo and d.state = 'done'
    and not exists (select 1 from "holdfast_step" u where u.job = d.job and u.name = 'undo:' || d.name and u.state =
        'done')) then "holdfast_step".kind = 'undo' and "holdfast_step".name <> '$undo' and "holdfast_step".state <>
        'done'
  else true end;

-- retrySteps, 2 of 3
-- with ids
update "holdfast_step" set attempt = 0 where "holdfast_step".job in (select value from json_each(?)) and
    "holdfast_step".state = 'failed' and not exists (select 1 from "holdfast_step" m where m.job = "holdfast_step".job
    and m.name = '$undo');

-- retrySteps, 3 of 3
-- with ids
update "holdfast_ready" set undoing = 1 where seq in (select j.seq from "holdfast_job" j where j.id in (select m.job
    from "holdfast_step" m where m.job in (select value from json_each(?)) and m.name = '$undo' and exists (select 1
    from "holdfast_step" d where d.job = m.job and d.undo and d.state = 'done'
  and not exists (select 1 from "holdfast_step" u where u.job = d.job and u.name = 'undo:' || d.name and u.state =
      'done'))));

-- saveMachine, 1 of 2
-- with attempt, id, token, session, session, now, attempt
update "holdfast_ready" set attempt = ?, crashes = 0 where seq = (select known.seq from "holdfast_job" known where
    known.id = ?) and token = ? and "holdfast_ready".session = ? and exists (select 1 from "holdfast_session" s where
    s.id = ? and s.lease_until > ?) and ? is not null;

-- saveMachine, 2 of 2
-- with id, rows.name, rows.seq, rows.seq, rows.kind, rows.state, rows.tries, rows.tries, now, rows.took, rows.state,
--     now, rows.seq, rows.output, rows.label, id, token, session, session, now
insert into "holdfast_step" as s (job, name, seq, given_order, kind, state, attempt, tries, started_at, ended_at,
    wake_at, topic, child, undo, fails, given, output, error, label)
  select ?, ?, ?, ?, ?, ?, ?, ?, ? - ?,
    case when ? = 'done' then ? end, null, null, null, 0, 0, ?, ?, null, ?
  where exists (select 1 from "holdfast_ready" r where r.seq = (select known.seq from "holdfast_job" known where
      known.id = ?) and r.token = ? and r.session = ? and exists (select 1 from "holdfast_session" s where s.id = ? and
      s.lease_until > ?))
  on conflict (job, name) do update set seq = excluded.seq, given_order = excluded.given_order, given = excluded.given,
      state = excluded.state, attempt = excluded.attempt, tries = excluded.tries,
    started_at = excluded.started_at, ended_at = excluded.ended_at, output = excluded.output, label = excluded.label
    where excluded.seq >= s.seq
  returning job as id;

-- advance
-- with extras, id, id, token, session, session, now
update "holdfast_job" set extras = ? where id = ? and exists (select 1 from "holdfast_ready" r where r.seq = (select
    known.seq from "holdfast_job" known where known.id = ?) and r.token = ? and r.session = ? and exists (select 1 from
    "holdfast_session" s where s.id = ? and s.lease_until > ?)) returning id;

-- stillHeld
-- with id, id, token, session
select ? as id from "holdfast_ready" r where r.seq = (select known.seq from "holdfast_job" known where known.id = ?) and
    r.token = ? and r.session = ?;

-- liveWorkflows
-- with names, after, limit
select j.id, r.seq as row_key, l.name, j.input, j.extras, r.attempt, r.crashes, r.token is not null as running
from "holdfast_ready" r join "holdfast_job_type" l on l.id = r.job_type join "holdfast_job" j on j.seq = r.seq
where r.begun and l.name in (select value from json_each(?)) and r.seq > coalesce(cast(? as integer), 0)
  and exists (select 1 from "holdfast_step" s where s.job = j.id)
order by r.seq limit ?;

-- workflowRow
-- with id, id
select j.id, l.name, j.input, j.extras, r.attempt, r.crashes, r.token is not null as running from "holdfast_ready" r
    join "holdfast_job_type" l on l.id = r.job_type join "holdfast_job" j on j.seq = r.seq where j.id = ?
union all
select j.id, l.name, j.input, j.extras, h.attempt, h.crashes, false as running from "holdfast_history" h join
    "holdfast_job_type" l on l.id = h.job_type join "holdfast_job" j on j.seq = h.seq where j.id = ?
limit 1;

-- addBatch
-- with id, now, total, names, thenJob, thenName, policy
insert into "holdfast_batch" (id, made_at, total, names, then_job, then_name, policy)
values (?, ?, ?, ?, ?, ?, ?) on conflict do nothing;

-- addMembers
-- with rows.batch, rows.id
insert into "holdfast_member" (batch, seq) select ?, known.seq from "holdfast_job" known where known.id = ? on conflict
    do nothing;

-- walkBatches
-- with before, limit
select b.id, b.made_at, b.total, b.names, b.then_job, b.then_name, b.policy from "holdfast_batch" b where b.id < ? order
    by b.id desc limit ?;

-- tallyBatches
-- with ids, most
select n.value as id, count(*) as counted, sum(h.state is 'done') as done, sum(h.state is 'dead') as dead,
  sum(h.state is 'cancelled') as cancelled, count(r.token) as running,
  min(coalesce(h.started_at, r.started_at)) as started_at, max(h.ended_at) as ended_at
from json_each(?) n cross join "holdfast_member" m on m.batch = n.value
  and m.seq >= coalesce((select k.seq from "holdfast_member" k where k.batch = n.value order by k.seq desc limit 1
      offset ? - 1), 0)
left join "holdfast_history" h on h.seq = m.seq left join "holdfast_ready" r on r.seq = m.seq
group by n.value;

-- batchesOf
-- with id, limit, id, limit, limit
select b.id, b.made_at, b.total, b.names, b.then_job, b.then_name, b.policy, x."then" from (
  select * from (select m.batch, 0 as "then" from "holdfast_member" m where m.seq = (select known.seq from
      "holdfast_job" known where known.id = ?) order by m.batch desc limit ?)
  union all
  select * from (select k.id, 1 from "holdfast_batch" k where k.then_job = ? order by k.id desc limit ?)
) x cross join "holdfast_batch" b on b.id = x.batch
order by b.id desc, x."then" limit ?;

-- deleteBatches
-- with before, limit
delete from "holdfast_batch" where id in (
  select b.id from "holdfast_batch" b where b.id < ? and not exists (select 1 from "holdfast_member" m where m.batch =
      b.id)
  order by b.id limit ?
) returning id;

-- browseLive, 1 of 2
-- with now, scan, limit
with walked as materialized (select r.seq, r.job_type, case when r.token is not null then 'running' when r.run_at >=
    8633688480000000 then 'waiting'
  when r.run_at > ? then case when r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end as
      state, r.failure_group, null as ended_at from "holdfast_ready" r where true order by r.seq desc limit ?),
found as (
  select w.seq, w.state, w.job_type from walked w
  where true
)
select * from (select (select known.id from "holdfast_job" known where known.seq = f.seq) as id, f.seq as row_key, null
    as bottom, null as walked from found f order by f.seq desc limit ?)
union all
select null, null, (select min(seq) from walked), (select count(*) from walked);

-- browseLive, 2 of 2
-- with now, cursor, until, endedMax, since, scan, paths, wants, states, queues, names, group, endedMin, endedMax,
--     attemptMin, attemptMax, now, ranMin, now, ranMax, worker, worker, error, lane, key, since, until, workflow, trace,
--     search, search, search, limit
with walked as materialized (select r.seq, r.job_type, case when r.token is not null then 'running' when r.run_at >=
    8633688480000000 then 'waiting'
  when r.run_at > ? then case when r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end as
      state, r.failure_group, null as ended_at from "holdfast_ready" r where r.seq < cast(? as integer)
    and r.seq < (
  with recursive search (reached, step) as (
    select 0, 1 << 40
    union all
    select reached + step * coalesce(
        (select known.created_at from "holdfast_job" known where known.seq >= reached + step order by known.seq limit 1)
            < ? + 3600000, 0),
      step / 2
    from search where step > 0
  )
  select reached + 1 from search where step = 0)
    and r.seq < (
  with recursive search (reached, step) as (
    select 0, 1 << 40
    union all
    select reached + step * coalesce(
        (select known.created_at from "holdfast_job" known where known.seq >= reached + step order by known.seq limit 1)
            < ? + 3600000, 0),
      step / 2
    from search where step > 0
  )
  select reached + 1 from search where step = 0)
    and r.seq >= (
  with recursive search (reached, step) as (
    select 0, 1 << 40
    union all
    select reached + step * coalesce(
        (select known.created_at from "holdfast_job" known where known.seq >= reached + step order by known.seq limit 1)
            < ? - 3600000, 0),
      step / 2
    from search where step > 0
  )
  select reached + 1 from search where step = 0) order by r.seq desc limit ?),
wanted as materialized (
  select v.value as want, (select '$' || group_concat('."' || s.value || '"', '') from json_each(p.value) s) as path,
    (select '$' || group_concat(case when s.value glob '[0-9]*' then '[' || s.value || ']' else '."' || s.value || '"'
        end, '') from json_each(p.value) s) as row_key
  from json_each(?) p join json_each(?) v on v.key = p.key
),
found as (
  select w.seq, w.state, w.job_type from walked w
  where w.state in (select value from json_each(?))
    and w.job_type in (select l.id from "holdfast_job_type" l where l.queue in (select value from json_each(?))
    and l.name in (select value from json_each(?)))
    and w.failure_group = ?
    and w.failure_group is not null
    and w.ended_at >= ?
    and w.ended_at <= ?
    and exists (
      select 1 from "holdfast_ready" e where e.seq = w.seq and e.attempt >= ?
    and e.attempt <= ?
    and w.state in ('running', 'done', 'dead', 'cancelled')
    and coalesce(w.ended_at, ?) - e.started_at >= ?
    and coalesce(w.ended_at, ?) - e.started_at between 0 and ?
    and e.session in (select s.id from "holdfast_session" s where s.worker_id = ? or s.name = ?)
    and instr(lower(e.errors), ?) > 0)
    and exists (
      select 1 from "holdfast_job" j where j.seq = w.seq and j.lane = ?
    and j.key = ?
    and j.created_at >= ?
    and j.created_at < ?
    and j.parent_id = ?
    and j.extras like ?
    and (instr(lower(j.input), ?) > 0 or instr(lower(j.context), ?) > 0 or exists (select 1 from "holdfast_ready" e
        where e.seq = w.seq and instr(lower(e.errors), ?) > 0))
    and json_valid(j.input) and not exists (
          select 1 from wanted x where coalesce(case json_type(j.input, x.path) when 'true' then 'true' when 'false'
              then 'false' when 'null' then 'null' else cast(json_extract(j.input, x.path) as text) end, case
              json_type(j.input, x.row_key) when 'true' then 'true' when 'false' then 'false' when 'null' then 'null'
              else cast(json_extract(j.input, x.row_key) as text) end) is not x.want))
)
select * from (select (select known.id from "holdfast_job" known where known.seq = f.seq) as id, f.seq as row_key, null
    as bottom, null as walked from found f order by f.seq desc limit ?)
union all
select null, null, (select min(seq) from walked), (select count(*) from walked);

-- browseHeld, 1 of 2
-- with now, scan, limit
with walked as materialized (
  select r.seq, r.job_type, case when r.token is not null then 'running' when r.run_at >= 8633688480000000 then
      'waiting'
  when r.run_at > ? then case when r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end as
      state, r.failure_group, null as ended_at from "holdfast_claim" c cross join json_each(c.ids) o cross join
      "holdfast_ready" r on r.seq = o.value and r.token = c.token
  where true order by r.seq desc limit ?),
found as (
  select w.seq, w.state, w.job_type from walked w
  where true
)
select * from (select (select known.id from "holdfast_job" known where known.seq = f.seq) as id, f.seq as row_key, null
    as bottom, null as walked from found f order by f.seq desc limit ?)
union all
select null, null, (select min(seq) from walked), (select count(*) from walked);

-- browseHeld, 2 of 2
-- with now, cursor, until, endedMax, since, scan, paths, wants, states, queues, names, group, endedMin, endedMax,
--     attemptMin, attemptMax, now, ranMin, now, ranMax, worker, worker, error, lane, key, since, until, workflow, trace,
--     search, search, search, limit
with walked as materialized (
  select r.seq, r.job_type, case when r.token is not null then 'running' when r.run_at >= 8633688480000000 then
      'waiting'
  when r.run_at > ? then case when r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end as
      state, r.failure_group, null as ended_at from "holdfast_claim" c cross join json_each(c.ids) o cross join
      "holdfast_ready" r on r.seq = o.value and r.token = c.token
  where r.seq < cast(? as integer)
    and r.seq < (
  with recursive search (reached, step) as (
    select 0, 1 << 40
    union all
    select reached + step * coalesce(
        (select known.created_at from "holdfast_job" known where known.seq >= reached + step order by known.seq limit 1)
            < ? + 3600000, 0),
      step / 2
    from search where step > 0
  )
  select reached + 1 from search where step = 0)
    and r.seq < (
  with recursive search (reached, step) as (
    select 0, 1 << 40
    union all
    select reached + step * coalesce(
        (select known.created_at from "holdfast_job" known where known.seq >= reached + step order by known.seq limit 1)
            < ? + 3600000, 0),
      step / 2
    from search where step > 0
  )
  select reached + 1 from search where step = 0)
    and r.seq >= (
  with recursive search (reached, step) as (
    select 0, 1 << 40
    union all
    select reached + step * coalesce(
        (select known.created_at from "holdfast_job" known where known.seq >= reached + step order by known.seq limit 1)
            < ? - 3600000, 0),
      step / 2
    from search where step > 0
  )
  select reached + 1 from search where step = 0) order by r.seq desc limit ?),
wanted as materialized (
  select v.value as want, (select '$' || group_concat('."' || s.value || '"', '') from json_each(p.value) s) as path,
    (select '$' || group_concat(case when s.value glob '[0-9]*' then '[' || s.value || ']' else '."' || s.value || '"'
        end, '') from json_each(p.value) s) as row_key
  from json_each(?) p join json_each(?) v on v.key = p.key
),
found as (
  select w.seq, w.state, w.job_type from walked w
  where w.state in (select value from json_each(?))
    and w.job_type in (select l.id from "holdfast_job_type" l where l.queue in (select value from json_each(?))
    and l.name in (select value from json_each(?)))
    and w.failure_group = ?
    and w.failure_group is not null
    and w.ended_at >= ?
    and w.ended_at <= ?
    and exists (
      select 1 from "holdfast_ready" e where e.seq = w.seq and e.attempt >= ?
    and e.attempt <= ?
    and w.state in ('running', 'done', 'dead', 'cancelled')
    and coalesce(w.ended_at, ?) - e.started_at >= ?
    and coalesce(w.ended_at, ?) - e.started_at between 0 and ?
    and e.session in (select s.id from "holdfast_session" s where s.worker_id = ? or s.name = ?)
    and instr(lower(e.errors), ?) > 0)
    and exists (
      select 1 from "holdfast_job" j where j.seq = w.seq and j.lane = ?
    and j.key = ?
    and j.created_at >= ?
    and j.created_at < ?
    and j.parent_id = ?
    and j.extras like ?
    and (instr(lower(j.input), ?) > 0 or instr(lower(j.context), ?) > 0 or exists (select 1 from "holdfast_ready" e
        where e.seq = w.seq and instr(lower(e.errors), ?) > 0))
    and json_valid(j.input) and not exists (
          select 1 from wanted x where coalesce(case json_type(j.input, x.path) when 'true' then 'true' when 'false'
              then 'false' when 'null' then 'null' else cast(json_extract(j.input, x.path) as text) end, case
              json_type(j.input, x.row_key) when 'true' then 'true' when 'false' then 'false' when 'null' then 'null'
              else cast(json_extract(j.input, x.row_key) as text) end) is not x.want))
)
select * from (select (select known.id from "holdfast_job" known where known.seq = f.seq) as id, f.seq as row_key, null
    as bottom, null as walked from found f order by f.seq desc limit ?)
union all
select null, null, (select min(seq) from walked), (select count(*) from walked);

-- browseFailed, 1 of 2
-- with now, scan, limit
with walked as materialized (select r.seq, r.job_type, case when r.token is not null then 'running' when r.run_at >=
    8633688480000000 then 'waiting'
  when r.run_at > ? then case when r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end as
      state, r.failure_group, null as ended_at from "holdfast_ready" r where r.failure_group is not null and true order
      by r.seq desc limit ?),
found as (
  select w.seq, w.state, w.job_type from walked w
  where true
)
select * from (select (select known.id from "holdfast_job" known where known.seq = f.seq) as id, f.seq as row_key, null
    as bottom, null as walked from found f order by f.seq desc limit ?)
union all
select null, null, (select min(seq) from walked), (select count(*) from walked);

-- browseFailed, 2 of 2
-- with now, cursor, until, endedMax, since, scan, paths, wants, states, queues, names, group, endedMin, endedMax,
--     attemptMin, attemptMax, now, ranMin, now, ranMax, worker, worker, error, lane, key, since, until, workflow, trace,
--     search, search, search, limit
with walked as materialized (select r.seq, r.job_type, case when r.token is not null then 'running' when r.run_at >=
    8633688480000000 then 'waiting'
  when r.run_at > ? then case when r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end as
      state, r.failure_group, null as ended_at from "holdfast_ready" r where r.failure_group is not null and r.seq <
      cast(? as integer)
    and r.seq < (
  with recursive search (reached, step) as (
    select 0, 1 << 40
    union all
    select reached + step * coalesce(
        (select known.created_at from "holdfast_job" known where known.seq >= reached + step order by known.seq limit 1)
            < ? + 3600000, 0),
      step / 2
    from search where step > 0
  )
  select reached + 1 from search where step = 0)
    and r.seq < (
  with recursive search (reached, step) as (
    select 0, 1 << 40
    union all
    select reached + step * coalesce(
        (select known.created_at from "holdfast_job" known where known.seq >= reached + step order by known.seq limit 1)
            < ? + 3600000, 0),
      step / 2
    from search where step > 0
  )
  select reached + 1 from search where step = 0)
    and r.seq >= (
  with recursive search (reached, step) as (
    select 0, 1 << 40
    union all
    select reached + step * coalesce(
        (select known.created_at from "holdfast_job" known where known.seq >= reached + step order by known.seq limit 1)
            < ? - 3600000, 0),
      step / 2
    from search where step > 0
  )
  select reached + 1 from search where step = 0) order by r.seq desc limit ?),
wanted as materialized (
  select v.value as want, (select '$' || group_concat('."' || s.value || '"', '') from json_each(p.value) s) as path,
    (select '$' || group_concat(case when s.value glob '[0-9]*' then '[' || s.value || ']' else '."' || s.value || '"'
        end, '') from json_each(p.value) s) as row_key
  from json_each(?) p join json_each(?) v on v.key = p.key
),
found as (
  select w.seq, w.state, w.job_type from walked w
  where w.state in (select value from json_each(?))
    and w.job_type in (select l.id from "holdfast_job_type" l where l.queue in (select value from json_each(?))
    and l.name in (select value from json_each(?)))
    and w.failure_group = ?
    and w.failure_group is not null
    and w.ended_at >= ?
    and w.ended_at <= ?
    and exists (
      select 1 from "holdfast_ready" e where e.seq = w.seq and e.attempt >= ?
    and e.attempt <= ?
    and w.state in ('running', 'done', 'dead', 'cancelled')
    and coalesce(w.ended_at, ?) - e.started_at >= ?
    and coalesce(w.ended_at, ?) - e.started_at between 0 and ?
    and e.session in (select s.id from "holdfast_session" s where s.worker_id = ? or s.name = ?)
    and instr(lower(e.errors), ?) > 0)
    and exists (
      select 1 from "holdfast_job" j where j.seq = w.seq and j.lane = ?
    and j.key = ?
    and j.created_at >= ?
    and j.created_at < ?
    and j.parent_id = ?
    and j.extras like ?
    and (instr(lower(j.input), ?) > 0 or instr(lower(j.context), ?) > 0 or exists (select 1 from "holdfast_ready" e
        where e.seq = w.seq and instr(lower(e.errors), ?) > 0))
    and json_valid(j.input) and not exists (
          select 1 from wanted x where coalesce(case json_type(j.input, x.path) when 'true' then 'true' when 'false'
              then 'false' when 'null' then 'null' else cast(json_extract(j.input, x.path) as text) end, case
              json_type(j.input, x.row_key) when 'true' then 'true' when 'false' then 'false' when 'null' then 'null'
              else cast(json_extract(j.input, x.row_key) as text) end) is not x.want))
)
select * from (select (select known.id from "holdfast_job" known where known.seq = f.seq) as id, f.seq as row_key, null
    as bottom, null as walked from found f order by f.seq desc limit ?)
union all
select null, null, (select min(seq) from walked), (select count(*) from walked);

-- browseEnded, 1 of 2
-- with scan, limit
with walked as materialized (select h.seq, h.job_type, h.state, h.failure_group, h.ended_at from "holdfast_history" h
    where true order by h.seq desc limit ?),
found as (
  select w.seq, w.state, w.job_type from walked w
  where true
)
select * from (select (select known.id from "holdfast_job" known where known.seq = f.seq) as id, f.seq as row_key, null
    as bottom, null as walked from found f order by f.seq desc limit ?)
union all
select null, null, (select min(seq) from walked), (select count(*) from walked);

-- browseEnded, 2 of 2
-- with cursor, until, endedMax, since, scan, paths, wants, states, queues, names, group, endedMin, endedMax,
--     attemptMin, attemptMax, now, ranMin, now, ranMax, worker, worker, error, lane, key, since, until, workflow, trace,
--     search, search, search, limit
with walked as materialized (select h.seq, h.job_type, h.state, h.failure_group, h.ended_at from "holdfast_history" h
    where h.seq < cast(? as integer)
    and h.seq < (
  with recursive search (reached, step) as (
    select 0, 1 << 40
    union all
    select reached + step * coalesce(
        (select known.created_at from "holdfast_job" known where known.seq >= reached + step order by known.seq limit 1)
            < ? + 3600000, 0),
      step / 2
    from search where step > 0
  )
  select reached + 1 from search where step = 0)
    and h.seq < (
  with recursive search (reached, step) as (
    select 0, 1 << 40
    union all
    select reached + step * coalesce(
        (select known.created_at from "holdfast_job" known where known.seq >= reached + step order by known.seq limit 1)
            < ? + 3600000, 0),
      step / 2
    from search where step > 0
  )
  select reached + 1 from search where step = 0)
    and h.seq >= (
  with recursive search (reached, step) as (
    select 0, 1 << 40
    union all
    select reached + step * coalesce(
        (select known.created_at from "holdfast_job" known where known.seq >= reached + step order by known.seq limit 1)
            < ? - 3600000, 0),
      step / 2
    from search where step > 0
  )
  select reached + 1 from search where step = 0) order by h.seq desc limit ?),
wanted as materialized (
  select v.value as want, (select '$' || group_concat('."' || s.value || '"', '') from json_each(p.value) s) as path,
    (select '$' || group_concat(case when s.value glob '[0-9]*' then '[' || s.value || ']' else '."' || s.value || '"'
        end, '') from json_each(p.value) s) as row_key
  from json_each(?) p join json_each(?) v on v.key = p.key
),
found as (
  select w.seq, w.state, w.job_type from walked w
  where w.state in (select value from json_each(?))
    and w.job_type in (select l.id from "holdfast_job_type" l where l.queue in (select value from json_each(?))
    and l.name in (select value from json_each(?)))
    and w.failure_group = ?
    and w.failure_group is not null
    and w.ended_at >= ?
    and w.ended_at <= ?
    and exists (
      select 1 from "holdfast_history" e where e.seq = w.seq and e.attempt >= ?
    and e.attempt <= ?
    and w.state in ('running', 'done', 'dead', 'cancelled')
    and coalesce(w.ended_at, ?) - e.started_at >= ?
    and coalesce(w.ended_at, ?) - e.started_at between 0 and ?
    and e.session in (select s.id from "holdfast_session" s where s.worker_id = ? or s.name = ?)
    and instr(lower(e.errors), ?) > 0)
    and exists (
      select 1 from "holdfast_job" j where j.seq = w.seq and j.lane = ?
    and j.key = ?
    and j.created_at >= ?
    and j.created_at < ?
    and j.parent_id = ?
    and j.extras like ?
    and (instr(lower(j.input), ?) > 0 or instr(lower(j.context), ?) > 0 or exists (select 1 from "holdfast_history" e
        where e.seq = w.seq and instr(lower(e.errors), ?) > 0))
    and json_valid(j.input) and not exists (
          select 1 from wanted x where coalesce(case json_type(j.input, x.path) when 'true' then 'true' when 'false'
              then 'false' when 'null' then 'null' else cast(json_extract(j.input, x.path) as text) end, case
              json_type(j.input, x.row_key) when 'true' then 'true' when 'false' then 'false' when 'null' then 'null'
              else cast(json_extract(j.input, x.row_key) as text) end) is not x.want))
)
select * from (select (select known.id from "holdfast_job" known where known.seq = f.seq) as id, f.seq as row_key, null
    as bottom, null as walked from found f order by f.seq desc limit ?)
union all
select null, null, (select min(seq) from walked), (select count(*) from walked);

-- browseNotDone, 1 of 2
-- with scan, limit
with walked as materialized (select h.seq, h.job_type, h.state, h.failure_group, h.ended_at from "holdfast_history" h
    where h.state <> 'done' and true order by h.seq desc limit ?),
found as (
  select w.seq, w.state, w.job_type from walked w
  where true
)
select * from (select (select known.id from "holdfast_job" known where known.seq = f.seq) as id, f.seq as row_key, null
    as bottom, null as walked from found f order by f.seq desc limit ?)
union all
select null, null, (select min(seq) from walked), (select count(*) from walked);

-- browseNotDone, 2 of 2
-- with cursor, until, endedMax, since, scan, paths, wants, states, queues, names, group, endedMin, endedMax,
--     attemptMin, attemptMax, now, ranMin, now, ranMax, worker, worker, error, lane, key, since, until, workflow, trace,
--     search, search, search, limit
with walked as materialized (select h.seq, h.job_type, h.state, h.failure_group, h.ended_at from "holdfast_history" h
    where h.state <> 'done' and h.seq < cast(? as integer)
    and h.seq < (
  with recursive search (reached, step) as (
    select 0, 1 << 40
    union all
    select reached + step * coalesce(
        (select known.created_at from "holdfast_job" known where known.seq >= reached + step order by known.seq limit 1)
            < ? + 3600000, 0),
      step / 2
    from search where step > 0
  )
  select reached + 1 from search where step = 0)
    and h.seq < (
  with recursive search (reached, step) as (
    select 0, 1 << 40
    union all
    select reached + step * coalesce(
        (select known.created_at from "holdfast_job" known where known.seq >= reached + step order by known.seq limit 1)
            < ? + 3600000, 0),
      step / 2
    from search where step > 0
  )
  select reached + 1 from search where step = 0)
    and h.seq >= (
  with recursive search (reached, step) as (
    select 0, 1 << 40
    union all
    select reached + step * coalesce(
        (select known.created_at from "holdfast_job" known where known.seq >= reached + step order by known.seq limit 1)
            < ? - 3600000, 0),
      step / 2
    from search where step > 0
  )
  select reached + 1 from search where step = 0) order by h.seq desc limit ?),
wanted as materialized (
  select v.value as want, (select '$' || group_concat('."' || s.value || '"', '') from json_each(p.value) s) as path,
    (select '$' || group_concat(case when s.value glob '[0-9]*' then '[' || s.value || ']' else '."' || s.value || '"'
        end, '') from json_each(p.value) s) as row_key
  from json_each(?) p join json_each(?) v on v.key = p.key
),
found as (
  select w.seq, w.state, w.job_type from walked w
  where w.state in (select value from json_each(?))
    and w.job_type in (select l.id from "holdfast_job_type" l where l.queue in (select value from json_each(?))
    and l.name in (select value from json_each(?)))
    and w.failure_group = ?
    and w.failure_group is not null
    and w.ended_at >= ?
    and w.ended_at <= ?
    and exists (
      select 1 from "holdfast_history" e where e.seq = w.seq and e.attempt >= ?
    and e.attempt <= ?
    and w.state in ('running', 'done', 'dead', 'cancelled')
    and coalesce(w.ended_at, ?) - e.started_at >= ?
    and coalesce(w.ended_at, ?) - e.started_at between 0 and ?
    and e.session in (select s.id from "holdfast_session" s where s.worker_id = ? or s.name = ?)
    and instr(lower(e.errors), ?) > 0)
    and exists (
      select 1 from "holdfast_job" j where j.seq = w.seq and j.lane = ?
    and j.key = ?
    and j.created_at >= ?
    and j.created_at < ?
    and j.parent_id = ?
    and j.extras like ?
    and (instr(lower(j.input), ?) > 0 or instr(lower(j.context), ?) > 0 or exists (select 1 from "holdfast_history" e
        where e.seq = w.seq and instr(lower(e.errors), ?) > 0))
    and json_valid(j.input) and not exists (
          select 1 from wanted x where coalesce(case json_type(j.input, x.path) when 'true' then 'true' when 'false'
              then 'false' when 'null' then 'null' else cast(json_extract(j.input, x.path) as text) end, case
              json_type(j.input, x.row_key) when 'true' then 'true' when 'false' then 'false' when 'null' then 'null'
              else cast(json_extract(j.input, x.row_key) as text) end) is not x.want))
)
select * from (select (select known.id from "holdfast_job" known where known.seq = f.seq) as id, f.seq as row_key, null
    as bottom, null as walked from found f order by f.seq desc limit ?)
union all
select null, null, (select min(seq) from walked), (select count(*) from walked);

-- browseChildren, 1 of 2
-- with now, workflow, scan, limit
with walked as materialized (
  select c.seq, coalesce(r.job_type, h.job_type) as job_type, case when r.seq is null then h.state else case when
      r.token is not null then 'running' when r.run_at >= 8633688480000000 then 'waiting'
  when r.run_at > ? then case when r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end
      end as state,
    coalesce(r.failure_group, h.failure_group) as failure_group, h.ended_at
  from (select p.seq from "holdfast_job" p where p.parent_id = ? and true order by p.seq desc limit ?) c
  left join "holdfast_ready" r on r.seq = c.seq left join "holdfast_history" h on h.seq = c.seq),
found as (
  select w.seq, w.state, w.job_type from walked w
  where true
)
select * from (select (select known.id from "holdfast_job" known where known.seq = f.seq) as id, f.seq as row_key, null
    as bottom, null as walked from found f order by f.seq desc limit ?)
union all
select null, null, (select min(seq) from walked), (select count(*) from walked);

-- browseChildren, 2 of 2
-- with now, workflow, cursor, until, endedMax, since, scan, paths, wants, states, queues, names, group, endedMin,
--     endedMax, attemptMin, attemptMax, now, ranMin, now, ranMax, worker, worker, error, lane, key, since, until,
--     workflow, trace, search, search, search, limit
with walked as materialized (
  select c.seq, coalesce(r.job_type, h.job_type) as job_type, case when r.seq is null then h.state else case when
      r.token is not null then 'running' when r.run_at >= 8633688480000000 then 'waiting'
  when r.run_at > ? then case when r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end
      end as state,
    coalesce(r.failure_group, h.failure_group) as failure_group, h.ended_at
  from (select p.seq from "holdfast_job" p where p.parent_id = ? and p.seq < cast(? as integer)
    and p.seq < (
  with recursive search (reached, step) as (
    select 0, 1 << 40
    union all
    select reached + step * coalesce(
        (select known.created_at from "holdfast_job" known where known.seq >= reached + step order by known.seq limit 1)
            < ? + 3600000, 0),
      step / 2
    from search where step > 0
  )
  select reached + 1 from search where step = 0)
    and p.seq < (
  with recursive search (reached, step) as (
    select 0, 1 << 40
    union all
    select reached + step * coalesce(
        (select known.created_at from "holdfast_job" known where known.seq >= reached + step order by known.seq limit 1)
            < ? + 3600000, 0),
      step / 2
    from search where step > 0
  )
  select reached + 1 from search where step = 0)
    and p.seq >= (
  with recursive search (reached, step) as (
    select 0, 1 << 40
    union all
    select reached + step * coalesce(
        (select known.created_at from "holdfast_job" known where known.seq >= reached + step order by known.seq limit 1)
            < ? - 3600000, 0),
      step / 2
    from search where step > 0
  )
  select reached + 1 from search where step = 0) order by p.seq desc limit ?) c
  left join "holdfast_ready" r on r.seq = c.seq left join "holdfast_history" h on h.seq = c.seq),
wanted as materialized (
  select v.value as want, (select '$' || group_concat('."' || s.value || '"', '') from json_each(p.value) s) as path,
    (select '$' || group_concat(case when s.value glob '[0-9]*' then '[' || s.value || ']' else '."' || s.value || '"'
        end, '') from json_each(p.value) s) as row_key
  from json_each(?) p join json_each(?) v on v.key = p.key
),
found as (
  select w.seq, w.state, w.job_type from walked w
  where w.state in (select value from json_each(?))
    and w.job_type in (select l.id from "holdfast_job_type" l where l.queue in (select value from json_each(?))
    and l.name in (select value from json_each(?)))
    and w.failure_group = ?
    and w.failure_group is not null
    and w.ended_at >= ?
    and w.ended_at <= ?
    and exists (
      select 1 from (select seq, attempt, started_at, session, errors from "holdfast_ready" union all select seq,
          attempt, started_at, session, errors from "holdfast_history") e where e.seq = w.seq and e.attempt >= ?
    and e.attempt <= ?
    and w.state in ('running', 'done', 'dead', 'cancelled')
    and coalesce(w.ended_at, ?) - e.started_at >= ?
    and coalesce(w.ended_at, ?) - e.started_at between 0 and ?
    and e.session in (select s.id from "holdfast_session" s where s.worker_id = ? or s.name = ?)
    and instr(lower(e.errors), ?) > 0)
    and exists (
      select 1 from "holdfast_job" j where j.seq = w.seq and j.lane = ?
    and j.key = ?
    and j.created_at >= ?
    and j.created_at < ?
    and j.parent_id = ?
    and j.extras like ?
    and (instr(lower(j.input), ?) > 0 or instr(lower(j.context), ?) > 0 or exists (select 1 from (select seq, attempt,
        started_at, session, errors from "holdfast_ready" union all select seq, attempt, started_at, session, errors
        from "holdfast_history") e where e.seq = w.seq and instr(lower(e.errors), ?) > 0))
    and json_valid(j.input) and not exists (
          select 1 from wanted x where coalesce(case json_type(j.input, x.path) when 'true' then 'true' when 'false'
              then 'false' when 'null' then 'null' else cast(json_extract(j.input, x.path) as text) end, case
              json_type(j.input, x.row_key) when 'true' then 'true' when 'false' then 'false' when 'null' then 'null'
              else cast(json_extract(j.input, x.row_key) as text) end) is not x.want))
)
select * from (select (select known.id from "holdfast_job" known where known.seq = f.seq) as id, f.seq as row_key, null
    as bottom, null as walked from found f order by f.seq desc limit ?)
union all
select null, null, (select min(seq) from walked), (select count(*) from walked);

-- browseNamed, 1 of 2
-- with now, ids, scan, limit
with walked as materialized (
  select c.seq, coalesce(r.job_type, h.job_type) as job_type, case when r.seq is null then h.state else case when
      r.token is not null then 'running' when r.run_at >= 8633688480000000 then 'waiting'
  when r.run_at > ? then case when r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end
      end as state,
    coalesce(r.failure_group, h.failure_group) as failure_group, h.ended_at
  from (select p.seq from
    "holdfast_job" p where p.seq in (select known.seq from "holdfast_job" known where known.id in (select value from
        json_each(?))) and true and true order by p.seq desc limit ?) c
  left join "holdfast_ready" r on r.seq = c.seq left join "holdfast_history" h on h.seq = c.seq),
found as (
  select w.seq, w.state, w.job_type from walked w
  where true
)
select * from (select (select known.id from "holdfast_job" known where known.seq = f.seq) as id, f.seq as row_key, null
    as bottom, null as walked from found f order by f.seq desc limit ?)
union all
select null, null, (select min(seq) from walked), (select count(*) from walked);

-- browseNamed, 2 of 2
-- with now, ids, workflow, batch, cursor, until, endedMax, since, scan, paths, wants, states, queues, names, group,
--     endedMin, endedMax, attemptMin, attemptMax, now, ranMin, now, ranMax, worker, worker, error, lane, key, since,
--     until, workflow, trace, search, search, search, limit
with walked as materialized (
  select c.seq, coalesce(r.job_type, h.job_type) as job_type, case when r.seq is null then h.state else case when
      r.token is not null then 'running' when r.run_at >= 8633688480000000 then 'waiting'
  when r.run_at > ? then case when r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end
      end as state,
    coalesce(r.failure_group, h.failure_group) as failure_group, h.ended_at
  from (select p.seq from
    "holdfast_job" p where p.seq in (select known.seq from "holdfast_job" known where known.id in (select value from
        json_each(?))) and p.parent_id = ?
    and exists (select 1 from "holdfast_member" m where m.batch = ? and m.seq = p.seq) and p.seq < cast(? as integer)
    and p.seq < (
  with recursive search (reached, step) as (
    select 0, 1 << 40
    union all
    select reached + step * coalesce(
        (select known.created_at from "holdfast_job" known where known.seq >= reached + step order by known.seq limit 1)
            < ? + 3600000, 0),
      step / 2
    from search where step > 0
  )
  select reached + 1 from search where step = 0)
    and p.seq < (
  with recursive search (reached, step) as (
    select 0, 1 << 40
    union all
    select reached + step * coalesce(
        (select known.created_at from "holdfast_job" known where known.seq >= reached + step order by known.seq limit 1)
            < ? + 3600000, 0),
      step / 2
    from search where step > 0
  )
  select reached + 1 from search where step = 0)
    and p.seq >= (
  with recursive search (reached, step) as (
    select 0, 1 << 40
    union all
    select reached + step * coalesce(
        (select known.created_at from "holdfast_job" known where known.seq >= reached + step order by known.seq limit 1)
            < ? - 3600000, 0),
      step / 2
    from search where step > 0
  )
  select reached + 1 from search where step = 0) order by p.seq desc limit ?) c
  left join "holdfast_ready" r on r.seq = c.seq left join "holdfast_history" h on h.seq = c.seq),
wanted as materialized (
  select v.value as want, (select '$' || group_concat('."' || s.value || '"', '') from json_each(p.value) s) as path,
    (select '$' || group_concat(case when s.value glob '[0-9]*' then '[' || s.value || ']' else '."' || s.value || '"'
        end, '') from json_each(p.value) s) as row_key
  from json_each(?) p join json_each(?) v on v.key = p.key
),
found as (
  select w.seq, w.state, w.job_type from walked w
  where w.state in (select value from json_each(?))
    and w.job_type in (select l.id from "holdfast_job_type" l where l.queue in (select value from json_each(?))
    and l.name in (select value from json_each(?)))
    and w.failure_group = ?
    and w.failure_group is not null
    and w.ended_at >= ?
    and w.ended_at <= ?
    and exists (
      select 1 from (select seq, attempt, started_at, session, errors from "holdfast_ready" union all select seq,
          attempt, started_at, session, errors from "holdfast_history") e where e.seq = w.seq and e.attempt >= ?
    and e.attempt <= ?
    and w.state in ('running', 'done', 'dead', 'cancelled')
    and coalesce(w.ended_at, ?) - e.started_at >= ?
    and coalesce(w.ended_at, ?) - e.started_at between 0 and ?
    and e.session in (select s.id from "holdfast_session" s where s.worker_id = ? or s.name = ?)
    and instr(lower(e.errors), ?) > 0)
    and exists (
      select 1 from "holdfast_job" j where j.seq = w.seq and j.lane = ?
    and j.key = ?
    and j.created_at >= ?
    and j.created_at < ?
    and j.parent_id = ?
    and j.extras like ?
    and (instr(lower(j.input), ?) > 0 or instr(lower(j.context), ?) > 0 or exists (select 1 from (select seq, attempt,
        started_at, session, errors from "holdfast_ready" union all select seq, attempt, started_at, session, errors
        from "holdfast_history") e where e.seq = w.seq and instr(lower(e.errors), ?) > 0))
    and json_valid(j.input) and not exists (
          select 1 from wanted x where coalesce(case json_type(j.input, x.path) when 'true' then 'true' when 'false'
              then 'false' when 'null' then 'null' else cast(json_extract(j.input, x.path) as text) end, case
              json_type(j.input, x.row_key) when 'true' then 'true' when 'false' then 'false' when 'null' then 'null'
              else cast(json_extract(j.input, x.row_key) as text) end) is not x.want))
)
select * from (select (select known.id from "holdfast_job" known where known.seq = f.seq) as id, f.seq as row_key, null
    as bottom, null as walked from found f order by f.seq desc limit ?)
union all
select null, null, (select min(seq) from walked), (select count(*) from walked);

-- browseMembers, 1 of 2
-- with now, batch, scan, limit
with walked as materialized (
  select c.seq, coalesce(r.job_type, h.job_type) as job_type, case when r.seq is null then h.state else case when
      r.token is not null then 'running' when r.run_at >= 8633688480000000 then 'waiting'
  when r.run_at > ? then case when r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end
      end as state,
    coalesce(r.failure_group, h.failure_group) as failure_group, h.ended_at
  from (select p.seq from "holdfast_member" p where p.batch = ? and true order by p.seq desc limit ?) c
  left join "holdfast_ready" r on r.seq = c.seq left join "holdfast_history" h on h.seq = c.seq),
found as (
  select w.seq, w.state, w.job_type from walked w
  where true
)
select * from (select (select known.id from "holdfast_job" known where known.seq = f.seq) as id, f.seq as row_key, null
    as bottom, null as walked from found f order by f.seq desc limit ?)
union all
select null, null, (select min(seq) from walked), (select count(*) from walked);

-- browseMembers, 2 of 2
-- with now, batch, cursor, until, endedMax, since, scan, paths, wants, states, queues, names, group, endedMin,
--     endedMax, attemptMin, attemptMax, now, ranMin, now, ranMax, worker, worker, error, lane, key, since, until,
--     workflow, trace, search, search, search, limit
with walked as materialized (
  select c.seq, coalesce(r.job_type, h.job_type) as job_type, case when r.seq is null then h.state else case when
      r.token is not null then 'running' when r.run_at >= 8633688480000000 then 'waiting'
  when r.run_at > ? then case when r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end
      end as state,
    coalesce(r.failure_group, h.failure_group) as failure_group, h.ended_at
  from (select p.seq from "holdfast_member" p where p.batch = ? and p.seq < cast(? as integer)
    and p.seq < (
  with recursive search (reached, step) as (
    select 0, 1 << 40
    union all
    select reached + step * coalesce(
        (select known.created_at from "holdfast_job" known where known.seq >= reached + step order by known.seq limit 1)
            < ? + 3600000, 0),
      step / 2
    from search where step > 0
  )
  select reached + 1 from search where step = 0)
    and p.seq < (
  with recursive search (reached, step) as (
    select 0, 1 << 40
    union all
    select reached + step * coalesce(
        (select known.created_at from "holdfast_job" known where known.seq >= reached + step order by known.seq limit 1)
            < ? + 3600000, 0),
      step / 2
    from search where step > 0
  )
  select reached + 1 from search where step = 0)
    and p.seq >= (
  with recursive search (reached, step) as (
    select 0, 1 << 40
    union all
    select reached + step * coalesce(
        (select known.created_at from "holdfast_job" known where known.seq >= reached + step order by known.seq limit 1)
            < ? - 3600000, 0),
      step / 2
    from search where step > 0
  )
  select reached + 1 from search where step = 0) order by p.seq desc limit ?) c
  left join "holdfast_ready" r on r.seq = c.seq left join "holdfast_history" h on h.seq = c.seq),
wanted as materialized (
  select v.value as want, (select '$' || group_concat('."' || s.value || '"', '') from json_each(p.value) s) as path,
    (select '$' || group_concat(case when s.value glob '[0-9]*' then '[' || s.value || ']' else '."' || s.value || '"'
        end, '') from json_each(p.value) s) as row_key
  from json_each(?) p join json_each(?) v on v.key = p.key
),
found as (
  select w.seq, w.state, w.job_type from walked w
  where w.state in (select value from json_each(?))
    and w.job_type in (select l.id from "holdfast_job_type" l where l.queue in (select value from json_each(?))
    and l.name in (select value from json_each(?)))
    and w.failure_group = ?
    and w.failure_group is not null
    and w.ended_at >= ?
    and w.ended_at <= ?
    and exists (
      select 1 from (select seq, attempt, started_at, session, errors from "holdfast_ready" union all select seq,
          attempt, started_at, session, errors from "holdfast_history") e where e.seq = w.seq and e.attempt >= ?
    and e.attempt <= ?
    and w.state in ('running', 'done', 'dead', 'cancelled')
    and coalesce(w.ended_at, ?) - e.started_at >= ?
    and coalesce(w.ended_at, ?) - e.started_at between 0 and ?
    and e.session in (select s.id from "holdfast_session" s where s.worker_id = ? or s.name = ?)
    and instr(lower(e.errors), ?) > 0)
    and exists (
      select 1 from "holdfast_job" j where j.seq = w.seq and j.lane = ?
    and j.key = ?
    and j.created_at >= ?
    and j.created_at < ?
    and j.parent_id = ?
    and j.extras like ?
    and (instr(lower(j.input), ?) > 0 or instr(lower(j.context), ?) > 0 or exists (select 1 from (select seq, attempt,
        started_at, session, errors from "holdfast_ready" union all select seq, attempt, started_at, session, errors
        from "holdfast_history") e where e.seq = w.seq and instr(lower(e.errors), ?) > 0))
    and json_valid(j.input) and not exists (
          select 1 from wanted x where coalesce(case json_type(j.input, x.path) when 'true' then 'true' when 'false'
              then 'false' when 'null' then 'null' else cast(json_extract(j.input, x.path) as text) end, case
              json_type(j.input, x.row_key) when 'true' then 'true' when 'false' then 'false' when 'null' then 'null'
              else cast(json_extract(j.input, x.row_key) as text) end) is not x.want))
)
select * from (select (select known.id from "holdfast_job" known where known.seq = f.seq) as id, f.seq as row_key, null
    as bottom, null as walked from found f order by f.seq desc limit ?)
union all
select null, null, (select min(seq) from walked), (select count(*) from walked);

-- tallyLive, 1 of 2
-- with now, scan
with walked as materialized (select r.seq, r.job_type, case when r.token is not null then 'running' when r.run_at >=
    8633688480000000 then 'waiting'
  when r.run_at > ? then case when r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end as
      state, r.failure_group, null as ended_at from "holdfast_ready" r where true order by r.seq desc limit ?),
found as (
  select w.seq, w.state, w.job_type from walked w
  where true
)
select f.state, f.job_type, count(*) as n, null as bottom from found f group by f.state, f.job_type
union all select null, null, (select count(*) from walked), (select min(seq) from walked);

-- tallyLive, 2 of 2
-- with now, cursor, until, endedMax, since, scan, paths, wants, states, queues, names, group, endedMin, endedMax,
--     attemptMin, attemptMax, now, ranMin, now, ranMax, worker, worker, error, lane, key, since, until, workflow, trace,
--     search, search, search
with walked as materialized (select r.seq, r.job_type, case when r.token is not null then 'running' when r.run_at >=
    8633688480000000 then 'waiting'
  when r.run_at > ? then case when r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end as
      state, r.failure_group, null as ended_at from "holdfast_ready" r where r.seq < cast(? as integer)
    and r.seq < (
  with recursive search (reached, step) as (
    select 0, 1 << 40
    union all
    select reached + step * coalesce(
        (select known.created_at from "holdfast_job" known where known.seq >= reached + step order by known.seq limit 1)
            < ? + 3600000, 0),
      step / 2
    from search where step > 0
  )
  select reached + 1 from search where step = 0)
    and r.seq < (
  with recursive search (reached, step) as (
    select 0, 1 << 40
    union all
    select reached + step * coalesce(
        (select known.created_at from "holdfast_job" known where known.seq >= reached + step order by known.seq limit 1)
            < ? + 3600000, 0),
      step / 2
    from search where step > 0
  )
  select reached + 1 from search where step = 0)
    and r.seq >= (
  with recursive search (reached, step) as (
    select 0, 1 << 40
    union all
    select reached + step * coalesce(
        (select known.created_at from "holdfast_job" known where known.seq >= reached + step order by known.seq limit 1)
            < ? - 3600000, 0),
      step / 2
    from search where step > 0
  )
  select reached + 1 from search where step = 0) order by r.seq desc limit ?),
wanted as materialized (
  select v.value as want, (select '$' || group_concat('."' || s.value || '"', '') from json_each(p.value) s) as path,
    (select '$' || group_concat(case when s.value glob '[0-9]*' then '[' || s.value || ']' else '."' || s.value || '"'
        end, '') from json_each(p.value) s) as row_key
  from json_each(?) p join json_each(?) v on v.key = p.key
),
found as (
  select w.seq, w.state, w.job_type from walked w
  where w.state in (select value from json_each(?))
    and w.job_type in (select l.id from "holdfast_job_type" l where l.queue in (select value from json_each(?))
    and l.name in (select value from json_each(?)))
    and w.failure_group = ?
    and w.failure_group is not null
    and w.ended_at >= ?
    and w.ended_at <= ?
    and exists (
      select 1 from "holdfast_ready" e where e.seq = w.seq and e.attempt >= ?
    and e.attempt <= ?
    and w.state in ('running', 'done', 'dead', 'cancelled')
    and coalesce(w.ended_at, ?) - e.started_at >= ?
    and coalesce(w.ended_at, ?) - e.started_at between 0 and ?
    and e.session in (select s.id from "holdfast_session" s where s.worker_id = ? or s.name = ?)
    and instr(lower(e.errors), ?) > 0)
    and exists (
      select 1 from "holdfast_job" j where j.seq = w.seq and j.lane = ?
    and j.key = ?
    and j.created_at >= ?
    and j.created_at < ?
    and j.parent_id = ?
    and j.extras like ?
    and (instr(lower(j.input), ?) > 0 or instr(lower(j.context), ?) > 0 or exists (select 1 from "holdfast_ready" e
        where e.seq = w.seq and instr(lower(e.errors), ?) > 0))
    and json_valid(j.input) and not exists (
          select 1 from wanted x where coalesce(case json_type(j.input, x.path) when 'true' then 'true' when 'false'
              then 'false' when 'null' then 'null' else cast(json_extract(j.input, x.path) as text) end, case
              json_type(j.input, x.row_key) when 'true' then 'true' when 'false' then 'false' when 'null' then 'null'
              else cast(json_extract(j.input, x.row_key) as text) end) is not x.want))
)
select f.state, f.job_type, count(*) as n, null as bottom from found f group by f.state, f.job_type
union all select null, null, (select count(*) from walked), (select min(seq) from walked);

-- tallyHeld, 1 of 2
-- with now, scan
with walked as materialized (
  select r.seq, r.job_type, case when r.token is not null then 'running' when r.run_at >= 8633688480000000 then
      'waiting'
  when r.run_at > ? then case when r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end as
      state, r.failure_group, null as ended_at from "holdfast_claim" c cross join json_each(c.ids) o cross join
      "holdfast_ready" r on r.seq = o.value and r.token = c.token
  where true order by r.seq desc limit ?),
found as (
  select w.seq, w.state, w.job_type from walked w
  where true
)
select f.state, f.job_type, count(*) as n, null as bottom from found f group by f.state, f.job_type
union all select null, null, (select count(*) from walked), (select min(seq) from walked);

-- tallyHeld, 2 of 2
-- with now, cursor, until, endedMax, since, scan, paths, wants, states, queues, names, group, endedMin, endedMax,
--     attemptMin, attemptMax, now, ranMin, now, ranMax, worker, worker, error, lane, key, since, until, workflow, trace,
--     search, search, search
with walked as materialized (
  select r.seq, r.job_type, case when r.token is not null then 'running' when r.run_at >= 8633688480000000 then
      'waiting'
  when r.run_at > ? then case when r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end as
      state, r.failure_group, null as ended_at from "holdfast_claim" c cross join json_each(c.ids) o cross join
      "holdfast_ready" r on r.seq = o.value and r.token = c.token
  where r.seq < cast(? as integer)
    and r.seq < (
  with recursive search (reached, step) as (
    select 0, 1 << 40
    union all
    select reached + step * coalesce(
        (select known.created_at from "holdfast_job" known where known.seq >= reached + step order by known.seq limit 1)
            < ? + 3600000, 0),
      step / 2
    from search where step > 0
  )
  select reached + 1 from search where step = 0)
    and r.seq < (
  with recursive search (reached, step) as (
    select 0, 1 << 40
    union all
    select reached + step * coalesce(
        (select known.created_at from "holdfast_job" known where known.seq >= reached + step order by known.seq limit 1)
            < ? + 3600000, 0),
      step / 2
    from search where step > 0
  )
  select reached + 1 from search where step = 0)
    and r.seq >= (
  with recursive search (reached, step) as (
    select 0, 1 << 40
    union all
    select reached + step * coalesce(
        (select known.created_at from "holdfast_job" known where known.seq >= reached + step order by known.seq limit 1)
            < ? - 3600000, 0),
      step / 2
    from search where step > 0
  )
  select reached + 1 from search where step = 0) order by r.seq desc limit ?),
wanted as materialized (
  select v.value as want, (select '$' || group_concat('."' || s.value || '"', '') from json_each(p.value) s) as path,
    (select '$' || group_concat(case when s.value glob '[0-9]*' then '[' || s.value || ']' else '."' || s.value || '"'
        end, '') from json_each(p.value) s) as row_key
  from json_each(?) p join json_each(?) v on v.key = p.key
),
found as (
  select w.seq, w.state, w.job_type from walked w
  where w.state in (select value from json_each(?))
    and w.job_type in (select l.id from "holdfast_job_type" l where l.queue in (select value from json_each(?))
    and l.name in (select value from json_each(?)))
    and w.failure_group = ?
    and w.failure_group is not null
    and w.ended_at >= ?
    and w.ended_at <= ?
    and exists (
      select 1 from "holdfast_ready" e where e.seq = w.seq and e.attempt >= ?
    and e.attempt <= ?
    and w.state in ('running', 'done', 'dead', 'cancelled')
    and coalesce(w.ended_at, ?) - e.started_at >= ?
    and coalesce(w.ended_at, ?) - e.started_at between 0 and ?
    and e.session in (select s.id from "holdfast_session" s where s.worker_id = ? or s.name = ?)
    and instr(lower(e.errors), ?) > 0)
    and exists (
      select 1 from "holdfast_job" j where j.seq = w.seq and j.lane = ?
    and j.key = ?
    and j.created_at >= ?
    and j.created_at < ?
    and j.parent_id = ?
    and j.extras like ?
    and (instr(lower(j.input), ?) > 0 or instr(lower(j.context), ?) > 0 or exists (select 1 from "holdfast_ready" e
        where e.seq = w.seq and instr(lower(e.errors), ?) > 0))
    and json_valid(j.input) and not exists (
          select 1 from wanted x where coalesce(case json_type(j.input, x.path) when 'true' then 'true' when 'false'
              then 'false' when 'null' then 'null' else cast(json_extract(j.input, x.path) as text) end, case
              json_type(j.input, x.row_key) when 'true' then 'true' when 'false' then 'false' when 'null' then 'null'
              else cast(json_extract(j.input, x.row_key) as text) end) is not x.want))
)
select f.state, f.job_type, count(*) as n, null as bottom from found f group by f.state, f.job_type
union all select null, null, (select count(*) from walked), (select min(seq) from walked);

-- tallyFailed, 1 of 2
-- with now, scan
with walked as materialized (select r.seq, r.job_type, case when r.token is not null then 'running' when r.run_at >=
    8633688480000000 then 'waiting'
  when r.run_at > ? then case when r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end as
      state, r.failure_group, null as ended_at from "holdfast_ready" r where r.failure_group is not null and true order
      by r.seq desc limit ?),
found as (
  select w.seq, w.state, w.job_type from walked w
  where true
)
select f.state, f.job_type, count(*) as n, null as bottom from found f group by f.state, f.job_type
union all select null, null, (select count(*) from walked), (select min(seq) from walked);

-- tallyFailed, 2 of 2
-- with now, cursor, until, endedMax, since, scan, paths, wants, states, queues, names, group, endedMin, endedMax,
--     attemptMin, attemptMax, now, ranMin, now, ranMax, worker, worker, error, lane, key, since, until, workflow, trace,
--     search, search, search
with walked as materialized (select r.seq, r.job_type, case when r.token is not null then 'running' when r.run_at >=
    8633688480000000 then 'waiting'
  when r.run_at > ? then case when r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end as
      state, r.failure_group, null as ended_at from "holdfast_ready" r where r.failure_group is not null and r.seq <
      cast(? as integer)
    and r.seq < (
  with recursive search (reached, step) as (
    select 0, 1 << 40
    union all
    select reached + step * coalesce(
        (select known.created_at from "holdfast_job" known where known.seq >= reached + step order by known.seq limit 1)
            < ? + 3600000, 0),
      step / 2
    from search where step > 0
  )
  select reached + 1 from search where step = 0)
    and r.seq < (
  with recursive search (reached, step) as (
    select 0, 1 << 40
    union all
    select reached + step * coalesce(
        (select known.created_at from "holdfast_job" known where known.seq >= reached + step order by known.seq limit 1)
            < ? + 3600000, 0),
      step / 2
    from search where step > 0
  )
  select reached + 1 from search where step = 0)
    and r.seq >= (
  with recursive search (reached, step) as (
    select 0, 1 << 40
    union all
    select reached + step * coalesce(
        (select known.created_at from "holdfast_job" known where known.seq >= reached + step order by known.seq limit 1)
            < ? - 3600000, 0),
      step / 2
    from search where step > 0
  )
  select reached + 1 from search where step = 0) order by r.seq desc limit ?),
wanted as materialized (
  select v.value as want, (select '$' || group_concat('."' || s.value || '"', '') from json_each(p.value) s) as path,
    (select '$' || group_concat(case when s.value glob '[0-9]*' then '[' || s.value || ']' else '."' || s.value || '"'
        end, '') from json_each(p.value) s) as row_key
  from json_each(?) p join json_each(?) v on v.key = p.key
),
found as (
  select w.seq, w.state, w.job_type from walked w
  where w.state in (select value from json_each(?))
    and w.job_type in (select l.id from "holdfast_job_type" l where l.queue in (select value from json_each(?))
    and l.name in (select value from json_each(?)))
    and w.failure_group = ?
    and w.failure_group is not null
    and w.ended_at >= ?
    and w.ended_at <= ?
    and exists (
      select 1 from "holdfast_ready" e where e.seq = w.seq and e.attempt >= ?
    and e.attempt <= ?
    and w.state in ('running', 'done', 'dead', 'cancelled')
    and coalesce(w.ended_at, ?) - e.started_at >= ?
    and coalesce(w.ended_at, ?) - e.started_at between 0 and ?
    and e.session in (select s.id from "holdfast_session" s where s.worker_id = ? or s.name = ?)
    and instr(lower(e.errors), ?) > 0)
    and exists (
      select 1 from "holdfast_job" j where j.seq = w.seq and j.lane = ?
    and j.key = ?
    and j.created_at >= ?
    and j.created_at < ?
    and j.parent_id = ?
    and j.extras like ?
    and (instr(lower(j.input), ?) > 0 or instr(lower(j.context), ?) > 0 or exists (select 1 from "holdfast_ready" e
        where e.seq = w.seq and instr(lower(e.errors), ?) > 0))
    and json_valid(j.input) and not exists (
          select 1 from wanted x where coalesce(case json_type(j.input, x.path) when 'true' then 'true' when 'false'
              then 'false' when 'null' then 'null' else cast(json_extract(j.input, x.path) as text) end, case
              json_type(j.input, x.row_key) when 'true' then 'true' when 'false' then 'false' when 'null' then 'null'
              else cast(json_extract(j.input, x.row_key) as text) end) is not x.want))
)
select f.state, f.job_type, count(*) as n, null as bottom from found f group by f.state, f.job_type
union all select null, null, (select count(*) from walked), (select min(seq) from walked);

-- tallyEnded, 1 of 2
-- with scan
with walked as materialized (select h.seq, h.job_type, h.state, h.failure_group, h.ended_at from "holdfast_history" h
    where true order by h.seq desc limit ?),
found as (
  select w.seq, w.state, w.job_type from walked w
  where true
)
select f.state, f.job_type, count(*) as n, null as bottom from found f group by f.state, f.job_type
union all select null, null, (select count(*) from walked), (select min(seq) from walked);

-- tallyEnded, 2 of 2
-- with cursor, until, endedMax, since, scan, paths, wants, states, queues, names, group, endedMin, endedMax,
--     attemptMin, attemptMax, now, ranMin, now, ranMax, worker, worker, error, lane, key, since, until, workflow, trace,
--     search, search, search
with walked as materialized (select h.seq, h.job_type, h.state, h.failure_group, h.ended_at from "holdfast_history" h
    where h.seq < cast(? as integer)
    and h.seq < (
  with recursive search (reached, step) as (
    select 0, 1 << 40
    union all
    select reached + step * coalesce(
        (select known.created_at from "holdfast_job" known where known.seq >= reached + step order by known.seq limit 1)
            < ? + 3600000, 0),
      step / 2
    from search where step > 0
  )
  select reached + 1 from search where step = 0)
    and h.seq < (
  with recursive search (reached, step) as (
    select 0, 1 << 40
    union all
    select reached + step * coalesce(
        (select known.created_at from "holdfast_job" known where known.seq >= reached + step order by known.seq limit 1)
            < ? + 3600000, 0),
      step / 2
    from search where step > 0
  )
  select reached + 1 from search where step = 0)
    and h.seq >= (
  with recursive search (reached, step) as (
    select 0, 1 << 40
    union all
    select reached + step * coalesce(
        (select known.created_at from "holdfast_job" known where known.seq >= reached + step order by known.seq limit 1)
            < ? - 3600000, 0),
      step / 2
    from search where step > 0
  )
  select reached + 1 from search where step = 0) order by h.seq desc limit ?),
wanted as materialized (
  select v.value as want, (select '$' || group_concat('."' || s.value || '"', '') from json_each(p.value) s) as path,
    (select '$' || group_concat(case when s.value glob '[0-9]*' then '[' || s.value || ']' else '."' || s.value || '"'
        end, '') from json_each(p.value) s) as row_key
  from json_each(?) p join json_each(?) v on v.key = p.key
),
found as (
  select w.seq, w.state, w.job_type from walked w
  where w.state in (select value from json_each(?))
    and w.job_type in (select l.id from "holdfast_job_type" l where l.queue in (select value from json_each(?))
    and l.name in (select value from json_each(?)))
    and w.failure_group = ?
    and w.failure_group is not null
    and w.ended_at >= ?
    and w.ended_at <= ?
    and exists (
      select 1 from "holdfast_history" e where e.seq = w.seq and e.attempt >= ?
    and e.attempt <= ?
    and w.state in ('running', 'done', 'dead', 'cancelled')
    and coalesce(w.ended_at, ?) - e.started_at >= ?
    and coalesce(w.ended_at, ?) - e.started_at between 0 and ?
    and e.session in (select s.id from "holdfast_session" s where s.worker_id = ? or s.name = ?)
    and instr(lower(e.errors), ?) > 0)
    and exists (
      select 1 from "holdfast_job" j where j.seq = w.seq and j.lane = ?
    and j.key = ?
    and j.created_at >= ?
    and j.created_at < ?
    and j.parent_id = ?
    and j.extras like ?
    and (instr(lower(j.input), ?) > 0 or instr(lower(j.context), ?) > 0 or exists (select 1 from "holdfast_history" e
        where e.seq = w.seq and instr(lower(e.errors), ?) > 0))
    and json_valid(j.input) and not exists (
          select 1 from wanted x where coalesce(case json_type(j.input, x.path) when 'true' then 'true' when 'false'
              then 'false' when 'null' then 'null' else cast(json_extract(j.input, x.path) as text) end, case
              json_type(j.input, x.row_key) when 'true' then 'true' when 'false' then 'false' when 'null' then 'null'
              else cast(json_extract(j.input, x.row_key) as text) end) is not x.want))
)
select f.state, f.job_type, count(*) as n, null as bottom from found f group by f.state, f.job_type
union all select null, null, (select count(*) from walked), (select min(seq) from walked);

-- tallyNotDone, 1 of 2
-- with scan
with walked as materialized (select h.seq, h.job_type, h.state, h.failure_group, h.ended_at from "holdfast_history" h
    where h.state <> 'done' and true order by h.seq desc limit ?),
found as (
  select w.seq, w.state, w.job_type from walked w
  where true
)
select f.state, f.job_type, count(*) as n, null as bottom from found f group by f.state, f.job_type
union all select null, null, (select count(*) from walked), (select min(seq) from walked);

-- tallyNotDone, 2 of 2
-- with cursor, until, endedMax, since, scan, paths, wants, states, queues, names, group, endedMin, endedMax,
--     attemptMin, attemptMax, now, ranMin, now, ranMax, worker, worker, error, lane, key, since, until, workflow, trace,
--     search, search, search
with walked as materialized (select h.seq, h.job_type, h.state, h.failure_group, h.ended_at from "holdfast_history" h
    where h.state <> 'done' and h.seq < cast(? as integer)
    and h.seq < (
  with recursive search (reached, step) as (
    select 0, 1 << 40
    union all
    select reached + step * coalesce(
        (select known.created_at from "holdfast_job" known where known.seq >= reached + step order by known.seq limit 1)
            < ? + 3600000, 0),
      step / 2
    from search where step > 0
  )
  select reached + 1 from search where step = 0)
    and h.seq < (
  with recursive search (reached, step) as (
    select 0, 1 << 40
    union all
    select reached + step * coalesce(
        (select known.created_at from "holdfast_job" known where known.seq >= reached + step order by known.seq limit 1)
            < ? + 3600000, 0),
      step / 2
    from search where step > 0
  )
  select reached + 1 from search where step = 0)
    and h.seq >= (
  with recursive search (reached, step) as (
    select 0, 1 << 40
    union all
    select reached + step * coalesce(
        (select known.created_at from "holdfast_job" known where known.seq >= reached + step order by known.seq limit 1)
            < ? - 3600000, 0),
      step / 2
    from search where step > 0
  )
  select reached + 1 from search where step = 0) order by h.seq desc limit ?),
wanted as materialized (
  select v.value as want, (select '$' || group_concat('."' || s.value || '"', '') from json_each(p.value) s) as path,
    (select '$' || group_concat(case when s.value glob '[0-9]*' then '[' || s.value || ']' else '."' || s.value || '"'
        end, '') from json_each(p.value) s) as row_key
  from json_each(?) p join json_each(?) v on v.key = p.key
),
found as (
  select w.seq, w.state, w.job_type from walked w
  where w.state in (select value from json_each(?))
    and w.job_type in (select l.id from "holdfast_job_type" l where l.queue in (select value from json_each(?))
    and l.name in (select value from json_each(?)))
    and w.failure_group = ?
    and w.failure_group is not null
    and w.ended_at >= ?
    and w.ended_at <= ?
    and exists (
      select 1 from "holdfast_history" e where e.seq = w.seq and e.attempt >= ?
    and e.attempt <= ?
    and w.state in ('running', 'done', 'dead', 'cancelled')
    and coalesce(w.ended_at, ?) - e.started_at >= ?
    and coalesce(w.ended_at, ?) - e.started_at between 0 and ?
    and e.session in (select s.id from "holdfast_session" s where s.worker_id = ? or s.name = ?)
    and instr(lower(e.errors), ?) > 0)
    and exists (
      select 1 from "holdfast_job" j where j.seq = w.seq and j.lane = ?
    and j.key = ?
    and j.created_at >= ?
    and j.created_at < ?
    and j.parent_id = ?
    and j.extras like ?
    and (instr(lower(j.input), ?) > 0 or instr(lower(j.context), ?) > 0 or exists (select 1 from "holdfast_history" e
        where e.seq = w.seq and instr(lower(e.errors), ?) > 0))
    and json_valid(j.input) and not exists (
          select 1 from wanted x where coalesce(case json_type(j.input, x.path) when 'true' then 'true' when 'false'
              then 'false' when 'null' then 'null' else cast(json_extract(j.input, x.path) as text) end, case
              json_type(j.input, x.row_key) when 'true' then 'true' when 'false' then 'false' when 'null' then 'null'
              else cast(json_extract(j.input, x.row_key) as text) end) is not x.want))
)
select f.state, f.job_type, count(*) as n, null as bottom from found f group by f.state, f.job_type
union all select null, null, (select count(*) from walked), (select min(seq) from walked);

-- tallyChildren, 1 of 2
-- with now, workflow, scan
with walked as materialized (
  select c.seq, coalesce(r.job_type, h.job_type) as job_type, case when r.seq is null then h.state else case when
      r.token is not null then 'running' when r.run_at >= 8633688480000000 then 'waiting'
  when r.run_at > ? then case when r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end
      end as state,
    coalesce(r.failure_group, h.failure_group) as failure_group, h.ended_at
  from (select p.seq from "holdfast_job" p where p.parent_id = ? and true order by p.seq desc limit ?) c
  left join "holdfast_ready" r on r.seq = c.seq left join "holdfast_history" h on h.seq = c.seq),
found as (
  select w.seq, w.state, w.job_type from walked w
  where true
)
select f.state, f.job_type, count(*) as n, null as bottom from found f group by f.state, f.job_type
union all select null, null, (select count(*) from walked), (select min(seq) from walked);

-- tallyChildren, 2 of 2
-- with now, workflow, cursor, until, endedMax, since, scan, paths, wants, states, queues, names, group, endedMin,
--     endedMax, attemptMin, attemptMax, now, ranMin, now, ranMax, worker, worker, error, lane, key, since, until,
--     workflow, trace, search, search, search
with walked as materialized (
  select c.seq, coalesce(r.job_type, h.job_type) as job_type, case when r.seq is null then h.state else case when
      r.token is not null then 'running' when r.run_at >= 8633688480000000 then 'waiting'
  when r.run_at > ? then case when r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end
      end as state,
    coalesce(r.failure_group, h.failure_group) as failure_group, h.ended_at
  from (select p.seq from "holdfast_job" p where p.parent_id = ? and p.seq < cast(? as integer)
    and p.seq < (
  with recursive search (reached, step) as (
    select 0, 1 << 40
    union all
    select reached + step * coalesce(
        (select known.created_at from "holdfast_job" known where known.seq >= reached + step order by known.seq limit 1)
            < ? + 3600000, 0),
      step / 2
    from search where step > 0
  )
  select reached + 1 from search where step = 0)
    and p.seq < (
  with recursive search (reached, step) as (
    select 0, 1 << 40
    union all
    select reached + step * coalesce(
        (select known.created_at from "holdfast_job" known where known.seq >= reached + step order by known.seq limit 1)
            < ? + 3600000, 0),
      step / 2
    from search where step > 0
  )
  select reached + 1 from search where step = 0)
    and p.seq >= (
  with recursive search (reached, step) as (
    select 0, 1 << 40
    union all
    select reached + step * coalesce(
        (select known.created_at from "holdfast_job" known where known.seq >= reached + step order by known.seq limit 1)
            < ? - 3600000, 0),
      step / 2
    from search where step > 0
  )
  select reached + 1 from search where step = 0) order by p.seq desc limit ?) c
  left join "holdfast_ready" r on r.seq = c.seq left join "holdfast_history" h on h.seq = c.seq),
wanted as materialized (
  select v.value as want, (select '$' || group_concat('."' || s.value || '"', '') from json_each(p.value) s) as path,
    (select '$' || group_concat(case when s.value glob '[0-9]*' then '[' || s.value || ']' else '."' || s.value || '"'
        end, '') from json_each(p.value) s) as row_key
  from json_each(?) p join json_each(?) v on v.key = p.key
),
found as (
  select w.seq, w.state, w.job_type from walked w
  where w.state in (select value from json_each(?))
    and w.job_type in (select l.id from "holdfast_job_type" l where l.queue in (select value from json_each(?))
    and l.name in (select value from json_each(?)))
    and w.failure_group = ?
    and w.failure_group is not null
    and w.ended_at >= ?
    and w.ended_at <= ?
    and exists (
      select 1 from (select seq, attempt, started_at, session, errors from "holdfast_ready" union all select seq,
          attempt, started_at, session, errors from "holdfast_history") e where e.seq = w.seq and e.attempt >= ?
    and e.attempt <= ?
    and w.state in ('running', 'done', 'dead', 'cancelled')
    and coalesce(w.ended_at, ?) - e.started_at >= ?
    and coalesce(w.ended_at, ?) - e.started_at between 0 and ?
    and e.session in (select s.id from "holdfast_session" s where s.worker_id = ? or s.name = ?)
    and instr(lower(e.errors), ?) > 0)
    and exists (
      select 1 from "holdfast_job" j where j.seq = w.seq and j.lane = ?
    and j.key = ?
    and j.created_at >= ?
    and j.created_at < ?
    and j.parent_id = ?
    and j.extras like ?
    and (instr(lower(j.input), ?) > 0 or instr(lower(j.context), ?) > 0 or exists (select 1 from (select seq, attempt,
        started_at, session, errors from "holdfast_ready" union all select seq, attempt, started_at, session, errors
        from "holdfast_history") e where e.seq = w.seq and instr(lower(e.errors), ?) > 0))
    and json_valid(j.input) and not exists (
          select 1 from wanted x where coalesce(case json_type(j.input, x.path) when 'true' then 'true' when 'false'
              then 'false' when 'null' then 'null' else cast(json_extract(j.input, x.path) as text) end, case
              json_type(j.input, x.row_key) when 'true' then 'true' when 'false' then 'false' when 'null' then 'null'
              else cast(json_extract(j.input, x.row_key) as text) end) is not x.want))
)
select f.state, f.job_type, count(*) as n, null as bottom from found f group by f.state, f.job_type
union all select null, null, (select count(*) from walked), (select min(seq) from walked);

-- tallyMembers, 1 of 2
-- with now, batch, scan
with walked as materialized (
  select c.seq, coalesce(r.job_type, h.job_type) as job_type, case when r.seq is null then h.state else case when
      r.token is not null then 'running' when r.run_at >= 8633688480000000 then 'waiting'
  when r.run_at > ? then case when r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end
      end as state,
    coalesce(r.failure_group, h.failure_group) as failure_group, h.ended_at
  from (select p.seq from "holdfast_member" p where p.batch = ? and true order by p.seq desc limit ?) c
  left join "holdfast_ready" r on r.seq = c.seq left join "holdfast_history" h on h.seq = c.seq),
found as (
  select w.seq, w.state, w.job_type from walked w
  where true
)
select f.state, f.job_type, count(*) as n, null as bottom from found f group by f.state, f.job_type
union all select null, null, (select count(*) from walked), (select min(seq) from walked);

-- tallyMembers, 2 of 2
-- with now, batch, cursor, until, endedMax, since, scan, paths, wants, states, queues, names, group, endedMin,
--     endedMax, attemptMin, attemptMax, now, ranMin, now, ranMax, worker, worker, error, lane, key, since, until,
--     workflow, trace, search, search, search
with walked as materialized (
  select c.seq, coalesce(r.job_type, h.job_type) as job_type, case when r.seq is null then h.state else case when
      r.token is not null then 'running' when r.run_at >= 8633688480000000 then 'waiting'
  when r.run_at > ? then case when r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end
      end as state,
    coalesce(r.failure_group, h.failure_group) as failure_group, h.ended_at
  from (select p.seq from "holdfast_member" p where p.batch = ? and p.seq < cast(? as integer)
    and p.seq < (
  with recursive search (reached, step) as (
    select 0, 1 << 40
    union all
    select reached + step * coalesce(
        (select known.created_at from "holdfast_job" known where known.seq >= reached + step order by known.seq limit 1)
            < ? + 3600000, 0),
      step / 2
    from search where step > 0
  )
  select reached + 1 from search where step = 0)
    and p.seq < (
  with recursive search (reached, step) as (
    select 0, 1 << 40
    union all
    select reached + step * coalesce(
        (select known.created_at from "holdfast_job" known where known.seq >= reached + step order by known.seq limit 1)
            < ? + 3600000, 0),
      step / 2
    from search where step > 0
  )
  select reached + 1 from search where step = 0)
    and p.seq >= (
  with recursive search (reached, step) as (
    select 0, 1 << 40
    union all
    select reached + step * coalesce(
        (select known.created_at from "holdfast_job" known where known.seq >= reached + step order by known.seq limit 1)
            < ? - 3600000, 0),
      step / 2
    from search where step > 0
  )
  select reached + 1 from search where step = 0) order by p.seq desc limit ?) c
  left join "holdfast_ready" r on r.seq = c.seq left join "holdfast_history" h on h.seq = c.seq),
wanted as materialized (
  select v.value as want, (select '$' || group_concat('."' || s.value || '"', '') from json_each(p.value) s) as path,
    (select '$' || group_concat(case when s.value glob '[0-9]*' then '[' || s.value || ']' else '."' || s.value || '"'
        end, '') from json_each(p.value) s) as row_key
  from json_each(?) p join json_each(?) v on v.key = p.key
),
found as (
  select w.seq, w.state, w.job_type from walked w
  where w.state in (select value from json_each(?))
    and w.job_type in (select l.id from "holdfast_job_type" l where l.queue in (select value from json_each(?))
    and l.name in (select value from json_each(?)))
    and w.failure_group = ?
    and w.failure_group is not null
    and w.ended_at >= ?
    and w.ended_at <= ?
    and exists (
      select 1 from (select seq, attempt, started_at, session, errors from "holdfast_ready" union all select seq,
          attempt, started_at, session, errors from "holdfast_history") e where e.seq = w.seq and e.attempt >= ?
    and e.attempt <= ?
    and w.state in ('running', 'done', 'dead', 'cancelled')
    and coalesce(w.ended_at, ?) - e.started_at >= ?
    and coalesce(w.ended_at, ?) - e.started_at between 0 and ?
    and e.session in (select s.id from "holdfast_session" s where s.worker_id = ? or s.name = ?)
    and instr(lower(e.errors), ?) > 0)
    and exists (
      select 1 from "holdfast_job" j where j.seq = w.seq and j.lane = ?
    and j.key = ?
    and j.created_at >= ?
    and j.created_at < ?
    and j.parent_id = ?
    and j.extras like ?
    and (instr(lower(j.input), ?) > 0 or instr(lower(j.context), ?) > 0 or exists (select 1 from (select seq, attempt,
        started_at, session, errors from "holdfast_ready" union all select seq, attempt, started_at, session, errors
        from "holdfast_history") e where e.seq = w.seq and instr(lower(e.errors), ?) > 0))
    and json_valid(j.input) and not exists (
          select 1 from wanted x where coalesce(case json_type(j.input, x.path) when 'true' then 'true' when 'false'
              then 'false' when 'null' then 'null' else cast(json_extract(j.input, x.path) as text) end, case
              json_type(j.input, x.row_key) when 'true' then 'true' when 'false' then 'false' when 'null' then 'null'
              else cast(json_extract(j.input, x.row_key) as text) end) is not x.want))
)
select f.state, f.job_type, count(*) as n, null as bottom from found f group by f.state, f.job_type
union all select null, null, (select count(*) from walked), (select min(seq) from walked);

-- jobsInOrder
-- with queues, queues, names, names, now, fromAt, fromRowKey, limit, limit
  with recursive scope as (select l.id as job_type from "holdfast_job_type" l
      where (? is null or l.queue in (select value from json_each(?))) and (? is null or l.name in (select value from
          json_each(?)))),
level_of (job_type, rank) as (
  select s.job_type, (select r.rank from "holdfast_ready" r where r.job_type = s.job_type and r.token is null order by
      r.rank limit 1) from scope s
  union all
  select l.job_type, (select r.rank from "holdfast_ready" r where r.job_type = l.job_type and r.token is null and r.rank
      > l.rank order by r.rank limit 1)
  from level_of l where l.rank is not null
)
  select (select known.id from "holdfast_job" known where known.seq = r.seq) as id, r.seq as row_key, r.run_at, r.waits
      from level_of lv cross join "holdfast_ready" r
  where lv.rank is not null and r.seq in (
    select c.seq from "holdfast_ready" c
    where c.job_type = lv.job_type and c.rank = lv.rank and c.token is null and c.run_at > ? and c.run_at <
        8633688480000000
      and (c.run_at, c.seq) > (?, cast(? as integer))
    order by c.run_at, c.seq limit ?
  ) order by r.run_at, r.seq limit ?;

-- idsFrom
-- with last, limit, first
with taken as materialized (select id from "holdfast_job" where id <= ? order by id desc limit ?)
select id from taken where id >= ?;

-- walkIds
-- with before, scan, end, end
with walked as materialized (select id from "holdfast_job" where id < ? order by id desc limit ?)
select id, null as walked from walked where substr(id, -length(?)) = ?
union all select min(id), count(*) from walked;

-- summaries
-- with now, ids, ids
select id, rank, attempt, crashes, run_at, started_at, ended_at, errors, state, waits, created_at, max_attempts, key,
    lane, context, parent_id,
  queue, name, worker_id, failure_group, case when octet_length(input) <= 4096 then input end as input,
      octet_length(input) as input_bytes
from (
select r.failure_group, r.throttles, j.timeout_ms, j.deadline_at, j.extras, j.id, r.seq as row_key, r.rank, r.attempt,
    r.crashes, r.run_at, r.started_at, null as ended_at, r.errors, r.progress, null as output,
  s.lease_until, s.worker_id, case when r.token is not null then 'running' when r.run_at >= 8633688480000000 then
      'waiting'
  when r.run_at > ? then case when r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end as
      state, r.waits, j.input, j.created_at, j.max_attempts, j.key, j.lane, j.context, j.parent_id, j.extras, l.queue,
      l.name, (select m.label from "holdfast_step" m where m.job = j.id and m.name = '$machine') as step
from "holdfast_ready" r join "holdfast_job" j on j.seq = r.seq join "holdfast_job_type" l on l.id = r.job_type left join
    "holdfast_session" s on s.id = r.session where r.seq in (select known.seq from "holdfast_job" known where known.id
    in (select value from json_each(?))) union all
select h.failure_group, h.throttles, j.timeout_ms, j.deadline_at, j.extras, j.id, h.seq as row_key, h.rank, h.attempt,
    h.crashes, h.run_at, h.started_at, h.ended_at, h.errors, h.progress, h.output,
  null as lease_until, s.worker_id, h.state, null as waits, j.input, j.created_at, j.max_attempts, j.key, j.lane,
      j.context, j.parent_id, j.extras, l.queue, l.name, (select m.label from "holdfast_step" m where m.job = j.id and
      m.name = '$machine') as step
from "holdfast_history" h join "holdfast_job" j on j.seq = h.seq join "holdfast_job_type" l on l.id = h.job_type left
    join "holdfast_session" s on s.id = h.session where h.seq in (select known.seq from "holdfast_job" known where
    known.id in (select value from json_each(?)))) one;

-- inspect
-- with now, id, id
select * from (
select r.failure_group, r.throttles, j.timeout_ms, j.deadline_at, j.extras, j.id, r.seq as row_key, r.rank, r.attempt,
    r.crashes, r.run_at, r.started_at, null as ended_at, r.errors, r.progress, null as output,
  s.lease_until, s.worker_id, case when r.token is not null then 'running' when r.run_at >= 8633688480000000 then
      'waiting'
  when r.run_at > ? then case when r.waits in ('signal', 'jobs') then 'waiting' else 'scheduled' end else 'ready' end as
      state, r.waits, j.input, j.created_at, j.max_attempts, j.key, j.lane, j.context, j.parent_id, j.extras, l.queue,
      l.name, (select m.label from "holdfast_step" m where m.job = j.id and m.name = '$machine') as step
from "holdfast_ready" r join "holdfast_job" j on j.seq = r.seq join "holdfast_job_type" l on l.id = r.job_type left join
    "holdfast_session" s on s.id = r.session where r.seq = (select known.seq from "holdfast_job" known where known.id =
    ?) union all
select h.failure_group, h.throttles, j.timeout_ms, j.deadline_at, j.extras, j.id, h.seq as row_key, h.rank, h.attempt,
    h.crashes, h.run_at, h.started_at, h.ended_at, h.errors, h.progress, h.output,
  null as lease_until, s.worker_id, h.state, null as waits, j.input, j.created_at, j.max_attempts, j.key, j.lane,
      j.context, j.parent_id, j.extras, l.queue, l.name, (select m.label from "holdfast_step" m where m.job = j.id and
      m.name = '$machine') as step
from "holdfast_history" h join "holdfast_job" j on j.seq = h.seq join "holdfast_job_type" l on l.id = h.job_type left
    join "holdfast_session" s on s.id = h.session where h.seq = (select known.seq from "holdfast_job" known where
    known.id = ?)) one limit 1;

-- walkRuns
-- with before, scan
with recursive run (id, n) as (
  select * from (select job, 1 from "holdfast_step" where job < ? order by job desc limit 1)
  union all
  select (select s.job from "holdfast_step" s where s.job < r.id order by s.job desc limit 1), r.n + 1 from run r where
      r.id is not null and r.n < ?
)
select id from run where id is not null;

-- runSteps
-- with jobs
with run as (
  select s.job, count(*) as known, sum(not (s.state = 'open' and not (s.kind = 'sleep' and coalesce(s.wake_at <= n.value
      ->> 'begun', false))
      and not (s.kind = 'machine' and n.value ->> 'ended'))) as done,
    max(s.state = 'open' and s.fails > 0) as retrying,
    max(case when (s.state = 'open' and not (s.kind = 'sleep' and coalesce(s.wake_at <= n.value ->> 'begun', false))
      and not (s.kind = 'machine' and n.value ->> 'ended')) then s.seq end) as at
  from json_each(?) n cross join "holdfast_step" s on s.job = n.value ->> 'id' where s.kind <> 'undo' group by s.job
)
select r.job as id, r.known, r.done, r.retrying, s.name, s.kind, s.label, s.started_at, s.wake_at, s.child
from run r left join "holdfast_step" s on s.job = r.job and s.seq = r.at and s.state = 'open' and s.kind <> 'undo';

-- tallyJobTypes
-- with queues, queues, names, names, now, now, now, now, now, now, cap, budget, now, now, now, now, now, now, now, now,
--     queues, queues, names, names
  with recursive scope as (select l.id as job_type from "holdfast_job_type" l
      where (? is null or l.queue in (select value from json_each(?))) and (? is null or l.name in (select value from
          json_each(?)))),
level_of (job_type, rank) as (
  select s.job_type, (select r.rank from "holdfast_ready" r where r.job_type = s.job_type and r.token is null order by
      r.rank limit 1) from scope s
  union all
  select l.job_type, (select r.rank from "holdfast_ready" r where r.job_type = l.job_type and r.token is null and r.rank
      > l.rank order by r.rank limit 1)
  from level_of l where l.rank is not null
),
  waiters (found) as materialized (select exists (select 1 from "holdfast_ready" r where r.token is null and r.run_at <
      8633688480000000 and r.waits in ('signal', 'jobs') limit 1)),
  ends as materialized (
    select lv.job_type, lv.rank, (select r.run_at from "holdfast_ready" r where r.job_type = lv.job_type and r.rank =
        lv.rank and r.token is null order by r.run_at desc limit 1) as last
    from level_of lv where lv.rank is not null
  ),
  level as materialized (
    select lv.*, case when lv.last > ? and (select found from waiters) then (select count(*) from (select 1 from
        "holdfast_ready" r where r.job_type = lv.job_type and r.rank = lv.rank and r.token is null and r.run_at > ? and
        r.run_at < 8633688480000000 and r.waits in ('signal', 'jobs') limit 100) x) else 0 end as timed from ends lv
  ),
  small as materialized (
    select lv.*, (select count(*) from (select 1 from "holdfast_ready" r where r.job_type = lv.job_type and r.rank =
        lv.rank and r.token is null and r.run_at <= ? limit 100) x) as ready, case when lv.last < 8633688480000000 then
        0 else (select count(*) from (select 1 from "holdfast_ready" r where r.job_type = lv.job_type and r.rank =
        lv.rank and r.token is null and r.run_at >= 8633688480000000 limit 100) x) end as waiting,
      case when lv.last <= ? then 0 when lv.timed = 0 then (select count(*) from (select 1 from "holdfast_ready" r where
          r.job_type = lv.job_type and r.rank = lv.rank and r.token is null and r.run_at > ? and r.run_at <
          8633688480000000 limit 100) x) else (select count(*) from (select 1 from "holdfast_ready" r where r.job_type =
          lv.job_type and r.rank = lv.rank and r.token is null and r.run_at > ? and r.run_at < 8633688480000000 limit
          200) x) end as later
    from level lv
  ),
  cap (n) as materialized (
    select cast(max(100, min(?, ? / max(1, coalesce(sum(
      (ready >= 100) + (later - timed >= 100) + (waiting >= 100) + (timed >= 100)), 0)))) as integer) from small),
  large as materialized (
    select lv.*, (select n from cap) as most, case when lv.timed < 100 then lv.timed else (select count(*) from (select
        1 from "holdfast_ready" r where r.job_type = lv.job_type and r.rank = lv.rank and r.token is null and r.run_at >
        ? and r.run_at < 8633688480000000 and r.waits in ('signal', 'jobs') limit (select n from cap)) x) end as until
        from small lv
  ),
  counted as materialized (
    select lv.job_type, lv.rank, lv.most, lv.until,
      case when lv.ready < 100 or lv.most = 100 then lv.ready else (select count(*) from (select 1 from "holdfast_ready"
          r where r.job_type = lv.job_type and r.rank = lv.rank and r.token is null and r.run_at <= ? limit (select n
          from cap)) x) end as ready,
      case when lv.later - lv.timed < 100 and lv.timed < 100 then lv.later
        when lv.timed = 0 then (select count(*) from (select 1 from "holdfast_ready" r where r.job_type = lv.job_type
            and r.rank = lv.rank and r.token is null and r.run_at > ? and r.run_at < 8633688480000000 limit (select n
            from cap)) x) else (select count(*) from (select 1 from "holdfast_ready" r where r.job_type = lv.job_type
            and r.rank = lv.rank and r.token is null and r.run_at > ? and r.run_at < 8633688480000000 limit (select 2 *
            n from cap)) x) end as later,
      case when lv.waiting < 100 or lv.most = 100 then lv.waiting else (select count(*) from (select 1 from
          "holdfast_ready" r where r.job_type = lv.job_type and r.rank = lv.rank and r.token is null and r.run_at >=
          8633688480000000 limit (select n from cap)) x) end as waiting,
      case when lv.ready > 0 then (select r.run_at from "holdfast_ready" r where r.job_type = lv.job_type and r.rank =
          lv.rank and r.token is null and r.run_at <= ? order by r.run_at, r.seq limit 1) end as oldest
    from large lv
  ),
  -- The first entry that is due later. Where some wait until a time, rows are read until one does not, at most as many
      as wait.
  nexts as materialized (
    select lv.*, case when lv.later = 0 then null
      when lv.until = 0 then (select r.run_at from "holdfast_ready" r where r.job_type = lv.job_type and r.rank =
          lv.rank and r.token is null and r.run_at > ? and r.run_at < 8633688480000000 order by r.run_at limit 1)
      when lv.until < lv.most and lv.later > lv.until then (
        select n.run_at from "holdfast_ready" n where n.job_type = lv.job_type and n.rank = lv.rank and n.token is null
          and n.run_at > ? and n.run_at < 8633688480000000 and coalesce(n.waits, 'sleep') = 'sleep' order by n.run_at
              limit 1) end as next
    from counted lv
  )
  select l.queue, l.name, ? as now, coalesce(sum(c.ready), 0) as ready,
    coalesce(sum(case when c.until < c.most then min(c.most, c.later - c.until) else 0 end), 0) as scheduled,
    coalesce(sum(c.waiting + c.until), 0) as waiting, min(c.oldest) as oldest, min(c.next) as next, coalesce(max(c.ready
        >= c.most), 0) as more_ready,
    coalesce(max(c.later - c.until >= c.most or (c.until >= c.most and c.later > c.until)), 0) as more_scheduled,
    coalesce(max(c.waiting >= c.most or c.until >= c.most), 0) as more_waiting
  from "holdfast_job_type" l left join nexts c on c.job_type = l.id where (? is null or l.queue in (select value from
      json_each(?))) and (? is null or l.name in (select value from json_each(?))) group by l.queue, l.name order by
      l.queue, l.name;

-- tallyRunning
-- with now
select l.queue, l.name, c.session, ? as now, count(*) as running, min(r.started_at) as longest
from "holdfast_claim" c cross join json_each(c.ids) o cross join "holdfast_ready" r on r.seq = o.value and r.token =
    c.token
join "holdfast_job_type" l on l.id = r.job_type group by l.queue, l.name, c.session order by l.queue, l.name, c.session;

-- jobTypeNames
select distinct queue, name from "holdfast_job_type" order by queue, name;

-- topLanes
-- with queue, scan, now, now, limit, now
  with recursive scope as materialized (select l.id as job_type from "holdfast_job_type" l where l.queue = ? and
      l.laned),
level_of (job_type, rank) as (
  select s.job_type, (select r.rank from "holdfast_ready" r where r.job_type = s.job_type and r.token is null order by
      r.rank limit 1) from scope s
  union all
  select l.job_type, (select r.rank from "holdfast_ready" r where r.job_type = l.job_type and r.token is null and r.rank
      > l.rank order by r.rank limit 1)
  from level_of l where l.rank is not null
),
  piece (n) as materialized (select cast(max(10, ? / 2 / max(1, count(*))) as integer) from level_of lv where lv.rank is
      not null),
  top as materialized (
    select r.lane from level_of lv cross join "holdfast_ready" r
    where lv.rank is not null and r.seq in (
      select seq from (select c.seq from "holdfast_ready" c where c.job_type = lv.job_type and c.rank = lv.rank and
          c.token is null and c.run_at <= ? order by c.run_at, c.seq limit (select n from piece))
      union all
      select seq from (select c.seq from "holdfast_ready" c where c.job_type = lv.job_type and c.rank = lv.rank and
          c.token is null and c.run_at <= ? order by c.run_at desc, c.seq desc limit (select n from piece))
    ) group by r.lane order by count(*) desc, r.lane limit ?
  )
  select a.*, ? as now, coalesce((select sum(b.back) from "holdfast_lane_wakeup" b where b.lane = a.id), 0) as back,
    (select count(*) from (select 1 from "holdfast_ready" r where r.lane = a.id and r.token is null limit 10000) capped)
        as waiting
  from top cross join "holdfast_lane" a on a.id = top.lane;

-- groupDead
-- with cursor, scan, now, now, now, group, group, queues, names, queues, queues, names, names, now
with walked as materialized (
  select h.seq, h.job_type, h.failure_group, h.ended_at, h.state from "holdfast_history" h where h.state <> 'done' and
      h.seq < coalesce(cast(? as integer), 9223372036854775807) order by h.seq desc limit ?
),
counted as (
  select w.job_type, w.failure_group, count(*) as n, min(w.ended_at) as first_at, max(w.ended_at) as last_at, max(w.seq)
      as newest,
    count(*) filter (where w.ended_at > ? - 3600000) as hour, count(*) filter (where w.ended_at > ? - 86400000) as day,
    count(*) filter (where w.ended_at > ? - 604800000) as week
  from walked w where w.state = 'dead' and w.failure_group is not null and (? is null or w.failure_group = ?) and ((? is
      null and ? is null) or w.job_type in (select l.id from "holdfast_job_type" l
    where (? is null or l.queue in (select value from json_each(?))) and (? is null or l.name in (select value from
        json_each(?))))) group by w.job_type, w.failure_group
)
select l.queue, l.name, c.failure_group, c.n, c.first_at, c.last_at, (select known.id from "holdfast_job" known where
    known.seq = c.newest) as sample, c.hour, c.day, c.week
from counted c join "holdfast_job_type" l on l.id = c.job_type
union all select null, null, null, (select count(*) from walked), null, null, null, null, ?, null;

-- groupFailed
-- with cursor, scan, group, group, queues, names, queues, queues, names, names
with counted as (
  select w.job_type, w.failure_group, count(*) as n, max(w.seq) as newest
  from (select r.seq, r.job_type, r.failure_group from "holdfast_ready" r where r.failure_group is not null and r.seq <
      coalesce(cast(? as integer), 9223372036854775807) order by r.seq desc limit ?) w
  where w.failure_group is not null and (? is null or w.failure_group = ?) and ((? is null and ? is null) or w.job_type
      in (select l.id from "holdfast_job_type" l
    where (? is null or l.queue in (select value from json_each(?))) and (? is null or l.name in (select value from
        json_each(?))))) group by w.job_type, w.failure_group
)
select l.queue, l.name, c.failure_group, c.n, (select known.id from "holdfast_job" known where known.seq = c.newest) as
    sample, null as first_at, null as last_at from counted c join "holdfast_job_type" l on l.id = c.job_type;

-- addAudit
-- with now, actor, action, target, outcome, details
insert into "holdfast_audit" (at, actor, action, target, outcome, details)
values (?, ?, ?, ?, ?, ?);

-- dropAudit
-- with now
delete from "holdfast_audit" where at < ? - 7776000000 and id < (select max(id) from "holdfast_audit") returning id;

-- listAudit
-- with before, limit
select a.id, a.at, a.actor, a.action, a.target, a.outcome, a.details
from "holdfast_audit" a where a.id < ? order by a.id desc limit ?;

-- auditOf
-- with target, before, limit
select a.id, a.at, a.actor, a.action, a.target, a.outcome, a.details
from "holdfast_audit" a where a.target = ? and a.id < ? order by a.id desc limit ?;

-- health
select sqlite_version() as version, p.page_count * s.page_size as size, f.freelist_count * s.page_size as free,
  null as connections, null as max_connections, null as oldest_ms
from pragma_page_count p, pragma_page_size s, pragma_freelist_count f;

-- tables
select replace(name, (select substr(m.name, 1, length(m.name) - 5) from sqlite_master m where '"' || m.name || '"' =
    '"holdfast_ready"'), '') as name,
  null as bytes, null as rows, null as dead_rows, null as vacuumed_at
from sqlite_master where type = 'table' and '"' || name || '"' in ('"holdfast_job_type"', '"holdfast_job"',
    '"holdfast_ready"', '"holdfast_history"', '"holdfast_session"', '"holdfast_claim"', '"holdfast_cancel"',
    '"holdfast_unique_key"', '"holdfast_used_id"', '"holdfast_step"', '"holdfast_signal"', '"holdfast_dependency"',
    '"holdfast_batch"', '"holdfast_member"', '"holdfast_queue"', '"holdfast_hold"', '"holdfast_state"',
    '"holdfast_definition"', '"holdfast_upkeep_task"', '"holdfast_schedule"', '"holdfast_budget"', '"holdfast_pass"',
    '"holdfast_metric"', '"holdfast_metric_sum"', '"holdfast_temporary_limit"', '"holdfast_occurrence"',
    '"holdfast_gauge"', '"holdfast_event"', '"holdfast_log"', '"holdfast_audit"', '"holdfast_failure_group"',
    '"holdfast_failure"', '"holdfast_meta"', '"holdfast_migration"', '"holdfast_lane"', '"holdfast_lane_rotation"',
    '"holdfast_lane_wakeup"', '"holdfast_returned_capacity"', '"holdfast_uncounted_job"', '"holdfast_breaker"',
    '"holdfast_token"') order by 1;

-- putFailures
-- with rows.group, rows.at, rows.queue, rows.version, rows.worker, rows.n
insert into "holdfast_failure" as f (failure_group, at, queue, version, worker, n)
values (?, ?, ?, ?, ?, ?)
on conflict (failure_group, at, queue, version, worker) do update set n = excluded.n where excluded.n > f.n;

-- putFailureGroups
-- with rows.group, rows.name, rows.firstAt, rows.lastAt, rows.sample, rows.message
insert into "holdfast_failure_group" as g (id, name, first_at, last_at, sample, message)
values (?, ?, ?, ?, ?, ?)
on conflict (id) do update set name = excluded.name, first_at = min(coalesce(g.first_at, excluded.first_at),
    excluded.first_at),
  last_at = max(coalesce(g.last_at, 0), excluded.last_at), sample = excluded.sample, message = excluded.message;

-- failureGroupRows
-- with now, ids, ids, names, names, limit
select g.*, ? as now from "holdfast_failure_group" g
where (? is null or g.id in (select value from json_each(?))) and (? is null or g.name in (select value from
    json_each(?)))
order by g.state <> 'open' desc, max(coalesce(g.last_at, 0), coalesce(g.state_at, 0)) desc limit ?;

-- failureHours
-- with fine, since, recent, ids, since, queues, queues
select f.failure_group, case when f.at >= ? then f.at - f.at % 3600000 else ? end as hour, sum(f.n) as n,
    coalesce(sum(f.n) filter (where f.at >= ?), 0) as recent
from "holdfast_failure" f
where f.failure_group in (select value from json_each(?)) and f.at >= ? and (? is null or f.queue in (select value from
    json_each(?)))
group by 1, 2 order by 1, 2;

-- failureGroupSources
-- with ids
select f.failure_group, f.queue, f.version, sum(f.n) as n, min(f.at) as first_at, max(f.at) as last_at from
    "holdfast_failure" f
where f.failure_group in (select value from json_each(?)) group by 1, 2, 3 order by 1, 4 desc, 2, 3;

-- failuresBy
-- with since, by, scan, by, by, limit
with walked as materialized (
  select * from "holdfast_failure" where at >= ? and (? <> 'worker' or worker <> '') order by at desc limit ?
)
select case ? when 'queue' then f.queue when 'worker' then f.worker when 'version' then cast(f.version as text)
    when 'hour' then cast(f.at - f.at % 3600000 as text) else coalesce(g.name, '') end as value,
  case ? when 'version' then g.name end as name, sum(f.n) as n, count(distinct f.failure_group) as groups, max(f.at) as
      last_at,
  (select count(*) from walked) as walked
from walked f left join "holdfast_failure_group" g on g.id = f.failure_group group by 1, 2 order by 3 desc, 1 limit ?;

-- failuresSince
-- with rows.group, rows.group, rows.at
select ? as failure_group, coalesce(sum(f.n), 0) as n from "holdfast_failure" f where f.failure_group = ? and f.at >= ?;

-- setFailureGroup
-- with group, name, state, decided, now, by, untilAt, now, untilDelay, untilCount, fromCount, note, link, decided,
--     decided, decided, decided, decided, decided, noted, linked
insert into "holdfast_failure_group" as g (id, name, state, state_at, state_by, until_at, until_count, from_count, note,
    link)
values (?, ?, ?, case when ? then ? end, ?, coalesce(?, ? + ?), ?, ?, ?, ?)
on conflict (id) do update set
  state = case when ? then excluded.state else g.state end, state_at = case when ? then excluded.state_at else
      g.state_at end,
  state_by = case when ? then excluded.state_by else g.state_by end, until_at = case when ? then excluded.until_at else
      g.until_at end,
  until_count = case when ? then excluded.until_count else g.until_count end,
  from_count = case when ? then excluded.from_count else g.from_count end,
  note = case when ? then excluded.note else g.note end, link = case when ? then excluded.link else g.link end
returning id, state_at, until_at;

-- deleteOldFailures, 1 of 2
-- with before
delete from "holdfast_failure" where at < ?;

-- deleteOldFailures, 2 of 2
-- with before
delete from "holdfast_failure_group" where max(coalesce(last_at, 0), coalesce(state_at, 0)) <
  ? - case when state = 'open' and note is null and link is null then 0 else 31536000000 end;

-- failuresOf
-- with since, until
select failure_group, at, queue, version, worker, n from "holdfast_failure" where at >= ? and at < ? order by 1, 2, 3,
    4, 5;

-- dropFailures
-- with since, until
delete from "holdfast_failure" where at >= ? and at < ?;

-- takeUpkeepTask
-- with name, now, every, now, by, now
insert into "holdfast_upkeep_task" as d (name, next_at, done_at, by) values (?, ? + ?, ?, ?)
on conflict (name) do update set next_at = excluded.next_at, done_at = excluded.done_at, by = excluded.by where
    d.next_at <= ? returning name;

-- upkeepTasks
select name, next_at, done_at, by from "holdfast_upkeep_task" order by name;

-- expired
-- with after, now, keep, states, now, keep, queues, queues, except, limit
select (select known.id from "holdfast_job" known where known.seq = h.seq) as id, h.seq as row_key, h.state from
    "holdfast_history" h join "holdfast_job_type" l on l.id = h.job_type
where h.seq > coalesce(cast(? as integer), 0) and h.seq < (
  with recursive search (reached, step) as (
    select 0, 1 << 40
    union all
    select reached + step * coalesce(
        (select known.created_at from "holdfast_job" known where known.seq >= reached + step order by known.seq limit 1)
            < ? - ? + 1, 0),
      step / 2
    from search where step > 0
  )
  select reached + 1 from search where step = 0) and h.state in (select value from json_each(?)) and h.ended_at <= ? - ?
  and (? is null or l.queue in (select value from json_each(?))) and l.queue not in (select value from json_each(?))
order by h.seq limit ?;

-- instance
select value from "holdfast_meta" where key = 'instance';

-- schemaState
-- with moved, movedAt
select m.version, m.name, m.applied_at, (select value from "holdfast_meta" where key = ?) as moved_to,
  (select value from "holdfast_meta" where key = ?) as moved_at
from "holdfast_migration" m order by m.version desc limit 1;

-- writable
select not (select query_only from pragma_query_only) as writable;

-- now
-- with now
select ? as now;

-- limitedQueues
select distinct l.queue, true as laned from "holdfast_job_type" l where l.laned
union all select q.name, false from "holdfast_queue" q where q.limited;

-- addLanes
-- with rows.queue, rows.key, rows.concurrency, rows.rateLimit, rows.ratePer, rows.weight, now
insert into "holdfast_lane" (queue, key, concurrency, rate_limit, rate_per, weight, used_at)
values (?, ?, ?, ?, ?, coalesce(?, 1), ?)
on conflict (queue, key) do update set used_at = excluded.used_at;

-- findLanes
-- with now, rows.queue, rows.key
select id, queue, key, used_at < ? - 86400000 as stale from "holdfast_lane" where queue = ? and key = ?;

-- wakeLanesOfJobs
-- with ids
insert into "holdfast_lane_wakeup" (job_type, lane, at)
select r.job_type, r.lane, min(r.run_at) from "holdfast_ready" r
where r.seq in (select known.seq from "holdfast_job" known where known.id in (select value from json_each(?))) and
    r.lane is not null and r.run_at < 8633688480000000 group by r.job_type, r.lane
on conflict (job_type, lane) do update set at = min(at, excluded.at);

-- lockLimitedQueues
-- with now, queues, now, now
select q.name, q.settings, q.running, q.starts, q.adopt_until, ? as now from "holdfast_queue" q
where q.limited and exists (select 1 from json_each(?) w where w.value ->> 'queue' is null or w.value ->> 'queue' =
    q.name) and
not exists (select 1 from "holdfast_queue" stop where stop.name = q.name and (stop.paused_at is not null or
    stop.cool_until > ?))
and not exists (select 1 from "holdfast_hold" held where held.queues is null or q.name in (select value from
    json_each(held.queues)))
  and (coalesce(q.limited_until, 0) <= ? or exists (select 1 from "holdfast_returned_capacity" f where f.queue =
      q.name))
order by q.name;

-- adopt
-- with names
insert into "holdfast_uncounted_job" (queue, id, token)
select l.queue, (select known.id from "holdfast_job" known where known.seq = r.seq), r.token from "holdfast_claim" c
    cross join json_each(c.ids) o
join "holdfast_ready" r on r.seq = o.value and r.token = c.token
join "holdfast_job_type" l on l.id = r.job_type
where (select k.counted from json_each(c.ids) e cross join "holdfast_ready" k on k.seq = e.value and k.token = c.token
    limit 1) is not 2
  and l.queue in (select value from json_each(?)) and coalesce(r.counted, 0) & 2 = 0
on conflict (queue, id, token) do nothing;

-- uncountedJobs, 1 of 2
-- with names
delete from "holdfast_uncounted_job" where queue in (select value from json_each(?))
  and not exists (select 1 from "holdfast_ready" r where r.seq = (select known.seq from "holdfast_job" known where
      known.id = "holdfast_uncounted_job".id) and r.token = "holdfast_uncounted_job".token);

-- uncountedJobs, 2 of 2
-- with names
select queue, count(*) as n from "holdfast_uncounted_job" where queue in (select value from json_each(?)) group by queue;

-- takeWakeups, 1 of 3
-- with queues, names, names, names, queues, now
with
  scope as materialized (
    select l.id as job_type, l.queue, q.value ->> 'group' as grp
    from json_each(?) q join "holdfast_job_type" l on q.value ->> 'queue' is null or l.queue = q.value ->> 'queue'
    where l.laned and (? is null or l.name in (select value from json_each(?)))
      and (? is not null or not exists (select 1 from "holdfast_definition" m where m.name = l.name and m.is_machine))
  ),
      mine as materialized (
        select b.lane from scope s cross join "holdfast_lane_wakeup" b on b.job_type = s.job_type
        union
        select b.lane from "holdfast_job_type" l cross join "holdfast_lane_wakeup" b on b.job_type = l.id and b.back > 0
        where l.laned and l.id not in (select job_type from scope) and exists (select 1 from json_each(?) w where
            w.value ->> 'queue' is null or w.value ->> 'queue' = l.queue)
      )
      select b.lane, b.job_type, b.at from mine m cross join "holdfast_lane_wakeup" b on b.lane = m.lane and b.at <
          8633688480000000
      union all select w.lane, w.job_type, 0 from scope s cross join "holdfast_lane_rotation" w on w.job_type =
          s.job_type and w.wake_at <= ?
      union all select m.lane, null, null from mine m cross join "holdfast_lane" a on a.id = m.lane and a.running >=
          a.concurrency
        where exists (select 1 from "holdfast_lane_wakeup" b where b.lane = m.lane and b.back > 0);

-- takeWakeups, 2 of 3
-- with queues, names, names, names, queues
with
  scope as materialized (
    select l.id as job_type, l.queue, q.value ->> 'group' as grp
    from json_each(?) q join "holdfast_job_type" l on q.value ->> 'queue' is null or l.queue = q.value ->> 'queue'
    where l.laned and (? is null or l.name in (select value from json_each(?)))
      and (? is not null or not exists (select 1 from "holdfast_definition" m where m.name = l.name and m.is_machine))
  ),
      mine as materialized (
        select b.lane from scope s cross join "holdfast_lane_wakeup" b on b.job_type = s.job_type
        union
        select b.lane from "holdfast_job_type" l cross join "holdfast_lane_wakeup" b on b.job_type = l.id and b.back > 0
        where l.laned and l.id not in (select job_type from scope) and exists (select 1 from json_each(?) w where
            w.value ->> 'queue' is null or w.value ->> 'queue' = l.queue)
      )
      update "holdfast_lane" set running = max(0, running - (select sum(b.back) from "holdfast_lane_wakeup" b where
          b.lane = "holdfast_lane".id))
      where id in (select b.lane from mine m cross join "holdfast_lane_wakeup" b on b.lane = m.lane and b.back > 0);

-- takeWakeups, 3 of 3
-- with queues, names, names, names, queues
with
  scope as materialized (
    select l.id as job_type, l.queue, q.value ->> 'group' as grp
    from json_each(?) q join "holdfast_job_type" l on q.value ->> 'queue' is null or l.queue = q.value ->> 'queue'
    where l.laned and (? is null or l.name in (select value from json_each(?)))
      and (? is not null or not exists (select 1 from "holdfast_definition" m where m.name = l.name and m.is_machine))
  ),
      mine as materialized (
        select b.lane from scope s cross join "holdfast_lane_wakeup" b on b.job_type = s.job_type
        union
        select b.lane from "holdfast_job_type" l cross join "holdfast_lane_wakeup" b on b.job_type = l.id and b.back > 0
        where l.laned and l.id not in (select job_type from scope) and exists (select 1 from json_each(?) w where
            w.value ->> 'queue' is null or w.value ->> 'queue' = l.queue)
      ) delete from "holdfast_lane_wakeup" where lane in (select lane from mine);

-- scheduleRotations
-- with rows, full, now, now
insert into "holdfast_lane_rotation" as w (lane, job_type, vtime, active, wake_at)
with due as materialized (
  select d.lane, d.job_type, min(d.at) as at from (
    select n.value ->> 'lane' as lane, n.value ->> 'jobType' as job_type, n.value ->> 'at' as at from json_each(?) n
    union all select f.lane, f.job_type, 0 from json_each(?) o cross join "holdfast_lane_rotation" f on f.lane = o.value
  ) d group by d.lane, d.job_type
)
select d.lane, d.job_type, coalesce(
    (select f.vtime from "holdfast_lane_rotation" f where f.job_type = d.job_type and f.active order by f.vtime limit
        1),
    (select f.vtime from "holdfast_lane_rotation" f where f.job_type = d.job_type and not f.active order by f.vtime desc
        limit 1), 0),
  d.at <= ?, case when d.at > ? then d.at end
from due d where not exists (select 1 from "holdfast_lane_rotation" x where x.lane = d.lane and x.job_type = d.job_type
    and x.active)
on conflict (lane, job_type) do update set
  active = excluded.active,
  vtime = case when excluded.active then max(w.vtime, excluded.vtime) else w.vtime end,
  wake_at = case when not excluded.active then min(coalesce(w.wake_at, excluded.wake_at), excluded.wake_at) end;

-- pickRotations
-- with queues, names, names, names, now, limitedQueues, now, names, now, now, names, most
  with
scope as materialized (
  select l.id as job_type, l.queue, q.value ->> 'group' as grp
  from json_each(?) q join "holdfast_job_type" l on q.value ->> 'queue' is null or l.queue = q.value ->> 'queue'
  where l.laned and (? is null or l.name in (select value from json_each(?)))
    and (? is not null or not exists (select 1 from "holdfast_definition" m where m.name = l.name and m.is_machine)) and
  not exists (select 1 from "holdfast_queue" stop where stop.name = l.queue and (stop.paused_at is not null or
      stop.cool_until > ?))
  and not exists (select 1 from "holdfast_hold" held where held.queues is null or l.queue in (select value from
      json_each(held.queues)))
    and (l.queue in (select value from json_each(?)) or not exists (select 1 from "holdfast_queue" g where g.name =
        l.queue and g.limited))
)
  select s.queue, s.grp, w.job_type, w.lane, w.vtime, a.key, a.running, a.concurrency, a.rate_limit, a.rate_per,
      a.weight, a.paused_at, a.starts, ? as now
  from scope s cross join "holdfast_lane_rotation" w on w.job_type = s.job_type
    and w.lane in (select f.lane from "holdfast_lane_rotation" f where f.job_type = s.job_type and f.active and (? is
        not null or not exists (select 1 from "holdfast_ready" c where c.lane = f.lane and c.job_type = f.job_type and
        c.token is null and c.run_at <= ?) or exists (select 1 from "holdfast_ready" c where c.lane = f.lane and
        c.job_type = f.job_type and c.token is null and c.run_at <= ? and (? is not null or not exists (
      select 1 from "holdfast_job" p where p.seq = c.seq
        and (p.extras like '{"step":%' or (c.begun and (select 1 from "holdfast_step" e where e.job = p.id limit 1) is
            not null)))))) order by f.vtime, f.lane limit ?)
  join "holdfast_lane" a on a.id = w.lane;

-- takeLaned, 1 of 5
-- with rotations, direction, direction, now, names, most, direction, session, now, session, rates, now, names, most,
--     direction, now, names, most, direction, now, names, most, direction, now, names, most
insert into "holdfast_claim" (session, ids, rates)
      with recursive
  wanted as materialized (
    select w.value ->> 'lane' as lane, w.value ->> 'jobType' as job_type, w.value ->> 'limit' as n from json_each(?) w
  ),
  level_of (lane, job_type, n, rank, nth) as (
    select w.lane, w.job_type, w.n, case when ? > 0 then (select r.rank from "holdfast_ready" r
          where r.lane = w.lane and r.job_type = w.job_type and r.token is null
          order by r.rank limit 1) else (select r.rank from "holdfast_ready" r
          where r.lane = w.lane and r.job_type = w.job_type and r.token is null
          order by r.rank desc limit 1) end, 1 from wanted w
    union all
    select l.lane, l.job_type, case when case when ? > 0 then (select r.rank from "holdfast_ready" r
          where r.lane = l.lane and r.job_type = l.job_type and r.token is null and r.rank > l.rank
          order by r.rank limit 1) else (select r.rank from "holdfast_ready" r
          where r.lane = l.lane and r.job_type = l.job_type and r.token is null and r.rank < l.rank
          order by r.rank desc limit 1) end is null then 0 else l.n - (
        select count(*) from (select 1 from "holdfast_ready" c
          where c.lane = l.lane and c.job_type = l.job_type and c.rank = l.rank and c.token is null and c.run_at <= ?
              and (? is not null or not exists (
        select 1 from "holdfast_job" p where p.seq = c.seq
          and (p.extras like '{"step":%' or (c.begun and (select 1 from "holdfast_step" e where e.job = p.id limit 1) is
              not null)))) limit ?)) end,
      case when ? > 0 then (select r.rank from "holdfast_ready" r
          where r.lane = l.lane and r.job_type = l.job_type and r.token is null and r.rank > l.rank
          order by r.rank limit 1) else (select r.rank from "holdfast_ready" r
          where r.lane = l.lane and r.job_type = l.job_type and r.token is null and r.rank < l.rank
          order by r.rank desc limit 1) end, l.nth + 1
    from level_of l where l.rank is not null and l.n > 0 and l.nth < 64
  ),
      level as materialized (
        select l.lane, l.job_type, l.n, l.rank, l.nth, count(*) over (partition by l.lane, l.job_type) as ranks
        from level_of l where l.rank is not null and exists (select 1 from "holdfast_session" s where s.id = ? and
            s.lease_until > ?)
      )
      -- A lane with one priority has nothing to share: the index alone answers.
      select ?, json_group_array(seq), ? from (
        select o.value as seq from level l cross join json_each((
          select json_group_array(c.seq) from (
            select c.seq from "holdfast_ready" c where
            c.lane = l.lane and c.job_type = l.job_type and c.rank = l.rank and c.token is null and c.run_at <= ? and (?
                is not null or not exists (
        select 1 from "holdfast_job" p where p.seq = c.seq
          and (p.extras like '{"step":%' or (c.begun and (select 1 from "holdfast_step" e where e.job = p.id limit 1) is
              not null))))
            order by c.run_at, c.seq limit ?
          ) c)) o
        where l.ranks = 1 and o.key < l.n
        union all
        select seq from (
          select r.seq, max(l.n) over (partition by l.lane, l.job_type) as asked, row_number() over (partition by
              l.lane, l.job_type order by r.rank * ?, r.run_at, r.seq) as ordinal
          from level l cross join "holdfast_ready" r
          where l.ranks > 1 and l.n > 0 and r.seq in (
            select seq from (select c.seq from "holdfast_ready" c where
            c.lane = l.lane and c.job_type = l.job_type and c.rank = l.rank and c.token is null and c.run_at <= ? and (?
                is not null or not exists (
        select 1 from "holdfast_job" p where p.seq = c.seq
          and (p.extras like '{"step":%' or (c.begun and (select 1 from "holdfast_step" e where e.job = p.id limit 1) is
              not null))))
            order by c.run_at, c.seq limit ?)
            union all
          select seq from (
            select c.seq from "holdfast_ready" c
            where ? > 0 and l.nth = 64 and c.lane = l.lane and c.job_type = l.job_type and c.rank > l.rank
              and c.token is null and c.run_at <= ? and (? is not null or not exists (
        select 1 from "holdfast_job" p where p.seq = c.seq
          and (p.extras like '{"step":%' or (c.begun and (select 1 from "holdfast_step" e where e.job = p.id limit 1) is
              not null))))
            order by c.rank, c.run_at, c.seq limit ?)
            union all
          select seq from (
            select c.seq from "holdfast_ready" c
            where ? < 0 and l.nth = 64 and c.lane = l.lane and c.job_type = l.job_type and c.rank < l.rank
              and c.token is null and c.run_at <= ? and (? is not null or not exists (
        select 1 from "holdfast_job" p where p.seq = c.seq
          and (p.extras like '{"step":%' or (c.begun and (select 1 from "holdfast_step" e where e.job = p.id limit 1) is
              not null))))
            order by c.rank desc, c.run_at, c.seq limit ?))
        ) where ordinal <= asked
      ) having count(*) > 0;

-- takeLaned, 2 of 5
-- with session, now, counted
update "holdfast_ready" set token = last_insert_rowid(), session = ?, attempt = min(attempt + 1, 32767), started_at = ?,
    counted = 1 + 2 * (job_type in (select value from json_each(?)))
  where seq in (select o.value from "holdfast_claim" c, json_each(c.ids) o where c.token = case when changes() > 0 then
      last_insert_rowid() end);

-- takeLaned, 3 of 5
select j.id, r.seq as row_key, r.job_type, r.rank, r.run_at, r.token, r.attempt, r.started_at, r.lane as lane_id,
    r.counted, j.input, j.max_attempts, case when r.crashes > 0 or r.begun
      or coalesce(r.errors, j.timeout_ms, j.key, j.context, j.parent_id, j.deadline_at, j.extras) is not null
    then json_object('crashes', r.crashes, 'begun', r.begun, 'undoing', r.undoing, 'errors', r.errors, 'timeout_ms',
        j.timeout_ms,
      'key', j.key, 'context', j.context, 'parent_id', j.parent_id, 'deadline_at', j.deadline_at, 'extras', j.extras)
  end as rest
  from "holdfast_claim" c, json_each(c.ids) o cross join "holdfast_ready" r on r.seq = o.value cross join "holdfast_job"
      j on j.seq = r.seq
  where c.token = case when changes() > 0 then last_insert_rowid() end;

-- takeLaned, 4 of 5
-- with rotations.limit, now, rotations.lane
update "holdfast_lane" set running = running + ?, used_at = ? where id = ?;

-- takeLaned, 5 of 5
-- with rotations.by, rotations.lane, rotations.jobType
update "holdfast_lane_rotation" set vtime = vtime + ? where lane = ? and job_type = ?;

-- takeLimited, 1 of 3
-- with queues, names, names, names, direction, session, now, direction, now, names, session, rates, direction, now,
--     names, most, direction, now, names, most, direction, now, names, most
insert into "holdfast_claim" (session, ids, rates)
      with recursive scope as materialized (
        select l.id as job_type, q.value ->> 'group' as grp, q.value ->> 'limit' as n
        from json_each(?) q join "holdfast_job_type" l on l.queue = q.value ->> 'queue'
        where not l.laned and (? is null or l.name in (select value from json_each(?)))
          and (? is not null or not exists (select 1 from "holdfast_definition" m where m.name = l.name and
              m.is_machine))
      ),
  level (job_type, rank, grp, n, nth) as (
    select s.job_type, case when ? > 0
      then (select r.rank from "holdfast_ready" r where r.job_type = s.job_type and r.token is null order by r.rank asc
          limit 1)
      else (select r.rank from "holdfast_ready" r where r.job_type = s.job_type and r.token is null order by r.rank desc
          limit 1) end, s.grp, s.n, 1 from scope s where exists (select 1 from "holdfast_session" s where s.id = ? and
          s.lease_until > ?)
    union all
    select l.job_type, case when ? > 0
      then (select r.rank from "holdfast_ready" r where r.job_type = l.job_type and r.token is null and r.rank > l.rank
          order by r.rank asc limit 1)
      else (select r.rank from "holdfast_ready" r where r.job_type = l.job_type and r.token is null and r.rank < l.rank
          order by r.rank desc limit 1) end, l.grp, l.n - (
      select count(*) from (
        select 1 from "holdfast_ready" r where r.job_type = l.job_type and r.rank = l.rank and r.token is null and
            r.run_at <= ?
          and (? is not null or not exists (
        select 1 from "holdfast_job" p where p.seq = r.seq
          and (p.extras like '{"step":%' or (r.begun and (select 1 from "holdfast_step" e where e.job = p.id limit 1) is
              not null)))) limit (select max(n) from scope))), l.nth + 1
    from level l where l.rank is not null and l.n > 0 and l.nth < (select max(20, 1000 / max(count(*), 1)) from scope)
  )
      select ?, json_group_array(seq), ? from (
        select seq from (
        select r.seq, s.n, row_number() over (partition by l.grp order by r.rank * ?, r.run_at, r.seq) as ordinal
        from level l join scope s on s.job_type = l.job_type cross join "holdfast_ready" r
        where l.rank is not null and l.n > 0 and r.seq in (
          select seq from (
            select c.seq from "holdfast_ready" c where c.rank = l.rank and c.job_type = l.job_type and c.token is null
                and c.run_at <= ? and (? is not null or not exists (
        select 1 from "holdfast_job" p where p.seq = c.seq
          and (p.extras like '{"step":%' or (c.begun and (select 1 from "holdfast_step" e where e.job = p.id limit 1) is
              not null)))) order by c.run_at, c.seq limit ?)
          union all
          select seq from (
            select c.seq from "holdfast_ready" c
            where c.rank > iif(l.nth = (select max(20, 1000 / max(count(*), 1)) from scope) and ? > 0, l.rank,
                9223372036854775807) and c.job_type = l.job_type and c.token is null and c.run_at <= ? and (? is not
                null or not exists (
        select 1 from "holdfast_job" p where p.seq = c.seq
          and (p.extras like '{"step":%' or (c.begun and (select 1 from "holdfast_step" e where e.job = p.id limit 1) is
              not null))))
            order by c.rank, c.token, c.run_at, c.seq limit ?)
          union all
          select seq from (
            select c.seq from "holdfast_ready" c
            where c.rank < iif(l.nth = (select max(20, 1000 / max(count(*), 1)) from scope) and ? < 0, l.rank,
                -9223372036854775807) and c.job_type = l.job_type and c.token is null and c.run_at <= ? and (? is not
                null or not exists (
        select 1 from "holdfast_job" p where p.seq = c.seq
          and (p.extras like '{"step":%' or (c.begun and (select 1 from "holdfast_step" e where e.job = p.id limit 1) is
              not null))))
            order by c.rank desc, c.token desc, c.run_at, c.seq limit ?))
        ) where ordinal <= n order by ordinal
      ) having count(*) > 0;

-- takeLimited, 2 of 3
-- with session, now
update "holdfast_ready" set token = last_insert_rowid(), session = ?, attempt = min(attempt + 1, 32767), started_at = ?,
    counted = 2
  where seq in (select o.value from "holdfast_claim" c, json_each(c.ids) o where c.token = case when changes() > 0 then
      last_insert_rowid() end);

-- takeLimited, 3 of 3
select j.id, r.seq as row_key, r.job_type, r.rank, r.run_at, r.token, r.attempt, r.started_at, r.lane as lane_id,
    r.counted, j.input, j.max_attempts, case when r.crashes > 0 or r.begun
      or coalesce(r.errors, j.timeout_ms, j.key, j.context, j.parent_id, j.deadline_at, j.extras) is not null
    then json_object('crashes', r.crashes, 'begun', r.begun, 'undoing', r.undoing, 'errors', r.errors, 'timeout_ms',
        j.timeout_ms,
      'key', j.key, 'context', j.context, 'parent_id', j.parent_id, 'deadline_at', j.deadline_at, 'extras', j.extras)
  end as rest, (select l.queue from "holdfast_job_type" l where l.id = r.job_type) as queue
  from "holdfast_claim" c, json_each(c.ids) o cross join "holdfast_ready" r on r.seq = o.value cross join "holdfast_job"
      j on j.seq = r.seq
  where c.token = case when changes() > 0 then last_insert_rowid() end;

-- dropStrays
-- with ids, session
select value as id from json_each(?) where false and ? is not null;

-- laneHeads
-- with rotations, now
  with recursive
wanted as materialized (
  select w.value ->> 'lane' as lane, w.value ->> 'jobType' as job_type, w.value ->> 'limit' as n from json_each(?) w
),
level_of (lane, job_type, rank, nth) as (
  select w.lane, w.job_type,
    (select r.rank from "holdfast_ready" r where r.lane = w.lane and r.job_type = w.job_type and r.token is null order
        by r.rank limit 1), 1 from wanted w
  union all
  select l.lane, l.job_type,
    (select r.rank from "holdfast_ready" r where r.lane = l.lane and r.job_type = l.job_type and r.token is null and
        r.rank > l.rank order by r.rank limit 1), l.nth + 1
  from level_of l where l.rank is not null and l.nth < 64
)
  select l.lane, l.job_type, min(min(
      (select r.run_at from "holdfast_ready" r
        where r.lane = l.lane and r.job_type = l.job_type and r.rank = l.rank and r.token is null order by r.run_at,
            r.seq limit 1),
      coalesce(case when l.nth = 64 then coalesce(
        (select r.run_at from "holdfast_ready" r where r.lane = l.lane and r.job_type = l.job_type and r.token is null
            and r.rank > l.rank and r.run_at <= ? limit 1),
        (select min(r.run_at) from "holdfast_ready" r where r.lane = l.lane and r.job_type = l.job_type and r.token is
            null and r.rank > l.rank)) end, 8633688480000000))) as at
  from level_of l where l.rank is not null group by l.lane, l.job_type;

-- moveRotations, 1 of 2
-- with lanes.n, lanes.starts, lanes.lane
update "holdfast_lane" set running = running + ?, starts = ? where id = ?;

-- moveRotations, 2 of 2
-- with rotations.by, rotations.active, rotations.wakeAt, rotations.lane, rotations.jobType
update "holdfast_lane_rotation" set vtime = vtime + ?, active = ?, wake_at = ? where lane = ? and job_type = ?;

-- updateLimitedQueues
-- with rows.n, rows.starts, rows.limitedUntil, rows.adoptUntil, rows.queue
update "holdfast_queue" set running = running + ?, starts = ?, limited_until = ?, adopt_until = ?
where name = ?;

-- checkLimitedDue
-- with queues, names, names, names, now, queues, now, names, names, names, now, now, now, now
  with
scope as materialized (
  select l.id as job_type, l.queue, q.value ->> 'group' as grp
  from json_each(?) q join "holdfast_job_type" l on q.value ->> 'queue' is null or l.queue = q.value ->> 'queue'
  where l.laned and (? is null or l.name in (select value from json_each(?)))
    and (? is not null or not exists (select 1 from "holdfast_definition" m where m.name = l.name and m.is_machine)) and
  not exists (select 1 from "holdfast_queue" stop where stop.name = l.queue and (stop.paused_at is not null or
      stop.cool_until > ?))
  and not exists (select 1 from "holdfast_hold" held where held.queues is null or l.queue in (select value from
      json_each(held.queues)))
),
  limited_queue as materialized (
    select q.name, case when exists (select 1 from "holdfast_returned_capacity" f where f.queue = q.name) then 0 else
        coalesce(q.limited_until, 0) end as limited_until
    from "holdfast_queue" q
    where q.limited and exists (select 1 from json_each(?) w where w.value ->> 'queue' is null or w.value ->> 'queue' =
        q.name) and
  not exists (select 1 from "holdfast_queue" stop where stop.name = q.name and (stop.paused_at is not null or
      stop.cool_until > ?))
  and not exists (select 1 from "holdfast_hold" held where held.queues is null or q.name in (select value from
      json_each(held.queues)))
  ),
  limited_job_type as materialized (
    select l.id as job_type, g.limited_until from limited_queue g
    join "holdfast_job_type" l on l.queue = g.name and not l.laned and (? is null or l.name in (select value from
        json_each(?)))
      and (? is not null or not exists (select 1 from "holdfast_definition" m where m.name = l.name and m.is_machine))
  )
  select ? as now, min(
    coalesce(
      (select ? from (
        with recursive looked (job_type, rank, nth) as (
      select s.job_type, (select r.rank from "holdfast_ready" r where r.job_type = s.job_type and r.token is null order
          by r.rank asc limit 1), 1 from limited_job_type s
      union all
      select l.job_type, (select r.rank from "holdfast_ready" r where r.job_type = l.job_type and r.token is null and
          r.rank > l.rank order by r.rank asc limit 1), l.nth + 1
      from looked l where l.rank is not null and l.nth < (select max(20, 1000 / max(count(*), 1)) from limited_job_type)
    )
        select max((select r.run_at from "holdfast_ready" r where r.job_type = l.job_type and r.rank = l.rank and
            r.token is null order by r.run_at, r.seq limit 1), (select g.limited_until from limited_job_type g where
            g.job_type = l.job_type)) as at from looked l where l.rank is not null
        union all
        select max((select r.run_at from "holdfast_ready" r where r.job_type = l.job_type and r.token is null and r.rank
            > l.rank and r.run_at <= ? limit 1), (select g.limited_until from limited_job_type g where g.job_type =
            l.job_type)) from looked l where l.rank is not null and l.nth = (select max(20, 1000 / max(count(*), 1))
            from limited_job_type)
      ) where at <= ? limit 1),
      (select min(at) from (
        with recursive looked (job_type, rank, nth) as (
      select s.job_type, (select r.rank from "holdfast_ready" r where r.job_type = s.job_type and r.token is null order
          by r.rank asc limit 1), 1 from limited_job_type s
      union all
      select l.job_type, (select r.rank from "holdfast_ready" r where r.job_type = l.job_type and r.token is null and
          r.rank > l.rank order by r.rank asc limit 1), l.nth + 1
      from looked l where l.rank is not null and l.nth < (select max(20, 1000 / max(count(*), 1)) from limited_job_type)
    )
        select max((select r.run_at from "holdfast_ready" r where r.job_type = l.job_type and r.rank = l.rank and
            r.token is null order by r.run_at, r.seq limit 1), (select g.limited_until from limited_job_type g where
            g.job_type = l.job_type)) as at from looked l where l.rank is not null
        union all
        select max((select min(r.run_at) from "holdfast_ready" r where r.job_type = l.job_type and r.token is null and
            r.rank > l.rank), (select g.limited_until from limited_job_type g where g.job_type = l.job_type)) from
            looked l where l.rank is not null and l.nth = (select max(20, 1000 / max(count(*), 1)) from
            limited_job_type)
      )), 8633688480000000),
    coalesce((select min(max(coalesce((select g.limited_until from limited_queue g where g.name = s.queue), 0),
        coalesce(
        case when exists (select 1 from "holdfast_lane_wakeup" b where b.job_type = s.job_type) then 0 end,
        case when exists (select 1 from "holdfast_lane_rotation" w where w.job_type = s.job_type and w.active) then 0
            end,
        (select min(w.wake_at) from "holdfast_lane_rotation" w where w.job_type = s.job_type and w.wake_at is not null),
            8633688480000000)))
      from scope s), 8633688480000000)
  ) as due_at;

-- returnLaneCapacity, 1 of 2
-- with rows.jobType, rows.lane, rows.n
insert into "holdfast_lane_wakeup" (job_type, lane, at, back) values (?, ?, 8633688480000000, ?)
  on conflict (job_type, lane) do update set back = back + excluded.back;

-- returnLaneCapacity, 2 of 2
-- with rows
select distinct queue from "holdfast_lane" where id in (select r.value ->> 'lane' from json_each(?) r) and running >=
    concurrency;

-- returnQueueCapacity, 1 of 2
-- with rows.queue, rows.n
insert into "holdfast_returned_capacity" (queue, n) values (?, ?) on conflict (queue) do update set n = n + excluded.n;

-- returnQueueCapacity, 2 of 2
-- with rows.queue
select name as queue from "holdfast_queue" where name = ? and limited_until >= 8633688480000000;

-- takeReturnedCapacity
-- with names
delete from "holdfast_returned_capacity" where queue in (select value from json_each(?)) returning queue, n;

-- lockLanes
-- with ids
select id, starts from "holdfast_lane" where id in (select value from json_each(?));

-- laneStarts, 1 of 2
-- with rows.starts, rows.lane
update "holdfast_lane" set starts = ? where id = ?;

-- laneStarts, 2 of 2
-- with rows.lane
insert into "holdfast_lane_wakeup" (job_type, lane, at) select w.job_type, w.lane, 0 from "holdfast_lane_rotation" w
    where w.lane = ?
on conflict (job_type, lane) do update set at = min(at, excluded.at);

-- lockQueues
-- with names, throttled
select name, starts from "holdfast_queue"
where name in (select value from json_each(?)) or cool_base_ms is not null
  and name in (select l.queue from "holdfast_ready" r join "holdfast_job_type" l on l.id = r.job_type where r.seq in
      (select known.seq from "holdfast_job" known where known.id in (select value from json_each(?))));

-- queueStarts
-- with rows.starts, rows.queue
update "holdfast_queue" set starts = ?, limited_until = null where name = ?;

-- setLane
-- with queue, key, concurrency, rateLimit, ratePer, weight, paused, now, tuned, now, tuned, tuned, tuned, tuned,
--     paused, paused, now, tuned, standard
insert into "holdfast_lane" as a (queue, key, concurrency, rate_limit, rate_per, weight, paused_at, tuned, used_at)
values (?, ?, ?, ?, ?, coalesce(?, 1), case when ? then ? end, ?, ?)
on conflict (queue, key) do update set
  concurrency = case when ? then excluded.concurrency else a.concurrency end,
  rate_limit = case when ? then excluded.rate_limit else a.rate_limit end,
  rate_per = case when ? then excluded.rate_per else a.rate_per end,
  weight = case when ? then excluded.weight else a.weight end,
  paused_at = case when ? is null then a.paused_at when ? then coalesce(a.paused_at, ?) end,
  standard = case when ? and not a.tuned then ? else a.standard end,
  tuned = a.tuned or excluded.tuned
returning id;

-- wakeLane
-- with lane
insert into "holdfast_lane_wakeup" (job_type, lane, at) select job_type, lane, 0 from "holdfast_lane_rotation" where
    lane = ?
on conflict (job_type, lane) do update set at = min(at, excluded.at);

-- tuneLanes
-- with rows.concurrency, rows.rateLimit, rows.ratePer, rows.weight, rows.name, rows.concurrency, rows.rateLimit,
--     rows.ratePer, rows.weight
update "holdfast_lane" set concurrency = ?, rate_limit = ?, rate_per = ?, weight = coalesce(?, 1)
where not tuned and queue in (select l.queue from "holdfast_job_type" l where l.name = ? and l.laned)
  and (concurrency is not ? or rate_limit is not ? or rate_per is not ?
    or weight is not coalesce(?, 1))
returning id;

-- laneRows
-- with now, queue, queue, key, key, after, limit
select a.*, ? as now, coalesce((select sum(b.back) from "holdfast_lane_wakeup" b where b.lane = a.id), 0) as back,
  (select count(*) from (select 1 from "holdfast_ready" r where r.lane = a.id and r.token is null limit 10000) capped)
      as waiting
from "holdfast_lane" a
where (? is null or a.queue = ?) and (? is null or a.key = ?) and a.id > ?
order by a.id limit ?;

-- temporaryLimits
-- with due, now
select kind, name, set_at, until_at, back from "holdfast_temporary_limit" where not ? or until_at <= ? order by
    until_at, kind, name;

-- lockTemporaryLimit
-- with kind, name
select until_at, back from "holdfast_temporary_limit" where kind = ? and name = ?;

-- putTemporaryLimit
-- with kind, name, now, at, now, delay, back
insert into "holdfast_temporary_limit" (kind, name, set_at, until_at, back) values (?, ?, ?, coalesce(?, ? + ?), ?)
on conflict (kind, name) do update set until_at = excluded.until_at, back = excluded.back;

-- deleteTemporaryLimit
-- with kind, name
delete from "holdfast_temporary_limit" where kind = ? and name = ?;

-- untuneLane
-- with queue, key
update "holdfast_lane" set tuned = false where queue = ? and key = ?;

-- laneDefaults
-- with queue
select k.lanes from "holdfast_definition" k where k.has_lane and k.name in (select l.name from "holdfast_job_type" l
    where l.queue = ? and l.laned)
order by k.seen_at desc, k.name desc limit 1;

-- resetLane
-- with concurrency, rateLimit, ratePer, weight, drop, drop, now, queue, key
update "holdfast_lane" set concurrency = ?, rate_limit = ?, rate_per = ?, weight = coalesce(?, 1),
  starts = null, tuned = 0, paused_at = case when not ? then paused_at end,
  used_at = case when ? then min(used_at, ? - 518400000) else used_at end
where queue = ? and key = ? returning id, exists (select 1 from "holdfast_ready" r where r.lane = "holdfast_lane".id and
    r.token is null) as occupied;

-- queueUse
-- with now
select q.name, q.settings, q.cool_base_ms, q.cool_max_ms, q.running, q.starts, ? as now,
  coalesce((select r.n from "holdfast_returned_capacity" r where r.queue = q.name), 0) as back
from "holdfast_queue" q where q.limited order by q.name;

-- throttledLanes
-- with now, limit
select a.*, ? as now, coalesce((select sum(b.back) from "holdfast_lane_wakeup" b where b.lane = a.id), 0) as back,
  (select count(*) from (select 1 from "holdfast_ready" r where r.lane = a.id and r.token is null limit 10000) capped)
      as waiting
from "holdfast_lane" a where a.id in (
  select f.id from (
    select c.id, (select count(*) from (select 1 from "holdfast_ready" r where r.lane = c.id and r.token is null limit
        100) few) as n
    from (
      select l.id from "holdfast_lane" l
      where l.paused_at is not null or (l.concurrency is not null and l.running >= l.concurrency) or (l.rate_limit is
          not null and l.starts is not null)
      order by l.id limit 500
    ) c
  ) f where f.n > 0 order by f.n desc, f.id limit ?
);

-- deleteUnusedLanes, 1 of 3
-- with now
delete from "holdfast_lane" where id in (
  select a.id from "holdfast_lane" a where not a.tuned and a.paused_at is null and a.running = 0 and a.used_at < ? -
      604800000
    and not exists (select 1 from "holdfast_ready" r where r.lane = a.id) limit 1000);

-- deleteUnusedLanes, 2 of 3
delete from "holdfast_lane_rotation" where not exists (select 1 from "holdfast_lane" a where a.id =
    "holdfast_lane_rotation".lane);

-- deleteUnusedLanes, 3 of 3
delete from "holdfast_lane_wakeup" where not exists (select 1 from "holdfast_lane" a where a.id =
    "holdfast_lane_wakeup".lane);

-- whyJob
-- with now, id
select r.note, r.throttles, r.counted, ? as now, q.limited, q.running as queue_running, q.starts as queue_starts,
    q.settings,
  a.id as lane_id, a.running, a.concurrency, a.rate_limit, a.rate_per, a.weight, a.paused_at, a.starts,
  coalesce((select sum(b.back) from "holdfast_lane_wakeup" b where b.lane = a.id), 0) as back,
  (select count(*) from "holdfast_uncounted_job" g where g.queue = l.queue)
    - coalesce((select sum(f.n) from "holdfast_returned_capacity" f where f.queue = l.queue), 0) as uncounted_jobs
from "holdfast_ready" r join "holdfast_job_type" l on l.id = r.job_type left join "holdfast_queue" q on q.name = l.queue
    left join "holdfast_lane" a on a.id = r.lane
where r.seq = (select known.seq from "holdfast_job" known where known.id = ?);

-- breakerRows
-- with now, now, keys, keys
select b.*, ? as now, exists (select 1 from "holdfast_session" s where s.id = b.probe_session and s.lease_until > ?) as
    probing
from "holdfast_breaker" b where ? is null or b.key in (select value from json_each(?)) order by b.key;

-- addBreakers
-- with keys
insert into "holdfast_breaker" (key) select value from json_each(?) where true on conflict (key) do nothing;

-- lockBreakers
-- with now, keys
select b.*, ? as now from "holdfast_breaker" b where b.key in (select value from json_each(?)) order by b.key;

-- writeBreakers
-- with rows.failures, rows.openedAt, rows.openUntil, rows.probe, rows.error, rows.counted, rows.key
update "holdfast_breaker" set failures = ?, opened_at = ?, open_until = ?, probe_session = ?, error = ?,
  counted = ?
where key = ?;

-- probeBreaker
-- with session, key, now, session, now
update "holdfast_breaker" set probe_session = ?
where key = ? and open_until <= ?
  and (probe_session = ? or not exists (select 1 from "holdfast_session" s where s.id = "holdfast_breaker".probe_session
      and s.lease_until > ?))
returning key;

-- unprobeBreaker
-- with key, session
update "holdfast_breaker" set probe_session = null where key = ? and probe_session = ? returning key;

-- resetBreaker
-- with key
delete from "holdfast_breaker" where key = ? returning key;
