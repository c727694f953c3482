// The harness itself: a fault test is only as good as the fault it makes.
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { describe, expect, test } from "vitest";
import { temporaryDirectory } from "./guard.ts";
import { installedMajors, startPostgres } from "./postgres.ts";
import { spawnNode, waitFor } from "./process.ts";
import { onEveryStore } from "./stores.ts";
import { TcpProxy } from "./tcp-proxy.ts";

test("tests run on the pinned Node", () => {
  expect(process.version).toBe("v24.21.0");
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
