/**
 * Series over time and the event log: written in batches by those who counted, read by range.
 *
 * Invariant: no statement here touches the tables of jobs; what is counted is counted in memory by the workers.
 * Not here: what is counted (recorder.ts, event-log.ts), percentiles (policy/histogram.ts).
 */
import { idAt } from "../policy/id.ts";
import type { EventQuery, EventRow, GaugeQuery, GaugeRow, MetricQuery, MetricRow } from "../store.ts";
import type { Row } from "./catalogue.ts";
import type { Driver } from "./driver.ts";
import { maybeNumber, maybeText, number, text } from "./rows.ts";

export class Series {
  readonly #driver: Driver;

  constructor(driver: Driver) {
    this.#driver = driver;
  }

  async putMetrics(rows: readonly MetricRow[]): Promise<void> {
    if (rows.length > 0)
      await this.#driver.write({ name: "putMetrics", params: { rows: rows.map((row) => ({ ...row })) } });
  }

  async metrics({ since, until, queues, names }: MetricQuery): Promise<MetricRow[]> {
    const rows = await this.#driver.read({ name: "metrics", params: { since, until, queues, names } });
    return rows.map(metricRow);
  }

  async putGauges(rows: readonly GaugeRow[]): Promise<void> {
    if (rows.length > 0)
      await this.#driver.write({ name: "putGauges", params: { rows: rows.map((row) => ({ ...row })) } });
  }

  async gauges({ since, until, sources, names }: GaugeQuery): Promise<GaugeRow[]> {
    const rows = await this.#driver.read({ name: "gauges", params: { since, until, sources, names } });
    return rows.map((row) => ({
      minute: number(row, "minute"),
      source: text(row, "source"),
      name: text(row, "name"),
      value: number(row, "value"),
    }));
  }

  async putEvents(rows: readonly EventRow[]): Promise<void> {
    if (rows.length > 0)
      await this.#driver.write({ name: "putEvents", params: { rows: rows.map((row) => ({ ...row })) } });
  }

  async events(query: EventQuery): Promise<EventRow[]> {
    return (await this.#driver.read({ name: "events", params: { ...query } })).map(eventRow);
  }

  async forget(before: { readonly metrics: number; readonly events: number }): Promise<void> {
    const params = {
      metricsBefore: Math.max(0, before.metrics),
      eventsBefore: idAt(Math.max(0, before.events)),
    };
    await this.#driver.write({ name: "forgetSeries", params });
  }
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
