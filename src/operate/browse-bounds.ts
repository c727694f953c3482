/**
 * How many jobs one look of a search goes through: what the looks keep to (browse-rows.ts) and what the page in ui/ says.
 *
 * Invariant: pure, and without imports, because the page reads it.
 */

/** Entries of an index. */
export const SEARCHED = 50_000;
/** Where each costs a look at the job's own row besides. */
export const SEARCHED_DEEP = 20_000;

/** The parts of a filter that only a job's own row can answer. */
export const DEEP_PARTS = ["lane", "key", "since", "until", "search", "payload", "trace"] as const;

/**
 * The bound of a search with these parts, by the names that the API has for them; of several walks the smallest.
 *
 * @example
 * searchedAtOnce({ trace: "4bf9…" }); // 20_000
 */
export function searchedAtOnce(filter: Readonly<Record<string, unknown>>): number {
  const given = (name: string): boolean => (filter[name] ?? false) !== false && filter[name] !== "";
  const deep: readonly string[] = [...DEEP_PARTS, "age", "error", "retrying", "workflow", "batch"];
  if (deep.some(given)) return SEARCHED_DEEP;
  // Live jobs that failed are few, and have their rows looked at.
  const states = given("state") ? String(filter["state"]).split(",") : null;
  const live =
    states === null || states.some((one) => !["running", "done", "dead", "cancelled"].includes(one));
  return given("failureGroup") && !given("ended") && (live || states.length === 0) ? SEARCHED_DEEP : SEARCHED;
}
