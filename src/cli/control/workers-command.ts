/** `holdfast workers`: who works; quieting, resuming and stopping them from afar, and asking whether they are gone. */
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
      { title: "kinds", align: "right", spare: 3, cell: ({ names }) => names.length },
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
  summary: "live workers of all processes",
  json: "An array of workers",
  examples: [{ line: "workers list", says: "Who is alive, and what they run" }],
  run: async (ctx) => {
    const workers = await (await ctx.client()).workers.list();
    ctx.result(workers, () =>
      workers.length === 0 ? "No worker is alive." : workerTable(ctx, workers, Date.now()),
    );
  },
};

const duties: Command = {
  name: "duties",
  summary: "who did each duty last",
  details: "One worker does them for all, whoever asks first: there is no leader.",
  json: "An array of { name, by, doneAt, nextAt }",
  examples: [{ line: "workers duties", says: "Who prunes, who looks after the dead" }],
  run: async (ctx) => {
    const found = await (await ctx.client()).workers.duties();
    const now = Date.now();
    ctx.result(found, () =>
      found.length === 0
        ? "No duty was done yet."
        : table(
            [
              { title: "duty", cell: ({ name }) => name },
              { title: "done", cell: ({ doneAt }) => relative(doneAt, now) },
              { title: "next from", cell: ({ nextAt }) => relative(nextAt, now) },
              { title: "by", cell: ({ by }) => by ?? "–" },
            ],
            found,
          ),
    );
  },
};

const quiet: Command = {
  name: "quiet",
  summary: "let workers claim nothing until they are resumed",
  args: "<id | name | all>",
  maxArgs: 1,
  details:
    "They give back what they have not started, finish what they run, and stay alive: workers resume lets them go on.",
  json: "{ asked }",
  examples: [{ line: "workers quiet crawler-1", says: "No new jobs for this one" }],
  run: (ctx) => steer(ctx, "quiet"),
};

const resume: Command = {
  name: "resume",
  summary: "let quiet workers claim again",
  args: "<id | name | all>",
  maxArgs: 1,
  json: "{ asked }",
  examples: [{ line: "workers resume all", says: "Everybody goes on" }],
  run: (ctx) => steer(ctx, "resume"),
};

async function steer(ctx: Context, verb: "quiet" | "resume"): Promise<number> {
  const which = ctx.argument(0, 'a worker\'s id or name, or "all"');
  const hf = await ctx.client();
  const asked = await acting(ctx, hf, await onWorkers(hf, verb, which), () => hf.workers[verb](which));
  ctx.result({ asked }, () => (asked === 0 ? `No worker ${oneLine(which)} is alive.` : `Asked ${asked}.`));
  return asked === 0 && which !== "all" ? 1 : 0;
}

/** A line for each worker that it is about, as the dashboard writes it. */
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
      help: "Wait so long until they are gone; exit code 1 if they are not",
    },
  },
  details: "They finish what they run, as at any shutdown, and end their process with 0.",
  json: "{ asked, drained }",
  examples: [{ line: "workers stop all --wait 1m", says: "Before a migration" }],
  run: async (ctx) => {
    const which = ctx.argument(0, 'a worker\'s id or name, or "all"');
    const hf = await ctx.client();
    const asked = await acting(ctx, hf, await onWorkers(hf, "stop", which), () => hf.workers.stop(which));
    const wait = ctx.string("wait");
    if (wait === undefined) {
      ctx.result({ asked }, () =>
        asked === 0 ? `No worker ${oneLine(which)} is alive.` : `Asked ${asked}.`,
      );
      return asked === 0 && which !== "all" ? 1 : 0;
    }
    const until = Date.now() + durationMs(wait, "--wait");
    let drained = await hf.workers.drained(which);
    while (!drained && Date.now() < until && !ctx.io.signal.aborted) {
      await sleep(systemClock, 100);
      drained = await hf.workers.drained(which);
    }
    ctx.result({ asked, drained }, () =>
      drained ? `Asked ${asked}; all are gone.` : `Asked ${asked}; some still work.`,
    );
    return drained ? 0 : 1;
  },
};

const drained: Command = {
  name: "drained",
  summary: "whether no such worker is left",
  args: "[<id | name | all>]",
  maxArgs: 1,
  details: "Exit code 0 when none is left, 1 while there are.",
  json: "{ drained: boolean }",
  examples: [{ line: "workers drained && deploy", says: "Only when nobody works" }],
  run: async (ctx) => {
    const gone = await (await ctx.client()).workers.drained(ctx.args[0] ?? "all");
    ctx.result({ drained: gone }, () => (gone ? "Nobody works." : "Some still work."));
    return gone ? 0 : 1;
  },
};

export const workers: Command = {
  name: "workers",
  summary: "list, duties, quiet, resume, stop, drained",
  subcommands: [list, duties, quiet, resume, stop, drained],
  fallback: "list",
};
