/**
 * Job types: the small number that stands for a (queue, name) pair in the hot tables and their index.
 *
 * A job type is never changed or removed, so a process may remember those that it knows. Only a failover to a replica that lagged loses
 * some: the insert refuses a number that the database lacks, and all are forgotten. One that was made inside a user's
 * transaction is not remembered before it is seen outside: the transaction may roll back.
 */
import type { Call, Row, Script } from "../storage/catalogue.ts";

export interface JobTypeName {
  readonly queue: string;
  readonly name: string;
  /** Its lane: jobs that have one stand in a job type of their own, which only claims under limits look at. */
  readonly lane?: string | null;
}

export class JobTypes {
  /** By queue, then by name, of jobs without a lane and of those with one: no key needs to be put together for each job. */
  readonly #ids = {
    plain: new Map<string, Map<string, number>>(),
    laned: new Map<string, Map<string, number>>(),
  };
  readonly #names = new Map<number, JobTypeName>();

  id({ queue, name, lane }: JobTypeName): number | undefined {
    return this.#ids[(lane ?? null) === null ? "plain" : "laned"].get(queue)?.get(name);
  }

  name(id: number): JobTypeName | undefined {
    return this.#names.get(id);
  }

  learn(rows: readonly Row[]): void {
    for (const row of rows) {
      const jobType = { queue: String(row["queue"]), name: String(row["name"]) };
      const queues = this.#ids[row["laned"] === true || row["laned"] === 1 ? "laned" : "plain"];
      const names = queues.get(jobType.queue) ?? new Map<string, number>();
      queues.set(jobType.queue, names.set(jobType.name, Number(row["id"])));
      this.#names.set(Number(row["id"]), jobType);
    }
  }

  forget(): void {
    this.#ids.plain.clear();
    this.#ids.laned.clear();
    this.#names.clear();
  }

  /** Those of the list that are not known yet, each once. */
  unknown(jobTypes: readonly JobTypeName[]): JobTypeName[] {
    const missing = new Map<string, JobTypeName>();
    for (const jobType of jobTypes) {
      if (this.id(jobType) !== undefined) continue;
      missing.set(key(jobType), { queue: jobType.queue, name: jobType.name, lane: jobType.lane ?? null });
    }
    return [...missing.values()];
  }
}

function key(jobType: JobTypeName): string {
  const { queue, name, lane } = jobType;
  return lane === undefined || lane === null ? `${queue}\n${name}` : `${queue}\n${name}\nlaned`;
}

/** As the statements take them. */
export function jobTypeRows(
  jobTypes: readonly JobTypeName[],
): { queue: string; name: string; laned: boolean }[] {
  return jobTypes.map(({ queue, name, lane }) => ({ queue, name, laned: (lane ?? null) !== null }));
}

/** Makes and finds job types; yields what `Job types.learn` takes. */
export function* resolveJobTypes(jobTypes: readonly JobTypeName[]): Script<Row[]> {
  const rows = jobTypeRows(jobTypes);
  const find: Call = { name: "findJobTypes", params: { rows } };
  const found = yield find;
  if (found.length === rows.length) return found;
  yield { name: "addJobTypes", params: { rows } };
  return yield find;
}
