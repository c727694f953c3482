// A job beside the list that it is in: where it stands and why, its latest error and what it was given. The list stays as it is.
import type { JobDetail } from "../../../src/dashboard/api/contract.ts";
import { atPageTime, duration, instant, number } from "../kit/format.ts";
import { useJob } from "./job-query.ts";
import { JsonView } from "../json/json-view.tsx";
import { JobStateOf, LongText } from "../kit/labels.tsx";
import { Facts, Loaded } from "../kit/panels.tsx";
import { href } from "../data/router.ts";
import { StackView } from "../code/stack-view.tsx";
import { t } from "../language/translation.ts";

export function JobPreview({ id, close }: { id: string; close: () => void }) {
  const query = useJob(id);
  return (
    <div class="dialog">
      <Loaded query={query}>{(job) => <Content job={job} />}</Loaded>
      <footer>
        <a class="button primary" href={href(`/jobs/${id}`)} onClick={close}>
          {t("Open its page")}
        </a>
        <span class="spring" />
        <button type="button" class="button" onClick={close} autofocus>
          {t("Close")}
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
            [t("Queue"), job.queue],
            [
              t("Attempts"),
              t("{attempt} of {maxAttempts}", {
                attempt: number(job.attempt),
                maxAttempts: number(job.maxAttempts),
              }),
            ],
            [t("Created"), instant(job.createdAt)],
            ...(job.startedAt === null ? [] : [[t("Started"), instant(job.startedAt)] as const]),
            ...(job.endedAt === null ? [] : [[t("Ended"), instant(job.endedAt)] as const]),
            ...(ran === null ? [] : [[t("Ran"), duration(ran)] as const]),
          ]}
        />
        {last !== undefined && (
          <section aria-label={t("Latest error")}>
            <h3 class="small">
              {job.errors.length > 1
                ? t("Latest error, of {count, plural, one {# failure} other {# failures}}", {
                    count: job.errors.length,
                  })
                : t("Latest error")}
            </h3>
            {last.stack === null ? (
              <pre class="code" tabIndex={0} role="group" aria-label={t("Error")}>
                {last.message}
              </pre>
            ) : (
              <StackView text={last.stack} />
            )}
          </section>
        )}
        {job.payloadHidden ? (
          <p class="muted small">{t("Payloads are hidden.")}</p>
        ) : (
          <section aria-label={t("Input")}>
            <h3 class="small">{t("Input")}</h3>
            <JsonView text={job.input ?? "null"} label={t("Input")} />
          </section>
        )}
      </div>
    </>
  );
}
