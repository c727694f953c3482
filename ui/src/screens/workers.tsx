import type { WorkerLine } from "../../../src/dashboard/contract.ts";
import { get, seg, send } from "../api.ts";
import { instant, number, plural, shortId } from "../format.ts";
import { may } from "../live.ts";
import { Ago, confirm, Empty, Gauge, Head, JobLink, Loaded, State } from "../parts.tsx";
import { href } from "../router.ts";
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
      <Loaded query={query}>
        {({ workers }) => (
          <section class="panel" aria-label="Workers">
            {workers.length === 0 ? (
              <Empty icon="workers" title="No worker is running">
                <p>Jobs are safe in the database, and wait. Start a worker:</p>
                <pre class="code">{`const worker = hf.work([sendMail], { queues: ["mail"] });\nawait worker.ready;`}</pre>
              </Empty>
            ) : (
              <div class="scroll">
                <table>
                  <thead>
                    <tr>
                      <th scope="col">Worker</th>
                      <th scope="col">State</th>
                      <th scope="col" class="num">
                        Running
                      </th>
                      <th scope="col" class="medium-only">
                        Queues
                      </th>
                      <th scope="col" class="num medium-only">
                        Heartbeat
                      </th>
                      <th scope="col" class="num wide-only">
                        Started
                      </th>
                      <th scope="col" class="wide-only">
                        Jobs
                      </th>
                      <th scope="col">
                        <span class="hidden-text">Actions</span>
                      </th>
                    </tr>
                  </thead>
                  <tbody>
                    {workers.map((worker) => (
                      <tr key={worker.session}>
                        <td style={{ maxWidth: "300px" }}>
                          <b>{worker.name}</b>
                          <span class="sub clip">
                            {worker.host} · pid {worker.pid} · v{worker.version}
                          </span>
                        </td>
                        <td>
                          {worker.kind === "lease" ? (
                            <span class="tag">lease</span>
                          ) : (
                            <State state={worker.stopping ? "waiting" : "running"} />
                          )}
                        </td>
                        <td class="num nowrap">
                          {number(worker.running)}{" "}
                          <Gauge used={worker.running} of={worker.slots} label="Slots" />
                        </td>
                        <td class="medium-only">
                          {Object.entries(worker.queues)
                            .slice(0, 6)
                            .map(([queue, slots]) => (
                              <>
                                <a key={queue} class="tag" href={href(`/queues/${queue}`)}>
                                  {queue} {slots}
                                </a>{" "}
                              </>
                            ))}
                        </td>
                        <td class="num muted medium-only">
                          <Ago at={worker.beatAt} />
                        </td>
                        <td class="num muted wide-only" title={instant(worker.startedAt)}>
                          <Ago at={worker.startedAt} />
                        </td>
                        <td class="wide-only mono small">
                          {worker.jobs.slice(0, 3).map((id) => (
                            <>
                              <JobLink key={id} id={id}>
                                {shortId(id)}
                              </JobLink>{" "}
                            </>
                          ))}
                          {worker.running > 3 && (
                            <span class="muted">and {number(worker.running - 3)} more</span>
                          )}
                        </td>
                        <td class="right">
                          {worker.kind === "worker" && !worker.stopping && may("workers:stop") && (
                            <button
                              type="button"
                              class="button small danger"
                              aria-label={`Stop ${worker.name}`}
                              onClick={() =>
                                confirm({
                                  title: `Stop ${worker.name}?`,
                                  text: `It takes no more jobs, finishes the ${plural(worker.running, "job")} it runs, and goes. Whatever runs it may start it again.`,
                                  verb: "Stop",
                                  danger: true,
                                  run: () =>
                                    send("POST", `/workers/${seg(worker.id)}/stop`).then(query.again),
                                  done: "It was asked to stop.",
                                })
                              }
                            >
                              Stop
                            </button>
                          )}
                        </td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              </div>
            )}
          </section>
        )}
      </Loaded>
    </>
  );
}
