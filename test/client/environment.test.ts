// What runs the program, as workers tell it.
import { expect, test } from "vitest";
import { processEnv, runtimeOf } from "../../src/environment.ts";

test("Bun and Deno say what they are, and not which Node they stand in for", () => {
  expect(runtimeOf({ node: "24.3.0", v8: "13" })).toBe("node 24.3.0");
  expect(runtimeOf({ node: "24.3.0", bun: "1.3.1" })).toBe("bun 1.3.1");
  expect(runtimeOf({ node: "24.3.0", deno: "2.5.0" })).toBe("deno 2.5.0");
  expect(runtimeOf({})).toBe("unknown");
  expect(processEnv().runtime).toBe(`node ${process.versions.node}`);
});
