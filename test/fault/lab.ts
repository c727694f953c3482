// Processes with workers on one store, and what their handlers wrote down: when each run started and ended.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { type Holdfast, open, silentLogger } from "../../src/index.ts";
import { temporaryDirectory } from "../support/guard.ts";
import { type NodeProcess, spawnNode, waitFor } from "../support/process.ts";
import type { FreshStore } from "../support/stores.ts";
import type { Entry, LimitedSpec } from "./children/limited.ts";

/** Milliseconds of the clock that `Entry.at` is of. */
export const monotonic = (): number => Number(process.hrtime.bigint() / 1_000n) / 1_000;

export class Lab {
  readonly hf: Holdfast;
  readonly fresh: FreshStore;
  readonly log = join(temporaryDirectory("limits"), "runs.jsonl");
  readonly killedAt = new Map<number, number>();

  constructor(hf: Holdfast, fresh: FreshStore) {
    this.hf = hf;
    this.fresh = fresh;
  }

  static async on(fresh: FreshStore): Promise<Lab> {
    const hf = await open(fresh.url, { ...fresh.options, logger: silentLogger });
    onTestFinished(() => hf.close());
    return new Lab(hf, fresh);
  }

  async start(
    workers: number,
    queues: Record<string, number>,
    budget?: LimitedSpec["budget"],
  ): Promise<NodeProcess> {
    const spec: LimitedSpec = {
      ...(budget === undefined ? null : { budget }),
      url: this.fresh.url,
      options: this.fresh.options,
      log: this.log,
      workers,
      queues,
    };
    const child = spawnNode("test/fault/children/limited.ts", [JSON.stringify(spec)]);
    onTestFinished(() => child[Symbol.asyncDispose]());
    await child.message("ready", { deadlineMs: 60_000 });
    return child;
  }

  async kill(child: NodeProcess): Promise<void> {
    child.kill("SIGKILL");
    await child.exited;
    this.killedAt.set(child.pid, monotonic());
  }

  entries(): Entry[] {
    if (!existsSync(this.log)) return [];
    const lines = readFileSync(this.log, "utf8").split("\n");
    return lines.filter((line) => line.endsWith("}")).map((line) => JSON.parse(line) as Entry);
  }

  /** The most that ran at once (from then on), by what the limit is of. A killed process's runs end with it. */
  mostAtOnce(since = -Infinity): Map<string, number> {
    const entries = this.entries();
    const ends = new Map(entries.filter(({ event }) => event === "end").map(({ run, at }) => [run, at]));
    const edges: { at: number; of: string; by: number }[] = [];
    for (const { event, of, run, pid, at } of entries) {
      if (event !== "start") continue;
      edges.push({ at, of, by: 1 }, { at: ends.get(run) ?? this.killedAt.get(pid) ?? Infinity, of, by: -1 });
    }
    // Of one instant, ends come first: a place that is free may be taken.
    edges.sort((a, b) => a.at - b.at || a.by - b.by);
    const running = new Map<string, number>();
    const most = new Map<string, number>();
    for (const { at, of, by } of edges) {
      const now = (running.get(of) ?? 0) + by;
      running.set(of, now);
      if (at >= since) most.set(of, Math.max(most.get(of) ?? 0, now));
    }
    return most;
  }

  runningBy(pid: number): number {
    const mine = this.entries().filter((entry) => entry.pid === pid);
    return (
      mine.filter(({ event }) => event === "start").length -
      mine.filter(({ event }) => event === "end").length
    );
  }

  async allDone(count: number): Promise<void> {
    await waitFor(async () => (await this.hf.jobs.count({ state: "done" })) === count, {
      what: `${count} jobs to be done`,
      deadlineMs: 90_000,
      everyMs: 100,
    });
  }
}
