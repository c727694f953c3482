// What lanes and limited queues count as running, without what has been given back and no claim has taken in yet.
import type { FreshStore } from "./stores.ts";

/** For each lane, in the order of their numbers. */
export async function laneCounts(fresh: FreshStore): Promise<number[]> {
  const laneWakeup = fresh.table("lane_wakeup");
  const back =
    fresh.dialect === "postgres"
      ? `select sum(u.back) from ${laneWakeup} b cross join lateral unnest(b.lanes, b.backs) as u (lane, back) where u.lane = a.id`
      : `select sum(b.back) from ${laneWakeup} b where b.lane = a.id`;
  const rows = await fresh.query(
    `select a.running - coalesce((${back}), 0) as n from ${fresh.table("lane")} a order by a.id`,
  );
  return rows.map((row) => Number(row["n"]));
}

/** For each queue that has a row. */
export async function queueCounts(fresh: FreshStore): Promise<number[]> {
  const rows = await fresh.query(
    `select q.running - coalesce((select sum(f.n) from ${fresh.table("returned_capacity")} f where f.queue = q.name), 0) as n from ${fresh.table("queue")} q`,
  );
  return rows.map((row) => Number(row["n"]));
}
