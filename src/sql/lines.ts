/**
 * Lines: the small number that stands for a (queue, name) pair in the hot tables and their index.
 *
 * A line is never changed or removed, so a process may remember those that it knows. One that was made inside a user's
 * transaction is not remembered before it is seen outside: the transaction may roll back.
 */
import type { Call, Row, Script } from "./catalogue.ts";

export interface LineName {
  readonly queue: string;
  readonly name: string;
}

export class Lines {
  /** By queue, then by name: no key needs to be put together for each job. */
  readonly #ids = new Map<string, Map<string, number>>();
  readonly #names = new Map<number, LineName>();

  id({ queue, name }: LineName): number | undefined {
    return this.#ids.get(queue)?.get(name);
  }

  name(id: number): LineName | undefined {
    return this.#names.get(id);
  }

  learn(rows: readonly Row[]): void {
    for (const row of rows) {
      const line = { queue: String(row["queue"]), name: String(row["name"]) };
      const names = this.#ids.get(line.queue) ?? new Map<string, number>();
      this.#ids.set(line.queue, names.set(line.name, Number(row["id"])));
      this.#names.set(Number(row["id"]), line);
    }
  }

  /** Those of the list that are not known yet, each once. */
  unknown(lines: readonly LineName[]): LineName[] {
    const missing = new Map<string, LineName>();
    for (const line of lines) {
      if (this.id(line) === undefined) missing.set(key(line), { queue: line.queue, name: line.name });
    }
    return [...missing.values()];
  }
}

function key(line: LineName): string {
  return `${line.queue}\n${line.name}`;
}

/** Makes and finds lines; yields what `Lines.learn` takes. */
export function* resolveLines(lines: readonly LineName[]): Script<Row[]> {
  const rows = lines.map(({ queue, name }) => ({ queue, name }));
  const find: Call = { name: "findLines", params: { rows } };
  const found = yield find;
  if (found.length === rows.length) return found;
  yield { name: "addLines", params: { rows } };
  return yield find;
}
