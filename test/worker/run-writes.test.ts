// O2, O9: what a running attempt reads and writes while the database refuses, for reasons that nobody knows: it waits.
import { expect, test } from "vitest";
import { defineJob, defineMachine, finish, next } from "../../src/index.ts";
import { toStoreError as ofPostgres } from "../../src/storage/postgres/error-codes.ts";
import { toStoreError as ofSqlite } from "../../src/storage/sqlite/error-codes.ts";
import type { StepWrite } from "../../src/workflows/store.ts";
import { onEveryStore, type StoreTarget } from "../support/stores.ts";
import { type Client, jobOf, lost, newWorld, type Verb, type World } from "../support/world.ts";

const queues = { default: 5 } as const;
const lease = { lease: "20d", heartbeat: "9d" } as const;

/** An error that no list has, as the driver of each database gives it. */
function unknown(target: StoreTarget): unknown {
  const error = new Error("refused by the test");
  return target.dialect === "postgres"
    ? ofPostgres(Object.assign(error, { code: "55000" }))
    : ofSqlite(Object.assign(error, { code: "ERR_SQLITE_ERROR", errcode: 1 }), "a.db");
}

/** A refusal of one row for what is in it. */
function ofRow(target: StoreTarget): unknown {
  const error = new Error("refused by the test");
  return target.dialect === "postgres"
    ? ofPostgres(Object.assign(error, { code: "22021" }))
    : ofSqlite(Object.assign(error, { code: "ERR_SQLITE_ERROR", errcode: 18 }), "a.db");
}

function refuse(client: Client, refused: Verb, times: number, error: unknown): () => number {
  let n = 0;
  client.tap.around = (verb, call) =>
    verb === refused && n < times ? ((n += 1), Promise.reject(error)) : call();
  return () => n;
}

async function ended(world: World, client: Client, id: string) {
  await world.until("ended", async () => (await jobOf(client, id)).endedAt !== null, "5m");
  return jobOf(client, id);
}

onEveryStore((target) => {
  const verbs: readonly Verb[] = [
    "workflows.recordSteps",
    "workflows.advance",
    "workflows.takeSignal",
    "workflows.startCall",
    "workflows.steps",
  ];
  for (const verb of verbs)
    test(`[O9] a run goes on, in its only attempt, after ${verb} was refused six times for an unknown reason`, async () => {
      const world = await newWorld(target);
      const one = await world.client();
      const ran: string[] = [];
      const child = defineJob({ name: "child", run: () => void ran.push("child") });
      const job = defineJob({
        name: "workflow",
        version: 2,
        retry: { attempts: 1 },
        run: async (_: null, ctx) => {
          await ctx.step("a", () => void ran.push("a"));
          await ctx.sleep("nap", "1s");
          await ctx.waitFor("go");
          await ctx.call(child, null);
          return "whole";
        },
      });
      const refused = refuse(one, verb, 6, unknown(target));
      // By another, as an older version.
      const { id } = await one.hf.enqueue("workflow", null);
      await one.hf.signal("go");
      await one.work([job, child], { queues, ...lease });
      expect(await ended(world, one, id)).toMatchObject({ state: "done", output: "whole", attempt: 1 });
      expect(refused()).toBe(6);
      expect(ran).toEqual(["a", "child"]);
      // Told, and not each time.
      const told = one.log.filter(
        ({ level, message }) => level === "warn" && message.includes("running job"),
      );
      expect(told.length).toBeGreaterThan(0);
      expect(told.length).toBeLessThan(6);
    });

  for (const verb of ["workflows.step", "workflows.saveMachine"] as const)
    test(`[O9] a machine goes on, in its only attempt, after ${verb} was refused for an unknown reason`, async () => {
      const world = await newWorld(target);
      const one = await world.client();
      const machine = defineMachine({
        name: "machine",
        start: "one",
        steps: {
          one: { run: (_: null) => next("two", null, { delay: "1s" }) },
          two: { run: (_: null) => finish("whole") },
        },
      });
      refuse(one, verb, 3, unknown(target));
      const { id } = await one.hf.enqueue(machine, null);
      await one.work([machine], { queues, ...lease });
      expect(await ended(world, one, id)).toMatchObject({ state: "done", output: "whole", attempt: 1 });
    });

  for (const [what, error] of [
    ["a lost connection", () => lost().catch((e: unknown) => e)],
    ["an unknown error", () => Promise.resolve(unknown(target))],
  ] as const)
    test(`[O2] ctx.progress waits after ${what}, and the newest value is written`, async () => {
      const world = await newWorld(target);
      const one = await world.client();
      const job = defineJob({
        name: "p",
        retry: { attempts: 1 },
        run: async (_: null, ctx) => {
          const first = ctx.progress(1);
          await Promise.all([first, ctx.progress(2), ctx.progress(3)]);
          return 1;
        },
      });
      refuse(one, "settles.progress", 3, await error());
      const { id } = await one.hf.enqueue(job, null);
      await one.work([job], { queues, ...lease });
      expect(await ended(world, one, id)).toMatchObject({ state: "done", progress: 3, attempt: 1 });
    });

  test("[O9] a step that the database refuses again and again keeps no other run from going on, and its own run in order", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const bad = { id: "", is: true };
    const job = defineJob({
      name: "workflow",
      retry: { attempts: 1 },
      run: async (_: null, ctx) => {
        const seen: string[] = [];
        const step = (name: string) => ctx.step(name, () => name).then((own) => void seen.push(own));
        await Promise.all([step("a"), step("b"), step("c")]);
        await ctx.sleep("nap", "1s");
        return seen;
      },
    });
    one.tap.around = (verb, call, args) => {
      const steps = verb === "workflows.recordSteps" ? (args[1] as readonly StepWrite[]) : [];
      return bad.is && steps.some((step) => step.job === bad.id && step.name === "a")
        ? Promise.reject(unknown(target))
        : call();
    };
    const ids: string[] = [];
    for (let n = 0; n < 5; n++) ids.push((await one.hf.enqueue(job, null)).id);
    bad.id = ids[2]!;
    await one.work([job], { queues, ...lease });
    const open = async () =>
      (await Promise.all(ids.map((id) => jobOf(one, id)))).filter(({ state }) => state !== "done");
    await world.until("the others", async () => (await open()).length === 1, "60s");
    await world.advance("5s");
    expect(await open()).toMatchObject([{ id: bad.id, state: "running" }]);
    bad.is = false;
    await world.until("it too", async () => (await open()).length === 0, "30s");
    for (const id of ids) expect(await jobOf(one, id)).toMatchObject({ output: ["a", "b", "c"], attempt: 1 });
  });

  test("[O9] a step that is refused for what is in it fails the attempt, as a named cause", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const job = defineJob({
      name: "workflow",
      retry: { attempts: 1 },
      run: (_: null, ctx) => ctx.step("a", () => 1),
    });
    refuse(one, "workflows.recordSteps", Infinity, ofRow(target));
    const { id } = await one.hf.enqueue(job, null);
    await one.work([job], { queues, ...lease });
    expect(await ended(world, one, id)).toMatchObject({ state: "dead", attempt: 1 });
  });

  test("[O9] a step that is refused for as long as the attempt may take fails with its timeout, and no sooner", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const job = defineJob({
      name: "workflow",
      timeout: "30s",
      retry: { attempts: 1 },
      run: (_: null, ctx) => ctx.step("a", () => 1),
    });
    refuse(one, "workflows.recordSteps", Infinity, unknown(target));
    const { id } = await one.hf.enqueue(job, null);
    await one.work([job], { queues, ...lease });
    await world.advance("25s");
    expect((await jobOf(one, id)).state).toBe("running");
    expect((await ended(world, one, id)).errors.at(-1)?.message).toMatch(/timeout/);
  });
});
