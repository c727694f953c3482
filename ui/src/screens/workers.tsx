// Live workers, what they run, and stopping one.
import type { WorkerLine } from "../../../src/dashboard/contract.ts";
import { Do } from "../actions.tsx";
import { get, seg, send } from "../api.ts";
import { instant, number, plural, shortId } from "../format.ts";
import { Ago, Gauge, Head, JobLink, State } from "../parts.tsx";
import { href } from "../router.ts";
import { actionsColumn, type Column, Listing } from "../table.tsx";
import { useQuery } from "../use-query.ts";

export function Workers() {
  const query = useQuery("workers", (signal) => get<{ workers: WorkerLine[] }>("/workers", {}, signal), {
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
    </>
  );
}

function columnsOf(again: () => void): Column<WorkerLine>[] {
  return [
    {
      head: "Worker",
      style: { maxWidth: "300px" },
      cell: ({ name, host, pid, version }) => (
        <>
          <b>{name}</b>
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
