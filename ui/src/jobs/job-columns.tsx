// Columns of job lists. The selection is kept in this browser, per list.
import type { JobLine } from "../../../src/dashboard/api/contract.ts";
import { bytes, duration, number, shortId } from "../kit/format.ts";
import { Ago, JobLink, JobStateOf } from "../kit/labels.tsx";
import { now } from "../data/page-clock.ts";
import { showDialog } from "../kit/dialogs.tsx";
import { href } from "../data/router.ts";
import { keptList, previews } from "../data/page-settings.ts";
import type { Column } from "../kit/table.tsx";

/** The lists with their own column settings. */
export type JobsOfName = "jobs" | "scheduled" | "retries";

const took = ({ startedAt, endedAt, state }: JobLine) =>
  startedAt !== null && endedAt === null && state === "running" ? (
    <Elapsed since={startedAt} />
  ) : startedAt === null || endedAt === null ? (
    "—"
  ) : (
    duration(endedAt - startedAt)
  );
const waited = ({ startedAt, runAt, createdAt }: JobLine): string =>
  startedAt === null ? "—" : duration(startedAt - (runAt ?? createdAt));

/** Counts up every second by the database's clock. */
function Elapsed({ since }: { since: number }) {
  const ms = Math.max(0, now.value - since);
  return (
    <span class="running-for" title="Running for">
      {duration(Math.floor(ms / 1_000) * 1_000)}
    </span>
  );
}

const dash = <span class="muted">—</span>;

const queueLink = ({ queue }: JobLine) => (
  <a class="link" href={href(`/queues/${queue}`)}>
    {queue}
  </a>
);
/** Used if the lane has its own column. */
const queueAlone: Column<JobLine> = { head: "Queue", from: "medium", cell: queueLink };

/** A text of any length, cut, with the rest in its title. */
const cut = (of: (job: JobLine) => string | null): Pick<Column<JobLine>, "style" | "title"> => ({
  style: { maxWidth: "190px" },
  title: (job) => of(job) ?? "",
});

/** The job column is always first. */
const columns: Readonly<Record<string, Column<JobLine>>> = {
  state: { head: "State", cell: (job) => <JobStateOf job={job} /> },
  queue: {
    head: "Queue",
    from: "medium",
    style: { maxWidth: "190px" },
    title: ({ lane }) => lane ?? "",
    cell: (one) => (
      <>
        {queueLink(one)}
        {one.lane !== null && <span class="sub clip">{one.lane}</span>}
      </>
    ),
  },
  lane: {
    head: "Lane",
    from: "medium",
    class: "mono clip",
    ...cut(({ lane }) => lane),
    cell: ({ lane }) => lane ?? dash,
  },
  key: {
    head: "Key",
    from: "medium",
    class: "mono clip",
    ...cut(({ key }) => key),
    cell: ({ key }) => key ?? dash,
  },
  context: {
    head: "Context",
    from: "medium",
    class: "clip",
    ...cut(({ context }) => context),
    cell: ({ context }) => context ?? dash,
  },
  id: { head: "Id", from: "medium", class: "mono", title: ({ id }) => id, cell: ({ id }) => shortId(id) },
  priority: { head: "Priority", num: true, from: "medium", cell: ({ priority }) => number(priority) },
  attempt: {
    head: "Attempts",
    num: true,
    from: "medium",
    title: ({ attempt, maxAttempts }) =>
      `${attempt === 0 ? "None" : number(attempt)} of ${number(maxAttempts)} attempts used up`,
    cell: ({ attempt, maxAttempts }) => (
      <>
        {attempt}
        <span class="muted"> / {maxAttempts}</span>
      </>
    ),
  },
  worker: {
    head: "Worker",
    from: "wide",
    class: "mono clip",
    ...cut(({ workerId }) => workerId),
    cell: ({ workerId }) => workerId ?? dash,
  },
  waited: { head: "Waited", num: true, from: "wide", class: "muted nowrap", cell: waited },
  took: { head: "Took", num: true, from: "wide", class: "muted nowrap", cell: took },
  size: {
    head: "Size",
    num: true,
    from: "wide",
    class: "muted nowrap",
    cell: ({ inputBytes }) => bytes(inputBytes),
  },
  started: {
    head: "Started",
    num: true,
    from: "medium",
    class: "muted",
    cell: ({ startedAt }) => <Ago at={startedAt} />,
  },
  ended: {
    head: "Ended",
    num: true,
    from: "medium",
    class: "muted",
    cell: ({ endedAt }) => <Ago at={endedAt} />,
  },
  due: { head: "Due", num: true, class: "muted", cell: ({ runAt }) => <Ago at={runAt} /> },
  created: { head: "Created", num: true, class: "muted", cell: ({ createdAt }) => <Ago at={createdAt} /> },
};

const usual = ["state", "queue", "attempt", "took", "created"];

function isColumn(value: unknown): value is string {
  return typeof value === "string" && Object.hasOwn(columns, value);
}

/** Empty: the default columns. */
const chosen = {
  jobs: keptList("columns", isColumn),
  scheduled: keptList("columns.scheduled", isColumn),
  retries: keptList("columns.retries", isColumn),
} as const;

/** In the list of scheduled jobs, the due time replaces the creation time unless both were chosen. */
function namesOf(kind: JobsOfName): readonly string[] {
  const { value } = chosen[kind];
  if (value.length > 0) return value;
  return usual.map((name) => (kind !== "jobs" && name === "created" ? "due" : name));
}

export function jobColumns(kind: JobsOfName): Column<JobLine>[] {
  const names = namesOf(kind);
  return [
    job,
    ...Object.keys(columns)
      .filter((name) => names.includes(name))
      .flatMap((name) => (name === "queue" && names.includes("lane") ? queueAlone : (columns[name] ?? []))),
  ];
}

const job: Column<JobLine> = {
  head: "Job",
  class: "job",
  cell: ({ id, name, error, state, preview, inputBytes }) => {
    const failed = error !== null && state !== "done" ? error : null;
    const input = preview ?? (inputBytes > 0 ? `(${bytes(inputBytes)})` : "");
    return (
      <>
        <JobLink id={id}>{name}</JobLink>
        {failed !== null && (
          <span class={`sub clip ${state === "cancelled" ? "" : "error-line"}`} title={failed}>
            {failed}
          </span>
        )}
        {previews.value === "on" && (input !== "" || failed === null) && (
          <span class="sub mono clip">{input}</span>
        )}
      </>
    );
  },
};

export function chooseColumns(kind: JobsOfName): void {
  showDialog("Columns", (close) => <Chooser kind={kind} close={close} />);
}

const titles = { jobs: "Jobs", scheduled: "Scheduled", retries: "Retries" } as const;

function Chooser({ kind, close }: { kind: JobsOfName; close: () => void }) {
  const shown = namesOf(kind);
  return (
    <div class="dialog">
      <header>
        <h2>Columns of {titles[kind]}</h2>
      </header>
      <div class="content">
        <p class="muted">The job column is always shown. Narrow windows hide some columns.</p>
        <div class="grid two">
          {Object.entries(columns).map(([name, { head }]) => (
            <label class="row" key={name}>
              <input
                type="checkbox"
                checked={shown.includes(name)}
                onChange={(event) => {
                  const next = shown.filter((one) => one !== name);
                  chosen[kind].value = event.currentTarget.checked ? [...next, name] : next;
                }}
              />{" "}
              {head}
            </label>
          ))}
        </div>
        <label class="row">
          <input
            type="checkbox"
            checked={previews.value === "on"}
            onChange={(event) => (previews.value = event.currentTarget.checked ? "on" : "off")}
          />{" "}
          First characters of each job's input, in every list
        </label>
      </div>
      <footer>
        <button type="button" class="button" onClick={() => (chosen[kind].value = [])}>
          As usual
        </button>
        <button type="button" class="button primary" onClick={close}>
          Done
        </button>
      </footer>
    </div>
  );
}
