/**
 * Fairness between lanes: who gets how many of the free places, by weighted virtual time.
 *
 * Each lane has a virtual time that goes on by (jobs taken ÷ weight); the lane that is furthest behind is next. So a
 * tenant with 100,000 jobs and one with 10 take turns, and one of weight 3 gets three for the other's one.
 *
 * Pure. Not here: keeping virtual times (limits/limited-claim.ts), the limits that make up `most` (rate-window.ts and counts).
 */

/** A lane that asks for places. */
export interface Asker {
  /** Whose places it shares (a queue, or all queues of a lease). */
  readonly group: string;
  readonly vtime: number;
  readonly weight: number;
  /** What its own limits allow now. */
  most(): number;
  /** One more was given to it. */
  give(): void;
}

/**
 * Gives out each group's room one by one, always to the lane that is furthest behind. Answers whose turn it was, in order.
 *
 * @example
 * shareOut([a, b], new Map([["mail", 4]])); // [0, 1, 0, 1] for two lanes of one weight and one virtual time
 */
export function shareOut(askers: readonly Asker[], room: ReadonlyMap<string, number>): number[] {
  const order: number[] = [];
  const given = askers.map(() => 0);
  const groups = new Map<string, number[]>();
  askers.forEach(({ group }, i) => groups.set(group, [...(groups.get(group) ?? []), i]));
  for (const [group, members] of groups) {
    const heap = new Heap((i: number) => {
      const asker = askers[i] as Asker;
      return asker.vtime + (given[i] as number) / asker.weight;
    });
    for (const i of members) heap.push(i);
    for (let left = room.get(group) ?? 0; left > 0;) {
      const next = heap.pop();
      if (next === undefined) break;
      const asker = askers[next] as Asker;
      if (asker.most() <= 0) continue;
      asker.give();
      given[next] = (given[next] as number) + 1;
      order.push(next);
      left -= 1;
      heap.push(next);
    }
  }
  return order;
}

/** The least first; of equals, the one that was pushed first. */
class Heap {
  readonly #key: (item: number) => number;
  readonly #items: { item: number; key: number; order: number }[] = [];
  #pushed = 0;

  constructor(key: (item: number) => number) {
    this.#key = key;
  }

  push(item: number): void {
    const items = this.#items;
    items.push({ item, key: this.#key(item), order: this.#pushed++ });
    let at = items.length - 1;
    while (at > 0) {
      const up = (at - 1) >> 1;
      if (this.#before(up, at)) break;
      this.#swap(up, at);
      at = up;
    }
  }

  pop(): number | undefined {
    const items = this.#items;
    const [first] = items;
    const last = items.pop();
    if (first === undefined || last === undefined) return undefined;
    if (items.length === 0) return first.item;
    items[0] = last;
    for (let at = 0; ;) {
      const left = at * 2 + 1;
      if (left >= items.length) break;
      const least = left + 1 < items.length && this.#before(left + 1, left) ? left + 1 : left;
      if (this.#before(at, least)) break;
      this.#swap(at, least);
      at = least;
    }
    return first.item;
  }

  #before(a: number, b: number): boolean {
    const [x, y] = [this.#items[a], this.#items[b]];
    if (x === undefined || y === undefined) return true;
    return x.key === y.key ? x.order < y.order : x.key < y.key;
  }

  #swap(a: number, b: number): void {
    const items = this.#items;
    [items[a], items[b]] = [items[b] as (typeof items)[number], items[a] as (typeof items)[number]];
  }
}

/**
 * A total of slots split over the live workers that serve a queue, in the order given: 10 over 3 is 4, 3, 3.
 * A worker that is not listed yet takes ceil(total ÷ (listed + itself)).
 *
 * @example
 * shareOfTotal(10, [7, 8, 9], 7); // 4
 */
export function shareOfTotal(total: number, sessions: readonly number[], mine: number | null): number {
  const position = mine === null ? -1 : sessions.indexOf(mine);
  if (position === -1) return Math.ceil(total / (sessions.length + 1));
  return Math.floor(total / sessions.length) + (position < total % sessions.length ? 1 : 0);
}

/**
 * Slots split by weight between queues that were given no number of their own: their sum stays, each gets at least one.
 *
 * @example
 * splitByWeight(8, [3, 1]); // [6, 2]
 */
export function splitByWeight(slots: number, weights: readonly number[]): number[] {
  const sum = weights.reduce((total, weight) => total + weight, 0);
  const exact = weights.map((weight) => (slots * weight) / sum);
  const parts = exact.map((part) => Math.max(1, Math.floor(part)));
  let left = slots - parts.reduce((total, part) => total + part, 0);
  const byRest = exact
    .map((part, i) => ({ i, rest: part - Math.floor(part) }))
    .sort((a, b) => b.rest - a.rest || a.i - b.i);
  for (const { i } of byRest) {
    if (left <= 0) break;
    parts[i] = (parts[i] as number) + 1;
    left -= 1;
  }
  return parts;
}
