// An hour of work that is already over, made by the product itself on a clock that is moved through it: charts, percentiles,
// failures and schedules then look as they do in a system that has been running, not one that was started a minute ago.
import {
  Dead,
  defineJob,
  defineSchedule,
  fixed,
  type Holdfast,
  open,
  silentLogger,
} from "../../src/index.ts";
import { FakeClock } from "../../src/testing/index.ts";

const minute = 60_000;

/** The same numbers in every run: pictures that differ should differ for a reason. */
function dice(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 4_294_967_296;
    return state / 4_294_967_296;
  };
}

const people = ["ann", "bob", "carla", "dmitri", "eve", "farid"];

export interface Past {
  /** A run that has come through tries, called jobs and a sleep, and waits for a signal; and one that is done. */
  readonly waiting: string;
  readonly done: string;
}

/** Fills the database at `url` with the last hour (or so many minutes), until it has caught up with the present. */
export async function fillPast(url: string, minutes = 62): Promise<Past> {
  const clock = new FakeClock(Date.now() - minutes * minute - 86_400_000);
  const random = dice(7);
  const hf = await open(url, { clock, random, logger: silentLogger, jobLog: true });
  const takes = (ms: number): Promise<void> => new Promise((resolve) => void clock.after(ms, resolve));
  const between = (from: number, to: number): number => from + random() * (to - from);
  const mail = defineJob({
    name: "send-mail",
    queue: "mail",
    retry: { attempts: 5, backoff: fixed("45s") },
    run: async (input: { to: string; template: string }, ctx) => {
      await takes(between(120, 900));
      ctx.log.info({ to: input.to, template: input.template }, "handed to the mail server");
      if (ctx.attempt === 1 && random() < 0.03) throw new TypeError("connect ECONNREFUSED 10.0.0.12:443");
      return { messageId: `m-${Math.floor(random() * 1e6)}` };
    },
  });
  const resize = defineJob({
    name: "resize-image",
    queue: "media",
    run: async (_input: { file: string }) => takes(between(300, 2_400)),
  });
  const charge = defineJob({
    name: "charge-card",
    queue: "billing",
    retry: { attempts: 3, backoff: fixed("20s") },
    run: async (input: { customer: string; cents: number }) => {
      await takes(between(200, 700));
      const luck = random();
      if (luck < 0.012) throw new Dead("card 4242 was declined by the bank");
      if (luck < 0.03) throw new Error("503 from the bank");
      return { charged: input.cents };
    },
  });
  const report = defineJob({
    name: "build-report",
    queue: "reports",
    run: async (_input: { day: string }) => takes(between(4_000, 14_000)),
  });
  const label = defineJob({
    name: "print-label",
    queue: "orders",
    run: async (_box: number) => takes(between(9_000, 26_000)),
  });
  const order = defineJob({
    name: "ship-order",
    queue: "orders",
    run: async (input: { order: string; boxes: number }, ctx) => {
      ctx.log.info({ order: input.order }, "fulfilling");
      const shelf = await ctx.step("reserve", async () => {
        await takes(1_800);
        return { shelf: "B12" };
      });
      await ctx.step(
        "charge",
        async ({ attempt }) => {
          await takes(2_400);
          ctx.log.warn({ attempt }, "the bank is slow");
          if (attempt < 3) throw new Error("503 from the bank");
          return { charged: 1_990 };
        },
        { retry: { attempts: 5, backoff: fixed("25s") } },
      );
      await ctx.all(Array.from({ length: input.boxes }, (_, box) => ctx.call(label, box)));
      await ctx.sleep("cool-off", "2m");
      await ctx.step("pick", async () => {
        await takes(14_000);
        return { from: shelf.shelf, picked: input.boxes };
      });
      const packed = await ctx.waitFor<{ boxes: number }>("packed", { key: input.order, timeout: "3d" });
      await ctx.step("tell", () => takes(900));
      return { boxes: packed?.boxes ?? 0 };
    },
  });
  const daily = (name: string, cron: string) =>
    defineSchedule({ name, cron, timezone: "Europe/Berlin", job: report, input: { day: name } });
  const schedules = [
    daily("hourly-sync", "0 * * * *"),
    daily("exchange-rates", "0 8-18 * * *"),
    daily("backup", "0 3 * * *"),
    daily("invoices", "0 3 * * *"),
    daily("stock-count", "0 3,15 * * *"),
    daily("cleanup", "0 */6 * * *"),
    defineSchedule({ name: "reports", cron: "*/5 * * * *", job: report, input: { day: "today" } }),
    defineSchedule({
      name: "nightly-digest",
      cron: "30 2 * * *",
      timezone: "Europe/Berlin",
      job: report,
      input: { day: "yesterday" },
    }),
  ];
  const kinds = [mail, resize, charge, report, label, order];
  const options = {
    queues: { mail: 2, media: 3, billing: 1, reports: 1, orders: 3 },
    schedules,
    name: "web-1",
    release: "v41",
    lease: "2d",
    heartbeat: "12h",
  };
  // The build before was there the day before: only the one that comes is a deploy.
  const before = hf.work(kinds, { ...options, schedules: false });
  await before.ready;
  await stopping(clock, before.stop());
  await clock.advance(Date.now() - minutes * minute - clock.now());
  let worker = hf.work(kinds, options);
  await worker.ready;
  const runs: string[] = [];
  for (let n = 0; clock.now() < Date.now() - 15_000; n += 1) {
    if (n === (minutes - 14) * 6 || n === (minutes - 6) * 6)
      runs.push((await hf.enqueue(order, { order: `A-104${runs.length + 1}`, boxes: 3 })).id);
    if (n === (minutes - 24) * 6) {
      await stopping(clock, worker.stop());
      worker = hf.work(kinds, { ...options, release: "v42" });
      await worker.ready;
    }
    if (n === (minutes - 3) * 6) await hf.signal("packed", { key: "A-1041", data: { boxes: 3 } });
    // A wave over the hour, and a burst that the mail queue needs a few minutes to work off.
    const wave = 1 + 0.5 * Math.sin((n / 6 / 60) * Math.PI * 3);
    const burst = n > 200 && n < 212 ? 3.2 : 1;
    await enqueue(hf, mail, Math.round(between(12, 19) * wave * burst), (i) => ({
      to: `${people[i % 6]}@example.org`,
      template: i % 3 === 0 ? "receipt" : "welcome",
    }));
    await enqueue(hf, resize, Math.round(between(3, 8) * wave), (i) => ({ file: `photo-${n}-${i}.jpg` }));
    await enqueue(hf, charge, Math.round(between(3, 6)), (i) => ({
      customer: people[i % 6] as string,
      cents: 990 + i,
    }));
    await clock.advance("10s");
  }
  await stopping(clock, worker.stop());
  await stopping(clock, hf.close());
  return { done: runs[0] as string, waiting: runs[1] as string };
}

async function enqueue(
  hf: Holdfast,
  job: Parameters<Holdfast["enqueueMany"]>[0][number]["job"],
  n: number,
  input: (i: number) => unknown,
): Promise<void> {
  if (n > 0) await hf.enqueueMany(Array.from({ length: n }, (_, i) => ({ job, input: input(i) })) as never);
}

async function stopping(clock: FakeClock, work: Promise<unknown>): Promise<void> {
  let over = false;
  void work.finally(() => (over = true));
  while (!over) await clock.advance("1s");
}
