/** Where a job that has not ended stands, for `why`: its lane, its queue's limits, and what was noted when it went back. */
import { parseStarts, type Rate, roomIn } from "../limits/rules/rate-window.ts";
import type { JobPlace } from "./store.ts";
import type { Note } from "../jobs/outcome.ts";
import type { Row } from "../storage/catalogue.ts";
import { limitsOf } from "../limits/limited-claim.ts";
import { limitsOfLane } from "../limits/lane-rows.ts";
import { flag, maybeText, number } from "../jobs/rows.ts";

export function placeOf(row: Row): JobPlace {
  const now = number(row, "now");
  const opensAt = (rate: Rate | null, column: string): number | null => {
    if (rate === null) return null;
    const { room, opensAt: at } = roomIn(parseStarts(maybeText(row, column)), rate, now);
    return room > 0 ? null : at;
  };
  const lane = row["lane_id"] === null ? null : limitsOfLane(row);
  const limited = row["limited"] !== null && flag(row, "limited");
  const limits = limited ? limitsOf(row) : null;
  return {
    now,
    note: noteOf(maybeText(row, "note")),
    lane:
      lane === null
        ? null
        : {
            running: Math.max(0, number(row, "running") - number(row, "back")),
            limits: lane,
            paused: row["paused_at"] !== null,
            opensAt: opensAt(lane.rate, "starts"),
          },
    queue: limited
      ? {
          running: Math.max(0, number(row, "queue_running") + number(row, "uncounted_jobs")),
          concurrency: limits?.concurrency ?? null,
          rate: limits?.rate ?? null,
          opensAt: opensAt(limits?.rate ?? null, "queue_starts"),
          readable: limits !== null,
        }
      : null,
  };
}

function noteOf(text: string | null): Note | null {
  if (text === null) return null;
  try {
    return JSON.parse(text) as Note;
  } catch {
    return null;
  }
}
