// The audit trail, of everything or of one job.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { AuditLine } from "../../../src/dashboard/api/contract.ts";
import { get } from "../data/api.ts";
import { Ago, JobLink } from "../kit/labels.tsx";
import { Empty, Failure, Panel } from "../kit/panels.tsx";
import { type Column, Table } from "../kit/table.tsx";

const columns: Column<AuditLine>[] = [
  { head: "Time", class: "muted", cell: ({ at }) => <Ago at={at} /> },
  { head: "Actor", from: "medium", cell: ({ actor }) => actor },
  {
    head: "Action",
    cell: (line) => (
      <>
        <b>{line.action}</b>
        <span class="sub narrow-only mono clip" style={{ maxWidth: "36vw" }}>
          {on(line)}
        </span>
        <span class="sub narrow-only">
          {line.outcome} by {line.actor}
        </span>
      </>
    ),
  },
  {
    head: "Target",
    from: "medium",
    class: "mono clip",
    style: { maxWidth: "240px" },
    title: ({ target }) => target ?? "",
    cell: on,
  },
  {
    head: "Outcome",
    from: "medium",
    class: "clip",
    style: { maxWidth: "180px" },
    title: ({ outcome }) => outcome,
    cell: ({ outcome }) => outcome,
  },
  {
    head: "Details",
    from: "wide",
    class: "mono clip muted",
    style: { maxWidth: "240px" },
    title: ({ details }) => details ?? "",
    cell: ({ details }) => details,
  },
];

function on({ target, action }: AuditLine) {
  if (target !== null && /^[0-9a-f-]{36}$/.test(target) && action.startsWith("jobs."))
    return <JobLink id={target}>{target}</JobLink>;
  return target;
}

interface Page {
  readonly entries: AuditLine[];
  readonly before: number | null;
}

/** The operator actions on one job. */
export function JobEvents({ id }: { id: string }) {
  return (
    <Panel title="Events" note="operator actions on this job, kept for 90 days">
      <AuditTrail
        target={id}
        empty="No operator has changed this job. A bulk action is one line on the audit trail."
      />
    </Panel>
  );
}

export function AuditTrail({ target, empty }: { target: string | null; empty: string }) {
  const entries = useSignal<readonly AuditLine[] | null>(null);
  const before = useSignal<number | null>(null);
  const error = useSignal<Error | null>(null);
  const load = (from: number | null): void => {
    get<Page>("/audit", { limit: 50, before: from, target }).then(
      (page) => {
        entries.value = [...(from === null ? [] : (entries.value ?? [])), ...page.entries];
        before.value = page.before;
        error.value = null;
      },
      (failure: unknown) => (error.value = failure as Error),
    );
  };
  useEffect(() => load(null), [target]);
  const shown = columns.filter(({ cell }) => target === null || cell !== on);
  return (
    <>
      {error.value !== null && <Failure error={error.value} again={() => load(null)} />}
      {entries.value === null ? (
        error.value === null && (
          <div class="empty" role="status">
            <p>Loading…</p>
          </div>
        )
      ) : entries.value.length === 0 ? (
        <Empty icon="audit" title="No actions yet">
          <p>{empty}</p>
        </Empty>
      ) : (
        <Table rows={entries.value} rowKey={({ id }) => String(id)} columns={shown} />
      )}
      {before.value !== null && (
        <footer>
          <span class="spring" />
          <button type="button" class="button small" onClick={() => load(before.value)}>
            Load more
          </button>
        </footer>
      )}
    </>
  );
}
