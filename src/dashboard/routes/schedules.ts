/** Schedules: what fires when, and changes by hand that outlive restarts. */
import { integer } from "../query.ts";
import { change, type Route } from "./route.ts";

export const schedulesRoutes: readonly Route[] = [
  {
    method: "GET",
    path: "/schedules",
    id: "listSchedules",
    summary: "Every schedule, with its next run.",
    permission: "view",
    answer: "ScheduleList",
    run: async ({ adapters }) => ({ schedules: await adapters.schedules.list() }),
  },
  {
    method: "GET",
    path: "/schedules/:name/preview",
    id: "previewSchedule",
    summary: "The next runs of a schedule.",
    permission: "view",
    query: ["n"],
    answer: "Preview",
    run: async ({ adapters, path, query }) => ({
      at: await adapters.schedules.preview(
        path["name"] ?? "",
        integer(query, "n", { min: 1, max: 100, or: 20 }),
      ),
    }),
  },
  change(
    {
      method: "PATCH",
      path: "/schedules/:name",
      id: "setSchedule",
      summary: "Changes a schedule; the change survives restarts.",
      permission: "schedules:set",
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
    write: true,
    answer: "Triggered",
    run: async ({ adapters, path, audit }) => {
      const id = await adapters.schedules.trigger(path["name"] ?? "");
      await audit("schedules.trigger", path["name"] ?? "", "triggered", { job: id });
      return { id };
    },
  },
  change(
    {
      method: "DELETE",
      path: "/schedules/:name",
      id: "removeSchedule",
      summary: "Removes a schedule.",
      permission: "schedules:set",
    },
    ["schedules.remove", "removed"],
    ({ adapters }, name) => adapters.schedules.remove(name),
    "No schedule has this name.",
  ),
];
