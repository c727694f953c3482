/** Arithmetic of the benchmark: percentiles, what ran and how often, counters of the Postgres server. */
import pg from "pg";

export function median(values: readonly number[]): number {
  return percentile(values, 50);
}

/** Linear between the two nearest ranks; NaN of nothing. */
export function percentile(values: readonly number[], p: number): number {
  if (values.length === 0) return NaN;
  const sorted = values.toSorted((a, b) => a - b);
  const rank = ((sorted.length - 1) * p) / 100;
  const low = sorted[Math.floor(rank)]!;
  const high = sorted[Math.ceil(rank)]!;
  return low + (high - low) * (rank - Math.floor(rank));
}

/** Which jobs ran: one bit each, so that a million of them weigh nothing in the worker's memory figure. */
export class Tally {
  count = 0;
  doubles = 0;
  #bits = new Uint8Array(1024);

  static of(count: number, doubles: number, base64: string): Tally {
    const tally = new Tally();
    tally.count = count;
    tally.doubles = doubles;
    tally.#bits = new Uint8Array(Buffer.from(base64, "base64"));
    return tally;
  }

  add(n: number): void {
    const byte = n >> 3;
    if (byte >= this.#bits.length) {
      const grown = new Uint8Array(Math.max(byte + 1, this.#bits.length * 2));
      grown.set(this.#bits);
      this.#bits = grown;
    }
    const bit = 1 << (n & 7);
    if ((this.#bits[byte]! & bit) !== 0) this.doubles += 1;
    this.#bits[byte]! |= bit;
    this.count += 1;
  }

  /** Takes in what another process ran. */
  merge(other: Tally): void {
    for (let byte = 0; byte < other.#bits.length; byte++) {
      const theirs = other.#bits[byte]!;
      for (let bit = 0; bit < 8; bit++) if ((theirs & (1 << bit)) !== 0) this.add(byte * 8 + bit);
    }
    this.count += other.doubles;
    this.doubles += other.doubles;
  }

  /** How many of the jobs 0 … n-1 never ran. */
  missing(n: number): number {
    let missing = 0;
    for (let i = 0; i < n; i++) if (((this.#bits[i >> 3] ?? 0) & (1 << (i & 7))) === 0) missing += 1;
    return missing;
  }

  toBase64(): string {
    return Buffer.from(this.#bits).toString("base64");
  }
}

export interface Counters {
  readonly walBytes: number;
  readonly queries: number;
  readonly execMs: number;
  readonly transactions: number;
}

/** Counters of one database of the server, read through another, so that reading them is not counted. */
export class ServerCounters {
  readonly #client: pg.Client;
  readonly #database: string;

  private constructor(client: pg.Client, database: string) {
    this.#client = client;
    this.#database = database;
  }

  static async open(adminUrl: string, database: string): Promise<ServerCounters> {
    const client = new pg.Client({ connectionString: adminUrl });
    client.on("error", () => {});
    await client.connect();
    return new ServerCounters(client, database);
  }

  /** Statistics of other backends reach the view when they are idle; WAL and statements are exact. */
  async read(): Promise<Counters> {
    const { rows } = await this.#client.query<{ wal: number; calls: number; exec: number; xacts: number }>(
      `select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8 as wal,
              coalesce(sum(s.calls), 0)::float8 as calls, coalesce(sum(s.total_exec_time), 0)::float8 as exec,
              (select (xact_commit + xact_rollback)::float8 from pg_stat_database where datname = $1) as xacts
       from pg_database d left join pg_stat_statements s on s.dbid = d.oid
       where d.datname = $1`,
      [this.#database],
    );
    const row = rows[0]!;
    return { walBytes: row.wal, queries: row.calls, execMs: row.exec, transactions: row.xacts };
  }

  async close(): Promise<void> {
    await this.#client.end();
  }
}

export function difference(after: Counters, before: Counters): Counters {
  return {
    walBytes: after.walBytes - before.walBytes,
    queries: after.queries - before.queries,
    execMs: after.execMs - before.execMs,
    transactions: after.transactions - before.transactions,
  };
}
