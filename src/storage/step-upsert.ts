/**
 * How a step is written over the row that it has, the same in both dialects: the table is `s`, the new row `excluded`.
 *
 * Invariants: a step that has ended stays as it is, and a write that was sent before the one that is there changes nothing. A write is
 * sent again after a lost answer, and one that its client gave up may still arrive after later ones. Only a place in the order
 * is added afterwards: a sleep or a call ends by itself. A step that failed is tried again in a later attempt of the job.
 * The row is given back in any case: no row means that the lease is lost.
 */

/** The row that is there stands. */
const stands = `(s.state = 'done' or (s.attempt = excluded.attempt and (s.state = 'failed' or s.tries > excluded.tries)))`;

const kept = (column: string): string =>
  `${column} = case when ${stands} then s.${column} else excluded.${column} end`;

export const stepUpsert = `
      on conflict (job, name) do update set given_order = case when ${stands} then coalesce(s.given_order, excluded.given_order) else excluded.given_order end,
        ${["state", "attempt", "tries", "ended_at", "undo", "output", "error", "label"].map(kept).join(", ")},
        wake_at = case when ${stands} then s.wake_at
          when excluded.kind in ('sleep', 'signal') then coalesce(s.wake_at, excluded.wake_at) else excluded.wake_at end`;
