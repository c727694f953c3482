/**
 * Batches: what was enqueued together, how far each is, and what comes after it.
 *
 * Invariant: a page is bounded, however large its batches are; what was not counted is said (`cut`).
 */
import type { BatchFilter } from "../../operate/browse.ts";
import type { BatchList } from "../api/contract.ts";
import { bad, integer } from "../api/query.ts";
import { pageParams, type Route } from "./route.ts";
import { about } from "./targets.ts";

const STATES: readonly NonNullable<BatchFilter["state"]>[] = ["open", "ended", "failed"];

export const batchesRoutes: readonly Route[] = [
  {
    method: "GET",
    path: "/batches",
    id: "listBatches",
    summary:
      "What hf.batch enqueued together, newest first, and how far each is. `state`: open (some of its jobs have not ended), ended, or failed (some ended dead or cancelled); then a page may be short and have more behind it. Its jobs: /jobs?batch=…",
    permission: "view",
    about: about.all("jobs"),
    query: ["state", ...pageParams],
    answer: "BatchList",
    run: ({ insight, query }): Promise<BatchList> => {
      const asked = query.get("state");
      const state = STATES.find((one) => one === asked);
      if (asked !== null && state === undefined) throw bad("state", `must be one of ${STATES.join(", ")}.`);
      const limit = integer(query, "limit", { min: 1, max: 200, or: 25 });
      return insight.batches(state === undefined ? {} : { state }, { limit, cursor: query.get("cursor") });
    },
  },
];
