/**
 * Keeps one session's lease alive, and hears what its holder must know (cancels, a remote stop).
 *
 *   main thread                          thread (renewal-thread.ts), its own connection
 *     ticks a shared clock every second ──▶ renews at every beat while the tick is young
 *     ◀── renewed (when it was sent), cancels, stop · lost · failed · blocked
 *
 * A thread, because a handler that keeps the event loop busy for longer than the lease would otherwise lose its job
 * to another worker while it is healthy (BullMQ measured: both ran). A watchdog, because a handler in an endless
 * loop must lose it: when the tick is older than `maxBlockMs`, the thread stops renewing.
 *
 * Invariants: `renewedAt` is the monotonic instant from before the last successful renewal was sent, so the
 * lease lasts at least until `renewedAt + leaseMs`; it is read from shared memory, because after a long block the
 * main thread's timers fire before the thread's messages arrive. Until the thread has renewed once, and whenever
 * it has died, the main thread renews. A dead session is never renewed again.
 * Not here: what is done about it (worker-session.ts).
 */
import { Worker as Thread } from "node:worker_threads";
import type { Clock, Timer } from "../clock.ts";
import { type ErrorCode, HoldfastError } from "../errors.ts";
import type { Logger } from "../logger.ts";
import { describeFailure } from "../jobs/failure.ts";
import type { Renewal } from "./store.ts";
import type { RenewalTarget } from "../storage/driver.ts";
import type { Store } from "../storage/store.ts";

/** What the holder of a session hears. */
export interface RenewalListener {
  /** The lease was extended by a renewal that was sent at this instant of the monotonic clock. */
  onRenewed(renewal: Renewal, sentAt: number): void;
  /** The session is dead: everything held under it is lost. */
  onLost(): void;
  /** A renewal did not get through; it is tried again. */
  onFailed(error: unknown): void;
}

export interface RenewalDeps {
  readonly store: Pick<Store, "sessions" | "renewalTarget">;
  readonly clock: Clock;
  readonly log: Logger;
  readonly session: number;
  readonly beatMs: number;
  readonly maxBlockMs: number;
  /** From before the session was opened, by the monotonic clock. */
  readonly openedAt: number;
  readonly listener: RenewalListener;
  /** Renewing does not depend on the main thread any more, or never will. */
  readonly onEstablished: () => void;
  /** The thread broke; renewing goes on without it. */
  readonly onThreadError: (error: unknown) => void;
}

/** A session's renewal at work. */
export interface RenewalHandle {
  /** From before the last successful renewal was sent, by the monotonic clock; with how far it was ahead. */
  renewedAt(): number;
  /** Renews now: something may have been asked of the session. */
  poke(): void;
  stop(): void;
}

/** What the thread is started with. Only for these two files. */
export interface ThreadData {
  readonly target: RenewalTarget;
  readonly session: number;
  readonly beatMs: number;
  readonly maxBlockMs: number;
  /** Two instants by `process.hrtime`, which all threads share: the main thread's tick, and the last renewal's start. */
  readonly shared: SharedArrayBuffer;
}

/** What the thread says. Only for these two files. */
export type ThreadMessage =
  | { readonly kind: "renewed"; readonly renewal: Renewal; readonly sentAt: bigint }
  | {
      readonly kind: "failed";
      readonly code: ErrorCode;
      readonly message: string;
      readonly details: Readonly<Record<string, unknown>>;
    }
  | { readonly kind: "blocked"; readonly blockedMs: number };

/** Where in the shared memory the two instants are. Only for these two files. */
export const TICK = 0;
export const RENEWED = 1;

/**
 * Starts renewing: in a thread where the store can be opened a second time and the clock is the machine's,
 * otherwise on the main thread (`:memory:`, a handle of the user's, a fake clock: a declared difference).
 *
 * @example
 * const renewal = startRenewal({ store, clock, log, session, beatMs, maxBlockMs, openedAt, listener, onThreadError });
 * renewal.stop();
 */
export function startRenewal(deps: RenewalDeps): RenewalHandle {
  const { renewalTarget } = deps.store;
  if (deps.clock.system && renewalTarget !== null) return new ThreadRenewal(deps, renewalTarget);
  deps.onEstablished();
  return new MainRenewal(deps);
}

/** Renews on the main thread, one at a time. */
class MainRenewal implements RenewalHandle {
  readonly #deps: RenewalDeps;
  #renewedAt: number;
  #timer: Timer | undefined;
  #inFlight = false;
  #again = false;
  #stopped = false;

  constructor(deps: RenewalDeps) {
    this.#deps = deps;
    this.#renewedAt = deps.openedAt;
    this.#arm(deps.beatMs);
  }

  renewedAt(): number {
    return this.#renewedAt;
  }

  poke(): void {
    this.#poke();
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
  }

  #arm(ms: number): void {
    this.#timer?.cancel();
    if (this.#stopped) return;
    const beat = (aheadMs = 0): void => this.#poke(aheadMs);
    this.#timer = this.#deps.clock.after(ms, beat, { ahead: beat });
  }

  #poke(aheadMs = 0): void {
    if (this.#inFlight) this.#again = true;
    else void this.#beat(aheadMs);
  }

  async #beat(aheadMs: number): Promise<void> {
    const { clock, store, session, beatMs, listener } = this.#deps;
    if (this.#stopped) return;
    this.#timer?.cancel();
    this.#inFlight = true;
    const sentAt = clock.monotonic();
    let nextMs = beatMs + aheadMs;
    try {
      const renewal = await store.sessions.renew(session, aheadMs);
      if (!this.#stopped) this.#heard(renewal, sentAt, aheadMs);
    } catch (error) {
      nextMs = retryMs(beatMs);
      if (!this.#stopped) listener.onFailed(error);
    }
    this.#inFlight = false;
    // The next beat counts from when this one was sent: an answer that takes seconds must not stretch the beat.
    this.#arm(this.#again ? 0 : Math.max(0, nextMs - (clock.monotonic() - sentAt)));
    this.#again = false;
  }

  #heard(renewal: Renewal, sentAt: number, aheadMs: number): void {
    if (renewal.alive) {
      this.#renewedAt = sentAt + aheadMs;
      this.#deps.listener.onRenewed(renewal, sentAt);
    } else {
      this.stop();
      this.#deps.listener.onLost();
    }
  }
}

/** Renews in a thread, and on the main thread while there is none. */
class ThreadRenewal implements RenewalHandle {
  readonly #deps: RenewalDeps;
  readonly #target: RenewalTarget;
  readonly #shared = new SharedArrayBuffer(16);
  readonly #instants = new BigInt64Array(this.#shared);
  #thread: Thread | undefined;
  /** At work until the thread has renewed once, and after it died. */
  #standIn: MainRenewal | undefined;
  #tickTimer: Timer | undefined;
  #restartTimer: Timer | undefined;
  #stopped = false;

  constructor(deps: RenewalDeps, target: RenewalTarget) {
    this.#deps = deps;
    this.#target = target;
    this.#standIn = new MainRenewal(deps);
    Atomics.store(
      this.#instants,
      RENEWED,
      process.hrtime.bigint() - toNs(deps.clock.monotonic() - deps.openedAt),
    );
    this.#tick();
    this.#start();
  }

  renewedAt(): number {
    const byThread = this.#monotonic(Atomics.load(this.#instants, RENEWED));
    return Math.max(byThread, this.#standIn?.renewedAt() ?? -Infinity);
  }

  poke(): void {
    this.#standIn?.poke();
    this.#thread?.postMessage("poke");
  }

  stop(): void {
    this.#stopped = true;
    this.#standIn?.stop();
    this.#tickTimer?.cancel();
    this.#restartTimer?.cancel();
    // It closes its connection and ends by itself; it never keeps the process alive.
    this.#thread?.postMessage("stop");
    this.#thread = undefined;
  }

  #tick(): void {
    Atomics.store(this.#instants, TICK, process.hrtime.bigint());
    if (this.#deps.store.renewalTarget === null) this.#park();
    this.#tickTimer = this.#deps.clock.after(Math.min(1_000, this.#deps.maxBlockMs / 4), () => this.#tick());
  }

  /** The store can no longer be opened a second time: the main thread takes over for good. */
  #park(): void {
    const thread = this.#thread;
    if (thread === undefined) return;
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
    thread.postMessage("park");
    this.#thread = undefined;
    this.#standIn ??= new MainRenewal({ ...this.#deps, openedAt: this.renewedAt() });
    this.#standIn.poke();
  }

  #start(): void {
    if (this.#stopped || this.#deps.store.renewalTarget === null) return;
    const { session, beatMs, maxBlockMs } = this.#deps;
    const data: ThreadData = { target: this.#target, session, beatMs, maxBlockMs, shared: this.#shared };
    // Sources run as they are (.ts, type stripping) in our tests, and built (.js) everywhere else.
    const extension = import.meta.url.endsWith(".ts") ? ".ts" : ".js";
    try {
      const thread = new Thread(new URL(`./renewal-thread${extension}`, import.meta.url), {
        workerData: data,
        name: "holdfast-renewal",
      });
      thread.unref();
      thread.on("message", (message: ThreadMessage) => this.#heard(message));
      thread.on("error", (error) => this.#died(thread, error));
      thread.on("exit", (code) =>
        this.#died(thread, new HoldfastError("INTERNAL", `The renewal thread exited with code ${code}.`)),
      );
      this.#thread = thread;
    } catch (error) {
      // A configuration that cannot be copied into a thread (a function as password), or a bundle without our file.
      this.#deps.log.warn(
        { error: describeFailure(error).message },
        "the renewal thread could not be started; the main thread renews the leases",
      );
      this.#deps.onThreadError(error);
      this.#deps.onEstablished();
    }
  }

  #heard(message: ThreadMessage): void {
    // After a long block the lease is usually given up before this is heard: it must still be told why.
    if (this.#stopped && message.kind !== "blocked") return;
    switch (message.kind) {
      case "renewed":
        if (message.renewal.alive) {
          this.#standIn?.stop();
          this.#standIn = undefined;
          this.#deps.onEstablished();
          this.#deps.listener.onRenewed(message.renewal, this.#monotonic(message.sentAt));
        } else {
          this.stop();
          this.#deps.listener.onLost();
        }
        return;
      case "failed":
        this.#deps.listener.onFailed(
          new HoldfastError(message.code, message.message, { details: message.details }),
        );
        return;
      case "blocked":
        this.#deps.log.warn(
          { session: this.#deps.session, blockedMs: message.blockedMs },
          "the event loop was blocked for longer than maxBlock, so the lease was not renewed",
        );
        return;
    }
  }

  /** An instant of `process.hrtime`, which all threads share, by this thread's monotonic clock. */
  #monotonic(instant: bigint): number {
    return this.#deps.clock.monotonic() - Number(process.hrtime.bigint() - instant) / 1e6;
  }

  #died(thread: Thread, error: unknown): void {
    if (this.#stopped || this.#thread !== thread) return;
    this.#thread = undefined;
    // The shared instant stays valid; the stand-in goes on from it, at once, because nobody knows how long ago that was.
    this.#standIn ??= new MainRenewal({ ...this.#deps, openedAt: this.renewedAt() });
    this.#standIn.poke();
    this.#deps.onThreadError(error);
    this.#deps.onEstablished();
    this.#restartTimer = this.#deps.clock.after(1_000, () => this.#start());
  }
}

/** After a failed renewal the next comes sooner than the beat: the lease runs out. Only for these two files. */
export function retryMs(beatMs: number): number {
  return Math.min(beatMs, 1_000);
}

function toNs(ms: number): bigint {
  return BigInt(Math.round(ms * 1e6));
}
