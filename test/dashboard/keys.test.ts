// The help's table of keys against what the screens ask for: no key without a line, no line without a key.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { keyTable } from "../../ui/src/app/key-table.ts";
import { actions } from "../../ui/src/jobs/job-actions.ts";
import { root } from "../support/repository.ts";

const sources = readdirSync(join(root, "ui/src"), { recursive: true, encoding: "utf8" })
  .filter((name) => /\.tsx?$/.test(name))
  .map((name) => readFileSync(join(root, "ui/src", name), "utf8"));

/** Keys of the browser, of charts and graphs, and the one that is no single key. */
const elsewhere = ["Ctrl K", "Enter", "Shift", "Space", "←", "→"];

test("every key that a screen asks for is in the help, and nothing else is", () => {
  const asked = new Set<string>([
    ...sources.flatMap((text) => [...text.matchAll(/onKey\("([^"]+)"/g)].map(([, key]) => key!)),
    ...Object.values(actions).map(({ key }) => key),
    // `groupKeys` of the failures' screens.
    ...sources.flatMap((text) => [...text.matchAll(/^ {4}\["(\S)", /gm)].map(([, key]) => key!)),
  ]);
  const told = new Set(keyTable.flatMap(({ keys }) => keys).filter((key) => !elsewhere.includes(key)));
  expect([...told].sort()).toEqual([...asked].sort());
});

test("no two entries of the menu have one key", () => {
  const menu = readFileSync(join(root, "ui/src/app/navigation.ts"), "utf8");
  const keys = [...menu.matchAll(/\bkey: "(\w)"/g)].map(([, key]) => key!);
  expect(keys.length).toBeGreaterThan(10);
  expect(new Set(keys).size).toBe(keys.length);
  // As the specification has them.
  for (const [path, key] of Object.entries({
    "/": "o",
    "/queues": "q",
    "/jobs": "j",
    "/workflows": "w",
    "/schedules": "s",
    "/errors": "f",
    "/limits": "l",
    "/workers": "k",
    "/audit": "a",
  }))
    expect([path, new RegExp(`path: "${path}",(?:(?!path:)[^])*?\\bkey: "(\\w)"`).exec(menu)?.[1]]).toEqual([
      path,
      key,
    ]);
});
