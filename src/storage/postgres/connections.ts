/**
 * Connections to Postgres: pools, a deadline on every query, named statements while the server keeps them.
 *
 * A query that is not answered in time is cancelled on the server, and its connection is destroyed: a half-open socket never
 * answers, and the next query on it would queue up behind (node-postgres #3399, reproduced). A statement with a longer deadline is
 * asked about after 5 seconds, over a connection of its own: if the server does not work on it, its connection is half-open. Claims and settles have a pool of
 * their own, so that handlers who use up the other one cannot delay them. Reads for those who look have 5 seconds and a few
 * connections: their own, or, in a pool that the user gave, at most a share of it.
 */
import { createHash } from "node:crypto";
import { during, systemClock, type Clock, type Timer } from "../../clock.ts";
import { StateError, StoreError } from "../../errors.ts";
import type { Lane, PoolUse } from "../driver.ts";
import { isGone, isPlanStale, isStatementLost, sqlState, toStoreError } from "./error-codes.ts";
import { clientConfig, clientOf, Hosts } from "./hosts.ts";
import {
  cancelStatement,
  cutOff,
  loadPg,
  rowTypes,
  type PgClient,
  type PgPool,
  type PgPoolClient,
} from "./pg.ts";
import { PIN, pinSession } from "./search-path.ts";

/** Claims, renewals and settles; everything else has longer. */
const HOT_DEADLINE_MS = 5_000;
export const DEADLINE_MS = 30_000;
/** For those who look: longer than that, nobody waits for a page. */
const READ_DEADLINE_MS = 5_000;
/** After so long without an answer, a statement that has longer is asked about: the server may not have it. */
const ASK_AFTER_MS = HOT_DEADLINE_MS;
/** How long the server has to take the cancellation of a statement and to answer for it. */
const CANCEL_MS = 1_000;
/** How long anything waits for a free connection of a pool. */
const WAIT_MS = HOT_DEADLINE_MS + 2 * CANCEL_MS;
const HOT_CONNECTIONS = 3;
const READ_CONNECTIONS = 3;

/**
 * A lock that somebody holds for long (a user's open transaction) is reported as what it is, not as a lost connection. And a
 * process that is frozen in here, or cut off from the network, must not keep its locks: the server would wait for it for
 * hours (a limited queue stood still for as long as its holder was stopped).
 */
export function begin(deadlineMs: number): string {
  return `begin isolation level read committed; set local lock_timeout = '1s'; set local statement_timeout = ${deadlineMs}; set local idle_in_transaction_session_timeout = '10s'`;
}

/** Something to be replicated, so that the commit waits for the standby where the server is told to. Writes no row. */
const WAIT_FOR_STANDBY = "; select pg_logical_emit_message(true, 'holdfast', '')";

/** A statement ready to send. */
export interface Prepared {
  readonly text: string;
  readonly name: string;
  readonly values: readonly unknown[];
}

export interface ConnectionOptions {
  readonly poolSize: number;
  readonly applicationName: string;
  /** Told of what is under way. */
  readonly clock: Clock;
  readonly onConnectionLost: (error: unknown) => void;
  readonly onConnectionBack: (afterMs: number) => void;
}

export function statementName(text: string): string {
  return `hf_${createHash("sha1").update(text).digest("hex").slice(0, 20)}`;
}

type Pools = Readonly<Record<"general" | "hot" | "view", PgPool>>;

const poolOf = { general: "general", claim: "hot", settle: "hot", view: "view" } as const;

function deadlineOf(lane: Lane): number {
  if (lane === "general") return DEADLINE_MS;
  return lane === "view" ? READ_DEADLINE_MS : HOT_DEADLINE_MS;
}

/**
 * So many at a time, the others in order; who waits too long is told. Not left to the pool, whose wait ends as if no
 * connection could be made.
 */
class Slots {
  #free: number;
  readonly #waiting = new Set<() => void>();

  constructor(count: number) {
    this.#free = count;
  }

  /** @throws StoreError DATABASE_BUSY */
  async take(): Promise<void> {
    if (this.#free > 0) {
      this.#free -= 1;
      return;
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#waiting.add(resolve);
    const timer = systemClock.after(READ_DEADLINE_MS, () => {
      this.#waiting.delete(resolve);
      reject(
        new StoreError(
          "DATABASE_BUSY",
          `Other reads of the dashboard used all its connections for ${READ_DEADLINE_MS} ms.`,
        ),
      );
    });
    await promise.finally(() => timer.cancel());
  }

  give(): void {
    const [next] = this.#waiting;
    if (next === undefined) {
      this.#free += 1;
      return;
    }
    this.#waiting.delete(next);
    next();
  }
}

export class Connections {
  readonly #pools: Pools;
  readonly #views: Slots;
  readonly #types: unknown;
  readonly #options: ConnectionOptions;
  readonly #makeClient: () => PgClient;
  /** Null: the pool is the user's. */
  readonly #hosts: Hosts | null;
  /** Named statements are planned once; a pooler in transaction mode does not keep them. */
  named = true;
  /** Told once when it goes and once when it is back; before the first answer there is nothing to lose. */
  #state: "new" | "up" | "down" = "new";
  #lostAt = -Infinity;
  /**
   * What broke or silenced one connection (a restart, a failover, a NAT that forgot its flows) has mostly done so to all, so
   * that those which were made before are dropped unasked: one after the other, each would cost its deadline again (measured:
   * 20 waiting jobs did not start within 20 s), and each would be told as another loss.
   */
  #dropBefore = -Infinity;
  readonly #madeAt = new WeakMap<PgClient, number>();
  /** Their statement was given up: a cancellation may still be on its way to them. */
  readonly #abandoned = new WeakSet<PgClient>();
  /** A statement committed although it was cancelled: its wait for a standby may have been what was cut short. */
  #unreplicated = false;
  readonly #open = new Set<PgClient>();
  /** Whether its search path is hostile (search-path.ts). */
  readonly #hostile = new WeakMap<PgClient, boolean>();
  #closed = false;

  private constructor(
    pools: Pools,
    hosts: Hosts | null,
    types: unknown,
    makeClient: () => PgClient,
    options: ConnectionOptions,
  ) {
    this.#pools = pools;
    this.#hosts = hosts;
    // pg's own default is 10.
    const most =
      hosts === null ? Math.floor(Number(pools.view.options?.["max"] ?? 10) / 2) : READ_CONNECTIONS;
    this.#views = new Slots(Math.max(1, Math.min(READ_CONNECTIONS, most)));
    this.#types = types;
    this.#options = options;
    this.#makeClient = makeClient;
    for (const pool of new Set(Object.values(pools))) {
      pool.on("connect", (client) => {
        client.on("error", () => {}); // without a listener a lost connection would end the process
        this.#open.add(client);
        this.#madeAt.set(client, systemClock.monotonic());
      });
      pool.on("remove", (client) => this.#open.delete(client));
      pool.on("error", (error, client) => {
        const ours = toStoreError(error);
        if (client !== undefined && isGone(ours)) this.#lost(ours, client);
      });
    }
  }

  static async open(target: string | PgPool, options: ConnectionOptions): Promise<Connections> {
    const pg = await loadPg();
    const types = rowTypes(pg);
    if (typeof target !== "string") {
      const config = { ...target.options };
      const pools = { general: target, hot: target, view: target };
      return new Connections(pools, null, types, () => new pg.Client(config), options);
    }
    const hosts = Hosts.of(target);
    const Client = clientOf(pg, hosts);
    const config = clientConfig(options.applicationName);
    const pool = (max: number) =>
      new pg.Pool({
        ...config,
        Client,
        max,
        // For whoever waits for a free one: those that went silent are given up before.
        connectionTimeoutMillis: WAIT_MS,
        idleTimeoutMillis: 30_000,
        allowExitOnIdle: true,
      });
    return new Connections(
      { general: pool(options.poolSize), hot: pool(HOT_CONNECTIONS), view: pool(READ_CONNECTIONS) },
      hosts,
      types,
      () => new Client(config),
      options,
    );
  }

  /** A connection outside the pools, for listening. */
  dedicated(): Promise<PgClient> {
    return this.#toAHost(async () => {
      const client = this.#makeClient();
      client.on("error", () => {});
      await client.connect();
      return client;
    });
  }

  #toAHost<T>(connect: () => Promise<T>): Promise<T> {
    return this.#hosts === null ? connect() : this.#hosts.first(connect);
  }

  async query(statement: Prepared, lane: Lane): Promise<Record<string, unknown>[]> {
    const client = await this.#connect(lane);
    if (this.#hostile.get(client) === true)
      return this.#within(client, `begin; ${PIN}`, (send) => send({ ...statement, name: "" }), lane);
    const deadlineMs = deadlineOf(lane);
    const { named } = this;
    let broken: unknown = null;
    try {
      return await this.send(client, statement, deadlineMs, true);
    } catch (error) {
      // Of several that were on their way, each learns it by itself.
      const lost = named && isStatementLost(error);
      if (lost) this.named = false;
      // Prepared anew on another connection; this one ends with this statement.
      const stale = isPlanStale(error);
      if (stale) this.#abandoned.add(client);
      if (lost || stale) {
        return await this.send(client, { ...statement, name: "" }, deadlineMs, true).catch(
          (again: unknown) => {
            broken = again;
            throw again;
          },
        );
      }
      broken = error;
      throw error;
    } finally {
      this.#release(client, broken, lane);
    }
  }

  /** Several statements on one connection between begin and commit. What `body` throws of its own is thrown as it is. */
  async transaction<T>(
    body: (send: (statement: Prepared) => Promise<Record<string, unknown>[]>) => Promise<T>,
    lane: Lane = "general",
  ): Promise<T> {
    const client = await this.#connect(lane);
    const deadlineMs = deadlineOf(lane);
    const pin = this.#hostile.get(client) === true ? `; ${PIN}` : "";
    const { named } = this;
    return this.#within(client, `${begin(deadlineMs)}${pin}`, body, lane).catch((error: unknown) => {
      // Nothing of it was committed, and no statement has a name any more. A pooler says 08P01 of a server that is gone, too: who knows
      // whether that was after the commit.
      if (named && isStatementLost(error) && !isGone(error)) return this.transaction(body, lane);
      throw error;
    });
  }

  async #within<T>(
    client: PgPoolClient,
    begin: string,
    body: (send: (statement: Prepared) => Promise<Record<string, unknown>[]>) => Promise<T>,
    lane: Lane,
  ): Promise<T> {
    const send = (statement: Prepared) => this.send(client, statement, deadlineOf(lane), true);
    const plain = (text: string): Prepared => ({ text, name: "", values: [] });
    let broken: unknown = null;
    try {
      const unreplicated = this.#unreplicated;
      await send(plain(`${begin}${unreplicated ? WAIT_FOR_STANDBY : ""}`));
      const result = await body(send);
      await send(plain("commit"));
      if (unreplicated) this.#unreplicated = false;
      return result;
    } catch (error) {
      if (isStatementLost(error)) this.named = false;
      // The transaction is run again, on another connection.
      if (isPlanStale(error)) this.#abandoned.add(client);
      if (isGone(error) || this.#abandoned.has(client)) broken = error;
      else {
        await this.send(client, plain("rollback"), HOT_DEADLINE_MS).catch((again: unknown) => {
          broken = again;
        });
      }
      throw error;
    } finally {
      this.#release(client, broken, lane);
    }
  }

  /**
   * One statement on a given connection, with a deadline here and, after it, on the server. On a connection of the pools (`watched`) the
   * server is asked every few seconds whether it works on the statement.
   */
  send(
    client: PgClient,
    statement: Prepared,
    deadlineMs: number,
    watched = false,
  ): Promise<Record<string, unknown>[]> {
    const rows = new Promise<Record<string, unknown>[]>((resolve, reject) => {
      const answer = client.query({
        text: statement.text,
        values: statement.values,
        types: this.#types,
        ...(this.named && statement.name !== "" ? { name: statement.name } : {}),
      });
      let waiting = true;
      const giveUp = (): void => {
        waiting = false;
        void this.#abandon(client, answer, `Postgres did not answer within ${deadlineMs} ms`).then(reject);
      };
      let timer: Timer;
      const ask = async (leftMs: number): Promise<void> => {
        // The question may take long itself.
        timer = systemClock.after(leftMs, giveUp);
        const askedAt = systemClock.monotonic();
        const working = await this.#isWorking(client);
        // An answer that is on its way arrives meanwhile.
        if (!working) await afterMs(CANCEL_MS, undefined);
        if (!waiting) return;
        timer.cancel();
        if (working) return wait(Math.max(0, leftMs - (systemClock.monotonic() - askedAt)));
        waiting = false;
        reject(
          new StoreError(
            "CONNECTION_LOST",
            `Postgres did not answer within ${ASK_AFTER_MS} ms and ran no statement of this connection, which was dropped.`,
          ),
        );
      };
      // One timer for both: each statement would pay for a second one.
      const wait = (leftMs: number): void => {
        const asks = watched && leftMs > ASK_AFTER_MS;
        timer = systemClock.after(
          asks ? ASK_AFTER_MS : leftMs,
          asks ? () => void ask(leftMs - ASK_AFTER_MS) : giveUp,
        );
      };
      wait(deadlineMs);
      answer.then(
        (result) => {
          timer.cancel();
          if (!waiting) return;
          waiting = false;
          this.#heard(client);
          resolve(result.rows);
        },
        (error: unknown) => {
          timer.cancel();
          if (!waiting) return;
          waiting = false;
          const ours = toStoreError(error);
          // A pool of the user's may have a shorter deadline (`query_timeout`): pg gives up, and the server goes on.
          if (client.connection?.stream?.destroyed === false && sqlState(error) === null && isGone(ours))
            void this.#cancel(client).then(() => reject(ours));
          else reject(ours);
        },
      );
    });
    return during(this.#options.clock, rows);
  }

  /**
   * Whether the server works for this connection. True where it cannot be said: the server cannot be reached, it does not track
   * activities, or a pooler is between, which makes up the process ids that it tells. Never rejects.
   */
  async #isWorking(client: PgClient): Promise<boolean> {
    let asking: PgClient | null = null;
    try {
      asking = await this.dedicated();
      const [row] = await this.send(
        asking,
        {
          text: `select pg_catalog.pg_backend_pid() as own, pg_catalog.current_setting('track_activities') as tracked,
            exists (select from pg_catalog.pg_stat_activity where pid operator(pg_catalog.=) $1 and state operator(pg_catalog.=) 'active') as working`,
          name: "",
          values: [client.processID ?? null],
        },
        CANCEL_MS,
      );
      return row?.["working"] === true || row?.["own"] !== asking.processID || row?.["tracked"] !== "on";
    } catch {
      return true;
    } finally {
      if (asking !== null) cutOff(asking);
    }
  }

  /**
   * Gives a statement up: cancels it on the server and waits a moment for its end. Whatever the server says of it now, it counts as
   * not answered: a commit whose wait for a standby was cut short says that it is done. The connection must not be used again, or
   * a late cancellation would meet another statement. Never rejects.
   */
  async #abandon(client: PgClient, answer: Promise<unknown>, what: string): Promise<StoreError> {
    const heard = answer.then(
      () => (this.#unreplicated = true),
      (error: unknown) => sqlState(error) !== null,
    );
    const [inTime] = await Promise.all([
      Promise.race([heard, afterMs(CANCEL_MS, false)]),
      this.#cancel(client),
    ]);
    return inTime
      ? new StoreError("STATEMENT_TIMEOUT", `${what}; the statement was cancelled.`)
      : new StoreError("CONNECTION_LOST", `${what}; the connection was dropped.`);
  }

  async #cancel(client: PgClient): Promise<void> {
    this.#abandoned.add(client);
    await cancelStatement(client, CANCEL_MS);
  }

  async #connect(lane: Lane): Promise<PgPoolClient> {
    if (this.#closed) throw new StateError("CLOSED", "This Holdfast client is closed.");
    if (lane === "view") await this.#views.take();
    try {
      const pool = this.#pools[poolOf[lane]];
      if (pool.ending === true) throw new StateError("CLOSED", "The pool given to `open` was ended.");
      for (;;) {
        const client = await during(
          this.#options.clock,
          this.#toAHost(() => this.#free(pool)),
        );
        if (!this.#isOld(client)) return this.#hostile.has(client) ? client : await this.#guarded(client);
        client.release(true);
        cutOff(client);
      }
    } catch (error) {
      if (lane === "view") this.#views.give();
      const ours = toStoreError(error);
      if (isGone(ours)) this.#lost(ours, null);
      throw ours;
    }
  }

  /**
   * A pool of the user's may let everybody wait for ever, and handlers may hold all its connections while they wait for a step of
   * theirs: then nothing could be written, not even that their time is up.
   */
  async #free(pool: PgPool): Promise<PgPoolClient> {
    const connecting = pool.connect();
    if (this.#hosts !== null) return connecting; // ours has the deadline itself
    const late = Promise.withResolvers<never>();
    const timer = systemClock.after(WAIT_MS, () => {
      connecting.then(
        (client) => client.release(),
        () => {},
      );
      late.reject(
        new StoreError(
          "STATEMENT_TIMEOUT",
          `All connections of the pool given to \`open\` were in use for ${WAIT_MS} ms. Make the pool larger, or hold no connection in a handler that waits for ctx or hf.`,
        ),
      );
    });
    return Promise.race([connecting, late.promise]).finally(() => timer.cancel());
  }

  /** The first time that it is used, its search path is looked at. */
  async #guarded(client: PgPoolClient): Promise<PgPoolClient> {
    const send = (text: string, values: readonly unknown[]) =>
      this.send(client, { text, name: "", values }, HOT_DEADLINE_MS);
    try {
      this.#hostile.set(client, await pinSession(client, send, this.#hosts !== null));
      return client;
    } catch (error) {
      client.release(true);
      cutOff(client);
      throw error;
    }
  }

  #isOld(client: PgClient): boolean {
    return this.#madeAtOf(client) < this.#dropBefore;
  }

  #madeAtOf(client: PgClient): number {
    return this.#madeAt.get(client) ?? -Infinity;
  }

  #release(client: PgPoolClient, broken: unknown, lane: Lane): void {
    if (lane === "view") this.#views.give();
    if (isGone(broken)) this.#lost(broken, client);
    const drop = isGone(broken) || this.#abandoned.has(client) || this.#isOld(client);
    client.release(drop ? true : undefined);
    if (drop) cutOff(client);
  }

  /** A connection broke, or none could be made (null). */
  #lost(error: StoreError, client: PgClient | null): void {
    if (this.#closed) return;
    if (client === null) {
      // The server has no room for another one, and answers on those that are there.
      if (sqlState(error) === "53300" && this.#open.size > 0) return;
    } else {
      if (this.#isOld(client)) return;
      this.#dropBefore = systemClock.monotonic();
      if (sqlState(error) === "25006") this.#hosts?.leave(this.#hosts.url);
      // What was made before the last outage fell silent with it, and that was told.
      if (this.#madeAtOf(client) < this.#lostAt) return;
    }
    if (this.#state !== "up") return;
    this.#state = "down";
    this.#lostAt = systemClock.monotonic();
    // Without its cause, which is the driver's and may have the client with its keys in it.
    this.#options.onConnectionLost(new StoreError(error.code, error.message, { details: error.details }));
  }

  #heard(client: PgClient): void {
    if (this.#state === "up") return;
    if (this.#state === "down") {
      // One from before says nothing of those that are to be made.
      if (this.#madeAtOf(client) < this.#lostAt) return;
      this.#options.onConnectionBack(systemClock.monotonic() - this.#lostAt);
    }
    this.#state = "up";
  }

  /** A pool that is not ours may tell less of itself. */
  use(): PoolUse {
    const pools = [...new Set(Object.values(this.#pools))];
    const sum = (of: (pool: PgPool) => number | undefined): number =>
      pools.reduce((all, pool) => all + (of(pool) ?? 0), 0);
    const idle = sum((pool) => pool.idleCount);
    return {
      used: Math.max(0, sum((pool) => pool.totalCount) - idle),
      idle,
      waiting: sum((pool) => pool.waitingCount),
    };
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    if (this.#hosts === null) return;
    // A half-open connection must not keep us from closing.
    const ended = Promise.all(Object.values(this.#pools).map((pool) => pool.end())).then(() => {});
    await Promise.race([ended, afterMs(2_000, undefined)]);
    for (const client of this.#open) cutOff(client);
  }
}

function afterMs<T>(ms: number, value: T): Promise<T> {
  return new Promise((resolve) => void systemClock.after(ms, () => resolve(value), { unref: true }));
}
