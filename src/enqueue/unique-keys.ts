/**
 * New jobs in a script: those with a unique key after their keys are taken, and all whose ids may have been sent before.
 *
 *   keys ──takeKeys──▶ won: insert        lost ─▶ keep: duplicate
 *                                              ─▶ replace, debounce: rewrite the job that holds the key, while it is queued
 *
 * Keys are a table with a primary key, so two processes cannot both win. Two jobs of one batch with one key never reach
 * the database: the batch settles that by itself first, in order, as if they had come one after the other.
 */
import { StoreError } from "../errors.ts";
import type { Enqueued } from "../jobs/job.ts";
import type { Call, Script } from "../storage/catalogue.ts";
import { maybeText, text } from "../jobs/rows.ts";
import { jobRow, type PlacedJob } from "./placed-jobs.ts";

/** An id that one batch has twice is one job, the first, as it is when it comes in two batches. */
export function* eachIdOnce(
  placed: readonly PlacedJob[],
  write: (once: readonly PlacedJob[]) => Script<Enqueued[]>,
): Script<Enqueued[]> {
  const first = new Map<string, number>();
  const once = placed.filter(({ job }) => !first.has(job.id) && first.set(job.id, first.size));
  const outcomes = yield* write(once);
  return placed.map(({ job }) => outcomes[first.get(job.id) as number] as Enqueued);
}

export function* enqueueScript(placed: readonly PlacedJob[], now: number | null): Script<Enqueued[]> {
  const outcomes: Enqueued[] = placed.map(({ job }) => ({ status: "enqueued", id: job.id }));
  const keyed = placed.filter(({ job }) => job.unique !== null);
  if (keyed.length === 0) {
    yield { name: "insertJobs", params: { now, rows: placed.map(jobRow) } };
    return outcomes;
  }
  const standing = standIns(placed, outcomes);
  const keys = keysOf(standing);
  const used = yield* findUsed(keys);
  const losers = yield* takeKeys(
    keys.filter(({ id }) => !used.has(id)),
    now,
  );
  const replaced: { place: number; holder: string; item: PlacedJob }[] = [];
  placed.forEach(({ job }, place) => {
    const item = standing.get((outcomes[place] as Enqueued).id);
    if (item === undefined) return;
    const lostTo = losers.get(item.job.id);
    const holder = lostTo ?? used.get(item.job.id) ?? null;
    if (holder === null) return;
    const mode = job.unique?.onConflict ?? "keep";
    outcomes[place] = {
      status: mode === "replace" ? "replaced" : mode === "debounce" ? "debounced" : "duplicate",
      id: holder,
    };
    if (mode !== "keep" && lostTo !== undefined) replaced.push({ place, holder, item });
  });
  const rewritten = yield* rewrite(replaced, now);
  for (const { place, holder } of replaced) {
    // A holder that has started is past changing: the key is taken, and that is all there is to say.
    if (!rewritten.has(holder)) outcomes[place] = { status: "duplicate", id: holder };
  }
  const rows = [...standing.values()]
    .filter(({ job: { id } }) => !losers.has(id) && !used.has(id))
    .map(jobRow);
  if (rows.length > 0) yield { name: "insertJobs", params: { now, rows } };
  return outcomes;
}

/** The batch with each key at most once; marks in `outcomes` which job stands for which request. */
function standIns(placed: readonly PlacedJob[], outcomes: Enqueued[]): Map<string, PlacedJob> {
  const byKey = new Map<string, PlacedJob>();
  const standing = new Map<string, PlacedJob>();
  placed.forEach((item, place) => {
    const { unique } = item.job;
    const at = unique === null ? null : `${unique.scope}\n${unique.key}`;
    const first = at === null ? undefined : byKey.get(at);
    if (first === undefined) {
      if (at !== null) byKey.set(at, item);
      standing.set(item.job.id, item);
      return;
    }
    const mode = unique?.onConflict ?? "keep";
    outcomes[place] = {
      status: mode === "replace" ? "replaced" : mode === "debounce" ? "debounced" : "duplicate",
      id: first.job.id,
    };
    if (mode !== "keep") {
      const merged = {
        ...item,
        job: { ...item.job, id: first.job.id },
      };
      byKey.set(at as string, merged);
      standing.set(first.job.id, merged);
    }
  });
  return standing;
}

function keysOf(standing: ReadonlyMap<string, PlacedJob>): KeyRow[] {
  return [...standing.values()].flatMap(({ job: { id, unique } }) =>
    unique === null ? [] : [{ scope: unique.scope, key: unique.key, id, forMs: unique.forMs }],
  );
}

/**
 * Those that were sent before (or an id given twice), each with the job that it rewrote then; null: it is a job of its own, or was one
 * and is deleted. They take no key: theirs was taken with the job, and one taken now would never be freed. An enqueue that was
 * itself overwritten is not found: its input has not run to an end, so it counts as one that comes now.
 */
function* findUsed(keys: readonly KeyRow[]): Script<Map<string, string | null>> {
  const rows = yield { name: "findUsed", params: { ids: keys.map(({ id }) => id) } };
  return new Map(rows.map((row) => [text(row, "id"), maybeText(row, "job")]));
}

type KeyRow = { scope: string; key: string; id: string; forMs: number | null };

/**
 * Takes the keys that are free, and those whose holder has ended and whose time is over. Answers with the jobs that
 * found theirs taken, and by whom.
 */
export function* takeKeys(wanted: readonly KeyRow[], now: number | null): Script<Map<string, string>> {
  const losers = new Map<string, string>();
  let open = wanted;
  // A holder may end between two statements; then one more round takes its key.
  for (let round = 0; round < 5 && open.length > 0; round += 1) {
    const won = yield* idsOf({ name: "takeKeys", params: { now, rows: open } });
    open = open.filter(({ id }) => !won.has(id));
    if (open.length === 0) break;
    const holders = new Map<string, { id: string; stale: boolean }>();
    for (const row of yield { name: "findKeys", params: { now, rows: open } }) {
      const stale = row["stale"] === true || row["stale"] === 1;
      holders.set(`${String(row["scope"])}\n${String(row["key"])}`, { id: String(row["id"]), stale });
    }
    const stale = open.flatMap((row) => {
      const holder = holders.get(placeOf(row));
      return holder?.stale === true ? [{ ...row, holder: holder.id }] : [];
    });
    const taken =
      stale.length === 0 ? new Set() : yield* idsOf({ name: "takeStaleKeys", params: { now, rows: stale } });
    for (const row of open) {
      const holder = holders.get(placeOf(row));
      if (holder !== undefined && !holder.stale && holder.id !== row.id) losers.set(row.id, holder.id);
    }
    open = open.filter(
      (row) => !taken.has(row.id) && !losers.has(row.id) && holders.get(placeOf(row))?.id !== row.id,
    );
  }
  if (open.length === 0) return losers;
  throw new StoreError(
    "DATABASE_BUSY",
    `The unique key ${JSON.stringify(open[0]?.key)} was taken and freed too often to enqueue the job. Try again.`,
  );
}

function placeOf({ scope, key }: { scope: string; key: string }): string {
  return `${scope}\n${key}`;
}

function* idsOf(call: Call): Script<Set<string>> {
  return new Set((yield call).map((row) => String(row["id"])));
}

function* rewrite(
  replaced: readonly { holder: string; item: PlacedJob }[],
  now: number | null,
): Script<Set<string>> {
  if (replaced.length === 0) return new Set();
  const byHolder = new Map(
    replaced.map(({ holder, item }) => [holder, { ...jobRow(item), id: holder, sent: item.job.id }]),
  );
  const rows = yield { name: "replaceQueued", params: { now, rows: [...byHolder.values()] } };
  const ids = rows.map((row) => String(row["id"]));
  if (replaced.some(({ item }) => item.laneId !== undefined))
    yield { name: "wakeLanesOfJobs", params: { ids } };
  return new Set(ids);
}
