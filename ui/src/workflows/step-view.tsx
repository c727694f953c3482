// A step in a drawer: state, tries, result, actions. Drawn from the loaded steps, so it updates while the run continues;
// a missing step is requested.
import type { Signal } from "@preact/signals";
import type { WorkflowHistory, WorkflowStep, JobDetail } from "../../../src/dashboard/api/contract.ts";
import { get } from "../data/api.ts";
import { duration, instant, number, plural, shortId } from "../kit/format.ts";
import { JsonView } from "../json/json-view.tsx";
import { JobLink, State } from "../kit/labels.tsx";
import { Facts, Loaded } from "../kit/panels.tsx";
import { now } from "../data/page-clock.ts";
import { showDialog } from "../kit/dialogs.tsx";
import { SendSignal } from "./signal-form.tsx";
import { StackView } from "../code/stack-view.tsx";
import { StepActions } from "./step-actions.tsx";
import { useQuery } from "../data/live-query.ts";

/** The loaded steps and the chosen one, shared by all views. */
export interface RunSteps {
  readonly job: JobDetail;
  readonly steps: Signal<readonly WorkflowStep[]>;
  readonly signals: Signal<WorkflowHistory["signals"]>;
  readonly chosen: Signal<number | null>;
  readonly again: () => void;
}

export function openStep(run: RunSteps, seq: number): void {
  run.chosen.value = seq;
  const name = run.steps.value.find((step) => step.seq === seq)?.name;
  showDialog(
    name === undefined ? `Step ${seq + 1}` : `Step ${name}`,
    (close) => <StepDrawer run={run} seq={seq} close={close} />,
    "drawer",
  );
}

function StepDrawer({ run, seq, close }: { run: RunSteps; seq: number; close: () => void }) {
  const here = run.steps.value.find((step) => step.seq === seq);
  return (
    <div class="dialog">
      {here === undefined ? (
        <Fetched run={run} seq={seq} close={close} />
      ) : (
        <Content run={run} step={here} close={close} />
      )}
      <footer>
        <Neighbours run={run} seq={seq} close={close} />
        <span class="spring" />
        <button type="button" class="button" onClick={close} autofocus>
          Close
        </button>
      </footer>
    </div>
  );
}

/** The graph may contain steps that are not loaded. */
function Fetched({ run, seq, close }: { run: RunSteps; seq: number; close: () => void }) {
  const query = useQuery(`step ${run.job.id} ${seq}`, (signal) =>
    get<WorkflowHistory>(`/jobs/${run.job.id}/history`, { before: seq + 1, limit: 1 }, signal),
  );
  return (
    <Loaded query={query}>
      {({ steps }) => {
        const step = steps.find((one) => one.seq === seq);
        return step === undefined ? (
          <div class="content">
            <p>This step is no longer stored.</p>
          </div>
        ) : (
          <Content run={run} step={step} close={close} />
        );
      }}
    </Loaded>
  );
}

function Neighbours({ run, seq, close }: { run: RunSteps; seq: number; close: () => void }) {
  const steps = run.steps.value;
  const at = steps.findIndex((step) => step.seq === seq);
  const turn = (words: string, to: WorkflowStep | undefined) => (
    <button
      type="button"
      class="button small"
      disabled={to === undefined}
      onClick={() => {
        if (to === undefined) return;
        close();
        openStep(run, to.seq);
      }}
    >
      {words}
    </button>
  );
  if (at === -1) return null;
  return (
    <>
      {turn("Before", steps[at - 1])}
      {turn("After", steps[at + 1])}
    </>
  );
}

function Content({ run, step, close }: { run: RunSteps; step: WorkflowStep; close: () => void }) {
  const { job } = run;
  const signal = run.signals.value.find((one) => one.step === step.name && one.state === "waiting");
  const facts: [string, preact.ComponentChildren][] = [
    ["Kind", step.kind],
    ["Number", number(step.seq + 1)],
    ["Started", instant(step.startedAt)],
    ["Ended", instant(step.endedAt)],
  ];
  if (step.endedAt !== null) facts.push(["Took", duration(step.endedAt - step.startedAt)]);
  if (step.until !== null && step.state !== "cancelled") {
    facts.push([step.kind === "signal" ? "Times out" : "Continues", instant(step.until)]);
    facts.push(["Time left", <TimeLeft until={step.until} />]);
  }
  facts.push(["Tries", number(step.tries)]);
  facts.push(["Job attempt", number(step.attempt)], ["Code version", `v${job.version}`]);
  if (step.jobId !== null)
    facts.push(["Called job", <JobLink id={step.jobId}>{shortId(step.jobId)}</JobLink>]);
  return (
    <>
      <header>
        <h2 class="clip" title={step.name}>
          {step.name}
        </h2>
        <State state={step.state} />
      </header>
      <div class="content">
        <div class="row tight">
          <StepActions job={job} step={step} again={run.again} then={close} />
          {signal !== undefined && (
            <SendSignal name={signal.name} topicKey={signal.key} kind={job.name} again={run.again} />
          )}
        </div>
        <Facts of={facts} />
        <Tries step={step} />
        {step.error !== null && step.triedAt.length <= 1 && <Fault text={step.error} />}
        {step.output !== null && (
          <section aria-label="Result">
            <h3 class="small">Result</h3>
            <JsonView text={step.output} label={`Result of ${step.name}`} />
          </section>
        )}
        {job.payloadHidden && (
          <p class="muted small">You do not have permission to see this step's result.</p>
        )}
        {step.kind === "step" && (
          <p class="muted small">
            A step has no input of its own; its code uses the handler's variables. The job's id{" "}
            <span class="mono">{shortId(job.id)}</span> is the same on every try.
          </p>
        )}
      </div>
    </>
  );
}

function TimeLeft({ until }: { until: number }) {
  const left = until - now.value;
  return <span role="timer">{left <= 0 ? `due for ${duration(-left)}` : duration(left)}</span>;
}

/** For earlier tries the store keeps instants, not errors. */
function Tries({ step }: { step: WorkflowStep }) {
  const { triedAt, tries, state, error } = step;
  if (triedAt.length <= 1) return null;
  const first = tries - triedAt.length + 1;
  return (
    <section aria-label="Tries">
      <h3 class="small">{plural(tries, "try", "tries")}</h3>
      <ol class="tries" aria-label="Tries">
        {triedAt.map(({ startedAt, endedAt }, i) => {
          const last = i === triedAt.length - 1;
          const well = last && state === "done";
          const gap = i === 0 ? null : startedAt - (triedAt[i - 1]?.endedAt ?? startedAt);
          return (
            <li key={i}>
              <span class="muted">{number(Math.max(1, first) + i)}.</span>{" "}
              <span class={well ? "good" : "bad"}>{well ? "succeeded" : "failed"}</span>{" "}
              <span class="muted">
                {gap !== null
                  ? `${instant(startedAt)}, took ${duration(endedAt - startedAt)}, ${duration(gap)} after the previous one`
                  : `${instant(startedAt)}, took ${duration(endedAt - startedAt)}`}
              </span>
              {last && error !== null && <Fault text={error} />}
            </li>
          );
        })}
      </ol>
    </section>
  );
}

function Fault({ text }: { text: string }) {
  return text.includes("\n    at ") ? (
    <StackView text={text} />
  ) : (
    <pre class="code" tabIndex={0} role="group" aria-label="Error">
      {text}
    </pre>
  );
}
