// A private Postgres server for tests, from the npm binaries (test/support/postgres-binaries). The server runs
// in the foreground as a child of this process, so its pid is known; guard.ts ends it if this process cannot.
//
//   startPostgres(18) ──▶ running ──stop("fast" | "immediate" | "kill")──▶ stopped ──start()──▶ running
//
// Postgres refuses to run as root; as root, it runs as `nobody` in a directory of its own.
import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import {
  appendFileSync,
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  lchownSync,
  mkdirSync,
  readdirSync,
} from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { forget, killAtExit, removeDirectory, temporaryDirectory } from "./guard.ts";

export type PostgresMajor = 14 | 18;

export interface PostgresOptions {
  /** Default false: tests survive without, and a commit costs a tenth. Crashes of the server process lose nothing. */
  fsync?: boolean;
  /** More server settings, as `-c name=value`. */
  settings?: Record<string, string | number>;
}

/** fast: sessions are ended, clean shutdown. immediate: recovery at the next start. kill: SIGKILL, as by the OOM killer. */
export type StopMode = "fast" | "immediate" | "kill";

const signals = { fast: "SIGINT", immediate: "SIGQUIT", kill: "SIGKILL" } as const;
const nobody = 65534;
const isRoot = process.getuid?.() === 0;
const user = isRoot ? { uid: nobody, gid: nobody } : {};

export class PostgresServer {
  readonly major: PostgresMajor;
  readonly port: number;
  readonly directory: string;
  #binaries: string;
  #options: PostgresOptions;
  #process: ChildProcess | undefined;
  #log = "";

  private constructor(
    major: PostgresMajor,
    port: number,
    directory: string,
    binaries: string,
    options: PostgresOptions,
  ) {
    this.major = major;
    this.port = port;
    this.directory = directory;
    this.#binaries = binaries;
    this.#options = options;
  }

  /** initdb and start; about 1 s. The port stays the same over restarts. */
  static async create(major: PostgresMajor, options: PostgresOptions = {}): Promise<PostgresServer> {
    const directory = temporaryDirectory(`pg${major}`);
    if (isRoot) chownSync(directory, nobody, nobody);
    const binaries = readableBinaries(major, directory);
    await initdb(binaries, join(directory, "data"));
    for (let tries = 1; ; tries++) {
      const server = new PostgresServer(major, await freePort(), directory, binaries, options);
      try {
        await server.start();
        return server;
      } catch (error) {
        // Somebody took the port between our look and Postgres's bind.
        if (tries === 3 || !server.log.includes("Address already in use")) {
          removeDirectory(directory);
          throw error;
        }
      }
    }
  }

  /** A standby that follows this server by streaming, made of a copy of its files. This server restarts for the copy. */
  async standby(): Promise<PostgresServer> {
    const directory = temporaryDirectory(`pg${this.major}-standby`);
    const data = join(directory, "data");
    await this.stop("fast");
    cpSync(join(this.directory, "data"), data, { recursive: true });
    const source = `primary_conninfo = 'host=127.0.0.1 port=${this.port} user=postgres'\n`;
    appendFileSync(join(data, "postgresql.auto.conf"), source);
    appendFileSync(join(data, "standby.signal"), "");
    chmodSync(data, 0o700);
    if (isRoot) giveToNobody(directory);
    await this.start();
    const server = new PostgresServer(this.major, await freePort(), directory, this.#binaries, this.#options);
    await server.start();
    return server;
  }

  /** Whether a standby has received everything that its primary has written. */
  async caughtUp(primary: PostgresServer): Promise<boolean> {
    const at = await read(primary.url(), "select pg_current_wal_lsn()::text as value");
    return (await read(this.url(), `select pg_last_wal_replay_lsn() >= '${at}'::pg_lsn as value`)) === "true";
  }

  /** The standby receives nothing more: from now on it lags. */
  async unfollow(): Promise<void> {
    await this.run("alter system set primary_conninfo = ''");
    await this.run("select pg_reload_conf()");
    while ((await read(this.url(), "select count(*)::text as value from pg_stat_wal_receiver")) !== "0")
      await sleep(20);
  }

  /** The standby becomes a primary, with what it has received. */
  async promote(): Promise<void> {
    await this.run("select pg_promote(true)");
  }

  get running(): boolean {
    return this.#process !== undefined;
  }

  /** The postmaster. */
  get pid(): number | undefined {
    return this.#process?.pid;
  }

  /** What the server has printed. */
  get log(): string {
    return this.#log;
  }

  url(database = "postgres"): string {
    return `postgres://postgres@127.0.0.1:${this.port}/${database}`;
  }

  /** The same through the Unix socket, for drivers that take `host=`. */
  socketUrl(database = "postgres"): string {
    return `postgres://postgres@/${database}?host=${encodeURIComponent(this.directory)}&port=${this.port}`;
  }

  /** After a kill, the dead postmaster's orphans hold its shared memory for a moment: retried for 5 s. */
  async start(): Promise<void> {
    if (this.#process) return;
    const deadline = performance.now() + 5_000;
    for (;;) {
      const failure = await this.#startOnce();
      if (failure === undefined) return;
      const orphans = /shared memory block|is still in use|lock file .* already exists/.test(failure);
      if (!orphans || performance.now() > deadline)
        throw new Error(`Postgres ${this.major} did not start: ${failure}`);
      await sleep(100);
    }
  }

  async stop(mode: StopMode = "fast"): Promise<void> {
    const child = this.#process;
    if (child === undefined) return;
    const exited = new Promise((resolve) => child.once("exit", resolve));
    child.kill(signals[mode]);
    const late = setTimeout(() => child.kill("SIGQUIT"), 10_000);
    await exited;
    clearTimeout(late);
  }

  /** A crash and recovery: every connection breaks, what was committed is there again. */
  async restartImmediate(): Promise<void> {
    await this.stop("immediate");
    await this.start();
  }

  /** Stops the server and removes its files. */
  async remove(): Promise<void> {
    await this.stop("immediate");
    removeDirectory(this.directory);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.remove();
  }

  async run(sql: string): Promise<void> {
    await once(this.url(), sql);
  }

  async createDatabase(name: string): Promise<string> {
    await once(this.url(), `create database ${pg.escapeIdentifier(name)}`);
    return this.url(name);
  }

  /** Gives undefined when the server answers, else what it printed. */
  async #startOnce(): Promise<string | undefined> {
    const settings: Record<string, string | number> = {
      listen_addresses: "127.0.0.1",
      port: this.port,
      unix_socket_directories: this.directory,
      max_connections: 200,
      // Dropping a test's schema locks each of its tables and indexes, and several tests drop theirs at once.
      max_locks_per_transaction: 512,
      fsync: this.#options.fsync === true ? "on" : "off",
      shared_buffers: "64MB",
      // Nothing in a test may depend on the machine's time zone.
      timezone: "UTC",
      log_timezone: "UTC",
      ...this.#options.settings,
    };
    const args = ["-D", join(this.directory, "data")];
    for (const [name, value] of Object.entries(settings)) args.push("-c", `${name}=${value}`);
    const child = spawn(join(this.#binaries, "bin", "postgres"), args, {
      ...user,
      cwd: this.directory,
      stdio: ["ignore", "ignore", "pipe"],
      env: { PATH: process.env["PATH"], LC_ALL: "C" },
    });
    if (child.pid === undefined) {
      return new Promise((resolve) => child.once("error", (error) => resolve(error.message)));
    }
    const { pid } = child;
    killAtExit(pid, "QUIT");
    child.unref();
    (child.stderr as typeof child.stderr & { unref?: () => void }).unref?.();
    const from = this.#log.length;
    child.stderr.setEncoding("utf8").on("data", (text: string) => (this.#log += text));
    child.once("exit", () => {
      forget(pid);
      this.#process = undefined;
    });
    this.#process = child;

    const deadline = performance.now() + 30_000;
    while (performance.now() < deadline) {
      if (!this.#process) {
        await sleep(20); // the rest of its last words
        return this.#log.slice(from).trim() || "it ended at once";
      }
      try {
        await once(this.url(), "select 1");
        return undefined;
      } catch {
        await sleep(30);
      }
    }
    await this.stop("immediate");
    return `no answer within 30 s\n${this.#log.slice(from)}`;
  }
}

export function startPostgres(major: PostgresMajor, options: PostgresOptions = {}): Promise<PostgresServer> {
  return PostgresServer.create(major, options);
}

/** The majors that npm has installed for this platform (14 exists for linux-x64 alone). */
export function installedMajors(): PostgresMajor[] {
  return ([14, 18] as const).filter((major) => binariesOf(major) !== undefined);
}

function binariesOf(major: PostgresMajor): string | undefined {
  const name = join("node_modules", `pg${major}-${process.platform}-${process.arch}`, "native");
  const roots = [join(import.meta.dirname, "..", ".."), join(import.meta.dirname, "postgres-binaries")];
  return roots.map((root) => join(root, name)).find((path) => existsSync(join(path, "bin", "postgres")));
}

/** Where the server's user can run them from: a copy, when the checkout is closed to it (below /root, say). */
function readableBinaries(major: PostgresMajor, directory: string): string {
  const found = binariesOf(major);
  if (found === undefined) {
    throw new Error(
      `No Postgres ${major} for ${process.platform}-${process.arch}: run \`npm ci\` (with scripts and optional packages).`,
    );
  }
  if (!isRoot || spawnSync(join(found, "bin", "initdb"), ["--version"], { ...user, cwd: "/" }).status === 0)
    return found;
  const copy = join(directory, "binaries");
  mkdirSync(copy);
  cpSync(found, copy, { recursive: true, verbatimSymlinks: true });
  giveToNobody(copy);
  return copy;
}

function giveToNobody(directory: string): void {
  lchownSync(directory, nobody, nobody);
  for (const entry of readdirSync(directory, { recursive: true, encoding: "utf8" }))
    lchownSync(join(directory, entry), nobody, nobody);
}

async function initdb(binaries: string, data: string): Promise<void> {
  const args = ["-D", data, "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"];
  const child = spawn(join(binaries, "bin", "initdb"), args, {
    ...user,
    cwd: join(data, ".."),
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (output += chunk.toString()));
  const code = await new Promise<number | null>((resolve, reject) =>
    child.once("error", reject).once("close", resolve),
  );
  if (code !== 0) throw new Error(`initdb failed with ${code}:\n${output}`);
}

async function once(url: string, sql: string): Promise<void> {
  await read(url, sql);
}

/** The column `value` of the first row, as text. */
async function read(url: string, sql: string): Promise<string> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000 });
  client.on("error", () => {});
  try {
    await client.connect();
    const answer = await client.query<{ value?: unknown }>(sql);
    // Several statements in one text answer with a list.
    return Array.isArray(answer) ? "" : String(answer.rows[0]?.value);
  } finally {
    await client.end().catch(() => {});
  }
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject).listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() =>
        address !== null && typeof address === "object"
          ? resolve(address.port)
          : reject(new Error("no port")),
      );
    });
  });
}
