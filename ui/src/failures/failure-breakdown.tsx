// Failures from another side than their cause: which kind, queue, worker, version or hour has how many of them.
import type { FailuresBy } from "../../../src/dashboard/api/contract.ts";
import { get, seg } from "../data/api.ts";
import { amount, minuteOf, number } from "../kit/format.ts";
import { Ago } from "../kit/labels.tsx";
import { now } from "../data/page-clock.ts";
import { href, params } from "../data/router.ts";
import { Listing } from "../kit/table.tsx";
import { t } from "../language/translation.ts";
import { useQuery } from "../data/live-query.ts";

const HOUR = 3_600_000;
const spans = [
  ["1h", amount(1, "hour"), HOUR],
  [null, amount(24, "hour"), 24 * HOUR],
  ["7d", amount(7, "day"), 168 * HOUR],
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
        <nav class="spans" aria-label={t("Time shown")}>
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
        {by === "worker" && (
          <span class="muted small">{t("Which worker it was is known of the last hour or two.")}</span>
        )}
      </div>
      <section class="panel" aria-label={t("Failures by {by}", { by })}>
        <Listing
          query={query}
          rows={({ lines }) => lines}
          rowKey={({ value, name }: Line) => `${name ?? ""} ${value}`}
          empty={{
            icon: "check",
            title: t("Nothing has failed"),
            text: <p>{t("In this time, as workers counted it.")}</p>,
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
            { head: t("Failures"), num: true, cell: ({ failures }) => number(failures) },
            {
              head: t("Share"),
              from: "medium",
              style: { width: "34%" },
              cell: ({ failures }) => (
                <span
                  class="share"
                  role="img"
                  aria-label={t("{failures} % of these", { failures: Math.round((failures / all) * 100) })}
                >
                  <i style={{ width: `${(failures / all) * 100}%` }} />
                </span>
              ),
            },
            { head: t("Causes"), num: true, class: "muted", cell: ({ causes }) => number(causes) },
            { head: t("Last"), num: true, class: "muted", cell: ({ lastAt }) => <Ago at={lastAt} /> },
          ]}
          foot={({ lines, cut }) =>
            cut && (
              <footer>
                {t("The newest 50,000 counts were added up: {lines, plural, one {# line} other {# lines}}.", {
                  lines: lines.length,
                })}
              </footer>
            )
          }
        />
      </section>
    </>
  );
}

const heads: Readonly<Record<FailuresBy["by"], string>> = {
  kind: t("Kind"),
  queue: t("Queue"),
  worker: t("Worker"),
  version: t("Version"),
  hour: t("Hour"),
};

function shownOf(by: FailuresBy["by"], { value, name }: Line): string {
  if (by === "hour") return minuteOf(Number(value));
  if (by === "version") return t("{name}, version {value}", { name: name ?? "?", value });
  return value === "" ? "—" : value;
}

/** Where its dead jobs are. A version is no part of a job's own row. */
function linkOf(by: FailuresBy["by"], { value, name }: Line): string | null {
  switch (by) {
    case "kind":
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
