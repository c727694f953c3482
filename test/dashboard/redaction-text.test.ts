// Secrets are taken out of running text, and out of JSON inside it. That it costs no more than the text is long:
// test/tidy/patterns.test.ts.
import { inspect } from "node:util";
import { describe, expect, test } from "vitest";
import { Redactor } from "../../src/dashboard/access/redact.ts";

const redactor = new Redactor(undefined);
const job = { name: "plain", queue: "default" };
const long = "a=1; ".repeat(40);

describe("redaction of text", () => {
  const texts: readonly (readonly [what: string, text: string])[] = [
    ["cookies of an array", inspect({ headers: { "set-cookie": ["a=1", "sid=hush"] } }, { depth: 9 })],
    [
      "cookies of an array over lines",
      inspect({ headers: { "set-cookie": [`${long}x`, "sid=hush; Path=/"], host: "x" } }, { depth: 9 }),
    ],
    ["a long cookie on its own line", inspect({ cookie: `${long}\n${long}sid=hush` }, { breakLength: 40 })],
    ["a Map's cookies", inspect(new Map([["cookie", "a=1; sid=hush"]]))],
    ["raw headers", inspect({ rawHeaders: ["Host", "x", "Cookie", "a=1; sid=hush"] }, { breakLength: 10 })],
    ["a quoted cookie before another", 'Cookie: "a=1"; sid=hush'],
    ["JSON within JSON", '{"body":"{\\"password\\":\\"hush\\"}"}'],
    [
      "JSON within JSON in a sentence",
      'failed: {"body":"{\\"user\\":\\"ann\\",\\"password\\":\\"hush\\"}"} at 3',
    ],
    [
      "JSON within JSON within JSON",
      `it said ${JSON.stringify({ a: JSON.stringify({ b: '{"token":"hush"}' }) })}`,
    ],
    ["a quote in a password", JSON.stringify({ password: 'x"hush' })],
    [
      "an escaped quote in JSON within JSON",
      `it said ${JSON.stringify(JSON.stringify({ password: 'x"hush' }))}`,
    ],
    ["an object behind a name", '{"auth":{"user":"ann","key":"hush"}}'],
    [
      "an object behind a name, over lines",
      inspect({ auth: { user: "ann", of: { key: "hush" } } }, { breakLength: 1 }),
    ],
    ["an object behind a name in JSON within JSON", String.raw`{"body":"{\"auth\":{\"key\":\"hush\"}}"}`],
    ["an object that is cut", 'auth: { user: "ann", key: "hush'],
    ["a user's password", "userPass=hush"],
    ["a database's", "db_pass: hush"],
    ["a mail server's", "smtp_auth=hush"],
    ["a header's", "x-auth: hush"],
    ["a comparison", "password == hush"],
    ["a long one", `token=${"a".repeat(3_000)}hush`],
    ["a long one in quotes", `"token":"${"a".repeat(3_000)}hush"`],
    ["an element", "<user>ann</user><password>hush</password>"],
    ["an element with attributes", '<wsse:Password Type="text">\n  hush\n</wsse:Password >'],
    ["a long bearer", `Bearer ${"a".repeat(3_000)}hush`],
  ];

  test.each(texts)("[O18] takes out %s", (_what, text) => {
    expect(text).toContain("hush");
    expect(redactor.text(text)).not.toContain("hush");
    expect(redactor.json(JSON.stringify({ said: text }), job)).not.toContain("hush");
  });

  test.each([
    ['{"auth":{"a":1},"city":"Ulm"}', '{"auth":[redacted],"city":"Ulm"}'],
    ["{ cookie: [ 'a=1' ], city: 'Ulm' }", "{ cookie: [redacted], city: 'Ulm' }"],
    [
      '{"b":"{\\"password\\":\\"x\\",\\"city\\":\\"Ulm\\"}"}',
      '{"b":"{\\"password\\":[redacted],\\"city\\":\\"Ulm\\"}"}',
    ],
    ['"password":"a\\\\","city":"Ulm"', '"password":[redacted],"city":"Ulm"'],
    ["bypass=1 compass: north author=ann authors: bob highPass=3", null],
    ["it took [3, 4] tries, of {n} in all", null],
    [
      "<city>Ulm</city><token>x</token>, <token> was expected",
      "<city>Ulm</city><token>[redacted]</token>, <token> was expected",
    ],
  ])("[O18] keeps what stands around it: %s", (text, shown) => {
    expect(redactor.text(text)).toBe(shown ?? text);
  });

  test("[O18] keys that end with pass or auth are secret, words that only end like them are not", () => {
    const shown = JSON.parse(
      redactor.json(
        JSON.stringify(
          Object.fromEntries(
            [
              "userPass",
              "db_pass",
              "smtp_auth",
              "x-auth",
              "PASS",
              "bypass",
              "compass",
              "author",
              "authored_by",
            ].map((key) => [key, "value"]),
          ),
        ),
        job,
      )!,
    ) as Record<string, string>;
    const kept = Object.keys(shown).filter((key) => shown[key] === "value");
    expect(kept).toEqual(["bypass", "compass", "author", "authored_by"]);
  });

  test("[O18] a string that is JSON is looked through, however often it was encoded", () => {
    let text = JSON.stringify({ user: "ann", password: "hush" });
    for (let times = 0; times < 6; times += 1) {
      expect(redactor.json(text, job), String(times)).not.toContain("hush");
      expect(redactor.json(JSON.stringify({ body: text }), job), String(times)).not.toContain("hush");
      expect(redactor.json(text, job), String(times)).toContain("ann");
      text = JSON.stringify(text);
    }
  });
});
