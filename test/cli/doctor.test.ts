// What the doctor makes of facts, as a table; and of real databases with something wrong.
import { expect, test } from "vitest";
import { type Check, diagnose, type Facts } from "../../src/cli/diagnosis.ts";
import type { Inspection } from "../../src/store.ts";
import { onEveryStore } from "../support/stores.ts";
import { fresh } from "../client/support.ts";
import { on, type Ran } from "./support.ts";

const inspection: Inspection = {
  dialect: "postgres",
  version: "18.0",
  sizeBytes: 1_000_000,
  walBytes: 1_000,
  deadRows: 10,
  liveRows: 100,
  oldestTransactionMs: 1_000,
  connections: 10,
  maxConnections: 100,
  durable: true,
  durability: "synchronous_commit = on",
  networkFileSystem: null,
  diskFreeBytes: 1e12,
  invalidIndexes: [],
};
const well: Facts = {
  node: "v24.21.0",
  applied: [1],
  pending: [],
  drift: [],
  movedTo: null,
  clock: { skewMs: 3, roundTripMs: 2 },
  inspection,
  queues: [],
  workers: [],
  stuck: 0,
  now: 0,
};
const queue = {
  name: "mail",
  paused: false,
  pausedAt: null,
  draining: false,
  drainingAt: null,
  coolUntil: null,
  lagMs: 0,
  unserved: [] as string[],
  counts: { ready: 5, scheduled: 0, running: 0, waiting: 0 },
  settings: {
    concurrency: null,
    rate: null,
    weight: null,
    backoff: null,
    retention: null,
    cooldown: null,
    slots: null,
    total: null,
    breaker: null,
  },
};
const wrongs = (facts: Facts): string[] =>
  diagnose(facts)
    .filter(({ verdict }) => verdict === "wrong")
    .map(({ name }) => name);

test("a healthy database has nothing wrong", () => {
  expect(wrongs(well)).toEqual([]);
});

test("of a database that has moved it does not say to start workers on it", () => {
  expect(wrongs({ ...well, movedTo: "postgres://host/db", queues: [queue], stuck: 3, workers: [] })).toEqual([
    "moved",
  ]);
});

const cases: readonly (readonly [string, Partial<Facts>])[] = [
  ["node", { node: "v22.17.1" }],
  ["schema", { applied: [] }],
  ["schema", { pending: [2] }],
  ["moved", { movedTo: "postgres://host/db" }],
  ["drift", { drift: ["index ready_order is missing"] }],
  ["durability", { inspection: { ...inspection, durable: false, durability: "synchronous_commit = off" } }],
  ["indexes", { inspection: { ...inspection, invalidIndexes: ["ready_order"] } }],
  ["file system", { inspection: { ...inspection, dialect: "sqlite", networkFileSystem: "NFS" } }],
  ["WAL", { inspection: { ...inspection, dialect: "sqlite", walBytes: 1e9 } }],
  ["disk", { inspection: { ...inspection, diskFreeBytes: 1_000 } }],
  ["bloat", { inspection: { ...inspection, deadRows: 1_000_000, liveRows: 10 } }],
  ["transactions", { inspection: { ...inspection, oldestTransactionMs: 3_600_000 } }],
  ["connections", { inspection: { ...inspection, connections: 99 } }],
  ["clocks", { clock: { skewMs: -5_000, roundTripMs: 10 } }],
  ["workers", { queues: [queue] }],
  ["leases", { stuck: 3 }],
];

test.each(cases)("%s is found wrong, with a remedy", (name, facts) => {
  const checks = diagnose({ ...well, ...facts });
  const found = checks.find((check) => check.name === name && check.verdict === "wrong") as Check;
  expect(found).toBeDefined();
  expect(found.remedy).not.toBeNull();
});

test("an unserved queue is wrong, a slow answer is no skew, and what could not be looked at is not wrong", () => {
  expect(wrongs({ ...well, queues: [{ ...queue, unserved: ["hello"] }] })).toContain("unserved");
  expect(wrongs({ ...well, clock: { skewMs: 1_400, roundTripMs: 1_000 } })).toEqual([]);
  expect(wrongs({ ...well, drift: null })).toEqual([]);
});

/** What is wrong, but for the test servers' durability: they run with fsync off, and the doctor says so. */
function faults(ran: Ran): string[] {
  return ran
    .json<{ checks: Check[] }>()
    .checks.filter(({ verdict, text }) => verdict === "wrong" && !text.startsWith("fsync = off"))
    .map(({ name }) => name);
}

onEveryStore((target) => {
  test("[F6] the doctor is content with a fresh database, and finds a missing index, an unserved queue and a foreign table", async () => {
    const { hf, store } = await fresh(target);
    const holdfast = on(store);
    const first = await holdfast(["doctor", "--json"]);
    expect(faults(first)).toEqual([]);
    expect(first.code).toBe(target.dialect === "sqlite" ? 0 : 1);
    expect(first.json<{ checks: Check[] }>().checks.find(({ name }) => name === "drift")?.verdict).toBe("ok");

    const index =
      target.dialect === "sqlite" ? `"holdfast_ready_order"` : `"${store.options.schema}"."ready_order"`;
    await store.query(`drop index ${index}`);
    await store.query(`create table ${store.table("intruder")} (a integer)`);
    await hf.enqueue("lost", null, { queue: "typo" });
    const second = await holdfast(["doctor", "--json"]);
    expect(second.code).toBe(1);
    const checks = second.json<{ checks: Check[] }>().checks;
    const drift = checks.find(({ name }) => name === "drift");
    expect(drift?.text).toMatch(/ready_order is missing/);
    expect(drift?.text).toMatch(/intruder.* is not one of ours/);
    expect(checks.find(({ name }) => name === "unserved")?.text).toBe("typo: lost");
    expect((await holdfast(["doctor"])).out).toMatch(/WRONG {2}drift/);
    // It has changed nothing and left nothing.
    const left =
      target.dialect === "postgres"
        ? await store.query("select nspname from pg_namespace where nspname like 'hf_doctor%'")
        : [];
    expect(left).toEqual([]);
  });

  test("[F7] a job that a dead worker holds is found as a stuck lease", async () => {
    const { hf, store } = await fresh(target);
    await hf.enqueue("slow", null);
    const [lease] = await hf.lease({ queues: ["default"], for: "1h" });
    expect(lease).toBeDefined();
    expect(faults(await on(store)(["doctor", "--json"]))).toEqual([]);
    // As a process that was killed 2 minutes ago leaves it.
    await store.query(`update ${store.table("session")} set lease_until = lease_until - 3720000`);
    const { code, ...ran } = await on(store)(["doctor", "--json"]);
    expect(code).toBe(1);
    expect(ran.json<{ checks: Check[] }>().checks.find(({ name }) => name === "leases")).toMatchObject({
      verdict: "wrong",
    });
  });

  test("a database without a schema is sent to migrate", async () => {
    const store = await target.fresh();
    if (target.dialect === "sqlite") await store.query("select 1 as one");
    const { code, ...ran } = await on(store)(["doctor", "--json"]);
    expect(code).toBe(1);
    expect(ran.json<{ checks: Check[] }>().checks.find(({ name }) => name === "schema")?.remedy).toMatch(
      /holdfast migrate/,
    );
  });
});
