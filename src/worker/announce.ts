/**
 * What a worker tells the database when it starts: the job types that it serves, its schedules, its release.
 *
 * Invariant: only a schedule that can never be put ends the worker; the rest is tried again, or left out.
 */
import { type Clock, sleep } from "../clock.ts";
import type { AnyJob } from "../jobs/define-job.ts";
import { describeFailure } from "../jobs/failure.ts";
import type { Logger } from "../logger.ts";
import type { Schedule } from "../schedules/define-schedule.ts";
import { pauseMs } from "../storage/patience.ts";
import type { Store } from "../storage/store.ts";
import { troubleOf } from "../storage/trouble.ts";

export interface AnnounceDeps {
  readonly store: Pick<Store, "definitions" | "series" | "sessions">;
  readonly clock: Clock;
  readonly log: Logger;
  readonly workerId: string;
  readonly scheduling?: { readonly put: (schedule: Schedule) => Promise<unknown> };
  readonly stopping: () => boolean;
  /** A fault that no waiting can mend. */
  readonly fail: (error: unknown, during: string) => void;
}

const putAgainMs = 1_000;

/**
 * Registers the needs of these job names, again and again until the database knows them: an enqueue by name is checked for them, and
 * their lanes get their limits. No job is claimed before that, because a lane without its limit would give too many.
 */
export async function registerNames(
  deps: AnnounceDeps,
  definitions: ReadonlyMap<string, AnyJob>,
): Promise<void> {
  const { store, clock, log, workerId, stopping } = deps;
  const needs = [...definitions.values()].map(({ name, unique, lane, machine, lanes, budget }) => {
    const isMachine = (machine ?? null) !== null;
    return [
      name,
      { unique: unique !== null, lane: lane !== null, machine: isMachine, lanes, budget },
    ] as const;
  });
  for (let tries = 0; ; tries += 1) {
    try {
      return await store.definitions.register(new Map(needs));
    } catch (error) {
      const again = troubleOf(error) !== "permanent" && !stopping();
      const details = { worker: workerId, tries: tries + 1, error: describeFailure(error).message };
      const message = `the job names could not be registered${again ? "; retrying" : ""}; an enqueue by name is not checked until then`;
      // Not each time, or an hour without the database would fill the log.
      if (!again || (tries & (tries + 1)) === 0) log.warn(details, message);
      if (!again) return;
      await sleep(clock, pauseMs(tries));
    }
  }
}

/** Resolves to false when the worker is to end: it was stopped, or one of them can never be put. */
export async function putSchedules(deps: AnnounceDeps, schedules: readonly Schedule[]): Promise<boolean> {
  for (const schedule of schedules) while (!deps.stopping() && !(await isPut(deps, schedule)));
  return !deps.stopping();
}

/**
 * After a failover to a replica that lagged, the database may know neither the worker's lost session nor what the worker announced: an
 * enqueue by name would not be checked, and its schedules would not fire. Where the session merely expired, nothing is announced: a
 * schedule that an operator has removed must not come back. Resolves to true when it announced again.
 */
export async function announceAgain(
  deps: AnnounceDeps,
  definitions: ReadonlyMap<string, AnyJob>,
  schedules: readonly Schedule[],
  lostSession: number,
): Promise<boolean> {
  const { store, clock, stopping } = deps;
  for (let tries = 0; !stopping(); tries += 1) {
    try {
      if (await store.sessions.isKnown(lostSession)) return false;
      await registerNames(deps, definitions);
      return await putSchedules(deps, schedules);
    } catch (error) {
      if (troubleOf(error) === "permanent") return false;
      await sleep(clock, pauseMs(tries));
    }
  }
  return false;
}

async function isPut(deps: AnnounceDeps, schedule: Schedule): Promise<boolean> {
  const { clock, log, workerId, scheduling, stopping, fail } = deps;
  try {
    await scheduling?.put(schedule);
    return true;
  } catch (error) {
    const during = `putting the schedule ${schedule.name}`;
    if (stopping()) return false;
    if (troubleOf(error) === "permanent") {
      fail(error, during);
      return false;
    }
    log.warn({ worker: workerId, error: describeFailure(error).message }, `${during} failed; retrying`);
    await sleep(clock, putAgainMs);
    return false;
  }
}

/** One value for the minute in which a worker of this build starts: charts find the first. Nothing waits for it. */
export function markRelease(
  { store, clock, log }: Pick<AnnounceDeps, "store" | "clock" | "log">,
  release: string,
): void {
  const minute = Math.floor(clock.now() / 60_000) * 60_000;
  store.series.putGauges([{ minute, source: release, name: "release", value: 1 }]).catch((error: unknown) => {
    log.debug({ error: describeFailure(error).message }, "the start of the release could not be recorded");
  });
}
