/**
 * A queue of which nothing is set, for the store, the dashboard and the page in ui/ alike.
 *
 * Invariant: without imports, because the page reads it; a setting that is missing here does not compile where it is used.
 */
export const NO_SETTINGS = {
  concurrency: null,
  rate: null,
  weight: null,
  backoff: null,
  retention: null,
  cooldown: null,
  slots: null,
  total: null,
  breaker: null,
} as const;
