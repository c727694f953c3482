/**
 * The demo's worker processes: started, killed, waited for; and their logs.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, fstatSync, openSync, readFileSync, readSync, existsSync } from "node:fs";
import { join } from "node:path";
import type { LogEntry } from "./jobs.ts";

interface Member {
  readonly name: string;
  readonly pid: number;
  readonly process: ChildProcess;
  readonly gone: Promise<void>;
  killed: boolean;
  /** How much of its log has been read. */
  read: number;
}

export class Crew {
  readonly #database: string;
  readonly #folder: string;
  readonly #members: Member[] = [];
  #stderr = "";

  constructor(database: string, folder: string) {
    this.#database = database;
    this.#folder = folder;
  }

  get workers(): readonly { readonly name: string; readonly pid: number; readonly killed: boolean }[] {
    return this.#members;
  }

  /** The name of the worker that was killed. */
  get killed(): string {
    return this.#members.find(({ killed }) => killed)?.name ?? "";
  }

  /** What the workers wrote to standard error. */
  complaints(): string {
    return this.#stderr;
  }

  /** Starts a worker; resolves when it is ready. */
  async start(name: string): Promise<void> {
    const script = join(import.meta.dirname, "worker.ts");
    const child = spawn(process.execPath, [script, this.#database, this.#logOf(name), name], {
      stdio: ["ignore", "ignore", "pipe", "ipc"],
    });
    child.stderr?.on("data", (chunk: Buffer) => (this.#stderr += chunk.toString()));
    const gone = new Promise<void>((resolve) => child.once("exit", () => resolve()));
    this.#members.push({ name, pid: child.pid ?? 0, process: child, gone, killed: false, read: 0 });
    await new Promise<void>((resolve, reject) => {
      child.once("message", () => resolve());
      child.once("error", reject);
      child.once("exit", (code, signal) =>
        reject(new Error(`${name} ended at its start (${code ?? signal}): ${this.#stderr}`)),
      );
    });
  }

  /** SIGKILL: the process gets no chance to do anything. */
  kill(name: string): void {
    const member = this.#members.find((other) => other.name === name && !other.killed);
    if (member === undefined) throw new Error(`there is no worker ${name}`);
    member.killed = true;
    member.process.kill("SIGKILL");
  }

  killAll(): void {
    for (const { process: child } of this.#members) {
      if (child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
    }
  }

  /** Resolves when every process has ended, by itself or, after 8 s, by force. */
  async allGone(): Promise<void> {
    const force = setTimeout(() => this.killAll(), 8_000);
    await Promise.all(this.#members.map(({ gone }) => gone));
    clearTimeout(force);
  }

  /** What the logs say that was not asked for before, in order of time. */
  newEntries(): LogEntry[] {
    return inOrder(this.#members.flatMap((member) => this.#readOn(member)));
  }

  /** Every line of every log, also of the killed worker's. */
  readLogs(): LogEntry[] {
    const texts = this.#members.map(({ name }) => this.#logOf(name)).filter((file) => existsSync(file));
    return inOrder(texts.flatMap((file) => parse(readFileSync(file, "utf8"))));
  }

  #logOf(name: string): string {
    return join(this.#folder, `${name}.log`);
  }

  #readOn(member: Member): LogEntry[] {
    const file = this.#logOf(member.name);
    if (!existsSync(file)) return [];
    const descriptor = openSync(file, "r");
    try {
      const buffer = Buffer.alloc(fstatSync(descriptor).size - member.read);
      readSync(descriptor, buffer, 0, buffer.length, member.read);
      const whole = buffer.lastIndexOf("\n") + 1;
      member.read += whole;
      return parse(buffer.toString("utf8", 0, whole));
    } finally {
      closeSync(descriptor);
    }
  }
}

function parse(text: string): LogEntry[] {
  // A line that the kill cut off has no end, and says nothing.
  const lines = text.slice(0, text.lastIndexOf("\n") + 1).split("\n");
  return lines.filter((line) => line !== "").map((line) => JSON.parse(line) as LogEntry);
}

function inOrder(entries: LogEntry[]): LogEntry[] {
  return entries.sort((a, b) => a.at - b.at);
}
