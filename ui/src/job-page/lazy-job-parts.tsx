// What a job's page fetches after it: its body, the graph (the steps' table says the same where it does not load), the log, what
// was done to it, and the menu that copies it.
import type { CopyAs as CopyAsOf } from "../new-job/copy-menu.tsx";
import type { GraphView as GraphViewOf } from "../workflows/graph-view.tsx";
import type { Details as DetailsOf } from "./job-details.tsx";
import type { JobLog as JobLogOf } from "./log-panel.tsx";
import { lazily } from "../kit/lazy-component.tsx";
import type { RunLines as RunLinesOf } from "../workflows/run-history.tsx";
import type { JobEvents as JobEventsOf } from "../screens/audit-screen.tsx";
import { t } from "../language/translation.ts";

const panel = (label: string) => () => <section class="panel" aria-busy="true" aria-label={label} />;

export const Details = lazily<Parameters<typeof DetailsOf>[0]>(
  async () => (await import("./job-details.tsx")).Details,
  panel(t("Timeline")),
);

export const GraphView = lazily<Parameters<typeof GraphViewOf>[0]>(
  async () => (await import("../workflows/graph-view.tsx")).GraphView,
  () => <div class="graph" />,
);

export const JobLog = lazily<Parameters<typeof JobLogOf>[0]>(
  async () => (await import("./log-panel.tsx")).JobLog,
  panel(t("Log")),
);

export const JobEvents = lazily<Parameters<typeof JobEventsOf>[0]>(
  async () => (await import("../screens/audit-screen.tsx")).JobEvents,
  panel(t("Events")),
);

export const RunLines = lazily<Parameters<typeof RunLinesOf>[0]>(
  async () => (await import("../workflows/run-history.tsx")).RunLines,
  panel(t("History")),
);

export const CopyAs = lazily<Parameters<typeof CopyAsOf>[0]>(
  async () => (await import("../new-job/copy-menu.tsx")).CopyAs,
  () => null,
);
