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
 * Not here: schemas (input-schema.ts), which limit applies to what.
 */
import { Buffer } from "node:buffer";
import { type ErrorCode, type HoldfastError, JobError, UsageError } from "../errors.ts";

const maxDepth = 1_000;

type Fault = {
  kind: "not-json" | "too-deep" | "too-large";
  /** What follows the path in the message: "is a BigInt". */
  text: string;
  cause?: unknown;
  /** Keys from the inside out; each level adds its own while the walk returns. */
  path: (string | number)[];
};

/**
 * The value as JSON text. A `toJSON` method or getter is called twice, once to check and once to write.
 *
 * @throws UsageError (JobError for the output of a job or step) with one of the two codes
 * @example
 * encodeJson({ to: "a@b.c" }, "input", 1_000_000, { notJson: "INPUT_NOT_JSON", tooLarge: "INPUT_TOO_LARGE" });
 */
export function encodeJson(
  value: unknown,
  what: string,
  limitBytes: number,
  codes: { notJson: ErrorCode; tooLarge: ErrorCode },
): string {
  const outer = leftBytes; // of a toJSON that encodes something itself
  leftBytes = limitBytes;
  const fault = walk(value, 1, "");
  leftBytes = outer;
  if (fault !== undefined) throw refusal(value, fault, what, limitBytes, codes);
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch (cause) {
    throw error(codes.notJson, `${what} cannot be written as JSON.`, { what }, cause);
  }
  // Only a toJSON that changed its mind since the walk leaves nothing to write.
  if (text === undefined) throw error(codes.notJson, `${what} cannot be written as JSON.`, { what });
  // No UTF-16 unit takes more than 3 bytes, so small texts need not be measured.
  if (text.length * 3 > limitBytes) {
    const bytes = Buffer.byteLength(text);
    if (bytes > limitBytes)
      throw error(codes.tooLarge, tooLargeText(what, limitBytes), { what, bytes, limitBytes });
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
  if (depth > maxDepth) return { kind: "too-deep", text: "", path: [] };
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
  if (tagOf(value) === "Date" && Number.isNaN(Number(value))) return notJson("is an invalid Date");
  let replacement: unknown;
  try {
    replacement = (value as { toJSON(key: string): unknown }).toJSON(String(key));
  } catch (cause) {
    return { ...notJson("has a toJSON that throws"), cause };
  }
  return walk(replacement, depth, null);
}

/**
 * Map, Set, Error, Promise, RegExp, ArrayBuffer, URLSearchParams …: their content is not in their fields. Objects
 * of classes and of other realms have the plain tag, and go as their fields.
 */
function foreign(value: object): Fault | undefined {
  const tag = tagOf(value);
  if (ArrayBuffer.isView(value)) return notJson(`is ${named(tag)}; store it as a string, such as base64`);
  return tag === "Object" ? undefined : notJson(`is ${named(tag)}, which JSON cannot hold`);
}

function named(tag: string): string {
  return `${/^[AEIO]/.test(tag) ? "an" : "a"} ${tag}`;
}

function tooLarge(): Fault {
  return { kind: "too-large", text: "", path: [] };
}

function tagOf(value: object): string {
  return Object.prototype.toString.call(value).slice(8, -1);
}

function notJson(text: string): Fault {
  return { kind: "not-json", text, path: [] };
}

function within(fault: Fault, key: string | number): Fault {
  fault.path.push(key);
  return fault;
}

function refusal(
  value: unknown,
  fault: Fault,
  what: string,
  limitBytes: number,
  codes: { notJson: ErrorCode; tooLarge: ErrorCode },
): HoldfastError {
  const keys = fault.path.reverse();
  if (fault.kind === "too-large")
    return error(codes.tooLarge, tooLargeText(what, limitBytes), { what, limitBytes });
  if (fault.kind === "too-deep") {
    const cycle = cycleIn(value, keys);
    if (cycle === undefined) {
      return error(codes.notJson, `${what} is nested more than ${maxDepth} levels deep.`, { what, maxDepth });
    }
    const path = pathText(what, cycle);
    return error(codes.notJson, `${path} is a cycle: it contains itself.`, { what, path });
  }
  const path = pathText(what, keys);
  return error(codes.notJson, `${path} ${fault.text}.`, { what, path }, fault.cause);
}

/** Of the keys that led too deep, those up to the first object that had been met before. */
function cycleIn(root: unknown, keys: readonly (string | number)[]): (string | number)[] | undefined {
  const met = new Set<unknown>([root]);
  let value = root;
  for (const [i, key] of keys.entries()) {
    try {
      value = (value as Record<string | number, unknown>)[key];
    } catch {
      return undefined;
    }
    if (met.has(value)) return keys.slice(0, i + 1);
    met.add(value);
  }
  return undefined;
}

function pathText(what: string, keys: readonly (string | number)[]): string {
  let text = what;
  for (const key of keys) {
    if (text.length > 200) return `${text}…`;
    if (typeof key === "number") text += `[${key}]`;
    else if (/^[A-Za-z_$][\w$]{0,60}$/.test(key)) text += `.${key}`;
    else text += `[${JSON.stringify(key.length > 60 ? `${key.slice(0, 59)}…` : key)}]`;
  }
  return text;
}

function tooLargeText(what: string, limitBytes: number): string {
  return `${what} takes more than ${limitBytes} bytes as JSON. Store it elsewhere and pass a reference, or raise the limit.`;
}

const seenByTheReader: ReadonlySet<ErrorCode> = new Set<ErrorCode>(["OUTPUT_NOT_JSON", "OUTPUT_TOO_LARGE"]);

function error(
  code: ErrorCode,
  message: string,
  details: Record<string, unknown>,
  cause?: unknown,
): HoldfastError {
  const extra = cause === undefined ? { details } : { details, cause };
  return seenByTheReader.has(code)
    ? new JobError(code, message, extra)
    : new UsageError(code, message, extra);
}
