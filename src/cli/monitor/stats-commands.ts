/** `holdfast stats`, `metrics`, `events` and `prune`. */
import type { LoggedEvent, MetricPoint } from "../../index.ts";
import { acting } from "../audit-record.ts";
import { type Command, FORCE } from "../command.ts";
import { withDead } from "./dead-counts.ts";
import { instant } from "../jobs/filter-options.ts";
import { duration, grouped, oneLine, shownValue, table } from "../text.ts";
import { newLines } from "./follow.ts";
import { queueTable } from "../control/queue-commands.ts";

export const stats: Command = {
  name: "stats",
  summary: "count jobs by state and queue",
  json: "{ totals, lagMs, queues, workers, counters }",
  examples: [{ line: "stats --json | jq .totals.dead", says: "The number of dead jobs" }],
  run: async (ctx) => {
    const hf = await ctx.client();
    const all = await hf.stats();
    const queues = await withDead(hf, all.queues);
    ctx.result({ ...all, queues }, () => {
      const totals = Object.entries(all.totals)
        .map(([state, count]) => `${ctx.paint("dim", state)} ${grouped(count)}`)
        .join("   ");
      const head = `${totals}\n${ctx.paint("dim", "lag")} ${duration(all.lagMs)}   ${ctx.paint("dim", "workers")} ${all.workers}`;
      return queues.length === 0 ? head : `${head}\n\n${queueTable(ctx, queues, Date.now())}`;
    });
  },
};

export const metrics: Command = {
  name: "metrics",
  summary: "show counts and percentiles over time",
  options: {
    queue: { type: "string", short: "q", multiple: true, value: "name", help: "Only these queues" },
    name: { type: "string", short: "n", multiple: true, value: "name", help: "Only these job names" },
    since: { type: "string", value: "when", help: "Default 1h (ago); 30 days are kept" },
    until: { type: "string", value: "when", help: "Default now" },
    step: { type: "string", value: "duration", help: "Interval of a row, in whole minutes; default 5m" },
    by: {
      type: "string",
      value: "what",
      help: "One series for each queue, name or job-type (queue and name); default all",
    },
    gauges: { type: "boolean", help: "Show gauges of processes and database instead" },
  },
  json: "An array of series",
  examples: [{ line: "metrics --queue mail --since 1d --step 1h", says: "The last day of mail by the hour" }],
  run: async (ctx) => {
    const hf = await ctx.client();
    const range: { since?: Date; until?: Date } = {};
    for (const option of ["since", "until"] as const) {
      const value = ctx.string(option);
      if (value !== undefined) range[option] = instant(value, option);
    }
    if (ctx.flag("gauges")) {
      const gauges = await hf.metrics.gauges(range);
      ctx.result(gauges, () =>
        table(
          [
            { title: "source", cell: ({ source }) => source, most: 44 },
            { title: "gauge", cell: ({ name }) => name },
            { title: "latest", align: "right", cell: ({ points }) => points.at(-1)?.value ?? "–" },
            {
              title: "maximum",
              align: "right",
              cell: ({ points }) => Math.max(...points.map(({ value }) => value)),
            },
          ],
          gauges,
        ),
      );
      return;
    }
    const series = await hf.metrics.series({
      ...range,
      queue: ctx.list("queue"),
      name: ctx.list("name"),
      step: ctx.string("step") ?? "5m",
      by: ctx.string("by") as "all" | undefined,
    });
    ctx.result(series, () => {
      if (series.length === 0) return "There are no metrics for this time.";
      return series
        .map(({ queue, name, points }) => {
          const title = [queue, name].filter((part) => part !== null).join(" · ");
          return `${title === "" ? "" : `${ctx.paint("bold", oneLine(title))}\n`}${pointTable(points)}`;
        })
        .join("\n\n");
    });
  },
};

function pointTable(points: readonly MetricPoint[]): string {
  const ms = (value: number | null): string => (value === null ? "–" : duration(value));
  return table(
    [
      { title: "at", cell: ({ at }) => at.toISOString().slice(0, 16).replace("T", " ") },
      { title: "done", align: "right", cell: ({ done }) => done },
      { title: "failed", align: "right", cell: ({ failed }) => failed },
      { title: "dead", align: "right", cell: ({ dead }) => dead },
      { title: "ran p50", align: "right", cell: ({ ran }) => ms(ran.p50) },
      { title: "p95", align: "right", cell: ({ ran }) => ms(ran.p95) },
      { title: "p99", align: "right", cell: ({ ran }) => ms(ran.p99) },
      { title: "waited p50", align: "right", cell: ({ waited }) => ms(waited.p50) },
      { title: "p95", align: "right", cell: ({ waited }) => ms(waited.p95) },
      { title: "p99", align: "right", cell: ({ waited }) => ms(waited.p99) },
    ],
    points,
  );
}

export const events: Command = {
  name: "events",
  summary: "show the event log, if it is on",
  options: {
    job: { type: "string", value: "id", help: "Only this job" },
    event: {
      type: "string",
      short: "e",
      multiple: true,
      value: "name",
      help: "job.done, job.failed, job.dead …",
    },
    queue: { type: "string", short: "q", multiple: true, value: "name", help: "Only these queues" },
    name: { type: "string", short: "n", multiple: true, value: "name", help: "Only these job names" },
    since: { type: "string", value: "when", help: "At or after: a date, or 2h (ago)" },
    limit: { type: "string", short: "l", value: "n", help: "Number of events, 1 to 1,000; default 100" },
    follow: { type: "boolean", help: "Print new events as they arrive" },
  },
  details:
    "Processes whose `open` has the option eventLog write events within 2 seconds. With --follow, an event of one process may appear after newer events of another.",
  json: "{ events, cursor }; with --follow one event per line",
  examples: [{ line: "events --job 0199…", says: "The events of one job" }],
  run: async (ctx) => {
    const hf = await ctx.client();
    const since = ctx.string("since");
    const query = {
      job: ctx.string("job"),
      event: ctx.list("event"),
      queue: ctx.list("queue"),
      name: ctx.list("name"),
    };
    const text = (event: LoggedEvent): string =>
      `${ctx.paint("dim", event.at.toISOString())}  ${event.event.padEnd(14)} ${oneLine(event.name ?? "", 30).padEnd(16)} ${event.job ?? ""} ${shownValue(event.detail, 100)}`;
    const lines = ctx.flag("follow") ? newLines(hf, query, ctx.io.signal) : null;
    await lines?.next(); // no event after this line is missed
    const page = await hf.eventLog.list({
      ...query,
      ...(since === undefined ? {} : { since: instant(since, "since") }),
      limit: ctx.integer("limit") ?? 100,
    });
    if (lines === null) {
      ctx.result(page, () =>
        page.events.length === 0
          ? "There are no such events. Processes write events if `open` has the option eventLog."
          : page.events.map(text).join("\n"),
      );
      return;
    }
    const shown = new Set(page.events.map(({ id }) => id));
    const show = (event: LoggedEvent): void => {
      if (ctx.json) ctx.line(event);
      else ctx.print(text(event));
    };
    page.events.toReversed().forEach(show);
    for await (const fresh of lines) fresh.filter(({ id }) => !shown.has(id)).forEach(show);
  },
};

export const prune: Command = {
  name: "prune",
  summary: "delete ended jobs past their retention",
  options: FORCE,
  details: "Workers do this every 5 minutes.",
  json: "{ done, dead, cancelled, partitions }",
  examples: [{ line: "prune", says: "Prune now" }],
  run: async (ctx) => {
    const hf = await ctx.client();
    if (!(await ctx.confirm("Delete all ended jobs past their retention?"))) return 1;
    const report = await acting(
      ctx,
      hf,
      {
        action: "jobs.prune",
        target: "ended",
        outcome: ({ done, dead, cancelled }) => `${done + dead + cancelled} deleted`,
        details: (deleted) => ({ ...deleted }),
      },
      () => hf.prune(),
    );
    ctx.result(report, () =>
      oneLine(
        `Deleted ${grouped(report.done)} done, ${grouped(report.dead)} dead, ${grouped(report.cancelled)} cancelled; dropped ${report.partitions} partitions.`,
      ),
    );
    return 0;
  },
};
