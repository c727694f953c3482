// Bulk actions over the API: at a rate, watched, paused, gone on with and stopped by whoever may.
import { describe, expect, test } from "vitest";
import { defineJob } from "../../src/index.ts";
import type { AuditLine, Operation } from "../../src/dashboard/api/contract.ts";
import { on } from "../cli/support.ts";
import { onEveryStore } from "../support/stores.ts";
import { api, code, over } from "./support.ts";

const plain = defineJob({ name: "plain", run: async (_input: unknown) => {} });
const slowly = { limit: 2, per: "1h" };
const header = { "x-holdfast": "1" };

onEveryStore((target) => {
  describe("operations", () => {
    test("[K1] at a rate it answers 202; any dashboard on the database shows it, pauses it, goes on with it and stops it", async () => {
      const { hf, send } = await api(target);
      const other = over(hf);
      await hf.enqueueMany(Array.from({ length: 9 }, (_, n) => ({ job: plain, input: n, delay: "1h" })));
      const body = { action: "run-now", filter: { name: "plain" }, rate: slowly };
      const begun = await send<Operation>("POST", "/jobs/bulk", body);
      expect(begun.status).toBe(202);
      expect(begun.body).toMatchObject({
        state: "running",
        total: { count: 9, more: false },
        rate: { limit: 2, perMs: 3_600_000 },
        filter: { name: ["plain"], state: ["scheduled"] },
      });
      const at = `/operations/${begun.body.id}`;
      await expect
        .poll(async () => (await other.get<Operation>(at)).body.matched, { timeout: 20_000 })
        .toBe(1);
      const steer = async (verb: string): Promise<Operation> =>
        (await other.send<Operation>("POST", `${at}/${verb}`)).body;
      expect(await steer("pause")).toMatchObject({ state: "paused", matched: 1 });
      expect(await steer("resume")).toMatchObject({ state: "running", standsStill: false });
      await expect
        .poll(async () => (await other.get<Operation>(at)).body.matched, { timeout: 20_000 })
        .toBe(2);
      expect(await steer("stop")).toMatchObject({ state: "stopped", outcomes: { due: 2 }, refused: 0 });
      const { operations } = (await other.get<{ operations: Operation[] }>("/operations")).body;
      expect(operations.map(({ id, state }) => [id, state])).toEqual([[begun.body.id, "stopped"]]);
      const { entries } = (await other.get<{ entries: AuditLine[] }>("/audit")).body;
      expect(entries.map(({ outcome }) => outcome).reverse()).toEqual([
        "started",
        "paused",
        "resumed",
        "stopped",
      ]);
      expect(await hf.jobs.count({ state: "ready" })).toBe(2);
    });

    test("[K1] the first that it could not be done to are kept with what stood in the way, and shown in a terminal", async () => {
      const { hf, get, send, store } = await api(target);
      const jobs = await hf.enqueueMany(Array.from({ length: 30 }, (_, n) => ({ job: plain, input: n })));
      const ids = jobs.map(({ id }) => id);
      await hf.jobs.cancel({ ids: ids.slice(0, 25) });
      const { body } = await send<Operation>("POST", "/jobs/bulk", { action: "cancel", filter: { ids } });
      expect(body).toMatchObject({ outcomes: { cancelled: 5, ended: 25 }, refused: 25 });
      expect(body.refusals).toHaveLength(20);
      for (const { id, outcome } of body.refusals) {
        expect(outcome).toBe("ended");
        expect(ids.slice(0, 25)).toContain(id);
      }
      expect(new Set(body.refusals.map(({ id }) => id)).size).toBe(20);
      expect((await get<Operation>(`/operations/${body.id}`)).body.refusals).toEqual(body.refusals);
      const shown = await on(store)(["operations", "show", body.id]);
      expect(shown.out).toContain(`refused   ${body.refusals[0]!.id} ended`);
      // What did work is no refusal, whatever it is called.
      const one = await send<Operation>("POST", "/jobs/bulk", {
        action: "delete",
        filter: { ids: [ids[29]] },
      });
      expect(one.body).toMatchObject({ outcomes: { deleted: 1 }, refused: 0, refusals: [] });
    });

    test("[K1] who started it may pause and stop it, to go on with it needs the action's permission; four at once", async () => {
      const { hf, get, send } = await api(target);
      await hf.enqueueMany(Array.from({ length: 30 }, (_, n) => ({ job: plain, input: n, delay: "1h" })));
      const start = () =>
        send<Operation>("POST", "/jobs/bulk", { action: "cancel", filter: { name: "plain" }, rate: slowly });
      const { body } = await start();
      const may = (name: string, permissions: readonly ("view" | "jobs:cancel")[]) =>
        over(hf, { auth: () => ({ name, permissions }) });
      for (const verb of ["pause", "resume", "stop"]) {
        const refused = await may("eve", ["view"]).send(
          "POST",
          `/operations/${body.id}/${verb}`,
          undefined,
          header,
        );
        expect([refused.status, code(refused)], verb).toEqual([403, "FORBIDDEN"]);
      }
      // Now it rests, half an hour.
      await expect
        .poll(async () => (await get<Operation>(`/operations/${body.id}`)).body.matched, { timeout: 20_000 })
        .toBe(1);
      const own = may("token", ["view"]); // by name the one who started it
      expect((await own.send("POST", `/operations/${body.id}/pause`, undefined, header)).status).toBe(200);
      expect((await own.send("POST", `/operations/${body.id}/resume`, undefined, header)).status).toBe(403);
      const able = may("bob", ["view", "jobs:cancel"]);
      expect((await able.send("POST", `/operations/${body.id}/resume`, undefined, header)).status).toBe(200);
      // One is let go of when the dashboard that drove it looks up, every two seconds: bob's drives it now.
      await new Promise((resolve) => setTimeout(resolve, 2_500));
      expect((await start()).status).toBe(202);
      for (let n = 0; n < 3; n += 1) expect((await start()).status).toBe(202);
      const fifth = await start();
      expect([fifth.status, fifth.headers.get("retry-after")]).toEqual([429, "5"]);
      const { operations } = (await get<{ operations: Operation[] }>("/operations")).body;
      for (const { id } of operations)
        expect((await send<Operation>("POST", `/operations/${id}/stop`)).body.state).toBe("stopped");
    });

    test("[K1] a rate that is none is refused with its field, and nothing is started", async () => {
      const { hf, get, send } = await api(target);
      await hf.enqueue(plain, 1);
      for (const [rate, field] of [
        [7, "rate"],
        [[], "rate"],
        [{ limit: 0 }, "rate.limit"],
        [{ limit: 1, per: "2d" }, "rate.per"],
        [{ limit: 1, burst: 2 }, "rate.burst"],
      ] as const) {
        const body = { action: "cancel", filter: { name: "plain" }, rate };
        const { status, body: answer } = await send<{ error: { field: string } }>("POST", "/jobs/bulk", body);
        expect([status, answer.error.field], JSON.stringify(rate)).toEqual([400, field]);
      }
      expect((await get<{ operations: Operation[] }>("/operations")).body.operations).toEqual([]);
    });
  });
});
