/** `holdfast workers`: lists, quiets, resumes and stops the workers of all processes. */
import { durationMs } from "../../values/duration.ts";
import { sleep, systemClock } from "../../clock.ts";
import type { Command } from "../command.ts";
import { type Act, acting } from "../audit-record.ts";
import type { Context } from "../command-context.ts";
import type { Holdfast, WorkerState } from "../../index.ts";
import { oneLine, relative, table } from "../text.ts";

export function workerTable(
  ctx: Pick<Context, "paint">,
  workers: readonly WorkerState[],
  now: number,
  width?: number,
): string {
  return table(
    [
      {
        title: "name",
        cell: ({ name, stopping, quietAt }) =>
          `${oneLine(name, 30)}${width === undefined ? "" : stopping ? " (stopping)" : quietAt === null ? "" : " (quiet)"}`,
      },
      { title: "host", spare: 1, cell: ({ host }) => host, most: 24 },
      { title: "pid", align: "right", spare: 2, cell: ({ pid }) => String(pid) },
      {
        title: "queues",
        cell: (worker) =>
          Object.entries(worker.queues)
            .map(([q, n]) => `${q}=${n}`)
            .join(" "),
        most: 44,
      },
      { title: "handlers", align: "right", spare: 3, cell: ({ names }) => names.length },
      { title: "jobs", align: "right", cell: ({ jobs }) => jobs.length },
      {
        title: "up",
        align: "right",
        spare: 5,
        cell: ({ startedAt }) => relative(startedAt, now).replace(" ago", ""),
      },
      { title: "beat", align: "right", cell: ({ beatAt }) => relative(beatAt, now) },
      {
        title: "id",
        spare: 4,
        cell: ({ id, stopping, quietAt, kind }) =>
          `${id}${kind === "lease" ? " (lease)" : ""}${stopping ? " stopping" : quietAt === null ? "" : " quiet"}`,
      },
    ],
    workers,
    (text, _column, worker) =>
      ctx.paint(worker === null || worker.stopping || worker.quietAt !== null ? "dim" : "accent", text),
    width,
  );
}

const list: Command = {
  name: "list",
  summary: "list live workers of all processes",
  json: "An array of workers",
  examples: [{ line: "workers list", says: "Live workers and their jobs" }],
  run: async (ctx) => {
    const workers = await (await ctx.client()).workers.list();
    ctx.result(workers, () =>
      workers.length === 0 ? "There are no live workers." : workerTable(ctx, workers, Date.now()),
    );
  },
};

const upkeep: Command = {
  name: "upkeep",
  summary: "list upkeep tasks with their last and next run",
  details: "Any worker runs a due task for all. There is no leader.",
  json: "An array of { name, by, doneAt, nextAt }",
  examples: [{ line: "workers upkeep", says: "Tasks such as retention and takeover, with their workers" }],
  run: async (ctx) => {
    const found = await (await ctx.client()).workers.upkeep();
    const now = Date.now();
    ctx.result(found, () =>
      found.length === 0
        ? "No upkeep task has run yet."
        : table(
            [
              { title: "task", cell: ({ name }) => name },
              { title: "last run", cell: ({ doneAt }) => relative(doneAt, now) },
              { title: "next run", cell: ({ nextAt }) => relative(nextAt, now) },
              { title: "by", cell: ({ by }) => by ?? "–" },
            ],
            found,
          ),
    );
  },
};

const quiet: Command = {
  name: "quiet",
  summary: "make workers quiet: they claim nothing until resumed",
  args: "<id | name | all>",
  maxArgs: 1,
  details: "Quiet workers release jobs that they have not started, finish running jobs, and stay alive.",
  json: "{ asked }",
  examples: [{ line: "workers quiet crawler-1", says: "No new jobs for this worker" }],
  run: (ctx) => steer(ctx, "quiet"),
};

const resume: Command = {
  name: "resume",
  summary: "resume quiet workers",
  args: "<id | name | all>",
  maxArgs: 1,
  json: "{ asked }",
  examples: [{ line: "workers resume all", says: "All quiet workers" }],
  run: (ctx) => steer(ctx, "resume"),
};

async function steer(ctx: Context, verb: "quiet" | "resume"): Promise<number> {
  const which = ctx.argument(0, 'a worker\'s id or name, or "all"');
  const hf = await ctx.client();
  const asked = await acting(ctx, hf, await onWorkers(hf, verb, which), () => hf.workers[verb](which));
  ctx.result({ asked }, () => askedText(asked, which));
  return asked === 0 && which !== "all" ? 1 : 0;
}

function askedText(asked: number, which: string): string {
  if (asked > 0) return `Asked ${asked}.`;
  return which === "all" ? "There are no live workers." : `There is no live worker ${oneLine(which)}.`;
}

/** One entry of the audit trail for each worker, as the dashboard writes it. */
async function onWorkers(
  hf: Holdfast,
  verb: "quiet" | "resume" | "stop",
  which: string,
): Promise<Act<number>> {
  const live = (await hf.workers.list()).filter(({ kind }) => kind === "worker");
  const meant = live.filter(({ id, name }) => which === "all" || id === which || name === which);
  const outcome = { quiet: "quiet", resume: "resumed", stop: "asked" }[verb];
  return { action: `workers.${verb}`, target: meant.map(({ id }) => id), outcome };
}

const stop: Command = {
  name: "stop",
  summary: "ask workers to stop",
  args: "<id | name | all>",
  maxArgs: 1,
  options: {
    wait: {
      type: "string",
      value: "duration",
      help: "Wait up to this long; exit code 1 if workers remain",
    },
  },
  details: "Workers finish their running jobs, as at any shutdown. `holdfast work` then exits with 0.",
  json: "{ asked, drained }",
  examples: [{ line: "workers stop all --wait 1m", says: "Before a migration" }],
  run: async (ctx) => {
    const which = ctx.argument(0, 'a worker\'s id or name, or "all"');
    const hf = await ctx.client();
    const asked = await acting(ctx, hf, await onWorkers(hf, "stop", which), () => hf.workers.stop(which));
    const wait = ctx.string("wait");
    if (wait === undefined) {
      ctx.result({ asked }, () => askedText(asked, which));
      return asked === 0 && which !== "all" ? 1 : 0;
    }
    const until = Date.now() + durationMs(wait, "--wait");
    let drained = await hf.workers.drained(which);
    while (!drained && Date.now() < until && !ctx.io.signal.aborted) {
      await sleep(systemClock, 100);
      drained = await hf.workers.drained(which);
    }
    ctx.result({ asked, drained }, () =>
      drained ? `Asked ${asked}; all have stopped.` : `Asked ${asked}; some still run.`,
    );
    return drained ? 0 : 1;
  },
};

const drained: Command = {
  name: "drained",
  summary: "check that no worker is left",
  args: "[<id | name | all>]",
  maxArgs: 1,
  details: "Exit code 1 while a worker is left.",
  json: "{ drained: boolean }",
  examples: [{ line: "workers drained && deploy", says: "Deploy only without workers" }],
  run: async (ctx) => {
    const gone = await (await ctx.client()).workers.drained(ctx.args[0] ?? "all");
    ctx.result({ drained: gone }, () => (gone ? "No worker is left." : "Workers still run."));
    return gone ? 0 : 1;
  },
};

export const workers: Command = {
  name: "workers",
  summary: "list, upkeep, quiet, resume, stop, drained",
  subcommands: [list, upkeep, quiet, resume, stop, drained],
  fallback: "list",
};
