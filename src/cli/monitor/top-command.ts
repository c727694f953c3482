/**
 * `holdfast top`: queues, workers and the last minutes, live in the terminal.
 *
 * The frame is a pure function of the data. The loop draws it once a second over the previous one, in the terminal's alternate
 * screen, so that the old content returns at the end.
 */
import { sleep, systemClock } from "../../clock.ts";
import type { Holdfast, MetricPoint, QueueState, WorkerState } from "../../index.ts";
import { durationMs } from "../../values/duration.ts";
import type { Command } from "../command.ts";
import type { Context } from "../command-context.ts";
import { counted, isQuiet, MOST_COUNTED } from "../../operate/index.ts";
import type { Paint } from "../io.ts";
import { clipped, duration, grouped, oneLine } from "../text.ts";
import { queueTable } from "../control/queue-commands.ts";
import { workerTable } from "../control/workers-command.ts";

export interface TopState {
  readonly at: Date;
  readonly place: string;
  readonly queues: readonly QueueState[];
  readonly workers: readonly WorkerState[];
  readonly minutes: readonly MetricPoint[];
  /** The current error of the database. */
  readonly trouble: string | null;
}

const minuteMs = 60_000;

export const top: Command = {
  name: "top",
  summary: "live view of queues, workers and throughput",
  options: {
    every: { type: "string", value: "duration", help: "Refresh interval; default 1s" },
    once: { type: "boolean", help: "Print once and exit (the default without a terminal)" },
  },
  details:
    "Press q to quit. With --json, one object per line. Jobs are counted up to 10,000 of each name, then shown as 10,000+ (JSON: atLeast); the lag is exact.",
  json: "{ at, place, queues, workers, minutes, trouble } per line",
  examples: [{ line: "top --every 5s", says: "Refresh every five seconds" }],
  run: async (ctx) => {
    const hf = await ctx.client();
    const everyMs = Math.max(100, durationMs(ctx.string("every") ?? "1s", "--every"));
    const { place } = await ctx.target();
    const live = ctx.io.stdout.isTTY && !ctx.flag("once");
    if (!live) return still(ctx, hf, place, everyMs);
    await draw(ctx, hf, place, everyMs);
    return 0;
  },
};

async function still(ctx: Context, hf: Holdfast, place: string, everyMs: number): Promise<number> {
  for (;;) {
    const state = await look(hf, place, null);
    if (ctx.json) ctx.line(state);
    else ctx.print(frame(state, ctx.paint, ctx.io.stdout.columns, Infinity));
    if (!ctx.json || ctx.flag("once") || ctx.io.signal.aborted) return 0;
    await sleep(systemClock, everyMs, ctx.io.signal).catch(() => undefined);
    if (ctx.io.signal.aborted) return 0;
  }
}

async function draw(ctx: Context, hf: Holdfast, place: string, everyMs: number): Promise<void> {
  const { stdout, signal } = ctx.io;
  const ended = new AbortController();
  signal.addEventListener("abort", () => ended.abort(), { once: true });
  const offKeys = ctx.io.keys((key) => {
    if (key === "q" || key === "\u0003" || key === "\u001b") ended.abort();
  });
  ctx.draw(stdout, "\u001b[?1049h\u001b[?25l");
  let last: TopState | null = null;
  try {
    while (!ended.signal.aborted) {
      last = await look(hf, place, last);
      ctx.draw(
        stdout,
        `\u001b[H${frame(last, ctx.paint, stdout.columns, stdout.rows).replaceAll("\n", "\u001b[K\n")}\u001b[J`,
      );
      await sleep(systemClock, everyMs, ended.signal).catch(() => undefined);
    }
  } finally {
    ctx.draw(stdout, "\u001b[?25h\u001b[?1049l");
    offKeys();
  }
}

/** While the database is away, the last data stay, with the error. */
async function look(hf: Holdfast, place: string, last: TopState | null): Promise<TopState> {
  const at = new Date();
  try {
    const [queues, workers, series] = await Promise.all([
      hf.queues.list({ upTo: MOST_COUNTED }),
      hf.workers.list(),
      hf.metrics.series({ since: at.getTime() - 15 * 60_000 }),
    ]);
    return { at, place, queues, workers, minutes: series[0]?.points ?? [], trouble: null };
  } catch (error) {
    if (last === null) throw error;
    return { ...last, at, trouble: error instanceof Error ? error.message : String(error) };
  }
}

/** One frame. Pure. */
export function frame(state: TopState, paint: Paint, columns: number, rows: number): string {
  const now = state.at.getTime();
  const counts = (["ready", "running", "scheduled", "waiting"] as const).map(
    (one) => `${one} ${counted(state.queues, one)}`,
  );
  const lag = Math.max(0, ...state.queues.map(({ lagMs }) => lagMs));
  const lines = [
    `${paint("bold", "holdfast top")}  ${oneLine(state.place, 60)}  ${paint("dim", state.at.toISOString().slice(0, 19).replace("T", " "))}  q quits`,
    ...folded([...counts, `lag ${duration(lag)}`, `workers ${workersText(state.workers)}`], columns),
  ];
  if (state.trouble !== null)
    lines.push(paint("bad", `the database does not answer: ${oneLine(state.trouble, columns - 32)}`));
  if (state.minutes.length > 0) lines.push(minutesText(state.minutes, now, paint));
  const busy = state.queues.toSorted(
    (a, b) => b.counts.running + b.counts.ready - a.counts.running - a.counts.ready,
  );
  lines.push("", ...queueTable({ paint }, busy, now, columns).split("\n"));
  lines.push(
    "",
    ...(state.workers.length === 0
      ? [paint("warn", "no live workers")]
      : workerTable({ paint }, state.workers, now, columns).split("\n")),
  );
  // A line that is too long would take two of the terminal's, and push the last ones out of sight.
  return lines
    .slice(0, Math.max(3, rows - 1))
    .map((line) => clipped(line, columns))
    .join("\n");
}

/** As many on a line as it holds. */
function folded(parts: readonly string[], columns: number): string[] {
  const lines: string[] = [];
  for (const part of parts) {
    const longer = `${lines.at(-1) ?? ""}   ${part}`;
    if (lines.length > 0 && longer.length <= columns) lines[lines.length - 1] = longer;
    else lines.push(part);
  }
  return lines;
}

export function sparkline(values: readonly number[]): string {
  const most = Math.max(1, ...values);
  return values.map((value) => "▁▂▃▄▅▆▇█"[Math.min(7, Math.floor((value / most) * 7.999))]).join("");
}

/** The last quarter of an hour. Only minutes in which something was measured are stored: the others are gaps, not gone. */
function minutesText(minutes: readonly MetricPoint[], now: number, paint: Paint): string {
  const ms = (value: number | null): string => (value === null ? "–" : duration(value));
  const byMinute = new Map(minutes.map((point) => [Math.floor(point.at.getTime() / minuteMs), point]));
  const current = Math.floor(now / minuteMs);
  const done = Array.from({ length: 15 }, (_, i) => byMinute.get(current - 14 + i)?.done ?? 0);
  const last = byMinute.get(current) ?? byMinute.get(current - 1);
  const said =
    last === undefined
      ? "no job ended in the last minute"
      : `${grouped(last.done)} done${last.dead > 0 ? `, ${paint("bad", `${grouped(last.dead)} dead`)}` : ""} in the last minute, ran p50 ${ms(last.ran.p50)} p95 ${ms(last.ran.p95)}, waited p95 ${ms(last.waited.p95)}`;
  return `last 15 min ${paint("accent", sparkline(done))}  ${said}`;
}

function workersText(workers: readonly WorkerState[]): string {
  const live = workers.filter(({ kind }) => kind === "worker");
  const quiet = live.filter(isQuiet).length;
  return `${live.length}${quiet > 0 ? ` (${quiet} quiet)` : ""}`;
}
