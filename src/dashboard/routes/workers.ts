/** Workers, and the names of jobs that they have registered. */
import type { Holdfast } from "../../index.ts";
import { WorkerList } from "../api/contract.ts";
import { ApiError } from "../http.ts";
import { workerLine } from "../api/shapes.ts";
import { change, type Route, route } from "./route.ts";
import { about } from "./targets.ts";

/** Jobs whose names are asked for: of each worker, and of all. */
const namedEach = 5;
const namedInAll = 500;

export const workersRoutes: readonly Route[] = [
  route({
    method: "GET",
    path: "/workers",
    id: "listWorkers",
    summary:
      "Live workers and holders of leases; the last run of each upkeep task; workers that died in the last hour.",
    permission: "view",
    about: about.all("worker"),
    answer: WorkerList,
    run: async ({ store, operator, hf, insight }) => {
      const now = operator.env.clock.now();
      const [workers, upkeepTasks, lost, failures, gauges] = await Promise.all([
        store.workers.list(),
        store.upkeep.tasks(),
        store.workers.lost(),
        insight.failuresBy("worker", now - 3_600_000),
        hf.metrics.gauges({ name: ["rss", "loopDelayMs"], since: now - 3 * 60_000 }),
      ]);
      const ids = workers.flatMap(({ jobs }) => jobs.slice(0, namedEach)).slice(0, namedInAll);
      const named = new Map(
        ids.length === 0
          ? []
          : (await insight.browse({ ids }, { limit: ids.length, cursor: null })).jobs.map((job) => [
              job.id,
              job,
            ]),
      );
      const latest = (id: string, name: string): number | null =>
        gauges.find((one) => one.source === id && one.name === name)?.points.at(-1)?.value ?? null;
      return {
        workers: workers.map((worker) =>
          workerLine(worker, {
            upkeepTasks: upkeepTasks.filter(({ by }) => by === worker.id).map(({ name }) => name),
            rssBytes: latest(worker.id, "rss"),
            loopDelayMs: latest(worker.id, "loopDelayMs"),
            failed: failures.lines.find(({ value }) => value === worker.id)?.failures ?? 0,
            runs: worker.jobs.slice(0, namedEach).flatMap((id) => {
              const job = named.get(id);
              if (job === undefined) return [];
              return [{ id, name: job.name, queue: job.queue, startedAt: job.startedAt }];
            }),
          }),
        ),
        lost: lost.map(({ id, name, host, pid, release, beatAt, leaseUntil, jobs }) => ({
          id,
          name,
          host,
          pid,
          release,
          beatAt: beatAt.getTime(),
          lostAt: leaseUntil.getTime(),
          held: jobs.length,
        })),
        upkeepTasks: upkeepTasks.map(({ name, by, doneAt, nextAt }) => ({
          name,
          by,
          doneAt: doneAt.getTime(),
          nextAt: nextAt.getTime(),
        })),
      };
    },
  }),
  change(
    {
      method: "POST",
      path: "/workers/:id/stop",
      id: "stopWorker",
      summary: "Asks a worker to stop after its running jobs.",
      permission: "workers:stop",
      about: about.worker,
    },
    ["workers.stop", "asked"],
    async ({ hf }, id) => {
      await needLive(hf, id);
      await hf.workers.stop(id);
    },
  ),
  change(
    {
      method: "POST",
      path: "/workers/:id/quiet",
      id: "quietWorker",
      summary: "Makes a worker quiet: it claims nothing more, finishes its running jobs, and stays alive.",
      permission: "workers:stop",
      about: about.worker,
    },
    ["workers.quiet", "quiet"],
    async ({ hf }, id) => {
      await needLive(hf, id);
      await hf.workers.quiet(id);
    },
  ),
  change(
    {
      method: "POST",
      path: "/workers/:id/resume",
      id: "resumeWorker",
      summary: "Resumes a quiet worker.",
      permission: "workers:stop",
      about: about.worker,
    },
    ["workers.resume", "resumed"],
    async ({ hf }, id) => {
      await needLive(hf, id);
      await hf.workers.resume(id);
    },
  ),
];

/** Never "all", nor a name, from a path segment. */
async function needLive(hf: Holdfast, id: string): Promise<void> {
  if (!(await hf.workers.list()).some((worker) => worker.id === id && worker.kind === "worker"))
    throw new ApiError("NOT_FOUND", "No live worker has this id.");
}
