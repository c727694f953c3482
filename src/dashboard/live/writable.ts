/**
 * Whether the database takes writes from here: not on a standby, and not for a role that may only read. Asked anew every half
 * minute, because a standby may be promoted.
 */
import type { Clock } from "../../clock.ts";
import type { Store } from "../../operate/index.ts";

const trustMs = 30_000;

export class Writable {
  readonly #store: Pick<Store, "writable">;
  readonly #clock: Clock;
  #known: { readonly at: number; readonly answer: Promise<boolean> } | null = null;

  constructor(store: Pick<Store, "writable">, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /** True where nobody can tell: a database that is away says so to whoever asks for more. */
  now(): Promise<boolean> {
    const at = this.#clock.monotonic();
    if (this.#known === null || at - this.#known.at > trustMs) {
      const answer = this.#store.writable().catch(() => {
        this.#known = null;
        return true;
      });
      this.#known = { at, answer };
    }
    return this.#known.answer;
  }
}
