// What an edit of jobs changes: when they run, in which queue, how soon before others. Empty stays as it is.
import type { EditJson, QueueLine } from "../../src/dashboard/contract.ts";
import { Field, type Fields, openForm } from "./actions.tsx";
import { get, send } from "./api.ts";
import { number } from "./format.ts";
import { useQuery } from "./use-query.ts";

/** Asks for the change, and then goes on with it. `title` says of which jobs. */
export function askEdit(title: string, then: (change: EditJson) => void): void {
  let change: EditJson = {};
  openForm({
    title,
    verb: "Look what that does",
    body: <EditFields />,
    run: async (fields) => {
      change = editOf(fields);
      return null;
    },
    then: () => then(change),
  });
}

/** Edits one job. */
export function editJob({ id, name }: { id: string; name: string }, then: () => void): void {
  openForm({
    title: `Edit ${name}`,
    verb: "Change",
    body: <EditFields />,
    run: async (fields) => {
      await send("PATCH", `/jobs/${id}`, editOf(fields));
      return "It is changed.";
    },
    then,
  });
}

function EditFields() {
  const queues = useQuery("queues", (signal) => get<{ queues: QueueLine[] }>("/queues", {}, signal));
  return (
    <>
      <Field label="Run" name="when" placeholder="now, 2h, or 2026-02-01 08:00" />
      <div class="grid two">
        <label class="field">
          <span>Queue</span>
          <input
            type="text"
            class="input"
            name="queue"
            placeholder="as it is"
            list="edit-queues"
            spellcheck={false}
            autocomplete="off"
          />
        </label>
        <Field label="Priority" name="priority" inputMode="numeric" placeholder="as it is" />
      </div>
      <datalist id="edit-queues">
        {queues.data?.queues.map(({ name }) => (
          <option key={name} value={name} />
        ))}
      </datalist>
      <p class="muted small">
        What is left empty stays as it is. Jobs that run or have ended are passed over.
      </p>
    </>
  );
}

/** @throws Error that says what is missing. */
function editOf(fields: Fields): EditJson {
  const when = fields.text("when");
  const queue = fields.text("queue");
  const priority = fields.number("priority");
  if (priority !== undefined && !Number.isInteger(priority))
    throw new Error("The priority is a whole number.");
  const change: EditJson = {
    ...(when === undefined ? {} : whenOf(when)),
    ...(queue === undefined ? {} : { queue }),
    ...(priority === undefined ? {} : { priority }),
  };
  if (Object.keys(change).length === 0) throw new Error("Nothing is to be changed: fill in at least one.");
  return change;
}

/** "now", a duration from now, or a date. */
function whenOf(text: string): EditJson {
  if (text === "now") return { delay: 0 };
  if (/^(in )?\d+(\.\d+)?(ms|s|m|h|d|w)/.test(text)) return { delay: text.replace(/^in /, "") };
  const at = Date.parse(text);
  if (Number.isNaN(at)) throw new Error(`“${text}” is no time: say now, 2h, or 2026-02-01 08:00.`);
  return { at };
}

/** The change as a sentence. */
export function editInWords({ delay, at, queue, priority }: EditJson): string {
  const parts: string[] = [];
  if (delay !== undefined) parts.push(delay === 0 ? "run now" : `run in ${delay}`);
  if (at !== undefined) parts.push(`run at ${new Date(at).toLocaleString("sv")}`);
  if (queue !== undefined) parts.push(`into queue ${queue}`);
  if (priority !== undefined) parts.push(`with priority ${number(priority)}`);
  return parts.join(", ");
}

/** Why jobs are passed over, as the server counts them. */
export const passedOver: Readonly<Record<string, string>> = {
  running: "running",
  ended: "ended",
  waiting: "asleep or waiting",
  past_deadline: "with an earlier deadline",
  keyed: "unique within their queue",
  not_found: "gone",
};
