/** What keeps jobs from running on purpose: holds, breakers, budgets, lanes. */
import {
  BreakerList,
  BudgetList,
  HoldList,
  LaneList,
  LimitUse,
  OverrideList,
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
import { breakerLine, byState, laneLine, overrideLine, readBudgets, readUse } from "../api/limit-lines.ts";
import type { LaneOptions } from "../../index.ts";
import { holdLine } from "../api/shapes.ts";
import { change, type Route, WHILE, whileOf, route } from "./route.ts";
import { about } from "./targets.ts";

export const limitsRoutes: readonly Route[] = [
  route({
    method: "GET",
    path: "/holds",
    id: "listHolds",
    summary: "Every hold that is set.",
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
    summary: "Lanes with their limits and what waits in them.",
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
      summary: "Gives up what was set of a lane by hand, for the code's limits; its rate begins anew.",
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
        "Removes everything that was set of a lane, its pause too; it is forgotten after a day in which no job comes. What runs stays counted.",
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
    summary:
      "Lanes with jobs that may start none now, among 500 that are at a limit or paused; most jobs first.",
    permission: "view",
    about: about.all("lane"),
    answer: ThrottledLanes,
    run: async ({ store }) => ({ lanes: (await store.lanes.throttled(20)).map(laneLine) }),
  }),
  route({
    method: "GET",
    path: "/limits/use",
    id: "limitUse",
    summary: "How far queues' limits and budgets are used, now and by the minute (5 to 60, default 15).",
    permission: "view",
    about: about.cluster,
    query: object({ minutes: within(5, 60, 15) }),
    answer: LimitUse,
    run: ({ hf, operator, query }) => readUse(hf, operator, query.minutes),
  }),
  route({
    method: "GET",
    path: "/overrides",
    id: "listOverrides",
    summary: "Limits that hold for a while, the next end first.",
    permission: "view",
    about: about.cluster,
    answer: OverrideList,
    run: async ({ hf }) => ({ overrides: (await hf.overrides.list()).map(overrideLine) }),
  }),
  ...(["queue", "budget"] as const).map((kind) =>
    change(
      {
        method: "DELETE",
        path: `/overrides/${kind}/:name`,
        id: kind === "queue" ? "endQueueOverride" : "endBudgetOverride",
        summary: `Goes back at once to what a ${kind} had before.`,
        permission: kind === "queue" ? "queues:set" : "limits:set",
        about: kind === "queue" ? about.queue : about.budget,
      },
      [`overrides.end`, "back"],
      ({ hf }, name) => hf.overrides.end({ kind, name, key: null }),
      "Nothing holds for a while there.",
    ),
  ),
  change(
    {
      method: "DELETE",
      path: "/overrides/lane/:queue/:lane",
      id: "endLaneOverride",
      summary: "Goes back at once to what a lane had before.",
      permission: "limits:set",
      about: about.lane,
    },
    ["overrides.end", "back"],
    ({ hf, path }) => hf.overrides.end({ kind: "lane", name: path["queue"] ?? "", key: path["lane"] ?? "" }),
    "Nothing holds for a while there.",
  ),
  route({
    method: "GET",
    path: "/budgets",
    id: "listBudgets",
    summary: "Cluster-wide rates, and what is left of them.",
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
      summary: "Takes what is left: nothing is granted until it refills.",
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
      summary: "Gives up what was set by hand, for the code's numbers.",
      permission: "limits:set",
      about: about.budget,
    },
    ["budgets.reset", "reset"],
    ({ hf }, name) => hf.budgets.reset(name),
    "The code has no numbers for a budget of this name.",
  ),
  change(
    {
      method: "DELETE",
      path: "/budgets/:name",
      id: "removeBudget",
      summary: "Removes a budget: what takes from it is throttled.",
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
      summary: "Closes a breaker by hand.",
      permission: "limits:set",
      about: about.breaker,
    },
    ["breakers.reset", "closed"],
    ({ hf }, name) => hf.breakers.reset(name),
    "No breaker has this key.",
  ),
];
