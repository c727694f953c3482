/**
 * Passes in the database: one row each, with the flag that says whether the latest one ended clean.
 *
 *   begin ──▶ clean = false, held by this run ──end (clean)──▶ clean = true
 *                      │                       └─ error, limit, abort ──▶ stays false
 *                      └── its process dies: the hold passes, the next one takes over and is told to recover
 *
 * The holder's name is new for each run, so one that was taken over changes nothing any more. It stays in the row when the run has
 * ended, so that a begin or an end that is sent again, or comes late, finds its own run and makes no other.
 */
import type { PassStore, PassRow, PassStart } from "./store.ts";
import type { Row, Script } from "../storage/catalogue.ts";
import type { Driver } from "../storage/driver.ts";
import { flag, maybeNumber, maybeText, number, text } from "../jobs/rows.ts";

export class Passes implements PassStore {
  readonly #driver: Driver;

  constructor(driver: Driver) {
    this.#driver = driver;
  }

  async list(): Promise<PassRow[]> {
    return (await this.#driver.read({ name: "passRows", params: { now: this.#driver.now() } })).map(passRow);
  }

  begin(name: string, holder: string, leaseMs: number): Promise<PassStart> {
    const now = this.#driver.now();
    return this.#driver.transaction("beginPass", function* (): Script<PassStart> {
      const find = { name: "lockPass", params: { now, name } } as const;
      let [row] = yield find;
      if (row === undefined) {
        yield { name: "addPass", params: { name } };
        [row] = yield find;
      }
      const before = passRow(row as Row);
      // Sent again, because the answer was lost.
      if (maybeText(row as Row, "holder") === holder) {
        if (before.endedAt === null)
          yield set(name, { ...columns(row as Row), heldUntil: before.now + leaseMs });
        return { held: false, recovery: before.reason !== null || before.runs === 1, run: before.runs };
      }
      if (before.heldUntil !== null && before.heldUntil > before.now)
        return { held: true, heldUntil: before.heldUntil };
      const run = before.runs + 1;
      yield set(name, {
        clean: false,
        holder,
        heldUntil: before.now + leaseMs,
        runs: run,
        startedAt: before.now,
        endedAt: null,
        // A run that never ended leaves no reason; the next one still is a recovery, also when its begin is sent twice.
        reason: before.clean || before.runs === 0 ? null : (before.reason ?? "it did not reach its end"),
      });
      return { held: false, recovery: !before.clean || run === 1, run };
    });
  }

  renew(name: string, holder: string, leaseMs: number): Promise<boolean> {
    return this.#asHolder(name, holder, (row) =>
      row["ended_at"] === null ? { ...columns(row), heldUntil: number(row, "now") + leaseMs } : null,
    );
  }

  end(name: string, holder: string, clean: boolean, reason: string | null): Promise<boolean> {
    return this.#asHolder(name, holder, (row) => ({
      ...columns(row),
      clean,
      heldUntil: null,
      endedAt: maybeNumber(row, "ended_at") ?? number(row, "now"),
      reason: clean ? null : (reason ?? "it did not reach its end"),
    }));
  }

  #asHolder(name: string, holder: string, change: (row: Row) => Columns | null): Promise<boolean> {
    const now = this.#driver.now();
    return this.#driver.transaction("changePass", function* (): Script<boolean> {
      const [row] = yield { name: "lockPass", params: { now, name } };
      if (row === undefined || maybeText(row, "holder") !== holder) return false;
      const changed = change(row);
      if (changed !== null) yield set(name, changed);
      return changed !== null;
    });
  }
}

interface Columns {
  readonly clean: boolean;
  readonly holder: string | null;
  readonly heldUntil: number | null;
  readonly runs: number;
  readonly startedAt: number | null;
  readonly endedAt: number | null;
  readonly reason: string | null;
}

function set(name: string, to: Columns) {
  return { name: "setPass", params: { name, ...to } } as const;
}

function columns(row: Row): Columns {
  const { clean, heldUntil, runs, startedAt, endedAt, reason } = passRow(row);
  return { clean, holder: maybeText(row, "holder"), heldUntil, runs, startedAt, endedAt, reason };
}

function passRow(row: Row): PassRow {
  return {
    name: text(row, "name"),
    clean: flag(row, "clean"),
    runs: number(row, "runs"),
    heldUntil: maybeNumber(row, "held_until"),
    startedAt: maybeNumber(row, "started_at"),
    endedAt: maybeNumber(row, "ended_at"),
    reason: maybeText(row, "reason"),
    now: number(row, "now"),
  };
}
