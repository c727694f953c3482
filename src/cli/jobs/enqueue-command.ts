/** `holdfast enqueue`: enqueues a job by its name. */
import { UsageError } from "../../errors.ts";
import type { EnqueueOptions, Job, JobContract } from "../../index.ts";
import { parseExact } from "../../values/exact-numbers.ts";
import { record } from "../audit-record.ts";
import type { Command } from "../command.ts";
import type { Context } from "../command-context.ts";
import { unservedText } from "../served.ts";
import { harmless, json, oneLine, relative } from "../text.ts";

export const enqueue: Command = {
  name: "enqueue",
  summary: "enqueue a job by its name",
  args: "<name> [<json>]",
  maxArgs: 2,
  options: {
    delay: { type: "string", value: "duration", help: "Due after this time: 5m, 1h30m, 2d" },
    at: { type: "string", value: "date", help: "Due at this instant" },
    priority: { type: "string", short: "p", value: "n", help: "Higher first; default 0" },
    queue: { type: "string", short: "q", value: "name", help: "Queue; default: the router's, else default" },
    key: { type: "string", value: "text", help: "Unique key" },
    lane: { type: "string", value: "text", help: "Lane" },
    attempts: { type: "string", value: "n", help: "Maximum number of attempts" },
    timeout: { type: "string", value: "duration", help: "Timeout of one attempt" },
    deadline: { type: "string", value: "duration", help: "Cancel the job if it has not started by then" },
    context: { type: "string", value: "text", help: "Why this job exists" },
    id: { type: "string", value: "uuid", help: "Id of the job (UUIDv7); enqueuing it again has no effect" },
    wait: {
      type: "string",
      value: "duration",
      help: "Wait up to this long for the end, and print the output",
    },
  },
  details:
    "The input is JSON: the second argument, or standard input if that is -; default null. If the config defines a job of this name, its queue, schema, key and lane apply. Otherwise the job is enqueued by name alone.",
  json: "{ status, id, queue, runAt, served }, served: whether a live worker runs it there; with --wait also { output }",
  examples: [
    { line: `enqueue send-mail '{"to":"ada@example.org"}' --queue mail --delay 5m`, says: "One job" },
    { line: "enqueue report --wait 1m --json", says: "Wait for the output" },
  ],
  run: async (ctx) => {
    const name = ctx.argument(0, "the name of a job");
    const input = await inputOf(ctx);
    const hf = await ctx.client();
    const { config } = await ctx.config();
    const options: EnqueueOptions = {
      delay: ctx.string("delay"),
      at: ctx.date("at"),
      priority: ctx.integer("priority"),
      queue: ctx.string("queue"),
      key: ctx.string("key"),
      lane: ctx.string("lane"),
      attempts: ctx.integer("attempts"),
      timeout: ctx.string("timeout"),
      deadline: ctx.string("deadline"),
      context: ctx.string("context"),
      id: ctx.string("id"),
    };
    const definition = config.jobs?.find((job) => job.name === name) as JobContract | undefined;
    const enqueued =
      definition === undefined
        ? await hf.enqueue(name, input, options)
        : await hf.enqueue(definition, input, options);
    await record(ctx, hf, {
      action: "jobs.enqueue",
      target: enqueued.id,
      outcome: enqueued.status,
      details: { name },
    });
    // Read back, because a duplicate keeps the queue and time of the first job.
    const job = await hf.jobs.get(enqueued.id);
    const live = job !== null && job.endedAt === null;
    const unserved = live ? await unservedText(hf, job.queue, job.name) : null;
    if (unserved !== null) ctx.note(ctx.paintError("warn", unserved));
    const told = {
      ...enqueued,
      queue: job?.queue ?? null,
      runAt: job?.runAt ?? null,
      served: unserved === null,
    };
    const wait = ctx.string("wait");
    if (wait === undefined) {
      ctx.result(told, () => `${enqueued.status} ${enqueued.id}${job === null ? "" : whereText(job)}`);
      return;
    }
    const output = await hf.result(enqueued.id, { timeout: wait });
    ctx.result({ ...told, output }, () => harmless(json(output, 2)));
  },
};

function whereText({ queue, state, runAt }: Job): string {
  const due = state === "scheduled" && runAt !== null ? `, due ${relative(runAt, Date.now())}` : "";
  return ` in queue ${oneLine(queue)}${due}`;
}

async function inputOf(ctx: Context): Promise<unknown> {
  const given = ctx.args[1];
  if (given === undefined) return null;
  const text = given === "-" ? await ctx.io.read() : given;
  try {
    return parseExact(text);
  } catch (cause) {
    throw new UsageError(
      "INPUT_NOT_JSON",
      `The input must be JSON: ${(cause as Error).message}. In a shell, quote it: '{"to":"ada"}'.`,
      { cause },
    );
  }
}
