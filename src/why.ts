/**
 * Why a job is not running: the first reason that holds, in one sentence and as data.
 *
 * Asked in the order in which a job meets them: does it exist, has it ended, is it running, is it due, may its queue
 * be claimed from, does a breaker stand before it, does anybody serve it, has its budget its tokens, do its lane and its
 * queue have room. What remains is a job whose turn comes with the next free slot.
 */
import type { Job } from "./job.ts";
import { breakerKey } from "./policy/breaker.ts";
import type { BreakerState, BudgetRow, Hold, JobPlace, Store, WorkerState } from "./store.ts";

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
  | "throttled"
  | "released"
  | "needs-newer-version"
  | "breaker-open"
  | "breaker-half-open"
  | "budget-empty"
  | "budget-unknown"
  | "lane-paused"
  | "lane-full"
  | "lane-rate"
  | "queue-full"
  | "queue-rate"
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
  readonly lane: string | null;
  /** The breaker that keeps it, as `hf.breakers` names it. */
  readonly breaker: string | null;
  /** The budget that keeps it, as its definition names it. */
  readonly budget: string | null;
  /** The limit that keeps it, and how much of it is used. */
  readonly limit: { readonly limit: number; readonly used: number } | null;
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
    lane: job?.lane ?? null,
    breaker: null,
    budget: null,
    limit: null,
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
      return explainScheduled(await store.place(id), job, say);
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

function explainScheduled(place: JobPlace | null, job: Job, say: Say): Why {
  const until = job.runAt;
  const note = place?.note ?? null;
  if (note !== null) {
    switch (note.kind) {
      case "throttled":
        return say("throttled", `It was throttled (${note.reason}) and tries again at ${iso(until)}.`, {
          until,
        });
      case "released":
        return say(
          "released",
          `It gave its attempt back (${note.reason}) and is due again at ${iso(until)}.`,
          {
            until,
          },
        );
      case "version":
        return say("needs-newer-version", `It waits for a worker with newer code: ${note.reason}.`, {
          until,
        });
      case "breaker": {
        const half = note.reason.endsWith("half-open");
        const breaker = /breaker (.*) is /.exec(note.reason)?.[1] ?? null;
        return say(
          half ? "breaker-half-open" : "breaker-open",
          `It waits until ${iso(until)}: ${note.reason}.`,
          {
            until,
            breaker,
          },
        );
      }
    }
  }
  if (job.errors.length > 0) {
    return say(
      "retry-wait",
      `Attempt ${job.attempt} failed (${job.error ?? "no error was kept"}); the next one starts at ${iso(until)}.`,
      { until },
    );
  }
  return say("future", `It is due at ${iso(until)}.`, { until });
}

async function explainReady(store: Store, job: Job, say: Say): Promise<Why> {
  const [queues, holds, workers, now, breakers, place, kinds] = await Promise.all([
    store.queues(),
    store.holds(),
    store.workers(),
    store.now(),
    store.breakers([breakerKey.queue(job.queue), breakerKey.kind(job.name)]),
    store.place(job.id),
    store.kinds(),
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
  const broken = breakers.find(({ state }) => state !== "closed");
  if (broken !== undefined) return explainBreaker(broken, say);
  const live = workers.filter((worker) => worker.kind === "worker" && !worker.stopping);
  if (!live.some((worker) => serves(worker, job))) return say("unserved", unservedText(job, live));
  const budget = kinds.get(job.name)?.budget ?? null;
  const broke = budget === null ? null : explainBudget(await store.budgets(), budget, now, say);
  if (broke !== null) return broke;
  const limited = place === null ? null : explainLimits(place, job, say);
  if (limited !== null) return limited;
  const drains =
    queue?.draining === true
      ? ` Queue "${job.queue}" is draining: this job still runs, and the queue is paused when nothing in it is due.`
      : "";
  return say("ready", `It is ready: it starts when a slot is free and no job stands before it.${drains}`);
}

function explainBreaker(breaker: BreakerState, say: Say): Why {
  const { key, failures, openUntil, probing } = breaker;
  if (breaker.state === "open") {
    return say(
      "breaker-open",
      `The breaker ${key} is open after ${count(failures, "failure")} in a row; one job tries at ${iso(openUntil)}.`,
      { until: openUntil, breaker: key },
    );
  }
  const tried = probing ? "one job is trying now" : "the next job to run tries";
  return say("breaker-half-open", `The breaker ${key} is half-open: ${tried}.`, { breaker: key });
}

function explainBudget(
  budgets: readonly BudgetRow[],
  { name, tokens }: { readonly name: string; readonly tokens: number },
  now: number,
  say: Say,
): Why | null {
  const row = budgets.find((each) => each.name === name);
  if (row === undefined)
    return say("budget-unknown", `There is no budget "${name}": set it with hf.budgets.set.`, {
      budget: name,
    });
  const wanted = count(tokens, "token");
  if (tokens > row.burst)
    return say(
      "budget-empty",
      `The budget "${name}" never holds the ${wanted} that it takes, but ${row.burst} at the most: raise its burst.`,
      { budget: name },
    );
  // Sums of fractions, as the budget itself compares them.
  if (tokens <= row.tokens + 1e-9) return null;
  const until = new Date(now + Math.ceil(((tokens - row.tokens) * row.perMs) / row.limit));
  const left = Math.floor(row.tokens * 100) / 100;
  return say(
    "budget-empty",
    `The budget "${name}" has ${left} of the ${wanted} that it takes; the rest comes by ${iso(until)}, unless another job takes it.`,
    { budget: name, until },
  );
}

function explainLimits(place: JobPlace, job: Job, say: Say): Why | null {
  const { lane, queue } = place;
  const named = `Lane "${job.lane ?? ""}" of queue "${job.queue}"`;
  if (lane?.paused === true) return say("lane-paused", `${named} is paused.`);
  const most = lane?.limits.concurrency ?? null;
  if (lane !== null && most !== null && lane.running >= most)
    return say("lane-full", `${named} is full: ${lane.running} of ${most} run.`, {
      limit: { limit: most, used: lane.running },
    });
  const laneRate = lane?.limits.rate ?? null;
  if (lane !== null && laneRate !== null && lane.opensAt !== null)
    return say(
      "lane-rate",
      `${named} has used up its rate of ${rateText(laneRate)} until ${iso(new Date(lane.opensAt))}.`,
      {
        until: new Date(lane.opensAt),
        limit: { limit: laneRate.limit, used: laneRate.limit },
      },
    );
  if (queue === null) return null;
  if (!queue.readable)
    return say(
      "queue-full",
      `The limits of queue "${job.queue}" cannot be read: set them again with hf.queues.set.`,
    );
  if (queue.concurrency !== null && queue.running >= queue.concurrency)
    return say("queue-full", `Queue "${job.queue}" is full: ${queue.running} of ${queue.concurrency} run.`, {
      limit: { limit: queue.concurrency, used: queue.running },
    });
  if (queue.rate !== null && queue.opensAt !== null)
    return say(
      "queue-rate",
      `Queue "${job.queue}" has used up its rate of ${rateText(queue.rate)} until ${iso(new Date(queue.opensAt))}.`,
      { until: new Date(queue.opensAt), limit: { limit: queue.rate.limit, used: queue.rate.limit } },
    );
  return null;
}

function rateText({ limit, perMs }: { readonly limit: number; readonly perMs: number }): string {
  return `${count(limit, "start")} in ${perMs} ms`;
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
