// Lifting a database from one store to another and back: nothing lost, nothing doubled, whatever interrupts it.
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import {
  type AnyJob,
  Dead,
  defineJob,
  defineMachine,
  finish,
  fixed,
  type Holdfast,
  type Job,
  next,
  open,
  silentLogger,
} from "../../src/index.ts";
import { move } from "../../src/operate/move.ts";
import type { Admin } from "../../src/storage/admin.ts";
import { openAdmin, withoutSecrets } from "../../src/storage/open.ts";
import { temporaryDirectory } from "../support/guard.ts";
import { onEveryStore, type FreshStore } from "../support/stores.ts";
import { connect, fresh } from "../support/test-clients.ts";
import { cli, on } from "./support.ts";
import { operatorOf } from "../../src/operate/operator.ts";

const fine = defineJob({ name: "fine", run: (input: { n: number }) => ({ twice: input.n * 2 }) });
const bad = defineJob({
  name: "bad",
  queue: "other",
  run: () => {
    throw new Dead("no \u0000 way \ud800");
  },
});

/** Jobs in every state, a key, a hold, a queue's settings, values, minutes. */
async function fill(hf: Holdfast, store: FreshStore): Promise<void> {
  const worker = hf.work([fine, bad], { queues: { default: 5, other: 5 } });
  await hf.enqueueMany(
    Array.from({ length: 120 }, (_, n) => ({
      job: fine,
      input: { n, text: "ü \u0000 \ud800 'x' \"y\"" } as { n: number },
    })),
  );
  await hf.enqueueMany(Array.from({ length: 7 }, () => ({ job: bad, input: null })));
  await worker.ready;
  await worker.idle();
  await worker.stop();
  await hf.enqueueMany(Array.from({ length: 30 }, (_, n) => ({ job: fine, input: { n }, delay: "1d" })));
  await hf.enqueueMany(
    Array.from({ length: 20 }, (_, n) => ({ job: fine, input: { n }, context: "why", priority: n })),
  );
  await hf.enqueue(fine, { n: 1 }, { key: "only-one" });
  const cancelled = await hf.enqueue(fine, { n: 2 }, { delay: "1h" });
  await hf.jobs.cancel(cancelled.id);
  await hf.queues.set("other", { retention: { done: "1h" } });
  await hf.queues.pause("other");
  await hf.holds.set("stop", { queues: ["other", "more"], reason: "it's so" });
  await hf.state.set("cursor", { at: 7 });
  // As a worker that was killed leaves it: one job held by a session that is gone.
  const [lease] = await hf.lease({ queues: ["default"], limit: 1, for: "10m" });
  expect(lease).toBeDefined();
  await store.query(`update ${store.table("session")} set lease_until = 1000 where kind = 'lease'`);
}

/** All jobs by id, without what belongs to the reading. */
async function everything(hf: Holdfast): Promise<Map<string, Job>> {
  const jobs = new Map<string, Job>();
  let cursor: string | null = null;
  do {
    const page: { jobs: readonly Job[]; cursor: string | null } = await hf.jobs.list({
      limit: 1_000,
      cursor,
    });
    for (const job of page.jobs) jobs.set(job.id, job);
    ({ cursor } = page);
  } while (cursor !== null);
  return jobs;
}

/** Another store: a file for Postgres, and for SQLite this target's kin, so that both ways are gone. */
async function opposite(store: FreshStore, servers: FreshStore): Promise<{ url: string; schema: string }> {
  if (store.dialect === "postgres")
    return {
      url: `sqlite:${join(temporaryDirectory("moved"), "jobs.db")}`,
      schema: store.options.schema as string,
    };
  return { url: servers.url, schema: servers.options.schema ?? "holdfast" };
}

async function admins(
  store: FreshStore,
  to: { url: string; schema: string },
): Promise<{ from: Admin; to: Admin }> {
  const target = await open(to.url, { schema: to.schema, logger: silentLogger });
  await target.close();
  const pair = {
    from: await openAdmin(store.url, store.options.schema ?? "holdfast"),
    to: await openAdmin(to.url, to.schema),
  };
  onTestFinished(async () => {
    await pair.from.close();
    await pair.to.close();
  });
  return pair;
}

// On each Postgres: SQLite → Postgres → SQLite. On SQLite: file → file.
onEveryStore((target) => {
  test("[N10] every job of every state arrives with its id, its key and its history, and is back as it was", async () => {
    const file = temporaryDirectory("source");
    const source = target.dialect === "sqlite" ? await target.fresh() : sqliteStore(file);
    const hf = await connect(source);
    await fill(hf, source);
    const before = await everything(hf);
    const middle = await target.fresh();
    const holdfast = on(source);
    const args = middle.options.schema === undefined ? [] : ["--to-schema", middle.options.schema];
    const there = await holdfast(["move", middle.url, ...args, "--force", "--json"]);
    expect(there.code, there.err).toBe(0);
    const states = there.json<{ states: { state: string; from: number; to: number }[] }>().states;
    expect(states.every(({ from, to }) => from === to)).toBe(true);
    expect(states.find(({ state }) => state === "done")?.to).toBe(120);

    const moved = await connect(middle);
    expect(await everything(moved)).toEqual(before);
    expect(await moved.enqueue(fine, { n: 9 }, { key: "only-one" })).toMatchObject({ status: "duplicate" });
    expect(await moved.holds.list()).toMatchObject([
      { name: "stop", queues: ["other", "more"], reason: "it's so" },
    ]);
    expect((await moved.queues.list()).find(({ name }) => name === "other")).toMatchObject({ paused: true });
    expect(await moved.state.get("cursor")).toEqual({ at: 7 });

    // Numbers go on behind those that came along: a new kind, a new session, and tokens that still rise.
    const { id: newId } = await moved.enqueue("brand-new", { n: 1 }, { queue: "brand-new" });
    expect(await moved.jobs.get(newId)).toMatchObject({
      name: "brand-new",
      queue: "brand-new",
      state: "ready",
    });
    const [fromAdmin, toAdmin] = [
      await openAdmin(source.url, source.options.schema ?? "holdfast"),
      await openAdmin(middle.url, middle.options.schema ?? "holdfast"),
    ];
    expect(await fromAdmin.lastToken()).toBeGreaterThan(0);
    expect(await toAdmin.lastToken()).toBeGreaterThanOrEqual(await fromAdmin.lastToken());
    await fromAdmin.close();
    await toAdmin.close();

    // The source takes no writes, from whoever; the target works on.
    await expect(hf.enqueue(fine, { n: 3 })).rejects.toMatchObject({ code: "MOVED" });
    await moved.holds.clear("stop");
    const worker = moved.work([fine, bad], { queues: { default: 5 } });
    await worker.ready;
    await worker.idle();
    await worker.stop();
    expect(await moved.jobs.count({ state: "ready", queue: "default" })).toBe(0);
    expect(await moved.jobs.count({ state: "done" })).toBe(141);
    const crashed = [...before.values()].find(({ state }) => state === "running") as Job;
    expect(await moved.jobs.get(crashed.id)).toMatchObject({ state: "done", crashes: 1 });

    // And back, into a file of its own.
    const after = await everything(moved);
    const home = `sqlite:${join(file, "home.db")}`;
    const back = await on(middle)(["move", home, "--to-schema", "holdfast", "--force", "--json"]);
    expect(back.code, back.err).toBe(0);
    await using again = await open(home, { logger: silentLogger });
    expect(await everything(again)).toEqual(after);
    await expect(moved.enqueue(fine, { n: 1 })).rejects.toMatchObject({ code: "MOVED" });
  });

  test("[N10] schedules, budgets, lanes, breakers, workflows, dependencies, minutes and the audit trail come along, and go on", async () => {
    const file = temporaryDirectory("features");
    const source = target.dialect === "sqlite" ? await target.fresh() : sqliteStore(file);
    const hf = await connect(source, { eventLog: true, jobLog: true });
    const done: string[] = [];
    const definitions = features(done);
    const before = await fillFeatures(hf, definitions, source);
    expect(await emptyTables(source)).toEqual([]);
    expect(await fractions(source)).toEqual([]);
    // As an earlier version left the steps of a machine, and as raw SQL may leave a due time.
    await source.query(
      `update ${source.table("step")} set started_at = started_at + 0.25 where kind = 'machine'`,
    );
    await source.query(`update ${source.table("lane_wakeup")} set at = at + 0.25`);
    expect(await fractions(source)).toEqual(["lane_wakeup.at", "step.started_at"]);
    expect(before.state.lanes.find(({ key }) => key === "a")).toMatchObject({ running: 2, waiting: 3 });
    expect([before.state.minutes.length > 0, before.state.audit.length]).toEqual([true, 1]);

    const middle = await target.fresh();
    const args = middle.options.schema === undefined ? [] : ["--to-schema", middle.options.schema];
    const there = await on(source)(["move", middle.url, ...args, "--force", "--json"]);
    expect(there.code, there.err).toBe(0);
    const moved = await connect(middle);
    expect(await featuresOf(moved, before.ids)).toEqual(before.state);

    // And back. The sleeper and the one that waits for a signal go on where they were; no step is done again.
    const home = `sqlite:${join(file, "home.db")}`;
    const back = await on(middle)(["move", home, "--to-schema", "holdfast", "--force", "--json"]);
    expect(back.code, back.err).toBe(0);
    await using again = await open(home, { logger: silentLogger });
    expect(await featuresOf(again, before.ids)).toEqual(before.state);
    // Each move is on the trail of where it went, which the next one takes along.
    expect((await trailOf(again)).map(({ action }) => action)).toEqual([
      "database.move",
      "database.move",
      "queues.pause",
    ]);
    expect(await fractions(sqliteStore(file, "home.db"))).toEqual([]);
    expect(done.toSorted()).toEqual(steps);
    const worker = again.work(definitions, { queues: { default: 5, tenants: 5 } });
    await worker.ready;
    for (const id of [before.ids.machine, before.ids.child, before.ids.undoing]) await again.jobs.runNow(id);
    expect(await again.result(before.ids.machine, { timeout: "20s" })).toEqual({ laps: 2 });
    expect(await again.result(before.ids.caller, { timeout: "20s" })).toEqual(["called", "after the call"]);
    await expect(again.result(before.ids.undoing, { timeout: "20s" })).rejects.toThrow("no seat");
    await again.jobs.runNow(before.ids.sleeper);
    await again.signal("approved", { key: "k", data: { by: "Ada" } });
    expect(await again.result(before.ids.sleeper, { timeout: "20s" })).toBe("asleep slept");
    expect(await again.result(before.ids.waiter, { timeout: "20s" })).toEqual({ by: "Ada" });
    expect(await again.result(before.ids.follower, { timeout: "20s" })).toBe("after");
    expect(done.toSorted()).toEqual([...steps, "undone"].toSorted());
    // The two that a killed process held gave their places back, once.
    await expect
      .poll(() => again.jobs.count({ queue: "tenants", state: "done" }), { timeout: 20_000 })
      .toBe(5);
    expect((await again.lanes.list({ key: "a" })).lanes).toMatchObject([{ running: 0, waiting: 0 }]);
    expect((await again.schedules.trigger("nightly")).status).toBe("enqueued");
    await worker.stop();
  });

  test("[N10] places of a limit that jobs left after their worker stopped claiming are free at the target, once", async () => {
    const { hf, store } = await fresh(target);
    const begun: number[] = [];
    const limited = defineJob({
      name: "limited",
      queue: "limited",
      run: async (n: number) => {
        begun.push(n);
        await sleep(300 + n * 150);
      },
    });
    await hf.queues.set("limited", { concurrency: 3 });
    await hf.enqueueMany([1, 2, 3].map((n) => ({ job: limited, input: n })));
    const worker = hf.work([limited], { queues: { limited: 3 } });
    await expect.poll(() => begun.length, { timeout: 20_000 }).toBe(3);
    await worker.stop(); // as the command stops them: no claim folds what these jobs give back
    const counted = `select sum(n) as n from ${store.table("returned_capacity")} where queue = 'limited'`;
    expect((await store.query(counted)).map(({ n }) => Number(n))).toEqual([3]);

    const to = await opposite(store, await target.fresh());
    const moved = await on(store)(["move", to.url, "--to-schema", to.schema, "--force"]);
    expect(moved.code, moved.err).toBe(0);
    const there = await openAdmin(to.url, to.schema);
    onTestFinished(() => there.close());
    expect(await there.returnedCapacity()).toEqual([{ queue: "limited", n: 3 }]);
    await using again = await open(to.url, { schema: to.schema, logger: silentLogger });
    await again.enqueueMany([1, 2, 3].map((n) => ({ job: limited, input: n })));
    const other = again.work([limited], { queues: { limited: 3 } });
    await expect.poll(() => begun.length, { timeout: 20_000 }).toBe(6);
    await other.stop();
  });

  test("[N10] rows that the other store has no place for do not keep the jobs: counts too large, rows without a job, fractions in keys", async () => {
    const file = temporaryDirectory("odd");
    const source = target.dialect === "sqlite" ? await target.fresh() : sqliteStore(file);
    const hf = await connect(source);
    await fill(hf, source);
    const { id } = await hf.enqueue(fine, { n: 1 }, { delay: "1d" });
    const [dead] = (await hf.jobs.list({ state: "dead", limit: 1 })).jobs;
    // As an earlier version counted.
    await source.query(
      `update ${source.table("ready")} set attempt = 40000, throttles = 40000, crashes = 40000 where seq = ${source.jobKeyOf(`'${id}'`)}`,
    );
    await source.query(
      `update ${source.table("history")} set attempt = 40000, throttles = 40000, crashes = 40000 where seq = ${source.jobKeyOf(`'${dead?.id}'`)}`,
    );
    const before = await everything(hf);
    const most = { attempt: 32_767, crashes: 32_767 };
    for (const one of [id, dead?.id ?? ""]) before.set(one, { ...(before.get(one) as Job), ...most });
    await addStrays(source);
    for (const at of [12.5, 14.25, 14])
      await source.query(`insert into ${source.table("occurrence")} values ('s', ${at}, '${id}', 1)`);

    const middle = await target.fresh();
    const args = middle.options.schema === undefined ? [] : ["--to-schema", middle.options.schema];
    const there = await on(source)(["move", middle.url, ...args, "--force", "--json"]);
    expect(there.code, there.err).toBe(0);
    const moved = await connect(middle);
    expect(await everything(moved)).toEqual(before);
    const slots = await middle.query(`select at from ${middle.table("occurrence")} order by at`);
    expect(slots.map(({ at }) => Number(at))).toEqual([13, 14]);

    await addStrays(middle);
    const home = `sqlite:${join(file, "home.db")}`;
    const back = await on(middle)(["move", home, "--to-schema", "holdfast", "--force", "--json"]);
    expect(back.code, back.err).toBe(0);
    await using again = await open(home, { logger: silentLogger });
    expect(await everything(again)).toEqual(before);
  });

  test("[N10] interrupted after any batch and run again, nothing is lost or doubled", async () => {
    const { hf, store } = await fresh(target);
    await fill(hf, store);
    const before = await everything(hf);
    const second = await target.fresh();
    const to = await opposite(store, second);
    const { from, to: target2 } = await admins(store, to);
    let runs = 0;
    for (let writes = 1; ; writes += 7) {
      runs += 1;
      let left = writes;
      // The process is gone after so many batches: the database has the batch, or it has not.
      const mortal = new Proxy(target2, {
        get: (admin, name) => {
          const value: unknown = Reflect.get(admin, name);
          if (name !== "write")
            return typeof value === "function" ? (value as () => unknown).bind(admin) : value;
          return async (...args: Parameters<Admin["write"]>) => {
            left -= 1;
            if (left === 0 && writes % 2 === 0) throw new Error("killed before the batch");
            await admin.write(...args);
            if (left === 0) throw new Error("killed after the batch");
          };
        },
      });
      try {
        await move(from, mortal, { batch: 10 });
        break;
      } catch (error) {
        expect((error as Error).message).toMatch(/^killed/);
      }
      // Nothing can be claimed at the target meanwhile, and nothing written to the source.
      await using half = await open(to.url, { schema: to.schema, logger: silentLogger });
      expect((await half.holds.list()).map(({ name }) => name)).toContain("holdfast.move");
    }
    expect(runs).toBeGreaterThan(3);
    await using moved = await open(to.url, { schema: to.schema, logger: silentLogger });
    expect(await everything(moved)).toEqual(before);
    expect((await moved.holds.list()).map(({ name }) => name)).toEqual(["stop"]);
  });

  test("[N10] a target that somebody wrote to, that is not empty or that is the source itself is refused", async () => {
    const { hf, store } = await fresh(target);
    await hf.enqueue(fine, { n: 1 });
    const holdfast = on(store);
    const same = await holdfast(["move", store.url, "--force"]);
    expect(same).toMatchObject({ code: 1, err: expect.stringContaining("same database") as string });
    const full = await target.fresh();
    await (await connect(full)).enqueue(fine, { n: 2 });
    const args = full.options.schema === undefined ? [] : ["--to-schema", full.options.schema];
    expect(await holdfast(["move", full.url, ...args, "--force"])).toMatchObject({
      code: 1,
      err: expect.stringContaining("not empty") as string,
    });
    expect((await hf.enqueue(fine, { n: 3 })).status).toBe("enqueued"); // nothing was frozen

    const to = await opposite(store, await target.fresh());
    const pair = await admins(store, to);
    const meddling = new Proxy(pair.to, {
      get: (admin, name) => {
        const value: unknown = Reflect.get(admin, name);
        if (name !== "write")
          return typeof value === "function" ? (value as () => unknown).bind(admin) : value;
        return async (...args2: Parameters<Admin["write"]>) => {
          await admin.write(...args2);
          if (args2[0].name === "ready") await admin.setMeta("x", "y").then(() => meddle(to));
        };
      },
    });
    await expect(move(pair.from, meddling)).rejects.toMatchObject({ code: "MOVE_INCOMPLETE" });
  });

  test("[N10] an unfinished move can be given up, a finished one cannot", async () => {
    const { hf, store } = await fresh(target);
    await hf.enqueue(fine, { n: 1 });
    const to = await opposite(store, await target.fresh());
    const pair = await admins(store, to);
    const broken = new Proxy(pair.to, {
      get: (admin, name) => {
        const value: unknown = Reflect.get(admin, name);
        if (name === "raiseCounters") return () => Promise.reject(new Error("killed"));
        return typeof value === "function" ? (value as () => unknown).bind(admin) : value;
      },
    });
    await expect(move(pair.from, broken)).rejects.toThrow("killed");
    await expect(hf.enqueue(fine, { n: 2 })).rejects.toMatchObject({ code: "MOVED" });
    expect((await on(store)(["move", to.url, "--abort"])).code).toBe(0);
    expect((await hf.enqueue(fine, { n: 2 })).status).toBe("enqueued");
    const other = `sqlite:${join(temporaryDirectory("other"), "jobs.db")}`;
    expect((await on(store)(["move", other, "--to-schema", "holdfast", "--force"])).code).toBe(0);
    expect(await on(store)(["move", other, "--abort"])).toMatchObject({
      code: 1,
      err: expect.stringContaining("To reverse the move") as string,
    });
    // Run once more: it says so, and changes nothing.
    expect(
      (await on(store)(["move", other, "--to-schema", "holdfast", "--force", "--json"])).json(),
    ).toMatchObject({ resumed: true });
    expect((await cli(["jobs", "list", "--count", "--url", other])).out).toBe("2\n");
  });

  test("[N10] reading what was moved says where to and when, beside the result; the question and the refusal name the schema", async () => {
    const { hf, store } = await fresh(target);
    await hf.enqueue(fine, { n: 1 });
    const holdfast = on(store);
    const other = `sqlite:${join(temporaryDirectory("elsewhere"), "jobs.db")}`;
    expect((await holdfast(["stats"])).err).toBe("");
    const line = ["move", other, "--to-schema", "shop"];
    const asked = await holdfast(line, { tty: true, answers: ["n"] });
    expect(asked.err).toContain(`to ${other} (prefix shop)? `);
    const moved = await holdfast(line, { tty: true, answers: ["y"] });
    expect([moved.code, moved.out]).toEqual([
      0,
      expect.stringContaining("with the new address and the schema shop."),
    ]);
    await expect(hf.enqueue(fine, { n: 2 })).rejects.toMatchObject({
      code: "MOVED",
      message: expect.stringContaining(`${other} (prefix shop)`) as string,
    });

    const note =
      /^This database was moved to sqlite:\S+ \(prefix shop\) at \d{4}-\d\d-\d\dT[\d:.]+Z\. It shows the data of that time\.\n$/;
    for (const command of ["stats", "queues", "workers", "errors", "jobs list", "budgets list", "top"]) {
      const read = await holdfast([...command.split(" "), "--json"], {
        signal: AbortSignal.timeout(command === "top" ? 500 : 60_000),
      });
      expect([command, read.code, read.err]).toEqual([command, 0, expect.stringMatching(note)]);
      if (command !== "top") read.json();
    }
    expect((await cli(["stats", "--url", other, "--schema", "shop"])).err).toBe("");
  });

  test("[N10] workers of the source are stopped first, and one that does not stop keeps the move from beginning", async () => {
    const { hf, store } = await fresh(target);
    const started = Promise.withResolvers<void>();
    const release = Promise.withResolvers<void>();
    const slow = defineJob({
      name: "slow",
      run: () => {
        started.resolve();
        return release.promise;
      },
    });
    const own = await connect(store);
    const worker = own.work([slow], { queues: ["default"], heartbeat: "200ms", lease: "5s" });
    const { id } = await hf.enqueue(slow, null);
    await started.promise;
    const other = `sqlite:${join(temporaryDirectory("stopping"), "jobs.db")}`;
    const line = ["move", other, "--to-schema", "holdfast", "--json"];
    expect((await on(store)(line)).code).toBe(2); // nobody to ask
    const first = await on(store)([...line, "--wait", "500ms"], { tty: true, answers: ["y"] });
    expect(first.code).toBe(2); // --json never asks
    const refused = await on(store)(["move", other, "--to-schema", "holdfast", "--wait", "500ms"], {
      tty: true,
      answers: ["y"],
    });
    expect(refused).toMatchObject({ code: 1, err: expect.stringContaining("still run") as string });
    release.resolve();
    expect((await on(store)([...line, "--force"])).code).toBe(0);
    await worker.stopped;
    await using moved = await open(other, { logger: silentLogger });
    expect((await moved.jobs.get(id))?.state).toBe("done");
  });
});

async function meddle(to: { url: string; schema: string }): Promise<void> {
  await using hf = await open(to.url, { schema: to.schema, logger: silentLogger });
  await hf.enqueue("intruder", null);
}

function sqliteStore(folder: string, file = "source.db"): FreshStore {
  const path = join(folder, file);
  return {
    dialect: "sqlite",
    url: `sqlite:${path}`,
    options: {},
    jobKey: "seq",
    jobKeyOf: (id) => `(select j.seq from "holdfast_job" j where j.id = ${id})`,
    idIn: () => "",
    query: async (sql) => {
      const { DatabaseSync } = await import("node:sqlite");
      const database = new DatabaseSync(path, { timeout: 5_000 });
      try {
        return database.prepare(sql).all();
      } finally {
        database.close();
      }
    },
    table: (name) => `"holdfast_${name}"`,
    dispose: () => Promise.resolve(),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}

async function emptyTables(file: FreshStore): Promise<string[]> {
  const found: string[] = [];
  for (const table of new Set((await columnsOf(file)).map((column) => column.table)))
    if ((await file.query(`select 1 from ${file.table(table)} limit 1`)).length === 0) found.push(table);
  return found;
}

/** Columns of a file that are declared as integers and hold something else: SQLite takes it, and Postgres does not. */
async function fractions(file: FreshStore): Promise<string[]> {
  const found: string[] = [];
  for (const { table, column, type } of await columnsOf(file)) {
    if (type !== "INTEGER") continue;
    const odd = `typeof("${column}") not in ('integer', 'null')`;
    const [row] = await file.query(`select count(*) as n from ${file.table(table)} where ${odd}`);
    if (row?.["n"] !== 0) found.push(`${table}.${column}`);
  }
  return found;
}

async function columnsOf(file: FreshStore): Promise<{ table: string; column: string; type: string }[]> {
  const rows = await file.query(
    `select m.name as "table", c.name as "column", upper(c.type) as "type" from sqlite_master m, pragma_table_info(m.name) c
     where m.type = 'table' and m.name like 'holdfast!_%' escape '!' order by 1, 2`,
  );
  return rows.map((row) => ({
    table: String(row["table"]).slice("holdfast_".length),
    column: String(row["column"]),
    type: String(row["type"]),
  }));
}

/** Rows about jobs that are not there, as a crash of an earlier version, or a hand, left them. */
async function addStrays(store: FreshStore): Promise<void> {
  const [one, other, third] =
    store.dialect === "sqlite"
      ? [90_001, 90_002, 90_003]
      : [1, 2, 3].map((n) => `'01a00000-0000-7000-8000-00000000000${n}'`);
  const line = `from ${store.table("job_type")} limit 1`;
  await store.query(
    `insert into ${store.table("ready")} (${store.jobKey}, job_type, rank, run_at) select ${one}, id, 0, 0 ${line}`,
  );
  await store.query(
    `insert into ${store.table("history")} (${store.jobKey}, job_type, rank, state, attempt, crashes, throttles, run_at, ended_at)
     select ${other}, id, 0, 'done', 1, 0, 0, 0, 1 ${line}`,
  );
  await store.query(
    `insert into ${store.table("member")} (batch, ${store.jobKey}) values ('01a00000-0000-7000-8000-000000000009', ${third})`,
  );
}

/** What `features` has done before the move. */
const steps = ["asleep", "called", "first lap", "seat", "waiting"];

/** Runs that sleep and wait, a job behind one of them, and jobs of a lane. `done` hears every step that is done. */
function features(done: string[]): AnyJob[] {
  return [
    defineJob({
      name: "sleeper",
      run: async (_input: unknown, ctx) => {
        const name = await ctx.step("begin", async () => (done.push("asleep"), "asleep"));
        await ctx.sleep("a month", "30d");
        return `${name} slept`;
      },
    }),
    defineJob({
      name: "waiter",
      run: async (_input: unknown, ctx) => {
        await ctx.step("begin", async () => void done.push("waiting"));
        return ctx.waitFor<{ by: string }>("approved", { key: "k" });
      },
    }),
    defineJob({ name: "follower", run: async (_input: unknown) => "after" }),
    defineMachine({
      name: "machine",
      start: "walk",
      steps: {
        walk: {
          run: async (_data: null) => {
            await sleep(3); // so that a step takes a part of a millisecond, too
            done.push("first lap");
            return next("rest", { laps: 1 }, { delay: "1d" });
          },
        },
        rest: { run: async (data: { laps: number }) => finish({ laps: data.laps + 1 }) },
      },
    }),
    defineJob({
      name: "caller",
      run: async (_input: unknown, ctx) => {
        const first = await ctx.step("begin", async () => (done.push("called"), "called"));
        ctx.log.info({ about: "the call" }, "calls");
        return [first, await ctx.call("child", null, { delay: "1d" })];
      },
    }),
    defineJob({ name: "child", run: async (_input: unknown) => "after the call" }),
    defineJob({
      name: "undoing",
      retry: { attempts: 2, backoff: fixed("1d") },
      run: async (_input: unknown, ctx) => {
        await ctx.step("seat", async () => void done.push("seat"), {
          undo: async () => void done.push("undone"),
        });
        throw new Error("no seat");
      },
    }),
    defineJob({ name: "forgotten", keep: false, run: async (_input: unknown) => {} }),
    defineJob({
      name: "sync",
      queue: "tenants",
      run: async (_input: unknown) => {},
    }),
    defineJob({
      name: "bank",
      queue: "bank",
      run: async (_input: unknown) => {
        throw new Error("503 from the bank");
      },
    }),
  ];
}

type FeatureIds = Record<
  "sleeper" | "waiter" | "follower" | "machine" | "caller" | "child" | "undoing",
  string
>;

async function fillFeatures(hf: Holdfast, definitions: ReturnType<typeof features>, store: FreshStore) {
  await hf.schedules.put({
    name: "nightly",
    cron: "0 2 * * *",
    timezone: "Asia/Tokyo",
    job: "sleeper",
    input: 1,
  });
  await hf.schedules.edit("nightly", { missed: "all" });
  await hf.schedules.put({ name: "daily", cron: "0 3 * * *", job: "follower", input: null });
  await hf.schedules.backfill("daily", { from: Date.now() - 3 * 86_400_000, limit: 1 });
  await hf.schedules.put({ name: "often", every: "90s", job: "sleeper", input: 2 });
  await hf.schedules.pause("often");
  await hf.budgets.set("slack", { limit: 1, per: "30d", burst: 20 });
  await hf.budgets.take("slack", 7);
  await hf.queues.set("bank", { breaker: { after: 1, cooldown: "10h" } });
  await hf.lanes.set("tenants", "b", { rate: { limit: 5, per: "1h" }, weight: 7 });
  await hf.lanes.pause("tenants", "b");
  await hf.signal("kept", { key: "early", data: [1, 2] });
  await operatorOf(hf).store.insight.addAudit({
    actor: "ada",
    action: "queues.pause",
    target: "mail",
    outcome: "paused",
    details: null,
  });
  const worker = hf.work(definitions, { queues: { default: 5, bank: 1 } });
  await worker.ready;
  const machine = await hf.enqueue("machine", null);
  const caller = await hf.enqueue("caller", null);
  const undoing = await hf.enqueue("undoing", null);
  await hf.enqueue("forgotten", null);
  await hf.queues.set("slow", { concurrency: 1, rate: { limit: 5, per: "1h" } }, { for: "30d" });
  await hf.budgets.set("slack", { limit: 2, per: "30d", burst: 20 }, { for: "30d" });
  await hf.holds.set("stop", { queues: ["more"], reason: "it's so" });
  await hf.enqueue("fine", { n: 1 }, { key: "only-one", delay: "1d" });
  await hf.state.pass("crawl", async (pass) => pass.ok());
  await hf.state.set("cursor", { at: 7 });
  const sleeper = await hf.enqueue("sleeper", null);
  const waiter = await hf.enqueue("waiter", null);
  const follower = await hf.enqueue("follower", null, { after: [waiter.id] });
  await hf.enqueue("bank", null, { queue: "bank" });
  await hf.batch(
    [1, 2].map((n) => ({ job: "later", input: n, delay: "1d" })),
    { then: { job: "last", input: null }, onDead: "continue" },
  );
  await expect.poll(async () => (await hf.jobs.get(caller.id))?.waitsFor, { timeout: 20_000 }).toBe("jobs");
  const [child] = (await hf.jobs.list({ name: "child" })).jobs;
  const ids: FeatureIds = {
    sleeper: sleeper.id,
    waiter: waiter.id,
    follower: follower.id,
    machine: machine.id,
    caller: caller.id,
    child: child?.id ?? "",
    undoing: undoing.id,
  };
  await expect.poll(async () => (await hf.jobs.get(undoing.id))?.attempt, { timeout: 20_000 }).toBe(1);
  await expect
    .poll(async () => (await hf.jobs.get(machine.id))?.state, { timeout: 20_000 })
    .toBe("scheduled");
  await expect
    .poll(async () => (await hf.jobs.get(ids.sleeper))?.waitsFor, { timeout: 20_000 })
    .toBe("sleep");
  await expect
    .poll(async () => (await hf.jobs.get(ids.waiter))?.waitsFor, { timeout: 20_000 })
    .toBe("signal");
  await expect.poll(async () => (await hf.breakers.list())[0]?.state, { timeout: 20_000 }).toBe("open");
  await hf.result((await hf.enqueue("follower", null)).id, { timeout: "20s" });
  await worker.stop();
  await operatorOf(hf).store.upkeep.takeTask("tidy", 60_000);
  await store.query(`insert into ${store.table("gauge")} values (0, 'here', 'load', 0.1)`);
  await store.query(
    `insert into ${store.table("metric_sum")} values ('', 0, 1, 2, 3, 4, 5, 6, 7, '[0.1]', '[0.2]')`,
  );
  const gone = "01a00000-0000-7000-8000-000000000001";
  // Jobs under limits leave these rows for a moment.
  await store.query(`insert into ${store.table("uncounted_job")} values ('slow', '${gone}', 1)`);
  await store.query(`insert into ${store.table("returned_capacity")} values ('slow', 1)`);
  // As a process that was killed leaves it: two of the lane are held, and its limit is two.
  await hf.enqueueMany([1, 2, 3, 4, 5].map((n) => ({ job: "sync", input: n, queue: "tenants", lane: "a" })));
  await hf.lanes.set("tenants", "a", { concurrency: 2 });
  expect(await hf.lease({ queues: ["tenants"], limit: 5, for: "10m" })).toHaveLength(2);
  await store.query(`update ${store.table("session")} set lease_until = 1000 where kind = 'lease'`);
  // And a cancel under way: a lease, which looks after what dead sessions left, comes before it.
  await store.query(`insert into ${store.table("cancel")} values ('${gone}', 1, 1, 1, false, 'why')`);
  await hf.enqueue("sync", 6, { queue: "tenants", lane: "b" }); // rings for a lane that is paused
  await hf.eventLog.flush();
  await hf.jobLog.flush();
  return { ids, state: await featuresOf(hf, ids) };
}

/** Newest first. */
function trailOf(hf: Holdfast) {
  return operatorOf(hf).store.insight.audit({ limit: 10, before: null });
}

/** With the jobs of each. */
async function batchesOf(hf: Holdfast) {
  const { batches } = await operatorOf(hf).store.insight.batches({}, { limit: 10, cursor: null });
  return Promise.all(
    batches.map(async (batch) => {
      const { jobs } = await hf.jobs.list({ batch: batch.id });
      return { ...batch, jobs: jobs.map(({ id }) => id).sort() };
    }),
  );
}

/** Everything that must be the same afterwards. */
async function featuresOf(hf: Holdfast, ids: FeatureIds) {
  const schedules = await hf.schedules.list();
  const [budget] = await hf.budgets.list();
  const { lanes } = await hf.lanes.list();
  const minutes = await hf.metrics.series({ by: "job-type", since: Date.now() - 3_600_000 });
  return {
    schedules,
    budget: { ...budget, tokens: Math.floor(budget?.tokens ?? -1) },
    lanes,
    batches: await batchesOf(hf),
    breakers: await hf.breakers.list(),
    temporaryLimits: await hf.temporaryLimits.list(),
    holds: await hf.holds.list(),
    cursor: await hf.state.get("cursor"),
    errors: await hf.errors.list(),
    events: await hf.eventLog.list(),
    lines: await hf.jobLog.list(ids.caller),
    histories: await Promise.all(Object.values(ids).map((id) => hf.jobs.history(id))),
    why: await Promise.all(Object.values(ids).map(async (id) => (await hf.jobs.why(id)).text)),
    minutes,
    audit: (await trailOf(hf)).filter(({ action }) => action !== "database.move"),
  };
}

test("[N10] no part of a password is in an address that is shown", () => {
  for (const [url, shown] of [
    ["postgres://ada:secret@db:5432/app?sslmode=require", "postgres://db:5432/app"],
    ["postgres://ada:se@cret@db/app", "postgres://db/app"],
    ["postgres://ada:se/cret@db/app", "postgres://db/app"],
    ["postgres://ada:se?cret@db/app", "postgres://…"],
    ["postgres://db/app?user=ada&password=se@cret", "postgres://…"],
    ["postgres:///app?host=/run/pg&password=secret", "postgres:///app"],
    ["sqlite:/data/a@b/jobs.db", "sqlite:/data/a@b/jobs.db"],
  ] as const)
    expect(withoutSecrets(url)).toBe(shown);
});
