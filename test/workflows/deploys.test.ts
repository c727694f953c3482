// A rolling deploy: workers with the old and the new code claim side by side, and runs go from one to the other.
import { DatabaseSync } from "node:sqlite";
import pg from "pg";
import { expect, test } from "vitest";
import { defineJob, defineMachine, finish, type JobContext, next } from "../../src/index.ts";
import { onEveryStore } from "../support/stores.ts";
import { type Client, jobOf, newWorld, type World } from "../support/world.ts";

const lease = { lease: "60s", heartbeat: "10s" } as const;
const queues = { default: 5 } as const;
type Body = (input: null, ctx: JobContext) => Promise<unknown>;
const workflow = (version: number | undefined, run: Body) =>
  defineJob({
    name: "workflow",
    retry: { attempts: 1 },
    ...(version === undefined ? null : { version }),
    run,
  });

const before: Body = async (_input, ctx) => {
  await ctx.step("reserve", () => 1);
  await ctx.waitFor("go");
  return "old";
};
/** Goes on differently where the old code has ended. */
const after: Body = async (_input, ctx) => {
  await ctx.step("reserve", () => 1);
  await ctx.waitFor("go");
  await ctx.step("ship", () => 2);
  await ctx.waitFor("delivered");
  return "new";
};

/** Enqueued and begun by the old code, taken on by the new, whose worker is then gone. */
async function advanced(world: World, versions: readonly [number | undefined, number | undefined]) {
  const [one, two] = [await world.client(), await world.client()];
  const old = await one.work([workflow(versions[0], before)], { queues, ...lease });
  const { id } = await one.hf.enqueue(workflow(versions[0], before), null);
  await world.until("waiting", async () => (await jobOf(one, id)).state === "waiting");
  await world.finish(old.stop());
  const newer = await two.work([workflow(versions[1], after)], { queues, ...lease });
  await two.hf.signal("go");
  await world.until("waiting for delivered", async () => (await waitsFor(two, id)).includes("delivered"));
  await world.finish(newer.stop());
  return { one, two, id };
}

async function waitsFor(client: Client, id: string): Promise<string> {
  const why = await client.hf.jobs.why(id);
  return why.reason === "waiting-for-signal" ? why.text : "";
}

onEveryStore((target) => {
  test("[N12] a run that newer code has advanced is given back by old workers, unburnt, and goes on with new ones", async () => {
    const world = await newWorld(target);
    const { one, two, id } = await advanced(world, [1, 2]);
    expect(two.tap.count("workflows.advance")).toBe(1);
    await one.work([workflow(1, before)], { queues, ...lease });
    await one.hf.signal("delivered");
    await world.until("given back", async () => (await one.hf.jobs.why(id)).reason === "needs-newer-version");
    const why = await one.hf.jobs.why(id);
    expect(why.text).toBe(
      'The job waits for a worker with newer code: it was advanced by version 2 of "workflow"; this worker has version 1.',
    );
    // The clock may have gone on by a step between the giving back and the look.
    const now = world.clock.now();
    expect(why.until?.getTime()).toBeGreaterThan(now + 4_000);
    expect(why.until?.getTime()).toBeLessThanOrEqual(now + 5_000);
    const waiting = await jobOf(one, id);
    expect(waiting).toMatchObject({ state: "scheduled", attempt: 0, crashes: 0, error: null });
    // However often they meet it, one line says so.
    await world.advance("21s");
    expect(await jobOf(one, id)).toMatchObject({ state: "scheduled", attempt: 0, error: null });
    expect(one.log.filter(({ message }) => message.includes("need newer code"))).toMatchObject([
      {
        level: "warn",
        details: { name: "workflow", reason: expect.stringContaining("version 2") as string },
      },
    ]);
    await two.work([workflow(2, after)], { queues, ...lease });
    await world.advance("6s");
    // Old and new workers are equally fast to claim it, every 5 s: six times in a row the old ones were now and then.
    await world.until("done", async () => (await jobOf(one, id)).state === "done", "5m");
    expect((await jobOf(one, id)).output).toBe("new");
  });

  test("[N12] without a version an old worker stops such a run, and a retry with the new code goes on", async () => {
    const world = await newWorld(target);
    const { one, two, id } = await advanced(world, [undefined, undefined]);
    expect(two.tap.count("workflows.advance")).toBe(0);
    const old = await one.work([workflow(undefined, before)], { queues, ...lease });
    await one.hf.signal("delivered");
    await world.until("dead", async () => (await jobOf(one, id)).state === "dead");
    expect((await jobOf(one, id)).error).toMatch(/^DIVERGED: Step "ship"/);
    await world.finish(old.stop());
    await two.work([workflow(undefined, after)], { queues, ...lease });
    await two.hf.jobs.retry(id);
    await world.until("done", async () => (await jobOf(one, id)).state === "done");
    expect((await jobOf(one, id)).output).toBe("new");
  });

  test("[N12] the version is kept before the newer code's first step, so a crash just after that step loses nothing", async () => {
    const world = await newWorld(target);
    const [one, two] = [await world.client(), await world.client()];
    const old = await one.work([workflow(1, before)], { queues, ...lease });
    const { id } = await one.hf.enqueue(workflow(1, before), null);
    await world.until("waiting", async () => (await jobOf(one, id)).state === "waiting");
    await world.finish(old.stop());
    two.tap.around = async (verb, call, args) => {
      const answer = await call();
      if (verb === "workflows.recordSteps" && JSON.stringify(args).includes("ship")) two.tap.kill();
      return answer;
    };
    await two.work([workflow(2, after)], { queues, ...lease });
    await two.hf.signal("go").catch(() => {});
    await world.until("killed", async () => two.tap.killed);
    await one.work([workflow(1, before)], { queues, ...lease });
    await world.advance("70s", "1s");
    await world.until("given back", async () => (await one.hf.jobs.why(id)).reason === "needs-newer-version");
    expect(await jobOf(one, id)).toMatchObject({ attempt: 0 });
  });

  test("[N12] old code that has no steps at all does not run what newer code has begun in steps", async () => {
    const world = await newWorld(target);
    const { one, id } = await advanced(world, [1, 2]);
    let ran = 0;
    await one.work([workflow(1, async () => void (ran += 1))], { queues, ...lease });
    await one.hf.signal("delivered");
    await world.until("given back", async () => (await one.hf.jobs.why(id)).reason === "needs-newer-version");
    expect(ran).toBe(0);
  });

  test("[N12] the check says which runs would wait for newer code than it is given", async () => {
    const world = await newWorld(target);
    const { one, id } = await advanced(world, [1, 2]);
    expect(await one.hf.check([workflow(1, before)])).toMatchObject({
      checked: 1,
      broken: [{ id, step: null, message: expect.stringContaining("advanced by version 2") as string }],
    });
    expect(await one.hf.check([workflow(2, after)])).toEqual({ checked: 1, broken: [] });
  });

  test("[N12] a machine that newer code has moved is left to newer code, too", async () => {
    const world = await newWorld(target);
    const [one, two] = [await world.client(), await world.client()];
    const first = defineMachine({
      name: "m",
      start: "a",
      version: 1,
      steps: {
        a: { run: async (_: null) => next("b", 1, { delay: "1m" }) },
        b: { run: async (_: number) => finish("old") },
      },
    });
    const second = defineMachine({
      name: "m",
      start: "a",
      version: 2,
      steps: {
        a: { run: async (_: null) => next("b", 1, { delay: "1m" }) },
        b: { run: async (_: number) => next("c", 2, { delay: "1m" }) },
        c: { run: async (_: number) => finish("new") },
      },
    });
    const old = await one.work([first], { queues, ...lease });
    const { id } = await one.hf.enqueue(first, null);
    await world.until("at b", async () => (await jobOf(one, id)).step === "b");
    await world.finish(old.stop());
    const newer = await two.work([second], { queues, ...lease });
    await world.advance("61s", "1s");
    await world.until("at c", async () => (await jobOf(one, id)).step === "c");
    await world.finish(newer.stop());
    expect(await one.hf.check([first])).toMatchObject({ broken: [{ id }] });
    await one.work([first], { queues, ...lease });
    await world.advance("61s", "1s");
    await world.until("given back", async () => (await one.hf.jobs.why(id)).reason === "needs-newer-version");
    await two.work([second], { queues, ...lease });
    await world.advance("6s");
    await world.until("done", async () => (await jobOf(one, id)).state === "done", "30s");
    expect((await jobOf(one, id)).output).toBe("new");
  });

  test("[N12] a run of the version that enqueued it, and a plain job, cost no write for their version", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const plain = defineJob({ name: "plain", version: 7, run: async (_: null) => null });
    await one.work([workflow(3, before), plain], { queues, ...lease });
    const { id } = await one.hf.enqueue(workflow(3, before), null);
    await one.hf.enqueue(plain, null);
    await one.hf.signal("go");
    await world.until("done", async () => (await jobOf(one, id)).state === "done");
    expect(one.tap.count("workflows.advance")).toBe(0);
  });

  test("[N12] a step in the user's own transaction keeps the version in it", async () => {
    const world = await newWorld(target);
    const [one, two] = [await world.client(), await world.client()];
    const old = await one.work([workflow(1, before)], { queues, ...lease });
    const { id } = await one.hf.enqueue(workflow(1, before), null);
    await world.until("waiting", async () => (await jobOf(one, id)).state === "waiting");
    await world.finish(old.stop());
    const paying = workflow(2, async (_input, ctx) => {
      await ctx.step("reserve", () => 1);
      await ctx.waitFor("go");
      const { url } = world.fresh;
      if (url.startsWith("sqlite:")) {
        const own = new DatabaseSync(url.slice("sqlite:".length));
        own.exec("begin immediate");
        await ctx.step("pay", () => 2, { tx: own });
        own.exec("commit");
        own.close();
      } else {
        const own = new pg.Client({ connectionString: url });
        await own.connect();
        await own.query("begin");
        await ctx.step("pay", () => 2, { tx: own });
        await own.query("commit");
        await own.end();
      }
      await ctx.waitFor("delivered");
      return "paid";
    });
    await two.work([paying], { queues, ...lease });
    await two.hf.signal("go");
    await world.until("waiting for delivered", async () => (await waitsFor(two, id)).includes("delivered"));
    const [row] = await world.fresh.query(
      `select extras from ${world.fresh.table("job")} where id = '${id}'`,
    );
    expect(JSON.parse(String(row?.["extras"]))).toMatchObject({ advanced: 2 });
  });
});
