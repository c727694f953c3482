// Search for a step, including steps inside closed fan-outs.
import { useSignal } from "@preact/signals";
import type { Leaf } from "./graph-picture.ts";
import { Icon } from "../kit/icons.tsx";

/** Selects the next step whose name contains the text. */
export function GraphSearch({ leaves, found }: { leaves: readonly Leaf[]; found: (leaf: Leaf) => void }) {
  const words = useSignal("");
  const last = useSignal<string | null>(null);
  const none = useSignal(false);
  const find = (): void => {
    const wanted = words.value.trim().toLowerCase();
    const fitting = leaves.filter(({ node }) => node.label.toLowerCase().includes(wanted));
    const next =
      fitting[(fitting.findIndex(({ id }) => id === last.value) + 1) % Math.max(1, fitting.length)];
    none.value = wanted === "" || next === undefined;
    if (wanted === "" || next === undefined) return;
    last.value = next.id;
    found(next);
  };
  return (
    <form
      class="row tight"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        find();
      }}
    >
      <input
        type="search"
        aria-label="Find a step"
        placeholder="Find a step"
        value={words.value}
        onInput={(event) => (words.value = event.currentTarget.value)}
      />
      <button type="submit" class="button small" aria-label="Go to the next step with this name">
        <Icon name="search" size={14} />
      </button>
      <span class="small muted" role="status">
        {none.value ? "No such step" : ""}
      </span>
    </form>
  );
}
