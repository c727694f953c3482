// The harness itself: a fault test is only as good as the fault it makes.
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { open, silentLogger } from "../../src/index.ts";
import { urlOf } from "./ask-postgres.ts";
import { temporaryDirectory } from "./guard.ts";
import { longest } from "./longest-first.ts";
import setup, { type ProvidedServer } from "./postgres-servers.ts";
import { installedMajors, type PostgresServer, startPostgres } from "./postgres.ts";
import { spawnNode, waitFor } from "./process.ts";
import { repositoryFiles } from "./repository.ts";
import { SCHEMA_POOL, type Taken, takeSchema } from "./schema-pool.ts";
import { onEveryStore } from "./stores.ts";
import { TcpProxy } from "./tcp-proxy.ts";

test("tests run on the pinned Node, or on the one that HOLDFAST_TEST_NODE names", () => {
  expect(process.version).toBe(`v${process.env["HOLDFAST_TEST_NODE"] ?? "24.21.0"}`);
});

onEveryStore((target) => {
  test("a fresh store is empty, separate and gone after dispose", async () => {
    const [one, two] = [await target.fresh(), await target.fresh()];
    expect(one.url + JSON.stringify(one.options)).not.toBe(two.url + JSON.stringify(two.options));
    for (const store of [one, two]) {
      if (store.options.schema !== undefined) await store.query(`create schema "${store.options.schema}"`);
      await store.query(`create table ${store.table("job")} (id bigint, name text)`);
    }
    await one.query(`insert into ${one.table("job")} values (?, ?)`, [1, "a"]);
    expect(await one.query(`select id, name from ${one.table("job")}`)).toEqual([{ id: 1, name: "a" }]);
    expect(await two.query(`select count(*) as n from ${two.table("job")}`)).toEqual([{ n: 0 }]);
    await one.dispose();
    await one.dispose();
  });
});

describe.each(installedMajors())("a private Postgres %i", (major) => {
  test("survives an immediate restart and a SIGKILL with what was committed, on the same port", async () => {
    await using server = await startPostgres(major, { fsync: true });
    await query(server.url(), "create table t (n int)");
    await query(server.url(), "insert into t values (1)");
    await server.restartImmediate();
    await query(server.url(), "insert into t values (2)");
    await server.stop("kill");
    expect(server.running).toBe(false);
    await server.start();
    expect(await query(server.url(), "select n from t order by n")).toEqual([{ n: 1 }, { n: 2 }]);
    expect(await query(server.url(), "show server_version_num")).toMatchObject([
      { server_version_num: expect.stringMatching(`^${major}`) as string },
    ]);
    await server.remove();
    expect(existsSync(server.directory)).toBe(false);
  });
});

test.skipIf(installedMajors().length === 0)(
  "the suite's servers start when a test asks for them, once, and end with the run",
  async () => {
    let provided: ProvidedServer[] = [];
    const provide = (_key: string, value: ProvidedServer[]): void => void (provided = value);
    const end = await setup({ provide } as unknown as Parameters<typeof setup>[0]);
    const server = { ...provided.at(-1)!, name: "another run's" };
    const [url, same] = await Promise.all([urlOf(server), urlOf({ ...server, name: "another worker's" })]);
    expect(same).toBe(url);
    expect(await query(url, "select count(*)::int as n from handed_on.store")).toEqual([{ n: 0 }]);
    await end?.();
    await expect(query(url, "select 1")).rejects.toThrow("ECONNREFUSED");
    await expect(urlOf({ ...server, name: "a late worker's" })).rejects.toThrow("ECONNREFUSED");
  },
);

describe.each(installedMajors())("schemas that are handed on, Postgres %i", (major) => {
  let url = "";
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres(major);
    await server.run(SCHEMA_POOL);
    url = server.url();
  });
  afterAll(() => server.remove());
  const alone = ({ schema }: Taken): Promise<unknown> =>
    waitFor(
      async () =>
        (await query(url, `select 1 from pg_stat_activity where usename = '${schema}'`)).length === 0,
      { what: "its connections to end" },
    );

  test("one that was used has no row, counts from the start, and has the days that it had", async () => {
    const one = await takeSchema(url);
    const tables = () =>
      query(
        url,
        `select relname from pg_class where relnamespace = '${one.schema}'::regnamespace order by 1`,
      );
    const instance = () => query(url, `select value from "${one.schema}".meta where key = 'instance'`);
    const [made, meta] = [await tables(), await instance()];
    const hf = await open(one.url, { schema: one.schema, logger: silentLogger });
    await hf.enqueue("mail", 1);
    await hf.queues.pause("mail");
    await hf.close();
    const day =
      "for values from ('00000000-0000-7000-8000-000000000000') to ('00000000-0000-7000-9000-000000000000')";
    await query(one.url, `create table "${one.schema}".job_19700101 partition of "${one.schema}".job ${day}`);
    expect(await tables()).not.toEqual(made);
    await one.give();
    await alone(one);
    expect((await takeSchema(url)).schema).toBe(one.schema);
    expect(await tables()).toEqual(made);
    for (const table of ["job", "ready", "job_type", "queue"])
      expect(await query(url, `select * from "${one.schema}".${table}`)).toEqual([]);
    expect([meta.length, (await instance()).length]).toEqual([1, 1]);
    expect(await instance()).not.toEqual(meta);
    const lane = `insert into "${one.schema}".lane (queue, key, used_at) values ('a', 'b', 0) returning id`;
    expect(await query(url, lane)).toEqual([{ id: 1 }]);
  });

  test("one that was changed, or has statistics, is made anew", async () => {
    for (const change of [
      "drop index ready_order",
      "alter table job add column extra int",
      "grant select on job to public",
      "delete from migration",
      "insert into job_type (queue, name) select 'q', 'n' || n from generate_series(1, 9) n; analyze job_type",
      "drop table migration",
    ]) {
      const one = await takeSchema(url);
      await query(url, `set search_path = "${one.schema}"; ${change}`);
      await one.give();
      await alone(one);
      expect([
        change,
        await query(url, `select 1 from pg_namespace where nspname = '${one.schema}'`),
      ]).toEqual([change, []]);
    }
  });

  test("one to which somebody is connected is left alone, and so is one with rows that came late", async () => {
    const one = await takeSchema(url);
    const late = await connected(one.url);
    await one.give();
    const two = await takeSchema(url);
    expect(two.schema).not.toBe(one.schema);
    await late.query(`insert into "${one.schema}".job_type (queue, name) values ('a', 'b')`);
    await late.end();
    await alone(one);
    expect((await takeSchema(url)).schema).not.toBe(one.schema);
  });

  // It waits for five seconds: once is enough.
  if (major !== installedMajors().at(-1)) return;
  test("one with an open transaction is not emptied, and says so", async () => {
    const one = await takeSchema(url);
    const holder = await connected(one.url);
    await holder.query(`begin; insert into "${one.schema}".job_type (queue, name) values ('a', 'b')`);
    await expect(one.give()).rejects.toThrow("does a test leave a transaction open?");
    await holder.end();
  });
});

test("what a killed process started goes with it: Postgres, children and directories", async () => {
  const directory = temporaryDirectory("guard");
  const script = join(directory, "leaky.ts");
  const support = (file: string): string => JSON.stringify(join(import.meta.dirname, file));
  writeFileSync(
    script,
    `import { startPostgres, installedMajors } from ${support("postgres.ts")};
     import { spawnNode } from ${support("process.ts")};
     const server = await startPostgres(installedMajors().at(-1)!);
     const child = spawnNode(${JSON.stringify(join(directory, "sleeper.ts"))});
     console.log(JSON.stringify({ type: "up", postgres: server.pid, child: child.pid, directory: server.directory }));
     setInterval(() => {}, 1000);`,
  );
  writeFileSync(join(directory, "sleeper.ts"), "setInterval(() => {}, 1000);");
  await using leaky = spawnNode(script);
  const up = await leaky.message("up", { deadlineMs: 30_000 });
  const postgres = Number(up["postgres"]);
  const child = Number(up["child"]);
  expect([alive(postgres), alive(child)]).toEqual([true, true]);
  leaky.kill("SIGKILL");
  await waitFor(() => !alive(postgres) && !alive(child) && !existsSync(String(up["directory"])), {
    what: "the guard to clean up",
  });
});

test("a child that ends early is reported with its output", async () => {
  const directory = temporaryDirectory("process");
  writeFileSync(join(directory, "fails.ts"), `console.log('{"type":"one"}'); throw new Error("on purpose");`);
  await using child = spawnNode(join(directory, "fails.ts"));
  expect(await child.message("one")).toEqual({ type: "one" });
  await expect(child.message("two")).rejects.toThrow(/before a "two" message[^]*on purpose/);
  expect(await child.exited).toEqual({ code: 1, signal: null });
});

test("waitFor says what it waited for and what it saw", async () => {
  await expect(waitFor(() => 0, { what: "a miracle", deadlineMs: 30 })).rejects.toThrow(
    "Waited 30 ms for a miracle; last seen: 0",
  );
});

describe("the proxy", () => {
  test("passes, pauses, swallows silently, refuses and resets", async () => {
    await using server = await startPostgres(installedMajors().at(-1) ?? 18);
    await using proxy = await TcpProxy.to(server.url());
    const url = proxy.url(server.url());
    const one = await connected(url);
    expect((await one.query("select repeat('x', 3000000) as x")).rows[0]).toHaveProperty(
      "x.length",
      3_000_000,
    );

    proxy.pause();
    let answered = false;
    const slow = one.query("select 1").then(() => (answered = true));
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(answered).toBe(false);
    proxy.resume();
    await slow;

    proxy.blackhole();
    const lost = one.query("select 1").then(
      () => "answered",
      () => "failed",
    );
    const two = await connected(url);
    expect((await two.query("select 2 as n")).rows).toEqual([{ n: 2 }]);
    expect(await Promise.race([lost, new Promise((resolve) => setTimeout(resolve, 200, "silent"))])).toBe(
      "silent",
    );

    proxy.refuse();
    await expect(connected(url)).rejects.toThrow();
    proxy.accept();

    const broken = two.query("select pg_sleep(60)").then(
      () => "answered",
      () => "failed",
    );
    proxy.reset();
    expect(await broken).toBe("failed");
    expect(await lost).toBe("failed");
    await waitFor(() => proxy.connections === 0, { what: "the pairs to be forgotten" });
  });
});

function alive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  // Killed and not yet collected by whoever adopted it: in a container that may be never.
  const stat = `/proc/${pid}/stat`;
  if (existsSync(stat)) return !/\) Z /.test(readFileSync(stat, "utf8"));
  return !spawnSync("ps", ["-o", "stat=", "-p", String(pid)], { encoding: "utf8" }).stdout.startsWith("Z");
}

async function connected(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => {});
  await client.connect();
  return client;
}

async function query(url: string, sql: string): Promise<Record<string, unknown>[]> {
  const client = await connected(url);
  try {
    return (await client.query<Record<string, unknown>>(sql)).rows;
  } finally {
    await client.end();
  }
}

test("the files that are known to take longest are there", () => {
  const files = new Set(repositoryFiles());
  expect(longest.filter((file) => !files.has(file))).toEqual([]);
});
