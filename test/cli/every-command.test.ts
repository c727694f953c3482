// Every command there is, once with --json and once for people: what it prints is what it promises, nothing of it can harm a
// terminal, and what changes something says so on the audit trail.
import { expect, test } from "vitest";
import { ACTOR } from "../../src/cli/audit-record.ts";
import { allCommands } from "../../src/cli/registry.ts";
import { onEveryStore } from "../support/stores.ts";
import { connect } from "../support/test-clients.ts";
import { dangerous, evil, scene, type Scene, type Stop, tour, visit } from "./tour.ts";
import { operatorOf } from "../../src/operate/operator.ts";

/** Commands that the tour leaves out, and where they are tried instead. */
const elsewhere = new Set(["demo"]); // it starts processes: test/cli/work.test.ts

/** What has no line of its own on the trail, though it writes. */
const silent = new Set([
  // An operation writes its own, by whoever steers it (test/cli/operations.test.ts); this one is over.
  "operations pause",
  "operations stop",
  "operations resume",
  // No database yet, or none any more; `open` migrates without a line as well.
  "init",
  "create",
  "migrate",
  "drop",
  // On the trail of the target: see below.
  "move",
  // Its jobs leave nothing behind; a worker's own life is no action.
  "bench-probe",
  "work",
  "budgets reset", // here it has nothing to do
]);

/** By name, those that only look. */
const looks =
  /^(?:.* )?(list|show|history|logs|preview|runs|upkeep|drained|status|stats|top|metrics|events|doctor|dashboard|why|check|completion)$/;

const pathOf = (argv: readonly string[]): string =>
  allCommands.some(({ name, subcommands }) => name === argv[0] && subcommands !== undefined)
    ? argv.slice(0, 2).join(" ")
    : (argv[0] ?? "");

const runnable = allCommands.flatMap((command) =>
  command.subcommands === undefined
    ? [command.name]
    : command.subcommands.map(({ name }) => `${command.name} ${name}`),
);

onEveryStore((target) => {
  test("[K4] every command prints JSON alone with --json, and every one that changes something leaves its line on the audit trail", async () => {
    const [set, fresh] = [await scene(target), await target.fresh()];
    const stops = tour(set, fresh);
    expect([...new Set(stops.map(({ argv }) => pathOf(argv))), ...elsewhere].sort()).toEqual(
      [...runnable].sort(),
    );
    for (const stop of stops) {
      const name = stop.argv.join(" ");
      const before = stop.leaves === undefined ? [] : await trail(set, fresh, stop);
      const ran = await visit(set, stop, fresh, ["--json"]);
      expect([name, ran.code, ran.code === 0 ? "" : ran.err]).toEqual([
        name,
        stop.code ?? 0,
        expect.any(String),
      ]);
      if (ran.code === (stop.code ?? 0))
        expect(() => parsed(stop, ran.out), `${name}: ${ran.out}`).not.toThrow();
      expect(ran.out + ran.err, name).not.toMatch(dangerous);

      const path = pathOf(stop.argv);
      if (stop.leaves === undefined) {
        expect(
          looks.test(path) || silent.has(path) || name.includes("--dry-run"),
          `${name} leaves a line`,
        ).toBe(true);
        continue;
      }
      // The end of a drain has a line of its own, by nobody.
      const lines = (await trail(set, fresh, stop))
        .slice(stop.moved === true ? 0 : before.length)
        .filter(([actor]) => actor === ACTOR);
      const [action, on, outcome] = stop.leaves;
      expect([name, lines.map((line) => line.slice(0, 4))]).toEqual([name, [[ACTOR, action, on, outcome]]]);
      // What jobs get and what signals carry stays off the trail.
      expect(lines[0]?.[4], name).not.toContain("hush");
    }
  });

  test("[K4] no command lets hostile data through to a terminal: names, inputs, outputs, errors, stacks, log lines, notes", async () => {
    const [set, fresh] = [await scene(target), await target.fresh()];
    let shown = "";
    for (const stop of tour(set, fresh)) {
      const name = stop.argv.join(" ");
      const { code, out, err } = await visit(set, stop, fresh, []);
      expect([name, code, code === 0 ? "" : err]).toEqual([name, stop.code ?? 0, expect.any(String)]);
      expect([name, (out + err).replaceAll(evil, "EVIL")]).toEqual([
        name,
        expect.not.stringMatching(dangerous),
      ]);
      shown += out;
    }
    // It was there to be seen.
    for (const word of ["said a", "failed a", "context a", "step a", "lane a", "red"])
      expect(shown, word).toContain(word);
  });
});

/** @throws SyntaxError */
function parsed(stop: Stop, out: string): unknown {
  if (stop.lines !== true) return JSON.parse(out);
  const lines = out.split("\n").filter((line) => line !== "");
  if (lines.length === 0 && stop.argv[0] !== "jobs") throw new SyntaxError("It printed nothing.");
  return lines.map((line) => JSON.parse(line) as unknown);
}

/** The trail, oldest first: who, action, target, outcome, details. */
async function trail(set: Scene, fresh: Scene["store"], stop: Stop): Promise<readonly (string | null)[][]> {
  const hf = stop.moved === true ? await connect(fresh) : set.hf;
  const lines = await operatorOf(hf).store.insight.audit({ limit: 1_000, before: null });
  return lines
    .toReversed()
    .map(({ actor, action, target: on, outcome, details }) => [actor, action, on, outcome, details ?? ""]);
}
