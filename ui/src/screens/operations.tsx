// Bulk actions on this database, whoever drives them: under way, paused, over; from a dashboard or from a terminal.
import { useEffect } from "preact/hooks";
import type { Operation } from "../../../src/dashboard/contract.ts";
import { get } from "../api.ts";
import { editInWords } from "../bulk-edit.tsx";
import { inWords } from "../bulk.tsx";
import { OperationProgress, outcomesInWords, Steering } from "../operation-parts.tsx";
import { Ago, Head, State } from "../parts.tsx";
import { actionsColumn, Listing } from "../table.tsx";
import { useQuery } from "../use-query.ts";
import { verbs } from "../verbs.ts";

export function OperationsScreen() {
  const query = useQuery(
    "operations",
    (signal) => get<{ operations: Operation[] }>("/operations", {}, signal),
    { live: true },
  );
  const busy = query.data?.operations.some(({ state }) => state === "running") === true;
  // The live stream tells of jobs; an operation that rests between two of them moves no job.
  useEffect(() => {
    if (!busy) return undefined;
    const ticking = setInterval(query.again, 1_000);
    return () => clearInterval(ticking);
  }, [busy]);
  return (
    <>
      <Head
        title="Operations"
        note="Actions on many jobs, from every dashboard and terminal on this database. The newest 100."
      />
      <section class="panel" aria-label="Operations">
        <Listing
          query={query}
          rows={({ operations }) => operations}
          rowKey={({ id }: Operation) => id}
          empty={{
            icon: "audit",
            title: "No action on many jobs yet",
            text: (
              <p>
                Choose jobs, or all that match, and retry, cancel, edit or delete them: how far it is can be
                seen here, and it can be paused and stopped.
              </p>
            ),
          }}
          columns={[
            {
              head: "What",
              class: "cause",
              cell: (one) => (
                <>
                  <b>{verbs[one.action].verb}</b> <span>{inWords(one.filter)}</span>
                  <span class="narrow-only">
                    <State state={one.standsStill ? "stands still" : one.state} />
                  </span>
                  {one.change !== null && <span class="sub">to {editInWords(one.change)}</span>}
                  {one.patched && <span class="sub mono clip">with {one.patch ?? "another input"}</span>}
                  {one.error !== null && <span class="sub bad">{one.error}</span>}
                </>
              ),
            },
            {
              head: "State",
              from: "medium",
              cell: (one) => (
                <>
                  <State state={one.standsStill ? "stands still" : one.state} />
                  {one.standsStill && (
                    <span class="sub nowrap">
                      nobody drives it, <Ago at={one.seenAt} />
                    </span>
                  )}
                </>
              ),
            },
            {
              head: "How far",
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
              head: "Who",
              from: "medium",
              class: "clip",
              style: { maxWidth: "160px" },
              cell: ({ actor }) => actor,
            },
            {
              head: "Started",
              num: true,
              from: "medium",
              class: "muted",
              cell: ({ startedAt }) => <Ago at={startedAt} />,
            },
            actionsColumn((one: Operation) => (
              <span class="row tight end">
                <Steering operation={one} then={query.again} small />
              </span>
            )),
          ]}
        />
      </section>
    </>
  );
}
