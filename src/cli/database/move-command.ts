/** `holdfast move`: moves everything to another database. Not here: the copy and its order (operate/move.ts). */
import { sleep, systemClock } from "../../clock.ts";
import { StateError, UsageError } from "../../errors.ts";
import { type Holdfast, type JobState, open, silentLogger } from "../../index.ts";
import { abortMove, move as moveAll, placeOf } from "../../operate/move.ts";
import { durationMs } from "../../values/duration.ts";
import { type Admin, MOVED_TO, withoutSecrets } from "../../operate/index.ts";
import { record } from "../audit-record.ts";
import type { Command } from "../command.ts";
import type { Context } from "../command-context.ts";
import { grouped, table } from "../text.ts";

const states: readonly JobState[] = ["scheduled", "ready", "running", "waiting", "done", "dead", "cancelled"];

export const move: Command = {
  name: "move",
  summary: "move everything to another database: SQLite to Postgres, or back",
  args: "<target url>",
  maxArgs: 1,
  options: {
    "to-schema": {
      type: "string",
      value: "name",
      help: "Schema (or prefix) at the target; default the same",
    },
    wait: {
      type: "string",
      value: "duration",
      help: "How long to wait for the source's workers to stop; default 1m",
    },
    force: {
      type: "boolean",
      short: "f",
      help: "Do not ask, and do not wait for workers that do not stop; their jobs are taken over at the target when their leases expire",
    },
    batch: { type: "string", value: "n", help: "Rows per transaction; default 500" },
    abort: { type: "boolean", help: "Abort an unfinished move; the source takes writes again" },
  },
  details:
    "Asks the source's workers to stop and waits for them. The source then refuses writes, every table is copied, and every row is compared. Jobs of all states keep their ids, keys, steps and history. Workers at the target start after the comparison. To continue an interrupted move, run the command again. The source stays read-only and names the new database.",
  json: "{ from, to, tables, states, resumed }",
  examples: [
    { line: "move postgres://localhost/app --url sqlite:jobs.db", says: "From one file to Postgres" },
    { line: "move sqlite:copy.db --url postgres://localhost/app --force", says: "And back, in a script" },
    {
      line: "move postgres://localhost/app --url sqlite:jobs.db --abort",
      says: "Abort an unfinished move",
    },
  ],
  run: async (ctx) => {
    const source = await ctx.target();
    const url = ctx.argument(0, "the address of the target");
    ctx.hide(url);
    const schema = ctx.string("to-schema") ?? source.schema;
    const dialect = url.startsWith("postgres") ? "postgres" : "sqlite";
    const place = placeOf({ dialect, place: withoutSecrets(url), schema }, source);
    await ctx.mustExist();
    const from = await ctx.admin();
    const old = placeOf({ ...source, dialect: from.dialect }, { schema });
    if (ctx.flag("abort")) {
      await abortMove(from);
      ctx.result(
        { aborted: true, from: source.place },
        () =>
          `${source.place} takes writes again. ${place} has a partial copy; delete it with: holdfast drop --force --url …`,
      );
      return 0;
    }
    await mustBeMigrated(from, source.place);
    if (!(await ctx.confirm(`Move all jobs of ${old} to ${place}? ${old} will refuse writes.`))) return 1;
    // Opening makes the target's tables, and nothing else.
    const target = await open(url, { schema, migrate: true, logger: silentLogger });
    await target.close();
    const to = await ctx.admin(url, schema);
    if ((await from.meta(MOVED_TO)) === null && (await from.meta("move.to")) === null)
      await stopWorkers(ctx, source);
    const counted = await countStates(source.url, source.schema);
    const copying = ctx.progress("copy");
    const comparing = ctx.progress("compare");
    const batch = ctx.integer("batch");
    if (batch !== undefined && batch < 1)
      throw new UsageError("BAD_OPTION", "--batch takes a number above 0.");
    const report = await moveAll(from, to, {
      ...(batch === undefined ? {} : { batch }),
      onProgress: ({ phase, rows, total }) => (phase === "copy" ? copying : comparing)(rows, total),
    });
    const arrived = await countStates(url, schema, (hf) =>
      // Recorded at the target, because the source refuses writes.
      record(ctx, hf, { action: "database.move", target: source.place, outcome: "moved here" }),
    );
    ctx.result(
      { ...report, states: states.map((state) => ({ state, from: counted[state], to: arrived[state] })) },
      () =>
        [
          table(
            [
              { title: "state", cell: (state: JobState) => state },
              { title: old, align: "right", cell: (state) => counted[state] ?? 0 },
              { title: place, align: "right", cell: (state) => arrived[state] ?? 0 },
            ],
            states,
          ),
          "",
          `${grouped(report.tables.reduce((sum, { rows }) => sum + rows, 0))} rows of ${report.tables.length} tables are at ${place}${report.resumed ? " (continued an earlier run)" : ""}. All rows were compared.`,
          `${old} now refuses writes. Start your processes with the new address${schema === source.schema ? "" : ` and the schema ${schema}`}.`,
        ].join("\n"),
    );
    return 0;
  },
};

async function mustBeMigrated(admin: Admin, place: string): Promise<void> {
  const { applied, pending } = await admin.status();
  if (applied.length > 0 && pending.length === 0) return;
  throw new StateError("MOVE_REFUSED", `The schema of ${place} is not up to date. Run: holdfast migrate`);
}

async function stopWorkers(
  ctx: Context,
  source: { url: string; schema: string; place: string },
): Promise<void> {
  const hf = await open(source.url, { schema: source.schema, migrate: "check", logger: silentLogger });
  try {
    const asked = await hf.workers.stop("all");
    if (asked === 0) return;
    ctx.note(asked === 1 ? "asked 1 worker to stop; waiting" : `asked ${asked} workers to stop; waiting`);
    const until = Date.now() + durationMs(ctx.string("wait") ?? "1m", "--wait");
    while (!(await hf.workers.drained())) {
      if (Date.now() > until || ctx.io.signal.aborted) {
        if (ctx.flag("force")) return;
        throw new StateError(
          "MOVE_REFUSED",
          `Workers of ${source.place} still run. Stop them and repeat the command, or use --force: their jobs then run again at the target.`,
        );
      }
      await sleep(systemClock, 200);
    }
  } finally {
    await hf.close();
  }
}

/** By reads alone: the source may be frozen. */
async function countStates(
  url: string,
  schema: string,
  then: (hf: Holdfast) => Promise<void> = () => Promise.resolve(),
): Promise<Partial<Record<JobState, number>>> {
  const hf = await open(url, { schema, migrate: "check", logger: silentLogger });
  try {
    const counts: Partial<Record<JobState, number>> = {};
    for (const state of states) counts[state] = await hf.jobs.count({ state });
    await then(hf);
    return counts;
  } finally {
    await hf.close();
  }
}
