// Keys that mean the same in every list: j and k move between rows, Enter follows the row's link, / focuses the screen's
// search, p pauses or resumes. A screen's own key wins.
import { pressIn } from "../kit/actions.tsx";
import { onKey } from "../kit/shortcuts.ts";
import { path } from "../data/router.ts";

/** The first link of a row names its subject. */
const inRow = "a.main-link, a[href], button";

export function startRowShortcuts(search: () => void): void {
  onKey("j", () => move(1));
  onKey("k", () => move(-1));
  onKey("/", () => {
    const field = document.querySelector<HTMLElement>("main input[type=search]");
    if (field === null) search();
    else field.focus();
  });
  onKey("p", () => press(["Pause", "Resume"]));
  onKey("P", () => press(["Resume"]));
}

function rowOfFocus(): HTMLTableRowElement | null {
  return document.activeElement?.closest<HTMLTableRowElement>("main tbody tr") ?? null;
}

function move(by: 1 | -1): void {
  const stops = [...document.querySelectorAll<HTMLTableRowElement>("main tbody tr")].flatMap((row) => {
    const stop = row.querySelector<HTMLElement>(inRow);
    return stop === null ? [] : [{ row, stop }];
  });
  const now = rowOfFocus();
  const at = stops.findIndex(({ row }) => row === now);
  const next =
    at === -1 ? (by === 1 ? 0 : stops.length - 1) : Math.max(0, Math.min(stops.length - 1, at + by));
  stops[next]?.stop.focus();
}

/** Acts on the focused row, or on the subject of the screen. */
function press(words: readonly string[]): void {
  if (/^\/(queues|schedules)(\/|$)/.test(path.value))
    pressIn(rowOfFocus() ?? document.querySelector("main .head"), words);
}
