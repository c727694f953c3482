/**
 * The database file: where it is, whether SQLite may be trusted with it, and whether it is still the one we opened.
 *
 * SQLite's locks do not work on network file systems and its WAL needs shared memory, so such a file is refused. A file
 * that is unlinked or replaced under an open connection keeps taking writes into nowhere (measured: inserts went on
 * succeeding), and so do its -wal and -shm: their inodes are compared after a commit, before it is acknowledged.
 *
 * Invariant: a database file that exists is opened by SQLite alone. Locks belong to the process: closing any descriptor of the file drops those
 * of all its connections, and an older SQLite that visits the file then deletes the -wal under them.
 */
import {
  accessSync,
  closeSync,
  constants,
  mkdirSync,
  openSync,
  realpathSync,
  statfsSync,
  statSync,
} from "node:fs";
import { dirname, resolve } from "node:path";
import { systemClock } from "../../clock.ts";
import { StoreError, UsageError } from "../../errors.ts";
import { isBusy } from "./error-codes.ts";

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
  const rest = url.startsWith("file://") ? pathOf(url) : url.replace(/^(sqlite|file):/, "");
  const path = rest.startsWith("//") ? rest.slice(2) : rest;
  if (path === ":memory:") return null;
  if (path === "" || path.includes("\0") || path.includes("?")) {
    throw new UsageError(
      "BAD_URL",
      `"${shownUrl(url)}" names no file. Use sqlite:jobs.db, sqlite:/var/lib/app/jobs.db or sqlite::memory:.`,
    );
  }
  return resolve(path);
}

/** Without a cause: the one of `new URL` has the whole URL as `input`. */
function pathOf(url: string): string {
  try {
    return decodeURIComponent(new URL(url).pathname);
  } catch {
    throw new UsageError("BAD_URL", "The file URL is not valid. Use sqlite:/var/lib/app/jobs.db.");
  }
}

/** Without a query, which may have a key, and without a user. */
function shownUrl(url: string): string {
  const [head = "", ...query] = url.split("?");
  return head.replace(/\/\/[^@/]*@/, "//") + (query.length === 0 ? "" : "?…");
}

/** Makes the file (0600, its folder too) where there is none, and refuses a file system that SQLite must not be on. */
export function prepareFile(path: string, unsafe: boolean): void {
  const folder = dirname(path);
  try {
    mkdirSync(folder, { recursive: true });
    closeSync(openSync(path, "wx", 0o600));
  } catch (cause) {
    if ((cause as { code?: string }).code !== "EEXIST") throw fileError(path, cause);
    checkWritable(path);
  }
  const kind = networkFileSystem(statfsSync(folder).type);
  if (kind !== null && !unsafe) {
    throw new StoreError(
      "NETWORK_FILE_SYSTEM",
      `${path} is on ${kind}, where SQLite's locks and WAL do not work. Put the file on a local disk, or use Postgres. ` +
        `If only one machine uses it, { unsafeSqlite: true } opens it anyway.`,
      { details: { path, fileSystem: kind } },
    );
  }
}

function checkWritable(path: string): void {
  try {
    accessSync(path, constants.R_OK | constants.W_OK);
  } catch (cause) {
    // A link to a file that is not there yet: SQLite makes it.
    if ((cause as { code?: string }).code !== "ENOENT") throw fileError(path, cause);
  }
}

function fileError(path: string, cause: unknown): StoreError {
  const code = (cause as { code?: string }).code;
  if (code === "ENOSPC" || code === "EDQUOT") {
    return new StoreError(
      "DISK_FULL",
      `The disk has no space to create ${path}. Free some space, or choose another disk.`,
      { cause },
    );
  }
  if (code === "EROFS" || code === "EACCES" || code === "EPERM") {
    return new StoreError(
      "READ_ONLY",
      `${path} cannot be written (${code}). Allow this process to write the file and its folder.`,
      { cause },
    );
  }
  return new StoreError("DATABASE_UNREACHABLE", `${path} cannot be opened: ${(cause as Error).message}.`, {
    cause,
  });
}

const QUIETLY = { throwIfNoEntry: false } as const;
/** A look at the files costs 6 µs, as much as a sixth of an enqueue. What was written shortly before a -wal was removed is lost anyway. */
const CHECKS_APART_MS = 1;

interface OpenedFile {
  readonly path: string;
  readonly dev: number;
  readonly ino: number;
}

/**
 * The files of a connection that has read once: SQLite then has the -wal and the -shm, where it uses them, until the last connection
 * of all processes closes.
 */
export function openedFiles(path: string): OpenedFile[] {
  const real = realpathSync(path);
  return ["", "-wal", "-shm"].flatMap((end) => {
    const found = statSync(real + end, { throwIfNoEntry: false });
    return found === undefined ? [] : [{ path: real + end, dev: found.dev, ino: found.ino }];
  });
}

/** Notices that a file, its -wal or its -shm is no longer the one that was opened. */
export class FileWatch {
  readonly #files: readonly OpenedFile[];
  #lookedAt = -Infinity;

  constructor(files: readonly OpenedFile[]) {
    this.#files = files;
  }

  /** SQLite's error, or what lies behind it: it meets the loss in many ways, an I/O error among them. */
  explain(error: unknown): unknown {
    if (isBusy(error)) return error;
    try {
      this.#look();
      return error;
    } catch (cause) {
      return cause;
    }
  }

  /** Throws FILE_REPLACED, no later than a millisecond after the loss. */
  check(): void {
    const now = systemClock.monotonic();
    if (now - this.#lookedAt < CHECKS_APART_MS) return;
    this.#look();
    this.#lookedAt = now;
  }

  #look(): void {
    for (const opened of this.#files) {
      const found = statSync(opened.path, QUIETLY);
      if (found === undefined || found.ino !== opened.ino || found.dev !== opened.dev)
        throw replaced(opened.path, found === undefined);
    }
  }
}

function replaced(path: string, removed: boolean): StoreError {
  return new StoreError(
    "FILE_REPLACED",
    `${path} was ${removed ? "removed" : "replaced"} while it was open. Further writes would be lost, ` +
      `so none is acknowledged. Restart this process. Restore a backup only while no process has the file open.`,
    { details: { path } },
  );
}
