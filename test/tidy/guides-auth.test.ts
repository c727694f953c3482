// People copy from the guides: no dashboard in them lets everybody in.
import { expect, test } from "vitest";
import { read, repositoryFiles } from "../support/repository.ts";

/** An `auth` that decides without looking at its request. */
const ignoresRequest = /\bauth\s*(?::\s*(?:async\s*)?(?:\(\s*\)|_\w*|\(\s*_\w*\s*\))\s*=>|\(\s*\)\s*\{)/;

test("[O18] an auth that ignores its request is found", () => {
  for (const text of [
    'auth: () => ({ name: "ann" })',
    "auth: async () => user",
    "auth: _request => user",
    "auth: (_) => 1",
    "auth() { return user; }",
  ])
    expect(ignoresRequest.test(text), text).toBe(true);
  for (const text of ["auth: (request) => who(request)", "auth: { token }", "auth: async (request) => x"])
    expect(ignoresRequest.test(text), text).toBe(false);
});

test("[O18] no guide, README or example shows an auth that ignores its request", () => {
  const files = repositoryFiles().filter((file) =>
    /^(?:README\.md|SECURITY\.md|docs\/.*\.md|examples\/.*\.(?:ts|tsx|js|mjs|md)|src\/.*\.ts)$/.test(file),
  );
  expect(files.length).toBeGreaterThan(100);
  const found = files.flatMap((file) =>
    read(file)
      .split("\n")
      .flatMap((line, i) => (ignoresRequest.test(line) ? [`${file}:${i + 1} ${line.trim()}`] : [])),
  );
  expect(found).toEqual([]);
});
