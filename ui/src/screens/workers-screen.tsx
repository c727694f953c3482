// Live workers, what they run; quieting, resuming and stopping one.
import type { ComponentChildren } from "preact";
import type { LostWorkerLine, WorkerLine, WorkerList } from "../../../src/dashboard/api/contract.ts";
import { type Actions, doing } from "../kit/actions.tsx";
import { get, seg, send } from "../data/api.ts";
import { bytes, duration, instant, number, shortId } from "../kit/format.ts";
import { Icon } from "../kit/icons.tsx";
import { Ago, Gauge, State } from "../kit/labels.tsx";
import { copy } from "../kit/clipboard.tsx";
import { Facts, Head, Panel } from "../kit/panels.tsx";
import { showDialog } from "../kit/dialogs.tsx";
import { lazily } from "../kit/lazy-component.tsx";
import { href, params } from "../data/router.ts";
import { type Column, Listing, menuColumn, Table } from "../kit/table.tsx";
import { t } from "../language/translation.ts";
import { type Query, useQuery } from "../data/live-query.ts";

/** Below the list: fetched after it. */
const HostCharts = lazily(
  () => import("../charts/resource-charts.tsx").then((part) => part.HostCharts),
  () => null,
);

/** What each duty is for, in a few words. */
const dutyWords: Readonly<Record<string, string>> = {
  bury: t("looks after workers that died, and limits whose time is over"),
  forget: t("adds up and forgets old minutes"),
  minute: t("reports queues that nobody serves, and measures the database"),
  prune: t("deletes jobs whose retention has passed"),
  sample: t("measures the database"),
  tidy: t("keeps the tables in shape"),
  unserved: t("reports queues that nobody serves"),
};

function useWorkers(): Query<WorkerList> {
  return useQuery("workers", (signal) => get<WorkerList>("/workers", {}, signal), { topic: "workers" });
}

export function WorkersScreen() {
  const query = useWorkers();
  return (
    <>
      <Head
        title={t("Workers")}
        note={t(
          "Live processes, and holders of leases. One that dies leaves the list when its lease has passed.",
        )}
      />
      <section class="panel" aria-label={t("Workers")}>
        <Listing
          query={query}
          rows={({ workers }) => workers}
          rowKey={({ session }: WorkerLine) => String(session)}
          empty={{
            icon: "workers",
            title: t("No worker is running"),
            text: (
              <>
                <p>{t("Jobs are safe in the database, and wait. Start a worker:")}</p>
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
      {query.data !== null && query.data.duties.length > 0 && (
        <Panel
          title={t("Duties")}
          note={t("done by one worker for all; whoever asks first, so there is no leader to lose")}
        >
          <Table
            rows={query.data.duties}
            rowKey={({ name }) => name}
            columns={[
              {
                head: t("Duty"),
                cell: ({ name }) => (
                  <>
                    <b>{name}</b>
                    <span class="sub">{dutyWords[name] ?? ""}</span>
                  </>
                ),
              },
              {
                head: t("Last done by"),
                cell: ({ by }) => {
                  const worker = query.data?.workers.find(({ id }) => id === by);
                  return worker === undefined ? (
                    <span class="muted">{by === null ? "—" : t("{by}, gone", { by: shortId(by) })}</span>
                  ) : (
                    worker.name
                  );
                },
              },
              {
                head: t("Done"),
                num: true,
                class: "muted nowrap",
                cell: ({ doneAt }) => <Ago at={doneAt} />,
              },
              {
                head: t("Next from"),
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

/** Workers that died, and what they held. */
function Lost({ lost, alone }: { lost: readonly LostWorkerLine[]; alone: boolean }) {
  const held = lost.reduce((sum, one) => sum + one.held, 0);
  return (
    <Panel
      title={t("Died in the last hour")}
      note={
        held === 0
          ? t("their leases passed without a word; what they held has been taken over")
          : alone
            ? t("{held, plural, one {# job} other {# jobs}} wait until a worker starts and takes them over", {
                held,
              })
            : t("{held, plural, one {# job} other {# jobs}} are being taken over", { held })
      }
    >
      <Table
        rows={lost}
        rowKey={({ id }) => id}
        label={t("Workers that died")}
        columns={[
          {
            head: t("Worker"),
            cell: ({ id, name, host, pid, release }) => (
              <>
                <b>{name}</b> <span class="mono muted small">{shortId(id)}</span>
                <span class="sub clip">
                  {release !== null
                    ? t("{host} · pid {pid} · release {release}", { host, pid, release })
                    : t("{host} · pid {pid}", { host, pid })}
                </span>
              </>
            ),
          },
          {
            head: t("Jobs to take over"),
            num: true,
            cell: ({ held: n }) =>
              n === 0 ? <span class="muted">{t("none left")}</span> : <b class="bad-text">{number(n)}</b>,
          },
          {
            head: t("Last heartbeat"),
            num: true,
            from: "medium",
            class: "muted nowrap",
            cell: ({ beatAt }) => <Ago at={beatAt} />,
          },
          {
            head: t("Lease passed"),
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
  showDialog(t("Worker {name}", { name }), (close) => <More id={id} name={name} close={close} />);
}

/** What it runs, by name, and what is seldom asked for: the same in every window. */
function More({ id, name, close }: { id: string; name: string; close: () => void }) {
  const query = useWorkers();
  const worker = query.data?.workers.find((one) => one.id === id);
  return (
    <div class="dialog">
      <header>
        <h2>{t("Worker {name}", { name })}</h2>
      </header>
      <div class="content">
        {worker === undefined ? (
          <p class="muted">{query.data === null ? t("Loading…") : t("It has gone.")}</p>
        ) : (
          <>
            <Facts of={factsOf(worker)} />
            <h3>
              {worker.running === 0
                ? t("It runs nothing now")
                : t("Runs {running, plural, one {# job} other {# jobs}}", { running: worker.running })}
            </h3>
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
                {t("All {running}", { running: number(worker.running) })}
              </a>
            )}
          </>
        )}
      </div>
      <footer>
        <button type="button" class="button" onClick={() => void copy(id, t("The id is copied."))}>
          {t("Copy the id")}
        </button>
        <button type="button" class="button" onClick={close}>
          {t("Close")}
        </button>
      </footer>
    </div>
  );
}

function factsOf(worker: WorkerLine): [string, ComponentChildren][] {
  const { id, host, pid, runtime, version, release, names, failed, queues } = worker;
  return [
    [t("Id"), <span class="mono">{id}</span>],
    [t("Process"), t("pid {pid} on {host}", { pid, host })],
    [t("Runtime"), runtime ?? "—"],
    ["Holdfast", version],
    [t("Release"), release ?? "—"],
    [t("Started"), instant(worker.startedAt)],
    [t("Heartbeat"), <Ago at={worker.beatAt} />],
    [t("Queues"), <Tags queues={Object.entries(queues)} />],
    [t("Kinds"), `${number(names.length)}: ${names.slice(0, 12).join(", ")}${names.length > 12 ? " …" : ""}`],
    [t("Failures, 1 h"), number(failed)],
  ];
}

/** In a row: a worker may serve hundreds. */
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

/** Its queues with their slots; those there is no room for by their number, and all of them when that is opened. */
function Served({ queues }: { queues: readonly (readonly [queue: string, slots: number])[] }) {
  const more = queues.slice(mostQueues);
  return (
    <>
      <Tags queues={queues.slice(0, mostQueues)} />
      {more.length > 0 && (
        <details class="more-tags">
          <summary class="small" title={more.map(([queue, slots]) => `${queue} ${slots}`).join(", ")}>
            {t("+{more} more", { more: number(more.length) })}
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
      head: t("Worker"),
      by: ({ name }) => name,
      class: "slim",
      style: { maxWidth: "300px" },
      cell: (worker) => {
        const { name, host, pid, duties, failed } = worker;
        return (
          <>
            <button
              type="button"
              class="main-link bare"
              aria-label={t("{name}, details", { name })}
              onClick={() => showWorker(worker.id, name)}
            >
              {name}
            </button>{" "}
            {duties.length > 0 && (
              <span class="tag" title={t("Did these duties last: {duties}", { duties: duties.join(", ") })}>
                <Icon name="star" size={11} />{" "}
                {t("{count, plural, one {# duty} other {# duties}}", { count: duties.length })}
              </span>
            )}
            {failed > 0 && (
              <a
                class="tag bad"
                href={href("/errors?by=worker")}
                title={t("Attempts that failed with it in the last hour")}
              >
                {t("{failed, plural, one {# failure} other {# failures}} in 1 h", { failed })}
              </a>
            )}
            <span class="sub clip">
              {worker.runtime !== null
                ? worker.release !== null
                  ? t("{host} · pid {pid} · {runtime} · release {release}", {
                      host,
                      pid,
                      runtime: worker.runtime,
                      release: worker.release,
                    })
                  : t("{host} · pid {pid} · {runtime}", { host, pid, runtime: worker.runtime })
                : worker.release !== null
                  ? t("{host} · pid {pid} · release {release}", { host, pid, release: worker.release })
                  : t("{host} · pid {pid}", { host, pid })}
            </span>
          </>
        );
      },
    },
    {
      head: t("State"),
      by: ({ kind, stopping, quietAt }) =>
        kind === "lease" ? kind : stopping ? "stopping" : quietAt === null ? "running" : "quiet",
      title: ({ quietAt }) =>
        quietAt === null ? "" : t("Quiet since {quietAt}", { quietAt: instant(quietAt) }),
      cell: ({ kind, stopping, quietAt }) =>
        kind === "lease" ? (
          <span class="tag">{t("lease")}</span>
        ) : (
          <State state={stopping ? "stopping" : quietAt === null ? "running" : "quiet"} />
        ),
    },
    {
      head: t("Running"),
      by: ({ running }) => running,
      num: true,
      class: "nowrap",
      cell: ({ running, slots }) => (
        <>
          {number(running)} <Gauge used={running} of={slots} label={t("Slots")} />
        </>
      ),
    },
    {
      head: t("Queues"),
      by: ({ queues }) => Object.keys(queues).sort().join(),
      from: "medium",
      class: "served",
      style: { maxWidth: "300px" },
      cell: ({ queues }) => <Served queues={Object.entries(queues)} />,
    },
    {
      head: t("Heartbeat"),
      by: ({ beatAt }) => beatAt,
      num: true,
      from: "medium",
      class: "muted",
      cell: ({ beatAt }) => <Ago at={beatAt} />,
    },
    {
      head: t("Memory"),
      by: ({ rssBytes }) => rssBytes,
      num: true,
      from: "wide",
      class: "muted nowrap",
      cell: ({ rssBytes }) => bytes(rssBytes),
    },
    {
      head: t("Loop p99"),
      by: ({ loopDelayMs }) => loopDelayMs,
      num: true,
      from: "wide",
      class: "nowrap",
      title: () => t("How late the event loop was: the 99th percentile of its latest minute"),
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
          verb: t("Quiet"),
          icon: "moon",
          title: t("It takes no more jobs, finishes what it runs, and stays"),
          run: () => send("POST", `/workers/${seg(id)}/quiet`),
          done: t("It takes no more jobs until it is resumed."),
        })
      : doing({
          ...change,
          verb: t("Resume"),
          icon: "play",
          run: () => send("POST", `/workers/${seg(id)}/resume`),
          done: t("It takes jobs again."),
        }),
    doing({
      ...change,
      verb: t("Stop"),
      icon: "stop",
      danger: true,
      ask: t(
        "It takes no more jobs, finishes the {running, plural, one {# job} other {# jobs}} it runs, and goes. Whatever runs it may start it again.",
        { running },
      ),
      run: () => send("POST", `/workers/${seg(id)}/stop`),
      done: t("It was asked to stop."),
    }),
  ];
}
