/**
 * The route table: every address of the API, what it needs, and what it does. openapi.ts describes exactly this table.
 *
 * Invariants: a route that changes something says so (`write`), names its permission, and leaves a line on the audit
 * trail; GET changes nothing.
 */
import type { Holdfast } from "../index.ts";
import type { Insight, InsightFilter } from "../insight.ts";
import type { Store } from "../store.ts";
import { VERSION } from "../version.ts";
import type { Adapters } from "./adapters.ts";
import type { About, BulkAction, DryRun, FilterJson, Me, Operation, Permission } from "./contract.ts";
import { ApiError, json } from "./http.ts";
import { actionFilter, type Operations, STATES_OF } from "./operations.ts";
import { queueDetail, queueLines, readCluster } from "./overview.ts";
import {
  bad,
  FILTER_PARAMS,
  filterOfBody,
  filterOfQuery,
  insightFilter,
  integer,
  onlyFields,
} from "./query.ts";
import type { Redactor } from "./redact.ts";
import type { Identity } from "./security.ts";
import { holdLine, jobDetail, jobLine, workerLine } from "./shapes.ts";
import type { Stream } from "./stream.ts";

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

const pageParams = ["limit", "cursor"] as const;

export const routes: readonly Route[] = [
  // --- what there is ---
  {
    method: "GET",
    path: "/about",
    id: "about",
    summary: "Version, database and label.",
    permission: null,
    answer: "About",
    run: ({ store, label }): About => ({ version: VERSION, dialect: store.dialect, label }),
  },
  {
    method: "GET",
    path: "/me",
    id: "me",
    summary: "Who you are, and what you may do.",
    permission: null,
    answer: "Me",
    run: ({ user, readOnly }): Me => ({ user: user.name, permissions: [...user.permissions], readOnly }),
  },
  {
    method: "GET",
    path: "/health",
    id: "health",
    summary: "Whether the database answers; 503 if it does not.",
    permission: null,
    answer: "Health",
    run: async ({ store }) => ({ ok: true, now: await store.now() }),
  },
  {
    method: "GET",
    path: "/openapi.json",
    id: "openapi",
    summary: "This description.",
    permission: null,
    answer: "OpenApi",
    run: ({ openapi }) => json(openapi()),
  },
  {
    method: "GET",
    path: "/overview",
    id: "overview",
    summary: "The state of everything, in one answer.",
    permission: "view",
    answer: "Overview",
    run: ({ stream }) => stream.overview(),
  },
  {
    method: "GET",
    path: "/recent",
    id: "recent",
    summary: "What the live stream has seen, one point a second, at most 15 minutes.",
    permission: "view",
    answer: "Recent",
    run: ({ stream }) => stream.recent(),
  },
  {
    method: "GET",
    path: "/stream",
    id: "stream",
    summary:
      "Server-sent events: `snapshot`, then `change` (at least every 5 s), `trouble` while the database is away.",
    permission: "view",
    answer: "Stream",
    run: ({ stream, request }) => stream.open(request.signal),
  },

  // --- jobs ---
  {
    method: "GET",
    path: "/jobs",
    id: "listJobs",
    summary: "One page of jobs, newest first; with order=due the scheduled ones, next due first.",
    permission: "view",
    query: [...FILTER_PARAMS, ...pageParams, "order"],
    answer: "JobList",
    run: async (context) => {
      const { insight, query, redactor } = context;
      const filter = await readFilter(context, filterOfQuery(query));
      const limit = integer(query, "limit", { min: 1, max: 200, or: 50 });
      const order = query.get("order") ?? "newest";
      if (order !== "newest" && order !== "due") throw bad("order", "must be newest or due.");
      const only = Object.keys(filter).filter((key) => !["states", "queues", "names"].includes(key));
      if (order === "due" && (only.length > 0 || filter.states?.join() !== "scheduled"))
        throw bad("order", "due goes with state=scheduled, queue and name alone.");
      const page = await insight.browse(filter, { limit, cursor: cursorOf(query, order), order });
      const mayPayload = await context.may("view:payload");
      return { ...page, jobs: page.jobs.map((job) => jobLine(job, redactor, mayPayload)) };
    },
  },
  {
    method: "GET",
    path: "/jobs/count",
    id: "countJobs",
    summary: "How many jobs match, in all and by state: exact up to 10,000, then `more`.",
    permission: "view",
    query: FILTER_PARAMS,
    answer: "JobCount",
    run: async (context) => {
      const filter = await readFilter(context, filterOfQuery(context.query));
      const { states: wanted, ...others } = filter;
      const { states } = await context.insight.tally(filter.ids === undefined ? others : filter);
      if (filter.ids !== undefined) return { total: (await context.insight.tally(filter)).total, states };
      const counted = Object.entries(states).filter(
        ([state]) => wanted === undefined || wanted.includes(state as never),
      );
      const count = counted.reduce((sum, [, one]) => sum + one.count, 0);
      const more = counted.some(([, one]) => one.more) || count > 10_000;
      return { total: { count: Math.min(count, 10_000), more }, states };
    },
  },
  {
    method: "POST",
    path: "/jobs",
    id: "enqueue",
    summary: "Enqueues a job by name.",
    permission: "jobs:enqueue",
    write: true,
    body: [
      "name",
      "input",
      "queue",
      "delay",
      "at",
      "priority",
      "attempts",
      "timeout",
      "key",
      "lane",
      "context",
    ],
    answer: "Enqueued",
    run: async ({ hf, body, audit }) => {
      const { name, input, at, ...rest } = body;
      if (typeof name !== "string") throw bad("name", "must be the name of a job.");
      if (at !== undefined && !Number.isSafeInteger(at))
        throw bad("at", "must be an instant in epoch milliseconds.");
      const options = { ...rest, ...(at === undefined ? {} : { at: new Date(at as number) }) };
      const { status, id } = await hf.enqueue(name, input ?? null, options);
      await audit("jobs.enqueue", id, status, { name });
      return { status, id };
    },
  },
  {
    method: "POST",
    path: "/jobs/bulk",
    id: "bulk",
    summary:
      "Acts on every job that matches. With `dryRun: true` it says how many and shows some, and changes nothing.",
    permission: "view",
    write: true,
    body: ["action", "filter", "dryRun"],
    answer: "BulkAnswer",
    run: bulk,
  },
  {
    method: "GET",
    path: "/jobs/:id",
    id: "getJob",
    summary: "Everything of one job, and why it is where it is.",
    permission: "view",
    answer: "JobDetail",
    run: async (context) => {
      const { hf, insight, path, redactor } = context;
      const id = idOf(path);
      const job = await insight.inspect(id);
      if (job === null) throw noJob(id);
      return jobDetail(job, await hf.jobs.why(id), redactor, await context.may("view:payload"));
    },
  },
  {
    method: "GET",
    path: "/jobs/:id/history",
    id: "jobHistory",
    summary: "Steps, signals, children and the graph of a job.",
    permission: "view",
    answer: "FlowHistory",
    run: async (context) => {
      const { adapters, path, redactor, insight } = context;
      const id = idOf(path);
      const job = await insight.inspect(id);
      const history = job === null ? null : await adapters.flows.history(id);
      if (job === null || history === null) throw noJob(id);
      const mayPayload = await context.may("view:payload");
      const shown = (text: string | null): string | null => (mayPayload ? redactor.json(text, job, 2) : null);
      return {
        ...history,
        steps: history.steps.map((step) => ({
          ...step,
          output: shown(step.output),
          error: mayPayload ? redactor.text(step.error) : null,
        })),
        signals: history.signals.map((signal) => ({ ...signal, data: shown(signal.data) })),
        children: history.children.map((child) => ({
          ...child,
          error: mayPayload ? redactor.text(child.error) : null,
        })),
      };
    },
  },
  jobAction("retry", "jobs:retry", "Runs an ended job again, with all its attempts.", (hf, id) =>
    hf.jobs.retry(id),
  ),
  jobAction("run-now", "jobs:run", "Makes a scheduled job due now.", (hf, id) => hf.jobs.runNow(id)),
  jobAction("cancel", "jobs:cancel", "Cancels a job; a running one is asked to stop.", (hf, id) =>
    hf.jobs.cancel(id),
  ),
  {
    method: "DELETE",
    path: "/jobs/:id",
    id: "deleteJob",
    summary: "Deletes a job; a running one is asked to stop instead.",
    permission: "jobs:delete",
    write: true,
    answer: "Outcome",
    run: (context) => act(context, "delete", (hf, id) => hf.jobs.delete(id)),
  },
  {
    method: "GET",
    path: "/errors",
    id: "errorGroups",
    summary: "Dead and retrying jobs by what they failed of, among the newest 50,000 that ended unhappily.",
    permission: "view",
    query: ["queue", "name"],
    answer: "ErrorGroups",
    run: async (context) => {
      const { queues, names } = insightFilter(filterOfQuery(context.query));
      const found = await context.insight.errorGroups({
        ...(queues === undefined ? {} : { queues }),
        ...(names === undefined ? {} : { names }),
      });
      const mayPayload = await context.may("view:payload");
      return {
        ...found,
        groups: found.groups.map((group) => ({
          ...group,
          message: mayPayload ? context.redactor.text(group.message) : null,
        })),
      };
    },
  },
  {
    method: "GET",
    path: "/operations",
    id: "listOperations",
    summary: "Bulk actions of this server, newest first.",
    permission: "view",
    answer: "OperationList",
    run: ({ operations }) => ({ operations: operations.list() }),
  },
  {
    method: "GET",
    path: "/operations/:id",
    id: "getOperation",
    summary: "How far a bulk action has got.",
    permission: "view",
    answer: "Operation",
    run: ({ operations, path }) => found(operations.get(path["id"] ?? "")),
  },
  {
    method: "POST",
    path: "/operations/:id/stop",
    id: "stopOperation",
    summary: "Stops a bulk action after the batch at hand; what it did stands.",
    permission: "view",
    write: true,
    answer: "Operation",
    run: async ({ operations, path, user, need, audit }) => {
      const operation = found(operations.get(path["id"] ?? ""));
      if (operation.actor !== user.name) await need(permissionOf[operation.action]);
      await audit("operations.stop", operation.id, "asked");
      return found(operations.stop(operation.id));
    },
  },

  // --- queues, holds, workers ---
  {
    method: "GET",
    path: "/queues",
    id: "listQueues",
    summary: "Every queue, with its counts.",
    permission: "view",
    answer: "QueueList",
    run: async ({ store }) => ({ queues: queueLines(await readCluster(store)) }),
  },
  {
    method: "GET",
    path: "/queues/:name",
    id: "getQueue",
    summary: "One queue: kinds, workers, settings, and what keeps it from being claimed from.",
    permission: "view",
    answer: "QueueDetail",
    run: async ({ store, path }) => {
      const name = path["name"] ?? "";
      const cluster = await readCluster(store);
      const detail = queueDetail(cluster, name);
      if (detail === null) throw new ApiError("NOT_FOUND", "No queue of this name has jobs or settings.");
      const row = cluster.rows.find((one) => one.name === name);
      return { ...detail, settings: row?.settings ?? noSettings };
    },
  },
  {
    method: "POST",
    path: "/queues/:name/pause",
    id: "pauseQueue",
    summary: "Nothing more is claimed from it; what runs finishes.",
    permission: "queues:pause",
    write: true,
    answer: "Done",
    run: async ({ hf, path, audit }) => {
      await hf.queues.pause(path["name"] ?? "");
      await audit("queues.pause", path["name"] ?? "", "paused");
      return { ok: true };
    },
  },
  {
    method: "POST",
    path: "/queues/:name/resume",
    id: "resumeQueue",
    summary: "It may be claimed from again.",
    permission: "queues:pause",
    write: true,
    answer: "Done",
    run: async ({ hf, path, audit }) => {
      await hf.queues.resume(path["name"] ?? "");
      await audit("queues.resume", path["name"] ?? "", "resumed");
      return { ok: true };
    },
  },
  {
    method: "PATCH",
    path: "/queues/:name",
    id: "setQueue",
    summary: "Changes settings in every process; null is back to the default.",
    permission: "queues:set",
    write: true,
    body: ["concurrency", "rate", "retention", "backoff", "weight", "slots", "total", "breaker", "cooldown"],
    answer: "Done",
    run: async ({ hf, path, body, audit }) => {
      await hf.queues.set(path["name"] ?? "", body);
      await audit("queues.set", path["name"] ?? "", "set", body);
      return { ok: true };
    },
  },
  {
    method: "GET",
    path: "/holds",
    id: "listHolds",
    summary: "Every hold that is set.",
    permission: "view",
    answer: "HoldList",
    run: async ({ hf }) => ({ holds: (await hf.holds.list()).map(holdLine) }),
  },
  {
    method: "PUT",
    path: "/holds/:name",
    id: "setHold",
    summary: "Sets a hold over some queues, or all.",
    permission: "limits:set",
    write: true,
    body: ["queues", "reason"],
    answer: "Done",
    run: async ({ hf, path, body, audit }) => {
      await hf.holds.set(path["name"] ?? "", body);
      await audit("holds.set", path["name"] ?? "", "set", body);
      return { ok: true };
    },
  },
  {
    method: "DELETE",
    path: "/holds/:name",
    id: "clearHold",
    summary: "Clears a hold.",
    permission: "limits:set",
    write: true,
    answer: "Done",
    run: async ({ hf, path, audit }) => {
      if (!(await hf.holds.clear(path["name"] ?? "")))
        throw new ApiError("NOT_FOUND", "No hold has this name.");
      await audit("holds.clear", path["name"] ?? "", "cleared");
      return { ok: true };
    },
  },
  {
    method: "GET",
    path: "/workers",
    id: "listWorkers",
    summary: "Every live worker, and every holder of leases.",
    permission: "view",
    answer: "WorkerList",
    run: async ({ store }) => ({ workers: (await store.workers()).map(workerLine) }),
  },
  {
    method: "POST",
    path: "/workers/:id/stop",
    id: "stopWorker",
    summary: "Asks a worker to stop: it finishes what it runs and goes.",
    permission: "workers:stop",
    write: true,
    answer: "Done",
    run: async ({ hf, path, audit }) => {
      const id = path["id"] ?? "";
      // Never "all" from a path segment.
      if (!(await hf.workers.list()).some((worker) => worker.id === id && worker.kind === "worker"))
        throw new ApiError("NOT_FOUND", "No live worker has this id.");
      await hf.workers.stop(id);
      await audit("workers.stop", id, "asked");
      return { ok: true };
    },
  },
  {
    method: "GET",
    path: "/kinds",
    id: "listKinds",
    summary: "The kinds of jobs that workers have registered.",
    permission: "view",
    answer: "KindList",
    run: async ({ store }) => ({
      kinds: [...(await store.kinds())].map(([name, { unique, lane }]) => ({ name, unique, lane })),
    }),
  },
  {
    method: "GET",
    path: "/database",
    id: "database",
    summary: "How the database is: size, tables, connections, the oldest transaction.",
    permission: "view",
    answer: "DatabaseHealth",
    run: ({ insight }) => insight.health(),
  },
  {
    method: "GET",
    path: "/audit",
    id: "listAudit",
    summary: "What was done on the dashboard, newest first; kept 90 days.",
    permission: "audit:view",
    query: ["limit", "before"],
    answer: "AuditList",
    run: async ({ insight, query }) => {
      const limit = integer(query, "limit", { min: 1, max: 200, or: 50 });
      const before = query.has("before")
        ? integer(query, "before", { min: 0, max: 2 ** 53 - 1, or: 0 })
        : null;
      const entries = await insight.audit({ limit: limit + 1, before });
      const page = entries.slice(0, limit);
      return { entries: page, before: entries.length > limit ? (page.at(-1)?.id ?? null) : null };
    },
  },

  // --- series, schedules, limits, signals ---
  {
    method: "GET",
    path: "/series",
    id: "series",
    summary: "Minute roll-ups: throughput, failures, waiting and running times.",
    permission: "view",
    query: ["queue", "name", "from", "to"],
    answer: "Series",
    run: ({ adapters, query, hf }) => {
      const now = hf.internals.env.clock.now();
      const to = integer(query, "to", { min: 0, max: 8.64e15, or: now });
      const from = integer(query, "from", { min: 0, max: 8.64e15, or: to - 3_600_000 });
      if (from >= to || to - from > 31 * 86_400_000) throw bad("from", "must lie at most 31 days before to.");
      return adapters.series({ queue: query.get("queue"), name: query.get("name"), from, to });
    },
  },
  {
    method: "GET",
    path: "/schedules",
    id: "listSchedules",
    summary: "Every schedule, with its next run.",
    permission: "view",
    answer: "ScheduleList",
    run: async ({ adapters }) => ({ schedules: await adapters.schedules.list() }),
  },
  {
    method: "GET",
    path: "/schedules/:name/preview",
    id: "previewSchedule",
    summary: "The next runs of a schedule.",
    permission: "view",
    query: ["n"],
    answer: "Preview",
    run: async ({ adapters, path, query }) => ({
      at: await adapters.schedules.preview(
        path["name"] ?? "",
        integer(query, "n", { min: 1, max: 100, or: 20 }),
      ),
    }),
  },
  {
    method: "PATCH",
    path: "/schedules/:name",
    id: "setSchedule",
    summary: "Changes a schedule; the change survives restarts.",
    permission: "schedules:set",
    write: true,
    body: ["cron", "every", "timezone", "missed", "overlap", "jitter"],
    answer: "Done",
    run: async ({ adapters, path, body, audit }) => {
      await adapters.schedules.change(path["name"] ?? "", body);
      await audit("schedules.set", path["name"] ?? "", "set", body);
      return { ok: true };
    },
  },
  ...(["pause", "resume", "reset"] as const).map((verb): Route => ({
    method: "POST",
    path: `/schedules/:name/${verb}`,
    id: `${verb}Schedule`,
    summary: {
      pause: "It makes no more jobs.",
      resume: "It makes jobs again.",
      reset: "Gives up what was edited, and a fault: the code's words count again.",
    }[verb],
    permission: "schedules:set",
    write: true,
    answer: "Done",
    run: async ({ adapters, path, audit }) => {
      await adapters.schedules[verb](path["name"] ?? "");
      await audit(`schedules.${verb}`, path["name"] ?? "", verb === "reset" ? "reset" : `${verb}d`);
      return { ok: true };
    },
  })),
  {
    method: "POST",
    path: "/schedules/:name/trigger",
    id: "triggerSchedule",
    summary: "Makes its job now, beside its slots.",
    permission: "schedules:trigger",
    write: true,
    answer: "Triggered",
    run: async ({ adapters, path, audit }) => {
      const id = await adapters.schedules.trigger(path["name"] ?? "");
      await audit("schedules.trigger", path["name"] ?? "", "triggered", { job: id });
      return { id };
    },
  },
  {
    method: "DELETE",
    path: "/schedules/:name",
    id: "removeSchedule",
    summary: "Removes a schedule.",
    permission: "schedules:set",
    write: true,
    answer: "Done",
    run: async ({ adapters, path, audit }) => {
      if (!(await adapters.schedules.remove(path["name"] ?? "")))
        throw new ApiError("NOT_FOUND", "No schedule has this name.");
      await audit("schedules.remove", path["name"] ?? "", "removed");
      return { ok: true };
    },
  },
  {
    method: "GET",
    path: "/lanes",
    id: "listLanes",
    summary: "Lanes with their limits and what waits in them.",
    permission: "view",
    query: ["queue", ...pageParams],
    answer: "LaneList",
    run: ({ adapters, query }) =>
      adapters.lanes.list({
        queue: query.get("queue"),
        limit: integer(query, "limit", { min: 1, max: 200, or: 50 }),
        cursor: query.get("cursor"),
      }),
  },
  {
    method: "PATCH",
    path: "/lanes/:queue/:lane",
    id: "setLane",
    summary: "Changes a lane's limits, or pauses it.",
    permission: "limits:set",
    write: true,
    body: ["concurrency", "rate", "weight", "paused"],
    answer: "Done",
    run: async ({ adapters, path, body, audit }) => {
      await adapters.lanes.set(path["queue"] ?? "", path["lane"] ?? "", body);
      await audit("lanes.set", `${path["queue"]}/${path["lane"]}`, "set", body);
      return { ok: true };
    },
  },
  {
    method: "GET",
    path: "/budgets",
    id: "listBudgets",
    summary: "Cluster-wide rates, and what is left of them.",
    permission: "view",
    answer: "BudgetList",
    run: async ({ adapters }) => ({ budgets: await adapters.budgets.list() }),
  },
  {
    method: "PUT",
    path: "/budgets/:name",
    id: "setBudget",
    summary: "Sets a budget.",
    permission: "limits:set",
    write: true,
    body: ["limit", "per", "burst"],
    answer: "Done",
    run: async ({ adapters, path, body, audit }) => {
      await adapters.budgets.set(path["name"] ?? "", body as { limit: number; per: string; burst?: number });
      await audit("budgets.set", path["name"] ?? "", "set", body);
      return { ok: true };
    },
  },
  {
    method: "POST",
    path: "/budgets/:name/drain",
    id: "drainBudget",
    summary: "Takes what is left: nothing is granted until it refills.",
    permission: "limits:set",
    write: true,
    answer: "Done",
    run: (context) => onBudget(context, "drain", "drained"),
  },
  {
    method: "POST",
    path: "/budgets/:name/reset",
    id: "resetBudget",
    summary: "Gives up what was set by hand, for the code's numbers.",
    permission: "limits:set",
    write: true,
    answer: "Done",
    run: (context) => onBudget(context, "reset", "reset"),
  },
  {
    method: "DELETE",
    path: "/budgets/:name",
    id: "removeBudget",
    summary: "Removes a budget: what takes from it is throttled.",
    permission: "limits:set",
    write: true,
    answer: "Done",
    run: (context) => onBudget(context, "remove", "removed"),
  },
  {
    method: "GET",
    path: "/breakers",
    id: "listBreakers",
    summary: "Breakers, open ones first.",
    permission: "view",
    answer: "BreakerList",
    run: async ({ adapters, redactor, may }) => {
      const mayPayload = await may("view:payload");
      const breakers = await adapters.breakers.list();
      return {
        breakers: breakers.map((breaker) => ({
          ...breaker,
          error: mayPayload ? redactor.text(breaker.error) : null,
        })),
      };
    },
  },
  {
    method: "POST",
    path: "/breakers/:key/reset",
    id: "resetBreaker",
    summary: "Closes a breaker by hand.",
    permission: "limits:set",
    write: true,
    answer: "Done",
    run: async ({ adapters, path, audit }) => {
      if (!(await adapters.breakers.reset(path["key"] ?? "")))
        throw new ApiError("NOT_FOUND", "No breaker has this key.");
      await audit("breakers.reset", path["key"] ?? "", "closed");
      return { ok: true };
    },
  },
  {
    method: "POST",
    path: "/signals",
    id: "signal",
    summary: "Sends a signal to whatever job waits for it.",
    permission: "flows:signal",
    write: true,
    body: ["name", "key", "data"],
    answer: "Done",
    run: async ({ adapters, body, audit }) => {
      const { name, key = null, data = null } = body;
      if (typeof name !== "string") throw bad("name", "must be the name of a signal.");
      if (key !== null && typeof key !== "string") throw bad("key", "must be a string.");
      await adapters.flows.signal(name, { key, data });
      await audit("flows.signal", name, "sent", { key });
      return { ok: true };
    },
  },
];

const permissionOf: Readonly<Record<BulkAction, Permission>> = {
  retry: "jobs:retry",
  "run-now": "jobs:run",
  cancel: "jobs:cancel",
  delete: "jobs:delete",
};

const noSettings = {
  concurrency: null,
  rate: null,
  weight: null,
  backoff: null,
  retention: null,
  cooldown: null,
  slots: null,
};

/** Long enough for most bulk actions to be done with the answer. */
const patienceMs = 1_500;

async function bulk(context: RouteContext): Promise<Response | object> {
  const { body, insight, redactor, operations, user, hf } = context;
  const { action, dryRun = false } = body;
  if (typeof action !== "string" || !Object.hasOwn(STATES_OF, action))
    throw bad("action", `must be one of ${Object.keys(STATES_OF).join(", ")}.`);
  if (typeof dryRun !== "boolean") throw bad("dryRun", "must be true or false.");
  const verb = action as BulkAction;
  await context.need(permissionOf[verb]);
  const given = filterOfBody(body["filter"]);
  if (Object.keys(given).length === 0)
    throw bad(
      "filter",
      'needs to say which jobs, such as { "state": ["dead"] }: empty would mean every job there is.',
    );
  const until = Math.min(given.until ?? Infinity, (await context.store.now()) + 1);
  const shown: FilterJson = given.ids === undefined ? { ...given, until } : given;
  const wanted = actionFilter(verb, await readFilter(context, given));
  if (dryRun) {
    const [{ total }, page] = await Promise.all([
      insight.tally(wanted),
      insight.browse(wanted, { limit: 5, cursor: null }),
    ]);
    const mayPayload = await context.may("view:payload");
    const answer: DryRun = {
      dryRun: true,
      action: verb,
      filter: given,
      bounded: shown,
      matched: total,
      samples: page.jobs.map((job) => jobLine(job, redactor, mayPayload)),
    };
    return answer;
  }
  const filter = actionFilter(verb, insightFilter(shown));
  const running = operations.start(verb, filter, shown, user.name);
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = hf.internals.env.clock.after(patienceMs, resolve, { unref: true });
  await Promise.race([running.finished, promise]);
  timer.cancel();
  const { operation }: { operation: Operation } = running;
  return json(operation, operation.state === "running" ? 202 : 200);
}

/** A filter, and the right to use its search: who may search can test for values that are not shown. */
async function readFilter(context: RouteContext, given: FilterJson): Promise<InsightFilter> {
  const filter = insightFilter(given);
  if (filter.search !== undefined) {
    await context.need("jobs:search");
    await context.need("view:payload");
  }
  return filter;
}

function jobAction(
  verb: "retry" | "run-now" | "cancel",
  permission: Permission,
  summary: string,
  run: (hf: Holdfast, id: string) => Promise<string>,
): Route {
  const id = { retry: "retryJob", "run-now": "runJobNow", cancel: "cancelJob" }[verb];
  return {
    method: "POST",
    path: `/jobs/:id/${verb}`,
    id,
    summary,
    permission,
    write: true,
    answer: "Outcome",
    run: (context) => act(context, verb, run),
  };
}

const conflicts: Readonly<Record<string, string>> = {
  superseded: "Another job has its unique key now, so it cannot run beside it.",
  not_ended: "It has not ended, so there is nothing to retry.",
  ended: "It has ended already.",
  not_scheduled:
    "It is not scheduled: it is due already, runs, waits for something else than time, or has ended.",
};

async function act(
  { hf, path, audit }: RouteContext,
  verb: BulkAction,
  run: (hf: Holdfast, id: string) => Promise<string>,
): Promise<object> {
  const id = idOf(path);
  const outcome = await run(hf, id);
  if (outcome === "not_found") throw noJob(id);
  await audit(`jobs.${verb}`, id, outcome);
  const conflict = conflicts[outcome];
  if (conflict !== undefined) throw new ApiError("CONFLICT", conflict, { code: outcome.toUpperCase() });
  return { outcome };
}

async function onBudget(
  { adapters, path, audit }: RouteContext,
  verb: "drain" | "reset" | "remove",
  done: string,
): Promise<object> {
  const name = path["name"] ?? "";
  if (!(await adapters.budgets[verb](name)))
    throw new ApiError(
      "NOT_FOUND",
      verb === "reset" ? "The code has no numbers for a budget of this name." : "No budget has this name.",
    );
  await audit(`budgets.${verb}`, name, done);
  return { ok: true };
}

function cursorOf(query: URLSearchParams, order: "newest" | "due"): string | null {
  const cursor = query.get("cursor");
  if (cursor === null || cursor === "") return null;
  const shape = order === "due" ? /^\d{1,16} [0-9a-f-]{36}$/ : /^[0-9a-f-]{36}$/;
  if (!shape.test(cursor)) throw bad("cursor", "must be what the page before gave as its cursor.");
  return cursor;
}

function idOf(path: Readonly<Record<string, string>>): string {
  return (path["id"] ?? "").toLowerCase();
}

function noJob(id: string): ApiError {
  return new ApiError(
    "NOT_FOUND",
    `No job has the id ${id.slice(0, 60)}: it never existed, was deleted, or its retention has passed.`,
  );
}

function found<T>(value: T | null): T {
  if (value === null) throw new ApiError("NOT_FOUND", "There is no such thing here.");
  return value;
}

/** The route of a request, with what its path says. */
export function match(
  method: string,
  segments: readonly string[],
): { route: Route; path: Record<string, string> } | "method" | null {
  let other = false;
  for (const route of routes) {
    const parts = route.path.slice(1).split("/");
    if (parts.length !== segments.length) continue;
    const path = Object.create(null) as Record<string, string>;
    const fits = parts.every((part, i) => {
      const segment = segments[i] ?? "";
      if (!part.startsWith(":")) return part === segment;
      path[part.slice(1)] = segment;
      return segment !== "";
    });
    if (!fits) continue;
    if (route.method === method) return { route, path };
    other = true;
  }
  return other ? "method" : null;
}

/** @throws ApiError 400 for a field that the route does not take. */
export function checkBody(route: Route, body: Readonly<Record<string, unknown>>): void {
  onlyFields(body, route.body ?? []);
}
