// Runs command lines without a process: captured streams, a terminal or none, answers to questions.
import { onTestFinished } from "vitest";
import type { Io } from "../../src/cli/io.ts";
import { run } from "../../src/cli/command-line.ts";
import { removeDirectory, temporaryDirectory } from "../support/guard.ts";
import type { FreshStore } from "../support/stores.ts";

export interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
  /** Standard output as JSON. */
  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- a test names the shape that it expects
  json<T = Record<string, unknown>>(): T;
  /** Standard output as lines of JSON. */
  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- a test names the shape that it expects
  lines<T = Record<string, unknown>>(): T[];
}

export interface CliOptions {
  readonly tty?: boolean;
  readonly answers?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly stdin?: string;
  readonly node?: string;
  readonly signal?: AbortSignal;
  readonly columns?: number;
  /** Hears everything that goes to standard output so far. */
  readonly onOut?: (out: string) => void;
  /** The same for standard error. */
  readonly onErr?: (err: string) => void;
}

let nowhere: string | undefined;

/** One command line. */
export async function cli(argv: readonly string[], options: CliOptions = {}): Promise<Ran> {
  nowhere ??= temporaryDirectory("cli");
  let out = "";
  let err = "";
  const answers = [...(options.answers ?? [])];
  const stream = (write: (text: string) => void) => ({
    write,
    isTTY: options.tty ?? false,
    columns: options.columns ?? 160,
    rows: 40,
  });
  const io: Io = {
    stdout: stream((text) => {
      out += text;
      options.onOut?.(out);
    }),
    stderr: stream((text) => {
      err += text;
      options.onErr?.(err);
    }),
    env: options.env ?? {},
    cwd: options.cwd ?? nowhere,
    node: options.node ?? process.version,
    interactive: options.tty ?? false,
    signal: options.signal ?? new AbortController().signal,
    ask: (question) => {
      err += question;
      return Promise.resolve(answers.shift() ?? "");
    },
    read: () => Promise.resolve(options.stdin ?? ""),
    keys: () => () => {},
  };
  const code = await run(argv, io);
  return {
    code,
    out,
    err,
    // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- a test names the shape that it expects
    json: <T>() => JSON.parse(out) as T,
    // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- a test names the shape that it expects
    lines: <T>() =>
      out
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => JSON.parse(line) as T),
  };
}

/** Command lines on one store. */
export function on(
  store: FreshStore,
  base: CliOptions = {},
): (argv: readonly string[], options?: CliOptions) => Promise<Ran> {
  const where = [
    "--url",
    store.url,
    ...(store.options.schema === undefined ? [] : ["--schema", store.options.schema]),
  ];
  return (argv, options = {}) => cli([...argv, ...where], { ...base, ...options });
}

/** A folder that is removed after the test. */
export function folder(name: string): string {
  const path = temporaryDirectory(name);
  onTestFinished(() => removeDirectory(path));
  return path;
}
