// A worker process that kills itself with SIGKILL at one call to its store, before or after the database has acted.
// The fault sits in a proxy around the store that is handed in; nothing in the library knows of it.
import { systemClock } from "../../../src/clock.ts";
import { defineJob } from "../../../src/jobs/define-job.ts";
import { Emitter } from "../../../src/events.ts";
import { Holdfast } from "../../../src/holdfast.ts";
import { silentLogger } from "../../../src/logger.ts";
import { checkOpenOptions } from "../../../src/open-options.ts";
import { openStore } from "../../../src/storage/open.ts";
import { between, bound, type Verb } from "../../support/store-parts.ts";

export interface MortalSpec {
  readonly url: string;
  readonly options: { readonly schema?: string };
  readonly queue: string;
  /** Or "run": the handler. */
  readonly verb: Verb | "run";
  readonly when: "before" | "after" | "during";
}

const { url, options, queue, verb, when } = JSON.parse(process.argv[2] ?? "{}") as MortalSpec;
const die = (): void => void process.kill(process.pid, "SIGKILL");
const { client } = checkOpenOptions({ logger: silentLogger });
const store = await openStore(url, options);
const mortal = between(store, (called, value, owner) => {
  if (typeof value !== "function" || called !== verb) return bound(value, owner);
  const method = value as (...args: unknown[]) => Promise<unknown>;
  return async (...args: unknown[]) => {
    if (when === "before") die();
    const answer = method.apply(owner, args);
    if (when === "during") setImmediate(die);
    await answer;
    die();
    return new Promise(() => {});
  };
});
const env = {
  clock: systemClock,
  random: Math.random,
  host: "mortal",
  pid: process.pid,
  hostId: "mortal",
  cpus: 1,
  env: {},
};
const hf = new Holdfast(mortal, client, env, new Emitter(() => {}));
const job = defineJob({ name: "nap", run: () => (verb === "run" ? die() : undefined) });
const worker = hf.work([job], { queues: { [queue]: 2 }, lease: "2s", heartbeat: "500ms" });
await worker.ready;
await worker.idle();
if (verb === "sessions.close") await worker.stop();
