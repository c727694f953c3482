/**
 * Wake-ups between processes over LISTEN/NOTIFY: one connection that listens, and proves to itself that it hears.
 *
 *   connect ─▶ LISTEN ─▶ send myself a nonce ─▶ heard within 4 s: proven ─▶ again after 10 s, with a look of the worker's
 *      ▲                       │                                             (`proof`), or by itself where none comes by
 *      └─ later ── destroy ◀───┤
 *                              └─ not heard, or the server's queue is too full to send: unproven
 *
 * The first nonce comes from another connection. Behind a pooler that lends a server connection for each transaction, LISTEN and NOTIFY of
 * one client mostly get the same one: it would hear itself and nobody else.
 *
 * Never relied on: whoever sleeps also polls, fast while `proven` is false and slowly while it is true. A notification
 * says only where to look. Sending is gathered: the first goes at once, and one statement carries all that came up in the 5 ms
 * after it, because NOTIFY takes a lock over the whole database at commit, and its commit waits for the disk like any other
 * (half the throughput, when sent for each commit).
 */
import { type Clock, systemClock, type Timer } from "../../clock.ts";
import type { Wake } from "../wake.ts";
import { cutOff, type PgClient } from "./pg.ts";

const PROVE_EVERY_MS = 11_000;
/** From then on a look takes the nonce along. Workers look every 5 s. */
const RIDE_AFTER_MS = 8_000;
const HEARD_WITHIN_MS = 4_000;
/** The look may be held up where the listener is not: then it asks by itself, and has the other half of the time. */
const RODE_WITHIN_MS = HEARD_WITHIN_MS / 2;
const RETRY_MS = 2_000;

/**
 * At a full queue a NOTIFY fails, and with it the commit that it is part of: ours, or that of a user's transaction, where no savepoint
 * helps. So none is sent while the queue is half full (somebody listens and does not read): polling finds the work.
 */
export const ROOM_TO_NOTIFY = "pg_catalog.pg_notification_queue_usage() operator(pg_catalog.<) 0.5";
export const NOTIFY_ALL = `select pg_catalog.pg_notify($1, payload) from pg_catalog.unnest($2::pg_catalog.text[]) as payload where (select ${ROOM_TO_NOTIFY})`;

export interface ListenerOptions {
  readonly channel: string;
  connect(): Promise<PgClient>;
  /** Sends a message over another connection; gives no row where the server's queue has no room. */
  send(message: string): Promise<readonly unknown[]>;
  onWake(wake: Wake): void;
  onWarning(message: string, details: Record<string, unknown>): void;
}

export class Listener {
  readonly #options: ListenerOptions;
  #client: PgClient | null = null;
  #proven = false;
  #nonce = 0;
  #awaited: string | null = null;
  #heardAt = -Infinity;
  #timer: Timer | null = null;
  #failures = 0;
  /** The server has taken the nonce that is awaited. */
  #sent = false;
  /** How often in a row a nonce was sent and not heard. */
  #deaf = 0;
  #full = false;
  #stopped = false;

  constructor(options: ListenerOptions) {
    this.#options = options;
    void this.#start();
  }

  get proven(): boolean {
    return this.#proven;
  }

  async #start(): Promise<void> {
    if (this.#stopped) return;
    try {
      const client = await this.#options.connect();
      if (this.#stopped) return destroy(client);
      this.#client = client;
      client.on("error", () => this.#lost(client));
      client.on("end", () => this.#lost(client));
      client.on("notification", (message) => this.#heard(message.payload ?? ""));
      this.#after(HEARD_WITHIN_MS, () => this.#lost(client));
      await client.query(`listen "${this.#options.channel}"`);
      this.#prove(client);
    } catch {
      this.#lost(this.#client);
    }
  }

  /** The nonce, if it is time for one: for a statement that is sent anyway. It must be sent on this listener's channel. */
  proof(): string | null {
    const client = this.#client;
    if (client === null || !this.#proven || this.#awaited !== null) return null;
    if (systemClock.monotonic() - this.#heardAt < RIDE_AFTER_MS) return null;
    return this.#await(RODE_WITHIN_MS, () => this.#prove(client, HEARD_WITHIN_MS - RODE_WITHIN_MS));
  }

  #prove(client: PgClient, withinMs = HEARD_WITHIN_MS): void {
    if (this.#stopped || client !== this.#client) return;
    const nonce = this.#await(withinMs, () => this.#lost(client));
    const sent = this.#proven
      ? client.query(NOTIFY_ALL, [this.#options.channel, [nonce]]).then(({ rows }) => rows)
      : this.#options.send(nonce);
    sent.then(
      (rows) => {
        if (client !== this.#client) return;
        if (rows.length === 0) this.#noRoom(client);
        else this.#sent = true;
      },
      () => this.#lost(client),
    );
  }

  /** The server's queue is too full to send anything. A new LISTEN is behind nobody: this one may be what holds the queue up. */
  #noRoom(client: PgClient): void {
    if (!this.#full)
      this.#options.onWarning(
        "The server's NOTIFY queue is half full, because a listening session does not read it. Workers poll for jobs. Find an old transaction of a listening session.",
        { channel: this.#options.channel },
      );
    this.#full = true;
    this.#lost(client);
  }

  #after(ms: number, fn: () => void): void {
    this.#timer?.cancel();
    this.#timer = systemClock.after(ms, fn, { unref: true });
  }

  #await(withinMs: number, onSilence: () => void): string {
    const nonce = `${process.pid}.${(this.#nonce += 1)}.${Math.trunc(systemClock.monotonic())}`;
    this.#awaited = nonce;
    this.#sent = false;
    this.#after(withinMs, onSilence);
    return JSON.stringify({ k: "self", n: nonce });
  }

  #heard(payload: string): void {
    const wake = decode(payload);
    if (wake === null) return;
    if (wake.kind === "self") {
      if (wake.nonce !== this.#awaited) return;
      this.#awaited = null;
      this.#heardAt = systemClock.monotonic();
      this.#failures = 0;
      this.#deaf = 0;
      this.#full = false;
      const first = !this.#proven;
      this.#proven = true;
      const client = this.#client;
      this.#after(PROVE_EVERY_MS, () => client !== null && this.#prove(client));
      // What was sent while nobody heard is gone: look at everything once.
      if (first) this.#options.onWake({ kind: "any" });
      return;
    }
    this.#options.onWake(wake);
  }

  #lost(client: PgClient | null): void {
    if (this.#stopped || (client !== this.#client && client !== null)) return;
    if (this.#awaited !== null && this.#sent) this.#deaf += 1;
    this.#client = null;
    this.#awaited = null;
    this.#proven = false;
    this.#failures += 1;
    if (client !== null) destroy(client);
    if (this.#deaf === 3) {
      this.#deaf += 1; // told once, until something is heard
      this.#options.onWarning(
        "LISTEN does not reach this process (a pooler in transaction mode?), so workers poll for jobs. Use a direct URL to get wake-ups.",
        { channel: this.#options.channel },
      );
    }
    this.#after(RETRY_MS * Math.min(this.#failures, 8), () => void this.#start());
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
    if (this.#client !== null) destroy(this.#client);
    this.#client = null;
    this.#proven = false;
  }
}

function destroy(client: PgClient): void {
  client.removeAllListeners();
  client.on("error", () => {});
  client.end().catch(() => {});
  cutOff(client);
}

type Message = Wake | { readonly kind: "self"; readonly nonce: string };

/** Compact JSON, far below NOTIFY's 8,000 bytes; a queue's name is at most 128 characters. */
export function encode(wake: Wake): string {
  switch (wake.kind) {
    case "work":
      return JSON.stringify({ k: "work", q: wake.queue, p: wake.priority, f: wake.from });
    case "cancel":
    case "stop":
    case "quiet":
      return JSON.stringify({ k: wake.kind, s: wake.session });
    default:
      return JSON.stringify({ k: wake.kind });
  }
}

function decode(payload: string): Message | null {
  try {
    const { k, q, p, f, s, n } = JSON.parse(payload) as Record<string, unknown>;
    if (k === "work" && typeof q === "string" && typeof p === "number")
      return { kind: "work", queue: q, priority: p, ...(typeof f === "number" ? { from: f } : null) };
    if ((k === "cancel" || k === "stop" || k === "quiet") && typeof s === "number")
      return { kind: k, session: s };
    if (k === "settings" || k === "any" || k === "ended") return { kind: k };
    if (k === "self" && typeof n === "string") return { kind: "self", nonce: n };
  } catch {
    // Anybody may send on the channel; what is not ours is not heard.
  }
  return null;
}

/**
 * Between two that ride. A statement with a NOTIFY commits under a lock over the whole database, so that fifty a second are
 * all that a process may ask for; more than that are gathered.
 */
const RIDES_APART_MS = 20;

/** Between two statements. Who was woken less than this ago is still looking, or has just gone to sleep and is woken again. */
const SENDS_APART_MS = 5;

/**
 * Sends wake-ups: the first at once, those that come up meanwhile together in the next statement. Where it is quiet, the
 * statement that makes the work takes its wake-up along (`ride`): one round trip and one commit less until the job starts.
 */
export class Notifier {
  readonly #send: (payloads: readonly string[]) => Promise<void>;
  #waiting = new Set<string>();
  #draining: Promise<void> | null = null;
  #goOn: (() => void) | null = null;
  #lastAt = -Infinity;
  #hurried = false;
  readonly #clock: Clock;

  constructor(send: (payloads: readonly string[]) => Promise<void>, clock: Clock = systemClock) {
    this.#send = send;
    this.#clock = clock;
  }

  /** The message, for the caller to send; null: push it when the work is there. */
  ride(wake: Wake): string | null {
    const now = this.#clock.monotonic();
    const quiet = this.#draining === null && now - this.#lastAt >= RIDES_APART_MS;
    this.#lastAt = now;
    return quiet ? encode(wake) : null;
  }

  push(wake: Wake): void {
    this.#lastAt = this.#clock.monotonic();
    this.#waiting.add(encode(wake));
    this.#draining ??= this.#drain();
  }

  /** Sends what waits, now. Resolves when nothing does. */
  async flush(): Promise<void> {
    this.#hurried = true;
    this.#goOn?.();
    await this.#draining;
  }

  async #drain(): Promise<void> {
    while (this.#waiting.size > 0) {
      const payloads = [...this.#waiting];
      this.#waiting = new Set();
      try {
        await this.#send(payloads);
      } catch {
        // Polling finds the job; a notification is only haste.
      }
      if (!this.#hurried) await this.#pause();
    }
    this.#draining = null;
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.#clock.after(SENDS_APART_MS, () => this.#goOn?.());
      this.#goOn = () => {
        this.#goOn = null;
        timer.cancel();
        resolve();
      };
    });
  }
}
