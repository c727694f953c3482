/**
 * The verdict: one sentence about everything that an operator can act on, made of parts that may lead somewhere.
 *
 * Pure. The worst thing is said and nothing else: nobody to work, work that nobody can do, what was stopped, what is broken, a
 * backlog that grows, jobs that wait. Not here: the figures (overview.ts, pace.ts).
 */
import type { CappedCount } from "../../operate/browse.ts";
import type { Overview, QueueLine, VerdictPart } from "./contract.ts";
import type { Pace } from "./pace.ts";

/** A ready job that waits longer than this is worth a warning. */
const lateMs = 60_000;
const mostNamed = 3;

type Said = string | VerdictPart;

/** What it judges. */
export interface Standing {
  readonly queues: readonly QueueLine[];
  /** Live ones, and how many of them are quiet. */
  readonly workers: { readonly all: number; readonly quiet: number };
  readonly totals: Pick<Overview["totals"], "ready" | "running">;
  readonly oldestMs: number | null;
  readonly pace: Pace;
}

export function verdict(standing: Standing): Overview["verdict"] {
  return (
    unworked(standing) ??
    unserved(standing) ??
    stopped(standing) ??
    broken(standing) ??
    growing(standing) ??
    late(standing) ??
    good(standing)
  );
}

function unworked({ workers: { all, quiet }, totals }: Standing): Overview["verdict"] | null {
  const { ready } = totals;
  if (ready.count === 0 || quiet < all) return null;
  const waiting: Said[] = [
    link(`${shown(ready)} ready`, "/jobs?state=ready"),
    ready.count === 1 ? " job waits." : " jobs wait.",
  ];
  if (all === 0) return say("bad", link("No worker", "/workers"), " is running, and ", ...waiting);
  const who = all === 1 ? "The one worker" : `All ${all} workers`;
  return say("bad", link(who, "/workers"), ` ${all === 1 ? "is" : "are"} quiet, and `, ...waiting);
}

function unserved({ queues }: Standing): Overview["verdict"] | null {
  const stuck = queues.filter((queue) => queue.unserved.length > 0);
  const [first] = stuck;
  if (first === undefined) return null;
  const rest = `${more(stuck.length - 1)}.`;
  if (first.workers === 0 && first.quiet > 0)
    return say(
      "bad",
      link("The workers", "/workers"),
      " of queue ",
      queueLink(first.name),
      ` are quiet, and jobs wait${rest}`,
    );
  const names = first.unserved.slice(0, mostNamed).join(", ");
  return say(
    "bad",
    link("No worker", "/workers"),
    ` serves ${names}${more(first.unserved.length - mostNamed)} in queue `,
    queueLink(first.name),
    rest,
  );
}

function stopped({ queues }: Standing): Overview["verdict"] | null {
  const those = queues.filter(
    (queue) => queue.ready.count > 0 && (queue.pausedAt !== null || queue.holds.length > 0),
  );
  if (those.length === 0) return null;
  const how = ({ pausedAt, holds }: QueueLine): string =>
    [pausedAt === null ? "" : "paused", holds.length === 0 ? "" : "held"]
      .filter((word) => word !== "")
      .join(" and ");
  const named = those.slice(0, mostNamed);
  // Each with its own word, where they are not stopped alike.
  const runs = [...Map.groupBy(named, how)];
  return say(
    "warn",
    ...runs.flatMap(([word, some], i): Said[] => [
      i === 0 ? "" : ", ",
      ...listed(some.map(({ name }) => queueLink(name))),
      ` ${some.length === 1 ? "is" : "are"} ${word}`,
    ]),
    `${more(those.length - named.length)}${runs.length > 1 ? ", all" : ""} with jobs waiting.`,
  );
}

function broken({ queues }: Standing): Overview["verdict"] | null {
  const those = queues.filter((queue) => queue.ready.count > 0 && queue.breakers.length > 0);
  const [first] = those;
  if (first === undefined) return null;
  return say(
    "warn",
    "The breaker ",
    link(first.breakers[0] ?? "", "/limits"),
    " is open, and jobs of ",
    queueLink(first.name),
    ` wait${more(those.length - 1)}.`,
  );
}

function growing({ pace: { growth }, totals, oldestMs, workers }: Standing): Overview["verdict"] | null {
  // Worked off since then.
  if (growth === null || totals.ready.count <= growth.from) return null;
  return say(
    "warn",
    "Backlog growing: ",
    ...(growth.queue === null ? [] : [queueLink(growth.queue), ", "]),
    link(`${number(growth.more)} more ready`, "/jobs?state=ready"),
    ` in ${age(growth.overMs)}, `,
    ...(oldestMs === null ? [] : [`oldest ${age(oldestMs)}, `]),
    crew(workers),
    ".",
  );
}

function late({ oldestMs }: Standing): Overview["verdict"] | null {
  if (oldestMs === null || oldestMs <= lateMs) return null;
  return say(
    "warn",
    "Jobs wait: ",
    link("the oldest ready one", "/jobs?state=ready"),
    ` for ${age(oldestMs)}.`,
  );
}

function good({ workers, totals, oldestMs, pace }: Standing): Overview["verdict"] {
  const rate = pace.perMinute ?? 0;
  const ready = totals.ready.count > 0;
  const idle = !ready && totals.running === 0;
  if (idle && workers.all === 0) return say("idle", "Nothing to do, and no worker is running.");
  return say(
    "good",
    "Healthy: ",
    // A minute tells when it is over: until then what runs is said.
    ...(rate > 0
      ? [link(`${number(rate)} ${rate === 1 ? "job" : "jobs"}/min`, "/jobs?state=done"), ", "]
      : totals.running > 0
        ? [link(`${number(totals.running)} running`, "/jobs?state=running"), ", "]
        : []),
    ...(ready
      ? [link("oldest ready job", "/jobs?state=ready"), ` ${age(oldestMs ?? 0)}, `]
      : ["nothing waits, "]),
    crew(workers),
    idle && rate === 0 ? " ready." : ".",
  );
}

/** Those that take jobs. */
function crew({ all, quiet }: Standing["workers"]): VerdictPart {
  return link(`${number(all - quiet)} ${all - quiet === 1 ? "worker" : "workers"}`, "/workers");
}

function say(level: Overview["verdict"]["level"], ...said: readonly Said[]): Overview["verdict"] {
  const parts: VerdictPart[] = [];
  for (const one of said) {
    const part = typeof one === "string" ? { text: one, to: null } : one;
    const before = parts.at(-1);
    if (part.text === "") continue;
    if (part.to === null && before?.to === null)
      parts[parts.length - 1] = { text: before.text + part.text, to: null };
    else parts.push(part);
  }
  return { level, text: parts.map(({ text }) => text).join(""), parts };
}

function link(text: string, to: string): VerdictPart {
  return { text, to };
}

function queueLink(name: string): VerdictPart {
  return link(name, `/queues/${encodeURIComponent(name)}`);
}

function listed(parts: readonly VerdictPart[]): Said[] {
  return parts.flatMap((part, i): Said[] => (i === 0 ? [part] : [", ", part]));
}

function more(n: number): string {
  return n > 0 ? ` (and ${n} more)` : "";
}

function shown({ count, more: further }: CappedCount): string {
  return `${number(count)}${further ? "+" : ""}`;
}

function number(n: number): string {
  return n.toLocaleString("en");
}

function age(ms: number): string {
  if (ms < 10_000) return `${(Math.max(0, ms) / 1_000).toFixed(1)} s`;
  if (ms < 120_000) return `${Math.round(ms / 1_000)} s`;
  if (ms < 7_200_000) return `${Math.round(ms / 60_000)} min`;
  return ms < 172_800_000 ? `${Math.round(ms / 3_600_000)} h` : `${Math.round(ms / 86_400_000)} days`;
}
