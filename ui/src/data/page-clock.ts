// The time that the page shows: the database's clock, as it was last heard.
import { signal } from "@preact/signals";
import { live, overview } from "./live-stream.ts";

/** This moment by the database's clock as we last heard it, moved on by our own. */
export const now = signal(Date.now());
/** How far the database's clock is ahead of this machine's. */
export const skew = signal(0);
overview.subscribe((heard) => {
  if (heard !== null) skew.value = heard.at - Date.now();
});
/** As `now`, but it stands still while the page is paused: what is asked for as time goes by is then not asked for. */
export const liveNow = signal(now.peek());
setInterval(() => {
  if (document.hidden) return;
  now.value = Date.now() + skew.peek();
  if (live.peek()) liveNow.value = now.peek();
}, 1_000);
