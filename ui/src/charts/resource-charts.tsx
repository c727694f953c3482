// How the database and the workers' machines were, over the time that is shown. Measured once a minute, by the workers.
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import type { DatabaseSeries, HostLine, HostSeries } from "../../../src/dashboard/api/contract.ts";
import type { Line } from "./chart.tsx";
import { bytes, duration, number } from "../kit/format.ts";
import { Chart, type Mark } from "./lazy-chart.tsx";
import { Loaded, Panel } from "../kit/panels.tsx";
import { now } from "../data/page-clock.ts";
import { measuredOver } from "./axis-scale.ts";
import { t } from "../language/translation.ts";
import { leadsOf, stepsOver, timeNote, TimePicker, useOverTime } from "./time-range.tsx";

type Values = readonly (number | null)[];
interface Steps {
  readonly at: readonly number[];
  readonly stepMs: number;
}

const unseen = t("Nothing was measured in this time; a worker does it once a minute.");
/** The workers write once a minute. */
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
        title={t("Size")}
        note={t("of the database, {note}", { note })}
        steps={steps}
        sizes
        lines={[[t("Size"), sizeBytes, bytes]]}
      />
      <Drawn
        title={t("WAL")}
        note={t("not yet checkpointed, {note}", { note })}
        steps={steps}
        sizes
        lines={[[t("WAL"), walBytes, bytes]]}
      />
      <Drawn
        title={t("Reads and writes")}
        note={t("as workers met them, {note}", { note })}
        steps={steps}
        lines={[
          [t("Read"), readMs.mean, ms],
          [t("Slowest read"), readMs.most, ms],
          [t("Write"), writeMs.mean, ms],
          [t("Slowest write"), writeMs.most, ms],
        ]}
      />
      {(pool !== null || known(connections)) && (
        <Drawn
          title={t("Connections")}
          note={t("of the server, and of the workers' pools, {note}", { note })}
          steps={steps}
          lines={[
            [t("All"), connections, number],
            ...(pool === null
              ? []
              : ([
                  [t("In use"), pool.used, number],
                  [t("Idle"), pool.idle, number],
                  [t("Waiting for one"), pool.waiting, number],
                ] as const)),
          ]}
        />
      )}
      {known(diskFreeBytes) && (
        <Drawn
          title={t("Free disk")}
          note={t("where the file lies, {note}", { note })}
          steps={steps}
          sizes
          lines={[[t("Free"), diskFreeBytes, bytes]]}
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
    ...(others === null
      ? []
      : [[t("Highest of {hosts} more", { hosts: others.hosts }), of(others), shown] as const]),
  ];
  return (
    <div class="grid two">
      <Drawn
        title={t("CPU")}
        note={t("of one core, by host, {note}", { note })}
        steps={steps}
        marks={marks}
        lines={lines(({ cpu }) => cpu, percent)}
      />
      <Drawn
        title={t("Memory")}
        note={t("resident, by host, {note}", { note })}
        steps={steps}
        marks={marks}
        sizes
        lines={lines(({ rssBytes }) => rssBytes, bytes)}
      />
      <Drawn
        title={t("Event-loop delay")}
        note={t("of the latest process, by host, {note}", { note })}
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
    // The lists are new with every answer, and so are the steps.
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

/** The steps that are over, the same until there is something new: a chart is fed, not made anew. */
function useSteps(all: Steps, lists: readonly Values[]): Steps {
  const tick = Math.floor(now.value / 10_000) * 10_000;
  const over = measuredOver(lists, stepsOver(all, tick));
  return useMemo(() => ({ at: all.at.slice(0, over), stepMs: all.stepMs }), [all, over]);
}

/** Most are below a few: a digit or two tell them apart. */
function ms(value: number): string {
  return value > 0 && value < 10
    ? t("{value} ms", { value: Number(value.toFixed(value < 1 ? 2 : 1)) })
    : duration(value);
}

function percent(cores: number): string {
  return `${Math.round(cores * 100)} %`;
}
