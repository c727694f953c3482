/** A transaction of the user's own. */

/** A transaction of the user's own, recognised and wrapped by the dialect. */
export interface UserTx {
  /** True when the statements run before the call returns (a SQLite handle). */
  readonly sync: boolean;
}
