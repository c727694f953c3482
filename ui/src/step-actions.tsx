// What can be done to one step of a run: skip a sleep, or run the workflow again from here as a job of its own.
import type { FlowHistory, JobDetail } from "../../src/dashboard/contract.ts";
import { Do } from "./actions.tsx";
import { send } from "./api.ts";
import { go } from "./router.ts";
import { actionsColumn, type Column } from "./table.tsx";

type Step = FlowHistory["steps"][number];

export function stepActions(job: Pick<JobDetail, "id" | "state">, again: () => void): Column<Step> {
  const ended = job.state === "done" || job.state === "dead" || job.state === "cancelled";
  return actionsColumn(({ name, kind, state }: Step) => (
    <>
      {kind === "sleep" && state === "waiting" && job.state === "scheduled" && (
        <Do
          verb="Skip"
          on={name}
          needs="jobs:run"
          icon="next"
          title="Do not sleep any longer"
          run={() => send("POST", `/jobs/${job.id}/run-now`)}
          done="It goes on now."
          then={again}
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
              A new job takes over what this run did before <b>{name}</b>, and does that and all after it
              again. This run stays as it is.
            </>
          }
          run={() =>
            send<{ id: string }>("POST", `/jobs/${job.id}/fork`, { from: name }).then(({ id }) =>
              go(`/jobs/${id}`),
            )
          }
          done="This is the new run."
        />
      )}
    </>
  ));
}
