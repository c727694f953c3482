/** What keeps jobs from running on purpose: holds, breakers, budgets, lanes. */
import { integer } from "../api/query.ts";
import { holdLine } from "../api/shapes.ts";
import { change, pageParams, type Route, WHILE, whileOf } from "./route.ts";
import { about } from "./targets.ts";

export const limitsRoutes: readonly Route[] = [
  {
    method: "GET",
    path: "/holds",
    id: "listHolds",
    summary: "Every hold that is set.",
    permission: "view",
    about: about.all("hold"),
    answer: "HoldList",
    run: async ({ hf }) => ({ holds: (await hf.holds.list()).map(holdLine) }),
  },
  change(
    {
      method: "PUT",
      path: "/holds/:name",
      id: "setHold",
      summary: "Sets a hold over some queues, or all.",
      permission: "limits:set",
      about: about.hold,
      body: ["queues", "reason"],
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
  {
    method: "GET",
    path: "/lanes",
    id: "listLanes",
    summary: "Lanes with their limits and what waits in them.",
    permission: "view",
    about: about.queuesOfQuery,
    query: ["queue", ...pageParams],
    answer: "LaneList",
    run: ({ adapters, query }) =>
      adapters.lanes.list({
        queue: query.get("queue"),
        limit: integer(query, "limit", { min: 1, max: 200, or: 50 }),
        cursor: query.get("cursor"),
      }),
  },
  change(
    {
      method: "PATCH",
      path: "/lanes/:queue/:lane",
      id: "setLane",
      summary: "Changes a lane's limits, or pauses it.",
      permission: "limits:set",
      about: about.lane,
      body: ["concurrency", "rate", "weight", "paused", ...WHILE],
    },
    ["lanes.set", "set"],
    ({ adapters, body, path }) => {
      const [change, when] = whileOf(body);
      return adapters.lanes.set(path["queue"] ?? "", path["lane"] ?? "", change, when);
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
  {
    method: "GET",
    path: "/lanes/throttled",
    id: "throttledLanes",
    summary:
      "Lanes with jobs that may start none now, among 500 that are at a limit or paused; most jobs first.",
    permission: "view",
    about: about.all("lane"),
    answer: "ThrottledLanes",
    run: async ({ adapters }) => ({ lanes: await adapters.lanes.throttled(20) }),
  },
  {
    method: "GET",
    path: "/limits/use",
    id: "limitUse",
    summary: "How far queues' limits and budgets are used, now and by the minute (5 to 60, default 15).",
    permission: "view",
    about: about.cluster,
    query: ["minutes"],
    answer: "LimitUse",
    run: ({ adapters, query }) => adapters.use(integer(query, "minutes", { min: 5, max: 60, or: 15 })),
  },
  {
    method: "GET",
    path: "/overrides",
    id: "listOverrides",
    summary: "Limits that hold for a while, the next end first.",
    permission: "view",
    about: about.cluster,
    answer: "OverrideList",
    run: async ({ adapters }) => ({ overrides: await adapters.overrides.list() }),
  },
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
      ({ adapters }, name) => adapters.overrides.end(kind, name, null),
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
    ({ adapters, path }) => adapters.overrides.end("lane", path["queue"] ?? "", path["lane"] ?? ""),
    "Nothing holds for a while there.",
  ),
  {
    method: "GET",
    path: "/budgets",
    id: "listBudgets",
    summary: "Cluster-wide rates, and what is left of them.",
    permission: "view",
    about: about.all("budget"),
    answer: "BudgetList",
    run: async ({ adapters }) => ({ budgets: await adapters.budgets.list() }),
  },
  change(
    {
      method: "PUT",
      path: "/budgets/:name",
      id: "setBudget",
      summary: "Sets a budget.",
      permission: "limits:set",
      about: about.budget,
      body: ["limit", "per", "burst", ...WHILE],
    },
    ["budgets.set", "set"],
    ({ adapters, body }, name) => {
      const [budget, when] = whileOf(body);
      return adapters.budgets.set(name, budget as { limit: number; per: string; burst?: number }, when);
    },
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
    ({ adapters }, name) => adapters.budgets.drain(name),
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
    ({ adapters }, name) => adapters.budgets.reset(name),
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
    ({ adapters }, name) => adapters.budgets.remove(name),
    "No budget has this name.",
  ),
  {
    method: "GET",
    path: "/breakers",
    id: "listBreakers",
    summary: "Breakers, open ones first.",
    permission: "view",
    about: about.all("breaker"),
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
    ({ adapters }, name) => adapters.breakers.reset(name),
    "No breaker has this key.",
  ),
];
