// Occurrences of the next day in quarters of an hour.
import type { Calendar } from "../../../src/dashboard/api/contract.ts";
import { get } from "../data/api.ts";
import { useQuery } from "../data/live-query.ts";
import { liveNow } from "../data/page-clock.ts";
import { clockTime, number, plural } from "../kit/format.ts";
import { Panel } from "../kit/panels.tsx";

export function HeatMap() {
  const query = useQuery(`calendar ${Math.floor(liveNow.value / 300_000)}`, (signal) =>
    get<Calendar>("/schedules/calendar", {}, signal),
  );
  const calendar = query.data;
  if (calendar === null) return null;
  const most = Math.max(1, ...calendar.pieces.map(({ count }) => count));
  const all = calendar.pieces.reduce((sum, { count }) => sum + count, 0);
  const busiest = calendar.pieces
    .map((piece, i) => ({ ...piece, at: calendar.from + i * calendar.stepMs }))
    .filter(({ count }) => count > 0)
    .sort((a, b) => b.count - a.count)
    .slice(0, 3);
  const hours = Array.from({ length: 24 }, (_, hour) => hour);
  const perHour = 3_600_000 / calendar.stepMs;
  return (
    <Panel
      title="Next 24 hours"
      note={
        calendar.estimated
          ? `about ${plural(all, "job")}, by the quarter of an hour`
          : `${plural(all, "job")}, by the quarter of an hour`
      }
    >
      <div class="heat" role="img" aria-label={busiestWords(busiest, all)}>
        {hours.map((hour) => {
          const at = calendar.from + hour * 3_600_000;
          return (
            <span key={hour} class="hour">
              {calendar.pieces.slice(hour * perHour, (hour + 1) * perHour).map((piece, quarter) => (
                <i
                  key={quarter}
                  class={`level-${levelOf(piece.count, most)}`}
                  title={`${clockTime(at + quarter * calendar.stepMs)}: ${number(piece.count)}${
                    piece.most.length === 0
                      ? ""
                      : `\n${piece.most.map(({ name, count }) => `${name} ${number(count)}`).join("\n")}`
                  }`}
                />
              ))}
              <span class="muted">{clockTime(at)}</span>
            </span>
          );
        })}
      </div>
      <p class="heat-note small muted">{busiestWords(busiest, all)}</p>
    </Panel>
  );
}

function busiestWords(
  busiest: readonly {
    readonly at: number;
    readonly count: number;
    readonly most: Calendar["pieces"][number]["most"];
  }[],
  all: number,
): string {
  if (all === 0) return "No occurrence in the next 24 hours.";
  const parts = busiest.map(
    ({ at, count, most }) =>
      `${clockTime(at)} with ${plural(count, "job")} (${most.map(({ name }) => name).join(", ")})`,
  );
  return `Busiest: ${parts.join("; ")}.`;
}

/** 0 for none, else 1 to 4 by share of the maximum. */
function levelOf(count: number, most: number): number {
  return Math.ceil((count / most) * 4);
}
