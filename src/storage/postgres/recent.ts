/**
 * Where a claim looks for its jobs: in today's table, as long as all that is claimed is there.
 *
 * `job` has a table for each day that is kept. A statement that names `job` opens and locks each of them with its index, before it
 * knows in which its ids are: with 30 days a third of the time of a claim of one job. What a claim takes was mostly enqueued today,
 * so it names today's table alone. Jobs of other days come back without their input and are read once more (`lateJobs`); claims
 * then name `job` for a while, so that a backlog of yesterday's is not read twice all along.
 */
import type { Clock } from "../../clock.ts";
import type { Tables } from "../catalogue.ts";
import type { Span } from "./partitions.ts";
import { answerBatches } from "./claim-answer.ts";

const ALL_FOR_MS = 10_000;

export class Recent {
  readonly #schema: string;
  readonly #clock: Clock;
  #spans: readonly Span[] = [];
  #notBefore = -Infinity;

  constructor(schema: string, clock: Clock) {
    this.#schema = schema;
    this.#clock = clock;
  }

  /** The partitions that this role may read. */
  learn(spans: readonly Span[]): void {
    this.#spans = spans;
  }

  /** Today's table; null: look in all. */
  table(): string | null {
    if (this.#spans.length === 0 || this.#clock.monotonic() < this.#notBefore) return null;
    const now = this.#clock.now();
    const today = this.#spans.find(({ from, to }) => from <= now && now < to);
    return today === undefined ? null : `"${this.#schema}"."${today.name}"`;
  }

  /** A table is not there any more, or is not ours to read: none is named until they are learned anew. */
  lost(): void {
    this.#spans = [];
  }

  /** There were jobs of other days. */
  missed(): void {
    this.#notBefore = this.#clock.monotonic() + ALL_FOR_MS;
  }
}

/**
 * Jobs that are claimed under this token, wherever they are. A row of `ready` without a job can never run: it is deleted, and stands in
 * the answer without an input.
 */
export function lateJobs(t: Tables): string {
  return `
    with taken as (select * from ${t.ready} r where r.id = any(:ids::uuid[]) and r.token = :token::bigint),
    stray as (
      delete from ${t.ready} r where r.id = any(:ids::uuid[]) and r.token = :token::bigint
        and not exists (select 1 from ${t.job} j where j.id = r.id offset 0)
    )
    ${answerBatches(t.job)}`;
}
