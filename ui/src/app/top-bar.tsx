// The top bar: environment, palette, live updates, theme, help.
import { segmentsOf } from "../../../src/dashboard/appearance/screens.ts";
import { connection, heardAt, live } from "../data/live-stream.ts";
import { now, skew } from "../data/page-clock.ts";
import { page } from "../data/page-settings.ts";
import { href, path } from "../data/router.ts";
import { openJob } from "../jobs/open-job.ts";
import { duration } from "../kit/format.ts";
import { menuEntryOf } from "./navigation.ts";

/** Colors are set by CSSOM: the content security policy forbids inline styles. */
export function Environment() {
  if (page.label === null) return null;
  const { paper, ink } = page.labelColors ?? {};
  return (
    <span class="env" title={page.label} style={{ background: paper, color: ink }}>
      <span class="hidden-text">Environment: </span>
      {page.label}
    </span>
  );
}

/** The part of the address below its screen: a queue's name, or the name of a job once it is loaded. */
export function deeperName(): string | null {
  const deeper = segmentsOf(path.value)?.[2];
  if (deeper === undefined || deeper === "") return null;
  if (openJob.value?.id === deeper) return openJob.value.name;
  return path.value.startsWith("/jobs/") ? deeper.slice(-12) : deeper;
}

export function Crumbs() {
  const entry = menuEntryOf(path.value);
  const deeper = deeperName();
  return (
    <div class="crumbs">
      {deeper === null ? (
        <span class="hidden-text">{entry?.name}</span>
      ) : (
        <>
          <a class="muted" href={href(entry?.path ?? "/")}>
            {entry?.name}
          </a>
          <span class="sep" aria-hidden="true">
            /
          </span>
          <span class="clip">{deeper}</span>
        </>
      )}
    </div>
  );
}

export const themeIcons = { system: "auto", light: "sun", dark: "moon" } as const;

const liveWords = {
  live: "Live",
  paused: "Paused",
  connecting: "Connecting",
  trouble: "Reconnecting",
} as const;

/** The server sends a byte at least every 5 s. After twice that time the page is stale. */
const staleMs = 10_000;

export function LiveButton() {
  const silent = now.value - skew.value - heardAt.value;
  const stale = connection.value !== "paused" && silent > staleMs;
  const how = stale ? "trouble" : connection.value;
  const words = stale ? `Last update ${duration(silent)} ago` : liveWords[how];
  return (
    <button
      type="button"
      class="button quiet"
      aria-pressed={live.value}
      title={live.value ? "Pause live updates" : "Resume live updates"}
      onClick={() => (live.value = !live.value)}
    >
      <span class={`live-dot ${how}`} aria-hidden="true" />
      <span class="medium-only">{words}</span>
      {stale && (
        <span class="narrow-only" aria-hidden="true">
          {duration(silent)}
        </span>
      )}
      <span class="hidden-text">{words}</span>
    </button>
  );
}
