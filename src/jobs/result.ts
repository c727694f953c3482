/**
 * `hf.result`: waiting for a job's output, from any process.
 *
 * A job that ends in this process is seen at once, by its event; one that ends elsewhere by its wake-up, which the wait
 * asks for when it first finds the job unfinished; and, where no wake-up comes through, by looking: after 50 ms at
 * first, then ever less often, every 500 ms at last.
 *
 * Invariants: resolves only with a recorded output; every other end (dead, cancelled, gone, too late) rejects with
 * its own code; a wait that is over leaves no timer and no listener.
 * Not here: jobs whose name keeps nothing once done (`keep: false`): they are gone by the time anybody looks.
 */
import type { Clock, Timer } from "../clock.ts";
import { StateError } from "../errors.ts";
import type { Emitter } from "../events.ts";
import type { Job } from "./job.ts";
import { isId } from "../values/id.ts";

/** What waiting for results needs. */
export interface ResultDeps {
  readonly clock: Clock;
  readonly events: Emitter;
  get(id: string): Promise<Job | null>;
  /** Asks for the wake-up. */
  watch?(id: string): Promise<void>;
  /** Calls back at wake-ups of other processes. */
  listen?(onEnded: () => void): () => void;
}

const firstLookMs = 50;
const longestLookMs = 500;
const nudgeEveryMs = 40;

/** The waits of one client. */
export class Results {
  readonly #deps: ResultDeps;
  readonly #waits = new Set<Wait>();
  #unlisten: (() => void)[] = [];

  constructor(deps: ResultDeps) {
    this.#deps = deps;
  }

  /** Resolves with the output once the job is done. */
  async of(id: string, timeoutMs: number | null): Promise<unknown> {
    if (!isId(id)) throw unknownJob(id);
    const wait = new Wait(id, timeoutMs, this.#deps);
    this.#enter(wait);
    try {
      return await wait.output();
    } finally {
      this.#leave(wait);
    }
  }

  /** Ends every wait: the client is closing. */
  close(error: unknown): void {
    for (const wait of this.#waits) wait.fail(error);
  }

  #enter(wait: Wait): void {
    this.#waits.add(wait);
    if (this.#waits.size > 1) return;
    const { events } = this.#deps;
    const look = ({ id }: { readonly id: string }): void => this.#ended(id);
    this.#unlisten = [
      events.on("job.done", look),
      events.on("job.dead", look),
      events.on("job.cancelled", look),
    ];
    const unlisten = this.#deps.listen?.(() => {
      for (const wait of this.#waits) wait.nudge();
    });
    if (unlisten !== undefined) this.#unlisten.push(unlisten);
  }

  #leave(wait: Wait): void {
    this.#waits.delete(wait);
    if (this.#waits.size > 0) return;
    for (const off of this.#unlisten.splice(0)) off();
  }

  #ended(id: string): void {
    for (const wait of this.#waits) if (wait.id === id) wait.look();
  }
}

class Wait {
  readonly id: string;
  readonly #deps: ResultDeps;
  readonly #timeoutMs: number | null;
  readonly #startedAt: number;
  readonly #end = Promise.withResolvers<unknown>();
  #delayMs = firstLookMs;
  #timer: Timer | null = null;
  #looking = false;
  /** An event came while a look was under way, which may have read the row before. */
  #lookAgain = false;
  #over = false;
  #watched = false;
  #nudgedAt = -Infinity;

  constructor(id: string, timeoutMs: number | null, deps: ResultDeps) {
    this.id = id;
    this.#deps = deps;
    this.#timeoutMs = timeoutMs;
    this.#startedAt = deps.clock.monotonic();
  }

  async output(): Promise<unknown> {
    this.look();
    try {
      return await this.#end.promise;
    } finally {
      this.#over = true;
      this.#timer?.cancel();
    }
  }

  fail(error: unknown): void {
    this.#end.reject(error);
  }

  /** Something has changed, maybe this: a look, but not at every change of a busy file. */
  nudge(): void {
    const now = this.#deps.clock.monotonic();
    if (this.#looking || now < this.#nudgedAt + nudgeEveryMs) {
      this.#delayMs = Math.min(this.#delayMs, nudgeEveryMs);
      return;
    }
    this.#nudgedAt = now;
    this.look();
  }

  /** Reads the job now. */
  look(): void {
    if (this.#looking) {
      this.#lookAgain = true;
      return;
    }
    this.#looking = true;
    this.#timer?.cancel();
    this.#deps.get(this.id).then(
      (job) => this.#seen(job),
      (error: unknown) => this.#end.reject(error),
    );
  }

  #seen(job: Job | null): void {
    this.#looking = false;
    if (this.#over) return;
    if (job === null) return this.#end.reject(unknownJob(this.id));
    if (job.state === "done") return this.#end.resolve(job.output);
    if (job.state === "dead" || job.state === "cancelled") return this.#end.reject(endedBadly(job));
    if (this.#lookAgain) {
      this.#lookAgain = false;
      return this.look();
    }
    const leftMs =
      this.#timeoutMs === null
        ? Infinity
        : this.#timeoutMs - (this.#deps.clock.monotonic() - this.#startedAt);
    if (leftMs <= 0) return this.#end.reject(tooLate(job, this.#timeoutMs ?? 0));
    if (!this.#watched && this.#deps.watch !== undefined) {
      this.#watched = true;
      // It may have ended meanwhile, so one more look follows. Looking goes on in any case.
      this.#deps.watch(this.id).then(
        () => void (!this.#over && this.look()),
        () => {},
      );
    }
    const inMs = Math.min(this.#delayMs, leftMs);
    this.#timer = this.#deps.clock.after(inMs, () => this.look(), { latestMs: leftMs });
    this.#delayMs = Math.min(this.#delayMs * 2, longestLookMs);
  }
}

function unknownJob(id: string): StateError {
  return new StateError(
    "JOB_NOT_FOUND",
    `No job has the id ${id}. It never existed, was deleted or pruned, or its definition keeps no done jobs.`,
    {
      details: { job: id },
    },
  );
}

function endedBadly(job: Job): StateError {
  const code = job.state === "dead" ? "JOB_DEAD" : "JOB_CANCELLED";
  return new StateError(
    code,
    `Job ${job.id} (${job.name}) is ${job.state} and has no result: ${job.error ?? "no error was recorded"}`,
    {
      details: { job: job.id, name: job.name, error: job.error },
    },
  );
}

function tooLate(job: Job, timeoutMs: number): StateError {
  return new StateError(
    "RESULT_TIMEOUT",
    `Job ${job.id} (${job.name}) has not ended within ${timeoutMs} ms: it is ${job.state}. hf.jobs.why(id) gives the reason.`,
    {
      details: { job: job.id, state: job.state, timeoutMs },
    },
  );
}
