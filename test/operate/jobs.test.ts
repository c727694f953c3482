import { describe, expect, test } from "vitest";
import { defineJob, type Holdfast, type Lease } from "../../src/index.ts";
import { FakeClock } from "../../src/testing/index.ts";
import { onEveryStore } from "../support/stores.ts";
import { connect, containing, fresh, matching, refusal } from "../support/test-clients.ts";

const plain = defineJob({ name: "plain", run: async (_input: unknown) => {} });
const unknownId = "0199c1d8-7c00-7000-8000-000000000000";

async function leaseOne(hf: Holdfast): Promise<Lease> {
  const [lease] = await hf.lease({ limit: 1, for: "10m" });
  if (lease === undefined) throw new Error("nothing to lease");
  return lease;
}

/** Makes a job of this state. */
async function jobIn(hf: Holdfast, state: string, options: object = {}): Promise<string> {
  const { id } = await hf.enqueue(
    plain,
    { state },
    state === "scheduled" ? { delay: "1h", ...options } : options,
  );
  if (state === "scheduled" || state === "ready") return id;
  if (state === "cancelled") await hf.jobs.cancel(id);
  else {
    const lease = await leaseOne(hf);
    if (state === "done") await lease.done({ ok: true });
    if (state === "dead") await lease.dead("no use");
  }
  return id;
}

onEveryStore((target) => {
  describe("hf.jobs", () => {
    test("get gives everything of a job, and null for an unknown id", async () => {
      const clock = new FakeClock();
      const { hf } = await fresh(target, { clock });
      const id = await jobIn(hf, "done", { context: "why" });
      expect(await hf.jobs.get(id)).toMatchObject({
        id,
        state: "done",
        input: { state: "done" },
        output: { ok: true },
        attempt: 1,
        context: "why",
        createdAt: new Date(clock.now()),
        startedAt: new Date(clock.now()),
        endedAt: new Date(clock.now()),
        error: null,
        errors: [],
      });
      expect(await hf.jobs.get(unknownId)).toBeNull();
      expect(await hf.jobs.get("not an id")).toBeNull();
      expect(await refusal(hf.jobs.get(7 as never))).toMatchObject({ code: "BAD_OPTION" });
    });

    test("list is newest first, in pages, over all states or those asked for", async () => {
      const { hf } = await fresh(target);
      const ids: string[] = [];
      for (const state of ["done", "dead", "cancelled", "scheduled", "ready"])
        ids.unshift(await jobIn(hf, state));
      const all = await hf.jobs.list();
      expect(all.jobs.map(({ id }) => id)).toEqual(ids);
      expect(all.cursor).toBeNull();
      const seen: string[] = [];
      let cursor: string | null = null;
      do {
        const page = await hf.jobs.list({ limit: 2, cursor });
        expect(page.jobs.length).toBeLessThanOrEqual(2);
        seen.push(...page.jobs.map(({ id }) => id));
        cursor = page.cursor;
      } while (cursor !== null);
      expect(seen).toEqual(ids);
      expect((await hf.jobs.list({ state: ["dead", "ready"] })).jobs.map(({ state }) => state)).toEqual([
        "ready",
        "dead",
      ]);
      expect(await hf.jobs.count()).toBe(5);
      expect(await hf.jobs.count({ state: "scheduled" })).toBe(1);
      expect((await hf.jobs.list({ search: "cancelled" })).jobs).toHaveLength(1);
      expect((await hf.jobs.list({ ids: [ids[0] ?? "", "nonsense"] })).jobs).toHaveLength(1);
      expect(await hf.jobs.list({ ids: [] })).toEqual({ jobs: [], cursor: null });
      expect(await hf.jobs.count({ queue: "other" })).toBe(0);
      expect(await hf.jobs.count({ since: new Date(Date.now() + 3_600_000) })).toBe(0);
      expect(await hf.jobs.count({ until: new Date(Date.now() + 3_600_000), name: ["plain"] })).toBe(5);
    });

    test("wrong filters are refused", async () => {
      const { hf } = await fresh(target);
      expect(await refusal(hf.jobs.list({ limit: 0 }))).toMatchObject({ code: "BAD_OPTION" });
      expect(await refusal(hf.jobs.list({ limit: 1_001 }))).toMatchObject({ code: "BAD_OPTION" });
      expect(await refusal(hf.jobs.list({ state: "broken" as never }))).toMatchObject({ code: "BAD_OPTION" });
      expect(await refusal(hf.jobs.list({ staet: "dead" } as never))).toMatchObject({
        code: "UNKNOWN_OPTION",
      });
      expect(await refusal(hf.jobs.list({ cursor: "x" }))).toMatchObject({ code: "BAD_CURSOR" });
      expect(await refusal(hf.jobs.list({ since: new Date(Number.NaN) }))).toMatchObject({
        code: "BAD_INSTANT",
      });
      for (const act of ["retry", "cancel", "delete", "runNow"] as const) {
        expect(await refusal(hf.jobs[act]({}))).toMatchObject({ code: "BAD_OPTION" });
        expect(await hf.jobs[act](unknownId)).toBe("not_found");
        expect(await hf.jobs[act]("nonsense")).toBe("not_found");
      }
    });

    test("[E1] a job that is cancelled before it started is told of, and one that was asked to stop is not yet", async () => {
      const { hf } = await fresh(target);
      const heard: unknown[] = [];
      const off = hf.on("job.cancelled", (event) => heard.push(event));
      const running = (await hf.enqueue(plain, 1)).id;
      const lease = await leaseOne(hf);
      const ids: string[] = [];
      for (let i = 0; i < 3; i++) ids.push(await jobIn(hf, "ready", { queue: "mail" }));
      const told = (id: string) => ({ id, name: "plain", queue: "mail", reason: "cancelled by user" });
      await hf.jobs.cancel(ids[0] ?? "");
      expect(heard).toEqual([told(ids[0] ?? "")]);
      await hf.jobs.cancel(ids[0] ?? "");
      await hf.jobs.cancel(running);
      expect(heard).toHaveLength(1);
      await hf.jobs.cancel({ queue: "mail" });
      expect(heard).toHaveLength(3);
      expect(heard).toEqual(expect.arrayContaining(ids.map(told)));
      off();
      await jobIn(hf, "cancelled");
      expect(heard).toHaveLength(3);
      await lease.done();
    });

    test("[E1] cancel and delete say deleted, cancel_requested or not_found", async () => {
      const { hf } = await fresh(target);
      const ready = await jobIn(hf, "ready");
      expect(await hf.jobs.delete(ready)).toBe("deleted");
      expect(await hf.jobs.get(ready)).toBeNull();
      expect(await hf.jobs.delete(ready)).toBe("not_found");
      const running = await jobIn(hf, "running");
      expect(await hf.jobs.delete(running)).toBe("cancel_requested");
      expect(await hf.jobs.cancel(running)).toBe("cancel_requested");
      const waiting = await jobIn(hf, "scheduled");
      expect(await hf.jobs.cancel(waiting)).toBe("cancelled");
      expect(await hf.jobs.cancel(waiting)).toBe("ended");
      expect(await hf.jobs.get(waiting)).toMatchObject({ state: "cancelled", error: "cancelled by user" });
      expect(await hf.jobs.delete(waiting)).toBe("deleted");
    });

    test("the holder of a lease hears of a cancel when it renews, and its result stands", async () => {
      const { hf, store } = await fresh(target);
      const { id } = await hf.enqueue(plain, 1);
      const lease = await leaseOne(hf);
      expect((await lease.renew()).cancel).toBeNull();
      const other = await connect(store);
      expect(await other.jobs.cancel(id)).toBe("cancel_requested");
      expect((await lease.renew()).cancel).toBe("cancelled by user");
      await lease.done("all the same");
      expect(await hf.jobs.get(id)).toMatchObject({ state: "done", output: "all the same" });
    });

    test("runNow makes a scheduled job due", async () => {
      const { hf } = await fresh(target);
      const id = await jobIn(hf, "scheduled");
      expect(await hf.jobs.runNow(id)).toBe("due");
      expect(await hf.jobs.get(id)).toMatchObject({ state: "ready" });
      expect(await hf.jobs.runNow(id)).toBe("not_scheduled");
    });

    test("[D16] of several dead jobs with one key only the newest comes back, and none beside an active one", async () => {
      const { hf } = await fresh(target);
      const dead: string[] = [];
      for (let n = 0; n < 3; n++) dead.push(await jobIn(hf, "dead", { key: "k" }));
      expect(await hf.jobs.retry({ state: "dead" })).toEqual({
        matched: 3,
        retried: 1,
        superseded: 2,
        not_ended: 0,
        not_found: 0,
      });
      const states = await Promise.all(dead.map(async (id) => (await hf.jobs.get(id))?.state));
      expect(states).toEqual(["dead", "dead", "ready"]);
      expect(await hf.jobs.get(dead[2] ?? "")).toMatchObject({ attempt: 0 });
      expect(await hf.jobs.retry(dead[0] ?? "")).toBe("superseded");
      expect(await hf.jobs.retry(dead[2] ?? "")).toBe("not_ended");
    });

    test("[D16] also over more jobs than one batch holds", async () => {
      const { hf } = await fresh(target);
      const oldest = await jobIn(hf, "dead", { key: "k" });
      await hf.enqueueMany(Array.from({ length: 600 }, (_, n) => ({ job: plain, input: n })));
      for (const lease of await hf.lease({ limit: 600, for: "10m" })) void lease.dead("no").catch(() => {});
      const newest = await jobIn(hf, "dead", { key: "k" });
      await expect.poll(() => hf.jobs.count({ state: "dead" })).toBe(602);
      expect(await hf.jobs.retry({ name: "plain" })).toMatchObject({
        matched: 602,
        retried: 601,
        superseded: 1,
      });
      expect(await hf.jobs.get(oldest)).toMatchObject({ state: "dead" });
      expect(await hf.jobs.get(newest)).toMatchObject({ state: "ready" });
    });

    test("[I2] bulk actions go in batches and count what became of all", async () => {
      const { hf } = await fresh(target);
      await hf.enqueueMany(
        Array.from({ length: 1_200 }, (_, n) => ({ job: plain, input: n, delay: n % 2 === 0 ? "1h" : 0 })),
      );
      const keep = await hf.enqueue(plain, 1, { queue: "keep" });
      expect(await hf.jobs.runNow({ queue: "default" })).toEqual({
        matched: 600,
        due: 600,
        not_scheduled: 0,
        not_found: 0,
      });
      expect(await hf.jobs.cancel({ queue: "default" })).toMatchObject({ matched: 1_200, cancelled: 1_200 });
      expect(await hf.jobs.delete({ state: "cancelled" })).toMatchObject({ matched: 1_200, deleted: 1_200 });
      expect((await hf.jobs.list()).jobs.map(({ id }) => id)).toEqual([keep.id]);
    });

    test("why explains every reason that there is so far", async () => {
      const clock = new FakeClock();
      const { hf } = await fresh(target, { clock });
      const reason = async (id: string): Promise<string> => {
        const why = await hf.jobs.why(id);
        expect(why.text).toMatch(/\S/);
        return why.reason;
      };
      expect(await reason(unknownId)).toBe("not-found");
      for (const state of ["done", "dead", "cancelled"])
        expect(await reason(await jobIn(hf, state))).toBe(state);
      const future = await jobIn(hf, "scheduled");
      expect(await hf.jobs.why(future)).toMatchObject({
        reason: "future",
        until: new Date(clock.now() + 3_600_000),
      });
      const running = await jobIn(hf, "running");
      expect(await hf.jobs.why(running)).toMatchObject({
        reason: "running",
        workerId: matching(/^lease-/),
      });
      const failing = await hf.enqueue(plain, 1);
      await (await leaseOne(hf)).fail(new Error("boom"));
      expect(await hf.jobs.why(failing.id)).toMatchObject({
        reason: "retry-wait",
        text: containing("boom"),
      });
      const ready = await jobIn(hf, "ready");
      expect(await reason(ready)).toBe("unserved");
      await hf.holds.set("stop", { reason: "session expired" });
      expect(await hf.jobs.why(ready)).toMatchObject({
        reason: "hold",
        holds: ["stop"],
        text: containing("session expired"),
      });
      await hf.queues.pause("default");
      expect(await reason(ready)).toBe("paused");
      await hf.queues.resume("default");
      await hf.holds.clear("stop");
      expect(await reason(ready)).toBe("unserved");
    });
  });
});
