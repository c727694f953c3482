/** Queues, holds, workers, kinds and durable values: what all processes of a cluster share beside the jobs. */
import type { LaneLimits } from "../job.ts";
import type {
  Backlog,
  Hold,
  KindInfo,
  QueueCounts,
  QueueChange,
  QueueSettings,
  QueueState,
  StateRow,
  WorkerState,
} from "../store.ts";
import type { Row } from "./catalogue.ts";
import type { Driver } from "./driver.ts";
import { limitColumns } from "./lanes.ts";
import {
  flag,
  hold,
  maybeNumber,
  maybeText,
  NO_SETTINGS,
  number,
  queueSettings,
  text,
  worker,
} from "./rows.ts";

const EMPTY: QueueCounts = { ready: 0, scheduled: 0, running: 0, waiting: 0 };

export class Cluster {
  readonly #driver: Driver;

  constructor(driver: Driver) {
    this.#driver = driver;
  }

  async queues(): Promise<QueueState[]> {
    const now = this.#driver.now();
    const [settings, lines, workers] = await Promise.all([
      this.#driver.read({ name: "queueRows", params: { names: null } }),
      this.#driver.read({ name: "queueCounts", params: { now } }),
      this.workers(),
    ]);
    const names = new Set([
      ...settings.map((row) => text(row, "name")),
      ...lines.map((row) => text(row, "queue")),
    ]);
    return [...names].sort().map((name) =>
      queueState(
        name,
        settings.find((row) => row["name"] === name),
        lines.filter((row) => row["queue"] === name),
        workers,
      ),
    );
  }

  async backlog(): Promise<Backlog> {
    const counted = await this.#driver.read({ name: "queueCounts", params: { now: this.#driver.now() } });
    const lines = counted.filter((line) => number(line, "ready") > 0);
    // Where nothing is ready, as in most minutes of most databases, nobody need be asked who serves it.
    if (lines.length === 0) return { ready: new Map(), unserved: [] };
    const workers = await this.workers();
    const queues = [...Map.groupBy(lines, (line) => text(line, "queue"))];
    return {
      ready: new Map(
        queues.map(([name, own]) => [name, own.reduce((sum, line) => sum + number(line, "ready"), 0)]),
      ),
      unserved: queues
        .map(([name, own]) => ({ name, unserved: unservedOf(name, own, workers) }))
        .filter(({ unserved }) => unserved.length > 0),
    };
  }

  async setQueue(name: string, change: QueueChange): Promise<void> {
    const { paused, draining, ...settings } = change;
    const changed = Object.keys(settings).length > 0;
    const driver = this.#driver;
    const now = driver.now();
    await driver.transaction(function* () {
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
    return this.#driver.transaction(function* () {
      const ended = (yield { name: "endDrains", params: { now } }).map((row) => text(row, "name"));
      // Nobody pressed anything at this moment: the trail says what the pause came of.
      for (const target of ended) {
        const entry = { actor: "holdfast", action: "queues.drain", target, outcome: "paused", details: null };
        yield { name: "addAudit", params: { now, ...entry } };
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

  async stopWorkers(sessions: readonly number[] | "all"): Promise<number[]> {
    const params = { now: this.#driver.now(), sessions: sessions === "all" ? null : sessions };
    return (await this.#driver.write({ name: "stopWorkers", params })).map((row) => number(row, "id"));
  }

  async kinds(): Promise<Map<string, KindInfo>> {
    const rows = await this.#driver.read({ name: "kinds", params: {} });
    return new Map(
      rows.map((row) => [
        text(row, "name"),
        {
          unique: flag(row, "has_unique"),
          lane: flag(row, "has_lane"),
          lanes: row["lanes"] === null ? null : (JSON.parse(text(row, "lanes")) as LaneLimits),
          budget: budgetOf(maybeText(row, "budget")),
        },
      ]),
    );
  }

  async registerKinds(kinds: ReadonlyMap<string, KindInfo>): Promise<void> {
    const rows = [...kinds].map(([name, { unique, lane, lanes, budget }]) => ({
      name,
      unique,
      lane,
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

  async getState(key: string): Promise<string | null> {
    const [row] = await this.#driver.read({ name: "getState", params: { key } });
    return row === undefined ? null : maybeText(row, "value");
  }

  async setState(key: string, value: string): Promise<void> {
    await this.#driver.write({ name: "setState", params: { now: this.#driver.now(), key, value } });
  }

  async deleteState(key: string): Promise<boolean> {
    return (await this.#driver.write({ name: "deleteState", params: { key } })).length > 0;
  }

  async stateRow(key: string): Promise<StateRow | null> {
    const [row] = await this.#driver.read({ name: "stateRow", params: { now: this.#driver.now(), key } });
    return row === undefined ? null : stateRow(row);
  }

  async stateRows(prefix: string, limit: number): Promise<StateRow[]> {
    const params = { now: this.#driver.now(), from: prefix, until: `${prefix}g`, limit };
    const rows = await this.#driver.read({ name: "stateRows", params });
    return rows.map(stateRow).filter(({ key }) => key.startsWith(prefix));
  }

  async swapState(key: string, was: string, value: string): Promise<boolean> {
    const params = { now: this.#driver.now(), key, was, value };
    return (await this.#driver.write({ name: "swapState", params })).length > 0;
  }
}

function stateRow(row: Row): StateRow {
  return {
    key: text(row, "key"),
    value: text(row, "value"),
    setAt: number(row, "set_at"),
    now: number(row, "now"),
  };
}

function budgetOf(value: string | null): NonNullable<KindInfo["budget"]> | null {
  return value === null ? null : (JSON.parse(value) as NonNullable<KindInfo["budget"]>);
}

function queueState(
  name: string,
  settings: Row | undefined,
  lines: readonly Row[],
  workers: readonly WorkerState[],
): QueueState {
  const counts = lines.reduce<QueueCounts>(
    (sum, line) => ({
      ready: sum.ready + number(line, "ready"),
      scheduled: sum.scheduled + number(line, "scheduled"),
      running: sum.running + number(line, "running"),
      waiting: sum.waiting + number(line, "waiting"),
    }),
    EMPTY,
  );
  const lags = lines.map((line) =>
    line["oldest"] === null ? 0 : number(line, "now") - number(line, "oldest"),
  );
  const date = (column: string) => {
    const value = settings === undefined ? null : maybeNumber(settings, column);
    return value === null ? null : new Date(value);
  };
  return {
    name,
    paused: date("paused_at") !== null,
    pausedAt: date("paused_at"),
    draining: date("drain_at") !== null,
    drainingAt: date("drain_at"),
    coolUntil: date("cool_until"),
    settings: settings === undefined ? NO_SETTINGS : queueSettings(settings),
    counts,
    lagMs: Math.max(0, ...lags),
    unserved: unservedOf(name, lines, workers),
  };
}

/** The kinds that have ready jobs in this queue and no living worker. */
function unservedOf(queue: string, lines: readonly Row[], workers: readonly WorkerState[]): string[] {
  return lines
    .filter((line) => number(line, "ready") > 0 && !isServed(queue, text(line, "name"), workers))
    .map((line) => text(line, "name"));
}

function isServed(queue: string, name: string, workers: readonly WorkerState[]): boolean {
  return workers.some(
    (worker) => worker.kind === "worker" && queue in worker.queues && worker.names.includes(name),
  );
}
