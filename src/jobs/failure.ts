/**
 * What is recorded of a failed attempt, whatever was thrown.
 *
 * Errors are text from outside: a NUL in one stopped the workers of other queues, and a circular one became an unhandled
 * rejection. Invariants: nothing here throws; a message is at most 8 KiB and a stack
 * 16 KiB of UTF-8, cut between characters; a history is at most 32 entries and 64 KiB, newest kept. NUL and lone
 * surrogates stay as they are: the history escapes them by being JSON, and whoever stores `message` by itself
 * must do so too.
 * Not here: whether the job tries again (transition.ts), grouping of errors (the fingerprint).
 */
import { Buffer } from "node:buffer";
import { inspect } from "node:util";

/**
 * What a thrown value says.
 *
 * @example
 * const failure: Failure = describeFailure(new Error("top", { cause: new Error("root") })); // message "top: root"
 */
export type Failure = {
  /** The whole chain of causes: "top: middle: root". */
  message: string;
  /** The stack with those of the causes, or null for a value without one. */
  stack: string | null;
  /** The first `code` in the chain that is a string, such as "ECONNREFUSED". */
  code?: string;
};

/**
 * One entry of a job's `errors`.
 *
 * @example
 * const record: FailureRecord = { at: clock.now(), attempt: 1, message: "boom", stack: null };
 */
export type FailureRecord = {
  at: number;
  attempt: number;
  message: string;
  stack: string | null;
  /** How long the attempt ran, or was held; left out where nobody measured it. */
  ranMs?: number;
  /** It was lost with its worker. */
  lost?: true;
};

const maxMessageBytes = 8 * 1024;
const maxStackBytes = 16 * 1024;
const maxRecords = 32;
const maxHistoryBytes = 64 * 1024;
const maxCodeBytes = 128;
const maxLinks = 64;
const maxParts = 8;
const maxPartBytes = 1024;
const cutMark = "… [cut]";

/**
 * Describes anything that can be thrown. Never throws.
 *
 * @example
 * describeFailure(undefined); // { message: "thrown: undefined", stack: null }
 */
export function describeFailure(thrown: unknown): Failure {
  try {
    return describe(thrown);
  } catch {
    return { message: "the handler threw a value that cannot be described", stack: null };
  }
}

function describe(thrown: unknown): Failure {
  const met = new Set<unknown>();
  const links = chainOf(thrown, met);
  const text = messageOfChain(links, met);
  const said = typeof thrown === "string" || typeof read(thrown, "message") === "string";
  const message = cutText(said ? text : `thrown: ${text}`, maxMessageBytes);
  const stacks = links.map(stackOf).filter((stack) => stack !== undefined);
  const stack = stacks.length === 0 ? null : cutText(stacks.join("\nCaused by: "), maxStackBytes);
  const code = links.map((link) => read(link, "code")).find((own) => typeof own === "string" && own !== "");
  return typeof code === "string"
    ? { message, stack, code: cutText(code, maxCodeBytes) }
    : { message, stack };
}

/** The value and its causes. Each is visited once and all are bounded, so cycles and endless getters end. */
function chainOf(value: unknown, met: Set<unknown>): unknown[] {
  const links: unknown[] = [];
  let link = value;
  while (met.size < maxLinks && !met.has(link)) {
    met.add(link);
    links.push(link);
    link = read(link, "cause");
    if (link === undefined || link === null) break;
  }
  return links;
}

function messageOfChain(links: readonly unknown[], met: Set<unknown>): string {
  const messages: string[] = [];
  for (const link of links) {
    const message = messageOf(link, met);
    // Many wrap by hand, `new Error("x: " + e.message, { cause: e })`: do not say it twice.
    if (!(messages.at(-1) ?? "").endsWith(message)) messages.push(message);
  }
  return messages.join(": ");
}

function messageOf(value: unknown, met: Set<unknown>): string {
  if (typeof value === "string") return value === "" ? '""' : cutText(value, maxMessageBytes);
  if (!isObject(value)) return cutText(String(value), maxMessageBytes); // String() takes symbols too
  const parts = partsOf(value, met);
  const text = ownMessageOf(value);
  return parts.length === 0 ? text : `${text} [${parts.join("; ")}]`;
}

function ownMessageOf(value: object): string {
  const message = read(value, "message");
  if (typeof message === "string" && message !== "") return cutText(message, maxMessageBytes);
  const name = read(value, "name");
  const isError = typeof message === "string" && typeof name === "string" && name !== "";
  return isError ? cutText(name, maxMessageBytes) : inspected(value);
}

/** What an AggregateError's errors say, each with its causes. */
function partsOf(value: object, met: Set<unknown>): string[] {
  const errors = read(value, "errors");
  const count = Array.isArray(errors) ? errors.length : 0;
  const parts: string[] = [];
  for (let i = 0; i < Math.min(count, maxParts); i++) {
    const links = chainOf(read(errors, i), met);
    if (links.length > 0) parts.push(cutText(messageOfChain(links, met), maxPartBytes));
  }
  if (count > maxParts) parts.push(`and ${count - maxParts} more`);
  return parts;
}

function stackOf(value: unknown): string | undefined {
  const stack = read(value, "stack");
  if (typeof stack !== "string" || stack === "") return undefined;
  // A stack begins with the message; a huge one would leave no room for the frames, which are what is wanted.
  const message = read(value, "message");
  if (typeof message !== "string" || message.length <= maxPartBytes) return stack;
  const start = stack.indexOf(message);
  return start < 0
    ? stack
    : stack.slice(0, start) + cutText(message, maxPartBytes) + stack.slice(start + message.length);
}

function inspected(value: object): string {
  try {
    const text = inspect(value, {
      depth: 2,
      breakLength: Infinity,
      maxArrayLength: 10,
      maxStringLength: 1024,
      customInspect: false,
    });
    return cutText(text, maxMessageBytes);
  } catch {
    return "an object that cannot be shown";
  }
}

function isObject(value: unknown): value is object {
  return (typeof value === "object" && value !== null) || typeof value === "function";
}

function read(value: unknown, key: string | number): unknown {
  try {
    return isObject(value) ? (value as Record<string | number, unknown>)[key] : undefined;
  } catch {
    return undefined; // a getter or a Proxy that throws
  }
}

const encoder = new TextEncoder();

/**
 * The text if it fits into `maxBytes` of UTF-8, otherwise its beginning, cut between characters, with a mark.
 *
 * @example
 * cutText("x".repeat(100), 20); // "xxxxxxxxxxx… [cut]", 20 bytes
 */
export function cutText(text: string, maxBytes: number): string {
  if (text.length * 3 <= maxBytes) return text;
  if (text.length <= maxBytes && Buffer.byteLength(text) <= maxBytes) return text;
  const room = Math.max(0, maxBytes - Buffer.byteLength(cutMark));
  // encodeInto stops before the first character that does not fit, and says how far it came.
  const { read: units } = encoder.encodeInto(text, new Uint8Array(room));
  return text.slice(0, units) + cutMark;
}

/**
 * The history with one more failure, as JSON text. Old stacks go first, then old entries. A history that cannot
 * be read counts as empty: it must not keep the job from being settled.
 *
 * @example
 * row.errors = appendFailure(row.errors, { at: now, attempt: 1, message: "boom", stack: null });
 */
export function appendFailure(encoded: string | null, record: FailureRecord): string {
  const newest = {
    at: record.at,
    attempt: record.attempt,
    message: cutText(record.message, maxMessageBytes),
    stack: record.stack === null ? null : cutText(record.stack, maxStackBytes),
    ...(record.ranMs === undefined ? {} : { ranMs: Math.max(0, Math.round(record.ranMs)) }),
    ...(record.lost === true ? { lost: true as const } : {}),
  };
  const records = [...decodeFailures(encoded), newest].slice(-maxRecords);
  let texts = records.map((entry) => JSON.stringify(entry));
  let bytes = texts.reduce((sum, text) => sum + Buffer.byteLength(text) + 1, 1);
  const replace = (i: number, entry: FailureRecord): void => {
    const text = JSON.stringify(entry);
    bytes += Buffer.byteLength(text) - Buffer.byteLength(texts[i] ?? "");
    texts[i] = text;
  };
  for (const [i, entry] of records.slice(0, -1).entries()) {
    if (bytes <= maxHistoryBytes) break;
    if (entry.stack !== null) replace(i, { ...entry, stack: null });
  }
  while (bytes > maxHistoryBytes && texts.length > 1) {
    bytes -= Buffer.byteLength(texts[0] ?? "") + 1;
    texts = texts.slice(1);
  }
  // One entry alone can be too long: a control character takes one byte as it is and six as JSON.
  for (let stackBytes = maxStackBytes / 2; bytes > maxHistoryBytes; stackBytes /= 2) {
    replace(0, {
      ...newest,
      stack: newest.stack === null || stackBytes < 256 ? null : cutText(newest.stack, stackBytes),
    });
    if (stackBytes < 256) break;
  }
  return `[${texts.join(",")}]`;
}

/**
 * The failures that a history holds, oldest first. What cannot be read is left out.
 *
 * @example
 * decodeFailures(null); // []
 */
export function decodeFailures(encoded: string | null): FailureRecord[] {
  if (encoded === null || encoded === "") return [];
  let value: unknown;
  try {
    value = JSON.parse(encoded);
  } catch {
    return [];
  }
  if (!Array.isArray(value)) return [];
  const records: FailureRecord[] = [];
  for (const entry of value as unknown[]) {
    const { at, attempt, message, stack, ranMs, lost } = (isObject(entry) ? entry : {}) as Record<
      keyof FailureRecord,
      unknown
    >;
    if (typeof at !== "number" || typeof attempt !== "number" || typeof message !== "string") continue;
    records.push({
      at,
      attempt,
      message,
      stack: typeof stack === "string" ? stack : null,
      ...(typeof ranMs === "number" ? { ranMs } : {}),
      ...(lost === true ? { lost } : {}),
    });
  }
  return records;
}
