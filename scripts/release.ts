// `npm run release`: refuses while work is pending, runs the tests, packs, and prints the steps that publish. It changes
// nothing. The tag that it asks for starts .github/workflows/release.yml.
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** Reasons against a release from this repository, except for its tests. */
export function refusals(directory: string): string[] {
  const git = (...args: string[]): string =>
    execFileSync("git", args, {
      cwd: directory,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    }).trim();
  const found: string[] = [];

  const changed = git("status", "--porcelain");
  if (changed !== "") found.push(`uncommitted changes:\n${changed}`);
  const branch = git("branch", "--show-current");
  if (branch !== "main") found.push(`the branch is ${branch === "" ? "detached" : branch}, not main`);
  if (git("remote").split("\n").includes("origin")) {
    git("fetch", "--quiet", "--tags", "origin", "main");
    if (git("rev-parse", "HEAD") !== git("rev-parse", "FETCH_HEAD"))
      found.push("main differs from origin's: pull, push, and wait for its tests");
  }

  const version = versionOf(directory);
  const released = git("tag", "--list", "v*")
    .split("\n")
    .map((tag) => tag.slice(1))
    .filter((tag) => parse(tag) !== null)
    .sort(compare);
  const last = released.at(-1);
  if (parse(version) === null) found.push(`${version} is no version of three numbers`);
  else if (last !== undefined && compare(version, last) <= 0)
    found.push(
      `the version is ${version}, and ${last} is released: raise it in package.json and src/version.ts`,
    );

  const changelog = join(directory, "CHANGELOG.md");
  const headings = existsSync(changelog) ? readFileSync(changelog, "utf8").match(/^## .*$/gm) : null;
  const heading = new RegExp(
    String.raw`^## \[${version.replaceAll(".", String.raw`\.`)}\] - \d{4}-\d\d-\d\d$`,
  );
  if (headings?.some((line) => heading.test(line)) !== true)
    found.push(`CHANGELOG.md has no section "## [${version}] - YYYY-MM-DD"`);
  if (headings?.some((line) => line.startsWith("## [Unreleased]")) === true)
    found.push('CHANGELOG.md still has a section "## [Unreleased]"');
  return found;
}

function versionOf(directory: string): string {
  return (JSON.parse(readFileSync(join(directory, "package.json"), "utf8")) as { version: string }).version;
}

function parse(version: string): number[] | null {
  return /^\d+\.\d+\.\d+$/.test(version) ? version.split(".").map(Number) : null;
}

function compare(a: string, b: string): number {
  const [left, right] = [parse(a) ?? [], parse(b) ?? []];
  const differs = left.findIndex((part, i) => part !== right[i]);
  return differs === -1 ? 0 : (left[differs] ?? 0) - (right[differs] ?? 0);
}

function main(directory: string): number {
  const found = refusals(directory);
  if (found.length > 0) {
    console.error(`No release:\n${found.map((reason) => `- ${reason}`).join("\n")}`);
    return 1;
  }
  for (const args of [["test"], ["pack", "--dry-run"]]) {
    if (spawnSync("npm", args, { cwd: directory, stdio: "inherit" }).status === 0) continue;
    console.error(`No release:\n- npm ${args.join(" ")} failed`);
    return 1;
  }
  const version = versionOf(directory);
  console.log(
    [
      "",
      `Ready to release ${version}:`,
      `  git tag -a v${version} -m "Holdfast ${version}"`,
      `  git push origin v${version}     # the workflow tests again and runs npm publish --provenance`,
      `  npm view holdfast@${version}    # shows the published package`,
    ].join("\n"),
  );
  return 0;
}

if (import.meta.main) process.exitCode = main(process.cwd());
