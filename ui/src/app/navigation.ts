// The entries of the menu, with their keys and counts.
import { may, overview } from "../data/live-stream.ts";
import { count, number } from "../kit/format.ts";
import type { IconName } from "../kit/icons.tsx";

interface MenuEntry {
  readonly path: string;
  readonly name: string;
  readonly icon: IconName;
  readonly key: string;
  readonly tail?: () => { text: string; of?: string; bad?: boolean } | null;
  readonly shown?: () => boolean;
}

export const groups: readonly { name: string; entries: readonly MenuEntry[] }[] = [
  {
    name: "Work",
    entries: [
      { path: "/", name: "Overview", icon: "overview", key: "o" },
      {
        path: "/jobs",
        name: "Jobs",
        icon: "jobs",
        key: "j",
        tail: () => tail(overview.value?.totals.running, (n) => `${n} running`),
      },
      { path: "/workflows", name: "Workflows", icon: "step", key: "w" },
      { path: "/batches", name: "Batches", icon: "layers", key: "b" },
      { path: "/scheduled", name: "Scheduled", icon: "clock", key: "u", tail: () => capped("scheduled") },
      { path: "/retries", name: "Retries", icon: "retry", key: "r", tail: () => capped("retrying") },
      { path: "/errors", name: "Failures", icon: "dead", key: "f", tail: () => capped("dead", true) },
    ],
  },
  {
    name: "Machine",
    entries: [
      {
        path: "/queues",
        name: "Queues",
        icon: "queues",
        key: "q",
        tail: () => tail(overview.value?.queueCount),
      },
      { path: "/schedules", name: "Schedules", icon: "calendar", key: "s" },
      {
        path: "/workers",
        name: "Workers",
        icon: "workers",
        key: "k",
        tail: () => tail(overview.value?.workers),
      },
      {
        path: "/limits",
        name: "Limits",
        icon: "limits",
        key: "l",
        tail: () => tail(overview.value?.holds || undefined),
      },
      { path: "/database", name: "Database", icon: "database", key: "d" },
      { path: "/operations", name: "Operations", icon: "columns", key: "p" },
      { path: "/audit", name: "Audit", icon: "audit", key: "a", shown: () => may("audit:view") },
    ],
  },
];
export const entries = groups.flatMap((group) => group.entries);

/** `of`: the count with its unit, if the entry's name does not say it. */
function tail(n: number | undefined, of?: (n: string) => string): { text: string; of?: string } | null {
  if (n === undefined) return null;
  return of === undefined ? { text: number(n) } : { text: number(n), of: of(number(n)) };
}

function capped(of: "scheduled" | "retrying" | "dead", bad = false): { text: string; bad?: boolean } | null {
  const total = overview.value?.totals[of];
  if (total === undefined || (total.count === 0 && !total.more)) return null;
  return { text: count(total), bad };
}

export function menuEntryOf(at: string): MenuEntry | undefined {
  const first = `/${at.split("/")[1] ?? ""}`;
  return entries.find((entry) => entry.path === first);
}
