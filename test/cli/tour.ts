// Every command once, on a database in which everything that somebody else can write is hostile to a terminal.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { defineJob, type Holdfast } from "../../src/index.ts";
import { Operations } from "../../src/operate/operations.ts";
import { connect } from "../support/test-clients.ts";
import { root } from "../support/repository.ts";
import type { FreshStore, StoreTarget } from "../support/stores.ts";
import { type CliOptions, folder, on, type Ran } from "./support.ts";

export const evil = "a\u001b]0;owned\u0007b\u001b[31mred\u001b[0m\u009b2J\rc\u202eabc";
// oxlint-disable-next-line no-control-regex -- control characters are what is looked for
export const dangerous = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e]/;

/** One line of the tour: what it prints, and what it leaves on the audit trail. */
export interface Stop {
  readonly argv: readonly string[];
  /** Several values, one a line. */
  readonly lines?: true;
  /** Exit code, where it is not 0. */
  readonly code?: number;
  /** Action, target and outcome of the line that it leaves; none: it only looks. */
  readonly leaves?: readonly [action: string, target: string, outcome: string];
  readonly options?: CliOptions;
  /** On the database that everything was moved to. */
  readonly moved?: true;
  /** Runs until this is seen on standard output; then it is broken off. */
  readonly until?: RegExp;
}

/** What is there before anybody gives a command. */
export interface Scene {
  readonly hf: Holdfast;
  readonly store: FreshStore;
  readonly cwd: string;
  readonly dead: string;
  readonly done: string;
  readonly waiting: string;
  readonly later: readonly string[];
  readonly group: string;
  readonly operation: string;
  readonly worker: string;
}

/** A database with something of everything, and a live worker. */
export async function scene(target: StoreTarget): Promise<Scene> {
  const store = await target.fresh();
  const hf = await connect(store, { eventLog: true, jobLog: true });
  const broken = defineJob({
    name: "broken",
    queue: "bad",
    retry: { attempts: 1 },
    run: async (_input: unknown, ctx) => {
      ctx.log.warn({ evil }, `said ${evil}`);
      await ctx.step(`step ${evil}`, () => ({ evil }));
      const error = new Error(`failed ${evil}`);
      error.stack = `Error: failed ${evil}\n    at ${evil}`;
      throw error;
    },
  });
  const good = defineJob({ name: "good", queue: "good", run: async (_input: unknown) => ({ evil }) });
  const waits = defineJob({
    name: "waits",
    queue: "good",
    run: async (_input: unknown, ctx) => ctx.waitFor("go", { key: evil }),
  });
  await hf.queues.set("bad", { breaker: { after: 1, cooldown: "1h" } });
  const options = { context: `context ${evil}` };
  const dead = (await hf.enqueue(broken, { evil }, options)).id;
  const done = (await hf.enqueue(good, null, options)).id;
  const waiting = (await hf.enqueue(waits, { evil }, options)).id;
  const worker = hf.work([broken, good, waits], { queues: ["bad", "good"], name: "night" });
  await worker.ready;
  await worker.idle();
  await hf.jobLog.flush();
  await hf.eventLog.flush();
  const later: string[] = [];
  for (let i = 0; i < 12; i += 1)
    later.push(
      (await hf.enqueue("later", { evil, i }, { queue: "later", delay: "1h", lane: `lane ${evil}` })).id,
    );
  await hf.schedules.put({ name: "nightly", cron: "30 2 * * *", job: good, input: { evil } });
  await hf.budgets.set("slack", { limit: 10, per: "1m" });
  await hf.holds.set("stop", { queues: ["held"], reason: evil });
  const operations = new Operations(hf);
  const task = { action: "cancel", change: null, patch: null, rate: null } as const;
  const driven = await operations.start({ ...task, filter: { search: `none ${evil}` } }, evil);
  await driven.left;
  const [group] = await hf.errors.list({});
  await hf.errors.set(group?.group ?? "", { note: evil });
  const cwd = folder("tour");
  writeFileSync(
    join(cwd, "holdfast.config.ts"),
    `import { defineJob } from ${JSON.stringify(join(root, "src/index.ts"))};
export default { url: ${JSON.stringify(store.url)}, open: ${JSON.stringify(store.options)}, jobs: [defineJob({ name: "waits", queue: "other", run: async (_: unknown, ctx) => ctx.waitFor("go", { key: ${JSON.stringify(evil)} }) })] };\n`,
  );
  return {
    hf,
    store,
    cwd,
    dead,
    done,
    waiting,
    later,
    group: group?.group ?? "",
    operation: driven.id,
    worker: (await hf.workers.list())[0]?.id ?? "",
  };
}

/** Every command, in an order in which each has something to do. `fresh` is an empty database to move to. */
export function tour(scene: Scene, fresh: FreshStore): Stop[] {
  const { dead, done, waiting, later, group, operation, worker, cwd } = scene;
  const id = (n: number): string => later[n] ?? "";
  const fsyncIsOff = scene.store.dialect === "postgres" ? { code: 1 } : {};
  return [
    // Start
    { argv: ["init", "app"], options: { cwd } },
    { argv: ["work", "--once", "--queues", "other"], options: { cwd }, lines: true },
    // Monitor
    { argv: ["status"] },
    { argv: ["stats"] },
    { argv: ["top", "--once"], lines: true },
    { argv: ["top", "--every", "100ms"], lines: true, until: /\n/ },
    { argv: ["metrics"] },
    { argv: ["metrics", "--gauges"] },
    { argv: ["events"] },
    { argv: ["events", "--follow"], lines: true, until: /job\.dead/ },
    { argv: ["doctor"], ...fsyncIsOff },
    { argv: ["dashboard", "--port", "0"], until: /127\.0\.0\.1/ },
    // Jobs
    { argv: ["jobs", "list"] },
    { argv: ["jobs", "list", "--all"], lines: true },
    { argv: ["jobs", "list", "--count"] },
    { argv: ["jobs", "show", dead] },
    { argv: ["jobs", "show", done] },
    { argv: ["jobs", "show", waiting] },
    { argv: ["jobs", "history", dead] },
    { argv: ["jobs", "logs", dead] },
    { argv: ["why", waiting] },
    { argv: ["why", dead] },
    { argv: ["check"], options: { cwd } },
    { argv: ["batches", "list", "--state", "open"] },
    { argv: ["errors", "list"] },
    { argv: ["errors", "list", "--by", "queue"] },
    { argv: ["errors", "show", group] },
    { argv: ["errors", "resolve", group], leaves: ["errors.resolve", group, "resolved"] },
    { argv: ["errors", "ignore", group], leaves: ["errors.ignore", group, "ignored"] },
    { argv: ["errors", "reopen", group], leaves: ["errors.reopen", group, "opened"] },
    { argv: ["errors", "note", group, "--note", evil], leaves: ["errors.note", group, "noted"] },
    { argv: ["operations", "list"] },
    { argv: ["operations", "show", operation] },
    { argv: ["operations", "pause", operation] },
    { argv: ["operations", "stop", operation] },
    { argv: ["operations", "resume", operation], code: 1 },
    { argv: ["enqueue", "hello", "1", "--id", ids.hello], leaves: ["jobs.enqueue", ids.hello, "enqueued"] },
    { argv: ["jobs", "pause", id(0)], leaves: ["jobs.pause", id(0), "paused"] },
    { argv: ["jobs", "resume", id(0)], leaves: ["jobs.resume", id(0), "resumed"] },
    { argv: ["jobs", "edit", id(0), "--priority", "3"], leaves: ["jobs.edit", id(0), "edited"] },
    { argv: ["jobs", "run", id(1)], leaves: ["jobs.run-now", id(1), "due"] },
    { argv: ["jobs", "cancel", id(2)], leaves: ["jobs.cancel", id(2), "cancelled"] },
    { argv: ["jobs", "terminate", id(3), "--force"], leaves: ["jobs.terminate", id(3), "terminated"] },
    { argv: ["jobs", "delete", id(4), "--force"], leaves: ["jobs.delete", id(4), "deleted"] },
    { argv: ["jobs", "retry", id(2)], leaves: ["jobs.retry", id(2), "retried"] },
    {
      argv: ["jobs", "cancel", id(5), id(6)],
      leaves: ["jobs.cancel", JSON.stringify({ ids: [id(5), id(6)] }), "2 cancelled"],
    },
    { argv: ["jobs", "retry", "--queue", "later", "--state", "cancelled", "--dry-run"] },
    { argv: ["jobs", "fork", dead, "--from", `step ${evil}`], leaves: ["jobs.fork", dead, "forked"] },
    { argv: ["signal", "go", "1", "--key", evil], leaves: ["workflows.signal", "go", "sent"] },
    // Control
    { argv: ["queues", "list"] },
    { argv: ["queues", "pause", "later"], leaves: ["queues.pause", "later", "paused"] },
    { argv: ["queues", "resume", "later"], leaves: ["queues.resume", "later", "resumed"] },
    { argv: ["queues", "drain", "empty"], leaves: ["queues.drain", "empty", "paused"] },
    { argv: ["queues", "set", "later", "--concurrency", "3"], leaves: ["queues.set", "later", "set"] },
    {
      argv: ["queues", "set", "later", "--concurrency", "2", "--for", "1h"],
      leaves: ["queues.set", "later", "set"],
    },
    { argv: ["temporary-limits", "list"] },
    {
      argv: ["temporary-limits", "end", "queue", "later"],
      leaves: ["temporary-limits.end", "later", "back"],
    },
    { argv: ["holds", "list"] },
    { argv: ["holds", "set", "calm", "--queue", "later"], leaves: ["holds.set", "calm", "set"] },
    { argv: ["holds", "clear", "calm"], leaves: ["holds.clear", "calm", "cleared"] },
    { argv: ["lanes", "list"] },
    { argv: ["lanes", "set", "later", "vip", "--weight", "3"], leaves: ["lanes.set", "later/vip", "set"] },
    { argv: ["lanes", "pause", "later", "vip"], leaves: ["lanes.set", "later/vip", "set"] },
    { argv: ["lanes", "resume", "later", "vip"], leaves: ["lanes.set", "later/vip", "set"] },
    { argv: ["lanes", "reset", "later", "vip"], leaves: ["lanes.reset", "later/vip", "reset"] },
    { argv: ["lanes", "drop", "later", "vip"], leaves: ["lanes.drop", "later/vip", "dropped"] },
    { argv: ["budgets", "list"] },
    { argv: ["budgets", "set", "mine", "--rate", "5/1m"], leaves: ["budgets.set", "mine", "set"] },
    { argv: ["budgets", "drain", "mine", "--force"], leaves: ["budgets.drain", "mine", "drained"] },
    { argv: ["budgets", "remove", "mine", "--force"], leaves: ["budgets.remove", "mine", "removed"] },
    { argv: ["budgets", "reset", "slack"], code: 1 }, // the code has no numbers for it
    { argv: ["breakers", "list"] },
    { argv: ["breakers", "reset", "queue:bad"], leaves: ["breakers.reset", "queue:bad", "closed"] },
    { argv: ["schedules", "list"] },
    { argv: ["schedules", "preview", "nightly"] },
    { argv: ["schedules", "runs", "nightly"] },
    { argv: ["schedules", "pause", "nightly"], leaves: ["schedules.pause", "nightly", "paused"] },
    { argv: ["schedules", "resume", "nightly"], leaves: ["schedules.resume", "nightly", "resumed"] },
    {
      argv: ["schedules", "edit", "nightly", "--cron", "0 4 * * *", "--input", '"hush"'],
      leaves: ["schedules.set", "nightly", "set"],
    },
    { argv: ["schedules", "reset", "nightly"], leaves: ["schedules.reset", "nightly", "reset"] },
    { argv: ["schedules", "trigger", "nightly"], leaves: ["schedules.trigger", "nightly", "triggered"] },
    {
      argv: ["schedules", "backfill", "nightly", "--from", "2026-01-01", "--to", "2026-01-03", "--force"],
      leaves: ["schedules.backfill", "nightly", "2 made"],
    },
    {
      argv: ["schedules", "remove", "nightly", "--force"],
      leaves: ["schedules.remove", "nightly", "removed"],
    },
    { argv: ["workers", "list"] },
    { argv: ["workers", "upkeep"] },
    { argv: ["workers", "quiet", "night"], leaves: ["workers.quiet", worker, "quiet"] },
    { argv: ["workers", "resume", "all"], leaves: ["workers.resume", worker, "resumed"] },
    { argv: ["workers", "drained"], code: 1 },
    { argv: ["workers", "stop", worker, "--wait", "30s"], leaves: ["workers.stop", worker, "asked"] },
    {
      argv: ["queues", "purge", "later", "--force"],
      leaves: ["jobs.purge", '{"queues":["later"]}', "8 deleted"],
    },
    // Database
    { argv: ["prune", "--force"], leaves: ["jobs.prune", "ended", "0 deleted"] },
    { argv: ["create"] },
    { argv: ["migrate"] },
    { argv: ["migrate", "--check"] },
    { argv: ["migrate", "--print-sql"] },
    { argv: ["bench-probe", "--jobs", "5"] },
    { argv: ["completion", "bash"] },
    { argv: ["move", fresh.url, "--force", ...schemaOf(fresh, "--to-schema")] },
    { argv: ["status"], moved: true },
    {
      argv: ["reset", "--force"],
      leaves: ["database.reset", fresh.options.schema ?? "holdfast", "emptied"],
      moved: true,
    },
    { argv: ["drop", "--force"], moved: true },
  ];
}

const ids = { hello: "0199aaaa-0000-7000-8000-000000000001" };

function schemaOf(store: FreshStore, option: string): string[] {
  return store.options.schema === undefined ? [] : [option, store.options.schema];
}

/** One line of the tour, run to its end. */
export async function visit(
  scene: Scene,
  stop: Stop,
  fresh: FreshStore,
  extra: readonly string[],
): Promise<Ran> {
  const end = new AbortController();
  onTestFinished(() => end.abort());
  const watching: CliOptions =
    stop.until === undefined
      ? {}
      : {
          signal: end.signal,
          onOut: (out) => {
            if (stop.until?.test(out) === true) end.abort();
          },
        };
  return on(stop.moved === true ? fresh : scene.store)([...stop.argv, ...extra], {
    ...stop.options,
    ...watching,
  });
}
