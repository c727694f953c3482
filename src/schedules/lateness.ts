/**
 * How late a schedule's job started, and how long it ran, from what is kept of it. Pure.
 *
 * A row has the start of the latest attempt only. When the first one started is known where the job was taken up once,
 * at the time its occurrence gave it; else from its first failure, which has its end and its length. Where neither tells (a worker
 * died, the job slept or was given back), it is not guessed.
 */
import type { FailureRecord } from "../jobs/failure.ts";

/** What is kept of a job that an occurrence made. Instants in epoch milliseconds. */
export interface KeptRun {
  readonly attempt: number;
  readonly crashes: number;
  readonly throttles: number;
  /** When it is or was due: a retry and a sleep move it. */
  readonly runAt: number;
  /** Of the latest attempt. */
  readonly startedAt: number | null;
  readonly endedAt: number | null;
  /** It has steps: it may have slept, and started more often than it has attempts. */
  readonly stepped: boolean;
  /** Oldest first. */
  readonly failures: readonly FailureRecord[];
}

/** From its occurrence to the start of its first attempt; null: not started, or not known. Jitter counts. */
export function lateMsOf(at: number, run: KeptRun, jitterMs: number): number | null {
  const first = firstStart(at, run, jitterMs);
  return first === null ? null : Math.max(0, first - at);
}

/** How long the latest attempt ran; null: it has not ended, or never began. */
export function ranMsOf({ startedAt, endedAt }: Pick<KeptRun, "startedAt" | "endedAt">): number | null {
  return startedAt === null || endedAt === null ? null : Math.max(0, endedAt - startedAt);
}

function firstStart(at: number, run: KeptRun, jitterMs: number): number | null {
  const { attempt, crashes, throttles, runAt, startedAt, stepped, failures } = run;
  if (startedAt === null || throttles > 0 || crashes > 0) return null;
  if (attempt <= 1 && runAt <= at + jitterMs) return startedAt;
  const [first] = failures;
  if (stepped || first?.attempt !== 1 || first.ranMs === undefined) return null;
  return first.at - first.ranMs;
}
