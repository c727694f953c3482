/** SQLite as it describes itself: sizes, the WAL, the file system. Reads only. Beside storage/postgres/inspect.ts. */
import { statfsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import type { Inspection } from "../driver.ts";
import { isSafeVersion } from "./connection.ts";
import { networkFileSystem } from "./file.ts";
import type { Handle } from "./handle.ts";

/** 2 is FULL, 3 EXTRA; below that, a power cut may lose acknowledged commits. */
const FULL = 2;

export function inspect(handle: Handle, path: string | null): Inspection {
  const one = (sql: string): number | string | null => {
    const [row] = handle.prepare(sql).all() as Record<string, unknown>[];
    const [value] = Object.values(row ?? {});
    return typeof value === "number" || typeof value === "string" ? value : null;
  };
  const pageBytes = Number(one("pragma page_size"));
  const synchronous = Number(one("pragma synchronous"));
  const version = String(one("select sqlite_version()"));
  const disk = path === null ? null : statfsSync(dirname(path));
  return {
    dialect: "sqlite",
    version,
    versionFault: isSafeVersion(version)
      ? null
      : "it can corrupt a database that several connections write to (fixed in 3.51.3)",
    sizeBytes: Number(one("pragma page_count")) * pageBytes,
    freeBytes: Number(one("pragma freelist_count")) * pageBytes,
    walBytes: path === null ? null : (statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0),
    maxWalBytes: null,
    slot: null,
    deadRows: null,
    liveRows: null, // SQLite keeps no such number, and counting a million rows every minute is not worth it
    tables: [],
    oldestTransactionMs: null,
    oldestTransaction: null,
    xminAge: null,
    connections: null,
    maxConnections: null,
    durable: path === null || synchronous >= FULL,
    durability: `synchronous = ${["off", "normal", "full", "extra"][synchronous] ?? synchronous}`,
    networkFileSystem: disk === null ? null : networkFileSystem(disk.type),
    diskFreeBytes: disk === null ? null : disk.bavail * disk.bsize,
    invalidIndexes: [],
    partitions: null,
  };
}
