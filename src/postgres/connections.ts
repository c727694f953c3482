/**
 * Connections to Postgres: pools, a deadline on every query, named statements while the server keeps them.
 *
 * A query that is not answered in time destroys its connection: a half-open socket never answers, and the next query
 * on it would queue up behind (node-postgres #3399, reproduced). Claims and settles have a pool of their own, so that
 * handlers who use up the other one cannot delay them. Reads for those who look have 5 seconds and a few
 * connections: their own, or, in a pool that the user gave, at most a share of it.
 */
import { createHash } from "node:crypto";
import { systemClock } from "../clock.ts";
import { StateError, StoreError, UsageError } from "../errors.ts";
import type { Lane } from "../sql/driver.ts";
import type { PoolUse } from "../store.ts";
import { isConnectionError, isStatementLost, toStoreError } from "./errors.ts";
import { cutOff, loadPg, rowTypes, type PgClient, type PgPool, type PgPoolClient } from "./pg.ts";

/** Claims, renewals and settles; everything else has longer. */
export const HOT_DEADLINE_MS = 5_000;
export const DEADLINE_MS = 30_000;
/** For those who look: longer than that, nobody waits for a page. */
export const VIEW_DEADLINE_MS = 5_000;
const HOT_CONNECTIONS = 3;
const VIEW_CONNECTIONS = 3;
const CONNECT_MS = 5_000;
/**
 * A lock that somebody holds for long (a user's open transaction) is reported as what it is, not as a lost connection. And a
 * process that is frozen in here, or cut off from the network, must not keep its locks: the server would wait for it for
 * hours (the gate of a queue with limits stood still for as long as its holder was stopped).
 */
export const BEGIN =
  "begin isolation level read committed; set local lock_timeout = '1s'; set local idle_in_transaction_session_timeout = '10s'";

/** A statement ready to send. */
export interface Prepared {
  readonly text: string;
  readonly name: string;
  readonly values: readonly unknown[];
}

export interface ConnectionOptions {
  readonly poolSize: number;
  readonly applicationName: string;
  readonly onConnectionLost: (error: unknown) => void;
  readonly onConnectionBack: () => void;
}

export function statementName(text: string): string {
  return `hf_${createHash("sha1").update(text).digest("hex").slice(0, 20)}`;
}

export function clientConfig(url: string, applicationName: string): Record<string, unknown> {
  let parsed: URL;
  try {
    parsed = new URL(url);
  } catch (cause) {
    throw new UsageError(
      "BAD_URL",
      "The Postgres URL cannot be read. Use postgres://user:password@host:5432/database.",
      { cause },
    );
  }
  if (parsed.pathname === "" || parsed.pathname === "/") {
    throw new UsageError(
      "BAD_URL",
      "The Postgres URL names no database. Use postgres://user:password@host:5432/database.",
    );
  }
  return {
    connectionString: url,
    application_name: applicationName,
    connectionTimeoutMillis: CONNECT_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
  };
}

type Pools = Readonly<Record<"general" | "hot" | "view", PgPool>>;

const poolOf = { general: "general", claim: "hot", settle: "hot", view: "view" } as const;

/** Looks have the time of others on the wire: it is those who wait that have less (`#look`). */
function deadlineOf(lane: Lane): number {
  return lane === "general" || lane === "view" ? DEADLINE_MS : HOT_DEADLINE_MS;
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
    const timer = systemClock.after(VIEW_DEADLINE_MS, () => {
      this.#waiting.delete(resolve);
      reject(
        new StoreError(
          "DATABASE_BUSY",
          `Other reads of the dashboard took all its connections for ${VIEW_DEADLINE_MS} ms.`,
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

/**
 * Who looks is told after 5 seconds. The connection is kept until the answer comes or its deadline passes: a server that works
 * or waits for a lock does not notice that nobody listens any more, and with a new connection for each that was given up a
 * table that is locked for long would cost it all its connections.
 */
async function inTime<T>(answer: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = systemClock.after(VIEW_DEADLINE_MS, () =>
    late.reject(
      new StoreError(
        "STATEMENT_TIMEOUT",
        `Postgres did not answer a read for the dashboard within ${VIEW_DEADLINE_MS} ms.`,
      ),
    ),
  );
  return Promise.race([answer, late.promise]).finally(() => timer.cancel());
}

export class Connections {
  readonly #pools: Pools;
  readonly #views: Slots;
  readonly #owned: boolean;
  readonly #types: unknown;
  readonly #options: ConnectionOptions;
  readonly #makeClient: () => PgClient;
  readonly config: Record<string, unknown> | null;
  /** Named statements are planned once; a pooler in transaction mode does not keep them. */
  named = true;
  /** Told once when it goes and once when it is back; before the first answer there is nothing to lose. */
  #state: "new" | "up" | "down" = "new";
  /**
   * When a query last went unanswered. What silenced one connection (a failover, a NAT that forgot its flows) has mostly
   * silenced them all, so those that were last heard before are dropped unasked: one after the other, each would
   * cost its deadline again (measured: 20 waiting jobs did not start within 20 s).
   */
  #suspectedAt = -Infinity;
  readonly #heardAt = new WeakMap<PgClient, number>();
  readonly #open = new Set<PgClient>();
  #closed = false;

  private constructor(
    pools: Pools,
    owned: boolean,
    types: unknown,
    makeClient: () => PgClient,
    config: Record<string, unknown> | null,
    options: ConnectionOptions,
  ) {
    this.#pools = pools;
    // pg's own default is 10.
    const most = owned ? VIEW_CONNECTIONS : Math.floor(Number(pools.view.options?.["max"] ?? 10) / 2);
    this.#views = new Slots(Math.max(1, Math.min(VIEW_CONNECTIONS, most)));
    this.#owned = owned;
    this.#types = types;
    this.#options = options;
    this.#makeClient = makeClient;
    this.config = config;
    for (const pool of new Set(Object.values(pools))) {
      pool.on("connect", (client) => {
        client.on("error", () => {}); // without a listener a lost connection would end the process
        this.#open.add(client);
      });
      pool.on("remove", (client) => this.#open.delete(client));
      pool.on("error", (error) => this.#down(error));
    }
  }

  static async open(target: string | PgPool, options: ConnectionOptions): Promise<Connections> {
    const pg = await loadPg();
    const types = rowTypes(pg);
    if (typeof target !== "string") {
      const config = { ...target.options };
      return new Connections(
        { general: target, hot: target, view: target },
        false,
        types,
        () => new pg.Client(config),
        null,
        options,
      );
    }
    const config = clientConfig(target, options.applicationName);
    const pool = (max: number) =>
      new pg.Pool({ ...config, max, idleTimeoutMillis: 30_000, allowExitOnIdle: true });
    return new Connections(
      { general: pool(options.poolSize), hot: pool(HOT_CONNECTIONS), view: pool(VIEW_CONNECTIONS) },
      true,
      types,
      () => new pg.Client(config),
      config,
      options,
    );
  }

  /** A connection outside the pools, for listening. */
  async dedicated(): Promise<PgClient> {
    const client = this.#makeClient();
    client.on("error", () => {});
    await client.connect();
    return client;
  }

  query(statement: Prepared, lane: Lane): Promise<Record<string, unknown>[]> {
    const answer = this.#query(statement, lane);
    return lane === "view" ? inTime(answer) : answer;
  }

  async #query(statement: Prepared, lane: Lane): Promise<Record<string, unknown>[]> {
    const client = await this.#connect(lane);
    const deadlineMs = deadlineOf(lane);
    let broken: unknown = null;
    try {
      return await this.send(client, statement, deadlineMs);
    } catch (error) {
      if (isStatementLost(error) && this.named) {
        this.named = false;
        return await this.send(client, statement, deadlineMs).catch((again: unknown) => {
          broken = again;
          throw toStoreError(again);
        });
      }
      broken = error;
      throw toStoreError(error);
    } finally {
      this.#release(client, broken, lane);
    }
  }

  /** Several statements on one connection between begin and commit. */
  transaction<T>(
    body: (send: (statement: Prepared) => Promise<Record<string, unknown>[]>) => Promise<T>,
    lane: Lane = "general",
  ): Promise<T> {
    const answer = this.#transaction(body, lane);
    return lane === "view" ? inTime(answer) : answer;
  }

  async #transaction<T>(
    body: (send: (statement: Prepared) => Promise<Record<string, unknown>[]>) => Promise<T>,
    lane: Lane,
  ): Promise<T> {
    const client = await this.#connect(lane);
    const send = (statement: Prepared) => this.send(client, statement, deadlineOf(lane));
    let broken: unknown = null;
    try {
      await send({ text: BEGIN, name: "", values: [] });
      const result = await body(send);
      await send({ text: "commit", name: "", values: [] });
      return result;
    } catch (error) {
      if (isStatementLost(error)) this.named = false;
      if (isConnectionError(error) || (error instanceof StoreError && error.code === "CONNECTION_LOST"))
        broken = error;
      else {
        await this.send(client, { text: "rollback", name: "", values: [] }, HOT_DEADLINE_MS).catch(
          (again: unknown) => {
            broken = again;
          },
        );
      }
      throw toStoreError(error);
    } finally {
      this.#release(client, broken, lane);
    }
  }

  /** One statement on a given connection, with a deadline. Rejects with the driver's own error. */
  send(client: PgClient, statement: Prepared, deadlineMs: number): Promise<Record<string, unknown>[]> {
    return new Promise((resolve, reject) => {
      const timer = systemClock.after(deadlineMs, () => {
        this.#suspectedAt = systemClock.monotonic();
        reject(
          new StoreError(
            "CONNECTION_LOST",
            `Postgres did not answer within ${deadlineMs} ms; the connection was dropped.`,
          ),
        );
      });
      client
        .query({
          text: statement.text,
          values: statement.values,
          types: this.#types,
          ...(this.named && statement.name !== "" ? { name: statement.name } : {}),
        })
        .then((result) => {
          this.#up();
          this.#heardAt.set(client, systemClock.monotonic());
          resolve(result.rows);
        }, reject)
        .finally(() => timer.cancel());
    });
  }

  async #connect(lane: Lane): Promise<PgPoolClient> {
    if (this.#closed) throw new StateError("CLOSED", "This Holdfast client is closed.");
    if (lane === "view") await this.#views.take();
    try {
      const pool = this.#pools[poolOf[lane]];
      for (;;) {
        const client = await pool.connect();
        if ((this.#heardAt.get(client) ?? Infinity) >= this.#suspectedAt) return client;
        client.release(true);
        cutOff(client);
      }
    } catch (error) {
      if (lane === "view") this.#views.give();
      this.#down(error);
      const ours = toStoreError(error);
      throw ours instanceof StoreError
        ? ours
        : new StoreError(
            "DATABASE_UNREACHABLE",
            `Postgres cannot be reached: ${error instanceof Error ? error.message : String(error)}.`,
            { cause: error },
          );
    }
  }

  #release(client: PgPoolClient, broken: unknown, lane: Lane): void {
    if (lane === "view") this.#views.give();
    const gone =
      broken !== null &&
      (isConnectionError(broken) || (broken instanceof StoreError && broken.code === "CONNECTION_LOST"));
    if (gone) this.#down(broken);
    client.release(gone ? true : undefined);
    if (gone) cutOff(client);
  }

  #down(error: unknown): void {
    if (this.#state !== "up" || this.#closed) return;
    this.#state = "down";
    this.#options.onConnectionLost(error);
  }

  #up(): void {
    const back = this.#state === "down";
    this.#state = "up";
    if (back) this.#options.onConnectionBack();
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
    if (!this.#owned) return;
    // A half-open connection must not keep us from closing.
    const ended = Promise.all(Object.values(this.#pools).map((pool) => pool.end())).then(() => {});
    await Promise.race([
      ended,
      new Promise<void>((resolve) => void systemClock.after(2_000, resolve, { unref: true })),
    ]);
    for (const client of this.#open) cutOff(client);
  }
}
