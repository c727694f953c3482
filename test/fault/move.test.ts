// `holdfast move` as a real process, killed while it copies, and run again until it is done.
import { join } from "node:path";
import { expect, test } from "vitest";
import { defineJob, open, silentLogger } from "../../src/index.ts";
import { temporaryDirectory } from "../support/guard.ts";
import { spawnNode, waitFor } from "../support/process.ts";
import { onEveryStore } from "../support/stores.ts";

const total = 6_000;
const job = defineJob({ name: "copied", run: (input: { n: number }) => input.n });

onEveryStore((target) => {
  test("[N10] killed with SIGKILL three times while it copies, a move loses and doubles nothing", async () => {
    const url = `sqlite:${join(temporaryDirectory("killed-move"), "jobs.db")}`;
    const source = await open(url, { logger: silentLogger });
    const ids = (
      await source.enqueueMany(
        Array.from({ length: total }, (_, n) => ({ job, input: { n }, delay: n % 3 === 0 ? "1d" : 0 })),
      )
    ).map(({ id }) => id);
    await source.close();

    const store = await target.fresh();
    const schema = store.options.schema ?? "holdfast";
    const args = [
      "move",
      store.url,
      "--url",
      url,
      "--to-schema",
      schema,
      "--force",
      "--json",
      "--batch",
      "50",
    ];
    const copied = async (): Promise<number> =>
      Number((await store.query(`select count(*) as n from ${store.table("job")}`))[0]?.["n"]);
    for (const threshold of [100, 2_000, 4_500]) {
      await using moving = spawnNode("src/cli/main.ts", args);
      await waitFor(async () => !moving.running || (await copied()) >= threshold, {
        what: `${threshold} copied jobs`,
        deadlineMs: 60_000,
        everyMs: 5,
      });
      expect(moving.running, moving.output).toBe(true);
      moving.kill("SIGKILL");
      await moving.exited;
      expect(await copied()).toBeGreaterThanOrEqual(threshold);
    }
    await using last = spawnNode("src/cli/main.ts", args);
    expect((await last.exited).code, last.output).toBe(0);
    expect(last.output).toContain('"resumed":true');

    await using moved = await open(store.url, { schema, logger: silentLogger });
    expect(await moved.jobs.count()).toBe(total);
    expect(await moved.jobs.count({ state: "scheduled" })).toBe(total / 3);
    const worker = moved.work([job], { queues: { default: 50 } });
    await worker.ready;
    await worker.idle();
    await worker.stop();
    expect(await moved.jobs.count({ state: "done" })).toBe((total * 2) / 3);
    for (let n = 1; n < total; n += 997)
      expect((await moved.jobs.get(ids[n] as string))?.state).toBe(n % 3 === 0 ? "scheduled" : "done");
  });
});
