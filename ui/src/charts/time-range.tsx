// The time range of charts: the last hour, a longer range up to now, or a selected range. It is part of the address and
// kept between screens with charts (router.ts).
import type { ComponentChildren } from "preact";
import type { Series } from "../../../src/dashboard/api/contract.ts";
import { get } from "../data/api.ts";
import type { Lead } from "./brush.ts";
import { windowText } from "../kit/format.ts";
import { Icon } from "../kit/icons.tsx";
import { liveNow, now } from "../data/page-clock.ts";
import { go, href, params, path, setParams } from "../data/router.ts";
import { type Query, useQuery } from "../data/live-query.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const spans = [
  ["5m", "5 min", 5 * MINUTE],
  ["15m", "15 min", 15 * MINUTE],
  [null, "1 h", HOUR],
  ["6h", "6 h", 6 * HOUR],
  ["24h", "24 h", 24 * HOUR],
  ["7d", "7 d", 168 * HOUR],
] as const;
type Span = (typeof spans)[number];
const usual: Span = spans[2];

/** A selected range (`from`, `to`) or a duration up to now (`last`). */
function timeShown(): { from: number; to: number } | { last: Span } {
  const [from, to] = ["from", "to"].map((name) => Number(params.value.get(name) ?? Number.NaN));
  if (from !== undefined && to !== undefined && to > from) return { from, to };
  const last = params.value.get("last");
  return { last: spans.find(([name]) => name === last) ?? usual };
}

/** Data of the chosen range, requested again when it changes, and every step if the range ends now. */
export function useOverTime<T>(
  address: string,
  { queue = null, everyMs = null }: { queue?: string | null; everyMs?: number | null } = {},
): Query<T> {
  const time = timeShown();
  const key = "last" in time ? time.last[1] : `${time.from} ${time.to}`;
  const tick = everyMs === null ? "" : Math.floor(liveNow.value / everyMs);
  return useQuery(
    `${address} ${queue ?? ""} ${key} ${tick}`,
    (signal) => {
      // By the database's clock. The server defines the last hour.
      const last = "last" in time ? time.last : null;
      const ago =
        "from" in time
          ? time
          : { from: last === null || last[0] === null ? null : Math.floor(now.peek() - last[2]), to: null };
      return get<T>(address, { ...(queue === null ? {} : { queue }), ...ago }, signal);
    },
    everyMs === null ? { sign: "overview" } : {},
  );
}

/** The chosen range in words. */
export function timeNote(): string {
  const time = timeShown();
  return "last" in time ? `last ${time.last[1]}` : windowText(`${time.from}..${time.to - 1}`);
}

/** Chooses the range. `more`: links shown beside a selected range. */
export function TimePicker({ more }: { more?: (time: { from: number; to: number }) => ComponentChildren }) {
  const time = timeShown();
  return (
    <div class="row tight span">
      <nav class="spans" aria-label="Time shown">
        {spans.map((one) => (
          <a
            key={one[1]}
            href={href(`${path.value}${one[0] === null ? "" : `?last=${one[0]}`}`)}
            aria-current={"last" in time && time.last === one ? "true" : undefined}
          >
            {one[1]}
          </a>
        ))}
      </nav>
      {"from" in time && (
        <>
          <span class="chip">
            <b>{timeNote()}</b>
            <button
              type="button"
              aria-label="Reset to the last hour"
              onClick={() => setParams({ from: null, to: null })}
            >
              <Icon name="close" size={12} />
            </button>
          </span>
          {more?.(time)}
        </>
      )}
    </div>
  );
}

/** Dragging over one chart selects the range for all. */
function showRange({ at, stepMs }: Pick<Series, "at" | "stepMs">): Lead["range"] {
  return (from, to) =>
    setParams({ from: String(at[from] ?? 0), to: String((at[to] ?? 0) + stepMs), last: null });
}

/** A range is shown alone; a point opens the jobs that ended then. */
export function leadsOf(
  steps: Pick<Series, "at" | "stepMs">,
  of: (index: number, line: number | null) => { readonly queue: string | null; readonly more: string },
): Lead {
  return {
    range: showRange(steps),
    point: (index, line) => {
      const { queue, more } = of(index, line);
      const from = steps.at[index] ?? 0;
      go(jobsOf({ from, to: from + steps.stepMs }, queue, more));
    },
  };
}

/** Jobs that ended within a range. */
export function jobsOf(
  { from, to }: { from: number; to: number },
  queue: string | null,
  more: string,
): string {
  const of = queue === null ? "" : `&queue=${encodeURIComponent(queue)}`;
  return `/jobs?ended=${from}..${to - 1}${of}${more === "" ? "" : `&${more}`}`;
}

/** Completed steps only: a partial one would look like a drop to zero. */
export function stepsOver({ at, stepMs }: Pick<Series, "at" | "stepMs">, now: number): number {
  return at.filter((ms) => ms + stepMs <= now).length;
}
