// The last hour by the minute, or another stretch of time: how much was done, and how long it waited. A stretch that is dragged
// over is shown alone; a point leads to the jobs that ended then.
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import type { Series } from "../../src/dashboard/contract.ts";
import { get, seg } from "./api.ts";
import type { Lead } from "./brush.ts";
import { duration, number, windowText } from "./format.ts";
import { Icon } from "./icons.tsx";
import { Chart } from "./lazy-chart.tsx";
import { Loaded, now } from "./parts.tsx";
import { go, href, params, path, setParams } from "./router.ts";
import { Panel } from "./table.tsx";
import { type Query, useQuery } from "./use-query.ts";

const HOUR = 3_600_000;
const spans = [
  ["15m", "15 min", HOUR / 4],
  [null, "1 h", HOUR],
  ["6h", "6 h", 6 * HOUR],
  ["24h", "24 h", 24 * HOUR],
  ["7d", "7 d", 168 * HOUR],
] as const;

/** What time is shown: a stretch that was chosen (`from`, `to`), or the last so long (`last`). The address has it. */
function timeShown(): { from: number; to: number } | { last: (typeof spans)[number] } {
  const [from, to] = ["from", "to"].map((name) => Number(params.value.get(name) ?? Number.NaN));
  if (from !== undefined && to !== undefined && to > from) return { from, to };
  const last = params.value.get("last");
  return { last: spans.find(([name]) => name === last) ?? spans[1] };
}

/** What was in the time that is shown: asked for again with every change, or every so often where it changes by the minute. */
export function useOverTime<T>(
  address: string,
  { queue = null, everyMs = null }: { queue?: string | null; everyMs?: number | null } = {},
): Query<T> {
  const time = timeShown();
  const key = "last" in time ? time.last[1] : `${time.from} ${time.to}`;
  const tick = everyMs === null ? "" : Math.floor(now.value / everyMs);
  return useQuery(
    `${address} ${queue ?? ""} ${key} ${tick}`,
    (signal) => {
      // By the database's clock as we heard it; the last hour is the server's own to say.
      const last = "last" in time ? time.last : null;
      const ago =
        "from" in time
          ? time
          : { from: last === null || last[0] === null ? null : Math.floor(now.peek() - last[2]), to: null };
      return get<T>(address, { ...(queue === null ? {} : { queue }), ...ago }, signal);
    },
    { live: everyMs === null },
  );
}

/** The time that is shown, in words. */
export function timeNote(): string {
  const time = timeShown();
  return "last" in time ? `last ${time.last[1]}` : windowText(`${time.from}..${time.to - 1}`);
}

/** Where a chart over time leads: a stretch is shown alone, a point opens the jobs that ended then. */
export function leadsOf(
  { at, stepMs }: Pick<Series, "at" | "stepMs">,
  of: (index: number, line: number | null) => { readonly queue: string | null; readonly more: string },
): Lead {
  const begin = (index: number): number => at[index] ?? 0;
  return {
    range: (from, to) => setParams({ from: String(begin(from)), to: String(begin(to) + stepMs), last: null }),
    point: (index, line) => {
      const { queue, more } = of(index, line);
      go(jobsOf({ from: begin(index), to: begin(index) + stepMs }, queue, more));
    },
  };
}

/** How many steps are over: one under way would look as if everything had stopped. */
export function stepsOver({ at, stepMs }: Pick<Series, "at" | "stepMs">, now: number): number {
  return at.filter((ms) => ms + stepMs <= now).length;
}

/** Of everything, or of one queue. `children`: what stands beside the last of them. */
export function Trends({ queue = null, children }: { queue?: string | null; children?: ComponentChildren }) {
  const time = timeShown();
  const query = useOverTime<Series>("/series", { queue });
  const note = timeNote();
  return (
    <>
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
              <b>{note}</b>
              <button
                type="button"
                aria-label="Back to the last hour"
                onClick={() => setParams({ from: null, to: null })}
              >
                <Icon name="close" size={12} />
              </button>
            </span>
            <a class="link small" href={href(jobsOf(time, queue, ""))}>
              Jobs that ended then
            </a>
            <a class="link small" href={href(jobsOf(time, queue, "state=dead"))}>
              Those that died
            </a>
          </>
        )}
      </div>
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

/** Jobs that ended in a stretch of time. */
function jobsOf({ from, to }: { from: number; to: number }, queue: string | null, more: string): string {
  const of = queue === null ? "" : `&queue=${seg(queue)}`;
  return `/jobs?ended=${from}..${to - 1}${of}${more === "" ? "" : `&${more}`}`;
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
  children?: ComponentChildren;
}) {
  const tick = Math.floor(now.value / 10_000) * 10_000;
  const series = useMemo(() => over(all, tick), [all, tick]);
  const marks = useMemo(() => all.deploys.map(({ at, release }) => ({ at, text: release })), [all]);
  const { stepMs } = series;
  const lead = leadsOf(series, () => ({ queue, more: "" }));
  // By the keyboard: what failed, if anything did.
  const likely = (index: number): number => ((series.dead[index] ?? 0) > 0 ? 2 : 0);
  const kinds = ["state=done", `attempt=${seg(">1")}`, "state=dead"];
  const percentiles = (title: string, what: string, happened: string, of: Series["waitMs"]) => (
    <Panel title={title} note={`${what}, ${note}`}>
      <Chart
        title={title}
        marks={marks}
        lead={lead}
        empty={`No ${happened} in this time; a minute shows when it is over.`}
        at={series.at}
        lines={(["p50", "p95", "p99"] as const).map((name) => ({ name, values: of[name], shown: duration }))}
      />
    </Panel>
  );
  return (
    <div class="grid two">
      <Panel
        title="Throughput"
        note={`jobs ${stepMs === 60_000 ? "a minute" : `in ${duration(stepMs)}`}, ${note}`}
      >
        <Chart
          title="Throughput"
          marks={marks}
          lead={leadsOf(series, (index, line) => ({ queue, more: kinds[line ?? likely(index)] ?? "" }))}
          empty="No job ended in this time; a minute shows when it is over."
          at={series.at}
          lines={[
            { name: "Done", values: series.done, shown: number },
            { name: "Retried", values: series.retried, shown: number },
            { name: "Dead", values: series.dead, shown: number },
          ]}
        />
      </Panel>
      {percentiles("Waiting time", "from due to start", "job started", series.waitMs)}
      {percentiles("Running time", "of an attempt", "attempt ended", series.runMs)}
      {children}
    </div>
  );
}
