/**
 * Series over time, the event log and the job log: written in batches by those who counted or heard, read by range.
 *
 * Invariant: no statement here changes a job, and none walks over jobs; what is counted is counted in memory by the workers.
 * Not here: what is counted and kept (recorder.ts, event-log.ts, job-log.ts), percentiles (values/histogram.ts).
 */
import { Histogram } from "../values/histogram.ts";
import { idAt } from "../values/id.ts";
import type {
  EventQuery,
  EventRow,
  GaugeQuery,
  GaugeRow,
  LoadRow,
  LogLineRow,
  MetricQuery,
  MetricRow,
  QueueMinute,
  SeriesStore,
} from "./store.ts";
import type { Row, RowList, Script } from "../storage/catalogue.ts";
import type { Driver } from "../storage/driver.ts";
import { maybeNumber, maybeText, number, text } from "../jobs/rows.ts";

/** Stands for all workers in minutes that are long over, and for all kinds in sums. */
const TOGETHER = "";
const HOUR = 3_600_000;
/** How far a line's id may be from its instant. */
const momentMs = 1_000;

export class Series implements SeriesStore {
  readonly #driver: Driver;

  constructor(driver: Driver) {
    this.#driver = driver;
  }

  async putMetrics(rows: readonly MetricRow[]): Promise<void> {
    if (rows.length > 0)
      await this.#driver.write({ name: "putMetrics", params: { rows: rows.map((row) => ({ ...row })) } });
  }

  async metrics(query: MetricQuery): Promise<MetricRow[]> {
    const { since, until, queues, names, sums } = query;
    if (sums !== undefined && queues === null) return this.#sums(sums, query);
    const rows = await this.#driver.read({ name: "metrics", params: { since, until, queues, names } });
    return rows.map(metricRow);
  }

  /** Hours that were added up from there; what is left of the range from the minutes themselves. */
  async #sums(sums: "all" | "hours", { since, until, names }: MetricQuery): Promise<MetricRow[]> {
    const range = { since, until };
    // Every hour that was added up has a minute of everything: an hour without has not been, or nothing happened in it.
    const hours = await this.#driver.read({ name: "summedHours", params: range });
    const over = new Set(hours.map((row) => number(row, "hour")));
    // The last hour may be asked for in part, and a name's row is of the whole of it.
    if (sums === "hours") over.delete(until - (until % HOUR));
    const of = sums === "all" ? [TOGETHER] : names;
    const read = await this.#driver.read({ name: "metricSums", params: { ...range, names: of } });
    const rows = read.map(metricRow).filter(({ minute }) => over.has(minute - (minute % HOUR)));
    const statement = sums === "all" ? "metricsTogether" : "metrics";
    for (const part of rangesWithout(over, since, until)) {
      const params = sums === "all" ? part : { ...part, queues: null, names };
      rows.push(...(await this.#driver.read({ name: statement, params })).map(metricRow));
    }
    return rows;
  }

  async queueMinutes(since: number, until: number): Promise<QueueMinute[]> {
    const rows = await this.#driver.read({ name: "queueMinutes", params: { since, until } });
    return rows.map((row) => ({
      minute: number(row, "minute"),
      queue: text(row, "queue"),
      done: number(row, "done"),
      failed: number(row, "failed"),
      dead: number(row, "dead"),
    }));
  }

  /** In one transaction: what is read, written and dropped is one state. Answers how many rows went into others. */
  async compact(since: number, until: number): Promise<number> {
    return this.#driver.transaction("compactMetrics", function* (): Script<number> {
      const range = { since, until };
      const found = yield { name: "metrics", params: { ...range, queues: null, names: null } };
      const rows = found.map(metricRow);
      const single = rows.filter(({ worker }) => worker !== TOGETHER).length;
      if (single === 0) return 0;
      yield { name: "putMetrics", params: { rows: together(rows).map((row) => ({ ...row })) } };
      yield { name: "putMetricSums", params: { rows: sumsOf(rows) } };
      yield { name: "dropMetrics", params: range };
      return single;
    });
  }

  async putGauges(rows: readonly GaugeRow[]): Promise<void> {
    if (rows.length > 0)
      await this.#driver.write({ name: "putGauges", params: { rows: rows.map((row) => ({ ...row })) } });
  }

  async gauges({ since, until, sources, names }: GaugeQuery): Promise<GaugeRow[]> {
    const params = { since, until, sources };
    const rows = await this.#driver.read(
      names === null ? { name: "gauges", params } : { name: "namedGauges", params: { ...params, names } },
    );
    return rows.map((row) => ({
      minute: number(row, "minute"),
      source: text(row, "source"),
      name: text(row, "name"),
      value: number(row, "value"),
    }));
  }

  async load({ since, until, stepMs }: Parameters<SeriesStore["load"]>[0]): Promise<LoadRow[]> {
    const minutes = minutesOf(since, until, stepMs);
    const rows = await this.#driver.read({ name: "load", params: { minutes, step: stepMs } });
    return rows.map(stepRow);
  }

  async gaugeSteps({
    since,
    until,
    stepMs,
    names,
  }: Parameters<SeriesStore["gaugeSteps"]>[0]): Promise<LoadRow[]> {
    const minutes = minutesOf(since, until, stepMs);
    const rows = await this.#driver.read({ name: "gaugeSteps", params: { names, minutes, step: stepMs } });
    return rows.map(stepRow);
  }

  async putEvents(rows: readonly EventRow[]): Promise<void> {
    if (rows.length > 0)
      await this.#driver.write({ name: "putEvents", params: { rows: rows.map((row) => ({ ...row })) } });
  }

  async events(query: EventQuery): Promise<EventRow[]> {
    // An id carries its instant (within a moment): without this bound a look at the last minute would walk through all lines.
    const from = idAt(Math.max(0, query.since - momentMs));
    return (await this.#driver.read({ name: "events", params: { ...query, from } })).map(eventRow);
  }

  async putLogLines(rows: readonly LogLineRow[], most: number): Promise<void> {
    if (rows.length === 0) return;
    const jobs = [...new Set(rows.map(({ job }) => job))].sort();
    await this.#driver.transaction("putLogLines", function* (): Script<void> {
      yield { name: "putLogLines", params: { rows: rows.map((row) => ({ ...row })) } };
      yield { name: "trimLogLines", params: { rows: jobs.map((job) => ({ job })), skip: most - 1 } };
    });
  }

  async logLines(job: string, limit: number): Promise<LogLineRow[]> {
    const rows = await this.#driver.read({ name: "logLines", params: { job, limit } });
    return rows.map(logLineRow).reverse();
  }

  async forget(before: { readonly metrics: number; readonly events: number }): Promise<void> {
    const params = {
      metricsBefore: Math.max(0, before.metrics),
      eventsBefore: idAt(Math.max(0, before.events)),
    };
    await this.#driver.write({ name: "deleteOldSeries", params });
  }
}

function stepRow(row: Row): LoadRow {
  return {
    at: number(row, "at"),
    source: text(row, "source"),
    name: text(row, "name"),
    sum: number(row, "sum"),
    minutes: number(row, "minutes"),
  };
}

function metricRow(row: Row): MetricRow {
  return {
    minute: number(row, "minute"),
    queue: text(row, "queue"),
    name: text(row, "name"),
    worker: text(row, "worker"),
    done: number(row, "done"),
    failed: number(row, "failed"),
    dead: number(row, "dead"),
    cancelled: number(row, "cancelled"),
    throttled: number(row, "throttled"),
    released: number(row, "released"),
    lost: number(row, "lost"),
    ran: text(row, "ran"),
    waited: text(row, "waited"),
  };
}

/** The parts of a time that lie in none of these hours. Pure. */
function rangesWithout(
  hours: ReadonlySet<number>,
  since: number,
  until: number,
): { since: number; until: number }[] {
  const ranges: { since: number; until: number }[] = [];
  for (let from = since; from < until;) {
    const hour = from - (from % HOUR);
    const to = Math.min(hour + HOUR, until);
    const last = ranges.at(-1);
    if (!hours.has(hour)) {
      if (last?.until === from) last.until = to;
      else ranges.push({ since: from, until: to });
    }
    from = to;
  }
  return ranges;
}

/** What an hour comes to: of everything by the minute, of each name as a whole. Pure. */
function sumsOf(rows: readonly MetricRow[]): RowList {
  const minutes = together(rows.map((row) => ({ ...row, queue: TOGETHER, name: TOGETHER })));
  const byName = together(
    rows.map((row) => ({ ...row, queue: TOGETHER, minute: row.minute - (row.minute % HOUR) })),
  );
  return [...minutes, ...byName].map(({ queue: _queue, worker: _worker, ...row }) => row);
}

/** One row for each (minute, queue, name). Pure. */
function together(rows: readonly MetricRow[]): MetricRow[] {
  const groups = Map.groupBy(rows, ({ minute, queue, name }) => JSON.stringify([minute, queue, name]));
  return [...groups.values()].map((group) => {
    const [first] = group as [MetricRow];
    const ran = new Histogram();
    const waited = new Histogram();
    for (const row of group) {
      ran.mergeText(row.ran);
      waited.mergeText(row.waited);
    }
    const sum = (count: (row: MetricRow) => number): number =>
      group.reduce((total, row) => total + count(row), 0);
    return {
      minute: first.minute,
      queue: first.queue,
      name: first.name,
      worker: TOGETHER,
      done: sum(({ done }) => done),
      failed: sum(({ failed }) => failed),
      dead: sum(({ dead }) => dead),
      cancelled: sum(({ cancelled }) => cancelled),
      throttled: sum(({ throttled }) => throttled),
      released: sum(({ released }) => released),
      lost: sum(({ lost }) => lost),
      ran: ran.encode(),
      waited: waited.encode(),
    };
  });
}

function logLineRow(row: Row): LogLineRow {
  return {
    id: text(row, "id"),
    job: text(row, "job"),
    at: number(row, "at"),
    level: text(row, "level"),
    attempt: number(row, "attempt"),
    message: text(row, "message"),
    details: maybeText(row, "details"),
  };
}

function eventRow(row: Row): EventRow {
  return {
    id: text(row, "id"),
    at: number(row, "at"),
    event: text(row, "event"),
    job: maybeText(row, "job"),
    name: maybeText(row, "name"),
    queue: maybeText(row, "queue"),
    attempt: maybeNumber(row, "attempt"),
    worker: maybeText(row, "worker"),
    detail: maybeText(row, "detail"),
  };
}

const MINUTE_MS = 60_000;
const MOST_MINUTES = 400;

/**
 * The minutes that steps are made of: all of a few hours, of a longer time some of each step, spread over it. A week of
 * twenty queues and a few workers is half a million rows.
 */
function minutesOf(since: number, until: number, stepMs: number): number[] {
  const steps = Math.max(1, Math.ceil((until - since) / stepMs));
  const perStep = Math.min(stepMs / MINUTE_MS, Math.max(1, Math.floor(MOST_MINUTES / steps)));
  const found: number[] = [];
  for (let step = since; step < until; step += stepMs)
    for (let n = 0; n < perStep; n += 1) {
      const minute = step + Math.floor((n * stepMs) / perStep / MINUTE_MS) * MINUTE_MS;
      if (minute < until) found.push(minute);
    }
  return found;
}
