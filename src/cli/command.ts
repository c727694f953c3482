/**
 * The type of a command: its name, options, examples and function. Each command has a file in the folder of its group.
 *
 * Not here: the list of commands (registry.ts), the parsing of a line (command-line.ts).
 */
import type { Context } from "./command-context.ts";

export interface Option {
  readonly type: "string" | "boolean";
  readonly short?: string;
  /** May be given several times, or with commas. */
  readonly multiple?: boolean;
  /** Placeholder of the value in the help: <duration>. */
  readonly value?: string;
  readonly help: string;
}

export interface Example {
  readonly line: string;
  readonly says: string;
}

export interface Command {
  readonly name: string;
  readonly summary: string;
  /** Positional arguments, as the usage line shows them: "<id>…". */
  readonly args?: string;
  /** Maximum number of positional arguments; default 0. */
  readonly maxArgs?: number;
  readonly details?: string;
  readonly options?: Readonly<Record<string, Option>>;
  readonly examples?: readonly Example[];
  /** The output with --json, for the help. */
  readonly json?: string;
  readonly subcommands?: readonly Command[];
  /** The subcommand that runs when none is named. */
  readonly fallback?: string;
  /** Not shown in the help. */
  readonly hidden?: boolean;
  /** Returns the exit code; undefined means 0. */
  readonly run?: (ctx: Context) => Promise<number | void>;
}

/** For commands that ask before an action that cannot be reverted (`ctx.confirm`). */
export const FORCE: Readonly<Record<"force", Option>> = {
  force: { type: "boolean", short: "f", help: "Do not ask for confirmation" },
};

/** Options that every command takes. */
export const COMMON_OPTIONS: Readonly<Record<string, Option>> = {
  url: {
    type: "string",
    value: "url",
    help: "Database address: sqlite:jobs.db or postgres://…; default: HOLDFAST_URL, the config's url, DATABASE_URL, sqlite:./holdfast.db",
  },
  schema: {
    type: "string",
    value: "name",
    help: "Postgres schema, or prefix of the SQLite tables; default holdfast",
  },
  config: {
    type: "string",
    short: "c",
    value: "file",
    help: "Config file; default: holdfast.config.ts here or up to 4 folders up",
  },
  "password-env": {
    type: "string",
    value: "name",
    help: "Environment variable that holds the password of the URL",
  },
  json: { type: "boolean", help: "Print JSON" },
  color: { type: "boolean", help: "Use colours even without a terminal; --no-color uses none" },
  help: { type: "boolean", short: "h", help: "Show this help" },
};
