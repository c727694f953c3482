/**
 * Batches of a claim's answer: the answer with one row for all jobs that are alike, instead of one for each.
 *
 * 650 rows of ten columns cost more to send, parse and make objects of than to find (3.4 µs a job of the driver's time;
 * 1.0 this way). What differs, the id, the time and the input, comes as one text each, with U+001E between: JSON has no such
 * character (one that a hand put there is taken out, or the texts would not belong together any more). A long input has a
 * row to itself, so that a thousand of them are not one value, of which Postgres allows a gigabyte.
 */
import type { Row, StatementName } from "../catalogue.ts";

const BETWEEN = "\u001e";
const BETWEEN_SQL = "E'\\x1e'";
/** Bytes. */
export const LONG_INPUT = 8_192;

/** SQL: a value of each row of the group, as one text. */
function joined(value: string): string {
  return `string_agg(${value}, ${BETWEEN_SQL})`;
}

/** What few jobs have, as one column: 20 of them cost a claim more than the join that brings them. Lanes come by themselves. */
export const rest = (row: string): string => `case when ${row}.crashes > 0 or ${row}.begun
        or num_nonnulls(${row}.errors, j.timeout_ms, j.key, j.context, j.parent_id, j.deadline_at, j.extras) > 0
      then json_build_object('crashes', ${row}.crashes, 'begun', ${row}.begun, 'undoing', ${row}.undoing, 'errors', ${row}.errors, 'timeout_ms', j.timeout_ms,
        'key', j.key, 'context', j.context, 'parent_id', j.parent_id, 'deadline_at', j.deadline_at, 'extras', j.extras)::text
    end as rest`;

/**
 * The jobs that were taken, as answerBatches. Where their rows of `job` are elsewhere, the inputs are null.
 *
 * A full join, although a left one would give the same: it cannot be planned as a nested loop. Postgres expects ten rows here, and at
 * some states of its statistics compared each of 950 with each (37 ms a claim in place of 8; one drain in four).
 */
export const answerBatches = (
  job: string,
): string => `select c.job_type, c.rank, c.attempt, j.max_attempts, min(c.token) as token, min(c.started_at) as started_at,
    ${joined("c.id::text")} as ids, ${joined("c.run_at::text")} as run_ats, ${joined(`replace(j.input, ${BETWEEN_SQL}, '')`)} as inputs, ${rest("c")}
  from (select * from taken order by id offset 0) c
  full join (
    select * from ${job} where id = any(array(select id from taken))
      and id >= (select id from taken order by id limit 1) and id <= (select id from taken order by id desc limit 1)
    order by id offset 0
  ) j on j.id = c.id
  group by j.id is null, c.job_type, c.rank, c.attempt, j.max_attempts, rest, case when octet_length(j.input) > ${LONG_INPUT} then c.id end`;

export const BOUND: ReadonlySet<StatementName> = new Set(["claimLevel", "claim"]);

/** Jobs that a claim has taken, but whose row of `job` was not where it looked (see recent.ts). */
export interface Late {
  readonly ids: string[];
  readonly token: unknown;
}

/** The rows as the catalogue promises them: one for each job; and those of which there is only the id. */
export function unbound(answer: readonly Row[]): { readonly rows: Row[]; readonly late: Late[] } {
  const rows: Row[] = [];
  const late: Late[] = [];
  for (const batch of answer) {
    const ids = String(batch["ids"]).split(BETWEEN);
    if (batch["inputs"] === null) late.push({ ids, token: batch["token"] });
    else untie(ids, batch, rows);
  }
  return { rows, late };
}

function untie(ids: readonly string[], row: Row, into: Row[]): void {
  const { job_type, rank, attempt, max_attempts, token, started_at, rest } = row;
  const runAts = String(row["run_ats"]).split(BETWEEN);
  const inputs = String(row["inputs"]).split(BETWEEN);
  ids.forEach((id, i) => {
    const [run_at, input] = [runAts[i], inputs[i]];
    into.push({ id, job_type, rank, run_at, token, attempt, started_at, input, max_attempts, rest });
  });
}
