/**
 * Decisions: what a handler throws or returns on purpose to say what becomes of its attempt.
 *
 *   Dead        the job ends now            RetryAfter  fails, and tries again then
 *   Throttled   not now: attempt given back Release     not the job's fault: attempt given back
 *
 * Invariants: checked when made, in the handler's own stack, so that settling never meets a bad one; recognised
 * by brand, so that a decision made by another copy of the package counts; one that is returned is thrown by the code
 * that called the handler, so that middleware and whoever records errors meet one and the same thing.
 * Not here: what each one does to the row (transition.ts).
 */
import { shown, UsageError } from "../errors.ts";
import { type Duration, durationMs, instantMs } from "../values/duration.ts";
import { checkOptions } from "../values/options.ts";

const brand = Symbol.for("holdfast.decision");

/**
 * Ends the job now: dead, whatever attempts are left.
 *
 * @example
 * if (response.status === 410) throw new Dead("the mailbox no longer exists");
 */
export class Dead extends Error {
  readonly reason: string;

  constructor(reason: string, options?: { cause?: unknown }) {
    const given = checkOptions(options, ["cause"], "Dead");
    const text = checkReason(reason, "Dead");
    super(text, "cause" in given ? { cause: given["cause"] } : undefined);
    this.reason = text;
  }

  static {
    mark(this.prototype, "Dead");
  }
}

/**
 * Fails the attempt and sets the delay of this retry, in place of the backoff. A number is milliseconds from now.
 *
 * @example
 * throw new RetryAfter("15m", "the bank is closed for maintenance");
 */
export class RetryAfter extends Error {
  readonly reason: string;
  /** How long to wait, or null when an instant was given. */
  readonly delayMs: number | null;
  /** When to try again in epoch milliseconds, or null when a duration was given. */
  readonly at: number | null;

  constructor(when: Duration | Date, reason = "retry later") {
    const text = checkReason(reason, "RetryAfter");
    super(text);
    const isDuration = typeof when === "number" || typeof when === "string";
    this.reason = text;
    this.delayMs = isDuration ? durationMs(when, "RetryAfter's first argument") : null;
    this.at = isDuration ? null : instantMs(when, "RetryAfter's first argument");
  }

  /** The delay as seen from `now`; an instant that has passed is 0. */
  delayFrom(now: number): number {
    return this.delayMs ?? Math.max(0, (this.at ?? now) - now);
  }

  static {
    mark(this.prototype, "RetryAfter");
  }
}

/**
 * Gives the attempt back because a rate limit was met; cools the queue down where the queue is set to. Without
 * `retryAfter`, the backoff says when.
 *
 * @example
 * if (response.status === 429) throw new Throttled(`${response.headers.get("retry-after") ?? 30}s`);
 */
export class Throttled extends Error {
  readonly reason: string;
  /** How long to wait, or null: let the backoff say. */
  readonly retryAfterMs: number | null;

  constructor(retryAfter?: Duration, reason = "throttled") {
    const text = checkReason(reason, "Throttled");
    super(text);
    this.reason = text;
    this.retryAfterMs = retryAfter === undefined ? null : durationMs(retryAfter, "Throttled's retryAfter");
  }

  static {
    mark(this.prototype, "Throttled");
  }
}

/**
 * Gives the attempt back because the job was not at fault; ready again at once, or after `delay`.
 *
 * @example
 * if (session.expired) throw new Release("session expired", { delay: "1m" });
 */
export class Release extends Error {
  readonly reason: string;
  /** How long to wait; 0 is at once. */
  readonly delayMs: number;

  constructor(reason = "released", options?: { delay?: Duration }) {
    const { delay } = checkOptions(options, ["delay"], "Release") as { delay?: Duration };
    const text = checkReason(reason, "Release");
    super(text);
    this.reason = text;
    this.delayMs = delay === undefined ? 0 : durationMs(delay, "Release's delay");
  }

  static {
    mark(this.prototype, "Release");
  }
}

/**
 * Whether a thrown value is a `Dead`, also of another copy of the package.
 *
 * @example
 * if (isDead(thrown)) console.log(thrown.reason);
 */
export function isDead(thrown: unknown): thrown is Dead {
  return kindOf(thrown) === "Dead";
}

/**
 * Whether a thrown value is a `RetryAfter`, also of another copy of the package.
 *
 * @example
 * if (isRetryAfter(thrown)) console.log(thrown.delayFrom(clock.now()));
 */
export function isRetryAfter(thrown: unknown): thrown is RetryAfter {
  return kindOf(thrown) === "RetryAfter";
}

/**
 * Whether a thrown value is a `Throttled`, also of another copy of the package.
 *
 * @example
 * if (isThrottled(thrown)) console.log(thrown.retryAfterMs);
 */
export function isThrottled(thrown: unknown): thrown is Throttled {
  return kindOf(thrown) === "Throttled";
}

/**
 * Whether a thrown value is a `Release`, also of another copy of the package.
 *
 * @example
 * if (isRelease(thrown)) console.log(thrown.delayMs);
 */
export function isRelease(thrown: unknown): thrown is Release {
  return kindOf(thrown) === "Release";
}

/** A value that a handler may throw or return to decide how its attempt ends. */
export type Decision = Dead | RetryAfter | Throttled | Release;

/**
 * Whether a value is one of the four decisions, also of another copy of the package.
 *
 * @example
 * if (isDecision(returned)) throw returned;
 */
export function isDecision(value: unknown): value is Decision {
  const kind = kindOf(value);
  return kind === "Dead" || kind === "RetryAfter" || kind === "Throttled" || kind === "Release";
}

/** Throws a returned decision; gives back every other value. */
export function orThrow<Value>(value: Value): Value {
  if (isDecision(value)) throw value;
  return value;
}

type Kind = "Dead" | "RetryAfter" | "Throttled" | "Release";

// Name and brand go on the prototype: bundlers rename classes, and fields of an error are printed with it.
function mark(prototype: Error, kind: Kind): void {
  Object.defineProperty(prototype, "name", { value: kind, configurable: true, writable: true });
  Object.defineProperty(prototype, brand, { value: kind });
}

function kindOf(thrown: unknown): unknown {
  try {
    return typeof thrown === "object" && thrown !== null && brand in thrown ? thrown[brand] : undefined;
  } catch {
    return undefined; // a Proxy whose traps throw is no decision
  }
}

function checkReason(reason: unknown, what: string): string {
  if (typeof reason === "string") return reason;
  throw new UsageError(
    "BAD_OPTION",
    `The reason of ${what} must be a string; got ${shown(reason)}. Pass an error as \`cause\`.`,
    {
      details: { what },
    },
  );
}
