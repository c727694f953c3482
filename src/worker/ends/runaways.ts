/**
 * Handlers that do not end when they should: told at their timeout, left behind a moment later, and counted until they end.
 *
 *   timeout ─▶ told to stop ──500 ms──▶ abandoned: its job is settled and its slot is free ─▶ a runaway, until it ends
 *
 * Not here: what the attempt comes to (attempt.ts), when a deadline has passed (deadlines.ts).
 */
import type { Clock } from "../../clock.ts";
import type { Emitter } from "../../events.ts";
import type { AnyJob } from "../../jobs/define-job.ts";
import type { Logger } from "../../logger.ts";
import type { Attempt } from "../attempt.ts";

export interface RunawaysDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly events: Pick<Emitter, "emit">;
  readonly definitions: ReadonlyMap<string, AnyJob>;
}

// "Settled as failed within 1 s after the timeout": half of it for the handler, the rest for the settle.
const abandonMs = 500;

export class Runaways {
  readonly #deps: RunawaysDeps;
  /** Names of definitions that were warned about for a step that was not awaited. */
  readonly #warned = new Set<string>();
  /** Handlers that went on after they had been settled, and still do. */
  count = 0;

  constructor(deps: RunawaysDeps) {
    this.#deps = deps;
  }

  /** The deadline of an attempt has passed: its timeout, or the moment that it was left after that. */
  overdue(attempt: Attempt): void {
    const { clock, definitions } = this.#deps;
    const { job } = attempt;
    const timeoutMs = job.timeoutMs ?? definitions.get(job.name)?.timeoutMs ?? 0;
    if (attempt.deadlineAt > attempt.startedAt + timeoutMs) return this.abandon(attempt);
    attempt.deadlineAt = clock.monotonic() + abandonMs;
    attempt.stop({ kind: "timeout", timeoutMs });
  }

  /** Ends an attempt now, whatever its handler does. */
  abandon(attempt: Attempt): void {
    // Counted before its end is told: a listener may ask.
    this.count += 1;
    if (!attempt.abandon()) {
      this.count -= 1;
      return;
    }
    const { id, name, queue, attempt: number } = attempt.job;
    const cause = attempt.stopCause?.kind;
    this.#warn("a handler ignored its signal and still runs; its job was settled and its slot freed", {
      job: id,
      name,
      queue,
      attempt: number,
      cause,
      runaways: this.count,
    });
  }

  /** A handler that was abandoned has come to its end. */
  ended(attempt: Attempt): void {
    this.count -= 1;
    this.#deps.log.info(
      { job: attempt.job.id, name: attempt.job.name, runaways: this.count },
      "a handler that had ignored its signal has ended",
    );
  }

  /** The opposite: a handler that ended before its steps. Warned about once for each definition. */
  unawaited({ job: { id, name, queue } }: Attempt, steps: readonly string[]): void {
    if (this.#warned.has(name)) return;
    this.#warned.add(name);
    this.#warn(
      "a handler returned while one of its steps was running, so the step is not recorded; await every ctx.step",
      { job: id, name, queue, steps },
    );
  }

  #warn(message: string, details: Record<string, unknown>): void {
    this.#deps.log.warn(details, message);
    this.#deps.events.emit("warning", { message, details });
  }
}
