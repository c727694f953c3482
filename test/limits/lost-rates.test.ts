// O1: a claim counts as starts of its rates. One whose answer was lost has started nothing, and its starts are given back with it:
// each from its own entry, whichever process gives it back.
import { expect, test } from "vitest";
import { onEveryStore } from "../support/stores.ts";
import { type Client, lost, newWorld, quickJob, sessionInfo, type World } from "../support/world.ts";

const everything = { queues: "all", names: "all", limit: 10, order: "highest-first" } as const;
const freshCursor = () => ({ levels: new Map(), rescannedAt: -Infinity });

function loseOneClaim(client: Client): { lost: number } {
  const seen = { lost: 0 };
  client.tap.around = async (verb, call) => {
    const answer = await call();
    if (verb !== "claims.claim" || seen.lost > 0 || (answer as unknown[]).length === 0) return answer;
    seen.lost += 1;
    return lost();
  };
  return seen;
}

/** Entries of starts that stand in queues and lanes. */
async function startsOf(world: World): Promise<[number, number][]> {
  const rows = [...(await world.rows("queue")), ...(await world.rows("lane"))];
  return rows.flatMap((row) => JSON.parse(String(row["starts"] ?? "[]")) as [number, number][]);
}

const rate = { limit: 2, per: "5m" } as const;

onEveryStore((target) => {
  for (const of of ["a queue", "lanes", "lanes in a queue"] as const) {
    const laned = of !== "a queue";
    const options = laned ? { lane: () => "tenant", lanes: of === "lanes" ? { rate } : {} } : {};

    test(`[O1] the starts of a claim whose answer was lost are given back to the rate of ${of}`, async () => {
      const world = await newWorld(target);
      const a = await world.client();
      const { job, runs } = quickJob(world, "quick", options);
      if (of !== "lanes") await a.hf.queues.set("default", { rate });
      for (let n = 0; n < 3; n++) await a.hf.enqueue(job, { n });
      const seen = loseOneClaim(a);
      await a.work([job], { queues: { default: 4 } });
      await world.until("two to run", () => runs.length === 2, "30s");
      expect(seen.lost).toBe(1);
      // The third keeps to the rate, by the starts that really were.
      await world.advance("4m", "10s");
      expect(runs).toHaveLength(2);
      await world.until("the third to run", () => runs.length === 3, "2m", "1s");
    });

    test(`[O1] the starts of a claim that came after its session was closed are given back to the rate of ${of}`, async () => {
      const world = await newWorld(target);
      const a = await world.client();
      const { job, runs } = quickJob(world, "quick", options);
      if (of !== "lanes") await a.hf.queues.set("default", { rate });
      for (let n = 0; n < 2; n++) await a.hf.enqueue(job, { n });
      const session = await a.tap.raw.sessions.open(sessionInfo());
      await a.tap.raw.claims.checkDue(everything);
      expect(await a.tap.raw.claims.claim(session, everything, freshCursor())).toHaveLength(2);
      const now = world.clock.now();
      await world.fresh.query(
        `update ${world.fresh.table("session")} set lease_until = ?, closed_at = ? where id = ?`,
        [now, now, session],
      );
      await world.advance("10s");
      expect((await startsOf(world)).map(([, n]) => n)).toEqual([2]);
      const b = await world.client();
      await b.work([job], { queues: { default: 4 } });
      await world.until("both to run", () => runs.length === 2);
      const starts = await startsOf(world);
      expect(starts.reduce((sum, [, n]) => sum + n, 0)).toBe(2);
      for (const [at] of starts) expect(at).toBeGreaterThan(now);
    });
  }
});
