// What a run that sleeps or waits costs the process that ran it: nothing.
import { expect, onTestFinished, test } from "vitest";
import { spawnNode } from "../support/process.ts";
import { onEveryStore } from "../support/stores.ts";
import type { SleepersSpec } from "./children/sleepers.ts";

const runs = 2_000;

onEveryStore((target) => {
  const older = target.name === "postgres 14";
  test.skipIf(older)(
    `[N11] 2,000 runs that sleep, wait, call and retry hold no memory in their worker${older ? " (skipped: it is about the process, not the database)" : ""}`,
    async () => {
      const { url, options } = await target.fresh();
      const spec: SleepersSpec = { url, options, runs };
      const child = spawnNode("test/fault/children/sleepers.ts", [JSON.stringify(spec)]);
      onTestFinished(() => child.kill("SIGKILL"));
      const answer = await child.message("held", { deadlineMs: 220_000 });
      expect(answer, child.output).toMatchObject({
        total: runs * 1.2,
        made: runs * 1.2,
        running: 0,
        held: 0,
      });
      expect(await child.exited, child.output).toEqual({ code: 0, signal: null });
    },
    240_000,
  );
});
