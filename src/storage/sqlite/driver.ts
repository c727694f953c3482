/**
 * The SQLite driver: opening and migrating a file, users' own transactions, hearing of other connections, the file's clock.
 *
 * Invariant: of two SQLite libraries in one process, only one has the file open (`#changeLibrary`).
 * Not here: running statements (group-commit.ts), the settings of a connection (connection.ts).
 */
import { type Clock, systemClock } from "../../clock.ts";
import { UsageError } from "../../errors.ts";
import { tableNames, type Call, type Script, type Statements, type Tables } from "../catalogue.ts";
import { duration } from "../../values/amounts.ts";
import { type Driver, type Inspection, type RenewalTarget } from "../driver.ts";
import { pending, notMigrated, type AppliedMigration } from "../migrate.ts";
import type { UserTx } from "../user-tx.ts";
import type { Wake } from "../wake.ts";
import { Changes, watchWal } from "./changes.ts";
import { checkVersion, configure, openFile, WAL_LIMIT_BYTES } from "./connection.ts";
import { isDuplicate, toStoreError } from "./error-codes.ts";
import { moveRows } from "./clock-step.ts";
import type { FileClock, Host } from "./file-clock.ts";
import { GroupCommit, SqliteSession } from "./group-commit.ts";
import { databasePath, FileWatch, openedFiles, prepareFile } from "./file.ts";
import { fileOf, type Handle, inTransaction, isForeign, isHandle, openLike, rollBack } from "./handle.ts";
import { inspect } from "./inspect.ts";
import { migrations } from "./migrations.ts";
import { statements } from "./statements/jobs.ts";

export interface SqliteOptions {
  readonly schema: string;
  readonly migrate: boolean | "check";
  readonly durability: "full" | "normal";
  readonly unsafeSqlite: boolean;
  readonly clock: Clock;
  readonly random: () => number;
  readonly onWarning: (message: string, details: Record<string, unknown>) => void;
  /** The machine whose clocks the file's clock reads. Default: this one. */
  readonly host?: Host;
}

interface SqliteTx extends UserTx {
  readonly sync: true;
  readonly session: SqliteSession;
}

export function sqliteTables(schema: string): Tables {
  return tableNames((table) => `"${schema}_${table}"`);
}

export class SqliteDriver extends GroupCommit implements Driver {
  readonly dialect = "sqlite";
  readonly isDuplicate: (error: unknown) => boolean = isDuplicate;
  /** Never called: a file loses no row that was committed. */
  onStaleType: () => void = () => {};
  /** A file is seen by every process through its change counter; nothing can silence it. */
  readonly listening = true;
  readonly poolUse = null;
  readonly ownsPartitions = false;
  readonly proof = (): null => null;
  readonly attached = (): null => null;
  #renewalTarget: RenewalTarget | null = null;
  readonly #catalogue: Statements;
  readonly #options: SqliteOptions;
  readonly #tables: Tables;
  readonly #owned: boolean;
  readonly sessions = new WeakMap<object, SqliteSession>();
  readonly #listeners = new Set<(wake: Wake) => void>();
  #versionPragma: ReturnType<Handle["prepare"]> | null = null;
  #changes: Changes | null = null;
  #handleClosed = false;

  private constructor(handle: Handle, path: string | null, owned: boolean, options: SqliteOptions) {
    const tables = sqliteTables(options.schema);
    const catalogue = statements(tables);
    const { clock, random, host } = options;
    super({ handle, catalogue, tables, path: path ?? "the SQLite database", clock, random, host });
    this.#tables = tables;
    this.#catalogue = catalogue;
    this.#options = options;
    this.#owned = owned;
  }

  static async open(target: string | Handle, options: SqliteOptions): Promise<SqliteDriver> {
    const owned = typeof target === "string";
    const path = owned ? databasePath(target) : null;
    if (path !== null) prepareFile(path, options.unsafeSqlite);
    const handle = owned ? await openFile(path, options.durability) : target;
    try {
      checkVersion(handle, options.unsafeSqlite);
      const driver = new SqliteDriver(handle, path, owned, options);
      await driver.#migrate();
      await driver.#begin(path ?? fileOf(handle));
      return driver;
    } catch (error) {
      if (owned) handle.close();
      throw toStoreError(error, path ?? "the SQLite database");
    }
  }

  get renewalTarget(): RenewalTarget | null {
    return this.#renewalTarget;
  }

  #followQuietly(): void {
    try {
      this.follow(this.session.handle);
    } catch {
      // Busy or gone: the next statement that matters will say so.
    }
  }

  protected stepClock(clock: FileClock): void {
    this.clockMoved(this.#step(clock));
  }

  /** The wall clock was set: the file's time follows it, and what is in the file with it. Gives how far this client's clock moved. */
  #step(clock: FileClock): number {
    const { handle } = this.session;
    let by = 0;
    handle.exec("begin immediate");
    try {
      by += clock.follow(handle);
      const step = clock.step(handle);
      if (step !== null) moveRows(handle, this.#tables, step);
      handle.exec("commit");
    } catch (error) {
      rollBack(handle);
      throw error;
    }
    return by + clock.settled(handle);
  }

  /** The first look at the file's time, and at which files this client has. What cannot be written now is tried again with the first write. */
  async #begin(path: string | null): Promise<void> {
    const { handle } = this.session;
    const clock = this.fileClock;
    if (clock !== null) {
      await this.patiently(() => clock.begin(handle)).catch(() => {});
      const moved = clock.wasSet ? await this.patiently(() => this.#step(clock)).catch(() => 0) : 0;
      // Forward is what a restart of the machine and a night's sleep look like.
      if (moved < 0) this.clockMoved(moved);
    }
    if (path === null) return;
    const files = openedFiles(path);
    this.watch = new FileWatch(files);
    if (this.#owned) this.#renewalTarget = { dialect: "sqlite", path, schema: this.#options.schema, files };
  }

  protected clockMoved(byMs: number): void {
    if (byMs === 0) return;
    this.#options.onWarning(
      `The machine's clock was set ${duration(Math.abs(byMs))} ${byMs < 0 ? "back" : "forward"}, or the machine slept. The time of ${this.path} follows. ` +
        `Due jobs stay due, and every live session gets a whole lease.`,
      { path: this.path, byMs: Math.round(byMs) },
    );
    for (const listener of this.#listeners) listener({ kind: "any" });
  }

  userTx(handle: unknown): SqliteTx {
    if (!isHandle(handle)) {
      throw new UsageError(
        "TX_UNSUPPORTED",
        "`tx` must be the SQLite handle on which your transaction is open: a DatabaseSync of node:sqlite or a better-sqlite3 Database.",
      );
    }
    if (!inTransaction(handle)) {
      throw new UsageError(
        "TX_UNSUPPORTED",
        "`tx` has no open transaction. Run `begin immediate` on it first, or leave `tx` out.",
      );
    }
    this.watch?.check(); // The user's commit is the acknowledgement: this is the last look before it.
    if (this.#owned && isForeign(handle) && !isForeign(this.session.handle)) this.#changeLibrary(handle);
    const known = this.sessions.get(handle);
    const session = known ?? new SqliteSession(handle, this.#catalogue);
    if (known === undefined) {
      this.#checkSameDatabase(session);
      this.sessions.set(handle, session);
    }
    return { sync: true, session };
  }

  /**
   * Two SQLite libraries in one process do not exclude each other: POSIX locks belong to the process, so each finds the
   * other's lock its own (sqlite.org/howtocorrupt, "multiple copies of SQLite"). A better-sqlite3 handle on our file is
   * such a second library, so from here on this client uses that library too, and renews on the main thread. The
   * connection that we leave is never closed: closing it would drop the process's locks, the user's included.
   */
  #changeLibrary(handle: Handle): void {
    const own = openLike(handle, this.path);
    configure(own, this.#options.durability);
    leftOpen.push(this.session.handle);
    this.session = new SqliteSession(own, this.#catalogue);
    this.#renewalTarget = null;
    this.#versionPragma = null;
    this.#changes?.renew();
    this.#options.onWarning(
      `A better-sqlite3 handle is open on ${this.path} in this process, so Holdfast uses that library and renews leases on the main thread. ` +
        `Pass the handle to open() instead.`,
      { path: this.path },
    );
  }

  #checkSameDatabase(session: SqliteSession): void {
    const call: Call = { name: "instance", params: {} };
    let theirs: unknown = null;
    try {
      theirs = session.run(call)[0]?.["value"];
    } catch {
      // No such table: certainly another file.
    }
    if (theirs !== this.session.run(call)[0]?.["value"]) {
      throw new UsageError(
        "TX_WRONG_DATABASE",
        `\`tx\` is on another database than ${this.path}, so the job would never run. Open both on the same file.`,
      );
    }
  }

  inUserTx<T>(tx: UserTx, script: () => Script<T>): Promise<T> {
    const { session } = tx as SqliteTx;
    const origin = this.origin;
    return new Promise<T>((resolve) => {
      this.follow(session.handle);
      resolve(this.run(session, script, origin));
    });
  }

  /** Bounds the WAL: a checkpoint that truncates it when nobody reads from it. */
  async tidy(): Promise<void> {
    if (!this.#owned || inTransaction(this.session.handle)) return;
    const [row] = this.session.handle.prepare("pragma wal_checkpoint(truncate)").all() as {
      busy?: number;
      log?: number;
    }[];
    const bytes = Math.max(0, row?.log ?? 0) * 4096;
    if (row?.busy === 1 && bytes > WAL_LIMIT_BYTES) {
      this.#options.onWarning(
        `The WAL of ${this.path} has grown to ${Math.round(bytes / 1024 / 1024)} MB because a reader holds it. Find a long read transaction.`,
        { bytes },
      );
    }
  }

  inspect(): Promise<Inspection> {
    const path = this.#owned && this.watch !== null ? this.path : null;
    return this.patiently(() => inspect(this.session.handle, path));
  }

  async dropOld(): Promise<number> {
    return 0;
  }

  listen(onWake: (wake: Wake) => void): () => void {
    this.#listeners.add(onWake);
    // A database in memory has no other connection.
    if (this.#changes === null && this.#owned && this.watch !== null) {
      this.#changes = new Changes({
        clock: systemClock,
        version: () => this.#readDataVersion(),
        onChange: () => {
          this.#followQuietly();
          for (const listener of this.#listeners) listener({ kind: "any" });
        },
        watchWal: watchWal(this.path),
      });
    }
    return () => {
      this.#listeners.delete(onWake);
      if (this.#listeners.size === 0) this.#stopWatching();
    };
  }

  #readDataVersion(): number {
    this.#versionPragma ??= this.session.handle.prepare("pragma data_version");
    const [row] = this.#versionPragma.all() as { data_version: number }[];
    return row?.data_version ?? 0;
  }

  #stopWatching(): void {
    this.#changes?.stop();
    this.#changes = null;
  }

  /** Other processes see the change counter; there is nothing to send. */
  notify(): void {}

  async notifyInTx(): Promise<void> {}

  override async close(): Promise<void> {
    this.#stopWatching();
    await super.close();
    if (this.#owned && !this.#handleClosed) this.session.handle.close();
    this.#handleClosed = true;
  }

  async #migrate(): Promise<void> {
    const { schema, migrate } = this.#options;
    const tables = sqliteTables(schema);
    const { handle } = this.session;
    const applied = (): AppliedMigration[] => {
      const exists = handle
        .prepare("select 1 from sqlite_master where type = 'table' and name = ?")
        .all(`${schema}_migration`);
      if (exists.length === 0) return [];
      const rows = handle.prepare(`select version, breaking from ${tables.migration}`).all() as {
        version: number;
        breaking: number;
      }[];
      return rows.map((row) => ({ version: row.version, breaking: row.breaking === 1 }));
    };
    const missing = await this.patiently(() => pending(migrations, applied()));
    if (missing.length === 0) return;
    if (migrate !== true) throw notMigrated(missing, applied());
    await this.patiently(() => {
      handle.exec("begin immediate");
      try {
        handle.exec(
          `create table if not exists ${tables.migration} (version integer primary key, name text not null, breaking integer not null, applied_at integer not null)`,
        );
        for (const step of pending(migrations, applied())) {
          for (const sql of step.sql(tables, schema)) handle.exec(sql);
          handle
            .prepare(`insert into ${tables.migration} values (?, ?, ?, ?)`)
            .run(step.version, step.name, step.breaking === true ? 1 : 0, Date.now());
        }
        handle.exec("commit");
      } catch (error) {
        rollBack(handle);
        throw error;
      }
    });
  }
}

/** Connections that must outlive their use, see `#changeLibrary`. */
const leftOpen: Handle[] = [];
