// What a client gives up must end on the server too; what a socket, a driver or a server says that nobody foresaw must end nobody.
import { inspect } from "node:util";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { systemClock } from "../../src/clock.ts";
import { defineJob, type Holdfast, type Logger, open, silentLogger } from "../../src/index.ts";
import { Connections } from "../../src/storage/postgres/connections.ts";
import type { PgClient, PgPool } from "../../src/storage/postgres/pg.ts";
import { type PostgresServer, startPostgres } from "../support/postgres.ts";
import { waitFor } from "../support/process.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";
import { operatorOf } from "../../src/operate/operator.ts";

async function server(settings: Record<string, string | number> = {}): Promise<PostgresServer> {
  const started = await startPostgres(18, { settings });
  onTestFinished(() => started.remove());
  return started;
}

async function client(target: string | object, options: object = {}): Promise<Holdfast> {
  const hf = await open(target, { logger: silentLogger, ...options });
  onTestFinished(() => hf.close());
  return hf;
}

async function session(url: string): Promise<pg.Client> {
  const one = new pg.Client({ connectionString: url, application_name: "the test" });
  one.on("error", () => {});
  await one.connect();
  onTestFinished(() => one.end());
  return one;
}

function poolOf(url: string, options: object = {}): pg.Pool {
  const pool = new pg.Pool({ connectionString: url, ...options });
  pool.on("error", () => {});
  onTestFinished(() => pool.end());
  return pool;
}

const quiet = { clock: systemClock, onConnectionLost: () => {}, onConnectionBack: () => {} };

async function connections(target: string | PgPool): Promise<Connections> {
  const opened = await Connections.open(target, { poolSize: 3, applicationName: "holdfast", ...quiet });
  onTestFinished(() => opened.close());
  return opened;
}

const napping = { text: "select pg_sleep(120) /* nap */", name: "", values: [] };

const soon = (what: string, condition: () => boolean | Promise<boolean>): Promise<boolean> =>
  waitFor(condition, { what, deadlineMs: 60_000, everyMs: 50 });

/** Lines of the log from warnings up. */
function lines(): { logger: Logger; said: string[]; everything: unknown[] } {
  const said: string[] = [];
  const everything: unknown[] = [];
  const note =
    (level: string) =>
    (details: unknown, message: string): void => {
      everything.push(details, message);
      if (level === "warn" || level === "error") said.push(message);
    };
  return {
    logger: { debug: note("debug"), info: note("info"), warn: note("warn"), error: note("error") },
    said,
    everything,
  };
}

test("[O9] postgres 18: a statement that a client gives up is cancelled on the server, whichever way it was given up", async () => {
  const { url } = await server().then((started) => ({ url: started.url() }));
  const watcher = await session(url);
  const ours = await connections(url);
  const theirs = await connections(poolOf(url) as unknown as PgPool);
  const hasty = await connections(poolOf(url, { query_timeout: 1_000 }) as unknown as PgPool);
  const user = await session(url);
  await user.query("begin");
  const given = [
    ours.query(napping, "claim"),
    ours.query(napping, "settle"),
    ours.query(napping, "view"),
    ours.query(napping, "general"),
    ours.transaction((send) => send(napping), "general"),
    ours.transaction((send) => send(napping), "claim"),
    theirs.query(napping, "claim"),
    hasty.query(napping, "claim"),
    ours.send(user as unknown as PgClient, napping, 1_000),
  ];
  const asleep = async (): Promise<number> => {
    const { rows } = await watcher.query<{ n: number }>(
      "select count(*)::int as n from pg_stat_activity where state = 'active' and query like '%/* nap */%' and pid <> pg_backend_pid()",
    );
    return rows[0]!.n;
  };
  await soon("all to sleep", async () => (await asleep()) === given.length);
  const outcomes = await Promise.allSettled(given);
  for (const outcome of outcomes)
    expect(outcome).toMatchObject({
      status: "rejected",
      reason: { code: expect.stringMatching(/^(STATEMENT_TIMEOUT|CONNECTION_LOST)$/) as string },
    });
  expect(await asleep()).toBe(0);
  await user.query("rollback");
  expect((await user.query("select 1 as one")).rows).toEqual([{ one: 1 }]);
});

test.each(["blackhole", "loseAnswers"] as const)(
  "[O9] postgres 18: a connection that goes silent (%s) under an enqueue or a read is noticed before a slow statement ends",
  async (fault) => {
    const { url } = await server().then((started) => ({ url: started.url() }));
    const proxy = await TcpProxy.to(url);
    onTestFinished(() => proxy.close());
    const ours = await connections(proxy.url(url));
    const one = { text: "select 1 as one", name: "", values: [] };
    // Both connections are there before they fall silent.
    await Promise.all([ours.query(one, "general"), ours.query(one, "general")]);
    proxy[fault]();
    const order: string[] = [];
    const noted = (what: string, answer: Promise<unknown>): Promise<unknown> =>
      answer.catch((error: unknown) => error).finally(() => order.push(what));
    const silent = [
      noted("silent", ours.query(one, "general")),
      noted(
        "silent",
        ours.transaction((send) => send(one), "general"),
      ),
    ];
    // A third connection, which passes: the server works on its statement for longer than a half-open one may last.
    const slow = noted("slow", ours.query({ ...one, text: "select 1 as one from pg_sleep(20)" }, "general"));
    for (const error of await Promise.all(silent)) expect(error).toMatchObject({ code: "CONNECTION_LOST" });
    expect(await slow).toEqual([{ one: 1 }]);
    expect(order).toEqual(["silent", "silent", "slow"]);
  },
);

test("[O9] postgres 18: a statement is given up at its deadline, though the server cannot be asked about it", async () => {
  const { url } = await server().then((started) => ({ url: started.url() }));
  const proxy = await TcpProxy.to(url);
  onTestFinished(() => proxy.close());
  const ours = await connections(proxy.url(url));
  const silent = await ours.dedicated();
  onTestFinished(() => silent.end().catch(() => {}));
  // New connections wait too: whoever asks is told nothing for 7 s.
  proxy.pause();
  const startedMs = systemClock.monotonic();
  await expect(
    ours.send(silent, { text: "select 1", name: "", values: [] }, 6_000, true),
  ).rejects.toMatchObject({ code: "CONNECTION_LOST" });
  expect(systemClock.monotonic() - startedMs).toBeLessThan(9_000);
  proxy.resume();
});

test("[O9] postgres 18: a worker's statements that wait for a lock do not pile up on the server", async () => {
  const { url } = await server().then((started) => ({ url: started.url() }));
  const hf = await client(url);
  const done: number[] = [];
  const job = defineJob({ name: "job", run: (n: number) => void done.push(n) });
  const worker = hf.work([job], { queues: { default: 4 }, poll: "200ms" });
  await worker.ready;
  const blocker = await session(url);
  await blocker.query("begin");
  await blocker.query("lock table holdfast.ready in access exclusive mode");
  const watcher = await session(url);
  const waiting = async (): Promise<{ id: string; age: number }[]> => {
    const { rows } = await watcher.query<{ id: string; age: number }>(
      "select pid || ' ' || query_start as id, extract(epoch from clock_timestamp() - query_start)::float8 as age from pg_stat_activity where state = 'active' and application_name like 'holdfast%' and wait_event_type = 'Lock'",
    );
    return rows;
  };
  const seen = new Set<string>();
  let oldest = 0;
  await waitFor(
    async () => {
      for (const { id, age } of await waiting()) {
        seen.add(id);
        oldest = Math.max(oldest, age);
      }
      return seen.size >= 4;
    },
    { what: "the fourth statement that waits", deadlineMs: 30_000, everyMs: 100 },
  );
  expect(oldest, "5 s, and one for the cancellation").toBeLessThan(8);
  await blocker.query("commit");
  await hf.enqueue(job, 1);
  await soon("the job to run", () => done.length === 1);
});

test("[O9] postgres 18: a commit whose wait for a standby was cancelled is not taken for replicated", async () => {
  const primary = await server();
  await primary.run("create table noted (n int)");
  const ours = await connections(primary.url());
  const insert = { text: "insert into public.noted values (1)", name: "", values: [] };
  await ours.query({ text: "select 1", name: "", values: [] }, "settle");
  await primary.run("alter system set synchronous_standby_names = 'nobody'");
  await primary.run("select pg_reload_conf()");
  // The server's processes read the setting one after the other: until then a commit waits for nobody.
  let given: unknown = null;
  while (given === null)
    await ours.query(insert, "settle").catch((error: unknown) => {
      given = error;
    });
  expect(given).toMatchObject({ code: "STATEMENT_TIMEOUT" });
  let again: string | null = null;
  const repeated = ours.transaction((send) =>
    send({ text: "select distinct n from public.noted", name: "", values: [] }),
  );
  void repeated.then(() => (again = "acknowledged"));
  const watcher = await session(primary.url());
  await soon("the repetition to wait for the standby", async () => {
    const { rows } = await watcher.query("select 1 from pg_stat_activity where wait_event = 'SyncRep'");
    return rows.length === 1;
  });
  expect(again).toBeNull();
  await watcher.query("alter system reset synchronous_standby_names");
  await watcher.query("select pg_reload_conf()");
  expect(await repeated).toEqual([{ n: 1 }]);
});

test("[O9] postgres 18: sockets that break with codes nobody foresaw end no worker and refuse no enqueue", async () => {
  const { url } = await server().then((started) => ({ url: started.url() }));
  const sockets = new Set<{ destroy(error?: Error): void }>();
  const pool = poolOf(url, { max: 6 });
  pool.on("connect", (one) => {
    sockets.add((one as unknown as { connection: { stream: { destroy(): void } } }).connection.stream);
  });
  const hf = await client(pool);
  const done: number[] = [];
  const job = defineJob({ name: "job", run: (n: number) => void done.push(n) });
  const worker = hf.work([job], { queues: { default: 4 }, poll: "100ms" });
  await worker.ready;
  const codes = [
    "EHOSTDOWN",
    "ENETDOWN",
    "EPROTO",
    "ERR_SSL_WRONG_VERSION_NUMBER",
    "EADDRNOTAVAIL",
    "EMFILE",
    null,
  ];
  for (const [n, code] of codes.entries()) {
    const enqueued = hf.enqueue(job, n);
    for (const socket of sockets) socket.destroy(Object.assign(new Error("broken by the test"), { code }));
    sockets.clear();
    await enqueued;
    await soon(`the job after ${code}`, () => new Set(done).size === n + 1);
  }
  await soon("the last end to be written", async () => (await hf.stats()).totals.running === 0);
  expect((await hf.stats()).totals).toMatchObject({ running: 0, dead: 0 });
  await worker.stop();
});

test("[O9] postgres 18: a worker on a pool with a query_timeout outlives a table that is locked for longer", async () => {
  const { url } = await server().then((started) => ({ url: started.url() }));
  const hf = await client(poolOf(url, { max: 6, query_timeout: 700 }));
  const done: number[] = [];
  const job = defineJob({ name: "job", run: (n: number) => void done.push(n) });
  const worker = hf.work([job], { queues: { default: 4 }, poll: "100ms" });
  await worker.ready;
  const { id } = await hf.enqueue(job, 0, { delay: "1s" });
  const blocker = await session(url);
  await blocker.query("begin");
  await blocker.query("lock table holdfast.ready in access exclusive mode");
  const enqueued = hf.enqueue(job, 1);
  await new Promise((resolve) => setTimeout(resolve, 4_000));
  await blocker.query("commit");
  await enqueued;
  await soon("both to run", () => done.length === 2);
  expect(await hf.jobs.get(id)).toMatchObject({ state: "done" });
  await worker.stop();
});

test.each(["53200", "58030", "XX000", "57014"])(
  "[O9] postgres 18: while the server refuses everything with %s, enqueues and workers wait, and nothing is dead",
  async (state) => {
    const { url } = await server().then((started) => ({ url: started.url() }));
    const hf = await client(url);
    const done: number[] = [];
    const job = defineJob({ name: "job", run: (n: number) => void done.push(n) });
    const worker = hf.work([job], { queues: { default: 4 }, poll: "100ms" });
    await worker.ready;
    const other = await session(url);
    await other.query(
      `create function refuse() returns trigger language plpgsql as $$ begin raise exception 'refused by the test' using errcode = '${state}'; end $$`,
    );
    const early = await hf.enqueue(job, 0, { delay: "500ms" });
    await other.query(
      "create trigger refuse before insert or update or delete on holdfast.ready for each statement execute function refuse()",
    );
    const enqueued = [hf.enqueue(job, 1), hf.enqueueMany([{ job, input: 2 }])];
    await new Promise((resolve) => setTimeout(resolve, 6_000));
    expect(done).toEqual([]);
    await other.query("drop trigger refuse on holdfast.ready");
    await Promise.all(enqueued);
    await soon("all to run", () => done.length === 3);
    await soon("the first to end", async () => (await hf.jobs.get(early.id))?.state === "done");
    expect(await hf.jobs.get(early.id)).toMatchObject({ attempt: 1 });
    await worker.stop();
  },
);

test("[O9] postgres 18: open waits for a server that is not there yet, and says so", async () => {
  const started = await server();
  await started.stop("fast");
  const { logger, said } = lines();
  const opening = open(started.url(), { logger });
  await soon("it to be told", () => said.length === 1);
  expect(said[0]).toMatch(/does not answer yet; retrying/);
  await started.start();
  const hf = await opening;
  onTestFinished(() => hf.close());
  await hf.enqueue("any", 0);
  expect(said).toHaveLength(1);
});

test("[O9] postgres 18: with a full NOTIFY queue everything is enqueued and runs, found by polling", async () => {
  const started = await server({ max_notify_queue_pages: 64 });
  const hf = await client(started.url());
  const told: string[] = [];
  hf.on("warning", ({ message }) => void told.push(message));
  const done: unknown[] = [];
  const job = defineJob({ name: "job", run: (n: number) => void done.push(n) });
  const waiting = defineJob({
    name: "waiting",
    run: async (_input: null, ctx) => void done.push(await ctx.waitFor("go", { timeout: "60s" })),
  });
  const worker = hf.work([job, waiting], { queues: { default: 4 } });
  await worker.ready;
  await hf.enqueue(waiting, null);
  const deaf = await session(started.url());
  await deaf.query("listen noise");
  await deaf.query("begin");
  await deaf.query("select 1");
  const noisy = await session(started.url());
  const full = await waitFor(
    () =>
      noisy
        .query(
          "select pg_notify('noise', repeat('x', 7000) || n || clock_timestamp()) from generate_series(1, 5) n",
        )
        .then(
          () => null,
          (error: unknown) => error,
        ),
    { what: "the queue to be full" },
  );
  expect(full).toMatchObject({ code: "54000" });

  await hf.enqueue(job, 1);
  await hf.enqueueMany([2, 3].map((input) => ({ job, input })));
  const tx = await session(started.url());
  await tx.query("begin");
  await hf.enqueue(job, 4, { tx });
  await tx.query("commit");
  await tx.query("insert into holdfast.enqueue (name, input) values ('job', '5')");
  await hf.signal("go", { data: 6 });
  await soon("all to run", () => done.length === 6);
  expect(new Set(done)).toEqual(new Set([1, 2, 3, 4, 5, 6]));

  await soon("the listener to notice", () => told.length === 1);
  expect(told[0]).toMatch(/NOTIFY queue/);
  await deaf.query("commit");
  await soon("wake-ups to arrive again", () => operatorOf(hf).store.listening);
  expect(told).toHaveLength(1);
  await worker.stop();
});

/** A worker on a server that goes away for a while, and what the log has from warnings up. */
async function outage(
  act: (started: PostgresServer, proxy: TcpProxy) => Promise<void>,
): Promise<{ said: string[]; everything: unknown[] }> {
  const started = await server();
  const proxy = await TcpProxy.to(started.url());
  onTestFinished(() => proxy.close());
  const { logger, said, everything } = lines();
  const hf = await client(proxy.url(started.url()), { logger });
  const done: number[] = [];
  const job = defineJob({ name: "job", run: (n: number) => void done.push(n) });
  const workers = [
    hf.work([job], { queues: ["default"] }),
    hf.work([job], { queues: ["default"], name: "second" }),
  ];
  for (const worker of workers) await worker.ready;
  await Promise.all(Array.from({ length: 40 }, (_, n) => hf.enqueue(job, n)));
  await soon("all to run", () => done.length === 40);
  said.length = 0;
  const reads = setInterval(() => void hf.jobs.count().catch(() => {}), 100);
  await act(started, proxy);
  await (await client(started.url())).enqueue(job, 40);
  await soon("work to go on", () => done.length >= 41);
  await new Promise((resolve) => setTimeout(resolve, 2_000));
  clearInterval(reads);
  for (const worker of workers) await worker.stop();
  return { said, everything };
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

test.each<[string, (started: PostgresServer, proxy: TcpProxy) => Promise<void>]>([
  [
    "a server that is down for 6 s",
    async (started) => {
      await started.stop("immediate");
      await pause(6_000);
      await started.start();
    },
  ],
  [
    "connections that are reset and refused for 6 s",
    async (_started, proxy) => {
      proxy.refuse();
      proxy.reset();
      await pause(6_000);
      proxy.accept();
    },
  ],
  ["connections that become black holes", async (_started, proxy) => proxy.blackhole()],
])(
  "[O9] postgres 18: of %s one line tells the loss and one the return, without a driver's object",
  async (_what, act) => {
    const { said, everything } = await outage(act);
    expect(said).toEqual([
      "the connection to the database was lost",
      expect.stringMatching(/^the connection to the database is back after \d+ ms$/) as string,
    ]);
    const text = inspect(everything, { depth: 12 });
    expect(text).not.toMatch(/secretKey|processID|_events|pooler/);
  },
);

test("[O9] postgres 18: a URL with several hosts finds the one that takes writes, before and after a failover", async () => {
  const primary = await server();
  const standby = await primary.standby();
  onTestFinished(() => standby.remove());
  const url = `postgres://postgres@127.0.0.1:${standby.port},127.0.0.1:${primary.port}/postgres?target_session_attrs=read-write`;
  const { logger, said } = lines();
  const hf = await client(url, { logger });
  const done: number[] = [];
  const job = defineJob({ name: "job", run: (n: number) => void done.push(n) });
  const worker = hf.work([job], { queues: ["default"], lease: "10s", heartbeat: "1s" });
  await worker.ready;
  await soon("the listener to hear itself", () => operatorOf(hf).store.listening);
  const backends = async (which: PostgresServer): Promise<string[]> => {
    const one = await session(which.url());
    const { rows } = await one.query<{ name: string }>(
      "select distinct application_name as name from pg_stat_activity where application_name like 'holdfast%' order by 1",
    );
    return rows.map(({ name }) => name);
  };
  await hf.enqueue(job, 1);
  await soon("it to run", () => done.length === 1);
  await soon("the renewal to connect", async () => (await backends(primary)).length === 2);
  expect(await backends(standby)).toEqual([]);
  await soon("the standby to catch up", () => standby.caughtUp(primary));

  await primary.stop("immediate");
  await standby.promote();
  await hf.enqueue(job, 2);
  await soon("it to run there", () => done.length === 2);
  await soon("the renewal to connect there", async () => (await backends(standby)).length === 2);
  expect(worker.leasesLost).toBe(0);
  expect(said).toHaveLength(2);
  await worker.stop();
});
