// Half an id: what somebody copied of one.
import { describe, expect, test } from "vitest";
import { beginsWith, hasPart, type IdPart, idPart } from "../../src/values/id-part.ts";

const id = "0199c1d8-7c00-7abc-8def-0123456789ab";
const part = (text: string): IdPart => {
  const found = idPart(text);
  if (found === null) throw new Error(`${text} is a part`);
  return found;
};

describe("parts of ids", () => {
  test("[K1] every beginning and every end of an id is a part of it, with its dashes and without", () => {
    for (let digits = 4; digits <= 32; digits += 1) {
      const plain = id.replaceAll("-", "");
      for (const text of [plain.slice(0, digits), plain.slice(-digits)]) {
        expect(hasPart(id, part(text)), text).toBe(true);
        expect(hasPart(id, part(text.toUpperCase())), text).toBe(true);
        expect(part(text).digits).toBe(digits);
      }
    }
    for (let cut = 0; cut <= 30; cut += 1) {
      expect(hasPart(id, part(id.slice(cut))), id.slice(cut)).toBe(true);
      expect(beginsWith(id, part(id.slice(0, 36 - cut))), id.slice(0, 36 - cut)).toBe(true);
    }
  });

  test("[K1] what stands in its middle is not a part of it", () => {
    for (const text of ["c1d8", "7c00-7abc", "8def", "0199c1d9", "123456789a"])
      expect(hasPart(id, part(text)), text).toBe(false);
  });

  test("[K1] a beginning is a range of ids, and an end has its dashes", () => {
    expect(part("0199c1d87c")).toEqual({
      first: "0199c1d8-7c00-0000-0000-000000000000",
      last: "0199c1d8-7cff-ffff-ffff-ffffffffffff",
      end: "0199c1d87c",
      digits: 10,
    });
    expect(part("8def0123456789ab").end).toBe("8def-0123456789ab");
    expect(part("f0123456789ab").end).toBe("f-0123456789ab");
    expect(part("…0123456789ab").end).toBe("0123456789ab");
    expect(part(" 0199c1d8… ").digits).toBe(8);
  });

  test("[K1] what is too short, too long or no digits is no part", () => {
    for (const text of ["", "019", "----", "0-1-9", "mail", "0199c1g8", `${id}0`, "%", "0199 c1d8", "0199_"])
      expect(idPart(text), text).toBeNull();
  });
});
