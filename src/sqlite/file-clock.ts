/**
 * The clock that all threads and processes of a database file share.
 *
 *   file's time = the machine's monotonic clock + origin          origin: a row in `meta`
 *
 * A file is on one machine, whose monotonic clock is the same in all processes and is never set. So the file's time goes on evenly while
 * somebody sets the wall clock, and all agree on it. A client that notices that its wall clock was set moves the origin, in one
 * transaction with the rows that must move along (clock-step.ts). Every write transaction that a lease may depend on reads the row first: nobody
 * judges a lease by an origin that is no longer the file's.
 *
 * Invariants: only a client whose own wall clock was set moves the origin, so that two clients that notice at different moments
 * do not move it to and fro. `seen` is an instant that the file's time has reached: after a restart of the machine the monotonic
 * clock begins anew, and the step is counted from there.
 * Not here: what a step does to the rows (clock-step.ts).
 */
import { type Clock, systemClock } from "../clock.ts";
import type { Tables } from "../sql/catalogue.ts";
import type { Handle, Statement } from "./handle.ts";

/** How far the wall clock and the file's time may part. */
const STEP_MS = 1_000;
const SEEN_EVERY_MS = 10_000;
const FRESH_MS = 1;

/** A change of the origin. */
export interface ClockStep {
  /** The file's time before and after it. */
  readonly from: number;
  readonly to: number;
  /** The machine was started anew since: the time between the two has passed. */
  readonly restarted: boolean;
}

interface Row {
  readonly read: Statement;
  readonly write: Statement;
}

export class FileClock implements Clock {
  readonly system = true;
  readonly monotonic: Clock["monotonic"];
  readonly after: Clock["after"];
  readonly #wall: () => number;
  readonly #elapsed: () => number;
  readonly #tables: Tables;
  readonly #onSet: () => void;
  readonly #rows = new WeakMap<Handle, Row>();
  #origin: number;
  /** Wall clock less monotonic clock, as last looked at. */
  #wallOrigin: number;
  #set = false;
  #known = "";
  #seen = -Infinity;
  #followedAt = -Infinity;

  /** `onSet`: this machine's wall clock was set, and `step` is to be called. `elapsed`: must be the same in all processes. */
  constructor(
    machine: Clock,
    tables: Tables,
    onSet: () => void = () => {},
    elapsed: () => number = () => systemClock.monotonic(),
  ) {
    this.#wall = () => machine.now();
    this.#elapsed = elapsed;
    this.#tables = tables;
    this.#onSet = onSet;
    this.monotonic = () => machine.monotonic();
    this.after = (ms, fn, options) => machine.after(ms, fn, options);
    this.#wallOrigin = this.#wall() - elapsed();
    this.#origin = this.#wallOrigin;
  }

  // An arrow function, so that it can be handed on by itself. It reads one clock: every id asks for the time.
  readonly now = (): number => Math.floor(this.#elapsed() + this.#origin);

  /** Notices that the wall clock was set. Before every statement that judges by the time. */
  look(): void {
    const wallOrigin = this.#wall() - this.#elapsed();
    if (Math.abs(wallOrigin - this.#wallOrigin) <= STEP_MS) return;
    this.#wallOrigin = wallOrigin;
    this.#set = true;
    this.#onSet();
  }

  /** The file's time where the monotonic clock is at 0. */
  get origin(): number {
    return this.#origin;
  }

  /** Whether the wall clock was set and `step` has to look at it. */
  get wasSet(): boolean {
    return this.#set;
  }

  /** Whether the file's origin was looked at a moment ago: enough for what no lease depends on. */
  get isFresh(): boolean {
    return this.#elapsed() - this.#followedAt < FRESH_MS;
  }

  /** Takes over the file's origin. Gives how far that moved this clock. */
  follow(handle: Handle): number {
    this.#followedAt = this.#elapsed();
    const found = this.#row(handle).read.get() as { value: string } | [string] | undefined;
    const value = Array.isArray(found) ? found[0] : found?.value;
    if (value === undefined || value === this.#known) return 0;
    const [origin = 0, seen = 0] = value.split(" ").map(Number);
    const moved = origin - this.#origin;
    this.#known = value;
    this.#origin = origin;
    this.#seen = seen;
    return moved;
  }

  /** Notes how far the file's time has come. In a write transaction, after `follow`. */
  note(handle: Handle): void {
    const now = Math.floor(this.#elapsed() + this.#origin);
    if (now - this.#seen >= SEEN_EVERY_MS) this.#row(handle).write.run(`${this.#origin} ${now}`);
  }

  /** Begins with the file's time, or begins the file's time where it has none. */
  begin(handle: Handle): void {
    this.follow(handle);
    if (this.#known === "") this.note(handle);
    this.#set = Math.abs(this.#wallOrigin - this.#origin) > STEP_MS;
  }

  /** What must be done so that the file's time is the wall clock's again; null: nothing. In a write transaction, after `follow`. */
  step(handle: Handle): ClockStep | null {
    const elapsed = this.#elapsed();
    const origin = this.#wall() - elapsed;
    if (Math.abs(origin - this.#origin) <= STEP_MS) return null;
    const reached = Math.floor(elapsed + this.#origin);
    const to = reached + Math.round(origin - this.#origin);
    const restarted = reached < this.#seen;
    this.#row(handle).write.run(`${origin} ${to}`);
    return { from: restarted ? this.#seen : reached, to, restarted };
  }

  /** The step is committed, or another client had made it. */
  settled(handle: Handle): number {
    this.#set = false;
    return this.follow(handle);
  }

  #row(handle: Handle): Row {
    let row = this.#rows.get(handle);
    if (row === undefined) {
      const { meta } = this.#tables;
      row = {
        read: handle.prepare(`select value from ${meta} where key = 'clock'`),
        write: handle.prepare(
          `insert into ${meta} (key, value) values ('clock', ?) on conflict (key) do update set value = excluded.value`,
        ),
      };
      row.read.setReturnArrays?.(true); // an object costs half of the whole
      this.#rows.set(handle, row);
    }
    return row;
  }
}
