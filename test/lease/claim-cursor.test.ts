// What a worker hears while a claim is in flight counts for the next claim, although the answer moves the cursor.
import { expect, test } from "vitest";
import type { ClaimCursor } from "../../src/jobs/claim-scope.ts";
import { onEveryStore } from "../support/stores.ts";
import { newWorld, quickJob } from "../support/world.ts";

onEveryStore((target) => {
  test("[B8] whether a worker is idle is looked up after the claim that is in flight, over everything", async () => {
    const world = await newWorld(target);
    const { hf, tap, work } = await world.client();
    const { job, runs } = quickJob(world);
    const worker = await work([job], { queues: ["default"] });
    const rescannedAt: number[] = [];
    let inFlight = (): void => {};
    const claimed = new Promise<void>((resolve) => (inFlight = resolve));
    let answer = (): void => {};
    const answered = new Promise<void>((resolve) => (answer = resolve));
    tap.around = async (verb, call, args) => {
      if (verb !== "claims.claim") return call();
      rescannedAt.push((args[2] as ClaimCursor).rescannedAt);
      if (rescannedAt.length > 1) return call();
      inFlight();
      await tap.late(answered);
      return call();
    };
    await hf.enqueue(job, { n: 1 });
    await world.until("a claim", async () => rescannedAt.length === 1);
    await claimed;
    const idle = worker.idle();
    answer();
    await world.finish(idle);
    expect(runs).toHaveLength(1);
    expect(rescannedAt[1]).toBe(-Infinity);
  });
});
