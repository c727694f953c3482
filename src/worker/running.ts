/**
 * The attempts that run, in no order. Each knows where it stands, so that one is taken out by moving the last one to its
 * place: a map by id costs a no-op job a twentieth of its time, and only a cancel ever looks for an id.
 */

/** Something that can be in the list. */
export interface Runs {
  readonly job: { readonly id: string; readonly token: number };
  /** Where it stands in the list; the list's own. */
  slot: number;
}

export class Running<T extends Runs> implements Iterable<T> {
  readonly #all: T[] = [];

  get size(): number {
    return this.#all.length;
  }

  add(item: T): void {
    item.slot = this.#all.length;
    this.#all.push(item);
  }

  remove(item: T): void {
    const last = this.#all.pop();
    if (last === undefined || last === item) return;
    this.#all[item.slot] = last;
    last.slot = item.slot;
  }

  /** The attempt of a job; with a token, that very one. */
  find(id: string, token?: number): T | undefined {
    return this.#all.find(({ job }) => job.id === id && (token === undefined || job.token === token));
  }

  /** Over those that are here now: what is told to stop may end, and leave, meanwhile. */
  [Symbol.iterator](): Iterator<T> {
    return this.#all.slice()[Symbol.iterator]();
  }
}
