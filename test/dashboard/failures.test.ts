// Failures from other sides than their cause, and dead jobs that come back with another input.
import { describe, expect, test } from "vitest";
import { Dead, defineJob, type Holdfast } from "../../src/index.ts";
import type { DryRun, FailuresBy, Operation } from "../../src/dashboard/api/contract.ts";
import { on } from "../cli/support.ts";
import { refusal } from "../support/test-clients.ts";
import { onEveryStore } from "../support/stores.ts";
import { api, over } from "./support.ts";
import { operatorOf } from "../../src/operate/operator.ts";

type Input = { n: number; plan?: string; token?: string };
const charge = defineJob({
  name: "charge",
  queue: "billing",
  run: ({ plan }: Input) => {
    if (plan !== "pro") throw new Dead("no such plan");
  },
});

async function dead(hf: Holdfast, count: number): Promise<string> {
  await hf.enqueueMany(
    Array.from({ length: count }, (_, n) => ({
      job: charge,
      input: { n, plan: "old", token: `secret-${n}` },
    })),
  );
  const worker = hf.work([charge], { queues: ["billing"] });
  await worker.ready;
  await worker.idle();
  await worker.stop();
  const [group] = await hf.errors.list();
  return group!.group;
}

onEveryStore((target) => {
  describe("changed input", () => {
    test("[K1] a dry run shows inputs before and after, redacted; then all come back with theirs patched, at once", async () => {
      const { hf, send } = await api(target);
      const failureGroup = await dead(hf, 7);
      const body = {
        action: "retry",
        filter: { state: ["dead"], failureGroup },
        patch: { plan: "pro", token: null },
      };
      const { body: dry } = await send<DryRun>("POST", "/jobs/bulk", { ...body, dryRun: true });
      expect(dry.patched).toHaveLength(5);
      const [first] = dry.patched!;
      expect(JSON.parse(first!.before)).toMatchObject({
        plan: "old",
        token: expect.not.stringContaining("secret") as string,
      });
      expect(JSON.parse(first!.after!)).toEqual({ n: 6, plan: "pro" });
      expect((await hf.jobs.list({ state: "dead" })).jobs[0]?.input).toMatchObject({ plan: "old" });
      const { body: done } = await send<Operation>("POST", "/jobs/bulk", { ...body, filter: dry.bounded });
      expect(done).toMatchObject({ state: "done", outcomes: { retried: 7 }, refused: 0, patched: true });
      expect(JSON.parse(done.patch!)).toEqual({ plan: "pro", token: null });
      const { jobs } = await hf.jobs.list({ state: "ready" });
      expect(jobs.map(({ input }) => input)).toEqual([6, 5, 4, 3, 2, 1, 0].map((n) => ({ n, plan: "pro" })));
      const worker = hf.work([charge], { queues: ["billing"] });
      await worker.idle();
      expect(await hf.jobs.count({ state: "done" })).toBe(7);
      await worker.stop();
    });

    test("[K1] jobs that the patch does not fit stay dead, and are counted; it needs the right to edit and to see", async () => {
      const { hf, send, store } = await api(target);
      await dead(hf, 3);
      const [one] = (await hf.jobs.list({ state: "dead" })).jobs;
      const patch = [
        { op: "test", path: "/n", value: 2 },
        { op: "replace", path: "/plan", value: "pro" },
      ] as const;
      expect(await hf.jobs.retry({ state: "dead" }, { patch })).toEqual({
        matched: 3,
        retried: 1,
        superseded: 0,
        not_ended: 0,
        not_found: 0,
        patch_failed: 2,
      });
      expect(await hf.jobs.get(one!.id)).toMatchObject({ state: "ready", input: { n: 2, plan: "pro" } });
      expect(await hf.jobs.retry(one!.id, { patch: { n: 9 } })).toBe("not_ended");
      expect((await hf.jobs.get<Input>(one!.id))?.input.n).toBe(2);
      expect((await refusal(hf.jobs.retry(one!.id, { patch: {} }))).code).toBe("BAD_OPTION");
      const filter = { state: ["dead"] };
      for (const wrong of [{ patch: "x" }, { patch: {} }, { patch: [{ op: "add", path: "x", value: 1 }] }])
        expect((await send("POST", "/jobs/bulk", { action: "retry", filter, ...wrong })).status).toBe(400);
      expect(
        (await send("POST", "/jobs/bulk", { action: "cancel", filter: { name: "x" }, patch: { a: 1 } }))
          .status,
      ).toBe(400);
      for (const permissions of [
        ["view", "jobs:retry", "view:payload"],
        ["view", "jobs:retry", "jobs:edit"],
      ] as const) {
        const eve = over(hf, { auth: () => ({ name: "eve", permissions }) });
        const body = { action: "retry", filter, patch: { plan: "pro" }, dryRun: true };
        expect((await eve.send("POST", "/jobs/bulk", body, { "x-holdfast": "1" })).status).toBe(403);
      }
      const holdfast = on(store);
      const retry = ["jobs", "retry", "--state", "dead", "--patch", '{"plan":"pro"}', "--json"];
      expect((await holdfast([...retry, "--dry-run"])).json()).toMatchObject({
        matched: 2,
        patched: [{ after: '{"n":1,"plan":"pro","token":"secret-1"}' }, {}],
      });
      expect((await holdfast([...retry, "--force"])).json()).toEqual({ matched: 2, retried: 2 });
      expect((await holdfast(["jobs", "retry", one!.id, "--patch", "{plan}"])).code).toBe(2);
      // What was patched is told to who may see payloads alone.
      const viewer = over(hf, { auth: () => ({ name: "v", permissions: ["view"] }) });
      const { operations } = (await viewer.get<{ operations: Operation[] }>("/operations")).body;
      expect(operations).toMatchObject([{ patched: true, patch: null }]);
    });
  });

  describe("from other sides", () => {
    test("[K1] failures by kind, queue, worker, version and hour, since an instant; the same in the terminal", async () => {
      const { hf, get, store } = await api(target);
      const hour = 3_600_000;
      const now = Math.floor(Date.now() / hour) * hour;
      const rows = [
        { group: "a".repeat(16), at: now, queue: "mail", version: 2, worker: "web-1", n: 5 },
        { group: "a".repeat(16), at: now, queue: "slow", version: 2, worker: "web-2", n: 1 },
        { group: "b".repeat(16), at: now - 3 * hour, queue: "mail", version: 2, worker: "", n: 3 },
        { group: "c".repeat(16), at: now - 40 * hour, queue: "old", version: 1, worker: "", n: 9 },
      ];
      await operatorOf(hf).store.failures.put(
        rows
          .map(({ group, at }, i) => ({
            group,
            name: ["send-mail", "send-mail", "charge", "charge"][i]!,
            sample: "0199c1d8-7c00-7000-8000-000000000000",
            message: '"x"',
            firstAt: at,
            lastAt: at,
          }))
          .filter((_, i) => i !== 1),
        rows,
      );
      const by = async (side: string, since?: number): Promise<unknown[]> => {
        const query = since === undefined ? "" : `&since=${since}`;
        const { status, body } = await get<FailuresBy>(`/failures?by=${side}${query}`);
        expect([status, body.cut]).toEqual([200, false]);
        return body.lines.map(({ value, name, failures, groups }) => [
          name === null ? value : `${name} ${value}`,
          failures,
          groups,
        ]);
      };
      expect(await by("name")).toEqual([
        ["send-mail", 6, 1],
        ["charge", 3, 1],
      ]);
      expect(await by("queue")).toEqual([
        ["mail", 8, 2],
        ["slow", 1, 1],
      ]);
      expect(await by("worker")).toEqual([
        ["web-1", 5, 1],
        ["web-2", 1, 1],
      ]);
      expect(await by("version")).toEqual([
        ["send-mail 2", 6, 1],
        ["charge 2", 3, 1],
      ]);
      expect(await by("hour")).toEqual([
        [String(now), 6, 1],
        [String(now - 3 * hour), 3, 1],
      ]);
      expect(await by("queue", now - 50 * hour)).toEqual([
        ["old", 9, 1],
        ["mail", 8, 2],
        ["slow", 1, 1],
      ]);
      for (const query of ["", "?by=colour", "?by=queue&since=x"])
        expect((await get(`/failures${query}`)).status, query).toBe(400);
      expect(await hf.errors.counts({ by: "queue", since: now })).toMatchObject([
        { value: "mail", failures: 5, lastAt: new Date(now) },
        { value: "slow", failures: 1 },
      ]);
      const holdfast = on(store);
      expect((await holdfast(["errors", "--by", "queue", "--json"])).json()).toMatchObject([
        { value: "mail" },
        {},
      ]);
      expect((await holdfast(["errors", "list", "--by", "version"])).out).toMatch(/send-mail 2 +6 +1/);
      expect((await holdfast(["errors", "list", "--by", "colour"])).code).toBe(2);
    });
  });
});
