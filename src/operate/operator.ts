/**
 * The operators' interface of a client: what the dashboard and the command line need beyond the public API.
 *
 * A client carries it under a symbol. The symbol comes from the global registry, so a client also works with a dashboard
 * that a bundler loaded a second time.
 * Invariant: `Holdfast` gives these parts to this room alone; the public index does not export them.
 */
import type { AnyJob } from "../jobs/define-job.ts";
import type { Holds } from "../limits/holds.ts";
import type { Queues } from "../limits/queues.ts";
import type { Logger } from "../logger.ts";
import type { ClientEnv } from "../observe/environment.ts";
import type { Errors } from "../observe/failure-groups.ts";
import type { Schedules } from "../schedules/schedules-client.ts";
import type { Retry } from "../storage/retry-calls.ts";
import type { Store } from "../storage/store.ts";
import type { Workers } from "../worker/workers-client.ts";
import type { Jobs } from "./jobs-client.ts";

export const OPERATOR: unique symbol = Symbol.for("holdfast.operator");

/** The parts of a client that operators work with. */
export interface Operator {
  readonly jobs: Jobs;
  readonly queues: Queues;
  readonly workers: Workers;
  readonly holds: Holds;
  readonly schedules: Schedules;
  readonly errors: Errors;
  readonly store: Store;
  readonly retry: Retry;
  readonly env: ClientEnv;
  readonly settings: {
    readonly logger: Logger;
    readonly retention: { readonly doneMs: number; readonly deadMs: number };
    readonly eventLog: { readonly keepMs: number } | null;
    readonly route: ((name: string) => string) | null;
  };
  /** The definitions that workers of this process have run, including workers that have stopped. */
  readonly definitions: ReadonlyMap<string, AnyJob>;
}

/** A client, as this room sees it: every `Holdfast`. */
export interface Operated {
  readonly [OPERATOR]: Operator;
}

/** Returns the operators' interface of a client. */
export function operatorOf(hf: Operated): Operator {
  return hf[OPERATOR];
}

/** Whether a value is a client, for functions that take a client or something else. */
export function isClient<Client extends Operated>(value: Client | object): value is Client {
  return typeof value === "object" && value !== null && OPERATOR in value;
}
