/**
 * Replays the histories of live runs against the present code, without doing or writing anything, and says which
 * would break: to be asked before a deploy.
 *
 * A handler is led through its history as a worker would lead it; at the first thing that the history does not have, it
 * is left where it is. By then it must have asked for all that the history has. Steps, sleeps, waits and calls are never
 * done, and nothing is undone. What a handler does outside of them it does here too, as it would at every resume: that is
 * why side effects belong into steps.
 * Not here: what a divergence is (workflows/run.ts).
 */
import { Attempt } from "../worker/attempt.ts";
import type { Clock, Timer } from "../clock.ts";
import type { AnyJob } from "../jobs/define-job.ts";
import { StateError } from "../errors.ts";
import type { ClaimedJob } from "../jobs/job.ts";
import { silentLogger } from "../logger.ts";
import { describeFailure } from "../jobs/failure.ts";
import { decodeJson } from "../values/json.ts";
import { validate } from "../values/input-schema.ts";
import type { WorkflowStore, LiveWorkflow, StepRecord } from "../workflows/store.ts";
import type { Store } from "../storage/store.ts";
import { outdatedBy } from "../workflows/advance.ts";
import { shownName } from "../workflows/request.ts";
import type { MachineDefinition } from "../workflows/machine.ts";
import type { RunFile } from "../workflows/run-file.ts";
import { StepWriter } from "../workflows/step-writer.ts";

/** A run that would not survive the deploy. */
export interface BrokenWorkflow {
  readonly id: string;
  readonly name: string;
  /** The step at which it breaks, where one can be named. */
  readonly step: string | null;
  readonly message: string;
}

/** What `hf.check` gives. */
export interface WorkflowReport {
  /** How many runs were replayed. */
  readonly checked: number;
  readonly broken: readonly BrokenWorkflow[];
}

export interface CheckDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: () => number;
  readonly maxPayloadBytes: number;
}

const pageSize = 100;
const patienceMs = 5_000;
/** How long a handler may do something else before it asks for the rest of what its history has. */
const graceMs = 1_000;

/** Replays every live run of these names, oldest first, up to `limit`. */
export async function checkWorkflows(
  deps: CheckDeps,
  definitions: readonly AnyJob[],
  limit: number,
): Promise<WorkflowReport> {
  const byName = new Map(definitions.map((definition) => [definition.name, definition]));
  const broken: BrokenWorkflow[] = [];
  let checked = 0;
  let after: string | null = null;
  while (checked < limit) {
    const page: LiveWorkflow[] = await deps.store.workflows.liveRuns([...byName.keys()], {
      limit: Math.min(pageSize, limit - checked),
      after,
    });
    if (page.length === 0) break;
    for (const workflow of page) {
      checked += 1;
      after = workflow.cursor;
      const definition = byName.get(workflow.name);
      const fault = definition === undefined ? null : await replay(deps, definition, workflow);
      if (fault !== null) broken.push({ id: workflow.id, name: workflow.name, ...fault });
    }
  }
  return { checked, broken };
}

/** Replays runs that were written to files (workflows/run-file.ts) against these definitions. Needs no database. */
export async function checkFiles(
  deps: Omit<CheckDeps, "store">,
  definitions: readonly AnyJob[],
  files: readonly RunFile[],
): Promise<WorkflowReport> {
  const byName = new Map(definitions.map((definition) => [definition.name, definition]));
  const broken: BrokenWorkflow[] = [];
  for (const { run, steps } of files) {
    const definition = byName.get(run.name);
    const store = historyOf(steps);
    const fault =
      definition === undefined
        ? { step: null, message: `your code has no job named "${run.name}"` }
        : await replay({ ...deps, store }, definition, run);
    if (fault !== null) broken.push({ id: run.id, name: run.name, ...fault });
  }
  return { checked: files.length, broken };
}

/** A history is all that a replay reads; what it would write is refused before it is sent. */
function historyOf(steps: readonly StepRecord[]): Store {
  const workflows: Pick<WorkflowStore, "steps" | "step"> = {
    steps: async () => [...steps],
    step: async (_id, name) => steps.find((step) => step.name === name) ?? null,
  };
  return { workflows: workflows as WorkflowStore } as Store;
}

type Fault = { readonly step: string | null; readonly message: string };

async function replay(deps: CheckDeps, definition: AnyJob, workflow: LiveWorkflow): Promise<Fault | null> {
  if (definition.machine !== undefined && definition.machine !== null)
    return machineFault(deps, definition, workflow);
  const steps = await deps.store.workflows.steps(workflow.id);
  const place = steps.find(({ name }) => name === "$machine");
  if (place !== undefined)
    return {
      step: place.label,
      message: `the machine is at step "${place.label}", but your job "${workflow.name}" is not a machine`,
    };
  // Without what was undone: a run that undoes would go on with it.
  const records = steps.filter(({ kind }) => kind !== "undo");
  return new Promise((resolve) => {
    let grace: Timer | null = null;
    const timer = deps.clock.after(patienceMs, () =>
      over(
        attempt.workflow?.replayed === false
          ? { step: null, message: `the replay did not finish within ${patienceMs} ms` }
          : lacking(),
      ),
    );
    const over = (fault: Fault | null): void => {
      timer.cancel();
      grace?.cancel();
      attempt.workflow?.stop();
      resolve(fault);
    };
    const undoGone = (): Fault | null => {
      const lack = attempt.workflow?.lacking;
      if (lack?.asked !== true) return null;
      const { name } = lack.record;
      return { step: name, message: `step "${name}" had an undo function, but the code has none` };
    };
    const lacking = (): Fault | null =>
      undoGone() ??
      notAsked(attempt.workflow?.loaded === true ? attempt.workflow.lacking?.record : records[0]);
    const attempt = new Attempt(claimed(workflow, deps.clock.now()), definition, {
      middleware: { runs: [], run: () => Promise.reject(new Error("no middleware")) },
      maxOutputBytes: deps.maxPayloadBytes,
      clock: deps.clock,
      context: {
        store: { settles: { progress: async () => true } },
        log: silentLogger,
        workerId: "check",
        hostId: "check",
        maxPayloadBytes: deps.maxPayloadBytes,
        enqueueFor: () => ({ enqueue: refused, enqueueMany: refused }),
        budget: async () => ({ granted: true, retryAfter: 0 }),
        workflow: {
          store: historyOf(records),
          clock: deps.clock,
          random: deps.random,
          writer: new StepWriter({ recordSteps: refused }, deps.clock),
          // It tells again with everything that the handler asks for from here on.
          dry: () => {
            if (lacking() === null) over(null);
            else grace ??= deps.clock.after(graceMs, () => over(lacking()));
          },
        },
      },
      onEnd: (_attempt, outcome) => {
        switch (outcome.kind) {
          case "dead": {
            const { message } = outcome.failure;
            return over({ step: /^DIVERGED: Step "([^]*?)":/.exec(message)?.[1] ?? null, message });
          }
          case "failed":
            // What it did not ask for may be what the failure kept it from.
            return over(
              attempt.workflow?.replayed === true
                ? undoGone()
                : { step: null, message: outcome.failure.message },
            );
          case "released":
            // It would not break, and not go on either, until workers with its version are there again.
            return over(outcome.outdated === true ? { step: null, message: outcome.reason ?? "" } : null);
          default:
            return over(lacking());
        }
      },
      onRunawayEnd: () => {},
    });
    attempt.start();
  });
}

function notAsked(record: StepRecord | undefined): Fault | null {
  if (record === undefined) return null;
  const { name, kind } = record;
  return {
    step: name,
    message: `the history has ${shownName(kind)} "${name}", but the code does not ask for it`,
  };
}

async function machineFault(
  deps: CheckDeps,
  definition: AnyJob,
  workflow: LiveWorkflow,
): Promise<Fault | null> {
  const { steps, data } = definition.machine as MachineDefinition<string, unknown, unknown>["machine"];
  const outdated = outdatedBy(workflow.name, workflow.extras, definition.version ?? 1);
  if (outdated !== null) return { step: null, message: outdated };
  const saved = await deps.store.workflows.step(workflow.id, "$machine");
  if (saved === null) {
    const [first] = await deps.store.workflows.steps(workflow.id);
    if (first === undefined) return null;
    return {
      step: first.name,
      message: `the history has ${shownName(first.kind)} "${first.name}", but your job "${workflow.name}" is a machine`,
    };
  }
  const at = saved.label;
  if (at === null) return null;
  if (!steps.includes(at))
    return { step: at, message: `the machine is at step "${at}", which the code does not have` };
  const schema = Object.hasOwn(data, at) ? data[at] : undefined;
  if (schema === undefined) return null;
  try {
    // As the step's next attempt would: what was saved by older code is checked by the schema of today's.
    const what = `data of step "${at}"`;
    await validate(schema, decodeJson(saved.output ?? "null", what), what, "INPUT_INVALID");
    return null;
  } catch (error) {
    return { step: at, message: describeFailure(error).message };
  }
}

function refused(): Promise<never> {
  return Promise.reject(new StateError("NOT_IN_A_RUN", "A replay enqueues and writes nothing."));
}

function claimed(workflow: LiveWorkflow, now: number): ClaimedJob {
  return {
    id: workflow.id,
    rowKey: workflow.id,
    token: 0,
    session: 0,
    name: workflow.name,
    queue: "check",
    priority: 0,
    input: workflow.input,
    // As it would be claimed: what failed in the attempt that is under way counts as recorded.
    attempt: workflow.attempt + (workflow.running ? 0 : 1),
    crashes: workflow.crashes,
    begun: true,
    undoing: false,
    maxAttempts: null,
    timeoutMs: null,
    errors: null,
    keyed: false,
    lane: null,
    context: null,
    parentId: null,
    runAt: now,
    startedAt: now,
    deadlineAt: null,
    extras: workflow.extras,
    cancelReason: null,
  };
}
