/**
 * Seeded random numbers: the same seed gives the same numbers on every machine.
 *
 * The generator is xoshiro128**, seeded by splitmix32. `fork` gives an independent generator, so that one part of a simulation can
 * draw more numbers without changing the numbers of another part: a shrunk run keeps its other decisions.
 */

/** A seeded generator. */
export class Random {
  #a: number;
  #b: number;
  #c: number;
  #d: number;

  constructor(seed: number) {
    let state = seed >>> 0;
    const next = (): number => {
      state = (state + 0x9e3779b9) >>> 0;
      let mixed = state;
      mixed = Math.imul(mixed ^ (mixed >>> 16), 0x21f0aaad);
      mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
      return (mixed ^ (mixed >>> 15)) >>> 0;
    };
    this.#a = next();
    this.#b = next();
    this.#c = next();
    this.#d = next() | 1; // never all zero
  }

  /** An integer from 0 to 2^32 − 1. */
  readonly bits = (): number => {
    const rotated = Math.imul(this.#b, 5);
    const result = Math.imul((rotated << 7) | (rotated >>> 25), 9) >>> 0;
    const shifted = this.#b << 9;
    this.#c ^= this.#a;
    this.#d ^= this.#b;
    this.#b ^= this.#c;
    this.#a ^= this.#d;
    this.#c ^= shifted;
    this.#d = (this.#d << 11) | (this.#d >>> 21);
    return result;
  };

  /** From 0 to below 1. */
  readonly next = (): number => this.bits() / 2 ** 32;

  /** Fills an array of random bytes. */
  readonly bytes = (into: Uint8Array): void => {
    for (let i = 0; i < into.length; i++) into[i] = this.bits() >>> 24;
  };

  /** A number from `low` to below `high`. */
  between(low: number, high: number): number {
    return low + this.next() * (high - low);
  }

  /** An integer from `low` to `high`, both included. */
  integer(low: number, high: number): number {
    return low + Math.floor(this.next() * (high - low + 1));
  }

  /** True with this probability. */
  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(choices: readonly T[]): T {
    const choice = choices[this.integer(0, choices.length - 1)];
    if (choice === undefined) throw new RangeError("pick needs at least one choice");
    return choice;
  }

  fork(): Random {
    return new Random(this.bits());
  }
}
