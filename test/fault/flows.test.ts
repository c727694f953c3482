// Flows under SIGKILL at every point, under a process that wakes up too late, and under a database that restarts.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import { type Holdfast, open, silentLogger } from "../../src/index.ts";
import { temporaryDirectory } from "../support/guard.ts";
import { startPostgres } from "../support/postgres.ts";
import { type NodeProcess, spawnNode, waitFor } from "../support/process.ts";
import { onEveryStore } from "../support/stores.ts";
import { type DeathPoint, deathPoints } from "./children/flow-points.ts";
import type { FlowSpec } from "./children/flow.ts";

const runs = 24;
const kills = Number(process.env["KILLS"] ?? 100); // for each of the two stores that run it: at every point there is, then at random ones; 200 in all
const seed = Number(process.env["SEED"] ?? Date.now() % 1_000_000);

interface Place {
  readonly url: string;
  readonly options: { schema?: string };
}

/** A client of this process's own, with flows on their way. */
async function started(place: Place): Promise<{ hf: Holdfast; flows: string[]; paid: string[] }> {
  const hf = await open(place.url, { ...place.options, logger: silentLogger });
  onTestFinished(() => hf.close());
  const numbers = Array.from({ length: runs }, (_, n) => n);
  const flows = await hf.enqueueMany(numbers.map((n) => ({ job: "flow", input: { n } })));
  const paid = await hf.enqueueMany(numbers.map((n) => ({ job: "paid", queue: "paid", input: { n } })));
  return { hf, flows: flows.map(({ id }) => id), paid: paid.map(({ id }) => id) };
}

async function allDone(hf: Holdfast, count: number, children: readonly NodeProcess[]): Promise<void> {
  try {
    const done = async (): Promise<boolean> => (await hf.jobs.count({ state: "done" })) === count;
    await waitFor(done, { what: `${count} jobs to be done`, deadlineMs: 60_000, everyMs: 100 });
  } catch (error) {
    const stuck = await hf.jobs.list({ state: ["ready", "scheduled", "waiting", "running", "dead"] });
    const whys = await Promise.all(stuck.jobs.slice(0, 5).map(({ id }) => hf.jobs.why(id)));
    const output = children.map((child) => child.output.slice(-1_000)).join("\n---\n");
    throw new Error(`${String(error)} seed ${seed} ${JSON.stringify(whys)}\n${output}`, { cause: error });
  }
}

function notes(log: string): { job: string; step: string; nonce: string }[] {
  if (!existsSync(log)) return [];
  const lines = readFileSync(log, "utf8").split("\n");
  return lines.filter((line) => line.endsWith("}")).map((line) => JSON.parse(line) as never);
}

/** What is wrong with the flows, as sentences: what a run ended with must be what each step did last. */
async function faults(hf: Holdfast, flows: readonly string[], log: string): Promise<string[]> {
  const found: string[] = [];
  const last = new Map(notes(log).map(({ job, step, nonce }) => [`${job} ${step}`, nonce]));
  for (const [n, id] of flows.entries()) {
    const job = await hf.jobs.get(id);
    const output = job?.output as Record<string, unknown> | null;
    if (job?.state !== "done") found.push(`${id} is ${job?.state ?? "gone"}`);
    for (const step of ["first", "left", "right", "last"])
      if (last.get(`${id} ${step}`) !== output?.[step])
        found.push(`${id}: step ${step} ran again after it was finished`);
    if (output?.["told"] !== n) found.push(`${id} was told ${String(output?.["told"])}`);
    const history = await hf.jobs.history(id);
    const called = history?.children.filter(({ relation }) => relation === "called") ?? [];
    if (called.length !== 1) found.push(`${id} has called ${called.length} jobs`);
    if (last.get(`${called[0]?.id} made`) !== output?.["called"]) found.push(`${id}: its child ran again`);
    // A sleep that is over needs no second write: its row stays as it was.
    const open = history?.steps.filter(({ state, kind }) => state === "open" && kind !== "sleep") ?? [];
    for (const { name } of open) found.push(`${id}: ${name} is still open`);
  }
  return found;
}

onEveryStore((target) => {
  const older = target.name === "postgres 14";
  const why = older ? " (skipped: it takes long, and Postgres 18 shows it)" : "";
  test.skipIf(older)(
    `[N11][N2] flows whose workers kill themselves at every single point, 100 times, end with each finished step done once${why}`,
    async () => {
      const fresh = await target.fresh();
      const { hf, flows, paid } = await started(fresh);
      const effects = fresh.table("effect");
      await fresh.query(`create table ${effects} (n integer)`);
      const log = join(temporaryDirectory("flows"), "effects.jsonl");
      const deaths = join(temporaryDirectory("flows"), "deaths");
      const children = new Set<NodeProcess>();
      onTestFinished(() => void [...children].map((child) => child.kill("SIGKILL")));
      const cache = temporaryDirectory("compiled");
      let lives = 0;
      let killed = 0;
      const start = (deadly: number, point?: DeathPoint): NodeProcess => {
        const { url, options } = fresh;
        const target = point === undefined ? {} : { target: { point, visit: 1 } };
        const spec: FlowSpec = {
          url,
          options,
          log,
          effects,
          deadly,
          deaths,
          seed: seed + lives++,
          ...target,
        };
        // Compiled once: starting a process is most of what a life costs.
        const child = spawnNode("test/fault/children/flow.ts", [JSON.stringify(spec)], {
          NODE_COMPILE_CACHE: cache,
        });
        children.add(child);
        return child;
      };
      const first = start(0);
      await first.message("ready", { deadlineMs: 30_000 });
      first.kill("SIGTERM");
      await first.exited;
      // Half of the signals are there before anybody waits, the others come while the workers die.
      let told = 0;
      const tell = async (): Promise<void> => {
        if (told >= runs) return;
        const n = told++;
        await hf.signal("told", { key: String(n), data: n });
      };
      while (told < runs / 2) await tell();
      // A flow for each life: every point of one must be there to die at.
      let made = runs;
      const more = async (): Promise<void> => {
        const n = made++;
        const input = { n };
        const both = [
          { job: "flow", input },
          { job: "paid", queue: "paid", input },
        ];
        const [flow, pay] = await hf.enqueueMany(both);
        await hf.signal("told", { key: String(n), data: n });
        flows[n] = flow?.id ?? "";
        paid[n] = pay?.id ?? "";
      };
      const hit = (): Set<string> =>
        new Set(existsSync(deaths) ? readFileSync(deaths, "utf8").split("\n") : []);
      const missed = (): DeathPoint[] => deathPoints.filter((point) => !hit().has(point));
      // Those that must be hit first; then whatever chance brings.
      const wanted = [...deathPoints];
      const live = async (): Promise<void> => {
        while (killed < kills || missed().length > 0) {
          if (lives > 3 * kills) return;
          const point = wanted.shift() ?? (killed < kills ? undefined : missed()[0]);
          if (point !== undefined) await more();
          const child = start(point === undefined ? 0.05 : 0, point);
          const bored = setTimeout(() => child.kill("SIGKILL"), point === undefined ? 3_000 : 10_000);
          const { signal } = await child.exited;
          clearTimeout(bored);
          children.delete(child);
          if (signal === "SIGKILL") killed += 1;
          else throw new Error(`a worker ended by itself: ${child.output.slice(-2_000)}`);
          if (killed % 3 === 0) await tell();
        }
      };
      await Promise.all([live(), live(), live()]);
      while (told < runs) await tell();
      const heirs = [start(0)];
      await allDone(hf, flows.length * 3, heirs);
      expect(killed).toBeGreaterThanOrEqual(kills);
      expect(missed()).toEqual([]);
      expect(await faults(hf, flows, log), `seed ${seed}`).toEqual([]);
      const rows = await fresh.query(`select n, count(*) as times from ${effects} group by n order by n`);
      expect(rows.map((row) => [Number(row["n"]), Number(row["times"])])).toEqual(
        Array.from({ length: paid.length }, (_, n) => [n, 1]),
      );
      expect(await fresh.query(`select * from ${fresh.table("signal")}`)).toEqual([]);
      for (const child of heirs) await child.message("ready", { deadlineMs: 30_000 });
      for (const child of heirs) child.kill("SIGTERM");
      for (const child of heirs) expect(await child.exited, child.output).toEqual({ code: 0, signal: null });
    },
    300_000,
  );

  test("[N11] a worker that wakes up after its lease has passed can write no step", async () => {
    const fresh = await target.fresh();
    const hf = await open(fresh.url, { ...fresh.options, logger: silentLogger });
    onTestFinished(() => hf.close());
    const log = join(temporaryDirectory("flows"), "effects.jsonl");
    const spec: FlowSpec = {
      url: fresh.url,
      options: fresh.options,
      log,
      seed,
      deadly: 0,
      effects: "",
      stuckMs: 2_500,
    };
    const spawn = (more: Partial<FlowSpec> = {}): NodeProcess => {
      const child = spawnNode("test/fault/children/flow.ts", [JSON.stringify({ ...spec, ...more })]);
      onTestFinished(() => child.kill("SIGKILL"));
      return child;
    };
    const zombie = spawn();
    const { id } = await hf.enqueue("stuck", null);
    await zombie.message("in-step", { deadlineMs: 20_000 });
    zombie.kill("SIGSTOP");
    const heir = spawn({ stuckMs: 10 });
    await waitFor(async () => (await hf.jobs.get(id))?.state === "done", {
      what: "the heir to finish",
      deadlineMs: 20_000,
    });
    const rows = async () => fresh.query(`select * from ${fresh.table("step")} order by name`);
    const before = await rows();
    zombie.kill("SIGCONT");
    await zombie.message("lost", { deadlineMs: 20_000 });
    await sleep(500);
    expect(await rows()).toEqual(before);
    expect((await hf.jobs.get(id))?.output).toBe(heir.pid);
    expect(zombie.running).toBe(true);
  });
});

describe("postgres 18", () => {
  test("[N11] a database that restarts in the middle of flows leaves none of them stuck", async () => {
    await using server = await startPostgres(18);
    const place = { url: server.url(), options: {} };
    const { hf, flows } = await started(place);
    const log = join(temporaryDirectory("flows"), "effects.jsonl");
    const effects = '"holdfast"."effect"';
    const spec: FlowSpec = { ...place, log, seed, deadly: 0, effects };
    const pool = await import("pg");
    const side = new pool.default.Client({ connectionString: server.url() });
    await side.connect();
    await side.query(`create table ${effects} (n integer)`);
    await side.end();
    const child = spawnNode("test/fault/children/flow.ts", [JSON.stringify(spec)]);
    onTestFinished(() => child.kill("SIGKILL"));
    await child.message("ready", { deadlineMs: 20_000 });
    for (let n = 0; n < runs; n += 1) {
      if (n % 4 === 0) await server.restartImmediate();
      await waitFor(
        () =>
          hf.signal("told", { key: String(n), data: n }).then(
            () => true,
            () => false,
          ),
        { what: "a signal to be taken", deadlineMs: 30_000 },
      );
    }
    await allDone(hf, runs * 3, [child]);
    expect((await faults(hf, flows, log)).filter((fault) => !fault.includes("was told"))).toEqual([]);
    expect(child.running).toBe(true);
    expect(child.output).not.toMatch(/unhandled/i);
  }, 120_000);
});
