// Filters by words: attempts, ages, running times, workers, errors, values in the input; in lists, counts, bulk actions and the CLI.
import { describe, expect, test } from "vitest";
import { defineJob, type Holdfast } from "../../src/index.ts";
import type { DryRun, JobCount, JobList, Operation } from "../../src/dashboard/api/contract.ts";
import { FakeClock } from "../../src/testing/index.ts";
import { on } from "../cli/support.ts";
import { advancing } from "../support/test-clients.ts";
import { onEveryStore } from "../support/stores.ts";
import { api, code, over } from "./support.ts";

const flaky = defineJob({
  name: "flaky",
  queue: "mail",
  retry: { attempts: 5, backoff: () => 1_000 },
  run: ({ n }: { n: number; user?: unknown }) => {
    throw new Error(n % 2 === 0 ? "connection refused" : 'mailbox "x" is FULL');
  },
});

async function page(get: (path: string) => Promise<{ status: number; body: unknown }>, query: string) {
  const { status, body } = await get(`/jobs?${query}`);
  expect(status, query).toBe(200);
  return (body as JobList).jobs;
}

/** The numbers of the jobs that match. */
async function found(hf: Holdfast, jobs: readonly { id: string }[]): Promise<number[]> {
  const all = await Promise.all(jobs.map(({ id }) => hf.jobs.get<{ n: number }>(id)));
  return all.map((job) => job!.input.n).sort((a, b) => a - b);
}

onEveryStore((target) => {
  describe("words", () => {
    test("[K1] values in the input, by path: texts, numbers, truth, null, places in lists, keys that are numbers", async () => {
      const { hf, get } = await api(target);
      const inputs: object[] = [
        { n: 0, user: { id: 42, plan: "pro" }, ok: true, tags: ["a", "b"] },
        { n: 1, user: { id: "42", plan: "free plan" }, ok: false, tags: ["b"] },
        { n: 2, user: { id: 420 }, ok: null, tags: { 0: "a" } },
        { n: 3, user: null, text: 'a "quoted", {braced} text\u0000 with NUL \ud800' },
        { n: 4, user: [{ id: 42 }], "a-b": 1.5 },
      ];
      await hf.enqueueMany(
        inputs.map((input) => ({ job: flaky, input: input as { n: number }, delay: "1h" })),
      );
      const by = async (...payload: string[]): Promise<number[]> =>
        found(hf, await page(get, payload.map((one) => `payload=${encodeURIComponent(one)}`).join("&")));
      expect(await by("user.id:42")).toEqual([0, 1]);
      expect(await by("user.id:42", "user.plan:pro")).toEqual([0]);
      expect(await by("user.plan:free plan")).toEqual([1]);
      expect(await by("ok:true")).toEqual([0]);
      expect(await by("ok:null")).toEqual([2]);
      expect(await by("user:null")).toEqual(target.dialect === "sqlite" ? [3] : []); // Postgres reads no NUL in JSON
      expect(await by("tags.0:a")).toEqual([0, 2]);
      expect(await by("user.0.id:42")).toEqual([4]);
      expect(await by("a-b:1.5")).toEqual([4]);
      expect(await by("nothing.here:1")).toEqual([]);
      expect((await get<JobCount>("/jobs/count?payload=user.id:42")).body.total).toEqual({
        count: 2,
        more: false,
      });
    });

    test("[K1] attempts, errors, workers, running times, ages; each with the others, and with a state", async () => {
      const clock = new FakeClock();
      const { hf, get, store } = await api(target, {}, { clock });
      await hf.enqueueMany(Array.from({ length: 6 }, (_, n) => ({ job: flaky, input: { n } })));
      const worker = hf.work([flaky], { queues: ["mail"], name: "web-1" });
      await advancing(clock, worker.ready);
      const failed = async (): Promise<boolean> =>
        (await hf.jobs.list({})).jobs.every(({ attempt }) => attempt >= 2);
      while (!(await failed())) await advancing(clock, clock.advance(500));
      await advancing(clock, worker.stop());
      await clock.advance("10m");
      await hf.enqueueMany([
        { job: flaky, input: { n: 6 } },
        { job: flaky, input: { n: 7 }, queue: "slow" },
      ]);
      const [lease] = await hf.lease({ queues: ["slow"], limit: 1, for: "1h" });
      await clock.advance("2m");

      const all = async (query: string): Promise<number[]> => found(hf, await page(get, query));
      expect(await all("attempt=>1")).toEqual([0, 1, 2, 3, 4, 5]);
      expect(await all("attempt=0")).toEqual([6]);
      expect(await all("attempt=<=1")).toEqual([6, 7]);
      expect(await all("error=refused")).toEqual([0, 2, 4]);
      expect(await all("error=full&attempt=>=2")).toEqual([1, 3, 5]);
      expect(await all("age=>5m")).toEqual([0, 1, 2, 3, 4, 5]);
      expect(await all("age=<5m")).toEqual([6, 7]);
      expect(await all("age=1m..5m&state=running")).toEqual([7]);
      expect(await all("run=>1m")).toEqual([7]);
      expect(await all("run=<1m&state=running")).toEqual([]);
      await lease!.done();
      expect(await all("run=>1m&state=done")).toEqual([7]);
      expect(await all(`ended=${clock.now() - 1}..${clock.now() + 1}`)).toEqual([7]);
      expect(await all(`ended=${clock.now() + 1}..${clock.now() + 9}`)).toEqual([]);
      expect((await get<JobCount>("/jobs/count?error=refused")).body.states).toMatchObject({
        ready: { count: 3 },
      });

      const holdfast = on(store);
      const cli = async (where: string): Promise<number> =>
        (await holdfast(["jobs", "list", "--count", "--json", "--where", where])).json<{ count: number }>()
          .count;
      expect(await cli("error:refused attempt:>1")).toBe(3);
      expect(await cli("payload.n:6")).toBe(1);
      expect(await cli("state:done name:flaky run:>1m")).toBe(1);
      for (const wrong of ["attempt:many", "wat:1", "age:old", "attempt:1 attempt:2"])
        expect((await holdfast(["jobs", "list", "--where", wrong])).code, wrong).toBe(2);
      expect((await holdfast(["jobs", "list", "--queue", "mail", "--where", "queue:slow"])).code).toBe(2);
      const gone = await holdfast([
        "jobs",
        "delete",
        "--where",
        "payload.n:6 error:nope",
        "--force",
        "--json",
      ]);
      expect(gone.json()).toEqual({ matched: 0 });
      const one = await holdfast(["jobs", "delete", "--where", "payload.n:6", "--force", "--json"]);
      expect(one.json()).toEqual({ matched: 1, deleted: 1 });
    });

    test("[K1] a worker's jobs, by its name or id", async () => {
      const { hf, get } = await api(target);
      const quick = defineJob({ name: "quick", run: async (_input: { n: number }) => {} });
      for (const [n, name] of ["web-1", "web-2"].entries()) {
        await hf.enqueue(quick, { n });
        const worker = hf.work([quick], { queues: ["default"], name });
        await worker.ready;
        await worker.idle();
        await worker.stop();
      }
      const jobs = await page(get, "worker=web-2");
      expect(await found(hf, jobs)).toEqual([1]);
      expect(await found(hf, await page(get, `worker=${encodeURIComponent(jobs[0]!.workerId!)}`))).toEqual([
        1,
      ]);
      expect(await page(get, "worker=web-3")).toEqual([]);
    });

    test("[K1] an age is made an instant by the dry run, so that the action does to those what was shown", async () => {
      const clock = new FakeClock();
      const { hf, send } = await api(target, {}, { clock });
      await hf.enqueue(flaky, { n: 0 }, { delay: "9h" });
      await clock.advance("2m");
      await hf.enqueue(flaky, { n: 1 }, { delay: "9h" });
      const filter = { age: ">1m", name: "flaky", payload: ["n:0"], attempt: "<3" };
      const { body: dry } = await send<DryRun>("POST", "/jobs/bulk", {
        action: "cancel",
        filter,
        dryRun: true,
      });
      expect(dry).toMatchObject({ matched: { count: 1 }, bounded: { payload: ["n:0"], attempt: "<3" } });
      expect(dry.bounded).not.toHaveProperty("age");
      const until = clock.now() - 60_000;
      expect(dry.bounded.until).toBe(until);
      await clock.advance("5m");
      const { body } = await send<Operation>("POST", "/jobs/bulk", { action: "cancel", filter: dry.bounded });
      expect(body).toMatchObject({
        outcomes: { cancelled: 1 },
        filter: { payload: ["n:0"], attempt: "<=2", until },
      });
    });

    test("[K1] what cannot be read is 400 with its field; who may not search may not test for values", async () => {
      const { hf, get } = await api(target);
      for (const field of ["attempt=x", "age=x", "run=x", "ended=x", "payload=x"]) {
        const { status, body } = await get<{ error: { field: string } }>(`/jobs?${field}`);
        expect([status, body.error.field], field).toEqual([400, field.split("=")[0]]);
      }
      const viewer = over(hf, { auth: () => ({ name: "eve", role: "viewer" }) });
      for (const query of ["payload=a:1", "error=x"])
        for (const path of ["/jobs", "/jobs/count", "/jobs/facets"]) {
          const answer = await viewer.get(`${path}?${query}`);
          expect([answer.status, code(answer)], `${path}?${query}`).toEqual([403, "FORBIDDEN"]);
        }
      expect((await viewer.get("/jobs?attempt=>3&age=>5m&run=>1s&worker=w")).status).toBe(200);
    });
  });
});
