// Actions on a step: end a sleep, or rerun the workflow from here as a new job.
import type { WorkflowHistory, JobDetail } from "../../../src/dashboard/api/contract.ts";
import { Do } from "../kit/actions.tsx";
import { send } from "../data/api.ts";
import { go } from "../data/router.ts";
import { actionsColumn, type Column } from "../kit/table.tsx";

type Step = WorkflowHistory["steps"][number];

export function StepActions({
  job,
  step: { name, kind, state },
  again,
  then = () => {},
}: {
  job: Pick<JobDetail, "id" | "state">;
  step: Step;
  again: () => void;
  /** Called after an action. */
  then?: () => void;
}) {
  const ended = job.state === "done" || job.state === "dead" || job.state === "cancelled";
  return (
    <>
      {kind === "sleep" && state === "waiting" && job.state === "scheduled" && (
        <Do
          verb="Skip"
          on={name}
          needs="jobs:run"
          icon="next"
          title="End the sleep now"
          run={() => send("POST", `/jobs/${job.id}/run-now`)}
          done="Sleep ended"
          then={() => {
            again();
            then();
          }}
        />
      )}
      {ended && ["step", "sleep", "signal", "call"].includes(kind) && (
        <Do
          verb="Rerun from here"
          on={name}
          needs="jobs:retry"
          quiet
          icon="retry"
          ask={
            <>
              Creates a run that copies the steps before <b>{name}</b> and repeats the rest. This run does not
              change.
            </>
          }
          run={() =>
            send<{ id: string }>("POST", `/jobs/${job.id}/fork`, { from: name }).then(({ id }) => {
              then();
              go(`/jobs/${id}`);
            })
          }
          done="Run created"
        />
      )}
    </>
  );
}

export function stepActions(job: Pick<JobDetail, "id" | "state">, again: () => void): Column<Step> {
  return actionsColumn((step: Step) => <StepActions job={job} step={step} again={again} />);
}
