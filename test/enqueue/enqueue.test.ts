// Storage and enqueue (promises A1 to A14).
import { DatabaseSync } from "node:sqlite";
import pg from "pg";
import { describe, expect, test } from "vitest";
import { defineJob, fixed, type Holdfast, open } from "holdfast";
import { StoreError } from "../../src/errors.ts";
import { checkTarget } from "../../src/open-options.ts";
import { LATEST_INSTANT, MAX_DELAY_MS } from "../../src/values/duration.ts";
import { migrations as postgresMigrations } from "../../src/storage/postgres/migrations.ts";
import { migrations as sqliteMigrations } from "../../src/storage/sqlite/migrations.ts";
import { spawnNode } from "../support/process.ts";
import { type FreshStore, onEveryStore } from "../support/stores.ts";
import { waitFor } from "../support/wait.ts";
import { client, clientOn, patient, realTime } from "../support/client.ts";
import { poison } from "../worker/poison.ts";

const plain = defineJob({ name: "plain", run: () => null });

describe("[A1] the address", () => {
  test("[A1] without one, HOLDFAST_URL, then DATABASE_URL, then the SQLite file ./holdfast.db is opened", () => {
    expect(checkTarget(undefined, { HOLDFAST_URL: "postgres://h/a", DATABASE_URL: "postgres://d/a" })).toBe(
      "postgres://h/a",
    );
    expect(checkTarget(undefined, { DATABASE_URL: "postgres://d/a" })).toBe("postgres://d/a");
    expect(checkTarget(undefined, { HOLDFAST_URL: "" })).toBe("sqlite:./holdfast.db");
  });
});

onEveryStore((target) => {
  test("[A1] one program runs unchanged, whichever database the URL names", async () => {
    const fresh = await target.fresh();
    await using hf = await open(fresh.url, fresh.options);
    const double = defineJob({ name: "double", run: (input: { n: number }) => input.n * 2 });
    await using worker = hf.work([double], { queues: ["default"] });
    expect(await hf.result(await hf.enqueue(double, { n: 21 }), { timeout: "30s" })).toBe(42);
    await worker.idle();
    expect(await fresh.query(`select state, output from ${fresh.table("history")}`)).toEqual([
      { state: "done", output: "42" },
    ]);
  });

  test("[A2] five processes open an empty database at once: one schema, no error", async () => {
    const fresh = await target.fresh();
    const children = Array.from({ length: 5 }, () =>
      spawnNode("test/enqueue/children/opener.ts", [fresh.url, fresh.options.schema ?? "holdfast"]),
    );
    await Promise.all(children.map((child) => child.message("here")));
    for (const child of children) child.send("go");
    await Promise.all(children.map((child) => child.message("opened")));
    const exits = await Promise.all(children.map((child) => child.exited));
    expect(exits.map(({ code }) => code)).toEqual([0, 0, 0, 0, 0]);
    const versions = (target.dialect === "sqlite" ? sqliteMigrations : postgresMigrations).map((step) => ({
      version: step.version,
    }));
    expect(await fresh.query(`select version from ${fresh.table("migration")} order by version`)).toEqual(
      versions,
    );
    expect(
      await fresh.query(`select count(*) as n from ${fresh.table("meta")} where key = 'instance'`),
    ).toEqual([{ n: 1 }]);
    expect(await fresh.query(`select count(*) as n from ${fresh.table("ready")}`)).toEqual([{ n: 5 }]);
    expect(await fresh.query(`select count(*) as n from ${fresh.table("job_type")}`)).toEqual([{ n: 1 }]);
  });

  test("[A2] opening a database that is up to date changes nothing of it", async () => {
    const { fresh, hf } = await client(target);
    await hf.enqueue(plain, null);
    const migration = await fresh.query(`select * from ${fresh.table("migration")}`);
    await clientOn(fresh);
    expect(await fresh.query(`select * from ${fresh.table("migration")}`)).toEqual(migration);
    expect(await fresh.query(`select count(*) as n from ${fresh.table("job")}`)).toEqual([{ n: 1 }]);
  });

  test("[A2] a client that may not migrate refuses an empty database and says what is missing", async () => {
    const fresh = await target.fresh();
    await expect(open(fresh.url, { ...fresh.options, migrate: false })).rejects.toMatchObject({
      code: "SCHEMA_MISSING",
    });
  });

  test("[A3] a second enqueue of an active key returns the first id and adds no row", async () => {
    const { hf, count } = await client(target);
    const first = await hf.enqueue(plain, { n: 1 }, { key: "k" });
    const second = await hf.enqueue(plain, { n: 2 }, { key: "k" });
    expect(first.status).toBe("enqueued");
    expect(second).toEqual({ status: "duplicate", id: first.id });
    expect([await count("job"), await count("ready"), await count("unique_key")]).toEqual([1, 1, 1]);
    expect((await hf.jobs.get(first.id))?.input).toEqual({ n: 1 });
  });

  test("[A3] an enqueue that is repeated with its id is one job", async () => {
    const { hf, count } = await client(target);
    const { id } = await hf.enqueue(plain, 1);
    await hf.enqueue(plain, 1, { id });
    expect([await count("job"), await count("ready")]).toEqual([1, 1]);
    const [lease] = await hf.lease();
    await lease?.done();
    await hf.enqueue(plain, 1, { id });
    expect(await count("ready"), "an ended job does not come back by it").toBe(0);
  });

  test("[A4] a job due in 2 s cannot be claimed before, and can then", async () => {
    const { hf, clock } = await client(target);
    const { id } = await hf.enqueue(plain, null, { delay: "2s" });
    expect(await hf.jobs.get(id)).toMatchObject({ state: "scheduled", runAt: new Date(clock.now() + 2_000) });
    await clock.advance(1_999);
    expect(await hf.lease()).toEqual([]);
    await clock.advance(1);
    expect((await hf.lease()).map((lease) => lease.id)).toEqual([id]);
  });

  test("[A4] a job for an instant is due at that instant, and one for the past now", async () => {
    const { hf, clock } = await client(target);
    const at = new Date(clock.now() + 60_000);
    const later = await hf.enqueue(plain, null, { at });
    const past = await hf.enqueue(plain, null, { at: new Date(clock.now() - 60_000) });
    expect((await hf.lease({ limit: 10, for: "1h" })).map((lease) => lease.id)).toEqual([past.id]);
    expect((await hf.jobs.get(later.id))?.runAt).toEqual(at);
    await clock.advance("1m");
    expect((await hf.lease({ limit: 10 })).map((lease) => lease.id)).toEqual([later.id]);
  });

  test("[A4] a delay of 1e15 ms and an instant beyond all dates are clamped, and the job is scheduled", async () => {
    const { hf, clock } = await client(target);
    const delayed = await hf.enqueue(plain, null, { delay: 1e15 });
    const at = await hf.enqueue(plain, null, { at: Number.MAX_VALUE });
    expect(await hf.jobs.get(delayed.id)).toMatchObject({
      state: "scheduled",
      runAt: new Date(clock.now() + MAX_DELAY_MS),
    });
    const latest = await hf.jobs.get(at.id);
    expect(latest?.state).not.toBe("ready");
    expect(latest?.runAt?.getTime() ?? LATEST_INSTANT).toBeLessThanOrEqual(LATEST_INSTANT);
    expect(await hf.lease({ limit: 10 })).toEqual([]);
  });

  test("[A4] a negative delay, and a delay beside an instant, are refused", async () => {
    const { hf, count } = await client(target);
    await expect(hf.enqueue(plain, null, { delay: -1 })).rejects.toMatchObject({ code: "BAD_DURATION" });
    await expect(hf.enqueue(plain, null, { delay: 1, at: new Date() })).rejects.toMatchObject({
      code: "BAD_OPTION",
    });
    expect(await count("job")).toBe(0);
  });

  test("[A5] an enqueue in a transaction that rolls back leaves no job and no wake", async () => {
    const { hf, fresh, count } = await client(target, realTime);
    // Its line is known, as in any program that has run for a while.
    const wakes = await wakeProbe(fresh, () => hf.enqueue(plain, null));
    const tx = await transaction(fresh);
    const { id } = await hf.enqueue(plain, { in: "tx" }, { tx: tx.handle });
    await hf.enqueueMany(
      [
        { job: plain, input: 1 },
        { job: "unheard-of", input: 2, queue: "new" },
      ],
      {
        tx: tx.handle,
      },
    );
    await tx.end("rollback");
    expect(await wakes()).toBe(0);
    expect(await hf.jobs.get(id)).toBeNull();
    expect([await count("job"), await count("ready")]).toEqual([1, 1]);
    // A line that was made inside the transaction is gone with it, and must not be remembered.
    const again = await hf.enqueue("unheard-of", 3, { queue: "new" });
    expect(await hf.jobs.get(again.id)).toMatchObject({ name: "unheard-of", queue: "new" });
  });

  test("[A5] an enqueue in a transaction that commits leaves the job and wakes a worker", async () => {
    const { hf, fresh } = await client(target, realTime);
    const wakes = await wakeProbe(fresh);
    const seen = Promise.withResolvers<unknown>();
    const job = defineJob({ name: "in-tx", run: (input: { n: number }) => seen.resolve(input) });
    const worker = hf.work([job], { queues: ["default"] });
    await worker.ready;
    await worker.idle();
    const tx = await transaction(fresh);
    const { id } = await hf.enqueue(job, { n: 7 }, { tx: tx.handle });
    expect(await hf.jobs.get(id), "nobody sees it before the commit").toBeNull();
    await tx.end("commit");
    expect(await seen.promise).toEqual({ n: 7 });
    expect(await wakes()).toBeGreaterThan(0);
  });

  test("[A5] a transaction on another database is refused", async () => {
    const { hf } = await client(target);
    const other = new DatabaseSync(":memory:");
    other.exec("begin immediate");
    const code = target.dialect === "sqlite" ? "TX_WRONG_DATABASE" : "TX_UNSUPPORTED";
    await expect(hf.enqueue(plain, null, { tx: other })).rejects.toMatchObject({ code });
    other.close();
  });

  test("[A6] a raw SQL insert of a name and an input is a job that a worker runs", async () => {
    const { hf, fresh } = await client(target, realTime);
    const seen = Promise.withResolvers<unknown>();
    const job = defineJob({
      name: "raw",
      run: (input, ctx) =>
        seen.resolve({ input, queue: ctx.queue, attempt: ctx.attempt, max: ctx.maxAttempts }),
    });
    const worker = hf.work([job], { queues: ["default"] });
    await worker.ready;
    await fresh.query(`insert into ${fresh.table("enqueue")} (name, input) values ('raw', '{"a": [1]}')`);
    expect(await seen.promise).toEqual({ input: { a: [1] }, queue: "default", attempt: 1, max: 5 });
  });

  test("[A6] a raw SQL insert takes queue, priority, delay, attempts and context", async () => {
    const { hf, fresh } = await client(target, realTime);
    await fresh.query(
      `insert into ${fresh.table("enqueue")} (name, queue, priority, delay_ms, max_attempts, context)
       values ('raw', 'mail', 7, 3600000, 2, 'why "so"')`,
    );
    const { jobs } = await hf.jobs.list();
    expect(jobs).toMatchObject([
      {
        name: "raw",
        queue: "mail",
        priority: 7,
        state: "scheduled",
        maxAttempts: 2,
        context: 'why "so"',
        input: null,
      },
    ]);
    const [job] = jobs;
    expect(job!.runAt!.getTime() - job!.createdAt.getTime()).toBe(3_600_000);
  });

  test("[A6] a raw SQL insert with a bad name, queue or input is refused whole", async () => {
    const { fresh, count } = await client(target, realTime);
    const insert = (columns: string, values: string): Promise<unknown> =>
      fresh.query(`insert into ${fresh.table("enqueue")} (${columns}) values (${values})`);
    await expect(insert("name, input", "'a,b', '1'")).rejects.toThrow("name must match");
    await expect(insert("name, queue, input", "'a', '', '1'")).rejects.toThrow("queue must match");
    await expect(insert("input", "'1'")).rejects.toThrow("name must match");
    await expect(insert("name, input", "'a', '{'")).rejects.toThrow(/json/i);
    expect([await count("job"), await count("ready")]).toEqual([0, 0]);
  });

  test("[A7] 1,000 jobs with duplicates go in one transaction, and the outcomes come in order", async () => {
    const { hf, store, count } = await client(target);
    await hf.enqueue(plain, "first", { key: "0" });
    const commits = store.counters.commits;
    const items = Array.from({ length: 1_000 }, (_, n) => ({
      job: plain,
      input: n,
      ...(n % 4 === 0 ? { key: String(n % 20) } : {}),
    }));
    const outcomes = await hf.enqueueMany(items);
    expect(store.counters.commits - commits).toBe(1);
    // Keys 0, 4, 8, 12, 16: 0 is taken from before, each other is new once.
    expect(outcomes.filter(({ status }) => status === "enqueued")).toHaveLength(750 + 4);
    const inputs = new Map((await hf.jobs.list({ limit: 1_000 })).jobs.map((job) => [job.id, job.input]));
    outcomes.forEach(({ status, id }, n) => {
      const key = n % 20;
      const first = n % 4 !== 0 || (n < 20 && key !== 0);
      expect([n, status]).toEqual([n, first ? "enqueued" : "duplicate"]);
      expect(inputs.get(id)).toBe(first ? n : key === 0 ? "first" : key);
    });
    expect(await count("ready")).toBe(755);
  });

  test("[A7] a job that the client refuses keeps all others of its batch out, and is named", async () => {
    const { hf, count } = await client(target);
    const items = Array.from({ length: 10 }, (_, n) => ({ job: plain, input: n === 7 ? 1n : n }));
    await expect(hf.enqueueMany(items as never)).rejects.toMatchObject({
      code: "INPUT_NOT_JSON",
      details: { index: 7 },
    });
    expect([await count("job"), await count("ready")]).toEqual([0, 0]);
  });

  test("[A7] a job that the database refuses keeps all others of its batch out", async () => {
    const { hf, fresh, count } = await client(target);
    await poison(fresh);
    const items = Array.from({ length: 10 }, (_, n) => ({
      job: plain,
      input: n === 7 ? "poison" : n,
      key: `${n}`,
    }));
    await expect(hf.enqueueMany(items)).rejects.toThrow();
    expect([await count("job"), await count("ready"), await count("unique_key")]).toEqual([0, 0, 0]);
  });

  test.each([
    ["DATABASE_BUSY", new StoreError("DATABASE_BUSY", "locked")],
    [
      "40P01",
      new StoreError("STORE_FAILED", "deadlock", { cause: Object.assign(new Error("x"), { code: "40P01" }) }),
    ],
    [
      "40001",
      new StoreError("STORE_FAILED", "serial", { cause: Object.assign(new Error("x"), { code: "40001" }) }),
    ],
  ])("[A8] a conflict (%s) is retried after 100 ms and 300 ms, and then succeeds", async (_, conflict) => {
    const { hf, store, clock, faults, count } = await client(target);
    let calls = 0;
    faults["newJobs.enqueue"] = (...given) =>
      ++calls <= 2 ? Promise.reject(conflict) : store.newJobs.enqueue(...given);
    const enqueued = hf.enqueue(plain, null);
    await clock.advance(99);
    expect(calls).toBe(1);
    await clock.advance(1);
    expect(calls).toBe(2);
    await clock.advance(299);
    expect(calls).toBe(2);
    await clock.advance(1);
    expect((await enqueued).status).toBe("enqueued");
    expect([calls, await count("job")]).toEqual([3, 1]);
    expect((await hf.stats()).counters.retries).toBe(2);
  });

  test("[A8] a conflict that stays surfaces after the third retry, a second after the second", async () => {
    const { hf, clock, faults } = await client(target);
    let calls = 0;
    faults["newJobs.enqueue"] = () => {
      calls += 1;
      return Promise.reject(new StoreError("DATABASE_BUSY", "locked"));
    };
    const failed = expect(hf.enqueue(plain, null)).rejects.toMatchObject({ code: "DATABASE_BUSY" });
    await clock.advance(1_399);
    expect(calls).toBe(3);
    await clock.advance(1);
    await failed;
    expect(calls).toBe(4);
  });

  test("[A8] a violation of a constraint surfaces at once, whatever its message says", async () => {
    const { hf, faults } = await client(target);
    let calls = 0;
    const cause = Object.assign(new Error("deadlock detected, database is locked"), { code: "23505" });
    faults["newJobs.enqueue"] = () => {
      calls += 1;
      return Promise.reject(new StoreError("STORE_FAILED", "SQLITE_BUSY 40001", { cause }));
    };
    await expect(hf.enqueue(plain, null)).rejects.toMatchObject({ code: "STORE_FAILED" });
    expect(calls).toBe(1);
  });

  test("[A9] an input that JSON cannot hold is refused, and there is no row", async () => {
    const { hf, count } = await client(target);
    const cyclic: Record<string, unknown> = {};
    cyclic["self"] = cyclic;
    for (const input of [1n, { deep: [1n] }, cyclic, () => 1, Symbol("s"), { at: NaN }]) {
      await expect(hf.enqueue("any", input), typeof input).rejects.toMatchObject({
        code: "INPUT_NOT_JSON",
      });
    }
    expect(await count("job")).toBe(0);
  });

  test("[A10] queue, priority, attempts, timeout, lane, key and context come back with the job", async () => {
    const { hf, clock, rows } = await client(target);
    const options = {
      queue: "mail",
      priority: -5,
      attempts: 9,
      timeout: "7s",
      lane: "tenant",
      key: "k",
      context: "why",
    };
    const { id } = await hf.enqueue("any", { a: null }, { ...options, backoff: fixed("3s") });
    expect(await hf.jobs.get(id)).toEqual({
      id,
      name: "any",
      queue: "mail",
      state: "ready",
      priority: -5,
      input: { a: null },
      output: null,
      progress: null,
      attempt: 0,
      maxAttempts: 9,
      crashes: 0,
      error: null,
      errors: [],
      key: "k",
      lane: "tenant",
      context: "why",
      createdAt: new Date(clock.now()),
      runAt: new Date(clock.now()),
      startedAt: null,
      endedAt: null,
      leaseUntil: null,
      workerId: null,
      parentId: null,
      step: null,
      waitsFor: null,
    });
    expect(await rows("job")).toMatchObject([{ timeout_ms: 7_000 }]);
  });

  test("[A10] without options a job has priority 0, 5 attempts, the queue default and no context", async () => {
    const { hf } = await client(target);
    const { id } = await hf.enqueue("any", null);
    expect(await hf.jobs.get(id)).toMatchObject({
      priority: 0,
      maxAttempts: 5,
      queue: "default",
      context: null,
      key: null,
      lane: null,
    });
  });

  test("[A10] an option that does not exist, and a value out of range, are refused", async () => {
    const { hf, count } = await client(target);
    const wrong: [object, string][] = [
      [{ prioriti: 1 }, "UNKNOWN_OPTION"],
      [{ priority: 1.5 }, "BAD_PRIORITY"],
      [{ priority: 1e12 }, "BAD_PRIORITY"],
      [{ attempts: 0 }, "BAD_OPTION"],
      [{ timeout: 0 }, "BAD_DURATION"],
      [{ context: 5 }, "BAD_OPTION"],
    ];
    for (const [options, code] of wrong) {
      await expect(hf.enqueue("any", null, options), JSON.stringify(options)).rejects.toMatchObject({ code });
    }
    expect(await count("job")).toBe(0);
  });

  test("[A11] without a queue the router says, by definition, by name, in bulk and from a handler", async () => {
    const { hf } = await client(target, { route: (name) => `q-${name}` });
    const child = defineJob({ name: "child" });
    const parent = defineJob({
      name: "parent",
      run: async (_input, ctx) => [
        (await ctx.enqueue(child, 1)).id,
        (await ctx.enqueueMany([{ job: "child", input: 1 }]))[0].id,
      ],
    });
    const worker = hf.work([parent], { queues: ["q-parent"], ...patient });
    const { id } = await hf.enqueue(parent, null);
    await worker.idle();
    const fromHandler = (await hf.jobs.get<unknown, string[]>(id))?.output ?? [];
    expect(fromHandler).toHaveLength(2);
    const many = await hf.enqueueMany([
      { job: child, input: 1 },
      { job: "child", input: 1 },
    ]);
    const ids = [
      (await hf.enqueue(child, 1)).id,
      (await hf.enqueue("child", 1)).id,
      ...many.map((one) => one.id),
      ...fromHandler,
    ];
    for (const id of ids) expect((await hf.jobs.get(id))?.queue).toBe("q-child");
  });

  test("[A11] a queue that the definition or the call names wins over the router", async () => {
    const { hf } = await client(target, { route: () => "routed" });
    const named = defineJob({ name: "named", queue: "own" });
    const byDefinition = await hf.enqueue(named, 1);
    const byCall = await hf.enqueue(named, 1, { queue: "called" });
    expect((await hf.jobs.get(byDefinition.id))?.queue).toBe("own");
    expect((await hf.jobs.get(byCall.id))?.queue).toBe("called");
  });

  test('[A11] "a,b", "" and other bad names are refused as a queue, as a name and from the router', async () => {
    const { hf, another, count } = await client(target);
    const routed = await another({ route: (name) => (name === "ok" ? "ok" : "a,b") });
    for (const bad of ["a,b", "", " a", "-a", "a".repeat(129), "ü", 5 as never]) {
      await expect(hf.enqueue("ok", 1, { queue: bad })).rejects.toMatchObject({ code: "BAD_NAME" });
      await expect(hf.enqueue(bad, 1)).rejects.toMatchObject({
        code: expect.stringMatching(/BAD_NAME|UNKNOWN_JOB/) as string,
      });
    }
    await expect(routed.hf.enqueue("other", 1)).rejects.toMatchObject({ code: "BAD_NAME" });
    expect(await count("job")).toBe(0);
  });

  test("[A12] 50 enqueues of one key at once, by five clients, make one row", async () => {
    const first = await client(target);
    const clients: Holdfast[] = [first.hf];
    for (let n = 1; n < 5; n++) clients.push((await first.another()).hf);
    const results = await Promise.all(
      Array.from({ length: 50 }, (_, n) => clients[n % 5]!.enqueue(plain, n, { key: "k" })),
    );
    expect(results.filter(({ status }) => status === "enqueued")).toHaveLength(1);
    expect(new Set(results.map(({ id }) => id)).size).toBe(1);
    expect([await first.count("job"), await first.count("ready")]).toEqual([1, 1]);
  });

  test("[A12] the key is held while the job waits, runs and waits for its retry, and is free once it is done", async () => {
    const { hf, clock } = await client(target);
    const again = (): Promise<string> => hf.enqueue(plain, 0, { key: "k" }).then(({ status }) => status);
    const { id } = await hf.enqueue(plain, 0, { key: "k", delay: "1m" });
    expect(await again(), "scheduled").toBe("duplicate");
    await clock.advance("1m");
    const [first] = await hf.lease();
    expect(await again(), "running").toBe("duplicate");
    await first!.fail(new Error("no"));
    expect(await again(), "retry wait").toBe("duplicate");
    await clock.advance("2m");
    const [second] = await hf.lease();
    expect(second!.id).toBe(id);
    await second!.done();
    expect(await again(), "done").toBe("enqueued");
  });

  test("[A12] the key is free once the job is dead, cancelled or deleted", async () => {
    const { hf, count } = await client(target);
    const keyed = (): Promise<{ status: string; id: string }> => hf.enqueue(plain, 0, { key: "k" });
    await keyed();
    await (await hf.lease())[0]!.dead("no");
    const second = await keyed();
    expect(second.status).toBe("enqueued");
    await hf.jobs.cancel(second.id);
    const third = await keyed();
    expect(third.status).toBe("enqueued");
    await hf.jobs.delete(third.id);
    expect((await keyed()).status).toBe("enqueued");
    expect(await count("unique_key")).toBe(1);
  });

  test("[A12] the key is free when the job leaves no history behind", async () => {
    const { hf } = await client(target);
    const fleeting = defineJob({ name: "fleeting", keep: false });
    await hf.enqueue(fleeting, 0, { key: "k" });
    await (await hf.lease())[0]!.done();
    expect((await hf.enqueue(fleeting, 0, { key: "k" })).status).toBe("enqueued");
  });

  test("[A12] a key with a time is held for that time too, also when the job has ended before", async () => {
    const { hf, clock } = await client(target);
    const hourly = defineJob({ name: "hourly", unique: { key: () => "k", for: "1h" } });
    await hf.enqueue(hourly, 0);
    await (await hf.lease())[0]!.done();
    await clock.advance("59m");
    expect((await hf.enqueue(hourly, 0)).status).toBe("duplicate");
    await clock.advance("1m");
    expect((await hf.enqueue(hourly, 0)).status).toBe("enqueued");
    await clock.advance("2h");
    expect((await hf.enqueue(hourly, 0)).status, "not ended: held however long it takes").toBe("duplicate");
  });

  test("[A12] a key is unique over its name, its queue or everything, as its scope says", async () => {
    const { hf } = await client(target);
    const kind = (name: string, scope: "job" | "queue" | "global") =>
      defineJob({ name, unique: { key: () => "k", scope } });
    const status = async (name: string, scope: "job" | "queue" | "global", queue: string): Promise<string> =>
      (await hf.enqueue(kind(name, scope), 0, { queue })).status;
    expect(await status("a", "job", "q1")).toBe("enqueued");
    expect(await status("a", "job", "q2"), "same name, other queue").toBe("duplicate");
    expect(await status("b", "job", "q1"), "other kind").toBe("enqueued");
    expect(await status("c", "queue", "q1")).toBe("enqueued");
    expect(await status("d", "queue", "q1"), "other kind, same queue").toBe("duplicate");
    expect(await status("d", "queue", "q2"), "other queue").toBe("enqueued");
    expect(await status("e", "global", "q1")).toBe("enqueued");
    expect(await status("f", "global", "q2"), "everything else").toBe("duplicate");
  });

  test("[A13] a name with a field as its key dedupes by that field, and other kinds do not", async () => {
    const { hf } = await client(target);
    const chapter = defineJob({
      name: "chapter",
      unique: "chapterId",
      run: (_: { chapterId: number; n?: number }) => null,
    });
    const other = defineJob({ name: "other" });
    const first = await hf.enqueue(chapter, { chapterId: 1 });
    expect(await hf.enqueue(chapter, { chapterId: 1, n: 2 })).toEqual({ status: "duplicate", id: first.id });
    expect((await hf.enqueue(chapter, { chapterId: 2 })).status).toBe("enqueued");
    expect((await hf.enqueue(other, { chapterId: 1 })).status).toBe("enqueued");
    expect((await hf.enqueue(other, { chapterId: 1 })).status).toBe("enqueued");
    expect((await hf.jobs.get(first.id))?.key).toBe("1");
  });

  test("[A13] an input without the field is refused, and not enqueued without a key", async () => {
    const { hf, count } = await client(target);
    const chapter = defineJob({ name: "chapter", unique: "chapterId" });
    await expect(hf.enqueue(chapter, {} as never)).rejects.toMatchObject({
      code: expect.stringMatching(/^BAD_/) as string,
    });
    expect(await count("job")).toBe(0);
  });

  test("[A13] by name, a name whose key is computed needs its key from the caller", async () => {
    const { hf, count } = await client(target);
    const chapter = defineJob({ name: "chapter", unique: "chapterId", run: () => null });
    await hf.work([chapter], { queues: ["elsewhere"], ...patient }).ready;
    await waitFor(
      () =>
        hf.enqueue("chapter", {}).then(
          () => false,
          () => true,
        ),
      { what: "the kind to be known" },
    );
    await expect(hf.enqueue("chapter", { chapterId: 1 })).rejects.toMatchObject({ code: "KEY_REQUIRED" });
    expect((await hf.enqueue("chapter", { chapterId: 1 }, { key: "1" })).status).toBe("enqueued");
    expect((await hf.enqueue(chapter, { chapterId: 1 })).status).toBe("duplicate");
    expect(await count("ready")).toBe(1);
  });

  test("[A14] 10,000 jobs of one millisecond are claimed in the order in which they were enqueued", async () => {
    const { hf } = await client(target);
    const enqueued = await Promise.all(Array.from({ length: 10_000 }, (_, n) => hf.enqueue(plain, n)));
    const claimed: string[] = [];
    for (;;) {
      const leases = await hf.lease({ limit: 1_000 });
      if (leases.length === 0) break;
      claimed.push(...leases.map((lease) => lease.id));
    }
    expect(claimed).toEqual(enqueued.map(({ id }) => id));
    expect(claimed).toEqual([...claimed].sort());
  });

  test("[A14] enqueues of one client keep their order, also around a batch", async () => {
    const { hf } = await client(target);
    const order = await Promise.all([
      hf.enqueue(plain, 0),
      hf.enqueueMany([
        { job: plain, input: 1 },
        { job: plain, input: 2 },
      ]),
      hf.enqueue(plain, 3),
    ]);
    expect(order.flat()).toHaveLength(4);
    expect((await hf.lease({ limit: 10 })).map((lease) => lease.input)).toEqual([0, 1, 2, 3]);
  });
});

/** A transaction of the user's own, on a connection of its own. */
async function transaction(
  fresh: FreshStore,
): Promise<{ handle: object; end(how: "commit" | "rollback"): Promise<void> }> {
  if (fresh.dialect === "sqlite") {
    const handle = new DatabaseSync(fresh.url.slice("sqlite:".length));
    handle.exec("begin immediate");
    const end = async (how: string): Promise<void> => {
      handle.exec(how);
      handle.close();
    };
    return { handle, end };
  }
  const handle = new pg.Client({ connectionString: fresh.url });
  await handle.connect();
  await handle.query("begin");
  const end = async (how: string): Promise<void> => {
    await handle.query(how);
    await handle.end();
  };
  return { handle, end };
}

/**
 * How many times other processes were told of something: NOTIFYs on Postgres, the change counter on SQLite. From now on; or,
 * where something is to be enqueued before, from after that was told.
 */
async function wakeProbe(fresh: FreshStore, before?: () => Promise<unknown>): Promise<() => Promise<number>> {
  if (fresh.dialect === "sqlite") {
    await before?.();
    const version = async (): Promise<number> =>
      Number((await fresh.query("pragma data_version"))[0]!["data_version"]);
    const first = await version();
    return async () => (await version()) - first;
  }
  const listener = new pg.Client({ connectionString: fresh.url });
  await listener.connect();
  let heard = 0;
  let marked: () => void;
  const channel = `"${fresh.options.schema}"`;
  await listener.query(`listen ${channel}`);
  await listener.query(`listen "${fresh.options.schema}_mark"`);
  listener.on("notification", (message) => {
    if (message.channel.endsWith("_mark")) marked();
    else if (message.payload?.includes('"work"') === true) heard += 1;
  });
  if (before !== undefined) {
    await before();
    await waitFor(() => heard > 0, { what: "the first wake-up" });
    heard = 0;
  }
  return async () => {
    // Notifications come in the order of their commits: when the mark is here, everything before it is.
    const mark = new Promise<void>((resolve) => (marked = resolve));
    await fresh.query(`notify "${fresh.options.schema}_mark"`);
    await mark;
    await listener.end();
    return heard;
  };
}
