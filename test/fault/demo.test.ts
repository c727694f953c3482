// `npm run demo` without its build (npm test has built): the story, its exit code, the counted summary, and what
// is left behind.
import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { expect, test } from "vitest";
import { temporaryDirectory } from "../support/guard.ts";
import { spawnNode, waitFor } from "../support/process.ts";

function runDemo(): { demo: ReturnType<typeof spawnNode>; folder: string } {
  const folder = temporaryDirectory("demo");
  return { demo: spawnNode("demo/main.ts", [], { TMPDIR: folder, NO_COLOR: "1" }), folder };
}

/** The numbers of the summary, by their names. */
function summaryOf(output: string): Map<string, number> {
  const [, summary = ""] = output.split("Counted from the store");
  const rows = summary.matchAll(/^([a-z][a-z ]*?) +(\d+)(?: |$)/gm);
  return new Map([...rows].map(([, name, n]) => [name!, Number(n)]));
}

function processesOn(folder: string): string[] {
  const { stdout } = spawnSync("ps", ["-eo", "args"], { encoding: "utf8" });
  return stdout.split("\n").filter((line) => line.includes(folder));
}

test("the demo ends with 0 and its counts add up, with nothing lost and nothing done twice", async () => {
  const { demo, folder } = runDemo();
  const { code } = await demo.exited;
  expect(code, demo.output).toBe(0);

  const counted = summaryOf(demo.output);
  const n = (name: string): number => counted.get(name) ?? Number.NaN;
  expect(n("lost"), demo.output).toBe(0);
  expect(n("done twice")).toBe(0);
  expect(n("too early")).toBe(0);
  expect(n("accepted")).toBeGreaterThan(80);
  expect(n("done") + n("dead") + n("cancelled")).toBe(n("accepted"));
  expect(n("dead")).toBe(3);
  expect(n("cancelled")).toBe(4);
  expect(n("taken over")).toBe(1);
  expect(demo.output).toMatch(/SIGKILL to worker-[12]/);
  expect(readdirSync(folder)).toEqual([]);
  expect(processesOn(folder)).toEqual([]);
});

test("the demo leaves nothing behind when it is interrupted", async () => {
  const { demo, folder } = runDemo();
  await waitFor(() => demo.output.includes("Enqueuing a long video job"), { what: "the demo to begin" });
  expect(processesOn(folder)).toHaveLength(2);
  demo.kill("SIGINT");
  expect((await demo.exited).code).toBe(130);
  await waitFor(() => processesOn(folder).length === 0, { what: "its workers to end" });
  expect(readdirSync(folder)).toEqual([]);
});
