/**
 * Where a claim looks for its jobs: in today's table, as long as all that is claimed is there.
 *
 * `job` has a table for each day that is kept. A statement that names `job` opens and locks each of them with its index, before it
 * knows in which its ids are: with 30 days a third of the time of a claim of one job. What a claim takes was mostly enqueued today,
 * so it names today's table alone. Jobs of other days come back without their input and are read once more (`lateJobs`); claims
 * then name `job` for a while, so that a backlog of yesterday's is not read twice all along.
 */
import type { Clock } from "../clock.ts";
import type { Tables } from "../sql/catalogue.ts";
import { dayName } from "./partitions.ts";
import { sheaves } from "./sheaves.ts";

const ALL_FOR_MS = 10_000;

export class Recent {
  readonly #schema: string;
  readonly #clock: Clock;
  #days: ReadonlySet<string> = new Set();
  #notBefore = -Infinity;

  constructor(schema: string, clock: Clock) {
    this.#schema = schema;
    this.#clock = clock;
  }

  /** The days for which there are tables. */
  learn(names: readonly string[]): void {
    this.#days = new Set(names);
  }

  /** Today's table; null: look in all. */
  table(): string | null {
    if (this.#days.size === 0 || this.#clock.monotonic() < this.#notBefore) return null;
    const name = dayName("job", this.#clock.now());
    return this.#days.has(name) ? `"${this.#schema}"."${name}"` : null;
  }

  /** There were jobs of other days. */
  missed(): void {
    this.#notBefore = this.#clock.monotonic() + ALL_FOR_MS;
  }
}

/** Jobs that are claimed under this token, wherever they are. */
export function lateJobs(t: Tables): string {
  return `
    with taken as (select * from ${t.ready} r where r.id = any(:ids::uuid[]) and r.token = :token::bigint)
    ${sheaves(t.job)}`;
}
