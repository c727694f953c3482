// O2: what a worker does about its breakers when the database's answer to it is lost, over clients in one fake time.
import { expect, test } from "vitest";
import { defineJob } from "../../src/jobs/define-job.ts";
import { onEveryStore } from "../support/stores.ts";
import { type Client, lost, newWorld, type Verb, type World } from "../support/world.ts";

/** Makes the next call of a verb and loses its answer; or (`refuse`) does not make it. Answers how often it did. */
function loseAnswers(client: Client, verb: Verb, times: number, refuse = false): { done: number } {
  const count = { done: 0 };
  client.tap.around = async (called, call) => {
    if (called !== verb || count.done >= times) return call();
    count.done += 1;
    if (!refuse) await call();
    return lost();
  };
  return count;
}

/** A job that fails as long as the switch says so, behind a breaker that opens at its second failure. */
function fragile(breaker: object = {}) {
  const runs: number[] = [];
  const broken = { is: true };
  const job = defineJob({
    name: "call",
    retry: { attempts: 1 },
    breaker: { after: 2, cooldown: "10s", ...breaker },
    run: (input: { n: number; host: string }) => {
      runs.push(input.n);
      if (broken.is) throw new Error("502");
    },
  });
  return { job, runs, broken };
}

type Fragile = ReturnType<typeof fragile>;

async function opened(world: World, client: Client, { job, broken }: Fragile): Promise<void> {
  for (let n = 0; n < 2; n++) await client.hf.enqueue(job, { n, host: "a" });
  await world.until("it to open", async () => (await client.hf.breakers.list())[0]?.state === "open");
  broken.is = false;
}

onEveryStore((target) => {
  for (const [what, breaker] of [
    ["a name's breaker", {}],
    ["a key's breaker", { key: (input: { host: string }) => input.host }],
  ] as const) {
    for (const [verb, refuse] of [
      ["breakers.probe", false],
      ["breakers.probe", true],
      ["breakers.count", false],
      ["breakers.count", true],
      ["settles.settle", false],
    ] as const) {
      test(`[O2] ${what} comes to its end when ${verb} of its probe was ${refuse ? "refused" : "made and its answer lost"}`, async () => {
        const world = await newWorld(target);
        const client = await world.client();
        const flaky = fragile(breaker);
        await client.work([flaky.job], { queues: { default: 4 } });
        await opened(world, client, flaky);
        const losing = loseAnswers(client, verb, 2, refuse);
        for (let n = 2; n < 6; n++) await client.hf.enqueue(flaky.job, { n, host: "a" });
        await world.until("all to run", () => flaky.runs.length === 6, "60s");
        await world.until("it to close", async () => (await client.hf.breakers.list()).length === 0, "10s");
        expect(losing.done).toBe(2);
        expect(new Set(flaky.runs).size).toBe(6);
      });
    }
  }

  test("[O2] a probe that was won and whose answer was lost is left to another worker", async () => {
    const world = await newWorld(target);
    const [a, b] = [await world.client(), await world.client()];
    const flaky = fragile({ key: (input: { host: string }) => input.host });
    const worker = await a.work([flaky.job], { queues: { default: 1 } });
    await opened(world, a, flaky);
    const losing = loseAnswers(a, "breakers.probe", 1);
    await world.advance("10s");
    await a.hf.enqueue(flaky.job, { n: 2, host: "a" });
    await world.until("its answer to be lost", () => losing.done === 1, "10s");
    // The worker that asked lives on, and claims no job of the key any more.
    await a.hf.workers.quiet(worker.id);
    await b.work([flaky.job], { queues: { default: 1 } });
    await world.until("the other one to try it", () => flaky.runs.length === 3, "30s");
  });

  test("[O2] a probe that could not be given back is given back as soon as the database answers", async () => {
    const world = await newWorld(target);
    const [a, b] = [await world.client(), await world.client()];
    const flaky = fragile();
    const worker = await a.work([flaky.job], { queues: { default: 1 } });
    await opened(world, a, flaky);
    const losing = loseAnswers(a, "breakers.unprobe", 1, true);
    await world.until("a probe without a job", () => losing.done === 1, "30s");
    await a.hf.workers.quiet(worker.id);
    await b.work([flaky.job], { queues: { default: 1 } });
    await b.hf.enqueue(flaky.job, { n: 2, host: "a" });
    await world.until("the other one to try it", () => flaky.runs.length === 3, "30s");
  });

  test("[O2] a count that was refused is made when the database answers: a queue that was stopped here goes on", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    const flaky = fragile();
    await client.work([flaky.job], { queues: { default: 1 } });
    const losing = loseAnswers(client, "breakers.count", 4, true);
    for (let n = 0; n < 2; n++) await client.hf.enqueue(flaky.job, { n, host: "a" });
    await world.until("both to fail", () => flaky.runs.length === 2, "10s");
    flaky.broken.is = false;
    await client.hf.enqueue(flaky.job, { n: 2, host: "a" });
    await world.until("the third to run", () => flaky.runs.length === 3, "60s");
    expect(losing.done).toBeGreaterThanOrEqual(2);
  });

  test("[O2] failures whose leases were lost before they were settled do not stop a kind for good", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    const flaky = fragile();
    await client.work([flaky.job], { queues: { default: 4 } });
    let refused = 0;
    client.tap.around = async (verb, call) => {
      if (verb !== "settles.settle") return call();
      refused += 1;
      return lost();
    };
    for (let n = 0; n < 2; n++) await client.hf.enqueue(flaky.job, { n, host: "a" });
    await world.until("no answer to the settle of both", () => flaky.runs.length === 2 && refused > 0, "10s");
    await world.fresh.query(`update ${world.fresh.table("session")} set lease_until = ?`, [
      world.clock.now() - 1,
    ]);
    await world.until(
      "the session to be lost",
      () => client.log.some(({ message }) => message.includes("the session was lost")),
      "60s",
    );
    client.tap.around = null;
    flaky.broken.is = false;
    await world.until("both to run again", () => flaky.runs.length === 4, "5m");
  });
});
