// Runs of a schedule as two rows of bars, one column per run: running time and start delay. Shape and sign show how a
// run ended, not color alone. A click or Enter opens its job. The table below lists all runs.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { ScheduleRunLine } from "../../../src/dashboard/api/contract.ts";
import { useBrush } from "../charts/brush.ts";
import { duration, instant, minuteOf, number } from "../kit/format.ts";
import { Icon, type IconName } from "../kit/icons.tsx";
import { JobLink, State, stateIcon } from "../kit/labels.tsx";
import { go } from "../data/router.ts";
import { share, topOf } from "../charts/axis-scale.ts";
import { type Column, Table } from "../kit/table.tsx";

/** The narrowest column that can be distinguished and clicked. */
const narrowest = 9;
const rowHeight = 84;

const madeBy: Readonly<Record<ScheduleRunLine["by"], string>> = {
  occurrence: "occurrence",
  backfill: "backfill",
  hand: "by hand",
};
const madeIcons = { backfill: "drain", hand: "plus" } as const;

/** `least`: smaller values look small, whatever the scale. */
const rows = [
  {
    title: "Running time",
    most: (most: string, half: string) => `maximum ${most}, median ${half}`,
    least: 1,
    of: ({ ranMs }: ScheduleRunLine) => ranMs,
  },
  {
    title: "Start delay",
    most: (most: string, half: string) => `maximum ${most}, median ${half}`,
    least: 1_000,
    of: ({ lateMs }: ScheduleRunLine) => lateMs,
  },
] as const;

/** `newestFirst`: the order of the API. */
export function RunChart({ name, newestFirst }: { name: string; newestFirst: readonly ScheduleRunLine[] }) {
  const host = useRef<HTMLDivElement>(null);
  const room = useSignal(newestFirst.length);
  const under = useSignal<number | null>(null);
  const tabled = useSignal(false);
  useEffect(() => {
    const element = host.current;
    if (element === null) return undefined;
    const measure = (): void => void (room.value = Math.max(1, Math.floor(element.clientWidth / narrowest)));
    measure();
    const resized = new ResizeObserver(measure);
    resized.observe(element);
    return () => resized.disconnect();
  }, []);

  const runs = newestFirst.slice(0, room.value).toReversed();
  const open = (index: number): void => {
    const run = runs[index];
    if (run !== undefined) go(`/jobs/${run.jobId}`);
  };
  const { index, keyDown, leave } = useBrush(runs.length, { point: open, range: (_from, to) => open(to) });
  const at = (event: MouseEvent): number => {
    const box = (event.currentTarget as Element).getBoundingClientRect();
    const along = (event.clientX - box.left) / Math.max(1, box.width);
    return Math.max(0, Math.min(runs.length - 1, Math.floor(along * runs.length)));
  };
  const chosen = under.value ?? index;
  const here = Math.min(chosen ?? runs.length - 1, runs.length - 1);
  const said = runs[here];
  return (
    <div class="run-chart">
      <Legend runs={runs} of={newestFirst.length} />
      <div
        class="run-rows"
        ref={host}
        role="slider"
        tabIndex={0}
        aria-label={`Runs of ${name}. Arrow keys move between runs, Enter opens the job.`}
        aria-valuemin={0}
        aria-valuemax={Math.max(0, runs.length - 1)}
        aria-valuenow={Math.max(0, here)}
        aria-valuetext={
          said === undefined ? "" : chosen === null ? `Newest, ${wordsOfRun(said)}` : wordsOfRun(said)
        }
        onKeyDown={keyDown}
        onBlur={leave}
        onPointerMove={(event) => (under.value = at(event))}
        onPointerLeave={() => (under.value = null)}
        onClick={(event) => open(at(event))}
      >
        {rows.map(({ title, most, least, of }) => {
          const known = runs
            .map(of)
            .filter((ms) => ms !== null)
            .sort((a, b) => a - b);
          const top = topOf(known, least);
          const largest = known.at(-1) ?? 0;
          return (
            <figure key={title} aria-hidden="true">
              <figcaption class="small">
                {title}{" "}
                <span class="muted">
                  {known.length === 0
                    ? "unknown"
                    : `${most(duration(largest), duration(share(known, 0.5)))}${
                        largest > top ? `; bars end at ${duration(top)}` : ""
                      }`}
                </span>
              </figcaption>
              <div class="columns">
                {runs.map((run, i) => (
                  <Bar key={run.jobId} run={run} ms={of(run)} top={top} on={i === chosen} />
                ))}
              </div>
            </figure>
          );
        })}
      </div>
      <div class="ends small muted" aria-hidden="true">
        <span>{minuteOf(runs[0]?.at ?? null)}</span>
        <span>{minuteOf(runs.at(-1)?.at ?? null)}</span>
      </div>
      <p class="said small" aria-hidden="true">
        {said !== undefined && (
          <>
            {chosen === null && <b>Newest: </b>}
            {wordsOfRun(said)}
          </>
        )}
      </p>
      <details class="tabled small" onToggle={(event) => (tabled.value = event.currentTarget.open)}>
        <summary>View as table</summary>
        {tabled.value && <Table rows={newestFirst} rowKey={({ jobId }) => jobId} columns={columns} />}
      </details>
    </div>
  );
}

function Bar({ run, ms, top, on }: { run: ScheduleRunLine; ms: number | null; top: number; on: boolean }) {
  const sign = signOf(run);
  // A value above zero is visible; an unknown value is a dot.
  const height = ms === null ? 0 : Math.max(2, Math.min(1, ms / top) * rowHeight);
  const looks = ms === null ? "unknown" : ms > top ? "cut" : "";
  return (
    <span class={`run ${run.state ?? "gone"} ${on ? "on" : ""}`}>
      {sign !== null && <Icon name={sign} size={10} />}
      <i class={looks} style={ms === null ? {} : { height: `${height}px` }} />
    </span>
  );
}

/** The sign above a bar: its state unless done, else its origin unless its occurrence. */
function signOf({ state, by }: ScheduleRunLine): IconName | null {
  if (state !== null && state !== "done") return stateIcon(state);
  return by === "occurrence" ? null : madeIcons[by];
}

/** The signs that occur. */
function Legend({ runs, of }: { runs: readonly ScheduleRunLine[]; of: number }) {
  const states = new Map<string, number>();
  for (const { state } of runs) states.set(state ?? "gone", (states.get(state ?? "gone") ?? 0) + 1);
  const asked = (["backfill", "hand"] as const).filter((by) => runs.some((run) => run.by === by));
  return (
    <div class="legend">
      {runs.length < of && (
        <span>
          newest {number(runs.length)} of {number(of)}
        </span>
      )}
      {[...states].map(([state, n]) => (
        <span key={state}>
          <span class={`run ${state}`}>
            <i />
          </span>
          {state !== "done" && state !== "gone" && <Icon name={stateIcon(state)} size={10} />}
          {state === "gone" ? "not kept" : state} <b>{number(n)}</b>
        </span>
      ))}
      {asked.map((by) => (
        <span key={by}>
          <Icon name={madeIcons[by]} size={10} /> {by === "hand" ? "run by hand" : "backfilled"}
        </span>
      ))}
    </div>
  );
}

const columns: readonly Column<ScheduleRunLine>[] = [
  {
    head: "Occurrence",
    cell: ({ at, jobId }) => (
      <JobLink id={jobId}>
        <span class="nowrap">{instant(at)}</span>
      </JobLink>
    ),
  },
  { head: "Created by", from: "medium", class: "muted", cell: ({ by }) => madeBy[by] },
  {
    head: "State",
    cell: ({ state }) => (state === null ? <span class="muted">not kept</span> : <State state={state} />),
  },
  { head: "Late", num: true, class: "nowrap", cell: ({ lateMs }) => duration(lateMs) },
  { head: "Ran", num: true, class: "nowrap", cell: ({ ranMs }) => duration(ranMs) },
  { head: "Attempt", num: true, from: "medium", cell: ({ attempt }) => attempt ?? "—" },
];

function wordsOfRun({ at, by, state, attempt, lateMs, ranMs }: ScheduleRunLine): string {
  const parts = [
    by === "occurrence" ? "" : by === "hand" ? "by hand" : "backfilled",
    state === null ? "no longer stored" : state,
  ];
  if (lateMs !== null) parts.push(`started ${duration(lateMs)} after its occurrence`);
  if (ranMs !== null) parts.push(`ran ${duration(ranMs)}`);
  if (attempt !== null && attempt > 1) parts.push(`attempt ${attempt}`);
  return `${instant(at)}: ${parts.filter((part) => part !== "").join(", ")}`;
}
