/** better-sqlite3 brings a second SQLite into the process, and the locks of two of them do not exclude each other. */
import Database from "better-sqlite3";
import { defineJob, open } from "holdfast";
import { expect, test } from "vitest";
import { onSqlite } from "../../support/stores.ts";

onSqlite((target) => {
  test("a better-sqlite3 transaction keeps the client's own writes out until it ends", async () => {
    const fresh = await target.fresh();
    const warnings: string[] = [];
    const hf = await open(fresh.url, { ...fresh.options, logger: quiet });
    hf.on("warning", ({ message }) => void warnings.push(message));
    const job = defineJob({ name: "n", run: (_input: { by: string }) => {} });
    await hf.enqueue(job, { by: "us, before" });

    const db = new Database(fresh.url.replace("sqlite:", ""), { timeout: 0 });
    db.exec("begin immediate");
    await hf.enqueue(job, { by: "the user" }, { tx: db });
    let written = false;
    const ours = hf.enqueue(job, { by: "us" }).then(() => (written = true));
    for (let turn = 0; turn < 50; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    expect(written).toBe(false);
    db.exec("commit");
    await ours;

    expect(db.pragma("integrity_check")).toEqual([{ integrity_check: "ok" }]);
    expect((await hf.jobs.list()).jobs.map(({ input }) => (input as { by: string }).by).sort()).toEqual([
      "the user",
      "us",
      "us, before",
    ]);
    expect(warnings).toHaveLength(1);
    db.close();
    await hf.close();
  });

  test("a worker that renews in a thread goes on on the main thread", async () => {
    const fresh = await target.fresh();
    const hf = await open(fresh.url, { ...fresh.options, logger: quiet });
    const ended = Promise.withResolvers<void>();
    const job = defineJob({ name: "n", run: () => ended.promise });
    const worker = hf.work([job], { queues: ["default"], lease: "3s", heartbeat: "300ms" });
    await worker.ready;
    const { id } = await hf.enqueue(job, null as never);

    const db = new Database(fresh.url.replace("sqlite:", ""), { timeout: 0 });
    db.exec("begin immediate");
    await hf.enqueue(job, null as never, { tx: db, delay: "1h" });
    db.exec("commit");
    const [before] = await hf.workers.list();
    const beat = async (): Promise<number> => (await hf.workers.list())[0]?.beatAt.getTime() ?? 0;
    while ((await beat()) < (before?.beatAt.getTime() ?? 0) + 5_000)
      await new Promise((resolve) => setTimeout(resolve, 50));
    ended.resolve();
    await worker.idle();
    expect(await hf.jobs.get(id)).toMatchObject({ state: "done", attempt: 1, crashes: 0 });
    expect(worker.leasesLost).toBe(0);
    db.close();
    await hf.close();
  });
});

const quiet = { debug() {}, info() {}, warn() {}, error() {} };
