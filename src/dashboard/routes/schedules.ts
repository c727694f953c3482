/** Schedules: what fires when, and changes by hand that outlive restarts. */
import type { JobSummary } from "../../operate/browse.ts";
import type { Calendar, ScheduleHistory, ScheduleRuns } from "../api/contract.ts";
import { bad, integer } from "../api/query.ts";
import { change, type Route, visible } from "./route.ts";
import { about } from "./targets.ts";

const mostSchedules = 200;
const batchSize = 500;

export const schedulesRoutes: readonly Route[] = [
  {
    method: "GET",
    path: "/schedules",
    id: "listSchedules",
    summary: "Every schedule, with its next run.",
    permission: "view",
    about: about.all("schedule"),
    answer: "ScheduleList",
    run: async ({ adapters }) => ({ schedules: await adapters.schedules.list() }),
  },
  {
    method: "GET",
    path: "/schedules/:name/preview",
    id: "previewSchedule",
    summary: "The next runs of a schedule.",
    permission: "view",
    about: about.schedule,
    query: ["n"],
    answer: "Preview",
    run: async ({ adapters, path, query }) => {
      const n = integer(query, "n", { min: 1, max: 100, or: 20 });
      const runs = await adapters.schedules.preview(path["name"] ?? "", n);
      return { at: runs.map(({ at }) => at), runs };
    },
  },
  {
    method: "GET",
    path: "/schedules/preview",
    id: "previewTiming",
    summary:
      "The next runs of a timing before it is saved: `cron` with `timezone`, or `every`; at most 20. What is wrong with it is in `error`.",
    permission: "view",
    about: about.all("schedule"),
    query: ["cron", "every", "timezone", "n"],
    answer: "TimingPreview",
    run: ({ adapters, query }) => {
      const n = integer(query, "n", { min: 1, max: 20, or: 5 });
      const given = ["cron", "every", "timezone"].flatMap((name) => {
        const value = query.get(name);
        return value === null ? [] : [[name, value] as const];
      });
      return adapters.schedules.tryOut(Object.fromEntries(given), n);
    },
  },
  {
    method: "GET",
    path: "/schedules/calendar",
    id: "scheduleCalendar",
    summary: "How many slots of which schedules lie in each quarter of an hour of the next 24 hours.",
    permission: "view",
    about: about.all("schedule"),
    answer: "Calendar",
    run: ({ adapters }): Promise<Calendar> => adapters.schedules.calendar(),
  },
  {
    method: "GET",
    path: "/schedules/runs",
    id: "scheduleRuns",
    summary: "The newest jobs of each schedule, at most 20, with how they ended.",
    permission: "view",
    about: about.all("schedule"),
    answer: "ScheduleRuns",
    run: async ({ adapters, insight }): Promise<ScheduleRuns> => {
      const made = [...(await adapters.schedules.recent())].slice(0, mostSchedules);
      const ids = made.flatMap(([, jobs]) => jobs.map(({ id }) => id));
      const found = new Map<string, JobSummary>();
      for (let from = 0; from < ids.length; from += batchSize) {
        const chunk = ids.slice(from, from + batchSize);
        const page = await insight.browse({ ids: chunk }, { limit: chunk.length, cursor: null });
        for (const job of page.jobs) found.set(job.id, job);
      }
      return {
        runs: Object.fromEntries(
          made.map(([name, jobs]) => [
            name,
            jobs.map(({ id, at }) => {
              const job = found.get(id);
              const started = job?.startedAt ?? null;
              const ended = job?.endedAt ?? null;
              return {
                id,
                at,
                state: job?.state ?? null,
                // Of what was retried only the latest start is in the list.
                lateMs: started === null || (job?.attempt ?? 0) > 1 ? null : Math.max(0, started - at),
                ranMs: started === null || ended === null ? null : Math.max(0, ended - started),
              };
            }),
          ]),
        ),
      };
    },
  },
  {
    method: "GET",
    path: "/schedules/:name/runs",
    id: "scheduleHistory",
    summary:
      "The newest runs of a schedule, newest first: how late each started, how long it ran, how it ended.",
    permission: "view",
    about: about.schedule,
    query: ["limit"],
    answer: "ScheduleHistory",
    run: async (context): Promise<ScheduleHistory> => {
      const { adapters, path, query } = context;
      const limit = integer(query, "limit", { min: 1, max: 500, or: 100 });
      const runs = await adapters.schedules.runs(path["name"] ?? "", limit);
      // The schedule may have made jobs in another queue before, and jobs can be moved.
      const ids = runs.map(({ jobId }) => jobId);
      const see = await visible(context, ids);
      return { runs: runs.filter(({ jobId }) => see(jobId)) };
    },
  },
  change(
    {
      method: "PATCH",
      path: "/schedules/:name",
      id: "setSchedule",
      summary: "Changes a schedule; the change survives restarts.",
      permission: "schedules:set",
      about: about.schedule,
      body: ["cron", "every", "timezone", "missed", "overlap", "jitter"],
    },
    ["schedules.set", "set"],
    ({ adapters, body }, name) => adapters.schedules.change(name, body),
  ),
  ...(["pause", "resume", "reset"] as const).map((verb) =>
    change(
      {
        method: "POST",
        path: `/schedules/:name/${verb}`,
        id: `${verb}Schedule`,
        summary: {
          pause: "It makes no more jobs.",
          resume: "It makes jobs again.",
          reset: "Gives up what was edited, and a fault: the code's words count again.",
        }[verb],
        permission: "schedules:set",
        about: about.schedule,
      },
      [`schedules.${verb}`, { pause: "paused", resume: "resumed", reset: "reset" }[verb]],
      ({ adapters }, name) => adapters.schedules[verb](name),
    ),
  ),
  {
    method: "POST",
    path: "/schedules/:name/trigger",
    id: "triggerSchedule",
    summary: "Makes its job now, beside its slots.",
    permission: "schedules:trigger",
    about: about.schedule,
    write: true,
    answer: "Triggered",
    run: async ({ adapters, path, audit }) => {
      const id = await adapters.schedules.trigger(path["name"] ?? "");
      await audit("schedules.trigger", path["name"] ?? "", "triggered", { job: id });
      return { id };
    },
  },
  {
    method: "POST",
    path: "/schedules/:name/backfill",
    id: "backfillSchedule",
    summary:
      "Makes the jobs of slots that passed without one, oldest first, at most `limit`. With `dryRun: true` it lists them, and makes nothing.",
    permission: "schedules:trigger",
    about: about.schedule,
    write: true,
    body: ["from", "to", "limit", "dryRun"],
    answer: "Backfill",
    run: async ({ adapters, path, body, audit }) => {
      const { from, to, limit, dryRun = false } = body;
      if (!Number.isSafeInteger(from)) throw bad("from", "must be an instant in epoch milliseconds.");
      if (to !== undefined && !Number.isSafeInteger(to))
        throw bad("to", "must be an instant in epoch milliseconds.");
      if (typeof dryRun !== "boolean") throw bad("dryRun", "must be true or false.");
      const answer = await adapters.schedules.backfill(path["name"] ?? "", {
        from: from as number,
        dryRun,
        ...(to === undefined ? {} : { to: to as number }),
        ...(limit === undefined ? {} : { limit: limit as number }),
      });
      if (!dryRun)
        await audit("schedules.backfill", path["name"] ?? "", `${answer.slots.length} made`, { from, to });
      return answer;
    },
  },
  change(
    {
      method: "DELETE",
      path: "/schedules/:name",
      id: "removeSchedule",
      summary: "Removes a schedule.",
      permission: "schedules:set",
      about: about.schedule,
    },
    ["schedules.remove", "removed"],
    ({ adapters }, name) => adapters.schedules.remove(name),
    "No schedule has this name.",
  ),
];
