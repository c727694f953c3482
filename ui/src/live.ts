// The live stream: one connection for all tabs of a browser, read with fetch because EventSource cannot send a token. It comes
// back by itself, rests while the tab is hidden, asks again and again where streams do not come through, and says how it is.
import { effect, signal } from "@preact/signals";
import type { About, Me, Overview, Permission, Recent, StreamEvent } from "../../src/dashboard/contract.ts";
import { call, get, locked, token } from "./api.ts";
import { page } from "./settings.ts";

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

/** No byte for so long: something on the way holds the stream back, or has died. The server tells at least every 5 s. */
const firstByteMs = 5_000;
const silentMs = 15_000;
/** Where streams do not come through: asked so often, and so long until a stream is tried again. */
const pollMs = 2_000;
const pollForMs = 60_000;

type State = (typeof connection)["value"];
/** What is done with what comes: it is shown here, and told to the other tabs. */
interface Listener {
  readonly overview: (next: Overview) => void;
  readonly state: (state: State) => void;
}

let stop: AbortController | null = null;
/** Of the last event that came: whoever comes back with it gets what was missed. */
let lastId: string | null = null;
let etag: string | null = null;

/** Reads the stream until it ends. False: not one byte of it came. */
async function read(signal: AbortSignal, to: Listener): Promise<boolean> {
  const own = new AbortController();
  const end = (): void => own.abort();
  signal.addEventListener("abort", end, { once: true });
  let timer = setTimeout(end, firstByteMs);
  let began = false;
  try {
    const response = await call("/stream", {
      signal: own.signal,
      headers: lastId === null ? {} : { "last-event-id": lastId },
    });
    const decoder = new TextDecoder();
    let text = "";
    const reader = response.body?.getReader();
    while (reader !== undefined) {
      const { done, value } = await reader.read();
      if (done) return true;
      began = true;
      clearTimeout(timer);
      timer = setTimeout(end, silentMs);
      text += decoder.decode(value, { stream: true });
      for (let at = text.indexOf("\n\n"); at !== -1; at = text.indexOf("\n\n")) {
        take(text.slice(0, at), to);
        text = text.slice(at + 2);
      }
    }
    return began;
  } catch (error) {
    if (own.signal.aborted && !signal.aborted) return began;
    throw error;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", end);
  }
}

function take(block: string, to: Listener): void {
  const event = /^event: (.*)$/m.exec(block)?.[1];
  const data = /^data: (.*)$/m.exec(block)?.[1];
  lastId = /^id: (.*)$/m.exec(block)?.[1] ?? lastId;
  if (event === "trouble") to.state("trouble");
  else if (data !== undefined) to.overview((JSON.parse(data) as StreamEvent).overview);
}

/** Asks once; 304 says that nothing has changed. */
async function poll(signal: AbortSignal, to: Listener): Promise<void> {
  const response = await call("/overview", {
    signal,
    headers: etag === null ? {} : { "if-none-match": etag },
  });
  etag = response.headers.get("etag");
  if (response.status === 304) to.state("live");
  else to.overview((await response.json()) as Overview);
}

async function pollOn(signal: AbortSignal, to: Listener): Promise<void> {
  for (const until = Date.now() + pollForMs; Date.now() < until && !signal.aborted;) {
    await poll(signal, to);
    await pause(pollMs);
  }
}

async function run(signal: AbortSignal, to: Listener): Promise<void> {
  let waitMs = 500;
  while (!signal.aborted) {
    try {
      if (!(await read(signal, to))) await pollOn(signal, to);
      waitMs = 500;
    } catch {
      waitMs = Math.min(waitMs * 2, 10_000);
    }
    if (signal.aborted) return;
    to.state("trouble");
    await pause(waitMs);
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

const here: Listener = {
  overview: (next) => {
    connection.value = "live";
    heard(next);
  },
  state: (state) => (connection.value = state),
};

type News =
  | { readonly kind: "overview"; readonly overview: Overview }
  | { readonly kind: "state"; readonly state: State }
  | { readonly kind: "hello" };

/** A tab that has heard nothing for so long asks for itself: the one that reads may hang. */
const lonelyMs = 12_000;

/**
 * One stream for all tabs of a browser that look at the same thing with the same right: the one that has the lock reads, and
 * tells the others. A tab that is hidden, closed or paused gives the lock back, and the next one reads on. Browsers allow six
 * connections to a server over HTTP/1.1: seven tabs with a stream each would wait for ever.
 */
async function together(signal: AbortSignal): Promise<void> {
  const name = await sharedName();
  if (signal.aborted) return;
  if (name === null) return run(signal, here);
  const channel = new BroadcastChannel(name);
  let leads = false;
  let heardAt = Date.now();
  channel.addEventListener("message", ({ data }: MessageEvent<News>) => {
    if (data.kind === "hello") {
      if (leads && overview.value !== null) tell({ kind: "overview", overview: overview.value });
      return;
    }
    if (leads) return;
    heardAt = Date.now();
    if (data.kind === "state") here.state(data.state);
    else here.overview(data.overview);
  });
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a channel reaches its own origin alone
  const tell = (news: News): void => channel.postMessage(news);
  const lonely = setInterval(() => {
    if (!leads && Date.now() - heardAt > lonelyMs) poll(signal, here).catch(() => here.state("trouble"));
  }, pollMs);
  signal.addEventListener("abort", () => {
    clearInterval(lonely);
    channel.close();
  });
  tell({ kind: "hello" });
  try {
    await navigator.locks.request(name, { signal }, async () => {
      leads = true;
      await run(signal, {
        overview: (next) => {
          here.overview(next);
          if (!signal.aborted) tell({ kind: "overview", overview: next });
        },
        state: (state) => {
          here.state(state);
          if (!signal.aborted) tell({ kind: "state", state });
        },
      });
    });
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

/** Null: this browser, or a page that is not secure, has no locks. Who has another token has another name. */
async function sharedName(): Promise<string | null> {
  const { locks } = navigator as { readonly locks?: LockManager };
  const { subtle } = crypto as { readonly subtle?: SubtleCrypto };
  if (locks === undefined || subtle === undefined || typeof BroadcastChannel === "undefined") return null;
  const digest = await subtle.digest("SHA-256", new TextEncoder().encode(token.peek() ?? ""));
  const mark = Array.from(new Uint8Array(digest).slice(0, 8), (byte) => byte.toString(16).padStart(2, "0"));
  return `holdfast.live ${page.basePath} ${mark.join("")}`;
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
    void together(stop.signal);
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
