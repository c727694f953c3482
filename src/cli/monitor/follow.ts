/**
 * New lines of the event log as they arrive, for `holdfast events --follow`.
 *
 * A line has its id and its instant from the process in which it happened, and comes to the database with that process's next
 * batch, up to 2 s later: after lines of other processes that are newer than it. So what is new is what was not seen before, and
 * not what is newer than the newest: each look goes through the last minute once more.
 *
 * Invariants: every line that arrives within a minute of its instant is given once; lines that were there at the start are not
 * given; what is remembered is one minute of ids. Looks take at most a fifth of the time, however many lines a minute has.
 */
import { sleep, systemClock } from "../../clock.ts";
import type { EventLogQuery, Holdfast, LoggedEvent } from "../../index.ts";

const windowMs = 60_000;
const everyMs = 500;
const pageSize = 1_000;

/** Batches of new lines, the oldest first, until the signal aborts. The first is empty: from then on nothing is missed. */
export async function* newLines(
  hf: Pick<Holdfast, "eventLog">,
  query: Omit<EventLogQuery, "since" | "until" | "limit" | "cursor">,
  signal: AbortSignal,
): AsyncGenerator<readonly LoggedEvent[]> {
  const seen = new Map<string, number>();
  const look = async (): Promise<LoggedEvent[]> => {
    const from = systemClock.now() - windowMs;
    for (const [id, at] of seen) if (at < from) seen.delete(id);
    const fresh: LoggedEvent[] = [];
    let cursor: string | null = null;
    do {
      const page: Awaited<ReturnType<Holdfast["eventLog"]["list"]>> = await hf.eventLog.list({
        ...query,
        since: from,
        limit: pageSize,
        cursor,
      });
      for (const line of page.events)
        if (!seen.has(line.id)) {
          seen.set(line.id, line.at.getTime());
          fresh.push(line);
        }
      ({ cursor } = page);
    } while (cursor !== null && !signal.aborted);
    return fresh.toReversed();
  };
  await look();
  yield [];
  while (!signal.aborted) {
    const began = systemClock.monotonic();
    const fresh = await look();
    if (fresh.length > 0) yield fresh;
    const took = systemClock.monotonic() - began;
    await sleep(systemClock, Math.max(everyMs, 4 * took), signal).catch(() => undefined);
  }
}
