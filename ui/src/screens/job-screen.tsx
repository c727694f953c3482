// One job: state, reason, actions. job-details.tsx has the rest and loads later.
import { signal } from "@preact/signals";
import { useLayoutEffect } from "preact/hooks";
import type { BulkAction, JobDetail, Permission } from "../../../src/dashboard/api/contract.ts";
import { STATES_OF } from "../../../src/operate/bulk-verbs.ts";
import { ApiFailure, send } from "../data/api.ts";
import { editJob } from "../operations/job-edit.tsx";
import { enqueueDialog } from "../new-job/lazy-new-job.tsx";
import { atPageTime } from "../kit/format.ts";
import { Icon } from "../kit/icons.tsx";
import { useJob } from "../jobs/job-query.ts";
import { onKey } from "../kit/shortcuts.ts";
import type { JobDetails as DetailsOf } from "../job-page/job-details.tsx";
import type { JobLog as JobLogOf } from "../job-page/log-panel.tsx";
import { lazily } from "../kit/lazy-component.tsx";
import type { CopyMenu as CopyAsOf } from "../new-job/copy-menu.tsx";
import type { JobEvents as JobEventsOf } from "../operations/audit-trail.tsx";
import type { RunHistory as RunLinesOf } from "../workflows/run-history.tsx";
import { may } from "../data/live-stream.ts";
import { attempt } from "../kit/toasts.tsx";
import { confirm } from "../kit/dialogs.tsx";
import { copy } from "../kit/clipboard.tsx";
import { Empty, Loaded } from "../kit/panels.tsx";
import { JobStateOf, LongText } from "../kit/labels.tsx";
import { openJob } from "../jobs/open-job.ts";
import { go, href, params } from "../data/router.ts";
import { actions, verbOn } from "../jobs/job-actions.ts";

// Loaded after the head of the page.
const waiting = (label: string) => () => <section class="panel" aria-busy="true" aria-label={label} />;
const JobDetails = lazily<Parameters<typeof DetailsOf>[0]>(
  async () => (await import("../job-page/job-details.tsx")).JobDetails,
  waiting("Timeline"),
);
const JobLog = lazily<Parameters<typeof JobLogOf>[0]>(
  async () => (await import("../job-page/log-panel.tsx")).JobLog,
  waiting("Log"),
);
const JobEvents = lazily<Parameters<typeof JobEventsOf>[0]>(
  async () => (await import("../operations/audit-trail.tsx")).JobEvents,
  waiting("Events"),
);
const RunHistory = lazily<Parameters<typeof RunLinesOf>[0]>(
  async () => (await import("../workflows/run-history.tsx")).RunHistory,
  waiting("History"),
);
const CopyMenu = lazily<Parameters<typeof CopyAsOf>[0]>(
  async () => (await import("../new-job/copy-menu.tsx")).CopyMenu,
  () => null,
);

/** A job that is being deleted is not requested again. */
const leaving = signal<string | null>(null);

export function JobScreen({ id }: { id: string }) {
  const query = useJob(id, { still: leaving.value === id });
  if (query.data === null && query.error instanceof ApiFailure && query.error.status === 404)
    return (
      <section class="panel">
        <Empty icon="search" title="No such job">
          <p>It never existed, was deleted, or was removed after its retention.</p>
          <a class="button" href={href("/jobs")}>
            All jobs
          </a>
        </Empty>
      </section>
    );
  return <Loaded query={query}>{(job) => <Inspector job={job} again={query.again} />}</Loaded>;
}

const isPaused = ({ paused, request }: JobDetail): boolean => paused || request === "pause";

const can: Readonly<Record<BulkAction, (job: JobDetail) => boolean>> = {
  retry: ({ state }) => state === "dead" || state === "cancelled" || state === "done",
  "run-now": ({ state }) => state === "scheduled",
  pause: (job) => job.endedAt === null && !isPaused(job),
  resume: isPaused,
  cancel: ({ endedAt }) => endedAt === null,
  // Cancelling a job that has not started ends it at once, so it needs no terminate.
  terminate: ({ endedAt, startedAt }) => endedAt === null && startedAt !== null,
  delete: ({ state }) => state !== "running",
  edit: ({ state }) => STATES_OF.edit.includes(state),
};

const looks: Readonly<Record<BulkAction, string>> = {
  retry: "primary",
  "run-now": "primary",
  pause: "",
  resume: "primary",
  cancel: "danger",
  terminate: "danger",
  delete: "danger",
  edit: "",
};

/** A done job has had its side effects, so a retry asks first. */
const runsAgain = (action: BulkAction, { state }: JobDetail): boolean =>
  action === "retry" && state === "done";

function act(action: BulkAction, job: JobDetail, again: () => void): void {
  if (!may(actions[action].permission) || !can[action](job)) return;
  if (action === "edit") {
    editJob(job, again);
    return;
  }
  const run = async (): Promise<void> => {
    if (action === "delete") {
      leaving.value = job.id;
      try {
        await send("DELETE", `/jobs/${job.id}`);
        go("/jobs");
      } finally {
        leaving.value = null;
      }
      return;
    }
    await send("POST", `/jobs/${job.id}/${action}`);
    again();
  };
  const done = {
    retry: "Retried",
    "run-now": "Due now",
    pause: job.state === "running" ? "Pauses before its next step" : "Paused",
    resume: "Resumed",
    cancel: job.state === "running" ? "Cancel requested" : "Cancelled",
    terminate: "Terminated",
    delete: "Deleted",
  }[action];
  if (!actions[action].danger && !runsAgain(action, job)) void attempt(done, run);
  else
    confirm({
      title: `${actions[action].verb} this job?`,
      text:
        action === "retry"
          ? "This job is done. It runs again with the same input and repeats its side effects."
          : action === "delete"
            ? "Deletes the job and its history."
            : action === "terminate"
              ? "Ends the job now without waiting for its handler. Its steps are not compensated and later results are discarded. Cancel waits for the handler."
              : job.state === "running"
                ? "The handler is asked to stop. If it finishes anyway, its result is kept."
                : "The job will not run.",
      verb: actions[action].verb,
      danger: actions[action].danger,
      run,
      done,
    });
}

function Inspector({ job, again }: { job: JobDetail; again: () => void }) {
  useLayoutEffect(() => {
    openJob.value = { id: job.id, name: job.name };
  }, [job.id, job.name]);
  // Before the paint, so that keys work as soon as the job is visible.
  useLayoutEffect(() => {
    const offs = (Object.keys(actions) as BulkAction[]).map((action) =>
      onKey(actions[action].key, () => act(action, job, again)),
    );
    // One key pauses and resumes.
    if (isPaused(job)) offs.push(onKey(actions.pause.key, () => act("resume", job, again)));
    return () => offs.forEach((off) => off());
  });
  const tab = tabs.find((one) => one.tab === params.value.get("tab"))?.tab ?? "";
  return (
    <>
      <div class="head">
        <div style={{ minWidth: 0 }}>
          <div class="row">
            <h1>{job.name}</h1>
            <JobStateOf job={job} />
          </div>
          <div class="row tight under">
            <span class="mono">{job.id}</span>
            <button
              type="button"
              class="button quiet small icon"
              aria-label="Copy the id"
              onClick={() => void copy(job.id)}
            >
              <Icon name="copy" size={13} />
            </button>
            <CopyMenu job={job} />
          </div>
        </div>
        <span class="spring" />
        <div class="row">
          {may("jobs:enqueue") && (
            <button type="button" class="button" onClick={() => enqueueDialog(job)}>
              <Icon name="copy" size={14} /> Copy as new
            </button>
          )}
          {(Object.keys(actions) as BulkAction[])
            .filter((action) => may(actions[action].permission) && can[action](job))
            .map((action) => (
              <button
                key={action}
                type="button"
                class={`button ${runsAgain(action, job) ? "" : looks[action]}`.trim()}
                onClick={() => act(action, job, again)}
              >
                {verbOn(action, job.state === "dead")}
              </button>
            ))}
        </div>
      </div>
      <div
        class={`banner ${{ dead: "bad", done: "good", cancelled: "info", running: "info" }[job.why.reason] ?? "info"}`}
        role="status"
      >
        <span class="clip" style={{ whiteSpace: "normal", overflowWrap: "anywhere" }}>
          <LongText of={atPageTime(job.why.text)} />
        </span>
      </div>
      {job.request !== null && (
        <div class="banner info" role="status">
          {job.request === "pause"
            ? "Pause requested: it pauses before its next step."
            : "Cancel requested: the handler has not stopped yet."}
        </div>
      )}
      <Tabs id={job.id} tab={tab} />
      {tab === "log" && !job.payloadHidden ? (
        <JobLog id={job.id} />
      ) : tab === "events" ? (
        <JobEvents id={job.id} />
      ) : tab === "history" ? (
        <RunHistory id={job.id} live={job.endedAt === null} />
      ) : (
        <JobDetails job={job} />
      )}
    </>
  );
}

const tabs: readonly { name: string; tab: string; needs?: Permission }[] = [
  { name: "Details", tab: "" },
  { name: "Log", tab: "log" },
  { name: "Events", tab: "events", needs: "audit:view" },
  // Tabs of a run; a job without steps has none.
  { name: "History", tab: "history" },
];

/** Links, so that the address names the tab. */
function Tabs({ id, tab }: { id: string; tab: string }) {
  return (
    <nav class="tabs" aria-label="Job views">
      {tabs
        .filter((one) => one.needs === undefined || may(one.needs))
        .filter((one) => one.tab !== "history" || tab === "history")
        .map((one) => (
          <a
            key={one.tab}
            href={href(`/jobs/${id}${one.tab === "" ? "" : `?tab=${one.tab}`}`)}
            aria-current={one.tab === tab ? "page" : undefined}
          >
            {one.name}
          </a>
        ))}
    </nav>
  );
}
