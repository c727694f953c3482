/** `holdfast jobs history`: a run's history as a file, to be replayed elsewhere with `holdfast check`. */
import { runFileOf } from "../../workflows/run-file.ts";
import { isId } from "../../values/id.ts";
import type { Command } from "../command.ts";
import { jobIdOf } from "../parts/job-id.ts";
import { json } from "../text.ts";
import { operatorOf } from "../../operate/operator.ts";

export const jobHistory: Command = {
  name: "history",
  summary: "a run's history as JSON, for `holdfast check` on another machine",
  args: "<id>",
  maxArgs: 1,
  details:
    "Everything that a replay needs: the input, and what each step remembers. It is not redacted: whoever reads the database may read all of it. The dashboard gives the same file with secrets taken out.",
  json: "The file: { format, version, takenAt, redacted, run, steps }",
  examples: [
    { line: "jobs history 0199… > run.json", says: "From production" },
    { line: "check run.json", says: "With the code at hand, without a database" },
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
