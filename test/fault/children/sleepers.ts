// A worker process whose runs all go to sleep, and that then says how many of their handlers it still holds in memory.
//
//   node test/fault/children/sleepers.ts '{"url":"sqlite:…","runs":2000}'
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { setTimeout as sleep } from "node:timers/promises";
import { defineJob, fixed, open, silentLogger } from "../../../src/index.ts";

export interface SleepersSpec {
  readonly url: string;
  readonly options?: { readonly schema?: string };
  readonly runs: number;
}

const spec = JSON.parse(process.argv[2] ?? "{}") as SleepersSpec;
setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

/** What a handler still needs when it goes on: alive for as long as anything holds the handler. */
class Ballast {
  readonly bytes = new Uint8Array(32 * 1024).fill(1);
}
const ballasts: WeakRef<Ballast>[] = [];
const load = (): Ballast => {
  const ballast = new Ballast();
  ballasts.push(new WeakRef(ballast));
  return ballast;
};

const child = defineJob({
  name: "child",
  run: async (_: null, ctx) => {
    const ballast = load();
    await ctx.waitFor("never", { key: ctx.id });
    return ballast.bytes.length;
  },
});
const ways = {
  sleep: (ctx) => ctx.sleep("nap", "30d"),
  signal: (ctx) => ctx.waitFor("never", { key: ctx.id, timeout: "30d" }),
  call: (ctx) => ctx.call(child, null),
  all: (ctx) => ctx.all([ctx.sleep("a", "20d"), ctx.sleep("b", "30d"), ctx.step("c", () => 1)]),
  retry: (ctx) =>
    ctx.step("fails", () => Promise.reject(new Error("not yet")), {
      retry: { attempts: 5, backoff: fixed("30d") },
    }),
} satisfies Record<string, (ctx: Parameters<NonNullable<typeof child.run>>[1]) => Promise<unknown>>;
const names = Object.keys(ways) as (keyof typeof ways)[];
const sleeper = defineJob({
  name: "sleeper",
  run: async (input: { way: keyof typeof ways }, ctx) => {
    const ballast = load();
    ctx.signal.addEventListener("abort", () => void ballast.bytes.fill(0));
    await ctx.step("before", () => ballast.bytes.length);
    await ways[input.way](ctx);
    return ballast.bytes.length;
  },
});

const hf = await open(spec.url, { ...spec.options, logger: silentLogger });
const worker = hf.work([sleeper, child], { queues: { default: 50 }, signals: true });
await worker.ready;
const jobs = Array.from({ length: spec.runs }, (_, n) => ({
  job: sleeper,
  input: { way: names[n % names.length] as keyof typeof ways },
}));
await hf.enqueueMany(jobs);
const total = spec.runs + Math.floor(spec.runs / names.length);
const asleep = async (): Promise<number> =>
  (await hf.jobs.count({ state: "waiting" })) + (await hf.jobs.count({ state: "scheduled" }));
while ((await asleep()) < total || worker.running > 0) await sleep(50);
let held = Infinity;
for (let tries = 0; tries < 20 && held > 0; tries += 1) {
  await sleep(50);
  collect();
  held = ballasts.filter((ref) => ref.deref() !== undefined).length;
}
console.log(JSON.stringify({ type: "held", held, made: ballasts.length, total, running: worker.running }));
await worker.stop();
await hf.close();
