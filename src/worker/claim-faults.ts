/**
 * Claims and looks that failed, or found nothing: how long the claimer waits, and that it knows what it holds before it claims again.
 *
 *   failed ─▶ unsure ─▶ waits 50 ms, doubling to 1 s ─▶ compares (lease/reconciler.ts) ─▶ sure
 *      └── permanent ─▶ the worker ends
 *
 * Likewise a claim that was promised work by a look and found none: the next such claim waits, longer each time (D17).
 *
 * Invariants: an outage is told in one line, unless the store tells of it; nothing here rejects but `reconcile`.
 */
import { type Clock, sleep } from "../clock.ts";
import { describeFailure } from "../jobs/failure.ts";
import type { Logger } from "../logger.ts";
import type { Store } from "../storage/store.ts";
import { isTold, troubleOf } from "../storage/trouble.ts";

export interface ClaimFaultsDeps {
  readonly store: Pick<Store, "dialect">;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
  readonly workerId: string;
  readonly pollMs: number;
  /** The session under which jobs may be claimed now; null: not now. */
  readonly claimable: () => number | null;
  /** Releases what the session holds and this worker does not know; resolves to how many. */
  readonly reconcile: (session: number) => Promise<number>;
  readonly onFatal: (error: unknown) => void;
}

const firstOutageMs = 50;
const longestOutageMs = 1_000;

export class ClaimFaults {
  readonly #deps: ClaimFaultsDeps;
  /** The session may hold jobs of a claim whose answer was lost. */
  unsure = false;
  /** How many tries in a row have failed. */
  failures = 0;
  /** How many claims in a row were promised work and found none, and when the next one may be made. */
  fruitless = 0;
  #claimNotBefore = -Infinity;

  constructor(deps: ClaimFaultsDeps) {
    this.#deps = deps;
  }

  /** How long a claim that is promised work has to wait. */
  get fruitlessWaitMs(): number {
    return this.fruitless === 0 ? 0 : this.#claimNotBefore - this.#deps.clock.monotonic();
  }

  /** A claim was promised work and found none. */
  foundNothing(): void {
    this.fruitless = Math.min(this.fruitless + 1, 16);
    this.#claimNotBefore =
      this.#deps.clock.monotonic() + Math.min(this.#deps.pollMs, 25 * 2 ** (this.fruitless - 1));
  }

  /** Compares what the session holds with what the worker knows. */
  async reconcile(): Promise<void> {
    const session = this.#deps.claimable();
    if (session === null) return;
    this.unsure = false;
    try {
      await this.#deps.reconcile(session);
    } catch (error) {
      this.unsure = true;
      throw error;
    }
  }

  /**
   * After the claimer has stopped: compares once more, if it is unsure. Once the session is closed, its jobs would be taken over as
   * those of a worker that died.
   */
  async settle(): Promise<void> {
    if (!this.unsure) return;
    try {
      await this.reconcile();
    } catch (error) {
      const { workerId, log } = this.#deps;
      log.debug({ worker: workerId, error: describeFailure(error).message }, "comparing failed");
    }
  }

  /** A part of a claim failed after another had brought jobs, which must be handed over. The next claim meets the fault again. */
  part(error: unknown): void {
    this.unsure = true;
    this.#deps.log.warn(
      { worker: this.#deps.workerId, error: describeFailure(error).message },
      "a part of a claim failed",
    );
  }

  /** Waits a moment, and longer each time. Resolves to whether it is of use to try again. */
  async outage(fault: unknown, stop: AbortSignal): Promise<boolean> {
    const { clock, log, random, store, workerId, onFatal } = this.#deps;
    // Anything that claims may have committed before it failed.
    this.unsure = true;
    const trouble = troubleOf(fault);
    if (trouble === "permanent") {
      onFatal(fault);
      return false;
    }
    const { message, code } = describeFailure(fault);
    const line = { worker: workerId, error: message, code };
    if (this.failures > 0 || isTold(fault, store.dialect)) log.debug(line, "claiming failed again");
    else if (trouble === "unclear") log.error(line, "claiming failed; retrying");
    else log.warn(line, "the database did not answer a claim; retrying");
    const waitMs = Math.min(longestOutageMs, firstOutageMs * 2 ** this.failures);
    this.failures += 1;
    await sleep(clock, waitMs * (0.75 + random() / 2), stop).catch(() => undefined);
    return true;
  }
}
