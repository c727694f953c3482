// N9: why a job is not running, one test for each reason that limits, breakers and stops can give.
import { expect, test } from "vitest";
import { Release, Throttled } from "../../src/jobs/decision.ts";
import { readQueue } from "../../src/dashboard/api/queue-detail.ts";
import type { Why, WhyReason } from "../../src/operate/why.ts";
import { onEveryStore } from "../support/stores.ts";
import { type Client, heldJob, newWorld, quickJob, type World } from "../support/world.ts";
import { operatorOf } from "../../src/operate/operator.ts";

type Reason = {
  readonly what: string;
  readonly set: (world: World, client: Client) => Promise<string>;
  readonly why: Partial<Why>;
  readonly text: RegExp;
};

const lane = (): string => "acme";

/** Those that are not a single job's own. That of a key's breaker is: its jobs are put off one by one. */
const ofQueues: ReadonlySet<WhyReason> = new Set([
  "paused",
  "hold",
  "cool-down",
  "unserved",
  "workers-quiet",
  "breaker-half-open",
  "budget-empty",
  "budget-unknown",
  "lane-paused",
  "lane-full",
  "lane-rate",
  "queue-full",
  "queue-rate",
]);

const reasons: readonly Reason[] = [
  {
    what: "a job that is due later",
    set: async (world, { hf }) => (await hf.enqueue(quickJob(world).job, { n: 1 }, { delay: "5m" })).id,
    why: { reason: "future" },
    text: /^The job is due at .*Z\.$/,
  },
  {
    what: "a retry that waits for its backoff",
    set: (world, client) => failing(world, client, () => new Error("boom")),
    why: { reason: "retry-wait" },
    text: /^Attempt 1 failed \(boom\); the next one starts at /,
  },
  {
    what: "a job that was throttled",
    set: (world, client) => failing(world, client, () => new Throttled("1m", "429 from the API")),
    why: { reason: "throttled" },
    text: /throttled \(429 from the API\)/,
  },
  {
    what: "a job that gave its attempt back",
    set: (world, client) => failing(world, client, () => new Release("session expired", { delay: "1m" })),
    why: { reason: "released" },
    text: /^The attempt was released \(session expired\)/,
  },
  {
    what: "a paused queue",
    set: async (world, { hf }) => {
      await hf.queues.pause("default");
      return (await hf.enqueue(quickJob(world).job, { n: 1 })).id;
    },
    why: { reason: "paused", queue: "default" },
    text: /Queue "default" has been paused since/,
  },
  {
    what: "a hold",
    set: async (world, { hf }) => {
      await hf.holds.set("stop", { reason: "maintenance" });
      return (await hf.enqueue(quickJob(world).job, { n: 1 })).id;
    },
    why: { reason: "hold", holds: ["stop"] },
    text: /Held by "stop" \(maintenance\)/,
  },
  {
    what: "a queue that cools down",
    set: async (world, client) => {
      await client.hf.queues.set("default", { cooldown: { base: "1m", max: "1h" } });
      await failing(world, client, () => new Throttled("1s"));
      return (await client.hf.enqueue("held", { n: 2 })).id;
    },
    why: { reason: "cool-down" },
    text: /is cooling down until/,
  },
  {
    what: "a queue that nobody serves",
    set: async (world, { hf }) => (await hf.enqueue(quickJob(world).job, { n: 1 }, { queue: "mial" })).id,
    why: { reason: "unserved", queue: "mial" },
    text: /^No worker is running\.$/,
  },
  {
    what: "a lane that is full",
    set: async (world, client) => {
      const { job, runs } = heldJob(world, "held", { lane, lanes: { concurrency: 1 } });
      await client.work([job], { queues: { default: 5 } });
      await client.hf.enqueue(job, { n: 1 });
      const { id } = await client.hf.enqueue(job, { n: 2 });
      await world.until("the first to run", () => runs.length === 1);
      return id;
    },
    why: { reason: "lane-full", lane: "acme", limit: { limit: 1, used: 1 } },
    text: /Lane "acme" of queue "default" is full: 1 of 1 jobs are running\./,
  },
  {
    what: "a lane whose rate is used up",
    set: async (world, client) => {
      const { job, runs } = quickJob(world, "quick", { lane, lanes: { rate: { limit: 1, per: "1m" } } });
      await client.work([job], { queues: { default: 5 } });
      await client.hf.enqueue(job, { n: 1 });
      const { id } = await client.hf.enqueue(job, { n: 2 });
      await world.until("the first to run", () => runs.length === 1);
      return id;
    },
    why: { reason: "lane-rate", lane: "acme", limit: { limit: 1, used: 1 } },
    text: /used up its rate of 1 start in 60000 ms until/,
  },
  {
    what: "a lane that is paused",
    set: async (world, client) => {
      const { job } = quickJob(world, "quick", { lane });
      await client.work([job], { queues: { default: 5 } });
      await client.hf.lanes.pause("default", "acme");
      return (await client.hf.enqueue(job, { n: 1 })).id;
    },
    why: { reason: "lane-paused", lane: "acme" },
    text: /is paused\.$/,
  },
  {
    what: "a queue that is full",
    set: async (world, client) => {
      await client.hf.queues.set("default", { concurrency: 1 });
      const { job, runs } = heldJob(world);
      await client.work([job], { queues: { default: 5 } });
      await client.hf.enqueue(job, { n: 1 });
      const { id } = await client.hf.enqueue(job, { n: 2 });
      await world.until("the first to run", () => runs.length === 1);
      return id;
    },
    why: { reason: "queue-full", limit: { limit: 1, used: 1 } },
    text: /Queue "default" is full: 1 of 1 jobs are running\./,
  },
  {
    what: "a queue whose rate is used up",
    set: async (world, client) => {
      await client.hf.queues.set("default", { rate: { limit: 1, per: "1m" } });
      const { job, runs } = quickJob(world);
      await client.work([job], { queues: { default: 5 } });
      await client.hf.enqueue(job, { n: 1 });
      const { id } = await client.hf.enqueue(job, { n: 2 });
      await world.until("the first to run", () => runs.length === 1);
      return id;
    },
    why: { reason: "queue-rate" },
    text: /Queue "default" has used up its rate/,
  },
  {
    what: "a budget that is empty",
    set: async (world, client) => {
      const { job, runs } = quickJob(world, "quick", { budget: { name: "api", tokens: 2 } });
      await client.hf.budgets.set("api", { limit: 3, per: "1h" });
      await client.work([job], { queues: { default: 5 } });
      await client.hf.enqueue(job, { n: 1 });
      await world.until("the first to run", () => runs.length === 1);
      return (await client.hf.enqueue(job, { n: 2 })).id;
    },
    why: { reason: "budget-empty", budget: "api" },
    text: /^The budget "api" has 1 of the 2 tokens that a job takes\. The rest arrives by .*Z, unless another job takes it\.$/,
  },
  {
    what: "a budget that is too small for it",
    set: async (world, client) => {
      const { job } = quickJob(world, "quick", { budget: { name: "api", tokens: 2 } });
      await client.hf.budgets.set("api", { limit: 3, per: "1h", burst: 1 });
      await client.work([job], { queues: { default: 5 } });
      return (await client.hf.enqueue(job, { n: 2 })).id;
    },
    why: { reason: "budget-empty", budget: "api", until: null },
    text: /never has the 2 tokens that a job takes, because its burst is 1\. Raise the burst/,
  },
  {
    what: "a budget that nobody has set",
    set: async (world, client) => {
      const { job } = quickJob(world, "quick", { budget: "apl" });
      await client.work([job], { queues: { default: 5 } });
      return (await client.hf.enqueue(job, { n: 2 })).id;
    },
    why: { reason: "budget-unknown", budget: "apl" },
    text: /^There is no budget "apl"\. Set it with hf\.budgets\.set\.$/,
  },
  {
    what: "a breaker of a key that is open",
    set: async (world, client) => {
      const breaker = { after: 1, cooldown: "1h", key: () => "acme" } as const;
      await failing(world, client, () => new Error("boom"), { breaker });
      await world.until("it to open", async () => (await client.hf.breakers.list()).length === 1);
      const { id } = await client.hf.enqueue("held", { n: 2 });
      await world.until(
        "it to be turned away",
        async () => (await client.hf.jobs.get(id))!.state === "scheduled",
      );
      return id;
    },
    why: { reason: "breaker-open", breaker: "name:held/acme" },
    text: /^The job waits until .*: the breaker .* is open\.$/,
  },
  {
    what: "a queue that only workers without its kind serve",
    set: async (world, client) => {
      await client.work([quickJob(world).job], { queues: { default: 5 } });
      return (await client.hf.enqueue("misspelt", { n: 1 })).id;
    },
    why: { reason: "unserved" },
    text: /^No live worker of queue "default" has a handler for "misspelt"\.$/,
  },
  {
    what: "a queue whose one worker is quiet",
    set: async (world, client) => {
      const worker = await client.work([quickJob(world).job], { queues: { default: 5 }, name: "night" });
      await world.finish(worker.quiet());
      return (await client.hf.enqueue("quick", { n: 1 })).id;
    },
    why: { reason: "workers-quiet" },
    text: /^The only worker, night, has been quiet since .*Z\. Jobs start when it is resumed\.$/,
  },
  {
    what: "a breaker that is open",
    set: async (world, client) => {
      await failing(world, client, () => new Error("boom"), { breaker: { after: 1, cooldown: "1h" } });
      await world.until("it to open", async () => (await client.hf.breakers.list()).length === 1);
      return (await client.hf.enqueue("held", { n: 2 })).id;
    },
    why: { reason: "breaker-open", breaker: "name:held" },
    text: /The breaker name:held is open after 1 failure in a row/,
  },
  {
    what: "a breaker that is half-open",
    set: async (world, client) => {
      await failing(world, client, () => new Error("boom"), { breaker: { after: 1, cooldown: "1s" } });
      await world.until("it to open", async () => (await client.hf.breakers.list()).length === 1);
      await client.hf.queues.set("default", { slots: 0 });
      await world.advance("2s");
      return (await client.hf.enqueue("held", { n: 2 })).id;
    },
    why: { reason: "breaker-half-open", breaker: "name:held" },
    text: /half-open/,
  },
  {
    what: "a cancelled job",
    set: async (world, { hf }) => {
      const { id } = await hf.enqueue(quickJob(world).job, { n: 1 });
      await hf.jobs.cancel(id);
      return id;
    },
    why: { reason: "cancelled" },
    text: /^Cancelled at .*: cancelled by user/,
  },
];

/** Runs one job to this end; gives its id. */
async function failing(world: World, client: Client, end: () => unknown, options = {}): Promise<string> {
  const { job, runs } = heldJob(world, "held", options);
  await client.work([job], { queues: { default: 1 } });
  const { id } = await client.hf.enqueue(job, { n: 1 });
  await world.until("it to run", () => runs.length === 1);
  runs[0]!.fail(end());
  await world.until("it to wait", async () => (await client.hf.jobs.get(id))!.state === "scheduled");
  return id;
}

onEveryStore((target) => {
  for (const { what, set, why, text } of reasons) {
    test(`[N9] why names ${what}`, async () => {
      const world = await newWorld(target);
      const client = await world.client();
      const id = await set(world, client);
      const answer = await client.hf.jobs.why(id);
      expect(answer).toMatchObject({ id, ...why });
      expect(answer.text).toMatch(text);
      if (!ofQueues.has(answer.reason)) return;
      // The queue's page says the same, in the same words: nothing else in it is ready.
      const page = await readQueue(operatorOf(client.hf).store, answer.queue!);
      expect(page?.standstill).toContainEqual({
        reason: answer.reason,
        text: answer.text,
        until: answer.until?.getTime() ?? null,
      });
      expect(page?.obstacles).toContain(answer.text);
    });
  }

  test("[N9] a queue's page says of an open breaker what why says of its jobs", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    await failing(world, client, () => new Error("boom"), { breaker: { after: 1, cooldown: "1h" } });
    await world.until("it to open", async () => (await client.hf.breakers.list()).length === 1);
    const { id } = await client.hf.enqueue("held", { n: 2 });
    const { reason, text, until } = await client.hf.jobs.why(id);
    const page = await readQueue(operatorOf(client.hf).store, "default");
    expect(page?.standstill).toEqual([{ reason, text, until: until!.getTime() }]);
  });

  test("[N9] a queue's page says when slots are taken, that nothing is due and when, and nothing where nothing is in the way", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    const { store } = operatorOf(client.hf);
    const page = async () => (await readQueue(store, "default"))!.standstill;
    const { job, runs } = heldJob(world);
    await client.work([job], { queues: { default: 1, other: 2 } });
    const { id } = await client.hf.enqueue(job, { n: 1 }, { delay: "5m" });
    await client.hf.enqueue(job, { n: 1 }, { delay: "6m" });
    const due = (await client.hf.jobs.get(id))!.runAt!;
    expect(await page()).toEqual([
      {
        reason: "nothing-due",
        text: `No job is due. The next one is at ${due.toISOString()}.`,
        until: due.getTime(),
      },
    ]);
    await client.hf.enqueue(job, { n: 2 });
    await world.until("it to run", () => runs.length === 1);
    expect((await page()).map(({ reason }) => reason)).toEqual(["nothing-due"]);
    await client.hf.enqueue(job, { n: 3 });
    expect(await page()).toEqual([
      { reason: "slots-taken", text: "All slots are in use: 1 of 1.", until: null },
    ]);
    // What the worker runs of another queue takes no slot of this one.
    await client.hf.enqueue(job, { n: 4 }, { queue: "other" });
    await world.until("the other to run", () => runs.length === 2);
    expect((await readQueue(store, "default"))!.workersHere).toMatchObject([{ slots: 1, running: 1 }]);
    expect((await readQueue(store, "other"))!.workersHere).toMatchObject([{ slots: 2, running: 1 }]);
    expect((await readQueue(store, "other"))!.standstill).toEqual([]);
    expect(await readQueue(store, "nowhere")).toBeNull();
  });

  test("[N9] a queue's page names lanes only where none of those with most jobs may start one", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    const { store } = operatorOf(client.hf);
    const { job } = heldJob(world, "held", { lane: ({ n }: { n: number }) => `tenant-${n}` });
    for (const n of [1, 1, 2]) await client.hf.enqueue(job, { n });
    await client.hf.lanes.pause("default", "tenant-1");
    const page = async () => (await readQueue(store, "default"))!;
    expect((await page()).lanes).toMatchObject([
      { lane: "tenant-1", waiting: { count: 2, more: false }, paused: true },
      { lane: "tenant-2", waiting: { count: 1, more: false }, paused: false },
    ]);
    const unserved = { reason: "unserved", text: "No worker is running.", until: null };
    expect((await page()).standstill).toEqual([unserved]);
    await client.hf.lanes.pause("default", "tenant-2");
    expect((await page()).standstill).toEqual([
      unserved,
      {
        reason: "lane-paused",
        text: 'None of the 2 lanes with most jobs may start a job: Lane "tenant-1" of queue "default" is paused, and so on.',
        until: null,
      },
    ]);
  });

  test("[N9] why says that a job is next when nothing but a slot is missing", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    const { job, runs } = heldJob(world, "held", {
      lane,
      lanes: { concurrency: 9, rate: { limit: 9, per: "1m" } },
    });
    await client.hf.queues.set("default", { concurrency: 9 });
    await client.work([job], { queues: { default: 1 } });
    await client.hf.enqueue(job, { n: 1 });
    const { id } = await client.hf.enqueue(job, { n: 2 });
    await world.until("the first to run", () => runs.length === 1);
    expect(await client.hf.jobs.why(id)).toMatchObject({ reason: "ready" });
  });
});
