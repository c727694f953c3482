/** Installs the pinned peers with `npm ci`, unless they are there already. */
import { spawnSync } from "node:child_process";
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";

const lock = join(import.meta.dirname, "package-lock.json");
// npm writes this file last.
const installed = join(import.meta.dirname, "node_modules", ".package-lock.json");

if (!existsSync(installed) || statSync(installed).mtimeMs < statSync(lock).mtimeMs) {
  process.stderr.write("installing the peers (npm ci --prefix bench)\n");
  const args = ["ci", "--prefix", import.meta.dirname, "--no-audit", "--no-fund"];
  // npm would hand the configuration of the npm that runs us (its prefix, its workspaces) to the one we start.
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("npm_")));
  const { status } = spawnSync("npm", args, { stdio: "inherit", env, cwd: import.meta.dirname });
  if (status !== 0) process.exit(status ?? 1);
}
