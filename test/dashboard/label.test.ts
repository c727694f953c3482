// The environment's label and its color.
import { expect, test } from "vitest";
import { labelColors } from "../../src/dashboard/appearance/label.ts";
import { dashboard } from "../../src/dashboard/index.ts";
import type { About } from "../../src/dashboard/api/contract.ts";
import { open, silentLogger } from "../../src/index.ts";

test("text on each color of a label has a contrast of at least 4.5 to 1", () => {
  for (const name of ["red", "orange", "yellow", "green", "blue", "violet", "pink", "grey"]) {
    const colors = labelColors(name);
    expect([name, contrast(colors?.paper ?? "", colors?.ink ?? "") >= 4.5]).toEqual([name, true]);
  }
  expect(labelColors(undefined)).toBeNull();
});

/** As WCAG 2 defines it, from 1 to 21. */
function contrast(a: string, b: string): number {
  const [dark = 0, light = 0] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (light + 0.05) / (dark + 0.05);
}

function luminance(color: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const share = Number.parseInt(color.slice(at, at + 2), 16) / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

test("an unknown color is refused with the list of colors", async () => {
  const hf = await open("sqlite::memory:", { logger: silentLogger });
  const auth = { token: "0123456789abcdef" };
  for (const labelColor of ["crimson", "#fff", "#b91c1c", "red;x", "", 7, "constructor"])
    expect(() => dashboard(hf, { auth, label: "x", labelColor: labelColor as string })).toThrow(
      /labelColor must be red/,
    );
  for (const label of ["", " ", 7, "x".repeat(61)])
    expect(() => dashboard(hf, { auth, label: label as string })).toThrow(/label must be a text/);
  await hf.close();
});

test("of several databases each has its own color, and its own label has no inherited color", async () => {
  const hf = await open("sqlite::memory:", { logger: silentLogger });
  const token = "0123456789abcdef";
  const handler = dashboard(
    { main: hf, eu: { hf, label: "eu" }, old: { hf, label: "old", labelColor: "grey" } },
    { auth: { token }, label: "prod", labelColor: "red" },
  );
  const of = async (name: string): Promise<unknown[]> => {
    const request = new Request(`http://localhost/db/${name}/api/v1/about`, {
      headers: { authorization: `Bearer ${token}` },
    });
    const { label, labelColor } = (await (await handler(request)).json()) as About;
    return [label, labelColor];
  };
  expect(await of("main")).toEqual(["prod", "#b91c1c"]);
  expect(await of("eu")).toEqual(["eu", null]);
  expect(await of("old")).toEqual(["old", "#52525b"]);
  handler.close();
  await hf.close();
});
