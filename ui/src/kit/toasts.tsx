// Notices at the edge of the page: the result of an action, and a button that undoes it where an inverse request exists.
import { signal } from "@preact/signals";
import { renewed, slow } from "../data/api.ts";
import { Icon } from "./icons.tsx";

interface Toast {
  readonly id: number;
  readonly text: string;
  readonly kind: "good" | "bad";
  readonly undo: Undo | undefined;
}
/** Sends the inverse of an action: it restores the values that the page showed before. */
export type Undo = () => Promise<unknown>;
const undoMs = 10_000;
const toasts = signal<readonly Toast[]>([]);
let lastToast = 0;

export function toast(text: string, kind: Toast["kind"] = "good", undo?: Undo): void {
  const id = ++lastToast;
  toasts.value = [...toasts.value.slice(-3), { id, text, kind, undo }];
  setTimeout(() => dismiss(id), undo !== undefined ? undoMs : kind === "bad" ? 9_000 : 4_000);
}

function dismiss(id: number): void {
  toasts.value = toasts.value.filter((one) => one.id !== id);
}

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {slow.value > 0 && (
        <div class="toast">
          <Icon name="wait" />
          <span>Still waiting for the database…</span>
        </div>
      )}
      {toasts.value.map(({ id, text, kind, undo }) => (
        <div key={id} class={`toast ${kind}`}>
          <Icon name={kind === "bad" ? "dead" : "check"} />
          <span>{text}</span>
          {undo !== undefined && (
            <button
              type="button"
              class="button small"
              onClick={() => {
                dismiss(id);
                void attempt("Undone", undo).then(() => (renewed.value += 1));
              }}
            >
              Undo
            </button>
          )}
          <button
            type="button"
            class="button quiet small icon"
            aria-label="Dismiss"
            onClick={() => dismiss(id)}
          >
            <Icon name="close" size={12} />
          </button>
        </div>
      ))}
    </div>
  );
}

/** Runs an action and shows its result. */
export async function attempt(done: string, run: () => Promise<unknown>, undo?: Undo): Promise<boolean> {
  try {
    await run();
    toast(done, "good", undo);
    return true;
  } catch (error) {
    toast(error instanceof Error ? error.message : String(error), "bad");
    return false;
  }
}
