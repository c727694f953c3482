/**
 * What a worker does about breakers: counts outcomes, keeps jobs of an open breaker from running, and sends the probe.
 *
 *   settled ──count──▶ the row (shared by all processes) ──opened──▶ here: not claimed · elsewhere: told, or read within a second
 *   half-open ──this session wins the probe──▶ one job is claimed and run ──▶ its outcome closes the breaker, or opens it anew
 *
 * A breaker of a queue or a kind keeps it out of the claim. A breaker of a key cannot: its jobs are claimed among others,
 * and one that meets an open breaker is released without using an attempt until the breaker may be tried.
 *
 * Invariants: a worker none of whose names and queues has a breaker sends nothing; over all processes one session at a
 * time has the probe of a breaker, for as long as its lease lives, and one that it may have won without being told is given
 * back until the database has answered; what was read is older than a second at no claim, and
 * cooldowns are at least that, so nobody takes a half-open breaker for a closed one; nothing here rejects.
 * Not here: the rule (limits/rules/breaker-rule.ts), the rows (limits/breaker-rows.ts).
 */
import type { Clock } from "../../clock.ts";
import type { AnyJob } from "../../jobs/define-job.ts";
import type { ClaimedJob } from "../../jobs/job.ts";
import type { Logger } from "../../logger.ts";
import { breakerKey, type Rule } from "../../limits/rules/breaker-rule.ts";
import { describeFailure } from "../../jobs/failure.ts";
import type { Store } from "../../storage/store.ts";
import type { BreakerCount, BreakerState } from "../../limits/store.ts";
import type { Outcome, Settlement } from "../../jobs/outcome.ts";
import { troubleOf } from "../../storage/trouble.ts";
import { decodeJson } from "../../values/json.ts";
import type { Passage, StartGuard } from "./guard.ts";

export interface WorkerBreakersDeps {
  readonly store: Pick<Store, "breakers" | "wake">;
  readonly clock: Clock;
  readonly log: Logger;
  readonly workerId: string;
  readonly definitions: ReadonlyMap<string, AnyJob>;
  /** The rule of a queue, from its live settings. */
  readonly queueRule: (queue: string) => Rule | null;
  readonly queues: readonly string[];
  readonly onOpened: (state: BreakerState) => void;
  readonly onClosed: (state: BreakerState) => void;
  /** Nothing that has ended waits to be settled. */
  readonly idle: () => boolean;
  /** Something may be claimable that was not. */
  readonly onChange: () => void;
}

const freshMs = 1_000;
const retryProbeMs = 1_000;
const firstCountMs = 100;
const longestCountMs = 1_000;
/** A counted error is for operators to see, not to keep. */
const mostErrorChars = 1_024;
const passes: Passage = { go: true };

/** A breaker that is not closed, as this worker last saw it. */
interface Known {
  /** By the monotonic clock. */
  openUntil: number;
  probing: boolean;
}

/** A machine's step that moves with a delay has done its work: it tells as much about a failing source as a job that is done. */
function succeeded({ kind }: Outcome): boolean {
  return kind === "succeeded" || kind === "moved";
}

/** A probe that this session has, may have won or not yet given back, and the job that it is tried with. */
interface Probe {
  readonly job: string | null;
}

/** The breakers of one worker. */
export class WorkerBreakers implements StartGuard {
  readonly #deps: WorkerBreakersDeps;
  readonly #open = new Map<string, Known>();
  /** How many batches were counted. */
  #batches = 0;
  readonly #probes = new Map<string, Probe>();
  readonly #definitions: readonly AnyJob[];
  /**
   * Failures in a row: those that ended here and may not be counted yet, or (`at`, by the monotonic clock) what the row had
   * when the last of them was.
   */
  readonly #streaks = new Map<string, { n: number; at: number | null }>();
  #readAt = -Infinity;
  #reading: Promise<void> | null = null;

  constructor(deps: WorkerBreakersDeps) {
    this.#deps = deps;
    this.#definitions = [...deps.definitions.values()].filter(({ breaker }) => breaker !== null);
  }

  /** Whether this worker has anything to do with breakers. */
  get any(): boolean {
    return (
      this.#definitions.length > 0 || this.#deps.queues.some((queue) => this.#deps.queueRule(queue) !== null)
    );
  }

  /** What other processes have opened and closed is read anew before the next claim. */
  forget(): void {
    this.#readAt = -Infinity;
  }

  /** A session that is gone has no probes. */
  sessionLost(): void {
    this.#probes.clear();
    this.forget();
  }

  /** Before a claim: reads what others know, where that is not fresh. */
  async refresh(): Promise<void> {
    if (this.#deps.clock.monotonic() - this.#readAt < freshMs) return;
    this.#reading ??= this.#read().finally(() => (this.#reading = null));
    await this.#reading;
  }

  async #read(): Promise<void> {
    const startedAt = this.#deps.clock.monotonic();
    try {
      const states = await this.#deps.store.breakers.list(null);
      // One that this process has opened by itself stays until the row has counted it.
      for (const key of this.#open.keys()) if (this.#streaks.get(key)?.at !== null) this.#open.delete(key);
      for (const state of states) if (state.openUntil !== null) this.#learn(state);
      this.#readAt = startedAt;
    } catch (error) {
      this.#deps.log.debug(
        { worker: this.#deps.workerId, error: describeFailure(error).message },
        "the breakers could not be read",
      );
    }
  }

  #learn(state: BreakerState): void {
    const { clock } = this.#deps;
    if (state.openUntil === null) {
      this.#open.delete(state.key);
      return;
    }
    // Kept by the monotonic clock; the database's may differ from this process's, so only the difference is taken.
    const leftMs = state.state === "half-open" ? 0 : state.openUntil.getTime() - clock.now();
    this.#open.set(state.key, {
      openUntil: clock.monotonic() + Math.max(0, leftMs),
      probing: state.probing,
    });
  }

  /** What a claim must leave out now; and when the first of it may be tried. */
  closed(): { queues: ReadonlySet<string>; names: ReadonlySet<string>; tryInMs: number | null } {
    const queues = new Set<string>();
    const names = new Set<string>();
    let tryAt = Infinity;
    const look = (key: string, into: Set<string>, name: string): void => {
      const known = this.#open.get(key);
      if (known === undefined) return;
      into.add(name);
      tryAt = Math.min(tryAt, known.openUntil);
    };
    for (const queue of this.#deps.queues)
      if (this.#deps.queueRule(queue) !== null) look(breakerKey.queue(queue), queues, queue);
    for (const { name, breaker } of this.#definitions)
      if (breaker?.key === null) look(breakerKey.name(name), names, name);
    const tryInMs = tryAt === Infinity ? null : Math.max(0, tryAt - this.#deps.clock.monotonic());
    return { queues, names, tryInMs };
  }

  /**
   * A queue or a name whose breaker may be tried, if this session has won its probe: exactly one job of it may be
   * claimed. Null: nothing to try.
   */
  async probe(session: number): Promise<{ key: string; queue: string | null; name: string | null } | null> {
    const { clock, queues } = this.#deps;
    const candidates = [
      ...queues
        .filter((queue) => this.#deps.queueRule(queue) !== null)
        .map((queue) => ({ key: breakerKey.queue(queue), queue, name: null })),
      ...this.#definitions
        .filter(({ breaker }) => breaker?.key === null)
        .map(({ name }) => ({ key: breakerKey.name(name), queue: null, name })),
    ];
    for (const candidate of candidates) {
      const known = this.#open.get(candidate.key);
      if (known === undefined || known.openUntil > clock.monotonic() || this.#probes.has(candidate.key))
        continue;
      if (await this.#take(session, candidate.key, null)) return candidate;
      known.openUntil = clock.monotonic() + retryProbeMs;
    }
    return null;
  }

  /** Asks for a probe, once at a time in this process: the database gives it to the session that has it again. */
  async #take(session: number, key: string, job: string | null): Promise<boolean> {
    this.#probes.set(key, { job });
    try {
      if (await this.#deps.store.breakers.probe(session, key)) return true;
    } catch (error) {
      void this.giveBack(session, key); // it may have been won all the same
      throw error;
    }
    this.#probes.delete(key);
    return false;
  }

  /** This job was claimed to try it with. */
  assign(key: string, job: string): void {
    this.#probes.set(key, { job });
  }

  /**
   * These are not held any more, and no outcome of theirs will be counted: what opened a breaker here alone does not keep it open. Of
   * which breakers they were is not known here; from now on the rows say of all.
   */
  lost(jobs: readonly ClaimedJob[]): void {
    for (const { id, session } of jobs)
      for (const [key, probe] of this.#probes) if (probe.job === id) void this.giveBack(session, key);
    const at = this.#deps.clock.monotonic();
    for (const [key, { n, at: since }] of this.#streaks)
      if (since === null) this.#streaks.set(key, { n, at });
  }

  /**
   * There was no job to try it with. Until the database has answered, this worker tries the breaker with nothing else, and
   * asks again: nobody else may try it for as long as this session has its probe.
   */
  async giveBack(session: number, key: string): Promise<void> {
    const { store, clock } = this.#deps;
    const known = this.#open.get(key);
    if (known !== undefined) known.openUntil = clock.monotonic() + retryProbeMs;
    const given: Probe = { job: null };
    this.#probes.set(key, given);
    try {
      await store.breakers.unprobe(session, key);
      if (this.#probes.get(key) === given) this.#probes.delete(key);
    } catch (error) {
      if (troubleOf(error) === "permanent") return;
      const again = (): void => {
        if (this.#probes.get(key) === given) void this.giveBack(session, key);
      };
      clock.after(retryProbeMs, again, { unref: true });
    }
  }

  /** Whether a claimed job may run: at once, or (a key's breaker, half-open) after a question to the database. */
  passage(job: ClaimedJob): Passage | Promise<Passage> {
    const definition = this.#deps.definitions.get(job.name);
    for (const key of [breakerKey.queue(job.queue), breakerKey.name(job.name)]) {
      const known = this.#open.get(key);
      if (known === undefined) continue;
      const ruled =
        key === breakerKey.queue(job.queue)
          ? this.#deps.queueRule(job.queue) !== null
          : definition?.breaker?.key === null;
      if (!ruled) continue;
      // At once: while the breaker is not closed, no claim takes it again.
      if (this.#probes.get(key)?.job !== job.id) return { ...this.#waits(known, key), waitMs: 0 };
    }
    const key = this.#keyOf(job, definition);
    const known = key === null ? undefined : this.#open.get(key);
    if (key === null || known === undefined) return passes;
    if (known.openUntil > this.#deps.clock.monotonic()) return this.#waits(known, key);
    return this.#tryKey(job, key, known);
  }

  async #tryKey(job: ClaimedJob, key: string, known: Known): Promise<Passage> {
    const held = this.#probes.get(key);
    if (held !== undefined && held.job !== job.id) return this.#waits(known, key);
    try {
      if (held !== undefined || (await this.#take(job.session, key, job.id))) return passes;
    } catch {
      // Asked again with its next claim.
    }
    // Reset meanwhile, or somebody else's probe is running.
    this.forget();
    return this.#waits(known, key);
  }

  #waits(known: Known, key: string): Passage & { go: false } {
    const leftMs = known.openUntil - this.#deps.clock.monotonic();
    return {
      go: false,
      waitMs: Math.max(retryProbeMs, leftMs),
      reason: `the breaker ${key} is ${leftMs > 0 ? "open" : "half-open"}`,
    };
  }

  #keyOf(job: ClaimedJob, definition: AnyJob | undefined): string | null {
    const compute = definition?.breaker?.key ?? null;
    if (compute === null) return null;
    try {
      const key: unknown = compute(decodeJson(job.input, "input") as never);
      return typeof key === "string" && key !== "" ? breakerKey.key(job.name, key.slice(0, 512)) : null;
    } catch {
      return null; // a job whose key cannot be had is not kept from running: its own failure will tell
    }
  }

  /**
   * An attempt has ended here: the rule is kept at once in this process, before the row has counted it. Hundreds of jobs
   * that were claimed ahead would otherwise fail while that is on its way.
   */
  ended(job: ClaimedJob, outcome: Outcome): void {
    const bad = outcome.kind === "failed" || outcome.kind === "dead";
    if (!bad && !succeeded(outcome)) return;
    const now = this.#deps.clock.monotonic();
    for (const { key, rule } of this.#rulesOf(job)) {
      const known = this.#streaks.get(key);
      const before = known === undefined || (known.at !== null && now - known.at > freshMs) ? 0 : known.n;
      if (bad) this.#streaks.set(key, { n: before + 1, at: null });
      else this.#streaks.delete(key);
      if (bad && before + 1 >= rule.after && !this.#open.has(key))
        this.#open.set(key, { openUntil: now + rule.cooldownMs, probing: false });
    }
  }

  /** Counts what was settled. Never rejects. */
  async settled(settlements: readonly Settlement[]): Promise<void> {
    if (!this.any) return;
    const counts = new Map<string, { -readonly [K in keyof BreakerCount]: BreakerCount[K] }>();
    const ended: { session: number; key: string }[] = [];
    const probes = new Map<string, Probe>();
    let session: number | null = null;
    for (const { job, outcome } of settlements) {
      session = job.session;
      const good = succeeded(outcome);
      const bad = outcome.kind === "failed" || outcome.kind === "dead";
      for (const { key, rule } of this.#rulesOf(job)) {
        const probe = this.#probes.get(key);
        if (probe?.job === job.id) {
          if (good || bad) probes.set(key, probe);
          else ended.push({ session: job.session, key });
        }
        if (!good && !bad) continue;
        const count = counts.get(key) ?? { key, rule, failures: 0, succeeded: false, error: null };
        counts.set(key, count);
        if (bad) {
          count.failures += 1;
          count.error = outcome.failure.message.slice(0, mostErrorChars);
        } else Object.assign(count, { failures: 0, succeeded: true });
      }
    }
    for (const probe of ended) void this.giveBack(probe.session, probe.key);
    if (counts.size > 0 && session !== null)
      await this.#count(session, ++this.#batches, [...counts.values()], probes);
  }

  /**
   * Until the database has answered: a probe whose outcome is not counted leaves its breaker half-open for everybody, and a
   * breaker that is open here alone would never be tried. It is counted once however often it is sent.
   */
  async #count(
    session: number,
    batch: number,
    counts: readonly BreakerCount[],
    probes: ReadonlyMap<string, Probe>,
    tries = 0,
  ): Promise<void> {
    try {
      const counted = await this.#deps.store.breakers.count(session, batch, counts);
      for (const [key, probe] of probes) if (this.#probes.get(key) === probe) this.#probes.delete(key);
      const changed = counted.filter((breaker) => breaker.changed);
      for (const { state } of counted) this.#learn(state);
      for (const { state } of changed) this.#changed(state);
      if (this.#deps.idle()) this.#takeOver(counted.map(({ state }) => state));
      if (changed.length > 0) {
        this.#deps.store.wake({ kind: "settings" });
        this.#deps.onChange();
      }
    } catch (error) {
      this.#deps.log.warn(
        { worker: this.#deps.workerId, error: describeFailure(error).message },
        "a breaker could not count an outcome",
      );
      this.forget();
      if (troubleOf(error) === "permanent") return;
      const again = (): void => void this.#count(session, batch, counts, probes, tries + 1);
      const waitMs = Math.min(longestCountMs, firstCountMs * 2 ** tries);
      this.#deps.clock.after(waitMs, again, { unref: true });
    }
  }

  /**
   * All that ended here is counted: from now on the rows say, and for a moment what they had just now. Without that, the failure that
   * opens a breaker is known here only when it has been counted, and the next job starts meanwhile.
   */
  #takeOver(counted: readonly BreakerState[]): void {
    const at = this.#deps.clock.monotonic();
    for (const [key, { n, at: since }] of this.#streaks)
      if (since === null) this.#streaks.set(key, { n, at });
      else if (at - since > freshMs) this.#streaks.delete(key);
    for (const { key, failures, openUntil } of counted)
      if (openUntil === null && failures > 0) this.#streaks.set(key, { n: failures, at });
      else this.#streaks.delete(key);
  }

  #changed(state: BreakerState): void {
    this.#streaks.delete(state.key);
    if (state.openUntil === null) this.#deps.onClosed(state);
    else this.#deps.onOpened(state);
  }

  *#rulesOf(job: ClaimedJob): Generator<{ key: string; rule: Rule }> {
    const ofQueue = this.#deps.queueRule(job.queue);
    if (ofQueue !== null) yield { key: breakerKey.queue(job.queue), rule: ofQueue };
    const definition = this.#deps.definitions.get(job.name);
    const rule = definition?.breaker ?? null;
    if (rule === null) return;
    const key = rule.key === null ? breakerKey.name(job.name) : this.#keyOf(job, definition);
    if (key !== null) yield { key, rule };
  }
}
