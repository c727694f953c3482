// Lanes: those held back by limits, and all in use.
import { useSignal } from "@preact/signals";
import type { LaneLine, LaneList } from "../../../src/dashboard/api/contract.ts";
import { get, seg, send } from "../data/api.ts";
import { useQuery } from "../data/live-query.ts";
import { href, params } from "../data/router.ts";
import { type Actions, doing } from "../kit/actions.tsx";
import { rate } from "../kit/format.ts";
import { Field, openForm } from "../kit/forms.tsx";
import { Ago, Count, dash, Gauge, nameClass, State } from "../kit/labels.tsx";
import { Panel } from "../kit/panels.tsx";
import { Listing, menuColumn, Pager } from "../kit/table.tsx";
import { holdersOf } from "./queue-limits-panel.tsx";
import { durationOf, DurationField, LimitFields, limitsOf, refreshingLimits } from "./temporary-limit.tsx";

function laneActions(line: LaneLine, again: () => void): Actions {
  const { queue, lane, paused, running, tuned, rate } = line;
  const change = { on: lane, needs: "limits:set", then: again } as const;
  return [
    {
      verb: "Change",
      needs: "limits:set",
      icon: "gear",
      press: () => laneForm(line, refreshingLimits(again)),
    },
    doing({
      ...change,
      verb: paused ? "Resume" : "Pause",
      icon: paused ? "play" : "pause",
      run: () => send("PATCH", `/lanes/${seg(queue)}/${seg(lane)}`, { paused: !paused }),
      undo: () => send("PATCH", `/lanes/${seg(queue)}/${seg(lane)}`, { paused }),
      done: paused ? `${lane} resumed` : `${lane} paused`,
    }),
    running > 0 && holdersOf(queue, lane),
    (tuned || rate !== null) &&
      doing({
        ...change,
        verb: "Reset",
        icon: "retry",
        run: () => send("POST", `/lanes/${seg(queue)}/${seg(lane)}/reset`),
        done: `${lane} reset`,
        ask: "Restores the limits and weight set in code and resets the rate. Running jobs stay counted; a pause stays.",
      }),
    (tuned || paused) &&
      doing({
        ...change,
        verb: "Drop",
        danger: true,
        icon: "trash",
        run: () => send("DELETE", `/lanes/${seg(queue)}/${seg(lane)}`),
        done: `${lane}: settings removed`,
        ask: "Removes all settings of this lane, including its pause. New jobs use the limits set in code. The lane is forgotten after a day without jobs.",
      }),
  ];
}

function laneForm(lane: LaneLine, again: () => void): void {
  openForm({
    title: `Limits of ${lane.lane}`,
    verb: "Save",
    then: again,
    body: (
      <>
        <p class="muted">Empty means no limit. Applies to this lane of {lane.queue} in every process.</p>
        <div class="grid two">
          <LimitFields of={lane} />
          <Field label="Weight" name="weight" inputMode="numeric" defaultValue={lane.weight} />
          <DurationField />
        </div>
      </>
    ),
    run: async (fields) => {
      await send("PATCH", `/lanes/${seg(lane.queue)}/${seg(lane.lane)}`, {
        ...limitsOf(fields),
        weight: fields.number("weight") ?? null,
        ...durationOf(fields),
      });
      return "Limits saved";
    },
  });
}

/** Lanes with jobs that may not start now. */
export function ThrottledLanesPanel() {
  const query = useQuery(
    "throttled",
    (signal) => get<{ lanes: LaneLine[] }>("/lanes/throttled", {}, signal),
    { topic: "throttled" },
  );
  if (query.data === null || query.data.lanes.length === 0) return null;
  return (
    <Panel title="Most throttled lanes" note="lanes with jobs that may not start now">
      <Listing
        query={query}
        rows={({ lanes }) => lanes}
        rowKey={({ queue, lane }: LaneLine) => `${queue} ${lane}`}
        sort="sort-throttled"
        empty={{ icon: "check", title: "", text: null }}
        columns={[
          {
            head: "Lane",
            by: ({ lane }) => lane,
            cell: ({ queue, lane }) => (
              <>
                <a class={nameClass(lane)} href={href(`/jobs?queue=${queue}&lane=${seg(lane)}`)}>
                  {lane}
                </a>
                <span class={nameClass(queue, "sub")}>{queue}</span>
              </>
            ),
          },
          {
            head: "Waiting",
            by: ({ waiting }) => waiting,
            num: true,
            cell: ({ waiting }) => <Count of={waiting} />,
          },
          { head: "Why", cell: (lane) => whyThrottled(lane) },
          menuColumn(
            ({ lane }: LaneLine) => lane,
            (lane) => laneActions(lane, query.again),
          ),
        ]}
      />
    </Panel>
  );
}

function whyThrottled({ paused, running, concurrency, rate: limit, rateOpensAt }: LaneLine) {
  if (paused) return <State state="paused" />;
  if (concurrency !== null && running >= concurrency) return `${running} of ${concurrency} run`;
  if (limit === null || rateOpensAt === null) return dash;
  return (
    <>
      {rate(limit)} is used; next <Ago at={rateOpensAt} />
    </>
  );
}

export function LanesPanel() {
  const cursor = useSignal<string | null>(null);
  const queue = params.value.get("queue");
  const query = useQuery(
    `lanes ${queue} ${cursor.value}`,
    (signal) => get<LaneList>("/lanes", { limit: 50, cursor: cursor.value, queue }, signal),
    { sign: "throttled" },
  );
  return (
    <Panel
      title="Lanes"
      note={queue === null ? "jobs of one queue that share a key and its limits" : `of ${queue} alone`}
      tools={
        queue !== null && (
          <a class="button small" href={href("/limits")} aria-label="Lanes of all queues">
            All queues
          </a>
        )
      }
    >
      <Listing
        query={query}
        rows={({ lanes }) => lanes}
        rowKey={({ queue, lane }: LaneLine) => `${queue} ${lane}`}
        // Sorting one of several pages would mislead.
        sort={({ cursor: next }) => (next === null && cursor.value === null ? "sort-lanes" : undefined)}
        empty={{
          icon: "limits",
          title: "No lanes in use",
          text: (
            <>
              <p>Give jobs a lane so that tenants do not wait for each other:</p>
              <pre class="code">{`defineJob({ name: "sync", lane: (input) => input.tenant,\n  lanes: { concurrency: 2 }, … });`}</pre>
            </>
          ),
        }}
        columns={[
          {
            head: "Lane",
            by: ({ lane }) => lane,
            cell: (lane) => (
              <>
                <a
                  class={nameClass(lane.lane)}
                  href={href(`/jobs?queue=${lane.queue}&lane=${seg(lane.lane)}`)}
                >
                  {lane.lane}
                </a>{" "}
                {lane.paused && <State state="paused" />}
                <span class={nameClass(lane.queue, "sub")}>{lane.queue}</span>
              </>
            ),
          },
          {
            head: "Waiting",
            by: ({ waiting }) => waiting,
            num: true,
            cell: ({ waiting }) => <Count of={waiting} />,
          },
          {
            head: "Running",
            by: ({ running }) => running,
            num: true,
            class: "nowrap",
            cell: ({ running, concurrency }) => (
              <>
                {running}{" "}
                {concurrency !== null && <Gauge used={running} of={concurrency} label="Concurrency" />}
              </>
            ),
          },
          {
            head: "Concurrency",
            by: ({ concurrency }) => concurrency,
            num: true,
            from: "medium",
            cell: ({ concurrency }) => concurrency ?? dash,
          },
          {
            head: "Rate",
            num: true,
            from: "medium",
            class: "nowrap",
            cell: (lane) => (lane.rate === null ? dash : rate(lane.rate)),
          },
          {
            head: "Weight",
            by: ({ weight }) => weight,
            num: true,
            from: "medium",
            cell: ({ weight }) => weight,
          },
          menuColumn(
            ({ lane }: LaneLine) => lane,
            (lane) => laneActions(lane, query.again),
          ),
        ]}
        foot={({ cursor: next }) => <Pager cursor={cursor} next={next} />}
      />
    </Panel>
  );
}
