// Queue limits over the cluster: usage and holders.
import type { JobLine, JobList, LimitUse } from "../../../src/dashboard/api/contract.ts";
import { Bars } from "../charts/bars.tsx";
import { get, seg, send } from "../data/api.ts";
import { useQuery } from "../data/live-query.ts";
import { href } from "../data/router.ts";
import type { Action } from "../kit/actions.tsx";
import { InfoDialog, showDialog } from "../kit/dialogs.tsx";
import { clockTime, number, rate, shortId } from "../kit/format.ts";
import { openForm } from "../kit/forms.tsx";
import { Ago, Count, dash, Gauge, nameClass } from "../kit/labels.tsx";
import { Panel } from "../kit/panels.tsx";
import { Listing, menuColumn } from "../kit/table.tsx";
import {
  temporaryLimitChanges,
  durationOf,
  DurationField,
  LimitFields,
  limitsOf,
  refreshingLimits,
} from "./temporary-limit.tsx";

type QueueUse = LimitUse["queues"][number];

export function QueueLimitsPanel() {
  const query = useQuery(
    `use ${temporaryLimitChanges.value}`,
    (signal) => get<LimitUse>("/limits/use", { minutes: 15 }, signal),
    { topic: "limits" },
  );
  return (
    <Panel title="Queue limits" note="over the whole cluster; the last 15 minutes by the minute">
      <Listing
        query={query}
        rows={({ queues }) => queues}
        rowKey={({ name }: QueueUse) => name}
        sort="sort-queues"
        empty={{
          icon: "limits",
          title: "No queue limits",
          brief: true,
          text: <p>Set a concurrency or a rate in a queue's settings. It applies over all processes.</p>,
        }}
        columns={[
          {
            head: "Queue",
            by: ({ name }) => name,
            cell: ({ name }) => (
              <a class={nameClass(name)} href={href(`/queues/${name}`)}>
                {name}
              </a>
            ),
          },
          {
            head: "Waiting",
            by: ({ waiting }) => waiting,
            num: true,
            from: "medium",
            cell: ({ name, waiting }) => (
              <a class="link" href={href(`/jobs?state=ready&queue=${seg(name)}`)}>
                <Count of={waiting} />
              </a>
            ),
          },
          {
            head: "Running",
            by: ({ running }) => running,
            num: true,
            class: "nowrap",
            cell: ({ running, concurrency }) =>
              concurrency === null ? (
                number(running)
              ) : (
                <>
                  {number(running)} of {number(concurrency)}{" "}
                  <Gauge used={running} of={concurrency} label="Concurrency" />
                </>
              ),
          },
          {
            head: "Rate",
            by: ({ rate: known, started }) => (known === null ? null : (started ?? 0) / known.limit),
            num: true,
            class: "nowrap",
            cell: (queue) => {
              if (queue.rate === null) return dash;
              return (
                <>
                  {number(queue.started ?? 0)} of {rate(queue.rate)}{" "}
                  <Gauge used={queue.started ?? 0} of={queue.rate.limit} label="Starts in the window" />
                  {queue.opensAt !== null && (
                    <span class="sub">
                      next <Ago at={queue.opensAt} />
                    </span>
                  )}
                </>
              );
            },
          },
          {
            head: "Used",
            from: "medium",
            cell: (queue) => <UseBars queue={queue} at={query.data?.at ?? []} />,
          },
          menuColumn(
            ({ name }: QueueUse) => name,
            (queue) => [
              {
                verb: "Change",
                needs: "queues:set",
                icon: "gear",
                press: () => queueForm(queue, refreshingLimits(query.again)),
              },
              queue.running > 0 && holdersOf(queue.name, null),
            ],
          ),
        ]}
      />
    </Panel>
  );
}

/** Usage per minute; unmeasured minutes are empty. */
function UseBars({ queue, at }: { queue: QueueUse; at: readonly number[] }) {
  const [then, of, label] =
    queue.concurrency === null
      ? [queue.startedThen, queue.rate?.limit ?? 1, "Starts in the window"]
      : [queue.runningThen, queue.concurrency, "Running"];
  if (then.every((n) => n === null)) return dash;
  return (
    <Bars
      of={then.map((n) => n ?? 0)}
      most={of}
      label={label}
      height={20}
      looks="spark"
      name={(i) => clockTime(at[i] ?? 0)}
      bad={then.map((n) => (n !== null && n >= of ? n : 0))}
    />
  );
}

function queueForm(queue: QueueUse, again: () => void): void {
  openForm({
    title: `Limits of ${queue.name}`,
    verb: "Save",
    then: again,
    body: (
      <>
        <p class="muted">Empty means no limit. Takes effect in every process within seconds.</p>
        <div class="grid two">
          <LimitFields of={queue} />
          <DurationField />
        </div>
      </>
    ),
    run: async (fields) => {
      await send("PATCH", `/queues/${seg(queue.name)}`, {
        ...limitsOf(fields),
        ...durationOf(fields),
      });
      return "Limits saved";
    },
  });
}

/** Running jobs that count against a limit. */
export function holdersOf(queue: string, lane: string | null): Action {
  return {
    verb: "Holders",
    needs: "view",
    icon: "jobs",
    press: () =>
      showDialog(`Holders of ${lane ?? queue}`, (close) => (
        <Holders queue={queue} lane={lane} close={close} />
      )),
  };
}

function Holders({ queue, lane, close }: { queue: string; lane: string | null; close: () => void }) {
  const query = useQuery(
    `holders ${queue} ${lane ?? ""}`,
    (signal) => get<JobList>("/jobs", { state: "running", queue, lane, limit: 100 }, signal),
    { sign: "overview" },
  );
  return (
    <InfoDialog title={`Holders of ${lane ?? queue}`} close={close}>
      <Listing
        query={query}
        rows={({ jobs }) => jobs}
        rowKey={({ id }: JobLine) => id}
        empty={{ icon: "check", title: "No holders", text: <p>No job runs under this limit.</p> }}
        columns={[
          {
            head: "Job",
            cell: ({ id, name }) => (
              <a class="main-link" href={href(`/jobs/${id}`)} onClick={close}>
                {name} <span class="mono muted">{shortId(id)}</span>
              </a>
            ),
          },
          { head: "Lane", from: "medium", cell: ({ lane: of }) => of ?? dash },
          {
            head: "Worker",
            class: "mono muted",
            from: "medium",
            cell: ({ workerId }) => shortId(workerId ?? "—"),
          },
          { head: "Running for", num: true, cell: ({ startedAt }) => <Ago at={startedAt} /> },
        ]}
      />
    </InfoDialog>
  );
}
