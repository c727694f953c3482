/**
 * Half an id: what somebody copied of one, its beginning or its end. Lists show the last 12 characters, logs often the first 8.
 *
 * A beginning is a range of ids, because ids are ordered by the time in them. An end is random, and no index knows it (one would
 * cost every enqueue an entry), so it is looked for among the newest ids.
 *
 * Invariants: pure, and without imports, because the dashboard's page reads parts as well. Dashes are where they are in an id,
 * whatever was typed: `0199c1d87c` and `0199c1d8-7c` are one beginning.
 * Not here: the looking (operate/browse-rows.ts).
 */

/** A part of an id, as a beginning and as an end. */
export interface IdPart {
  /** The lowest and the highest id that begin so. */
  readonly first: string;
  readonly last: string;
  /** How ids end that end so. */
  readonly end: string;
  /** How many hexadecimal digits it has, 4 to 32. */
  readonly digits: number;
}

const shape = /^…?([0-9a-f-]{4,36})…?$/;
const least = 4;
const all = 32;

/**
 * The part that a text is; null: it is none, being too short or no hexadecimal digits. An ellipsis at either side is as good as
 * not there: that is how ids are cut in tables.
 *
 * @example
 * idPart("0199C1D8")?.first; // "0199c1d8-0000-0000-0000-000000000000"
 */
export function idPart(text: string): IdPart | null {
  const digits = shape.exec(text.trim().toLowerCase())?.[1]?.replaceAll("-", "") ?? "";
  if (digits.length < least || digits.length > all) return null;
  return {
    first: dashed(digits.padEnd(all, "0")),
    last: dashed(digits.padEnd(all, "f")),
    end: dashed(digits.padStart(all, "x")).replace(/^.*x-?/, ""),
    digits: digits.length,
  };
}

/**
 * Whether an id begins or ends so.
 *
 * @example
 * hasPart("0199c1d8-7c00-7000-8000-0123456789ab", idPart("0123456789ab")!); // true
 */
export function hasPart(id: string, part: IdPart): boolean {
  return beginsWith(id, part) || id.endsWith(part.end);
}

/**
 * Whether an id begins so.
 *
 * @example
 * beginsWith("0199c1d8-7c00-7000-8000-0123456789ab", idPart("0199c1d8")!); // true
 */
export function beginsWith(id: string, { first, last }: IdPart): boolean {
  return id >= first && id <= last;
}

/** 32 digits with the dashes of a UUID. */
function dashed(digits: string): string {
  return [
    [0, 8],
    [8, 12],
    [12, 16],
    [16, 20],
    [20, 32],
  ]
    .map(([from, to]) => digits.slice(from, to))
    .join("-");
}
