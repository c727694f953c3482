// Notices at the edge of the page: an action's result, with an offer to take it back where that can be done.
import { signal } from "@preact/signals";
import { noted, slow, takeBack } from "../data/api.ts";
import { Icon } from "./icons.tsx";

interface Toast {
  readonly id: number;
  readonly text: string;
  readonly kind: "good" | "bad";
  /** Entries of the audit trail that it offers to take back. */
  readonly undo: readonly number[];
}
const undoMs = 10_000;
const toasts = signal<readonly Toast[]>([]);
let lastToast = 0;

export function toast(text: string, kind: Toast["kind"] = "good", undo: readonly number[] = []): void {
  const id = ++lastToast;
  toasts.value = [...toasts.value.slice(-3), { id, text, kind, undo }];
  setTimeout(() => dismiss(id), undo.length > 0 ? undoMs : kind === "bad" ? 9_000 : 4_000);
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
          {undo.length > 0 && (
            <button
              type="button"
              class="button small"
              onClick={() => {
                dismiss(id);
                void attempt("Undone.", () => takeBack(undo));
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

/** Does something, and says what became of it: with an offer to take it back, where that can be done. */
export async function attempt(
  what: string,
  run: () => Promise<unknown>,
  /** Of what was done before. */
  undo: readonly number[] = [],
): Promise<boolean> {
  try {
    toast(what, "good", [...undo, ...(await noted(run)).undo]);
    return true;
  } catch (error) {
    toast(error instanceof Error ? error.message : String(error), "bad");
    return false;
  }
}
