/** The contracts of durable values and of passes as rows. state-rows.ts and pass-rows.ts keep them for both databases. */

/** A value of the state table, with the database's clock. */
export interface StateRow {
  readonly key: string;
  /** JSON text. */
  readonly value: string;
  readonly setAt: number;
  readonly now: number;
}

/** A pass as it is kept. Instants in epoch milliseconds. */
export interface PassRow {
  readonly name: string;
  readonly clean: boolean;
  readonly runs: number;
  /** Somebody holds it until then. */
  readonly heldUntil: number | null;
  readonly startedAt: number | null;
  readonly endedAt: number | null;
  /** Why the latest one was not clean. */
  readonly reason: string | null;
  readonly now: number;
}

/** What became of a request to begin a pass. */
export type PassStart =
  | { readonly held: true; readonly heldUntil: number }
  | { readonly held: false; readonly recovery: boolean; readonly run: number };

/** Durable values by key, as JSON text. */
export interface StateStore {
  get(key: string): Promise<string | null>;
  set(key: string, value: string): Promise<void>;
  delete(key: string): Promise<boolean>;
  row(key: string): Promise<StateRow | null>;
  /** Those whose key is the prefix and a hexadecimal digit on, the highest first. */
  rows(prefix: string, limit: number): Promise<StateRow[]>;
  /** Sets it unless somebody else has since it was `was`. */
  swap(key: string, was: string, value: string): Promise<boolean>;
}

/** Passes. */
export interface PassStore {
  list(): Promise<PassRow[]>;
  /** Begins a pass unless somebody holds it; then `held` says until when. */
  begin(name: string, holder: string, leaseMs: number): Promise<PassStart>;
  /** False: it is held by another. */
  renew(name: string, holder: string, leaseMs: number): Promise<boolean>;
  /** False: it is held by another, and nothing was written. */
  end(name: string, holder: string, clean: boolean, reason: string | null): Promise<boolean>;
}
