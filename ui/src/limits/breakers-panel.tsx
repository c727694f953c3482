// Breakers: open ones, and their next probe.
import type { BreakerLine } from "../../../src/dashboard/api/contract.ts";
import { get, seg, send } from "../data/api.ts";
import { useQuery } from "../data/live-query.ts";
import { Do } from "../kit/actions.tsx";
import { number } from "../kit/format.ts";
import { Ago, State } from "../kit/labels.tsx";
import { Panel } from "../kit/panels.tsx";
import { actionsColumn, Listing } from "../kit/table.tsx";

export function BreakersPanel() {
  const query = useQuery("breakers", (signal) => get<{ breakers: BreakerLine[] }>("/breakers", {}, signal), {
    topic: "breakers",
  });
  return (
    <Panel title="Breakers" note="open after failures in a row; one probe at a time closes them">
      <Listing
        query={query}
        rows={({ breakers }) => breakers}
        rowKey={({ key }: BreakerLine) => key}
        sort="sort-breakers"
        empty={{
          icon: "check",
          title: "No breaker has tripped",
          brief: true,
          text: (
            <p>
              Set a breaker for a queue or in a job's definition. After consecutive failures, jobs wait
              without using attempts.
            </p>
          ),
        }}
        columns={[
          {
            head: "Breaker",
            by: ({ key }) => key,
            style: { maxWidth: "460px" },
            cell: (breaker) => (
              <>
                <b>{breaker.key}</b>
                {breaker.error !== null && <span class="sub clip">{breaker.error}</span>}
              </>
            ),
          },
          { head: "State", by: ({ state }) => state, cell: ({ state }) => <State state={state} /> },
          {
            head: "Failures in a row",
            by: ({ failures }) => failures,
            num: true,
            from: "medium",
            cell: ({ failures }) => number(failures),
          },
          {
            head: "Next probe",
            by: ({ openUntil }) => openUntil,
            num: true,
            class: "muted",
            cell: ({ probing, openUntil }) => (probing ? "running" : <Ago at={openUntil} />),
          },
          actionsColumn(
            ({ key, state }: BreakerLine) =>
              state !== "closed" && (
                <Do
                  verb="Reset"
                  on={key}
                  needs="limits:set"
                  run={() => send("POST", `/breakers/${seg(key)}/reset`)}
                  done="Breaker reset"
                  then={query.again}
                />
              ),
          ),
        ]}
      />
    </Panel>
  );
}
