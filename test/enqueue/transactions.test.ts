import Database from "better-sqlite3";
import { DatabaseSync } from "node:sqlite";
import pg from "pg";
import { describe, expect, onTestFinished, test } from "vitest";
import * as z from "zod";
import { defineJob, open, silentLogger } from "../../src/index.ts";
import { type FreshStore, onEveryStore, onPostgres, onSqlite } from "../support/stores.ts";
import { waitFor } from "../support/wait.ts";
import { connect, containing, fresh, refusal, rows } from "../support/test-clients.ts";

const job = defineJob({ name: "mail", input: z.object({ to: z.string() }), run: async () => {} });

interface Tx {
  readonly handle: object;
  begin(): Promise<void>;
  commit(): Promise<void>;
  rollback(): Promise<void>;
}

const pathOf = (store: FreshStore): string => store.url.slice("sqlite:".length);

/** A connection of the user's own, in a transaction. */
async function transaction(store: FreshStore): Promise<Tx> {
  if (store.dialect === "sqlite") {
    const handle = new DatabaseSync(pathOf(store));
    onTestFinished(() => handle.close());
    const run = (sql: string) => async (): Promise<void> => handle.exec(sql);
    return { handle, begin: run("begin immediate"), commit: run("commit"), rollback: run("rollback") };
  }
  const handle = new pg.Client({ connectionString: store.url });
  await handle.connect();
  onTestFinished(() => handle.end());
  const run = (sql: string) => async (): Promise<void> => void (await handle.query(sql));
  return { handle, begin: run("begin"), commit: run("commit"), rollback: run("rollback") };
}

onEveryStore((target) => {
  describe("enqueue in the caller's transaction", () => {
    test("[A5] a rollback leaves no job, a commit leaves it and wakes a worker", async () => {
      const { hf, store } = await fresh(target);
      const tx = await transaction(store);
      await tx.begin();
      const lost = await hf.enqueue(job, { to: "a" }, { tx: tx.handle });
      expect(lost.status).toBe("enqueued");
      await tx.rollback();
      expect(await hf.jobs.get(lost.id)).toBeNull();
      expect(await rows(store, "job")).toBe(0);
      const ran = Promise.withResolvers<string>();
      const worker = hf.work([job.handle(async (_input, ctx) => ran.resolve(ctx.id))], {
        queues: ["default"],
      });
      await worker.ready;
      await tx.begin();
      const kept = await hf.enqueue(job, { to: "b" }, { tx: tx.handle });
      expect(await rows(store, "job")).toBe(0);
      await tx.commit();
      expect(await ran.promise).toBe(kept.id);
    });

    test("[A5] a job that comes after one that the same transaction has replaced does not wait for itself", async () => {
      const { hf, store } = await fresh(target);
      const keyed = defineJob({
        name: "keyed",
        unique: { key: () => "k", onConflict: "replace" },
        run: async () => {},
      });
      const first = await hf.enqueue(keyed, 1, { delay: "1h" });
      const tx = await transaction(store);
      await tx.begin();
      expect(await hf.enqueue(keyed, 2, { delay: "1h", tx: tx.handle })).toEqual({
        status: "replaced",
        id: first.id,
      });
      const { id } = await hf.enqueue(job, { to: "a" }, { after: [first.id], tx: tx.handle });
      await tx.commit();
      expect(await hf.jobs.get(id)).toMatchObject({ state: "waiting", waitsFor: "jobs" });
    }, 15_000);

    test("[A5] a job with a lane too: its lane goes on while the transaction is open, and takes it in after the commit", async () => {
      const { hf, store } = await fresh(target);
      const ran: string[] = [];
      const laned = defineJob({
        name: "laned",
        lane: (input: { to: string }) => input.to.slice(0, 1),
        lanes: { concurrency: 1 },
        run: async (input) => void ran.push(input.to),
      });
      const tx = await transaction(store);
      await tx.begin();
      const lost = await hf.enqueue(laned, { to: "z1" }, { tx: tx.handle });
      await tx.rollback();
      expect(await hf.jobs.get(lost.id)).toBeNull();
      const worker = hf.work([laned], { queues: ["default"] });
      await worker.ready;
      await tx.begin();
      await hf.enqueue(laned, { to: "a1" }, { tx: tx.handle });
      if (store.dialect === "postgres") {
        // SQLite has one writer: the open transaction keeps all others waiting, whatever they write.
        const { id } = await hf.enqueue(laned, { to: "a2" });
        await hf.result(id, { timeout: "10s" });
        expect(ran).toEqual(["a2"]);
      }
      await tx.commit();
      await waitFor(() => ran.includes("a1"), { what: "it to run", deadlineMs: 10_000 });
    });

    test("enqueueMany and unique keys work in a transaction too", async () => {
      const { hf, store } = await fresh(target);
      const unique = defineJob({ name: "unique", unique: "to", run: async (_input: { to: string }) => {} });
      const first = await hf.enqueue(unique, { to: "a" });
      const tx = await transaction(store);
      await tx.begin();
      const results = await hf.enqueueMany(
        [
          { job: unique, input: { to: "a" } },
          { job: unique, input: { to: "b" } },
          { job: "by-name", input: 1 },
        ],
        { tx: tx.handle },
      );
      await tx.commit();
      expect(results.map(({ status }) => status)).toEqual(["duplicate", "enqueued", "enqueued"]);
      expect(results[0]?.id).toBe(first.id);
      expect(await rows(store, "job")).toBe(3);
    });

    test("a refused input leaves the transaction usable", async () => {
      const { hf, store } = await fresh(target);
      const tx = await transaction(store);
      await tx.begin();
      expect(await refusal(hf.enqueue(job, { to: 1 } as never, { tx: tx.handle }))).toMatchObject({
        code: "INPUT_INVALID",
      });
      await hf.enqueue(job, { to: "a" }, { tx: tx.handle });
      await tx.commit();
      expect(await rows(store, "job")).toBe(1);
    });

    test("what is no transaction is refused", async () => {
      const { hf } = await fresh(target);
      for (const handle of [{}, { query: 1 }, []])
        expect(await refusal(hf.enqueue(job, { to: "a" }, { tx: handle }))).toMatchObject({
          code: "TX_UNSUPPORTED",
        });
    });
  });
});

onSqlite((target) => {
  // Only SQLite has synchronous handles.
  test("a job is written before enqueue returns, also inside better-sqlite3's synchronous transaction", async () => {
    const { hf, store } = await fresh(target);
    const db = new Database(pathOf(store));
    onTestFinished(() => void db.close());
    const added: Promise<unknown>[] = [];
    db.transaction(() => {
      added.push(hf.enqueue(job, { to: "a" }, { tx: db }));
      added.push(
        hf.enqueueMany(
          [
            { job, input: { to: "b" } },
            { job: "by-name", input: 1 },
          ],
          { tx: db },
        ),
      );
    })();
    expect(db.prepare(`select count(*) as n from ${store.table("job")}`).get()).toEqual({ n: 3 });
    await Promise.all(added);
    expect(() =>
      db.transaction(() => {
        added.push(hf.enqueue(job, { to: "c" }, { tx: db }));
        throw new Error("roll back");
      })(),
    ).toThrow("roll back");
    await Promise.all(added);
    expect(await rows(store, "job")).toBe(3);
  });

  test("a client on the user's own handle enqueues in its transactions, and leaves it open", async () => {
    const store = await target.fresh();
    const db = new DatabaseSync(pathOf(store));
    onTestFinished(() => db.close());
    const hf = await open(db, { logger: silentLogger });
    await hf.enqueue(job, { to: "a" });
    db.exec("begin immediate");
    const result = hf.enqueue(job, { to: "b" }, { tx: db });
    db.exec("rollback");
    await result;
    expect(await hf.jobs.count()).toBe(1);
    await hf.close();
    expect(db.isOpen).toBe(true);
  });

  test("a file other than the client's is refused", async () => {
    const { hf } = await fresh(target);
    const other = await transaction(await target.fresh());
    await other.begin();
    expect(await refusal(hf.enqueue(job, { to: "a" }, { tx: other.handle }))).toMatchObject({
      code: "TX_WRONG_DATABASE",
    });
  });
});

onPostgres((target) => {
  // A pool hands every statement to another connection: that is no transaction.
  test("a client of a pool works, the pool itself is refused", async () => {
    const { hf, store } = await fresh(target);
    const pool = new pg.Pool({ connectionString: store.url });
    onTestFinished(() => pool.end());
    expect(await refusal(hf.enqueue(job, { to: "a" }, { tx: pool }))).toMatchObject({
      code: "TX_UNSUPPORTED",
    });
    const client = await pool.connect();
    await client.query("begin");
    await hf.enqueue(job, { to: "a" }, { tx: client });
    await client.query("commit");
    client.release();
    expect(await rows(store, "job")).toBe(1);
  });

  // SQLite's handles have always told whether a transaction is open on them.
  test("[A5] a client on which nobody said begin is refused, before and after a transaction", async () => {
    const { hf, store } = await fresh(target);
    const tx = await transaction(store);
    const refused = { code: "TX_UNSUPPORTED", message: containing("Begin a transaction first") };
    expect(await refusal(hf.enqueue(job, { to: "a" }, { tx: tx.handle }))).toMatchObject(refused);
    await tx.begin();
    await hf.enqueue(job, { to: "b" }, { tx: tx.handle });
    await hf.enqueue(job, { to: "c" }, { tx: tx.handle });
    await tx.commit();
    expect(await refusal(hf.enqueue(job, { to: "d" }, { tx: tx.handle }))).toMatchObject(refused);
    const begun = tx.begin();
    await hf.enqueue(job, { to: "e" }, { tx: tx.handle });
    await begun;
    await tx.rollback();
    expect(await rows(store, "job")).toBe(2);
  });

  test("a pg that cannot say whether a transaction is open is taken at its word", async () => {
    const { hf, store } = await fresh(target);
    const tx = await transaction(store);
    Object.assign(tx.handle, { getTransactionStatus: undefined });
    await hf.enqueue(job, { to: "a" }, { tx: tx.handle });
    expect(await rows(store, "job")).toBe(1);
  });

  test("a read-only transaction is told as such, and no connection is given up for it", async () => {
    const { hf, store } = await fresh(target);
    const lost: unknown[] = [];
    hf.on("connection.lost", (event) => lost.push(event));
    const client = new pg.Client({ connectionString: store.url });
    await client.connect();
    onTestFinished(() => client.end());
    await client.query("begin read only");
    expect(await refusal(hf.enqueue(job, { to: "a" }, { tx: client }))).toMatchObject({ code: "READ_ONLY" });
    await client.query("rollback");
    await client.query("begin");
    await hf.enqueue(job, { to: "b" }, { tx: client });
    await client.query("commit");
    expect(await rows(store, "job")).toBe(1);
    expect(lost).toEqual([]);
  });

  test("a client on the user's own pool leaves it open", async () => {
    const store = await target.fresh();
    const pool = new pg.Pool({ connectionString: store.url });
    onTestFinished(() => pool.end());
    const hf = await open(pool, { ...store.options, logger: silentLogger });
    await hf.enqueue(job, { to: "a" });
    await hf.close();
    expect((await pool.query("select 1 as one")).rows).toEqual([{ one: 1 }]);
    await (await connect(store)).jobs.count();
  });
});
