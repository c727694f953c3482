/**
 * Reads end in time: whoever waits for a page is answered within 5 seconds, also where the database hangs.
 *
 * In Postgres each statement has that deadline as well, and a few connections (storage/dashboard-reads.ts): what was given up here does
 * not pile up there.
 */
import type { Clock } from "../../clock.ts";
import { ApiError } from "../http.ts";
import { asDashboardRead } from "../../operate/index.ts";

export const READ_DEADLINE_MS = 5_000;

/** @throws ApiError 503 when it takes too long; what comes later is dropped. */
export async function inTime<T extends object>(clock: Clock, run: () => Promise<T> | T): Promise<T> {
  const late = Promise.withResolvers<"late">();
  const timer = clock.after(READ_DEADLINE_MS, () => late.resolve("late"), { unref: true });
  const answer = asDashboardRead(async () => run());
  try {
    const first = await Promise.race([answer, late.promise]);
    if (first !== "late") return first;
  } finally {
    timer.cancel();
  }
  const drop = (unread: T): void => {
    // Nobody will read it: an export must not stay open.
    if (unread instanceof Response) void unread.body?.cancel();
  };
  answer.then(drop, () => {});
  throw new ApiError(
    "UNAVAILABLE",
    `The database did not answer within ${READ_DEADLINE_MS / 1_000} s. Try again.`,
    {
      headers: { "retry-after": "1" },
    },
  );
}
