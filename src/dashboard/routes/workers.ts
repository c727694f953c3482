/** Workers, and the kinds of jobs that they have registered. */
import { ApiError } from "../http.ts";
import { workerLine } from "../shapes.ts";
import { change, type Route } from "./route.ts";

export const workersRoutes: readonly Route[] = [
  {
    method: "GET",
    path: "/workers",
    id: "listWorkers",
    summary: "Every live worker, and every holder of leases; and who did each duty last.",
    permission: "view",
    answer: "WorkerList",
    run: async ({ store, hf }) => {
      const since = hf.internals.env.clock.now() - 3 * 60_000;
      const [workers, duties, gauges] = await Promise.all([
        store.workers(),
        store.duties(),
        hf.metrics.gauges({ name: ["rss", "loopDelayMs"], since }),
      ]);
      const latest = (id: string, name: string): number | null =>
        gauges.find((one) => one.source === id && one.name === name)?.points.at(-1)?.value ?? null;
      return {
        workers: workers.map((worker) =>
          workerLine(worker, {
            duties: duties.filter(({ by }) => by === worker.id).map(({ name }) => name),
            rssBytes: latest(worker.id, "rss"),
            loopDelayMs: latest(worker.id, "loopDelayMs"),
          }),
        ),
        duties: duties.map(({ name, by, doneAt, nextAt }) => ({
          name,
          by,
          doneAt: doneAt.getTime(),
          nextAt: nextAt.getTime(),
        })),
      };
    },
  },
  change(
    {
      method: "POST",
      path: "/workers/:id/stop",
      id: "stopWorker",
      summary: "Asks a worker to stop: it finishes what it runs and goes.",
      permission: "workers:stop",
    },
    ["workers.stop", "asked"],
    async ({ hf }, id) => {
      // Never "all" from a path segment.
      if (!(await hf.workers.list()).some((worker) => worker.id === id && worker.kind === "worker"))
        throw new ApiError("NOT_FOUND", "No live worker has this id.");
      await hf.workers.stop(id);
    },
  ),
  {
    method: "GET",
    path: "/kinds",
    id: "listKinds",
    summary: "The kinds of jobs that workers have registered.",
    permission: "view",
    answer: "KindList",
    run: async ({ store }) => ({
      kinds: [...(await store.kinds())].map(([name, { unique, lane }]) => ({ name, unique, lane })),
    }),
  },
];
