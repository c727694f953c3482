import { expect, test } from "vitest";
import { fingerprint, normalised } from "../../src/jobs/fingerprint.ts";
import { growth, LINEAR } from "../support/growth.ts";

test.each([
  ["user 17 not found", "user 4711 not found"],
  ['no such file "/tmp/a"', 'no such file "/tmp/b c"'],
  ["GET https://example.org/a?b=1 failed", "GET https://example.org/zzz failed"],
  ["job 0199c1d8-7c00-7000-8000-000000000000 lost", "job 0199c1d8-7c00-7000-8000-00000000abcd lost"],
  ["token deadbeef01 refused", "token 0123456789abcdef refused"],
  ["timeout after 31.5 s\nat line one", "timeout after 7 s\nat line two"],
  ["ann@example.org bounced", "bob.b@example.com bounced"],
])("%j and %j are one group", (a, b) => {
  expect(fingerprint("mail", { message: a, stack: null })).toBe(
    fingerprint("mail", { message: b, stack: null }),
  );
});

test("kind, class, code and words tell groups apart", () => {
  const all = [
    fingerprint("mail", { message: "disk full", stack: null }),
    fingerprint("crawl", { message: "disk full", stack: null }),
    fingerprint("mail", { message: "disk fuller", stack: null }),
    fingerprint("mail", { message: "disk full", stack: "TypeError: disk full\n at x" }),
    fingerprint("mail", { message: "disk full", stack: null, code: "ENOSPC" }),
  ];
  expect(new Set(all).size).toBe(all.length);
  for (const one of all) expect(one).toMatch(/^[0-9a-f]{16}$/);
});

test.each(['"', "a@", "1.", "https://"])(
  "what a message of many %s costs grows with its length alone",
  (part) => {
    expect(growth((size) => part.repeat(size / part.length), 4_000, normalised)).toBeLessThan(LINEAR);
  },
);
