/** What keeps jobs from running on purpose: holds, breakers, budgets, lanes. */
import {
  BreakerList,
  BudgetList,
  HoldList,
  LaneList,
  LimitUse,
  TemporaryLimitList,
  ThrottledLanes,
} from "../api/contract.ts";
import {
  anyObject,
  duration,
  flag,
  integer,
  list,
  maybe,
  number,
  object,
  text,
  typed,
  within,
} from "../api/schema.ts";
import {
  breakerLine,
  byState,
  laneLine,
  temporaryLimitLine,
  readBudgets,
  readUse,
} from "../api/limit-lines.ts";
import type { LaneOptions } from "../../index.ts";
import { holdLine } from "../api/shapes.ts";
import { change, type Route, WHILE, whileOf, route } from "./route.ts";
import { about } from "./targets.ts";

export const limitsRoutes: readonly Route[] = [
  route({
    method: "GET",
    path: "/holds",
    id: "listHolds",
    summary: "All active holds.",
    permission: "view",
    about: about.all("hold"),
    answer: HoldList,
    run: async ({ hf }) => ({ holds: (await hf.holds.list()).map(holdLine) }),
  }),
  change(
    {
      method: "PUT",
      path: "/holds/:name",
      id: "setHold",
      summary: "Sets a hold over some queues, or all.",
      permission: "limits:set",
      about: about.hold,
      body: object({}, { queues: list(text), reason: text }),
    },
    ["holds.set", "set"],
    ({ hf, body }, name) => hf.holds.set(name, body),
  ),
  change(
    {
      method: "DELETE",
      path: "/holds/:name",
      id: "clearHold",
      summary: "Clears a hold.",
      permission: "limits:set",
      about: about.clearedHold,
    },
    ["holds.clear", "cleared"],
    ({ hf }, name) => hf.holds.clear(name),
    "No hold has this name.",
  ),
  route({
    method: "GET",
    path: "/lanes",
    id: "listLanes",
    summary: "Lanes with their limits and counts.",
    permission: "view",
    about: about.queuesOfQuery,
    query: object({ limit: within(1, 200, 50) }, { queue: text, cursor: text }),
    answer: LaneList,
    run: async ({ hf, query }) => {
      const { lanes, cursor } = await hf.lanes.list(query);
      return { lanes: lanes.map(laneLine), cursor };
    },
  }),
  change(
    {
      method: "PATCH",
      path: "/lanes/:queue/:lane",
      id: "setLane",
      summary: "Changes a lane's limits, or pauses it.",
      permission: "limits:set",
      about: about.lane,
      body: object(
        {},
        {
          concurrency: maybe(integer),
          rate: typed<LaneOptions["rate"]>(maybe(anyObject)),
          weight: maybe(integer),
          paused: flag,
          ...WHILE,
        },
      ),
    },
    ["lanes.set", "set"],
    async ({ hf: { lanes }, body, path }) => {
      const [{ paused, ...limits }, when] = whileOf(body);
      const { queue = "", lane = "" } = path;
      await lanes.set(queue, lane, limits, when);
      if (paused !== undefined) await (paused ? lanes.pause(queue, lane) : lanes.resume(queue, lane));
    },
  ),
  change(
    {
      method: "POST",
      path: "/lanes/:queue/:lane/reset",
      id: "resetLane",
      summary: "Restores the code's limits of a lane. Its rate starts with an empty window.",
      permission: "limits:set",
      about: about.lane,
    },
    ["lanes.reset", "reset"],
    ({ hf, path }) => hf.lanes.reset(path["queue"] ?? "", path["lane"] ?? ""),
    "There is no such lane.",
  ),
  change(
    {
      method: "DELETE",
      path: "/lanes/:queue/:lane",
      id: "dropLane",
      summary:
        "Removes all settings of a lane, including its pause. The lane is removed after a day without a job. Running jobs stay counted.",
      permission: "limits:set",
      about: about.lane,
    },
    ["lanes.drop", "dropped"],
    ({ hf, path }) => hf.lanes.drop(path["queue"] ?? "", path["lane"] ?? ""),
    "There is no such lane.",
  ),
  route({
    method: "GET",
    path: "/lanes/throttled",
    id: "throttledLanes",
    summary: "Lanes whose jobs cannot start now, among 500 lanes at a limit or paused; most jobs first.",
    permission: "view",
    about: about.all("lane"),
    answer: ThrottledLanes,
    run: async ({ store }) => ({ lanes: (await store.lanes.throttled(20)).map(laneLine) }),
  }),
  route({
    method: "GET",
    path: "/limits/use",
    id: "limitUse",
    summary: "Use of the limits of queues and budgets, now and by the minute (5 to 60, default 15).",
    permission: "view",
    about: about.cluster,
    query: object({ minutes: within(5, 60, 15) }),
    answer: LimitUse,
    run: ({ hf, operator, query }) => readUse(hf, operator, query.minutes),
  }),
  route({
    method: "GET",
    path: "/temporary-limits",
    id: "listTemporaryLimits",
    summary: "Temporary limits, the next end first.",
    permission: "view",
    about: about.cluster,
    answer: TemporaryLimitList,
    run: async ({ hf }) => ({ temporaryLimits: (await hf.temporaryLimits.list()).map(temporaryLimitLine) }),
  }),
  ...(["queue", "budget"] as const).map((kind) =>
    change(
      {
        method: "DELETE",
        path: `/temporary-limits/${kind}/:name`,
        id: kind === "queue" ? "endQueueTemporaryLimit" : "endBudgetTemporaryLimit",
        summary: `Ends the temporary limit of a ${kind} now.`,
        permission: kind === "queue" ? "queues:set" : "limits:set",
        about: kind === "queue" ? about.queue : about.budget,
      },
      [`temporary-limits.end`, "back"],
      ({ hf }, name) => hf.temporaryLimits.end({ kind, name, key: null }),
      "There is no such temporary limit.",
    ),
  ),
  change(
    {
      method: "DELETE",
      path: "/temporary-limits/lane/:queue/:lane",
      id: "endLaneTemporaryLimit",
      summary: "Ends the temporary limit of a lane now.",
      permission: "limits:set",
      about: about.lane,
    },
    ["temporary-limits.end", "back"],
    ({ hf, path }) =>
      hf.temporaryLimits.end({ kind: "lane", name: path["queue"] ?? "", key: path["lane"] ?? "" }),
    "There is no such temporary limit.",
  ),
  route({
    method: "GET",
    path: "/budgets",
    id: "listBudgets",
    summary: "Budgets with their tokens.",
    permission: "view",
    about: about.all("budget"),
    answer: BudgetList,
    run: async ({ hf, operator }) => ({ budgets: await readBudgets(hf, operator) }),
  }),
  change(
    {
      method: "PUT",
      path: "/budgets/:name",
      id: "setBudget",
      summary: "Sets a budget.",
      permission: "limits:set",
      about: about.budget,
      body: object({ limit: number, per: duration }, { burst: number, ...WHILE }),
    },
    ["budgets.set", "set"],
    ({ hf, body }, name) => hf.budgets.set(name, ...whileOf(body)),
  ),
  change(
    {
      method: "POST",
      path: "/budgets/:name/drain",
      id: "drainBudget",
      summary: "Takes all tokens of a budget. Nothing is granted until it refills.",
      permission: "limits:set",
      about: about.budget,
    },
    ["budgets.drain", "drained"],
    ({ hf }, name) => hf.budgets.drain(name),
    "No budget has this name.",
  ),
  change(
    {
      method: "POST",
      path: "/budgets/:name/reset",
      id: "resetBudget",
      summary: "Restores the code's values of a budget.",
      permission: "limits:set",
      about: about.budget,
    },
    ["budgets.reset", "reset"],
    ({ hf }, name) => hf.budgets.reset(name),
    "The code defines no budget of this name.",
  ),
  change(
    {
      method: "DELETE",
      path: "/budgets/:name",
      id: "removeBudget",
      summary: "Removes a budget. Its jobs are then throttled.",
      permission: "limits:set",
      about: about.budget,
    },
    ["budgets.remove", "removed"],
    ({ hf }, name) => hf.budgets.remove(name),
    "No budget has this name.",
  ),
  route({
    method: "GET",
    path: "/breakers",
    id: "listBreakers",
    summary: "Breakers, open ones first.",
    permission: "view",
    about: about.all("breaker"),
    answer: BreakerList,
    run: async ({ hf, redactor, may }) => {
      const mayPayload = await may("view:payload");
      const breakers = (await hf.breakers.list()).map(breakerLine).sort(byState);
      return {
        breakers: breakers.map((breaker) => ({
          ...breaker,
          error: mayPayload ? redactor.text(breaker.error) : null,
        })),
      };
    },
  }),
  change(
    {
      method: "POST",
      path: "/breakers/:key/reset",
      id: "resetBreaker",
      summary: "Closes a breaker.",
      permission: "limits:set",
      about: about.breaker,
    },
    ["breakers.reset", "closed"],
    ({ hf }, name) => hf.breakers.reset(name),
    "No breaker has this key.",
  ),
];
