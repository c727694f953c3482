/**
 * Finds and loads holdfast.config.ts: here, or up to four folders up; TypeScript runs as it is (Node strips types).
 *
 * Invariants: an unknown setting is refused by name; a load error names the file and the cause; the config is never printed.
 */
import { existsSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { HoldfastConfig } from "../config.ts";
import { isHoldfastError, shown, UsageError } from "../errors.ts";
import { checkOptions, isPlainObject } from "../values/options.ts";

const names = ["ts", "mts", "js", "mjs"].map((ending) => `holdfast.config.${ending}`);
const levelsUp = 4;
const keys = ["url", "passwordEnv", "open", "jobs", "work", "schedules", "setup", "manifest", "server"];

export interface LoadedConfig {
  /** Null without a config. */
  readonly path: string | null;
  readonly config: HoldfastConfig;
}

/** The file's path, or null. Searches each folder and its folder `config`. */
export function findConfig(cwd: string, levels: number = levelsUp): string | null {
  let folder = resolve(cwd);
  for (let level = 0; level <= levels; level += 1) {
    for (const place of [folder, join(folder, "config")])
      for (const name of names) if (existsSync(join(place, name))) return join(place, name);
    const parent = dirname(folder);
    if (parent === folder) return null;
    folder = parent;
  }
  return null;
}

/**
 * @throws UsageError BAD_CONFIG
 */
export async function loadConfig(
  cwd: string,
  given: string | undefined,
  levels: number = levelsUp,
): Promise<LoadedConfig> {
  const path = given === undefined ? findConfig(cwd, levels) : resolve(cwd, given);
  if (path === null) return { path: null, config: {} };
  if (!existsSync(path)) throw bad(`There is no config file ${path}.`);
  if (given === undefined) checkOwner(path);
  let module: { default?: unknown };
  try {
    module = (await import(pathToFileURL(path).href)) as { default?: unknown };
  } catch (cause) {
    const message = cause instanceof Error ? cause.message : String(cause);
    throw bad(`${path} cannot be loaded: ${message}`, cause);
  }
  const config = module.default;
  if (!isPlainObject(config))
    throw bad(`${path} must export a config: export default defineConfig({ … }); got ${shown(config)}.`);
  try {
    checkOptions(config, keys, path);
  } catch (error) {
    throw isHoldfastError(error) ? bad(error.message, error) : error;
  }
  if (config["jobs"] !== undefined && !Array.isArray(config["jobs"]))
    throw bad(`${path}: jobs must be an array of definitions; got ${shown(config["jobs"])}.`);
  return { path, config };
}

/**
 * A config that was found, not named, must belong to this user or root: loading it runs it, and others may write into a folder
 * above, such as /tmp.
 */
export function checkOwner(path: string, me: number | undefined = process.getuid?.()): void {
  if (me === undefined) return; // Windows
  const { uid } = statSync(path);
  if (uid !== me && uid !== 0)
    throw bad(`${path} belongs to another user, so it is not run. If you trust it, name it with --config.`);
}

function bad(message: string, cause?: unknown): UsageError {
  return new UsageError("BAD_CONFIG", message, cause === undefined ? {} : { cause });
}
