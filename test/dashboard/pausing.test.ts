// Pausing, resuming and terminating over the API and in the terminal; and which code a run began with.
import { expect, test } from "vitest";
import type { JobDetail, JobList, RunList, WorkerLine } from "../../src/dashboard/api/contract.ts";
import { schemas } from "../../src/dashboard/api/openapi.ts";
import { defineJob, type Holdfast } from "../../src/index.ts";
import { FakeClock } from "../../src/testing/index.ts";
import { advancing } from "../support/test-clients.ts";
import { on } from "../cli/support.ts";
import { onEveryStore } from "../support/stores.ts";
import { misfits } from "./misfits.ts";
import { api, code, over } from "./support.ts";

const page = { "x-holdfast": "1" };
const patient = { lease: "20d", heartbeat: "9d" } as const;
const unknownId = "0199c1d8-7c00-7000-8000-000000000000";

/** A workflow of this version of the code, which waits for a signal after its first step. */
function order(version: number) {
  return defineJob({
    name: "order",
    version,
    run: async (_: null, ctx) => {
      await ctx.step("reserve", () => 1);
      await ctx.waitFor("packed");
    },
  });
}

async function waiting(hf: Holdfast, clock: FakeClock, version: number): Promise<string> {
  const worker = hf.work([order(version)], { queues: { default: 2 }, ...patient });
  const { id } = await hf.enqueue(order(version), null);
  await advancing(
    clock,
    (async () => {
      while ((await hf.jobs.get(id))?.waitsFor !== "signal") await new Promise((turn) => setTimeout(turn, 5));
    })(),
  );
  await advancing(clock, worker.stop());
  return id;
}

onEveryStore((target) => {
  test("[K3] a run is paused, shown as paused, resumed and terminated over the API, and the trail has it", async () => {
    const clock = new FakeClock();
    const { hf, get, send } = await api(target, {}, { clock });
    const id = await waiting(hf, clock, 1);
    const act = (verb: string) => send<{ outcome: string }>("POST", `/jobs/${id}/${verb}`, undefined, page);
    expect((await act("pause")).body).toEqual({ outcome: "paused" });
    const detail = await get<JobDetail>(`/jobs/${id}`);
    expect(detail.body).toMatchObject({
      state: "waiting",
      paused: true,
      request: null,
      why: { reason: "job-paused" },
    });
    expect(misfits(schemas["JobDetail"]!, detail.body, "")).toEqual([]);
    expect((await get<JobList>("/jobs?state=waiting")).body.jobs).toMatchObject([{ id, paused: true }]);
    const runs = await get<RunList>("/runs");
    expect(runs.body.runs).toMatchObject([{ id, paused: true }]);
    expect(misfits(schemas["RunList"]!, runs.body, "")).toEqual([]);
    expect((await act("resume")).body).toEqual({ outcome: "resumed" });
    const again = await act("resume");
    expect([again.status, code(again)]).toEqual([409, "NOT_PAUSED"]);
    expect((await act("terminate")).body).toEqual({ outcome: "terminated" });
    expect([(await act("terminate")).status, (await act("pause")).status]).toEqual([409, 409]);
    expect((await send("POST", `/jobs/${unknownId}/pause`, undefined, page)).status).toBe(404);
    const { body } = await get<{ entries: { action: string; outcome: string }[] }>("/audit");
    expect(body.entries.map(({ action, outcome }) => [action, outcome])).toEqual(
      expect.arrayContaining([
        ["jobs.pause", "paused"],
        ["jobs.resume", "resumed"],
        ["jobs.terminate", "terminated"],
      ]),
    );
  });

  test("[K3] what is asked of a running job is shown until it is done; an operator may pause and not terminate", async () => {
    const { hf, get } = await api(target);
    const { id } = await hf.enqueue("plain", null);
    const [lease] = await hf.lease();
    const { send } = over(hf, { auth: () => ({ name: "olga", role: "operator" }) });
    const paused = await send("POST", `/jobs/${id}/pause`, undefined, page);
    expect(paused.body).toEqual({ outcome: "pause_requested" });
    expect((await get<JobDetail>(`/jobs/${id}`)).body).toMatchObject({
      state: "running",
      request: "pause",
      paused: false,
    });
    expect((await send("POST", `/jobs/${id}/terminate`, undefined, page)).status).toBe(403);
    await hf.jobs.cancel(id);
    expect((await get<JobDetail>(`/jobs/${id}`)).body.request).toBe("cancel");
    // A pause does not take the place of a cancel.
    await hf.jobs.pause(id);
    expect((await get<JobDetail>(`/jobs/${id}`)).body.request).toBe("cancel");
    await lease?.fail(new Error("no"));
    expect((await get<JobDetail>(`/jobs/${id}`)).body).toMatchObject({ state: "cancelled", request: null });
  });

  test("[K3] many are paused and resumed by a filter, with a dry run first", async () => {
    const { hf, send } = await api(target);
    for (let n = 0; n < 3; n += 1) await hf.enqueue("plain", n, { queue: "mail" });
    const bulk = (action: string, dryRun: boolean) =>
      send<{ matched: { count: number }; outcomes: object }>(
        "POST",
        "/jobs/bulk",
        { action, filter: { queue: ["mail"] }, dryRun },
        page,
      );
    expect((await bulk("pause", true)).body).toMatchObject({ matched: { count: 3 } });
    expect((await bulk("pause", false)).body).toMatchObject({ outcomes: { paused: 3 }, refused: 0 });
    expect((await bulk("resume", false)).body).toMatchObject({ outcomes: { resumed: 3 } });
    expect((await bulk("terminate", false)).body).toMatchObject({ outcomes: { terminated: 3 } });
  });

  test("[K3] in the terminal: jobs pause, resume and terminate", async () => {
    const { hf, store } = await api(target);
    const holdfast = on(store);
    const { id } = await hf.enqueue("plain", null);
    expect((await holdfast(["jobs", "pause", id, "--json"])).json()).toEqual({ matched: 1, paused: 1 });
    expect((await holdfast(["why", id])).out).toContain("job-paused");
    expect((await holdfast(["jobs", "resume", id])).out).toBe("1 resumed\n");
    expect((await holdfast(["jobs", "terminate", id])).code).toBe(2); // not without being asked
    expect((await holdfast(["jobs", "terminate", id, "--force", "--json"])).json()).toEqual({
      matched: 1,
      terminated: 1,
    });
    expect((await hf.jobs.get(id))?.state).toBe("cancelled");
  });

  test("[F6] a job says which version of its code it needs, and which its workers have", async () => {
    const clock = new FakeClock();
    const { hf, get } = await api(target, {}, { clock });
    const id = await waiting(hf, clock, 3);
    expect((await get<JobDetail>(`/jobs/${id}`)).body).toMatchObject({ version: 3, workerVersions: [] });
    const workers = [1, 5].map((version) =>
      hf.work([order(version)], { queues: { other: 1 }, release: `build-${version}`, ...patient }),
    );
    await advancing(clock, Promise.all(workers.map(({ ready }) => ready)));
    expect((await get<JobDetail>(`/jobs/${id}`)).body).toMatchObject({ version: 3, workerVersions: [1, 5] });
    const { body } = await get<{ workers: WorkerLine[] }>("/workers");
    const byRelease = body.workers.toSorted((a, b) => (String(a.release) < String(b.release) ? -1 : 1));
    expect(byRelease).toMatchObject([
      { release: "build-1", versions: {} },
      { release: "build-5", versions: { order: 5 } },
    ]);
    expect(misfits(schemas["WorkerList"]!, body, "")).toEqual([]);
    await advancing(clock, Promise.all(workers.map((worker) => worker.stop())));
  });
});
