/**
 * Bulk enqueue, then a drain of no-op jobs; with one process or four. What a job costs: WAL, queries, execution time
 * in Postgres, CPU time in Node, memory.
 */
import type { Client, Target } from "../adapter.ts";
import type { Context, DrainResult, Figures } from "../context.ts";

async function filled(
  context: Context,
  count: number,
): Promise<{ target: Target; client: Client; figures: Figures }> {
  const target = await context.fresh("drain");
  const client = await context.open(target);
  const before = await context.counters();
  const bulk = await context.fill(client, count);
  const counters = await context.since(before);
  return { target, client, figures: { bulk, ...(counters && { bulkWal: counters.walBytes / count }) } };
}

export function costs({ counters, reports, startMs, machine }: DrainResult, count: number): Figures {
  const cpu = reports.reduce((sum, { cpuUs }) => sum + cpuUs, 0);
  return {
    startMs,
    rssMb: Math.max(...reports.map(({ maxRss }) => maxRss)) / 2 ** 20,
    drainCpuUs: cpu / count,
    drainMachineUs: (machine.busyMs * 1000) / count,
    drainIdle: machine.idleMs / (machine.idleMs + machine.busyMs),
    ...(counters && {
      drainWal: counters.walBytes / count,
      drainQueries: counters.queries / count,
      drainExecUs: (counters.execMs * 1000) / count,
    }),
  };
}

export async function bulk(context: Context): Promise<Figures> {
  const count = context.scaled(context.sizes.jobs);
  return { jobs: count, ...(await filled(context, count)).figures };
}

export async function drain(context: Context): Promise<Figures> {
  const count = context.scaled(context.sizes.jobs);
  const { target, client, figures } = await filled(context, count);
  await context.analyze(target);
  const result = await context.drain(client, target, count);
  const cost = costs(result, count);
  const wal = figures["bulkWal"] === undefined ? {} : { wal: figures["bulkWal"] + cost["drainWal"]! };
  return { jobs: count, ...figures, drain: result.rate, ...cost, ...wal };
}

/**
 * By one process and by four, four times as many jobs, so that each of the four has as many as the one of `drain`: with fewer, their
 * start is most of what is measured (of 150,000 jobs four processes drained 0.73 of the rate of one, of 600,000 1.04).
 */
export async function drain4(context: Context): Promise<Figures> {
  const count = 4 * context.scaled(context.sizes.jobs);
  const figures: Figures = { jobs: count };
  for (const processes of [1, 4]) {
    const { target, client } = await filled(context, count);
    await context.analyze(target);
    const { rate, reports } = await context.drain(client, target, count, processes);
    figures[`drain${processes}`] = rate;
    const shares = reports.map((report) => report.count / count);
    Object.assign(figures, { leastShare: Math.min(...shares), greatestShare: Math.max(...shares) });
  }
  return figures;
}

/** RSS of the worker process while it drains a million jobs. */
export async function memory(context: Context): Promise<Figures> {
  const count = context.scaled(context.sizes.many);
  const { target, client } = await filled(context, count);
  await context.analyze(target);
  const result = await context.drain(client, target, count);
  return { jobs: count, memoryMb: costs(result, count)["rssMb"]!, memoryDrain: result.rate };
}
