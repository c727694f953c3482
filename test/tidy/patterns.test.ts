// Every regular expression of the sources is linear: hostile text of 50,000 characters costs none of them noticeable work.
import { Worker } from "node:worker_threads";
import { parseSync } from "vite";
import { expect, test } from "vitest";
import { read, repositoryFiles } from "../support/repository.ts";

interface Found {
  readonly where: string;
  readonly pattern: string;
  readonly flags: string;
}

function literalsIn(file: string): Found[] {
  const source = read(file);
  const found: Found[] = [];
  const visit = (node: unknown): void => {
    if (typeof node !== "object" || node === null) return;
    if (Array.isArray(node)) return node.forEach(visit);
    const { type, regex, start } = node as {
      type?: string;
      regex?: { pattern: string; flags: string };
      start?: number;
    };
    if (type === "Literal" && regex !== undefined)
      found.push({ where: `${file}:${source.slice(0, start).split("\n").length}`, ...regex });
    Object.values(node).forEach(visit);
  };
  visit(parseSync(file, source).program);
  return found;
}

// In a thread, so that an exponential pattern can be ended. The bound is on the thread's own CPU time, which the load of the
// machine does not change: a linear pattern takes below 10 ms, a quadratic one above 1,000.
const attacker = `
const { parentPort, workerData } = require("node:worker_threads");
const heads = ["", "x", "http://", "<", '"', "a.", "0."];
for (const { where, pattern, flags } of workerData) {
  parentPort.postMessage({ trying: where });
  const signs = [...new Set([...pattern.replace(/\\\\[a-zA-Z]/g, "").slice(0, 80), ..."aA0 .-/:~@,<=\\"\\n\\t"])];
  const pumps = [...signs, ...signs.flatMap((sign) => ["a", '"'].map((other) => sign + other))];
  // What a class excludes ends a run of it, and makes what came before be tried in all other ways.
  const tails = ["", "!\\u0001", ...new Set([...pattern.matchAll(/\\[\\^([^\\\\])/g)].map(([, sign]) => sign))];
  attack: for (const head of heads) for (const pump of pumps) for (const tail of tails) {
    const text = head + pump.repeat(50_000 / pump.length) + tail;
    const before = process.threadCpuUsage().user;
    new RegExp(pattern, flags).exec(text);
    if (process.threadCpuUsage().user - before < 400_000) continue;
    parentPort.postMessage({ slow: where + " " + pattern + " on " + JSON.stringify([head, pump, tail]) });
    break attack;
  }
}
parentPort.postMessage({ done: true });`;

async function attacked(patterns: readonly Found[], guardMs = 400_000): Promise<string[]> {
  const slow: string[] = [];
  let trying = "";
  const worker = new Worker(attacker, { eval: true, workerData: patterns });
  const guard = setTimeout(() => void worker.terminate(), guardMs);
  await new Promise<void>((resolve, reject) => {
    worker.on("message", (said: { trying?: string; slow?: string; done?: true }) => {
      trying = said.done === true ? "" : (said.trying ?? trying);
      if (said.slow !== undefined) slow.push(said.slow);
    });
    worker.once("error", reject).once("exit", () => resolve());
  });
  clearTimeout(guard);
  return trying === "" ? slow : [...slow, `${trying} hangs`];
}

test("[O18] every regular expression of the sources is linear on 50,000 hostile characters", async () => {
  const files = repositoryFiles().filter((file) => /^(?:src|ui\/src)\/.*\.tsx?$/.test(file));
  const all = files.flatMap(literalsIn);
  expect(all.length).toBeGreaterThan(150);
  const patterns = [...new Map(all.map((one) => [`${one.pattern}/${one.flags}`, one])).values()];
  expect(await attacked(patterns)).toEqual([]);
}, 450_000);

test("[O18] a quadratic pattern is found, and an exponential one", async () => {
  expect(await attacked([{ where: "here", pattern: "0+$", flags: "" }])).toHaveLength(1);
  const exponential = String.raw`^(?:\/(?:[^~]|~[01])*)*$`;
  const hangs = await attacked([{ where: "here", pattern: exponential, flags: "" }], 5_000);
  expect(hangs).toEqual(["here hangs"]);
}, 60_000);
