import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { systemClock } from "../../../src/clock.ts";
import { Changes, watchWal } from "../../../src/storage/sqlite/changes.ts";
import { FakeClock } from "../../../src/testing/fake-clock.ts";

describe("hearing of other connections' commits", () => {
  const clock = new FakeClock();
  let looks = 0;
  let version = 1;
  let changes = 0;
  let told: () => void = () => {};
  let failed: () => void = () => {};
  let watching = false;
  let subject: Changes | undefined;

  const start = (watchable = true): void => {
    subject = new Changes({
      clock,
      version: () => {
        looks += 1;
        return version;
      },
      onChange: () => (changes += 1),
      watchWal: (onTold, onFailed) => {
        if (!watchable) throw new Error("no watch is left");
        [told, failed, watching] = [onTold, onFailed, true];
        return () => (watching = false);
      },
    });
    looks = 0;
  };
  /** How often it looks in so many seconds. */
  const looksIn = async (seconds: number): Promise<number> => {
    looks = 0;
    await clock.advance(seconds * 1_000);
    return looks;
  };

  beforeEach(() => {
    [looks, version, changes, watching] = [0, 1, 0, false];
  });
  afterEach(() => subject?.stop());

  test("an idle one looks once in two seconds", async () => {
    start();
    expect(await looksIn(100)).toBe(50);
  });

  test("a write is followed by looks until its commit is visible, and then by none", async () => {
    start();
    told();
    await clock.advance(3);
    expect(changes).toBe(0);
    version += 1; // its fsync took 3 ms
    await clock.advance(5);
    expect(changes).toBe(1);
    expect(await looksIn(100)).toBe(50);
    expect(watching).toBe(true);
  });

  test("a write of one's own, which changes no version, costs twenty looks", async () => {
    start();
    told();
    looks = 0;
    await clock.advance(2_000);
    expect(looks).toBeLessThanOrEqual(20);
    expect(await looksIn(100)).toBe(50);
    expect(changes).toBe(0);
  });

  test("however much is written, looks keep their distance", async () => {
    start();
    looks = 0;
    for (let ms = 0; ms < 100; ms += 1) {
      for (let i = 0; i < 10; i += 1) told();
      version += 1;
      await clock.advance(1);
    }
    expect(looks).toBeLessThanOrEqual(51);
    expect(changes).toBe(looks);
  });

  test("a change that nobody told of: from then on it looks every 6 ms", async () => {
    start();
    version += 1;
    await clock.advance(2_000);
    expect(changes).toBe(1);
    await clock.advance(100);
    expect(watching).toBe(false);
    version += 1;
    await clock.advance(6);
    expect(changes).toBe(2);
    expect(await looksIn(6)).toBe(1_000);
  });

  test("a change that is found just before it is told is no sign of deafness", async () => {
    start();
    version += 1;
    await clock.advance(2_000);
    told();
    await clock.advance(1_000);
    expect(watching).toBe(true);
    expect(await looksIn(100)).toBe(50);
  });

  test("without a watch, or when it fails, it looks every 6 ms", async () => {
    start(false);
    expect(await looksIn(6)).toBe(1_000);
    subject?.stop();
    start();
    failed();
    expect(watching).toBe(false);
    expect(await looksIn(6)).toBe(1_000);
  });

  test("another connection's versions are no change", async () => {
    start();
    version = 40;
    subject?.renew();
    await clock.advance(10_000);
    expect(changes).toBe(0);
  });

  test("a version that cannot be read is read again", async () => {
    start();
    subject?.stop();
    let broken = false;
    subject = new Changes({
      clock,
      version: () => {
        if (broken) throw new Error("database is locked");
        return version;
      },
      onChange: () => (changes += 1),
      watchWal: (onTold) => {
        told = onTold;
        return () => {};
      },
    });
    broken = true;
    version += 1;
    told();
    await clock.advance(10);
    expect(changes).toBe(0);
    broken = false;
    await clock.advance(20);
    expect(changes).toBe(1);
  });
});

test("a commit of another connection is heard of through the file system", async () => {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-changes-"));
  const path = join(folder, "jobs.db");
  const mine = new DatabaseSync(path);
  const other = new DatabaseSync(path);
  try {
    mine.exec("pragma journal_mode = wal; create table t (n integer)");
    const pragma = mine.prepare("pragma data_version");
    const tellsOfWrites: boolean[] = [];
    const heard = Promise.withResolvers<void>();
    const changes = new Changes({
      clock: systemClock,
      version: () => Number(pragma.get()?.["data_version"]),
      onChange: () => heard.resolve(),
      watchWal: (told, failed) =>
        watchWal(path)(() => {
          tellsOfWrites.push(true);
          told();
        }, failed),
    });
    other.exec("insert into t values (1)");
    await heard.promise;
    expect(tellsOfWrites.length).toBeGreaterThan(0);
    changes.stop();
  } finally {
    mine.close();
    other.close();
    rmSync(folder, { recursive: true });
  }
});
