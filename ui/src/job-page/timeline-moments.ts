// A job's life as a list of moments, from its own times and its failures: no event rows are written for a plain job, so what
// is not known (the worker of an attempt before the latest) is not told. Pure.
import type { JobDetail } from "../../../src/dashboard/api/contract.ts";
import { startOf } from "../workflows/waterfall.ts";
import { plural } from "../text/quantities.ts";

/** Words, or words around a length of time. */
export type Why = string | { readonly before?: string; readonly ms: number; readonly after?: string };

export interface Moment {
  /** Null: it is known that it was, and not when. */
  readonly at: number | null;
  readonly what: string;
  readonly why: readonly Why[];
  readonly kind: "" | "good" | "bad" | "info" | "warn";
  readonly icon: "check" | "clock" | "dead" | "dot" | "minus" | "play" | "plus" | "wait";
  /** By another clock: it is said to have been before what it came after. */
  readonly skewed: boolean;
}

/** Clocks that are this near each other are alike. */
const alikeMs = 5;

type Told = Pick<
  JobDetail,
  | "attempt"
  | "context"
  | "crashes"
  | "createdAt"
  | "endedAt"
  | "errorGroup"
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

/** Folds the middle of a long timeline; null: every moment is shown. */
export function foldOf(moments: number): { readonly from: number; readonly to: number } | null {
  return moments <= mostMoments ? null : { from: firstShown, to: moments - lastShown };
}

/**
 * `stepped`: it remembers steps, so it may have slept, and its due time is that of its latest waking. `firstStepAt`: since when it was
 * at work; null: that is not known.
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
  // The due time is that of the next or the latest attempt: of the first it is known only while there was no other.
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
  // As the bar above has it (waterfall.ts): of a run that slept the job's own times know the latest start alone.
  const begunAt = firstStepAt === null ? null : startOf(firstAt, firstStepAt);
  const begunWhy = begunAt === null ? [] : [{ before: "waited", ms: Math.max(0, begunAt - job.createdAt) }];
  /** The start of an attempt tells of it; else it is a moment of its own. */
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
  // Of the newest 32 failures it is known when they were.
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

/** How long a lost attempt ran nobody knows: its worker was silent before the lease passed. */
function held(ms: number): Why {
  return { before: "held for", ms, after: "until its lease expired" };
}

function after({ at, lost }: { readonly at: number; readonly lost: boolean }, next: number): Why {
  return {
    ms: Math.max(0, next - at),
    after: lost ? "after the lost attempt" : "after the previous failure",
  };
}
