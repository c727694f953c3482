// The dashboard's looks at the database: right, in order, and bounded.
import { describe, expect, test } from "vitest";
import { Dead, defineJob, type Holdfast } from "../../src/index.ts";
import { walksOf } from "../../src/operate/browse-rows.ts";
import { FakeClock } from "../../src/testing/index.ts";
import { connect, fresh } from "../support/test-clients.ts";
import { onEveryStore } from "../support/stores.ts";
import { operatorOf } from "../../src/operate/operator.ts";

const mail = defineJob({ name: "mail", queue: "mail", run: async (_input: unknown) => {} });
const plain = defineJob({ name: "plain", run: async (_input: unknown) => {} });

async function end(hf: Holdfast, how: "done" | "dead" | "fail", reason = "no use"): Promise<string> {
  const [lease] = await hf.lease({ limit: 1, for: "10m" });
  if (how === "done") await lease!.done({ ok: true });
  if (how === "dead") await lease!.dead(reason);
  if (how === "fail") await lease!.fail(new Error(reason));
  return lease!.id;
}

test("a filter is walked by the index that has its jobs, each job once", () => {
  const sources = (filter: Parameters<typeof walksOf>[0]) =>
    walksOf(filter).map(({ source, states }) => `${source}: ${states.join(" ")}`);
  expect(sources({})).toEqual(["Live: scheduled ready running waiting", "Ended: done dead cancelled"]);
  expect(sources({ states: ["running"] })).toEqual(["Held: running"]);
  expect(sources({ states: ["dead"] })).toEqual(["NotDone: dead"]);
  expect(sources({ retrying: true })).toEqual(["Failed: scheduled ready"]);
  expect(sources({ workflow: "x", states: ["dead", "ready"] })).toEqual(["Children: ready dead"]);
  expect(sources({ workflow: "x", retrying: true })).toEqual(["Children: scheduled ready"]);
  expect(sources({ workflow: "x", ended: { min: 1 } })).toEqual(["Children: done dead cancelled"]);
  expect(sources({ states: ["dead", "scheduled"], failureGroup: "x" })).toEqual([
    "Failed: scheduled",
    "NotDone: dead",
  ]);
});

onEveryStore((target) => {
  describe("insight", () => {
    test("[K2] pages newest first over live and ended jobs, with filters and totals that follow them", async () => {
      const { hf } = await fresh(target);
      const { insight } = operatorOf(hf).store;
      const ids: string[] = [];
      for (let i = 0; i < 1_000; i += 50) {
        const items = Array.from({ length: 50 }, (_, n) => ({
          job: (i + n) % 4 === 0 ? mail : plain,
          input: { note: `item-${i + n}` },
        }));
        ids.push(...(await hf.enqueueMany(items)).map(({ id }) => id));
      }
      await hf.jobs.cancel({ ids: ids.slice(0, 300) });
      const seen: string[] = [];
      let cursor: string | null = null;
      let pages = 0;
      do {
        const page = await insight.browse({}, { limit: 100, cursor });
        if (pages === 2) expect(page.jobs.map(({ id }) => id)).toEqual([...ids].reverse().slice(200, 300));
        seen.push(...page.jobs.map(({ id }) => id));
        cursor = page.cursor;
        pages += 1;
      } while (cursor !== null);
      expect(pages).toBe(10);
      expect(seen).toEqual([...ids].reverse());

      expect((await insight.tally({})).states).toMatchObject({
        ready: { count: 700, more: false },
        cancelled: { count: 300, more: false },
        done: { count: 0, more: false },
      });
      expect((await insight.tally({ queues: ["mail"] })).total).toEqual({ count: 250, more: false });
      expect((await insight.tally({ names: ["plain"], states: ["cancelled"] })).total.count).toBe(225);
      expect((await insight.tally({ search: "ITEM-77" })).total.count).toBe(11);
      const found = await insight.browse({ search: "item-999" }, { limit: 5, cursor: null });
      expect(found).toMatchObject({
        jobs: [{ id: ids[999], name: "plain", input: '{"note":"item-999"}' }],
        cursor: null,
      });
    });

    test("[K2] a walk goes in pieces: what is rare is found behind the cursor of a page that stopped", async () => {
      const { hf } = await fresh(target);
      const { insight } = operatorOf(hf).store;
      const { id } = await hf.enqueue(mail, { note: "the needle" });
      for (let i = 0; i < 4; i += 1)
        await hf.enqueueMany(Array.from({ length: 1_500 }, (_, n) => ({ job: plain, input: n })));
      const found: string[] = [];
      const cursors: string[] = [];
      let cursor: string | null = null;
      do {
        const page = await insight.browse({ search: "the needle" }, { limit: 10, cursor });
        found.push(...page.jobs.map((job) => job.id));
        expect(page.cut).toBe(page.cursor !== null);
        cursor = page.cursor;
        if (cursor !== null) cursors.push(cursor);
      } while (cursor !== null);
      expect(found).toEqual([id]);
      const byRowKey = (a: string, b: string): number => b.length - a.length || (a < b ? 1 : -1);
      expect(cursors).toEqual([...new Set(cursors)].sort(byRowKey));
      // Six pieces at most, and at least one thousand in each.
      expect(cursors.length).toBeLessThanOrEqual(6);
    });

    test("[K2] a full queue among very many is counted on; where many are full, each is counted to a lower cap, and says so", async () => {
      const { hf } = await fresh(target);
      const { insight } = operatorOf(hf).store;
      const put = (queues: readonly number[], jobs: number): Promise<unknown> =>
        hf.enqueueMany(
          queues.flatMap((n) =>
            Array.from({ length: jobs }, () => ({ job: plain, input: null, queue: `queue-${n}` })),
          ),
        );
      const of = async (name: string) =>
        (await insight.jobTypes()).jobTypes.find(({ queue }) => queue === name)?.ready;
      const all = Array.from({ length: 500 }, (_, n) => n);
      await put(all, 1);
      await put([7], 150);
      expect(await of("queue-7")).toEqual({ count: 151, more: false });
      expect(await of("queue-8")).toEqual({ count: 1, more: false });
      for (let n = 0; n < 300; n += 100) await put(all.slice(n, n + 100), 140);
      expect(await of("queue-7")).toEqual({ count: 133, more: true });
      expect(await of("queue-400")).toEqual({ count: 1, more: false });
    });

    test("time filters hold, and start the walk where the time is", async () => {
      const clock = new FakeClock();
      const { hf } = await fresh(target, { clock });
      const { insight } = operatorOf(hf).store;
      const ids: string[] = [];
      for (let i = 0; i < 5; i += 1) {
        ids.push((await hf.enqueue(plain, { i })).id);
        await clock.advance("1h");
      }
      const start = clock.now() - 5 * 3_600_000;
      const page = await insight.browse(
        { since: start + 3_600_000, until: start + 3 * 3_600_000 },
        { limit: 10, cursor: null },
      );
      expect(page.jobs.map(({ id }) => id)).toEqual([ids[2], ids[1]]);
    });

    test("scheduled jobs are listed next due first, over queues and priorities, in pages", async () => {
      const clock = new FakeClock();
      const { hf } = await fresh(target, { clock });
      const { insight } = operatorOf(hf).store;
      const due: [number, string][] = [];
      for (const [n, minutes] of [7, 3, 9, 1, 5, 8, 2, 6, 4].entries()) {
        const { id } = await hf.enqueue(n % 2 === 0 ? mail : plain, n, {
          delay: minutes * 60_000,
          priority: n % 3,
        });
        due.push([minutes, id]);
      }
      await hf.enqueue(plain, "ready");
      const expected = due.sort(([a], [b]) => a - b).map(([, id]) => id);
      const first = await insight.browse({ states: ["scheduled"] }, { limit: 4, cursor: null, order: "due" });
      const second = await insight.browse(
        { states: ["scheduled"] },
        { limit: 9, cursor: first.cursor, order: "due" },
      );
      expect([...first.jobs, ...second.jobs].map(({ id }) => id)).toEqual(expected);
      expect(second.cursor).toBeNull();
    });

    test("failures are grouped by fingerprint when they happen; done and cancelled jobs have none", async () => {
      const { hf, store } = await fresh(target);
      const { insight } = operatorOf(hf).store;
      for (let i = 0; i < 6; i += 1) await hf.enqueue(plain, { i });
      await end(hf, "dead", "user 17 not found");
      await end(hf, "dead", "user 4711 not found");
      await end(hf, "dead", "disk full");
      await end(hf, "done");
      const retrying = await end(hf, "fail", "user 3 not found");
      await hf.jobs.cancel({ state: "ready" });

      const { groups, searched, cut } = await insight.failureGroups({});
      expect({ searched, cut }).toEqual({ searched: 4, cut: false });
      expect(
        groups.map(({ message, dead, retrying: n }) => ({ message: message?.replace(/\d+/, "n"), dead, n })),
      ).toEqual([
        { message: "user n not found", dead: 2, n: 1 },
        { message: "disk full", dead: 1, n: 0 },
      ]);
      const group = groups[0]!.group;
      const listed = await insight.browse({ failureGroup: group }, { limit: 10, cursor: null });
      expect(listed.jobs.map(({ state }) => state).sort()).toEqual(["dead", "dead", "scheduled"]);
      expect((await insight.browse({ retrying: true }, { limit: 10, cursor: null })).jobs[0]?.id).toBe(
        retrying,
      );
      expect((await insight.tally({ failureGroup: group, states: ["dead"] })).total).toEqual({
        count: 2,
        more: false,
      });
      const [row] = await store.query(
        `select count(*) as n from ${store.table("history")} where failure_group is not null and state <> 'dead'`,
      );
      expect(Number(row?.["n"])).toBe(0);
      await hf.jobs.retry({ state: "dead" });
      expect((await insight.browse({ retrying: true }, { limit: 10, cursor: null })).jobs).toHaveLength(1);
    });

    test("lines count ready, scheduled and running apart, up to the cap", async () => {
      const { hf } = await fresh(target);
      const { insight } = operatorOf(hf).store;
      await hf.enqueueMany(Array.from({ length: 10_050 }, (_, n) => ({ job: mail, input: n })));
      await hf.enqueueMany(
        Array.from({ length: 3 }, (_, n) => ({ job: plain, input: n, delay: "1h" as const })),
      );
      await hf.lease({ queues: ["mail"], limit: 2, for: "10m" });
      const { jobTypes } = await insight.jobTypes();
      expect(jobTypes).toMatchObject([
        {
          queue: "default",
          name: "plain",
          scheduled: { count: 3, more: false },
          ready: { count: 0 },
          running: 0,
        },
        { queue: "mail", name: "mail", ready: { count: 10_000, more: true }, running: 2 },
      ]);
      const running = await insight.browse({ states: ["running"] }, { limit: 10, cursor: null });
      expect(running.jobs).toHaveLength(2);
      expect((await insight.tally({ states: ["running"] })).total).toEqual({ count: 2, more: false });
    });

    test("inspect gives the texts as they are stored", async () => {
      const { hf } = await fresh(target);
      const big = { id: "x".repeat(5_000) };
      const { id } = await hf.enqueue(plain, big, { context: "why", lane: "ann" });
      expect(await operatorOf(hf).store.insight.inspect(id)).toMatchObject({
        input: JSON.stringify(big),
        context: "why",
        lane: "ann",
        errors: [],
      });
      const page = await operatorOf(hf).store.insight.browse({ ids: [id] }, { limit: 1, cursor: null });
      expect(page.jobs[0]).toMatchObject({ input: null, inputBytes: 5_009 });
      expect(await operatorOf(hf).store.insight.inspect("nonsense")).toBeNull();
    });

    test("the audit trail is written, listed newest first, and forgotten after 90 days", async () => {
      const clock = new FakeClock();
      const { hf } = await fresh(target, { clock });
      const { insight } = operatorOf(hf).store;
      const entry = { actor: "ann", action: "jobs.retry", target: "x", outcome: "retried", details: null };
      await insight.addAudit(entry);
      await clock.advance("91d");
      await insight.addAudit({ ...entry, actor: "bob" });
      expect(await insight.audit({ limit: 10, before: null })).toMatchObject([
        { actor: "bob", at: clock.now() },
      ]);
    });

    test("health tells version, size and tables", async () => {
      const { hf } = await fresh(target);
      const health = await operatorOf(hf).store.insight.health();
      expect(health).toMatchObject({ dialect: target.dialect });
      expect(health.sizeBytes).toBeGreaterThan(0);
      expect(health.tables.map(({ name }) => name)).toEqual(
        expect.arrayContaining(["job", "ready", "history", "audit"]),
      );
    });

    test("a handler's errors and a dead decision are told apart", async () => {
      const { hf, store } = await fresh(target);
      const other = await connect(store);
      const failing = defineJob({
        name: "failing",
        retry: { attempts: 1 },
        run: async (kind: string) => {
          if (kind === "dead") throw new Dead("gave up");
          throw new TypeError("broken");
        },
      });
      await hf.enqueueMany([
        { job: failing, input: "dead" },
        { job: failing, input: "x" },
        { job: failing, input: "y" },
      ]);
      const worker = other.work([failing], { queues: ["default"] });
      await worker.ready;
      await worker.idle();
      const { groups } = await operatorOf(hf).store.insight.failureGroups({});
      expect(groups.map(({ dead }) => dead)).toEqual([2, 1]);
      await worker.stop();
    });
  });
});
