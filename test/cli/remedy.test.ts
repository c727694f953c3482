// What `holdfast why` says to do: every command in it is one that there is, with options that it takes.
import { execFileSync } from "node:child_process";
import { parseArgs } from "node:util";
import { expect, test } from "vitest";
import { COMMON_OPTIONS } from "../../src/cli/command.ts";
import { allCommands } from "../../src/cli/registry.ts";
import { remedyOf } from "../../src/cli/jobs/remedy.ts";
import { defineJob, type Why, type WhyReason } from "../../src/index.ts";
import { fresh } from "../support/test-clients.ts";
import { onEveryStore } from "../support/stores.ts";
import { waitFor } from "../support/wait.ts";
import { on } from "./support.ts";

const why: Why = {
  reason: "ready",
  text: "",
  id: "0199aaaa-0000-7000-8000-000000000001",
  queue: "mail",
  name: "send",
  until: null,
  workerId: null,
  holds: ["session-expired"],
  lane: "it's\u001b[31m a lane",
  breaker: "queue:mail",
  budget: "slack",
  signals: [],
} as unknown as Why;

const all: readonly [WhyReason, string | null][] = [
  ["done", null],
  ["ready", null],
  ["running", null],
  ["cool-down", null],
  ["breaker-half-open", null],
  ["dead", "holdfast jobs retry 0199aaaa-0000-7000-8000-000000000001"],
  ["cancelled", "holdfast jobs retry 0199aaaa-0000-7000-8000-000000000001"],
  ["asleep", "holdfast jobs run 0199aaaa-0000-7000-8000-000000000001"],
  ["waiting-for-signal", "holdfast jobs show 0199aaaa-0000-7000-8000-000000000001"],
  ["waiting-for-jobs", "holdfast jobs show 0199aaaa-0000-7000-8000-000000000001"],
  ["job-paused", "holdfast jobs resume 0199aaaa-0000-7000-8000-000000000001"],
  ["future", "holdfast jobs run 0199aaaa-0000-7000-8000-000000000001"],
  ["retry-wait", "holdfast jobs run 0199aaaa-0000-7000-8000-000000000001"],
  ["throttled", "holdfast budgets set slack --rate …; then: holdfast jobs run 0199aaaa"],
  ["paused", "holdfast queues resume mail"],
  ["hold", "holdfast holds clear session-expired"],
  ["breaker-open", "holdfast breakers reset queue:mail"],
  ["budget-empty", "holdfast budgets set slack --rate …"],
  ["budget-unknown", "holdfast budgets set slack --rate …"],
  ["lane-paused", "holdfast lanes resume mail $'it\\'s\\x1b[31m a lane'"],
  ["lane-full", "holdfast lanes set mail $'it\\'s\\x1b[31m a lane'"],
  ["queue-full", "holdfast queues set mail"],
  ["queue-rate", "holdfast queues set mail"],
  ["unserved", "holdfast work --queues mail"],
  ["workers-quiet", "holdfast workers resume all"],
  ["needs-newer-version", "holdfast workers"],
];

test.each(all)("[N9] %s", (reason, remedy) => {
  const said = remedyOf({ ...why, reason });
  if (remedy === null) expect(said).toBeNull();
  else expect(said).toContain(remedy);
  for (const [, line = ""] of (said ?? "").matchAll(/holdfast ([^;?(]+)/g)) {
    const [first = "", second = "", ...rest] = line.trim().split(" ");
    const command = allCommands.find(({ name }) => name === first);
    const sub = command?.subcommands?.find(({ name }) => name === second);
    expect([
      line,
      command !== undefined,
      sub !== undefined || command?.subcommands === undefined || second === "",
    ]).toEqual([line, true, true]);
    const options = { ...COMMON_OPTIONS, ...(sub ?? command)?.options };
    expect(() => parseArgs({ args: rest, options, allowPositionals: true })).not.toThrow();
  }
});

const signals: readonly [name: string, key: string | null, command: string][] = [
  ["approved", null, "holdfast signal approved"],
  ["approved", "order-7", "holdfast signal approved --key order-7"],
  ["approved", "", "holdfast signal approved --key ''"],
  ["it's  done", 'a $HOME `id` "b"', `holdfast signal 'it'\\''s  done' --key 'a $HOME \`id\` "b"'`],
  ["-v", "-x", "holdfast signal --key=-x -- -v"],
];

test.each(signals)(
  "[O18] the signal %j with the key %j: the command says both, as the shell takes them",
  (name, key, command) => {
    const said = remedyOf({ ...why, reason: "waiting-for-signal", signals: [{ name, key }] }) ?? "";
    expect(said).toContain(`${command} (`);
    expect(said).not.toMatch(/<\w+>/);
    const words = execFileSync("sh", ["-c", `printf '%s\\0' ${command}`], { encoding: "utf8" }).split("\0");
    const options = allCommands.find((one) => one.name === "signal")?.options ?? {};
    const parsed = parseArgs({ args: words.slice(2, -1), options, allowPositionals: true });
    expect(parsed.positionals).toEqual([name]);
    expect(parsed.values["key"] ?? null).toBe(key);
  },
);

test("[O18] a run that waits for several signals: each has its command; beyond three, where to see the rest", () => {
  const of = (count: number): string =>
    remedyOf({
      ...why,
      reason: "waiting-for-signal",
      signals: Array.from({ length: count }, (_, n) => ({ name: `s${n}`, key: null })),
    }) ?? "";
  expect(of(2)).toContain("holdfast signal s0; or: holdfast signal s1 (");
  expect(of(4)).not.toContain("s3");
  expect(of(4)).toContain("holdfast jobs show 0199aaaa");
});

onEveryStore((target) => {
  test("[O18][N9] why names the signal that a run waits for, and the way past a sleep: typed, both let it go on", async () => {
    const { hf, store } = await fresh(target);
    const holdfast = on(store);
    const order = defineJob({
      name: "order",
      run: async (_: null, ctx) => {
        await ctx.sleep("cooling", "3d");
        return ctx.waitFor("approved", { key: "it's 7\nand 8" });
      },
    });
    const worker = hf.work([order], { queues: ["default"] });
    const { id } = await hf.enqueue(order, null);
    const reason = (wanted: string) =>
      waitFor(async () => (await hf.jobs.why(id)).reason === wanted, { what: wanted });

    await reason("asleep");
    expect((await holdfast(["why", id])).out).toContain(`holdfast jobs run ${id}`);
    expect((await holdfast(["jobs", "run", id])).code).toBe(0);

    await reason("waiting-for-signal");
    const why = (await holdfast(["why", id, "--json"])).json<{ signals: unknown; remedy: string }>();
    expect(why.signals).toEqual([{ name: "approved", key: "it's 7\nand 8" }]);
    expect(why.remedy).toContain(`holdfast signal approved --key $'it\\'s 7\\nand 8' (`);
    expect((await holdfast(["signal", "approved", "1", "--key", "it's 7\nand 8"])).code).toBe(0);
    expect(await hf.result(id, { timeout: "20s" })).toBe(1);
    await worker.stop();
  });

  test("[N9] why says what to type, and typing it lets the job go on", async () => {
    const { hf, store } = await fresh(target);
    const holdfast = on(store);
    const { id } = await hf.enqueue("send", null, { queue: "mail" });
    await hf.queues.pause("mail");
    expect((await holdfast(["why", id])).out).toMatch(/^paused {2}.*\n→ holdfast queues resume mail\n$/);
    expect((await holdfast(["why", id, "--json"])).json()).toMatchObject({
      reason: "paused",
      remedy: "holdfast queues resume mail",
    });
    expect((await holdfast(["queues", "resume", "mail"])).code).toBe(0);
    expect((await holdfast(["why", id])).out).toMatch(
      /^unserved {2}No worker is running\.\n→ To start a worker/,
    );
  });

  test("[N9][H1] a job that its budget throttled: what is so now, and what to type about it", async () => {
    const { hf, store } = await fresh(target);
    const holdfast = on(store);
    const ping = defineJob({
      name: "ping",
      run: (_: null, ctx) => ctx.budget("slack", 2),
    });
    await hf.budgets.set("slack", { limit: 2, per: "1h" });
    await hf.budgets.drain("slack");
    const { id } = await hf.enqueue(ping, null);
    const worker = hf.work([ping], { queues: ["default"] });
    await worker.ready;
    await waitFor(async () => (await hf.jobs.why(id)).reason === "throttled", {
      what: "the job to be throttled",
    });
    await worker.stop();

    const empty = await holdfast(["why", id]);
    expect(empty.out).toMatch(
      /^throttled {2}The job was throttled\. The next attempt is at .*The budget "slack" has 0(\.\d+)? of the 2 tokens that a job takes\. The rest arrives by /,
    );
    expect(empty.out).toContain(
      `→ To raise the rate: holdfast budgets set slack --rate …; then: holdfast jobs run ${id}\n`,
    );
    expect((await holdfast(["why", id, "--json"])).json()).toMatchObject({ budget: "slack" });

    await hf.budgets.remove("slack");
    const gone = await holdfast(["why", id]);
    expect(gone.out).toMatch(/There is no budget "slack"\. Set it/);
    expect(gone.out).toContain("holdfast budgets set slack --rate …");

    expect((await holdfast(["budgets", "set", "slack", "--rate", "50/1m"])).code).toBe(0);
    const full = await holdfast(["why", id]);
    expect(full.out).toMatch(/was empty\. The budget has tokens again; the next attempt is at /);
    expect(full.out).toContain(`→ To run it now: holdfast jobs run ${id}\n`);
    expect((await holdfast(["why", id, "--json"])).json()).toMatchObject({ budget: null });
    expect((await holdfast(["jobs", "run", id])).code).toBe(0);
  });
});
