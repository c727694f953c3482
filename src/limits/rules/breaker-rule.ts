/**
 * The rule of breakers, pure:
 *
 *   closed ──`after` consecutive failures──▶ open ──`cooldownMs`──▶ half-open ──the probe succeeds──▶ closed
 *     ▲  └── a success: the count starts anew    ▲                      │
 *     └───────── reset by hand ─────────────────┴── the probe fails ────┘
 *
 * Invariant: while a breaker is not closed, only its probe's outcome counts; what else still ran when it opened
 * comes to its end and changes nothing.
 * Not here: keeping the state (limits/breaker-rows.ts), keeping jobs from running (worker/guards/breaker-guard.ts).
 */

/** When a breaker opens, and for how long. */
export interface Rule {
  readonly after: number;
  readonly cooldownMs: number;
}

/** A breaker's state. `openUntil` null: closed; later than now: open; else half-open. */
export interface Circuit {
  readonly failures: number;
  readonly openedAt: number | null;
  readonly openUntil: number | null;
  /** The session that runs the probe. */
  readonly probe: number | null;
  readonly error: string | null;
}

/** What a batch of outcomes comes to. */
export interface Tally {
  /** Failures since the latest success of the batch. */
  readonly failures: number;
  readonly succeeded: boolean;
  readonly error: string | null;
}

/** The default of `after`. */
export const DEFAULT_AFTER = 10;
/** The default of `cooldown`. */
export const DEFAULT_COOLDOWN_MS = 30_000;

export const CLOSED: Circuit = { failures: 0, openedAt: null, openUntil: null, probe: null, error: null };

/**
 * The state after a batch that settled under a session.
 *
 * @example
 * tally(CLOSED, { failures: 10, succeeded: false, error: "502" }, { after: 10, cooldownMs: 30_000 }, 7, now).openUntil; // now + 30_000
 */
export function tally(circuit: Circuit, batch: Tally, rule: Rule, session: number, now: number): Circuit {
  const error = batch.error ?? circuit.error;
  const opened = { openedAt: now, openUntil: now + rule.cooldownMs, probe: null, error };
  if (circuit.openUntil !== null) {
    if (circuit.probe !== session) return circuit;
    if (batch.failures > 0) return { ...opened, failures: circuit.failures + batch.failures };
    return batch.succeeded ? CLOSED : circuit;
  }
  const failures = (batch.succeeded ? 0 : circuit.failures) + batch.failures;
  if (failures >= rule.after) return { ...opened, failures };
  return { ...CLOSED, failures, error: failures === 0 ? null : error };
}

/**
 * Where a circuit stands.
 *
 * @example
 * standingOf(CLOSED, now); // "closed"
 */
export function standingOf(circuit: Circuit, now: number): "closed" | "open" | "half-open" {
  if (circuit.openUntil === null) return "closed";
  return circuit.openUntil > now ? "open" : "half-open";
}

/**
 * The names under which breakers are kept: of a queue, of a name, of one key of a name.
 *
 * @example
 * breakerKey.key("fetch", "example.org"); // "name:fetch/example.org"
 */
export const breakerKey = {
  queue: (queue: string): string => `queue:${queue}`,
  name: (name: string): string => `name:${name}`,
  key: (name: string, key: string): string => `name:${name}/${key}`,
};
