// The settings of a queue as a form: only what was changed is sent, so that the rest stays whose it was.
import type { QueueDetail } from "../../../src/dashboard/api/contract.ts";
import { Field, openForm } from "../kit/forms.tsx";
import { seg, send } from "../data/api.ts";
import { settings, settingsChange } from "./setting-lines.ts";
import { t } from "../language/translation.ts";

const numeric = new Set(["slots", "total", "concurrency", "weight"]);

export function settingsForm(
  { name: queue, settings: known }: Pick<QueueDetail, "name" | "settings">,
  again: () => void,
): void {
  openForm({
    title: t("Settings of {queue}", { queue }),
    verb: t("Save"),
    then: again,
    body: (
      <>
        <p class="muted">{t("Empty is the default. They take effect in every process within seconds.")}</p>
        <div class="grid two">
          {settings.map(({ name, label, hint, text }) => (
            <Field
              key={name}
              label={label}
              name={name}
              {...(numeric.has(name) ? { inputMode: "numeric" as const } : {})}
              defaultValue={text(known) ?? ""}
              placeholder={text(known) === null ? t("as it was set by code") : hint}
            />
          ))}
          <Field label={t("For how long")} name="for" placeholder={t("for good; or 30m, 4h, 2d")} />
        </div>
      </>
    ),
    run: async (fields) => {
      const change = settingsChange(known, (name) => fields.text(name));
      if (Object.keys(change).length === 0) throw new Error(t("Nothing was changed."));
      const delay = fields.text("for");
      await send("PATCH", `/queues/${seg(queue)}`, {
        ...(delay === undefined ? {} : { for: delay }),
        ...change,
      });
      return t("The settings hold in every process.");
    },
  });
}
