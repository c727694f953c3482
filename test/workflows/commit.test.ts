// Ends and steps inside the handler's own transaction: the effect and its record are both there or both absent.
import Database from "better-sqlite3";
import { DatabaseSync } from "node:sqlite";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { defineJob, fixed, type JobContext } from "../../src/index.ts";
import { type FreshStore, onEveryStore, onSqlite } from "../support/stores.ts";
import { jobOf, newWorld } from "../support/world.ts";

const lease = { lease: "20d", heartbeat: "9d" } as const;
const queues = { default: 1 } as const;

/** The user's own connection, with a table of effects. */
async function effects(fresh: FreshStore, lite: "node" | "better" = "node") {
  await fresh.query(`create table ${fresh.table("effect")} (n integer)`);
  const sqlite =
    fresh.dialect === "postgres"
      ? null
      : lite === "node"
        ? new DatabaseSync(fresh.url.slice(7))
        : new Database(fresh.url.slice(7));
  const client = sqlite === null ? new pg.Client({ connectionString: fresh.url }) : null;
  await client?.connect();
  onTestFinished(() => void (sqlite?.close(), client?.end()));
  const run = async (sql: string): Promise<void> => {
    if (client === null) sqlite?.exec(sql);
    else await client.query(sql);
  };
  return {
    tx: (client ?? sqlite) as object,
    begin: () => run(client === null ? "begin immediate" : "begin"),
    commit: () => run("commit"),
    rollback: () => run("rollback"),
    effect: (n: number) => run(`insert into ${fresh.table("effect")} values (${n})`),
    count: async () =>
      Number((await fresh.query(`select count(*) as n from ${fresh.table("effect")}`))[0]!["n"]),
  };
}

onEveryStore((target) => {
  test("[O10] a divergence at ctx.commit undoes nothing, also where the handler wraps its error; matching code goes on", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const own = await effects(world.fresh);
    const ran: string[] = [];
    let shorter = false;
    const job = defineJob({
      name: "paid",
      retry: { attempts: 1 },
      run: async (n: number, ctx) => {
        await ctx.step("a", () => void ran.push("a"), { undo: () => void ran.push("undo a") });
        if (!shorter) await ctx.waitFor("go");
        await own.begin();
        try {
          await ctx.commit(own.tx, n);
          await own.commit();
        } catch (error) {
          await own.rollback();
          throw new Error("the payment could not be written", { cause: error });
        }
      },
    });
    await one.work([job], { queues, ...lease });
    const { id } = await one.hf.enqueue(job, 7);
    const state = async () => (await jobOf(one, id)).state;
    await world.until("waiting", async () => (await state()) === "waiting");
    shorter = true;
    await one.hf.signal("go");
    await world.until("dead", async () => (await state()) === "dead", "5m");
    expect((await jobOf(one, id)).error).toMatch(/^DIVERGED: Step "signal:go"/);
    expect(ran).toEqual(["a"]);
    shorter = false;
    await one.hf.jobs.retry(id);
    await world.until("done", async () => (await state()) === "done", "5m");
    expect(ran).toEqual(["a"]);
  });

  test("[N2] ctx.commit ends the job in the handler's own transaction", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const own = await effects(world.fresh);
    const job = defineJob({
      name: "paid",
      unique: (n: number) => String(n),
      run: async (n: number, ctx) => {
        await own.begin();
        await own.effect(n);
        await ctx.commit(own.tx, { paid: n });
        await own.commit();
      },
    });
    await one.work([job], { queues, ...lease });
    const done = one.told("job.done");
    const { id } = await one.hf.enqueue(job, 7);
    const after = await one.hf.enqueue(defineJob({ name: "other" }), 1, { after: [id] });
    await world.until("done", async () => (await jobOf(one, id)).state === "done");
    expect(await jobOf(one, id)).toMatchObject({ output: { paid: 7 }, attempt: 1, error: null });
    expect(await own.count()).toBe(1);
    await world.until("told", () => done.length === 1);
    await world.until("the next may start", async () => (await jobOf(one, after.id)).state === "ready");
    await world.until("no claim is left", async () => (await world.rows("claim")).length === 0);
    expect((await one.hf.enqueue(job, 7)).status).toBe("enqueued");
  });

  test("[O1] a handler that works on after its ctx.commit is not told that its lease is lost, and its job is told as done", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const own = await effects(world.fresh);
    const go = Promise.withResolvers<void>();
    const aborted: boolean[] = [];
    const job = defineJob({
      name: "paid",
      run: async (n: number, ctx) => {
        await own.begin();
        await ctx.commit(own.tx, n);
        await own.commit();
        await go.promise;
        aborted.push(ctx.signal.aborted);
      },
    });
    const worker = await one.work([job], { queues, lease: "30s", heartbeat: "5s" });
    const [lost, done] = [one.told("lease.lost"), one.told("job.done")];
    const { id } = await one.hf.enqueue(job, 7);
    await world.advance("12s");
    expect((await jobOf(one, id)).state).toBe("done");
    go.resolve();
    await world.until("told", () => done.length + lost.length > 0);
    expect(aborted).toEqual([false]);
    expect(lost).toEqual([]);
    expect(done).toMatchObject([{ id }]);
    expect(worker.leasesLost).toBe(0);
    await world.until("no claim is left", async () => (await world.rows("claim")).length === 0);
  });

  test("[O1] a handler whose ctx.commit was rolled back, and that works on, is told when its session is lost", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const own = await effects(world.fresh);
    const reasons: unknown[] = [];
    let rolledBack = false;
    const job = defineJob({
      name: "paid",
      run: async (n: number, ctx) => {
        if (rolledBack) return;
        await own.begin();
        await ctx.commit(own.tx, n);
        await own.rollback();
        rolledBack = true;
        await new Promise<void>((resolve) => ctx.signal.addEventListener("abort", () => resolve()));
        reasons.push(ctx.signal.reason);
      },
    });
    await one.work([job], { queues, lease: "30s", heartbeat: "5s" });
    await one.hf.enqueue(job, 7);
    await world.until("it to work on", () => rolledBack);
    await world.fresh.query(`update ${world.fresh.table("session")} set lease_until = 0`);
    await world.until("told", () => reasons.length > 0);
    expect(reasons).toMatchObject([{ code: "LEASE_LOST" }]);
  });

  test("[N2] a transaction that is rolled back takes the end with it: the attempt has failed", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const own = await effects(world.fresh);
    const job = defineJob({
      name: "paid",
      retry: { attempts: 3, backoff: fixed("1s") },
      run: async (n: number, ctx) => {
        await own.begin();
        await own.effect(n);
        await ctx.commit(own.tx, ctx.attempt);
        if (ctx.attempt === 1) {
          await own.rollback();
          return;
        }
        if (ctx.attempt === 2) {
          await own.rollback();
          throw new Error("thought better of it");
        }
        await own.commit();
        throw new Error("too late: it is done");
      },
    });
    await one.work([job], { queues, ...lease });
    const { id } = await one.hf.enqueue(job, 7);
    await world.until("done", async () => (await jobOf(one, id)).state === "done");
    const ended = await jobOf(one, id);
    expect(ended.output).toBe(3);
    expect(ended.errors.map(({ message }) => message.slice(0, 20))).toEqual([
      "NOT_COMMITTED: The h",
      "thought better of it",
    ]);
    expect(await own.count()).toBe(1);
  });

  test("[O10] ctx.commit ends no run that has recorded steps which its code does not ask for", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const own = await effects(world.fresh);
    let shorter = false;
    const job = defineJob({
      name: "paid",
      run: async (n: number, ctx) => {
        await ctx.step("a", () => "a");
        if (!shorter) await ctx.waitFor("go");
        await own.begin();
        try {
          await own.effect(n);
          await ctx.commit(own.tx, n);
          await own.commit();
        } catch (error) {
          await own.rollback();
          throw error;
        }
      },
    });
    await one.work([job], { queues, ...lease });
    const { id } = await one.hf.enqueue(job, 7);
    const state = async () => (await jobOf(one, id)).state;
    await world.until("waiting", async () => (await state()) === "waiting");
    shorter = true;
    await one.hf.signal("go");
    await world.until("ended", async () => ["done", "dead"].includes(await state()));
    expect((await jobOf(one, id)).error).toMatch(/^DIVERGED: Step "signal:go"/);
    expect(await own.count()).toBe(0);
    shorter = false;
    await one.hf.jobs.retry(id);
    await world.until("done", async () => (await state()) === "done");
    expect(await own.count()).toBe(1);
  });

  test("[N2] a holder whose lease was taken over cannot commit, and its transaction is rolled back", async () => {
    const world = await newWorld(target);
    const [one, two] = [await world.client(), await world.client()];
    const own = await effects(world.fresh);
    const gate = Promise.withResolvers<void>();
    const refused: unknown[] = [];
    const slow = async (n: number, ctx: JobContext): Promise<void> => {
      await gate.promise;
      await own.begin();
      try {
        await own.effect(n);
        await ctx.commit(own.tx);
        await own.commit();
      } catch (error) {
        refused.push((error as { code: string }).code);
        await own.rollback();
        throw error;
      }
    };
    const job = defineJob({ name: "paid", run: slow });
    await one.work([job], { queues });
    const { id } = await one.hf.enqueue(job, 1);
    await world.until("it runs", async () => (await jobOf(one, id)).state === "running");
    // As a process that is stopped: it renews nothing, and does not know.
    one.tap.around = (verb, call) => (verb === "sessions.renew" ? one.tap.late().then(call) : call());
    await two.work([job.handle(async (_n, ctx) => ({ by: ctx.token }) as never)], { queues });
    await world.until("done by the other", async () => (await jobOf(two, id)).state === "done", "2m");
    gate.resolve();
    await world.until("refused", () => refused.length === 1);
    expect(refused).toEqual(["LEASE_LOST"]);
    expect(await own.count()).toBe(0);
    expect((await jobOf(two, id)).output).toHaveProperty("by");
  });

  test("[N2] a step can be remembered in the user's transaction: its effect happens once", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const own = await effects(world.fresh);
    const job = defineJob({
      name: "paid",
      retry: { attempts: 4, backoff: fixed("1s") },
      run: async (n: number, ctx) => {
        await own.begin();
        try {
          await ctx.step("debit", () => own.effect(n), { tx: own.tx });
          if (ctx.attempt === 1) throw new Error("before the commit");
          await own.commit();
        } catch (error) {
          await own.rollback();
          throw error;
        }
        if (ctx.attempt === 2) throw new Error("after the commit");
        return ctx.step("rest", () => n);
      },
    });
    await one.work([job], { queues, ...lease });
    const { id } = await one.hf.enqueue(job, 5);
    await world.until("done", async () => (await jobOf(one, id)).state === "done");
    expect(await own.count()).toBe(1);
    expect(await jobOf(one, id)).toMatchObject({ output: 5, attempt: 3 });
  });

  test("[N2] what is no open transaction is refused", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const own = await effects(world.fresh);
    const codes: string[] = [];
    const job = defineJob({
      name: "odd",
      retry: { attempts: 1 },
      run: async (_: null, ctx) => {
        for (const tx of [{}, own.tx])
          await ctx.commit(tx).catch((error: { code: string }) => codes.push(error.code));
        return "done without";
      },
    });
    await one.work([job], { queues, ...lease });
    const { id } = await one.hf.enqueue(job, null);
    await world.until("done", async () => (await jobOf(one, id)).state === "done");
    expect(codes).toEqual(["TX_UNSUPPORTED", "TX_UNSUPPORTED"]);
    expect((await jobOf(one, id)).output).toBe("done without");
  });
});

onSqlite((target) => {
  // The other library that people have for SQLite.
  test("[N2] a better-sqlite3 handle can end the job too", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const own = await effects(world.fresh, "better");
    const job = defineJob({
      name: "paid",
      run: async (n: number, ctx) => {
        await own.begin();
        await own.effect(n);
        await ctx.commit(own.tx, n);
        await own.commit();
      },
    });
    await one.work([job], { queues, ...lease });
    const { id } = await one.hf.enqueue(job, 9);
    await world.until("done", async () => (await jobOf(one, id)).state === "done");
    expect([(await jobOf(one, id)).output, await own.count()]).toEqual([9, 1]);
  });
});
