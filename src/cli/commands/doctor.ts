/** `holdfast doctor`: looks at everything that is known to go wrong, and says what to do. */
import type { Holdfast, JobPage } from "../../index.ts";
import { MOVED_TO } from "../../move.ts";
import { durationMs } from "../../policy/duration.ts";
import type { Command } from "../command.ts";
import type { Context } from "../context.ts";
import { type Check, diagnose, type Facts } from "../diagnosis.ts";
import { oneLine } from "../text.ts";

/** A lease, and the seconds that taking over may need. */
const takeoverMs = durationMs("35s", "takeover");

export const doctor: Command = {
  name: "doctor",
  summary: "check versions, schema, clocks, indexes, bloat, leases, queues",
  details: "Exit code 0 when nothing is wrong, 1 when something is. It changes nothing.",
  json: "{ ok, place, checks: [{ name, verdict, text, remedy }] }",
  examples: [
    {
      line: "doctor --json | jq '.checks[] | select(.verdict == \"wrong\")'",
      says: "What is wrong, for a monitor",
    },
  ],
  run: async (ctx) => {
    const target = await ctx.target();
    await ctx.mustExist();
    const checks = diagnose(await facts(ctx));
    const good = checks.every(({ verdict }) => verdict !== "wrong");
    ctx.result({ ok: good, place: target.place, checks }, () => text(ctx, target.place, checks));
    return good ? 0 : 1;
  },
};

async function facts(ctx: Context): Promise<Facts> {
  const admin = await ctx.admin();
  const { applied, pending } = await admin.status();
  const base = {
    node: process.version,
    applied,
    pending: pending.map(({ version }) => version),
    now: Date.now(),
  };
  if (applied.length === 0 || pending.length > 0)
    return {
      ...base,
      drift: [],
      movedTo: null,
      clock: null,
      inspection: null,
      queues: [],
      workers: [],
      stuck: 0,
    };
  const hf = await ctx.client();
  const [inspection, queues, workers] = await Promise.all([
    hf.inspect(),
    hf.queues.list(),
    hf.workers.list(),
  ]);
  return {
    ...base,
    drift: await admin.drift(),
    movedTo: await admin.meta(MOVED_TO),
    clock: await clock(hf),
    inspection,
    queues,
    workers,
    stuck: await stuck(hf),
  };
}

async function clock(hf: Holdfast): Promise<Facts["clock"]> {
  await hf.databaseNow(); // the first call may open a connection
  const before = Date.now();
  const theirs = await hf.databaseNow();
  const after = Date.now();
  return { skewMs: (before + after) / 2 - theirs, roundTripMs: after - before };
}

/** Running jobs whose lease passed longer ago than taking over needs. A page of a thousand says enough. */
async function stuck(hf: Holdfast): Promise<number> {
  const now = await hf.databaseNow();
  let count = 0;
  let cursor: string | null = null;
  for (let pages = 0; pages < 10; pages += 1) {
    const page: JobPage = await hf.jobs.list({ state: "running", limit: 1_000, cursor });
    count += page.jobs.filter(
      ({ leaseUntil }) => leaseUntil === null || leaseUntil.getTime() < now - takeoverMs,
    ).length;
    ({ cursor } = page);
    if (cursor === null) break;
  }
  return count;
}

function text(ctx: Context, place: string, checks: readonly Check[]): string {
  const marks = {
    ok: ctx.paint("good", "ok   "),
    wrong: ctx.paint("bad", "WRONG"),
    note: ctx.paint("warn", "note "),
    unknown: ctx.paint("dim", "?    "),
  };
  const left = Math.max(...checks.map(({ name }) => name.length));
  const lines = [`${ctx.paint("bold", "holdfast doctor")}  ${oneLine(place)}`, ""];
  for (const { name, verdict, text: said, remedy } of checks) {
    lines.push(`${marks[verdict]}  ${name.padEnd(left)}  ${oneLine(said)}`);
    if (remedy !== null)
      lines.push(`       ${" ".repeat(left)}  ${ctx.paint("accent", `→ ${oneLine(remedy)}`)}`);
  }
  const bad = checks.filter(({ verdict }) => verdict === "wrong").length;
  lines.push(
    "",
    bad === 0
      ? ctx.paint("good", "Nothing is wrong.")
      : ctx.paint("bad", `${bad} ${bad === 1 ? "thing is" : "things are"} wrong.`),
  );
  return lines.join("\n");
}
