/**
 * Values to text and back: lossless, or refused with the path of what is wrong.
 *
 * JSON.stringify loses silently: NaN becomes null, a Map becomes {}, a function disappears. So a value is walked
 * first and refused where it would not come back as it went in. The two exceptions are JSON's own habits that
 * everybody relies on: a property that is `undefined` is left out, and an object with `toJSON` (a Date) is stored
 * as what that gives. −0 comes back as 0. Instances of classes are stored as their enumerable fields.
 *
 * Invariants: the text is valid UTF-8 without NUL (JSON.stringify escapes control characters and lone
 * surrogates), so both databases take it as it is; depth is at most 1,000, so neither side overflows the stack;
 * the walk stops as soon as the value must be too large, so that shared or endless data ends it too.
 * Not here: what is said of a value that is refused (json-faults.ts), schemas (input-schema.ts), which limit applies to what.
 */
import { Buffer } from "node:buffer";
import { JobError } from "../errors.ts";
import {
  type Codes,
  type Fault,
  foreign,
  isInvalidDate,
  MAX_DEPTH,
  notJson,
  notWritable,
  refusal,
  tooLarge,
  tooLargeError,
  within,
} from "./json-faults.ts";

/**
 * The value as JSON text. A `toJSON` method or getter is called twice, once to check and once to write.
 *
 * @throws UsageError (JobError for the output of a job or step) with one of the two codes
 * @example
 * encodeJson({ to: "a@b.c" }, "input", 1_000_000, { notJson: "INPUT_NOT_JSON", tooLarge: "INPUT_TOO_LARGE" });
 */
export function encodeJson(value: unknown, what: string, limitBytes: number, codes: Codes): string {
  const outer = leftBytes; // of a toJSON that encodes something itself
  leftBytes = limitBytes;
  const fault = walk(value, 1, "");
  leftBytes = outer;
  if (fault !== undefined) throw refusal(value, fault, what, limitBytes, codes);
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch (cause) {
    throw notWritable(what, codes, cause);
  }
  // Only a toJSON that changed its mind since the walk leaves nothing to write.
  if (text === undefined) throw notWritable(what, codes);
  // No UTF-16 unit takes more than 3 bytes, so small texts need not be measured.
  if (text.length * 3 > limitBytes) {
    const bytes = Buffer.byteLength(text);
    if (bytes > limitBytes) throw tooLargeError(what, codes, { bytes, limitBytes });
  }
  return text;
}

/**
 * The value that the text holds. A `__proto__` key becomes an ordinary property, as JSON.parse has it.
 *
 * @throws JobError DECODE_FAILED
 * @example
 * decodeJson('{"to":"a@b.c"}', "input"); // { to: "a@b.c" }
 */
export function decodeJson(text: string, what: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (cause) {
    // The parser's own message quotes the text, which may be secret, so it is only the cause.
    throw new JobError(
      "DECODE_FAILED",
      `${what} is not valid JSON. Another program may have changed the row.`,
      {
        details: { what },
        cause,
      },
    );
  }
}

// The bytes that the value may still take, counted from below: one per UTF-16 unit of a string, one per number.
// Of the module rather than handed down, because a walk is never interrupted and this way allocates nothing.
let leftBytes = 0;

/** `key` is what toJSON is told; null when toJSON has had its say. */
function walk(value: unknown, depth: number, key: string | number | null): Fault | undefined {
  switch (typeof value) {
    case "string":
      leftBytes -= value.length + 2;
      return leftBytes < 0 ? tooLarge() : undefined;
    case "number":
      leftBytes -= 1;
      return Number.isFinite(value) ? undefined : notJson(`is ${value}`);
    case "boolean":
      leftBytes -= 4;
      return undefined;
    case "undefined":
      return notJson("is undefined");
    case "bigint":
      return notJson("is a BigInt");
    case "function":
      return notJson("is a function");
    case "symbol":
      return notJson("is a symbol");
    default:
      return value === null ? undefined : walkObject(value as Record<string, unknown>, depth, key);
  }
}

function walkObject(
  value: Record<string, unknown>,
  depth: number,
  ownKey: string | number | null,
): Fault | undefined {
  leftBytes -= 2;
  if (leftBytes < 0) return tooLarge();
  if (depth > MAX_DEPTH) return { kind: "too-deep", text: "", path: [] };
  let at: string | number | undefined;
  try {
    if (ownKey !== null && typeof value["toJSON"] === "function")
      return walkReplacement(value, depth, ownKey);
    if (Array.isArray(value)) {
      const items: readonly unknown[] = value;
      // A hole is undefined and refused, so a sparse array of 2^32 ends at its first.
      for (let i = 0; i < items.length; i++) {
        at = i;
        leftBytes -= 1;
        const fault = walk(items[i], depth + 1, i);
        if (fault !== undefined) return within(fault, i);
      }
      return undefined;
    }
    if (Object.getPrototypeOf(value) !== Object.prototype) {
      const fault = foreign(value);
      if (fault !== undefined) return fault;
    }
    for (const key of Object.keys(value)) {
      at = key;
      const child = value[key];
      if (child === undefined) continue;
      leftBytes -= key.length + 3;
      const fault = walk(child, depth + 1, key);
      if (fault !== undefined) return within(fault, key);
    }
    return undefined;
  } catch (cause) {
    // A getter or a Proxy's trap; what is deeper down has caught its own.
    return { ...notJson("cannot be read: it throws"), cause, path: at === undefined ? [] : [at] };
  }
}

/** What toJSON gives is written as it is: JSON.stringify does not ask that for its toJSON again. */
function walkReplacement(value: object, depth: number, key: string | number): Fault | undefined {
  // Buffer has a toJSON: an array of numbers four times the size, which never becomes a Buffer again.
  if (ArrayBuffer.isView(value)) return foreign(value);
  // An invalid Date has one too, but it gives null.
  if (isInvalidDate(value)) return notJson("is an invalid Date");
  let replacement: unknown;
  try {
    replacement = (value as { toJSON(key: string): unknown }).toJSON(String(key));
  } catch (cause) {
    return { ...notJson("has a toJSON that throws"), cause };
  }
  return walk(replacement, depth, null);
}
