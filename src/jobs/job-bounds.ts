/**
 * The bounds of what one job is given, for everybody who checks them: the client's options and the view `enqueue`.
 *
 * Invariant: both databases store and compute with every value within them.
 */

/** Priorities and their negatives fit into 32 bits. */
export const PRIORITY_BOUNDS = { min: -1_000_000_000, max: 1_000_000_000, code: "BAD_PRIORITY" } as const;

/** What is counted of one job (attempts, crashes, throttles) stops here: Postgres has 16 bits for each. */
export const MOST_COUNTED = 32_767;

/** Attempts of one job. */
export const ATTEMPT_BOUNDS = { min: 1, max: MOST_COUNTED } as const;

/** Of `context`. */
export const MAX_CONTEXT_CHARS = 16_384;
