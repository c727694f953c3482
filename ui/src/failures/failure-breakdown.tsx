// Failures by name, queue, worker, version or hour.
import type { FailuresBy } from "../../../src/dashboard/api/contract.ts";
import { get, seg } from "../data/api.ts";
import { minuteOf, number, plural } from "../kit/format.ts";
import { Ago } from "../kit/labels.tsx";
import { now } from "../data/page-clock.ts";
import { href, params } from "../data/router.ts";
import { Listing } from "../kit/table.tsx";
import { useQuery } from "../data/live-query.ts";

const HOUR = 3_600_000;
const spans = [
  ["1h", "1 h", HOUR],
  [null, "24 h", 24 * HOUR],
  ["7d", "7 d", 168 * HOUR],
] as const;

type Line = FailuresBy["lines"][number];

export function FailureBreakdown({ by }: { by: FailuresBy["by"] }) {
  const last = params.value.get("last");
  const span = spans.find(([name]) => name === last) ?? spans[1];
  const query = useQuery(
    `failures ${by} ${span[1]}`,
    (signal) => get<FailuresBy>("/failures", { by, since: Math.floor(now.peek() - span[2]) }, signal),
    { sign: "errors" },
  );
  const all = Math.max(1, query.data?.lines.reduce((sum, { failures }) => sum + failures, 0) ?? 0);
  return (
    <>
      <div class="row tight span">
        <nav class="spans" aria-label="Time shown">
          {spans.map((one) => (
            <a
              key={one[1]}
              href={href(`/errors?by=${by}${one[0] === null ? "" : `&last=${one[0]}`}`)}
              aria-current={one === span ? "true" : undefined}
            >
              {one[1]}
            </a>
          ))}
        </nav>
        {by === "worker" && <span class="muted small">Workers are known for the last one or two hours.</span>}
      </div>
      <section class="panel" aria-label={`Failures by ${by}`}>
        <Listing
          query={query}
          rows={({ lines }) => lines}
          rowKey={({ value, name }: Line) => `${name ?? ""} ${value}`}
          empty={{
            icon: "check",
            title: "No failures",
            text: <p>In this time range, counted by workers.</p>,
          }}
          columns={[
            {
              head: heads[by],
              style: { maxWidth: "320px", overflowWrap: "anywhere" },
              cell: (line) => {
                const to = linkOf(by, line);
                return to === null ? (
                  <b>{shownOf(by, line)}</b>
                ) : (
                  <a class="main-link" href={href(to)}>
                    {shownOf(by, line)}
                  </a>
                );
              },
            },
            { head: "Failures", num: true, cell: ({ failures }) => number(failures) },
            {
              head: "Share",
              from: "medium",
              style: { width: "34%" },
              cell: ({ failures }) => (
                <span
                  class="share"
                  role="img"
                  aria-label={`${Math.round((failures / all) * 100)} % of these`}
                >
                  <i style={{ width: `${(failures / all) * 100}%` }} />
                </span>
              ),
            },
            { head: "Groups", num: true, class: "muted", cell: ({ groups }) => number(groups) },
            { head: "Last", num: true, class: "muted", cell: ({ lastAt }) => <Ago at={lastAt} /> },
          ]}
          foot={({ lines, cut }) =>
            cut && <footer>Sum of the newest 50,000 counts: {plural(lines.length, "line")}.</footer>
          }
        />
      </section>
    </>
  );
}

const heads: Readonly<Record<FailuresBy["by"], string>> = {
  name: "Name",
  queue: "Queue",
  worker: "Worker",
  version: "Version",
  hour: "Hour",
};

function shownOf(by: FailuresBy["by"], { value, name }: Line): string {
  if (by === "hour") return minuteOf(Number(value));
  if (by === "version") return `${name ?? "?"}, version ${value}`;
  return value === "" ? "—" : value;
}

/** The group's dead jobs. A job's row has no version. */
function linkOf(by: FailuresBy["by"], { value, name }: Line): string | null {
  switch (by) {
    case "name":
      return value === "" ? null : `/jobs?state=dead&name=${seg(value)}`;
    case "queue":
      return `/jobs?state=dead&queue=${seg(value)}`;
    case "worker":
      return `/jobs?state=dead&worker=${seg(value)}`;
    case "hour":
      return `/jobs?state=dead&ended=${value}..${Number(value) + HOUR - 1}`;
    case "version":
      return name === null ? null : `/jobs?state=dead&name=${seg(name)}`;
  }
}
