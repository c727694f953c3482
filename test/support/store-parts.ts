// Comes between a client and the parts of its store: tests replace, count, delay and fail methods by their full name, such as
// "schedules.fire" or "now".
import type { Store } from "../../src/storage/store.ts";

/** The parts of a store; everything else is its own. */
const parts = [
  "insight",
  "newJobs",
  "claims",
  "settles",
  "sessions",
  "jobs",
  "definitions",
  "workers",
  "queues",
  "lanes",
  "holds",
  "budgets",
  "breakers",
  "temporaryLimits",
  "workflows",
  "schedules",
  "state",
  "passes",
  "series",
  "failures",
  "upkeep",
] as const satisfies readonly (keyof Store)[];

type Part = (typeof parts)[number];
type Name<Of> = Extract<keyof Of, string>;

/** A member of the store, or of a part: "now", "schedules.fire". */
export type Verb = Exclude<Name<Store>, Part> | { [P in Part]: `${P}.${Name<Store[P]>}` }[Part];

/** The type of that member. */
export type Member<V extends Verb> = V extends `${infer P extends Part}.${infer M}`
  ? Store[P][M & keyof Store[P]]
  : V extends keyof Store
    ? Store[V]
    : never;

/** A member, read from the object that it belongs to. */
export type Get = (verb: Verb, value: unknown, owner: object) => unknown;

/** A store of which every member, of its parts too, is read through `get`. `set` is told of what is assigned. */
export function between(store: Store, get: Get, set?: (verb: Verb, value: unknown) => void): Store {
  const seenThrough = <T extends object>(owner: T, prefix: string): T =>
    new Proxy(owner, {
      get(real, key) {
        const value: unknown = Reflect.get(real, key, real);
        if (typeof key !== "string") return value;
        if (prefix === "" && isPart(key)) return seenThrough(value as object, `${key}.`);
        return get(`${prefix}${key}` as Verb, value, real);
      },
      set(_real, key, value) {
        set?.(`${prefix}${String(key)}` as Verb, value);
        return set !== undefined;
      },
    });
  return seenThrough(store, "");
}

/** A method that can be called without its object; any other value as it is. */
export function bound(value: unknown, owner: object): unknown {
  return typeof value === "function" ? (value.bind(owner) as unknown) : value;
}

function isPart(key: string): boolean {
  return (parts as readonly string[]).includes(key);
}
