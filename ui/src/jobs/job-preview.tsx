// A job beside its list: state, reason, latest error, input. The list stays in place.
import type { JobDetail } from "../../../src/dashboard/api/contract.ts";
import { atPageTime, duration, instant, number, plural } from "../kit/format.ts";
import { useJob } from "./job-query.ts";
import { JsonView } from "../json/json-view.tsx";
import { JobStateOf, LongText } from "../kit/labels.tsx";
import { Facts, Loaded } from "../kit/panels.tsx";
import { href } from "../data/router.ts";
import { StackView } from "../code/stack-view.tsx";

export function JobPreview({ id, close }: { id: string; close: () => void }) {
  const query = useJob(id);
  return (
    <div class="dialog">
      <Loaded query={query}>{(job) => <Content job={job} />}</Loaded>
      <footer>
        <a class="button primary" href={href(`/jobs/${id}`)} onClick={close}>
          Open its page
        </a>
        <span class="spring" />
        <button type="button" class="button" onClick={close} autofocus>
          Close
        </button>
      </footer>
    </div>
  );
}

function Content({ job }: { job: JobDetail }) {
  const last = job.errors.at(-1);
  const ran = job.startedAt === null || job.endedAt === null ? null : job.endedAt - job.startedAt;
  return (
    <>
      <header>
        <h2 class="clip" title={job.name}>
          {job.name}
        </h2>
        <JobStateOf job={job} />
      </header>
      <div class="content">
        <p class="small mono">{job.id}</p>
        <div class={`banner ${job.state === "dead" ? "bad" : job.state === "done" ? "good" : "info"}`}>
          <span style={{ overflowWrap: "anywhere" }}>
            <LongText of={atPageTime(job.why.text)} />
          </span>
        </div>
        <Facts
          of={[
            ["Queue", job.queue],
            ["Attempts", `${number(job.attempt)} of ${number(job.maxAttempts)}`],
            ["Created", instant(job.createdAt)],
            ...(job.startedAt === null ? [] : [["Started", instant(job.startedAt)] as const]),
            ...(job.endedAt === null ? [] : [["Ended", instant(job.endedAt)] as const]),
            ...(ran === null ? [] : [["Ran", duration(ran)] as const]),
          ]}
        />
        {last !== undefined && (
          <section aria-label="Latest error">
            <h3 class="small">
              {job.errors.length > 1
                ? `Latest error of ${plural(job.errors.length, "failure")}`
                : "Latest error"}
            </h3>
            {last.stack === null ? (
              <pre class="code" tabIndex={0} role="group" aria-label="Error">
                {last.message}
              </pre>
            ) : (
              <StackView text={last.stack} />
            )}
          </section>
        )}
        {job.payloadHidden ? (
          <p class="muted small">Payloads are hidden.</p>
        ) : (
          <section aria-label="Input">
            <h3 class="small">Input</h3>
            <JsonView text={job.input ?? "null"} label="Input" />
          </section>
        )}
      </div>
    </>
  );
}
