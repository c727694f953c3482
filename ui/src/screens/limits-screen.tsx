// Holds, breakers, budgets, lanes: what keeps jobs from running on purpose.
import { Head } from "../kit/panels.tsx";
import { t } from "../language/translation.ts";
import { Breakers } from "../limits/breakers-panel.tsx";
import { Budgets } from "../limits/budget-panel.tsx";
import { Holds } from "../limits/holds-panel.tsx";
import { Lanes, Throttled } from "../limits/lanes-panel.tsx";
import { QueueLimits } from "../limits/queue-limits-panel.tsx";
import { Overrides } from "../limits/temporary-limits-panel.tsx";

export function Limits() {
  return (
    <>
      <Head title={t("Limits")} note={t("What keeps jobs from running on purpose.")} />
      <Overrides />
      <Holds />
      <Breakers />
      <QueueLimits />
      <Budgets />
      <Throttled />
      <Lanes />
    </>
  );
}
