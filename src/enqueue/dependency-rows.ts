/**
 * Which job waits for which: written with the jobs, and let go when those that they wait for have ended.
 *
 *   enqueue with `after` ─▶ the others are marked under a lock ─▶ the jobs ─▶ who waits for whom, and for how many
 *   a job ends ─▶ meet (its dependents' rows) ─▶ lock the dependents ─▶ release | cancel ─▶ their dependents …
 *
 * Invariants: nothing here is quadratic: a follower of 10,000 jobs has a counter, and each end touches its own rows; whoever
 * makes a job wait for another, and whoever ends that other, meet on its row's lock, so that neither misses the other.
 * Not here: steps, signals and calls (workflows/step-rows.ts).
 */
import { UsageError } from "../errors.ts";
import type { EndState, Enqueued } from "../jobs/job.ts";
import { appendFailure } from "../jobs/failure.ts";
import type { Call, Row, RowList, Script } from "../storage/catalogue.ts";
import type { PlacedJob } from "./placed-jobs.ts";
import { enqueueScript } from "./unique-keys.ts";
import { flag, maybeText, number, text } from "../jobs/rows.ts";

/** An end that others may wait for. */
export interface Ended {
  readonly id: string;
  readonly state: EndState;
}

/** A lane is read only after a lane wake-up. */
export function* wakeLanes(rows: readonly Row[]): Script<void> {
  const laned = rows.filter((row) => flag(row, "laned")).map((row) => text(row, "id"));
  if (laned.length > 0) yield { name: "wakeLanesOfJobs", params: { ids: laned } };
}

/**
 * Lets go what waits for these ends, level by level: a dependent that is cancelled is an end that others wait for.
 * Answers how many can go on.
 */
export function* resolveScript(ended: readonly Ended[], now: number | null, at: number): Script<number> {
  let level = [...ended];
  let freed = 0;
  while (level.length > 0) {
    const rows = level.map(({ id, state }) => ({ id, state })).sort((a, b) => (a.id < b.id ? -1 : 1));
    const met = yield { name: "meet", params: { now, rows } };
    const byJob = new Map<string, { met: number; wake: boolean; cancelledBy: string | null }>();
    for (const row of met) {
      const job = text(row, "job");
      const entry = byJob.get(job) ?? { met: 0, wake: false, cancelledBy: null };
      entry.met += 1;
      const bad = text(row, "state") !== "done";
      if (bad && row["step"] !== null) entry.wake = true;
      // Who waits until it is done is told of another end only when nobody can retry it any more.
      const end = text(row, "policy") === "wait" ? "gone" : text(row, "state");
      if (bad && text(row, "policy") !== "continue")
        entry.cancelledBy = `job ${text(row, "on_job")}, a dependency, is ${end}`;
      byJob.set(job, entry);
    }
    if (byJob.size === 0) return freed;
    const locked = yield { name: "lockQueued", params: { ids: [...byJob.keys()].sort() } };
    const waiting = locked.filter((row) => row["token"] === null);
    const cancelled = waiting.filter((row) => byJob.get(text(row, "id"))?.cancelledBy !== null);
    const released = waiting
      .map((row) => text(row, "id"))
      .filter((id) => byJob.get(id)?.cancelledBy === null)
      .map((id) => ({ id, met: byJob.get(id)?.met ?? 0, wake: byJob.get(id)?.wake ?? false }));
    if (released.length > 0) {
      const due = yield { name: "release", params: { now, rows: released } };
      yield* wakeLanes(due);
      freed += due.filter((row) => flag(row, "due")).length;
    }
    level = [];
    if (cancelled.length > 0) {
      yield endCancelled(cancelled, (id) => byJob.get(id)?.cancelledBy ?? "", now, at);
      level = cancelled.map((row) => ({ id: text(row, "id"), state: "cancelled" as const }));
    }
  }
  return freed;
}

function endCancelled(
  rows: readonly Row[],
  reason: (id: string) => string,
  now: number | null,
  at: number,
): Call {
  const ended = rows.map((row) => ({
    id: text(row, "id"),
    state: "cancelled",
    errors: appendFailure(maybeText(row, "errors"), {
      at,
      attempt: number(row, "attempt"),
      message: reason(text(row, "id")),
      stack: null,
    }),
  }));
  const keyed = rows.filter((row) => row["key"] !== null).map((row) => text(row, "id"));
  return { name: "endQueued", params: { now, rows: ended, keyed } };
}

/**
 * Writes jobs of which some wait for others: in this batch, or anywhere. `lock` marks those others under a row lock; in
 * a user's own transaction they are only looked at, because it may stay open, and whoever settles them would wait for it.
 */
export function* enqueueWithAfter(
  placed: readonly PlacedJob[],
  now: number | null,
  at: number,
  lock: boolean,
): Script<Enqueued[]> {
  const own = new Set(placed.map(({ job }) => job.id));
  const wanted = placed.flatMap(({ job }) => job.after?.ids ?? []);
  if (wanted.length === 0) return yield* enqueueScript(placed, now);
  const outside = wanted.filter((id) => !own.has(id));
  const before = yield* findUpstream(outside, lock);
  const unknown = outside.find((id) => !before.live.has(id) && !before.ended.has(id));
  if (unknown !== undefined)
    throw new UsageError(
      "AFTER_UNKNOWN",
      `No job has the id ${unknown}. It never existed, was deleted, or its definition keeps no done jobs. Nothing was enqueued.`,
      { details: { job: unknown } },
    );
  const outcomes = yield* enqueueScript(placed, now);
  // A job whose key was taken stands for another one: whoever waits for it waits for that one.
  const became = new Map(placed.map(({ job }, place) => [job.id, outcomes[place]?.id ?? job.id]));
  const inside = wanted.filter((id) => own.has(id)).map((id) => became.get(id) ?? id);
  const after = yield* findUpstream(inside, true);
  // The key of a job that is done and not kept (`keep: false`) may hold on: it stands for work that was done.
  const gone = inside.filter((id) => !after.live.has(id)).map((id) => [id, "done"] as const);
  const ended = new Map<string, EndState>([...gone, ...before.ended, ...after.ended]);
  const added = placed.flatMap(({ job, jobType }, place) => {
    if (job.after === undefined || outcomes[place]?.status !== "enqueued") return [];
    const ids = job.after.ids.map((id) => became.get(id) ?? id);
    return [{ jobType, job: { ...job, after: { ...job.after, ids } } }];
  });
  yield* placeDependents(added, ended, now, at);
  return outcomes;
}

/** Which of the jobs that others are to wait for exist, and how those that have ended ended. */
function* findUpstream(
  ids: readonly string[],
  lock: boolean,
): Script<{ live: Set<string>; ended: Map<string, EndState> }> {
  const wanted = [...new Set(ids)].sort();
  const live = new Set<string>();
  if (wanted.length === 0) return { live, ended: new Map() };
  const there: Call = lock
    ? { name: "watch", params: { ids: wanted } }
    : { name: "findJobs", params: { ids: wanted } };
  for (const row of yield there) live.add(text(row, "id"));
  const rest = lock ? wanted.filter((id) => !live.has(id)) : wanted;
  const ended = new Map<string, EndState>();
  if (rest.length > 0)
    for (const row of yield { name: "endsOf", params: { ids: rest } })
      ended.set(text(row, "id"), text(row, "state") as EndState);
  for (const id of ended.keys()) live.delete(id);
  return { live, ended };
}

/** Writes who waits for whom, after the jobs themselves; ends those at once that can never start. */
function* placeDependents(
  placed: readonly PlacedJob[],
  ended: ReadonlyMap<string, EndState>,
  now: number | null,
  at: number,
): Script<void> {
  const rows: RowList[number][] = [];
  const pending: { id: string; pending: number }[] = [];
  const doomed = new Map<string, string>();
  for (const { job } of placed) {
    if (job.after === undefined) continue;
    const { policy } = job.after;
    let unmet = 0;
    for (const on of new Set(job.after.ids)) {
      const state = ended.get(on) ?? null;
      const met = state !== null && (state === "done" || policy !== "wait");
      if (!met) unmet += 1;
      if (state !== null && state !== "done" && policy === "cancel")
        doomed.set(job.id, `job ${on}, a dependency, is ${state}`);
      rows.push({ job: job.id, on, policy, step: null, state: met ? state : null });
    }
    if (unmet > 0) pending.push({ id: job.id, pending: unmet });
  }
  if (rows.length > 0) yield { name: "addDependencies", params: { now, rows } };
  if (pending.length > 0) yield { name: "placeDependents", params: { rows: pending } };
  if (doomed.size === 0) return;
  const locked = yield { name: "lockQueued", params: { ids: [...doomed.keys()].sort() } };
  yield endCancelled(locked, (id) => doomed.get(id) ?? "", now, at);
  yield* resolveScript(
    [...doomed.keys()].map((id) => ({ id, state: "cancelled" as const })),
    now,
    at,
  );
}
