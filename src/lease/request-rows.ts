/**
 * What operators request of jobs that somebody runs: to be cancelled, or paused. Only the holder's fenced settle may touch a
 * running job, so a request is written down (`cancel`, and a mark on the job's row), its holder is told, and whoever gives the job back
 * grants it.
 *
 *   pause ─┬─ nobody runs it ─▶ it waits to be resumed, at once
 *          └─ it runs ─▶ a request ─▶ heard: the run stops before its next step ┐
 *                              └─▶ not heard, or the job has no steps       ─┴▶ given back (again, wait), out of reach ─▶ granted
 *   a process that died between giving back and granting ─▶ granted by the sweep (`strayRequests`)
 *
 * Invariants: a request is of one claim of a job. A pause is granted, withdrawn (resume), or ends with its job; a cancel is granted
 * when that claim sleeps, fails, never started or is cut short by a shutdown, but not when its holder gives the job back by choice
 * (promise B6: the next claim is not cancelled by it). The mark decides, and goes with the claim: it is on the row that the asking
 * and the giving back both lock, so neither can miss the other, and no later life of the job finds one. A pause does not take the
 * place of a cancel; what is paused keeps its attempts, steps and unique key.
 * Not here: stopping before the next step (workflows/run.ts).
 */
import { isId } from "../values/id.ts";
import type { CancelOutcome, PauseOutcome, ResumeOutcome } from "../operate/store.ts";
import type { Row, Script } from "../storage/catalogue.ts";
import { wakeLanes } from "../enqueue/dependency-rows.ts";
import { appendFailure } from "../jobs/failure.ts";
import { flag, maybeText, number, text } from "../jobs/rows.ts";

/** `ready.request`: what is requested of the claim that holds the job. */
export const PAUSE = 1;
export const CANCEL = 2;

/** What has to be told once a script has committed. */
export interface Granted {
  /** They are over, and somebody may wait for that. */
  readonly watched: readonly string[];
  /** Something is back in the line. */
  readonly woken: boolean;
  /** Sessions that hold one again. */
  readonly asked: ReadonlySet<number>;
}

/** A job that was just given back; a request counts only if it is of this claim of it (null: the job is out of reach for its sake). */
export interface GivenBack {
  readonly id: string;
  readonly token: number | null;
}

/** Grants what is requested of jobs that were just given back. */
export function* grantScript(given: readonly GivenBack[], now: number | null, at: number): Script<Granted> {
  const tokens = new Map(given.map(({ id, token }) => [id, token]));
  const known =
    given.length === 0 ? [] : yield { name: "requestsOf", params: { ids: [...tokens.keys()].sort() } };
  const requests = known.filter((row) => {
    const token = tokens.get(text(row, "id")) ?? null;
    return token === null || token === number(row, "token");
  });
  const watched: string[] = [];
  const asked = new Set<number>();
  let woken = false;
  if (requests.length > 0)
    yield { name: "withdraw", params: { ids: requests.map((row) => text(row, "id")), pauses: false } };
  for (const row of requests) {
    const [wanted, reason] = [[text(row, "id")], text(row, "reason")];
    if (flag(row, "pause")) {
      const paused = yield* pauseScript(wanted, reason, now);
      for (const session of paused.asked) asked.add(session);
    } else {
      const cancelled = yield* cancelScript(wanted, reason, now, at);
      for (const session of cancelled.asked) asked.add(session);
      watched.push(...cancelled.watched);
      woken ||= cancelled.undoing;
    }
  }
  return { watched, woken, asked };
}

/**
 * Cancels: what has not started, or sleeps, ends at once; a running job's holder is asked; a run with steps to undo goes
 * back to the line for that (unless `undo` is false: then only what nobody runs is ended).
 */
export function* cancelScript(
  ids: readonly string[],
  reason: string,
  now: number | null,
  at: number,
  undo = true,
): Script<{ outcomes: Map<string, CancelOutcome>; asked: Set<number>; watched: string[]; undoing: boolean }> {
  const wanted = ids.filter(isId);
  const rows = yield { name: "lockQueued", params: { ids: wanted } };
  const running = rows.filter((row) => row["token"] !== null);
  const idle = rows.filter((row) => row["token"] === null);
  const begun = undo ? idle.filter((row) => flag(row, "begun")).map((row) => text(row, "id")) : [];
  const found = begun.length === 0 ? [] : yield { name: "undoable", params: { ids: begun } };
  const undoable = new Set(found.filter((row) => !flag(row, "undoing")).map((row) => text(row, "id")));
  // What is being undone ends by itself; to end it now would leave the rest of its steps as they are.
  const undoing = new Set(found.filter((row) => flag(row, "undoing")).map((row) => text(row, "id")));
  const queued = idle.filter((row) => !undoable.has(text(row, "id")) && !undoing.has(text(row, "id")));
  let watched: string[] = [];
  if (undoable.size > 0) {
    const undos = idle
      .filter((row) => undoable.has(text(row, "id")))
      .map((row) => ({
        id: text(row, "id"),
        state: "cancelled",
        output: JSON.stringify(cancelled(row, reason, at)),
      }));
    const woken = undos.map(({ id }) => ({ id, met: 0, wake: true }));
    yield { name: "startUndo", params: { now, rows: undos } };
    yield { name: "resumeQueued", params: { now, ids: undos.map(({ id }) => id) } };
    yield { name: "release", params: { now, rows: woken } };
    const again = undos.map(({ id }) => id);
    yield { name: "runNow", params: { now, ids: again } };
    yield { name: "wakeLanesOfJobs", params: { ids: again } };
  }
  // One that was paused, or put out of reach for this cancel's sake, goes on undoing.
  const freed =
    undoing.size === 0 ? [] : yield { name: "resumeQueued", params: { now, ids: [...undoing].sort() } };
  yield* wakeLanes(freed);
  if (queued.length > 0) {
    const ended = queued.map((row) => ({
      id: text(row, "id"),
      state: "cancelled",
      errors: cancelled(row, reason, at),
    }));
    const keyed = queued.filter((row) => row["key"] !== null).map((row) => text(row, "id"));
    const over = yield { name: "endQueued", params: { now, rows: ended, keyed } };
    watched = over.filter((row) => flag(row, "watched")).map((row) => text(row, "id"));
  }
  // Who does not want steps undone asks nobody: a holder that hears of it would undo them.
  if (undo) yield* askHolders(running, { reason, pause: false }, now);
  const live = new Map<string, CancelOutcome>();
  for (const row of queued) live.set(text(row, "id"), "cancelled");
  for (const row of running) live.set(text(row, "id"), "cancel_requested");
  for (const id of [...undoable, ...undoing]) live.set(id, "cancel_requested");
  const rest = wanted.filter((id) => !live.has(id));
  const over = rest.length === 0 ? [] : yield { name: "findEnded", params: { ids: rest } };
  for (const row of over) live.set(text(row, "id"), "ended");
  return {
    outcomes: new Map(ids.map((id) => [id, live.get(id) ?? "not_found"])),
    asked: new Set(undo ? running.map((row) => number(row, "session")) : []),
    watched,
    undoing: undoable.size > 0 || freed.length > 0,
  };
}

function cancelled(row: Row, reason: string, at: number): string {
  return appendFailure(maybeText(row, "errors"), {
    at,
    attempt: number(row, "attempt"),
    message: reason,
    stack: null,
  });
}

/** Writes down what is requested of running jobs (lease/request-rows.ts). */
export function* askHolders(
  running: readonly Row[],
  request: { readonly reason: string; readonly pause: boolean },
  now: number | null,
): Script<void> {
  if (running.length === 0) return;
  const rows = running.map((row) => ({
    id: text(row, "id"),
    session: number(row, "session"),
    token: number(row, "token"),
    ...request,
  }));
  yield { name: "askHolder", params: { now, rows } };
}

/** Pauses: what nobody runs waits to be resumed from here on; a running job's holder is asked. */
export function* pauseScript(
  ids: readonly string[],
  reason: string,
  now: number | null,
): Script<{ outcomes: Map<string, PauseOutcome>; asked: Set<number> }> {
  const wanted = ids.filter(isId).sort();
  const rows = yield { name: "lockQueued", params: { ids: wanted } };
  const running = rows.filter((row) => row["token"] !== null);
  const idle = rows.filter((row) => row["token"] === null).map((row) => text(row, "id"));
  const note = JSON.stringify({ kind: "paused", reason });
  if (idle.length > 0) {
    yield { name: "pauseQueued", params: { ids: idle, note } };
    // What was asked of an earlier claim and left behind is not to be found beside a pause.
    yield { name: "withdraw", params: { ids: idle, pauses: false } };
  }
  yield* askHolders(running, { reason, pause: true }, now);
  const outcomes = new Map<string, PauseOutcome>(ids.map((id) => [id, "not_found"]));
  for (const id of idle) outcomes.set(id, "paused");
  for (const row of running) outcomes.set(text(row, "id"), "pause_requested");
  yield* markEnded(wanted, outcomes);
  return { outcomes, asked: new Set(running.map((row) => number(row, "session"))) };
}

/** Resumes: what was paused goes on; of what runs, the request is withdrawn. */
export function* resumeScript(
  ids: readonly string[],
  now: number | null,
): Script<Map<string, ResumeOutcome>> {
  const wanted = ids.filter(isId).sort();
  const rows = yield { name: "lockQueued", params: { ids: wanted } };
  const withdrawn = yield { name: "withdraw", params: { ids: wanted, pauses: true } };
  const resumed = yield { name: "resumeQueued", params: { now, ids: wanted } };
  yield* wakeLanes(resumed);
  const outcomes = new Map<string, ResumeOutcome>(ids.map((id) => [id, "not_found"]));
  for (const row of rows) outcomes.set(text(row, "id"), "not_paused");
  for (const row of [...withdrawn, ...resumed]) outcomes.set(text(row, "id"), "resumed");
  yield* markEnded(wanted, outcomes);
  return outcomes;
}

function* markEnded(wanted: readonly string[], outcomes: Map<string, string>): Script<void> {
  const rest = wanted.filter((id) => outcomes.get(id) === "not_found");
  if (rest.length === 0) return;
  for (const row of yield { name: "findEnded", params: { ids: rest } })
    outcomes.set(text(row, "id"), "ended");
}
