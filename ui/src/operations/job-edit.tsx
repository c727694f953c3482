// The edit of jobs: due time, queue, priority. Empty fields do not change.
import type { EditJson, QueueLine } from "../../../src/dashboard/api/contract.ts";
import { Field, type Fields, openForm } from "../kit/forms.tsx";
import { get, send } from "../data/api.ts";
import { instant, number } from "../kit/format.ts";
import { clock } from "../data/page-settings.ts";
import { useQuery } from "../data/live-query.ts";

/** Asks for the change. `title` names the jobs; `dead`: all are dead and have no due time. */
export function askEdit(title: string, dead: boolean, then: (change: EditJson) => void): void {
  let change: EditJson = {};
  openForm({
    title,
    verb: "Preview",
    body: <EditFields dead={dead} />,
    run: async (fields) => {
      change = editOf(fields);
      return null;
    },
    then: () => then(change),
  });
}

export function editJob(
  { id, name, state }: { id: string; name: string; state: string },
  then: () => void,
): void {
  const dead = state === "dead";
  openForm({
    title: dead ? `Move ${name}` : `Edit ${name}`,
    verb: dead ? "Move" : "Change",
    body: <EditFields dead={dead} />,
    run: async (fields) => {
      await send("PATCH", `/jobs/${id}`, editOf(fields));
      return dead ? "Moved; still dead" : "Changed";
    },
    then,
  });
}

function EditFields({ dead }: { dead: boolean }) {
  const queues = useQuery("queues", (signal) => get<{ queues: QueueLine[] }>("/queues", {}, signal));
  return (
    <>
      {!dead && <Field label="Run" name="when" placeholder="now, 2h, or 2026-02-01 08:00" />}
      <div class="grid two">
        <label class="field">
          <span>Queue</span>
          <input
            type="text"
            class="input"
            name="queue"
            placeholder="unchanged"
            list="edit-queues"
            spellcheck={false}
            autocomplete="off"
          />
        </label>
        <Field label="Priority" name="priority" inputMode="numeric" placeholder="unchanged" />
      </div>
      <datalist id="edit-queues">
        {queues.data?.queues.map(({ name }) => (
          <option key={name} value={name} />
        ))}
      </datalist>
      <p class="muted small">
        {dead
          ? "Empty fields do not change. The jobs stay dead; a retry runs them in their new queue."
          : "Empty fields do not change. Running jobs are skipped. Dead jobs accept a queue and a priority, and stay dead."}
      </p>
    </>
  );
}

/** @throws Error for an empty or invalid form */
function editOf(fields: Fields): EditJson {
  const when = fields.text("when");
  const queue = fields.text("queue");
  const priority = fields.number("priority");
  if (priority !== undefined && !Number.isInteger(priority))
    throw new Error("Enter a whole number as priority.");
  const change: EditJson = {
    ...(when === undefined ? {} : whenOf(when)),
    ...(queue === undefined ? {} : { queue }),
    ...(priority === undefined ? {} : { priority }),
  };
  if (Object.keys(change).length === 0) throw new Error("Fill in at least one field.");
  return change;
}

/** "now", a duration from now, or a date. */
function whenOf(text: string): EditJson {
  if (text === "now") return { delay: 0 };
  if (/^(in )?\d+(\.\d+)?(ms|s|m|h|d|w)/.test(text)) return { delay: text.replace(/^in /, "") };
  // A date without a zone is in the page's zone.
  const zoned = /(?:Z|[+-]\d\d:?\d\d)$/i.test(text);
  const date = text.replace(/^(\d{4}-\d\d-\d\d)[ T]/, "$1T").replace(/ UTC$/, "Z");
  // Date.parse reads a date without time as UTC.
  const full = /^\d{4}-\d\d-\d\d$/.test(date) ? `${date}T00:00` : date;
  const at = Date.parse(clock.value === "utc" && !zoned && !full.endsWith("Z") ? `${full}Z` : full);
  if (Number.isNaN(at)) throw new Error(`“${text}” is not a time. Write now, 2h, or 2026-02-01 08:00.`);
  return { at };
}

/** The change in words. */
export function editInWords({ delay, at, queue, priority }: EditJson): string {
  const parts: string[] = [];
  if (delay !== undefined) parts.push(delay === 0 ? "run now" : `run in ${delay}`);
  if (at !== undefined) parts.push(`run at ${instant(at)}`);
  if (queue !== undefined) parts.push(`to queue ${queue}`);
  if (priority !== undefined) parts.push(`with priority ${number(priority)}`);
  return parts.join(", ");
}

/** Reasons for skipping a job, by the server's codes. */
export const passedOver: Readonly<Record<string, string>> = {
  running: "running",
  ended: "ended",
  waiting: "asleep or waiting",
  past_deadline: "with an earlier deadline",
  keyed: "unique within their queue",
  not_found: "gone",
};
