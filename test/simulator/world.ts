/**
 * Virtual time and virtual processes in one thread.
 *
 *   next event by time ──▶ its process runs until it waits for the clock or the database ──▶ next event
 *
 * An event is a timer of a process, or the arrival of a request or an answer. Events at one instant run in a seeded random order. After
 * each event the thread's promise jobs and immediates run until none is left, so exactly one process runs at a time, and a run
 * depends on its seed alone.
 *
 * Invariants: nothing of a killed process runs after its death; a frozen process runs nothing until it is resumed; virtual time does
 * not move while a process runs.
 * Not here: requests and their faults (simulated-driver.ts), the program that the processes run (workload.ts).
 */
import type { Clock, Timer } from "../../src/clock.ts";
import type { Random } from "./random.ts";

interface Event {
  readonly at: number;
  readonly order: number;
  readonly process: Process | null;
  readonly fn: () => void;
  cancelled: boolean;
}

/** Immediates and a real turn of the event loop, which `Immediates.install` puts aside. */
const realImmediate = globalThis.setImmediate;

/**
 * The thread's immediates, run by the world instead of by Node's event loop: only so is it known that none is left.
 * The thread must run nothing but the simulation.
 */
class Immediates {
  #queue: { readonly process: Process | null; readonly fn: () => void }[] = [];
  readonly #current: () => Process | null;
  readonly #random: Random;

  constructor(current: () => Process | null, random: Random) {
    this.#current = current;
    this.#random = random;
  }

  install(): () => void {
    // Ids and session ids are random: from the seed here.
    const realRandom = crypto.getRandomValues.bind(crypto);
    const seeded = this.#random;
    crypto.getRandomValues = <T extends ArrayBufferView | null>(array: T): T => {
      if (array !== null) seeded.bytes(new Uint8Array(array.buffer, array.byteOffset, array.byteLength));
      return array;
    };
    const replaced = (fn: (...args: unknown[]) => void, ...args: unknown[]): object => {
      const entry = { process: this.#current(), fn: () => fn(...args) };
      this.#queue.push(entry);
      return entry;
    };
    globalThis.setImmediate = replaced as unknown as typeof setImmediate;
    return () => {
      globalThis.setImmediate = realImmediate;
      crypto.getRandomValues = realRandom;
    };
  }

  /** Runs those that are set now. False: there were none. */
  run(enter: (process: Process | null, fn: () => void) => void): boolean {
    if (this.#queue.length === 0) return false;
    const batch = this.#queue;
    this.#queue = [];
    for (const { process, fn } of batch) if (process?.alive !== false) enter(process, fn);
    return true;
  }
}

/** One virtual process: it can be killed, frozen and resumed. */
export class Process {
  readonly name: string;
  alive = true;
  frozenUntil = -Infinity;
  /** The latest instant at which this process was frozen or cut off from the database. */
  unwellUntil = -Infinity;
  readonly clock: Clock;
  readonly #world: World;

  constructor(name: string, world: World) {
    this.name = name;
    this.#world = world;
    this.clock = {
      system: true,
      now: () => world.wallNow(),
      monotonic: () => world.now,
      after: (ms, fn) => this.after(ms, fn),
    };
  }

  after(ms: number, fn: () => void): Timer {
    return this.#world.after(this, Math.max(1, Number.isNaN(ms) ? 1 : ms), fn);
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => void this.after(ms, resolve));
  }

  /** As SIGKILL. */
  kill(): void {
    this.alive = false;
  }

  /** As SIGSTOP, with SIGCONT after `ms`. */
  freeze(ms: number): void {
    this.frozenUntil = Math.max(this.frozenUntil, this.#world.now + ms);
    this.unwellUntil = Math.max(this.unwellUntil, this.frozenUntil);
  }
}

export class World {
  /** Milliseconds since the start: the monotonic clock of the machine. */
  now = 0;
  /** Events that have run. */
  events = 0;
  /** Calls of processes that failed with an error nobody caught. */
  readonly crashes: unknown[] = [];
  readonly random: Random;
  #wallOffset = Date.UTC(2026, 0, 5, 10);
  readonly #heap = new Heap();
  #current: Process | null = null;
  readonly #immediates: Immediates;
  /** Called after each event, when its process waits again. */
  afterEvent: () => void = () => {};

  constructor(random: Random) {
    this.random = random;
    this.#immediates = new Immediates(() => this.#current, random.fork());
  }

  /** The process that runs now. */
  get current(): Process | null {
    return this.#current;
  }

  wallNow(): number {
    return this.#wallOffset + this.now;
  }

  /** Sets the machine's wall clock forward or back. Timers and the monotonic clock do not follow. */
  stepWall(byMs: number): void {
    this.#wallOffset += byMs;
  }

  after(process: Process | null, ms: number, fn: () => void): Timer {
    return this.#push(process, this.now + Math.max(0, ms), fn);
  }

  #push(process: Process | null, at: number, fn: () => void): Timer {
    const event: Event = { at, order: this.random.next(), process, fn, cancelled: false };
    this.#heap.push(event);
    return { cancel: () => void (event.cancelled = true) };
  }

  /** Runs events until `ended` says so, or until an instant. True: `ended` said so. */
  async run(untilMs: number, ended: () => boolean): Promise<boolean> {
    const restore = this.#immediates.install();
    try {
      await this.#settle();
      for (;;) {
        if (ended()) return true;
        const event = this.#heap.pop();
        if (event === undefined) return false;
        if (event.at > untilMs) {
          this.#heap.push(event);
          this.now = untilMs;
          return ended();
        }
        if (event.cancelled || event.process?.alive === false) continue;
        this.now = Math.max(this.now, event.at);
        if (event.process !== null && event.process.frozenUntil > this.now) {
          this.#heap.push({ ...event, at: event.process.frozenUntil });
          continue;
        }
        this.events += 1;
        this.#enter(event.process, event.fn);
        await this.#settle();
        this.afterEvent();
      }
    } finally {
      restore();
    }
  }

  /** Runs a function as a process. */
  readonly #enter = (process: Process | null, fn: () => void): void => {
    this.#current = process;
    try {
      fn();
    } catch (error) {
      this.crashes.push(error);
    }
  };

  /** Until nothing is left to run at this instant. */
  async #settle(): Promise<void> {
    do {
      // One turn of the event loop runs all promise jobs.
      await new Promise<void>((resolve) => void realImmediate(resolve));
    } while (this.#immediates.run(this.#enter));
  }
}

/** A binary heap of events by time, then by their random order. */
class Heap {
  readonly #events: Event[] = [];

  push(event: Event): void {
    const events = this.#events;
    let at = events.push(event) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!before(event, events[parent]!)) break;
      events[at] = events[parent]!;
      at = parent;
    }
    events[at] = event;
  }

  pop(): Event | undefined {
    const events = this.#events;
    const first = events[0];
    const last = events.pop();
    if (first === undefined || last === undefined || events.length === 0) return first;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= events.length) break;
      if (child + 1 < events.length && before(events[child + 1]!, events[child]!)) child += 1;
      if (!before(events[child]!, last)) break;
      events[at] = events[child]!;
      at = child;
    }
    events[at] = last;
    return first;
  }
}

function before(a: Event, b: Event): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}
