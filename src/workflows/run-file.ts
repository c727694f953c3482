/**
 * A run's history as a file: taken from a production database or its dashboard, replayed on a developer's machine with
 * `holdfast check run.json`, without a database.
 *
 * Invariants: it holds all that a replay reads and nothing of leases, workers or traces; a file that is not one, or is of
 * a later format, is refused with a code before anything is run. What undoing left behind is not in it: a replay asks
 * whether the code leads the same way, not what became of it.
 * Not here: replaying (operate/check.ts), taking secrets out of it (dashboard/access/redact.ts).
 */
import { UsageError } from "../errors.ts";
import type { JobExtras } from "../jobs/job.ts";
import type { Store } from "../storage/store.ts";
import type { LiveWorkflow, StepRecord } from "./store.ts";

/** What stands in a file. */
export interface RunFile {
  readonly format: "holdfast-run";
  readonly version: 1;
  /** Epoch milliseconds. */
  readonly takenAt: number;
  /** Secrets were taken out: a handler that looks at them may go another way than the run did. */
  readonly redacted: boolean;
  readonly run: LiveWorkflow;
  readonly steps: readonly StepRecord[];
}

/** The file of a run; null: there is no such job. */
export async function runFileOf(
  store: Pick<Store, "workflows">,
  id: string,
  takenAt: number,
): Promise<RunFile | null> {
  const run = await store.workflows.run(id);
  if (run === null) return null;
  const steps = (await store.workflows.steps(id)).filter(
    ({ name, kind }) => name !== "$undo" && kind !== "undo",
  );
  return {
    format: "holdfast-run",
    version: 1,
    takenAt,
    redacted: false,
    run: { ...run, extras: versionsOf(run.extras) },
    steps,
  };
}

/** Which code made it and advanced it: all that a replay asks of the extras. */
function versionsOf(extras: JobExtras | null): JobExtras | null {
  if (extras === null) return null;
  const { version, advanced } = extras;
  return {
    ...(version === undefined ? {} : { version }),
    ...(advanced === undefined ? {} : { advanced }),
  };
}

/**
 * What a file says.
 *
 * @throws UsageError BAD_RUN_FILE
 */
export function readRunFile(text: string, name: string): RunFile {
  const refuse = (why: string, cause?: unknown): UsageError =>
    new UsageError(
      "BAD_RUN_FILE",
      `${name} is not the history of a run: ${why}. Save one with "holdfast jobs history <id>", or from the run's page on the dashboard.`,
      cause === undefined ? { details: { file: name } } : { details: { file: name }, cause },
    );
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw refuse("it is not JSON", cause);
  }
  const file = value as Partial<Record<keyof RunFile, unknown>> | null;
  if (typeof file !== "object" || file === null || file.format !== "holdfast-run")
    throw refuse(`its "format" is not "holdfast-run"`);
  if (file.version !== 1) throw refuse("its format is newer than this version of Holdfast");
  const run = file.run as Partial<Record<keyof LiveWorkflow, unknown>> | null;
  if (
    typeof run !== "object" ||
    run === null ||
    typeof run.id !== "string" ||
    typeof run.name !== "string" ||
    typeof run.input !== "string" ||
    !Number.isSafeInteger(run.attempt) ||
    !Number.isSafeInteger(run.crashes) ||
    typeof run.running !== "boolean"
  )
    throw refuse(`its "run" is damaged`);
  if (!Array.isArray(file.steps) || !file.steps.every(isStep)) throw refuse(`its "steps" are damaged`);
  return value as RunFile;
}

function isStep(value: unknown): boolean {
  const step = value as Partial<Record<keyof StepRecord, unknown>> | null;
  const text = (part: unknown): boolean => part === null || typeof part === "string";
  return (
    typeof step === "object" &&
    step !== null &&
    typeof step.name === "string" &&
    Number.isSafeInteger(step.seq) &&
    typeof step.kind === "string" &&
    ["open", "done", "failed"].includes(step.state as string) &&
    Number.isSafeInteger(step.attempt) &&
    text(step.output) &&
    text(step.error) &&
    text(step.label)
  );
}
