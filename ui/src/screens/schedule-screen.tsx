// One schedule: its runs, next occurrences and definition.
import type { ComponentChildren } from "preact";
import type { ScheduleHistory, ScheduleLine } from "../../../src/dashboard/api/contract.ts";
import { Buttons } from "../kit/actions.tsx";
import { get, seg } from "../data/api.ts";
import { duration, instant, number, plural } from "../kit/format.ts";
import { Icon } from "../kit/icons.tsx";
import { Ago, JobLink } from "../kit/labels.tsx";
import { Empty, Facts, Head, Loaded, Panel, Tile } from "../kit/panels.tsx";
import { go, href } from "../data/router.ts";
import { RunChart } from "../schedules/run-chart.tsx";
import { useQuery } from "../data/live-query.ts";
import { actionsOf, useSchedules } from "../schedules/schedule-actions.tsx";
import { NextOccurrences, overlapWords } from "../schedules/schedule-form.tsx";

export function ScheduleScreen({ name }: { name: string }) {
  const query = useSchedules();
  return (
    <Loaded query={query}>
      {({ schedules }) => {
        const schedule = schedules.find((one) => one.name === name);
        if (schedule !== undefined) return <Detail schedule={schedule} again={query.again} />;
        return (
          <section class="panel">
            <Empty icon="calendar" title="No such schedule">
              <p>It was removed, or no process has added it yet.</p>
              <a class="button" href={href("/schedules")}>
                All schedules
              </a>
            </Empty>
          </section>
        );
      }}
    </Loaded>
  );
}

function Detail({ schedule, again }: { schedule: ScheduleLine; again: () => void }) {
  const { name, lastAt, lastJobId, nextAt } = schedule;
  return (
    <>
      <Head title={name} note={<Timing schedule={schedule} />}>
        <Buttons of={actionsOf(schedule, again, () => go("/schedules"))} on={name} />
      </Head>
      <Obstacles schedule={schedule} />
      <div class="tiles">
        <Tile
          name="Next"
          value={schedule.paused ? "—" : <Ago at={nextAt} />}
          note={schedule.paused ? "paused" : instant(nextAt)}
        />
        <Tile
          name="Last"
          value={
            lastJobId === null ? (
              <Ago at={lastAt} />
            ) : (
              <JobLink id={lastJobId}>
                <Ago at={lastAt} />
              </JobLink>
            )
          }
          note={lastAt === null ? "no occurrence yet" : instant(lastAt)}
        />
        <Tile name="Fired" value={number(schedule.fired)} note="occurrences with a job" />
        <Tile name="Skipped" value={number(schedule.skipped)} note="previous job still ran" />
        <Tile name="Missed" value={number(schedule.passed)} note="no worker was up" />
      </div>
      <History schedule={schedule} />
      <div class="grid two">
        <Panel title="Next runs" note={`time zone ${schedule.timezone ?? "UTC"}`}>
          {schedule.paused ? (
            <Empty icon="pause" title="Paused">
              <p>It creates no jobs until it is resumed.</p>
            </Empty>
          ) : (
            <div class="inset">
              <NextOccurrences name={name} />
            </div>
          )}
        </Panel>
        <Panel title="Settings">
          <Facts of={factsOf(schedule)} />
        </Panel>
      </div>
    </>
  );
}

function Timing({ schedule: { cron, words } }: { schedule: ScheduleLine }) {
  return (
    <>
      {words} {cron !== null && !words.startsWith(cron) && <span class="mono">({cron})</span>}
    </>
  );
}

function Obstacles({
  schedule: { error, unserved, obstacles, waitingAt, overlap },
}: {
  schedule: ScheduleLine;
}) {
  const said = [
    error === null ? "" : `Disabled: ${error}`,
    unserved ? "No worker serves this queue and job. Its jobs will wait." : "",
    ...obstacles.map((text) => `Its jobs will wait: ${text}.`),
    waitingAt !== null && overlap === "queue"
      ? `The occurrence of ${instant(waitingAt)} waits for the previous job to end.`
      : "",
  ].filter((text) => text !== "");
  if (said.length === 0) return null;
  return (
    <div class={`banner ${error === null ? "" : "bad"}`} role="status">
      <Icon name="dead" />
      <span>{said.join(" ")}</span>
    </div>
  );
}

function factsOf(schedule: ScheduleLine): [string, ComponentChildren][] {
  const { job, queue, missed, overlap, jitterMs, edited } = schedule;
  return [
    [
      "Creates",
      job === null ? (
        "—"
      ) : (
        <a class="link" href={href(`/jobs?name=${seg(job)}`)}>
          {job}
        </a>
      ),
    ],
    [
      "In queue",
      queue === null ? (
        "—"
      ) : (
        <a class="link" href={href(`/queues/${queue}`)}>
          {queue}
        </a>
      ),
    ],
    [
      "Missed occurrences",
      missed === null ? "—" : { skip: "left out", one: "one job for all", all: "one job each" }[missed],
    ],
    ["Overlap", overlap === null ? "—" : overlapWords[overlap]],
    ["Jitter", jitterMs === 0 ? "none" : `up to ${duration(jitterMs)}`],
    ["Changed by hand", edited.length === 0 ? "nothing" : edited.join(", ")],
  ];
}

function History({ schedule }: { schedule: ScheduleLine }) {
  const { name } = schedule;
  const query = useQuery(
    `schedule history ${name}`,
    (signal) => get<ScheduleHistory>(`/schedules/${seg(name)}/runs`, { limit: 100 }, signal),
    { topic: `schedule:${name}` },
  );
  const n = query.data?.runs.length ?? 0;
  return (
    <Panel title="History" {...(n === 0 ? {} : { note: `newest ${plural(n, "run")}, one column each` })}>
      <Loaded query={query}>
        {({ runs }) =>
          runs.length === 0 ? (
            <NoRuns schedule={schedule} />
          ) : (
            <>
              <RunChart name={name} newestFirst={runs} />
              {runs.every(({ state }) => state === null) && (
                <p class="inset small muted">These jobs were removed after their queue's retention.</p>
              )}
            </>
          )
        }
      </Loaded>
    </Panel>
  );
}

/** The reason for an empty history. */
function NoRuns({ schedule: { paused, error, nextAt, fired } }: { schedule: ScheduleLine }) {
  const why = (): ComponentChildren => {
    if (fired > 0) return "Occurrences are kept for 30 days. This schedule has created no job since.";
    if (error !== null) return "Disabled: creates no jobs until it is fixed.";
    if (paused) return "Paused: creates no jobs until it is resumed. “Run now” creates one.";
    if (nextAt === null) return "No next occurrence";
    return (
      <>
        First occurrence <Ago at={nextAt} />, at {instant(nextAt)}. “Run now” creates a job at once.
      </>
    );
  };
  return (
    <Empty icon="calendar" title="No runs yet">
      <p>{why()}</p>
    </Empty>
  );
}
