// Limits that hold for a while: the field that says how long, and how all panels come to know that something has changed.
import { signal } from "@preact/signals";
import { Field, type Fields } from "../kit/forms.tsx";

/** What holds for a while is asked for by several panels: one question, and all are told. */
export const temporaryLimitChanges = signal(0);

export function refreshingLimits(again: () => void): () => void {
  return () => {
    temporaryLimitChanges.value += 1;
    again();
  };
}

/** The fields that say how long a change holds. */
export function DurationField() {
  return <Field label="Duration" name="for" placeholder="no end; or 30m, 4h, 2d" />;
}

export function durationOf(fields: Fields): { for?: string } {
  const delay = fields.text("for");
  return delay === undefined ? {} : { for: delay };
}
