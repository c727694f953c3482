/**
 * Opens an address in this machine's browser, by the system's own opener. The address is one argument and never passes through a
 * shell, so no part of it can act as a command.
 */
import { spawn } from "node:child_process";

/** The system's opener and its arguments. */
export function openerOf(platform: string, address: string): readonly [command: string, ...args: string[]] {
  if (platform === "darwin") return ["open", address];
  // `start` is a word of cmd.exe, which is a shell; this command does the same.
  if (platform === "win32") return ["rundll32", "url.dll,FileProtocolHandler", address];
  return ["xdg-open", address];
}

/** False without an opener or a browser. An opener may run as long as the browser, so this resolves when it exits. */
export function openBrowser(
  address: string,
  env: Readonly<Record<string, string | undefined>>,
  platform: string = process.platform,
): Promise<boolean> {
  const [command, ...args] = openerOf(platform, address);
  return new Promise((resolve) => {
    const opener = spawn(command, args, { stdio: "ignore", detached: true, shell: false, env: { ...env } });
    opener.once("error", () => resolve(false));
    opener.once("exit", (code) => resolve(code === 0));
    opener.unref();
  });
}
