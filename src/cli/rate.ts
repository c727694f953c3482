/** How a rate is written on a command line: 50/1m. */
import { UsageError } from "../errors.ts";
import { duration } from "./text.ts";

/** @throws UsageError BAD_OPTION */
export function rateOf(text: string): { limit: number; per: string } {
  const match = /^(\d+(?:\.\d+)?)\/(\w+)$/.exec(text);
  if (match === null)
    throw new UsageError(
      "BAD_OPTION",
      `--rate takes a number and a window, such as 50/1m; got ${JSON.stringify(text)}.`,
    );
  return { limit: Number(match[1]), per: match[2] as string };
}

export function rateText(limit: number, perMs: number): string {
  return `${limit} per ${duration(perMs)}`;
}
