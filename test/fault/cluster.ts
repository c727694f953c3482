// Worker processes on one store, and the record of what they did.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { type Holdfast, open, silentLogger, type WorkOptions } from "../../src/index.ts";
import { temporaryDirectory } from "../support/guard.ts";
import { type NodeProcess, spawnNode, waitFor } from "../support/process.ts";
import type { WorkerSpec } from "./children/worker.ts";

export interface Place {
  readonly url: string;
  readonly options?: { readonly schema?: string };
}

export interface Note {
  readonly event: "start" | "end" | "lost";
  readonly job: string;
  readonly token: number;
  readonly attempt: number;
  readonly pid: number;
  readonly at: number;
}

export class Cluster {
  readonly place: Place;
  readonly hf: Holdfast;
  readonly log = join(temporaryDirectory("fault"), "events.jsonl");
  readonly killed = new Set<number>();
  /** What processes that are started from here on have in their environment besides. */
  env: Readonly<Record<string, string>> = {};
  readonly #children = new Set<NodeProcess>();

  private constructor(place: Place, hf: Holdfast) {
    this.place = place;
    this.hf = hf;
  }

  /** A client of this process's own, and everything ended after the test. */
  static async on(place: Place): Promise<Cluster> {
    const hf = await open(place.url, { ...place.options, logger: silentLogger });
    const cluster = new Cluster(place, hf);
    onTestFinished(async () => {
      await cluster.end();
      await hf.close();
    });
    return cluster;
  }

  /** Ends every process that was started here. */
  async end(): Promise<void> {
    await Promise.all([...this.#children].map((child) => child[Symbol.asyncDispose]()));
  }

  /** Starts a worker process; resolves when it is ready. */
  async worker(work: WorkOptions, place: Place = this.place): Promise<NodeProcess> {
    const child = this.start(work, place);
    await child.message("ready", { deadlineMs: 60_000 });
    return child;
  }

  start(work: WorkOptions, place: Place = this.place, more: Partial<WorkerSpec> = {}): NodeProcess {
    const spec: WorkerSpec = { url: place.url, options: place.options ?? {}, log: this.log, work, ...more };
    const child = spawnNode("test/fault/children/worker.ts", [JSON.stringify(spec)], this.env);
    this.#children.add(child);
    return child;
  }

  async kill(child: NodeProcess): Promise<void> {
    this.killed.add(child.pid);
    child.kill("SIGKILL");
    await child.exited;
  }

  /** Enqueues `count` jobs that take `ms` each; gives their ids. */
  async naps(count: number, ms: number): Promise<string[]> {
    const ids: string[] = [];
    for (let done = 0; done < count; done += 500) {
      const items = Array.from({ length: Math.min(500, count - done) }, () => ({
        job: "nap",
        input: { ms },
      }));
      ids.push(...(await this.hf.enqueueMany(items)).map(({ id }) => id));
    }
    return ids;
  }

  notes(): Note[] {
    if (!existsSync(this.log)) return [];
    const lines = readFileSync(this.log, "utf8").split("\n");
    return lines.filter((line) => line.endsWith("}")).map((line) => JSON.parse(line) as Note);
  }

  starts(id: string): Note[] {
    return this.notes().filter(({ event, job }) => event === "start" && job === id);
  }

  async allDone(count: number, deadlineMs: number): Promise<void> {
    try {
      const what = `${count} jobs to be done`;
      const done = async (): Promise<boolean> => (await this.hf.jobs.count({ state: "done" })) === count;
      await waitFor(done, { what, deadlineMs, everyMs: 100 });
    } catch (error) {
      const totals = JSON.stringify((await this.hf.stats()).totals);
      const output = [...this.#children].map((child) => child.output.slice(-2_000)).join("\n---\n");
      throw new Error(`${String(error)} ${totals}\n${output}`, { cause: error });
    }
  }

  /**
   * What is wrong with the record, as sentences; empty when all is well: each job is done once in the store, its tokens
   * rise, nothing runs after its end was written, and it ran more than once only where a death, or a lease that
   * its holder knows to have lost, explains it.
   */
  async faults(ids: readonly string[]): Promise<string[]> {
    const faults: string[] = [];
    const byJob = new Map<string, Note[]>(ids.map((id) => [id, []]));
    for (const note of this.notes()) {
      const notes = byJob.get(note.job);
      if (notes === undefined) faults.push(`${note.job} ran and was never accepted`);
      else notes.push(note);
    }
    for (const id of ids) {
      const job = await this.hf.jobs.get(id);
      const notes = byJob.get(id) ?? [];
      faults.push(...this.#faultsOf(id, job?.state, job?.output, notes));
    }
    return faults;
  }

  #faultsOf(id: string, state: string | undefined, output: unknown, notes: readonly Note[]): string[] {
    const faults: string[] = [];
    if (state !== "done") faults.push(`${id} is ${state ?? "gone"}`);
    const starts = notes.filter(({ event }) => event === "start").sort((x, y) => x.token - y.token);
    const ends = notes.filter(({ event, token }) => event === "end" && token === output);
    if (ends.length !== 1) faults.push(`${id}: the end in the store has ${ends.length} runs that came to it`);
    if (new Set(starts.map(({ token }) => token)).size < starts.length)
      faults.push(`${id}: one token ran twice`);
    if (starts.at(-1)?.token !== output) faults.push(`${id} ran again after its end was written`);
    for (const { pid, token } of starts.slice(0, -1)) {
      const knows = notes.some((note) => note.event === "lost" && note.token === token);
      if (!this.killed.has(pid) && !knows)
        faults.push(`${id} ran twice, and ${pid} that ran it first had not died`);
    }
    return faults;
  }
}
