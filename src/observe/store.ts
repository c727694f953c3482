/** The contracts of series, event log, job log and failures by cause as rows. series-rows.ts and failure-rows.ts keep them. */

/** What one worker counted of one name in one queue in one minute. */
export interface MetricRow {
  /** The minute's first millisecond. */
  readonly minute: number;
  readonly queue: string;
  readonly name: string;
  readonly worker: string;
  readonly done: number;
  readonly failed: number;
  readonly dead: number;
  readonly cancelled: number;
  readonly throttled: number;
  readonly released: number;
  readonly lost: number;
  /** Histograms of how long attempts ran and waited, see values/histogram.ts. */
  readonly ran: string;
  readonly waited: string;
}

/** Which minutes. Null: all. */
export interface MetricQuery {
  readonly since: number;
  readonly until: number;
  readonly queues: readonly string[] | null;
  readonly names: readonly string[] | null;
  /**
   * Where queues (and names) need not be told apart, added up: "all", one row a minute for everything, or "hours", one row an
   * hour for each kind of `names` where the hour is over, and rows by the minute else. Default: every row.
   */
  readonly sums?: "all" | "hours";
}

/** What a queue's workers did in one minute. */
export interface QueueMinute {
  readonly minute: number;
  readonly queue: string;
  readonly done: number;
  readonly failed: number;
  readonly dead: number;
}

/** One measured value of one minute. */
export interface GaugeRow {
  readonly minute: number;
  /** A worker's id, "database", "queues", or `queue:` and a name. */
  readonly source: string;
  readonly name: string;
  readonly value: number;
}

/**
 * Values of one step, added up: of a queue's ready jobs (`queue:mail`, `queues` for all), over all workers (no source), or of one
 * source.
 */
export interface LoadRow {
  readonly at: number;
  readonly source: string;
  readonly name: string;
  readonly sum: number;
  /** In how many of the step's minutes they were measured. */
  readonly minutes: number;
}

/** Which values. Null: all. */
export interface GaugeQuery {
  readonly since: number;
  readonly until: number;
  readonly sources: readonly string[] | null;
  readonly names: readonly string[] | null;
}

/** One line of the event log. */
export interface EventRow {
  readonly id: string;
  readonly at: number;
  readonly event: string;
  readonly job: string | null;
  readonly name: string | null;
  readonly queue: string | null;
  readonly attempt: number | null;
  readonly worker: string | null;
  /** JSON text: what else the event says. */
  readonly detail: string | null;
}

/** One line of the job log. */
export interface LogLineRow {
  readonly id: string;
  readonly job: string;
  readonly at: number;
  readonly level: string;
  readonly attempt: number;
  /** JSON text. */
  readonly message: string;
  /** JSON text. */
  readonly details: string | null;
}

/** Which events. Null: all. */
export interface EventQuery {
  readonly job: string | null;
  readonly events: readonly string[] | null;
  readonly queues: readonly string[] | null;
  readonly names: readonly string[] | null;
  readonly since: number;
  readonly until: number;
  readonly limit: number;
  readonly cursor: string | null;
}

/** A cause of failures, as a worker has met it since it last wrote. */
export interface FailureGroupRow {
  /** See jobs/fingerprint.ts. */
  readonly group: string;
  readonly name: string;
  readonly firstAt: number;
  readonly lastAt: number;
  /** The latest job that failed so. */
  readonly sample: string;
  /** JSON text of a string. */
  readonly message: string;
}

/** How often one worker met a cause in one minute. */
export interface FailureRow {
  readonly group: string;
  readonly at: number;
  readonly queue: string;
  /** Of the definition that ran. */
  readonly version: number;
  readonly worker: string;
  readonly n: number;
}

/** Series by the minute, the event log and the job log. */
export interface SeriesStore {
  /** One worker's minutes, each whole: writing the same minute again replaces it. */
  putMetrics(rows: readonly MetricRow[]): Promise<void>;
  metrics(query: MetricQuery): Promise<MetricRow[]>;
  /** Counts of every queue by the minute, in order of time. */
  queueMinutes(since: number, until: number): Promise<QueueMinute[]>;
  /** Adds the workers of each minute in this range up to one row each. Nobody writes to such a minute any more. */
  compact(since: number, until: number): Promise<number>;
  /** Measured values, one for each (minute, source, name). */
  putGauges(rows: readonly GaugeRow[]): Promise<void>;
  gauges(query: GaugeQuery): Promise<GaugeRow[]>;
  /** Ready jobs by queue, and slots used and there over all workers, added up by steps. */
  load(query: { since: number; until: number; stepMs: number }): Promise<LoadRow[]>;
  /** Measured values of these names by source, added up by steps. */
  gaugeSteps(query: {
    since: number;
    until: number;
    stepMs: number;
    names: readonly string[];
  }): Promise<LoadRow[]>;
  /** The event log; the same id again is passed over. */
  putEvents(rows: readonly EventRow[]): Promise<void>;
  /** Newest first. */
  events(query: EventQuery): Promise<EventRow[]>;
  /** The job log: lines of jobs that are there, of each job the newest `most`; the same id again is passed over. */
  putLogLines(rows: readonly LogLineRow[], most: number): Promise<void>;
  /** The newest lines of a job, oldest first. */
  logLines(job: string, limit: number): Promise<LogLineRow[]>;
  /** Forgets minutes and events that are older (epoch milliseconds), and log lines whose job is gone. */
  forget(before: { readonly metrics: number; readonly events: number }): Promise<void>;
}

/** Failures by cause. Operators' views of them are read by `insight`. */
export interface FailureStore {
  /** One worker's failures by cause, each minute whole: writing the same minute again replaces it. */
  put(groups: readonly FailureGroupRow[], rows: readonly FailureRow[]): Promise<void>;
  /** Adds the minutes and workers of each hour in this range up. Nobody writes to such an hour any more. */
  compact(since: number, until: number): Promise<number>;
  /** Forgets failures that are older (epoch milliseconds). */
  forget(before: number): Promise<void>;
}
