/**
 * What moves when the file's time is set from one instant to another (file-clock.ts): the wall clock was set, or the machine slept.
 *
 *   sessions   those that are alive get one whole lease from the new time on; a dead one's jobs are taken over when that has passed
 *   limits     starts and tokens keep their age, so that no window has more of them than it may
 *   lives      of signals, unique keys, waits for a signal and temporary limits: they keep what is left of them, in both directions. A clock that is
 *              set wrong is often set right soon, and nobody could tell afterwards what it has ended. Time that really went by counts, except
 *              for signals: what the machine slept, and what it was off, by the clock with which it starts
 *   forward    all else: the time has passed. But no job is deleted in the next hour
 *   back       what was due stays due, and what is waited for keeps its distance: retries, cool-downs, upkeep tasks. An instant that was asked
 *              for (`at`, `delay`, a sleep) stays what it is. No slot that has its job gets another: a pattern goes on after the last one that
 *              has, unless the clock was wrong by more than a day; an interval goes on in its rhythm.
 *
 * In the transaction that moves the origin, so that nobody sees the one without the other.
 */
import { WAITING_AT } from "../../jobs/job.ts";
import { readSpec, timingOf } from "../../schedules/plan.ts";
import type { Tables } from "../catalogue.ts";
import type { ClockStep } from "./file-clock.ts";
import type { Handle } from "./handle.ts";

const KEEP_MS = 3_600_000;
const DAY_MS = 86_400_000;

type Run = (sql: string) => void;

export function moveRows(handle: Handle, t: Tables, step: ClockStep): void {
  const { from, to } = step;
  const by = to - from;
  const values = { from, to, by, unlived: by - step.passed, keepUntil: to + KEEP_MS };
  const run: Run = (sql) => {
    const used = Object.entries(values).filter(([name]) => new RegExp(`:${name}\\b`).test(sql));
    handle.prepare(sql).run(Object.fromEntries(used));
  };
  // A lease that ends later than any can is from before the machine was started.
  const alive = "closed_at is null and lease_until > :from and lease_until <= :from + lease_ms";
  run(`update ${t.session} set
      beat_at = case when ${alive} then :to else min(beat_at, :to) end,
      lease_until = case when ${alive} then :to + lease_ms else min(lease_until, :to) end`);
  run(`update ${t.pass} set held_until = held_until + :by where held_until > :from`);
  if (!step.restarted) moveLimits(run, t);
  if (to < from) {
    moveBack(run, t);
    moveSchedules(handle, t, step);
  } else {
    run(
      `update ${t.upkeep_task} set next_at = max(next_at, :keepUntil) where name = 'prune' or name = 'forget'`,
    );
  }
  moveLives(run, t);
}

/** After all else: a run that waits for a signal is due when the first of its steps is. */
function moveLives(run: Run, t: Tables): void {
  run(`update ${t.signal} set expires_at = expires_at + :by`);
  run(`update ${t.unique_key} set expires_at = expires_at + :unlived where expires_at is not null`);
  run(`update ${t.temporary_limit} set until_at = until_at + :unlived`);
  run(
    `update ${t.step} set wake_at = wake_at + :unlived where state = 'open' and topic is not null and wake_at is not null`,
  );
  run(`update ${t.ready} set run_at = coalesce((select min(s.wake_at) from ${t.job} j cross join ${t.step} s on s.job = j.id
        where j.seq = ${t.ready}.seq and s.state = 'open' and s.wake_at is not null), run_at)
      where token is null and waits = 'signal' and run_at < ${WAITING_AT}`);
}

function moveLimits(run: Run, t: Tables): void {
  for (const table of [t.queue, t.lane])
    run(`update ${table} set starts = (select json_group_array(json_array((s.value ->> 0) + :by, s.value ->> 1)) from json_each(starts) s)
      where starts is not null`);
  run(`update ${t.budget} set filled_at = filled_at + :by, chunks = case when chunks is not null then
      (select json_group_array(json_set(c.value, '$.until', (c.value ->> 'until') + :by)) from json_each(chunks) c) end`);
}

function moveBack(run: Run, t: Tables): void {
  const move = (table: string, column: string): void =>
    run(`update ${table} set ${column} = case when ${column} > :from then ${column} + :by else :to end
      where ${column} > :to and ${column} < ${WAITING_AT}`);
  // All that is due, so that it keeps its order.
  const again = "waits is null and (begun or attempt > 0 or crashes > 0 or throttles > 0)";
  run(`update ${t.ready} set run_at = max(0, run_at + :by)
      where token is null and run_at < ${WAITING_AT} and (run_at <= :from or (${again}))`);
  for (const column of ["cool_until", "limited_until", "adopt_until"]) move(t.queue, column);
  move(t.breaker, "open_until");
  move(t.lane_rotation, "wake_at");
  move(t.lane_wakeup, "at");
  move(t.upkeep_task, "next_at");
}

function moveSchedules(handle: Handle, t: Tables, step: ClockStep): void {
  const { from, to } = step;
  // A pattern that is changed counts from its last run.
  if (from - to > DAY_MS)
    handle.prepare(`update ${t.schedule} set last_run_at = ? where last_run_at > ?`).run(to, to);
  const rows = handle
    .prepare(`select name, spec, edits, next_at, anchor_at from ${t.schedule} where next_at > ?`)
    .all(to) as { name: string; spec: string; edits: string | null; next_at: number; anchor_at: number }[];
  const slots = handle.prepare(`select at from ${t.occurrence} where schedule = ? and at > ?`);
  const set = handle.prepare(`update ${t.schedule} set next_at = ?, anchor_at = ? where name = ?`);
  for (const row of rows) {
    const made = slots.all(row.name, to) as { at: number }[];
    const moved = nextOf(
      row,
      made.map(({ at }) => at),
      step,
    );
    if (moved !== null) set.run(moved.nextAt, moved.anchorAt, row.name);
  }
}

function nextOf(
  row: { spec: string; edits: string | null; next_at: number; anchor_at: number },
  made: readonly number[],
  { from, to }: ClockStep,
): { nextAt: number; anchorAt: number } | null {
  try {
    const spec = readSpec(row.spec, row.edits);
    const by = to - from;
    if (spec.everyMs !== null)
      return { nextAt: Math.max(to, row.next_at + by), anchorAt: row.anchor_at + by };
    const has = new Set(made);
    const timing = timingOf(spec, row.anchor_at);
    let nextAt = timing.next(from - to > DAY_MS ? to : Math.max(to, ...made));
    while (nextAt !== null && nextAt < row.next_at && has.has(nextAt)) nextAt = timing.next(nextAt);
    return nextAt === null || nextAt >= row.next_at ? null : { nextAt, anchorAt: row.anchor_at };
  } catch {
    return null; // It cannot be read: the scheduler says so when it is due.
  }
}
