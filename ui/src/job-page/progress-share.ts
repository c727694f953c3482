// Progress as a share, if the handler reported a number from 0 to 1, a percentage, or a count of a total. Pure.
import { number } from "../text/quantities.ts";

export interface Share {
  readonly share: number;
  readonly words: string;
}

const doneKeys = ["done", "completed", "complete", "processed", "current", "finished"];
const totalKeys = ["total", "of", "max", "all", "count"];

/** Null: not a share; shown as JSON. */
export function shareOf(text: string): Share | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  if (typeof value === "number") {
    if (!(value >= 0 && value <= 100)) return null;
    const share = value <= 1 ? value : value / 100;
    return { share, words: percent(share) };
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) return null;
  const found = (keys: readonly string[]): number | null => {
    for (const key of keys) {
      const one = (value as Record<string, unknown>)[key];
      if (typeof one === "number" && Number.isFinite(one)) return one;
    }
    return null;
  };
  const [done, total] = [found(doneKeys), found(totalKeys)];
  if (done !== null && total !== null) {
    if (total <= 0 || done < 0 || done > total) return null;
    return {
      share: done / total,
      words: `${number(done)} of ${number(total)}`,
    };
  }
  const given = found(["percent", "percentage", "pct"]);
  if (given !== null && given >= 0 && given <= 100)
    return { share: given / 100, words: percent(given / 100) };
  return null;
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}
