// Who may import whom (ARCHITECTURE.md says why). The table is the rule; the code below only applies it.
import { expect, test } from "vitest";
import { importsOf, sourceFiles, type Import } from "../support/repository.ts";

/** Lowest first. A unit is a file or a folder directly in src; it may import its own layer and those below. */
const layers: readonly (readonly string[])[] = [
  ["policy", "errors", "clock"],
  ["job", "decision", "transition"],
  ["store", "insight", "queue-settings", "serving", "logger", "events"],
  ["sql"],
  ["sqlite", "postgres"],
  ["(client)"], // holdfast, attempt, lease, worker, maintenance, flow, and every unit not named here
  ["index"],
  ["testing", "dashboard", "otel", "prometheus"],
  ["cli"],
];

/** Pure units: they import nothing but these (and nothing of Node's that touches the world). */
const pure: Readonly<Record<string, readonly string[]>> = {
  policy: ["policy", "errors", "clock"],
  transition: ["policy", "errors", "clock", "job", "decision"],
};
const impurePackages =
  /^(node:(fs|net|http|https|child_process|worker_threads|sqlite|os|timers|process)\b|pg$)/;

const dialects = ["sqlite", "postgres"];
/** The only files outside a dialect that load one: the factory, lazily, and the renewal thread, which has its own connection. */
const dialectLoaders = [/^sql\/open\.ts$/, /^(lease|renewal)[\w/-]*thread\.ts$/];

/** A driver is imported, as a value, by one file. */
const drivers = ["pg", "node:sqlite", "better-sqlite3"];

const files = sourceFiles();
const { internal, external } = importsOf(files);

test("no layer imports upward", () => {
  const upward = internal.filter(({ from, to, kind }) => {
    if (kind === "dynamic" && mayLoadDialect(from) && dialects.includes(unitOf(to))) return false;
    return layerOf(to) > layerOf(from);
  });
  expect(upward.map(shown)).toEqual([]);
});

test("policy and transition are pure", () => {
  const impure = internal.filter(({ from, to }) => {
    const allowed = pure[unitOf(from)];
    return allowed !== undefined && unitOf(to) !== unitOf(from) && !allowed.includes(unitOf(to));
  });
  expect(impure.map(shown)).toEqual([]);
  const worldly = external.filter((edge) => unitOf(edge.from) in pure && impurePackages.test(edge.package));
  expect(worldly.map((edge) => `${edge.from} → ${edge.package}`)).toEqual([]);
});

test("a dialect is imported only by itself, by sql/open.ts and by the renewal thread", () => {
  const leaks = internal.filter(({ from, to, kind }) => {
    const dialect = unitOf(to);
    if (!dialects.includes(dialect) || unitOf(from) === dialect) return false;
    return !(mayLoadDialect(from) && (kind === "dynamic" || !from.startsWith("sql/")));
  });
  expect(leaks.map(shown)).toEqual([]);
});

test("each driver is imported by one file at most", () => {
  for (const driver of drivers) {
    const users = new Set(
      external.filter((edge) => edge.package === driver && edge.kind !== "type").map((edge) => edge.from),
    );
    expect(users.size, `${driver} is imported by ${[...users].join(", ")}`).toBeLessThan(2);
  }
});

test("there are no cycles, not even of types", () => {
  const edges = new Map<string, string[]>();
  for (const { from, to, kind } of internal) {
    if (kind !== "dynamic") edges.set(from, [...(edges.get(from) ?? []), to]);
  }
  expect(cycleIn(edges)).toBeUndefined();
});

test("index.ts only re-exports, name by name", () => {
  const index = files.get("index.ts") ?? "";
  expect(index.match(/^export \*.*$/gm) ?? []).toEqual([]);
  expect(index.match(/^(?:export )?(?:async )?(?:function|class|const|let)\b.*$/gm) ?? []).toEqual([]);
});

function unitOf(file: string): string {
  return file.split("/")[0]!.replace(/\.ts$/, "");
}

function layerOf(file: string): number {
  const unit = unitOf(file);
  const layer = layers.findIndex((units) => units.includes(unit));
  return layer === -1 ? layers.findIndex((units) => units.includes("(client)")) : layer;
}

function mayLoadDialect(file: string): boolean {
  return dialectLoaders.some((pattern) => pattern.test(file));
}

function shown({ from, to, kind }: Import): string {
  return `src/${from} may not import src/${to} (${kind}; see ARCHITECTURE.md, "Who may import whom")`;
}

function cycleIn(edges: ReadonlyMap<string, readonly string[]>): string | undefined {
  const done = new Set<string>();
  const path: string[] = [];
  const visit = (file: string): string | undefined => {
    if (path.includes(file)) return [...path.slice(path.indexOf(file)), file].join(" → ");
    if (done.has(file)) return undefined;
    path.push(file);
    for (const next of edges.get(file) ?? []) {
      const cycle = visit(next);
      if (cycle !== undefined) return cycle;
    }
    path.pop();
    done.add(file);
    return undefined;
  };
  for (const file of edges.keys()) {
    const cycle = visit(file);
    if (cycle !== undefined) return cycle;
  }
  return undefined;
}
