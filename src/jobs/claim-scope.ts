/** What claims share as types: what a worker serves, and what the store remembers for it between claims. */
import type { RowKey } from "./job.ts";

/** What a worker serves. */
export interface ClaimScope {
  /** How many jobs this claim may take from each queue; or the queues that share `limit`. */
  readonly queues: ReadonlyMap<string, number> | readonly string[] | "all";
  /** Job names; "all", for the low-level lease: every plain job, without machines and runs with recorded steps. */
  readonly names: readonly string[] | "all";
  /** How many in all; with a limit for each queue, their sum. */
  readonly limit: number;
  readonly order: "highest-first" | "lowest-first";
  /** How many each queue could start at once: no more is taken of what has a rate. Left out: all. */
  readonly free?: ReadonlyMap<string, number>;
}

/** How far the jobs of one kind and priority have been claimed. */
export interface ClaimLevel {
  readonly jobType: number;
  readonly rank: number;
  readonly queue: string;
  readonly name: string;
  runAt: number;
  rowKey: RowKey;
}

/**
 * Where one level's claims have got to. A level is a (queue, name, rank) line-up ordered by (runAt, id); a claim
 * that starts at the cursor does not walk over the dead index entries of the jobs before it, which an old
 * snapshot would otherwise make ever more of.
 */
export interface ClaimCursor {
  /** Opaque: kept by the caller between claims, filled by the store. */
  readonly levels: Map<string, ClaimLevel>;
  /** Filled by the store: for each group of the scope, the last rank that a claim took from, in claim order. */
  edges?: Map<string, number>;
  /** When a claim last looked at everything, by the monotonic clock. -Infinity asks the next one to. */
  rescannedAt: number;
  /** Filled by the store: how long that took. One that takes long is made less often. */
  rescanMs?: number;
  /** Filled by the store: the same of `checkDue`. */
  dueCheckedAt?: number;
  dueCheckMs?: number;
  /** A level that no claim has met may have jobs: the next claim looks for it. */
  unseen?: boolean;
  /** Filled by the store: the last look at everything found nothing. False again as soon as somebody tells of due jobs. */
  empty?: boolean;
  /** Filled by the store: where the rotations of lanes begin, by job type. */
  rotations?: Map<number, TurnFloor>;
  /** Filled by the store: the places of what is claimed by other statements, under limits or of one budget. */
  parts?: Map<string, ClaimCursor>;
  /** Filled by the store: whose turn it is to have the first choice, lanes or jobs without one. */
  lanesFirst?: boolean;
  /** Filled by the store: why a part of the last claim failed whose other part brought jobs. It may have taken some too. */
  failed?: unknown;
}

/** How far the rotations of a job type have come, in virtual time. */
export interface TurnFloor {
  /** All that are active are behind it. */
  readonly from: number;
  /** Where the furthest behind of them was at a later look, by the monotonic clock: what commits late may still be before that. */
  readonly next: number;
  readonly nextAt: number;
}
