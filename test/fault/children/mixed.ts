// A process of the mixed load: a worker that runs jobs of every sort, or a producer that enqueues them for as long as a file exists.
// Every run, and every step, leaves a line in `log`.
//
//   node --import ./test/fault/children/faulty.ts test/fault/children/mixed.ts '{"url":"sqlite:…","log":"/tmp/…","role":"worker"}'
import { appendFileSync, existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { defineJob, type JobContext, open } from "../../../src/index.ts";

export interface MixedSpec {
  readonly url: string;
  readonly options?: { readonly schema?: string };
  readonly log: string;
  readonly role: "worker" | "producer";
  /** The producer begins when this file is there, and ends when it is gone. */
  readonly while: string;
}

export interface MixedNote {
  readonly event: "start" | "end";
  readonly name: string;
  readonly job: string;
  /** The limit that the run counts against: a queue, a lane, a unique key. */
  readonly of: string | null;
  /** For a step: its name. For a scheduled job: its occurrence. */
  readonly part: string | null;
  readonly at: number;
}

/** The producer's account: for each name of a job the ids that were accepted, and the calls that were rejected. */
export interface MixedAccount {
  readonly accepted: Readonly<Record<string, readonly string[]>>;
  readonly failures: readonly string[];
}

const spec = JSON.parse(process.argv[2] ?? "{}") as MixedSpec;
const say = (type: string, details: object = {}): void => console.log(JSON.stringify({ type, ...details }));

function note(
  event: MixedNote["event"],
  ctx: JobContext,
  of: string | null,
  part: string | null = null,
): void {
  const at = Number(process.hrtime.bigint() / 1_000n) / 1_000;
  const line: MixedNote = { event, name: ctx.name, job: ctx.id, of, part, at };
  appendFileSync(spec.log, `${JSON.stringify(line)}\n`);
}

async function nap(ctx: JobContext, of: string | null = null, part: string | null = null): Promise<void> {
  note("start", ctx, of, part);
  await sleep(10);
  note("end", ctx, of, part);
}

const plain = defineJob({ name: "plain", run: (_: { n: number }, ctx) => nap(ctx) });
const fleeting = defineJob({ name: "fleeting", keep: false, run: (_: { n: number }, ctx) => nap(ctx) });
const keyed = defineJob({
  name: "keyed",
  unique: (input: { key: string }) => input.key,
  run: (input, ctx) => nap(ctx, `key ${input.key}`),
});
const limited = defineJob({
  name: "limited",
  queue: "limited",
  run: (_: { n: number }, ctx) => nap(ctx, "limited"),
});
const laned = defineJob({
  name: "laned",
  queue: "lanes",
  lane: (input: { tenant: string }) => input.tenant,
  lanes: { concurrency: 1 },
  run: (input, ctx) => nap(ctx, `lane ${input.tenant}`),
});
const metered = defineJob({ name: "metered", budget: "api", run: (_: { n: number }, ctx) => nap(ctx) });
const member = defineJob({ name: "member", run: (_: { n: number }, ctx) => nap(ctx) });
const finale = defineJob({ name: "finale", run: (_: { n: number }, ctx) => nap(ctx) });
const tick = defineJob({
  name: "tick",
  run: (_: object, ctx) => nap(ctx, null, String(ctx.schedule?.at.getTime())),
});
const child = defineJob({
  name: "child",
  run: async (input: { n: number }, ctx) => {
    await nap(ctx);
    return input.n;
  },
});
const workflow = defineJob({
  name: "workflow",
  run: async (input: { n: number }, ctx) => {
    await ctx.step("first", () => nap(ctx, null, "first"));
    const one = await ctx.waitFor<number>("told", { key: String(input.n) });
    await ctx.sleep("nap", 20);
    const two = await ctx.waitFor<number>("told", { key: String(input.n) });
    const called = await ctx.call(child, { n: input.n });
    await Promise.all([
      ctx.step("left", () => nap(ctx, null, "left")),
      ctx.step("right", () => nap(ctx, null, "right")),
    ]);
    return { one, two, called };
  },
});
const jobs = [plain, fleeting, keyed, limited, laned, metered, member, finale, tick, child, workflow];

const logger = {
  debug: () => {},
  info: () => {},
  warn: (details: object, text: string) => say("warn", { text, ...details }),
  error: (details: object, text: string) => say("log-error", { text, ...details }),
};
const hf = await open(spec.url, { ...spec.options, logger });
hf.on("lease.lost", ({ id }) => say("lost", { id }));
hf.on("error", ({ error, during }) => say("error", { during, error: String(error) }));

if (spec.role === "worker") {
  const worker = hf.work(jobs, {
    queues: { default: 8, limited: 4, lanes: 4 },
    lease: "20s",
    heartbeat: "3s",
    signals: true,
  });
  await worker.ready;
  say("ready");
  void worker.stopped
    .then(
      () => say("stopped"),
      (error: unknown) => say("failed", { error: String(error) }),
    )
    .then(() => hf.close());
} else {
  say("ready");
  while (!existsSync(spec.while)) await sleep(20);
  say("account", await produce());
  await hf.close();
}

async function produce(): Promise<MixedAccount> {
  const accepted: Record<string, string[]> = {};
  const failures: string[] = [];
  const keep = (name: string, ids: readonly { readonly id: string }[]): void => {
    for (const { id } of ids) (accepted[name] ??= []).push(id);
  };
  const calls: Promise<void>[] = [];
  const call = (what: string, body: () => Promise<void>): void => {
    calls.push(body().catch((error: unknown) => void failures.push(`${what}: ${String(error)}`)));
  };
  const tenants = ["a", "b", "c"];
  for (let round = 0; existsSync(spec.while); round++) {
    for (let i = 0; i < 2; i++) {
      const n = round * 2 + i;
      call("plain", async () => keep("plain", [await hf.enqueue(plain, { n })]));
      call("keyed", async () => keep("keyed", [await hf.enqueue(keyed, { key: `k${n % 5}` })]));
      call("fleeting", async () => keep("fleeting", [await hf.enqueue(fleeting, { n })]));
      call("metered", async () => keep("metered", [await hf.enqueue(metered, { n })]));
    }
    call("limited", async () => {
      const items = [1, 2, 3].map((n) => ({ job: limited, input: { n: round * 3 + n } }));
      keep("limited", await hf.enqueueMany(items));
    });
    call("laned", async () => {
      const items = tenants.map((tenant) => ({ job: laned, input: { tenant } }));
      keep("laned", await hf.enqueueMany(items));
    });
    call("workflow", async () => {
      keep("workflow", [await hf.enqueue(workflow, { n: round })]);
      await hf.signal("told", { key: String(round), data: 1 });
      await hf.signal("told", { key: String(round), data: 2 });
    });
    if (round % 6 === 0)
      call("batch", async () => {
        const items = [1, 2, 3, 4].map((n) => ({ job: member, input: { n } }));
        const batch = await hf.batch(items, { then: { job: finale, input: { n: round } } });
        keep("member", batch.jobs);
        keep("finale", batch.then === null ? [] : [batch.then]);
      });
    await sleep(120);
  }
  await Promise.all(calls);
  return { accepted, failures };
}
