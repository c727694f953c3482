/**
 * The Postgres driver: catalogue calls over pools, migrations under an advisory lock, the user's own transactions.
 *
 * One call is one statement, so it is its own transaction and costs one round trip. Scripts of several calls run
 * between begin and commit on one connection. Only transaction-level advisory locks are used: through a pooler, a
 * session's lock belongs to nobody.
 */
import { systemClock, type Clock } from "../../clock.ts";
import { StoreError, UsageError } from "../../errors.ts";
import { describeFailure } from "../../jobs/failure.ts";
import {
  bind,
  column,
  composed,
  MOST_COMPOSED,
  parse,
  tableNames,
  type Call,
  type Params,
  type Parsed,
  type Row,
  type RowList,
  type Script,
  type StatementName,
  type Statements,
  type Tables,
  type TransactionName,
  type WriteName,
} from "../catalogue.ts";
import {
  count,
  newCounters,
  runAsync,
  type Driver,
  type Inspection,
  type Lane,
  type PoolUse,
  type RenewalTarget,
  type AttachedStatement,
  type StoreCounters,
} from "../driver.ts";
import { pending, notMigrated, type AppliedMigration } from "../migrate.ts";
import { poolOfRead } from "../dashboard-reads.ts";
import type { UserTx } from "../user-tx.ts";
import type { Wake } from "../wake.ts";
import { arrayBytes, arrayText, type Element } from "./arrays.ts";
import { Connections, DEADLINE_MS, statementName, type Prepared } from "./connections.ts";
import { isDuplicate, isStaleType, sqlState, toUserTxError } from "./error-codes.ts";
import { encode, Listener, Notifier, NOTIFY_ALL } from "./listen.ts";
import { Inspector } from "./inspect.ts";
import { migrations } from "./migrations.ts";
import { dropPartitions, dropStrays, makePartitions } from "./partitions.ts";
import { isClient, isIdle, isNative, type PgClient, type PgPool } from "./pg.ts";
import { lateJobs, Recent } from "./recent.ts";
import { isHostile, PIN_THEIRS, PUT_BACK, qualified } from "./search-path.ts";
import { ServerClock } from "./server-clock.ts";
import { BOUND, type Late, unbound } from "./claim-answer.ts";
import { statements } from "./statements/jobs.ts";

/** How long the last wake-ups may take when a client closes. */
const FLUSH_MS = 1_000;

/** As `server_version_num` counts: Postgres 14. */
const OLDEST_VERSION = 140_000;

export interface PostgresOptions {
  readonly schema: string;
  readonly migrate: boolean | "check";
  readonly poolSize: number;
  readonly clock: Clock;
  /** Tell other processes when a user's transaction with jobs in it commits. */
  readonly notify: boolean;
  readonly onConnectionLost: (error: unknown) => void;
  readonly onConnectionBack: (afterMs: number) => void;
  readonly onWarning: (message: string, details: Record<string, unknown>) => void;
}

interface PostgresTx extends UserTx {
  readonly sync: false;
  readonly client: PgClient;
}

export function postgresTables(schema: string): Tables {
  return tableNames((table) => `"${schema}"."${table}"`);
}

export interface Compiled {
  readonly text: string;
  readonly name: string;
  readonly parsed: Parsed;
}

/** The catalogue's statements with `$1` for `:name`, and their values in that order. */
export class Compiler {
  readonly #tables: Tables;
  readonly #statements: Statements;
  readonly #compiled = new Map<StatementName, Compiled>();
  readonly #composed = new Map<string, Compiled>();
  /** The claims, with the table that they look in. */
  #recent: { readonly table: string; readonly compiled: Map<StatementName, Compiled> } | null = null;
  readonly #late: Compiled;

  constructor(schema: string) {
    this.#tables = postgresTables(schema);
    this.#statements = statements(this.#tables);
    this.#late = compiled(lateJobs(this.#tables));
  }

  /** `binary`: arrays as bytes. libpq's own driver, which a user's transaction may be on, takes text alone. */
  prepare(call: Call, binary = true): Prepared {
    const { text, name, parsed } = this.#compile(call);
    return { text, name, values: values(parsed, call.params, binary) };
  }

  /** A claim that looks for its jobs in this table. */
  prepareClaim(call: Call, table: string): Prepared {
    if (this.#recent?.table !== table) this.#recent = { table, compiled: new Map() };
    let known = this.#recent.compiled.get(call.name);
    if (known === undefined) {
      known = compiled(statements(this.#tables, table)[call.name] as string);
      this.#recent.compiled.set(call.name, known);
    }
    return { text: known.text, name: known.name, values: values(known.parsed, call.params, true) };
  }

  prepareLate({ ids, token }: Late): Prepared {
    const { text, name, parsed } = this.#late;
    return { text, name, values: values(parsed, { ids, token: Number(token) }, true) };
  }

  #compile(call: Call): Compiled {
    const { name } = call;
    const known = this.#compiled.get(name);
    if (known !== undefined) return known;
    const entry = this.#statements[name];
    if (typeof entry === "function") return this.#compose(call);
    if (typeof entry !== "string") throw new TypeError(`${name}: one statement for each call in Postgres`);
    const fresh = compiled(entry);
    this.#compiled.set(name, fresh);
    return fresh;
  }

  /** Without a name: the server plans it for its values, and no connection keeps every combination of a filter's fields. */
  #compose(call: Call): Compiled {
    const { key, text } = composed(this.#statements, call);
    const known = this.#composed.get(key);
    if (known !== undefined) return known;
    const fresh = { ...compiled(text() as string), name: "" };
    const [oldest] = this.#composed.keys();
    if (oldest !== undefined && this.#composed.size >= MOST_COMPOSED) this.#composed.delete(oldest);
    this.#composed.set(key, fresh);
    return fresh;
  }
}

/** The statement as the server receives it. */
export function compiled(entry: string): Compiled {
  const { text: bare, parsed } = number(parse(entry));
  const text = qualified(bare);
  return { text, name: statementName(text), parsed };
}

/** A parameter that is named twice is sent once. */
function number(parsed: Parsed): { text: string; parsed: Parsed } {
  const rowKeys = new Map<string, number>();
  const slots: Parsed["slots"][number][] = [];
  let text = parsed.pieces[0] ?? "";
  parsed.slots.forEach((slot, index) => {
    const key = `${slot.param}.${slot.column ?? ""}`;
    let rowKey = rowKeys.get(key);
    if (rowKey === undefined) {
      slots.push(slot);
      rowKey = slots.length;
      rowKeys.set(key, rowKey);
    }
    text += `$${rowKey}${parsed.pieces[index + 1] ?? ""}`;
  });
  return { text, parsed: { pieces: [], slots } };
}

function values(parsed: Parsed, params: Params, binary: boolean): unknown[] {
  return bind(parsed, params, (value, slot) => {
    if (slot.column === null && !Array.isArray(value)) return value;
    const items =
      slot.column === null ? (value as readonly Element[]) : column(value as RowList, slot.column);
    return (binary && slot.array !== null ? arrayBytes(slot.array, items) : null) ?? arrayText(items);
  });
}

export class PostgresDriver implements Driver {
  readonly dialect = "postgres";
  readonly counters: StoreCounters = newCounters();
  readonly isDuplicate: (error: unknown) => boolean = isDuplicate;
  onStaleType: () => void = () => {};
  readonly renewalTarget: RenewalTarget | null;
  readonly #connections: Connections;
  readonly #compiler: Compiler;
  readonly #recent: Recent;
  /** The server's, unless the client's is a fake one. */
  readonly clock: Clock;
  readonly #inspector: Inspector;
  readonly #options: PostgresOptions;
  readonly #checked = new WeakSet<object>();
  /** Users' clients with a hostile search path, each with the end of what was last sent there. */
  readonly #hostile = new WeakMap<PgClient, Promise<unknown>>();
  readonly #listeners = new Set<(wake: Wake) => void>();
  readonly #notifier: Notifier;
  #listener: Listener | null = null;
  #asking: Promise<void> | null = null;
  #ownsPartitions = false;

  private constructor(target: string | PgPool, connections: Connections, options: PostgresOptions) {
    this.#connections = connections;
    this.#options = options;
    this.#compiler = new Compiler(options.schema);
    this.clock = options.clock.system ? new ServerClock(options.clock) : options.clock;
    this.#recent = new Recent(options.schema, this.clock);
    this.#inspector = new Inspector(
      (text, values = []) => connections.query({ text, name: "", values }, poolOfRead()),
      options.schema,
    );
    this.renewalTarget =
      typeof target === "string" ? { dialect: "postgres", url: target, schema: options.schema } : null;
    this.#notifier = new Notifier(async (payloads) => {
      count(this.counters, "notify");
      await this.#notifyAll(payloads);
    });
  }

  #notifyAll(payloads: readonly string[]): Promise<Row[]> {
    const values = [this.#options.schema, payloads];
    return this.#connections.query({ text: NOTIFY_ALL, name: "hf_notify", values }, "general");
  }

  static async open(target: string | PgPool, options: PostgresOptions): Promise<PostgresDriver> {
    const connections = await Connections.open(target, {
      poolSize: options.poolSize,
      applicationName: "holdfast",
      clock: options.clock,
      onConnectionLost: options.onConnectionLost,
      onConnectionBack: options.onConnectionBack,
    });
    const driver = new PostgresDriver(target, connections, options);
    try {
      await driver.#migrate();
      return driver;
    } catch (error) {
      await connections.close();
      throw error;
    }
  }

  /** The server's clock, unless the client's is a fake one. */
  now(): number | null {
    return this.#options.clock.system ? null : Math.floor(this.#options.clock.now());
  }

  read(call: Call, lane: Lane = poolOfRead()): Promise<Row[]> {
    return this.#query(call, lane);
  }

  write(call: Call<WriteName>, lane: Lane = "general"): Promise<Row[]> {
    this.counters.commits += 1;
    return this.#query(call, lane).catch(this.#refused);
  }

  #query(call: Call, lane: Lane): Promise<Row[]> {
    count(this.counters, call.name);
    if (this.clock instanceof ServerClock && this.clock.doubtful) void this.#askTime().catch(() => {});
    if (BOUND.has(call.name)) return this.#claim(call, lane);
    const statement = this.#compiler.prepare(call);
    return call.name === "checkDue" ? this.#timed(statement, lane) : this.#connections.query(statement, lane);
  }

  /** A statement whose first row has the server's time. */
  async #timed(statement: Prepared, lane: Lane): Promise<Row[]> {
    const sentAt = this.clock.monotonic();
    const rows = await this.#connections.query(statement, lane);
    if (this.clock instanceof ServerClock) this.clock.heard(Number(rows[0]?.["now"]), sentAt);
    return rows;
  }

  async #askTime(): Promise<void> {
    this.#asking ??= this.#timed(this.#compiler.prepare({ name: "now", params: { now: null } }), "general")
      .then(() => {})
      .finally(() => (this.#asking = null));
    await this.#asking;
  }

  async #claim(call: Call, lane: Lane): Promise<Row[]> {
    const table = this.#recent.table();
    const { rows, late } = unbound(await this.#claimFrom(table, call, lane));
    if (late.length === 0) return rows;
    this.#recent.missed();
    for (const jobs of late) {
      count(this.counters, "lateJobs");
      const answer = unbound(await this.#connections.query(this.#compiler.prepareLate(jobs), lane));
      rows.push(...answer.rows);
      this.#strays(answer.late.reduce((sum, { ids }) => sum + ids.length, 0));
    }
    return rows;
  }

  /** Nothing was claimed where the table is gone (its span was dropped) or may not be read: the parent always can. */
  #claimFrom(table: string | null, call: Call, lane: Lane): Promise<Row[]> {
    if (table === null) return this.#connections.query(this.#compiler.prepare(call), lane);
    return this.#connections.query(this.#compiler.prepareClaim(call, table), lane).catch((error: unknown) => {
      const code = error instanceof StoreError ? error.code : null;
      if (code !== "SCHEMA_MISSING" && code !== "PERMISSION_DENIED") throw error;
      this.#recent.lost();
      return this.#claimFrom(null, call, lane);
    });
  }

  transaction<T>(_name: TransactionName, script: () => Script<T>, lane: Lane = poolOfRead()): Promise<T> {
    this.counters.commits += 1;
    const body = (send: (statement: Prepared) => Promise<Row[]>): Promise<T> =>
      runAsync(script(), (call) => {
        count(this.counters, call.name);
        const answer = send(this.#compiler.prepare(call));
        return BOUND.has(call.name) ? answer.then((rows) => unbound(rows).rows) : answer;
      });
    return this.#connections.transaction(body, lane).catch(this.#refused);
  }

  readonly #refused = (error: unknown): never => {
    if (isStaleType(error)) this.onStaleType();
    throw error;
  };

  async userTx(handle: unknown): Promise<PostgresTx> {
    if (!isClient(handle)) {
      throw new UsageError(
        "TX_UNSUPPORTED",
        "`tx` must be the node-postgres client on which your transaction is open (pool.connect() and `begin`, not the pool itself).",
      );
    }
    const tx: PostgresTx = { sync: false, client: handle };
    await this.#checkSameDatabase(tx);
    if (isIdle(handle)) {
      throw new UsageError(
        "TX_UNSUPPORTED",
        "No transaction is open on `tx`, so a rollback could not remove the job. Begin a transaction first.",
      );
    }
    return tx;
  }

  /** Asks for the instance mark through the user's client: another database or schema has another one, or none. */
  async #checkSameDatabase(tx: PostgresTx): Promise<void> {
    // An idle one is asked again, so that a `begin` that is still on its way counts.
    if (this.#checked.has(tx.client) && !isIdle(tx.client)) return;
    const [status] = await this.#inTx(tx, {
      text: "select pg_catalog.to_regclass($1) is not null as here, pg_catalog.current_setting('search_path') as path",
      name: "",
      values: [`"${this.#options.schema}"."meta"`],
    });
    if (!this.#hostile.has(tx.client) && isHostile(String(status?.["path"])))
      this.#hostile.set(tx.client, Promise.resolve());
    if (this.#checked.has(tx.client)) return;
    const theirs =
      status?.["here"] === true
        ? (await this.#inTx(tx, this.#compiler.prepare({ name: "instance", params: {} })))[0]?.["value"]
        : null;
    const [ours] = await this.read({ name: "instance", params: {} });
    if (theirs !== ours?.["value"]) {
      throw new UsageError(
        "TX_WRONG_DATABASE",
        "`tx` is on another database than this client, so the job would never run. Open both on the same database.",
      );
    }
    this.#checked.add(tx.client);
  }

  inUserTx<T>(tx: UserTx, script: () => Script<T>): Promise<T> {
    return runAsync(script(), (call) => {
      count(this.counters, call.name);
      const { client } = tx as PostgresTx;
      return this.#inTx(tx as PostgresTx, this.#compiler.prepare(call, !isNative(client)));
    }).catch(this.#refused);
  }

  /** Never a named statement in the user's transaction: an error there would be theirs to clean up. */
  async #inTx({ client }: PostgresTx, statement: Prepared): Promise<Row[]> {
    const send = (text: string, values: readonly unknown[] = []): Promise<Row[]> =>
      this.#connections.send(client, { text, values, name: "" }, DEADLINE_MS);
    const before = this.#hostile.get(client);
    try {
      if (before === undefined) return await send(statement.text, statement.values);
      const answer = before.then(async () => {
        await send(PIN_THEIRS);
        // Where it fails there is nothing to put back: their rollback does it.
        const rows = await send(statement.text, statement.values);
        await send(PUT_BACK);
        return rows;
      });
      this.#hostile.set(
        client,
        answer.catch(() => {}),
      );
      return await answer;
    } catch (error) {
      throw toUserTxError(error);
    }
  }

  async tidy(keepMs: number | null = null): Promise<void> {
    const { schema, onWarning } = this.#options;
    const { jobs, failure } = await makePartitions(this.#connections, schema, keepMs);
    this.#recent.learn(jobs);
    // A role that may not create tables leaves it to one that may; doctor tells when nobody does.
    if (failure instanceof Error && (failure as { code?: unknown }).code !== "PERMISSION_DENIED")
      onWarning(`Partitions could not be created: ${failure.message}`, { error: failure.message });
    this.#strays(await dropStrays(this.#connections, schema, jobs));
  }

  #strays(count: number): void {
    if (count === 0) return;
    this.#options.onWarning(
      `${count} rows of "ready" had no row in "job" and could not run. They were deleted.`,
      { count },
    );
  }

  get ownsPartitions(): boolean {
    return this.#ownsPartitions;
  }

  get poolUse(): PoolUse {
    return this.#connections.use();
  }

  inspect(): Promise<Inspection> {
    return this.#inspector.inspect();
  }

  async dropOld(policy: {
    doneMs: number;
    deadMs: number;
    exceptQueues: readonly string[];
  }): Promise<number> {
    if (!this.#ownsPartitions) return 0;
    const { dropped, failures } = await dropPartitions(this.#connections, this.#options.schema, {
      ...policy,
      now: this.now(),
    });
    for (const { partition, error } of failures) {
      const { message } = describeFailure(error);
      this.#options.onWarning(
        `The partition ${partition} cannot be dropped, so its jobs are deleted row by row: ${message}`,
        { partition, error: message },
      );
    }
    return dropped;
  }

  listen(onWake: (wake: Wake) => void): () => void {
    this.#listeners.add(onWake);
    this.#listener ??= new Listener({
      channel: this.#options.schema,
      connect: () => this.#connections.dedicated(),
      send: (message) => this.#notifyAll([message]),
      onWake: (wake) => {
        for (const listener of this.#listeners) listener(wake);
      },
      onWarning: this.#options.onWarning,
    });
    return () => {
      this.#listeners.delete(onWake);
      if (this.#listeners.size > 0) return;
      this.#listener?.stop();
      this.#listener = null;
    };
  }

  proof(): AttachedStatement | null {
    return this.#attached(this.#listener?.proof() ?? null);
  }

  attached(wake: Wake): AttachedStatement | null {
    return this.#attached(this.#notifier.ride(wake));
  }

  #attached(message: string | null): AttachedStatement | null {
    return message === null ? null : { channel: this.#options.schema, message };
  }

  get listening(): boolean {
    return this.#listener?.proven ?? false;
  }

  notify(wake: Wake): void {
    this.#notifier.push(wake);
  }

  async notifyInTx(tx: UserTx, wakes: readonly Wake[]): Promise<void> {
    if (!this.#options.notify || wakes.length === 0) return;
    await this.#inTx(tx as PostgresTx, {
      text: NOTIFY_ALL,
      name: "",
      values: [this.#options.schema, wakes.map(encode)],
    });
  }

  async close(): Promise<void> {
    this.#listener?.stop();
    this.#listener = null;
    // Others would find the last jobs by polling, seconds later.
    await Promise.race([
      this.#notifier.flush(),
      new Promise<void>((resolve) => void systemClock.after(FLUSH_MS, resolve, { unref: true })),
    ]);
    await this.#connections.close();
  }

  async #migrate(): Promise<void> {
    const { schema, migrate } = this.#options;
    await this.#checkVersion();
    const applied = await this.#applied((statement) => this.#connections.query(statement, "general"));
    const missing = pending(migrations, applied);
    if (missing.length > 0) {
      if (migrate !== true) throw notMigrated(missing, applied);
      await this.#applyMigrations(schema);
    }
    const [row] = await this.#connections.query(
      {
        text: "select pg_has_role(c.relowner, 'usage') and has_schema_privilege(c.relnamespace, 'create') as owns from pg_class c where c.oid = to_regclass($1)",
        name: "",
        values: [postgresTables(schema).job],
      },
      "general",
    );
    this.#ownsPartitions = row?.["owns"] === true;
    if (migrate === true) await this.tidy();
  }

  async #checkVersion(): Promise<void> {
    const text =
      "select current_setting('server_version_num')::int as version, (extract(epoch from statement_timestamp()) * 1000.0)::bigint as now";
    const [row] = await this.#timed({ text, name: "", values: [] }, "general");
    const version = Number(row?.["version"]);
    if (version >= OLDEST_VERSION) return;
    throw new StoreError(
      "POSTGRES_TOO_OLD",
      `This server is Postgres ${Math.floor(version / 10_000)}; Holdfast needs 14 or newer.`,
      { details: { version } },
    );
  }

  /** Under a lock that is taken before anything else is looked at: `if not exists` alone is not safe against a race. */
  #applyMigrations(schema: string): Promise<void> {
    const tables = postgresTables(schema);
    const plain = (text: string, values: readonly unknown[] = []): Prepared => ({ text, name: "", values });
    return this.#connections.transaction(async (send) => {
      // Whoever migrates is waited for: on a busy machine it takes longer than the second that other locks are given.
      await send(plain("set local lock_timeout = '20s'"));
      await send(
        plain("select pg_advisory_xact_lock(hashtextextended($1, 0::bigint))", [
          `holdfast.migrate.${schema}`,
        ]),
      );
      const [{ exists } = { exists: false }] = await send(
        plain("select to_regnamespace($1) is not null as exists", [`"${schema}"`]),
      );
      if (exists !== true) await send(plain(`create schema "${schema}"`));
      await send(
        plain(
          `create table if not exists ${tables.migration} (version int primary key, name text not null, breaking bool not null, applied_at bigint not null)`,
        ),
      );
      for (const step of pending(migrations, await this.#applied(send))) {
        for (const sql of step.sql(tables, schema)) await send(plain(sql));
        await send(
          plain(
            `insert into ${tables.migration} values ($1, $2, $3, (extract(epoch from now()) * 1000.0)::bigint)`,
            [step.version, step.name, step.breaking === true],
          ),
        );
      }
    });
  }

  async #applied(send: (statement: Prepared) => Promise<Row[]>): Promise<AppliedMigration[]> {
    const tables = postgresTables(this.#options.schema);
    const [table] = await send({
      text: "select to_regclass($1) is not null as exists",
      name: "",
      values: [tables.migration],
    });
    if (table?.["exists"] !== true) return [];
    try {
      const rows = await send({
        text: `select version, breaking from ${tables.migration}`,
        name: "",
        values: [],
      });
      return rows.map((row) => ({ version: Number(row["version"]), breaking: row["breaking"] === true }));
    } catch (error) {
      if (sqlState(error) === "42501")
        throw new StoreError(
          "PERMISSION_DENIED",
          "The role may not read Holdfast's schema. Grant it the rights that docs/guides/postgres.md lists.",
          { cause: error },
        );
      throw error;
    }
  }
}
