// A6, in depth: rows that come by SQL from anywhere. A bad one is refused, or harms only itself.
import { DatabaseSync } from "node:sqlite";
import fc from "fast-check";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { defineJob, type Holdfast } from "holdfast";
import { LATEST_INSTANT, MAX_DELAY_MS } from "../../src/values/duration.ts";
import { idFactory } from "../../src/values/id.ts";
import { type FreshStore, onEveryStore, onSqlite } from "../support/stores.ts";
import { client, realTime } from "../support/client.ts";

const plain = defineJob({ name: "plain", run: () => null });
const newId = idFactory(Date.now);

type Insert = (row: Readonly<Record<string, unknown>>) => Promise<unknown>;

/** Inserts one row into the view `enqueue`, with its values bound. */
function inserter(fresh: FreshStore): Insert {
  return (row) => {
    const columns = Object.keys(row);
    return fresh.query(
      `insert into ${fresh.table("enqueue")} (${columns.join(", ")}) values (${columns.map(() => "?").join(", ")})`,
      Object.values(row),
    );
  };
}

/** A transaction of the user's own, on a connection of their own. */
async function transaction(
  fresh: FreshStore,
): Promise<{ handle: object; run: Insert; commit(): Promise<void> }> {
  if (fresh.dialect === "sqlite") {
    const handle = new DatabaseSync(fresh.url.slice("sqlite:".length));
    onTestFinished(() => handle.close());
    handle.exec("begin immediate");
    const query = async (sql: string, params: unknown[] = []): Promise<Record<string, unknown>[]> =>
      handle.prepare(sql).all(...(params as string[]));
    return { handle, run: inserter({ ...fresh, query }), commit: async () => handle.exec("commit") };
  }
  const handle = new pg.Client({ connectionString: fresh.url });
  await handle.connect();
  onTestFinished(() => handle.end());
  await handle.query("begin");
  const query = async (sql: string, params: unknown[] = []): Promise<Record<string, unknown>[]> => {
    let n = 0;
    return (
      await handle.query<Record<string, unknown>>(
        sql.replaceAll("?", () => `$${++n}`),
        params,
      )
    ).rows;
  };
  return {
    handle,
    run: inserter({ ...fresh, query }),
    commit: async () => void (await handle.query("commit")),
  };
}

/** Every job that is due, claimed and done. */
async function leased(hf: Holdfast): Promise<string[]> {
  const ids: string[] = [];
  for (;;) {
    const leases = await hf.lease({ limit: 100 });
    if (leases.length === 0) return ids;
    for (const lease of leases) {
      ids.push(lease.id);
      await lease.done();
    }
  }
}

onEveryStore((target) => {
  test.each([
    ["max_attempts", [0, -1, 32_768, 2_147_483_647], "max_attempts must be a whole number from 1 to 32767"],
    [
      "priority",
      [1_000_000_001, -1_000_000_001],
      "priority must be a whole number from -1000000000 to 1000000000",
    ],
    ["run_at", [-1, LATEST_INSTANT + 1], `run_at must be a whole number from 0 to ${LATEST_INSTANT}`],
    ["delay_ms", [-1, MAX_DELAY_MS + 1], `delay_ms must be a whole number from 0 to ${MAX_DELAY_MS}`],
    ["lane", ["", "é".repeat(257)], "lane must be text of 1 to 512 bytes"],
    ["context", ["x".repeat(16_385)], "context must be text of at most 16384 characters"],
    ["id", ["f47ac10b-58cc-4372-a567-0e02b2c3d479"], "id must be a UUID of version 7"],
  ])(
    "[A6] a raw insert with %s out of range is refused, and told what is allowed",
    async (column, bad, says) => {
      const { fresh, count } = await client(target, realTime);
      const insert = inserter(fresh);
      for (const value of bad) {
        await expect(insert({ name: "plain", [column]: value }), String(value)).rejects.toThrow(says);
      }
      expect([await count("job"), await count("ready")]).toEqual([0, 0]);
    },
  );

  test("[A6] a raw insert with every value at its bound is a job that can be claimed", async () => {
    const { hf, fresh } = await client(target, realTime);
    const insert = inserter(fresh);
    await insert({
      name: "plain",
      max_attempts: 1,
      priority: 1_000_000_000,
      run_at: 0,
      lane: "é".repeat(256),
    });
    await insert({ name: "plain", max_attempts: 32_767, priority: -1_000_000_000, delay_ms: 0 });
    await insert({ name: "plain", id: newId(), context: "x".repeat(16_384) });
    await insert({ name: "plain", id: newId().toUpperCase() });
    await insert({ name: "plain", run_at: LATEST_INSTANT });
    await insert({ name: "plain", delay_ms: MAX_DELAY_MS });
    expect(await leased(hf)).toHaveLength(4);
    expect((await hf.jobs.list()).jobs).toHaveLength(6);
  });

  test("[A6] a job at the highest count of attempts, or due before 1970, is claimed, and others with it", async () => {
    const { hf, fresh } = await client(target, realTime);
    const [worn, early, other] = [
      await hf.enqueue(plain, 1),
      await hf.enqueue(plain, 2),
      await hf.enqueue(plain, 3),
    ];
    const set = (id: string, what: string): Promise<unknown> =>
      fresh.query(
        `update ${fresh.table("ready")} set ${what} where ${fresh.jobKey} = ${fresh.jobKeyOf("?")}`,
        [id],
      );
    await set(worn.id, "attempt = 32767");
    await set(early.id, "run_at = -5");
    expect((await leased(hf)).toSorted()).toEqual([worn.id, early.id, other.id].toSorted());
  });

  test("[A6] a job whose attempts and ranks are at the ends of their types is claimed under limits too", async () => {
    const { hf, fresh } = await client(target, { ...realTime, order: "lowest-first" });
    const laned = defineJob({ name: "laned", lane: () => "one", run: () => null });
    const { id } = await hf.enqueue(laned, 1);
    await fresh.query(`update ${fresh.table("ready")} set attempt = 32767, rank = -2147483648`);
    const other = await hf.enqueue(laned, 2);
    const low = await hf.enqueue(plain, 2);
    await fresh.query(
      `update ${fresh.table("ready")} set rank = -2147483648 where ${fresh.jobKey} = ${fresh.jobKeyOf("?")}`,
      [low.id],
    );
    await hf.enqueue(plain, 3);
    const worker = hf.work([laned, plain], { queues: ["default"] });
    await worker.ready;
    await worker.idle();
    expect((await hf.jobs.get(id))?.state).toBe("done");
    expect((await hf.jobs.get(other.id))?.state).toBe("done");
    expect((await hf.jobs.get(low.id))?.state).toBe("done");
  });

  test("[A6] a row that was spoilt by hand harms only itself: every other job runs", async () => {
    const { hf, fresh } = await client(target, realTime);
    const spoilt: readonly (readonly [table: string, column: string, values: readonly unknown[]])[] = [
      ["job", "max_attempts", [0, -5, 2_147_483_647]],
      ["job", "timeout_ms", [-1, 0, Number.MAX_SAFE_INTEGER]],
      ["job", "deadline_at", [-1, Number.MAX_SAFE_INTEGER]],
      ["job", "input", ["", "{", "nul", "\u001e"]],
      ["job", "context", ["no json", "5", "{}"]],
      ["job", "extras", ["no json", "5", "[]", "null", '{"backoff":5,"version":"x","unique":7,"keep":[]}']],
      ["job", "key", ["k"]],
      ["job", "created_at", [-1, Number.MAX_SAFE_INTEGER]],
      ["ready", "errors", ["no json", "5", "{}", '[{"at":"x"}]', "[null]"]],
      ["ready", "progress", ["no json"]],
      ["ready", "attempt", [-1, 32_767]],
      ["ready", "crashes", [-1, 32_767]],
      ["ready", "run_at", [Number.MIN_SAFE_INTEGER]],
      ["ready", "waits", ["nothing"]],
      ["ready", "pending", [-1, 5]],
    ];
    for (const [table, column, values] of spoilt) {
      for (const value of values) {
        const { id } = await hf.enqueue(plain, `${table}.${column}`);
        const key = table === "ready" ? fresh.jobKey : "id";
        const of = table === "ready" ? fresh.jobKeyOf("?") : "?";
        await fresh.query(`update ${fresh.table(table)} set ${column} = ? where ${key} = ${of}`, [value, id]);
      }
    }
    const failing = defineJob({ name: "plain", run: (input) => Promise.reject(new Error(String(input))) });
    for (const one of [failing, plain]) {
      const good = defineJob({ name: "good", run: () => "good" });
      const worker = hf.work([one, good], { queues: ["default"] });
      await worker.ready;
      const { id } = await hf.enqueue(good, null);
      expect(await hf.result(id, { timeout: "30s" })).toBe("good");
      await worker.idle();
      await worker.stop();
      const { jobs } = await hf.jobs.list({ limit: 100 });
      expect(jobs.filter((job) => job.state === "running").map((job) => job.input)).toEqual([]);
      expect(() => JSON.stringify(jobs)).not.toThrow();
    }
  });

  test("[A6] an enqueue of a name, or a lane, that the same transaction has inserted by SQL does not wait for itself", async () => {
    const { hf, fresh } = await client(target, realTime);
    const tx = await transaction(fresh);
    await tx.run({ name: "fresh" });
    await tx.run({ name: "laned", lane: "new" });
    const [first, second] = await hf.enqueueMany(
      [
        { job: "fresh", input: 1 },
        { job: "laned", input: 2, lane: "new" },
      ],
      { tx: tx.handle },
    );
    await tx.commit();
    expect(await hf.jobs.get(first.id)).toMatchObject({ name: "fresh", queue: "default", state: "ready" });
    expect(await hf.jobs.get(second.id)).toMatchObject({ name: "laned", lane: "new", state: "ready" });
    await hf.enqueue("fresh", 3);
    await hf.enqueue("laned", 3, { lane: "new" });
    expect(await leased(hf)).toHaveLength(6);
  }, 15_000);

  test("[A6] a name or lane that a rolled-back transaction made is made anew", async () => {
    const { hf, fresh } = await client(target, realTime);
    const tx = await transaction(fresh);
    await tx.run({ name: "fresh", lane: "new" });
    await hf.enqueue("fresh", 1, { lane: "new", tx: tx.handle });
    if (tx.handle instanceof DatabaseSync) tx.handle.exec("rollback");
    else await (tx.handle as pg.Client).query("rollback");
    const { id } = await hf.enqueue("fresh", 2, { lane: "new" });
    expect(await leased(hf)).toEqual([id]);
  });

  test("[A3] an id that is given twice in one batch is one job: the first", async () => {
    const { hf, count } = await client(target, realTime);
    const bare = newId();
    const options: Record<string, unknown>[] = [
      {},
      { key: "k" },
      { lane: "l" },
      { context: "c" },
      { after: [bare] },
    ];
    await hf.enqueue(plain, 0, { id: bare });
    for (const [place, option] of options.entries()) {
      const id = newId();
      const other = newId();
      const outcomes = await hf.enqueueMany([
        { job: plain, input: "first", id, ...option },
        { job: plain, input: "between", id: other },
        { job: plain, input: "second", id, ...option },
      ]);
      expect(outcomes, JSON.stringify(option)).toEqual([
        { status: "enqueued", id },
        { status: "enqueued", id: other },
        { status: "enqueued", id },
      ]);
      expect((await hf.jobs.get(id))?.input).toBe("first");
      expect([await count("job"), await count("ready")]).toEqual([2 * place + 3, 2 * place + 3]);
    }
  });

  test("[A3] two enqueues of one id at the same moment are one job, and spare others", async () => {
    const { hf, count } = await client(target, realTime);
    await hf.enqueue(plain, 0);
    const id = newId();
    const outcomes = await Promise.all([
      hf.enqueue(plain, 1, { id }),
      hf.enqueue(plain, 2),
      hf.enqueue(plain, 3, { id }),
      hf.enqueue(plain, 4, { id, key: "k" }),
    ]);
    expect(outcomes.map((outcome) => outcome.id).filter((one) => one === id)).toHaveLength(3);
    expect([await count("job"), await count("ready")]).toEqual([3, 3]);
  });

  test("[A6] whatever is inserted by SQL is refused or a job: lists, claims and workers go on", async () => {
    const { hf, fresh, rows } = await client(target, realTime);
    const insert = inserter(fresh);
    const ran: unknown[] = [];
    const worker = hf.work([defineJob({ name: "good", run: (input) => void ran.push(input) })], {
      queues: ["good", "default"],
    });
    await worker.ready;
    const sqlite = target.dialect === "sqlite";
    const number = fc.oneof(
      fc.integer({ min: -2, max: 40_000 }),
      fc.constantFrom(
        -(2 ** 31),
        2 ** 31 - 1,
        -(2 ** 53),
        2 ** 53,
        LATEST_INSTANT,
        LATEST_INSTANT + 1,
        -1,
        0,
      ),
      fc.constantFrom<unknown>(
        1.5,
        Number.NaN,
        Infinity,
        -Infinity,
        "",
        "12",
        "12x",
        "NaN",
        "1e5",
        "-0",
        null,
      ),
      ...(sqlite
        ? [fc.uint8Array({ maxLength: 3 }), fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })]
        : []),
    );
    const text = fc.oneof(
      fc.string({ unit: "binary", maxLength: 20 }),
      fc.constantFrom<unknown>(
        null,
        "",
        "\0",
        "a\0b",
        "default",
        "x".repeat(600),
        "'; drop table job; --",
        7,
      ),
      ...(sqlite ? [fc.uint8Array({ maxLength: 3 }), fc.double()] : []),
    );
    const input = fc.oneof(
      fc.json(),
      fc.constantFrom<unknown>(
        null,
        "",
        "{",
        "1e999",
        "NaN",
        '"\\u0000"',
        '"\u001e"',
        "1\0",
        "[".repeat(5_000),
        7,
      ),
      ...(sqlite ? [fc.uint8Array({ maxLength: 3 }), fc.double()] : []),
    );
    const columns: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
      name: text,
      input,
      queue: text,
      priority: number,
      run_at: number,
      delay_ms: number,
      max_attempts: number,
      context: text,
      lane: text,
      id: fc.oneof(fc.uuid({ version: 7 }), fc.uuid(), text),
    };
    const hostile = fc.oneof(
      ...Object.entries(columns).map(([column, value]) => value.map((one) => ({ [column]: one }))),
    );
    const row = fc.tuple(hostile, hostile).map(([one, other]) => ({ name: "good", ...one, ...other }));
    let accepted = 0;
    await fc.assert(
      fc.asyncProperty(row, async (one) => {
        await insert(one).then(
          () => (accepted += 1),
          () => {},
        );
      }),
      { numRuns: 300 },
    );
    expect(accepted).toBeGreaterThan(10);
    const { id } = await hf.enqueue("good", "last", { queue: "good" });
    await hf.result(id, { timeout: "30s" });
    const askedAt = Date.now();
    await worker.idle();
    expect(ran).toContain("last");
    const all = (await hf.jobs.list({ limit: 1_000 })).jobs;
    expect(all).toHaveLength(accepted + 1);
    expect(() => JSON.stringify(all)).not.toThrow();
    // Nothing is left that was due when the worker was asked, and could be served.
    const served = all.filter((job) => job.name === "good" && ["good", "default"].includes(job.queue));
    const due = served.filter(({ runAt }) => runAt !== null && runAt.getTime() <= askedAt);
    expect(due.filter((job) => job.state === "ready" || job.state === "running")).toEqual([]);
    if (sqlite)
      for (const table of ["job", "ready"])
        for (const stored of await rows(table))
          for (const column of ["max_attempts", "run_at", "rank", "created_at"])
            if (stored[column] !== undefined && stored[column] !== null)
              expect(stored[column], column).toSatisfy(Number.isSafeInteger);
  });
});

onSqlite((target) => {
  test("[A6] an id that is there already is refused, whatever SQLite is told to do about conflicts: no job runs again", async () => {
    const { hf, fresh, rows } = await client(target, realTime);
    const ran: unknown[] = [];
    const run = (input: unknown): void => void ran.push(input);
    const worker = hf.work([defineJob({ name: "plain", run }), defineJob({ name: "new-one", run })], {
      queues: ["default"],
    });
    await worker.ready;
    const ids: string[] = [];
    for (const n of [1, 2, 3, 4, 5]) ids.push((await hf.enqueue("plain", n)).id);
    await worker.idle();
    const waiting = (await hf.enqueue("plain", 6, { delay: "1h" })).id;
    const before = [await rows("job"), await rows("ready"), await rows("history"), await rows("job_type")];
    for (const or of ["abort", "fail", "ignore", "replace", "rollback"])
      for (const id of [ids[4] as string, (ids[0] as string).toUpperCase(), waiting])
        for (const name of ["plain", "new-one"])
          await expect(
            fresh.query(
              `insert or ${or} into ${fresh.table("enqueue")} (id, name, input) values ('${id}', '${name}', '"again"')`,
            ),
            `or ${or}`,
          ).rejects.toThrow("id belongs to a job that is there already");
    expect([await rows("job"), await rows("ready"), await rows("history"), await rows("job_type")]).toEqual(
      before,
    );
    await worker.idle();
    expect(ran).toEqual([1, 2, 3, 4, 5]);
  });

  test("[A6] a new id is a job, and its name and lane stay one, whatever SQLite is told to do about conflicts", async () => {
    const { hf, fresh, rows } = await client(target, realTime);
    const policies = ["abort", "fail", "ignore", "replace", "rollback"];
    for (const or of policies)
      await fresh.query(
        `insert or ${or} into ${fresh.table("enqueue")} (id, name, lane) values ('${newId()}', 'plain', 'a'), (null, 'plain', 'a')`,
      );
    expect([
      (await rows("job_type")).length,
      (await rows("lane")).length,
      (await rows("lane_wakeup")).length,
    ]).toEqual([1, 1, 1]);
    expect(new Set(await leased(hf)).size).toBe(2 * policies.length);
  });

  test("[A6] SQLite keeps the types of its columns: a whole number as text is one, and anything else is refused", async () => {
    const { hf, fresh, count } = await client(target, realTime);
    const insert = inserter(fresh);
    await insert({ name: "plain", max_attempts: "3", priority: "7", delay_ms: 0 });
    await fresh.query(`insert into ${fresh.table("enqueue")} (name, max_attempts) values ('plain', 4.0)`);
    expect((await hf.jobs.list()).jobs.map((job) => job.maxAttempts).toSorted((a, b) => a - b)).toEqual([
      3, 4,
    ]);
    const bytes = new TextEncoder().encode("1");
    for (const bad of [1.5, "1x", "", bytes, Infinity]) {
      for (const column of ["max_attempts", "priority", "run_at", "delay_ms"])
        await expect(insert({ name: "plain", [column]: bad }), column).rejects.toThrow(
          "must be a whole number",
        );
    }
    for (const column of ["name", "queue", "lane", "context", "id", "input"])
      for (const bad of [bytes, "1\0"])
        await expect(insert({ name: "plain", [column]: bad }), column).rejects.toThrow(/must/);
    // Tables that are no interface keep their types as well.
    await expect(fresh.query(`update ${fresh.table("ready")} set run_at = 'soon'`)).rejects.toThrow(
      "cannot store TEXT",
    );
    await expect(fresh.query(`update ${fresh.table("job")} set max_attempts = 1.5`)).rejects.toThrow(
      "cannot store REAL",
    );
    expect(await count("job")).toBe(2);
    expect(await leased(hf)).toHaveLength(2);
  });
});
