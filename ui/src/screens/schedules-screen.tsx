// Schedules: what fires when, and changes by hand that outlive restarts.
import { stateWord } from "../language/state-words.ts";
import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import type {
  BackfillAnswer,
  Calendar,
  ScheduleLine,
  ScheduleRuns,
  TimingPreview,
} from "../../../src/dashboard/api/contract.ts";
import { type Action, type Actions, doing } from "../kit/actions.tsx";
import { get, seg, send } from "../data/api.ts";
import { clockTime, duration, instant, number } from "../kit/format.ts";
import { Ago, JobLink, State } from "../kit/labels.tsx";
import { beat } from "../data/page-clock.ts";
import { Head, Loaded, Panel } from "../kit/panels.tsx";
import { showDialog } from "../kit/dialogs.tsx";
import { toast } from "../kit/toasts.tsx";
import { rich } from "../language/rich-text.ts";
import { go, href } from "../data/router.ts";
import { editSchedule, Slots } from "../schedules/schedule-form.tsx";
import { clock } from "../data/page-settings.ts";
import { type Column, Listing, menuColumn } from "../kit/table.tsx";
import { t } from "../language/translation.ts";
import { type Query, useQuery } from "../data/live-query.ts";

export function useSchedules(): Query<{ schedules: ScheduleLine[] }> {
  return useQuery("schedules", (signal) => get("/schedules", {}, signal), { topic: "schedules" });
}

export function Schedules() {
  const query = useSchedules();
  const runs = useQuery("schedule runs", (signal) => get<ScheduleRuns>("/schedules/runs", {}, signal), {
    topic: "schedule-runs",
  });
  return (
    <>
      <Head
        title={t("Schedules")}
        note={t("Each makes one job for each of its slots, over all processes.")}
      />
      {(query.data?.schedules.length ?? 0) > 0 && <HeatMap />}
      <section class="panel" aria-label={t("Schedules")}>
        <Listing
          query={query}
          rows={({ schedules }) => schedules}
          rowKey={({ name }: ScheduleLine) => name}
          empty={{
            icon: "calendar",
            title: t("No schedule"),
            text: (
              <>
                <p>{t("Define one, and give it to a worker:")}</p>
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

/** What becomes of a slot whose earlier job has not ended. */
export const overlapWords = {
  allow: t("allowed"),
  skip: t("the slot is skipped"),
  queue: "the slot waits",
} as const;

function columnsOf(again: () => void, runs: ScheduleRuns["runs"]): Column<ScheduleLine>[] {
  return [
    {
      head: t("Schedule"),
      by: ({ name }) => name,
      class: "schedule-name",
      cell: (schedule) => <Name schedule={schedule} />,
    },
    {
      head: t("When"),
      class: "schedule-when",
      cell: ({ cron, words }) => (
        <>
          {words}
          {cron !== null && !words.startsWith(cron) && <span class="sub mono nowrap">{cron}</span>}
        </>
      ),
    },
    {
      head: t("Next"),
      by: ({ paused, nextAt }) => (paused ? null : nextAt),
      num: true,
      cell: ({ paused, nextAt }) => (paused ? <span class="muted">—</span> : <Ago at={nextAt} />),
    },
    {
      head: t("Last"),
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
      head: t("Last 20"),
      from: "medium",
      cell: ({ name }) => <Strip name={name} runs={Object.hasOwn(runs, name) ? (runs[name] ?? []) : []} />,
    },
    {
      head: t("Overlap"),
      by: ({ overlap }) => overlap,
      from: "wide",
      class: "muted",
      title: ({ overlap }) => overlapWords[overlap ?? "allow"],
      cell: ({ overlap }) => overlap ?? "—",
    },
    {
      head: t("Fired"),
      by: ({ fired }) => fired,
      num: true,
      from: "wide",
      cell: ({ fired, skipped }) => (
        <>
          {number(fired)}
          {skipped > 0 && (
            <span class="sub nowrap">{t("{skipped} skipped", { skipped: number(skipped) })}</span>
          )}
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
        <span class="tag" title={t("by hand: {edited}", { edited: schedule.edited.join(", ") })}>
          {t("edited")}
        </span>
      )}{" "}
      {schedule.unserved && <span class="tag warn">{t("no worker serves it")}</span>}{" "}
      {schedule.obstacles.map((text) => (
        <span key={text} class="tag warn">
          {text}
        </span>
      ))}
      {schedule.job !== null && (
        <span class="sub">
          {rich("makes {job} in {queue}", {
            job: (
              <a class="link" href={href(`/jobs?name=${seg(schedule.job)}`)}>
                {schedule.job}
              </a>
            ),
            queue: schedule.queue,
          })}
        </span>
      )}
      {schedule.error !== null && <span class="tag bad">{schedule.error}</span>}
    </>
  );
}

/** In its row, and on its own screen. */
export function actionsOf(schedule: ScheduleLine, again: () => void, removed = again): Actions {
  const { name, paused } = schedule;
  const path = `/schedules/${seg(name)}`;
  const change = { on: name, needs: "schedules:set", then: again } as const;
  return [
    doing({
      verb: t("Run now"),
      on: name,
      needs: "schedules:trigger",
      icon: "next",
      run: () => send<{ id: string }>("POST", `${path}/trigger`).then(({ id }) => go(`/jobs/${id}`)),
      done: t("Its job is made."),
    }),
    {
      verb: t("Backfill"),
      needs: "schedules:trigger",
      icon: "clock",
      title: t("Jobs for slots that passed without one"),
      press: () =>
        showDialog(t("Backfill {name}", { name }), (close) => (
          <Backfill schedule={schedule} close={close} again={again} />
        )),
    },
    {
      verb: t("Edit"),
      needs: "schedules:set",
      icon: "gear",
      press: () => editSchedule(schedule, again),
    },
    doing({
      ...change,
      verb: paused ? t("Resume") : t("Pause"),
      icon: paused ? "play" : "pause",
      run: () => send("POST", `${path}/${paused ? "resume" : "pause"}`),
      done: paused ? t("It makes jobs again.") : t("It makes no more jobs."),
    }),
    (schedule.edited.length > 0 || schedule.error !== null) &&
      doing({
        ...change,
        verb: t("Reset"),
        icon: "retry",
        title: t("Back to what the code says"),
        run: () => send("POST", `${path}/reset`),
        done: t("It is as the code says."),
      }),
    doing({
      ...change,
      then: removed,
      verb: t("Remove"),
      danger: true,
      icon: "trash",
      ask: t("A worker that defines it brings it back when it starts."),
      run: () => send("DELETE", path),
      done: t("Removed."),
    }),
  ];
}

/** Its own screen shows them anyway. */
function nextRuns(schedule: ScheduleLine): Action {
  const { name } = schedule;
  return {
    verb: t("Next runs"),
    needs: "view",
    icon: "calendar",
    press: () =>
      showDialog(t("Next runs of {name}", { name }), (close) => (
        <NextRuns schedule={schedule} close={close} />
      )),
  };
}

/** First which slots it would be, then their jobs. */
function Backfill({
  schedule: { name },
  close,
  again,
}: {
  schedule: ScheduleLine;
  close: () => void;
  again: () => void;
}) {
  const form = useRef<HTMLFormElement>(null);
  const found = useSignal<(BackfillAnswer & { readonly range: object }) | null>(null);
  const wrong = useSignal<string | null>(null);
  const busy = useSignal(false);
  const ask = async (): Promise<void> => {
    if (busy.value) return;
    busy.value = true;
    wrong.value = null;
    const path = `/schedules/${seg(name)}/backfill`;
    try {
      if (found.value === null) {
        const fields = new FormData(form.current ?? undefined);
        const range = { from: instantOf(fields.get("from")), to: instantOf(fields.get("to")) };
        found.value = { ...(await send<BackfillAnswer>("POST", path, { ...range, dryRun: true })), range };
      } else {
        const made = await send<BackfillAnswer>("POST", path, found.value.range);
        toast(
          made.more
            ? t("{slots, plural, one {# job} other {# jobs}} made. There are more: do it again.", {
                slots: made.slots.length,
              })
            : t("{slots, plural, one {# job} other {# jobs}} made.", { slots: made.slots.length }),
          "good",
        );
        close();
        again();
      }
    } catch (error) {
      wrong.value = error instanceof Error ? error.message : String(error);
    }
    busy.value = false;
  };
  const n = found.value?.slots.length ?? 0;
  return (
    <form
      ref={form}
      method="dialog"
      onSubmit={(event) => {
        event.preventDefault();
        void ask();
      }}
    >
      <header>
        <h2>{t("Backfill {name}", { name })}</h2>
      </header>
      <div class="content">
        {wrong.value !== null && (
          <div class="banner bad" role="alert">
            {wrong.value}
          </div>
        )}
        <p class="muted">
          {t(
            "Slots of the past that have no job get one, once, however often this is done. The jobs are due now; the schedule goes on as it would.",
          )}
        </p>
        <div class="grid two">
          {(["from", "to"] as const).map((field) => (
            <label key={field} class="field">
              <span>{field === "from" ? t("From") : t("To (empty: now)")}</span>
              <input
                class="input"
                type="datetime-local"
                name={field}
                required={field === "from"}
                onInput={() => (found.value = null)}
              />
            </label>
          ))}
        </div>
        {found.value !== null && (
          <div role="status">
            <h3>
              {found.value.more
                ? found.value.had > 0
                  ? t("{n} and more; {had} have their job", {
                      n:
                        n === 0
                          ? t("No slot of this time is without a job")
                          : t("{n, plural, one {# slot} other {# slots}}", { n }),
                      had: number(found.value.had),
                    })
                  : t("{n} and more", {
                      n:
                        n === 0
                          ? t("No slot of this time is without a job")
                          : t("{n, plural, one {# slot} other {# slots}}", { n }),
                    })
                : found.value.had > 0
                  ? t("{n}; {had} have their job", {
                      n:
                        n === 0
                          ? t("No slot of this time is without a job")
                          : t("{n, plural, one {# slot} other {# slots}}", { n }),
                      had: number(found.value.had),
                    })
                  : n === 0
                    ? t("No slot of this time is without a job")
                    : t("{n, plural, one {# slot} other {# slots}}", { n })}
            </h3>
            <ol class="samples">
              {found.value.slots.slice(0, 100).map(({ at }) => (
                <li key={at}>
                  <span class="nowrap">{instant(at)}</span>
                  <span class="muted spread">
                    <Ago at={at} />
                  </span>
                </li>
              ))}
            </ol>
          </div>
        )}
      </div>
      <footer>
        <button type="button" class="button" onClick={close}>
          {t("Not now")}
        </button>
        <button type="submit" class="button primary" disabled={found.value !== null && n === 0}>
          {found.value === null ? t("Show slots") : t("Make {n, plural, one {# job} other {# jobs}}", { n })}
        </button>
      </footer>
    </form>
  );
}

/** What was put into a field, in this browser's time (or UTC, as the page is set); undefined: nothing. */
function instantOf(value: FormDataEntryValue | null): number | undefined {
  if (typeof value !== "string" || value === "") return undefined;
  return new Date(clock.value === "utc" ? `${value}Z` : value).getTime();
}

function NextRuns({ schedule, close }: { schedule: ScheduleLine; close: () => void }) {
  return (
    <div class="dialog">
      <header>
        <h2>{t("Next runs of {name}", { name: schedule.name })}</h2>
      </header>
      <div class="content">
        <p class="muted small">{t("In the time of {timezone}.", { timezone: schedule.timezone ?? "UTC" })}</p>
        <NextSlots name={schedule.name} />
      </div>
      <footer>
        <button type="button" class="button" onClick={close}>
          {t("Close")}
        </button>
      </footer>
    </div>
  );
}

export function NextSlots({ name }: { name: string }) {
  const query = useQuery(`preview ${name}`, (signal) =>
    get<Pick<TimingPreview, "runs">>(`/schedules/${seg(name)}/preview`, { n: 20 }, signal),
  );
  return <Loaded query={query}>{({ runs }) => <Slots runs={runs} />}</Loaded>;
}

/** One box for each of its newest jobs, the newest at the right. */
function Strip({ name, runs }: { name: string; runs: ScheduleRuns["runs"][string] }) {
  if (runs.length === 0) return <span class="muted">—</span>;
  const bad = runs.filter(({ state }) => state === "dead").length;
  const last = runs.at(-1);
  return (
    <span
      class="strip"
      role="group"
      aria-label={t("Newest jobs of {name}: {runs}, {bad} dead", { name, runs: runs.length, bad })}
    >
      {runs.map((run) => (
        <a
          key={run.id}
          class={`cell ${run.state ?? "gone"}`}
          href={href(`/jobs/${run.id}`)}
          // One stop for the keyboard: the newest. The others are on the jobs' own list.
          tabIndex={run === last ? 0 : -1}
          title={wordsOf(run)}
          aria-label={wordsOf(run)}
        />
      ))}
    </span>
  );
}

function wordsOf({ at, state, lateMs, ranMs }: ScheduleRuns["runs"][string][number]): string {
  const said = [state === null ? t("not kept any more") : stateWord(state)];
  if (lateMs !== null) said.push(t("started {late} after its slot", { late: duration(lateMs) }));
  if (ranMs !== null) said.push(t("ran {time}", { time: duration(ranMs) }));
  return `${instant(at)}: ${said.join(", ")}`;
}

/** The next day in quarters of an hour: where slots pile up. */
function HeatMap() {
  const query = useQuery(`calendar ${Math.floor(beat.value / 300_000)}`, (signal) =>
    get<Calendar>("/schedules/calendar", {}, signal),
  );
  const calendar = query.data;
  if (calendar === null) return null;
  const most = Math.max(1, ...calendar.pieces.map(({ count }) => count));
  const all = calendar.pieces.reduce((sum, { count }) => sum + count, 0);
  const busiest = calendar.pieces
    .map((piece, i) => ({ ...piece, at: calendar.from + i * calendar.stepMs }))
    .filter(({ count }) => count > 0)
    .sort((a, b) => b.count - a.count)
    .slice(0, 3);
  const hours = Array.from({ length: 24 }, (_, hour) => hour);
  const perHour = 3_600_000 / calendar.stepMs;
  return (
    <Panel
      title={t("Next 24 hours")}
      note={
        calendar.estimated
          ? t("about {all, plural, one {# job} other {# jobs}}, by the quarter of an hour", { all })
          : t("{all, plural, one {# job} other {# jobs}}, by the quarter of an hour", { all })
      }
    >
      <div class="heat" role="img" aria-label={busiestWords(busiest, all)}>
        {hours.map((hour) => {
          const at = calendar.from + hour * 3_600_000;
          return (
            <span key={hour} class="hour">
              {calendar.pieces.slice(hour * perHour, (hour + 1) * perHour).map((piece, quarter) => (
                <i
                  key={quarter}
                  class={`level-${levelOf(piece.count, most)}`}
                  title={`${clockTime(at + quarter * calendar.stepMs)}: ${number(piece.count)}${
                    piece.most.length === 0
                      ? ""
                      : `\n${piece.most.map(({ name, count }) => `${name} ${number(count)}`).join("\n")}`
                  }`}
                />
              ))}
              <span class="muted">{clockTime(at)}</span>
            </span>
          );
        })}
      </div>
      <p class="heat-note small muted">{busiestWords(busiest, all)}</p>
    </Panel>
  );
}

function busiestWords(
  busiest: readonly {
    readonly at: number;
    readonly count: number;
    readonly most: Calendar["pieces"][number]["most"];
  }[],
  all: number,
): string {
  if (all === 0) return t("No slot in the next 24 hours.");
  const parts = busiest.map(({ at, count, most }) =>
    t("{at} with {count, plural, one {# job} other {# jobs}} ({most})", {
      at: clockTime(at),
      count,
      most: most.map(({ name }) => name).join(", "),
    }),
  );
  return t("Busiest: {parts}.", { parts: parts.join("; ") });
}

/** 0 for none, then four steps up to the busiest. */
function levelOf(count: number, most: number): number {
  return Math.ceil((count / most) * 4);
}
