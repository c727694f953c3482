// Who may import whom (ARCHITECTURE.md says why). The table is the rule; the code below only applies it.
import { expect, test } from "vitest";
import { importsOf, sourceFiles, type Import } from "../support/repository.ts";

/** Lowest first. A room is a file or a folder below src (the longest that fits); it may import its own files and rooms before it. */
const order: readonly string[] = [
  "errors",
  "clock",
  "version",
  "node-version",
  "supported-node",
  "values",
  "logger",
  "limits/rules",
  "storage",
  "jobs",
  "events",
  "limits",
  "enqueue",
  "workflows",
  "lease",
  "schedules",
  "observe",
  "state",
  "upkeep",
  "worker",
  "operate",
  "storage/sqlite",
  "storage/postgres",
  "storage/sql-store", // assembles the store from the rooms
  "storage/open",
  "open-options",
  "holdfast",
  "config",
  "index",
  "operate/index", // what the surfaces share
  "testing",
  "otel",
  "prometheus",
  "dashboard",
  "cli",
];

/** The contract of the store is written in terms of all rooms, as types, and all rooms are written against it. */
const contract = "storage/store.ts";

/** Imports that point the other way, each with its reason. One that is no longer there fails too. */
const exceptions: Readonly<Record<string, string>> = {
  "jobs/define-job.ts → worker/context.ts": "type: the second argument of a handler",
  "workflows/machine.ts → worker/context.ts": "type: the second argument of a step",
  "jobs/define-job.ts → workflows/signal.ts": "a definition lists the signals that the job waits for",
  "jobs/result.ts → events.ts": "type: the events that tell of an end",
  "limits/queues.ts → operate/jobs-client.ts": "type: what a purge reports",
  "limits/queue-counts.ts → operate/browse.ts": "type: counts as a screen has them",
  "enqueue/batch-rows.ts → operate/browse.ts": "type: batches as a screen has them",
  "observe/failure-groups.ts → operate/browse.ts": "type: failures as a screen has them",
  "observe/failure-rows.ts → operate/browse.ts": "type: failures as a screen has them",
  "observe/failure-group-rows.ts → operate/browse.ts": "type: failures as a screen has them",
  "lease/request-rows.ts → operate/store.ts": "type: what became of a request",
  "lease/renewal-thread.ts → storage/open.ts": "the thread is a program of its own",
  "storage/patience.ts → jobs/failure.ts": "the text of an error in a log line",
  "storage/open.ts → lease/renew.ts": "type: the renewal that a dialect gives the thread",
  "observe/health.ts → holdfast.ts": "type: a function of a client",
};

/** The dashboard and the command line import the public entries, the room that they share, and rooms without state. */
const surfaces: Readonly<Record<string, RegExp>> = {
  dashboard:
    /^(index\.ts|prometheus\/index\.ts|operate\/|values\/|(errors|clock|version|supported-node)\.ts$)/,
  cli: /^((index|(prometheus|dashboard)\/index)\.ts$|operate\/|values\/|(errors|clock|version|node-version|config)\.ts$)/,
};

/** Pure rooms import nothing but these (and nothing of Node's that touches the world). */
const pure: Readonly<Record<string, readonly string[]>> = {
  values: ["errors"],
  "limits/rules": ["errors", "values"],
};
/** Pure files of other rooms: rules that are tested as tables of cases. */
const pureFiles: readonly string[] = [
  "jobs/transition.ts",
  "jobs/backoff.ts",
  "jobs/failure.ts",
  "jobs/fingerprint.ts",
  "jobs/editable.ts",
  "schedules/cron.ts",
  "schedules/cron-pattern.ts",
  "schedules/cron-words.ts",
  "schedules/plan.ts",
  "schedules/upcoming.ts",
  "schedules/lateness.ts",
  "schedules/zone.ts",
  "workflows/alike-steps.ts",
  "workflows/fork.ts",
  "observe/failure-decision.ts",
  "operate/search-words.ts",
  "operate/filter-range.ts",
];
const impurePackages =
  /^(node:(fs|net|http|https|child_process|worker_threads|sqlite|os|timers|process)\b|pg$)/;

const dialects = ["storage/sqlite", "storage/postgres"];
/** The only files outside a dialect that load one: the factory, lazily, and the renewal thread, which has its own connection. */
const dialectLoaders = [/^storage\/open\.ts$/, /^lease\/renewal-thread\.ts$/];

/** A driver is imported, as a value, by one file. */
const drivers = ["pg", "node:sqlite", "better-sqlite3"];

/** A list that a reader takes in at a glance. */
const mostFiles = (folder: string): number => (folder === "" ? 12 : 20);

const files = sourceFiles();
const { internal, external } = importsOf(files);

test("no room imports one that comes after it", () => {
  const upward = internal.filter(({ from, to, kind }) => {
    if (kind === "dynamic" && mayLoadDialect(from) && dialects.includes(roomOf(to))) return false;
    if (to === contract || (from === contract && kind === "type")) return false;
    return positionOf(to) > positionOf(from) && !(edge(from, to) in exceptions);
  });
  expect(upward.map(shown)).toEqual([]);
});

test("the dashboard and the command line import the public entries and the operators' room alone", () => {
  const others = internal.filter(({ from, to }) => {
    const allowed = surfaces[roomOf(from)];
    return allowed !== undefined && roomOf(to) !== roomOf(from) && !allowed.test(to);
  });
  expect(others.map(shown)).toEqual([]);
});

test("every exception is needed", () => {
  const edges = new Set(internal.map(({ from, to }) => edge(from, to)));
  expect(Object.keys(exceptions).filter((each) => !edges.has(each))).toEqual([]);
});

test("every file belongs to a room, and no folder is crowded", () => {
  expect([...files.keys()].filter((file) => positionOf(file) === -1)).toEqual([]);
  const folders = Map.groupBy(files.keys(), (file) => file.split("/").slice(0, -1).join("/"));
  const crowded = [...folders].filter(([folder, { length }]) => length > mostFiles(folder));
  expect(crowded.map(([folder, { length }]) => `${folder}: ${length}`)).toEqual([]);
});

test("values, the rules of limits and the rules of other rooms are pure", () => {
  const impure = internal.filter(({ from, to }) => {
    const allowed = pure[roomOf(from)];
    return allowed !== undefined && roomOf(to) !== roomOf(from) && !allowed.includes(roomOf(to));
  });
  expect(impure.map(shown)).toEqual([]);
  expect(pureFiles.filter((file) => !files.has(file))).toEqual([]);
  const isPure = (file: string): boolean => roomOf(file) in pure || pureFiles.includes(file);
  const worldly = external.filter(({ from, package: name }) => isPure(from) && impurePackages.test(name));
  expect(worldly.map(({ from, package: name }) => `${from} → ${name}`)).toEqual([]);
});

test("a dialect is imported only by itself, by storage/open.ts and by the renewal thread", () => {
  const leaks = internal.filter(({ from, to, kind }) => {
    const dialect = roomOf(to);
    if (!dialects.includes(dialect) || roomOf(from) === dialect) return false;
    return !(mayLoadDialect(from) && (kind === "dynamic" || !from.startsWith("storage/")));
  });
  expect(leaks.map(shown)).toEqual([]);
});

test("each driver is imported by one file at most", () => {
  for (const driver of drivers) {
    const users = new Set(
      external.filter((one) => one.package === driver && one.kind !== "type").map((one) => one.from),
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

/** The longest entry of `order` that the path begins with. */
function roomOf(file: string): string {
  const parts = file.replace(/\.ts$/, "").split("/");
  for (let length = parts.length; length > 1; length -= 1) {
    const room = parts.slice(0, length).join("/");
    if (order.includes(room)) return room;
  }
  return parts[0]!;
}

function positionOf(file: string): number {
  return order.indexOf(roomOf(file));
}

function edge(from: string, to: string): string {
  return `${from} → ${to}`;
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
