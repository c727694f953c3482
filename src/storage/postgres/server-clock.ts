/**
 * The server's clock, as this process knows it between two answers that carry the server's time.
 *
 * On Postgres every client of a database shares the server's time, also where an instant is made in the client: ids, deadlines, minutes of
 * series, cut-offs of deletions. The machine's wall clock is not used: a process whose clock was 40 days ahead dropped today's partitions.
 * Between answers time goes on by the monotonic clock.
 *
 * Invariant: an answer moves the clock only as far as is needed to lie between the instants at which the question was sent and the
 * answer came, so that a slow answer does not disturb it.
 */
import type { Clock } from "../../clock.ts";

/** How far the machine's two clocks may part before the server is asked again. */
const DOUBT_MS = 1_000;

export class ServerClock implements Clock {
  readonly system = true;
  readonly monotonic: Clock["monotonic"];
  readonly after: Clock["after"];
  readonly #machine: Clock;
  /** The server's time where the monotonic clock is at 0. Null: the server has not been heard yet. */
  #origin: number | null = null;
  #wallOrigin = 0;

  constructor(machine: Clock) {
    this.#machine = machine;
    this.monotonic = () => machine.monotonic();
    this.after = (ms, fn, options) => machine.after(ms, fn, options);
  }

  // An arrow function, so that it can be handed on by itself.
  readonly now = (): number =>
    this.#origin === null ? this.#machine.now() : Math.floor(this.#origin + this.#machine.monotonic());

  /** The machine's clocks have parted: it slept, or somebody set its wall clock. Only the server knows the time. */
  get doubtful(): boolean {
    return Math.abs(this.#machine.now() - this.#machine.monotonic() - this.#wallOrigin) > DOUBT_MS;
  }

  /** The server's time, in an answer to a question that was sent when the monotonic clock was at `sentAt`. */
  heard(serverNow: number, sentAt: number): void {
    const receivedAt = this.#machine.monotonic();
    const [least, most] = [serverNow - receivedAt, serverNow - sentAt];
    this.#origin = this.#origin === null ? (least + most) / 2 : Math.min(Math.max(this.#origin, least), most);
    this.#wallOrigin = this.#machine.now() - receivedAt;
  }
}
