/**
 * A worker on a test bench: a real store (in memory, or on every database), a clock that the test moves, and a door
 * into every verb of the store, so that a test can make the database fail, wait or lie.
 */
import { newJob as plainJob } from "../support/new-job.ts";
import { between, bound, type Verb } from "../support/store-parts.ts";
import type { Clock } from "../../src/clock.ts";
import { type AnyJob, defineJob, type Handler } from "../../src/jobs/define-job.ts";
import { Emitter, type EventName, type HoldfastEvents } from "../../src/events.ts";
import type { Job, NewJob } from "../../src/jobs/job.ts";
import type { Logger } from "../../src/logger.ts";
import { MiddlewareChain } from "../../src/worker/middleware.ts";
import { idFactory } from "../../src/values/id.ts";
import { openStore } from "../../src/storage/open.ts";
import type { Store } from "../../src/storage/store.ts";
import { FakeClock } from "../../src/testing/fake-clock.ts";
import { Worker, type WorkerDeps, type WorkOptions } from "../../src/worker/worker.ts";

export interface Line {
  readonly level: keyof Logger;
  readonly details: Record<string, unknown>;
  readonly message: string;
}

export interface Bench<C extends Clock = FakeClock> {
  readonly clock: C;
  /** What the workers see: verbs can be replaced. */
  readonly store: Store;
  /** Puts a replaced verb back. */
  restore(verb: Verb): void;
  /** The store itself. */
  readonly real: Store;
  readonly lines: Line[];
  readonly events: { readonly name: EventName; readonly event: HoldfastEvents[EventName] }[];
  readonly middleware: MiddlewareChain;
  work(jobs: readonly AnyJob[], options?: WorkOptions, deps?: Partial<WorkerDeps>): Worker;
  enqueue(name: string, input?: unknown, options?: Partial<NewJob>): Promise<string>;
  get(id: string): Promise<Job>;
  of(name: EventName): HoldfastEvents[EventName][];
  close(): Promise<void>;
}

export async function bench(): Promise<Bench> {
  return benchOn("sqlite::memory:", new FakeClock());
}

export async function benchOn<C extends Clock>(
  url: string,
  clock: C,
  options: { schema?: string } = {},
): Promise<Bench<C>> {
  const real = await openStore(url, { ...options, clock });
  const replaced = new Map<Verb, unknown>();
  const store = openable(real, replaced);
  const lines: Line[] = [];
  const events: Bench["events"] = [];
  const emitter = new Emitter(() => {});
  const names: EventName[] = [
    "job.done",
    "job.failed",
    "job.dead",
    "job.cancelled",
    "job.released",
    "job.throttled",
    "job.crashed",
    "lease.lost",
    "worker.paused",
    "worker.resumed",
    "worker.stopping",
    "worker.stopped",
    "queue.unserved",
    "queue.drained",
    "warning",
    "error",
  ];
  for (const name of names) emitter.on(name, (event) => void events.push({ name, event }));
  const line =
    (level: keyof Logger): Logger["info"] =>
    (details, message) =>
      void lines.push({ level, details, message });
  const log: Logger = { debug: line("debug"), info: line("info"), warn: line("warn"), error: line("error") };
  const newId = idFactory(() => clock.now());
  const middleware = new MiddlewareChain();
  const workers: Worker[] = [];
  let started = 0;
  return {
    clock,
    store,
    real,
    restore: (verb) => void replaced.delete(verb),
    lines,
    events,
    middleware,
    work(jobs, workOptions, deps) {
      started += 1;
      const worker = new Worker(
        {
          store,
          clock,
          random: () => 0.5,
          log,
          events: emitter,
          middleware,
          enqueueFor: () => ({
            enqueue: () => Promise.reject(new Error("not on the bench")),
            enqueueMany: () => Promise.reject(new Error("not on the bench")),
          }),
          budget: () => Promise.reject(new Error("not on the bench")),
          maxPayloadBytes: 1_048_576,
          retention: { doneMs: 604_800_000, deadMs: 2_592_000_000 },
          workerId: `bench-worker-${started}`,
          hostId: "bench-host",
          host: "bench",
          pid: process.pid,
          version: "0.0.0",
          cpus: 2,
          env: {},
          order: "highest-first",
          loopDelay: () => 0,
          ...deps,
        },
        jobs,
        workOptions ?? { queues: { default: 2 } },
      );
      workers.push(worker);
      return worker;
    },
    async enqueue(name, input = {}, given = {}) {
      const job = newJob(newId(), name, input, given);
      await real.newJobs.enqueue([job]);
      real.wake({ kind: "work", queue: job.queue, priority: job.priority });
      return job.id;
    },
    async get(id) {
      const job = await real.jobs.get(id);
      if (job === null) throw new Error(`no job ${id}`);
      return job;
    },
    of: (name) => events.filter((entry) => entry.name === name).map(({ event }) => event),
    async close() {
      let stopped = false;
      const stopping = Promise.all(workers.map((worker) => worker.stop({ timeout: 0 }))).then(
        () => (stopped = true),
      );
      // A handler that is still at work gets its moment of grace, by whatever clock there is.
      while (!stopped && clock instanceof FakeClock) await clock.advance("100ms");
      await stopping;
      await real.close();
    },
  };
}

function newJob(id: string, name: string, input: unknown, given: Partial<NewJob> = {}): NewJob {
  return plainJob(id, { name, queue: "default", input: JSON.stringify(input), ...given });
}

/** A store whose verbs a test can replace: what is set on it is what a worker calls. */
function openable(real: Store, replaced: Map<Verb, unknown>): Store {
  return between(
    real,
    (verb, value, owner) => (replaced.has(verb) ? replaced.get(verb) : bound(value, owner)),
    (verb, value) => void replaced.set(verb, value),
  );
}

/** A kind of job with this handler. */
export function kind(
  name: string,
  run: Handler<never, unknown>,
  options: Record<string, unknown> = {},
): AnyJob {
  return defineJob({ name, ...options, run: run as Handler<unknown, unknown> } as never);
}

/** A door that a handler waits at until the test opens it. */
export function gate<T = void>(): {
  readonly opened: Promise<T>;
  open: (value: T) => void;
  fail: (error: unknown) => void;
} {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  promise.catch(() => undefined);
  return { opened: promise, open: resolve, fail: reject };
}

/** Lets everything that is ready run, without moving the clock. */
export async function turns(count = 10): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise((resolve) => void setImmediate(resolve));
}

/** Waits in real time until it holds. */
export async function until(condition: () => boolean | Promise<boolean>, ms = 10_000): Promise<void> {
  const end = performance.now() + ms;
  while (!(await condition())) {
    if (performance.now() > end) throw new Error("it never came to be");
    await new Promise((resolve) => void setTimeout(resolve, 5));
  }
}
