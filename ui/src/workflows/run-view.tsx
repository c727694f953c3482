// A run: graph, waterfall and table of steps with a shared selection, its signals and its related jobs.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { WorkflowHistory, WorkflowStep, JobDetail } from "../../../src/dashboard/api/contract.ts";
import { call, get } from "../data/api.ts";
import { download } from "../data/download.ts";
import { count, duration, number, plural, shortId } from "../kit/format.ts";
import { Icon } from "../kit/icons.tsx";
import { lazily } from "../kit/lazy-component.tsx";
import type { GraphView as GraphViewOf } from "./graph-view.tsx";
import { may } from "../data/live-stream.ts";
import { Ago, JobLink, State } from "../kit/labels.tsx";
import { attempt } from "../kit/toasts.tsx";
import { href, params } from "../data/router.ts";
import { SendSignal } from "./signal-form.tsx";
import { stepActions } from "./step-actions.tsx";
import { openStep, type RunSteps } from "./step-view.tsx";
import { actionsColumn, type Column, Table } from "../kit/table.tsx";
import { Panel } from "../kit/panels.tsx";
import { Waterfall } from "./waterfall-view.tsx";

/** Loaded later: the table of steps has the same content. */
const GraphView = lazily<Parameters<typeof GraphViewOf>[0]>(
  async () => (await import("./graph-view.tsx")).GraphView,
  () => <div class="graph" />,
);

/** More rows would slow the page. */
const rowsAtOnce = 200;

export function RunView({
  job,
  history,
  again,
}: {
  job: JobDetail;
  history: WorkflowHistory;
  again: () => void;
}) {
  /** Earlier pages: from `earlier` to the oldest step of the newest page at that time. */
  const older = useSignal<{ steps: readonly WorkflowStep[]; earlier: number | null } | null>(null);
  const run: RunSteps = {
    job,
    steps: useSignal<readonly WorkflowStep[]>([]),
    signals: useSignal<WorkflowHistory["signals"]>([]),
    chosen: useSignal<number | null>(null),
    again,
  };
  // Pages may overlap after an update: the newer copy wins. A gap is never shown.
  const begins = history.steps[0]?.seq ?? 0;
  const kept = older.value?.steps.filter(({ seq }) => seq < begins) ?? [];
  const whole = kept.length === 0 || older.value?.steps.some(({ seq }) => seq >= begins - 1) === true;
  const steps = whole ? [...kept, ...history.steps] : history.steps;
  const earlier = older.value === null || !whole ? history.earlier : older.value.earlier;
  run.steps.value = steps;
  run.signals.value = history.signals;
  // An address with a step opens it once.
  const asked = params.value.get("step");
  useEffect(() => {
    if (asked !== null && /^\d{1,10}$/.test(asked)) openStep(run, Number(asked));
  }, [asked]);
  const drawn = history.graph.nodes.length > 1;
  if (history.steps.length === 0 && history.children.length === 0 && !drawn) return null;
  const loadEarlier = async (): Promise<void> => {
    const page = await get<WorkflowHistory>(`/jobs/${job.id}/history`, { before: earlier, limit: 1_000 });
    older.value = { steps: [...page.steps, ...steps], earlier: page.earlier };
  };
  const all = count({ count: history.stepCount, more: history.stepCountMore });
  const note = earlier === null ? all : `the newest ${number(steps.length)} of ${all}`;
  const tools = earlier !== null && (
    <button type="button" class="button small" onClick={() => void attempt("Loaded", loadEarlier)}>
      Earlier steps
    </button>
  );
  return (
    <>
      {drawn && (
        <Panel
          title="Graph"
          note={`${plural(history.graph.nodes.length, "node")}${history.graph.cut ? ", of the newest steps" : ""}`}
        >
          <GraphView graph={history.graph} chosen={run.chosen} openStep={(seq) => openStep(run, seq)} />
        </Panel>
      )}
      {steps.length > 0 && (
        <Panel
          title="Waterfall"
          note={note}
          tools={
            <>
              {tools}
              <a
                class="button quiet small"
                href={href(`/jobs/${job.id}?tab=history`)}
                title="As JSON lines, newest first"
              >
                Lines
              </a>
              {may("jobs:export") && may("view:payload") && (
                <button
                  type="button"
                  class="button quiet small"
                  title="For holdfast check, without secrets"
                  onClick={() => void attempt("File saved", () => downloadRun(job.id))}
                >
                  <Icon name="download" size={13} /> History
                </button>
              )}
            </>
          }
        >
          <Waterfall
            steps={steps}
            endedAt={job.endedAt}
            chosen={run.chosen}
            open={(seq) => openStep(run, seq)}
          />
        </Panel>
      )}
      {steps.length > 0 && <Steps run={run} steps={steps} note={note} earlier={earlier} load={loadEarlier} />}
      {history.signals.length > 0 && (
        <Panel title="Signals" note={number(history.signals.length)}>
          <Table
            rows={history.signals}
            rowKey={({ step }) => step}
            columns={signalColumns(job.name, again)}
          />
        </Panel>
      )}
      {history.children.length > 0 && <Related job={job} related={history.children} />}
    </>
  );
}

/** Newest rows first, then back through all. Alternative to the waterfall for screen readers. */
function Steps({
  run,
  steps,
  note,
  earlier,
  load,
}: {
  run: RunSteps;
  steps: readonly WorkflowStep[];
  note: string;
  earlier: number | null;
  load: () => Promise<void>;
}) {
  // A step named in the address is scrolled into view.
  const open = useSignal(/^\d{1,10}$/.test(params.peek().get("step") ?? ""));
  /** The first sequence number after the shown rows; null: the newest are shown. */
  const until = useSignal<number | null>(null);
  const end =
    until.value === null ? steps.length : steps.findLastIndex(({ seq }) => seq < (until.value ?? 0)) + 1;
  const from = Math.max(0, end - rowsAtOnce);
  const shown = steps.slice(from, end);
  const older = async (): Promise<void> => {
    const first = shown[0]?.seq ?? 0;
    if (from === 0 && earlier !== null) await load();
    until.value = first;
  };
  const newer = (): void => {
    const next = steps[Math.min(steps.length, end + rowsAtOnce)];
    until.value = next?.seq ?? null;
  };
  return (
    <Panel title="Steps" note={note}>
      <details class="folded" open={open.value} onToggle={(event) => (open.value = event.currentTarget.open)}>
        <summary>Table of steps: {note}</summary>
        {open.value && (
          <Table
            label="Table of steps"
            rows={shown}
            rowKey={({ seq }) => String(seq)}
            row={({ seq }) => ({ class: run.chosen.value === seq ? "current" : "" })}
            columns={[...stepColumns(run), stepActions(run.job, run.again)]}
          />
        )}
      </details>
      {open.value && (steps.length > rowsAtOnce || earlier !== null) && (
        <footer>
          <span>
            Steps {number((shown[0]?.seq ?? 0) + 1)} to {number((shown.at(-1)?.seq ?? 0) + 1)}
          </span>
          <span class="spring" />
          <button
            type="button"
            class="button small"
            disabled={from === 0 && earlier === null}
            onClick={() => void attempt("Loaded", older)}
          >
            Older steps
          </button>
          <button type="button" class="button small" disabled={end >= steps.length} onClick={newer}>
            Newer steps
          </button>
        </footer>
      )}
    </Panel>
  );
}

/** The server returns 1,000; the job list has all jobs of this run. */
const mostRelated = 1_000;

function Related({ job, related }: { job: JobDetail; related: WorkflowHistory["children"] }) {
  const shown = useSignal(rowsAtOnce);
  const cut = related.length >= mostRelated;
  const made = related.some(({ relation }) => relation !== "after");
  const rows = related.slice(0, shown.value);
  return (
    <Panel
      title="Related jobs"
      note={
        rows.length < related.length || cut
          ? cut
            ? `${number(rows.length)} of ${number(related.length)} or more`
            : `${number(rows.length)} of ${number(related.length)}`
          : number(related.length)
      }
      tools={
        made && (
          <a class="button quiet small" href={href(`/jobs?workflow=${job.id}`)}>
            Jobs of this run
          </a>
        )
      }
    >
      <Table rows={rows} rowKey={({ id }) => id} columns={childColumns} />
      {(rows.length < related.length || cut) && (
        <footer>
          <span>
            {cut && made && "There may be more. “Jobs of this run” lists all called and enqueued jobs."}
          </span>
          <span class="spring" />
          {rows.length < related.length && (
            <button type="button" class="button small" onClick={() => (shown.value += rowsAtOnce)}>
              Show more
            </button>
          )}
        </footer>
      )}
    </Panel>
  );
}

/** The token goes in a header, so the file is fetched and then offered as a download. */
async function downloadRun(id: string): Promise<void> {
  const response = await call(`/jobs/${id}/run.json`);
  download(await response.blob(), `run-${id}.json`);
}

const value = { class: "mono clip", style: { maxWidth: "260px" } } as const;

const stepColumns = (run: RunSteps): Column<WorkflowStep>[] => [
  {
    head: "Step",
    cell: ({ seq, name, kind }) => (
      <>
        <button type="button" class="text-button" onClick={() => openStep(run, seq)}>
          <b>{name}</b>
        </button>{" "}
        <span class="muted small">{kind}</span>
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

function signalColumns(kind: string, again: () => void): Column<WorkflowHistory["signals"][number]>[] {
  return [
    {
      head: "Signal",
      cell: ({ name, key, step }) => (
        <>
          <b>{name}</b>
          <span class="sub">{key === null ? `without a key, step ${step}` : `key ${key}, step ${step}`}</span>
        </>
      ),
    },
    { head: "State", cell: ({ state }) => <State state={state} /> },
    {
      head: "Waited since",
      num: true,
      from: "medium",
      class: "muted",
      cell: ({ since }) => <Ago at={since} />,
    },
    { head: "Data", ...value, from: "medium", cell: ({ data }) => data ?? "" },
    actionsColumn(
      ({ name, key, state }) =>
        state === "waiting" && <SendSignal name={name} topicKey={key} kind={kind} again={again} />,
    ),
  ];
}

const childColumns: Column<WorkflowHistory["children"][number]>[] = [
  {
    head: "Job",
    cell: ({ id, name, error, hidden }) => (
      <>
        {name === null ? (
          <span class="muted mono">
            {hidden ? `${shortId(id)}, not visible to you` : `${shortId(id)}, no longer stored`}
          </span>
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
