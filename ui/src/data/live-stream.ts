// The live stream: one connection for all tabs of a browser, with the topics of all of them, read with fetch because EventSource
// cannot send a token. It comes back by itself, rests while the tab is hidden, asks again and again where streams do not come
// through, and says how it is.
import { effect, signal } from "@preact/signals";
import type {
  About,
  Me,
  Overview,
  Permission,
  Recent,
  StreamChange,
  StreamRefused,
  StreamSnapshot,
} from "../../../src/dashboard/api/contract.ts";
import { READ_AT } from "../../../src/dashboard/api/headers.ts";
import { applied, type Fields } from "../../../src/dashboard/live/delta.ts";
import { ApiFailure, call, get, locked, query, token } from "./api.ts";
import { page } from "./page-settings.ts";
import { reloadFollowers, follow, notifyFollowers, type Told, wanted } from "./followed-topics.ts";

export const overview = signal<Overview | null>(null);
export const about = signal<About | null>(null);
export const me = signal<Me | null>(null);
export const connection = signal<"connecting" | "live" | "paused" | "trouble">("connecting");
export const live = signal(true);
/** When the server was last heard from, by this machine's clock. */
export const heardAt = signal(Date.now());

/** What the charts draw: what the server had seen, and what came since. */
export const points = signal<Overview[]>([]);
export const past = signal<Recent | null>(null);

const mostPoints = 900;
/** How far the database's clock is ahead of ours. */
let aheadMs = 0;

function addPoint(next: Overview): void {
  const last = points.value.at(-1);
  if (last === undefined || next.at - last.at > 400)
    points.value = [...points.value, next].slice(-mostPoints);
}

follow("overview", {
  value: (value) => {
    const next = value as unknown as Overview;
    aheadMs = next.at - Date.now();
    overview.value = next;
    addPoint(next);
  },
  ask: () => {},
});

/** No byte for so long: something on the way holds the stream back, or has died. The server sends one at least every 5 s. */
const firstByteMs = 5_000;
const silentMs = 15_000;
/** A poll without an answer for so long has failed: a stopped process keeps its connections open. */
const pollDeadlineMs = 10_000;
/** Where streams do not come through: asked so often, and so long until a stream is tried again. */
const pollMs = 2_000;
const pollForMs = 60_000;
/** What a server takes, with room to spare. The rest of many tabs asks when the overview changes. */
const mostTopics = 60;

type State = (typeof connection)["value"];
/** What is done with what comes: it is shown here, and told to the other tabs. */
interface Listener {
  readonly told: (told: Told) => void;
  readonly state: (state: State) => void;
  /** Nothing has changed, and the stream lives. */
  readonly beat: () => void;
  /** A topic, or all of them, can only be asked for. */
  readonly ask: (topic: string | null) => void;
}

let stop: AbortController | null = null;
/** Of the last event that came: whoever comes back with it gets what was missed. */
let lastId: string | null = null;
/** What the last event that came was put into. */
const known = new Map<string, Told>();
let etag: string | null = null;

/** Reads the stream until it ends. False: not one byte of it came. */
async function read(signal: AbortSignal, topics: readonly string[], to: Listener): Promise<boolean> {
  const own = new AbortController();
  const end = (): void => own.abort();
  signal.addEventListener("abort", end, { once: true });
  let timer = setTimeout(end, firstByteMs);
  let began = false;
  try {
    const response = await call(`/stream${query({ topics: topics.join(",") })}`, {
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
        take(text.slice(0, at), topics, to);
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

function take(block: string, topics: readonly string[], to: Listener): void {
  if (block.startsWith(":")) return to.beat();
  // By line feeds alone: to a regular expression U+2028, which JSON may have, ends a line as well.
  const lines = block.split("\n");
  const field = (name: string): string | undefined =>
    lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
  const event = field("event");
  const data = field("data");
  const id = field("id");
  if (id !== undefined) {
    lastId = id;
    // It names the topics of this connection, and no others are known by it.
    for (const topic of known.keys()) if (!topics.includes(topic)) known.delete(topic);
  }
  if (event === undefined || data === undefined) return;
  const tell = (told: Told): void => {
    known.set(told.topic, told);
    to.told(told);
  };
  if (event === "trouble") to.state("trouble");
  else if (event === "current") to.state("live");
  else if (event === "refused") {
    const { topic } = JSON.parse(data) as StreamRefused;
    known.delete(topic);
    to.ask(topic);
  } else if (event === "snapshot") {
    const { topic, readAt, value } = JSON.parse(data) as StreamSnapshot;
    tell({ topic, value, how: "snapshot", readAt });
  } else if (event === "change" || event === "age") {
    const { topic, readAt, delta } = JSON.parse(data) as StreamChange;
    tell({ topic, value: applied(known.get(topic)?.value ?? {}, delta), how: event, readAt });
  }
}

/** Asks once; 304 says that nothing has changed. */
async function poll(signal: AbortSignal, to: Listener): Promise<void> {
  const response = await call("/overview", {
    signal: AbortSignal.any([signal, AbortSignal.timeout(pollDeadlineMs)]),
    headers: etag === null ? {} : { "if-none-match": etag },
  });
  etag = response.headers.get("etag");
  if (response.status === 304) to.state("live");
  else {
    const readAt = Number(response.headers.get(READ_AT) ?? 0);
    to.told({ topic: "overview", value: (await response.json()) as Fields, how: "change", readAt });
  }
  to.ask(null);
}

async function pollOn(signal: AbortSignal, to: Listener): Promise<void> {
  for (const until = Date.now() + pollForMs; Date.now() < until && !signal.aborted;) {
    await poll(signal, to);
    await pause(pollMs);
  }
}

/** The topics to read, and what tells when they change. */
interface Topics {
  readonly now: () => readonly string[];
  readonly changed: (then: () => void) => () => void;
}

async function run(signal: AbortSignal, topics: Topics, to: Listener): Promise<void> {
  let waitMs = 500;
  while (!signal.aborted) {
    const turn = new AbortController();
    const end = (): void => turn.abort();
    signal.addEventListener("abort", end, { once: true });
    const off = topics.changed(end);
    let ended = false;
    try {
      if (!(await read(turn.signal, topics.now(), to))) await pollOn(signal, to);
      else ended = true;
      waitMs = 500;
    } catch (error) {
      // Others were wanted meanwhile: what is known stays known.
      if (turn.signal.aborted && !signal.aborted) continue;
      // It takes no stream with these topics: too many, or not ours to see any more.
      if (error instanceof ApiFailure && [400, 403, 429].includes(error.status))
        await pollOn(signal, to).catch(() => {});
      waitMs = Math.min(waitMs * 2, 10_000);
    } finally {
      off();
      signal.removeEventListener("abort", end);
    }
    if (signal.aborted) return;
    // A stream that is ended in order is opened anew; it has a longest time.
    if (!ended) to.state("trouble");
    await pause(waitMs);
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

const here: Listener = {
  told: (told) => {
    heardAt.value = Date.now();
    connection.value = "live";
    notifyFollowers(told);
  },
  state: (state) => {
    if (state === "live") heardAt.value = Date.now();
    connection.value = state;
  },
  beat: () => {
    heardAt.value = Date.now();
    const last = points.peek().at(-1);
    if (last !== undefined && connection.peek() === "live")
      addPoint({ ...last, at: Math.floor(Date.now() + aheadMs) });
  },
  ask: reloadFollowers,
};

/** What tabs tell each other: the one that reads what has come, the others what they want. */
type TabMessage =
  | { readonly kind: "told"; readonly told: Told }
  | { readonly kind: "state"; readonly state: State }
  | { readonly kind: "beat" }
  | { readonly kind: "ask"; readonly topic: string | null }
  | { readonly kind: "leads" }
  | { readonly kind: "wants"; readonly tab: string; readonly topics: readonly string[] }
  | { readonly kind: "leaves"; readonly tab: string };

/** A tab that has heard nothing for so long asks for itself: the one that reads may hang. */
const leaderSilentMs = 12_000;
/** What a tab wants that has told so for so long is forgotten: it tells again and again. */
const forgottenMs = 15_000;

/**
 * One stream for all tabs of a browser that look at the same thing with the same right: the one that has the lock reads what all of
 * them want, and tells the others. A tab that is hidden, closed or paused gives the lock back, and the next one reads on.
 * Browsers allow six connections to a server over HTTP/1.1: seven tabs with a stream each would wait for ever.
 */
async function together(signal: AbortSignal): Promise<void> {
  const name = await sharedName();
  if (signal.aborted) return;
  if (name === null) return run(signal, own, here);
  const channel = new BroadcastChannel(name);
  const tab = crypto.randomUUID();
  const tabs = new Map<string, { readonly topics: readonly string[]; readonly at: number }>();
  const listeners = new Set<() => void>();
  let leads = false;
  let heardAt = Date.now();
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a channel reaches its own origin alone
  const tell = (message: TabMessage): void => channel.postMessage(message);
  const all = (): readonly string[] =>
    [...new Set([wanted.peek(), ...[...tabs.values()].map(({ topics }) => topics)].flat())].slice(
      0,
      mostTopics,
    );
  let reading = all();
  /** What is wanted no more is left out with the next tick: the next screen wants something else at once. */
  const restartIfChanged = (exactly: boolean): void => {
    const now = all();
    const other = exactly ? now.length !== reading.length : false;
    if (!other && now.every((topic) => reading.includes(topic))) return;
    reading = now;
    for (const listener of listeners) listener();
  };
  const wants = (): void => {
    if (!leads) tell({ kind: "wants", tab, topics: wanted.peek() });
  };
  const onWants = (message: TabMessage & { readonly kind: "wants" }): void => {
    const had = tabs.get(message.tab)?.topics ?? [];
    tabs.set(message.tab, { topics: message.topics, at: Date.now() });
    restartIfChanged(false);
    for (const topic of message.topics) {
      const told = known.get(topic);
      if (told !== undefined && !had.includes(topic))
        tell({ kind: "told", told: { ...told, how: "snapshot" } });
    }
    if (had.length === 0) tell({ kind: "state", state: connection.peek() });
  };
  channel.addEventListener("message", ({ data }: MessageEvent<TabMessage>) => {
    if (data.kind === "wants") {
      if (leads) onWants(data);
      return;
    }
    if (data.kind === "leaves") {
      tabs.delete(data.tab);
      return;
    }
    if (leads) return;
    heardAt = Date.now();
    if (data.kind === "leads") wants();
    else if (data.kind === "told") here.told(data.told);
    else if (data.kind === "state") here.state(data.state);
    else if (data.kind === "beat") here.beat();
    else here.ask(data.topic);
  });
  let had: readonly string[] = [];
  const off = wanted.subscribe((now) => {
    wants();
    if (leads) {
      restartIfChanged(false);
      // Another tab has it already.
      for (const topic of now) {
        const told = had.includes(topic) ? undefined : known.get(topic);
        if (told !== undefined) here.told({ ...told, how: "snapshot" });
      }
    }
    had = now;
  });
  const tick = setInterval(() => {
    wants();
    if (!leads) {
      if (Date.now() - heardAt > leaderSilentMs) poll(signal, here).catch(() => here.state("trouble"));
      return;
    }
    for (const [one, { at }] of tabs) if (Date.now() - at > forgottenMs) tabs.delete(one);
    restartIfChanged(true);
  }, pollMs);
  signal.addEventListener("abort", () => {
    clearInterval(tick);
    off();
    tell({ kind: "leaves", tab });
    channel.close();
  });
  const topics: Topics = {
    now: () => reading,
    changed: (then) => {
      listeners.add(then);
      return () => listeners.delete(then);
    },
  };
  const toAll = (message: TabMessage): void => {
    if (!signal.aborted) tell(message);
  };
  try {
    await navigator.locks.request(name, { signal }, async () => {
      leads = true;
      reading = all();
      tell({ kind: "leads" });
      await run(signal, topics, {
        told: (told) => {
          here.told(told);
          toAll({ kind: "told", told });
        },
        state: (state) => {
          here.state(state);
          toAll({ kind: "state", state });
        },
        beat: () => {
          here.beat();
          toAll({ kind: "beat" });
        },
        ask: (topic) => {
          here.ask(topic);
          toAll({ kind: "ask", topic });
        },
      });
    });
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

/** Of a tab that reads for itself alone. */
const own: Topics = {
  now: () => wanted.peek().slice(0, mostTopics),
  changed: (then) => {
    const before = wanted.peek();
    return wanted.subscribe((now) => {
      if (now !== before) then();
    });
  },
};

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
    const wished = live.value && visible.value && !locked.value && token.value !== undefined;
    stop?.abort();
    stop = null;
    if (!wished) {
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
