// Workflow runs: jobs with steps, their current step and progress.
import { useSignal } from "@preact/signals";
import type { DefinitionList, RunList } from "../../../src/dashboard/api/contract.ts";
import { get, seg } from "../data/api.ts";
import { duration, instant, number, shortId } from "../kit/format.ts";
import { Ago, JobLink, JobStateOf } from "../kit/labels.tsx";
import { Head } from "../kit/panels.tsx";
import { now } from "../data/page-clock.ts";
import { href, params, setParams } from "../data/router.ts";
import { type Column, Listing, Pager } from "../kit/table.tsx";
import { useQuery } from "../data/live-query.ts";

type Run = RunList["runs"][number];

const live = "running,ready,scheduled,waiting";
const views = [
  { name: "In progress", view: null, asked: { state: live } },
  { name: "Retrying", view: "retrying", asked: { state: live, retrying: "true" } },
  { name: "Stuck", view: "slow", asked: { state: live } },
  { name: "Ended", view: "ended", asked: { state: "done,dead,cancelled" } },
  { name: "All", view: "all", asked: {} },
] as const;

/** Time at one step that counts as stuck. Active sleeps and retry delays are not counted. */
const limits = [
  { words: "over 5 min", of: "5m", ms: 300_000 },
  { words: "over 15 min", of: "15m", ms: 900_000 },
  { words: "over 1 h", of: "1h", ms: 3_600_000 },
  { words: "over 1 day", of: "1d", ms: 86_400_000 },
] as const;

const columns: Column<Run>[] = [
  {
    head: "Workflow",
    cell: ({ id, name, queue }) => (
      <>
        <JobLink id={id}>{name}</JobLink>
        <span class="sub">
          <span class="mono">{shortId(id)}</span> · {queue}
        </span>
      </>
    ),
  },
  { head: "State", cell: (run) => <JobStateOf job={run} /> },
  { head: "At", cell: (run) => <Where run={run} /> },
  {
    head: "Steps",
    num: true,
    from: "medium",
    class: "nowrap",
    cell: ({ done, known }) => (
      <>
        {number(done)} of {number(known)}{" "}
        {
          <span class="gauge" role="img" aria-label={`Steps: ${done} of ${known} known`}>
            <i style={{ width: `${known === 0 ? 0 : (done / known) * 100}%` }} />
          </span>
        }
      </>
    ),
  },
  {
    head: "Started",
    num: true,
    from: "medium",
    class: "muted",
    cell: ({ createdAt }) => <Ago at={createdAt} />,
  },
  {
    head: "Took",
    num: true,
    from: "medium",
    class: "muted nowrap",
    cell: ({ createdAt, endedAt }) => duration((endedAt ?? Math.max(now.value, createdAt)) - createdAt),
  },
];

export function WorkflowsScreen() {
  const chosen = views.find(({ view }) => view === params.value.get("view")) ?? views[0];
  const name = params.value.get("name");
  const limit = limits.find(({ of }) => of === params.value.get("for")) ?? limits[0];
  const asked = chosen.view === "slow" ? { ...chosen.asked, at: String(limit.ms) } : chosen.asked;
  const cursor = useSignal<string | null>(null);
  const query = useQuery(
    `runs ${chosen.name} ${limit.of} ${name} ${cursor.value}`,
    (signal) => get<RunList>("/runs", { ...asked, name, limit: 50, cursor: cursor.value }, signal),
    { sign: "runs" },
  );
  const link = (view: string | null): string => {
    const kept = new URLSearchParams({
      ...(view === null ? {} : { view }),
      ...(name === null ? {} : { name }),
    });
    return href(`/workflows${kept.size === 0 ? "" : `?${kept}`}`);
  };
  return (
    <>
      <Head title="Workflows" note="Jobs with steps, newest first.">
        <Names name={name} change={() => (cursor.value = null)} />
      </Head>
      <nav class="tabs" aria-label="Views">
        {views.map(({ name: words, view }) => (
          <a
            key={words}
            href={link(view)}
            aria-current={chosen.view === view ? "page" : undefined}
            onClick={() => (cursor.value = null)}
          >
            {words}
          </a>
        ))}
      </nav>
      {chosen.view === "slow" && (
        <div class="row tight">
          <label class="row tight small">
            At the same step for{" "}
            <select
              class="input"
              value={limit.of}
              onChange={(event) => {
                cursor.value = null;
                setParams({ for: event.currentTarget.value === "5m" ? null : event.currentTarget.value });
              }}
            >
              {limits.map(({ words, of }) => (
                <option key={of} value={of}>
                  {words}
                </option>
              ))}
            </select>
          </label>
          <span class="muted small">Active sleeps are not counted.</span>
        </div>
      )}
      <section class="panel" aria-label="Runs">
        <Listing
          query={query}
          rows={({ runs }) => runs}
          rowKey={({ id }: Run) => id}
          empty={{
            icon: "step",
            title: chosen.view === "all" ? "No runs yet" : "No such run",
            text: (
              <>
                <p>
                  A job with steps is a workflow run. After a crash it continues after its last completed
                  step.
                </p>
                <pre class="code">{`const paid = await ctx.step("charge", () => charge(order));\nawait ctx.sleep("cool off", "1d");`}</pre>
              </>
            ),
          }}
          columns={columns}
          foot={({ cursor: next, cut }) => (
            <Pager cursor={cursor} next={next}>
              {cut && <span>Only the newest runs were searched. There may be more.</span>}
            </Pager>
          )}
        />
      </section>
    </>
  );
}

/** Names of jobs; some have no steps. */
function Names({ name, change }: { name: string | null; change: () => void }) {
  const { data } = useQuery("definitions", (signal) => get<DefinitionList>("/definitions", {}, signal));
  const known = data?.names.map((kind) => kind.name) ?? [];
  const names = name === null || known.includes(name) ? known : [name, ...known];
  return (
    <select
      class="input"
      aria-label="Workflow"
      value={name ?? ""}
      onChange={(event) => {
        change();
        setParams({ name: event.currentTarget.value === "" ? null : event.currentTarget.value });
      }}
    >
      <option value="">All workflows</option>
      {names.map((one) => (
        <option key={one} value={one}>
          {one}
        </option>
      ))}
    </select>
  );
}

/** The current step, and its reason to wait. */
function Where({ run: { at, retrying } }: { run: Run }) {
  if (at === null) return <span class="muted">{retrying ? "waits for its next attempt" : "—"}</span>;
  const waits = {
    sleep: "sleeps",
    signal: "waits for a signal",
    call: "waits for a job",
  } as Readonly<Record<string, string>>;
  return (
    <>
      <b>{at.name}</b>
      <span class="sub">
        {waits[at.kind] ?? (retrying ? "retrying" : "runs")}, {duration(Math.max(0, now.value - at.since))} so
        far
        {at.until !== null && ` · until ${instant(at.until)}`}
        {at.jobId !== null && (
          <>
            {" · "}
            <a href={href(`/jobs/${seg(at.jobId)}`)}>{shortId(at.jobId)}</a>
          </>
        )}
      </span>
    </>
  );
}
