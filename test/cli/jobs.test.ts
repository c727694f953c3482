// Commands on jobs, queues, holds and workers, on every store.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { defineJob, type Holdfast, type Job } from "../../src/index.ts";
import { onEveryStore, type FreshStore, type StoreTarget } from "../support/stores.ts";
import { connect, fresh } from "../support/test-clients.ts";
import { root } from "../support/repository.ts";
import { cli, folder, on } from "./support.ts";
import { operatorOf } from "../../src/operate/operator.ts";

const unkind = defineJob({
  name: "unkind",
  queue: "mail",
  retry: { attempts: 1 },
  run: (input: { n: number }) => {
    throw new Error(`refused ${input.n}`);
  },
});

/** Jobs that have died of their handler. */
async function deadJobs(
  target: StoreTarget,
  count: number,
): Promise<{ hf: Holdfast; store: FreshStore; ids: string[] }> {
  const { hf, store } = await fresh(target);
  const enqueued = await hf.enqueueMany(
    Array.from({ length: count }, (_, n) => ({ job: unkind, input: { n } })),
  );
  const worker = hf.work([unkind], { queues: { mail: 50 } });
  await worker.ready;
  await worker.idle();
  await worker.stop();
  return { hf, store, ids: enqueued.map(({ id }) => id) };
}

onEveryStore((target) => {
  test("[K4] create, migrate, status, drop and reset, with 0, 1 and 2 as exit codes", async () => {
    const store = await target.fresh();
    const holdfast = on(store);
    expect((await holdfast(["status"])).code).toBe(1);
    expect((await holdfast(["jobs", "list"])).code).toBe(1);
    const checked = await holdfast(["migrate", "--check"]);
    expect(checked.code).toBe(1);
    expect((await holdfast(["create", "--json"])).code).toBe(0);
    expect((await holdfast(["migrate", "--check", "--json"])).json()).toMatchObject({
      applied: [1],
      pending: [],
    });
    expect((await holdfast(["migrate"])).code).toBe(0);
    expect((await holdfast(["enqueue", "hello", '{"to":"Ada"}'])).code).toBe(0);
    const { code, ...status } = await holdfast(["status", "--json"]);
    expect(code).toBe(0);
    expect(status.json()).toMatchObject({ totals: { ready: 1 }, pending: [], movedTo: null });

    expect(await holdfast(["drop"])).toMatchObject({
      code: 2,
      err: expect.stringContaining("--force") as string,
    });
    expect(await holdfast(["reset"])).toMatchObject({ code: 2 });
    expect((await holdfast(["drop"], { tty: true, answers: ["n"] })).code).toBe(1);
    expect((await holdfast(["jobs", "list", "--count"])).out).toBe("1\n");
    expect((await holdfast(["reset", "--force"])).code).toBe(0);
    expect((await holdfast(["jobs", "list", "--count"])).out).toBe("0\n");
    expect((await holdfast(["drop"], { tty: true, answers: ["yes"] })).code).toBe(0);
    expect((await holdfast(["status"])).code).toBe(1);
    expect((await holdfast(["create"])).code).toBe(0);
  });

  test("[K4] the printed SQL makes the schema that migrating makes", async () => {
    const store = await target.fresh();
    const holdfast = on(store);
    const { code, out } = await holdfast(["migrate", "--print-sql", "--json"]);
    expect(code).toBe(0);
    const statements = JSON.parse(out) as string[];
    if (store.dialect === "postgres") for (const sql of statements) await store.query(sql);
    else {
      await holdfast(["create"]);
      const made = await store.query(
        "select name from sqlite_master where name like 'holdfast_%' and name not like '%migration'",
      );
      for (const { name } of made) expect(statements.join("\n")).toContain(String(name));
      return;
    }
    expect(await store.query(`select 1 as one from ${store.table("ready")}`)).toEqual([]);
  });

  test("[K4] rows of jobs fit into the terminal, and where there is none nothing of them is cut", async () => {
    const { hf, store } = await fresh(target);
    const holdfast = on(store);
    const long = defineJob({
      name: "invoices.send-reminder-to-customer-by-mail",
      queue: "outgoing-mail-of-customers",
      retry: { attempts: 1 },
      run: (_: null) => {
        throw new Error(`${"The far side does not answer. ".repeat(8)}Its last word: ECONNREFUSED-42`);
      },
    });
    await hf.enqueue(long, null);
    await hf.enqueue("plain", { text: "x".repeat(300), tail: "the-end" }, { queue: "other" });
    const worker = hf.work([long], { queues: ["outgoing-mail-of-customers"] });
    await worker.ready;
    await worker.idle();
    await worker.stop();

    const piped = (await holdfast(["jobs", "list"], { columns: 100 })).out;
    expect(piped).toMatch(/dead .*invoices.send-reminder-to-customer-by-mail .*ECONNREFUSED-42/);
    expect(piped).toContain('"the-end"}');
    for (const columns of [40, 60, 80, 100, 140, 200]) {
      const { out } = await holdfast(["jobs", "list", "--no-color"], { columns, tty: true });
      const lines = out.trimEnd().split("\n");
      expect([columns, lines.filter((line) => line.length > columns)]).toEqual([columns, []]);
      expect(lines).toHaveLength(3);
    }
    const wide = (await holdfast(["jobs", "list", "--no-color"], { columns: 140, tty: true })).out;
    expect(wide).toMatch(/^id +state +name +queue +attempt +created +details\n/);
    expect(wide).toMatch(/dead .* {2}The far side does not .*…\n/);
    // What it is about is worth more than where it stands.
    const narrow = (await holdfast(["jobs", "list", "--no-color"], { columns: 100, tty: true })).out;
    expect(narrow).toMatch(/^id +state +name .*details\n/);
  });

  test("[K4] enqueue says where the job is, when it is due, and that nobody runs it there", async () => {
    const { hf, store } = await fresh(target);
    const holdfast = on(store);
    const alone = await holdfast(["enqueue", "hello", "1", "--delay", "1h", "--key", "k"]);
    expect(alone.out).toMatch(/^enqueued [\w-]{36} in queue default, due in (1h|59m 59s|\S+)\n$/);
    expect(alone.err).toBe("No worker is running. The job waits until one starts.\n");
    const hello = defineJob({ name: "hello", queue: "mail", run: async (_n: number) => {} });
    const worker = hf.work([hello], { queues: ["mail"] });
    await worker.ready;
    const elsewhere = await holdfast(["enqueue", "hello", "1", "--json"]);
    expect(elsewhere.json()).toMatchObject({ status: "enqueued", queue: "default", served: false });
    expect(elsewhere.err).toBe(
      "No live worker serves queue default. The job waits until one does. Served queues: mail.\n",
    );
    const other = await holdfast(["enqueue", "other", "--queue", "mail"]);
    expect(other.err).toBe(
      "No live worker of queue mail has a handler for other. The job waits until one does.\n",
    );
    // A duplicate is where it was put first.
    const twice = await holdfast(["enqueue", "hello", "1", "--queue", "mail", "--key", "k", "--json"]);
    expect(twice.json()).toMatchObject({ status: "duplicate", queue: "default", served: false });
    const served = await holdfast(["enqueue", "hello", "1", "--queue", "mail", "--json"]);
    expect([served.err, served.json()["served"]]).toEqual(["", true]);
    const far = await holdfast(["enqueue", "hello", "1", "--delay", "99999w"]);
    expect(far.out).toMatch(/due in 36525d\n$/);

    for (const text of ["tomorrow", "5m", "1", "mail 5", "2027-13-45", ""])
      expect(await holdfast(["enqueue", "hello", "1", "--at", text])).toMatchObject({
        code: 2,
        err: expect.stringContaining(
          `--at takes a date, such as 2026-01-31 or 2026-01-31T12:00Z; got ${JSON.stringify(text)}.`,
        ) as string,
      });

    const cwd = folder("enqueue");
    writeFileSync(
      join(cwd, "holdfast.config.ts"),
      `import { defineConfig, defineJob } from ${JSON.stringify(join(root, "src/index.ts"))};
const hello = defineJob({ name: "hello", queue: "mail", unique: (n: number) => String(n), run: async (_n: number) => {} });
export default defineConfig({ jobs: [hello] });
`,
    );
    const defined = await holdfast(["enqueue", "hello", "7", "--delay", "1h", "--json"], { cwd });
    expect(defined.json()).toMatchObject({ queue: "mail", served: true });
    expect(await hf.jobs.get(String(defined.json()["id"]))).toMatchObject({ key: "7", state: "scheduled" });
    await worker.stop();
  });

  test("[K4] enqueue, list, show, why: options, input from standard input, one JSON document", async () => {
    const { hf, store } = await fresh(target);
    const holdfast = on(store);
    const first = (
      await holdfast(
        [
          "enqueue",
          "hello",
          "-",
          "--json",
          "--queue",
          "mail",
          "--priority",
          "7",
          "--context",
          "why not",
          "--delay",
          "1h",
        ],
        { stdin: '{"to":"Ada"}' },
      )
    ).json<{ id: string; status: string }>();
    expect(first.status).toBe("enqueued");
    expect(await hf.jobs.get(first.id)).toMatchObject({
      queue: "mail",
      priority: 7,
      context: "why not",
      input: { to: "Ada" },
      state: "scheduled",
    });
    expect((await holdfast(["enqueue", "hello", "{to:1}"])).code).toBe(2);
    expect((await holdfast(["enqueue"])).code).toBe(2);
    expect((await holdfast(["enqueue", "hello", "1", "--priority", "x"])).code).toBe(2);
    expect((await holdfast(["enqueue", "bad name", "1"])).code).toBe(2);
    const page = (
      await holdfast(["jobs", "list", "--json", "--state", "scheduled,ready", "--queue", "mail"])
    ).json<{ jobs: Job[] }>();
    expect(page.jobs.map(({ id }) => id)).toEqual([first.id]);
    const shown = (await holdfast(["jobs", "show", first.id, "--json"])).json();
    expect(shown).toMatchObject({ id: first.id, why: { reason: "future" } });
    expect((await holdfast(["why", first.id])).out).toMatch(/^future {2}/);
    expect((await holdfast(["why", "00000000-0000-7000-8000-000000000000"])).code).toBe(1);
    expect((await holdfast(["jobs", "show", "nonsense"])).code).toBe(1);
    expect((await holdfast(["jobs", "run", first.id, "--json"])).json()).toMatchObject({ due: 1 });
    expect((await holdfast(["why", first.id, "--json"])).json()).toMatchObject({ reason: "unserved" });
  });

  test("[K4] a thousand dead jobs are found, counted without being touched, and retried by filter", async () => {
    const { hf, store } = await deadJobs(target, 1_000);
    const holdfast = on(store);
    const dry = (await holdfast(["jobs", "retry", "--search", "refused 7", "--dry-run", "--json"])).json<{
      matched: number;
      samples: Job[];
    }>();
    expect(dry.matched).toBe(111);
    expect(dry.samples).toHaveLength(5);
    expect(await hf.jobs.count({ state: "dead" })).toBe(1_000);
    expect(await holdfast(["jobs", "retry", "--queue", "mail"])).toMatchObject({
      code: 2,
      err: expect.stringContaining("Retry 1,000 jobs?") as string,
    });
    expect((await holdfast(["jobs", "retry"])).code).toBe(2);
    // As many as one piece of a look has are still all of them.
    const { jobs: some } = await operatorOf(hf).store.insight.browse({}, { limit: 1, cursor: null });
    const byGroup = ["jobs", "retry", "--error", some[0]?.failureGroup ?? "", "--dry-run"];
    expect((await holdfast([...byGroup, "--json"])).out).toMatch(/^\{"dryRun":true,"matched":1000,"samples"/);
    expect((await holdfast(byGroup)).out).toMatch(/^Retry would affect 1,000 jobs\./);
    expect((await holdfast(["jobs", "retry", "--queue", "mail", "--force", "--json"])).json()).toEqual({
      matched: 1_000,
      retried: 1_000,
    });
    expect(await hf.jobs.count({ state: "ready" })).toBe(1_000);
    const lines = (await holdfast(["jobs", "list", "--all", "--json"])).lines<Job>();
    expect(new Set(lines.map(({ id }) => id)).size).toBe(1_000);
    expect((await holdfast(["jobs", "cancel", "--queue", "mail", "--force", "--json"])).json()).toEqual({
      matched: 1_000,
      cancelled: 1_000,
    });
    expect((await holdfast(["jobs", "delete", "--state", "cancelled", "--force"])).out).toBe(
      "1,000 deleted\n",
    );
    expect(await hf.jobs.count()).toBe(0);
  });

  test("[K4] dead jobs are told by what they failed of, and one cause is listed, counted and retried alone", async () => {
    const { hf, store, ids } = await deadJobs(target, 40);
    const holdfast = on(store);
    await hf.enqueue("other", 1, { queue: "mail" });
    const [lease] = await hf.lease({ queues: ["mail"], limit: 1, for: "1m" });
    await lease!.dead("disk full");
    const groups = (await holdfast(["errors", "--json"])).json<
      { group: string; dead: number; message: string }[]
    >();
    expect(groups.map(({ dead }) => dead)).toEqual([40, 1]);
    const group = groups[0]!.group;
    const shown = await holdfast(["errors"]);
    expect(shown.out).toMatch(new RegExp(`${group} +open +40 +0 +40 +unkind +mail .* refused \\d+`));
    expect(shown.out).toContain(`holdfast jobs retry --error ${group} --dry-run`);
    expect((await holdfast(["errors", "--queue", "nowhere"])).out).toContain(
      "There are no open failure groups",
    );
    expect((await holdfast(["jobs", "list", "--error", group, "--count", "--json"])).json()).toEqual({
      count: 40,
    });
    const listed = (await holdfast(["jobs", "list", "--error", group, "--json", "--limit", "30"])).json<{
      jobs: Job[];
      cursor: string;
    }>();
    expect(listed.jobs.map(({ id }) => id)).toEqual([...ids].reverse().slice(0, 30));
    const rest = ["jobs", "list", "--error", group, "--cursor", listed.cursor, "--json"];
    expect((await holdfast(rest)).json<{ jobs: Job[] }>().jobs).toHaveLength(10);
    const dry = ["jobs", "retry", "--error", group, "--dry-run", "--json"];
    expect((await holdfast(dry)).json()).toMatchObject({ matched: 40, samples: { length: 5 } });
    expect((await holdfast(["jobs", "retry", "--error", group, "--force", "--json"])).json()).toEqual({
      matched: 40,
      retried: 40,
    });
    expect(await hf.jobs.count({ state: "dead" })).toBe(1);
    expect((await holdfast(["jobs", "retry", "--error", "disk full"])).code).toBe(2);
    expect((await holdfast(["jobs", "list", "--retrying", "--count"])).out).toBe("0\n");
  });

  test("an id whose job is not in a state to be acted on is told, and exits 1", async () => {
    const { hf, store } = await fresh(target);
    const holdfast = on(store);
    const { id } = await hf.enqueue("import", null);
    const early = await holdfast(["jobs", "retry", id]);
    expect([early.code, early.out]).toEqual([1, "1 has not ended\n"]);
    await hf.jobs.cancel(id);
    for (const verb of ["cancel", "pause", "resume", "terminate"]) {
      const late = await holdfast(["jobs", verb, id, ...(verb === "terminate" ? ["--force"] : [])]);
      expect([verb, late.code, late.out]).toEqual([verb, 1, "1 had already ended\n"]);
    }
    expect((await holdfast(["jobs", "cancel", id, "--json"])).json()).toEqual({ matched: 1, ended: 1 });
    const run = await holdfast(["jobs", "run", id]);
    expect([run.code, run.out]).toEqual([1, "1 is not scheduled\n"]);
    const { id: ready } = await hf.enqueue("import", null);
    const resumed = await holdfast(["jobs", "resume", ready]);
    expect([resumed.code, resumed.out]).toEqual([1, "1 is not paused\n"]);
  });

  test("[E1] cancelling and deleting say what became of each: cancelled, asked, deleted, not found", async () => {
    const { hf, store } = await fresh(target);
    const holdfast = on(store);
    const release = Promise.withResolvers<void>();
    const started = Promise.withResolvers<void>();
    const slow = defineJob({
      name: "slow",
      run: () => {
        started.resolve();
        return release.promise;
      },
    });
    const worker = hf.work([slow], { queues: ["default"] });
    const running = await hf.enqueue(slow, null);
    await started.promise;
    const waiting = await hf.enqueue(slow, null, { delay: "1h" });
    const unknown = "00000000-0000-7000-8000-000000000000";
    const cancelled = await holdfast(["jobs", "cancel", running.id, waiting.id, unknown, "--json"]);
    expect(cancelled.code).toBe(1);
    expect(cancelled.json()).toEqual({ matched: 3, cancel_requested: 1, cancelled: 1, not_found: 1 });
    expect((await holdfast(["jobs", "delete", running.id])).code).toBe(2);
    expect((await holdfast(["jobs", "delete", running.id, "--force", "--json"])).json()).toEqual({
      matched: 1,
      cancel_requested: 1,
    });
    expect((await holdfast(["jobs", "delete", waiting.id, "--force", "--json"])).json()).toEqual({
      matched: 1,
      deleted: 1,
    });
    expect((await holdfast(["jobs", "delete", waiting.id, "--force"])).code).toBe(1);
    release.resolve();
    await worker.idle();
  });

  test("[K4][F6] queues are listed with who serves them, paused, resumed and set", async () => {
    const { hf, store } = await fresh(target);
    const holdfast = on(store);
    await hf.enqueue("lost", null, { queue: "maill" });
    const queues = (await holdfast(["queues", "--json"])).json<{ name: string; unserved: string[] }[]>();
    expect(queues).toMatchObject([{ name: "maill", unserved: ["lost"] }]);
    expect((await holdfast(["queues"])).out).toContain("no worker for lost");
    expect((await holdfast(["queues", "pause", "maill", "other"])).code).toBe(0);
    expect((await holdfast(["queues"])).out).toMatch(/paused/);
    expect((await holdfast(["queues", "resume", "maill"])).code).toBe(0);
    expect((await holdfast(["queues", "pause"])).code).toBe(2);
    const set = await holdfast([
      "queues",
      "set",
      "maill",
      "--slots",
      "3",
      "--keep-done",
      "1h",
      "--backoff",
      "5s,1m",
      "--json",
    ]);
    expect(set.json()).toMatchObject({ settings: { slots: 3, retention: { doneMs: 3_600_000 } } });
    expect((await holdfast(["queues", "set", "maill", "--slots", "none", "--json"])).json()).toMatchObject({
      settings: { slots: null },
    });
    expect((await holdfast(["queues", "set", "maill"])).code).toBe(2);
    expect((await holdfast(["queues", "set", "maill", "--rate", "fast"])).code).toBe(2);
    expect((await holdfast(["queues", "set", "maill", "--slots", "5000"])).code).toBe(2);
  });

  test("[K4] queues and stats say how many jobs of each queue are dead, also of one that has no others", async () => {
    const { hf, store } = await deadJobs(target, 3);
    const holdfast = on(store);
    await hf.enqueue("plain", null, { queue: "other" });
    for (const line of [["queues"], ["stats"]]) {
      const { out } = await holdfast(line);
      expect(out).toMatch(/^queue +ready +running +scheduled +waiting +dead +lag/m);
      expect(out).toMatch(/^mail +0 +0 +0 +0 +3 /m);
      expect(out).toMatch(/^other +1 +0 +0 +0 +0 /m);
    }
    expect((await holdfast(["queues", "--json"])).json()).toMatchObject([
      { name: "mail", dead: { count: 3, more: false } },
      { name: "other", dead: { count: 0, more: false } },
    ]);
    expect((await holdfast(["stats", "--json"])).json()).toMatchObject({
      totals: { dead: 3 },
      queues: [{ dead: { count: 3 } }, { dead: { count: 0 } }],
    });
  });

  test("[K4] holds are set, listed and cleared", async () => {
    const { store } = await fresh(target);
    const holdfast = on(store);
    expect((await holdfast(["holds", "set", "expired", "--queue", "a,b", "--reason", "log in"])).code).toBe(
      0,
    );
    expect((await holdfast(["holds", "--json"])).json()).toMatchObject([
      { name: "expired", queues: ["a", "b"], reason: "log in" },
    ]);
    expect((await holdfast(["holds", "clear", "expired"])).code).toBe(0);
    expect((await holdfast(["holds", "clear", "expired"])).code).toBe(1);
  });

  test("[F11][F7] workers are listed and stopped from afar after their jobs, and drained says when they are gone", async () => {
    const { hf, store } = await fresh(target);
    const holdfast = on(store);
    expect((await holdfast(["workers", "drained"])).code).toBe(0);
    const release = Promise.withResolvers<void>();
    const started = Promise.withResolvers<void>();
    const slow = defineJob({
      name: "slow",
      run: () => {
        started.resolve();
        return release.promise;
      },
    });
    const worker = (await connect(store)).work([slow], {
      queues: { default: 2 },
      name: "night",
      heartbeat: "200ms",
      lease: "5s",
    });
    const { id } = await hf.enqueue(slow, null);
    await started.promise;
    const listed = (await holdfast(["workers", "--json"])).json<{ name: string; jobs: string[] }[]>();
    expect(listed).toMatchObject([{ name: "night", jobs: [id], queues: { default: 2 } }]);
    expect((await holdfast(["workers", "drained"])).code).toBe(1);
    for (const verb of ["stop", "quiet", "resume"])
      expect((await holdfast(["workers", verb, "nobody"])).code).toBe(1);
    expect((await holdfast(["workers", "quiet", "night", "--json"])).json()).toEqual({ asked: 1 });
    expect((await holdfast(["workers"])).out).toMatch(/ quiet$/m);
    const told = await holdfast(["enqueue", "slow", "null", "--json"]);
    expect(told.err).toContain("Its workers are quiet");
    expect((await holdfast(["workers", "resume", "all"])).out).toContain("Asked 1.");
    expect((await holdfast(["workers"])).out).not.toMatch(/ quiet$/m);
    expect((await holdfast(["workers", "stop", "night", "--wait", "300ms"])).code).toBe(1);
    release.resolve();
    const stopped = await holdfast(["workers", "stop", "all", "--wait", "20s", "--json"]);
    expect(stopped).toMatchObject({ code: 0 });
    expect(stopped.json()).toMatchObject({ drained: true });
    await worker.stopped;
    expect((await hf.jobs.get(id))?.state).toBe("done");
  });

  test("stats, metrics, events, prune and top print for people and as JSON", async () => {
    const { store } = await deadJobs(target, 3);
    const holdfast = on(store);
    expect((await holdfast(["stats", "--json"])).json()).toMatchObject({ totals: { dead: 3 } });
    expect((await holdfast(["stats"])).out).toMatch(/dead 3/);
    expect(
      (await holdfast(["metrics", "--json", "--by", "job-type", "--step", "1h", "--since", "1h"])).json(),
    ).toMatchObject([{ name: "unkind", points: [{ dead: 3 }] }]);
    expect((await holdfast(["metrics", "--by", "colour"])).code).toBe(2);
    expect((await holdfast(["events", "--json"])).json()).toEqual({ events: [], cursor: null });
    expect((await holdfast(["prune"])).code).toBe(2);
    expect((await holdfast(["prune", "--force", "--json"])).json()).toMatchObject({ dead: 0 });
    const picture = await holdfast(["top", "--once"], { columns: 120 });
    expect(picture.out).toMatch(/holdfast top[^]*mail/);
    expect((await holdfast(["top", "--once", "--json"])).lines()).toHaveLength(1);
  });

  test("[K7] the probe prints jobs a second and p50, p95, p99 of pick-up and end to end, and leaves nothing behind", async () => {
    const { hf, store } = await fresh(target);
    const probed = await on(store)(["bench-probe", "--jobs", "200", "--json"]);
    expect(probed.code, probed.err).toBe(0);
    const number: unknown = expect.any(Number);
    const three = { p50: number, p95: number, p99: number };
    expect(probed.json()).toMatchObject({
      jobs: 200,
      jobsPerSecond: number,
      pickupMs: three,
      endToEndMs: three,
    });
    expect(await hf.jobs.count()).toBe(0);
    expect((await on(store)(["bench-probe", "--jobs", "0"])).code).toBe(2);
  });
});

test("[K4] a database that is not there is not made by looking", async () => {
  const { code, err } = await cli(["jobs", "list"]);
  expect(code).toBe(1);
  expect(err).toContain("holdfast migrate");
  expect((await cli(["status"])).code).toBe(1);
});
