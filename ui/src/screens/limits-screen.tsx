// Queue limits, temporary limits, holds, breakers, budgets, lanes.
import { Head } from "../kit/panels.tsx";
import { BreakersPanel } from "../limits/breakers-panel.tsx";
import { BudgetsPanel } from "../limits/budget-panel.tsx";
import { HoldsPanel } from "../limits/holds-panel.tsx";
import { LanesPanel, ThrottledLanesPanel } from "../limits/lanes-panel.tsx";
import { QueueLimitsPanel } from "../limits/queue-limits-panel.tsx";
import { TemporaryLimitsPanel } from "../limits/temporary-limits-panel.tsx";

export function LimitsScreen() {
  return (
    <>
      <Head title="Limits" note="Rules that hold jobs back." />
      <TemporaryLimitsPanel />
      <HoldsPanel />
      <BreakersPanel />
      <QueueLimitsPanel />
      <BudgetsPanel />
      <ThrottledLanesPanel />
      <LanesPanel />
    </>
  );
}
