// A database that restarts, a network that swallows packets, a file that vanishes, a disk that is full.
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, renameSync, rmSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import Database from "better-sqlite3";
import { describe, expect, onTestFinished, test } from "vitest";
import { defineJob, type Holdfast, open, silentLogger } from "../../src/index.ts";
import { temporaryDirectory } from "../support/guard.ts";
import { startPostgres } from "../support/postgres.ts";
import { waitFor } from "../support/process.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";
import { Cluster } from "./cluster.ts";

describe("postgres 18", () => {
  test("[lab-P1] five immediate restarts under load leave nothing stuck, the worker alive, and no rejection unhandled", async () => {
    await using server = await startPostgres(18);
    const cluster = await Cluster.on({ url: server.url() });
    const ids = await cluster.naps(800, 100);
    const worker = await cluster.worker({ queues: { default: 10 }, lease: "5s", heartbeat: "1s" });
    for (let restarts = 0; restarts < 5; restarts++) {
      await sleep(800);
      await server.restartImmediate();
    }
    await cluster.allDone(ids.length, 60_000);
    expect((await cluster.hf.stats()).totals).toMatchObject({ ready: 0, running: 0, scheduled: 0, dead: 0 });
    expect(await cluster.faults(ids)).toEqual([]);
    expect(worker.running).toBe(true);
    worker.kill("SIGTERM");
    expect(await worker.exited, worker.output).toEqual({ code: 0, signal: null });
    expect(worker.output).not.toMatch(/unhandled/i);
  });

  test("[lab-N1] twenty jobs run within 20 s although every connection that existed has become a black hole", async () => {
    await using server = await startPostgres(18);
    await using proxy = await TcpProxy.to(server.url());
    const cluster = await Cluster.on({ url: server.url() });
    const worker = await cluster.worker({ queues: { default: 4 } }, { url: proxy.url(server.url()) });
    const warmUp = await cluster.naps(10, 5);
    await cluster.allDone(warmUp.length, 15_000);
    proxy.blackhole();
    const ids = await cluster.naps(20, 5);
    await cluster.allDone(30, 20_000);
    expect(await cluster.faults([...warmUp, ...ids])).toEqual([]);
    expect(worker.running).toBe(true);
    worker.kill("SIGTERM");
    expect(await worker.exited, worker.output).toEqual({ code: 0, signal: null });
  });
});

describe("sqlite", () => {
  test("[lab-S1] four processes enqueue into one file and work on it: nobody hears of a lock, and each job is done once", async () => {
    const path = join(temporaryDirectory("sqlite"), "jobs.db");
    const cluster = await Cluster.on({ url: `sqlite:${path}` });
    const children = [1, 2, 3, 4].map(() =>
      cluster.start({ queues: { default: 4 } }, cluster.place, { enqueue: 250 }),
    );
    const said = await Promise.all(
      children.map((child) => child.message("enqueued", { deadlineMs: 60_000 })),
    );
    expect(said.flatMap((message) => message["failures"])).toEqual([]);
    const ids = said.flatMap((message) => message["ids"] as string[]);
    expect(new Set(ids).size).toBe(1_000);
    await cluster.allDone(1_000, 60_000);
    expect(cluster.notes().filter(({ event }) => event === "start")).toHaveLength(1_000);
    expect(await cluster.faults(ids)).toEqual([]);
    for (const child of children) {
      expect(child.messages.filter(({ type }) => type === "error")).toEqual([]);
      child.kill("SIGTERM");
      expect(await child.exited, child.output).toEqual({ code: 0, signal: null });
    }
    const file = new DatabaseSync(path);
    expect(file.prepare("pragma integrity_check").all()).toEqual([{ integrity_check: "ok" }]);
    file.close();
  });

  const replacements: [how: string, act: (path: string) => void][] = [
    ["unlinked", (path) => unlinkSync(path)],
    ["renamed away", (path) => renameSync(path, `${path}.old`)],
    [
      "replaced by a copy",
      (path) => {
        copyFileSync(path, `${path}.copy`);
        renameSync(`${path}.copy`, path);
      },
    ],
  ];
  test.each(replacements)(
    "[lab-S6] when the file is %s under us, writes are refused and a worker stops with the cause",
    async (_how, act) => {
      const path = join(temporaryDirectory("sqlite"), "jobs.db");
      const hf = await opened(`sqlite:${path}`);
      const worker = hf.work([defineJob({ name: "nap", run: () => 1 })], {
        queues: ["default"],
        poll: "100ms",
      });
      await worker.ready;
      const ended = worker.stopped.then(
        () => null,
        (error: unknown) => error,
      );
      act(path);
      const refused = await waitFor(
        () =>
          hf.enqueue("other", {}).then(
            () => undefined,
            (error: unknown) => error,
          ),
        {
          what: "a write to be refused",
        },
      );
      expect(refused).toMatchObject({ code: "FILE_REPLACED" });
      await expect(hf.enqueue("other", {})).rejects.toMatchObject({ code: "FILE_REPLACED" });
      expect(await ended).toMatchObject({ code: "FILE_REPLACED" });
    },
  );

  const losses: typeof replacements = [
    ...replacements,
    ...["-wal", "-shm"].flatMap((end): typeof replacements => [
      [`left without ${end}`, (path) => unlinkSync(path + end)],
      [
        `given another ${end}`,
        (path) => {
          copyFileSync(path + end, `${path}.copy`);
          renameSync(`${path}.copy`, path + end);
        },
      ],
    ]),
  ];
  test.each(losses)(
    "[O7] when the file is %s under us, nothing more is acknowledged, and a worker stops with the cause",
    async (_how, act) => {
      const path = join(temporaryDirectory("sqlite"), "jobs.db");
      const hf = await opened(`sqlite:${path}`);
      const own = new DatabaseSync(path);
      onTestFinished(() => own.close());
      await hf.enqueue("other", {});
      const worker = hf.work([defineJob({ name: "nap", run: () => 1 })], {
        queues: ["default"],
        lease: "6s",
        poll: "100ms",
      });
      await worker.ready;
      const ended = worker.stopped.then(
        () => null,
        (error: unknown) => error,
      );
      await hf.enqueue("other", {});
      act(path);
      await sleep(2); // the files are compared once a millisecond
      for (let turn = 0; turn < 3; turn += 1)
        await expect(hf.enqueue("other", {})).rejects.toMatchObject({ code: "FILE_REPLACED" });
      own.exec("begin");
      await expect(hf.enqueue("other", {}, { tx: own })).rejects.toMatchObject({ code: "FILE_REPLACED" });
      own.exec("rollback");
      expect(await ended).toMatchObject({ code: "FILE_REPLACED" });
    },
  );

  const handles = {
    "node:sqlite": (path: string) => new DatabaseSync(path),
    "better-sqlite3": (path: string) => new Database(path),
  };
  test.each(Object.entries(handles))(
    "[O7] the same holds for a handle of %s that the user gave, in WAL mode and not",
    async (_library, handleOn) => {
      for (const mode of ["wal", "delete"]) {
        const path = join(temporaryDirectory("sqlite"), "jobs.db");
        const handle = handleOn(path);
        onTestFinished(() => void handle.close());
        handle.exec(`pragma journal_mode = ${mode}`);
        const hf = await open(handle, { logger: silentLogger });
        onTestFinished(() => hf.close());
        await hf.enqueue("other", {});
        unlinkSync(mode === "wal" ? `${path}-wal` : path);
        await sleep(2);
        await expect(hf.enqueue("other", {})).rejects.toMatchObject({ code: "FILE_REPLACED" });
      }
    },
  );

  const mountable = canMount();
  const why = mountable ? "" : " (skipped: this user may not mount a tmpfs)";

  test.skipIf(!mountable)(
    `[lab-S4] a full disk is told as DISK_FULL, and work goes on when space is freed${why}`,
    async () => {
      const folder = tmpfs("2m");
      const hf = await opened(`sqlite:${join(folder, "jobs.db")}`);
      let done = 0;
      const worker = hf.work([defineJob({ name: "nap", run: () => void (done += 1) })], {
        queues: ["default"],
      });
      await worker.ready;
      const filler = join(folder, "filler");
      fill(filler);
      const refused = await waitFor(
        () =>
          hf.enqueue("other", { text: "x".repeat(20_000) }).then(
            () => undefined,
            (error: unknown) => error,
          ),
        { what: "an enqueue to be refused", everyMs: 1 },
      );
      expect(refused).toMatchObject({ code: "DISK_FULL" });
      rmSync(filler);
      await hf.enqueue("nap", {});
      await waitFor(() => done === 1, { what: "work to go on" });
      await waitFor(async () => (await hf.jobs.count({ name: "nap", state: "done" })) === 1, {
        what: "it to be settled",
      });
    },
  );

  test.skipIf(!mountable)(`[lab-S6] a file that cannot be written is told as READ_ONLY${why}`, async () => {
    const folder = tmpfs("8m");
    const url = `sqlite:${join(folder, "jobs.db")}`;
    const before = await open(url, { logger: silentLogger });
    await before.enqueue("nap", {});
    await before.close();
    expect(mount(["-o", "remount,ro,size=8m", folder])).toBe(true);
    await expect(open(url, { logger: silentLogger })).rejects.toMatchObject({ code: "READ_ONLY" });
    expect(mount(["-o", "remount,rw,size=8m", folder])).toBe(true);
    const hf = await opened(url);
    await hf.enqueue("nap", {});
    expect(await hf.jobs.count()).toBe(2);
  });
});

async function opened(url: string): Promise<Holdfast> {
  const hf = await open(url, { logger: silentLogger, retryFor: 0 });
  onTestFinished(() => hf.close());
  return hf;
}

function mount(args: readonly string[]): boolean {
  return spawnSync("mount", args).status === 0;
}

function canMount(): boolean {
  if (process.platform !== "linux" || process.getuid?.() !== 0) return false;
  const folder = temporaryDirectory("mount");
  if (!mount(["-t", "tmpfs", "-o", "size=1m", "tmpfs", folder])) return false;
  return spawnSync("umount", [folder]).status === 0;
}

/** A small disk; unmounted after the test. */
function tmpfs(size: string): string {
  const folder = join(temporaryDirectory("tmpfs"), "disk");
  mkdirSync(folder);
  if (!mount(["-t", "tmpfs", "-o", `size=${size}`, "tmpfs", folder])) throw new Error("mount failed");
  onTestFinished(() => void spawnSync("umount", ["-l", folder]));
  return folder;
}

/** Takes what is left of the disk, to the last block. */
function fill(path: string): void {
  for (let bytes = 1_000_000; bytes >= 1_000; bytes = Math.floor(bytes / 2)) {
    try {
      for (;;) writeFileSync(path, Buffer.alloc(bytes), { flag: "a" });
    } catch {
      // Full at this size; smaller ones may still fit.
    }
  }
}
