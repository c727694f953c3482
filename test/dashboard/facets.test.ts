// Counts by state, queue and name that follow the filter, and stop at their cap.
import { expect, test } from "vitest";
import { defineJob, type Holdfast } from "../../src/index.ts";
import type {
  DryRun,
  FacetValue,
  JobCount,
  JobFacets,
  JobList,
  Overview,
} from "../../src/dashboard/api/contract.ts";
import { facetsOf } from "../../src/operate/facets.ts";
import { countBeside } from "../../ui/src/text/quantities.ts";
import { fresh } from "../support/test-clients.ts";
import { onEveryStore } from "../support/stores.ts";
import { api, over } from "./support.ts";
import { operatorOf } from "../../src/operate/operator.ts";

const plain = defineJob({ name: "plain", run: async (_input: unknown) => {} });
const mail = defineJob({ name: "mail", queue: "mail", run: async (_input: unknown) => {} });

const shown = (values: readonly FacetValue[]): Record<string, string> =>
  Object.fromEntries(values.map(({ value, count, more }) => [value, `${count}${more ? "+" : ""}`]));
const all = (facets: JobFacets) => ({
  states: shown(facets.states),
  queues: shown(facets.queues),
  names: shown(facets.names),
});

/** Of each: 1 done, 2 dead, 1 running, and so many ready and scheduled. */
async function fill(hf: Holdfast): Promise<void> {
  for (const [job, queue, ready, scheduled] of [
    [plain, "default", 5, 2],
    [plain, "mail", 3, 0],
    [mail, "mail", 4, 1],
  ] as const) {
    await hf.enqueueMany(Array.from({ length: 4 }, (_, n) => ({ job, input: { n, tag: "old" }, queue })));
    const [a, b, c] = await hf.lease({ queues: [queue], names: [job.name], limit: 4, for: "10m" });
    await a!.done(null);
    await b!.dead("no use");
    await c!.dead("no use");
    await hf.enqueueMany([
      ...Array.from({ length: ready }, (_, n) => ({ job, input: { n, tag: "new" }, queue })),
      ...Array.from({ length: scheduled }, (_, n) => ({
        job,
        input: { n, tag: "new" },
        queue,
        delay: "1h" as const,
      })),
    ]);
  }
}

test("[K2] a state that was looked for in vain and not to the end is not said to be empty", () => {
  const capped = (count: number, more: boolean) => ({ count, more });
  const cell = { state: "dead", queue: "mail", name: "mail", count: 2, more: false } as const;
  const facets = facetsOf([cell], { queues: ["mail"] }, capped, new Set(["done"]));
  expect([shown(facets.states), facets.cut]).toEqual([{ dead: "2", done: "0+" }, true]);
  expect(shown(facetsOf([cell], {}, capped, new Set()).states)).toEqual({ dead: "2" });
});

test("[K2] what is said beside a list is never below what it shows", () => {
  expect(countBeside({ count: 0, more: true }, 50)).toBe("50+");
  expect(countBeside({ count: 2, more: false }, 3)).toBe("3");
  expect(countBeside({ count: 10_000, more: true }, 50)).toBe("10k+");
  expect(countBeside({ count: 0, more: true }, 0)).toBe("0+");
});

onEveryStore((target) => {
  test("[K2] what waits for a signal or a job until a time is counted as waiting, as in lists", async () => {
    const { hf, get, send } = await api(target);
    const workflow = defineJob({
      name: "workflow",
      run: async (of: "signal" | "job" | "sleep", ctx) => {
        if (of === "signal") await ctx.waitFor("approved", { key: ctx.id, timeout: "1h" });
        else if (of === "job") await Promise.all([ctx.call(plain, 1), ctx.sleep("nap", "1h")]);
        else await ctx.sleep("nap", "1h");
      },
    });
    // More of them than are counted at once; some of another level.
    await hf.enqueueMany(
      Array.from({ length: 120 }, (_, n) => ({
        job: workflow,
        input: "signal" as const,
        priority: n < 5 ? 1 : 0,
      })),
    );
    await hf.enqueueMany((["sleep", "sleep", "job"] as const).map((input) => ({ job: workflow, input })));
    const worker = hf.work([workflow], { queues: { default: 20 } });
    const listed = async () => (await hf.queues.list()).find(({ name }) => name === "default")?.counts;
    await expect.poll(listed, { timeout: 20_000 }).toMatchObject({ waiting: 121, scheduled: 2, running: 0 });
    await worker.stop();
    const [bounded] = await hf.queues.list({ upTo: 10_000 });
    expect([bounded!.counts, bounded!.atLeast]).toMatchObject([{ waiting: 121, scheduled: 2 }, []]);
    const { body: counted } = await get<JobCount>("/jobs/count?state=waiting");
    expect(counted.total).toEqual({ count: 121, more: false });
    expect(counted.states).toMatchObject({ waiting: { count: 121 }, scheduled: { count: 2 } });
    const { body: facets } = await get<JobFacets>("/jobs/facets");
    expect(shown(facets.states)).toMatchObject({ waiting: "121", scheduled: "2" });
    const { body: overview } = await get<Overview>("/overview");
    expect(overview.totals).toMatchObject({ waiting: { count: 121 }, scheduled: { count: 2 } });
    const { body: dry } = await send<DryRun>("POST", "/jobs/bulk", {
      action: "cancel",
      filter: { state: ["waiting"] },
      dryRun: true,
    });
    expect([dry.matched, dry.samples.length]).toEqual([{ count: 121, more: false }, 5]);
    // The next due first are the scheduled ones alone, though those that wait stand in the same line.
    const due: JobList["jobs"][number][] = [];
    for (let cursor: string | null = ""; cursor !== null;) {
      const { body }: { body: JobList } = await get(
        `/jobs?state=scheduled&order=due&limit=10&cursor=${encodeURIComponent(cursor)}`,
      );
      due.push(...body.jobs);
      cursor = body.cursor;
    }
    expect(due.map(({ state }) => state)).toEqual(["scheduled", "scheduled"]);
    // With a bound below what there is, that of the other state is still a number that holds.
    const [low] = await hf.queues.list({ upTo: 100 });
    expect([low!.counts.waiting, low!.atLeast.includes("waiting")]).toEqual([100, true]);
    expect(low!.counts.scheduled).toBeLessThanOrEqual(2);
  });

  test("[K2] each facet counts under the other parts of the filter, and shows what else there is", async () => {
    const { hf } = await fresh(target);
    await fill(hf);
    const { insight } = operatorOf(hf).store;
    expect(all(await insight.facets({}))).toEqual({
      states: { ready: "12", dead: "6", done: "3", running: "3", scheduled: "3" },
      queues: { mail: "16", default: "11" },
      names: { plain: "18", mail: "9" },
    });
    expect(all(await insight.facets({ queues: ["mail"], states: ["ready", "dead"] }))).toEqual({
      states: { ready: "7", dead: "4", done: "2", running: "2", scheduled: "1" },
      queues: { mail: "11", default: "7" },
      names: { plain: "5", mail: "6" },
    });
    // Filters that only the rows themselves can answer.
    expect(all(await insight.facets({ search: "old", names: ["plain"] }))).toEqual({
      states: { dead: "4", done: "2", running: "2" },
      queues: { mail: "4", default: "4" },
      names: { plain: "8", mail: "4" },
    });
    const [group] = (await insight.failureGroups({ names: ["mail"] })).groups;
    expect(all(await insight.facets({ failureGroup: group!.group }))).toEqual({
      states: { dead: "2" },
      queues: { mail: "2" },
      names: { mail: "2" },
    });
    const ids = (await hf.jobs.list({ queue: "default", state: "dead" })).jobs.map(({ id }) => id);
    expect(all(await insight.facets({ ids })).states).toEqual({ dead: "2" });
    expect(all(await insight.facets({ search: "nothing" }))).toEqual({ states: {}, queues: {}, names: {} });
    // The totals are those of the count.
    const { states } = await insight.tally({ queues: ["mail"] });
    expect(states).toMatchObject({ ready: { count: 7 }, dead: { count: 4 }, done: { count: 2 } });
  });

  test("[K2] a count stops at 10,000 and says so", async () => {
    const { hf } = await fresh(target);
    for (let i = 0; i < 3; i += 1)
      await hf.enqueueMany(Array.from({ length: 4_000 }, (_, n) => ({ job: mail, input: n })));
    await hf.enqueue(plain, 1);
    const { insight } = operatorOf(hf).store;
    expect(all(await insight.facets({}))).toEqual({
      states: { ready: "10000+" },
      queues: { mail: "10000+", default: "1" },
      names: { mail: "10000+", plain: "1" },
    });
    // Rows are looked at one by one for as long as there is time: of states that were not seen to the end it is not said that
    // there is none.
    const { states, queues, names, cut } = await insight.facets({ key: "nobody" });
    expect(shown(states)).toEqual(cut ? { ready: "0+", scheduled: "0+", waiting: "0+" } : {});
    expect([...queues, ...names]).toEqual([]);
  });

  test("[K2] over the API; who may not search may not count by search", async () => {
    const { hf, get } = await api(target);
    await fill(hf);
    const { body } = await get<JobFacets>("/jobs/facets?queue=default&state=dead");
    expect(all(body)).toEqual({
      states: { ready: "5", dead: "2", scheduled: "2", done: "1", running: "1" },
      queues: { mail: "4", default: "2" },
      names: { plain: "2" },
    });
    expect((await get("/jobs/facets?stat=dead")).status).toBe(400);
    const viewer = over(hf, { auth: () => ({ name: "eve", role: "viewer" }) });
    expect((await viewer.get("/jobs/facets")).status).toBe(200);
    expect((await viewer.get("/jobs/facets?search=x")).status).toBe(403);
  });
});
