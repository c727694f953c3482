/**
 * Actions on every job that a filter matches, as operations that can be watched, paused, gone on with and stopped.
 *
 *   start ─▶ running ──chunk by chunk──▶ done            somebody's process drives it; its row says how far it is
 *              │  ▲                                      (cursor, counts, by the database's clock)
 *       pause  ▼  │  resume (by anybody: that process drives it then)
 *            paused ──▶ stopped          failed ──resume──▶ running
 *
 * It is one row in `state`, written after each chunk, and changed only where nobody else has changed it since it was read:
 * so a dashboard, another dashboard and a terminal see the same, and each can pause what another drives. A driver that
 * was killed leaves a row that stands still; whoever resumes it goes on from its cursor. The chunk at hand may then be met
 * twice, and what it did to a job that it had done before counts as refused (`not_ended` and its like).
 * Invariants: an operation touches what its filter matches, newest first (of several jobs with one key the newest may come
 * back); at a rate it never touches more jobs in the rate's time than that; its start and its end are on the audit trail.
 * Not here: what an action does to jobs (jobs-client.ts), HTTP (dashboard/), the terminal (cli/).
 */
import { randomUUID } from "node:crypto";
import { sleep } from "../clock.ts";
import { shown, UsageError } from "../errors.ts";
import type { CappedCount, Insight, InsightFilter, InsightPage } from "./browse.ts";
import type { JobState } from "../jobs/job.ts";
import { type BulkExample, examplesOf, type JobEdit } from "./jobs-client.ts";
import { type BulkVerb, STATES_OF } from "./bulk-verbs.ts";
import { type Duration, durationMs } from "../values/duration.ts";
import { idFactory, isId } from "../values/id.ts";
import type { InputPatch } from "../values/json-patch.ts";
import { type Operated, type Operator, operatorOf } from "./operator.ts";
import type { StateRow } from "../state/store.ts";

export { type BulkAction, type BulkVerb, STATES_OF } from "./bulk-verbs.ts";

/** An edit as it can be kept: `at` is an instant in epoch milliseconds. */
export interface KeptEdit {
  readonly delay?: Duration;
  readonly at?: number;
  readonly queue?: string;
  readonly priority?: number;
}

/** At most so many jobs in so long. */
export interface OperationRate {
  readonly limit: number;
  readonly perMs: number;
}

/** What is to be done to which jobs. */
export interface Task {
  readonly action: BulkVerb;
  readonly filter: InsightFilter;
  /** Of an edit. */
  readonly change: KeptEdit | null;
  /** Of a retry: what is changed in the inputs first. */
  readonly patch?: InputPatch | null;
  readonly rate: OperationRate | null;
}

export interface Operation extends Task {
  readonly id: string;
  /** Who started it. */
  readonly actor: string;
  readonly state: "running" | "paused" | "done" | "stopped" | "failed";
  /** It runs by its row, but nobody has driven it for longer than a chunk takes. */
  readonly standsStill: boolean;
  readonly startedAt: number;
  readonly endedAt: number | null;
  /** When its row was last written. */
  readonly seenAt: number;
  /** How many matched at its start. */
  readonly total: CappedCount;
  /** How many it has come to. */
  readonly matched: number;
  readonly outcomes: Readonly<Record<string, number>>;
  /** Of those that it has come to: to whom the action could not be done. */
  readonly refused: number;
  /** The first of them, with what stood in the way. */
  readonly refusals: readonly BulkExample[];
  readonly error: string | null;
}

/** An operation that this process drives. */
export interface Driven {
  readonly id: string;
  /** How it stands now, as far as this process knows. */
  readonly now: () => Operation;
  /** When this process has left it: it is over, or somebody paused it or took it over. */
  readonly left: Promise<Operation>;
}

interface Kept extends Omit<Operation, "standsStill" | "refused" | "refusals" | "seenAt"> {
  /** Not there in rows that were written before it was kept. */
  readonly refusals?: readonly BulkExample[];
  /** Whose it is; another that finds a foreign name here leaves. */
  readonly driver: string | null;
  readonly cursor: string | null;
}

/** Where the filter names no state. */
const usual: Readonly<Record<BulkVerb, readonly JobState[]>> = {
  ...STATES_OF,
  retry: ["dead"],
  edit: ["scheduled", "ready", "waiting"],
};

const did: Readonly<Record<BulkVerb, readonly string[]>> = {
  retry: ["retried"],
  "run-now": ["due"],
  pause: ["paused", "pause_requested"],
  resume: ["resumed"],
  cancel: ["cancelled", "cancel_requested"],
  terminate: ["terminated"],
  delete: ["deleted"],
  purge: ["deleted"],
  edit: ["edited"],
};

const prefix = "holdfast:operation:";
const chunk = 500;
/** As many are listed; of those that are over as many are kept. */
const mostKept = 100;
/** Longer than a chunk takes, whatever the machine does besides. */
const stillMs = 30_000;
const checkMs = 2_000;
const idsKept = 10;
const mostRefusals = 20;

/**
 * The filter of an action: only states that it can act on.
 *
 * @throws UsageError BAD_OPTION
 */
export function actionFilter(action: BulkVerb, filter: InsightFilter): InsightFilter {
  if (filter.ids !== undefined && filter.states === undefined) return filter;
  const states = filter.states?.filter((state) => STATES_OF[action].includes(state)) ?? usual[action];
  if (states.length > 0) return { ...filter, states };
  throw new UsageError(
    "BAD_OPTION",
    `${action} has no effect on jobs that are ${(filter.states ?? []).join(" or ")}.`,
    { details: { option: "filter.state" } },
  );
}

/**
 * A rate out of what a caller gave.
 *
 * @throws UsageError BAD_OPTION
 * @example
 * checkRate({ limit: 50, per: "1s" }); // { limit: 50, perMs: 1_000 }
 */
export function checkRate(given: unknown): OperationRate {
  const { limit, per = "1s" } = (given ?? {}) as { limit?: unknown; per?: unknown };
  if (typeof limit !== "number" || !Number.isInteger(limit) || limit < 1 || limit > 1_000_000)
    throw new UsageError(
      "BAD_OPTION",
      `rate.limit must be a whole number from 1 to 1,000,000: the number of jobs in rate.per; got ${shown(limit)}.`,
      { details: { option: "rate.limit" } },
    );
  const perMs = durationMs(per as Duration, "rate.per");
  if (perMs >= 1 && perMs <= 86_400_000) return { limit, perMs };
  throw new UsageError("BAD_OPTION", `rate.per must lie between 1 ms and a day; got ${shown(per)}.`, {
    details: { option: "rate.per" },
  });
}

/**
 * How many at a time, and how long each of them takes at this rate: a second's worth at once, or one.
 *
 * @example
 * pace({ limit: 50, perMs: 1_000 }); // { size: 50, eachMs: 20 }
 */
export function pace(rate: OperationRate | null): { size: number; eachMs: number } {
  if (rate === null) return { size: chunk, eachMs: 0 };
  const eachMs = rate.perMs / rate.limit;
  // No more at once than the rate allows in its whole time: 5 in 100 ms are not 50 in one go.
  const size = Math.min(chunk, rate.limit, Math.max(1, Math.floor(1_000 / eachMs)));
  return { size, eachMs };
}

export class Operations {
  readonly #hf: Operated;
  readonly #operator: Operator;
  readonly #newId: () => string;
  readonly #here = new Map<string, Driven>();
  /** Cuts the rest between two chunks short. */
  readonly #wakes = new Map<string, AbortController>();
  readonly #closing = new AbortController();

  constructor(hf: Operated) {
    this.#hf = hf;
    this.#operator = operatorOf(hf);
    this.#newId = idFactory(() => this.#operator.env.clock.now());
  }

  /** How many this process drives. */
  get driven(): number {
    return this.#here.size;
  }

  /** Starts it here. The filter has been made that of the action (`actionFilter`) and bounded by now. */
  async start(task: Task, actor: string): Promise<Driven> {
    const { store, retry } = this.#operator;
    const total = await retry.repeatable(() => countOf(store.insight, task.filter));
    const driver = randomUUID();
    const kept: Kept = {
      ...task,
      id: this.#newId(),
      actor,
      state: "running",
      startedAt: await retry.repeatable(() => store.now()),
      endedAt: null,
      total,
      matched: 0,
      outcomes: {},
      error: null,
      driver,
      cursor: null,
    };
    await this.#audit(kept, actor, "started");
    await retry.repeatable(() => store.state.set(prefix + kept.id, JSON.stringify(kept)));
    await this.#forget();
    return this.#drive(kept, driver);
  }

  /** The newest first. */
  async list(): Promise<Operation[]> {
    const { store, retry } = this.#operator;
    const rows = await retry.repeatable(() => store.state.rows(prefix, mostKept));
    return rows.flatMap((row) => {
      const kept = keptOf(row);
      return kept === null ? [] : [operationOf(kept, row)];
    });
  }

  async get(id: string): Promise<Operation | null> {
    const read = await this.#read(id);
    return read === null ? null : operationOf(read.kept, read.row);
  }

  /** Whoever drives it leaves after the chunk at hand. Null: there is none. */
  pause(id: string, actor: string): Promise<Operation | null> {
    return this.#steer(id, actor, "paused", (kept) =>
      kept.state === "running" ? { state: "paused" } : null,
    );
  }

  /** Ends it where it is. Null: there is none. */
  stop(id: string, actor: string): Promise<Operation | null> {
    return this.#steer(id, actor, "stopped", (kept, now) =>
      kept.state === "done" || kept.state === "stopped" ? null : { state: "stopped", endedAt: now },
    );
  }

  /**
   * Goes on with it here: one that is paused, has failed, or stands still. Null: there is none; an operation: it is over, or
   * somebody drives it.
   */
  async resume(id: string, actor: string): Promise<Driven | Operation | null> {
    const read = await this.#read(id);
    if (read === null) return null;
    const known = operationOf(read.kept, read.row);
    if (known.state === "done" || known.state === "stopped") return known;
    if (known.state === "running" && !known.standsStill) return known;
    const driver = randomUUID();
    const kept = await this.#change(id, (one) =>
      one.driver === read.kept.driver && one.state === read.kept.state
        ? { ...one, state: "running", driver, endedAt: null, error: null }
        : null,
    );
    if (kept === null) return this.get(id); // somebody was faster
    await this.#audit(kept, actor, "resumed");
    return this.#drive(kept, driver);
  }

  /** This process drives none any more; what it drove stands still until somebody resumes it. */
  close(): void {
    this.#closing.abort();
  }

  #drive(kept: Kept, driver: string): Driven {
    let now = operationOf(kept, null);
    this.#wakes.set(kept.id, new AbortController());
    const left = this.#run(kept, driver, (one) => (now = one)).then((last) => {
      this.#here.delete(kept.id);
      this.#wakes.delete(kept.id);
      return last;
    });
    const driven: Driven = { id: kept.id, now: () => now, left };
    this.#here.set(kept.id, driven);
    return driven;
  }

  async #run(begun: Kept, driver: string, tell: (now: Operation) => void): Promise<Operation> {
    let last = operationOf(begun, null);
    try {
      last = await this.#walk(begun, driver, tell);
    } catch (error) {
      const { logger } = this.#operator.settings;
      logger.error({ error, operation: begun.id }, "a bulk action failed");
      const failed = {
        state: "failed",
        endedAt: this.#operator.env.clock.now(),
        error: "The operation failed. Completed changes stay; the log has the cause.",
      } as const;
      const kept = await this.#change(
        begun.id,
        (one) => mine(one, driver) && one.state === "running" && { ...one, ...failed },
      ).catch(() => null);
      last = kept === null ? { ...last, ...failed } : operationOf(kept, null);
      if (kept !== null) await this.#audit(kept, kept.actor, "failed").catch(() => {});
    }
    tell(last);
    return last;
  }

  async #walk(begun: Kept, driver: string, tell: (now: Operation) => void): Promise<Operation> {
    const { store, env, retry } = this.#operator;
    const { size, eachMs } = pace(begun.rate);
    const { clock } = env;
    for (;;) {
      const read = await this.#read(begun.id);
      const now = operationOf(read?.kept ?? begun, read?.row ?? null);
      if (read === null || !mine(read.kept, driver) || read.kept.state !== "running") return now;
      if (this.#closing.signal.aborted) return now;
      const from = clock.monotonic();
      const { filter, cursor } = read.kept;
      const page = await retry.repeatable(() => this.#page(filter, size, cursor));
      const { ids } = page;
      const result = ids.length === 0 ? {} : await actOn(this.#hf, read.kept, ids);
      const ended = page.cursor === null ? await retry.repeatable(() => store.now()) : null;
      const kept = await this.#change(
        begun.id,
        (one) =>
          mine(one, driver) &&
          // Else this chunk is counted: somebody has paused it since, before the answer was known to be lost.
          one.matched === read.kept.matched && {
            ...one,
            cursor: page.cursor,
            matched: one.matched + ids.length,
            outcomes: summed(one.outcomes, result),
            refusals: withRefusals(one, result),
            // Paused or stopped meanwhile: its last chunk is counted all the same, and the end is the end.
            ...(ended === null || one.state === "stopped" ? {} : { state: "done" as const, endedAt: ended }),
          },
      );
      if (kept === null) return (await this.get(begun.id)) ?? now;
      tell(operationOf(kept, null));
      if (ended !== null) {
        await this.#audit(kept, kept.actor, kept.state).catch(() => {});
        return operationOf(kept, null);
      }
      await this.#rest(begun.id, driver, ids.length * eachMs - (clock.monotonic() - from));
    }
  }

  /** The next so many. Ids are cut into pieces here: a look at ids knows no page. */
  async #page(
    filter: InsightFilter,
    limit: number,
    cursor: string | null,
  ): Promise<{ ids: string[]; cursor: string | null }> {
    const { insight } = this.#operator.store;
    if (filter.ids === undefined) {
      const page = await insight.browse(filter, { limit, cursor });
      return { ids: page.jobs.map(({ id }) => id), cursor: page.cursor };
    }
    const newestFirst = [...new Set(filter.ids)].sort().reverse();
    const left = cursor === null ? newestFirst : newestFirst.filter((id) => id < cursor);
    const ids = left.slice(0, limit);
    const { jobs } = await insight.browse({ ...filter, ids }, { limit, cursor: null });
    return { ids: jobs.map(({ id }) => id), cursor: left.length > limit ? (ids.at(-1) ?? null) : null };
  }

  /** Gives way to the event loop at least. A long rest looks up now and then: somebody may have paused it. */
  async #rest(id: string, driver: string, ms: number): Promise<void> {
    if (ms <= 0) await new Promise((resolve) => setImmediate(resolve));
    const { clock } = this.#operator.env;
    const wake = this.#wakes.get(id)?.signal ?? this.#closing.signal;
    const signal = AbortSignal.any([wake, this.#closing.signal]);
    const until = clock.monotonic() + ms;
    for (let left = ms; left > 0 && !signal.aborted; left = until - clock.monotonic()) {
      await sleep(clock, Math.min(left, checkMs), signal).catch(() => {});
      if (left <= checkMs) return;
      const read = await this.#read(id);
      if (read === null || !mine(read.kept, driver) || read.kept.state !== "running") return;
    }
  }

  async #steer(
    id: string,
    actor: string,
    outcome: string,
    change: (kept: Kept, now: number) => Partial<Kept> | null,
  ): Promise<Operation | null> {
    const { store, retry } = this.#operator;
    const at = await retry.repeatable(() => store.now());
    const kept = await this.#change(id, (one) => {
      const changed = change(one, at);
      return changed === null ? null : { ...one, ...changed };
    });
    if (kept !== null) {
      this.#wakes.get(id)?.abort();
      await this.#audit(kept, actor, outcome);
    }
    return this.get(id);
  }

  /** Reads, changes and writes, again where another was faster. Null: `change` wants no change, or there is none. */
  async #change(id: string, change: (kept: Kept) => Kept | null | false): Promise<Kept | null> {
    for (;;) {
      const read = await this.#read(id);
      if (read === null) return null;
      const wanted = change(read.kept);
      if (wanted === null || wanted === false) return null;
      const kept = isOver(wanted) ? withoutIds(wanted) : wanted;
      const value = JSON.stringify(kept);
      if (await this.#swap(prefix + id, read.row.value, value)) return kept;
    }
  }

  /** A repeat after a lost answer finds what the first one wrote. */
  #swap(key: string, was: string, value: string): Promise<boolean> {
    const { store, retry } = this.#operator;
    return retry.repeatable(
      async () => (await store.state.swap(key, was, value)) || (await store.state.row(key))?.value === value,
    );
  }

  async #read(id: string): Promise<{ kept: Kept; row: StateRow } | null> {
    if (!isId(id)) return null;
    const { store, retry } = this.#operator;
    const row = await retry.repeatable(() => store.state.row(prefix + id));
    const kept = row === null ? null : keptOf(row);
    return row === null || kept === null ? null : { kept, row };
  }

  /** Of those that are over, the oldest are dropped. */
  async #forget(): Promise<void> {
    const { store, retry } = this.#operator;
    const rows = await retry.repeatable(() => store.state.rows(prefix, mostKept * 2));
    for (const row of rows.slice(mostKept)) {
      const kept = keptOf(row);
      // Whether it was there does not matter here, so that a repeat may find it gone.
      if (kept !== null && isOver(kept)) await retry.repeatable(() => store.state.delete(row.key));
    }
  }

  async #audit(kept: Kept, actor: string, outcome: string): Promise<void> {
    await this.#operator.store.insight.addAudit({
      actor: storable(actor, 200),
      action: `jobs.${kept.action}`,
      target: storable(JSON.stringify(kept.filter), 500),
      outcome,
      details: JSON.stringify({
        operation: kept.id,
        ...(kept.change === null ? {} : { change: kept.change }),
        // What it writes may be secret: its row has it.
        ...((kept.patch ?? null) === null ? {} : { patched: true }),
        ...(kept.rate === null ? {} : { rate: kept.rate }),
        matched: kept.matched,
        ...kept.outcomes,
      }),
    });
  }
}

/** No count goes further; and pages that one goes on over, with jobs on each. */
const mostCounted = 10_000;
const mostPages = 20;
const pageJobs = 1_000;

/**
 * How many jobs match. A tally ends with its few milliseconds, also where nothing comes behind what it saw; whoever is about to
 * act on them can wait a little longer to be told "1,000" and not "1,000+".
 */
export async function countOf(
  insight: Pick<Insight, "tally" | "browse">,
  filter: InsightFilter,
): Promise<CappedCount> {
  const { total } = await insight.tally(filter);
  if (!total.more || total.count >= mostCounted) return total;
  let count = 0;
  let cursor: string | null = null;
  for (let pages = 0; pages < mostPages; pages += 1) {
    const page: InsightPage = await insight.browse(filter, { limit: pageJobs, cursor });
    count += page.jobs.length;
    ({ cursor } = page);
    if (cursor === null) return { count, more: false };
    if (count >= mostCounted) return { count: mostCounted, more: true };
  }
  return { count: Math.max(total.count, count), more: true };
}

/** Does the action to these jobs; returns how many had which outcome. */
export async function actOn(
  hf: Operated,
  { action, change, patch }: Pick<Task, "action" | "change" | "patch">,
  ids: readonly string[],
): Promise<Readonly<Record<string, number>>> {
  const { jobs } = operatorOf(hf);
  switch (action) {
    case "retry":
      return jobs.retry({ ids }, (patch ?? null) === null ? {} : { patch: patch as InputPatch });
    case "run-now":
      return jobs.runNow({ ids });
    case "pause":
      return jobs.pause({ ids });
    case "resume":
      return jobs.resume({ ids });
    case "cancel":
      return jobs.cancel({ ids });
    case "terminate":
      return jobs.terminate({ ids });
    case "delete":
      return jobs.delete({ ids });
    case "purge":
      return jobs.delete({ ids }, { running: "leave" });
    case "edit":
      return jobs.edit({ ids }, jobEdit(change ?? {}));
  }
}

/** An edit as the client takes it. */
export function jobEdit({ at, ...change }: KeptEdit): JobEdit {
  return { ...change, ...(at === undefined ? {} : { at: new Date(at) }) };
}

/** Postgres stores no NUL, and nobody needs one on the trail. */
export function storable(text: string, length: number): string {
  return text.toWellFormed().replaceAll("\0", "\uFFFD").slice(0, length);
}

function mine(kept: Kept, driver: string): boolean {
  return kept.driver === driver;
}

function isOver({ state }: Kept): boolean {
  return state === "done" || state === "stopped";
}

/** What is over needs its ids no more: a thousand of them would be sent with every list. */
function withoutIds(kept: Kept): Kept {
  const { ids } = kept.filter;
  if (ids === undefined || ids.length <= idsKept) return kept;
  return { ...kept, filter: { ...kept.filter, ids: ids.slice(0, idsKept) } };
}

/** Null: somebody put something else there. */
function keptOf(row: StateRow): Kept | null {
  try {
    const kept = JSON.parse(row.value) as Kept | null;
    return typeof kept === "object" && kept !== null && row.key === prefix + kept.id ? kept : null;
  } catch {
    return null;
  }
}

/** `row`: null where this process has just written it. */
function operationOf(kept: Kept, row: StateRow | null): Operation {
  const { driver: _driver, cursor: _cursor, ...operation } = kept;
  const done = did[kept.action].reduce((sum, outcome) => sum + (kept.outcomes[outcome] ?? 0), 0);
  const { size, eachMs } = pace(kept.rate);
  const quietMs = row === null ? 0 : row.now - row.setAt;
  return {
    ...operation,
    seenAt: row?.setAt ?? kept.startedAt,
    standsStill: kept.state === "running" && quietMs > stillMs + size * eachMs,
    refused: kept.matched - done,
    refusals: kept.refusals ?? [],
  };
}

function withRefusals({ action, refusals = [] }: Kept, result: object): readonly BulkExample[] {
  const refused = examplesOf(result).filter(({ outcome }) => !did[action].includes(outcome));
  return [...refusals, ...refused].slice(0, mostRefusals);
}

function summed(
  counts: Readonly<Record<string, number>>,
  result: Readonly<Record<string, number>>,
): Record<string, number> {
  const sums: Record<string, number> = { ...counts };
  for (const [outcome, n] of Object.entries(result))
    if (outcome !== "matched" && n > 0) sums[outcome] = (sums[outcome] ?? 0) + n;
  return sums;
}
