// Partitions are made and dropped in time, whatever stands in the rest, and no job is lost by it. Only Postgres has them.
import { defineJob, type Holdfast, open } from "holdfast";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { systemClock } from "../../src/clock.ts";
import { idAt } from "../../src/values/id.ts";
import { Connections } from "../../src/storage/postgres/connections.ts";
import { dropPartitions, missingSpans, type Span, spanMs } from "../../src/storage/postgres/partitions.ts";
import { type FreshStore, onPostgres, type StoreTarget } from "../support/stores.ts";
import { waitFor } from "../support/wait.ts";
import { operatorOf } from "../../src/operate/operator.ts";

const dayMs = 86_400_000;
const today = (): number => Math.floor(Date.now() / dayMs) * dayMs;
const parents = ["job", "history", "step"] as const;
const echo = defineJob({ name: "echo", unique: String, run: async (input: string) => input });

interface Opened {
  readonly fresh: FreshStore;
  readonly hf: Holdfast;
  readonly warnings: string[];
}

async function opened(target: StoreTarget): Promise<Opened> {
  const fresh = await target.fresh();
  const hf = await open(fresh.url, fresh.options);
  onTestFinished(() => hf.close());
  const warnings: string[] = [];
  hf.on("warning", ({ message }) => warnings.push(message));
  return { fresh, hf, warnings };
}

function dateOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10).replaceAll("-", "");
}

async function count(fresh: FreshStore, table: string): Promise<number> {
  const [row] = await fresh.query(`select count(*) as n from ${fresh.table(table)}`);
  return Number(row!["n"]);
}

/** The dates of a parent's partitions, in order. */
async function dates(fresh: FreshStore, parent: string): Promise<string[]> {
  const rows = await fresh.query(
    "select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid where i.inhparent = ?::regclass order by 1",
    [fresh.table(parent)],
  );
  return rows.map((row) => String(row["name"]).slice(parent.length + 1)).filter((date) => date !== "rest");
}

async function dropDays(fresh: FreshStore, from: number): Promise<void> {
  for (const parent of parents)
    for (const date of await dates(fresh, parent))
      if (date >= dateOf(from)) await fresh.query(`drop table ${fresh.table(`${parent}_${date}`)}`);
}

/** A day as it was made back then. */
async function makeDay(fresh: FreshStore, day: number): Promise<void> {
  for (const parent of parents)
    await fresh.query(
      `create table ${fresh.table(`${parent}_${dateOf(day)}`)} partition of ${fresh.table(parent)} for values from ('${idAt(day)}') to ('${idAt(day + dayMs)}')`,
    );
}

/** A job of a day long ago that is done since then. */
async function doneLongAgo({ fresh, hf }: Opened, day: number): Promise<string> {
  const { id } = await hf.enqueue(echo, `of ${day}`, { id: idAt(day + 1) });
  const [lease] = await hf.lease({ names: ["echo"] });
  await lease!.done();
  await fresh.query(`update ${fresh.table("history")} set ended_at = ? where id = ?`, [day + 2, id]);
  return id;
}

onPostgres((target) => {
  test("[O8] a job whose id is days ahead does not keep partitions from being made, and moves into its own", async () => {
    const { fresh, hf } = await opened(target);
    await dropDays(fresh, today() + 2 * dayMs);
    const ahead = await hf.enqueue("any", "ahead", { id: idAt(today() + 2 * dayMs + 5) });
    await hf.enqueue("any", "far ahead", { id: idAt(today() + 40 * dayMs) });
    expect(await count(fresh, "job_rest")).toBe(2);

    await operatorOf(hf).store.upkeep.tidy();
    const expected = [0, 1, 2, 3].map((n) => dateOf(today() + n * dayMs));
    for (const parent of parents) expect(await dates(fresh, parent)).toEqual(expected);
    expect(await count(fresh, "job_rest"), "only the one that is 40 days ahead").toBe(1);
    expect(await fresh.query(`select id from ${fresh.table(`job_${expected[2]}`)}`)).toEqual([
      { id: ahead.id },
    ]);
    expect((await hf.lease({ limit: 5 })).map(({ input }) => input)).toEqual(["ahead", "far ahead"]);
  });

  test("[O8] after days in which nobody could make a partition, the rows of today move from the rest into one", async () => {
    const { fresh, hf } = await opened(target);
    await dropDays(fresh, 0);
    await hf.enqueue("any", "ready");
    const ended = await hf.enqueue(echo, "ended");
    await (await hf.lease({ names: ["echo"] }))[0]!.done("result");
    expect([await count(fresh, "job_rest"), await count(fresh, "history_rest")]).toEqual([2, 1]);

    const owner = await open(fresh.url, fresh.options);
    await owner.close();
    expect([await count(fresh, "job_rest"), await count(fresh, "history_rest")]).toEqual([0, 0]);
    expect([await count(fresh, "job"), await count(fresh, "history")]).toEqual([2, 1]);
    expect(await hf.result(ended.id)).toBe("result");
    expect((await hf.lease({ limit: 5 })).map(({ input }) => input)).toEqual(["ready"]);
  });

  test("[O8] doctor's facts say for how long there are partitions, and what stands in the default one", async () => {
    const { fresh, hf } = await opened(target);
    const { partitions } = await operatorOf(hf).store.inspect();
    expect(partitions).toMatchObject({ count: 4, rest: 0 });
    expect(partitions!.aheadMs).toBeGreaterThan(2.9 * dayMs);
    await dropDays(fresh, 0);
    await hf.enqueue("any", 1);
    await hf.enqueue("any", 2, { id: idAt(today() - dayMs) });
    expect((await operatorOf(hf).store.inspect()).partitions).toEqual({ aheadMs: 0, count: 0, rest: 1 });
  });

  test("[O8] where today has more rows in the rest than may be moved under a lock, tomorrow has its partition", async () => {
    const { fresh, hf } = await opened(target);
    await dropDays(fresh, 0);
    await fresh.query(
      `insert into ${fresh.table("job")} (id, job_type, created_at, input)
       select ('${idAt(today() + 1).slice(0, 24)}' || lpad(to_hex(n), 12, '0'))::uuid, 1, 0, 'null' from generate_series(1, 10001) n`,
    );
    await operatorOf(hf).store.upkeep.tidy();
    const expected = [1, 2, 3].map((n) => dateOf(today() + n * dayMs));
    for (const parent of parents) expect(await dates(fresh, parent)).toEqual(expected);
    expect(await count(fresh, "job_rest")).toBe(10_001);
  });

  test("[O8] a retry while its day is dropped keeps its job", async () => {
    const it = await opened(target);
    const { fresh, hf } = it;
    const day = today() - 20 * dayMs;
    await makeDay(fresh, day);
    const id = await doneLongAgo(it, day);
    const keyless = await hf.enqueue("any", "retried", { id: idAt(day + 7) });
    await (await hf.lease({ names: ["any"] }))[0]!.done();
    await fresh.query(`update ${fresh.table("history")} set ended_at = ?`, [day]);

    const other = new pg.Client(fresh.url);
    await other.connect();
    onTestFinished(() => other.end());
    await other.query("begin");
    await other.query(`insert into ${fresh.table("retry")} (id) values ('${keyless.id}')`);
    let pruned = false;
    const pruning = hf.prune().finally(() => (pruned = true));
    await waitFor(
      async () => {
        const waiting = await fresh.query(
          "select 1 from pg_locks l join pg_class c on c.oid = l.relation where not l.granted and c.relnamespace = ?::regnamespace",
          [fresh.options.schema],
        );
        return pruned || waiting.length > 0;
      },
      { what: "the pruner to wait for the retry, or to give up" },
    );
    await other.query("commit");
    await pruning;
    await hf.prune();

    expect(await dates(fresh, "job"), "the day is gone").not.toContain(dateOf(day));
    expect(await hf.jobs.get(id)).toBeNull();
    expect(await hf.jobs.get(keyless.id)).toMatchObject({ state: "ready", input: "retried" });
    expect((await hf.lease({ limit: 5 })).map(({ input }) => input)).toEqual(["retried"]);
  });

  test("[O8] a row of `ready` without a job is deleted when it is claimed, and when its day was dropped long ago", async () => {
    const { fresh, hf, warnings } = await opened(target);
    const claimed = await hf.enqueue("any", "lost");
    await hf.enqueue("any", "here");
    const old = await hf.enqueue("any", "lost too", { id: idAt(today() - 20 * dayMs), delay: "1h" });
    await fresh.query(`delete from ${fresh.table("job")} where id = any(?)`, [[claimed.id, old.id]]);
    expect((await hf.lease({ limit: 5 })).map(({ input }) => input)).toEqual(["here"]);
    expect(await count(fresh, "ready")).toBe(2);
    await operatorOf(hf).store.upkeep.tidy();
    expect(await count(fresh, "ready")).toBe(1);
    expect(warnings).toEqual([expect.stringContaining("1 rows"), expect.stringContaining("1 rows")]);
  });

  test.each([
    ["a lane", { lanes: { concurrency: 2 } }, {}],
    ["a queue with limits", {}, { concurrency: 2 }],
    ["a lane of a queue with limits", { lanes: { concurrency: 2 } }, { concurrency: 2 }],
  ])("[O8] rows of `ready` without a job take no place in %s", async (_where, lanes, queue) => {
    const { fresh, hf, warnings } = await opened(target);
    if ("concurrency" in queue) await hf.queues.set("default", queue);
    const job = defineJob({
      name: "j",
      ...("lanes" in lanes ? { lane: () => "x", ...lanes } : {}),
      run: () => null,
    });
    const lost = [await hf.enqueue(job, null), await hf.enqueue(job, null)].map(({ id }) => id);
    await fresh.query(`delete from ${fresh.table("job")} where id = any(?)`, [lost]);
    const kept = [await hf.enqueue(job, null), await hf.enqueue(job, null)].map(({ id }) => id);
    const worker = hf.work([job], { queues: ["default"] });
    await waitFor(async () => (await hf.jobs.count({ state: "done" })) === 2, { what: "the jobs to run" });
    await hf.queues.drain("default");
    await waitFor(() => hf.queues.drained("default"), { what: "the queue to be drained" });
    await worker.stop();
    expect([await count(fresh, "ready"), (await hf.stats()).totals.running]).toEqual([0, 0]);
    for (const id of kept) expect(await hf.jobs.get(id)).toMatchObject({ state: "done" });
    expect(warnings).toEqual([expect.stringContaining("2 rows")]);
  });

  test("[O8] what rows of `ready` without a job were counted in is given back when their session has died", async () => {
    const { fresh, hf, warnings } = await opened(target);
    await hf.queues.set("default", { concurrency: 2 });
    const job = defineJob({ name: "j", lane: () => "x", lanes: { concurrency: 2 }, run: () => null });
    const old = (n: number): string => idAt(today() - 20 * dayMs + n);
    await hf.enqueue(job, null, { id: old(1) });
    await hf.enqueue(job, null, { id: old(2) });
    expect(await hf.lease({ limit: 5 })).toHaveLength(2);
    // As an older version left them: claimed and counted.
    await fresh.query(`delete from ${fresh.table("job")}`);
    const next = [await hf.enqueue(job, null), await hf.enqueue(job, null)].map(({ id }) => id);
    await operatorOf(hf).store.upkeep.tidy();
    expect(await count(fresh, "ready"), "their session lives").toBe(4);
    await fresh.query(`update ${fresh.table("session")} set lease_until = 0`);
    await operatorOf(hf).store.upkeep.tidy();
    expect(await count(fresh, "ready")).toBe(2);
    expect((await hf.lease({ limit: 5 })).map(({ id }) => id).sort()).toEqual(next.sort());
    expect(warnings).toEqual([expect.stringContaining("2 rows")]);
  });

  test("[O8] the expired unique keys of a dropped day go with it; those of jobs that stay, and those that hold still, are kept", async () => {
    const it = await opened(target);
    const { fresh, hf } = it;
    const day = today() - 20 * dayMs;
    await makeDay(fresh, day);
    const forLong = defineJob({ name: "long", unique: { key: () => "k", for: "30d" }, run: () => null });
    await hf.enqueue(forLong, null, { id: idAt(day + 4) });
    await (await hf.lease({ names: ["long"] }))[0]!.done();
    await fresh.query(`update ${fresh.table("history")} set ended_at = ?`, [day]);
    const forMoment = defineJob({
      name: "moment",
      unique: { key: () => "k", for: "30d" },
      run: () => null,
    });
    await hf.enqueue(forMoment, null, { id: idAt(day + 6) });
    await (await hf.lease({ names: ["moment"] }))[0]!.done();
    await fresh.query(`update ${fresh.table("history")} set ended_at = ?`, [day]);
    await fresh.query(`update ${fresh.table("unique_key")} set expires_at = ? where id = ?`, [
      Date.now() - 1,
      idAt(day + 6),
    ]);
    const kept = await hf.enqueue(echo, "waits", { id: idAt(day + 5), delay: "1h" });
    expect(await count(fresh, "unique_key")).toBe(3);
    expect(await hf.prune()).toMatchObject({ partitions: 1 });
    expect(await fresh.query(`select id from ${fresh.table("unique_key")} order by id`)).toEqual([
      { id: idAt(day + 4) },
      { id: kept.id },
    ]);
  });

  test("[O8] beside a long reader, dropping stops at the first lock that is not free", async () => {
    const it = await opened(target);
    const { fresh } = it;
    const days = [23, 22, 21].map((n) => today() - n * dayMs);
    for (const day of days) {
      await makeDay(fresh, day);
      await doneLongAgo(it, day);
    }
    const reader = new pg.Client(fresh.url);
    await reader.connect();
    onTestFinished(() => reader.end());
    await reader.query("begin");
    await reader.query(`select count(*) from ${fresh.table("job")}`);

    const real = await Connections.open(fresh.url, {
      poolSize: 1,
      applicationName: "test",
      clock: systemClock,
      onConnectionLost: () => {},
      onConnectionBack: () => {},
    });
    onTestFinished(() => real.close());
    let tries = 0;
    const counted = new Proxy(real, {
      get(one, name: keyof Connections) {
        if (name === "transaction") tries += 1;
        const value: unknown = Reflect.get(one, name, one);
        return typeof value === "function" ? (value.bind(one) as unknown) : value;
      },
    });
    const policy = { now: Date.now(), doneMs: 7 * dayMs, deadMs: 30 * dayMs, exceptQueues: [] };
    const schema = fresh.options.schema!;
    expect(await dropPartitions(counted, schema, policy)).toEqual({ dropped: 0, failures: [] });
    expect(tries).toBe(1);
    await reader.query("commit");
    expect(await dropPartitions(counted, schema, policy)).toEqual({ dropped: 3, failures: [] });
  });

  test("[O8] a partition that cannot be dropped is told, and keeps no other from being dropped", async () => {
    const it = await opened(target);
    const { fresh, hf, warnings } = it;
    const days = [23, 22, 21].map((n) => today() - n * dayMs);
    for (const day of days) {
      await makeDay(fresh, day);
      await doneLongAgo(it, day);
    }
    const date = new Date(days[0]!).toISOString().slice(0, 10).replaceAll("-", "");
    await fresh.query(
      `create view ${fresh.table("mine")} as select id from ${fresh.table(`history_${date}`)}`,
    );
    expect(await hf.prune()).toMatchObject({ partitions: 2 });
    expect(warnings).toEqual([expect.stringContaining(`history_${date} cannot be dropped`)]);
    expect(warnings[0]).toContain("depend");
  });

  test("[O8] with a retention of a year a partition is made for 30 days, by clients that do not know it too", async () => {
    const { fresh, hf } = await opened(target);
    await dropDays(fresh, today() + dayMs);
    await operatorOf(hf).store.upkeep.tidy({ doneMs: 365 * dayMs, deadMs: 365 * dayMs });
    const bounds = async (): Promise<number[]> => {
      const rows = await fresh.query(
        "select pg_get_expr(c.relpartbound, c.oid) as bounds from pg_inherits i join pg_class c on c.oid = i.inhrelid where i.inhparent = ?::regclass and c.relname <> 'job_rest' order by c.relname",
        [fresh.table("job")],
      );
      return rows.map((row) => {
        const [from, to] = [...String(row["bounds"]).matchAll(/'(.{36})'/g)].map(([, id]) =>
          Number.parseInt(id!.slice(0, 8) + id!.slice(9, 13), 16),
        );
        return (to! - from!) / dayMs;
      });
    };
    const lengths = await bounds();
    expect(lengths[0], "today").toBe(1);
    expect(lengths.slice(1).reduce((sum, days) => sum + days, 0)).toBeGreaterThanOrEqual(3);
    expect(lengths.length, "up to the next boundary, and over it").toBeLessThanOrEqual(3);
    await hf.enqueue("any", "a", { id: idAt(today() + 2 * dayMs) });
    expect(await count(fresh, "job_rest")).toBe(0);
    expect((await hf.lease({ limit: 5 })).map(({ input }) => input)).toEqual(["a"]);
    await operatorOf(hf).store.upkeep.tidy();
    expect(await bounds()).toEqual(lengths);
  });
});

test("[O8] however long jobs are kept, a table has few partitions at any time, without a gap", () => {
  const most = (keepDays: number, years: number): number => {
    let spans: Omit<Span, "name">[] = [];
    let top = 0;
    const start = Date.UTC(2026, 0, 1);
    for (let day = 0; day < years * 365; day += 1) {
      const now = start + day * dayMs + 1;
      spans.push(...missingSpans(spans, now, spanMs(keepDays * dayMs)));
      spans = spans.filter(({ to }) => to + keepDays * dayMs > now).sort((a, b) => a.from - b.from);
      for (const [i, { to }] of spans.entries())
        if (i + 1 < spans.length) expect(spans[i + 1]!.from).toBe(to);
      expect(spans.at(-1)!.to).toBeGreaterThanOrEqual(start + (day + 3) * dayMs);
      top = Math.max(top, spans.length);
    }
    return top;
  };
  expect(most(7, 1)).toBe(11);
  expect(most(30, 1)).toBeLessThanOrEqual(36);
  expect(most(90, 2)).toBeLessThanOrEqual(36);
  expect(most(365, 3)).toBeLessThanOrEqual(36);
  expect(most(Infinity, 3)).toBeLessThanOrEqual(40);
});
