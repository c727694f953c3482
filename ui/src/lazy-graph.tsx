// Graphs come after the page. The steps' table says the same where they do not load.
import { lazily } from "./lazy.tsx";
import type { GraphView as GraphViewOf } from "./graph-view.tsx";

export const GraphView = lazily<Parameters<typeof GraphViewOf>[0]>(
  async () => (await import("./graph-view.tsx")).GraphView,
  () => <div class="graph" />,
);
