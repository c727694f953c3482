import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { sleep, systemClock } from "../../src/clock.ts";
import { Dead, Release, RetryAfter, Throttled } from "../../src/jobs/decision.ts";
import { StoreError } from "../../src/errors.ts";
import { Emitter } from "../../src/events.ts";
import { silentLogger } from "../../src/logger.ts";
import { reapOnce } from "../../src/lease/reaper.ts";
import type { ClaimStore, SettleStore } from "../../src/lease/store.ts";
import { sessionInfo } from "../support/world.ts";
import { type Bench, bench, benchOn, gate, kind, turns } from "./bench.ts";

let b: Bench;
beforeEach(async () => {
  b = await bench();
});
afterEach(async () => {
  await b.close();
});

const lost = (): StoreError => new StoreError("CONNECTION_LOST", "gone");

describe("a worker", () => {
  test("runs a job and keeps its output", async () => {
    const worker = b.work([kind("add", ({ a }: { a: number }) => ({ sum: a + 1 }))]);
    await worker.ready;
    const id = await b.enqueue("add", { a: 1 });
    await worker.idle();
    expect(await b.get(id)).toMatchObject({ state: "done", output: { sum: 2 }, attempt: 1 });
    expect(b.of("job.done")).toHaveLength(1);
  });

  test("runs no more at once than the queue has slots, and everything in the end", async () => {
    let running = 0;
    let most = 0;
    const ids: string[] = [];
    for (let i = 0; i < 50; i++) ids.push(await b.enqueue("job", { i }));
    const worker = b.work(
      [
        kind("job", async () => {
          running += 1;
          most = Math.max(most, running);
          await turns(1);
          running -= 1;
        }),
      ],
      { queues: { default: 3 } },
    );
    await worker.idle();
    expect(most).toBe(3);
    for (const id of ids) expect((await b.get(id)).state).toBe("done");
  });

  test("claims no-op jobs in hundreds and settles them in batches", async () => {
    for (let i = 0; i < 3_000; i++) await b.enqueue("noop", { i });
    let claims = 0;
    let settles = 0;
    b.store.claims.claim = (...args: Parameters<ClaimStore["claim"]>) => (
      (claims += 1),
      b.real.claims.claim(...args)
    );
    b.store.settles.settle = (...args: Parameters<SettleStore["settle"]>) => (
      (settles += 1),
      b.real.settles.settle(...args)
    );
    const worker = b.work([kind("noop", () => undefined)]);
    await worker.idle();
    expect(await b.real.jobs.count({ state: "done" })).toBe(3_000);
    expect(claims).toBeLessThan(30);
    expect(settles).toBeLessThan(30);
  });

  test("claims long jobs one by one: nothing waits in a worker that cannot start it", async () => {
    const doors = Array.from({ length: 5 }, () => gate());
    const worker = b.work([kind("long", ({ i }: { i: number }) => doors[i]?.opened)], {
      queues: { default: 2 },
    });
    for (let i = 0; i < 5; i++) await b.enqueue("long", { i });
    await turns(20);
    expect(worker.running).toBe(2);
    expect(await b.real.jobs.count({ state: "running" })).toBe(2);
    for (const [i, door] of doors.entries()) {
      await b.clock.advance("10s");
      expect(await b.real.jobs.count({ state: "running" })).toBeLessThanOrEqual(2);
      door.open();
      await turns(10);
      void i;
    }
    await worker.idle();
    expect(await b.real.jobs.count({ state: "done" })).toBe(5);
  });

  test("gives back what it claimed ahead and could not start within a second", async () => {
    // Fast jobs teach it to claim ahead; then every slot is taken by a slow one.
    const door = gate();
    const worker = b.work(
      [kind("job", ({ slow }: { slow?: boolean }) => (slow === true ? door.opened : undefined))],
      { queues: { default: 2 } },
    );
    for (let i = 0; i < 100; i++) await b.enqueue("job");
    await worker.idle();
    const ids: string[] = [];
    for (let i = 0; i < 50; i++) ids.push(await b.enqueue("job", { slow: true }));
    await turns(20);
    expect(worker.running).toBe(2);
    expect(await b.real.jobs.count({ state: "running" })).toBeGreaterThan(2);
    await b.clock.advance("1100ms");
    await turns(20);
    expect(await b.real.jobs.count({ state: "running" })).toBe(2);
    for (const id of ids) expect((await b.get(id)).attempt).toBeLessThanOrEqual(1);
    door.open();
    await worker.idle();
    for (const id of ids) expect(await b.get(id)).toMatchObject({ state: "done", attempt: 1 });
  });

  test("[F13] [O13] rejects two definitions of one name, takes one twice, and logs their names", async () => {
    const twice = kind("twice", () => undefined);
    expect(() => b.work([twice, kind("twice", () => undefined)])).toThrow(
      expect.objectContaining({ code: "DUPLICATE_NAME", details: { job: "twice" } }) as Error,
    );
    const worker = b.work([twice, twice]);
    const id = await b.enqueue("twice");
    await worker.idle();
    expect((await b.get(id)).state).toBe("done");
    expect(b.lines.find(({ details }) => "names" in details)?.details["names"]).toEqual(["twice"]);
  });

  test("starts a job at its due instant, and is idle until then", async () => {
    const worker = b.work([kind("later", () => undefined)]);
    await worker.ready;
    const id = await b.enqueue("later", {}, { delayMs: 3_000 });
    await worker.idle();
    await b.clock.advance(2_900);
    expect((await b.get(id)).state).toBe("scheduled");
    await b.clock.advance(200);
    await worker.idle();
    const job = await b.get(id);
    expect(job.state).toBe("done");
    expect((job.startedAt?.getTime() ?? 0) - (job.runAt?.getTime() ?? 0)).toBeLessThanOrEqual(10);
  });

  test("an idle worker that hears wake-ups sends at most half a query a second", async () => {
    (b.store as { listening: boolean }).listening = true;
    const worker = b.work([kind("none", () => undefined)]);
    await worker.ready;
    await b.clock.advance("10s");
    const before = b.real.counters.statements;
    await b.clock.advance("10m");
    expect((b.real.counters.statements - before) / 600).toBeLessThanOrEqual(0.5);
  });
});

describe("outcomes", () => {
  const run = async (handler: () => unknown, options: Record<string, unknown> = {}): Promise<string> => {
    const worker = b.work([kind("job", handler, options)]);
    const id = await b.enqueue("job");
    await worker.idle();
    return id;
  };

  test("a thrown error fails the attempt and the job runs again after the backoff", async () => {
    const id = await run(() => {
      throw new Error("boom");
    });
    const job = await b.get(id);
    expect(job).toMatchObject({ state: "scheduled", attempt: 1, error: "boom" });
    expect((job.runAt?.getTime() ?? 0) - b.clock.now()).toBe(60_000);
    await b.clock.advance("61s");
    expect((await b.get(id)).attempt).toBe(2);
  });

  test("Dead, RetryAfter, Throttled and Release do what they say", async () => {
    const decisions = [
      new Dead("no"),
      new RetryAfter("7s", "later"),
      new Throttled("5s"),
      new Release("not me", { delay: "3s" }),
    ];
    const worker = b.work([
      kind("job", ({ i }: { i: number }) => {
        throw decisions[i] as Error;
      }),
    ]);
    const ids = [];
    for (const i of decisions.keys()) ids.push(await b.enqueue("job", { i }));
    await worker.idle();
    const [dead, retried, throttled, released] = await Promise.all(ids.map((id) => b.get(id)));
    expect(dead).toMatchObject({ state: "dead", attempt: 1, error: "no" });
    expect(retried).toMatchObject({ state: "scheduled", attempt: 1, error: "later" });
    expect(throttled).toMatchObject({ state: "scheduled", attempt: 0 });
    expect(released).toMatchObject({ state: "scheduled", attempt: 0 });
    const wait = (job: typeof dead): number => (job?.runAt?.getTime() ?? 0) - b.clock.now();
    expect([wait(retried), wait(throttled), wait(released)]).toEqual([7_000, 5_000, 3_000]);
  });

  test("an output that JSON cannot hold makes the job dead at once, with a code", async () => {
    const id = await run(() => ({ big: 1n }));
    const job = await b.get(id);
    expect(job).toMatchObject({ state: "dead", attempt: 1 });
    expect(job.error).toContain("OUTPUT_NOT_JSON");
  });

  test("an input that cannot be read makes only its own job dead", async () => {
    const seen: number[] = [];
    const worker = b.work([kind("job", ({ i }: { i: number }) => void seen.push(i))]);
    const good = [await b.enqueue("job", { i: 1 })];
    const bad = await b.enqueue("job", {}, { input: "{not json" });
    good.push(await b.enqueue("job", { i: 2 }));
    await worker.idle();
    expect(seen).toEqual([1, 2]);
    for (const id of good) expect((await b.get(id)).state).toBe("done");
    const ended = await b.real.jobs.list({ state: "dead" }, { limit: 10, cursor: null }).catch(() => null);
    if (ended !== null) expect(ended.jobs.map(({ id }) => id)).toEqual([bad]);
  });
});

describe("time", () => {
  test("[D14] a hung handler is told to stop at its timeout and frees its slot within a second", async () => {
    let reason: unknown;
    const worker = b.work(
      [
        kind(
          "hung",
          (_: unknown, ctx) =>
            new Promise(() => ctx.signal.addEventListener("abort", () => void (reason = ctx.signal.reason))),
          { timeout: "600s" },
        ),
      ],
      { queues: { default: 1 } },
    );
    const id = await b.enqueue("hung");
    await turns();
    await b.clock.advance("599s");
    expect(reason).toBeUndefined();
    expect((await b.get(id)).state).toBe("running");
    await b.clock.advance("2s");
    expect(reason).toMatchObject({ code: "TIMEOUT", message: "timeout after 600s" });
    await turns();
    expect(await b.get(id)).toMatchObject({ state: "scheduled", error: "timeout after 600s", attempt: 1 });
    expect(worker.running).toBe(0);
    expect(worker.runaways).toBe(1);
    expect(b.of("warning")).toHaveLength(1);
  });

  test("a job that was not started by its deadline is cancelled without having used an attempt", async () => {
    const id = await b.enqueue("job", {}, { deadlineAt: b.clock.now() + 1_000 });
    await b.clock.advance("2s");
    const worker = b.work([
      kind("job", () => {
        throw new Error("must not run");
      }),
    ]);
    await worker.idle();
    const job = await b.get(id);
    expect(job).toMatchObject({ state: "cancelled", attempt: 0 });
    expect(job.error).toContain("deadline");
  });

  test("a job of five leases runs once", async () => {
    const door = gate();
    let runs = 0;
    const worker = b.work([
      kind("long", async () => {
        runs += 1;
        await door.opened;
      }),
    ]);
    const other = b.work([
      kind("long", () => {
        runs += 1;
      }),
    ]);
    const id = await b.enqueue("long");
    await turns();
    await b.clock.advance("150s");
    door.open();
    await Promise.all([worker.idle(), other.idle()]);
    expect(runs).toBe(1);
    expect(await b.get(id)).toMatchObject({ state: "done", attempt: 1, crashes: 0 });
  });
});

describe("cancelling", () => {
  const cancellable = () => {
    const doors = gate();
    const handler = kind("job", async (_: unknown, ctx) => {
      await Promise.race([
        doors.opened,
        new Promise((_resolve, reject) =>
          ctx.signal.addEventListener("abort", () => reject(ctx.signal.reason as Error)),
        ),
      ]);
      return "finished";
    });
    return { doors, handler };
  };

  test("[E3] ends the job as cancelled, without a retry", async () => {
    const { handler } = cancellable();
    const worker = b.work([handler]);
    const id = await b.enqueue("job");
    await turns();
    expect(worker.cancelLocal(id, "cancelled by user")).toBe(true);
    await worker.idle();
    expect(await b.get(id)).toMatchObject({ state: "cancelled", error: "cancelled by user" });
    expect(worker.cancelLocal(id, "again")).toBe(false);
  });

  test("[E3] a handler that finishes all the same keeps its result", async () => {
    const door = gate();
    const worker = b.work([
      kind("job", async () => {
        await door.opened;
        return "finished";
      }),
    ]);
    const id = await b.enqueue("job");
    await turns();
    worker.cancelLocal(id, "cancelled by user");
    door.open();
    await worker.idle();
    expect(await b.get(id)).toMatchObject({ state: "done", output: "finished" });
  });

  test("[E2] is heard through the database within one heartbeat", async () => {
    const { handler } = cancellable();
    const worker = b.work([handler]);
    const id = await b.enqueue("job");
    await turns();
    expect((await b.real.jobs.cancel([id], "cancelled by user")).get(id)).toBe("cancel_requested");
    await b.clock.advance("10s");
    await worker.idle();
    expect(await b.get(id)).toMatchObject({ state: "cancelled", error: "cancelled by user" });
  });
});

describe("leases", () => {
  test("[C6] claiming pauses while renewals fail and goes on when they work; past the lease everything is aborted before another starts", async () => {
    const signals: unknown[] = [];
    const worker = b.work([
      kind(
        "hold",
        (_: unknown, ctx) =>
          new Promise((_resolve, reject) =>
            ctx.signal.addEventListener("abort", () => {
              signals.push([b.clock.monotonic(), (ctx.signal.reason as { code: string }).code]);
              reject(new Error("aborted"));
            }),
          ),
      ),
      kind("quick", () => undefined),
    ]);
    const held = await b.enqueue("hold");
    await turns();
    b.store.sessions.renew = () => Promise.reject(lost());
    await b.clock.advance("10s");
    const waiting = await b.enqueue("quick");
    await b.clock.advance("5s");
    expect((await b.get(waiting)).state).toBe("ready");
    b.restore("sessions.renew");
    await b.clock.advance("2s");
    await turns();
    expect((await b.get(waiting)).state).toBe("done");
    expect(signals).toEqual([]);
    // From here on nothing is renewed any more.
    const cutAt = b.clock.monotonic();
    b.store.sessions.renew = () => Promise.reject(lost());
    await b.clock.advance("31s");
    await turns();
    expect(signals).toHaveLength(1);
    const [at, code] = signals[0] as [number, string];
    expect(code).toBe("LEASE_LOST");
    expect(at - cutAt).toBeLessThan(30_000);
    expect(worker.leasesLost).toBe(1);
    expect(b.of("lease.lost")).toMatchObject([{ id: held }]);
  });

  test("a session that is gone is left behind: what it held is aborted, a new one goes on", async () => {
    b.work([
      kind(
        "hold",
        (_: unknown, ctx) =>
          new Promise((_resolve, reject) =>
            ctx.signal.addEventListener("abort", () => reject(new Error("aborted"))),
          ),
        { maxCrashes: 99 },
      ),
      kind("quick", () => undefined),
    ]);
    const held = await b.enqueue("hold");
    await turns();
    const [session] = (await b.real.workers.list()).map((state) => state.session);
    await b.real.sessions.close(session ?? -1);
    await b.clock.advance("10s");
    await turns();
    const quick = await b.enqueue("quick");
    await turns(20);
    expect((await b.get(quick)).state).toBe("done");
    await b.clock.advance("10s");
    await turns(20);
    expect(await b.get(held)).toMatchObject({ state: "running", crashes: 1, attempt: 1 });
  });

  test("[C7] a dead worker's jobs are taken over when its lease has passed, not before", async () => {
    const session = await b.real.sessions.open({
      kind: "worker",
      workerId: "dead",
      name: "dead",
      host: "x",
      pid: 1,
      queues: {},
      names: [],
      leaseMs: 30_000,
      version: "0",
    });
    const id = await b.enqueue("job");
    const claimed = await b.real.claims.claim(
      session,
      { queues: new Map([["default", 5]]), names: ["job"], limit: 5, order: "highest-first" },
      { levels: new Map(), rescannedAt: -Infinity },
    );
    expect(claimed).toHaveLength(1);
    const worker = b.work([kind("job", () => "ran")]);
    await worker.ready;
    await b.clock.advance("29s");
    expect(await b.get(id)).toMatchObject({ state: "running", crashes: 0 });
    await b.clock.advance("6s");
    await worker.idle();
    expect(await b.get(id)).toMatchObject({ state: "done", crashes: 1, attempt: 1 });
    expect(b.of("job.crashed")).toMatchObject([{ id, crashes: 1, dead: false }]);
  });

  test("[D18] a settle is tried again until it is known to have happened", async () => {
    let tries = 0;
    b.store.settles.settle = (...args: Parameters<SettleStore["settle"]>) =>
      (tries += 1) <= 2 ? Promise.reject(lost()) : b.real.settles.settle(...args);
    let runs = 0;
    const worker = b.work([kind("job", () => void (runs += 1))]);
    const id = await b.enqueue("job");
    await turns();
    await b.clock.advance("2s");
    await worker.idle();
    expect(tries).toBe(3);
    expect(runs).toBe(1);
    expect((await b.get(id)).state).toBe("done");
    expect(worker.leasesLost).toBe(0);
  });

  test("a settle that had happened before its answer was lost is not reported as a lost lease", async () => {
    let tries = 0;
    b.store.settles.settle = async (...args: Parameters<SettleStore["settle"]>) => {
      const moved = await b.real.settles.settle(...args);
      tries += 1;
      if (tries === 1) throw new StoreError("CONNECTION_LOST", "who knows");
      return moved;
    };
    const worker = b.work([
      kind("job", ({ fail }: { fail?: boolean }) => {
        if (fail === true) throw new Error("boom");
      }),
    ]);
    const ids = [await b.enqueue("job"), await b.enqueue("job", { fail: true })];
    await turns();
    await b.clock.advance("1s");
    await worker.idle();
    expect(tries).toBeGreaterThanOrEqual(2);
    expect((await b.get(ids[0] ?? "")).state).toBe("done");
    expect((await b.get(ids[1] ?? "")).state).toBe("scheduled");
    expect(worker.leasesLost).toBe(0);
    expect(b.of("job.done")).toHaveLength(1);
  });

  test("[C1] a stale attempt may not settle: the row stays, one warning, counted", async () => {
    const door = gate();
    const worker = b.work([kind("job", () => door.opened)]);
    const id = await b.enqueue("job");
    await turns();
    const [session] = (await b.real.workers.list()).map((state) => state.session);
    await b.real.sessions.close(session ?? -1);
    // Before the worker hears of it, its handler ends.
    door.open();
    await turns(20);
    expect(worker.leasesLost).toBe(1);
    expect(
      b.lines.filter(({ level, message }) => level === "warn" && message.startsWith("leases were lost")),
    ).toHaveLength(1);
    expect((await b.get(id)).state).not.toBe("done");
  });
});

describe("poison", () => {
  test("[C8] a job that has crashed before is not claimed ahead of need", async () => {
    const door = gate();
    const worker = b.work(
      [kind("job", ({ slow }: { slow?: boolean }) => (slow === true ? door.opened : undefined))],
      { queues: { default: 2 } },
    );
    for (let i = 0; i < 100; i++) await b.enqueue("job");
    await worker.idle(); // now it claims ahead
    const session = await b.real.sessions.open({
      kind: "worker",
      workerId: "dead",
      name: "dead",
      host: "x",
      pid: 1,
      queues: {},
      names: [],
      leaseMs: 30_000,
      version: "0",
    });
    const suspects: string[] = [];
    b.store.claims.claim = () => Promise.resolve([]);
    for (let i = 0; i < 10; i++) suspects.push(await b.enqueue("job", { slow: true }));
    await b.real.claims.claim(
      session,
      { queues: new Map([["default", 50]]), names: ["job"], limit: 50, order: "highest-first" },
      { levels: new Map(), rescannedAt: -Infinity },
    );
    await b.real.sessions.close(session);
    b.restore("claims.claim");
    let most = 0;
    // In steps shorter than the second after which anything that waits is given back.
    for (let i = 0; i < 60; i++) {
      await b.clock.advance("100ms");
      await turns(5);
      most = Math.max(most, await b.real.jobs.count({ state: "running" }));
    }
    expect(worker.running).toBe(2);
    expect(most).toBe(2);
    door.open();
    await worker.idle();
    for (const id of suspects)
      expect(await b.get(id)).toMatchObject({ state: "done", crashes: 1, attempt: 1 });
  });
});

describe("quarantine", () => {
  test("[C8] of jobs that have killed two workers only one is started at a time, and all of them run in the end", async () => {
    const deps = {
      store: b.real,
      clock: b.clock,
      random: () => 0.5,
      log: silentLogger,
      events: new Emitter(() => undefined),
      definition: () => undefined,
    };
    const ids = [await b.enqueue("job"), await b.enqueue("job"), await b.enqueue("job")];
    const scope = {
      queues: new Map([["default", 5]]),
      names: ["job"],
      limit: 5,
      order: "highest-first",
    } as const;
    for (let crash = 0; crash < 2; crash++) {
      const session = await b.real.sessions.open({
        kind: "worker",
        workerId: "dead",
        name: "dead",
        host: "x",
        pid: 1,
        queues: {},
        names: [],
        leaseMs: 30_000,
        version: "0",
      });
      expect(
        await b.real.claims.claim(session, scope, { levels: new Map(), rescannedAt: -Infinity }),
      ).toHaveLength(3);
      await b.real.sessions.close(session);
      expect(await reapOnce(deps)).toBe(3);
    }
    const door = gate();
    const worker = b.work([kind("job", () => door.opened)], { queues: { default: 5 } });
    await worker.ready;
    await b.clock.advance("3s");
    expect(worker.running).toBe(1);
    await b.clock.advance("15s");
    expect(worker.running).toBe(3);
    door.open();
    await worker.idle();
    for (const id of ids) expect(await b.get(id)).toMatchObject({ state: "done", crashes: 2, attempt: 1 });
  });
});

describe("pause, settings, overload", () => {
  test("[F3] a paused queue's running job finishes, and nothing more is claimed", async () => {
    const door = gate();
    const worker = b.work([kind("job", () => door.opened)], { queues: { default: 1 } });
    const first = await b.enqueue("job");
    await turns();
    await b.real.queues.set("default", { paused: true });
    const second = await b.enqueue("job");
    await b.clock.advance("2s");
    door.open();
    await turns(20);
    await b.clock.advance("10s");
    expect(await b.get(first)).toMatchObject({ state: "done", attempt: 1 });
    expect((await b.get(second)).state).toBe("ready");
    await b.real.queues.set("default", { paused: false });
    await b.clock.advance("2s");
    await worker.idle();
    expect((await b.get(second)).state).toBe("done");
  });

  test("[F3] what a paused queue's worker had claimed ahead goes back at once", async () => {
    const door = gate();
    const worker = b.work(
      [kind("job", ({ slow }: { slow?: boolean }) => (slow === true ? door.opened : undefined))],
      { queues: { default: 1 } },
    );
    for (let i = 0; i < 100; i++) await b.enqueue("job");
    await worker.idle(); // now it claims ahead
    for (let i = 0; i < 20; i++) await b.enqueue("job", { slow: true });
    await turns(20);
    expect(await b.real.jobs.count({ state: "running" })).toBeGreaterThan(1);
    await b.real.queues.set("default", { paused: true });
    await turns(20);
    expect(await b.real.jobs.count({ state: "running" })).toBe(1);
    expect(worker.running).toBe(1);
    door.open();
  });

  test("[F2] slots are changed live, within two seconds", async () => {
    const door = gate();
    const worker = b.work([kind("job", () => door.opened)], { queues: { default: 1 } });
    for (let i = 0; i < 10; i++) await b.enqueue("job");
    await turns(20);
    expect(worker.running).toBe(1);
    await b.real.queues.set("default", { slots: 4 });
    await b.clock.advance("2s");
    await turns(20);
    expect(worker.running).toBe(4);
    door.open();
    await worker.idle();
  });

  test("[N8] an event loop that is late claims nothing until it keeps up", async () => {
    let delayMs = 600;
    const worker = b.work(
      [kind("job", () => undefined)],
      { queues: { default: 1 } },
      { loopDelay: () => delayMs },
    );
    const id = await b.enqueue("job");
    await b.clock.advance("5s");
    expect((await b.get(id)).state).toBe("ready");
    expect(b.of("worker.paused")).toMatchObject([{ reason: "event-loop delay" }]);
    delayMs = 20;
    await b.clock.advance("1s");
    await worker.idle();
    expect((await b.get(id)).state).toBe("done");
    expect(b.of("worker.resumed")).toHaveLength(1);
  });

  test.each(["any", "settings"] as const)(
    "[O16] a worker that starts overloaded becomes ready after it, also when it looked meanwhile (wake-up: %s)",
    async (wake) => {
      let delayMs = 600;
      let ready = false;
      const worker = b.work([kind("job", () => undefined)], undefined, { loopDelay: () => delayMs });
      worker.ready.then(
        () => (ready = true),
        () => undefined,
      );
      await turns(20);
      // The claim is put off. A wake-up makes the worker look, and there is nothing to find.
      b.real.wake({ kind: wake });
      await turns(20);
      delayMs = 0;
      await b.clock.advance("1s");
      await turns(20);
      expect(ready).toBe(true);
    },
  );

  test.each(["the process is overloaded", "no claim succeeds"])(
    "[O16] schedules fire and upkeep tasks are done from the start, although %s",
    async (why) => {
      const overloaded = why === "the process is overloaded";
      if (!overloaded) b.store.claims.claim = () => Promise.reject(lost());
      const upkeepTasks = new Set<string>();
      let looks = 0;
      b.store.upkeep.takeTask = async (...args) => {
        upkeepTasks.add(args[0]);
        return b.real.upkeep.takeTask(...args);
      };
      b.store.schedules.due = (...args) => {
        looks += 1;
        return b.real.schedules.due(...args);
      };
      const scheduling = {
        newId: () => "01a00000-0000-7000-8000-000000000001",
        committed: () => undefined,
        put: () => Promise.resolve(),
      };
      let ready = false;
      const worker = b.work(
        [kind("job", () => undefined)],
        { queues: { default: 2 }, schedules: [] },
        { loopDelay: () => (overloaded ? 600 : 0), scheduling },
      );
      worker.ready.then(
        () => (ready = true),
        () => undefined,
      );
      await turns(20);
      expect(looks).toBe(1);
      for (let i = 0; i < 120; i++) await b.clock.advance("1s");
      expect(upkeepTasks.size).toBeGreaterThan(1);
      expect(looks).toBeGreaterThan(1);
      expect(ready).toBe(false); // nothing can be claimed yet
    },
  );

  test("[O16] a worker becomes ready, and takes over from a dead one, where there is always more to claim", async () => {
    const other = await benchOn("sqlite::memory:", systemClock);
    const dead = await other.real.sessions.open(sessionInfo({ leaseMs: 500 }));
    const id = await other.enqueue("job");
    const everything = { queues: "all", names: "all", limit: 1, order: "highest-first" } as const;
    expect(
      await other.real.claims.claim(dead, everything, { levels: new Map(), rescannedAt: -Infinity }),
    ).toHaveLength(1);
    let busy = true;
    other.store.claims.claim = async (...asked) => {
      const jobs = await other.real.claims.claim(...asked);
      if (busy) other.real.wake({ kind: "work", queue: "default", priority: 0 });
      await turns(1);
      return jobs;
    };
    let ready = false;
    const worker = other.work([kind("job", () => undefined)]);
    worker.ready.then(
      () => (ready = true),
      () => undefined,
    );
    const isDone = async (): Promise<boolean> => (await other.get(id)).state === "done";
    for (let i = 0; i < 100 && !(await isDone()); i++) await sleep(systemClock, 50);
    busy = false;
    expect(ready).toBe(true);
    expect(await other.get(id)).toMatchObject({ state: "done", crashes: 1 });
    await other.close();
  });

  test("[O16] a claim that is put off is made, although each look finds something to look for sooner", async () => {
    let delayMs = 600;
    let claims = 0;
    b.store.claims.claim = (...asked) => {
      claims += 1;
      return b.real.claims.claim(...asked);
    };
    b.store.claims.checkDue = async (scope) => {
      const checkDue = await b.real.claims.checkDue(scope);
      return { ...checkDue, expiresAt: checkDue.now + 1 };
    };
    b.work([kind("job", () => undefined)], undefined, { loopDelay: () => delayMs });
    await turns(20);
    b.real.wake({ kind: "any" });
    await turns(20);
    delayMs = 0;
    await b.clock.advance("1s");
    expect(claims).toBeGreaterThan(0);
  });
});

describe("stopping", () => {
  test("[F10] a short job finishes; a long one is given back unburnt; nothing is left behind", async () => {
    const short = gate();
    const worker = b.work([
      kind("short", () => short.opened),
      kind("long", () => new Promise(() => undefined)),
    ]);
    const ids = [await b.enqueue("short"), await b.enqueue("long")];
    await turns();
    expect(worker.running).toBe(2);
    const stopped = worker.stop({ timeout: "5s" });
    const late = await b.enqueue("short");
    await b.clock.advance("1s");
    short.open();
    await b.clock.advance("3s");
    expect((await b.get(ids[0] ?? "")).state).toBe("done");
    expect((await b.get(ids[1] ?? "")).state).toBe("running");
    await b.clock.advance("2s");
    await stopped;
    await worker.stopped;
    expect(await b.get(ids[1] ?? "")).toMatchObject({ state: "ready", attempt: 0, crashes: 0 });
    expect(await b.get(late)).toMatchObject({ state: "ready", attempt: 0 });
    expect(await b.real.workers.list()).toEqual([]);
    expect(b.clock.pending).toBe(0);
  });

  test("[F11] a worker that is asked to stop from afar finishes and leaves", async () => {
    const worker = b.work([kind("job", () => undefined)]);
    await worker.ready;
    expect(await b.real.workers.stop("all")).toBe(1);
    await b.clock.advance("10s");
    await worker.stopped;
    expect(await b.real.workers.list()).toEqual([]);
  });

  test("[F10] a worker that owns its process ends it, after closing, where a handler ignores its signal", async () => {
    const order: string[] = [];
    const run = async (options: object): Promise<void> => {
      const worker = b.work(
        [kind("deaf", () => new Promise(() => undefined)), kind("quick", () => undefined)],
        { queues: { default: 2 }, shutdown: "1s", ...options },
        { onSignalled: async () => void order.push("closed"), exit: () => void order.push("ended") },
      );
      await worker.ready;
      await turns();
      await b.real.workers.stop("all");
      await b.clock.advance("30s");
      await worker.stopped;
      await turns();
    };
    await b.enqueue("quick");
    await run({ signals: true });
    expect(order).toEqual(["closed"]);
    await b.enqueue("deaf");
    await run({ signals: false });
    expect(order).toEqual(["closed"]);
    await run({ signals: true });
    expect(order).toEqual(["closed", "closed", "ended"]);
    const warning = b.lines.find(({ message }) => message.startsWith("the process ends although"));
    expect(warning).toMatchObject({ level: "warn", details: { runaways: 1 } });
  });

  test.each([
    ["are never answered", () => new Promise<never>(() => undefined)],
    ["fail again and again", () => Promise.reject(new StoreError("STATEMENT_TIMEOUT", "too slow"))],
  ])(
    "when settles %s and the lease is renewed all the while, stop gives up after one lease",
    async (_, settle) => {
      let runs = 0;
      const job = kind("job", () => void (runs += 1));
      const worker = b.work([job], { queues: { default: 1 }, lease: "30s" });
      await worker.ready;
      b.store.settles.settle = settle;
      const id = await b.enqueue("job");
      await turns();
      expect(runs).toBe(1);
      let stopped = false;
      const stopping = worker.stop({ timeout: "5s" }).then(() => (stopped = true));
      await b.clock.advance("29s");
      expect(stopped).toBe(false);
      await b.clock.advance("2s");
      expect(stopped).toBe(true);
      await stopping;
      expect(b.lines.filter(({ level }) => level === "error")).toMatchObject([{ details: { jobs: 1 } }]);
      expect(await b.real.workers.list()).toEqual([]);
      expect(b.clock.pending).toBe(0);
      b.restore("settles.settle");
      await b.work([job]).ready;
      await b.clock.advance("10s");
      expect(runs).toBe(2);
      expect((await b.get(id)).state).toBe("done");
    },
  );

  test("jobs claimed ahead go back at once", async () => {
    const door = gate();
    const worker = b.work(
      [kind("job", ({ slow }: { slow?: boolean }) => (slow === true ? door.opened : undefined))],
      { queues: { default: 1 } },
    );
    for (let i = 0; i < 100; i++) await b.enqueue("job");
    await worker.idle();
    for (let i = 0; i < 20; i++) await b.enqueue("job", { slow: true });
    await turns(20);
    const stopped = worker.stop({ timeout: 0 });
    await b.clock.advance("1s");
    await stopped;
    expect(await b.real.jobs.count({ state: "ready" })).toBe(20);
  });
});

describe("outages", () => {
  test("[F12] a worker whose password is refused at a reconnect waits, one that lacks a right ends", async () => {
    const refused = (sqlState: string): StoreError =>
      new StoreError("PERMISSION_DENIED", "refused", { details: { sqlState } });
    const worker = b.work([kind("job", () => undefined)]);
    await worker.ready;
    b.store.claims.claim = () => Promise.reject(refused("28P01"));
    const id = await b.enqueue("job");
    await b.clock.advance("10s");
    b.restore("claims.claim");
    await b.clock.advance("10s");
    expect((await b.get(id)).state).toBe("done");
    b.store.claims.claim = () => Promise.reject(refused("42501"));
    await b.enqueue("job");
    await b.clock.advance("10s");
    await expect(worker.stopped).rejects.toMatchObject({ code: "PERMISSION_DENIED" });
  });

  test("[F12] a lost database makes it wait and go on", async () => {
    const worker = b.work([kind("job", () => undefined)]);
    await worker.ready;
    b.store.claims.claim = () => Promise.reject(lost());
    b.store.claims.checkDue = () => Promise.reject(lost());
    const id = await b.enqueue("job");
    const before = b.lines.length;
    await b.clock.advance("10s");
    expect(b.lines.slice(before).filter(({ level }) => level === "warn").length).toBeLessThanOrEqual(14);
    b.restore("claims.claim");
    b.restore("claims.checkDue");
    await b.clock.advance("2s");
    await worker.idle();
    expect((await b.get(id)).state).toBe("done");
  });

  test("[F12] a database that is away at the start is waited for", async () => {
    b.store.sessions.open = () => Promise.reject(new StoreError("DATABASE_UNREACHABLE", "not yet"));
    const worker = b.work([kind("job", () => undefined)]);
    await b.clock.advance("20s");
    b.restore("sessions.open");
    await b.clock.advance("2s");
    await worker.ready;
  });

  test("[F12] a permanent fault stops the worker with its cause, after what runs has ended", async () => {
    const door = gate();
    const worker = b.work([kind("job", () => door.opened)], { queues: { default: 2 } });
    const id = await b.enqueue("job");
    await turns();
    b.store.claims.claim = () => Promise.reject(new StoreError("SCHEMA_MISSING", "the tables are gone"));
    await b.enqueue("job");
    await turns();
    expect(b.of("error")).toMatchObject([{ during: "claiming" }]);
    door.open();
    await expect(worker.stopped).rejects.toMatchObject({ code: "SCHEMA_MISSING" });
    expect((await b.get(id)).state).toBe("done");
  });

  test("[F14] a loop that meets a fault nobody knows names it, and tries again", async () => {
    const worker = b.work([kind("job", () => undefined)]);
    await worker.ready;
    b.store.upkeep.takeTask = () => Promise.reject(new TypeError("a bug"));
    await b.clock.advance("6m");
    expect(b.of("error")[0]).toMatchObject({ during: expect.stringMatching(/^the upkeep task /) as string });
    b.restore("upkeep.takeTask");
    const before = b.of("error").length;
    await b.clock.advance("6m");
    expect(b.of("error")).toHaveLength(before);
    await worker.stop();
  });

  test("[F14] a loop that can never go on is named and ends the worker", async () => {
    const worker = b.work([kind("job", () => undefined)]);
    await worker.ready;
    b.store.upkeep.takeTask = () =>
      Promise.reject(new StoreError("SCHEMA_TOO_NEW", "another version was here"));
    await b.clock.advance("6m");
    await expect(worker.stopped).rejects.toMatchObject({ code: "SCHEMA_TOO_NEW" });
    expect(b.of("error")).toMatchObject([{ during: expect.stringMatching(/^the upkeep task /) as string }]);
  });

  test("[O9] after one lost connection it claims again at once, and waits longer each time", async () => {
    const worker = b.work([kind("job", () => undefined)], { queues: { default: 1 } });
    await worker.ready;
    const times: number[] = [];
    b.store.claims.claim = () => {
      times.push(b.clock.monotonic());
      return Promise.reject(lost());
    };
    await b.enqueue("job");
    await b.clock.advance("10s");
    const waits = times.slice(1).map((at, i) => at - times[i]!);
    expect(waits[0]).toBeLessThanOrEqual(63);
    for (const [i, wait] of waits.slice(0, 4).entries()) expect(waits[i + 1]).toBeGreaterThan(wait);
    expect(Math.max(...waits)).toBeLessThanOrEqual(1_250);
    b.restore("claims.claim");
    await b.clock.advance("2s");
    await worker.idle();
  });

  test("[D17] work that no claim finds never makes it spin", async () => {
    b.store.claims.checkDue = async (scope) => ({ ...(await b.real.claims.checkDue(scope)), dueAt: 0 });
    const worker = b.work([kind("job", () => undefined)]);
    await worker.ready;
    const before = b.real.counters.statements;
    await b.clock.advance("60s");
    expect(b.real.counters.statements - before).toBeLessThan(60 * 12);
    void worker;
  });

  test("[D13] a handler that throws a hundred times costs no slot and leaves no timer", async () => {
    const worker = b.work(
      [
        kind(
          "job",
          () => {
            throw new Error("x");
          },
          { retry: { attempts: 1 } },
        ),
      ],
      { queues: { default: 2 } },
    );
    await worker.ready;
    await worker.idle();
    await b.clock.advance("1s");
    const pending = b.clock.pending;
    for (let i = 0; i < 100; i++) await b.enqueue("job");
    await worker.idle();
    expect(worker.running).toBe(0);
    expect(await b.real.jobs.count({ state: "dead" })).toBe(100);
    await b.clock.advance("700s");
    expect(b.clock.pending).toBeLessThanOrEqual(pending + 1);
  });
});

describe("upkeepTasks", () => {
  test("[F6] ready jobs that nobody serves are reported every minute", async () => {
    const worker = b.work([kind("served", () => undefined)]);
    await worker.ready;
    await b.enqueue("typo", {}, { queue: "mial" });
    for (let minute = 0; minute < 2; minute += 1) await b.clock.advance("65s");
    expect(b.of("queue.unserved").length).toBeGreaterThanOrEqual(2);
    expect(b.of("queue.unserved")[0]).toEqual({ queue: "mial", names: ["typo"] });
  });

  test("[F7] a worker that died is forgotten within 75 s", async () => {
    const worker = b.work([kind("job", () => undefined)]);
    await worker.ready;
    await b.real.sessions.open({
      kind: "worker",
      workerId: "dead",
      name: "dead",
      host: "x",
      pid: 1,
      queues: {},
      names: [],
      leaseMs: 30_000,
      version: "0",
    });
    await b.clock.advance("75s");
    expect((await b.real.workers.list()).map(({ id }) => id)).toEqual([worker.id]);
  });
});
