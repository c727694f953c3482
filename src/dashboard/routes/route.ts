/**
 * What a route is: an address, what it needs, and what it does.
 *
 * Invariants: a route that changes something says so (`write`), names its permission, and leaves a line on the audit
 * trail; GET changes nothing.
 */
import type { Holdfast, OverrideOptions } from "../../index.ts";
import type { Insight, InsightFilter } from "../../insight.ts";
import type { Store } from "../../store.ts";
import type { Adapters } from "../adapters.ts";
import type { DatabaseLine, FilterJson, Permission } from "../contract.ts";
import { ApiError } from "../http.ts";
import type { Operations } from "../../operations.ts";
import { ageless, insightFilter } from "../query.ts";
import type { Redactor } from "../redact.ts";
import type { Identity } from "../security.ts";
import type { Stream } from "../stream.ts";

export interface RouteContext {
  readonly hf: Holdfast;
  readonly store: Store;
  readonly insight: Insight;
  readonly request: Request;
  readonly path: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  readonly body: Readonly<Record<string, unknown>>;
  readonly user: Identity;
  readonly readOnly: boolean;
  readonly label: string | null;
  readonly redactor: Redactor;
  readonly operations: Operations;
  readonly stream: Stream;
  readonly adapters: Adapters;
  /** Its name among several; null: it is the only one. */
  readonly database: string | null;
  /** Those that this person may see, where there are several. */
  readonly databases: () => Promise<readonly DatabaseLine[]>;
  readonly openapi: () => unknown;
  readonly may: (permission: Permission) => Promise<boolean>;
  /** @throws ApiError 403 */
  readonly need: (permission: Permission) => Promise<void>;
  readonly audit: (
    action: string,
    target: string | null,
    outcome: string,
    details?: unknown,
  ) => Promise<void>;
}

export interface Route {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly path: string;
  readonly id: string;
  readonly summary: string;
  /** Null: whoever may see the dashboard at all. */
  readonly permission: Permission | null;
  readonly write?: true;
  readonly query?: readonly string[];
  /** Fields of the body. */
  readonly body?: readonly string[];
  /** The answer's schema in openapi.ts. */
  readonly answer: string;
  readonly run: (context: RouteContext) => Promise<Response | object> | Response | object;
}

/** What a page is asked for by. */
export const pageParams = ["limit", "cursor"] as const;

/**
 * A route that changes the one thing its path names, writes so on the audit trail (`queues.pause`, `paused`), and answers
 * that it is done. Where `run` gives false there is no such thing, and `missing` says so.
 */
export function change(
  route: Pick<Route, "method" | "path" | "id" | "summary" | "body"> & { readonly permission: Permission },
  [action, outcome]: readonly [action: string, outcome: string],
  run: (context: RouteContext, name: string) => Promise<unknown>,
  missing = "There is no such thing here.",
): Route {
  const segments = [...route.path.matchAll(/:(\w+)/g)].map(([, segment]) => segment ?? "");
  return {
    ...route,
    write: true,
    answer: "Done",
    run: async (context) => {
      const name = segments.map((segment) => context.path[segment] ?? "").join("/");
      if ((await run(context, name)) === false) throw new ApiError("NOT_FOUND", missing);
      await context.audit(action, name, outcome, route.body === undefined ? undefined : context.body);
      return { ok: true };
    },
  };
}

/** Fields that say how long a change holds: `for` ("1h"), or `until` an instant. */
export const WHILE = ["for", "until"] as const;

/** A change, and how long it holds. */
export function whileOf(
  body: Readonly<Record<string, unknown>>,
): [change: Readonly<Record<string, unknown>>, when: OverrideOptions] {
  const { for: delay, until, ...rest } = body;
  const when = { ...(delay === undefined ? {} : { for: delay }), ...(until === undefined ? {} : { until }) };
  return [rest, when as OverrideOptions];
}

/** A filter, and the right to use its search: who may search can test for values that are not shown. */
export async function readFilter(context: RouteContext, given: FilterJson): Promise<InsightFilter> {
  const filter = insightFilter(await asOfNow(context, given));
  const { search, error, payload } = filter;
  if (search !== undefined || error !== undefined || payload !== undefined) {
    await context.need("jobs:search");
    await context.need("view:payload");
  }
  return filter;
}

/** A filter without ages: they are instants as of now. */
export async function asOfNow(context: RouteContext, given: FilterJson): Promise<FilterJson> {
  return given.age === undefined ? given : ageless(given, await context.store.now());
}
