// Bulk edits over the API: another time, queue or priority by filter, with a dry run, an audit line, and what is passed over.
import { describe, expect, test } from "vitest";
import { defineJob } from "../../src/index.ts";
import type { AuditLine, DryRun, JobDetail, Operation } from "../../src/dashboard/api/contract.ts";
import { onEveryStore } from "../support/stores.ts";
import { api, code, over } from "./support.ts";

const plain = defineJob({ name: "plain", run: async (_input: unknown) => {} });
const unique = defineJob({
  name: "unique",
  unique: { key: (n: number) => String(n), scope: "queue" },
  run: async (_input: unknown) => {},
});

onEveryStore((target) => {
  describe("bulk edits", () => {
    test("[K1] a dry run says how many, shows some, says which would be passed over, and changes nothing", async () => {
      const { hf, send } = await api(target);
      await hf.enqueueMany(Array.from({ length: 12 }, (_, n) => ({ job: plain, input: n })));
      await hf.enqueue(unique, 1);
      const [lease] = await hf.lease({ names: ["plain"], limit: 1, for: "10m" });
      const { status, body } = await send<DryRun>("POST", "/jobs/bulk", {
        action: "edit",
        change: { queue: "other" },
        filter: { queue: ["default"] },
        dryRun: true,
      });
      expect(status).toBe(200);
      expect(body).toMatchObject({
        dryRun: true,
        action: "edit",
        change: { queue: "other" },
        matched: { count: 12, more: false },
        outcomes: { edited: 11, keyed: 1 },
        judged: 12,
      });
      expect(body.samples).toHaveLength(5);
      expect(await hf.jobs.count({ queue: "other" })).toBe(0);
      const chosen = await send<DryRun>("POST", "/jobs/bulk", {
        action: "edit",
        change: { queue: "other" },
        filter: { ids: [lease!.id] },
        dryRun: true,
      });
      expect(chosen.body).toMatchObject({ outcomes: { running: 1 } });
    });

    test("[K1] time, queue and priority by filter; what is passed over is counted, and the trail says what was changed", async () => {
      const { hf, get, send } = await api(target);
      await hf.enqueueMany(Array.from({ length: 7 }, (_, n) => ({ job: plain, input: n })));
      await hf.enqueue(unique, 1);
      const edit = (change: object, filter: object) =>
        send<Operation>("POST", "/jobs/bulk", { action: "edit", change, filter });
      expect((await edit({ queue: "other", priority: 9 }, { queue: ["default"] })).body).toMatchObject({
        action: "edit",
        change: { queue: "other", priority: 9 },
        state: "done",
        matched: 8,
        outcomes: { edited: 7, keyed: 1 },
      });
      const at = Date.now() + 86_400_000;
      expect((await edit({ at }, { queue: ["other"] })).body.outcomes).toEqual({ edited: 7 });
      const { jobs } = await hf.jobs.list({ queue: "other" });
      expect(jobs.map(({ runAt, priority, state }) => [runAt?.getTime(), priority, state])).toEqual(
        Array.from({ length: 7 }, () => [at, 9, "scheduled"]),
      );
      expect((await edit({ delay: "0s" }, { state: ["scheduled"] })).body.outcomes).toEqual({ edited: 7 });
      expect(await hf.jobs.count({ state: "ready" })).toBe(8);
      const { entries } = (await get<{ entries: AuditLine[] }>("/audit")).body;
      expect(entries.filter(({ action }) => action === "jobs.edit")).toHaveLength(6);
      expect(JSON.parse(entries.at(-2)?.details ?? "{}")).toMatchObject({
        change: { queue: "other", priority: 9 },
        edited: 7,
        keyed: 1,
      });
    });

    test("[K1] the dead jobs of one cause are moved to another queue: first how many and some, then with a line on the trail", async () => {
      const { hf, get, send } = await api(target);
      await hf.enqueueMany([1, 2, 3].map((n) => ({ job: plain, input: n })));
      for (const lease of await hf.lease({ queues: ["default"], limit: 2, for: "1m" }))
        await lease.dead("the bank said no");
      const [group] = await hf.errors.list();
      const ask = {
        action: "edit",
        change: { queue: "bank-dead" },
        filter: { failureGroup: group!.group, state: ["dead"] },
      };
      const dry = await send<DryRun>("POST", "/jobs/bulk", { ...ask, dryRun: true });
      expect(dry.body).toMatchObject({
        matched: { count: 2, more: false },
        outcomes: { edited: 2 },
        samples: [{ queue: "default" }, { queue: "default" }],
      });
      const { body } = await send<Operation>("POST", "/jobs/bulk", ask);
      expect(body).toMatchObject({ state: "done", matched: 2, outcomes: { edited: 2 } });
      expect(await hf.jobs.count({ queue: "bank-dead", state: "dead" })).toBe(2);
      expect((await hf.errors.list())[0]).toMatchObject({ group: group!.group, dead: 2 });
      const trail = await get<{ entries: AuditLine[] }>("/audit");
      expect(trail.body.entries[0]).toMatchObject({ action: "jobs.edit", outcome: "done" });
      expect(trail.body.entries[0]!.details).toContain("bank-dead");
      // Without a state an edit is of what has not started, as ever.
      const rest = await send<DryRun>("POST", "/jobs/bulk", {
        action: "edit",
        change: { queue: "elsewhere" },
        filter: { name: ["plain"] },
        dryRun: true,
      });
      expect(rest.body.matched).toEqual({ count: 1, more: false });
    });

    test("[K1] one job is edited, and a conflict says why not", async () => {
      const { hf, get, send } = await api(target);
      const { id } = await hf.enqueue(plain, 1);
      expect((await send("PATCH", `/jobs/${id}`, { priority: 3, delay: "1h" })).body).toEqual({
        outcome: "edited",
      });
      expect((await get<JobDetail>(`/jobs/${id}`)).body).toMatchObject({ priority: 3, state: "scheduled" });
      await hf.jobs.runNow(id);
      await hf.lease({ limit: 1, for: "10m" });
      const late = await send("PATCH", `/jobs/${id}`, { queue: "other" });
      expect([late.status, code(late)]).toEqual([409, "RUNNING"]);
      expect(
        (await send("PATCH", "/jobs/0199c1d8-7c00-7000-8000-000000000000", { priority: 1 })).status,
      ).toBe(404);
    });

    test("[K1] what makes no sense is refused with the field, and nothing is changed", async () => {
      const { hf, send } = await api(target);
      const { id } = await hf.enqueue(plain, 1);
      const filter = { name: ["plain"] };
      for (const [body, field] of [
        [{ action: "edit", filter }, "change"],
        [{ action: "edit", filter, change: [] }, "change"],
        [{ action: "edit", filter, change: { at: "tomorrow" } }, "change.at"],
        [{ action: "edit", filter, change: { state: "done" } }, "change.state"],
        [{ action: "retry", filter, change: { queue: "x" } }, "change"],
        [{ action: "edit", filter: { state: ["done"] }, change: { queue: "x" } }, "filter.state"],
        [{ action: "edit", filter: {}, change: { queue: "x" } }, "filter"],
      ] as const) {
        const { status, body: answer } = await send<{ error: { field?: string } }>(
          "POST",
          "/jobs/bulk",
          body,
        );
        expect([status, answer.error.field], JSON.stringify(body)).toEqual([400, field]);
      }
      for (const change of [
        {},
        { delay: "soon" },
        { queue: "; drop" },
        { priority: "high" },
        { delay: 1, at: 1 },
      ]) {
        expect((await send("POST", "/jobs/bulk", { action: "edit", filter, change })).status).toBe(400);
        expect((await send("PATCH", `/jobs/${id}`, change)).status).toBe(400);
      }
      expect(await hf.jobs.get(id)).toMatchObject({ state: "ready", queue: "default", priority: 0 });
    });

    test("[K1] an edit needs its permission, and a read-only dashboard has none", async () => {
      const { hf } = await api(target);
      const { id } = await hf.enqueue(plain, 1);
      const body = { action: "edit", filter: { name: ["plain"] }, change: { queue: "other" } };
      const header = { "x-holdfast": "1" };
      for (const options of [
        { auth: () => ({ name: "eve", role: "viewer" as const }) },
        { auth: () => ({ name: "eve", permissions: ["view", "jobs:retry", "jobs:delete"] as const }) },
        { readOnly: true },
      ]) {
        const { send } = over(hf, options);
        for (const dryRun of [true, false])
          expect((await send("POST", "/jobs/bulk", { ...body, dryRun }, header)).status).toBe(403);
        expect((await send("PATCH", `/jobs/${id}`, { queue: "other" }, header)).status).toBe(403);
      }
      const { send } = over(hf, { auth: () => ({ name: "ann", role: "operator" }) });
      expect((await send("POST", "/jobs/bulk", body, header)).status).toBe(200);
      expect(await hf.jobs.get(id)).toMatchObject({ queue: "other" });
    });
  });
});
