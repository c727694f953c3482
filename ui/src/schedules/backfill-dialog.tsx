// The backfill dialog: lists the missed occurrences, then creates their jobs.
import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import type { BackfillAnswer, ScheduleLine } from "../../../src/dashboard/api/contract.ts";
import { seg, send } from "../data/api.ts";
import { clock } from "../data/page-settings.ts";
import { instant, number, plural } from "../kit/format.ts";
import { Ago } from "../kit/labels.tsx";
import { toast } from "../kit/toasts.tsx";

/** Lists the missed occurrences first, then creates their jobs. */
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
            ? `${plural(made.occurrences.length, "job")} created. There are more: repeat the backfill.`
            : `${plural(made.occurrences.length, "job")} created`,
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
  const n = found.value?.occurrences.length ?? 0;
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
          Creates one job for each past occurrence without a job. Repeating it creates no duplicates. The jobs
          are due now.
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
              {found.value.more
                ? found.value.had > 0
                  ? `${
                      n === 0 ? "Every occurrence in this time has a job" : plural(n, "occurrence")
                    } and more; ${number(found.value.had)} already have a job`
                  : `${n === 0 ? "Every occurrence in this time has a job" : plural(n, "occurrence")} and more`
                : found.value.had > 0
                  ? `${
                      n === 0 ? "Every occurrence in this time has a job" : plural(n, "occurrence")
                    }; ${number(found.value.had)} already have a job`
                  : n === 0
                    ? "Every occurrence in this time has a job"
                    : plural(n, "occurrence")}
            </h3>
            <ol class="samples">
              {found.value.occurrences.slice(0, 100).map(({ at }) => (
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
          {found.value === null ? "Show occurrences" : `Create ${plural(n, "job")}`}
        </button>
      </footer>
    </form>
  );
}

/** The instant typed, in the page's time zone; undefined: empty. */
function instantOf(value: FormDataEntryValue | null): number | undefined {
  if (typeof value !== "string" || value === "") return undefined;
  return new Date(clock.value === "utc" ? `${value}Z` : value).getTime();
}
