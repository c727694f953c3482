// O2: bulk operations whose row was written, and whose answer was lost.
import { expect, test } from "vitest";
import { type Operation, Operations, type Task } from "../../src/operate/operations.ts";
import { onEveryStore } from "../support/stores.ts";
import { type Client, lost, newWorld, quickJob, type Verb, type World } from "../support/world.ts";
import { operatorOf } from "../../src/operate/operator.ts";

/** The answer to the `nth` call of a verb is lost, after it was done. */
function loseAnswer(client: Client, lostVerb: Verb, nth: number): void {
  let calls = 0;
  client.tap.around = async (verb, call) => {
    if (verb !== lostVerb || ++calls !== nth) return call();
    await call();
    return lost();
  };
}

async function cancelled(
  world: World,
  client: Client,
  verb: Verb | null,
  nth: number,
): Promise<{ last: Operation; trail: string[] }> {
  const { job } = quickJob(world);
  await client.hf.enqueueMany(Array.from({ length: 4 }, (_, n) => ({ job, input: { n }, delay: "1h" })));
  if (verb !== null) loseAnswer(client, verb, nth);
  // Two at a time.
  const task: Task = {
    action: "cancel",
    filter: { states: ["scheduled"] },
    change: null,
    rate: { limit: 2, perMs: 1_000 },
  };
  const { left } = await world.finish(new Operations(client.hf).start(task, "ann"));
  const last = await world.finish(left);
  const trail = (await operatorOf(client.hf).store.insight.audit({ limit: 10, before: null })).map(
    ({ outcome }) => outcome,
  );
  return { last, trail };
}

onEveryStore((target) => {
  const ways = [
    ["its first row", "state.set", 1],
    ["a chunk", "state.swap", 1],
    ["its last chunk", "state.swap", 2],
  ] as const;
  for (const [what, verb, nth] of ways)
    test(`[O2] an operation is done, and counts each job once, when the answer to writing ${what} is lost`, async () => {
      const world = await newWorld(target);
      const client = await world.client();
      const { last, trail } = await cancelled(world, client, verb, nth);
      expect(last).toMatchObject({ state: "done", matched: 4, refused: 0, outcomes: { cancelled: 4 } });
      expect(trail).toEqual(["done", "started"]);
    });

  // Before it is done: an operation is read before each chunk and each write.
  const looks = [
    ["how many match", "insight.tally", 1],
    ["the time", "now", 1],
    ["its row", "state.row", 2],
    ["its last row", "state.row", 4],
    ["its jobs", "insight.browse", 1],
    ["its last jobs", "insight.browse", 2],
  ] as const;
  for (const [what, verb, nth] of looks)
    test(`[O2] an operation is done, and counts each job once, when the connection is lost three times while it reads ${what}`, async () => {
      const world = await newWorld(target);
      const client = await world.client();
      let calls = 0;
      const fails = (name: string): boolean => name === verb && ++calls >= nth && calls < nth + 3;
      client.tap.around = (name, call) => (fails(name) ? lost() : call());
      const { last, trail } = await cancelled(world, client, null, 0);
      expect(calls).toBeGreaterThanOrEqual(nth + 3);
      expect(last).toMatchObject({ state: "done", matched: 4, refused: 0, outcomes: { cancelled: 4 } });
      expect(trail).toEqual(["done", "started"]);
    });
});
