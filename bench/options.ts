/** The command line of the benchmark. */
import { parseArgs } from "node:util";
import type { System } from "./adapter.ts";
import type { Sizes } from "./context.ts";
import { type Scenario, scenarioOf, scenarios } from "./scenarios.ts";
import { systemOf, systems } from "./systems.ts";

export const help = `npm run bench -- [options]

  --quick            one round of the main figures within 3 minutes
  --full             every scenario, also the long ones (hours)
  --only a,b         these scenarios: ${scenarios.map(({ name }) => name).join(", ")}
  --systems a,b      these systems: ${systems.map(({ id }) => id).join(", ")}
  --rounds n         default 5
  --jobs n           jobs of a bulk enqueue and a drain (default 100000)
  --many n           rows that stand in the way in the scale curves (default 1000000)
  --seconds n        length of each timed measurement (default 3)
  --minutes n        start nothing new after so long; what is left out is said
  --out directory    default bench/results
  --publish          write results/published.* (kept in git, shown in the README) instead of a file by date
  --from a.json,b.json  no run: table and plot of earlier ones
  --list             scenarios and systems with their settings
  --help
`;

export interface Options {
  readonly quick: boolean;
  readonly rounds: number;
  readonly sizes: Sizes;
  readonly scenarios: readonly Scenario[];
  readonly systems: readonly System[];
  readonly minutes: number;
  readonly out: string | undefined;
  readonly publish: boolean;
  readonly from: string | undefined;
  readonly list: boolean;
  readonly help: boolean;
}

// The systems whose ratios targets.ts checks.
const quickSystems = [
  "holdfast-postgres",
  "holdfast-sqlite-full",
  "pg-boss",
  "graphile-worker",
  "bullmq-redis-everysec",
  "bullmq-postgres",
  "plainjob",
  "raw-postgres",
  "raw-sqlite-full",
];

export function optionsOf(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      quick: { type: "boolean", default: false },
      full: { type: "boolean", default: false },
      only: { type: "string" },
      systems: { type: "string" },
      rounds: { type: "string" },
      jobs: { type: "string" },
      many: { type: "string" },
      seconds: { type: "string" },
      minutes: { type: "string" },
      out: { type: "string" },
      publish: { type: "boolean", default: false },
      from: { type: "string" },
      list: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  const { quick, full, list, help } = values;
  const names = values.only?.split(",").map((name) => name.trim());
  const ids = values.systems?.split(",").map((id) => id.trim()) ?? (quick ? quickSystems : undefined);
  return {
    quick,
    list,
    help,
    rounds: positive(values.rounds, "--rounds") ?? (quick ? 1 : 5),
    minutes: positive(values.minutes, "--minutes") ?? (quick ? 2.4 : Infinity),
    sizes: sizesOf(quick, values),
    scenarios: names ? names.map(scenarioOf) : scenarios.filter(({ part }) => isPart(part, quick, full)),
    systems: ids ? ids.map(systemOf) : systems,
    out: values.out,
    publish: values.publish,
    from: values.from,
  };
}

function isPart(part: Scenario["part"], quick: boolean, full: boolean): boolean {
  if (quick) return part === "quick";
  return full ? true : part !== "full";
}

function sizesOf(quick: boolean, values: { jobs?: string; many?: string; seconds?: string }): Sizes {
  const jobs = positive(values.jobs, "--jobs") ?? (quick ? 40_000 : 100_000);
  const many = positive(values.many, "--many") ?? (quick ? 50_000 : 1_000_000);
  const seconds = positive(values.seconds, "--seconds") ?? (quick ? 0.7 : 3);
  return {
    jobs,
    many,
    beside: Math.min(50_000, many, jobs),
    enqueueSeconds: seconds,
    latencySamples: quick ? 40 : 200,
    latencySeconds: Math.min(quick ? 3 : 30, seconds * 10),
    idleSeconds: Math.max(2, Math.round(seconds * 20)),
    steadySeconds: Math.max(1, seconds * 3),
    snapshotJobs: Math.round(jobs * 1.5),
    snapshotSeconds: Math.max(4, Math.round(seconds * 40)),
  };
}

function positive(text: string | undefined, name: string): number | undefined {
  if (text === undefined) return undefined;
  const value = Number(text.replaceAll("_", ""));
  if (Number.isFinite(value) && value > 0) return value;
  throw new Error(`${name} takes a number above 0; got "${text}".`);
}
