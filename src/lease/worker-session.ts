/**
 * The worker's session: opens one, keeps it alive, and knows at every instant whether what it holds is still its own.
 *
 *   opening ──▶ alive ──a renewal fails──▶ doubtful ──renewed──▶ alive
 *      ▲          └── told so, or the lease is about to pass ──┴──▶ lost ──▶ opening (a new one)
 *
 * Invariants: `claimable` is given only while alive, so claiming pauses while renewals fail; a session is given
 * up before its lease can pass to another, by the monotonic clock and counted from before the last successful
 * renewal was sent (C6), so that no wall clock and no slow answer can make two holders; a lost session never
 * comes back; being quiet belongs to the worker and not to one session, so a new one is opened as quiet as the last was.
 * Not here: what happens to the jobs (worker/wiring.ts), the renewing itself (renewal.ts).
 */
import { type Clock, sleep, type Timer } from "../clock.ts";
import type { Logger } from "../logger.ts";
import { describeFailure } from "../jobs/failure.ts";
import { type RenewalHandle, startRenewal } from "./renewal.ts";
import type { Renewal, SessionInfo } from "./store.ts";
import type { Store } from "../storage/store.ts";
import { isTold, troubleOf } from "../storage/trouble.ts";

export interface WorkerSessionDeps {
  readonly store: Pick<Store, "dialect" | "sessions" | "renewalTarget" | "workers">;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
  readonly info: SessionInfo;
  readonly leaseMs: number;
  readonly beatMs: number;
  readonly maxBlockMs: number;
  /** A session is open: claiming may begin. */
  readonly onOpen: (session: number) => void;
  /** The lease no longer depends on the main thread: claiming may begin. */
  readonly onSecured: () => void;
  /** Everything held under it is lost. */
  readonly onLost: (session: number, why: string) => void;
  readonly onRequests: (requests: Renewal["requests"]) => void;
  /** What the session holds in the database, as of a renewal that was sent at this instant of the monotonic clock. */
  readonly onClaims: (session: number, claims: Renewal["claims"], sentAt: number) => void;
  readonly onStopAsked: () => void;
  /** It is to claim nothing for now (true), or to go on (false). */
  readonly onQuiet: (quiet: boolean) => void;
  /** Renewals fail (true), or get through again (false). */
  readonly onDoubt: (doubtful: boolean) => void;
  /** No session can be opened, ever. */
  readonly onFatal: (error: unknown, during: string) => void;
  readonly onThreadError: (error: unknown) => void;
}

const reopenMs = 1_000;
// A thread and its connection are there within a second or two even on a busy machine. A longer lease outlasts that;
// under a shorter one nothing is claimed before, or a job that blocks at once would lose it every time it is started.
const longLeaseMs = 10_000;
const securedAfterMs = 2_000;

/** Holds one session after the other. */
export class WorkerSession {
  readonly #deps: WorkerSessionDeps;
  #session: number | null = null;
  #renewal: RenewalHandle | undefined;
  #doubtful = false;
  /** False until a handler that blocks the event loop can no longer cost the lease. */
  #secured = false;
  #unsecured: Timer | undefined;
  #quietAt: number | null = null;
  /** When this process itself last changed that, by the monotonic clock: a renewal sent before it does not know. */
  #quietSetAt = -Infinity;
  #expiry: Timer | undefined;
  /** The highest token that a session of this worker has seen. */
  #latest = { session: -1, token: -Infinity };
  readonly #ending = new AbortController();

  constructor(deps: WorkerSessionDeps) {
    this.#deps = deps;
  }

  /** The living session; null between two. */
  get session(): number | null {
    return this.#session;
  }

  /** The session under which something may be claimed now; null: not now. */
  get claimable(): number | null {
    return this.#doubtful || !this.#secured ? null : this.#session;
  }

  /** Since when the worker is quiet, by the database's clock; null: it is not. */
  get quietAt(): number | null {
    return this.#quietAt;
  }

  /** Makes the worker quiet, or ends that: in the database first, so that a renewal cannot say otherwise. */
  async setQuiet(quiet: boolean): Promise<void> {
    const { clock } = this.#deps;
    // A session may be lost meanwhile: the next one must be told too. One that is not open yet is told in `open`.
    let told: number | null = null;
    while (this.#session !== null && this.#session !== told) {
      told = this.#session;
      await this.#tellQuiet(told, quiet);
    }
    this.#quietSetAt = clock.monotonic();
    this.#heardQuiet(quiet ? (this.#quietAt ?? clock.now()) : null);
  }

  /** Opens a session, however long the database is away. Never rejects. */
  async open(): Promise<void> {
    const { store, clock, log, info, random } = this.#deps;
    let failures = 0;
    while (!this.#ending.signal.aborted) {
      const openedAt = clock.monotonic();
      try {
        const { quietAt } = this;
        const session = await store.sessions.open({ ...info, quietAt });
        if ((quietAt === null) !== (this.quietAt === null))
          await this.#tellQuiet(session, this.quietAt !== null);
        this.#opened(session, openedAt);
        return;
      } catch (error) {
        if (troubleOf(error) === "permanent") {
          this.#deps.onFatal(error, "opening a session");
          return;
        }
        const { message, code } = describeFailure(error);
        const quiet = failures > 0 || isTold(error, store.dialect);
        log[quiet ? "debug" : "warn"](
          { worker: info.workerId, error: message, code },
          "opening a session failed; retrying every second",
        );
        failures += 1;
        await sleep(clock, reopenMs * (0.75 + random() / 2), this.#ending.signal).catch(() => undefined);
      }
    }
  }

  /**
   * A claim of this session brought these; true: they are held. Tokens of one session increase; if they do not, the database has gone back: a replica that lagged was
   * promoted, and a job that runs here may be claimed once more under the very same token. A new session tells the two apart.
   */
  holds(jobs: readonly { readonly token: number }[], session: number): boolean {
    const before = this.#latest.session === session ? this.#latest.token : -Infinity;
    let latest = before;
    for (const { token } of jobs) {
      if (token <= before) return this.#wentBack(session);
      latest = Math.max(latest, token);
    }
    this.#latest = { session, token: latest };
    return session === this.#session;
  }

  #wentBack(session: number): false {
    this.abandon(session, "the database issued a fencing token twice (a failover?)");
    return false;
  }

  /** Asks the database now whether something is wanted of this session. */
  poke(): void {
    this.#renewal?.poke();
  }

  /** Gives the session back. What is still held under it is orphaned at once. Never rejects. */
  async close(): Promise<void> {
    this.#ending.abort();
    const session = this.#forget();
    if (session === null) return;
    try {
      await this.#deps.store.sessions.close(session);
    } catch (error) {
      // Its lease passes by itself.
      this.#deps.log.debug(
        { session, error: describeFailure(error).message },
        "the session could not be closed; its lease will expire",
      );
    }
  }

  #opened(session: number, openedAt: number): void {
    const { store, clock, log, beatMs, maxBlockMs, leaseMs } = this.#deps;
    if (this.#ending.signal.aborted) {
      void store.sessions.close(session).catch(() => undefined);
      return;
    }
    this.#session = session;
    this.#doubtful = false;
    this.#secured = leaseMs >= longLeaseMs;
    if (!this.#secured) this.#unsecured = clock.after(securedAfterMs, () => this.#secure(session));
    this.#renewal = startRenewal({
      store,
      clock,
      log,
      session,
      beatMs,
      maxBlockMs,
      openedAt,
      onEstablished: () => this.#secure(session),
      onThreadError: this.#deps.onThreadError,
      listener: {
        onRenewed: (renewal, sentAt) => this.#renewed(session, renewal, sentAt),
        onLost: () => this.#lost(session, "its lease had expired"),
        onFailed: (error) => this.#failed(session, error),
      },
    });
    this.#watch(session);
    this.#deps.onOpen(session);
  }

  #secure(session: number): void {
    if (session !== this.#session || this.#secured) return;
    this.#unsecured?.cancel();
    this.#secured = true;
    this.#deps.onSecured();
  }

  #renewed(session: number, renewal: Renewal, sentAt: number): void {
    if (session !== this.#session) return;
    if (this.#doubtful) {
      this.#doubtful = false;
      this.#deps.onDoubt(false);
    }
    if (renewal.requests.length > 0) this.#deps.onRequests(renewal.requests);
    this.#deps.onClaims(session, renewal.claims, sentAt);
    if (renewal.stop) this.#deps.onStopAsked();
    if (sentAt > this.#quietSetAt) this.#heardQuiet(renewal.quietAt);
  }

  #heardQuiet(quietAt: number | null): void {
    const changed = (quietAt === null) !== (this.#quietAt === null);
    this.#quietAt = quietAt;
    if (changed) this.#deps.onQuiet(quietAt !== null);
  }

  async #tellQuiet(session: number, quiet: boolean): Promise<void> {
    const { store } = this.#deps;
    await (quiet ? store.workers.quiet([session]) : store.workers.resume([session]));
  }

  #failed(session: number, error: unknown): void {
    if (session !== this.#session) return;
    if (troubleOf(error) === "permanent") {
      // The file was replaced, the tables are gone: no later renewal will do better, so the worker ends now and
      // not when its lease has passed (28 s later, as a test measured).
      this.#deps.onFatal(error, "renewing the lease");
      return;
    }
    const { store, log, info } = this.#deps;
    const { message, code } = describeFailure(error);
    log[this.#doubtful || isTold(error, store.dialect) ? "debug" : "warn"](
      { worker: info.workerId, session, error: message, code },
      "renewing the lease failed; claiming pauses until it is renewed",
    );
    if (this.#doubtful) return;
    this.#doubtful = true;
    this.#watch(session);
    this.#deps.onDoubt(true);
  }

  // How long before the lease passes everything is aborted: time for a handler to notice, and for clocks to differ.
  get #marginMs(): number {
    return Math.min(2_000, this.#deps.leaseMs / 10);
  }

  /** One timer, set anew when it fires: a renewal moves the instant and costs nothing here. */
  #watch(session: number): void {
    const { clock, leaseMs } = this.#deps;
    const endsAt = (this.#renewal?.renewedAt() ?? -Infinity) + leaseMs - this.#marginMs;
    const look = (): void => {
      if (session !== this.#session || this.#renewal === undefined) return;
      if (this.#renewal.renewedAt() + leaseMs - this.#marginMs > clock.monotonic()) this.#watch(session);
      else this.#lost(session, "it could not be renewed in time");
    };
    // Renewed ahead of a jump; where that fails, the end cannot wait.
    const latest = this.#doubtful ? {} : { latestMs: Infinity };
    this.#expiry?.cancel();
    this.#expiry = clock.after(endsAt - clock.monotonic(), look, latest);
  }

  /** Gives the session up with everything that it holds, and opens another. */
  abandon(session: number, why: string): void {
    if (session !== this.#session) return;
    void this.#deps.store.sessions.close(session).catch(() => undefined); // else its lease passes
    this.#lost(session, why);
  }

  #lost(session: number, why: string): void {
    if (session !== this.#session) return;
    this.#forget();
    this.#deps.onLost(session, why);
    void this.open();
  }

  #forget(): number | null {
    const session = this.#session;
    this.#session = null;
    this.#renewal?.stop();
    this.#renewal = undefined;
    this.#expiry?.cancel();
    this.#unsecured?.cancel();
    return session;
  }
}
