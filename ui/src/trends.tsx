// The last hour by the minute: how much was done, and how long it waited.
import { useMemo } from "preact/hooks";
import type { Series } from "../../src/dashboard/contract.ts";
import { get } from "./api.ts";
import { duration, number } from "./format.ts";
import { Chart } from "./lazy-chart.tsx";
import { Loaded, now } from "./parts.tsx";
import { Panel } from "./table.tsx";
import { useQuery } from "./use-query.ts";

/** Of everything, or of one queue. */
export function Trends({ queue = null }: { queue?: string | null }) {
  const query = useQuery(`series ${queue ?? ""}`, (signal) => get<Series>("/series", { queue }, signal), {
    live: true,
  });
  return <Loaded query={query}>{(all) => <TrendCharts all={all} />}</Loaded>;
}

/** Minutes that are over: one under way would look as if everything had stopped. */
function over(series: Series, at: number): Series {
  const n = series.at.filter((ms) => ms + series.stepMs <= at).length;
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

function TrendCharts({ all }: { all: Series }) {
  const tick = Math.floor(now.value / 10_000) * 10_000;
  const series = useMemo(() => over(all, tick), [all, tick]);
  const marks = useMemo(() => all.deploys.map(({ at, release }) => ({ at, text: release })), [all]);
  return (
    <div class="grid two">
      <Panel title="Throughput" note="jobs a minute, last hour">
        <Chart
          title="Throughput"
          marks={marks}
          empty="No job ended in the last hour; a minute shows when it is over."
          at={series.at}
          lines={[
            { name: "Done", values: series.done, shown: number },
            { name: "Retried", values: series.retried, shown: number },
            { name: "Dead", values: series.dead, shown: number },
          ]}
        />
      </Panel>
      <Panel title="Waiting time" note="from due to start, last hour">
        <Chart
          title="Waiting time"
          marks={marks}
          empty="No job started in the last hour; a minute shows when it is over."
          at={series.at}
          lines={[
            { name: "p50", values: series.waitMs.p50, shown: duration },
            { name: "p95", values: series.waitMs.p95, shown: duration },
            { name: "p99", values: series.waitMs.p99, shown: duration },
          ]}
        />
      </Panel>
    </div>
  );
}
