/**
 * What each route is about: the things that `authorize` is asked of.
 *
 * Invariants: what ids name is looked up, whatever else a filter says; a change of something that is there is about what it
 * is now and about what it becomes; what does not exist has no queue.
 * Not here: what a resource is (../resource.ts), which permission a route needs (the routes).
 */
import type { InsightFilter, JobSummary } from "../../operate/browse.ts";
import type { Operation } from "../../operate/operations.ts";
import { type BulkAsked, FilterJson } from "../api/contract.ts";
import { checkName } from "../../values/name.ts";
import { ApiError } from "../http.ts";
import { insightFilter } from "../api/query.ts";
import { type Place, type Resource, resource } from "../api/resource.ts";
import { shownFilter } from "../audit/shown-filter.ts";
import type { About, RouteContext } from "./route.ts";
import { isGroup, topicOf } from "../../operate/index.ts";

interface Named {
  readonly queue?: string | readonly string[];
  readonly name?: string;
}

/** As many are asked about at once. */
const mostAsked = 1_000;

export const about = {
  cluster: () => resource("cluster"),
  /** A list of all of one type. */
  all: (type: Resource["type"]): About => {
    const one = resource(type);
    return () => one;
  },
  job: async ({ insight, path }: RouteContext): Promise<Resource> => {
    const id = (path["id"] ?? "").toLowerCase();
    const job = await insight.inspect(id);
    return resource("job", id, job === null ? {} : { queue: job.queue, name: job.name });
  },
  /** What the parameters of a list say. */
  jobsOfQuery: (context: RouteContext<FilterJson>): Promise<readonly Resource[]> =>
    ofFilter(context, insightFilter(filterIn(context.query))),
  errorsOfQuery: ({ query }: RouteContext<Pick<FilterJson, "queue" | "name">>): readonly Resource[] =>
    orAny(query.queue).flatMap((one) =>
      orAny(query.name).map((kind) => resource("error", null, { queue: one, name: kind })),
    ),
  jobsOfBody: (context: RouteContext<unknown, BulkAsked>): Promise<readonly Resource[]> =>
    ofFilter(context, insightFilter(filterIn(context.body.filter))),
  queue: ({ path }: RouteContext) => ofQueue(path["name"] ?? ""),
  /** Each queue that is named. */
  queuesOfQuery: ({ query }: RouteContext<Named>): readonly Resource[] => {
    const named = [query.queue ?? []].flat().filter((one) => one !== "");
    const name = query.name === undefined || query.name === "" ? null : query.name;
    return named.length === 0 ? [resource("queue", null, { name })] : named.map((one) => ofQueue(one, name));
  },
  lane: ({ path }: RouteContext) => resource("lane", path["lane"] ?? "", { queue: path["queue"] ?? "" }),
  schedule: (context: RouteContext) => ofSchedule(context, context.path["name"] ?? ""),
  /** Over what a hold is set, and over what it was: to set it anew is to clear it where it was. */
  hold: ({ hf, path, body }: RouteContext<unknown, { readonly queues?: readonly string[] }>) =>
    ofHold({ hf }, path["name"] ?? "", body.queues ?? null),
  clearedHold: ({ hf, path }: RouteContext) => ofHold({ hf }, path["name"] ?? "", []),
  budget: ({ path }: RouteContext) => resource("budget", path["name"] ?? ""),
  breaker: ({ path }: RouteContext): Resource => {
    const key = path["key"] ?? "";
    const [, of, name = ""] = /^(queue|kind):([^/]*)/.exec(key) ?? [];
    return resource("breaker", key, of === "queue" ? { queue: name } : of === "name" ? { name } : {});
  },
  worker: (context: RouteContext) => ofWorker(context, context.path["id"] ?? ""),
  error: (context: RouteContext) => ofError(context, context.path["group"] ?? ""),
  operation: async (context: RouteContext): Promise<Resource | readonly Resource[]> => {
    const id = context.path["id"] ?? "";
    const operation = await context.operations.get(id);
    return operation === null ? resource("operation", id) : ofOperation(context, operation);
  },
  audit: ({ path }: RouteContext) => resource("audit", path["id"] ?? null),
  definition: (context: RouteContext) => {
    const name = context.path["name"] ?? "";
    return resource("definition", name, { name, queue: queueOfName(context, name) });
  },
  /**
   * A new job: where it goes. One that may take over whichever job has its key is about every queue besides: the job with the
   * key may be in any.
   */
  enqueued: (
    context: RouteContext<unknown, { readonly name: string; readonly queue?: string }>,
  ): readonly Resource[] => {
    const { name, queue } = context.body;
    const rule = context.definition(name)?.unique ?? null;
    const takesOver = rule !== null && rule.onConflict !== "keep" && rule.scope !== "queue";
    const own = resource("job", null, { name, queue: queue ?? queueOfName(context, name) });
    return takesOver ? [own, resource("job", null, { name })] : [own];
  },
  /** Whoever waits for the signal; with nobody waiting yet it is not known where it goes. */
  signal: async (
    context: RouteContext<unknown, { readonly name: string; readonly key?: string | null }>,
  ): Promise<readonly Resource[]> => {
    const { name, key = null } = context.body;
    const waiting = await waitingFor(context, name, key);
    const places: Place[] = placesOf(waiting.jobs);
    // Where more wait than were looked at, it may go to any.
    if (places.length === 0 || waiting.more) places.push({});
    return places.map((place) => resource("signal", name, place));
  },
} satisfies Record<string, unknown>;

/** The jobs of an operation, as whoever steers it reaches them. */
async function ofOperation(
  context: RouteContext,
  operation: Pick<Operation, "id" | "filter" | "change">,
): Promise<readonly Resource[]> {
  const jobs = await ofFilter(context, operation.filter);
  return movedTo(jobs, operation.change?.queue).map((one) => ({
    ...one,
    type: "operation",
    id: operation.id,
  }));
}

/** The same where jobs are put into another queue: it is about that one too. */
export function movedTo(resources: readonly Resource[], queue: string | undefined): readonly Resource[] {
  if (queue === undefined) return resources;
  return distinct([...resources, ...resources.map((one) => ({ ...one, queue }))]);
}

/** Each queue and name that the filter names, or that the jobs have whose ids it has. */
async function ofFilter({ insight }: RouteContext, filter: InsightFilter): Promise<readonly Resource[]> {
  const shown = shownFilter(filter, null);
  const places: Place[] = [];
  if (filter.ids === undefined) {
    for (const queue of orAny(filter.queues))
      for (const name of orAny(filter.names)) {
        places.push({ queue, name });
        if (places.length > mostAsked) throw tooMany();
      }
  } else {
    for (let from = 0; from < filter.ids.length; from += mostAsked) {
      const ids = filter.ids.slice(from, from + mostAsked);
      const { jobs } = await insight.browse({ ids }, { limit: ids.length, cursor: null });
      places.push(...placesOf(jobs));
    }
    // Of jobs that are not there nobody knows where they would be.
    if (places.length === 0) places.push({});
  }
  return distinct(places.map((place) => resource("jobs", null, { ...place, filter: shown })));
}

/** An empty list names none, and keeps to none. */
function orAny(names: readonly string[] | undefined): readonly (string | null)[] {
  return names === undefined || names.length === 0 ? [null] : names;
}

function ofQueue(queue: string, name: string | null = null): Resource {
  return resource("queue", queue, { queue, name });
}

async function ofSchedule({ hf }: Pick<RouteContext, "hf">, name: string): Promise<Resource> {
  const schedule = await hf.schedules.get(name);
  return resource("schedule", name, schedule === null ? {} : { queue: schedule.queue, name: schedule.job });
}

async function ofHold(
  { hf }: Pick<RouteContext, "hf">,
  name: string,
  wanted: readonly string[] | null,
): Promise<readonly Resource[]> {
  const known = (await hf.holds.list()).find((hold) => hold.name === name);
  const over = (queues: readonly string[] | null): readonly (string | null)[] => queues ?? [null];
  const places = [...(known === undefined ? [] : over(known.queues)), ...over(wanted)];
  if (places.length > mostAsked) throw tooMany();
  return distinct((places.length === 0 ? [null] : places).map((queue) => resource("hold", name, { queue })));
}

/** Each queue that it serves. */
async function ofWorker({ hf }: Pick<RouteContext, "hf">, id: string): Promise<readonly Resource[]> {
  const worker = (await hf.workers.list()).find((one) => one.id === id);
  const queues = Object.keys(worker?.queues ?? {});
  return queues.length === 0
    ? [resource("worker", id)]
    : queues.map((queue) => resource("worker", id, { queue }));
}

/** Each queue in which it was met. */
async function ofError(
  { insight }: Pick<RouteContext, "insight">,
  group: string,
): Promise<readonly Resource[]> {
  const found = isGroup(group) ? await insight.failureGroup(group) : null;
  if (found === null) return [resource("error", group)];
  const queues = new Set([...found.queues, ...found.places.map(({ queue }) => queue)]);
  const { name } = found;
  return queues.size === 0
    ? [resource("error", group, { name })]
    : [...queues].map((queue) => resource("error", group, { name, queue }));
}

/** Where a job of this kind goes by itself, as far as this process knows. */
export function queueOfName(
  { operator, definition }: Pick<RouteContext, "operator" | "definition">,
  name: string,
): string {
  return definition(name)?.queue ?? operator.settings.route?.(name) ?? "default";
}

function placesOf(jobs: readonly { readonly queue: string; readonly name: string }[]): Place[] {
  const known = new Map(jobs.map(({ queue, name }) => [`${queue}\n${name}`, { queue, name }]));
  return [...known.values()];
}

function distinct(resources: readonly Resource[]): readonly Resource[] {
  return [...new Map(resources.map((one) => [JSON.stringify([one.queue, one.name]), one])).values()];
}

/**
 * The filter among the parameters of a list. An age is left out: it becomes an instant only when the route runs, and says
 * nothing of queues.
 */
function filterIn(given: FilterJson): FilterJson {
  const known = Object.entries(given).filter(([name]) => name !== "age" && name in FilterJson.properties);
  return Object.fromEntries(known);
}

const mostWaiting = 100;

/** Runs that wait for a signal: at most 100, and whether there are more. */
export async function waitingFor(
  { store, insight }: Pick<RouteContext, "store" | "insight">,
  name: string,
  key: string | null,
): Promise<{ readonly jobs: readonly JobSummary[]; readonly more: boolean }> {
  const topic = topicOf(checkName(name, "The name of a signal"), key ?? undefined);
  const ids = await store.workflows.waitersFor(topic, mostWaiting + 1);
  const { jobs } = await insight.browse({ ids }, { limit: ids.length, cursor: null });
  return { jobs: jobs.slice(0, mostWaiting), more: ids.length > mostWaiting };
}

function tooMany(): ApiError {
  return new ApiError(
    "BAD_REQUEST",
    `This names too many queues and job names: at most ${mostAsked} are allowed.`,
    { field: "filter" },
  );
}
