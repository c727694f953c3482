// The settings form. Only changed values are sent, so that the others keep their source.
import type { QueueDetail } from "../../../src/dashboard/api/contract.ts";
import { Field, openForm } from "../kit/forms.tsx";
import { seg, send } from "../data/api.ts";
import { settings, settingsChange } from "./setting-lines.ts";

const numeric = new Set(["slots", "total", "concurrency", "weight"]);

export function settingsForm(
  { name: queue, settings: known }: Pick<QueueDetail, "name" | "settings">,
  again: () => void,
): void {
  openForm({
    title: `Settings of ${queue}`,
    verb: "Save",
    then: again,
    body: (
      <>
        <p class="muted">Empty means the default. Takes effect in every process within seconds.</p>
        <div class="grid two">
          {settings.map(({ name, label, hint, text }) => (
            <Field
              key={name}
              label={label}
              name={name}
              {...(numeric.has(name) ? { inputMode: "numeric" as const } : {})}
              defaultValue={text(known) ?? ""}
              placeholder={text(known) === null ? "set in code" : hint}
            />
          ))}
          <Field label="Duration" name="for" placeholder="no end; or 30m, 4h, 2d" />
        </div>
      </>
    ),
    run: async (fields) => {
      const change = settingsChange(known, (name) => fields.text(name));
      if (Object.keys(change).length === 0) throw new Error("Nothing to save.");
      const delay = fields.text("for");
      await send("PATCH", `/queues/${seg(queue)}`, {
        ...(delay === undefined ? {} : { for: delay }),
        ...change,
      });
      return "Settings saved";
    },
  });
}
