// A job's events, derived from its own instants and failures, because plain jobs write no event rows. Unknown facts,
// such as the worker of an earlier attempt, are left out. Pure.
import type { JobDetail } from "../../../src/dashboard/api/contract.ts";
import { startOf } from "../workflows/waterfall.ts";
import { plural } from "../text/quantities.ts";

/** Words, or a duration between words. */
export type Why = string | { readonly before?: string; readonly ms: number; readonly after?: string };

export interface Moment {
  /** Null: it happened at an unknown time. */
  readonly at: number | null;
  readonly what: string;
  readonly why: readonly Why[];
  readonly kind: "" | "good" | "bad" | "info" | "warn";
  readonly icon: "check" | "clock" | "dead" | "dot" | "minus" | "play" | "plus" | "wait";
  /** Its clock puts it before the event that it follows. */
  readonly skewed: boolean;
}

/** Smaller differences between two clocks are ignored. */
const alikeMs = 5;

type Told = Pick<
  JobDetail,
  | "attempt"
  | "context"
  | "crashes"
  | "createdAt"
  | "endedAt"
  | "failureGroup"
  | "errors"
  | "runAt"
  | "startedAt"
  | "state"
  | "throttles"
  | "workerId"
>;

const mostMoments = 10;
const firstShown = 3;
const lastShown = 4;

/** Folds the middle of a long timeline; null: shows all events. */
export function foldOf(moments: number): { readonly from: number; readonly to: number } | null {
  return moments <= mostMoments ? null : { from: firstShown, to: moments - lastShown };
}

/**
 * `stepped`: the job has steps, so its due time may be that of its latest wake-up. `firstStepAt`: the start of its
 * first step; null: unknown.
 */
export function momentsOf(job: Told, stepped = false, firstStepAt: number | null = null): Moment[] {
  const list: Moment[] = [];
  let latest = -Infinity;
  const add = (moment: Omit<Moment, "skewed">): void => {
    const skewed = moment.at !== null && moment.at < latest - alikeMs;
    if (moment.at !== null) latest = Math.max(latest, moment.at);
    list.push({ ...moment, skewed });
  };
  const failures = job.errors.filter(({ attempt }) => attempt > 0);
  const last = failures.at(-1);
  const ended = job.state === "done" || job.state === "dead" || job.state === "cancelled";
  add({
    at: job.createdAt,
    what: "Enqueued",
    why: job.context === null ? [] : [job.context],
    kind: "",
    icon: "plus",
  });
  // The due time is that of the next or latest attempt. The first attempt's is known only while there is no second.
  const firstDue = failures.length === 0 && job.attempt <= 1 && !stepped ? job.runAt : null;
  if (firstDue !== null && firstDue > job.createdAt && (job.state !== "scheduled" || job.startedAt !== null))
    add({
      at: firstDue,
      what: "Due",
      why: [{ before: "delayed", ms: firstDue - job.createdAt }],
      kind: "",
      icon: "clock",
    });
  const { startedAt } = job;
  const running = job.state === "running" || job.state === "done";
  const [first] = failures;
  const firstAt = first === undefined ? (running ? startedAt : null) : first.at - (first.ranMs ?? 0);
  // As waterfall.ts does: a run that slept knows only its latest start.
  const begunAt = firstStepAt === null ? null : startOf(firstAt, firstStepAt);
  const begunWhy = begunAt === null ? [] : [{ before: "waited", ms: Math.max(0, begunAt - job.createdAt) }];
  /** The start of an attempt implies this event. */
  const told =
    begunAt !== null &&
    (first === undefined
      ? startedAt !== null && startedAt <= begunAt + alikeMs
      : first.ranMs !== null && first.at - first.ranMs <= begunAt + alikeMs);
  if (begunAt !== null && !told)
    add({ at: begunAt, what: "Started", why: begunWhy, kind: "info", icon: "play" });
  let before: { readonly at: number; readonly lost: boolean } | null = null;
  for (const failure of failures) {
    const { at, attempt, message, ranMs, lost } = failure;
    if (ranMs !== null)
      add({
        at: at - ranMs,
        what: `Attempt ${attempt} started`,
        why: before !== null ? [after(before, at - ranMs)] : told ? begunWhy : [],
        kind: "info",
        icon: "play",
      });
    const stopped = failure === last && job.state === "cancelled";
    add({
      at,
      what: stopped
        ? "Cancelled"
        : lost
          ? `Attempt ${attempt} was lost: its worker died`
          : `Attempt ${attempt} failed`,
      why: [message, ...(ranMs === null ? [] : [lost ? held(ranMs) : { before: "ran", ms: ranMs }])],
      kind: stopped || lost ? "warn" : "bad",
      icon: "dead",
    });
    before = failure;
  }
  if (startedAt !== null && (running || startedAt > (last?.at ?? 0))) {
    const due = job.runAt;
    const wentOn = begunAt !== null && (!told || first !== undefined);
    const waited = due === null ? [] : [{ before: "waited", ms: Math.max(0, startedAt - due) }];
    add({
      at: startedAt,
      what:
        wentOn && (last === undefined || job.attempt <= last.attempt)
          ? "Went on"
          : // A step or a sleep gives the attempt back: the run has used none yet.
            job.attempt === 0
            ? "Started"
            : `Attempt ${job.attempt} started`,
      why: [
        ...(job.workerId === null ? [] : [`on ${job.workerId}`]),
        ...(wentOn ? [] : begunAt === null ? waited : begunWhy),
        ...(before === null ? [] : [after(before, startedAt)]),
      ],
      kind: "info",
      icon: "play",
    });
  }
  // Instants are stored for the newest 32 failures.
  const untold = job.crashes - failures.filter(({ lost }) => lost).length;
  if (untold > 0)
    add({
      at: null,
      what: untold === 1 ? "Worker lost once" : `Worker lost ${untold} times`,
      why: ["its worker crashed or its lease expired"],
      kind: "warn",
      icon: "dead",
    });
  if (job.throttles > 0)
    add({
      at: null,
      what: job.throttles === 1 ? "Throttled once" : `Throttled ${job.throttles} times`,
      why: ["asked to run later; no attempt used"],
      kind: "warn",
      icon: "wait",
    });
  if (!ended && job.runAt !== null && job.state === "scheduled")
    add({
      at: job.runAt,
      what: last === undefined ? "Due" : "Next attempt",
      why: before === null ? [] : [after(before, job.runAt)],
      kind: "warn",
      icon: "clock",
    });
  if (job.state === "ready" && job.runAt !== null)
    add({ at: job.runAt, what: "Ready", why: ["due, and waits for a worker"], kind: "", icon: "dot" });
  if (job.endedAt !== null) {
    const ran = startedAt === null ? [] : [{ before: "ran", ms: Math.max(0, job.endedAt - startedAt) }];
    if (job.state === "done") add({ at: job.endedAt, what: "Done", why: ran, kind: "good", icon: "check" });
    if (job.state === "dead")
      add({
        at: job.endedAt,
        what: "Dead",
        why: [`after ${plural(job.attempt, "attempt")}`],
        kind: "bad",
        icon: "dead",
      });
    if (job.state === "cancelled" && failures.length === 0)
      add({ at: job.endedAt, what: "Cancelled", why: [], kind: "warn", icon: "minus" });
  }
  return list;
}

/** The running time of a lost attempt is unknown: its worker was silent before the lease expired. */
function held(ms: number): Why {
  return { before: "held for", ms, after: "until its lease expired" };
}

function after({ at, lost }: { readonly at: number; readonly lost: boolean }, next: number): Why {
  return {
    ms: Math.max(0, next - at),
    after: lost ? "after the lost attempt" : "after the previous failure",
  };
}
