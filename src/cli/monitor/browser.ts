/**
 * Opens an address in this machine's browser: by the system's own opener, with the address as one argument and never through a
 * shell, so that nothing in it is ever read as a command.
 */
import { spawn } from "node:child_process";

/** The system's opener, and what it is given. */
export function openerOf(platform: string, address: string): readonly [command: string, ...args: string[]] {
  if (platform === "darwin") return ["open", address];
  // `start` is a word of cmd.exe, which is a shell; this is what it does.
  if (platform === "win32") return ["rundll32", "url.dll,FileProtocolHandler", address];
  return ["xdg-open", address];
}

/** False: there is no opener, or it has found no browser. True as soon as it says so; an opener may stay as long as the browser. */
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
