// One job: where it stands and why, what happened to it, what it was given and what it gave.
import { useSignal } from "@preact/signals";
import { useLayoutEffect } from "preact/hooks";
import type { BulkAction, ExpectedSteps, FlowHistory, JobDetail } from "../../../src/dashboard/contract.ts";
import { Act, openForm } from "../actions.tsx";
import { ApiFailure, call, get, seg, send } from "../api.ts";
import { editJob } from "../bulk-edit.tsx";
import { Diff } from "../diff-view.tsx";
import { enqueueDialog } from "../enqueue.tsx";
import { bytes, duration, instant, number, plural, shortId } from "../format.ts";
import { download } from "../download.ts";
import { useExpected } from "../expected.ts";
import { Icon, type IconName } from "../icons.tsx";
import { commandOf } from "../job-filter.ts";
import { onKey } from "../keys.ts";
import { GraphView, JobLog } from "../lazy-run.tsx";
import { LifeBar } from "../life.tsx";
import { may } from "../live.ts";
import {
  Ago,
  attempt,
  confirm,
  copy,
  Empty,
  JobLink,
  JobStateOf,
  Json,
  Loaded,
  Stack,
  State,
} from "../parts.tsx";
import { go, href, params } from "../router.ts";
import { page } from "../settings.ts";
import { stepActions } from "../step-actions.tsx";
import { actionsColumn, type Column, Facts, Panel, Table } from "../table.tsx";
import { useQuery } from "../use-query.ts";
import { actions } from "../verbs.ts";
import { Waterfall } from "../waterfall-view.tsx";

export function Job({ id }: { id: string }) {
  const query = useQuery(`job ${id}`, (signal) => get<JobDetail>(`/jobs/${id}`, {}, signal), { live: true });
  if (query.data === null && query.error instanceof ApiFailure && query.error.status === 404)
    return (
      <section class="panel">
        <Empty icon="search" title="No such job">
          <p>It never existed, was deleted, or its retention has passed.</p>
          <a class="button" href={href("/jobs")}>
            All jobs
          </a>
        </Empty>
      </section>
    );
  return <Loaded query={query}>{(job) => <Inspector job={job} again={query.again} />}</Loaded>;
}

const can: Readonly<Record<BulkAction, (job: JobDetail) => boolean>> = {
  retry: ({ state }) => state === "dead" || state === "cancelled" || state === "done",
  "run-now": ({ state }) => state === "scheduled",
  cancel: ({ state }) =>
    state === "scheduled" || state === "ready" || state === "running" || state === "waiting",
  delete: ({ state }) => state !== "running",
  edit: ({ state }) => state === "scheduled" || state === "ready" || state === "waiting",
};

const looks: Readonly<Record<BulkAction, string>> = {
  retry: "primary",
  "run-now": "primary",
  cancel: "danger",
  delete: "danger",
  edit: "",
};

function act(action: BulkAction, job: JobDetail, again: () => void): void {
  if (!may(actions[action].permission) || !can[action](job)) return;
  if (action === "edit") {
    editJob(job, again);
    return;
  }
  const run = async (): Promise<void> => {
    if (action === "delete") {
      await send("DELETE", `/jobs/${job.id}`);
      go("/jobs");
      return;
    }
    await send("POST", `/jobs/${job.id}/${action}`);
    again();
  };
  const done = {
    retry: "It runs again.",
    "run-now": "It is due now.",
    cancel: job.state === "running" ? "It was asked to stop." : "It is cancelled.",
    delete: "It is deleted.",
  }[action];
  if (action === "retry" || action === "run-now") void attempt(done, run);
  else
    confirm({
      title: `${actions[action].verb} this job?`,
      text:
        action === "delete"
          ? "Nothing is kept of it."
          : job.state === "running"
            ? "Its handler is asked to stop; if it finishes all the same, its result stands."
            : "It will not run.",
      verb: actions[action].verb,
      danger: true,
      run,
      done,
    });
}

function Inspector({ job, again }: { job: JobDetail; again: () => void }) {
  // Before the paint: who sees the job can press a key.
  useLayoutEffect(() => {
    const offs = (Object.keys(actions) as BulkAction[]).map((action) =>
      onKey(actions[action].key, () => act(action, job, again)),
    );
    return () => offs.forEach((off) => off());
  });
  const tab = params.value.get("tab") === "log" ? "log" : "";
  return (
    <>
      <div class="head">
        <div style={{ minWidth: 0 }}>
          <div class="row">
            <h1>{job.name}</h1>
            <JobStateOf job={job} />
          </div>
          <p class="row tight">
            <span class="mono">{job.id}</span>
            <button
              type="button"
              class="button quiet small icon"
              aria-label="Copy the id"
              onClick={() => void copy(job.id)}
            >
              <Icon name="copy" size={13} />
            </button>
            <button
              type="button"
              class="button quiet small"
              title="The same in a terminal"
              onClick={() => void copy(commandOf("list", { ids: [job.id] }))}
            >
              Copy as command
            </button>
          </p>
        </div>
        <span class="spring" />
        <div class="row">
          {may("jobs:enqueue") && (
            <button
              type="button"
              class="button"
              onClick={() => enqueueDialog({ name: job.name, queue: job.queue, input: job.input ?? "null" })}
            >
              <Icon name="copy" size={14} /> Copy as new
            </button>
          )}
          {(Object.keys(actions) as BulkAction[])
            .filter((action) => may(actions[action].permission) && can[action](job))
            .map((action) => (
              <button
                key={action}
                type="button"
                class={`button ${looks[action]}`}
                onClick={() => act(action, job, again)}
              >
                {actions[action].verb}
              </button>
            ))}
        </div>
      </div>
      <div
        class={`banner ${{ dead: "bad", done: "good", cancelled: "info", running: "info" }[job.why.reason] ?? "info"}`}
        role="status"
      >
        <span class="clip" style={{ whiteSpace: "normal", overflowWrap: "anywhere" }}>
          {job.why.text}
        </span>
      </div>
      <Tabs id={job.id} tab={tab} />
      {tab === "log" && !job.payloadHidden ? <JobLog id={job.id} /> : <Details job={job} />}
    </>
  );
}

const tabs = [
  { name: "Details", tab: "" },
  { name: "Log", tab: "log" },
] as const;

/** Links, so that the address says which. */
function Tabs({ id, tab }: { id: string; tab: string }) {
  return (
    <nav class="tabs" aria-label="Of this job">
      {tabs.map((one) => (
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

function Details({ job }: { job: JobDetail }) {
  const flow = useQuery(
    `flow ${job.id}`,
    (signal) => get<FlowHistory>(`/jobs/${job.id}/history`, {}, signal),
    { live: job.endedAt === null },
  );
  const history = flow.data;
  const expected = useExpected(job.id, job.endedAt === null);
  return (
    <div class="grid aside">
      <div class="stack">
        <Timeline
          job={job}
          firstStepAt={history?.earlier === null ? (history.steps[0]?.startedAt ?? null) : null}
        />
        {job.errors.length > 0 && <Attempts job={job} />}
        {history !== null && <Flow job={job} history={history} expected={expected} again={flow.again} />}
        <Payload job={job} />
      </div>
      <FactsOf job={job} />
    </div>
  );
}

interface Moment {
  readonly at: number | null;
  readonly what: string;
  readonly why?: string;
  readonly kind: "" | "good" | "bad" | "info" | "warn";
  readonly icon: IconName;
  readonly waitMs?: number;
  readonly runMs?: number;
}

/** From the job's own times and its failures: no event rows are written for a plain job. */
function moments(job: JobDetail): Moment[] {
  const list: Moment[] = [
    {
      at: job.createdAt,
      what: "Enqueued",
      kind: "",
      icon: "plus",
      ...(job.context === null ? {} : { why: job.context }),
    },
  ];
  const failures = job.errors.filter(({ attempt: n }) => n > 0);
  for (const failure of failures) {
    const last = failure === failures.at(-1) && job.state === "dead";
    list.push({
      at: failure.at,
      what:
        job.state === "cancelled" && failure === failures.at(-1)
          ? "Cancelled"
          : `Attempt ${failure.attempt} failed`,
      why: failure.message,
      ...(failure.ranMs === null ? {} : { runMs: failure.ranMs }),
      kind: last || job.state !== "cancelled" ? "bad" : "warn",
      icon: "dead",
    });
  }
  const lastFailure = failures.at(-1)?.at ?? 0;
  const started = job.startedAt;
  if (started !== null && (started > lastFailure || job.state === "done" || job.state === "running"))
    list.push({
      at: started,
      // A step or a sleep gives the attempt back: the run has used none yet.
      what: job.attempt === 0 ? "Started" : `Attempt ${job.attempt} started`,
      kind: "info",
      icon: "play",
      ...(job.workerId === null ? {} : { why: `on ${job.workerId}` }),
      ...(job.runAt === null ? {} : { waitMs: Math.max(0, started - job.runAt) }),
    });
  if (job.state === "scheduled" && job.runAt !== null)
    list.push({
      at: job.runAt,
      what: failures.length > 0 ? "Next attempt" : "Due",
      kind: "warn",
      icon: "clock",
    });
  if (job.endedAt !== null) {
    const runMs = started === null ? {} : { runMs: Math.max(0, job.endedAt - started) };
    if (job.state === "done")
      list.push({ at: job.endedAt, what: "Done", kind: "good", icon: "check", ...runMs });
    if (job.state === "dead")
      list.push({
        at: job.endedAt,
        what: "Dead",
        kind: "bad",
        icon: "dead",
        why: `after ${plural(job.attempt, "attempt")}`,
      });
    if (job.state === "cancelled" && failures.length === 0)
      list.push({ at: job.endedAt, what: "Cancelled", kind: "warn", icon: "minus" });
  }
  return list;
}

function Timeline({ job, firstStepAt }: { job: JobDetail; firstStepAt: number | null }) {
  const list = moments(job);
  return (
    <Panel title="Timeline">
      <LifeBar job={job} firstStepAt={firstStepAt} />
      <ol class="timeline">
        {list.map((moment, i) => (
          <li key={i}>
            <span class={`dot ${moment.kind}`}>
              <Icon name={moment.icon} size={11} />
            </span>
            <span class="what">{moment.what}</span>
            <span class="muted small nowrap" title={instant(moment.at)}>
              {instant(moment.at)}
            </span>
            {moment.why !== undefined && <span class="why">{moment.why}</span>}
            {moment.waitMs !== undefined && <span class="why">waited {duration(moment.waitMs)}</span>}
            {moment.runMs !== undefined && <span class="why">ran {duration(moment.runMs)}</span>}
          </li>
        ))}
      </ol>
    </Panel>
  );
}

function Attempts({ job }: { job: JobDetail }) {
  const newest = [...job.errors].reverse();
  const open = useSignal(0);
  const compared = useSignal(-1);
  return (
    <Panel
      title="Failures"
      note={`${number(newest.length)}, newest first`}
      tools={
        job.errorGroup !== null && (
          <a class="link small" href={href(`/errors/${job.errorGroup}`)}>
            All with this error
          </a>
        )
      }
    >
      <div class="body stack">
        {newest.map((failure, i) => (
          <div key={failure.at + failure.attempt} class="stack" style={{ gap: "8px" }}>
            <div class="row">
              <State state="failed" />
              <b>Attempt {failure.attempt}</b>
              <span class="muted small">
                <Ago at={failure.at} />
              </span>
              {i > 0 && failure.message === newest[i - 1]?.message && <span class="tag">same error</span>}
              <span style={{ flex: 1 }} />
              {differs(failure, newest[i + 1]) && (
                <button
                  type="button"
                  class="button quiet small"
                  aria-expanded={compared.value === i}
                  onClick={() => (compared.value = compared.value === i ? -1 : i)}
                >
                  {compared.value === i
                    ? "Hide differences"
                    : `Compare with attempt ${newest[i + 1]?.attempt}`}
                </button>
              )}
              {failure.stack !== null && (
                <button
                  type="button"
                  class="button quiet small"
                  aria-expanded={open.value === i}
                  onClick={() => (open.value = open.value === i ? -1 : i)}
                >
                  {open.value === i ? "Hide stack" : "Stack"}
                </button>
              )}
            </div>
            {compared.value === i && newest[i + 1] !== undefined ? (
              <Diff
                before={wholeOf(newest[i + 1]!)}
                after={wholeOf(failure)}
                label={`Error of attempt ${newest[i + 1]?.attempt} and of attempt ${failure.attempt}`}
              />
            ) : open.value === i && failure.stack !== null ? (
              <Stack text={failure.stack} />
            ) : (
              <pre class="code">{failure.message}</pre>
            )}
          </div>
        ))}
      </div>
    </Panel>
  );
}

type Failed = JobDetail["errors"][number];

/** The message and its frames; a stack has the message in it. */
function wholeOf({ message, stack }: Failed): string {
  if (stack === null) return message;
  return stack.includes(message) ? stack : `${message}\n${stack}`;
}

function differs(one: Failed, before: Failed | undefined): boolean {
  return before !== undefined && wholeOf(one) !== wholeOf(before);
}

function Payload({ job }: { job: JobDetail }) {
  if (job.payloadHidden)
    return (
      <section class="panel" aria-label="Payload">
        <Empty icon="audit" title="Payloads are hidden">
          <p>You may see this job, but not what it was given.</p>
        </Empty>
      </section>
    );
  return (
    <>
      <Part title="Input" text={job.input} note={bytes(job.inputBytes)} />
      {job.output !== null && <Part title="Output" text={job.output} note="" />}
      {job.progress !== null && <Part title="Progress" text={job.progress} note="" />}
    </>
  );
}

function Part({ title, text, note }: { title: string; text: string | null; note: string }) {
  return (
    <Panel
      title={title}
      note={note}
      tools={
        <button type="button" class="button quiet small" onClick={() => void copy(text ?? "")}>
          <Icon name="copy" size={13} /> Copy
        </button>
      }
    >
      <div class="body">
        <Json text={text ?? "null"} label={title} />
      </div>
    </Panel>
  );
}

function Trace({ id }: { id: string }) {
  const words = <span class="mono">{id.slice(0, 16)}…</span>;
  if (typeof page.traceLink !== "string") return <span title={id}>{words}</span>;
  return (
    <a
      class="link"
      title={id}
      href={page.traceLink.replaceAll("{traceId}", id)}
      target="_blank"
      rel="noreferrer"
    >
      {words}
    </a>
  );
}

function FactsOf({ job }: { job: JobDetail }) {
  const facts: [string, preact.ComponentChildren][] = [
    [
      "Queue",
      <a class="link" href={href(`/queues/${job.queue}`)}>
        {job.queue}
      </a>,
    ],
    ["Attempt", `${job.attempt} of ${job.maxAttempts}`],
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
  return (
    <Panel title="Facts">
      <Facts of={facts} />
    </Panel>
  );
}

function Flow({
  job,
  history,
  expected,
  again,
}: {
  job: JobDetail;
  history: FlowHistory;
  expected: ExpectedSteps | null;
  again: () => void;
}) {
  const older = useSignal<{ steps: FlowHistory["steps"]; earlier: number | null } | null>(null);
  const drawn = history.graph.nodes.length > 1 || (expected?.steps.length ?? 0) > 0;
  if (history.steps.length === 0 && history.children.length === 0 && !drawn) return null;
  // What was loaded of earlier pages, and the newest as it is now.
  const begins = history.earlier ?? 0;
  const kept = older.value?.steps.slice(0, Math.max(0, begins - (older.value.earlier ?? 0))) ?? [];
  const steps = [...kept, ...history.steps];
  const earlier = older.value === null ? history.earlier : older.value.earlier;
  const loadEarlier = async (): Promise<void> => {
    const page = await get<FlowHistory>(`/jobs/${job.id}/history`, { before: earlier, limit: 1_000 });
    older.value = { steps: [...page.steps, ...kept], earlier: page.earlier };
  };
  const note =
    earlier === null
      ? number(history.stepCount)
      : `the newest ${number(steps.length)} of ${number(history.stepCount)}`;
  const tools = earlier !== null && (
    <button type="button" class="button small" onClick={() => void attempt("Loaded.", loadEarlier)}>
      Earlier steps
    </button>
  );
  return (
    <>
      {drawn && (
        <Panel title="Graph" note={plural(history.graph.nodes.length, "node")}>
          <GraphView graph={history.graph} expected={expected} />
        </Panel>
      )}
      {steps.length > 0 && (
        <Panel
          title="Waterfall"
          note={note}
          tools={
            <>
              {tools}
              {may("jobs:export") && may("view:payload") && (
                <button
                  type="button"
                  class="button quiet small"
                  title="For holdfast check, with secrets taken out"
                  onClick={() => void attempt("The file is yours.", () => downloadRun(job.id))}
                >
                  <Icon name="download" size={13} /> History
                </button>
              )}
            </>
          }
        >
          <Waterfall steps={steps} endedAt={job.endedAt} />
        </Panel>
      )}
      {steps.length > 0 && (
        <Panel title="Steps" note={note} tools={tools}>
          <Table
            label="Table of steps"
            rows={steps.slice(-500)}
            rowKey={({ name }, i) => `${name} ${i}`}
            columns={[...stepColumns, stepActions(job, again)]}
          />
        </Panel>
      )}
      {history.signals.length > 0 && (
        <Panel title="Signals" note={number(history.signals.length)}>
          <Table rows={history.signals} rowKey={({ step }) => step} columns={signalColumns(again)} />
        </Panel>
      )}
      {history.children.length > 0 && (
        <Panel title="Related jobs" note={number(history.children.length)}>
          <Table
            rows={history.children.slice(0, 200)}
            rowKey={({ id: child }) => child}
            columns={childColumns}
          />
        </Panel>
      )}
    </>
  );
}

/** The token goes in a header, so the file is fetched and then handed to the browser. */
async function downloadRun(id: string): Promise<void> {
  const response = await call(`/jobs/${id}/run.json`);
  download(await response.blob(), `run-${id}.json`);
}

const value = { class: "mono clip", style: { maxWidth: "260px" } } as const;

const stepColumns: Column<FlowHistory["steps"][number]>[] = [
  {
    head: "Step",
    cell: ({ name, kind }) => (
      <>
        <b>{name}</b> <span class="muted small">{kind}</span>
      </>
    ),
  },
  { head: "State", cell: ({ state }) => <State state={state} /> },
  { head: "Tries", num: true, cell: ({ tries }) => tries },
  {
    head: "Took",
    num: true,
    class: "nowrap",
    cell: ({ startedAt, endedAt, until, state }) =>
      endedAt !== null ? (
        duration(endedAt - startedAt)
      ) : until === null || state === "cancelled" ? (
        "—"
      ) : (
        <Ago at={until} />
      ),
  },
  {
    head: "Result",
    ...value,
    cell: ({ jobId, error, output }) =>
      jobId === null ? (error ?? output ?? "") : <JobLink id={jobId}>{shortId(jobId)}</JobLink>,
  },
];

function signalColumns(again: () => void): Column<FlowHistory["signals"][number]>[] {
  return [
    {
      head: "Signal",
      cell: ({ name, key, step }) => (
        <>
          <b>{name}</b>
          <span class="sub">
            {key === null ? "without a key" : `key ${key}`}, step {step}
          </span>
        </>
      ),
    },
    { head: "State", cell: ({ state }) => <State state={state} /> },
    { head: "Waited since", num: true, class: "muted", cell: ({ since }) => <Ago at={since} /> },
    { head: "Data", ...value, cell: ({ data }) => data ?? "" },
    actionsColumn(
      ({ name, key, state }) =>
        state === "waiting" && (
          <Act verb="Send" on={name} needs="flows:signal" press={() => sendSignal(name, key, again)} />
        ),
    ),
  ];
}

const childColumns: Column<FlowHistory["children"][number]>[] = [
  {
    head: "Job",
    cell: ({ id, name, error }) => (
      <>
        {name === null ? (
          <span class="muted mono">{shortId(id)}, not kept any more</span>
        ) : (
          <JobLink id={id}>{name}</JobLink>
        )}
        {error !== null && <span class="sub clip">{error}</span>}
      </>
    ),
  },
  {
    head: "Relation",
    class: "muted",
    cell: ({ relation, step }) =>
      relation === "after"
        ? "this job runs after it"
        : relation === "called"
          ? `called in step ${step ?? ""}`
          : "enqueued by this job",
  },
  { head: "State", cell: ({ state }) => (state === null ? "—" : <State state={state} />) },
];

function sendSignal(name: string, key: string | null, again: () => void): void {
  openForm({
    title: `Send ${name}`,
    verb: "Send",
    then: again,
    body: (
      <label class="field">
        <span>Data (JSON)</span>
        <textarea class="input mono" name="data" rows={5} placeholder="null" spellcheck={false} />
      </label>
    ),
    run: async (fields) => {
      await send("POST", "/signals", { name, key, data: fields.json("data", "data") });
      return "Sent: the run goes on.";
    },
  });
}
