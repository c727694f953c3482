// A request to every route that succeeds, in an order in which each can, on a database that has something for each.
import { onTestFinished } from "vitest";
import type { Holdfast } from "../../src/index.ts";
import type { Operation } from "../../src/dashboard/api/contract.ts";
import { type Route, routes } from "../../src/dashboard/routes/table.ts";
import { fillFeatures } from "../browser/data.ts";
import type { Answer, Api } from "./support.ts";
import { operatorOf } from "../../src/operate/operator.ts";

export interface Call {
  /** Of the route. */
  readonly id: string;
  readonly path?: Readonly<Record<string, string>>;
  readonly query?: string;
  readonly body?: unknown;
  /** What the audit trail says, where something is changed. */
  readonly audited?: readonly [action: string, target: string];
}

export const routeOf = (id: string): Route => {
  const route = routes.find((one) => one.id === id);
  if (route === undefined) throw new Error(`There is no route ${id}`);
  return route;
};

export function addressOf({ id, path = {}, query = "" }: Call): string {
  const address = routeOf(id).path.replaceAll(/:(\w+)/g, (_whole, name: string) =>
    encodeURIComponent(path[name] ?? "missing"),
  );
  return query === "" ? address : `${address}?${query}`;
}

export interface World {
  readonly hf: Holdfast;
  readonly ids: Readonly<Record<string, string>>;
  readonly group: string;
}

const kinds = ["declined", "scheduled", "ready", "spare", "gone", "edited"] as const;

/** Needs a client with `jobLog`. */
export async function world(hf: Holdfast): Promise<World> {
  const { worker, workflow } = await fillFeatures(hf);
  onTestFinished(() => worker.stop());
  const { jobs: made } = await hf.batch(
    kinds.map((name) => ({
      job: "plain",
      input: { name, password: "hunter2" },
      queue: name === "declined" ? "dying" : "spare",
      ...(name === "scheduled" || name === "edited" ? { delay: "1h" } : {}),
    })),
    { then: { job: "plain", input: null, queue: "spare" }, onDead: "continue" },
  );
  for (const lease of await hf.lease({ queues: ["dying"], limit: 1, for: "1m" })) await lease.dead("no use");
  await hf.enqueueMany([1, 2, 3].map((n) => ({ job: "slow", input: n, queue: "slow" })));
  await hf.schedules.trigger("digest");
  await hf.holds.set("h", { queues: ["spare", "bank"], reason: "log in again" });
  const ids = Object.fromEntries(kinds.map((name, i) => [name, made[i]!.id]));
  const { group } = (await hf.errors.list()).find(({ name }) => name === "ask-bank")!;
  return { hf, ids: { ...workflow, ...ids }, group };
}

/** Every GET. */
export function reads({ ids, group }: World, operation: string): readonly Call[] {
  const now = Date.now();
  const range = `from=${now - 3_600_000}&to=${now}`;
  return [
    ...[
      "about",
      "me",
      "health",
      "ready",
      "latency",
      "metrics",
      "openapi",
      "overview",
      "recent",
      "stream",
      "listOperations",
      "listJobs",
      "countJobs",
      "jobFacets",
      "listDefinitions",
      "failureGroups",
      "listRuns",
      "listBatches",
      "queueTrends",
      "stuckJobs",
      "slowNames",
      "database",
      "doctor",
      "listAudit",
      "listQueues",
      "listWorkers",
      "listSchedules",
      "scheduleCalendar",
      "scheduleRuns",
      "listHolds",
      "listLanes",
      "throttledLanes",
      "limitUse",
      "listTemporaryLimits",
      "listBudgets",
      "listBreakers",
    ].map((id) => ({ id })),
    { id: "exportJobs", query: "format=ndjson&state=dead" },
    { id: "getOperation", path: { id: operation } },
    { id: "getJob", path: { id: ids["dead"]! } },
    { id: "getJob", path: { id: ids["declined"]! } },
    { id: "getDefinition", path: { name: "fulfil-order" } },
    { id: "failuresBy", query: "by=version" },
    { id: "failureGroup", path: { group } },
    { id: "jobsMatching", query: `id=${ids["dead"]!.slice(-12)}` },
    { id: "checkInput", path: { id: ids["dead"]! } },
    { id: "jobHistory", path: { id: ids["done"]! } },
    { id: "runFile", path: { id: ids["done"]! } },
    { id: "jobLog", path: { id: ids["done"]! } },
    { id: "series", query: range },
    { id: "load", query: range },
    { id: "databaseSeries", query: range },
    { id: "hostSeries", query: range },
    { id: "getQueue", path: { name: "bank" } },
    { id: "getQueue", path: { name: "tenants" } },
    { id: "previewTiming", query: "every=1h&n=3" },
    { id: "previewSchedule", path: { name: "digest" }, query: "n=3" },
    { id: "previewTiming", query: `cron=${encodeURIComponent("0 9 * * 1-5")}&timezone=Europe/Berlin&n=3` },
    { id: "scheduleHistory", path: { name: "digest" } },
  ];
}

/** Every change, one after the other; some need what came of one before. */
export async function changes(
  { ids, group, hf }: World,
  { get, send }: Pick<Api, "get" | "send">,
  each: (call: Call, answer: Answer) => Promise<void> | void,
): Promise<void> {
  const run = async <T>(call: Call): Promise<T> => {
    const { method } = routeOf(call.id);
    const answer = await send<T>(method, addressOf(call), call.body, { "x-holdfast": "1" });
    await each(call, answer);
    return answer.body;
  };
  const job = async (id: string, which: string, verb: string, body?: unknown): Promise<void> => {
    const target = ids[which]!;
    await run({
      id,
      path: { id: target },
      audited: [`jobs.${verb}`, target],
      ...(body === undefined ? {} : { body }),
    });
  };
  const named = (id: string, name: string, action: string, body?: unknown): Promise<unknown> =>
    run({ id, path: { name }, audited: [action, name], ...(body === undefined ? {} : { body }) });

  const { id: made } = await run<{ id: string }>({
    id: "enqueue",
    body: { name: "plain", input: 1, queue: "spare" },
  });
  await job("retryJob", "declined", "retry");
  await job("editJob", "edited", "edit", { priority: 3 });
  await job("pauseJob", "ready", "pause");
  await job("resumeJob", "ready", "resume");
  await job("runJobNow", "scheduled", "run-now");
  await job("cancelJob", "spare", "cancel");
  await job("terminateJob", "waiting", "terminate");
  await job("deleteJob", "gone", "delete");
  await run({
    id: "forkJob",
    path: { id: ids["done"]! },
    body: { from: "charge" },
    audited: ["jobs.fork", ids["done"]!],
  });
  await run({
    id: "signal",
    body: { name: "packed", key: "nobody", data: 1 },
    audited: ["workflows.signal", "packed"],
  });

  const filter = { ids: [made] };
  await run({ id: "bulk", body: { action: "cancel", filter, dryRun: true } });
  await run({ id: "bulk", body: { action: "cancel", filter }, audited: ["jobs.cancel", made] });
  const slow = { action: "cancel", filter: { queue: ["slow"] }, rate: { limit: 1, per: "1h" } };
  const { id: operation } = await run<Operation>({
    id: "bulk",
    body: slow,
    audited: ["jobs.cancel", "slow"],
  });
  for (const id of ["pauseOperation", "resumeOperation", "stopOperation"])
    await run({ id, path: { id: operation }, audited: ["jobs.cancel", "slow"] });

  const error = (id: string, action: string, body?: unknown): Promise<unknown> =>
    run({ id, path: { group }, audited: [action, group], ...(body === undefined ? {} : { body }) });
  await error("noteError", "errors.note", { note: "seen" });
  await error("ignoreError", "errors.ignore", { for: "1h" });
  await error("reopenError", "errors.reopen", {});
  await error("resolveError", "errors.resolve", { note: "mended" });

  await named("pauseQueue", "spare", "queues.pause");
  await named("drainQueue", "spare", "queues.drain");
  await named("resumeQueue", "spare", "queues.resume");
  await named("setQueue", "spare", "queues.set", { concurrency: 3, for: "1h" });
  await named("endQueueTemporaryLimit", "spare", "temporary-limits.end");

  const { workers } = (await get<{ workers: { id: string }[] }>("/workers")).body;
  const worker = workers[0]!.id;
  for (const [id, action] of [
    ["quietWorker", "workers.quiet"],
    ["resumeWorker", "workers.resume"],
    ["stopWorker", "workers.stop"],
  ] as const)
    await run({ id, path: { id: worker }, audited: [action, worker] });

  await named("setSchedule", "sweep", "schedules.set", { every: "2m" });
  await named("pauseSchedule", "sweep", "schedules.pause");
  await named("resumeSchedule", "sweep", "schedules.resume");
  await named("resetSchedule", "sweep", "schedules.reset");
  await named("triggerSchedule", "sweep", "schedules.trigger");
  const now = await operatorOf(hf).store.now();
  await named("backfillSchedule", "sweep", "schedules.backfill", {
    from: now - 600_000,
    to: now,
    dryRun: false,
  });
  await named("removeSchedule", "sweep", "schedules.remove");

  await named("setHold", "other", "holds.set", { reason: "because" });
  await named("clearHold", "other", "holds.clear");
  const lane = { queue: "tenants", lane: "globex" };
  await run({
    id: "setLane",
    path: lane,
    body: { concurrency: 2, for: "1h" },
    audited: ["lanes.set", "tenants/globex"],
  });
  await run({ id: "endLaneTemporaryLimit", path: lane, audited: ["temporary-limits.end", "tenants/globex"] });
  await run({ id: "resetLane", path: lane, audited: ["lanes.reset", "tenants/globex"] });
  await run({ id: "dropLane", path: lane, audited: ["lanes.drop", "tenants/globex"] });
  await named("setBudget", "slack", "budgets.set", { limit: 10, per: "1m", for: "1h" });
  await named("endBudgetTemporaryLimit", "slack", "temporary-limits.end");
  await named("drainBudget", "slack", "budgets.drain");
  await named("resetBudget", "slack", "budgets.reset");
  await named("removeBudget", "slack", "budgets.remove");
  await run({ id: "resetBreaker", path: { key: "queue:bank" }, audited: ["breakers.reset", "bank"] });
}
