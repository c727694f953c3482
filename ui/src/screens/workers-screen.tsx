// Live workers and their jobs; quiet, resume, stop.
import type { ComponentChildren } from "preact";
import type { LostWorkerLine, WorkerLine, WorkerList } from "../../../src/dashboard/api/contract.ts";
import { type Actions, doing } from "../kit/actions.tsx";
import { get, seg, send } from "../data/api.ts";
import { bytes, duration, instant, number, plural, shortId } from "../kit/format.ts";
import { Icon } from "../kit/icons.tsx";
import { Ago, Gauge, State } from "../kit/labels.tsx";
import { copy } from "../kit/clipboard.tsx";
import { Facts, Head, Panel } from "../kit/panels.tsx";
import { showDialog } from "../kit/dialogs.tsx";
import { lazily } from "../kit/lazy-component.tsx";
import { href, params } from "../data/router.ts";
import { type Column, Listing, menuColumn, Table } from "../kit/table.tsx";
import { type Query, useQuery } from "../data/live-query.ts";

/** Loaded after the list. */
const HostCharts = lazily(
  () => import("../charts/resource-charts.tsx").then((part) => part.HostCharts),
  () => null,
);

/** Upkeep tasks by their work; the server's names are internal. */
const upkeepTaskWords: Readonly<Record<string, string>> = {
  recovery: "Take over jobs of dead workers, revert expired temporary limits",
  forget: "Aggregate and delete old metrics",
  minute: "Report queues without workers, measure the database",
  prune: "Delete jobs after their retention",
  sample: "Measure the database",
  tidy: "Maintain the tables",
  unserved: "Report queues without workers",
};

function useWorkers(): Query<WorkerList> {
  return useQuery("workers", (signal) => get<WorkerList>("/workers", {}, signal), { topic: "workers" });
}

export function WorkersScreen() {
  const query = useWorkers();
  return (
    <>
      <Head
        title="Workers"
        note="Live worker processes and lease holders. A dead one leaves the list when its lease expires."
      />
      <section class="panel" aria-label="Workers">
        <Listing
          query={query}
          rows={({ workers }) => workers}
          rowKey={({ session }: WorkerLine) => String(session)}
          empty={{
            icon: "workers",
            title: "No workers",
            text: (
              <>
                <p>Jobs wait in the database. Start a worker:</p>
                <pre class="code">{`const worker = hf.work([sendMail], { queues: ["mail"] });\nawait worker.ready;`}</pre>
              </>
            ),
          }}
          row={({ id }) => (id === params.value.get("worker") ? { class: "current" } : {})}
          columns={columnsOf(query.again)}
          sort="sort"
        />
      </section>
      {query.data !== null && query.data.lost.length > 0 && (
        <Lost lost={query.data.lost} alone={query.data.workers.length === 0} />
      )}
      <HostCharts />
      {query.data !== null && query.data.upkeepTasks.length > 0 && (
        <Panel title="Upkeep tasks" note="each run by one worker at a time; there is no leader">
          <Table
            rows={query.data.upkeepTasks}
            rowKey={({ name }) => name}
            columns={[
              {
                head: "Upkeep task",
                cell: ({ name }) => upkeepTaskWords[name] ?? name,
              },
              {
                head: "Last done by",
                cell: ({ by }) => {
                  const worker = query.data?.workers.find(({ id }) => id === by);
                  return worker === undefined ? (
                    <span class="muted">{by === null ? "—" : `${shortId(by)}, gone`}</span>
                  ) : (
                    worker.name
                  );
                },
              },
              {
                head: "Done",
                num: true,
                class: "muted nowrap",
                cell: ({ doneAt }) => <Ago at={doneAt} />,
              },
              {
                head: "Next from",
                num: true,
                from: "medium",
                class: "muted nowrap",
                cell: ({ nextAt }) => <Ago at={nextAt} />,
              },
            ]}
          />
        </Panel>
      )}
    </>
  );
}

/** Dead workers and their orphaned jobs. */
function Lost({ lost, alone }: { lost: readonly LostWorkerLine[]; alone: boolean }) {
  const held = lost.reduce((sum, one) => sum + one.held, 0);
  return (
    <Panel
      title="Died in the last hour"
      note={
        held === 0
          ? "their leases expired; their jobs were taken over"
          : alone
            ? `${plural(held, "job")} wait until a worker starts and takes them over`
            : `${plural(held, "job")} are being taken over`
      }
    >
      <Table
        rows={lost}
        rowKey={({ id }) => id}
        label="Dead workers"
        columns={[
          {
            head: "Worker",
            cell: ({ id, name, host, pid, release }) => (
              <>
                <b>{name}</b> <span class="mono muted small">{shortId(id)}</span>
                <span class="sub clip">
                  {release !== null ? `${host} · pid ${pid} · release ${release}` : `${host} · pid ${pid}`}
                </span>
              </>
            ),
          },
          {
            head: "Orphaned jobs",
            num: true,
            cell: ({ held: n }) =>
              n === 0 ? <span class="muted">none left</span> : <b class="bad-text">{number(n)}</b>,
          },
          {
            head: "Last heartbeat",
            num: true,
            from: "medium",
            class: "muted nowrap",
            cell: ({ beatAt }) => <Ago at={beatAt} />,
          },
          {
            head: "Lease expired",
            num: true,
            class: "muted nowrap",
            cell: ({ lostAt }) => <Ago at={lostAt} />,
          },
        ]}
      />
    </Panel>
  );
}

function showWorker(id: string, name: string): void {
  showDialog(`Worker ${name}`, (close) => <More id={id} name={name} close={close} />);
}

/** Running jobs by name, and facts that are seldom needed. */
function More({ id, name, close }: { id: string; name: string; close: () => void }) {
  const query = useWorkers();
  const worker = query.data?.workers.find((one) => one.id === id);
  return (
    <div class="dialog">
      <header>
        <h2>Worker {name}</h2>
      </header>
      <div class="content">
        {worker === undefined ? (
          <p class="muted">{query.data === null ? "Loading…" : "This worker has gone."}</p>
        ) : (
          <>
            <Facts of={factsOf(worker)} />
            <h3>{worker.running === 0 ? "Runs no jobs" : `Runs ${plural(worker.running, "job")}`}</h3>
            {worker.runs.length > 0 && (
              <ul class="samples">
                {worker.runs.map((run) => (
                  <li key={run.id}>
                    <a class="main-link" href={href(`/jobs/${run.id}`)} onClick={close}>
                      {run.name} <span class="mono muted">{shortId(run.id)}</span>
                    </a>
                    <span class="muted spread">
                      <Ago at={run.startedAt} />
                    </span>
                  </li>
                ))}
              </ul>
            )}
            {worker.running > worker.runs.length && (
              <a class="link" href={href(`/jobs?state=running&worker=${seg(id)}`)} onClick={close}>
                All {number(worker.running)}
              </a>
            )}
          </>
        )}
      </div>
      <footer>
        <button type="button" class="button" onClick={() => void copy(id, "Id copied")}>
          Copy the id
        </button>
        <button type="button" class="button" onClick={close}>
          Close
        </button>
      </footer>
    </div>
  );
}

function factsOf(worker: WorkerLine): [string, ComponentChildren][] {
  const { id, host, pid, runtime, version, release, names, failed, queues } = worker;
  return [
    ["Id", <span class="mono">{id}</span>],
    ["Process", `pid ${pid} on ${host}`],
    ["Runtime", runtime ?? "—"],
    ["Holdfast", version],
    ["Release", release ?? "—"],
    ["Started", instant(worker.startedAt)],
    ["Heartbeat", <Ago at={worker.beatAt} />],
    ["Queues", <Tags queues={Object.entries(queues)} />],
    ["Names", `${number(names.length)}: ${names.slice(0, 12).join(", ")}${names.length > 12 ? " …" : ""}`],
    ["Failures, 1 h", number(failed)],
  ];
}

/** A row lists a few; a worker may serve hundreds. */
const mostQueues = 6;

function Tags({ queues }: { queues: readonly (readonly [queue: string, slots: number])[] }) {
  return (
    <>
      {queues.map(([queue, slots]) => (
        <span key={queue}>
          <a class="tag" href={href(`/queues/${queue}`)}>
            {queue} {slots}
          </a>{" "}
        </span>
      ))}
    </>
  );
}

/** Queues with slots; the rest as a number that opens the list. */
function Served({ queues }: { queues: readonly (readonly [queue: string, slots: number])[] }) {
  const more = queues.slice(mostQueues);
  return (
    <>
      <Tags queues={queues.slice(0, mostQueues)} />
      {more.length > 0 && (
        <details class="more-tags">
          <summary class="small" title={more.map(([queue, slots]) => `${queue} ${slots}`).join(", ")}>
            +{number(more.length)} more
          </summary>
          <Tags queues={more} />
        </details>
      )}
    </>
  );
}

function columnsOf(again: () => void): Column<WorkerLine>[] {
  return [
    {
      head: "Worker",
      by: ({ name }) => name,
      class: "slim",
      style: { maxWidth: "300px" },
      cell: (worker) => {
        const { name, host, pid, upkeepTasks, failed } = worker;
        return (
          <>
            <button
              type="button"
              class="main-link bare"
              aria-label={`${name}, details`}
              onClick={() => showWorker(worker.id, name)}
            >
              {name}
            </button>{" "}
            {upkeepTasks.length > 0 && (
              <span
                class="tag"
                title={upkeepTasks.map((upkeepTask) => upkeepTaskWords[upkeepTask] ?? upkeepTask).join("; ")}
              >
                <Icon name="star" size={11} /> {plural(upkeepTasks.length, "upkeep task")}
              </span>
            )}
            {failed > 0 && (
              <a
                class="tag bad"
                href={href("/errors?by=worker")}
                title="Failed attempts on this worker in the last hour"
              >
                {plural(failed, "failure")} in 1 h
              </a>
            )}
            <span class="sub clip">
              {worker.runtime !== null
                ? worker.release !== null
                  ? `${host} · pid ${pid} · ${worker.runtime} · release ${worker.release}`
                  : `${host} · pid ${pid} · ${worker.runtime}`
                : worker.release !== null
                  ? `${host} · pid ${pid} · release ${worker.release}`
                  : `${host} · pid ${pid}`}
            </span>
          </>
        );
      },
    },
    {
      head: "State",
      by: ({ kind, stopping, quietAt }) =>
        kind === "lease" ? kind : stopping ? "stopping" : quietAt === null ? "running" : "quiet",
      title: ({ quietAt }) => (quietAt === null ? "" : `Quiet since ${instant(quietAt)}`),
      cell: ({ kind, stopping, quietAt }) =>
        kind === "lease" ? (
          <span class="tag">lease</span>
        ) : (
          <State state={stopping ? "stopping" : quietAt === null ? "running" : "quiet"} />
        ),
    },
    {
      head: "Running",
      by: ({ running }) => running,
      num: true,
      class: "nowrap",
      cell: ({ running, slots }) => (
        <>
          {number(running)} <Gauge used={running} of={slots} label="Slots" />
        </>
      ),
    },
    {
      head: "Queues",
      by: ({ queues }) => Object.keys(queues).sort().join(),
      from: "medium",
      class: "served",
      style: { maxWidth: "300px" },
      cell: ({ queues }) => <Served queues={Object.entries(queues)} />,
    },
    {
      head: "Heartbeat",
      by: ({ beatAt }) => beatAt,
      num: true,
      from: "medium",
      class: "muted",
      cell: ({ beatAt }) => <Ago at={beatAt} />,
    },
    {
      head: "Memory",
      by: ({ rssBytes }) => rssBytes,
      num: true,
      from: "wide",
      class: "muted nowrap",
      cell: ({ rssBytes }) => bytes(rssBytes),
    },
    {
      head: "Loop p99",
      by: ({ loopDelayMs }) => loopDelayMs,
      num: true,
      from: "wide",
      class: "nowrap",
      title: () => "Event-loop delay: 99th percentile of the latest minute",
      cell: ({ loopDelayMs }) => (
        <span class={(loopDelayMs ?? 0) > 200 ? "bad-text" : "muted"}>{duration(loopDelayMs)}</span>
      ),
    },
    menuColumn(
      ({ name }) => name,
      (worker) => actionsOf(worker, again),
    ),
  ];
}

function actionsOf({ id, name, kind, stopping, quietAt, running }: WorkerLine, again: () => void): Actions {
  if (kind !== "worker" || stopping) return [];
  const change = { on: name, needs: "workers:stop", then: again } as const;
  return [
    quietAt === null
      ? doing({
          ...change,
          verb: "Quiet",
          icon: "moon",
          title: "Take no more jobs, finish the running ones",
          run: () => send("POST", `/workers/${seg(id)}/quiet`),
          undo: () => send("POST", `/workers/${seg(id)}/resume`),
          done: "Worker is quiet",
        })
      : doing({
          ...change,
          verb: "Resume",
          icon: "play",
          run: () => send("POST", `/workers/${seg(id)}/resume`),
          undo: () => send("POST", `/workers/${seg(id)}/quiet`),
          done: "Worker resumed",
        }),
    doing({
      ...change,
      verb: "Stop",
      icon: "stop",
      danger: true,
      ask: `The worker takes no more jobs, finishes the ${plural(running, "job")} it runs, and exits. Its process manager may restart it.`,
      run: () => send("POST", `/workers/${seg(id)}/stop`),
      done: "Stop requested",
    }),
  ];
}
