// A Node that is too old is named by every entry of the package and by the command line, before anything else fails of it.
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import { checkNode, oldNode } from "../src/node-version.ts";
import { read, root } from "./support/repository.ts";

const exported = (JSON.parse(read("package.json")) as { exports: Record<string, unknown> }).exports;
const entries = Object.values(exported).flatMap((target) =>
  typeof target === "object" && target !== null && "default" in target
    ? [String(target.default).replace("./dist/", "src/").replace(".js", ".ts")]
    : [],
);
const message = "Node v20.20.2 is too old for holdfast. Use Node 22.18 or newer.";
/** For --import: Node is told to be another, before the program is loaded. */
const nodeIs = (version: string): string =>
  `data:text/javascript,${encodeURIComponent(`Object.defineProperty(process, "version", { value: "${version}" });`)}`;

function importing(entry: string, node: string, version: string | null): unknown {
  const url = pathToFileURL(join(root, entry)).href;
  const program = `
    await import(${JSON.stringify(url)}).then(
      () => console.log(JSON.stringify("loaded")),
      ({ name, code, message }) => console.log(JSON.stringify({ name, code, message })),
    );`;
  const fake = version === null ? [] : ["--import", nodeIs(version)];
  const args = [...fake, "--input-type=module", "--eval", program];
  return JSON.parse(execFileSync(node, args, { encoding: "utf8", cwd: root })) as unknown;
}

test.each(entries)("[O18] %s: imported on a Node that is too old, it says which one to take", (entry) => {
  expect(importing(entry, process.execPath, "v20.20.2")).toEqual({
    name: "StateError",
    code: "NODE_TOO_OLD",
    message,
  });
});

test.each(entries)("%s looks at the version of Node before it imports anything else", (entry) => {
  const [first] = /^(?:import|export) [^;]*;/m.exec(read(entry)) ?? [];
  expect(first).toMatch(/^import "\.\.?\/supported-node\.ts";$/);
});

test("a bundler may not leave the look out, although nothing is imported from it: each entry has that side effect", () => {
  const { sideEffects } = JSON.parse(read("package.json")) as { sideEffects: readonly string[] };
  const files = [...entries, "src/supported-node.ts"].map(
    (file) => `./${file.replace("src/", "dist/").replace(".ts", ".js")}`,
  );
  expect([...sideEffects].sort()).toEqual(files.sort());
});

test.each([
  ["v22.18.0", null],
  ["v24.0.0", null],
  ["v22.17.1", "Use Node 22.18 or newer."],
  ["v18.20.0", "Use Node 22.18 or newer."],
])("Node %s: %s", (version, remedy) => {
  expect(oldNode(version)).toBe(remedy);
});

test("other runtimes, which name a Node that they are like, are let in; so is one without a process", () => {
  expect(() => checkNode({ version: "v22.6.0", versions: { node: "22.6.0" } })).toThrow("is too old");
  expect(() => checkNode({ version: "v22.6.0", versions: { node: "22.6.0", bun: "1.2.0" } })).not.toThrow();
  expect(() => checkNode({ version: "v20.0.0", versions: { node: "20.0.0", deno: "2.0.0" } })).not.toThrow();
  expect(() => checkNode(undefined)).not.toThrow();
});

test("[O18] the command line says it on one line, and as JSON where that is asked for", () => {
  const holdfast = (...args: string[]) =>
    spawnSync(process.execPath, ["--import", nodeIs("v20.20.2"), "src/cli/main.ts", ...args], {
      encoding: "utf8",
      cwd: root,
    });
  expect(holdfast("stats")).toMatchObject({
    status: 1,
    stdout: "",
    stderr: `error NODE_TOO_OLD  ${message}\n`,
  });
  const { stderr } = holdfast("stats", "--json");
  expect(JSON.parse(stderr)).toMatchObject({ error: { code: "NODE_TOO_OLD", message } });
});

const old = "/usr/bin/node";
const oldIsThere =
  existsSync(old) && oldNode(spawnSync(old, ["--version"], { encoding: "utf8" }).stdout.trim()) !== null;
test.skipIf(!oldIsThere || !existsSync(join(root, "dist/supported-node.js")))(
  "a Node of this machine that really is too old: the built package says so (skipped where there is none, or no build)",
  () => {
    for (const entry of entries)
      expect(importing(entry.replace("src/", "dist/").replace(".ts", ".js"), old, null), entry).toMatchObject(
        { code: "NODE_TOO_OLD" },
      );
    const { status, stderr } = spawnSync(old, [join(root, "dist/cli/main.js"), "help"], { encoding: "utf8" });
    expect([status, stderr]).toEqual([1, expect.stringMatching(/^error NODE_TOO_OLD {2}Node v/)]);
  },
);
