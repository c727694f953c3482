// A database that looks like work: several queues, all states, failures in groups, a worker that is busy.
import { Dead, defineJob, defineSignal, fixed, type Holdfast, type Worker } from "../../src/index.ts";

/** Handlers that end as their input says, or run until they are let go. */
export function jobsOf(hold: Promise<void>) {
  const run = async (input: Record<string, unknown>): Promise<unknown> => {
    if (input["end"] === "dead") throw new Dead("card 4242 was declined by the bank");
    if (input["end"] === "fail") throw new TypeError(`connect ECONNREFUSED 10.0.0.${String(input["n"])}:443`);
    if (input["end"] === "hold") await hold;
    return { ok: true, items: input["n"] ?? 0 };
  };
  const of = (name: string, queue: string, attempts = 5) =>
    defineJob({ name, queue, retry: { attempts }, run });
  return {
    mail: of("send-mail", "mail"),
    digest: of("weekly-digest", "mail"),
    charge: of("charge-card", "billing", 1),
    invoice: of("make-invoice", "billing", 2),
    crawl: of("crawl-page", "crawl"),
    resize: of("resize-image", "media"),
    report: of("build-report", "reports"),
  };
}

export interface Filled {
  readonly worker: Worker;
  readonly ids: Readonly<
    Record<"done" | "dead" | "retrying" | "scheduled" | "running" | "ready" | "cancelled", string>
  >;
  readonly letGo: () => void;
}

export async function fill(hf: Holdfast, scale = 1): Promise<Filled> {
  const { promise: hold, resolve: letGo } = Promise.withResolvers<void>();
  const jobs = jobsOf(hold);
  const people = ["ann", "bob", "carla", "dmitri", "eve", "farid"];
  const many = (n: number) => Array.from({ length: Math.ceil(n * scale) }, (_, i) => i);
  const done = await hf.enqueueMany([
    ...many(40).map((n) => ({
      job: jobs.mail,
      input: { to: `${people[n % 6]}@example.org`, template: "welcome", n },
    })),
    ...many(18).map((n) => ({ job: jobs.resize, input: { file: `photo-${n}.jpg`, width: 1_280, n } })),
    ...many(9).map((n) => ({ job: jobs.invoice, input: { customer: people[n % 6], amount: 1_900 + n, n } })),
  ]);
  const dead = await hf.enqueueMany(
    many(14).map((n) => ({
      job: jobs.charge,
      input: { end: "dead", customer: people[n % 6], cents: 990 + n, cardToken: "tok_secret", n },
      lane: people[n % 6] as string,
      context: "checkout",
    })),
  );
  await hf.enqueueMany(
    many(5).map((n) => ({ job: jobs.charge, input: { end: "fail", customer: people[n % 6], n } })),
  );
  const retrying = await hf.enqueueMany(
    many(6).map((n) => ({ job: jobs.mail, input: { end: "fail", to: `${people[n % 6]}@example.com`, n } })),
  );
  const worker = hf.work(Object.values(jobs), {
    queues: { mail: 8, billing: 4, media: 4, crawl: 6, reports: 2 },
    name: "web-1",
  });
  await worker.ready;
  await worker.idle();
  const running = await hf.enqueueMany(
    many(7).map((n) => ({
      job: jobs.crawl,
      input: { end: "hold", url: `https://example.org/page/${n}`, depth: n % 3 },
    })),
  );
  while (worker.running < Math.min(6, running.length))
    await new Promise((resolve) => setTimeout(resolve, 10));
  const ready = await hf.enqueueMany(
    many(12).map((n) => ({
      job: jobs.crawl,
      input: { url: `https://example.org/next/${n}`, depth: 1 + (n % 3) },
      priority: n % 3,
    })),
  );
  const cancelled = await hf.enqueueMany(
    many(2)
      .map((n) => ({ job: jobs.digest, input: { week: 40 + n } }))
      .map((item) => ({ ...item, delay: "2d" as const })),
  );
  await hf.jobs.cancel({ ids: cancelled.map(({ id }) => id) });
  const scheduled = await hf.enqueueMany(
    many(9).map((n) => ({
      job: jobs.digest,
      input: { week: 46 + n, to: `${people[n % 6]}@example.org` },
      delay: (n + 1) * 3_600_000,
    })),
  );
  await hf.queues.pause("reports");
  await hf.enqueueMany(many(3).map((n) => ({ job: jobs.report, input: { month: n + 1 } })));
  const first = (list: readonly { id: string }[]): string => list[0]!.id;
  return {
    worker,
    letGo,
    ids: {
      done: first(done),
      dead: first(dead),
      retrying: first(retrying),
      scheduled: first(scheduled),
      running: first(running),
      ready: ready.at(-1)!.id,
      cancelled: first(cancelled),
    },
  };
}

export interface Features {
  readonly worker: Worker;
  /** Runs that wait for a signal, that are done, and that failed. */
  readonly workflow: Readonly<Record<"waiting" | "done" | "dead", string>>;
}

/** Schedules, lanes, budgets, an open breaker, and runs of a workflow at several points. */
export async function fillFeatures(hf: Holdfast): Promise<Features> {
  const part = defineJob({
    name: "import-part",
    queue: "workflows",
    run: async (n: number) => ({ rows: n * 120 }),
  });
  const audit = defineJob({ name: "write-audit", queue: "workflows", run: async (_input: unknown) => {} });
  const charge = async (input: { end?: string }): Promise<{ charged: number; cardToken: string }> => {
    if (input.end === "dead") throw new Error("503 from the bank");
    return { charged: 1_990, cardToken: "tok_secret" };
  };
  const order = defineJob({
    name: "fulfil-order",
    queue: "workflows",
    signals: [defineSignal({ name: "packed" })],
    retry: { attempts: 1 },
    run: async (input: { order: string; end?: string }, ctx) => {
      ctx.log.info({ order: input.order, cardToken: "tok_secret" }, "fulfilling");
      await ctx.step("reserve", async () => ({ shelf: "B12" }));
      ctx.log.warn({}, "the shelf is nearly empty");
      await ctx.step("charge", () => charge(input), { retry: { attempts: 2, backoff: fixed("1s") } });
      await ctx.all([1, 2, 3].map((n) => ctx.call(part, n)));
      await ctx.step("tell", () => ctx.enqueue(audit, { order: input.order }));
      await ctx.sleep("cool-off", 1);
      const packed = await ctx.waitFor<{ boxes: number }>("packed", { key: input.order, timeout: "3d" });
      return { boxes: packed?.boxes ?? 0 };
    },
  });
  const bank = defineJob({
    name: "ask-bank",
    queue: "bank",
    retry: { attempts: 3 },
    run: async (_n: number) => {
      throw new Error("503 from the bank");
    },
  });
  const sync = defineJob({
    name: "sync-tenant",
    queue: "tenants",
    lane: (input: { tenant: string }) => input.tenant,
    lanes: { concurrency: 2, rate: { limit: 100, per: "1m" } },
    run: async () => {},
  });
  await hf.schedules.put({
    name: "digest",
    cron: "0 9 * * 1",
    timezone: "Europe/London",
    job: order,
    input: { order: "weekly" },
    overlap: "skip",
  });
  await hf.schedules.put({
    name: "sweep",
    every: "1m",
    job: "weekly-digest",
    input: { week: 1 },
    queue: "mail",
  });
  await hf.schedules.edit("sweep", { missed: "skip" });
  await hf.schedules.pause("sweep");
  await hf.budgets.set("slack", { limit: 50, per: "1m", default: true });
  await hf.budgets.take("slack", 38);
  await hf.queues.set("bank", { breaker: { after: 2, cooldown: "1h" } });
  for (const tenant of ["acme/eu", "globex", "initech"])
    await hf.enqueueMany(
      Array.from({ length: tenant === "acme/eu" ? 40 : 3 }, () => ({ job: sync, input: { tenant } })),
    );
  await hf.lanes.set("tenants", "globex", { concurrency: 5, weight: 3 });
  await hf.lanes.pause("tenants", "initech");
  const worker = hf.work([part, audit, order, bank], {
    queues: { workflows: 8, bank: 1 },
    name: "workflows-1",
  });
  await worker.ready;
  const [waiting, done, dead] = [
    await hf.enqueue(order, { order: "o-1" }),
    await hf.enqueue(order, { order: "o-2" }),
    await hf.enqueue(order, { order: "o-3", end: "dead" }),
  ];
  await hf.enqueueMany([1, 2, 3].map((n) => ({ job: bank, input: n })));
  await hf.signal("packed", { key: "o-2", data: { boxes: 2, password: "hunter2" } });
  await hf.result(done, { timeout: "30s" });
  const until = async (is: () => Promise<boolean>): Promise<void> => {
    while (!(await is())) await new Promise((resolve) => setTimeout(resolve, 20));
  };
  await until(async () => (await hf.jobs.get(waiting.id))?.waitsFor === "signal");
  await until(async () => (await hf.jobs.get(dead.id))?.state === "dead");
  await until(async () => (await hf.breakers.list()).some(({ state }) => state === "open"));
  return { worker, workflow: { waiting: waiting.id, done: done.id, dead: dead.id } };
}
