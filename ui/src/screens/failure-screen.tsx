// One failure group: counts over time, queues, decision, and retrying one job before all.
import { useLayoutEffect } from "preact/hooks";
import type { FailureGroupDetail, JobList } from "../../../src/dashboard/api/contract.ts";
import { Act } from "../kit/actions.tsx";
import { ApiFailure, get } from "../data/api.ts";
import { Bars } from "../charts/bars.tsx";
import {
  deadOf,
  deleteAll,
  groupKeys,
  ignore,
  isSettled,
  moveAll,
  note,
  patchAll,
  reopen,
  resolve,
  retryAll,
  tryOne,
} from "../failures/failure-actions.tsx";
import { instant, minuteOf, number, plural, shortId } from "../kit/format.ts";
import { Icon } from "../kit/icons.tsx";
import { commandOf } from "../jobs/job-filter.ts";
import { onKey } from "../kit/shortcuts.ts";
import { useJob } from "../jobs/job-query.ts";
import { may } from "../data/live-stream.ts";
import { Ago, JobLink, JobStateOf, State } from "../kit/labels.tsx";
import { copy } from "../kit/clipboard.tsx";
import { Empty, Facts, Loaded, Panel, Tile } from "../kit/panels.tsx";
import { href, params } from "../data/router.ts";
import { Table } from "../kit/table.tsx";
import { useQuery } from "../data/live-query.ts";
import { IgnoredUntil } from "../failures/ignored-until.tsx";

const HOUR = 3_600_000;

export function FailureScreen({ group: id }: { group: string }) {
  const query = useQuery(`error ${id}`, (signal) => get<FailureGroupDetail>(`/errors/${id}`, {}, signal), {
    topic: `error:${id}`,
  });
  if (query.data === null && query.error instanceof ApiFailure && query.error.status === 404)
    return (
      <section class="panel">
        <Empty icon="search" title="No such error">
          <p>No such failure in the last 30 days.</p>
          <a class="button" href={href("/errors")}>
            All failures
          </a>
        </Empty>
      </section>
    );
  return <Loaded query={query}>{(group) => <KnownGroup group={group} again={query.again} />}</Loaded>;
}

function KnownGroup({ group, again }: { group: FailureGroupDetail; again: () => void }) {
  // Before the paint, so that keys work as soon as the screen is visible.
  useLayoutEffect(() => {
    const offs = groupKeys(again).map(([key, run]) => onKey(key, () => run(group)));
    return () => offs.forEach((off) => off());
  });
  const tried = params.value.get("tried");
  const hourName = (i: number): string => minuteOf(group.weekFrom + i * HOUR);
  return (
    <>
      <div class="head">
        <div style={{ minWidth: 0 }}>
          <div class="row">
            <h1 class="error-title">{group.message ?? "(hidden)"}</h1>
            <State state={group.state} />
            <IgnoredUntil group={group} />
          </div>
          <p class="row tight">
            <span>
              {group.name} in {group.queues.join(", ")}
            </span>
            <span class="mono">{group.group}</span>
            <button
              type="button"
              class="button quiet small"
              title="The same in a terminal"
              onClick={() => void copy(`holdfast errors show ${group.group}`)}
            >
              <Icon name="copy" size={13} /> Copy as command
            </button>
          </p>
        </div>
        <span class="spring" />
        <div class="row">
          <Act large verb="Note" on="" needs="errors:decide" press={() => note(group, again)} />
          {!isSettled(group) && (
            <Act large verb="Ignore" on="" needs="errors:decide" press={() => ignore(group, again)} />
          )}
          {group.state === "open" || group.state === "regressed" ? (
            <Act large verb="Resolve" on="" needs="errors:decide" press={() => resolve(group, again)} />
          ) : (
            <Act large verb="Reopen" on="" needs="errors:decide" press={() => reopen(group, again)} />
          )}
        </div>
      </div>
      <Decided group={group} />
      <section class="tiles" aria-label="Figures">
        <Tile
          name="Dead"
          value={number(group.dead)}
          note="jobs without attempts left"
          to={href(`/jobs?state=dead&failureGroup=${group.group}`)}
          bad={group.dead > 0}
        />
        <Tile
          name="Retrying"
          value={number(group.retrying)}
          note="wait for their next attempt"
          to={href(`/retries?failureGroup=${group.group}`)}
        />
        <Tile name="Failures, 1 h" value={number(group.lastHour)} note="attempts" />
        <Tile name="24 h" value={number(group.lastDay)} note="attempts" />
        <Tile name="7 d" value={number(group.lastWeek)} note="attempts" />
        <Tile
          name="Seen"
          value={<Ago at={group.lastAt} />}
          note={
            <>
              first <Ago at={group.firstAt} />
            </>
          }
        />
      </section>
      <div class="grid aside">
        <div class="stack">
          <TrialRun key={tried} group={group} tried={tried} again={again} />
          <Panel title="The last 7 days" note="failed attempts per hour">
            <div class="week">
              <Bars of={group.week} label="Failures per hour, last 7 days" height={72} name={hourName} />
              <div class="ends muted small">
                <span>{hourName(0)}</span>
                <span>now</span>
              </div>
            </div>
          </Panel>
          <Examples group={group} />
        </div>
        <div class="stack">
          <Panel title="Facts">
            <Facts
              of={[
                [
                  "Name",
                  <a class="link" href={href(`/jobs?name=${group.name}`)}>
                    {group.name}
                  </a>,
                ],
                ["First seen", instant(group.firstAt)],
                ["Last seen", instant(group.lastAt)],
                ["Versions", group.versions.join(", ") || "—"],
                [
                  "Queues",
                  group.queues.map((queue, i) => (
                    <>
                      {i > 0 && ", "}
                      <a class="link" href={href(`/queues/${queue}`)}>
                        {queue}
                      </a>
                    </>
                  )),
                ],
              ]}
            />
          </Panel>
          {group.places.length > 0 && (
            <Panel title="Queues and versions" note="in 30 days">
              <Table
                rows={group.places}
                rowKey={({ queue, version }) => `${queue} ${version}`}
                columns={[
                  { head: "Queue", cell: ({ queue }) => queue },
                  { head: "Version", num: true, cell: ({ version }) => number(version) },
                  { head: "Failures", num: true, cell: ({ n }) => number(n) },
                ]}
              />
            </Panel>
          )}
        </div>
      </div>
    </>
  );
}

/** The decision, its author and its note. */
function Decided({ group }: { group: FailureGroupDetail }) {
  const { state, decidedAt, decidedBy, note: text, link } = group;
  const decided = (
    <>
      {decidedBy !== null && `by ${decidedBy} `}
      <Ago at={decidedAt} />
    </>
  );
  const says = {
    regressed: <>Resolved {decided}; it has failed again since.</>,
    resolved: <>Resolved {decided}. Reopens if the same failure occurs again.</>,
    ignored: <>Ignored {decided}.</>,
    open: null,
  }[state];
  if (says === null && text === null && link === null) return null;
  return (
    <div
      class={`banner noted ${{ regressed: "bad", resolved: "good", ignored: "info", open: "info" }[state]}`}
      role="status"
    >
      {says !== null && <p>{says}</p>}
      {text !== null && <p class="note">{text}</p>}
      {link !== null && (
        <p class="note prose">
          <a href={link} target="_blank" rel="noopener noreferrer nofollow">
            {link}
          </a>
        </p>
      )}
    </div>
  );
}

/** The result of one retried job, before the others are retried. */
function TrialRun({
  group,
  tried,
  again,
}: {
  group: FailureGroupDetail;
  tried: string | null;
  again: () => void;
}) {
  const { dead } = group;
  if (tried === null)
    return dead === 0 ? null : (
      <Panel title="Is it fixed?">
        <div class="content row">
          <span style={{ flexBasis: "100%" }}>
            Retry one of the {plural(dead, "dead job")} first. If it succeeds, retry the rest.
          </span>
          <Act
            large
            primary
            verb="Retry one"
            on=""
            needs="jobs:retry"
            icon="play"
            press={() => tryOne(group)}
          />
          <AllOfThem group={group} again={again} />
        </div>
      </Panel>
    );
  return <Tried group={group} id={tried} again={again} />;
}

function Tried({ group, id, again }: { group: FailureGroupDetail; id: string; again: () => void }) {
  const query = useJob(id);
  return (
    <Panel
      title="One job was retried"
      tools={
        <button
          type="button"
          class="button small quiet"
          onClick={() => void copy(commandOf("list", { ids: [id] }))}
        >
          Copy as command
        </button>
      }
    >
      <Loaded query={query}>
        {(job) => {
          const good = job.state === "done";
          // A retried job has no error until it fails again, and then waits for its next attempt.
          const over = good || job.state === "dead" || job.state === "cancelled" || job.failureGroup !== null;
          return (
            <div class="content stack tight">
              <div class="row" role="status">
                <JobStateOf job={job} />
                <JobLink id={job.id}>{shortId(job.id)}</JobLink>
                <span style={{ overflowWrap: "anywhere" }}>{job.why.text}</span>
              </div>
              {over && group.dead > 0 && (
                <div class="row">
                  <span style={{ flex: 1, minWidth: "160px" }}>
                    {good
                      ? `It succeeded. ${plural(group.dead, "dead job")} ${group.dead === 1 ? "is" : "are"} left.`
                      : "It failed again. The others may fail too."}
                  </span>
                  <Act
                    large
                    quiet={good}
                    verb="Retry another"
                    on=""
                    needs="jobs:retry"
                    press={() => tryOne(group)}
                  />
                  <AllOfThem group={group} again={again} primary={good} />
                </div>
              )}
              {good && group.dead === 0 && <p class="muted">It succeeded, and no dead job is left.</p>}
            </div>
          );
        }}
      </Loaded>
    </Panel>
  );
}

/** The newest jobs of the group. */
function Examples({ group }: { group: FailureGroupDetail }) {
  const asked = { ...deadOf(group), state: ["dead", "scheduled", "ready"], queue: null, limit: 8 };
  const query = useQuery(`examples ${group.group}`, (signal) => get<JobList>("/jobs", asked, signal), {
    sign: `error:${group.group}`,
  });
  return (
    <Panel
      title="Jobs"
      note="newest of this group"
      tools={
        <a class="link small" href={href(`/jobs?failureGroup=${group.group}`)}>
          All
        </a>
      }
    >
      <Loaded query={query}>
        {({ jobs }) =>
          jobs.length === 0 ? (
            <Empty icon="check" title="No dead or retrying jobs">
              <p>They succeeded, were deleted, or were removed after their retention.</p>
            </Empty>
          ) : (
            <Table
              rows={jobs}
              rowKey={({ id }) => id}
              columns={[
                { head: "Job", class: "mono", cell: ({ id }) => <JobLink id={id}>{shortId(id)}</JobLink> },
                { head: "State", cell: (job) => <JobStateOf job={job} /> },
                {
                  head: "Input",
                  from: "medium",
                  class: "mono clip muted",
                  style: { maxWidth: "320px" },
                  cell: ({ preview }) => preview ?? "—",
                },
                { head: "Queue", from: "wide", cell: ({ queue }) => queue },
                {
                  head: "When",
                  num: true,
                  class: "muted",
                  cell: ({ endedAt, startedAt }) => <Ago at={endedAt ?? startedAt} />,
                },
              ]}
            />
          )
        }
      </Loaded>
    </Panel>
  );
}

/** Actions on all dead jobs of the group. */
function AllOfThem({
  group,
  again,
  primary = false,
}: {
  group: FailureGroupDetail;
  again: () => void;
  primary?: boolean;
}) {
  return (
    <>
      <Act
        large
        primary={primary}
        verb="Retry all"
        on=""
        needs="jobs:retry"
        press={() => retryAll(group, again)}
      />
      {may("jobs:edit") && may("view:payload") && (
        <Act
          large
          verb="Change and retry"
          on=""
          needs="jobs:retry"
          title="Patch the inputs of its dead jobs, then retry them"
          press={() => patchAll(group, again)}
        />
      )}
      <Act
        large
        verb="Move all"
        on=""
        needs="jobs:edit"
        title="Move its dead jobs to another queue; they stay dead"
        press={() => moveAll(group, again)}
      />
      <Act large danger verb="Delete all" on="" needs="jobs:delete" press={() => deleteAll(group, again)} />
    </>
  );
}
