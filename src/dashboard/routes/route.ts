/**
 * What a route is: an address, what it needs, and what it does.
 *
 * Invariants: a route that changes something says so (`write`), names its permission, and leaves a line on the audit
 * trail; GET changes nothing.
 */
import type { Holdfast, OverrideOptions } from "../../index.ts";
import type { AnyJob } from "../../jobs/define-job.ts";
import type { Insight, InsightFilter } from "../../operate/browse.ts";
import type { Store } from "../../storage/store.ts";
import type { Adapters } from "../api/adapters.ts";
import type { DatabaseLine, FilterJson, Permission } from "../api/contract.ts";
import type { Doctor } from "../api/doctor.ts";
import { ApiError } from "../http.ts";
import type { Operations } from "../../operate/operations.ts";
import { ageless, insightFilter } from "../api/query.ts";
import type { Pulse } from "../live/pulse.ts";
import type { Redactor } from "../access/redact.ts";
import { type Resource, resource } from "../api/resource.ts";
import type { Identity } from "../access/security.ts";
import type { Followed, Stream } from "../live/stream.ts";

export interface RouteContext {
  readonly hf: Holdfast;
  readonly store: Store;
  readonly insight: Insight;
  readonly request: Request;
  readonly path: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  readonly body: Readonly<Record<string, unknown>>;
  /** The same with every digit of its numbers, which are then not all numbers (values/exact-numbers.ts). */
  readonly exactBody: () => Readonly<Record<string, unknown>>;
  /** Of a kind, where this process has it. */
  readonly definition: (name: string) => AnyJob | null;
  /** The names of all those. */
  readonly definitions: () => ReadonlySet<string>;
  readonly user: Identity;
  /** By its options, or because the database takes no writes from here. */
  readonly readOnly: () => Promise<boolean>;
  readonly label: string | null;
  /** As `#rrggbb`. */
  readonly labelColor: string | null;
  readonly redactor: Redactor;
  readonly operations: Operations;
  readonly stream: Stream;
  readonly pulse: Pulse;
  readonly doctor: Doctor;
  readonly adapters: Adapters;
  /** Its name among several; null: it is the only one. */
  readonly database: string | null;
  /** Those that this person may see, where there are several. */
  readonly databases: () => Promise<readonly DatabaseLine[]>;
  /**
   * The topics that the query names, each for this person.
   *
   * @throws ApiError 400 for one that there is not, 403 for one that is not theirs to see
   */
  readonly topics: () => Promise<readonly Followed[]>;
  readonly openapi: () => unknown;
  /** Of what the route is about, unless it says of what else. */
  readonly may: (permission: Permission, of?: Asked) => Promise<boolean>;
  /** @throws ApiError 403 */
  readonly need: (permission: Permission, of?: Asked) => Promise<void>;
  /** What the route is about; read once. */
  readonly about: () => Promise<readonly Resource[]>;
  readonly audit: (
    action: string,
    target: string | null,
    outcome: string,
    details?: unknown,
  ) => Promise<void>;
}

/** What a permission is asked for. Called only where somebody decides by it. */
type Asked = () => Resource | readonly Resource[] | Promise<Resource | readonly Resource[]>;

/** What a route is about. */
export type About = (context: RouteContext) => ReturnType<Asked>;

export interface Route {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly path: string;
  readonly id: string;
  readonly summary: string;
  /** Null: whoever may see the dashboard at all. */
  readonly permission: Permission | null;
  /** What `authorize` is told it is about. Null: it needs no permission. */
  readonly about: About | null;
  readonly write?: true;
  /** Answered without asking who: it tells nothing but yes or no. */
  readonly probe?: true;
  readonly query?: readonly string[];
  /** Fields of the body. */
  readonly body?: readonly string[];
  /** The answer's schema in dashboard/api/openapi.ts. */
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
  route: Pick<Route, "method" | "path" | "id" | "summary" | "body"> & {
    readonly permission: Permission;
    readonly about: About;
  },
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

/** Names come from the site's own sign-in, and may have what no database takes. */
export function nameOf({ user }: Pick<RouteContext, "user">): string {
  return user.name.replaceAll("\0", "").toWellFormed().slice(0, 200) || "somebody";
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

/** As many jobs are read at once. */
const mostRead = 500;

/**
 * Whether this person may view each of some jobs, wherever they are. A job that is gone has no queue to ask about: what is told of
 * it is what the job that asks has kept.
 */
export async function visible(
  { insight, may }: Pick<RouteContext, "insight" | "may">,
  ids: readonly string[],
): Promise<(id: string) => boolean> {
  if (ids.length === 0 || (await may("view", () => resource("jobs")))) return () => true;
  const hidden = new Set<string>();
  const known = new Map<string, Promise<boolean>>();
  const wanted = [...new Set(ids)];
  for (let from = 0; from < wanted.length; from += mostRead) {
    const chunk = wanted.slice(from, from + mostRead);
    const { jobs } = await insight.browse({ ids: chunk }, { limit: chunk.length, cursor: null });
    for (const { id, queue, name } of jobs) {
      const place = JSON.stringify([queue, name]);
      const seen = known.get(place) ?? may("view", () => resource("job", id, { queue, name }));
      known.set(place, seen);
      if (!(await seen)) hidden.add(id);
    }
  }
  return (id) => !hidden.has(id);
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
