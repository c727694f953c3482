/**
 * Limits: how jobs with a lane, and jobs of a queue that has limits, are claimed and counted.
 *
 *   enqueue ──leaves a lane wake-up──▶ takeWakeups ──▶ rotation: active, by virtual time ──pick──▶ lane: how many may it give? ──take──▶ held
 *                                  ▲            │ empty · full · rate used up · paused                                       │
 *                                  │            ▼                                                                           │
 *                                  └─ lane wake-up ── asleep (wake_at: when its head is due or its rate opens) ◀──settle: count − n──┘
 *
 * A *lane* row has the limits and the count of a (queue, key); a *rotation* is its place in the order of fairness for one job type
 * (a name that nobody serves can fill lanes without standing in anybody's way); a *lane wake-up* says that something has changed
 * for a rotation. A *limited queue* is the row of a queue with limits. Only rotations that may give a job now are active, so a claim never
 * walks over full, empty or waiting lanes, however many there are.
 *
 * Invariants: a claim counts in its own transaction, under the lock of the row, before anything runs; a settle leaves what
 * it gives back in its own transaction, and the next claim takes that in before it counts. So a count is never too low, at
 * no instant, and too high for no longer than until somebody asks. What a row was counted in is kept in the row (`counted`), so that
 * settling and taking over give back exactly that, whatever has been set meanwhile (starts of rates: with the claim, `rates`); jobs that ran before their queue had
 * limits are *uncounted jobs*, and count until they end. A claim that brings nothing writes nothing.
 * Not here: who gets how many (limits/rules/fairness.ts), rates (limits/rules/rate-window.ts), the statements (limits.ts of each dialect).
 */
import { queueSettings } from "./queue-settings.ts";
import { WAITING_AT } from "../jobs/job.ts";
import { shareOut } from "./rules/fairness.ts";
import {
  givenBack,
  type Lateness,
  lateness,
  parseStarts,
  type Rate,
  roomIn,
  started,
  type Starts,
} from "./rules/rate-window.ts";
import type { ClaimCursor, ClaimScope } from "../jobs/claim-scope.ts";
import type { Transition } from "../jobs/outcome.ts";
import type { Row, RowList, Script } from "../storage/catalogue.ts";
import { returnTokens, type Unused } from "./budget-rows.ts";
import {
  asksOf,
  completeInMs,
  inClaimOrder,
  LATE_MS,
  rescanned,
  mustRescan,
  partOf,
  scopeParams,
} from "../jobs/plain-claim.ts";
import type { KeptRates } from "../jobs/plain-claim.ts";
import { maybeNumber, maybeText, number, text } from "../jobs/rows.ts";

/** At most this many lanes give jobs to one claim. */
const MOST_LANES = 128;
/** A full lane is woken by what its settled jobs give back. This is the net under it. */
const FULL_POLL_MS = 300_000;
/** Of a larger concurrency one claim takes half at most: the other half runs while this one is fetched and written. */
const CLAIMED_WHOLE = 200;
/** How often a queue looks again while it is full of jobs that ran before it had limits. */
const UNCOUNTED_JOB_POLL_MS = 250;
const IN_NO_TIME: Lateness = { startsMs: 0, beginsMs: 0 };

/** What one claim under limits asks for. */
export interface LimitedAsk {
  readonly session: number;
  readonly scope: ClaimScope;
  readonly now: number | null;
  /** How long claims have lately taken: their jobs start that much later. Null: no time passes (a fake clock). */
  readonly claimsTakeMs: number | null;
  /** What is known to be in scope. A limit that is not known yet is kept all the same: nothing is taken from its queue. */
  readonly laned: boolean;
  readonly limited: boolean;
  /** Lanes have the first choice; else jobs without one have. By turns. */
  readonly lanesFirst: boolean;
  /** One more with each claim: which kind has the first choice among lanes that are equally far behind. */
  readonly claimNumber: number;
  /** Whose part it is (`partOf`) that tells where the claims of jobs without a lane got to. */
  readonly cursor: ClaimCursor;
  readonly monotonic: () => number;
}

/** What was taken by a cursor that moves past it once the claim has committed. */
export interface TakenPart {
  readonly cursor: ClaimCursor;
  readonly scope: ClaimScope;
  readonly rows: readonly Row[];
}

/** The part of a cursor for jobs without a lane of queues with limits. */
export const LIMITED = "limited";
/** The part for jobs with one. */
const LANED = "laned";

/** What it brought. */
export interface LimitedClaim {
  readonly rows: Row[];
  /** By job, where it has a rate. */
  readonly rated: ReadonlyMap<string, Rated>;
  /** Queues whose settings cannot be read: nothing is claimed from them. */
  readonly broken: readonly string[];
  /** How many rows of `ready` it met that have no job: they were deleted, and are not counted. */
  readonly strays: number;
  readonly parts: readonly TakenPart[];
}

/** What a claim under a rate leaves with its job. */
export interface Rated {
  /** How late its worker may set about it. */
  readonly beginsMs: number;
  /** The instants that it is counted at. */
  readonly at: { readonly lane: number; readonly queue: number };
}

/** A rate, and how late a start may be that is claimed now. */
interface LateRate extends Rate {
  readonly late: Lateness;
}

interface LimitedQueue {
  readonly name: string;
  readonly concurrency: number | null;
  readonly rate: LateRate | null;
  /** Without what has been given back. */
  readonly running: number;
  readonly returned: number;
  readonly uncountedJobs: number;
  readonly starts: Starts;
  readonly adoptUntil: number | null;
  readonly now: number;
  room: number;
  taken: number;
}

interface Rotation {
  readonly queue: string;
  readonly group: string;
  readonly jobType: number;
  readonly lane: Lane;
  readonly vtime: number;
  asked: number;
  got: number;
}

interface Lane {
  readonly id: number;
  readonly key: string;
  readonly concurrency: number | null;
  readonly running: number;
  readonly rate: LateRate | null;
  readonly starts: Starts;
  readonly weight: number;
  readonly paused: boolean;
  room: number;
  taken: number;
}

/** One claim under limits, in one transaction. */
export function* limitedClaim(ask: LimitedAsk): Script<LimitedClaim> {
  const claim = new Claiming(ask);
  if (ask.limited) yield* claim.lockLimitedQueues();
  if (!ask.lanesFirst) yield* claim.takePlain();
  if (ask.laned) yield* claim.takeLaned();
  if (ask.lanesFirst) yield* claim.takePlain();
  yield* claim.writeLimitedQueues();
  return claim;
}

class Claiming implements LimitedClaim {
  readonly rows: Row[] = [];
  readonly rated = new Map<string, Rated>();
  readonly broken: string[] = [];
  readonly parts: TakenPart[] = [];
  strays = 0;
  readonly #ask: LimitedAsk;
  readonly #params: ReturnType<typeof scopeParams>;
  readonly #limitedQueues = new Map<string, LimitedQueue>();
  /** Whose turn it was, one entry for each job that was asked for. */
  #order: readonly Rotation[] = [];
  /** What each group of queues may still take. */
  readonly #room = new Map<string, number>();
  /** What each queue can start at once: a job with a rate must not wait in a worker's buffer. */
  readonly #free: Map<string, number> | null;

  constructor(ask: LimitedAsk) {
    this.#ask = ask;
    this.#params = scopeParams(ask.scope);
    this.#free = ask.scope.free === undefined ? null : new Map(ask.scope.free);
    for (const row of this.#params.queues) this.#room.set(String(row["group"]), Number(row["limit"]));
  }

  *lockLimitedQueues(): Script<void> {
    const { now } = this.#ask;
    const { queues } = this.#params;
    const rows = yield { name: "lockLimitedQueues", params: { now, queues } };
    const adopting = rows.filter((row) => row["adopt_until"] !== null);
    const uncountedJobs = new Map<string, number>();
    if (adopting.length > 0) {
      const names = adopting.map((row) => text(row, "name"));
      const young = adopting.filter((row) => number(row, "adopt_until") > number(row, "now"));
      if (young.length > 0) yield { name: "adopt", params: { names: young.map((row) => text(row, "name")) } };
      for (const row of yield { name: "uncountedJobs", params: { names } })
        uncountedJobs.set(text(row, "queue"), number(row, "n"));
    }
    const returned = new Map<string, number>();
    if (rows.length > 0) {
      const names = rows.map((row) => text(row, "name"));
      for (const row of yield { name: "takeReturnedCapacity", params: { names } })
        returned.set(text(row, "queue"), number(row, "n"));
    }
    for (const row of rows) {
      const name = text(row, "name");
      const limitedQueue = this.#limitedQueueOf(row, uncountedJobs.get(name) ?? 0, returned.get(name) ?? 0);
      if (limitedQueue === null) this.broken.push(text(row, "name"));
      else this.#limitedQueues.set(limitedQueue.name, limitedQueue);
    }
  }

  #limitedQueueOf(row: Row, uncountedJobs: number, returned: number): LimitedQueue | null {
    const limits = limitsOf(row);
    if (limits === null) return null;
    const { concurrency } = limits;
    const rate = this.#late(limits.rate);
    const now = number(row, "now");
    const running = Math.max(0, number(row, "running") - returned);
    const starts = parseStarts(maybeText(row, "starts"));
    const places = concurrency === null ? Infinity : concurrency - running - uncountedJobs;
    const openings = rate === null ? Infinity : roomIn(starts, rate, now).room;
    return {
      name: text(row, "name"),
      concurrency,
      rate,
      running,
      returned: number(row, "running") - running,
      uncountedJobs,
      starts,
      adoptUntil: maybeNumber(row, "adopt_until"),
      now,
      room: Math.max(0, Math.min(places, openings)),
      taken: 0,
    };
  }

  /** Jobs without a lane, of queues with limits. Queues that share one limit (a lease) take from it one after the other. */
  *takePlain(): Script<void> {
    const { now, session } = this.#ask;
    const { names, direction } = this.#params;
    const limitedQueues = [...this.#limitedQueues.values()];
    for (const batch of this.#shared
      ? limitedQueues.map((limitedQueue) => [limitedQueue])
      : [limitedQueues]) {
      const limits = new Map(
        batch
          .map((limitedQueue) => [limitedQueue.name, this.#most(limitedQueue)] as const)
          .filter(([, limit]) => limit > 0),
      );
      if (limits.size === 0) continue;
      const most = Math.max(...limits.values());
      const rates = this.#ratesOf([...limits.keys()], [], 0);
      const scope = { ...this.#ask.scope, queues: limits, limit: most };
      const [only] = batch;
      const cursor = partOf(this.#ask.cursor, this.#shared ? `${LIMITED} ${only?.name}` : LIMITED);
      const asks = asksOf(scope, cursor, this.#ask.monotonic);
      let ask = asks.next();
      while (ask.done !== true) {
        const { queues, levels } = ask.value;
        const params = { now, session, queues, levels, names, direction, most, rates };
        ask = asks.next(yield { name: "takeLimited", params });
      }
      const rows = inClaimOrder(yield* this.#withJobs(ask.value), direction);
      this.parts.push({ cursor, scope, rows });
      for (const row of rows) {
        const queue = text(row, "queue");
        this.#took(queue, 1);
        this.#note(row, queue, null, 0);
        this.rows.push(row);
      }
    }
  }

  #most(limitedQueue: LimitedQueue): number {
    const free =
      limitedQueue.rate === null || this.#free === null ? Infinity : (this.#free.get(limitedQueue.name) ?? 0);
    const { concurrency } = limitedQueue;
    const wave = concurrency === null || concurrency <= CLAIMED_WHOLE ? Infinity : Math.ceil(concurrency / 2);
    return Math.min(this.#room.get(this.#groupOf(limitedQueue.name)) ?? 0, limitedQueue.room, free, wave);
  }

  *takeLaned(): Script<void> {
    yield* this.#takeWakeups();
    const total = [...this.#room.values()].reduce((sum, room) => sum + room, 0);
    if (total === 0) return;
    // A lane that has run empty is active until a claim meets it, and must not keep that claim from the lanes behind it.
    let most = Math.min(total, MOST_LANES);
    while (yield* this.#takeFromRotations(most)) most = MOST_LANES;
  }

  /** True: it brought nothing, and put rotations to sleep that stood before others. */
  *#takeFromRotations(mostRotations: number): Script<boolean> {
    const { now, session } = this.#ask;
    const { names, direction } = this.#params;
    const picked = yield* this.#pick(mostRotations);
    const rotations = jobTypesInRotation(this.#rotationsOf(picked), this.#ask.claimNumber);
    this.#share(rotations);
    const asked = rotations.filter((rotation) => rotation.asked > 0);
    if (asked.length > 0) {
      const most = asked.reduce((max, rotation) => Math.max(max, rotation.asked), 0);
      const counted = [
        ...new Set(
          rotations.filter(({ queue }) => this.#limitedQueues.has(queue)).map(({ jobType }) => jobType),
        ),
      ];
      const instant = number(picked[0] as Row, "now");
      const rates = this.#ratesOf(
        asked.map(({ queue }) => queue),
        asked.map(({ lane }) => lane),
        instant,
      );
      const taken = yield {
        name: "takeLaned",
        params: { now, session, rotations: asked.map(rotationRow), names, direction, counted, most, rates },
      };
      this.#takenFrom(rotations, yield* this.#withJobs(taken), instant);
    }
    return yield* this.#moveRotations(rotations, picked);
  }

  /** The rotations that are furthest behind: from where they were a moment ago, or, where that is due, of all. */
  *#pick(most: number): Script<Row[]> {
    const { now, monotonic } = this.#ask;
    const { queues, names } = this.#params;
    const params = { now, queues, names, limitedQueues: [...this.#limitedQueues.keys()], most };
    const cursor = partOf(this.#ask.cursor, LANED);
    const floors = this.#floors();
    const mayRescan = () => completeInMs(cursor.rescannedAt, cursor.rescanMs ?? 0, monotonic()) === 0;
    if (floors.length > 0 && !(mustRescan(cursor, monotonic()) && mayRescan())) {
      const picked = yield { name: "pickRotations", params: { ...params, floors } };
      if (picked.length > 0 || !mayRescan()) return this.#risen(picked);
    }
    const startedMs = monotonic();
    const picked = yield { name: "pickRotations", params: { ...params, floors: [] } };
    rescanned(cursor, picked, { startedMs, endedMs: monotonic() });
    return this.#risen(picked);
  }

  #floors(): RowList {
    const { rotations } = partOf(this.#ask.cursor, LANED);
    return [...(rotations ?? [])].map(([jobType, { from }]) => ({ jobType, vtime: from }));
  }

  /** The floors rise to where the furthest behind of these are, a moment later. */
  #risen(picked: Row[]): Row[] {
    const cursor = partOf(this.#ask.cursor, LANED);
    const rotations = (cursor.rotations ??= new Map());
    const at = this.#ask.monotonic();
    const least = new Map<number, number>();
    for (const row of picked) {
      const jobType = number(row, "job_type");
      least.set(jobType, Math.min(least.get(jobType) ?? Infinity, number(row, "vtime")));
    }
    for (const [jobType, vtime] of least) {
      const before = rotations.get(jobType);
      if (before === undefined) rotations.set(jobType, { from: -Number.MAX_VALUE, next: vtime, nextAt: at });
      else if (vtime < before.from) rotations.set(jobType, { from: vtime, next: vtime, nextAt: at });
      else if (at >= before.nextAt + LATE_MS)
        rotations.set(jobType, { from: before.next, next: vtime, nextAt: at });
    }
    return picked;
  }

  /**
   * A row of `ready` without a job can never run. It is dropped before anything is counted: nobody would settle it, and its place would be
   * taken for ever.
   */
  *#withJobs(taken: readonly Row[]): Script<readonly Row[]> {
    const ids = taken.filter((row) => row["input"] === null).map((row) => text(row, "id"));
    if (ids.length === 0) return taken;
    const gone = yield { name: "dropStrays", params: { session: this.#ask.session, ids } };
    this.strays += gone.length;
    return taken.filter((row) => row["input"] !== null);
  }

  /** Takes in what was given back, and wakes the rotations for which something has changed. */
  *#takeWakeups(): Script<void> {
    const { now } = this.#ask;
    const { queues, names } = this.#params;
    const heard = yield { name: "takeWakeups", params: { now, queues, names } };
    if (heard.length === 0) return;
    // Without a job type: a lane that was full, all of whose turns may have slept for that.
    const full = heard.filter((row) => row["job_type"] === null).map((row) => number(row, "lane"));
    const rows = heard
      .filter((row) => row["job_type"] !== null)
      .map((row) => ({ lane: number(row, "lane"), jobType: number(row, "job_type"), at: number(row, "at") }));
    yield { name: "scheduleRotations", params: { now, rows, full, floors: this.#floors() } };
  }

  #rotationsOf(picked: readonly Row[]): Rotation[] {
    const lanes = new Map<number, Lane>();
    return picked.map((row) => {
      const id = number(row, "lane");
      const lane = lanes.get(id) ?? this.#laneOf(row);
      lanes.set(id, lane);
      return {
        queue: text(row, "queue"),
        group: text(row, "grp"),
        jobType: number(row, "job_type"),
        lane,
        vtime: number(row, "vtime"),
        asked: 0,
        got: 0,
      };
    });
  }

  #laneOf(row: Row): Lane {
    const limit = maybeNumber(row, "rate_limit");
    const perMs = maybeNumber(row, "rate_per");
    const rate = this.#late(limit === null || perMs === null ? null : { limit, perMs });
    const concurrency = maybeNumber(row, "concurrency");
    const running = number(row, "running");
    const starts = parseStarts(maybeText(row, "starts"));
    const paused = row["paused_at"] !== null;
    const places = concurrency === null ? Infinity : concurrency - running;
    const openings = rate === null ? Infinity : roomIn(starts, rate, number(row, "now")).room;
    return {
      id: number(row, "lane"),
      key: text(row, "key"),
      concurrency,
      running,
      rate,
      starts,
      weight: Math.max(1, number(row, "weight")),
      paused,
      room: paused ? 0 : Math.max(0, Math.min(places, openings)),
      taken: 0,
    };
  }

  /** Says how many jobs each rotation is asked for. */
  #share(rotations: readonly Rotation[]): void {
    // Virtual times are kept for each job type; of several names each begins where its own furthest-behind lane is.
    const bases = new Map<number, number>();
    for (const { jobType, vtime } of rotations)
      bases.set(jobType, Math.min(bases.get(jobType) ?? Infinity, vtime));
    const queueRoom = new Map(
      [...this.#limitedQueues.values()].map((limitedQueue) => [limitedQueue.name, limitedQueue.room]),
    );
    const free = new Map<string, number>();
    const laneRoom = new Map(rotations.map(({ lane }) => [lane, lane.room]));
    const askers = rotations.map((rotation) => {
      const { queue, lane, jobType } = rotation;
      const rated = lane.rate !== null || (this.#limitedQueues.get(queue)?.rate ?? null) !== null;
      if (!free.has(queue)) free.set(queue, this.#free?.get(queue) ?? Infinity);
      return {
        group: rotation.group,
        vtime: rotation.vtime - (bases.get(jobType) ?? 0),
        weight: lane.weight,
        most: () =>
          Math.min(
            laneRoom.get(lane) ?? 0,
            queueRoom.get(queue) ?? Infinity,
            rated ? (free.get(queue) ?? Infinity) : Infinity,
          ),
        give: () => {
          laneRoom.set(lane, (laneRoom.get(lane) ?? 0) - 1);
          if (queueRoom.has(queue)) queueRoom.set(queue, (queueRoom.get(queue) ?? 0) - 1);
          free.set(queue, (free.get(queue) ?? Infinity) - 1);
        },
      };
    });
    this.#order = shareOut(askers, this.#room).map((i) => rotations[i] as Rotation);
    for (const rotation of this.#order) rotation.asked += 1;
  }

  #takenFrom(rotations: readonly Rotation[], taken: readonly Row[], instant: number): void {
    const byLane = Map.groupBy(rotations, ({ lane }) => lane.id);
    const given = new Map<Rotation, Row[]>(rotations.map((rotation) => [rotation, []]));
    for (const row of taken) {
      const jobType = number(row, "job_type");
      const rotation = byLane.get(number(row, "lane_id"))?.find((one) => one.jobType === jobType);
      if (rotation === undefined) throw new TypeError("a lane returned an unexpected job");
      row["lane"] = rotation.lane.key;
      given.get(rotation)?.push(row);
      this.#note(row, rotation.queue, rotation.lane.rate, instant);
    }
    for (const [rotation, rows] of given) {
      rotation.got = rows.length;
      rotation.lane.taken += rows.length;
      this.#took(rotation.queue, rows.length);
      given.set(rotation, inClaimOrder(rows, this.#params.direction));
    }
    // Lanes take turns within the batch too: it may be long.
    for (const rotation of this.#order) {
      const row = given.get(rotation)?.shift();
      if (row !== undefined) this.rows.push(row);
    }
  }

  /**
   * Where each rotation stands now, and what of the counts was not got. Mostly nothing is to be written.
   *
   * @returns whether nothing was got, and a rotation sleeps for that
   */
  *#moveRotations(rotations: readonly Rotation[], picked: readonly Row[]): Script<boolean> {
    if (rotations.length === 0) return false;
    const { now } = this.#ask;
    const instant = number(picked[0] as Row, "now");
    const fruitless = rotations.every(({ got }) => got === 0);
    const short = fruitless ? rotations : rotations.filter((rotation) => rotation.got < rotation.asked);
    const heads = new Map<string, number | null>(short.map((rotation) => [rotationKey(rotation), null]));
    if (short.length > 0) {
      for (const row of yield { name: "laneHeads", params: { now, rotations: short.map(rotationRow) } })
        heads.set(`${number(row, "lane")}:${number(row, "job_type")}`, number(row, "at"));
    }
    const moves: RowList[number][] = [];
    let slept = false;
    for (const rotation of rotations) {
      const next = standing(rotation, instant, heads.get(rotationKey(rotation)));
      if (rotation.got === rotation.asked && next.active) continue;
      slept ||= !next.active;
      moves.push({
        lane: rotation.lane.id,
        jobType: rotation.jobType,
        by: (rotation.got - rotation.asked) / rotation.lane.weight,
        active: next.active,
        wakeAt: next.wakeAt,
      });
    }
    const missing = new Map<Lane, number>();
    for (const { lane, got, asked } of rotations) missing.set(lane, (missing.get(lane) ?? 0) + got - asked);
    const lanes = [...missing]
      .filter(([lane, n]) => n !== 0 || (lane.rate !== null && lane.taken > 0))
      .map(([lane, n]) => ({ lane: lane.id, n, starts: startsText(lane, instant) }));
    if (moves.length > 0 || lanes.length > 0)
      yield { name: "moveRotations", params: { now, lanes, rotations: moves } };
    return fruitless && slept;
  }

  *writeLimitedQueues(): Script<void> {
    const rows: RowList[number][] = [];
    for (const limitedQueue of this.#limitedQueues.values()) {
      const { name, now, taken, uncountedJobs } = limitedQueue;
      const starts = limitedQueue.rate === null ? null : startsText(limitedQueue, now);
      const full =
        limitedQueue.concurrency !== null &&
        limitedQueue.running + uncountedJobs + taken >= limitedQueue.concurrency;
      const window =
        limitedQueue.rate === null
          ? null
          : roomIn(startsOf(limitedQueue, limitedQueue.rate, now), limitedQueue.rate, now);
      let limitedUntil: number | null = null;
      if (full) limitedUntil = uncountedJobs > 0 ? now + UNCOUNTED_JOB_POLL_MS : WAITING_AT;
      else if (window !== null && window.room === 0) limitedUntil = window.opensAt;
      const adopted =
        limitedQueue.adoptUntil !== null && limitedQueue.adoptUntil <= now && uncountedJobs === 0;
      if (taken === 0 && limitedQueue.returned === 0 && limitedUntil === null && !adopted) continue;
      rows.push({
        queue: name,
        n: taken - limitedQueue.returned,
        starts,
        limitedUntil,
        adoptUntil: adopted ? null : limitedQueue.adoptUntil,
      });
    }
    if (rows.length > 0) yield { name: "updateLimitedQueues", params: { rows } };
  }

  #took(queue: string, n: number): void {
    const group = this.#groupOf(queue);
    this.#room.set(group, (this.#room.get(group) ?? 0) - n);
    if (this.#free !== null) this.#free.set(queue, (this.#free.get(queue) ?? 0) - n);
    const limitedQueue = this.#limitedQueues.get(queue);
    if (limitedQueue === undefined) return;
    limitedQueue.room -= n;
    limitedQueue.taken += n;
  }

  #note(row: Row, queue: string, laneRate: LateRate | null, laneAt: number): void {
    const limitedQueue = this.#limitedQueues.get(queue);
    const rates = [laneRate, limitedQueue?.rate ?? null].filter((rate) => rate !== null);
    if (rates.length === 0) return;
    this.rated.set(text(row, "id"), {
      beginsMs: Math.min(...rates.map(({ late }) => late.beginsMs)),
      at: {
        lane: laneAt + (laneRate?.late.startsMs ?? 0),
        queue: (limitedQueue?.now ?? 0) + (limitedQueue?.rate?.late.startsMs ?? 0),
      },
    });
  }

  /** Kept with the claim: the instants at which its jobs count as starts. A release of a claim whose answer was lost needs them. */
  #ratesOf(queues: readonly string[], lanes: readonly Lane[], instant: number): string | null {
    const at: KeptRates = { lanes: {}, queues: {} };
    for (const { id, rate } of lanes) if (rate !== null) at.lanes[id] = instant + rate.late.startsMs;
    for (const queue of queues) {
      const limitedQueue = this.#limitedQueues.get(queue);
      if (limitedQueue === undefined || limitedQueue.rate === null) continue;
      at.queues[queue] = limitedQueue.now + limitedQueue.rate.late.startsMs;
    }
    const rated = Object.keys(at.lanes).length + Object.keys(at.queues).length > 0;
    return rated ? JSON.stringify(at) : null;
  }

  /** All queues share one limit. */
  get #shared(): boolean {
    return this.#ask.scope.queues === "all" || Array.isArray(this.#ask.scope.queues);
  }

  #groupOf(queue: string): string {
    return this.#shared ? "" : queue;
  }

  #late(rate: Rate | null): LateRate | null {
    if (rate === null) return null;
    const { claimsTakeMs } = this.#ask;
    return { ...rate, late: claimsTakeMs === null ? IN_NO_TIME : lateness(rate, claimsTakeMs) };
  }
}

/** A queue's limits; null when its settings are not ours (a hand in the tables). */
export function limitsOf(row: Row): { concurrency: number | null; rate: Rate | null } | null {
  const { concurrency, rate } = queueSettings({ cool_base_ms: null, cool_max_ms: null, ...row });
  const good = (value: unknown): boolean => Number.isInteger(value) && (value as number) > 0;
  if (concurrency !== null && !good(concurrency)) return null;
  if (rate !== null && !(good(rate.limit) && good(rate.perMs))) return null;
  return concurrency === null && rate === null ? null : { concurrency, rate };
}

/** Whether a rotation may give more now; if not, when it may by itself. `head`: when its first job is due; undefined: nobody asked. */
function standing(
  rotation: Rotation,
  now: number,
  head: number | null | undefined,
): { active: boolean; wakeAt: number | null } {
  const { lane } = rotation;
  const asleep = (wakeAt: number | null) => ({ active: false, wakeAt });
  if (lane.paused) return asleep(null);
  if (lane.concurrency !== null && lane.running + lane.taken >= lane.concurrency)
    return asleep(now + FULL_POLL_MS);
  if (lane.rate !== null) {
    const { room, opensAt } = roomIn(startsOf(lane, lane.rate, now), lane.rate, now);
    if (room === 0) return asleep(opensAt);
  }
  if (head === undefined) return { active: true, wakeAt: null };
  if (head === null || head >= WAITING_AT) return asleep(null);
  return head > now ? asleep(head) : { active: true, wakeAt: null };
}

type Taking = { readonly starts: Starts; readonly rate: LateRate | null; readonly taken: number };

/** Its starts with those of this claim. */
function startsOf(of: Taking, rate: LateRate, now: number): Starts {
  return started(of.starts, rate, now, of.taken, now + rate.late.startsMs);
}

function startsText(of: Taking, now: number): string | null {
  return of.rate === null ? null : JSON.stringify(startsOf(of, of.rate, now));
}

/**
 * Virtual times say nothing about lanes of different names, each of which has one that is furthest behind: where there is room for one job only,
 * the first of them would get it each time. Two claims for each name, because every other claim may have none for lanes.
 */
function jobTypesInRotation(rotations: readonly Rotation[], claimNumber: number): Rotation[] {
  const jobTypes = [...Map.groupBy(rotations, ({ jobType }) => jobType).values()];
  const first = Math.floor(claimNumber / 2) % Math.max(1, jobTypes.length);
  return [...jobTypes.slice(first), ...jobTypes.slice(0, first)].flat();
}

function rotationKey({ lane, jobType }: Rotation): string {
  return `${lane.id}:${jobType}`;
}

function rotationRow(rotation: Rotation): RowList[number] {
  return {
    lane: rotation.lane.id,
    jobType: rotation.jobType,
    limit: rotation.asked,
    by: rotation.asked / rotation.lane.weight,
  };
}

/**
 * Gives back what settled jobs were counted in, in the transaction that settles them; those that go back to a lane ring.
 * Answers with the queues in which something seemed full, where somebody may be waiting.
 *
 * @param throttled - jobs whose queues are cooled down after this
 */
export function* uncount(
  transitions: readonly Transition[],
  moved: ReadonlySet<string>,
  throttled: readonly string[] = [],
): Script<string[]> {
  const lanes = new Map<string, { lane: number; jobType: number; n: number }>();
  const queues = new Map<string, number>();
  const back: string[] = [];
  const laneStarts = new Map<number, number[]>();
  const queueStarts = new Map<string, number[]>();
  const unused = new Map<string, Unused>();
  for (const { id, move, counted, unstarted } of transitions) {
    if (counted === undefined || !moved.has(id)) continue;
    const { lane, jobType, queue, at, budget } = counted;
    if (unstarted === true && budget !== undefined) {
      const { name, tokens, at: takenAt } = budget;
      const more = unused.get(name) ?? { tokens: 0, at: takenAt };
      unused.set(name, { tokens: more.tokens + tokens, at: Math.min(more.at, takenAt) });
    }
    if (lane !== null) {
      const key = `${lane}:${jobType}`;
      lanes.set(key, { lane, jobType, n: (lanes.get(key)?.n ?? 0) + 1 });
      if (move === "again" || move === "wait") back.push(id);
      if (unstarted === true && at !== undefined)
        laneStarts.set(lane, [...(laneStarts.get(lane) ?? []), at.lane]);
    }
    if (queue !== null) {
      queues.set(queue, (queues.get(queue) ?? 0) + 1);
      if (unstarted === true && at !== undefined)
        queueStarts.set(queue, [...(queueStarts.get(queue) ?? []), at.queue]);
    }
  }
  const freed = new Set<string>();
  // Before the rows of lanes and queues, as claims lock them: else the two could wait for each other.
  if (unused.size > 0) yield* returnTokens(unused);
  if (lanes.size > 0)
    for (const row of yield { name: "returnLaneCapacity", params: { rows: [...lanes.values()] } })
      freed.add(text(row, "queue"));
  if (back.length > 0) yield { name: "wakeLanesOfJobs", params: { ids: back } };
  if (queues.size > 0) {
    const rows = [...queues].map(([queue, n]) => ({ queue, n }));
    for (const row of yield { name: "returnQueueCapacity", params: { rows } }) freed.add(text(row, "queue"));
  }
  yield* returnStarts(laneStarts, queueStarts, throttled);
  return [...freed];
}

/**
 * The starts of jobs that were claimed and given back before they started are given back to their rates. Queues that are cooled down
 * next are locked with the others, in one order.
 */
function* returnStarts(
  lanes: ReadonlyMap<number, readonly number[]>,
  queues: ReadonlyMap<string, readonly number[]>,
  throttled: readonly string[],
): Script<void> {
  if (lanes.size > 0) {
    const ids = [...lanes.keys()].sort((a, b) => a - b);
    const kept = startsBy(yield { name: "lockLanes", params: { ids } }, "id");
    const rows = ids.flatMap((lane) => {
      const starts = kept.get(String(lane)) ?? null;
      return starts === null ? [] : [{ lane, starts: lessStarts(starts, lanes.get(lane) ?? []) }];
    });
    if (rows.length > 0) yield { name: "laneStarts", params: { rows } };
  }
  if (queues.size > 0) {
    const names = [...queues.keys()].sort();
    const kept = startsBy(yield { name: "lockQueues", params: { names, throttled } }, "name");
    const rows = names.flatMap((queue) => {
      const starts = kept.get(queue) ?? null;
      return starts === null ? [] : [{ queue, starts: lessStarts(starts, queues.get(queue) ?? []) }];
    });
    if (rows.length > 0) yield { name: "queueStarts", params: { rows } };
  }
}

function lessStarts(starts: string, claimedAt: readonly number[]): string {
  return JSON.stringify(givenBack(parseStarts(starts), claimedAt));
}

function startsBy(rows: readonly Row[], key: string): Map<string, string | null> {
  return new Map(rows.map((row) => [text(row, key), maybeText(row, "starts")]));
}
