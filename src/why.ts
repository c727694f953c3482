/**
 * Why a job is not running: the first reason that holds, in one sentence and as data.
 *
 * Asked in the order in which a job meets them: does it exist, has it ended, is it running, is it due, may its queue
 * be claimed from, does anybody serve it. What remains is a job whose turn comes with the next free slot.
 * Not here: limits (lanes, budgets and breakers come with their own issue).
 */
import type { Job } from "./job.ts";
import type { Hold, Store, WorkerState } from "./store.ts";

/** Why a job is where it is. */
export type WhyReason =
  | "not-found"
  | "done"
  | "dead"
  | "cancelled"
  | "running"
  | "waiting"
  | "asleep"
  | "waiting-for-signal"
  | "waiting-for-jobs"
  | "future"
  | "retry-wait"
  | "paused"
  | "hold"
  | "cool-down"
  | "unserved"
  | "ready";

/**
 * The answer of `hf.jobs.why(id)`.
 *
 * @example
 * { reason: "future", text: "Due at 2026-01-01T00:05:00.000Z, in 5m.", id, until: Date }
 */
export interface Why {
  readonly reason: WhyReason;
  /** One sentence. */
  readonly text: string;
  readonly id: string;
  readonly queue: string | null;
  readonly name: string | null;
  /** When this reason passes by itself, where that is known. */
  readonly until: Date | null;
  /** Who runs it. */
  readonly workerId: string | null;
  /** The names of the holds that keep it. */
  readonly holds: readonly string[];
  /** What a run waits for: the names of its steps, or the ids of jobs. */
  readonly waitsFor: readonly string[];
}

/** Explains a job that was just read (null: there is none). */
export async function explain(store: Store, id: string, job: Job | null): Promise<Why> {
  const base = {
    id,
    queue: job?.queue ?? null,
    name: job?.name ?? null,
    until: null,
    workerId: null,
    holds: [],
    waitsFor: [],
  };
  const say = (reason: WhyReason, text: string, more: Partial<Why> = {}): Why => ({
    ...base,
    reason,
    text,
    ...more,
  });
  if (job === null)
    return say(
      "not-found",
      `No job has the id ${id}: it never existed, was deleted, or its retention has passed.`,
    );
  switch (job.state) {
    case "done":
      return say("done", `It is done since ${iso(job.endedAt)}.`);
    case "dead":
      return say(
        "dead",
        `It is dead since ${iso(job.endedAt)} after ${count(job.attempt, "attempt")}: ${job.error ?? "no error was kept"}`,
      );
    case "cancelled":
      return say(
        "cancelled",
        `It was cancelled at ${iso(job.endedAt)}: ${job.error ?? "no reason was kept"}`,
      );
    case "running":
      return say(
        "running",
        `Worker ${job.workerId ?? "(unknown)"} is running attempt ${job.attempt} since ${iso(job.startedAt)}.`,
        {
          workerId: job.workerId,
          until: null,
        },
      );
    case "waiting":
      return job.waitsFor === "signal" ? explainSignal(store, job, say) : explainJobs(store, job, say);
    case "scheduled":
      if (job.waitsFor === "sleep") return explainSleep(store, job, say);
      return job.errors.length > 0
        ? say(
            "retry-wait",
            `Attempt ${job.attempt} failed (${job.error ?? "no error was kept"}); the next one starts at ${iso(job.runAt)}.`,
            { until: job.runAt },
          )
        : say("future", `It is due at ${iso(job.runAt)}.`, { until: job.runAt });
    case "ready":
      return explainReady(store, job, say);
  }
}

async function explainSleep(store: Store, job: Job, say: Say): Promise<Why> {
  const open = (await store.steps(job.id)).filter((step) => step.state === "open" && step.wakeAt !== null);
  const names = open.map((step) => step.name);
  const retry = open.find((step) => step.kind === "step");
  const text =
    retry === undefined
      ? `It is asleep in ${list(names)} until ${iso(job.runAt)}.`
      : `Step "${retry.name}" failed ${count(retry.tries, "time")}; it is tried again at ${iso(job.runAt)}.`;
  return say("asleep", text, { until: job.runAt, waitsFor: names });
}

async function explainSignal(store: Store, job: Job, say: Say): Promise<Why> {
  const waits = (await store.steps(job.id)).filter((step) => step.state === "open" && step.topic !== null);
  const shown = waits.map((step) => {
    const [name, key] = (step.topic ?? "").split("\n");
    return key === undefined ? `"${name}"` : `"${name}" with the key "${key}"`;
  });
  const until = job.runAt === null ? "" : `, until ${iso(job.runAt)} at the latest`;
  return say("waiting-for-signal", `It waits for the signal ${shown.join(" or ")}${until}.`, {
    until: job.runAt,
    waitsFor: waits.map((step) => step.name),
  });
}

async function explainJobs(store: Store, job: Job, say: Say): Promise<Why> {
  const open = (await store.dependencies(job.id)).filter((dependency) => dependency.state === null);
  const ids = open.map(({ on }) => on);
  const first = ids.slice(0, 3).join(", ");
  const more = ids.length > 3 ? ` and ${ids.length - 3} more` : "";
  if (ids.length === 0) return say("waiting", "It waits for another job or a signal.");
  return say("waiting-for-jobs", `It waits for ${count(ids.length, "job")}: ${first}${more}.`, {
    waitsFor: ids,
  });
}

function list(names: readonly string[]): string {
  return names.length === 0 ? "a step" : names.map((name) => `"${name}"`).join(", ");
}

type Say = (reason: WhyReason, text: string, more?: Partial<Why>) => Why;

async function explainReady(store: Store, job: Job, say: Say): Promise<Why> {
  const [queues, holds, workers, now] = await Promise.all([
    store.queues(),
    store.holds(),
    store.workers(),
    store.now(),
  ]);
  const queue = queues.find(({ name }) => name === job.queue);
  if (queue?.paused === true)
    return say("paused", `Queue "${job.queue}" is paused since ${iso(queue.pausedAt)}.`);
  const held = holds.filter((hold) => covers(hold, job.queue));
  if (held.length > 0)
    return say("hold", `Held by ${held.map(holdText).join(", ")}.`, { holds: held.map(({ name }) => name) });
  const coolUntil = queue?.coolUntil ?? null;
  if (coolUntil !== null && coolUntil.getTime() > now) {
    return say(
      "cool-down",
      `Queue "${job.queue}" cools down until ${iso(coolUntil)} because it was throttled.`,
      { until: coolUntil },
    );
  }
  const live = workers.filter((worker) => worker.kind === "worker" && !worker.stopping);
  if (!live.some((worker) => serves(worker, job))) return say("unserved", unservedText(job, live));
  return say("ready", "It is ready: it starts when a slot is free and no job stands before it.");
}

function serves(worker: WorkerState, job: Job): boolean {
  return Object.hasOwn(worker.queues, job.queue) && worker.names.includes(job.name);
}

function unservedText(job: Job, live: readonly WorkerState[]): string {
  if (live.length === 0) return "No worker is running.";
  if (!live.some((worker) => Object.hasOwn(worker.queues, job.queue)))
    return `No live worker serves queue "${job.queue}".`;
  return `No live worker of queue "${job.queue}" has a handler for "${job.name}".`;
}

function covers(hold: Hold, queue: string): boolean {
  return hold.queues === null || hold.queues.includes(queue);
}

function holdText(hold: Hold): string {
  return hold.reason === null ? `"${hold.name}"` : `"${hold.name}" (${hold.reason})`;
}

function count(n: number, noun: string): string {
  return `${n} ${noun}${n === 1 ? "" : "s"}`;
}

function iso(at: Date | null): string {
  return at === null ? "an unknown time" : at.toISOString();
}
