/**
 * How the database and the workers' machines were over time: what workers measured once a minute, for charts.
 *
 * Bounded: the names are ours, a time has at most 240 steps, and of a longer one a minute of each is read. Pure except for the two
 * that read. What nobody measured is null, never 0.
 * Not here: measuring (observe/recorder.ts, upkeep/gauges.ts), the database as it is now (insight).
 */
import type { DatabaseSeries, Deploy, HostLine, HostSeries } from "./contract.ts";
import { stepFor, stepsOf } from "./charts.ts";
import type { LoadRow, Store } from "../../operate/index.ts";

export interface Range {
  readonly from: number;
  readonly to: number;
}

type Values = readonly (number | null)[];

const mostSteps = 240;
/** A chart has a colour for each. */
const mostHosts = 4;

const databaseNames = [
  "sizeBytes",
  "walBytes",
  "diskFreeBytes",
  "connections",
  "dbReadMs",
  "dbWriteMs",
  "poolUsed",
  "poolIdle",
  "poolWaiting",
] as const;
const hostNames = ["cpu", "rss", "loopDelayMs"] as const;

type Reader = Pick<Store, "series">;

export async function readDatabaseSeries(store: Reader, range: Range): Promise<DatabaseSeries> {
  const { rows, at, stepMs } = await read(store, range, databaseNames);
  return databaseSeriesOf(rows, at, stepMs);
}

export async function readHostSeries(
  store: Reader,
  range: Range,
  deploys: readonly Deploy[],
): Promise<HostSeries> {
  const { rows, at, stepMs } = await read(store, range, hostNames);
  return { ...hostSeriesOf(rows, at, stepMs), deploys };
}

async function read(
  store: Reader,
  { from, to }: Range,
  names: readonly string[],
): Promise<{ rows: readonly LoadRow[]; at: readonly number[]; stepMs: number }> {
  const stepMs = stepFor(from, to, mostSteps);
  const at = stepsOf(from, to, stepMs);
  const rows = await store.series.gaugeSteps({ since: at[0] ?? from, until: to, stepMs, names });
  return { rows, at, stepMs };
}

/** Times are the mean over workers and that of the slowest; connections of pools are added up over processes. */
export function databaseSeriesOf(
  rows: readonly LoadRow[],
  at: readonly number[],
  stepMs: number,
): DatabaseSeries {
  const own = (name: (typeof databaseNames)[number]): Values =>
    perStep(rows, name, at, (found) => highest(found.map(mean)));
  const times = (name: "dbReadMs" | "dbWriteMs"): { readonly mean: Values; readonly most: Values } => ({
    mean: perStep(rows, name, at, (found) => total(found.map(mean)) / found.length),
    most: own(name),
  });
  const pools = (name: "poolUsed" | "poolIdle" | "poolWaiting"): Values =>
    perStep(rows, name, at, (found) => total(processes(found).map(({ value }) => value)));
  const pool = { used: pools("poolUsed"), idle: pools("poolIdle"), waiting: pools("poolWaiting") };
  return {
    stepMs,
    at,
    sizeBytes: own("sizeBytes"),
    walBytes: own("walBytes"),
    diskFreeBytes: own("diskFreeBytes"),
    connections: own("connections"),
    readMs: times("dbReadMs"),
    writeMs: times("dbWriteMs"),
    // SQLite has none.
    pool: pool.used.every((value) => value === null) ? null : pool,
  };
}

/** The hosts that used most CPU by name; of the others the highest value of each step. */
export function hostSeriesOf(
  rows: readonly LoadRow[],
  at: readonly number[],
  stepMs: number,
): Omit<HostSeries, "deploys"> {
  const lines = [...Map.groupBy(rows, ({ source }) => processOf(source).host)].map(
    ([host, own]): HostLine => {
      const added = (name: "cpu" | "rss"): Values =>
        perStep(own, name, at, (found) => total(processes(found).map(({ value }) => value)));
      return {
        host,
        cpu: added("cpu"),
        rssBytes: added("rss"),
        loopDelayMs: perStep(own, "loopDelayMs", at, (found) => highest(found.map(mean))),
      };
    },
  );
  const used = ({ cpu }: HostLine): number => total(cpu.map((value) => value ?? 0));
  const byUse = lines.sort((a, b) => used(b) - used(a) || (a.host < b.host ? -1 : 1));
  const rest = byUse.slice(mostHosts);
  const most = (of: (line: HostLine) => Values): Values =>
    at.map((_, i) => {
      const known = rest.flatMap((line) => of(line)[i] ?? []);
      return known.length === 0 ? null : highest(known);
    });
  return {
    stepMs,
    at,
    hosts: byUse.slice(0, mostHosts),
    others:
      rest.length === 0
        ? null
        : {
            hosts: rest.length,
            cpu: most(({ cpu }) => cpu),
            rssBytes: most(({ rssBytes }) => rssBytes),
            loopDelayMs: most(({ loopDelayMs }) => loopDelayMs),
          },
  };
}

/** A worker's id begins with where it runs (holdfast.ts); one of another making is a host of its own. */
export function processOf(worker: string): { readonly host: string; readonly process: string } {
  const [, host, pid] = /^(.+)-(\d+)-[0-9a-f]{12}$/.exec(worker) ?? [];
  return host === undefined ? { host: worker, process: worker } : { host, process: `${host}-${pid}` };
}

/** Workers of one process measure the same: it counts once. */
function processes(rows: readonly LoadRow[]): { readonly process: string; readonly value: number }[] {
  return [...Map.groupBy(rows, ({ source }) => processOf(source).process)].map(([process, own]) => ({
    process,
    value: highest(own.map(mean)),
  }));
}

function perStep(
  rows: readonly LoadRow[],
  name: string,
  at: readonly number[],
  of: (found: readonly LoadRow[]) => number,
): Values {
  const byAt = Map.groupBy(
    rows.filter((row) => row.name === name),
    (row) => row.at,
  );
  return at.map((one) => {
    const found = byAt.get(one);
    return found === undefined ? null : rounded(of(found));
  });
}

function mean({ sum, minutes }: LoadRow): number {
  return sum / minutes;
}

function total(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}

function highest(values: readonly number[]): number {
  return values.reduce((most, value) => Math.max(most, value), 0);
}

/** A share of a core needs its digits; a size does not. */
function rounded(value: number): number {
  return value >= 1_000 ? Math.round(value) : Math.round(value * 1_000) / 1_000;
}
