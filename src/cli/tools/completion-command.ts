/** `holdfast completion`: scripts for bash, zsh and fish, generated from the commands. */
import { UsageError } from "../../errors.ts";
import { type Command, COMMON_OPTIONS, type Option } from "../command.ts";

/** `commands` is a function, because the registry includes this command. */
export function completionFor(commands: () => readonly Command[]): Command {
  return {
    name: "completion",
    summary: "print a completion script for your shell",
    args: "<bash | zsh | fish>",
    maxArgs: 1,
    json: "{ shell, script }",
    examples: [
      { line: "completion bash >> ~/.bashrc", says: "bash" },
      { line: "completion zsh > ~/.zfunc/_holdfast", says: "zsh, with that folder in fpath" },
      { line: "completion fish > ~/.config/fish/completions/holdfast.fish", says: "fish" },
    ],
    run: async (ctx) => {
      const shell = ctx.argument(0, "a shell: bash, zsh or fish");
      const make = { bash, zsh, fish }[shell];
      if (make === undefined)
        throw new UsageError(
          "BAD_OPTION",
          `completion takes bash, zsh or fish; got ${JSON.stringify(shell)}.`,
        );
      const script = make(commands().filter(({ hidden }) => hidden !== true));
      ctx.result({ shell, script }, () => script);
    },
  };
}

function optionsOf(command: Command): string[] {
  return Object.keys({ ...command.options, ...COMMON_OPTIONS }).map((name) => `--${name}`);
}

/** "jobs" → its own words, "jobs list" → the options of that. */
function words(commands: readonly Command[]): (readonly [string, string])[] {
  return commands.flatMap((command) => [
    [
      command.name,
      [...(command.subcommands ?? []).map(({ name }) => name), ...optionsOf(command)].join(" "),
    ] as const,
    ...(command.subcommands ?? []).map(
      (sub) => [`${command.name} ${sub.name}`, optionsOf(sub).join(" ")] as const,
    ),
  ]);
}

function bash(commands: readonly Command[]): string {
  const cases = words(commands)
    .toReversed()
    .map(([path, found]) => `    "${path}"|"${path} "*) found="${found}" ;;`)
    .join("\n");
  return `# holdfast: completion for bash
_holdfast() {
  local line="\${COMP_WORDS[*]:1:COMP_CWORD-1}" current="\${COMP_WORDS[COMP_CWORD]}" found
  case "$line" in
    "") found="${commands.map(({ name }) => name).join(" ")} help --version --help" ;;
${cases}
    *) found="" ;;
  esac
  COMPREPLY=($(compgen -W "$found" -- "$current"))
}
complete -o default -F _holdfast holdfast`;
}

function zsh(commands: readonly Command[]): string {
  const cases = words(commands)
    .toReversed()
    .map(([path, found]) => `    "${path}"|"${path} "*) found=(${found}) ;;`)
    .join("\n");
  return `#compdef holdfast
# holdfast: completion for zsh
_holdfast() {
  local -a found
  local line="\${(j: :)words[2,CURRENT-1]}"
  case "$line" in
    "") found=(${commands.map(({ name }) => name).join(" ")} help) ;;
${cases}
  esac
  compadd -- $found
}
# From a folder in fpath this file is itself the function, at its first call; sourced, it registers it.
if [[ "\${funcstack[1]}" = _holdfast ]]; then
  _holdfast "$@"
else
  compdef _holdfast holdfast
fi`;
}

/** `-r`: a value follows; `-F`: it is a file. */
function flagsOf(name: string, { short, type }: Option): string {
  const value = type === "string" ? (name === "config" ? " -r -F" : " -r") : "";
  return `-l ${name}${short === undefined ? "" : ` -s ${short}`}${value}`;
}

function fish(commands: readonly Command[]): string {
  const quoted = (text: string): string => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
  const lines = ["# holdfast: completion for fish", "complete -c holdfast -f"];
  for (const { name, summary, subcommands, options } of commands) {
    lines.push(`complete -c holdfast -n __fish_use_subcommand -a ${name} -d ${quoted(summary)}`);
    const within = quoted(`__fish_seen_subcommand_from ${name}`);
    const subs = (subcommands ?? []).map((sub) => sub.name).join(" ");
    const first = quoted(`__fish_seen_subcommand_from ${name}; and not __fish_seen_subcommand_from ${subs}`);
    for (const sub of subcommands ?? [])
      lines.push(`complete -c holdfast -n ${first} -a ${sub.name} -d ${quoted(sub.summary)}`);
    const own = Object.assign(
      {},
      options,
      ...(subcommands ?? []).map((sub) => sub.options ?? {}),
    ) as NonNullable<Command["options"]>;
    for (const [option, one] of Object.entries(own))
      lines.push(`complete -c holdfast -n ${within} ${flagsOf(option, one)} -d ${quoted(one.help)}`);
  }
  for (const [option, one] of Object.entries(COMMON_OPTIONS))
    lines.push(`complete -c holdfast ${flagsOf(option, one)} -d ${quoted(one.help)}`);
  return lines.join("\n");
}
