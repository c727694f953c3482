// Six projects on two noisy cores: "unit" (pure rules and functions of the page, without a server: test/support/unit-files.ts),
// "core", "oldest" (the oldest Postgres) and "surface" (what people see: command line and dashboard), then "fault" (real processes, killed and paused), then "browser", by itself, because a page on a busy machine is
// slow; two files of each, three of the faults, run side by side, the longest first (test/support/longest-first.ts). The newest
// Postgres stands for all versions. Every statement, and the main promises of each room, are tested on the oldest as well;
// `HOLDFAST_TEST_POSTGRES=all` runs everything on both.
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { LongestFirst } from "./test/support/longest-first.ts";
import { unitFiles } from "./test/support/unit-files.ts";

const source = (path: string): string => fileURLToPath(new URL(`src/${path}`, import.meta.url));

// Hundreds of processes are started, and each would compile the sources anew (0.7 s instead of 0.2 s).
const compiled = {
  NODE_COMPILE_CACHE: fileURLToPath(new URL("node_modules/.cache/compiled", import.meta.url)),
};

const postgres = (version: string): Record<string, string> => ({
  ...compiled,
  HOLDFAST_TEST_POSTGRES: process.env["HOLDFAST_TEST_POSTGRES"] ?? version,
});
/** Tests that depend on the server's version: each statement and its plan, and the main promises of each room. */
const onOldest = [
  "test/storage/{arrays,claims,late-inserts,looks,partitions,plans,priorities,races,recent,schema,statements}.test.ts",
  "test/enqueue/{enqueue,raw-sql}.test.ts",
  "test/lease/{claim,lease,settle}.test.ts",
  "test/limits/{budgets,lanes}.test.ts",
  "test/operate/why.test.ts",
  "test/schedules/schedules.test.ts",
  "test/upkeep/retention.test.ts",
  "test/worker/{cancel,outcomes}.test.ts",
  "test/workflows/{dependencies,steps}.test.ts",
];
const unit = unitFiles(fileURLToPath(new URL(".", import.meta.url)));
const surface = ["test/cli/**/*.test.ts", "test/dashboard/**/*.test.ts"];

export default defineConfig({
  resolve: {
    // The package by its own name means the sources, as in tsconfig.json's paths.
    alias: [
      { find: /^holdfast$/, replacement: source("index.ts") },
      { find: /^holdfast\/(dashboard|testing|prometheus|otel)$/, replacement: source("$1/index.ts") },
    ],
  },
  test: {
    globalSetup: ["test/support/postgres-servers.ts"],
    reporters: ["default", "./test/support/plain-result-reporter.ts"],
    pool: "forks",
    sequence: { sequencer: LongestFirst },
    env: compiled,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    teardownTimeout: 20_000,
    projects: [
      {
        extends: true,
        test: {
          name: "unit",
          globalSetup: [],
          include: unit,
          pool: "threads", // sooner there than a process
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: "core",
          env: postgres("newest"),
          globalSetup: [],
          include: ["test/**/*.test.ts"],
          exclude: [...unit, ...surface, "test/fault/**", "test/browser/**", "**/node_modules/**"],
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: "oldest",
          env: postgres("oldest"),
          globalSetup: [],
          include: process.env["HOLDFAST_TEST_POSTGRES"] === undefined ? onOldest : [],
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: "surface",
          env: postgres("newest"),
          globalSetup: [],
          include: surface,
          exclude: [...unit, "**/node_modules/**"],
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      {
        // A real Chromium against the built page: `npm run build` first.
        extends: true,
        test: {
          name: "browser",
          // The default of 1 s was missed on a busy machine.
          expect: { poll: { timeout: 20_000 } },
          globalSetup: [],
          include: ["test/browser/**/*.test.ts"],
          testTimeout: 120_000,
          hookTimeout: 120_000,
          maxWorkers: 2,
          sequence: { groupOrder: 2 },
        },
      },
      {
        extends: true,
        test: {
          name: "fault",
          env: postgres("newest"),
          globalSetup: [],
          include: ["test/fault/**/*.test.ts"],
          testTimeout: 240_000,
          // They wait for leases and restarts more than they compute: two files leave half of two cores idle. With four, tests
          // that start four processes at once missed their deadlines on a machine that had other work.
          maxWorkers: 3,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
