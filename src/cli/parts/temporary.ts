/** `--for` and `--until`: how long a change holds. */
import type { OverrideOptions } from "../../index.ts";
import type { Act } from "./audit.ts";
import type { Context } from "../command-context.ts";

export const WHILE = {
  for: { type: "string", value: "duration", help: "For so long; then back to what was there before" },
  until: { type: "string", value: "date", help: "Until an instant; then back to what was there before" },
} as const;

export function whileOf(ctx: Context): OverrideOptions {
  return { for: ctx.string("for"), until: ctx.date("until") };
}

/** A change of limits, as the audit trail tells it. */
export function setting(
  action: string,
  target: string,
  change: object,
  during: OverrideOptions = {},
): Act<void> {
  return { action, target, outcome: "set", details: { ...change, ...during } };
}
