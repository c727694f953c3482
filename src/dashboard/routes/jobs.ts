/** Jobs: lists and counts by filter, one job, actions on one. Its history and its log are in runs.ts. */
import type { Holdfast } from "../../index.ts";
import type { BulkAction, Permission } from "../contract.ts";
import { ApiError } from "../http.ts";
import { jobEdit } from "../../operations.ts";
import { editOf } from "../operations.ts";
import { bad, FILTER_PARAMS, filterOfQuery, integer } from "../query.ts";
import { jobDetail, jobLine } from "../shapes.ts";
import { pageParams, readFilter, type Route, type RouteContext } from "./route.ts";

export const jobsRoutes: readonly Route[] = [
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
    summary:
      "How many jobs match, in all and by state: exact up to 10,000 and as far as was looked, then `more`.",
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
    method: "GET",
    path: "/jobs/facets",
    id: "jobFacets",
    summary:
      "Counts by state, queue and name, each under the other parts of the filter: up to 10,000, and of ended jobs among as many of the newest as a few milliseconds suffice for (`cut`).",
    permission: "view",
    query: FILTER_PARAMS,
    answer: "JobFacets",
    run: async (context) => context.insight.facets(await readFilter(context, filterOfQuery(context.query))),
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
    method: "PATCH",
    path: "/jobs/:id",
    id: "editJob",
    summary: "Puts a job that has not started to another time, queue or priority.",
    permission: "jobs:edit",
    write: true,
    body: ["delay", "at", "queue", "priority"],
    answer: "Outcome",
    run: (context) => {
      const change = editOf(context.body, "");
      return act(context, "edit", (hf, id) => hf.jobs.edit(id, jobEdit(change)), change);
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
  running: "It runs: its holder has it, and nobody else may change it.",
  waiting: "It sleeps or waits, and says itself when it goes on. Its queue and priority can be changed.",
  past_deadline: "It must start by an earlier instant, and would be cancelled instead of run.",
  keyed: "It is unique within its queue, so it cannot leave it.",
  not_scheduled:
    "It is not scheduled: it is due already, runs, waits for something else than time, or has ended.",
};

async function act(
  { hf, path, audit }: RouteContext,
  verb: BulkAction,
  run: (hf: Holdfast, id: string) => Promise<string>,
  details?: unknown,
): Promise<object> {
  const id = idOf(path);
  const outcome = await run(hf, id);
  if (outcome === "not_found") throw noJob(id);
  await audit(`jobs.${verb}`, id, outcome, details);
  const conflict = conflicts[outcome];
  if (conflict !== undefined) throw new ApiError("CONFLICT", conflict, { code: outcome.toUpperCase() });
  return { outcome };
}

function cursorOf(query: URLSearchParams, order: "newest" | "due"): string | null {
  const cursor = query.get("cursor");
  if (cursor === null || cursor === "") return null;
  const shape = order === "due" ? /^\d{1,16} [0-9a-f-]{1,36}$/ : /^[0-9a-f-]{1,36}$/;
  if (!shape.test(cursor)) throw bad("cursor", "must be what the page before gave as its cursor.");
  return cursor;
}

export function idOf(path: Readonly<Record<string, string>>): string {
  return (path["id"] ?? "").toLowerCase();
}

export function noJob(id: string): ApiError {
  return new ApiError(
    "NOT_FOUND",
    `No job has the id ${id.slice(0, 60)}: it never existed, was deleted, or its retention has passed.`,
  );
}
