/**
 * Batches: what was enqueued together, how far each is, and what comes after it.
 *
 * Invariant: a page is bounded, however large its batches are; what was not counted is said (`cut`).
 */
import { object, oneOf, text, within } from "../api/schema.ts";
import { BatchList } from "../api/contract.ts";
import { type Route, route } from "./route.ts";
import { about } from "./targets.ts";

export const batchesRoutes: readonly Route[] = [
  route({
    method: "GET",
    path: "/batches",
    id: "listBatches",
    summary:
      "Batches of hf.batch with their progress, newest first. `state`: open (some jobs have not ended), ended, or failed (some ended dead or cancelled); a page may then be short and still have a next one. The jobs of a batch: /jobs?batch=…",
    permission: "view",
    about: about.all("jobs"),
    query: object({ limit: within(1, 200, 25) }, { state: oneOf("open", "ended", "failed"), cursor: text }),
    answer: BatchList,
    run: ({ insight, query: { limit, state, cursor = null } }) =>
      insight.batches(state === undefined ? {} : { state }, { limit, cursor }),
  }),
];
