/**
 * The metrics and their text, exposition format 0.0.4.
 *
 * Invariants: label values are escaped (backslash, quote, newline); each family is told once, with its type, all its
 * samples together; a database that is away leaves the cluster's gauges out and says `holdfast_up 0`, and the counters
 * of this process are there all the same.
 */
import type { Holdfast, WorkerState } from "../index.ts";
import type { NameTotals } from "../observe/metrics.ts";
import type { Histogram } from "../values/histogram.ts";
import type { QueueState } from "../limits/store.ts";

/** What `prometheus` takes besides the client. */
export interface PrometheusOptions {
  /** In front of every name; default "holdfast". */
  readonly prefix?: string | undefined;
  /** Upper bounds of the histograms' buckets, in seconds. */
  readonly buckets?: readonly number[] | undefined;
  /**
   * Counts queues to the end: at a million waiting jobs that takes seconds with every scrape. Default: a name's jobs are
   * counted to 50,000, and `queue_depth_capped` is 1 where there may be more.
   */
  readonly exact?: boolean | undefined;
}

/** Gives the text. */
export interface Prometheus {
  /** For the response's content-type. */
  readonly contentType: string;
  /** All metrics as they are now. Never rejects. */
  text(): Promise<string>;
}

type Labels = Readonly<Record<string, string>>;
interface Sample {
  readonly suffix?: string;
  readonly labels: Labels;
  readonly value: number;
}
interface Family {
  readonly name: string;
  readonly type: "gauge" | "counter" | "histogram";
  readonly help: string;
  readonly samples: readonly Sample[];
}

/** So far the jobs of a kind are counted. */
const mostCounted = 50_000;
const defaultBuckets: readonly number[] = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600,
];

/**
 * Metrics of a client, for whichever HTTP server you have.
 *
 * @example
 * const metrics = prometheus(hf);
 * createServer(async (_, response) => {
 *   response.writeHead(200, { "content-type": metrics.contentType }).end(await metrics.text());
 * }).listen(9464);
 */
export function prometheus(hf: Holdfast, options: PrometheusOptions = {}): Prometheus {
  const prefix = options.prefix ?? "holdfast";
  const buckets = [...(options.buckets ?? defaultBuckets)].sort((a, b) => a - b);
  return {
    contentType: "text/plain; version=0.0.4; charset=utf-8",
    async text() {
      const cluster = await clusterFamilies(hf, options.exact ?? false);
      return render(prefix, [...cluster, ...processFamilies(hf, buckets)]);
    },
  };
}

async function clusterFamilies(hf: Holdfast, exact: boolean): Promise<Family[]> {
  try {
    const [queues, workers, holds] = await Promise.all([
      hf.queues.list(exact ? {} : { upTo: mostCounted }),
      hf.workers.list(),
      hf.holds.list(),
    ]);
    return [
      { name: "up", type: "gauge", help: "Whether the database answers.", samples: [one(1)] },
      ...queueFamilies(queues),
      ...workerFamilies(workers),
      { name: "holds", type: "gauge", help: "Active holds.", samples: [one(holds.length)] },
    ];
  } catch {
    return [{ name: "up", type: "gauge", help: "Whether the database answers.", samples: [one(0)] }];
  }
}

function queueFamilies(queues: readonly QueueState[]): Family[] {
  const each = (value: (queue: QueueState) => number): Sample[] =>
    queues.map((queue) => ({ labels: { queue: queue.name }, value: value(queue) }));
  const states = ["ready", "scheduled", "running", "waiting"] as const;
  return [
    {
      name: "queue_depth",
      type: "gauge",
      help: "Jobs that have not ended, by queue and state.",
      samples: queues.flatMap(({ name, counts }) =>
        states.map((state) => ({ labels: { queue: name, state }, value: counts[state] })),
      ),
    },
    {
      name: "queue_depth_capped",
      type: "gauge",
      help: "1 if queue_depth stopped counting at its bound.",
      samples: queues.flatMap(({ name, atLeast }) =>
        states.map((state) => ({ labels: { queue: name, state }, value: atLeast.includes(state) ? 1 : 0 })),
      ),
    },
    {
      name: "queue_oldest_ready_seconds",
      type: "gauge",
      help: "Age of the oldest ready job.",
      samples: each(({ lagMs }) => lagMs / 1_000),
    },
    {
      name: "queue_paused",
      type: "gauge",
      help: "1 while the queue is paused.",
      samples: each(({ paused }) => (paused ? 1 : 0)),
    },
    {
      name: "queue_cooling_seconds",
      type: "gauge",
      help: "Remaining time of the cool-down.",
      samples: each(({ coolUntil }) => Math.max(0, ((coolUntil?.getTime() ?? 0) - Date.now()) / 1_000)),
    },
    {
      name: "queue_unserved_names",
      type: "gauge",
      help: "Job names with ready jobs and without a live worker.",
      samples: each(({ unserved }) => unserved.length),
    },
    {
      name: "queue_concurrency_limit",
      type: "gauge",
      help: "The queue's limit over the cluster; absent without a limit.",
      samples: queues.flatMap(({ name, settings }) =>
        settings.concurrency === null ? [] : [{ labels: { queue: name }, value: settings.concurrency }],
      ),
    },
  ];
}

function workerFamilies(all: readonly WorkerState[]): Family[] {
  const workers = all.filter(({ kind }) => kind === "worker");
  const slots = new Map<string, number>();
  for (const worker of workers.filter(({ quietAt }) => quietAt === null))
    for (const [queue, count] of Object.entries(worker.queues))
      slots.set(queue, (slots.get(queue) ?? 0) + count);
  return [
    { name: "workers", type: "gauge", help: "Live workers.", samples: [one(workers.length)] },
    {
      name: "workers_stopping",
      type: "gauge",
      help: "Live workers that were asked to stop.",
      samples: [one(workers.filter(({ stopping }) => stopping).length)],
    },
    {
      name: "workers_quiet",
      type: "gauge",
      help: "Live workers that claim nothing until they are resumed.",
      samples: [one(workers.filter(({ quietAt }) => quietAt !== null).length)],
    },
    {
      name: "slots",
      type: "gauge",
      help: "Slots of all live workers that are not quiet, by queue.",
      samples: [...slots].map(([queue, value]) => ({ labels: { queue }, value })),
    },
  ];
}

function processFamilies(hf: Holdfast, buckets: readonly number[]): Family[] {
  const totals = hf.metrics.totals();
  const counters = hf.counters();
  const counter = (name: string, help: string, value: number): Family => ({
    name,
    type: "counter",
    help,
    samples: [one(value)],
  });
  return [
    {
      name: "jobs_total",
      type: "counter",
      help: "Attempts of this process's workers, by outcome.",
      samples: totals.flatMap(({ queue, name, counts }) =>
        Object.entries(counts).map(([outcome, value]) => ({ labels: { queue, kind: name, outcome }, value })),
      ),
    },
    histogram("job_duration_seconds", "Duration of attempts.", totals, buckets, ({ ran }) => ran),
    histogram("job_wait_seconds", "Time from due to claimed.", totals, buckets, ({ waited }) => waited),
    {
      name: "enqueued_total",
      type: "counter",
      help: "Enqueues of this process, by status.",
      samples: (["enqueued", "duplicate", "replaced", "debounced"] as const).map((status) => ({
        labels: { status },
        value: counters[status],
      })),
    },
    counter("leases_lost_total", "Attempts of this process that lost their lease.", counters.leasesLost),
    counter("statements_total", "Statements sent by this process.", counters.statements),
    counter("commits_total", "Commits of this process.", counters.commits),
    counter("retries_total", "Calls repeated because the database was busy or away.", counters.retries),
    counter("event_log_dropped_total", "Dropped events of the event log.", hf.eventLog.status.dropped),
    {
      name: "event_log_buffered",
      type: "gauge",
      help: "Events that wait to be written to the event log.",
      samples: [one(hf.eventLog.status.buffered)],
    },
  ];
}

function histogram(
  name: string,
  help: string,
  totals: readonly NameTotals[],
  buckets: readonly number[],
  of: (total: NameTotals) => Histogram,
): Family {
  const samples = totals.flatMap((total): Sample[] => {
    const labels = { queue: total.queue, kind: total.name };
    const counted = of(total);
    return [
      ...buckets.map((le) => ({
        suffix: "_bucket",
        labels: { ...labels, le: String(le) },
        value: counted.countUpTo(le * 1_000),
      })),
      { suffix: "_bucket", labels: { ...labels, le: "+Inf" }, value: counted.count },
      { suffix: "_sum", labels, value: counted.sumMs / 1_000 },
      { suffix: "_count", labels, value: counted.count },
    ];
  });
  return { name, type: "histogram", help, samples };
}

function one(value: number): Sample {
  return { labels: {}, value };
}

function render(prefix: string, families: readonly Family[]): string {
  const lines: string[] = [];
  for (const { name, type, help, samples } of families) {
    if (samples.length === 0) continue;
    const full = `${prefix}_${name}`;
    lines.push(
      `# HELP ${full} ${help.replaceAll("\\", "\\\\").replaceAll("\n", "\\n")}`,
      `# TYPE ${full} ${type}`,
    );
    for (const sample of samples)
      lines.push(`${full}${sample.suffix ?? ""}${labelText(sample.labels)} ${sample.value}`);
  }
  return `${lines.join("\n")}\n`;
}

function labelText(labels: Labels): string {
  const parts = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`);
  return parts.length === 0 ? "" : `{${parts.join(",")}}`;
}

function escaped(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}
