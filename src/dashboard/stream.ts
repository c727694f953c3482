/**
 * The live stream: one sampler for all viewers, and server-sent events to each.
 *
 * It looks when a wake-up comes (at most four times a second) and once a second in any case while somebody watches,
 * tells when something has changed, and every 5 seconds even if nothing has. Nobody watching: no query at all.
 *
 * Every look has a number, and an event carries it as its `id`: who comes back with the last one that it got (`Last-Event-ID`) gets
 * what it missed, up to a minute of it, and no snapshot. Who cannot hold a stream asks for `/overview` again and again, with
 * the `ETag` of the last answer: 304 while nothing has changed.
 *
 * Invariants: a viewer gets a snapshot first, unless it comes back in time; an error of the database is told to the viewers as `trouble` and ends no
 * stream; a viewer that does not read is dropped instead of filling the memory.
 */
import { createHash, randomUUID } from "node:crypto";
import type { Clock, Timer } from "../clock.ts";
import type { Overview, Recent } from "./contract.ts";
import { ApiError, SECURITY_HEADERS } from "./http.ts";

const everyMs = 1_000;
const soonestMs = 250;
const backstopMs = 5_000;
const mostViewers = 100;
const mostPoints = 900;
const mostMissed = 60;

interface Viewer {
  /** The first is its snapshot, the others are changes. */
  tell(look: Look): void;
  send(event: string, data: unknown, id?: number): void;
  end(): void;
  /** The number of the last look that it got, before it went away. */
  readonly after: number | null;
}

interface Look {
  readonly overview: Overview;
  readonly id: number;
}

export class Stream {
  readonly #read: () => Promise<Overview>;
  readonly #watch: (onWake: () => void) => () => void;
  readonly #clock: Clock;
  readonly #viewers = new Set<Viewer>();
  readonly #points: Look[] = [];
  /** Numbers of another process's looks are not ours. */
  readonly #epoch = randomUUID().slice(0, 8);
  #id = 0;
  #timer: Timer | null = null;
  #unwatch: (() => void) | null = null;
  #last: (Look & { text: string; at: number }) | null = null;
  #sentAt = -Infinity;
  #looking: Promise<void> | null = null;
  #again = false;

  constructor(deps: {
    read: () => Promise<Overview>;
    watch: (onWake: () => void) => () => void;
    clock: Clock;
  }) {
    this.#read = deps.read;
    this.#watch = deps.watch;
    this.#clock = deps.clock;
  }

  /** The latest look, at most a second old while somebody watches; a fresh one otherwise. */
  async overview(): Promise<Overview> {
    return (await this.#latest()).overview;
  }

  /**
   * The same for those who ask again and again: what has changed since `known`, or null. Ages grow by themselves, so that it is
   * something new every 5 seconds at the latest.
   */
  async poll(known: string | null): Promise<{ readonly overview: Overview | null; readonly etag: string }> {
    const { overview, text } = await this.#latest();
    const piece = Math.floor(overview.at / backstopMs);
    const hash = createHash("sha256").update(text).digest("base64url").slice(0, 16);
    const etag = `W/"${hash}.${piece}"`;
    return { overview: known === etag ? null : overview, etag };
  }

  async #latest(): Promise<Look & { readonly text: string }> {
    if (this.#last !== null && this.#viewers.size > 0 && this.#clock.monotonic() - this.#last.at < everyMs)
      return this.#last;
    return this.#keep(await this.#read());
  }

  recent(): Recent {
    const points = this.#points.map(({ overview }) => overview);
    return {
      at: points.map(({ at }) => at),
      ready: points.map(({ totals }) => totals.ready.count),
      running: points.map(({ totals }) => totals.running),
      scheduled: points.map(({ totals }) => totals.scheduled.count),
      oldestMs: points.map(({ oldestMs }) => oldestMs),
    };
  }

  /** @throws ApiError 429 with too many viewers. */
  open(signal: AbortSignal, lastEventId: string | null = null): Response {
    if (this.#viewers.size >= mostViewers)
      throw new ApiError("TOO_MANY_REQUESTS", `At most ${mostViewers} live streams at once.`, {
        headers: { "retry-after": "30" },
      });
    let viewer: Viewer | null = null;
    const leave = (): void => {
      if (viewer !== null) this.#leave(viewer);
    };
    const encoder = new TextEncoder();
    const body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          const after = this.#after(lastEventId);
          let told = after !== null;
          viewer = {
            after,
            tell({ overview, id }) {
              this.send(told ? "change" : "snapshot", { overview }, id);
              told = true;
            },
            send: (event, data, id) => {
              // Half a megabyte unread: its reader has gone or stalled.
              if ((controller.desiredSize ?? 0) < -524_288) {
                leave();
                controller.close();
                return;
              }
              const named = id === undefined ? "" : `id: ${this.#epoch}.${id}\n`;
              controller.enqueue(
                encoder.encode(`${named}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`),
              );
            },
            end: () => controller.close(),
          };
          controller.enqueue(encoder.encode("retry: 1000\n\n"));
          this.#join(viewer);
        },
        cancel: leave,
      },
      new ByteLengthQueuingStrategy({ highWaterMark: 65_536 }),
    );
    signal.addEventListener("abort", leave, { once: true });
    return new Response(body, {
      headers: {
        ...SECURITY_HEADERS,
        "content-type": "text/event-stream; charset=utf-8",
        "x-accel-buffering": "no",
      },
    });
  }

  close(): void {
    for (const viewer of this.#viewers) {
      this.#leave(viewer);
      viewer.end();
    }
  }

  get viewers(): number {
    return this.#viewers.size;
  }

  #join(viewer: Viewer): void {
    this.#viewers.add(viewer);
    this.#unwatch ??= this.#watch(() => this.#soon());
    void this.#latest().then(
      (look) => {
        if (!this.#viewers.has(viewer)) return;
        const { after } = viewer;
        if (after === null) return viewer.tell(look);
        for (const missed of this.#points.filter(({ id }) => id > after && id < look.id).slice(-mostMissed))
          viewer.tell(missed);
        if (look.id > after) viewer.tell(look);
      },
      () => viewer.send("trouble", { message: trouble }),
    );
    this.#arm(everyMs);
  }

  #leave(viewer: Viewer): void {
    this.#viewers.delete(viewer);
    if (this.#viewers.size > 0) return;
    this.#timer?.cancel();
    this.#timer = null;
    this.#unwatch?.();
    this.#unwatch = null;
  }

  #soon(): void {
    const sinceMs = this.#clock.monotonic() - (this.#last?.at ?? -Infinity);
    this.#arm(Math.max(0, soonestMs - sinceMs));
  }

  #armedFor = Infinity;
  #arm(ms: number): void {
    const at = this.#clock.monotonic() + ms;
    if (this.#timer !== null && at >= this.#armedFor) return;
    this.#timer?.cancel();
    this.#armedFor = at;
    this.#timer = this.#clock.after(
      ms,
      () => {
        this.#timer = null;
        this.#armedFor = Infinity;
        this.#look();
      },
      { unref: true },
    );
  }

  #look(): void {
    if (this.#looking !== null) {
      this.#again = true;
      return;
    }
    this.#looking = this.#tell().finally(() => {
      this.#looking = null;
      if (this.#viewers.size === 0) return;
      this.#arm(this.#again ? soonestMs : everyMs);
      this.#again = false;
    });
  }

  async #tell(): Promise<void> {
    let before = this.#last?.text;
    try {
      const look = this.#keep(await this.#read());
      const now = this.#clock.monotonic();
      if (look.text === before && now - this.#sentAt < backstopMs) return;
      this.#sentAt = now;
      for (const viewer of this.#viewers) viewer.tell(look);
    } catch {
      before = undefined;
      this.#last = null;
      for (const viewer of this.#viewers) viewer.send("trouble", { message: trouble });
    }
  }

  /** The number that somebody comes back with, if it is one of ours that is still remembered. */
  #after(lastEventId: string | null): number | null {
    const [epoch, id] = (lastEventId ?? "").split(".");
    const known = Number(id);
    const oldest = this.#points[0]?.id ?? Infinity;
    return epoch === this.#epoch && Number.isSafeInteger(known) && known >= oldest && known <= this.#id
      ? known
      : null;
  }

  #keep(overview: Overview): Look & { text: string } {
    // Ages grow by themselves: a change is a change of anything else.
    const text = JSON.stringify(
      { ...overview, at: 0, oldestMs: null, verdict: overview.verdict.level },
      (key, value: unknown) => (key === "oldestMs" ? undefined : value),
    );
    this.#id += 1;
    const last = { overview, id: this.#id, text, at: this.#clock.monotonic() };
    this.#last = last;
    const newest = this.#points.at(-1)?.overview;
    if (newest === undefined || overview.at - newest.at >= everyMs * 0.9) this.#points.push(last);
    if (this.#points.length > mostPoints) this.#points.shift();
    return last;
  }
}

const trouble = "The database does not answer. The stream goes on when it does.";
