// Taking back what was done: which entries of the audit trail say that they can be, and what it does on every store.
import { describe, expect, test } from "vitest";
import type { AuditLine, Permission } from "../../src/dashboard/api/contract.ts";
import { subjectOf, undoOf } from "../../src/operate/audit/undo.ts";
import { defineJob, type Holdfast } from "../../src/index.ts";
import { FakeClock } from "../../src/testing/index.ts";
import { onEveryStore } from "../support/stores.ts";
import { type Answer, type Api, api, code, over } from "./support.ts";
import { operatorOf } from "../../src/operate/operator.ts";

const plain = defineJob({ name: "plain", run: async (_input: unknown) => {} });
const laned = defineJob({
  name: "laned",
  queue: "mail",
  lane: (input: { tenant: string }) => input.tenant,
  lanes: { concurrency: 7 },
  run: async () => {},
});

const entry = (action: string, before: unknown, after: unknown, target: string | null = "mail") => ({
  actor: "ann",
  action,
  target,
  outcome: "x",
  details: JSON.stringify({ before, after }),
});

describe("what can be taken back", () => {
  test("is said in words, with the permission that it needs", () => {
    const words = (action: string, before: unknown, after: unknown, target = "mail") => {
      const undo = undoOf(entry(action, before, after, target));
      return undo === null ? null : `${undo.permission}: ${undo.words}`;
    };
    const [running, draining, paused] = [{ state: "running" }, { state: "draining" }, { state: "paused" }];
    expect(words("queues.pause", running, paused)).toBe("queues:pause: Resume queue mail");
    expect(words("queues.pause", draining, paused)).toBe("queues:pause: Drain queue mail");
    expect(words("queues.resume", paused, running)).toBe("queues:pause: Pause queue mail");
    expect(words("queues.drain", running, draining)).toBe("queues:pause: Resume queue mail");
    const limits = (values: unknown, untilAt: number | null = null) => ({ values, untilAt });
    expect(words("queues.set", limits({ concurrency: 5 }), limits({ concurrency: 9 }))).toBe(
      "queues:set: Set queue mail back to concurrency 5",
    );
    expect(
      words(
        "queues.set",
        limits({ rate: { limit: 10, perMs: 60_000 }, retention: null }),
        limits({ rate: null, retention: { doneMs: 1, deadMs: 2 } }),
      ),
    ).toBe("queues:set: Set queue mail back to rate 10 per 1m, retention default");
    // For a while: it goes back before its end. But not over another change for a while.
    expect(words("queues.set", limits({ slots: null }), limits({ slots: 1 }, 9))).toBe(
      "queues:set: Set queue mail back to slots default",
    );
    expect(words("queues.set", limits({ slots: 2 }, 9), limits({ slots: 1 }, 9))).toBeNull();
    expect(
      words(
        "lanes.set",
        limits({ paused: false, tuned: false }),
        limits({ paused: true, tuned: false }),
        "mail/a/b",
      ),
    ).toBe("limits:set: Resume lane a/b of queue mail");
    expect(
      words("lanes.set", limits({ paused: true, weight: 1 }), limits({ paused: false, weight: 2 }), "m/a"),
    ).toBe("limits:set: Set lane a of queue m back to weight 1, paused");
    const budget = { limit: 5, perMs: 1_500, burst: 6, tuned: true };
    expect(words("budgets.set", limits(null), limits(budget), "slack")).toBe(
      "limits:set: Remove budget slack",
    );
    expect(words("budgets.set", limits(budget), limits({ ...budget, limit: 9 }), "slack")).toBe(
      "limits:set: Set budget slack back to 5 per 1500ms, burst 6",
    );
    expect(words("budgets.set", limits({ ...budget, tuned: false }), limits(budget), "slack")).toBe(
      "limits:set: Set budget slack back to the code's numbers",
    );
    const hold = { queues: ["a", "b"], reason: "log in" };
    expect(words("holds.set", null, hold, "h")).toBe("limits:set: Clear hold h");
    expect(words("holds.clear", hold, null, "h")).toBe("limits:set: Set hold h again: a, b (log in)");
    expect(words("holds.set", { queues: null, reason: null }, hold, "h")).toBe(
      "limits:set: Set hold h back: every queue",
    );
    expect(words("workers.quiet", { state: "claiming" }, { state: "quiet" }, "w")).toBe(
      "workers:stop: Resume worker w",
    );
    expect(words("schedules.pause", { paused: false }, { paused: true }, "n")).toBe(
      "schedules:set: Resume schedule n",
    );
    expect(words("schedules.set", { edited: [] }, { edited: ["cron"] }, "n")).toBe(
      "schedules:set: Give up the edits of schedule n, for the code's words",
    );
    expect(words("schedules.set", { edited: ["jitter"] }, { edited: ["cron"] }, "n")).toBeNull();
    const decided = { state: "resolved", at: 2, untilAt: null, untilCount: null, note: null, link: null };
    expect(words("errors.resolve", null, decided, "ab")).toBe("errors:triage: Open failure ab again");
    expect(words("errors.reopen", { ...decided, state: "ignored" }, { ...decided, at: 3 }, "ab")).toBe(
      "errors:triage: Ignore failure ab again",
    );
    expect(words("errors.note", decided, { ...decided, note: "x" }, "ab")).toBe(
      "errors:triage: Set note and link of failure ab back",
    );
  });

  test("is nothing that runs, deletes or ends a job, that changed nothing, or of which too little is known", () => {
    for (const action of [
      "jobs.retry",
      "jobs.delete",
      "jobs.cancel",
      "jobs.run-now",
      "schedules.trigger",
      "schedules.remove",
      "workers.stop",
      "budgets.drain",
      "breakers.reset",
      "audit.undo",
      "constructor",
    ]) {
      expect(subjectOf(action), action).toBeNull();
      expect(undoOf(entry(action, { state: "running" }, { state: "paused" })), action).toBeNull();
    }
    const known = entry("queues.pause", { state: "running" }, { state: "paused" });
    expect(undoOf(known)).not.toBeNull();
    expect(undoOf(entry("queues.pause", { state: "paused" }, { state: "paused" }))).toBeNull();
    for (const details of [null, "{}", '{"before":{"state":"running"}}', known.details.slice(0, -3), "7"])
      expect(undoOf({ ...known, details }), String(details)).toBeNull();
    expect(undoOf({ ...known, target: null })).toBeNull();
    expect(undoOf({ ...known, target: "x".repeat(500) })).toBeNull();
  });
});

/** The newest entry. */
async function newest(get: Api["get"]): Promise<AuditLine> {
  const [line] = (await get<{ entries: AuditLine[] }>("/audit?limit=1")).body.entries;
  return line!;
}

async function died(hf: Holdfast): Promise<string> {
  await hf.enqueue(plain, null);
  const [lease] = await hf.lease({ limit: 1, for: "10m" });
  await lease!.dead("disk full");
  return (await hf.errors.list())[0]!.group;
}

onEveryStore((target) => {
  test("the answer to what can be taken back names its entry, to who may see the trail", async () => {
    const { hf, get, send } = await api(target);
    await hf.enqueue(plain, 1, { queue: "mail" });
    const paused = await send("POST", "/queues/mail/pause");
    const [line] = (await get<{ entries: AuditLine[] }>("/audit")).body.entries;
    expect(paused.headers.get("x-holdfast-audit")).toBe(String(line!.id));
    const undone = await send("POST", `/audit/${paused.headers.get("x-holdfast-audit")}/undo`);
    expect([undone.status, undone.headers.get("x-holdfast-audit")]).toEqual([200, null]);
    // Actions that run or end a job cannot be undone, nor those that changed nothing.
    const { id } = await hf.enqueue(plain, 1, { delay: "1h" });
    expect((await send("POST", `/jobs/${id}/cancel`)).headers.get("x-holdfast-audit")).toBeNull();
    expect((await send("POST", "/queues/mail/resume")).headers.get("x-holdfast-audit")).toBeNull();
    const hidden = over(hf, { auth: () => ({ name: "eve", permissions: ["view", "queues:pause"] }) });
    const answer = await hidden.send("POST", "/queues/mail/pause", undefined, { "x-holdfast": "1" });
    expect([answer.status, answer.headers.get("x-holdfast-audit")]).toEqual([200, null]);
  });

  describe("undo", () => {
    /** Does it, takes it back, and gives what stood before, after, and in the end. */
    const backAndForth =
      ({ get, send }: Api) =>
      async <T>(
        [method, path, body]: readonly [method: string, path: string, body?: object | undefined],
        words: string,
        look: () => Promise<T>,
      ): Promise<readonly [before: T, after: T, end: T]> => {
        const before = await look();
        expect((await send(method, path, body)).status, path).toBe(200);
        const after = await look();
        const line = await newest(get);
        expect([line.undo?.words, line.undoneBy], path).toEqual([words, null]);
        const answer = await send("POST", `/audit/${line.id}/undo`);
        expect([path, answer.status, answer.body]).toEqual([path, 200, { ok: true }]);
        const own = await newest(get);
        expect(own).toMatchObject({
          action: "audit.undo",
          target: String(line.id),
          outcome: "undone",
          undoes: line.id,
          undo: null,
        });
        expect(JSON.parse(own.details!)).toEqual({ action: line.action, target: line.target, did: words });
        const [, listed] = (await get<{ entries: AuditLine[] }>("/audit?limit=2")).body.entries;
        expect(listed).toMatchObject({ id: line.id, undo: null, undoneBy: own.id });
        const twice = await send("POST", `/audit/${line.id}/undo`);
        expect([twice.status, code(twice)]).toEqual([409, "CONFLICT"]);
        return [before, after, await look()];
      };

    test("[K1] a worker is resumed or made quiet again, and one that is gone is left alone", async () => {
      const on = await api(target);
      const { hf, send, get } = on;
      const undone = backAndForth(on);
      const worker = hf.work([plain], { queues: ["default"], name: "w" });
      await worker.ready;
      const path = `/workers/${encodeURIComponent(worker.id)}`;
      const look = async () => (await hf.workers.list())[0]?.quietAt !== null;
      expect(await undone(["POST", `${path}/quiet`], `Resume worker ${worker.id}`, look)).toEqual([
        false,
        true,
        false,
      ]);
      await send("POST", `${path}/quiet`);
      expect(await undone(["POST", `${path}/resume`], `Make worker ${worker.id} quiet`, look)).toEqual([
        true,
        false,
        true,
      ]);
      await send("POST", `${path}/resume`);
      const line = await newest(get);
      await worker.stop();
      const late = await send("POST", `/audit/${line.id}/undo`);
      expect([late.status, (late.body as { error: { message: string } }).error.message]).toEqual([
        409,
        `Worker ${worker.id} has been changed since: it is not there now, and this had left it claiming.`,
      ]);
    });

    test("[K1] a queue is resumed, paused or drained again", async () => {
      const on = await api(target);
      const { hf, send } = on;
      const undone = backAndForth(on);
      await hf.enqueue(plain, null, { queue: "mail" });
      const look = async () => {
        const row = (await operatorOf(hf).store.insight.queueRows()).find(({ name }) => name === "mail");
        return [row?.pausedAt !== null && row !== undefined, row?.drainingAt !== null && row !== undefined];
      };
      const [running, paused, draining] = [
        [false, false],
        [true, false],
        [false, true],
      ];
      expect(await undone(["POST", "/queues/mail/pause"], "Resume queue mail", look)).toEqual([
        running,
        paused,
        running,
      ]);
      expect(await undone(["POST", "/queues/mail/drain"], "Resume queue mail", look)).toEqual([
        running,
        draining,
        running,
      ]);
      await send("POST", "/queues/mail/drain");
      expect(await undone(["POST", "/queues/mail/pause"], "Drain queue mail", look)).toEqual([
        draining,
        paused,
        draining,
      ]);
      await send("POST", "/queues/mail/pause");
      expect(await undone(["POST", "/queues/mail/resume"], "Pause queue mail", look)).toEqual([
        paused,
        running,
        paused,
      ]);
      // Nothing was changed, and so nothing can be taken back.
      await send("POST", "/queues/mail/pause");
      expect((await newest(on.get)).undo).toBeNull();
      // A drain that has come to its end is what the drain left.
      await send("POST", "/queues/empty/resume");
      await hf.enqueue(plain, null, { queue: "short" });
      await send("POST", "/queues/short/drain");
      const drain = await newest(on.get);
      await hf.jobs.delete({ queue: "short" });
      await operatorOf(hf).store.queues.endDrains();
      expect((await send("POST", `/audit/${drain.id}/undo`)).status).toBe(200);
      expect((await operatorOf(hf).store.queues.settings(["short"])).get("short")?.paused).toBe(false);
    });

    test("[K1] settings of a queue go back to what they were: numbers, rates, nothing at all; and what was for a while ends", async () => {
      const on = await api(target);
      const { hf, send } = on;
      const undone = backAndForth(on);
      const look = async () => {
        const known = (await operatorOf(hf).store.queues.settings(["mail"])).get("mail");
        const {
          concurrency = null,
          rate = null,
          retention = null,
          backoff = null,
          breaker = null,
        } = known ?? {};
        return {
          concurrency,
          rate,
          retention,
          backoff,
          breaker,
          overrides: (await hf.overrides.list()).length,
        };
      };
      const none = {
        concurrency: null,
        rate: null,
        retention: null,
        backoff: null,
        breaker: null,
        overrides: 0,
      };
      const five = { ...none, concurrency: 5, rate: { limit: 9, perMs: 60_000 } };
      expect(
        await undone(
          ["PATCH", "/queues/mail", { concurrency: 5, rate: { limit: 9, per: "1m" } }],
          "Set queue mail back to concurrency default, rate default",
          look,
        ),
      ).toEqual([none, five, none]);
      await send("PATCH", "/queues/mail", { concurrency: 5, rate: { limit: 9, per: "1m" } });
      const other = {
        concurrency: 2,
        rate: null,
        retention: { done: "1d", dead: "2d" },
        backoff: { base: "1s", max: "1m" },
        breaker: { after: 3, cooldown: "1m" },
      };
      const [before, after, end] = await undone(
        ["PATCH", "/queues/mail", other],
        "Set queue mail back to concurrency 5, rate 9 per 1m, retention default, backoff default, breaker default",
        look,
      );
      expect([before, end]).toEqual([five, five]);
      expect(after).toMatchObject({
        concurrency: 2,
        rate: null,
        retention: { doneMs: 86_400_000 },
        breaker: { after: 3 },
      });
      expect(
        await undone(
          ["PATCH", "/queues/mail", { concurrency: 1, for: "1h" }],
          "Set queue mail back to concurrency 5",
          look,
        ),
      ).toEqual([five, { ...five, concurrency: 1, overrides: 1 }, five]);
      // A change over one that holds for a while has nothing sure to go back to.
      await send("PATCH", "/queues/mail", { concurrency: 1, for: "1h" });
      await send("PATCH", "/queues/mail", { concurrency: 3 });
      expect((await newest(on.get)).undo).toBeNull();
    });

    test("[K1] lanes: a reset and a drop are taken back to what was set by hand", async () => {
      const site = await api(target);
      const { hf, send, get } = site;
      await hf.enqueue(laned, { tenant: "a" });
      await hf.lanes.set("mail", "a", { concurrency: 2, weight: 3 });
      await hf.lanes.pause("mail", "a");
      const stands = async () => {
        const { paused, concurrency, weight, tuned } = (await hf.lanes.list({ queue: "mail", key: "a" }))
          .lanes[0]!;
        return { paused, concurrency, weight, tuned };
      };
      const before = await stands();
      const takeBack = async (): Promise<void> => {
        const [line] = (await get<{ entries: AuditLine[] }>("/audit")).body.entries;
        expect(line!.undo?.words).toBe(
          "Set lane a of queue mail back to concurrency 2, rate default, weight 3, paused",
        );
        expect((await send("POST", `/audit/${line!.id}/undo`)).status).toBe(200);
        expect(await stands()).toEqual(before);
      };
      expect((await send("POST", "/lanes/mail/a/reset")).status).toBe(200);
      expect(await stands()).toMatchObject({ paused: true, weight: 1, tuned: false });
      await takeBack();
      expect((await send("DELETE", "/lanes/mail/a")).status).toBe(200);
      expect(await stands()).toMatchObject({ paused: false, weight: 1, tuned: false });
      await takeBack();
      expect((await send("DELETE", "/lanes/mail/nobody")).status).toBe(404);
    });

    test("[K1] lanes: limits and pause; a lane that the code limits is the code's again", async () => {
      const on = await api(target);
      const { hf } = on;
      const undone = backAndForth(on);
      await hf.enqueue(laned, { tenant: "a/b" });
      const look = async () => {
        const { paused, concurrency, weight, tuned } = (await hf.lanes.list({ queue: "mail", key: "a/b" }))
          .lanes[0]!;
        return { paused, concurrency, weight, tuned };
      };
      const lane = "/lanes/mail/a%2Fb";
      const code7 = { paused: false, concurrency: 7, weight: 1, tuned: false };
      expect(await undone(["PATCH", lane, { paused: true }], "Resume lane a/b of queue mail", look)).toEqual([
        code7,
        { ...code7, paused: true },
        code7,
      ]);
      expect(
        await undone(
          ["PATCH", lane, { concurrency: 2, weight: 3, paused: true }],
          "Set lane a/b of queue mail back to concurrency 7, weight 1, not paused",
          look,
        ),
      ).toEqual([code7, { paused: true, concurrency: 2, weight: 3, tuned: true }, code7]);
      await hf.lanes.set("mail", "a/b", { concurrency: 4 });
      await hf.lanes.pause("mail", "a/b");
      const four = { ...code7, concurrency: 4, paused: true, tuned: true };
      expect(await undone(["PATCH", lane, { paused: false }], "Pause lane a/b of queue mail", look)).toEqual([
        four,
        { ...four, paused: false },
        four,
      ]);
      expect(
        await undone(
          ["PATCH", lane, { concurrency: null, for: "1h" }],
          "Set lane a/b of queue mail back to concurrency 4",
          look,
        ),
      ).toEqual([four, { ...four, concurrency: null }, four]);
      expect(await hf.overrides.list()).toEqual([]);
    });

    test("[K1] budgets: a new one goes, numbers by hand go back to those before or to the code's", async () => {
      const on = await api(target);
      const { hf } = on;
      const undone = backAndForth(on);
      const look = async () => {
        const found = (await hf.budgets.list()).find(({ name }) => name === "slack");
        return found === undefined ? null : [found.limit, found.per, found.burst, found.tuned];
      };
      const five = ["PUT", "/budgets/slack", { limit: 5, per: "1m" }] as const;
      expect(await undone(five, "Remove budget slack", look)).toEqual([null, [5, 60_000, 5, true], null]);
      await hf.budgets.set("slack", { limit: 50, per: "1m", default: true });
      const standard = [50, 60_000, 50, false];
      expect(await undone(five, "Set budget slack back to the code's numbers", look)).toEqual([
        standard,
        [5, 60_000, 5, true],
        standard,
      ]);
      await hf.budgets.set("slack", { limit: 8, per: "1s", burst: 9 });
      const eight = [8, 1_000, 9, true];
      expect(await undone(five, "Set budget slack back to 8 per 1s, burst 9", look)).toEqual([
        eight,
        [5, 60_000, 5, true],
        eight,
      ]);
      expect(
        await undone(["POST", "/budgets/slack/reset"], "Set budget slack back to 8 per 1s, burst 9", look),
      ).toEqual([eight, standard, eight]);
    });

    test("[K1] holds: cleared, set anew with queues and reason, set back", async () => {
      const on = await api(target);
      const { hf } = on;
      const undone = backAndForth(on);
      const look = async () =>
        (await hf.holds.list()).map(({ name, queues, reason }) => [name, queues, reason]);
      const set = (body: object) => ["PUT", "/holds/login", body] as const;
      const one = ["login", ["a", "b"], "log in"];
      expect(await undone(set({ queues: ["a", "b"], reason: "log in" }), "Clear hold login", look)).toEqual([
        [],
        [one],
        [],
      ]);
      await hf.holds.set("login", { queues: ["a", "b"], reason: "log in" });
      expect(await undone(["DELETE", "/holds/login"], "Set hold login again: a, b (log in)", look)).toEqual([
        [one],
        [],
        [one],
      ]);
      expect(await undone(set({}), "Set hold login back: a, b (log in)", look)).toEqual([
        [one],
        [["login", null, null]],
        [one],
      ]);
      await hf.holds.set("login");
      expect(await undone(["DELETE", "/holds/login"], "Set hold login again: every queue", look)).toEqual([
        [["login", null, null]],
        [],
        [["login", null, null]],
      ]);
    });

    test("[K1] schedules: paused and resumed; edits given up where there were none before", async () => {
      const on = await api(target);
      const { hf } = on;
      const undone = backAndForth(on);
      await hf.schedules.put({ name: "nightly", cron: "0 2 * * *", job: plain, input: null });
      const look = async () => {
        const known = (await hf.schedules.get("nightly"))!;
        return [known.paused, known.cron, known.edited];
      };
      const [plainly, stopped] = [
        [false, "0 2 * * *", []],
        [true, "0 2 * * *", []],
      ];
      expect(await undone(["POST", "/schedules/nightly/pause"], "Resume schedule nightly", look)).toEqual([
        plainly,
        stopped,
        plainly,
      ]);
      await hf.schedules.pause("nightly");
      expect(await undone(["POST", "/schedules/nightly/resume"], "Pause schedule nightly", look)).toEqual([
        stopped,
        plainly,
        stopped,
      ]);
      await hf.schedules.resume("nightly");
      expect(
        await undone(
          ["PATCH", "/schedules/nightly", { cron: "0 4 * * *" }],
          "Give up the edits of schedule nightly, for the code's words",
          look,
        ),
      ).toEqual([plainly, [false, "0 4 * * *", ["cron"]], plainly]);
    });

    test("[K1] decisions about failures: open, resolved, ignored until then, with their notes", async () => {
      const clock = new FakeClock();
      const on = await api(target, { auth: () => ({ name: "ann", role: "admin" }) }, { clock });
      const { hf, send: bare } = on;
      const send: Api["send"] = (method, path, body) => bare(method, path, body, { "x-holdfast": "1" });
      const undone = backAndForth({ ...on, send });
      const group = await died(hf);
      await clock.advance(1_000);
      const look = async () => {
        const found = (await hf.errors.get(group))!;
        return [found.state, found.note, found.link, found.untilCount, found.untilAt === null];
      };
      const open = ["open", null, null, null, true];
      const resolved = ["resolved", "mended", "https://example.org/7", null, true];
      const mended = { note: "mended", link: "https://example.org/7" };
      const at = (verb: string, body?: object) => ["POST", `/errors/${group}/${verb}`, body] as const;
      expect(await undone(at("resolve", mended), `Open failure ${group} again`, look)).toEqual([
        open,
        resolved,
        open,
      ]);
      await clock.advance(1_000);
      await hf.errors.resolve(group, mended);
      await clock.advance(1_000);
      const ignored = ["ignored", "mended", "https://example.org/7", 10, false];
      expect(
        await undone(at("ignore", { count: 10, for: "1h" }), `Resolve failure ${group} again`, look),
      ).toEqual([resolved, ignored, resolved]);
      await clock.advance(1_000);
      await hf.errors.ignore(group, { count: 10, for: "1h" });
      await clock.advance(1_000);
      expect(await undone(at("reopen", { note: "again" }), `Ignore failure ${group} again`, look)).toEqual([
        ignored,
        ["open", "again", "https://example.org/7", null, true],
        ignored,
      ]);
      expect((await hf.errors.get(group))?.decidedBy).toBe("ann");
      expect(
        await undone(
          ["PATCH", `/errors/${group}`, { note: "else", link: null }],
          `Set note and link of failure ${group} back`,
          look,
        ),
      ).toEqual([ignored, ["ignored", "else", null, 10, false], ignored]);
    });

    test("[K1] what has been changed since is left alone, and it is said how it stands", async () => {
      const { hf, get, send } = await api(target);
      await hf.schedules.put({ name: "nightly", cron: "0 2 * * *", job: plain, input: null });
      const group = await died(hf);
      const told = async (
        act: readonly [method: string, path: string, body?: object | undefined],
        meanwhile: () => Promise<unknown>,
        message: RegExp,
      ): Promise<void> => {
        expect((await send(...act)).status).toBe(200);
        const { id } = await newest(get);
        await meanwhile();
        const answer = await send<{ error: { message: string } }>("POST", `/audit/${id}/undo`);
        expect([answer.status, code(answer)], act[1]).toEqual([409, "CONFLICT"]);
        expect(answer.body.error.message).toMatch(message);
        expect((await newest(get)).id).toBe(id);
      };
      await told(
        ["POST", "/queues/mail/pause"],
        () => hf.queues.resume("mail"),
        /^Queue mail has been changed since: it is running now, and this had left it paused\.$/,
      );
      await told(
        ["PATCH", "/queues/mail", { concurrency: 5 }],
        () => hf.queues.set("mail", { concurrency: 6 }),
        /it is concurrency 6 now, and this had left it concurrency 5/,
      );
      await told(
        ["PATCH", "/queues/mail", { concurrency: 5 }],
        () => hf.queues.set("mail", { concurrency: 5 }, { for: "1h" }),
        /until \d{4}-/,
      );
      await told(
        ["PATCH", "/queues/slow", { slots: 5, for: "1h" }],
        () => hf.overrides.end({ kind: "queue", name: "slow" }),
        /slots default now/,
      );
      await told(
        ["PATCH", "/lanes/mail/a", { paused: true }],
        () => hf.lanes.resume("mail", "a"),
        /^Lane a of queue mail has been changed since: it is not paused now/,
      );
      await told(
        ["PUT", "/budgets/slack", { limit: 5, per: "1m" }],
        () => hf.budgets.remove("slack"),
        /not there now/,
      );
      await told(
        ["PUT", "/holds/h", { reason: "r" }],
        () => hf.holds.set("h", { queues: ["x"] }),
        /it is over x now, and this had left it over every queue \(r\)/,
      );
      await told(
        ["DELETE", "/holds/h"],
        () => hf.holds.set("h"),
        /it is over every queue now, and this had left it not there/,
      );
      await told(
        ["POST", "/schedules/nightly/pause"],
        () => hf.schedules.remove("nightly"),
        /it is not there now/,
      );
      await told(
        ["POST", `/errors/${group}/resolve`],
        () => hf.errors.set(group, { note: "no" }),
        /^The failure [0-9a-f]{16} has been changed since/,
      );
      expect(await hf.holds.list()).toHaveLength(1);
    });

    test("[K1] it needs the right to do what it does; nothing else can be undone; a read-only dashboard undoes nothing", async () => {
      const { hf, get, send } = await api(target);
      await send("POST", "/queues/mail/pause");
      const pause = await newest(get);
      const header = { "x-holdfast": "1" };
      const as = (permissions: readonly Permission[]) =>
        over(hf, { auth: () => ({ name: "eve", permissions }) });
      const refusal = async (of: Pick<Api, "send">): Promise<unknown[]> => {
        const answer: Answer = await of.send("POST", `/audit/${pause.id}/undo`, undefined, header);
        return [answer.status, code(answer)];
      };
      expect(await refusal(over(hf, { auth: () => ({ name: "eve", role: "viewer" }) }))).toEqual([
        403,
        "FORBIDDEN",
      ]);
      // Who may pause but not read the trail, and who may read it but not pause.
      expect(await refusal(as(["view", "queues:pause"]))).toEqual([403, "FORBIDDEN"]);
      expect(await refusal(as(["view", "audit:view", "limits:set", "queues:set"]))).toEqual([
        403,
        "FORBIDDEN",
      ]);
      expect(await refusal(over(hf, { readOnly: true, auth: () => "ann" }))).toEqual([403, "READ_ONLY"]);
      const asked: string[] = [];
      const strict = over(hf, {
        auth: () => "ann",
        authorize: (_user, permission) => {
          asked.push(permission);
          return permission !== "queues:pause";
        },
      });
      expect(await refusal(strict)).toEqual([403, "FORBIDDEN"]);
      expect(asked).toEqual(["audit:view", "queues:pause"]);
      expect((await operatorOf(hf).store.queues.settings(["mail"])).get("mail")?.paused).toBe(true);
      expect(
        (await as(["audit:view", "queues:pause"]).send("POST", `/audit/${pause.id}/undo`, undefined, header))
          .status,
      ).toBe(200);
      const undo = await newest(get);
      expect(undo).toMatchObject({ actor: "eve", action: "audit.undo", undo: null });

      const { body } = await send<{ id: string }>("POST", "/jobs", { name: "plain", input: null });
      await send("POST", `/jobs/${body.id}/cancel`);
      for (const id of [undo.id, (await newest(get)).id]) {
        const answer = await send<{ error: { message: string } }>("POST", `/audit/${id}/undo`);
        expect([answer.status, answer.body.error.message]).toEqual([
          409,
          expect.stringMatching(/cannot be undone/),
        ]);
      }
      for (const id of ["0", "999999", "x", "-1", "1.5", "99999999999999999999"])
        expect([id, (await send("POST", `/audit/${id}/undo`)).status]).toEqual([id, 404]);
    });

    test("[K1] two at once undo once", async () => {
      const { hf, get, send } = await api(target);
      await send("PATCH", "/queues/mail", { concurrency: 5 });
      const { id } = await newest(get);
      const answers = await Promise.all([1, 2, 3].map(() => send("POST", `/audit/${id}/undo`)));
      expect(answers.map(({ status }) => status).sort((a, b) => a - b)).toEqual([200, 409, 409]);
      const { entries } = (await get<{ entries: AuditLine[] }>("/audit")).body;
      expect(entries.filter(({ action }) => action === "audit.undo")).toHaveLength(1);
      expect((await operatorOf(hf).store.queues.settings(["mail"])).get("mail")?.concurrency).toBeNull();
    });
  });
});
