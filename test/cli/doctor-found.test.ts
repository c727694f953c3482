// What the doctor looks for, made to happen on real databases. Where a fault needs minutes or gigabytes, its limit is lower
// here: that it is found is what is tried, and from which size on is a table in doctor.test.ts.
import { DatabaseSync } from "node:sqlite";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { expect, onTestFinished, test, vi } from "vitest";
import { type Check, diagnose, type Facts, type Limits, LIMITS } from "../../src/operate/doctor/diagnosis.ts";
import { operatorOf } from "../../src/operate/operator.ts";
import type { Holdfast } from "../../src/index.ts";
import { inspect } from "../../src/storage/sqlite/inspect.ts";
import { fresh } from "../support/test-clients.ts";
import { waitFor } from "../support/process.ts";
import { type FreshStore, onEveryStore } from "../support/stores.ts";
import { cli, folder, on } from "./support.ts";

const others: Facts = {
  node: process.version,
  applied: [1],
  pending: [],
  drift: [],
  movedTo: null,
  clock: null,
  inspection: null,
  refused: null,
  queues: [],
  workers: [],
  stuck: 0,
  now: 0,
};

/** One verdict about the database as it is. */
async function verdict(hf: Holdfast, name: string, limits: Partial<Limits> = {}): Promise<Check | undefined> {
  const facts = { ...others, inspection: await operatorOf(hf).store.inspect() };
  return diagnose(facts, { ...LIMITS, ...limits }).find((check) => check.name === name);
}

async function connection(store: FreshStore): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: store.url, application_name: "somebody" });
  await client.connect();
  onTestFinished(() => client.end());
  return client;
}

/** One check of `holdfast doctor`. */
async function said(store: FreshStore, name: string): Promise<Check | undefined> {
  const ran = await on(store)(["doctor", "--json"]);
  return ran.json<{ checks: Check[] }>().checks.find((check) => check.name === name);
}

onEveryStore((target) => {
  test("[F6] a transaction that is left open is found, with whose it is and how to end it", async () => {
    if (target.dialect === "sqlite") return; // its readers are found by the size of the WAL, below
    const { hf, store } = await fresh(target);
    const client = await connection(store);
    await client.query("begin isolation level repeatable read");
    await client.query("select 1");
    const [{ pid }] = (await client.query<{ pid: number }>("select pg_backend_pid() as pid")).rows as [
      { pid: number },
    ];
    // Other tests' transactions on this server may be older; they end.
    let found: Check | undefined;
    await waitFor(
      async () => {
        found = await verdict(hf, "transactions", { transactionMs: -1 });
        return found?.text.includes(`pid ${pid}`) === true;
      },
      { what: "this transaction to be the oldest" },
    );
    expect(found).toMatchObject({
      verdict: "wrong",
      text: expect.stringMatching(
        /^the oldest is .* old \(somebody, pid \d+, idle in transaction\)$/,
      ) as string,
      remedy: expect.stringContaining(`select pg_terminate_backend(${pid})`) as string,
    });
    await client.query("rollback");
    expect(await verdict(hf, "transactions")).toMatchObject({ verdict: "ok" });
  });

  test("[F6] an index that a build broke off is found not to be valid", async () => {
    if (target.dialect === "sqlite") return; // it knows no such state
    const { hf, store } = await fresh(target);
    expect(await verdict(hf, "indexes")).toMatchObject({ verdict: "ok" });
    await hf.enqueue("twice", null);
    await hf.enqueue("twice", null);
    const broken = store.query(
      `create unique index concurrently half_made on ${store.table("ready")} (job_type)`,
    );
    await expect(broken).rejects.toThrow(/could not create unique index/);
    expect(await said(store, "indexes")).toMatchObject({
      verdict: "wrong",
      text: "not valid: half_made",
      remedy: "Rebuild them: reindex index concurrently half_made;",
    });
  });

  test("[F6] commits that a power cut can undo are found: synchronous_commit off, or SQLite below full", async () => {
    const { hf, store } = await fresh(target);
    expect((await operatorOf(hf).store.inspect()).durability).toBe(
      target.dialect === "sqlite" ? "synchronous = full" : "fsync = off", // the tests' servers have nothing to lose
    );
    if (target.dialect === "sqlite") {
      const cwd = folder("careless");
      const open = `open: { durability: "normal" }`;
      writeFileSync(
        join(cwd, "holdfast.config.mjs"),
        `export default { url: ${JSON.stringify(store.url)}, ${open} };`,
      );
      const { checks } = (await cli(["doctor", "--json"], { cwd })).json<{ checks: Check[] }>();
      expect(checks.find(({ name }) => name === "durability")).toMatchObject({
        verdict: "wrong",
        text: expect.stringContaining("synchronous = normal") as string,
      });
      return;
    }
    const url = new URL(store.url);
    url.searchParams.set("options", "-c synchronous_commit=off");
    expect(await said({ ...store, url: url.href }, "durability")).toMatchObject({
      verdict: "wrong",
      text: "fsync = off, synchronous_commit = off: a power failure can lose accepted jobs",
    });
  });

  test("[F6] a WAL that something keeps is found: a reader on SQLite, a replication slot on Postgres", async () => {
    const { hf, store } = await fresh(target);
    if (target.dialect === "sqlite") {
      expect(await verdict(hf, "WAL", { walBytes: 1_000_000 })).toMatchObject({ verdict: "ok" });
      const reader = new DatabaseSync(store.url.slice("sqlite:".length));
      onTestFinished(() => reader.close());
      reader.exec("begin");
      reader.prepare("select count(*) from holdfast_job").get();
      for (let i = 0; i < 8; i += 1) await hf.enqueue("large", "x".repeat(500_000));
      expect(await verdict(hf, "WAL", { walBytes: 1_000_000 })).toMatchObject({
        verdict: "wrong",
        text: expect.stringContaining("a reader keeps it from shrinking") as string,
      });
      return;
    }
    const slot = `hf_doctor_${process.pid}_${target.name.replaceAll(/\W/g, "_")}`;
    await store.query(`select pg_create_physical_replication_slot('${slot}', true)`);
    onTestFinished(() => void store.query(`select pg_drop_replication_slot('${slot}')`).catch(() => {}));
    await store.query("select pg_logical_emit_message(false, 'hf', repeat('x', 2000000))");
    const { slot: seen, ...rest } = await operatorOf(hf).store.inspect();
    expect(seen).toMatchObject({ active: false });
    expect(seen?.bytes).toBeGreaterThan(2_000_000);
    const facts = { ...others, inspection: { ...rest, slot: seen } };
    const found = diagnose(facts, { ...LIMITS, walBytes: 1_000_000 }).find(({ name }) => name === "WAL");
    expect(found).toMatchObject({
      verdict: "wrong",
      text: expect.stringContaining(
        `the replication slot ${seen?.name}, which has no reader, keeps `,
      ) as string,
      remedy: expect.stringContaining("pg_drop_replication_slot(") as string,
    });
    await store.query(`select pg_drop_replication_slot('${slot}')`);
  });

  test("[F6] dead rows that vacuum does not come to are found, in whichever table", async () => {
    const { hf, store } = await fresh(target);
    if (target.dialect === "sqlite") {
      for (let i = 0; i < 4; i += 1) await hf.enqueue("large", "x".repeat(500_000));
      await hf.jobs.delete({ name: "large" });
      expect(await verdict(hf, "bloat", { freeBytes: 1_000_000 })).toMatchObject({
        verdict: "note",
        text: expect.stringMatching(/ of the file are free/) as string,
      });
      return;
    }
    const table = store.table("gauge");
    await store.query(`alter table ${table} set (autovacuum_enabled = off)`);
    await store.query(
      `insert into ${table} (minute, source, name, value) select n, 's', 'g', 1 from generate_series(1, 3000) n`,
    );
    await store.query(`delete from ${table}`);
    let found: Check | undefined;
    await waitFor(
      async () => {
        await store.query("select 1"); // Postgres 14 tells what a session did with its next statement
        found = await verdict(hf, "bloat", { deadRows: 2_000 });
        return found?.verdict === "wrong";
      },
      { what: "the statistics of the table" },
    );
    expect(found?.text).toMatch(/gauge: 3,000 dead rows beside 0 live ones/);
  });

  test("[F6] a clock that differs from the database's is found", async () => {
    const { store } = await fresh(target);
    expect(await said(store, "clocks")).toMatchObject({ verdict: "ok" });
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() - 10_000 });
    onTestFinished(() => void vi.useRealTimers());
    expect(await said(store, "clocks")).toMatchObject(
      target.dialect === "sqlite"
        ? { verdict: "ok" } // it has this machine's
        : { verdict: "wrong", text: expect.stringMatching(/^this machine is 1?\d(\.\d)?s behind/) as string },
    );
  });
});

test("[F6] a SQLite with a known fault, opened all the same, is found", () => {
  const handle = new DatabaseSync(":memory:");
  const version = vi.spyOn(handle, "prepare");
  const real = version.getMockImplementation() ?? DatabaseSync.prototype.prepare.bind(handle);
  version.mockImplementation((sql) => real(sql.replace("sqlite_version()", "'3.50.2'")));
  const inspection = inspect(handle, null);
  expect(diagnose({ ...others, inspection }).find(({ name }) => name === "version")).toMatchObject({
    verdict: "wrong",
    text: expect.stringMatching(/^SQLite 3\.50\.2: it can corrupt/) as string,
  });
  version.mockRestore();
  expect(inspect(handle, null).versionFault).toBeNull();
  handle.close();
});
