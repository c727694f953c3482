/**
 * How things stand, and putting them back: what is written with an action that can be taken back (undo.ts), and what
 * taking it back does.
 *
 * Invariant: a standing is JSON, and reading one costs a look at small tables alone, never at jobs.
 */
import { isGroup } from "../../observe/failure-groups.ts";
import {
  budgetStands,
  laneName,
  laneStands,
  putBack as putLimitsBack,
  queueStands,
} from "../../limits/temporary-limits.ts";
import type { Holdfast } from "../../index.ts";
import type { Insight } from "../../operate/browse.ts";
import type { Store } from "../../storage/store.ts";
import type { OverrideTarget } from "../../limits/store.ts";
import { type Changed, isNoteAlone, laneIn, type Standings, type Subject, type Undo } from "./undo.ts";

type Read = { readonly [S in Subject]: (context: Context, changed: Changed) => Promise<Standings[S]> };
interface Context {
  readonly hf: Holdfast;
  readonly store: Store;
  readonly insight: Insight;
}

const readers: Read = {
  queue: async ({ insight }, { target }) => {
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
  hold: async ({ hf }, { target }) => {
    const hold = (await hf.holds.list()).find(({ name }) => name === target);
    return hold === undefined ? null : { queues: hold.queues, reason: hold.reason };
  },
  schedule: async ({ hf }, { target }) => {
    const schedule = await hf.schedules.get(target);
    return schedule === null ? null : { paused: schedule.paused };
  },
  words: async ({ hf }, { target }) => {
    const schedule = await hf.schedules.get(target);
    if (schedule === null) return null;
    const { cron, every, timezone, missed, overlap, jitter, edited } = schedule;
    return { cron, every, timezone, missed, overlap, jitter, edited };
  },
  error: async ({ insight }, { target }) => (isGroup(target) ? insight.decision(target) : null),
  worker: async ({ hf }, { target }) => {
    const worker = (await hf.workers.list()).find(({ id, kind }) => id === target && kind === "worker");
    return worker === undefined ? null : { state: worker.quietAt === null ? "claiming" : "quiet" };
  },
};

/** How the thing that an action is about stands now. */
export function standing(context: Context, subject: Subject, changed: Changed): Promise<unknown> {
  return readers[subject](context, changed);
}

/** Puts back what stood before. */
export async function putBack({ hf, store }: Context, undo: Undo, by: string): Promise<void> {
  const { target } = undo;
  switch (undo.subject) {
    case "queue": {
      // A queue that is paused is not drained: it goes on first.
      if (undo.before.state === "paused") await hf.queues.pause(target);
      else await hf.queues.resume(target);
      if (undo.before.state === "draining") await hf.queues.drain(target);
      return;
    }
    case "limits": {
      const of = limitTarget(undo);
      await putLimitsBack(store, { ...of, back: undo.before.values });
      await store.temporaryLimits.forget(of, null);
      return;
    }
    case "hold": {
      if (undo.before === null) await hf.holds.clear(target);
      else
        await hf.holds.set(target, {
          queues: undo.before.queues ?? undefined,
          reason: undo.before.reason ?? undefined,
        });
      return;
    }
    case "schedule": {
      await hf.schedules[undo.before?.paused === true ? "pause" : "resume"](target);
      return;
    }
    case "words": {
      await hf.schedules.reset(target);
      return;
    }
    case "worker": {
      await hf.workers[undo.before?.state === "quiet" ? "quiet" : "resume"](target);
      return;
    }
    case "error":
      await decideAgain(hf, undo, by);
  }
}

async function decideAgain(
  hf: Context["hf"],
  undo: Extract<Undo, { subject: "error" }>,
  by: string,
): Promise<void> {
  const { target, before } = undo;
  const note = { note: before?.note ?? null, link: before?.link ?? null };
  if (isNoteAlone(undo)) await hf.errors.set(target, note);
  else if (before?.state === "resolved") await hf.errors.resolve(target, { ...note, by });
  else if (before?.state === "ignored")
    await hf.errors.ignore(target, {
      ...note,
      by,
      until: before.untilAt ?? undefined,
      count: before.untilCount ?? undefined,
    });
  else await hf.errors.reopen(target, { ...note, by });
}

const LANE_VALUES = ["concurrency", "rate", "weight", "paused"] as const;

function limitTarget({ action, target }: Changed): OverrideTarget {
  if (action.startsWith("lanes.")) return { kind: "lane", name: laneName(...laneIn(target)) };
  return { kind: action === "queues.set" ? "queue" : "budget", name: target };
}

function valuesOf(
  { store }: Pick<Context, "store">,
  { action, target, keys }: Changed,
): Promise<Readonly<Record<string, unknown>> | null> {
  if (action === "queues.set") return queueStands(store, target, keys);
  if (action === "lanes.set") return laneStands(store, ...laneIn(target), keys);
  // A reset names no values: it is about all of them.
  if (action.startsWith("lanes.")) return laneStands(store, ...laneIn(target), LANE_VALUES);
  return budgetStands(store, target);
}
