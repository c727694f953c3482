// Form fields of limits and of their duration, and the signal that a limit has changed.
import { signal } from "@preact/signals";
import { rateOf, rateWords } from "../kit/format.ts";
import { Field, type Fields } from "../kit/forms.tsx";

/** Several panels show temporary limits; each reloads when this changes. */
export const temporaryLimitChanges = signal(0);

export function refreshingLimits(again: () => void): () => void {
  return () => {
    temporaryLimitChanges.value += 1;
    again();
  };
}

export function DurationField() {
  return <Field label="Duration" name="for" placeholder="no end; or 30m, 4h, 2d" />;
}

export function durationOf(fields: Fields): { for?: string } {
  const delay = fields.text("for");
  return delay === undefined ? {} : { for: delay };
}

/** The limits that queues and lanes share. */
export function LimitFields({
  of: { concurrency, rate },
}: {
  of: { readonly concurrency: number | null; readonly rate: Parameters<typeof rateWords>[0] | null };
}) {
  return (
    <>
      <Field
        label="Concurrency"
        name="concurrency"
        inputMode="numeric"
        defaultValue={concurrency ?? ""}
        placeholder="unlimited"
      />
      <Field
        label="Rate"
        name="rate"
        defaultValue={rate === null ? "" : rateWords(rate)}
        placeholder="100 per 1m"
      />
    </>
  );
}

export function limitsOf(fields: Fields): Readonly<Record<string, unknown>> {
  return { concurrency: fields.number("concurrency") ?? null, rate: rateOf(fields.text("rate")) };
}
