// Schedules: what fires when, and changes by hand that outlive restarts.
import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import type {
  BackfillAnswer,
  Calendar,
  ScheduleLine,
  ScheduleRuns,
} from "../../../src/dashboard/contract.ts";
import { Act, Choice, Do, Field, openForm } from "../actions.tsx";
import { get, seg, send } from "../api.ts";
import { duration, instant, number, plural } from "../format.ts";
import { Ago, Head, JobLink, Loaded, now, showDialog, State, toast } from "../parts.tsx";
import { go, href } from "../router.ts";
import { clock } from "../settings.ts";
import { actionsColumn, type Column, Listing, Panel } from "../table.tsx";
import { useQuery } from "../use-query.ts";

export function Schedules() {
  const query = useQuery(
    "schedules",
    (signal) => get<{ schedules: ScheduleLine[] }>("/schedules", {}, signal),
    { live: true },
  );
  // Not with every change: what a strip shows moves by the slot.
  const runs = useQuery(`schedule runs ${Math.floor(now.value / 15_000)}`, (signal) =>
    get<ScheduleRuns>("/schedules/runs", {}, signal),
  );
  return (
    <>
      <Head title="Schedules" note="Each makes one job for each of its slots, over all processes." />
      {(query.data?.schedules.length ?? 0) > 0 && <HeatMap />}
      <section class="panel" aria-label="Schedules">
        <Listing
          query={query}
          rows={({ schedules }) => schedules}
          rowKey={({ name }: ScheduleLine) => name}
          empty={{
            icon: "calendar",
            title: "No schedule",
            text: (
              <>
                <p>Define one, and give it to a worker:</p>
                <pre class="code">{`const nightly = defineSchedule({ name: "nightly",\n  cron: "0 3 * * *", timezone: "Europe/Berlin", job: report });\n\nhf.work([report], { schedules: [nightly] });`}</pre>
              </>
            ),
          }}
          columns={columnsOf(query.again, runs.data?.runs ?? {})}
        />
      </section>
    </>
  );
}

function columnsOf(again: () => void, runs: ScheduleRuns["runs"]): Column<ScheduleLine>[] {
  return [
    { head: "Schedule", class: "schedule-name", cell: (schedule) => <Name schedule={schedule} /> },
    {
      head: "When",
      cell: ({ cron, everyMs, timezone }) => (
        <>
          <span class="mono">{cron ?? (everyMs === null ? "—" : `every ${duration(everyMs)}`)}</span>
          {timezone !== null && <span class="sub">{timezone}</span>}
        </>
      ),
    },
    {
      head: "Next",
      num: true,
      cell: ({ paused, nextAt }) => (paused ? <span class="muted">—</span> : <Ago at={nextAt} />),
    },
    {
      head: "Last",
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
      cell: ({ name }) => <Strip name={name} runs={Object.hasOwn(runs, name) ? (runs[name] ?? []) : []} />,
    },
    { head: "Fired", num: true, from: "wide", cell: ({ fired }) => number(fired) },
    { head: "Skipped", num: true, from: "wide", class: "muted", cell: ({ skipped }) => number(skipped) },
    actionsColumn((schedule) => <Actions schedule={schedule} again={again} />),
  ];
}

function Name({ schedule }: { schedule: ScheduleLine }) {
  return (
    <>
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
    </>
  );
}

function Actions({ schedule, again }: { schedule: ScheduleLine; again: () => void }) {
  const { name, paused } = schedule;
  const path = `/schedules/${seg(name)}`;
  const change = { on: name, needs: "schedules:set", then: again } as const;
  return (
    <>
      <Act
        verb="Next runs"
        on={`of ${name}`}
        needs="view"
        quiet
        press={() =>
          showDialog(`Next runs of ${name}`, (close) => <NextRuns schedule={schedule} close={close} />)
        }
      />
      <Do
        verb="Run now"
        on={name}
        needs="schedules:trigger"
        run={() => send<{ id: string }>("POST", `${path}/trigger`).then(({ id }) => go(`/jobs/${id}`))}
        done="Its job is made."
      />
      <Act
        verb="Backfill"
        on={name}
        needs="schedules:trigger"
        quiet
        title="Jobs for slots that passed without one"
        press={() =>
          showDialog(`Backfill ${name}`, (close) => (
            <Backfill schedule={schedule} close={close} again={again} />
          ))
        }
      />
      <Act verb="Edit" on={name} needs="schedules:set" press={() => edit(schedule, again)} />
      <Do
        {...change}
        verb={paused ? "Resume" : "Pause"}
        run={() => send("POST", `${path}/${paused ? "resume" : "pause"}`)}
        done={paused ? "It makes jobs again." : "It makes no more jobs."}
      />
      {(schedule.edited.length > 0 || schedule.error !== null) && (
        <Do
          {...change}
          verb="Reset"
          title="Back to what the code says"
          run={() => send("POST", `${path}/reset`)}
          done="It is as the code says."
        />
      )}
      <Do
        {...change}
        verb="Remove"
        danger
        icon="trash"
        bare
        ask="A worker that defines it brings it back when it starts."
        run={() => send("DELETE", path)}
        done="Removed."
      />
    </>
  );
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
          `${plural(made.slots.length, "job")} made.${made.more ? " There are more: do it again." : ""}`,
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
        <h2>Backfill {name}</h2>
      </header>
      <div class="content">
        {wrong.value !== null && (
          <div class="banner bad" role="alert">
            {wrong.value}
          </div>
        )}
        <p class="muted">
          Slots of the past that have no job get one, once, however often this is done. The jobs are due now;
          the schedule goes on as it would.
        </p>
        <div class="grid two">
          {(["from", "to"] as const).map((field) => (
            <label key={field} class="field">
              <span>{field === "from" ? "From" : "To (empty: now)"}</span>
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
              {n === 0 ? "No slot of this time is without a job" : plural(n, "slot")}
              {found.value.more && " and more"}
              {found.value.had > 0 && `; ${number(found.value.had)} have their job`}
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
          Not now
        </button>
        <button type="submit" class="button primary" disabled={found.value !== null && n === 0}>
          {found.value === null ? "Show slots" : `Make ${plural(n, "job")}`}
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
  const query = useQuery(`preview ${schedule.name}`, (signal) =>
    get<Preview>(`/schedules/${seg(schedule.name)}/preview`, { n: 20 }, signal),
  );
  return (
    <div class="dialog">
      <header>
        <h2>Next runs of {schedule.name}</h2>
      </header>
      <div class="content">
        <p class="muted small">In the time of {schedule.timezone ?? "UTC"}.</p>
        <Loaded query={query}>
          {({ runs }) => (
            <ol class="samples">
              {runs.map(({ at, local, offset, note }) => (
                <li key={at} class={note === null ? "" : "noted"}>
                  <span class="nowrap">
                    {local.replace(/:00$/, "")} <span class="muted">{offset}</span>
                  </span>
                  <span class="muted spread">
                    <Ago at={at} />
                  </span>
                  {note !== null && <span class="tag warn">{note}</span>}
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

interface Preview {
  readonly runs: readonly {
    readonly at: number;
    readonly local: string;
    readonly offset: string;
    readonly note: string | null;
  }[];
}

/** One box for each of its newest jobs, the newest at the right. */
function Strip({ name, runs }: { name: string; runs: ScheduleRuns["runs"][string] }) {
  if (runs.length === 0) return <span class="muted">—</span>;
  const bad = runs.filter(({ state }) => state === "dead").length;
  const last = runs.at(-1);
  return (
    <span class="strip" role="group" aria-label={`Newest jobs of ${name}: ${runs.length}, ${bad} dead`}>
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
  const late = lateMs === null ? "" : `, started ${duration(lateMs)} after its slot`;
  const ran = ranMs === null ? "" : `, ran ${duration(ranMs)}`;
  return `${instant(at)}: ${state ?? "not kept any more"}${late}${ran}`;
}

/** The next day in quarters of an hour: where slots pile up. */
function HeatMap() {
  const query = useQuery(`calendar ${Math.floor(now.value / 300_000)}`, (signal) =>
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
      title="Next 24 hours"
      note={`${calendar.estimated ? "about " : ""}${number(all)} jobs, by the quarter of an hour`}
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
                  title={`${instant(at + quarter * calendar.stepMs).slice(11, 16)}: ${number(piece.count)}${
                    piece.most.length === 0
                      ? ""
                      : `\n${piece.most.map(({ name, count }) => `${name} ${number(count)}`).join("\n")}`
                  }`}
                />
              ))}
              <span class="muted">{instant(at).slice(11, 16)}</span>
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
  if (all === 0) return "No slot in the next 24 hours.";
  const parts = busiest.map(
    ({ at, count, most }) =>
      `${instant(at).slice(11, 16)} with ${plural(count, "job")} (${most.map(({ name }) => name).join(", ")})`,
  );
  return `Busiest: ${parts.join("; ")}.`;
}

/** 0 for none, then four steps up to the busiest. */
function levelOf(count: number, most: number): number {
  return Math.ceil((count / most) * 4);
}

function edit(schedule: ScheduleLine, again: () => void): void {
  const { name, cron, everyMs, timezone } = schedule;
  openForm({
    title: `Edit ${name}`,
    verb: "Save",
    then: again,
    body: (
      <>
        <Field
          label={cron === null ? "Every" : "Cron"}
          name="when"
          class="mono"
          defaultValue={cron ?? `${(everyMs ?? 0) / 1_000}s`}
        />
        {cron !== null && <Field label="Time zone" name="timezone" defaultValue={timezone ?? "UTC"} />}
        <div class="grid two">
          <Choice
            label="Missed slots"
            name="missed"
            value={schedule.missed ?? "one"}
            options={["skip", "one", "all"]}
          />
          <Choice
            label="Overlap"
            name="overlap"
            value={schedule.overlap ?? "allow"}
            options={["allow", "skip", "queue"]}
          />
        </div>
      </>
    ),
    run: async (fields) => {
      const when = fields.text("when") ?? "";
      await send("PATCH", `/schedules/${seg(name)}`, {
        ...(cron === null ? { every: when } : { cron: when, timezone: fields.text("timezone") ?? "UTC" }),
        missed: fields.text("missed"),
        overlap: fields.text("overlap"),
      });
      return "The change survives restarts.";
    },
  });
}
