/** Worker processes, as a scenario sees them: start, count, stop. */
import { fork, type ChildProcess } from "node:child_process";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Target } from "./adapter.ts";
import { Tally } from "./measure.ts";
import type { Answer, Order, Report } from "./worker.ts";

export interface WorkOrder {
  /** How long a job takes; 0: it does nothing. */
  readonly jobMs?: number;
  /** Tell of each job at once, for `ran`. */
  readonly each?: boolean;
  /** Keep every job's latency. */
  readonly latencies?: boolean;
  readonly markEvery?: number;
  /** Tell at once when so many have run, and not with the next count (every 10 ms). */
  readonly tellAt?: number;
}

// Nothing ran for so long though jobs are left: slower than any system's poll.
const stallMs = 45_000;

interface Process {
  readonly child: ChildProcess;
  count: number;
  report: Report | undefined;
}

export class Workers {
  /** Called for each job when `each` is on. */
  ran: (n: number, latencyUs: number) => void = () => {};
  #processes: Process[] = [];
  #failure: Error | undefined;
  #waiting: (() => void)[] = [];

  /** Starts `count` processes with the system open in each. */
  static async open(system: string, target: Target, count: number): Promise<Workers> {
    const workers = new Workers();
    for (let index = 0; index < count; index++) workers.#fork();
    await workers.#everyone({ kind: "open", system, target }, "opened");
    return workers;
  }

  /** Lets them work. Resolves when all of them claim. */
  async work(order: WorkOrder = {}): Promise<void> {
    const { jobMs = 0, each = false, latencies = false, markEvery = 0, tellAt = 0 } = order;
    await this.#everyone({ kind: "work", jobMs, each, latencies, markEvery, tellAt }, "working");
  }

  /** Jobs run so far, at most 10 ms old. */
  get count(): number {
    return this.#processes.reduce((sum, { count }) => sum + count, 0);
  }

  /** Waits for that many jobs to have run. */
  async reached(count: number, timeoutMs: number, progress?: (count: number) => void): Promise<void> {
    const deadline = performance.now() + timeoutMs;
    let last = { count: this.count, at: performance.now() };
    while (this.count < count) {
      if (this.#failure) throw this.#failure;
      if (this.count !== last.count) last = { count: this.count, at: performance.now() };
      if (performance.now() - last.at > stallMs)
        throw new Error(`WRONG: stalled at ${this.count} of ${count} jobs`);
      const left = deadline - performance.now();
      if (left <= 0) throw new Error(`${this.count} of ${count} jobs ran within ${timeoutMs / 1000} s`);
      await Promise.race([
        new Promise<void>((resolve) => this.#waiting.push(resolve)),
        sleep(Math.min(left, 200)),
      ]);
      progress?.(this.count);
    }
  }

  /** Ends them and puts together what ran. */
  async stop(): Promise<{ tally: Tally; reports: Report[] }> {
    await this.#everyone({ kind: "stop" }, "report");
    const reports = this.#processes.map(({ report }) => report!);
    const tally = new Tally();
    for (const { count, doubles, bits } of reports) tally.merge(Tally.of(count, doubles, bits));
    return { tally, reports };
  }

  /** Ends them at once; nothing if they have ended. */
  kill(): void {
    for (const { child } of this.#processes) child.kill("SIGKILL");
  }

  #fork(): void {
    const child = fork(join(import.meta.dirname, "worker.ts"), {
      stdio: ["ignore", "ignore", "inherit", "ipc"],
    });
    const process: Process = { child, count: 0, report: undefined };
    child.on("message", (answer: Answer) => {
      if (answer.kind === "count") {
        process.count = answer.count;
        this.#wake();
      } else if (answer.kind === "ran") this.ran(answer.n, answer.latencyUs);
      else if (answer.kind === "report") process.report = answer.report;
      else if (answer.kind === "failed") this.#fail(new Error(answer.error));
    });
    child.once("exit", (code) => {
      if (process.report === undefined) this.#fail(new Error(`a worker process ended with ${code}`));
    });
    this.#processes.push(process);
  }

  #fail(error: Error): void {
    this.#failure ??= error;
    this.#wake();
  }

  #wake(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }

  /** Sends an order to all and waits for that answer of all. */
  async #everyone(order: Order, kind: Answer["kind"]): Promise<void> {
    const answers = this.#processes.map(
      ({ child }) =>
        new Promise<void>((resolve, reject) => {
          child.on("message", (answer: Answer) => {
            if (answer.kind === kind) resolve();
            else if (answer.kind === "failed") reject(new Error(answer.error));
          });
          child.once("exit", (code) => reject(new Error(`a worker process ended with ${code}`)));
        }),
    );
    for (const { child } of this.#processes) child.send(order);
    await Promise.all(answers);
  }
}
