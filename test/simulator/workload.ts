/**
 * The calls of clients and operators in one run, drawn from the seed.
 *
 * Every call may fail or stay without an answer, as in the world outside: then nothing is recorded, and the rows tell what happened.
 */
import type { Holdfast } from "../../src/holdfast.ts";
import type { Entry } from "./history.ts";
import { budgetName, type Ending, laned, limitedQueue, type Work } from "./programs.ts";
import type { Random } from "./random.ts";
import type { Process, World } from "./world.ts";

export interface WorkloadDeps {
  readonly world: World;
  readonly history: Entry[];
  readonly random: Random;
}

/** One call, made by a client's process at an instant. */
export interface Operation {
  readonly name: string;
  readonly at: number;
  readonly act: (hf: Holdfast, process: Process) => Promise<void>;
}

const endings: readonly Ending[] = ["fail", "throttled", "release", "retryAfter"];

/** Everything that clients ask for within `withinMs`: at least 100 jobs of all kinds, and operators' acts between them. */
export function operations(deps: WorkloadDeps, withinMs: number): Operation[] {
  const { world, history, random } = deps;
  const known: string[] = [];
  const planned: Operation[] = [];
  let n = 0;

  const accepted = (process: Process, id: string, name: string): void => {
    if (!process.alive) return;
    history.push({ at: world.now, what: "accepted", id, name });
    known.push(id);
  };
  const operated = (process: Process, id: string, act: string): void => {
    if (process.alive) history.push({ at: world.now, what: "operator", id, act });
  };
  const add = (name: string, act: Operation["act"], at = random.between(0, withinMs)): void => {
    planned.push({ name, at, act });
  };
  const plan = (): readonly Ending[] =>
    random.chance(0.25) ? Array.from({ length: random.integer(1, 2) }, () => random.pick(endings)) : [];
  const work = (): Work => {
    const ms = random.chance(0.05) ? 8_000 : random.integer(1, 120);
    return { n: (n += 1), ms, plan: plan() };
  };
  const enqueue = (name: string, input: Work, options: object = {}): void =>
    add(`enqueue ${name}`, async (hf, process) => {
      const { id, status } = await hf.enqueue(name, input, options);
      if (status === "enqueued") accepted(process, id, name);
    });

  for (let i = random.integer(16, 26); i > 0; i--) enqueue("plain", work());
  for (let i = 6; i > 0; i--) enqueue("urgent", work());
  for (let i = 8; i > 0; i--) enqueue("fleeting", { ...work(), plan: [] });
  for (let i = 6; i > 0; i--) enqueue("plain", work(), { delay: random.integer(100, 20_000) });
  for (let i = 10; i > 0; i--) {
    const key = `k${random.integer(1, 3)}`;
    enqueue("keyed", { ...work(), key }, { key });
  }
  for (let i = 10; i > 0; i--) {
    const lane = `lane${random.integer(1, 3)}`;
    const input = { ...work(), lane };
    add("enqueue laned", async (hf, process) => {
      const { id } = await hf.enqueue(laned, input);
      accepted(process, id, "laned");
    });
  }
  for (let i = 8; i > 0; i--) enqueue("metered", work());
  for (let i = 6; i > 0; i--) enqueue("fragile", { ...work(), plan: ["fail"] });
  for (let i = random.integer(1, 3); i > 0; i--) enqueue("plain", { ...work(), plan: ["dead"] });
  add("enqueueMany limited", async (hf, process) => {
    const items = Array.from({ length: 8 }, () => ({ job: "limited", queue: limitedQueue, input: work() }));
    for (const { id } of await hf.enqueueMany(items)) accepted(process, id, "limited");
  });
  for (let i = random.integer(2, 4); i > 0; i--) {
    const input = work();
    enqueue("flow", input);
    for (let signal = 0; signal < 2; signal++) sendSignal(input.n);
  }
  enqueue("saga", { ...work(), plan: ["dead"] });
  enqueue("saga", { ...work(), plan: [] });
  for (let i = 2; i > 0; i--) enqueue("machine", work());
  add("batch", async (hf, process) => {
    const items = Array.from({ length: 4 }, () => ({ job: "member", input: work() }));
    const batch = await hf.batch(items, { then: { job: "finale", input: work() }, onDead: "continue" });
    for (const { id } of batch.jobs) accepted(process, id, "member");
    if (batch.then !== null) accepted(process, batch.then.id, "finale");
  });
  add("after", async (hf, process) => {
    const first = await hf.enqueue("plain", work());
    accepted(process, first.id, "plain");
    const second = await hf.enqueue("plain", work(), { after: [first.id], onDead: "continue" });
    accepted(process, second.id, "plain");
  });

  const onKnown = (
    name: string,
    times: number,
    act: (hf: Holdfast, id: string) => Promise<unknown>,
  ): void => {
    for (let i = times; i > 0; i--)
      add(name, async (hf, process) => {
        if (known.length === 0) return;
        const id = random.pick(known);
        // Before its answer: an act whose answer is lost may have happened.
        operated(process, id, name);
        await act(hf, id);
      });
  };
  if (random.chance(0.5)) onKnown("cancel", 2, (hf, id) => hf.jobs.cancel(id));
  onKnown("retry", 2, (hf, id) => hf.jobs.retry(id));
  onKnown("runNow", 1, (hf, id) => hf.jobs.runNow(id));
  onKnown("edit", 2, (hf, id: string) => hf.jobs.edit(id, { priority: random.integer(-5, 5) }));
  onKnown("pause", 2, (hf, id) => hf.jobs.pause(id));
  if (random.chance(0.3)) onKnown("delete", 1, (hf, id) => hf.jobs.delete(id));
  onKnown("read", 3, (hf, id) => Promise.all([hf.jobs.get(id), hf.jobs.why(id), hf.jobs.history(id)]));
  add("overview", (hf) =>
    Promise.all([hf.stats(), hf.queues.list(), hf.jobs.list({ limit: 20 })]).then(() => {}),
  );
  for (const queue of ["default", limitedQueue, "lanes"])
    if (random.chance(0.4)) {
      const at = random.between(0, withinMs * 0.7);
      if (random.chance(0.5)) add("pause queue", (hf) => hf.queues.pause(queue), at);
      else add("drain queue", (hf) => hf.queues.drain(queue).then(() => {}), at);
      add("resume queue", (hf) => hf.queues.resume(queue), at + random.between(200, 8_000));
    }
  if (random.chance(0.3)) {
    const at = random.between(0, withinMs * 0.7);
    add("hold", (hf) => hf.holds.set("session", { queues: ["default"], reason: "simulated" }), at);
    add("clear hold", (hf) => hf.holds.clear("session").then(() => {}), at + random.between(200, 8_000));
  }
  if (random.chance(0.5)) add("prune", (hf) => hf.prune().then(() => {}));
  return planned;

  function sendSignal(key: number): void {
    const data = (n += 1);
    add("signal", async (hf, process) => {
      await hf.signal("told", { key: String(key), data });
      if (process.alive) history.push({ at: world.now, what: "sent", id: String(key), data });
    });
  }
}

/** What must be there before the first job. Repeated until it is acknowledged. */
export async function setUp(hf: Holdfast): Promise<void> {
  await hf.queues.set(limitedQueue, { concurrency: 2 });
  await hf.budgets.set(budgetName, { limit: 20, per: "1s" });
  await hf.schedules.put({ name: "tick", every: "7s", missed: "all", job: "tick", input: { n: 0, ms: 3 } });
}

/** After the last fault: an operator undoes what may keep a job from running. */
export async function calmDown(hf: Holdfast, waitingFlows: readonly number[]): Promise<void> {
  await hf.schedules.pause("tick");
  for (const queue of ["default", limitedQueue, "lanes"]) await hf.queues.resume(queue);
  await hf.holds.clear("session");
  await resumeJobs(hf);
  for (const n of waitingFlows)
    for (let i = 1; i <= 2; i++) await hf.signal("told", { key: String(n), data: -(2 * n + i) });
}

/** Resumes every paused job. */
export async function resumeJobs(hf: Holdfast): Promise<void> {
  await hf.jobs.resume({ state: ["scheduled", "ready", "waiting"] });
}
