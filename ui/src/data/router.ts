// The address is the state: screens read their filters from it, so that a link shows what its sender saw.
import { computed, signal } from "@preact/signals";
import { page } from "./page-settings.ts";

function here(): { path: string; search: string } {
  const path = location.pathname.slice(page.basePath.length);
  return { path: path === "" ? "/" : path, search: location.search };
}

const at = signal(here());
export const path = computed(() => at.value.path);
export const params = computed(() => new URLSearchParams(at.value.search));

export function href(to: string): string {
  return page.basePath + to;
}

/** Screens with charts, and the list on the way to some of them. */
const timed = /^\/(?:|queues(?:\/.*)?|database|workers)$/;

/** The address, with the time that is shown here if it is shown there too and says no other. */
function withTime(to: string): string {
  const [address = "", search = ""] = to.split("?");
  if (address === at.value.path || !timed.test(address) || !timed.test(at.value.path)) return to;
  const next = new URLSearchParams(search);
  const names = ["last", "from", "to"];
  if (names.some((name) => next.has(name))) return to;
  for (const name of names) {
    const value = params.value.get(name);
    if (value !== null) next.set(name, value);
  }
  return next.size === 0 ? to : `${address}?${next}`;
}

export function go(to: string, options: { replace?: boolean } = {}): void {
  const url = href(withTime(to));
  if (options.replace === true) history.replaceState(null, "", url);
  else history.pushState(null, "", url);
  const before = at.value.path;
  at.value = here();
  if (before !== at.value.path) {
    document.querySelector("main")?.scrollTo(0, 0);
    scrollTo(0, 0);
  }
}

/** Changes parameters of this address; null takes one out. */
export function setParams(
  change: Readonly<Record<string, string | null>>,
  options: { replace?: boolean } = {},
): void {
  const next = new URLSearchParams(at.value.search);
  for (const [name, value] of Object.entries(change)) {
    next.delete(name);
    // A line each: several values of one parameter.
    if (value !== null && value !== "") for (const one of value.split("\n")) next.append(name, one);
  }
  const text = next.toString();
  go(at.value.path + (text === "" ? "" : `?${text}`), options);
}

export function startRouter(): void {
  addEventListener("popstate", () => (at.value = here()));
  document.addEventListener("click", (event) => {
    if (
      event.defaultPrevented ||
      event.button !== 0 ||
      event.metaKey ||
      event.ctrlKey ||
      event.shiftKey ||
      event.altKey
    )
      return;
    const link = (event.target as Element).closest("a");
    if (
      link === null ||
      link.target !== "" ||
      link.origin !== location.origin ||
      link.hasAttribute("download")
    )
      return;
    if (!link.pathname.startsWith(page.basePath) || link.pathname.startsWith(`${page.basePath}/api/`)) return;
    event.preventDefault();
    go(link.pathname.slice(page.basePath.length) + link.search);
  });
}
