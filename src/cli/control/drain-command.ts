/**
 * `holdfast queues drain`: queues finish their due jobs and then pause. With --wait, the command waits for that.
 *
 * Invariants: waiting changes nothing, so an interrupted command leaves the queues draining, and a repeated one waits again; the
 * exit code is 0 only if every queue is paused and idle, so that `drain --wait && deploy` is safe.
 * Not here: the end of a drain (the store's endDrains).
 */
import { sleep, systemClock } from "../../clock.ts";
import { UsageError } from "../../errors.ts";
import type { Holdfast, QueueState } from "../../index.ts";
import { durationMs } from "../../values/duration.ts";
import type { Command } from "../command.ts";
import { acting } from "../audit-record.ts";
import type { Context } from "../command-context.ts";
import { counted, MOST_COUNTED } from "../../operate/index.ts";
import { noteUnknown } from "../served.ts";
import { clipped, oneLine } from "../text.ts";

const checkMs = 250;

export const drain: Command = {
  name: "drain",
  summary: "finish the due jobs of queues, then pause them",
  args: "<name>…",
  maxArgs: 1_000,
  options: {
    wait: {
      type: "boolean",
      short: "w",
      help: "Wait until the queues are paused and idle; else exit code 1",
    },
    timeout: { type: "string", value: "duration", help: "With --wait: the longest time; default unlimited" },
  },
  details:
    "A draining queue runs its due jobs, including new ones, and pauses when no job is due or running. Jobs that are due later (scheduled jobs, retries, runs that sleep or wait) do not delay it. `queues resume` ends the drain; `queues pause` pauses at once. Ctrl-C ends the waiting, not the drain.",
  json: "{ draining: [names], paused: [names] }; with --wait also { resumed: [names] }",
  examples: [
    { line: "queues drain mail", says: "Before a migration or a deploy" },
    { line: "queues drain mail --wait --timeout 10m && ./deploy.sh", says: "Deploy only after the drain" },
  ],
  run: async (ctx) => {
    ctx.argument(0, "the name of a queue");
    const timeout = ctx.string("timeout");
    if (timeout !== undefined && !ctx.flag("wait"))
      throw new UsageError("BAD_OPTION", "--timeout needs --wait.");
    const timeoutMs = timeout === undefined ? Infinity : durationMs(timeout, "--timeout");
    const hf = await ctx.client();
    await noteUnknown(ctx, hf);
    const now = { draining: [] as string[], paused: [] as string[] };
    for (const name of ctx.args) {
      const act = { action: "queues.drain", target: name, outcome: (state: string) => state };
      now[await acting(ctx, hf, act, () => hf.queues.drain(name))].push(oneLine(name));
    }
    if (ctx.flag("wait")) return waited(ctx, hf, timeoutMs);
    ctx.result(now, () =>
      [
        ...(now.draining.length === 0
          ? []
          : [`Draining ${now.draining.join(", ")}. A queue pauses when no job is due or running.`]),
        ...(now.paused.length === 0 ? [] : [`Nothing to finish: ${now.paused.join(", ")} is paused.`]),
      ].join("\n"),
    );
    return 0;
  },
};

/** The queues by progress: still draining, paused and idle, or resumed meanwhile. */
interface Draining {
  readonly draining: readonly QueueState[];
  readonly paused: readonly QueueState[];
  readonly resumed: readonly QueueState[];
}

async function waited(ctx: Context, hf: Holdfast, timeoutMs: number): Promise<number> {
  const until = systemClock.monotonic() + timeoutMs;
  const show = liveLine(ctx);
  let seen = await look(hf, ctx.args);
  if (seen.draining.length > 0) noteUnserved(ctx, seen.draining);
  while (seen.draining.length > 0 && systemClock.monotonic() < until && !ctx.io.signal.aborted) {
    show(
      `${seen.draining.length === 1 ? "draining" : `${seen.draining.length} queues drain:`} ${seen.draining.map(leftText).join("; ")}`,
    );
    await sleep(systemClock, Math.min(checkMs, until - systemClock.monotonic()), ctx.io.signal).catch(
      () => undefined,
    );
    seen = await look(hf, ctx.args);
  }
  show(null);
  const names = (queues: readonly QueueState[]): string[] => queues.map(({ name }) => oneLine(name));
  const result = { draining: names(seen.draining), paused: names(seen.paused), resumed: names(seen.resumed) };
  ctx.result(result, () => waitedText(ctx, seen));
  return seen.paused.length === new Set(ctx.args).size ? 0 : 1;
}

/** A queue that was paused by hand counts as draining while its jobs run. */
async function look(hf: Holdfast, asked: readonly string[]): Promise<Draining> {
  for (const name of asked) await hf.queues.drained(name); // no worker may be there to notice
  const queues = (await hf.queues.list({ upTo: MOST_COUNTED })).filter(({ name }) => asked.includes(name));
  const still = (queue: QueueState): boolean => queue.paused && queue.counts.running === 0;
  return {
    draining: queues.filter((queue) => queue.draining || (queue.paused && !still(queue))),
    paused: queues.filter(still),
    resumed: queues.filter(({ draining, paused }) => !draining && !paused),
  };
}

function leftText(queue: QueueState): string {
  return `${oneLine(queue.name, 40)} (${counted([queue], "ready")} due, ${counted([queue], "running")} running)`;
}

function noteUnserved(ctx: Context, queues: readonly QueueState[]): void {
  for (const { name, unserved } of queues)
    if (unserved.length > 0)
      ctx.note(
        ctx.paintError(
          "warn",
          `No live worker runs ${oneLine(unserved.join(", "), 80)} in queue ${oneLine(name)}. The queue cannot drain until one does.`,
        ),
      );
}

function waitedText(ctx: Context, { draining, paused, resumed }: Draining): string {
  const lines: string[] = [];
  const left = paused.filter(({ counts }) => counts.ready > 0);
  const drained = paused.filter(({ counts }) => counts.ready === 0);
  if (drained.length > 0)
    lines.push(`Drained and paused: ${drained.map(({ name }) => oneLine(name)).join(", ")}.`);
  for (const queue of left)
    lines.push(
      `${oneLine(queue.name)} is paused with ${counted([queue], "ready")} due jobs. It was paused before the drain ended, or the jobs arrived later.`,
    );
  for (const { name } of resumed) lines.push(`${oneLine(name)} was resumed.`);
  if (draining.length > 0)
    lines.push(
      `${ctx.io.signal.aborted ? "Interrupted" : "Timeout"}; still draining: ${draining.map(leftText).join("; ")}. ` +
        `The drain continues. Wait again with the same command, or end the drain with: holdfast queues resume ${draining.map(({ name }) => oneLine(name)).join(" ")}`,
    );
  return lines.join("\n");
}

/** A progress line on standard error, only on a terminal; null clears it. */
function liveLine(ctx: Context): (text: string | null) => void {
  const { stderr } = ctx.io;
  if (!stderr.isTTY || ctx.json) return () => {};
  let drawn = false;
  return (text) => {
    if (text === null && !drawn) return;
    drawn = true;
    ctx.draw(stderr, `\r\u001b[2K${text === null ? "" : clipped(text, stderr.columns - 1)}`);
  };
}
