/**
 * Opening a connection: the library, its version, the settings. Nothing is known here of what is sent over it.
 *
 * busy_timeout is 0: whoever uses the connection waits from a timer instead of blocking the event loop.
 */
import { performance } from "node:perf_hooks";
import type { DatabaseSync } from "node:sqlite";
import { sleep, systemClock } from "../../clock.ts";
import { StoreError } from "../../errors.ts";
import { isBusy, toStoreError } from "./error-codes.ts";
import type { Handle } from "./handle.ts";

/** How long anything waits for the lock before DATABASE_BUSY reaches the caller. */
export const BUSY_DEADLINE_MS = 30_000;
/** The WAL is cut back to this after a checkpoint, and watched beyond it. */
export const WAL_LIMIT_BYTES: number = 64 * 1024 * 1024;

/** The settings that every connection of ours has. */
export function configure(handle: Handle, durability: "full" | "normal"): void {
  handle.exec("pragma journal_mode = wal");
  handle.exec(`pragma synchronous = ${durability}`);
  handle.exec(`pragma journal_size_limit = ${WAL_LIMIT_BYTES}`);
}

/** Opens a file (null: memory) with the settings that every connection of ours has. */
export async function openFile(path: string | null, durability: "full" | "normal"): Promise<Handle> {
  const sqlite = await loadSqlite();
  let handle: Handle;
  try {
    handle = new sqlite.DatabaseSync(path ?? ":memory:", { timeout: 0 });
  } catch (error) {
    throw toStoreError(error, path ?? ":memory:");
  }
  const since = performance.now();
  for (;;) {
    try {
      configure(handle, durability);
      return handle;
    } catch (error) {
      // Switching to WAL needs the file alone for a moment; a dozen first boots at once meet here.
      if (!isBusy(error) || performance.now() - since > BUSY_DEADLINE_MS) {
        handle.close();
        throw toStoreError(error, path ?? ":memory:");
      }
      await sleep(systemClock, 2 + (performance.now() % 7));
    }
  }
}

/** Node 22 warns that its SQLite is experimental; that one warning is kept off our users' terminals. */
async function loadSqlite(): Promise<{ DatabaseSync: typeof DatabaseSync }> {
  const emit = process.emitWarning.bind(process);
  process.emitWarning = (warning: string | Error, ...rest: never[]) => {
    if (!String(warning).includes("SQLite is an experimental feature")) emit(warning, ...rest);
  };
  try {
    return await import("node:sqlite");
  } finally {
    process.emitWarning = emit;
  }
}

/** SQLite 3.7.0–3.51.2 can corrupt a WAL that several connections write and checkpoint: exactly our use. */
export function isSafeVersion(version: string): boolean {
  const [major = 0, minor = 0, patch = 0] = version.split(".").map(Number);
  if (major !== 3) return major > 3;
  if (minor === 50) return patch >= 7;
  return minor > 51 || (minor === 51 && patch >= 3);
}

/** Refuses a SQLite that is known to lose data. */
export function checkVersion(handle: Handle, unsafe: boolean): void {
  const [row] = handle.prepare("select sqlite_version() as version").all() as { version: string }[];
  const version = row?.version ?? "unknown";
  if (unsafe || isSafeVersion(version)) return;
  throw new StoreError(
    "SQLITE_TOO_OLD",
    `SQLite ${version} can corrupt a database that several connections write to (fixed in 3.51.3). ` +
      `Use Node 22.23, 24.21 or newer, or a newer better-sqlite3. { unsafeSqlite: true } opens the file anyway.`,
    { details: { version } },
  );
}
