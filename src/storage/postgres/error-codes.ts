/** Postgres's and the socket's errors as ours: by SQLSTATE or errno, never by message where there is a code. */
import { HoldfastError, StoreError, type ErrorCode } from "../../errors.ts";

/** SQLSTATEs after which the connection is of no more use. */
const CONNECTION_GONE = /^(08|57P|25006|25P0[34]|53300)/;
/** The server's own trouble (memory, disk, a cancelled or failed process): nothing was written, and it passes. */
const PASSING = /^(53|57|58|XX)/;
/** Codes of the socket, of DNS, of TLS and of Node look like EPIPE and ERR_TLS_CERT_ALTNAME_INVALID. */
const SQLSTATE = /^(?!E[A-Z]{4}$)[0-9A-Z]{5}$/;

/** What the triggers of a database that has moved raise (schema-admin.ts). */
export const MOVED_STATE = "HF001";

/** What the server called the error; null where no server said anything. Looks through our own error at its cause. */
export function sqlState(error: unknown): string | null {
  const { code, cause } = (error ?? {}) as { code?: unknown; cause?: unknown };
  if (error instanceof HoldfastError) return cause === undefined ? null : sqlState(cause);
  return typeof code === "string" && SQLSTATE.test(code) ? code : null;
}

/** The connection is gone or its server is going: destroy it, take another. */
export function isGone(error: unknown): error is StoreError {
  return error instanceof StoreError && gone.has(error.code);
}

const gone: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  "CONNECTION_LOST",
  "DATABASE_UNREACHABLE",
  "DATABASE_MISSING",
]);

/** 3D000: the server has no database of this name. */
export function isMissing(error: unknown): boolean {
  return sqlState(error) === "3D000";
}

/** With the URL, the message has the whole command; without a password in it, which would end up in logs. */
export function missingDatabase(url: string, cause: unknown): StoreError {
  const shown = new URL(url);
  const withPassword = shown.password !== "" || shown.searchParams.has("password");
  shown.password = "";
  shown.searchParams.delete("password");
  const { href } = shown;
  const quoted = /^[\w.:@/-]+$/.test(href) ? href : `'${href.replaceAll("'", "%27")}'`;
  const name = decodeURIComponent(shown.pathname.slice(1));
  return new StoreError(
    "DATABASE_MISSING",
    `The database ${JSON.stringify(name)} does not exist. Create it with: holdfast create --url ${quoted}${withPassword ? ", with the password in it" : ""}.`,
    { cause, details: { sqlState: "3D000", database: name } },
  );
}

/** Two transactions met; the same one run again will pass. */
function isConflict(error: unknown): boolean {
  const code = sqlState(error);
  return code === "40001" || code === "40P01" || code === "55P03";
}

/** A row with this key is already there. */
export function isDuplicate(error: unknown): boolean {
  return sqlState(error) === "23505";
}

/** An insert names a job type or a lane that the database does not have: `job type` of the row would be null. */
export function isStaleType(error: unknown): boolean {
  const cause = error instanceof HoldfastError ? error.cause : error;
  return sqlState(cause) === "23502" && (cause as { column?: unknown }).column === "job_type";
}

/** A pooler between us and the server does not keep named statements. */
export function isStatementLost(error: unknown): boolean {
  const code = sqlState(error);
  return code === "26000" || code === "08P01" || code === "42P05";
}

/**
 * A named statement gives other columns than when it was prepared: a table has changed under a running process, as it does in a
 * rolling deploy. By the place in the server that says so, whose words are in the server's language.
 */
export function isPlanStale(error: unknown): boolean {
  const cause = error instanceof HoldfastError ? error.cause : error;
  return sqlState(cause) === "0A000" && (cause as { routine?: unknown }).routine === "RevalidateCachedQuery";
}

/** An error in the user's own transaction: it is theirs that is read-only, and their connection is left alone. */
export function toUserTxError(error: unknown): unknown {
  if (sqlState(error) !== "25006") return error;
  return new StoreError("READ_ONLY", "The transaction in `tx` is read-only, so it cannot hold a job.", {
    cause: (error as Error).cause,
    details: { sqlState: "25006" },
  });
}

/**
 * For errors that the driver gave, and for no others: one without an SQLSTATE came from the socket or from pg itself, and the
 * connection is taken for lost. A TypeError and its like are faults of a program and stay what they are.
 */
export function toStoreError(error: unknown): unknown {
  if (error instanceof HoldfastError) return error;
  const state = sqlState(error);
  const message = error instanceof Error ? error.message : String(error);
  const fail = (code: ErrorCode, text: string) =>
    new StoreError(code, text, { cause: error, details: { sqlState: state } });
  if (state === "55P03") {
    return fail(
      "LOCK_TIMEOUT",
      "Another open transaction holds a unique key or a table that this call needs.",
    );
  }
  if (isStaleType(error))
    return fail(
      "DATABASE_BUSY",
      "Postgres lacks a job type or a lane that this process remembers (a failover?). Nothing was written; the next call creates them again.",
    );
  if (isPlanStale(error))
    return fail(
      "DATABASE_BUSY",
      "A Holdfast table has changed since its statement was prepared (a migration?). Nothing was written; the statement is prepared again.",
    );
  if (isConflict(error)) return fail("DATABASE_BUSY", `Postgres reported a conflict (${state}): ${message}.`);
  if (state === null) return isFault(error) ? error : unanswered(error, message);
  if (state === "25006")
    return fail(
      "CONNECTION_LOST",
      "Postgres is read-only now (a failover?). The connection was dropped; the next call uses another.",
    );
  if (CONNECTION_GONE.test(state))
    return fail("CONNECTION_LOST", `The connection to Postgres was lost (${state}): ${message}.`);
  switch (state) {
    case "3F000":
    case "42P01":
      return fail(
        "SCHEMA_MISSING",
        `Postgres lacks a Holdfast table or schema: ${message}. Open the database once with { migrate: true }.`,
      );
    case MOVED_STATE:
      return fail("MOVED", `${message.replace(/^holdfast: /, "")}. Start this process with the new address.`);
    case "53100":
      return fail(
        "DISK_FULL",
        "Postgres's disk is full: nothing was written. Free some space; workers then continue.",
      );
    case "57014":
      return fail("STATEMENT_TIMEOUT", `Postgres cancelled a statement: ${message}.`);
    case "42501":
      return fail(
        "PERMISSION_DENIED",
        `The role may not do this: ${message}. Grant it the rights that docs/guides/postgres.md lists.`,
      );
    case "28000":
    case "28P01":
      return fail("PERMISSION_DENIED", `Postgres refused the role or password: ${message}.`);
    case "3D000":
      return fail(
        "DATABASE_MISSING",
        `The database does not exist: ${message}. Create it with: holdfast create --url postgres://…`,
      );
    case "XX001":
    case "XX002":
      return fail("CORRUPT", `Postgres found its data damaged (${state}): ${message}.`);
    default:
      return PASSING.test(state)
        ? fail("DATABASE_FAILING", `Postgres failed (${state}): ${message}.`)
        : fail("STORE_FAILED", `Postgres refused a statement (${state}): ${message}.`);
  }
}

function isFault(error: unknown): boolean {
  return (
    error instanceof TypeError ||
    error instanceof RangeError ||
    error instanceof ReferenceError ||
    error instanceof SyntaxError
  );
}

/** pg has no codes of its own, so that two of its causes are known by their words. */
function unanswered(cause: unknown, message: string): StoreError {
  const { code = null } = (cause ?? {}) as { code?: string | null };
  const fail = (ours: ErrorCode, text: string) =>
    new StoreError(ours, text, { cause, details: { sqlState: null, code } });
  if (/^SASL: .*password/i.test(message))
    return fail("PERMISSION_DENIED", `Postgres needs a password: ${message}.`);
  if (message === POOL_BUSY) return fail("STATEMENT_TIMEOUT", "All connections of the pool stayed in use.");
  return code === null
    ? fail("CONNECTION_LOST", `The connection to Postgres was lost: ${message}.`)
    : fail(
        "DATABASE_UNREACHABLE",
        `Postgres cannot be reached (${message.includes(code) ? message : [code, message].filter((part) => part !== "").join(": ")}). Check the address in the URL, and that the server is running.`,
      );
}

const POOL_BUSY = "timeout exceeded when trying to connect";
