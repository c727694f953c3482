// A run with everything in it that dies and is undone, with a fault at each of its writes in turn.
import { expect, test } from "vitest";
import { StoreError } from "../../src/errors.ts";
import { Dead, defineJob } from "../../src/index.ts";
import { toStoreError } from "../../src/storage/postgres/error-codes.ts";
import { onEveryStore } from "../support/stores.ts";
import { type Client, jobOf, lost, newWorld, type Verb, type World } from "../support/world.ts";

const lease = { lease: "20d", heartbeat: "9d" } as const;
const queues = { default: 5 } as const;
const writes: readonly Verb[] = [
  "workflows.recordSteps",
  "workflows.takeSignal",
  "workflows.startCall",
  "settles.settle",
  "workflows.advance",
  "workflows.steps",
];

/** Steps, a wait, a call and a sleep, then death; an undo that fails once. */
function trip(ran: string[]) {
  const child = defineJob({ name: "child", run: () => void ran.push("child") });
  let failures = 1;
  const job = defineJob({
    name: "trip",
    retry: { attempts: 1 },
    run: async (_: null, ctx) => {
      const step = (name: string) =>
        ctx.step(name, () => (ran.push(name), name), {
          undo: (output) => {
            if (output === "hotel" && failures-- > 0) throw new Error("not yet");
            ran.push(`undo ${output}`);
          },
        });
      await ctx.all([step("flight"), step("hotel")]);
      await ctx.waitFor("go");
      await ctx.call(child, null);
      await ctx.sleep("nap", "1s");
      await step("car");
      throw new Dead("refused");
    },
  });
  return [job, child] as const;
}

const whole = ["flight", "hotel", "child", "car", "undo car", "undo hotel", "undo flight"];

async function ended(world: World, one: Client, id: string): Promise<void> {
  await world.until("dead", async () => (await jobOf(one, id)).state === "dead", "30m", "5s");
  const messages = (await jobOf(one, id)).errors.map(({ message }) => message);
  expect(messages.filter((message) => !message.startsWith("its worker died"))).toEqual(["refused"]);
}

onEveryStore((target) => {
  // Every write on SQLite; every third on Postgres, where a world costs a second.
  const stride = target.dialect === "sqlite" ? 1 : 3;

  test("[O10] a lost answer at any write of a run or of its undo repeats neither a step nor an undo", async () => {
    for (let fault = 1; ; fault += stride) {
      const world = await newWorld(target);
      const [one, two] = [await world.client(), await world.client()];
      const ran: string[] = [];
      const jobs = trip(ran);
      let calls = 0;
      one.tap.around = async (verb, call) => {
        const answer = await call();
        return writes.includes(verb) && (calls += 1) === fault ? lost() : answer;
      };
      await two.hf.signal("go");
      const { id } = await two.hf.enqueue(jobs[0], null);
      await one.work(jobs, { queues, ...lease });
      await ended(world, two, id);
      expect([fault, ran]).toEqual([fault, whole]);
      if (calls < fault) break;
    }
  });

  test("[O10] a process that dies at any write of a run or of its undo leaves the rest to the next, in order", async () => {
    for (let fault = 1; ; fault += stride) {
      const world = await newWorld(target);
      const [one, two] = [await world.client(), await world.client()];
      const ran: string[] = [];
      const jobs = trip(ran);
      let calls = 0;
      one.tap.around = async (verb, call) => {
        // By turns before and after the commit.
        const dies = writes.includes(verb) && (calls += 1) === fault;
        if (dies && fault % 2 === 0) await call();
        if (!dies) return call();
        one.tap.kill();
        return new Promise(() => {});
      };
      await two.hf.signal("go");
      await one.work(jobs, { queues });
      const { id } = await two.hf.enqueue(jobs[0], null);
      await world.until(
        "a fault",
        async () => calls >= fault || (await jobOf(two, id)).state === "dead",
        "30m",
        "5s",
      );
      await two.work(jobs, { queues });
      await ended(world, two, id);
      // What was cut off runs again, and nothing else; the undos keep their order.
      expect([fault, [...new Set(ran)].toSorted()]).toEqual([fault, whole.toSorted()]);
      expect([fault, ran.length <= whole.length + 2]).toEqual([fault, true]);
      expect([fault, [...new Set(ran.filter((what) => what.startsWith("undo")))]]).toEqual([
        fault,
        ["undo car", "undo hotel", "undo flight"],
      ]);
      if (calls < fault) break;
    }
  });

  test("[O10] a run that fails while it cannot be asked what is to be undone is undone all the same", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const ran: string[] = [];
    let broken = false;
    const job = defineJob({
      name: "saga",
      retry: { attempts: 1 },
      run: async (_: null, ctx) => {
        if (broken) throw new Error("no config");
        await ctx.step("a", () => void ran.push("a"), { undo: () => void ran.push("undo a") });
        await ctx.waitFor("go");
      },
    });
    const { id } = await one.hf.enqueue(job, null);
    await one.work([job], { queues, ...lease });
    await world.until("it waits", async () => (await jobOf(one, id)).state === "waiting");
    const error = Object.assign(new Error("refused by the test"), { code: "55000" });
    let refused = 0;
    one.tap.around = (verb, call) =>
      verb === "workflows.undoable" && refused < 4
        ? ((refused += 1), Promise.reject(toStoreError(error)))
        : call();
    broken = true;
    await one.hf.signal("go");
    await world.until("it failed", () => refused > 0);
    broken = false;
    await world.until("dead", async () => (await jobOf(one, id)).state === "dead", "5m");
    expect(refused).toBe(4);
    expect(ran).toEqual(["a", "undo a"]);
    expect((await jobOf(one, id)).error).toBe("no config");
  });

  test("[O10] where it is refused for good to ask what is to be undone, the worker ends, and the next one undoes", async () => {
    const world = await newWorld(target);
    const [one, two] = [await world.client(), await world.client()];
    const ran: string[] = [];
    let broken = false;
    const job = defineJob({
      name: "saga",
      retry: { attempts: 1 },
      run: async (_: null, ctx) => {
        if (broken) throw new Error("no config");
        await ctx.step("a", () => void ran.push("a"), { undo: () => void ran.push("undo a") });
        await ctx.waitFor("go");
      },
    });
    const { id } = await one.hf.enqueue(job, null);
    const worker = await one.work([job], { queues });
    const why = worker.stopped.catch((error: unknown) => (error as StoreError).code);
    await world.until("it waits", async () => (await jobOf(one, id)).state === "waiting");
    one.tap.around = (verb, call) =>
      verb === "workflows.undoable"
        ? Promise.reject(new StoreError("PERMISSION_DENIED", "no right to step"))
        : call();
    broken = true;
    await two.hf.signal("go");
    expect(await world.finish(why)).toBe("PERMISSION_DENIED");
    expect((await jobOf(two, id)).endedAt).toBe(null);
    await two.work([job], { queues });
    await world.until("it failed again", async () => (await jobOf(two, id)).errors.length > 0, "5m");
    broken = false;
    await world.until("dead", async () => (await jobOf(two, id)).state === "dead", "5m");
    expect(ran).toEqual(["a", "undo a"]);
  });
});
