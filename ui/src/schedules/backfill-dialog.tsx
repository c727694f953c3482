// Jobs for slots that passed without one: first which slots, then their jobs.
import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import type { BackfillAnswer, ScheduleLine } from "../../../src/dashboard/api/contract.ts";
import { seg, send } from "../data/api.ts";
import { clock } from "../data/page-settings.ts";
import { instant, number } from "../kit/format.ts";
import { Ago } from "../kit/labels.tsx";
import { toast } from "../kit/toasts.tsx";
import { t } from "../language/translation.ts";

/** First which slots it would be, then their jobs. */
export function Backfill({
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
