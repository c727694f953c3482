/**
 * Takes over what dead sessions held: their jobs go through the same `decide` as every other outcome.
 *
 *   its lease passed ───────────────────────────────────▶ lost: its holder may have begun, one crash more
 *   its holder closed it, and then a claim committed ───▶ released: its answer found nobody, nothing has begun
 *
 * Invariants: a job is taken over only while the session that held it is dead, fenced by its token, so two reapers
 * and a slow one do no harm; nothing here depends on the dead worker's rows beyond its session.
 * Not here: when to look. `checkDue` says when an open session ends (worker/claimer.ts); claims that commit after their session was closed
 * are no cost of every look, but found by `over` (upkeep/tasks.ts; lease-client.ts, where no worker runs).
 */
import type { Clock } from "../clock.ts";
import type { AnyJob } from "../jobs/define-job.ts";
import type { Emitter } from "../events.ts";
import type { ClaimedJob } from "../jobs/job.ts";
import type { Logger } from "../logger.ts";
import { decodeFailures } from "../jobs/failure.ts";
import type { Store } from "../storage/store.ts";
import type { Transition } from "../jobs/outcome.ts";
import { decide, policyFor, UNHEARD } from "../jobs/transition.ts";

export interface ReaperDeps {
  readonly store: Pick<Store, "sessions" | "settles">;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
  readonly events: Pick<Emitter, "emit" | "has">;
  /** A definition that this process knows, for limits that the row leaves open. */
  readonly definition: (name: string) => AnyJob | undefined;
}

const page = 500;
// A bound for one call, so that a caller with other work gets its turn; what is left is found by the next look.
const mostPages = 20;

/**
 * Takes over every orphan there is now, and forgets the sessions that hold nothing more.
 *
 * @returns how many jobs were taken over by this call
 * @example
 * const taken = await reapOnce({ store, clock, random, log, events, definition: () => undefined });
 */
export async function reapOnce(deps: ReaperDeps): Promise<number> {
  let taken = 0;
  for (let pages = 0; pages < mostPages; pages++) {
    const orphans = await deps.store.sessions.orphans(page);
    if (orphans.length === 0) break;
    const env = { now: () => deps.clock.now(), random: deps.random };
    const transitions = orphans.map((job) =>
      decide(
        job,
        job.unheard === true ? UNHEARD : { kind: "lost" },
        policyFor(job, deps.definition(job.name) ?? null, null),
        env,
      ),
    );
    const moved = await deps.store.settles.takeOver(transitions);
    taken += moved.size;
    tell(deps, orphans, transitions, moved);
    // Somebody else takes over the same ones, or they came back to life: no use in asking for them again.
    if (moved.size === 0 || orphans.length < page) break;
  }
  // A session stays open until its row is deleted, also one that held nothing: each check would find that it has ended.
  await deps.store.sessions.forgetDead();
  return taken;
}

function tell(
  deps: ReaperDeps,
  orphans: readonly ClaimedJob[],
  transitions: readonly Transition[],
  moved: ReadonlySet<string>,
): void {
  let unheard = 0;
  for (const [i, job] of orphans.entries()) {
    const transition = transitions[i];
    if (transition === undefined || !moved.has(job.id)) continue;
    if (job.unheard === true) {
      unheard += 1;
      continue;
    }
    const dead = transition.move === "end" && transition.state === "dead";
    const crashes = transition.crashes;
    deps.events.emit("job.crashed", {
      id: job.id,
      name: job.name,
      queue: job.queue,
      attempt: job.attempt,
      crashes,
      dead,
    });
    if (!dead) continue;
    const error = decodeFailures(transition.errors).at(-1)?.message ?? "";
    deps.events.emit("job.dead", {
      id: job.id,
      name: job.name,
      queue: job.queue,
      attempt: job.attempt,
      workerId: "",
      error,
      durationMs: 0,
    });
    deps.log.error({ job: job.id, name: job.name, queue: job.queue, crashes }, `job is dead: ${error}`);
  }
  const sessions = [...new Set(orphans.map((job) => job.session))];
  if (unheard > 0)
    deps.log.warn(
      { jobs: unheard, sessions },
      "released jobs of a claim that was committed after its session was closed",
    );
  if (moved.size > unheard)
    deps.log.warn({ jobs: moved.size - unheard, sessions }, "took over jobs of a worker that died");
}
