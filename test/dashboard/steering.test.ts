// What an operator steers by: purging a queue, limits for a while, who holds them, missed slots, another try from a step.
import { describe, expect, test } from "vitest";
import { defineJob } from "../../src/index.ts";
import type { DryRun, Operation, QueueTrends } from "../../src/dashboard/contract.ts";
import { schemas } from "../../src/dashboard/openapi.ts";
import { FakeClock } from "../../src/testing/index.ts";
import { misfits } from "./misfits.ts";
import { onEveryStore } from "../support/stores.ts";
import { on } from "../cli/support.ts";
import { api, code } from "./support.ts";

const plain = defineJob({ name: "plain", queue: "mail", run: async (_input: unknown) => {} });

onEveryStore((target) => {
  describe("queues", () => {
    test("[K1] purge deletes what has not started, leaves what runs and what has ended, and is on the trail", async () => {
      const { hf, get, send, store } = await api(target);
      const jobs = (n: number, options = {}) =>
        hf.enqueueMany(Array.from({ length: n }, () => ({ job: plain, input: 1, ...options })));
      await jobs(2);
      const [ended, running] = await hf.lease({ queues: ["mail"], limit: 2, for: "10m" });
      await ended!.done(null);
      await jobs(5);
      await jobs(4, { delay: "1h" });
      const [other] = await jobs(1, { queue: "other" });
      const filter = { queue: "mail" };
      const dry = (await send<DryRun>("POST", "/jobs/bulk", { action: "purge", filter, dryRun: true })).body;
      expect(dry).toMatchObject({ matched: { count: 9, more: false }, action: "purge" });
      expect(misfits(schemas["BulkAnswer"]!, dry, "dry")).toEqual([]);
      expect(await hf.jobs.count({ queue: "mail" })).toBe(11);
      const done = (await send<Operation>("POST", "/jobs/bulk", { action: "purge", filter: dry.bounded }))
        .body;
      expect(done).toMatchObject({ state: "done", matched: 9, outcomes: { deleted: 9 } });
      expect((await hf.jobs.list({ queue: "mail" })).jobs.map(({ state }) => state).sort()).toEqual([
        "done",
        "running",
      ]);
      expect(await hf.jobs.get(other!.id)).not.toBeNull();
      const { entries } = (await get<{ entries: { action: string; outcome: string }[] }>("/audit")).body;
      expect(entries.map(({ action, outcome }) => `${action} ${outcome}`)).toEqual([
        "jobs.purge done",
        "jobs.purge started",
      ]);

      // One that a worker takes between the look and the delete runs on.
      const { id } = running!;
      expect(await hf.jobs.delete(id, { running: "leave" })).toBe("running");
      expect(await hf.jobs.delete({ ids: [id] }, { running: "leave" })).toEqual({
        matched: 1,
        deleted: 0,
        running: 1,
        not_found: 0,
      });
      await running!.done("all the same");
      expect(await hf.jobs.get(id)).toMatchObject({ state: "done" });

      await jobs(3);
      const holdfast = on(store);
      expect((await holdfast(["queues", "purge", "mail", "--dry-run"])).out).toBe(
        "Would delete 3 jobs of mail that have not started.\n",
      );
      expect((await holdfast(["queues", "purge", "mail", "--json"])).code).toBe(2);
      const purged = await holdfast(["queues", "purge", "mail", "--force", "--json"]);
      expect(purged.json()).toEqual({ matched: 3, deleted: 3, running: 0 });
      await expect(hf.queues.purge("no name")).rejects.toMatchObject({ code: "BAD_NAME" });
    });

    test("[K1] who may not delete may not purge", async () => {
      const { send } = await api(target, { auth: () => ({ name: "eve", role: "operator" }) });
      const body = { action: "purge", filter: { queue: "mail" } };
      const answer = await send("POST", "/jobs/bulk", body, { "x-holdfast": "1" });
      expect([answer.status, code(answer)]).toEqual([403, "FORBIDDEN"]);
    });

    test("[K2] trends are the minutes that workers counted, for every queue, oldest first", async () => {
      const clock = new FakeClock();
      const { hf, get } = await api(target, {}, { clock });
      const minute = Math.floor(clock.now() / 60_000) * 60_000;
      const row = {
        name: "plain",
        cancelled: 0,
        throttled: 0,
        released: 0,
        lost: 0,
        ran: "[0]",
        waited: "[0]",
      };
      await hf.internals.store.putMetrics([
        { ...row, minute, queue: "mail", worker: "a", done: 3, failed: 1, dead: 1 },
        { ...row, minute, queue: "mail", worker: "b", done: 4, failed: 0, dead: 0 },
        {
          ...row,
          minute: minute - 120_000,
          queue: "mail",
          name: "other",
          worker: "a",
          done: 9,
          failed: 0,
          dead: 0,
        },
        { ...row, minute: minute - 3_600_000, queue: "old", worker: "a", done: 9, failed: 0, dead: 0 },
      ]);
      const { body } = await get<QueueTrends>("/series/queues?minutes=5");
      expect(body).toEqual({
        from: minute - 4 * 60_000,
        stepMs: 60_000,
        queues: { mail: { done: [0, 0, 9, 0, 7], failed: [0, 0, 0, 0, 2] } },
      });
      expect(misfits(schemas["QueueTrends"]!, body, "trends")).toEqual([]);
      expect((await get("/series/queues?minutes=61")).status).toBe(400);
    });
  });
});
