// The newest jobs of a schedule, one box each.
import type { ScheduleRuns } from "../../../src/dashboard/api/contract.ts";
import { href } from "../data/router.ts";
import { duration, instant } from "../kit/format.ts";

/** Newest at the right. */
export function RunStrip({ name, runs }: { name: string; runs: ScheduleRuns["runs"][string] }) {
  if (runs.length === 0) return <span class="muted">—</span>;
  const bad = runs.filter(({ state }) => state === "dead").length;
  const last = runs.at(-1);
  return (
    <span class="strip" role="group" aria-label={`Newest jobs of ${name}: ${runs.length}, ${bad} dead`}>
      {runs.map((run) => (
        <a
          key={run.id}
          class={`cell ${run.state ?? "gone"}`}
          href={href(`/jobs/${run.id}`)}
          // One tab stop. The job list has the others.
          tabIndex={run === last ? 0 : -1}
          title={wordsOf(run)}
          aria-label={wordsOf(run)}
        />
      ))}
    </span>
  );
}

function wordsOf({ at, state, lateMs, ranMs }: ScheduleRuns["runs"][string][number]): string {
  const said = [state === null ? "no longer stored" : state];
  if (lateMs !== null) said.push(`started ${duration(lateMs)} after its occurrence`);
  if (ranMs !== null) said.push(`ran ${duration(ranMs)}`);
  return `${instant(at)}: ${said.join(", ")}`;
}
