// A worker process that runs flows and dies by its own hand, at any point of them: after an await of the handler, or
// before, during or after a call of the store.
//
//   node test/fault/children/flow.ts '{"url":"sqlite:…","log":"/tmp/…","seed":1,"deadly":0.02}'
import { appendFileSync } from "node:fs";
import { randomUUID } from "node:crypto";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { systemClock } from "../../../src/clock.ts";
import { Emitter } from "../../../src/events.ts";
import { Holdfast } from "../../../src/holdfast.ts";
import { defineJob, fixed, silentLogger } from "../../../src/index.ts";
import { checkOpenOptions } from "../../../src/open-options.ts";
import { openStore } from "../../../src/sql/open.ts";
import type { Store } from "../../../src/store.ts";

export interface FlowSpec {
  readonly url: string;
  readonly options?: { readonly schema?: string };
  readonly log: string;
  readonly seed: number;
  /** The chance of dying at each point. */
  readonly deadly: number;
  /** The table that has one row for each effect. */
  readonly effects: string;
  /** A step of the job `stuck` takes so long. */
  readonly stuckMs?: number;
}

const spec = JSON.parse(process.argv[2] ?? "{}") as FlowSpec;
let state = spec.seed;
const random = (): number => {
  state = (state + 0x6d2b79f5) | 0;
  let t = Math.imul(state ^ (state >>> 15), 1 | state);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
};
const die = (): void => void process.kill(process.pid, "SIGKILL");
const mayDie = (): void => {
  if (random() < spec.deadly) die();
};

/** What a step does: leaves a line that survives, and gives what is in it. */
function effect(id: string, step: string): string {
  const nonce = randomUUID();
  mayDie();
  appendFileSync(spec.log, `${JSON.stringify({ job: id, step, nonce })}\n`);
  mayDie();
  return nonce;
}

const common = { maxCrashes: 10_000, retry: { attempts: 50, backoff: fixed("50ms") } };
const child = defineJob({
  name: "child",
  ...common,
  run: async (_input: null, ctx) => {
    const made = await ctx.step("made", () => effect(ctx.id, "made"));
    mayDie();
    return made;
  },
});
const flow = defineJob({
  name: "flow",
  ...common,
  run: async (input: { n: number }, ctx) => {
    const first = await ctx.step("first", () => effect(ctx.id, "first"));
    mayDie();
    await ctx.sleep("nap", 20);
    mayDie();
    const [left, right] = await Promise.all([
      ctx.step("left", () => effect(ctx.id, "left")),
      ctx.step("right", () => effect(ctx.id, "right")),
    ]);
    mayDie();
    const told = await ctx.waitFor<number>("told", { key: String(input.n) });
    mayDie();
    const called = await ctx.call(child, null);
    mayDie();
    const last = await ctx.step("last", () => effect(ctx.id, "last"));
    mayDie();
    return { first, left, right, told, called, last };
  },
});
// An effect in the same database: in the very transaction that ends the job.
const paid = defineJob({
  name: "paid",
  ...common,
  run: async (input: { n: number }, ctx) => {
    const insert = `insert into ${spec.effects} (n) values (${input.n})`;
    if (spec.url.startsWith("sqlite:")) {
      const own = new DatabaseSync(spec.url.slice("sqlite:".length), { timeout: 2_000 });
      own.exec("begin immediate");
      own.exec(insert);
      mayDie();
      await ctx.commit(own, input.n);
      mayDie();
      own.exec("commit");
      mayDie();
      own.close();
      return;
    }
    const own = new pg.Client({ connectionString: spec.url });
    await own.connect();
    await own.query("begin");
    await own.query(insert);
    mayDie();
    await ctx.commit(own, input.n);
    mayDie();
    await own.query("commit");
    mayDie();
    await own.end();
  },
});
const stuck = defineJob({
  name: "stuck",
  ...common,
  run: async (_input: null, ctx) => {
    const who = await ctx.step("who", async () => {
      console.log(JSON.stringify({ type: "in-step", pid: process.pid }));
      await sleep(spec.stuckMs ?? 0);
      return process.pid;
    });
    return ctx.step("after", () => who);
  },
});

const { client } = checkOpenOptions({ logger: silentLogger });
const store = await openStore(spec.url, spec.options ?? {});
const deadly = new Set<keyof Store>([
  "recordSteps",
  "takeSignal",
  "startCall",
  "settle",
  "steps",
  "claim",
  "resolve",
]);
const mortal = new Proxy(store, {
  get(real, called: keyof Store) {
    const value: unknown = Reflect.get(real, called, real);
    if (typeof value !== "function") return value;
    const method = value as (...args: unknown[]) => Promise<unknown>;
    if (!deadly.has(called)) return method.bind(real);
    return async (...args: unknown[]) => {
      const chance = random() / Math.max(spec.deadly, 1e-9);
      if (chance < 0.3) die();
      const answer = method.apply(real, args);
      if (chance < 0.6) setImmediate(die);
      const result = await answer;
      if (chance < 1) die();
      return result;
    };
  },
});
const machine = { host: "mortal", pid: process.pid, hostId: "mortal", cpus: 1, env: {} };
const events = new Emitter(() => {});
const hf = new Holdfast(mortal, client, { clock: systemClock, random: Math.random, ...machine }, events);
hf.on("lease.lost", ({ id }) => console.log(JSON.stringify({ type: "lost", id })));
const worker = hf.work([flow, child, paid, stuck], {
  queues: { default: 6 },
  lease: "1500ms",
  heartbeat: "400ms",
  signals: true,
});
await worker.ready;
console.log(JSON.stringify({ type: "ready" }));
