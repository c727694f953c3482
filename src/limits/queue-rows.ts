/** Queues, holds, workers, kinds and durable values: what all processes of a cluster share beside the jobs. */
import type { LaneLimits } from "../jobs/job.ts";
import { takesJobs } from "./serving.ts";
import type {
  Backlog,
  Hold,
  KindInfo,
  QueueCounts,
  QueueChange,
  QueueSettings,
  QueueState,
  WorkerState,
} from "../storage/store.ts";
import type { Row } from "../storage/catalogue.ts";
import type { Driver } from "../storage/driver.ts";
import { limitColumns } from "./lane-rows.ts";
import { TallyCursor, tallyLines } from "./queue-counts.ts";
import { NO_SETTINGS } from "./rules/no-settings.ts";
import { flag, hold, maybeNumber, maybeText, number, queueSettings, text, worker } from "../jobs/rows.ts";

const EMPTY: QueueCounts = { ready: 0, scheduled: 0, running: 0, waiting: 0 };
const STATES = ["ready", "scheduled", "waiting"] as const;
/** Entries that all kinds together are counted over, where counts have a bound. */
const BUDGET = 100_000;
/** So far the minute's sample counts a kind. */
const MOST_SAMPLED = 50_000;

/** What a kind has in a queue. */
interface Line {
  readonly queue: string;
  readonly name: string;
  readonly counts: QueueCounts;
  readonly atLeast: QueueState["atLeast"];
  readonly lagMs: number;
  readonly nextDueAt: number | null;
}

export class Cluster {
  readonly #driver: Driver;
  readonly #cursor = new TallyCursor();

  constructor(driver: Driver) {
    this.#driver = driver;
  }

  async queues(upTo?: number): Promise<QueueState[]> {
    const [settings, lines, workers] = await Promise.all([
      this.#driver.read({ name: "queueRows", params: { names: null } }),
      upTo === undefined ? this.#counted() : this.#tallied(upTo),
      this.workers(),
    ]);
    const byName = Map.groupBy(lines, ({ queue }) => queue);
    const rows = new Map(settings.map((row) => [text(row, "name"), row]));
    const names = new Set([...rows.keys(), ...byName.keys()]);
    return [...names].sort().map((name) => queueState(name, rows.get(name), byName.get(name) ?? [], workers));
  }

  async backlog(): Promise<Backlog> {
    const lines = (await this.#tallied(MOST_SAMPLED)).filter(({ counts }) => counts.ready > 0);
    // Where nothing is ready, as in most minutes of most databases, nobody need be asked who serves it.
    if (lines.length === 0) return { ready: new Map(), unserved: [] };
    const workers = await this.workers();
    const queues = [...Map.groupBy(lines, ({ queue }) => queue)];
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
  async #counted(): Promise<Line[]> {
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

  async #tallied(most: number): Promise<Line[]> {
    const { now, lines } = await tallyLines(this.#driver, this.#cursor, { most, budget: BUDGET });
    return lines.map(({ queue, name, ready, scheduled, waiting, running, oldestAt, nextDueAt }) => ({
      queue,
      name,
      counts: { ready: ready.count, scheduled: scheduled.count, running, waiting: waiting.count },
      atLeast: STATES.filter((state) => ({ ready, scheduled, waiting })[state].more),
      lagMs: oldestAt === null ? 0 : now - oldestAt,
      nextDueAt,
    }));
  }

  async setQueue(name: string, change: QueueChange): Promise<void> {
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
  }

  async endDrains(): Promise<string[]> {
    const now = this.#driver.now();
    return this.#driver.transaction("endDrains", function* () {
      const ended = (yield { name: "endDrains", params: { now } }).map((row) => text(row, "name"));
      // Nobody pressed anything at this moment: the trail says what the pause came of.
      for (const target of ended) {
        const entry = { actor: "holdfast", action: "queues.drain", target, outcome: "paused", details: null };
        yield { name: "addAudit", params: { now, ...entry, undoes: null } };
      }
      return ended;
    });
  }

  async queueSettings(names: readonly string[]): Promise<Map<string, QueueSettings & { paused: boolean }>> {
    const rows = await this.#driver.read({ name: "queueRows", params: { names } });
    return new Map(
      rows.map((row) => [text(row, "name"), { ...queueSettings(row), paused: row["paused_at"] !== null }]),
    );
  }

  async holds(): Promise<Hold[]> {
    return (await this.#driver.read({ name: "holds", params: {} })).map(hold);
  }

  async setHold({
    name,
    queues,
    reason,
  }: {
    name: string;
    queues: readonly string[] | null;
    reason: string | null;
  }): Promise<void> {
    await this.#driver.write({ name: "setHold", params: { now: this.#driver.now(), name, queues, reason } });
  }

  async clearHold(name: string): Promise<boolean> {
    return (await this.#driver.write({ name: "clearHold", params: { name } })).length > 0;
  }

  async workers(): Promise<WorkerState[]> {
    return (await this.#driver.read({ name: "workers", params: { now: this.#driver.now() } })).map(worker);
  }

  async lostWorkers(): Promise<WorkerState[]> {
    return (await this.#driver.read({ name: "lostWorkers", params: { now: this.#driver.now() } })).map(
      worker,
    );
  }

  async overdueJobs(graceMs: number, most: number): Promise<number> {
    const params = { now: this.#driver.now(), grace: graceMs, most };
    const [row] = await this.#driver.read({ name: "overdueClaims", params });
    return row === undefined ? 0 : number(row, "n");
  }

  async stopWorkers(sessions: readonly number[] | "all"): Promise<number[]> {
    const params = { now: this.#driver.now(), sessions: sessions === "all" ? null : sessions };
    return (await this.#driver.write({ name: "stopWorkers", params })).map((row) => number(row, "id"));
  }

  /** Makes workers quiet, or resumes them. */
  async hushWorkers(name: "quietWorkers" | "resumeWorkers", sessions: readonly number[]): Promise<number[]> {
    const params = { now: this.#driver.now(), sessions };
    return (await this.#driver.write({ name, params })).map((row) => number(row, "id"));
  }

  async kinds(): Promise<Map<string, KindInfo>> {
    const rows = await this.#driver.read({ name: "kinds", params: {} });
    return new Map(
      rows.map((row) => [
        text(row, "name"),
        {
          unique: flag(row, "has_unique"),
          lane: flag(row, "has_lane"),
          machine: flag(row, "is_machine"),
          lanes: row["lanes"] === null ? null : (JSON.parse(text(row, "lanes")) as LaneLimits),
          budget: budgetOf(maybeText(row, "budget")),
        },
      ]),
    );
  }

  async registerKinds(kinds: ReadonlyMap<string, KindInfo>): Promise<void> {
    const rows = [...kinds].map(([name, { unique, lane, machine, lanes, budget }]) => ({
      name,
      unique,
      lane,
      machine: machine === true,
      lanes: (lanes ?? null) === null ? null : JSON.stringify(lanes),
      budget: (budget ?? null) === null ? null : JSON.stringify(budget),
    }));
    if (rows.length > 0)
      await this.#driver.write({ name: "registerKinds", params: { now: this.#driver.now(), rows } });
    // A definition's limits are those of its lanes, unless an operator has set others.
    const laned = [...kinds].flatMap(([name, { lane, lanes }]) =>
      lane ? [{ name, ...limitColumns(lanes ?? null) }] : [],
    );
    if (laned.length > 0) await this.#driver.write({ name: "tuneLanes", params: { rows: laned } });
  }
}

function budgetOf(value: string | null): NonNullable<KindInfo["budget"]> | null {
  return value === null ? null : (JSON.parse(value) as NonNullable<KindInfo["budget"]>);
}

function queueState(
  name: string,
  settings: Row | undefined,
  lines: readonly Line[],
  workers: readonly WorkerState[],
): QueueState {
  const counts = lines.reduce<QueueCounts>(
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
  const dueAt = lines.flatMap(({ nextDueAt }) => nextDueAt ?? []);
  return {
    name,
    paused: date("paused_at") !== null,
    pausedAt: date("paused_at"),
    draining: date("drain_at") !== null,
    drainingAt: date("drain_at"),
    coolUntil: date("cool_until"),
    settings: settings === undefined ? NO_SETTINGS : queueSettings(settings),
    counts,
    atLeast: STATES.filter((state) => lines.some(({ atLeast }) => atLeast.includes(state))),
    lagMs: Math.max(0, ...lines.map(({ lagMs }) => lagMs)),
    nextDueAt: dueAt.length === 0 ? null : new Date(Math.min(...dueAt)),
    unserved: unservedOf(name, lines, workers),
  };
}

/** The kinds that have ready jobs in this queue and no living worker that would take them. */
function unservedOf(queue: string, lines: readonly Line[], workers: readonly WorkerState[]): string[] {
  return lines
    .filter(({ name, counts }) => counts.ready > 0 && !isServed(queue, name, workers))
    .map(({ name }) => name)
    .sort();
}

function isServed(queue: string, name: string, workers: readonly WorkerState[]): boolean {
  return workers.some(
    (worker) => takesJobs(worker) && Object.hasOwn(worker.queues, queue) && worker.names.includes(name),
  );
}
