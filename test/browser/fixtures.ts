// Features that this client does not have yet, as their adapters will give them: for tests of their screens alone.
import type { Adapters } from "../../src/dashboard/adapters.ts";
import type { FlowNode, FlowStep, ScheduleLine, Series } from "../../src/dashboard/contract.ts";

const hour = 3_600_000;

export function fixtures(done: string[]): Adapters {
  const now = Date.now();
  const schedule = (name: string, more: Partial<ScheduleLine>): ScheduleLine => ({
    name,
    job: "weekly-digest",
    queue: "mail",
    cron: "0 9 * * 1",
    everyMs: null,
    timezone: "Europe/London",
    paused: false,
    nextAt: now + hour,
    lastAt: now - hour,
    lastJobId: null,
    missed: "one",
    overlap: "skip",
    jitterMs: 0,
    fired: 12,
    skipped: 1,
    error: null,
    edited: false,
    ...more,
  });
  const say = (what: string) => async (): Promise<void> => void done.push(what);
  return {
    schedules: {
      list: async () => [
        schedule("digest", {}),
        schedule("sweep", { cron: null, everyMs: 60_000, paused: true, edited: true }),
      ],
      preview: async (_name, n) => Array.from({ length: n }, (_, i) => now + i * hour),
      change: async (name, change) => void done.push(`change ${name} ${JSON.stringify(change)}`),
      pause: (name) => say(`pause ${name}`)(),
      resume: (name) => say(`resume ${name}`)(),
      trigger: async (name) => {
        done.push(`trigger ${name}`);
        return "0199c1d8-7c00-7000-8000-000000000000";
      },
      remove: async (name) => {
        done.push(`remove ${name}`);
        return true;
      },
    },
    budgets: {
      list: async () => [{ name: "slack", limit: 50, perMs: 60_000, burst: 50, tokens: 12.5, nextAt: null }],
      set: async (name, budget) => void done.push(`budget ${name} ${JSON.stringify(budget)}`),
      drain: (name) => say(`drain ${name}`)(),
    },
    breakers: {
      list: async () => [
        {
          key: "queue:billing",
          state: "open",
          failures: 10,
          threshold: 10,
          openUntil: now + 30_000,
          error: "503 from the bank",
        },
        { key: "queue:mail", state: "closed", failures: 0, threshold: 10, openUntil: null, error: null },
      ],
      reset: async (key) => {
        done.push(`reset ${key}`);
        return true;
      },
    },
    lanes: {
      list: async () => ({
        lanes: [
          {
            queue: "mail",
            lane: "acme/eu",
            ready: { count: 40, more: false },
            running: 2,
            concurrency: 2,
            rate: { limit: 100, perMs: 60_000 },
            weight: 1,
            paused: false,
          },
        ],
        cursor: null,
      }),
      set: async (queue, lane, change) => void done.push(`lane ${queue} ${lane} ${JSON.stringify(change)}`),
    },
    flows: {
      history: async (id) => flow(id, 4),
      signal: (name) => say(`signal ${name}`)(),
    },
    series: async ({ from, to }) => series(from, to),
  };
}

export function flow(id: string, width: number) {
  const now = Date.now();
  const step = (name: string, more: Partial<FlowStep>): FlowStep => ({
    name,
    kind: "step",
    state: "done",
    attempt: 1,
    startedAt: now - 5_000,
    endedAt: now - 4_000,
    until: null,
    output: '{"ok":true,"password":"hunter2"}',
    error: null,
    jobId: null,
    ...more,
  });
  const node = (name: string, more: Partial<FlowNode> = {}): FlowNode => ({
    id: name,
    label: name,
    kind: "step",
    state: "done",
    jobId: null,
    startedAt: null,
    endedAt: null,
    ...more,
  });
  const middle = Array.from({ length: width }, (_, i) => `part-${i}`);
  return {
    steps: [
      step("fetch", {}),
      step("cool-off", { kind: "sleep", state: "waiting", endedAt: null, until: now + hour, output: null }),
      step("charge", { state: "failed", attempt: 3, error: "declined", output: null }),
    ],
    signals: [],
    children: [],
    graph: {
      nodes: [
        node(id, { label: "import", kind: "job", state: "running" }),
        ...middle.map((name, i) => node(name, { state: i === 0 ? "failed" : i === 1 ? "running" : "done" })),
        node("join", { state: "pending" }),
      ],
      edges: middle.flatMap((name) => [
        { from: id, to: name },
        { from: name, to: "join" },
      ]),
    },
  };
}

function series(from: number, to: number): Series {
  const at: number[] = [];
  for (let ms = from; ms < to; ms += 60_000) at.push(ms);
  const wave = (base: number) => at.map((_, i) => Math.round(base + (base / 3) * Math.sin(i / 6)));
  return {
    stepMs: 60_000,
    at,
    enqueued: wave(1_240),
    done: wave(1_200),
    retried: wave(20),
    dead: wave(2),
    waitMs: { p50: wave(4), p95: wave(22), p99: wave(80) },
    runMs: { p50: wave(40), p95: wave(120), p99: wave(300) },
  };
}
