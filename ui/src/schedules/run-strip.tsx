// The newest jobs of a schedule, a box for each.
import type { ScheduleRuns } from "../../../src/dashboard/api/contract.ts";
import { href } from "../data/router.ts";
import { duration, instant } from "../kit/format.ts";
import { stateWord } from "../language/state-words.ts";
import { t } from "../language/translation.ts";

/** One box for each of its newest jobs, the newest at the right. */
export function RunStrip({ name, runs }: { name: string; runs: ScheduleRuns["runs"][string] }) {
  if (runs.length === 0) return <span class="muted">—</span>;
  const bad = runs.filter(({ state }) => state === "dead").length;
  const last = runs.at(-1);
  return (
    <span
      class="strip"
      role="group"
      aria-label={t("Newest jobs of {name}: {runs}, {bad} dead", { name, runs: runs.length, bad })}
    >
      {runs.map((run) => (
        <a
          key={run.id}
          class={`cell ${run.state ?? "gone"}`}
          href={href(`/jobs/${run.id}`)}
          // One stop for the keyboard: the newest. The others are on the jobs' own list.
          tabIndex={run === last ? 0 : -1}
          title={wordsOf(run)}
          aria-label={wordsOf(run)}
        />
      ))}
    </span>
  );
}

function wordsOf({ at, state, lateMs, ranMs }: ScheduleRuns["runs"][string][number]): string {
  const said = [state === null ? t("not kept any more") : stateWord(state)];
  if (lateMs !== null) said.push(t("started {late} after its slot", { late: duration(lateMs) }));
  if (ranMs !== null) said.push(t("ran {time}", { time: duration(ranMs) }));
  return `${instant(at)}: ${said.join(", ")}`;
}
