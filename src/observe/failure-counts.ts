/**
 * Counts what attempts failed of, by cause and minute, in memory; the recorder writes the minutes down.
 *
 * Invariants: only failures cost anything, and no statement each; a minute is written whole under its worker's name, so that
 * writing it twice is writing it once; of more causes than a minute may have, the rest goes uncounted (the jobs are
 * still found by their own rows).
 * Not here: what makes two failures one cause (jobs/fingerprint.ts), what is decided about it (failure-decision.ts).
 */
import type { ClaimedJob } from "../jobs/job.ts";
import type { FailureGroupRow, FailureRow } from "./store.ts";
import type { Transition } from "../jobs/outcome.ts";

interface Cell extends FailureGroupRow {
  readonly queue: string;
  readonly version: number;
  readonly n: number;
}

/** Distinct messages in one minute are rarely more than a handful; a message that never repeats must not fill the memory. */
const mostGroups = 200;
const mostText = 500;

export class Failures {
  readonly #worker: string;
  readonly #versionOf: (name: string) => number;
  /** By minute, oldest first, then by cause and queue. */
  readonly #minutes = new Map<number, Map<string, Cell>>();
  #dirty = new Set<number>();

  constructor(worker: string, versionOf: (name: string) => number) {
    this.#worker = worker;
    this.#versionOf = versionOf;
  }

  get dirty(): boolean {
    return this.#dirty.size > 0;
  }

  /** An attempt has failed of this, and that is written. */
  add(minute: number, job: ClaimedJob, transition: Transition, message: string, heldMs: number): void {
    const group = "failureGroup" in transition ? transition.failureGroup : undefined;
    if (group === undefined) return;
    let cells = this.#minutes.get(minute);
    if (cells === undefined) this.#minutes.set(minute, (cells = new Map<string, Cell>()));
    const key = `${group}\n${job.queue}`;
    const cell = cells.get(key);
    if (cell === undefined && cells.size >= mostGroups) return;
    // By the database's clock, which a decision is dated by too.
    const at = Math.round(job.startedAt + heldMs);
    this.#dirty.add(minute);
    cells.set(key, {
      group,
      name: job.name,
      queue: job.queue,
      version: this.#versionOf(job.name),
      n: (cell?.n ?? 0) + 1,
      firstAt: Math.min(cell?.firstAt ?? at, at),
      lastAt: Math.max(cell?.lastAt ?? at, at),
      sample: job.id,
      message: JSON.stringify(message.slice(0, mostText)),
    });
  }

  /** What has changed, and a way to say that it could not be written. */
  take(): { groups: FailureGroupRow[]; rows: FailureRow[]; again: () => void } {
    const taken = this.#dirty;
    this.#dirty = new Set();
    const rows: FailureRow[] = [];
    const groups = new Map<string, FailureGroupRow>();
    for (const minute of taken) {
      for (const { queue, version, n, ...group } of this.#minutes.get(minute)?.values() ?? []) {
        rows.push({ group: group.group, at: minute, queue, version, worker: this.#worker, n });
        const known = groups.get(group.group);
        groups.set(group.group, {
          ...group,
          firstAt: Math.min(known?.firstAt ?? group.firstAt, group.firstAt),
          lastAt: Math.max(known?.lastAt ?? group.lastAt, group.lastAt),
        });
      }
    }
    const again = (): void => {
      for (const minute of taken) if (this.#minutes.has(minute)) this.#dirty.add(minute);
    };
    return { groups: [...groups.values()], rows, again };
  }

  /** Forgets minutes before `current` that are written, and all before `oldest`. */
  forget(current: number, oldest: number): void {
    for (const minute of this.#minutes.keys()) {
      if (minute >= oldest && (minute >= current || this.#dirty.has(minute))) continue;
      this.#minutes.delete(minute);
      this.#dirty.delete(minute);
    }
  }
}
