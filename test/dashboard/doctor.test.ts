// What `holdfast doctor` says, on the dashboard: the same words, once for all who look, and how the database is kept.
import pg from "pg";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import type { DoctorReport } from "../../src/dashboard/api/contract.ts";
import type { Check } from "../../src/operate/doctor/diagnosis.ts";
import { MOVED_TO } from "../../src/storage/admin.ts";
import { FakeClock } from "../../src/testing/index.ts";
import { on } from "../cli/support.ts";
import { onEveryStore, onPostgres } from "../support/stores.ts";
import { api, over } from "./support.ts";
import { operatorOf } from "../../src/operate/operator.ts";

const named = (checks: readonly Check[], name: string) => checks.find((check) => check.name === name);
/** What is the same whenever one looks. */
const steady = ["node", "schema", "version", "durability", "indexes", "workers", "unserved", "leases"];

onEveryStore((target) => {
  describe("the doctor", () => {
    test("[K1] it finds what holdfast doctor finds, in the same words", async () => {
      const { hf, store, get } = await api(target);
      await hf.enqueue("lost", null, { queue: "typo" });
      await hf.queues.pause("mail");
      await hf.enqueue("letter", null, { queue: "mail" });
      const { status, body } = await get<DoctorReport>("/doctor");
      expect(status).toBe(200);
      expect(body.ok).toBe(false);
      expect(named(body.checks, "unserved")).toEqual({
        name: "unserved",
        verdict: "wrong",
        text: "mail: letter; typo: lost",
        remedy:
          "Deploy a worker with these handlers and queues, check the spelling of the names, or cancel the jobs.",
      });
      const told = (await on(store)(["doctor", "--json"])).json<{ checks: Check[] }>().checks;
      const both = (checks: readonly Check[]) => checks.filter(({ name }) => steady.includes(name));
      expect(both(body.checks)).toEqual(both(told));
      expect(body.checks.map(({ name }) => name)).toEqual(told.map(({ name }) => name));
      // It writes nothing, and so compares nothing; it says who does.
      expect(named(body.checks, "drift")).toMatchObject({
        verdict: "unknown",
        text: "not compared here, because the comparison creates a schema; run: holdfast doctor",
      });
    });

    test("[K1] it tells the schema's version and since when, what is kept how long, and when that is next looked after", async () => {
      const { hf, store, get } = await api(target, {}, { retention: { done: "1d", dead: "3d" } });
      await hf.queues.set("mail", { retention: { done: "1h", dead: "2h" } });
      const { body: before } = await get<DoctorReport>("/doctor");
      const [newest] = await store.query(
        `select version, name, applied_at from ${store.table("migration")} order by version desc limit 1`,
      );
      expect(before.schema).toEqual({
        version: newest!["version"],
        name: newest!["name"],
        appliedAt: newest!["applied_at"],
      });
      expect(named(before.checks, "schema")?.text).toBe(`version ${before.schema.version}`);
      expect(before.retention).toEqual({
        doneMs: 86_400_000,
        deadMs: 3 * 86_400_000,
        queues: 1,
        eventLogMs: null,
      });
      expect(before.prune).toBeNull();
      await operatorOf(hf).store.upkeep.takeTask("prune", 270_000, "worker-1");
      const { body: after } = await over(hf).get<DoctorReport>("/doctor");
      expect(after.prune).toMatchObject({ by: "worker-1" });
      expect(after.prune!.nextAt - after.prune!.doneAt).toBe(270_000);
    });

    test("[F7] a job that a dead worker holds is told; one that is held for a moment longer is not", async () => {
      const { hf, store, get } = await api(target);
      await hf.enqueueMany([1, 2, 3].map((n) => ({ job: "slow", input: n })));
      expect(await hf.lease({ queues: ["default"], limit: 2, for: "1h" })).toHaveLength(2);
      expect(named((await get<DoctorReport>("/doctor")).body.checks, "leases")?.verdict).toBe("ok");
      await store.query(`update ${store.table("session")} set lease_until = lease_until - 3610000`);
      expect(await operatorOf(hf).store.workers.overdueJobs(35_000, 100)).toBe(0);
      await store.query(`update ${store.table("session")} set lease_until = lease_until - 110000`);
      expect(named((await over(hf).get<DoctorReport>("/doctor")).body.checks, "leases")?.text).toBe(
        "2 jobs are held by dead workers",
      );
      expect(await operatorOf(hf).store.workers.overdueJobs(35_000, 1)).toBe(1);
      await store.query(`delete from ${store.table("session")}`);
      expect(await operatorOf(hf).store.workers.overdueJobs(35_000, 100)).toBe(2);
    });

    test("[K2] ten who look cost one look, and the next comes 5 seconds later; what failed is not kept", async () => {
      const clock = new FakeClock();
      const { hf, get } = await api(target, {}, { clock });
      const looks = vi.spyOn(operatorOf(hf).store, "inspect");
      onTestFinished(() => looks.mockRestore());
      const answers = await Promise.all(Array.from({ length: 10 }, () => get<DoctorReport>("/doctor")));
      expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 10 }, () => 200));
      expect(looks).toHaveBeenCalledTimes(1);
      await clock.advance(4_000);
      await get("/doctor");
      expect(looks).toHaveBeenCalledTimes(1);
      await clock.advance(1_000);
      looks.mockRejectedValueOnce(new Error("out of order"));
      expect((await get("/doctor")).status).toBe(500);
      expect((await get("/doctor")).status).toBe(200);
      expect(looks).toHaveBeenCalledTimes(3);
    });

    test("[K8] an address that somebody left in the tables is shown without its secrets, also where nothing may be changed", async () => {
      const { store, get } = await api(target, { readOnly: true });
      await store.query(`insert into ${store.table("meta")} values (?, ?)`, [
        MOVED_TO,
        "postgres://ann:hunter2@db.example/app?password=hunter2",
      ]);
      const { body } = await get<DoctorReport>("/doctor");
      expect(named(body.checks, "moved")?.text).toContain("postgres://db.example/app;");
      expect(JSON.stringify(body)).not.toContain("hunter2");
      // What a moved database still holds is a copy: who works on it is not judged.
      expect(named(body.checks, "workers")).toBeUndefined();
    });
  });
});

onPostgres((target) => {
  test("[K1] the oldest transaction is told with whose it is, and how far it holds cleaning up back", async () => {
    const { hf, store, get } = await api(target);
    const other = new pg.Client({ connectionString: store.url, application_name: "forgotten-shell" });
    await other.connect();
    onTestFinished(() => other.end());
    await other.query("begin transaction isolation level repeatable read");
    await other.query("select 1");
    for (let n = 0; n < 3; n += 1) await hf.enqueue("plain", n);
    const seen = async () => (await over(hf).get<DoctorReport>("/doctor")).body.oldest;
    // Other suites share the server: theirs may be older for a moment.
    await vi.waitFor(async () => expect((await seen()).whose).toMatch(/^forgotten-shell, pid \d+, idle in/), {
      timeout: 20_000,
    });
    const { xminAge, transactionMs } = await seen();
    expect(transactionMs).toBeGreaterThanOrEqual(0);
    expect(xminAge).toBeGreaterThanOrEqual(3);
    expect((await get<DoctorReport>("/doctor")).status).toBe(200);
  });
});
