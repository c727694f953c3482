// Whole functions that read what users send, on 50,000 hostile characters: patterns that are put together from texts, and loops
// around patterns, which patterns.test.ts does not see.
import { Worker } from "node:worker_threads";
import { expect, test } from "vitest";
import { read, repositoryFiles, root } from "../support/repository.ts";

/** Where a pattern is put together, and the function below that hands input to it; null: no input meets it. */
const composed: Readonly<Record<string, string | null>> = {
  "src/operate/search-words.ts": "parseSearch",
  "src/schedules/cron-words.ts": "timingInWords",
  "src/values/duration.ts": "durationMs",
  // The schema's own definition, and the names of parameters in our own statements.
  "src/storage/postgres/schema-admin.ts": null,
  "src/storage/sqlite/clock-step.ts": null,
  // Made of a constant.
  "ui/src/text/visible-characters.ts": null,
};

// As in patterns.test.ts: in a thread that can be ended, bounded by the thread's own CPU time.
const attacker = `
const { parentPort, workerData } = require("node:worker_threads");
const heads = ["", "a:", '"', "token="];
const signs = [..."aA0 .-/:~@,<=>;*?#LW\\\\\\"'{}[]()\\n\\t%&+|\\u0001\\u00e9"];
const words = ["a.", "a:", '\\\\"', '":"', "1h", "0.", "..", "~0", "~1", "//", "token:", 'token:"', "auth:{", "auth:[", "auth={'",
  'auth:"\\\\', "token:'x' + ", '"cookie",', "cookie:;", 'pass:\\\\\\\\"', "bearer ", "a://", "a://b:", "xauth", "1-2,", "*/5 ", "MON,", "a b ",
  "payload.a:", "ids=a&", "queue=a,", ">=", "a@b ", "ab-"];
const tails = ["", "!\\u0001", "~"];
(async () => {
  const load = (file) => import(require("node:url").pathToFileURL(workerData.root + "/src/" + file).href);
  const [words_, cronWords, cron, duration, redact, patch, query, range, filter, idPart, name, trace, fingerprint, open, target, http, contract] =
    await Promise.all(["operate/search-words.ts", "schedules/cron-words.ts", "schedules/cron.ts", "values/duration.ts", "dashboard/access/redact.ts",
      "values/json-patch.ts", "dashboard/api/query.ts", "operate/filter-range.ts", "operate/filter.ts", "values/id-part.ts", "values/name.ts", "values/trace-id.ts",
      "jobs/fingerprint.ts", "storage/open.ts", "cli/target.ts", "dashboard/http.ts", "dashboard/api/contract.ts"].map(load));
  const redactor = new redact.Redactor(undefined);
  const job = { name: "a", queue: "a" };
  const functions = {
    parseSearch: (text) => words_.parseSearch(text),
    wordOf: (text) => words_.wordOf("payload", text),
    timingInWords: (text) => cronWords.timingInWords({ cron: text, everyMs: null, timezone: null }),
    timingOfFields: (text) => cronWords.timingInWords({ cron: "0 " + text.replace(/\\s/g, "") + " * * *", everyMs: null, timezone: null }),
    cron: (text) => cron.cronTiming(text, undefined),
    zone: (text) => cron.cronTiming("0 0 * * *", text),
    durationMs: (text) => duration.durationMs(text, "delay"),
    redactText: (text) => redactor.text(text),
    redactJson: (text) => redactor.json(JSON.stringify({ a: text, [text]: 1, password: text }), job),
    redactRaw: (text) => redactor.json(text, job),
    patchPath: (text) => patch.checkPatch([{ op: "remove", path: text }]),
    patchFrom: (text) => patch.checkPatch([{ op: "copy", from: "/" + text, path: "/a" }]),
    patched: (text) => patch.patched(JSON.stringify({ a: text }), [{ op: "remove", path: "/" + text }]),
    readQuery: (text) => query.insightFilter(query.readQuery(contract.FilterJson, new URLSearchParams(text))),
    range: (text) => range.wordFilter({ attempt: text }),
    run: (text) => range.wordFilter({ run: ">" + text + ".." + text }),
    ended: (text) => range.wordFilter({ ended: text }),
    payload: (text) => range.wordFilter({ payload: [text, "a." + text + ":1"] }),
    age: (text) => range.bornWithin(text, 0),
    search: (text) => query.insightFilter({ search: text, error: text, lane: text, key: text }),
    id: (text) => filter.checkRunId(text),
    idPart: (text) => idPart.idPart(text),
    name: (text) => name.checkName(text, "name"),
    trace: (text) => trace.checkTrace(text),
    fingerprint: (text) => fingerprint.fingerprint("a", { message: text, stack: text }),
    withoutSecrets: (text) => open.withoutSecrets("postgres://" + text),
    secretsOf: (text) => target.secretsOf("postgres://" + text),
  };
  parentPort.postMessage({ names: Object.keys(functions) });
  const pumps = workerData.pumps ?? [...new Set([...signs, ...words])];
  if (workerData.slow) functions.slow = (text) => /0+$/.exec(text);
  for (const [name, run] of Object.entries(functions)) {
    if (workerData.slow && name !== "slow") continue;
    parentPort.postMessage({ trying: name });
    attack: for (const head of heads) for (const pump of pumps) for (const tail of tails) {
      const text = head + pump.repeat(50_000 / pump.length) + tail;
      const before = process.threadCpuUsage().user;
      try { run(text); } catch (error) {
        if (error.name !== "UsageError" && !(error instanceof http.ApiError)) {
          parentPort.postMessage({ slow: name + " threw " + error + " on " + JSON.stringify([head, pump, tail]) });
          break attack;
        }
      }
      if (process.threadCpuUsage().user - before < 400_000) continue;
      parentPort.postMessage({ slow: name + " on " + JSON.stringify([head, pump, tail]) });
      break attack;
    }
  }
  parentPort.postMessage({ done: true });
})().catch((error) => parentPort.postMessage({ slow: String(error.stack) }));`;

async function attacked(
  data: object,
): Promise<{ readonly slow: string[]; readonly names: readonly string[] }> {
  const slow: string[] = [];
  let names: readonly string[] = [];
  let trying = "everything";
  const worker = new Worker(attacker, { eval: true, workerData: { root, ...data } });
  const guard = setTimeout(() => void worker.terminate(), 400_000);
  await new Promise<void>((resolve, reject) => {
    worker.on(
      "message",
      (said: { trying?: string; slow?: string; done?: true; names?: readonly string[] }) => {
        names = said.names ?? names;
        trying = said.done === true ? "" : (said.trying ?? trying);
        if (said.slow !== undefined) slow.push(said.slow);
      },
    );
    worker.once("error", reject).once("exit", () => resolve());
  });
  clearTimeout(guard);
  return { slow: trying === "" ? slow : [...slow, `${trying} hangs`], names };
}

test("[O18] every function that reads what users send is linear on 50,000 hostile characters", async () => {
  const { slow, names } = await attacked({});
  expect(slow).toEqual([]);
  for (const one of Object.values(composed)) if (one !== null) expect(names).toContain(one);
}, 450_000);

test("[O18] a quadratic function is found", async () => {
  expect((await attacked({ slow: true, pumps: ["0"] })).slow).toHaveLength(1);
}, 60_000);

test("[O18] where a pattern is put together from texts is known, and what input it meets", () => {
  const files = repositoryFiles().filter((file) => /^(?:src|ui\/src)\/.*\.tsx?$/.test(file));
  const found = files.filter((file) => /\bRegExp\(/.test(read(file)));
  expect(found.sort()).toEqual(Object.keys(composed).sort());
});
