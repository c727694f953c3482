// What a test process leaves behind (child processes, temporary directories) goes when it goes: also after a
// failure, Ctrl-C or SIGKILL. A shell script at the other end of a pipe does it (guard.sh), because a handler
// for "exit" never runs in a process that is killed, and vitest kills workers that hang.
import { spawn } from "node:child_process";
import { accessSync, constants, mkdtempSync, rmSync, statfsSync } from "node:fs";
import { freemem, tmpdir } from "node:os";
import { join } from "node:path";
import type { Writable } from "node:stream";

let pipe: Writable | undefined;

function tellGuard(line: string): void {
  if (pipe === undefined) {
    const script = join(import.meta.dirname, "guard.sh");
    // Detached: Ctrl-C reaches the whole process group, and the guard must outlive it.
    const guard = spawn("sh", [script], { stdio: ["pipe", "ignore", "ignore"], detached: true });
    guard.unref();
    guard.stdin.on("error", () => {});
    (guard.stdin as Writable & { unref?: () => void }).unref?.();
    pipe = guard.stdin;
  }
  pipe.write(`${line}\n`);
}

/** Ends the process `pid` with `signal` when this process ends, unless forgotten before. */
export function killAtExit(pid: number, signal: "KILL" | "QUIT"): void {
  tellGuard(`kill ${signal} ${pid}`);
}

/** To be called as soon as the process has ended: its id may be given to another. */
export function forget(pid: number): void {
  tellGuard(`forget ${pid}`);
}

const GB = 1024 ** 3;

/**
 * In memory where there is plenty: nothing of a test outlives the machine, and a commit that waits for a disk costs a
 * millisecond, of which the suite has hundreds of thousands. TMPDIR says otherwise.
 */
function temporaryHome(): string {
  const memory = "/dev/shm";
  if (process.platform !== "linux" || process.env["TMPDIR"] !== undefined) return tmpdir();
  try {
    accessSync(memory, constants.W_OK);
    const { bavail, bsize } = statfsSync(memory);
    return Math.min(bavail * bsize, freemem()) > 4 * GB ? memory : tmpdir();
  } catch {
    return tmpdir();
  }
}

/** A new temporary directory, removed when this process ends or by `removeDirectory`. */
export function temporaryDirectory(name = "test"): string {
  const directory = mkdtempSync(join(temporaryHome(), `holdfast-${name}-`));
  tellGuard(`remove ${directory}`);
  return directory;
}

export function removeDirectory(directory: string): void {
  rmSync(directory, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
}
