/**
 * Reads for somebody who looks: those that the dashboard makes, told from all others by the call that they are made in.
 *
 * They have a lane of their own (driver.ts), with fewer connections and less time than the client's other reads, so that
 * however many look at however slow a database, enqueues and the jobs' own reads do not wait for them. What a look asks goes through
 * the whole client (schedules, lanes, metrics), so that it is no parameter but where the call comes from.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import type { Lane } from "./driver.ts";

const looks = new AsyncLocalStorage<true>();

/** What is read in here is read for somebody who looks. */
export function asDashboardRead<T>(run: () => T): T {
  return looks.run(true, run);
}

/** The lane of a read that names none. */
export function poolOfRead(): Lane {
  return looks.getStore() === true ? "view" : "general";
}
