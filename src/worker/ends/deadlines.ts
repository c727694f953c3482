/**
 * One timer for the timeouts of all running attempts.
 *
 * The timer is set for the earliest deadline that was armed and not yet looked at. Jobs usually share
 * one timeout, so a later start is never earlier than the armed instant, and starting a job costs one comparison;
 * when the timer fires, the running attempts are looked through once. A timer for each job would cost more than a
 * no-op job itself.
 *
 * Invariant: an attempt that is still running at its deadline is looked at, at that instant.
 * Not here: what happens to it then (runaways.ts).
 */
import type { Clock, Timer } from "../../clock.ts";

/** Something with an instant, by the monotonic clock. */
export interface HasDeadline {
  deadlineAt: number;
}

/** Watches the deadlines of whatever `running` lists. */
export class Deadlines<T extends HasDeadline> {
  readonly #clock: Clock;
  readonly #running: () => Iterable<T>;
  readonly #onDue: (item: T) => void;
  #timer: Timer | undefined;
  /** The instant for which the timer is set: only an earlier deadline needs `arm`. */
  armedAt = Infinity;

  constructor(clock: Clock, running: () => Iterable<T>, onDue: (item: T) => void) {
    this.#clock = clock;
    this.#running = running;
    this.#onDue = onDue;
  }

  /** There is a deadline at this instant, earlier than `armedAt`. */
  arm(deadlineAt: number): void {
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
    for (const item of this.#running()) if (item.deadlineAt <= now) due.push(item);
    for (const item of due) this.#onDue(item);
    let next = Infinity;
    for (const item of this.#running()) if (item.deadlineAt < next) next = item.deadlineAt;
    if (next < Infinity) this.arm(next);
  }
}
