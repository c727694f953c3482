// The grants that docs/guides/postgres.md prints are enough for everything that a program does: they are run as
// they are printed, for a role that owns nothing.
import { defineJob, open, silentLogger } from "holdfast";
import pg from "pg";
import { expect, test } from "vitest";
import { systemClock } from "../../src/clock.ts";
import { workerUpkeepTasks } from "../../src/upkeep/tasks.ts";
import { read } from "../support/repository.ts";
import { type FreshStore, onPostgres } from "../support/stores.ts";
import { operatorOf } from "../../src/operate/operator.ts";

const double = defineJob({ name: "double", unique: String, run: async (input: number) => input * 2 });

/** The guide's block, for this schema and role. */
function grants(schema: string, role: string): string[] {
  const block = /```sql\n(grant [^]*?)```/.exec(read("docs/guides/postgres.md"))?.[1] ?? "";
  const lines = block.split("\n").filter((line) => line !== "");
  expect(lines.length).toBeGreaterThan(0);
  return lines.map((line) =>
    line.replace(/schema holdfast/, `schema "${schema}"`).replace(/to app;/, `to "${role}"`),
  );
}

async function roleFor(store: FreshStore): Promise<{ url: string; role: string }> {
  const role = `app_${store.options.schema}`;
  await store.query(`create role "${role}" login password 'secret'`);
  const url = new URL(store.url);
  url.username = role;
  url.password = "secret";
  return { url: url.href, role };
}

onPostgres((target) => {
  test("a role with the printed grants can do all that a program does", async () => {
    const store = await target.fresh();
    const owner = await open(store.url, store.options);
    await owner.close();
    const schema = store.options.schema ?? "holdfast";
    const { url, role } = await roleFor(store);
    for (const grant of grants(schema, role)) await store.query(grant);

    const hf = await open(url, { ...store.options, migrate: false });
    const worker = hf.work([double], { queues: ["default"] });
    expect(await hf.result(await hf.enqueue(double, 21), { timeout: "10s" })).toBe(42);
    const later = await hf.enqueue(double, 1, { delay: "1h" });
    expect(await hf.jobs.cancel(later.id)).toBe("cancelled");
    expect(await hf.jobs.retry(later.id)).toBe("retried");
    await worker.idle();
    await hf.queues.set("default", { slots: 2 });
    await hf.holds.set("h");
    await hf.holds.clear("h");
    await hf.state.set("k", 1);
    await hf.prune();
    expect((await hf.stats()).totals.done).toBe(2);
    const other = new pg.Client(url);
    await other.connect();
    const { rows } = await other.query<{ id: string }>(
      `insert into "${schema}".enqueue (name, input) values ('other', '1') returning id`,
    );
    await other.end();
    const [lease] = await hf.lease({ names: ["other"] });
    expect(lease).toMatchObject({ id: rows[0]?.id, input: 1 });
    await lease?.done();
    await hf.close();
    await store.query(`drop owned by "${role}"`);
    await store.query(`drop role "${role}"`);
  });

  test("without them, the error says that a right is missing", async () => {
    const store = await target.fresh();
    const owner = await open(store.url, store.options);
    await owner.close();
    const { url, role } = await roleFor(store);
    await expect(open(url, { ...store.options, migrate: false })).rejects.toMatchObject({
      code: "PERMISSION_DENIED",
    });
    await store.query(`drop role "${role}"`);
  });

  test("[O8] beside programs with the printed grants, `hf.prune` of the owner makes and drops partitions", async () => {
    const store = await target.fresh();
    const keep = { ...store.options, retention: { done: "90d" } } as const;
    const owner = await open(store.url, keep);
    const schema = store.options.schema ?? "holdfast";
    const { url, role } = await roleFor(store);
    for (const grant of grants(schema, role)) await store.query(grant);
    const app = await open(url, { ...keep, migrate: false });
    const spans = async (): Promise<number> =>
      (await store.query("select 1 from pg_inherits where inhparent = ?::regclass", [store.table("job")]))
        .length;

    const expired =
      "from ('016f5e66-e800-7000-8000-000000000000') to ('016f638d-4400-7000-8000-000000000000')";
    for (const table of ["job", "history", "step"]) {
      const partitions = await store.query(
        "select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid where i.inhparent = ?::regclass order by name",
        [store.table(table)],
      );
      const coming = partitions.map((row) => String(row["name"])).filter((name) => !name.endsWith("_rest"));
      for (const name of coming.slice(1)) await store.query(`drop table ${store.table(name)}`);
      await store.query(
        `create table ${store.table(`${table}_20200101`)} partition of ${store.table(table)} for values ${expired}`,
      );
    }
    const before = await spans();
    await app.prune();
    expect(await spans(), "a role without the right changes nothing").toBe(before);
    expect(await owner.prune()).toMatchObject({ partitions: 1 });
    // Today's was left; the next days have one of 7 days, or two where the boundary is near.
    expect(await spans()).toBeGreaterThanOrEqual(3);
    expect(await spans()).toBeLessThanOrEqual(4);

    const names = (hf: typeof app): string[] =>
      workerUpkeepTasks({
        store: operatorOf(hf).store,
        log: silentLogger,
        events: { emit: () => {} },
        clock: systemClock,
        retention: { doneMs: 0, deadMs: 0 },
        reap: () => Promise.resolve(0),
      }).map(({ name }) => name);
    expect(names(owner)).toContain("partitions");
    expect(names(app)).not.toContain("partitions");
    await app.close();
    await owner.close();
  });
});
