/**
 * `holdfast init`: creates a small project. Existing files stay.
 *
 * In a package that is not `"type": "module"` the files end in .mts, which Node always loads as modules.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import { VERSION } from "../../version.ts";
import type { Command } from "../command.ts";
import { findConfig } from "../config-file.ts";
import { oneLine } from "../text.ts";

export const init: Command = {
  name: "init",
  summary: "create a starter project",
  args: "[<folder>]",
  maxArgs: 1,
  options: {
    postgres: { type: "boolean", help: "Use Postgres instead of SQLite" },
    force: { type: "boolean", short: "f", help: "Overwrite existing files" },
  },
  json: "{ folder, written, kept }",
  examples: [
    {
      line: "init my-app && cd my-app && npm install && npm run work",
      says: "A new project with a running worker",
    },
    { line: "init .", says: "Add Holdfast to an existing project" },
  ],
  run: async (ctx) => {
    const folder = resolve(ctx.io.cwd, ctx.args[0] ?? ".");
    const written: string[] = [];
    const kept: string[] = [];
    const postgres = ctx.flag("postgres");
    const starter = starterOf(folder, ctx.flag("force"));
    for (const [file, text] of Object.entries(files(packageName(folder), starter, postgres))) {
      const path = join(folder, file);
      if (existsSync(path) && !ctx.flag("force")) {
        kept.push(file);
        continue;
      }
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, text);
      written.push(file);
    }
    ctx.result({ folder, written, kept }, () =>
      [
        ...written.map((file) => `${ctx.paint("good", "wrote")}  ${file}`),
        ...kept.map((file) => `${ctx.paint("dim", "kept")}   ${file}`),
        "",
        "Next:",
        ...nextSteps({
          folder: relative(ctx.io.cwd, folder),
          config: starter.config,
          postgres,
          keptPackage: kept.includes("package.json"),
          wroteTsconfig: written.includes("tsconfig.json"),
        }),
      ].join("\n"),
    );
  },
};

/** The names of the starter's files. */
interface Starter {
  readonly ending: "ts" | "mts";
  /** The config's file: an existing one of any ending is kept. */
  readonly config: string;
}

function starterOf(folder: string, force: boolean): Starter {
  const manifest = join(folder, "package.json");
  const ending = force || !existsSync(manifest) || isModule(manifest) ? "ts" : "mts";
  const there = force ? null : findConfig(folder, 0);
  const config = there !== null && dirname(there) === folder ? basename(there) : `holdfast.config.${ending}`;
  return { ending, config };
}

function isModule(manifest: string): boolean {
  try {
    return (JSON.parse(readFileSync(manifest, "utf8")) as { type?: unknown } | null)?.type === "module";
  } catch {
    return false; // .mts runs everywhere
  }
}

/** The next commands. An existing package.json has no script of ours and does not name the package. */
function nextSteps({
  folder,
  config,
  postgres,
  keptPackage: kept,
  wroteTsconfig,
}: {
  readonly folder: string;
  readonly config: string;
  readonly postgres: boolean;
  readonly keptPackage: boolean;
  readonly wroteTsconfig: boolean;
}): string[] {
  const steps: [line: string, says: string][] = [
    ...(folder === "" ? [] : [[`cd ${oneLine(folder)}`, ""] as [string, string]]),
    [kept ? `npm install holdfast${postgres ? " pg" : ""}` : "npm install", ""],
    ...(kept && wroteTsconfig
      ? [["npm install --save-dev @types/node", "for tsconfig.json"] as [string, string]]
      : []),
    ...(postgres
      ? [["export HOLDFAST_URL=postgres://…", `or set url in ${config}`] as [string, string]]
      : []),
    [kept ? "npx holdfast work" : "npm run work", "runs jobs until Ctrl-C"],
    [`npx holdfast enqueue hello '{"name":"Ada"}'`, "in another terminal"],
    ["npx holdfast top", ""],
    ["npx holdfast dashboard", "the same in the browser"],
  ];
  const left = Math.max(...steps.map(([line]) => line.length)) + 2;
  return steps.map(([line, says]) => `  ${says === "" ? line : `${line.padEnd(left)}# ${says}`}`);
}

function packageName(folder: string): string {
  const name = basename(folder)
    .toLowerCase()
    .replaceAll(/[^a-z0-9-]+/g, "-")
    .replaceAll(/^-+|(?<!-)-+$/g, "");
  return name === "" ? "jobs" : name;
}

function files(
  name: string,
  { ending, config }: Starter,
  postgres: boolean,
): Readonly<Record<string, string>> {
  // Absolute, so that enqueue.ts and the command line agree on the file from every folder.
  const url = postgres ? '"postgres://localhost:5432/postgres"' : "`sqlite:${import.meta.dirname}/jobs.db`";
  return {
    "package.json": `${JSON.stringify(
      {
        name,
        private: true,
        type: "module",
        scripts: {
          work: "holdfast work",
          dev: "holdfast work --watch",
          "enqueue-hello": `node enqueue.${ending}`,
          doctor: "holdfast doctor",
          dashboard: "holdfast dashboard",
        },
        dependencies: { holdfast: `^${VERSION}`, ...(postgres ? { pg: "^8.23.0" } : {}) },
        devDependencies: { "@types/node": "^24.0.0" },
        engines: { node: ">=22.18" },
      },
      null,
      2,
    )}\n`,
    "tsconfig.json": `${JSON.stringify(
      {
        compilerOptions: {
          target: "es2024",
          module: "nodenext",
          types: ["node"],
          strict: true,
          noEmit: true,
          erasableSyntaxOnly: true,
          allowImportingTsExtensions: true,
        },
      },
      null,
      2,
    )}\n`,
    ".gitignore": "node_modules\n*.db\n*.db-wal\n*.db-shm\n",
    [config]: `// The jobs that \`holdfast work\` runs. HOLDFAST_URL and --url override the url here.
import { defineConfig } from "holdfast";
import { hello, remind } from "./jobs/hello.${ending}";

export default defineConfig({
  url: ${url},
  jobs: [hello, remind],
  work: { queues: { default: 10 } },
});
`,
    [`jobs/hello.${ending}`]: `// Two jobs: a greeting, and a reminder that the greeting enqueues with a delay.
import { defineJob } from "holdfast";

export const hello = defineJob({
  name: "hello",
  retry: { attempts: 3 },
  run: async (input: { name: string }, ctx) => {
    console.log(\`Hello, \${input.name}! (attempt \${ctx.attempt})\`);
    await ctx.enqueue(remind, { name: input.name }, { delay: "10s" });
    return { greeted: input.name };
  },
});

export const remind = defineJob({
  name: "remind",
  run: async (input: { name: string }) => {
    console.log(\`\${input.name}, ten seconds have passed.\`);
  },
});
`,
    [`enqueue.${ending}`]: `// Enqueues one job: node enqueue.${ending}
import { open } from "holdfast";
import config from "./${config}";
import { hello } from "./jobs/hello.${ending}";

const hf = await open(process.env.HOLDFAST_URL ?? config.url);
const { id } = await hf.enqueue(hello, { name: "Ada" });
console.log(\`enqueued \${id}\`);
await hf.close();
`,
  };
}
