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
  /** What stands for the value in the help: <duration>. */
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
  /** How many positional arguments there may be; default none. */
  readonly maxArgs?: number;
  readonly details?: string;
  readonly options?: Readonly<Record<string, Option>>;
  readonly examples?: readonly Example[];
  /** What it prints with --json, for the help. */
  readonly json?: string;
  readonly subcommands?: readonly Command[];
  /** Runs when none is named. */
  readonly fallback?: string;
  /** Not shown. */
  readonly hidden?: boolean;
  /** Gives the exit code; nothing means 0. */
  readonly run?: (ctx: Context) => Promise<number | void>;
}

/** For commands that ask before an action that cannot be reverted (`ctx.confirm`). */
export const FORCE: Readonly<Record<"force", Option>> = {
  force: { type: "boolean", short: "f", help: "Do not ask" },
};

/** Options that every command takes. */
export const COMMON_OPTIONS: Readonly<Record<string, Option>> = {
  url: {
    type: "string",
    value: "url",
    help: "The database: sqlite:jobs.db or postgres://…; else HOLDFAST_URL, the config's url, DATABASE_URL, sqlite:./holdfast.db",
  },
  schema: {
    type: "string",
    value: "name",
    help: "Postgres schema, or prefix of SQLite's tables; default holdfast",
  },
  config: {
    type: "string",
    short: "c",
    value: "file",
    help: "The config file; else holdfast.config.ts here or up to 4 folders up",
  },
  "password-env": {
    type: "string",
    value: "name",
    help: "The environment variable with the password of the URL",
  },
  json: { type: "boolean", help: "Print JSON" },
  color: { type: "boolean", help: "Colours, also where there is no terminal; --no-color: none" },
  help: { type: "boolean", short: "h", help: "Show this" },
};
