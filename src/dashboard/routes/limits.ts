/** What keeps jobs from running on purpose: holds, breakers, budgets, lanes. */
import { integer } from "../query.ts";
import { holdLine } from "../shapes.ts";
import { change, pageParams, type Route } from "./route.ts";

export const limitsRoutes: readonly Route[] = [
  {
    method: "GET",
    path: "/holds",
    id: "listHolds",
    summary: "Every hold that is set.",
    permission: "view",
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
      body: ["concurrency", "rate", "weight", "paused"],
    },
    ["lanes.set", "set"],
    ({ adapters, body, path }) => adapters.lanes.set(path["queue"] ?? "", path["lane"] ?? "", body),
  ),
  {
    method: "GET",
    path: "/budgets",
    id: "listBudgets",
    summary: "Cluster-wide rates, and what is left of them.",
    permission: "view",
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
      body: ["limit", "per", "burst"],
    },
    ["budgets.set", "set"],
    ({ adapters, body }, name) =>
      adapters.budgets.set(name, body as { limit: number; per: string; burst?: number }),
  ),
  change(
    {
      method: "POST",
      path: "/budgets/:name/drain",
      id: "drainBudget",
      summary: "Takes what is left: nothing is granted until it refills.",
      permission: "limits:set",
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
    },
    ["breakers.reset", "closed"],
    ({ adapters }, name) => adapters.breakers.reset(name),
    "No breaker has this key.",
  ),
];
