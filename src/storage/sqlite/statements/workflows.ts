/**
 * The workflows' part of SQLite's catalogue. Read it beside storage/postgres/statements/workflows.ts.
 *
 * Nobody else writes while we do, so nothing needs to be locked: `lockTopics` and the `for share` of Postgres have no
 * counterpart here.
 */
import type { Statements, Tables } from "../../catalogue.ts";
import { WAITING_AT } from "../../../jobs/job.ts";
import { retrySteps, undoingAmong } from "../../retry-steps.ts";
import { stepUpsert } from "../../step-upsert.ts";
import { seqOf } from "../seq.ts";

/**
 * What a job waits for (`d`) has ended, or is gone, and the job has yet to hear of it. Who waits until it is done hears nothing of
 * another end while it can be retried.
 */
export const unheard = (t: Tables): string => `
        d.state is null and not exists (select 1 from ${t.ready} k where k.seq = ${seqOf(t).of("d.on_job")})
          and (d.policy <> 'wait' or coalesce((select e.state from ${t.history} e where e.seq = ${seqOf(t).of("d.on_job")}), 'gone') in ('done', 'gone'))`;

export function workflowStatements(t: Tables, own: (row: string) => string) {
  const seq = seqOf(t);
  const columns = `job, name, seq, given_order, kind, state, attempt, tries, started_at, ended_at, wake_at, topic, child, undo, fails, given, output, error, label`;
  const held = (id: string, token: string) =>
    `exists (select 1 from ${t.ready} r where r.seq = ${seq.of(id)} and r.token = ${token} and ${own("r")})`;
  /** The run's history has no gap before what is written now (`After` in workflows/store.ts). */
  const whole = (job: string, after: string) =>
    `(${after} is null or exists (select 1 from ${t.step} w where w.job = ${job} and w.name = ${after} and w.state <> 'open'))`;
  const among = (column: string) => `${column} in (select value from json_each(:ids))`;
  const nextSignal = `(select id from ${t.signal} where topic = :topic and expires_at > :now order by id limit 1)`;
  const wakeAt = `coalesce((select w.wake_at from ${t.step} w where w.job = :id and w.name = :name), :now + :wakeIn)`;
  const over = `job = :id and name = :name and state <> 'open'`;
  const unmet = `(select count(*) from ${t.dependency} d where d.job = :rows.id and d.step is not null and d.state is null)`;
  /** What was lost with a process: signals that nobody was woken for, ends that nobody was told; and signals that have expired. */
  const strays = `
      select 'topic' as kind, topic as id, null as state from (
        select distinct s.topic from ${t.signal} g cross join ${t.step} s on s.topic = g.topic and s.state = 'open'
        join ${t.job} j on j.id = s.job join ${t.ready} r on r.seq = j.seq and r.token is null and r.waits <> 'resume' and r.run_at > :now
        where g.expires_at > :now limit :limit) stranded
      union all
      select 'end', id, state from (
        select distinct d.on_job as id, coalesce((select h.state from ${t.history} h where h.seq = ${seq.of("d.on_job")}), 'cancelled') as state
        from ${t.dependency} d where ${unheard(t)}
        limit :limit) ended
      union all
      select 'expired', '', null where exists (select 1 from ${t.signal} where expires_at <= :now)`;
  return {
    recordSteps: `
      insert into ${t.step} as s (${columns})
      select :rows.job, :rows.name, :rows.seq, :rows.givenOrder, :rows.kind, :rows.state, :rows.attempt, :rows.tries, :now - :rows.took,
        case when :rows.state <> 'open' then :now end, :now + :rows.wakeIn, null, null, :rows.undo, :rows.fails, :rows.given, :rows.output, :rows.error, :rows.label
      where ${held(":rows.job", ":rows.token")} and ${whole(":rows.job", ":rows.after")}
      ${stepUpsert}
      returning job, name, wake_at`,
    findSteps: `select ${columns} from ${t.step} where job = :id order by seq, name`,
    stepsBefore: `select ${columns} from ${t.step} where job = :id and seq < :before order by seq desc limit :limit`,
    openSteps: `
      select s.* from (select job, name from ${t.step} where job = :id and state = 'open' and name <> '$undo' limit :limit) o
      cross join ${t.step} s on s.job = o.job and s.name = o.name`,
    countSteps: `select count(*) as n from (select 1 from ${t.step} where job = :id and seq < :before limit :limit) one`,
    forkable: `
      select h.state, h.ended_at, h.rank, l.queue, l.name, j.lane, j.max_attempts, j.timeout_ms, j.context, j.extras, j.input
      from ${t.history} h join ${t.job} j on j.seq = h.seq join ${t.job_type} l on l.id = h.job_type where h.seq = ${seq.of(":id")}`,
    // As of the fork's first attempt: a failure that the handler answered is not tried again (workflows/replay.ts).
    copySteps: `
      insert into ${t.step} (job, name, seq, given_order, kind, state, attempt, tries, started_at, ended_at, wake_at, topic, child, undo, fails, given, output, error, label)
      select :to, name, seq, given_order, kind, state, 1, tries, started_at, ended_at, wake_at, null, child, 0, fails, given, output, error, label from ${t.step} where job = :id and seq < :before`,
    markBegun: `update ${t.ready} set begun = 1 where seq = ${seq.of(":id")}`,
    findStep: `select ${columns} from ${t.step} where job = :id and name = :name`,
    machineSteps: `select job as id, label from ${t.step} where ${among("job")} and name = '$machine'`,
    holdRow: `select :id as id from ${t.ready} r where r.seq = ${seq.of(":id")} and r.token = :token and ${own("r")} and ${whole(":id", ":after")}`,
    nameChild: `update ${t.step} set child = :child where job = :id and name = :name`,
    suspend: [
      `delete from ${t.claim} where token in (select value from json_each(:spent)) and ${own(t.claim)}`,
      `update ${t.ready} set token = null, session = null, begun = 1, attempt = :rows.attempt, crashes = 0, counted = null, note = null, request = null, waits = :rows.waits,
          pending = case when :rows.open > 0 then case when :rows.every then ${unmet} else 1 end end, due_at = null,
          run_at = case
            when :rows.waits = 'signal' and ((select count(*) from ${t.step} w where w.job = :rows.id and w.state = 'open' and w.topic is not null) < :rows.signals or exists (
              select 1 from ${t.step} w join ${t.signal} g on g.topic = w.topic and g.expires_at > :now
              where w.job = :rows.id and w.state = 'open' and w.topic is not null)) then :now
            when :rows.open > 0 and case when :rows.every then ${unmet} = 0 else ${unmet} < :rows.open end then :now
            else max(coalesce(:rows.at, ${WAITING_AT}), :now) end
        where seq = ${seq.of(":rows.id")} and token = :rows.token and ${own(t.ready)} returning :rows.id as id`,
    ],
    lockTopics: `select value from json_each(:topics) where false`,
    // A wait that is over is given as it is, and takes no other signal.
    takeSignal: [
      `select state, output, wake_at from ${t.step} where ${over} and ${held(":id", ":token")}`,
      `insert into ${t.step} as s (${columns})
        select :id, :name, :seq, case when o.over then :givenOrder end, 'signal', case when o.over then 'done' else 'open' end, :attempt, 1, :now,
          case when o.over then :now end, ${wakeAt}, :topic, null, 0, :fails, :given,
          case when o.over then coalesce((select data from ${t.signal} where id = ${nextSignal}), 'null') end, null,
          case when o.over and ${nextSignal} is null then 'timeout' end
        from (select ${nextSignal} is not null or coalesce(${wakeAt} <= :now, false) as over) o
        where ${held(":id", ":token")} and not exists (select 1 from ${t.step} where ${over}) and ${whole(":id", ":after")}
        ${stepUpsert}
        returning state, output, wake_at`,
      // Only with the step that has its data.
      `delete from ${t.signal} where id = ${nextSignal} and changes() > 0`,
    ],
    // The id is noted with the signal, so that a repeat after a lost answer adds no second one.
    sendSignal: [
      `insert into ${t.used_id} (id, at) values (:id, :now) on conflict do nothing`,
      `insert into ${t.signal} (topic, data, sent_at, expires_at) select :topic, :data, :now, :now + :expires where changes() > 0 returning id`,
    ],
    waitersFor: `select job from ${t.step} where topic = :topic and state = 'open' order by started_at, job limit :limit`,
    wakeWaiters: `
      update ${t.ready} set run_at = :now, waits = null
      where token is null and waits <> 'resume' and seq in (
        select w.seq from ${t.step} s join ${t.job} j on j.id = s.job join ${t.ready} w on w.seq = j.seq and w.token is null and w.waits <> 'resume'
        where s.topic = :topic and s.state = 'open' order by s.started_at, s.job
        limit (select count(*) from ${t.signal} g where g.topic = :topic and g.expires_at > :now))
      returning ${seq.id(`${t.ready}.seq`)} as id, lane is not null as laned`,
    expireSignals: `delete from ${t.signal} where expires_at <= :now`,
    // What ended between two statements of somebody who then died, or was deleted; signals that a run sleeps over; and
    // whether there are signals to forget. One look, because an idle worker makes it too.
    strays,
    // One look for all that comes to an end by time or with a process: mostly there is nothing, and an idle worker asks no more.
    over: `
      select
        exists (select 1 from ${t.session} s where (s.closed_at is null and s.lease_until <= :now) or s.closed_at < :now - 604800000)
          or exists (select 1 from ${t.cancel})
          or exists (select 1 from ${t.claim} c where not exists (select 1 from ${t.session} s where s.id = c.session and s.lease_until > :now)) as sessions,
        exists (select 1 from (${strays}) s) as workflows,
        exists (select 1 from ${t.temporary_limit} where until_at <= :now) as temporary_limits,
        exists (select 1 from ${t.queue} where limited) or exists (select 1 from ${t.budget}) as limits,
        exists (select 1 from ${t.queue} where drain_at is not null) as drains`,
    watch: `update ${t.ready} set watched = 1 where seq in ${seq.among(":ids")} returning ${seq.id(`${t.ready}.seq`)} as id`,
    endsOf: `
      select j.id, h.state, h.output, h.errors from ${t.job} j join ${t.history} h on h.seq = j.seq where j.id in (select value from json_each(:ids))`,
    addDependencies: `
      insert into ${t.dependency} (job, on_job, policy, step, state, met_at)
      values (:rows.job, :rows.on, :rows.policy, :rows.step, :rows.state, case when :rows.state is not null then :now end)
      on conflict (job, on_job) do nothing`,
    placeDependents: `
      update ${t.ready} set due_at = run_at, run_at = ${WAITING_AT}, waits = 'jobs', pending = :rows.pending
      where seq = ${seq.of(":rows.id")} and token is null and pending is null and not begun returning :rows.id as id`,
    awaited: `select distinct on_job as id from ${t.dependency} where on_job in (select value from json_each(:ids)) and state is null`,
    meet: [
      `update ${t.step} set state = case when :rows.state = 'done' then 'done' else 'failed' end,
          output = (select h.output from ${t.history} h where h.seq = ${seq.of(":rows.id")}), error = (select h.errors from ${t.history} h where h.seq = ${seq.of(":rows.id")}),
          label = :rows.state, ended_at = :now
        where state = 'open' and (job, name) in (
          select d.job, d.step from ${t.dependency} d where d.on_job = :rows.id and d.state is null and d.step is not null)`,
      `update ${t.dependency} set state = :rows.state, met_at = :now
        where on_job = :rows.id and state is null and (:rows.state = 'done' or policy <> 'wait'
          or not exists (select 1 from ${t.history} h where h.seq = ${seq.of(":rows.id")})
          and not exists (select 1 from ${t.ready} r where r.seq = ${seq.of(":rows.id")}))
        returning job, on_job, policy, step, state`,
    ],
    release: `
      update ${t.ready} set pending = coalesce(pending, 1) - :rows.met,
        waits = case when waits <> 'resume' and (:rows.wake or coalesce(pending, 1) - :rows.met <= 0) then null else waits end,
        run_at = case when waits <> 'resume' and (:rows.wake or coalesce(pending, 1) - :rows.met <= 0) then max(:now, coalesce(due_at, 0)) else run_at end
      where seq = ${seq.of(":rows.id")} and token is null and waits is not null
      returning :rows.id as id, waits is null as due, lane is not null as laned`,
    dependenciesOf: `
      select d.job, d.on_job, d.policy, d.step, d.state, d.met_at from ${t.dependency} d where d.job = :id order by d.on_job limit :limit`,
    childrenOf: `select id from ${t.job} where parent_id in (select value from json_each(:ids)) order by id limit :limit`,
    // With those that are being undone already.
    undoable: `
      select job as id, max(name = '$undo') as undoing from ${t.step}
      where job in (select value from json_each(:ids)) and ((undo and state = 'done') or name = '$undo') group by job`,
    startUndo: [
      `update ${t.ready} set undoing = 1 where seq = ${seq.of(":rows.id")}`,
      `insert into ${t.step} (${columns})
      select :rows.id, '$undo', 2147483647, null, 'undo', 'open', 0, 0, :now, null, null, null, null, 0, 0, 2147483647, :rows.output, null, :rows.state where true
      on conflict (job, name) do nothing returning job as id`,
    ],
    retrySteps: [
      ...retrySteps(t.step, among),
      `update ${t.ready} set undoing = 1 where seq in (select j.seq from ${t.job} j where j.id in (${undoingAmong(t.step, among)}))`,
    ],
    saveMachine: [
      `update ${t.ready} set attempt = :attempt, crashes = 0 where seq = ${seq.of(":id")} and token = :token and ${own(t.ready)} and :attempt is not null`,
      `insert into ${t.step} as s (${columns})
        select :id, :rows.name, :rows.seq, :rows.seq, :rows.kind, :rows.state, :rows.tries, :rows.tries, :now - :rows.took,
          case when :rows.state = 'done' then :now end, null, null, null, 0, 0, :rows.seq, :rows.output, null, :rows.label
        where ${held(":id", ":token")}
        on conflict (job, name) do update set seq = excluded.seq, given_order = excluded.given_order, given = excluded.given, state = excluded.state, attempt = excluded.attempt, tries = excluded.tries,
          started_at = excluded.started_at, ended_at = excluded.ended_at, output = excluded.output, label = excluded.label
          where excluded.seq >= s.seq
        returning job as id`,
    ],
    advance: `update ${t.job} set extras = :extras where id = :id and ${held(":id", ":token")} returning id`,
    stillHeld: `select :id as id from ${t.ready} r where r.seq = ${seq.of(":id")} and r.token = :token and r.session = :session`,
    liveWorkflows: `
      select j.id, r.seq as row_key, l.name, j.input, j.extras, r.attempt, r.crashes, r.token is not null as running
      from ${t.ready} r join ${t.job_type} l on l.id = r.job_type join ${t.job} j on j.seq = r.seq
      where r.begun and l.name in (select value from json_each(:names)) and r.seq > coalesce(cast(:after as integer), 0)
        and exists (select 1 from ${t.step} s where s.job = j.id)
      order by r.seq limit :limit`,
    workflowRow: `
      select j.id, l.name, j.input, j.extras, r.attempt, r.crashes, r.token is not null as running from ${t.ready} r join ${t.job_type} l on l.id = r.job_type join ${t.job} j on j.seq = r.seq where j.id = :id
      union all
      select j.id, l.name, j.input, j.extras, h.attempt, h.crashes, false as running from ${t.history} h join ${t.job_type} l on l.id = h.job_type join ${t.job} j on j.seq = h.seq where j.id = :id
      limit 1`,
  } satisfies Partial<Statements>;
}
