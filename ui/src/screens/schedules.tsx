import { useRef } from "preact/hooks";
import type { ScheduleLine } from "../../../src/dashboard/contract.ts";
import { get, seg, send } from "../api.ts";
import { duration, instant, number } from "../format.ts";
import { may } from "../live.ts";
import { Ago, attempt, confirm, Empty, Head, JobLink, Loaded, showDialog, State } from "../parts.tsx";
import { go, href } from "../router.ts";
import { useQuery } from "../use-query.ts";

export function Schedules() {
  const query = useQuery(
    "schedules",
    (signal) => get<{ schedules: ScheduleLine[] }>("/schedules", {}, signal),
    { live: true },
  );
  const act = (schedule: ScheduleLine, verb: "pause" | "resume" | "reset", done: string): void => {
    void attempt(done, () => send("POST", `/schedules/${seg(schedule.name)}/${verb}`)).then(query.again);
  };
  return (
    <>
      <Head title="Schedules" note="Each makes one job for each of its slots, over all processes." />
      <Loaded query={query}>
        {({ schedules }) => (
          <section class="panel" aria-label="Schedules">
            {schedules.length === 0 ? (
              <Empty icon="calendar" title="No schedule">
                <p>Define one with defineSchedule, and give it to a worker.</p>
              </Empty>
            ) : (
              <div class="scroll">
                <table>
                  <thead>
                    <tr>
                      <th scope="col">Schedule</th>
                      <th scope="col">When</th>
                      <th scope="col" class="num">
                        Next
                      </th>
                      <th scope="col" class="num medium-only">
                        Last
                      </th>
                      <th scope="col" class="num wide-only">
                        Fired
                      </th>
                      <th scope="col" class="num wide-only">
                        Skipped
                      </th>
                      <th scope="col">
                        <span class="hidden-text">Actions</span>
                      </th>
                    </tr>
                  </thead>
                  <tbody>
                    {schedules.map((schedule) => (
                      <tr key={schedule.name}>
                        <td>
                          <b>{schedule.name}</b> {schedule.paused && <State state="paused" />}{" "}
                          {schedule.edited.length > 0 && (
                            <span class="tag" title={`by hand: ${schedule.edited.join(", ")}`}>
                              edited
                            </span>
                          )}{" "}
                          {schedule.unserved && <span class="tag warn">no worker serves it</span>}
                          {schedule.job !== null && (
                            <span class="sub">
                              makes{" "}
                              <a class="link" href={href(`/jobs?name=${seg(schedule.job)}`)}>
                                {schedule.job}
                              </a>{" "}
                              in {schedule.queue}
                            </span>
                          )}
                          {schedule.error !== null && <span class="tag bad">{schedule.error}</span>}
                        </td>
                        <td>
                          <span class="mono">
                            {schedule.cron ??
                              (schedule.everyMs === null ? "—" : `every ${duration(schedule.everyMs)}`)}
                          </span>
                          {schedule.timezone !== null && <span class="sub">{schedule.timezone}</span>}
                        </td>
                        <td class="num">
                          {schedule.paused ? <span class="muted">—</span> : <Ago at={schedule.nextAt} />}
                        </td>
                        <td class="num muted medium-only">
                          {schedule.lastJobId === null ? (
                            <Ago at={schedule.lastAt} />
                          ) : (
                            <JobLink id={schedule.lastJobId}>
                              <Ago at={schedule.lastAt} />
                            </JobLink>
                          )}
                        </td>
                        <td class="num wide-only">{number(schedule.fired)}</td>
                        <td class="num muted wide-only">{number(schedule.skipped)}</td>
                        <td class="right nowrap">
                          <button
                            type="button"
                            class="button small quiet"
                            aria-label={`Next runs of ${schedule.name}`}
                            onClick={() =>
                              showDialog(`Next runs of ${schedule.name}`, (close) => (
                                <Preview schedule={schedule} close={close} />
                              ))
                            }
                          >
                            Next runs
                          </button>{" "}
                          {may("schedules:trigger") && (
                            <button
                              type="button"
                              class="button small"
                              aria-label={`Run now: ${schedule.name}`}
                              onClick={() =>
                                void attempt("Its job is made.", () =>
                                  send<{ id: string }>(
                                    "POST",
                                    `/schedules/${seg(schedule.name)}/trigger`,
                                  ).then(({ id }) => go(`/jobs/${id}`)),
                                )
                              }
                            >
                              Run now
                            </button>
                          )}{" "}
                          {may("schedules:set") && (
                            <>
                              <button
                                type="button"
                                class="button small"
                                aria-label={`Edit ${schedule.name}`}
                                onClick={() =>
                                  showDialog(`Edit ${schedule.name}`, (close) => (
                                    <Edit schedule={schedule} close={close} again={query.again} />
                                  ))
                                }
                              >
                                Edit
                              </button>{" "}
                              <button
                                type="button"
                                class="button small"
                                aria-label={`${schedule.paused ? "Resume" : "Pause"} ${schedule.name}`}
                                onClick={() =>
                                  act(
                                    schedule,
                                    schedule.paused ? "resume" : "pause",
                                    schedule.paused ? "It makes jobs again." : "It makes no more jobs.",
                                  )
                                }
                              >
                                {schedule.paused ? "Resume" : "Pause"}
                              </button>{" "}
                              {(schedule.edited.length > 0 || schedule.error !== null) && (
                                <>
                                  <button
                                    type="button"
                                    class="button small"
                                    aria-label={`Reset ${schedule.name}`}
                                    title="Back to what the code says"
                                    onClick={() => act(schedule, "reset", "It is as the code says.")}
                                  >
                                    Reset
                                  </button>{" "}
                                </>
                              )}
                              <button
                                type="button"
                                class="button small danger"
                                aria-label={`Remove ${schedule.name}`}
                                onClick={() =>
                                  confirm({
                                    title: `Remove ${schedule.name}?`,
                                    text: "A worker that defines it brings it back when it starts.",
                                    verb: "Remove",
                                    danger: true,
                                    run: () =>
                                      send("DELETE", `/schedules/${seg(schedule.name)}`).then(query.again),
                                    done: "Removed.",
                                  })
                                }
                              >
                                Remove
                              </button>
                            </>
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

function Preview({ schedule, close }: { schedule: ScheduleLine; close: () => void }) {
  const query = useQuery(`preview ${schedule.name}`, (signal) =>
    get<{ at: number[] }>(`/schedules/${seg(schedule.name)}/preview`, { n: 20 }, signal),
  );
  return (
    <div class="dialog">
      <header>
        <h2>Next runs of {schedule.name}</h2>
      </header>
      <div class="content">
        <Loaded query={query}>
          {({ at }) => (
            <ol class="samples">
              {at.map((ms) => (
                <li key={ms}>
                  <span>{instant(ms)}</span>
                  <span class="muted">
                    <Ago at={ms} />
                  </span>
                </li>
              ))}
            </ol>
          )}
        </Loaded>
      </div>
      <footer>
        <button type="button" class="button" onClick={close}>
          Close
        </button>
      </footer>
    </div>
  );
}

function Edit({ schedule, close, again }: { schedule: ScheduleLine; close: () => void; again: () => void }) {
  const form = useRef<HTMLFormElement>(null);
  return (
    <form
      ref={form}
      method="dialog"
      onSubmit={(event) => {
        event.preventDefault();
        const data = new FormData(form.current ?? undefined);
        const text = (name: string): string => String(data.get(name) ?? "").trim();
        void attempt("The change survives restarts.", () =>
          send("PATCH", `/schedules/${seg(schedule.name)}`, {
            ...(schedule.cron === null ? { every: text("when") } : { cron: text("when") }),
            ...(schedule.cron === null ? {} : { timezone: text("timezone") }),
            missed: text("missed"),
            overlap: text("overlap"),
          }),
        ).then((ok) => {
          if (!ok) return;
          close();
          again();
        });
      }}
    >
      <header>
        <h2>Edit {schedule.name}</h2>
      </header>
      <div class="content">
        <label class="field">
          <span>{schedule.cron === null ? "Every" : "Cron"}</span>
          <input
            class="input mono"
            name="when"
            defaultValue={schedule.cron ?? `${(schedule.everyMs ?? 0) / 1_000}s`}
            spellcheck={false}
          />
        </label>
        {schedule.cron !== null && (
          <label class="field">
            <span>Time zone</span>
            <input
              class="input"
              name="timezone"
              defaultValue={schedule.timezone ?? "UTC"}
              spellcheck={false}
            />
          </label>
        )}
        <div class="grid two">
          <label class="field">
            <span>Missed slots</span>
            <select class="input" name="missed" value={schedule.missed ?? "one"}>
              <option value="skip">skip</option>
              <option value="one">one</option>
              <option value="all">all</option>
            </select>
          </label>
          <label class="field">
            <span>Overlap</span>
            <select class="input" name="overlap" value={schedule.overlap ?? "allow"}>
              <option value="allow">allow</option>
              <option value="skip">skip</option>
              <option value="queue">queue</option>
            </select>
          </label>
        </div>
      </div>
      <footer>
        <button type="button" class="button" onClick={close}>
          Not now
        </button>
        <button type="submit" class="button primary">
          Save
        </button>
      </footer>
    </form>
  );
}
