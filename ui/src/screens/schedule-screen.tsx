// One schedule: how its runs went, when it fires next, and what it is.
import type { ComponentChildren } from "preact";
import type { ScheduleHistory, ScheduleLine } from "../../../src/dashboard/api/contract.ts";
import { Buttons } from "../kit/actions.tsx";
import { get, seg } from "../data/api.ts";
import { duration, instant, number } from "../kit/format.ts";
import { Icon } from "../kit/icons.tsx";
import { Ago, JobLink } from "../kit/labels.tsx";
import { Empty, Facts, Head, Loaded, Panel, Tile } from "../kit/panels.tsx";
import { rich } from "../language/rich-text.ts";
import { go, href } from "../data/router.ts";
import { RunChart } from "../schedules/run-chart.tsx";
import { useQuery } from "../data/live-query.ts";
import { actionsOf, useSchedules } from "../schedules/schedule-actions.tsx";
import { NextSlots, overlapWords } from "../schedules/schedule-form.tsx";
import { t } from "../language/translation.ts";

export function ScheduleScreen({ name }: { name: string }) {
  const query = useSchedules();
  return (
    <Loaded query={query}>
      {({ schedules }) => {
        const schedule = schedules.find((one) => one.name === name);
        if (schedule !== undefined) return <Detail schedule={schedule} again={query.again} />;
        return (
          <section class="panel">
            <Empty icon="calendar" title={t("No such schedule")}>
              <p>{t("It was removed, or no process has put it yet.")}</p>
              <a class="button" href={href("/schedules")}>
                {t("All schedules")}
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
          name={t("Next")}
          value={schedule.paused ? "—" : <Ago at={nextAt} />}
          note={schedule.paused ? t("paused") : instant(nextAt)}
        />
        <Tile
          name={t("Last")}
          value={
            lastJobId === null ? (
              <Ago at={lastAt} />
            ) : (
              <JobLink id={lastJobId}>
                <Ago at={lastAt} />
              </JobLink>
            )
          }
          note={lastAt === null ? t("no slot yet") : instant(lastAt)}
        />
        <Tile name={t("Fired")} value={number(schedule.fired)} note={t("slots that made a job")} />
        <Tile name={t("Skipped")} value={number(schedule.skipped)} note={t("an earlier job ran")} />
        <Tile name={t("Missed")} value={number(schedule.passed)} note={t("nobody was there")} />
      </div>
      <History schedule={schedule} />
      <div class="grid two">
        <Panel
          title={t("Next runs")}
          note={t("in the time of {timezone}", { timezone: schedule.timezone ?? "UTC" })}
        >
          {schedule.paused ? (
            <Empty icon="pause" title={t("It is paused")}>
              <p>{t("It makes no jobs until it is resumed.")}</p>
            </Empty>
          ) : (
            <div class="inset">
              <NextSlots name={name} />
            </div>
          )}
        </Panel>
        <Panel title={t("Settings")}>
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
    error === null ? "" : t("It is disabled: {error}", { error }),
    unserved ? t("No worker serves its queue and job: what it makes waits.") : "",
    ...obstacles.map((text) => t("What it makes waits: {text}.", { text })),
    waitingAt !== null && overlap === "queue"
      ? t("The slot of {waitingAt} waits for the job before it to end.", { waitingAt: instant(waitingAt) })
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
      t("Makes"),
      job === null ? (
        "—"
      ) : (
        <a class="link" href={href(`/jobs?name=${seg(job)}`)}>
          {job}
        </a>
      ),
    ],
    [
      t("In queue"),
      queue === null ? (
        "—"
      ) : (
        <a class="link" href={href(`/queues/${queue}`)}>
          {queue}
        </a>
      ),
    ],
    [
      t("Missed slots"),
      missed === null
        ? "—"
        : { skip: t("left out"), one: t("one job for all"), all: t("a job each") }[missed],
    ],
    [t("Overlap"), overlap === null ? "—" : overlapWords[overlap]],
    [t("Jitter"), jitterMs === 0 ? t("none") : t("up to {jitterMs}", { jitterMs: duration(jitterMs) })],
    [t("Changed by hand"), edited.length === 0 ? t("nothing") : edited.join(", ")],
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
    <Panel
      title={t("History")}
      {...(n === 0
        ? {}
        : { note: t("the newest {n, plural, one {# run} other {# runs}}, a column each", { n }) })}
    >
      <Loaded query={query}>
        {({ runs }) =>
          runs.length === 0 ? (
            <NoRuns schedule={schedule} />
          ) : (
            <>
              <RunChart name={name} newestFirst={runs} />
              {runs.every(({ state }) => state === null) && (
                <p class="inset small muted">
                  {t(
                    "None of these jobs is kept any more: how long jobs are kept is a setting of their queue.",
                  )}
                </p>
              )}
            </>
          )
        }
      </Loaded>
    </Panel>
  );
}

/** Why there is nothing to show. */
function NoRuns({ schedule: { paused, error, nextAt, fired } }: { schedule: ScheduleLine }) {
  const why = (): ComponentChildren => {
    if (fired > 0) return t("Slots are forgotten after 30 days, and it has made no job since.");
    if (error !== null) return t("It is disabled, and makes no jobs until it is mended.");
    if (paused) return t("It is paused, and makes no jobs until it is resumed. Run now makes one.");
    if (nextAt === null) return t("It has no slot any more.");
    return (
      <>
        {rich("Its first slot is {when}, at {nextAt}. Run now makes a job at once.", {
          when: <Ago at={nextAt} />,
          nextAt: instant(nextAt),
        })}
      </>
    );
  };
  return (
    <Empty icon="calendar" title={t("No run yet")}>
      <p>{why()}</p>
    </Empty>
  );
}
