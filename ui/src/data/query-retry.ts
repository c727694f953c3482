// What failed, and was not refused, is asked for again by itself: after 2 s, then less and less often.
import { ApiFailure } from "./api.ts";

const firstMs = 2_000;
const longestMs = 30_000;

export class QueryRetry {
  #timer: ReturnType<typeof setTimeout> | null = null;
  #failures = 0;

  failed(error: unknown, again: () => void): void {
    this.stop();
    if (error instanceof ApiFailure && error.status < 500) return;
    this.#timer = setTimeout(again, Math.min(firstMs * 2 ** this.#failures, longestMs));
    this.#failures += 1;
  }

  succeeded(): void {
    this.stop();
    this.#failures = 0;
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }
}
