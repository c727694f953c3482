// `--rate` and `holdfast operations`, on every store.
import { expect, test } from "vitest";
import { defineJob } from "../../src/index.ts";
import type { Operation } from "../../src/operate/operations.ts";
import { Operations } from "../../src/operate/operations.ts";
import { fresh } from "../support/test-clients.ts";
import { onEveryStore } from "../support/stores.ts";
import { on } from "./support.ts";

const plain = defineJob({ name: "plain", run: async (_input: unknown) => {} });

onEveryStore((target) => {
  test("[K4] a rate makes it slow, Ctrl-C pauses it, another command goes on with it, and all of it is listed", async () => {
    const { hf, store } = await fresh(target);
    const holdfast = on(store);
    await hf.enqueueMany(Array.from({ length: 40 }, (_, n) => ({ job: plain, input: n, delay: "1h" })));
    const stop = new AbortController();
    const operations = new Operations(hf);
    const slow = holdfast(["jobs", "run", "--name", "plain", "--rate", "10/1h", "--force", "--json"], {
      signal: stop.signal,
    });
    await expect.poll(async () => (await operations.list())[0]?.matched, { timeout: 20_000 }).toBe(1);
    stop.abort();
    const broken = await slow;
    const { operation: id } = broken.json<{ operation: string }>();
    expect([broken.code, broken.json()]).toEqual([1, { matched: 1, due: 1, operation: id, state: "paused" }]);
    expect(await hf.jobs.count({ state: "ready" })).toBe(1);
    const listed = (await holdfast(["operations", "--json"])).json<Operation[]>();
    expect(listed).toMatchObject([
      { id, action: "run-now", state: "paused", matched: 1, total: { count: 40 }, rate: { limit: 10 } },
    ]);
    expect((await holdfast(["operations", "list"])).out).toMatch(/run-now +paused +1 of 40 +0 +10 per 1h/);
    expect((await holdfast(["operations", "show", id])).out).toContain("names plain");
    expect((await holdfast(["operations", "stop", id])).out).toBe("stopped after 1 of 40\n");
    expect((await holdfast(["operations", "resume", id])).code).toBe(1);
    expect((await holdfast(["operations", "show", "0199c1d8-7c00-7000-8000-000000000000"])).code).toBe(1);

    const { id: other } = await operations.start(
      {
        action: "cancel",
        filter: { states: ["ready", "scheduled"] },
        change: null,
        rate: { limit: 5, perMs: 3_600_000 },
      },
      "ann",
    );
    await expect.poll(async () => (await operations.get(other))?.matched, { timeout: 20_000 }).toBe(1);
    expect((await holdfast(["operations", "pause", other, "--json"])).json()).toMatchObject({
      state: "paused",
    });
    const key = `holdfast:operation:${other}`;
    const kept = (await hf.state.get<object>(key))!;
    await hf.state.set(key, { ...kept, rate: null });
    const resumed = await holdfast(["operations", "resume", other, "--json"]);
    expect([resumed.code, resumed.json()]).toEqual([0, { matched: 40, cancelled: 40 }]);
    for (const wrong of ["fast", "0/s", "1.5/s", "5/2d"])
      expect(
        (await holdfast(["jobs", "retry", "--name", "plain", "--rate", wrong, "--force"])).code,
        wrong,
      ).toBe(2);
    expect((await holdfast(["jobs", "retry", other, "--rate", "5/s"])).code).toBe(2);
  });
});
