// Queues, and one queue: what is in it, what keeps it from being claimed from, and its settings.
import type { QueueDetail, QueueLine, QueueTrends } from "../../../src/dashboard/contract.ts";
import { Act, Do, Field, openForm } from "../actions.tsx";
import { ApiFailure, get, seg, send } from "../api.ts";
import { Bars } from "../bars.tsx";
import { startBulk } from "../bulk.tsx";
import { clockTime, duration, instant, number, plural, rate, rateOf } from "../format.ts";
import { Icon } from "../icons.tsx";
import { Count, Empty, Gauge, Head, Loaded, now, State } from "../parts.tsx";
import { groupedQueues, prefixesOf, type QueueRow, queueRow } from "../queue-groups.ts";
import { href } from "../router.ts";
import { grouping, keptList } from "../settings.ts";
import { actionsColumn, type Column, Facts, Listing, Panel, Table, Tile } from "../table.tsx";
import { Trends } from "../trends.tsx";
import { useQuery } from "../use-query.ts";

interface Pausable {
  queue: Pick<QueueLine, "name" | "pausedAt" | "drainingAt">;
  again: () => void;
  large?: boolean;
}

/** One that drains can go on, or be paused at once. */
function PauseButtons({ queue, again, large = false }: Pausable) {
  const { name, pausedAt, drainingAt } = queue;
  const button = (verb: "Pause" | "Resume", icon: "pause" | "play") => (
    <Do
      verb={verb}
      on={name}
      needs="queues:pause"
      icon={icon}
      large={large}
      // In a row there is no room for three words.
      bare={!large}
      run={() => send("POST", `/queues/${seg(name)}/${verb.toLowerCase()}`)}
      done={`${name} is ${verb.toLowerCase()}d.`}
      then={again}
    />
  );
  return (
    <>
      {pausedAt === null && drainingAt === null && <DrainButton queue={queue} again={again} large={large} />}
      {(pausedAt !== null || drainingAt !== null) && button("Resume", "play")}
      {pausedAt === null && button("Pause", "pause")}
    </>
  );
}

function DrainButton({ queue: { name }, again, large = false }: Pausable) {
  return (
    <Do
      verb="Drain"
      on={name}
      needs="queues:pause"
      icon="drain"
      large={large}
      quiet={!large}
      bare={!large}
      title="Finish what is there, then pause"
      ask={
        <p>
          It goes on until nothing in it is due and nothing of it runs; then it is paused by itself. What is
          due later (scheduled jobs, retries in their wait, runs that sleep or wait) stays where it is, and
          what comes in meanwhile still runs. Resume ends it.
        </p>
      }
      run={() => send("POST", `/queues/${seg(name)}/drain`)}
      done={`${name} is draining.`}
      then={again}
    />
  );
}

const waitingColumn: Column<QueueRow> = {
  head: "Waiting",
  num: true,
  from: "wide",
  cell: ({ queue }) => <Count of={queue.waiting} />,
};

/** Groups that are folded, in this browser. */
const folded = keptList("folded-queues", (value): value is string => typeof value === "string");

function fold(prefix: string): void {
  const known = folded.value;
  folded.value = known.includes(prefix) ? known.filter((one) => one !== prefix) : [...known, prefix];
}

const trendMinutes = 30;

export function Queues() {
  const query = useQuery("queues", (signal) => get<{ queues: QueueLine[] }>("/queues", {}, signal), {
    live: true,
  });
  // A minute changes by the minute: it need not be asked for with every change.
  const tick = Math.floor(now.value / 15_000);
  const trends = useQuery(`trends ${tick}`, (signal) =>
    get<QueueTrends>("/series/queues", { minutes: trendMinutes }, signal),
  );
  const groups = query.data === null ? 0 : prefixesOf(query.data.queues).size;
  return (
    <>
      <Head title="Queues" note="Every queue that has jobs or settings.">
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
          rows={({ queues }) =>
            grouping.value === "on" ? groupedQueues(queues, folded.value) : queues.map(queueRow)
          }
          rowKey={({ key }: QueueRow) => key}
          row={({ group, within }) => ({
            class: group !== null ? "group-row" : within ? "in-group" : "",
          })}
          empty={{
            icon: "queues",
            title: "No queue yet",
            text: <p>A queue needs no creation: it is here as soon as a job or a setting names it.</p>,
          }}
          columns={[
            {
              head: "Queue",
              class: "nowrap",
              cell: ({ queue: { name }, group }) =>
                group === null ? (
                  <a class="main-link" href={href(`/queues/${name}`)}>
                    {name}
                  </a>
                ) : (
                  <button
                    type="button"
                    class="fold"
                    aria-expanded={group.open}
                    onClick={() => fold(group.prefix)}
                  >
                    <Icon name="next" size={13} />
                    <b>{group.prefix}*</b>
                    <span class="muted small">{plural(group.count, "queue")}</span>
                  </button>
                ),
            },
            {
              head: "State",
              cell: ({ queue, group }) => (group === null ? <QueueState queue={queue} /> : group.notes),
            },
            { head: "Ready", num: true, cell: ({ queue }) => <Count of={queue.ready} /> },
            {
              head: "Oldest",
              num: true,
              from: "medium",
              class: "muted nowrap",
              cell: ({ queue }) => duration(queue.oldestMs),
            },
            {
              head: "Running",
              num: true,
              from: "medium",
              class: "nowrap",
              cell: ({ queue: { running, slots } }) => (
                <>
                  {number(running)} <Gauge used={running} of={slots} label="Slots" />
                </>
              ),
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
              num: true,
              from: "medium",
              cell: ({ queue }) => <Count of={queue.scheduled} />,
            },
            ...(query.data?.queues.some(({ waiting: { count, more } }) => count > 0 || more) === true
              ? [waitingColumn]
              : []),
            { head: "Workers", num: true, from: "wide", cell: ({ queue }) => <Count of={queue.workers} /> },
            actionsColumn(({ queue, group }: QueueRow) =>
              group === null ? (
                <>
                  <PurgeButton queue={queue} again={query.again} />
                  <PauseButtons queue={queue} again={query.again} />
                </>
              ) : null,
            ),
          ]}
        />
      </section>
    </>
  );
}

function PurgeButton({
  queue,
  again,
  large = false,
}: {
  queue: QueueLine;
  again: () => void;
  large?: boolean;
}) {
  const some = [queue.ready, queue.scheduled, queue.waiting].some(({ count, more }) => count > 0 || more);
  if (!some) return null;
  return (
    <Act
      verb="Purge"
      on={queue.name}
      needs="jobs:delete"
      danger
      large={large}
      quiet={!large}
      bare={!large}
      icon="trash"
      title="Delete what has not started"
      press={() =>
        startBulk("purge", { state: ["ready", "scheduled", "waiting"], queue: [queue.name] }, again)
      }
    />
  );
}

/** What these queues' workers did, added up. */
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
      label="Attempts that ended, by the minute"
      height={20}
      looks="spark"
      name={(i) => clockTime(trends.from + i * trends.stepMs)}
    />
  );
}

/** Absent is not zero: where nothing ended, nothing is said. */
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
  // What keeps it from coming to its end is said as well.
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
  if (queue.unserved.length > 0)
    return <span class="tag bad">no worker for {queue.unserved.slice(0, 2).join(", ")}</span>;
  return <span class="muted">{queue.workers === 0 ? "no worker" : "open"}</span>;
}

export function QueueScreen({ name }: { name: string }) {
  const query = useQuery(`queue ${name}`, (signal) => get<QueueDetail>(`/queues/${seg(name)}`, {}, signal), {
    live: true,
  });
  if (query.data === null && query.error instanceof ApiFailure && query.error.status === 404)
    return (
      <section class="panel">
        <Empty icon="queues" title="No such queue">
          <p>No job and no setting names it.</p>
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
          press={() => startBulk("retry", { state: ["dead"], queue: [queue.name] }, again)}
        />
        <Act
          verb="Settings"
          on=""
          needs="queues:set"
          icon="gear"
          large
          press={() => settingsForm(queue, again)}
        />
        <PurgeButton queue={queue} again={again} large />
        <PauseButtons queue={queue} again={again} large />
      </Head>
      {queue.obstacles.length > 0 && (
        <div class={`banner ${queue.ready.count > 0 ? "" : "info"}`} role="status">
          <Icon name="dead" />
          <span>{queue.obstacles.join(" ")}</span>
        </div>
      )}
      <div class="tiles">
        <Tile
          name="Ready"
          value={<Count of={queue.ready} quiet={false} />}
          note={`oldest ${duration(queue.oldestMs)}`}
        />
        <Tile name="Running" value={number(queue.running)} note={`of ${plural(queue.slots, "slot")}`} />
        <Tile name="Scheduled" value={<Count of={queue.scheduled} quiet={false} />} note="due later" />
        <Tile name="Waiting" value={<Count of={queue.waiting} quiet={false} />} note="for jobs or signals" />
        <Tile name="Workers" value={number(queue.workers)} note="serve it" />
        <Tile name="State" {...stateOf(queue)} />
      </div>
      <Trends queue={queue.name} />
      <div class="grid aside">
        <Panel title="Kinds">
          {queue.kinds.length === 0 ? (
            <Empty icon="jobs" title="No live job is here">
              <p>Kinds are listed while they have jobs that have not ended.</p>
            </Empty>
          ) : (
            <Table rows={queue.kinds} rowKey={({ name }) => name} columns={kindColumns(queue.name)} />
          )}
        </Panel>
        <div class="stack">
          <Panel title="Settings" note="over the whole cluster">
            <Facts of={settingsOf(queue)} />
          </Panel>
          <Panel title="Workers of this queue">
            {queue.workersHere.length === 0 ? (
              <Empty icon="workers" title="No live worker serves it">
                <p>Its jobs are safe, and wait for one.</p>
              </Empty>
            ) : (
              <Facts of={queue.workersHere.map(({ name, slots }) => [name, plural(slots, "slot")])} />
            )}
          </Panel>
        </div>
      </div>
    </>
  );
}

function stateOf(queue: QueueDetail): { value: string; note: string } {
  const { pausedAt, drainingAt, holds, breakers, coolUntil } = queue;
  if (pausedAt !== null) return { value: "Paused", note: `since ${instant(pausedAt)}` };
  if (drainingAt !== null) return { value: "Draining", note: `since ${instant(drainingAt)}` };
  if (holds.length > 0) return { value: "Held", note: `by ${holds.join(", ")}` };
  if (breakers.length > 0) return { value: "Broken", note: `breaker ${breakers.join(", ")}` };
  if (coolUntil !== null) return { value: "Cooling", note: `until ${instant(coolUntil)}` };
  return { value: "Open", note: "may be claimed from" };
}

function kindColumns(queue: string): Column<QueueDetail["kinds"][number]>[] {
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
    { head: "Scheduled", num: true, cell: ({ scheduled }) => <Count of={scheduled} /> },
    { head: "Oldest", num: true, class: "muted nowrap", cell: ({ oldestMs }) => duration(oldestMs) },
  ];
}

function settingsOf({ settings }: QueueDetail): [string, string | number][] {
  const { cooldown, retention } = settings;
  return [
    ["Slots of each worker", settings.slots ?? "as started"],
    ["Concurrency", settings.concurrency ?? "unlimited"],
    ["Rate", settings.rate === null ? "unlimited" : rate(settings.rate)],
    ["Done kept", kept(retention?.doneMs)],
    ["Dead kept", kept(retention?.deadMs)],
    ["Cool-down", cooldown === null ? "off" : `${duration(cooldown.baseMs)} to ${duration(cooldown.maxMs)}`],
  ];
}

function kept(ms: number | undefined): string {
  if (ms === undefined) return "default";
  return ms === 0 ? "for ever" : duration(ms);
}

function settingsForm(queue: QueueDetail, again: () => void): void {
  const { slots, concurrency, rate: known, retention } = queue.settings;
  const seconds = (ms: number | undefined): string =>
    ms === undefined ? "" : ms === 0 ? "0" : `${ms / 1_000}s`;
  openForm({
    title: `Settings of ${queue.name}`,
    verb: "Save",
    then: again,
    body: (
      <>
        <p class="muted">Empty is the default. They take effect in every process within seconds.</p>
        <div class="grid two">
          <Field
            label="Slots of each worker"
            name="slots"
            inputMode="numeric"
            defaultValue={slots ?? ""}
            placeholder="as started"
          />
          <Field
            label="Concurrency over the cluster"
            name="concurrency"
            inputMode="numeric"
            defaultValue={concurrency ?? ""}
            placeholder="unlimited"
          />
          <Field
            label="Rate"
            name="rate"
            defaultValue={known === null ? "" : `${known.limit} per ${known.perMs / 1_000}s`}
            placeholder="100 per 1m"
          />
          <Field label="For how long" name="for" placeholder="for good; or 30m, 4h, 2d" />
          <Field
            label="Keep done jobs"
            name="done"
            defaultValue={seconds(retention?.doneMs)}
            placeholder="7d"
          />
          <Field
            label="Keep dead jobs"
            name="dead"
            defaultValue={seconds(retention?.deadMs)}
            placeholder="30d"
          />
        </div>
      </>
    ),
    run: async (fields) => {
      const done = fields.text("done");
      const dead = fields.text("dead");
      const delay = fields.text("for");
      await send("PATCH", `/queues/${seg(queue.name)}`, {
        ...(delay === undefined ? {} : { for: delay }),
        slots: fields.number("slots") ?? null,
        concurrency: fields.number("concurrency") ?? null,
        rate: rateOf(fields.text("rate")),
        retention:
          done === undefined && dead === undefined
            ? null
            : { ...(done === undefined ? {} : { done }), ...(dead === undefined ? {} : { dead }) },
      });
      return "The settings hold in every process.";
    },
  });
}
