/** How a rate is written on a command line: 50/s, 50/1m. */
import { UsageError } from "../errors.ts";
import { duration } from "./text.ts";

/** @throws UsageError BAD_OPTION */
export function rateOf(text: string): { limit: number; per: string } {
  const match = /^(\d+(?:\.\d+)?)\/(\w+)$/.exec(text);
  const per = match?.[2] ?? "";
  if (match === null)
    throw new UsageError(
      "BAD_OPTION",
      `--rate takes a number and a window, such as 50/s or 50/1m; got ${JSON.stringify(text)}.`,
    );
  // 50/s is 50/1s.
  return { limit: Number(match[1]), per: /^[a-z]+$/.test(per) ? `1${per}` : per };
}

export function rateText(limit: number, perMs: number): string {
  return `${limit} per ${duration(perMs)}`;
}
