// docs/guides/errors.md has every code, each once, and no other.
import { expect, test } from "vitest";
import { read } from "../support/repository.ts";

test("the errors page lists exactly the codes that there are", () => {
  const [, union = ""] = read("src/errors.ts").split("export type ErrorCode =");
  const codes = [...union.split(/;\n\n/)[0]!.matchAll(/^\s*\| "([A-Z_]+)"/gm)].map(([, code]) => code!);
  const listed = [...read("docs/guides/errors.md").matchAll(/^\| `([A-Z_]+)`/gm)].map(([, code]) => code!);
  expect(codes.length).toBeGreaterThan(40);
  expect(listed.sort()).toEqual(codes.sort());
});
