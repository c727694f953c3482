/**
 * Input and output of a command: two streams, an optional terminal, the environment, questions.
 *
 * Invariants: all output goes through here, so that colours appear only on a terminal and tests run commands without a process.
 */
import { createInterface } from "node:readline/promises";
import { isatty } from "node:tty";
import { styleText } from "node:util";

/** One output. */
export interface Out {
  write(text: string): void;
  readonly isTTY: boolean;
  readonly columns: number;
  readonly rows: number;
}

export interface Io {
  readonly stdout: Out;
  readonly stderr: Out;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  /** The version of Node, as process.version has it. */
  readonly node: string;
  /** Whether a person can answer questions. */
  readonly interactive: boolean;
  ask(question: string): Promise<string>;
  /** All of the standard input. */
  read(): Promise<string>;
  /** Keys as they are pressed; the returned function ends it. */
  keys(onKey: (key: string) => void): () => void;
  /** Aborts on Ctrl-C and SIGTERM. */
  readonly signal: AbortSignal;
}

/** This process. */
export function processIo(): Io {
  const controller = new AbortController();
  const abort = (): void => controller.abort();
  let listening = false;
  // A closed pipe (`holdfast jobs list | head`) is not an error.
  for (const stream of [process.stdout, process.stderr])
    stream.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "EPIPE") process.exit(0);
      throw error;
    });
  return {
    stdout: outOf(process.stdout),
    stderr: outOf(process.stderr),
    env: process.env,
    cwd: process.cwd(),
    node: process.version,
    interactive: isatty(process.stdin.fd) && isatty(process.stderr.fd),
    get signal() {
      if (!listening) {
        listening = true;
        process.once("SIGINT", abort);
        process.once("SIGTERM", abort);
      }
      return controller.signal;
    },
    async ask(question) {
      const lines = createInterface({ input: process.stdin, output: process.stderr });
      try {
        return await lines.question(question);
      } finally {
        lines.close();
      }
    },
    async read() {
      let text = "";
      process.stdin.setEncoding("utf8");
      for await (const chunk of process.stdin) text += String(chunk);
      return text;
    },
    keys(onKey) {
      const { stdin } = process;
      if (!stdin.isTTY) return () => {};
      const onData = (data: Buffer): void => onKey(data.toString("utf8"));
      stdin.setRawMode(true);
      stdin.resume();
      stdin.on("data", onData);
      return () => {
        stdin.off("data", onData);
        stdin.setRawMode(false);
        stdin.pause();
      };
    },
  };
}

/** Resolves when the signal has aborted. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

function outOf(stream: NodeJS.WriteStream & { readonly fd: number }): Out {
  return {
    write: (text) => void stream.write(text),
    get isTTY() {
      return isatty(stream.fd);
    },
    get columns() {
      return stream.columns ?? 100;
    },
    get rows() {
      return stream.rows ?? 30;
    },
  };
}

export type Tone = "good" | "bad" | "warn" | "dim" | "bold" | "accent";
const styles = {
  good: "green",
  bad: "red",
  warn: "yellow",
  dim: "dim",
  bold: "bold",
  accent: "cyan",
} as const;

/** Paints text of one stream: with colours on a terminal, unchanged elsewhere. */
export type Paint = (tone: Tone, text: string) => string;

export function painter(out: Out, env: Io["env"], wanted: boolean | undefined): Paint {
  const colour = wanted ?? (out.isTTY && (env["NO_COLOR"] ?? "") === "" && env["TERM"] !== "dumb");
  return (tone, text) => (colour ? styleText(styles[tone], text, { validateStream: false }) : text);
}
