/**
 * Parses a command line, runs its command, and returns the exit code.
 *
 *   argv ─▶ command and subcommand ─▶ options (node:util parseArgs) ─▶ run ─▶ 0 · 1 (failed) · 2 (wrong use)
 *
 * Invariants: an unknown command or option is an error that names the nearest one; every error is one or two lines on
 * standard error (JSON with --json) without a stack; a failure never exits with 0.
 */
import { parseArgs, type ParseArgsOptionsConfig } from "node:util";
import { HoldfastError, isHoldfastError, shown, UsageError } from "../errors.ts";
import { nodeTooOld } from "../node-version.ts";
import { nearest } from "../values/options.ts";
import { VERSION } from "../version.ts";
import { type Command, COMMON_OPTIONS, type Option } from "./command.ts";
import { Context, type Values } from "./command-context.ts";
import { helpFor, overview } from "./help.ts";
import { type Io, painter } from "./io.ts";
import { allCommands, groups } from "./registry.ts";
import { harmless, json, oneLine } from "./text.ts";

/** Runs one command line. Never throws. */
export async function run(argv: readonly string[], io: Io): Promise<number> {
  let ctx: Context | undefined;
  const asked = argv.includes("--json");
  try {
    const paint = painter(io.stdout, io.env, colourOf(argv));
    const [first, ...rest] = leading(argv).after;
    if (argv.length === 0 || first === "help" || first === "--help" || first === "-h")
      return showHelp(rest, io, paint);
    if (first === "--version" || first === "-v" || first === "version") {
      io.stdout.write(`${asked ? json({ version: VERSION }) : VERSION}\n`);
      return 0;
    }
    const { command, path, values, positionals } = understand(argv);
    if (values["help"] === true) {
      io.stdout.write(`${helpFor(command, path, paint)}\n`);
      return 0;
    }
    if (command.run === undefined)
      throw new UsageError(
        "UNKNOWN_COMMAND",
        `holdfast ${path}${command.name} needs a command: ${(command.subcommands ?? []).map(({ name }) => name).join(", ")}.`,
      );
    checkCount(command, path, positionals);
    checkNode(io.node);
    ctx = new Context(io, command, positionals, values, path);
    return (await command.run(ctx)) ?? 0;
  } catch (error) {
    return fail(error, io, ctx, asked);
  } finally {
    await ctx?.close().catch((error: unknown) => fail(error, io, ctx, asked));
  }
}

/**
 * The command that a line names, with its options and arguments.
 *
 * @throws UsageError for an unknown command or option, or a missing value.
 */
export function understand(argv: readonly string[]): {
  command: Command;
  path: string;
  values: Values;
  positionals: string[];
} {
  const { command, path, left } = find(argv);
  return { command, path, ...parse(command, path, left) };
}

function showHelp(words: readonly string[], io: Io, paint: ReturnType<typeof painter>): number {
  const named = words.filter((word) => !word.startsWith("-"));
  if (named.length === 0) {
    io.stdout.write(`${overview(groups, paint)}\n`);
    return 0;
  }
  const { command, path } = find([...named, "--help"]);
  io.stdout.write(`${helpFor(command, path, paint)}\n`);
  return 0;
}

/** The named command or subcommand, and the rest of the line. */
export function find(argv: readonly string[]): { command: Command; path: string; left: readonly string[] } {
  const {
    before,
    after: [name, ...rest],
  } = leading(argv);
  if (name === undefined)
    throw new UsageError("UNKNOWN_COMMAND", "holdfast needs a command. See: holdfast help");
  const command = allCommands.find((one) => one.name === name);
  if (command === undefined) throw unknown(name, allCommands, "");
  const subs = command.subcommands;
  const all = [...before, ...rest];
  if (subs === undefined) return { command, path: "", left: all };
  const {
    before: between,
    after: [subName, ...left],
  } = leading(rest);
  if (subName === undefined || subName.startsWith("-")) {
    const fallback = subs.find((one) => one.name === command.fallback);
    const wantsHelp = rest.includes("--help") || rest.includes("-h");
    return fallback === undefined || wantsHelp
      ? { command, path: "", left: all }
      : { command: fallback, path: `${command.name} `, left: all };
  }
  const sub = subs.find((one) => one.name === subName);
  if (sub === undefined) throw unknown(subName, subs, `${command.name} `);
  return { command: sub, path: `${command.name} `, left: [...before, ...between, ...left] };
}

/** Splits a line after its leading common options and their values. */
function leading(words: readonly string[]): { before: readonly string[]; after: readonly string[] } {
  let at = 0;
  for (let word = words[at]; word !== undefined; word = words[at]) {
    const [, dashes, given = "", value] = /^(--?)(?:no-)?([\w-]+)(=.*)?$/s.exec(word) ?? [];
    const [name, option] =
      Object.entries(COMMON_OPTIONS).find(
        ([long, { short }]) => given === (dashes === "--" ? long : short),
      ) ?? [];
    if (option === undefined || name === "help") break;
    at += option.type === "string" && value === undefined ? 2 : 1;
  }
  return { before: words.slice(0, at), after: words.slice(at) };
}

function unknown(name: string, among: readonly Command[], path: string): UsageError {
  if (name.startsWith("-"))
    return new UsageError(
      "UNKNOWN_COMMAND",
      `Write the option ${oneLine(name, 60)} after the command, as in: holdfast stats --json`,
      { details: { command: name } },
    );
  const names = among.filter(({ hidden }) => hidden !== true).map((one) => one.name);
  const near = nearest(name, names);
  return new UsageError(
    "UNKNOWN_COMMAND",
    `There is no command ${shown(`${path}${name}`)}. ` +
      (near === undefined ? `Commands: ${names.join(", ")}.` : `Did you mean: holdfast ${path}${near}?`),
    { details: { command: name, ...(near === undefined ? {} : { suggestion: near }) } },
  );
}

/** @throws UsageError UNKNOWN_OPTION, BAD_OPTION */
export function parse(
  command: Command,
  path: string,
  left: readonly string[],
): { values: Values; positionals: string[] } {
  const options = { ...COMMON_OPTIONS, ...command.options };
  const config: ParseArgsOptionsConfig = {};
  for (const [name, { type, short, multiple }] of Object.entries(options))
    config[name] = {
      type,
      ...(short === undefined ? {} : { short }),
      ...(multiple === true ? { multiple } : {}),
    };
  try {
    return parseArgs({
      args: [...left],
      options: config,
      allowPositionals: true,
      allowNegative: true,
      strict: true,
    });
  } catch (error) {
    throw badOption(error, `${path}${command.name}`, options, left);
  }
}

/** Node's parse error as ours, with a remedy. */
function badOption(
  error: unknown,
  command: string,
  options: Readonly<Record<string, Option>>,
  line: readonly string[],
): UsageError {
  const message = error instanceof Error ? error.message : String(error);
  // Node names the option as it was written: --limit, -l, or "-l, --limit <value>".
  const [, short, long] = /^Option '(?:-(\w))?(?:, )?(?:--([\w-]+))?/.exec(message) ?? [];
  const of =
    long ?? Object.keys(options).find((name) => short !== undefined && options[name]?.short === short);
  if (of !== undefined) return badValue(error, command, of, options[of], line);
  const [, dashes = "", given = ""] = /^Unknown option '(--?)([^'=]+)/.exec(message) ?? [];
  if (given === "")
    return new UsageError("BAD_OPTION", `holdfast ${command}: ${message.replace(/\.?$/, ".")}`, {
      cause: error,
    });
  const near = nearest(given.replace(/^no-/, ""), Object.keys(options));
  const meant = /^\d/.test(given)
    ? `Write an argument that begins with a dash after --, as in: holdfast ${command} -- -${given}`
    : near === undefined
      ? `See: holdfast help ${command}`
      : `Did you mean --${near}?`;
  return new UsageError("UNKNOWN_OPTION", `holdfast ${command} has no option ${dashes}${given}. ${meant}`, {
    cause: error,
    details: near === undefined ? { option: given } : { option: given, suggestion: near },
  });
}

/** The error for a missing value, a value that looks like an option, or a value given to a flag. */
function badValue(
  cause: unknown,
  command: string,
  name: string,
  option: Option | undefined,
  line: readonly string[],
): UsageError {
  const fault = (text: string): UsageError =>
    new UsageError("BAD_OPTION", `holdfast ${command}: --${name} ${text}`, {
      cause,
      details: { option: name },
    });
  if (option?.type !== "string") return fault("takes no value.");
  const at = line.findIndex(
    (word, i) =>
      (word === `--${name}` || word === `-${option.short}`) && (line[i + 1]?.startsWith("-") ?? true),
  );
  const next = at < 0 ? undefined : line[at + 1];
  const value = `--${name} <${option.value ?? "value"}>`;
  if (next === undefined) return fault(`needs a value: ${value}. See: holdfast help ${command}`);
  return fault(
    `needs a value (${value}), and ${shown(next)} looks like an option. If it is the value, write: --${name}=${oneLine(next, 60)}`,
  );
}

/** Checked first: on an old Node, a config in TypeScript and node:sqlite fail with messages that do not name the cause. */
function checkNode(version: string): void {
  const error = nodeTooOld(version);
  if (error !== null) throw error;
}

export function checkCount(command: Command, path: string, positionals: readonly string[]): void {
  const most = command.maxArgs ?? 0;
  if (positionals.length <= most) return;
  throw new UsageError(
    "BAD_OPTION",
    `holdfast ${path}${command.name} takes ${most === 0 ? "no arguments" : `at most ${most} ${most === 1 ? "argument" : "arguments"}`}; got ${shown(positionals[most])}.`,
  );
}

function colourOf(argv: readonly string[]): boolean | undefined {
  if (argv.includes("--no-color")) return false;
  return argv.includes("--color") ? true : undefined;
}

function fail(error: unknown, io: Io, ctx: Context | undefined, asJson: boolean): number {
  const code = isHoldfastError(error) ? error.code : "INTERNAL";
  const message = error instanceof Error ? error.message : String(error);
  const write = (text: string): void => {
    if (ctx === undefined) io.stderr.write(text);
    else ctx.draw(io.stderr, text);
  };
  if (asJson) write(`${json({ error: { code, message: harmless(message), details: detailsOf(error) } })}\n`);
  else {
    const paint = painter(io.stderr, io.env, undefined);
    write(`${paint("bad", "error")} ${paint("dim", code)}  ${harmless(message)}\n`);
    if (code === "INTERNAL" && error instanceof Error && io.env["HOLDFAST_DEBUG"] === "1")
      write(`${harmless(error.stack ?? "")}\n`);
  }
  return error instanceof UsageError || (isHoldfastError(error) && error.name === "UsageError") ? 2 : 1;
}

function detailsOf(error: unknown): unknown {
  return isHoldfastError(error) && error instanceof HoldfastError ? error.details : {};
}
