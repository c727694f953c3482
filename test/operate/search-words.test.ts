// The words of a search, and what their values mean. Pure.
import { describe, expect, test } from "vitest";
import { bornWithin, wordFilter, wordTexts } from "../../src/operate/filter-range.ts";
import { checkTrace, traceIdIn } from "../../src/values/trace-id.ts";
import { parseSearch, SEARCH_WORDS, wordOf } from "../../src/operate/search-words.ts";
import { instantOf, windowOf } from "../../src/values/instant.ts";
import { pathsIn, suggest, valueOf, wordAt } from "../../ui/src/jobs/search-completion.ts";
import { readSearch } from "../../ui/src/jobs/job-filter.ts";

test("a trace is named by its id or a traceparent, and what is neither is refused", () => {
  const id = "4bf92f3577b34da6a3ce929d0e0e4736";
  for (const given of [id, id.toUpperCase(), ` ${id} `, `00-${id}-00f067aa0ba902b7-01`])
    expect(checkTrace(given)).toBe(id);
  for (const given of [
    "",
    id.slice(1),
    `${id}0`,
    `${id.slice(1)}g`,
    `00-${id.slice(1)}-00f067aa0ba902b7-01`,
    7,
    null,
  ])
    expect(() => checkTrace(given)).toThrow(expect.objectContaining({ code: "BAD_OPTION" }));
  expect(traceIdIn(`{"carrier":{"traceparent":"00-${id}-00f067aa0ba902b7-01"}}`)).toBe(id);
  expect(traceIdIn("{}")).toBeNull();
  expect(traceIdIn(null)).toBeNull();
});

describe("words", () => {
  test("words become parameters; text stays text, an id is an id, a group of errors is one", () => {
    expect(parseSearch('attempt:>3 name:"send mail" queue:a queue:b,c refused again')).toEqual({
      params: { attempt: [">3"], name: ["send mail"], queue: ["a", "b,c"] },
      text: "refused again",
      unknown: [],
    });
    expect(
      parseSearch("payload.user.id:42 payload.tags.0:x error:0123456789abcdef error:boom").params,
    ).toEqual({
      payload: ["user.id:42", "tags.0:x"],
      failureGroup: ["0123456789abcdef"],
      error: ["boom"],
    });
    const id = "0199C1D8-7c00-7000-8000-000000000000";
    expect(parseSearch(id)).toMatchObject({ params: { ids: [id.toLowerCase()] }, text: "" });
    expect(parseSearch("https://example.org/x state:dead")).toMatchObject({
      params: { state: ["dead"] },
      text: "https://example.org/x",
      unknown: [],
    });
    const traceparent = `00-${"4B".repeat(16)}-${"0a".repeat(8)}-01`;
    expect(parseSearch(`${traceparent} workflow:${id} trace:${"4b".repeat(16)} late`)).toEqual({
      params: { trace: [traceparent.toLowerCase(), "4b".repeat(16)], workflow: [id] },
      text: "late",
      unknown: [],
    });
    // A trace's id alone is one; in quotes it is text, and so is what looks like a group of errors.
    expect(parseSearch(`${"4B".repeat(16)} "${"4b".repeat(16)}" error:"0123456789abcdef"`)).toEqual({
      params: { trace: ["4b".repeat(16)], error: ["0123456789abcdef"] },
      text: "4b".repeat(16),
      unknown: [],
    });
    expect(parseSearch("kind:send-mail name:other").params).toEqual({ name: ["send-mail", "other"] });
    // A path without a value, a value without a path, a word that is none.
    expect(parseSearch("payload:42 queue.x:1 wat:1 attempt:")).toEqual({
      params: {},
      text: "payload:42 queue.x:1 wat:1 attempt:",
      unknown: ["payload", "queue.x", "wat"],
    });
    expect(parseSearch('"attempt:>3 is text"')).toMatchObject({ params: {}, text: "attempt:>3 is text" });
  });

  test("what was parsed is typed the same again", () => {
    for (const typed of [
      "attempt:>3",
      "payload.user.id:42",
      'error:"disk full"',
      "error:0123456789abcdef",
      "id:7",
      "workflow:0199c1d8-7c00-7000-8000-000000000000",
      "trace:4bf92f3577b34da6a3ce929d0e0e4736",
      String.raw`worker:"a \"b\" \\ c"`,
      'error:"0123456789abcdef"',
      "ended:2026-01-31T12:00:00.000Z..2026-01-31T12:05:00.000Z",
    ]) {
      const [[param, values] = ["", []]] = Object.entries(parseSearch(typed).params);
      expect(wordOf(param, values[0] ?? "")).toBe(typed);
    }
  });

  test("instants and windows, and nothing that is neither is taken for now", () => {
    const now = Date.parse("2026-01-31T12:00:00Z");
    expect(["30s", "2m", "1h30m", "1w"].map((text) => now - (instantOf(text, now) ?? 0))).toEqual([
      30_000, 120_000, 5_400_000, 604_800_000,
    ]);
    expect(instantOf("2026-01-31T11:00Z", now)).toBe(now - 3_600_000);
    for (const wrong of ["", "5", "yesterday", "2 parsecs", "1x", "m", "2026-13-77", "mail 5", "-5m"])
      expect(instantOf(wrong, now), wrong).toBeNull();
    expect(windowOf("1h", now)).toBe(`>=${now - 3_600_000}`);
    expect(windowOf("1h..2h", now)).toBe(`${now - 7_200_000}..${now - 3_600_000}`);
    expect(windowOf("2026-01-31T11:00Z..5m", now)).toBe(`${now - 3_600_000}..${now - 300_000}`);
    expect(windowOf("<=2026-01-31T11:00Z", now)).toBe(`<=${now - 3_600_000}`);
    for (const kept of ["1..2", ">=5", "=7", "7"]) expect(windowOf(kept, now)).toBe(kept);
    for (const wrong of ["", "soon", ">2h", "1h..then", "..", "1h.."])
      expect(windowOf(wrong, now), wrong).toBeNull();
  });

  test("what is typed is read whole or refused, and says what was meant", () => {
    const now = 10_000_000_000;
    expect(readSearch("kind:send-mail since:30s ended:1h", now)).toEqual({
      params: { name: "send-mail", since: String(now - 30_000), ended: `>=${now - 3_600_000}` },
      parts: [],
      perhaps: null,
      problem: null,
    });
    for (const [typed, said] of [
      ["state:dead since:30x", /^since: expected how long ago .* got 30x/],
      ["until:tomorrow", /^until: expected/],
      ["ended:>2h", /^ended: expected/],
      ["id:7", /^id: expected an id or at least 4 digits/],
      ["queu:mail", /^There is no word queu:\. Did you mean queue:\?$/],
      ["attmept:>3", /Did you mean attempt:/],
      ["payload:42", /payload.user.id:42/],
      ["wat:1", /^There is no word wat:\.$/],
      ["age:>5q", /^age: expected .* got >5q/],
      ["run:1h..", /^run: expected/],
      ["attempt:>", /^attempt: expected .* got >\.$/],
      ["attempt:3..x", /^attempt: expected/],
      ["state:dead,bogus", /^state: expected scheduled, .* got bogus\.$/],
    ] as const)
      expect(readSearch(typed, now), typed).toMatchObject({
        params: {},
        problem: { message: expect.stringMatching(said) as string },
      });
    expect(readSearch("age:1h..2h run:>=1.5s attempt:=3 state:dead,done", now).params).toEqual({
      age: "1h..2h",
      run: ">=1.5s",
      attempt: "=3",
      state: "dead,done",
    });
    // What is no word can be looked for as text, as it stands.
    const asText = readSearch('TypeError:x is "not" it', now).problem?.asText ?? "";
    expect(readSearch(asText, now).params).toEqual({ search: 'TypeError:x is "not" it' });
    expect(readSearch("since:x", now).problem?.asText).toBeNull();
    expect(readSearch("0123456789AB state:dead", now)).toMatchObject({
      params: { state: "dead" },
      parts: ["0123456789ab"],
    });
    // Other lengths may be numbers or words: text, unless an id has it.
    for (const part of ["0199c1d8", "0199c1d8-7c00", "89ab0123456789ab", "12345678"])
      expect(readSearch(part, now), part).toMatchObject({
        params: { search: part },
        parts: [],
        perhaps: part,
      });
    for (const word of ["cafe", "1234567", "0199c1d8 refused", '"0199c1d8"', "deadline"])
      expect(readSearch(word, now), word).toMatchObject({ parts: [], perhaps: null });
    expect(readSearch("id:cafe,0199c1d8", now)).toMatchObject({ parts: ["cafe", "0199c1d8"], params: {} });
    expect(readSearch('"0123456789ab"', now)).toMatchObject({
      params: { search: "0123456789ab" },
      parts: [],
    });
  });

  test("ranges of numbers and times", () => {
    const attempt = (text: string) => wordFilter({ attempt: text }).attempt;
    expect([">3", ">=3", "<3", "<=3", "3", "=3", "3..5"].map(attempt)).toEqual([
      { min: 4 },
      { min: 3 },
      { max: 2 },
      { max: 3 },
      { min: 3, max: 3 },
      { min: 3, max: 3 },
      { min: 3, max: 5 },
    ]);
    expect(wordFilter({ run: ">10s" }).ran).toEqual({ min: 10_001 });
    expect(wordFilter({ run: "10s" }).ran).toEqual({ min: 10_000 });
    expect(bornWithin(">5m", 1_000_000)).toEqual({ until: 700_000 });
    expect(bornWithin("<5m", 1_000_000)).toEqual({ since: 700_001 });
    expect(bornWithin("1m..5m", 1_000_000)).toEqual({ since: 700_000, until: 940_001 });
    expect(wordFilter({ payload: ["a.b:c:d"] }).payload).toEqual([{ path: ["a", "b"], value: "c:d" }]);
    const whole = {
      attempt: ">3",
      run: "10s..1m",
      worker: "w",
      error: "x",
      payload: ["a.b:c"],
      ended: "1..2",
    };
    expect(wordFilter(wordTexts(wordFilter(whole)))).toEqual(wordFilter(whole));
    for (const wrong of [
      { attempt: "many" },
      { attempt: ">" },
      { attempt: "-1" },
      { run: "10 parsecs" },
      { ended: "yesterday" },
      { payload: ["nothing"] },
      { payload: [":x"] },
      { payload: ["a..b:1"] },
      { payload: ['a"b:1'] },
      { worker: "" },
    ])
      expect(() => wordFilter(wrong), JSON.stringify(wrong)).toThrow(/expected|must|takes/);
  });
});

describe("completion", () => {
  test("names of words, then the values that are known, of payloads their paths", () => {
    expect(wordAt("state:dead att", 14)).toEqual({ from: 11, word: "att" });
    expect(wordAt('error:"disk fu', 14)).toEqual({ from: 0, word: 'error:"disk fu' });
    expect(valueOf("queue:ma")).toEqual({ of: "queue", typed: "ma" });
    expect(suggest("at", {}).map(({ insert }) => insert)).toEqual(["attempt:"]);
    expect(suggest("", {})).toHaveLength(SEARCH_WORDS.length);
    expect(suggest("state:de", {}).map(({ insert }) => insert)).toEqual(["state:dead "]);
    expect(suggest("state:dead", {})).toEqual([]);
    const known = {
      queue: [{ value: "mail", hint: "12" }, { value: "media" }],
      error: [{ value: "0a", hint: "disk full" }],
    };
    expect(suggest("queue:m", known).map(({ shown }) => shown)).toEqual(["mail", "media"]);
    expect(suggest("error:full", known).map(({ insert }) => insert)).toEqual(["error:0a "]);
    const paths = pathsIn(['{"user":{"id":7},"tags":["a"]}', '{"user":{"id":8}}', "cut off {", null]);
    expect([...paths].map(([path, values]) => [path, [...values]])).toEqual([
      ["user.id", ["7", "8"]],
      ["tags.0", ["a"]],
    ]);
    expect(suggest("payload.us", { payload: [{ value: "user.id" }] }).map(({ insert }) => insert)).toEqual([
      "payload.user.id:",
    ]);
    expect(suggest("payload.user.id:", { "payload.user.id": [{ value: "7" }] })).toMatchObject([
      { insert: "payload.user.id:7 " },
    ]);
  });
});
