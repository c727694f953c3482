/**
 * Chooses the database (the flag, the environment, the config, the default, in this order) and hides its secrets.
 *
 * Pure but for its arguments. Not here: opening it (command-context.ts).
 */
import { dirname, resolve } from "node:path";
import type { HoldfastConfig } from "../config.ts";
import { UsageError } from "../errors.ts";
import { DEFAULT_SCHEMA } from "../values/name.ts";
import { withoutSecrets } from "../operate/index.ts";

export interface Target {
  readonly url: string;
  readonly schema: string;
  /** The source of the address. */
  readonly from: string;
  /** The address without secrets. */
  readonly place: string;
  /** Texts that must never be printed. */
  readonly secrets: readonly string[];
}

export interface TargetInput {
  readonly flags: { readonly url?: string; readonly schema?: string; readonly "password-env"?: string };
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly config: HoldfastConfig;
  readonly configPath: string | null;
}

/** @throws UsageError BAD_URL, BAD_CONFIG */
export function resolveTarget({ flags, env, config, configPath }: TargetInput): Target {
  // An unset shell variable: the command must not fall back to another database.
  if (flags.url?.trim() === "")
    throw new UsageError("BAD_URL", "--url is empty. Give an address, or omit the option.");
  const candidates: readonly (readonly [string | undefined, string])[] = [
    [flags.url, "--url"],
    [env["HOLDFAST_URL"], "HOLDFAST_URL"],
    [relativeTo(config.url, configPath), "the config file"],
    [env["DATABASE_URL"], "DATABASE_URL"],
    ["sqlite:./holdfast.db", "the default"],
  ];
  const [given, from] = candidates.find(([url]) => url !== undefined && url !== "") as readonly [
    string,
    string,
  ];
  const passwordEnv = flags["password-env"] ?? config.passwordEnv;
  const url = passwordEnv === undefined ? given : withPassword(given, passwordEnv, env);
  return {
    url,
    from,
    schema: flags.schema ?? config.open?.schema ?? DEFAULT_SCHEMA,
    place: withoutSecrets(url),
    secrets: secretsOf(url),
  };
}

/** A relative file in the config is relative to the config. */
function relativeTo(url: string | undefined, configPath: string | null): string | undefined {
  const match = /^(sqlite|file):(?!\/\/|:memory:|\/)(.+)$/.exec(url ?? "");
  if (url === undefined || configPath === null || match === null) return url;
  return `sqlite:${resolve(dirname(configPath), match[2] as string)}`;
}

function withPassword(url: string, name: string, env: TargetInput["env"]): string {
  if (!/^postgres(ql)?:\/\//.test(url)) return url;
  const password = env[name];
  if (password === undefined || password === "")
    throw new UsageError(
      "BAD_CONFIG",
      `The environment variable ${name}, which should hold the password, is not set.`,
    );
  const [, , more = ""] = MORE_HOSTS.exec(url) ?? [];
  const one = url.replace(MORE_HOSTS, "$1");
  // The error of `new URL` has the whole URL as `input`.
  if (!URL.canParse(one)) throw new UsageError("BAD_URL", "The Postgres URL is not valid.");
  const parsed = new URL(one);
  parsed.password = encodeURIComponent(password);
  return parsed.href.replace(/^\w+:\/\/[^/?]*/, (head) => head + more);
}

/** A Postgres URL may name several hosts, which `URL` refuses. */
const MORE_HOSTS = /^(\w+:\/\/(?:[^/?@]*@)*[^/?,@]*)(,[^/?]*)/;

/** Passwords in a URL, encoded and decoded. */
export function secretsOf(url: string): string[] {
  try {
    const parsed = new URL(url.replace(MORE_HOSTS, "$1"));
    const found = [parsed.password, parsed.searchParams.get("password") ?? ""];
    return [...new Set(found.flatMap((text) => [text, safeDecode(text)]))].filter((text) => text !== "");
  } catch {
    // No URL: what stands between the user and the last @ is taken for the password.
    const [, password = ""] = /^[^/]*\/\/[^:]*:([^]*)@/.exec(url) ?? [];
    return password === "" ? [] : [password];
  }
}

function safeDecode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
