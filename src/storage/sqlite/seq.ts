/**
 * How SQLite's statements address a job: by its number, `seq`.
 *
 * `job` gives each job a number in the order of insertion and is the only table with an index over the 36 characters of
 * an id. `ready` and `history` are keyed by the number, and so are the lists of a claim: a claim and a settle compare
 * integers, and new rows go to the end of their tables. Whoever has only an id finds the number first, by these texts.
 * The number is what the shared code calls a job's place: jobs of one instant, and lists, are in its order.
 */
import type { Tables } from "../catalogue.ts";

export interface Seq {
  /** The number of the job with this id. */
  readonly of: (id: string) => string;
  /** The numbers of the jobs whose ids are in this list. */
  readonly among: (ids: string) => string;
  /** The id of the job with this number. */
  readonly id: (seq: string) => string;
  /** The first number that was given at or after an instant: numbers and `created_at` grow together. */
  readonly at: (instant: string) => string;
}

export function seqOf(t: Tables): Seq {
  return {
    of: (id) => `(select known.seq from ${t.job} known where known.id = ${id})`,
    among: (ids) =>
      `(select known.seq from ${t.job} known where known.id in (select value from json_each(${ids})))`,
    id: (seq) => `(select known.id from ${t.job} known where known.seq = ${seq})`,
    // By halves, from a step that no number exceeds: forty looks, and no index over the time.
    at: (instant) => `(
        with recursive search (reached, step) as (
          select 0, 1 << 40
          union all
          select reached + step * coalesce(
              (select known.created_at from ${t.job} known where known.seq >= reached + step order by known.seq limit 1) < ${instant}, 0),
            step / 2
          from search where step > 0
        )
        select reached + 1 from search where step = 0)`,
  };
}
