// Actions on a schedule, with their dialogs.
import type { ScheduleLine } from "../../../src/dashboard/api/contract.ts";
import { get, seg, send } from "../data/api.ts";
import { type Query, useQuery } from "../data/live-query.ts";
import { go } from "../data/router.ts";
import { type Action, type Actions, doing } from "../kit/actions.tsx";
import { InfoDialog, showDialog } from "../kit/dialogs.tsx";
import { Backfill } from "./backfill-dialog.tsx";
import { editSchedule, NextOccurrences } from "./schedule-form.tsx";

export function useSchedules(): Query<{ schedules: ScheduleLine[] }> {
  return useQuery("schedules", (signal) => get("/schedules", {}, signal), { topic: "schedules" });
}

/** For its row and its own screen. */
export function actionsOf(schedule: ScheduleLine, again: () => void, removed = again): Actions {
  const { name, paused } = schedule;
  const path = `/schedules/${seg(name)}`;
  const change = { on: name, needs: "schedules:set", then: again } as const;
  return [
    doing({
      verb: "Run now",
      on: name,
      needs: "schedules:trigger",
      icon: "next",
      run: () => send<{ id: string }>("POST", `${path}/trigger`).then(({ id }) => go(`/jobs/${id}`)),
      done: "Job created",
    }),
    {
      verb: "Backfill",
      needs: "schedules:trigger",
      icon: "clock",
      title: "Create jobs for missed occurrences",
      press: () =>
        showDialog(`Backfill ${name}`, (close) => (
          <Backfill schedule={schedule} close={close} again={again} />
        )),
    },
    {
      verb: "Edit",
      needs: "schedules:set",
      icon: "gear",
      press: () => editSchedule(schedule, again),
    },
    doing({
      ...change,
      verb: paused ? "Resume" : "Pause",
      icon: paused ? "play" : "pause",
      run: () => send("POST", `${path}/${paused ? "resume" : "pause"}`),
      undo: () => send("POST", `${path}/${paused ? "pause" : "resume"}`),
      done: paused ? "Schedule resumed" : "Schedule paused",
    }),
    (schedule.edited.length > 0 || schedule.error !== null) &&
      doing({
        ...change,
        verb: "Reset",
        icon: "retry",
        title: "Restore the schedule set in code",
        run: () => send("POST", `${path}/reset`),
        done: "Schedule reset",
      }),
    doing({
      ...change,
      then: removed,
      verb: "Remove",
      danger: true,
      icon: "trash",
      ask: "A worker that defines this schedule adds it again when it starts.",
      run: () => send("DELETE", path),
      done: "Removed",
    }),
  ];
}

/** Hidden on its own screen, which lists them. */
export function nextRuns(schedule: ScheduleLine): Action {
  const { name } = schedule;
  return {
    verb: "Next runs",
    needs: "view",
    icon: "calendar",
    press: () =>
      showDialog(`Next runs of ${name}`, (close) => (
        <InfoDialog title={`Next runs of ${name}`} close={close}>
          <p class="muted small">Time zone: {schedule.timezone ?? "UTC"}</p>
          <NextOccurrences name={name} />
        </InfoDialog>
      )),
  };
}
