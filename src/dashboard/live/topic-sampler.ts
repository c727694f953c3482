/**
 * One thing that is looked at for all who follow it: however many they are, there is one read at a time and one a tick.
 *
 *   nobody ──▶ no read        somebody ──▶ a read every `everyMs`, and soon after a wake-up (twice a second at most)
 *
 * What followers know is `told`; a look that differs from it is told as what has changed. Ages grow by themselves (`oldestMs`, the
 * sentence of the overview): where nothing else has changed they are told every 5 seconds.
 *
 * Invariants: a follower gets the whole first, unless it knows a state from which the changes are still remembered; after that,
 * each change once and in order; a value that has not changed is not told. An error of the database is `trouble`, and so is one
 * that is silent for 5 seconds, until it answers; a refusal (there is no such job) is told as that, once.
 * Not here: who follows (stream.ts), what is read (topics.ts).
 */
import type { Clock, Timer } from "../../clock.ts";
import { type Delta, deltaOf, type Fields } from "./delta.ts";
import { ApiError } from "../http.ts";

const soonestMs = 500;
const lateMs = 5_000;
const mostMissed = 60;
/** Changes are remembered up to so many characters. */
const mostText = 262_144;

export interface Follower {
  /** The whole. */
  snapshot(value: Fields, readAt: number): void;
  change(delta: Delta, event: "change" | "age", readAt: number): void;
  /** It knows what there is. */
  current(): void;
  refused(error: ApiError): void;
  trouble(): void;
}

export interface Look {
  readonly value: Fields;
  /** What a change is told by; the second without what grows by itself. */
  readonly text: string;
  readonly ageless: string;
  readonly at: number;
  /** When it was begun to be read, by the wall clock: what had happened by then is in it. */
  readonly readAt: number;
}

interface Told extends Look {
  readonly id: number;
}

/** A change from one state to another, for those who come back. */
interface Missed {
  readonly from: number;
  readonly id: number;
  readonly delta: Delta;
  readonly readAt: number;
  readonly size: number;
}

export interface SamplerDeps {
  readonly read: () => Promise<object>;
  readonly clock: Clock;
  readonly everyMs: number;
  /** The next number of all that is told. */
  readonly next: () => number;
}

export class Sampler {
  readonly #deps: SamplerDeps;
  /** Whether it has been told the whole, or its equal. */
  readonly #followers = new Map<Follower, { up: boolean; readonly after: number | null }>();
  #timer: Timer | null = null;
  #armedFor = Infinity;
  #last: Look | null = null;
  #reading: Promise<Look> | null = null;
  #told: Told | null = null;
  #sentAt = -Infinity;
  #missed: Missed[] = [];
  #troubled = false;
  #refused: ApiError | null = null;
  #looking = false;
  #again = false;
  /** When the last follower left; null: there is one. */
  #idleSince: number | null;

  constructor(deps: SamplerDeps) {
    this.#deps = deps;
    this.#idleSince = deps.clock.monotonic();
  }

  get idleSince(): number | null {
    return this.#idleSince;
  }

  /** `after`: the number of the last change that it knows; null: it knows nothing. */
  follow(follower: Follower, after: number | null): void {
    this.#followers.set(follower, { up: false, after });
    this.#idleSince = null;
    this.latest().then(
      (look) => this.#publish(look),
      (error: unknown) => this.#failed(error, [follower]),
    );
    this.#arm(this.#deps.everyMs);
  }

  leave(follower: Follower): void {
    this.#followers.delete(follower);
    if (this.#followers.size > 0) return;
    this.#timer?.cancel();
    this.#timer = null;
    this.#armedFor = Infinity;
    this.#idleSince ??= this.#deps.clock.monotonic();
  }

  /** Something may have changed. */
  soon(): void {
    if (this.#followers.size === 0) return;
    const sinceMs = this.#deps.clock.monotonic() - (this.#last?.at ?? -Infinity);
    this.#arm(Math.max(0, Math.max(soonestMs, this.#deps.everyMs / 2) - sinceMs));
  }

  /** The last look, no older than a tick, while somebody follows; else a fresh one. */
  async latest(): Promise<Look> {
    const { clock, everyMs } = this.#deps;
    if (this.#last !== null && this.#timer !== null && clock.monotonic() - this.#last.at < everyMs)
      return this.#last;
    return this.#fresh();
  }

  /** One read for all who wait for one: a database that hangs must not gather them. */
  #fresh(): Promise<Look> {
    this.#reading ??= this.#read().finally(() => (this.#reading = null));
    return this.#reading;
  }

  async #read(): Promise<Look> {
    const { clock, read } = this.#deps;
    const wait = (): Timer =>
      clock.after(
        lateMs,
        () => {
          this.#trouble([...this.#followers.keys()]);
          late = wait();
        },
        { unref: true },
      );
    let late = wait();
    const readAt = clock.now();
    try {
      const value = plain(await read());
      const look = { value, ...textsOf(value), at: clock.monotonic(), readAt };
      this.#last = look;
      return look;
    } finally {
      late.cancel();
    }
  }

  /** Tells what is new to those who know what was, and everything to those who know nothing. */
  #publish(look: Look): void {
    const { clock, next } = this.#deps;
    const told = this.#told;
    if (told === null || this.#refused !== null) {
      this.#told = { ...look, id: next() };
      this.#missed = [];
      for (const state of this.#followers.values()) state.up = false;
    } else {
      const now = clock.monotonic();
      const event = look.ageless !== told.ageless || this.#troubled ? "change" : "age";
      if (event === "change" || (look.text !== told.text && now - this.#sentAt >= lateMs)) {
        const delta = deltaOf(told.value, look.value);
        this.#told = { ...look, id: next() };
        this.#sentAt = now;
        const { id, readAt } = this.#told;
        this.#remember({ from: told.id, id, delta, readAt, size: JSON.stringify(delta).length });
        for (const [follower, { up }] of this.#followers) if (up) follower.change(delta, event, readAt);
      }
    }
    this.#troubled = false;
    this.#refused = null;
    for (const follower of this.#followers.keys()) this.#bringUp(follower);
  }

  #bringUp(follower: Follower): void {
    const state = this.#followers.get(follower);
    const told = this.#told;
    if (state === undefined || state.up || told === null) return;
    state.up = true;
    const { after } = state;
    if (after !== null && told.id <= after) return follower.current();
    const missed = after === null ? [] : this.#missed.filter(({ id }) => id > after);
    const [first] = missed;
    // All of what it missed must be known: the first must follow on what it has.
    if (after === null || first === undefined || first.from > after)
      return follower.snapshot(told.value, told.readAt);
    for (const { delta, readAt } of missed) follower.change(delta, "change", readAt);
  }

  #remember(change: Missed): void {
    this.#missed.push(change);
    let size = this.#missed.reduce((sum, one) => sum + one.size, 0);
    while (this.#missed.length > mostMissed || size > mostText) size -= this.#missed.shift()?.size ?? size;
  }

  #failed(error: unknown, to: readonly Follower[]): void {
    if (!(error instanceof ApiError) || error.status >= 500) return this.#trouble(to);
    const known = this.#refused?.code === error.code;
    this.#refused = error;
    this.#last = null;
    for (const follower of to) {
      const state = this.#followers.get(follower);
      if (state === undefined || (known && state.up)) continue;
      state.up = true;
      follower.refused(error);
    }
  }

  #trouble(to: readonly Follower[]): void {
    this.#last = null;
    // What comes after is told, be it what was there before.
    this.#troubled = true;
    for (const follower of to) if (this.#followers.has(follower)) follower.trouble();
  }

  #arm(ms: number): void {
    const { clock } = this.#deps;
    const at = clock.monotonic() + ms;
    if (this.#timer !== null && at >= this.#armedFor) return;
    this.#timer?.cancel();
    this.#armedFor = at;
    this.#timer = clock.after(ms, () => void this.#tick(), { unref: true });
  }

  async #tick(): Promise<void> {
    this.#timer = null;
    this.#armedFor = Infinity;
    if (this.#looking) {
      this.#again = true;
      return;
    }
    this.#looking = true;
    try {
      this.#publish(await this.#fresh());
    } catch (error) {
      this.#failed(error, [...this.#followers.keys()]);
    }
    this.#looking = false;
    if (this.#followers.size > 0) this.#arm(this.#again ? soonestMs : this.#deps.everyMs);
    this.#again = false;
  }
}

/** As JSON has it: what both ends compare. */
function plain(value: object): Fields {
  return JSON.parse(JSON.stringify(value)) as Fields;
}

function textsOf({ at: _at, ...value }: Fields): Pick<Look, "text" | "ageless"> {
  return {
    text: JSON.stringify(value),
    ageless: JSON.stringify(value, (key, part: unknown) =>
      key === "oldestMs" ? undefined : key === "verdict" ? levelOf(part) : part,
    ),
  };
}

/** The words of a verdict tell ages. */
function levelOf(verdict: unknown): unknown {
  return typeof verdict === "object" && verdict !== null && "level" in verdict ? verdict.level : verdict;
}
