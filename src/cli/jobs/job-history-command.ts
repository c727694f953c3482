/** `holdfast jobs history`: a run's history as a file, which `holdfast check` replays elsewhere. */
import { runFileOf } from "../../operate/index.ts";
import { isId } from "../../values/id.ts";
import type { Command } from "../command.ts";
import { jobIdOf } from "./job-id.ts";
import { json } from "../text.ts";
import { operatorOf } from "../../operate/operator.ts";

export const jobHistory: Command = {
  name: "history",
  summary: "print a run's history as JSON, for `holdfast check` on another machine",
  args: "<id>",
  maxArgs: 1,
  details:
    "The file holds the input and the result of each step. It is not redacted; the dashboard offers the same file with secrets redacted.",
  json: "The file: { format, version, takenAt, redacted, run, steps }",
  examples: [
    { line: "jobs history 0199… > run.json", says: "Save it in production" },
    { line: "check run.json", says: "Replay it with your code, without a database" },
  ],
  run: async (ctx) => {
    const id = await jobIdOf(ctx, "look");
    const hf = await ctx.client();
    const { store, env } = operatorOf(hf);
    const file = isId(id) ? await runFileOf(store, id, env.clock.now()) : null;
    if (file === null) throw await ctx.noJob(id);
    ctx.print(json(file, ctx.json ? undefined : 2));
  },
};
