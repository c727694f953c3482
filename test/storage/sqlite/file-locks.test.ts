/** POSIX locks belong to the process, and closing any descriptor of a file drops them all: only SQLite may open the database file. */
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { defineJob, open } from "holdfast";
import { expect, test } from "vitest";
import { temporaryDirectory } from "../../support/guard.ts";
import { spawnNode } from "../../support/process.ts";
import { sourceFiles } from "../../support/repository.ts";

const quiet = { debug() {}, info() {}, warn() {}, error() {} };

/** Whether this process has a lock on the file: without one, an older SQLite that closes it deletes the WAL. */
function locked(path: string): boolean {
  const { ino } = statSync(path);
  const lines = readFileSync("/proc/locks", "utf8").split("\n");
  return lines.some((line) => line.includes(` ${process.pid} `) && line.includes(`:${ino} `));
}

test.skipIf(!existsSync("/proc/locks"))(
  "[O7] sqlite: a second client of a file in a process leaves the first one's locks, and a visitor leaves the WAL",
  async () => {
    const path = join(temporaryDirectory("locks"), "jobs.db");
    const visit = async (): Promise<unknown> => {
      const visitor = spawnNode("test/storage/sqlite/children/visitor.ts", [path]);
      const said = await visitor.message("visited");
      await visitor.exited;
      return said["jobs"];
    };
    const first = await open(`sqlite:${path}`, { logger: quiet });
    await first.enqueue("a", 1);
    expect(locked(path)).toBe(true);
    const second = await open(`sqlite:${path}`, { logger: quiet });
    expect(locked(path)).toBe(true);
    await second.enqueue("b", 1);
    expect(await visit()).toBe(2);
    await Promise.all(
      Array.from({ length: 50 }, (_, i) => (i % 2 === 0 ? first : second).enqueue("later", i)),
    );
    await second.close();
    expect(locked(path)).toBe(true);
    const worker = first.work([defineJob({ name: "none", run: () => {} })], { queues: ["none"] });
    await worker.ready;
    await worker.stop();
    expect(locked(path)).toBe(true);
    expect(await visit()).toBe(52);
    await first.enqueue("last", 1);
    await first.close();
    expect(await visit()).toBe(53);
  },
);

test("[O7] sqlite: no source opens a database file but SQLite, except to make one that is not there", () => {
  const harmless = new Set([
    "mkdirSync",
    "statSync",
    "statfsSync",
    "realpathSync",
    "accessSync",
    "watch",
    "constants",
  ]);
  const found = [...sourceFiles()]
    .filter(([path]) => path.startsWith("storage/"))
    .flatMap(([path, text]) =>
      [...text.matchAll(/import(?: type)? \{([^}]*)\} from "node:fs(?:\/promises)?"/g)].flatMap(
        ([, names = ""]) =>
          names
            .split(",")
            .map((name) => name.trim())
            .filter((name) => name !== "" && !harmless.has(name))
            .map((name) => `${path} ${name}`),
      ),
    );
  expect(sourceFiles().get("storage/sqlite/file.ts")).toContain('closeSync(openSync(path, "wx", 0o600))');
  expect(found.sort()).toEqual(["storage/sqlite/file.ts closeSync", "storage/sqlite/file.ts openSync"]);
});
