// The live view: its picture as text, and what it does to a terminal. Progress bars.
import { expect, test } from "vitest";
import { frame, sparkline, type TopState } from "../../src/cli/monitor/top-command.ts";
import { onEveryStore } from "../support/stores.ts";
import { fresh } from "../support/test-clients.ts";
import { on } from "./support.ts";

const at = new Date("2026-01-31T12:00:00Z");
const durations = { count: 1, mean: 12, p50: 10, p95: 20, p99: 30 };
const state: TopState = {
  at,
  place: "sqlite:jobs.db",
  trouble: null,
  queues: ["quiet", "mail"].map((name, i) => ({
    name,
    paused: i === 0,
    pausedAt: i === 0 ? new Date(at.getTime() - 60_000) : null,
    draining: false,
    drainingAt: null,
    coolUntil: null,
    atLeast: [],
    lagMs: i * 1_500,
    nextDueAt: null,
    unserved: [],
    counts: { ready: i * 1_234, scheduled: 5, running: i * 7, waiting: 0 },
    settings: {
      concurrency: null,
      rate: null,
      weight: null,
      backoff: null,
      retention: null,
      cooldown: null,
      slots: null,
      total: null,
      breaker: null,
    },
  })),
  workers: [
    {
      session: 1,
      id: "host-1-abc",
      kind: "worker",
      name: "night\u001b[2J",
      host: "host",
      pid: 42,
      runtime: null,
      release: null,
      versions: {},
      version: "0.1.0",
      queues: { mail: 10 },
      names: ["send"],
      startedAt: new Date(at.getTime() - 3_600_000),
      beatAt: new Date(at.getTime() - 2_000),
      leaseUntil: at,
      stopping: false,
      quietAt: null,
      jobs: ["a", "b"],
    },
  ],
  minutes: [0, 5, 10].map((done, i) => ({
    at: new Date(at.getTime() - (2 - i) * 60_000),
    done,
    failed: 0,
    dead: 0,
    cancelled: 0,
    throttled: 0,
    released: 0,
    lost: 0,
    ran: durations,
    waited: durations,
  })),
};
const plain = (_tone: string, text: string): string => text;

test("a quiet quarter of an hour is told as such: the minutes that were measured do not move up to now", () => {
  const later = { ...state, at: new Date(at.getTime() + 5 * 60_000) };
  expect(frame(later, (_tone, text) => text, 160, 40)).toContain(
    "last 15 min ▁▁▁▁▁▁▁▁▄█▁▁▁▁▁  no job ended in the last minute",
  );
});

test("the picture of queues, workers and minutes", async () => {
  await expect(frame(state, plain, 120, 40)).toMatchFileSnapshot("snapshots/top-frame.txt");
});

test("it fits the window, shows trouble, and lets no job data paint", () => {
  expect(frame(state, plain, 120, 6).split("\n")).toHaveLength(5);
  expect(frame({ ...state, trouble: "ECONNREFUSED" }, plain, 120, 40)).toContain(
    "does not answer: ECONNREFUSED",
  );
  expect(frame(state, plain, 120, 40)).not.toContain("\u001b");
  expect(sparkline([0, 1, 7])).toBe("▁▂█");
});

onEveryStore((target) => {
  test("on a terminal it draws in the other screen until it is told to end, and puts the terminal back", async () => {
    const { hf, store } = await fresh(target);
    await hf.enqueue("hello", null);
    const ending = new AbortController();
    // Ended after its second picture.
    const onOut = (out: string): void => {
      if (out.split("holdfast top").length > 2) ending.abort();
    };
    const { code, out } = await on(store)(["top", "--every", "100ms"], {
      tty: true,
      signal: ending.signal,
      onOut,
    });
    expect(code).toBe(0);
    expect(out.startsWith("\u001b[?1049h\u001b[?25l")).toBe(true);
    expect(out.endsWith("\u001b[?25h\u001b[?1049l")).toBe(true);
    expect(out).toContain("holdfast top");
  });

  test("long work shows a bar on a terminal's standard error, and none elsewhere", async () => {
    const { hf, store } = await fresh(target);
    const many = async (): Promise<void> => {
      await hf.enqueueMany(
        Array.from({ length: 1_200 }, () => ({ job: "hello", input: null, queue: "bulk" })),
      );
    };
    await many();
    const line = ["jobs", "cancel", "--queue", "bulk", "--state", "ready", "--force"];
    const shown = await on(store)(line, { tty: true, env: { NO_COLOR: "1" } });
    expect(shown.err).toMatch(/cancel [█░]+ +\d+ %/);
    expect(shown.err).toContain("1,200 of 1,200");
    expect(shown.out).not.toContain("█");
    await many();
    expect((await on(store)(line)).err).toBe("");
  });
});

test("in a narrow terminal the columns that matter least go, and what is wrong stays in sight", () => {
  const queues = state.queues.map((queue) => ({ ...queue, unserved: queue.name === "mail" ? ["send"] : [] }));
  const minutes = state.minutes.map((minute) => ({ ...minute, dead: 3 }));
  const text = frame({ ...state, queues, minutes }, plain, 60, 24);
  expect(text).toContain("10 done, 3 dead in the last");
  expect(text).toContain("no worker for send");
  expect(text).toContain("paused 1m ago");
  expect(text).toMatch(/^lag 1\.5s {3}workers 1$/m); // on a line of its own
  expect(text).not.toMatch(/ limit | host /);
  expect(frame({ ...state, queues, minutes }, plain, 160, 24)).toMatch(/ scheduled .* limit /);
});

test("in a narrow terminal no line is wider than it, whatever its colours", () => {
  const painted = frame(state, (_tone, text) => `\u001b[31m${text}\u001b[39m`, 40, 20);
  // oxlint-disable-next-line no-control-regex -- the colours are made of it
  for (const line of painted.replaceAll(/\u001b\[[0-9;]*m/g, "").split("\n"))
    expect(Array.from(line).length).toBeLessThanOrEqual(40);
  expect(painted).toContain("…");
  expect(frame(state, (_tone, text) => text, 200, 20)).not.toContain("…");
});
