/**
 * Does it stay flat? The rate of a drain beside a million other rows (ready, scheduled at ten priorities, ended),
 * over a thousand queues, with larger payloads, and under a held snapshot.
 */
import pg from "pg";
import { microseconds } from "../adapter.ts";
import type { Context, Figures } from "../context.ts";
import { inFlight } from "./enqueue.ts";
import { hold } from "./steady.ts";

const hourMs = 3_600_000;

export async function scale(context: Context): Promise<Figures> {
  const beside = context.scaled(context.sizes.beside);
  const many = context.scaled(context.sizes.many);
  const figures: Figures = { rows: many, jobs: beside };
  {
    const target = await context.fresh("drain");
    const client = await context.open(target);
    await context.fill(client, beside);
    await context.analyze(target);
    figures["none"] = await context.drainFirst(target, beside);
  }
  {
    const target = await context.fresh("drain");
    const client = await context.open(target);
    await context.fill(client, many + beside);
    await context.analyze(target);
    figures["ready"] = await context.drainFirst(target, beside);
  }
  if (context.can("delay")) {
    const target = await context.fresh("drain");
    const client = await context.open(target);
    for (let level = 0; level < 10; level++) {
      const mixed = context.can("priority") ? { priority: level } : {};
      await context.fill(client, Math.floor(many / 10), {
        first: many + level * many,
        delayMs: hourMs,
        ...mixed,
      });
    }
    for (let level = 0; level < 10; level++) {
      const mixed = context.can("priority") ? { priority: level } : {};
      await context.fill(client, Math.floor(beside / 10), {
        first: level * Math.floor(beside / 10),
        ...mixed,
      });
    }
    await context.analyze(target);
    figures["scheduled"] = await context.drainFirst(target, Math.floor(beside / 10) * 10);
  }
  {
    const target = await context.fresh("drain");
    const client = await context.open(target);
    await context.fill(client, many);
    await context.analyze(target);
    await context.drain(client, target, many);
    await context.fill(client, beside);
    await context.analyze(target);
    figures["ended"] = await context.drainFirst(target, beside);
  }
  const { none = NaN } = figures;
  for (const name of ["ready", "scheduled", "ended"]) {
    const rate = figures[name];
    if (rate !== undefined) figures[`${name}Kept`] = rate / none;
  }
  return figures;
}

/** The same jobs over a thousand queues, and over one. */
export async function queues(context: Context): Promise<Figures> {
  const count = context.scaled(context.sizes.beside);
  const figures: Figures = { jobs: count };
  for (const number of [1, 1_000]) {
    const target = await context.fresh("drain", number);
    const client = await context.open(target);
    const each = Math.ceil(count / number);
    for (let queue = 0; queue < number; queue++) {
      await context.fill(client, each, { first: queue * each, ...(number > 1 && { queue }) });
    }
    await context.analyze(target);
    figures[number === 1 ? "oneQueue" : "manyQueues"] = (
      await context.drain(client, target, each * number)
    ).rate;
  }
  figures["manyQueuesKept"] = figures["manyQueues"]! / figures["oneQueue"]!;
  return figures;
}

const payloads = [
  { name: "100B", bytes: 100, part: 1 },
  { name: "10KB", bytes: 10_000, part: 0.2 },
  { name: "1MB", bytes: 1_000_000, part: 0.004 },
];

/** Enqueue with 10 in flight, and drain, by size of the payload. */
export async function payload(context: Context): Promise<Figures> {
  const figures: Figures = {};
  for (const { name, bytes, part } of payloads) {
    const count = Math.max(20, Math.round(context.scaled(context.sizes.beside) * part));
    const target = await context.fresh("drain");
    const client = await context.open(target);
    context.progress(name);
    await context.fill(client, count, { bytes });
    await context.analyze(target);
    figures[`drain${name}`] = (await context.drain(client, target, count)).rate;
    const text = "x".repeat(bytes - 40);
    const { rate } = await inFlight(
      (n) => client.add({ n, at: microseconds(), text }),
      10,
      context.sizes.enqueueSeconds / 2,
    );
    figures[`one10of${name}`] = rate;
  }
  return figures;
}

/** A drain while another connection holds a snapshot: dead rows stay. First and last tenth. */
export async function snapshot(context: Context): Promise<Figures> {
  const count = context.scaled(context.sizes.snapshotJobs);
  const target = await context.fresh("drain");
  const client = await context.open(target);
  await context.fill(client, count);
  await context.analyze(target);
  const holder = new pg.Client({ connectionString: target.url });
  await holder.connect();
  await hold(holder);
  const started = microseconds();
  const { rate, reports } = await context.drain(client, target, count, 1, {
    markEvery: Math.floor(count / 100),
  });
  await holder.end();
  const { marks } = reports[0]!;
  const at = (part: number): readonly [number, number] =>
    marks[Math.min(marks.length, Math.round(part * 100)) - 1] ?? [0, started];
  const between = (from: readonly [number, number], to: readonly [number, number]): number =>
    (to[0] - from[0]) / ((to[1] - from[1]) / 1_000_000);
  const first = between(at(0.01), at(0.11));
  const last = between(at(0.9), at(1));
  return { jobs: count, held: rate, heldFirst: first, heldLast: last, heldKept: last / first };
}
