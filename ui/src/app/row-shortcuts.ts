// Keys that mean the same in every list: j and k move the focus from row to row (Enter then follows the link, as in any page),
// / goes to the search of the screen, p pauses what the row is about. A screen that has its own meaning for a key comes first.
import { pressIn } from "../kit/actions.tsx";
import { onKey } from "../kit/shortcuts.ts";
import { path } from "../data/router.ts";

/** What a row is about comes first in it. */
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

/** In the row that has the focus, or on a queue's or schedule's own screen. */
function press(words: readonly string[]): void {
  if (/^\/(queues|schedules)(\/|$)/.test(path.value))
    pressIn(rowOfFocus() ?? document.querySelector("main .head"), words);
}
