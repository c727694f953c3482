/**
 * Putting jobs elsewhere by hand: another time, queue or priority; dead ones into another queue, where they stay dead.
 *
 *   look (which job types and lanes will be needed) ─▶ make those ─▶ lock the rows ─▶ judge each (jobs/editable.ts) ─▶ write ─▶ ring
 *
 * Invariants: only rows that nobody holds are changed, under their lock, in the transaction that judged them; a job's job type
 * in `job` and in `ready` or `history` stays the same one; a job in a lane goes to the lane of the same key in its new queue.
 * Not here: walking over many in batches (job-rows.ts).
 */
import type { LaneLimits } from "../jobs/job.ts";
import { isId } from "../values/id.ts";
import {
  type EditOutcome,
  type JobChange,
  judgeEdit,
  judgeEnded,
  type StandingJob,
} from "../jobs/editable.ts";
import type { Row, Script } from "../storage/catalogue.ts";
import { limitColumns, resolveLanes } from "../limits/lane-rows.ts";
import { JobTypes, resolveJobTypes } from "../jobs/job-types.ts";
import { extras, flag, maybeNumber, maybeText, number, text } from "../jobs/rows.ts";

/** Where jobs of one name, with or without a lane, will stand. */
export interface Place {
  readonly queue: string;
  readonly name: string;
  readonly lane: string | null;
}

/** The places that a change of queue leads to, each once. */
export function placesOf(rows: readonly Row[], queue: string): Place[] {
  const places = rows.map((row) => ({ queue, name: text(row, "name"), lane: maybeText(row, "lane") }));
  return [...new Map(places.map((place) => [JSON.stringify(place), place])).values()];
}

/** Locks, judges and writes. `limits`: what a lane that is made here begins with, by the name's name. */
export function* editScript(
  ids: readonly string[],
  change: JobChange,
  limits: ReadonlyMap<string, LaneLimits | null>,
  now: number | null,
): Script<Map<string, EditOutcome>> {
  const wanted = [...new Set(ids.filter(isId))].sort();
  const outcomes = new Map<string, EditOutcome>(ids.map((id) => [id, "not_found"]));
  const rows = yield { name: "lockEditable", params: { now, ids: wanted } };
  const { editable, dead } = yield* judged(rows, wanted, change, outcomes);
  const rank = change.priority === null ? null : -change.priority || 0;
  if (dead.length > 0) yield* moveDead(dead, change.queue, rank);
  if (editable.length === 0) return outcomes;
  const stands = yield* newPlaces(editable, change.queue, limits, now);
  const written = editable.map((row) => {
    const id = text(row, "id");
    return { id, ...stands(row), rank, delay: change.delayMs, runAt: change.runAt };
  });
  yield { name: "editQueued", params: { now, rows: written } };
  if (written.some(({ laneId }) => laneId !== null) || editable.some((row) => row["lane"] !== null))
    yield { name: "wakeLanesOfJobs", params: { ids: written.map(({ id }) => id) } };
  return outcomes;
}

/** A lane's number is looked up when such a job is retried: its lane may be gone by then. */
function* moveDead(rows: readonly Row[], queue: string | null, rank: number | null): Script<void> {
  const jobTypes = new JobTypes();
  const places = queue === null ? [] : placesOf(rows, queue);
  if (places.length > 0) jobTypes.learn(yield* resolveJobTypes(jobTypes.unknown(places)));
  const written = rows.map((row) => {
    const [place] = queue === null ? [] : placesOf([row], queue);
    return { id: text(row, "id"), jobType: place === undefined ? null : (jobTypes.id(place) ?? null), rank };
  });
  written.sort((one, other) => (one.id < other.id ? -1 : 1));
  yield { name: "editEnded", params: { rows: written } };
}

/** Judges without a lock, and changes nothing. */
export function* judgeScript(
  ids: readonly string[],
  change: JobChange,
  now: number | null,
): Script<Map<string, EditOutcome>> {
  const wanted = [...new Set(ids.filter(isId))].sort();
  const outcomes = new Map<string, EditOutcome>(ids.map((id) => [id, "not_found"]));
  yield* judged(yield { name: "editable", params: { now, ids: wanted } }, wanted, change, outcomes);
  return outcomes;
}

/** Fills in the outcomes; gives the rows that may be edited, and those of them that are dead. */
function* judged(
  rows: readonly Row[],
  wanted: readonly string[],
  change: JobChange,
  outcomes: Map<string, EditOutcome>,
): Script<{ editable: readonly Row[]; dead: readonly Row[] }> {
  const editable: Row[] = [];
  const dead: Row[] = [];
  for (const row of rows) {
    const outcome = judgeEdit(standing(row), change, number(row, "now"));
    outcomes.set(text(row, "id"), outcome);
    if (outcome === "edited") editable.push(row);
  }
  const rest = wanted.filter((id) => outcomes.get(id) === "not_found");
  if (rest.length > 0)
    for (const row of yield { name: "findEnded", params: { ids: rest } }) {
      const isDead = text(row, "state") === "dead";
      const outcome = judgeEnded(
        { dead: isDead, queue: text(row, "queue"), keyScope: keyScopeOf(row) },
        change,
      );
      outcomes.set(text(row, "id"), outcome);
      if (outcome === "edited") dead.push(row);
    }
  return { editable, dead };
}

/** The job type and the lane's number of each; null: as they are. */
function* newPlaces(
  rows: readonly Row[],
  queue: string | null,
  limits: ReadonlyMap<string, LaneLimits | null>,
  now: number | null,
): Script<(row: Row) => { jobType: number | null; laneId: number | null }> {
  const moving = queue === null ? [] : rows.filter((row) => text(row, "queue") !== queue);
  if (queue === null || moving.length === 0) return () => ({ jobType: null, laneId: null });
  const jobTypes = new JobTypes();
  const named = moving.map((row) => ({ queue, name: text(row, "name"), lane: maybeText(row, "lane") }));
  jobTypes.learn(yield* resolveJobTypes(jobTypes.unknown(named)));
  const lanes = new Map<string, number>();
  const laned = new Map(
    named.flatMap(({ name, lane }) =>
      lane === null ? [] : [[lane, { queue, key: lane, ...limitColumns(limits.get(name) ?? null) }] as const],
    ),
  );
  if (laned.size > 0)
    for (const row of yield* resolveLanes([...laned.values()], now))
      lanes.set(text(row, "key"), number(row, "id"));
  return (row) => {
    if (text(row, "queue") === queue) return { jobType: null, laneId: null };
    const lane = maybeText(row, "lane");
    const jobType = jobTypes.id({ queue, name: text(row, "name"), lane }) as number;
    return { jobType, laneId: lane === null ? null : (lanes.get(lane) as number) };
  };
}

function standing(row: Row): StandingJob {
  return {
    running: row["token"] !== null,
    waits: maybeText(row, "waits"),
    begun: flag(row, "begun"),
    deadlineAt: maybeNumber(row, "deadline_at"),
    queue: text(row, "queue"),
    keyScope: keyScopeOf(row),
  };
}

/** What its key is unique within: the rule's scope travels in the extras. */
function keyScopeOf(row: Row): string | null {
  if (maybeText(row, "key") === null) return null;
  const rule = (extras(row) as { unique?: { scope?: string } } | null)?.unique;
  return rule?.scope ?? `job:${text(row, "name")}`;
}
