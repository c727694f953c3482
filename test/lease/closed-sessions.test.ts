// O1: a claim may commit after its session was closed: the server goes on with what its client has given up. Whichever of the two
// comes first, somebody finds the jobs and gives them back, and none of them has crashed: no process ever heard of it.
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { onEveryStore, onPostgres } from "../support/stores.ts";
import { type Client, jobOf, newWorld, quickJob, sessionInfo, type World } from "../support/world.ts";

const everything = { queues: "all", names: "all", limit: 10, order: "highest-first" } as const;
const freshCursor = () => ({ levels: new Map(), rescannedAt: -Infinity });

/** The rows as they are when a claim commits after its session was closed. SQLite has one writer, and never comes to this by itself. */
async function lateClaim(world: World, client: Client): Promise<string> {
  const { id } = await client.hf.enqueue("quick", { n: 1 });
  const session = await client.tap.raw.sessions.open(sessionInfo());
  const taken = await client.tap.raw.claims.claim(session, everything, freshCursor());
  expect(taken.map((job) => job.id)).toEqual([id]);
  const now = world.clock.now();
  await world.fresh.query(
    `update ${world.fresh.table("session")} set lease_until = ?, closed_at = ? where id = ?`,
    [now, now, session],
  );
  return id;
}

onEveryStore((target) => {
  test("[O1] jobs of a claim that came after its session was closed run beside a worker, uncrashed", async () => {
    const world = await newWorld(target);
    const a = await world.client();
    const b = await world.client();
    const { job, runs } = quickJob(world);
    const id = await lateClaim(world, a);
    const crashed = b.told("job.crashed");
    await b.work([job], { queues: { default: 1 } });
    await world.until("it to end", async () => (await jobOf(a, id)).state === "done", "60s");
    expect(runs).toMatchObject([{ n: 1, attempt: 1 }]);
    expect(await jobOf(a, id)).toMatchObject({ attempt: 1, crashes: 0, errors: [] });
    expect(crashed).toEqual([]);
    expect(await world.rows("claim")).toEqual([]);
  });

  test("[O1] jobs of a claim that came after its session was closed are leased where no worker runs", async () => {
    const world = await newWorld(target);
    const a = await world.client();
    const b = await world.client();
    expect(await b.hf.lease()).toEqual([]);
    const id = await lateClaim(world, a);
    let leases = await b.hf.lease();
    await world.until(
      "it to be leased",
      async () => leases.length > 0 || (leases = await b.hf.lease()).length > 0,
      "60s",
      "5s",
    );
    expect(leases).toMatchObject([{ id, attempt: 1 }]);
    await leases[0]!.done();
    expect(await jobOf(a, id)).toMatchObject({ state: "done", attempt: 1, crashes: 0 });
  });

  test("[O1] a claim whose session's lease passed before it came counts as a crash: its holder may have begun", async () => {
    const world = await newWorld(target);
    const a = await world.client();
    const b = await world.client();
    const { job, runs } = quickJob(world);
    const { id } = await a.hf.enqueue(job, { n: 1 });
    const session = await a.tap.raw.sessions.open(sessionInfo({ leaseMs: 1_000 }));
    await a.tap.raw.claims.claim(session, everything, freshCursor());
    await world.advance("1s");
    // Buried before the claim was there.
    await world.fresh.query(
      `update ${world.fresh.table("session")} set closed_at = lease_until where id = ?`,
      [session],
    );
    await b.work([job], { queues: { default: 1 } });
    await world.until("it to end", async () => (await jobOf(a, id)).state === "done", "60s");
    expect(runs).toHaveLength(1);
    expect(await jobOf(a, id)).toMatchObject({ crashes: 1 });
  });
});

onPostgres((target) => {
  test("[O1] a claim that is under way while its session is closed is found by another worker, uncrashed", async () => {
    const world = await newWorld(target);
    const a = await world.client();
    const b = await world.client();
    const { job, runs } = quickJob(world);
    const { id } = await a.hf.enqueue(job, { n: 1 });
    const session = await a.tap.raw.sessions.open(sessionInfo());
    // A transaction that changes a sequence keeps claims from their tokens: this one has begun, and stands.
    const holder = new pg.Client(world.fresh.url);
    await holder.connect();
    onTestFinished(() => holder.end());
    await holder.query("begin");
    await holder.query(`alter sequence ${world.fresh.table("token")} increment by 1`);
    const claiming = a.tap.raw.claims.claim(session, everything, freshCursor());
    const standing = `select count(*) as n from pg_locks where not granted and relation = '${world.fresh.table("token")}'::regclass`;
    for (let n = 0; n === 0;) n = Number((await world.fresh.query(standing))[0]!["n"]);
    await a.tap.raw.sessions.close(session);
    await holder.query("rollback");
    expect((await claiming).map((each) => each.id)).toEqual([id]);
    expect((await world.rows("session"))[0]!["closed_at"]).not.toBe(null);
    await b.work([job], { queues: { default: 1 } });
    await world.until("it to end", async () => (await jobOf(a, id)).state === "done", "60s");
    expect(runs).toHaveLength(1);
    expect(await jobOf(a, id)).toMatchObject({ attempt: 1, crashes: 0 });
  });
});
