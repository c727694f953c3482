// A queue's settings as texts: what a form shows can be saved again, and only what was changed is sent.
import { expect, test } from "vitest";
import type { QueueDetail } from "../../src/dashboard/api/contract.ts";
import { durationMs } from "../../src/values/duration.ts";
import { rateOf, rateWords, written } from "../../ui/src/text/quantities.ts";
import { settingLines, settings, settingsChange } from "../../ui/src/queues/setting-lines.ts";

const none: QueueDetail["settings"] = {
  concurrency: null,
  rate: null,
  weight: null,
  backoff: null,
  retention: null,
  cooldown: null,
  slots: null,
  total: null,
  breaker: null,
};
const all: QueueDetail["settings"] = {
  concurrency: 3,
  rate: { limit: 10, perMs: 500 },
  weight: 2,
  backoff: { kind: "exponential", baseMs: 1_500, maxMs: 3_600_000, factor: 2, jitter: 0 },
  retention: { doneMs: 0, deadMs: 86_400_000 },
  cooldown: { baseMs: 5_000, maxMs: 300_000 },
  slots: 0,
  total: 20,
  breaker: { after: 5, cooldownMs: 90_000 },
};
const texts = (known: QueueDetail["settings"], change: Record<string, string> = {}) => {
  const shown = new Map(settings.map(({ name, text }) => [name as string, text(known) ?? ""]));
  for (const [name, text] of Object.entries(change)) shown.set(name, text);
  // As a form gives them: an empty field is undefined.
  return (name: string): string | undefined => (shown.get(name) === "" ? undefined : shown.get(name));
};

test("a duration is written so that it is read back to the millisecond", () => {
  for (const ms of [1, 250, 500, 1_000, 1_500, 60_000, 90_000, 3_600_000, 86_400_000, 90_000_001])
    expect(durationMs(written(ms), "x")).toBe(ms);
  expect(written(0)).toBe("0");
});

test("a rate of less than a second that a form shows can be saved", () => {
  const shown = rateWords({ limit: 10, perMs: 500 });
  expect(shown).toBe("10 per 500ms");
  expect(rateOf(shown)).toEqual({ limit: 10, per: "500ms" });
  expect(rateOf("10 per 0.5s")).toEqual({ limit: 10, per: "0.5s" });
  expect(() => rateOf("ten a second")).toThrow("Write a rate as: 100 per 1m");
});

test("a form that is saved as it was shown changes nothing", () => {
  expect(settingsChange(all, texts(all))).toEqual({});
  expect(settingsChange(none, texts(none))).toEqual({});
  // What a form has no words for stays, too.
  const power = { ...none, backoff: { kind: "power", maxMs: 1, jitter: 0 } as const };
  expect(settingsChange(power, texts(power))).toEqual({});
});

test("only what was changed is sent; an empty field is back to the default", () => {
  expect(
    settingsChange(
      all,
      texts(all, { concurrency: "", rate: "5/1s", breaker: "7", cooldown: "1s", dead: "2d" }),
    ),
  ).toEqual({
    concurrency: null,
    rate: { limit: 5, per: "1s" },
    breaker: { after: 7 },
    cooldown: { base: "1s" },
    retention: { done: "0", dead: "2d" },
  });
  expect(settingsChange(all, texts(all, { done: "", dead: "" }))).toEqual({ retention: null });
  expect(settingsChange(none, texts(none, { backoff: "10s to 1h", breaker: "3 failures, 1m" }))).toEqual({
    backoff: { base: "10s", max: "1h" },
    breaker: { after: 3, cooldown: "1m" },
  });
  expect(() => settingsChange(none, texts(none, { weight: "1.5" }))).toThrow("1.5 is not a whole number.");
  expect(() => settingsChange(none, texts(none, { breaker: "often" }))).toThrow("Write a breaker as");
});

test("each setting says whose word it is, and what it goes back to", () => {
  const lines = (known: QueueDetail["settings"], temporaryLimit: QueueDetail["temporaryLimit"] = null) =>
    Object.fromEntries(
      settingLines({ settings: known, temporaryLimit } as QueueDetail).map(({ label, value, by, back }) => [
        label,
        [value, by, back?.value ?? null],
      ]),
    );
  expect(lines(none)).toMatchObject({
    "Slots of each worker": ["set when the workers start", "code", null],
    "Concurrency over the cluster": ["unlimited", "default", null],
  });
  const temporaryLimit = { untilAt: 1, back: { concurrency: 9, rate: null } };
  expect(lines(all, temporaryLimit)).toMatchObject({
    "Concurrency over the cluster": ["3", "set", "9"],
    Rate: ["10 per 500 ms", "set", "unlimited"],
    Weight: ["2", "set", null],
    "Keep done jobs": ["for ever", "set", null],
  });
  // There was no row before: everything that is set goes back to what holds without one.
  expect(lines({ ...none, weight: 2 }, { untilAt: 1, back: null })).toMatchObject({
    Weight: ["2", "set", "1"],
    Rate: ["unlimited", "default", null],
  });
});
