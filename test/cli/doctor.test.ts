// What the doctor makes of facts, as a table; and of real databases with something wrong.
import { expect, test } from "vitest";
import { type Check, diagnose, type Facts } from "../../src/operate/doctor/diagnosis.ts";
import type { Inspection } from "../../src/storage/driver.ts";
import type { WorkerState } from "../../src/lease/store.ts";
import { onEveryStore } from "../support/stores.ts";
import { fresh } from "../support/test-clients.ts";
import { on, type Ran } from "./support.ts";

const inspection: Inspection = {
  dialect: "postgres",
  version: "18.0",
  versionFault: null,
  sizeBytes: 1_000_000,
  freeBytes: null,
  walBytes: 1_000,
  maxWalBytes: 1_000_000,
  slot: null,
  deadRows: 10,
  liveRows: 100,
  tables: [],
  oldestTransactionMs: 1_000,
  oldestTransaction: null,
  xminAge: null,
  connections: 10,
  maxConnections: 100,
  durable: true,
  durability: "synchronous_commit = on",
  networkFileSystem: null,
  diskFreeBytes: 1e12,
  invalidIndexes: [],
  partitions: { aheadMs: 3 * 86_400_000, count: 11, rest: 0 },
};
const well: Facts = {
  node: "v24.21.0",
  applied: [1],
  pending: [],
  drift: [],
  movedTo: null,
  clock: { skewMs: 3, roundTripMs: 2 },
  inspection,
  refused: null,
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
  atLeast: [],
  lagMs: 0,
  nextDueAt: null,
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
  ["partitions", { inspection: { ...inspection, partitions: { aheadMs: -1, count: 4, rest: 5 } } }],
  ["partitions", { inspection: { ...inspection, partitions: { aheadMs: 3_600_000, count: 4, rest: 0 } } }],
  ["partitions", { inspection: { ...inspection, partitions: { aheadMs: 3e8, count: 365, rest: 0 } } }],
  ["file system", { inspection: { ...inspection, dialect: "sqlite", networkFileSystem: "NFS" } }],
  ["WAL", { inspection: { ...inspection, dialect: "sqlite", walBytes: 1e9 } }],
  ["WAL", { inspection: { ...inspection, walBytes: 1e9 } }],
  ["WAL", { inspection: { ...inspection, walBytes: null, slot: { name: "s", active: false, bytes: 1e9 } } }],
  ["WAL", { inspection: { ...inspection, slot: { name: "s", active: true, bytes: 1e10 } } }],
  ["version", { inspection: { ...inspection, versionFault: "it loses data" } }],
  ["version", { inspection: null, refused: "This server is Postgres 13; Holdfast needs 14 or newer." }],
  ["disk", { inspection: { ...inspection, diskFreeBytes: 1_000 } }],
  ["bloat", { inspection: { ...inspection, tables: [{ name: "ready", dead: 1_000_000, live: 10 }] } }],
  ["bloat", { inspection: { ...inspection, tables: [{ name: "step", dead: 300_000, live: 200_000 }] } }],
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

test("what is large and well: a slot that is read, a WAL within its settings, dead rows that vacuum will come to, free pages", () => {
  for (const part of [
    { slot: { name: "s", active: true, bytes: 1e9 } },
    { walBytes: 2e9, maxWalBytes: 1e9 },
    { tables: [{ name: "ready", dead: 300_000, live: 200_000 }] },
    { dialect: "sqlite", sizeBytes: 1e9, freeBytes: 8e8 },
  ] as const)
    expect([part, wrongs({ ...well, inspection: { ...inspection, ...part } })]).toEqual([part, []]);
  const free = { ...inspection, dialect: "sqlite", sizeBytes: 1e9, freeBytes: 8e8, deadRows: null } as const;
  expect(diagnose({ ...well, inspection: free }).find(({ name }) => name === "bloat")).toMatchObject({
    verdict: "note",
  });
});

test("where only quiet workers would take a job it says to resume them, and not to deploy any", () => {
  const quiet: WorkerState = {
    session: 1,
    id: "w1",
    kind: "worker",
    name: "night",
    host: "h",
    pid: 1,
    runtime: null,
    release: null,
    versions: {},
    version: "0",
    queues: { mail: 1 },
    names: ["hello"],
    startedAt: new Date(0),
    beatAt: new Date(0),
    leaseUntil: new Date(0),
    stopping: false,
    quietAt: new Date(0),
    jobs: [],
  };
  const facts = { ...well, workers: [quiet], queues: [{ ...queue, unserved: ["hello"] }] };
  expect(wrongs(facts)).toEqual(["quiet"]);
  const checks = diagnose(facts);
  expect(checks.find(({ name }) => name === "workers")?.text).toBe("1 live, 1 of them quiet");
  expect(checks.find(({ name }) => name === "quiet")).toMatchObject({
    text: "mail: hello wait, because their workers are quiet",
    remedy: "To resume them: holdfast workers resume night",
  });
  expect(wrongs({ ...facts, queues: [{ ...queue, unserved: ["hello", "other"] }] })).toEqual([
    "quiet",
    "unserved",
  ]);
});

test("an unserved queue is wrong, a slow answer is no skew, and what could not be looked at is not wrong", () => {
  expect(wrongs({ ...well, queues: [{ ...queue, unserved: ["hello"] }] })).toContain("unserved");
  expect(wrongs({ ...well, clock: { skewMs: 1_400, roundTripMs: 1_000 } })).toEqual([]);
  expect(wrongs({ ...well, drift: null })).toEqual([]);
});

/**
 * The checks that failed, except those about the test server itself: it runs with fsync off, and the other test files
 * that share it write its WAL and hold it with a replication slot (doctor-found.test.ts tests the WAL check).
 */
function faults(ran: Ran): string[] {
  const ofServer = ({ name, text }: Check): boolean =>
    text.startsWith("fsync = off") || (name === "WAL" && !text.includes("a reader keeps it from shrinking"));
  return ran
    .json<{ checks: Check[] }>()
    .checks.filter((check) => check.verdict === "wrong" && !ofServer(check))
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
    expect(drift?.text).toMatch(/intruder.* is unexpected/);
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
