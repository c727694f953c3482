/** The scenarios by name: what each needs, and which systems it makes sense for. */
import type { Mode, System } from "./adapter.ts";
import type { Context, Figures } from "./context.ts";
import { bulk, drain, drain4, memory } from "./scenarios/drain.ts";
import { enqueue } from "./scenarios/enqueue.ts";
import { features } from "./scenarios/features.ts";
import { idle } from "./scenarios/idle.ts";
import { limited } from "./scenarios/limited.ts";
import { latency, latencyLocal } from "./scenarios/latency.ts";
import { payload, queues, scale, snapshot } from "./scenarios/scale.ts";
import { snapshotSteady, steady } from "./scenarios/steady.ts";
import { steps } from "./scenarios/steps.ts";

export interface Scenario {
  readonly name: string;
  readonly title: string;
  readonly mode: Mode;
  /** Part of a run without --only and --full; in quick, part of --quick. */
  readonly part: "quick" | "main" | "full";
  readonly fits?: (system: System) => boolean;
  readonly run: (context: Context) => Promise<Figures>;
}

const can =
  (feature: NonNullable<System["can"]>[number]) =>
  (system: System): boolean =>
    system.can?.includes(feature) === true;
const queue = (system: System): boolean => system.role !== "limit";
/** Millions of jobs would take hours through a system that runs a thousand a second. */
const fast = (system: System): boolean => queue(system) && system.factor >= 0.5;
const fastOnPostgres = (system: System): boolean => fast(system) && system.store === "postgres";

export const scenarios: readonly Scenario[] = [
  { name: "enqueue", title: "enqueue, 1, 10 and 100 in flight", mode: "drain", part: "quick", run: enqueue },
  { name: "drain", title: "bulk enqueue and drain, one process", mode: "drain", part: "quick", run: drain },
  {
    name: "latency",
    title: "pick-up latency, idle worker",
    mode: "latency",
    part: "quick",
    fits: queue,
    run: latency,
  },
  {
    name: "drain4",
    title: "drain, four processes",
    mode: "drain",
    part: "main",
    fits: can("many processes"),
    run: drain4,
  },
  {
    name: "steady",
    title: "enqueue and drain at once",
    mode: "steady",
    part: "main",
    fits: queue,
    run: steady,
  },
  { name: "idle", title: "idle worker", mode: "idle", part: "main", fits: queue, run: idle },
  { name: "bulk", title: "bulk enqueue alone", mode: "drain", part: "full", run: bulk },
  {
    name: "latency-local",
    title: "pick-up latency in one process",
    mode: "latency",
    part: "full",
    fits: queue,
    run: latencyLocal,
  },
  {
    name: "memory",
    title: "memory while draining a million",
    mode: "drain",
    part: "full",
    fits: fast,
    run: memory,
  },
  {
    name: "scale",
    title: "drain beside a million rows",
    mode: "drain",
    part: "full",
    fits: fast,
    run: scale,
  },
  {
    name: "queues",
    title: "a thousand queues",
    mode: "drain",
    part: "full",
    fits: (system) => fast(system) && can("queues")(system),
    run: queues,
  },
  {
    name: "payload",
    title: "payloads of 100 B, 10 KB, 1 MB",
    mode: "drain",
    part: "full",
    fits: fast,
    run: payload,
  },
  {
    name: "snapshot",
    title: "drain under a held snapshot",
    mode: "drain",
    part: "full",
    fits: fastOnPostgres,
    run: snapshot,
  },
  {
    name: "snapshot-steady",
    title: "steady load under a held snapshot",
    mode: "steady",
    part: "full",
    fits: fastOnPostgres,
    run: snapshotSteady,
  },
  {
    name: "limited",
    title: "what limits cost",
    mode: "drain",
    part: "full",
    fits: can("limits"),
    run: limited,
  },
  { name: "steps", title: "durable steps", mode: "drain", part: "main", fits: can("steps"), run: steps },
  { name: "features", title: "what features cost", mode: "drain", part: "full", fits: fast, run: features },
];

export function scenarioOf(name: string): Scenario {
  const found = scenarios.find((scenario) => scenario.name === name);
  if (found === undefined) {
    throw new Error(`No scenario "${name}". There are: ${scenarios.map((each) => each.name).join(", ")}.`);
  }
  return found;
}

/** Whether the system is measured in the scenario. */
export function fits(scenario: Scenario, system: System): boolean {
  return system.settings[scenario.mode] !== undefined && (scenario.fits?.(system) ?? true);
}
