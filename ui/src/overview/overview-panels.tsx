// The second half of the overview: workers, the last day, slowest jobs, recent operator actions.
import type {
  AuditLine,
  JobCount,
  Overview,
  Series,
  SlowNames,
} from "../../../src/dashboard/api/contract.ts";
import { get, seg } from "../data/api.ts";
import { plural, within } from "../text/quantities.ts";
import { count, duration, number } from "../kit/format.ts";
import { may, overview } from "../data/live-stream.ts";
import { Ago } from "../kit/labels.tsx";
import { liveNow } from "../data/page-clock.ts";
import { Empty, Loaded, Panel, Tile } from "../kit/panels.tsx";
import { href } from "../data/router.ts";
import { Table } from "../kit/table.tsx";
import { useQuery } from "../data/live-query.ts";

const minuteMs = 60_000;
const dayMs = 86_400_000;
const unknown = "a minute appears when it is complete";
/** Minutes that count as now. */
const lately = 5;

/** By the database's clock, rounded to a minute, because the query depends on it. */
function thisMinute(): number {
  return Math.floor((overview.value?.at ?? 0) / minuteMs) * minuteMs;
}

const sum = (list: readonly number[]): number => list.reduce((all, n) => all + n, 0);

const snippet = `import { defineJob, open } from "holdfast";

const hf = await open();
const sendMail = defineJob({
  name: "send-mail",
  run: async ({ to }: { to: string }) => console.log("sent to", to),
});
hf.work([sendMail], { queues: ["default"] });
await hf.enqueue(sendMail, { to: "a@example.org" });`;

/** Shown while no job has ever existed. */
export function FirstRun() {
  return (
    <section class="panel" aria-label="Getting started">
      <Empty icon="jobs" title="No jobs yet">
        <p>Run this on the same database. The job appears here within a second.</p>
        <pre class="code">{snippet}</pre>
      </Empty>
    </section>
  );
}

/** Workers, throughput, success and deaths of a day. Unmeasured values are a dash, not 0. */
export function DayTiles({ now: standing }: { now: Overview }) {
  const to = thisMinute();
  const now = useQuery(`tiles now ${to}`, (signal) =>
    get<Series>("/series", { from: to - lately * minuteMs, to }, signal),
  );
  const day = useQuery(`tiles day ${to}`, (signal) =>
    get<Series>("/series", { from: to - dayMs, to }, signal),
  );
  const ended = (series: Series): number => sum(series.done) + sum(series.retried) + sum(series.dead);
  // A minute counts when it is complete; before the first, values are unknown.
  const measured = day.data !== null && ended(day.data) > 0;
  const done = measured && now.data !== null ? sum(now.data.done) : null;
  const attempts = measured && now.data !== null ? ended(now.data) : null;
  const failed = attempts === null || done === null ? null : attempts - done;
  const died = useQuery(`tiles died ${to}`, (signal) =>
    get<JobCount>("/jobs/count", { state: "dead", ended: `>=${to - dayMs}` }, signal),
  );
  // Counted among today's dead jobs, so that it never exceeds the count of dead jobs.
  const dead = died.data === null ? null : within(died.data.total, standing.totals.dead);
  return (
    <div class="tiles four">
      <Tile
        name="Workers"
        to={href("/workers")}
        value={number(standing.workers)}
        note={standing.quiet > 0 ? `${number(standing.quiet)} quiet` : plural(standing.queueCount, "queue")}
        bad={standing.workers === standing.quiet}
      />
      <Tile
        name="Throughput"
        to={href("/jobs?state=done")}
        value={done === null ? "—" : `${number(Math.round(done / lately))} / min`}
        note={done === null ? unknown : `done in the last ${lately} min`}
      />
      <Tile
        name="Success"
        to={href("/errors")}
        value={attempts === null || attempts === 0 ? "—" : percent((done ?? 0) / attempts)}
        note={
          attempts === null
            ? unknown
            : attempts === 0
              ? `no attempt ended in ${lately} min`
              : `of attempts in the last ${lately} min`
        }
        bad={attempts !== null && attempts > 0 && (failed ?? 0) / attempts > 0.1}
      />
      <Tile
        name="Died in 24 h"
        to={href("/errors")}
        value={dead === null ? "—" : count(dead)}
        note="still dead"
        bad={dead !== null && dead.count > 0}
      />
    </div>
  );
}

/** Never 100 % with a failure. */
function percent(share: number): string {
  const shown = Math.floor(share * 1_000) / 10;
  return `${shown === 100 ? 100 : shown.toFixed(1)} %`;
}

export function SlowPanel() {
  const query = useQuery(`slowest ${Math.floor(liveNow.value / minuteMs)}`, (signal) =>
    get<SlowNames>("/slowest", {}, signal),
  );
  return (
    <Panel title="Slowest jobs" note="p95 of attempts, last 24 h">
      <Loaded query={query}>
        {({ names }) =>
          names.length === 0 ? (
            <Empty icon="clock" title="No data yet">
              <p>Workers report once a minute. Data appears after the first job.</p>
            </Empty>
          ) : (
            <Table
              rows={names}
              rowKey={({ name }) => name}
              columns={[
                {
                  head: "Job",
                  cell: ({ name }) => (
                    <a class="main-link" href={href(`/jobs?name=${seg(name)}`)}>
                      {name}
                    </a>
                  ),
                },
                { head: "p95", num: true, class: "nowrap", cell: ({ p95Ms }) => duration(p95Ms) },
                { head: "Attempts", num: true, class: "muted", cell: ({ count }) => number(count) },
              ]}
            />
          )
        }
      </Loaded>
    </Panel>
  );
}

export function ActivityPanel() {
  // Requested with permission only.
  return may("audit:view") ? <Activity /> : null;
}

function Activity() {
  const query = useQuery(
    "activity",
    (signal) => get<{ entries: readonly AuditLine[] }>("/audit", { limit: 6 }, signal),
    { topic: "activity" },
  );
  return (
    <Panel
      title="Recent operator actions"
      tools={
        <a class="link small" href={href("/audit")}>
          All
        </a>
      }
    >
      <Loaded query={query}>
        {({ entries }) =>
          entries.length === 0 ? (
            <Empty icon="audit" title="No actions yet">
              <p>Operator actions are kept for 90 days.</p>
            </Empty>
          ) : (
            <Table
              rows={entries}
              rowKey={({ id }) => String(id)}
              columns={[
                {
                  head: "Action",
                  style: { maxWidth: "240px" },
                  cell: ({ action, target, outcome }) => (
                    <>
                      <b>{action}</b> <span class="muted small">{outcome}</span>
                      <span class="sub clip">{target ?? ""}</span>
                    </>
                  ),
                },
                { head: "Actor", class: "clip", cell: ({ actor }) => actor },
                { head: "Time", num: true, class: "muted nowrap", cell: ({ at }) => <Ago at={at} /> },
              ]}
            />
          )
        }
      </Loaded>
    </Panel>
  );
}
