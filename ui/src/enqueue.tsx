// A new job, or a copy of one with its input to be edited first.
import { Field, openForm } from "./actions.tsx";
import { send } from "./api.ts";
import { go } from "./router.ts";

interface Start {
  readonly name?: string;
  readonly queue?: string;
  readonly input?: string;
}

export function enqueueDialog(start: Start): void {
  openForm({
    title: "New job",
    verb: "Enqueue",
    body: (
      <>
        <Field label="Name" name="name" required defaultValue={start.name ?? ""} />
        <label class="field">
          <span>Input (JSON)</span>
          <textarea class="input" name="input" spellcheck={false} defaultValue={start.input ?? "{}"} />
        </label>
        <div class="grid two">
          <Field label="Queue" name="queue" placeholder="default" defaultValue={start.queue ?? ""} />
          <Field label="Delay" name="delay" placeholder="none, or 5m" />
          <Field label="Priority" name="priority" inputMode="numeric" placeholder="0" />
          <Field label="Unique key" name="key" placeholder="none" />
        </div>
      </>
    ),
    run: async (fields) => {
      const given = {
        name: fields.text("name") ?? "",
        input: fields.json("input", "input"),
        queue: fields.text("queue"),
        delay: fields.text("delay"),
        key: fields.text("key"),
        priority: fields.number("priority"),
      };
      // What was left empty is not sent.
      const { status, id } = await send<{ status: string; id: string }>("POST", "/jobs", given);
      go(`/jobs/${id}`);
      return status === "enqueued" ? "Enqueued." : `Not enqueued again: ${status}.`;
    },
  });
}
