// The overview: one verdict, then the figures behind it.
import { useMemo } from "preact/hooks";
import type {
  FailureGroups,
  Overview as OverviewJson,
  QueueLine,
  StuckList,
} from "../../../src/dashboard/api/contract.ts";
import { get } from "../data/api.ts";
import { Chart, type Mark } from "../charts/lazy-chart.tsx";
import { lazily } from "../kit/lazy-component.tsx";
import { LoadCharts } from "../charts/load-charts.tsx";
import { count, duration, number, plural } from "../kit/format.ts";
import { Icon, type IconName } from "../kit/icons.tsx";
import { overview, past, points } from "../data/live-stream.ts";
import { Ago, Count, Gauge, JobLink } from "../kit/labels.tsx";
import { Empty, Head, Loaded, Panel, Tile } from "../kit/panels.tsx";
import { now } from "../data/page-clock.ts";
import { href } from "../data/router.ts";
import { Table } from "../kit/table.tsx";
import { TrendsPanel } from "../charts/trend-charts.tsx";
import { useQuery } from "../data/live-query.ts";

// Loaded after the rest.
const panels = () => import("../overview/overview-panels.tsx");
const nothing = () => null;
const DayTiles = lazily<{ now: OverviewJson }>(() => panels().then((part) => part.DayTiles), nothing);
const SlowPanel = lazily(() => panels().then((part) => part.SlowPanel), nothing);
const ActivityPanel = lazily(() => panels().then((part) => part.ActivityPanel), nothing);
const FirstRun = lazily(() => panels().then((part) => part.FirstRun), nothing);

/** The threshold of the verdict (src/dashboard/api/overview.ts). */
const lateMs = 60_000;

const verdictIcons: Readonly<Record<string, IconName>> = {
  good: "check",
  warn: "clock",
  bad: "dead",
  idle: "pause",
};

export function OverviewScreen() {
  const now = overview.value;
  if (now === null)
    return (
      <>
        <Head title="Overview" />
        <div class="empty" role="status">
          <p>Reading the database…</p>
        </div>
      </>
    );
  return (
    <>
      <Head title="Overview" />
      <div class={`verdict ${now.verdict.level}`} role="status">
        <span class="verdict-icon">
          <Icon name={verdictIcons[now.verdict.level] ?? "dot"} />
        </span>
        <span>
          {now.verdict.parts.map(({ text, to }) =>
            to === null ? (
              text
            ) : (
              <a key={to} class="link" href={href(to)}>
                {text}
              </a>
            ),
          )}
        </span>
      </div>
      {now.queueCount === 0 ? <FirstRun /> : <Standing now={now} />}
    </>
  );
}

function Standing({ now }: { now: OverviewJson }) {
  return (
    <>
      <Tiles now={now} />
      <DayTiles now={now} />
      <TrendsPanel>
        {(marks) => (
          <>
            <Backlog marks={marks} />
            <LoadCharts marks={marks} />
          </>
        )}
      </TrendsPanel>
      <StuckPanel />
      <div class="grid two">
        <QueuePanel now={now} />
        <FailurePanel />
        <SlowPanel />
        <ActivityPanel />
      </div>
    </>
  );
}

function Tiles({ now }: { now: OverviewJson }) {
  const { totals } = now;
  return (
    <div class="tiles">
      <Tile
        name="Oldest ready"
        to={href("/jobs?state=ready")}
        value={duration(now.oldestMs)}
        note={now.oldestMs === null ? "nothing waits" : "waiting time"}
        bad={(now.oldestMs ?? 0) > lateMs}
      />
      <Tile name="Ready" to={href("/jobs?state=ready")} value={count(totals.ready)} note="due, not started" />
      <Tile
        name="Running"
        to={href("/jobs?state=running")}
        value={number(totals.running)}
        note={
          now.slots === 0
            ? "no slots"
            : // Workers claim ahead of their slots.
              `${totals.running > now.slots ? "claimed," : "of"} ${plural(now.slots, "slot")}`
        }
      />
      <Tile
        name="Scheduled"
        to={href("/scheduled")}
        value={count(totals.scheduled)}
        note={totals.waiting.count > 0 ? `and ${count(totals.waiting)} waiting` : "due later"}
      />
      <Tile
        name="Retrying"
        to={href("/retries")}
        value={count(totals.retrying)}
        note="failed, will try again"
      />
      <Tile
        name="Dead"
        to={href("/errors")}
        value={count(totals.dead)}
        note="out of attempts"
        bad={totals.dead.count > 0}
      />
    </div>
  );
}

/** Counts seen by the live stream while the page was open. */
function Backlog({ marks }: { marks: readonly Mark[] }) {
  const before = past.value;
  const since = points.value;
  const { at, values } = useMemo(() => {
    const start = since[0]?.at ?? Infinity;
    const older = (before?.at ?? [])
      .map((_, i) => i)
      .filter((i) => (before?.at[i] ?? Infinity) < start - 500);
    const pick = (list: readonly number[] | undefined): number[] => older.map((i) => list?.[i] ?? 0);
    const at = [...pick(before?.at), ...since.map((one) => one.at)];
    const ready = [...pick(before?.ready), ...since.map(({ totals }) => totals.ready.count)];
    const running = [...pick(before?.running), ...since.map(({ totals }) => totals.running)];
    return gapped(at, [ready, running]);
  }, [before, since]);
  return (
    <section class="panel" aria-label="Backlog">
      <header>
        <h2>Backlog</h2>
        <span class="muted small">live while watched, up to 15 minutes</span>
      </header>
      <Chart
        title="Backlog"
        marks={marks.filter((mark) => mark.at >= (at[0] ?? Infinity))}
        at={at}
        lines={[
          { name: "Ready", values: values[0] ?? [], shown: number },
          { name: "Running", values: values[1] ?? [], shown: number },
        ]}
      />
    </section>
  );
}

/** Time without a viewer is a gap, not a line. */
function gapped(
  at: readonly number[],
  lists: readonly (readonly number[])[],
): { at: number[]; values: (number | null)[][] } {
  const moments: number[] = [];
  const values: (number | null)[][] = lists.map(() => []);
  for (const [i, ms] of at.entries()) {
    const before = moments.at(-1);
    if (before !== undefined && ms - before > 8_000) {
      moments.push(before + 1);
      for (const list of values) list.push(null);
    }
    moments.push(ms);
    for (const [n, list] of values.entries()) list.push(lists[n]?.[i] ?? null);
  }
  return { at: moments, values };
}

/** Jobs that run far longer than usual. Hidden without such jobs. */
function StuckPanel() {
  const query = useQuery("stuck", (signal) => get<StuckList>("/stuck", {}, signal), { topic: "stuck" });
  const jobs = query.data?.jobs ?? [];
  if (jobs.length === 0) return null;
  return (
    <Panel title="Running unusually long" note="longer than three times the job's usual p95">
      <Table
        rows={jobs.slice(0, 8)}
        rowKey={({ id }) => id}
        columns={[
          {
            head: "Job",
            cell: ({ id, name, queue }) => (
              <>
                <JobLink id={id}>{name}</JobLink>
                <span class="sub">in {queue}</span>
              </>
            ),
          },
          { head: "Runs for", num: true, cell: ({ startedAt }) => duration(now.value - startedAt) },
          { head: "Usual (p95)", num: true, class: "muted", cell: ({ p95Ms }) => duration(p95Ms) },
          {
            head: "Worker",
            from: "medium",
            class: "mono small",
            cell: ({ workerId }) => workerId ?? "—",
          },
        ]}
      />
    </Panel>
  );
}

/** Stopped or late queues come before busy ones. */
function needsLook({ ready, pausedAt, holds, breakers, unserved, oldestMs }: QueueLine): boolean {
  const stopped = pausedAt !== null || holds.length > 0 || breakers.length > 0 || (oldestMs ?? 0) > lateMs;
  return unserved.length > 0 || (ready.count > 0 && stopped);
}

function work({ ready, running }: QueueLine): number {
  return ready.count + running;
}

function QueuePanel({ now }: { now: OverviewJson }) {
  const first = now.queues.filter(needsLook);
  const others = now.queues.filter((queue) => !needsLook(queue)).toSorted((a, b) => work(b) - work(a));
  const busy = others.filter((queue) => work(queue) > 0);
  // If all queues are idle, any are shown.
  const shown = [...first, ...(first.length + busy.length > 0 ? busy : others)].slice(0, 8);
  return (
    <Panel
      title={first.length > 0 ? "Queues that need attention" : "Busiest queues"}
      tools={
        <a class="link small" href={href("/queues")}>
          All {number(now.queueCount)}
        </a>
      }
    >
      <Table
        rows={shown}
        rowKey={({ name }) => name}
        columns={[
          {
            head: "Queue",
            cell: (queue) => (
              <>
                <a class="main-link" href={href(`/queues/${queue.name}`)}>
                  {queue.name}
                </a>{" "}
                {queue.pausedAt !== null && <span class="tag warn">paused</span>}{" "}
                {queue.drainingAt !== null && <span class="tag warn">draining</span>}{" "}
                {queue.holds.length > 0 && <span class="tag warn">held</span>}{" "}
                {queue.breakers.length > 0 && <span class="tag bad">breaker open</span>}{" "}
                {queue.unserved.length > 0 && <span class="tag bad">no worker</span>}
              </>
            ),
          },
          { head: "Ready", num: true, cell: ({ ready }) => <Count of={ready} /> },
          {
            head: "Oldest",
            num: true,
            class: "muted nowrap",
            cell: ({ oldestMs }) => duration(oldestMs),
          },
          {
            head: "Running",
            num: true,
            class: "nowrap",
            cell: ({ running, slots }) => (
              <>
                {running} <Gauge used={running} of={slots} label="Slots" />
              </>
            ),
          },
        ]}
      />
    </Panel>
  );
}

function FailurePanel() {
  const query = useQuery("overview-errors", (signal) => get<FailureGroups>("/errors", {}, signal), {
    topic: "errors",
  });
  return (
    <section class="panel" aria-label="Top failures">
      <header>
        <h2>Top failures</h2>
        <span class="spring" />
        <a class="link small" href={href("/errors")}>
          All
        </a>
      </header>
      <Loaded query={query}>
        {({ groups: all }) => {
          // Groups without jobs are on the failures screen only.
          const groups = all.filter(({ dead, retrying }) => dead + retrying > 0);
          return groups.length === 0 ? (
            <Empty icon="check" title="No failures">
              <p>Dead and retrying jobs, grouped by failure.</p>
            </Empty>
          ) : (
            <table class="fixed">
              <thead>
                <tr>
                  <th scope="col">Error</th>
                  <th scope="col" class="num" style={{ width: "72px" }}>
                    Jobs
                  </th>
                  <th scope="col" class="num" style={{ width: "116px" }}>
                    Last
                  </th>
                </tr>
              </thead>
              <tbody>
                {groups.slice(0, 6).map((group) => (
                  <tr key={group.group + group.queue}>
                    <td>
                      <a
                        class="main-link clip"
                        style={{ display: "block" }}
                        href={href(`/errors/${group.group}`)}
                      >
                        {group.message ?? "(hidden)"}
                      </a>
                      <span class="sub clip">{group.name}</span>
                    </td>
                    <td class="num">{number(group.dead + group.retrying)}</td>
                    <td class="num muted">
                      <Ago at={group.lastAt} />
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          );
        }}
      </Loaded>
    </section>
  );
}
