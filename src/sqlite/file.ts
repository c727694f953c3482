/**
 * The database file: where it is, whether SQLite may be trusted with it, and whether it is still the one we opened.
 *
 * SQLite's locks do not work on network file systems and its WAL needs shared memory, so such a file is refused. A file
 * that is unlinked or replaced under an open connection keeps taking writes into nowhere (measured: inserts went on
 * succeeding), so the inode is compared now and then.
 */
import { closeSync, openSync, mkdirSync, realpathSync, statfsSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { StoreError, UsageError } from "../errors.ts";

/** Magic numbers of statfs(2) for file systems on which SQLite's WAL corrupts or loses data. */
const NETWORK_FILE_SYSTEMS: ReadonlyMap<number, string> = new Map([
  [0x6969, "NFS"],
  [0x517b, "SMB"],
  [0xff534d42, "CIFS"],
  [0xfe534d42, "SMB2"],
  [0x01021997, "9p"],
  [0x65735546, "FUSE"],
  [0x5346414f, "AFS"],
  [0x00c36400, "Ceph"],
  [0x0bd00bd0, "Lustre"],
  [0x47504653, "GPFS"],
]);

/** The name of a file system on which SQLite must not be, by statfs(2)'s number; null for the others. */
export function networkFileSystem(type: number): string | null {
  return NETWORK_FILE_SYSTEMS.get(type >>> 0) ?? null;
}

/** The path in a `sqlite:` or `file:` URL, or null for a database in memory. */
export function databasePath(url: string): string | null {
  const rest = url.startsWith("file://")
    ? decodeURIComponent(new URL(url).pathname)
    : url.replace(/^(sqlite|file):/, "");
  const path = rest.startsWith("//") ? rest.slice(2) : rest;
  if (path === ":memory:") return null;
  if (path === "" || path.includes("\0") || path.includes("?")) {
    throw new UsageError(
      "BAD_URL",
      `"${url}" names no file. Use sqlite:jobs.db, sqlite:/var/lib/app/jobs.db or sqlite::memory:.`,
    );
  }
  return resolve(path);
}

/** Makes the file (0600, its folder too) where there is none, and refuses a file system that SQLite must not be on. */
export function prepareFile(path: string, unsafe: boolean): void {
  const folder = dirname(path);
  try {
    mkdirSync(folder, { recursive: true });
    closeSync(openSync(path, "a", 0o600));
  } catch (cause) {
    throw fileError(path, cause);
  }
  const kind = networkFileSystem(statfsSync(folder).type);
  if (kind !== null && !unsafe) {
    throw new StoreError(
      "NETWORK_FILE_SYSTEM",
      `${path} is on ${kind}, where SQLite's locks and WAL do not hold. Put the file on a local disk, or use Postgres. ` +
        `If you know that only one machine uses it, { unsafeSqlite: true } opens it all the same.`,
      { details: { path, fileSystem: kind } },
    );
  }
}

function fileError(path: string, cause: unknown): StoreError {
  const code = (cause as { code?: string }).code;
  if (code === "ENOSPC" || code === "EDQUOT") {
    return new StoreError(
      "DISK_FULL",
      `No space is left to create ${path}. Free some, or choose another disk.`,
      { cause },
    );
  }
  if (code === "EROFS" || code === "EACCES" || code === "EPERM") {
    return new StoreError(
      "READ_ONLY",
      `${path} cannot be written (${code}). Give this process the right to write it and its folder.`,
      { cause },
    );
  }
  return new StoreError("DATABASE_UNREACHABLE", `${path} cannot be opened: ${(cause as Error).message}.`, {
    cause,
  });
}

/** Notices that the file at the path is no longer the one that was opened. */
export class FileWatch {
  readonly #path: string;
  readonly #opened: { dev: number; ino: number };

  constructor(path: string) {
    this.#path = realpathSync(path);
    const { dev, ino } = statSync(this.#path);
    this.#opened = { dev, ino };
  }

  /** Throws FILE_REPLACED. About 3 µs. */
  check(): void {
    const now = statSync(this.#path, { throwIfNoEntry: false });
    if (now !== undefined && now.dev === this.#opened.dev && now.ino === this.#opened.ino) return;
    throw new StoreError(
      "FILE_REPLACED",
      `${this.#path} was ${now === undefined ? "removed" : "replaced"} while it was open. What is written now would be lost, ` +
        `so nothing is. Restart this process; restore a backup only while nothing has the file open.`,
      { details: { path: this.#path } },
    );
  }
}
