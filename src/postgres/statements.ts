/**
 * The catalogue for Postgres. Read it beside sqlite/statements.ts: same names, same order, same parameters.
 *
 * What is Postgres's own here, and why:
 *  - `for update skip locked` lets claimers pass each other; the shares are counted first (`share`), so that the order
 *    over several kinds of one queue is exact and no row is locked that is not taken.
 *  - The claim is a HOT update: no column that it changes is in an index (fillfactor 42 leaves room on the page).
 *  - `ctid = any(array(...))` and `id = any(...)` cannot be planned as a join, so stale statistics cannot hurt them.
 *  - `id between` the least and the greatest id of a batch prunes the partitions of `job` once for each statement.
 *  - Instants are bigint milliseconds; `statement_timestamp()` because a volatile clock could not be an index condition.
 */
import type { Statements, Tables } from "../sql/catalogue.ts";
import { WAITING_AT } from "../job.ts";
import { insightStatements } from "./insight.ts";

const NOW = `coalesce(:now::bigint, (extract(epoch from statement_timestamp()) * 1000)::bigint)`;

export function statements(t: Tables): Statements {
  /** A queue from which may be claimed now. */
  const open = (queue: string) => `
      not exists (select 1 from ${t.queue} q where q.name = ${queue} and (q.paused_at is not null or q.cool_until > ${NOW}))
      and not exists (select 1 from ${t.hold} h where h.queues is null or ${queue} = any(h.queues))`;
  const alive = `exists (select 1 from ${t.session} s where s.id = :session::bigint and s.lease_until > ${NOW})`;
  const orphaned = (row: string) =>
    `not exists (select 1 from ${t.session} s where s.id = ${row}.session and s.lease_until > ${NOW})`;

  /** The lines in scope, each with its group (whose limit it shares) and that limit. */
  const scope = `
    scope as materialized (
      select l.id as line, l.queue, q.grp, q.n
      from unnest(:queues.queue::text[], :queues.group::text[], :queues.limit::int[]) as q (queue, grp, n)
      join ${t.line} l on q.queue is null or l.queue = q.queue
      where (:names::text[] is null or l.name = any(:names::text[])) and ${open("l.queue")}
    )`;
  /** Every (line, rank) that has rows, found by skipping through the index: one probe for each level. */
  const levels = `
    level_of (line, rank) as (
      select s.line, (select r.rank from ${t.ready} r where r.line = s.line order by r.rank limit 1) from scope s
      union all
      select l.line, (select r.rank from ${t.ready} r where r.line = l.line and r.rank > l.rank order by r.rank limit 1)
      from level_of l where l.rank is not null
    )`;
  const claimable = (level: string) => `
        r.line = ${level}.line and r.rank = ${level}.rank and r.token is null and r.run_at <= ${NOW}
        and (r.run_at, r.id) > (${level}.from_at, ${level}.from_id)
        order by r.run_at, r.id`;
  // Counting shares costs a sort of all candidates (2 µs a job); a single level has nothing to share.
  const take = `
    share as materialized (
      select line, rank, from_at, from_id, n from level where (select count(*) from level) = 1
      union all
      select line, rank, from_at, from_id, count(*)::int as n from (
        select l.line, l.rank, l.from_at, l.from_id, l.n,
               row_number() over (partition by l.grp order by l.rank * :direction::int, h.run_at, h.id) as place
        from level l cross join lateral (
          select r.run_at, r.id from ${t.ready} r where ${claimable("l")} limit l.n
        ) h
        where (select count(*) from level) > 1
      ) placed where place <= n group by line, rank, from_at, from_id
    ),
    ticket as materialized (select nextval('${t.token}') as token),
    taken as (
      update ${t.ready} r
      set token = (select token from ticket), session = :session::bigint, attempt = r.attempt + 1, started_at = ${NOW}
      where r.ctid = any(array(
        select c.tid from share s cross join lateral (
          select r.ctid as tid from ${t.ready} r where ${claimable("s")} limit s.n for update skip locked
        ) c))
      returning r.id, r.line, r.rank, r.run_at, r.token, r.attempt, r.crashes, r.begun, r.started_at, r.errors
    ),
    filed as (
      insert into ${t.claim} (token, session, ids)
      select token, :session::bigint, array_agg(id) from taken group by token
    )
    select c.*, j.input, j.created_at, j.max_attempts, j.timeout_ms, j.key, j.lane, j.context, j.parent_id, j.deadline_at, j.extras
    from (select * from taken order by id offset 0) c
    join (
      select * from ${t.job} where id = any(array(select id from taken))
        and id >= (select id from taken order by id limit 1) and id <= (select id from taken order by id desc limit 1)
      order by id offset 0
    ) j on j.id = c.id`;

  // A spent claim is forgotten under the fence too: one whose session has died is what its orphans are found by.
  const moved = `
    t as materialized (
      select * from unnest(:rows.id::uuid[], :rows.token::bigint[], :rows.state::text[], :rows.output::text[], :rows.errors::text[],
        :rows.errorGroup::text[], :rows.attempt::int[], :rows.crashes::int[], :rows.keep::bool[])
        as t (id, token, state, output, errors, error_group, attempt, crashes, keep)
    )`;
  /** What follows once rows are gone from `ready`: history, unique keys, spent claims. */
  const file = `
    kept as (
      insert into ${t.history} (id, line, rank, state, attempt, crashes, throttles, run_at, started_at, ended_at, session, output, errors, progress, error_group)
      select id, line, rank, state, attempt, crashes, throttles, run_at, started_at, ${NOW}, session, output, errors, progress, error_group from gone where keep
    ),
    dropped as (delete from ${t.job} where id = any(array(select id from gone where not keep))),
    freed as (
      delete from ${t.unique_key} u where u.id = any(:keyed::uuid[]) and u.id = any(array(select id from gone))
        and (u.expires_at is null or u.expires_at <= ${NOW})
    )`;
  const end = (fence: (row: string) => string) => `
    with ${moved},
    gone as (
      delete from ${t.ready} r using t
      where r.id = any(:rows.id::uuid[]) and r.id = t.id and r.token = t.token and ${fence("r")}
      returning r.id, r.line, r.rank, r.throttles, r.run_at, r.started_at, r.session, r.progress,
        t.state, t.output, t.errors, t.error_group, t.attempt, t.crashes, t.keep
    ),${file},
    spent as (delete from ${t.claim} c where c.token = any(:spent::bigint[]) and ${fence("c")})
    select id from gone`;
  const again = (fence: (row: string) => string) => `
    with t as materialized (
      select * from unnest(:rows.id::uuid[], :rows.token::bigint[], :rows.delay::bigint[], :rows.errors::text[], :rows.errorGroup::text[],
        :rows.attempt::int[], :rows.crashes::int[], :rows.throttled::int[], :rows.begun::bool[])
        as t (id, token, delay, errors, error_group, attempt, crashes, throttled, begun)
    ),
    spent as (delete from ${t.claim} c where c.token = any(:spent::bigint[]) and ${fence("c")})
    update ${t.ready} r
    set token = null, session = null, run_at = ${NOW} + t.delay, attempt = t.attempt, crashes = t.crashes,
        errors = t.errors, error_group = coalesce(t.error_group, r.error_group), throttles = r.throttles + t.throttled, begun = r.begun or t.begun
    from t where r.id = any(:rows.id::uuid[]) and r.id = t.id and r.token = t.token and ${fence("r")}
    returning r.id`;

  /** Live and ended jobs under one set of columns. */
  const state = `case when r.token is not null then 'running' when r.run_at >= ${WAITING_AT} then 'waiting'
        when r.run_at > ${NOW} then 'scheduled' else 'ready' end`;
  const jobColumns = `j.input, j.created_at, j.max_attempts, j.key, j.lane, j.context, j.parent_id, l.queue, l.name`;
  const live = `
      select r.id, r.rank, r.attempt, r.crashes, r.run_at, r.started_at, null::bigint as ended_at, r.errors, r.progress, null::text as output,
        s.lease_until, s.worker_id, ${state} as state, ${jobColumns}
      from ${t.ready} r join ${t.job} j on j.id = r.id join ${t.line} l on l.id = r.line left join ${t.session} s on s.id = r.session`;
  const ended = `
      select h.id, h.rank, h.attempt, h.crashes, h.run_at, h.started_at, h.ended_at, h.errors, h.progress, h.output,
        null::bigint as lease_until, s.worker_id, h.state, ${jobColumns}
      from ${t.history} h join ${t.job} j on j.id = h.id join ${t.line} l on l.id = h.line left join ${t.session} s on s.id = h.session`;
  const matches = (row: string, stateOf: string) => `
        (:ids::uuid[] is null or ${row}.id = any(:ids::uuid[]))
        and (:states::text[] is null or ${stateOf} = any(:states::text[]))
        and (:queues::text[] is null or l.queue = any(:queues::text[]))
        and (:names::text[] is null or l.name = any(:names::text[]))
        and (:lane::text is null or j.lane = :lane::text)
        and (:key::text is null or j.key = :key::text)
        and (:since::bigint is null or j.created_at >= :since::bigint)
        and (:until::bigint is null or j.created_at < :until::bigint)
        and (:search::text is null or strpos(lower(j.input collate "C"), :search::text) > 0
          or strpos(lower(j.context collate "C"), :search::text) > 0 or strpos(lower(${row}.errors collate "C"), :search::text) > 0)`;

  return {
    addLines: `
      insert into ${t.line} (queue, name)
      select * from unnest(:rows.queue::text[], :rows.name::text[]) order by 1, 2
      on conflict (queue, name) do nothing`,
    findLines: `
      select l.id, l.queue, l.name from unnest(:rows.queue::text[], :rows.name::text[]) as w (queue, name)
      join ${t.line} l on l.queue = w.queue and l.name = w.name`,
    namesOfLines: `select id, queue, name from ${t.line} where id = any(:ids::int[])`,
    // Plain jobs whose ids nobody has seen. `on conflict` would cost each of them 2.5 µs and 48 bytes of WAL.
    insertNew: `
      with n as materialized (
        select * from unnest(:rows.id::uuid[], :rows.line::int[], :rows.rank::int[], :rows.delay::bigint[], :rows.runAt::bigint[],
          :rows.input::text[], :rows.maxAttempts::int[], :rows.timeout::bigint[], :rows.extras::text[])
          as n (id, line, rank, delay, run_at, input, max_attempts, timeout_ms, extras)
      ),
      added as (
        insert into ${t.job} (id, line, created_at, input, max_attempts, timeout_ms, extras)
        select id, line, ${NOW}, input, max_attempts, timeout_ms, extras from n
      )
      insert into ${t.ready} (id, line, rank, run_at)
      select n.id, n.line, n.rank, coalesce(n.run_at, ${NOW} + coalesce(n.delay, 0)) from n`,
    insertJobs: `
      with n as materialized (
        select * from unnest(:rows.id::uuid[], :rows.line::int[], :rows.rank::int[], :rows.delay::bigint[], :rows.runAt::bigint[],
          :rows.input::text[], :rows.maxAttempts::int[], :rows.timeout::bigint[], :rows.deadline::bigint[], :rows.parent::uuid[],
          :rows.key::text[], :rows.lane::text[], :rows.context::text[], :rows.extras::text[])
          as n (id, line, rank, delay, run_at, input, max_attempts, timeout_ms, deadline_at, parent_id, key, lane, context, extras)
      ),
      added as (
        insert into ${t.job} (id, line, created_at, input, max_attempts, timeout_ms, deadline_at, parent_id, key, lane, context, extras)
        select id, line, ${NOW}, input, max_attempts, timeout_ms, deadline_at, parent_id, key, lane, context, extras from n
        on conflict (id) do nothing returning id
      )
      insert into ${t.ready} (id, line, rank, run_at)
      select n.id, n.line, n.rank, coalesce(n.run_at, ${NOW} + coalesce(n.delay, 0)) from n where n.id in (select id from added)
      returning id`,
    // `do nothing` leaves no lock on a key that is taken; `do update` would lock it even where nothing is updated, and
    // whoever ends the job that holds it would wait for the end of this transaction, which may be a user's.
    takeKeys: `
      insert into ${t.unique_key} (scope, key, id, expires_at)
      select w.scope, w.key, w.id, ${NOW} + w.for_ms
      from unnest(:rows.scope::text[], :rows.key::text[], :rows.id::uuid[], :rows.forMs::bigint[]) as w (scope, key, id, for_ms)
      order by w.scope, w.key
      on conflict (scope, key) do nothing returning id`,
    findKeys: `
      select u.scope, u.key, u.id,
        coalesce(u.expires_at <= ${NOW}, true) and not exists (select 1 from ${t.ready} r where r.id = u.id) as stale
      from unnest(:rows.scope::text[], :rows.key::text[]) as w (scope, key)
      join ${t.unique_key} u on u.scope = w.scope and u.key = w.key`,
    takeStaleKeys: `
      update ${t.unique_key} u set id = w.id, expires_at = ${NOW} + w.for_ms
      from unnest(:rows.scope::text[], :rows.key::text[], :rows.id::uuid[], :rows.forMs::bigint[]) as w (scope, key, id, for_ms)
      where u.scope = w.scope and u.key = w.key and coalesce(u.expires_at <= ${NOW}, true)
        and not exists (select 1 from ${t.ready} r where r.id = u.id)
      returning u.id`,
    findJobs: `select id from ${t.job} where id = any(:ids::uuid[])`,
    replaceQueued: `
      with n as materialized (
        select * from unnest(:rows.id::uuid[], :rows.line::int[], :rows.rank::int[], :rows.delay::bigint[], :rows.runAt::bigint[], :rows.input::text[],
          :rows.maxAttempts::int[], :rows.timeout::bigint[], :rows.deadline::bigint[], :rows.lane::text[], :rows.context::text[], :rows.extras::text[])
          as n (id, line, rank, delay, run_at, input, max_attempts, timeout_ms, deadline_at, lane, context, extras)
      ),
      queued as (
        update ${t.ready} r set line = n.line, rank = n.rank, run_at = coalesce(n.run_at, ${NOW} + coalesce(n.delay, 0))
        from n where r.id = n.id and r.token is null and not r.begun returning r.id
      )
      update ${t.job} j set line = n.line, input = n.input, max_attempts = n.max_attempts, timeout_ms = n.timeout_ms, deadline_at = n.deadline_at,
        lane = n.lane, context = n.context, extras = n.extras
      from n where j.id = n.id and n.id in (select id from queued) returning j.id`,

    claim: `
      with level as materialized (
        select l.* from unnest(:levels.line::int[], :levels.rank::int[], :levels.queue::text[], :levels.group::text[], :levels.limit::int[],
          :levels.runAt::bigint[], :levels.id::uuid[]) as l (line, rank, queue, grp, n, from_at, from_id)
        where ${alive} and ${open("l.queue")}
      ),${take}`,
    sweep: `
      with recursive ${scope},${levels},
      level as materialized (
        select l.line, l.rank, s.queue, s.grp, s.n, -1::bigint as from_at, '00000000-0000-0000-0000-000000000000'::uuid as from_id
        from level_of l join scope s on s.line = l.line where l.rank is not null and ${alive}
      ),${take}`,
    // `rank >=`, not `=`, and a case around `is null`: on a table that was never analyzed Postgres expects two rows of a
    // rank and 1 in 200 of them unclaimed, and would fetch and sort the whole level (20,300 rows read; this way 2). What
    // a later rank adds to the minimum, its own level adds anyway.
    peek: `
      with recursive ${scope},${levels}
      select ${NOW} as now,
        least(
          (select min(h.run_at) from level_of l cross join lateral (
            select r.run_at from ${t.ready} r where r.line = l.line and r.rank >= l.rank and case when r.token is null then true end
            order by r.rank, r.run_at, r.id limit 1
          ) h where l.rank is not null and h.run_at < ${WAITING_AT}),
          (select min(q.cool_until) from ${t.queue} q where q.cool_until > ${NOW}
            and exists (select 1 from unnest(:queues.queue::text[]) w (queue) where w.queue is null or w.queue = q.name))
        ) as due_at,
        (select min(coalesce(s.lease_until, 0)) from ${t.claim} c left join ${t.session} s on s.id = c.session) as expires_at`,

    openSession: `
      insert into ${t.session} (kind, worker_id, name, host, pid, version, queues, names, lease_ms, started_at, beat_at, lease_until)
      values (:kind, :workerId, :name, :host, :pid::bigint, :version, :queues, :names, :leaseMs::bigint, ${NOW}, ${NOW}, ${NOW} + :leaseMs::bigint)
      returning id`,
    renew: `
      with s as (
        update ${t.session} set beat_at = ${NOW}, lease_until = ${NOW} + lease_ms
        where id = :session::bigint and lease_until > ${NOW} returning stop_requested_at
      )
      select s.stop_requested_at is not null as stop,
        (select coalesce(json_agg(json_build_object('id', c.id, 'token', c.token, 'reason', c.reason)), '[]')::text
          from ${t.cancel} c where c.session = :session::bigint) as cancels,
        (select coalesce(json_agg(json_build_object('id', o.id, 'token', c.token)), '[]')::text
          from ${t.claim} c cross join lateral unnest(c.ids) as o (id)
          where c.session = :session::bigint
            and not exists (select 1 from ${t.ready} r where r.id = o.id and r.token = c.token)) as gone
      from s`,
    closeSession: `
      with unclaimed as (
        delete from ${t.claim} c where c.session = :session::bigint
          and not exists (select 1 from unnest(c.ids) as o (id) join ${t.ready} r on r.id = o.id and r.token = c.token)
      ), uncancelled as (delete from ${t.cancel} where session = :session::bigint)
      update ${t.session} set lease_until = least(lease_until, ${NOW}), closed_at = coalesce(closed_at, ${NOW}) where id = :session::bigint`,
    orphans: `
      select r.id, r.token, r.session, r.rank, r.run_at, r.attempt, r.crashes, r.begun, r.started_at, r.errors, l.queue, l.name,
        j.input, j.created_at, j.max_attempts, j.timeout_ms, j.key, j.lane, j.context, j.parent_id, j.deadline_at, j.extras, x.reason as cancel_reason
      from ${t.claim} c
      left join ${t.session} s on s.id = c.session
      cross join lateral unnest(c.ids) as o (id)
      join ${t.ready} r on r.id = o.id and r.token = c.token
      join ${t.job} j on j.id = r.id
      join ${t.line} l on l.id = r.line
      left join ${t.cancel} x on x.id = r.id and x.token = r.token
      where s.id is null or s.lease_until <= ${NOW}
      order by r.id limit :limit::int`,
    bury: `
      with emptied as (
        delete from ${t.claim} c
        where not exists (select 1 from ${t.session} s where s.id = c.session and s.lease_until > ${NOW})
          and not exists (select 1 from unnest(c.ids) as o (id) join ${t.ready} r on r.id = o.id and r.token = c.token)
        returning c.session
      ),
      stale as (delete from ${t.cancel} x where not exists (select 1 from ${t.ready} r where r.id = x.id and r.token = x.token)),
      old as (delete from ${t.session} where closed_at < ${NOW} - 604800000)
      update ${t.session} s set closed_at = s.lease_until
      where s.closed_at is null and s.lease_until <= ${NOW}
        and not exists (select 1 from ${t.claim} c where c.session = s.id and c.session not in (select session from emptied))
      returning s.id`,
    refile: `
      insert into ${t.claim} (token, session, ids)
      select r.token, min(r.session), array_agg(r.id) from ${t.ready} r
      where r.token is not null and not exists (select 1 from ${t.claim} c where c.token = r.token and r.id = any(c.ids))
      group by r.token
      on conflict (token) do update set ids = ${t.claim}.ids || excluded.ids
      returning token`,

    // A done job keeps its row's count of attempts, crashes and errors, so only its output travels.
    done: `
      with t as materialized (
        select * from unnest(:rows.id::uuid[], :rows.token::bigint[], :rows.output::text[]) as t (id, token, output)
      ),
      gone as (
        delete from ${t.ready} r using t
        where r.id = any(:rows.id::uuid[]) and r.id = t.id and r.token = t.token and ${alive}
        returning r.*, t.output
      ),
      kept as (
        insert into ${t.history} (id, line, rank, state, attempt, crashes, throttles, run_at, started_at, ended_at, session, output, errors, progress)
        select id, line, rank, 'done', attempt, crashes, throttles, run_at, started_at, ${NOW}, session, output, errors, progress from gone
      ),
      spent as (delete from ${t.claim} c where c.token = any(:spent::bigint[]) and ${alive})
      select id from gone`,
    end: end(() => alive),
    again: again(() => alive),
    endOrphans: end(orphaned),
    againOrphans: again(orphaned),
    coolDown: `
      update ${t.queue} q set
        cool_steps = case when q.cool_at > ${NOW} - 120000 then least(q.cool_steps + 1, 30) else 1 end,
        cool_until = ${NOW} + least(q.cool_max_ms, q.cool_base_ms * (2 ^ (case when q.cool_at > ${NOW} - 120000 then least(q.cool_steps, 30) else 0 end))::bigint),
        cool_at = ${NOW}
      where q.cool_base_ms is not null and (q.cool_until is null or q.cool_until <= ${NOW})
        and q.name in (select l.queue from ${t.ready} r join ${t.line} l on l.id = r.line where r.id = any(:ids::uuid[]))
      returning q.name`,
    progress: `
      update ${t.ready} r set progress = :value where r.id = :id::uuid and r.token = :token::bigint and ${alive} returning r.id`,

    get: `
      select * from (${live} where r.id = :id::uuid union all ${ended} where h.id = :id::uuid) one limit 1`,
    list: `
      select * from (
        (${live} where ${matches("r", state)} and (:cursor::uuid is null or r.id < :cursor::uuid) order by r.id desc limit :limit::int)
        union all
        (${ended} where ${matches("h", "h.state")} and (:cursor::uuid is null or h.id < :cursor::uuid) order by h.id desc limit :limit::int)
      ) page order by id desc limit :limit::int`,
    ids: `
      select id from (
        (select r.id from ${t.ready} r join ${t.job} j on j.id = r.id join ${t.line} l on l.id = r.line
          where ${matches("r", state)} and (:cursor::uuid is null or r.id > :cursor::uuid) order by r.id limit :limit::int)
        union all
        (select h.id from ${t.history} h join ${t.job} j on j.id = h.id join ${t.line} l on l.id = h.line
          where ${matches("h", "h.state")} and (:cursor::uuid is null or h.id > :cursor::uuid) order by h.id limit :limit::int)
      ) page order by id limit :limit::int`,
    count: `
      select
        (select count(*) from ${t.ready} r join ${t.job} j on j.id = r.id join ${t.line} l on l.id = r.line where ${matches("r", state)})
        + (select count(*) from ${t.history} h join ${t.job} j on j.id = h.id join ${t.line} l on l.id = h.line where ${matches("h", "h.state")})
        as count`,

    lockQueued: `
      select r.id, r.token, r.session, r.attempt, r.errors, j.key from ${t.ready} r join ${t.job} j on j.id = r.id
      where r.id = any(:ids::uuid[]) order by r.id for update of r`,
    endQueued: `
      with t as materialized (
        select * from unnest(:rows.id::uuid[], :rows.state::text[], :rows.errors::text[]) as t (id, state, errors)
      ),
      gone as (
        delete from ${t.ready} r using t where r.id = t.id and r.token is null
        returning r.id, r.line, r.rank, r.throttles, r.run_at, r.started_at, r.session, r.progress,
          t.state, null::text as output, t.errors, null::text as error_group, r.attempt, r.crashes, true as keep
      ),${file}
      select id from gone`,
    askCancel: `
      insert into ${t.cancel} (id, session, token, reason, asked_at)
      select c.id, c.session, c.token, c.reason, ${NOW}
      from unnest(:rows.id::uuid[], :rows.session::bigint[], :rows.token::bigint[], :rows.reason::text[]) as c (id, session, token, reason)
      on conflict (id) do update set session = excluded.session, token = excluded.token, reason = excluded.reason`,
    forget: `
      with h as (delete from ${t.history} where id = any(:ids::uuid[]) returning id, state),
      r as (delete from ${t.ready} where id = any(:ids::uuid[]) and token is null returning id),
      k as (delete from ${t.unique_key} where id = any(array(select id from h union all select id from r))),
      j as (delete from ${t.job} where id = any(array(select id from h union all select id from r)))
      select id, state from h union all select id, null from r`,
    findEnded: `
      select h.id, j.key, j.extras, l.name, l.queue, h.state from ${t.history} h join ${t.job} j on j.id = h.id join ${t.line} l on l.id = h.line
      where h.id = any(:ids::uuid[]) order by h.id desc for update of h`,
    revive: `
      with h as (delete from ${t.history} where id = any(:ids::uuid[]) returning id, line, rank, errors, progress)
      insert into ${t.ready} (id, line, rank, run_at, begun, errors) select id, line, rank, ${NOW}, true, errors from h returning id`,
    runNow: `
      update ${t.ready} set run_at = ${NOW} where id = any(:ids::uuid[]) and token is null and run_at > ${NOW} and run_at < ${WAITING_AT} returning id`,

    queueRows: `
      select name, paused_at, cool_until, cool_base_ms, cool_max_ms, settings from ${t.queue} where :names::text[] is null or name = any(:names::text[])`,
    queueCounts: `
      select l.queue, l.name, ${NOW} as now,
        count(r.id) filter (where r.token is null and r.run_at <= ${NOW}) as ready,
        count(r.id) filter (where r.token is null and r.run_at > ${NOW} and r.run_at < ${WAITING_AT}) as scheduled,
        count(r.id) filter (where r.token is not null) as running,
        count(r.id) filter (where r.token is null and r.run_at >= ${WAITING_AT}) as waiting,
        min(r.run_at) filter (where r.token is null and r.run_at <= ${NOW}) as oldest
      from ${t.line} l left join ${t.ready} r on r.line = l.id group by l.queue, l.name`,
    setQueue: `
      insert into ${t.queue} as q (name, paused_at, settings, cool_base_ms, cool_max_ms)
      values (:name, case when :paused::bool then ${NOW} end, :settings, :coolBase::bigint, :coolMax::bigint)
      on conflict (name) do update set
        paused_at = case when :paused::bool is null then q.paused_at when :paused::bool then coalesce(q.paused_at, ${NOW}) end,
        settings = coalesce(:settings, q.settings),
        cool_base_ms = case when :settings::text is null then q.cool_base_ms else :coolBase::bigint end,
        cool_max_ms = case when :settings::text is null then q.cool_max_ms else :coolMax::bigint end`,
    holds: `select name, array_to_json(queues)::text as queues, reason, set_at from ${t.hold} order by name`,
    setHold: `
      insert into ${t.hold} (name, queues, reason, set_at) values (:name, :queues::text[], :reason, ${NOW})
      on conflict (name) do update set queues = excluded.queues, reason = excluded.reason`,
    clearHold: `delete from ${t.hold} where name = :name returning name`,
    workers: `
      select s.id, s.kind, s.worker_id, s.name, s.host, s.pid, s.version, s.queues, s.names, s.started_at, s.beat_at, s.lease_until,
        s.stop_requested_at,
        (select coalesce(json_agg(o.id), '[]')::text from ${t.claim} c cross join lateral unnest(c.ids) as o (id)
          join ${t.ready} r on r.id = o.id and r.token = c.token where c.session = s.id) as jobs
      from ${t.session} s where s.lease_until > ${NOW} and s.closed_at is null order by s.id`,
    stopWorkers: `
      update ${t.session} set stop_requested_at = ${NOW}
      where (:sessions::bigint[] is null or id = any(:sessions::bigint[])) and kind = 'worker' and lease_until > ${NOW} and closed_at is null
      returning id`,
    kinds: `select name, has_unique, has_lane from ${t.kind}`,
    registerKinds: `
      insert into ${t.kind} (name, has_unique, has_lane, seen_at)
      select w.name, w.has_unique, w.has_lane, ${NOW} from unnest(:rows.name::text[], :rows.unique::bool[], :rows.lane::bool[]) as w (name, has_unique, has_lane)
      order by w.name
      on conflict (name) do update set has_unique = excluded.has_unique, has_lane = excluded.has_lane, seen_at = excluded.seen_at`,
    getState: `select value from ${t.state} where key = :key`,
    setState: `
      insert into ${t.state} (key, value, set_at) values (:key, :value, ${NOW})
      on conflict (key) do update set value = excluded.value, set_at = excluded.set_at`,
    deleteState: `delete from ${t.state} where key = :key returning key`,

    ...insightStatements(t, { NOW, state, live, ended, levels }),

    duty: `
      insert into ${t.duty} as d (name, next_at) values (:name, ${NOW} + :every::bigint)
      on conflict (name) do update set next_at = excluded.next_at where d.next_at <= ${NOW} returning name`,
    expired: `
      select h.id, h.state from ${t.history} h join ${t.line} l on l.id = h.line
      where h.id > :after::uuid and h.id < :before::uuid and h.state = any(:states::text[]) and h.ended_at <= ${NOW} - :keep::bigint
        and (:queues::text[] is null or l.queue = any(:queues::text[])) and not (l.queue = any(:except::text[]))
      order by h.id limit :limit::int`,
    instance: `select value from ${t.meta} where key = 'instance'`,
    now: `select ${NOW} as now`,
  };
}
