/**
 * One run of the simulator: a seed in, a history and its violations out.
 *
 * A run has three parts: clients enqueue and operate while faults occur; an operator undoes pauses and holds; the rest must end by itself
 * within a bound. The real client, worker, store and statements run over SQLite in memory.
 */
import { DatabaseSync } from "node:sqlite";
import { StoreError } from "../../src/errors.ts";
import { Emitter } from "../../src/events.ts";
import { Holdfast } from "../../src/holdfast.ts";
import { silentLogger } from "../../src/logger.ts";
import { checkOpenOptions } from "../../src/open-options.ts";
import { SqliteDriver } from "../../src/storage/sqlite/driver.ts";
import { SqlStore } from "../../src/storage/sql-store.ts";
import type { Worker } from "../../src/worker/worker.ts";
import { check } from "./checker.ts";
import type { Entry, FinalJob, FinalState, RowChange } from "./history.ts";
import { definitionsFor, limitedQueue, type Outside, workQueues } from "./programs.ts";
import { Random } from "./random.ts";
import { type FaultKind, type FaultRates, Network, SimulatedDriver } from "./simulated-driver.ts";
import { calmDown, type Operation, operations, resumeJobs, setUp } from "./workload.ts";
import { Process, World } from "./world.ts";

export interface Simulation {
  readonly seed: number;
  readonly violations: readonly string[];
  readonly history: readonly Entry[];
  readonly faults: ReadonlyMap<FaultKind, number>;
  readonly jobs: number;
  readonly events: number;
  readonly simulatedMs: number;
}

export interface SimulationOptions {
  /** Only these kinds of fault; default: a choice by the seed. */
  readonly faults?: readonly FaultKind[];
  readonly log?: (line: string) => void;
}

const faultyMs = 40_000;
/** Everything must have ended this long after the last fault. */
const drainMs = 600_000;

export async function simulate(seed: number, options: SimulationOptions = {}): Promise<Simulation> {
  const random = new Random(seed);
  const world = new World(random.fork());
  const network = new Network(world, random.fork());
  const history: Entry[] = [];
  const outside: Outside = { world, history, starts: new Map() };
  const handle = new DatabaseSync(":memory:");
  const trail = await prepare(handle, world);
  world.afterEvent = () => trail.read(history, world.now);
  const processes = new Processes(handle, world, network, outside, random.fork(), options.log);
  try {
    network.rates = options.faults === undefined ? drawRates(random) : only(options.faults);
    return await play();
  } finally {
    processes.stop();
    handle.close();
  }

  async function play(): Promise<Simulation> {
    const operator = processes.client("operator");
    let ready = false;
    let calm = false;
    let drained = false;
    const plan = operations({ world, history, random: random.fork() }, faultyMs);
    processes.start("operator", operator, async (hf) => {
      await insistently(operator, () => setUp(hf));
      ready = true;
    });
    if (!(await world.run(60_000, () => ready))) return result(["the set-up did not end"]);
    network.faultsUntil = world.now + faultyMs;
    processes.startWorkers(random.integer(2, 3));
    processes.startClients(plan);
    processes.scheduleFaults(network.faultsUntil);
    const startedAt = world.now;
    await world.run(startedAt + faultyMs + 2_000, () => false);
    world.after(operator, 0, () => {
      void insistently(operator, () => calmDown(processes.of(operator), trail.waitingFlows())).then(
        () => (calm = true),
        (error: unknown) => world.crashes.push(error),
      );
    });
    // A pause of a running job takes effect when its handler notices, which may be later than the first resume.
    const resumeAgain = (): void =>
      void world.after(operator, 20_000, () => {
        if (calm) void insistently(operator, () => resumeJobs(processes.of(operator)));
        resumeAgain();
      });
    resumeAgain();
    const bound = world.now + drainMs;
    let checkedAt = -Infinity;
    drained = await world.run(bound, () => {
      if (!calm || world.now - checkedAt < 500) return false;
      checkedAt = world.now;
      return trail.isDrained();
    });
    // Counts are written a moment after the last job has ended.
    if (drained) await world.run(world.now + 30_000, () => false);
    trail.read(history, world.now);
    const final = trail.final(drained);
    if (!drained) await explain(operator);
    return result(
      check(history, final).concat(
        world.crashes.map((error) => `uncaught: ${String((error as Error).stack)}`),
      ),
    );
  }

  /** Tells the log why jobs are left. */
  async function explain(operator: Process): Promise<void> {
    const hf = processes.of(operator);
    let told = false;
    world.after(operator, 0, () => {
      void (async () => {
        const { jobs } = await hf.jobs.list({ state: ["ready", "scheduled", "waiting", "running"] });
        for (const { id, name, state } of jobs.slice(0, 5))
          options.log?.(`left: ${name} ${id} ${state}: ${JSON.stringify(await hf.jobs.why(id))}`);
      })().finally(() => (told = true));
    });
    await world.run(world.now + 60_000, () => told);
  }

  function result(violations: readonly string[]): Simulation {
    const jobs = new Set(history.filter((entry) => entry.what === "row").map(({ id }) => id)).size;
    const { events, now } = world;
    return { seed, violations, history, faults: network.counts, jobs, events, simulatedMs: now };
  }
}

/** Repeats what a person would repeat until it is acknowledged. */
async function insistently(process: Process, act: () => Promise<void>): Promise<void> {
  for (;;) {
    try {
      return await act();
    } catch (error) {
      if (process.alive && isMistake(error)) throw error;
      await process.sleep(500);
    }
  }
}

/** A wrong call stays wrong. */
function isMistake(error: unknown): boolean {
  return !(error instanceof StoreError);
}

/** A few kinds of fault in each run, each rare or frequent. */
function drawRates(random: Random): FaultRates {
  const calls: readonly FaultKind[] = [
    "answerLost",
    "refused",
    "delayed",
    "cut",
    "deadlinePassed",
    "diskFull",
  ];
  const rates: Partial<Record<FaultKind, number>> = {};
  for (const kind of calls) if (random.chance(0.4)) rates[kind] = random.pick([0.005, 0.02, 0.06]);
  for (const kind of ["killedBefore", "killedAfter"] as const) if (random.chance(0.25)) rates[kind] = 0.001;
  for (const kind of ["wakeLost", "wakeLate", "wakeTwice"] as const)
    if (random.chance(0.4)) rates[kind] = random.pick([0.05, 0.3]);
  for (const kind of ["killed", "frozen", "clockStep", "restarted"] as const)
    if (random.chance(0.3)) rates[kind] = random.integer(1, 2);
  return rates;
}

function only(kinds: readonly FaultKind[]): FaultRates {
  return Object.fromEntries(kinds.map((kind) => [kind, kind === "killed" || kind === "frozen" ? 2 : 0.02]));
}

/** The virtual processes, and their end and new start. */
class Processes {
  readonly #handle: DatabaseSync;
  readonly #world: World;
  readonly #network: Network;
  readonly #outside: Outside;
  readonly #random: Random;
  readonly #log: ((line: string) => void) | undefined;
  readonly #clients = new Map<Process, Holdfast>();
  #workers: Process[] = [];
  #started = 0;
  #numbered = 0;

  constructor(
    handle: DatabaseSync,
    world: World,
    network: Network,
    outside: Outside,
    random: Random,
    log: ((line: string) => void) | undefined,
  ) {
    this.#handle = handle;
    this.#world = world;
    this.#network = network;
    this.#outside = outside;
    this.#random = random;
    this.#log = log;
  }

  client(name: string): Process {
    return new Process(name, this.#world);
  }

  of(process: Process): Holdfast {
    const hf = this.#clients.get(process);
    if (hf === undefined) throw new Error(`${process.name} has no client`);
    return hf;
  }

  /** Opens a client in a process, and runs its program. */
  start(name: string, process: Process, program: (hf: Holdfast) => Promise<unknown>): void {
    this.#world.after(process, 0, () => {
      this.#open(name, process)
        .then(program)
        .catch((error: unknown) => {
          this.#log?.(`${name}: ${String(error)}`);
          this.#world.crashes.push(error);
        });
    });
  }

  async #open(name: string, process: Process): Promise<Holdfast> {
    const log = this.#log;
    const logger =
      log === undefined
        ? silentLogger
        : {
            debug: () => {},
            info: () => {},
            warn: (details: object, text: string) => log(`${name} warn ${text} ${JSON.stringify(details)}`),
            error: (details: object, text: string) => log(`${name} error ${text} ${JSON.stringify(details)}`),
          };
    const settings = checkOpenOptions({ logger, retryFor: "20s" });
    const { world } = this;
    const inner = await SqliteDriver.open(this.#handle, {
      schema: "holdfast",
      migrate: true,
      durability: "full",
      unsafeSqlite: false,
      clock: process.clock,
      random: this.#random.next,
      onWarning: (message) => log?.(`${name} warning ${message}`),
      host: { elapsed: () => world.now, boot: () => "simulated", slept: () => 0 },
    });
    const driver = new SimulatedDriver(inner, process, this.#network);
    const events = new Emitter(() => {});
    const number = (this.#started += 1);
    const env = {
      clock: driver.clock,
      machineClock: process.clock,
      random: this.#random.next,
      host: "simulated",
      pid: number,
      hostId: `simulated-${number}`,
      cpus: 2,
      env: {},
    };
    const hf = new Holdfast(new SqlStore(driver), settings.client, env, events);
    this.#clients.set(process, hf);
    // As `open`, a program waits for a database that is away.
    for (;;) {
      try {
        await hf.prepare();
        return hf;
      } catch {
        await process.sleep(200);
      }
    }
  }

  private get world(): World {
    return this.#world;
  }

  startWorkers(count: number): void {
    for (let i = 0; i < count; i++) this.#startWorker();
  }

  #startWorker(): void {
    const process = this.client(`worker-${(this.#numbered += 1)}`);
    this.#workers.push(process);
    const slots = this.#random.integer(1, 6);
    this.start(process.name, process, async (hf) => {
      const worker: Worker = hf.work(definitionsFor(process, this.#outside), {
        queues: Object.fromEntries(workQueues.map((queue) => [queue, slots])),
        lease: "10s",
        heartbeat: "3s",
        name: process.name,
      });
      worker.ready.catch(() => {});
      await worker.stopped;
      this.#log?.(`${process.name} stopped`);
    });
    this.#watch(process);
  }

  /** A killed worker is started anew, as a supervisor would. */
  #watch(process: Process): void {
    const wait = this.#random.between(500, 12_000);
    const look = (): void => {
      if (process.alive) this.#world.after(null, 250, look);
      else this.#world.after(null, wait, () => this.#startWorker());
    };
    this.#world.after(null, 250, look);
  }

  startClients(plan: readonly Operation[]): void {
    const count = this.#random.integer(1, 3);
    for (let i = 0; i < count; i++) {
      let process = this.client(`client ${i + 1}`);
      const mine = plan.filter((_, index) => index % count === i);
      const open = (): void => this.start(process.name, process, () => Promise.resolve());
      open();
      const beginning = this.#world.now;
      for (const { name, at, act } of mine)
        this.#world.after(null, beginning + at - this.#world.now, () => {
          if (!process.alive) {
            process = this.client(process.name);
            open();
          }
          const owner = process;
          const go = (): void => {
            const hf = this.#clients.get(owner);
            if (hf === undefined) return void this.#world.after(owner, 100, go);
            act(hf, owner).catch((error: unknown) => {
              this.#log?.(`${owner.name}: ${name}: ${String(error)}`);
              if (isMistake(error)) this.#world.crashes.push(error);
            });
          };
          this.#world.after(owner, 1, go);
        });
    }
  }

  /** Faults of processes, the clock and the server: at random instants. */
  scheduleFaults(untilMs: number): void {
    const { rates } = this.#network;
    const world = this.#world;
    const random = this.#random;
    const at = (fn: () => void): void =>
      void world.after(null, random.between(0, Math.max(1, untilMs - world.now - 5_000)), fn);
    const victim = (): Process | undefined => random.pick(this.#workers.filter(({ alive }) => alive));
    const times = (kind: FaultKind): number => Math.round(rates[kind] ?? 0);
    for (let i = times("killed"); i > 0; i--)
      at(() => {
        this.#network.counted("killed");
        victim()?.kill();
      });
    for (let i = times("frozen"); i > 0; i--) {
      const ms = random.pick([1_500, 8_000, 25_000]);
      at(() => {
        this.#network.counted("frozen");
        victim()?.freeze(ms);
      });
    }
    for (let i = times("clockStep"); i > 0; i--) {
      const by = random.pick([-60_000, -5_000, 3_000, 3_600_000]);
      at(() => {
        this.#network.counted("clockStep");
        world.stepWall(by);
      });
    }
    for (let i = times("restarted"); i > 0; i--) {
      const ms = random.pick([100, 2_000, 9_000]);
      at(() => this.#network.restart(ms));
    }
  }

  /** Ends everything at once: nothing of it may run after the simulation. */
  stop(): void {
    for (const process of this.#clients.keys()) process.kill();
  }
}

interface Trail {
  read(history: Entry[], at: number): void;
  isDrained(): boolean;
  waitingFlows(): number[];
  final(drained: boolean): FinalState;
}

/** Makes the schema, and the triggers that record every change of a job's row. */
async function prepare(handle: DatabaseSync, world: World): Promise<Trail> {
  const process = new Process("schema", world);
  const driver = await SqliteDriver.open(handle, {
    schema: "holdfast",
    migrate: true,
    durability: "full",
    unsafeSqlite: false,
    clock: process.clock,
    random: () => 0.5,
    onWarning: () => {},
    host: { elapsed: () => world.now, boot: () => "simulated", slept: () => 0 },
  });
  await driver.close();
  handle.exec("pragma journal_mode = memory; pragma synchronous = off; pragma temp_store = memory");
  const note = (change: RowChange, row: string, detail: string): string =>
    `insert into simulated_trail (change, seq, id, key, lane, token, session, detail)
     select '${change}', job.seq, job.id, job.key, job.lane, ${row}.token, ${row}.session, ${detail}
     from holdfast_job job where job.seq = ${row}.seq;`;
  handle.exec(`
    create table simulated_trail (n integer primary key, change text, seq integer, id text, key text, lane text, token integer, session integer, detail text);
    create trigger simulated_born after insert on holdfast_ready begin ${note("born", "new", "null")} end;
    create trigger simulated_claimed after update of token on holdfast_ready when new.token is not null and new.token is not old.token
      begin ${note("claimed", "new", "null")} end;
    create trigger simulated_released after update of token on holdfast_ready when new.token is null and old.token is not null
      begin ${note("released", "old", "null")} end;
    create trigger simulated_left before delete on holdfast_ready begin ${note("left", "old", "null")} end;
    create trigger simulated_ended after insert on holdfast_history begin
      insert into simulated_trail (change, seq, id, key, lane, token, session, detail)
      select 'ended', job.seq, job.id, job.key, job.lane, null, new.session, new.state from holdfast_job job where job.seq = new.seq; end;
    create trigger simulated_step after update on holdfast_step when old.state = 'done' and (new.state <> 'done' or new.output is not old.output)
      begin insert into simulated_trail (change, id, detail) values ('stepChanged', new.job, new.name); end;
    create trigger simulated_step_done after update on holdfast_step when old.state <> 'done' and new.state = 'done'
      begin insert into simulated_trail (change, id, detail) values ('stepDone', new.job, new.name); end;
    create trigger simulated_step_new after insert on holdfast_step when new.state = 'done'
      begin insert into simulated_trail (change, id, detail) values ('stepDone', new.job, new.name); end;
  `);
  const names = handle.prepare(
    `select job.id, job_type.name, job_type.queue from holdfast_job job join holdfast_job_type job_type on job_type.id = job.job_type where job.id = ?`,
  );
  const news = handle.prepare("select * from simulated_trail where n > ? order by n");
  const live = handle.prepare("select count(*) as n from holdfast_ready");
  const clockRow = handle.prepare("select value from holdfast_meta where key = 'clock'");
  const fileNow = (): number =>
    world.now + Number((clockRow.get() as { value: string } | undefined)?.value.split(" ")[0] ?? 0);
  const heldBy = (condition: string) =>
    handle.prepare(`select count(*) as n from holdfast_ready ready
      join holdfast_job job on job.seq = ready.seq join holdfast_job_type job_type on job_type.id = job.job_type
      join holdfast_session session on session.id = ready.session
      where ready.token is not null and ${condition} and session.closed_at is null and session.lease_until > ?`);
  const lanesHeld = heldBy("job.lane = ?");
  const queueHeld = heldBy("job_type.queue = ?");
  const known = new Map<string, { name: string; queue: string }>();
  let last = 0;
  const typeOf = (id: string): { name: string; queue: string } => {
    let type = known.get(id);
    if (type === undefined) {
      const row = names.get(id) as { name: string; queue: string } | undefined;
      type = row ?? { name: "unknown", queue: "unknown" };
      known.set(id, type);
    }
    return type;
  };
  const all = (sql: string): Record<string, unknown>[] => handle.prepare(sql).all();
  return {
    read(history, at) {
      const rows = news.all(last) as unknown as TrailRow[];
      const now = rows.some(({ change }) => change === "claimed") ? fileNow() : 0;
      for (const row of rows) {
        last = row.n;
        const { change, id, key, lane, token, session, detail } = row;
        const type = typeOf(id);
        const limit =
          change !== "claimed" ? null : lane !== null ? "lane" : type.queue === limitedQueue ? "queue" : null;
        const holders =
          limit === null
            ? null
            : (
                (limit === "lane" ? lanesHeld : queueHeld).get(limit === "lane" ? lane : type.queue, now) as {
                  n: number;
                }
              ).n;
        history.push({ at, what: "row", change, id, ...type, key, lane, token, session, detail, holders });
      }
    },
    isDrained: () => (live.get() as { n: number }).n === 0,
    waitingFlows: () =>
      all(
        "select job.input from holdfast_ready ready join holdfast_job job on job.seq = ready.seq join holdfast_job_type job_type on job_type.id = job.job_type where job_type.name = 'flow'",
      ).map(({ input }) => (JSON.parse(String(input)) as { n: number }).n),
    final(drained) {
      const jobs = new Map<string, FinalJob>();
      for (const row of all(
        `select job.id, job_type.name, history.state, history.attempt, history.crashes, history.output
         from holdfast_history history join holdfast_job job on job.seq = history.seq join holdfast_job_type job_type on job_type.id = job.job_type`,
      ))
        jobs.set(String(row["id"]), row as unknown as FinalJob);
      const count = (sql: string): number => (handle.prepare(sql).get() as { n: number }).n;
      const leftovers: Record<string, number> = {
        ready: count("select count(*) as n from holdfast_ready"),
        claims: count("select count(*) as n from holdfast_claim"),
        lanes: count("select coalesce(sum(abs(running)), 0) as n from holdfast_lane"),
        openSteps: count(
          `select count(*) as n from holdfast_step step join holdfast_job job on job.id = step.job
           left join holdfast_history history on history.seq = job.seq
           where step.state = 'open' and step.kind in ('step', 'signal', 'call') and history.state is not 'cancelled'`,
        ),
        uniqueKeys: count("select count(*) as n from holdfast_unique_key"),
        cancels: count("select count(*) as n from holdfast_cancel"),
        dependencies: count("select count(*) as n from holdfast_dependency where state is null"),
      };
      const signals = all("select data from holdfast_signal").map(({ data }) =>
        Number(JSON.parse(String(data))),
      );
      return { drained, jobs, leftovers, signals };
    },
  };
}

interface TrailRow {
  readonly n: number;
  readonly change: RowChange;
  readonly id: string;
  readonly key: string | null;
  readonly lane: string | null;
  readonly token: number | null;
  readonly session: number | null;
  readonly detail: string | null;
}
