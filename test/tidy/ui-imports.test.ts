// The rooms of the page, and which of them may import which. A room is a folder of ui/src; main.tsx is above them all.
import { expect, test } from "vitest";
import { importsIn, read, repositoryFiles } from "../support/repository.ts";

/** Lowest first: a room imports itself and rooms before it. Rooms on one line do not import each other. */
const rooms: readonly (readonly string[])[] = [
  ["text"], // quantities, shell quoting, characters that turn text around
  ["data"], // the server, the live stream, the address, what this browser remembers
  ["kit"], // controls and text for any screen
  ["code", "charts"], // stacks and differences; lines and bars over time
  ["json"], // JSON shown, and written by hand
  ["jobs"], // lists of jobs: filter, search, columns, rows
  ["new-job", "operations"], // the dialog that enqueues; bulk actions and the audit trail
  ["queues", "limits", "schedules", "failures", "workflows", "database", "overview"], // a subject each
  ["job-page"], // one job
  ["screens"], // one file for each screen
  ["app"], // the shell around them: menu, palette, help
  ["main"],
];

/** The files of src that the page may import: the contract with the server, and pure rules. */
const shared = [
  "src/dashboard/api/contract.ts",
  "src/dashboard/api/headers.ts",
  "src/dashboard/live/delta.ts",
  "src/dashboard/appearance/screens.ts",
  "src/workflows/alike-steps.ts",
  "src/operate/browse-bounds.ts",
  "src/operate/bulk-verbs.ts",
  "src/values/duration.ts",
  "src/values/exact-numbers.ts",
  "src/values/id-part.ts",
  "src/values/instant.ts",
  "src/limits/rules/no-settings.ts",
  "src/operate/search-words.ts",
];

const sources = repositoryFiles().filter((file) => /^ui\/src\/.*\.tsx?$/.test(file));
const imports = sources.flatMap((from) =>
  [...importsIn(read(from))]
    .filter(({ specifier }) => specifier.startsWith("."))
    .map(({ specifier }) => ({ from, to: new URL(specifier, `file:///${from}`).pathname.slice(1) })),
);

test("every folder of the page is a room, and has about 20 files at most", () => {
  const files = new Map<string, number>();
  for (const file of repositoryFiles().filter((one) => one.startsWith("ui/src/"))) {
    const room = roomOf(file);
    if (room !== "style") expect(rooms.flat(), file).toContain(room);
    files.set(room, (files.get(room) ?? 0) + 1);
  }
  expect([...files].filter(([, count]) => count > 22)).toEqual([]);
});

test("no room imports upward or sideways", () => {
  expect(imports.length).toBeGreaterThan(500);
  const wrong = imports.filter(({ from, to }) => {
    if (!to.startsWith("ui/src/") || to.endsWith(".css")) return false;
    return roomOf(from) !== roomOf(to) && layerOf(to) >= layerOf(from);
  });
  expect(wrong.map(shown)).toEqual([]);
});

test("the page imports nothing of src but the contract and pure rules", () => {
  const outside = imports.map(({ to }) => to).filter((to) => !to.startsWith("ui/src/"));
  expect([...new Set(outside)].toSorted()).toEqual(shared.toSorted());
});

test("no two files of the page have the same name", () => {
  const names = sources.map((file) => file.replace(/^.*\/|\.tsx?$/g, ""));
  expect(names.filter((name, i) => names.indexOf(name) !== i)).toEqual([]);
});

test("every stylesheet is imported once, by style/index.css", () => {
  const sheets = repositoryFiles().filter(
    (file) => /^ui\/src\/.*\.css$/.test(file) && !file.endsWith("/index.css"),
  );
  const listed = [...read("ui/src/style/index.css").matchAll(/@import "(.*)";/g)].map(([, path]) =>
    new URL(path!, "file:///ui/src/style/").pathname.slice(1),
  );
  expect(listed.toSorted()).toEqual(sheets.toSorted());
});

function roomOf(file: string): string {
  return file.split("/")[2]!.replace(/\.tsx?$/, "");
}

function layerOf(file: string): number {
  return rooms.findIndex((names) => names.includes(roomOf(file)));
}

function shown({ from, to }: { from: string; to: string }): string {
  return `${from} may not import ${to}`;
}
