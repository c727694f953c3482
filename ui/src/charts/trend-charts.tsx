// Throughput, waiting time and running time over the chosen time.
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import type { Series } from "../../../src/dashboard/api/contract.ts";
import { seg } from "../data/api.ts";
import { duration, number } from "../kit/format.ts";
import { Chart, type Mark } from "./lazy-chart.tsx";
import { Loaded, Panel } from "../kit/panels.tsx";
import { now } from "../data/page-clock.ts";
import { href } from "../data/router.ts";
import { jobsOf, leadsOf, stepsOver, timeNote, TimePicker, useOverTime } from "./time-range.tsx";

type Beside = (marks: readonly Mark[]) => ComponentChildren;

/** For all queues or one. `children`: charts appended to the grid, given the deploys of the range. */
export function TrendsPanel({ queue = null, children }: { queue?: string | null; children?: Beside }) {
  const query = useOverTime<Series>("/series", { queue });
  const note = timeNote();
  return (
    <>
      <TimePicker
        more={(time) => (
          <>
            <a class="link small" href={href(jobsOf(time, queue, ""))}>
              Jobs that ended in this time
            </a>
            <a class="link small" href={href(jobsOf(time, queue, "state=dead"))}>
              Jobs that died in this time
            </a>
          </>
        )}
      />
      <Loaded query={query}>
        {(all) => (
          <TrendCharts all={all} queue={queue} note={note}>
            {children}
          </TrendCharts>
        )}
      </Loaded>
    </>
  );
}

function over(series: Series, at: number): Series {
  const n = stepsOver(series, at);
  const cut = <T,>(values: readonly T[]): readonly T[] => values.slice(0, n);
  const cutAll = ({ p50, p95, p99 }: Series["waitMs"]) => ({ p50: cut(p50), p95: cut(p95), p99: cut(p99) });
  return {
    ...series,
    at: cut(series.at),
    done: cut(series.done),
    retried: cut(series.retried),
    dead: cut(series.dead),
    waitMs: cutAll(series.waitMs),
    runMs: cutAll(series.runMs),
  };
}

function TrendCharts({
  all,
  queue,
  note,
  children,
}: {
  all: Series;
  queue: string | null;
  note: string;
  children?: Beside | undefined;
}) {
  const tick = Math.floor(now.value / 10_000) * 10_000;
  const series = useMemo(() => over(all, tick), [all, tick]);
  const marks = useMemo(() => all.deploys.map(({ at, release }) => ({ at, text: release })), [all]);
  const { stepMs } = series;
  const lead = leadsOf(series, () => ({ queue, more: "" }));
  // By keyboard a point opens its dead jobs, if it has any.
  const likely = (index: number): number => ((series.dead[index] ?? 0) > 0 ? 2 : 0);
  const kinds = ["state=done", `attempt=${seg(">1")}`, "state=dead"];
  const percentiles = (title: string, what: string, none: string, of: Series["waitMs"]) => (
    <Panel title={title} note={`${what}, ${note}`}>
      <Chart
        title={title}
        marks={marks}
        lead={lead}
        empty={none}
        at={series.at}
        lines={(["p50", "p95", "p99"] as const).map((name) => ({ name, values: of[name], shown: duration }))}
      />
    </Panel>
  );
  return (
    <div class="grid two">
      <Panel
        title="Throughput"
        note={stepMs === 60_000 ? `jobs per minute, ${note}` : `jobs per ${duration(stepMs)}, ${note}`}
      >
        <Chart
          title="Throughput"
          marks={marks}
          lead={leadsOf(series, (index, line) => ({ queue, more: kinds[line ?? likely(index)] ?? "" }))}
          empty="No jobs ended in this time. A minute appears when it is complete."
          at={series.at}
          lines={[
            { name: "Done", values: series.done, shown: number },
            { name: "Retried", values: series.retried, shown: number },
            { name: "Dead", values: series.dead, shown: number },
          ]}
        />
      </Panel>
      {percentiles(
        "Waiting time",
        "from due to start",
        "No jobs started in this time. A minute appears when it is complete.",
        series.waitMs,
      )}
      {percentiles(
        "Running time",
        "of an attempt",
        "No attempts ended in this time. A minute appears when it is complete.",
        series.runMs,
      )}
      {children?.(marks)}
    </div>
  );
}
