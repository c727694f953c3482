// The help texts, each as a snapshot: a change of an option shows in the diff. And what happens to mistakes.
import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { allCommands } from "../../src/cli/registry.ts";
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

test("[K4] every command says what it prints as JSON and has an example that is one of its own lines", () => {
  for (const command of allCommands)
    for (const one of command.subcommands ?? [command]) {
      const path = one === command ? command.name : `${command.name} ${one.name}`;
      expect(one.json, path).toBeDefined();
      expect(one.examples?.length ?? 0, path).toBeGreaterThan(0);
      expect(one.examples?.[0]?.line, path).toContain(path.split(" ")[0]);
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
    err: expect.stringContaining("There are: init") as string,
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
