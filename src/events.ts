/**
 * Events: what happens to jobs, workers and the connection, told to whoever listens in this process.
 *
 * Invariants: events come after the commit that they speak of; a listener that throws or rejects harms nobody
 * (it is logged, and told as `error`, once and not in a circle); `error` without a listener never throws.
 * An event nobody listens to costs one map lookup: callers ask `has` before they build an event on a hot path.
 * Not here: events of other processes (their own clients tell those), the durable record (a job's own row).
 */
import { shown, UsageError } from "./errors.ts";
import type { Enqueued } from "./jobs/job.ts";

/** What every event about one job says. */
export interface JobEvent {
  readonly id: string;
  readonly name: string;
  readonly queue: string;
}

/** An event about one attempt of a job. */
export interface AttemptEvent extends JobEvent {
  readonly attempt: number;
  readonly workerId: string;
}

/** A job was accepted, or a job that was already there stands for it. */
export interface EnqueuedEvent extends JobEvent {
  readonly status: Enqueued["status"];
  readonly priority: number;
}

/** An attempt ended well. */
export interface DoneEvent extends AttemptEvent {
  readonly durationMs: number;
}

/** An attempt failed and the job will run again after `delayMs`. */
export interface FailedEvent extends AttemptEvent {
  readonly error: string;
  readonly delayMs: number;
  readonly durationMs: number;
}

/** The job ended dead. */
export interface DeadEvent extends AttemptEvent {
  readonly error: string;
  readonly durationMs: number;
}

/** The job ended cancelled. */
export interface CancelledEvent extends JobEvent {
  readonly reason: string;
}

/** The attempt was given back: throttled, or released. */
export interface GivenBackEvent extends AttemptEvent {
  readonly reason: string | null;
  readonly delayMs: number;
}

/** A worker died while it held this job; found by whoever took the job over. */
export interface CrashedEvent extends JobEvent {
  readonly attempt: number;
  readonly crashes: number;
  /** True: that was one crash too many, the job is dead. */
  readonly dead: boolean;
}

/** A holder learned that its attempt is no longer its own. */
export interface LeaseLostEvent extends AttemptEvent {
  readonly token: number;
}

/** Something about a worker of this process. */
export interface WorkerEvent {
  readonly workerId: string;
  readonly name: string;
  /** Why, where there is a reason to tell. */
  readonly reason?: string;
}

/** A queue has ready jobs of kinds that no live worker serves. */
export interface UnservedEvent {
  readonly queue: string;
  readonly names: readonly string[];
}

/** A draining queue has nothing left to do and is paused; told by the process that found it so. */
export interface DrainedEvent {
  readonly queue: string;
}

/** An occurrence of a schedule made a job; told by the process that made it. */
export interface ScheduleFiredEvent {
  /** The schedule's. */
  readonly name: string;
  readonly occurrence: Date;
  /** The job's. */
  readonly id: string;
}

/** Occurrences of a schedule made no job: an earlier one had not ended, or nobody was there in time. */
export interface ScheduleOccurrencesEvent {
  readonly name: string;
  /** How many. */
  readonly occurrences: number;
}

/** A schedule cannot be read, so it was disabled; the others go on. */
export interface ScheduleDisabledEvent {
  readonly name: string;
  readonly error: string;
}

/** Something that an operator should look at. */
export interface WarningEvent {
  readonly message: string;
  readonly details: Readonly<Record<string, unknown>>;
}

/** Something failed in the background, where no caller waits for it. */
export interface ErrorEvent {
  readonly error: unknown;
  /** What was being done. */
  readonly during: string;
}

/** The database went away, or came back. */
export interface ConnectionEvent {
  readonly error: unknown;
}

/**
 * Every event with what it says.
 *
 * @example
 * hf.on("job.dead", (event) => alert(`${event.name} ${event.id}: ${event.error}`));
 */
export interface HoldfastEvents {
  "job.enqueued": EnqueuedEvent;
  "job.started": AttemptEvent;
  "job.done": DoneEvent;
  "job.failed": FailedEvent;
  "job.dead": DeadEvent;
  "job.cancelled": CancelledEvent;
  "job.throttled": GivenBackEvent;
  "job.released": GivenBackEvent;
  "job.crashed": CrashedEvent;
  "lease.lost": LeaseLostEvent;
  "worker.started": WorkerEvent;
  "worker.stopping": WorkerEvent;
  "worker.stopped": WorkerEvent;
  "worker.paused": WorkerEvent;
  "worker.resumed": WorkerEvent;
  "queue.unserved": UnservedEvent;
  "queue.drained": DrainedEvent;
  "schedule.fired": ScheduleFiredEvent;
  "schedule.skipped": ScheduleOccurrencesEvent;
  "schedule.missed": ScheduleOccurrencesEvent;
  "schedule.disabled": ScheduleDisabledEvent;
  "connection.lost": ConnectionEvent;
  "connection.back": ConnectionEvent;
  warning: WarningEvent;
  error: ErrorEvent;
}

/** The name of an event. */
export type EventName = keyof HoldfastEvents;

/** What `hf.on` takes. What it returns is ignored; a rejection is reported. */
export type Listener<Name extends EventName> = (event: HoldfastEvents[Name]) => unknown;

/** Every event's name, for checking and for listing. */
export const EVENT_NAMES: readonly EventName[] = [
  "job.enqueued",
  "job.started",
  "job.done",
  "job.failed",
  "job.dead",
  "job.cancelled",
  "job.throttled",
  "job.released",
  "job.crashed",
  "lease.lost",
  "worker.started",
  "worker.stopping",
  "worker.stopped",
  "worker.paused",
  "worker.resumed",
  "queue.unserved",
  "queue.drained",
  "schedule.fired",
  "schedule.skipped",
  "schedule.missed",
  "schedule.disabled",
  "connection.lost",
  "connection.back",
  "warning",
  "error",
];

type Call = (event: never) => unknown;

/** Hands events to listeners. One for each client; its workers share it. */
export class Emitter {
  readonly #listeners = new Map<EventName, readonly Call[]>();
  readonly #onListenerError: (error: unknown, event: EventName) => void;

  constructor(onListenerError: (error: unknown, event: EventName) => void) {
    this.#onListenerError = onListenerError;
  }

  /** Listens until the returned function is called. */
  on<Name extends EventName>(name: Name, listener: Listener<Name>): () => void {
    if (!EVENT_NAMES.includes(name)) {
      throw new UsageError(
        "BAD_OPTION",
        `There is no event ${shown(name)}. The events are: ${EVENT_NAMES.join(", ")}.`,
        { details: { event: name } },
      );
    }
    if (typeof listener !== "function") {
      throw new UsageError(
        "BAD_OPTION",
        `A listener for ${name} must be a function; got ${shown(listener)}.`,
        { details: { event: name } },
      );
    }
    // A wrapper, so that the same function registered twice is two registrations, each with its own end.
    const call: Call = (event) => listener(event);
    this.#listeners.set(name, [...(this.#listeners.get(name) ?? []), call]);
    return () => {
      const left = (this.#listeners.get(name) ?? []).filter((other) => other !== call);
      if (left.length === 0) this.#listeners.delete(name);
      else this.#listeners.set(name, left);
    };
  }

  /** Whether anybody listens: ask before building an event on a hot path. */
  has(name: EventName): boolean {
    return this.#listeners.has(name);
  }

  /** Tells all listeners, in the order in which they came. Never throws. */
  emit<Name extends EventName>(name: Name, event: HoldfastEvents[Name]): void {
    const calls = this.#listeners.get(name);
    if (calls === undefined) return;
    for (const call of calls) {
      try {
        const returned = call(event as never);
        if (returned instanceof Promise) returned.catch((error: unknown) => this.#report(error, name));
      } catch (error) {
        this.#report(error, name);
      }
    }
  }

  #report(error: unknown, name: EventName): void {
    this.#onListenerError(error, name);
    // A failing `error` listener is not told about itself: that would go round for ever.
    if (name !== "error") this.emit("error", { error, during: `a listener of ${name}` });
  }
}
