/** `--for` and `--until`: how long a change holds. */
import type { OverrideOptions } from "../index.ts";
import type { Context } from "./context.ts";

export const WHILE = {
  for: { type: "string", value: "duration", help: "For so long; then back to what was there before" },
  until: { type: "string", value: "date", help: "Until an instant; then back to what was there before" },
} as const;

export function whileOf(ctx: Context): OverrideOptions {
  const until = ctx.string("until");
  return { for: ctx.string("for"), until: until === undefined ? undefined : new Date(until) };
}
