// The package as a user gets it: packed, checked, installed into an empty project, and the README's first program
// run from there. Built in a directory of its own, so that it neither trusts nor disturbs dist/.
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliDecompressSync, gunzipSync, gzipSync } from "node:zlib";
import { beforeAll, describe, expect, test } from "vitest";
import { temporaryDirectory } from "../support/guard.ts";
import { typescriptBlocks } from "../support/markdown.ts";
import { read, root } from "../support/repository.ts";

const bin = (name: string): string => join(root, "node_modules", ".bin", name);
const manifest = JSON.parse(read("package.json")) as Record<string, unknown> & {
  exports: Record<string, unknown>;
};

describe("the tarball", () => {
  const staging = temporaryDirectory("pack");
  const project = temporaryDirectory("install");
  let tarball = "";

  beforeAll(() => {
    for (const file of ["package.json", "README.md", "LICENSE", "src"]) {
      if (existsSync(join(root, file))) cpSync(join(root, file), join(staging, file), { recursive: true });
    }
    run(bin("tsc"), ["-p", join(root, "tsconfig.build.json"), "--outDir", join(staging, "dist")], root);
    const page = join(staging, "dist", "dashboard", "page");
    run(bin("vite"), ["build", "ui", "--logLevel", "warn", "--outDir", page], root);
    const packed = run("npm", ["pack", "--ignore-scripts", "--json", "--pack-destination", staging], staging);
    expect(packed).toContain(".tgz");
    tarball = join(
      staging,
      readdirSync(staging).find((file) => file.endsWith(".tgz"))!,
    );

    mkdirSync(project, { recursive: true });
    writeFileSync(
      join(project, "package.json"),
      JSON.stringify({ name: "empty", private: true, type: "module" }),
    );
    run("npm", ["install", "--offline", "--no-audit", "--no-fund", tarball], project);
  }, 120_000);

  test("passes publint", () => {
    run(bin("publint"), ["run", "--strict", tarball], staging);
  });

  test("passes arethetypeswrong", () => {
    run(bin("attw"), ["--profile", "esm-only", tarball], staging);
  });

  test("has every export, with types, and nothing that is not for users", () => {
    const installed = join(project, "node_modules", "holdfast");
    for (const [subpath, target] of Object.entries(manifest.exports)) {
      const paths = typeof target === "string" ? [target] : Object.values(target as Record<string, string>);
      for (const path of paths) expect(existsSync(join(installed, path)), `${subpath} → ${path}`).toBe(true);
    }
    expect(existsSync(join(installed, "dist/dashboard/page/index.html")), "the dashboard's page").toBe(true);
    expect(readdirSync(installed).sort()).toEqual(["LICENSE", "README.md", "dist", "package.json", "src"]);
  });

  test("has a page whose first script is small: graphs, charts and logs come when they are looked at", () => {
    const page = join(project, "node_modules", "holdfast", "dist", "dashboard", "page");
    const html = readFileSync(join(page, "index.html"), "utf8");
    const scripts = [...html.matchAll(/<(?:script|link)[^>]*(?:src|href)="([^"]+\.js)"/g)];
    expect(scripts.length).toBeGreaterThan(0);
    const bytes = scripts.map(([, path]) => gzipSync(readFileSync(join(page, path!))).length);
    expect(bytes.reduce((sum, one) => sum + one, 0)).toBeLessThanOrEqual(60 * 1_024);
  });

  test("has the page's scripts and styles packed beside them, and what is packed is what it was made of", () => {
    const assets = join(project, "node_modules", "holdfast", "dist", "dashboard", "page", "assets");
    const large = readdirSync(assets).filter(
      (name) => /\.(?:js|css)$/.test(name) && statSync(join(assets, name)).size >= 1_024,
    );
    expect(large.length).toBeGreaterThan(5);
    for (const name of large) {
      const plain = readFileSync(join(assets, name));
      expect(brotliDecompressSync(readFileSync(join(assets, `${name}.br`))).equals(plain), name).toBe(true);
      expect(gunzipSync(readFileSync(join(assets, `${name}.gz`))).equals(plain), name).toBe(true);
    }
  });

  test("brings no other package, no database, no test server and no install script", () => {
    const scripts = manifest["scripts"] as Record<string, string>;
    expect(Object.keys(scripts).filter((name) => /^(pre|post)?install$|^prepare$/.test(name))).toEqual([]);
    expect(manifest["optionalDependencies"]).toBeUndefined();
    expect(manifest["dependencies"]).toBeUndefined();
    expect(
      readdirSync(join(project, "node_modules")).filter((name) => /^pg|sqlite|postgres/.test(name)),
    ).toEqual([]);
  });

  test("loads by import and by require", () => {
    const names = `Object.keys(holdfast).includes("open")`;
    writeFileSync(
      join(project, "esm.mjs"),
      `import * as holdfast from "holdfast"; if (!(${names})) throw new Error("no open");`,
    );
    writeFileSync(
      join(project, "cjs.cjs"),
      `const holdfast = require("holdfast"); if (!(${names})) throw new Error("no open");`,
    );
    run(process.execPath, ["esm.mjs"], project);
    run(process.execPath, ["cjs.cjs"], project);
  });

  test("says what to install when Postgres is asked for and pg is not there", () => {
    const program = `import { open } from "holdfast"; try { await open("postgres://localhost/app"); } catch (error) { console.log(error.code, error.message); }`;
    writeFileSync(join(project, "missing.mjs"), program);
    expect(run(process.execPath, ["missing.mjs"], project)).toMatch(/^DRIVER_MISSING .*npm install pg/);
  });

  test("runs the README's quick start as it is printed", () => {
    const start = typescriptBlocks("README.md", read("README.md")).find(
      (block) => block.mark === "quick-start",
    );
    expect(start, "README.md has no ```ts block below <!-- quick-start -->").toBeDefined();
    writeFileSync(join(project, "quick-start.ts"), start!.code);
    run(process.execPath, ["quick-start.ts"], project);
  });
});

/** Gives standard output; a failure shows all that was printed. */
function run(command: string, args: string[], cwd: string): string {
  const env: NodeJS.ProcessEnv = { ...process.env };
  for (const name of Object.keys(env)) {
    // npm's and vitest's own variables would make a user's npm behave like ours, and a build one for tests.
    if (
      /^(npm_(?!config_(?:registry|cache|userconfig|globalconfig)$)|VITEST|NODE_OPTIONS$|NODE_ENV$|HOLDFAST_URL$|DATABASE_URL$)/i.test(
        name,
      )
    ) {
      delete env[name];
    }
  }
  try {
    return execFileSync(command, args, {
      cwd,
      env,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
      timeout: 60_000,
    });
  } catch (error) {
    const { stdout = "", stderr = "" } = error as { stdout?: string; stderr?: string };
    throw new Error(`${command} ${args.join(" ")} failed:\n${stdout}${stderr}`, { cause: error });
  }
}
