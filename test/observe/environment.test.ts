// The process as clients see it: what runs the program, and which start of it this is.
import { execFileSync } from "node:child_process";
import { hostname } from "node:os";
import { expect, test } from "vitest";
import { processEnv, runtimeOf } from "../../src/observe/environment.ts";

test("Bun and Deno say what they are, and not which Node they stand in for", () => {
  expect(runtimeOf({ node: "24.3.0", v8: "13" })).toBe("node 24.3.0");
  expect(runtimeOf({ node: "24.3.0", bun: "1.3.1" })).toBe("bun 1.3.1");
  expect(runtimeOf({ node: "24.3.0", deno: "2.5.0" })).toBe("deno 2.5.0");
  expect(runtimeOf({})).toBe("unknown");
  expect(processEnv().runtime).toBe(`node ${process.versions.node}`);
});

test("[O13] hostId identifies this start of the process: one in all clients of it, another in each process", () => {
  const { hostId } = processEnv();
  expect(processEnv().hostId).toBe(hostId);
  expect(hostId.startsWith(`${hostname()}-${process.pid}-`)).toBe(true);
  expect(hostId).toMatch(/-[0-9a-f]{8}$/);
  const module = new URL("../../src/observe/environment.ts", import.meta.url).href;
  const code = `const { processEnv } = await import(${JSON.stringify(module)}); console.log(processEnv().pid, processEnv().hostId)`;
  const start = (): string[] =>
    execFileSync(process.execPath, ["--input-type=module", "-e", code], { encoding: "utf8" })
      .trim()
      .split(" ");
  const [[pid, one], [, two]] = [start(), start()];
  expect(one!.slice(0, -8)).toBe(`${hostname()}-${pid!}-`);
  expect(new Set([hostId.slice(-8), one!.slice(-8), two!.slice(-8)]).size).toBe(3);
});
