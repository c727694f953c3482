/**
 * `hf.metrics`: what was done, how long it took and waited, and how processes and database were, minute by minute.
 *
 * Invariants: nothing here looks at jobs: the minutes were counted by the workers and written down (recorder.ts);
 * percentiles of a longer step or of several names come from added histograms, never from other percentiles.
 * Not here: Prometheus's text (prometheus/), the event log (event-log.ts).
 */
import type { Clock } from "../clock.ts";
import { UsageError } from "../errors.ts";
import { type Duration, durationMs, instantMs } from "../values/duration.ts";
import { Histogram } from "../values/histogram.ts";
import { checkOptions } from "../values/options.ts";
import type { Retry } from "../storage/retry-calls.ts";
import type { Store } from "../storage/store.ts";
import type { LoadRow, MetricRow } from "./store.ts";
import { type Cells, OUTCOMES, type CountedOutcome } from "./cells.ts";

/** How long attempts took, or waited, in milliseconds. Null where there was none. */
export interface Durations {
  readonly count: number;
  readonly mean: number | null;
  readonly p50: number | null;
  readonly p95: number | null;
  readonly p99: number | null;
}

/** One step of a series. */
export interface MetricPoint {
  /** The step's first instant. */
  readonly at: Date;
  readonly done: number;
  /** Attempts that failed and will run again. */
  readonly failed: number;
  readonly dead: number;
  readonly cancelled: number;
  readonly throttled: number;
  readonly released: number;
  /** Attempts whose lease had passed. */
  readonly lost: number;
  /** From start to end of the attempt. */
  readonly ran: Durations;
  /** From the instant at which the job was due to its claim. */
  readonly waited: Durations;
}

/** Points in order of time; a step in which nothing happened has none. */
export interface MetricSeries {
  /** Null: of every queue together. */
  readonly queue: string | null;
  /** Null: of every name together. */
  readonly name: string | null;
  readonly points: readonly MetricPoint[];
}

/**
 * What `hf.metrics.series` takes.
 *
 * @example
 * await hf.metrics.series({ queue: "mail", since: new Date(Date.now() - 3_600_000), step: "5m" });
 */
export interface SeriesQuery {
  readonly queue?: string | readonly string[] | undefined;
  readonly name?: string | readonly string[] | undefined;
  /** Default: an hour ago. */
  readonly since?: Date | number | undefined;
  /** Default: now. */
  readonly until?: Date | number | undefined;
  /** Length of a point: whole minutes, default "1m". */
  readonly step?: Duration | undefined;
  /** One series for each queue, each name, or each kind of each queue. Default: one for all. */
  readonly by?: "all" | "queue" | "name" | "job-type" | undefined;
}

/** What `hf.metrics.gauges` takes. */
export interface GaugesQuery {
  /** Worker ids, "database", "queues" (all of them together) or `queue:` and a name. Default: all. */
  readonly source?: string | readonly string[] | undefined;
  /** cpu, rss, loopDelayMs, running, slots, dbReadMs, dbWriteMs, poolUsed, poolIdle, poolWaiting, hostLoad, hostFreeBytes; of the database: sizeBytes, walBytes, deadRows, liveRows, connections, oldestTransactionMs, diskFreeBytes; of all queues and of the 20 fullest: ready. */
  readonly name?: string | readonly string[] | undefined;
  readonly since?: Date | number | undefined;
  readonly until?: Date | number | undefined;
}

/** One measured value over time. */
export interface GaugeSeries {
  readonly source: string;
  readonly name: string;
  readonly points: readonly { readonly at: Date; readonly value: number }[];
}

/** What `hf.metrics.load` takes. */
export interface LoadQuery {
  /** Default: an hour ago. */
  readonly since?: Date | number | undefined;
  /** Default: now. */
  readonly until?: Date | number | undefined;
  /** Length of a point: whole minutes, default "1m". */
  readonly step?: Duration | undefined;
}

/**
 * What waited and how many slots were used, measured once a minute; of longer steps the mean (over many hours, of a few of its
 * minutes). Null: nobody measured it.
 */
export interface LoadPoint {
  readonly at: Date;
  /** Ready jobs of all queues. */
  readonly ready: number | null;
  /** Of the 20 fullest queues of each minute. What is missing here had none, or is in `ready` alone. */
  readonly queues: Readonly<Record<string, number>>;
  /** Slots of all workers that had a job. */
  readonly running: number | null;
  /** Slots of all workers. */
  readonly slots: number | null;
}

/** What this process has counted of one name in one queue since it started. */
export interface NameTotals {
  readonly queue: string;
  readonly name: string;
  readonly counts: Readonly<Record<CountedOutcome, number>>;
  readonly ran: Histogram;
  readonly waited: Histogram;
}

/** What `hf.metrics` needs of the client. */
export interface MetricsDeps {
  readonly store: Store;
  readonly retry: Retry;
  readonly clock: Clock;
  readonly checkOpen: () => void;
  readonly totals: () => Cells;
}

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;

/** `hf.metrics`. */
export class Metrics {
  readonly #deps: MetricsDeps;

  constructor(deps: MetricsDeps) {
    this.#deps = deps;
  }

  /**
   * Counts and percentiles over time, from every worker of every process.
   *
   * @example
   * const [all] = await hf.metrics.series({ queue: "mail", since: Date.now() - 3_600_000 });
   * console.log(all?.points.at(-1)?.ran.p95);
   */
  async series(query: SeriesQuery = {}): Promise<MetricSeries[]> {
    this.#deps.checkOpen();
    const given = checkOptions(
      query,
      ["queue", "name", "since", "until", "step", "by"],
      "metrics.series",
    ) as SeriesQuery;
    const stepMs = stepOf(given.step);
    const by = given.by ?? "all";
    if (!["all", "queue", "name", "job-type"].includes(by))
      throw new UsageError("BAD_OPTION", `by must be "all", "queue", "name" or "job-type".`, {
        details: { option: "by" },
      });
    const range = this.#range(given, stepMs);
    const { store, retry } = this.#deps;
    const [queues, names] = [listOf(given.queue), listOf(given.name)];
    const sums = sumsFor(by, stepMs, queues, names);
    const rows = await retry.repeatable(() =>
      store.series.metrics({ ...range, queues, names, ...(sums === null ? {} : { sums }) }),
    );
    return grouped(rows, stepMs, by);
  }

  /**
   * How worker processes and the database were: CPU, memory, event-loop delay, sizes, one value a minute.
   *
   * @example
   * for (const { source, points } of await hf.metrics.gauges({ name: "rss" })) console.log(source, points.at(-1)?.value);
   */
  async gauges(query: GaugesQuery = {}): Promise<GaugeSeries[]> {
    this.#deps.checkOpen();
    const given = checkOptions(query, ["source", "name", "since", "until"], "metrics.gauges") as GaugesQuery;
    const range = this.#range(given, minuteMs);
    const { store, retry } = this.#deps;
    const rows = await retry.repeatable(() =>
      store.series.gauges({ ...range, sources: listOf(given.source), names: listOf(given.name) }),
    );
    const series = new Map<string, { source: string; name: string; points: { at: Date; value: number }[] }>();
    for (const { minute, source, name, value } of rows) {
      const key = JSON.stringify([source, name]);
      let one = series.get(key);
      if (one === undefined) series.set(key, (one = { source, name, points: [] }));
      one.points.push({ at: new Date(minute), value });
    }
    return [...series.values()];
  }

  /**
   * What waited in the queues, and how many of the workers' slots were used, over time.
   *
   * @example
   * for (const { at, ready, running, slots } of await hf.metrics.load()) console.log(at, ready, `${running} of ${slots}`);
   */
  async load(query: LoadQuery = {}): Promise<LoadPoint[]> {
    this.#deps.checkOpen();
    const given = checkOptions(query, ["since", "until", "step"], "metrics.load") as LoadQuery;
    const stepMs = stepOf(given.step);
    const range = this.#range(given, stepMs);
    const { store, retry } = this.#deps;
    return loadPoints(await retry.repeatable(() => store.series.load({ ...range, stepMs })));
  }

  /**
   * What the workers of this process have counted since it started: for exporters that keep their own series.
   *
   * @example
   * for (const { queue, name, counts } of hf.metrics.totals()) console.log(queue, name, counts.done);
   */
  totals(): NameTotals[] {
    return [...this.#deps.totals()].map(({ queue, name, counts, ran, waited }) => ({
      queue,
      name,
      counts,
      ran,
      waited,
    }));
  }

  #range(
    given: { readonly since?: Date | number | undefined; readonly until?: Date | number | undefined },
    stepMs: number,
  ): { since: number; until: number } {
    const now = this.#deps.clock.now();
    const until = given.until === undefined ? now + minuteMs : instantMs(given.until, "until");
    const since = given.since === undefined ? now - hourMs : instantMs(given.since, "since");
    return { since: Math.floor(since / stepMs) * stepMs, until };
  }
}

/** One point for each step of which something is known. Pure. */
function loadPoints(rows: readonly LoadRow[]): LoadPoint[] {
  return [...Map.groupBy(rows, ({ at }) => at)].map(([at, own]) => {
    const found = (name: string, source: string) =>
      own.find((row) => row.name === name && row.source === source);
    const mean = (name: string, source: string): number | null => {
      const row = found(name, source);
      return row === undefined ? null : rounded(row.sum / row.minutes);
    };
    // A queue without a row in a minute in which all were measured had nothing to tell then.
    const minutes = found("ready", "queues")?.minutes ?? 1;
    const queues = own.filter(({ source }) => source.startsWith(QUEUE));
    return {
      at: new Date(at),
      ready: mean("ready", "queues"),
      queues: Object.fromEntries(
        queues.map(({ source, sum }) => [source.slice(QUEUE.length), rounded(sum / minutes)]),
      ),
      running: mean("running", ""),
      slots: mean("slots", ""),
    };
  });
}

const QUEUE = "queue:";

function rounded(value: number): number {
  return Math.round(value * 10) / 10;
}

function stepOf(step: Duration | undefined): number {
  const ms = step === undefined ? minuteMs : durationMs(step, "step");
  if (ms >= minuteMs && ms % minuteMs === 0) return ms;
  throw new UsageError("BAD_OPTION", `step must be whole minutes, such as "5m".`, {
    details: { option: "step" },
  });
}

function listOf(value: string | readonly string[] | undefined): readonly string[] | null {
  if (value === undefined) return null;
  return typeof value === "string" ? [value] : value;
}

/** Whether rows that are added up already can answer. Pure. */
function sumsFor(
  by: NonNullable<SeriesQuery["by"]>,
  stepMs: number,
  queues: readonly string[] | null,
  names: readonly string[] | null,
): "all" | "hours" | null {
  if (queues !== null) return null;
  if (by === "all" && names === null) return "all";
  return (by === "all" || by === "name") && names !== null && stepMs % hourMs === 0 ? "hours" : null;
}

/** Adds up rows into points of `stepMs`. Pure. */
function grouped(
  rows: readonly MetricRow[],
  stepMs: number,
  by: NonNullable<SeriesQuery["by"]>,
): MetricSeries[] {
  const all = new Map<
    string,
    { queue: string | null; name: string | null; steps: Map<number, ReturnType<typeof emptySum>> }
  >();
  for (const row of rows) {
    const queue = by === "queue" || by === "job-type" ? row.queue : null;
    const name = by === "name" || by === "job-type" ? row.name : null;
    const key = JSON.stringify([queue, name]);
    let one = all.get(key);
    if (one === undefined) all.set(key, (one = { queue, name, steps: new Map() }));
    const at = Math.floor(row.minute / stepMs) * stepMs;
    let sum = one.steps.get(at);
    if (sum === undefined) one.steps.set(at, (sum = emptySum()));
    for (const outcome of OUTCOMES) sum.counts[outcome] += row[outcome];
    sum.ran.mergeText(row.ran);
    sum.waited.mergeText(row.waited);
  }
  return [...all.values()].map(({ queue, name, steps }) => ({
    queue,
    name,
    points: [...steps]
      .sort(([a], [b]) => a - b)
      .map(([at, { counts, ran, waited }]) => ({
        at: new Date(at),
        ...counts,
        ran: durations(ran),
        waited: durations(waited),
      })),
  }));
}

function emptySum(): { counts: Record<CountedOutcome, number>; ran: Histogram; waited: Histogram } {
  const counts = { done: 0, failed: 0, dead: 0, cancelled: 0, throttled: 0, released: 0, lost: 0 };
  return { counts, ran: new Histogram(), waited: new Histogram() };
}

function durations(histogram: Histogram): Durations {
  const { count, sumMs } = histogram;
  return {
    count,
    mean: count === 0 ? null : Number((sumMs / count).toPrecision(4)),
    p50: histogram.percentile(0.5),
    p95: histogram.percentile(0.95),
    p99: histogram.percentile(0.99),
  };
}
