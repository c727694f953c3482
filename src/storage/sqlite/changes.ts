/**
 * Hears of commits by other connections: the file system tells that the WAL was written, SQLite's `data_version` whether
 * that was a commit of somebody else.
 *
 *   WAL written ──▶ look now, soon, and less and less often, until the version has changed or a second is over
 *   nothing     ──▶ look every 2 s; a change that nobody told of: the file system is deaf, look every 6 ms from now on
 *
 * A commit is visible only after its fsync, some milliseconds after the write that is told of: hence the looks that
 * follow. Not every file system tells (some mounts of containers do not), and a machine may have no watch left: hence the
 * looks without being told.
 */
import { watch } from "node:fs";
import type { Clock, Timer } from "../../clock.ts";

/** Where nobody tells: a job enqueued by another process then starts after half of this on average. */
const DEAF_EVERY_MS = 6;
const IDLE_EVERY_MS = 2_000;
/** Looks are at least this far apart, however much is written: each change makes workers claim. */
const CLOSEST_MS = 2;
const ALERT_MS = 60;
const LONGEST_MS = 512;
const DOUBT_MS = 50;

export interface ChangesDeps {
  readonly clock: Clock;
  /** `pragma data_version`: about 5 µs. May throw. */
  readonly version: () => number;
  readonly onChange: () => void;
  /** Calls `told` whenever the WAL is written; gives what ends that. Throws where it cannot. */
  readonly watchWal: (told: () => void, failed: () => void) => () => void;
}

/** Tells of commits by other connections, in this process or another. */
export class Changes {
  readonly #deps: ChangesDeps;
  #version: number;
  #timer: Timer | undefined;
  #dueAt = Infinity;
  #lookedAt = -Infinity;
  #pauseMs = IDLE_EVERY_MS;
  #told = false;
  #toldAt = -Infinity;
  /** A change was found that nobody had told of. */
  #doubt = false;
  #unwatch: (() => void) | undefined;

  constructor(deps: ChangesDeps) {
    this.#deps = deps;
    this.#version = deps.version();
    try {
      this.#unwatch = deps.watchWal(
        () => this.#heard(),
        () => this.#deaf(),
      );
    } catch {
      this.#pauseMs = DEAF_EVERY_MS;
    }
    this.#lookIn(this.#pauseMs);
  }

  /** The connection is another one, whose versions begin anew. */
  renew(): void {
    this.#version = this.#deps.version();
  }

  stop(): void {
    this.#timer?.cancel();
    this.#unwatch?.();
    this.#unwatch = undefined;
  }

  #heard(): void {
    this.#told = true;
    this.#toldAt = this.#deps.clock.monotonic();
    this.#doubt = false;
    this.#pauseMs = 1;
    this.#lookIn(this.#lookedAt + CLOSEST_MS - this.#deps.clock.monotonic());
  }

  #deaf(): void {
    if (this.#unwatch === undefined) return;
    this.#unwatch();
    this.#unwatch = undefined;
    this.#pauseMs = DEAF_EVERY_MS;
    this.#lookIn(DEAF_EVERY_MS);
  }

  /** Sooner than what is set already, or not at all. */
  #lookIn(ms: number): void {
    const { clock } = this.#deps;
    const dueAt = clock.monotonic() + Math.max(0, ms);
    if (dueAt >= this.#dueAt) return;
    this.#timer?.cancel();
    this.#dueAt = dueAt;
    this.#timer = clock.after(Math.max(0, ms), () => this.#look(), { unref: true });
  }

  #look(): void {
    this.#dueAt = Infinity;
    this.#lookedAt = this.#deps.clock.monotonic();
    const changed = this.#changed();
    if (this.#unwatch !== undefined) this.#pauseMs = this.#nextPause(changed);
    this.#lookIn(this.#pauseMs);
    if (changed) this.#deps.onChange();
  }

  #nextPause(changed: boolean): number {
    if (this.#doubt) return this.#pauseMs; // `#deaf` is on its way
    if (changed && !this.#told) {
      // Timers run before events: this turn's may still come. If none does, none will.
      this.#doubt = true;
      this.#deps.clock.after(DOUBT_MS, () => this.#doubt && this.#deaf(), { unref: true });
      return DOUBT_MS;
    }
    if (!changed && this.#told && this.#pauseMs < LONGEST_MS) {
      const pauseMs = this.#pauseMs * 2;
      return this.#lookedAt - this.#toldAt < ALERT_MS ? Math.min(pauseMs, DEAF_EVERY_MS) : pauseMs;
    }
    this.#told = false;
    return IDLE_EVERY_MS;
  }

  #changed(): boolean {
    try {
      const version = this.#deps.version();
      if (version === this.#version) return false;
      this.#version = version;
      return true;
    } catch {
      return false; // Busy or gone: the next statement that matters will say so.
    }
  }
}

/** By the file system. The WAL is there for as long as a connection is open that has read once. */
export function watchWal(path: string): ChangesDeps["watchWal"] {
  return (told, failed) => {
    const watcher = watch(`${path}-wal`, { persistent: false }, (event) => {
      if (event === "rename") failed();
      else told();
    });
    watcher.on("error", failed);
    return () => watcher.close();
  };
}
