/** Actions on every job that a filter matches: what they would do, doing it, how far they are. */
import { ApiError, json } from "../http.ts";
import {
  BulkAnswer,
  BulkAsked,
  type BulkVerb,
  type DryRun,
  type EditJson,
  type FilterJson,
  Operation,
  OperationList,
  type Permission,
} from "../api/contract.ts";
import { checkPatch, type InputPatch, patched } from "../../values/json-patch.ts";
import type { InsightFilter, JobSummary } from "../../operate/browse.ts";
import { checkEdit } from "../../operate/jobs-client.ts";
import { actionFilter, checkRate, jobEdit, type Operation as Kept } from "../../operate/operations.ts";
import { editOf, MOST_RUNNING, operationJson } from "../api/bulk-actions.ts";
import { bad, insightFilter } from "../api/query.ts";
import type { Redactor } from "../access/redact.ts";
import { jobLine } from "../api/shapes.ts";
import { filterShownTo } from "../audit/shown-filter.ts";
import { checkReads, shownPatch } from "../audit/shown-patch.ts";
import { asOfNow, readFilter, type Route, type RouteContext, route } from "./route.ts";
import { about, movedTo } from "./targets.ts";

export const bulkRoutes: readonly Route[] = [
  route({
    method: "POST",
    path: "/jobs/bulk",
    id: "bulk",
    summary:
      "Acts on every job that matches, at an optional `rate`. With `dryRun: true` it only counts the jobs and shows some.",
    permission: "view",
    about: about.jobsOfBody,
    write: true,
    body: BulkAsked,
    answer: BulkAnswer,
    later: Operation,
    run: bulk,
  }),
  route({
    method: "GET",
    path: "/operations",
    id: "listOperations",
    summary: "Bulk actions on this database, in any process, newest first: at most 100.",
    permission: "view",
    about: about.all("operation"),
    answer: OperationList,
    run: async (context) => {
      const show = await shownTo(context);
      return { operations: (await context.operations.list()).map(show) };
    },
  }),
  route({
    method: "GET",
    path: "/operations/:id",
    id: "getOperation",
    summary: "The progress of a bulk action.",
    permission: "view",
    about: about.operation,
    answer: Operation,
    run: async (context) => {
      const { operations, path } = context;
      return (await shownTo(context))(found(await operations.get(path["id"] ?? "")));
    },
  }),
  steer("pause", "Pauses a bulk action after its current chunk, in any process.", async (context, id) =>
    found(await context.operations.pause(id, context.user.name)),
  ),
  steer(
    "resume",
    "Continues a paused, failed or stalled bulk action in this server.",
    async (context, id) => {
      if (context.operations.driven >= MOST_RUNNING) throw busy();
      const resumed = found(await context.operations.resume(id, context.user.name));
      return "now" in resumed ? resumed.now() : resumed;
    },
  ),
  steer("stop", "Stops a bulk action after its current chunk. Completed changes stay.", async (context, id) =>
    found(await context.operations.stop(id, context.user.name)),
  ),
];

/** Whoever started it may pause and stop it; to go on with it is to act. */
function steer(
  verb: "pause" | "resume" | "stop",
  summary: string,
  run: (context: RouteContext, id: string) => Promise<Kept>,
): Route {
  return route({
    method: "POST",
    path: `/operations/:id/${verb}`,
    id: `${verb}Operation`,
    summary,
    permission: "view",
    about: about.operation,
    write: true,
    answer: Operation,
    run: async (context) => {
      const { operations, path, user, need } = context;
      const operation = found(await operations.get(path["id"] ?? ""));
      if (verb === "resume" || operation.actor !== user.name) await need(permissionOf[operation.action]);
      if (verb === "resume" && (operation.patch ?? null) !== null) await mayPatch(context);
      return (await shownTo(context))(await run(context, operation.id));
    },
  });
}

async function shownTo(context: RouteContext): Promise<(operation: Kept) => Operation> {
  const { may, redactor } = context;
  const mayPayload = await may("view:payload");
  const show = {
    patch: (patch: InputPatch) => (mayPayload ? shownPatch(patch, redactor) : null),
    filter: await filterShownTo(context),
    text: (text: string | null) => redactor.text(text),
  };
  return (operation) => operationJson(operation, show);
}

/** Who puts jobs into a queue edits there too. */
export async function mayMove({ need, about: own }: RouteContext, queue: string | undefined): Promise<void> {
  if (queue !== undefined) await need("jobs:edit", async () => movedTo(await own(), queue));
}

/** To write into inputs is to edit them, and nobody writes blindly. */
async function mayPatch({ need }: RouteContext): Promise<void> {
  await need("jobs:edit");
  await need("view:payload");
}

function busy(): ApiError {
  return new ApiError(
    "TOO_MANY_REQUESTS",
    `At most ${MOST_RUNNING} bulk actions at once. Wait for one to end, or stop one.`,
    { headers: { "retry-after": "5" } },
  );
}

const permissionOf: Readonly<Record<BulkVerb, Permission>> = {
  retry: "jobs:retry",
  "run-now": "jobs:run",
  pause: "jobs:pause",
  resume: "jobs:pause",
  cancel: "jobs:cancel",
  terminate: "jobs:terminate",
  delete: "jobs:delete",
  purge: "jobs:delete",
  edit: "jobs:edit",
};

/** Long enough for most bulk actions to be done with the answer. */
const patienceMs = 1_500;

async function bulk(context: RouteContext<unknown, BulkAsked>): Promise<Response | DryRun> {
  const { body, insight, redactor, operations, user, operator } = context;
  const { action: verb, dryRun = false } = body;
  await context.need(permissionOf[verb]);
  const change = changeOf(verb, body.change);
  await mayMove(context, change?.queue);
  const rate = body.rate === undefined || body.rate === null ? null : checkRate(body.rate);
  const asked = body.patch ?? null;
  if (asked !== null) await mayPatch(context);
  const patch = patchOf(verb, asked, redactor);
  const given = await asOfNow(context, body.filter);
  if (Object.keys(given).length === 0)
    throw bad(
      "filter",
      'must not be empty, because it would match every job. Example: { "state": ["dead"] }.',
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
      ...(change === null ? { outcomes: null, judged: 0 } : await judge(context, wanted, change)),
      change,
      patched: patch === null ? null : await patchSamples(context, page.jobs, patch),
    };
    return answer;
  }
  const filter = actionFilter(verb, insightFilter(shown));
  if (operations.driven >= MOST_RUNNING) throw busy();
  const { now, left } = await operations.start({ action: verb, filter, change, patch, rate }, user.name);
  const show = await shownTo(context);
  // At a rate it takes its time.
  if (rate !== null) return json(show(now()), 202);
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = operator.env.clock.after(patienceMs, resolve, { unref: true });
  await Promise.race([left, promise]);
  timer.cancel();
  return json(show(now()), now().state === "running" ? 202 : 200);
}

/** @throws ApiError 400, UsageError */
function changeOf(action: BulkVerb, change: EditJson | undefined): EditJson | null {
  if (action !== "edit") {
    if (change !== undefined) throw bad("change", "is for the action edit only.");
    return null;
  }
  if (change === undefined)
    throw bad("change", 'must be an object such as { "delay": "1h" } or { "queue": "mail" }.');
  return editOf(change);
}

/** @throws ApiError 400, UsageError */
function patchOf(action: BulkVerb, value: unknown, redactor: Redactor): InputPatch | null {
  if (value === null) return null;
  if (action !== "retry") throw bad("patch", "is for the action retry only.");
  const patch = checkPatch(value);
  checkReads(patch, redactor);
  return patch;
}

/** What the patch makes of some inputs. */
async function patchSamples(
  { insight, redactor }: RouteContext,
  jobs: readonly JobSummary[],
  patch: InputPatch,
): Promise<NonNullable<DryRun["patched"]>> {
  const details = await Promise.all(jobs.map(({ id }) => insight.inspect(id)));
  return details.flatMap((job) => {
    if (job === null) return [];
    const after = patched(job.input, patch);
    return [
      {
        id: job.id,
        before: redactor.json(job.input, job, 2) ?? "null",
        after: after === null ? null : redactor.json(after, job, 2),
      },
    ];
  });
}

/** As many are judged before the edit; the rest are judged when it comes to them, as these are again. */
const mostJudged = 1_000;

async function judge(
  { insight, store }: RouteContext,
  wanted: InsightFilter,
  change: EditJson,
): Promise<Pick<DryRun, "outcomes" | "judged">> {
  const { jobs } = await insight.browse(wanted, { limit: mostJudged, cursor: null });
  const outcomes: Record<string, number> = {};
  const judged = await store.jobs.judgeEdits(
    jobs.map(({ id }) => id),
    checkEdit(jobEdit(change)),
  );
  for (const outcome of judged.values()) outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
  return { outcomes, judged: jobs.length };
}

function found<T>(value: T | null): T {
  if (value === null) throw new ApiError("NOT_FOUND", "Not found.");
  return value;
}
