/** `holdfast doctor`: checks for known problems and names their remedies. */
import { type Check, diagnose, type Facts } from "../../operate/doctor/diagnosis.ts";
import { isHoldfastError } from "../../errors.ts";
import { findings, noFacts } from "../../operate/doctor/findings.ts";
import { MOVED_TO } from "../../operate/index.ts";
import type { Command } from "../command.ts";
import type { Context } from "../command-context.ts";
import { oneLine } from "../text.ts";

export const doctor: Command = {
  name: "doctor",
  summary: "check versions, schema, clocks, indexes, bloat, leases, queues",
  details: "Exit code 1 if a check fails. Changes nothing.",
  json: "{ ok, place, checks: [{ name, verdict, text, remedy }] }",
  examples: [
    {
      line: "doctor --json | jq '.checks[] | select(.verdict == \"wrong\")'",
      says: "Failed checks, for a monitor",
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

/** Versions that the client refuses to work with. */
const refusals = ["POSTGRES_TOO_OLD", "SQLITE_TOO_OLD"];

async function facts(ctx: Context): Promise<Facts> {
  const refused = await ctx.client().then(
    () => null,
    (error: unknown) => {
      if (isHoldfastError(error) && refusals.includes(error.code)) return error.message;
      return null; // any other error shows below
    },
  );
  if (refused !== null) return { ...noFacts(Date.now()), refused };
  const admin = await ctx.admin();
  const { applied, pending } = await admin.status();
  const base = {
    ...noFacts(Date.now()),
    applied,
    pending: pending.map(({ version }) => version),
  };
  if (applied.length === 0 || pending.length > 0) return base;
  const hf = await ctx.client();
  return {
    ...base,
    ...(await findings(hf)),
    drift: await admin.drift(),
    movedTo: await admin.meta(MOVED_TO),
  };
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
      ? ctx.paint("good", "No problems found.")
      : ctx.paint("bad", `${bad} ${bad === 1 ? "problem" : "problems"} found.`),
  );
  return lines.join("\n");
}
