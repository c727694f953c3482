/** What a step of the machine's wall clock does to a SQLite file. The same with real processes: test/fault/clock-steps.test.ts. */
import { DatabaseSync } from "node:sqlite";
import { defineJob, type Holdfast, open, RetryAfter, silentLogger } from "holdfast";
import { expect, onTestFinished, test } from "vitest";
import { type Clock, systemClock } from "../../../src/clock.ts";
import { idFactory } from "../../../src/values/id.ts";
import { tableNames } from "../../../src/storage/catalogue.ts";
import { FileClock } from "../../../src/storage/sqlite/file-clock.ts";
import { type FreshStore, onSqlite } from "../../support/stores.ts";
import { waitFor } from "../../support/wait.ts";
import { operatorOf } from "../../../src/operate/operator.ts";

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;
const yearMs = 365 * dayMs;

/** A machine whose wall clock can be set. */
function machine(offsetMs = 0): Clock & { offsetMs: number } {
  const clock = { ...systemClock, offsetMs, now: () => Date.now() + clock.offsetMs };
  return clock;
}

async function client(fresh: FreshStore, clock: Clock): Promise<{ hf: Holdfast; warnings: string[] }> {
  const hf = await open(fresh.url, { ...fresh.options, clock, logger: silentLogger });
  const warnings: string[] = [];
  hf.on("warning", ({ message }) => void warnings.push(message));
  onTestFinished(() => hf.close());
  return { hf, warnings };
}

/** A write, so that the client notices. */
async function notice(hf: Holdfast): Promise<void> {
  await operatorOf(hf).store.state.set("noticed", "1");
}

onSqlite((target) => {
  test("[O6] a step back: what was due stays due in its order, a retry keeps its wait, an instant that was asked for stays", async () => {
    const fresh = await target.fresh();
    const clock = machine();
    const { hf, warnings } = await client(fresh, clock);
    const fails = await hf.enqueue("fails", 1, { attempts: 3 });
    await (await hf.lease({ names: ["fails"] }))[0]!.fail(new RetryAfter("5m"));
    const at = new Date(Date.now() + hourMs);
    const later = await hf.enqueue("later", 1, { at });
    const due = [await hf.enqueue("due", 1), await hf.enqueue("due", 2), await hf.enqueue("due", 3)];
    clock.offsetMs = -10 * minuteMs;
    due.push(await hf.enqueue("due", 4));
    expect((await hf.lease({ names: ["due"], limit: 10 })).map(({ id }) => id)).toEqual(
      due.map(({ id }) => id),
    );
    expect((await hf.jobs.get(later.id))!.runAt).toEqual(at);
    const retryInMs = (await hf.jobs.get(fails.id))!.runAt!.getTime() - clock.now();
    expect(Math.round(retryInMs / minuteMs)).toBe(5);
    expect(warnings).toEqual([expect.stringMatching(/^The machine's clock was set 10m back/)]);
  });

  test.each([
    ["ten minutes back", -10 * minuteMs],
    ["an hour forward", hourMs],
    ["a year forward", yearMs],
  ])(
    "[O6] a step %s: all clients agree on one time, and a lease that is alive stays so",
    async (_step, offset) => {
      const fresh = await target.fresh();
      const [one, two] = [machine(), machine()];
      const { hf: first } = await client(fresh, one);
      const { hf: second, warnings } = await client(fresh, two);
      await first.enqueue("a", 1);
      await first.enqueue("b", 1);
      const [held] = await first.lease({ names: ["a"] });
      const [other] = await second.lease({ names: ["b"] });
      one.offsetMs = offset;
      await notice(first);
      // The second client has not noticed yet: it follows, and sets nothing back.
      expect(await operatorOf(second).store.sessions.forgetDead()).toBe(0);
      expect(Math.abs((await first.databaseNow()) - (await second.databaseNow()))).toBeLessThan(1_000);
      two.offsetMs = offset;
      await notice(second);
      await notice(first);
      expect(Math.abs((await first.databaseNow()) - one.now())).toBeLessThan(1_000);
      for (const hf of [first, second]) expect(await operatorOf(hf).store.sessions.orphans(10)).toEqual([]);
      await held!.renew();
      await held!.done();
      await other!.done();
      expect(warnings).toHaveLength(1);
    },
  );

  test("[O6] a step gives a dead session one lease, and not the length of the step", async () => {
    const fresh = await target.fresh();
    const clock = machine();
    const { hf } = await client(fresh, clock);
    const { id } = await hf.enqueue("a", 1);
    await hf.lease({ for: "5s" });
    clock.offsetMs = -10 * minuteMs;
    await notice(hf);
    const [session] = await fresh.query(`select lease_until, lease_ms from ${fresh.table("session")}`);
    expect(Number(session!["lease_until"]) - (await hf.databaseNow())).toBeLessThanOrEqual(5_000);
    await fresh.query(`update ${fresh.table("session")} set lease_until = lease_until - 5000`);
    expect((await operatorOf(hf).store.sessions.orphans(10)).map((job) => job.id)).toEqual([id]);
  });

  test("[O6] a clock that was a year ahead stops nothing and deletes nothing when it is set right", async () => {
    const fresh = await target.fresh();
    const clock = machine();
    const { hf } = await client(fresh, clock);
    await hf.enqueue("kept", 1);
    await (await hf.lease())[0]!.done();
    const job = defineJob({ name: "tick", run: () => {} });
    const worker = hf.work([job], { queues: ["default"] });
    await worker.ready;
    await hf.schedules.put({ name: "pattern", cron: "* * * * *", job: "tick", input: null });
    await hf.schedules.put({ name: "interval", every: "10m", job: "tick", input: null });
    await worker.stop();
    const upkeepTask = (name: string): Promise<boolean> =>
      operatorOf(hf).store.upkeep.takeTask(name, 300_000);
    await Promise.all(["prune", "forget", "minute"].map(upkeepTask));
    clock.offsetMs = yearMs;
    await notice(hf);
    expect([await upkeepTask("prune"), await upkeepTask("forget")], "nothing is deleted for an hour").toEqual(
      [false, false],
    );
    expect(await upkeepTask("minute")).toBe(true);
    const early = await hf.enqueue("early", 1);
    clock.offsetMs = 0;
    await notice(hf);
    expect(await hf.jobs.count({ name: "kept" })).toBe(1);
    expect((await hf.lease({ names: ["early"] })).map(({ id }) => id)).toEqual([early.id]);
    for (const { name, nextAt } of await hf.schedules.list())
      expect(nextAt!.getTime() - Date.now(), name).toBeLessThanOrEqual(10 * minuteMs);
    const upkeepTasks = await operatorOf(hf).store.upkeep.tasks();
    for (const { name, nextAt } of upkeepTasks)
      expect(nextAt.getTime() - Date.now(), name).toBeLessThanOrEqual(hourMs);
  });

  test("[O6] a step back makes no slot of a pattern fire twice, and an interval goes on in its rhythm", async () => {
    const fresh = await target.fresh();
    const clock = machine();
    const { hf } = await client(fresh, clock);
    await hf.schedules.put({ name: "pattern", cron: "* * * * *", job: "tick", input: null });
    await hf.schedules.put({ name: "interval", every: "2m", job: "tock", input: null });
    const newId = idFactory(() => clock.now());
    const fire = async (): Promise<void> => {
      const { store } = operatorOf(hf);
      for (const name of (await store.schedules.due()).due) await store.schedules.fire(name, newId);
    };
    for (let minute = 1; minute <= 12; minute += 1) {
      clock.offsetMs = minute * minuteMs;
      await notice(hf);
      await fire();
    }
    const made = async (name: string): Promise<number> => (await hf.jobs.list({ name })).jobs.length;
    const before = { ticks: await made("tick"), tocks: await made("tock") };
    for (let minute = 2; minute <= 14; minute += 1) {
      clock.offsetMs = minute * minuteMs;
      await notice(hf);
      await fire();
      if (minute === 6) expect(await made("tock")).toBeGreaterThan(before.tocks);
    }
    const slots = await fresh.query(`select at from ${fresh.table("occurrence")} where schedule = 'pattern'`);
    expect(before.ticks).toBeGreaterThanOrEqual(11);
    expect([await made("tick"), slots.length]).toEqual([before.ticks + 2, before.ticks + 2]);
  });

  test("[O6] a file that comes to a machine with a longer uptime: a job in 30 days stays in 30 days, signals and keys stay", async () => {
    const fresh = await target.fresh();
    const first = await open(fresh.url, { ...fresh.options, clock: machine(), logger: silentLogger });
    const later = await first.enqueue("later", 1, { delay: "30d" });
    const dueAt = (await first.jobs.get(later.id))!.runAt;
    const unique = defineJob({ name: "unique", unique: { key: () => "k", for: "20d" }, run: () => null });
    const keyed = await first.enqueue(unique, null);
    await (await first.lease({ names: ["unique"] }))[0]!.done();
    await first.signal("go", { data: 6 });
    await first.close();
    // Another machine, whose monotonic clock is 57 days further.
    const [row] = await fresh.query(`select value from ${fresh.table("meta")} where key = 'clock'`);
    const [origin, seen] = String(row!["value"]).split(" ").map(Number);
    const moved = `${origin! + 57 * dayMs} ${seen} another-boot`;
    await fresh.query(`update ${fresh.table("meta")} set value = '${moved}' where key = 'clock'`);
    const { hf } = await client(fresh, machine());
    await notice(hf);
    expect((await hf.jobs.get(later.id))!.runAt).toEqual(dueAt);
    expect(await hf.lease({ names: ["later"] })).toEqual([]);
    await operatorOf(hf).store.workflows.sweep();
    const [signal] = await fresh.query(`select expires_at from ${fresh.table("signal")}`);
    expect(Number(signal!["expires_at"])).toBeGreaterThan(Date.now() + 6 * dayMs);
    expect(await hf.enqueue(unique, null)).toMatchObject({ status: "duplicate", id: keyed.id });
  });

  test.each([
    ["behind", -yearMs],
    ["ahead", yearMs],
  ])(
    "[O6] a clock that was a year %s for a moment: signals, keys, waits and overrides last as long as they would have",
    async (_where, offset) => {
      const fresh = await target.fresh();
      const clock = machine();
      const { hf } = await client(fresh, clock);
      const unique = (key: string): ReturnType<typeof defineJob> =>
        defineJob({ name: key, unique: { key: () => key, for: "20d" }, run: () => null });
      const enqueue = async (key: string): Promise<string> => {
        const { id } = await hf.enqueue(unique(key), null);
        await (await hf.lease({ names: [key] }))[0]!.done();
        return id;
      };
      const waiting = defineJob({
        name: "waits",
        run: async (_input, ctx) => void (await ctx.waitFor("never", { timeout: "9d" })),
      });
      const worker = hf.work([waiting], { queues: ["default"] });
      await worker.ready;
      const run = await hf.enqueue(waiting, null);
      await waitFor(async () => (await hf.jobs.get(run.id))!.state === "waiting", {
        what: "the run to wait",
      });
      await worker.stop();
      await hf.queues.set("mails", { concurrency: 5 }, { for: "2d" });
      const before = await enqueue("before");
      await hf.signal("before", { data: 1 });

      clock.offsetMs = offset;
      await notice(hf);
      await operatorOf(hf).store.workflows.sweep();
      expect(await hf.enqueue(unique("before"), null), "meanwhile").toMatchObject({ status: "duplicate" });
      const during = await enqueue("during");
      await hf.signal("during", { data: 2 });

      clock.offsetMs = 0;
      await notice(hf);
      await operatorOf(hf).store.workflows.sweep();
      for (const [key, id] of Object.entries({ before, during }))
        expect(await hf.enqueue(unique(key), null), key).toMatchObject({ status: "duplicate", id });
      const days = async (table: string, column: string, where = "true"): Promise<number[]> =>
        (await fresh.query(`select ${column} as at from ${fresh.table(table)} where ${where}`)).map(
          ({ at }) => Math.round((Number(at) - Date.now()) / dayMs),
        );
      expect(await days("signal", "expires_at")).toEqual([7, 7]);
      expect(await days("unique_key", "expires_at")).toEqual([20, 20]);
      expect(await days("temporary_limit", "until_at")).toEqual([2]);
      expect(await days("step", "wake_at", "kind = 'signal'")).toEqual([9]);
      expect((await hf.jobs.get(run.id))!.runAt!.getTime() - Date.now()).toBeGreaterThan(8 * dayMs);
    },
  );

  test("[O6] a step in either direction leaves a window of starts as full as it was", async () => {
    const fresh = await target.fresh();
    const clock = machine();
    const { hf } = await client(fresh, clock);
    await hf.queues.set("default", { rate: { limit: 2, per: "10m" } });
    for (let i = 0; i < 6; i += 1) await hf.enqueue("a", i);
    expect(await hf.lease({ limit: 10 })).toHaveLength(2);
    for (const offset of [hourMs, -hourMs, 0]) {
      clock.offsetMs = offset;
      await notice(hf);
      expect(await hf.lease({ limit: 10 }), `${offset}`).toHaveLength(0);
    }
  });
});

test("[O6] the file's time goes on where it was when the machine was started anew with a clock that is behind", () => {
  const db = new DatabaseSync(":memory:");
  const tables = tableNames((name) => `"${name}"`);
  db.exec(`create table ${tables.meta} (key text primary key, value text not null)`);
  const at = { wall: 10_000_000, elapsed: 5_000_000 };
  const boot = (): FileClock => {
    const clock = new FileClock({ ...systemClock, now: () => at.wall }, tables, undefined, {
      elapsed: () => at.elapsed,
      boot: () => null,
      slept: () => 0,
    });
    clock.begin(db);
    return clock;
  };
  const first = boot();
  expect([first.now(), first.wasSet]).toEqual([10_000_000, false]);
  Object.assign(at, { wall: 10_060_000, elapsed: 5_060_000 });
  expect(boot().now()).toBe(10_060_000);
  first.note(db);
  Object.assign(at, { wall: 9_000_000, elapsed: 1_000 });
  const again = boot();
  expect(again.wasSet).toBe(true);
  expect(again.step(db)).toEqual({ from: 10_060_000, to: 9_000_000, restarted: true, passed: 0 });
  again.settled(db);
  expect([again.now(), again.wasSet]).toEqual([9_000_000, false]);
});

test.each([
  ["a longer uptime", 57 * dayMs],
  ["a shorter uptime", -57 * dayMs],
  ["a longer uptime, and the first machine did not say which it was", 57 * dayMs, null],
])(
  "[O6] a file that comes to another machine with %s: its time goes on from where it was",
  (_what, by, before: string | null = "one") => {
    const db = new DatabaseSync(":memory:");
    const tables = tableNames((name) => `"${name}"`);
    db.exec(`create table ${tables.meta} (key text primary key, value text not null)`);
    const host = { wall: yearMs, elapsed: 100 * dayMs, boot: before, slept: 0 };
    const first = new FileClock({ ...systemClock, now: () => host.wall }, tables, undefined, {
      elapsed: () => host.elapsed,
      boot: () => host.boot,
      slept: () => host.slept,
    });
    first.begin(db);
    expect(first.wasSet).toBe(false);
    Object.assign(host, { wall: yearMs + minuteMs, elapsed: 100 * dayMs + minuteMs + by, boot: "two" });
    const second = new FileClock({ ...systemClock, now: () => host.wall }, tables, undefined, {
      elapsed: () => host.elapsed,
      boot: () => host.boot,
      slept: () => host.slept,
    });
    second.begin(db);
    expect(second.wasSet).toBe(true);
    const restarted = before !== null || by < 0;
    expect(second.step(db)).toEqual({
      from: yearMs,
      to: yearMs + minuteMs,
      restarted,
      passed: restarted ? minuteMs : 0,
    });
    second.settled(db);
    expect(second.now()).toBe(yearMs + minuteMs);
    // On the same machine a clock that is set is a step from where the file's time was.
    Object.assign(host, { wall: yearMs + 2 * hourMs, elapsed: host.elapsed + minuteMs });
    second.look();
    const from = yearMs + 2 * minuteMs;
    expect(second.step(db)).toEqual({ from, to: yearMs + 2 * hourMs, restarted: false, passed: 0 });
    second.settled(db);
    // The time that the machine sleeps has passed.
    Object.assign(host, { wall: yearMs + 5 * hourMs, slept: 2 * hourMs });
    second.look();
    expect(second.step(db)).toMatchObject({ to: yearMs + 5 * hourMs, passed: 2 * hourMs });
  },
);
