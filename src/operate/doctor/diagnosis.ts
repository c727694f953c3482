/**
 * What `holdfast doctor` and the dashboard make of what was found: each check with a verdict and, where something is wrong,
 * what to do.
 *
 * Pure: facts in, checks out. Not here: finding the facts (findings.ts).
 */
import { counted, MOST_COUNTED } from "../../limits/queue-counts.ts";
import { oldNode } from "../../node-version.ts";
import { bytes, duration, grouped } from "../../values/amounts.ts";
import { isQuiet } from "../../limits/serving.ts";
import type { Inspection } from "../../storage/driver.ts";
import type { WorkerState } from "../../lease/store.ts";
import type { QueueState } from "../../limits/store.ts";

export interface Check {
  readonly name: string;
  /** "note": worth knowing, nothing to do. "unknown": could not be looked at. */
  readonly verdict: "ok" | "wrong" | "note" | "unknown";
  readonly text: string;
  /** What to do. */
  readonly remedy: string | null;
}

export interface Facts {
  readonly node: string;
  readonly applied: readonly number[];
  readonly pending: readonly number[];
  /** Null: the role may not compare. "unasked": it was not compared, because that makes the schema once more. */
  readonly drift: readonly string[] | null | "unasked";
  readonly movedTo: string | null;
  /** This machine's clock minus the database's, in milliseconds, and how long asking took. */
  readonly clock: { readonly skewMs: number; readonly roundTripMs: number } | null;
  readonly inspection: Inspection | null;
  /** Why the database was not opened, where its version is the reason. */
  readonly refused: string | null;
  readonly queues: readonly QueueState[];
  readonly workers: readonly WorkerState[];
  /** Running jobs whose session ended longer ago than takeover takes. */
  readonly stuck: number;
  readonly now: number;
}

/** What is still well. */
export const LIMITS = {
  skewMs: 1_000,
  transactionMs: 5 * 60_000,
  /** Of SQLite's WAL, and of what a replication slot that nobody reads keeps. */
  walBytes: 256 * 1024 * 1024,
  /** Of what a slot keeps that somebody reads. */
  slotBytes: 4 * 1024 * 1024 * 1024,
  diskBytes: 500 * 1_000 * 1_000,
  deadRows: 100_000,
  /** Free pages of a SQLite file, where they are more than half of it. */
  freeBytes: 64 * 1024 * 1024,
  /** A role that makes partitions has connected within two days. */
  partitionsAheadMs: 86_400_000,
  partitions: 100,
};
export type Limits = typeof LIMITS;

export function diagnose(facts: Facts, limits: Limits = LIMITS): Check[] {
  return [
    nodeVersion(facts.node),
    ...(facts.refused === null
      ? []
      : [wrong("version", facts.refused, "Upgrade the server, or Node (which includes SQLite).")]),
    ...schema(facts),
    ...(facts.inspection === null ? [] : database(facts.inspection, limits)),
    clocks(facts.clock, limits),
    // What a moved database still holds is a copy: nobody should work on it.
    ...(facts.movedTo === null && facts.refused === null ? work(facts) : []),
  ];
}

function ok(name: string, text: string): Check {
  return { name, verdict: "ok", text, remedy: null };
}

function wrong(name: string, text: string, remedy: string): Check {
  return { name, verdict: "wrong", text, remedy };
}

function nodeVersion(version: string): Check {
  const remedy = oldNode(version);
  return remedy === null ? ok("node", version) : wrong("node", `${version} is too old`, remedy);
}

function schema({ applied, pending, drift, movedTo, refused }: Facts): Check[] {
  const checks: Check[] = [];
  if (refused !== null) return [];
  if (applied.length === 0) return [wrong("schema", "there is none", "Run: holdfast migrate")];
  checks.push(
    pending.length === 0
      ? ok("schema", `version ${applied.at(-1)}`)
      : wrong("schema", `lacks version ${pending.join(", ")}`, "Run: holdfast migrate"),
  );
  if (movedTo !== null)
    checks.push(
      wrong(
        "moved",
        `the jobs were moved to ${movedTo}; this database refuses writes`,
        "Start your processes with the new address.",
      ),
    );
  if (drift === null || drift === "unasked")
    checks.push({
      name: "drift",
      verdict: "unknown",
      text:
        drift === null
          ? "the role may not create a schema for the comparison"
          : "not compared here, because the comparison creates a schema; run: holdfast doctor",
      remedy: null,
    });
  else if (drift.length === 0) checks.push(ok("drift", "tables and indexes match the migrations"));
  else
    checks.push(
      wrong(
        "drift",
        drift.slice(0, 5).join("; ") + (drift.length > 5 ? `; and ${drift.length - 5} more` : ""),
        "Revert the manual changes. To print the expected schema: holdfast migrate --print-sql",
      ),
    );
  return checks;
}

function database(found: Inspection, limits: Limits): Check[] {
  const version = `${found.dialect === "sqlite" ? "SQLite" : "Postgres"} ${found.version}`;
  const checks = [
    found.versionFault === null
      ? ok("version", version)
      : wrong(
          "version",
          `${version}: ${found.versionFault}`,
          "Use Node 22.23, 24.21 or newer, or a newer better-sqlite3, and open without unsafeSqlite.",
        ),
  ];
  checks.push(
    found.durable
      ? ok("durability", found.durability)
      : wrong(
          "durability",
          `${found.durability}: a power failure can lose accepted jobs`,
          found.dialect === "sqlite"
            ? 'Open with durability: "full", the default.'
            : found.durability.startsWith("fsync")
              ? "Set fsync = on in the server's postgresql.conf, and restart it."
              : "Set it for Holdfast's role: alter role … set synchronous_commit = on; and look into the URL's options.",
        ),
  );
  if (found.invalidIndexes.length > 0)
    checks.push(
      wrong(
        "indexes",
        `not valid: ${found.invalidIndexes.join(", ")}`,
        `Rebuild them: ${found.invalidIndexes.map((index) => `reindex index concurrently ${index};`).join(" ")}`,
      ),
    );
  else if (found.dialect === "postgres") checks.push(ok("indexes", "all are valid"));
  if (found.partitions !== null) checks.push(partitions(found.partitions, limits));
  if (found.networkFileSystem !== null)
    checks.push(
      wrong(
        "file system",
        `the file is on ${found.networkFileSystem}, where SQLite's locks do not work`,
        "Put it on a local disk, or use Postgres: holdfast move",
      ),
    );
  checks.push(...sizes(found, limits), ...busyness(found, limits));
  return checks;
}

function partitions(found: NonNullable<Inspection["partitions"]>, limits: Limits): Check {
  const { aheadMs, count, rest } = found;
  if (aheadMs < limits.partitionsAheadMs)
    return wrong(
      "partitions",
      aheadMs > 0
        ? `the last one ends in ${duration(aheadMs)}`
        : "there is no partition for today; new jobs go to the default partition, which is never dropped",
      "Run holdfast migrate as the role that owns the schema, and again each day (docs/guides/postgres.md).",
    );
  if (count > limits.partitions)
    return wrong(
      "partitions",
      `${grouped(count)} partitions; each statement over all of them locks all tables and indexes`,
      "Raise max_locks_per_transaction on the server. A longer retention makes new partitions longer.",
    );
  const text = `${grouped(count)}, the last one ends in ${duration(aheadMs)}`;
  if (rest === 0) return ok("partitions", text);
  const jobs = `${rest > MOST_COUNTED ? `${grouped(MOST_COUNTED)}+` : grouped(rest)} jobs of today or later are in the default partition`;
  return {
    name: "partitions",
    verdict: "note",
    text: `${text}; ${jobs}: they were enqueued without a partition of their own`,
    remedy: null,
  };
}

function sizes(found: Inspection, limits: Limits): Check[] {
  const checks = [ok("size", bytes(found.sizeBytes)), ...wal(found, limits)];
  if (found.freeBytes !== null && found.freeBytes > limits.freeBytes && found.freeBytes > found.sizeBytes / 2)
    checks.push({
      name: "bloat",
      verdict: "note",
      text: `${bytes(found.freeBytes)} of the file are free and will be reused. To shrink the file, stop the workers and run: vacuum`,
      remedy: null,
    });
  if (found.diskFreeBytes !== null)
    checks.push(
      found.diskFreeBytes < limits.diskBytes
        ? wrong(
            "disk",
            `${bytes(found.diskFreeBytes)} are free`,
            "Free some space. Without free space no job can be enqueued or settled.",
          )
        : ok("disk", `${bytes(found.diskFreeBytes)} are free`),
    );
  return checks;
}

/** The log of writes. A slot may hold it although its folder cannot be seen. */
function wal(found: Inspection, limits: Limits): Check[] {
  const { walBytes, maxWalBytes, slot } = found;
  const size = walBytes === null ? "" : `${bytes(walBytes)}; `;
  if (slot !== null && slot.bytes > (slot.active ? limits.slotBytes : limits.walBytes))
    return [
      wrong(
        "WAL",
        `${size}the replication slot ${slot.name}${slot.active ? "" : ", which has no reader,"} keeps ${bytes(slot.bytes)} of WAL: the disk may fill up`,
        slot.active
          ? "Its reader is behind. Find the cause before the disk is full."
          : `Restart its reader. If the reader is gone for good: select pg_drop_replication_slot('${slot.name}')`,
      ),
    ];
  if (walBytes === null) return [];
  if (found.dialect === "sqlite")
    return [
      walBytes > limits.walBytes
        ? wrong(
            "WAL",
            `${bytes(walBytes)}: a reader keeps it from shrinking`,
            "Find a long read transaction on the file, and end it.",
          )
        : ok("WAL", bytes(walBytes)),
    ];
  return [
    maxWalBytes !== null && walBytes > 2 * maxWalBytes + limits.walBytes
      ? wrong(
          "WAL",
          `${bytes(walBytes)}, where the settings allow about ${bytes(maxWalBytes)}`,
          "Check pg_stat_archiver (does archiving fail?) and pg_replication_slots.",
        )
      : ok("WAL", bytes(walBytes)),
  ];
}

function busyness(found: Inspection, limits: Limits): Check[] {
  const checks: Check[] = [];
  if (found.deadRows !== null && found.liveRows !== null) {
    // The table of waiting jobs empties and fills all day; elsewhere vacuum comes long before every second row is dead.
    const bloated = found.tables.filter(
      ({ name, dead, live }) => dead > limits.deadRows && dead > (name === "ready" ? 5 : 1) * live,
    );
    const rows = ({ name, dead, live }: Inspection["tables"][number]): string =>
      `${name}: ${grouped(dead)} dead rows beside ${grouped(live)} live ones`;
    const [first = { name: "ready", dead: found.deadRows, live: found.liveRows }] = found.tables;
    checks.push(
      bloated.length > 0
        ? wrong(
            "bloat",
            bloated.map(rows).join("; "),
            "Vacuum cannot remove them. Check for an old transaction, an abandoned replication slot, or autovacuum that is off.",
          )
        : ok("bloat", rows(first)),
    );
  }
  if (found.oldestTransactionMs !== null) {
    const whose = found.oldestTransaction;
    const text = `the oldest is ${duration(found.oldestTransactionMs)} old${whose === null ? "" : ` (${whose.text})`}`;
    checks.push(
      found.oldestTransactionMs > limits.transactionMs
        ? wrong(
            "transactions",
            text,
            `Dead rows accumulate behind it. End it: ${whose === null ? "see pg_stat_activity (xact_start)" : `select pg_terminate_backend(${whose.pid})`}`,
          )
        : ok("transactions", text),
    );
  }
  if (found.connections !== null && found.maxConnections !== null) {
    const text = `${found.connections} of ${found.maxConnections}`;
    checks.push(
      found.connections > 0.9 * found.maxConnections
        ? wrong(
            "connections",
            text,
            "Lower poolSize, use fewer processes, put PgBouncer in between, or raise max_connections.",
          )
        : ok("connections", text),
    );
  }
  return checks;
}

function clocks(clock: Facts["clock"], limits: Limits): Check {
  if (clock === null)
    return { name: "clocks", verdict: "unknown", text: "the database was not asked", remedy: null };
  // The answer was made somewhere within the round trip.
  const certain = Math.max(0, Math.abs(clock.skewMs) - clock.roundTripMs / 2);
  if (certain <= limits.skewMs)
    return ok(
      "clocks",
      `this machine and the database agree within ${duration(Math.max(1, Math.abs(clock.skewMs)))}`,
    );
  return wrong(
    "clocks",
    `this machine is ${duration(Math.abs(clock.skewMs))} ${clock.skewMs > 0 ? "ahead of" : "behind"} the database`,
    "Run a time service on both. Leases use the database's clock; ids and dates made by this machine are wrong.",
  );
}

function work({ queues, workers, stuck, now }: Facts): Check[] {
  const checks: Check[] = [];
  const live = workers.filter(({ kind }) => kind === "worker");
  const quiet = workers.filter(isQuiet);
  const ready = queues.reduce((sum, { counts }) => sum + counts.ready, 0);
  checks.push(
    live.length > 0 || ready === 0
      ? {
          name: "workers",
          verdict: live.length > 0 ? "ok" : "note",
          text:
            live.length > 0
              ? `${live.length} live${quiet.length > 0 ? `, ${quiet.length} of them quiet` : ""}`
              : "no live workers, and no ready jobs",
          remedy: null,
        }
      : wrong(
          "workers",
          `no live workers, and ${counted(queues, "ready")} ${ready === 1 ? "job is" : "jobs are"} ready`,
          "Start one: holdfast work",
        ),
  );
  // A worker that has the handler is there: it need not be deployed, it must be resumed.
  const isHushed = (queue: string, name: string): boolean =>
    quiet.some((worker) => Object.hasOwn(worker.queues, queue) && worker.names.includes(name));
  const waiting = (which: boolean): { name: string; unserved: readonly string[] }[] =>
    queues
      .map(({ name, unserved: names }) => ({
        name,
        unserved: names.filter((kind) => isHushed(name, kind) === which),
      }))
      .filter((queue) => queue.unserved.length > 0);
  const unserved = waiting(false);
  const hushed = waiting(true);
  if (hushed.length > 0)
    checks.push(
      wrong(
        "quiet",
        `${hushed.map(({ name, unserved: names }) => `${name}: ${names.join(", ")}`).join("; ")} wait, because their workers are quiet`,
        `To resume them: holdfast workers resume ${new Set(quiet.map(({ name }) => name)).size === 1 ? quiet[0]?.name : "<name>"}`,
      ),
    );
  checks.push(
    unserved.length === 0
      ? ok("unserved", "every ready job has a worker")
      : wrong(
          "unserved",
          unserved.map(({ name, unserved: names }) => `${name}: ${names.join(", ")}`).join("; "),
          "Deploy a worker with these handlers and queues, check the spelling of the names, or cancel the jobs.",
        ),
  );
  checks.push(
    stuck === 0
      ? ok("leases", "no job is held by a dead worker")
      : wrong(
          "leases",
          `${grouped(stuck)} ${stuck === 1 ? "job is" : "jobs are"} held by dead workers`,
          "Any running worker takes them over within seconds. If they stay, check its log.",
        ),
  );
  const paused = queues.filter((queue) => queue.paused && queue.counts.ready > 0);
  if (paused.length > 0)
    checks.push({
      name: "paused",
      verdict: "note",
      text: paused
        .map(
          (queue) =>
            `${queue.name}: ${counted([queue], "ready")} ready, since ${duration(now - (queue.pausedAt?.getTime() ?? now))}`,
        )
        .join("; "),
      remedy: null,
    });
  return checks;
}
