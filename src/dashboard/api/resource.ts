/**
 * What an action is about, as `authorize` is told it: one thing, with the queue and the kind that it belongs to.
 *
 * An action may be about several: `authorize` is asked of each, and all must be allowed. A null says that it is not known, or
 * not one: a filter that names no queue reaches into every queue, and so its queue is null. Who must keep to some queues is
 * refused where the queue is null, and can then not reach beyond them in any way.
 * Not here: what each route is about (dashboard/routes/targets.ts), who asks and when (dashboard/handler.ts).
 */
import type { FilterJson } from "./contract.ts";

/**
 * What an action is about.
 *
 * @example
 * authorize: (user, permission, { type, queue }) => type === "page" || (queue?.startsWith("a.") ?? false)
 */
export interface Resource {
  /**
   * `page`: what the page offers, asked for each permission when it is opened; `cluster`: everything at once, such as the overview;
   * `jobs`: those that a filter matches; the others are one thing, or with an `id` of null the list of all of them.
   */
  readonly type:
    | "page"
    | "cluster"
    | "job"
    | "jobs"
    | "definition"
    | "queue"
    | "lane"
    | "schedule"
    | "hold"
    | "budget"
    | "breaker"
    | "worker"
    | "error"
    | "operation"
    | "signal"
    | "audit";
  /** A job's id, the name of a queue, the key of a lane …; null: it is not one, or not there yet. */
  readonly id: string | null;
  /** Where it is, or would be. Null: in none, in all, or not known. */
  readonly queue: string | null;
  /** The kind of the job. Null: any, or it has nothing to do with one. */
  readonly name: string | null;
  /** Which jobs, where it is about those that a filter matches. */
  readonly filter: FilterJson | null;
}

/** Where a thing is. */
export type Place = Partial<Pick<Resource, "queue" | "name" | "filter">>;

export function resource(type: Resource["type"], id: string | null = null, place: Place = {}): Resource {
  return { type, id, queue: null, name: null, filter: null, ...place };
}
