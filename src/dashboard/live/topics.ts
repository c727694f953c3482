/**
 * What a live stream can tell of: each topic is a GET route that is looked at for all who follow it.
 *
 *   overview    queue:emails    job:0199c1d8-…    run:0199c1d8-…    jobs?state=dead&limit=100    error:3f2a…    workers …
 *
 * A topic's value is what its route answers to whoever may ask for it: the same permission, the same redaction, the same
 * function. Invariants: a topic is bounded, as its route is; what a route shows by permissions is named here (`sees`), and it is
 * looked at apart for each answer to those.
 * Not here: looking (topic-sampler.ts), telling (stream.ts), who may (dashboard/handler.ts).
 */
import type { Permission } from "../api/contract.ts";
import { bad, readQuery } from "../api/query.ts";
import { type Route, routes } from "../routes/table.ts";

interface Kind {
  /** The route's id. */
  readonly route: string;
  /** What stands behind the colon: a parameter of the route's path. */
  readonly names?: "id" | "name" | "group";
  readonly query?: Readonly<Record<string, string>>;
  /** It takes what its route takes, behind a question mark; a comma as %2C. */
  readonly filtered?: true;
  /** Looked at so often; without it every second. */
  readonly everyMs?: number;
  /** Permissions that decide what of it is shown. */
  readonly sees?: readonly Permission[];
  /** It tells of other jobs, each by the permission for it: where `authorize` decides, nobody shares a look at it. */
  readonly apart?: true;
}

const payload: readonly Permission[] = ["view:payload"];
const filters: readonly Permission[] = ["view:payload", "jobs:search"];

export const TOPICS = {
  overview: { route: "overview" },
  queues: { route: "listQueues" },
  queue: { route: "getQueue", names: "name" },
  trends: { route: "queueTrends", everyMs: 15_000 },
  // Its input and output may be large: they are asked for when their tags change.
  job: { route: "getJob", names: "id", query: { without: "input,output" }, sees: payload, apart: true },
  jobs: { route: "listJobs", filtered: true, sees: filters },
  run: { route: "jobHistory", names: "id", sees: payload, apart: true },
  log: { route: "jobLog", names: "id" },
  runs: { route: "listRuns" },
  errors: { route: "failureGroups", everyMs: 2_000, sees: payload },
  error: { route: "failureGroup", names: "group", everyMs: 2_000, sees: payload },
  stuck: { route: "stuckJobs", everyMs: 10_000 },
  workers: { route: "listWorkers" },
  operations: { route: "listOperations", sees: filters },
  activity: { route: "listAudit", query: { limit: "6" }, sees: filters },
  schedules: { route: "listSchedules" },
  "schedule-runs": { route: "scheduleRuns", everyMs: 5_000 },
  schedule: { route: "scheduleHistory", names: "name", query: { limit: "100" }, everyMs: 5_000, apart: true },
  holds: { route: "listHolds" },
  "temporary-limits": { route: "listTemporaryLimits" },
  limits: { route: "limitUse", query: { minutes: "15" }, everyMs: 2_000 },
  throttled: { route: "throttledLanes" },
  budgets: { route: "listBudgets" },
  breakers: { route: "listBreakers", sees: payload },
  database: { route: "database", everyMs: 5_000 },
} as const satisfies Readonly<Record<string, Kind>>;

/** Of one stream. A browser's tabs share one. */
const MOST_TOPICS = 64;
const longest = 160;
const longestFilter = 1_000;

export interface Topic {
  /** As it was asked for, ids in lower case. */
  readonly name: string;
  readonly route: Route;
  readonly path: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  readonly everyMs: number;
  readonly sees: readonly Permission[];
  readonly apart: boolean;
}

/**
 * The topics of `?topics=`, each once; the overview if there are none.
 *
 * @throws ApiError 400
 */
export function topicsOf(params: URLSearchParams): readonly Topic[] {
  const given = params.getAll("topics").flatMap((text) => text.split(","));
  const named = given.filter((name) => name !== "");
  if (named.length > MOST_TOPICS) throw bad("topics", `may name at most ${MOST_TOPICS}.`);
  const topics = (named.length === 0 ? ["overview"] : named).map(topicOf);
  return [...new Map(topics.map((topic) => [topic.name, topic])).values()];
}

function topicOf(text: string): Topic {
  const [whole = "", ...rest] = text.split("?");
  const at = whole.indexOf(":");
  const word = at === -1 ? whole : whole.slice(0, at);
  const about = at === -1 ? null : whole.slice(at + 1);
  const asked = rest.length === 0 ? null : rest.join("?");
  if (whole.length > longest || !isKind(word))
    throw bad(
      "topics",
      `has ${JSON.stringify(text.slice(0, 40))}, which is none of ${Object.keys(TOPICS).join(", ")}.`,
    );
  const kind: Kind = TOPICS[word];
  if (kind.names === undefined && about !== null) throw bad("topics", `has ${word}, which takes no name.`);
  if (kind.names !== undefined && (about === null || !/^[A-Za-z0-9._:-]{1,128}$/.test(about)))
    throw bad("topics", `has ${word}, which needs a name: ${word}:<${kind.names}>.`);
  if (asked !== null && (kind.filtered !== true || asked.length > longestFilter))
    throw bad(
      "topics",
      kind.filtered === true
        ? `has ${word} with more than ${longestFilter} characters after the question mark.`
        : `has ${word}, which takes no filter.`,
    );
  const which = kind.names === "id" ? (about?.toLowerCase() ?? null) : about;
  const route = routes.find(({ id }) => id === kind.route);
  if (route === undefined) throw new Error(`The topic ${word} has no route`);
  const query = new URLSearchParams(asked ?? kind.query);
  readQuery(route.query, query); // refused here, before the stream opens
  return {
    name: `${which === null ? word : `${word}:${which}`}${asked === null ? "" : `?${asked}`}`,
    route,
    path: kind.names === undefined || which === null ? {} : { [kind.names]: which },
    query,
    everyMs: kind.everyMs ?? 1_000,
    sees: kind.sees ?? [],
    apart: kind.apart === true,
  };
}

/** The address that tells the same. */
export function addressOf({ route, path, query }: Pick<Topic, "route" | "path" | "query">): string {
  const address = route.path.replaceAll(/:(\w+)/g, (_whole, name: string) =>
    encodeURIComponent(path[name] ?? ""),
  );
  return query.size === 0 ? address : `${address}?${query.toString()}`;
}

function isKind(word: string): word is keyof typeof TOPICS {
  return Object.hasOwn(TOPICS, word);
}
