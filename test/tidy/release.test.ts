// scripts/release.ts refuses while work is pending.
import { execFileSync, spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { refusals } from "../../scripts/release.ts";
import { temporaryDirectory } from "../support/guard.ts";
import { root } from "../support/repository.ts";

interface Scratch {
  readonly directory: string;
  readonly git: (...args: string[]) => string;
  readonly write: (file: string, text: string) => void;
}

const manifest = (version: string, tests = "exit 0"): string =>
  JSON.stringify({ name: "scratch", version, scripts: { test: tests } });
const changelog = (...headings: string[]): string => headings.map((line) => `## ${line}\n`).join("\n");

/** A repository on main that may be released as 1.10.0. */
function repository(): Scratch {
  const directory = temporaryDirectory("release");
  const identity = ["-c", "user.name=Tester", "-c", "user.email=tester@example.org"];
  const git = (...args: string[]): string =>
    execFileSync("git", [...identity, ...args], { cwd: directory, encoding: "utf8" });
  const write = (file: string, text: string): void => writeFileSync(join(directory, file), text);
  git("init", "--quiet", "--initial-branch", "main");
  write("package.json", manifest("1.10.0"));
  write("CHANGELOG.md", changelog("[1.10.0] - 2026-01-02", "[1.9.0] - 2025-12-01"));
  git("add", ".");
  git("commit", "--quiet", "--message", "Raise the version");
  git("tag", "v1.9.0", "HEAD");
  return { directory, git, write };
}

function release(directory: string): { status: number | null; output: string } {
  const script = join(root, "scripts/release.ts");
  const { status, stdout, stderr } = spawnSync(process.execPath, [script], {
    cwd: directory,
    encoding: "utf8",
  });
  return { status, output: stdout + stderr };
}

test("a clean main with a raised version and its section in the changelog is ready, and the steps are printed", () => {
  const { directory } = repository();
  expect(refusals(directory)).toEqual([]);
  const { status, output } = release(directory);
  expect(output).toContain("git tag -a v1.10.0");
  expect(status).toBe(0);
});

test("a release with failing tests is refused", () => {
  const { directory, git, write } = repository();
  write("package.json", manifest("1.10.0", "exit 1"));
  git("commit", "--quiet", "--all", "--message", "Break the tests");
  const { status, output } = release(directory);
  expect(output).toContain("npm test failed");
  expect(output).not.toContain("git tag");
  expect(status).toBe(1);
});

test("a release with uncommitted changes is refused before its tests run", () => {
  const { directory, write } = repository();
  write("new.ts", "");
  const { status, output } = release(directory);
  expect(output).toContain("uncommitted changes:\n?? new.ts");
  expect(output).not.toContain("scratch@");
  expect(status).toBe(1);
});

test("a release from another branch, or from main that origin does not have, is refused", () => {
  const { directory, git } = repository();
  git("switch", "--quiet", "--create", "topic");
  expect(refusals(directory)).toEqual(["the branch is topic, not main"]);
  git("switch", "--quiet", "main");
  const origin = temporaryDirectory("origin");
  execFileSync("git", ["clone", "--quiet", "--bare", directory, origin]);
  git("remote", "add", "origin", origin);
  expect(refusals(directory)).toEqual([]);
  git("commit", "--quiet", "--allow-empty", "--message", "Not pushed");
  expect(refusals(directory)).toEqual(["main differs from origin's: pull, push, and wait for its tests"]);
});

test.each(["1.10.0", "1.9.9", "0.99.0"])("version %s after 1.10.0 is refused", (version) => {
  const { directory, git, write } = repository();
  git("tag", "v1.10.0");
  write("package.json", manifest(version));
  write("CHANGELOG.md", changelog(`[${version}] - 2026-01-02`));
  if (version !== "1.10.0") git("commit", "--quiet", "--all", "--message", "Lower the version");
  else git("checkout", "--quiet", ".");
  expect(refusals(directory)).toEqual([
    expect.stringContaining(`the version is ${version}, and 1.10.0 is released`),
  ]);
});

test("a version without a dated section, or with unreleased changes beside it, is refused", () => {
  const { directory, git, write } = repository();
  for (const [headings, reasons] of [
    [["[1.9.0] - 2025-12-01"], ["has no section"]],
    [["[1.10.0]"], ["has no section"]],
    [["[Unreleased] 1.10.0"], ["has no section", "still has"]],
    [["[Unreleased]", "[1.10.0] - 2026-01-02"], ["still has"]],
  ] as const) {
    write("CHANGELOG.md", changelog(...headings));
    git("commit", "--quiet", "--all", "--message", "Change the changelog");
    expect(refusals(directory)).toEqual(reasons.map((reason) => expect.stringContaining(reason) as string));
  }
});
