/**
 * Records the changes of commands in the audit trail, like the dashboard, by `cli:<user>@<host>`.
 *
 * Invariants: an entry is written after its change; a call without effect writes none; inputs of jobs and data of signals are never
 * recorded. If an entry cannot be written, standard error says so, and the change stays.
 * Not here: bulk actions by filter, whose operation writes its own entries (operate/operations.ts).
 */
import { hostname, userInfo } from "node:os";
import type { Holdfast } from "../index.ts";
import { storable } from "../operate/operations.ts";
import { describeFailure, operatorOf } from "../operate/index.ts";
import type { Context } from "./command-context.ts";
import { oneLine } from "./text.ts";

/** The actor of this process, for the audit trail and for decisions about failures. */
export const ACTOR = `cli:${userName()}@${hostname()}`;

/** One action, named as in the dashboard. */
export interface Act<T> {
  /** Such as "queues.pause". */
  readonly action: string;
  /** The object of the action; several objects have an entry each. */
  readonly target: string | readonly string[];
  readonly outcome: string | ((result: T) => string);
  readonly details?: Readonly<Record<string, unknown>> | ((result: T) => Readonly<Record<string, unknown>>);
}

/**
 * Runs the action and records it. If `run` returns false or 0, the action had no effect and nothing is recorded.
 *
 * @example
 * await acting(ctx, hf, { action: "queues.pause", target: "mail", outcome: "paused" }, () => hf.queues.pause("mail"));
 */
export async function acting<T>(ctx: Context, hf: Holdfast, act: Act<T>, run: () => Promise<T>): Promise<T> {
  const targets = typeof act.target === "string" ? [act.target] : act.target;
  const result = await run();
  if (result === false || result === 0) return result;
  const outcome = typeof act.outcome === "string" ? act.outcome : act.outcome(result);
  const details = typeof act.details === "function" ? act.details(result) : act.details;
  const said = details === undefined || Object.keys(details).length === 0 ? {} : { details };
  for (const target of targets) await record(ctx, hf, { action: act.action, target, outcome, ...said });
  return result;
}

/** Records one entry. */
export async function record(
  ctx: Context,
  hf: Holdfast,
  line: { action: string; target: string; outcome: string; details?: Readonly<Record<string, unknown>> },
): Promise<void> {
  try {
    await operatorOf(hf).store.insight.addAudit({
      actor: storable(ACTOR, 200),
      action: line.action,
      target: storable(line.target, 500),
      outcome: storable(line.outcome, 200),
      details: line.details === undefined ? null : storable(JSON.stringify(line.details), 4_000),
    });
  } catch (error) {
    ctx.note(
      ctx.paintError(
        "warn",
        `The change was made, but not recorded in the audit trail: ${oneLine(describeFailure(error).message, 200)}`,
      ),
    );
  }
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return "unknown"; // a container's user may have no name
  }
}
