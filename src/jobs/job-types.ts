/**
 * Lines: the small number that stands for a (queue, name) pair in the hot tables and their index.
 *
 * A line is never changed or removed, so a process may remember those that it knows. Only a failover to a replica that lagged loses
 * some: the insert refuses a number that the database lacks, and all are forgotten. One that was made inside a user's
 * transaction is not remembered before it is seen outside: the transaction may roll back.
 */
import type { Call, Row, Script } from "../storage/catalogue.ts";

export interface LineName {
  readonly queue: string;
  readonly name: string;
  /** Its lane: jobs that have one stand in a line of their own, which only claims under limits look at. */
  readonly lane?: string | null;
}

export class Lines {
  /** By queue, then by name, of jobs without a lane and of those with one: no key needs to be put together for each job. */
  readonly #ids = {
    plain: new Map<string, Map<string, number>>(),
    laned: new Map<string, Map<string, number>>(),
  };
  readonly #names = new Map<number, LineName>();

  id({ queue, name, lane }: LineName): number | undefined {
    return this.#ids[(lane ?? null) === null ? "plain" : "laned"].get(queue)?.get(name);
  }

  name(id: number): LineName | undefined {
    return this.#names.get(id);
  }

  learn(rows: readonly Row[]): void {
    for (const row of rows) {
      const line = { queue: String(row["queue"]), name: String(row["name"]) };
      const queues = this.#ids[row["laned"] === true || row["laned"] === 1 ? "laned" : "plain"];
      const names = queues.get(line.queue) ?? new Map<string, number>();
      queues.set(line.queue, names.set(line.name, Number(row["id"])));
      this.#names.set(Number(row["id"]), line);
    }
  }

  forget(): void {
    this.#ids.plain.clear();
    this.#ids.laned.clear();
    this.#names.clear();
  }

  /** Those of the list that are not known yet, each once. */
  unknown(lines: readonly LineName[]): LineName[] {
    const missing = new Map<string, LineName>();
    for (const line of lines) {
      if (this.id(line) !== undefined) continue;
      missing.set(key(line), { queue: line.queue, name: line.name, lane: line.lane ?? null });
    }
    return [...missing.values()];
  }
}

function key(line: LineName): string {
  const { queue, name, lane } = line;
  return lane === undefined || lane === null ? `${queue}\n${name}` : `${queue}\n${name}\nlaned`;
}

/** As the statements take them. */
export function lineRows(lines: readonly LineName[]): { queue: string; name: string; laned: boolean }[] {
  return lines.map(({ queue, name, lane }) => ({ queue, name, laned: (lane ?? null) !== null }));
}

/** Makes and finds lines; yields what `Lines.learn` takes. */
export function* resolveLines(lines: readonly LineName[]): Script<Row[]> {
  const rows = lineRows(lines);
  const find: Call = { name: "findLines", params: { rows } };
  const found = yield find;
  if (found.length === rows.length) return found;
  yield { name: "addLines", params: { rows } };
  return yield find;
}
