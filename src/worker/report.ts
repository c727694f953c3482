/**
 * Tells what became of jobs: events for programs, log lines for people.
 *
 * Invariants: everything here speaks of what has been committed (or is known to be lost); a done job costs one lookup
 * when nobody listens; retries are logged at warn, ends as dead at error, and nothing of a job's input is logged.
 * Not here: what became of them (jobs/transition.ts), events of the worker itself (worker.ts).
 */
import type { AttemptEvent, Emitter } from "../events.ts";
import type { ClaimedJob } from "../jobs/job.ts";
import type { Logger } from "../logger.ts";
import { decodeFailures } from "../jobs/failure.ts";
import type { Settlement } from "../jobs/outcome.ts";

export interface ReportDeps {
  readonly log: Logger;
  readonly events: Pick<Emitter, "emit" | "has">;
  readonly workerId: string;
}

/** One worker's reports. */
export class Report {
  readonly #deps: ReportDeps;
  #leasesLost = 0;
  /** Jobs that were released and are written. */
  released = 0;
  /** Kinds of which a job needed newer code than this worker has. */
  readonly #outdated = new Set<string>();

  /** A job needed newer code than this worker has. */
  get outdated(): boolean {
    return this.#outdated.size > 0;
  }

  constructor(deps: ReportDeps) {
    this.#deps = deps;
  }

  /** How many attempts were lost so far. */
  get leasesLost(): number {
    return this.#leasesLost;
  }

  /** These were claimed. For those who log everything. */
  claimed(jobs: readonly ClaimedJob[]): void {
    const { log, workerId } = this.#deps;
    if (log.trace === undefined) return;
    log.trace({ worker: workerId, count: jobs.length }, "jobs were claimed");
    for (const job of jobs) log.trace({ ...this.#about(job), context: job.context }, "job was claimed");
  }

  /** These outcomes have been written. */
  settled(settlements: readonly Settlement[]): void {
    const { events, log } = this.#deps;
    for (const settlement of settlements) {
      const { job, outcome, heldMs } = settlement;
      if (outcome.kind === "succeeded" && log.trace !== undefined)
        log.trace({ ...this.#about(job), context: job.context, durationMs: heldMs }, "job is done");
      if (outcome.kind !== "succeeded") this.#notDone(settlement);
      else if (events.has("job.done")) {
        events.emit("job.done", { ...this.#about(job), durationMs: heldMs });
      }
    }
  }

  /** These jobs are not ours any more. One line, however many: a lost session loses all of its jobs at once. */
  lost(jobs: readonly ClaimedJob[]): void {
    const { events, log, workerId } = this.#deps;
    this.#leasesLost += jobs.length;
    for (const job of jobs) events.emit("lease.lost", { ...this.#about(job), token: job.token });
    log.warn(
      { worker: workerId, count: jobs.length, jobs: jobs.slice(0, 10).map(({ id }) => id) },
      "leases were lost; the jobs may run elsewhere, and these attempts wrote nothing",
    );
  }

  #notDone({ job, outcome, transition, heldMs: durationMs, step, maxAttempts }: Settlement): void {
    const { events, log } = this.#deps;
    const about = this.#about(job);
    const details = { ...about, context: job.context, ...(step === null ? null : { step }) };
    if (transition.move === "wait" || transition.move === "none") {
      if (outcome.kind === "committed") events.emit("job.done", { ...about, durationMs });
      else
        log.debug({ ...details, waits: transition.move === "wait" ? transition.waits : null }, "run waits");
      return;
    }
    if (outcome.kind === "released") this.released += 1;
    if (transition.move === "again") {
      const { delayMs } = transition;
      if (outcome.kind === "failed") {
        const { message: error, stack } = outcome.failure;
        events.emit("job.failed", { ...about, error, delayMs, durationMs });
        log.warn({ ...details, error, stack, delayMs }, `attempt failed; ${nextTry(job, maxAttempts)}`);
        return;
      }
      const reason = outcome.kind === "throttled" || outcome.kind === "released" ? outcome.reason : null;
      const name = outcome.kind === "throttled" ? "job.throttled" : "job.released";
      events.emit(name, { ...about, reason, delayMs });
      if (outcome.kind === "released" && outcome.outdated === true && !this.#outdated.has(job.name)) {
        this.#outdated.add(job.name); // one line for each name, however many runs wait for the new workers
        log.warn({ ...details, reason, delayMs }, "jobs of this name need newer code and are released");
        return;
      }
      log.debug({ ...details, reason, delayMs }, `attempt was ${outcome.kind}`);
      return;
    }
    const { message: error = "", stack = null } = decodeFailures(transition.errors).at(-1) ?? {};
    if (transition.undo === true) {
      log.warn({ ...details, error }, `its steps are compensated before it is ${transition.state}`);
      return;
    }
    if (transition.state === "cancelled") {
      events.emit("job.cancelled", { id: job.id, name: job.name, queue: job.queue, reason: error });
      log.info({ ...details, reason: error }, "job was cancelled");
    } else {
      events.emit("job.dead", { ...about, error, durationMs });
      log.error({ ...details, error, stack }, "job is dead");
    }
  }

  #about(job: ClaimedJob): AttemptEvent {
    const { id, name, queue, attempt } = job;
    return { id, name, queue, attempt, workerId: this.#deps.workerId };
  }
}

/** The first retry follows the first attempt, so there is one less of them. */
function nextTry({ attempt }: ClaimedJob, maxAttempts: number | undefined): string {
  return maxAttempts === undefined ? "the job will run again" : `retry ${attempt} of ${maxAttempts - 1}`;
}
