// Resources of the database and of workers' machines over the chosen time. Workers measure once a minute.
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import type { DatabaseSeries, HostLine, HostSeries } from "../../../src/dashboard/api/contract.ts";
import type { Line } from "./chart.tsx";
import { bytes, duration, number } from "../kit/format.ts";
import { Chart, type Mark } from "./lazy-chart.tsx";
import { Loaded, Panel } from "../kit/panels.tsx";
import { now } from "../data/page-clock.ts";
import { measuredOver } from "./axis-scale.ts";
import { leadsOf, stepsOver, timeNote, TimePicker, useOverTime } from "./time-range.tsx";

type Values = readonly (number | null)[];
interface Steps {
  readonly at: readonly number[];
  readonly stepMs: number;
}

const unseen = "Nothing was measured in this time. Workers measure once a minute.";
const everyMs = 15_000;

export function DatabaseCharts() {
  const query = useOverTime<DatabaseSeries>("/series/database", { everyMs });
  return (
    <>
      <TimePicker />
      <Loaded query={query}>{(all) => <OfDatabase all={all} />}</Loaded>
    </>
  );
}

export function HostCharts() {
  const query = useOverTime<HostSeries>("/series/hosts", { everyMs });
  return (
    <>
      <TimePicker />
      <Loaded query={query}>{(all) => <OfHosts all={all} />}</Loaded>
    </>
  );
}

function OfDatabase({ all }: { all: DatabaseSeries }) {
  const { sizeBytes, walBytes, diskFreeBytes, connections, readMs, writeMs, pool } = all;
  const steps = useSteps(all, [sizeBytes, readMs.mean]);
  const known = (values: Values): boolean => values.some((value) => value !== null);
  const note = timeNote();
  return (
    <div class="grid two">
      <Drawn
        title="Size"
        note={`of the database, ${note}`}
        steps={steps}
        sizes
        lines={[["Size", sizeBytes, bytes]]}
      />
      <Drawn
        title="WAL"
        note={`not yet checkpointed, ${note}`}
        steps={steps}
        sizes
        lines={[["WAL", walBytes, bytes]]}
      />
      <Drawn
        title="Reads and writes"
        note={`counted by workers, ${note}`}
        steps={steps}
        lines={[
          ["Read", readMs.mean, ms],
          ["Slowest read", readMs.most, ms],
          ["Write", writeMs.mean, ms],
          ["Slowest write", writeMs.most, ms],
        ]}
      />
      {(pool !== null || known(connections)) && (
        <Drawn
          title="Connections"
          note={`of the server, and of the workers' pools, ${note}`}
          steps={steps}
          lines={[
            ["All", connections, number],
            ...(pool === null
              ? []
              : ([
                  ["In use", pool.used, number],
                  ["Idle", pool.idle, number],
                  ["Waiting", pool.waiting, number],
                ] as const)),
          ]}
        />
      )}
      {known(diskFreeBytes) && (
        <Drawn
          title="Free disk"
          note={`on the file's disk, ${note}`}
          steps={steps}
          sizes
          lines={[["Free", diskFreeBytes, bytes]]}
        />
      )}
    </div>
  );
}

function OfHosts({ all }: { all: HostSeries }) {
  const { hosts, others, deploys } = all;
  const steps = useSteps(
    all,
    hosts.map(({ cpu }) => cpu),
  );
  const marks = useMemo(() => deploys.map(({ at, release }) => ({ at, text: release })), [deploys]);
  const note = timeNote();
  const lines = (of: (line: Omit<HostLine, "host">) => Values, shown: Line["shown"]): Lines => [
    ...hosts.map((line) => [line.host, of(line), shown] as const),
    ...(others === null ? [] : [[`Highest of ${others.hosts} others`, of(others), shown] as const]),
  ];
  return (
    <div class="grid two">
      <Drawn
        title="CPU"
        note={`of one core, by host, ${note}`}
        steps={steps}
        marks={marks}
        lines={lines(({ cpu }) => cpu, percent)}
      />
      <Drawn
        title="Memory"
        note={`resident, by host, ${note}`}
        steps={steps}
        marks={marks}
        sizes
        lines={lines(({ rssBytes }) => rssBytes, bytes)}
      />
      <Drawn
        title="Event-loop delay"
        note={`of the latest process, by host, ${note}`}
        steps={steps}
        marks={marks}
        lines={lines(({ loopDelayMs }) => loopDelayMs, ms)}
      />
    </div>
  );
}

type Lines = readonly (readonly [name: string, values: Values, shown: Line["shown"]])[];

function Drawn({
  title,
  note,
  steps,
  lines,
  marks,
  sizes = false,
}: {
  title: string;
  note: ComponentChildren;
  steps: Steps;
  lines: Lines;
  marks?: readonly Mark[];
  sizes?: boolean;
}) {
  const drawn = useMemo(
    () => lines.map(([name, values, shown]) => ({ name, values: values.slice(0, steps.at.length), shown })),
    // Each answer has new arrays.
    [steps],
  );
  return (
    <Panel title={title} note={note}>
      <Chart
        title={title}
        at={steps.at}
        lines={drawn}
        {...(lines.every(([, values]) => values.every((value) => value === null)) ? { empty: unseen } : {})}
        sizes={sizes}
        lead={leadsOf(steps, () => ({ queue: null, more: "" }))}
        {...(marks === undefined ? {} : { marks })}
      />
    </Panel>
  );
}

/** Completed steps, as the same object until a new one arrives, so that the chart is updated in place. */
function useSteps(all: Steps, lists: readonly Values[]): Steps {
  const tick = Math.floor(now.value / 10_000) * 10_000;
  const over = measuredOver(lists, stepsOver(all, tick));
  return useMemo(() => ({ at: all.at.slice(0, over), stepMs: all.stepMs }), [all, over]);
}

/** Most values are below ten, so one or two decimals are needed. */
function ms(value: number): string {
  return value > 0 && value < 10 ? `${Number(value.toFixed(value < 1 ? 2 : 1))} ms` : duration(value);
}

function percent(cores: number): string {
  return `${Math.round(cores * 100)} %`;
}
