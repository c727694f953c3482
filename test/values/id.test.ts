// Ids: well-formed, strictly increasing in one process, telling their time.
import fc from "fast-check";
import { expect, test } from "vitest";
import { idAt, idFactory, idTime, isId } from "../../src/values/id.ts";

const v7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

function increasing(ids: readonly string[]): boolean {
  return ids.every((id, i) => i === 0 || (ids[i - 1] ?? "") < id);
}

test("an id is a UUID of version 7 in lower case", () => {
  const newId = idFactory(Date.now);
  for (let i = 0; i < 10_000; i++) expect(newId()).toMatch(v7);
});

test("100,000 ids of one millisecond strictly increase [A14]", () => {
  const newId = idFactory(() => 1_767_225_600_000);
  const ids = Array.from({ length: 100_000 }, newId);
  expect(increasing(ids)).toBe(true);
  expect(idTime(ids.at(-1) ?? "")).toBe(1_767_225_600_000);
});

test("ids increase whatever the clock does and whatever is random", () => {
  fc.assert(
    fc.property(
      fc.array(fc.oneof(fc.integer({ min: -10, max: 10 }), fc.double()), { maxLength: 200 }),
      fc.nat(255),
      (steps, byte) => {
        let now = 1_767_225_600_000;
        const clock = steps.values();
        const newId = idFactory(
          () => (now += clock.next().value ?? 0),
          (bytes) => void bytes.fill(byte),
        );
        const ids = Array.from({ length: steps.length }, newId);
        expect(ids.every((id) => v7.test(id))).toBe(true);
        expect(increasing(ids)).toBe(true);
      },
    ),
  );
});

test("when the clock goes back, ids stay in the latest millisecond", () => {
  let now = 5_000;
  const newId = idFactory(() => now);
  const first = newId();
  now = 1_000;
  const second = newId();
  now = 5_001;
  const third = newId();
  expect([first, second, third].map(idTime)).toEqual([5_000, 5_000, 5_001]);
  expect(increasing([first, second, third])).toBe(true);
});

test("two factories in the same millisecond do not collide", () => {
  const factories = Array.from({ length: 50 }, () => idFactory(() => 1_000));
  const ids = factories.flatMap((newId) => Array.from({ length: 200 }, newId));
  expect(new Set(ids).size).toBe(10_000);
});

test("the 42 random bits and the counter's start all vary", () => {
  let now = 0;
  const newId = idFactory(() => ++now);
  const ones = Array<number>(128).fill(0);
  for (let i = 0; i < 4_000; i++) {
    const bits = BigInt(`0x${newId().replaceAll("-", "")}`)
      .toString(2)
      .padStart(128, "0");
    for (let bit = 48; bit < 128; bit++) ones[bit] = (ones[bit] ?? 0) + Number(bits[bit]);
  }
  // 48–51 is the version; 52 the counter's leading 0; 64 and 65 the variant.
  const random = ones.flatMap((count, bit) => (bit < 53 || bit === 64 || bit === 65 ? [] : [count]));
  expect(Math.min(...random)).toBeGreaterThan(1_700);
  expect(Math.max(...random)).toBeLessThan(2_300);
});

test("idAt is the smallest id of its millisecond", () => {
  expect(idAt(0)).toBe("00000000-0000-7000-8000-000000000000");
  fc.assert(
    fc.property(fc.nat(2 ** 48 - 2), (ms) => {
      const id = idFactory(() => ms)();
      expect(idAt(ms)).toMatch(v7);
      expect(idTime(idAt(ms))).toBe(ms);
      expect(idAt(ms) < id && id < idAt(ms + 1)).toBe(true);
      const least = idFactory(
        () => ms,
        (bytes) => void bytes.fill(0),
      );
      expect(least()).toBe(idAt(ms));
    }),
  );
  for (const ms of [-1, Number.NaN, Infinity, 8.64e15]) expect(idAt(ms)).toMatch(v7);
});

test("isId knows UUIDs in lower case, of any version, and nothing else", () => {
  expect(isId(idFactory(Date.now)())).toBe(true);
  expect(isId(crypto.randomUUID())).toBe(true);
  const id = idAt(1e12);
  for (const bad of [
    "",
    "x",
    id.toUpperCase().replace("0", "A"),
    `${id}\n`,
    ` ${id}`,
    id.slice(1),
    id.replaceAll("-", ""),
    `{${id}}`,
  ]) {
    expect(isId(bad)).toBe(false);
  }
  for (const bad of [null, undefined, 5, {}]) expect(isId(bad as never)).toBe(false);
});
