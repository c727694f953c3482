/**
 * Development: the worker as a child process that is stopped gracefully and started again when a file changes.
 *
 * A child, because Node cannot unload imported modules. It stops as at any deploy, so running jobs finish. A child that fails is
 * started again at the next change.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { watch } from "node:fs";
import { basename, dirname } from "node:path";
import { fileURLToPath } from "node:url";
import type { Context } from "../command-context.ts";
import { aborted } from "../io.ts";
import { oneLine } from "../text.ts";

const settleMs = 150;
const away = /(^|[\\/])(node_modules|\.[^\\/]+)[\\/]/;
const code = /(^|[\\/])(\.env(\.[\w-]+)?|[^\\/.][^\\/]*\.([cm]?[jt]sx?|json))$/;

/**
 * Whether a change of this file restarts the worker: code, JSON and .env. Nothing else, because a worker writes files too: its
 * database (with a journal beside it while it is created) and the files of its jobs.
 */
export function isCode(file: string): boolean {
  return code.test(file) && !away.test(file);
}

export async function watchAndRestart(ctx: Context, configPath: string): Promise<number> {
  const folder =
    basename(dirname(configPath)) === "config" ? dirname(dirname(configPath)) : dirname(configPath);
  const main = process.argv[1] ?? fileURLToPath(new URL("../main.js", import.meta.url));
  const args = process.argv.slice(2).filter((arg) => arg !== "--watch" && arg !== "-w");
  let child: ChildProcess | null = null;
  let changed: NodeJS.Timeout | undefined;
  const { signal } = ctx.io;
  const say = (text: string): void => ctx.note(ctx.paintError("dim", `watch: ${oneLine(text)}`));

  const start = (): void => {
    const started = spawn(process.execPath, [...process.execArgv, main, ...args], { stdio: "inherit" });
    child = started;
    started.once("exit", (code, killed) => {
      if (child !== started) return;
      child = null;
      if (!signal.aborted) say(`the worker ended (${killed ?? code ?? "?"}); waiting for a change`);
    });
  };
  const stop = (): Promise<void> =>
    new Promise((resolve) => {
      const running = child;
      child = null;
      if (running === null || running.exitCode !== null || running.signalCode !== null) return resolve();
      running.once("exit", () => resolve());
      running.kill("SIGTERM");
    });
  let turn: Promise<void> = Promise.resolve();
  const restart = (file: string): void => {
    say(`${file} changed: restarting`);
    turn = turn.then(stop).then(() => {
      if (!signal.aborted) start();
    });
  };

  say(`watching ${folder}`);
  const watcher = watch(folder, { recursive: true }, (_event, file) => {
    if (file === null || !isCode(file)) return;
    clearTimeout(changed);
    changed = setTimeout(() => restart(file), settleMs);
  });
  start();
  await aborted(signal);
  watcher.close();
  clearTimeout(changed);
  await turn;
  await stop();
  return 0;
}
