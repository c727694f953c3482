// ARCHITECTURE.md lists the files that a piece of work goes through. This test records what really runs, and fails if a list is wrong.
//
// A file is listed if functions of 20 lines or more of it run on one of the two databases. Between 20 and 40 lines the test is not
// strict, because a heartbeat or a poll may run beside the work.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { spawnNode } from "../support/process.ts";
import { read, root } from "../support/repository.ts";
import { onEveryStore } from "../support/stores.ts";

const page = "ARCHITECTURE.md";
const [listedFrom, surelyFrom] = [20, 40];

const walks: Readonly<Record<string, string>> = {
  job: "A plain job, from `enqueue` to its end",
  step: "A job with one step",
  schedule: "A schedule that fires",
  limits: "A job with a lane that has limits",
  request: "A request to the dashboard: the list of ready jobs",
  command: "A command: `holdfast jobs list`",
};

interface Recorded {
  /** Lines of the functions that ran every time, by file. */
  readonly files: Readonly<Record<string, number>>;
  /** Files of which anything ran at all. */
  readonly ever: readonly string[];
}
const recorded = new Map<string, Map<string, Recorded>>();

onEveryStore((target) => {
  for (const walk of Object.keys(walks))
    test(`the walk "${walk}" is recorded`, async () => {
      const fresh = await target.fresh();
      const args = [fresh.url, fresh.options.schema ?? "", walk];
      await using child = spawnNode("test/support/walk-recorder.ts", args);
      const { files, ever } = (await child.message("walk")) as unknown as Recorded;
      expect(Object.keys(files).length).toBeGreaterThan(5);
      const byDialect = recorded.get(walk) ?? new Map<string, Recorded>();
      recorded.set(walk, byDialect.set(target.dialect, { files, ever }));
    });
});

test.each(Object.keys(walks))(`${page} lists the files of the walk "%s"`, (walk) => {
  const found = [...recorded.get(walk)!.values()];
  expect(found).toHaveLength(2);
  if (process.env["HOLDFAST_WRITE_WALKS"] !== undefined) write(walk, found);
  const listed = filesIn(sectionOf(walk));
  const run = new Set(found.flatMap(({ ever }) => ever));
  expect(
    listed.filter((file) => !run.has(file)),
    "listed, but nothing of it runs",
  ).toEqual([]);
  const surely = found.flatMap(({ files }) => over(files, surelyFrom));
  expect(
    [...new Set(surely)].filter((file) => !listed.includes(file)),
    "runs, but is not listed",
  ).toEqual([]);
});

function over(files: Recorded["files"], lines: number): string[] {
  return Object.keys(files).filter((file) => files[file]! >= lines);
}

function sectionOf(walk: string): string {
  const [, section] = new RegExp(`<!-- walk ${walk} -->\n([^]*?)<!-- end of walk -->`).exec(read(page)) ?? [];
  return section ?? "";
}

function filesIn(section: string): string[] {
  return [...section.matchAll(/^\| `([^`]+)`/gm)].map(([, file]) => file!);
}

function write(walk: string, found: readonly Recorded[]): void {
  const all = [...new Set(found.flatMap(({ files }) => over(files, listedFrom)))];
  const most = (file: string): number => Math.max(...found.map(({ files }) => files[file] ?? 0));
  const rows = all
    .toSorted((a, b) => most(b) - most(a))
    .map((file) => `| \`${file}\` | ${purposeOf(file)} |`);
  const called = found.map(({ files }) => Object.keys(files).length);
  const table = `| file | |\n|---|---|\n${rows.join("\n")}\n\n${called.join(" files run on SQLite, ")} on Postgres.\n`;
  const text = read(page).replace(
    new RegExp(`<!-- walk ${walk} -->[^]*?<!-- end of walk -->`),
    () => `<!-- walk ${walk} -->\n\n**${walks[walk]}**\n\n${table}\n<!-- end of walk -->`,
  );
  writeFileSync(join(root, page), text);
}

/** The first sentence of its opening comment. */
function purposeOf(file: string): string {
  const [, opening = ""] =
    /^(?:#!.*\n)?(?:\/\*\*([^]*?)\*\/|((?:\/\/.*\n)+))/.exec(read(`src/${file}`)) ?? [];
  const text = opening
    .replaceAll(/^\s*\*\s?/gm, "")
    .trim()
    .split(/\n\s*\n/)[0]!
    .replaceAll(/\s+/g, " ");
  return (/^.*?\.(?=\s|$)/.exec(text)?.[0] ?? text).replaceAll("|", "\\|");
}
