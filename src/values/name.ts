/**
 * Names, keys and schema names: what may become an identifier, a header or a line in a log.
 *
 * Invariants: a name is plain ASCII that needs no quoting in a shell, an address or a metric; a key is text that
 * both databases store unchanged (well-formed, no NUL) and can index (bounded); a schema name is a lower-case
 * identifier that leaves room for what we append (Postgres cuts identifiers at 63 bytes).
 * Not here: quoting of identifiers (each dialect), escaping for a page or a terminal.
 */
import { Buffer } from "node:buffer";
import { shown, UsageError } from "../errors.ts";

const namePattern = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/;
const schemaPattern = /^[a-z_][a-z0-9_]{0,47}$/;

/**
 * Keys and lanes may take this many bytes of UTF-8.
 *
 * @example
 * checkText(key, "key", MAX_KEY_BYTES);
 */
export const MAX_KEY_BYTES = 512;

/**
 * The name of a job, queue, step, schedule, budget, hold …
 *
 * @throws UsageError BAD_NAME
 * @example
 * checkName("send-mail", "job name"); // "send-mail"
 */
export function checkName(value: unknown, what: string): string {
  if (isName(value)) return value;
  throw new UsageError(
    "BAD_NAME",
    `${what} must have 1 to 128 characters of A-Z a-z 0-9 . _ : - and begin with a letter or digit; got ${shown(value)}.`,
    { details: { what } },
  );
}

/**
 * Whether `checkName` takes it.
 *
 * @example
 * isName("send mail"); // false
 */
export function isName(value: unknown): value is string {
  return typeof value === "string" && namePattern.test(value);
}

/**
 * A unique key or a lane: any text that is not empty, up to `maxBytes` of UTF-8, without NUL or lone surrogates.
 *
 * @throws UsageError BAD_KEY
 * @example
 * checkText("tenant-7", "lane"); // "tenant-7"
 */
export function checkText(value: unknown, what: string, maxBytes: number = MAX_KEY_BYTES): string {
  const fault = textFault(value, maxBytes);
  if (fault === undefined) return value as string;
  throw new UsageError("BAD_KEY", `${what} ${fault}; got ${shown(value)}.`, { details: { what, maxBytes } });
}

function textFault(value: unknown, maxBytes: number): string | undefined {
  if (typeof value !== "string" || value === "") return "must be a non-empty string";
  if (value.includes("\0")) return "must not contain a NUL character";
  if (!value.isWellFormed()) return "must be well-formed Unicode (it has half of a surrogate pair)";
  // No UTF-16 unit takes more than 3 bytes, so short text need not be measured.
  if (value.length * 3 > maxBytes && Buffer.byteLength(value) > maxBytes)
    return `must be at most ${maxBytes} bytes of UTF-8`;
  return undefined;
}

/** The schema, or prefix, where none is given. */
export const DEFAULT_SCHEMA = "holdfast";

/**
 * The schema on Postgres, the prefix of the tables on SQLite.
 *
 * @throws UsageError BAD_NAME
 * @example
 * checkSchema("holdfast"); // "holdfast"
 */
export function checkSchema(value: unknown, what = "schema"): string {
  if (typeof value === "string" && schemaPattern.test(value)) return value;
  throw new UsageError(
    "BAD_NAME",
    `${what} must have 1 to 48 characters of a-z 0-9 _ and begin with a letter or _; got ${shown(value)}.`,
    { details: { what } },
  );
}
