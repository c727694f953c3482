// A machine whose wall clock is set while processes work on one SQLite file.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { temporaryDirectory } from "../support/guard.ts";
import { type NodeProcess, waitFor } from "../support/process.ts";
import { Cluster } from "./cluster.ts";

const minuteMs = 60_000;
const lease = { queues: { default: 4 }, lease: "6s", heartbeat: "2s" } as const;
const steps: [string, number][] = [
  ["ten minutes back", -10 * minuteMs],
  ["an hour forward", 60 * minuteMs],
];

/** A cluster on a machine whose wall clock can be set: that of this process too, a moment before the others notice. */
async function machine(): Promise<{ cluster: Cluster; set: (offsetMs: number) => void }> {
  const folder = temporaryDirectory("clock");
  const file = join(folder, "offset");
  writeFileSync(file, "0");
  const realNow = Date.now;
  let offset = 0;
  const wall = vi.spyOn(Date, "now").mockImplementation(() => realNow() + offset);
  onTestFinished(() => wall.mockRestore());
  const cluster = await Cluster.on({ url: `sqlite:${join(folder, "jobs.db")}` });
  const preload = pathToFileURL(join(import.meta.dirname, "children/wall-clock.ts"));
  cluster.env = { NODE_OPTIONS: `--import ${preload.href}`, TEST_WALL_CLOCK: file };
  return {
    cluster,
    set: (offsetMs) => {
      offset = offsetMs;
      writeFileSync(file, String(offsetMs));
    },
  };
}

async function started(cluster: Cluster, ids: readonly string[]): Promise<void> {
  await waitFor(() => ids.every((id) => cluster.starts(id).length > 0), { what: "the jobs to be started" });
}

function warnings(children: readonly NodeProcess[]): unknown[][] {
  return children.map((child) =>
    child.messages.filter(({ type }) => type === "warning").map(({ message }) => message),
  );
}

describe("sqlite", () => {
  describe.each([1, 2])("with %i processes", (processes) => {
    test.each(steps)(
      "[O6] the clock is set %s: work goes on within 30 s, nothing runs twice, no healthy session is taken over",
      async (_step, offset) => {
        const { cluster, set } = await machine();
        const children = await Promise.all(Array.from({ length: processes }, () => cluster.worker(lease)));
        const sessions = (await cluster.hf.workers.list()).map(({ id }) => id).sort();
        const long = await cluster.naps(processes, 12_000);
        await started(cluster, long);
        const short = await cluster.naps(processes * 60, 200); // most of them are due and wait when the clock is set
        await started(cluster, short.slice(0, 3));
        set(offset);
        short.push(...(await cluster.naps(20, 100)));
        await cluster.allDone(long.length + short.length, 30_000);
        expect(await cluster.faults([...long, ...short])).toEqual([]);
        expect(cluster.notes().filter(({ event }) => event === "lost")).toEqual([]);
        expect((await cluster.hf.workers.list()).map(({ id }) => id).sort()).toEqual(sessions);
        await waitFor(() => warnings(children).every((messages) => messages.length > 0), {
          what: "each process to tell of the step",
        });
        for (const messages of warnings(children)) {
          expect(messages).toEqual([expect.stringMatching(offset < 0 ? /10m back/ : /1h forward/)]);
        }
      },
      90_000,
    );
  });

  test.each(steps)(
    "[O6] the clock is set %s while a process dies: its job is taken over, and nobody else's",
    async (_step, offset) => {
      const { cluster, set } = await machine();
      const [dies, lives] = await Promise.all([cluster.worker(lease), cluster.worker(lease)]);
      const ids = await cluster.naps(8, 10_000);
      await started(cluster, ids);
      dies.kill("SIGSTOP");
      set(offset);
      await cluster.kill(dies);
      await cluster.allDone(ids.length, 45_000);
      expect(await cluster.faults(ids)).toEqual([]);
      expect(cluster.notes().filter(({ event, pid }) => event === "lost" && pid === lives.pid)).toEqual([]);
    },
    90_000,
  );
});
