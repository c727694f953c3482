// The body of a job's page: payload, errors, steps, timeline, facts.
import type { WorkflowHistory, InputCheck, JobDetail } from "../../../src/dashboard/api/contract.ts";
import { get, seg } from "../data/api.ts";
import { bytes, duration, instant, number, shortId } from "../kit/format.ts";
import { Icon } from "../kit/icons.tsx";
import { AttemptErrors } from "./attempt-errors.tsx";
import { JobTimeline } from "./job-timeline.tsx";
import { JsonView } from "../json/json-view.tsx";
import { copy } from "../kit/clipboard.tsx";
import { Empty, Facts, Panel } from "../kit/panels.tsx";
import { JobLink } from "../kit/labels.tsx";
import { shareOf } from "./progress-share.ts";
import { href } from "../data/router.ts";
import { RunView } from "../workflows/run-view.tsx";
import { page } from "../data/page-settings.ts";
import { useQuery } from "../data/live-query.ts";

export function JobDetails({ job }: { job: JobDetail }) {
  // The key changes when the job ends: the last answer before may lack the last steps.
  const workflow = useQuery(
    `workflow ${job.id} ${job.endedAt ?? "live"}`,
    (signal) => get<WorkflowHistory>(`/jobs/${job.id}/history`, {}, signal),
    job.endedAt === null ? { topic: `run:${job.id}` } : {},
  );
  const history = workflow.data;
  const firstStepAt = useFirstStepAt(job.id, history);
  return (
    <div class="stack">
      <div class="grid aside">
        <div class="stack">
          <Drift job={job} run={(history?.stepCount ?? 0) > 0} />
          {job.errors.length > 0 && <AttemptErrors job={job} />}
          <Payload job={job} />
          <JobTimeline job={job} stepped={(history?.stepCount ?? 0) > 0} firstStepAt={firstStepAt} />
        </div>
        <FactsOf job={job} />
      </div>
      {history !== null && <RunView job={job} history={history} again={workflow.again} />}
    </div>
  );
}

/** The start of the run's first step; null: no steps, or not loaded. A long history comes without its first steps. */
function useFirstStepAt(id: string, history: WorkflowHistory | null): number | null {
  const cut = history !== null && history.earlier !== null;
  const first = useQuery(`first step ${id} ${cut}`, (signal) =>
    cut
      ? get<WorkflowHistory>(`/jobs/${id}/history`, { before: 1, limit: 1 }, signal)
      : Promise.resolve<WorkflowHistory | null>(null),
  );
  return (cut ? first.data : history)?.steps[0]?.startedAt ?? null;
}

const both = new Intl.ListFormat("en");

/** Warns if workers have another code version than the one the run began with. */
function Drift({ job, run }: { job: JobDetail; run: boolean }) {
  const { version, workerVersions } = job;
  const [oldest, newest] = [workerVersions[0], workerVersions.at(-1)];
  if (job.endedAt !== null || oldest === undefined || newest === undefined) return null;
  const there = both.format(workerVersions.map((one) => `v${one}`));
  const text =
    newest < version
      ? `It needs code v${version}; workers have ${there}. It waits for a newer worker.`
      : oldest < version
        ? `It needs code v${version}. Workers have ${there}; older ones skip it.`
        : newest > version && run
          ? `This run began with code v${version}; workers now have ${there}. Recorded steps are replayed in the new code. “holdfast check” tests that without side effects.`
          : null;
  if (text === null) return null;
  return (
    <div class="banner warn" role="status">
      {text}
    </div>
  );
}

/** Requested once: neither the input nor the definitions of this process change. */
function useCheck({ id, payloadHidden }: JobDetail): InputCheck | null {
  const nothing: InputCheck = { checked: false, issues: [] };
  const query = useQuery(`check ${id} ${payloadHidden}`, (signal) =>
    payloadHidden ? Promise.resolve(nothing) : get<InputCheck>(`/jobs/${id}/check`, {}, signal),
  );
  return query.data;
}

function Checked({ check }: { check: InputCheck | null }) {
  if (check === null || !check.checked) return null;
  const fits = check.issues.length === 0;
  return (
    <span
      class={`tag ${fits ? "good" : "bad"}`}
      title="Checked against the schema of its definition in this process"
    >
      <Icon name={fits ? "check" : "dead"} size={11} />{" "}
      {fits ? "matches its schema" : "does not match its schema"}
    </span>
  );
}

function Payload({ job }: { job: JobDetail }) {
  const check = useCheck(job);
  if (job.payloadHidden)
    return (
      <section class="panel" aria-label="Payload">
        <Empty icon="audit" title="Payloads are hidden">
          <p>You do not have permission to see this job's payload.</p>
        </Empty>
      </section>
    );
  const share = job.progress === null ? null : shareOf(job.progress);
  return (
    <>
      <Part title="Input" text={job.input} size={job.inputBytes} mark={<Checked check={check} />}>
        {check !== null && check.issues.length > 0 && (
          <ul class="issues small">
            {check.issues.map(({ path, message }) => (
              <li key={path + message}>
                {path !== "" && <b class="mono">{path.replace(/^\./, "")}</b>} {message}
              </li>
            ))}
          </ul>
        )}
      </Part>
      {job.output !== null && <Part title="Output" text={job.output} />}
      {job.progress !== null && (
        <Part title="Progress" text={job.progress}>
          {share !== null && (
            <div class="row how-far">
              <span
                class="progress"
                role="progressbar"
                aria-label="Progress"
                aria-valuemin={0}
                aria-valuemax={100}
                aria-valuenow={Math.round(share.share * 100)}
              >
                <i style={{ width: `${share.share * 100}%` }} />
              </span>
              <b class="small nowrap">{share.words}</b>
            </div>
          )}
        </Part>
      )}
    </>
  );
}

function Part({
  title,
  text,
  size,
  mark,
  children,
}: {
  title: string;
  text: string | null;
  /** The stored input if the viewer may see it; else the redacted one. */
  size?: number | null;
  mark?: preact.ComponentChildren;
  children?: preact.ComponentChildren;
}) {
  return (
    <Panel
      title={title}
      note={bytes(size ?? new TextEncoder().encode(text ?? "").length)}
      tools={
        <>
          {mark}
          <button type="button" class="button quiet small" onClick={() => void copy(text ?? "")}>
            <Icon name="copy" size={13} /> Copy
          </button>
        </>
      }
    >
      <div class="body stack">
        {children}
        <JsonView text={text ?? "null"} label={title} />
      </div>
    </Panel>
  );
}

function Trace({ id }: { id: string }) {
  const words = <span class="mono">{id.slice(0, 16)}…</span>;
  const jobs = href(`/jobs?trace=${id}`);
  if (typeof page.traceLink !== "string")
    return (
      <a class="link" title={`Jobs of trace ${id}`} href={jobs}>
        {words}
      </a>
    );
  return (
    <>
      <a
        class="link"
        title={id}
        href={page.traceLink.replaceAll("{traceId}", id)}
        target="_blank"
        rel="noreferrer"
      >
        {words}
      </a>{" "}
      <a class="link small" href={jobs}>
        its jobs
      </a>
    </>
  );
}

/** Sleeping and waiting return the attempt, and "0 of 5" would hide that the run has begun. */
function attempts({ attempt, maxAttempts }: JobDetail): string {
  return attempt === 0 ? `0 of ${number(maxAttempts)} used` : `${number(attempt)} of ${number(maxAttempts)}`;
}

function FactsOf({ job }: { job: JobDetail }) {
  const facts: [string, preact.ComponentChildren][] = [
    [
      "Queue",
      <a class="link" href={href(`/queues/${job.queue}`)}>
        {job.queue}
      </a>,
    ],
    ["Attempts", attempts(job)],
    ["Priority", number(job.priority)],
    ["Created", instant(job.createdAt)],
    ["Due", instant(job.runAt)],
    ["Started", instant(job.startedAt)],
    ["Ended", instant(job.endedAt)],
  ];
  if (job.timeoutMs !== null) facts.push(["Timeout", duration(job.timeoutMs)]);
  if (job.deadlineAt !== null) facts.push(["Start by", instant(job.deadlineAt)]);
  if (job.leaseUntil !== null) facts.push(["Lease until", instant(job.leaseUntil)]);
  if (job.workerId !== null) facts.push(["Worker", <span class="mono">{job.workerId}</span>]);
  if (job.traceId !== null) facts.push(["Trace", <Trace id={job.traceId} />]);
  if (job.version > 1) facts.push(["Code version", `v${job.version}`]);
  if (job.crashes > 0) facts.push(["Crashes", number(job.crashes)]);
  if (job.throttles > 0) facts.push(["Throttled", `${number(job.throttles)} times`]);
  if (job.key !== null)
    facts.push([
      "Key",
      <a class="link mono" href={href(`/jobs?key=${seg(job.key)}`)}>
        {job.key}
      </a>,
    ]);
  if (job.lane !== null)
    facts.push([
      "Lane",
      <a class="link mono" href={href(`/jobs?lane=${seg(job.lane)}`)}>
        {job.lane}
      </a>,
    ]);
  if (job.context !== null) facts.push(["Context", job.context]);
  if (job.parentId !== null)
    facts.push(["Parent", <JobLink id={job.parentId}>{shortId(job.parentId)}</JobLink>]);
  for (const { id, role, total, then } of job.batches) {
    facts.push([
      role === "job" ? "Batch" : "Comes after",
      <a class="link" title={`Batch ${id}`} href={href(`/jobs?batch=${seg(id)}`)}>
        {role === "job" ? `one of ${number(total)} jobs` : `a batch of ${number(total)} jobs`}
      </a>,
    ]);
    if (role === "job" && then !== null) facts.push(["Then", <JobLink id={then.id}>{then.name}</JobLink>]);
  }
  const { schedule } = job;
  if (schedule !== null)
    facts.push(
      [
        "Schedule",
        <a class="link" href={href(`/schedules/${seg(schedule.name)}`)}>
          {schedule.name}
        </a>,
      ],
      [
        "Occurrence",
        schedule.by === "occurrence" ? instant(schedule.at) : `${instant(schedule.at)}, by ${schedule.by}`,
      ],
      ...(["previous", "next"] as const).flatMap((which) => {
        const one = schedule[which];
        const name = which === "previous" ? "Run before" : "Run after";
        return one === null
          ? []
          : [
              [name, <JobLink id={one.jobId}>{instant(one.at)}</JobLink>] as [
                string,
                preact.ComponentChildren,
              ],
            ];
      }),
    );
  return (
    <Panel title="Facts">
      <Facts of={facts} />
    </Panel>
  );
}
