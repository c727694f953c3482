/**
 * Connections to Postgres: pools, a deadline on every query, named statements while the server keeps them.
 *
 * A query that is not answered in time destroys its connection: a half-open socket never answers, and the next query
 * on it would queue up behind (node-postgres #3399, reproduced). Claims and settles have a pool of their own, so that
 * handlers who use up the other one cannot delay them.
 */
import { createHash } from "node:crypto";
import { systemClock } from "../clock.ts";
import { StateError, StoreError, UsageError } from "../errors.ts";
import type { Lane } from "../sql/driver.ts";
import { isConnectionError, isStatementLost, toStoreError } from "./errors.ts";
import { cutOff, loadPg, rowTypes, type PgClient, type PgPool, type PgPoolClient } from "./pg.ts";

/** Claims, renewals and settles; everything else has longer. */
export const HOT_DEADLINE_MS = 5_000;
export const DEADLINE_MS = 30_000;
const CONNECT_MS = 5_000;
/** A lock that somebody holds for long (a user's open transaction) is reported as what it is, not as a lost connection. */
const BEGIN = "begin isolation level read committed; set local lock_timeout = '1s'";

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

export class Connections {
  readonly #pools: Readonly<Record<"general" | "hot", PgPool>>;
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
    pools: { general: PgPool; hot: PgPool },
    owned: boolean,
    types: unknown,
    makeClient: () => PgClient,
    config: Record<string, unknown> | null,
    options: ConnectionOptions,
  ) {
    this.#pools = pools;
    this.#owned = owned;
    this.#types = types;
    this.#options = options;
    this.#makeClient = makeClient;
    this.config = config;
    for (const pool of new Set([pools.general, pools.hot])) {
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
        { general: target, hot: target },
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
      { general: pool(options.poolSize), hot: pool(3) },
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

  async query(statement: Prepared, lane: Lane): Promise<Record<string, unknown>[]> {
    const client = await this.#connect(lane);
    let broken: unknown = null;
    try {
      return await this.send(client, statement, lane === "general" ? DEADLINE_MS : HOT_DEADLINE_MS);
    } catch (error) {
      if (isStatementLost(error) && this.named) {
        this.named = false;
        return await this.send(client, statement, DEADLINE_MS).catch((again: unknown) => {
          broken = again;
          throw toStoreError(again);
        });
      }
      broken = error;
      throw toStoreError(error);
    } finally {
      this.#release(client, broken);
    }
  }

  /** Several statements on one connection between begin and commit. */
  async transaction<T>(
    body: (send: (statement: Prepared) => Promise<Record<string, unknown>[]>) => Promise<T>,
    lane: Lane = "general",
  ): Promise<T> {
    const client = await this.#connect(lane);
    const deadlineMs = lane === "general" ? DEADLINE_MS : HOT_DEADLINE_MS;
    let broken: unknown = null;
    try {
      await this.send(client, { text: BEGIN, name: "", values: [] }, deadlineMs);
      const result = await body((statement) => this.send(client, statement, deadlineMs));
      await this.send(client, { text: "commit", name: "", values: [] }, deadlineMs);
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
      this.#release(client, broken);
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
    try {
      const pool = this.#pools[lane === "general" ? "general" : "hot"];
      for (;;) {
        const client = await pool.connect();
        if ((this.#heardAt.get(client) ?? Infinity) >= this.#suspectedAt) return client;
        client.release(true);
        cutOff(client);
      }
    } catch (error) {
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

  #release(client: PgPoolClient, broken: unknown): void {
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

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    if (!this.#owned) return;
    // A half-open connection must not keep us from closing.
    const ended = Promise.all([this.#pools.general.end(), this.#pools.hot.end()]).then(() => {});
    await Promise.race([
      ended,
      new Promise<void>((resolve) => void systemClock.after(2_000, resolve, { unref: true })),
    ]);
    for (const client of this.#open) cutOff(client);
  }
}
