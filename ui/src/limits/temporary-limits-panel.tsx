// Temporary limits, with their end and the values they revert to.
import type { TemporaryLimitLine } from "../../../src/dashboard/api/contract.ts";
import { get, seg, send } from "../data/api.ts";
import { useQuery } from "../data/live-query.ts";
import { Do } from "../kit/actions.tsx";
import { rate } from "../kit/format.ts";
import { Ago } from "../kit/labels.tsx";
import { Panel } from "../kit/panels.tsx";
import { actionsColumn, Listing } from "../kit/table.tsx";
import { temporaryLimitChanges, refreshingLimits } from "./temporary-limit.tsx";

/** Hidden without temporary limits. */
export function TemporaryLimitsPanel() {
  const query = useQuery(
    `temporary-limits ${temporaryLimitChanges.value}`,
    (signal) => get<{ temporaryLimits: TemporaryLimitLine[] }>("/temporary-limits", {}, signal),
    { topic: "temporary-limits" },
  );
  if (query.data === null || query.data.temporaryLimits.length === 0) return null;
  return (
    <Panel title="Temporary limits" note="revert by themselves">
      <Listing
        query={query}
        rows={({ temporaryLimits }) => temporaryLimits}
        rowKey={({ kind, name, lane }: TemporaryLimitLine) => `${kind} ${name} ${lane ?? ""}`}
        empty={{ icon: "check", title: "", text: null }}
        columns={[
          {
            head: "Limit",
            cell: ({ kind, name, lane }) => (
              <>
                <b>{lane ?? name}</b> <span class="tag">{kindWords[kind]}</span>
                {lane !== null && <span class="sub">{name}</span>}
              </>
            ),
          },
          {
            head: "Reverts to",
            class: "mono",
            style: { maxWidth: "420px" },
            cell: ({ back }) => (back === null ? "not there" : backInWords(back)),
          },
          { head: "Ends", num: true, class: "nowrap", cell: ({ untilAt }) => <Ago at={untilAt} /> },
          actionsColumn(({ kind, name, lane }: TemporaryLimitLine) => (
            <Do
              verb="End now"
              on={lane ?? name}
              needs={kind === "queue" ? "queues:set" : "limits:set"}
              run={() =>
                send(
                  "DELETE",
                  `/temporary-limits/${kind}/${seg(name)}${lane === null ? "" : `/${seg(lane)}`}`,
                )
              }
              done="Previous limit restored"
              then={refreshingLimits(query.again)}
            />
          )),
        ]}
      />
    </Panel>
  );
}

function backInWords(back: Readonly<Record<string, unknown>>): string {
  return Object.entries(back)
    .filter(([key]) => key !== "tuned" && key !== "perMs")
    .map(([key, value]) => `${key} ${shownLimit(key, value, back)}`)
    .join(", ");
}

function shownLimit(key: string, value: unknown, back: Readonly<Record<string, unknown>>): string {
  if (value === null) return "none";
  if (typeof value === "object" && "perMs" in value) return rate(value as { limit: number; perMs: number });
  if (key === "limit" && typeof back["perMs"] === "number")
    return rate({ limit: value as number, perMs: back["perMs"] });
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

const kindWords: Readonly<Record<TemporaryLimitLine["kind"], string>> = {
  queue: "queue",
  lane: "lane",
  budget: "budget",
};
