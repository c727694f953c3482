/**
 * What a diagnosis rests on, as far as a client alone can find it: `holdfast doctor` and the dashboard look through here.
 *
 * Bounded: counts of queues and of overdue jobs stop, and the rest are a handful of rows and the database's own catalogue.
 * It changes nothing. Not here: the verdicts (diagnosis.ts), comparing the schema (storage/admin.ts).
 */
import { MOST_COUNTED } from "../../limits/queue-counts.ts";
import type { Facts } from "./diagnosis.ts";
import { durationMs } from "../../values/duration.ts";
import { type Operated, type Operator, operatorOf } from "../operator.ts";

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
  hf: Operated,
  mostCounted: number = MOST_COUNTED,
): Promise<Pick<Facts, "clock" | "inspection" | "queues" | "workers" | "stuck">> {
  const operator = operatorOf(hf);
  const { store, retry } = operator;
  const [inspection, queues, workers, stuck] = await Promise.all([
    retry.repeatable(() => store.inspect()),
    operator.queues.list({ upTo: mostCounted }),
    operator.workers.list(),
    store.workers.overdueJobs(takeoverMs, MOST_COUNTED),
  ]);
  // Measured last and alone: a connection is open by now, and no other query of ours delays the answer.
  return { clock: await skew(operator), inspection, queues, workers, stuck };
}

async function skew({ env, store }: Operator): Promise<Facts["clock"]> {
  const clock = env.machineClock ?? env.clock;
  const before = clock.now();
  const theirs = await store.now();
  const after = clock.now();
  return { skewMs: (before + after) / 2 - theirs, roundTripMs: after - before };
}
