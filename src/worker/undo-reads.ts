/**
 * Whether runs that ended before they asked for a step have steps to undo: asked for all that ended in one turn of the event
 * loop at once, because a thousand dead jobs that are retried end so.
 */
import type { WorkflowStore } from "../workflows/store.ts";

type Answer = "undo" | "undoing" | undefined;

interface Ask {
  readonly id: string;
  /** Nobody wants to know any more. */
  readonly given: () => boolean;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

export class UndoAsks {
  readonly #store: Pick<WorkflowStore, "undoable">;
  readonly #patiently: <T>(call: () => Promise<T>, over: () => boolean) => Promise<T>;
  #waiting: Ask[] = [];

  constructor(
    store: Pick<WorkflowStore, "undoable">,
    patiently: <T>(call: () => Promise<T>, over: () => boolean) => Promise<T>,
  ) {
    this.#store = store;
    this.#patiently = patiently;
  }

  ask(id: string, given: () => boolean): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ id, given, resolve, reject });
      if (this.#waiting.length === 1) setImmediate(() => void this.#askAll());
    });
  }

  async #askAll(): Promise<void> {
    const asks = this.#waiting;
    this.#waiting = [];
    try {
      const ids = asks.map(({ id }) => id).sort();
      const over = (): boolean => asks.every(({ given }) => given());
      const answers = await this.#patiently(() => this.#store.undoable(ids), over);
      for (const { id, resolve } of asks) resolve(answers.get(id));
    } catch (error) {
      for (const { reject } of asks) reject(error);
    }
  }
}
