// Live workers, what they run, and stopping one.
import type { DutyLine, WorkerLine } from "../../../src/dashboard/contract.ts";
import { Do } from "../actions.tsx";
import { get, seg, send } from "../api.ts";
import { bytes, duration, instant, number, plural, shortId } from "../format.ts";
import { Icon } from "../icons.tsx";
import { Ago, Gauge, Head, JobLink, State } from "../parts.tsx";
import { href } from "../router.ts";
import { actionsColumn, type Column, Listing, Panel, Table } from "../table.tsx";
import { useQuery } from "../use-query.ts";

interface WorkerAnswer {
  readonly workers: readonly WorkerLine[];
  readonly duties: readonly DutyLine[];
}

/** What each duty is for, in a few words. */
const dutyWords: Readonly<Record<string, string>> = {
  bury: "looks after workers that died, and limits whose time is over",
  forget: "adds up and forgets old minutes",
  prune: "deletes jobs whose retention has passed",
  sample: "measures the database",
  tidy: "keeps the tables in shape",
  unserved: "reports queues that nobody serves",
};

export function Workers() {
  const query = useQuery("workers", (signal) => get<WorkerAnswer>("/workers", {}, signal), {
    live: true,
  });
  return (
    <>
      <Head
        title="Workers"
        note="Live processes, and holders of leases. One that dies leaves the list when its lease has passed."
      />
      <section class="panel" aria-label="Workers">
        <Listing
          query={query}
          rows={({ workers }) => workers}
          rowKey={({ session }: WorkerLine) => String(session)}
          empty={{
            icon: "workers",
            title: "No worker is running",
            text: (
              <>
                <p>Jobs are safe in the database, and wait. Start a worker:</p>
                <pre class="code">{`const worker = hf.work([sendMail], { queues: ["mail"] });\nawait worker.ready;`}</pre>
              </>
            ),
          }}
          columns={columnsOf(query.again)}
        />
      </section>
      {query.data !== null && query.data.duties.length > 0 && (
        <Panel
          title="Duties"
          note="done by one worker for all; whoever asks first, so there is no leader to lose"
        >
          <Table
            rows={query.data.duties}
            rowKey={({ name }) => name}
            columns={[
              {
                head: "Duty",
                cell: ({ name }) => (
                  <>
                    <b>{name}</b>
                    <span class="sub">{dutyWords[name] ?? ""}</span>
                  </>
                ),
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
              { head: "Done", num: true, class: "muted nowrap", cell: ({ doneAt }) => <Ago at={doneAt} /> },
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

function columnsOf(again: () => void): Column<WorkerLine>[] {
  return [
    {
      head: "Worker",
      style: { maxWidth: "300px" },
      cell: ({ name, host, pid, version, duties }) => (
        <>
          <b>{name}</b>{" "}
          {duties.length > 0 && (
            <span class="tag" title={`Did these duties last: ${duties.join(", ")}`}>
              <Icon name="star" size={11} /> {plural(duties.length, "duty").replace("dutys", "duties")}
            </span>
          )}
          <span class="sub clip">
            {host} · pid {pid} · v{version}
          </span>
        </>
      ),
    },
    {
      head: "State",
      cell: ({ kind, stopping }) =>
        kind === "lease" ? (
          <span class="tag">lease</span>
        ) : (
          <State state={stopping ? "waiting" : "running"} />
        ),
    },
    {
      head: "Running",
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
      from: "medium",
      cell: ({ queues }) =>
        Object.entries(queues)
          .slice(0, 6)
          .map(([queue, slots]) => (
            <>
              <a key={queue} class="tag" href={href(`/queues/${queue}`)}>
                {queue} {slots}
              </a>{" "}
            </>
          )),
    },
    {
      head: "Heartbeat",
      num: true,
      from: "medium",
      class: "muted",
      cell: ({ beatAt }) => <Ago at={beatAt} />,
    },
    {
      head: "Memory",
      num: true,
      from: "wide",
      class: "muted nowrap",
      cell: ({ rssBytes }) => bytes(rssBytes),
    },
    {
      head: "Loop delay",
      num: true,
      from: "wide",
      class: "nowrap",
      title: () => "The event loop's longest delay in its latest minute",
      cell: ({ loopDelayMs }) => (
        <span class={(loopDelayMs ?? 0) > 200 ? "bad-text" : "muted"}>{duration(loopDelayMs)}</span>
      ),
    },
    {
      head: "Started",
      num: true,
      from: "wide",
      class: "muted",
      title: ({ startedAt }) => instant(startedAt),
      cell: ({ startedAt }) => <Ago at={startedAt} />,
    },
    {
      head: "Jobs",
      from: "wide",
      class: "mono small",
      cell: ({ jobs, running }) => (
        <>
          {jobs.slice(0, 3).map((id) => (
            <>
              <JobLink key={id} id={id}>
                {shortId(id)}
              </JobLink>{" "}
            </>
          ))}
          {running > 3 && <span class="muted">and {number(running - 3)} more</span>}
        </>
      ),
    },
    actionsColumn(
      ({ id, name, kind, stopping, running }) =>
        kind === "worker" &&
        !stopping && (
          <Do
            verb="Stop"
            on={name}
            needs="workers:stop"
            danger
            ask={`It takes no more jobs, finishes the ${plural(running, "job")} it runs, and goes. Whatever runs it may start it again.`}
            run={() => send("POST", `/workers/${seg(id)}/stop`)}
            done="It was asked to stop."
            then={again}
          />
        ),
    ),
  ];
}
