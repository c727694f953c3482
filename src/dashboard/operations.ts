/**
 * Bulk actions: what they would do (a dry run), and doing it, in batches that give way, with progress that can be
 * watched and stopped.
 *
 * Invariants: an action touches what its filter matches and was created before it started, newest first (of several
 * jobs with one key the newest may come back); its filter says something, since nothing would mean everything; what it
 * does is on the audit trail at its start and at its end.
 */
import { randomUUID } from "node:crypto";
import type { Holdfast } from "../index.ts";
import type { InsightFilter } from "../insight.ts";
import type { JobState } from "../job.ts";
import { checkEdit, type JobEdit } from "../jobs.ts";
import type { BulkVerb, EditJson, FilterJson, Operation } from "./contract.ts";
import { ApiError } from "./http.ts";
import { bad, onlyFields } from "./query.ts";

const batchSize = 500;
const mostRunning = 4;
const mostKept = 100;

/** The states that an action can do something to. */
export const STATES_OF: Readonly<Record<BulkVerb, readonly JobState[]>> = {
  retry: ["dead", "cancelled", "done"],
  "run-now": ["scheduled"],
  cancel: ["scheduled", "ready", "running", "waiting"],
  delete: ["scheduled", "ready", "running", "waiting", "done", "dead", "cancelled"],
  purge: ["scheduled", "ready", "waiting"],
  edit: ["scheduled", "ready", "waiting"],
};
/** Where the filter names no state. */
const usual: Readonly<Record<BulkVerb, readonly JobState[]>> = { ...STATES_OF, retry: ["dead"] };

/** The filter of an action: only states that it can act on. */
export function actionFilter(action: BulkVerb, filter: InsightFilter): InsightFilter {
  if (filter.ids !== undefined) return filter;
  const states = filter.states?.filter((state) => STATES_OF[action].includes(state)) ?? usual[action];
  if (states.length === 0)
    throw new ApiError(
      "BAD_REQUEST",
      `${action} does nothing to jobs that are ${(filter.states ?? []).join(" or ")}.`,
      {
        field: "filter.state",
      },
    );
  return { ...filter, states };
}

/** What is to be done to which jobs. */
export interface Task {
  readonly action: BulkVerb;
  readonly filter: InsightFilter;
  /** The filter as it was given. */
  readonly shown: FilterJson;
  /** Of an edit. */
  readonly change: EditJson | null;
}

/**
 * An edit out of a body; `where` is its place in it, for who must mend it.
 *
 * @throws ApiError 400, UsageError
 */
export function editOf(given: Readonly<Record<string, unknown>>, where: string): EditJson {
  onlyFields(given, ["delay", "at", "queue", "priority"], where);
  const change = given as EditJson;
  if (change.at !== undefined && !Number.isSafeInteger(change.at))
    throw bad(`${where}at`, "must be an instant in epoch milliseconds.");
  checkEdit(jobEdit(change));
  return change;
}

/** An edit as the client takes it. */
export function jobEdit({ at, ...change }: EditJson): JobEdit {
  return { ...change, ...(at === undefined ? {} : { at: new Date(at) }) };
}

interface Running {
  operation: Operation;
  stop: boolean;
  readonly finished: Promise<void>;
}

export class Operations {
  readonly #hf: Holdfast;
  readonly #audit: (operation: Operation) => Promise<void>;
  readonly #all = new Map<string, Running>();

  constructor(hf: Holdfast, audit: (operation: Operation) => Promise<void>) {
    this.#hf = hf;
    this.#audit = audit;
  }

  /** Starts it. Whoever wants to wait awaits `finished`. */
  start({ action, filter, shown, change }: Task, actor: string): Running {
    const busy = [...this.#all.values()].filter(({ operation }) => operation.state === "running").length;
    if (busy >= mostRunning)
      throw new ApiError(
        "TOO_MANY_REQUESTS",
        `At most ${mostRunning} bulk actions at once. Wait for one to end.`,
        {
          headers: { "retry-after": "5" },
        },
      );
    const operation: Operation = {
      id: randomUUID(),
      action,
      change,
      filter: shown,
      actor,
      state: "running",
      startedAt: this.#hf.internals.env.clock.now(),
      endedAt: null,
      matched: 0,
      outcomes: {},
      error: null,
    };
    const { promise, resolve } = Promise.withResolvers<void>();
    const running: Running = { operation, stop: false, finished: promise };
    this.#all.set(operation.id, running);
    this.#forget();
    void this.#run(running, filter).then(resolve);
    return running;
  }

  get(id: string): Operation | null {
    return this.#all.get(id)?.operation ?? null;
  }

  list(): Operation[] {
    return [...this.#all.values()].map(({ operation }) => operation).reverse();
  }

  stop(id: string): Operation | null {
    const running = this.#all.get(id);
    if (running === undefined) return null;
    running.stop = true;
    return running.operation;
  }

  async #run(running: Running, filter: InsightFilter): Promise<void> {
    try {
      await this.#audit(running.operation);
      await this.#walk(running, filter);
      running.operation = { ...running.operation, state: running.stop ? "stopped" : "done" };
    } catch (error) {
      const { logger } = this.#hf.internals.settings;
      logger.error({ error, operation: running.operation.id }, "a bulk action of the dashboard failed");
      running.operation = {
        ...running.operation,
        state: "failed",
        error: "It failed on the way; what it did stands. The log says why.",
      };
    }
    running.operation = { ...running.operation, endedAt: this.#hf.internals.env.clock.now() };
    await this.#audit(running.operation).catch(() => {});
  }

  async #walk(running: Running, filter: InsightFilter): Promise<void> {
    const { insight } = this.#hf.internals.store;
    let cursor: string | null = null;
    do {
      const page = await insight.browse(filter, { limit: batchSize, cursor });
      cursor = page.cursor;
      const ids = page.jobs.map(({ id }) => id);
      if (ids.length > 0) this.#count(running, ids.length, await this.#act(running.operation, ids));
      await new Promise((resolve) => setImmediate(resolve));
    } while (cursor !== null && !running.stop);
  }

  async #act(
    { action, change }: Operation,
    ids: readonly string[],
  ): Promise<Readonly<Record<string, number>>> {
    const { jobs } = this.#hf;
    switch (action) {
      case "retry":
        return jobs.retry({ ids });
      case "run-now":
        return jobs.runNow({ ids });
      case "cancel":
        return jobs.cancel({ ids });
      case "delete":
        return jobs.delete({ ids });
      case "purge":
        return jobs.delete({ ids }, { running: "leave" });
      case "edit":
        return jobs.edit({ ids }, jobEdit(change ?? {}));
    }
  }

  #count(running: Running, matched: number, result: Readonly<Record<string, number>>): void {
    const outcomes: Record<string, number> = { ...running.operation.outcomes };
    for (const [outcome, n] of Object.entries(result))
      if (outcome !== "matched" && n > 0) outcomes[outcome] = (outcomes[outcome] ?? 0) + n;
    running.operation = { ...running.operation, matched: running.operation.matched + matched, outcomes };
  }

  #forget(): void {
    for (const [id, { operation }] of this.#all) {
      if (this.#all.size <= mostKept) return;
      if (operation.state !== "running") this.#all.delete(id);
    }
  }
}
