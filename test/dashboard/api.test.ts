// The HTTP API: what it gives, what it does and how it refuses. That its description is true: described.test.ts.
import { describe, expect, test } from "vitest";
import { defineJob, type Holdfast } from "../../src/index.ts";
import type {
  AuditLine,
  DryRun,
  FailureGroups,
  JobCount,
  JobDetail,
  JobList,
  Operation,
  Overview,
  QueueDetail,
  QueueLine,
  WorkerLine,
} from "../../src/dashboard/api/contract.ts";
import { openapi, schemas } from "../../src/dashboard/api/openapi.ts";
import { routes } from "../../src/dashboard/routes/table.ts";
import { onEveryStore } from "../support/stores.ts";
import { api, code } from "./support.ts";

const mail = defineJob({ name: "mail", queue: "mail", run: async (_input: unknown) => {} });
const plain = defineJob({ name: "plain", run: async (_input: unknown) => {} });
const unknownId = "0199c1d8-7c00-7000-8000-000000000000";

async function die(hf: Holdfast, reason = "no use"): Promise<string> {
  const [lease] = await hf.lease({ limit: 1, for: "10m" });
  await lease!.dead(reason);
  return lease!.id;
}

onEveryStore((target) => {
  describe("the API", () => {
    test("[K2] lists jobs with filters, in pages, and counts what the filters match", async () => {
      const { hf, get } = await api(target);
      const ids = (
        await hf.enqueueMany(
          Array.from({ length: 1_000 }, (_, n) => ({
            job: n % 2 === 0 ? mail : plain,
            input: { note: `item-${n}` },
          })),
        )
      ).map(({ id }) => id);
      let page = await get<JobList>("/jobs?limit=100");
      for (let n = 2; n <= 3; n += 1) page = await get<JobList>(`/jobs?limit=100&cursor=${page.body.cursor}`);
      expect(page.body.jobs.map(({ id }) => id)).toEqual([...ids].reverse().slice(200, 300));
      expect(page.body.jobs[0]?.preview).toBe('{"note":"item-799"}');

      const count = async (query: string): Promise<JobCount> =>
        (await get<JobCount>(`/jobs/count?${query}`)).body;
      expect((await count("")).total).toEqual({ count: 1_000, more: false });
      expect((await count("queue=mail")).total.count).toBe(500);
      expect((await count("queue=mail&state=dead,done")).total.count).toBe(0);
      expect((await count("search=item-99")).total.count).toBe(11);
      expect((await count(`ids=${ids[0]},${ids[1]},${unknownId}`)).total.count).toBe(2);
      const found = await get<JobList>("/jobs?name=plain&search=ITEM-99&limit=3");
      expect(found.body.jobs.map(({ preview }) => preview)).toEqual(
        ["item-999", "item-997", "item-995"].map((note) => JSON.stringify({ note })),
      );
    });

    test("a total beyond 10,000 says that there is more", async () => {
      const { hf, get } = await api(target);
      await hf.enqueueMany(Array.from({ length: 10_001 }, (_, n) => ({ job: plain, input: n })));
      expect((await get<JobCount>("/jobs/count")).body.total).toEqual({ count: 10_000, more: true });
      expect((await get<JobCount>("/jobs/count?state=ready&queue=default")).body.total).toEqual({
        count: 10_000,
        more: true,
      });
    }, 60_000);

    test("a job is told whole, with exact numbers and why it is where it is", async () => {
      const { hf, get, store } = await api(target);
      const { id } = await hf.enqueue(plain, { n: 1 }, { delay: "1h", context: "why", lane: "ann" });
      await store.query(
        `update ${store.table("job")} set input = '{"n":12345678901234567890.10}' where id = '${id}'`,
      );
      const job = (await get<JobDetail>(`/jobs/${id}`)).body;
      expect(job).toMatchObject({
        id,
        state: "scheduled",
        context: "why",
        lane: "ann",
        why: { reason: "future" },
      });
      expect(job.input).toContain("12345678901234567890.10");
      expect(code(await get(`/jobs/${unknownId}`))).toBe("NOT_FOUND");
      expect((await get("/jobs/nonsense")).status).toBe(404);
    });

    test("one job: retry, run now, cancel, delete; a wrong state is 409 with its own code", async () => {
      const { hf, send } = await api(target);
      const dead = (await hf.enqueue(plain, 1)).id;
      await die(hf);
      expect((await send("POST", `/jobs/${dead}/retry`)).body).toEqual({ outcome: "retried" });
      expect(code(await send("POST", `/jobs/${dead}/retry`))).toBe("NOT_ENDED");
      expect((await send("POST", `/jobs/${dead}/cancel`)).body).toEqual({ outcome: "cancelled" });
      const late = (await hf.enqueue(plain, 2, { delay: "1h" })).id;
      expect((await send("POST", `/jobs/${late}/run-now`)).body).toEqual({ outcome: "due" });
      const twice = await send("POST", `/jobs/${late}/run-now`);
      expect([twice.status, code(twice)]).toEqual([409, "NOT_SCHEDULED"]);
      expect((await send("DELETE", `/jobs/${late}`)).body).toEqual({ outcome: "deleted" });
      expect((await send("DELETE", `/jobs/${late}`)).status).toBe(404);
    });

    test("a retry beside a job that has its key now is 409 SUPERSEDED", async () => {
      const { hf, send } = await api(target);
      const first = (await hf.enqueue(plain, 1, { key: "k" })).id;
      await die(hf);
      await hf.enqueue(plain, 2, { key: "k" });
      const answer = await send("POST", `/jobs/${first}/retry`);
      expect([answer.status, code(answer)]).toEqual([409, "SUPERSEDED"]);
    });

    test("a bulk action's dry run says how many and shows some, and changes nothing; then it acts on those alone", async () => {
      const { hf, get, send } = await api(target);
      for (let n = 0; n < 12; n += 1) {
        await hf.enqueue(n < 8 ? mail : plain, { n });
        await die(hf, n % 2 === 0 ? "disk full" : `user ${n} gone`);
      }
      const groups = (await get<FailureGroups>("/errors?queue=mail")).body;
      expect(groups.groups.map(({ dead }) => dead)).toEqual([4, 4]);
      const failureGroup = groups.groups.find(({ message }) => message === "disk full")!.group;
      const filter = { state: ["dead"], queue: ["mail"], failureGroup };
      const dry = (await send<DryRun>("POST", "/jobs/bulk", { action: "retry", filter, dryRun: true })).body;
      expect(dry).toMatchObject({ dryRun: true, matched: { count: 4, more: false }, filter });
      expect(dry.samples).toHaveLength(4);
      expect((await get<JobCount>("/jobs/count?state=dead")).body.total.count).toBe(12);

      await hf.enqueue(mail, "later");
      await die(hf, "disk full");
      const done = await send<Operation>("POST", "/jobs/bulk", { action: "retry", filter: dry.bounded });
      expect(done.body).toMatchObject({ state: "done", matched: 4, outcomes: { retried: 4 } });
      expect((await get<JobCount>("/jobs/count?state=dead")).body.total.count).toBe(9);
      expect((await get<Operation>(`/operations/${done.body.id}`)).body.state).toBe("done");
    });

    test("ids beside other parts of a filter narrow it: a list, a count, a dry run and a bulk action see no other job", async () => {
      const { hf, get, send } = await api(target);
      const given = [
        { job: "plain", input: { user: "ann" }, queue: "mail" },
        { job: "plain", input: { user: "bob" }, queue: "mail" },
        { job: "other", input: { user: "ann" }, queue: "other", delay: "1h" },
      ];
      const ids = (await hf.enqueueMany(given)).map(({ id }) => id);
      const listed = async (more: string) =>
        (await get<JobList>(`/jobs?ids=${ids.join(",")}&${more}`)).body.jobs.map(({ id }) => ids.indexOf(id));
      expect(await listed("queue=mail")).toEqual([1, 0]);
      expect(await listed("queue=mail&payload=user:ann")).toEqual([0]);
      expect(await listed("state=scheduled")).toEqual([2]);
      expect(await listed("name=other&state=ready")).toEqual([]);
      expect(await listed("retrying=true")).toEqual([]);
      expect(await listed("search=BOB")).toEqual([1]);
      const filter = { ids, queue: ["mail"], search: "ann" };
      const count = await get<JobCount>(`/jobs/count?ids=${ids.join(",")}&queue=mail`);
      expect(count.body.total).toEqual({ count: 2, more: false });
      const dry = await send<DryRun>("POST", "/jobs/bulk", { action: "cancel", filter, dryRun: true });
      expect(dry.body.matched).toEqual({ count: 1, more: false });
      const done = await send<Operation>("POST", "/jobs/bulk", { action: "cancel", filter });
      expect([done.body.matched, done.body.outcomes]).toEqual([1, { cancelled: 1 }]);
      const states = await Promise.all(ids.map(async (id) => (await hf.jobs.get(id))?.state));
      expect(states).toEqual(["cancelled", "ready", "scheduled"]);
    });

    test("bulk actions of thousands: cancel, run now, delete, by filter", async () => {
      const { hf, get, send } = await api(target);
      await hf.enqueueMany(
        Array.from({ length: 1_300 }, (_, n) => ({ job: mail, input: n, delay: "1h" as const })),
      );
      await hf.enqueueMany(
        Array.from({ length: 7 }, (_, n) => ({ job: plain, input: n, delay: "1h" as const })),
      );
      const run = async (action: string, filter: object): Promise<Operation> => {
        let { body } = await send<Operation>("POST", "/jobs/bulk", { action, filter });
        while (body.state === "running") ({ body } = await get<Operation>(`/operations/${body.id}`));
        return body;
      };
      expect(await run("run-now", { queue: "mail" })).toMatchObject({ outcomes: { due: 1_300 } });
      expect(await run("cancel", { queue: "mail" })).toMatchObject({ outcomes: { cancelled: 1_300 } });
      expect(await run("delete", { queue: "mail", state: "cancelled" })).toMatchObject({
        outcomes: { deleted: 1_300 },
      });
      expect((await get<JobCount>("/jobs/count")).body.total.count).toBe(7);
    });

    test("an empty filter, an unknown field and a wrong action are refused", async () => {
      const { send, get } = await api(target);
      for (const body of [
        { action: "delete", filter: {} },
        { action: "delete" },
        { action: "explode", filter: { state: "dead" } },
        { action: "delete", filter: { stat: "dead" } },
        { action: "cancel", filter: { state: ["done"] } },
        { action: "delete", filter: { state: ["nonsense"] } },
        { action: "delete", filter: { queue: 7 } },
        { action: "retry", filter: { state: "dead" }, extra: 1 },
      ])
        expect((await send("POST", "/jobs/bulk", body)).status, JSON.stringify(body)).toBe(400);
      for (const query of [
        "?stat=dead",
        "?state=nope",
        "?limit=0",
        "?limit=1e9",
        "?limit=9999",
        "?cursor=x",
        "?since=yesterday",
        "?order=up",
        "?queue=a%20b",
        "?failureGroup=zz",
        "?order=due",
      ])
        expect((await get(`/jobs${query}`)).status, query).toBe(400);
    });

    test("enqueues by name, and refuses what enqueue refuses with its code", async () => {
      const { send, get } = await api(target);
      const made = await send<{ id: string }>("POST", "/jobs", {
        name: "plain",
        input: { a: 1 },
        priority: 3,
        delay: "1h",
      });
      expect(made.status).toBe(200);
      expect((await get<JobDetail>(`/jobs/${made.body.id}`)).body).toMatchObject({
        priority: 3,
        state: "scheduled",
      });
      const bad = await send("POST", "/jobs", { name: "a b", input: 1 });
      expect([bad.status, code(bad)]).toEqual([400, "BAD_NAME"]);
      expect((await send("POST", "/jobs", { name: "plain", priority: "high" })).status).toBe(400);
    });

    test("[K1] queues, holds, workers, database and audit are shown and changed", async () => {
      const { hf, get, send } = await api(target);
      await hf.enqueue(mail, 1);
      expect((await send("POST", "/queues/mail/pause")).status).toBe(200);
      expect((await send("PATCH", "/queues/mail", { slots: 5, retention: { done: "1d" } })).status).toBe(200);
      expect((await send("PATCH", "/queues/mail", { slots: -1 })).status).toBe(400);
      expect((await send("PUT", "/holds/expired", { queues: ["mail"], reason: "log in" })).status).toBe(200);
      const queue = (await get<QueueDetail>("/queues/mail")).body;
      expect(queue).toMatchObject({
        holds: ["expired"],
        settings: { slots: 5 },
        ready: { count: 1 },
        unserved: ["mail"],
      });
      expect(queue.pausedAt).not.toBeNull();
      expect(queue.obstacles).toHaveLength(3);
      expect((await get<{ queues: QueueLine[] }>("/queues")).body.queues.map(({ name }) => name)).toEqual([
        "mail",
      ]);
      expect((await get("/queues/nowhere")).status).toBe(404);
      expect((await send("DELETE", "/holds/expired")).status).toBe(200);
      expect((await send("DELETE", "/holds/expired")).status).toBe(404);
      expect((await send("POST", "/queues/mail/resume")).status).toBe(200);
      expect((await send("POST", "/queues/mail/drain")).status).toBe(200);
      const draining = (await get<QueueDetail>("/queues/mail")).body;
      expect([draining.pausedAt, draining.obstacles.length]).toEqual([null, 1]);
      expect(draining.drainingAt).not.toBeNull();
      expect(code(await send("POST", "/queues/a%20b/drain"))).toBe("BAD_NAME");
      expect((await send("POST", "/queues/mail/resume")).status).toBe(200);

      const worker = hf.work([mail], { queues: { mail: 3 }, name: "w" });
      await worker.ready;
      const listed = (await get<{ workers: { id: string; slots: number }[] }>("/workers")).body.workers;
      expect(listed).toMatchObject([{ name: "w", kind: "worker", slots: 3 }]);
      const id = encodeURIComponent(listed[0]!.id);
      for (const verb of ["quiet", "resume", "stop"])
        for (const which of ["all", "w"])
          expect((await send("POST", `/workers/${which}/${verb}`)).status).toBe(404);
      expect((await send("POST", `/workers/${id}/quiet`)).status).toBe(200);
      const quiet = (await get<{ workers: WorkerLine[] }>("/workers")).body.workers[0]!;
      expect(quiet.quietAt).toBeTypeOf("number");
      const hushed = (await get<QueueDetail>("/queues/mail")).body;
      expect(hushed).toMatchObject({ workers: 0, slots: 0, quiet: 1, workersHere: [{ quiet: true }] });
      expect(hushed.standstill).toMatchObject([{ reason: "workers-quiet", text: hushed.obstacles[0] }]);
      expect((await get<Overview>("/overview")).body).toMatchObject({ workers: 1, quiet: 1, slots: 0 });
      expect((await send("POST", `/workers/${id}/resume`)).status).toBe(200);
      expect((await send("POST", `/workers/${encodeURIComponent(listed[0]!.id)}/stop`)).status).toBe(200);
      await worker.stopped;

      expect((await get<{ dialect: string }>("/database")).body.dialect).toBe(target.dialect);
      const trail = (await get<{ entries: AuditLine[] }>("/audit")).body.entries;
      expect(trail.map(({ action }) => action)).toEqual([
        "workers.stop",
        "workers.resume",
        "workers.quiet",
        "queues.resume",
        "queues.drain",
        "queues.resume",
        "holds.clear",
        "holds.set",
        "queues.set",
        "queues.pause",
      ]);
      expect(trail[0]).toMatchObject({ actor: "token", target: listed[0]!.id, outcome: "asked" });
      expect((await get<{ entries: AuditLine[]; before: number }>("/audit?limit=2")).body.before).toBe(
        trail[1]!.id,
      );
    });

    test("the overview's verdict names what is wrong", async () => {
      const { hf, get } = await api(target);
      const verdict = async (): Promise<Overview["verdict"]> =>
        (await get<Overview>("/overview")).body.verdict;
      expect((await verdict()).level).toBe("idle");
      await hf.enqueue(mail, 1);
      expect(await verdict()).toMatchObject({
        level: "bad",
        text: "No worker is running, and 1 ready job waits.",
        parts: [
          { text: "No worker", to: "/workers" },
          { text: " is running, and ", to: null },
          { text: "1 ready", to: "/jobs?state=ready" },
          { text: " job waits.", to: null },
        ],
      });
    });
  });
});

test("[K1] the OpenAPI file has every route of the table, and no other", async () => {
  const document = openapi("/x") as {
    paths: Record<string, Record<string, { operationId: string; responses: Record<string, unknown> }>>;
  };
  const described = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(
      ([method, { operationId }]) => `${method.toUpperCase()} ${path} ${operationId}`,
    ),
  );
  const table = routes.map(({ method, path, id }) => `${method} ${path.replaceAll(/:(\w+)/g, "{$1}")} ${id}`);
  expect(described.sort()).toEqual([...table].sort());
  expect(new Set(routes.map(({ id }) => id)).size).toBe(routes.length);
  for (const { method, write, permission } of routes) {
    expect(write === true).toBe(method !== "GET");
    if (write === true) expect(permission).not.toBeNull();
  }
  // Every answer is a shape that has a name.
  for (const methods of Object.values(document.paths))
    for (const { operationId, responses } of Object.values(methods))
      expect(JSON.stringify(responses["200"]), operationId).toContain("#/components/schemas/");
  const refs = [...JSON.stringify(document).matchAll(/#\/components\/schemas\/(\w+)/g)].map(
    ([, name]) => name!,
  );
  for (const name of refs) expect(schemas).toHaveProperty(name);
});
