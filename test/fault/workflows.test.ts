// Workflows under a process that wakes up too late, and under a database that restarts; those under SIGKILL are in workflow-kills.ts.
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import { open, silentLogger } from "../../src/index.ts";
import { temporaryDirectory } from "../support/guard.ts";
import { startPostgres } from "../support/postgres.ts";
import { type NodeProcess, spawnNode, waitFor } from "../support/process.ts";
import { onEveryStore } from "../support/stores.ts";
import type { WorkflowSpec } from "./children/workflow.ts";
import { allDone, faults, runs, seed, started } from "./workflow-runs.ts";

onEveryStore((target) => {
  test("[N11] a worker that wakes up after its lease has passed can write no step", async () => {
    const fresh = await target.fresh();
    const hf = await open(fresh.url, { ...fresh.options, logger: silentLogger });
    onTestFinished(() => hf.close());
    const log = join(temporaryDirectory("workflows"), "effects.jsonl");
    const spec: WorkflowSpec = {
      url: fresh.url,
      options: fresh.options,
      log,
      seed,
      deadly: 0,
      effects: "",
      stuckMs: 2_500,
    };
    const spawn = (more: Partial<WorkflowSpec> = {}): NodeProcess => {
      const child = spawnNode("test/fault/children/workflow.ts", [JSON.stringify({ ...spec, ...more })]);
      onTestFinished(() => child.kill("SIGKILL"));
      return child;
    };
    const zombie = spawn();
    const { id } = await hf.enqueue("stuck", null);
    await zombie.message("in-step", { deadlineMs: 20_000 });
    zombie.kill("SIGSTOP");
    const heir = spawn({ stuckMs: 10 });
    await waitFor(async () => (await hf.jobs.get(id))?.state === "done", {
      what: "the heir to finish",
      deadlineMs: 20_000,
    });
    const rows = async () => fresh.query(`select * from ${fresh.table("step")} order by name`);
    const before = await rows();
    zombie.kill("SIGCONT");
    await zombie.message("lost", { deadlineMs: 20_000 });
    await sleep(500);
    expect(await rows()).toEqual(before);
    expect((await hf.jobs.get(id))?.output).toBe(heir.pid);
    expect(zombie.running).toBe(true);
  });
});

describe("postgres 18", () => {
  test("[N11] a database that restarts in the middle of workflows leaves none of them stuck", async () => {
    await using server = await startPostgres(18);
    const place = { url: server.url(), options: {} };
    const { hf, workflows } = await started(place);
    const log = join(temporaryDirectory("workflows"), "effects.jsonl");
    const effects = '"holdfast"."effect"';
    const spec: WorkflowSpec = { ...place, log, seed, deadly: 0, effects };
    const pool = await import("pg");
    const side = new pool.default.Client({ connectionString: server.url() });
    await side.connect();
    await side.query(`create table ${effects} (n integer)`);
    await side.end();
    const child = spawnNode("test/fault/children/workflow.ts", [JSON.stringify(spec)]);
    onTestFinished(() => child.kill("SIGKILL"));
    await child.message("ready", { deadlineMs: 20_000 });
    for (let n = 0; n < runs; n += 1) {
      if (n % 4 === 0) await server.restartImmediate();
      await waitFor(
        () =>
          hf.signal("told", { key: String(n), data: n }).then(
            () => true,
            () => false,
          ),
        { what: "a signal to be taken", deadlineMs: 30_000 },
      );
    }
    await allDone(hf, runs * 3, [child]);
    expect((await faults(hf, workflows, log)).filter((fault) => !fault.includes("was told"))).toEqual([]);
    expect(child.running).toBe(true);
    expect(child.output).not.toMatch(/unhandled/i);
  }, 120_000);
});
