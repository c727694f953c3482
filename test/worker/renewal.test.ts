// Real time and real threads: what a fake clock cannot show. Leases are short, but long enough that a thread on a busy
// machine gets its turn within one.
import { afterEach, expect, test } from "vitest";
import { systemClock } from "../../src/clock.ts";
import { onEveryStore } from "../support/stores.ts";
import { type Bench, benchOn, kind, until } from "./bench.ts";

type RealBench = Bench<typeof systemClock>;
const open: RealBench[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((b) => b.close()));
});

function block(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

onEveryStore((target) => {
  const start = async (): Promise<RealBench> => {
    const fresh = await target.fresh();
    const b = await benchOn(fresh.url, systemClock, fresh.options);
    open.push(b);
    return b;
  };

  test("[N7] a handler that blocks the event loop for three leases keeps its job and runs once", async () => {
    const b = await start();
    let runs = 0;
    const job = kind("busy", () => {
      runs += 1;
      block(6_000);
      return "done";
    });
    // There before the worker: it blocks as soon as anything can be claimed.
    const id = await b.enqueue("busy");
    const worker = b.work([job], { queues: { default: 1 }, lease: "2s", heartbeat: "400ms" });
    await worker.idle();
    expect(await b.get(id)).toMatchObject({ state: "done", attempt: 1, crashes: 0 });
    expect(runs).toBe(1);
    expect(worker.leasesLost).toBe(0);
  });

  test("[N7] one that blocks for longer than the watchdog allows loses it", async () => {
    const b = await start();
    let runs = 0;
    const job = kind("stuck", () => {
      runs += 1;
      if (runs === 1) block(4_000);
      return runs;
    });
    const worker = b.work([job], {
      queues: { default: 1 },
      lease: "1s",
      heartbeat: "250ms",
      maxBlock: "800ms",
    });
    await worker.ready;
    const id = await b.enqueue("stuck");
    await until(async () => (await b.get(id)).state === "done", 20_000);
    expect(await b.get(id)).toMatchObject({ output: 2, attempt: 1, crashes: 1 });
    expect(worker.leasesLost).toBe(1);
    expect(b.lines.some(({ message }) => message.includes("maxBlock"))).toBe(true);
  });
});
