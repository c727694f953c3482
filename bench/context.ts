/**
 * What a scenario has at hand: the system, sizes, fresh databases, counters, and the steps that all of them share
 * (fill, analyze, drain with its check).
 *
 * Invariant: no rate is reported of jobs that were lost or ran twice: that fails the run.
 */
import { execFile } from "node:child_process";
import { rmSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import pg from "pg";
import type { AddOptions, Client, Mode, Payload, System, Target } from "./adapter.ts";
import { microseconds } from "./adapter.ts";
import { flush } from "./adapters/redis.ts";
import { type Counters, difference, ServerCounters } from "./measure.ts";
import type { Report } from "./worker.ts";
import { type WorkOrder, Workers } from "./workers.ts";

/** Names of figures with their values: rates in jobs/s, times in ms, bytes, counts. */
export type Figures = Record<string, number>;

export interface Sizes {
  /** Jobs of a bulk enqueue and of a drain. */
  readonly jobs: number;
  /** Rows that stand in the way in the scale curves, and jobs of the memory test. */
  readonly many: number;
  /** Jobs drained beside them. */
  readonly beside: number;
  /** Seconds of each enqueue measurement. */
  readonly enqueueSeconds: number;
  readonly latencySamples: number;
  readonly latencySeconds: number;
  readonly idleSeconds: number;
  readonly steadySeconds: number;
  readonly snapshotJobs: number;
  readonly snapshotSeconds: number;
}

export interface Servers {
  readonly postgresUrl: string;
  readonly redisUrls: Readonly<Partial<Record<"redis-everysec" | "redis-always", string>>>;
  /** For SQLite files. */
  readonly directory: string;
}

export interface DrainResult {
  readonly rate: number;
  /** From the order to work to the first job. */
  readonly startMs: number;
  readonly counters: Counters | undefined;
  readonly reports: readonly Report[];
  /** What all cores worked and how long all of them idled, in ms, whoever it was for: the database, Node and the kernel. */
  readonly machine: { readonly busyMs: number; readonly idleMs: number };
}

function machineTimes(): { busyMs: number; idleMs: number } {
  let [busyMs, idleMs] = [0, 0];
  for (const { times } of cpus()) {
    busyMs += times.user + times.nice + times.sys + times.irq;
    idleMs += times.idle;
  }
  return { busyMs, idleMs };
}

const patienceMs = 600_000;
const text = (bytes: number): string => "x".repeat(Math.max(0, bytes - 40));

export class Context {
  readonly system: System;
  readonly sizes: Sizes;
  readonly servers: Servers;
  readonly progress: (text: string) => void;
  #counters: ServerCounters | undefined;
  #undo: (() => Promise<void> | void)[] = [];
  static #serial = 0;

  constructor(system: System, sizes: Sizes, servers: Servers, progress: (text: string) => void) {
    this.system = system;
    this.sizes = sizes;
    this.servers = servers;
    this.progress = progress;
  }

  /** A size, as many as suits the system's speed. */
  scaled(jobs: number): number {
    return Math.max(100, Math.round(jobs * this.system.factor));
  }

  can(feature: NonNullable<System["can"]>[number]): boolean {
    return this.system.can?.includes(feature) === true;
  }

  /** A new, empty database with the system's schema. */
  async fresh(mode: Mode, queues = 1): Promise<Target> {
    const target = { url: await this.#freshUrl(), mode, queues };
    await this.system.setup?.(target);
    return target;
  }

  async open(target: Target): Promise<Client> {
    const client = await this.system.open(target);
    this.#undo.push(() => client.close());
    return client;
  }

  async workers(target: Target, count: number): Promise<Workers> {
    const workers = await Workers.open(this.system.id, target, count);
    this.#undo.push(() => workers.kill());
    return workers;
  }

  /** Counters of the database that `fresh` gave last; undefined off Postgres. */
  async counters(): Promise<Counters | undefined> {
    return this.#counters?.read();
  }

  async since(before: Counters | undefined): Promise<Counters | undefined> {
    const now = await this.counters();
    return before && now && difference(now, before);
  }

  /** Jobs first … first+count-1 through the bulk path; gives jobs/s. */
  async fill(
    client: Client,
    count: number,
    options: AddOptions & { first?: number; bytes?: number } = {},
  ): Promise<number> {
    const { first = 0, bytes = 110, ...add } = options;
    const given = Object.keys(add).length === 0 ? undefined : add;
    const { inFlight } = this.system.bulk;
    // A chunk of large payloads would be one statement of many megabytes.
    const chunk = Math.max(1, Math.min(this.system.bulk.chunk, Math.floor(8_000_000 / bytes)));
    const filler = text(bytes);
    let next = first;
    const end = first + count;
    const started = performance.now();
    const lane = async (): Promise<void> => {
      while (next < end) {
        const from = next;
        next = Math.min(end, next + chunk);
        const jobs: Payload[] = [];
        for (let n = from; n < next; n++) jobs.push({ n, at: microseconds(), text: filler });
        await client.addMany(jobs, given);
        this.progress(`filling ${next - first}/${count}`);
      }
    };
    await Promise.all(Array.from({ length: inFlight }, lane));
    return count / ((performance.now() - started) / 1000);
  }

  /** Statistics for the planner, for every system alike: without them graphile-worker runs at half its speed. */
  async analyze(target: Target): Promise<void> {
    this.progress("analyzing");
    if (this.system.store === "postgres") {
      const client = new pg.Client({ connectionString: target.url });
      await client.connect();
      await client.query("vacuum (analyze)");
      await client.end();
    } else if (this.system.store === "sqlite") {
      // In a process of its own: two SQLite libraries in one process (node:sqlite here, better-sqlite3 in a peer's
      // adapter) drop each other's POSIX locks on the file when one closes it, and the database is corrupt (seen).
      const script = `const d = new (require("node:sqlite").DatabaseSync)(process.argv[1], { timeout: 10000 }); d.exec("analyze"); d.close()`;
      await promisify(execFile)(process.execPath, ["-e", script, target.url]);
    }
  }

  /**
   * Drains the jobs 0 … count-1 in so many processes. The clock runs from the start of the first job (how long a
   * worker takes to start is another figure) until the database says that nothing is left: an acknowledgement that is
   * not on disk is no end. Fails if a job was lost or ran twice.
   */
  async drain(
    client: Client,
    target: Target,
    count: number,
    processes = 1,
    order: WorkOrder = {},
  ): Promise<DrainResult> {
    const workers = await this.workers(target, processes);
    const before = await this.counters();
    const machineBefore = machineTimes();
    const ordered = microseconds();
    const working = workers.work({ tellAt: count, ...order });
    await workers.reached(count, patienceMs, (done) => this.progress(`draining ${done}/${count}`));
    const ended = await this.#emptied(client);
    const { busyMs, idleMs } = machineTimes();
    const machine = { busyMs: busyMs - machineBefore.busyMs, idleMs: idleMs - machineBefore.idleMs };
    const counters = await this.since(before);
    await working;
    const { tally, reports } = await workers.stop();
    const missing = tally.missing(count);
    if (missing > 0 || tally.doubles > 0 || tally.count !== count) {
      throw new Error(
        `WRONG: of ${count} jobs ${missing} never ran, ${tally.doubles} ran twice, ${tally.count} runs in all`,
      );
    }
    const first = Math.min(...reports.map(({ firstAt }) => firstAt || Infinity));
    const seconds = (ended - first) / 1_000_000;
    return { rate: count / seconds, startMs: (first - ordered) / 1000, counters, reports, machine };
  }

  /**
   * Drains until `count` jobs have run, whatever else is queued, and gives the rate up to there. Only doubles can be
   * checked.
   */
  async drainFirst(target: Target, count: number): Promise<number> {
    const workers = await this.workers(target, 1);
    const markEvery = Math.max(1, Math.floor(count / 100));
    const working = workers.work({ markEvery, tellAt: count });
    await workers.reached(count, patienceMs, (done) => this.progress(`draining ${done}/${count}`));
    await working;
    const { tally, reports } = await workers.stop();
    if (tally.doubles > 0) throw new Error(`WRONG: ${tally.doubles} jobs ran twice`);
    const mark = reports[0]!.marks.find(([done]) => done >= count) ?? reports[0]!.marks.at(-1)!;
    return mark[0] / ((mark[1] - reports[0]!.firstAt) / 1_000_000);
  }

  /** When the database says that nothing is left: the start of the look that says so, since it saw that instant. */
  async #emptied(client: Client): Promise<number> {
    const deadline = performance.now() + 60_000;
    for (;;) {
      const looked = microseconds();
      if (await client.empty()) return looked;
      if (performance.now() > deadline)
        throw new Error("WRONG: every job ran, but jobs are left in the database");
      await sleep(2);
    }
  }

  /** Everything that was opened is closed, every database dropped. Faults in that change no figure. */
  async dispose(): Promise<void> {
    for (const undo of this.#undo.reverse()) {
      await Promise.race([Promise.resolve(undo()).catch(() => {}), sleep(15_000, undefined, { ref: false })]);
    }
    this.#undo = [];
  }

  async #freshUrl(): Promise<string> {
    const { store } = this.system;
    const name = `bench_${process.pid}_${Context.#serial++}`;
    if (store === "sqlite") {
      const file = join(this.servers.directory, `${name}.db`);
      this.#undo.push(() => {
        for (const end of ["", "-wal", "-shm"]) rmSync(file + end, { force: true });
      });
      return file;
    }
    if (store === "postgres") {
      const admin = new pg.Client({ connectionString: this.servers.postgresUrl });
      admin.on("error", () => {});
      await admin.connect();
      await admin.query(`create database ${name}`);
      const counters = await ServerCounters.open(this.servers.postgresUrl, name);
      this.#counters = counters;
      this.#undo.push(async () => {
        await counters.close();
        await admin.query(`drop database ${name} with (force)`);
        await admin.end();
      });
      const url = new URL(this.servers.postgresUrl);
      url.pathname = `/${name}`;
      return url.href;
    }
    const url = this.servers.redisUrls[store];
    if (url === undefined) throw new Error(`no ${store} server`);
    await flush(url);
    return url;
  }
}
