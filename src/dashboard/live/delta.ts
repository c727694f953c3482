/**
 * What has changed of a value since it was last told, and how that is put in: for the live stream, whose ends both have this.
 *
 *   { totals: …, queues: [a, b] }  ─▶  { totals: …, queues: [b′, a] }
 *   told as { lists: { queues: { keys: ["b", "a"], items: [b′] } } }
 *
 * Fields are told one by one. Lists whose things have an `id` or a `name` of their own are told thing by thing; any other list
 * is told whole. Pure. Invariant: `applied(before, deltaOf(before, after))` is `after`.
 */

export type Fields = Readonly<Record<string, unknown>>;

export interface Delta {
  /** Fields that are other now. */
  readonly set?: Fields;
  /** Fields that are there no more. */
  readonly drop?: readonly string[];
  /** Of lists: the things that are other or new; `keys` is the list's order now, where that has changed. */
  readonly lists?: Readonly<Record<string, ListDelta>>;
}

interface ListDelta {
  readonly keys?: readonly string[];
  readonly items: readonly Fields[];
}

/** Both as JSON has them: no undefined, no dates. */
export function deltaOf(before: Fields, after: Fields): Delta {
  // By entries: a field may be called __proto__.
  const set: [string, unknown][] = [];
  const lists: [string, ListDelta][] = [];
  for (const [name, value] of Object.entries(after)) {
    const old = Object.hasOwn(before, name) ? before[name] : undefined;
    if (same(old, value)) continue;
    const [had, has] = [keyed(old), keyed(value)];
    if (had === null || has === null) {
      set.push([name, value]);
      continue;
    }
    const items = [...has].flatMap(([key, item]) => (same(had.get(key), item) ? [] : [item]));
    const keys = [...has.keys()];
    lists.push([name, same([...had.keys()], keys) ? { items } : { keys, items }]);
  }
  const drop = Object.keys(before).filter((name) => !Object.hasOwn(after, name));
  return {
    ...(set.length === 0 ? {} : { set: Object.fromEntries(set) }),
    ...(drop.length === 0 ? {} : { drop }),
    ...(lists.length === 0 ? {} : { lists: Object.fromEntries(lists) }),
  };
}

/** The value as it is now. What has not changed is the same object as before. */
export function applied(before: Fields, { set = {}, drop = [], lists = {} }: Delta): Fields {
  const kept = Object.entries(before).filter(([name]) => !drop.includes(name));
  const listed = Object.entries(lists).map(([name, { keys, items }]): [string, unknown] => {
    const known = keyed(before[name]) ?? new Map<string, Fields>();
    const order = keys ?? [...known.keys()];
    for (const item of items) known.set(keyOf(item) ?? "", item);
    return [name, order.flatMap((key) => known.get(key) ?? [])];
  });
  return Object.fromEntries([...kept, ...Object.entries(set), ...listed]);
}

/** Things by their keys; null: it is no list of such, or two have one key. */
function keyed(value: unknown): Map<string, Fields> | null {
  if (!Array.isArray(value) || value.length === 0) return null;
  const things = new Map<string, Fields>();
  for (const item of value as readonly unknown[]) {
    if (!isFields(item)) return null;
    const key = keyOf(item);
    if (key === null || things.has(key)) return null;
    things.set(key, item);
  }
  return things;
}

function keyOf({ id, name }: Fields): string | null {
  if (typeof id === "string") return id;
  return typeof name === "string" ? name : null;
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function same(a: unknown, b: unknown): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b);
}
