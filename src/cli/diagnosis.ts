/**
 * What `holdfast doctor` makes of what it found: each check with a verdict and, where something is wrong, what to do.
 *
 * Pure: facts in, checks out. Not here: finding the facts (commands/doctor.ts).
 */
import type { QueueState, WorkerState } from "../index.ts";
import type { Inspection } from "../store.ts";
import { bytes, duration, grouped } from "./text.ts";

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
  readonly drift: readonly string[] | null;
  readonly movedTo: string | null;
  /** This machine's clock minus the database's, in milliseconds, and how long asking took. */
  readonly clock: { readonly skewMs: number; readonly roundTripMs: number } | null;
  readonly inspection: Inspection | null;
  readonly queues: readonly QueueState[];
  readonly workers: readonly WorkerState[];
  /** Running jobs whose session ended longer ago than takeover takes. */
  readonly stuck: number;
  readonly now: number;
}

const oldestNode = [22, 18] as const;
const mostSkewMs = 1_000;
const mostTransactionMs = 5 * 60_000;
const mostWalBytes = 256 * 1024 * 1024;
const leastDiskBytes = 500 * 1_000 * 1_000;

export function diagnose(facts: Facts): Check[] {
  return [
    nodeVersion(facts.node),
    ...schema(facts),
    ...(facts.inspection === null ? [] : database(facts.inspection)),
    clocks(facts.clock),
    // What a moved database still holds is a copy: nobody should work on it.
    ...(facts.movedTo === null ? work(facts) : []),
  ];
}

function ok(name: string, text: string): Check {
  return { name, verdict: "ok", text, remedy: null };
}

function wrong(name: string, text: string, remedy: string): Check {
  return { name, verdict: "wrong", text, remedy };
}

function nodeVersion(version: string): Check {
  const [major = 0, minor = 0] = version.replace(/^v/, "").split(".").map(Number);
  const enough = major > oldestNode[0] || (major === oldestNode[0] && minor >= oldestNode[1]);
  return enough
    ? ok("node", version)
    : wrong("node", `${version} is too old`, `Take Node ${oldestNode.join(".")} or newer.`);
}

function schema({ applied, pending, drift, movedTo }: Facts): Check[] {
  const checks: Check[] = [];
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
        `the jobs are at ${movedTo}; this database takes no writes`,
        "Start your processes with the new address.",
      ),
    );
  if (drift === null)
    checks.push({
      name: "drift",
      verdict: "unknown",
      text: "the role may not create a schema to compare with",
      remedy: null,
    });
  else if (drift.length === 0) checks.push(ok("drift", "tables and indexes are as the migrations make them"));
  else
    checks.push(
      wrong(
        "drift",
        drift.slice(0, 5).join("; ") + (drift.length > 5 ? `; and ${drift.length - 5} more` : ""),
        "Undo by hand what was changed by hand; holdfast migrate --print-sql shows how it should be.",
      ),
    );
  return checks;
}

function database(found: Inspection): Check[] {
  const name = found.dialect === "sqlite" ? "SQLite" : "Postgres";
  const checks = [ok("version", `${name} ${found.version}`)];
  checks.push(
    found.durable
      ? ok("durability", found.durability)
      : wrong(
          "durability",
          `${found.durability}: a power cut can lose jobs that were accepted`,
          found.dialect === "sqlite"
            ? 'Open with durability: "full", the default.'
            : found.durability.startsWith("fsync")
              ? "Set fsync = on in the server's postgresql.conf, and restart it."
              : "Set it for Holdfast's role: alter role … set synchronous_commit = on.",
        ),
  );
  if (found.invalidIndexes.length > 0)
    checks.push(
      wrong(
        "indexes",
        `not valid: ${found.invalidIndexes.join(", ")}`,
        "Rebuild them: reindex index concurrently …",
      ),
    );
  else if (found.dialect === "postgres") checks.push(ok("indexes", "all are valid"));
  if (found.networkFileSystem !== null)
    checks.push(
      wrong(
        "file system",
        `the file is on ${found.networkFileSystem}, where SQLite's locks do not hold`,
        "Put it on a local disk, or use Postgres: holdfast move",
      ),
    );
  checks.push(...sizes(found), ...busyness(found));
  return checks;
}

function sizes(found: Inspection): Check[] {
  const checks = [ok("size", bytes(found.sizeBytes))];
  if (found.walBytes !== null) {
    const large = found.dialect === "sqlite" && found.walBytes > mostWalBytes;
    checks.push(
      large
        ? wrong(
            "WAL",
            `${bytes(found.walBytes)}: a reader keeps it from shrinking`,
            "Look for a long read transaction on the file, and end it.",
          )
        : ok("WAL", bytes(found.walBytes)),
    );
  }
  if (found.diskFreeBytes !== null)
    checks.push(
      found.diskFreeBytes < leastDiskBytes
        ? wrong(
            "disk",
            `${bytes(found.diskFreeBytes)} are free`,
            "Free some space: without any, nothing can be enqueued or settled.",
          )
        : ok("disk", `${bytes(found.diskFreeBytes)} are free`),
    );
  return checks;
}

function busyness(found: Inspection): Check[] {
  const checks: Check[] = [];
  if (found.deadRows !== null && found.liveRows !== null) {
    const many = found.deadRows > 100_000 && found.deadRows > 5 * found.liveRows;
    const text = `${grouped(found.deadRows)} dead rows beside ${grouped(found.liveRows)} live ones`;
    checks.push(
      many
        ? wrong(
            "bloat",
            text,
            "Something keeps vacuum from removing them: an old transaction, an abandoned replication slot, or autovacuum that is off.",
          )
        : ok("bloat", text),
    );
  }
  if (found.oldestTransactionMs !== null) {
    const text = `the oldest is ${duration(found.oldestTransactionMs)} old`;
    checks.push(
      found.oldestTransactionMs > mostTransactionMs
        ? wrong(
            "transactions",
            text,
            "Find it in pg_stat_activity (xact_start) and end it: dead rows pile up behind it.",
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

function clocks(clock: Facts["clock"]): Check {
  if (clock === null)
    return { name: "clocks", verdict: "unknown", text: "the database was not asked", remedy: null };
  // The answer was made somewhere within the round trip.
  const certain = Math.max(0, Math.abs(clock.skewMs) - clock.roundTripMs / 2);
  if (certain <= mostSkewMs)
    return ok(
      "clocks",
      `this machine and the database agree within ${duration(Math.max(1, Math.abs(clock.skewMs)))}`,
    );
  return wrong(
    "clocks",
    `this machine is ${duration(Math.abs(clock.skewMs))} ${clock.skewMs > 0 ? "ahead of" : "behind"} the database`,
    "Run a time service on both. Leases go by the database's clock and stay right; ids and dates made here do not.",
  );
}

function work({ queues, workers, stuck, now }: Facts): Check[] {
  const checks: Check[] = [];
  const live = workers.filter(({ kind }) => kind === "worker");
  const ready = queues.reduce((sum, { counts }) => sum + counts.ready, 0);
  checks.push(
    live.length > 0 || ready === 0
      ? {
          name: "workers",
          verdict: live.length > 0 ? "ok" : "note",
          text: live.length > 0 ? `${live.length} alive` : "none is alive, and nothing is ready",
          remedy: null,
        }
      : wrong(
          "workers",
          `none is alive, and ${grouped(ready)} ${ready === 1 ? "job is" : "jobs are"} ready`,
          "Start one: holdfast work",
        ),
  );
  const unserved = queues.filter((queue) => queue.unserved.length > 0);
  checks.push(
    unserved.length === 0
      ? ok("unserved", "every ready job has a worker that serves it")
      : wrong(
          "unserved",
          unserved.map(({ name, unserved: names }) => `${name}: ${names.join(", ")}`).join("; "),
          "Deploy a worker with these handlers and queues, or cancel the jobs: is a name misspelt?",
        ),
  );
  checks.push(
    stuck === 0
      ? ok("leases", "no job is held by a dead worker")
      : wrong(
          "leases",
          `${grouped(stuck)} ${stuck === 1 ? "job is" : "jobs are"} held by workers that are gone`,
          "Any running worker takes them over within seconds. If one runs and they stay, look at its log.",
        ),
  );
  const paused = queues.filter((queue) => queue.paused && queue.counts.ready > 0);
  if (paused.length > 0)
    checks.push({
      name: "paused",
      verdict: "note",
      text: paused
        .map(
          ({ name, counts, pausedAt }) =>
            `${name}: ${grouped(counts.ready)} ready, since ${duration(now - (pausedAt?.getTime() ?? now))}`,
        )
        .join("; "),
      remedy: null,
    });
  return checks;
}
