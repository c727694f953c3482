// Places: what lists go on from and what a settle addresses a job by. SQLite's are numbers of its own (storage/sqlite/seq.ts).
import { expect, test } from "vitest";
import { defineJob } from "holdfast";
import { idAt } from "../../src/values/id.ts";
import { sqliteTables } from "../../src/storage/sqlite/driver.ts";
import { seqOf } from "../../src/storage/sqlite/seq.ts";
import { client, patient } from "../support/client.ts";
import { onEveryStore, onSqlite } from "../support/stores.ts";

const plain = defineJob({ name: "plain", run: () => undefined });

onEveryStore((target) => {
  test("[K2] a page goes on where the one before ended, though the job that it ended with is gone", async () => {
    const { hf, clock } = await client(target);
    const made: string[] = [];
    for (let n = 0; n < 25; n += 1) {
      await clock.advance(1);
      // Every fifth has an id of its own, older than all: its place in the list is the store's to choose.
      const id = n % 5 === 4 ? { id: idAt(1_000_000 - n) } : {};
      made.push((await hf.enqueue(plain, null as never, id)).id);
    }
    const seen: string[] = [];
    let cursor: string | null = null;
    do {
      const page: Awaited<ReturnType<typeof hf.jobs.list>> = await hf.jobs.list({ limit: 4, cursor });
      seen.push(...page.jobs.map(({ id }) => id));
      const last = page.jobs.at(-1)!;
      expect(await hf.jobs.delete(last.id)).toBe("deleted");
      ({ cursor } = page);
    } while (cursor !== null);
    expect(seen).toHaveLength(25);
    expect(new Set(seen)).toEqual(new Set(made));
    const newest = made.filter((_, n) => n % 5 !== 4).reverse();
    expect(seen.filter((id) => newest.includes(id))).toEqual(newest);
  });

  test("[K2] a cursor that no page gave is refused", async () => {
    const { hf } = await client(target);
    for (const cursor of ["x", "-1", "1; drop table job", target.dialect === "sqlite" ? idAt(1) : "12"])
      await expect(hf.jobs.list({ cursor })).rejects.toMatchObject({ code: "BAD_CURSOR" });
  });

  test("[E1] a bulk delete of more than a batch misses none, whatever order the ids have", async () => {
    const { hf } = await client(target);
    const items = Array.from({ length: 2_500 }, (_, n) => ({
      job: plain,
      input: null as never,
      ...(n % 7 === 0 ? { id: idAt(5_000_000 - n) } : {}),
    }));
    await hf.enqueueMany(items);
    expect(await hf.jobs.delete({ state: "ready" })).toMatchObject({ matched: 2_500, deleted: 2_500 });
    expect(await hf.jobs.count()).toBe(0);
  });
});

onSqlite((target) => {
  test("[B8] numbers outlive a VACUUM between the claim and the settle", async () => {
    const { hf, fresh } = await client(target);
    const old = await hf.enqueueMany(
      Array.from({ length: 50 }, () => ({ job: plain, input: null as never })),
    );
    for (const { id } of old) await hf.jobs.delete(id);
    let vacuumed = false;
    const slow = defineJob({
      name: "slow",
      run: async () => {
        if (!vacuumed) await fresh.query("vacuum");
        vacuumed = true;
      },
    });
    const ids = (
      await hf.enqueueMany(Array.from({ length: 3 }, () => ({ job: slow, input: null as never })))
    ).map(({ id }) => id);
    const worker = hf.work([slow], { queues: { default: 3 }, ...patient });
    await worker.idle();
    expect(vacuumed).toBe(true);
    expect(await fresh.query(`select seq from ${fresh.table("history")} order by seq`)).toEqual(
      [51, 52, 53].map((seq) => ({ seq })),
    );
    for (const id of ids) expect(await hf.jobs.get(id)).toMatchObject({ state: "done", attempt: 1 });
  });

  test("[B8] a number never comes twice", async () => {
    const { hf, fresh } = await client(target);
    const { id } = await hf.enqueue(plain, null as never);
    await hf.jobs.delete(id);
    await hf.enqueue(plain, null as never);
    expect(await fresh.query(`select seq from ${fresh.table("job")}`)).toEqual([{ seq: 2 }]);
    expect(await fresh.query(`select seq from ${fresh.table("ready")}`)).toEqual([{ seq: 2 }]);
  });

  test("[I2] the first number of an instant is found among gaps, at both ends and in an empty table", async () => {
    const { hf, fresh, clock } = await client(target);
    const first = async (instant: number): Promise<unknown> =>
      (await fresh.query(`select ${seqOf(sqliteTables("holdfast")).at(String(instant))} as seq`))[0]?.["seq"];
    expect(await first(clock.now())).toBe(1);
    const start = clock.now();
    const made: string[] = [];
    for (let n = 0; n < 20; n += 1) {
      made.push((await hf.enqueue(plain, null as never)).id);
      await clock.advance("1s");
    }
    for (const n of [0, 3, 4, 5, 12, 19]) await hf.jobs.delete(made[n]!);
    // Made at `start + n` seconds, with the number n + 1; what is gone is stepped over.
    const at = async (n: number): Promise<string> => {
      const seq = Number(await first(start + n * 1_000));
      const [row] = await fresh.query(
        `select id from ${fresh.table("job")} where seq >= ? order by seq limit 1`,
        [seq],
      );
      return String(row?.["id"]);
    };
    expect(await at(0)).toBe(made[1]);
    expect(await at(1)).toBe(made[1]);
    expect(await at(2)).toBe(made[2]);
    expect(await at(3)).toBe(made[6]);
    expect(await at(10.5)).toBe(made[11]);
    expect(await at(18)).toBe(made[18]);
    expect(await at(18.001)).toBe("undefined");
  });
});
