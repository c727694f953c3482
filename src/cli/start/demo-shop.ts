/**
 * The shop of `holdfast demo --dashboard`: a live database with the situations that an operator meets. Mails flow. A thousand
 * charges died while the bank was closed; retries succeed after it has opened. One queue is paused, one job name has no worker, an
 * order waits for a signal, tenants share lanes, a schedule fires.
 */
import { sleep, systemClock } from "../../clock.ts";
import { defineJob, fixed, type Holdfast, type Worker } from "../../index.ts";

/** The bank opens this long after the start, so that an early retry fails visibly. */
const bankOpensMs = 10_000;
const beatMs = 500;

export interface Shop {
  readonly worker: Worker;
  stop(): Promise<void>;
}

export async function openShop(hf: Holdfast): Promise<Shop> {
  const bankOpensAt = Date.now() + bankOpensMs;
  const mail = defineJob({
    name: "send-mail",
    queue: "mail",
    retry: { attempts: 4, backoff: fixed("5s") },
    run: async (input: { to: string; n: number }, ctx) => {
      await sleep(systemClock, 40 + (input.n % 7) * 30, ctx.signal);
      if (input.n % 17 === 0 && ctx.attempt < 3) throw new Error(`421 try again later, message ${input.n}`);
    },
  });
  const charge = defineJob({
    name: "charge-card",
    queue: "billing",
    retry: { attempts: 1 },
    run: async (input: { order: number }) => {
      if (Date.now() < bankOpensAt) throw new Error(`503 the bank is closed, order ${input.order}`);
      return { charged: true };
    },
  });
  const part = defineJob({
    name: "pack-part",
    queue: "orders",
    run: async (n: number) => ({ shelf: `B${n}` }),
  });
  const order = defineJob({
    name: "fulfil-order",
    queue: "orders",
    run: async (input: { order: string }, ctx) => {
      await ctx.step("reserve", async () => ({ items: 3 }));
      await ctx.all([1, 2, 3].map((n) => ctx.call(part, n)));
      const packed = await ctx.waitFor<{ boxes: number }>("packed", { key: input.order, timeout: "3d" });
      return { boxes: packed?.boxes ?? 0 };
    },
  });
  const sync = defineJob({
    name: "sync-tenant",
    queue: "tenants",
    lane: (input: { tenant: string }) => input.tenant,
    lanes: { concurrency: 1 },
    run: async (_input, ctx) => sleep(systemClock, 800, ctx.signal),
  });
  const report = defineJob({
    name: "monthly-report",
    queue: "reports",
    run: async (_input: { month: number }) => {},
  });

  await hf.queues.pause("reports");
  await hf.budgets.set("slack", { limit: 50, per: "1m", default: true });
  await hf.schedules.put({
    name: "daily-digest",
    cron: "0 9 * * *",
    timezone: "Europe/London",
    job: mail,
    input: { to: "all", n: 1 },
  });
  await hf.enqueueMany([
    ...Array.from({ length: 1_000 }, (_, n) => ({ job: charge, input: { order: n } })),
    ...Array.from({ length: 12 }, (_, n) => ({ job: report, input: { month: n + 1 } })),
    ...Array.from({ length: 30 }, (_, n) => ({
      job: sync,
      input: { tenant: ["acme", "globex", "initech"][n % 3] ?? "" },
    })),
  ]);
  await hf.enqueueMany(
    Array.from({ length: 5 }, (_, n) => ({
      job: "transcode-video",
      input: { file: `film-${n}.mov` },
      queue: "media",
    })),
  );
  await hf.enqueue(order, { order: "o-1" });
  const worker = hf.work([mail, charge, part, order, sync, report], {
    queues: { mail: 6, billing: 20, orders: 4, tenants: 3, reports: 2, media: 2 },
    name: "shop",
  });
  await worker.ready;
  let n = 0;
  const beat = setInterval(() => {
    n += 3;
    const people = ["ada", "grace", "edsger"];
    const items = people.map((who, i) => ({ job: mail, input: { to: `${who}@example.org`, n: n + i } }));
    // The database may be closing: these mails are then dropped.
    hf.enqueueMany(items).catch(() => {});
  }, beatMs);
  return {
    worker,
    stop: async () => {
      clearInterval(beat);
      await worker.stop({ timeout: "5s" });
    },
  };
}
