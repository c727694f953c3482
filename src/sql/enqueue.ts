/**
 * Writing new jobs: the plain ones in one statement, those with a unique key after their keys are taken.
 *
 *   keys ──takeKeys──▶ won: insert        lost ─▶ keep: duplicate
 *                                              ─▶ replace, debounce: rewrite the job that holds the key, while it is queued
 *
 * Keys are a table with a primary key, so two processes cannot both win. Two jobs of one batch with one key never reach
 * the database: the batch settles that by itself first, in order, as if they had come one after the other.
 */
import type { Enqueued, NewJob } from "../job.ts";
import type { Row, RowList, Script } from "./catalogue.ts";

/** A job to insert or to rewrite, with its line. */
export interface PlacedJob {
  readonly job: NewJob;
  readonly line: number;
}

export function* enqueueScript(placed: readonly PlacedJob[], now: number | null): Script<Enqueued[]> {
  const outcomes: Enqueued[] = placed.map(({ job }) => ({ status: "enqueued", id: job.id }));
  const keyed = placed.filter(({ job }) => job.unique !== null);
  if (keyed.length === 0) {
    yield { name: "insertJobs", params: { now, rows: placed.map(jobRow) } };
    return outcomes;
  }
  const standing = standIns(placed, outcomes);
  const losers = yield* takeKeys(
    [...standing.values()].filter(({ job }) => job.unique !== null),
    now,
  );
  const replaced: { place: number; holder: string; item: PlacedJob }[] = [];
  placed.forEach(({ job }, place) => {
    const item = standing.get((outcomes[place] as Enqueued).id);
    const holder = item === undefined ? undefined : losers.get(item.job.id);
    if (item === undefined || holder === undefined) return;
    const mode = job.unique?.onConflict ?? "keep";
    outcomes[place] = {
      status: mode === "replace" ? "replaced" : mode === "debounce" ? "debounced" : "duplicate",
      id: holder,
    };
    if (mode !== "keep") replaced.push({ place, holder, item });
  });
  const rewritten = yield* rewrite(replaced, now);
  for (const { place, holder } of replaced) {
    // A holder that has started is past changing: the key is taken, and that is all there is to say.
    if (!rewritten.has(holder)) outcomes[place] = { status: "duplicate", id: holder };
  }
  const rows = [...standing.values()].filter(({ job }) => !losers.has(job.id)).map(jobRow);
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
        line: first.line,
        job: { ...item.job, id: first.job.id, name: first.job.name, queue: first.job.queue },
      };
      byKey.set(at as string, merged);
      standing.set(first.job.id, merged);
    }
  });
  return standing;
}

/** Takes the keys that are free. Answers with the jobs that found theirs taken, and by whom. */
function* takeKeys(keyed: readonly PlacedJob[], now: number | null): Script<Map<string, string>> {
  let wanted = keyed;
  const losers = new Map<string, string>();
  // A holder may end between the two statements; then the key is free, and one more try takes it.
  for (let round = 0; round < 5 && wanted.length > 0; round += 1) {
    const rows: RowList = wanted.map(({ job }) => ({
      scope: job.unique?.scope ?? "",
      key: job.unique?.key ?? "",
      id: job.id,
      forMs: job.unique?.forMs ?? null,
    }));
    const won = new Set((yield { name: "takeKeys", params: { now, rows } }).map((row) => String(row["id"])));
    const lost = rows.filter((row) => !won.has(String(row["id"])));
    if (lost.length === 0) break;
    const holders = new Map(
      (yield { name: "findKeys", params: { rows: lost } }).map((row: Row) => [
        `${String(row["scope"])}\n${String(row["key"])}`,
        String(row["id"]),
      ]),
    );
    for (const row of lost) {
      const holder = holders.get(`${String(row["scope"])}\n${String(row["key"])}`);
      if (holder !== undefined) losers.set(String(row["id"]), holder);
    }
    wanted = wanted.filter(({ job }) => !won.has(job.id) && !losers.has(job.id));
  }
  return losers;
}

function* rewrite(
  replaced: readonly { holder: string; item: PlacedJob }[],
  now: number | null,
): Script<Set<string>> {
  if (replaced.length === 0) return new Set();
  const byHolder = new Map(replaced.map(({ holder, item }) => [holder, { ...jobRow(item), id: holder }]));
  const rows = yield { name: "replaceQueued", params: { now, rows: [...byHolder.values()] } };
  return new Set(rows.map((row) => String(row["id"])));
}

function jobRow({ job, line }: PlacedJob): RowList[number] {
  return {
    id: job.id,
    line,
    rank: -job.priority || 0,
    delay: job.delayMs,
    runAt: job.runAt,
    input: job.input,
    maxAttempts: job.maxAttempts,
    timeout: job.timeoutMs,
    deadline: job.deadlineAt,
    parent: job.parentId,
    key: job.unique?.key ?? null,
    lane: job.lane,
    context: job.context === null ? null : JSON.stringify(job.context),
    extras: extrasText(job),
  };
}

/** The unique rule travels with the job, because a retry from the dead must take the key again. */
function extrasText(job: NewJob): string | null {
  const extras =
    job.unique === null
      ? job.extras
      : { ...job.extras, unique: { scope: job.unique.scope, forMs: job.unique.forMs } };
  return extras === null ? null : JSON.stringify(extras);
}
