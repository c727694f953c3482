// Finds jobs by part of an id, as lists show it. One match opens its page, several are listed. Ends are searched among
// the newest jobs, a stretch at a time.
import { useSignal } from "@preact/signals";
import { useLayoutEffect } from "preact/hooks";
import type { JobLine, JobMatches } from "../../../src/dashboard/api/contract.ts";
import { idPart } from "../../../src/values/id-part.ts";
import { get } from "../data/api.ts";
import { instant } from "../kit/format.ts";
import { Ago, JobLink, JobStateOf } from "../kit/labels.tsx";
import { Empty, Head, Loaded, Panel } from "../kit/panels.tsx";
import { go, href } from "../data/router.ts";
import { type Column, Table } from "../kit/table.tsx";
import { useQuery } from "../data/live-query.ts";

const columns: Column<JobLine>[] = [
  {
    head: "Job",
    cell: ({ id, name }) => (
      <>
        <JobLink id={id}>{name}</JobLink>
        <span class="sub mono">{id}</span>
      </>
    ),
  },
  { head: "State", cell: (job) => <JobStateOf job={job} /> },
  { head: "Queue", from: "medium", cell: ({ queue }) => queue },
  { head: "Created", num: true, class: "muted", cell: ({ createdAt }) => <Ago at={createdAt} /> },
];

export function JobMatchesScreen({ part }: { part: string }) {
  const cursor = useSignal<string | null>(null);
  const known = idPart(part) !== null;
  const query = useQuery(`jobs matching ${part} ${cursor.value ?? ""}`, async (signal): Promise<JobMatches> =>
    known
      ? get<JobMatches>("/jobs/matching", { id: part, cursor: cursor.value }, signal)
      : { jobs: [], more: false, cursor: null, since: null },
  );
  return (
    <Loaded query={query}>
      {(found) => (
        <Found part={part} known={known} found={found} lookOn={() => (cursor.value = found.cursor)} />
      )}
    </Loaded>
  );
}

function Found({
  part,
  known,
  found,
  lookOn,
}: {
  part: string;
  known: boolean;
  found: JobMatches;
  lookOn: () => void;
}) {
  const { jobs, more, cursor, since } = found;
  const only = jobs.length === 1 && !more ? jobs[0] : undefined;
  useLayoutEffect(() => {
    if (only !== undefined) go(`/jobs/${only.id}${location.search}`, { replace: true });
  }, [only?.id]);
  if (only !== undefined) return null;
  if (jobs.length > 0)
    return (
      <>
        <Head title="Several jobs match" />
        <Panel
          title={more ? `More than ${jobs.length} jobs` : `${jobs.length} jobs`}
          note={
            more
              ? `whose ids begin or end with ${part}: the newest of them`
              : `whose ids begin or end with ${part}`
          }
        >
          <Table rows={jobs} rowKey={({ id }) => id} columns={columns} />
        </Panel>
      </>
    );
  return (
    <section class="panel">
      <Empty icon="search" title="No such job">
        <p>
          {!known
            ? "Not an id or part of one: enter at least 4 hexadecimal digits."
            : cursor === null
              ? `No job has an id that begins or ends with ${part}. It never existed, was deleted, or was removed after its retention.`
              : `No job since ${instant(since)} has an id that ends with ${part}, and no id begins with it.`}
        </p>
        {cursor !== null && (
          <button type="button" class="button primary" onClick={lookOn}>
            Search further back
          </button>
        )}
        <a class="button" href={href("/jobs")}>
          All jobs
        </a>
      </Empty>
    </section>
  );
}
