// The words of a search, and what their values mean. Pure.
import { describe, expect, test } from "vitest";
import { bornWithin, wordFilter, wordTexts } from "../../src/policy/range.ts";
import { parseSearch, SEARCH_WORDS, wordOf } from "../../src/policy/words.ts";
import { pathsIn, suggest, valueOf, wordAt } from "../../ui/src/completion.ts";

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
      errorGroup: ["0123456789abcdef"],
      error: ["boom"],
    });
    const id = "0199C1D8-7c00-7000-8000-000000000000";
    expect(parseSearch(id)).toMatchObject({ params: { ids: [id.toLowerCase()] }, text: "" });
    expect(parseSearch("https://example.org/x state:dead")).toMatchObject({
      params: { state: ["dead"] },
      text: "https://example.org/x",
      unknown: [],
    });
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
    ]) {
      const [[param, values] = ["", []]] = Object.entries(parseSearch(typed).params);
      expect(wordOf(param, values[0] ?? "")).toBe(typed);
    }
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
      expect(() => wordFilter(wrong), JSON.stringify(wrong)).toThrow(/takes|must/);
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
