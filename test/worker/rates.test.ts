// A rate counts starts, and a start comes after its claim: how much later depends on the database, and must neither break
// the rate nor keep it from being used.
import { setTimeout as sleep } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { defineJob, open, silentLogger } from "../../src/index.ts";
import { onPostgres } from "../support/stores.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";
import { waitFor } from "../support/process.ts";

const most = (times: readonly number[], perMs: number): number =>
  Math.max(...times.map((from) => times.filter((at) => at >= from && at < from + perMs).length));

// SQLite has no network that could be slow.
onPostgres((target) => {
  for (const of of ["queue", "lane"] as const) {
    test(`[N5] a rate of a ${of} is used, and not exceeded, where every claim takes longer than a tenth of its window`, async () => {
      const fresh = await target.fresh();
      const proxy = await TcpProxy.to(fresh.url);
      onTestFinished(() => proxy.close());
      const hf = await open(proxy.url(fresh.url), { ...fresh.options, logger: silentLogger });
      onTestFinished(() => hf.close());
      const rate = { limit: 4, per: "300ms" } as const;
      const starts: number[] = [];
      const call = defineJob({
        name: "call",
        ...(of === "lane" ? { lane: () => "a", lanes: { rate } } : null),
        run: () => void starts.push(performance.now()),
      });
      if (of === "queue") await hf.queues.set("default", { rate });
      await hf.enqueueMany(Array.from({ length: 12 }, () => ({ job: call, input: null })));
      proxy.delay(20);
      hf.work([call], { queues: { default: 4 } });
      await waitFor(() => starts.length === 12, { what: "12 starts", deadlineMs: 30_000 });
      await sleep(50);
      expect(starts).toHaveLength(12);
      expect(most(starts, 300)).toBeLessThanOrEqual(4);
    });
  }
});
