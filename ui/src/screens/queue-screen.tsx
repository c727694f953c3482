// One queue: why no job runs, counts, lanes, workers, settings and their sources.
import type { JobCount, LaneLine, Load, QueueDetail } from "../../../src/dashboard/api/contract.ts";
import { Act, Buttons, Do } from "../kit/actions.tsx";
import { ApiFailure, get, seg, send } from "../data/api.ts";
import { useMemo } from "preact/hooks";
import { ago, atPageTime, duration, instant, number, plural, rate } from "../kit/format.ts";
import { Icon } from "../kit/icons.tsx";
import { Chart, type Mark } from "../charts/lazy-chart.tsx";
import { Count, Gauge, nameClass, State } from "../kit/labels.tsx";
import { Empty, Head, Loaded, Panel, Tile } from "../kit/panels.tsx";
import { now } from "../data/page-clock.ts";
import { pausing, purging, retryDead } from "../queues/queue-actions.tsx";
import { settingsForm } from "../queues/settings-form.tsx";
import { type SettingLine, settingLines } from "../queues/setting-lines.ts";
import { href } from "../data/router.ts";
import { measuredOver } from "../charts/axis-scale.ts";
import { actionsColumn, type Column, Table } from "../kit/table.tsx";
import { leadsOf, stepsOver, timeNote, useOverTime } from "../charts/time-range.tsx";
import { TrendsPanel } from "../charts/trend-charts.tsx";
import { useQuery } from "../data/live-query.ts";

export function QueueScreen({ name }: { name: string }) {
  const query = useQuery(`queue ${name}`, (signal) => get<QueueDetail>(`/queues/${seg(name)}`, {}, signal), {
    topic: `queue:${name}`,
  });
  if (query.data === null && query.error instanceof ApiFailure && query.error.status === 404)
    return (
      <section class="panel">
        <Empty icon="queues" title="No such queue">
          <p>No job and no setting uses this name.</p>
          <a class="button" href={href("/queues")}>
            All queues
          </a>
        </Empty>
      </section>
    );
  return <Loaded query={query}>{(queue) => <Detail queue={queue} again={query.again} />}</Loaded>;
}

function Detail({ queue, again }: { queue: QueueDetail; again: () => void }) {
  return (
    <>
      <Head title={queue.name}>
        <a class="button" href={href(`/jobs?queue=${queue.name}`)}>
          <Icon name="jobs" size={14} /> Jobs
        </a>
        <Act
          verb="Retry dead"
          on=""
          needs="jobs:retry"
          icon="retry"
          large
          press={() => retryDead(queue.name, again)}
        />
        <Act
          verb="Settings"
          on=""
          needs="queues:set"
          icon="gear"
          large
          press={() => settingsForm(queue, again)}
        />
        <Buttons of={[purging(queue, again), ...pausing(queue, again)]} on={queue.name} />
      </Head>
      <Standstill queue={queue} />
      <div class="tiles seven">
        <Tile
          name="Ready"
          value={<Count of={queue.ready} quiet={false} />}
          note={`oldest ${duration(queue.oldestMs)}`}
        />
        <Tile
          name="Running"
          value={number(queue.running)}
          note={
            queue.concurrency === null
              ? `of ${plural(queue.slots, "slot")}`
              : `of ${number(queue.concurrency)} at once, ${plural(queue.slots, "slot")}`
          }
        />
        <Tile
          name="Scheduled"
          value={<Count of={queue.scheduled} quiet={false} />}
          note={queue.nextAt === null ? "due later" : `the next ${ago(queue.nextAt, now.value)}`}
        />
        <Tile name="Waiting" value={<Count of={queue.waiting} quiet={false} />} note="for jobs or signals" />
        <Dead queue={queue.name} />
        <Tile
          name="Workers"
          value={number(queue.workers)}
          note={queue.quiet > 0 ? `serve it, ${number(queue.quiet)} quiet` : "serve it"}
        />
        <Tile name="State" {...stateOf(queue)} />
      </div>
      <TrendsPanel queue={queue.name}>
        {(marks) => <BacklogChart queue={queue.name} marks={marks} />}
      </TrendsPanel>
      <div class="grid aside">
        <div class="stack">
          <Panel title="Jobs by name">
            {queue.names.length === 0 ? (
              <Empty icon="jobs" title="No live jobs">
                <p>Names are listed while they have live jobs.</p>
              </Empty>
            ) : (
              <Table rows={queue.names} rowKey={({ name }) => name} columns={nameColumns(queue.name)} />
            )}
          </Panel>
          {queue.lanes.length > 0 && (
            <Panel
              title="Fullest lanes"
              note="by due jobs"
              tools={
                <a class="button small" href={href(`/limits?queue=${queue.name}`)}>
                  All lanes
                </a>
              }
            >
              <Table rows={queue.lanes} rowKey={({ lane }) => lane} columns={laneColumns(again)} />
            </Panel>
          )}
          <Panel title="Settings" note="over the whole cluster">
            <Table
              rows={settingLines(queue)}
              rowKey={({ label }) => label}
              columns={settingColumns(queue)}
              label="Settings of this queue"
            />
          </Panel>
        </div>
        <div class="stack">
          <Panel title="Workers of this queue">
            {queue.workersHere.length === 0 ? (
              <Empty icon="workers" title="No live worker serves this queue">
                <p>Its jobs wait for a worker.</p>
              </Empty>
            ) : (
              <Table rows={queue.workersHere} rowKey={({ id }) => id} columns={workerColumns(queue.name)} />
            )}
          </Panel>
        </div>
      </div>
    </>
  );
}

/** Counted up to a bound, with the query of the linked list. */
function Dead({ queue }: { queue: string }) {
  const { data } = useQuery(
    `dead ${queue}`,
    (signal) => get<JobCount>("/jobs/count", { state: "dead", queue }, signal),
    { sign: "overview" },
  );
  return (
    <Tile
      name="Dead"
      value={data === null ? "…" : <Count of={data.total} quiet={false} />}
      note="out of attempts"
      bad={data !== null && data.total.count > 0}
      to={href(`/jobs?state=dead&queue=${seg(queue)}`)}
    />
  );
}

/** Reasons why no job runs, and when they end. */
function Standstill({ queue: { standstill, ready } }: { queue: QueueDetail }) {
  if (standstill.length === 0) return null;
  const [first] = standstill;
  return (
    <div class={`banner ${ready.count > 0 ? "" : "info"}`} role="status">
      <Icon name={ready.count > 0 ? "dead" : "clock"} />
      {standstill.length === 1 && first !== undefined ? (
        <span>{said(first)}</span>
      ) : (
        <ul class="plain" aria-label="Why no job runs">
          {standstill.map((one) => (
            <li key={one.text}>{said(one)}</li>
          ))}
        </ul>
      )}
    </div>
  );
}

/** Instants in the page's format. */
function said({ text, until }: QueueDetail["standstill"][number]): string {
  const local = atPageTime(text);
  return until === null ? local : `${local.replace(/\.$/, "")} (${ago(until, now.value)}).`;
}

/** The backlog, measured once a minute. */
function BacklogChart({ queue, marks }: { queue: string; marks: readonly Mark[] }) {
  const query = useOverTime<Load>("/series/load", { queue, everyMs: 15_000 });
  return (
    <Panel title="Backlog" note={`ready jobs, ${timeNote()}`}>
      <Loaded query={query}>{(load) => <BacklogLine queue={queue} load={load} marks={marks} />}</Loaded>
    </Panel>
  );
}

function BacklogLine({ queue, load, marks }: { queue: string; load: Load; marks: readonly Mark[] }) {
  const tick = Math.floor(now.value / 10_000) * 10_000;
  const { at, ready } = useMemo(() => {
    const over = measuredOver([load.other], stepsOver(load, tick));
    return { at: load.at.slice(0, over), ready: (load.queues[0]?.ready ?? []).slice(0, over) };
  }, [load, tick]);
  return (
    <Chart
      title="Backlog"
      marks={marks}
      empty={
        ready.some((value) => value !== null)
          ? "No jobs were waiting."
          : "Nothing was measured in this time. Workers measure once a minute."
      }
      lead={leadsOf({ at, stepMs: load.stepMs }, () => ({ queue, more: "" }))}
      at={at}
      lines={[{ name: "Ready", values: ready, shown: number }]}
    />
  );
}

const sources = { code: "code", default: "default", set: "set by hand" } as const;

function settingColumns(queue: QueueDetail): Column<SettingLine>[] {
  return [
    { head: "Setting", cell: ({ label }) => label },
    {
      head: "Value",
      cell: ({ name, label, value, by }) => (
        <>
          <span class={by === "set" ? "" : "muted"}>{value}</span>{" "}
          <Used name={name} label={label} queue={queue} />
        </>
      ),
    },
    {
      head: "From",
      class: "muted",
      title: ({ by }) => (by === "set" ? "Set by the dashboard, the command line or hf.queues.set" : ""),
      cell: ({ by, back }) =>
        back === null ? (
          sources[by]
        ) : (
          <span class="tag warn">
            until {instant(back.untilAt)}, then {back.value}
          </span>
        ),
    },
  ];
}

/** Usage of a limit over the cluster. */
function Used({ name, label, queue }: { name: string; label: string; queue: QueueDetail }) {
  const [used, of] =
    name === "rate"
      ? [queue.rate?.used, queue.rate?.limit]
      : name === "concurrency"
        ? [queue.running, queue.concurrency]
        : [];
  if (used === undefined || of === undefined || of === null) return null;
  return (
    <span class="nowrap muted small">
      {number(used)} used <Gauge used={used} of={of} label={label} />
    </span>
  );
}

function workerColumns(queue: string): Column<QueueDetail["workersHere"][number]>[] {
  return [
    {
      head: "Worker",
      cell: ({ name, quiet }) => (
        <>
          <a class="main-link" href={href("/workers")}>
            {name}
          </a>{" "}
          {quiet && <State state="quiet" />}
        </>
      ),
    },
    {
      head: "Slots used",
      num: true,
      class: "nowrap",
      cell: ({ id, name, slots, running }) => (
        <>
          <a
            href={href(`/jobs?state=running&queue=${queue}&worker=${seg(id)}`)}
            aria-label={`${number(running)} jobs run by ${name}`}
          >
            {number(running)}
          </a>
          <span class="muted"> / {number(slots)}</span> <Gauge used={running} of={slots} label="Slots" />
        </>
      ),
    },
  ];
}

function laneColumns(again: () => void): Column<LaneLine>[] {
  return [
    {
      head: "Lane",
      cell: ({ queue, lane, paused, rateOpensAt }) => (
        <>
          <a class={nameClass(lane)} href={href(`/jobs?queue=${queue}&lane=${seg(lane)}`)}>
            {lane}
          </a>{" "}
          {paused && <State state="paused" />}
          {!paused && rateOpensAt !== null && <span class="tag warn">at its rate</span>}
        </>
      ),
    },
    { head: "Waiting", num: true, cell: ({ waiting }) => <Count of={waiting} /> },
    {
      head: "Running",
      num: true,
      class: "nowrap",
      cell: ({ running, concurrency }) => (
        <>
          {number(running)}
          {concurrency !== null && (
            <>
              <span class="muted"> / {number(concurrency)}</span>{" "}
              <Gauge used={running} of={concurrency} label="Concurrency" />
            </>
          )}
        </>
      ),
    },
    {
      head: "Rate",
      num: true,
      from: "medium",
      class: "muted nowrap",
      cell: ({ rate: known }) => (known === null ? "—" : rate(known)),
    },
    actionsColumn(({ queue, lane, paused }: LaneLine) => (
      <Do
        verb={paused ? "Resume" : "Pause"}
        on={lane}
        needs="limits:set"
        icon={paused ? "play" : "pause"}
        bare
        run={() => send("PATCH", `/lanes/${seg(queue)}/${seg(lane)}`, { paused: !paused })}
        done={paused ? `${lane} resumed` : `${lane} paused`}
        then={again}
      />
    )),
  ];
}

function stateOf(queue: QueueDetail): { value: string; note: string } {
  const { pausedAt, drainingAt, holds, breakers, coolUntil } = queue;
  if (pausedAt !== null) return { value: "Paused", note: `since ${instant(pausedAt)}` };
  if (drainingAt !== null) return { value: "Draining", note: `since ${instant(drainingAt)}` };
  if (holds.length > 0) return { value: "Held", note: `by ${holds.join(", ")}` };
  if (breakers.length > 0) return { value: "Broken", note: `breaker ${breakers.join(", ")}` };
  if (coolUntil !== null) return { value: "Cooling", note: `until ${instant(coolUntil)}` };
  return { value: "Open", note: "jobs may be claimed" };
}

function nameColumns(queue: string): Column<QueueDetail["names"][number]>[] {
  return [
    {
      head: "Name",
      cell: (kind) => (
        <>
          <a class="main-link" href={href(`/jobs?queue=${queue}&name=${kind.name}`)}>
            {kind.name}
          </a>{" "}
          {!kind.served && <span class={`tag ${kind.ready.count > 0 ? "bad" : ""}`}>no worker</span>}
        </>
      ),
    },
    { head: "Ready", num: true, cell: ({ ready }) => <Count of={ready} /> },
    { head: "Running", num: true, cell: ({ running }) => <Count of={running} /> },
    { head: "Scheduled", num: true, from: "medium", cell: ({ scheduled }) => <Count of={scheduled} /> },
    {
      head: "Oldest",
      num: true,
      from: "medium",
      class: "muted nowrap",
      cell: ({ oldestMs }) => duration(oldestMs),
    },
  ];
}
