// The form of a schedule, with a live explanation of its timing.
import { type Signal, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { ScheduleLine, TimingPreview } from "../../../src/dashboard/api/contract.ts";
import { get, seg, send } from "../data/api.ts";
import { useQuery } from "../data/live-query.ts";
import { Choice, Field, type Fields, openForm } from "../kit/forms.tsx";
import { Ago } from "../kit/labels.tsx";
import { Loaded } from "../kit/panels.tsx";

/** The next occurrences in the schedule's time zone. */
function Occurrences({ runs }: Pick<TimingPreview, "runs">) {
  return (
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
  );
}

export function editSchedule(schedule: ScheduleLine, again: () => void): void {
  openForm({
    title: `Edit ${schedule.name}`,
    verb: "Save",
    then: again,
    body: <EditFields schedule={schedule} />,
    run: async (fields) => {
      const change = changeOf(schedule, fields);
      if (Object.keys(change).length === 0) throw new Error("Nothing to save.");
      await send("PATCH", `/schedules/${seg(schedule.name)}`, change);
      return "Schedule saved";
    },
  });
}

function EditFields({ schedule }: { schedule: ScheduleLine }) {
  const { cron, timezone, edited } = schedule;
  const when = useSignal(cron ?? everyText(schedule));
  const zone = useSignal(timezone ?? "UTC");
  const typed = (into: Signal<string>) => (event: { readonly currentTarget: HTMLInputElement }) => {
    into.value = event.currentTarget.value.trim();
  };
  return (
    <>
      <Field
        label={cron === null ? "Every" : "Cron"}
        name="when"
        class="mono"
        defaultValue={when.peek()}
        onInput={typed(when)}
      />
      {cron !== null && (
        <Field label="Time zone" name="timezone" defaultValue={zone.peek()} onInput={typed(zone)} />
      )}
      <Ahead
        {...(cron === null ? { every: when.value } : { cron: when.value, timezone: zone.value || "UTC" })}
      />
      <div class="grid two">
        <Choice
          label="Missed occurrences"
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
      <p class="muted small">
        {edited.length > 0
          ? `Values changed here override the code. Others follow it. Changed so far: ${edited.join(", ")}.`
          : "Values changed here override the code. Others follow it."}
      </p>
    </>
  );
}

/** Debounce of the explanation. */
const settledMs = 250;

/** Explains the timing, or says what is invalid. */
function Ahead(timing: { readonly cron?: string; readonly every?: string; readonly timezone?: string }) {
  const key = JSON.stringify(timing);
  const settled = useSignal(key);
  useEffect(() => {
    const timer = setTimeout(() => (settled.value = key), settledMs);
    return () => clearTimeout(timer);
  }, [key]);
  const query = useQuery(`timing ${settled.value}`, (signal) =>
    get<TimingPreview>(
      "/schedules/preview",
      { ...(JSON.parse(settled.peek()) as typeof timing), n: 4 },
      signal,
    ),
  );
  const told = query.data;
  if (told === null) return null;
  return (
    <div class="stack tight" role="status" aria-label="Explanation">
      {told.error === null ? (
        <>
          <b>{told.words}</b>
          <Occurrences runs={told.runs} />
        </>
      ) : (
        <span class="bad-text">{told.error}</span>
      )}
    </div>
  );
}

/** Only changed values, because a sent value counts as edited and overrides the code. */
function changeOf(schedule: ScheduleLine, fields: Fields): Record<string, string> {
  const { cron, timezone, missed, overlap } = schedule;
  const asked: readonly (readonly [name: string, value: string | undefined, was: string])[] = [
    cron === null ? ["every", fields.text("when"), everyText(schedule)] : ["cron", fields.text("when"), cron],
    ["timezone", cron === null ? undefined : fields.text("timezone"), timezone ?? "UTC"],
    ["missed", fields.text("missed"), missed ?? "one"],
    ["overlap", fields.text("overlap"), overlap ?? "allow"],
  ];
  return Object.fromEntries(
    asked.flatMap(([name, value, was]) => (value === undefined || value === was ? [] : [[name, value]])),
  );
}

function everyText({ everyMs }: ScheduleLine): string {
  return `${(everyMs ?? 0) / 1_000}s`;
}

/** The rule for an occurrence whose previous job still runs. */
export const overlapWords = {
  allow: "allowed",
  skip: "the occurrence is skipped",
  queue: "the occurrence waits",
} as const;

export function NextOccurrences({ name }: { name: string }) {
  const query = useQuery(`preview ${name}`, (signal) =>
    get<Pick<TimingPreview, "runs">>(`/schedules/${seg(name)}/preview`, { n: 20 }, signal),
  );
  return <Loaded query={query}>{({ runs }) => <Occurrences runs={runs} />}</Loaded>;
}
