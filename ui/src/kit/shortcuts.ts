// Single-key shortcuts. They are off while a field has the focus or a dialog is open, and can be turned off (WCAG 2.1.4).
import { dialogOpen } from "./dialogs.tsx";
import { shortcuts } from "../data/page-settings.ts";

const handlers = new Map<string, (() => void)[]>();

/** Registers a key; the newest screen wins. Returns the function that removes it. */
export function onKey(key: string, run: () => void): () => void {
  const list = handlers.get(key) ?? [];
  list.push(run);
  handlers.set(key, list);
  return () => {
    const at = list.lastIndexOf(run);
    if (at !== -1) list.splice(at, 1);
  };
}

function typing(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)) &&
    target.getAttribute("type") !== "checkbox"
  );
}

let pending: string | null = null;
let pendingUntil = 0;

export function startShortcuts(palette: () => void): void {
  document.addEventListener("keydown", (event) => {
    if ((event.metaKey || event.ctrlKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      if (!dialogOpen()) palette();
      return;
    }
    if (event.metaKey || event.ctrlKey || event.altKey || dialogOpen()) return;
    if (typing(event.target)) {
      if (event.key === "Escape") (event.target as HTMLElement).blur();
      return;
    }
    if (shortcuts.value === "off" && event.key !== "Escape") return;
    const chord = pending !== null && Date.now() < pendingUntil ? `${pending} ${event.key}` : event.key;
    pending = null;
    // After g, a key opens a screen and never runs its own action.
    const run = handlers.get(chord)?.at(-1);
    if (event.key === "g" && chord === "g") {
      pending = "g";
      pendingUntil = Date.now() + 1_200;
      return;
    }
    if (run === undefined) return;
    event.preventDefault();
    run();
  });
}
