/**
 * Failures by cause: how often by the minute, since when, and what was decided about them.
 *
 *   worker (counts in memory) ──every 10 s──▶ failure (cause, minute, queue, version, worker) ──hourly──▶ one row an hour
 *                             └────────────▶ failure_group (cause: first, last, a sample)  ◀── resolve, ignore, reopen, note
 *
 * Invariants: no statement here touches the tables of jobs; a worker's minute is written whole, so that writing it twice is
 * writing it once; what was decided survives the failures that it was about.
 * Not here: which jobs are dead or retrying now (operate/browse-rows.ts), what a decision has come to (failure-decision.ts).
 */
import type { Decision, FailureGroupChange, FailureDecision } from "./failure-decision.ts";
import type { FailuresBy } from "../operate/browse.ts";
import type { FailureGroupRow, FailureRow, FailureStore } from "./store.ts";
import type { Row, RowList, Script } from "../storage/catalogue.ts";
import type { Driver } from "../storage/driver.ts";
import { maybeNumber, maybeText, number, text, unquoted } from "../jobs/rows.ts";

const HOUR = 3_600_000;
export const HOURS_SHOWN = 168;
/** As many groups are looked at. */
export const MOST_GROUPS = 500;
/** As many counts of failures, the newest, are added up by something else than their cause. */
const MOST_COUNTS = 50_000;

/** What is known of a cause besides its jobs. */
export interface KnownGroup extends FailureDecision {
  readonly group: string;
  readonly name: string | null;
  readonly firstAt: number | null;
  readonly lastAt: number | null;
  readonly sample: string | null;
  readonly message: string | null;
  readonly by: string | null;
  readonly note: string | null;
  readonly link: string | null;
  /** Failures since it was decided. */
  readonly since: number;
}

/** How often a cause was met. */
export interface GroupCounts {
  /** In the last hour, by the minute. */
  readonly lastHour: number;
  /** By the hour, oldest first, the current one last: a week. */
  readonly hours: readonly number[];
  readonly places: readonly GroupSource[];
}

/** Failures of one cause in one queue, by the code's version. */
interface GroupSource {
  readonly queue: string;
  readonly version: number;
  readonly n: number;
  /** To the minute, or to the hour after the counts of that hour were added up. */
  readonly firstAt: number;
  readonly lastAt: number;
}

export class FailureRows implements FailureStore {
  readonly #driver: Driver;

  constructor(driver: Driver) {
    this.#driver = driver;
  }

  async put(groups: readonly FailureGroupRow[], rows: readonly FailureRow[]): Promise<void> {
    if (rows.length === 0) return;
    // In the order of their keys: two workers that write the same causes at once must not deadlock.
    const groupsInOrder = [...groups].sort((a, b) => compare(a.group, b.group));
    const rowsInOrder = [...rows].sort(
      (a, b) => compare(a.group, b.group) || a.at - b.at || compare(a.queue, b.queue),
    );
    await this.#driver.transaction("putFailures", function* (): Script<void> {
      yield { name: "putFailureGroups", params: { rows: groupsInOrder.map((row) => ({ ...row })) } };
      yield { name: "putFailures", params: { rows: rowsInOrder.map((row) => ({ ...row })) } };
    });
  }

  /** Those that were decided about, then the latest, up to a bound; with `ids` those alone. */
  async rows(query: { ids: readonly string[] | null; names: readonly string[] | null }): Promise<{
    now: number | null;
    knownGroups: KnownGroup[];
  }> {
    const rows = await this.#driver.read({
      name: "failureGroupRows",
      params: { now: this.#driver.now(), ...query, limit: MOST_GROUPS },
    });
    const counted = rows.filter((row) => row["until_count"] !== null && text(row, "state") === "ignored");
    const since = new Map<string, number>();
    if (counted.length > 0)
      for (const row of await this.#driver.read({
        name: "failuresSince",
        params: { rows: counted.map(sinceRow) },
      }))
        since.set(text(row, "failure_group"), number(row, "n"));
    return {
      now: rows[0] === undefined ? null : number(rows[0], "now"),
      knownGroups: rows.map((row) => knownGroup(row, since.get(text(row, "id")) ?? 0)),
    };
  }

  /** By the hour: of the week, or of the last day with all before it counted in the first hour. */
  async counts(
    ids: readonly string[],
    queues: readonly string[] | null,
    now: number,
    detail: "day" | "week",
  ): Promise<ReadonlyMap<string, GroupCounts>> {
    if (ids.length === 0) return new Map();
    const last = Math.floor(now / HOUR) * HOUR;
    const first = last - (HOURS_SHOWN - 1) * HOUR;
    const fine = detail === "week" ? first : last - 23 * HOUR;
    const [hours, places] = await Promise.all([
      this.#driver.read({
        name: "failureHours",
        params: { ids, queues, since: first, fine, recent: now - HOUR },
      }),
      this.#driver.read({ name: "failureGroupSources", params: { ids } }),
    ]);
    const counts = new Map<
      string,
      { lastHour: number; hours: number[]; places: GroupCounts["places"][number][] }
    >();
    const of = (row: Row) => {
      const id = text(row, "failure_group");
      const known = counts.get(id) ?? {
        lastHour: 0,
        hours: noHours(),
        places: [],
      };
      counts.set(id, known);
      return known;
    };
    for (const row of hours) {
      const known = of(row);
      const at = Math.round((number(row, "hour") - first) / HOUR);
      known.lastHour += number(row, "recent");
      // A process whose clock is ahead may have counted for an hour that is still to come.
      const slot = Math.min(at, HOURS_SHOWN - 1);
      known.hours[slot] = (known.hours[slot] ?? 0) + number(row, "n");
    }
    for (const row of places)
      of(row).places.push({
        queue: text(row, "queue"),
        version: number(row, "version"),
        n: number(row, "n"),
        firstAt: number(row, "first_at"),
        lastAt: number(row, "last_at"),
      });
    return counts;
  }

  /** Failures by something else than their cause: the most first. */
  async by(by: FailuresBy["by"], since: number): Promise<FailuresBy> {
    const rows = await this.#driver.read({
      name: "failuresBy",
      params: { by, since, scan: MOST_COUNTS, limit: by === "hour" ? HOURS_SHOWN + 1 : MOST_GROUPS },
    });
    const lines = rows.map((row) => ({
      value: text(row, "value"),
      name: maybeText(row, "name"),
      failures: number(row, "n"),
      groups: number(row, "groups"),
      lastAt: number(row, "last_at"),
    }));
    // Time goes on: the newest hour first.
    if (by === "hour") lines.sort((a, b) => Number(b.value) - Number(a.value));
    return { by, lines, cut: rows[0] !== undefined && number(rows[0], "walked") >= MOST_COUNTS };
  }

  /** Writes a decision, a note or a link. `name`: whose failures they are, where no worker has told. */
  async set(group: string, name: string | null, change: FailureGroupChange): Promise<void> {
    const driver = this.#driver;
    const now = driver.now();
    await driver.transaction("setFailureGroup", function* (): Script<void> {
      const decision = change.decision ?? null;
      let fromCount: number | null = null;
      if (decision?.state === "ignored" && decision.untilCount !== null) {
        const [clock] = yield { name: "now", params: { now } };
        const at = hourOf(number(clock as Row, "now"));
        const [row] = yield { name: "failuresSince", params: { rows: [{ group, at }] } };
        fromCount = number(row as Row, "n");
      }
      yield {
        name: "setFailureGroup",
        params: {
          now,
          group,
          name,
          decided: decision !== null,
          state: decision?.state ?? "open",
          by: decision?.by ?? null,
          untilAt: decision?.untilAt ?? null,
          untilDelay: decision?.untilDelayMs ?? null,
          untilCount: decision?.untilCount ?? null,
          fromCount,
          noted: change.note !== undefined,
          note: change.note ?? null,
          linked: change.link !== undefined,
          link: change.link ?? null,
        },
      };
    });
  }

  /** An hour that is over becomes one row for each cause, queue and version. Nobody writes to it any more. */
  async compact(since: number, until: number): Promise<number> {
    return this.#driver.transaction("compactFailures", function* (): Script<number> {
      const range = { since, until };
      const rows = yield { name: "failuresOf", params: range };
      const sums = new Map<string, RowList[number]>();
      for (const row of rows) {
        const at = hourOf(number(row, "at"));
        const [group, queue, version] = [
          text(row, "failure_group"),
          text(row, "queue"),
          number(row, "version"),
        ];
        const key = JSON.stringify([group, at, queue, version]);
        const n = number(row, "n") + Number(sums.get(key)?.["n"] ?? 0);
        sums.set(key, { group, at, queue, version, worker: "", n });
      }
      if (sums.size === rows.length) return 0;
      yield { name: "dropFailures", params: range };
      yield { name: "putFailures", params: { rows: [...sums.values()] } };
      return rows.length - sums.size;
    });
  }

  async forget(before: number): Promise<void> {
    await this.#driver.write({ name: "deleteOldFailures", params: { before } });
  }
}

/** Counts since a decision begin with its hour, less what that hour had by then: so they hold when minutes become an hour. */
function sinceRow(row: Row): RowList[number] {
  return { group: text(row, "id"), at: hourOf(number(row, "state_at")) };
}

/** A week in which nothing failed. */
export function noHours(): number[] {
  return Array.from({ length: HOURS_SHOWN }, () => 0);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function hourOf(at: number): number {
  return Math.floor(at / HOUR) * HOUR;
}

function knownGroup(row: Row, sum: number): KnownGroup {
  const message = maybeText(row, "message");
  return {
    group: text(row, "id"),
    name: maybeText(row, "name"),
    firstAt: maybeNumber(row, "first_at"),
    lastAt: maybeNumber(row, "last_at"),
    sample: maybeText(row, "sample"),
    // Kept as a JSON string: an error's text may have what no database takes.
    message: message === null ? null : unquoted(message),
    decision: text(row, "state") as Decision,
    at: maybeNumber(row, "state_at"),
    by: maybeText(row, "state_by"),
    untilAt: maybeNumber(row, "until_at"),
    untilCount: maybeNumber(row, "until_count"),
    note: maybeText(row, "note"),
    link: maybeText(row, "link"),
    since: Math.max(0, sum - (maybeNumber(row, "from_count") ?? 0)),
  };
}
