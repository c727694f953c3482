/**
 * How things stand, and putting them back: what is written with an action that can be taken back (undo.ts), and what
 * taking it back does.
 *
 * Invariant: a standing is JSON, and reading one costs a look at small tables alone, never at jobs.
 */
import { type Changed, isNoteAlone, laneIn, type Standings, type Subject, type Undo } from "./undo.ts";
import { isGroup } from "../../observe/failure-groups.ts";
import type { OverrideTarget } from "../../limits/store.ts";
import {
  budgetStands,
  laneName,
  laneStands,
  putBack as putLimitsBack,
  queueStands,
} from "../../limits/temporary-limits.ts";
import type { Operator } from "../operator.ts";

type Read = { readonly [S in Subject]: (operator: Operator, changed: Changed) => Promise<Standings[S]> };

const readers: Read = {
  queue: async ({ store: { insight } }, { target }) => {
    const row = (await insight.queueRows()).find(({ name }) => name === target);
    if (row === undefined || (row.pausedAt === null && row.drainingAt === null)) return { state: "running" };
    return { state: row.pausedAt === null ? "draining" : "paused" };
  },
  limits: async ({ store }, changed) => {
    const { kind, name } = limitTarget(changed);
    const [values, overrides] = await Promise.all([
      valuesOf({ store }, changed),
      store.temporaryLimits.list({ due: false }),
    ]);
    const held = overrides.find((one) => one.kind === kind && one.name === name);
    return { values, untilAt: held?.untilAt ?? null };
  },
  hold: async (operator, { target }) => {
    const hold = (await operator.holds.list()).find(({ name }) => name === target);
    return hold === undefined ? null : { queues: hold.queues, reason: hold.reason };
  },
  schedule: async (operator, { target }) => {
    const schedule = await operator.schedules.get(target);
    return schedule === null ? null : { paused: schedule.paused };
  },
  words: async (operator, { target }) => {
    const schedule = await operator.schedules.get(target);
    if (schedule === null) return null;
    const { cron, every, timezone, missed, overlap, jitter, edited } = schedule;
    return { cron, every, timezone, missed, overlap, jitter, edited };
  },
  error: async ({ store: { insight } }, { target }) => (isGroup(target) ? insight.decision(target) : null),
  worker: async (operator, { target }) => {
    const worker = (await operator.workers.list()).find(({ id, kind }) => id === target && kind === "worker");
    return worker === undefined ? null : { state: worker.quietAt === null ? "claiming" : "quiet" };
  },
};

/** How the thing that an action is about stands now. */
export function standing(operator: Operator, subject: Subject, changed: Changed): Promise<unknown> {
  return readers[subject](operator, changed);
}

/** Puts back what stood before. */
export async function putBack(operator: Operator, undo: Undo, by: string): Promise<void> {
  const { target } = undo;
  switch (undo.subject) {
    case "queue": {
      // A queue that is paused is not drained: it goes on first.
      if (undo.before.state === "paused") await operator.queues.pause(target);
      else await operator.queues.resume(target);
      if (undo.before.state === "draining") await operator.queues.drain(target);
      return;
    }
    case "limits": {
      const of = limitTarget(undo);
      await putLimitsBack(operator.store, { ...of, back: undo.before.values });
      await operator.store.temporaryLimits.forget(of, null);
      return;
    }
    case "hold": {
      if (undo.before === null) await operator.holds.clear(target);
      else
        await operator.holds.set(target, {
          queues: undo.before.queues ?? undefined,
          reason: undo.before.reason ?? undefined,
        });
      return;
    }
    case "schedule": {
      await operator.schedules[undo.before?.paused === true ? "pause" : "resume"](target);
      return;
    }
    case "words": {
      await operator.schedules.reset(target);
      return;
    }
    case "worker": {
      await operator.workers[undo.before?.state === "quiet" ? "quiet" : "resume"](target);
      return;
    }
    case "error":
      await decideAgain(operator, undo, by);
  }
}

async function decideAgain(
  operator: Operator,
  undo: Extract<Undo, { subject: "error" }>,
  by: string,
): Promise<void> {
  const { target, before } = undo;
  const note = { note: before?.note ?? null, link: before?.link ?? null };
  if (isNoteAlone(undo)) await operator.errors.set(target, note);
  else if (before?.state === "resolved") await operator.errors.resolve(target, { ...note, by });
  else if (before?.state === "ignored")
    await operator.errors.ignore(target, {
      ...note,
      by,
      until: before.untilAt ?? undefined,
      count: before.untilCount ?? undefined,
    });
  else await operator.errors.reopen(target, { ...note, by });
}

const LANE_VALUES = ["concurrency", "rate", "weight", "paused"] as const;

function limitTarget({ action, target }: Changed): OverrideTarget {
  if (action.startsWith("lanes.")) return { kind: "lane", name: laneName(...laneIn(target)) };
  return { kind: action === "queues.set" ? "queue" : "budget", name: target };
}

function valuesOf(
  { store }: Pick<Operator, "store">,
  { action, target, keys }: Changed,
): Promise<Readonly<Record<string, unknown>> | null> {
  if (action === "queues.set") return queueStands(store, target, keys);
  if (action === "lanes.set") return laneStands(store, ...laneIn(target), keys);
  // A reset names no values: it is about all of them.
  if (action.startsWith("lanes.")) return laneStands(store, ...laneIn(target), LANE_VALUES);
  return budgetStands(store, target);
}
