/**
 * The workflows' part of Postgres's catalogue. Read it beside storage/sqlite/statements/workflows.ts.
 *
 * What is Postgres's own here, and why:
 *  - A write of a run locks its row in `ready` (`for share`), so that a takeover either comes before it and is seen, or
 *    waits for it: a zombie can add nothing to a history that its successor has read.
 *  - Whoever sends a signal and whoever goes to sleep over one take the same advisory lock of the transaction, or each
 *    could miss the other: neither's row is visible before it has committed.
 */
import type { Statements, Tables } from "../../catalogue.ts";
import { WAITING_AT } from "../../../jobs/job.ts";
import { retrySteps, undoingAmong } from "../../retry-steps.ts";
import { stepUpsert } from "../../step-upsert.ts";

/**
 * What a job waits for (`d`) has ended, or is gone, and the job has yet to hear of it. Who waits until it is done hears nothing of
 * another end while it can be retried. A value and no `not exists`, which
 * becomes a join: for a few that wait, the whole of `ready` was read.
 */
export const unheard = (t: Tables): string => `
        d.state is null and (select k.id from ${t.ready} k where k.id = d.on_job) is null
          and (d.policy <> 'wait' or coalesce((select e.state from ${t.history} e where e.id = d.on_job), 'gone') in ('done', 'gone'))`;

export function workflowStatements(t: Tables, NOW: string, own: (row: string) => string) {
  // Named, and never `*`: a statement that is prepared must not give another column after a migration beside it.
  const columns = `job, name, seq, given_order, kind, state, attempt, tries, started_at, ended_at, wake_at, topic, child, undo, fails, given, output, error, label`;
  const held = `
      held as materialized (
        select r.id from ${t.ready} r where r.id = :id::uuid and r.token = :token::bigint and ${own("r")} for share
      )`;
  /** The run's history has no gap before what is written now (`After` in workflows/store.ts). */
  const whole = (job: string, after: string) =>
    `(${after} is null or exists (select 1 from ${t.step} w where w.job = ${job} and w.name = ${after} and w.state <> 'open'))`;
  const among = (column: string) => `${column} = any(:ids::uuid[])`;
  const [forget, again] = retrySteps(t.step, among);
  /** What was lost with a process: signals that nobody was woken for, ends that nobody was told; and signals that have expired. */
  const strays = `
      select 'topic' as kind, topic as id, null::text as state from (
        select distinct s.topic from ${t.signal} g join ${t.step} s on s.topic = g.topic and s.state = 'open'
        cross join lateral (select 1 from ${t.ready} r where r.id = s.job and r.token is null and r.waits <> 'resume' and r.run_at > ${NOW} offset 0) r
        where g.expires_at > ${NOW} limit :limit::int) stranded
      union all
      select 'end', id::text, state from (
        select distinct d.on_job as id, coalesce((select h.state from ${t.history} h where h.id = d.on_job), 'cancelled') as state
        from ${t.dependency} d where ${unheard(t)}
        limit :limit::int) ended
      union all
      select 'expired', '', null where exists (select 1 from ${t.signal} where expires_at <= ${NOW})`;
  return {
    recordSteps: `
      with n as materialized (
        select * from unnest(:rows.job::uuid[], :rows.token::bigint[], :rows.name::text[], :rows.seq::int[], :rows.givenOrder::int[], :rows.kind::text[],
          :rows.state::text[], :rows.attempt::int[], :rows.tries::int[], :rows.took::bigint[], :rows.wakeIn::bigint[], :rows.undo::bool[], :rows.fails::int[], :rows.given::int[],
          :rows.output::text[], :rows.error::text[], :rows.label::text[], :rows.after::text[])
          as n (job, token, name, seq, given_order, kind, state, attempt, tries, took, wake_in, undo, fails, given, output, error, label, after)
      ),
      held as materialized (
        select r.id, r.token from ${t.ready} r where r.id = any(:rows.job::uuid[]) and r.token = any(:rows.token::bigint[]) and ${own("r")}
        order by r.id for share
      )
      insert into ${t.step} as s (${columns})
      select n.job, n.name, n.seq, n.given_order, n.kind, n.state, n.attempt, n.tries, ${NOW} - n.took,
        case when n.state <> 'open' then ${NOW} end, ${NOW} + n.wake_in, null, null, n.undo, n.fails, n.given, n.output, n.error, n.label
      from n join held h on h.id = n.job and h.token = n.token where ${whole("n.job", "n.after")}
      ${stepUpsert}
      returning s.job, s.name, s.wake_at`,
    findSteps: `select ${columns} from ${t.step} where job = :id::uuid order by seq, name`,
    // The comparison takes the job along, as in `newestOccurrences`: Postgres expects few steps of one job, and fetches and sorts all of
    // them (20,000 rows read; this way 500). Steps of the run before, which a short one lets in, are left out afterwards.
    stepsBefore: `
      select ${columns} from (
        select ${columns} from ${t.step} where (job, seq) < (:id::uuid, :before::int) order by job desc, seq desc limit :limit::int
      ) s where s.job = :id::uuid`,
    openSteps: `select ${columns} from ${t.step} where job = :id::uuid and state = 'open' and name <> '$undo' limit :limit::int`,
    countSteps: `select count(*) as n from (select 1 from ${t.step} where job = :id::uuid and seq < :before::int limit :limit::int) one`,
    forkable: `
      select h.state, h.ended_at, h.rank, l.queue, l.name, j.lane, j.max_attempts, j.timeout_ms, j.context, j.extras, j.input
      from ${t.history} h join ${t.job} j on j.id = h.id join ${t.job_type} l on l.id = h.job_type where h.id = :id::uuid`,
    // As of the fork's first attempt: a failure that the handler answered is not tried again (workflows/replay.ts).
    copySteps: `
      insert into ${t.step} (job, name, seq, given_order, kind, state, attempt, tries, started_at, ended_at, wake_at, topic, child, undo, fails, given, output, error, label)
      select :to::uuid, name, seq, given_order, kind, state, 1, tries, started_at, ended_at, wake_at, null, child, false, fails, given, output, error, label from ${t.step} where job = :id::uuid and seq < :before::int`,
    markBegun: `update ${t.ready} set begun = true where id = :id::uuid`,
    findStep: `select ${columns} from ${t.step} where job = :id::uuid and name = :name`,
    machineSteps: `select job as id, label from ${t.step} where ${among("job")} and name = '$machine'`,
    holdRow: `select r.id from ${t.ready} r where r.id = :id::uuid and r.token = :token::bigint and ${own("r")} and ${whole("r.id", ":after::text")} for update`,
    nameChild: `update ${t.step} set child = :child::uuid where job = :id::uuid and name = :name`,
    suspend: `
      with t as materialized (
        select * from unnest(:rows.id::uuid[], :rows.token::bigint[], :rows.at::bigint[], :rows.waits::text[], :rows.attempt::int[],
          :rows.open::int[], :rows.every::bool[], :rows.signals::int[]) as t (id, token, at, waits, attempt, open, every, signals)
      ),
      u as materialized (
        select t.*,
          case when t.open > 0 then (select count(*)::int from ${t.dependency} d where d.job = t.id and d.step is not null and d.state is null) end as unmet,
          -- A wait that a replica that lagged never got: no signal would ever find it.
          t.waits = 'signal' and ((select count(*) from ${t.step} w where w.job = t.id and w.state = 'open' and w.topic is not null) < t.signals or exists (
            select 1 from ${t.step} w join ${t.signal} g on g.topic = w.topic and g.expires_at > ${NOW}
            where w.job = t.id and w.state = 'open' and w.topic is not null)) as signalled
        from t
      ),
      spent as (delete from ${t.claim} c where c.token = any(:spent::bigint[]) and ${own("c")})
      update ${t.ready} r set token = null, session = null, begun = true, attempt = u.attempt, crashes = 0, counted = null, note = null, request = null, waits = u.waits,
        pending = case when u.open > 0 then case when u.every then u.unmet else 1 end end, due_at = null,
        run_at = case when u.signalled then ${NOW}
          when u.open > 0 and case when u.every then u.unmet = 0 else u.unmet < u.open end then ${NOW}
          else greatest(coalesce(u.at, ${WAITING_AT}), ${NOW}) end
      from u where r.id = any(:rows.id::uuid[]) and r.id = u.id and r.token = u.token and ${own("r")}
      returning r.id`,
    lockTopics: `
      select pg_advisory_xact_lock(hashtextextended(topic, 7::bigint)) from (
        select distinct topic from unnest(:topics::text[]) as topic order by 1) o`,
    // A wait that is over is given as it is, and takes no other signal. The signal goes only with the step that has its data: a
    // repeat may run while the first is under way, whose step it cannot see, and then writes and takes nothing.
    takeSignal: `
      with ${held},
      ended as materialized (
        select w.state, w.output, w.wake_at from held h join ${t.step} w on w.job = h.id and w.name = :name::text and w.state <> 'open'
      ),
      got as materialized (
        select g.id, g.data from ${t.signal} g where g.topic = :topic::text and g.expires_at > ${NOW}
          and exists (select 1 from held) and not exists (select 1 from ended)
        order by g.id limit 1 for update skip locked
      ),
      known as materialized (
        select coalesce(
          (select w.wake_at from ${t.step} w where w.job = :id::uuid and w.name = :name::text),
          case when :wakeIn::bigint is not null then ${NOW} + :wakeIn::bigint end) as wake_at
      ),
      taken as (
        insert into ${t.step} as s (${columns})
        select h.id, :name::text, :seq::int, case when o.over then :givenOrder::int end, 'signal', case when o.over then 'done' else 'open' end,
          :attempt::int, 1, ${NOW}, case when o.over then ${NOW} end, k.wake_at, :topic::text, null, false, :fails::int, :given::int,
          case when o.over then coalesce((select data from got), 'null') end, null,
          case when o.over and not exists (select 1 from got) then 'timeout' end
        from held h, known k, lateral (select exists (select 1 from got) or coalesce(k.wake_at <= ${NOW}, false) as over) o
        where not exists (select 1 from ended) and ${whole("h.id", ":after::text")}
        ${stepUpsert}
        where s.state = 'open'
        returning s.state, s.output, s.wake_at
      ),
      spent as (delete from ${t.signal} g using got, taken where g.id = got.id)
      select state, output, wake_at from ended union all select state, output, wake_at from taken`,
    // The id is noted with the signal, so that a repeat after a lost answer adds no second one.
    sendSignal: `
      with sent as (insert into ${t.used_id} (id, at) values (:id::uuid, ${NOW}) on conflict do nothing returning id)
      insert into ${t.signal} (topic, data, sent_at, expires_at)
      select :topic::text, :data::text, ${NOW}, ${NOW} + :expires::bigint from sent returning id`,
    waitersFor: `select job from ${t.step} where topic = :topic and state = 'open' order by started_at, job limit :limit::int`,
    wakeWaiters: `
      update ${t.ready} r set run_at = ${NOW}, waits = null
      where r.token is null and r.waits <> 'resume' and r.id = any(array(
        select s.job from ${t.step} s join ${t.ready} w on w.id = s.job and w.token is null and w.waits <> 'resume'
        where s.topic = :topic and s.state = 'open' order by s.started_at, s.job
        limit (select count(*) from ${t.signal} g where g.topic = :topic and g.expires_at > ${NOW})))
      returning r.id, r.lane is not null as laned`,
    expireSignals: `delete from ${t.signal} where expires_at <= ${NOW}`,
    // What ended between two statements of somebody who then died, or was deleted; signals that a run sleeps over; and
    // whether there are signals to forget. One look, because an idle worker makes it too.
    strays,
    // One look for all that comes to an end by time or with a process: mostly there is nothing, and an idle worker asks no more.
    over: `
      select
        exists (select 1 from ${t.session} s where (s.closed_at is null and s.lease_until <= ${NOW}) or s.closed_at < ${NOW} - 604800000)
          or exists (select 1 from ${t.cancel})
          or exists (select 1 from ${t.claim} c where not exists (select 1 from ${t.session} s where s.id = c.session and s.lease_until > ${NOW})) as sessions,
        exists (select 1 from (${strays}) s) as workflows,
        exists (select 1 from ${t.temporary_limit} where until_at <= ${NOW}) as temporary_limits,
        exists (select 1 from ${t.queue} where limited) or exists (select 1 from ${t.budget}) as limits,
        exists (select 1 from ${t.queue} where drain_at is not null) as drains`,
    watch: `
      update ${t.ready} r set watched = true where r.id = any(array(
        select w.id from ${t.ready} w where w.id = any(:ids::uuid[]) order by w.id for update))
      returning r.id`,
    endsOf: `select id, state, output, errors from ${t.history} where id = any(:ids::uuid[])`,
    addDependencies: `
      insert into ${t.dependency} (job, on_job, policy, step, state, met_at)
      select d.job, d.on_job, d.policy, d.step, d.state, case when d.state is not null then ${NOW} end
      from unnest(:rows.job::uuid[], :rows.on::uuid[], :rows.policy::text[], :rows.step::text[], :rows.state::text[]) as d (job, on_job, policy, step, state)
      on conflict (job, on_job) do nothing`,
    placeDependents: `
      update ${t.ready} r set due_at = r.run_at, run_at = ${WAITING_AT}, waits = 'jobs', pending = n.pending
      from unnest(:rows.id::uuid[], :rows.pending::int[]) as n (id, pending) where r.id = n.id and r.token is null and r.pending is null and not r.begun returning r.id`,
    awaited: `select distinct on_job as id from ${t.dependency} where on_job = any(:ids::uuid[]) and state is null`,
    meet: `
      with e as materialized (
        select e.id, e.state, h.output, h.errors,
          h.id is null and not exists (select 1 from ${t.ready} r where r.id = e.id) as gone
        from unnest(:rows.id::uuid[], :rows.state::text[]) as e (id, state)
        left join ${t.history} h on h.id = e.id
      ),
      m as (
        update ${t.dependency} d set state = e.state, met_at = ${NOW} from e
        where d.on_job = e.id and d.on_job = any(:rows.id::uuid[]) and d.state is null and (e.state = 'done' or d.policy <> 'wait' or e.gone)
        returning d.job, d.on_job, d.policy, d.step, e.state, e.output, e.errors
      ),
      answered as (
        update ${t.step} s set state = case when m.state = 'done' then 'done' else 'failed' end, output = m.output, error = m.errors,
          label = m.state, ended_at = ${NOW}
        from m where s.job = m.job and s.name = m.step and s.state = 'open'
      )
      select job, on_job, policy, step, state from m`,
    release: `
      with n as materialized (select * from unnest(:rows.id::uuid[], :rows.met::int[], :rows.wake::bool[]) as n (id, met, wake)),
      over as materialized (
        select r.id, coalesce(r.pending, 1) - n.met as pending, r.waits <> 'resume' and (n.wake or coalesce(r.pending, 1) - n.met <= 0) as due
        from ${t.ready} r join n on n.id = r.id where r.token is null and r.waits is not null
      )
      update ${t.ready} r set pending = o.pending, waits = case when not o.due then r.waits end,
        run_at = case when o.due then greatest(${NOW}, coalesce(r.due_at, 0)) else r.run_at end
      from over o where r.id = o.id returning r.id, o.due, r.lane is not null as laned`,
    dependenciesOf: `
      select d.job, d.on_job, d.policy, d.step, d.state, d.met_at from ${t.dependency} d where d.job = :id::uuid order by d.on_job limit :limit::int`,
    childrenOf: `select id from ${t.job} where parent_id = any(:ids::uuid[]) order by id limit :limit::int`,
    // With those that are being undone already.
    undoable: `
      select job as id, bool_or(name = '$undo') as undoing from ${t.step}
      where job = any(:ids::uuid[]) and ((undo and state = 'done') or name = '$undo') group by job`,
    startUndo: `
      with marked as (update ${t.ready} r set undoing = true where r.id = any(:rows.id::uuid[]))
      insert into ${t.step} as s (${columns})
      select n.id, '$undo', 2147483647, null, 'undo', 'open', 0, 0, ${NOW}, null, null, null, null, false, 0, 2147483647, n.output, null, n.state
      from unnest(:rows.id::uuid[], :rows.state::text[], :rows.output::text[]) as n (id, state, output)
      on conflict (job, name) do nothing returning s.job as id`,
    retrySteps: `
      with forgotten as (${forget}),
      anew as (${again})
      update ${t.ready} r set undoing = true where r.id = any(array(${undoingAmong(t.step, among)}))`,
    saveMachine: `
      with ${held},
      moved as (update ${t.ready} r set attempt = :attempt::int, crashes = 0 from held h where r.id = h.id and :attempt::int is not null returning r.id)
      insert into ${t.step} as s (${columns})
      select h.id, n.name, n.seq, n.seq, n.kind, n.state, n.tries, n.tries, ${NOW} - n.took, case when n.state = 'done' then ${NOW} end, null, null, null, false, 0, n.seq, n.output, null, n.label
      from held h, unnest(:rows.name::text[], :rows.seq::int[], :rows.kind::text[], :rows.state::text[], :rows.tries::int[], :rows.took::bigint[],
        :rows.output::text[], :rows.label::text[]) as n (name, seq, kind, state, tries, took, output, label)
      on conflict (job, name) do update set seq = excluded.seq, given_order = excluded.given_order, given = excluded.given, state = excluded.state, attempt = excluded.attempt, tries = excluded.tries,
        started_at = excluded.started_at, ended_at = excluded.ended_at, output = excluded.output, label = excluded.label
        where excluded.seq >= s.seq
      returning s.job as id`,
    advance: `
      with ${held}
      update ${t.job} j set extras = :extras::text from held h where j.id = h.id and j.id = :id::uuid returning j.id`,
    stillHeld: `select r.id from ${t.ready} r where r.id = :id::uuid and r.token = :token::bigint and r.session = :session::bigint`,
    liveWorkflows: `
      select r.id, l.name, j.input, j.extras, r.attempt, r.crashes, r.token is not null as running from ${t.ready} r join ${t.job_type} l on l.id = r.job_type join ${t.job} j on j.id = r.id
      where r.begun and l.name = any(:names::text[]) and r.id > coalesce(:after::uuid, '00000000-0000-0000-0000-000000000000'::uuid) and exists (select 1 from ${t.step} s where s.job = r.id)
      order by r.id limit :limit::int`,
    workflowRow: `
      select j.id, l.name, j.input, j.extras, r.attempt, r.crashes, r.token is not null as running from ${t.ready} r join ${t.job_type} l on l.id = r.job_type join ${t.job} j on j.id = r.id where r.id = :id::uuid
      union all
      select j.id, l.name, j.input, j.extras, h.attempt, h.crashes, false as running from ${t.history} h join ${t.job_type} l on l.id = h.job_type join ${t.job} j on j.id = h.id where h.id = :id::uuid
      limit 1`,
  } satisfies Partial<Statements>;
}
