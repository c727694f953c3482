// Schedules: timing, next occurrence, edits that override the code.
import type { ScheduleLine, ScheduleRuns } from "../../../src/dashboard/api/contract.ts";
import { get, seg } from "../data/api.ts";
import { useQuery } from "../data/live-query.ts";
import { href } from "../data/router.ts";
import { number } from "../kit/format.ts";
import { Ago, JobLink, State } from "../kit/labels.tsx";
import { Head } from "../kit/panels.tsx";
import { type Column, Listing, menuColumn } from "../kit/table.tsx";
import { HeatMap } from "../schedules/heat-map.tsx";
import { RunStrip } from "../schedules/run-strip.tsx";
import { actionsOf, nextRuns, useSchedules } from "../schedules/schedule-actions.tsx";
import { overlapWords } from "../schedules/schedule-form.tsx";

export function SchedulesScreen() {
  const query = useSchedules();
  const runs = useQuery("schedule runs", (signal) => get<ScheduleRuns>("/schedules/runs", {}, signal), {
    topic: "schedule-runs",
  });
  return (
    <>
      <Head title="Schedules" note="Each occurrence creates one job, over all processes." />
      {(query.data?.schedules.length ?? 0) > 0 && <HeatMap />}
      <section class="panel" aria-label="Schedules">
        <Listing
          query={query}
          rows={({ schedules }) => schedules}
          rowKey={({ name }: ScheduleLine) => name}
          empty={{
            icon: "calendar",
            title: "No schedules",
            text: (
              <>
                <p>Define a schedule and pass it to a worker:</p>
                <pre class="code">{`const nightly = defineSchedule({ name: "nightly",\n  cron: "0 3 * * *", timezone: "Europe/Berlin", job: report });\n\nhf.work([report], { schedules: [nightly] });`}</pre>
              </>
            ),
          }}
          columns={columnsOf(query.again, runs.data?.runs ?? {})}
          sort="sort"
        />
      </section>
    </>
  );
}

function columnsOf(again: () => void, runs: ScheduleRuns["runs"]): Column<ScheduleLine>[] {
  return [
    {
      head: "Schedule",
      by: ({ name }) => name,
      class: "schedule-name",
      cell: (schedule) => <Name schedule={schedule} />,
    },
    {
      head: "When",
      class: "schedule-when",
      cell: ({ cron, words }) => (
        <>
          {words}
          {cron !== null && !words.startsWith(cron) && <span class="sub mono nowrap">{cron}</span>}
        </>
      ),
    },
    {
      head: "Next",
      by: ({ paused, nextAt }) => (paused ? null : nextAt),
      num: true,
      cell: ({ paused, nextAt }) => (paused ? <span class="muted">—</span> : <Ago at={nextAt} />),
    },
    {
      head: "Last",
      by: ({ lastAt }) => lastAt,
      num: true,
      from: "medium",
      class: "muted",
      cell: ({ lastJobId, lastAt }) =>
        lastJobId === null ? (
          <Ago at={lastAt} />
        ) : (
          <JobLink id={lastJobId}>
            <Ago at={lastAt} />
          </JobLink>
        ),
    },
    {
      head: "Last 20",
      from: "medium",
      cell: ({ name }) => <RunStrip name={name} runs={Object.hasOwn(runs, name) ? (runs[name] ?? []) : []} />,
    },
    {
      head: "Overlap",
      by: ({ overlap }) => overlap,
      from: "wide",
      class: "muted",
      title: ({ overlap }) => overlapWords[overlap ?? "allow"],
      cell: ({ overlap }) => overlap ?? "—",
    },
    {
      head: "Fired",
      by: ({ fired }) => fired,
      num: true,
      from: "wide",
      cell: ({ fired, skipped }) => (
        <>
          {number(fired)}
          {skipped > 0 && <span class="sub nowrap">{number(skipped)} skipped</span>}
        </>
      ),
    },
    menuColumn(
      ({ name }) => name,
      (schedule) => [nextRuns(schedule), ...actionsOf(schedule, again)],
    ),
  ];
}

function Name({ schedule }: { schedule: ScheduleLine }) {
  return (
    <>
      <a class="main-link" href={href(`/schedules/${schedule.name}`)}>
        {schedule.name}
      </a>{" "}
      {schedule.paused && <State state="paused" />}{" "}
      {schedule.edited.length > 0 && (
        <span class="tag" title={`by hand: ${schedule.edited.join(", ")}`}>
          edited
        </span>
      )}{" "}
      {schedule.unserved && <span class="tag warn">no worker serves it</span>}{" "}
      {schedule.obstacles.map((text) => (
        <span key={text} class="tag warn">
          {text}
        </span>
      ))}
      {schedule.job !== null && (
        <span class="sub">
          creates{" "}
          {
            <a class="link" href={href(`/jobs?name=${seg(schedule.job)}`)}>
              {schedule.job}
            </a>
          }{" "}
          in {schedule.queue}
        </span>
      )}
      {schedule.error !== null && <span class="tag bad">{schedule.error}</span>}
    </>
  );
}
