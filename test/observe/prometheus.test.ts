// The text for Prometheus, read by a Prometheus parser.
import parsePrometheus from "parse-prometheus-text-format";
import { expect, test } from "vitest";
import { prometheus } from "holdfast/prometheus";
import { defineJob } from "../../src/index.ts";
import { onEveryStore } from "../support/stores.ts";
import { fresh } from "../support/test-clients.ts";

interface Metric {
  readonly value?: string;
  readonly labels?: Record<string, string>;
  readonly buckets?: Record<string, string>;
  readonly count?: string;
  readonly sum?: string;
}
interface Family {
  readonly name: string;
  readonly type: string;
  readonly metrics: readonly Metric[];
}
const parse = parsePrometheus as (text: string) => Family[];

const hello = defineJob({ name: "hello", run: () => null });

onEveryStore((target) => {
  test("[J4][N25] gauges, counters and histograms parse, with what they say", async () => {
    const { hf } = await fresh(target);
    const worker = hf.work([hello], { queues: ["default"] });
    await worker.ready;
    for (let i = 0; i < 7; i += 1) await hf.enqueue(hello, null);
    await worker.idle();
    await hf.enqueue(hello, null, { delay: "1h" });
    await hf.queues.pause("quiet");
    await hf.holds.set("stop", { queues: ["other"], reason: "test" });
    const metrics = prometheus(hf);
    expect(metrics.contentType).toMatch(/^text\/plain; version=0\.0\.4/);
    const text = await metrics.text();
    const families = new Map(parse(text).map((family) => [family.name, family]));
    const value = (name: string, labels: Record<string, string> = {}): number | undefined => {
      const found = families
        .get(name)
        ?.metrics.find((metric) =>
          Object.entries(labels).every(([key, text]) => metric.labels?.[key] === text),
        );
      return found?.value === undefined ? undefined : Number(found.value);
    };
    expect(value("holdfast_up")).toBe(1);
    expect(value("holdfast_workers")).toBe(1);
    expect(value("holdfast_holds")).toBe(1);
    expect(value("holdfast_queue_paused", { queue: "quiet" })).toBe(1);
    expect(value("holdfast_queue_depth", { queue: "default", state: "scheduled" })).toBe(1);
    expect(value("holdfast_queue_depth", { queue: "default", state: "ready" })).toBe(0);
    expect(value("holdfast_jobs_total", { queue: "default", kind: "hello", outcome: "done" })).toBe(7);
    expect(value("holdfast_enqueued_total", { status: "enqueued" })).toBe(8);
    const duration = families.get("holdfast_job_duration_seconds");
    expect(duration?.type).toBe("HISTOGRAM");
    // This parser drops the labels of histograms, and with them sum and count.
    expect(text).toMatch(/^holdfast_job_duration_seconds_count\{queue="default",kind="hello"\} 7$/m);
    expect(text).toMatch(/^holdfast_job_wait_seconds_sum\{queue="default",kind="hello"\} [\d.e-]+$/m);
    expect(Number(duration?.metrics[0]?.buckets?.["+Inf"])).toBe(7);
    // By name: who draws them knows them by that.
    const of = (wanted: string): string[] =>
      [...families.values()]
        .filter(({ type }) => type === wanted)
        .map(({ name }) => name.replace(/^holdfast_/, ""))
        .sort();
    expect(of("GAUGE")).toEqual([
      "event_log_buffered",
      "holds",
      "queue_cooling_seconds",
      "queue_depth",
      "queue_depth_capped",
      "queue_oldest_ready_seconds",
      "queue_paused",
      "queue_unserved_names",
      "slots",
      "up",
      "workers",
      "workers_quiet",
      "workers_stopping",
    ]);
    expect(of("COUNTER")).toEqual([
      "commits_total",
      "enqueued_total",
      "event_log_dropped_total",
      "jobs_total",
      "leases_lost_total",
      "retries_total",
      "statements_total",
    ]);
    expect(of("HISTOGRAM")).toEqual(["job_duration_seconds", "job_wait_seconds"]);
  });

  test("[J4] a label keeps quotes, backslashes and newlines", async () => {
    const { hf } = await fresh(target);
    const name = 'a"b\\c\nd';
    // No such queue can be made through the API; a hand in the tables can.
    hf.queues.list = () =>
      Promise.resolve([
        {
          name,
          paused: true,
          pausedAt: null,
          draining: false,
          drainingAt: null,
          coolUntil: null,
          atLeast: [],
          lagMs: 0,
          nextDueAt: null,
          unserved: [],
          counts: { ready: 1, scheduled: 0, running: 0, waiting: 0 },
          settings: {
            concurrency: null,
            rate: null,
            weight: null,
            backoff: null,
            retention: null,
            cooldown: null,
            slots: null,
            total: null,
            breaker: null,
          },
        },
      ]);
    const text = await prometheus(hf).text();
    expect(text).toContain('holdfast_queue_paused{queue="a\\"b\\\\c\\nd"} 1');
    const paused = parse(text).find((family) => family.name === "holdfast_queue_paused");
    expect(paused?.metrics[0]?.labels?.["queue"]).toBe(name);
  });

  test("[J4] a database that is away is told as such, and the process's own counters stay", async () => {
    const { hf } = await fresh(target);
    hf.queues.list = () => Promise.reject(new Error("away"));
    const families = parse(await prometheus(hf, { prefix: "jobs" }).text());
    expect(families.find((family) => family.name === "jobs_up")?.metrics[0]?.value).toBe("0");
    expect(families.some((family) => family.name === "jobs_enqueued_total")).toBe(true);
  });
});
