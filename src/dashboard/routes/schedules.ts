/** Schedules: what fires when, and changes by hand that outlive restarts. */
import type { JobSummary } from "../../operate/browse.ts";
import {
  BackfillAnswer,
  Calendar,
  Preview,
  ScheduleHistory,
  ScheduleList,
  ScheduleRuns,
  TimingPreview,
  Triggered,
} from "../api/contract.ts";
import { duration, flag, instant, integer, object, oneOf, text, within } from "../api/schema.ts";
import { previewTiming, readSchedules, runLine } from "../api/schedule-lines.ts";
import { localOccurrences } from "../../operate/index.ts";
import { change, type Route, visible, route } from "./route.ts";
import { about } from "./targets.ts";

const mostSchedules = 200;
const batchSize = 500;

export const schedulesRoutes: readonly Route[] = [
  route({
    method: "GET",
    path: "/schedules",
    id: "listSchedules",
    summary: "Every schedule, with its next run.",
    permission: "view",
    about: about.all("schedule"),
    answer: ScheduleList,
    run: async ({ hf, store }) => ({ schedules: await readSchedules(hf, store) }),
  }),
  route({
    method: "GET",
    path: "/schedules/:name/preview",
    id: "previewSchedule",
    summary: "The next runs of a schedule.",
    permission: "view",
    about: about.schedule,
    query: object({ n: within(1, 100, 20) }),
    answer: Preview,
    run: async ({ hf: { schedules }, operator, path, query: { n } }) => {
      const name = path["name"] ?? "";
      const [state, occurrences] = await Promise.all([schedules.get(name), schedules.preview(name, n)]);
      const zone = state === null || state.cron === null ? "UTC" : (state.timezone ?? "UTC");
      const at = occurrences.map((occurrence) => occurrence.getTime());
      return { at, runs: localOccurrences(at, zone, operator.env.clock.now()) };
    },
  }),
  route({
    method: "GET",
    path: "/schedules/preview",
    id: "previewTiming",
    summary:
      "The next runs of an unsaved timing: `cron` with `timezone`, or `every`; at most 20. `error` has its problem.",
    permission: "view",
    about: about.all("schedule"),
    query: object({ n: within(1, 20, 5) }, { cron: text, every: text, timezone: text }),
    answer: TimingPreview,
    run: ({ hf, operator, query: { n, ...timing } }) => previewTiming(hf, operator, timing, n),
  }),
  route({
    method: "GET",
    path: "/schedules/calendar",
    id: "scheduleCalendar",
    summary: "The number of occurrences of each schedule in each quarter of an hour of the next 24 hours.",
    permission: "view",
    about: about.all("schedule"),
    answer: Calendar,
    run: async ({ hf }) => {
      const { from, pieces, ...rest } = await hf.schedules.calendar();
      return {
        ...rest,
        from: from.getTime(),
        pieces: pieces.map(({ count, schedules }) => ({ count, most: schedules.slice(0, 5) })),
      };
    },
  }),
  route({
    method: "GET",
    path: "/schedules/runs",
    id: "scheduleRuns",
    summary: "The newest jobs of each schedule, at most 20, with their states.",
    permission: "view",
    about: about.all("schedule"),
    answer: ScheduleRuns,
    run: async ({ hf, insight }) => {
      const made = (await hf.schedules.list()).slice(0, mostSchedules);
      const ids = made.flatMap(({ recent }) => recent.map(({ jobId }) => jobId));
      const found = new Map<string, JobSummary>();
      for (let from = 0; from < ids.length; from += batchSize) {
        const chunk = ids.slice(from, from + batchSize);
        const page = await insight.browse({ ids: chunk }, { limit: chunk.length, cursor: null });
        for (const job of page.jobs) found.set(job.id, job);
      }
      return {
        runs: Object.fromEntries(
          made.map(({ name, recent }) => [
            name,
            recent.map(({ jobId, at }) => {
              const job = found.get(jobId);
              const started = job?.startedAt ?? null;
              const ended = job?.endedAt ?? null;
              return {
                id: jobId,
                at: at.getTime(),
                state: job?.state ?? null,
                // Of what was retried only the latest start is in the list.
                lateMs:
                  started === null || (job?.attempt ?? 0) > 1 ? null : Math.max(0, started - at.getTime()),
                ranMs: started === null || ended === null ? null : Math.max(0, ended - started),
              };
            }),
          ]),
        ),
      };
    },
  }),
  route({
    method: "GET",
    path: "/schedules/:name/runs",
    id: "scheduleHistory",
    summary: "The runs of a schedule, newest first, with lateness, duration and state.",
    permission: "view",
    about: about.schedule,
    query: object({ limit: within(1, 500, 100) }),
    answer: ScheduleHistory,
    run: async (context) => {
      const { hf, path, query } = context;
      const runs = (await hf.schedules.runs(path["name"] ?? "", query)).map(runLine);
      // The schedule may have made jobs in another queue before, and jobs can be moved.
      const ids = runs.map(({ jobId }) => jobId);
      const see = await visible(context, ids);
      return { runs: runs.filter(({ jobId }) => see(jobId)) };
    },
  }),
  change(
    {
      method: "PATCH",
      path: "/schedules/:name",
      id: "setSchedule",
      summary: "Changes a schedule; the change survives restarts.",
      permission: "schedules:set",
      about: about.schedule,
      body: object(
        {},
        {
          cron: text,
          every: duration,
          timezone: text,
          missed: oneOf("skip", "one", "all"),
          overlap: oneOf("allow", "skip", "queue"),
          jitter: duration,
        },
      ),
    },
    ["schedules.set", "set"],
    ({ hf, body }, name) => hf.schedules.edit(name, body),
  ),
  ...(["pause", "resume", "reset"] as const).map((verb) =>
    change(
      {
        method: "POST",
        path: `/schedules/:name/${verb}`,
        id: `${verb}Schedule`,
        summary: {
          pause: "Pauses a schedule.",
          resume: "Resumes a schedule.",
          reset: "Restores the code's definition of a schedule and clears a fault.",
        }[verb],
        permission: "schedules:set",
        about: about.schedule,
      },
      [`schedules.${verb}`, { pause: "paused", resume: "resumed", reset: "reset" }[verb]],
      ({ hf }, name) => hf.schedules[verb](name),
    ),
  ),
  route({
    method: "POST",
    path: "/schedules/:name/trigger",
    id: "triggerSchedule",
    summary: "Enqueues the job of a schedule now.",
    permission: "schedules:trigger",
    about: about.schedule,
    write: true,
    answer: Triggered,
    run: async ({ hf, path, audit }) => {
      const { id } = await hf.schedules.trigger(path["name"] ?? "");
      await audit("schedules.trigger", path["name"] ?? "", "triggered", { job: id });
      return { id };
    },
  }),
  route({
    method: "POST",
    path: "/schedules/:name/backfill",
    id: "backfillSchedule",
    summary:
      "Makes jobs for past occurrences without one, oldest first, at most `limit`. With `dryRun: true` it only lists them.",
    permission: "schedules:trigger",
    about: about.schedule,
    write: true,
    body: object({ from: instant }, { to: instant, limit: integer, dryRun: flag }),
    answer: BackfillAnswer,
    run: async ({ hf, path, body, audit }) => {
      const { dryRun = false, ...range } = body;
      const { name = "" } = path;
      const { occurrences, ...rest } = await hf.schedules.backfill(name, { ...range, dryRun });
      const { from, to } = range;
      if (!dryRun) await audit("schedules.backfill", name, `${occurrences.length} made`, { from, to });
      return {
        ...rest,
        dryRun,
        occurrences: occurrences.map((occurrence) => ({ ...occurrence, at: occurrence.at.getTime() })),
      };
    },
  }),
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
    ({ hf }, name) => hf.schedules.remove(name),
    "No schedule has this name.",
  ),
];
