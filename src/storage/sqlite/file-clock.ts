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
 * do not move it to and fro. `seen` is an instant that the file's time has reached. Where the row is from another start of the machine, or
 * from another machine (a volume that moved, a restored copy), its origin says nothing: the monotonic clock there counted from another
 * instant, and may be behind as well as ahead. So the row names the start (`bootId`), and the step is counted from `seen`.
 * Not here: what a step does to the rows (clock-step.ts).
 */
import { bootId, type Clock, sleptMs, systemClock } from "../../clock.ts";
import type { Tables } from "../catalogue.ts";
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
  /** The machine was started anew since, or it is another one: the time between the two has passed. */
  readonly restarted: boolean;
  /** How much of a step forward is time that went by while the monotonic clock stood still; of the rest only the clock knows. */
  readonly passed: number;
}

/** The machine's properties that a file's clock uses besides the wall clock. */
export interface Host {
  /** The monotonic clock: must be the same in all processes. */
  readonly elapsed: () => number;
  /** Which start of which machine this is; null: it does not say. */
  readonly boot: () => string | null;
  /** How long the machine has slept, from any instant on. */
  readonly slept: () => number;
}

const thisHost: Host = { elapsed: () => systemClock.monotonic(), boot: bootId, slept: sleptMs };
/** The uptime is in seconds in some places. */
const SLEPT_MS = 3_000;

interface Row {
  readonly read: () => readonly [value?: string | undefined];
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
  /** The file's time where the monotonic clock is at 0. Only this clock moves it. */
  origin: number;
  /** Wall clock less monotonic clock, as last looked at. */
  #wallOrigin: number;
  /** Whether the wall clock was set and `step` has to look at it. */
  wasSet = false;
  #known = "";
  #seen = -Infinity;
  /** Who wrote the row; null: nobody knows. */
  #writtenOn: string | null = null;
  readonly #boot: string | null;
  readonly #slept: () => number;
  #sleptBefore: number;
  /** The step was found at the first look: what was before is unknown. */
  #fresh = false;
  #followedAt = -Infinity;

  /** `onSet`: this machine's wall clock was set, and `step` is to be called. */
  constructor(machine: Clock, tables: Tables, onSet: () => void = () => {}, host: Host = thisHost) {
    this.#wall = () => machine.now();
    this.#elapsed = host.elapsed;
    this.#boot = host.boot();
    this.#slept = host.slept;
    this.#sleptBefore = host.slept();
    this.#tables = tables;
    this.#onSet = onSet;
    this.monotonic = () => machine.monotonic();
    this.after = (ms, fn, options) => machine.after(ms, fn, options);
    this.#wallOrigin = this.#wall() - host.elapsed();
    this.origin = this.#wallOrigin;
  }

  // An arrow function, so that it can be handed on by itself. It reads one clock: every id asks for the time.
  readonly now = (): number => Math.floor(this.#elapsed() + this.origin);

  /** Notices that the wall clock was set. Before every statement that judges by the time. */
  look(): void {
    const wallOrigin = this.#wall() - this.#elapsed();
    if (Math.abs(wallOrigin - this.#wallOrigin) > STEP_MS) this.#wallWasSet(wallOrigin);
  }

  #wallWasSet(wallOrigin: number): void {
    this.#wallOrigin = wallOrigin;
    this.wasSet = true;
    this.#onSet();
  }

  /** Whether the file's origin was looked at a moment ago: enough for what no lease depends on. */
  get isFresh(): boolean {
    return this.#elapsed() - this.#followedAt < FRESH_MS;
  }

  /** Takes over the file's origin. Gives how far that moved this clock. */
  follow(handle: Handle): number {
    this.#followedAt = this.#elapsed();
    const [value] = this.#row(handle).read();
    return value === undefined || value === this.#known ? 0 : this.#takeOver(value);
  }

  #takeOver(value: string): number {
    const [origin = 0, seen = 0] = value.split(" ").map(Number);
    this.#writtenOn = value.split(" ")[2] ?? null; // an older version writes none
    const moved = origin - this.origin;
    if (moved !== 0) this.#sleptBefore = this.#slept(); // Who moved it has counted it.
    this.#known = value;
    this.origin = origin;
    this.#seen = seen;
    return moved;
  }

  /** Notes how far the file's time has come. In a write transaction, after `follow`. */
  note(handle: Handle): void {
    const now = this.now();
    if (now - this.#seen >= SEEN_EVERY_MS) this.#row(handle).write.run(this.#text(this.origin, now));
  }

  /** Begins with the file's time, or begins the file's time where it has none. */
  begin(handle: Handle): void {
    this.follow(handle);
    if (this.#known === "") this.note(handle);
    this.wasSet = Math.abs(this.#wallOrigin - this.origin) > STEP_MS;
    this.#fresh = this.wasSet;
  }

  /** What must be done so that the file's time is the wall clock's again; null: nothing. In a write transaction, after `follow`. */
  step(handle: Handle): ClockStep | null {
    const elapsed = this.#elapsed();
    const origin = this.#wall() - elapsed;
    if (Math.abs(origin - this.origin) <= STEP_MS) return null;
    const reached = Math.floor(elapsed + this.origin);
    const to = reached + Math.round(origin - this.origin);
    const boots = this.#boot !== null && this.#writtenOn !== null;
    const restarted = reached < this.#seen || (boots && this.#boot !== this.#writtenOn);
    // Where no boot has a name, a clock that was set while nobody looked and another machine look alike. From `seen` on is what is known to
    // have passed; from `reached` on, a machine with a longer uptime would take weeks that nobody lived through for passed.
    const unknown = restarted || (this.#fresh && !boots);
    this.#row(handle).write.run(this.#text(origin, to));
    const from = unknown ? this.#seen : reached;
    const forward = Math.max(0, to - from);
    const slept = Math.round(this.#slept() - this.#sleptBefore);
    return {
      from,
      to,
      restarted,
      passed: restarted ? forward : slept > SLEPT_MS ? Math.min(slept, forward) : 0,
    };
  }

  /** The step is committed, or another client had made it. */
  settled(handle: Handle): number {
    this.wasSet = false;
    this.#fresh = false;
    this.#sleptBefore = this.#slept();
    return this.follow(handle);
  }

  /** The row: its third word is passed over by versions that know two. */
  #text(origin: number, seen: number): string {
    return this.#boot === null ? `${origin} ${seen}` : `${origin} ${seen} ${this.#boot}`;
  }

  #row(handle: Handle): Row {
    return this.#rows.get(handle) ?? this.#prepare(handle);
  }

  #prepare(handle: Handle): Row {
    const { meta } = this.#tables;
    const select = handle.prepare(`select value from ${meta} where key = 'clock'`);
    select.setReturnArrays?.(true); // an object costs half of the whole
    const row: Row = {
      // better-sqlite3 gives an object.
      read:
        select.setReturnArrays === undefined
          ? () => [(select.get() as { value: string } | undefined)?.value]
          : () => (select.get() as [string] | undefined) ?? [],
      write: handle.prepare(
        `insert into ${meta} (key, value) values ('clock', ?)
         on conflict (key) do update set value = excluded.value`,
      ),
    };
    this.#rows.set(handle, row);
    return row;
  }
}
