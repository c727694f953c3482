/** The texts of --help: the overview and one text for each command. Pure. */
import { type Command, COMMON_OPTIONS, type Option } from "./command.ts";
import type { Paint } from "./io.ts";
import { wrap } from "./text.ts";
import { VERSION } from "../version.ts";

export interface CommandGroup {
  readonly title: string;
  readonly commands: readonly Command[];
}

const width = 100;

export function overview(groups: readonly CommandGroup[], paint: Paint): string {
  const all = groups.flatMap(({ commands }) => commands);
  const left = Math.max(...all.map(({ name }) => name.length)) + 2;
  const lines = [
    `${paint("bold", "holdfast")} ${VERSION}: durable jobs on SQLite and Postgres`,
    "",
    "Usage: holdfast <command> [options]",
  ];
  for (const { title, commands } of groups) {
    lines.push("", paint("bold", title));
    for (const { name, summary, hidden } of commands)
      if (hidden !== true) lines.push(`  ${name.padEnd(left)}${summary}`);
  }
  lines.push(
    "",
    "holdfast help <command> shows options and examples. Every command takes --url, --json and --config.",
    "Exit codes: 0 success, 1 failure or a problem found, 2 wrong use.",
  );
  return lines.join("\n");
}

/** `path` is the text before the command: "" or "jobs ". */
export function helpFor(command: Command, path: string, paint: Paint): string {
  const full = `${path}${command.name}`;
  const lines = [`${paint("bold", `holdfast ${full}`)}: ${command.summary}`, ""];
  if (command.subcommands === undefined || command.run !== undefined) lines.push(usage(full, command));
  for (const sub of command.subcommands ?? []) lines.push(usage(`${full} ${sub.name}`, sub));
  if (command.details !== undefined) lines.push("", wrap(command.details, width));
  if (command.subcommands !== undefined) {
    const left = Math.max(...command.subcommands.map(({ name }) => name.length)) + 2;
    lines.push("", paint("bold", "Commands"));
    for (const sub of command.subcommands) lines.push(`  ${sub.name.padEnd(left)}${sub.summary}`);
    const [first] = command.subcommands;
    lines.push("", `holdfast help ${full} <command> shows the options of one command.`);
    if (first?.name === "list") lines.push(`holdfast ${full} means holdfast ${full} list.`);
  }
  const own = Object.entries(command.options ?? {});
  // An option of the command replaces the common one of the same name.
  const common = Object.entries(COMMON_OPTIONS).filter(([name]) => command.options?.[name] === undefined);
  if (own.length > 0) lines.push("", paint("bold", "Options"), ...optionLines(own));
  lines.push("", paint("bold", "Common options"), ...optionLines(common));
  if (command.json !== undefined) lines.push("", `${paint("bold", "JSON")}  ${command.json}`);
  const examples = [
    ...(command.examples ?? []),
    ...(command.subcommands ?? []).flatMap((sub) => sub.examples ?? []),
  ];
  if (examples.length > 0) {
    lines.push("", paint("bold", "Examples"));
    for (const { line, says } of examples)
      lines.push(
        `  ${paint("dim", `# ${says}`)}`,
        `  ${line.startsWith("HOLDFAST_") ? "" : "holdfast "}${line}`,
      );
  }
  return lines.join("\n");
}

function usage(full: string, command: Command): string {
  return `Usage: holdfast ${full}${command.args === undefined ? "" : ` ${command.args}`}${Object.keys(command.options ?? {}).length > 0 ? " [options]" : ""}`;
}

function optionLines(options: readonly (readonly [string, Option])[]): string[] {
  const heads = options.map(([name, { short, value, type }]) => {
    const head = `${short === undefined ? "    " : `-${short}, `}--${name}`;
    return type === "string" ? `${head} <${value ?? "text"}>` : head;
  });
  const left = Math.max(...heads.map(({ length }) => length)) + 2;
  return options.map(([, { help }], i) => {
    const text = wrap(help, Math.max(40, width - left - 2)).split("\n");
    return text.map((line, n) => `  ${(n === 0 ? (heads[i] ?? "") : "").padEnd(left)}${line}`).join("\n");
  });
}
