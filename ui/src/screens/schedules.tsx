// Schedules: what fires when, and changes by hand that outlive restarts.
import type { ScheduleLine } from "../../../src/dashboard/contract.ts";
import { Act, Choice, Do, Field, openForm } from "../actions.tsx";
import { get, seg, send } from "../api.ts";
import { duration, instant, number } from "../format.ts";
import { Ago, Head, JobLink, Loaded, showDialog, State } from "../parts.tsx";
import { go, href } from "../router.ts";
import { actionsColumn, type Column, Listing } from "../table.tsx";
import { useQuery } from "../use-query.ts";

export function Schedules() {
  const query = useQuery(
    "schedules",
    (signal) => get<{ schedules: ScheduleLine[] }>("/schedules", {}, signal),
    { live: true },
  );
  return (
    <>
      <Head title="Schedules" note="Each makes one job for each of its slots, over all processes." />
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
          columns={columnsOf(query.again)}
        />
      </section>
    </>
  );
}

function columnsOf(again: () => void): Column<ScheduleLine>[] {
  return [
    { head: "Schedule", cell: (schedule) => <Name schedule={schedule} /> },
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
          showDialog(`Next runs of ${name}`, (close) => <Preview schedule={schedule} close={close} />)
        }
      />
      <Do
        verb="Run now"
        on={name}
        needs="schedules:trigger"
        run={() => send<{ id: string }>("POST", `${path}/trigger`).then(({ id }) => go(`/jobs/${id}`))}
        done="Its job is made."
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
        ask="A worker that defines it brings it back when it starts."
        run={() => send("DELETE", path)}
        done="Removed."
      />
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
