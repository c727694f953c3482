/**
 * Limits: how jobs with a lane, and jobs of a queue that has limits, are claimed and counted.
 *
 *   enqueue ──leaves a bell──▶ hearBells ──▶ turn: active, by virtual time ──pick──▶ lane: how many may it give? ──take──▶ held
 *                                  ▲            │ empty · full · rate used up · paused                                       │
 *                                  │            ▼                                                                           │
 *                                  └─ bell ── asleep (wake_at: when its head is due or its rate opens) ◀──settle: count − n──┘
 *
 * A *lane* row has the limits and the count of a (queue, key); a *turn* is its place in the order of fairness for one line
 * (a kind that nobody serves can fill lanes without standing in anybody's way); a *bell* says that something has changed
 * for a turn. A *gate* is the row of a queue with limits. Only turns that may give a job now are active, so a claim never
 * walks over full, empty or waiting lanes, however many there are.
 *
 * Invariants: a claim counts in its own transaction, under the lock of the row, before anything runs; a settle leaves what
 * it gives back in its own transaction, and the next claim takes that in before it counts. So a count is never too low, at
 * no instant, and too high for no longer than until somebody asks. What a row was counted in is kept in the row (`counted`), so that
 * settling and taking over give back exactly that, whatever has been set meanwhile (starts of rates: with the claim, `rates`); jobs that ran before their queue had
 * limits are *ghosts*, and count until they end. A claim that brings nothing writes nothing.
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
  lookedBack,
  mustLookBack,
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
const GHOST_POLL_MS = 250;
const IN_NO_TIME: Lateness = { startsMs: 0, beginsMs: 0 };

/** What one claim under limits asks for. */
export interface GatedAsk {
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
  readonly turn: number;
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
export interface GatedClaim {
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

interface Gate {
  readonly name: string;
  readonly concurrency: number | null;
  readonly rate: LateRate | null;
  /** Without what has been given back. */
  readonly running: number;
  readonly refund: number;
  readonly ghosts: number;
  readonly starts: Starts;
  readonly adoptUntil: number | null;
  readonly now: number;
  room: number;
  taken: number;
}

interface Turn {
  readonly queue: string;
  readonly group: string;
  readonly line: number;
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
export function* gatedClaim(ask: GatedAsk): Script<GatedClaim> {
  const claim = new Claiming(ask);
  if (ask.limited) yield* claim.lockGates();
  if (!ask.lanesFirst) yield* claim.takePlain();
  if (ask.laned) yield* claim.takeLaned();
  if (ask.lanesFirst) yield* claim.takePlain();
  yield* claim.closeGates();
  return claim;
}

class Claiming implements GatedClaim {
  readonly rows: Row[] = [];
  readonly rated = new Map<string, Rated>();
  readonly broken: string[] = [];
  readonly parts: TakenPart[] = [];
  strays = 0;
  readonly #ask: GatedAsk;
  readonly #params: ReturnType<typeof scopeParams>;
  readonly #gates = new Map<string, Gate>();
  /** Whose turn it was, one entry for each job that was asked for. */
  #order: readonly Turn[] = [];
  /** What each group of queues may still take. */
  readonly #room = new Map<string, number>();
  /** What each queue can start at once: a job with a rate must not wait in a worker's buffer. */
  readonly #free: Map<string, number> | null;

  constructor(ask: GatedAsk) {
    this.#ask = ask;
    this.#params = scopeParams(ask.scope);
    this.#free = ask.scope.free === undefined ? null : new Map(ask.scope.free);
    for (const row of this.#params.queues) this.#room.set(String(row["group"]), Number(row["limit"]));
  }

  *lockGates(): Script<void> {
    const { now } = this.#ask;
    const { queues } = this.#params;
    const rows = yield { name: "lockGates", params: { now, queues } };
    const adopting = rows.filter((row) => row["adopt_until"] !== null);
    const ghosts = new Map<string, number>();
    if (adopting.length > 0) {
      const names = adopting.map((row) => text(row, "name"));
      const young = adopting.filter((row) => number(row, "adopt_until") > number(row, "now"));
      if (young.length > 0) yield { name: "adopt", params: { names: young.map((row) => text(row, "name")) } };
      for (const row of yield { name: "ghosts", params: { names } })
        ghosts.set(text(row, "queue"), number(row, "n"));
    }
    const refunds = new Map<string, number>();
    if (rows.length > 0) {
      const names = rows.map((row) => text(row, "name"));
      for (const row of yield { name: "foldRefunds", params: { names } })
        refunds.set(text(row, "queue"), number(row, "n"));
    }
    for (const row of rows) {
      const name = text(row, "name");
      const gate = this.#gateOf(row, ghosts.get(name) ?? 0, refunds.get(name) ?? 0);
      if (gate === null) this.broken.push(text(row, "name"));
      else this.#gates.set(gate.name, gate);
    }
  }

  #gateOf(row: Row, ghosts: number, refund: number): Gate | null {
    const limits = limitsOf(row);
    if (limits === null) return null;
    const { concurrency } = limits;
    const rate = this.#late(limits.rate);
    const now = number(row, "now");
    const running = Math.max(0, number(row, "running") - refund);
    const starts = parseStarts(maybeText(row, "starts"));
    const places = concurrency === null ? Infinity : concurrency - running - ghosts;
    const openings = rate === null ? Infinity : roomIn(starts, rate, now).room;
    return {
      name: text(row, "name"),
      concurrency,
      rate,
      running,
      refund: number(row, "running") - running,
      ghosts,
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
    const gates = [...this.#gates.values()];
    for (const batch of this.#shared ? gates.map((gate) => [gate]) : [gates]) {
      const limits = new Map(
        batch.map((gate) => [gate.name, this.#most(gate)] as const).filter(([, limit]) => limit > 0),
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
        ask = asks.next(yield { name: "takeGated", params });
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

  #most(gate: Gate): number {
    const free = gate.rate === null || this.#free === null ? Infinity : (this.#free.get(gate.name) ?? 0);
    const { concurrency } = gate;
    const wave = concurrency === null || concurrency <= CLAIMED_WHOLE ? Infinity : Math.ceil(concurrency / 2);
    return Math.min(this.#room.get(this.#groupOf(gate.name)) ?? 0, gate.room, free, wave);
  }

  *takeLaned(): Script<void> {
    yield* this.#hearBells();
    const total = [...this.#room.values()].reduce((sum, room) => sum + room, 0);
    if (total === 0) return;
    // A lane that has run empty is active until a claim meets it, and must not keep that claim from the lanes behind it.
    let most = Math.min(total, MOST_LANES);
    while (yield* this.#takeTurns(most)) most = MOST_LANES;
  }

  /** True: it brought nothing, and put turns to sleep that stood before others. */
  *#takeTurns(mostTurns: number): Script<boolean> {
    const { now, session } = this.#ask;
    const { names, direction } = this.#params;
    const picked = yield* this.#pick(mostTurns);
    const turns = kindsByTurns(this.#turnsOf(picked), this.#ask.turn);
    this.#share(turns);
    const asked = turns.filter((turn) => turn.asked > 0);
    if (asked.length > 0) {
      const most = asked.reduce((max, turn) => Math.max(max, turn.asked), 0);
      const counted = [
        ...new Set(turns.filter(({ queue }) => this.#gates.has(queue)).map(({ line }) => line)),
      ];
      const instant = number(picked[0] as Row, "now");
      const rates = this.#ratesOf(
        asked.map(({ queue }) => queue),
        asked.map(({ lane }) => lane),
        instant,
      );
      const taken = yield {
        name: "takeLaned",
        params: { now, session, turns: asked.map(turnRow), names, direction, counted, most, rates },
      };
      this.#takenFrom(turns, yield* this.#withJobs(taken), instant);
    }
    return yield* this.#turned(turns, picked);
  }

  /** The turns that are furthest behind: from where they were a moment ago, or, where that is due, of all. */
  *#pick(most: number): Script<Row[]> {
    const { now, monotonic } = this.#ask;
    const { queues, names } = this.#params;
    const params = { now, queues, names, gates: [...this.#gates.keys()], most };
    const cursor = partOf(this.#ask.cursor, LANED);
    const floors = this.#floors();
    const mayLookAtAll = () => completeInMs(cursor.lookedBackAt, cursor.lookBackMs ?? 0, monotonic()) === 0;
    if (floors.length > 0 && !(mustLookBack(cursor, monotonic()) && mayLookAtAll())) {
      const picked = yield { name: "pickTurns", params: { ...params, floors } };
      if (picked.length > 0 || !mayLookAtAll()) return this.#risen(picked);
    }
    const startedMs = monotonic();
    const picked = yield { name: "pickTurns", params: { ...params, floors: [] } };
    lookedBack(cursor, picked, { startedMs, endedMs: monotonic() });
    return this.#risen(picked);
  }

  #floors(): RowList {
    const { turns } = partOf(this.#ask.cursor, LANED);
    return [...(turns ?? [])].map(([line, { from }]) => ({ line, vtime: from }));
  }

  /** The floors rise to where the furthest behind of these are, a moment later. */
  #risen(picked: Row[]): Row[] {
    const cursor = partOf(this.#ask.cursor, LANED);
    const turns = (cursor.turns ??= new Map());
    const at = this.#ask.monotonic();
    const least = new Map<number, number>();
    for (const row of picked) {
      const line = number(row, "line");
      least.set(line, Math.min(least.get(line) ?? Infinity, number(row, "vtime")));
    }
    for (const [line, vtime] of least) {
      const before = turns.get(line);
      if (before === undefined) turns.set(line, { from: -Number.MAX_VALUE, next: vtime, nextAt: at });
      else if (vtime < before.from) turns.set(line, { from: vtime, next: vtime, nextAt: at });
      else if (at >= before.nextAt + LATE_MS) turns.set(line, { from: before.next, next: vtime, nextAt: at });
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

  /** Takes in what was given back, and wakes the turns for which something has changed. */
  *#hearBells(): Script<void> {
    const { now } = this.#ask;
    const { queues, names } = this.#params;
    const heard = yield { name: "hearBells", params: { now, queues, names } };
    if (heard.length === 0) return;
    // Without a line: a lane that was full, all of whose turns may have slept for that.
    const full = heard.filter((row) => row["line"] === null).map((row) => number(row, "lane"));
    const rows = heard
      .filter((row) => row["line"] !== null)
      .map((row) => ({ lane: number(row, "lane"), line: number(row, "line"), at: number(row, "at") }));
    yield { name: "wakeTurns", params: { now, rows, full, floors: this.#floors() } };
  }

  #turnsOf(picked: readonly Row[]): Turn[] {
    const lanes = new Map<number, Lane>();
    return picked.map((row) => {
      const id = number(row, "lane");
      const lane = lanes.get(id) ?? this.#laneOf(row);
      lanes.set(id, lane);
      return {
        queue: text(row, "queue"),
        group: text(row, "grp"),
        line: number(row, "line"),
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

  /** Says how many jobs each turn is asked for. */
  #share(turns: readonly Turn[]): void {
    // Virtual times are kept for each line; of several kinds each begins where its own furthest-behind lane is.
    const bases = new Map<number, number>();
    for (const { line, vtime } of turns) bases.set(line, Math.min(bases.get(line) ?? Infinity, vtime));
    const gateRoom = new Map([...this.#gates.values()].map((gate) => [gate.name, gate.room]));
    const free = new Map<string, number>();
    const laneRoom = new Map(turns.map(({ lane }) => [lane, lane.room]));
    const askers = turns.map((turn) => {
      const { queue, lane, line } = turn;
      const rated = lane.rate !== null || (this.#gates.get(queue)?.rate ?? null) !== null;
      if (!free.has(queue)) free.set(queue, this.#free?.get(queue) ?? Infinity);
      return {
        group: turn.group,
        vtime: turn.vtime - (bases.get(line) ?? 0),
        weight: lane.weight,
        most: () =>
          Math.min(
            laneRoom.get(lane) ?? 0,
            gateRoom.get(queue) ?? Infinity,
            rated ? (free.get(queue) ?? Infinity) : Infinity,
          ),
        give: () => {
          laneRoom.set(lane, (laneRoom.get(lane) ?? 0) - 1);
          if (gateRoom.has(queue)) gateRoom.set(queue, (gateRoom.get(queue) ?? 0) - 1);
          free.set(queue, (free.get(queue) ?? Infinity) - 1);
        },
      };
    });
    this.#order = shareOut(askers, this.#room).map((i) => turns[i] as Turn);
    for (const turn of this.#order) turn.asked += 1;
  }

  #takenFrom(turns: readonly Turn[], taken: readonly Row[], instant: number): void {
    const byLane = Map.groupBy(turns, ({ lane }) => lane.id);
    const given = new Map<Turn, Row[]>(turns.map((turn) => [turn, []]));
    for (const row of taken) {
      const line = number(row, "line");
      const turn = byLane.get(number(row, "lane_id"))?.find((one) => one.line === line);
      if (turn === undefined) throw new TypeError("a lane returned an unexpected job");
      row["lane"] = turn.lane.key;
      given.get(turn)?.push(row);
      this.#note(row, turn.queue, turn.lane.rate, instant);
    }
    for (const [turn, rows] of given) {
      turn.got = rows.length;
      turn.lane.taken += rows.length;
      this.#took(turn.queue, rows.length);
      given.set(turn, inClaimOrder(rows, this.#params.direction));
    }
    // Lanes take turns within the batch too: it may be long.
    for (const turn of this.#order) {
      const row = given.get(turn)?.shift();
      if (row !== undefined) this.rows.push(row);
    }
  }

  /**
   * Where each turn stands now, and what of the counts was not got. Mostly nothing is to be written.
   *
   * @returns whether nothing was got, and a turn sleeps for that
   */
  *#turned(turns: readonly Turn[], picked: readonly Row[]): Script<boolean> {
    if (turns.length === 0) return false;
    const { now } = this.#ask;
    const instant = number(picked[0] as Row, "now");
    const fruitless = turns.every(({ got }) => got === 0);
    const short = fruitless ? turns : turns.filter((turn) => turn.got < turn.asked);
    const heads = new Map<string, number | null>(short.map((turn) => [turnKey(turn), null]));
    if (short.length > 0) {
      for (const row of yield { name: "laneHeads", params: { now, turns: short.map(turnRow) } })
        heads.set(`${number(row, "lane")}:${number(row, "line")}`, number(row, "at"));
    }
    const moves: RowList[number][] = [];
    let slept = false;
    for (const turn of turns) {
      const next = standing(turn, instant, heads.get(turnKey(turn)));
      if (turn.got === turn.asked && next.active) continue;
      slept ||= !next.active;
      moves.push({
        lane: turn.lane.id,
        line: turn.line,
        by: (turn.got - turn.asked) / turn.lane.weight,
        active: next.active,
        wakeAt: next.wakeAt,
      });
    }
    const missing = new Map<Lane, number>();
    for (const { lane, got, asked } of turns) missing.set(lane, (missing.get(lane) ?? 0) + got - asked);
    const lanes = [...missing]
      .filter(([lane, n]) => n !== 0 || (lane.rate !== null && lane.taken > 0))
      .map(([lane, n]) => ({ lane: lane.id, n, starts: startsText(lane, instant) }));
    if (moves.length > 0 || lanes.length > 0) yield { name: "turned", params: { now, lanes, turns: moves } };
    return fruitless && slept;
  }

  *closeGates(): Script<void> {
    const rows: RowList[number][] = [];
    for (const gate of this.#gates.values()) {
      const { name, now, taken, ghosts } = gate;
      const starts = gate.rate === null ? null : startsText(gate, now);
      const full = gate.concurrency !== null && gate.running + ghosts + taken >= gate.concurrency;
      const window = gate.rate === null ? null : roomIn(startsOf(gate, gate.rate, now), gate.rate, now);
      let gateAt: number | null = null;
      if (full) gateAt = ghosts > 0 ? now + GHOST_POLL_MS : WAITING_AT;
      else if (window !== null && window.room === 0) gateAt = window.opensAt;
      const adopted = gate.adoptUntil !== null && gate.adoptUntil <= now && ghosts === 0;
      if (taken === 0 && gate.refund === 0 && gateAt === null && !adopted) continue;
      rows.push({
        queue: name,
        n: taken - gate.refund,
        starts,
        gateAt,
        adoptUntil: adopted ? null : gate.adoptUntil,
      });
    }
    if (rows.length > 0) yield { name: "gated", params: { rows } };
  }

  #took(queue: string, n: number): void {
    const group = this.#groupOf(queue);
    this.#room.set(group, (this.#room.get(group) ?? 0) - n);
    if (this.#free !== null) this.#free.set(queue, (this.#free.get(queue) ?? 0) - n);
    const gate = this.#gates.get(queue);
    if (gate === undefined) return;
    gate.room -= n;
    gate.taken += n;
  }

  #note(row: Row, queue: string, laneRate: LateRate | null, laneAt: number): void {
    const gate = this.#gates.get(queue);
    const rates = [laneRate, gate?.rate ?? null].filter((rate) => rate !== null);
    if (rates.length === 0) return;
    this.rated.set(text(row, "id"), {
      beginsMs: Math.min(...rates.map(({ late }) => late.beginsMs)),
      at: {
        lane: laneAt + (laneRate?.late.startsMs ?? 0),
        queue: (gate?.now ?? 0) + (gate?.rate?.late.startsMs ?? 0),
      },
    });
  }

  /** Kept with the claim: the instants at which its jobs count as starts. A release of a claim whose answer was lost needs them. */
  #ratesOf(queues: readonly string[], lanes: readonly Lane[], instant: number): string | null {
    const at: KeptRates = { lanes: {}, queues: {} };
    for (const { id, rate } of lanes) if (rate !== null) at.lanes[id] = instant + rate.late.startsMs;
    for (const queue of queues) {
      const gate = this.#gates.get(queue);
      if (gate === undefined || gate.rate === null) continue;
      at.queues[queue] = gate.now + gate.rate.late.startsMs;
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

/** Whether a turn may give more now; if not, when it may by itself. `head`: when its first job is due; undefined: nobody asked. */
function standing(
  turn: Turn,
  now: number,
  head: number | null | undefined,
): { active: boolean; wakeAt: number | null } {
  const { lane } = turn;
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
 * Virtual times say nothing about lanes of different kinds, each of which has one that is furthest behind: where there is room for one job only,
 * the first of them would get it each time. Two claims for each kind, because every other claim may have none for lanes.
 */
function kindsByTurns(turns: readonly Turn[], turn: number): Turn[] {
  const kinds = [...Map.groupBy(turns, ({ line }) => line).values()];
  const first = Math.floor(turn / 2) % Math.max(1, kinds.length);
  return [...kinds.slice(first), ...kinds.slice(0, first)].flat();
}

function turnKey({ lane, line }: Turn): string {
  return `${lane.id}:${line}`;
}

function turnRow(turn: Turn): RowList[number] {
  return {
    lane: turn.lane.id,
    line: turn.line,
    limit: turn.asked,
    by: turn.asked / turn.lane.weight,
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
  const lanes = new Map<string, { lane: number; line: number; n: number }>();
  const queues = new Map<string, number>();
  const back: string[] = [];
  const laneStarts = new Map<number, number[]>();
  const queueStarts = new Map<string, number[]>();
  const unused = new Map<string, Unused>();
  for (const { id, move, counted, unstarted } of transitions) {
    if (counted === undefined || !moved.has(id)) continue;
    const { lane, line, queue, at, budget } = counted;
    if (unstarted === true && budget !== undefined) {
      const { name, tokens, at: takenAt } = budget;
      const more = unused.get(name) ?? { tokens: 0, at: takenAt };
      unused.set(name, { tokens: more.tokens + tokens, at: Math.min(more.at, takenAt) });
    }
    if (lane !== null) {
      const key = `${lane}:${line}`;
      lanes.set(key, { lane, line, n: (lanes.get(key)?.n ?? 0) + 1 });
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
    for (const row of yield { name: "refundLanes", params: { rows: [...lanes.values()] } })
      freed.add(text(row, "queue"));
  if (back.length > 0) yield { name: "ringJobs", params: { ids: back } };
  if (queues.size > 0) {
    const rows = [...queues].map(([queue, n]) => ({ queue, n }));
    for (const row of yield { name: "refundQueues", params: { rows } }) freed.add(text(row, "queue"));
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
