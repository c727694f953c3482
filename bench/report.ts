/** The tables, as text that is also Markdown. */
import type { Mode } from "./adapter.ts";
import { median } from "./measure.ts";
import { ratios, type Results, type Summary, summary, type SystemNote } from "./results.ts";
import { scenarios } from "./scenarios.ts";
import { verdicts } from "./targets.ts";

export function format(value: number): string {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size >= 100) return Math.round(value).toLocaleString("en-US");
  if (size >= 10) return value.toFixed(1);
  return size >= 1 || size === 0 ? String(Number(value.toFixed(2))) : String(Number(value.toPrecision(2)));
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((cell, column) =>
    Math.max(cell.length, ...rows.map((row) => row[column]?.length ?? 0), 3),
  );
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell, column) => (column === 0 ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!))).join(" | ")} |`;
  const rule = `|${widths.map((width, column) => (column === 0 ? "-".repeat(width + 2) : `${"-".repeat(width + 1)}:`)).join("|")}|`;
  return [line(head), rule, ...rows.map(line)].join("\n");
}

const withSpread = (found: Summary | undefined): string => {
  if (found === undefined) return "–";
  if (found.rounds === 1) return format(found.median);
  return `${format(found.median)} (${format(found.min)}–${format(found.max)})`;
};

function measured(results: Results, names: readonly string[]): SystemNote[] {
  const ran = new Set(
    results.runs.filter(({ scenario }) => names.includes(scenario)).map(({ system }) => system),
  );
  return results.systems.filter(({ id }) => ran.has(id));
}

/** Systems of one store beside each other; Redis stands with Postgres. */
function group(store: SystemNote["store"]): "Postgres and Redis" | "SQLite" {
  return store === "sqlite" ? "SQLite" : "Postgres and Redis";
}

function mainTable(results: Results, which: "Postgres and Redis" | "SQLite"): string | undefined {
  const systems = measured(results, ["enqueue", "drain", "latency", "bulk"]).filter(
    ({ store }) => group(store) === which,
  );
  if (systems.length === 0) return undefined;
  const peers = systems.filter(({ role }) => role === "peer").map(({ id }) => id);
  const value = (id: string, figure: string): string => {
    const found = summary(results, id, figure);
    return found === undefined ? "–" : format(found.median);
  };
  const times = (id: string, figure: string): string => {
    const found = ratios(results, id, peers, figure, "most");
    return found.length === 0 ? "–" : `${format(median(found))}×`;
  };
  const head = [
    "system",
    "enqueue, 1 /s",
    "10 /s",
    "100 /s",
    "× best peer",
    "bulk /s",
    "× best peer",
    "drain /s (min–max)",
    "× best peer",
    "p50 / p95 / p99 ms",
    "5 ms jobs",
    "WAL B/job",
    "queries/job",
    "RSS MB",
  ];
  const rows = systems.map(({ id, title }) => [
    title,
    value(id, "one1"),
    value(id, "one10"),
    value(id, "one100"),
    times(id, "one100"),
    value(id, "bulk"),
    times(id, "bulk"),
    withSpread(summary(results, id, "drain")),
    times(id, "drain"),
    ["p50", "p95", "p99"].map((figure) => value(id, figure)).join(" / "),
    ["p50Of5", "p95Of5", "p99Of5"].map((figure) => value(id, figure)).join(" / "),
    value(id, "wal"),
    value(id, "drainQueries"),
    value(id, "rssMb"),
  ]);
  return `### ${which}\n\n${table(head, rows)}`;
}

const costColumns: readonly (readonly [figure: string, head: string])[] = [
  ["one1Queries", "queries/enqueue, 1 in flight"],
  ["one100Queries", "100 in flight"],
  ["one100Wal", "WAL B/enqueue, 100 in flight"],
  ["one100CpuUs", "Node µs/enqueue"],
  ["bulkWal", "WAL B/job, bulk"],
  ["drainWal", "WAL B/job, drain"],
  ["drainQueries", "queries/job, drain"],
  ["drainExecUs", "Postgres µs/job, drain"],
  ["drainCpuUs", "Node µs/job, drain"],
  ["startMs", "start of a worker, ms"],
];

/** What a job costs beside time. */
function costTable(results: Results): string | undefined {
  const systems = measured(results, ["enqueue", "drain"]);
  if (systems.length === 0) return undefined;
  const rows = systems.map(({ id, title }) => [
    title,
    ...costColumns.map(([figure]) => format(summary(results, id, figure)?.median ?? NaN)),
  ]);
  return `### Costs\n\n${table(["system", ...costColumns.map(([, head]) => head)], rows)}`;
}

const inMainTable = new Set(["enqueue", "drain", "latency"]);

/** Every other scenario: a column for each of its figures. */
function otherTables(results: Results): string[] {
  return scenarios.flatMap(({ name, title }) => {
    if (inMainTable.has(name)) return [];
    const runs = results.runs.filter(({ scenario, figures }) => scenario === name && figures);
    const names = [...new Set(runs.flatMap(({ figures }) => Object.keys(figures!)))];
    if (names.length === 0) return [];
    const rows = measured(results, [name]).map(({ id, title: system }) => [
      system,
      // Several scenarios count their jobs.
      ...names.map((figure) => withSpread(summary({ ...results, runs }, id, figure))),
    ]);
    return [`### ${title}\n\n${table(["system", ...names], rows)}`];
  });
}

function targetTable(results: Results): string | undefined {
  const found = verdicts(results);
  if (found.length === 0) return undefined;
  const rows = found.map(({ work, against, reach, ratio, spread, reached }) => [
    work,
    against,
    reach,
    format(ratio),
    spread.length === 1 ? "–" : `${format(Math.min(...spread))}–${format(Math.max(...spread))}`,
    reached ? "yes" : "NO",
  ]);
  return `### Targets (ratio within a round, median of rounds)\n\n${table(["work", "against", "reach", "measured", "spread", "reached"], rows)}`;
}

function settingsList(results: Results): string {
  const lines = results.systems.map(({ title, settings, versions }) => {
    const packages = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
    const byText = new Map<string, Mode[]>();
    for (const [mode, text] of Object.entries(settings) as [Mode, string][])
      byText.set(text, [...(byText.get(text) ?? []), mode]);
    const modes = [...byText].map(([text, list]) => `${list.join(", ")}: ${text}`);
    return `- ${title}${packages.length > 0 ? ` (${packages.join(", ")})` : ""}. ${modes.join("; ")}.`;
  });
  return `### Settings\n\n${lines.join("\n")}`;
}

export function report(results: Results): string {
  const { machine, versions, postgres, rounds, left, runs } = results;
  const list = (entries: Readonly<Record<string, string | number>>): string =>
    Object.entries(entries)
      .map(([name, value]) => `${name} ${value}`)
      .join(", ");
  const failed = runs.filter(({ error }) => error !== undefined);
  const parts = [
    `## Benchmark of ${results.startedAt.slice(0, 10)}: ${rounds} interleaved round${rounds === 1 ? "" : "s"}, medians`,
    `Machine: ${list(machine)}. ${list(versions)}. Postgres: ${list(postgres)}. Payload 110 bytes, handlers that do nothing, VACUUM ANALYZE before each drain, every job checked to have run once.`,
    mainTable(results, "Postgres and Redis"),
    mainTable(results, "SQLite"),
    costTable(results),
    ...otherTables(results),
    targetTable(results),
    settingsList(results),
    left.length > 0 ? `### Left out\n\n${left.map((line) => `- ${line}`).join("\n")}` : undefined,
    failed.length > 0
      ? `### Failed\n\n${failed.map(({ round, scenario, system, error }) => `- round ${round}, ${scenario}, ${system}: ${error!.split("\n")[0]}`).join("\n")}`
      : undefined,
  ];
  return `${parts.filter((part) => part !== undefined).join("\n\n")}\n`;
}
