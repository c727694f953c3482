// Counts by state, queue and name that follow the filter, and stop at their cap.
import { expect, test } from "vitest";
import { defineJob, type Holdfast } from "../../src/index.ts";
import type { FacetValue, JobFacets } from "../../src/dashboard/contract.ts";
import { fresh } from "../client/support.ts";
import { onEveryStore } from "../support/stores.ts";
import { api, over } from "./support.ts";

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

onEveryStore((target) => {
  test("[K2] each facet counts under the other parts of the filter, and shows what else there is", async () => {
    const { hf } = await fresh(target);
    await fill(hf);
    const { insight } = hf.internals.store;
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
    const [group] = (await insight.errorGroups({ names: ["mail"] })).groups;
    expect(all(await insight.facets({ errorGroup: group!.group }))).toEqual({
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
    const { insight } = hf.internals.store;
    expect(all(await insight.facets({}))).toEqual({
      states: { ready: "10000+" },
      queues: { mail: "10000+", default: "1" },
      names: { mail: "10000+", plain: "1" },
    });
    expect(all(await insight.facets({ key: "nobody" })).states).toEqual({});
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
