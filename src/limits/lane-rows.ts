/**
 * Lanes: the small number that stands for a (queue, key) pair in the hot table, and a lane's limits as an operator sees them.
 *
 * A lane is made when its first job is enqueued, with the limits of the job's definition, and forgotten when nobody has
 * looked it up or claimed of it for a week and nobody set anything by hand. A process remembers a number for an hour at the
 * most, and whoever looks one up that was not used for a day marks it as used: what is remembered is never forgotten.
 */
import type { NewJob, LaneLimits } from "../jobs/job.ts";
import { parseStarts, roomIn } from "./rules/rate-window.ts";
import type { LaneStore, LanePage, LaneState } from "./store.ts";
import type { Call, Row, Script } from "../storage/catalogue.ts";
import type { Driver } from "../storage/driver.ts";
import type { Wake } from "../storage/wake.ts";
import { flag, maybeNumber, maybeText, number, text } from "../jobs/rows.ts";

const REMEMBER_MS = 3_600_000;
const MOST_REMEMBERED = 50_000;
/** A lane that was not used for so long is marked as used by whoever looks it up. */
export const MARK_AFTER_MS = 86_400_000;
/**
 * So many priorities of a lane are found one by one. Those behind them are read in order from the index, entry by entry: to find one takes
 * twenty times as long, and many priorities of delayed jobs would hold up the others.
 */
export const MOST_RANKS = 64;
export const DELETE_AFTER_MS = 7 * 86_400_000;

/** Numbers of lanes that this process has met. */
export class LaneNumbers {
  readonly #ids = new Map<string, number>();
  #since = -Infinity;

  id(queue: string, key: string): number | undefined {
    return this.#ids.get(`${queue}\n${key}`);
  }

  learn(rows: readonly Row[]): void {
    for (const row of rows) this.#ids.set(`${text(row, "queue")}\n${text(row, "key")}`, number(row, "id"));
  }

  forget(): void {
    this.#ids.clear();
  }

  /** Those that are not known, each once, as `addLanes` takes them. */
  unknown(jobs: readonly LaneOf[], monotonicMs: number): LaneRow[] {
    if (monotonicMs - this.#since > REMEMBER_MS || this.#ids.size > MOST_REMEMBERED) {
      this.#ids.clear();
      this.#since = monotonicMs;
    }
    const missing = new Map<string, LaneRow>();
    for (const { queue, lane, laneLimits } of jobs) {
      if (lane === null || this.id(queue, lane) !== undefined) continue;
      missing.set(`${queue}\n${lane}`, { queue, key: lane, ...limitColumns(laneLimits ?? null) });
    }
    return [...missing.values()];
  }
}

/** What of a job says which lane it is in. */
export type LaneOf = Pick<NewJob, "queue" | "lane" | "laneLimits">;

type LaneRow = { queue: string; key: string } & ReturnType<typeof limitColumns>;

export function limitColumns(limits: LaneLimits | null): {
  concurrency: number | null;
  rateLimit: number | null;
  ratePer: number | null;
  weight: number | null;
} {
  return {
    concurrency: limits?.concurrency ?? null,
    rateLimit: limits?.rate?.limit ?? null,
    ratePer: limits?.rate?.perMs ?? null,
    weight: limits?.weight ?? null,
  };
}

/** Makes and finds lanes; yields what `LaneNumbers.learn` takes. */
export function* resolveLanes(rows: readonly LaneRow[], now: number | null): Script<Row[]> {
  const find: Call = { name: "findLanes", params: { now, rows } };
  const found = yield find;
  if (found.length === rows.length && !found.some((row) => flag(row, "stale"))) return found;
  yield { name: "addLanes", params: { now, rows } };
  return yield find;
}

/** Jobs that are looked at for the lanes with most of them. */
const TOP_SCAN = 4_000;

/** Lanes as operators see them. */
export class LaneRows implements LaneStore {
  readonly #driver: Driver;
  readonly #wake: (wake: Wake) => void;

  constructor(driver: Driver, wake: (wake: Wake) => void) {
    this.#driver = driver;
    this.#wake = wake;
  }

  async set(queue: string, key: string, change: Partial<LaneLimits> & { paused?: boolean }): Promise<void> {
    const driver = this.#driver;
    const now = driver.now();
    const { paused, ...limits } = change;
    const tuned = Object.keys(limits).length > 0;
    await driver.transaction("setLane", function* (): Script<void> {
      const [row] = yield { name: "laneRows", params: { now, queue, key, after: 0, limit: 1 } };
      const merged = { ...(row === undefined ? null : limitsOfLane(row)), ...limits } as LaneLimits;
      // What the code gave it, to go back to where no worker has told of its name.
      const standard = row === undefined ? null : JSON.stringify(limitsOfLane(row));
      const [lane] = yield {
        name: "setLane",
        params: { now, queue, key, ...limitColumns(merged), paused: paused ?? null, tuned, standard },
      };
      yield { name: "wakeLane", params: { lane: number(lane as Row, "id") } };
    });
    this.#wake({ kind: "settings" });
  }

  /**
   * Back to the code's limits, with a rate that begins anew. `drop`: not paused either, and forgotten as soon as it safely
   * can be. Its row stays until then, since processes remember its number (for an hour at most): without the row a job that
   * one of them enqueues would wait for ever. Whoever looks it up meanwhile keeps it, because it counts as long unused.
   */
  reset(queue: string, key: string, drop: boolean): Promise<boolean> {
    const driver = this.#driver;
    const now = driver.now();
    return driver.transaction("resetLane", function* (): Script<boolean> {
      const [row] = yield { name: "laneRows", params: { now, queue, key, after: 0, limit: 1 } };
      if (row === undefined) return false;
      const limits = limitColumns(flag(row, "tuned") ? yield* codeLimits(row) : limitsOfLane(row));
      const [lane] = yield { name: "resetLane", params: { now, queue, key, ...limits, drop } };
      if (lane === undefined) return false;
      // Whoever heard the lane wake-up of an empty lane would mark it as used.
      if (!drop || flag(lane, "occupied")) yield { name: "wakeLane", params: { lane: number(lane, "id") } };
      return true;
    });
  }

  async list(query: {
    queue: string | null;
    key: string | null;
    cursor: number;
    limit: number;
  }): Promise<LanePage> {
    const { queue, key, cursor, limit } = query;
    const rows = await this.#driver.read({
      name: "laneRows",
      params: { now: this.#driver.now(), queue, key, after: cursor, limit },
    });
    const last = rows.at(-1);
    return {
      lanes: rows.map(laneState),
      cursor: rows.length < limit || last === undefined ? null : String(number(last, "id")),
    };
  }

  /** Lanes with jobs that may start none now; most jobs first. */
  async throttled(limit: number): Promise<LaneState[]> {
    const rows = await this.#driver.read({
      name: "throttledLanes",
      params: { now: this.#driver.now(), limit },
    });
    return rows
      .map(laneState)
      .filter(
        ({ paused, running, concurrency, rateOpensAt }) =>
          paused || rateOpensAt !== null || (concurrency !== null && running >= concurrency),
      )
      .sort((a, b) => b.waiting - a.waiting);
  }

  /** The lanes of a queue with most jobs, as far as can be told by those that are due longest and shortest; most jobs first. */
  async top(queue: string, limit: number): Promise<LaneState[]> {
    const params = { now: this.#driver.now(), queue, scan: TOP_SCAN, limit };
    const rows = await this.#driver.read({ name: "topLanes", params });
    return rows.map(laneState).sort((a, b) => b.waiting - a.waiting || (a.key < b.key ? -1 : 1));
  }

  async untune(queue: string, key: string): Promise<void> {
    await this.#driver.write({ name: "untuneLane", params: { queue, key } });
  }
}

/** As the workers that know the lane's names say; where none has told, as the lane was before somebody set it by hand. */
function* codeLimits(lane: Row): Script<LaneLimits | null> {
  const [definition] = yield { name: "laneDefaults", params: { queue: text(lane, "queue") } };
  const limits = definition === undefined ? maybeText(lane, "standard") : maybeText(definition, "lanes");
  return limits === null ? null : (JSON.parse(limits) as LaneLimits);
}

export function limitsOfLane(row: Row): LaneLimits {
  const limit = maybeNumber(row, "rate_limit");
  const perMs = maybeNumber(row, "rate_per");
  return {
    concurrency: maybeNumber(row, "concurrency"),
    rate: limit === null || perMs === null ? null : { limit, perMs },
    weight: number(row, "weight"),
  };
}

function laneState(row: Row): LaneState {
  const limits = limitsOfLane(row);
  const pausedAt = maybeNumber(row, "paused_at");
  const now = number(row, "now");
  const window =
    limits.rate === null ? null : roomIn(parseStarts(maybeText(row, "starts")), limits.rate, now);
  return {
    queue: text(row, "queue"),
    key: text(row, "key"),
    ...limits,
    weight: limits.weight ?? 1,
    paused: pausedAt !== null,
    pausedAt: pausedAt === null ? null : new Date(pausedAt),
    running: Math.max(0, number(row, "running") - number(row, "back")),
    waiting: number(row, "waiting"),
    rateOpensAt: window === null || window.room > 0 ? null : new Date(window.opensAt),
    tuned: flag(row, "tuned"),
  };
}
