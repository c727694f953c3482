// Schedules: one job for each occurrence, whoever is there, whatever was missed, and whoever changes them meanwhile.
import { expect, test } from "vitest";
import { defineJob, defineSchedule, type Holdfast, type Job, type ScheduleState } from "../../src/index.ts";
import { tickOnce } from "../../src/schedules/scheduler.ts";
import { idFactory } from "../../src/values/id.ts";
import { silentLogger } from "../../src/logger.ts";
import { onEveryStore } from "../support/stores.ts";
import { heldJob, lost, newWorld, quickJob, type World } from "../support/world.ts";
import { patient } from "../support/client.ts";

const work = { queues: { default: 5 }, ...patient } as const;
const noWork = { ...work, schedules: false } as const;

async function jobs(hf: Holdfast): Promise<readonly Job[]> {
  return (await hf.jobs.list({ limit: 1_000 })).jobs.toReversed();
}

async function dueTimes(hf: Holdfast): Promise<string[]> {
  return (await jobs(hf)).map(({ runAt }) => (runAt as Date).toISOString().replace(":00.000Z", "Z"));
}

async function get(hf: Holdfast, name: string): Promise<ScheduleState> {
  const found = await hf.schedules.get(name);
  if (found === null) throw new Error(`no schedule ${name}`);
  return found;
}

function ticker(world: World, client: { hf: Holdfast; tap: { store: never } } | { tap: { store: unknown } }) {
  const newId = idFactory(world.clock.now);
  const events = { emit: () => {} };
  return () =>
    tickOnce({
      store: client.tap.store as never,
      newId,
      log: silentLogger,
      events: events as never,
      committed: () => {},
    });
}

onEveryStore((target) => {
  test("[G1] a cron pattern in its zone makes a job for each occurrence, at the occurrence, with its input", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    world.clock.set(Date.UTC(2026, 2, 28, 12));
    const { job, runs } = quickJob(world);
    const nightly = defineSchedule({
      name: "nightly",
      cron: "30 2 * * *",
      timezone: "Europe/Berlin",
      job,
      input: { n: 7 },
    });
    await client.work([job], { ...work, schedules: [nightly] });
    for (const occurrence of ["2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z", "2026-03-31T00:30:00Z"]) {
      world.clock.set(Date.parse(occurrence) - 64_000); // a minute at most, and it has seen that its clock was set
      await world.advance("65s", "500ms");
    }
    expect(await dueTimes(client.hf)).toEqual([
      "2026-03-29T01:00Z",
      "2026-03-30T00:30Z",
      "2026-03-31T00:30Z",
    ]);
    expect(runs.map(({ n, at }) => [n, new Date(at).toISOString()])).toEqual([
      [7, "2026-03-29T01:00:00.000Z"],
      [7, "2026-03-30T00:30:00.000Z"],
      [7, "2026-03-31T00:30:00.000Z"],
    ]);
    expect(await get(client.hf, "nightly")).toMatchObject({
      cron: "30 2 * * *",
      timezone: "Europe/Berlin",
      counts: { fired: 3, skipped: 0, missed: 0 },
      lastRunAt: new Date("2026-03-31T00:30:00Z"),
      nextAt: new Date("2026-04-01T00:30:00Z"),
      unserved: false,
    });
  });

  test("[G1] an interval fires at whole multiples from when it was put; six fields fire by the second", async () => {
    const world = await newWorld(target);
    const { hf, work: start } = await world.client();
    const { job } = quickJob(world);
    await hf.schedules.put({ name: "often", every: "90s", job, input: { n: 1 } });
    await hf.schedules.put({ name: "seconds", cron: "*/20 * * * * *", job: "other", input: null });
    await start([job], work);
    await world.advance("3m");
    const made = await jobs(hf);
    const at = (name: string): number[] =>
      made
        .filter((each) => each.name === name)
        .map(({ runAt }) => ((runAt as Date).getTime() - Date.UTC(2026, 0, 1)) / 1_000);
    expect(at("quick")).toEqual([90, 180]);
    expect(at("other")).toEqual([20, 40, 60, 80, 100, 120, 140, 160, 180]);
  });

  test("[G2] whatever is wrong with a schedule is refused before anything is written", async () => {
    const world = await newWorld(target);
    const { hf } = await world.client();
    const { job } = quickJob(world);
    const good = { name: "s", cron: "* * * * *", job: "j", input: {} };
    const bad: [string, object][] = [
      ["BAD_CRON", { cron: "61 * * * *" }],
      ["BAD_CRON", { cron: "0 0 30 2 *" }],
      ["BAD_TIMEZONE", { timezone: "Mars/Olympus" }],
      ["BAD_OPTION", { every: "1m" }],
      ["BAD_OPTION", { cron: undefined }],
      ["BAD_OPTION", { cron: undefined, every: "1m", timezone: "UTC" }],
      ["BAD_DURATION", { cron: undefined, every: 0 }],
      ["BAD_DURATION", { cron: undefined, every: -5 }],
      ["BAD_DURATION", { cron: undefined, every: 999.4 }],
      ["BAD_DURATION", { cron: undefined, every: 1e15 }],
      ["BAD_DURATION", { cron: undefined, every: "soon" }],
      ["BAD_DURATION", { jitter: "25h" }],
      ["BAD_OPTION", { missed: "some" }],
      ["BAD_OPTION", { overlap: "maybe" }],
      ["BAD_OPTION", { firstRun: "now" }],
      ["BAD_NAME", { name: "a b" }],
      ["BAD_NAME", { job: "a,b" }],
      ["BAD_NAME", { queue: "" }],
      ["UNKNOWN_JOB", { job: 5 }],
      ["UNKNOWN_OPTION", { crno: "* * * * *" }],
      ["INPUT_NOT_JSON", { input: 5n }],
      ["BAD_PRIORITY", { priority: 1.5 }],
    ];
    for (const [code, change] of bad)
      await expect(
        hf.schedules.put({ ...good, ...change }),
        JSON.stringify(Object.keys(change)),
      ).rejects.toMatchObject({ code });
    const twice = defineSchedule({ ...good, job, input: { n: 1 } });
    expect(() => hf.work([job], { ...work, schedules: [twice, twice] })).toThrow(/two schedules named/);
    expect(() => hf.work([job], { ...work, schedules: [good] as never })).toThrow(/defineSchedule/);
    for (const call of ["pause", "resume", "reset", "trigger", "preview"] as const)
      await expect(hf.schedules[call]("nobody")).rejects.toMatchObject({ code: "SCHEDULE_NOT_FOUND" });
    await expect(hf.schedules.edit("nobody", { cron: "* * * * *" })).rejects.toMatchObject({
      code: "SCHEDULE_NOT_FOUND",
    });
    expect(await hf.schedules.remove("nobody")).toBe(false);
    expect(await hf.schedules.list()).toEqual([]);
    expect(await world.rows("job")).toEqual([]);
  });

  test("[G2] a schedule's input is checked by its job's schema, and a job that nobody serves is shown", async () => {
    const world = await newWorld(target);
    const { hf } = await world.client();
    const strict = defineJob({
      name: "strict",
      input: {
        "~standard": {
          version: 1,
          vendor: "test",
          validate: async (value: unknown) =>
            value === 1 ? { value } : { issues: [{ message: "must be 1" }] },
        },
      },
    });
    await expect(hf.schedules.put({ name: "s", every: "1m", job: strict, input: 2 })).rejects.toMatchObject({
      code: "INPUT_INVALID",
    });
    expect(await hf.schedules.list()).toEqual([]);
    await hf.schedules.put({ name: "s", every: "1m", job: "nobody-has-this", input: 2 });
    expect(await hf.schedules.list()).toMatchObject([{ name: "s", unserved: true, fault: null }]);
  });

  test("[G2] a row that cannot be read disables itself alone, is reported, and can be mended", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    const { hf } = client;
    const disabled = client.told("schedule.disabled");
    const { job, runs } = quickJob(world);
    const define = (name: string, n: number) => defineSchedule({ name, every: "10s", job, input: { n } });
    for (const [name, n] of [
      ["a-cron", 1],
      ["b-json", 2],
      ["c-zone", 3],
      ["d-fine", 4],
      ["e-queue", 5],
    ] as const)
      await hf.schedules.put(define(name, n));
    const table = world.fresh.table("schedule");
    const spoil = (name: string, from: string, to: string) =>
      world.fresh.query(`update ${table} set spec = replace(spec, ?, ?) where name = ?`, [from, to, name]);
    await spoil("a-cron", `"cron":null,"everyMs":10000`, `"cron":"61 * * * *","everyMs":null`);
    await world.fresh.query(`update ${table} set spec = '{' where name = 'b-json'`);
    await spoil(
      "c-zone",
      `"cron":null,"everyMs":10000,"timezone":null`,
      `"cron":"* * * * *","everyMs":null,"timezone":"Mars/X"`,
    );
    await spoil("e-queue", `"queue":"default"`, `"queue":"a,b"`);
    await client.work([job], work);
    await world.advance("35s");
    expect(runs.map(({ n }) => n)).toEqual([4, 4, 4]);
    const listed = await hf.schedules.list();
    expect(listed.map(({ name, fault }) => [name, fault !== null])).toEqual([
      ["a-cron", true],
      ["b-json", true],
      ["c-zone", true],
      ["d-fine", false],
      ["e-queue", true],
    ]);
    expect(disabled.map(({ name }) => name).sort()).toEqual(["a-cron", "b-json", "c-zone", "e-queue"]);
    expect(
      client.log.filter(({ level, message }) => level === "error" && message.includes("is disabled")),
    ).toHaveLength(4);
    await hf.schedules.put(define("b-json", 2));
    await world.advance("10s");
    expect(runs.map(({ n }) => n)).toContain(2);
    expect(await get(hf, "b-json")).toMatchObject({ fault: null });
  });

  test("[G2] rows spoilt in any part disable themselves; edits that were spoilt do not keep a worker from starting", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    const { hf } = client;
    const { job, runs } = quickJob(world);
    const fine = defineSchedule({ name: "fine", every: "10s", job, input: { n: 0 } });
    const spoilt = defineSchedule({ name: "spoilt", every: "10s", job, input: { n: 1 } });
    await hf.schedules.put(spoilt);
    const table = world.fresh.table("schedule");
    await world.fresh.query(`update ${table} set edits = '[]'`);
    const parts: readonly [string, string][] = [
      [`"priority":0`, `"priority":1e30`],
      [`"lane":null`, `"lane":5`],
      [`"unique":null`, `"unique":{"scope":1}`],
      [`"context":null`, `"context":{}`],
      [`"maxAttempts":null`, `"maxAttempts":-1`],
      [`"jitterMs":0`, `"jitterMs":"x"`],
      [`"input":"{`, `"input":"\\u0000{`],
      [`"missed":"one"`, `"missed":"some"`],
      [`"everyMs":10000`, `"everyMs":0`],
    ];
    for (const [i, [from, to]] of parts.entries()) {
      await hf.schedules.put({ name: `part-${i}`, every: "10s", job, input: { n: 100 + i } });
      await world.fresh.query(`update ${table} set spec = replace(spec, ?, ?) where name = ?`, [
        from,
        to,
        `part-${i}`,
      ]);
    }
    await client.work([job], { ...work, schedules: [spoilt, fine] });
    await world.advance("21s");
    expect(runs.map(({ n }) => n)).toEqual([0, 0]);
    const faults = (await hf.schedules.list()).filter(({ fault }) => fault !== null).map(({ name }) => name);
    expect(faults).toEqual([...parts.map((_, i) => `part-${i}`), "spoilt"]);
    await hf.schedules.reset("spoilt");
    await world.advance("11s");
    expect(runs.map(({ n }) => n)).toContain(1);
  });

  test("[G3] hundreds of schedules are all fired, and cost nothing while they are not due", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    const puts = Array.from({ length: 250 }, (_, i) =>
      client.hf.schedules.put({ name: `s${i}`, every: "1h", job: "j", input: i }),
    );
    await Promise.all(puts);
    const { job } = quickJob(world);
    await client.work([job], work);
    await world.advance("3s");
    const idle = client.tap.count("schedules.due");
    await world.advance("30s", "1s");
    expect(client.tap.count("schedules.due") - idle).toBeLessThanOrEqual(1);
    world.clock.set(world.clock.now() + 3_600_000 - 35_000);
    await world.advance("65s", "1s");
    expect(await client.hf.jobs.count({ name: "j" })).toBe(250);
  });

  test("[G3] of many workers, one makes the job of an occurrence; a worker that dies in the middle leaves it to the next", async () => {
    const world = await newWorld(target);
    const { job, runs } = quickJob(world);
    const every = defineSchedule({ name: "tick", cron: "* * * * * *", job, input: { n: 1 } });
    const clients = await Promise.all([world.client(), world.client(), world.client()]);
    for (const client of clients) await client.work([job], { ...work, schedules: [every] });
    await world.advance("20s");
    clients[0]?.tap.kill();
    await world.advance("40s");
    const made = await dueTimes(clients[1].hf);
    expect(made).toHaveLength(60);
    expect(new Set(made).size).toBe(60);
    expect(runs.length).toBeGreaterThanOrEqual(59); // the dead one may hold the last
    expect(await get(clients[1].hf, "tick")).toMatchObject({
      counts: { fired: 60, skipped: 0, missed: 0 },
    });
  });

  test("[G3] occurrence and job are one transaction: when the insert fails, neither is lost and nothing is disabled", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    const { hf } = client;
    await hf.schedules.put({ name: "a", every: "10s", job: "j", input: 1 });
    await hf.schedules.put({ name: "b", every: "10s", job: "j", input: 2 });
    const tick = ticker(world, client);
    await world.clock.advance("10s");
    // The database refuses jobs of this line, for whatever reason.
    const [table, ready] = [world.fresh.table("schedule"), world.fresh.table("ready")];
    await world.fresh.query(`alter table ${ready} rename to hidden_ready`);
    const failed = await tick();
    expect(failed.error).not.toBeNull();
    expect(failed.left).toBe(true);
    await world.fresh.query(
      world.fresh.dialect === "sqlite"
        ? `alter table hidden_ready rename to ${ready}`
        : `alter table ${ready.replace(`"ready"`, `"hidden_ready"`)} rename to "ready"`,
    );
    expect(await world.fresh.query(`select name, fired, fault from ${table} order by name`)).toMatchObject([
      { name: "a", fired: 0, fault: null },
      { name: "b", fired: 0, fault: null },
    ]);
    expect(await world.rows("job")).toEqual([]);
    expect(await tick()).toMatchObject({ fired: 2, left: false, error: null });
    expect(await dueTimes(hf)).toEqual(["2026-01-01T00:00:10.000Z", "2026-01-01T00:00:10.000Z"]);
  });

  test("[G3] a commit whose answer was lost is not repeated", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    const { job } = quickJob(world);
    const every = defineSchedule({ name: "tick", every: "10s", job, input: { n: 1 } });
    await client.work([job], { ...work, schedules: [every] });
    let cuts = 0;
    client.tap.around = async (verb, call) => {
      const answer = await call();
      if (verb !== "schedules.fire" || cuts >= 2) return answer;
      cuts += 1;
      return lost();
    };
    await world.advance("65s");
    expect(cuts).toBe(2);
    expect(await dueTimes(client.hf)).toHaveLength(6);
  });

  test.each([
    ["skip", 0, 3],
    ["one", 1, 2],
    ["all", 3, 0],
  ] as const)(
    "[G4] nobody was there for three occurrences: with missed %s there are %d jobs",
    async (missed, made, count) => {
      const world = await newWorld(target);
      const first = await world.client();
      const told = first.told("schedule.missed");
      const { job } = quickJob(world);
      await first.hf.schedules.put({ name: "hourly", cron: "0 * * * *", missed, job, input: { n: 1 } });
      await world.clock.advance("3h10m");
      await first.work([job], work);
      await world.quiet();
      expect(await dueTimes(first.hf)).toEqual(
        ["2026-01-01T01:00Z", "2026-01-01T02:00Z", "2026-01-01T03:00Z"].slice(3 - made),
      );
      expect((await get(first.hf, "hourly")).counts).toEqual({ fired: made, skipped: 0, missed: count });
      expect(told.reduce((sum, { occurrences }) => sum + occurrences, 0)).toBe(count);
      world.clock.set(Date.parse("2026-01-01T03:59:30Z"));
      await world.advance("61s", "500ms");
      expect(await dueTimes(first.hf)).toHaveLength(made + 1);
    },
  );

  test("[G4] up to a minute late simply fires; missed ones are made up for by one that is in time", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    const tick = ticker(world, client);
    for (const missed of ["skip", "one"] as const)
      await client.hf.schedules.put({ name: missed, every: "1m", missed, job: missed, input: null });
    await world.clock.advance("1m59s");
    await tick();
    expect((await jobs(client.hf)).map(({ name }) => name).sort()).toEqual(["one", "skip"]);
    await world.clock.advance("3m2s"); // occurrences at 2, 3, 4 and 5 minutes, the last of them in time
    expect(await tick()).toMatchObject({ fired: 2, missed: 6 });
    expect((await dueTimes(client.hf)).slice(2)).toEqual(["2026-01-01T00:05Z", "2026-01-01T00:05Z"]);
  });

  test("[G4] catching up is bounded: the newest 1,000 occurrences, however long nobody was there", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    const tick = ticker(world, client);
    await client.hf.schedules.put({ name: "s", cron: "* * * * * *", missed: "all", job: "j", input: null });
    await world.clock.advance("200d");
    const { fired } = await tick();
    expect(fired).toBeGreaterThanOrEqual(1_000);
    expect(fired).toBeLessThanOrEqual(1_062);
    expect((await get(client.hf, "s")).lastRunAt?.getTime()).toBe(world.clock.now());
    expect(await tick()).toMatchObject({ fired: 0, left: false });
  });

  test("[G4] after 1,500 occurrences without anybody, the newest 1,000 and those in time fire, and the rest is missed", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    await client.hf.schedules.put({ name: "s", every: "1s", missed: "all", job: "j", input: null });
    const from = world.clock.now();
    await world.clock.advance("1500s");
    expect(await ticker(world, client)()).toMatchObject({ fired: 1_061, missed: 439, left: false });
    const state = await get(client.hf, "s");
    expect(state.counts).toEqual({ fired: 1_061, skipped: 0, missed: 439 });
    expect(state.lastRunAt?.getTime()).toBe(from + 1_500_000);
  });

  test("[G4] the first time it is put, a schedule waits for its occurrence (seed) or makes a job at once (fire), once", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    const { job, runs } = quickJob(world);
    const schedules = [
      defineSchedule({ name: "waits", every: "1h", job, input: { n: 1 } }),
      defineSchedule({ name: "fires", every: "1h", job, input: { n: 2 }, firstRun: "fire" }),
    ];
    const worker = await client.work([job], { ...work, schedules });
    await world.advance("1s");
    expect(runs.map(({ n }) => n)).toEqual([2]);
    await world.finish(worker.stop());
    await client.work([job], { ...work, schedules });
    await world.advance("59m", "1m");
    expect(runs.map(({ n }) => n)).toEqual([2]);
    await world.advance("2m", "1m");
    expect(runs.map(({ n }) => String(n)).sort()).toEqual(["1", "2", "2"]);
  });

  test("[G5] overlap skip: while the job runs, occurrences are skipped and counted apart", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    const told = client.told("schedule.skipped");
    const { job, runs } = heldJob(world);
    const s = defineSchedule({ name: "s", every: "10s", overlap: "skip", job, input: { n: 1 } });
    await client.work([job], { ...work, schedules: [s] });
    await world.advance("45s");
    expect(runs).toHaveLength(1);
    expect(await get(client.hf, "s")).toMatchObject({
      counts: { fired: 1, skipped: 3, missed: 0 },
      lastRunAt: new Date("2026-01-01T00:00:10Z"),
    });
    expect(told).toHaveLength(3);
    runs[0]?.finish();
    await world.advance("6s");
    expect(runs).toHaveLength(2);
    expect((await get(client.hf, "s")).counts).toEqual({ fired: 2, skipped: 3, missed: 0 });
  });

  test("[G5] overlap skip sees a job in its retry wait, and one that was triggered by hand", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    const { job, runs } = heldJob(world);
    const s = defineSchedule({ name: "s", every: "10s", overlap: "skip", job, input: { n: 1 } });
    await client.work([job], { ...work, schedules: [s] });
    await world.advance("11s");
    runs[0]?.fail(new Error("again in a minute"));
    await world.advance("10s");
    expect((await get(client.hf, "s")).counts).toEqual({ fired: 1, skipped: 1, missed: 0 });
    await client.hf.schedules.trigger("s");
    await world.advance("1s");
    expect(runs).toHaveLength(2);
    await client.hf.jobs.cancel({ state: "scheduled" });
    await world.advance("10s");
    expect((await get(client.hf, "s")).counts).toEqual({ fired: 1, skipped: 2, missed: 0 });
    runs[1]?.finish();
    await world.advance("10s");
    expect((await get(client.hf, "s")).counts).toEqual({ fired: 2, skipped: 2, missed: 0 });
  });

  test("[G5] overlap queue: one occurrence waits for the job before it and starts at its end, the others are skipped", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    const other = await world.client();
    const { job, runs } = heldJob(world);
    const s = defineSchedule({ name: "s", every: "10s", overlap: "queue", job, input: { n: 1 } });
    await client.work([job], { ...work, schedules: [s] });
    await other.work([job], work);
    await world.advance("45s");
    expect(runs).toHaveLength(1);
    expect(await get(client.hf, "s")).toMatchObject({
      counts: { fired: 1, skipped: 2 },
      waitingAt: new Date("2026-01-01T00:00:20Z"),
    });
    runs[0]?.finish();
    await world.advance("300ms");
    expect(runs).toHaveLength(2);
    expect(runs[1]?.ctx.schedule).toEqual({ name: "s", at: new Date("2026-01-01T00:00:20Z") });
    expect(await get(client.hf, "s")).toMatchObject({ counts: { fired: 2, skipped: 2 }, waitingAt: null });
  });

  test("[G5] overlap queue: an end that nobody tells is found within seconds", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    const { job, runs } = heldJob(world);
    const s = defineSchedule({ name: "s", every: "1m", overlap: "queue", job, input: { n: 1 } });
    await client.work([job], { ...work, schedules: [s] });
    await world.advance("125s", "500ms");
    expect(runs).toHaveLength(1);
    const before = client.tap.count("schedules.fire");
    await world.advance("20s", "500ms");
    expect(client.tap.count("schedules.fire") - before).toBeLessThanOrEqual(5);
    await world.fresh.query(`delete from ${world.fresh.table("ready")}`);
    await world.advance("6s", "500ms");
    expect((await get(client.hf, "s")).counts.fired).toBe(2);
  });

  test("[G5] an occurrence whose key is taken by a job is skipped, not fired", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    const job = defineJob({ name: "u", unique: (input: { id: string }) => input.id, run: () => {} });
    await client.hf.enqueue(job, { id: "x" }, { delay: "1d" });
    await client.hf.schedules.put({ name: "s", every: "10s", job, input: { id: "x" } });
    await world.clock.advance("10s");
    await ticker(world, client)();
    expect(await get(client.hf, "s")).toMatchObject({ counts: { fired: 0, skipped: 1 }, lastRunAt: null });
    expect(await world.rows("job")).toHaveLength(1);
  });

  test("[G6] what an operator edits survives put and restart, until reset", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    const { hf } = client;
    const define = (cron: string, n: number) => ({
      name: "s",
      cron,
      timezone: "Asia/Tokyo",
      job: "j",
      input: { n },
    });
    await hf.schedules.put(define("0 3 * * *", 1));
    const edited = await hf.schedules.edit("s", { cron: "0 5 * * *", priority: 9 });
    expect(edited).toMatchObject({ cron: "0 5 * * *", timezone: "Asia/Tokyo", priority: 9, input: { n: 1 } });
    expect([...edited.edited].sort()).toEqual(["cron", "priority"]);
    expect(edited.nextAt).toEqual(new Date("2026-01-01T20:00:00Z"));
    await hf.schedules.pause("s");
    const again = await world.client();
    const put = await again.hf.schedules.put(define("0 4 * * *", 2));
    expect(put).toMatchObject({
      cron: "0 5 * * *",
      priority: 9,
      input: { n: 2 },
      paused: true,
      nextAt: null,
    });
    await again.hf.schedules.resume("s");
    expect(await again.hf.schedules.reset("s")).toMatchObject({
      cron: "0 4 * * *",
      priority: 0,
      edited: [],
      nextAt: new Date("2026-01-01T19:00:00Z"),
    });
    expect(await again.hf.schedules.edit("s", { every: "5m" })).toMatchObject({
      cron: null,
      timezone: null,
      every: 300_000,
    });
    for (const [code, change] of [
      ["BAD_CRON", { cron: "x" }],
      ["BAD_OPTION", { timezone: "UTC" }],
      ["BAD_OPTION", { cron: "* * * * *", every: "1m" }],
      ["UNKNOWN_OPTION", { job: "other" }],
      ["INPUT_NOT_JSON", { input: 1n }],
    ] as const)
      await expect(again.hf.schedules.edit("s", change as never), code).rejects.toMatchObject({ code });
    expect(await get(hf, "s")).toMatchObject({ every: 300_000 });
  });

  test("[G6] an edited pattern keeps its time zone, through an interval and whatever the code says later", async () => {
    const world = await newWorld(target);
    const { hf } = await world.client();
    const code = { name: "s", job: "j", input: 1 } as const;
    const tokyo = { cron: "0 5 * * *", timezone: "Asia/Tokyo", nextAt: new Date("2026-01-01T20:00:00Z") };
    await hf.schedules.put({ ...code, cron: "0 3 * * *", timezone: "Asia/Tokyo" });
    expect(await hf.schedules.edit("s", { every: "5m" })).toMatchObject({ every: 300_000, timezone: null });
    expect(await hf.schedules.edit("s", { cron: "0 5 * * *" })).toMatchObject({ ...tokyo, edited: ["cron"] });
    expect(await hf.schedules.put({ ...code, every: "1h" })).toMatchObject(tokyo);
    expect(await hf.schedules.edit("s", { cron: "0 6 * * *" })).toMatchObject({ timezone: "Asia/Tokyo" });

    // A zone that an operator chose outlasts an interval too.
    await hf.schedules.edit("s", { timezone: "Europe/Berlin" });
    await hf.schedules.edit("s", { every: "5m" });
    expect(await hf.schedules.edit("s", { cron: "0 5 * * *" })).toMatchObject({ timezone: "Europe/Berlin" });
    expect(await hf.schedules.reset("s")).toMatchObject({ every: 3_600_000, timezone: null });
    expect(await hf.schedules.edit("s", { cron: "0 5 * * *" })).toMatchObject({ timezone: "UTC" });
  });

  test("[G2] a pattern whose years have passed is refused by put and edit; a stored one has no next occurrence", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    const { hf } = client;
    const passed = { name: "s", cron: "0 0 0 1 1 * 2025", job: "j", input: 1 } as const;
    const refused = { code: "BAD_CRON", message: expect.stringContaining("its years have passed") as string };
    await expect(hf.schedules.put(passed)).rejects.toMatchObject(refused);
    await expect(hf.schedules.put({ ...passed, firstRun: "fire" })).rejects.toMatchObject(refused);
    expect(await hf.schedules.list()).toEqual([]);
    const coming = { ...passed, cron: "0 0 0 1 6 * 2026" };
    await hf.schedules.put(coming);
    await expect(hf.schedules.put(passed)).rejects.toMatchObject(refused);
    await expect(hf.schedules.edit("s", { cron: passed.cron })).rejects.toMatchObject(refused);
    expect(await get(hf, "s")).toMatchObject({ cron: coming.cron, nextAt: new Date("2026-06-01T00:00:00Z") });

    // Its years pass: a worker that has it in its code starts all the same, with another input too.
    world.clock.set(Date.UTC(2027, 0, 1));
    await ticker(world, client)();
    await hf.schedules.put({ ...coming, input: 2 });
    await hf.schedules.pause("s");
    await hf.schedules.resume("s");
    await hf.schedules.reset("s");
    expect(await get(hf, "s")).toMatchObject({ nextAt: null, fault: null, input: 2 });
    expect(await hf.schedules.preview("s")).toEqual([]);
    expect(await ticker(world, client)()).toMatchObject({ fired: 0, left: false });
  });

  test("[G6] put keeps the occurrences that are due: a deploy misses nothing", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    const { hf } = client;
    const s = { name: "s", cron: "0 * * * *", job: "j", input: 1 } as const;
    await hf.schedules.put(s);
    await world.clock.advance("70m");
    await hf.schedules.put(s);
    await hf.schedules.put({ ...s, input: 2 });
    expect(await ticker(world, client)()).toMatchObject({ fired: 1 });
    expect((await jobs(hf)).map(({ input }) => input)).toEqual([2]);
    await hf.schedules.put({ ...s, cron: "*/5 * * * *" });
    expect((await get(hf, "s")).nextAt).toEqual(new Date("2026-01-01T01:15:00Z"));
  });

  test("[G6] pause, resume, trigger and remove while workers run; a pause is not a miss", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    const api = await world.client();
    const { job, runs } = quickJob(world);
    const s = defineSchedule({ name: "s", every: "10s", job, input: { n: 1 }, missed: "all" });
    await client.work([job], { ...work, schedules: [s] });
    await world.advance("12s");
    expect(runs).toHaveLength(1);
    await api.hf.schedules.pause("s");
    await world.advance("10m", "10s");
    expect(runs).toHaveLength(1);
    const before = await get(api.hf, "s");
    const { id, status } = await api.hf.schedules.trigger("s");
    await world.advance("1s");
    expect(status).toBe("enqueued");
    expect(runs).toHaveLength(2);
    expect(await get(api.hf, "s")).toMatchObject({
      lastRunAt: before.lastRunAt,
      counts: before.counts,
      lastJobId: id,
    });
    await api.hf.schedules.resume("s");
    await world.advance("10s");
    expect(runs).toHaveLength(3);
    expect((await get(api.hf, "s")).counts).toEqual({ fired: 2, skipped: 0, missed: 0 });
    await api.hf.schedules.edit("s", { every: "2s" });
    await world.advance("8s");
    expect(runs).toHaveLength(7);
    expect(await api.hf.schedules.remove("s")).toBe(true);
    await world.advance("30s");
    expect(runs).toHaveLength(7);
  });

  test("[G7] the last run moves only on a fire, and one in the future does not fire", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    const { hf } = client;
    const tick = ticker(world, client);
    await hf.schedules.put({ name: "s", every: "1m", job: "j", input: 1, missed: "skip" });
    await tick();
    expect((await get(hf, "s")).lastRunAt).toBeNull();
    await world.clock.advance("1m");
    await tick();
    const ran = (await get(hf, "s")).lastRunAt;
    expect(ran).toEqual(new Date("2026-01-01T00:01:00Z"));
    await world.clock.advance("10m30s"); // missed, and skipped: no fire
    await world.clock.advance("40s");
    world.clock.set(world.clock.now() - 9_000); // between two occurrences, both missed or to come
    await tick();
    world.clock.set(Date.UTC(2025, 11, 31)); // the clock was a day ahead
    expect(await tick()).toMatchObject({ fired: 0, skipped: 0, missed: 0 });
    const { nextAt } = await get(hf, "s");
    expect(nextAt?.getTime()).toBeGreaterThan(Date.UTC(2026, 0, 1));
    // Also when its occurrences change meanwhile.
    await hf.schedules.put({ name: "s", every: "2m", job: "j", input: 1, missed: "skip" });
    expect((await get(hf, "s")).nextAt?.getTime()).toBeGreaterThan(
      ((await get(hf, "s")).lastRunAt as Date).getTime(),
    );
    await world.clock.advance("5m");
    expect(await tick()).toMatchObject({ fired: 0 });
    await hf.schedules.reset("s");
    await world.clock.advance("2m");
    expect(await tick()).toMatchObject({ fired: 1 });
  });

  test("[A11] a schedule's jobs land where the router says; names are validated", async () => {
    const world = await newWorld(target);
    const route = (name: string): string => (name === "j" ? "routed" : "default");
    const client = await world.client({ route });
    const plain = await world.client();
    await client.hf.schedules.put({ name: "s", every: "10s", job: "j", input: 1 });
    await client.hf.schedules.put({ name: "named", every: "10s", job: "j", input: 1, queue: "here" });
    await world.clock.advance("10s");
    await ticker(world, plain)();
    await plain.hf.schedules.trigger("s"); // from a process that has no router
    expect((await jobs(client.hf)).map(({ queue }) => queue).sort()).toEqual(["here", "routed", "routed"]);
    const astray = await world.client({ route: () => "a,b" });
    await expect(
      astray.hf.schedules.put({ name: "x", every: "1m", job: "j", input: 1 }),
    ).rejects.toMatchObject({
      code: "BAD_NAME",
    });
  });

  test("[F15] a tick is one call: it fires what is due by the clock that it is given", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    const tick = ticker(world, client);
    expect(await tick()).toMatchObject({ fired: 0, next: { nextAt: null, due: [] } });
    await client.hf.schedules.put({ name: "s", every: "1m", job: "j", input: 1 });
    expect(await tick()).toMatchObject({ fired: 0, next: { nextAt: world.clock.now() + 60_000 } });
    await world.clock.advance("59999ms");
    expect(await tick()).toMatchObject({ fired: 0 });
    await world.clock.advance("1ms");
    expect(await tick()).toMatchObject({ fired: 1, next: { nextAt: world.clock.now() + 60_000 } });
    expect(await tick()).toMatchObject({ fired: 0 });
  });

  test("[F9] a worker times the next occurrence exactly, and asks for schedules once a minute when there are none", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    const { job, runs } = quickJob(world);
    await client.work([job], work);
    await world.advance("1s");
    const idle = client.tap.count("schedules.due", "schedules.fire");
    await world.advance("5m", "1s");
    expect(client.tap.count("schedules.due", "schedules.fire") - idle).toBeLessThanOrEqual(6);
    await client.hf.schedules.put({ name: "s", every: "90s", job, input: { n: 1 } });
    const at = world.clock.now();
    await world.advance("89s", "1s");
    const before = client.tap.count("schedules.due", "schedules.fire");
    expect(runs).toHaveLength(0);
    await world.advance("1s", "10ms");
    expect(runs.map((run) => run.at)).toEqual([at + 90_000]);
    expect(client.tap.count("schedules.due", "schedules.fire") - before).toBeLessThanOrEqual(4);
  });

  test("[F8] a schedule that another process puts is seen at once, and within seconds where no wake-up arrives", async () => {
    const world = await newWorld(target);
    const hears = await world.client();
    const deaf = await world.client();
    deaf.tap.deaf = true;
    const { job } = quickJob(world);
    await hears.work([job], work);
    await deaf.work([job], work);
    const counts = (): number[] => [hears, deaf].map(({ tap }) => tap.count("schedules.fire"));
    await world.advance("1s");
    const api = await world.client();
    await api.hf.schedules.put({ name: "s", every: "1s", job: "j", input: 1 });
    await world.advance("2100ms");
    expect(counts()[0]).toBeGreaterThan(0);
    await world.advance("5s");
    expect(counts()[1]).toBeGreaterThan(0);
  });

  test("a jittered job is due up to that much after its occurrence, the same for every process", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    const tick = ticker(world, client);
    await client.hf.schedules.put({
      name: "s",
      every: "1m",
      jitter: "30s",
      missed: "all",
      job: "j",
      input: 1,
    });
    await world.clock.advance("200m");
    await tick();
    const offsets = (await jobs(client.hf)).map(({ runAt }) => (runAt as Date).getTime() % 60_000);
    expect(offsets).toHaveLength(200);
    expect(offsets.every((ms) => ms < 30_000)).toBe(true);
    expect(new Set(offsets).size).toBeGreaterThan(150);
    expect(Math.max(...offsets) - Math.min(...offsets)).toBeGreaterThan(25_000);
    // The same again from nothing.
    const second = await newWorld(target);
    const elsewhere = await second.client();
    await elsewhere.hf.schedules.put({
      name: "s",
      every: "1m",
      jitter: "30s",
      missed: "all",
      job: "j",
      input: 1,
    });
    await second.clock.advance("200m");
    await ticker(second, elsewhere)();
    expect((await jobs(elsewhere.hf)).map(({ runAt }) => (runAt as Date).getTime() % 60_000)).toEqual(
      offsets,
    );
  });

  test("a preview shows the next occurrences, of a schedule that is there or that is not yet", async () => {
    const world = await newWorld(target);
    const { hf } = await world.client();
    const s = defineSchedule({
      name: "s",
      cron: "30 2 * * *",
      timezone: "Europe/Berlin",
      job: "j",
      input: 1,
    });
    const expected = [new Date("2026-01-01T01:30:00Z"), new Date("2026-01-02T01:30:00Z")];
    expect(await hf.schedules.preview(s, 2)).toEqual(expected);
    await hf.schedules.put(s);
    expect(await hf.schedules.preview("s", 2)).toEqual(expected);
    expect(await hf.schedules.preview("s")).toHaveLength(10);
    await expect(hf.schedules.preview("s", 0)).rejects.toMatchObject({ code: "BAD_OPTION" });
    await expect(hf.schedules.preview(5 as never)).rejects.toMatchObject({ code: "BAD_OPTION" });
  });

  test("[K6] a worker with schedules: false fires none", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    const { job, runs } = quickJob(world);
    await client.hf.schedules.put({ name: "s", every: "10s", job, input: { n: 1 } });
    await client.work([job], noWork);
    await world.advance("1m");
    expect(runs).toEqual([]);
    expect(client.tap.count("schedules.due")).toBe(0);
  });

  test("a schedule with years comes to an end, and says so", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    world.clock.set(Date.UTC(2026, 11, 31, 23, 59));
    await client.hf.schedules.put({ name: "s", cron: "30 59 23 31 12 * 2026", job: "j", input: 1 });
    await world.clock.advance("1h");
    expect(await ticker(world, client)()).toMatchObject({ fired: 1, next: { nextAt: null } });
    expect(await get(client.hf, "s")).toMatchObject({ nextAt: null, fault: null });
    await client.hf.schedules.put({ name: "s", cron: "30 59 23 31 12 * 2026", job: "j", input: 1 });
    expect(await ticker(world, client)()).toMatchObject({ fired: 0 });
  });
});
