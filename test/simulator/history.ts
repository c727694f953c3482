/**
 * The record of one run, in the order in which things happened: calls of clients, runs of handlers, and every change of a job's row.
 *
 * Changes of rows are recorded by triggers of the simulated database, so that the record does not depend on the code under test. The
 * checker (checker.ts) reads nothing but this record and the final database.
 */

/** A change of a job's row, as the database saw it. */
export type RowChange = "born" | "claimed" | "released" | "left" | "ended" | "stepDone" | "stepChanged";

export type Entry =
  /** A call that creates a job was acknowledged. */
  | { readonly at: number; readonly what: "accepted"; readonly id: string; readonly name: string }
  /** A handler's run. `stale`: the process was frozen, cut off or killed lately, so it may not know yet that it lost the lease. */
  | {
      readonly at: number;
      readonly what: "start" | "finish";
      readonly id: string;
      readonly name: string;
      readonly token: number;
      readonly attempt: number;
      readonly stale: boolean;
      /** Of a finish: `ok`, `fail`, or the decision's name. */
      readonly how?: string;
    }
  /** A step's function, or its compensation. */
  | {
      readonly at: number;
      readonly what: "stepStart" | "undone";
      readonly id: string;
      readonly step: string;
      readonly token: number;
      readonly stale: boolean;
    }
  | { readonly at: number; readonly what: "sent" | "taken"; readonly id: string; readonly data: number }
  /** An occurrence of a schedule ran as this job. */
  | { readonly at: number; readonly what: "occurrence"; readonly id: string; readonly instant: number }
  /** An operator's act on a job or queue was acknowledged. */
  | { readonly at: number; readonly what: "operator"; readonly id: string; readonly act: string }
  | {
      readonly at: number;
      readonly what: "row";
      readonly change: RowChange;
      readonly id: string;
      readonly name: string;
      readonly queue: string;
      readonly key: string | null;
      readonly lane: string | null;
      readonly token: number | null;
      readonly session: number | null;
      /** Of an end: the state. Of a step: its name. */
      readonly detail: string | null;
      /** Of a claim under a limit: the jobs of that limit that live sessions hold after it. */
      readonly holders: number | null;
    };

export type RowEntry = Extract<Entry, { what: "row" }>;

/** What is left in the database at the end of a run. */
export interface FinalState {
  /** Whether everything ended within the bound after the last fault. */
  readonly drained: boolean;
  readonly jobs: ReadonlyMap<string, FinalJob>;
  /** Counts that must be zero, by name. */
  readonly leftovers: Readonly<Record<string, number>>;
  /** Data of signals that nobody has taken. */
  readonly signals: readonly number[];
}

export interface FinalJob {
  readonly name: string;
  readonly state: string;
  readonly attempt: number;
  readonly crashes: number;
  readonly output: string | null;
}
