// What else there is beside the filter: queues and names with their counts, to be chosen by a click; and how many attempts
// ended lately, where the minutes that workers wrote down can say so.
import { useSignal } from "@preact/signals";
import type { FacetValue, JobFacets, Series } from "../../src/dashboard/contract.ts";
import { get } from "./api.ts";
import { BrushedBars } from "./bars.tsx";
import { count, instant } from "./format.ts";
import type { ListFilter } from "./job-filter.ts";
import { href, params, path, setParams } from "./router.ts";
import { useQuery } from "./use-query.ts";

const few = 8;

export function Facets({ facets: data, filter }: { facets: JobFacets; filter: ListFilter }) {
  if (filter["ids"] !== undefined) return null;
  const rows = [
    ["queue", "Queue", data.queues],
    ["name", "Kind", data.names],
  ] as const;
  // Where there is nothing else to choose, the list says it all; a stretch that was chosen can be chosen anew.
  const alike = rows.every(([name, , values]) => withChosen(values, filter[name]).length <= 1);
  if (alike && filter["ended"] === undefined) return null;
  return (
    <div class="facets">
      <div class="values">
        {rows.map(([name, label, values]) => (
          <Facet
            key={name}
            name={name}
            label={label}
            values={values}
            chosen={filter[name]?.split(",") ?? []}
          />
        ))}
      </div>
      <Strip filter={filter} />
    </div>
  );
}

/** What is chosen stays in sight, whatever its count. */
function withChosen(values: readonly FacetValue[], chosen: string | undefined): readonly FacetValue[] {
  const wanted = chosen === undefined || chosen === "" ? [] : chosen.split(",");
  const gone = wanted.filter((value) => !values.some((one) => one.value === value));
  return [...values, ...gone.map((value) => ({ value, count: 0, more: false }))];
}

function Facet({
  name,
  label,
  values,
  chosen,
}: {
  name: string;
  label: string;
  values: readonly FacetValue[];
  chosen: readonly string[];
}) {
  const all = useSignal(false);
  const known = withChosen(values, chosen.join(","));
  const top = all.value ? known : known.filter(({ value }, i) => i < few || chosen.includes(value));
  return (
    <nav class="facet" aria-label={`${label}s among these jobs`}>
      <span class="muted small">{label}</span>
      {top.map((one) => {
        const on = chosen.includes(one.value);
        return (
          <a
            key={one.value}
            class={`value ${on ? "on" : ""}`}
            href={toggled(name, one.value, chosen)}
            aria-current={on ? "true" : undefined}
            title={on ? `Without ${one.value}` : `Only ${one.value}`}
          >
            <span class="clip">{one.value}</span> <span class="n">{count(one)}</span>
          </a>
        );
      })}
      {known.length > top.length && (
        <button type="button" class="button quiet small" onClick={() => (all.value = true)}>
          {known.length - top.length} more
        </button>
      )}
    </nav>
  );
}

/** The address with this value chosen, or not any more. */
function toggled(name: string, value: string, chosen: readonly string[]): string {
  const next = new URLSearchParams(params.value);
  const values = chosen.includes(value) ? chosen.filter((one) => one !== value) : [...chosen, value];
  if (values.length === 0) next.delete(name);
  else next.set(name, values.join(","));
  const text = next.toString();
  return href(path.value + (text === "" ? "" : `?${text}`));
}

/** Attempts by the minute. Minutes know queue and name; beside any other filter they would tell of other jobs. */
function Strip({ filter }: { filter: ListFilter }) {
  const simple = Object.entries(filter).every(
    ([name, value]) =>
      name === "state" || name === "ended" || ((name === "queue" || name === "name") && !value.includes(",")),
  );
  const { queue, name } = filter;
  const query = useQuery(
    `strip ${queue ?? ""} ${name ?? ""} ${simple}`,
    (signal) => (simple ? get<Series>("/series", { queue, name }, signal) : Promise.resolve(null)),
    { live: true },
  );
  const series = query.data;
  if (!simple || series === null || series.at.length === 0) return null;
  const bad = series.dead.map((n, i) => n + (series.retried[i] ?? 0));
  const sums = series.done.map((n, i) => n + (bad[i] ?? 0));
  if (sums.every((n) => n === 0)) return null;
  const begin = (i: number): number => series.at[i] ?? 0;
  const end = (i: number): number => begin(i) + series.stepMs - 1;
  const range = (from: number, to: number): void =>
    setParams({ ended: `${begin(from)}..${end(to)}`, cursor: null });
  const [low = Number.NaN, top = Number.NaN] = (filter.ended ?? "").split("..").map(Number);
  const chosen = series.at.flatMap((at, i) => (at >= low && end(i) <= top ? [i] : []));
  return (
    <figure class="lately">
      <BrushedBars
        of={sums}
        bad={bad}
        looks="calm"
        height={34}
        label="Attempts that ended, by the minute, in the last hour; failed ones in red"
        name={(i) => instant(series.at[i] ?? null).slice(11, 16)}
        chosen={chosen.length === 0 ? null : { low: chosen[0] ?? 0, top: chosen.at(-1) ?? 0 }}
        lead={{ range, point: (i) => range(i, i) }}
      />
      <figcaption class="muted small">
        Attempts ended in the last hour; choose a stretch to see what ended in it
      </figcaption>
    </figure>
  );
}
