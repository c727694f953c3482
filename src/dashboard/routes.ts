/**
 * The route table: every address of the API, by subject. openapi.ts describes exactly this table.
 * Not here: what a route needs and does (routes/), who may (handler.ts).
 */
import { onlyFields } from "./query.ts";
import { aboutRoutes } from "./routes/about.ts";
import { auditRoutes } from "./routes/audit.ts";
import { batchesRoutes } from "./routes/batches.ts";
import { bulkRoutes } from "./routes/bulk.ts";
import { errorsRoutes } from "./routes/errors.ts";
import { exportRoutes } from "./routes/export.ts";
import { insightRoutes } from "./routes/insight.ts";
import { jobsRoutes } from "./routes/jobs.ts";
import { kindsRoutes } from "./routes/kinds.ts";
import { limitsRoutes } from "./routes/limits.ts";
import { queuesRoutes } from "./routes/queues.ts";
import type { Route } from "./routes/route.ts";
import { runsRoutes } from "./routes/runs.ts";
import { schedulesRoutes } from "./routes/schedules.ts";
import { workersRoutes } from "./routes/workers.ts";

export type { Route, RouteContext } from "./routes/route.ts";

export const routes: readonly Route[] = [
  ...aboutRoutes,
  // Before the jobs: /jobs/export is no id.
  ...exportRoutes,
  ...bulkRoutes,
  ...jobsRoutes,
  ...kindsRoutes,
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

/** @throws ApiError 400 for a field that the route does not take. */
export function checkBody(route: Route, body: Readonly<Record<string, unknown>>): void {
  onlyFields(body, route.body ?? []);
}
