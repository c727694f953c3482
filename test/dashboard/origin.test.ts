// Where a job comes from, as a filter: the run that called or enqueued it, the trace that it was enqueued in.
import { describe, expect, test } from "vitest";
import type { DryRun, JobCount, JobFacets, JobList, Operation } from "../../src/dashboard/api/contract.ts";
import { defineJob, type Holdfast } from "../../src/index.ts";
import { on } from "../cli/support.ts";
import { refusal } from "../support/test-clients.ts";
import { onEveryStore } from "../support/stores.ts";
import { api, over } from "./support.ts";

const part = defineJob({ name: "part", queue: "parts", run: async (_input: { n: number }) => {} });
const later = defineJob({ name: "later", run: async (_input: { n: number }) => {} });
const whole = defineJob({
  name: "whole",
  run: async ({ parts }: { parts: number }, ctx) => {
    for (let n = 0; n < parts; n += 1) await ctx.enqueue(part, { n });
    await ctx.enqueue(later, { n: 0 }, { delay: "1h", lane: "slow" });
  },
});

/** A run whose parts are done, and one job of its own that is due in an hour. */
async function ran(hf: Holdfast, parts: number): Promise<string> {
  const run = await hf.enqueue(whole, { parts });
  const worker = hf.work([whole, part], { queues: ["default", "parts"] });
  await worker.ready;
  await worker.idle();
  await worker.stop();
  return run.id;
}

const trace = "4bf92f3577b34da6a3ce929d0e0e4736";
const parent = `00-${trace}-00f067aa0ba902b7-01`;

async function traced(hf: Holdfast, traceparent: string | null, count: number): Promise<string[]> {
  hf.use({
    enqueue: (request, next) => {
      if (traceparent === null) delete request.carrier["traceparent"];
      else request.carrier["traceparent"] = traceparent;
      return next();
    },
  });
  const items = Array.from({ length: count }, (_, n) => ({ job: later, input: { n } }));
  return (await hf.enqueueMany(items)).map(({ id }) => id);
}

onEveryStore((target) => {
  describe("origin", () => {
    test("[K1] workflow: what a run called or enqueued, and neither itself nor what others did; with other filters, in pages, counted", async () => {
      const { hf, get } = await api(target);
      await hf.enqueue(later, { n: 9 }, { delay: "1h" });
      const other = await ran(hf, 1);
      const run = await ran(hf, 3);
      const list = async (query: string) => (await get<JobList>(`/jobs?${query}`)).body;
      const names = async (query: string) => (await list(query)).jobs.map(({ name }) => name);
      expect(await names(`workflow=${run}`)).toEqual(["later", "part", "part", "part"]);
      expect(await names(`workflow=${run.toUpperCase()}&state=done`)).toEqual(["part", "part", "part"]);
      expect(await names(`workflow=${run}&queue=default`)).toEqual(["later"]);
      expect(await names(`workflow=${run}&lane=slow`)).toEqual(["later"]);
      expect(await names(`workflow=${run}&payload=n:1`)).toEqual(["part"]);
      expect(await names(`workflow=${run}&attempt=1`)).toEqual(["part", "part", "part"]);
      expect(await names(`workflow=${run}&ended=0..9007199254740991`)).toHaveLength(3);
      expect(await names(`workflow=${run}&retrying=true`)).toEqual([]);
      expect(await names(`workflow=${run}&error=refused`)).toEqual([]);
      expect(await names(`workflow=${other}`)).toEqual(["later", "part"]);
      expect(await names("workflow=019b76da-0000-7000-8000-000000000000")).toEqual([]);

      const first = await list(`workflow=${run}&limit=3`);
      expect(first.jobs).toHaveLength(3);
      const rest = await list(`workflow=${run}&limit=3&cursor=${first.cursor}`);
      expect([rest.jobs.length, rest.cursor, rest.cut]).toEqual([1, null, false]);
      expect(new Set([...first.jobs, ...rest.jobs].map(({ id }) => id)).size).toBe(4);

      expect((await get<JobCount>(`/jobs/count?workflow=${run}`)).body).toMatchObject({
        total: { count: 4, more: false },
        states: { done: { count: 3, more: false }, scheduled: { count: 1, more: false } },
      });
      const facets = (await get<JobFacets>(`/jobs/facets?workflow=${run}`)).body;
      expect(facets.names.map(({ value, count }) => [value, count])).toEqual([
        ["part", 3],
        ["later", 1],
      ]);
      const { headers } = await get(`/jobs?workflow=${run}`);
      expect(headers.get("content-type")).toContain("json");
    });

    test("[K1] what failed of a run and will be tried again is found as such", async () => {
      const { hf, get } = await api(target);
      const failing = defineJob({
        name: "failing",
        retry: { attempts: 3, backoff: () => 3_600_000 },
        run: () => {
          throw new Error("connection refused");
        },
      });
      const starts = defineJob({
        name: "starts",
        run: async (_input: null, ctx) => void (await ctx.enqueue(failing, null)),
      });
      const run = await hf.enqueue(starts, null);
      const worker = hf.work([starts, failing], { queues: ["default"] });
      await worker.ready;
      await worker.idle();
      await worker.stop();
      for (const query of ["retrying=true", "error=refused", "attempt=1", "worker=nobody"]) {
        const { body } = await get<JobList>(`/jobs?workflow=${run.id}&${query}`);
        expect([query, body.jobs.length]).toEqual([query, query === "worker=nobody" ? 0 : 1]);
      }
    });

    test("[K1] trace: what was enqueued in it, by its id or a traceparent; nothing that only speaks of it", async () => {
      const { hf, get } = await api(target);
      await traced(hf, `00-${"ab".repeat(16)}-00f067aa0ba902b7-01`, 2);
      const ids = await traced(hf, parent, 3);
      await traced(hf, null, 1);
      await hf.enqueue(later, { n: 0, note: `"traceparent":"${parent}"` } as { n: number });
      await hf.enqueue(later, { n: 0 }, { context: `"traceparent":"${parent}"` });
      for (const given of [trace, trace.toUpperCase(), parent]) {
        const { body } = await get<JobList>(`/jobs?trace=${given}`);
        expect(body.jobs.map(({ id }) => id)).toEqual([...ids].reverse());
      }
      expect((await get<JobCount>(`/jobs/count?trace=${trace}`)).body.total).toEqual({
        count: 3,
        more: false,
      });
      const facets = (await get<JobFacets>(`/jobs/facets?trace=${trace}`)).body;
      expect(facets.states).toMatchObject([{ value: "ready", count: 3 }]);
      expect((await hf.jobs.list({ trace: parent })).jobs.map(({ id }) => id)).toEqual([...ids].reverse());
      expect(await hf.jobs.count({ trace, state: "ready" })).toBe(3);
    });

    test("[K1] in the client: lists, pages, counts and bulk actions", async () => {
      const { hf } = await api(target);
      await ran(hf, 1);
      const run = await ran(hf, 3);
      const first = await hf.jobs.list({ workflow: run, limit: 3 });
      const rest = await hf.jobs.list({ workflow: run, limit: 3, cursor: first.cursor });
      expect([...first.jobs, ...rest.jobs].map(({ name }) => name)).toEqual([
        "later",
        "part",
        "part",
        "part",
      ]);
      expect([first.jobs, rest.jobs].flat().every(({ parentId }) => parentId === run)).toBe(true);
      expect(rest.cursor).toBeNull();
      expect(await hf.jobs.count({ workflow: run, name: "part" })).toBe(3);
      expect(await hf.jobs.cancel({ workflow: run })).toMatchObject({ matched: 1, cancelled: 1 });
      expect(await hf.jobs.retry({ workflow: run, state: "done" })).toMatchObject({ matched: 3, retried: 3 });
      expect(await hf.jobs.delete({ workflow: run })).toMatchObject({ matched: 4, deleted: 4 });
      expect(await hf.jobs.count({ workflow: run })).toBe(0);
      expect(await hf.jobs.count({ name: "part" })).toBe(1);
      for (const wrong of [{ workflow: "no" }, { workflow: 7 }, { trace: "4bf9" }, { trace: `${trace}00` }])
        expect(await refusal(hf.jobs.count(wrong as { trace: string }))).toMatchObject({
          code: "BAD_OPTION",
          details: { option: Object.keys(wrong)[0] },
        });
    });

    test("[K1] in bulk actions, exports and the terminal", async () => {
      const { hf, get, send, handler, store } = await api(target);
      await hf.enqueue(later, { n: 9 }, { delay: "1h" });
      const run = await ran(hf, 2);
      const ids = await traced(hf, parent, 2);
      const filter = { workflow: run };
      const { body: dry } = await send<DryRun>("POST", "/jobs/bulk", {
        action: "cancel",
        filter,
        dryRun: true,
      });
      expect(dry).toMatchObject({ matched: { count: 1 }, bounded: filter });
      const { body } = await send<Operation>("POST", "/jobs/bulk", { action: "cancel", filter: dry.bounded });
      expect(body).toMatchObject({ outcomes: { cancelled: 1 }, filter });
      const exported = await handler(
        new Request(`http://localhost/api/v1/jobs/export?format=ndjson&trace=${trace}`, {
          headers: { authorization: "Bearer a-token-that-is-long-enough" },
        }),
      );
      const lines = (await exported.text()).trim().split("\n");
      expect(lines.map((line) => (JSON.parse(line) as { id: string }).id).sort()).toEqual([...ids].sort());

      const holdfast = on(store);
      const count = async (...options: string[]): Promise<number> =>
        (await holdfast(["jobs", "list", "--count", "--json", ...options])).json<{ count: number }>().count;
      expect(await count("--workflow", run)).toBe(3);
      expect(await count("--workflow", run, "--state", "done")).toBe(2);
      expect(await count("--where", `workflow:${run} state:cancelled`)).toBe(1);
      expect(await count("--where", `workflow:${run} attempt:1`)).toBe(2);
      expect(await count("--trace", parent)).toBe(2);
      expect(await count("--where", `trace:${trace}`)).toBe(2);
      for (const wrong of [
        ["--workflow", "no"],
        ["--trace", "no"],
        ["--where", "trace:no"],
        ["--where", "workflow:no attempt:1"],
        ["--trace", trace, "--where", `trace:${trace}`],
      ])
        expect((await holdfast(["jobs", "list", ...wrong])).code, wrong.join(" ")).toBe(2);
      const gone = await holdfast(["jobs", "delete", "--trace", trace, "--force", "--json"]);
      expect(gone.json()).toEqual({ matched: 2, deleted: 2 });

      for (const wrong of ["workflow=no", "workflow=", "trace=no", `trace=${trace}0`, "trace=%25"]) {
        const answer = await get<{ error: { field: string } }>(`/jobs?${wrong}`);
        expect([answer.status, answer.body.error.field], wrong).toEqual([400, wrong.split("=")[0]]);
      }
      const viewer = over(hf, { auth: () => ({ name: "eve", role: "viewer" }) });
      expect((await viewer.get(`/jobs?workflow=${run}&trace=${trace}`)).status).toBe(200);
    });
  });
});
