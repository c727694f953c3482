import { describe, expect, test } from "vitest";
import { StoreError, UsageError } from "../../src/errors.ts";
import { EnqueueBatcher } from "../../src/enqueue/enqueue-batcher.ts";
import type { Enqueued, NewJob } from "../../src/jobs/job.ts";
import { newJob } from "../support/new-job.ts";

function job(id: string, input = "{}"): NewJob {
  return newJob(id, { input });
}

function written(jobs: readonly NewJob[]): { outcomes: Enqueued[]; told: boolean } {
  return { outcomes: jobs.map(({ id }) => ({ status: "enqueued", id })), told: false };
}

/** A store that commits when the test says so, or at once. */
function store(options: { refuses?: (jobs: readonly NewJob[]) => Error | undefined; manual?: boolean } = {}) {
  const batches: string[][] = [];
  const committed: string[] = [];
  const landings: (() => void)[] = [];
  const gather = new EnqueueBatcher({
    write: async (jobs) => {
      batches.push(jobs.map(({ id }) => id));
      if (options.manual === true) await new Promise<void>((resolve) => landings.push(resolve));
      const refusal = options.refuses?.(jobs);
      if (refusal !== undefined) throw refusal;
      return written(jobs);
    },
    committed: (jobs) => committed.push(...jobs.map(({ id }) => id)),
    nextTurn: (fn) => void setImmediate(fn),
    groupsAtOnce: 1,
  });
  return { gather, batches, committed, landings };
}

// Until what was asked for in this turn, and in the turn after it, has run.
async function nextTurns(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => void setImmediate(resolve));
}

const ids = (n: number): string[] => Array.from({ length: n }, (_, i) => `job-${i}`);

describe("gathering", () => {
  test("calls made side by side are one batch, in order", async () => {
    const { gather, batches } = store();
    await Promise.all(ids(1_000).map((id) => gather.add(job(id))));
    expect(batches).toEqual([ids(1_000)]);
  });

  test("a lone call leaves in its own turn, and the next ones gather while it is in flight", async () => {
    const { gather, batches, landings } = store({ manual: true });
    const first = gather.add(job("first"));
    await Promise.resolve();
    expect(batches).toEqual([["first"]]);
    const rest = ["a", "b", "c"].map((id) => gather.add(job(id)));
    await new Promise(setImmediate);
    expect(batches).toHaveLength(1);
    landings.shift()?.();
    await first;
    await nextTurns();
    expect(batches).toEqual([["first"], ["a", "b", "c"]]);
    landings.shift()?.();
    await Promise.all(rest);
  });

  test("a promise settles only after the commit", async () => {
    const { gather, landings, committed } = store({ manual: true });
    let settled = false;
    const done = gather.add(job("a")).then(() => (settled = true));
    await new Promise(setImmediate);
    expect({ settled, committed }).toEqual({ settled: false, committed: [] });
    landings.shift()?.();
    await done;
    expect(committed).toEqual(["a"]);
  });

  test("callers in loops share every commit instead of taking turns", async () => {
    const { gather, batches } = store();
    const caller = async (n: number): Promise<void> => {
      for (let i = 0; i < 20; i++) await gather.add(job(`${n}-${i}`));
    };
    await Promise.all(Array.from({ length: 100 }, (_, n) => caller(n)));
    expect(batches.length).toBeLessThanOrEqual(22);
  });

  test("one caller in a loop never waits for a turn of the event loop", async () => {
    let turns = 0;
    const gather = new EnqueueBatcher({
      write: async (jobs) => written(jobs),
      committed: () => {},
      groupsAtOnce: 1,
      nextTurn: (fn) => {
        turns += 1;
        setImmediate(fn);
      },
    });
    for (const id of ids(20)) await gather.add(job(id));
    expect(turns).toBe(0);
  });

  test("batches end at 1,000 jobs and at about 4 MB", async () => {
    const { gather, batches } = store();
    await Promise.all(ids(2_500).map((id) => gather.add(job(id))));
    expect(batches.map(({ length }) => length)).toEqual([1_000, 1_000, 500]);
    const large = store();
    await Promise.all(ids(6).map((id) => large.gather.add(job(id, "x".repeat(1_500_000)))));
    expect(large.batches.map(({ length }) => length)).toEqual([2, 2, 2]);
  });

  test("one job that the store refuses fails alone", async () => {
    const { gather, committed } = store({
      refuses: (jobs) =>
        jobs.some(({ id }) => id === "job-37") ? new StoreError("STORE_FAILED", "no") : undefined,
    });
    const results = await Promise.allSettled(ids(100).map((id) => gather.add(job(id))));
    expect(results.flatMap(({ status }, i) => (status === "rejected" ? [i] : []))).toEqual([37]);
    expect(committed).toEqual(ids(100).filter((id) => id !== "job-37"));
  });

  test("what is true for every job alike is not tried one by one", async () => {
    const { gather, batches } = store({ refuses: () => new StoreError("DISK_FULL", "full") });
    const results = await Promise.allSettled(ids(50).map((id) => gather.add(job(id))));
    expect(results.every(({ status }) => status === "rejected")).toBe(true);
    expect(batches).toHaveLength(1);
  });

  test("a group is a batch of its own, in its place, all or none", async () => {
    const { gather, batches } = store({
      refuses: (jobs) => (jobs.some(({ id }) => id === "bad") ? new UsageError("BAD_KEY", "no") : undefined),
    });
    const before = gather.add(job("before"));
    const group = gather.addAll([job("x"), job("bad")]);
    const after = gather.add(job("after"));
    await expect(group).rejects.toMatchObject({ code: "BAD_KEY" });
    await Promise.all([before, after]);
    expect(batches).toEqual([["before"], ["x", "bad"], ["after"]]);
  });

  test("idle resolves when everything has landed", async () => {
    const { gather, committed } = store();
    await gather.idle();
    void gather.add(job("a"));
    void gather.addAll([job("b")]);
    await gather.idle();
    expect(committed).toEqual(["a", "b"]);
  });
});
