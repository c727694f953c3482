// Batches: progress, and the job that runs after.
import { useSignal } from "@preact/signals";
import type { BatchList } from "../../../src/dashboard/api/contract.ts";
import { get, seg } from "../data/api.ts";
import { duration, number, plural, shortId } from "../kit/format.ts";
import { Ago, JobLink, State } from "../kit/labels.tsx";
import { Head } from "../kit/panels.tsx";
import { now } from "../data/page-clock.ts";
import { href, params } from "../data/router.ts";
import { type Column, Listing, Pager } from "../kit/table.tsx";
import { useQuery } from "../data/live-query.ts";

type Batch = BatchList["batches"][number];

const views = [
  { name: "All", view: null, asked: {} },
  { name: "Open", view: "open", asked: { state: "open" } },
  { name: "Failed", view: "failed", asked: { state: "failed" } },
  { name: "Ended", view: "ended", asked: { state: "ended" } },
] as const;

/** The rule for the final job if a member does not succeed. */
const policies: Readonly<Record<NonNullable<Batch["policy"]>, string>> = {
  cancel: "cancelled if one does not succeed",
  continue: "runs even if one does not succeed",
  wait: "waits until all are done",
};

const columns: Column<Batch>[] = [
  {
    head: "Batch",
    cell: ({ id, names, total }) => (
      <>
        <a class="link" href={jobsOf(id)} title={`The jobs of batch ${id}`}>
          {names.join(", ")}
        </a>
        <span class="sub">
          <span class="mono">{shortId(id)}</span> · {plural(total, "job")}
        </span>
      </>
    ),
  },
  { head: "Progress", cell: (batch) => <HowFar batch={batch} /> },
  {
    head: "Then",
    cell: ({ then, policy }) =>
      then === null ? (
        <span class="muted">—</span>
      ) : (
        <>
          <span class="row tight">
            <JobLink id={then.id}>{then.name}</JobLink>
            {then.state === null ? <span class="muted small">not kept</span> : <State state={then.state} />}
          </span>
          {policy !== null && <span class="sub">{policies[policy]}</span>}
        </>
      ),
  },
  {
    head: "Created",
    num: true,
    from: "medium",
    class: "muted",
    cell: ({ createdAt }) => <Ago at={createdAt} />,
  },
  {
    head: "Started",
    num: true,
    from: "wide",
    class: "muted",
    cell: ({ startedAt }) => <Ago at={startedAt} />,
  },
  { head: "Ended", num: true, from: "wide", class: "muted", cell: ({ endedAt }) => <Ago at={endedAt} /> },
  {
    head: "Took",
    num: true,
    from: "medium",
    class: "muted nowrap",
    cell: ({ createdAt, endedAt, open, cut }) =>
      endedAt !== null
        ? duration(endedAt - createdAt)
        : open > 0 || cut
          ? duration(Math.max(0, now.value - createdAt))
          : "—",
  },
];

export function BatchesScreen() {
  const chosen = views.find(({ view }) => view === params.value.get("view")) ?? views[0];
  const cursor = useSignal<string | null>(null);
  const query = useQuery(
    `batches ${chosen.name} ${cursor.value}`,
    (signal) => get<BatchList>("/batches", { ...chosen.asked, limit: 25, cursor: cursor.value }, signal),
    { sign: "overview" },
  );
  return (
    <>
      <Head title="Batches" note="Jobs enqueued together, newest first." />
      <nav class="tabs" aria-label="Views">
        {views.map(({ name, view }) => (
          <a
            key={name}
            href={href(view === null ? "/batches" : `/batches?view=${view}`)}
            aria-current={chosen.view === view ? "page" : undefined}
            onClick={() => (cursor.value = null)}
          >
            {name}
          </a>
        ))}
      </nav>
      <section class="panel" aria-label="Batches">
        <Listing
          query={query}
          rows={({ batches }) => batches}
          rowKey={({ id }: Batch) => id}
          empty={{
            icon: "layers",
            title: chosen.view === null ? "No batches yet" : "No such batch",
            text: (
              <>
                <p>Enqueue jobs together, and one that runs when all have ended:</p>
                <pre class="code">{`await hf.batch(pages.map((url) => ({ job: fetchPage, input: { url } })), {\n  then: { job: report, input: {} },\n});`}</pre>
              </>
            ),
          }}
          columns={columns}
          foot={({ cursor: next, batches }) => (
            <Pager cursor={cursor} next={next}>
              {chosen.view !== null && next !== null && batches.length < 25 && (
                <span>Only the newest batches were searched. There may be more.</span>
              )}
            </Pager>
          )}
        />
      </section>
    </>
  );
}

function jobsOf(id: string, state?: string): string {
  return href(`/jobs?batch=${seg(id)}${state === undefined ? "" : `&state=${state}`}`);
}

const ends = ["done", "dead", "cancelled"] as const;

/** A bar of the members' states, and counts that link to them. */
function HowFar({ batch }: { batch: Batch }) {
  const { id, total, counted, cut, open, running, gone } = batch;
  const of = cut ? counted : total;
  const over = of - open;
  const share = (n: number): string => `${of === 0 ? 0 : (n / of) * 100}%`;
  const words = cut
    ? `${number(over)} of ${number(of)} ended, of the newest that were looked at`
    : `${number(over)} of ${number(of)} ended`;
  const numbers = [
    { n: batch.dead, words: "dead", state: "dead" },
    { n: batch.cancelled, words: "cancelled", state: "cancelled" },
    { n: running, words: "running", state: "running" },
    { n: open - running, words: "waiting", state: "ready,scheduled,waiting" },
  ];
  return (
    <div class="how-far-batch">
      <span
        class="gauge parts"
        role="progressbar"
        aria-label="Progress"
        aria-valuemin={0}
        aria-valuemax={of}
        aria-valuenow={over}
        aria-valuetext={words}
        title={words}
      >
        {ends.map((state) => (
          <i key={state} class={state} style={{ width: share(batch[state]) }} />
        ))}
        <i class="gone" style={{ width: share(gone) }} />
        <i class="running" style={{ width: share(running) }} />
      </span>
      <span class="sub">
        <span>
          {number(over)} of {number(of)}
        </span>
        {numbers
          .filter(({ n }) => n > 0)
          .map(({ n, words: what, state }) => (
            <a key={what} class={what === "dead" ? "link bad" : "link"} href={jobsOf(id, state)}>
              {number(n)} {what}
            </a>
          ))}
        {gone > 0 && <span>{number(gone)} no longer stored</span>}
        {cut && <span>the newest of {number(total)} jobs were looked at</span>}
      </span>
    </div>
  );
}
