/** Breakers as rows: read, counted under their locks, probed by one session at a time. The rule is in limits/rules/breaker-rule.ts. */
import { CLOSED, type Circuit, standingOf, tally } from "./rules/breaker-rule.ts";
import type { BreakerStore, BreakerCount, BreakerState, CountedBreaker } from "./store.ts";
import type { Row, Script } from "../storage/catalogue.ts";
import type { Driver } from "../storage/driver.ts";
import type { Wake } from "../storage/wake.ts";
import { flag, maybeNumber, maybeText, number, text } from "../jobs/rows.ts";

/** Batches that a breaker remembers, so that none is counted twice: each has a failure at least, and after some it is open. */
const mostBatches = 32;

export class Breakers implements BreakerStore {
  readonly #driver: Driver;
  readonly #wake: (wake: Wake) => void;

  constructor(driver: Driver, wake: (wake: Wake) => void) {
    this.#driver = driver;
    this.#wake = wake;
  }

  async list(keys: readonly string[] | null): Promise<BreakerState[]> {
    const rows = await this.#driver.read({ name: "breakerRows", params: { now: this.#driver.now(), keys } });
    return rows.map((row) =>
      stateOf(text(row, "key"), circuit(row), number(row, "now"), flag(row, "probing")),
    );
  }

  /** A batch of successes on closed breakers is one read; only what changes is locked and written. */
  count(session: number, batch: number, counts: readonly BreakerCount[]): Promise<CountedBreaker[]> {
    const now = this.#driver.now();
    const name = `${session}:${batch}`;
    const script = function* (): Script<CountedBreaker[]> {
      const keys = counts.map(({ key }) => key).sort();
      const seen = yield { name: "breakerRows", params: { now, keys } };
      const marked = new Set(
        seen
          .filter((row) => number(row, "failures") > 0 || row["open_until"] !== null)
          .map((row) => text(row, "key")),
      );
      const touched = counts.filter(({ key, failures }) => failures > 0 || marked.has(key));
      if (touched.length === 0) return [];
      const locked = touched.map(({ key }) => key).sort();
      if (touched.some(({ key }) => !marked.has(key)))
        yield { name: "addBreakers", params: { keys: locked } };
      const rows = new Map(
        (yield { name: "lockBreakers", params: { now, keys: locked } }).map((row) => [text(row, "key"), row]),
      );
      const counted: { key: string; before: Circuit; after: Circuit; at: number; batches: string[] }[] = [];
      for (const one of touched) {
        const row = rows.get(one.key);
        if (row === undefined) continue; // reset by hand between two statements
        const at = number(row, "now");
        const before = circuit(row);
        const batches = batchesOf(row);
        const after = batches.includes(name) ? before : tally(before, one, one.rule, session, at);
        counted.push({ key: one.key, before, after, at, batches });
      }
      const changed = counted.filter(({ before, after }) => after !== before);
      if (changed.length > 0) {
        const written = changed.map(({ key, after, batches }) => ({
          key,
          failures: after.failures,
          openedAt: after.openedAt,
          openUntil: after.openUntil,
          probe: after.probe,
          error: after.error,
          counted: after === CLOSED ? null : JSON.stringify([...batches, name].slice(-mostBatches)),
        }));
        yield { name: "writeBreakers", params: { rows: written } };
      }
      // Those that others have opened too: whoever counts a failure must not go on for want of knowing.
      return counted
        .filter(({ before, after }) => before.openUntil !== null || after.openUntil !== null)
        .map(({ key, before, after, at }) => ({
          state: stateOf(key, after, at, false),
          changed: before.openUntil !== after.openUntil,
        }));
    };
    return this.#driver.transaction("countBreakers", script, "settle");
  }

  async probe(session: number, key: string): Promise<boolean> {
    const params = { now: this.#driver.now(), session, key };
    return (await this.#driver.write({ name: "probeBreaker", params }, "claim")).length > 0;
  }

  async unprobe(session: number, key: string): Promise<void> {
    await this.#driver.write({ name: "unprobeBreaker", params: { session, key } }, "claim");
  }

  async reset(key: string): Promise<boolean> {
    const closed = (await this.#driver.write({ name: "resetBreaker", params: { key } })).length > 0;
    this.#wake({ kind: "settings" });
    return closed;
  }
}

function circuit(row: Row): Circuit {
  const read: Circuit = {
    failures: number(row, "failures"),
    openedAt: maybeNumber(row, "opened_at"),
    openUntil: maybeNumber(row, "open_until"),
    probe: maybeNumber(row, "probe_session"),
    error: maybeText(row, "error"),
  };
  return read.failures === 0 && read.openUntil === null ? CLOSED : read;
}

function batchesOf(row: Row): string[] {
  return JSON.parse(maybeText(row, "counted") ?? "[]") as string[];
}

function stateOf(key: string, circuit: Circuit, now: number, probing: boolean): BreakerState {
  return {
    key,
    state: standingOf(circuit, now),
    failures: circuit.failures,
    openedAt: circuit.openedAt === null ? null : new Date(circuit.openedAt),
    openUntil: circuit.openUntil === null ? null : new Date(circuit.openUntil),
    probing,
    error: circuit.error,
  };
}
