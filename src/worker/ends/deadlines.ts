/**
 * One timer for the deadlines of many: the timeouts of all running attempts, or the jobs that wait for a slot.
 *
 * The timer is set for the earliest deadline that was armed and not yet looked at. Jobs usually share
 * one timeout, so a later start is never earlier than the armed instant, and starting a job costs one comparison;
 * when the timer fires, all items are looked through once. A timer for each job would cost more than a
 * no-op job itself.
 *
 * Invariant: an item that is still there at its deadline is looked at, at that instant.
 * Not here: what happens to it then (runaways.ts, runner.ts).
 */
import type { Clock, Timer } from "../../clock.ts";

/** Something with an instant, by the monotonic clock. */
export interface HasDeadline {
  readonly deadlineAt: number;
}

/** Watches the deadlines of all that `items` lists. */
export class Deadlines<T extends HasDeadline> {
  readonly #clock: Clock;
  readonly #items: () => Iterable<T>;
  readonly #onDue: (item: T) => void;
  #timer: Timer | undefined;
  /** The instant for which the timer is set. */
  armedAt = Infinity;

  constructor(clock: Clock, items: () => Iterable<T>, onDue: (item: T) => void) {
    this.#clock = clock;
    this.#items = items;
    this.#onDue = onDue;
  }

  /** There is a deadline at this instant. A busy caller compares it with `armedAt` by itself. */
  arm(deadlineAt: number): void {
    if (deadlineAt >= this.armedAt) return;
    this.#timer?.cancel();
    this.armedAt = deadlineAt;
    this.#timer = this.#clock.after(deadlineAt - this.#clock.monotonic(), () => this.#look());
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.armedAt = Infinity;
  }

  #look(): void {
    this.#timer = undefined;
    this.armedAt = Infinity;
    const now = this.#clock.monotonic();
    // Collected first: handling one may end it and start another.
    const due: T[] = [];
    for (const item of this.#items()) if (item.deadlineAt <= now) due.push(item);
    for (const item of due) this.#onDue(item);
    let next = Infinity;
    for (const item of this.#items()) if (item.deadlineAt < next) next = item.deadlineAt;
    this.arm(next);
  }
}
