/**
 * Keeps the database in shape: partitions ahead of time, the WAL's size.
 *
 * Not here: what that means on each database (the store's `tidy`).
 */
import type { Store } from "../storage/store.ts";

export interface StorageCareDeps {
  readonly store: Pick<Store, "upkeep">;
  /** Says how long a partition's span is. */
  readonly retention: { readonly doneMs: number; readonly deadMs: number };
}

/**
 * Tidies once.
 *
 * @example
 * await tidyOnce({ store, retention });
 */
export async function tidyOnce(deps: StorageCareDeps): Promise<void> {
  await deps.store.upkeep.tidy(deps.retention);
}
