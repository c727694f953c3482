/**
 * What the demo shows: a picture that is redrawn in place where there is a terminal, plain lines with a time
 * everywhere else (a pipe, CI, NO_COLOR).
 *
 * Knows nothing of Holdfast: main.ts tells it what to show.
 */
import { styleText } from "node:util";

export interface Counts {
  readonly scheduled: number;
  readonly ready: number;
  readonly running: number;
  readonly done: number;
  readonly dead: number;
  readonly cancelled: number;
}

export interface WorkerLine {
  readonly name: string;
  readonly pid: number;
  /** What it runs, in words; null: it was killed. */
  readonly runs: string | null;
}

export interface Picture {
  readonly counts: Counts;
  readonly workers: readonly WorkerLine[];
  readonly accepted: number;
}

/** How a line of the story is meant. */
export type Tone = "plain" | "good" | "bad" | "loud";

export interface View {
  /** A line of the story, kept until newer ones push it out. */
  say(text: string, tone?: Tone): void;
  show(picture: Picture): void;
  /** Leaves the last picture standing and prints lines below it. */
  end(lines: readonly { readonly text: string; readonly tone: Tone }[]): void;
}

type Style = Parameters<typeof styleText>[0];

const tones: Readonly<Record<Tone, Style>> = {
  plain: "reset",
  good: "green",
  bad: "red",
  loud: ["bold", "yellow"],
};

export function makeView(output: NodeJS.WriteStream, env: NodeJS.ProcessEnv): View {
  const elapsed = stopwatch();
  const live = output.isTTY && !env["NO_COLOR"] && !env["CI"] && env["TERM"] !== "dumb";
  return live ? liveView(output, elapsed) : plainView(output, elapsed);
}

function plainView(output: NodeJS.WriteStream, elapsed: () => string): View {
  let shown = "";
  let shownAt = 0;
  const line = (text: string): void => void output.write(`[${elapsed()}] ${text}\n`);
  return {
    say: (text) => line(text),
    show: ({ counts, accepted, workers }) => {
      const states = countsOf(counts).map(([state, n]) => `${state} ${n}`);
      const running = workers
        .filter(({ runs }) => runs !== null && runs !== "")
        .map(({ name, runs }) => ` · ${name}: ${runs}`);
      const text = `${ended(counts)} of ${accepted} ended · ${states.join(", ")}${running.join("")}`;
      if (accepted === 0 || text === shown || Date.now() - shownAt < 1_000) return;
      shown = text;
      shownAt = Date.now();
      line(text);
    },
    end: (lines) => void output.write(`\n${lines.map(({ text }) => text).join("\n")}\n`),
  };
}

const hideCursor = "\u001B[?25l";
const showCursor = "\u001B[?25h";

function liveView(output: NodeJS.WriteStream, elapsed: () => string): View {
  const story: string[] = [];
  let picture: Picture | undefined;
  let height = 0;

  const paint = (style: Style, text: string): string => styleText(style, text, { validateStream: false });
  const draw = (): void => {
    if (picture === undefined) return;
    const { counts, workers, accepted } = picture;
    const head = [
      "",
      `  ${paint("bold", "Holdfast")}  two worker processes, one SQLite file  ${paint("dim", elapsed())}`,
      "",
      `  ${countsOf(counts)
        .map(([state, n]) => countText(state, n, paint))
        .join("   ")}`,
      `  ${bar(ended(counts), accepted, paint)}`,
      "",
      ...workers.map((worker) => `  ${workerText(worker, paint)}`),
      "",
    ];
    // One line less than the screen: what scrolls out of it cannot be drawn over.
    const room = Math.max(3, Math.min(14, (output.rows ?? 24) - head.length - 1));
    const lines = [...head, ...story.slice(-room).map((text) => `  ${text}`)].map((text) =>
      cut(text, output.columns ?? 80),
    );
    output.write(`${hideCursor}${height > 0 ? `\u001B[${height}A\r` : ""}\u001B[J${lines.join("\n")}\n`);
    height = lines.length;
  };
  // Whatever ends this process, the terminal gets its cursor back.
  process.on("exit", () => void output.write(showCursor));
  return {
    say: (text, tone = "plain") => {
      story.push(`${paint("dim", elapsed())}  ${tone === "plain" ? text : paint(tones[tone], text)}`);
      draw();
    },
    show: (next) => {
      picture = next;
      draw();
    },
    end: (lines) => {
      draw();
      const painted = lines.map(
        ({ text, tone }) => `  ${tone === "plain" ? text : paint(tones[tone], text)}`,
      );
      output.write(`\n${painted.join("\n")}\n\n`);
    },
  };
}

type Paint = (style: Style, text: string) => string;

const stateStyles: Readonly<Record<keyof Counts, Style>> = {
  scheduled: "blue",
  ready: "cyan",
  running: "yellow",
  done: "green",
  dead: "red",
  cancelled: "magenta",
};

function countText(state: keyof Counts, n: number, paint: Paint): string {
  return `${paint("dim", state)} ${paint(["bold", ...[stateStyles[state]].flat()], String(n).padStart(2))}`;
}

function workerText({ name, pid, runs }: WorkerLine, paint: Paint): string {
  const who = `${name}  ${paint("dim", `pid ${String(pid).padEnd(7)}`)}`;
  if (runs === null) return `${paint("red", "✗")} ${who} ${paint("red", "killed with SIGKILL")}`;
  return `${paint(runs === "" ? "dim" : "green", "●")} ${who} ${runs === "" ? paint("dim", "idle") : runs}`;
}

function bar(n: number, of: number, paint: Paint): string {
  const width = 40;
  const full = of === 0 ? 0 : Math.round((n / of) * width);
  return `${paint("green", "█".repeat(full))}${paint("dim", "░".repeat(width - full))}  ${n} of ${of} jobs ended`;
}

function countsOf(counts: Counts): [keyof Counts, number][] {
  return (["scheduled", "ready", "running", "done", "dead", "cancelled"] as const).map((state) => [
    state,
    counts[state],
  ]);
}

function ended({ done, dead, cancelled }: Counts): number {
  return done + dead + cancelled;
}

function stopwatch(): () => string {
  const from = performance.now();
  return () => `${((performance.now() - from) / 1_000).toFixed(1).padStart(4)} s`;
}

/** The text, cut to the terminal's width; colours take no room. A line that wraps would spoil the redraw. */
function cut(text: string, width: number): string {
  let room = width - 1;
  let result = "";
  for (const part of text.split(/(\u001B\[[0-9;]*m)/)) {
    if (part.startsWith("\u001B[")) {
      result += part;
    } else {
      const shown = Array.from(part).slice(0, Math.max(0, room));
      room -= shown.length;
      result += shown.join("");
    }
  }
  return result;
}
