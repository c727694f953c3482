/**
 * Durations counted into eight buckets for each doubling: small, mergeable, good to 5 %.
 *
 *   bucket i holds durations d (in microseconds) with 2^(i/8) ≤ d < 2^((i+1)/8)
 *
 * Minutes of many workers are added up by adding buckets, which percentiles themselves would not allow: the p95 of two
 * p95s is nothing. A value is told as the middle of its bucket, so it is off by 4.4 % at most.
 * Invariants: adding is commutative; encoding and decoding gives the same counts; a bad text is an empty histogram.
 */

const perOctave = 8;
/** Up to 2^40 µs, which is 12 days; what is longer counts as that. */
const buckets = 40 * perOctave;
const logStep = Math.LN2 / perOctave;
const bracket = 91;
const comma = 44;
/** What one list says, before it is known to be whole. */
const scratch = new Float64Array(4 * buckets);

/**
 * How many durations of which length.
 *
 * @example
 * const histogram = new Histogram();
 * histogram.add(12.5);
 * histogram.percentile(0.95); // milliseconds
 */
export class Histogram {
  readonly #counts = new Uint32Array(buckets);
  #count = 0;
  #sumMs = 0;

  /** How many durations were counted. */
  get count(): number {
    return this.#count;
  }

  /** Of all of them together, in milliseconds. */
  get sumMs(): number {
    return this.#sumMs;
  }

  /** Counts one duration, in milliseconds. Negative ones (two clocks) count as 0. */
  add(ms: number): void {
    const micros = ms * 1_000;
    const index = micros > 1 ? Math.min(buckets - 1, Math.floor(Math.log(micros) / logStep)) : 0;
    this.#counts[index]! += 1;
    this.#count += 1;
    if (ms > 0) this.#sumMs += ms;
  }

  /** Adds another's counts to this one's. */
  merge(other: Histogram): void {
    for (let i = 0; i < buckets; i += 1) this.#counts[i]! += other.#counts[i]!;
    this.#count += other.#count;
    this.#sumMs += other.#sumMs;
  }

  /** The duration that this share of all is not longer than, in milliseconds; null when nothing was counted. */
  percentile(share: number): number | null {
    if (this.#count === 0) return null;
    const rank = Math.max(1, Math.ceil(share * this.#count));
    let seen = 0;
    for (let i = 0; i < buckets; i += 1) {
      seen += this.#counts[i]!;
      if (seen >= rank) return middleMs(i);
    }
    return middleMs(buckets - 1);
  }

  /** How many durations are not longer than `ms`, up to the bucket's edge. */
  countUpTo(ms: number): number {
    const micros = ms * 1_000;
    let seen = 0;
    for (let i = 0; i < buckets && Math.exp((i + 1) * logStep) <= micros * 1.000001; i += 1)
      seen += this.#counts[i]!;
    return seen;
  }

  /** As a short text: the sum, then bucket and count in turn for those that are not empty. */
  encode(): string {
    const parts: number[] = [Math.round(this.#sumMs * 1_000) / 1_000];
    for (let i = 0; i < buckets; i += 1) if (this.#counts[i]! > 0) parts.push(i, this.#counts[i]!);
    return JSON.stringify(parts);
  }

  /** From a text of `encode`; anything else is an empty one. */
  static decode(text: string): Histogram {
    const histogram = new Histogram();
    histogram.mergeText(text);
    return histogram;
  }

  /** Adds what texts of `encode` say, one or several with commas between; a bad one adds nothing. */
  mergeText(texts: string): void {
    for (let at = 0; texts.charCodeAt(at) === bracket;) {
      const end = texts.indexOf("]", at);
      if (end === -1) return;
      this.#mergeList(texts, at + 1, end);
      at = end + 1;
      if (texts.charCodeAt(at) === comma) at += 1;
    }
  }

  /** By hand: a day of minutes has 30,000 lists, and as JSON they took 40 ms of an answer that should take 50. */
  #mergeList(text: string, from: number, to: number): void {
    const first = text.indexOf(",", from);
    const sumEnd = first === -1 || first > to ? to : first;
    const sumMs = sumEnd === from ? NaN : Number(text.slice(from, sumEnd));
    if (!Number.isFinite(sumMs) || sumMs < 0) return;
    let n = 0;
    for (let at = sumEnd + 1, value = 0, digits = 0; at <= to; at += 1) {
      const code = at === to ? comma : text.charCodeAt(at);
      if (code === comma) {
        if (digits === 0 || n === scratch.length) return;
        scratch[n] = value;
        n += 1;
        value = digits = 0;
      } else if (code >= 48 && code <= 57) {
        value = value * 10 + code - 48;
        digits += 1;
      } else return;
    }
    if (n % 2 === 1) return;
    this.#sumMs += sumMs;
    for (let i = 0; i < n; i += 2) {
      const bucket = scratch[i]!;
      if (bucket >= buckets) continue;
      this.#counts[bucket]! += scratch[i + 1]!;
      this.#count += scratch[i + 1]!;
    }
  }
}

function middleMs(bucket: number): number {
  const ms = Math.exp((bucket + 0.5) * logStep) / 1_000;
  return bucket === 0 ? 0 : Number(ms.toPrecision(3));
}
