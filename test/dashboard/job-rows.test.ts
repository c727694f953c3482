// The rows of a list while pages, looks and new beginnings overtake each other: none is lost, none is there twice, none moves.
import { describe, expect, test } from "vitest";
import type { JobLine, JobList } from "../../src/dashboard/api/contract.ts";
import type { InsightFilter } from "../../src/operate/browse.ts";
import type { JobState } from "../../src/jobs/job.ts";
import { DEEP_PARTS, searchedAtOnce } from "../../src/operate/browse-bounds.ts";
import { boundOf, walksOf } from "../../src/operate/browse-rows.ts";
import { type Asked, HEAD, JobRows } from "../../ui/src/jobs/job-rows.ts";
import { stretchOf, stripOf } from "../../ui/src/jobs/time-strip.ts";

const job = (n: number, state: JobState = "ready"): JobLine =>
  ({ id: `job-${String(n).padStart(4, "0")}`, state }) as JobLine;

/** A server whose jobs are a list, newest first, and whose answers come when the test says so. */
function server(count: number) {
  let jobs = Array.from({ length: count }, (_, n) => job(count - n));
  const waiting: { asked: Asked; signal: AbortSignal; answer: () => Promise<void> }[] = [];
  const now = (asked: Asked): JobList => {
    if ("ids" in asked)
      return {
        jobs: jobs.filter(({ id }) => asked.ids.includes(id)).slice(0, Math.min(200, asked.limit)),
        cursor: null,
        cut: false,
      };
    const { cursor, limit } = asked;
    const behind = cursor === null ? jobs : jobs.filter(({ id }) => id < cursor);
    const page = behind.slice(0, limit);
    return { jobs: page, cursor: behind.length > limit ? page.at(-1)!.id : null, cut: false };
  };
  const rows = new JobRows((asked, signal) => {
    const { promise, resolve } = Promise.withResolvers<JobList>();
    // As the server saw it when it was asked, whenever that arrives.
    const seen = now(asked);
    waiting.push({
      asked,
      signal,
      answer: async () => {
        resolve(seen);
        for (let turn = 0; turn < 5; turn += 1) await Promise.resolve();
      },
    });
    return promise;
  });
  const next = async (): Promise<Asked> => {
    const one = waiting.shift()!;
    await one.answer();
    return one.asked;
  };
  return {
    rows,
    waiting,
    next,
    all: async () => {
      while (waiting.length > 0) await next();
    },
    change: (how: (jobs: JobLine[]) => JobLine[]) => (jobs = how(jobs)),
    ids: () => rows.now.jobs.map(({ id }) => id),
  };
}

const expected = (from: number, to: number): string[] =>
  Array.from({ length: from - to + 1 }, (_, n) => job(from - n).id);

describe("rows of a list", () => {
  test("what comes is counted and not put in between; shown, it is there", async () => {
    const { rows, all, change, ids } = server(120);
    rows.first();
    await all();
    expect(ids()).toEqual(expected(120, 71));
    change((jobs) => [job(123), job(122), job(121), ...jobs]);
    void rows.look([]);
    await all();
    expect(ids()).toEqual(expected(120, 71));
    expect(rows.now.fresh).toEqual({ count: 3, more: false });
    rows.first();
    await all();
    expect(ids()).toEqual(expected(123, 74));
    expect(rows.now.fresh.count).toBe(0);
  });

  test("the count stops at its bound, and what the next page would bring is not new", async () => {
    const { rows, all, change } = server(300);
    rows.first();
    await all();
    void rows.look([]);
    await all();
    expect(rows.now.fresh.count).toBe(0);
    change((jobs) => [...Array.from({ length: 400 }, (_, n) => job(700 - n)), ...jobs]);
    void rows.look([]);
    await all();
    expect(rows.now.fresh).toEqual({ count: HEAD, more: true });
  });

  test("rows in sight change in place, also those far down and those that match no more; what is gone is marked", async () => {
    const { rows, all, change, ids, waiting, next } = server(400);
    rows.first();
    await all();
    for (let i = 0; i < 4; i += 1) {
      rows.more();
      await all();
    }
    const before = ids();
    expect(before).toHaveLength(400);
    const [top, deep, lost] = [before[2]!, before[320]!, before[321]!];
    change((jobs) =>
      jobs.flatMap((one) =>
        one.id === lost ? [] : one.id === top || one.id === deep ? { ...one, state: "done" } : one,
      ),
    );
    void rows.look([top, deep, lost, before[322]!]);
    await next();
    // Those of the first page are known by then.
    expect(waiting[0]?.asked).toEqual({ ids: [deep, lost, before[322]], limit: 3 });
    await all();
    expect(ids()).toEqual(before);
    const states = new Map(rows.now.jobs.map(({ id, state }) => [id, state]));
    expect([states.get(top), states.get(deep), states.get(before[5]!)]).toEqual(["done", "done", "ready"]);
    expect([...rows.now.gone]).toEqual([lost]);
    // However many are in sight, none is taken for gone because the server gave no more at once.
    void rows.look(before);
    await all();
    expect([...rows.now.gone]).toEqual([lost]);
  });

  test("a page and a look on their way at once, in either order: no gap, none twice", async () => {
    for (const lookFirst of [true, false]) {
      const { rows, all, change, ids, waiting } = server(160);
      rows.first();
      await all();
      rows.more();
      change((jobs) => [job(161), ...jobs]);
      void rows.look(ids());
      if (lookFirst) waiting.reverse();
      await all();
      expect(ids()).toEqual(expected(160, 61));
      expect(rows.now.fresh.count).toBe(1);
      rows.more();
      await all();
      expect(ids()).toEqual(expected(160, 11));
    }
  });

  test("a new beginning ends what is on its way: an answer that comes late changes nothing", async () => {
    const { rows, all, change, ids, waiting } = server(160);
    rows.first();
    await all();
    rows.more();
    void rows.look(ids());
    const late = waiting.splice(0);
    expect(late.map(({ asked }) => "cursor" in asked && asked.cursor === null)).toEqual([false, true]);
    change((jobs) => [job(161), ...jobs]);
    rows.first();
    expect(late.map(({ signal }) => signal.aborted)).toEqual([true, true]);
    await all();
    for (const one of late) await one.answer();
    expect(ids()).toEqual(expected(161, 112));
    expect(rows.now).toMatchObject({ loading: false, fresh: { count: 0 } });
    rows.more();
    await all();
    expect(ids()).toEqual(expected(161, 62));
  });

  test("a job that has moved behind the cursor meanwhile, as by its due time, is not there twice", async () => {
    const pages = [
      { jobs: [job(1), job(2)], cursor: "2", cut: false },
      { jobs: [job(1), job(3)], cursor: null, cut: false },
    ];
    const rows = new JobRows(() => Promise.resolve(pages.shift()!));
    rows.first();
    await expect.poll(() => rows.now.loading).toBe(false);
    rows.more();
    await expect.poll(() => rows.now.loading).toBe(false);
    expect(rows.now.jobs.map(({ id }) => id)).toEqual([job(1).id, job(2).id, job(3).id]);
  });

  test("one page and one look at a time", async () => {
    const { rows, all, ids, waiting } = server(160);
    rows.first();
    await all();
    rows.more();
    rows.more();
    void rows.look([]);
    void rows.look([]);
    expect(waiting).toHaveLength(2);
    await all();
    expect(ids()).toHaveLength(100);
  });

  test("an empty list shows what comes at once: nothing can jump", async () => {
    const { rows, all, change, ids } = server(0);
    rows.first();
    await all();
    change(() => [job(2), job(1)]);
    void rows.look([]);
    await all();
    expect(ids()).toEqual(expected(2, 1));
  });
});

test("how many a search goes through is what the page says", () => {
  expect([searchedAtOnce({ trace: "x" }), searchedAtOnce({ state: "dead" })]).toEqual([20_000, 50_000]);
  const some: Record<string, unknown> = {
    payload: [{ path: ["a"], value: "1" }],
    ended: { min: 1 },
    workflow: "x",
  };
  const names = [...DEEP_PARTS, "error", "failureGroup", "workflow", "ended", "worker"] as const;
  for (const name of names)
    for (const states of [undefined, ["dead"], ["ready", "dead"], ["running"]] as (
      | JobState[]
      | undefined
    )[]) {
      const filter = {
        [name]: some[name] ?? "x",
        ...(states === undefined ? {} : { states }),
      } as InsightFilter;
      const bounds = walksOf(filter).map(({ source }) => boundOf(source, filter));
      if (bounds.length === 0) continue;
      const said = searchedAtOnce({ [name]: "x", state: states?.join(",") });
      expect(said, `${name} ${states?.join(",")}`).toBe(Math.min(...bounds));
    }
});

test("the strip shows the last hour, or the filter's own time with room on both sides, in few bars", () => {
  const hour = 3_600_000;
  const now = 1_000 * hour;
  const lastHour = { from: now - hour, to: now };
  expect(stretchOf({}, now)).toEqual(lastHour);
  expect(stretchOf({ since: String(now - hour / 2) }, now)).toEqual(lastHour);
  expect(stretchOf({ ended: `${now - 1_000}..${now - 500}` }, now)).toEqual(lastHour);
  expect(stretchOf({ since: String(now - 24 * hour) }, now)).toEqual({ from: now - 24 * hour, to: now });
  expect(stretchOf({ ended: `${now - 50 * hour}..${now - 48 * hour}` }, now)).toEqual({
    from: now - 52 * hour,
    to: now - 46 * hour,
  });
  expect(stretchOf({ ended: `>=${now - 10 * hour}` }, now)).toEqual({ from: now - 20 * hour, to: now });
  // Whatever an address says, the server is asked for what it can give.
  for (const odd of [
    { since: "0" },
    { ended: "0..1" },
    { ended: "x" },
    { since: "x" },
    { ended: `${now * 2}..${now * 3}` },
    { ended: `0..${now * 9}` },
    { ended: `<=${now}` },
  ]) {
    const { from, to } = stretchOf(odd, now);
    expect(from, JSON.stringify(odd)).toBeGreaterThanOrEqual(0);
    expect(to).toBeGreaterThan(from);
    expect(to - from).toBeLessThanOrEqual(31 * 24 * hour);
    expect(to).toBeLessThanOrEqual(now);
  }
  const ones = Array.from({ length: 190 }, () => 1);
  const strip = stripOf({
    stepMs: 60_000,
    at: ones.map((_, i) => i * 60_000),
    done: ones,
    retried: ones,
    dead: ones,
  });
  expect(strip.at).toHaveLength(64);
  expect(strip).toMatchObject({ stepMs: 180_000 });
  expect([strip.at[1], strip.sums[0], strip.bad[0], strip.sums.at(-1)]).toEqual([180_000, 9, 6, 3]);
});
