// Findings of `holdfast doctor`, schema version, retention, and what delays vacuum. Refreshed every 30 seconds while the
// screen is open, and on request.
import { useEffect } from "preact/hooks";
import type { DoctorReport } from "../../../src/dashboard/api/contract.ts";
import { get } from "../data/api.ts";
import { duration, number, plural } from "../kit/format.ts";
import { Icon, type IconName } from "../kit/icons.tsx";
import { live } from "../data/live-stream.ts";
import { Ago } from "../kit/labels.tsx";
import { Facts, Loaded, Panel } from "../kit/panels.tsx";
import { useQuery } from "../data/live-query.ts";

const everyMs = 30_000;

type Check = DoctorReport["checks"][number];

/** Worst first. */
const verdicts: Readonly<Record<Check["verdict"], readonly [icon: IconName, words: string, tag: string]>> = {
  wrong: ["dead", "wrong", "bad"],
  note: ["dot", "note", "warn"],
  unknown: ["minus", "not known", ""],
  ok: ["check", "ok", "good"],
};
const order = Object.keys(verdicts);

export function DoctorPanel() {
  const query = useQuery("doctor", (signal) => get<DoctorReport>("/doctor", {}, signal));
  const { again } = query;
  useEffect(() => {
    const timer = setInterval(() => {
      if (live.peek() && !document.hidden) again();
    }, everyMs);
    return () => clearInterval(timer);
  }, [again]);
  return (
    <>
      <Panel
        title="Doctor"
        note={query.data === null ? undefined : <Looked of={query.data} />}
        tools={
          <button type="button" class="button small" aria-disabled={query.loading} onClick={again}>
            <Icon name="retry" size={12} /> Check again
          </button>
        }
      >
        <Loaded query={query}>{(report) => <Checks of={report} />}</Loaded>
      </Panel>
      {query.data !== null && <Upkeep of={query.data} />}
    </>
  );
}

function Looked({ of: { checks, at } }: { of: DoctorReport }) {
  const wrong = checks.filter(({ verdict }) => verdict === "wrong").length;
  const said = wrong === 0 ? "No problems" : plural(wrong, "problem");
  return (
    <>
      <span role="status">{said}</span>, looked <Ago at={at} />
    </>
  );
}

function Checks({ of: { checks } }: { of: DoctorReport }) {
  const sorted = [...checks].sort((a, b) => order.indexOf(a.verdict) - order.indexOf(b.verdict));
  const well = sorted.filter(({ verdict }) => verdict === "ok");
  const rest = sorted.filter(({ verdict }) => verdict !== "ok");
  return (
    <>
      <Lines of={rest} />
      <details class="tabled">
        <summary>{number(well.length)} more passed</summary>
        <Lines of={well} />
      </details>
    </>
  );
}

function Lines({ of }: { of: readonly Check[] }) {
  return (
    <ul class="checks">
      {of.map(({ name, verdict, text, remedy }) => {
        const [icon, words, tag] = verdicts[verdict];
        return (
          <li key={`${name} ${text}`}>
            <span class={`tag ${tag}`}>
              <Icon name={icon} size={12} />
              {words}
            </span>
            <b>{name}</b>
            <span>
              {text}
              {remedy !== null && <span class="remedy">→ {remedy}</span>}
            </span>
          </li>
        );
      })}
    </ul>
  );
}

function Upkeep({ of: { schema, retention, prune, oldest } }: { of: DoctorReport }) {
  const kept = (ms: number) => (ms === 0 ? "for ever" : duration(ms));
  const { transactionMs, whose, xminAge } = oldest;
  return (
    <Panel title="Upkeep" note="retention set in this process">
      <Facts
        of={[
          [
            "Schema",
            <>
              version {schema.version} ({schema.name}), applied <Ago at={schema.appliedAt} />
            </>,
          ],
          ["Done jobs are kept", kept(retention.doneMs)],
          ["Dead and cancelled jobs are kept", kept(retention.deadMs)],
          ...(retention.queues === 0
            ? []
            : [["With their own retention", plural(retention.queues, "queue")] as const]),
          ...(retention.eventLogMs === null ? [] : [["Event log", kept(retention.eventLogMs)] as const]),
          [
            "Next prune",
            prune === null ? (
              "none yet"
            ) : (
              <>
                due <Ago at={prune.nextAt} />, last <Ago at={prune.doneAt} />
              </>
            ),
          ],
          ...(transactionMs === null
            ? []
            : [
                [
                  "Oldest transaction",
                  whose === null ? "none is open" : `${duration(transactionMs)} (${whose})`,
                ] as const,
              ]),
          ...(xminAge === null
            ? []
            : [["Oldest snapshot", `${plural(xminAge, "transaction")} behind`] as const]),
        ]}
      />
    </Panel>
  );
}
