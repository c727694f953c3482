// Patches of inputs: merged objects, and steps. Pure.
import { expect, test } from "vitest";
import { checkPatch, type InputPatch, patched } from "../../src/values/json-patch.ts";

const patch = (value: unknown, by: InputPatch): unknown => {
  const text = patched(JSON.stringify(value), by);
  return text === null ? null : (JSON.parse(text) as unknown);
};

test("an object is merged into the input: null takes away, lists are replaced whole (RFC 7396)", () => {
  expect(patch({ a: "b" }, { a: "c", b: 1 })).toEqual({ a: "c", b: 1 });
  expect(patch({ a: { b: "c", d: 1 } }, { a: { b: null } })).toEqual({ a: { d: 1 } });
  expect(patch({ a: [1, 2] }, { a: [3] })).toEqual({ a: [3] });
  expect(patch({ a: "text" }, { a: { b: { c: null } } })).toEqual({ a: { b: {} } });
  expect(patch(["a"], { b: 1 })).toEqual({ b: 1 });
  expect(patch(null, { b: 1 })).toEqual({ b: 1 });
  expect(patched('{"__proto__":{"x":1},"a":1}', { a: 2 })).toBe('{"__proto__":{"x":1},"a":2}');
});

test("steps add, remove, replace, move, copy and test (RFC 6902); one that does not fit changes nothing", () => {
  const steps = (...all: object[]): InputPatch => checkPatch(all);
  expect(patch({ a: [1, 3] }, steps({ op: "add", path: "/a/1", value: 2 }))).toEqual({ a: [1, 2, 3] });
  expect(patch({ a: [1] }, steps({ op: "add", path: "/a/-", value: 2 }))).toEqual({ a: [1, 2] });
  expect(patch({ a: { b: 1 } }, steps({ op: "replace", path: "/a/b", value: { c: 2 } }))).toEqual({
    a: { b: { c: 2 } },
  });
  expect(
    patch({ a: [1, 2, 3], b: 1 }, steps({ op: "remove", path: "/a/1" }, { op: "remove", path: "/b" })),
  ).toEqual({
    a: [1, 3],
  });
  expect(patch({ a: { x: 1 }, b: {} }, steps({ op: "move", from: "/a/x", path: "/b/y" }))).toEqual({
    a: {},
    b: { y: 1 },
  });
  expect(patch({ a: [{ x: 1 }] }, steps({ op: "copy", from: "/a/0", path: "/a/-" }))).toEqual({
    a: [{ x: 1 }, { x: 1 }],
  });
  expect(
    patch(
      { "a/b": 1, "m~n": 2 },
      steps({ op: "replace", path: "/a~1b", value: 3 }, { op: "remove", path: "/m~0n" }),
    ),
  ).toEqual({ "a/b": 3 });
  expect(patch({ a: 1 }, steps({ op: "replace", path: "", value: 7 }))).toBe(7);
  const test = { op: "test", path: "/a", value: { y: 2, x: 1 } };
  expect(patch({ a: { x: 1, y: 2 } }, steps(test, { op: "add", path: "/ok", value: true }))).toMatchObject({
    ok: true,
  });
  for (const misfit of [
    [test],
    [{ op: "remove", path: "/nothing" }],
    [{ op: "replace", path: "/nothing", value: 1 }],
    [{ op: "add", path: "/list/9", value: 1 }],
    [{ op: "add", path: "/a/b/c", value: 1 }],
    [{ op: "move", from: "/list", path: "/list/0" }],
    [{ op: "remove", path: "" }],
    [
      { op: "add", path: "/ok", value: 1 },
      { op: "remove", path: "/nothing" },
    ],
  ])
    expect(patch({ a: 1, list: [1] }, steps(...misfit)), JSON.stringify(misfit)).toBeNull();
  expect(patched("not json", { a: 1 })).toBeNull();
});

test("numbers beside the patch keep all their digits", () => {
  const text = '{"id":12345678901234567890,"price":1.10,"n":1}';
  expect(patched(text, { n: 2 })).toBe('{"id":12345678901234567890,"price":1.10,"n":2}');
  expect(patched(text, [{ op: "copy", from: "/id", path: "/n" }])).toBe(
    '{"id":12345678901234567890,"price":1.10,"n":12345678901234567890}',
  );
});

test("what is no patch is refused", () => {
  for (const wrong of [
    null,
    "x",
    7,
    {},
    [],
    [null],
    [{ op: "explode", path: "/a" }],
    [{ op: "add", path: "a", value: 1 }],
    [{ op: "add", path: "/a~2", value: 1 }],
    [{ op: "add", path: "/a" }],
    [{ op: "move", path: "/a" }],
    Array.from({ length: 101 }, () => ({ op: "remove", path: "/a" })),
  ])
    expect(() => checkPatch(wrong), JSON.stringify(wrong)).toThrow(/patch/);
});
