/**
 * The route table: every address of the API, by subject. dashboard/api/openapi.ts describes exactly this table.
 * Not here: what a route needs and does (routes/), who may (dashboard/handler.ts).
 */
import { aboutRoutes } from "./about.ts";
import { auditRoutes } from "./audit.ts";
import { batchesRoutes } from "./batches.ts";
import { bulkRoutes } from "./bulk.ts";
import { errorsRoutes } from "./errors.ts";
import { exportRoutes } from "./export.ts";
import { insightRoutes } from "./insight.ts";
import { jobsRoutes } from "./jobs.ts";
import { definitionsRoutes } from "./definitions.ts";
import { limitsRoutes } from "./limits.ts";
import { queuesRoutes } from "./queues.ts";
import type { Route } from "./route.ts";
import { runsRoutes } from "./runs.ts";
import { schedulesRoutes } from "./schedules.ts";
import { workersRoutes } from "./workers.ts";

export type { Route, RouteContext } from "./route.ts";

export const routes: readonly Route[] = [
  ...aboutRoutes,
  // Before the jobs: /jobs/export is no id.
  ...exportRoutes,
  ...bulkRoutes,
  ...jobsRoutes,
  ...definitionsRoutes,
  ...errorsRoutes,
  ...runsRoutes,
  ...batchesRoutes,
  ...insightRoutes,
  ...auditRoutes,
  ...queuesRoutes,
  ...workersRoutes,
  ...schedulesRoutes,
  ...limitsRoutes,
];

/** The route of a request, with what its path says. */
export function match(
  method: string,
  segments: readonly string[],
): { route: Route; path: Record<string, string> } | "method" | null {
  let other = false;
  for (const route of routes) {
    const parts = route.path.slice(1).split("/");
    if (parts.length !== segments.length) continue;
    const path = Object.create(null) as Record<string, string>;
    const fits = parts.every((part, i) => {
      const segment = segments[i] ?? "";
      if (!part.startsWith(":")) return part === segment;
      path[part.slice(1)] = segment;
      return segment !== "";
    });
    if (!fits) continue;
    if (route.method === method) return { route, path };
    other = true;
  }
  return other ? "method" : null;
}
