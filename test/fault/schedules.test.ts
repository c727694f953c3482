// Schedules, budgets and passes with real processes that are killed.
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { describe, expect, onTestFinished, test } from "vitest";
import { startPostgres } from "../support/postgres.ts";
import { type NodeProcess, spawnNode, waitFor } from "../support/process.ts";
import { type FreshStore, onEveryStore } from "../support/stores.ts";
import type { MortalSpec } from "./children/mortal.ts";
import type { RacerSpec } from "./children/racer.ts";
import { Cluster } from "./cluster.ts";

const work = { queues: { default: 5 }, lease: "3s", heartbeat: "750ms" } as const;

/** The occurrences that the jobs were made for, in seconds, in order; a job that lost its worker is due anew, its occurrence stays. */
async function occurrencesOf(store: Pick<FreshStore, "query" | "table">): Promise<number[]> {
  const rows = await store.query(`select extras from ${store.table("job")}`);
  return rows
    .map(({ extras }) => (JSON.parse(String(extras)) as { schedule: { at: number } }).schedule.at / 1_000)
    .sort((a, b) => a - b);
}

/** Every second from the first to the last, each once. */
function expectEverySecondOnce(seconds: readonly number[]): void {
  const first = seconds[0] ?? 0;
  expect(seconds).toEqual(seconds.map((_, i) => first + i));
}

onEveryStore((target) => {
  const older = target.name === "postgres 14";
  const why = older ? " (skipped: it takes long, and Postgres 18 shows it)" : "";

  test.skipIf(older)(
    `[G3][lab-T4] five processes, killed and restarted at random: each occurrence makes exactly one job${why}`,
    async () => {
      const store = await target.fresh();
      const cluster = await Cluster.on(store);
      await cluster.hf.schedules.put({
        name: "tick",
        cron: "* * * * * *",
        missed: "all",
        job: "nap",
        input: { ms: 5 },
      });
      const workers: NodeProcess[] = await Promise.all([1, 2, 3, 4, 5].map(() => cluster.worker(work)));
      const fired = async (): Promise<number> => (await cluster.hf.schedules.get("tick"))?.counts.fired ?? 0;
      let kills = 0;
      while ((await fired()) < 25) {
        // Around the tick, where the transaction is.
        await sleep(1_000 - (Date.now() % 1_000) + Math.random() * 60);
        const victim = Math.floor(Math.random() * workers.length);
        await cluster.kill(workers[victim]!);
        kills += 1;
        workers[victim] = cluster.start(work);
      }
      await cluster.hf.schedules.pause("tick");
      const count = await fired();
      expect(kills).toBeGreaterThan(5);
      const seconds = await occurrencesOf(store);
      expect(seconds).toHaveLength(count);
      expectEverySecondOnce(seconds);
      await cluster.allDone(count, 60_000);
      expect(await cluster.hf.schedules.get("tick")).toMatchObject({ counts: { skipped: 0, missed: 0 } });
    },
  );

  test("[G3] processes that die before, in and after the firing transaction leave each occurrence its one job", async () => {
    const store = await target.fresh();
    const cluster = await Cluster.on(store);
    await cluster.hf.schedules.put({
      name: "tick",
      cron: "* * * * * *",
      missed: "all",
      job: "nap",
      input: { ms: 5 },
    });
    for (const when of ["before", "during", "after"] as const) {
      const { url, options } = cluster.place;
      const spec: MortalSpec = {
        url,
        options: options ?? {},
        queue: "other",
        verb: "schedules.fire",
        when,
      };
      const child = spawnNode("test/fault/children/mortal.ts", [JSON.stringify(spec)]);
      onTestFinished(() => child[Symbol.asyncDispose]());
      expect(await child.exited).toMatchObject({ signal: "SIGKILL" });
    }
    await cluster.worker(work);
    await waitFor(
      async () => {
        const seconds = await occurrencesOf(store);
        return seconds.length >= 5 && (seconds.at(-1) ?? 0) > Date.now() / 1_000 - 5;
      },
      { what: "the living worker to catch up", deadlineMs: 30_000, everyMs: 100 },
    );
    await cluster.hf.schedules.pause("tick");
    expectEverySecondOnce(await occurrencesOf(store));
  });

  test("[H1] fifty racers on ten tokens in two processes: ten are granted", async () => {
    const cluster = await Cluster.on(await target.fresh());
    await cluster.hf.budgets.set("slack", { limit: 10, per: "1d" });
    const { url, options } = cluster.place;
    const spec: RacerSpec = { url, options: options ?? {}, what: "race", takes: 25 };
    const racers = [1, 2].map(() => spawnNode("test/fault/children/racer.ts", [JSON.stringify(spec)]));
    onTestFinished(async () => {
      for (const racer of racers) await racer[Symbol.asyncDispose]();
    });
    await Promise.all(racers.map((racer) => racer.message("ready", { deadlineMs: 30_000 })));
    await cluster.hf.state.set("go", true);
    const raced = await Promise.all(racers.map((racer) => racer.message("raced", { deadlineMs: 30_000 })));
    expect(raced.reduce((sum, { granted }) => sum + Number(granted), 0)).toBe(10);
    expect((await cluster.hf.budgets.list())[0]?.tokens).toBeLessThan(1);
  });

  test("[H4] a process that is killed in the middle of a pass: the next one takes over and recovers", async () => {
    const cluster = await Cluster.on(await target.fresh());
    await cluster.hf.state.pass("crawl", () => {});
    const { url, options } = cluster.place;
    const spec: RacerSpec = { url, options: options ?? {}, what: "pass" };
    const child = spawnNode("test/fault/children/racer.ts", [JSON.stringify(spec)]);
    onTestFinished(() => child[Symbol.asyncDispose]());
    expect(await child.message("began", { deadlineMs: 30_000 })).toMatchObject({ recovery: false });
    await expect(cluster.hf.state.pass("crawl", () => {})).rejects.toMatchObject({ code: "PASS_RUNNING" });
    child.kill("SIGKILL");
    await child.exited;
    let recovery: boolean | null = null;
    await waitFor(
      async () => {
        try {
          recovery = await cluster.hf.state.pass("crawl", (pass) => pass.recovery);
          return true;
        } catch (error) {
          if ((error as { code?: string }).code === "PASS_RUNNING") return false;
          throw error;
        }
      },
      { what: "the dead one's lease to pass", deadlineMs: 20_000, everyMs: 100 },
    );
    expect(recovery).toBe(true);
  });
});

describe("postgres 18", () => {
  test("[lab-T4] a database that restarts at the tick: no occurrence is lost or doubled, and the workers live on", async () => {
    await using server = await startPostgres(18);
    const cluster = await Cluster.on({ url: server.url() });
    await cluster.hf.schedules.put({
      name: "tick",
      cron: "* * * * * *",
      missed: "all",
      job: "nap",
      input: { ms: 5 },
    });
    const workers = await Promise.all([1, 2, 3].map(() => cluster.worker(work)));
    for (let restarts = 0; restarts < 3; restarts++) {
      await sleep(1_000 + 1_000 - (Date.now() % 1_000) + Math.random() * 30);
      await server.restartImmediate();
    }
    const restartedAt = Date.now() / 1_000;
    const query = async (sql: string): Promise<Record<string, unknown>[]> => {
      const client = new pg.Client({ connectionString: server.url() });
      await client.connect();
      try {
        return (await client.query<Record<string, unknown>>(sql)).rows;
      } finally {
        await client.end();
      }
    };
    const store = { query, table: (name: string) => `"holdfast"."${name}"` };
    await waitFor(async () => ((await occurrencesOf(store)).at(-1) ?? 0) > restartedAt + 3, {
      what: "occurrences after the last restart",
      deadlineMs: 30_000,
      everyMs: 200,
    });
    await cluster.hf.schedules.pause("tick");
    expectEverySecondOnce(await occurrencesOf(store));
    for (const worker of workers) {
      expect(worker.running).toBe(true);
      expect(worker.output).not.toMatch(/unhandled/i);
    }
  });
});
