// A database with a backlog that a claim must not feel, written by plain SQL because nothing else is quick enough:
// 100,000 ready jobs of a kind that nobody serves at the head of the queue, 20,000 scheduled jobs of the served kind
// at a higher priority, 1,000 queues with a job each, 20,000 ended jobs, and 300 jobs that can be claimed.
import type { FreshStore } from "../support/stores.ts";

export const backlog = {
  unserved: 100_000,
  scheduled: 20_000,
  queues: 1_000,
  ended: 20_000,
  claimable: 300,
} as const;

export async function fillBacklog(fresh: FreshStore, now: number): Promise<void> {
  const [line, job, ready, history] = ["line", "job", "ready", "history"].map((table) => fresh.table(table));
  const series = (count: number): string =>
    fresh.dialect === "postgres"
      ? `generate_series(0, ${count - 1}) as g (n)`
      : `(with recursive g (n) as (select 0 union all select n + 1 from g where n < ${count - 1}) select n from g) as g`;
  const id = (kind: number): string =>
    fresh.dialect === "postgres"
      ? `('019b76da-${kind}000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid`
      : `'019b76da-${kind}000-7000-8000-' || printf('%012x', n)`;
  await fresh.query("begin");
  await fresh.query(
    `insert into ${line} (queue, name) values ('default', 'served'), ('default', 'unserved')`,
  );
  await fresh.query(
    `insert into ${line} (queue, name) select 'queue-' || n, 'served' from ${series(backlog.queues)}`,
  );
  const lineOf = async (name: string): Promise<number> =>
    Number(
      (await fresh.query(`select id from ${line} where queue = 'default' and name = ?`, [name]))[0]!["id"],
    );
  const served = await lineOf("served");
  const unserved = await lineOf("unserved");
  const put = async (
    kind: number,
    count: number,
    where: { line: string; rank: number; runAt: number },
  ): Promise<void> => {
    await fresh.query(
      `insert into ${job} (id, line, created_at, input) select ${id(kind)}, ${where.line}, ${now}, '1' from ${series(count)}`,
    );
    await fresh.query(
      `insert into ${ready} (${fresh.jobKey}, line, rank, run_at) select ${fresh.jobKeyOf(id(kind))}, ${where.line}, ${where.rank}, ${where.runAt} from ${series(count)}`,
    );
  };
  await put(1, backlog.unserved, { line: String(unserved), rank: -9, runAt: now - 60_000 });
  await put(2, backlog.scheduled, { line: String(served), rank: -5, runAt: now + 3_600_000 });
  await put(3, backlog.claimable, { line: String(served), rank: 0, runAt: now - 1_000 });
  const lineOfQueue = `(select l.id from ${line} l where l.queue = 'queue-' || n and l.name = 'served')`;
  await put(4, backlog.queues, { line: lineOfQueue, rank: 0, runAt: now - 1_000 });
  await fresh.query(
    `insert into ${job} (id, line, created_at, input) select ${id(5)}, ${served}, ${now}, '1' from ${series(backlog.ended)}`,
  );
  await fresh.query(
    `insert into ${history} (${fresh.jobKey}, line, rank, state, attempt, crashes, throttles, run_at, ended_at)
     select ${fresh.jobKeyOf(id(5))}, ${served}, 0, 'done', 1, 0, 0, ${now}, ${now} from ${series(backlog.ended)}`,
  );
  await fresh.query("commit");
}
