/**
 * The live stream: one sampler for all viewers, and server-sent events to each.
 *
 * It looks when a wake-up comes (at most four times a second) and once a second in any case while somebody watches,
 * tells when something has changed, and every 5 seconds even if nothing has. Nobody watching: no query at all.
 *
 * Invariants: a viewer gets a snapshot first; an error of the database is told to the viewers as `trouble` and ends no
 * stream; a viewer that does not read is dropped instead of filling the memory.
 */
import type { Clock, Timer } from "../clock.ts";
import type { Overview, Recent } from "./contract.ts";
import { ApiError, SECURITY_HEADERS } from "./http.ts";

const everyMs = 1_000;
const soonestMs = 250;
const backstopMs = 5_000;
const mostViewers = 100;
const mostPoints = 900;

interface Viewer {
  /** The first is its snapshot, the others are changes. */
  tell(overview: Overview): void;
  send(event: string, data: unknown): void;
  end(): void;
}

export class Stream {
  readonly #read: () => Promise<Overview>;
  readonly #watch: (onWake: () => void) => () => void;
  readonly #clock: Clock;
  readonly #viewers = new Set<Viewer>();
  readonly #points: Overview[] = [];
  #timer: Timer | null = null;
  #unwatch: (() => void) | null = null;
  #last: { overview: Overview; text: string; at: number } | null = null;
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
    if (this.#last !== null && this.#viewers.size > 0 && this.#clock.monotonic() - this.#last.at < everyMs)
      return this.#last.overview;
    const overview = await this.#read();
    this.#keep(overview);
    return overview;
  }

  recent(): Recent {
    return {
      at: this.#points.map(({ at }) => at),
      ready: this.#points.map(({ totals }) => totals.ready.count),
      running: this.#points.map(({ totals }) => totals.running),
      scheduled: this.#points.map(({ totals }) => totals.scheduled.count),
      oldestMs: this.#points.map(({ oldestMs }) => oldestMs),
    };
  }

  /** @throws ApiError 429 with too many viewers. */
  open(signal: AbortSignal): Response {
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
          let id = 0;
          let told = false;
          viewer = {
            tell(overview) {
              this.send(told ? "change" : "snapshot", { overview });
              told = true;
            },
            send: (event, data) => {
              // Half a megabyte unread: its reader has gone or stalled.
              if ((controller.desiredSize ?? 0) < -524_288) {
                leave();
                controller.close();
                return;
              }
              controller.enqueue(
                encoder.encode(`id: ${++id}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`),
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
    void this.overview().then(
      (overview) => this.#viewers.has(viewer) && viewer.tell(overview),
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
      const overview = await this.#read();
      const { text } = this.#keep(overview);
      const now = this.#clock.monotonic();
      if (text === before && now - this.#sentAt < backstopMs) return;
      this.#sentAt = now;
      for (const viewer of this.#viewers) viewer.tell(overview);
    } catch {
      before = undefined;
      this.#last = null;
      for (const viewer of this.#viewers) viewer.send("trouble", { message: trouble });
    }
  }

  #keep(overview: Overview): { text: string } {
    // Ages grow by themselves: a change is a change of anything else.
    const text = JSON.stringify(
      { ...overview, at: 0, oldestMs: null, verdict: overview.verdict.level },
      (key, value: unknown) => (key === "oldestMs" ? undefined : value),
    );
    this.#last = { overview, text, at: this.#clock.monotonic() };
    const newest = this.#points.at(-1);
    if (newest === undefined || overview.at - newest.at >= everyMs * 0.9) this.#points.push(overview);
    if (this.#points.length > mostPoints) this.#points.shift();
    return this.#last;
  }
}

const trouble = "The database does not answer. The stream goes on when it does.";
