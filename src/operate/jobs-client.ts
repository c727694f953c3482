/**
 * `hf.jobs`: reading jobs, and what an operator does with them one by one or by filter.
 *
 * Invariants: one id resolves to what became of it, a filter to how many became what; an unknown id is an outcome
 * (`not_found`, or null), not an error. Bulk actions walk in batches of 500, each a short transaction of its own,
 * and give way to the event loop in between, so that 50,000 jobs do not hold up claims (promise I2).
 * Not here: why a job is not running (why.ts), waiting for a result (jobs/result.ts).
 */
import { shown, StateError, UsageError } from "../errors.ts";
import type { Emitter } from "../events.ts";
import { checkBulkFilter, checkFilter, checkIdText, FILTER_OPTIONS, type JobQuery } from "./filter.ts";
import type { Enqueued, Job, JobState, NewJob } from "../jobs/job.ts";
import { type EnqueueResult, PRIORITY_BOUNDS } from "../jobs/requests.ts";
import { type Duration, durationMs, instantMs } from "../values/duration.ts";
import { EDIT_OUTCOMES, type EditOutcome, type JobChange } from "../jobs/editable.ts";
import { isId } from "../values/id.ts";
import { checkName, checkText } from "../values/name.ts";
import { checkInteger, checkOptions } from "../values/options.ts";
import { checkPatch, type InputPatch } from "../values/json-patch.ts";
import type { Retry } from "../storage/retry-calls.ts";
import type {
  CancelOutcome,
  DeleteOutcome,
  JobFilter,
  JobPage,
  PauseOutcome,
  ResumeOutcome,
  RetryOutcome,
} from "./store.ts";
import type { Store } from "../storage/store.ts";
import { decide, policyFor } from "../jobs/transition.ts";
import { historyOf, type JobHistory } from "../workflows/job-history.ts";
import { explain, type Why } from "./why.ts";

/** What `jobs.runNow` came to. */
export type RunNowOutcome = "due" | "not_scheduled" | "not_found";

/**
 * How many jobs a bulk action matched, and what became of them.
 *
 * @example
 * const { matched, retried, superseded } = await hf.jobs.retry({ state: "dead" });
 */
export type BulkResult<Outcome extends string> = { readonly matched: number } & Readonly<
  Record<Outcome, number>
>;

/** What `hf.jobs.list` takes: which jobs, and which page of them. */
export interface ListQuery extends JobQuery {
  /** 1 to 1,000; default 50. */
  readonly limit?: number | undefined;
  /** From the page before. */
  readonly cursor?: string | null | undefined;
}

/** What `hf.jobs` needs of the client. */
export interface JobsDeps {
  readonly store: Store;
  readonly retry: Retry;
  readonly checkOpen: () => void;
  readonly events: Pick<Emitter, "has" | "emit">;
  /** Aborts the job if a worker of this process runs it. */
  readonly cancelHere: (id: string, reason: string) => void;
  /** Stops its run before its next step, if a worker of this process runs it. */
  readonly pauseHere: (id: string) => void;
  readonly env: { readonly now: () => number; readonly random: () => number };
  /** Gives way to the event loop. */
  readonly nextTurn: () => Promise<void>;
  readonly newId: () => string;
  readonly committed: (jobs: readonly NewJob[], outcomes: readonly Enqueued[]) => void;
}

/**
 * What `hf.jobs.edit` changes; at least one of them.
 *
 * @example
 * await hf.jobs.edit({ queue: "mail", state: "scheduled" }, { at: new Date("2026-02-01T08:00Z"), priority: 5 });
 */
export interface JobEdit {
  /** Due so long from now: "5m", or milliseconds. */
  readonly delay?: Duration | undefined;
  /** Due at this instant, in place of a delay. */
  readonly at?: Date | number | undefined;
  readonly queue?: string | undefined;
  /** Higher first. */
  readonly priority?: number | undefined;
}

/** Options of `hf.jobs.retry`. */
export interface RetryOptions {
  /**
   * Changes the input first: an object to merge into it (RFC 7396; null takes a key away), or the steps of a JSON Patch (RFC
   * 6902). Jobs whose input it does not fit stay as they are (`patch_failed`). A unique key or lane stays what it was.
   */
  readonly patch?: InputPatch | undefined;
}

/** Options of `hf.jobs.cancel`. */
export interface CancelOptions {
  /** Also cancels what the job has called or enqueued, and what that has, and so on. */
  readonly cascade?: boolean | undefined;
}

const batchSize = 500;
const mostChildren = 100_000;
const live: readonly JobState[] = ["scheduled", "ready", "running", "waiting"];
const cancelReason = "cancelled by user";
const terminateReason = "terminated by user";
/** How often what changes hands is run after. */
const terminateRounds = 5;
const pauseOutcomes = ["paused", "pause_requested", "ended", "not_found"] as const;
const resumeOutcomes = ["resumed", "not_paused", "ended", "not_found"] as const;
const terminateOutcomes = ["terminated", "cancel_requested", "ended", "not_found"] as const;
const cancelOutcomes = ["cancelled", "cancel_requested", "ended", "not_found"] as const;
const deleteOutcomes = {
  stop: ["deleted", "cancel_requested", "not_found"],
  leave: ["deleted", "running", "not_found"],
} as const;
const retryOutcomes = ["retried", "superseded", "not_ended", "not_found"] as const;
const runNowOutcomes = ["due", "not_scheduled", "not_found"] as const;

/** What `jobs.terminate` came to. */
export type TerminateOutcome = "terminated" | "cancel_requested" | "ended" | "not_found";

/** Options of `hf.jobs.pause`. */
export interface PauseOptions {
  /** Shown to whoever asks why. */
  readonly reason?: string | undefined;
}

/** Options of `hf.jobs.delete`. */
export interface DeleteOptions {
  /** What becomes of a job that runs: it is asked to stop (the default), or left alone. */
  readonly running?: "stop" | "leave" | undefined;
}

/** `hf.jobs`. */
export class Jobs {
  readonly #deps: JobsDeps;

  constructor(deps: JobsDeps) {
    this.#deps = deps;
  }

  /**
   * The job, or null for an unknown id.
   *
   * @example
   * const job = await hf.jobs.get(id);
   * if (job?.state === "dead") console.log(job.error);
   */
  async get<Input = unknown, Output = unknown>(id: string): Promise<Job<Input, Output> | null> {
    this.#deps.checkOpen();
    const known = checkIdText(id, "jobs.get");
    if (!isId(known)) return null;
    return (await this.#deps.retry.repeatable(() => this.#deps.store.jobs.get(known))) as Job<
      Input,
      Output
    > | null;
  }

  /**
   * One page of jobs, newest first.
   *
   * @example
   * let page = await hf.jobs.list({ state: "dead", limit: 100 });
   * while (page.cursor !== null) page = await hf.jobs.list({ state: "dead", limit: 100, cursor: page.cursor });
   */
  async list(query: ListQuery = {}): Promise<JobPage> {
    this.#deps.checkOpen();
    const given = checkOptions(query, [...FILTER_OPTIONS, "limit", "cursor"], "jobs.list") as ListQuery;
    const filter = checkFilter(given);
    const limit = given.limit === undefined ? 50 : checkInteger(given.limit, "limit", { min: 1, max: 1_000 });
    const cursor = given.cursor ?? null;
    if (filter.ids?.length === 0) return { jobs: [], cursor: null };
    return this.#deps.retry.repeatable(() => this.#deps.store.jobs.list(filter, { limit, cursor }));
  }

  /**
   * How many jobs match, exactly.
   *
   * @example
   * await hf.jobs.count({ state: ["ready", "scheduled"], queue: "mail" });
   */
  async count(query: JobQuery = {}): Promise<number> {
    this.#deps.checkOpen();
    const filter = checkFilter(checkOptions(query, FILTER_OPTIONS, "jobs.count"));
    if (filter.ids?.length === 0) return 0;
    return this.#deps.retry.repeatable(() => this.#deps.store.jobs.count(filter));
  }

  /**
   * Runs ended jobs again, with all their attempts. Of several with one unique key only the newest comes back, and
   * none beside a job that holds the key now: those are `superseded`. A filter without `state` means dead jobs.
   *
   * @example
   * await hf.jobs.retry(id);                                 // "retried"
   * await hf.jobs.retry({ state: "dead", queue: "mail" });   // { matched: 3, retried: 1, superseded: 2, … }
   * await hf.jobs.retry(id, { patch: { to: "ada@example.org", cc: null } });   // with another input
   */
  retry(id: string, options?: RetryOptions): Promise<RetryOutcome>;
  retry(filter: JobQuery, options?: RetryOptions): Promise<BulkResult<RetryOutcome>>;
  async retry(
    which: string | JobQuery,
    options?: RetryOptions,
  ): Promise<RetryOutcome | BulkResult<RetryOutcome>> {
    const given = checkOptions(options, ["patch"], "jobs.retry") as RetryOptions;
    const patch = given.patch === undefined ? null : checkPatch(given.patch);
    const known = patch === null ? retryOutcomes : ([...retryOutcomes, "patch_failed"] as const);
    const act = async (ids: readonly string[]): Promise<ReadonlyMap<string, RetryOutcome>> => {
      const outcomes = await this.#deps.retry.once(() => this.#deps.store.jobs.retry(ids, patch));
      if ([...outcomes.values()].includes("retried")) this.#deps.store.wake({ kind: "any" });
      return outcomes;
    };
    if (typeof which === "string") return this.#one(which, "jobs.retry", act);
    // Newest first, because the newest of each key is the one that may come back.
    return this.#bulk(withStates(this.#filter(which, "jobs.retry"), ["dead"]), known, act, "newest-first");
  }

  /**
   * Cancels jobs that have not ended. One that runs is asked to stop: at once in this process, within a heartbeat
   * elsewhere; if its handler finishes all the same, its result stands.
   *
   * @example
   * await hf.jobs.cancel(id);   // "cancelled" | "cancel_requested" | "ended" | "not_found"
   */
  cancel(id: string, options?: CancelOptions): Promise<CancelOutcome>;
  cancel(filter: JobQuery, options?: CancelOptions): Promise<BulkResult<CancelOutcome>>;
  async cancel(
    which: string | JobQuery,
    options?: CancelOptions,
  ): Promise<CancelOutcome | BulkResult<CancelOutcome>> {
    const { cascade } = checkOptions(options, ["cascade"], "jobs.cancel") as CancelOptions;
    const act = async (ids: readonly string[]): Promise<ReadonlyMap<string, CancelOutcome>> => {
      const outcomes = await this.#deps.retry.once(() => this.#deps.store.jobs.cancel(ids, cancelReason));
      await this.#tellHolders(outcomes, cancelReason);
      await this.#tellCancelled(outcomes, cancelReason);
      if (cascade === true) await this.#cascade(ids, act);
      return outcomes;
    };
    if (typeof which === "string") return this.#one(which, "jobs.cancel", act);
    return this.#bulk(withStates(this.#filter(which, "jobs.cancel"), live), cancelOutcomes, act);
  }

  /**
   * Ends jobs as cancelled, now: a handler that runs is not waited for (its signal aborts, and nothing it still does
   * counts), and no step is undone. For what `cancel` cannot end: a handler that ignores its signal, an undo that never works.
   *
   * @example
   * await hf.jobs.terminate(id);   // "terminated" | "ended" | "not_found"; rarely "cancel_requested": it changed hands too fast
   */
  terminate(id: string, options?: CancelOptions): Promise<TerminateOutcome>;
  terminate(filter: JobQuery, options?: CancelOptions): Promise<BulkResult<TerminateOutcome>>;
  async terminate(
    which: string | JobQuery,
    options?: CancelOptions,
  ): Promise<TerminateOutcome | BulkResult<TerminateOutcome>> {
    const { cascade } = checkOptions(options, ["cascade"], "jobs.terminate") as CancelOptions;
    const act = async (ids: readonly string[]): Promise<ReadonlyMap<string, TerminateOutcome>> => {
      const outcomes = await this.#terminate(ids);
      if (cascade === true) await this.#cascade(ids, act);
      return outcomes;
    };
    if (typeof which === "string") return this.#one(which, "jobs.terminate", act);
    return this.#bulk(withStates(this.#filter(which, "jobs.terminate"), live), terminateOutcomes, act);
  }

  /**
   * Holds jobs where they are until `resume`: what has not started does not start, what sleeps or waits does not go on, and a
   * workflow that runs stops before its next step (`pause_requested` until then). A handler without steps comes to its end; if it
   * fails, it is not tried again before `resume`. Attempts, steps, unique key and place in a lane are kept.
   *
   * @example
   * await hf.jobs.pause(id, { reason: "the invoice is disputed" });   // "paused" | "pause_requested" | "ended" | "not_found"
   */
  pause(id: string, options?: PauseOptions): Promise<PauseOutcome>;
  pause(filter: JobQuery, options?: PauseOptions): Promise<BulkResult<PauseOutcome>>;
  async pause(
    which: string | JobQuery,
    options?: PauseOptions,
  ): Promise<PauseOutcome | BulkResult<PauseOutcome>> {
    const { reason } = checkOptions(options, ["reason"], "jobs.pause") as PauseOptions;
    const why = reason === undefined || reason === "" ? "by user" : checkText(reason, "reason", 4_096);
    const act = async (ids: readonly string[]): Promise<ReadonlyMap<string, PauseOutcome>> => {
      const outcomes = await this.#deps.retry.repeatable(() => this.#deps.store.jobs.pause(ids, why));
      for (const [id, outcome] of outcomes) if (outcome === "pause_requested") this.#deps.pauseHere(id);
      return outcomes;
    };
    if (typeof which === "string") return this.#one(which, "jobs.pause", act);
    return this.#bulk(withStates(this.#filter(which, "jobs.pause"), live), pauseOutcomes, act);
  }

  /**
   * Lets paused jobs go on: a retry or a start at its time, or at once if that has passed; a workflow looks at once whether what
   * it waited for is there. Its queue may still be paused.
   *
   * @example
   * await hf.jobs.resume(id);   // "resumed" | "not_paused" | "ended" | "not_found"
   */
  resume(id: string): Promise<ResumeOutcome>;
  resume(filter: JobQuery): Promise<BulkResult<ResumeOutcome>>;
  async resume(which: string | JobQuery): Promise<ResumeOutcome | BulkResult<ResumeOutcome>> {
    const act = async (ids: readonly string[]): Promise<ReadonlyMap<string, ResumeOutcome>> => {
      const outcomes = await this.#deps.retry.once(() => this.#deps.store.jobs.resume(ids));
      if ([...outcomes.values()].includes("resumed")) this.#deps.store.wake({ kind: "any" });
      return outcomes;
    };
    if (typeof which === "string") return this.#one(which, "jobs.resume", act);
    return this.#bulk(
      withStates(this.#filter(which, "jobs.resume"), ["waiting", "running"]),
      resumeOutcomes,
      act,
    );
  }

  /**
   * Deletes jobs, whatever their state. One that runs is asked to stop instead: delete it again once it has ended. With
   * `running: "leave"` it is left to run.
   *
   * @example
   * await hf.jobs.delete(id);   // "deleted" | "cancel_requested" | "not_found"
   */
  delete(id: string, options?: DeleteOptions): Promise<DeleteOutcome>;
  delete(filter: JobQuery, options?: DeleteOptions): Promise<BulkResult<DeleteOutcome>>;
  async delete(
    which: string | JobQuery,
    options: DeleteOptions = {},
  ): Promise<DeleteOutcome | BulkResult<DeleteOutcome>> {
    const { running = "stop" } = checkOptions(options, ["running"], "jobs.delete") as DeleteOptions;
    if (running !== "stop" && running !== "leave")
      throw new UsageError("BAD_OPTION", 'running must be "stop" or "leave".', {
        details: { option: "running" },
      });
    const act = async (ids: readonly string[]): Promise<ReadonlyMap<string, DeleteOutcome>> => {
      const outcomes = await this.#deps.retry.once(() => this.#deps.store.jobs.delete(ids, running));
      await this.#tellHolders(outcomes, cancelReason);
      return outcomes;
    };
    if (typeof which === "string") return this.#one(which, "jobs.delete", act);
    return this.#bulk(this.#filter(which, "jobs.delete"), deleteOutcomes[running], act);
  }

  /**
   * Runs a workflow that has ended again from one of its steps, as a new job: what it did before that step is taken over, the
   * step and all after it are done anew, by the code that workers have now. The first run stays as it is.
   *
   * @throws StateError JOB_NOT_FOUND, FORK_REFUSED
   * @example
   * const { id } = await hf.jobs.fork(orderId, { from: "send-invoice" });
   */
  async fork(id: string, options: { readonly from: string }): Promise<EnqueueResult> {
    this.#deps.checkOpen();
    const known = checkIdText(id, "jobs.fork");
    const { from } = checkOptions(options, ["from"], "jobs.fork") as { from: string };
    const step = checkText(from, "from");
    const { store, retry, newId, committed } = this.#deps;
    const fresh = newId();
    const made = isId(known) ? await retry.once(() => store.workflows.fork(known, step, fresh)) : null;
    if (made === null) {
      if (isId(known) && (await this.get(known)) !== null)
        throw new StateError("FORK_REFUSED", `Job ${known} has not ended. Wait for it, or cancel it first.`, {
          details: { id: known },
        });
      throw new StateError(
        "JOB_NOT_FOUND",
        `There is no job ${shown(known)}. It never existed, or was deleted or pruned.`,
        {
          details: { id: known },
        },
      );
    }
    if (made.refused !== null)
      throw new StateError("FORK_REFUSED", made.refused, { details: { id: known, from: step } });
    committed([made.job], [made.enqueued]);
    return { id: made.enqueued.id, status: made.enqueued.status };
  }

  /**
   * Makes scheduled jobs due now.
   *
   * @example
   * await hf.jobs.runNow(id);   // "due" | "not_scheduled" | "not_found"
   */
  runNow(id: string): Promise<RunNowOutcome>;
  runNow(filter: JobQuery): Promise<BulkResult<RunNowOutcome>>;
  async runNow(which: string | JobQuery): Promise<RunNowOutcome | BulkResult<RunNowOutcome>> {
    const { store, retry } = this.#deps;
    const act = async (ids: readonly string[]): Promise<ReadonlyMap<string, RunNowOutcome>> => {
      const due = await retry.once(() => store.jobs.runNow(ids));
      if (due.size > 0) store.wake({ kind: "any" });
      return new Map(ids.map((id) => [id, due.has(id) ? "due" : "not_scheduled"]));
    };
    if (typeof which !== "string")
      return this.#bulk(withStates(this.#filter(which, "jobs.runNow"), ["scheduled"]), runNowOutcomes, act);
    const outcome = await this.#one(which, "jobs.runNow", act);
    return outcome === "not_scheduled" && (await this.get(which)) === null ? "not_found" : outcome;
  }

  /**
   * Puts jobs that have not started elsewhere: to another time, queue or priority. Dead jobs (`state: "dead"`) take another
   * queue and priority and stay dead there, until they are retried. The others are passed over, and the
   * answer says why: they run, have ended, are `waiting` (a run that sleeps or waits says itself when it goes on), would be
   * `past_deadline`, or are `keyed` (unique within their queue, which they would leave).
   *
   * @example
   * await hf.jobs.edit(id, { delay: "2h" });                        // "edited"
   * await hf.jobs.edit({ queue: "mail" }, { queue: "mail-slow" });  // { matched: 12, edited: 11, running: 1, … }
   * await hf.jobs.edit({ queue: "mail", state: "dead" }, { queue: "mail-dead" });  // put aside
   */
  edit(id: string, change: JobEdit): Promise<EditOutcome>;
  edit(filter: JobQuery, change: JobEdit): Promise<BulkResult<EditOutcome>>;
  async edit(which: string | JobQuery, change: JobEdit): Promise<EditOutcome | BulkResult<EditOutcome>> {
    const { store, retry } = this.#deps;
    const wanted = checkEdit(change);
    const act = async (ids: readonly string[]): Promise<ReadonlyMap<string, EditOutcome>> => {
      const outcomes = await retry.once(() => store.jobs.edit(ids, wanted));
      if ([...outcomes.values()].includes("edited")) store.wake({ kind: "any" });
      return outcomes;
    };
    if (typeof which === "string") return this.#one(which, "jobs.edit", act);
    return this.#bulk(
      withStates(this.#filter(which, "jobs.edit"), ["scheduled", "ready", "waiting"]),
      EDIT_OUTCOMES,
      act,
    );
  }

  /**
   * Why a job is not running, in one sentence and as data.
   *
   * @example
   * const { reason, text } = await hf.jobs.why(id);   // "paused", "Queue \"mail\" has been paused since …"
   */
  async why(id: string): Promise<Why> {
    const job = await this.get(id);
    return this.#deps.retry.repeatable(() => explain(this.#deps.store, id, job));
  }

  /**
   * Everything that is known of a job's life: its attempts, the steps that it remembers, the signals that it took or
   * waits for, and the jobs that it called, enqueued or waits for. Null for an unknown id.
   *
   * @example
   * const { steps } = (await hf.jobs.history(id))!;
   * for (const { name, state, startedAt, endedAt, error } of steps) console.log(name, state, error);
   */
  async history(id: string): Promise<JobHistory | null> {
    const job = await this.get(id);
    if (job === null) return null;
    const { store, retry } = this.#deps;
    return retry.repeatable(() => historyOf(store, job));
  }

  async #terminate(ids: readonly string[]): Promise<Map<string, TerminateOutcome>> {
    const outcomes = new Map<string, TerminateOutcome>();
    // What is given back or taken up meanwhile is met in the next round. Nobody is asked first: who obeys a cancel undoes.
    let left = ids;
    for (let round = 0; round < terminateRounds && left.length > 0; round += 1) {
      for (const id of await this.#wrest(left)) outcomes.set(id, "terminated");
      const rest = left.filter((id) => !outcomes.has(id));
      left = await this.#endIdle(rest, outcomes);
    }
    if (left.length === 0) return outcomes;
    const asked = await this.#deps.retry.once(() => this.#deps.store.jobs.cancel(left, terminateReason));
    await this.#tellHolders(asked, terminateReason);
    for (const [id, outcome] of asked) outcomes.set(id, outcome === "cancelled" ? "terminated" : outcome);
    return outcomes;
  }

  /** Ends those that nobody holds; gives those that somebody does. */
  async #endIdle(ids: readonly string[], outcomes: Map<string, TerminateOutcome>): Promise<string[]> {
    if (ids.length === 0) return [];
    const { store, retry } = this.#deps;
    const ended = await retry.once(() => store.jobs.cancel(ids, terminateReason, { undo: false }));
    await this.#tellCancelled(ended, terminateReason);
    const held: string[] = [];
    for (const [id, outcome] of ended) {
      if (outcome === "cancel_requested") held.push(id);
      else outcomes.set(id, outcome === "cancelled" ? "terminated" : outcome);
    }
    return held;
  }

  /** Takes running jobs out of their holders' hands, and ends them. */
  async #wrest(ids: readonly string[]): Promise<ReadonlySet<string>> {
    const { store, retry, env } = this.#deps;
    const held = await retry.repeatable(() => store.sessions.held(ids));
    if (held.length === 0) return new Set();
    const ends = held.map((job) => ({
      session: job.session,
      end: decide(job, { kind: "cancelled", reason: terminateReason }, policyFor(job, null, null), env),
    }));
    const wrested = await retry.once(() => store.settles.wrest(ends));
    const { events } = this.#deps;
    if (events.has("job.cancelled"))
      for (const { id, name, queue } of held)
        if (wrested.has(id)) events.emit("job.cancelled", { id, name, queue, reason: terminateReason });
    return wrested;
  }

  /** Children first found, then theirs: a page at a time, until there are no more. */
  async #cascade(ids: readonly string[], act: (ids: readonly string[]) => Promise<unknown>): Promise<void> {
    const { store, retry } = this.#deps;
    for (let at = 0; at < ids.length; at += batchSize) {
      const children = await retry.repeatable(() =>
        store.workflows.children(ids.slice(at, at + batchSize), mostChildren),
      );
      for (let from = 0; from < children.length; from += batchSize)
        await act(children.slice(from, from + batchSize)); // which cascades in its turn
    }
  }

  #filter(which: JobQuery, what: string): JobFilter {
    this.#deps.checkOpen();
    return checkBulkFilter(which, what);
  }

  async #one<Outcome extends string>(
    id: string,
    what: string,
    act: (ids: readonly string[]) => Promise<ReadonlyMap<string, Outcome>>,
  ): Promise<Outcome | "not_found"> {
    this.#deps.checkOpen();
    const known = checkIdText(id, what);
    if (!isId(known)) return "not_found";
    return (await act([known])).get(known) ?? "not_found";
  }

  async #bulk<Outcome extends string>(
    filter: JobFilter,
    outcomes: readonly Outcome[],
    act: (ids: readonly string[]) => Promise<ReadonlyMap<string, Outcome>>,
    order: "oldest-first" | "newest-first" = "oldest-first",
  ): Promise<BulkResult<Outcome>> {
    const counts = new Map<Outcome, number>(outcomes.map((outcome) => [outcome, 0]));
    const examples: BulkExample[] = [];
    let matched = 0;
    for await (const ids of this.#batches(filter, order)) {
      const became = await act(ids);
      matched += ids.length;
      for (const [id, outcome] of became) {
        const n = (counts.get(outcome) ?? 0) + 1;
        counts.set(outcome, n);
        if (outcome !== outcomes[0] && n <= mostExamples) examples.push({ id, outcome });
      }
      await this.#deps.nextTurn();
    }
    const result = { matched, ...Object.fromEntries(counts) } as BulkResult<Outcome>;
    bulkExamples.set(result, examples);
    return result;
  }

  async *#batches(
    given: JobFilter,
    order: "oldest-first" | "newest-first",
  ): AsyncGenerator<readonly string[]> {
    const { store, retry } = this.#deps;
    if (given.ids?.length === 0) return;
    // Bounded by now: otherwise jobs that keep coming in would keep the walk going.
    const now = await retry.repeatable(() => store.now());
    const filter: JobFilter = { ...given, until: Math.min(given.until ?? Infinity, now + 1) };
    const newestFirst: string[] = [];
    let cursor: string | null = null;
    for (;;) {
      const after: string | null = cursor;
      const page: { ids: string[]; cursor: string | null } = await retry.repeatable(() =>
        store.jobs.ids(filter, { limit: batchSize, cursor: after }),
      );
      const { ids } = page;
      if (ids.length === 0) break;
      cursor = page.cursor;
      if (order === "oldest-first") yield ids;
      else newestFirst.push(...ids);
      if (ids.length < batchSize) break;
    }
    for (let end = newestFirst.length; end > 0; end -= batchSize)
      yield newestFirst.slice(Math.max(0, end - batchSize), end);
  }

  /** Jobs that had not started end here and now, and no worker tells of them. */
  async #tellCancelled(outcomes: ReadonlyMap<string, CancelOutcome>, reason: string): Promise<void> {
    const { events, store } = this.#deps;
    if (!events.has("job.cancelled")) return;
    const ids = [...outcomes].filter(([, outcome]) => outcome === "cancelled").map(([id]) => id);
    if (ids.length === 0) return;
    try {
      const { jobs } = await store.jobs.list({ ids }, { limit: ids.length, cursor: null });
      for (const { id, name, queue } of jobs) events.emit("job.cancelled", { id, name, queue, reason });
    } catch {
      // They are cancelled all the same, and the caller must hear that rather than of the listeners' bad luck.
    }
  }

  /** Running jobs whose stop was asked for: in this process at once, elsewhere by waking who holds them. */
  async #tellHolders(outcomes: ReadonlyMap<string, string>, reason: string): Promise<void> {
    const asked = new Set(
      [...outcomes].filter(([, outcome]) => outcome === "cancel_requested").map(([id]) => id),
    );
    if (asked.size === 0) return;
    for (const id of asked) this.#deps.cancelHere(id, reason);
    try {
      for (const worker of await this.#deps.store.workers.list()) {
        if (worker.jobs.some((id) => asked.has(id)))
          this.#deps.store.wake({ kind: "cancel", session: worker.session });
      }
    } catch {
      // The request is written: its holder reads it with the next renewal at the latest.
    }
  }
}

/** A job of a bulk action, and what became of it. */
export interface BulkExample {
  readonly id: string;
  readonly outcome: string;
}

/** As many of each outcome are remembered by their ids. */
const mostExamples = 20;
const bulkExamples = new WeakMap<object, readonly BulkExample[]>();

/** Some of those that a bulk action did not simply do what it is called to, by the result that it gave. */
export function examplesOf(result: object): readonly BulkExample[] {
  return bulkExamples.get(result) ?? [];
}

function withStates(filter: JobFilter, states: readonly JobState[]): JobFilter {
  return filter.state === undefined && filter.ids === undefined ? { ...filter, state: states } : filter;
}

/** @throws UsageError */
export function checkEdit(change: JobEdit): JobChange {
  const given = checkOptions(change, ["delay", "at", "queue", "priority"], "jobs.edit") as JobEdit;
  const { delay, at, queue, priority } = given;
  if (delay !== undefined && at !== undefined)
    throw new UsageError("BAD_OPTION", "Give either delay (a duration) or at (an instant), not both.");
  if ([delay, at, queue, priority].every((value) => value === undefined))
    throw new UsageError("BAD_OPTION", "jobs.edit needs at least one change: delay or at, queue, priority.");
  return {
    delayMs: delay === undefined ? null : durationMs(delay, "delay"),
    runAt: at === undefined ? null : instantMs(at, "at"),
    queue: queue === undefined ? null : checkName(queue, "queue"),
    priority: priority === undefined ? null : checkInteger(priority, "priority", PRIORITY_BOUNDS),
  };
}
