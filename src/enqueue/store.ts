/** The contract of the kinds that workers have registered. kind-rows.ts keeps it for both databases. */
import type { LaneLimits } from "../jobs/job.ts";

export interface KindInfo {
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
export interface KindStore {
  /** The kinds that workers have registered, with what an enqueue by name must know of them. */
  list(): Promise<Map<string, KindInfo>>;
  register(kinds: ReadonlyMap<string, KindInfo>): Promise<void>;
}
