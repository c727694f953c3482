/** The contracts of new jobs (kept by insert.ts) and of the names that workers have registered (definition-rows.ts). */
import type { Enqueued, LaneLimits, NewJob } from "../jobs/job.ts";
import type { UserTx } from "../storage/user-tx.ts";

/** New jobs. */
export interface NewJobStore {
  /**
   * Writes the batch in one transaction, in order; `tx` makes it part of the user's. Retrying the same ids is harmless.
   * `onTold` is called when the commit has told other processes of it too: then only this one is left to be told. `resent`: the
   * same batch was sent before, and nobody knows what came of that; a job that has ended since, and is deleted, does not come back.
   */
  enqueue(jobs: readonly NewJob[], tx?: UserTx, onTold?: () => void, resent?: boolean): Promise<Enqueued[]>;
}

export interface DefinitionInfo {
  /** The definition computes a unique key from the input. */
  readonly unique: boolean;
  /** The definition computes a lane from the input. */
  readonly lane: boolean;
  /** The definition is a machine: `hf.lease` without names leaves its jobs alone. */
  readonly machine?: boolean;
  /** The limits that the definition gives its lanes. */
  readonly lanes?: LaneLimits | null;
  /** What each start takes of which budget. */
  readonly budget?: { readonly name: string; readonly tokens: number } | null;
}

/** Kinds. */
export interface DefinitionStore {
  /** The names that workers have registered, with what an enqueue by name must know of them. */
  list(): Promise<Map<string, DefinitionInfo>>;
  register(definitions: ReadonlyMap<string, DefinitionInfo>): Promise<void>;
}
