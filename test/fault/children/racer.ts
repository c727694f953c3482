// A process that takes tokens of a budget, or begins a pass and never ends it.
//
//   node test/fault/children/racer.ts '{"url":"sqlite:…","what":"race","takes":25}'
import { setTimeout as sleep } from "node:timers/promises";
import { open, silentLogger } from "../../../src/index.ts";

export interface RacerSpec {
  readonly url: string;
  readonly options?: { readonly schema?: string };
  readonly what: "race" | "pass";
  readonly takes?: number;
}

const spec = JSON.parse(process.argv[2] ?? "{}") as RacerSpec;
const say = (type: string, details: object = {}): void => console.log(JSON.stringify({ type, ...details }));

const hf = await open(spec.url, { ...spec.options, logger: silentLogger });
say("ready");
if (spec.what === "race") {
  while ((await hf.state.get("go")) === null) await sleep(5);
  const takes = Array.from({ length: spec.takes ?? 0 }, () => hf.budgets.take("slack"));
  say("raced", { granted: (await Promise.all(takes)).filter(({ granted }) => granted).length });
  await hf.close();
} else {
  await hf.state.pass(
    "crawl",
    async (pass) => {
      say("began", { recovery: pass.recovery });
      await sleep(600_000);
    },
    { lease: "2s" },
  );
}
