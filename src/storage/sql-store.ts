/**
 * The store, assembled: a class of each room keeps its part of src/storage/store.ts over a driver and its catalogue, the same way for both
 * databases. Here is what the parts share, and the database itself.
 */
import { MOVED_AT, MOVED_TO } from "./admin.ts";
import type { Row } from "./catalogue.ts";
import type { Driver } from "./driver.ts";
import type { SchemaState, Store, StoreEvents } from "./store.ts";
import type { Wake } from "./wake.ts";
import { StoreError } from "../errors.ts";
import { NewJobs } from "../enqueue/insert.ts";
import { Definitions } from "../enqueue/definition-rows.ts";
import { JobPlaces } from "../enqueue/placed-jobs.ts";
import { flag, maybeText, number, text } from "../jobs/rows.ts";
import { Claims } from "../lease/claim.ts";
import { Sessions } from "../lease/session-rows.ts";
import { Settles } from "../lease/settle.ts";
import { Workers } from "../lease/worker-rows.ts";
import { Breakers } from "../limits/breaker-rows.ts";
import { Budgets } from "../limits/budget-rows.ts";
import { LimitedQueues } from "../limits/limited-queues.ts";
import { Holds } from "../limits/hold-rows.ts";
import { LaneRows } from "../limits/lane-rows.ts";
import { Queues } from "../limits/queue-rows.ts";
import { TemporaryLimits } from "../limits/temporary-limit-rows.ts";
import { FailureRows } from "../observe/failure-rows.ts";
import { Series } from "../observe/series-rows.ts";
import { SqlInsight } from "../operate/browse-rows.ts";
import { Jobs } from "../operate/job-rows.ts";
import { Schedules } from "../schedules/schedule-rows.ts";
import { Passes } from "../state/pass-rows.ts";
import { StateRows } from "../state/state-rows.ts";
import { Upkeep } from "../upkeep/upkeep-rows.ts";
import { Workflows } from "../workflows/step-rows.ts";

export class SqlStore implements Store {
  readonly newJobs: NewJobs;
  readonly definitions: Definitions;
  readonly claims: Claims;
  readonly settles: Settles;
  readonly sessions: Sessions;
  readonly workers: Workers;
  readonly queues: Queues;
  readonly lanes: LaneRows;
  readonly holds: Holds;
  readonly budgets: Budgets;
  readonly breakers: Breakers;
  readonly temporaryLimits: TemporaryLimits;
  readonly workflows: Workflows;
  readonly schedules: Schedules;
  readonly state: StateRows;
  readonly passes: Passes;
  readonly series: Series;
  readonly failures: FailureRows;
  readonly upkeep: Upkeep;
  readonly jobs: Jobs;
  readonly insight: SqlInsight;
  readonly #driver: Driver;
  readonly #listeners = new Set<(wake: Wake) => void>();

  constructor(driver: Driver, warn: StoreEvents["onWarning"] = () => {}) {
    const { clock } = driver;
    this.#driver = driver;
    const wake = (told: Wake): void => this.wake(told);
    const limitedQueues = new LimitedQueues();
    this.definitions = new Definitions(driver);
    const places = new JobPlaces(driver, this.definitions, limitedQueues);
    this.workflows = new Workflows({ driver, clock, places, woke: () => wake({ kind: "any" }) });
    this.newJobs = new NewJobs({ driver, places, watchBeside: (ids) => this.workflows.watchBeside(ids) });
    this.claims = new Claims({ driver, clock, jobTypes: places.jobTypes, limitedQueues, warn });
    this.settles = new Settles({ driver, clock, workflows: this.workflows, wake });
    this.sessions = new Sessions(driver, (given) => this.settles.grant(given));
    this.workers = new Workers(driver, wake);
    this.queues = new Queues({ driver, workers: this.workers, limitedQueues, wake });
    this.lanes = new LaneRows(driver, wake);
    this.holds = new Holds(driver, wake);
    this.budgets = new Budgets(driver, wake);
    this.breakers = new Breakers(driver, wake);
    this.temporaryLimits = new TemporaryLimits(driver);
    this.schedules = new Schedules(driver, places, wake);
    this.state = new StateRows(driver);
    this.passes = new Passes(driver);
    this.series = new Series(driver);
    this.failures = new FailureRows(driver);
    this.upkeep = new Upkeep(driver, limitedQueues);
    const resolve = this.settles.resolve.bind(this.settles);
    this.jobs = new Jobs({ driver, places, definitions: this.definitions, limitedQueues, wake, resolve });
    this.insight = new SqlInsight(driver, this.failures);
  }

  // The database

  get dialect(): Store["dialect"] {
    return this.#driver.dialect;
  }

  get clock(): Store["clock"] {
    return this.#driver.clock;
  }

  get counters(): Store["counters"] {
    return this.#driver.counters;
  }

  get poolUse(): Store["poolUse"] {
    return this.#driver.poolUse;
  }

  /** A thread knows the database's clock alone. */
  get renewalTarget(): Store["renewalTarget"] {
    return this.#driver.clock.system ? this.#driver.renewalTarget : null;
  }

  userTx(handle: unknown): ReturnType<Store["userTx"]> {
    return this.#driver.userTx(handle);
  }

  inspect(): ReturnType<Store["inspect"]> {
    return this.#driver.inspect();
  }

  async schemaState(): Promise<SchemaState> {
    const params = { moved: MOVED_TO, movedAt: MOVED_AT };
    const [row] = await this.#driver.read({ name: "schemaState", params });
    // The tables were there when this client was opened.
    if (row === undefined) throw new StoreError("SCHEMA_MISSING", "The database has no Holdfast schema.");
    const movedAt = maybeText(row, "moved_at");
    return {
      version: number(row, "version"),
      name: text(row, "name"),
      appliedAt: number(row, "applied_at"),
      movedTo: maybeText(row, "moved_to"),
      movedAt: movedAt === null ? null : Number(movedAt),
    };
  }

  async writable(): Promise<boolean> {
    const [row] = await this.#driver.read({ name: "writable", params: {} });
    return row === undefined || flag(row, "writable");
  }

  async now(): Promise<number> {
    const [row] = await this.#driver.read({ name: "now", params: { now: this.#driver.now() } });
    return number(row as Row, "now");
  }

  // Wake-ups

  listen(onWake: (wake: Wake) => void): () => void {
    this.#listeners.add(onWake);
    const stop = this.#driver.listen(onWake);
    return () => {
      this.#listeners.delete(onWake);
      stop();
    };
  }

  get listening(): boolean {
    return this.#driver.listening;
  }

  wake(wake: Wake): void {
    this.wakeHere(wake);
    this.#driver.notify(wake);
  }

  wakeHere(wake: Wake): void {
    for (const listener of this.#listeners) listener(wake);
  }

  async close(): Promise<void> {
    this.#listeners.clear();
    await this.#driver.close();
  }
}
