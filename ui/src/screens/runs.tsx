// Workflow runs: jobs that remember steps, what each is at, what it waits for and how far it is.
import { useSignal } from "@preact/signals";
import type { RunList } from "../../../src/dashboard/contract.ts";
import { get, seg } from "../api.ts";
import { duration, instant, number, shortId } from "../format.ts";
import { Ago, Head, JobLink, JobStateOf, now } from "../parts.tsx";
import { href, params, setParams } from "../router.ts";
import { type Column, Listing, Pager } from "../table.tsx";
import { useQuery } from "../use-query.ts";

type Run = RunList["runs"][number];

const live = "running,ready,scheduled,waiting";
const views = [
  { name: "Under way", view: null, asked: { state: live } },
  { name: "Retrying", view: "retrying", asked: { state: live, retrying: "true" } },
  { name: "At one step for over 5 min", view: "slow", asked: { state: live, at: "300000" } },
  { name: "Ended", view: "ended", asked: { state: "done,dead,cancelled" } },
  { name: "All", view: "all", asked: {} },
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
    class: "nowrap",
    cell: ({ done, known }) => (
      <>
        {number(done)} of {number(known)}{" "}
        <span class="gauge" role="img" aria-label={`Steps: ${done} of ${known} that are known`}>
          <i style={{ width: `${known === 0 ? 0 : (done / known) * 100}%` }} />
        </span>
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

export function Runs() {
  const chosen = views.find(({ view }) => view === params.value.get("view")) ?? views[0];
  const name = params.value.get("name");
  const cursor = useSignal<string | null>(null);
  const query = useQuery(
    `runs ${chosen.name} ${name} ${cursor.value}`,
    (signal) => get<RunList>("/runs", { ...chosen.asked, name, limit: 50, cursor: cursor.value }, signal),
    { live: true },
  );
  const link = (view: string | null): string => {
    const asked = new URLSearchParams({
      ...(view === null ? {} : { view }),
      ...(name === null ? {} : { name }),
    });
    return href(`/workflows${asked.size === 0 ? "" : `?${asked}`}`);
  };
  return (
    <>
      <Head title="Workflows" note="Runs: jobs that remember steps, the newest first.">
        {name !== null && (
          <button type="button" class="button small" onClick={() => setParams({ name: null })}>
            {name} only: show all
          </button>
        )}
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
      <section class="panel" aria-label="Runs">
        <Listing
          query={query}
          rows={({ runs }) => runs}
          rowKey={({ id }: Run) => id}
          empty={{
            icon: "step",
            title: chosen.view === "all" ? "No run yet" : "No such run",
            text: (
              <>
                <p>A job that remembers a step is a run: after a crash it goes on behind its last one.</p>
                <pre class="code">{`const paid = await ctx.step("charge", () => charge(order));\nawait ctx.sleep("cool off", "1d");`}</pre>
              </>
            ),
          }}
          columns={columns}
          foot={({ cursor: next, cut }) => (
            <Pager cursor={cursor} next={next}>
              {cut && <span>The newest runs were looked through; there may be more.</span>}
            </Pager>
          )}
        />
      </section>
    </>
  );
}

/** The step, and what it waits for. */
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
        {waits[at.kind] ?? (retrying ? "is tried again" : "runs")},{" "}
        {duration(Math.max(0, now.value - at.since))} by now
        {at.until !== null && <> · until {instant(at.until)}</>}
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
