// Every program in examples/ runs as it stands, by its own name for the package (npm test has built it before).
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { temporaryDirectory } from "./support/guard.ts";
import { spawnNode, waitFor } from "./support/process.ts";
import { root } from "./support/repository.ts";

const outputs: Readonly<Record<string, RegExp>> = {
  "batch.ts": /What we have is ready\nJOB_CANCELLED/,
  "cancel.ts": /cancel_requested\nJOB_CANCELLED\ncancelled/,
  "fake-time.ts": /a day has passed/,
  "hello.ts": /Hello, Ada!/,
  "machine.ts": /summing up\n[^]*paper jam\nfailed at step: print\n\{ printed: 'total 6' \}/,
  "own-loop.ts": /1² = 1, 2² = 4, 3² = 9/,
  "schedule.ts": /reports: 2026-03-28T01:30:00.000Z, 2026-03-29T01:00:00.000Z/,
  "retries.ts": /done: fetched in attempt 3[^]*does not exist[^]*status 500/,
  "saga.ts": /booked flight\nbooked hotel\n[^]*gave back hotel-1\ngave back flight-1\n[^]*JOB_DEAD/,
  "transaction.ts": /receipt for order 1\njobs: 1, orders: 1/,
  "unique.ts": /enqueued\ndebounced\ndebounced\nnotes: 30 words/,
  "workflow.ts": /^charging for o-1\nch_1: o-1\/1, o-1\/2\ndone charge[^]*done call:print-label#2/,
};
const examples = readdirSync(join(root, "examples")).filter((file) => file.endsWith(".ts"));

test("the package is built, since the examples import it by its name", () => {
  expect(existsSync(join(root, "dist/index.js")), "run: npm run build").toBe(true);
});

test("every example is run by a test", () => {
  expect([...Object.keys(outputs), "kill-me.ts"].sort()).toEqual(examples.sort());
});

test.each(Object.keys(outputs))("examples/%s runs", async (file) => {
  const example = spawnNode(`examples/${file}`);
  const { code } = await example.exited;
  expect(code, example.output).toBe(0);
  expect(example.output).toMatch(outputs[file]!);
});

test("examples/kill-me.ts is killed, started again, and finishes the same job", async () => {
  const url = `sqlite:${join(temporaryDirectory("example"), "jobs.db")}`;
  const first = spawnNode("examples/kill-me.ts", [], { HOLDFAST_URL: url });
  await waitFor(() => first.output.includes("2 of 10"), { what: "the job to be under way" });
  first.kill("SIGKILL");
  await first.exited;
  const id = /enqueued job (\S+)/.exec(first.output)?.[1] ?? "(none)";

  const second = spawnNode("examples/kill-me.ts", [], { HOLDFAST_URL: url });
  const { code } = await second.exited;
  expect(code, second.output).toBe(0);
  expect(second.output).toContain(`job ${id} was there already`);
  expect(second.output).toContain("counted to 10");
});
