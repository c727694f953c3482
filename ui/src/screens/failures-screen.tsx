// Failure groups: one row each, with decisions, those that need attention first.
import { useSignal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import type { FailureGroup, FailureGroups } from "../../../src/dashboard/api/contract.ts";
import { Bars } from "../charts/bars.tsx";
import { get } from "../data/api.ts";
import { useQuery } from "../data/live-query.ts";
import { go, href, params } from "../data/router.ts";
import {
  groupKeys,
  ignore,
  isSettled,
  reopen,
  resolve,
  retryAll,
  tryOne,
  wantsAttention,
} from "../failures/failure-actions.tsx";
import { FailureBreakdown } from "../failures/failure-breakdown.tsx";
import { IgnoredUntil } from "../failures/ignored-until.tsx";
import type { Actions } from "../kit/actions.tsx";
import { number } from "../kit/format.ts";
import { Ago, State } from "../kit/labels.tsx";
import { Empty, Head, Loaded } from "../kit/panels.tsx";
import { onKey } from "../kit/shortcuts.ts";
import { arrange, type Column, menuColumn, Table } from "../kit/table.tsx";

const tabs: readonly { name: string; state: string | null; holds: (group: FailureGroup) => boolean }[] = [
  { name: "Open", state: null, holds: wantsAttention },
  { name: "Ignored", state: "ignored", holds: ({ state }) => state === "ignored" },
  { name: "Resolved", state: "resolved", holds: ({ state }) => state === "resolved" },
  { name: "All", state: "all", holds: () => true },
];

/** Groupings; null: by failure group. */
const sides = [
  [null, "Group"],
  ["name", "Name"],
  ["queue", "Queue"],
  ["worker", "Worker"],
  ["version", "Version"],
  ["hour", "Hour"],
] as const;

export function FailuresScreen() {
  const by = params.value.get("by");
  const side = sides.find(([name]) => name === by) ?? sides[0];
  return (
    <>
      <Head
        title="Failures"
        note={
          side[0] === null
            ? "Grouped by failure. Retry one, then retry the rest."
            : "Failed attempts, counted by workers."
        }
      >
        <nav class="spans" aria-label="Group by">
          {sides.map(([name, text]) => (
            <a
              key={text}
              href={href(`/errors${name === null ? "" : `?by=${name}`}`)}
              aria-current={side[0] === name ? "true" : undefined}
            >
              {text}
            </a>
          ))}
        </nav>
      </Head>
      {side[0] === null ? <ByGroup /> : <FailureBreakdown key={side[0]} by={side[0]} />}
    </>
  );
}

function ByGroup() {
  const query = useQuery("errors", (signal) => get<FailureGroups>("/errors", {}, signal), {
    topic: "errors",
  });
  const chosen = tabs.find(({ state }) => state === params.value.get("state")) ?? tabs[0]!;
  return (
    <>
      <nav class="tabs" aria-label="States">
        {tabs.map(({ name, state, holds }) => (
          <a
            key={name}
            href={href(`/errors${state === null ? "" : `?state=${state}`}`)}
            aria-current={chosen.name === name ? "page" : undefined}
          >
            {name}{" "}
            {query.data !== null && <span class="n">{number(query.data.groups.filter(holds).length)}</span>}
          </a>
        ))}
      </nav>
      <section class="panel" aria-label="Errors">
        <Loaded query={query}>
          {({ groups, cut, searched }) => (
            <>
              <List
                key={chosen.name}
                groups={groups.filter(chosen.holds)}
                tab={chosen.state}
                again={query.again}
              />
              {cut && (
                <footer>
                  Counted among the newest {number(searched)} dead or cancelled jobs. Open a group for all of
                  them.
                </footer>
              )}
            </>
          )}
        </Loaded>
      </section>
    </>
  );
}

function List({
  groups: given,
  tab,
  again,
}: {
  groups: readonly FailureGroup[];
  tab: string | null;
  again: () => void;
}) {
  const columns = columnsOf(tab, again);
  // Keys follow the displayed order.
  const groups = arrange(given, columns, "sort");
  const current = useSignal<string | null>(null);
  const body = useRef<HTMLTableSectionElement>(null);
  const at = groups.findIndex(({ group }) => group === current.value);
  const move = (by: number): void => {
    const next = Math.max(0, Math.min(groups.length - 1, at + by));
    current.value = groups[next]?.group ?? null;
    body.current?.querySelectorAll<HTMLAnchorElement>("a.main-link")[next]?.focus();
  };
  const on = (run: (group: FailureGroup) => void) => () => {
    const group = groups[at];
    if (group !== undefined) run(group);
  };
  // Before the paint, so that keys work as soon as the list is visible.
  useLayoutEffect(() => {
    const offs = [
      onKey("j", () => move(1)),
      onKey("k", () => move(-1)),
      onKey("Escape", () => (current.value = null)),
      ...groupKeys(again).map(([key, run]) => onKey(key, on(run))),
    ];
    return () => offs.forEach((off) => off());
  });
  if (groups.length === 0) return <Nothing tab={tab} />;
  return (
    <Table
      rows={groups}
      rowKey={({ group }) => group}
      body={body}
      row={({ group }, index) => ({
        class: index === at ? "current" : "",
        onClick: (event) => {
          if ((event.target as Element).closest("a, button") === null) go(`/errors/${group}`);
        },
      })}
      columns={columns}
      sort="sort"
      arranged
    />
  );
}

function Nothing({ tab }: { tab: string | null }) {
  if (tab === null)
    return (
      <Empty icon="check" title="No dead jobs">
        <p>Failed jobs are grouped here until they succeed or their retention ends.</p>
      </Empty>
    );
  return (
    <Empty
      icon="check"
      title={
        tab === "all" ? "No failures" : tab === "resolved" ? "No resolved failures" : "No ignored failures"
      }
    >
      <p>
        {tab === "resolved"
          ? "Resolve a failure when it is fixed. It reopens if it occurs again."
          : tab === "ignored"
            ? "Ignore known failures for a time or up to a count."
            : "Failures are counted for 30 days."}
      </p>
    </Empty>
  );
}

/** Shown only for regressed groups in a list of open ones. */
function columnsOf(tab: string | null, again: () => void): Column<FailureGroup>[] {
  const open = tab === null;
  return [
    {
      head: "Error",
      by: ({ message }) => message,
      class: "cause",
      cell: (group) => (
        <>
          <a class="main-link clip" href={href(`/errors/${group.group}`)}>
            {group.message ?? "(hidden)"}
          </a>
          <span class="sub clip">
            {group.name} in {group.queues.join(", ")}
            {group.versions.length > 0 && ` · version ${group.versions.join(", ")}`}
            {group.note !== null && ` · ${group.note}`}
          </span>
          {open && group.state === "regressed" && <State state="regressed" />}
        </>
      ),
    },
    ...(open ? [] : [stateColumn]),
    {
      head: "24 hours",
      from: "wide",
      cell: ({ day }) => <Bars of={day} label="Failures per hour, last 24 hours" height={22} />,
    },
    {
      head: "1 h",
      by: ({ lastHour }) => lastHour,
      num: true,
      from: "wide",
      class: "muted",
      cell: ({ lastHour }) => number(lastHour),
    },
    {
      head: "24 h",
      by: ({ lastDay }) => lastDay,
      num: true,
      from: "medium",
      class: "muted",
      cell: ({ lastDay }) => number(lastDay),
    },
    {
      head: "7 d",
      by: ({ lastWeek }) => lastWeek,
      num: true,
      from: "wide",
      class: "muted",
      cell: ({ lastWeek }) => number(lastWeek),
    },
    {
      head: "Dead",
      by: ({ dead }) => dead,
      num: true,
      cell: ({ dead, retrying }) => (
        <>
          <b class={dead === 0 ? "muted" : ""}>{number(dead)}</b>
          {retrying > 0 && <span class="sub nowrap">{number(retrying)} retrying</span>}
        </>
      ),
    },
    {
      head: "Seen",
      by: ({ lastAt }) => lastAt,
      num: true,
      from: "medium",
      cell: ({ firstAt, lastAt }) => (
        <>
          <Ago at={lastAt} />
          <span class="sub nowrap">
            first <Ago at={firstAt} />
          </span>
        </>
      ),
    },
    menuColumn(
      ({ message, name }) => (message ?? name).slice(0, 80),
      (group) => actionsOf(group, again),
    ),
  ];
}

const stateColumn: Column<FailureGroup> = {
  head: "State",
  by: ({ state }) => state,
  from: "medium",
  cell: (group) => (
    <>
      <State state={group.state} />
      <IgnoredUntil group={group} />
    </>
  ),
};

function actionsOf(group: FailureGroup, again: () => void): Actions {
  return [
    group.dead > 0 && {
      verb: "Retry one",
      needs: "jobs:retry",
      icon: "play",
      press: () => tryOne(group),
    },
    group.dead > 0 && {
      verb: "Retry all",
      needs: "jobs:retry",
      icon: "retry",
      press: () => retryAll(group, again),
    },
    isSettled(group)
      ? { verb: "Reopen", needs: "errors:decide", icon: "dead", press: () => reopen(group, again) }
      : { verb: "Resolve", needs: "errors:decide", icon: "check", press: () => resolve(group, again) },
    !isSettled(group) && {
      verb: "Ignore",
      needs: "errors:decide",
      icon: "moon",
      press: () => ignore(group, again),
    },
  ];
}
