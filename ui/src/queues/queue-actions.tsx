// Actions on a queue, for its row and its own screen.
import type { QueueDetail, QueueLine } from "../../../src/dashboard/api/contract.ts";
import { type Action, type Actions, doing } from "../kit/actions.tsx";
import { get, seg, send } from "../data/api.ts";
import { startBulk } from "../operations/bulk-dialog.tsx";
import { toast, type Undo } from "../kit/toasts.tsx";

type Pausable = Pick<QueueLine, "name" | "pausedAt" | "drainingAt">;

/** A draining queue can be resumed, or paused at once. */
export function pausing(queue: Pausable, again: () => void): Actions {
  const { name, pausedAt, drainingAt } = queue;
  const change = (action: "pause" | "resume"): Action =>
    doing({
      verb: action === "pause" ? "Pause" : "Resume",
      on: name,
      needs: "queues:pause",
      icon: action === "pause" ? "pause" : "play",
      run: () => send("POST", `/queues/${seg(name)}/${action}`),
      undo: restoring(queue),
      done: action === "pause" ? `${name} paused` : `${name} resumed`,
      then: again,
    });
  return [
    pausedAt === null && drainingAt === null && draining(queue, again),
    (pausedAt !== null || drainingAt !== null) && change("resume"),
    pausedAt === null && change("pause"),
  ];
}

/** A paused queue cannot drain, so it is resumed first. */
function restoring({ name, pausedAt, drainingAt }: Pausable): Undo {
  const post = (action: string) => send("POST", `/queues/${seg(name)}/${action}`);
  if (pausedAt !== null) return () => post("pause");
  return () => post("resume").then(() => drainingAt !== null && post("drain"));
}

function draining(queue: Pausable, again: () => void): Action {
  const { name } = queue;
  return doing({
    verb: "Drain",
    on: name,
    needs: "queues:pause",
    icon: "drain",
    title: "Run the remaining jobs, then pause",
    ask: (
      <p>
        Runs all due jobs, then pauses the queue. Jobs that become due meanwhile still run. Scheduled jobs,
        retries and waiting runs stay. Resume ends the drain.
      </p>
    ),
    run: () => send("POST", `/queues/${seg(name)}/drain`),
    undo: restoring(queue),
    done: `${name} is draining`,
    then: again,
  });
}

export function purging(queue: QueueLine, again: () => void): Action | false {
  const some = [queue.ready, queue.scheduled, queue.waiting].some(({ count, more }) => count > 0 || more);
  return (
    some && {
      verb: "Purge",
      needs: "jobs:delete",
      danger: true,
      icon: "trash",
      title: "Delete jobs that have not started",
      press: () =>
        startBulk("purge", { state: ["ready", "scheduled", "waiting"], queue: [queue.name] }, again),
    }
  );
}

export function retryDead(queue: string, again: () => void): void {
  startBulk("retry", { state: ["dead"], queue: [queue] }, again);
}

/** The form loads with the queue's screen, or on first use. */
function editSettings(queue: string, again: () => void): void {
  Promise.all([import("./settings-form.tsx"), get<QueueDetail>(`/queues/${seg(queue)}`)]).then(
    ([{ settingsForm }, detail]) => settingsForm(detail, again),
    (error: unknown) => toast(error instanceof Error ? error.message : String(error), "bad"),
  );
}

export function queueActions(queue: QueueLine, again: () => void): Actions {
  return [
    ...pausing(queue, again),
    {
      verb: "Settings",
      needs: "queues:set",
      icon: "gear",
      title: "Concurrency, rate, slots and more",
      press: () => editSettings(queue.name, again),
    },
    {
      verb: "Retry dead",
      needs: "jobs:retry",
      icon: "retry",
      press: () => retryDead(queue.name, again),
    },
    purging(queue, again),
  ];
}
