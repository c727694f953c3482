/**
 * What a command does to a database, on its audit trail: the same lines that the dashboard writes, by `cli:<user>@<host>`.
 *
 * Invariants: a line is written after what it tells of; what did nothing leaves none; what a job gets or a signal carries is never on it. A line that
 * cannot be written is said on standard error, and changes nothing about what has happened.
 * Not here: bulk actions by filter, whose operation writes its own lines (operate/operations.ts).
 */
import { hostname, userInfo } from "node:os";
import type { Holdfast } from "../../index.ts";
import { storable } from "../../operate/operations.ts";
import { describeFailure } from "../../jobs/failure.ts";
import type { Context } from "../command-context.ts";
import { oneLine } from "../text.ts";

/** Who it was, for the trail and for whatever else keeps a name. */
export const ACTOR = `cli:${userName()}@${hostname()}`;

/** One action, in the dashboard's words. */
export interface Act<T> {
  /** Such as "queues.pause". */
  readonly action: string;
  /** What it is done to; a line for each where there are several. */
  readonly target: string | readonly string[];
  readonly outcome: string | ((result: T) => string);
  readonly details?: Readonly<Record<string, unknown>> | ((result: T) => Readonly<Record<string, unknown>>);
}

/**
 * Does it, and writes so on the trail. Where `run` gives false or 0, nothing was done and nothing is written.
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

/** One line. */
export async function record(
  ctx: Context,
  hf: Holdfast,
  line: { action: string; target: string; outcome: string; details?: Readonly<Record<string, unknown>> },
): Promise<void> {
  try {
    await hf.internals.store.insight.addAudit({
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
        `This is done, and missing on the audit trail: ${oneLine(describeFailure(error).message, 200)}`,
      ),
    );
  }
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return "somebody"; // a container's user may have no name
  }
}
