/**
 * `hf.state.pass`: a recurring pass over something (a crawl, a sync) that knows whether the one before it ended clean.
 *
 *   begin: flag false ──▶ running ──returns──▶ flag true
 *                            ├── throws · limit() · its signal fired · too many failures in a row ──▶ flag stays false
 *                            └── its process dies ──▶ flag stays false; after its lease the next one may begin
 *
 * The next pass is told `recovery: true` when the flag is false, and the first of a name: sweep everything, for something may have been left out.
 * Invariants: one pass of a name at a time over all processes (PASS_RUNNING for another), unless its holder has not
 * renewed it for a whole lease; one that was taken over is told by its signal and cannot set the flag.
 * Not here: the row (pass-rows.ts).
 */
import type { Clock, Timer } from "../clock.ts";
import { shown, StateError, UsageError } from "../errors.ts";
import { describeFailure } from "../jobs/failure.ts";
import { checkName } from "../values/name.ts";
import { checkInteger, checkOptions } from "../values/options.ts";
import { type Duration, durationMs } from "../values/duration.ts";
import type { Retry } from "../storage/retry-calls.ts";
import type { Store } from "../storage/store.ts";

/** What `hf.state.pass` takes beside the function. */
export interface PassOptions {
  /** So many failures in a row (`pass.failed`, `pass.try`) end the pass; default 10. */
  readonly breaker?: number | undefined;
  /** How long after its process has died another may begin; default 30 s. */
  readonly lease?: Duration | undefined;
  /**
   * `ctx.stopping` or `ctx.signal` of a handler. A pass whose function returns after this has fired is not clean: it may have
   * returned before its end. `pass.signal` aborts with it.
   */
  readonly signal?: AbortSignal | undefined;
}

/**
 * A pass that is running.
 *
 * @example
 * await hf.state.pass("crawl", async (pass) => {
 *   for (const page of pass.recovery ? await allPages() : await changedPages()) await pass.try(() => fetchPage(page));
 * });
 */
export interface Pass {
  readonly name: string;
  /** The pass before this one did not end clean: sweep everything. True for the very first. */
  readonly recovery: boolean;
  /** 1 for the first pass of this name. */
  readonly run: number;
  /** Aborts when the pass is given up, or its right to run is lost. */
  readonly signal: AbortSignal;
  /** One thing went well: failures count from 0 again. */
  ok(): void;
  /**
   * One thing failed. When it is one too many in a row, the pass is given up.
   *
   * @throws StateError PASS_ABORTED
   */
  failed(error: unknown): void;
  /** Runs `work`, and tells `ok` or `failed`; gives its value, or undefined when it failed. */
  try<T>(work: () => T | Promise<T>): Promise<T | undefined>;
  /** The pass stops before its end (a limit was reached): it is not clean, though nothing failed. */
  limit(reason: string): void;
}

/** What is known of passes, as `hf.state.passes()` gives it. */
export interface PassState {
  readonly name: string;
  /** The latest pass ended clean; false while one runs. */
  readonly clean: boolean;
  readonly running: boolean;
  readonly runs: number;
  readonly startedAt: Date | null;
  readonly endedAt: Date | null;
  /** Why the latest one that ended was not clean. */
  readonly reason: string | null;
}

/** What a pass needs of the client. */
export interface PassDeps {
  readonly store: Store;
  readonly retry: Retry;
  readonly clock: Clock;
  readonly newId: () => string;
}

const maxReasonChars = 8_192;

/** Runs one pass. */
export async function runPass<T>(
  name: string,
  work: (pass: Pass) => T | Promise<T>,
  options: PassOptions | undefined,
  deps: PassDeps,
): Promise<T> {
  const known = checkName(name, "The name of a pass");
  if (typeof work !== "function")
    throw new UsageError("BAD_OPTION", `state.pass takes a function; got ${shown(work)}.`);
  const given = checkOptions(options, ["breaker", "lease", "signal"], "state.pass") as PassOptions;
  const breaker = checkInteger(given.breaker ?? 10, "breaker", { min: 1, max: 1_000_000 });
  const leaseMs = durationMs(given.lease ?? "30s", "lease");
  if (leaseMs < 1_000)
    throw new UsageError("BAD_DURATION", "lease of state.pass must be at least 1 second.", {
      details: { option: "lease" },
    });
  const { signal } = given;
  if (signal !== undefined && !(signal instanceof AbortSignal))
    throw new UsageError("BAD_OPTION", `signal of state.pass must be an AbortSignal; got ${shown(signal)}.`, {
      details: { option: "signal" },
    });
  const holder = deps.newId();
  const start = await deps.retry.repeatable(() => deps.store.passes.begin(known, holder, leaseMs));
  if (start.held) {
    throw new StateError(
      "PASS_RUNNING",
      `A pass "${known}" is running. If its process has died, another pass can start after ${new Date(start.heldUntil).toISOString()}.`,
      { details: { name: known, heldUntil: start.heldUntil } },
    );
  }
  const running = new RunningPass(known, start, { holder, leaseMs, breaker, signal }, deps);
  return running.carryOut(work);
}

interface PassSettings {
  readonly holder: string;
  readonly leaseMs: number;
  readonly breaker: number;
  readonly signal: AbortSignal | undefined;
}

class RunningPass implements Pass {
  readonly name: string;
  readonly recovery: boolean;
  readonly run: number;
  readonly #deps: PassDeps;
  readonly #settings: PassSettings;
  readonly #abort = new AbortController();
  readonly #signal: AbortSignal;
  #failures = 0;
  /** Why this pass is not clean, whatever its function returns. */
  #reason: string | null = null;
  #aborted: StateError | null = null;
  #timer: Timer | undefined;
  #over = false;
  #renewedAt: number;

  constructor(
    name: string,
    start: { readonly recovery: boolean; readonly run: number },
    settings: PassSettings,
    deps: PassDeps,
  ) {
    this.name = name;
    this.recovery = start.recovery;
    this.run = start.run;
    this.#settings = settings;
    this.#deps = deps;
    this.#signal =
      settings.signal === undefined
        ? this.#abort.signal
        : AbortSignal.any([this.#abort.signal, settings.signal]);
    this.#renewedAt = deps.clock.monotonic();
    this.#beat();
  }

  get signal(): AbortSignal {
    return this.#signal;
  }

  async carryOut<T>(work: (pass: Pass) => T | Promise<T>): Promise<T> {
    let value: T;
    try {
      value = await work(this);
    } catch (error) {
      await this.#end(false, describeFailure(error).message);
      throw error;
    }
    const { signal } = this.#settings;
    if (signal?.aborted === true) this.#reason ??= `stopped: ${describeFailure(signal.reason).message}`;
    await this.#end(this.#reason === null, this.#reason);
    if (this.#aborted !== null) throw this.#aborted;
    return value;
  }

  ok(): void {
    this.#failures = 0;
  }

  failed(error: unknown): void {
    this.#failures += 1;
    if (this.#failures >= this.#settings.breaker) {
      const { message } = describeFailure(error);
      this.#giveUp(
        new StateError(
          "PASS_ABORTED",
          `The pass "${this.name}" was aborted after ${this.#failures} failures in a row: ${message}`,
          { details: { name: this.name, failures: this.#failures }, cause: error },
        ),
      );
    }
    if (this.#aborted !== null) throw this.#aborted;
  }

  async try<T>(work: () => T | Promise<T>): Promise<T | undefined> {
    if (this.#aborted !== null) throw this.#aborted;
    let value: T;
    try {
      value = await work();
    } catch (error) {
      this.failed(error);
      return undefined;
    }
    this.ok();
    return value;
  }

  limit(reason: string): void {
    this.#reason ??= `limit: ${reason}`;
  }

  #giveUp(error: StateError): void {
    if (this.#aborted !== null) return;
    this.#aborted = error;
    this.#reason = error.message;
    this.#abort.abort(error);
  }

  async #end(clean: boolean, reason: string | null): Promise<void> {
    this.#over = true;
    this.#timer?.cancel();
    const { store, retry } = this.#deps;
    const { holder } = this.#settings;
    const cut =
      reason === null ? null : reason.slice(0, maxReasonChars).toWellFormed().replaceAll("\0", "\uFFFD");
    const ended = await retry.repeatable(() => store.passes.end(this.name, holder, clean, cut));
    // Only who meant to set the flag must know.
    if (!ended && clean && this.#aborted === null) this.#lost();
  }

  #lost(): void {
    this.#giveUp(
      new StateError(
        "PASS_LOST",
        `The pass "${this.name}" was not renewed for a whole lease, so another process could take it over. It is not clean. Find the cause that blocks the process, or raise \`lease\`.`,
        { details: { name: this.name } },
      ),
    );
  }

  /** Renews three times in a lease. */
  #beat(aheadMs = 0): void {
    const renew = (byMs = 0): void => void this.#renew(byMs);
    this.#timer = this.#deps.clock.after(aheadMs + this.#settings.leaseMs / 3, renew, { ahead: renew });
  }

  async #renew(aheadMs: number): Promise<void> {
    const { store, clock } = this.#deps;
    const { holder, leaseMs } = this.#settings;
    const sentAt = clock.monotonic();
    try {
      const held = await store.passes.renew(this.name, holder, leaseMs + aheadMs);
      if (this.#over) return;
      if (!held) return this.#lost();
      this.#renewedAt = sentAt + aheadMs;
      return this.#beat(aheadMs);
    } catch {
      // An outage: the right to run ends before another can begin.
      if (this.#over) return;
      if (clock.monotonic() - this.#renewedAt >= (leaseMs * 2) / 3) return this.#lost();
    }
    if (!this.#over) this.#beat();
  }
}
