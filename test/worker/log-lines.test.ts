// Log lines for people: who stopped a worker and what it released, which step moved where, which retry it is (O14).
import { expect, test } from "vitest";
import { defineJob, defineMachine, finish, fixed, next } from "../../src/index.ts";
import { onEveryStore } from "../support/stores.ts";
import { type Client, heldJob, newWorld } from "../support/world.ts";

const lines = ({ log }: Client, pattern: RegExp) => log.filter(({ message }) => pattern.test(message));

onEveryStore((target) => {
  test("[O14] the shutdown is logged with who asked for it, what runs, and at its end how many jobs were released", async () => {
    const world = await newWorld(target);
    const { job, runs } = heldJob(world);
    const ways = {
      "worker.stop()": (_client: Client, stop: () => unknown) => stop(),
      "abort signal": (_client: Client, _stop: unknown, abort: () => void) => abort(),
      "remote stop": ({ hf }: Client) => world.finish(hf.workers.stop("all")),
      SIGTERM: () => process.listeners("SIGTERM").at(-1)!("SIGTERM"),
    };
    for (const [reason, ask] of Object.entries(ways)) {
      const client = await world.client();
      const before = runs.length;
      const controller = new AbortController();
      const worker = await client.work([job], {
        queues: { default: 1 },
        signal: controller.signal,
        signals: reason === "SIGTERM",
        shutdown: "5s",
        name: "w",
      });
      if (before === 0) await client.hf.enqueue(job, { n: 1 });
      await world.until("it to run", () => runs.length > before);
      void ask(
        client,
        () => worker.stop(),
        () => controller.abort(),
      );
      await world.finish(worker.stopped);
      const [start, ...more] = lines(client, /^worker w stops/);
      expect(start, reason).toMatchObject({
        level: "info",
        details: { reason, running: 1, graceMs: 5_000 },
        message: `worker w stops (${reason}): running jobs have 5 s to finish`,
      });
      expect(more).toEqual([]);
      expect(lines(client, /^worker w has stopped/)).toMatchObject([
        { level: "info", details: { reason, released: 1 } },
      ]);
    }
  });

  test("[O14] a failed attempt is logged with the retry that follows, by the rule of the job or of the machine's step", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    let broken = 3;
    const fails = (): void => {
      if (broken-- > 0) throw new Error("boom");
    };
    const job = defineJob({ name: "job", retry: { attempts: 6, backoff: fixed("1s") }, run: fails });
    const machine = defineMachine({
      name: "machine",
      start: "read",
      steps: {
        read: { run: async (_data: null) => next("write", 1) },
        write: {
          retry: { attempts: 4 },
          run: async (_data: number) => {
            fails();
            return finish("ok");
          },
        },
      },
    });
    await client.work([job, machine], { queues: { default: 1 } });
    const done = (id: string) => async () => (await client.hf.jobs.get(id))?.state === "done";
    await world.until("the job", done((await client.hf.enqueue(job, null)).id));
    expect(lines(client, /attempt failed/).map(({ message }) => message)).toEqual(
      [1, 2, 3].map((n) => `attempt failed; retry ${n} of 5`),
    );
    client.log.length = 0;
    broken = 2;
    const { id } = await client.hf.enqueue(machine, null);
    await world.until("the machine", done(id));
    expect(lines(client, /attempt failed/)).toMatchObject(
      [1, 2].map((n) => ({
        level: "warn",
        details: { id, step: "write", error: "boom", delayMs: 1_000 },
        message: `attempt failed; retry ${n} of 3`,
      })),
    );
    expect(lines(client, /^moved/)).toMatchObject([
      { level: "info", details: { job: id, step: "write", from: "read" }, message: "moved to step write" },
    ]);
  });

  test("[O14] a retried step of a workflow is logged with its name and the retry that follows", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    const job = defineJob({
      name: "workflow",
      run: async (_input: null, ctx) =>
        ctx.step(
          "charge",
          ({ attempt }) => {
            if (attempt < 3) throw new Error("declined");
            return attempt;
          },
          { retry: { attempts: 6, backoff: fixed("2s") } },
        ),
    });
    await client.work([job], { queues: { default: 1 } });
    const { id } = await client.hf.enqueue(job, null);
    await world.until("its end", async () => (await client.hf.jobs.get(id))?.state === "done");
    expect(lines(client, /^step/)).toMatchObject(
      [1, 2].map((n) => ({
        level: "warn",
        details: { job: id, step: "charge", error: "declined", delayMs: 2_000 },
        message: `step charge failed; retry ${n} of 5`,
      })),
    );
  });
});
