// Backlog by queue and used slots over the chosen time, measured once a minute.
import { useMemo } from "preact/hooks";
import type { Load } from "../../../src/dashboard/api/contract.ts";
import { number } from "../kit/format.ts";
import { Chart, type Mark } from "./lazy-chart.tsx";
import { Loaded, Panel } from "../kit/panels.tsx";
import { now } from "../data/page-clock.ts";
import { measuredOver } from "./axis-scale.ts";
import { leadsOf, stepsOver, timeNote, useOverTime } from "./time-range.tsx";

export function LoadCharts({ marks }: { marks: readonly Mark[] }) {
  const query = useOverTime<Load>("/series/load", { everyMs: 15_000 });
  return <Loaded query={query}>{(all) => <Charts all={all} note={timeNote()} marks={marks} />}</Loaded>;
}

function Charts({ all, note, marks }: { all: Load; note: string; marks: readonly Mark[] }) {
  const tick = Math.floor(now.value / 10_000) * 10_000;
  const { at, waiting, slots, looked } = useMemo(() => linesOf(all, tick), [all, tick]);
  const steps = { at, stepMs: all.stepMs };
  const unseen = "Nothing was measured in this time. Workers measure once a minute.";
  return (
    <>
      <Panel title="Backlog by queue" note={`ready jobs, ${note}`}>
        <Chart
          title="Backlog by queue"
          marks={marks}
          empty={looked ? "No jobs were waiting." : unseen}
          lead={leadsOf(steps, (_index, line) => ({
            queue: line === null ? null : (all.queues[line]?.name ?? null),
            more: "",
          }))}
          at={at}
          lines={waiting}
        />
      </Panel>
      <Panel title="Slots" note={`of all workers, without paused queues, ${note}`}>
        <Chart
          title="Slots"
          marks={marks}
          empty={unseen}
          lead={leadsOf(steps, () => ({ queue: null, more: "" }))}
          at={at}
          lines={slots}
        />
      </Panel>
    </>
  );
}

/** Keeps the same object until a value changes, because a new object redraws the chart. Pure. */
function linesOf(load: Load, now: number) {
  const over = measuredOver([load.other, load.running], stepsOver(load, now));
  const line = (name: string, values: readonly (number | null)[]) => ({
    name,
    values: values.slice(0, over),
    shown: number,
  });
  const named = load.queues.map(({ name, ready }) => line(name, ready));
  // The rest is left out if every queue has its own line. Without any queue one line shows zero.
  const rest = named.length === 0 || load.other.some((value) => value !== null && value > 0);
  return {
    at: load.at.slice(0, over),
    waiting: rest ? [...named, line(named.length === 0 ? "All queues" : "Other", load.other)] : named,
    looked: load.other.slice(0, over).some((value) => value !== null),
    slots: [line("Used", load.running), line("Available", load.slots)],
  };
}
