/**
 * Health, readiness and queue latency: small answers for load balancers, orchestrators and autoscalers.
 *
 * Functions over a client, so that any HTTP server can mount them; `holdfast/dashboard` does, below its `/api/v1`, and tells those who
 * bring no token yes or no. None of them throws for a
 * database that is away: that is what they are there to tell.
 * Not here: metrics over time (metrics.ts, prometheus/), what to do about a fault (cli/monitor/doctor-command.ts).
 */
import { systemClock } from "../clock.ts";
import type { Holdfast } from "../holdfast.ts";
import { type Duration, durationMs } from "../values/duration.ts";
import { describeFailure } from "../jobs/failure.ts";

/** What `health` and `readiness` say. */
export interface Health {
  readonly ok: boolean;
  readonly database: {
    readonly ok: boolean;
    /** How long it took to answer. */
    readonly ms: number;
    /** Without addresses or secrets: a code, or a short text. */
    readonly error: string | null;
  };
  /** Of this process. */
  readonly workers: { readonly running: number; readonly stopping: number };
}

/** How far behind the queues are. */
export interface Latency {
  /** Age of the oldest ready job of any of the queues, in milliseconds. */
  readonly lagMs: number;
  /** Ready jobs, counted to 10,000 of a name: at least so many. */
  readonly ready: number;
  readonly running: number;
  readonly queues: readonly {
    readonly queue: string;
    readonly lagMs: number;
    readonly ready: number;
    readonly running: number;
  }[];
}

const defaultTimeout = "2s";
/** So far a name's jobs are counted: a probe that comes every few seconds must not count a million. */
const mostCounted = 10_000;

/**
 * Whether this process is alive and can reach its database: for liveness probes. Never rejects.
 *
 * @example
 * const { ok } = await health(hf);
 * response.writeHead(ok ? 200 : 503).end();
 */
export async function health(
  hf: Holdfast,
  options: { readonly timeout?: Duration | undefined } = {},
): Promise<Health> {
  const database = await ping(hf, durationMs(options.timeout ?? defaultTimeout, "timeout"));
  return { ok: database.ok, database, workers: hf.workersHere() };
}

/**
 * Whether this process should be given work: its database answers, and none of its workers is stopping. Never rejects.
 *
 * @example
 * const { ok } = await readiness(hf);
 */
export async function readiness(
  hf: Holdfast,
  options: { readonly timeout?: Duration | undefined } = {},
): Promise<Health> {
  const state = await health(hf, options);
  return { ...state, ok: state.ok && state.workers.stopping === 0 };
}

/**
 * How long ready jobs have been waiting: the signal to scale by. A job that is due later is no lag, and neither are
 * those of a paused queue, which more workers would not help.
 *
 * @example
 * const { lagMs } = await latency(hf, { queues: ["mail"] });
 * if (lagMs > 30_000) addWorker();
 */
export async function latency(
  hf: Holdfast,
  options: { readonly queues?: readonly string[] | undefined } = {},
): Promise<Latency> {
  const wanted = options.queues === undefined ? null : new Set(options.queues);
  const queues = (await hf.queues.list({ upTo: mostCounted }))
    .filter(({ name }) => wanted === null || wanted.has(name))
    .map(({ name, lagMs, counts, paused }) => ({
      queue: name,
      lagMs: paused ? 0 : lagMs,
      ready: paused ? 0 : counts.ready,
      running: counts.running,
    }));
  return {
    lagMs: Math.max(0, ...queues.map(({ lagMs }) => lagMs)),
    ready: queues.reduce((sum, { ready }) => sum + ready, 0),
    running: queues.reduce((sum, { running }) => sum + running, 0),
    queues,
  };
}

async function ping(hf: Holdfast, timeoutMs: number): Promise<Health["database"]> {
  const startedAt = systemClock.monotonic();
  const spent = (): number => Math.round((systemClock.monotonic() - startedAt) * 10) / 10;
  const late = Promise.withResolvers<"late">();
  const timer = systemClock.after(timeoutMs, () => late.resolve("late"));
  try {
    const answer = await Promise.race([hf.databaseNow(), late.promise]);
    if (answer === "late") return { ok: false, ms: spent(), error: `no answer within ${timeoutMs} ms` };
    return { ok: true, ms: spent(), error: null };
  } catch (error) {
    const { code } = error as { code?: unknown };
    const text = typeof code === "string" ? code : describeFailure(error).message.slice(0, 200);
    return { ok: false, ms: spent(), error: text };
  } finally {
    timer.cancel();
  }
}
