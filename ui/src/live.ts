// The live stream: one connection, read with fetch because EventSource cannot send a token. It comes back by itself, rests
// while the tab is hidden, and says how it is.
import { effect, signal } from "@preact/signals";
import type { About, Me, Overview, Permission, Recent, StreamEvent } from "../../src/dashboard/contract.ts";
import { call, get, locked, token } from "./api.ts";

export const overview = signal<Overview | null>(null);
export const about = signal<About | null>(null);
export const me = signal<Me | null>(null);
/** Goes up with each change: screens that are live ask again. */
export const version = signal(0);
export const connection = signal<"connecting" | "live" | "paused" | "trouble">("connecting");
export const live = signal(true);

/** What the charts draw: what the server had seen, and what came since. */
export const points = signal<Overview[]>([]);
export const past = signal<Recent | null>(null);

const mostPoints = 900;

function heard(next: Overview): void {
  overview.value = next;
  const last = points.value.at(-1);
  if (last === undefined || next.at - last.at > 400)
    points.value = [...points.value, next].slice(-mostPoints);
  version.value += 1;
}

let stop: AbortController | null = null;

async function read(signal: AbortSignal): Promise<void> {
  const response = await call("/stream", { signal });
  const decoder = new TextDecoder();
  let text = "";
  const reader = response.body?.getReader();
  while (reader !== undefined) {
    const { done, value } = await reader.read();
    if (done) return;
    text += decoder.decode(value, { stream: true });
    for (let end = text.indexOf("\n\n"); end !== -1; end = text.indexOf("\n\n")) {
      take(text.slice(0, end));
      text = text.slice(end + 2);
    }
  }
}

function take(block: string): void {
  const event = /^event: (.*)$/m.exec(block)?.[1];
  const data = /^data: (.*)$/m.exec(block)?.[1];
  if (event === "trouble") connection.value = "trouble";
  else if (data !== undefined) {
    connection.value = "live";
    heard((JSON.parse(data) as StreamEvent).overview);
  }
}

async function run(signal: AbortSignal): Promise<void> {
  let waitMs = 500;
  while (!signal.aborted) {
    try {
      await read(signal);
      waitMs = 500;
    } catch {
      waitMs = Math.min(waitMs * 2, 10_000);
    }
    if (signal.aborted) return;
    connection.value = "trouble";
    await new Promise((resolve) => setTimeout(resolve, waitMs));
  }
}

export function connect(): void {
  const visible = signal(!document.hidden);
  document.addEventListener("visibilitychange", () => (visible.value = !document.hidden));
  effect(() => {
    const wanted = live.value && visible.value && !locked.value && token.value !== undefined;
    stop?.abort();
    stop = null;
    if (!wanted) {
      connection.value = "paused";
      return;
    }
    connection.value = "connecting";
    stop = new AbortController();
    void run(stop.signal);
  });
  effect(() => {
    if (locked.value) return;
    void Promise.all([get<About>("/about"), get<Me>("/me"), get<Recent>("/recent")]).then(
      ([known, who, recent]) => {
        about.value = known;
        me.value = who;
        past.value = recent;
      },
      () => {},
    );
  });
}

export function may(permission: Permission): boolean {
  const who = me.value;
  if (who === null) return false;
  const reads: readonly Permission[] = ["view", "view:payload", "jobs:search", "jobs:export", "audit:view"];
  return who.permissions.includes(permission) && (!who.readOnly || reads.includes(permission));
}
