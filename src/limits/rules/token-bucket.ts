/**
 * Budgets: a token bucket for the whole cluster, some of whose tokens may be out with processes in chunks.
 *
 *   row: tokens ──chunk──▶ a process's purse ──▶ granted        what a purse did not use by its end goes back
 *
 * Invariants: the tokens in the row and all chunks that have not ended are at most `burst` together, and they grow by
 * `limit / per` and by nothing else. So at most burst + limit × w / per are granted in any window w, whoever grants
 * them: a chunk counts as unused until it is given back or ends, and a clock that goes back adds nothing.
 * Pure: the caller has the row's lock and passes the database's now.
 * Not here: the row (limits/budget-rows.ts), the purses (limits/budgets.ts).
 */

import { shown, UsageError } from "../../errors.ts";

/** Tokens that a process has taken ahead of need. */
export interface Chunk {
  readonly holder: string;
  readonly n: number;
  /** Epoch milliseconds by the database's clock; nobody grants from it after that. */
  readonly until: number;
}

/** A budget as its row has it. */
export interface Bucket {
  readonly limit: number;
  readonly perMs: number;
  readonly burst: number;
  readonly tokens: number;
  /** Up to when the tokens have grown. */
  readonly filledAt: number;
  readonly chunks: readonly Chunk[];
}

/** What a process wants of a bucket. */
export interface Want {
  /** Tokens for those who wait now, in their order: each gets all or none. */
  readonly wants: readonly number[];
  readonly chunk: number;
  readonly holder: string;
  readonly chunkMs: number;
  readonly unused: number;
}

/** What a process got of a bucket. */
export interface BudgetTake {
  /** For each of `wants`. */
  readonly granted: readonly boolean[];
  /** For each of `wants` that got none: when to ask again. */
  readonly retryAfterMs: readonly number[];
  /** Tokens beside those, for later. */
  readonly chunk: number;
  readonly burst: number;
}

/** Beyond this, a clock that went back is believed; a smaller step back is waited for. */
const believedBackMs = 60_000;
const mostTokens = 1e12;
// Sums of fractions: ten times 0.1 must be 1.
const epsilon = 1e-9;

/** The bucket at `now`. */
export function refill(bucket: Bucket, now: number): Bucket {
  if (now < bucket.filledAt) {
    if (bucket.filledAt - now <= believedBackMs) return bucket;
    // Ends of chunks are instants of the clock that was wrong: what was out counts as used.
    return { ...bucket, filledAt: now, chunks: [] };
  }
  let { tokens, filledAt } = bucket;
  let out = sum(bucket.chunks);
  const rate = bucket.limit / bucket.perMs;
  const grow = (until: number): void => {
    tokens = Math.max(0, Math.min(bucket.burst - out, tokens + (until - filledAt) * rate));
    filledAt = until;
  };
  // Piece by piece: while a chunk was out, the row could only fill up to what the chunk left of the burst.
  for (const chunk of bucket.chunks.toSorted((a, b) => a.until - b.until)) {
    if (chunk.until > now) break;
    grow(Math.max(filledAt, chunk.until));
    out -= chunk.n;
  }
  grow(now);
  return { ...bucket, tokens, filledAt, chunks: bucket.chunks.filter(({ until }) => until > now) };
}

/** Takes from a bucket; gives what it then is, and what was got. */
export function takeFrom(given: Bucket, want: Want, now: number): { bucket: Bucket; take: BudgetTake } {
  const bucket = refill(given, now);
  const own = bucket.chunks.find(({ holder }) => holder === want.holder);
  const chunks = bucket.chunks.filter((chunk) => chunk !== own);
  const back = own === undefined ? 0 : Math.min(Math.max(0, want.unused), own.n);
  let tokens = Math.min(bucket.burst - sum(chunks), bucket.tokens + back);
  const granted: boolean[] = [];
  const retryAfterMs: number[] = [];
  for (const n of want.wants) {
    const enough = n <= tokens + epsilon;
    if (enough) tokens = Math.max(0, tokens - n);
    granted.push(enough);
    retryAfterMs.push(enough ? 0 : retryAfter(bucket, n - tokens));
  }
  // A quarter at the most: one process must not carry off what the others want too.
  const chunk = Math.max(0, Math.min(want.chunk, Math.floor(tokens / 4)));
  tokens -= chunk;
  if (chunk > 0) chunks.push({ holder: want.holder, n: chunk, until: now + want.chunkMs });
  return {
    bucket: { ...bucket, tokens, chunks },
    take: { granted, retryAfterMs, chunk, burst: bucket.burst },
  };
}

/** How many jobs of `n` tokens each may be claimed now; if none, when one may by itself. */
export interface JobRoom {
  readonly room: number;
  /** Infinity: never, the bucket is too small for one. */
  readonly retryInMs: number;
}

/**
 * What a claim may take of a bucket (already refilled to `now`) for jobs of `n` tokens that start `lateMs` after it at the
 * latest. It is the starts that keep to the budget. Starting late, they could meet what has grown since their claim and would
 * not have fitted into a full bucket: so a claim sees a bucket that is smaller by what grows in that time. Where that is
 * too small for one job, one is given to a bucket that has its tokens, and the difference is owed: see `takenForJobs`.
 */
export function roomForJobs(bucket: Bucket, n: number, lateMs: number, now: number): JobRoom {
  const rate = bucket.limit / bucket.perMs;
  const room = Math.floor(Math.min(bucket.tokens, bucket.burst - rate * lateMs) / n + epsilon);
  if (room > 0) return { room, retryInMs: 0 };
  if (n <= bucket.tokens + epsilon) return { room: 1, retryInMs: 0 };
  if (n > bucket.burst + epsilon) return { room: 0, retryInMs: Infinity };
  return {
    room: 0,
    retryInMs: Math.ceil((n - bucket.tokens) / rate + Math.max(0, bucket.filledAt - now)),
  };
}

/** The bucket after such a claim of `jobs` jobs. What it owes then is paid by growing later. */
export function takenForJobs(
  bucket: Bucket,
  take: { readonly jobs: number; readonly n: number; readonly lateMs: number },
  now: number,
): Bucket {
  const rate = bucket.limit / bucket.perMs;
  const left = Math.min(bucket.tokens, bucket.burst - rate * take.lateMs) - take.jobs * take.n;
  if (left >= -epsilon) return { ...bucket, tokens: Math.max(0, left) };
  return { ...bucket, tokens: 0, filledAt: Math.ceil(Math.max(now, bucket.filledAt) - left / rate) };
}

/**
 * Tokens that a claim took at `takenAt`, for jobs that were given back before they started, are there again, as far as they
 * fit, but for what has grown since: with them in it, a full bucket would not have grown, and what did may be used up.
 */
export function returned(given: Bucket, n: number, takenAt: number): Bucket {
  const grown = (given.limit / given.perMs) * Math.max(0, given.filledAt - takenAt);
  const tokens = given.tokens + Math.max(0, n - grown);
  return { ...given, tokens: Math.max(0, Math.min(given.burst - sum(given.chunks), tokens)) };
}

/** Nothing more until it has grown again; what is out in chunks ends by itself. */
export function drained(given: Bucket, now: number): Bucket {
  return { ...refill(given, now), tokens: 0 };
}

/** The bucket with other numbers. Its tokens stay, as far as the new burst allows. */
export function tuned(given: Bucket, rate: Pick<Bucket, "limit" | "perMs" | "burst">, now: number): Bucket {
  const bucket = refill(given, now);
  const { limit, perMs, burst } = rate;
  const tokens = Math.max(0, Math.min(bucket.tokens, burst - sum(bucket.chunks)));
  return { ...bucket, limit, perMs, burst, tokens };
}

/** When to ask again: the time of two tokens, or of what is missing if that is more, from 1 s to 60 s. */
export function retryAfter(rate: Pick<Bucket, "limit" | "perMs">, missing: number): number {
  const ms = (Math.max(2, missing) * rate.perMs) / rate.limit;
  return Math.ceil(Math.min(60_000, Math.max(1_000, ms)));
}

/** Why an attempt was released. Stored as its note, which `shortage` parses: change both together. */
export function shortOf(name: string, tokens: number): string {
  return `the budget "${name}" is empty${tokens === 1 ? "" : `: it takes ${tokens} tokens`}`;
}

/** Which budget a job ran short of, and how many tokens it wanted; null where it was throttled by something else. */
export function shortage(reason: string): { readonly name: string; readonly tokens: number } | null {
  const found = /^the budget "(.*)" is empty(?:: it takes (\S+) tokens)?$/.exec(reason);
  return found === null ? null : { name: found[1] ?? "", tokens: Number(found[2] ?? 1) };
}

/** A number of tokens, as a user gives it. */
export function checkTokens(value: unknown, what: string): number {
  if (typeof value === "number" && value > 0 && value <= mostTokens) return value;
  throw new UsageError(
    "BAD_OPTION",
    `${what} must be a number more than 0 and at most 1e12; got ${shown(value)}.`,
    {
      details: { what },
    },
  );
}

function sum(chunks: readonly Chunk[]): number {
  return chunks.reduce((total, { n }) => total + n, 0);
}
