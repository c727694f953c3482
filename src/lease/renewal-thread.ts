/**
 * The thread that keeps one session's lease alive while the main thread is busy. See renewal.ts for the whole.
 *
 * Invariants: at most one renewal is in flight; the instant is taken before the renewal is sent and published only
 * after it succeeded; nothing is renewed while the main thread's tick is older than `maxBlockMs`; no failure ends
 * the thread (it says so and tries again), except one to load at all.
 * Not here: the statement (renew.ts).
 */
import { parentPort, workerData } from "node:worker_threads";
import { systemClock, type Timer } from "../clock.ts";
import { isHoldfastError } from "../errors.ts";
import { describeFailure } from "../jobs/failure.ts";
import { RENEWED, retryMs, type ThreadData, type ThreadMessage, TICK } from "./renewal.ts";
import { openRenewal } from "../storage/open.ts";

type Connection = Awaited<ReturnType<typeof openRenewal>>;

const { target, session, beatMs, maxBlockMs, shared } = workerData as ThreadData;
const instants = new BigInt64Array(shared);
let connection: Connection | undefined;
let timer: Timer | undefined;
let inFlight = false;
let again = false;
let stopped = false;
let blocked = false;
let parked = false;

parentPort?.on("message", (message: "poke" | "park" | "stop") => {
  if (message === "stop") stop();
  else if (message === "park") park();
  else poke();
});
poke();

function say(message: ThreadMessage): void {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a port between threads, not a window
  parentPort?.postMessage(message);
}

function poke(): void {
  if (inFlight) again = true;
  else void beat();
}

function stop(): void {
  stopped = true;
  timer?.cancel();
  if (!inFlight) void leave();
}

// Renews no more and closes nothing: see SqliteDriver on two SQLite libraries in one process.
function park(): void {
  parked = true;
  stopped = true;
  timer?.cancel();
}

async function leave(): Promise<void> {
  if (parked) return;
  await connection?.close().catch(() => undefined);
  // With the port closed nothing keeps the thread: it ends.
  parentPort?.close();
}

async function beat(): Promise<void> {
  timer?.cancel();
  if (stopped) return;
  if (tickIsOld()) {
    // Looked at again soon: a main thread that comes back should find its lease renewed before it settles.
    timer = systemClock.after(retryMs(beatMs) / 2, poke);
    return;
  }
  inFlight = true;
  const sentAt = process.hrtime.bigint();
  let nextMs = beatMs;
  try {
    connection ??= await openRenewal(target);
    const renewal = await connection.renew(session);
    if (renewal.alive) Atomics.store(instants, RENEWED, sentAt);
    else stopped = true;
    say({ kind: "renewed", renewal, sentAt });
  } catch (error) {
    nextMs = retryMs(beatMs);
    const code = isHoldfastError(error) ? error.code : "CONNECTION_LOST";
    const details = isHoldfastError(error) ? { sqlState: error.details["sqlState"] } : {};
    say({ kind: "failed", code, message: describeFailure(error).message, details });
    // A fresh one next time: a connection that failed once may be half-open, and then fails for ever.
    void connection?.close().catch(() => undefined);
    connection = undefined;
  }
  inFlight = false;
  if (stopped) {
    await leave();
    return;
  }
  const tookMs = Number(process.hrtime.bigint() - sentAt) / 1e6;
  timer = systemClock.after(again ? 0 : Math.max(0, nextMs - tookMs), poke);
  again = false;
}

function tickIsOld(): boolean {
  const ageMs = Number(process.hrtime.bigint() - Atomics.load(instants, TICK)) / 1e6;
  if (ageMs <= maxBlockMs) {
    blocked = false;
    return false;
  }
  if (!blocked) say({ kind: "blocked", blockedMs: Math.round(ageMs) });
  blocked = true;
  return true;
}
