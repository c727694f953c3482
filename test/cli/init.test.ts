// `holdfast init` writes a project; with the package as users get it, that project runs.
import { execFileSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { temporaryDirectory } from "../support/guard.ts";
import { read, root } from "../support/repository.ts";
import { onEveryStore } from "../support/stores.ts";
import { cli, folder } from "./support.ts";

const built = temporaryDirectory("built");
const bin = (name: string): string => join(root, "node_modules", ".bin", name);

beforeAll(() => {
  cpSync(join(root, "package.json"), join(built, "package.json"));
  run(bin("tsc"), ["-p", join(root, "tsconfig.build.json"), "--outDir", join(built, "dist")], root);
}, 120_000);

function symlinkOnce(from: string, to: string): void {
  mkdirSync(join(to, ".."), { recursive: true });
  if (!existsSync(to)) symlinkSync(from, to);
}

function run(
  command: string,
  args: readonly string[],
  cwd: string,
  more: Readonly<Record<string, string>> = {},
): string {
  const env = Object.fromEntries(
    Object.entries(process.env).filter(
      ([name]) => !/^(VITEST|NODE_OPTIONS|HOLDFAST_|DATABASE_URL|QUEUES)/.test(name),
    ),
  );
  return execFileSync(command, [...args], {
    cwd,
    env: { ...env, ...more },
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
    timeout: 60_000,
  });
}

test("the starter project compiles, enqueues, runs and is looked at, all with the built package", () => {
  const where = folder("starter");
  const main = join(built, "dist", "cli", "main.js");
  const holdfast = (args: readonly string[], cwd: string): string =>
    run(process.execPath, [main, ...args], cwd);
  expect(holdfast(["init", "my-app"], where)).toContain("npm run work");
  const app = join(where, "my-app");
  mkdirSync(join(app, "node_modules"));
  symlinkSync(built, join(app, "node_modules", "holdfast"));
  symlinkSync(join(root, "node_modules", "@types"), join(app, "node_modules", "@types"));
  run(bin("tsc"), ["-p", app], app);
  expect(run(process.execPath, ["enqueue.ts"], app)).toMatch(/^enqueued /);
  expect(holdfast(["enqueue", "hello", '{"name":"Grace"}'], app)).toMatch(/^enqueued /);
  const output = holdfast(["work", "--once"], app);
  expect(output).toContain("Hello, Ada!");
  expect(output).toContain("Hello, Grace!");
  const stats = JSON.parse(holdfast(["stats", "--json"], app)) as { totals: Record<string, number> };
  expect(stats.totals).toMatchObject({ done: 2, scheduled: 2 });
});

test.each([
  ["module", "ts"],
  ["commonjs", "mts"],
  [undefined, "mts"],
])(
  "[O18] init . in a project of type %s runs, and all of it uses one file, from any folder",
  (type, ending) => {
    const app = folder("project");
    const main = join(built, "dist", "cli", "main.js");
    const holdfast = (args: readonly string[], cwd: string): string =>
      run(process.execPath, [main, ...args], cwd);
    const manifest = JSON.stringify({ name: "mine", ...(type === undefined ? {} : { type }) });
    writeFileSync(join(app, "package.json"), manifest);
    const said = holdfast(["init", ".", "--postgres"], app);
    expect(said).toContain(`or set url in holdfast.config.${ending}`);
    for (const file of readdirSync(app))
      if (file !== "package.json") rmSync(join(app, file), { recursive: true });
    expect(holdfast(["init", "."], app)).toContain(`wrote  enqueue.${ending}\n`);
    expect(readFileSync(join(app, "package.json"), "utf8")).toBe(manifest);
    mkdirSync(join(app, "node_modules"));
    symlinkSync(built, join(app, "node_modules", "holdfast"));
    symlinkSync(join(root, "node_modules", "@types"), join(app, "node_modules", "@types"));
    run(bin("tsc"), ["-p", app], app);

    const elsewhere = join(app, "deep", "er");
    mkdirSync(elsewhere, { recursive: true });
    expect(run(process.execPath, [join("..", "..", `enqueue.${ending}`)], elsewhere)).toMatch(/^enqueued /);
    expect(holdfast(["enqueue", "hello", '{"name":"Grace"}'], join(app, "deep"))).toMatch(/^enqueued /);
    const output = holdfast(["work", "--once"], elsewhere);
    expect(output).toContain("Hello, Ada!");
    expect(output).toContain("Hello, Grace!");
    expect([existsSync(join(app, "jobs.db")), readdirSync(elsewhere)]).toEqual([true, []]);
  },
);

test("init where a config of another ending is: it is kept, and enqueue reads that one", async () => {
  const where = folder("other-ending");
  writeFileSync(join(where, "package.json"), "{}");
  writeFileSync(join(where, "holdfast.config.js"), "");
  const { written, kept } = (await cli(["init", "--json"], { cwd: where })).json<{
    written: string[];
    kept: string[];
  }>();
  expect(kept).toEqual(["package.json", "holdfast.config.js"]);
  expect(written).toContain("enqueue.mts");
  expect(readFileSync(join(where, "enqueue.mts"), "utf8")).toContain('from "./holdfast.config.js"');
});

onEveryStore((target) => {
  test("init --postgres: its project makes its database, enqueues and runs there", async () => {
    if (target.dialect === "sqlite") return; // that is the test above
    const store = await target.fresh();
    const where = folder("starter-postgres");
    const main = join(built, "dist", "cli", "main.js");
    symlinkOnce(join(root, "node_modules", "pg"), join(built, "node_modules", "pg"));
    const database = `hf_starter_${process.pid}_${target.name.replaceAll(/\W/g, "_")}`;
    const url = new URL(store.url);
    url.pathname = `/${database}`;
    onTestFinished(
      () => void store.query(`drop database if exists ${database} with (force)`).catch(() => {}),
    );
    const env = { HOLDFAST_URL: url.href };
    const holdfast = (args: readonly string[], cwd: string): string =>
      run(process.execPath, [main, ...args], cwd, env);
    expect(holdfast(["init", "my-app", "--postgres"], where)).toContain("export HOLDFAST_URL=postgres://…");
    const app = join(where, "my-app");
    expect(JSON.parse(readFileSync(join(app, "package.json"), "utf8"))).toMatchObject({
      dependencies: { pg: expect.stringMatching(/^\^8\./) as string },
    });
    mkdirSync(join(app, "node_modules"));
    symlinkSync(built, join(app, "node_modules", "holdfast"));
    expect(holdfast(["create"], app)).toContain("is ready");
    expect(run(process.execPath, ["enqueue.ts"], app, env)).toMatch(/^enqueued /);
    expect(holdfast(["work", "--once"], app)).toContain("Hello, Ada!");
    const stats = JSON.parse(holdfast(["stats", "--json"], app)) as { totals: Record<string, number> };
    expect(stats.totals).toMatchObject({ done: 1, scheduled: 1 });
    await store.query(`drop database ${database} with (force)`);
  });
});

test("the bin is a JavaScript file with a shebang", () => {
  const manifest = JSON.parse(read("package.json")) as { bin: { holdfast: string } };
  expect(manifest.bin.holdfast).toBe("dist/cli/main.js");
  expect(readFileSync(join(built, manifest.bin.holdfast), "utf8")).toMatch(/^#!\/usr\/bin\/env node\n/);
});

test("what is there already is kept, unless forced", async () => {
  const where = folder("kept");
  writeFileSync(join(where, "package.json"), "{}");
  const first = (await cli(["init", "--json"], { cwd: where })).json<{ written: string[]; kept: string[] }>();
  expect(first.kept).toEqual(["package.json"]);
  expect(first.written).toContain("holdfast.config.mts");
  // Its package.json has neither our script nor the package.
  const said = (await cli(["init"], { cwd: where })).out;
  expect(said).toMatch(/Next:\n {2}npm install holdfast\n {2}npx holdfast work /);
  rmSync(join(where, "tsconfig.json"));
  expect((await cli(["init"], { cwd: where })).out).toContain("\n  npm install --save-dev @types/node ");
  expect(readFileSync(join(where, "package.json"), "utf8")).toBe("{}");
  expect(
    (await cli(["init", "--json", "--force", "--postgres"], { cwd: where })).json<{ kept: string[] }>().kept,
  ).toEqual([]);
  expect(readFileSync(join(where, "holdfast.config.ts"), "utf8")).toContain("postgres://");
});
