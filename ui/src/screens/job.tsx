// One job: where it stands and why, what happened to it, what it was given and what it gave.
import { useSignal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import type { BulkAction, FlowHistory, JobDetail } from "../../../src/dashboard/contract.ts";
import { ApiFailure, get, seg, send } from "../api.ts";
import { actions } from "../bulk.tsx";
import { enqueueDialog } from "../enqueue.tsx";
import { bytes, duration, instant, number, plural } from "../format.ts";
import { GraphView } from "../graph-view.tsx";
import { Icon, type IconName } from "../icons.tsx";
import { onKey } from "../keys.ts";
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
  showDialog,
  Stack,
  State,
} from "../parts.tsx";
import { go, href } from "../router.ts";
import { useQuery } from "../use-query.ts";

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
};

function act(action: BulkAction, job: JobDetail, again: () => void): void {
  if (!may(actions[action].permission) || !can[action](job)) return;
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
                class={`button ${action === "retry" || action === "run-now" ? "primary" : "danger"}`}
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
      <div class="grid aside">
        <div class="stack">
          <Timeline job={job} />
          {job.errors.length > 0 && <Attempts job={job} />}
          <Flow id={job.id} />
          <Payload job={job} />
        </div>
        <Facts job={job} />
      </div>
    </>
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
      kind: last || job.state !== "cancelled" ? "bad" : "warn",
      icon: "dead",
    });
  }
  const lastFailure = failures.at(-1)?.at ?? 0;
  const started = job.startedAt;
  if (started !== null && (started > lastFailure || job.state === "done" || job.state === "running"))
    list.push({
      at: started,
      what: `Attempt ${job.attempt} started`,
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
        ...runMs,
      });
    if (job.state === "cancelled" && failures.length === 0)
      list.push({ at: job.endedAt, what: "Cancelled", kind: "warn", icon: "minus" });
  }
  return list;
}

function Timeline({ job }: { job: JobDetail }) {
  const list = moments(job);
  return (
    <section class="panel" aria-label="Timeline">
      <header>
        <h2>Timeline</h2>
      </header>
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
            {moment.runMs !== undefined && (
              <>
                <span class="why">ran {duration(moment.runMs)}</span>
                <Bar job={job} runMs={moment.runMs} bad={job.state === "dead"} />
              </>
            )}
          </li>
        ))}
      </ol>
    </section>
  );
}

/** Waiting and running, side by side. */
function Bar({ job, runMs, bad }: { job: JobDetail; runMs: number; bad: boolean }) {
  const waitMs = Math.max(0, (job.startedAt ?? 0) - job.createdAt);
  const all = Math.max(1, waitMs + runMs);
  return (
    <span class="bar" role="img" aria-label={`waited ${duration(waitMs)}, ran ${duration(runMs)}`}>
      <i class="wait" style={{ width: `${(waitMs / all) * 100}%` }} />
      <i
        class={bad ? "bad" : ""}
        style={{ left: `${(waitMs / all) * 100}%`, width: `${(runMs / all) * 100}%` }}
      />
    </span>
  );
}

function Attempts({ job }: { job: JobDetail }) {
  const newest = [...job.errors].reverse();
  const open = useSignal(0);
  return (
    <section class="panel" aria-label="Failures">
      <header>
        <h2>Failures</h2>
        <span class="muted small">{number(newest.length)}, newest first</span>
        <span class="spring" />
        {job.errorGroup !== null && (
          <a class="link small" href={href(`/jobs?errorGroup=${job.errorGroup}`)}>
            Jobs with this error
          </a>
        )}
      </header>
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
            {open.value === i && failure.stack !== null ? (
              <Stack text={failure.stack} />
            ) : (
              <pre class="code">{failure.message}</pre>
            )}
          </div>
        ))}
      </div>
    </section>
  );
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
    <section class="panel" aria-label={title}>
      <header>
        <h2>{title}</h2>
        <span class="muted small">{note}</span>
        <span class="spring" />
        <button type="button" class="button quiet small" onClick={() => void copy(text ?? "")}>
          <Icon name="copy" size={13} /> Copy
        </button>
      </header>
      <div class="body">
        <Json text={text ?? "null"} label={title} />
      </div>
    </section>
  );
}

function Facts({ job }: { job: JobDetail }) {
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
    facts.push(["Parent", <JobLink id={job.parentId}>{job.parentId.slice(-12)}</JobLink>]);
  return (
    <section class="panel" aria-label="Facts">
      <header>
        <h2>Facts</h2>
      </header>
      <dl class="facts">
        {facts.map(([name, value]) => (
          <>
            <dt key={`${name} name`}>{name}</dt>
            <dd key={name}>{value}</dd>
          </>
        ))}
      </dl>
    </section>
  );
}

function Flow({ id }: { id: string }) {
  const query = useQuery(`flow ${id}`, (signal) => get<FlowHistory>(`/jobs/${id}/history`, {}, signal), {
    live: true,
  });
  const history = query.data;
  if (
    history === null ||
    (history.steps.length === 0 && history.children.length === 0 && history.graph.nodes.length <= 1)
  )
    return null;
  return (
    <>
      {history.graph.nodes.length > 1 && (
        <section class="panel" aria-label="Graph">
          <header>
            <h2>Graph</h2>
            <span class="muted small">{plural(history.graph.nodes.length, "node")}</span>
          </header>
          <GraphView graph={history.graph} />
        </section>
      )}
      {history.steps.length > 0 && (
        <section class="panel" aria-label="Steps">
          <header>
            <h2>Steps</h2>
            <span class="muted small">{number(history.steps.length)}</span>
          </header>
          <div class="scroll">
            <table>
              <thead>
                <tr>
                  <th scope="col">Step</th>
                  <th scope="col">State</th>
                  <th scope="col" class="num">
                    Tries
                  </th>
                  <th scope="col" class="num">
                    Took
                  </th>
                  <th scope="col">Result</th>
                </tr>
              </thead>
              <tbody>
                {history.steps.slice(0, 500).map((step, i) => (
                  <tr key={`${step.name} ${i}`}>
                    <td>
                      <b>{step.name}</b> <span class="muted small">{step.kind}</span>
                    </td>
                    <td>
                      <State state={step.state} />
                    </td>
                    <td class="num">{step.tries}</td>
                    <td class="num nowrap">
                      {step.endedAt !== null ? (
                        duration(step.endedAt - step.startedAt)
                      ) : step.until === null ? (
                        "—"
                      ) : (
                        <Ago at={step.until} />
                      )}
                    </td>
                    <td class="mono clip" style={{ maxWidth: "260px" }}>
                      {step.jobId !== null ? (
                        <JobLink id={step.jobId}>{step.jobId.slice(-12)}</JobLink>
                      ) : (
                        (step.error ?? step.output ?? "")
                      )}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </section>
      )}
      {history.signals.length > 0 && (
        <section class="panel" aria-label="Signals">
          <header>
            <h2>Signals</h2>
            <span class="muted small">{number(history.signals.length)}</span>
          </header>
          <div class="scroll">
            <table>
              <thead>
                <tr>
                  <th scope="col">Signal</th>
                  <th scope="col">State</th>
                  <th scope="col" class="num">
                    Waited since
                  </th>
                  <th scope="col">Data</th>
                  <th scope="col">
                    <span class="hidden-text">Actions</span>
                  </th>
                </tr>
              </thead>
              <tbody>
                {history.signals.map((signal) => (
                  <tr key={signal.step}>
                    <td>
                      <b>{signal.name}</b>
                      <span class="sub">
                        {signal.key === null ? "without a key" : `key ${signal.key}`}, step {signal.step}
                      </span>
                    </td>
                    <td>
                      <State state={signal.state} />
                    </td>
                    <td class="num muted">
                      <Ago at={signal.since} />
                    </td>
                    <td class="mono clip" style={{ maxWidth: "260px" }}>
                      {signal.data ?? ""}
                    </td>
                    <td class="right">
                      {signal.state === "waiting" && may("flows:signal") && (
                        <button
                          type="button"
                          class="button small"
                          aria-label={`Send ${signal.name}`}
                          onClick={() =>
                            showDialog(`Send ${signal.name}`, (close) => (
                              <SendSignal
                                name={signal.name}
                                topicKey={signal.key}
                                close={close}
                                again={query.again}
                              />
                            ))
                          }
                        >
                          Send
                        </button>
                      )}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </section>
      )}
      {history.children.length > 0 && (
        <section class="panel" aria-label="Related jobs">
          <header>
            <h2>Related jobs</h2>
            <span class="muted small">{number(history.children.length)}</span>
          </header>
          <div class="scroll">
            <table>
              <thead>
                <tr>
                  <th scope="col">Job</th>
                  <th scope="col">Relation</th>
                  <th scope="col">State</th>
                </tr>
              </thead>
              <tbody>
                {history.children.slice(0, 200).map((child) => (
                  <tr key={child.id}>
                    <td>
                      {child.name === null ? (
                        <span class="muted mono">{child.id.slice(-12)}, not kept any more</span>
                      ) : (
                        <JobLink id={child.id}>{child.name}</JobLink>
                      )}
                      {child.error !== null && <span class="sub clip">{child.error}</span>}
                    </td>
                    <td class="muted">
                      {child.relation === "after"
                        ? "this job runs after it"
                        : child.relation === "called"
                          ? `called in step ${child.step ?? ""}`
                          : "enqueued by this job"}
                    </td>
                    <td>{child.state === null ? "—" : <State state={child.state} />}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </section>
      )}
    </>
  );
}

function SendSignal({
  name,
  topicKey: key,
  close,
  again,
}: {
  name: string;
  topicKey: string | null;
  close: () => void;
  again: () => void;
}) {
  const form = useRef<HTMLFormElement>(null);
  const wrong = useSignal<string | null>(null);
  return (
    <form
      ref={form}
      method="dialog"
      onSubmit={(event) => {
        event.preventDefault();
        const text = String(new FormData(form.current ?? undefined).get("data") ?? "").trim();
        let data: unknown = null;
        try {
          data = text === "" ? null : JSON.parse(text);
        } catch (error) {
          wrong.value = (error as Error).message;
          return;
        }
        void attempt("Sent: the run goes on.", () => send("POST", "/signals", { name, key, data })).then(
          (ok) => {
            if (!ok) return;
            close();
            again();
          },
        );
      }}
    >
      <header>
        <h2>Send {name}</h2>
      </header>
      <div class="content">
        <label class="field">
          <span>Data (JSON)</span>
          <textarea class="input mono" name="data" rows={5} placeholder="null" spellcheck={false} />
        </label>
        {wrong.value !== null && (
          <p class="small" role="alert">
            {wrong.value}
          </p>
        )}
      </div>
      <footer>
        <button type="button" class="button" onClick={close}>
          Not now
        </button>
        <button type="submit" class="button primary">
          Send
        </button>
      </footer>
    </form>
  );
}
