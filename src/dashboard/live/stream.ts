/**
 * The live stream: what each viewer follows, as server-sent events.
 *
 *   id: 3f2a91c0.17.Qm4x0s.a9ZkP1    what it knows now: up to change 17, of the topics with these marks
 *   event: snapshot                   the whole of a topic: { topic, readAt, value }
 *   event: change, age                what has changed of it: { topic, readAt, delta } (delta.ts); `age`: nothing but ages
 *   event: current                    who came back knows it as it is: { topic }
 *   event: refused                    it cannot be told, as its route would say: { topic, status, code, message }
 *   event: trouble                    the database does not answer; the stream stays
 *   :                                 nothing has changed, and the stream lives
 *
 * One sampler for each topic in use, for all viewers together (topic-sampler.ts). Who comes back with the last id (`Last-Event-ID`) gets
 * what it missed, up to a minute of it, and no snapshot of what it knows; topics that it did not have come whole. A sampler
 * that nobody follows reads nothing, and is kept for a minute for those who come back. Who cannot hold a stream asks for
 * `/overview` again and again, with the `ETag` of the last answer: 304 while nothing has changed.
 *
 * Invariants: a viewer that does not read is dropped instead of filling the memory; to one that has left, telling does nothing; a stream
 * ends after a quarter of an hour, so that who reads it and what they may see is asked anew.
 */
import { createHash, randomUUID } from "node:crypto";
import type { Clock, Timer } from "../../clock.ts";
import type { Overview, Recent } from "../api/contract.ts";
import type { Fields } from "./delta.ts";
import { ApiError, SECURITY_HEADERS } from "../http.ts";
import { type Follower, Sampler } from "./topic-sampler.ts";

const everyMs = 1_000;
const beatMs = 5_000;
const longestMs = 900_000;
const keptMs = 60_000;
const mostViewers = 100;
/** Of all viewers together, and what is kept for those who come back. */
const mostSamplers = 500;
const mostPoints = 900;

/** What a viewer follows, and may: the same for all who have the same key. */
export interface Followed {
  readonly topic: string;
  readonly key: string;
  readonly everyMs: number;
  readonly read: () => Promise<object>;
}

interface Viewer {
  beat(): void;
  /** It has gone, or must: its body is closed. */
  end(): void;
}

export class Stream {
  readonly #read: () => Promise<Overview>;
  readonly #watch: (onWake: () => void) => () => void;
  readonly #clock: Clock;
  readonly #viewers = new Set<Viewer>();
  readonly #samplers = new Map<string, Sampler>();
  readonly #points: Overview[] = [];
  /** Numbers of another process's changes are not ours. */
  readonly #epoch = randomUUID().slice(0, 8);
  readonly #overview: Sampler;
  #number = 0;
  #unwatch: (() => void) | null = null;
  #beating: Timer | null = null;

  constructor(deps: {
    read: () => Promise<Overview>;
    watch: (onWake: () => void) => () => void;
    clock: Clock;
  }) {
    this.#read = deps.read;
    this.#watch = deps.watch;
    this.#clock = deps.clock;
    this.#overview = this.#sampler(this.overview);
  }

  /** What everybody follows who names nothing else. */
  get overview(): Followed {
    return { topic: "overview", key: "overview", everyMs, read: () => this.#seen() };
  }

  /**
   * The overview for those who ask again and again: what has changed since `known`, or null. Ages grow by themselves, so that
   * it is something new every 5 seconds at the latest.
   */
  async poll(known: string | null): Promise<{ readonly overview: Fields | null; readonly etag: string }> {
    const { value, ageless } = await this.#overview.latest();
    const piece = Math.floor(Number(value["at"]) / beatMs);
    const etag = `W/"${digest(ageless, 16)}.${piece}"`;
    return { overview: known === etag ? null : value, etag };
  }

  recent(): Recent {
    const points = this.#points;
    return {
      at: points.map(({ at }) => at),
      ready: points.map(({ totals }) => totals.ready.count),
      running: points.map(({ totals }) => totals.running),
      scheduled: points.map(({ totals }) => totals.scheduled.count),
      oldestMs: points.map(({ oldestMs }) => oldestMs),
    };
  }

  /** @throws ApiError 429 with too many viewers, or too many topics in all. */
  open(
    signal: AbortSignal,
    lastEventId: string | null = null,
    followed: readonly Followed[] = [this.overview],
  ): Response {
    if (this.#viewers.size >= mostViewers) throw tooMany(`At most ${mostViewers} live streams at once.`);
    this.#forget();
    const news = new Set(followed.map(({ key }) => key).filter((key) => !this.#samplers.has(key)));
    if (this.#samplers.size + news.size > mostSamplers)
      throw tooMany(`All viewers together may follow at most ${mostSamplers} topics.`);
    let leave = (): void => {};
    const body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          leave = this.#join(controller, this.#known(lastEventId), followed);
        },
        cancel: () => leave(),
      },
      new ByteLengthQueuingStrategy({ highWaterMark: 65_536 }),
    );
    if (signal.aborted) leave();
    else signal.addEventListener("abort", () => leave(), { once: true });
    return new Response(body, {
      headers: {
        ...SECURITY_HEADERS,
        "content-type": "text/event-stream; charset=utf-8",
        "x-accel-buffering": "no",
      },
    });
  }

  close(): void {
    for (const viewer of this.#viewers) viewer.end();
  }

  get viewers(): number {
    return this.#viewers.size;
  }

  /** Gives what ends it. */
  #join(
    controller: ReadableStreamDefaultController<Uint8Array>,
    known: Known,
    followed: readonly Followed[],
  ): () => void {
    const encoder = new TextEncoder();
    const openedAt = this.#clock.monotonic();
    const follows: { sampler: Sampler; follower: Follower }[] = [];
    /** The marks of the topics that it knows by now. */
    const marks = new Set<string>();
    let sentAt = openedAt;
    let left = false;
    const leave = (): void => {
      if (left) return;
      left = true;
      for (const { sampler, follower } of follows) sampler.leave(follower);
      this.#leave(viewer);
    };
    const write = (text: string): void => {
      if (left) return;
      // Half a megabyte unread: its reader has gone or stalled.
      if ((controller.desiredSize ?? 0) < -524_288) return viewer.end();
      sentAt = this.#clock.monotonic();
      controller.enqueue(encoder.encode(text));
    };
    const send = (event: string, data: object, named: boolean): void => {
      const id = named ? `id: ${[this.#epoch, this.#number, ...marks].join(".")}\n` : "";
      write(`${id}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
    };
    const viewer: Viewer = {
      beat: () => {
        const now = this.#clock.monotonic();
        if (now - openedAt >= longestMs) viewer.end();
        else if (now - sentAt >= beatMs * 0.9) write(":\n\n");
      },
      end: () => {
        if (left) return;
        leave();
        controller.close();
      },
    };
    write("retry: 1000\n\n");
    this.#unwatch ??= this.#watch(() => {
      for (const sampler of this.#samplers.values()) sampler.soon();
    });
    this.#beating ??= this.#beat();
    this.#viewers.add(viewer);
    for (const one of followed) {
      const { topic } = one;
      const mark = digest(one.key, 6);
      const follower: Follower = {
        snapshot: (value, readAt) => {
          marks.add(mark);
          send("snapshot", { topic, readAt, value }, true);
        },
        change: (delta, event, readAt) => {
          marks.add(mark);
          send(event, { topic, readAt, delta }, true);
        },
        current: () => {
          marks.add(mark);
          send("current", { topic }, true);
        },
        refused: ({ status, code, message }) => {
          marks.delete(mark);
          send("refused", { topic, status, code, message }, false);
        },
        trouble: () => send("trouble", { topic, message: trouble }, false),
      };
      const sampler = this.#sampler(one);
      follows.push({ sampler, follower });
      sampler.follow(follower, known.marks.has(mark) ? known.number : null);
    }
    return leave;
  }

  #leave(viewer: Viewer): void {
    this.#viewers.delete(viewer);
    if (this.#viewers.size > 0) return;
    this.#unwatch?.();
    this.#unwatch = null;
    this.#beating?.cancel();
    this.#beating = null;
  }

  #beat(): Timer {
    return this.#clock.after(
      beatMs,
      () => {
        for (const viewer of this.#viewers) viewer.beat();
        this.#beating = this.#viewers.size === 0 ? null : this.#beat();
      },
      { unref: true },
    );
  }

  #sampler({ key, everyMs: ms, read }: Followed): Sampler {
    const known = this.#samplers.get(key);
    if (known !== undefined) return known;
    const sampler = new Sampler({ read, clock: this.#clock, everyMs: ms, next: () => (this.#number += 1) });
    this.#samplers.set(key, sampler);
    return sampler;
  }

  /** Those that nobody has followed for a while. The overview stays: it is asked for without a stream too. */
  #forget(): void {
    const before = this.#clock.monotonic() - keptMs;
    for (const [key, sampler] of this.#samplers)
      if (sampler !== this.#overview && sampler.idleSince !== null && sampler.idleSince < before)
        this.#samplers.delete(key);
  }

  async #seen(): Promise<Overview> {
    const overview = await this.#read();
    const newest = this.#points.at(-1);
    if (newest === undefined || overview.at - newest.at >= everyMs * 0.9) this.#points.push(overview);
    if (this.#points.length > mostPoints) this.#points.shift();
    return overview;
  }

  /** What somebody comes back with, if it is of ours. */
  #known(lastEventId: string | null): Known {
    const [epoch, text, ...marks] = (lastEventId ?? "").slice(0, 1_000).split(".");
    const number = Number(text);
    return epoch === this.#epoch && Number.isSafeInteger(number) && number <= this.#number
      ? { number, marks: new Set(marks) }
      : { number: 0, marks: new Set() };
  }
}

interface Known {
  readonly number: number;
  readonly marks: ReadonlySet<string>;
}

const trouble = "The database does not answer. The stream continues when it does.";

function digest(text: string, length: number): string {
  return createHash("sha256").update(text).digest("base64url").slice(0, length);
}

function tooMany(message: string): ApiError {
  return new ApiError("TOO_MANY_REQUESTS", message, { headers: { "retry-after": "30" } });
}
