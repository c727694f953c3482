// Bulk actions on this database, from any dashboard or terminal.
import type { Operation } from "../../../src/dashboard/api/contract.ts";
import { get } from "../data/api.ts";
import { editInWords } from "../operations/job-edit.tsx";
import { inWords } from "../jobs/filter-words.ts";
import { OperationProgress, outcomesInWords, steering } from "../operations/operation-progress.tsx";
import { Ago, State } from "../kit/labels.tsx";
import { Head } from "../kit/panels.tsx";
import { Listing, menuColumn } from "../kit/table.tsx";
import { useQuery } from "../data/live-query.ts";
import { verbs } from "../jobs/job-actions.ts";

export function OperationsScreen() {
  const query = useQuery(
    "operations",
    (signal) => get<{ operations: Operation[] }>("/operations", {}, signal),
    { topic: "operations" },
  );
  return (
    <>
      <Head
        title="Operations"
        note="Bulk actions from every dashboard and terminal on this database. Newest 100."
      />
      <section class="panel" aria-label="Operations">
        <Listing
          query={query}
          rows={({ operations }) => operations}
          rowKey={({ id }: Operation) => id}
          sort="sort"
          empty={{
            icon: "audit",
            title: "No bulk actions yet",
            text: (
              <p>Bulk retries, cancels, edits and deletes appear here. They can be paused and stopped.</p>
            ),
          }}
          columns={[
            {
              head: "Action",
              class: "cause",
              cell: (one) => (
                <>
                  <b>{verbs[one.action].verb}</b> <span>{inWords(one.filter)}</span>
                  <span class="narrow-only">
                    <State state={one.standsStill ? "stands still" : one.state} />
                  </span>
                  {one.change !== null && <span class="sub">to {editInWords(one.change)}</span>}
                  {one.patched && <span class="sub mono clip">with {one.patch ?? "changed input"}</span>}
                  {one.error !== null && <span class="sub bad">{one.error}</span>}
                </>
              ),
            },
            {
              head: "State",
              by: ({ standsStill, state }) => (standsStill ? "stands still" : state),
              from: "medium",
              cell: (one) => (
                <>
                  <State state={one.standsStill ? "stands still" : one.state} />
                  {one.standsStill && (
                    <span class="sub nowrap">
                      no process runs it, last seen <Ago at={one.seenAt} />
                    </span>
                  )}
                </>
              ),
            },
            {
              head: "Progress",
              by: ({ matched }) => matched,
              style: { minWidth: "140px" },
              cell: (one) => <OperationProgress operation={one} />,
            },
            {
              head: "Became",
              from: "wide",
              class: "small muted",
              cell: (one) => outcomesInWords(one) || "—",
            },
            {
              head: "Actor",
              by: ({ actor }) => actor,
              from: "medium",
              class: "clip",
              style: { maxWidth: "160px" },
              cell: ({ actor }) => actor,
            },
            {
              head: "Started",
              by: ({ startedAt }) => startedAt,
              num: true,
              from: "medium",
              class: "muted",
              cell: ({ startedAt }) => <Ago at={startedAt} />,
            },
            menuColumn(
              ({ action }: Operation) => verbs[action].verb,
              (one) => steering(one, query.again),
            ),
          ]}
        />
      </section>
    </>
  );
}
