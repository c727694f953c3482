// The dashboard while its database hangs, refuses or is cut off: nobody waits for ever, nothing ends the process, and all
// goes on by itself.
import pg from "pg";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { defineJob, open, silentLogger, StoreError } from "../../src/index.ts";
import type { ErrorBody, JobList, Overview } from "../../src/dashboard/api/contract.ts";
import { dashboard } from "../../src/dashboard/handler.ts";
import { READ_DEADLINE_MS } from "../../src/dashboard/live/deadline.ts";
import { Stream } from "../../src/dashboard/live/stream.ts";
import { FakeClock } from "../../src/testing/index.ts";
import { connect } from "../support/test-clients.ts";
import { onEveryStore, onPostgres, onSqlite } from "../support/stores.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";
import { waitFor } from "../support/wait.ts";
import { api, over, TOKEN } from "./support.ts";
import { operatorOf } from "../../src/operate/operator.ts";

const plain = defineJob({ name: "plain", run: async (_input: unknown) => {} });
const signedIn = { authorization: `Bearer ${TOKEN}` };

/** What nobody has caught since. */
function uncaught(): readonly unknown[] {
  const seen: unknown[] = [];
  const note = (error: unknown): void => void seen.push(error);
  const others = process.listeners("unhandledRejection");
  process.removeAllListeners("unhandledRejection");
  process.on("unhandledRejection", note);
  onTestFinished(() => {
    process.off("unhandledRejection", note);
    for (const other of others) process.on("unhandledRejection", other);
  });
  return seen;
}

/** Node tells of rejections after the microtasks. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(() => setImmediate(resolve)));

/** The names of the events that have come, and a way to wait for one. */
function watch(response: Response): {
  events: string[];
  until: (event: string, from?: number) => Promise<void>;
} {
  const events: string[] = [];
  const decoder = new TextDecoder();
  void (async () => {
    for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>)
      for (const [, event] of decoder.decode(chunk).matchAll(/^event: (\w+)$/gm)) events.push(event!);
  })().catch(() => {});
  return {
    events,
    until: async (event, from = 0) =>
      void (await waitFor(() => events.slice(from).includes(event), {
        what: `${event} in ${events.join()}`,
      })),
  };
}

const overview = {
  at: 1,
  verdict: { level: "good", text: "", links: [] },
  totals: { ready: { count: 0, more: false }, scheduled: { count: 0, more: false }, running: 0 },
  oldestMs: null,
} as unknown as Overview;

/** A stream over reads that end when the test says so. */
function held() {
  const clock = new FakeClock();
  const reads: PromiseWithResolvers<Overview>[] = [];
  const stream = new Stream({
    read: () => {
      const read = Promise.withResolvers<Overview>();
      reads.push(read);
      return read.promise;
    },
    watch: () => () => {},
    clock,
  });
  return { clock, reads, stream };
}

describe("a stream whose reads fail or hang", () => {
  test("a viewer that leaves before its first look fails harms nobody, however it leaves", async () => {
    const seen = uncaught();
    for (const leaves of ["cancels", "aborts", "is closed", "is closed, then cancels"] as const) {
      const { reads, stream } = held();
      const gone = new AbortController();
      const response = stream.open(gone.signal);
      if (leaves === "aborts") gone.abort();
      if (leaves.startsWith("is closed")) stream.close();
      if (leaves.endsWith("cancels")) await response.body!.cancel();
      reads[0]!.reject(new StoreError("CONNECTION_LOST", "gone"));
      await settled();
      expect([leaves, stream.viewers, reads.length]).toEqual([leaves, 0, 1]);
    }
    expect(seen).toEqual([]);
  });

  test("one that leaves before its first look succeeds does not either, and a stream that is closed twice stays closed", async () => {
    const seen = uncaught();
    const { reads, stream } = held();
    const response = stream.open(new AbortController().signal);
    stream.close();
    stream.close();
    reads[0]!.resolve(overview);
    await settled();
    expect(await response.text()).toBe("retry: 1000\n\n");
    expect(seen).toEqual([]);
  });

  test("a read that hangs is trouble after 5 s and again every 5 s, is asked once for all, and is told when it ends", async () => {
    const { clock, reads, stream } = held();
    onTestFinished(() => stream.close());
    const first = watch(stream.open(new AbortController().signal));
    reads[0]!.resolve(overview);
    await first.until("snapshot");
    await clock.advance("1s");
    expect(reads.length).toBe(2);
    const second = watch(stream.open(new AbortController().signal));
    await clock.advance("3s");
    const polled = stream.poll(null);
    expect(first.events).toEqual(["snapshot"]);
    await clock.advance("3s");
    await first.until("trouble");
    await second.until("trouble");
    await clock.advance("5s");
    await waitFor(() => first.events.length === 3, { what: "the second trouble" });
    expect(first.events).toEqual(["snapshot", "trouble", "trouble"]);
    // However many wait and however long, the database is asked once.
    expect(reads.length).toBe(2);
    reads[1]!.resolve(overview);
    await first.until("change");
    await second.until("snapshot");
    expect((await polled).overview).toEqual(overview);
    await clock.advance("1s");
    expect(reads.length).toBe(3);
  });

  test("what somebody else has seen first is told to the viewers all the same", async () => {
    const { clock, reads, stream } = held();
    onTestFinished(() => stream.close());
    const viewer = watch(stream.open(new AbortController().signal));
    reads[0]!.resolve(overview);
    await viewer.until("snapshot");
    const changed = { ...overview, holds: 1 };
    await clock.advance("1s");
    reads[1]!.resolve(changed);
    await viewer.until("change");
    await clock.advance("1s");
    reads[2]!.reject(new StoreError("CONNECTION_LOST", "gone"));
    await viewer.until("trouble");
    // Somebody asks before the next tick, which then finds nothing new.
    const polled = stream.poll(null);
    reads[3]!.resolve(changed);
    expect((await polled).overview).toEqual(changed);
    await clock.advance("1s");
    reads[4]!.resolve(changed);
    await viewer.until("change", viewer.events.indexOf("trouble"));
  });
});

onEveryStore((target) => {
  describe("a store that hangs", () => {
    test("a read is answered with 503 after 5 s, and what comes later is dropped; a change is waited for", async () => {
      const seen = uncaught();
      const clock = new FakeClock();
      const { hf, store } = await api(target, {}, { clock });
      const { get, send } = over(hf);
      const { insight } = operatorOf(hf).store;
      const late = Promise.withResolvers<never>();
      const browse = vi.spyOn(insight, "browse").mockReturnValue(late.promise);
      let answered = false;
      const answer = get<ErrorBody>("/jobs").finally(() => (answered = true));
      await waitFor(() => browse.mock.calls.length === 1, { what: "the read" });
      await clock.advance(READ_DEADLINE_MS - 1);
      expect(answered).toBe(false);
      await clock.advance(1);
      const { status, body, headers } = await answer;
      expect([status, body.error.code, headers.get("retry-after")]).toEqual([503, "UNAVAILABLE", "1"]);
      late.reject(new StoreError("CONNECTION_LOST", "gone"));
      await settled();
      browse.mockRestore();
      expect((await get("/jobs")).status).toBe(200);

      const real = hf.queues.pause.bind(hf.queues);
      const slow = Promise.withResolvers<void>();
      hf.queues.pause = async (name) => {
        await slow.promise;
        await real(name);
      };
      await hf.enqueue(plain, 1);
      const change = send("POST", "/queues/default/pause");
      await clock.advance(READ_DEADLINE_MS * 2);
      slow.resolve();
      expect((await change).status).toBe(200);
      expect(store.dialect).toBe(target.dialect);
      expect(seen).toEqual([]);
    });

    test("handler.close() in the middle of it ends the streams and nothing else", async () => {
      const seen = uncaught();
      const { hf } = await api(target);
      const handler = dashboard(hf, { auth: { token: TOKEN } });
      const { insight } = operatorOf(hf).store;
      const late = Promise.withResolvers<never>();
      vi.spyOn(insight, "jobTypes").mockReturnValue(late.promise);
      const response = await handler(new Request("http://localhost/api/v1/stream", { headers: signedIn }));
      handler.close();
      late.reject(new StoreError("CONNECTION_LOST", "gone"));
      expect(await response.text()).toBe("retry: 1000\n\n");
      await settled();
      expect(seen).toEqual([]);
    });
  });
});

onPostgres((target) => {
  describe("a Postgres that is cut off", () => {
    test("[J6] a stream says trouble, stays, and goes on with what changed meanwhile; so do reads", async () => {
      const store = await target.fresh();
      const own = await connect(store);
      const proxy = await TcpProxy.to(store.url);
      onTestFinished(() => proxy.close());
      const hf = await connect({ ...store, url: proxy.url(store.url) }, { retryFor: 0 });
      const { handler, get } = over(hf);
      const viewer = watch(
        await handler(new Request("http://localhost/api/v1/stream", { headers: signedIn })),
      );
      await viewer.until("snapshot");

      proxy.refuse();
      proxy.reset(); // also the connection that listens
      await viewer.until("trouble");
      expect((await get("/jobs")).status).toBe(503);
      expect((await get("/health")).status).toBe(503);
      await own.enqueue(plain, 1);
      const from = viewer.events.length;
      proxy.accept();
      await viewer.until("change", from);
      await waitFor(async () => (await get<JobList>("/jobs")).body.jobs.length === 1, { what: "the job" });
      await waitFor(async () => (await get("/health")).status === 200, { what: "health" });

      // Wake-ups come again: what happens is told, and not by the 5 s that sameness takes.
      await waitFor(() => operatorOf(hf).store.listening, { what: "the listener", deadlineMs: 30_000 });
    }, 90_000);

    test("[J6] a network in which nothing moves is trouble too, and goes on", async () => {
      const store = await target.fresh();
      const proxy = await TcpProxy.to(store.url);
      onTestFinished(() => proxy.close());
      const hf = await connect({ ...store, url: proxy.url(store.url) }, { retryFor: 0 });
      const { handler, get } = over(hf);
      const viewer = watch(
        await handler(new Request("http://localhost/api/v1/stream", { headers: signedIn })),
      );
      await viewer.until("snapshot");
      proxy.pause();
      const hung = get("/jobs");
      await viewer.until("trouble");
      expect((await hung).status).toBe(503);
      const from = viewer.events.length;
      proxy.resume();
      await viewer.until("change", from);
      expect((await get("/jobs")).status).toBe(200);
    }, 60_000);

    test.each(["our pools", "the user's pool"])(
      "reads for the dashboard that hang leave connections in %s for everything else",
      async (whose) => {
        const { hf: own, store } = await api(target);
        await own.schedules.put({ name: "s", every: "1h", job: "plain", input: null });
        const pool = new pg.Pool({ connectionString: store.url, max: 4 });
        onTestFinished(() => pool.end());
        const hf = await open(whose === "our pools" ? store.url : pool, {
          ...store.options,
          poolSize: 2,
          retryFor: "1s",
          logger: silentLogger,
        });
        onTestFinished(() => hf.close());
        const { get } = over(hf);
        await store.query("begin");
        await store.query(`lock table ${store.table("schedule")} in access exclusive mode`);
        const waiting = async (): Promise<number> => {
          const [row] = await store.query(
            "select count(*) as n from pg_locks where not granted and relation = cast(? as regclass)",
            [store.table("schedule")],
          );
          return Number(row!["n"]);
        };
        const asked = Array.from({ length: 12 }, () => get("/schedules"));
        const share = whose === "our pools" ? 3 : 2;
        await waitFor(async () => (await waiting()) === share, { what: "those who wait for the lock" });
        await Promise.all(Array.from({ length: 20 }, (_, n) => hf.enqueue(plain, n)));
        expect((await get("/health")).status).toBe(200);
        // Also when they have been given up: a server does not notice that nobody listens any more.
        for (const { status } of await Promise.all(asked)) expect(status).toBe(503);
        expect(await waiting()).toBe(share);
        await store.query("rollback");
        await waitFor(async () => (await get("/schedules")).status === 200, { what: "the schedules" });
      },
      60_000,
    );
  });
});

onSqlite((target) => {
  test("[J6] a file that another process has locked is read all the same, and written when it is free", async () => {
    const { store, get, send, handler } = await api(target);
    const viewer = watch(await handler(new Request("http://localhost/api/v1/stream", { headers: signedIn })));
    await viewer.until("snapshot");
    await store.query("begin immediate");
    expect((await get("/jobs")).status).toBe(200);
    const made = send("POST", "/jobs", { name: "plain", input: 1 });
    await get("/overview");
    await store.query("commit");
    expect((await made).status).toBe(200);
    await viewer.until("change");
    expect(viewer.events).not.toContain("trouble");
  });
});
