// What `authorize` is told an action is about, on every route that changes something; and that somebody who may act in one
// queue alone has no way to change anything of another.
import { describe, expect, onTestFinished, test } from "vitest";
import type { Operation, Permission } from "../../src/dashboard/api/contract.ts";
import type { Authorize, Resource } from "../../src/dashboard/index.ts";
import { routes } from "../../src/dashboard/routes/table.ts";
import { defineJob, type Holdfast } from "../../src/index.ts";
import { onEveryStore } from "../support/stores.ts";
import { changes, routeOf, world } from "./every-route.ts";
import { type Api, api, code, over } from "./support.ts";

const header = { "x-holdfast": "1" };
const plain = defineJob({ name: "plain", run: async (_input: unknown) => {} });

/** What a route is about, written down once more: the type, the id, the queues, the kind. */
type Told = readonly [
  type: Resource["type"],
  id: string | null,
  queues: readonly (string | null)[],
  name?: string,
];

function toldOf(id: string, ids: Readonly<Record<string, string>>, body: unknown, path: string): Told {
  const job = (which: string, queue: string, name = "plain"): Told => ["job", ids[which]!, [queue], name];
  const jobs: Readonly<Record<string, Told>> = {
    enqueue: ["job", null, ["spare"], "plain"],
    retryJob: job("declined", "dying"),
    editJob: job("edited", "spare"),
    pauseJob: job("ready", "spare"),
    resumeJob: job("ready", "spare"),
    runJobNow: job("scheduled", "spare"),
    cancelJob: job("spare", "spare"),
    terminateJob: job("waiting", "workflows", "fulfil-order"),
    deleteJob: job("gone", "spare"),
    forkJob: job("done", "workflows", "fulfil-order"),
    // Nobody waits for it.
    signal: ["signal", "packed", [null]],
  };
  const known = jobs[id];
  if (known !== undefined) return known;
  if (id === "bulk") {
    const byIds = (body as { filter: { ids?: string[] } }).filter.ids !== undefined;
    return byIds ? ["jobs", null, ["spare"], "plain"] : ["jobs", null, ["slow"]];
  }
  const last = decodeURIComponent(path.split("/").at(-1) ?? "");
  const middle = decodeURIComponent(path.split("/").at(-2) ?? "");
  const named = routeOf(id).path.endsWith(":name") ? last : middle;
  if (id.endsWith("Operation")) return ["operation", middle, ["slow"]];
  if (id.endsWith("Error")) return ["error", id === "noteError" ? last : middle, ["bank"], "ask-bank"];
  if (/Queue(TemporaryLimit)?$/.test(id)) return ["queue", "spare", ["spare"]];
  if (id.endsWith("Worker")) return ["worker", middle, ["workflows", "bank"]];
  if (id.endsWith("Schedule")) return ["schedule", "sweep", ["mail"], "weekly-digest"];
  if (id.endsWith("Hold")) return ["hold", "other", [null]];
  if (/Lane/.test(id)) return ["lane", "globex", ["tenants"]];
  if (/Budget/.test(id)) return ["budget", named, [null]];
  if (id === "resetBreaker") return ["breaker", "queue:bank", ["bank"]];
  return ["audit", middle, [null]];
}

onEveryStore((target) => {
  describe("what authorize is told", () => {
    test("every change names what it is about: its queue and its kind, where it has one", async () => {
      const { hf } = await api(target, {}, { jobLog: true });
      const there = await world(hf);
      let asked: [permission: Permission, resource: Resource, path: string][] = [];
      const { get, send } = over(hf, {
        auth: () => ({ name: "ann" }),
        authorize: (_user, permission, resource, request) => {
          asked.push([permission, resource, new URL(request.url).pathname]);
          return true;
        },
      });
      const bodies = new Map<string, unknown>();
      const seen = new Set<string>();
      const spy: Api["send"] = (method, path, body, headers) => {
        asked = [];
        bodies.set("last", body);
        return send(method, path, body, headers);
      };
      await changes(there, { get, send: spy }, ({ id }, { status }) => {
        expect(status, id).toBeLessThan(300);
        seen.add(id);
        const route = routeOf(id);
        const path = asked[0]![2];
        const [type, which, queues, name = null] = toldOf(id, there.ids, bodies.get("last"), path);
        const own = asked.filter(([permission]) => permission === route.permission);
        const told = own.map(([, one]) => one);
        expect(new Set(told.map((one) => one.type)), id).toEqual(new Set([type]));
        expect(new Set(told.map((one) => one.id)), id).toEqual(new Set([which]));
        expect(new Set(told.map((one) => one.queue)), id).toEqual(new Set(queues));
        expect(new Set(told.map((one) => one.name)), id).toEqual(new Set([name]));
        // What it needs besides is asked of the same.
        if (id === "bulk" || id.endsWith("Operation"))
          for (const [, one] of asked) expect(one.queue, id).toBe(queues[0]);
      });
      const writes = routes.filter(({ write }) => write === true).map(({ id }) => id);
      expect([...seen].sort()).toEqual(writes.sort());
    }, 60_000);

    test("a list is about the queues that it names, and about all where it names none; the page is asked for by itself", async () => {
      const { hf } = await api(target);
      const { id } = await hf.enqueue(plain, { order: 1 }, { queue: "a" });
      const { id: other } = await hf.enqueue(plain, { order: 2 }, { queue: "b" });
      const { get, send } = over(hf, {
        authorize: (_user, _permission, { type, queue }) => type === "page" || queue === "a",
      });
      const status = async (path: string): Promise<number> => (await get(path)).status;
      for (const path of [
        "/jobs",
        "/jobs/count",
        "/jobs/facets",
        "/runs",
        "/errors",
        "/series",
        "/lanes",
        "/latency",
      ]) {
        expect([path, await status(`${path}?queue=a`)]).toEqual([path, 200]);
        expect([path, await status(`${path}?queue=b`)]).toEqual([path, 403]);
        expect([path, await status(`${path}?queue=a&queue=b`)]).toEqual([path, 403]);
        expect([path, await status(path)]).toEqual([path, 403]);
      }
      expect(await status(`/jobs?ids=${id}`)).toBe(200);
      for (const path of [`/jobs?ids=${other}`, `/jobs?ids=${id},${other}`, `/jobs?ids=${other}&queue=a`])
        expect([path, await status(path)]).toEqual([path, 403]);
      expect([await status(`/jobs/${id}`), await status(`/jobs/${other}`)]).toEqual([200, 403]);
      expect([await status("/queues/a"), await status("/queues/b")]).toEqual([200, 403]);
      for (const path of ["/queues", "/overview", "/stream", "/workers", "/metrics"])
        expect(await status(path), path).toBe(403);
      expect((await get<{ permissions: Permission[] }>("/me")).body.permissions).toContain("jobs:retry");
      const dry = await send("POST", "/jobs/bulk", {
        action: "cancel",
        filter: { queue: ["a"] },
        dryRun: true,
      });
      expect(dry.status).toBe(200);
    });

    test("payloads are shown by the same rule: in lists of one's own queue, and not in those of all", async () => {
      const { hf } = await api(target);
      await hf.enqueue(plain, { order: 1 }, { queue: "a" });
      const { get } = over(hf, {
        authorize: (_user, permission, { queue }) => permission !== "view:payload" || queue === "a",
      });
      const inputs = async (path: string): Promise<(string | null)[]> =>
        (await get<{ jobs: { preview: string | null }[] }>(path)).body.jobs.map(({ preview }) => preview);
      expect(await inputs("/jobs?queue=a")).toEqual(['{"order":1}']);
      expect(await inputs("/jobs")).toEqual([null]);
    });
  });

  describe("somebody who may act in queue a alone", () => {
    const onlyA: Authorize = (_user, permission, { type, queue }) =>
      type === "page" || permission === "view" || permission === "audit:view" || queue === "a";

    async function site(): Promise<{
      hf: Holdfast;
      admin: Pick<Api, "get" | "send">;
      eve: Pick<Api, "get" | "send">;
      jobs: Readonly<Record<"a" | "b", Readonly<Record<"ready" | "later" | "dead" | "waiting", string>>>>;
    }> {
      const { hf } = await api(target);
      const workflow = defineJob({
        name: "workflow",
        run: async (key: string, ctx) => {
          await ctx.step("first", async () => 1);
          await ctx.waitFor("packed", { key });
        },
      });
      const worker = hf.work([workflow], { queues: { "a-workflows": 1, a: 2, b: 2 } });
      onTestFinished(() => worker.stop());
      const fill = async (queue: "a" | "b") => {
        const made = await hf.enqueueMany([
          { job: plain, input: 1, queue },
          { job: plain, input: 2, queue, delay: "1h" },
          { job: "dying", input: 3, queue },
          { job: workflow, input: queue, queue },
        ]);
        for (const lease of await hf.lease({ queues: [queue], names: ["dying"], limit: 1, for: "1m" }))
          await lease.dead("no use");
        const [ready, later, dead, waiting] = made.map(({ id }) => id) as [string, string, string, string];
        while ((await hf.jobs.get(waiting))?.waitsFor !== "signal")
          await new Promise((resolve) => setTimeout(resolve, 5));
        return { ready, later, dead, waiting };
      };
      const jobs = { a: await fill("a"), b: await fill("b") };
      const takesOver = defineJob({
        name: "takes-over",
        queue: "a",
        unique: { key: () => "k", onConflict: "replace" },
        run: async (_input: unknown) => {},
      });
      const inB = defineJob({ name: "in-b", queue: "b", run: async (_input: unknown) => {} });
      return {
        hf,
        jobs,
        admin: over(hf, { auth: () => ({ name: "ann" }) }),
        eve: over(hf, { auth: () => ({ name: "eve" }), authorize: onlyA, jobs: [takesOver, inB] }),
      };
    }

    test("cannot change a job of queue b by its id, by a list of ids, by a filter, by moving it, or by a signal", async () => {
      const { hf, jobs, eve } = await site();
      const { a, b } = jobs;
      const before = await hf.jobs.list({ queue: "b", limit: 20 });
      const attacks: readonly (readonly [method: string, path: string, body?: unknown])[] = [
        ["POST", `/jobs/${b.dead}/retry`],
        ["POST", `/jobs/${b.dead.toUpperCase()}/retry`],
        ["POST", `/jobs/${b.later}/run-now`],
        ["POST", `/jobs/${b.ready}/pause`],
        ["POST", `/jobs/${b.ready}/resume`],
        ["POST", `/jobs/${b.waiting}/terminate`],
        ["POST", `/jobs/${b.ready}/cancel`],
        ["DELETE", `/jobs/${b.ready}`],
        ["PATCH", `/jobs/${b.ready}`, { priority: 3 }],
        ["PATCH", `/jobs/${b.ready}`, { queue: "a" }],
        ["PATCH", `/jobs/${a.ready}`, { queue: "b" }],
        ["POST", `/jobs/${b.dead}/fork`, { from: "first" }],
        ["POST", "/jobs", { name: "plain", queue: "b" }],
        ["POST", "/jobs", { name: "in-b" }],
        // Its key may be that of a job in any queue.
        ["POST", "/jobs", { name: "takes-over" }],
        ["POST", "/signals", { name: "packed", key: "b" }],
        ["POST", "/signals", { name: "packed", key: "nobody waits" }],
        ...[
          { ids: [b.ready] },
          { ids: [a.ready, b.ready] },
          { ids: [b.ready.toUpperCase()] },
          { ids: [b.ready], queue: ["a"] },
          { queue: ["b"] },
          { queue: ["a", "b"] },
          { queue: [] },
          { state: ["ready"] },
          { name: ["plain"] },
          { workflow: b.waiting },
          { key: "k" },
        ].flatMap((filter) =>
          [true, false].map(
            (dryRun) => ["POST", "/jobs/bulk", { action: "cancel", filter, dryRun }] as const,
          ),
        ),
        ["POST", "/jobs/bulk", { action: "edit", filter: { ids: [a.ready] }, change: { queue: "b" } }],
        ["POST", "/jobs/bulk", { action: "edit", filter: { queue: ["a"] }, change: { queue: "b" } }],
        ["POST", "/jobs/bulk", { action: "edit", filter: { ids: [b.ready] }, change: { queue: "a" } }],
      ];
      for (const [method, path, body] of attacks) {
        const answer = await eve.send(method, path, body, header);
        expect([method, path, body, answer.status]).toEqual([method, path, body, 403]);
        expect(code(answer)).toBe("FORBIDDEN");
      }
      expect(await hf.jobs.list({ queue: "b", limit: 20 })).toEqual(before);
      expect((await hf.jobs.get(a.ready))?.queue).toBe("a");

      // The same in one's own queue is done.
      expect((await eve.send("POST", `/jobs/${a.dead}/retry`, undefined, header)).status).toBe(200);
      expect((await eve.send("PATCH", `/jobs/${a.ready}`, { priority: 3 }, header)).status).toBe(200);
      expect((await eve.send("POST", "/jobs", { name: "plain", queue: "a" }, header)).status).toBe(200);
      expect((await eve.send("POST", "/signals", { name: "packed", key: "a" }, header)).status).toBe(200);
      const bulk = { action: "cancel", filter: { ids: [a.ready] } };
      expect((await eve.send<Operation>("POST", "/jobs/bulk", bulk, header)).body.outcomes).toEqual({
        cancelled: 1,
      });
    });

    test("cannot steer what others do to queue b, nor change the queue, its lanes, holds, schedules or workers", async () => {
      const { hf, admin, eve } = await site();
      await hf.schedules.put({ name: "sweep", every: "1h", job: plain, input: 1, queue: "b" });
      await hf.schedules.put({ name: "own", every: "1h", job: plain, input: 1, queue: "a" });
      const task = { action: "run-now", filter: { queue: ["b"] }, rate: { limit: 1, per: "1h" } };
      const { id: operation } = (await admin.send<Operation>("POST", "/jobs/bulk", task, header)).body;
      await admin.send("POST", `/operations/${operation}/pause`, undefined, header);
      const moving = {
        action: "edit",
        filter: { queue: ["a"] },
        change: { queue: "b" },
        rate: { limit: 1, per: "1h" },
      };
      const { id: mover } = (await admin.send<Operation>("POST", "/jobs/bulk", moving, header)).body;
      await admin.send("POST", `/operations/${mover}/pause`, undefined, header);
      const done: readonly (readonly [string, string, unknown])[] = [
        ["POST", "/queues/b/pause", undefined],
        ["PATCH", "/queues/b", { concurrency: 3 }],
        ["PATCH", "/lanes/b/acme", { concurrency: 2 }],
        ["PUT", "/holds/h", { queues: ["b"] }],
        ["PUT", "/holds/all", {}],
        ["POST", "/schedules/sweep/pause", undefined],
        ["PATCH", "/queues/b", { weight: 3, for: "1h" }],
      ];
      for (const [method, path, body] of done)
        expect([path, (await admin.send(method, path, body, header)).status]).toEqual([path, 200]);
      const { workers } = (await admin.get<{ workers: { id: string }[] }>("/workers")).body;
      const trail = async (): Promise<number> =>
        (await admin.get<{ entries: { id: number }[] }>("/audit?limit=1")).body.entries[0]!.id;
      const last = await trail();
      const attacks: readonly (readonly [method: string, path: string, body?: unknown])[] = [
        ...["pause", "resume", "stop"].flatMap((verb) => [
          ["POST", `/operations/${operation}/${verb}`] as const,
          ["POST", `/operations/${mover}/${verb}`] as const,
        ]),
        ["POST", "/queues/b/pause"],
        ["POST", "/queues/b/drain"],
        ["POST", "/queues/b/resume"],
        ["PATCH", "/queues/b", { concurrency: 1 }],
        ["DELETE", "/temporary-limits/queue/b"],
        ["PATCH", "/lanes/b/acme", { concurrency: 1 }],
        ["DELETE", "/temporary-limits/lane/b/acme"],
        ["PUT", "/holds/new", { queues: ["b"] }],
        ["PUT", "/holds/new", { queues: ["a", "b"] }],
        ["PUT", "/holds/new", {}],
        // To set it over a is to clear it over b.
        ["PUT", "/holds/h", { queues: ["a"] }],
        ["PUT", "/holds/all", { queues: ["a"] }],
        ["DELETE", "/holds/h"],
        ["DELETE", "/holds/all"],
        ["POST", "/schedules/sweep/trigger"],
        ["POST", "/schedules/sweep/backfill", { from: 0 }],
        ["POST", "/schedules/sweep/resume"],
        ["PATCH", "/schedules/sweep", { every: "2h" }],
        ["DELETE", "/schedules/sweep"],
        ["PUT", "/budgets/slack", { limit: 1, per: "1s" }],
        ["POST", "/breakers/queue:b/reset"],
        ["POST", "/breakers/kind:plain/reset"],
        // It serves both.
        ["POST", `/workers/${workers[0]!.id}/stop`],
        ["POST", `/workers/${workers[0]!.id}/quiet`],
      ];
      for (const [method, path, body] of attacks) {
        const answer = await eve.send(method, path, body, header);
        expect([method, path, answer.status]).toEqual([method, path, 403]);
        expect(code(answer)).toBe("FORBIDDEN");
      }
      expect(await trail()).toBe(last);

      expect((await eve.send("POST", "/queues/a/pause", undefined, header)).status).toBe(200);
      expect((await eve.send("POST", "/queues/a/resume", undefined, header)).status).toBe(200);
      expect((await eve.send("PUT", "/holds/mine", { queues: ["a"] }, header)).status).toBe(200);
      expect((await eve.send("DELETE", "/holds/mine", undefined, header)).status).toBe(200);
      expect((await eve.send("POST", "/schedules/own/trigger", undefined, header)).status).toBe(200);
    });
  });
});
