// A run's history as JSON lines, newest first, in pages.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { WorkflowHistory } from "../../../src/dashboard/api/contract.ts";
import { get } from "../data/api.ts";
import { count, number } from "../kit/format.ts";
import { Icon } from "../kit/icons.tsx";
import { attempt } from "../kit/toasts.tsx";
import { copy } from "../kit/clipboard.tsx";
import { Empty, Loaded, Panel } from "../kit/panels.tsx";
import { linesOf } from "./step-lines.ts";
import { useQuery } from "../data/live-query.ts";

const perPage = 100;

export function RunHistory({ id, live }: { id: string; live: boolean }) {
  const older = useSignal<{
    of: string;
    lines: readonly string[];
    from: number;
    earlier: number | null;
  } | null>(null);
  useEffect(() => {
    older.value = null;
  }, [id]);
  const query = useQuery(
    `lines ${id}`,
    (signal) => get<WorkflowHistory>(`/jobs/${id}/history`, { limit: perPage }, signal),
    live ? { sign: `run:${id}` } : {},
  );
  const more = async (before: number): Promise<void> => {
    const page = await get<WorkflowHistory>(`/jobs/${id}/history`, { before, limit: perPage });
    const had = older.value === null ? [] : older.value.lines;
    older.value = {
      of: id,
      lines: [...had, ...linesOf(page.steps)],
      from: older.value?.from ?? before,
      earlier: page.earlier,
    };
  };
  return (
    <Loaded query={query}>
      {(history) => {
        // Steps already on an earlier page are left out.
        const before = older.value;
        const newest = history.steps.filter(({ seq }) => before === null || seq >= before.from);
        const lines = [...linesOf(newest), ...(before?.lines ?? [])];
        const earlier = before === null ? history.earlier : before.earlier;
        if (lines.length === 0)
          return (
            <section class="panel" aria-label="History">
              <Empty icon="step" title="No steps">
                <p>This job has no steps. See its timeline.</p>
              </Empty>
            </section>
          );
        return (
          <Panel
            title="History"
            note={`newest first, ${number(lines.length)} of ${count({ count: history.stepCount, more: history.stepCountMore })}`}
            tools={
              <button type="button" class="button quiet small" onClick={() => void copy(lines.join("\n"))}>
                <Icon name="copy" size={13} /> Copy
              </button>
            }
          >
            <div class="json-lines" tabIndex={0} role="region" aria-label="History entries">
              <ol>
                {lines.map((line, i) => (
                  <li key={i} class="mono">
                    {line}
                  </li>
                ))}
              </ol>
            </div>
            {earlier !== null && (
              <footer>
                <span class="spring" />
                <button
                  type="button"
                  class="button small"
                  onClick={() => void attempt("Loaded", () => more(earlier))}
                >
                  Earlier lines
                </button>
              </footer>
            )}
          </Panel>
        );
      }}
    </Loaded>
  );
}
