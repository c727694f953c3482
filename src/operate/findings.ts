/**
 * What a diagnosis rests on, as far as a client alone can find it: `holdfast doctor` and the dashboard look through here.
 *
 * Bounded: counts of queues and of overdue jobs stop, and the rest are a handful of rows and the database's own catalogue.
 * It changes nothing. Not here: the verdicts (diagnosis.ts), comparing the schema (storage/admin.ts).
 */
import { MOST_COUNTED } from "../limits/queue-counts.ts";
import type { Facts } from "./diagnosis.ts";
import type { Holdfast } from "../holdfast.ts";
import { durationMs } from "../values/duration.ts";

/** A lease, and the seconds that taking over may need. */
const takeoverMs = durationMs("35s", "takeover");

/** What is known before anything was looked at. */
export function noFacts(now: number): Facts {
  return {
    node: process.version,
    applied: [],
    pending: [],
    drift: [],
    movedTo: null,
    clock: null,
    inspection: null,
    refused: null,
    queues: [],
    workers: [],
    stuck: 0,
    now,
  };
}

/** How the database and those who work on it are. */
export async function findings(
  hf: Holdfast,
  mostCounted: number = MOST_COUNTED,
): Promise<Pick<Facts, "clock" | "inspection" | "queues" | "workers" | "stuck">> {
  const [inspection, queues, workers, stuck] = await Promise.all([
    hf.inspect(),
    hf.queues.list({ upTo: mostCounted }),
    hf.workers.list(),
    hf.internals.store.workers.overdueJobs(takeoverMs, MOST_COUNTED),
  ]);
  // Last and alone: a connection is open by now, and nothing of ours is in its way.
  return { clock: await skew(hf), inspection, queues, workers, stuck };
}

async function skew(hf: Holdfast): Promise<Facts["clock"]> {
  const { env } = hf.internals;
  const clock = env.machineClock ?? env.clock;
  const before = clock.now();
  const theirs = await hf.databaseNow();
  const after = clock.now();
  return { skewMs: (before + after) / 2 - theirs, roundTripMs: after - before };
}
