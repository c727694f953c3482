// Records which functions a piece of work calls, as lines of JSON: `node test/support/walk-recorder.ts URL SCHEMA WALK`. Each walk runs
// several times; functions that are not called every time (a heartbeat, a poll that came between) do not count.
import { readFileSync } from "node:fs";
import inspector from "node:inspector/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { processIo } from "../../src/cli/io.ts";
import { run } from "../../src/cli/command-line.ts";
import { dashboard } from "../../src/dashboard/index.ts";
import { defineJob, type Holdfast, open, silentLogger, type Worker } from "../../src/index.ts";

/** Work that can be done again and again; resolves when all of it is over. */
type Walk = () => Promise<unknown>;
type Walks = Readonly<Record<string, () => Promise<Walk>>>;

const times = 5;
const [url = "", schema = "", name = ""] = process.argv.slice(2);
const source = new URL("../../src/", import.meta.url).href;

const hf = await open(url, { logger: silentLogger, ...(schema === "" ? {} : { schema }) });
const token = "a-token-that-is-long-enough";

/** A worker, and what it ran last. */
async function serving(
  definition: (ran: () => void) => Parameters<Holdfast["work"]>[0][number],
): Promise<{ worker: Worker; next: () => Promise<void> }> {
  let runs = 0;
  const worker = hf.work([definition(() => (runs += 1))], { queues: ["default"] });
  await worker.ready;
  const next = async (): Promise<void> => {
    for (const before = runs; runs === before;) await sleep(2);
    await worker.idle();
  };
  return { worker, next };
}

const walks: Walks = {
  async job() {
    const job = defineJob({ name: "plain", run: () => told() });
    let told = (): void => {};
    const { next } = await serving((ran) => ((told = ran), job));
    return () => Promise.all([next(), hf.enqueue(job, { n: 1 })]);
  },
  async step() {
    let told = (): void => {};
    const job = defineJob({
      name: "run",
      run: async (_: unknown, ctx) => {
        await ctx.step("one", () => 1);
        told();
      },
    });
    const { next } = await serving((ran) => ((told = ran), job));
    return () => Promise.all([next(), hf.enqueue(job, null)]);
  },
  async schedule() {
    let told = (): void => {};
    const job = defineJob({ name: "tick", run: () => told() });
    const { next } = await serving((ran) => ((told = ran), job));
    await hf.schedules.put({ name: "often", every: "1s", job, input: null });
    return next;
  },
  async limits() {
    let told = (): void => {};
    const job = defineJob({
      name: "laned",
      lane: () => "tenant",
      lanes: { concurrency: 1, rate: { limit: 1_000, per: "1s" } },
      run: () => told(),
    });
    const { next } = await serving((ran) => ((told = ran), job));
    return () => Promise.all([next(), hf.enqueue(job, null)]);
  },
  async request() {
    const handler = dashboard(hf, { auth: { token } });
    await hf.enqueue("waits", null);
    const ask = (): Promise<Response> =>
      Promise.resolve(
        handler(
          new Request("http://localhost/api/v1/jobs?state=ready", {
            headers: { authorization: `Bearer ${token}` },
          }),
        ),
      );
    return async () => {
      const response = await ask();
      if (response.status !== 200) throw new Error(await response.text());
      return response.json();
    };
  },
  async command() {
    await hf.enqueue("waits", null);
    const io = { ...processIo(), stdout: { write: () => {}, isTTY: false, columns: 100, rows: 40 } };
    const line = ["jobs", "list", "--url", url, ...(schema === "" ? [] : ["--schema", schema])];
    return async () => {
      const code = await run(line, io);
      if (code !== 0) throw new Error(`exit code ${code}`);
    };
  },
};

const make = walks[name];
if (make === undefined) throw new Error(`There is no walk ${name}: ${Object.keys(walks).join(", ")}`);
const walk = await make();
for (let n = 0; n < 2; n++) await walk();
await sleep(300);

const session = new inspector.Session();
session.connect();
await session.post("Profiler.enable");
await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
let called = null as Map<string, number> | null;
const ever = new Set<string>();
for (let n = 0; n < times; n++) {
  await session.post("Profiler.takePreciseCoverage");
  await walk();
  const now = functionsIn((await session.post("Profiler.takePreciseCoverage")).result);
  for (const key of now.keys()) ever.add(key.slice(0, key.indexOf(" ")));
  called = called === null ? now : new Map([...called].filter(([key]) => now.has(key)));
  await sleep(50);
}

const files: Record<string, number> = {};
for (const [key, lines] of called ?? []) {
  const file = key.slice(0, key.indexOf(" "));
  files[file] = (files[file] ?? 0) + lines;
}
console.log(JSON.stringify({ type: "walk", files, ever: [...ever] }));
process.exit(0);

/** By file and place: how many lines each function that was called has. */
function functionsIn(result: readonly inspector.Profiler.ScriptCoverage[]): Map<string, number> {
  const found = new Map<string, number>();
  for (const { url: script, functions } of result) {
    if (!script.startsWith(source)) continue;
    const text = readFileSync(fileURLToPath(script), "utf8");
    for (const { functionName, ranges } of functions) {
      const [range] = ranges;
      if (functionName === "" || range === undefined || range.count === 0) continue;
      const { startOffset, endOffset } = range;
      const lines = text.slice(startOffset, endOffset).split("\n").length;
      found.set(`${script.slice(source.length)} ${startOffset} ${functionName}`, lines);
    }
  }
  return found;
}
