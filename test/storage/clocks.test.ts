// On Postgres the server's clock alone decides: of clients whose clock is wrong, nothing is deleted, ended or put off. Only Postgres has a clock
// of its own.
import { defineJob, type Holdfast, open, type OpenOptions } from "holdfast";
import { expect, onTestFinished, test, vi } from "vitest";
import { type Clock, systemClock } from "../../src/clock.ts";
import { silentLogger } from "../../src/logger.ts";
import { idAt, idTime } from "../../src/values/id.ts";
import { ServerClock } from "../../src/storage/postgres/server-clock.ts";
import { type FreshStore, onPostgres } from "../support/stores.ts";
import { operatorOf } from "../../src/operate/operator.ts";

const dayMs = 86_400_000;
const hourMs = 3_600_000;
const echo = defineJob({ name: "echo", run: async (input: string) => input });

/** A machine whose wall clock is wrong by so much, and can be set. */
function machine(offsetMs: number): Clock & { offsetMs: number } {
  const clock = { ...systemClock, offsetMs, now: () => Date.now() + clock.offsetMs };
  return clock;
}

async function client(fresh: FreshStore, options: OpenOptions = {}): Promise<Holdfast> {
  const hf = await open(fresh.url, { logger: silentLogger, ...options, ...fresh.options });
  onTestFinished(() => hf.close());
  return hf;
}

async function partitions(fresh: FreshStore): Promise<unknown[]> {
  const rows = await fresh.query(
    "select relname from pg_class where relnamespace = ?::regnamespace and relispartition and relkind = 'r' order by 1",
    [fresh.options.schema],
  );
  return rows.map((row) => row["relname"]);
}

onPostgres((target) => {
  test("[O5] a process whose clock is 40 days ahead deletes nothing, drops nothing and ends nobody", async () => {
    const fresh = await target.fresh();
    const right = await client(fresh, { eventLog: true });
    const worker = right.work([echo], { queues: ["default"] });
    await worker.ready;
    const first = await right.enqueue(echo, "seconds old");
    expect(await right.result(first)).toBe("seconds old");
    const before = await partitions(fresh);
    const now = Math.floor(Date.now() / 60_000) * 60_000;
    await operatorOf(right).store.series.putGauges([{ minute: now, source: "test", name: "n", value: 1 }]);

    // The whole process, so that no code can get the right time past the clock that it was given.
    const realNow = Date.now;
    const wrong = vi.spyOn(Date, "now").mockImplementation(() => realNow() + 40 * dayMs);
    onTestFinished(() => wrong.mockRestore());
    const ahead = await client(fresh, { eventLog: true });
    expect(await ahead.prune()).toEqual({ done: 0, dead: 0, cancelled: 0, partitions: 0 });
    await operatorOf(ahead).store.upkeep.tidy({ doneMs: 7 * dayMs, deadMs: 30 * dayMs });
    expect(await partitions(fresh)).toEqual(before);
    expect(
      await fresh.query(`select count(*) as n from ${fresh.table("gauge")} where source = 'test'`),
    ).toEqual([{ n: 1 }]);
    const helper = ahead.work([echo], { queues: ["default"] });
    await helper.ready;
    expect(await right.result(first)).toBe("seconds old");
    expect(await right.result(await right.enqueue(echo, "after it"))).toBe("after it");
    expect((await right.workers.list()).length).toBe(2);
    await helper.stop();
    await worker.stop();
  });

  test("[O5] ids, deadlines and minutes are the server's, whatever the client's clock says", async () => {
    const fresh = await target.fresh();
    for (const offset of [40 * dayMs, -40 * dayMs]) {
      const hf = await client(fresh, { clock: machine(offset) });
      const { id } = await hf.enqueue("any", 1, { deadline: "1h" });
      expect(Math.abs(idTime(id) - Date.now())).toBeLessThan(hourMs);
      expect((await hf.lease({ names: ["any"] })).map((lease) => lease.id)).toEqual([id]);
      const [row] = await fresh.query(`select deadline_at from ${fresh.table("job")} where id = ?`, [id]);
      expect(Math.abs(Number(row!["deadline_at"]) - Date.now() - hourMs)).toBeLessThan(hourMs / 2);
      expect(await fresh.query(`select 1 from ${fresh.table("job_rest")}`)).toEqual([]);
    }
  });

  test("[O5] a clock that is set while the process runs changes nothing either", async () => {
    const fresh = await target.fresh();
    const clock = machine(0);
    const hf = await client(fresh, { clock });
    clock.offsetMs = 40 * dayMs;
    const { id } = await hf.enqueue("any", 1);
    expect(Math.abs(idTime(id) - Date.now())).toBeLessThan(hourMs);
    expect(await hf.prune()).toEqual({ done: 0, dead: 0, cancelled: 0, partitions: 0 });
  });

  test("[O5] a job with an id of the future is pruned by its own age, and doctor still sees a wrong clock", async () => {
    const fresh = await target.fresh();
    const hf = await client(fresh, { clock: machine(5 * dayMs) });
    const { id } = await hf.enqueue("any", 1, { id: idAt(Date.now() + 40 * dayMs) });
    await (await hf.lease())[0]!.done();
    expect(await hf.prune()).toMatchObject({ done: 0 });
    await fresh.query(`update ${fresh.table("history")} set ended_at = ended_at - ?`, [8 * dayMs]);
    expect(await hf.prune()).toMatchObject({ done: 1 });
    expect(await hf.jobs.get(id)).toBeNull();
    const { findings } = await import("../../src/operate/doctor/findings.ts");
    expect(Math.round((await findings(hf)).clock!.skewMs / dayMs)).toBe(5);
  });
});

test("[O5] the server's clock goes on by the monotonic one, and an answer moves it no further than it must", () => {
  let [wall, elapsed] = [1_000_000, 0];
  const server = new ServerClock({
    system: true,
    now: () => wall,
    monotonic: () => elapsed,
    after: () => ({ cancel: () => {} }),
  });
  server.heard(5_000, 0);
  expect([server.now(), server.doubtful]).toEqual([5_000, false]);
  [wall, elapsed] = [1_000_100, 100];
  expect(server.now()).toBe(5_100);
  server.heard(5_098, 90); // it was somewhere between 5,098 and 5,108
  expect(server.now()).toBe(5_100);
  server.heard(9_000, 90);
  expect(server.now()).toBe(9_000);
  wall += 5_000;
  expect([server.now(), server.doubtful], "somebody set the wall clock").toEqual([9_000, true]);
  server.heard(9_000, 100);
  expect(server.doubtful).toBe(false);
});
