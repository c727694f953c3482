/**
 * What a route is: an address, what it needs, and what it does.
 *
 * Invariants: a route that changes something says so (`write`), names its permission, and leaves a line on the audit
 * trail; GET changes nothing.
 */
import type { Insight, InsightFilter } from "../../operate/browse.ts";
import { type DatabaseLine, Done, type FilterJson, type Permission } from "../api/contract.ts";
import { duration, type Infer, instant, type ObjectSchema, type Schema } from "../api/schema.ts";
import type { Doctor } from "../api/doctor.ts";
import { ApiError } from "../http.ts";
import type { Operations } from "../../operate/operations.ts";
import { ageless, insightFilter } from "../api/query.ts";
import type { Pulse } from "../live/pulse.ts";
import type { Redactor } from "../access/redact.ts";
import { type Resource, resource } from "../api/resource.ts";
import type { Identity } from "../access/security.ts";
import type { Followed, Stream } from "../live/stream.ts";
import type { AnyJob, Holdfast, TemporaryLimitOptions } from "../../index.ts";
import type { Operator, Store } from "../../operate/index.ts";

/** What a route works with: its request, read by its schemas, and the dashboard around it. */
export interface RouteContext<Query = unknown, Body = unknown> {
  readonly hf: Holdfast;
  readonly operator: Operator;
  readonly store: Store;
  readonly insight: Insight;
  readonly request: Request;
  readonly path: Readonly<Record<string, string>>;
  readonly query: Query;
  readonly body: Body;
  /** The same with every digit of its numbers, which are then not all numbers (values/exact-numbers.ts). */
  readonly exactBody: () => Readonly<Record<string, unknown>>;
  /** Of a name, where this process has it. */
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

/** The resources that a route is about, found by its request. */
export type About<Query = unknown, Body = unknown> = (
  context: RouteContext<Query, Body>,
) => ReturnType<Asked>;

/** A route, declared once: its types, the check of its requests and its description are derived from this. */
export interface Declared<Q extends ObjectSchema, B extends ObjectSchema, A extends Schema> {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly path: string;
  readonly id: string;
  readonly summary: string;
  /** Null: everybody who may see the dashboard at all. */
  readonly permission: Permission | null;
  /** The resources that `authorize` is asked about. Null: the route needs no permission. */
  readonly about: About<Infer<Q>, Infer<B>> | null;
  readonly write?: true;
  /** Answered without identification: the answer is yes or no. */
  readonly probe?: true;
  readonly query?: Q;
  readonly body?: B;
  readonly answer: A;
  /** The content type of the answer, where it is not JSON. */
  readonly type?: string;
  /** The shape of an answer with the status 202. */
  readonly later?: Schema;
  /** It answers 304 to a request with the `ETag` of its last answer. */
  readonly tagged?: true;
  readonly run: (
    context: RouteContext<Infer<Q>, Infer<B>>,
  ) => Promise<Response | Infer<A>> | Response | Infer<A>;
}

/** A route as the table has it: the types of its request are known to itself alone. */
export interface Route extends Omit<Declared<ObjectSchema, ObjectSchema, Schema>, "about" | "run"> {
  readonly type: string;
  readonly about: About | null;
  readonly run: (context: RouteContext) => Promise<Response | object>;
}

/** Declares a route: its handler gets the query and the body that the schemas describe, and must answer as declared. */
export function route<Q extends ObjectSchema, B extends ObjectSchema, A extends Schema>(
  declared: Declared<Q, B, A>,
): Route {
  // The handler is called with the request that was read by these very schemas.
  const { about, run } = declared as unknown as Declared<ObjectSchema, ObjectSchema, Schema>;
  return { type: "application/json", ...declared, about, run: async (context) => run(context) as object };
}

/**
 * A route that changes the one thing its path names, writes that on the audit trail (`queues.pause`, `paused`), and answers
 * that it is done. Where `run` returns false there is no such thing, and `missing` says so.
 */
export function change<B extends ObjectSchema>(
  declared: Pick<Declared<ObjectSchema, B, Schema>, "method" | "path" | "id" | "summary" | "body"> & {
    readonly permission: Permission;
    readonly about: About<unknown, Infer<B>>;
  },
  [action, outcome]: readonly [action: string, outcome: string],
  run: (context: RouteContext<unknown, Infer<B>>, name: string) => Promise<unknown>,
  missing = "Not found.",
): Route {
  const segments = [...declared.path.matchAll(/:(\w+)/g)].map(([, segment]) => segment ?? "");
  return route({
    ...declared,
    write: true,
    answer: Done,
    run: async (context) => {
      const name = segments.map((segment) => context.path[segment] ?? "").join("/");
      if ((await run(context, name)) === false) throw new ApiError("NOT_FOUND", missing);
      await context.audit(action, name, outcome, declared.body === undefined ? undefined : context.body);
      return { ok: true };
    },
  });
}

/** Names come from the site's own sign-in, and may have what no database takes. */
export function nameOf({ user }: Pick<RouteContext, "user">): string {
  return user.name.replaceAll("\0", "").toWellFormed().slice(0, 200) || "somebody";
}

/** Fields of a temporary change: `for` ("1h"), or `until` an instant. */
export const WHILE = { for: duration, until: instant };

/** A change, and how long it holds. */
export function whileOf<Body extends object>(
  body: Body,
): [change: Omit<Body, "for" | "until">, when: TemporaryLimitOptions] {
  const { for: delay, until, ...rest } = body as Body & TemporaryLimitOptions;
  const when = { ...(delay === undefined ? {} : { for: delay }), ...(until === undefined ? {} : { until }) };
  return [rest, when];
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
