/**
 * `holdfast demo`: two worker processes on a new file, one of them killed in the middle; then the jobs are counted.
 *
 * With `--dashboard`, an example shop for the browser instead. Exits with 0 if every accepted job has ended, which is the promise.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sleep, systemClock } from "../../clock.ts";
import { defineJob, Dead, fixed, type Holdfast, open, silentLogger } from "../../index.ts";
import type { Command } from "../command.ts";
import type { Context } from "../command-context.ts";
import { aborted } from "../io.ts";
import { openShop } from "./demo-shop.ts";
import { bar, grouped } from "../text.ts";

const resize = defineJob({
  name: "resize-image",
  run: async (input: { n: number }, ctx) => {
    await sleep(systemClock, 20 + (input.n % 30), ctx.signal);
    return { width: 640 };
  },
});
const mail = defineJob({
  name: "send-mail",
  retry: { attempts: 4, backoff: fixed("200ms") },
  run: async (input: { n: number }, ctx) => {
    await sleep(systemClock, 10, ctx.signal);
    if (input.n % 5 === 0 && ctx.attempt < 3) throw new Error("421 try again later");
    if (input.n % 97 === 0) throw new Dead("550 no such mailbox");
  },
});
const definitions = [resize, mail];

export const demo: Command = {
  name: "demo",
  summary: "run two workers on one file, kill one, and count the jobs",
  maxArgs: 2,
  options: {
    jobs: { type: "string", value: "n", help: "Number of jobs; default 400" },
    dashboard: { type: "boolean", help: "Run an example shop with problems to fix, in the browser" },
    port: { type: "string", value: "n", help: "With --dashboard: default 8787, 0 for any" },
  },
  details: "Uses a new SQLite file in the temporary folder, and removes it at the end.",
  json: "{ accepted, done, dead, crashes, lost, ok }; with --dashboard { url, address, database } once it listens",
  examples: [
    { line: "demo", says: "Kill a worker in the middle of its jobs" },
    {
      line: "demo --dashboard",
      says: "1,000 dead jobs, a paused queue, jobs without a worker",
    },
  ],
  run: async (ctx) => {
    if (ctx.args[0] === "worker") return worker(ctx.args[1] as string);
    const folder = mkdtempSync(join(tmpdir(), "holdfast-demo-"));
    try {
      const url = `sqlite:${join(folder, "jobs.db")}`;
      return ctx.flag("dashboard") ? await shop(ctx, url) : await story(ctx, url);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
};

/** The shop and its dashboard, until Ctrl-C. */
async function shop(ctx: Context, url: string): Promise<number> {
  const { serve } = await import("../../dashboard/index.ts");
  const hf = await open(url, { logger: silentLogger, metrics: true });
  const shopping = await openShop(hf);
  try {
    const port = ctx.integer("port");
    const server = await serve(hf, { label: "demo", ...(port === undefined ? {} : { port }) });
    ctx.result({ url: server.url, address: server.address, database: url }, () =>
      [
        `Dashboard: ${server.address}`,
        `Terminal:  npx holdfast top --url ${url}`,
        "",
        "Things to try:",
        "- Find out why the jobs of the queue media do not run.",
        "- Retry the 1,000 dead jobs of the queue billing. The bank opens 10 s after the start; earlier retries fail.",
        "- Resume the queue reports.",
        "- Send the signal packed to the waiting order.",
        "Press Ctrl-C to end the demo.",
      ].join("\n"),
    );
    await aborted(ctx.io.signal);
    await server.close();
    return 0;
  } finally {
    await shopping.stop();
    await hf.close();
  }
}

/** The child: a worker with a short lease, so that the takeover comes soon. */
async function worker(url: string): Promise<number> {
  const hf = await open(url, { logger: silentLogger });
  const running = hf.work(definitions, {
    queues: { default: 4 },
    lease: "3s",
    heartbeat: "1s",
    signals: true,
  });
  await running.stopped;
  return 0;
}

async function story(ctx: Context, url: string): Promise<number> {
  const total = Math.max(10, ctx.integer("jobs") ?? 400);
  const hf = await open(url, { logger: silentLogger });
  const main = process.argv[1] as string;
  const start = (): ChildProcess =>
    spawn(process.execPath, [...process.execArgv, main, "demo", "worker", url], { stdio: "ignore" });
  const crew = [start(), start()];
  try {
    const items = Array.from({ length: total }, (_, n) => ({
      job: n % 2 === 0 ? resize : mail,
      input: { n },
    }));
    const accepted = (await hf.enqueueMany(items)).map(({ id }) => id);
    ctx.note(`${grouped(total)} jobs are enqueued; two workers start`);
    await until(ctx, hf, total, (ended) => ended > total / 3);
    crew[0]?.kill("SIGKILL");
    ctx.note(
      ctx.paintError("warn", "one worker was killed with SIGKILL in the middle of its jobs; a third starts"),
    );
    crew.push(start());
    await until(ctx, hf, total, (ended) => ended >= total);
    const counts = await tally(hf, accepted);
    ctx.result(counts, () =>
      [
        `accepted ${grouped(counts.accepted)}, done ${grouped(counts.done)}, dead ${grouped(counts.dead)} (on purpose), lost ${grouped(counts.lost)}`,
        `${grouped(counts.crashes)} jobs of the killed worker ran again`,
        counts.ok
          ? ctx.paint("good", "Every accepted job has one recorded end.")
          : ctx.paint("bad", "Jobs were lost."),
      ].join("\n"),
    );
    return counts.ok ? 0 : 1;
  } finally {
    await hf.workers.stop("all").catch(() => 0);
    await Promise.all(crew.map(gone));
    await hf.close();
  }
}

async function until(
  ctx: Context,
  hf: Holdfast,
  total: number,
  over: (ended: number) => boolean,
): Promise<void> {
  const { stderr } = ctx.io;
  const deadline = Date.now() + 120_000;
  for (;;) {
    const ended = await hf.jobs.count({ state: ["done", "dead", "cancelled"] });
    if (stderr.isTTY && !ctx.json)
      ctx.draw(stderr, `\r${bar(ended / total, 40)} ${grouped(ended)} of ${grouped(total)}`);
    if (over(ended) || ctx.io.signal.aborted || Date.now() > deadline) break;
    await sleep(systemClock, 100);
  }
  if (stderr.isTTY && !ctx.json) ctx.draw(stderr, "\r\u001b[2K");
}

interface Tally {
  readonly accepted: number;
  readonly done: number;
  readonly dead: number;
  readonly crashes: number;
  readonly lost: number;
  readonly ok: boolean;
}

async function tally(hf: Holdfast, accepted: readonly string[]): Promise<Tally> {
  let [done, dead, crashes] = [0, 0, 0];
  for (let i = 0; i < accepted.length; i += 500) {
    const { jobs } = await hf.jobs.list({ ids: accepted.slice(i, i + 500), limit: 500 });
    for (const job of jobs) {
      if (job.state === "done") done += 1;
      if (job.state === "dead") dead += 1;
      if (job.crashes > 0) crashes += 1;
    }
  }
  const lost = accepted.length - done - dead;
  return { accepted: accepted.length, done, dead, crashes, lost, ok: lost === 0 };
}

function gone(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => {
    const timer = setTimeout(() => child.kill("SIGKILL"), 10_000);
    child.once("exit", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
