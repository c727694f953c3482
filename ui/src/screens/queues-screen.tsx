// Queues: counts, limits, recent throughput. queue-screen.tsx shows one.
import type { QueueLine, QueueTrends } from "../../../src/dashboard/api/contract.ts";
import { get } from "../data/api.ts";
import { Bars } from "../charts/bars.tsx";
import { clockTime, duration, number, plural, rate } from "../kit/format.ts";
import { Icon } from "../kit/icons.tsx";
import { Count, Gauge, nameClass, State } from "../kit/labels.tsx";
import { Head } from "../kit/panels.tsx";
import { queueActions } from "../queues/queue-actions.tsx";
import { groupedQueues, notesOf, prefixesOf, queueRow, type QueueRow } from "../queues/queue-groups.ts";
import { href } from "../data/router.ts";
import { grouping, keptList } from "../data/page-settings.ts";
import { arrange, type Column, Listing, menuColumn } from "../kit/table.tsx";
import { useQuery } from "../data/live-query.ts";

const waitingColumn: Column<QueueRow> = {
  head: "Waiting",
  by: ({ queue }) => queue.waiting,
  num: true,
  from: "wide",
  cell: ({ queue }) => <Count of={queue.waiting} />,
};

/** The used part of the rate in the current window. */
const rateColumn: Column<QueueRow> = {
  head: "Rate used",
  by: ({ queue }) => (queue.rate === null ? null : queue.rate.used / queue.rate.limit),
  num: true,
  from: "wide",
  class: "nowrap",
  title: ({ queue }) => (queue.rate === null ? "" : `at most ${rate(queue.rate)}`),
  cell: ({ queue: { rate: known } }) =>
    known === null ? (
      <span class="muted">—</span>
    ) : (
      <>
        {number(known.used)} <Gauge used={known.used} of={known.limit} label="Rate" />
      </>
    ),
};

/** Relative to the limit over the cluster, else to the workers' slots. */
function Running({ queue: { running, slots, concurrency } }: { queue: QueueLine }) {
  return (
    <>
      {number(running)}
      {concurrency !== null && <span class="muted"> / {number(concurrency)}</span>}{" "}
      <Gauge
        used={running}
        of={concurrency ?? slots}
        label={concurrency === null ? "Slots" : "Concurrency"}
      />
    </>
  );
}

/** Folded groups, kept in this browser. */
const folded = keptList("folded-queues", (value): value is string => typeof value === "string");

function fold(prefix: string): void {
  const known = folded.value;
  folded.value = known.includes(prefix) ? known.filter((one) => one !== prefix) : [...known, prefix];
}

const trendMinutes = 30;

export function QueuesScreen() {
  const query = useQuery("queues", (signal) => get<{ queues: QueueLine[] }>("/queues", {}, signal), {
    topic: "queues",
  });
  const trends = useQuery(
    "trends",
    (signal) => get<QueueTrends>("/series/queues", { minutes: trendMinutes }, signal),
    { topic: "trends" },
  );
  const groups = query.data === null ? 0 : prefixesOf(query.data.queues).size;
  const columns: Column<QueueRow>[] = [
    {
      head: "Queue",
      by: ({ queue }) => queue.name,
      class: "nowrap",
      cell: ({ queue: { name }, group }) =>
        group === null ? (
          <a class={nameClass(name)} href={href(`/queues/${name}`)}>
            {name}
          </a>
        ) : (
          <button type="button" class="fold" aria-expanded={group.open} onClick={() => fold(group.prefix)}>
            <Icon name="next" size={13} />
            <b>{group.prefix}*</b>
            <span class="muted small">{plural(group.count, "queue")}</span>
          </button>
        ),
    },
    {
      head: "State",
      by: ({ queue }) => notesOf([queue]),
      cell: ({ queue, group }) => (group === null ? <QueueState queue={queue} /> : group.notes),
    },
    {
      head: "Ready",
      by: ({ queue }) => queue.ready,
      num: true,
      cell: ({ queue }) => <Count of={queue.ready} />,
    },
    {
      head: "Oldest",
      by: ({ queue }) => queue.oldestMs,
      num: true,
      from: "medium",
      class: "muted nowrap",
      cell: ({ queue }) => duration(queue.oldestMs),
    },
    {
      head: "Running",
      by: ({ queue }) => queue.running,
      num: true,
      from: "medium",
      class: "nowrap",
      cell: ({ queue }) => <Running queue={queue} />,
    },
    {
      head: `Last ${trendMinutes} min`,
      from: "medium",
      class: "nowrap",
      cell: ({ members }) => (
        <span class="trend">
          <Spark of={members} trends={trends.data} />
          <FailedShare of={members} trends={trends.data} />
        </span>
      ),
    },
    {
      head: "Scheduled",
      by: ({ queue }) => queue.scheduled,
      num: true,
      from: "medium",
      cell: ({ queue }) => <Count of={queue.scheduled} />,
    },
    {
      head: "Workers",
      by: ({ queue }) => queue.workers,
      num: true,
      from: "wide",
      cell: ({ queue }) => <Count of={queue.workers} />,
    },
    ...(query.data?.queues.some(({ rate: known }) => known !== null) === true ? [rateColumn] : []),
    ...(query.data?.queues.some(({ waiting: { count, more } }) => count > 0 || more) === true
      ? [waitingColumn]
      : []),
    menuColumn(
      ({ queue }: QueueRow) => queue.name,
      ({ queue, group }) => (group === null ? queueActions(queue, query.again) : []),
    ),
  ];
  return (
    <>
      <Head title="Queues" note="Queues with jobs or settings.">
        {groups > 0 && (
          <button
            type="button"
            class="button"
            aria-pressed={grouping.value === "on"}
            onClick={() => (grouping.value = grouping.value === "on" ? "off" : "on")}
          >
            <Icon name="queues" size={14} /> Group by prefix
          </button>
        )}
      </Head>
      <section class="panel" aria-label="Queues">
        <Listing
          query={query}
          rows={({ queues }) => {
            const rows = arrange(queues.map(queueRow), columns, "sort");
            // A group takes the place of its first queue.
            return grouping.value === "on"
              ? groupedQueues(
                  rows.map(({ queue }) => queue),
                  folded.value,
                )
              : rows;
          }}
          rowKey={({ key }: QueueRow) => key}
          row={({ group, within }) => ({
            class: group !== null ? "group-row" : within ? "in-group" : "",
          })}
          empty={{
            icon: "queues",
            title: "No queues yet",
            text: <p>A queue appears as soon as a job or a setting names it.</p>,
          }}
          columns={columns}
          sort="sort"
          arranged
        />
      </section>
    </>
  );
}

/** The sum over the workers of these queues. */
function summed(of: readonly string[], trends: QueueTrends): { done: number[]; failed: number[] } | null {
  const known = of.flatMap((name) => trends.queues[name] ?? []);
  const [first] = known;
  if (first === undefined) return null;
  const add = (kind: "done" | "failed") =>
    first[kind].map((_, i) => known.reduce((sum, one) => sum + (one[kind][i] ?? 0), 0));
  return { done: add("done"), failed: add("failed") };
}

function Spark({ of, trends }: { of: readonly string[]; trends: QueueTrends | null }) {
  if (trends === null) return null;
  const sums = summed(of, trends);
  if (sums === null) return <span class="muted">—</span>;
  const all = sums.done.map((n, i) => n + (sums.failed[i] ?? 0));
  return (
    <Bars
      of={all}
      bad={sums.failed}
      label="Attempts ended, per minute"
      height={20}
      looks="spark"
      name={(i) => clockTime(trends.from + i * trends.stepMs)}
    />
  );
}

/** No measurement is not zero. */
function FailedShare({ of, trends }: { of: readonly string[]; trends: QueueTrends | null }) {
  const sums = trends === null ? null : summed(of, trends);
  if (sums === null) return null;
  const failed = sums.failed.reduce((sum, n) => sum + n, 0);
  const all = sums.done.reduce((sum, n) => sum + n, failed);
  if (all === 0) return null;
  const percent = (failed / all) * 100;
  if (failed === 0) return null;
  const text = percent < 1 ? "< 1 %" : `${Math.round(percent)} %`;
  return (
    <span
      class={`small ${percent >= 5 ? "bad-text" : "muted"}`}
      title={`${number(failed)} of ${number(all)} attempts failed`}
    >
      {text} failed
    </span>
  );
}

function QueueState({ queue }: { queue: QueueLine }) {
  if (queue.pausedAt !== null) return <State state="paused" />;
  if (queue.drainingAt === null) return <Openness queue={queue} />;
  // Includes the reason why a drain does not finish.
  return (
    <>
      <State state="draining" /> <Openness queue={queue} />
    </>
  );
}

function Openness({ queue }: { queue: QueueLine }) {
  if (queue.holds.length > 0) return <span class="tag warn">held by {queue.holds.join(", ")}</span>;
  if (queue.breakers.length > 0) return <span class="tag bad">breaker open</span>;
  if (queue.coolUntil !== null) return <span class="tag warn">cooling down</span>;
  if (queue.workers === 0 && queue.quiet > 0)
    return <span class={queue.unserved.length > 0 ? "tag bad" : "tag warn"}>workers quiet</span>;
  if (queue.unserved.length > 0)
    return <span class="tag bad">no worker for {queue.unserved.slice(0, 2).join(", ")}</span>;
  return <span class="muted">{queue.workers === 0 ? "no worker" : "open"}</span>;
}
