/**
 * New events of the event log as they arrive, for `holdfast events --follow`.
 *
 * A process gives an event its id and instant, and writes it with its next batch, up to 2 s later. Newer events of other processes
 * may arrive first. So each poll reads the last minute again and returns the ids that it has not seen.
 *
 * Invariants: every event that arrives within a minute of its instant is returned once; events from before the start are not
 * returned; memory holds one minute of ids. Polls take at most a fifth of the time.
 */
import { sleep, systemClock } from "../../clock.ts";
import type { EventLogQuery, Holdfast, LoggedEvent } from "../../index.ts";

const windowMs = 60_000;
const everyMs = 500;
const pageSize = 1_000;

/** Batches of new events, oldest first, until the signal aborts. The first batch is empty; no event after it is missed. */
export async function* newLines(
  hf: Pick<Holdfast, "eventLog">,
  query: Omit<EventLogQuery, "since" | "until" | "limit" | "cursor">,
  signal: AbortSignal,
): AsyncGenerator<readonly LoggedEvent[]> {
  const seen = new Map<string, number>();
  const poll = async (): Promise<LoggedEvent[]> => {
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
  await poll();
  yield [];
  while (!signal.aborted) {
    const began = systemClock.monotonic();
    const fresh = await poll();
    if (fresh.length > 0) yield fresh;
    const took = systemClock.monotonic() - began;
    await sleep(systemClock, Math.max(everyMs, 4 * took), signal).catch(() => undefined);
  }
}
