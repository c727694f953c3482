// `holdfast jobs edit`, on every store.
import { expect, test } from "vitest";
import { defineJob } from "../../src/index.ts";
import { fresh } from "../support/test-clients.ts";
import { onEveryStore } from "../support/stores.ts";
import { on } from "./support.ts";

const plain = defineJob({ name: "plain", run: async (_input: unknown) => {} });

onEveryStore((target) => {
  test("[K4] jobs edit moves jobs by id or filter, counts what it passes over, and refuses what makes no sense", async () => {
    const { hf, store } = await fresh(target);
    const holdfast = on(store);
    const jobs = await hf.enqueueMany(Array.from({ length: 4 }, (_, n) => ({ job: plain, input: n })));
    await hf.lease({ limit: 1, for: "10m" });
    const dry = await holdfast(["jobs", "edit", "--queue", "default", "--to", "slow", "--dry-run", "--json"]);
    expect(dry.json()).toMatchObject({ dryRun: true, matched: 3 });
    expect(await hf.jobs.count({ queue: "slow" })).toBe(0);
    expect((await holdfast(["jobs", "edit", "--queue", "default", "--to", "slow"])).code).toBe(2);
    const line = "jobs edit --queue default --to slow --delay 1h --priority 3 --force --json";
    const moved = await holdfast(line.split(" "));
    expect(moved.json()).toEqual({ matched: 3, edited: 3 });
    expect(await hf.jobs.count({ queue: "slow", state: "scheduled" })).toBe(3);
    const ids = jobs.map(({ id }) => id);
    const mixed = await holdfast(["jobs", "edit", ...ids, "--at", "2020-01-01", "--json"]);
    expect(mixed.json()).toEqual({ matched: 4, edited: 3, running: 1 });
    expect(await hf.jobs.count({ queue: "slow", state: "ready" })).toBe(3);
    for (const wrong of [
      ["jobs", "edit", ids[0]!],
      ["jobs", "edit", ids[0]!, "--delay", "soon"],
      ["jobs", "edit", ids[0]!, "--at", "someday"],
      ["jobs", "edit", ids[0]!, "--to", "no queue!"],
      ["jobs", "edit", "--to", "slow"],
    ])
      expect((await holdfast(wrong)).code, wrong.join(" ")).toBe(2);
  });
});
