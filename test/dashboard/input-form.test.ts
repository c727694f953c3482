// What the dialog for a new job is made of: JSON in parts, fields of a schema, masks, recent inputs. Pure.
import { describe, expect, test } from "vitest";
import type { JobLine } from "../../src/dashboard/api/contract.ts";
import { at, compact, placeText, pretty, readJson, replaced } from "../../ui/src/json/json-text.ts";
import { maskedInput, stillMasked } from "../../ui/src/json/redaction-masks.ts";
import { candidates, distinct, type RecentInput, recentInputs } from "../../ui/src/new-job/recent-inputs.ts";
import {
  fieldsOf,
  type FormField,
  isAt,
  memberOf,
  membersOf,
  shownIn,
  withMember,
} from "../../ui/src/json/schema-fields.ts";

const text =
  '{ "a" : [1.50, 12345678901234567890, {"b":"x\\"},[:"}], "__proto__": null, "": true, "a b":-0 }';

describe("JSON in parts", () => {
  test("every sign of a value stays", () => {
    const line = '{"a":[1.50,12345678901234567890,{"b":"x\\"},[:"}],"__proto__":null,"":true,"a b":-0}';
    expect(compact(readJson(text))).toBe(line);
    expect(compact(readJson(pretty(readJson(text))))).toBe(line);
    expect(pretty(readJson('{"b":{},"c":[]}'), undefined, 0)).toBe('{\n  "b": {},\n  "c": []\n}');
    for (const one of ["5", '"x"', "null", "[]", "{}", " [ [ ] ] "])
      expect(compact(readJson(one))).toBe(one.replaceAll(" ", ""));
  });

  test("of a key that comes twice the last holds, as in JSON.parse", () => {
    expect(compact(readJson('{"a":1,"b":2,"a":3}'))).toBe('{"a":3,"b":2}');
  });

  test.each(["", "{", "[1,]", "{a:1}", "1 2", "undefined", "'x'"])("%j is refused", (wrong) => {
    expect(() => readJson(wrong)).toThrow(SyntaxError);
  });

  test("a place is found and replaced, and none that is not there", () => {
    const node = readJson(text);
    expect(compact(at(node, ["a", "2", "b"])!)).toBe('"x\\"},[:"');
    expect(at(node, ["a", "9"])).toBeNull();
    expect(at(node, ["a", "0", "x"])).toBeNull();
    expect(at(node, ["toString"])).toBeNull();
    const by = { kind: "scalar", text: "X" } as const;
    expect(
      compact(
        replaced(
          node,
          [["a", "0"], ["__proto__"], ["no", "where"], ["a", "9"], ["a", "2", "b"], ["a", "2", "new"]],
          by,
        ),
      ),
    ).toBe('{"a":[X,12345678901234567890,{"b":X,"new":X}],"__proto__":X,"":true,"a b":-0}');
    expect(compact(replaced(node, [[]], by))).toBe("X");
    expect(placeText(["a", "0", "b c", "d"])).toBe('a[0]["b c"].d');
  });

  test("what is nested a thousand times deep is read", () => {
    const deep = "[".repeat(1_000) + "]".repeat(1_000);
    expect(compact(readJson(deep))).toBe(deep);
  });
});

describe("fields of a schema", () => {
  const object = (properties: unknown, more: object = {}): unknown => ({
    type: "object",
    properties,
    ...more,
  });

  test("flat properties are fields, with what must be said of each; whatever else is JSON", () => {
    const fields = fieldsOf(
      object(
        {
          to: { type: "string", format: "email", description: "Whom" },
          n: { type: "integer", default: 3 },
          x: { type: "number", title: "An x" },
          ok: { type: "boolean" },
          plan: { type: "string", enum: ["free", 'a"b'] },
          one: { const: 5 },
          maybe: { type: ["string", "null"] },
          both: { type: ["string", "number"] },
          list: { type: "array", items: {} },
          any: true,
          refers: { $ref: "#/$defs/x" },
        },
        { required: ["to", "maybe"] },
      ),
    )!;
    expect(fields.map(({ key, kind, type }) => `${key} ${kind} ${type}`.trim())).toEqual([
      "to text email",
      "n integer integer",
      "x number number",
      "ok choice",
      "plan choice",
      "one choice",
      "maybe text text",
      "both json JSON",
      "list json JSON",
      "any json JSON",
      "refers json JSON",
    ]);
    expect(fields[0]).toMatchObject({ required: true, hint: "Whom", usual: null });
    expect(fields[1]).toMatchObject({ required: false, usual: "3" });
    expect(fields[2]).toMatchObject({ hint: "An x" });
    expect(fields[4]?.options).toEqual(['"free"', '"a\\"b"']);
    expect(fields[6]).toMatchObject({ nullable: true });
  });

  test.each<[string, unknown]>([
    ["nothing", null],
    ["a text", "object"],
    ["no object", { type: "string" }],
    ["no properties", { type: "object" }],
    ["properties that are none", { type: "object", properties: [] }],
    ["no member at all", object({})],
    ["a union", object({ a: {} }, { anyOf: [] })],
    ["a reference", object({ a: {} }, { $ref: "#" })],
    ["more than 30 members", object(Object.fromEntries(Array.from({ length: 31 }, (_, i) => [`k${i}`, {}])))],
    ["a name that fills the page", object({ ["x".repeat(101)]: {} })],
    ["an empty name", object({ "": {} })],
  ])("%s has no form", (_name, schema) => {
    expect(fieldsOf(schema)).toBeNull();
  });

  test("a hostile schema is cut and taken for text", () => {
    const hostile = JSON.parse(
      `{"type":"object","required":"__proto__","properties":{"__proto__":{"type":"string","description":${JSON.stringify("<b>".repeat(500))}},"constructor":{"type":{"x":1},"enum":"no","format":5,"title":{}},"e":{"enum":${JSON.stringify(Array.from({ length: 101 }, (_, i) => i))}},"o":{"enum":[{"x":1}]},"n":null,"d":{"type":"string","default":${JSON.stringify("x".repeat(1_000))}}}}`,
    ) as unknown;
    const fields = fieldsOf(hostile)!;
    expect(fields.map(({ key, kind }) => `${key} ${kind}`)).toEqual([
      "__proto__ text",
      "constructor json",
      "e json",
      "o json",
      "n json",
      "d text",
    ]);
    for (const { hint, usual, required } of fields) {
      expect(hint.length).toBeLessThanOrEqual(300);
      expect((usual ?? "").length).toBeLessThanOrEqual(300);
      expect(required).toBe(false);
    }
    const { key } = fields[0]!;
    expect(withMember("{}", key, { kind: "scalar", text: '"x"' })).toBe('{\n  "__proto__": "x"\n}');
    expect(membersOf('{"__proto__":1}')?.get("__proto__")).toEqual({ kind: "scalar", text: "1" });
  });

  const field = (kind: FormField["kind"], more: Partial<FormField> = {}): FormField => ({
    key: "k",
    kind,
    required: false,
    type: "",
    hint: "",
    options: [],
    usual: null,
    nullable: false,
    ...more,
  });

  test("what is typed becomes a member, or is told to be none; numbers keep their digits", () => {
    const typed = (one: FormField, value: string): string | null | undefined => {
      const member = memberOf(one, value);
      return member === null || member === undefined ? member : compact(member);
    };
    expect(typed(field("text"), 'it\'s "x"\n')).toBe('"it\'s \\"x\\"\\n"');
    expect(typed(field("text"), " ")).toBe('" "');
    expect(typed(field("text"), "")).toBeNull();
    expect(typed(field("text", { nullable: true, required: true }), "")).toBe("null");
    expect(typed(field("text", { nullable: true }), "")).toBeNull();
    expect(typed(field("integer"), "12345678901234567890")).toBe("12345678901234567890");
    expect(typed(field("integer"), "1.5")).toBeUndefined();
    expect(typed(field("number"), " 1.50 ")).toBe("1.50");
    for (const wrong of ["x", "1,5", '"5"', "true", "[1]", "0x10", "Infinity"])
      expect(typed(field("number"), wrong), wrong).toBeUndefined();
    expect(typed(field("json"), "[1, 2]")).toBe("[1,2]");
    expect(typed(field("json"), "[1")).toBeUndefined();
    expect(typed(field("choice"), "false")).toBe("false");
  });

  test("a member is shown in its field, and as JSON where it does not fit", () => {
    const shown = (one: FormField, value: string): string | null => shownIn(one, readJson(value));
    expect(shownIn(field("text"), undefined)).toBe("");
    expect(shown(field("text"), '"a\\nb"')).toBe("a\nb");
    expect(shown(field("text"), "5")).toBeNull();
    expect(shown(field("text"), "null")).toBeNull();
    expect(shown(field("text", { nullable: true }), "null")).toBe("");
    expect(shown(field("number"), "12345678901234567890")).toBe("12345678901234567890");
    expect(shown(field("number"), '"5"')).toBeNull();
    expect(shown(field("number"), "{}")).toBeNull();
    expect(shown(field("choice", { options: ['"a"'] }), '"a"')).toBe('"a"');
    expect(shown(field("choice", { options: ['"a"'] }), '"b"')).toBeNull();
    expect(shown(field("json"), '{"a":[1]}')).toBe('{"a": [1]}');
  });

  test("a member is set and taken out, and the others stay as they are", () => {
    const set = withMember('{"a":1.0,"b":{"c":[]}}', "b", { kind: "scalar", text: "2" });
    expect(set).toBe('{\n  "a": 1.0,\n  "b": 2\n}');
    expect(withMember(set, "a", null)).toBe('{\n  "b": 2\n}');
    expect(withMember("nonsense", "a", { kind: "scalar", text: "1" })).toBe('{\n  "a": 1\n}');
    expect(membersOf("[1]")).toBeNull();
    expect(membersOf("{")).toBeNull();
  });

  test("an issue is told at the member that it is of", () => {
    expect(isAt(".to", "to")).toBe(true);
    expect(isAt(".to.x[0]", "to")).toBe(true);
    expect(isAt(".to[0]", "to")).toBe(true);
    expect(isAt(".total", "to")).toBe(false);
    expect(isAt('["a b"].c', "a b")).toBe(true);
    expect(isAt("", "to")).toBe(false);
  });
});

describe("masks", () => {
  const input = '{"user":{"password":"[redacted]","name":"ann"},"iban":"DE**"}';
  const masked = [["user", "password"], ["iban"], ["user", "gone"]];
  const { text: shown, marks } = maskedInput(input, masked);

  test("stand until the value is another, or gone", () => {
    const left = (now: string): string[] => stillMasked(readJson(now), marks).map(placeText);
    expect(JSON.parse(shown)).toEqual({
      user: { password: "[redacted]", name: "ann", gone: "[redacted]" },
      iban: "DE**",
    });
    expect(left(shown)).toEqual(["user.password", "iban", "user.gone"]);
    expect(left(input)).toEqual(["user.password", "iban"]);
    expect(left('{"user":{"password":"real"},"iban":"DE**"}')).toEqual(["iban"]);
    expect(left('{"user":{},"iban":"DE1"}')).toEqual([]);
    expect(left("5")).toEqual([]);
  });

  test("a text that says so is one, wherever it came from", () => {
    expect(stillMasked(readJson('{"x":["a Bearer [redacted] b"]}'), []).map(placeText)).toEqual(["x[0]"]);
  });
});

describe("recent inputs", () => {
  const line = (id: string, preview: string | null, inputBytes = 10): JobLine =>
    ({ id, preview, inputBytes }) as JobLine;
  const detail = (id: string, input: string | null): RecentInput => ({ id, input }) as RecentInput;

  test("each once; of those that are cut each is looked at; what is large or hidden is left out", () => {
    const list = [
      line("1", "{}"),
      line("2", "{}"),
      line("3", '{"a":…'),
      line("4", '{"a":…'),
      line("5", null),
      line("6", "[]", 70_000),
      line("7", "[]"),
    ];
    expect(candidates(list).map(({ id }) => id)).toEqual(["1", "3", "4", "7"]);
    const many = Array.from({ length: 20 }, (_, i) => line(String(i), `${i}`));
    expect(candidates(many)).toHaveLength(8);
  });

  test("at most five that differ", () => {
    const jobs = ["a", "b", "a", null, "c", "d", "e", "f"].map((input, i) => detail(String(i), input));
    expect(distinct(jobs).map(({ input }) => input)).toEqual(["a", "b", "c", "d", "e"]);
  });

  test("cost one list and a look at each; one that is gone meanwhile is left out", async () => {
    const asked: string[] = [];
    const ask = async (path: string, params: object): Promise<never> => {
      asked.push(`${path} ${JSON.stringify(params)}`);
      if (path === "/jobs/2") throw new Error("gone");
      const jobs = ["1", "2", "3"].map((id) => line(id, `"${id}"`));
      return (path === "/jobs" ? { jobs } : detail(path, `"${path}"`)) as never;
    };
    const found = await recentInputs("mail", ask, new AbortController().signal);
    expect(found.map(({ id }) => id)).toEqual(["/jobs/1", "/jobs/3"]);
    expect(asked).toEqual(['/jobs {"name":"mail","limit":20}', "/jobs/1 {}", "/jobs/2 {}", "/jobs/3 {}"]);
  });
});
