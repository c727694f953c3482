// The demo's summary is counted: each number goes wrong when the thing it counts goes wrong.
import type { Job } from "holdfast";
import { expect, test } from "vitest";
import type { LogEntry } from "../../demo/jobs.ts";
import { type Accepted, tally } from "../../demo/tally.ts";

const accepted = (id: string, more: Partial<Accepted> = {}): Accepted => ({
  id,
  label: id,
  priority: 0,
  at: 100,
  dueAt: 100,
  ...more,
});
const stored = (id: string, state: Job["state"], more: Partial<Job> = {}): Job =>
  ({ id, state, attempt: 1, crashes: 0, errors: [], ...more }) as unknown as Job;
const entry = (id: string, event: LogEntry["event"], worker = "worker-1", at = 200): LogEntry => ({
  id,
  event,
  worker,
  at,
  name: "kind",
  note: "",
});
const ran = (id: string, worker = "worker-1"): LogEntry[] => [
  entry(id, "started", worker),
  entry(id, "effect", worker),
];

test("jobs that ended are counted by how they ended", () => {
  const counted = tally(
    [accepted("a"), accepted("b"), accepted("c")],
    [stored("a", "done"), stored("b", "dead"), stored("c", "cancelled")],
    ran("a"),
    "",
  );
  expect(counted).toMatchObject({
    accepted: 3,
    done: 1,
    dead: 1,
    cancelled: 1,
    lost: [],
    doneTwice: [],
    takenOver: [],
  });
});

test("a job that the store does not have is lost", () => {
  expect(tally([accepted("a")], [], ran("a"), "").lost).toHaveLength(1);
});

test("a job that never ended is lost", () => {
  expect(tally([accepted("a")], [stored("a", "running")], ran("a"), "").lost).toHaveLength(1);
});

test("a job that is called done and that no worker did is lost", () => {
  expect(tally([accepted("a")], [stored("a", "done")], [], "").lost).toHaveLength(1);
});

test("a job that two workers completed is done twice", () => {
  const log = [...ran("a", "worker-1"), ...ran("a", "worker-2")];
  expect(tally([accepted("a")], [stored("a", "done")], log, "").doneTwice).toHaveLength(1);
});

test("a job that the killed worker began and another one completed is taken over", () => {
  const log = [entry("a", "started", "worker-1"), ...ran("a", "worker-2")];
  const crashed = [stored("a", "done", { crashes: 1 })];
  expect(tally([accepted("a")], crashed, log, "worker-1").takenOver).toHaveLength(1);
  expect(tally([accepted("a")], crashed, log, "worker-3").takenOver).toHaveLength(0);
  expect(tally([accepted("a")], crashed, ran("a", "worker-1"), "worker-1").takenOver).toHaveLength(0);
});

test("a job that starts before it is due is too early", () => {
  const log = [entry("a", "started", "worker-1", 499), entry("a", "effect")];
  expect(tally([accepted("a", { dueAt: 500 })], [stored("a", "done")], log, "").early).toHaveLength(1);
  expect(tally([accepted("a", { dueAt: 499 })], [stored("a", "done")], log, "").early).toHaveLength(0);
});

test("an urgent job overtakes when an older one of lower priority starts after it", () => {
  const jobs = [accepted("old"), accepted("urgent", { priority: 10, at: 150 })];
  const all = [stored("old", "done"), stored("urgent", "done")];
  const first = [entry("urgent", "started", "w", 200), entry("old", "started", "w", 300)];
  const last = [entry("old", "started", "w", 200), entry("urgent", "started", "w", 300)];
  expect(tally(jobs, all, first, "").overtook).toBe(1);
  expect(tally(jobs, all, last, "").overtook).toBe(0);
});
