/**
 * Looking at jobs and acting on them by hand: get, list, count, cancel, delete, retry, run now.
 *
 * Every action takes a batch and says for each id what became of it. A running job is never touched from here: its
 * holder is asked (`cancel` table), because only the holder's fenced settle may end it.
 */
import type { Clock } from "../clock.ts";
import type { Job } from "../jobs/job.ts";
import { appendFailure } from "../jobs/failure.ts";
import { isId } from "../values/id.ts";
import { type InputPatch, patched } from "../values/json-patch.ts";
import { tracePattern } from "../values/trace-id.ts";
import type { CancelOutcome, DeleteOutcome, JobFilter, JobPage, RetryOutcome } from "../storage/store.ts";
import { given, type Params, type Row, type Script } from "../storage/catalogue.ts";
import { cursorFor, placeIn } from "../jobs/page-cursor.ts";
import { ringLanes } from "../enqueue/dependency-rows.ts";
import type { Driver } from "../storage/driver.ts";
import { takeKeys } from "../enqueue/insert.ts";
import { limitColumns, resolveLanes } from "../limits/lane-rows.ts";
import { flag, job, maybeNumber, maybeText, number, text } from "../jobs/rows.ts";

export class Jobs {
  readonly #driver: Driver;
  readonly #clock: Clock;

  constructor(driver: Driver, clock: Clock) {
    this.#driver = driver;
    this.#clock = clock;
  }

  async get(id: string): Promise<Job | null> {
    if (!isId(id)) return null;
    const [row] = await this.#driver.read({ name: "get", params: { now: this.#driver.now(), id } });
    return row === undefined ? null : job(row);
  }

  async list(filter: JobFilter, page: { limit: number; cursor: string | null }): Promise<JobPage> {
    // One more than asked for tells whether there is a next page.
    const rows = await this.#driver.read({
      name:
        filter.batch !== undefined ? "listMembers" : filter.workflow === undefined ? "list" : "listChildren",
      params: {
        ...this.#filter(filter),
        cursor: cursorFor(this.#driver, page.cursor),
        limit: page.limit + 1,
      },
    });
    const given = rows.slice(0, page.limit);
    const last = rows.length > page.limit ? given.at(-1) : undefined;
    return { jobs: given.map(job), cursor: last === undefined ? null : String(placeIn(last)) };
  }

  async ids(
    filter: JobFilter,
    page: { limit: number; cursor: string | null },
  ): Promise<{ ids: string[]; cursor: string | null }> {
    const rows = await this.#driver.read({
      name:
        filter.batch !== undefined ? "idsOfMembers" : filter.workflow === undefined ? "ids" : "idsOfChildren",
      params: { ...this.#filter(filter), ...page },
    });
    const last = rows.at(-1);
    return {
      ids: rows.map((row) => text(row, "id")),
      cursor: last === undefined ? null : String(placeIn(last)),
    };
  }

  async count(filter: JobFilter): Promise<number> {
    const [row] = await this.#driver.read({
      name:
        filter.batch !== undefined
          ? "countMembers"
          : filter.workflow === undefined
            ? "count"
            : "countChildren",
      params: this.#filter(filter),
    });
    return number(row as Row, "count");
  }

  #filter(filter: JobFilter): Params {
    const list = (value: string | readonly string[] | undefined) =>
      typeof value === "string" ? [value] : value;
    const fields = given({
      ids: filter.ids?.filter(isId),
      states: list(filter.state),
      queues: list(filter.queue),
      names: list(filter.name),
      lane: filter.lane,
      key: filter.key,
      workflow: filter.workflow,
      batch: filter.batch,
      trace: filter.trace === undefined ? null : tracePattern(filter.trace),
      since: filter.since,
      until: filter.until,
      search: filter.search === undefined ? null : needle(filter.search),
    });
    return { now: this.#driver.now(), ...fields };
  }

  cancel(
    ids: readonly string[],
    reason: string,
    undo: boolean,
    tell: {
      /** A running job's holder is to be asked. */
      ask(session: number): void;
      /** It is over, and somebody waits for that. */
      ended(id: string): void;
      /** It is back in the line, to undo its steps. */
      again(): void;
    },
  ): Promise<Map<string, CancelOutcome>> {
    const now = this.#driver.now();
    const at = this.#clock.now();
    return this.#driver
      .transaction("cancel", () => cancelScript(ids, reason, now, at, undo))
      .then(({ outcomes, asked, watched, undoing }) => {
        for (const session of asked) tell.ask(session);
        for (const id of watched) tell.ended(id);
        if (undoing) tell.again();
        return outcomes;
      });
  }

  delete(
    ids: readonly string[],
    those: "stop" | "leave",
    ask: (session: number) => void,
  ): Promise<Map<string, DeleteOutcome>> {
    const now = this.#driver.now();
    const wanted = ids.filter(isId);
    const asked = new Set<number>();
    const script = function* (): Script<Map<string, DeleteOutcome>> {
      const rows = yield { name: "lockQueued", params: { ids: wanted } };
      const running = rows.filter((row) => row["token"] !== null);
      if (those === "stop") yield* askHolders(running, { reason: "deleted by user", pause: false }, now);
      if (those === "stop") for (const row of running) asked.add(maybeNumber(row, "session") as number);
      const held = new Set(running.map((row) => text(row, "id")));
      const free = wanted.filter((id) => !held.has(id));
      const gone = yield { name: "forget", params: { now, ids: free, freed: true } };
      const deleted = new Set(gone.map((row) => text(row, "id")));
      const left = those === "stop" ? "cancel_requested" : "running";
      return new Map(ids.map((id) => [id, deleted.has(id) ? "deleted" : held.has(id) ? left : "not_found"]));
    };
    return this.#driver.transaction("delete", script).then((outcomes) => {
      for (const session of asked) ask(session);
      return outcomes;
    });
  }

  /**
   * Ended jobs come back with their attempts at 0. A unique key must be free, or the job would stand beside an active
   * sibling; of several with one key only the newest comes back. The others are `superseded` and stay as they are.
   */
  retry(ids: readonly string[], patch: InputPatch | null): Promise<Map<string, RetryOutcome>> {
    const now = this.#driver.now();
    const wanted = ids.filter(isId);
    const script = function* (): Script<Map<string, RetryOutcome>> {
      const outcomes = new Map<string, RetryOutcome>(ids.map((id) => [id, "not_found"]));
      const live = yield { name: "lockQueued", params: { ids: wanted } };
      for (const row of live) outcomes.set(text(row, "id"), "not_ended");
      const found = yield { name: "findEnded", params: { ids: wanted } }; // newest first
      // Neither live nor ended: another caller may have retried it between the two statements.
      const missing = wanted.filter(
        (id) => outcomes.get(id) === "not_found" && !found.some((row) => row["id"] === id),
      );
      const revivedNow = missing.length === 0 ? [] : yield { name: "lockQueued", params: { ids: missing } };
      for (const row of revivedNow) outcomes.set(text(row, "id"), "not_ended");
      const inputs = patch === null ? null : yield* patchInputs(found, patch);
      const ended = inputs === null ? found : found.filter((row) => inputs.has(text(row, "id")));
      for (const row of found) if (!ended.includes(row)) outcomes.set(text(row, "id"), "patch_failed");
      const keys = new Map<string, { scope: string; key: string; id: string; forMs: number | null }>();
      const revivable: string[] = [];
      for (const row of ended) {
        const id = text(row, "id");
        const key = uniqueOf(row);
        if (key === null) revivable.push(id);
        else if (keys.has(`${key.scope}\n${key.key}`)) outcomes.set(id, "superseded");
        else keys.set(`${key.scope}\n${key.key}`, { ...key, id });
      }
      const taken = yield* takeKeys([...keys.values()], now);
      for (const { id } of keys.values()) {
        if (taken.has(id)) outcomes.set(id, "superseded");
        else revivable.push(id);
      }
      const laned = ended.filter((row) => row["lane"] !== null);
      if (laned.length > 0) {
        // Its lane may have been forgotten since.
        const lanes = new Map(
          laned.map((row) => {
            const at = { queue: text(row, "queue"), key: text(row, "lane") };
            return [`${at.queue}\n${at.key}`, { ...at, ...limitColumns(null) }];
          }),
        );
        yield* resolveLanes([...lanes.values()], now);
      }
      const revived =
        revivable.length === 0 ? [] : yield { name: "revive", params: { now, ids: revivable.sort() } };
      if (laned.length > 0) yield { name: "ringJobs", params: { ids: revivable } };
      const changed = revivable.flatMap((id) => {
        const input = inputs?.get(id);
        return input === undefined ? [] : [{ id, input }];
      });
      if (changed.length > 0) yield { name: "setInputs", params: { rows: changed } };
      if (revivable.length > 0) yield { name: "retrySteps", params: { ids: revivable } };
      // What was wished of it while it ran is over with that life of it.
      if (revivable.length > 0) yield { name: "withdraw", params: { ids: revivable, pauses: false } };
      for (const row of revived) outcomes.set(text(row, "id"), "retried");
      return outcomes;
    };
    return this.#driver.transaction("retry", script);
  }

  async runNow(ids: readonly string[]): Promise<Set<string>> {
    const now = this.#driver.now();
    const script = function* (): Script<Row[]> {
      const rows = yield { name: "runNow", params: { now, ids: ids.filter(isId) } };
      if (rows.length > 0) yield { name: "ringJobs", params: { ids: rows.map((row) => text(row, "id")) } };
      return rows;
    };
    const rows = await this.#driver.transaction("runNow", script);
    return new Set(rows.map((row) => text(row, "id")));
  }
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
    yield { name: "ringJobs", params: { ids: again } };
  }
  // One that was paused, or put out of reach for this cancel's sake, goes on undoing.
  const freed =
    undoing.size === 0 ? [] : yield { name: "resumeQueued", params: { now, ids: [...undoing].sort() } };
  yield* ringLanes(freed);
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

/** The inputs of these jobs as the patch leaves them; those that it does not fit are left out. */
function* patchInputs(rows: readonly Row[], patch: InputPatch): Script<Map<string, string>> {
  if (rows.length === 0) return new Map();
  const inputs = yield { name: "inputsOf", params: { ids: rows.map((row) => text(row, "id")) } };
  return new Map(
    inputs.flatMap((row) => {
      const input = patched(text(row, "input"), patch);
      return input === null ? [] : [[text(row, "id"), input] as const];
    }),
  );
}

/** As the text stands in JSON, and with ASCII letters in lower case: all that both databases agree on. */
export function needle(search: string): string {
  return JSON.stringify(search)
    .slice(1, -1)
    .replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}

/** Writes down what is wished of running jobs (lease/request-rows.ts). */
export function* askHolders(
  running: readonly Row[],
  wish: { readonly reason: string; readonly pause: boolean },
  now: number | null,
): Script<void> {
  if (running.length === 0) return;
  const rows = running.map((row) => ({
    id: text(row, "id"),
    session: number(row, "session"),
    token: number(row, "token"),
    ...wish,
  }));
  yield { name: "askHolder", params: { now, rows } };
}

/** The unique key that an ended job had; its scope travels in the extras. */
function uniqueOf(row: Row): { scope: string; key: string; forMs: number | null } | null {
  const key = maybeText(row, "key");
  if (key === null) return null;
  const extras = JSON.parse(maybeText(row, "extras") ?? "{}") as {
    unique?: { scope: string; forMs: number | null };
  };
  return {
    key,
    scope: extras.unique?.scope ?? `job:${text(row, "name")}`,
    forMs: extras.unique?.forMs ?? null,
  };
}
