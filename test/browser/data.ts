// A database that looks like work: several queues, all states, failures in groups, a worker that is busy.
import { Dead, defineJob, type Holdfast, type Worker } from "../../src/index.ts";

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
