// Races for one row in Postgres, made certain: the test holds the row's lock as another process would, and lets go of it
// with that process's change in place. SQLite has one writer at a time, so nothing of this can happen there.
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { Compiler } from "../../src/storage/postgres/driver.ts";
import { CANCEL, PAUSE } from "../../src/lease/request-rows.ts";
import { onPostgres } from "../support/stores.ts";
import { newWorld, sessionInfo, type World } from "../support/world.ts";

/** Runs a change in a transaction of its own, commits it when somebody waits for it, and answers with what that one got. */
async function behind<T>(
  { fresh }: World,
  changes: readonly { sql: string; params: unknown[] }[],
  waits: () => Promise<T>,
): Promise<T> {
  await fresh.query("begin");
  for (const { sql, params } of changes) await fresh.query(sql, params);
  let over = false;
  const waiting = waits().finally(() => (over = true));
  for (let blocked = 0; blocked === 0 && !over;) {
    const [row] = await fresh.query("select count(*) as n from pg_locks where not granted");
    blocked = Number(row!["n"]);
  }
  expect(over, "it should have waited").toBe(false);
  await fresh.query("commit");
  return waiting;
}

onPostgres((target) => {
  test("[H3] of two sessions that ask for a probe at once, one wins, also if the other had to wait", async () => {
    const world = await newWorld(target);
    const { tap } = await world.client();
    const [first, second] = [
      await tap.raw.sessions.open(sessionInfo()),
      await tap.raw.sessions.open(sessionInfo()),
    ];
    const breaker = world.fresh.table("breaker");
    await world.fresh.query(
      `insert into ${breaker} (key, failures, opened_at, open_until) values ('queue:default', 10, 0, 0)`,
    );
    const changes = [{ sql: `update ${breaker} set probe_session = ?`, params: [first] }];
    expect(await behind(world, changes, () => tap.raw.breakers.probe(second, "queue:default"))).toBe(false);
    const [row] = await world.fresh.query(`select probe_session from ${breaker}`);
    expect(Number(row!["probe_session"])).toBe(first);
  });

  test("[A12] a key that another has taken over from an ended job is not taken from them", async () => {
    const world = await newWorld(target);
    const { hf } = await world.client();
    await hf.enqueue("any", 1);
    const [ended, theirs, ours] = [1, 2, 3].map((n) => `01900000-0000-7000-8000-00000000000${n}`);
    const keys = world.fresh.table("unique_key");
    await world.fresh.query(`insert into ${keys} (scope, key, id) values ('job:any', 'k', ?)`, [ended]);
    const changes = [
      { sql: `update ${keys} set id = ?`, params: [theirs] },
      { sql: `insert into ${world.fresh.table("enqueue")} (id, name) values (?, 'any')`, params: [theirs] },
    ];
    // The statement by itself: whoever has seen that the key is stale, and comes second.
    const rows = [{ scope: "job:any", key: "k", id: ours!, forMs: null, holder: ended! }];
    const compiler = new Compiler(world.fresh.options.schema!);
    const client = new pg.Client({ connectionString: world.fresh.url });
    await client.connect();
    onTestFinished(() => client.end());
    const { text, values } = compiler.prepare({ name: "takeStaleKeys", params: { now: null, rows } });
    const taken = await behind(world, changes, () => client.query(text, [...values]));
    expect(taken.rows).toEqual([]);
    expect(await world.fresh.query(`select id from ${keys}`)).toEqual([{ id: theirs }]);
  });

  // Whoever gives a job back waits for the one who requests something of it, and must see what that one has written.
  for (const [what, request, state] of [
    ["a cancel", "cancel", "cancelled"],
    ["a pause", "pause", "waiting"],
  ] as const) {
    test(`[E2] ${what} that was asked while a failure was on its way to the database is granted`, async () => {
      const world = await newWorld(target);
      const { hf, tap } = await world.client();
      const { id } = await hf.enqueue("any", 1, { attempts: 3 });
      const [lease] = await hf.lease({ queues: ["default"], limit: 1, for: "1m" });
      const script = await asked(world, id, request);
      await behind(world, script, () => lease!.fail(new Error("late")));
      expect(await tap.raw.sessions.forgetDead()).toBe(0);
      expect(await hf.jobs.get(id)).toMatchObject({ state });
      expect(await world.rows("cancel")).toEqual([]);
    });
  }

  test("[E2] a pause that was withdrawn while a failure was on its way to the database does not hold the job", async () => {
    const world = await newWorld(target);
    const { hf } = await world.client();
    const { id } = await hf.enqueue("any", 1, { attempts: 3 });
    const [lease] = await hf.lease({ queues: ["default"], limit: 1, for: "1m" });
    expect(await hf.jobs.pause(id)).toBe("pause_requested");
    const withdrawn = [
      { sql: `update ${world.fresh.table("ready")} set request = null where id = ?`, params: [id] },
      { sql: `delete from ${world.fresh.table("cancel")} where id = ?`, params: [id] },
    ];
    await behind(world, withdrawn, () => lease!.fail(new Error("late")));
    expect(await hf.jobs.get(id)).toMatchObject({ state: "scheduled", waitsFor: null });
  });
});

/** What `askHolder` writes. */
async function asked({ fresh }: World, id: string, request: "pause" | "cancel") {
  const ready = fresh.table("ready");
  const [row] = await fresh.query(`select session, token from ${ready} where id = ?`, [id]);
  const cancel = `insert into ${fresh.table("cancel")} (id, session, token, asked_at, pause, reason) values (?, ?, ?, 0, ?, 'because')`;
  return [
    {
      sql: `update ${ready} set request = ? where id = ?`,
      params: [request === "pause" ? PAUSE : CANCEL, id],
    },
    { sql: cancel, params: [id, row!["session"], row!["token"], request === "pause"] },
  ];
}
