/**
 * `defineConfig`: what `holdfast.config.ts` exports, for the command line to run.
 *
 * Not here: finding and loading the file (cli/config-file.ts).
 */
import type { AnyJob } from "./jobs/define-job.ts";
import type { Holdfast } from "./holdfast.ts";
import type { OpenOptions } from "./open-options.ts";
import type { Schedule } from "./schedules/define-schedule.ts";
import type { WorkOptions } from "./worker/worker.ts";

/**
 * A project, as the command line sees it.
 *
 * @example
 * export default defineConfig({ url: "sqlite:jobs.db", jobs: [sendMail], work: { queues: { mail: 20 } } });
 */
export interface HoldfastConfig {
  /** The database's address; a relative SQLite path is relative to the config file. HOLDFAST_URL and --url win. */
  readonly url?: string | undefined;
  /** The environment variable that holds the password of a Postgres URL, so that the URL itself can be committed. */
  readonly passwordEnv?: string | undefined;
  /** As the second argument of `open`. */
  readonly open?: OpenOptions | undefined;
  /** Definitions with handlers, for `holdfast work`. */
  readonly jobs?: readonly AnyJob[] | undefined;
  /** As the second argument of `hf.work`. */
  readonly work?: WorkOptions | undefined;
  /** As the option `schedules` of `hf.work`, beside those of `work`. */
  readonly schedules?: readonly Schedule[] | undefined;
  /** Where `holdfast work` serves /health, /ready, /latency and /metrics. Default: nowhere. */
  readonly server?: { readonly port: number; readonly host?: string | undefined } | undefined;
  /** Called once the client is open, before anything runs: middleware, listeners. */
  readonly setup?: ((hf: Holdfast) => unknown) | undefined;
  /** Told what a worker process serves when it starts (a service registry, say). It is never waited for, and may fail. */
  readonly manifest?: ((manifest: Manifest) => unknown) | undefined;
}

/** What a worker process serves. */
export interface Manifest {
  readonly version: string;
  readonly backend: "sqlite" | "postgres";
  /** Without secrets. */
  readonly place: string;
  readonly schema: string;
  readonly jobs: readonly { readonly name: string; readonly queue: string | null }[];
  /** Slots of this process; null: as many as it has CPUs. */
  readonly queues: Readonly<Record<string, number | null>>;
  readonly schedules: readonly string[];
  readonly pid: number;
  readonly host: string;
}

/**
 * The config as it is given; for its types.
 *
 * @example
 * export default defineConfig({ jobs: [sendMail] });
 */
export function defineConfig(config: HoldfastConfig): HoldfastConfig {
  return config;
}
