// The real client, worker and store in virtual time, with faults drawn from a seed: no promise may break, whatever the seed.
// HOLDFAST_SEEDS=1-1000 runs others; a seed that fails is replayed by HOLDFAST_SEEDS=<seed>.
import { describe, expect, test } from "vitest";
import { check } from "./checker.ts";
import type { Entry, FinalState, RowChange } from "./history.ts";
import { simulate } from "./simulate.ts";
import type { FaultKind } from "./simulated-driver.ts";

const [first = 1, last = first + 11] = (process.env["HOLDFAST_SEEDS"] ?? "1-12").split("-").map(Number);
const seeds = Array.from({ length: (Number.isNaN(last) ? first : last) - first + 1 }, (_, i) => first + i);

describe("runs of the simulator", () => {
  test("[M1] break no promise, and meet faults of many kinds", { timeout: 3_600_000 }, async () => {
    const faults = new Map<FaultKind, number>();
    for (const seed of seeds) {
      const { violations, jobs, faults: met } = await simulate(seed);
      expect({ seed, violations }).toEqual({ seed, violations: [] });
      expect(jobs, `jobs of seed ${seed}`).toBeGreaterThan(50);
      for (const [kind, n] of met) faults.set(kind, (faults.get(kind) ?? 0) + n);
    }
    const needed: readonly FaultKind[] = [
      "answerLost",
      "refused",
      "delayed",
      "cut",
      "deadlinePassed",
      "wakeLost",
    ];
    if (seeds.length >= 12) expect(needed.filter((kind) => !faults.has(kind))).toEqual([]);
  });

  test("[M1] are the same for the same seed", { timeout: 240_000 }, async () => {
    const [one, two] = [await simulate(7), await simulate(7)];
    expect(two.events).toBe(one.events);
    expect(two.history).toEqual(one.history);
  });
});

const nothing: FinalState = { drained: true, jobs: new Map(), leftovers: {}, signals: [] };

function row(change: RowChange, more: Partial<Extract<Entry, { what: "row" }>> = {}): Entry {
  const base = {
    at: 0,
    what: "row",
    id: "j",
    name: "plain",
    queue: "default",
    key: null,
    lane: null,
  } as const;
  return { ...base, change, token: null, session: null, detail: null, holders: null, ...more };
}

function ran(what: "start" | "finish", token: number, more: object = {}): Entry {
  return { at: 0, what, id: "j", name: "plain", token, attempt: 1, stale: false, ...more };
}

const done = {
  ...nothing,
  jobs: new Map([["j", { name: "plain", state: "done", attempt: 1, crashes: 0, output: null }]]),
};
const life = [
  row("born"),
  { at: 0, what: "accepted", id: "j", name: "plain" } as const,
  row("claimed", { token: 1 }),
  ran("start", 1),
  ran("finish", 1, { how: "ok" }),
  row("ended", { detail: "done" }),
  row("left", { token: 1 }),
];

describe("the checker", () => {
  test("accepts a job that ran once and is done", () => {
    expect(check(life, done)).toEqual([]);
  });

  const broken: readonly [string, readonly Entry[], FinalState, RegExp][] = [
    ["an accepted job that is gone", life.slice(0, 2), nothing, /was accepted and is gone/],
    ["a start after the end", [...life, ran("start", 1)], done, /started after its end/],
    [
      "a start under an old token",
      [...life.slice(0, 3), row("claimed", { token: 2 }), ran("start", 1)],
      done,
      /started with token 1, the row has 2/,
    ],
    [
      "a token that does not increase",
      [...life.slice(0, 3), row("claimed", { token: 1 })],
      done,
      /token 1 of j is not above 1/,
    ],
    ["two ends of one life", [...life, row("ended", { detail: "done" })], done, /two recorded ends/],
    [
      "an end that no run came to",
      [row("born"), row("claimed", { token: 1 }), row("ended", { detail: "done" })],
      done,
      /is done, its last run/,
    ],
    [
      "a lane with too many holders",
      [row("born", { lane: "a" }), row("claimed", { token: 1, lane: "a", holders: 2 })],
      nothing,
      /2 jobs of a are claimed/,
    ],
    [
      "a unique key with two holders",
      [row("born", { key: "k" }), row("born", { id: "i", key: "k" })],
      nothing,
      /unique key plain k is held by j and i/,
    ],
    [
      "a step that changed",
      [row("born"), row("stepChanged", { detail: "charge" })],
      nothing,
      /recorded step charge of j changed/,
    ],
    [
      "a finished step that ran again",
      [
        row("born"),
        row("stepDone", { detail: "charge" }),
        { at: 0, what: "stepStart", id: "j", step: "charge", token: 1, stale: false },
      ],
      nothing,
      /step charge of j ran again/,
    ],
    [
      "a signal that two runs took",
      [
        { at: 0, what: "taken", id: "a", data: 1 },
        { at: 0, what: "taken", id: "b", data: 1 },
      ],
      nothing,
      /signal 1 was taken by a and b/,
    ],
    [
      "a signal that is gone",
      [{ at: 0, what: "sent", id: "1", data: 5 }],
      nothing,
      /signal 5 was accepted and is gone/,
    ],
    [
      "an occurrence that ran as two jobs",
      [
        { at: 0, what: "occurrence", id: "a", instant: 9 },
        { at: 0, what: "occurrence", id: "b", instant: 9 },
      ],
      nothing,
      /occurrence 9 ran as a and as b/,
    ],
    ["counts that are left", [], { ...nothing, leftovers: { lanes: 1 } }, /1 lanes are left/],
    ["jobs that never end", [], { ...nothing, drained: false }, /not everything ended/],
  ];
  for (const [what, history, final, said] of broken)
    test(`finds ${what}`, () => {
      expect(check(history, final).join("\n")).toMatch(said);
    });
});
