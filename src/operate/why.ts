/**
 * Why a job is not running: the first reason that holds, in one sentence and as data.
 *
 * Asked in the order in which a job meets them: does it exist, has it ended, is it running, is it due, may its queue
 * be claimed from, does a breaker stand before it, does anybody serve it, has its budget its tokens, do its lane and its
 * queue have room. What remains is a job whose turn comes with the next free slot. What stands before a ready job, and the
 * words for it, are in obstacles.ts: a queue's page asks the same.
 */
import { nameAndKeyOf } from "../workflows/signal.ts";
import type { Job } from "../jobs/job.ts";
import { breakerKey } from "../limits/rules/breaker-rule.ts";
import { shortage } from "../limits/rules/token-bucket.ts";
import {
  broke,
  broken,
  cooling,
  count,
  held,
  iso,
  laneShut,
  type Obstacle,
  paused,
  queueShut,
  unserved,
  type WhyReason,
} from "./obstacles.ts";
import type { JobPlace, JobStore } from "./store.ts";
import type { Store } from "../storage/store.ts";

export type { WhyReason };

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
  /** The signals that it waits for, any one of which lets it go on; key null: without a key. */
  readonly signals: readonly { readonly name: string; readonly key: string | null }[];
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
    signals: [],
  };
  const say = (reason: WhyReason, text: string, more: Partial<Why> = {}): Why => ({
    ...base,
    reason,
    text,
    ...more,
  });
  if (job === null)
    return say("not-found", `No job has the id ${id}. It never existed, or was deleted or pruned.`);
  switch (job.state) {
    case "done":
      return say("done", `Done at ${iso(job.endedAt)}.`);
    case "dead":
      return say(
        "dead",
        `Died at ${iso(job.endedAt)} after ${count(job.attempt, "attempt")}: ${job.error ?? "no error was recorded"}`,
      );
    case "cancelled":
      return say("cancelled", `Cancelled at ${iso(job.endedAt)}: ${job.error ?? "no reason was recorded"}`);
    case "running":
      return say(
        "running",
        `Worker ${job.workerId ?? "(unknown)"} has been running attempt ${job.attempt} since ${iso(job.startedAt)}.`,
        {
          workerId: job.workerId,
          until: null,
        },
      );
    case "waiting":
      if (job.waitsFor === "resume") return explainPaused(await store.jobs.place(id), say);
      return job.waitsFor === "signal" ? explainSignal(store, job, say) : explainJobs(store, job, say);
    case "scheduled":
      if (job.waitsFor === "sleep") return explainSleep(store, job, say);
      return explainScheduled(store, job, say);
    case "ready":
      return explainReady(store, job, say);
  }
}

function explainPaused(place: Awaited<ReturnType<JobStore["place"]>>, say: Say): Why {
  const reason = place?.note?.reason ?? "by user";
  return say("job-paused", `The job was paused (${reason}). It continues when it is resumed.`);
}

async function explainSleep(store: Store, job: Job, say: Say): Promise<Why> {
  const open = (await store.workflows.openSteps(job.id)).filter((step) => step.wakeAt !== null);
  const names = open.map((step) => step.name);
  const retry = open.find((step) => step.kind === "step");
  const text =
    retry === undefined
      ? `The run sleeps in ${list(names)} until ${iso(job.runAt)}.`
      : `Step "${retry.name}" failed ${count(retry.tries, "time")}; the next try is at ${iso(job.runAt)}.`;
  return say("asleep", text, { until: job.runAt, waitsFor: names });
}

async function explainSignal(store: Store, job: Job, say: Say): Promise<Why> {
  const waits = (await store.workflows.openSteps(job.id)).filter((step) => step.topic !== null);
  const signals = waits.map((step) => nameAndKeyOf(step.topic ?? ""));
  const shown = signals.map(({ name, key }) =>
    key === null ? `"${name}"` : `"${name}" with the key "${key}"`,
  );
  const until = job.runAt === null ? "" : `, until ${iso(job.runAt)} at the latest`;
  return say("waiting-for-signal", `The run waits for the signal ${shown.join(" or ")}${until}.`, {
    until: job.runAt,
    waitsFor: waits.map((step) => step.name),
    signals,
  });
}

async function explainJobs(store: Store, job: Job, say: Say): Promise<Why> {
  const open = (await store.workflows.dependencies(job.id)).filter((dependency) => dependency.state === null);
  const ids = open.map(({ on }) => on);
  if (ids.length === 0) return say("waiting", "The run waits for another job or a signal.");
  const first = await Promise.all(
    open.slice(0, 3).map(async ({ on, policy }) => {
      const state = policy === "wait" ? (await store.jobs.get(on))?.state : undefined;
      const over = state === "dead" || state === "cancelled";
      return over ? `${on} (${state}: this job continues when that job is retried and done)` : on;
    }),
  );
  const more = ids.length > 3 ? ` and ${ids.length - 3} more` : "";
  return say(
    "waiting-for-jobs",
    `The job waits for ${count(ids.length, "job")}: ${first.join(", ")}${more}.`,
    {
      waitsFor: ids,
    },
  );
}

function list(names: readonly string[]): string {
  return names.length === 0 ? "a step" : names.map((name) => `"${name}"`).join(", ");
}

type Say = (reason: WhyReason, text: string, more?: Partial<Why>) => Why;

async function explainScheduled(store: Store, job: Job, say: Say): Promise<Why> {
  const until = job.runAt;
  const note = (await store.jobs.place(job.id))?.note ?? null;
  if (note !== null) {
    switch (note.kind) {
      case "throttled":
        return explainThrottled(store, note.reason, until, say);
      case "released":
        return say(
          "released",
          `The attempt was released (${note.reason}). The job is due again at ${iso(until)}.`,
          {
            until,
          },
        );
      case "paused": // is over: a resume takes the note away
        break;
      case "version":
        return say("needs-newer-version", `The job waits for a worker with newer code: ${note.reason}.`, {
          until,
        });
      case "breaker": {
        const half = note.reason.endsWith("half-open");
        const breaker = /breaker (.*) is /.exec(note.reason)?.[1] ?? null;
        return say(
          half ? "breaker-half-open" : "breaker-open",
          `The job waits until ${iso(until)}: ${note.reason}.`,
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
      `Attempt ${job.attempt} failed (${job.error ?? "no error was recorded"}); the next one starts at ${iso(until)}.`,
      { until },
    );
  }
  return say("future", `The job is due at ${iso(until)}.`, { until });
}

/** What it ran short of may have been refilled, changed or removed since: what counts is how that is now. */
async function explainThrottled(store: Store, reason: string, until: Date | null, say: Say): Promise<Why> {
  const short = shortage(reason);
  if (short === null)
    return say("throttled", `The job was throttled (${reason}). The next attempt is at ${iso(until)}.`, {
      until,
    });
  const [budgets, now] = await Promise.all([store.budgets.list(), store.now()]);
  const still = broke(budgets, short, now);
  return still === null
    ? say(
        "throttled",
        `The job was throttled because the budget "${short.name}" was empty. The budget has tokens again; the next attempt is at ${iso(until)}.`,
        { until },
      )
    : say("throttled", `The job was throttled. The next attempt is at ${iso(until)}. ${still.text}`, {
        until,
        budget: short.name,
      });
}

async function explainReady(store: Store, job: Job, say: Say): Promise<Why> {
  const { queue, name } = job;
  const [[row], holds, workers, now, breakers, place, definitions] = await Promise.all([
    store.insight.queueRows([queue]),
    store.holds.list(),
    store.workers.list(),
    store.now(),
    store.breakers.list([breakerKey.queue(queue), breakerKey.name(name)]),
    store.jobs.place(job.id),
    store.definitions.list(),
  ]);
  const open = breakers.find(({ state }) => state !== "closed");
  const before =
    paused(queue, row) ??
    held(queue, holds) ??
    cooling(queue, row, now) ??
    (open === undefined ? null : broken(open)) ??
    unserved(queue, [name], workers);
  const budget = before === null ? (definitions.get(name)?.budget ?? null) : null;
  const found =
    before ??
    (budget === null ? null : broke(await store.budgets.list(), budget, now)) ??
    (place === null ? null : shutTo(place, job));
  if (found !== null) return say(found.reason, found.text, found);
  const drains =
    (row?.drainingAt ?? null) === null
      ? ""
      : ` Queue "${queue}" is draining: this job will still run, and the queue pauses when no job is due.`;
  return say("ready", `The job is ready. It starts when a slot is free and no job is ahead of it.${drains}`);
}

/** The limits of its lane, and those of its queue. */
function shutTo({ lane, queue }: JobPlace, job: Job): Obstacle | null {
  const ofLane =
    lane === null
      ? null
      : laneShut({
          queue: job.queue,
          key: job.lane ?? "",
          paused: lane.paused,
          running: lane.running,
          concurrency: lane.limits.concurrency,
          rate: lane.limits.rate,
          rateOpensAt: lane.opensAt === null ? null : new Date(lane.opensAt),
        });
  return ofLane ?? (queue === null ? null : queueShut(job.queue, queue));
}
