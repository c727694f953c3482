// A worker in a process of its own, driven by a test: worker-process.ts <url> <schema> <JSON of work options>.
import { systemClock } from "../../src/clock.ts";
import { benchOn, kind } from "./bench.ts";

const [url = "", schema = "holdfast", options = "{}"] = process.argv.slice(2);
const say = (type: string, fields: object = {}): void => console.log(JSON.stringify({ type, ...fields }));

const b = await benchOn(url, systemClock, { schema });
const worker = b.work(
  [
    kind("poison", () => process.exit(9), { maxCrashes: 3 }),
    kind("quick", () => undefined),
    kind("long", async (input: unknown, ctx) => {
      say("started", { id: ctx.id, input });
      await new Promise((_resolve, reject) => {
        const timer = setTimeout(() => undefined, 600_000);
        ctx.signal.addEventListener("abort", () => {
          say("aborted", { id: ctx.id, reason: (ctx.signal.reason as { code: string }).code });
          clearTimeout(timer);
          reject(new Error("aborted"));
        });
      });
    }),
    kind("deaf", (_: unknown, ctx) => {
      say("started", { id: ctx.id });
      return new Promise(() => undefined);
    }),
  ],
  JSON.parse(options) as object,
  {
    workerId: `process-${process.pid}-${Date.now()}`,
    onSignalled: () => b.real.close(),
    random: Math.random,
  },
);
process.on("unhandledRejection", (error) => say("unhandled", { error: String(error) }));
await worker.ready;
say("ready");
try {
  await worker.stopped;
  say("stopped", { leasesLost: worker.leasesLost });
  await b.real.close();
} catch (error) {
  say("failed", { code: (error as { code?: string }).code, message: (error as Error).message });
  process.exitCode = 1;
  await b.real.close();
}
