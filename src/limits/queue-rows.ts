/** Queues in the database: settings, counts and what is used of limits. */
import { type ServingWorker, takesJobs } from "./serving.ts";
import type { Backlog, QueueCounts, QueueChange, QueueState, QueueStore, QueueUse } from "./store.ts";
import { type QueueSettings, queueSettings } from "./queue-settings.ts";
import type { Row } from "../storage/catalogue.ts";
import type { Driver } from "../storage/driver.ts";
import type { Wake } from "../storage/wake.ts";
import type { LimitedQueues } from "./limited-queues.ts";
import { parseStarts, roomIn } from "./rules/rate-window.ts";
import { TallyCursor, tallyJobTypes } from "./queue-counts.ts";
import { NO_SETTINGS } from "./rules/no-settings.ts";
import { maybeNumber, maybeText, number, text } from "../jobs/rows.ts";

const EMPTY: QueueCounts = { ready: 0, scheduled: 0, running: 0, waiting: 0 };
const STATES = ["ready", "scheduled", "waiting"] as const;
/** Entries that all kinds together are counted over, where counts have a bound. */
const BUDGET = 100_000;
/** So far the minute's sample counts a name. */
const MOST_SAMPLED = 50_000;

/** What a name has in a queue. */
interface JobType {
  readonly queue: string;
  readonly name: string;
  readonly counts: QueueCounts;
  readonly atLeast: QueueState["atLeast"];
  readonly lagMs: number;
  readonly nextDueAt: number | null;
}

/** The services of the store that queues need besides their rows. */
export interface QueueDeps {
  readonly driver: Driver;
  /** The list of all processes. */
  readonly workers: { list(): Promise<readonly ServingWorker[]> };
  readonly limitedQueues: LimitedQueues;
  readonly wake: (wake: Wake) => void;
}

export class Queues implements QueueStore {
  readonly #driver: Driver;
  readonly #deps: QueueDeps;
  readonly #cursor = new TallyCursor();

  constructor(deps: QueueDeps) {
    this.#driver = deps.driver;
    this.#deps = deps;
  }

  async list(upTo?: number): Promise<QueueState[]> {
    const [settings, jobTypes, workers] = await Promise.all([
      this.#driver.read({ name: "queueRows", params: { names: null } }),
      upTo === undefined ? this.#counted() : this.#tallied(upTo),
      this.#deps.workers.list(),
    ]);
    const byName = Map.groupBy(jobTypes, ({ queue }) => queue);
    const rows = new Map(settings.map((row) => [text(row, "name"), row]));
    const names = new Set([...rows.keys(), ...byName.keys()]);
    return [...names].sort().map((name) => queueState(name, rows.get(name), byName.get(name) ?? [], workers));
  }

  async backlog(): Promise<Backlog> {
    const jobTypes = (await this.#tallied(MOST_SAMPLED)).filter(({ counts }) => counts.ready > 0);
    // Where nothing is ready, as in most minutes of most databases, nobody need be asked who serves it.
    if (jobTypes.length === 0) return { ready: new Map(), unserved: [] };
    const workers = await this.#deps.workers.list();
    const queues = [...Map.groupBy(jobTypes, ({ queue }) => queue)];
    return {
      ready: new Map(
        queues.map(([name, own]) => [name, own.reduce((sum, { counts }) => sum + counts.ready, 0)]),
      ),
      unserved: queues
        .map(([name, own]) => ({ name, unserved: unservedOf(name, own, workers) }))
        .filter(({ unserved }) => unserved.length > 0),
    };
  }

  /** To the end, whatever it takes. */
  async #counted(): Promise<JobType[]> {
    const rows = await this.#driver.read({ name: "queueCounts", params: { now: this.#driver.now() } });
    return rows.map((row) => ({
      queue: text(row, "queue"),
      name: text(row, "name"),
      counts: {
        ready: number(row, "ready"),
        scheduled: number(row, "scheduled"),
        running: number(row, "running"),
        waiting: number(row, "waiting"),
      },
      atLeast: [],
      lagMs: row["oldest"] === null ? 0 : number(row, "now") - number(row, "oldest"),
      nextDueAt: maybeNumber(row, "next"),
    }));
  }

  async #tallied(most: number): Promise<JobType[]> {
    const { now, jobTypes } = await tallyJobTypes(this.#driver, this.#cursor, { most, budget: BUDGET });
    return jobTypes.map(({ queue, name, ready, scheduled, waiting, running, oldestAt, nextDueAt }) => ({
      queue,
      name,
      counts: { ready: ready.count, scheduled: scheduled.count, running, waiting: waiting.count },
      atLeast: STATES.filter((state) => ({ ready, scheduled, waiting })[state].more),
      lagMs: oldestAt === null ? 0 : now - oldestAt,
      nextDueAt,
    }));
  }

  async set(name: string, change: QueueChange): Promise<void> {
    const { paused, draining, ...settings } = change;
    const changed = Object.keys(settings).length > 0;
    const driver = this.#driver;
    const now = driver.now();
    await driver.transaction("setQueue", function* () {
      const [row] = changed ? yield { name: "queueRows", params: { names: [name] } } : [];
      const { cooldown, ...rest } = {
        ...(row === undefined ? NO_SETTINGS : queueSettings(row)),
        ...settings,
      };
      yield {
        name: "setQueue",
        params: {
          now,
          name,
          paused: paused ?? null,
          draining: draining ?? null,
          settings: changed ? JSON.stringify(rest) : null,
          coolBase: cooldown?.baseMs ?? null,
          coolMax: cooldown?.maxMs ?? null,
          limited: changed ? rest.concurrency !== null || rest.rate !== null : null,
        },
      };
    });
    this.#deps.limitedQueues.forget();
    this.#deps.wake({ kind: "settings" });
  }

  async endDrains(): Promise<string[]> {
    const now = this.#driver.now();
    const ended = await this.#driver.transaction("endDrains", function* () {
      const paused = (yield { name: "endDrains", params: { now } }).map((row) => text(row, "name"));
      // Nobody pressed anything at this moment: the trail says what the pause came of.
      for (const target of paused) {
        const entry = { actor: "holdfast", action: "queues.drain", target, outcome: "paused", details: null };
        yield { name: "addAudit", params: { now, ...entry } };
      }
      return paused;
    });
    if (ended.length > 0) this.#deps.wake({ kind: "settings" });
    return ended;
  }

  async settings(names: readonly string[]): Promise<Map<string, QueueSettings & { paused: boolean }>> {
    const rows = await this.#driver.read({ name: "queueRows", params: { names } });
    return new Map(
      rows.map((row) => [text(row, "name"), { ...queueSettings(row), paused: row["paused_at"] !== null }]),
    );
  }

  /** What queues with limits use of them. */
  async use(): Promise<QueueUse[]> {
    const rows = await this.#driver.read({ name: "queueUse", params: { now: this.#driver.now() } });
    return rows.map((row) => {
      const { concurrency, rate } = queueSettings(row);
      const window =
        rate === null ? null : roomIn(parseStarts(maybeText(row, "starts")), rate, number(row, "now"));
      return {
        name: text(row, "name"),
        concurrency,
        rate,
        running: Math.max(0, number(row, "running") - number(row, "back")),
        started: rate === null || window === null ? null : rate.limit - window.room,
        opensAt: window === null || window.room > 0 ? null : window.opensAt,
      };
    });
  }
}

function queueState(
  name: string,
  settings: Row | undefined,
  jobTypes: readonly JobType[],
  workers: readonly ServingWorker[],
): QueueState {
  const counts = jobTypes.reduce<QueueCounts>(
    (sum, { counts: own }) => ({
      ready: sum.ready + own.ready,
      scheduled: sum.scheduled + own.scheduled,
      running: sum.running + own.running,
      waiting: sum.waiting + own.waiting,
    }),
    EMPTY,
  );
  const date = (column: string) => {
    const value = settings === undefined ? null : maybeNumber(settings, column);
    return value === null ? null : new Date(value);
  };
  const dueAt = jobTypes.flatMap(({ nextDueAt }) => nextDueAt ?? []);
  return {
    name,
    paused: date("paused_at") !== null,
    pausedAt: date("paused_at"),
    draining: date("drain_at") !== null,
    drainingAt: date("drain_at"),
    coolUntil: date("cool_until"),
    settings: settings === undefined ? NO_SETTINGS : queueSettings(settings),
    counts,
    atLeast: STATES.filter((state) => jobTypes.some(({ atLeast }) => atLeast.includes(state))),
    lagMs: Math.max(0, ...jobTypes.map(({ lagMs }) => lagMs)),
    nextDueAt: dueAt.length === 0 ? null : new Date(Math.min(...dueAt)),
    unserved: unservedOf(name, jobTypes, workers),
  };
}

/** The names that have ready jobs in this queue and no living worker that would take them. */
function unservedOf(
  queue: string,
  jobTypes: readonly JobType[],
  workers: readonly ServingWorker[],
): string[] {
  return jobTypes
    .filter(({ name, counts }) => counts.ready > 0 && !isServed(queue, name, workers))
    .map(({ name }) => name)
    .sort();
}

function isServed(queue: string, name: string, workers: readonly ServingWorker[]): boolean {
  return workers.some(
    (worker) => takesJobs(worker) && Object.hasOwn(worker.queues, queue) && worker.names.includes(name),
  );
}
