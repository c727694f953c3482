/**
 * What surrounds a client: its process and machine on one side, what its database goes through on the other.
 *
 * Not here: who uses it (holdfast.ts puts the parts together).
 */
import { randomBytes } from "node:crypto";
import { availableParallelism, hostname } from "node:os";
import type { Clock } from "../clock.ts";
import type { Emitter } from "../events.ts";
import type { Logger } from "../logger.ts";
import { describeFailure } from "../jobs/failure.ts";
import type { StoreEvents } from "../storage/store.ts";

/** The process, as the client sees it. */
export interface ClientEnv {
  /** The store's. */
  readonly clock: Clock;
  /** This machine's, which the doctor compares with it. Left out: the same one. */
  readonly machineClock?: Clock;
  readonly random: () => number;
  readonly host: string;
  readonly pid: number;
  /** Identifies this start of the process: clients of one process have the same, two processes have different ones. */
  readonly hostId: string;
  readonly cpus: number;
  /** "node 24.21.0". Left out: not told. */
  readonly runtime?: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Ends the process, with the exit code that is set. Left out: it cannot be ended from here. */
  readonly exit?: () => void;
}

/** Host and pid are for people who read it. A pid is used again, and containers share host names: the random part tells starts apart. */
const hostId = `${hostname()}-${process.pid}-${randomBytes(4).toString("hex")}`;

/** This process. */
export function processEnv(): Omit<ClientEnv, "clock" | "machineClock" | "random"> {
  return {
    host: hostname(),
    pid: process.pid,
    hostId,
    cpus: availableParallelism(),
    runtime: runtimeOf(process.versions),
    env: process.env,
    exit: () => process.exit(),
  };
}

/** What runs this program. Bun and Deno tell a version of Node's as well, which they are not. */
export function runtimeOf(versions: Readonly<Record<string, string | undefined>>): string {
  const name = ["bun", "deno", "node"].find((one) => versions[one] !== undefined) ?? "unknown";
  return `${name} ${versions[name] ?? ""}`.trim();
}

/** What happens to the connection is logged, and told to listeners. */
export function storeEvents(events: Emitter, log: Logger): StoreEvents {
  return {
    onConnectionLost: (error) => {
      const { message, code } = describeFailure(error);
      log.warn({ error: message, code }, "the connection to the database was lost");
      events.emit("connection.lost", { error });
    },
    onConnectionBack: (afterMs) => {
      const ms = Math.round(afterMs);
      log.warn({ afterMs: ms }, `the connection to the database is back after ${ms} ms`);
      events.emit("connection.back", { error: null });
    },
    onWarning: (message, details) => {
      log.warn(details, message);
      events.emit("warning", { message, details });
    },
  };
}
