// Work of every sort beside a database that loses answers, refuses statements and drops connections. The faults are injected in the
// processes themselves (children/faulty.ts), for 15 s. Then everything must end by itself: no restart, nothing dead, nothing twice.
//
// No worker dies and no lease is lost here, so nothing may run a second time: each job has exactly one run, each step one, each
// occurrence one job. A failure names the seed; HOLDFAST_SEED=… repeats its faults.
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { type Holdfast, type Job, type JobPage, open, silentLogger } from "../../src/index.ts";
import { temporaryDirectory } from "../support/guard.ts";
import { laneCounts, queueCounts } from "../support/lane-counts.ts";
import { type NodeProcess, spawnNode, waitFor } from "../support/process.ts";
import { type FreshStore, onEveryStore } from "../support/stores.ts";
import type { FaultKind, FaultSpec } from "./children/faulty.ts";
import type { MixedAccount, MixedNote, MixedSpec } from "./children/mixed.ts";

const faultsForMs = 15_000;
const deadlineMs = 60_000;
const most = new Map([["limited", 2]]); // lanes and unique keys have one place

onEveryStore((target) => {
  const kinds: readonly [FaultKind, string][] = [
    ["lost", "2 % of answers lost"],
    ["refused", "2 % of statements refused"],
    ["sockets", "sockets destroyed by unusual errors"],
  ];
  for (const [kind, what] of kinds) {
    if (kind === "sockets" && target.dialect === "sqlite") continue; // it has no socket
    test(`[O2] a mixed load with ${what} ends within a minute, without a restart, nothing dead, nothing twice`, async () => {
      const load = await MixedLoad.on(await target.fresh(), kind);
      await load.start();
      await sleep(faultsForMs);
      load.calm();
      await load.ended();
      expect(await load.faults(), load.report()).toEqual([]);
      await load.stop();
    });
  }
});

class MixedLoad {
  readonly #fresh: FreshStore;
  readonly #hf: Holdfast;
  readonly #kind: FaultKind;
  readonly #seed = Number(process.env["HOLDFAST_SEED"] ?? Date.now() % 1_000_000);
  readonly #directory = temporaryDirectory("mixed");
  readonly #while = join(this.#directory, "while");
  readonly #faultLog = join(this.#directory, "faults.jsonl");
  readonly #log = join(this.#directory, "runs.jsonl");
  readonly #workers: NodeProcess[] = [];
  #producer: NodeProcess | null = null;
  #account: MixedAccount | null = null;

  private constructor(fresh: FreshStore, hf: Holdfast, kind: FaultKind) {
    this.#fresh = fresh;
    this.#hf = hf;
    this.#kind = kind;
  }

  /** With a client of this process's own, which meets no fault. */
  static async on(fresh: FreshStore, kind: FaultKind): Promise<MixedLoad> {
    const hf = await open(fresh.url, { ...fresh.options, logger: silentLogger });
    const load = new MixedLoad(fresh, hf, kind);
    console.log(`mixed load: ${kind}, HOLDFAST_SEED=${load.#seed}`);
    onTestFinished(async () => {
      await Promise.all(load.#children.map((child) => child[Symbol.asyncDispose]()));
      await hf.close();
    });
    return load;
  }

  get #children(): NodeProcess[] {
    return [...this.#workers, ...(this.#producer === null ? [] : [this.#producer])];
  }

  async start(): Promise<void> {
    await this.#hf.queues.set("limited", { concurrency: 2 });
    await this.#hf.budgets.set("api", { limit: 1_000, per: "1s" });
    this.#workers.push(this.#spawn("worker", 1), this.#spawn("worker", 2));
    this.#producer = this.#spawn("producer", 3);
    await Promise.all(this.#children.map((child) => child.message("ready", { deadlineMs: 60_000 })));
    await this.#hf.schedules.put({
      name: "tick",
      cron: "* * * * * *",
      missed: "all",
      job: "tick",
      input: {},
    });
    writeFileSync(this.#while, "");
  }

  #spawn(role: MixedSpec["role"], n: number): NodeProcess {
    const { url, options } = this.#fresh;
    const spec: MixedSpec = { url, options, log: this.#log, role, while: this.#while };
    const faults: FaultSpec = {
      kind: this.#kind,
      seed: this.#seed + n * 1_000_000,
      rate: 0.02,
      while: this.#while,
      log: this.#faultLog,
    };
    return spawnNode("test/fault/children/mixed.ts", [JSON.stringify(spec)], {
      NODE_OPTIONS: `--import=${new URL("children/faulty.ts", import.meta.url).href}`,
      HOLDFAST_FAULTS: JSON.stringify(faults),
    });
  }

  /** The last fault has happened. */
  calm(): void {
    rmSync(this.#while);
  }

  /** Everything has ended, within the deadline: nothing waits, runs or is counted. */
  async ended(): Promise<void> {
    const until = performance.now() + deadlineMs;
    const account = await this.#producer!.message("account", { deadlineMs });
    this.#account = account as unknown as MixedAccount;
    await this.#hf.schedules.pause("tick");
    let left: Record<string, unknown> = {};
    const isOver = async (): Promise<boolean> => {
      left = await this.#left();
      return Object.keys(left).length === 0;
    };
    try {
      await waitFor(isOver, {
        what: "everything to end",
        deadlineMs: until - performance.now(),
        everyMs: 200,
      });
      const tookMs = Math.round(performance.now() - until + deadlineMs);
      console.log(`${lines(this.#faultLog).length} faults; everything ended ${tookMs} ms after the last`);
    } catch (error) {
      const { jobs } = await this.#hf.jobs.list({ state: ["ready", "scheduled", "waiting", "running"] });
      const whys = await Promise.all(jobs.slice(0, 5).map(({ id }) => this.#hf.jobs.why(id)));
      const text = `${String(error)}\n${JSON.stringify(left)}\n${JSON.stringify(whys, null, 1)}\n${this.report()}`;
      throw new Error(text, { cause: error });
    }
  }

  /** The rows and counts that must be gone, and are not. */
  async #left(): Promise<Record<string, unknown>> {
    const fresh = this.#fresh;
    const left: Record<string, unknown> = {};
    const tables = ["ready", "claim", "signal", "unique_key", "uncounted_job", "cancel"].map((name) => [
      name,
      "",
    ]);
    const open = "where state = 'open' and kind <> 'sleep'";
    const conditions = [
      ...tables,
      ["step", open],
      ["dependency", "where state is null"],
      ["budget", "where chunks is not null and chunks not in ('[]', '{}')"],
      ["queue", "where running < 0"],
    ];
    for (const [name, where] of conditions) {
      const [row] = await fresh.query(`select count(*) as n from ${fresh.table(name!)} ${where}`);
      if (Number(row!["n"]) !== 0) left[name!] = Number(row!["n"]);
    }
    const lanes = await laneCounts(this.#fresh);
    const queues = await queueCounts(this.#fresh);
    if (lanes.some((n) => n !== 0)) left["lanes"] = lanes;
    if (queues.some((n) => n !== 0)) left["queues"] = queues;
    return left;
  }

  /** Everything that is wrong with the record, as sentences. */
  async faults(): Promise<string[]> {
    const { accepted, failures } = this.#account!;
    const found = [...failures];
    const notes = lines<MixedNote>(this.#log);
    const runs = new Map<string, number>();
    for (const { event, name, job, part } of notes) {
      const run = `${event} of ${name} ${job} ${name === "workflow" ? part : ""}`;
      runs.set(run, (runs.get(run) ?? 0) + 1);
    }
    for (const [run, times] of runs) if (times !== 1) found.push(`${times} times: ${run}`);
    const parts: Record<string, readonly string[]> = { workflow: ["first", "left", "right"] };
    for (const [name, ids] of Object.entries(accepted))
      for (const id of new Set(ids))
        for (const part of parts[name] ?? [""])
          if (!runs.has(`end of ${name} ${id} ${part}`)) found.push(`never: ${name} ${id} ${part}`);

    const { totals } = await this.#hf.stats();
    for (const state of ["dead", "cancelled"] as const)
      if (totals[state] !== 0) found.push(`${totals[state]} jobs are ${state}`);
    for (const { name, job } of notes)
      if (!["tick", "child"].includes(name) && !accepted[name]?.includes(job))
        found.push(`${name} ${job} ran and was never accepted`);
    const kept = await this.#kept();
    for (const [name, ids] of Object.entries(accepted))
      for (const id of new Set(ids)) {
        const job = kept.get(id);
        const state = job?.state ?? "gone";
        if (state !== (name === "fleeting" ? "gone" : "done")) found.push(`${name} ${id} is ${state}`);
        if (job !== undefined && (job.attempt !== 1 || job.crashes !== 0))
          found.push(`${name} ${id} has ${job.attempt} attempts and ${job.crashes} crashes`);
        if (name !== "workflow") continue;
        const { n } = (job?.input ?? {}) as { n?: number };
        if (JSON.stringify(job?.output) !== JSON.stringify({ one: 1, two: 2, called: n }))
          found.push(`workflow ${id} came to ${JSON.stringify(job?.output)}`);
      }
    const children = notes.filter(({ name, event }) => name === "child" && event === "start").length;
    const workflows = accepted["workflow"]?.length ?? 0;
    if (children !== workflows) found.push(`${workflows} workflows called ${children} jobs`);
    found.push(...overlaps(notes), ...(await this.#missedTicks(notes)), ...this.#misfortunes());
    return found.slice(0, 50);
  }

  async #kept(): Promise<Map<string, Job>> {
    const kept = new Map<string, Job>();
    let cursor: string | null = null;
    do {
      const page: JobPage = await this.#hf.jobs.list({
        limit: 500,
        ...(cursor === null ? {} : { cursor }),
      });
      for (const job of page.jobs) kept.set(job.id, job);
      cursor = page.cursor;
    } while (cursor !== null);
    return kept;
  }

  /** Each second of the schedule has one job, and none is left out. */
  async #missedTicks(notes: readonly MixedNote[]): Promise<string[]> {
    const ticks = notes.filter(({ name, event }) => name === "tick" && event === "start");
    const seconds = ticks.map(({ part }) => Number(part) / 1_000).sort((a, b) => a - b);
    const wrong = seconds.filter((second, i) => second !== (seconds[0] ?? 0) + i);
    const counts = (await this.#hf.schedules.get("tick"))?.counts;
    return [
      ...(wrong.length === 0 ? [] : [`occurrences are missing or double: ${seconds.join(", ")}`]),
      ...(counts?.fired === seconds.length && counts.missed === 0 && counts.skipped === 0
        ? []
        : [`${seconds.length} occurrences ran: ${JSON.stringify(counts)}`]),
    ];
  }

  /** Workers that stopped, leases that were lost; and too few faults to show anything. */
  #misfortunes(): string[] {
    const bad = new Set(["lost", "failed", "stopped"]);
    const said = this.#workers.flatMap(({ messages }) => messages.filter(({ type }) => bad.has(type)));
    const faults = lines(this.#faultLog).length;
    return [
      ...said.map((message) => JSON.stringify(message)),
      ...(faults < 20 ? [`only ${faults} faults were injected`] : []),
    ];
  }

  async stop(): Promise<void> {
    for (const child of this.#workers) child.kill("SIGTERM");
    for (const child of this.#children)
      expect(await child.exited, this.report()).toEqual({ code: 0, signal: null });
  }

  /** For whoever reads a failure. */
  report(): string {
    const output = this.#workers.map((child) => child.output.slice(-4_000)).join("\n---\n");
    return `HOLDFAST_SEED=${this.#seed}, ${lines(this.#faultLog).length} faults\n${output}`;
  }
}

function lines<T = unknown>(path: string): T[] {
  if (!existsSync(path)) return [];
  const text = readFileSync(path, "utf8").split("\n");
  return text.filter((line) => line.endsWith("}")).map((line) => JSON.parse(line) as T);
}

/** Limits that were exceeded: more runs of a queue, a lane or a unique key at once than there are places. */
function overlaps(notes: readonly MixedNote[]): string[] {
  const running = new Map<string, number>();
  const found = new Set<string>();
  for (const { event, of } of notes.toSorted((a, b) => a.at - b.at)) {
    if (of === null) continue;
    const now = (running.get(of) ?? 0) + (event === "start" ? 1 : -1);
    running.set(of, now);
    if (now > (most.get(of) ?? 1)) found.add(`${now} runs at once: ${of}`);
  }
  return [...found];
}
