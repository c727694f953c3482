// Real processes for fault tests: a TypeScript file, run by the pinned Node, that talks in lines of JSON.
//
//   child:  console.log(JSON.stringify({ type: "claimed", id }))     (import from ../../src/…ts, not "holdfast")
//   test:   const child = spawnNode("test/fault/worker-process.ts", [url]);
//           await child.message("claimed");  child.kill("SIGKILL");  await child.exited;
import { spawn } from "node:child_process";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { forget, killAtExit } from "./guard.ts";
import { waitFor, type WaitOptions } from "./wait.ts";

export { waitFor } from "./wait.ts";

const root = join(import.meta.dirname, "..", "..");

export interface Message {
  type: string;
  [key: string]: unknown;
}

export interface Exit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

export interface NodeProcess extends AsyncDisposable {
  readonly pid: number;
  /** Every line that was a JSON object, in order. */
  readonly messages: readonly Message[];
  /** Everything printed, both streams; quote it when a test fails. */
  readonly output: string;
  readonly exited: Promise<Exit>;
  readonly running: boolean;
  /** Waits for a message of this type (that also satisfies `where`), also one that has already come. */
  message(
    type: string,
    options?: Partial<WaitOptions> & { where?: (message: Message) => boolean },
  ): Promise<Message>;
  /** One line of JSON to its standard input. */
  send(value: unknown): void;
  kill(signal?: NodeJS.Signals): void;
}

/** `file` is relative to the repository's root, or absolute. The environment is added to this process's own. */
export function spawnNode(
  file: string,
  args: readonly string[] = [],
  env: Readonly<Record<string, string | undefined>> = {},
  cwd: string = root,
): NodeProcess {
  const child = spawn(
    process.execPath,
    ["--disable-warning=ExperimentalWarning", resolve(root, file), ...args],
    {
      cwd,
      stdio: ["pipe", "pipe", "pipe"],
      // NODE_OPTIONS and VITEST* are the test runner's business.
      env: { ...withoutRunner(process.env), ...env },
    },
  );
  const { pid } = child;
  if (pid === undefined) throw new Error(`Could not start ${file}`);
  killAtExit(pid, "KILL");

  const messages: Message[] = [];
  let output = "";
  let exit: Exit | undefined;
  const exited = new Promise<Exit>((settle) => {
    child.once("exit", () => forget(pid));
    // "close", not "exit": by then every line has been read.
    child.once("close", (code, signal) => {
      exit = { code, signal };
      settle(exit);
    });
  });
  createInterface({ input: child.stdout }).on("line", (line) => {
    output += `${line}\n`;
    const message = parse(line);
    if (message) messages.push(message);
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => (output += text));
  child.stdin.on("error", () => {});

  const kill = (signal: NodeJS.Signals = "SIGKILL"): void => {
    if (child.exitCode === null && child.signalCode === null) child.kill(signal);
  };
  return {
    pid,
    messages,
    exited,
    kill,
    get output() {
      return output;
    },
    get running() {
      return exit === undefined;
    },
    async message(type, { where = () => true, what = `a "${type}" message from ${file}`, ...wait } = {}) {
      const find = (): Message | undefined =>
        messages.find((message) => message.type === type && where(message));
      try {
        await waitFor(() => find() !== undefined || exit !== undefined, { what, ...wait });
        const found = find();
        if (found) return found;
        throw new Error(`Process ended with ${JSON.stringify(exit)} before ${what}`);
      } catch (error) {
        throw new Error(`${(error as Error).message}\n--- its output:\n${output}`, { cause: error });
      }
    },
    send(value) {
      child.stdin.write(`${JSON.stringify(value)}\n`);
    },
    async [Symbol.asyncDispose]() {
      kill("SIGKILL");
      await exited;
    },
  };
}

function parse(line: string): Message | undefined {
  if (!line.startsWith("{")) return undefined;
  try {
    return JSON.parse(line) as Message;
  } catch {
    return undefined;
  }
}

function withoutRunner(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(env).filter(
      ([name]) => name !== "NODE_OPTIONS" && name !== "TEST" && !name.startsWith("VITEST"),
    ),
  );
}
