// What workers measured of the database and of their machines, through the HTTP API, on every store.
import { describe, expect, test } from "vitest";
import type { DatabaseSeries, HostSeries } from "../../src/dashboard/api/contract.ts";
import { databaseSeriesOf, hostSeriesOf, processOf } from "../../src/dashboard/api/machine-charts.ts";
import { onEveryStore } from "../support/stores.ts";
import { api } from "./support.ts";
import { operatorOf } from "../../src/operate/operator.ts";

const minute = 60_000;
const day = 1_440 * minute;
const known = <T>(values: readonly (T | null)[]): T[] => values.filter((value) => value !== null);

onEveryStore((target) => {
  test("[K1] the database's series: size, WAL, reads and writes, connections and pools, from five minutes to a week", async () => {
    const { hf, get } = await api(target);
    const now = await operatorOf(hf).store.now();
    const at = Math.floor(now / minute) * minute - 2 * minute;
    const worker = (name: string, source: string, value: number) => ({ minute: at, source, name, value });
    await operatorOf(hf).store.series.putGauges([
      worker("sizeBytes", "database", 5_000_000),
      worker("walBytes", "database", 4_096),
      worker("connections", "database", 12),
      worker("dbReadMs", "a-1-000000000001", 2),
      worker("dbReadMs", "b-2-000000000002", 6),
      worker("poolUsed", "a-1-000000000001", 3),
      worker("poolUsed", "b-2-000000000002", 4),
      worker("poolIdle", "a-1-000000000001", 1),
      worker("poolWaiting", "a-1-000000000001", 0),
      // Of another time, and of another name.
      { minute: at - 3 * day, source: "database", name: "sizeBytes", value: 1_000_000 },
      { minute: at, source: "queues", name: "ready", value: 99 },
    ]);
    const of = async (ms: number): Promise<DatabaseSeries> =>
      (await get<DatabaseSeries>(`/series/database?from=${now - ms}&to=${now}`)).body;
    for (const ms of [5 * minute, 60 * minute]) {
      const series = await of(ms);
      expect(series.stepMs).toBe(minute);
      expect(known(series.sizeBytes)).toEqual([5_000_000]);
      expect(series.at[series.sizeBytes.indexOf(5_000_000)]).toBe(at);
      expect(known(series.walBytes)).toEqual([4_096]);
      expect(known(series.connections)).toEqual([12]);
      expect(known(series.diskFreeBytes)).toEqual([]);
      expect([known(series.readMs.mean), known(series.readMs.most)]).toEqual([[4], [6]]);
      expect(known(series.writeMs.mean)).toEqual([]);
      expect(known(series.pool?.used ?? [])).toEqual([7]);
      expect([known(series.pool?.idle ?? []), known(series.pool?.waiting ?? [])]).toEqual([[1], [0]]);
      for (const list of [series.sizeBytes, series.readMs.mean, series.pool?.used ?? []])
        expect(list.length).toBe(series.at.length);
    }
    const week = await of(7 * day);
    expect(week.at.length).toBeLessThanOrEqual(241);
    expect((await get("/series/database?from=5&to=4")).status).toBe(400);
    expect((await get(`/series/database?from=${now - 40 * day}&to=${now}`)).status).toBe(400);
  });

  test("[K1] a host's series adds up its processes, counts each once, and outlives its workers", async () => {
    const { hf, get } = await api(target);
    const now = await operatorOf(hf).store.now();
    const at = Math.floor(now / minute) * minute - 2 * minute;
    const of = (source: string, cpu: number, rss: number, loopDelayMs: number) =>
      Object.entries({ cpu, rss, loopDelayMs }).map(([name, value]) => ({ minute: at, source, name, value }));
    await operatorOf(hf).store.series.putGauges([
      // Two workers of one process measure the same.
      ...of("web-1-10-00000000000a", 0.5, 1_000, 3),
      ...of("web-1-10-00000000000b", 0.5, 1_000, 3),
      ...of("web-1-11-00000000000c", 0.25, 500, 9),
      ...of("web-2-10-00000000000d", 0.1, 700, 1),
      { minute: at, source: "v42", name: "release", value: 1 },
    ]);
    const { hosts, others, deploys } = (await get<HostSeries>("/series/hosts")).body;
    expect(
      hosts.map(({ host, cpu, rssBytes, loopDelayMs }) => [
        host,
        ...known(cpu),
        ...known(rssBytes),
        ...known(loopDelayMs),
      ]),
    ).toEqual([
      ["web-1", 0.75, 1_500, 9],
      ["web-2", 0.1, 700, 1],
    ]);
    expect(others).toBeNull();
    expect(deploys).toEqual([{ at, release: "v42" }]);
    expect((await get("/series/hosts?from=5&to=4")).status).toBe(400);
  });

  test("[K1] of a step of several minutes the mean of what was measured, not the sum", async () => {
    const { hf } = await api(target);
    const { store } = operatorOf(hf);
    const row = (n: number, value: number) => ({
      minute: n * minute,
      source: "database",
      name: "sizeBytes",
      value,
    });
    await store.series.putGauges([row(10, 4), row(11, 8), row(12, 100)]);
    const rows = await store.series.gaugeSteps({
      since: 10 * minute,
      until: 14 * minute,
      stepMs: 2 * minute,
      names: ["sizeBytes", "walBytes"],
    });
    expect(rows).toEqual([
      { at: 10 * minute, source: "database", name: "sizeBytes", sum: 12, minutes: 2 },
      { at: 12 * minute, source: "database", name: "sizeBytes", sum: 100, minutes: 1 },
    ]);
    expect(databaseSeriesOf(rows, [10 * minute, 12 * minute], 2 * minute).sizeBytes).toEqual([6, 100]);
  });
});

describe("shapes", () => {
  test("a worker's id says where it runs; one that does not is a host of its own", () => {
    expect(processOf("web-1.example-77-0123456789ab")).toEqual({
      host: "web-1.example",
      process: "web-1.example-77",
    });
    expect(processOf("w1")).toEqual({ host: "w1", process: "w1" });
  });

  test("four hosts have a line, of the others the highest is told", () => {
    const rows = [5, 4, 3, 2, 1, 0.5].map((value, n) => ({
      at: 0,
      source: `h${n}-1-000000000000`,
      name: "cpu",
      sum: value,
      minutes: 1,
    }));
    const { hosts, others } = hostSeriesOf(rows, [0, minute], minute);
    expect(hosts.map(({ host }) => host)).toEqual(["h0", "h1", "h2", "h3"]);
    expect(others).toEqual({
      hosts: 2,
      cpu: [1, null],
      rssBytes: [null, null],
      loopDelayMs: [null, null],
    });
  });

  test("without a pool there is no pool, rather than one of nothing", () => {
    expect(databaseSeriesOf([], [0], minute).pool).toBeNull();
  });
});
