/**
 * Keeps the database in shape: partitions ahead of time, the WAL's size.
 *
 * Not here: what that means on each database (the store's `tidy`).
 */
import type { Store } from "../store.ts";

export interface TidierDeps {
  readonly store: Pick<Store, "tidy">;
}

/**
 * Tidies once.
 *
 * @example
 * await tidyOnce({ store });
 */
export async function tidyOnce(deps: TidierDeps): Promise<void> {
  await deps.store.tidy();
}
