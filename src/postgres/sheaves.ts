/**
 * Sheaves: a claim's answer with one row for all jobs that are alike, instead of one for each.
 *
 * 650 rows of ten columns cost more to send, parse and make objects of than to find (3.4 µs a job of the driver's time;
 * 1.0 this way). What differs, the id, the time and the input, comes as one text each, with U+001E between: JSON has no such
 * character (one that a hand put there is taken out, or the texts would not belong together any more). A long input has a
 * row to itself, so that a thousand of them are not one value, of which Postgres allows a gigabyte.
 */
import type { Call, Row, StatementName } from "../sql/catalogue.ts";

const BETWEEN = "\u001e";
export const BETWEEN_SQL = "E'\\x1e'";
/** Bytes. */
export const LONG_INPUT = 8_192;

/** SQL: a value of each row of the group, as one text. */
export function sheaf(value: string): string {
  return `string_agg(${value}, ${BETWEEN_SQL})`;
}

const BOUND: ReadonlySet<StatementName> = new Set(["claim", "sweep"]);

/** The rows as the catalogue promises them: one for each job. */
export function unbound(call: Call, answer: Promise<Row[]>): Promise<Row[]> {
  return BOUND.has(call.name) ? answer.then((rows) => rows.flatMap(jobsOf)) : answer;
}

function jobsOf({
  ids,
  run_ats,
  inputs,
  line,
  rank,
  attempt,
  max_attempts,
  token,
  started_at,
  rest,
}: Row): Row[] {
  const runAts = String(run_ats).split(BETWEEN);
  const texts = String(inputs).split(BETWEEN);
  const job = (id: string, i: number): Row => {
    const [run_at, input] = [runAts[i], texts[i]];
    return { id, line, rank, run_at, token, attempt, started_at, input, max_attempts, rest };
  };
  return String(ids).split(BETWEEN).map(job);
}
