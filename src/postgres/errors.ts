/** Postgres's and the socket's errors as ours: by SQLSTATE or errno, never by message where there is a code. */
import { HoldfastError, StoreError, type ErrorCode } from "../errors.ts";

/** SQLSTATEs after which the connection is of no more use. */
const CONNECTION_GONE = /^(08|57P0[123]|25006|25P03|53300)/;
/** Errors of the socket, of DNS and of pg itself, which have no SQLSTATE. */
const SOCKET_CODES = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "ECONNABORTED",
  "EPIPE",
  "ETIMEDOUT",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTFOUND",
  "EAI_AGAIN",
  "ENOENT",
]);

/** What the triggers of a database that has moved raise (postgres/admin.ts). */
export const MOVED_STATE = "HF001";

export function sqlState(error: unknown): string | null {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === "string" ? code : null;
}

/** The connection is gone or its server is going: destroy it, take another. */
export function isConnectionError(error: unknown): boolean {
  const code = sqlState(error);
  if (code !== null) return CONNECTION_GONE.test(code) || SOCKET_CODES.has(code);
  const message = error instanceof Error ? error.message : "";
  return /connection terminated|client has encountered a connection error|timeout exceeded when trying to connect|not queryable|server does not support|connection ended|client was closed/i.test(
    message,
  );
}

/** Two transactions met; the same one run again will pass. */
export function isConflict(error: unknown): boolean {
  const code = sqlState(error);
  return code === "40001" || code === "40P01" || code === "55P03";
}

/** A row with this key is already there. Looks through our own error at its cause. */
export function isDuplicate(error: unknown): boolean {
  return sqlState(error) === "23505" || (error instanceof HoldfastError && sqlState(error.cause) === "23505");
}

/** A pooler between us and the server does not keep named statements. */
export function isStatementLost(error: unknown): boolean {
  const code = sqlState(error);
  return code === "26000" || code === "08P01" || code === "42P05";
}

/** An error in the user's own transaction: it is theirs that is read-only, and their connection is left alone. */
export function toUserTxError(error: unknown): unknown {
  if (sqlState(error) !== "25006") return toStoreError(error);
  return new StoreError("READ_ONLY", "The transaction in `tx` is read-only: no job can be written in it.", {
    cause: error,
    details: { sqlState: "25006" },
  });
}

export function toStoreError(error: unknown): unknown {
  if (error instanceof HoldfastError) return error;
  const state = sqlState(error);
  const message = error instanceof Error ? error.message : String(error);
  const fail = (code: ErrorCode, text: string) =>
    new StoreError(code, text, { cause: error, details: { sqlState: state } });
  if (state === "55P03") {
    return fail(
      "LOCK_TIMEOUT",
      "Somebody's open transaction holds what this needs: a unique key, or a table that is being changed.",
    );
  }
  if (isConflict(error)) return fail("DATABASE_BUSY", `Postgres reported a conflict (${state}): ${message}.`);
  if (isConnectionError(error)) {
    if (state === "25006")
      return fail(
        "CONNECTION_LOST",
        "Postgres is read-only now (a failover?). The connection was dropped; another will be tried.",
      );
    if (state !== null && SOCKET_CODES.has(state)) {
      return fail(
        "DATABASE_UNREACHABLE",
        `Postgres cannot be reached (${state}). Check the address in the URL and that the server runs.`,
      );
    }
    return fail("CONNECTION_LOST", `The connection to Postgres was lost: ${message}.`);
  }
  switch (state) {
    case "3F000":
    case "42P01":
      return fail(
        "SCHEMA_MISSING",
        `Postgres lacks a table or schema of Holdfast's: ${message}. Open it once with { migrate: true }.`,
      );
    case MOVED_STATE:
      return fail("MOVED", `${message.replace(/^holdfast: /, "")}. Start this process with the new address.`);
    case "53100":
      return fail(
        "DISK_FULL",
        "Postgres's disk is full: nothing was written. Free some space; work goes on by itself.",
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
      return fail("DATABASE_UNREACHABLE", `The database in the URL does not exist: ${message}.`);
    default:
      return state !== null && /^[0-9A-Z]{5}$/.test(state)
        ? fail("STORE_FAILED", `Postgres refused a statement (${state}): ${message}.`)
        : error;
  }
}
