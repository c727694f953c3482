/**
 * Values that JSON cannot hold: what is wrong with them, where, and the error that says so.
 *
 * Not here: finding them (json.ts).
 */
import { type ErrorCode, type HoldfastError, JobError, UsageError } from "../errors.ts";

export const MAX_DEPTH = 1_000;

/** The codes of the two refusals of one kind of value. */
export interface Codes {
  readonly notJson: ErrorCode;
  readonly tooLarge: ErrorCode;
}

export type Fault = {
  kind: "not-json" | "too-deep" | "too-large";
  /** What follows the path in the message: "is a BigInt". */
  text: string;
  cause?: unknown;
  /** Keys from the inside out; each level adds its own while the walk returns. */
  path: (string | number)[];
};

/**
 * Map, Set, Error, Promise, RegExp, ArrayBuffer, URLSearchParams …: their content is not in their fields. Objects
 * of classes and of other realms have the plain tag, and go as their fields.
 */
export function foreign(value: object): Fault | undefined {
  const tag = tagOf(value);
  if (ArrayBuffer.isView(value)) return notJson(`is ${named(tag)}; store it as a string, such as base64`);
  return tag === "Object" ? undefined : notJson(`is ${named(tag)}, which JSON cannot hold`);
}

function named(tag: string): string {
  return `${/^[AEIO]/.test(tag) ? "an" : "a"} ${tag}`;
}

export function tooLarge(): Fault {
  return { kind: "too-large", text: "", path: [] };
}

function tagOf(value: object): string {
  return Object.prototype.toString.call(value).slice(8, -1);
}

export function notJson(text: string): Fault {
  return { kind: "not-json", text, path: [] };
}

export function within(fault: Fault, key: string | number): Fault {
  fault.path.push(key);
  return fault;
}

export function refusal(
  value: unknown,
  fault: Fault,
  what: string,
  limitBytes: number,
  codes: Codes,
): HoldfastError {
  const keys = fault.path.reverse();
  if (fault.kind === "too-large") return tooLargeError(what, codes, { limitBytes });
  if (fault.kind === "too-deep") {
    const cycle = cycleIn(value, keys);
    if (cycle === undefined) {
      return error(codes.notJson, `${what} is nested more than ${MAX_DEPTH} levels deep.`, {
        what,
        maxDepth: MAX_DEPTH,
      });
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

export function tooLargeError(
  what: string,
  codes: Codes,
  sizes: { readonly bytes?: number; readonly limitBytes: number },
): HoldfastError {
  return error(
    codes.tooLarge,
    `${what} takes more than ${sizes.limitBytes} bytes as JSON. Store it elsewhere and pass a reference, or raise the limit.`,
    { what, ...sizes },
  );
}

export function notWritable(what: string, codes: Codes, cause?: unknown): HoldfastError {
  return error(codes.notJson, `${what} cannot be written as JSON.`, { what }, cause);
}

export function isInvalidDate(value: object): boolean {
  return tagOf(value) === "Date" && Number.isNaN(Number(value));
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
