/**
 * The subcommands of `holdfast jobs` that change many jobs: they take ids or a filter.
 *
 * Not here: how the jobs are counted, confirmed and changed (bulk-action.ts).
 */
import { UsageError } from "../../errors.ts";
import { checkEdit } from "../../operate/jobs-client.ts";
import { jobEdit, type KeptEdit } from "../../operate/operations.ts";
import { instantMs } from "../../values/duration.ts";
import { checkPatch, type InputPatch } from "../../values/json-patch.ts";
import { type Command, FORCE, type Option } from "../command.ts";
import type { Context } from "../command-context.ts";
import { bulk, type BulkCommand, RATE } from "./bulk-action.ts";
import { FILTER } from "./filter-options.ts";

const ACTING: Readonly<Record<string, Option>> = {
  ...FILTER,
  ...RATE,
  "dry-run": { type: "boolean", help: "Count the jobs, show the first five, and change nothing" },
  ...FORCE,
};

/** A subcommand that acts on ids or on a filter. */
function onJobs({
  act,
  options,
  ...command
}: Omit<Command, "args" | "maxArgs" | "run"> & { readonly act: (ctx: Context) => BulkCommand }): Command {
  return {
    ...command,
    args: "[<id>…]",
    maxArgs: 10_000,
    options: { ...ACTING, ...options },
    run: (ctx) => bulk(ctx, act(ctx)),
  };
}

const retry = onJobs({
  name: "retry",
  summary: "run ended jobs again",
  options: {
    patch: {
      type: "string",
      value: "json",
      help: `Change the inputs first: '{"plan":"pro","old":null}' is merged, '[{"op":"replace",…}]' is a JSON Patch`,
    },
  },
  details:
    "Takes ids or a filter. A filter without --state selects dead jobs. If several jobs share a unique key, only the newest is retried.",
  json: "{ matched, retried, superseded, not_ended, not_found }, with --rate or if interrupted also { operation, state }; with --dry-run { dryRun, matched, samples }",
  examples: [
    { line: "jobs retry --queue mail --search ECONNREFUSED --dry-run", says: "Count the jobs" },
    { line: "jobs retry --queue mail --search ECONNREFUSED --force", says: "Retry them" },
    {
      line: `jobs retry --error 3f0c… --patch '{"plan":"pro"}' --dry-run`,
      says: "Preview the new inputs",
    },
    { line: "jobs retry --error 3f0c… --rate 50/s", says: "At most 50 a second" },
  ],
  act: (ctx) => {
    const patch = ctx.string("patch");
    return { action: "retry", ...(patch === undefined ? {} : { patch: patchOf(patch) }) };
  },
});

/** @throws UsageError */
function patchOf(text: string): InputPatch {
  try {
    return checkPatch(JSON.parse(text), "--patch");
  } catch (cause) {
    if (!(cause instanceof SyntaxError)) throw cause;
    throw new UsageError("BAD_OPTION", `--patch must be JSON: ${cause.message}. In a shell, quote it.`, {
      cause,
    });
  }
}

const cancel = onJobs({
  name: "cancel",
  summary: "cancel jobs that have not ended",
  details: "A running job is asked to stop. It ends when its handler reacts.",
  json: "{ matched, cancelled, cancel_requested, ended, not_found }",
  examples: [{ line: "jobs cancel --queue imports --state ready,scheduled --force", says: "Empty a queue" }],
  act: () => ({ action: "cancel" }),
});

const pause = onJobs({
  name: "pause",
  summary: "pause jobs until they are resumed",
  details:
    "A job that has not started does not start. A sleeping or waiting run does not continue. A running workflow stops before its next step. A handler without steps runs to its end; if it fails, the job is not retried until it is resumed.",
  json: "{ matched, paused, pause_requested, ended, not_found }",
  examples: [
    { line: "jobs pause 0199…", says: "One run, before its next step" },
    { line: "jobs pause --name import --force", says: "All jobs of this name" },
  ],
  act: () => ({ action: "pause" }),
});

const resume = onJobs({
  name: "resume",
  summary: "resume paused jobs",
  json: "{ matched, resumed, not_paused, ended, not_found }",
  examples: [{ line: "jobs resume 0199…", says: "Continue one job" }],
  act: () => ({ action: "resume" }),
});

const terminate = onJobs({
  name: "terminate",
  summary: "end jobs at once, without waiting for their handlers",
  details:
    "The jobs end as cancelled. The signal of a running handler aborts, its later writes are refused, and no step is compensated. Use `jobs cancel` if the handler reacts to its signal.",
  json: "{ matched, terminated, cancel_requested, ended, not_found }",
  examples: [{ line: "jobs terminate 0199… --force", says: "A handler that ignores its signal" }],
  act: () => ({ action: "terminate", destructive: true }),
});

const remove = onJobs({
  name: "delete",
  summary: "delete jobs in any state",
  details: "Deletes everything that is stored for the jobs. A running job is asked to stop instead.",
  json: "{ matched, deleted, cancel_requested, not_found }",
  examples: [{ line: "jobs delete --state dead --until 30d --force", says: "Dead jobs older than 30 days" }],
  act: () => ({ action: "delete", destructive: true }),
});

const runNow = onJobs({
  name: "run",
  summary: "make scheduled jobs due now",
  json: "{ matched, due, not_scheduled, not_found }",
  examples: [{ line: "jobs run 0199…", says: "Retry it now" }],
  act: () => ({ action: "run-now" }),
});

const edit = onJobs({
  name: "edit",
  summary: "change the time, queue or priority of jobs",
  options: {
    delay: { type: "string", value: "duration", help: "Due after this time: 5m, 1h30m, 2d" },
    at: { type: "string", value: "date", help: "Due at this instant" },
    to: { type: "string", value: "queue", help: "Move to this queue" },
    priority: { type: "string", short: "p", value: "n", help: "Higher first" },
  },
  details:
    "Takes ids or a filter. Dead jobs (--state dead) may change queue and priority; they stay dead until they are retried. These jobs are skipped and counted: running or otherwise ended ones, sleeping or waiting ones (for a new time), those with an earlier deadline, and those with a key that is unique in the queue that they would leave.",
  json: "{ matched, edited, running, ended, waiting, past_deadline, keyed, not_found }; with --dry-run { dryRun, matched, samples }",
  examples: [
    { line: "jobs edit --queue mail --state ready --delay 2h --force", says: "Delay a queue's jobs" },
    {
      line: "jobs edit --queue mail --name newsletter --to mail-slow --dry-run",
      says: "Count the jobs that would move",
    },
    { line: "jobs edit 0199… --priority 10", says: "Run before the others" },
    {
      line: "jobs edit --error 3f9a… --state dead --to mail-dead --force",
      says: "Move the dead jobs of one failure group",
    },
  ],
  act: (ctx) => {
    const at = ctx.date("at");
    const delay = ctx.string("delay");
    const queue = ctx.string("to");
    const priority = ctx.integer("priority");
    const change: KeptEdit = {
      ...(delay === undefined ? {} : { delay }),
      ...(at === undefined ? {} : { at: instantMs(at, "at") }),
      ...(queue === undefined ? {} : { queue }),
      ...(priority === undefined ? {} : { priority }),
    };
    checkEdit(jobEdit(change)); // before anything is counted or asked
    return { action: "edit", change };
  },
});

/** In the order of the help. */
export const jobActions: readonly Command[] = [retry, pause, resume, cancel, terminate, remove, runNow, edit];
