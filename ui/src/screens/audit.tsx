import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { AuditLine } from "../../../src/dashboard/contract.ts";
import { get } from "../api.ts";
import { Ago, Empty, Failure, Head, JobLink } from "../parts.tsx";

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
          <div class="scroll">
            <table>
              <thead>
                <tr>
                  <th scope="col">When</th>
                  <th scope="col">Who</th>
                  <th scope="col">What</th>
                  <th scope="col">On</th>
                  <th scope="col">Outcome</th>
                  <th scope="col" class="wide-only">
                    Details
                  </th>
                </tr>
              </thead>
              <tbody>
                {entries.value.map((entry) => (
                  <tr key={entry.id}>
                    <td class="muted">
                      <Ago at={entry.at} />
                    </td>
                    <td>{entry.actor}</td>
                    <td>
                      <b>{entry.action}</b>
                    </td>
                    <td class="mono clip" style={{ maxWidth: "280px" }}>
                      {entry.target !== null &&
                      /^[0-9a-f-]{36}$/.test(entry.target) &&
                      entry.action.startsWith("jobs.") ? (
                        <JobLink id={entry.target}>{entry.target}</JobLink>
                      ) : (
                        entry.target
                      )}
                    </td>
                    <td>{entry.outcome}</td>
                    <td class="mono clip muted wide-only" style={{ maxWidth: "320px" }}>
                      {entry.details}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
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
