// Temporary limits: the field for the duration, and the signal that a limit has changed.
import { signal } from "@preact/signals";
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
