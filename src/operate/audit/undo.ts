/**
 * Which entries of the audit trail can be taken back, and how that is said.
 *
 * An action that can be taken back writes with its entry how the thing stood before and how the action left it (`before`,
 * `after`; standings.ts reads them). To undo it is to put back what stood before, and that only where the thing still stands
 * as the action left it. What runs, deletes or ends a job cannot be taken back, and writes neither.
 *
 *   queues.pause, drain, resume       running, draining or paused      errors.resolve, ignore, reopen, note   the decision
 *   queues.set, lanes.set, budgets.…  the values of before             schedules.pause, resume, set           paused; the code's words
 *   holds.set, clear                  its queues and its reason        workers.quiet, resume                  quiet or not
 *
 * Invariant: pure. Not here: reading and putting back (standings.ts), who may and once only (dashboard/routes/audit.ts).
 */
import type { AuditEntry, ErrorDecision } from "../browse.ts";

/** How a thing stands, as far as an action of its subject changes it. JSON. */
export interface Standings {
  readonly queue: { readonly state: "running" | "draining" | "paused" };
  /** Values of a queue, a lane or a budget (null: there is none), and until when they hold (null: for good). */
  readonly limits: {
    readonly values: Readonly<Record<string, unknown>> | null;
    readonly untilAt: number | null;
  };
  readonly hold: { readonly queues: readonly string[] | null; readonly reason: string | null } | null;
  readonly schedule: { readonly paused: boolean } | null;
  readonly words: (Readonly<Record<string, unknown>> & { readonly edited: readonly string[] }) | null;
  readonly error: ErrorDecision | null;
  /** Null: it is gone. */
  readonly worker: { readonly state: "claiming" | "quiet" } | null;
}

export type Subject = keyof Standings;

const subjects: Readonly<Record<string, Subject>> = {
  "queues.pause": "queue",
  "queues.drain": "queue",
  "queues.resume": "queue",
  "queues.set": "limits",
  "lanes.set": "limits",
  "lanes.reset": "limits",
  "lanes.drop": "limits",
  "budgets.set": "limits",
  "budgets.reset": "limits",
  "holds.set": "hold",
  "holds.clear": "hold",
  "schedules.pause": "schedule",
  "schedules.resume": "schedule",
  "schedules.set": "words",
  "errors.resolve": "error",
  "errors.ignore": "error",
  "errors.reopen": "error",
  "errors.note": "error",
  "workers.quiet": "worker",
  "workers.resume": "worker",
};

/** What an action changes, where it can be taken back. */
export function subjectOf(action: string): Subject | null {
  return Object.hasOwn(subjects, action) ? (subjects[action] ?? null) : null;
}

/** What an action changed: of which thing, and which of its values. */
export interface Changed {
  readonly action: string;
  readonly target: string;
  readonly keys: readonly string[];
}

/** How an action is taken back. */
export type Undo = {
  readonly [S in Subject]: Changed & {
    readonly subject: S;
    readonly before: Standings[S];
    readonly after: Standings[S];
    /** The permission that the action itself needs. */
    readonly permission:
      | "queues:pause"
      | "queues:set"
      | "limits:set"
      | "schedules:set"
      | "errors:triage"
      | "workers:stop";
    /** What it would do, such as "Resume queue mail". */
    readonly words: string;
  };
}[Subject];

/** Targets are cut there when they are written (dashboard/handler.ts): a cut one names something else. */
const longestTarget = 500;

/**
 * How an entry is taken back; null: it cannot be.
 *
 * @example
 * undoOf({ action: "queues.pause", target: "mail", details: '{"before":{"state":"running"},"after":{"state":"paused"}}', … })?.words;
 * // "Resume queue mail"
 */
export function undoOf({ action, target, details }: AuditEntry): Undo | null {
  const subject = subjectOf(action);
  const known = subject === null || target === null ? null : standingsIn(details);
  if (subject === null || target === null || known === null || target.length >= longestTarget) return null;
  const { before, after } = known;
  if (same(before, after)) return null;
  const changed = { action, target, before, after, keys: keysOf(after) };
  switch (subject) {
    case "queue": {
      const undo = { ...changed, subject, ...(known as Both<"queue">) };
      const verb = { running: "Resume", draining: "Drain", paused: "Pause" }[undo.before.state];
      return { ...undo, permission: "queues:pause", words: `${verb} queue ${target}` };
    }
    case "limits": {
      const undo = { ...changed, subject, ...(known as Both<"limits">) };
      // What held for a while has a way back and an end of its own: to write it anew would lose them.
      if (undo.before.untilAt !== null) return null;
      const permission = action === "queues.set" ? "queues:set" : "limits:set";
      return { ...undo, permission, words: limitWords(action, target, undo.before.values) };
    }
    case "hold": {
      const undo = { ...changed, subject, ...(known as Both<"hold">) };
      const words =
        undo.before === null
          ? `Clear hold ${target}`
          : `Set hold ${target} ${undo.after === null ? "again" : "back"}: ${holdText(undo.before)}`;
      return { ...undo, permission: "limits:set", words };
    }
    case "schedule": {
      const undo = { ...changed, subject, ...(known as Both<"schedule">) };
      if (undo.before === null) return null;
      const verb = undo.before.paused ? "Pause" : "Resume";
      return { ...undo, permission: "schedules:set", words: `${verb} schedule ${target}` };
    }
    case "words": {
      const undo = { ...changed, subject, ...(known as Both<"words">) };
      // Of what was edited before nobody knows any more which words were the code's.
      if (undo.before === null || undo.before.edited.length > 0) return null;
      const words = `Give up the edits of schedule ${target}, for the code's words`;
      return { ...undo, permission: "schedules:set", words };
    }
    case "error": {
      const undo = { ...changed, subject, ...(known as Both<"error">) };
      return { ...undo, permission: "errors:triage", words: errorWords(target, undo) };
    }
    case "worker": {
      const undo = { ...changed, subject, ...(known as Both<"worker">) };
      if (undo.before === null) return null;
      const quiet = undo.before.state === "quiet";
      const words = quiet ? `Make worker ${target} quiet` : `Resume worker ${target}`;
      return { ...undo, permission: "workers:stop", words };
    }
  }
}

/** Whether the thing still stands as the action left it. */
export function stillStands(undo: Undo, now: unknown): boolean {
  if (undo.subject === "queue" && undo.after.state === "draining")
    // It was to be paused by itself in the end.
    return ["draining", "paused"].includes((now as Standings["queue"]).state);
  // What has come of a decision since is no new one.
  if (undo.subject === "error") return same({ ...undo.after, state: "" }, { ...(now as object), state: "" });
  return same(undo.after, now);
}

/** Who must look, and at what, where it does not. */
export function changedSince(undo: Undo, now: unknown): string {
  const thing = thingOf(undo.action, undo.target);
  return `${thing.charAt(0).toUpperCase()}${thing.slice(1)} has been changed since: it is ${standingText(now)} now, and this had left it ${standingText(undo.after)}.`;
}

/** Whether an undo of a decision is about its note alone. */
export function isNoteAlone({ before, after }: Both<"error">): boolean {
  return (before?.at ?? null) === (after?.at ?? null);
}

/** The queue and the key of a lane in its target. */
export function laneIn(target: string): readonly [queue: string, key: string] {
  const at = target.indexOf("/"); // no queue's name has one
  return [target.slice(0, at), target.slice(at + 1)];
}

interface Both<S extends Subject> {
  readonly before: Standings[S];
  readonly after: Standings[S];
}

function standingsIn(details: string | null): { before: unknown; after: unknown } | null {
  try {
    const known = JSON.parse(details ?? "null") as { before?: unknown; after?: unknown } | null;
    return known === null || known.before === undefined || known.after === undefined
      ? null
      : { before: known.before, after: known.after };
  } catch {
    return null; // details that were too long are cut
  }
}

/** The values that a change of limits was about. */
function keysOf(standing: unknown): string[] {
  const values = (standing as { values?: object | null } | null)?.values ?? {};
  return Object.keys(values).filter((key) => key !== "tuned");
}

function thingOf(action: string, target: string): string {
  if (action.startsWith("lanes.")) {
    const [queue, key] = laneIn(target);
    return `lane ${key} of queue ${queue}`;
  }
  const nouns = {
    queues: "queue",
    budgets: "budget",
    holds: "hold",
    schedules: "schedule",
    errors: "the failure",
    workers: "worker",
  };
  return `${nouns[action.split(".")[0] as keyof typeof nouns]} ${target}`;
}

function limitWords(
  action: string,
  target: string,
  values: Readonly<Record<string, unknown>> | null,
): string {
  const thing = thingOf(action, target);
  if (values === null) return `Remove ${thing}`;
  const { tuned, paused, ...limits } = values;
  if (action.startsWith("budgets.") && tuned === false) return `Set ${thing} back to the code's numbers`;
  if (Object.keys(limits).length === 0) return `${paused === true ? "Pause" : "Resume"} ${thing}`;
  return `Set ${thing} back to ${valuesText(values)}`;
}

function errorWords(target: string, { before, after }: Both<"error">): string {
  if (isNoteAlone({ before, after })) return `Set note and link of failure ${target} back`;
  const verb = { ignored: "Ignore", resolved: "Resolve", open: "Open", regressed: "Open" };
  return `${verb[before?.state ?? "open"]} failure ${target} again`;
}

function holdText({ queues, reason }: NonNullable<Standings["hold"]>): string {
  return `${queues === null ? "every queue" : queues.join(", ")}${reason === null ? "" : ` (${reason})`}`;
}

/** As few words as tell it apart. */
function standingText(standing: unknown): string {
  if (standing === null) return "not there";
  const { state, paused, values, untilAt, queues, reason } = standing as Record<string, unknown>;
  if (values === null) return "not there";
  if (typeof values === "object")
    return `${valuesText(values as Record<string, unknown>)}${typeof untilAt === "number" ? ` until ${new Date(untilAt).toISOString()}` : ""}`;
  if (typeof state === "string") return state;
  if (queues !== undefined) return `over ${holdText({ queues, reason } as NonNullable<Standings["hold"]>)}`;
  return typeof paused === "boolean" ? (paused ? "paused" : "running") : "otherwise";
}

function valuesText(values: Readonly<Record<string, unknown>>): string {
  const { limit, perMs, burst, paused, tuned: _, ...rest } = values;
  const parts = Object.entries(rest).map(([key, value]) => `${key} ${valueText(value)}`);
  if (limit !== undefined) parts.unshift(`${valueText({ limit, perMs })}, burst ${valueText(burst)}`);
  if (paused !== undefined) parts.push(paused === true ? "paused" : "not paused");
  return parts.join(", ");
}

function valueText(value: unknown): string {
  if (value === null) return "default";
  if (typeof value !== "object") return String(value);
  const { limit, perMs, ...rest } = value as Record<string, unknown>;
  if (typeof limit === "number" && typeof perMs === "number" && Object.keys(rest).length === 0)
    return `${limit} per ${timeText(perMs)}`;
  return JSON.stringify(value);
}

function timeText(ms: number): string {
  for (const [unit, length] of [
    ["d", 86_400_000],
    ["h", 3_600_000],
    ["m", 60_000],
    ["s", 1_000],
  ] as const)
    if (ms >= length && ms % length === 0) return `${ms / length}${unit}`;
  return `${ms}ms`;
}

/** As JSON, whatever the order of the keys. */
function same(one: unknown, other: unknown): boolean {
  return canonical(one) === canonical(other);
}

function canonical(value: unknown): string {
  return JSON.stringify(value, (_key, part: unknown) =>
    typeof part === "object" && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  );
}
