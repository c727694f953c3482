/**
 * Living workers in the database: each is a session's row. Opening and renewing sessions is not here.
 */
import type { Row } from "../storage/catalogue.ts";
import type { Driver } from "../storage/driver.ts";
import type { Wake } from "../storage/wake.ts";
import { json, maybeNumber, maybeText, number, text } from "../jobs/rows.ts";
import type { WorkerState, WorkerStore } from "./store.ts";

export class Workers implements WorkerStore {
  readonly #driver: Driver;
  readonly #wake: (wake: Wake) => void;

  constructor(driver: Driver, wake: (wake: Wake) => void) {
    this.#driver = driver;
    this.#wake = wake;
  }

  async list(): Promise<WorkerState[]> {
    return (await this.#driver.read({ name: "workers", params: { now: this.#driver.now() } })).map(worker);
  }

  async lost(): Promise<WorkerState[]> {
    return (await this.#driver.read({ name: "lostWorkers", params: { now: this.#driver.now() } })).map(
      worker,
    );
  }

  async overdueJobs(graceMs: number, most: number): Promise<number> {
    const params = { now: this.#driver.now(), grace: graceMs, most };
    const [row] = await this.#driver.read({ name: "overdueClaims", params });
    return row === undefined ? 0 : number(row, "n");
  }

  async stop(sessions: readonly number[] | "all"): Promise<number> {
    const params = { now: this.#driver.now(), sessions: sessions === "all" ? null : sessions };
    const stopped = await this.#driver.write({ name: "stopWorkers", params });
    for (const row of stopped) this.#wake({ kind: "stop", session: number(row, "id") });
    return stopped.length;
  }

  quiet(sessions: readonly number[]): Promise<number> {
    return this.#hush("quietWorkers", sessions);
  }

  resume(sessions: readonly number[]): Promise<number> {
    return this.#hush("resumeWorkers", sessions);
  }

  async #hush(name: "quietWorkers" | "resumeWorkers", sessions: readonly number[]): Promise<number> {
    const asked = await this.#driver.write({ name, params: { now: this.#driver.now(), sessions } });
    for (const row of asked) this.#wake({ kind: "quiet", session: number(row, "id") });
    return asked.length;
  }
}

function worker(row: Row): WorkerState {
  return {
    session: number(row, "id"),
    id: text(row, "worker_id"),
    kind: text(row, "kind") as WorkerState["kind"],
    name: text(row, "name"),
    host: text(row, "host"),
    pid: number(row, "pid"),
    version: text(row, "version"),
    queues: json(text(row, "queues")) as Record<string, number>,
    names: json(text(row, "names")) as string[],
    runtime: maybeText(row, "runtime"),
    release: maybeText(row, "release"),
    versions: (json(maybeText(row, "versions")) ?? {}) as Record<string, number>,
    startedAt: new Date(number(row, "started_at")),
    beatAt: new Date(number(row, "beat_at")),
    leaseUntil: new Date(number(row, "lease_until")),
    stopping: maybeNumber(row, "stop_requested_at") !== null,
    quietAt: row["quiet_at"] === null ? null : new Date(number(row, "quiet_at")),
    jobs: json(text(row, "jobs")) as string[],
  };
}
