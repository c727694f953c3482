/**
 * The benchmark: `npm run bench -- --help`.
 *
 * A run is rounds × scenarios × systems. Systems are interleaved (every one of them in each round, in an order that
 * turns), so that a slow minute of the machine falls on all; each runs in a process of its own on a new database.
 * Prints tables, writes bench/results/<date>.json and .md, and the plot <date>.svg.
 * Exit code 1 if a system lost a job or ran one twice, or failed.
 */
import { fork } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { System } from "./adapter.ts";
import type { Message, Task } from "./coordinator.ts";
import { help, type Options, optionsOf } from "./options.ts";
import { plot } from "./plot.ts";
import { format, report } from "./report.ts";
import { machine, merged, noteOf, ourVersion, type Results, type Run } from "./results.ts";
import { fits, type Scenario, scenarios } from "./scenarios.ts";
import { postgresSettings, type RunningServers, startServers } from "./servers.ts";
import { systems } from "./systems.ts";

const patienceMs = 30 * 60_000;
const shownFigures = [
  "one1",
  "one10",
  "one100",
  "bulk",
  "drain",
  "drain4",
  "p50",
  "p99",
  "flood",
  "idleQueries",
  "memoryMb",
  "readyKept",
  "scheduledKept",
  "endedKept",
  "manyQueuesKept",
  "heldKept",
  "unique",
  "transaction",
];

/** One line that is written over on a terminal; elsewhere a line now and then. */
const live = process.stderr.isTTY;
const quietMs = 10_000;
let shownAt = 0;
function show(text: string): void {
  if (!live && performance.now() - shownAt > quietMs) say(text);
  if (live) process.stderr.write(`\r\u001B[2K${text.slice(0, (process.stderr.columns ?? 100) - 1)}`);
}
function say(text: string): void {
  shownAt = performance.now();
  if (live) process.stderr.write("\r\u001B[2K");
  process.stderr.write(`${text}\n`);
}

async function one(task: Task, head: string): Promise<Pick<Run, "figures" | "error">> {
  const child = fork(join(import.meta.dirname, "coordinator.ts"), {
    stdio: ["ignore", "ignore", "pipe", "ipc"],
  });
  let words = "";
  child.stderr!.setEncoding("utf8").on("data", (text: string) => (words = (words + text).slice(-4_000)));
  let result: Pick<Run, "figures" | "error"> | undefined;
  child.on("message", (message: Message) => {
    if (message.kind === "progress") show(`${head}: ${message.text}`);
    else if (message.kind === "done") result = { figures: message.figures };
    else result = { error: message.error };
  });
  const late = setTimeout(() => child.kill("SIGKILL"), patienceMs);
  child.send(task);
  const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
  clearTimeout(late);
  if (result?.error !== undefined && words !== "") result = { error: `${result.error}\n${words}` };
  return result ?? { error: `ended with ${code} and no result\n${words}` };
}

function summaryOf(run: Pick<Run, "figures" | "error">): string {
  if (run.figures === undefined) return `FAILED: ${run.error?.split("\n")[0]}`;
  const known = Object.entries(run.figures).filter(([name]) => shownFigures.includes(name));
  return known.map(([name, value]) => `${name} ${format(value)}`).join(", ");
}

async function rounds(
  options: Options,
  able: readonly System[],
  servers: RunningServers,
  left: string[],
): Promise<Run[]> {
  const runs: Run[] = [];
  const pairs = options.scenarios.map((scenario) => ({
    scenario,
    list: able.filter((system) => fits(scenario, system)),
  }));
  const all = options.rounds * pairs.reduce((sum, { list }) => sum + list.length, 0);
  const begun = performance.now();
  for (let round = 1; round <= options.rounds; round++) {
    for (const { scenario, list } of pairs) {
      for (const system of turned(list, round)) {
        const elapsed = (performance.now() - begun) / 1000;
        const name = `[${runs.length + 1}/${all}] round ${round}, ${scenario.name}, ${system.id}`;
        if (elapsed > options.minutes * 60) {
          left.push(`round ${round}, ${scenario.name}, ${system.id}: no time left`);
          continue;
        }
        show(name);
        const started = performance.now();
        const { sizes } = options;
        const result = await one({ system: system.id, scenario: scenario.name, sizes, servers }, name);
        const seconds = (performance.now() - started) / 1000;
        runs.push({ round, scenario: scenario.name, system: system.id, seconds, ...result });
        say(`${name} (${seconds.toFixed(1)} s): ${summaryOf(result)}`);
      }
    }
  }
  return runs;
}

/** Another system goes first in each round. */
function turned<T>(list: readonly T[], round: number): T[] {
  const by = (round - 1) % Math.max(1, list.length);
  return [...list.slice(by), ...list.slice(0, by)];
}

function write(results: Results, options: Options): void {
  const text = report(results);
  process.stdout.write(`\n${text}`);
  const directory = options.out ?? join(import.meta.dirname, "results");
  mkdirSync(directory, { recursive: true });
  const name = options.publish ? "published" : results.startedAt.replaceAll(/[:.]/g, "-").slice(0, 19);
  const base = join(directory, name);
  writeFileSync(`${base}.json`, `${JSON.stringify(results, null, 1)}\n`);
  writeFileSync(`${base}.md`, text);
  writeFileSync(`${base}.svg`, plot(results));
  say(`\nWritten: ${base}.json, .md and .svg`);
}

function list(): void {
  for (const { name, title, part } of scenarios) console.log(`${name.padEnd(16)} ${title} (${part})`);
  for (const { id, title, settings, missing } of systems) {
    const why = missing?.() ?? null;
    console.log(`\n${id}: ${title}${why === null ? "" : ` (left out: ${why})`}`);
    for (const [mode, text] of Object.entries(settings)) console.log(`  ${mode.padEnd(8)} ${text}`);
  }
}

async function run(options: Options): Promise<boolean> {
  const left: string[] = [];
  const able = options.systems.filter((system) => {
    const why = system.missing?.() ?? null;
    if (why !== null) left.push(`${system.id}: ${why}`);
    return why === null && options.scenarios.some((scenario: Scenario) => fits(scenario, system));
  });
  for (const line of left) say(`left out: ${line}`);
  const startedAt = new Date().toISOString();
  const begun = performance.now();
  say("starting the servers");
  const servers = await startServers(new Set(able.map(({ store }) => store)));
  try {
    const runs = await rounds(options, able, servers, left);
    const results: Results = {
      startedAt,
      seconds: (performance.now() - begun) / 1000,
      command: process.argv.slice(2).join(" "),
      rounds: options.rounds,
      sizes: options.sizes,
      machine: machine(),
      versions: { holdfast: ourVersion(), ...servers.versions },
      postgres: { fsync: "on", ...postgresSettings },
      systems: able.map(noteOf),
      left,
      runs,
    };
    write(results, options);
    const failed = runs.filter(({ error }) => error !== undefined);
    for (const { round, scenario, system, error } of failed)
      say(`\nround ${round}, ${scenario}, ${system} failed:\n${error}`);
    return failed.length === 0;
  } finally {
    await servers.stop();
  }
}

const options = optionsOf(process.argv.slice(2));
if (options.help) console.log(help);
else if (options.list) list();
else if (options.from !== undefined)
  write(
    merged(options.from.split(",").map((file) => JSON.parse(readFileSync(file, "utf8")) as Results)),
    options,
  );
else process.exitCode = (await run(options)) ? 0 : 1;
