/**
 * Holdfast at work: `npm run demo`.
 *
 * Two worker processes share one SQLite file. This process enqueues jobs of many kinds while they run, kills one
 * worker with SIGKILL in the middle of a long job, and counts in the end what became of every job that was accepted.
 * Exits with 0 when nothing was lost and nothing was done twice.
 *
 *   main.ts    the story               worker.ts  a worker process: the handlers
 *   crew.ts    the worker processes    ledger.ts  what was enqueued
 *   view.ts    what is shown           tally.ts   what is counted
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { open } from "holdfast";
import { Crew } from "./crew.ts";
import * as jobs from "./jobs.ts";
import { Ledger } from "./ledger.ts";
import { type Accepted, tally, type Tally } from "./tally.ts";
import { makeView, type Tone } from "./view.ts";

interface SummaryLine {
  readonly text: string;
  readonly tone: Tone;
}

const transcodeSeconds = 6;
const giveUpAfterMs = 40_000;

const startedAt = performance.now();
const folder = mkdtempSync(join(tmpdir(), "holdfast-demo-"));
const database = join(folder, "jobs.db");
const crew = new Crew(database, folder);
// Ctrl-C and an error end here too: no process and no file is left behind.
process.on("exit", () => {
  crew.killAll();
  rmSync(folder, { recursive: true, force: true });
});
process.on("SIGINT", () => process.exit(130));
process.on("SIGTERM", () => process.exit(143));
process.stdout.on("error", () => process.exit(1)); // whoever read the output has gone: `npm run demo | head`

const view = makeView(process.stdout, process.env);
const hf = await open(`sqlite:${database}`);
const ledger = new Ledger(hf);
const watching = new AbortController();
const watched = watch(watching.signal);
try {
  const killedAt = await tellStory();
  await hf.workers.stop("all");
  await crew.allGone();
  watching.abort();
  await watched;

  const ids = ledger.accepted.map(({ id }) => id);
  const { jobs: stored } = await hf.jobs.list({ ids, limit: 1_000 });
  const counted = tally(ledger.accepted, stored, crew.readLogs(), crew.killed);
  view.end(summary(counted, killedAt));
  const asPromised =
    counted.lost.length === 0 && counted.doneTwice.length === 0 && counted.takenOver.length > 0;
  process.exitCode = asPromised ? 0 : 1;
} catch (error) {
  view.end([]);
  console.error(error, crew.complaints());
  process.exitCode = 1;
} finally {
  watching.abort();
  await watched;
  await hf.close();
}

/** The story, to the end of every job. Resolves with the instant of the kill. */
async function tellStory(): Promise<number> {
  view.say("Starting two worker processes on one SQLite file …");
  await Promise.all([crew.start("worker-1"), crew.start("worker-2")]);

  view.say("Enqueuing a long video job, an export, 40 mails in one transaction, 4 payments …", "loud");
  const video = await ledger.enqueue(jobs.transcodeVideo, { file: "holiday.mov", seconds: transcodeSeconds });
  const dataExport = await ledger.enqueue(jobs.exportData, { table: "events" });
  await ledger.enqueueMails(40);
  for (const order of [1, 2, 3, 4])
    await ledger.enqueue(jobs.chargeCard, { order, failures: 1 + (order % 2) });
  await sleep(500);

  view.say("… 3 broken uploads, 3 reminders due in 4 s, one account sync asked for 5 times …", "loud");
  for (const file of ["a.csv", "b.csv"]) await ledger.enqueue(jobs.parseUpload, { file, hopeless: false });
  await ledger.enqueue(jobs.parseUpload, { file: "c.exe", hopeless: true });
  for (const to of ["ada", "grace", "linus"]) await ledger.enqueue(jobs.sendReminder, { to }, 4_000);
  for (let i = 0; i < 5; i++) await ledger.enqueue(jobs.syncAccount, { account: "acme" });
  view.say(`duplicates suppressed: ${ledger.duplicates}`);
  await sleep(500);

  view.say("… a backlog of 30 index rebuilds, and behind it 3 urgent password resets …", "loud");
  for (let shard = 1; shard <= 30; shard++) await ledger.enqueue(jobs.rebuildIndex, { shard });
  for (const user of ["ada", "grace", "linus"]) await ledger.enqueue(jobs.resetPassword, { user });
  await sleep(400);

  view.say("… and cancelling: 3 reminders before they are due, the export while it runs.", "loud");
  for (const to of ["x", "y", "z"]) {
    const reminder = await ledger.enqueue(jobs.sendReminder, { to }, 60_000);
    view.say(`${ledger.labelOf(reminder)}: ${await hf.jobs.cancel(reminder)}`);
  }
  view.say(`${ledger.labelOf(dataExport)}: ${await hf.jobs.cancel(dataExport)}`);
  await sleep(1_500);

  const killedAt = await killHolderOf(video);
  await crew.start("worker-3");
  view.say("worker-3 takes its place, and work goes on meanwhile.", "good");
  await goOnUntilAllHasEnded(video);
  return killedAt;
}

/** Kills the worker that runs the job, at a moment at which it holds no other one. */
async function killHolderOf(id: string): Promise<number> {
  const patience = Date.now() + 1_000;
  let paused = false;
  for (;;) {
    const holder = (await hf.workers.list()).find((worker) => worker.jobs.includes(id));
    if (holder === undefined) throw new Error("the long job ended before its worker could be killed");
    // Alone: another handler might have had its effect without having been able to settle. It would run again,
    // as at-least-once says, and this demo could not tell that from a fault.
    if (holder.jobs.length === 1) {
      crew.kill(holder.name);
      const killedAt = Date.now();
      if (paused) await hf.queues.resume("default");
      const progress = (await hf.jobs.get(id))?.progress;
      const where = `${String(progress)} % into ${ledger.labelOf(id)}`;
      view.say(`SIGKILL to ${holder.name} (pid ${holder.pid}), ${where}.`, "bad");
      view.say(`Its lease has at most ${jobs.lease.lease} left. Then the job is anybody's.`, "bad");
      return killedAt;
    }
    // On a slow machine there may be no such moment by itself.
    if (!paused && Date.now() > patience) {
      paused = true;
      await hf.queues.pause("default");
    }
    await sleep(10);
  }
}

/** New mails come in until the long job has ended; then everything else may end too. */
async function goOnUntilAllHasEnded(video: string): Promise<void> {
  const until = Date.now() + giveUpAfterMs;
  while ((await hf.jobs.get(video))?.endedAt === null && Date.now() < until) {
    await ledger.enqueueMails(4);
    await sleep(400);
  }
  while (Date.now() < until) {
    const { totals } = await hf.stats();
    if (totals.scheduled + totals.ready + totals.running + totals.waiting === 0) return;
    await sleep(50);
  }
}

/** Shows where everything stands, several times a second, and tells what the workers' logs say. */
async function watch(signal: AbortSignal): Promise<void> {
  for (let last = false; !last;) {
    last = signal.aborted;
    const [{ totals }, alive, running] = await Promise.all([
      hf.stats(),
      hf.workers.list(),
      hf.jobs.list({ state: "running", limit: 50 }),
    ]);
    for (const entry of crew.newEntries()) {
      const line = lineFor(entry);
      if (line !== null) view.say(`${entry.worker}  ${line.text}`, line.tone);
    }
    const workers = crew.workers.map(({ name, pid, killed }) => {
      const held = new Set(alive.find((worker) => worker.name === name)?.jobs);
      return { name, pid, runs: killed ? null : inWords(running.jobs.filter(({ id }) => held.has(id))) };
    });
    view.show({ counts: totals, workers, accepted: ledger.accepted.length });
    if (!last) await sleep(100, undefined, { signal }).catch(() => undefined);
  }
}

function inWords(running: readonly { name: string; progress: unknown }[]): string {
  const counts = new Map<string, number>();
  for (const { name, progress } of running) {
    const what = typeof progress === "number" ? `${name} ${progress} %` : name;
    counts.set(what, (counts.get(what) ?? 0) + 1);
  }
  return [...counts].map(([what, n]) => (n === 1 ? what : `${what} ×${n}`)).join(", ");
}

/** What is worth a line; plain jobs that simply run are only counted. */
function lineFor({ event, id, name, note }: jobs.LogEntry): { text: string; tone: Tone } | null {
  const label = ledger.labelOf(id);
  const routine = name === jobs.sendMail.name || name === jobs.rebuildIndex.name;
  switch (event) {
    case "started":
      return name === jobs.transcodeVideo.name ? { text: `${label}: started`, tone: "plain" } : null;
    case "done":
      return routine ? null : { text: `${label}: done`, tone: "good" };
    case "failed":
      return { text: `${label}: failed (${note})`, tone: "plain" };
    case "dead":
      return { text: `${label}: dead (${note})`, tone: "bad" };
    case "cancelled":
      return { text: `${label}: stopped, because it was cancelled`, tone: "plain" };
    case "crashed":
      return { text: `${label}: its worker is dead, taken over`, tone: "loud" };
    case "effect":
      return null;
  }
}

function summary(counted: Tally, killedAt: number): SummaryLine[] {
  const log = crew.readLogs();
  const takeovers = counted.takenOver.map(({ id, label }) => {
    const again = log.find((entry) => entry.id === id && entry.event === "started" && entry.at > killedAt);
    if (again === undefined) return label;
    return `${label}, by ${again.worker}, ${((again.at - killedAt) / 1_000).toFixed(1)} s after the kill`;
  });
  const workers = [...counted.byWorker].map(([worker, n]) => `${worker} ${n}`);
  const kinds = `${counted.retried} after retries, ${counted.delayed} delayed, ${counted.overtook} urgent ones first`;
  const seconds = ((performance.now() - startedAt) / 1_000).toFixed(1);
  const mustBeNone = (name: string, found: readonly Accepted[]): SummaryLine =>
    row(name, found.length, found.map(({ label }) => label).join(", "), found.length === 0 ? "good" : "bad");
  return [
    { text: `Counted from the store and from the workers' own logs, after ${seconds} s:`, tone: "loud" },
    { text: "", tone: "plain" },
    row("accepted", counted.accepted, `and ${ledger.duplicates} duplicates suppressed`),
    row("done", counted.done, workers.join(", ")),
    row("", null, kinds),
    row("dead", counted.dead),
    row("cancelled", counted.cancelled),
    mustBeNone("lost", counted.lost),
    mustBeNone("done twice", counted.doneTwice),
    mustBeNone("too early", counted.early),
    row("taken over", counted.takenOver.length, takeovers.join("; "), "good"),
  ];
}

function row(name: string, n: number | null, note = "", tone: Tone = "plain"): SummaryLine {
  return { text: `${name.padEnd(12)}${String(n ?? "").padStart(5)}   ${note}`.trimEnd(), tone };
}
