/** `--for` and `--until`: the end of a temporary limit. */
import type { TemporaryLimitOptions } from "../../index.ts";
import type { Act } from "../audit-record.ts";
import type { Context } from "../command-context.ts";

export const WHILE = {
  for: { type: "string", value: "duration", help: "Restore the previous values after this time" },
  until: { type: "string", value: "date", help: "Restore the previous values at this instant" },
} as const;

export function whileOf(ctx: Context): TemporaryLimitOptions {
  return { for: ctx.string("for"), until: ctx.date("until") };
}

/** A change of limits, for the audit trail. */
export function setting(
  action: string,
  target: string,
  change: object,
  during: TemporaryLimitOptions = {},
): Act<void> {
  return { action, target, outcome: "set", details: { ...change, ...during } };
}
