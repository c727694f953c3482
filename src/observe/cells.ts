/**
 * Counts of attempts by queue and name, in memory: what a minute of a worker, or the total of a process, is made of.
 *
 * Not here: when they are written (recorder.ts), failures by their cause (failure-counts.ts).
 */
import { Histogram } from "../values/histogram.ts";

/** What can become of an attempt, as it is counted. */
export const OUTCOMES = ["done", "failed", "dead", "cancelled", "throttled", "released", "lost"] as const;
export type CountedOutcome = (typeof OUTCOMES)[number];

/** Counts of one name in one queue. */
export class Cell {
  readonly queue: string;
  readonly name: string;
  readonly counts: Record<CountedOutcome, number> = {
    done: 0,
    failed: 0,
    dead: 0,
    cancelled: 0,
    throttled: 0,
    released: 0,
    lost: 0,
  };
  readonly ran: Histogram = new Histogram();
  readonly waited: Histogram = new Histogram();
  /** It has changed since it was last written. */
  dirty = false;

  constructor(queue: string, name: string) {
    this.queue = queue;
    this.name = name;
  }

  /** Null: nothing but the time that an attempt took. */
  add(outcome: CountedOutcome | null, ranMs: number, waitedMs: number): void {
    this.dirty = true;
    if (outcome !== null) this.counts[outcome] += 1;
    this.ran.add(ranMs);
    this.waited.add(waitedMs);
  }

  addLost(): void {
    this.dirty = true;
    this.counts.lost += 1;
  }

  merge(other: Cell): void {
    for (const outcome of OUTCOMES) this.counts[outcome] += other.counts[outcome];
    this.ran.merge(other.ran);
    this.waited.merge(other.waited);
  }
}

/** Cells by queue and name. */
export class Cells {
  readonly #cells = new Map<string, Map<string, Cell>>();

  at(queue: string, name: string): Cell {
    let names = this.#cells.get(queue);
    if (names === undefined) this.#cells.set(queue, (names = new Map<string, Cell>()));
    let cell = names.get(name);
    if (cell === undefined) names.set(name, (cell = new Cell(queue, name)));
    return cell;
  }

  *[Symbol.iterator](): Generator<Cell> {
    for (const names of this.#cells.values()) yield* names.values();
  }

  merge(other: Cells): void {
    for (const cell of other) this.at(cell.queue, cell.name).merge(cell);
  }
}
