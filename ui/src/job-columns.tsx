// The columns of a list of jobs, and choosing among them. What is chosen is kept in this browser.
import type { JobLine } from "../../src/dashboard/contract.ts";
import { bytes, duration, number, shortId } from "./format.ts";
import { Ago, JobLink, JobStateOf, showDialog } from "./parts.tsx";
import { href } from "./router.ts";
import { keptList } from "./settings.ts";
import type { Column } from "./table.tsx";

const took = ({ startedAt, endedAt }: JobLine): string =>
  startedAt === null || endedAt === null ? "—" : duration(endedAt - startedAt);
const waited = ({ startedAt, runAt, createdAt }: JobLine): string =>
  startedAt === null ? "—" : duration(startedAt - (runAt ?? createdAt));
const dash = <span class="muted">—</span>;

/** Beside the job itself, which is always there. */
const columns: Readonly<Record<string, Column<JobLine>>> = {
  state: { head: "State", cell: (job) => <JobStateOf job={job} /> },
  queue: {
    head: "Queue",
    from: "medium",
    cell: ({ queue, lane }) => (
      <>
        <a class="link" href={href(`/queues/${queue}`)}>
          {queue}
        </a>
        {lane !== null && !chosen.value.includes("lane") && <span class="sub clip">{lane}</span>}
      </>
    ),
  },
  lane: { head: "Lane", from: "medium", class: "mono clip", cell: ({ lane }) => lane ?? dash },
  key: { head: "Key", from: "medium", class: "mono clip", cell: ({ key }) => key ?? dash },
  context: { head: "Context", from: "medium", class: "clip", cell: ({ context }) => context ?? dash },
  id: { head: "Id", from: "medium", class: "mono", title: ({ id }) => id, cell: ({ id }) => shortId(id) },
  priority: { head: "Priority", num: true, from: "medium", cell: ({ priority }) => number(priority) },
  attempt: {
    head: "Attempt",
    num: true,
    from: "medium",
    cell: ({ attempt, maxAttempts }) => (
      <>
        {attempt}
        <span class="muted"> / {maxAttempts}</span>
      </>
    ),
  },
  worker: { head: "Worker", from: "wide", class: "mono clip", cell: ({ workerId }) => workerId ?? dash },
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

/** Empty: the usual ones. */
const chosen = keptList<string>(
  "columns",
  (value): value is string => typeof value === "string" && Object.hasOwn(columns, value),
);

/** `due`: in a list of what is due later, that stands for when it was created unless both were chosen. */
export function jobColumns(due: boolean): Column<JobLine>[] {
  const names =
    chosen.value.length > 0 ? chosen.value : usual.map((name) => (due && name === "created" ? "due" : name));
  return [
    job,
    ...Object.keys(columns)
      .filter((name) => names.includes(name))
      .flatMap((name) => columns[name] ?? []),
  ];
}

const job: Column<JobLine> = {
  head: "Job",
  style: { maxWidth: "460px" },
  cell: ({ id, name, error, state, preview, inputBytes }) => (
    <>
      <JobLink id={id}>{name}</JobLink>
      <span class="sub mono clip">
        {error !== null && state !== "done"
          ? error
          : (preview ?? (inputBytes > 0 ? `(${bytes(inputBytes)})` : ""))}
      </span>
    </>
  ),
};

export function chooseColumns(): void {
  showDialog("Columns", (close) => <Chooser close={close} />);
}

function Chooser({ close }: { close: () => void }) {
  const shown = chosen.value.length > 0 ? chosen.value : usual;
  return (
    <div class="dialog">
      <header>
        <h2>Columns</h2>
      </header>
      <div class="content">
        <p class="muted">The job is always shown; narrow windows leave some out.</p>
        <div class="grid two">
          {Object.entries(columns).map(([name, { head }]) => (
            <label class="row" key={name}>
              <input
                type="checkbox"
                checked={shown.includes(name)}
                onChange={(event) => {
                  const next = shown.filter((one) => one !== name);
                  chosen.value = event.currentTarget.checked ? [...next, name] : next;
                }}
              />{" "}
              {head}
            </label>
          ))}
        </div>
      </div>
      <footer>
        <button type="button" class="button" onClick={() => (chosen.value = [])}>
          As usual
        </button>
        <button type="button" class="button primary" onClick={close}>
          Done
        </button>
      </footer>
    </div>
  );
}
