// A job as text that enqueues one like it: what the text is, and that running it does so: by curl, the command line and a program.
import { execFile, execFileSync } from "node:child_process";
import { chmodSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, onTestFinished, test } from "vitest";
import type { JobDetail } from "../../src/dashboard/api/contract.ts";
import { toNodeHandler } from "../../src/dashboard/node.ts";
import { DEFAULT_ATTEMPTS } from "../../src/jobs/transition.ts";
import {
  commandSnippet,
  curlSnippet,
  type SnippetJob,
  typescriptSnippet,
  USUAL_ATTEMPTS,
} from "../../ui/src/new-job/snippets.ts";
import { on } from "../cli/support.ts";
import { removeDirectory, temporaryDirectory } from "../support/guard.ts";
import { onEveryStore } from "../support/stores.ts";
import { api, type Api, TOKEN } from "./support.ts";

const run = promisify(execFile);

const job = (change: Partial<SnippetJob> = {}): SnippetJob => ({
  name: "send-mail",
  queue: "default",
  priority: 0,
  maxAttempts: USUAL_ATTEMPTS,
  timeoutMs: null,
  deadlineAt: null,
  createdAt: 1_000,
  key: null,
  lane: null,
  context: null,
  input: '{\n  "to": "ann"\n}',
  masked: [],
  payloadHidden: false,
  ...change,
});
const here = { api: "http://127.0.0.1:8787/admin/api/v1", auth: "token" } as const;

describe("[K3] a job as text", () => {
  test("says what is not as usual, and no more", () => {
    expect(USUAL_ATTEMPTS).toBe(DEFAULT_ATTEMPTS);
    expect(commandSnippet(job())).toBe(`holdfast enqueue send-mail '{"to":"ann"}'`);
    expect(curlSnippet(job(), here)).toBe(
      [
        String.raw`curl -X POST http://127.0.0.1:8787/admin/api/v1/jobs \ `.trimEnd(),
        String.raw`  -H "Authorization: Bearer $HOLDFAST_TOKEN" \ `.trimEnd(),
        String.raw`  -H 'Content-Type: application/json' \ `.trimEnd(),
        `  --data-raw '{"name":"send-mail","input":{"to":"ann"}}'`,
      ].join("\n"),
    );
    expect(typescriptSnippet(job())).toBe('await hf.enqueue("send-mail", { to: "ann" });');
    const much = job({
      queue: "mail",
      priority: -3,
      maxAttempts: 2,
      timeoutMs: 1_500,
      deadlineAt: 61_000,
      lane: "a b",
      key: "k",
    });
    expect(commandSnippet(much)).toBe(
      `holdfast enqueue send-mail '{"to":"ann"}' --queue mail --priority=-3 --attempts 2 --timeout 1500ms --deadline 60000ms --key k --lane 'a b'`,
    );
    expect(typescriptSnippet(much)).toContain("deadline: 60000");
  });

  test("where a page signs in by itself there is no token to put in, but the header that a change needs", () => {
    const text = curlSnippet(job(), { ...here, auth: "page" });
    expect(text).toContain("-H 'x-holdfast: 1'");
    expect(text).not.toContain("Bearer");
    expect(text.split("\n")[0]).toMatch(/^# This dashboard has its own sign-in/);
  });

  test("a program keeps digits, and takes no key for something else", () => {
    const input =
      '{"n":12345678901234567890,"f":1.50,"__proto__":{"x":1},"a-b":"\\u2028\\ud800 ü 🙂","constructor":[]}';
    const text = typescriptSnippet(job({ input }));
    expect(text).toContain('n: JSON.rawJSON("12345678901234567890")');
    expect(text).toContain("f: 1.50");
    expect(text).toContain('["__proto__"]: { x: 1 }');
    expect(text).toContain('"a-b": "\\u2028\\ud800 ü 🙂"');
    expect(text.split("\n")[0]).toBe("// JSON.rawJSON keeps digits that a JavaScript number cannot hold.");
  });

  test("what is hidden or redacted is not copied as if it were real: no text works before it is filled in", () => {
    const masked = job({
      input:
        '{"to":"ann","auth":{"token":"[redacted]"},"list":[{"password":"[redacted]"},2],"$(id)\\n`id`":"***"}',
      masked: [["auth", "token"], ["list", "0", "password"], ["$(id)\n`id`"], ["gone"]],
      context: "for [redacted]",
    });
    for (const text of [commandSnippet(masked), curlSnippet(masked, here), typescriptSnippet(masked)]) {
      expect(text).not.toContain("[redacted]");
      expect(text).not.toContain("***");
      expect(text.match(/REDACTED/g)).toHaveLength(5);
      const [first, second] = text.split("\n");
      expect(first).toMatch(
        /^(#|\/\/) Redacted here, auth\.token and list\.0\.password and __id___id_ and gone\. Put the real values in place of REDACTED\.$/,
      );
      expect(second).toMatch(/^(#|\/\/) Its context is partly redacted and is left out\.$/);
    }
    expect(commandSnippet(masked)).toContain('{"token":REDACTED}');
    const all = job({ input: '"[redacted]"', masked: [[]] });
    expect(commandSnippet(all)).toBe(
      "# Redacted here. Put the real values in place of REDACTED.\nholdfast enqueue send-mail REDACTED",
    );
    const hidden = job({ input: null, payloadHidden: true });
    expect(curlSnippet(hidden, here)).toContain('"input":INPUT}');
    expect(typescriptSnippet(hidden)).toBe(
      '// You do not have permission to see the input of this job. Put it in place of INPUT.\nawait hf.enqueue("send-mail", INPUT);',
    );
  });

  test("a comment has nothing that a shell would run", () => {
    const keys = ["`id`", "$(id)", "a;b", "a\nb", "a'b", 'a"b', "a|b", "a&b", "a>b", "a\u2028b"];
    for (const key of keys) {
      const text = commandSnippet(job({ input: JSON.stringify({ [key]: 1 }), masked: [[key]] }));
      expect(text.split("\n")[0]).toMatch(/^# [\w .,]+$/);
    }
  });
});

// What a job may be made of, at its worst.
const nasty = {
  quotes: `it's "quoted" \\ and \\' $HOME \`id\` $(id) !! %s *`,
  lines: "one\ntwo\r\n\tthree",
  unicode: "ü 🙂 \u2028 \u202e",
  "a key with 'quotes'": [null, true, -1, [], {}],
  "": "empty",
};
const inputs: readonly (readonly [name: string, input: string])[] = [
  ["quotes, newlines and unicode", JSON.stringify(nasty)],
  ["digits that no number holds", '{"n":12345678901234567890,"m":[-0.12345678901234567890]}'],
  ["a negative number", "-5"],
  ["halves of surrogate pairs and NUL", String.raw`{"x":"\ud800 \u0000 \udfff"}`],
  ["a large one", JSON.stringify({ text: `it's ${"ü".repeat(70_000)}` })],
];
const options = {
  queue: "mail",
  priority: 7,
  attempts: 2,
  timeout: "90s",
  key: 'it\'s\n"k" $(id)',
  lane: "-l'1",
  context: "why: it's\nso",
} as const;

const hasCurl = ((): boolean => {
  try {
    execFileSync("curl", ["--version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
})();

/** A directory with one program in it, which says what it was given. */
function stub(name: string): { readonly directory: string } {
  const directory = temporaryDirectory("stub");
  onTestFinished(() => removeDirectory(directory));
  const file = join(directory, name);
  writeFileSync(
    file,
    `#!${process.execPath}\nlet text = "";\nconst args = process.argv.slice(2);\nconst done = () => process.stdout.write(JSON.stringify({ args, text }));\nif (!args.some((arg) => arg === "-" || arg === "@-")) done();\nelse process.stdin.setEncoding("utf8").on("data", (part) => (text += part)).on("end", done);\n`,
  );
  chmodSync(file, 0o755);
  return { directory };
}

/** What a shell makes of a text; from a file, since a large one is too much for an argument. */
async function inShell(text: string, env: Readonly<Record<string, string>>, path = ""): Promise<string> {
  const directory = temporaryDirectory("script");
  onTestFinished(() => removeDirectory(directory));
  const file = join(directory, "script.sh");
  writeFileSync(file, text);
  const PATH = [path, process.env["PATH"] ?? ""].filter((one) => one !== "").join(delimiter);
  const { stdout } = await run("sh", [file], { env: { ...env, PATH }, maxBuffer: 10_000_000 });
  return stdout;
}

/** The newest job is like the first one, to the last sign of its input. */
async function isLike({ get }: Api, first: JobDetail, id: string): Promise<void> {
  const { body } = await get<JobDetail>(`/jobs/${id}`);
  const { name, queue, priority, maxAttempts, timeoutMs, key, lane, context, input } = first;
  expect(id).not.toBe(first.id);
  expect(body).toMatchObject({ name, queue, priority, maxAttempts, timeoutMs, key, lane, context, input });
}

onEveryStore((target) => {
  describe("[K3] the text of a job, run", () => {
    /** A job of this input, cancelled so that its key is free, as the page has it. */
    const made = async (dashboard: Api, input: string): Promise<JobDetail> => {
      const { body } = await dashboard.send<{ id: string }>(
        "POST",
        "/jobs",
        `{"name":"nasty","input":${input},${JSON.stringify(options).slice(1)}`,
      );
      await dashboard.hf.jobs.cancel(body.id);
      return (await dashboard.get<JobDetail>(`/jobs/${body.id}`)).body;
    };

    test.each(inputs)("by curl: %s", async (_name, input) => {
      const dashboard = await api(target, { basePath: "/admin/jobs" });
      const first = await made(dashboard, input);
      const server = createServer(toNodeHandler(dashboard.handler));
      await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
      onTestFinished(() => void server.close());
      const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}/admin/jobs/api/v1`;
      const text = curlSnippet(first, { api: base, auth: "token" });
      // What a shell makes of it.
      const { args, text: body } = JSON.parse(
        await inShell(text, { HOLDFAST_TOKEN: TOKEN }, stub("curl").directory),
      ) as { args: string[]; text: string };
      expect(args.slice(0, 7)).toEqual([
        "-X",
        "POST",
        `${base}/jobs`,
        "-H",
        `Authorization: Bearer ${TOKEN}`,
        "-H",
        "Content-Type: application/json",
      ]);
      const sent = await fetch(args[2]!, {
        method: "POST",
        headers: { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" },
        body: args[7] === "--data-raw" ? args[8]! : body,
      });
      const answer = (await sent.json()) as { id: string };
      await isLike(dashboard, first, answer.id);
      if (!hasCurl) return;
      await dashboard.hf.jobs.cancel(answer.id);
      const told = JSON.parse(await inShell(text, { HOLDFAST_TOKEN: TOKEN })) as {
        status: string;
        id: string;
      };
      expect(told.status).toBe("enqueued");
      await isLike(dashboard, first, told.id);
    });

    test.each(inputs)("by the command line: %s", async (_name, input) => {
      const dashboard = await api(target);
      const first = await made(dashboard, input);
      const { args, text } = JSON.parse(
        await inShell(commandSnippet(first), {}, stub("holdfast").directory),
      ) as { args: string[]; text: string };
      const ran = await on(dashboard.store)([...args, "--json"], { stdin: text });
      // Nobody works here, and that is all it has to say beside its result.
      expect([ran.code, ran.err]).toEqual([0, "No worker is running. The job waits until one starts.\n"]);
      await isLike(dashboard, first, ran.json<{ id: string }>().id);
    });

    test.each(inputs)("by a program: %s", async (_name, input) => {
      const dashboard = await api(target);
      const first = await made(dashboard, input);
      const program = typescriptSnippet(first).replace("await hf.enqueue", "return hf.enqueue");
      // oxlint-disable-next-line typescript/no-implied-eval -- the text is what is tested
      const call = new Function("hf", program) as (hf: unknown) => Promise<{ id: string }>;
      await isLike(dashboard, first, (await call(dashboard.hf)).id);
    });

    test("redacted or hidden, it enqueues nothing", async () => {
      const dashboard = await api(target);
      const { id } = await dashboard.hf.enqueue("secretive", { to: "ann", password: "x1" });
      const { body: redacted } = await dashboard.get<JobDetail>(`/jobs/${id}`);
      expect(redacted.masked).toEqual([["password"]]);
      for (const one of [redacted, { ...redacted, payloadHidden: true, input: null, masked: [] }]) {
        const text = curlSnippet(one, { api: "http://h/api/v1", auth: "token" });
        const { args } = JSON.parse(await inShell(text, {}, stub("curl").directory)) as { args: string[] };
        expect((await dashboard.send("POST", "/jobs", args[8])).status).toBe(400);
        const command = JSON.parse(await inShell(commandSnippet(one), {}, stub("holdfast").directory)) as {
          args: string[];
        };
        expect((await on(dashboard.store)(command.args)).err).toContain("must be JSON");
      }
      expect(await dashboard.hf.jobs.count()).toBe(1);
    });
  });
});
