// Batches: what hf.batch writes down, how far each is, which jobs a filter by batch means, and when they are forgotten.
import { expect, test } from "vitest";
import type { BatchList, JobCount, JobDetail, JobList } from "../../src/dashboard/api/contract.ts";
import { Dead, defineJob } from "../../src/index.ts";
import { shareOf } from "../../src/enqueue/batch-rows.ts";
import { FakeClock } from "../../src/testing/index.ts";
import { advancing, fresh, refusal, rows } from "../support/test-clients.ts";
import { onEveryStore } from "../support/stores.ts";
import { api } from "./support.ts";

const page = defineJob({
  name: "fetch-page",
  run: (n: number) => {
    if (n < 0) throw new Dead("no such page");
  },
});
const report = defineJob({ name: "report", run: () => {} });
const pages = (...inputs: number[]) => inputs.map((input) => ({ job: page, input }));

test("members are counted within one budget, of which small batches leave the rest to large ones", () => {
  expect(shareOf([10, 50_000, 50_000], 20_010)).toBe(10_000);
  expect(shareOf([3, 5], 20_000)).toBeGreaterThanOrEqual(5);
  expect(
    shareOf(
      Array.from({ length: 200 }, () => 1_000_000),
      20_000,
    ),
  ).toBe(100);
  expect(shareOf([], 20_000)).toBe(100);
});

onEveryStore((target) => {
  test("[K3] a batch says how many of its jobs are done, dead and open, and what comes after them", async () => {
    const { hf, get } = await api(target);
    const { id, jobs, then } = await hf.batch(pages(1, 2, -3), {
      then: { job: report, input: {} },
      onDead: "wait",
    });
    await hf.enqueue(page, 9); // of no batch
    const list = async (query = "") => (await get<BatchList>(`/batches${query}`)).body.batches;
    expect(await list()).toMatchObject([
      {
        id,
        names: ["fetch-page"],
        total: 3,
        counted: 3,
        cut: false,
        done: 0,
        open: 3,
        gone: 0,
        startedAt: null,
        endedAt: null,
        then: { id: then!.id, name: "report", state: "waiting" },
        policy: "wait",
      },
    ]);
    expect(await list("?state=failed")).toEqual([]);
    const worker = hf.work([page, report], { queues: ["default"] });
    await hf.result(jobs[0]!);
    await hf.result(jobs[1]!);
    expect(await refusal(hf.result(jobs[2]!))).toMatchObject({ code: "JOB_DEAD" });
    await worker.stop();
    const [after] = await list("?state=failed");
    expect(after).toMatchObject({ done: 2, dead: 1, cancelled: 0, open: 0, then: { state: "waiting" } });
    expect(after!.startedAt).toBeGreaterThanOrEqual(after!.createdAt);
    expect(after!.endedAt).toBeGreaterThanOrEqual(after!.startedAt!);
    expect(await list("?state=open")).toEqual([]);
    expect(await list("?state=ended")).toHaveLength(1);
    expect((await get(`/batches?state=other`)).status).toBe(400);
    expect((await get(`/batches?cursor=7`)).body).toMatchObject({ error: { code: "BAD_CURSOR" } });
  });

  test("[K3] batch: finds the jobs of a batch by the API and the client; a job says which batch it is of", async () => {
    const { hf, get } = await api(target);
    const one = await hf.batch(pages(1, 2), { then: { job: report, input: {} } });
    const other = await hf.batch(pages(3));
    const ids = one.jobs.map((job) => job.id).sort();
    const found = (await get<JobList>(`/jobs?batch=${one.id}`)).body.jobs.map((job) => job.id);
    expect(found.sort()).toEqual(ids);
    expect((await get<JobList>(`/jobs?batch=${one.id}&state=dead`)).body.jobs).toEqual([]);
    expect((await get<JobList>(`/jobs?batch=${one.id}&workflow=${one.id}`)).body.jobs).toEqual([]);
    expect((await get<JobCount>(`/jobs/count?batch=${one.id}`)).body.total).toEqual({
      count: 2,
      more: false,
    });
    expect((await get(`/jobs?batch=x`)).status).toBe(400);
    expect(await hf.jobs.count({ batch: other.id })).toBe(1);
    expect((await hf.jobs.list({ batch: one.id })).jobs).toHaveLength(2);
    expect(await hf.jobs.count({ batch: one.id, workflow: one.id })).toBe(0);
    expect(await hf.jobs.cancel({ batch: other.id })).toMatchObject({ matched: 1, cancelled: 1 });
    const member = await get<JobDetail>(`/jobs/${ids[0]}`);
    expect(member.body.batches).toEqual([
      { id: one.id, role: "job", total: 2, then: { id: one.then!.id, name: "report" } },
    ]);
    const callback = await get<JobDetail>(`/jobs/${one.then!.id}`);
    expect(callback.body.batches).toMatchObject([{ id: one.id, role: "then" }]);
    expect((await get<JobDetail>(`/jobs/${(await hf.enqueue(page, 1)).id}`)).body.batches).toEqual([]);
  });

  test("[K2] pages of batches go by a cursor, newest first; a plain enqueue writes nothing of batches", async () => {
    const { hf, get, store } = await api(target);
    await hf.enqueueMany(pages(1, 2, 3));
    expect([await rows(store, "batch"), await rows(store, "member")]).toEqual([0, 0]);
    const made: string[] = [];
    for (let n = 0; n < 5; n += 1) made.unshift((await hf.batch(pages(n))).id);
    const seen: string[] = [];
    let cursor: string | null = null;
    do {
      const at: string = cursor === null ? "" : `&cursor=${cursor}`;
      const { body }: { body: BatchList } = await get<BatchList>(`/batches?limit=2${at}`);
      seen.push(...body.batches.map(({ id }) => id));
      cursor = body.cursor;
    } while (cursor !== null);
    expect(seen).toEqual(made);
  });

  test("a job that stands for another by its key is a member of the batch; none of no jobs is kept", async () => {
    const { hf, get } = await api(target);
    const held = await hf.enqueue(page, 1, { key: "k" });
    const { id, jobs } = await hf.batch([
      { job: page, input: 1, key: "k" },
      { job: page, input: 2 },
    ]);
    expect(jobs[0]).toEqual({ status: "duplicate", id: held.id });
    expect((await get<JobList>(`/jobs?batch=${id}`)).body.jobs.map((job) => job.id)).toContain(held.id);
    await hf.batch([], { then: { job: report, input: {} } });
    expect((await get<BatchList>("/batches")).body.batches.map((batch) => batch.id)).toEqual([id]);
  });

  test("[I1] retention forgets members with their jobs, and a batch after its last one", async () => {
    const clock = new FakeClock();
    const { hf, store } = await fresh(target, { clock, retention: { done: "1h", dead: "1d" } });
    const { jobs } = await hf.batch(pages(1, 2));
    const cancelled = await hf.batch(pages(3));
    await hf.jobs.cancel({ batch: cancelled.id });
    for (const lease of await hf.lease({ queues: ["default"], limit: 5, for: "1m" })) await lease.done();
    await advancing(clock, clock.advance("3h"));
    await hf.prune();
    expect(await hf.jobs.get(jobs[0]!.id)).toBeNull();
    expect([await rows(store, "batch"), await rows(store, "member")]).toEqual([1, 1]);
    await hf.jobs.delete({ batch: cancelled.id });
    await hf.prune();
    expect([await rows(store, "batch"), await rows(store, "member")]).toEqual([0, 0]);
  });
});
