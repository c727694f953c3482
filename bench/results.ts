/** What a run leaves behind: every figure of every round, with machine, versions and settings. */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, statfsSync } from "node:fs";
import { availableParallelism, cpus, platform, release, tmpdir, totalmem } from "node:os";
import { join } from "node:path";
import type { StoreKind, System } from "./adapter.ts";
import type { Figures, Sizes } from "./context.ts";
import { median } from "./measure.ts";

export interface Run {
  readonly round: number;
  readonly scenario: string;
  readonly system: string;
  readonly seconds: number;
  readonly figures?: Figures;
  readonly error?: string;
}

export interface Results {
  readonly startedAt: string;
  readonly seconds: number;
  readonly command: string;
  readonly rounds: number;
  readonly sizes: Sizes;
  readonly machine: Readonly<Record<string, string | number>>;
  readonly versions: Readonly<Record<string, string>>;
  readonly postgres: Readonly<Record<string, string | number>>;
  readonly systems: readonly SystemNote[];
  /** What was not measured, and why. */
  readonly left: readonly string[];
  readonly runs: readonly Run[];
}

export interface SystemNote {
  readonly id: string;
  readonly title: string;
  readonly role: System["role"];
  readonly store: StoreKind;
  readonly settings: System["settings"];
  readonly versions: Readonly<Record<string, string>>;
}

const root = join(import.meta.dirname, "..");
const networkOrMemory = new Map([
  [0x01021994, "tmpfs (memory: fsync costs nothing here)"],
  [0xef53, "ext4"],
  [0x9123683e, "btrfs"],
  [0x58465342, "xfs"],
  [0x6969, "nfs"],
  [0x794c7630, "overlayfs"],
  [0x2fc12fc1, "zfs"],
]);

export function machine(): Record<string, string | number> {
  const type = statfsSync(tmpdir()).type;
  return {
    cpu: cpus()[0]?.model.trim() ?? "unknown",
    cores: availableParallelism(),
    memoryGb: Math.round(totalmem() / 2 ** 30),
    os: `${platform()} ${release()}`,
    node: process.version,
    sqlite: process.versions["sqlite"] ?? "unknown",
    filesystem: networkOrMemory.get(type) ?? `0x${type.toString(16)}`,
  };
}

function packageVersion(name: string): string {
  const file = join(import.meta.dirname, "node_modules", name, "package.json");
  if (!existsSync(file)) return "not installed";
  return (JSON.parse(readFileSync(file, "utf8")) as { version: string }).version;
}

export function ourVersion(): string {
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };
  try {
    const git = (...args: string[]): string =>
      execFileSync("git", ["-C", root, ...args], { encoding: "utf8", stdio: "pipe" }).trim();
    return `${version} (${git("rev-parse", "--short", "HEAD")}${git("status", "--porcelain") === "" ? "" : ", changed"})`;
  } catch {
    return version;
  }
}

export function noteOf(system: System): SystemNote {
  const { id, title, role, store, settings, packages } = system;
  return {
    id,
    title,
    role,
    store,
    settings,
    versions: Object.fromEntries(packages.map((name) => [name, packageVersion(name)])),
  };
}

/** A figure of a system: its value in each round that has it. */
export function values(results: Results, system: string, figure: string): { round: number; value: number }[] {
  return results.runs.flatMap(({ round, system: id, figures }) => {
    const value = id === system ? figures?.[figure] : undefined;
    return value === undefined || !Number.isFinite(value) ? [] : [{ round, value }];
  });
}

export interface Summary {
  readonly median: number;
  readonly min: number;
  readonly max: number;
  readonly rounds: number;
}

export function summary(results: Results, system: string, figure: string): Summary | undefined {
  const found = values(results, system, figure).map(({ value }) => value);
  if (found.length === 0) return undefined;
  return { median: median(found), min: Math.min(...found), max: Math.max(...found), rounds: found.length };
}

/** ours / best of theirs, in each round, so that a slow minute of the machine falls on both. */
export function ratios(
  results: Results,
  ours: string,
  theirs: readonly string[],
  figure: string,
  best: "most" | "least",
  theirFigure = figure,
): number[] {
  const rivals = theirs.flatMap((system) => values(results, system, theirFigure));
  return values(results, ours, figure).flatMap(({ round, value }) => {
    const sameRound = rivals.filter((rival) => rival.round === round).map((rival) => rival.value);
    if (sameRound.length === 0) return [];
    return [value / (best === "most" ? Math.max(...sameRound) : Math.min(...sameRound))];
  });
}

/**
 * Several runs as one, such as scenarios that were run with different systems. Each ratio stays within its own run: the rounds of the
 * second are numbered after those of the first. What a later one has measured again is taken from there alone.
 */
export function merged(parts: readonly Results[]): Results {
  const [first, ...others] = parts;
  if (first === undefined) throw new Error("--from takes at least one file.");
  return others.reduce((whole, part): Results => {
    const known = new Set(whole.systems.map(({ id }) => id));
    const from = Math.max(...whole.runs.map(({ round }) => round));
    return {
      ...whole,
      seconds: whole.seconds + part.seconds,
      command: `${whole.command}; ${part.command}`,
      versions: { ...part.versions, ...whole.versions },
      systems: [...whole.systems, ...part.systems.filter(({ id }) => !known.has(id))],
      left: [...whole.left, ...part.left],
      runs: [
        ...whole.runs.filter((run) => !isAgainIn(part, run)),
        ...part.runs.map((run) => ({ ...run, round: from + run.round })),
      ],
    };
  }, first);
}

function isAgainIn(part: Results, { scenario, system }: Run): boolean {
  return part.runs.some((run) => run.scenario === scenario && run.system === system);
}
