// O2: every statement and every transaction that writes, through every fault. The list of what there is to do is the catalogue
// itself: the last test of each store fails for one that no scenario below has driven.
//
//   a scenario without a fault ─▶ the rows before it, after each of its commits, and at its end; its answer
//   the same with a fault      ─▶ answered: the same answer and the same rows at the end
//                              └▶ a typed error: the rows of one of those instants, and nothing in between;
//                                 asked once more, where the catalogue says that this is safe: the rows at the end
import { afterAll, expect, test } from "vitest";
import { defineJob, isHoldfastError, type Holdfast } from "../../src/index.ts";
import type { ClaimedJob, NewJob } from "../../src/jobs/job.ts";
import { idFactory } from "../../src/values/id.ts";
import { type StatementName, STATEMENTS, TRANSACTIONS } from "../../src/storage/catalogue.ts";
import { openDriver } from "../../src/storage/open.ts";
import type { ClaimCursor, ClaimScope } from "../../src/jobs/claim-scope.ts";
import type { Store } from "../../src/storage/store.ts";
import { FakeClock } from "../../src/testing/fake-clock.ts";
import type { Transition } from "../../src/jobs/outcome.ts";
import { type Committed, type Fault, faultsOf, type Plan, Seam, type Unit } from "../support/faults.ts";
import { newJob } from "../support/new-job.ts";
import { type FreshStore, onEveryDialect } from "../support/stores.ts";
import { empty, type Shown, type Tables, tablesOf } from "../support/tables.ts";
import { sessionInfo, World } from "../support/world.ts";

interface Env {
  readonly hf: Holdfast;
  readonly store: Store;
  readonly world: World;
  readonly fresh: FreshStore;
  readonly newId: () => string;
}

interface Scenario {
  readonly name: string;
  /** Without faults. */
  readonly setup: (env: Env) => Promise<unknown>;
  readonly act: (env: Env, given: never) => Promise<unknown>;
  readonly ignored: readonly string[];
  /** Several commits, of which the caller repeats the failed one alone. */
  readonly once: boolean;
  /** The one database that it can happen on. */
  readonly only: FreshStore["dialect"] | null;
}

const scenarios: Scenario[] = [];
function scenario<Given>(
  name: string,
  setup: (env: Env) => Promise<Given>,
  act: (env: Env, given: Given) => Promise<unknown>,
  {
    ignored = [],
    once = false,
    only = null,
  }: { ignored?: readonly string[]; once?: boolean; only?: Scenario["only"] } = {},
): void {
  scenarios.push({ name, setup, act, ignored, once, only });
}

const nothing = async (): Promise<void> => {};
const plain = defineJob({ name: "plain", run: async (_input: { n: number }) => {} });
const keyed = defineJob({ name: "keyed", unique: () => "only", run: async (_input: { n: number }) => {} });
const replaced = defineJob({
  name: "replaced",
  unique: { key: () => "only", onConflict: "replace" },
  run: async (_input: { n: number }) => {},
});
const held = defineJob({
  name: "held",
  unique: { key: () => "only", for: "1h" },
  run: async (_: { n: number }) => {},
});
const fleeting = defineJob({
  name: "fleeting",
  keep: false,
  unique: { key: () => "once", for: "1h" },
  run: async (_: { n: number }) => {},
});

const scopeOf = (queue: string, limit = 10): ClaimScope & { queues: ReadonlyMap<string, number> } => ({
  queues: new Map([[queue, limit]]),
  names: "all",
  limit,
  order: "highest-first",
});
const fromStart = (): ClaimCursor => ({ levels: new Map(), rescannedAt: -Infinity });

/** A session that holds these. */
async function claimed(
  { store, newId, world }: Env,
  ...given: Partial<NewJob>[]
): Promise<{ session: number; jobs: ClaimedJob[] }> {
  const session = await store.sessions.open(sessionInfo({ queues: { q: 10 }, names: ["n"] }));
  // Ids are told apart by the order in which they were made.
  await world.clock.advance(1);
  const jobs = given.map((one) => newJob(newId(), one));
  await store.newJobs.enqueue(jobs);
  return { session, jobs: await store.claims.claim(session, scopeOf("q"), fromStart()) };
}

function ended(job: ClaimedJob, change: Partial<Transition & { move: "end" }> = {}): Transition {
  const { id, rowKey, token, attempt, crashes, counted } = job;
  const own = counted === undefined ? {} : { counted };
  return {
    move: "end",
    id,
    rowKey,
    token,
    state: "done",
    output: null,
    errors: null,
    attempt,
    crashes,
    keyed: job.keyed,
    keep: true,
    ...own,
    ...change,
  };
}

function givenBack(job: ClaimedJob, change: Partial<Transition & { move: "again" }> = {}): Transition {
  const { id, token, attempt, crashes, counted } = job;
  const own = counted === undefined ? {} : { counted };
  return {
    move: "again",
    id,
    token,
    delayMs: 5_000,
    errors: null,
    attempt,
    crashes,
    throttled: false,
    begun: true,
    ...own,
    ...change,
  };
}

const tokensOf = (jobs: readonly ClaimedJob[]): number[] => [...new Set(jobs.map(({ token }) => token))];

/** A job that has died. */
async function dead(env: Env, given: Partial<NewJob> = {}): Promise<string> {
  const { session, jobs } = await claimed(env, given);
  const errors = JSON.stringify([{ at: 1, attempt: 1, message: "no", stack: null }]);
  await env.store.settles.settle(
    session,
    jobs.map((job) => ended(job, { state: "dead", errors, failureGroup: "g" })),
    tokensOf(jobs),
  );
  return jobs[0]?.id as string;
}

const step = (job: ClaimedJob, change: object = {}) => ({
  job: job.id,
  token: job.token,
  name: "a",
  seq: 0,
  givenOrder: 0,
  kind: "step" as const,
  state: "done" as const,
  attempt: job.attempt,
  tries: 1,
  tookMs: 0,
  wakeInMs: null,
  undo: false,
  fails: 0,
  given: 0,
  output: "1",
  error: null,
  label: null,
  ...change,
});

// Enqueue

scenario("a plain job is enqueued", nothing, ({ hf }) => hf.enqueue(plain, { n: 1 }));
scenario("jobs that differ are enqueued together", nothing, ({ hf }) =>
  hf.enqueueMany([
    { job: plain, input: { n: 1 } },
    { job: plain, input: { n: 2 }, delay: "5m" },
  ]),
);
scenario("a job with a unique key is enqueued", nothing, ({ hf }) => hf.enqueue(keyed, { n: 1 }));
scenario(
  "a job takes the place of another with its key, in a lane",
  ({ hf }) => hf.enqueue(replaced, { n: 1 }, { lane: "a" }),
  ({ hf }) => hf.enqueue(replaced, { n: 2 }, { lane: "a" }),
);
scenario(
  "a job takes a key whose time is over",
  async ({ hf, world }) => {
    const { id } = await hf.enqueue(held, { n: 1 });
    await hf.jobs.cancel(id);
    await world.clock.advance("2h");
  },
  ({ hf }) => hf.enqueue(held, { n: 2 }),
);
scenario("a job with a lane is enqueued", nothing, ({ hf }) => hf.enqueue(plain, { n: 1 }, { lane: "a" }));
scenario("a batch is enqueued", nothing, ({ hf }) =>
  hf.batch(
    [
      { job: plain, input: { n: 1 } },
      { job: plain, input: { n: 2 } },
    ],
    { then: { job: plain, input: { n: 3 } } },
  ),
);

// Claim and settle, by the store's verbs. The worker's part, after a lost claim, is tested in test/lease/lost-answers.test.ts.

scenario(
  "jobs are claimed",
  async (env) => {
    for (const n of [1, 2, 3]) await env.store.newJobs.enqueue([newJob(env.newId(), { priority: n % 2 })]);
    return env.store.sessions.open(sessionInfo({ queues: { q: 10 } }));
  },
  (env, session) => env.store.claims.claim(session, scopeOf("q"), fromStart()),
  { once: true },
);
scenario(
  "jobs of one level are claimed",
  async (env) => {
    const session = await env.store.sessions.open(sessionInfo({ queues: { q: 10 } }));
    const cursor = fromStart();
    await env.store.newJobs.enqueue([newJob(env.newId())]);
    await env.store.claims.claim(session, scopeOf("q"), cursor);
    await env.store.newJobs.enqueue([newJob(env.newId())]);
    return { session, cursor };
  },
  (env, { session, cursor }) => env.store.claims.claim(session, scopeOf("q"), cursor),
  { once: true },
);
scenario(
  "jobs of several levels are claimed",
  async (env) => {
    const session = await env.store.sessions.open(sessionInfo({ queues: { q: 10 } }));
    const cursor = fromStart();
    const jobs = () => [newJob(env.newId()), newJob(env.newId(), { priority: 1 })];
    await env.store.newJobs.enqueue(jobs());
    await env.store.claims.claim(session, scopeOf("q"), cursor);
    await env.store.newJobs.enqueue(jobs());
    return { session, cursor };
  },
  (env, { session, cursor }) => env.store.claims.claim(session, scopeOf("q"), cursor),
  { once: true },
);
scenario(
  "jobs are claimed under limits",
  async (env) => {
    const { session } = await claimed(env, {});
    await env.hf.queues.set("q", { concurrency: 3, rate: { limit: 10, per: "1m" } });
    await env.hf.lanes.set("q", "a", { concurrency: 2, rate: { limit: 10, per: "1m" } });
    await env.store.newJobs.enqueue([newJob(env.newId()), newJob(env.newId(), { lane: "a" })]);
    await env.store.claims.checkDue(scopeOf("q"));
    return session;
  },
  (env, session) => env.store.claims.claim(session, scopeOf("q"), fromStart()),
  { once: true },
);
scenario(
  "jobs are claimed under a budget",
  async (env) => {
    await env.hf.budgets.set("b", { limit: 10, per: "1h" });
    const session = await env.store.sessions.open(sessionInfo({ queues: { q: 10 } }));
    await env.store.newJobs.enqueue([newJob(env.newId())]);
    return session;
  },
  (env, session) =>
    env.store.claims.claimBudgeted(
      session,
      scopeOf("q"),
      { name: "b", tokens: 1, names: ["n"] },
      fromStart(),
    ),
  { once: true, ignored: ["budget.tokens"] },
);
scenario(
  "a claim under limits meets a row whose job went with its day",
  async (env) => {
    const { session } = await claimed(env);
    await env.hf.queues.set("q", { concurrency: 3 });
    const [kept, gone] = [newJob(env.newId()), newJob(env.newId())];
    await env.store.newJobs.enqueue([kept, gone]);
    await env.fresh.query(`delete from ${env.fresh.table("job")} where id = ?`, [gone.id]);
    await env.store.claims.checkDue(scopeOf("q"));
    return session;
  },
  (env, session) => env.store.claims.claim(session, scopeOf("q"), fromStart()),
  { once: true, only: "postgres" },
);
scenario(
  "claims under limits are given back unstarted, and what was refunded is taken in",
  async (env) => {
    await env.hf.queues.set("q", { concurrency: 1, rate: { limit: 10, per: "1m" } });
    await env.hf.lanes.set("q", "a", { concurrency: 1, rate: { limit: 10, per: "1m" } });
    await env.store.claims.checkDue(scopeOf("q"));
    const { session, jobs } = await claimed(env, { lane: "a" });
    return { session, jobs };
  },
  (env, { session, jobs }) =>
    env.store.settles.settle(
      session,
      jobs.map((job) => givenBack(job, { unstarted: true, attempt: 0, begun: false })),
      tokensOf(jobs),
    ),
);
scenario(
  "a full lane is claimed from when a place is given back",
  async (env) => {
    await env.hf.queues.set("q", { concurrency: 1 });
    await env.hf.lanes.set("q", "a", { concurrency: 1 });
    await env.store.claims.checkDue(scopeOf("q"));
    const { session, jobs } = await claimed(env, { lane: "a" }, { lane: "a" });
    await env.store.settles.settle(
      session,
      jobs.map((job) => ended(job)),
      tokensOf(jobs),
    );
    return session;
  },
  (env, session) => env.store.claims.claim(session, scopeOf("q"), fromStart()),
  { once: true },
);
scenario(
  "jobs under limits are done",
  async (env) => {
    await env.hf.queues.set("q", { concurrency: 3 });
    await env.store.claims.checkDue(scopeOf("q"));
    return claimed(env, {}, { lane: "a" });
  },
  (env, { session, jobs }) =>
    env.store.settles.settle(
      session,
      jobs.map((job) => ended(job)),
      tokensOf(jobs),
    ),
);
scenario(
  "jobs that are alike are done",
  (env) => claimed(env, {}, {}),
  (env, { session, jobs }) =>
    env.store.settles.settle(
      session,
      jobs.map((job) => ended(job)),
      tokensOf(jobs),
    ),
);
scenario(
  "a job is done with an output",
  (env) => claimed(env, {}),
  (env, { session, jobs }) =>
    env.store.settles.settle(
      session,
      jobs.map((job) => ended(job, { output: "1" })),
      tokensOf(jobs),
    ),
);
scenario(
  "a job dies",
  (env) => claimed(env, {}),
  (env, { session, jobs }) =>
    env.store.settles.settle(
      session,
      jobs.map((job) => ended(job, { state: "dead", failureGroup: "g" })),
      tokensOf(jobs),
    ),
);
scenario(
  "a job is throttled, and its queue cools down",
  async (env) => {
    await env.hf.queues.set("q", { cooldown: { base: "1m", max: "1h" } });
    return claimed(env, {});
  },
  (env, { session, jobs }) =>
    env.store.settles.settle(
      session,
      jobs.map((job) => givenBack(job, { throttled: true })),
      tokensOf(jobs),
    ),
);
scenario(
  "one job ends and another goes to sleep",
  (env) => claimed(env, {}, {}),
  (env, { session, jobs: [a, b] }) =>
    env.store.settles.settle(
      session,
      [
        ended(a as ClaimedJob),
        {
          move: "wait",
          id: b!.id,
          token: b!.token,
          errors: null,
          attempt: 0,
          crashes: 0,
          waits: "signal",
          at: null,
          topics: ["t"],
          open: 0,
          every: false,
        },
      ],
      tokensOf([a!, b!]),
    ),
);
scenario(
  "a run dies whose steps are to be undone",
  async (env) => {
    const run = await claimed(env, {});
    await env.store.workflows.recordSteps(run.session, [step(run.jobs[0]!, { undo: true })]);
    return run;
  },
  (env, { session, jobs }) =>
    env.store.settles.settle(
      session,
      jobs.map((job) => ended(job, { state: "dead", undo: true, errors: "[]" })),
      tokensOf(jobs),
    ),
);
scenario(
  "orphans are taken over",
  async (env) => {
    const run = await claimed(env, {}, {});
    await env.world.clock.advance("31s");
    return run;
  },
  (env, { jobs: [a, b] }) =>
    env.store.settles.takeOver([ended(a!, { state: "dead" }), givenBack(b!, { crashes: 1 })]),
);
scenario(
  "an orphan ends",
  async (env) => {
    const run = await claimed(env, {});
    await env.world.clock.advance("31s");
    return run;
  },
  (env, { jobs }) => env.store.settles.takeOver(jobs.map((job) => ended(job, { state: "dead" }))),
);
scenario(
  "an orphan goes back to the line",
  async (env) => {
    const run = await claimed(env, {});
    await env.world.clock.advance("31s");
    return run;
  },
  (env, { jobs }) => env.store.settles.takeOver(jobs.map((job) => givenBack(job, { crashes: 1 }))),
);
scenario(
  "progress is reported",
  (env) => claimed(env, {}),
  (env, { session, jobs }) => env.store.settles.progress(session, jobs[0]!.id, jobs[0]!.token, "5"),
);
scenario(
  "a session is opened",
  nothing,
  async (env) => ({ session: await env.store.sessions.open(sessionInfo()) }),
  { ignored: ["session"] },
);
scenario(
  "a session is renewed",
  (env) => claimed(env, {}),
  (env, { session }) => env.store.sessions.renew(session),
);
scenario(
  "a session is closed",
  (env) => claimed(env, {}),
  (env, { session }) => env.store.sessions.close(session),
);
scenario(
  "dead sessions are buried, and what was requested of their jobs is granted",
  async (env) => {
    const run = await claimed(env, {}, {}, {});
    await env.hf.jobs.pause(run.jobs[0]!.id);
    await env.hf.jobs.cancel(run.jobs[1]!.id);
    const { fresh } = env;
    // As one that died between giving back and granting leaves them.
    await fresh.query(
      `update ${fresh.table("ready")} set token = null, session = null, waits = 'resume', request = null where request is not null`,
    );
    await fresh.query(`update ${fresh.table("history")} set attempt = attempt`);
    await env.world.clock.advance("31s");
  },
  (env) => env.store.sessions.forgetDead(),
);
scenario(
  "a held job without a claim is filed again",
  async (env) => {
    await claimed(env, {});
    await env.fresh.query(`delete from ${env.fresh.table("claim")}`);
  },
  (env) => env.store.upkeep.tidy(),
);

// Act on jobs

scenario(
  "a waiting job is cancelled",
  ({ hf }) => hf.enqueue(keyed, { n: 1 }),
  ({ hf }, { id }) => hf.jobs.cancel(id),
);
scenario(
  "a running job is asked to stop",
  (env) => claimed(env, {}),
  ({ hf }, { jobs }) => hf.jobs.cancel(jobs[0]!.id),
);
scenario(
  "a sleeping run with steps to undo is cancelled",
  async (env) => {
    const run = await claimed(env, { lane: "a" });
    const [job] = run.jobs as [ClaimedJob];
    await env.store.workflows.recordSteps(run.session, [step(job, { undo: true })]);
    const { id, token, counted } = job;
    await env.store.settles.settle(
      run.session,
      [
        {
          move: "wait",
          id,
          token,
          errors: null,
          attempt: 0,
          crashes: 0,
          waits: "sleep",
          at: env.world.clock.now() + 60_000,
          topics: [],
          open: 0,
          every: false,
          ...(counted === undefined ? {} : { counted }),
        },
      ],
      [token],
    );
    return id;
  },
  ({ hf }, id) => hf.jobs.cancel(id),
);
scenario(
  "a job is paused",
  ({ hf }) => hf.enqueue(plain, { n: 1 }),
  ({ hf }, { id }) => hf.jobs.pause(id),
);
scenario(
  "a job is resumed",
  async ({ hf }) => {
    const { id } = await hf.enqueue(plain, { n: 1 }, { lane: "a" });
    await hf.jobs.pause(id);
    return id;
  },
  ({ hf }, id) => hf.jobs.resume(id),
);
scenario(
  "jobs are deleted",
  async (env) => ({ a: (await env.hf.enqueue(keyed, { n: 1 })).id, b: (await claimed(env, {})).jobs[0]!.id }),
  ({ hf }, { a, b }) => hf.jobs.delete({ ids: [a, b] }),
);
scenario(
  "a dead job is retried with another input",
  (env) => dead(env, { lane: "a", input: "{}", key: "k" } as Partial<NewJob>),
  ({ hf }, id) => hf.jobs.retry(id, { patch: { n: 7 } }),
);
scenario(
  "a dead job with a key is retried",
  (env) => dead(env, { unique: { scope: "job:n", key: "k", forMs: null, onConflict: "keep" } }),
  ({ hf }, id) => hf.jobs.retry(id),
);
scenario(
  "a sleeping job is made due",
  ({ hf }) => hf.enqueue(plain, { n: 1 }, { delay: "1h", lane: "a" }),
  ({ hf }, { id }) => hf.jobs.runNow(id),
);
scenario(
  "a job is put into another queue",
  ({ hf }) => hf.enqueue(plain, { n: 1 }, { lane: "a" }),
  ({ hf }, { id }) => hf.jobs.edit(id, { queue: "other", delay: "1h" }),
);
scenario(
  "a dead job is put into another queue",
  (env) => dead(env),
  ({ hf }, id) => hf.jobs.edit({ ids: [id], state: "dead" }, { queue: "other", priority: 3 }),
);
scenario(
  "a run is forked",
  async (env) => {
    const run = await claimed(env, {});
    const [job] = run.jobs as [ClaimedJob];
    await env.store.workflows.recordSteps(run.session, [
      step(job),
      step(job, { name: "b", seq: 1, givenOrder: 1, given: 1 }),
    ]);
    await env.store.settles.settle(run.session, [ended(job)], [job.token]);
    return job.id;
  },
  ({ hf }, id) => hf.jobs.fork(id, { from: "b" }),
);

// Workflows

scenario(
  "a step is written",
  (env) => claimed(env, {}),
  (env, { session, jobs }) => env.store.workflows.recordSteps(session, [step(jobs[0]!)]),
);
scenario(
  "a signal is taken, and the next one is left",
  async (env) => {
    const run = await claimed(env, {});
    for (const n of [1, 2])
      await env.store.workflows.signal({ id: env.newId(), topic: "t", data: String(n), expiresMs: 60_000 });
    return run;
  },
  (env, { session, jobs: [job] }) =>
    env.store.workflows.takeSignal(session, {
      id: job!.id,
      token: job!.token,
      name: "w",
      seq: 0,
      givenOrder: 0,
      attempt: 1,
      fails: 0,
      given: 0,
      topic: "t",
      timeoutMs: null,
    }),
);
scenario(
  "a run calls another job",
  async (env) => ({ ...(await claimed(env, {})), child: newJob(env.newId()) }),
  (env, { session, jobs: [job], child }) =>
    env.store.workflows.startCall(session, {
      id: job!.id,
      token: job!.token,
      name: "c",
      seq: 0,
      attempt: 1,
      fails: 0,
      given: 0,
      child,
    }),
);
scenario(
  "a machine moves",
  (env) => claimed(env, {}),
  (env, { session, jobs: [job] }) =>
    env.store.workflows.saveMachine(session, {
      id: job!.id,
      token: job!.token,
      attempt: 0,
      steps: [{ name: "$machine", seq: 1, state: "open", tries: 0, tookMs: 0, output: "1", label: "b" }],
    }),
);
scenario(
  "newer code takes a run on",
  (env) => claimed(env, {}),
  (env, { session, jobs: [job] }) =>
    env.store.workflows.advance(session, { id: job!.id, token: job!.token, extras: { advanced: 2 } }),
);
scenario(
  "a signal wakes a run",
  async (env) => {
    const run = await claimed(env, { lane: "a" });
    const [job] = run.jobs as [ClaimedJob];
    const { id, token, counted } = job;
    await env.store.workflows.takeSignal(run.session, {
      id,
      token,
      name: "w",
      seq: 0,
      givenOrder: 0,
      attempt: 1,
      fails: 0,
      given: 0,
      topic: '["s",null]',
      timeoutMs: null,
    });
    await env.store.settles.settle(
      run.session,
      [
        {
          move: "wait",
          id,
          token,
          errors: null,
          attempt: 0,
          crashes: 0,
          waits: "signal",
          at: null,
          topics: ['["s",null]'],
          open: 0,
          every: false,
          ...(counted === undefined ? {} : { counted }),
        },
      ],
      [token],
    );
    return env.newId();
  },
  (env, id) => env.store.workflows.signal({ id, topic: '["s",null]', data: "1", expiresMs: 60_000 }),
);
scenario(
  "a run that slept over a signal is woken, and signals that have expired are forgotten",
  async (env) => {
    const run = await claimed(env, {});
    const [{ id, token }] = run.jobs as [ClaimedJob];
    await env.store.workflows.takeSignal(run.session, {
      id,
      token,
      name: "w",
      seq: 0,
      givenOrder: 0,
      attempt: 1,
      fails: 0,
      given: 0,
      topic: "t",
      timeoutMs: null,
    });
    await env.store.settles.settle(
      run.session,
      [
        {
          move: "wait",
          id,
          token,
          errors: null,
          attempt: 0,
          crashes: 0,
          waits: "signal",
          at: null,
          topics: ["t"],
          open: 0,
          every: false,
        },
      ],
      [token],
    );
    const { fresh } = env;
    for (const expires of [1, env.world.clock.now() + 60_000])
      await fresh.query(
        `insert into ${fresh.table("signal")} (topic, data, sent_at, expires_at) values ('t', '1', 1, ${expires})`,
      );
  },
  (env) => env.store.workflows.sweep(),
);
scenario(
  "the end of a job lets another go",
  async (env) => {
    const first = newJob(env.newId());
    await env.store.newJobs.enqueue([first]);
    await env.store.newJobs.enqueue([
      newJob(env.newId(), { lane: "a", after: { ids: [first.id], policy: "continue" } }),
    ]);
    return claimed(env);
  },
  async (env, { session, jobs }) => {
    const moved = jobs.map((job) => ended(job));
    await env.store.settles.settle(session, moved, tokensOf(jobs));
    // Who was not told is found.
    await env.store.workflows.sweep();
  },
);
scenario(
  "the end of a job that was not told is found",
  async (env) => {
    const first = newJob(env.newId());
    await env.store.newJobs.enqueue([first]);
    await env.store.newJobs.enqueue([newJob(env.newId(), { after: { ids: [first.id], policy: "cancel" } })]);
    await env.fresh.query(`delete from ${env.fresh.table("ready")} where watched`);
  },
  (env) => env.store.workflows.sweep(),
);
scenario(
  "a job is watched",
  (env) => claimed(env, {}),
  (env, { jobs }) => env.store.workflows.watch(jobs.map(({ id }) => id)),
);

// Queues, lanes, limits

scenario("a queue gets limits for a while", nothing, ({ hf }) =>
  hf.queues.set("q", { concurrency: 3 }, { for: "1h" }),
);
scenario(
  "a queue gets limits for good",
  ({ hf }) => hf.queues.set("q", { concurrency: 3 }, { for: "1h" }),
  ({ hf }) => hf.queues.set("q", { concurrency: 4 }),
);
scenario(
  "a queue that has drained is paused",
  ({ hf }) => hf.queues.drain("q"),
  ({ hf }) => hf.queues.drained("q"),
);
scenario("a hold is set", nothing, ({ hf }) => hf.holds.set("h"));
scenario(
  "a hold is cleared",
  ({ hf }) => hf.holds.set("h"),
  ({ hf }) => hf.holds.clear("h"),
);
scenario(
  "a lane gets limits for a while",
  ({ hf }) => hf.enqueue(plain, { n: 1 }, { lane: "a" }),
  ({ hf }) => hf.lanes.set("default", "a", { concurrency: 2 }, { for: "1h" }),
);
scenario(
  "a limit that held for a while is over",
  async ({ hf }) => {
    await hf.enqueue(plain, { n: 1 }, { lane: "a" });
    await hf.lanes.set("default", "a", { concurrency: 2 }, { for: "1h" });
  },
  ({ hf }) => hf.temporaryLimits.end({ kind: "lane", name: "default", key: "a" }),
);
scenario(
  "a lane is reset",
  async ({ hf }) => {
    await hf.enqueue(plain, { n: 1 }, { lane: "a" });
    await hf.lanes.set("default", "a", { concurrency: 2 }, { for: "1h" });
  },
  ({ hf }) => hf.lanes.reset("default", "a"),
);
scenario(
  "lanes that nothing uses are forgotten",
  async ({ hf, world }) => {
    const { id } = await hf.enqueue(plain, { n: 1 }, { lane: "a" });
    await hf.jobs.delete(id);
    await world.clock.advance("8d");
  },
  (env) => env.store.upkeep.tidy(),
);
scenario(
  "workers are asked to stop",
  (env) => claimed(env),
  ({ store }, { session }) => store.workers.stop([session]),
);
scenario(
  "workers are made quiet",
  (env) => claimed(env),
  ({ store }, { session }) => store.workers.quiet([session]),
);
scenario(
  "workers are resumed",
  async (env) => {
    const { session } = await claimed(env);
    await env.store.workers.quiet([session]);
    return session;
  },
  ({ store }, session) => store.workers.resume([session]),
);
scenario(
  "names are told",
  ({ hf }) => hf.enqueue(plain, { n: 1 }, { lane: "a" }),
  ({ store }) =>
    store.definitions.register(
      new Map([["plain", { unique: false, lane: true, lanes: { concurrency: 3, rate: null, weight: 1 } }]]),
    ),
);
scenario("breakers count", nothing, ({ store }) =>
  store.breakers.count(1, 1, [
    { key: "name:n", rule: { after: 10, cooldownMs: 1_000 }, failures: 3, succeeded: false, error: "no" },
  ]),
);
const openBreaker = async (env: Env): Promise<number> => {
  const { session } = await claimed(env);
  await env.store.breakers.count(session, 1, [
    { key: "name:n", rule: { after: 1, cooldownMs: 1_000 }, failures: 1, succeeded: false, error: "no" },
  ]);
  await env.world.clock.advance("2s");
  return session;
};
scenario("a breaker is probed", openBreaker, ({ store }, session) => store.breakers.probe(session, "name:n"));
scenario(
  "a probe is given back",
  async (env) => {
    const session = await openBreaker(env);
    await env.store.breakers.probe(session, "name:n");
    return session;
  },
  ({ store }, session) => store.breakers.unprobe(session, "name:n"),
);
scenario("a breaker is reset", openBreaker, ({ hf }) => hf.breakers.reset("name:n"));

// State, schedules, budgets, passes

scenario("a value is set", nothing, ({ hf }) => hf.state.set("k", 1));
scenario(
  "a value is deleted",
  ({ hf }) => hf.state.set("k", 1),
  ({ hf }) => hf.state.delete("k"),
);
scenario(
  "a value is swapped",
  ({ store }) => store.state.set("k", "1"),
  ({ store }) => store.state.swap("k", "1", "2"),
);
const nightly = { name: "nightly", every: "1h", job: plain, input: { n: 1 } } as const;
scenario("a schedule is put", nothing, ({ hf }) => hf.schedules.put(nightly));
scenario(
  "a schedule is edited",
  ({ hf }) => hf.schedules.put(nightly),
  ({ hf }) => hf.schedules.edit("nightly", { priority: 3 }),
);
scenario(
  "a schedule is triggered",
  ({ hf }) => hf.schedules.put(nightly),
  ({ hf }) => hf.schedules.trigger("nightly"),
);
scenario(
  "a schedule fires",
  async ({ hf, world }) => {
    await hf.schedules.put(nightly);
    await world.clock.advance("1h");
  },
  ({ store, newId }) => store.schedules.fire("nightly", newId),
);
scenario(
  "a schedule that cannot be read is disabled",
  async ({ hf, world, fresh }) => {
    await hf.schedules.put(nightly);
    await world.clock.advance("1h");
    await fresh.query(`update ${fresh.table("schedule")} set edits = '{"cron":"no"}'`);
  },
  ({ store, newId }) => store.schedules.fire("nightly", newId),
);
scenario(
  "slots of the past get their jobs",
  async ({ hf, world }) => {
    await hf.schedules.put(nightly);
    await hf.schedules.pause("nightly");
    await world.clock.advance("3h");
    return world.clock.now() - 3 * 3_600_000;
  },
  ({ hf, world }, from) => hf.schedules.backfill("nightly", { from, to: world.clock.now() }),
);
scenario(
  "a schedule is removed",
  ({ hf }) => hf.schedules.put(nightly),
  ({ hf }) => hf.schedules.remove("nightly"),
);
scenario("a budget is set", nothing, ({ hf }) => hf.budgets.set("b", { limit: 10, per: "1h" }));
scenario(
  "a budget is changed",
  ({ hf }) => hf.budgets.set("b", { limit: 10, per: "1h", default: true }),
  async ({ hf }) => {
    await hf.budgets.set("b", { limit: 20, per: "1h" });
    return hf.budgets.reset("b");
  },
  { ignored: ["budget.tokens"] },
);
// A lost answer costs its tokens: they count as used until they have grown again.
scenario(
  "tokens are taken",
  ({ hf }) => hf.budgets.set("b", { limit: 10, per: "1h" }),
  ({ hf }) => hf.budgets.take("b"),
  { ignored: ["budget.tokens"] },
);
scenario(
  "a budget is removed",
  ({ hf }) => hf.budgets.set("b", { limit: 10, per: "1h" }),
  ({ hf }) => hf.budgets.remove("b"),
);
// Another pass is no repeat of this one: it waits until this one's lease is over.
scenario("a pass runs", nothing, ({ hf }) => hf.state.pass("p", (pass) => pass.recovery), { once: true });
scenario(
  "a pass runs after a clean one",
  ({ hf }) => hf.state.pass("p", () => {}),
  ({ hf }) => hf.state.pass("p", (pass) => pass.recovery),
  { once: true },
);

// Series, failures, audit

const metric = {
  minute: 60_000,
  queue: "q",
  name: "n",
  worker: "w",
  done: 3,
  failed: 0,
  dead: 0,
  cancelled: 0,
  throttled: 0,
  released: 0,
  lost: 0,
  ran: "[]",
  waited: "[]",
};
scenario("a worker's minute is written", nothing, ({ store }) => store.series.putMetrics([metric]));
scenario("a minute with less in it comes after one with more", nothing, async ({ store }) => {
  await store.series.putMetrics([metric]).catch(() => {});
  await store.series.putMetrics([{ ...metric, done: 5 }]);
});
scenario(
  "minutes are added up",
  async ({ store }) => {
    await store.series.putMetrics([metric, { ...metric, worker: "v" }]);
  },
  ({ store }) => store.series.compact(0, 3_600_000),
);
scenario("gauges are written", nothing, ({ store }) =>
  store.series.putGauges([{ minute: 60_000, source: "w", name: "running", value: 3 }]),
);
scenario(
  "events are written",
  async ({ newId }) => newId(),
  ({ store }, id) =>
    store.series.putEvents([
      {
        id,
        at: 1,
        event: "done",
        job: null,
        name: null,
        queue: null,
        attempt: null,
        worker: null,
        detail: null,
      },
    ]),
);
scenario(
  "lines of the job log are written, and old ones go",
  async (env) => {
    const { jobs } = await claimed(env, {});
    return [env.newId(), env.newId()].map((id) => ({
      id,
      job: jobs[0]!.id,
      at: 1,
      level: "info",
      attempt: 1,
      message: '"a"',
      details: null,
    }));
  },
  ({ store }, rows) => store.series.putLogLines(rows, 1),
);
scenario(
  "series are forgotten",
  async (env) => {
    await env.store.series.putMetrics([metric]);
  },
  ({ store }) => store.series.forget({ metrics: 120_000, events: 120_000 }),
);
const failure = { group: "0123456789abcdef", at: 60_000, queue: "q", version: 1, worker: "w", n: 3 };
const cause = {
  group: failure.group,
  name: "n",
  firstAt: 60_000,
  lastAt: 60_000,
  sample: "00000000-0000-7000-8000-000000000000",
  message: '"no"',
};
scenario("failures are written", nothing, ({ store }) => store.failures.put([cause], [failure]));
scenario("a count of failures comes after a higher one", nothing, async ({ store }) => {
  await store.failures.put([cause], [failure]).catch(() => {});
  await store.failures.put([cause], [{ ...failure, n: 5 }]);
});
scenario(
  "failures are added up",
  ({ store }) => store.failures.put([cause], [failure, { ...failure, worker: "v" }]),
  ({ store }) => store.failures.compact(0, 3_600_000),
);
scenario(
  "failures are forgotten",
  ({ store }) => store.failures.put([cause], [failure]),
  ({ store }) => store.failures.forget(120_000),
);
scenario(
  "a cause is decided about",
  ({ store }) => store.failures.put([cause], [failure]),
  ({ hf }) => hf.errors.ignore(cause.group, { count: 5 }),
);
scenario("an entry is added to the audit trail", nothing, ({ store }) =>
  store.insight.addAudit({
    actor: "a",
    action: "queues.pause",
    target: "q",
    outcome: "paused",
    details: null,
  }),
);

// Upkeep

scenario("an upkeep task is taken", nothing, ({ store }) => store.upkeep.takeTask("d", 60_000, "w"));
scenario(
  "what is old is deleted",
  async ({ hf, world }) => {
    const { id } = await hf.enqueue(plain, { n: 1 });
    await hf.jobs.cancel(id);
    const { jobs } = await hf.batch([{ job: plain, input: { n: 2 } }]);
    await hf.jobs.cancel(jobs[0].id);
    const gone = await hf.enqueue(plain, { n: 3 });
    await hf.jobs.delete(gone.id);
    // Nothing is left of it but its key.
    await hf.enqueue(fleeting, { n: 4 });
    await (await hf.lease({ names: ["fleeting"] }))[0]!.done();
    await world.clock.advance("40d");
  },
  ({ store }) => store.upkeep.prune({ doneMs: 86_400_000, deadMs: 86_400_000 }, 100),
);
scenario("a look proves that wake-ups arrive", nothing, ({ store }) => store.claims.checkDue(scopeOf("q")));

interface Ran {
  readonly answer: unknown;
  readonly error: unknown;
  readonly rows: Tables;
  readonly fired: boolean;
  readonly committed: readonly Committed[];
  /** Before, and after each commit. */
  readonly instants: readonly Tables[];
  /** After one more try without a fault; null: there was none. */
  readonly again: Tables | null;
}

/** What is to be repeated by whoever gets an error. */
function mayBeRepeated(unit: Unit): boolean {
  const [kind, name] = unit.split(" ") as [string, never];
  const entry = (kind === "statement" ? STATEMENTS : TRANSACTIONS)[name] as object | string;
  return typeof entry === "object" && "again" in entry;
}

onEveryDialect((target) => {
  // Far from the server's date: a run whose jobs fall on a day that has a partition would drop the day, and delete no row.
  const clock = new FakeClock(Date.UTC(2100, 0, 1));
  let bench: { fresh: FreshStore; seam: Seam; close: () => Promise<void> } | undefined;
  const faults = faultsOf(target.dialect);
  /** Which faults have met what. */
  const met = new Map<string, Set<string>>();
  const note = (what: string, fault: Fault): void => {
    const known = met.get(what) ?? new Set();
    met.set(what, known.add(JSON.stringify(fault)));
  };

  async function open() {
    if (bench !== undefined) return bench;
    const fresh = await target.fresh();
    const driver = await openDriver(fresh.url, { ...fresh.options, clock });
    return (bench = { fresh, seam: new Seam(driver), close: () => driver.close() });
  }
  afterAll(() => bench?.close());

  async function run({ setup, act, ignored, once }: Scenario, plan: Plan | null): Promise<Ran> {
    const { fresh, seam } = await open();
    seam.start(null);
    await empty(fresh);
    const world = new World(fresh, clock, seam.driver);
    const { hf, tap } = await world.client();
    const env: Env = { hf, store: tap.store, world, fresh, newId: idFactory(() => clock.now()) };
    const rows = async (): Promise<{ tables: Tables; shown: Shown }> => tablesOf(fresh, ignored);
    const given = (await setup(env)) as never;
    await clock.advance(1);
    const instants = [(await rows()).tables];
    seam.start(plan, async () => {
      if (plan === null) instants.push((await rows()).tables);
    });
    let [answer, error]: [unknown, unknown] = [null, null];
    try {
      answer = await world.finish(act(env, given));
    } catch (thrown) {
      error = thrown;
    }
    await seam.late();
    const { fired, committed } = { fired: seam.fired, committed: [...seam.committed] };
    seam.start(null);
    const { tables, shown } = await rows();
    let again: Tables | null = null;
    if (error !== null && plan !== null && !once && mayBeRepeated(plan.unit)) {
      await world.finish(act(env, given));
      again = (await rows()).tables;
    }
    await world.closeClients();
    return { answer: shown(answer), error, rows: tables, fired, committed, instants, again };
  }

  for (const one of scenarios.filter(({ only }) => only === null || only === target.dialect))
    test(`[O2] ${one.name}: whatever becomes of its commits, it happens once or not at all`, async () => {
      const whole = await run(one, null);
      expect(whole.error).toBeNull();
      expect(whole.committed).not.toEqual([]);
      const units = new Map(whole.committed.map((each) => [`${each.unit} ${each.statements.join()}`, each]));
      for (const { unit, statements } of units.values())
        for (const [n, statement] of statements.entries())
          for (const fault of faults) {
            // Once for the whole unit.
            if (n > 0 && (fault === "lost" || fault === "late")) continue;
            // Each class once for a statement and once for a transaction, and one class wherever a statement is sent.
            const known = [statement, unit].every((of) => met.get(of)?.has(JSON.stringify(fault)) === true);
            if (known && typeof fault === "object" && fault !== faults[3]) continue;
            const plan = { unit, statement, fault };
            const what = `${one.name}: ${unit}, ${statement}, ${JSON.stringify(fault)}`;
            const ran = await run(one, plan);
            expect(
              ran.fired,
              `${what}; ${String(ran.error)}; ${ran.committed.map((each) => each.unit).join()}`,
            ).toBe(true);
            for (const each of n === 0 && (fault === "lost" || fault === "late") ? statements : [statement])
              note(each, fault);
            note(unit, fault);
            if (ran.error === null) {
              expect({ what, answer: ran.answer, rows: ran.rows }).toEqual({
                what,
                answer: whole.answer,
                rows: whole.rows,
              });
              continue;
            }
            expect(isHoldfastError(ran.error), `${what}: ${String(ran.error)}`).toBe(true);
            if (!whole.instants.some((rows) => same(rows, ran.rows)))
              expect({ what, rows: ran.rows }).toEqual({ what, rows: whole.rows });
            if (ran.again !== null)
              expect({ what: `${what}, asked again`, rows: ran.again }).toEqual({
                what: `${what}, asked again`,
                rows: whole.rows,
              });
          }
    });

  test("[O2] every statement that writes and every transaction has met every fault", () => {
    const writing = (Object.keys(STATEMENTS) as StatementName[]).filter(
      (name) => STATEMENTS[name] !== "reads",
    );
    const all = [...writing, ...Object.keys(TRANSACTIONS).map((name) => `transaction ${name}`)];
    const missing = all.flatMap((what) =>
      faults.filter((fault) => met.get(what)?.has(JSON.stringify(fault)) !== true).length === 0 ? [] : [what],
    );
    // SQLite drops no day under which a row could lose its job.
    expect(missing).toEqual(target.dialect === "sqlite" ? ["dropStrays"] : []);
  });
});

function same(a: Tables, b: Tables): boolean {
  const sorted = (tables: Tables): string =>
    JSON.stringify(
      Object.keys(tables)
        .toSorted()
        .map((name) => [name, tables[name]]),
    );
  return sorted(a) === sorted(b);
}
