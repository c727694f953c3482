// Facets of a job list: queues and names with counts, and ended attempts over time if the recorded minutes can answer
// for this filter.
import { useSignal } from "@preact/signals";
import type { FacetValue, JobFacets, Series } from "../../../src/dashboard/api/contract.ts";
import { get } from "../data/api.ts";
import { BrushedBars } from "../charts/bars.tsx";
import { clockTime, count, duration, minuteOf, windowText } from "../kit/format.ts";
import type { ListFilter } from "./job-filter.ts";
import { stretchOf, stripOf } from "./time-strip.ts";
import { now, skew } from "../data/page-clock.ts";
import { href, params, path, setParams } from "../data/router.ts";
import { useQuery } from "../data/live-query.ts";

const few = 8;

export function Facets({ facets: data, filter }: { facets: JobFacets; filter: ListFilter }) {
  if (filter["ids"] !== undefined) return null;
  const rows = [
    ["queue", "Queue", data.queues, "Queues among these jobs"],
    ["name", "Name", data.names, "Names among these jobs"],
  ] as const;
  // A single value offers no choice.
  const alike = rows.every(([name, , values]) => withChosen(values, filter[name]).length <= 1);
  return (
    <div class="facets">
      {!alike && (
        <div class="values">
          {rows.map(([name, label, values, among]) => (
            <Facet
              key={name}
              name={name}
              label={label}
              among={among}
              values={values}
              chosen={filter[name]?.split(",") ?? []}
            />
          ))}
        </div>
      )}
      <Attempts filter={filter} />
    </div>
  );
}

/** Selected values stay visible, whatever their count. */
function withChosen(values: readonly FacetValue[], chosen: string | undefined): readonly FacetValue[] {
  const wanted = chosen === undefined || chosen === "" ? [] : chosen.split(",");
  const gone = wanted.filter((value) => !values.some((one) => one.value === value));
  return [...values, ...gone.map((value) => ({ value, count: 0, more: false }))];
}

function Facet({
  name,
  label,
  among,
  values,
  chosen,
}: {
  name: string;
  label: string;
  among: string;
  values: readonly FacetValue[];
  chosen: readonly string[];
}) {
  const all = useSignal(false);
  const known = withChosen(values, chosen.join(","));
  const top = all.value ? known : known.filter(({ value }, i) => i < few || chosen.includes(value));
  return (
    <nav class="facet" aria-label={among}>
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

/** The address with this value added or removed. */
function toggled(name: string, value: string, chosen: readonly string[]): string {
  const next = new URLSearchParams(params.value);
  const values = chosen.includes(value) ? chosen.filter((one) => one !== value) : [...chosen, value];
  if (values.length === 0) next.delete(name);
  else next.set(name, values.join(","));
  const text = next.toString();
  return href(path.value + (text === "" ? "" : `?${text}`));
}

/** Attempts per minute. Minutes are recorded by queue and name only, so other filters have no chart. */
function Attempts({ filter }: { filter: ListFilter }) {
  const simple = Object.entries(filter).every(
    ([name, value]) =>
      ["state", "ended", "since"].includes(name) ||
      ((name === "queue" || name === "name") && !value.includes(",")),
  );
  const { queue, name, since, ended } = filter;
  const query = useQuery(
    `strip ${queue ?? ""} ${name ?? ""} ${since ?? ""} ${ended ?? ""} ${simple}`,
    (signal) =>
      simple
        ? get<Series>("/series", { queue, name, ...stretchOf(filter, Date.now() + skew.peek()) }, signal)
        : Promise.resolve(null),
    { sign: "overview" },
  );
  if (!simple || query.data === null || query.data.at.length === 0) return null;
  const { at, stepMs, sums, bad } = stripOf(query.data);
  if (sums.every((n) => n === 0)) return null;
  const begin = (i: number): number => at[i] ?? 0;
  const end = (i: number): number => begin(i) + stepMs - 1;
  const range = (from: number, to: number): void =>
    setParams({ ended: `${begin(from)}..${end(to)}`, cursor: null });
  const [low = Number.NaN, top = Number.NaN] = (ended ?? "").split("..").map(Number);
  const chosen = at.flatMap((from, i) => (from >= low && end(i) <= top ? [i] : []));
  const first = begin(0);
  const last = end(at.length - 1);
  const long = last - first > 24 * 3_600_000;
  // A range up to now is named by its duration.
  const recent = last > now.peek() - 2 * stepMs;
  const when = recent
    ? `in the last ${duration(roughly(last + 1 - first))}`
    : windowText(`${first}..${last}`);
  return (
    <figure class="lately">
      <BrushedBars
        of={sums}
        bad={bad}
        looks="calm"
        height={34}
        label={`Attempts ended, ${duration(stepMs)} per bar, ${when}; failed in red`}
        name={(i) => (long ? minuteOf(at[i] ?? null) : clockTime(at[i] ?? 0))}
        chosen={chosen.length === 0 ? null : { low: chosen[0] ?? 0, top: chosen.at(-1) ?? 0 }}
        lead={{ range, point: (i) => range(i, i) }}
      />
      <figcaption class="muted small">
        {since === undefined
          ? `Attempts ended ${when}. Select a range to list its jobs.`
          : `Attempts ended ${when}, including jobs created earlier. Select a range to list its jobs.`}
      </figcaption>
    </figure>
  );
}

/** Rounded to half hours: both ends are whole minutes, so an hour has 61. */
function roughly(ms: number): number {
  const unit = ms > 3 * 3_600_000 ? 3_600_000 : 1_800_000;
  return Math.round(ms / unit) * unit;
}
