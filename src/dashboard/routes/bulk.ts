/** Actions on every job that a filter matches: what they would do, doing it, how far they are. */
import { ApiError, json } from "../http.ts";
import type { BulkVerb, DryRun, EditJson, FilterJson, Operation, Permission } from "../contract.ts";
import type { InsightFilter } from "../../insight.ts";
import { checkEdit } from "../../jobs.ts";
import { actionFilter, editOf, jobEdit, STATES_OF } from "../operations.ts";
import { bad, filterOfBody, insightFilter } from "../query.ts";
import { jobLine } from "../shapes.ts";
import { readFilter, type Route, type RouteContext } from "./route.ts";

export const bulkRoutes: readonly Route[] = [
  {
    method: "POST",
    path: "/jobs/bulk",
    id: "bulk",
    summary:
      "Acts on every job that matches. With `dryRun: true` it says how many and shows some, and changes nothing.",
    permission: "view",
    write: true,
    body: ["action", "filter", "dryRun", "change"],
    answer: "BulkAnswer",
    run: bulk,
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
];

const permissionOf: Readonly<Record<BulkVerb, Permission>> = {
  retry: "jobs:retry",
  "run-now": "jobs:run",
  cancel: "jobs:cancel",
  delete: "jobs:delete",
  purge: "jobs:delete",
  edit: "jobs:edit",
};

/** Long enough for most bulk actions to be done with the answer. */
const patienceMs = 1_500;

async function bulk(context: RouteContext): Promise<Response | object> {
  const { body, insight, redactor, operations, user, hf } = context;
  const { action, dryRun = false } = body;
  if (typeof action !== "string" || !Object.hasOwn(STATES_OF, action))
    throw bad("action", `must be one of ${Object.keys(STATES_OF).join(", ")}.`);
  if (typeof dryRun !== "boolean") throw bad("dryRun", "must be true or false.");
  const verb = action as BulkVerb;
  await context.need(permissionOf[verb]);
  const change = changeOf(verb, body["change"]);
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
      ...(change === null ? { outcomes: null, judged: 0 } : await judge(context, wanted, change)),
      change,
    };
    return answer;
  }
  const filter = actionFilter(verb, insightFilter(shown));
  const running = operations.start({ action: verb, filter, shown, change }, user.name);
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = hf.internals.env.clock.after(patienceMs, resolve, { unref: true });
  await Promise.race([running.finished, promise]);
  timer.cancel();
  const { operation }: { operation: Operation } = running;
  return json(operation, operation.state === "running" ? 202 : 200);
}

/** @throws ApiError 400, UsageError */
function changeOf(action: BulkVerb, value: unknown): EditJson | null {
  if (action !== "edit") {
    if (value !== undefined) throw bad("change", "goes with the action edit alone.");
    return null;
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw bad("change", 'must be an object such as { "delay": "1h" } or { "queue": "mail" }.');
  return editOf(value as Readonly<Record<string, unknown>>, "change.");
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
  const judged = await store.judgeEdits(
    jobs.map(({ id }) => id),
    checkEdit(jobEdit(change)),
  );
  for (const outcome of judged.values()) outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
  return { outcomes, judged: jobs.length };
}

function found<T>(value: T | null): T {
  if (value === null) throw new ApiError("NOT_FOUND", "There is no such thing here.");
  return value;
}
