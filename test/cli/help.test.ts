// The help texts, each as a snapshot: a change of an option shows in the diff. And what happens to mistakes.
import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { type Command, COMMON_OPTIONS } from "../../src/cli/command.ts";
import { allCommands } from "../../src/cli/registry.ts";
import { checkCount, understand } from "../../src/cli/command-line.ts";
import { cli } from "./support.ts";

const paths = allCommands.flatMap((command) => [
  [command.name],
  ...(command.subcommands ?? []).map((sub) => [command.name, sub.name]),
]);

test("the overview", async () => {
  const { code, out } = await cli(["--help"]);
  expect(code).toBe(0);
  await expect(out.replace(/\d+\.\d+\.\d+/, "VERSION")).toMatchFileSnapshot("snapshots/overview.txt");
});

test.each(paths.map((path) => [path.join(" "), path] as const))("holdfast %s --help", async (name, path) => {
  const { code, out } = await cli([...path, "--help"]);
  expect(code).toBe(0);
  expect((await cli(["help", ...path])).out).toBe(out);
  await expect(out).toMatchFileSnapshot(`snapshots/${name.replaceAll(" ", "-")}.txt`);
});

/** The words of a line in a shell, up to where another command begins. */
function words(line: string): string[] {
  const found = [...line.matchAll(/'([^']*)'|"([^"]*)"|(&&|>>?|\|)|(\S+)/g)];
  const end = found.findIndex(([, , , next]) => next !== undefined);
  return found
    .slice(0, end < 0 ? found.length : end)
    .map(([, single, double, , bare]) => single ?? double ?? bare ?? "");
}

test("[K4] every example of every help is a line that the parser takes, with as many arguments as it may have", () => {
  let seen = 0;
  for (const command of allCommands)
    for (const one of [command, ...(command.subcommands ?? [])])
      for (const { line, says } of one.examples ?? []) {
        const argv = words(line.replace(/^HOLDFAST_TOKEN=\S+ holdfast /, ""));
        const { command: called, path, positionals } = understand(argv);
        expect([line, called.run !== undefined]).toEqual([line, true]);
        checkCount(called, path, positionals);
        // What must be there is there: <name>, but not [<name>].
        const needed = (called.args ?? "").replaceAll(/\[[^\]]*\]/g, "").match(/<[^>]+>/g)?.length ?? 0;
        expect([line, positionals.length >= needed]).toEqual([line, true]);
        expect([line, says.length > 0]).toEqual([line, true]);
        seen += 1;
      }
  expect(seen).toBeGreaterThan(100);
  // Of the words of a shell no more is known than these lines need.
  expect(words(`jobs list --where 'a b' --x "c d" | jq .`)).toEqual([
    "jobs",
    "list",
    "--where",
    "a b",
    "--x",
    "c d",
  ]);
  expect(() => understand(words("jobs list --quue x"))).toThrow(/Did you mean --queue/);
});

test("[K4] every command says what it prints as JSON and has an example that is one of its own lines", () => {
  for (const command of allCommands)
    for (const one of command.subcommands ?? [command]) {
      const path = one === command ? command.name : `${command.name} ${one.name}`;
      expect(one.json, path).toBeDefined();
      expect(one.examples?.length ?? 0, path).toBeGreaterThan(0);
      expect(
        one.examples?.some(
          ({ line }) => line === path || line.includes(`${path} `) || path.startsWith(`${line} `),
        ),
        path,
      ).toBe(true);
    }
});

test("[K4] an unknown command names the nearest and exits with 2", async () => {
  expect(await cli(["jbos"])).toMatchObject({
    code: 2,
    out: "",
    err: expect.stringContaining("Did you mean: holdfast jobs?") as string,
  });
  expect(await cli(["jobs", "lst"])).toMatchObject({
    code: 2,
    err: expect.stringContaining("holdfast jobs list") as string,
  });
  expect(await cli(["xyzzy"])).toMatchObject({
    code: 2,
    err: expect.stringContaining("Commands: init") as string,
  });
  const { code, err } = await cli(["xyzzy", "--json"]);
  expect(code).toBe(2);
  expect(JSON.parse(err)).toMatchObject({ error: { code: "UNKNOWN_COMMAND" } });
});

test("[K4] an unknown option names the nearest, a missing value and too many arguments are refused, all with 2", async () => {
  expect(await cli(["jobs", "list", "--quue", "x"])).toMatchObject({
    code: 2,
    err: expect.stringContaining("Did you mean --queue?") as string,
  });
  expect((await cli(["jobs", "list", "--queue"])).code).toBe(2);
  expect((await cli(["stats", "more"])).code).toBe(2);
  expect((await cli(["jobs", "list", "--limit", "many"])).code).toBe(2);
  expect((await cli(["jobs", "list", "--url", "mysql://x/y"])).code).toBe(2);
});

test("a Node that is too old is said to be, and not what fails of it", async () => {
  expect(await cli(["status"], { node: "v20.20.2" })).toMatchObject({
    code: 1,
    out: "",
    err: "error NODE_TOO_OLD  Node v20.20.2 is too old for holdfast. Use Node 22.18 or newer.\n",
  });
  expect((await cli(["status", "--help"], { node: "v20.20.2" })).code).toBe(0);
});

test("the version", async () => {
  expect((await cli(["--version"])).out).toMatch(/^\d+\.\d+\.\d+\n$/);
  expect((await cli(["version", "--json"])).json()).toMatchObject({ version: expect.any(String) as string });
});

test("completion names every command and option, in each shell", async () => {
  for (const shell of ["bash", "zsh", "fish"]) {
    const { code, out } = await cli(["completion", shell]);
    expect(code).toBe(0);
    for (const { name } of allCommands) expect(out).toContain(name);
    for (const word of ["dry-run", "print-sql", "concurrency"]) expect(out).toContain(word);
  }
  expect((await cli(["completion", "powershell"])).code).toBe(2);
});

test("completion: bash offers what fits, zsh completes at its first call too, fish knows which options take a value", async () => {
  const script = (await cli(["completion", "bash"])).out;
  const offered = (words: readonly string[]): string[] =>
    execFileSync("bash", [
      "-c",
      `${script}\nCOMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _holdfast; printf '%s\\n' "\${COMPREPLY[@]}"`,
      "bash",
      ...words,
    ])
      .toString()
      .split("\n")
      .filter((word) => word !== "");
  expect(offered(["holdfast", "das"])).toEqual(["dashboard"]);
  expect(offered(["holdfast", "jobs", "lo"])).toEqual(["logs"]);
  expect(offered(["holdfast", "jobs", "logs", "--le"])).toEqual(["--level"]);
  const zsh = (await cli(["completion", "zsh"])).out;
  expect(zsh).toContain('if [[ "${funcstack[1]}" = _holdfast ]]; then\n  _holdfast "$@"');
  const fish = (await cli(["completion", "fish"])).out;
  expect(fish).toContain("-l config -s c -r -F");
  expect(fish).toMatch(
    /-n '__fish_seen_subcommand_from jobs; and not __fish_seen_subcommand_from list .*' -a list/,
  );
  expect(fish).toMatch(/from work' -l once -d/);
});

test("[K4] every option that takes a value says so in our words when it has none, or one that looks like an option", async () => {
  const said = async (...argv: string[]): Promise<string> => {
    const { code, out, err } = await cli(argv);
    expect([argv, code, out]).toEqual([argv, 2, ""]);
    return err;
  };
  const walk = async (command: Command, path: readonly string[]): Promise<void> => {
    const line = [...path, command.name];
    for (const sub of command.subcommands ?? []) await walk(sub, line);
    if (command.run === undefined) return;
    for (const [name, option] of Object.entries({ ...COMMON_OPTIONS, ...command.options })) {
      if (option.type === "boolean") {
        expect(await said(...line, `--${name}=1`)).toContain(`: --${name} takes no value.`);
        continue;
      }
      for (const word of [`--${name}`, ...(option.short === undefined ? [] : [`-${option.short}`])]) {
        expect(await said(...line, word)).toContain(
          `: --${name} needs a value: --${name} <${option.value}>.`,
        );
        expect(await said(...line, word, "-1")).toContain(
          `--${name} needs a value (--${name} <${option.value}>), and "-1" looks like an option. If it is the value, write: --${name}=-1`,
        );
      }
    }
  };
  for (const command of allCommands) await walk(command, []);
  expect(await said("jobs", "list", "-5")).toContain(
    "has no option -5. Write an argument that begins with a dash after --",
  );
});

test("options that every command takes may stand before the command", async () => {
  for (const line of [
    "--url sqlite:x.db stats --json",
    "--url=sqlite:x.db --no-color stats",
    "-c my.config.ts jobs --url sqlite:x.db list",
    "--json --schema other jobs --state dead",
  ]) {
    const { command, positionals } = understand(words(line));
    expect([line, command.run !== undefined, positionals]).toEqual([line, true, []]);
  }
  expect(understand(words("-c a.ts jobs --url sqlite:x.db list -l 5")).values).toEqual({
    config: "a.ts",
    url: "sqlite:x.db",
    limit: "5",
  });
  expect((await cli(["--no-color", "help", "stats"])).out).toBe((await cli(["help", "stats"])).out);
  expect((await cli(["--json", "--version"])).out).toBe((await cli(["--version", "--json"])).out);
  expect(() => understand(words("--queue mail jobs list"))).toThrow(/Write the option --queue after/);
  expect(() => understand(words("--url sqlite:x.db"))).toThrow(/needs a command/);
  expect((await cli(["--url"])).code).toBe(2);
});
