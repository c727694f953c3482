/**
 * Claiming jobs whose name has a budget: as many as its tokens are for, in one transaction with the taking of the tokens.
 *
 *   lock the budget's row ──no token──▶ nothing is claimed, and nothing written
 *          └── room for n ──▶ claim at most n (under limits, and without) ──▶ take the tokens of what was really claimed
 *
 * Invariants: tokens are taken under the row's lock before anything of the claim can start, so at most
 * burst + limit × w / per are started in any window w, over all processes, whoever dies when; what a dead process had
 * claimed and not started is lost to the budget, never granted twice. A batch is the chunk: busy workers meet at the row
 * once for each claim, not once for each job.
 * Not here: the arithmetic (limits/rules/token-bucket.ts), the row (budget-rows.ts), limits (limited-claim.ts), when to ask again (worker/guards/budget-waits.ts).
 */
import { roomForJobs, takenForJobs } from "./rules/token-bucket.ts";
import { lateness } from "./rules/rate-window.ts";
import type { BudgetScope } from "./store.ts";
import type { ClaimCursor, ClaimScope } from "../jobs/claim-scope.ts";
import { lockBucket } from "./budget-rows.ts";
import type { Row, Script } from "../storage/catalogue.ts";
import { asksOf, inClaimOrder, partOf, scopeParams } from "../jobs/plain-claim.ts";
import { type LimitedAsk, limitedClaim, type Rated, type TakenPart } from "./limited-claim.ts";

export interface BudgetAsk {
  readonly budget: BudgetScope;
  /** With a limit for each queue; the names are the budget's. */
  readonly scope: Omit<ClaimScope, "queues"> & { readonly queues: ReadonlyMap<string, number> };
  /** What lanes and limits concern a scope; null: none. */
  readonly concern: (scope: ClaimScope) => Concern | null;
  readonly session: number;
  /** For the statements: null where the database's own clock counts. */
  readonly now: () => number | null;
  readonly monotonic: () => number;
  readonly claimsTakeMs: number | null;
  /** One more with each claim: which queue, and whether lanes or jobs without one, have the first choice. */
  readonly claimNumber: number;
  /** Tells where the claims of each budget got to (`partOf`). */
  readonly cursor: ClaimCursor;
}

type Concern = { readonly laned: boolean; readonly limited: boolean };

export interface BudgetClaim {
  /** False: there is no such budget. */
  readonly known: boolean;
  /** When it may have room again; null: it may have room now. Infinity: it is too small for one job. */
  readonly retryInMs: number | null;
  readonly rows: Row[];
  readonly rated: ReadonlyMap<string, Rated>;
  readonly broken: readonly string[];
  readonly strays: number;
  readonly parts: readonly TakenPart[];
  /** By the monotonic clock, no later than the tokens were taken; and how late after that workers may set about the jobs. */
  readonly takenAt: number;
  readonly beginsMs: number;
  /** When they were taken, by the database's clock. */
  readonly at: number;
}

/** A wait for the lock that is worth a second look at the clock: what passed of it is no lateness of the jobs. */
const noticedMs = 5;

export function* budgetClaim(ask: BudgetAsk): Script<BudgetClaim> {
  const { name, tokens: n } = ask.budget;
  let takenAt = ask.monotonic();
  const nothing = {
    rows: [],
    rated: new Map<string, Rated>(),
    broken: [],
    strays: 0,
    parts: [],
    takenAt,
    beginsMs: 0,
    at: 0,
  };
  let row = yield* lockBucket(name, ask.now());
  if (row !== null && ask.monotonic() - takenAt > noticedMs) {
    takenAt = ask.monotonic();
    row = yield* lockBucket(name, ask.now());
  }
  if (row === null) return { ...nothing, known: false, retryInMs: null };
  const { bucket, now } = row;
  // One job's tokens come in this time: what of it may pass between a claim and its start.
  const late =
    ask.claimsTakeMs === null
      ? { startsMs: 0, beginsMs: 0 }
      : lateness({ limit: 1, perMs: (bucket.perMs * n) / bucket.limit }, ask.claimsTakeMs);
  const { room, retryInMs } = roomForJobs(bucket, n, late.startsMs, now);
  if (room === 0) return { ...nothing, known: true, retryInMs };
  const taken = new Taking(ask, room);
  const batches = batchesOf(ask, room);
  yield* lockInOrder(batches);
  for (const batch of batches) yield* taken.from(batch);
  const { rows, rated, broken, strays, parts } = taken;
  if (rows.length === 0) return { ...nothing, broken, strays, known: true, retryInMs: null };
  const after = takenForJobs(bucket, { jobs: rows.length, n, lateMs: late.startsMs }, now);
  yield row.save(after);
  const next = rows.length < room ? null : roomForJobs(after, n, late.startsMs, now).retryInMs;
  return {
    known: true,
    retryInMs: next,
    rows,
    rated,
    broken,
    strays,
    parts,
    takenAt,
    beginsMs: late.beginsMs,
    at: now,
  };
}

interface Batch {
  readonly queues: ReadonlyMap<string, number>;
  /** With limits, it is one queue. */
  readonly limitedQueues: Concern | null;
}

/** Queues without limits all at once, where there are tokens for all their slots; else one after the other. */
function batchesOf({ scope, concern, claimNumber }: BudgetAsk, room: number): Batch[] {
  const limits = [...scope.queues].filter(([, limit]) => limit > 0);
  const first = Math.floor(claimNumber / 2) % Math.max(1, limits.length);
  const batches = [...limits.slice(first), ...limits.slice(0, first)].map((limit) => {
    const queues = new Map([limit]);
    return { queues, limitedQueues: concern({ ...scope, queues }) };
  });
  const free = batches
    .filter(({ limitedQueues }) => limitedQueues === null)
    .flatMap(({ queues }) => [...queues]);
  if (free.length < 2 || free.reduce((sum, [, limit]) => sum + limit, 0) > room) return batches;
  return [
    { queues: new Map(free), limitedQueues: null },
    ...batches.filter(({ limitedQueues }) => limitedQueues !== null),
  ];
}

/**
 * The batches go through the queues by turns. Claims for all limited queues lock their rows in the order of their names: in any other
 * order the two could wait for each other.
 */
function* lockInOrder(batches: readonly Batch[]): Script<void> {
  const names = batches
    .filter(({ limitedQueues }) => limitedQueues?.limited === true)
    .flatMap(({ queues }) => [...queues.keys()]);
  if (names.length > 1) yield { name: "lockQueues", params: { names, throttled: [] } };
}

class Taking {
  readonly rows: Row[] = [];
  readonly rated = new Map<string, Rated>();
  readonly broken: string[] = [];
  readonly parts: TakenPart[] = [];
  strays = 0;
  readonly #ask: BudgetAsk;
  #room: number;

  constructor(ask: BudgetAsk, room: number) {
    this.#ask = ask;
    this.#room = room;
  }

  *from({ queues, limitedQueues }: Batch): Script<void> {
    if (limitedQueues === null) return yield* this.#plain(queues);
    // A queue with limits gives all its jobs under them.
    if (limitedQueues.limited) return yield* this.#limited(queues, limitedQueues);
    const before = this.rows.length;
    const lanesFirst = this.#ask.claimNumber % 2 === 0;
    if (lanesFirst) yield* this.#limited(queues, limitedQueues);
    else yield* this.#plain(queues);
    const taken = this.rows.length - before;
    const rest = new Map([...queues].map(([queue, limit]) => [queue, limit - taken]));
    if (lanesFirst) yield* this.#plain(rest);
    else yield* this.#limited(rest, limitedQueues);
  }

  *#limited(queues: ReadonlyMap<string, number>, limitedQueues: Concern): Script<void> {
    const scope = this.#narrowed(queues);
    if (scope === null) return;
    const { session, claimsTakeMs, claimNumber, monotonic } = this.#ask;
    const now = this.#ask.now();
    const lanesFirst = claimNumber % 2 === 0;
    const cursor = this.#cursorOf(queues);
    const ask: LimitedAsk = {
      ...limitedQueues,
      session,
      scope,
      now,
      claimsTakeMs,
      lanesFirst,
      claimNumber,
      cursor,
      monotonic,
    };
    const claim = yield* limitedClaim(ask);
    for (const [id, rate] of claim.rated) this.rated.set(id, rate);
    this.broken.push(...claim.broken);
    this.strays += claim.strays;
    this.parts.push(...claim.parts);
    this.#took(claim.rows);
  }

  *#plain(given: ReadonlyMap<string, number>): Script<void> {
    const scope = this.#narrowed(given);
    if (scope === null) return;
    const { session } = this.#ask;
    const now = this.#ask.now();
    const { names, direction } = scopeParams(scope);
    const cursor = this.#cursorOf(given);
    const asks = asksOf(scope, cursor, this.#ask.monotonic);
    let ask = asks.next();
    while (ask.done !== true) {
      const { queues, levels } = ask.value;
      ask = asks.next(yield { name: "claim", params: { now, session, queues, names, direction, levels } });
    }
    const rows = inClaimOrder(ask.value, direction);
    this.parts.push({ cursor, scope, rows });
    this.#took(rows);
  }

  /** Queues that are asked alone have places of their own: a look at everything that one of them has is none of the others. */
  #cursorOf(queues: ReadonlyMap<string, number>): ClaimCursor {
    const [queue] = queues.size === 1 ? [...queues.keys()] : [];
    const { name, tokens } = this.#ask.budget;
    return partOf(this.#ask.cursor, `budget ${name} ${tokens} ${queue ?? ""}`);
  }

  #took(rows: readonly Row[]): void {
    this.rows.push(...rows);
    this.#room -= rows.length;
  }

  #narrowed(given: ReadonlyMap<string, number>): ClaimScope | null {
    const queues = new Map(
      [...given].map(([queue, limit]) => [queue, Math.max(0, Math.min(limit, this.#room))]),
    );
    const limit = [...queues.values()].reduce((sum, each) => sum + each, 0);
    return limit === 0 ? null : { ...this.#ask.scope, queues, limit, free: queues };
  }
}
