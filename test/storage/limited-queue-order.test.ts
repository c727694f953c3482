// Whoever locks the rows of several queues does so in the order of their names: in any other order two of them wait for each other until
// one is refused, a second later. Postgres alone: on SQLite one writes at a time.
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import type { Outcome } from "../../src/jobs/outcome.ts";
import { decide, policyFor, UNHEARD } from "../../src/jobs/transition.ts";
import { onPostgres } from "../support/stores.ts";
import { waitFor } from "../support/wait.ts";
import { newWorld, quickJob, sessionInfo, type World } from "../support/world.ts";

/** Somebody who has the row of the queue "a" and will want that of "b" next, as a claim for both does. */
class Holder {
  readonly #client: pg.Client;
  readonly #table: string;

  private constructor(client: pg.Client, table: string) {
    this.#client = client;
    this.#table = table;
  }

  static async of(world: World): Promise<Holder> {
    const client = new pg.Client(world.fresh.url);
    await client.connect();
    onTestFinished(() => client.end());
    return new Holder(client, world.fresh.table("queue"));
  }

  /** @returns whether "b" is free while the other waits for "a" */
  async meets(other: () => Promise<unknown>): Promise<boolean> {
    await this.#client.query("begin");
    await this.#client.query(`select name from ${this.#table} where name = 'a' for update`);
    const ended = other().catch(() => undefined); // it may be told that it has waited for too long
    const { rows } = await this.#client.query<{ pid: number }>("select pg_backend_pid() as pid");
    const waits = `select 1 from pg_stat_activity where $1 = any(pg_blocking_pids(pid))`;
    await waitFor(async () => (await this.#client.query(waits, [rows[0]?.pid])).rowCount, {
      what: "the other to wait for the row",
      everyMs: 1,
    });
    const free = this.#client.query(`select name from ${this.#table} where name = 'b' for update nowait`);
    const answer = await free.then(
      () => true,
      () => false,
    );
    await this.#client.query("rollback");
    await ended;
    return answer;
  }
}

onPostgres((target) => {
  test("[O1] a claim with a budget and one for two queues with limits never wait for each other", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    const { job } = quickJob(world, "call", { budget: "api" });
    await client.hf.budgets.set("api", { limit: 100, per: "1s" });
    for (const queue of ["a", "b"]) {
      await client.hf.queues.set(queue, { concurrency: 5 });
      for (let n = 0; n < 4; n++) await client.hf.enqueue(job, { n }, { queue });
    }
    const session = await client.tap.raw.sessions.open(sessionInfo());
    const queues = new Map([
      ["a", 1],
      ["b", 1],
    ]);
    await client.tap.raw.claims.checkDue({ queues, names: ["call"], limit: 2, order: "highest-first" });
    const holder = await Holder.of(world);
    const claim = () =>
      client.tap.raw.claims.claimBudgeted(
        session,
        { queues, limit: 2, order: "highest-first" },
        { name: "api", tokens: 1, names: ["call"] },
        { levels: new Map(), rescannedAt: -Infinity },
      );
    // The queues are asked by turns.
    for (let rotation = 0; rotation < 4; rotation++)
      expect(await holder.meets(claim), `rotation ${rotation}`).toBe(true);
  });

  test("[O1] a settle that gives starts back to one queue and cools another down takes the first by name first", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    const { job } = quickJob(world, "call");
    await client.hf.queues.set("a", { cooldown: { base: "1s", max: "1m" } });
    await client.hf.queues.set("b", { rate: { limit: 10, per: "1m" } });
    for (const queue of ["a", "b"]) await client.hf.enqueue(job, { n: 1 }, { queue });
    const session = await client.tap.raw.sessions.open(sessionInfo());
    const queues = ["a", "b"];
    const scope = { queues, names: "all", limit: 2, order: "highest-first" } as const;
    await client.tap.raw.claims.checkDue(scope);
    const cursor = { levels: new Map(), rescannedAt: -Infinity };
    const claimed = await client.tap.raw.claims.claim(session, scope, cursor);
    const outcomes = new Map<string, Outcome>([
      ["a", { kind: "throttled", delayMs: null, reason: "429" }],
      ["b", UNHEARD],
    ]);
    const env = { now: () => world.clock.now(), random: () => 0.5 };
    const transitions = claimed.map((one) => {
      return decide(one, outcomes.get(one.queue)!, policyFor(one, null, null), env);
    });
    expect(
      transitions.map(({ unstarted, counted }) => unstarted === true && counted !== undefined),
    ).toContain(true);
    const holder = await Holder.of(world);
    expect(await holder.meets(() => client.tap.raw.settles.settle(session, transitions, []))).toBe(true);
  });
});
