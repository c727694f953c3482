// Workers that are killed with SIGKILL: no accepted job is lost, and none is ended twice.
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { waitFor, type NodeProcess } from "../support/process.ts";
import { onEveryStore } from "../support/stores.ts";
import { Cluster } from "./cluster.ts";

const work = { queues: { default: 5 }, lease: "3s", heartbeat: "750ms" } as const;

onEveryStore((target) => {
  const older = target.name === "postgres 14";
  const why = older ? " (skipped: it takes long, and Postgres 18 shows it)" : "";
  test.skipIf(older)(
    `[lab-K1] three workers, killed at random and restarted under load, lose nothing and end nothing twice${why}`,
    async () => {
      const cluster = await Cluster.on(await target.fresh());
      const seed = Number(process.env["SEED"] ?? Date.now() % 1_000_000);
      const random = generator(seed);
      const ids = await cluster.naps(1_200, 60);
      const workers: NodeProcess[] = await Promise.all([1, 2, 3].map(() => cluster.worker(work)));
      let kills = 0;
      while ((await cluster.hf.jobs.count({ state: "done" })) < ids.length && kills < 12) {
        await sleep(300 + random() * 700);
        const victim = Math.floor(random() * workers.length);
        await cluster.kill(workers[victim]!);
        kills += 1;
        workers[victim] = cluster.start(work);
      }
      await cluster.allDone(ids.length, 60_000);
      expect(kills, `seed ${seed}`).toBeGreaterThan(2);
      expect(await cluster.faults(ids), `seed ${seed}, ${kills} kills`).toEqual([]);
      expect((await cluster.hf.stats()).totals).toMatchObject({
        done: ids.length,
        ready: 0,
        running: 0,
        scheduled: 0,
        dead: 0,
      });
    },
  );

  test("[C7] killing a worker with SIGKILL in the middle of 1,000 jobs loses and doubles nothing", async () => {
    const cluster = await Cluster.on(await target.fresh());
    const ids = await cluster.naps(1_000, 20);
    const [victim] = await Promise.all([cluster.worker(work), cluster.worker(work)]);
    await waitFor(async () => (await cluster.hf.jobs.count({ state: "done" })) >= 200, {
      what: "a fifth to be done",
      deadlineMs: 30_000,
    });
    await cluster.kill(victim);
    expect(await cluster.hf.jobs.count({ state: "done" })).toBeLessThan(1_000);
    await cluster.allDone(1_000, 60_000);
    expect(await cluster.faults(ids)).toEqual([]);
    // What the dead one held, and no more, has run a second time.
    const { jobs } = await cluster.hf.jobs.list({ limit: 1_000 });
    const crashes = jobs.reduce((sum, job) => sum + job.crashes, 0);
    const runs = cluster.notes().filter(({ event }) => event === "start").length;
    expect(runs - 1_000).toBeLessThanOrEqual(crashes);
  });

  test("[C8][N15] a job that kills its process ends dead after its crashes; the jobs beside it are done", async () => {
    const cluster = await Cluster.on(await target.fresh());
    const poison = await cluster.hf.enqueue("kill", {});
    const ids = await cluster.naps(20, 20);
    let over = false;
    const reborn = async (): Promise<void> => {
      while (!over) {
        const child = cluster.start({ ...work, lease: "1500ms", heartbeat: "400ms" });
        cluster.killed.add(child.pid);
        await child.exited;
      }
    };
    const lives = reborn();
    await waitFor(async () => (await cluster.hf.jobs.get(poison.id))?.state === "dead", {
      what: "the poison job to be dead",
      deadlineMs: 45_000,
      everyMs: 100,
    });
    await cluster.allDone(20, 30_000);
    over = true;
    expect(await cluster.hf.jobs.get(poison.id)).toMatchObject({
      crashes: 3,
      error: "killed its worker 3 times",
    });
    expect(cluster.starts(poison.id)).toHaveLength(3);
    expect(await cluster.faults([...ids, poison.id])).toEqual([
      `${poison.id} is dead`,
      `${poison.id}: the end in the store has 0 runs that came to it`,
      `${poison.id} ran again after its end was written`,
    ]);
    await cluster.end();
    await lives;
  });
});

/** mulberry32: the same kills for the same seed. */
function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}
