/** What `open` refuses, and what it says: whoever reads the message must know what to do. */
import { statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { open } from "holdfast";
import { describe, expect, test } from "vitest";
import { type Clock, systemClock } from "../src/clock.ts";
import { isSafeVersion } from "../src/storage/sqlite/connection.ts";
import { networkFileSystem } from "../src/storage/sqlite/file.ts";
import { cli } from "./cli/support.ts";
import { temporaryDirectory } from "./support/guard.ts";
import { onEveryStore, onPostgres } from "./support/stores.ts";

describe("a database that must not be opened", () => {
  test("a SQLite with the WAL fault is refused, and says which Node to take", async () => {
    const old = {
      isTransaction: false,
      exec: () => undefined,
      close: () => undefined,
      prepare: () => ({ all: () => [{ version: "3.51.2" }], run: () => undefined }),
    };
    await expect(open(old)).rejects.toMatchObject({
      code: "SQLITE_TOO_OLD",
      message: expect.stringMatching(/Node 2\d/) as string,
    });
  });

  test.each([
    ["3.40.1", false],
    ["3.50.6", false],
    ["3.50.7", true],
    ["3.51.2", false],
    ["3.51.3", true],
    ["3.53.4", true],
    ["4.0.0", true],
  ])("SQLite %s is safe: %s", (version, safe) => expect(isSafeVersion(version)).toBe(safe));

  test("network file systems are known by their numbers, local ones are not among them", () => {
    expect([0x6969, 0xff534d42 | 0, 0x01021997, 0x65735546].map(networkFileSystem)).toEqual([
      "NFS",
      "CIFS",
      "9p",
      "FUSE",
    ]);
    expect([0xef53, 0x58465342, 0x01021994, 0x9123683e, 0x794c7630].map(networkFileSystem)).toEqual([
      null,
      null,
      null,
      null,
      null,
    ]);
  });

  test("a file that is no database is refused and left as it is", async () => {
    const file = join(temporaryDirectory(), "notes.txt");
    writeFileSync(file, "these are my notes, and they are longer than a header: ".repeat(40));
    const before = statSync(file).size;
    await expect(open(`sqlite:${file}`)).rejects.toMatchObject({ code: "CORRUPT" });
    expect(statSync(file).size).toBe(before);
  });

  test("a new file can be read by its owner alone", async () => {
    const file = join(temporaryDirectory(), "jobs.db");
    const hf = await open(`sqlite:${file}`);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    await hf.close();
  });

  test("a server that does not answer is named as such, without the password", async () => {
    const error: unknown = await open("postgres://me:hunter2@127.0.0.1:1/app", {
      logger: quiet,
      retryFor: 0,
    }).catch((e: unknown) => e);
    expect(error).toMatchObject({ code: "DATABASE_UNREACHABLE" });
    expect(JSON.stringify(error) + String(error)).not.toContain("hunter2");
  });

  test('[O9] a server that stays away is waited for until "retryFor" has passed, and no longer', async () => {
    const waits: number[] = [];
    let elapsed = 0;
    // Each wait passes at once.
    const clock: Clock = {
      ...systemClock,
      monotonic: () => elapsed,
      after: (ms, fn) => {
        waits.push(ms);
        elapsed += ms;
        const immediate = setImmediate(fn);
        return { cancel: () => clearImmediate(immediate) };
      },
    };
    const opening = open("postgres://127.0.0.1:1/app", { clock, logger: quiet, retryFor: "7s" });
    await expect(opening).rejects.toMatchObject({ code: "DATABASE_UNREACHABLE" });
    expect(waits.length).toBeGreaterThan(5);
    expect(elapsed).toBe(7_000);
  });

  test("a server that is too old is refused", async () => {
    const client = {
      query: async () => ({ rows: [{ version: 130_012 }] }),
      on: () => client,
      release: () => undefined,
    };
    const pool = {
      connect: async () => client,
      end: async () => undefined,
      on: () => pool,
      totalCount: 0,
      idleCount: 0,
      options: {},
    };
    await expect(open(pool)).rejects.toMatchObject({
      code: "POSTGRES_TOO_OLD",
      message: expect.stringContaining("14") as string,
    });
  });
});

onPostgres((target) => {
  test("a role, a password or a database that is wrong is named as such", async () => {
    const { url } = await target.fresh();
    const elsewhere = new URL(url);
    elsewhere.pathname = "/no_such_database";
    const began = Date.now();
    await expect(open(String(elsewhere), { logger: quiet })).rejects.toMatchObject({
      code: "DATABASE_MISSING",
      message: expect.stringContaining("does not exist") as string,
    });
    expect(Date.now() - began).toBeLessThan(15_000); // not waited for: the default is 30 s
    const stranger = new URL(url);
    stranger.username = "no_such_role";
    stranger.password = "hunter2";
    const error: unknown = await open(String(stranger), { logger: quiet }).catch((e: unknown) => e);
    expect(error).toMatchObject({ code: "PERMISSION_DENIED" });
    expect(JSON.stringify(error) + String(error)).not.toContain("hunter2");
  });
});

onPostgres((target) => {
  test("[O18] a database that does not exist: the message has the command that makes it, without the password", async () => {
    const { url } = await target.fresh();
    const elsewhere = new URL(url);
    elsewhere.pathname = "/no%20such_database";
    elsewhere.username ||= "postgres";
    elsewhere.password ||= "hunter2"; // a server of the tests asks for none
    const shown = new URL(elsewhere);
    shown.password = "";
    const said = `The database "no such_database" does not exist. Create it with: holdfast create --url '${shown.href}', with the password in it.`;
    const error: unknown = await open(String(elsewhere), { logger: quiet }).catch((e: unknown) => e);
    expect(error).toMatchObject({ code: "DATABASE_MISSING", message: said });
    expect(JSON.stringify(error) + String(error)).not.toContain(`:${elsewhere.password}@`);
    const command = await cli(["stats", "--url", String(elsewhere), "--json"]);
    expect(command.code).toBe(1);
    expect(JSON.parse(command.err)).toMatchObject({ error: { code: "DATABASE_MISSING", message: said } });
  });
});

onEveryStore((target) => {
  test("without leave to migrate, an absent schema and one that is behind are told apart", async () => {
    const fresh = await target.fresh();
    await expect(open(fresh.url, { ...fresh.options, migrate: false })).rejects.toMatchObject({
      code: "SCHEMA_MISSING",
    });
    await (await open(fresh.url, fresh.options)).close();
    await fresh.query(`update ${fresh.table("migration")} set version = 0`);
    await expect(open(fresh.url, { ...fresh.options, migrate: "check" })).rejects.toMatchObject({
      code: "SCHEMA_TOO_OLD",
    });
  });
});

const quiet = { debug() {}, info() {}, warn() {}, error() {} };
