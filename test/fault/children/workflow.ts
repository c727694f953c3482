// A worker process that runs workflows and dies by its own hand, at any point of them: after an await of the handler, or
// before, during or after a call of the store.
//
//   node test/fault/children/workflow.ts '{"url":"sqlite:…","log":"/tmp/…","seed":1,"deadly":0.02}'
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
import { openStore } from "../../../src/storage/open.ts";
import { between, bound } from "../../support/store-parts.ts";
import { type DeathPoint, deadlyVerbs } from "./workflow-points.ts";

export interface WorkflowSpec {
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
  /** Die there, for certain, the n-th time. */
  readonly target?: { readonly point: DeathPoint; readonly visit: number };
  /** The file that gets a line with the point of each death. */
  readonly deaths?: string;
}

const spec = JSON.parse(process.argv[2] ?? "{}") as WorkflowSpec;
let state = spec.seed;
const random = (): number => {
  state = (state + 0x6d2b79f5) | 0;
  let t = Math.imul(state ^ (state >>> 15), 1 | state);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
};
const die = (point: DeathPoint): void => {
  if (spec.deaths !== undefined) appendFileSync(spec.deaths, `${point}\n`);
  process.kill(process.pid, "SIGKILL");
};
let visits = 0;
/** Whether this is where the life is to end. */
const isTarget = (point: DeathPoint): boolean =>
  spec.target?.point === point && ++visits >= spec.target.visit;
const mayDie = (point: DeathPoint): void => {
  if (random() < spec.deadly || isTarget(point)) die(point);
};

/** What a step does: leaves a line that survives, and gives what is in it. */
function effect(id: string, step: string): string {
  const nonce = randomUUID();
  mayDie("effect: before");
  appendFileSync(spec.log, `${JSON.stringify({ job: id, step, nonce })}\n`);
  mayDie("effect: after");
  return nonce;
}

const common = { maxCrashes: 10_000, retry: { attempts: 50, backoff: fixed("50ms") } };
const child = defineJob({
  name: "child",
  ...common,
  run: async (_input: null, ctx) => {
    const made = await ctx.step("made", () => effect(ctx.id, "made"));
    mayDie("child: after step made");
    return made;
  },
});
const workflow = defineJob({
  name: "workflow",
  ...common,
  run: async (input: { n: number }, ctx) => {
    const first = await ctx.step("first", () => effect(ctx.id, "first"));
    mayDie("workflow: after step first");
    await ctx.sleep("nap", 20);
    mayDie("workflow: after sleep nap");
    const [left, right] = await Promise.all([
      ctx.step("left", () => effect(ctx.id, "left")),
      ctx.step("right", () => effect(ctx.id, "right")),
    ]);
    mayDie("workflow: after steps left and right");
    const told = await ctx.waitFor<number>("told", { key: String(input.n) });
    mayDie("workflow: after signal told");
    const called = await ctx.call(child, null);
    mayDie("workflow: after call child");
    const last = await ctx.step("last", () => effect(ctx.id, "last"));
    mayDie("workflow: after step last");
    return { first, left, right, told, called, last };
  },
});
// An effect in the same database: in the very transaction that ends the job.
// One at a time in a process: on SQLite, a second transaction would block the event loop that the first one waits for.
const paid = defineJob({
  name: "paid",
  queue: "paid",
  ...common,
  run: async (input: { n: number }, ctx) => {
    const insert = `insert into ${spec.effects} (n) values (${input.n})`;
    if (spec.url.startsWith("sqlite:")) {
      const own = new DatabaseSync(spec.url.slice("sqlite:".length), { timeout: 2_000 });
      own.exec("begin immediate");
      own.exec(insert);
      mayDie("paid: after insert");
      await ctx.commit(own, input.n);
      mayDie("paid: after ctx.commit");
      own.exec("commit");
      mayDie("paid: after commit");
      own.close();
      return;
    }
    const own = new pg.Client({ connectionString: spec.url });
    own.on("error", () => {}); // the query that is under way, or the next one, says it too
    await own.connect();
    await own.query("begin");
    await own.query(insert);
    mayDie("paid: after insert");
    await ctx.commit(own, input.n);
    mayDie("paid: after ctx.commit");
    await own.query("commit");
    mayDie("paid: after commit");
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
const deadly: ReadonlySet<string> = new Set(deadlyVerbs);
const mortal = between(store, (called, value, owner) => {
  if (typeof value !== "function" || !deadly.has(called)) return bound(value, owner);
  const method = value as (...args: unknown[]) => Promise<unknown>;
  const verb = called as (typeof deadlyVerbs)[number];
  return async (...args: unknown[]) => {
    const chance = random() / Math.max(spec.deadly, 1e-9);
    if (chance < 0.3 || isTarget(`${verb}: before`)) die(`${verb}: before`);
    const answer = method.apply(owner, args);
    if (chance < 0.6 || isTarget(`${verb}: under way`)) setImmediate(() => die(`${verb}: under way`));
    const result = await answer;
    if (chance < 1 || isTarget(`${verb}: answered`)) die(`${verb}: answered`);
    return result;
  };
});
const machine = { host: "mortal", pid: process.pid, hostId: "mortal", cpus: 1, env: {} };
const events = new Emitter(() => {});
const hf = new Holdfast(mortal, client, { clock: systemClock, random: Math.random, ...machine }, events);
hf.on("lease.lost", ({ id }) => console.log(JSON.stringify({ type: "lost", id })));
const worker = hf.work([workflow, child, paid, stuck], {
  queues: { default: 6, paid: 1 },
  lease: "1500ms",
  heartbeat: "400ms",
  signals: true,
});
await worker.ready;
console.log(JSON.stringify({ type: "ready" }));
