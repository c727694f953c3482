// How everything is, at a glance: a verdict in one sentence, then what it rests on.
import { useMemo } from "preact/hooks";
import type { ErrorGroups, Overview as OverviewJson, StuckList } from "../../../src/dashboard/contract.ts";
import { get } from "../api.ts";
import { Chart } from "../lazy-chart.tsx";
import { LoadCharts } from "../load-charts.tsx";
import { count, duration, number, plural } from "../format.ts";
import { Icon, type IconName } from "../icons.tsx";
import { overview, past, points } from "../live.ts";
import { Ago, Count, Empty, Gauge, Head, JobLink, Loaded, now } from "../parts.tsx";
import { href } from "../router.ts";
import { Panel, Table, Tile } from "../table.tsx";
import { Trends } from "../trends.tsx";
import { useQuery } from "../use-query.ts";

const lamps: Readonly<Record<string, IconName>> = {
  good: "check",
  warn: "clock",
  bad: "dead",
  idle: "pause",
};

export function Overview() {
  const now = overview.value;
  if (now === null)
    return (
      <>
        <Head title="Overview" />
        <div class="empty" role="status">
          <p>Waiting for the first look at the database…</p>
        </div>
      </>
    );
  return (
    <>
      <Head title="Overview" />
      <div class={`verdict ${now.verdict.level}`} role="status">
        <span class="lamp">
          <Icon name={lamps[now.verdict.level] ?? "dot"} />
        </span>
        {now.verdict.text}
      </div>
      <Tiles now={now} />
      <Trends>
        <Backlog />
        <LoadCharts />
      </Trends>
      <StuckPanel />
      <div class="grid two">
        <QueuePanel now={now} />
        <FailurePanel />
      </div>
    </>
  );
}

function Tiles({ now }: { now: OverviewJson }) {
  const { totals } = now;
  return (
    <div class="tiles">
      <Tile
        name="Ready"
        to={href("/jobs?state=ready")}
        value={count(totals.ready)}
        note={`oldest waits ${duration(now.oldestMs)}`}
      />
      <Tile
        name="Running"
        to={href("/jobs?state=running")}
        value={number(totals.running)}
        note={now.slots === 0 ? "no slots" : `of ${plural(now.slots, "slot")}`}
      />
      <Tile
        name="Scheduled"
        to={href("/scheduled")}
        value={count(totals.scheduled)}
        note={totals.waiting.count > 0 ? `${count(totals.waiting)} wait for others` : "due later"}
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
      <Tile
        name="Workers"
        to={href("/workers")}
        value={number(now.workers)}
        note={plural(now.queueCount, "queue")}
        bad={now.workers === 0}
      />
    </div>
  );
}

/** What the live stream has seen: as long as somebody watches. */
function Backlog() {
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
        <span class="muted small">live, since somebody watches; at most 15 minutes</span>
      </header>
      <Chart
        title="Backlog"
        at={at}
        lines={[
          { name: "Ready", values: values[0] ?? [], shown: number },
          { name: "Running", values: values[1] ?? [], shown: number },
        ]}
      />
    </section>
  );
}

/** While nobody watched nothing was seen: a gap, not a line across it. */
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

/** Jobs that run much longer than others of their kind; nothing where there are none. */
function StuckPanel() {
  const query = useQuery(`stuck ${Math.floor(now.value / 10_000)}`, (signal) =>
    get<StuckList>("/stuck", {}, signal),
  );
  const jobs = query.data?.jobs ?? [];
  if (jobs.length === 0) return null;
  return (
    <Panel title="Running unusually long" note="more than three times as long as 95 % of their kind">
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

function QueuePanel({ now }: { now: OverviewJson }) {
  return (
    <Panel
      title="Busiest queues"
      tools={
        <a class="link small" href={href("/queues")}>
          All {number(now.queueCount)}
        </a>
      }
    >
      {now.queues.length === 0 ? (
        <Empty icon="queues" title="No job yet">
          <p>Enqueue one, and this page shows it within a second.</p>
          <pre class="code">{`import { open } from "holdfast";\n\nconst hf = await open();\nawait hf.enqueue("send-mail", { to: "a@example.org" });`}</pre>
        </Empty>
      ) : (
        <Table
          rows={now.queues.slice(0, 8)}
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
      )}
    </Panel>
  );
}

function FailurePanel() {
  const query = useQuery("overview-errors", (signal) => get<ErrorGroups>("/errors", {}, signal), {
    live: true,
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
          // A cause whose jobs are gone is told on the page of failures, not here.
          const groups = all.filter(({ dead, retrying }) => dead + retrying > 0);
          return groups.length === 0 ? (
            <Empty icon="check" title="Nothing has failed">
              <p>Dead and retrying jobs are grouped here by what they failed of.</p>
            </Empty>
          ) : (
            <table class="fixed">
              <thead>
                <tr>
                  <th scope="col">Error</th>
                  <th scope="col" class="num" style={{ width: "84px" }}>
                    Jobs
                  </th>
                  <th scope="col" class="num" style={{ width: "96px" }}>
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
