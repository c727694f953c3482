/** SQLite's errors as ours: by result code (both drivers give it, in different places), never by message. */
import { HoldfastError, StoreError } from "../../errors.ts";

/** Result codes of sqlite3.h; extended codes carry the primary one in the low byte. */
const PRIMARY = {
  busy: 5,
  locked: 6,
  noMemory: 7,
  readOnly: 8,
  ioError: 10,
  corrupt: 11,
  full: 13,
  cantOpen: 14,
  protocol: 15,
  notADatabase: 26,
} as const;
const NAMES: Readonly<Record<string, number>> = {
  SQLITE_BUSY: PRIMARY.busy,
  SQLITE_LOCKED: PRIMARY.locked,
  SQLITE_NOMEM: PRIMARY.noMemory,
  SQLITE_READONLY: PRIMARY.readOnly,
  SQLITE_IOERR: PRIMARY.ioError,
  SQLITE_CORRUPT: PRIMARY.corrupt,
  SQLITE_FULL: PRIMARY.full,
  SQLITE_CANTOPEN: PRIMARY.cantOpen,
  SQLITE_PROTOCOL: PRIMARY.protocol,
  SQLITE_NOTADB: PRIMARY.notADatabase,
};

/** What the triggers of a database that has moved say (schema-admin.ts): the text is ours. */
const MOVED = /^holdfast: This database has moved/;

/** The primary result code, or null where it is not SQLite's error. */
function primaryCode(error: unknown): number | null {
  if (typeof error !== "object" || error === null) return null;
  const { errcode, code } = error as { errcode?: unknown; code?: unknown };
  if (typeof errcode === "number") return errcode & 0xff; // node:sqlite
  if (typeof code === "string" && code.startsWith("SQLITE_")) {
    // better-sqlite3: SQLITE_BUSY, SQLITE_BUSY_SNAPSHOT, …
    return Object.entries(NAMES).find(([name]) => code === name || code.startsWith(`${name}_`))?.[1] ?? 1;
  }
  return null;
}

/** A row with this key is already there: SQLITE_CONSTRAINT_PRIMARYKEY or _UNIQUE. Looks through our own error at its cause. */
export function isDuplicate(error: unknown): boolean {
  const { errcode, code, cause } = (error ?? {}) as { errcode?: unknown; code?: unknown; cause?: unknown };
  if (error instanceof HoldfastError) return isDuplicate(cause);
  return (
    errcode === 1555 ||
    errcode === 2067 ||
    code === "SQLITE_CONSTRAINT_PRIMARYKEY" ||
    code === "SQLITE_CONSTRAINT_UNIQUE"
  );
}

/** Somebody else holds the lock: try again in a moment. */
export function isBusy(error: unknown): boolean {
  const code = primaryCode(error);
  return code === PRIMARY.busy || code === PRIMARY.locked;
}

export function toStoreError(error: unknown, path: string): unknown {
  if (error instanceof HoldfastError) return error;
  const message = error instanceof Error ? error.message : String(error);
  const options = { cause: error, details: { path } };
  switch (primaryCode(error)) {
    case PRIMARY.busy:
    case PRIMARY.locked:
      return new StoreError(
        "DATABASE_BUSY",
        `${path} stayed locked by another process. Find a long write transaction.`,
        options,
      );
    case PRIMARY.readOnly:
      return new StoreError(
        "READ_ONLY",
        `${path} cannot be written: ${message}. Check the permissions of the file and its folder.`,
        options,
      );
    case PRIMARY.full:
      return new StoreError(
        "DISK_FULL",
        `The disk of ${path} is full: nothing was written. Free some space; workers then continue.`,
        options,
      );
    case PRIMARY.ioError:
    case PRIMARY.noMemory:
    case PRIMARY.protocol:
      return new StoreError("DATABASE_FAILING", `SQLite failed on ${path}: ${message}.`, options);
    case PRIMARY.corrupt:
    case PRIMARY.notADatabase:
      return new StoreError(
        "CORRUPT",
        `${path} is not a valid SQLite database: ${message}. Restore it from a backup; nothing was changed.`,
        options,
      );
    case PRIMARY.cantOpen:
      return new StoreError("DATABASE_UNREACHABLE", `${path} cannot be opened: ${message}.`, options);
    default:
      if (MOVED.test(message)) {
        return new StoreError(
          "MOVED",
          `${message.replace(/^holdfast: /, "")}. Start this process with the new address.`,
          options,
        );
      }
      if (/no such table/.test(message)) {
        return new StoreError(
          "SCHEMA_MISSING",
          `${path} lacks a Holdfast table: ${message}. Open it with { migrate: true }.`,
          options,
        );
      }
      return primaryCode(error) === null
        ? error
        : new StoreError("STORE_FAILED", `SQLite refused a statement on ${path}: ${message}.`, options);
  }
}
