// What is copied as a command means the same set of jobs, and what is asked before an action names no other: part by part of
// a filter, and all together.
import { execFileSync } from "node:child_process";
import { beforeAll, describe, expect, test, vi } from "vitest";
import { Context } from "../../src/cli/command-context.ts";
import { checked, filterOf } from "../../src/cli/jobs/filter-options.ts";
import type { Io } from "../../src/cli/io.ts";
import { find, parse } from "../../src/cli/command-line.ts";
import { FilterJson } from "../../src/dashboard/api/contract.ts";
import { ageless, insightFilter } from "../../src/dashboard/api/query.ts";
import { commandOf, filterJson, filterOf as filterInAddress } from "../../ui/src/jobs/job-filter.ts";

const id = "0199c1d8-7c00-7000-8000-000000000000";
const at = Date.parse("2026-01-31T12:00:00.123Z");

/** Values that each part may have; hostile ones among them. */
const values: { readonly [K in keyof Required<FilterJson>]: readonly Required<FilterJson>[K][] } = {
  ids: [[id], [id, id.replace("0199", "0198")]],
  state: [["dead"], ["dead", "done"]],
  queue: [["mail"], ["mail", "media"]],
  name: [["send-mail"]],
  lane: ["acme", "it's $HOME", "-rf", 'a "b" \\ c'],
  key: ["order 7", "--force"],
  workflow: [id],
  batch: [id],
  trace: ["4bf92f3577b34da6a3ce929d0e0e4736"],
  failureGroup: ["0123456789abcdef"],
  retrying: [true],
  search: ["disk full", "state:dead", "-x", "0123456789abcdef"],
  attempt: [">3", "3..5", "=2"],
  age: [">5m", "1h..2h", "<1d"],
  run: [">10s", "<=250ms"],
  ended: [`${at}..${at + 59_999}`, `>=${at}`, `<${at}`, `=${at}`, String(at)],
  worker: ["web-1", 'web "1"', String.raw`a\b`, String.raw`a\\" b`],
  error: ["ECONNREFUSED", "disk full", "0123456789abcdef", 'mailbox "x"', "state:dead", String.raw`C:\"x"\ `],
  payload: [["user.id:42"], ["a.b:x y", 'c:"q"', "d:e:f", String.raw`p:\\`]],
  since: [at],
  until: [at],
};

/** As a shell would take it apart. */
function words(command: string): string[] {
  const out = execFileSync("/bin/sh", ["-c", `for word in ${command}; do printf '%s\\0' "$word"; done`]);
  return out.toString("utf8").split("\0").slice(0, -1);
}

const nowhere = { stdout: {}, stderr: {}, env: {} } as Io;

/** The filter that the command line takes the command for. */
function understood(command: string): unknown {
  const [, ...argv] = words(command);
  const found = find(argv);
  const { values: options, positionals } = parse(found.command, found.path, found.left);
  const ctx = new Context(nowhere, found.command, positionals, options, found.path);
  const look = checked(filterOf(ctx));
  return positionals.length === 0 ? look : { ...look, ids: positionals };
}

function meant(filter: FilterJson): unknown {
  return insightFilter(ageless(filter, Date.now()));
}

describe("copied as a command", () => {
  beforeAll(() => {
    vi.useFakeTimers({ now: at });
    return () => vi.useRealTimers();
  });

  const cases = Object.entries(values).flatMap(([name, given]) =>
    (given as readonly unknown[]).map((value) => ({ name, value })),
  );

  test("there is a value for every parameter of a filter", () => {
    expect(Object.keys(values).sort()).toEqual(Object.keys(FilterJson.properties).sort());
  });

  test.each(cases)("$name $value", ({ name, value }) => {
    const filter = { [name]: value } as FilterJson;
    for (const verb of ["list", "delete", "retry"] as const) {
      const command = commandOf(verb, filter);
      expect(understood(command), command).toEqual(meant(filter));
    }
  });

  test("each part with each other", () => {
    // Ids are whole by themselves.
    const parts = cases.filter(({ name }) => name !== "ids");
    for (const one of parts.filter(({ name }, i) => parts[i - 1]?.name !== name))
      for (const other of parts)
        if (one.name < other.name) {
          const filter = { [one.name]: one.value, [other.name]: other.value } as FilterJson;
          const command = commandOf("delete", filter);
          expect(understoodPlainly(command), command).toEqual(meant(filter));
        }
  });

  test("from the address: what the list shows is what the command means", () => {
    const address = new URLSearchParams();
    for (const [name, [value]] of Object.entries(values))
      if (name !== "ids" && name !== "retrying")
        for (const one of [value].flat()) address.append(name, String(one));
    const filter = filterJson(filterInAddress(address));
    expect(Object.keys(filter)).toHaveLength(Object.keys(FilterJson.properties).length - 2);
    expect(understood(commandOf("delete", filter))).toEqual(meant(filter));
  });
});

/** The same as `understood` without a shell for each: those hundreds would take their time. */
function understoodPlainly(command: string): unknown {
  const argv: string[] = [];
  for (const [, text = ""] of command.matchAll(/((?:'[^']*'|\\'|[^\s'\\])+)/g))
    argv.push(text.replaceAll(/'([^']*)'|\\(')/g, "$1$2"));
  const found = find(argv.slice(1));
  const { values: options, positionals } = parse(found.command, found.path, found.left);
  return checked(filterOf(new Context(nowhere, found.command, positionals, options, found.path)));
}

describe("a filter in words", () => {
  let inWords: (filter: FilterJson) => string;
  beforeAll(async () => {
    vi.stubGlobal("document", { getElementById: () => null, documentElement: { dataset: {} } });
    vi.stubGlobal("matchMedia", () => ({ matches: false, addEventListener: () => {} }));
    // By a name that the compiler does not follow: it would want a browser's types here.
    const { href } = new URL("../../ui/src/jobs/filter-words.ts", import.meta.url);
    ({ inWords } = (await import(href)) as { inWords: typeof inWords });
    return () => vi.unstubAllGlobals();
  });

  test("names every part of it: no two values read the same", () => {
    for (const [name, given] of Object.entries(values)) {
      // A number alone and = with it are one window.
      const different = (given as readonly unknown[]).filter((value) => value !== String(at));
      const said = different.map((value) => inWords({ [name]: value }));
      expect(new Set([inWords({}), ...said]).size, `${name}: ${said.join(", ")}`).toBe(said.length + 1);
    }
    expect(inWords({ state: ["dead"], queue: ["mail"], since: at, until: at + 1_000 })).toMatch(
      /^dead jobs in queue mail created at or after 2026-01-31 \d\d:00:00 created before 2026-01-31 \d\d:00:01$/,
    );
  });
});
