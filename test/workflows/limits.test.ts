// Workflows in lanes and queues that let one at a time run: whatever does not run holds no place.
import { DatabaseSync } from "node:sqlite";
import pg from "pg";
import { expect, test } from "vitest";
import { defineJob, fixed, type JobContext } from "../../src/index.ts";
import { onEveryStore } from "../support/stores.ts";
import { jobOf, newWorld, type World } from "../support/world.ts";

const lease = { lease: "20d", heartbeat: "9d" } as const;
const queues = { default: 5 } as const;

/** Ends the job in a transaction of the handler's own. */
async function commitOwn(world: World, ctx: JobContext, output: unknown): Promise<void> {
  const { url } = world.fresh;
  if (url.startsWith("sqlite:")) {
    const own = new DatabaseSync(url.slice("sqlite:".length));
    own.exec("begin immediate");
    await ctx.commit(own, output);
    own.exec("commit");
    own.close();
    return;
  }
  const own = new pg.Client({ connectionString: url });
  await own.connect();
  await own.query("begin");
  await ctx.commit(own, output);
  await own.query("commit");
  await own.end();
}

type Way = (ctx: JobContext, world: World) => Promise<unknown>;
const child = defineJob({
  name: "child",
  lane: () => "tenant",
  lanes: { concurrency: 1 },
  run: async () => "child",
});
const ways: Record<string, Way> = {
  sleeps: (ctx) => ctx.sleep("nap", "1m"),
  "waits for a signal": (ctx) => ctx.waitFor("go", { timeout: "1m" }),
  "calls a job of its own lane": (ctx) => ctx.call(child, null),
  "waits for its step's retry": (ctx) =>
    ctx.step("fails", ({ attempt }) => (attempt === 1 ? Promise.reject(new Error("no")) : 1), {
      retry: { attempts: 2, backoff: fixed("1m") },
    }),
  "ends in its own transaction": async (ctx, world) => commitOwn(world, ctx, null),
  "waits for the retry of an undo": async (ctx) => {
    await ctx.step("a", () => 1, {
      undo: (_output, { attempt }) => {
        if (attempt === 1) throw new Error("not yet");
      },
    });
    throw new Error("dead");
  },
};

onEveryStore((target) => {
  for (const limit of ["lane", "queue"] as const)
    for (const [what, way] of Object.entries(ways)) {
      test(`[N5][N11] in a ${limit} that lets one run at a time, a run that ${what} lets the next go`, async () => {
        const world = await newWorld(target);
        const one = await world.client();
        const inLane = limit === "lane" ? { lane: () => "tenant", lanes: { concurrency: 1 } } : {};
        const order: string[] = [];
        const first = defineJob({
          name: "first",
          retry: { attempts: 1 },
          ...inLane,
          run: async (_: null, ctx) => {
            order.push("first");
            await way(ctx, world);
          },
        });
        const next = defineJob({ name: "next", ...inLane, run: async (_: null) => void order.push("next") });
        if (limit === "queue") await one.hf.queues.set("default", { concurrency: 1 });
        await one.work([first, next, child], { queues, ...lease });
        const { id } = await one.hf.enqueue(first, null);
        const after = await one.hf.enqueue(next, null);
        await world.until(
          "the next is done",
          async () => (await jobOf(one, after.id)).state === "done",
          "30s",
        );
        expect(order[0]).toBe("first");
        await world.advance("3m", "10s");
        await world.until("ended", async () => ["done", "dead"].includes((await jobOf(one, id)).state));
        // And nothing is left behind that would keep others.
        const last = await one.hf.enqueue(next, null);
        await world.until("one more", async () => (await jobOf(one, last.id)).state === "done", "30s");
      });
    }
});
