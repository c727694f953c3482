// What the server put into the page, and what this browser remembers.
import { effect, signal } from "@preact/signals";

interface PageSettings {
  readonly basePath: string;
  readonly label: string | null;
  /** Null: the page's own colors. */
  readonly labelColors?: { readonly paper: string; readonly ink: string } | null;
  /** With `{traceId}` in it. */
  readonly traceLink?: string | null;
  /** Its name among several. */
  readonly database?: string | null;
  readonly auth: "token" | "page";
}

function read(): PageSettings {
  const text = document.getElementById("settings")?.textContent;
  return text ? (JSON.parse(text) as PageSettings) : { basePath: "", label: null, auth: "token" };
}

export const page: PageSettings = read();

/** A signal that is kept in this browser. Private windows may refuse; then it lasts as long as the page. */
function kept<T extends string>(key: string, fallback: T, allowed: readonly T[]) {
  const name = `holdfast.${key}`;
  let stored: string | null = null;
  try {
    stored = localStorage.getItem(name);
  } catch {
    stored = null;
  }
  const value = signal<T>(allowed.includes(stored as T) ? (stored as T) : fallback);
  value.subscribe((next) => {
    try {
      localStorage.setItem(name, next);
    } catch {
      // Not kept, then.
    }
  });
  return value;
}

/** A list that is kept in this browser, for this dashboard; what is not one of ours any more is left out. */
export function keptList<T>(key: string, is: (value: unknown) => value is T) {
  const name = `holdfast.${key} ${page.basePath}`;
  let stored: readonly T[] = [];
  try {
    const found: unknown = JSON.parse(localStorage.getItem(name) ?? "[]");
    if (Array.isArray(found)) stored = (found as unknown[]).filter(is);
  } catch {
    stored = [];
  }
  const value = signal<readonly T[]>(stored);
  value.subscribe((next) => {
    try {
      if (next.length === 0) localStorage.removeItem(name);
      else localStorage.setItem(name, JSON.stringify(next));
    } catch {
      // Not kept, then.
    }
  });
  return value;
}

export const theme = kept("theme", "system", ["system", "light", "dark"]);
/** What can be chosen, in the words that are shown. */
export const themes = [
  ["system", "System"],
  ["light", "Light"],
  ["dark", "Dark"],
] as const;
export const clock = kept("clock", "local", ["local", "utc"]);
/** Queues that share what is before the first dot or colon, together. */
export const grouping = kept("grouping", "on", ["on", "off"]);
/** How close the rows of tables stand. */
export const density = kept("density", "comfortable", ["comfortable", "compact"]);
/** How often what is shown live changes at most, in seconds. */
export const refreshes = ["0.5", "1", "2", "5", "15", "60"] as const;
export const refresh = kept("refresh", "1", refreshes);
/** Ages ("5 min ago"), or dates. */
export const times = kept("times", "relative", ["relative", "absolute"]);
/** The beginning of each job's input in lists. */
export const previews = kept("previews", "on", ["on", "off"]);
export const shortcuts = kept("shortcuts", "on", ["on", "off"]);

effect(() => {
  const { dataset } = document.documentElement;
  dataset["theme"] = theme.value;
  dataset["density"] = density.value;
});

const following = { system: "dark", dark: "light", light: "system" } as const;

export function nextTheme(): void {
  theme.value = following[theme.value];
}
