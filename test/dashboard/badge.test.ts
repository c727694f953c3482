// The colour of the environment's label.
import { expect, test } from "vitest";
import { badgeOf, LABEL_COLORS } from "../../src/dashboard/appearance/badge.ts";
import { contrast } from "../../src/dashboard/appearance/contrast.ts";
import { dashboard } from "../../src/dashboard/index.ts";
import type { About } from "../../src/dashboard/api/contract.ts";
import { open, silentLogger } from "../../src/index.ts";

test("ink can be read on every colour: at least 4.5 to 1", () => {
  const steps = [0, 51, 90, 102, 117, 119, 128, 153, 204, 255];
  const hex = (n: number): string => n.toString(16).padStart(2, "0");
  const every = steps.flatMap((r) => steps.flatMap((g) => steps.map((b) => `#${hex(r)}${hex(g)}${hex(b)}`)));
  for (const color of [...every, ...Object.keys(LABEL_COLORS)]) {
    const badge = badgeOf(color);
    expect([color, contrast(badge?.paper ?? "", badge?.ink ?? "") >= 4.5]).toEqual([color, true]);
  }
  expect(contrast("#000000", "#ffffff")).toBe(21);
  expect(badgeOf("yellow")?.ink).toBe("#000000");
  expect(badgeOf("#B91C1C")).toEqual({ paper: "#b91c1c", ink: "#ffffff" });
  expect(badgeOf(undefined)).toBeNull();
});

test("what is no colour is refused with what is one", async () => {
  const hf = await open("sqlite::memory:", { logger: silentLogger });
  const auth = { token: "0123456789abcdef" };
  for (const labelColor of ["crimson", "#fff", "red;x", "", 7, "constructor"])
    expect(() => dashboard(hf, { auth, label: "x", labelColor: labelColor as string })).toThrow(
      /labelColor must be red/,
    );
  for (const label of ["", " ", 7, "x".repeat(61)])
    expect(() => dashboard(hf, { auth, label: label as string })).toThrow(/label must be a text/);
  await hf.close();
});

test("of several databases each wears its own colour, and a label of its own not another's", async () => {
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
