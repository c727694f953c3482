/**
 * Jobs as operators read and change them: the contract of store.ts.
 *
 * Invariant: a running job is never changed from here. Its holder is asked (lease/request-rows.ts), because only the holder's
 * fenced settle may end it.
 */
import type { Job, LaneLimits } from "../jobs/job.ts";
import type { EditOutcome, JobChange } from "../jobs/editable.ts";
import { isId } from "../values/id.ts";
import { type InputPatch, patched } from "../values/json-patch.ts";
import { tracePattern } from "../values/trace-id.ts";
import type {
  CancelOutcome,
  DeleteOutcome,
  JobFilter,
  JobPage,
  JobPlace,
  JobStore,
  PauseOutcome,
  ResumeOutcome,
  RetryOutcome,
} from "./store.ts";
import { given, type Params, type Row, type Script } from "../storage/catalogue.ts";
import type { Wake } from "../storage/wake.ts";
import { cursorFor, rowKeyIn } from "../jobs/page-cursor.ts";
import type { Ended } from "../enqueue/dependency-rows.ts";
import type { Driver } from "../storage/driver.ts";
import type { JobPlaces } from "../enqueue/placed-jobs.ts";
import type { DefinitionStore } from "../enqueue/store.ts";
import { takeKeys } from "../enqueue/unique-keys.ts";
import { askHolders, cancelScript, pauseScript, resumeScript } from "../lease/request-rows.ts";
import type { LimitedQueues } from "../limits/limited-queues.ts";
import { limitColumns, resolveLanes } from "../limits/lane-rows.ts";
import { job, maybeNumber, maybeText, number, text } from "../jobs/rows.ts";
import { editScript, judgeScript, placesOf } from "./edit-rows.ts";
import { placeOf } from "./why-rows.ts";

export interface JobsDeps {
  readonly driver: Driver;
  readonly places: JobPlaces;
  readonly definitions: DefinitionStore;
  readonly limitedQueues: LimitedQueues;
  readonly wake: (wake: Wake) => void;
  /** Releases the jobs that wait for these ends. */
  readonly resolve: (ended: readonly Ended[]) => Promise<void>;
}

export class Jobs implements JobStore {
  readonly #deps: JobsDeps;
  readonly #driver: Driver;

  constructor(deps: JobsDeps) {
    this.#deps = deps;
    this.#driver = deps.driver;
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
    return { jobs: given.map(job), cursor: last === undefined ? null : String(rowKeyIn(last)) };
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
      cursor: last === undefined ? null : String(rowKeyIn(last)),
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

  async cancel(
    ids: readonly string[],
    reason: string,
    { undo } = { undo: true },
  ): Promise<Map<string, CancelOutcome>> {
    const now = this.#driver.now();
    const at = this.#driver.clock.now();
    const { outcomes, asked, watched, undoing } = await this.#driver.transaction("cancel", () =>
      cancelScript(ids, reason, now, at, undo),
    );
    this.#tellHolders(asked);
    if (undoing) this.#deps.wake({ kind: "any" });
    await this.#deps.resolve(watched.map((id) => ({ id, state: "cancelled" })));
    return outcomes;
  }

  #tellHolders(sessions: Iterable<number>): void {
    for (const session of sessions) this.#deps.wake({ kind: "cancel", session });
  }

  async pause(ids: readonly string[], reason: string): Promise<Map<string, PauseOutcome>> {
    const now = this.#driver.now();
    const script = () => pauseScript(ids, reason, now);
    const { outcomes, asked } = await this.#driver.transaction("pause", script);
    this.#tellHolders(asked);
    return outcomes;
  }

  resume(ids: readonly string[]): Promise<Map<string, ResumeOutcome>> {
    const now = this.#driver.now();
    return this.#driver.transaction("resume", () => resumeScript(ids, now));
  }

  async delete(
    ids: readonly string[],
    those: "stop" | "leave" = "stop",
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
    const outcomes = await this.#driver.transaction("delete", script);
    this.#tellHolders(asked);
    return outcomes;
  }

  /**
   * Ended jobs come back with their attempts at 0. A unique key must be free, or the job would stand beside an active
   * sibling; of several with one key only the newest comes back. The others are `superseded` and stay as they are.
   */
  retry(ids: readonly string[], patch: InputPatch | null = null): Promise<Map<string, RetryOutcome>> {
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
      if (laned.length > 0) yield { name: "wakeLanesOfJobs", params: { ids: revivable } };
      const changed = revivable.flatMap((id) => {
        const input = inputs?.get(id);
        return input === undefined ? [] : [{ id, input }];
      });
      if (changed.length > 0) yield { name: "setInputs", params: { rows: changed } };
      if (revivable.length > 0) yield { name: "retrySteps", params: { ids: revivable } };
      // What was requested of it while it ran is over with that life of it.
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
      if (rows.length > 0)
        yield { name: "wakeLanesOfJobs", params: { ids: rows.map((row) => text(row, "id")) } };
      return rows;
    };
    const rows = await this.#driver.transaction("runNow", script);
    return new Set(rows.map((row) => text(row, "id")));
  }

  /** The job types and lanes of a new queue are made first, in transactions of their own. */
  async edit(ids: readonly string[], change: JobChange): Promise<Map<string, EditOutcome>> {
    const now = this.#driver.now();
    const limits = new Map<string, LaneLimits | null>();
    if (change.queue !== null) {
      const { places, limitedQueues, definitions } = this.#deps;
      const rows = await this.#driver.read({ name: "editable", params: { now, ids: ids.filter(isId) } });
      for (const place of placesOf(rows, change.queue)) {
        await places.learn(place);
        if (place.lane === null) continue;
        limitedQueues.add(place.queue);
        limits.set(place.name, (await definitions.list()).get(place.name)?.lanes ?? null);
      }
    }
    return this.#driver.transaction("edit", () => editScript(ids, change, limits, now));
  }

  async judgeEdits(ids: readonly string[], change: JobChange): Promise<Map<string, EditOutcome>> {
    const script = judgeScript(ids, change, this.#driver.now());
    // It only reads, so it need not wait for writers.
    let step = script.next();
    while (step.done !== true) step = script.next(await this.#driver.read(step.value));
    return step.value;
  }

  async place(id: string): Promise<JobPlace | null> {
    const [row] = await this.#driver.read({ name: "whyJob", params: { now: this.#driver.now(), id } });
    return row === undefined ? null : placeOf(row);
  }
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
