// Workflows whose workers kill themselves at every point there is. It takes longest of all, so each store has a file of its own,
// and they run side by side: workflow-kills-sqlite.test.ts and workflow-kills-postgres.test.ts.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { temporaryDirectory } from "../support/guard.ts";
import { type NodeProcess, spawnNode } from "../support/process.ts";
import type { StoreTarget } from "../support/stores.ts";
import { type DeathPoint, deathPoints } from "./children/workflow-points.ts";
import type { WorkflowSpec } from "./children/workflow.ts";
import { allDone, faults, runs, seed, started } from "./workflow-runs.ts";

const kills = Number(process.env["KILLS"] ?? 100); // for each of the two stores that run it: at every point there is, then at random ones; 200 in all

export function workflowKills(target: StoreTarget): void {
  const older = target.name === "postgres 14";
  const why = older ? " (skipped: it takes long, and Postgres 18 shows it)" : "";
  test.skipIf(older)(
    `[N11][N2] workflows whose workers kill themselves at every single point, 100 times, end with each finished step done once${why}`,
    async () => {
      const fresh = await target.fresh();
      const { hf, workflows, paid } = await started(fresh);
      const effects = fresh.table("effect");
      await fresh.query(`create table ${effects} (n integer)`);
      const log = join(temporaryDirectory("workflows"), "effects.jsonl");
      const deaths = join(temporaryDirectory("workflows"), "deaths");
      const children = new Set<NodeProcess>();
      onTestFinished(() => void [...children].map((child) => child.kill("SIGKILL")));
      const cache = temporaryDirectory("compiled");
      let lives = 0;
      let killed = 0;
      const start = (deadly: number, point?: DeathPoint): NodeProcess => {
        const { url, options } = fresh;
        const target = point === undefined ? {} : { target: { point, visit: 1 } };
        const spec: WorkflowSpec = {
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
        const child = spawnNode("test/fault/children/workflow.ts", [JSON.stringify(spec)], {
          NODE_COMPILE_CACHE: cache,
        });
        children.add(child);
        return child;
      };
      const first = start(0);
      await first.message("ready", { deadlineMs: 60_000 });
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
      // A workflow for each life: every point of one must be there to die at.
      let made = runs;
      const more = async (): Promise<void> => {
        const n = made++;
        const input = { n };
        const both = [
          { job: "workflow", input },
          { job: "paid", queue: "paid", input },
        ];
        const [workflow, pay] = await hf.enqueueMany(both);
        await hf.signal("told", { key: String(n), data: n });
        workflows[n] = workflow?.id ?? "";
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
      await allDone(hf, workflows.length * 3, heirs);
      expect(killed).toBeGreaterThanOrEqual(kills);
      expect(missed()).toEqual([]);
      expect(await faults(hf, workflows, log), `seed ${seed}`).toEqual([]);
      const rows = await fresh.query(`select n, count(*) as times from ${effects} group by n order by n`);
      expect(rows.map((row) => [Number(row["n"]), Number(row["times"])])).toEqual(
        Array.from({ length: paid.length }, (_, n) => [n, 1]),
      );
      expect(await fresh.query(`select * from ${fresh.table("signal")}`)).toEqual([]);
      for (const child of heirs) await child.message("ready", { deadlineMs: 30_000 });
      for (const child of heirs) child.kill("SIGTERM");
      for (const child of heirs) expect(await child.exited, child.output).toEqual({ code: 0, signal: null });
    },
    600_000,
  );
}
