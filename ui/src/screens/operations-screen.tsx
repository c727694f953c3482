// Bulk actions on this database, whoever drives them: under way, paused, over; from a dashboard or from a terminal.
import type { Operation } from "../../../src/dashboard/api/contract.ts";
import { get } from "../data/api.ts";
import { editInWords } from "../operations/job-edit.tsx";
import { inWords } from "../jobs/filter-words.ts";
import { OperationProgress, outcomesInWords, steering } from "../operations/operation-progress.tsx";
import { Ago, State } from "../kit/labels.tsx";
import { Head } from "../kit/panels.tsx";
import { rich } from "../language/rich-text.ts";
import { Listing, menuColumn } from "../kit/table.tsx";
import { t } from "../language/translation.ts";
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
        title={t("Operations")}
        note={t("Actions on many jobs, from every dashboard and terminal on this database. The newest 100.")}
      />
      <section class="panel" aria-label={t("Operations")}>
        <Listing
          query={query}
          rows={({ operations }) => operations}
          rowKey={({ id }: Operation) => id}
          sort="sort"
          empty={{
            icon: "audit",
            title: t("No action on many jobs yet"),
            text: (
              <p>
                {t(
                  "Choose jobs, or all that match, and retry, cancel, edit or delete them: how far it is can be seen here, and it can be paused and stopped.",
                )}
              </p>
            ),
          }}
          columns={[
            {
              head: t("What"),
              class: "cause",
              cell: (one) => (
                <>
                  <b>{verbs[one.action].verb}</b> <span>{inWords(one.filter)}</span>
                  <span class="narrow-only">
                    <State state={one.standsStill ? "stands still" : one.state} />
                  </span>
                  {one.change !== null && (
                    <span class="sub">{t("to {change}", { change: editInWords(one.change) })}</span>
                  )}
                  {one.patched && (
                    <span class="sub mono clip">
                      {t("with {patch}", { patch: one.patch ?? t("another input") })}
                    </span>
                  )}
                  {one.error !== null && <span class="sub bad">{one.error}</span>}
                </>
              ),
            },
            {
              head: t("State"),
              by: ({ standsStill, state }) => (standsStill ? t("stands still") : state),
              from: "medium",
              cell: (one) => (
                <>
                  <State state={one.standsStill ? "stands still" : one.state} />
                  {one.standsStill && (
                    <span class="sub nowrap">
                      {rich("nobody drives it, {when}", { when: <Ago at={one.seenAt} /> })}
                    </span>
                  )}
                </>
              ),
            },
            {
              head: t("How far"),
              by: ({ matched }) => matched,
              style: { minWidth: "140px" },
              cell: (one) => <OperationProgress operation={one} />,
            },
            {
              head: t("Became"),
              from: "wide",
              class: "small muted",
              cell: (one) => outcomesInWords(one) || "—",
            },
            {
              head: t("Who"),
              by: ({ actor }) => actor,
              from: "medium",
              class: "clip",
              style: { maxWidth: "160px" },
              cell: ({ actor }) => actor,
            },
            {
              head: t("Started"),
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
