// A database with a backlog that a claim must not feel, written by plain SQL because nothing else is quick enough:
// 100,000 ready jobs of a name that nobody serves at the head of the queue, 20,000 scheduled jobs of the served kind
// at a higher priority, 1,000 queues with a job each, 20,000 ended jobs that slots of schedules made, and 300 jobs that can be
// claimed.
import type { FreshStore } from "../support/stores.ts";

export const backlog = {
  unserved: 100_000,
  scheduled: 20_000,
  queues: 1_000,
  ended: 20_000,
  claimable: 300,
} as const;

/** Beside it: runs with steps, jobs that wait for others, and a day of gauges. */
export const beside = { runs: 5_000, steps: 2, waiting: 2_000, minutes: 1_440, sources: 20 } as const;

/** Texts of either dialect: numbers from 0, and the id of the n-th job of a name. */
function texts(fresh: FreshStore): { series: (count: number) => string; id: (kind: number) => string } {
  return fresh.dialect === "postgres"
    ? {
        series: (count) => `generate_series(0, ${count - 1}) as g (n)`,
        id: (kind) => `('019b76da-${kind}000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid`,
      }
    : {
        series: (count) =>
          `(with recursive g (n) as (select 0 union all select n + 1 from g where n < ${count - 1}) select n from g) as g`,
        id: (kind) => `'019b76da-${kind}000-7000-8000-' || printf('%012x', n)`,
      };
}

/** The steps are of ended jobs; what waits is scheduled, and waits for jobs that nobody serves. Two queues drain. */
export async function fillBeside(fresh: FreshStore, now: number): Promise<void> {
  const { series, id } = texts(fresh);
  const minute = now - (now % 60_000);
  await fresh.query("begin");
  for (let step = 0; step < beside.steps; step += 1)
    await fresh.query(
      `insert into ${fresh.table("step")} (job, name, seq, given_order, kind, state, attempt, tries, fails, given, undo, started_at)
       select ${id(5)}, 'step-${step}', ${step}, ${step}, 'step', '${step === 0 ? "done" : "open"}', 1, 1, 0, ${step}, false, ${now} from ${series(beside.runs)}`,
    );
  await fresh.query(
    `insert into ${fresh.table("dependency")} (job, on_job, policy) select ${id(2)}, ${id(1)}, 'wait' from ${series(beside.waiting)}`,
  );
  for (let source = 0; source < beside.sources; source += 1)
    await fresh.query(
      `insert into ${fresh.table("gauge")} (minute, source, name, value)
       select ${minute} - n * 60000, 'queue-${source}', 'ready', 1 from ${series(beside.minutes)}`,
    );
  await fresh.query(
    `insert into ${fresh.table("queue")} (name, drain_at, settings) values ('default', ${now}, '{}'), ('queue-7', ${now}, '{}')`,
  );
  await fresh.query("commit");
}

export async function fillBacklog(fresh: FreshStore, now: number): Promise<void> {
  const [jobType, job, ready, history] = ["job_type", "job", "ready", "history"].map((table) =>
    fresh.table(table),
  );
  const { series, id } = texts(fresh);
  await fresh.query("begin");
  await fresh.query(
    `insert into ${jobType} (queue, name) values ('default', 'served'), ('default', 'unserved')`,
  );
  await fresh.query(
    `insert into ${jobType} (queue, name) select 'queue-' || n, 'served' from ${series(backlog.queues)}`,
  );
  const jobTypeOf = async (name: string): Promise<number> =>
    Number(
      (await fresh.query(`select id from ${jobType} where queue = 'default' and name = ?`, [name]))[0]!["id"],
    );
  const served = await jobTypeOf("served");
  const unserved = await jobTypeOf("unserved");
  const put = async (
    kind: number,
    count: number,
    where: { jobType: string; rank: number; runAt: number },
  ): Promise<void> => {
    await fresh.query(
      `insert into ${job} (id, job_type, created_at, input) select ${id(kind)}, ${where.jobType}, ${now}, '1' from ${series(count)}`,
    );
    await fresh.query(
      `insert into ${ready} (${fresh.jobKey}, job_type, rank, run_at) select ${fresh.jobKeyOf(id(kind))}, ${where.jobType}, ${where.rank}, ${where.runAt} from ${series(count)}`,
    );
  };
  await put(1, backlog.unserved, { jobType: String(unserved), rank: -9, runAt: now - 60_000 });
  await put(2, backlog.scheduled, { jobType: String(served), rank: -5, runAt: now + 3_600_000 });
  await put(3, backlog.claimable, { jobType: String(served), rank: 0, runAt: now - 1_000 });
  const jobTypeOfQueue = `(select l.id from ${jobType} l where l.queue = 'queue-' || n and l.name = 'served')`;
  await put(4, backlog.queues, { jobType: jobTypeOfQueue, rank: 0, runAt: now - 1_000 });
  await fresh.query(
    `insert into ${job} (id, job_type, created_at, input) select ${id(5)}, ${served}, ${now}, '1' from ${series(backlog.ended)}`,
  );
  await fresh.query(
    `insert into ${history} (${fresh.jobKey}, job_type, rank, state, attempt, crashes, throttles, run_at, ended_at)
     select ${fresh.jobKeyOf(id(5))}, ${served}, 0, 'done', 1, 0, 0, ${now}, ${now} from ${series(backlog.ended)}`,
  );
  // Each ended job was a slot's: of a schedule that fires often, and of others before and behind it.
  await fresh.query(
    `insert into ${fresh.table("occurrence")} (schedule, at, job, made_at)
     select case when n % 10 = 0 then 'a' when n % 10 = 9 then 'z' else 'often' end, ${now} - n * 1000, ${id(5)}, ${now} from ${series(backlog.ended)}`,
  );
  await fresh.query("commit");
}

/** What goes wrong, what runs, and lanes: for looks that find nothing of it in the plain backlog. */
export const trouble = {
  dead: 100_000,
  retrying: 50_000,
  running: 1_000,
  lanes: 2_000,
  laned: 40_000,
  minutes: 1_440,
  kinds: 10,
} as const;

/**
 * 100,000 dead jobs of ten causes, 50,000 that wait for their next attempt, 1,000 that run, 40,000 ready ones in 2,000 lanes
 * (half of them in the first lane; every fifth is full), and a day of metrics.
 */
export async function fillTrouble(fresh: FreshStore, now: number, session: number): Promise<void> {
  const [jobType, job, ready, history, claim, lane, metric] = [
    "job_type",
    "job",
    "ready",
    "history",
    "claim",
    "lane",
    "metric",
  ].map((table) => fresh.table(table));
  const { series, id } = texts(fresh);
  const minute = now - (now % 60_000);
  const group = `'cause-' || n % 10`;
  await fresh.query("begin");
  await fresh.query(
    `insert into ${jobType} (queue, name, laned) values ('broken', 'failing', false), ('tenants', 'laned', true)`,
  );
  const jobTypeOf = (queue: string): string => `(select l.id from ${jobType} l where l.queue = '${queue}')`;
  const jobs = (kind: number, count: number, queue: string): Promise<unknown> =>
    fresh.query(
      `insert into ${job} (id, job_type, created_at, input) select ${id(kind)}, ${jobTypeOf(queue)}, ${now}, '1' from ${series(count)}`,
    );
  await jobs(6, trouble.dead, "broken");
  await fresh.query(
    `insert into ${history} (${fresh.jobKey}, job_type, rank, state, attempt, crashes, throttles, run_at, ended_at, failure_group, errors)
     select ${fresh.jobKeyOf(id(6))}, ${jobTypeOf("broken")}, 0, 'dead', 1, 0, 0, ${now}, ${now}, ${group}, '[]' from ${series(trouble.dead)}`,
  );
  await jobs(7, trouble.retrying, "broken");
  await fresh.query(
    `insert into ${ready} (${fresh.jobKey}, job_type, rank, run_at, attempt, failure_group, errors)
     select ${fresh.jobKeyOf(id(7))}, ${jobTypeOf("broken")}, 0, ${now} + 60000, 1, ${group}, '[]' from ${series(trouble.retrying)}`,
  );
  await jobs(8, trouble.running, "broken");
  await fresh.query(
    `insert into ${ready} (${fresh.jobKey}, job_type, rank, run_at, token, session, started_at, attempt)
     select ${fresh.jobKeyOf(id(8))}, ${jobTypeOf("broken")}, 0, ${now} - 1000, 1000000 + n, ${session}, ${now}, 1 from ${series(trouble.running)}`,
  );
  await fresh.query(
    fresh.dialect === "postgres"
      ? `insert into ${claim} (token, session, ids) select 1000000 + n, ${session}, array[${id(8)}] from ${series(trouble.running)}`
      : `insert into ${claim} (token, session, ids) select 1000000 + n, ${session}, '[' || ${fresh.jobKeyOf(id(8))} || ']' from ${series(trouble.running)}`,
  );
  await fresh.query(
    `insert into ${lane} (running, concurrency, used_at, queue, key)
     select case when n % 5 = 0 then 1 else 0 end, 1, ${now}, 'tenants', 'tenant-' || n from ${series(trouble.lanes)}`,
  );
  await jobs(9, trouble.laned, "tenants");
  const laneOf = `(select a.id from ${lane} a where a.queue = 'tenants' and a.key = 'tenant-' || (case when n % 2 = 0 then 0 else n % ${trouble.lanes} end))`;
  await fresh.query(
    `insert into ${ready} (${fresh.jobKey}, job_type, rank, run_at, lane)
     select ${fresh.jobKeyOf(id(9))}, ${jobTypeOf("tenants")}, 0, ${now} - 60000 + n, ${laneOf} from ${series(trouble.laned)}`,
  );
  for (let kind = 0; kind < trouble.kinds; kind += 1)
    await fresh.query(
      `insert into ${metric} (minute, queue, name, worker, done, failed, dead, cancelled, throttled, released, lost, ran, waited)
       select ${minute} - n * 60000, 'queue-${kind}', 'kind-${kind}', 'w', 1, 0, 0, 0, 0, 0, 0, '[]', '[]' from ${series(trouble.minutes)}`,
    );
  await fresh.query("commit");
}
