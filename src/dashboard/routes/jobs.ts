/** Jobs: lists and counts by filter, one job, actions on one. Its history and its log are in runs.ts. */
import {
  anything,
  described,
  duration,
  instant,
  integer,
  list,
  maybe,
  object,
  oneOf,
  text,
  within,
} from "../api/schema.ts";
import type { JobDetail as StoredDetail } from "../../operate/browse.ts";
import { count } from "../../operate/obstacles.ts";
import type { Why } from "../../operate/why.ts";
import {
  type BulkAction,
  Done,
  EditJson,
  Enqueued,
  FilterJson,
  InputCheck,
  JobCount,
  JobDetail,
  JobFacets,
  JobList,
  JobMatches,
  Outcome,
  type Permission,
} from "../api/contract.ts";
import { ApiError } from "../http.ts";
import { UsageError } from "../../errors.ts";
import { jobEdit } from "../../operate/operations.ts";
import { type StandardSchemaV1, validate } from "../../values/input-schema.ts";
import { editOf } from "../api/bulk-actions.ts";
import { idPart } from "../../values/id-part.ts";
import { isId } from "../../values/id.ts";
import { bad } from "../api/query.ts";
import { jobDetail, jobLine } from "../api/shapes.ts";
import { type Resource, resource } from "../api/resource.ts";
import { readFilter, type Route, type RouteContext, visible, route } from "./route.ts";
import { about, waitingFor } from "./targets.ts";
import { mayMove } from "./bulk.ts";
import type { Holdfast, JobContract } from "../../index.ts";
import { checkDeclared } from "../../operate/index.ts";

/** More than a person would choose among. */
const mostMatches = 20;

const actionIds = {
  retry: "retryJob",
  "run-now": "runJobNow",
  pause: "pauseJob",
  resume: "resumeJob",
  terminate: "terminateJob",
  cancel: "cancelJob",
} as const;

export const jobsRoutes: readonly Route[] = [
  route({
    method: "GET",
    path: "/jobs",
    id: "listJobs",
    summary: "One page of jobs, newest first; with order=due, scheduled jobs, next due first.",
    permission: "view",
    about: about.jobsOfQuery,
    query: object(
      { limit: within(1, 200, 50), order: { ...oneOf("newest", "due"), default: "newest" } },
      { ...FilterJson.properties, cursor: text },
    ),
    answer: JobList,
    run: async (context) => {
      const { insight, redactor } = context;
      const { limit, order, cursor, ...given } = context.query;
      const filter = await readFilter(context, given);
      const only = Object.keys(filter).filter((key) => !["states", "queues", "names"].includes(key));
      if (order === "due" && (only.length > 0 || filter.states?.join() !== "scheduled"))
        throw bad("order", "due allows only state=scheduled, queue and name.");
      const page = await insight.browse(filter, { limit, cursor: cursorOf(cursor, order), order });
      const mayPayload = await context.may("view:payload");
      return { ...page, jobs: page.jobs.map((job) => jobLine(job, redactor, mayPayload)) };
    },
  }),
  route({
    method: "GET",
    path: "/jobs/count",
    id: "countJobs",
    summary:
      "The number of jobs that match, in all and by state: exact up to 10,000 and within the search's bound, then `more`.",
    permission: "view",
    about: about.jobsOfQuery,
    query: FilterJson,
    answer: JobCount,
    run: async (context) => {
      const filter = await readFilter(context, context.query);
      const { states: wanted, ...others } = filter;
      const { states } = await context.insight.tally(filter.ids === undefined ? others : filter);
      if (filter.ids !== undefined) return { total: (await context.insight.tally(filter)).total, states };
      const counted = Object.entries(states).filter(
        ([state]) => wanted === undefined || wanted.includes(state as never),
      );
      const count = counted.reduce((sum, [, one]) => sum + one.count, 0);
      const more = counted.some(([, one]) => one.more) || count > 10_000;
      // Walked alone, some states are counted further: those that died beside many that are done.
      if (more && wanted !== undefined) return { total: (await context.insight.tally(filter)).total, states };
      return { total: { count: Math.min(count, 10_000), more }, states };
    },
  }),
  route({
    method: "GET",
    path: "/jobs/facets",
    id: "jobFacets",
    summary:
      "Counts by state, queue and name, each under the other parts of the filter: up to 10,000, and of ended jobs among as many of the newest as a few milliseconds suffice for (`cut`).",
    permission: "view",
    about: about.jobsOfQuery,
    query: FilterJson,
    answer: JobFacets,
    run: async (context) => {
      const filter = await readFilter(context, context.query);
      const facets = await context.insight.facets(filter);
      // Each facet leaves its own part of the filter out, and so counts beyond what the route was asked for.
      const seen = async (values: typeof facets.queues, places: (value: string) => readonly Resource[]) => {
        const may = values.map(({ value }) => context.may("view", () => places(value)));
        const allowed = await Promise.all(may);
        return values.filter((_, i) => allowed[i]);
      };
      const of = (queue: string | null, name: string | null) => resource("jobs", null, { queue, name });
      return {
        ...facets,
        queues: await seen(facets.queues, (queue) => (filter.names ?? [null]).map((name) => of(queue, name))),
        names: await seen(facets.names, (name) => (filter.queues ?? [null]).map((queue) => of(queue, name))),
      };
    },
  }),
  route({
    method: "GET",
    path: "/jobs/matching",
    id: "jobsMatching",
    summary:
      "The jobs whose ids begin or end so (`id`: 4 to 32 hexadecimal digits, with or without dashes; lists show the last 12): at most 20, then `more`. Ends are looked for among as many of the newest jobs as a few milliseconds suffice for, then `cursor` to look on.",
    permission: "view",
    about: about.all("jobs"),
    query: object({}, { id: text, cursor: text }),
    answer: JobMatches,
    run: async (context) => {
      const { insight, query, redactor } = context;
      const part = idPart(query.id ?? "");
      if (part === null)
        throw bad("id", "must be the beginning or the end of an id: 4 hexadecimal digits at least.");
      const { cursor = null } = query;
      if (cursor !== null && !isId(cursor))
        throw bad("cursor", "must be the value returned with the previous page.");
      const { ids, ...looked } = await insight.matching(part, { limit: mostMatches, cursor });
      const { jobs } = await insight.browse({ ids }, { limit: mostMatches, cursor: null });
      const mayPayload = await context.may("view:payload");
      return { jobs: jobs.map((job) => jobLine(job, redactor, mayPayload)), ...looked };
    },
  }),
  route({
    method: "POST",
    path: "/jobs",
    id: "enqueue",
    summary:
      "Enqueues a job by name. If this process has its definition, the input is checked, and key and lane are computed.",
    permission: "jobs:enqueue",
    about: about.enqueued,
    write: true,
    body: object(
      { name: text },
      {
        input: anything,
        queue: text,
        delay: duration,
        at: instant,
        priority: integer,
        attempts: integer,
        timeout: duration,
        deadline: described("Cancelled if not started by then.", duration),
        key: text,
        lane: text,
        context: text,
      },
    ),
    answer: Enqueued,
    run: async ({ hf, body, exactBody, definition, audit }) => {
      const { name, input, at, ...rest } = body;
      const options = { ...rest, ...(at === undefined ? {} : { at: new Date(at) }) };
      const job = definition(name);
      // A schema, a key or a lane reads the input as JavaScript does; else every digit is kept.
      const read = job !== null && (job.input ?? job.unique ?? job.lane) !== null;
      const given = (read ? input : exactBody()["input"]) ?? null;
      const { status, id } = await (job === null
        ? hf.enqueue(name, given, options)
        : hf.enqueue(job as JobContract, given, options));
      await audit("jobs.enqueue", id, status, { name });
      return { status, id };
    },
  }),
  route({
    method: "GET",
    path: "/jobs/:id",
    id: "getJob",
    summary:
      "One job, and the reason for its state. `without=input,output` omits one or both of these large values; their tags tell whether they have changed.",
    permission: "view",
    about: about.job,
    query: object({}, { without: list(oneOf("input", "output")) }),
    answer: JobDetail,
    run: async (context) => {
      const { hf, insight, path, redactor, query } = context;
      const { without = [] } = query;
      const id = idOf(path);
      const job = await insight.inspect(id);
      if (job === null) throw noJob(id);
      const [why, workers] = await Promise.all([hf.jobs.why(id), hf.workers.list()]);
      const versions = workers
        .filter(({ kind, names }) => kind === "worker" && names.includes(job.name))
        .map((worker) => worker.versions[job.name] ?? 1);
      const workerVersions = [...new Set(versions)].sort((a, b) => a - b);
      const mayPayload = await context.may("view:payload");
      const [own, because] = await withoutHidden(context, job, why);
      return { ...jobDetail(own, because, redactor, mayPayload, without), workerVersions };
    },
  }),
  route({
    method: "GET",
    path: "/jobs/:id/check",
    id: "checkInput",
    summary:
      "Whether the input of a job fits the schema of its definition, if this process has it, with the problems.",
    permission: "view:payload",
    about: about.job,
    answer: InputCheck,
    run: async ({ insight, path, definition, redactor }) => {
      const id = idOf(path);
      const job = await insight.inspect(id);
      if (job === null) throw noJob(id);
      const schema = definition(job.name)?.input ?? null;
      if (schema === null) return { checked: false, issues: [] };
      const issues = await misfits(schema, job.input);
      return {
        checked: true,
        issues: issues.map(({ path: at, message }) => ({ path: at, message: redactor.text(message) })),
      };
    },
  }),
  jobAction("retry", "jobs:retry", "Runs an ended job again, with all its attempts.", (hf, id) =>
    hf.jobs.retry(id),
  ),
  jobAction("run-now", "jobs:run", "Makes a scheduled job due now.", (hf, id) => hf.jobs.runNow(id)),
  jobAction(
    "pause",
    "jobs:pause",
    "Pauses a job until it is resumed; a run stops before its next step.",
    (hf, id) => hf.jobs.pause(id),
  ),
  jobAction("resume", "jobs:pause", "Resumes a paused job.", (hf, id) => hf.jobs.resume(id)),
  jobAction(
    "terminate",
    "jobs:terminate",
    "Ends a job now, without waiting for its handler and without compensation.",
    (hf, id) => hf.jobs.terminate(id),
  ),
  jobAction("cancel", "jobs:cancel", "Cancels a job; a running one is asked to stop.", (hf, id) =>
    hf.jobs.cancel(id),
  ),
  route({
    method: "DELETE",
    path: "/jobs/:id",
    id: "deleteJob",
    summary: "Deletes a job; a running one is asked to stop instead.",
    permission: "jobs:delete",
    about: about.job,
    write: true,
    answer: Outcome,
    run: (context) => act(context, "delete", (hf, id) => hf.jobs.delete(id)),
  }),
  route({
    method: "PATCH",
    path: "/jobs/:id",
    id: "editJob",
    summary:
      "Changes time, queue or priority of a job that has not started. A dead job moves to another queue and stays dead.",
    permission: "jobs:edit",
    about: about.job,
    write: true,
    body: EditJson,
    answer: Outcome,
    run: async (context) => {
      const change = editOf(context.body);
      await mayMove(context, change.queue);
      return act(context, "edit", (hf, id) => hf.jobs.edit(id, jobEdit(change)), change);
    },
  }),
  route({
    method: "POST",
    path: "/signals",
    id: "signal",
    summary:
      "Sends a signal to the job that waits for it. The data must fit the definitions of waiting jobs, if this process has them.",
    permission: "workflows:signal",
    about: about.signal,
    write: true,
    body: object({ name: text }, { key: maybe(text), data: anything }),
    answer: Done,
    run: async (context) => {
      const { hf, audit, definition, definitions } = context;
      const { name, key = null, data = null } = context.body;
      const { jobs } = await waitingFor(context, name, key);
      // With nobody waiting it is for whoever comes: any that declares it.
      const names = jobs.length === 0 ? definitions() : new Set(jobs.map((job) => job.name));
      const known = [...names].flatMap((name) => definition(name) ?? []);
      await checkDeclared(name, data, known);
      await hf.signal(name, { data, ...(key === null ? {} : { key }) });
      await audit("workflows.signal", name, "sent", { key });
      return { ok: true };
    },
  }),
];

function jobAction(
  verb: keyof typeof actionIds,
  permission: Permission,
  summary: string,
  run: (hf: Holdfast, id: string) => Promise<string>,
): Route {
  const id = actionIds[verb];
  return route({
    method: "POST",
    path: `/jobs/:id/${verb}`,
    id,
    summary,
    permission,
    about: about.job,
    write: true,
    answer: Outcome,
    run: (context) => act(context, verb, run),
  });
}

/** The job and its reason without other jobs that this person may not view. */
async function withoutHidden(
  context: RouteContext,
  job: StoredDetail,
  why: Why,
): Promise<[StoredDetail, Why]> {
  const { schedule, batches } = job;
  const waits = why.reason === "waiting-for-jobs" ? why.waitsFor : [];
  const others = [schedule?.previous?.jobId, schedule?.next?.jobId, ...batches.map(({ then }) => then?.id)];
  const see = await visible(context, [...waits, ...others.flatMap((id) => id ?? [])]);
  const neighbour = <T extends { readonly jobId: string }>(one: T | null): T | null =>
    one !== null && see(one.jobId) ? one : null;
  const own: StoredDetail = {
    ...job,
    schedule: schedule && {
      ...schedule,
      previous: neighbour(schedule.previous),
      next: neighbour(schedule.next),
    },
    batches: batches.map((batch) => ({
      ...batch,
      then: batch.then !== null && see(batch.then.id) ? batch.then : null,
    })),
  };
  if (waits.every(see)) return [own, why];
  return [
    own,
    { ...why, text: `The job waits for ${count(waits.length, "job")}.`, waitsFor: waits.filter(see) },
  ];
}

const conflicts: Readonly<Record<string, string>> = {
  superseded: "Another job holds its unique key.",
  not_ended: "The job has not ended, so it cannot be retried.",
  ended: "The job has already ended.",
  not_paused: "The job is not paused.",
  running: "The job is running, so it cannot be changed.",
  waiting: "The run sleeps or waits, and sets its own time. Its queue and priority can be changed.",
  past_deadline: "The job has an earlier deadline and would be cancelled.",
  keyed: "The key of the job is unique within its queue, so the job cannot leave it.",
  not_scheduled:
    "The job is not scheduled: it is due, running, waiting for something other than time, or ended.",
};

async function act(
  { hf, path, audit }: RouteContext,
  verb: BulkAction,
  run: (hf: Holdfast, id: string) => Promise<string>,
  details?: unknown,
): Promise<Outcome> {
  const id = idOf(path);
  const outcome = await run(hf, id);
  if (outcome === "not_found") throw noJob(id);
  await audit(`jobs.${verb}`, id, outcome, details);
  const conflict = conflicts[outcome];
  if (conflict !== undefined) throw new ApiError("CONFLICT", conflict, { code: outcome.toUpperCase() });
  return { outcome };
}

/** What of a stored input its name's schema refuses today. */
async function misfits(schema: StandardSchemaV1, input: string): Promise<InputCheck["issues"]> {
  try {
    await validate(schema, JSON.parse(input), "input", "INPUT_INVALID");
    return [];
  } catch (error) {
    const issues = error instanceof UsageError ? error.details["issues"] : null;
    if (Array.isArray(issues)) return issues as InputCheck["issues"];
    return [{ path: "", message: "The input could not be checked, because the schema threw." }];
  }
}

function cursorOf(cursor: string | undefined, order: "newest" | "due"): string | null {
  if (cursor === undefined || cursor === "") return null;
  const shape = order === "due" ? /^\d{1,16} [0-9a-f-]{1,36}$/ : /^[0-9a-f-]{1,36}$/;
  if (!shape.test(cursor)) throw bad("cursor", "must be the value returned with the previous page.");
  return cursor;
}

export function idOf(path: Readonly<Record<string, string>>): string {
  return (path["id"] ?? "").toLowerCase();
}

export function noJob(id: string): ApiError {
  const why =
    isId(id) || idPart(id) === null
      ? "it never existed, or was deleted or pruned."
      : `this is a part of an id. GET /jobs/matching?id=${id} finds the jobs.`;
  return new ApiError("NOT_FOUND", `No job has the id ${id.slice(0, 60)}: ${why}`);
}
