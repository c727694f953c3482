/**
 * Time zones: which wall-clock time an instant has, and when a zone's offset changes.
 *
 * Wall-clock times are written as milliseconds too: the instant at which a clock in UTC would show them. So
 * `wall = instant + offset`, and everything about a zone is its offset over time, as the runtime's own IANA data says.
 * Invariant: no offset is computed by rule; every change is found in the data, to the second, by bisection.
 * Not here: what a schedule does at a change (cron.ts).
 */
import { shown, UsageError } from "../errors.ts";

/** The offset from UTC changes at `at`: before it was `before`, from then on it is `after` (milliseconds). */
export interface OffsetChange {
  readonly at: number;
  readonly before: number;
  readonly after: number;
}

/** A zone's offset over time. */
export interface Zone {
  readonly name: string;
  /** Milliseconds east of UTC. */
  offsetAt(instant: number): number;
  /** Changes in (from, to], in order. */
  changes(from: number, to: number): readonly OffsetChange[];
}

const utc: Zone = { name: "UTC", offsetAt: () => 0, changes: () => [] };
const second = 1_000;
/**
 * How far apart the offset is looked at. Two changes that undo each other within six hours would be missed; the IANA
 * data has none (the oracle test walks through all zones minute by minute).
 */
const strideMs = 6 * 3_600_000;
const mostRemembered = 8_192;

/** More than the IANA has: names differ in case too. */
const mostZones = 1_000;
const zones = new Map<string, Zone>();

/**
 * The zone of this IANA name.
 *
 * @throws UsageError BAD_TIMEZONE
 * @example
 * zoneOf("Europe/Berlin", "timezone").offsetAt(Date.UTC(2026, 6, 1)); // 7_200_000
 */
export function zoneOf(name: unknown, what: string): Zone {
  if (typeof name !== "string" || name === "" || name.length > 64) throw badZone(name, what);
  const known = zones.get(name);
  if (known !== undefined) return known;
  const zone = /^(UTC|Etc\/UTC)$/i.test(name) ? { ...utc, name } : loaded(name, what);
  if (zones.size >= mostZones) zones.clear();
  zones.set(name, zone);
  return zone;
}

function loaded(name: string, what: string): Zone {
  try {
    return new LoadedZone(name);
  } catch (cause) {
    throw badZone(name, what, cause);
  }
}

function badZone(name: unknown, what: string, cause?: unknown): UsageError {
  return new UsageError(
    "BAD_TIMEZONE",
    `${what} must be the name of an IANA time zone that this Node knows, such as "UTC" or "Europe/Berlin"; got ${shown(name)}.`,
    cause === undefined ? { details: { what } } : { details: { what }, cause },
  );
}

class LoadedZone implements Zone {
  readonly name: string;
  readonly #format: Intl.DateTimeFormat;
  /** Offsets at whole strides, and the change within each stride: asking Intl takes microseconds, and an occurrence asks often. */
  readonly #offsets = new Map<number, number>();
  readonly #changes = new Map<number, OffsetChange | null>();

  constructor(name: string) {
    this.name = name;
    this.#format = new Intl.DateTimeFormat("en-US", {
      timeZone: name,
      calendar: "gregory",
      numberingSystem: "latn",
      hourCycle: "h23",
      year: "numeric",
      month: "numeric",
      day: "numeric",
      hour: "numeric",
      minute: "numeric",
      second: "numeric",
    });
  }

  offsetAt(instant: number): number {
    const stride = Math.floor(instant / strideMs);
    const change = this.#changeIn(stride);
    if (change === null) return this.#atStride(stride);
    return instant < change.at ? change.before : change.after;
  }

  changes(from: number, to: number): readonly OffsetChange[] {
    const found: OffsetChange[] = [];
    for (let stride = Math.floor(from / strideMs); stride * strideMs < to; stride += 1) {
      const change = this.#changeIn(stride);
      if (change !== null && change.at > from && change.at <= to) found.push(change);
    }
    return found;
  }

  /** The change in (stride's start, its end]. */
  #changeIn(stride: number): OffsetChange | null {
    const known = this.#changes.get(stride);
    if (known !== undefined) return known;
    const [before, after] = [this.#atStride(stride), this.#atStride(stride + 1)];
    const change = before === after ? null : this.#bisect(stride * strideMs, before, after);
    if (this.#changes.size >= mostRemembered) this.#changes.clear();
    this.#changes.set(stride, change);
    return change;
  }

  #atStride(stride: number): number {
    const known = this.#offsets.get(stride);
    if (known !== undefined) return known;
    if (this.#offsets.size >= mostRemembered) this.#offsets.clear();
    const offset = this.#ask(stride * strideMs);
    this.#offsets.set(stride, offset);
    return offset;
  }

  #bisect(start: number, before: number, after: number): OffsetChange {
    let [from, to] = [start, start + strideMs];
    while (to - from > second) {
      const middle = from + Math.floor((to - from) / 2 / second) * second;
      if (this.#ask(middle) === before) from = middle;
      else to = middle;
    }
    return { at: to, before, after };
  }

  /** What the runtime's data says; `instant` is a whole second. */
  #ask(instant: number): number {
    const fields: Record<string, number> = {};
    for (const { type, value } of this.#format.formatToParts(instant)) fields[type] = Number(value);
    const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second: seconds = 0 } = fields;
    return Date.UTC(year, month - 1, day, hour, minute, seconds) - instant;
  }
}
