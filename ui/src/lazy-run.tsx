// What a job's page fetches after it: the graph (the steps' table says the same where it does not load), and the log.
import type { GraphView as GraphViewOf } from "./graph-view.tsx";
import type { JobLog as JobLogOf } from "./job-log.tsx";
import { lazily } from "./lazy.tsx";

export const GraphView = lazily<Parameters<typeof GraphViewOf>[0]>(
  async () => (await import("./graph-view.tsx")).GraphView,
  () => <div class="graph" />,
);

export const JobLog = lazily<Parameters<typeof JobLogOf>[0]>(
  async () => (await import("./job-log.tsx")).JobLog,
  () => <section class="panel" aria-busy="true" aria-label="Log" />,
);
