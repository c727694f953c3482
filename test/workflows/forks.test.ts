// Running a workflow again from one of its steps.
import { expect, test } from "vitest";
import { planFork } from "../../src/workflows/fork.ts";
import { defineJob, fixed } from "../../src/index.ts";
import type { StepRecord } from "../../src/workflows/store.ts";
import { fresh } from "../support/test-clients.ts";
import { on } from "../cli/support.ts";
import { over } from "../dashboard/support.ts";
import { onEveryStore } from "../support/stores.ts";

const record: StepRecord = {
  name: "a",
  seq: 0,
  givenOrder: 0,
  kind: "step",
  state: "done",
  attempt: 1,
  tries: 1,
  startedAt: 0,
  endedAt: 1,
  wakeAt: null,
  topic: null,
  child: null,
  undo: false,
  fails: 0,
  given: 0,
  output: null,
  error: null,
  label: null,
};

test("[N4] only what replays the same way is taken over: machines, undone runs, marks and what was under way are refused", () => {
  const b = { ...record, name: "b", seq: 1 };
  const done = { state: "done", endedAt: 100 } as const;
  const slept = { ...record, kind: "sleep", state: "open", wakeAt: 100 } as const;
  expect(planFork(done, [slept, b], "b").refused).toBeNull();
  expect(planFork(done, [record, b], "b")).toEqual({ refused: null, before: 1 });
  expect(planFork(done, [record, b], "a")).toEqual({ refused: null, before: 0 });
  const refused: [StepRecord[], string, RegExp][] = [
    [[record, b], "c", /has no step "c"/],
    [[{ ...record, state: "open" }, b], "b", /"a", which started before "b", had not finished/],
    [[{ ...record, name: "$machine", kind: "machine" }], "a", /machine/],
    [[record, b, { ...record, name: "$undo", seq: 2, kind: "undo" }], "b", /were compensated/],
    [[{ ...slept, wakeAt: 101 }, b], "b", /had not finished/],
    [[{ ...record, kind: "version" }, b], "a", /is a version mark/],
  ];
  for (const [steps, from, why] of refused)
    expect(planFork({ ...done, state: "dead" }, steps, from)).toEqual({
      refused: expect.stringMatching(why) as unknown,
      before: null,
    });
});

onEveryStore((target) => {
  test("[N4] a fork takes over what was done before the step, does the rest anew, and leaves the first run as it is", async () => {
    const { hf, store } = await fresh(target);
    const did: string[] = [];
    const undone: string[] = [];
    let broken = false;
    const part = defineJob({ name: "part", run: async (n: number) => n * 10 });
    const order = defineJob({
      name: "order",
      queue: "orders",
      unique: (input: { order: string }) => input.order,
      lane: (input: { order: string }) => input.order,
      retry: { attempts: 1 },
      run: async (input: { order: string }, ctx) => {
        const note = (what: string) => async () => {
          did.push(`${ctx.id === first ? "first" : "fork"} ${what}`);
          if (what === "bill" && broken) throw new Error("no");
          return `${what} of ${input.order} by ${ctx.id}`;
        };
        // It fails, and the handler knows what to do: a fork must not try it again.
        await ctx
          .step(
            "gift",
            async () => {
              did.push(`${ctx.id === first ? "first" : "fork"} gift`);
              throw new Error("none left");
            },
            { retry: { attempts: 1 } },
          )
          .catch(() => null);
        const undo = { undo: async () => void undone.push(ctx.id === first ? "first" : "fork") };
        const reserved = await ctx.step("reserve", note("reserve"), undo);
        const parts = await ctx.all([1, 2].map((n) => ctx.call(part, n)));
        const packed = await ctx.waitFor<number>("packed", { key: input.order, timeout: "1h" });
        await ctx.sleep("rest", 1);
        const billed = await ctx.step("bill", note("bill"), { retry: { attempts: 1, backoff: fixed("1s") } });
        return { reserved, parts, packed, billed };
      },
    });
    await hf.signal("packed", { key: "o-1", data: 7 });
    const { id: first } = await hf.enqueue(order, { order: "o-1" }, { priority: 4 });
    const worker = hf.work([order, part], { queues: { orders: 2, default: 2 } });
    await worker.ready;
    const whole = (await hf.result(first, { timeout: "20s" })) as Record<string, unknown>;
    expect(whole).toMatchObject({ parts: [10, 20], packed: 7, billed: `bill of o-1 by ${first}` });
    const before = await hf.jobs.history(first);
    const children = await hf.jobs.count({ name: "part" });

    const fork = await hf.jobs.fork(first, { from: "bill" });
    expect(fork.status).toBe("enqueued");
    const forked = (await hf.result(fork.id, { timeout: "20s" })) as Record<string, unknown>;
    expect(forked).toEqual({ ...whole, billed: `bill of o-1 by ${fork.id}` });
    expect(did).toEqual(["first gift", "first reserve", "first bill", "fork bill"]);
    // Called jobs were not called again, and the signal was not waited for.
    expect(await hf.jobs.count({ name: "part" })).toBe(children);
    expect(await hf.jobs.history(first)).toEqual(before);
    expect(await hf.jobs.get(fork.id)).toMatchObject({
      name: "order",
      queue: "orders",
      priority: 4,
      lane: "o-1",
      key: null,
      context: `fork of ${first}, from bill`,
      state: "done",
    });

    // From the first step on everything is done anew: the signal is waited for again.
    const anew = await hf.jobs.fork(first, { from: "reserve" });
    await expect.poll(async () => (await hf.jobs.get(anew.id))?.waitsFor, { timeout: 20_000 }).toBe("signal");
    expect(await hf.jobs.count({ name: "part" })).toBe(children + 2);
    expect(did).not.toContain("fork gift");
    await expect(hf.jobs.fork(anew.id, { from: "reserve" })).rejects.toMatchObject({
      code: "FORK_REFUSED",
      message: expect.stringContaining("has not ended") as unknown,
    });
    await hf.jobs.cancel(anew.id);
    await expect.poll(async () => (await hf.jobs.get(anew.id))?.state, { timeout: 20_000 }).toBe("cancelled");
    undone.length = 0;

    // A fork that dies undoes what it did itself; what it took over is the first run's.
    broken = true;
    const bad = await hf.jobs.fork(first, { from: "bill" });
    await expect(hf.result(bad.id, { timeout: "20s" })).rejects.toMatchObject({ code: "JOB_DEAD" });
    expect(undone).toEqual([]);
    broken = false;

    await expect(hf.jobs.fork(first, { from: "nothing" })).rejects.toMatchObject({ code: "FORK_REFUSED" });
    await expect(hf.jobs.fork("0190a0b0-0000-7000-8000-000000000000", { from: "a" })).rejects.toMatchObject({
      code: "JOB_NOT_FOUND",
    });
    const { send, get } = over(hf);
    const answer = await send<{ id: string }>("POST", `/jobs/${first}/fork`, { from: "rest" });
    expect(answer.status).toBe(200);
    await hf.result(answer.body.id, { timeout: "20s" });
    expect((await send("POST", `/jobs/${first}/fork`, { from: "nothing" })).status).toBe(409);
    expect((await send("POST", `/jobs/${first}/fork`, {})).status).toBe(400);
    const { entries } = (await get<{ entries: { action: string }[] }>("/audit")).body;
    expect(entries.map(({ action }) => action)).toEqual(["jobs.fork"]);
    const made = (await on(store)(["jobs", "fork", first, "--from", "bill", "--json"])).json<{
      id: string;
    }>();
    await hf.result(made.id, { timeout: "20s" });
    await worker.stop();
  });

  test("[N4] a run that sleeps goes on at once when it is told to", async () => {
    const { hf } = await fresh(target);
    const nap = defineJob({
      name: "nap",
      run: async (_input: unknown, ctx) => {
        await ctx.step("before", () => 1);
        await ctx.sleep("long", "30d");
        return "awake";
      },
    });
    const { id } = await hf.enqueue(nap, null);
    const worker = hf.work([nap], { queues: { default: 1 } });
    await worker.ready;
    await expect.poll(async () => (await hf.jobs.why(id)).reason, { timeout: 20_000 }).toBe("asleep");
    expect(await hf.jobs.runNow(id)).toBe("due");
    expect(await hf.result(id, { timeout: "20s" })).toBe("awake");
    await worker.stop();
  });
});
