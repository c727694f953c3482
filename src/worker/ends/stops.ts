/**
 * Stopping what a worker holds: one job by its id, those of a queue, of a lost session, or all.
 *
 *   waits for a slot ─▶ released or cancelled at once        runs ─▶ its handler is told
 *
 * Invariant: a job that was lost is reported once, and nothing of it is written.
 * Not here: what an attempt makes of it (attempt.ts), when a worker stops (worker.ts).
 */
import type { ClaimedJob } from "../../jobs/job.ts";
import type { Settler } from "../../lease/settler.ts";
import type { Attempt } from "../attempt.ts";
import type { Runner } from "../runner.ts";
import type { Pool } from "../slots.ts";
import type { StopCause, StoppingReason } from "./stop-causes.ts";

export interface StopsDeps {
  readonly pools: ReadonlyMap<string, Pool>;
  readonly runner: Runner;
  readonly settler: Pick<Settler, "letGo">;
  /** Another holder has these jobs. */
  readonly onLost: (jobs: readonly ClaimedJob[]) => void;
}

export class Stops {
  readonly #deps: StopsDeps;

  constructor(deps: StopsDeps) {
    this.#deps = deps;
  }

  /** Releases what waits for a slot: of one queue, or of all. */
  releaseBuffered(reason: string, pool?: Pool): void {
    const { runner, pools } = this.#deps;
    for (const each of pool === undefined ? pools.values() : [pool]) {
      for (const job of each.takeAll()) runner.release(job, reason);
    }
    runner.tellIfCalm();
  }

  /** Tells a job to stop, if it is here. With a token, only that very attempt. */
  cancel(id: string, reason: string, token?: number): boolean {
    const { runner } = this.#deps;
    const attempt = runner.running.find(id, token);
    if (attempt !== undefined) {
      attempt.stop({ kind: "cancelled", reason });
      return true;
    }
    const job = this.#takeBuffered(id, token);
    if (job === undefined) return false;
    // A run that is to undo its steps ends by itself once it has.
    if (job.undoing) runner.release(job, "cancelled once more");
    else runner.settle(job, { kind: "cancelled", reason, unstarted: true }, 0);
    runner.tellIfCalm();
    return true;
  }

  /** Tells a job to stop where it can go on later, if it is here: a run before its next step. */
  pause(id: string, token?: number): void {
    const { runner } = this.#deps;
    const attempt = runner.running.find(id, token);
    if (attempt !== undefined) return attempt.pause();
    const job = this.#takeBuffered(id, token);
    if (job === undefined) return;
    runner.release(job, "paused");
    runner.tellIfCalm();
  }

  /** Everything held under this session is lost: handlers are told, nothing of it is written. */
  lose(session: number): void {
    const lost = [...this.#deps.pools.values()].flatMap((pool) => pool.takeAll());
    this.#lose(lost, ({ job }) => job.session === session);
  }

  /**
   * Jobs that were taken away: handlers are told, what waits for a slot never starts, and the others go on. `gone` judges a job
   * by the instant from which it was surely here, by the monotonic clock.
   */
  loseSome(gone: (job: ClaimedJob, hereSince: number) => boolean): void {
    const lost: ClaimedJob[] = [];
    for (const pool of this.#deps.pools.values()) if (pool.buffered > 0) lost.push(...pool.takeSome(gone));
    this.#deps.settler.letGo(lost);
    // A job that its handler's own transaction has ended is not held because it is done (workflow-ends.ts asks the row).
    this.#lose(lost, (attempt) => !attempt.committed && gone(attempt.job, attempt.startedAt));
  }

  #lose(buffered: readonly ClaimedJob[], isLost: (attempt: Attempt) => boolean): void {
    const { runner, onLost } = this.#deps;
    const lost = [...buffered];
    for (const attempt of runner.running) {
      if (attempt.stopCause?.kind === "lost" || !isLost(attempt)) continue;
      lost.push(attempt.job);
      attempt.stop({ kind: "lost" });
    }
    if (lost.length > 0) onLost(lost);
    runner.tellIfCalm();
  }

  /** Every job that is here and not yet handed to the settler. */
  *holding(): Iterable<ClaimedJob> {
    const { pools, runner } = this.#deps;
    for (const pool of pools.values()) yield* pool.waiting();
    for (const { job } of runner.running) yield job;
    yield* runner.asking;
  }

  /** Aborts `ctx.stopping` of running attempts, of one queue or of all. They go on. */
  tellStopping(reason: StoppingReason, pool?: Pool): void {
    for (const attempt of this.#deps.runner.running)
      if (pool === undefined || attempt.job.queue === pool.queue) attempt.tellStopping(reason);
  }

  /** Starts nothing more; a job that a late claim still brings is released at once. */
  drain(): void {
    this.#deps.runner.drain();
    this.releaseBuffered("shutdown");
  }

  /** Tells every running attempt to stop. */
  stopAll(cause: StopCause): void {
    for (const attempt of this.#deps.runner.running) attempt.stop(cause);
  }

  /** Ends every running attempt now, whatever its handler does. */
  abandonAll(): void {
    const { running, runaways } = this.#deps.runner;
    for (const attempt of running) runaways.abandon(attempt);
  }

  #takeBuffered(id: string, token: number | undefined): ClaimedJob | undefined {
    const isHeld = (job: ClaimedJob): boolean =>
      job.id === id && (token === undefined || job.token === token);
    for (const pool of this.#deps.pools.values()) {
      const [job] = pool.takeSome(isHeld);
      if (job !== undefined) return job;
    }
    return undefined;
  }
}
