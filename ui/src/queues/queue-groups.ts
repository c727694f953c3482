// Groups queues by the part of their name before the first dot or colon. Pure.
import type { CappedCount, QueueLine } from "../../../src/dashboard/api/contract.ts";

/** A queue, or a group with its sums. */
export interface QueueRow {
  readonly key: string;
  readonly queue: QueueLine;
  /** The queues of the group. */
  readonly members: readonly string[];
  readonly within: boolean;
  readonly group: {
    /** With its separator: "emails.". */
    readonly prefix: string;
    readonly count: number;
    readonly open: boolean;
    /** Unusual states in the group, with counts. */
    readonly notes: string;
  } | null;
}

export function queueRow(queue: QueueLine): QueueRow {
  return { key: queue.name, queue, members: [queue.name], within: false, group: null };
}

/** Prefixes of at least two queues. */
export function prefixesOf(queues: readonly Pick<QueueLine, "name">[]): ReadonlySet<string> {
  const seen = new Map<string, number>();
  for (const { name } of queues) {
    const prefix = prefixOf(name);
    if (prefix !== null) seen.set(prefix, (seen.get(prefix) ?? 0) + 1);
  }
  return new Set([...seen].filter(([, n]) => n > 1).map(([prefix]) => prefix));
}

/** In the given order; a group takes the place of its first queue. */
export function groupedQueues(queues: readonly QueueLine[], folded: readonly string[]): QueueRow[] {
  const prefixes = prefixesOf(queues);
  const rows: QueueRow[] = [];
  const begun = new Set<string>();
  for (const queue of queues) {
    const prefix = prefixOf(queue.name);
    if (prefix === null || !prefixes.has(prefix)) {
      rows.push(queueRow(queue));
      continue;
    }
    if (begun.has(prefix)) continue;
    begun.add(prefix);
    const members = queues.filter(({ name }) => prefixOf(name) === prefix);
    const open = !folded.includes(prefix);
    rows.push({
      key: `${prefix}*`,
      queue: together(prefix, members),
      members: members.map(({ name }) => name),
      within: false,
      group: { prefix, count: members.length, open, notes: notesOf(members) },
    });
    if (open) rows.push(...members.map((one) => ({ ...queueRow(one), within: true })));
  }
  return rows;
}

function prefixOf(name: string): string | null {
  return /^[^.:]+[.:](?=.)/.exec(name)?.[0] ?? null;
}

function together(prefix: string, members: readonly QueueLine[]): QueueLine {
  const sum = (of: (queue: QueueLine) => CappedCount): CappedCount => ({
    count: members.reduce((n, one) => n + of(one).count, 0),
    more: members.some((one) => of(one).more),
  });
  const all = (of: (queue: QueueLine) => number): number => members.reduce((n, one) => n + of(one), 0);
  const oldest = members.flatMap(({ oldestMs }) => oldestMs ?? []);
  return {
    name: `${prefix}*`,
    pausedAt: null,
    drainingAt: null,
    coolUntil: null,
    holds: [],
    breakers: [],
    unserved: [],
    ready: sum(({ ready }) => ready),
    scheduled: sum(({ scheduled }) => scheduled),
    waiting: sum(({ waiting }) => waiting),
    running: all(({ running }) => running),
    concurrency: null,
    rate: null,
    slots: all(({ slots }) => slots),
    // A worker may serve several queues, so only the maximum is certain.
    workers: Math.max(...members.map(({ workers }) => workers)),
    quiet: Math.max(...members.map(({ quiet }) => quiet)),
    oldestMs: oldest.length === 0 ? null : Math.max(...oldest),
  };
}

/** Unusual states with counts. */
export function notesOf(members: readonly QueueLine[]): string {
  const kinds: readonly (readonly [(n: number) => string, (queue: QueueLine) => boolean])[] = [
    [(n) => `${n} paused`, ({ pausedAt }) => pausedAt !== null],
    [(n) => `${n} draining`, ({ drainingAt }) => drainingAt !== null],
    [(n) => `${n} held`, ({ holds }) => holds.length > 0],
    [(n) => `${n} broken`, ({ breakers }) => breakers.length > 0],
    [(n) => `${n} cooling`, ({ coolUntil }) => coolUntil !== null],
    [(n) => `${n} without worker`, ({ unserved }) => unserved.length > 0],
  ];
  return kinds
    .map(([word, is]) => [members.filter(is).length, word] as const)
    .filter(([n]) => n > 0)
    .map(([n, word]) => word(n))
    .join(", ");
}
