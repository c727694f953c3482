// Several clients of one database in one fake time, each behind a tap: every call that its store gets can be
// counted, delayed, failed or never answered. What the wire and the power plug do to a process, without either.
//
//   const world = await newWorld(target);
//   const [a, b] = [await world.client(), await world.client()];
//   a.tap.around = (verb, call) => (verb === "renew" ? lost() : call());
//   await world.advance("10s");             // in small steps, each waiting for the database's answers
//   a.tap.kill();                           // as SIGKILL: nothing of this client reaches or hears the database again
//
// Wake-ups pass through the world, at once: those of the stores take real time, of which a fake second has little.
import { setImmediate as nextTurn } from "node:timers/promises";
import { onTestFinished } from "vitest";
import { type AnyJob, type CommonJobOptions, defineJob } from "../../src/jobs/define-job.ts";
import type { JobContext } from "../../src/worker/context.ts";
import { StoreError } from "../../src/errors.ts";
import { Emitter, type EventName, type HoldfastEvents } from "../../src/events.ts";
import { Holdfast } from "../../src/holdfast.ts";
import type { Job } from "../../src/jobs/job.ts";
import type { Logger } from "../../src/logger.ts";
import { checkOpenOptions, type OpenOptions } from "../../src/open-options.ts";
import { type Duration, durationMs } from "../../src/values/duration.ts";
import type { Driver } from "../../src/storage/driver.ts";
import { openStore } from "../../src/storage/open.ts";
import { SqlStore } from "../../src/storage/sql-store.ts";
import type { SessionInfo } from "../../src/lease/store.ts";
import type { Store } from "../../src/storage/store.ts";
import type { Wake } from "../../src/storage/wake.ts";
import { FakeClock } from "../../src/testing/fake-clock.ts";
import type { Worker, WorkOptions } from "../../src/worker/worker.ts";
import { between, bound, type Verb } from "./store-parts.ts";
import type { FreshStore, StoreTarget } from "./stores.ts";

export type { Verb };
export type Around = (verb: Verb, call: () => Promise<unknown>, args: readonly unknown[]) => Promise<unknown>;

export interface LogLine {
  readonly level: keyof Logger;
  readonly message: string;
  readonly details: Record<string, unknown>;
}

export interface Client {
  readonly hf: Holdfast;
  readonly tap: Tap;
  readonly log: LogLine[];
  /** What this client's process has told, by event. */
  readonly told: <Name extends EventName>(event: Name) => HoldfastEvents[Name][];
  /** Starts a worker; stopped after the test. Resolves when it is ready. */
  readonly work: (definitions: readonly AnyJob[], options?: WorkOptions) => Promise<Worker>;
}

/** Who hears a wake-up. */
type Air = Set<(wake: Wake) => void>;

/** Between a client and its store. */
export class Tap {
  readonly store: Store;
  /** The store itself, past the tap. */
  readonly raw: Store;
  readonly calls = new Map<string, number>();
  /** Set it to come between; it makes the call, or does not. */
  around: Around | null = null;
  /** True: no wake-up reaches this client, and none is proven to. */
  deaf = false;
  /** True: this client's wake-ups are not sent. */
  mute = false;
  killed = false;
  pending = 0;

  readonly #air: Air;
  readonly #answered: () => void;

  /** `answered` is called whenever there is one call less to wait for. */
  constructor(raw: Store, air: Air, answered: () => void) {
    this.raw = raw;
    this.#air = air;
    this.#answered = answered;
    // The store's own verbs send wake-ups too.
    Object.defineProperty(raw, "wake", { configurable: true, value: (wake: Wake) => this.#wake(wake) });
    this.store = between(raw, (verb, value, owner) => this.#get(verb, value, owner));
  }

  count(...verbs: Verb[]): number {
    return verbs.reduce((sum, verb) => sum + (this.calls.get(verb) ?? 0), 0);
  }

  /** For `around`: the answer comes when `when` resolves, which nobody waits for meanwhile; without it, never. */
  async late(when: Promise<unknown> = never()): Promise<void> {
    this.pending -= 1;
    this.#answered();
    await when;
    this.pending += 1;
  }

  /** As SIGKILL: nothing reaches the database any more, and no answer comes back. */
  kill(): void {
    this.killed = true;
    this.#answered();
  }

  #get(verb: Verb, value: unknown, owner: object): unknown {
    if (verb === "listening") return !this.deaf;
    // Where the commit has told the others, that is what they hear.
    if (verb === "wake" || verb === "wakeHere") return (wake: Wake) => this.#wake(wake);
    if (verb === "listen") return (onWake: (wake: Wake) => void) => this.#listen(onWake);
    if (typeof value !== "function" || verb === "userTx") return bound(value, owner);
    const method = value as (...args: unknown[]) => Promise<unknown>;
    return (...args: unknown[]) => this.#call(verb, () => method.apply(owner, args), args);
  }

  #listen(onWake: (wake: Wake) => void): () => void {
    const hear = (wake: Wake): void => {
      if (!this.killed && !this.deaf) onWake(wake);
    };
    this.#air.add(hear);
    return () => void this.#air.delete(hear);
  }

  #wake(wake: Wake): void {
    if (this.killed || this.mute) return;
    for (const hear of this.#air) hear(wake);
  }

  async #call(verb: Verb, call: () => Promise<unknown>, args: readonly unknown[]): Promise<unknown> {
    if (this.killed) return never();
    this.calls.set(verb, this.count(verb) + 1);
    this.pending += 1;
    try {
      const answer = await (this.around === null ? call() : this.around(verb, call, args));
      if (!this.killed) return answer;
    } catch (error) {
      if (!this.killed) throw error;
    } finally {
      this.pending -= 1;
      this.#answered();
    }
    return never();
  }
}

/** An answer that does not come. */
function never(): Promise<never> {
  return new Promise(() => {});
}

export class World {
  readonly clock: FakeClock;
  readonly fresh: FreshStore;
  /** The environment variables of every client's process. */
  readonly env: Record<string, string> = {};
  readonly #air: Air = new Set();
  /** Who waits for an answer of the database's. */
  readonly #waiting = new Set<() => void>();
  readonly #clients: { hf: Holdfast; tap: Tap; workers: Worker[] }[] = [];

  /** A driver of the clock's, where one is given, is shared by all clients, and outlives them. */
  readonly #driver: Driver | null;

  constructor(fresh: FreshStore, clock: FakeClock = new FakeClock(), driver: Driver | null = null) {
    this.fresh = fresh;
    this.clock = clock;
    this.#driver = driver;
  }

  /** Another process, as far as the database can tell. */
  async client(options: OpenOptions = {}): Promise<Client> {
    const log: LogLine[] = [];
    const line =
      (level: keyof Logger) =>
      (details: Record<string, unknown>, message: string): void =>
        void log.push({ level, message, details });
    const logger = { debug: line("debug"), info: line("info"), warn: line("warn"), error: line("error") };
    const { client, store: settings } = checkOpenOptions({ logger, ...this.fresh.options, ...options });
    const clock = this.clock;
    const random = (): number => 0.5;
    const events = new Emitter((error, event) => logger.error({ error, event }, "a listener failed"));
    const raw =
      this.#driver === null
        ? await openStore(this.fresh.url, { ...settings, clock, random })
        : new SqlStore(this.#driver);
    const tap = new Tap(raw, this.#air, () => this.#answered());
    const hostId = `host-${this.#clients.length}`;
    const machine = { clock, random, host: "host", pid: 1, hostId, cpus: 4, env: this.env };
    const hf = new Holdfast(tap.store, client, machine, events);
    await hf.prepare();
    const workers: Worker[] = [];
    this.#clients.push({ hf, tap, workers });
    const heard = new Map<EventName, unknown[]>();
    return {
      hf,
      tap,
      log,
      told: <Name extends EventName>(event: Name) => {
        let list = heard.get(event);
        if (list === undefined) {
          const fresh: unknown[] = [];
          heard.set(event, (list = fresh));
          hf.on(event, (what) => fresh.push(what));
        }
        return list as HoldfastEvents[Name][];
      },
      work: async (definitions, workOptions) => {
        const worker = hf.work(definitions, workOptions);
        workers.push(worker);
        await this.finish(worker.ready);
        return worker;
      },
    };
  }

  /** Time passes, in small steps; after each the database's answers are waited for, as they would have come in time. */
  async advance(by: Duration, step: Duration = 100): Promise<void> {
    let leftMs = durationMs(by, "advance");
    const stepMs = durationMs(step, "step");
    await this.quiet();
    while (leftMs > 0) {
      const ms = Math.min(stepMs, leftMs);
      await this.clock.advance(ms);
      await this.quiet();
      leftMs -= ms;
    }
  }

  /** Waits until no client waits for the database, and what its answers led to has come about. */
  async quiet(): Promise<void> {
    for (let calm = 0; calm < 4;) {
      await nextTurn();
      const busy = this.#clients.some(({ tap }) => tap.pending > 0 && !tap.killed);
      calm = busy ? 0 : calm + 1;
      // Asleep: one that looks again and again takes the core that the database needs for its answer.
      if (busy) await new Promise<void>((resolve) => this.#waiting.add(resolve));
    }
  }

  #answered(): void {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const wake of waiting) wake();
  }

  /** Lets time pass until it is so; fails after `within` of fake time. */
  async until(
    what: string,
    condition: () => unknown,
    within: Duration = "60s",
    step: Duration = 100,
  ): Promise<void> {
    const endAt = this.clock.monotonic() + durationMs(within, "within");
    for (;;) {
      await this.quiet();
      if (await condition()) return;
      if (this.clock.monotonic() >= endAt) throw new Error(`Not within ${within} of fake time: ${what}`);
      await this.clock.advance(step);
    }
  }

  /** Lets time pass until the promise settles. */
  async finish<T>(promise: Promise<T>, within: Duration = "5m"): Promise<T> {
    let settled = false;
    void Promise.allSettled([promise]).then(() => (settled = true));
    await this.until("a promise to settle", () => settled, within);
    return promise;
  }

  /** The row of a job that has not ended, as it is in the table. */
  async readyRow(id: string): Promise<Record<string, unknown> | undefined> {
    const { jobKey, jobKeyOf } = this.fresh;
    return (
      await this.fresh.query(
        `select *${this.fresh.idIn("ready")} from ${this.fresh.table("ready")} where ${jobKey} = ${jobKeyOf("?")}`,
        [id],
      )
    )[0];
  }

  /** Rows of jobs that exist. On Postgres a deleted job leaves an empty row for an hour. */
  async jobs(): Promise<Record<string, unknown>[]> {
    const { fresh } = this;
    const states = ["ready", "history"].map((table) => `select ${fresh.jobKey} from ${fresh.table(table)}`);
    return fresh.query(
      `select * from ${fresh.table("job")} where ${fresh.jobKey} in (${states.join(" union all ")})`,
    );
  }

  async rows(table: string): Promise<Record<string, unknown>[]> {
    return this.fresh.query(`select *${this.fresh.idIn(table)} from ${this.fresh.table(table)} order by 1`);
  }

  async dispose(): Promise<void> {
    await this.closeClients();
    await this.fresh.dispose();
  }

  async closeClients(): Promise<void> {
    for (const { hf, tap, workers } of this.#clients) {
      tap.around = null;
      if (tap.killed) {
        await tap.raw.close();
        continue;
      }
      await this.finish(Promise.allSettled(workers.map((worker) => worker.stop({ timeout: 0 }))));
      await this.finish(hf.close());
    }
  }
}

/** A new database and fake time; disposed of after the test. */
export async function newWorld(target: StoreTarget, clock?: FakeClock): Promise<World> {
  const world = new World(await target.migrated(), clock);
  onTestFinished(() => world.dispose());
  return world;
}

/** As the driver says it when the wire is cut. */
export function lost(): Promise<never> {
  return Promise.reject(new StoreError("CONNECTION_LOST", "cut by the test"));
}

export interface Run<Input> {
  readonly input: Input;
  readonly ctx: JobContext;
  /** When it started, by the fake wall clock. */
  readonly at: number;
  finish(output?: unknown): void;
  fail(error: unknown): void;
}

type Options = Omit<Partial<CommonJobOptions<string, { n: number }>>, "name">;

/** A job whose runs go on until the test ends them. */
export function heldJob(world: World, name = "held", options: Options = {}) {
  const runs: Run<{ n: number }>[] = [];
  const job = defineJob({
    name,
    ...options,
    run: (input: { n: number }, ctx) =>
      new Promise<unknown>((resolve, reject) => {
        runs.push({ input, ctx, at: world.clock.now(), finish: resolve, fail: reject });
      }),
  });
  return { job, runs };
}

/** A job that is done at once, and remembers its runs. */
export function quickJob(world: World, name = "quick", options: Options = {}) {
  const runs: { n: number; attempt: number; at: number }[] = [];
  const job = defineJob({
    name,
    ...options,
    run: (input: { n: number }, ctx) => {
      runs.push({ n: input.n, attempt: ctx.attempt, at: world.clock.now() });
      return input.n;
    },
  });
  return { job, runs };
}

export async function jobOf(client: Client, id: string): Promise<Job> {
  const job = await client.hf.jobs.get(id);
  if (job === null) throw new Error(`No job ${id}`);
  return job;
}

/** A session's description, for tests that talk to the store itself. */
export function sessionInfo(change: Partial<SessionInfo> = {}): SessionInfo {
  return {
    kind: "worker",
    workerId: "w",
    name: "w",
    host: "host",
    pid: 1,
    queues: { default: 10 },
    names: ["quick"],
    leaseMs: 30_000,
    version: "0",
    ...change,
  };
}
