/**
 * Which version of the code has taken a run on.
 *
 *   enqueued by version 1 ─▶ steps by version 1 ─▶ a worker with version 2 is about to do something new:
 *   `advanced: 2` is kept with the job ─▶ a worker that still has version 1 releases the run (worker/ends/attempt-outcomes.ts)
 *
 * During a rolling deploy old and new workers claim side by side. Without this, an old one could be given a run whose
 * history it does not know, and would stop it as diverged.
 * Invariants: kept before the first thing that the newer code does, under the fence, so that no history has a step of newer
 * code without it; written once for each run and version, and never for runs that the same version enqueued. Plain
 * jobs, and runs of a definition whose version has not changed, pay nothing.
 */
import { type ClaimedJob, type JobExtras, neededVersion } from "../jobs/job.ts";
import type { Store } from "../storage/store.ts";

/** Why code of this version must leave a job to newer workers; null if it may run it. */
export function outdatedBy(name: string, extras: JobExtras | null, version: number): string | null {
  const made = extras?.version ?? 1;
  const needed = neededVersion(extras);
  if (needed <= version) return null;
  const by = made === needed ? "enqueued" : "advanced";
  return `it was ${by} by version ${needed} of "${name}"; this worker has version ${version}`;
}

/** What a run needs to be remembered by its version. */
export class Advance {
  readonly #job: ClaimedJob;
  readonly #version: number;
  readonly #store: Pick<Store, "workflows" | "userTx">;
  readonly #patiently: <T>(call: () => Promise<T>) => Promise<T>;
  #kept: Promise<boolean> | null;

  constructor(
    job: ClaimedJob,
    version: number,
    store: Pick<Store, "workflows" | "userTx">,
    patiently: <T>(call: () => Promise<T>) => Promise<T>,
  ) {
    this.#job = job;
    this.#version = version;
    this.#store = store;
    this.#patiently = patiently;
    const { extras } = job;
    this.#kept = version > neededVersion(extras) ? null : KEPT;
  }

  /** Whether it is kept already: nothing to wait for. */
  get known(): boolean {
    return this.#kept === KEPT;
  }

  /** Keeps it. False: the run is not ours any more. */
  keep(): Promise<boolean> {
    this.#kept ??= this.#patiently(() => this.#store.workflows.advance(this.#job.session, this.#run())).then(
      (held) => held,
      (error: unknown) => {
        this.#kept = null;
        throw error;
      },
    );
    return this.#kept;
  }

  /** Keeps it in the user's own transaction, with the step that is written there: on SQLite no other could be open. */
  async keepIn(tx: object): Promise<boolean> {
    const known = await this.#store.userTx(tx);
    return this.#store.workflows.advance(this.#job.session, this.#run(), known);
  }

  #run(): { id: string; token: number; extras: JobExtras } {
    const { id, token, extras } = this.#job;
    return { id, token, extras: { ...extras, advanced: this.#version } };
  }
}

const KEPT: Promise<boolean> = Promise.resolve(true);
