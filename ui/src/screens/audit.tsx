// What was done on the dashboard, and by whom.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { AuditLine } from "../../../src/dashboard/contract.ts";
import { get } from "../api.ts";
import { Ago, Empty, Failure, Head, JobLink } from "../parts.tsx";
import { type Column, Table } from "../table.tsx";

const columns: Column<AuditLine>[] = [
  { head: "When", class: "muted", cell: ({ at }) => <Ago at={at} /> },
  { head: "Who", cell: ({ actor }) => actor },
  { head: "What", cell: ({ action }) => <b>{action}</b> },
  {
    head: "On",
    class: "mono clip",
    style: { maxWidth: "280px" },
    cell: ({ target, action }) =>
      target !== null && /^[0-9a-f-]{36}$/.test(target) && action.startsWith("jobs.") ? (
        <JobLink id={target}>{target}</JobLink>
      ) : (
        target
      ),
  },
  { head: "Outcome", cell: ({ outcome }) => outcome },
  {
    head: "Details",
    from: "wide",
    class: "mono clip muted",
    style: { maxWidth: "320px" },
    cell: ({ details }) => details,
  },
];

interface Page {
  readonly entries: AuditLine[];
  readonly before: number | null;
}

export function Audit() {
  const entries = useSignal<readonly AuditLine[] | null>(null);
  const before = useSignal<number | null>(null);
  const error = useSignal<Error | null>(null);
  const load = (from: number | null): void => {
    get<Page>("/audit", { limit: 50, before: from }).then(
      (page) => {
        entries.value = [...(from === null ? [] : (entries.value ?? [])), ...page.entries];
        before.value = page.before;
        error.value = null;
      },
      (failure: unknown) => (error.value = failure as Error),
    );
  };
  useEffect(() => load(null), []);
  return (
    <>
      <Head title="Audit" note="What was done on this dashboard, and by whom. Kept 90 days." />
      <section class="panel" aria-label="Audit trail">
        {error.value !== null && <Failure error={error.value} again={() => load(null)} />}
        {entries.value === null ? (
          error.value === null && (
            <div class="empty" role="status">
              <p>Loading…</p>
            </div>
          )
        ) : entries.value.length === 0 ? (
          <Empty icon="audit" title="Nothing was done yet">
            <p>Every retry, cancel, pause and change made here leaves a line.</p>
          </Empty>
        ) : (
          <Table rows={entries.value} rowKey={({ id }) => String(id)} columns={columns} />
        )}
        {before.value !== null && (
          <footer>
            <span class="spring" />
            <button type="button" class="button small" onClick={() => load(before.value)}>
              Load more
            </button>
          </footer>
        )}
      </section>
    </>
  );
}
